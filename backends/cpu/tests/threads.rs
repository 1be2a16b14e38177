//! Results are equal bit for bit whatever the number of threads: the test runs itself as a child per number.

mod common;

use common::*;
use drivetrain_core::random::Generator;
use drivetrain_core::threads::NUM_THREADS_VARIABLE;
use drivetrain_core::{
    ArgReduceOp, BinaryOp, Composite, ConvolutionSpec, CumulativeOp, DType, DimSet, NormSpec, Op,
    Primitive, RandomKind, ReduceOp, ScatterMode, UnaryOp,
};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

const CHILD: &str = "DRIVETRAIN_TEST_DIGEST";

#[test]
fn results_do_not_depend_on_threads() {
    if std::env::var_os(CHILD).is_some() {
        println!("digest={}", digest());
        return;
    }
    let run = |threads: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "results_do_not_depend_on_threads", "--nocapture"])
            .env(NUM_THREADS_VARIABLE, threads)
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let digest = text
            .split("digest=")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next());
        digest
            .unwrap_or_else(|| panic!("no digest in {text}"))
            .to_string()
    };
    let digests = ["1", "2", "3", "8"].map(run);
    assert!(digests.iter().all(|d| *d == digests[0]), "{digests:?}");
}

/// A number made of the bytes of many large results.
fn digest() -> u64 {
    let mut generator = Generator::new(1, 0);
    let mut hasher = DefaultHasher::new();
    let mut keep = |held: Held| {
        held.values()
            .iter()
            .for_each(|v| v.as_f64().to_bits().hash(&mut hasher))
    };
    for dtype in [DType::F32, DType::BF16, DType::I32] {
        for (dims, lie) in [
            ([150usize, 700], Lie::Contiguous),
            ([700, 150], Lie::Transposed),
        ] {
            let x = scattered(&mut generator, dtype, &dims, lie, &mut moderate(dtype));
            let y = scattered(
                &mut generator,
                dtype,
                &dims,
                Lie::Mixed,
                &mut moderate(dtype),
            );
            let (a, b) = ([&x], [&x, &y]);
            if dtype.is_float() {
                keep(one(Primitive::Unary(UnaryOp::Exp), &a, dtype, &dims));
            }
            keep(one(Primitive::Copy, &a, dtype, &dims));
            keep(one(Primitive::Binary(BinaryOp::Add), &b, dtype, &dims));
            for set in [&[0usize][..], &[1], &[0, 1]] {
                let set = DimSet::of(set);
                let kept = [0, 1].map(|d| if set.contains(d) { 1 } else { dims[d] });
                let accumulate = dtype.accumulator();
                let op = Primitive::Reduce {
                    op: ReduceOp::Sum,
                    dims: set,
                    accumulate,
                };
                let result = if dtype.is_float() { dtype } else { DType::I64 };
                keep(one(op, &a, result, &kept));
            }
            for dim in 0..2u8 {
                let mut kept = dims;
                kept[dim as usize] = 1;
                let op = Primitive::ArgReduce {
                    op: ArgReduceOp::Max,
                    dim,
                };
                keep(one(op, &a, DType::I64, &kept));
                let result = if dtype.is_float() { dtype } else { DType::I64 };
                keep(one(
                    Primitive::Cumulative {
                        op: CumulativeOp::Sum,
                        dim,
                    },
                    &a,
                    result,
                    &dims,
                ));
                let op = Primitive::Sort {
                    dim,
                    descending: false,
                };
                run(op, &a, &[(dtype, &dims), (DType::I64, &dims)])
                    .unwrap()
                    .into_iter()
                    .for_each(&mut keep);
                let mut draw = |g: &mut Generator| (g.below(150) as i64).into();
                let index = scattered(
                    &mut generator,
                    DType::I64,
                    &dims,
                    Lie::Contiguous,
                    &mut draw,
                );
                keep(one(Primitive::Gather { dim }, &[&x, &index], dtype, &dims));
                let target = hold(dtype, &dims, &vec![0i64.into(); dims[0] * dims[1]]);
                let op = Primitive::Scatter {
                    dim,
                    mode: ScatterMode::Add,
                };
                run_in_place(op, &[&index, &y], &[&target], &[]).unwrap();
                keep(target);
            }
            let transposed = Held {
                operand: y.buffer.operand(dtype, y.operand.layout.permute(&[1, 0])),
                buffer: y.buffer,
            };
            let op = Op::from(Primitive::Matmul {
                accumulate: dtype.accumulator(),
            });
            keep(one(op, &[&x, &transposed], dtype, &[dims[0], dims[0]]));
        }
    }
    let state = hold_i64(&[3], &[1, 2, 3]);
    let op = Primitive::Random {
        kind: RandomKind::Normal,
    };
    keep(one(op, &[&state], DType::F32, &[200_001]));
    for dtype in [DType::F32, DType::BF16] {
        layers(&mut generator, dtype, &mut keep);
    }
    hasher.finish()
}

