//! A test per rule of inference, including what users read.

mod layers;

use super::*;
use crate::{
    ActivationKind, ArgReduceOp, BinaryOp, CompareOp, ConvolutionSpec, CumulativeOp, DimSet,
    ErrorKind, NormSpec, PadSpec, PoolSpec, ReduceOp, Scalar, ScatterMode, Shape, UnaryOp,
};
use DType::{Bool, F16, F32, F64, I32, I64, U8};

fn meta(dtype: DType, dims: &[usize]) -> Meta {
    Meta::new(dtype, Shape::new(dims).unwrap())
}

fn f(dims: &[usize]) -> Meta {
    meta(F32, dims)
}

fn i(dims: &[usize]) -> Meta {
    meta(I64, dims)
}

#[track_caller]
fn gives(op: impl Into<Op>, inputs: &[Meta], outputs: &[Meta]) {
    assert_eq!(&*infer(&op.into(), inputs, &[]).unwrap(), outputs);
}

#[track_caller]
fn refuses(op: impl Into<Op>, inputs: &[Meta], words: &[&str]) {
    refuses_in_place(op, inputs, &[], words);
}

#[track_caller]
fn refuses_in_place(op: impl Into<Op>, inputs: &[Meta], in_place: &[Meta], words: &[&str]) {
    let op = op.into();
    let error = infer(&op, inputs, in_place).unwrap_err().to_string();
    assert!(error.starts_with(op.name()), "{error}");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

const CONVOLUTION: ConvolutionSpec = ConvolutionSpec {
    spatial: 2,
    stride: [1; 3],
    padding: [0; 3],
    dilation: [1; 3],
    groups: 1,
    sizes: [1; 3],
};

const POOL: PoolSpec = PoolSpec {
    spatial: 2,
    kernel: [2, 2, 1],
    stride: [2, 2, 1],
    padding: [0; 3],
    dilation: [1; 3],
    ceil_mode: false,
    count_include_pad: true,
    sizes: [1; 3],
};

#[test]
fn elementwise_ops_check_dtypes_and_shapes() {
    let add = Primitive::Binary(BinaryOp::Add);
    gives(add.clone(), &[f(&[2, 3]), f(&[2, 3])], &[f(&[2, 3])]);
    refuses(
        add.clone(),
        &[f(&[3, 4]), f(&[3, 5])],
        &["[3, 4]", "[3, 5]", "help"],
    );
    refuses(
        add.clone(),
        &[f(&[3]), meta(F64, &[3])],
        &["F32", "F64", "cast"],
    );
    refuses(add, &[f(&[3])], &["1 inputs, 2 expected"]);
    gives(
        Primitive::Unary(UnaryOp::Neg),
        &[meta(U8, &[2])],
        &[meta(U8, &[2])],
    );
    refuses(
        Primitive::Unary(UnaryOp::Sqrt),
        &[i(&[2])],
        &["I64", "F16", "cast"],
    );
    refuses(
        Primitive::Unary(UnaryOp::LogicalNot),
        &[f(&[2])],
        &["F32", "takes Bool"],
    );
    refuses(
        Primitive::Binary(BinaryOp::Div),
        &[i(&[2]), i(&[2])],
        &["I64"],
    );
    refuses(
        Primitive::Binary(BinaryOp::Sub),
        &[meta(Bool, &[2]); 2],
        &["Bool"],
    );
    gives(
        Primitive::Compare(CompareOp::Lt),
        &[f(&[2]), f(&[2])],
        &[meta(Bool, &[2])],
    );
    gives(
        Primitive::Where,
        &[meta(Bool, &[2]), i(&[2]), i(&[2])],
        &[i(&[2])],
    );
    refuses(
        Primitive::Where,
        &[meta(U8, &[2]), i(&[2]), i(&[2])],
        &["condition is U8"],
    );
    refuses(
        Primitive::Where,
        &[meta(Bool, &[1]), i(&[2]), i(&[2])],
        &["condition has shape [1]", "[2]"],
    );
    gives(Primitive::Cast { to: I32 }, &[f(&[2])], &[meta(I32, &[2])]);
    let scalar = Composite::BinaryScalar {
        op: BinaryOp::Div,
        scalar: Scalar::F64(2.0),
        reversed: false,
    };
    gives(scalar.clone(), &[f(&[2])], &[f(&[2])]);
    refuses(scalar, &[i(&[2])], &["I64"]);
}

#[test]
fn activations_take_floats_and_sound_parameters() {
    let activation = |kind, alpha, beta| Composite::Activation { kind, alpha, beta };
    gives(
        activation(ActivationKind::Gelu, 0.0, 0.0),
        &[meta(F16, &[2])],
        &[meta(F16, &[2])],
    );
    refuses(
        activation(ActivationKind::Gelu, 0.0, 0.0),
        &[i(&[2])],
        &["I64", "float"],
    );
    refuses(
        activation(ActivationKind::HardTanh, 2.0, 1.0),
        &[f(&[2])],
        &["2", "1", "bound"],
    );
    refuses(
        activation(ActivationKind::Celu, 0.0, 0.0),
        &[f(&[2])],
        &["alpha 0"],
    );
    let grad = Composite::ActivationGrad {
        kind: ActivationKind::Silu,
        alpha: 0.0,
        beta: 0.0,
    };
    refuses(grad, &[f(&[2]), f(&[3])], &["[2]", "[3]"]);
}

#[test]
fn creation_is_checked_against_its_output() {
    let random = Op::from(Primitive::Random {
        kind: RandomKind::Uniform,
    });
    assert!(infer(&random, &[i(&[3])], &[]).unwrap().is_empty());
    assert!(infer(&random, &[i(&[2])], &[]).is_err());
    assert!(check_creation(&random, &f(&[9])).is_ok());
    assert!(check_creation(&random, &i(&[9])).is_err());
    let iota = Op::from(Primitive::Iota { dim: 1 });
    assert!(check_creation(&iota, &f(&[9, 9])).is_ok());
    assert!(check_creation(&iota, &f(&[9])).is_err());
    assert!(check_creation(&iota, &meta(Bool, &[9, 9])).is_err());
}

#[test]
fn reductions_know_their_dtype_and_refuse_extremes_of_nothing() {
    let reduce = |op, dims: &[usize], accumulate| Primitive::Reduce {
        op,
        dims: DimSet::of(dims),
        accumulate,
    };
    gives(
        reduce(ReduceOp::Sum, &[0, 2], F32),
        &[meta(F16, &[2, 3, 4])],
        &[meta(F16, &[1, 3, 1])],
    );
    for dtype in [I32, U8, Bool, I64] {
        gives(
            reduce(ReduceOp::Sum, &[0], I64),
            &[meta(dtype, &[2])],
            &[i(&[1])],
        );
    }
    gives(
        reduce(ReduceOp::Max, &[0], I64),
        &[meta(I32, &[2])],
        &[meta(I32, &[1])],
    );
    refuses(
        reduce(ReduceOp::Sum, &[0], F16),
        &[meta(F16, &[2])],
        &["F16", "F32 expected"],
    );
    refuses(
        reduce(ReduceOp::Sum, &[2], F32),
        &[f(&[2, 3])],
        &["dimension 2", "[2, 3]"],
    );
    refuses(
        reduce(ReduceOp::Max, &[1], F32),
        &[f(&[2, 0])],
        &["[2, 0]", "size 0"],
    );
    gives(
        reduce(ReduceOp::Max, &[0], F32),
        &[f(&[2, 0])],
        &[f(&[1, 0])],
    );
    gives(
        reduce(ReduceOp::Min, &[0], I64),
        &[meta(Bool, &[0])],
        &[meta(Bool, &[1])],
    );
    let arg = Primitive::ArgReduce {
        op: ArgReduceOp::Max,
        dim: 0,
    };
    gives(arg.clone(), &[f(&[4, 5])], &[i(&[1, 5])]);
    refuses(arg, &[f(&[0, 5])], &["[0, 5]"]);
    let running = Primitive::Cumulative {
        op: CumulativeOp::Sum,
        dim: 0,
    };
    gives(running, &[meta(U8, &[4])], &[i(&[4])]);
    let sort = Primitive::Sort {
        dim: 0,
        descending: true,
    };
    gives(sort.clone(), &[f(&[4])], &[f(&[4]), i(&[4])]);
    refuses(sort, &[f(&[])], &["dimension 0", "rank 0"]);
    let softmax = Composite::Softmax { dim: 2, log: false };
    refuses(softmax, &[f(&[2, 3])], &["dimension 2", "[2, 3]"]);
}

#[test]
fn matmul_names_both_shapes() {
    let matmul = Primitive::Matmul { accumulate: F32 };
    gives(
        matmul.clone(),
        &[f(&[2, 3, 4]), f(&[2, 4, 5])],
        &[f(&[2, 3, 5])],
    );
    refuses(
        matmul.clone(),
        &[f(&[3, 4]), f(&[5, 6])],
        &["inner sizes differ, lhs [3, 4] rhs [5, 6]", "help"],
    );
    refuses(
        matmul.clone(),
        &[f(&[3, 4]), f(&[5, 4])],
        &["help: transpose rhs?"],
    );
    refuses(matmul.clone(), &[f(&[3]), f(&[3])], &["[3]", "rank"]);
    refuses(
        matmul.clone(),
        &[f(&[2, 3, 4]), f(&[5, 4, 6])],
        &["batch sizes 2 and 5"],
    );
    refuses(matmul, &[f(&[3, 4]), meta(F64, &[4, 6])], &["F32", "F64"]);
}

#[test]
fn linear_names_features() {
    let linear = Composite::Linear;
    gives(
        linear.clone(),
        &[f(&[7, 4]), f(&[5, 4]), f(&[5])],
        &[f(&[7, 5])],
    );
    gives(linear.clone(), &[f(&[4]), f(&[5, 4])], &[f(&[5])]);
    refuses(
        linear.clone(),
        &[f(&[3, 4]), f(&[5, 6]), f(&[5])],
        &["[3, 4] has 4 features", "[5, 6] expects 6", "help"],
    );
    refuses(
        linear.clone(),
        &[f(&[3, 6]), f(&[5, 6]), f(&[6])],
        &["bias", "[6]", "[5]"],
    );
    refuses(linear, &[f(&[]), f(&[5, 6])], &["scalar"]);
}

#[test]
fn indices_are_checked_for_rank_size_and_dtype() {
    let gather = Primitive::Gather { dim: 1 };
    gives(gather.clone(), &[f(&[3, 4]), i(&[2, 9])], &[f(&[2, 9])]);
    refuses(
        gather.clone(),
        &[f(&[3, 4]), i(&[2])],
        &["[3, 4]", "[2]", "rank"],
    );
    refuses(gather.clone(), &[f(&[3, 4]), i(&[5, 1])], &["5 > 3"]);
    refuses(
        gather.clone(),
        &[f(&[3, 4]), meta(I32, &[3, 1])],
        &["index is I32"],
    );
    let error = infer(&gather.into(), &[f(&[3, 0]), i(&[3, 1])], &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    let scatter = Primitive::Scatter {
        dim: 0,
        mode: ScatterMode::Add,
    };
    let op = Op::from(scatter.clone());
    assert!(
        infer(&op, &[i(&[2, 4]), f(&[2, 4])], &[f(&[9, 4])])
            .unwrap()
            .is_empty()
    );
    refuses_in_place(
        scatter.clone(),
        &[i(&[2, 4]), f(&[3, 4])],
        &[f(&[9, 4])],
        &["source has shape [3, 4]"],
    );
    refuses_in_place(
        scatter,
        &[i(&[2, 4]), f(&[2, 4])],
        &[],
        &["0 in-place operands"],
    );
    let select = Composite::IndexSelect { dim: 0 };
    gives(select.clone(), &[f(&[9, 4]), i(&[2])], &[f(&[2, 4])]);
    refuses(
        select,
        &[f(&[9, 4]), i(&[2, 1])],
        &["[2, 1]", "one dimension"],
    );
    let grad = Composite::IndexSelectGrad { dim: 0, size: 9 };
    gives(grad.clone(), &[f(&[2, 4]), i(&[2])], &[f(&[9, 4])]);
    refuses(grad, &[f(&[3, 4]), i(&[2])], &["3 slices", "has 2"]);
}

#[test]
fn concat_and_pad_check_every_size() {
    let cat = Composite::Concat { dim: 1 };
    gives(
        cat.clone(),
        &[f(&[2, 3]), f(&[2, 0]), f(&[2, 1])],
        &[f(&[2, 4])],
    );
    refuses(
        cat.clone(),
        &[f(&[2, 3]), f(&[3, 3])],
        &["sizes 2 and 3 differ at dimension 0", "[2, 3]", "[3, 3]"],
    );
    refuses(cat.clone(), &[], &["no tensors"]);
    refuses(cat, &[f(&[2, 3]), i(&[2, 3])], &["F32", "I64"]);
    let mut spec = PadSpec {
        shape: Shape::new(&[5]).unwrap(),
        start: [4; 12],
        step: [-2; 12],
        value: Scalar::F64(0.0),
    };
    gives(Composite::Pad(Box::new(spec)), &[f(&[3])], &[f(&[5])]);
    refuses(Composite::Pad(Box::new(spec)), &[f(&[4])], &["[4]", "[5]"]);
    spec.step[0] = 0;
    refuses(Composite::Pad(Box::new(spec)), &[f(&[1])], &["step 0"]);
}

#[test]
fn optimizer_steps_check_their_state() {
    let sgd = Composite::SgdStep {
        momentum: 0.9,
        dampening: 0.0,
        weight_decay: 0.0,
        nesterov: true,
        maximize: false,
    };
    let p = meta(F16, &[3]);
    let op = Op::from(sgd.clone());
    assert!(infer(&op, &[p, f(&[2])], &[p, p]).is_ok());
    refuses_in_place(
        sgd.clone(),
        &[p, f(&[2])],
        &[p],
        &["1 in-place operands, 2 expected"],
    );
    refuses_in_place(sgd.clone(), &[p, f(&[3])], &[p, p], &["hyper", "[3]"]);
    refuses_in_place(
        sgd.clone(),
        &[p, meta(F64, &[2])],
        &[p, p],
        &["hyper is F64"],
    );
    refuses_in_place(
        sgd,
        &[meta(F16, &[4]), f(&[2])],
        &[p, p],
        &["gradient [4] does not match parameter [3]"],
    );
    let adam = |beta1| Composite::AdamStep {
        beta1,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.0,
        decoupled: false,
        amsgrad: false,
        maximize: false,
    };
    let q = meta(F64, &[3]);
    assert!(infer(&adam(0.9).into(), &[q, q], &[q; 3]).is_ok());
    refuses_in_place(adam(1.0), &[q, q], &[q; 3], &["beta1 1"]);
    refuses_in_place(adam(f64::NAN), &[q, q], &[q; 3], &["beta1 NaN"]);
}
