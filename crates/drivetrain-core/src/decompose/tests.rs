//! Every decomposition is well formed: it gives what inference says, writes only what it made, and ends in
//! primitives. (What the programs compute is proved with the reference backend of the conformance crate.)

use super::*;
use crate::program::Step;
use crate::{
    ActivationKind, ConvolutionSpec, DType, MAX_DIMS, NormSpec, PadSpec, PoolSpec, ViewOp,
};
use DType::I64;

fn meta(dtype: DType, dims: &[usize]) -> Meta {
    Meta::new(dtype, Shape::new(dims).unwrap())
}

const NORM: NormSpec = NormSpec {
    dims: 1,
    eps: 1e-5,
    affine: true,
};

const CONVOLUTION: ConvolutionSpec = ConvolutionSpec {
    spatial: 2,
    stride: [2, 1, 1],
    padding: [1, 0, 0],
    dilation: [1, 2, 1],
    groups: 2,
    sizes: [1; 3],
};

const POOL: PoolSpec = PoolSpec {
    spatial: 2,
    kernel: [2, 3, 1],
    stride: [2, 2, 1],
    padding: [1, 1, 0],
    dilation: [1; 3],
    ceil_mode: true,
    count_include_pad: false,
    sizes: [1; 3],
};

type Sample = (Composite, Vec<Meta>, Vec<Meta>);

/// Every composite with operands of this dtype.
fn samples(dtype: DType) -> Vec<Sample> {
    let f = |dims: &[usize]| meta(dtype, dims);
    let wide = |dims: &[usize]| meta(dtype.accumulator(), dims);
    let i = |dims: &[usize]| meta(I64, dims);
    let scalar = Scalar::F64(2.0);
    let op = BinaryOp::Mul;
    let mut all: Vec<(Composite, Vec<Meta>)> = vec![
        (
            Composite::BinaryScalar {
                op,
                scalar,
                reversed: true,
            },
            vec![f(&[3])],
        ),
        (
            Composite::CompareScalar {
                op: CompareOp::Lt,
                scalar,
            },
            vec![f(&[3])],
        ),
        (
            Composite::LayerNorm(NORM),
            vec![f(&[4, 3]), f(&[3]), f(&[3])],
        ),
        (Composite::RmsNorm(NORM), vec![f(&[4, 3]), f(&[3])]),
        (Composite::IndexSelect { dim: 1 }, vec![f(&[2, 3]), i(&[5])]),
        (
            Composite::IndexSelectGrad { dim: 1, size: 3 },
            vec![f(&[2, 5]), i(&[5])],
        ),
        (Composite::Linear, vec![f(&[2, 5, 3]), f(&[4, 3]), f(&[4])]),
        (
            Composite::Concat { dim: 0 },
            vec![f(&[2, 3]), f(&[0, 3]), f(&[1, 3])],
        ),
    ];
    // Nothing is summed for the parameters where all dimensions are normalised.
    for (rows, dims) in [(&[4, 3][..], &[4, 1][..]), (&[3], &[1])] {
        let (x, statistic) = (f(rows), wide(dims));
        all.push((
            Composite::LayerNormGrad(NORM),
            vec![x, x, statistic, statistic, f(&[3])],
        ));
        all.push((Composite::RmsNormGrad(NORM), vec![x, x, statistic, f(&[3])]));
    }
    for &kind in ActivationKind::ALL {
        let (alpha, beta) = (0.5, 1.5);
        all.push((Composite::Activation { kind, alpha, beta }, vec![f(&[3])]));
        all.push((
            Composite::ActivationGrad { kind, alpha, beta },
            vec![f(&[3]); 2],
        ));
    }
    for log in [false, true] {
        all.push((Composite::Softmax { dim: 1, log }, vec![f(&[2, 3])]));
        all.push((Composite::SoftmaxGrad { dim: 1, log }, vec![f(&[2, 3]); 2]));
    }
    for affine in [false, true] {
        let eps = 1e-5;
        let parameters = |n: usize| vec![f(&[3]); if affine { n } else { 0 }];
        let x = f(&[2, 3, 4]);
        let inputs = [vec![x], parameters(2)].concat();
        all.push((Composite::BatchNorm { eps, affine }, inputs));
        let inputs = [vec![x, x, wide(&[3]), wide(&[3])], parameters(1)].concat();
        all.push((Composite::BatchNormGrad { eps, affine }, inputs));
        for label_smoothing in [0.0, 0.1] {
            let (ignore_index, weighted) = (-100, affine);
            let op = Composite::CrossEntropy {
                ignore_index,
                label_smoothing,
                weighted,
            };
            all.push((op, [vec![x, i(&[2, 4])], parameters(1)].concat()));
            let op = Composite::CrossEntropyGrad {
                ignore_index,
                label_smoothing,
                weighted,
            };
            let inputs = vec![f(&[2, 4]), x, wide(&[2, 4]), i(&[2, 4])];
            all.push((op, [inputs, parameters(1)].concat()));
        }
    }
    all.extend(images(dtype));
    let plain = all.into_iter().map(|(op, inputs)| (op, inputs, Vec::new()));
    plain.chain(steps(dtype)).collect()
}