/// Products, convolutions, normalisations and sums over rows that several pieces of work share.
fn layers(generator: &mut Generator, dtype: DType, keep: &mut dyn FnMut(Held)) {
    let mut draw = |dims: &[usize]| {
        scattered(
            generator,
            dtype,
            dims,
            Lie::Contiguous,
            &mut moderate(dtype),
        )
    };
    let accumulate = dtype.accumulator();
    for m in [1, 2, 300] {
        let (x, weight) = (draw(&[m, 700]), draw(&[650, 700]));
        keep(one(Composite::Linear, &[&x, &weight], dtype, &[m, 650]));
        let (a, b) = (draw(&[m, 600]), draw(&[600, 700]));
        keep(one(
            Primitive::Matmul { accumulate },
            &[&a, &b],
            dtype,
            &[m, 700],
        ));
    }
    let same = ConvolutionSpec {
        spatial: 2,
        stride: [1; 3],
        padding: [1, 1, 0],
        dilation: [1; 3],
        groups: 1,
        sizes: [1; 3],
    };
    let (image, kernel) = ([20, 40, 20, 20], [24, 40, 3, 3]);
    let (x, weight, dy) = (draw(&image), draw(&kernel), draw(&[20, 24, 20, 20]));
    keep(one(
        Composite::Convolution(same),
        &[&x, &weight],
        dtype,
        dy.dims(),
    ));
    let sized = ConvolutionSpec {
        sizes: [20, 20, 1],
        ..same
    };
    keep(one(
        Composite::ConvolutionInputGrad(sized),
        &[&dy, &weight],
        dtype,
        &image,
    ));
    let sized = ConvolutionSpec {
        sizes: [3, 3, 1],
        ..same
    };
    keep(one(
        Composite::ConvolutionWeightGrad(sized),
        &[&dy, &x],
        dtype,
        &kernel,
    ));
    let (eps, affine) = (1e-5, true);
    let (weight, bias) = (draw(&[40]), draw(&[40]));
    let wanted = [
        (dtype, &image[..]),
        (accumulate, &[40]),
        (accumulate, &[40]),
    ];
    let op = Composite::BatchNorm { eps, affine };
    let out = run(op, &[&x, &weight, &bias], &wanted).unwrap();
    let wanted = [(dtype, &image[..]), (dtype, &[40]), (dtype, &[40])];
    let op = Composite::BatchNormGrad { eps, affine };
    let gradients = run(op, &[&out[0], &x, &out[1], &out[2], &weight], &wanted).unwrap();
    out.into_iter().chain(gradients).for_each(&mut *keep);
    let spec = NormSpec {
        dims: 1,
        eps,
        affine,
    };
    let (x, weight, bias) = (draw(&[3000, 60]), draw(&[60]), draw(&[60]));
    let rows = (accumulate, &[3000, 1][..]);
    let out = run(
        Composite::LayerNorm(spec),
        &[&x, &weight, &bias],
        &[(dtype, &[3000, 60]), rows, rows],
    );
    let out = out.unwrap();
    let gradients = run(
        Composite::LayerNormGrad(spec),
        &[&out[0], &x, &out[1], &out[2], &weight],
        &[(dtype, &[3000, 60]), (dtype, &[60]), (dtype, &[60])],
    );
    out.into_iter()
        .chain(gradients.unwrap())
        .for_each(&mut *keep);
    let indices: Vec<i64> = (0..3000).map(|i| i * 7919 % 50).collect();
    let op = Composite::IndexSelectGrad { dim: 0, size: 50 };
    keep(one(
        op,
        &[&x, &hold_i64(&[3000], &indices)],
        dtype,
        &[50, 60],
    ));
}