/// Convolutions, pooling and padding.
fn images(dtype: DType) -> Vec<(Composite, Vec<Meta>)> {
    let f = |dims: &[usize]| meta(dtype, dims);
    let (x, w, y) = (f(&[2, 4, 5, 6]), f(&[6, 2, 3, 2]), f(&[2, 6, 3, 4]));
    let sized = |sizes| ConvolutionSpec {
        sizes,
        ..CONVOLUTION
    };
    let pooled = f(&[2, 4, 3, 4]);
    let image = PoolSpec {
        sizes: [5, 6, 1],
        ..POOL
    };
    let pad = PadSpec {
        shape: Shape::new(&[7, 3]).unwrap(),
        start: [6; MAX_DIMS],
        step: [-3; MAX_DIMS],
        value: Scalar::F64(1.0),
    };
    let pad = PadSpec {
        start: std::array::from_fn(|d| [6, 0][d.min(1)]),
        step: std::array::from_fn(|d| [-3, 1][d.min(1)]),
        ..pad
    };
    vec![
        (Composite::Convolution(CONVOLUTION), vec![x, w, f(&[6])]),
        (
            Composite::ConvolutionInputGrad(sized([5, 6, 1])),
            vec![y, w],
        ),
        (
            Composite::ConvolutionWeightGrad(sized([3, 2, 1])),
            vec![y, x],
        ),
        (Composite::MaxPool(POOL), vec![x]),
        (
            Composite::MaxPoolGrad(image),
            vec![pooled, meta(I64, &[2, 4, 3, 4])],
        ),
        (Composite::AvgPool(POOL), vec![x]),
        (Composite::AvgPoolGrad(image), vec![pooled]),
        (Composite::Pad(Box::new(pad)), vec![f(&[3, 2])]),
        (Composite::Pad(Box::new(pad)), vec![f(&[0, 2])]),
    ]
}

/// Optimizer steps.
fn steps(dtype: DType) -> Vec<Sample> {
    let (p, hyper) = (meta(dtype, &[3]), |n: usize| {
        meta(dtype.accumulator(), &[n])
    });
    let mut all = Vec::new();
    for (momentum, nesterov) in [(0.0, false), (0.9, false), (0.9, true)] {
        let op = Composite::SgdStep {
            momentum,
            dampening: 0.0,
            weight_decay: 0.1,
            nesterov,
            maximize: true,
        };
        let state = vec![p; op.in_place_operands()];
        all.push((op, vec![p, hyper(2)], state));
    }
    for (decoupled, amsgrad) in [(false, false), (true, true)] {
        let op = Composite::AdamStep {
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.1,
            decoupled,
            amsgrad,
            maximize: false,
        };
        let state = vec![p; op.in_place_operands()];
        all.push((op, vec![p, hyper(3)], state));
    }
    all
}

/// Checks one program and, below it, those of the composites in it; `above` are the ops it stems from.
fn check(op: &Composite, inputs: &[Meta], in_place: &[Meta], above: &[u32]) {
    let program = decompose(op, inputs, in_place).unwrap_or_else(|e| panic!("{op:?}: {e}"));
    let given = inputs.len() + in_place.len();
    let outputs: Vec<Meta> = program.outputs.iter().map(|v| program.metas[v.0]).collect();
    let wanted = match in_place {
        [] => infer(&Op::from(op.clone()), inputs, &[]).unwrap().to_vec(),
        state => state.to_vec(),
    };
    assert_eq!(outputs, wanted, "{op:?}");
    // What each value is a view of; row-major unless a view other than a reshape made it.
    let mut memory: Vec<Option<usize>> = (0..program.metas.len())
        .map(|i| (i < given).then_some(i))
        .collect();
    let mut row_major = vec![true; memory.len()];
    for step in &program.steps {
        let made =
            |v: &Value| memory[v.0].unwrap_or_else(|| panic!("{op:?} reads {v:?} too early"));
        match step {
            Step::Run {
                op: run,
                inputs,
                in_place,
                outputs,
            } => {
                inputs.iter().for_each(|v| _ = made(v));
                in_place
                    .iter()
                    .for_each(|v| assert!(made(v) >= given, "{op:?} changes its input"));
                let metas =
                    |list: &[Value]| list.iter().map(|v| program.metas[v.0]).collect::<Vec<_>>();
                if let Op::Composite(inner) = run {
                    let path = [above, &[Op::from(op.clone()).code()]].concat();
                    assert!(!path.contains(&run.code()), "{op:?} comes back to itself");
                    check(inner, &metas(inputs), &metas(in_place), &path);
                }
                outputs.iter().for_each(|v| memory[v.0] = Some(v.0));
            }
            Step::View {
                view,
                input,
                output,
            } => {
                memory[output.0] = Some(made(input));
                row_major[output.0] = row_major[input.0] && matches!(view, ViewOp::Reshape(_));
            }
            Step::Write { target, source, .. } => {
                made(source);
                assert!(made(target) >= given, "{op:?} writes its input");
            }
        }
    }
    let mut seen = Vec::new();
    for value in &program.outputs {
        let place = memory[value.0].unwrap();
        assert!(
            place >= given && row_major[value.0],
            "{op:?}: output {value:?} is a view"
        );
        assert!(!seen.contains(&place), "{op:?}: two outputs in one place");
        seen.push(place);
    }
}

#[test]
fn every_decomposition_is_well_formed() {
    let mut codes = std::collections::HashSet::new();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (op, inputs, in_place) in samples(dtype) {
            codes.insert(Op::from(op.clone()).code());
            check(&op, &inputs, &in_place, &[]);
        }
    }
    // One of each composite there is.
    assert_eq!(codes.len(), 28);
}

#[test]
fn integers_are_pooled_and_looked_up() {
    for dtype in [I64, DType::I32, DType::U8] {
        check(
            &Composite::MaxPool(POOL),
            &[meta(dtype, &[2, 4, 5, 6])],
            &[],
            &[],
        );
        let grad = Composite::IndexSelectGrad { dim: 0, size: 4 };
        check(&grad, &[meta(dtype, &[2, 3]), meta(I64, &[2])], &[], &[]);
        check(
            &Composite::Linear,
            &[meta(dtype, &[2, 3]), meta(dtype, &[4, 3])],
            &[],
            &[],
        );
    }
}

#[test]
fn empty_operands_decompose() {
    let f = |dims: &[usize]| meta(DType::F32, dims);
    check(
        &Composite::Softmax { dim: 1, log: true },
        &[f(&[2, 0])],
        &[],
        &[],
    );
    check(
        &Composite::Convolution(CONVOLUTION),
        &[f(&[0, 4, 5, 6]), f(&[6, 2, 3, 2])],
        &[],
        &[],
    );
    check(
        &Composite::Convolution(CONVOLUTION),
        &[f(&[2, 0, 5, 6]), f(&[6, 0, 3, 2])],
        &[],
        &[],
    );
    check(&Composite::MaxPool(POOL), &[f(&[0, 4, 5, 6])], &[], &[]);
    check(&Composite::AvgPool(POOL), &[f(&[2, 0, 5, 6])], &[], &[]);
    check(
        &Composite::Linear,
        &[f(&[2, 0]), f(&[3, 0]), f(&[3])],
        &[],
        &[],
    );
    check(
        &Composite::Concat { dim: 0 },
        &[f(&[0, 3]), f(&[0, 3])],
        &[],
        &[],
    );
    let loss = Composite::CrossEntropy {
        ignore_index: 0,
        label_smoothing: 0.0,
        weighted: false,
    };
    check(&loss, &[f(&[0, 3]), meta(I64, &[0])], &[], &[]);
}
