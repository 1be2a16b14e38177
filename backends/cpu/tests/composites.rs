//! Native kernels of composites agree with core's decompositions, on random shapes, layouts and dtypes.

mod common;
mod decomposed;

use common::*;
use decomposed::*;
use drivetrain_core::random::Generator;
use drivetrain_core::{
    ActivationKind, BinaryOp, CompareOp, Composite, DType, MAX_DIMS, NormSpec, PadSpec, Scalar,
};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

fn normal(generator: &mut Generator, dtype: DType, dims: &[usize], lie: Lie) -> Held {
    scattered(generator, dtype, dims, lie, &mut |g: &mut Generator| {
        Scalar::F64(g.normal())
    })
}

fn indices_below(generator: &mut Generator, n: usize, size: usize) -> Held {
    let values: Vec<i64> = (0..n)
        .map(|_| generator.below(size as u64) as i64)
        .collect();
    hold_i64(&[n], &values)
}

#[test]
fn scalars() {
    let mut g = Generator::new(1, 0);
    for dtype in DType::ALL.into_iter().filter(|&d| d != DType::Bool) {
        for (i, &op) in BinaryOp::ALL.iter().enumerate() {
            let float_only = matches!(op, BinaryOp::Div | BinaryOp::Atan2);
            let logical = op.name().starts_with("logical");
            if logical || (float_only && !dtype.is_float()) {
                continue;
            }
            let scalar = match i % 2 {
                0 => Scalar::I64(2),
                _ => Scalar::F64(3.25),
            };
            for reversed in [false, true] {
                let x = scattered(&mut g, dtype, &[3, 50], Lie::Mixed, &mut moderate(dtype));
                let op = Composite::BinaryScalar {
                    op,
                    scalar,
                    reversed,
                };
                agree(op, &[&x]);
            }
        }
    }
    for dtype in DType::ALL {
        for &op in CompareOp::ALL {
            let x = scattered(&mut g, dtype, &[5, 40], Lie::Mixed, &mut special(dtype));
            let scalar = Scalar::F64(1.0);
            agree(Composite::CompareScalar { op, scalar }, &[&x]);
        }
    }
}

#[test]
fn activations() {
    let mut g = Generator::new(2, 0);
    for dtype in FLOATS {
        for &kind in ActivationKind::ALL {
            let (alpha, beta) = match kind {
                ActivationKind::Softplus => (1.5, 4.0),
                ActivationKind::HardTanh => (-0.75, 1.25),
                ActivationKind::Selu => (1.673_263_2, 1.050_701),
                _ => (0.7, 0.0),
            };
            let draw = &mut |g: &mut Generator| match g.below(20) {
                0 => Scalar::F64([0.0, -3.0, 3.0, 6.0, f64::NAN][g.below(5) as usize]),
                _ => Scalar::F64(3.0 * g.normal()),
            };
            let x = scattered(&mut g, dtype, &[7, 200], Lie::Mixed, draw);
            let dy = normal(&mut g, dtype, &[7, 200], Lie::Mixed);
            agree(Composite::Activation { kind, alpha, beta }, &[&x]);
            agree(Composite::ActivationGrad { kind, alpha, beta }, &[&dy, &x]);
        }
    }
}

#[test]
fn softmaxes() {
    let mut g = Generator::new(3, 0);
    for dtype in FLOATS {
        for dims in [
            &[5][..],
            &[1, 1],
            &[4, 33],
            &[3, 70, 5],
            &[2, 3, 130],
            &[130, 2, 1],
        ] {
            for dim in 0..dims.len() as u8 {
                for log in [false, true] {
                    let x = normal(&mut g, dtype, dims, Lie::Mixed);
                    let dy = normal(&mut g, dtype, dims, Lie::Mixed);
                    let y = agree(Composite::Softmax { dim, log }, &[&x]).remove(0);
                    agree(Composite::SoftmaxGrad { dim, log }, &[&dy, &y]);
                }
            }
        }
    }
}

/// B045: large logits keep their differences. B046: masked rows.
#[test]
fn b045_b046_softmax_of_large_and_infinite_numbers() {
    let infinity = f32::NEG_INFINITY;
    let soft = |x: &[f32], log: bool| {
        let x = hold_f32(&[1, x.len()], x);
        let op = Composite::Softmax { dim: 1, log };
        agree(op, &[&x]).remove(0).floats()
    };
    let close = |got: Vec<f64>, expected: [f64; 3]| {
        got.iter()
            .zip(expected)
            .for_each(|(g, e)| assert!((g - e).abs() < 1e-6, "{got:?}"));
    };
    close(
        soft(&[-1e7, -1e7 + 1.0, -1e7 + 2.0], true),
        [-2.4076059, -1.4076059, -0.4076059],
    );
    close(soft(&[0.0, 1000.0, -1000.0], true), [-1000.0, 0.0, -2000.0]);
    close(soft(&[0.0, infinity, infinity], false), [1.0, 0.0, 0.0]);
    close(
        soft(&[0.5, infinity, 1.5], false),
        [0.2689414, 0.0, 0.7310586],
    );
    assert!(
        soft(&[infinity, infinity], false)
            .iter()
            .all(|v| v.is_nan())
    );
}

#[test]
fn norms() {
    let mut g = Generator::new(4, 0);
    for dtype in FLOATS {
        for (dims, tail) in [
            (&[1][..], 1),
            (&[5, 7], 1),
            (&[3, 4, 50], 2),
            (&[40, 33], 1),
            (&[2, 3, 130], 3),
            (&[700, 40], 1),
        ] {
            for affine in [false, true] {
                let spec = NormSpec {
                    dims: tail,
                    eps: 1e-5,
                    affine,
                };
                let x = normal(&mut g, dtype, dims, Lie::Mixed);
                let dy = normal(&mut g, dtype, dims, Lie::Mixed);
                let inner = &dims[dims.len() - tail as usize..];
                let weight = normal(&mut g, dtype, inner, Lie::Mixed);
                let bias = normal(&mut g, dtype, inner, Lie::Contiguous);
                let parameters = [&weight, &bias];
                let taken = |n: usize| if affine { &parameters[..n] } else { &[] };
                let y = agree(Composite::LayerNorm(spec), &[&[&x][..], taken(2)].concat());
                let inputs = [&[&dy, &x, &y[1], &y[2]][..], taken(1)].concat();
                agree(Composite::LayerNormGrad(spec), &inputs);
                let y = agree(Composite::RmsNorm(spec), &[&[&x][..], taken(1)].concat());
                let inputs = [&[&dy, &x, &y[1]][..], taken(1)].concat();
                agree(Composite::RmsNormGrad(spec), &inputs);
            }
        }
        for dims in [
            &[6, 3][..],
            &[1, 2, 40],
            &[9, 70],
            &[3, 5, 2, 3],
            &[2, 3, 6, 7],
            &[300, 300],
        ] {
            for affine in [false, true] {
                let eps = 1e-5;
                let x = normal(&mut g, dtype, dims, Lie::Mixed);
                let dy = normal(&mut g, dtype, dims, Lie::Mixed);
                let weight = normal(&mut g, dtype, &[dims[1]], Lie::Mixed);
                let bias = normal(&mut g, dtype, &[dims[1]], Lie::Contiguous);
                let parameters = [&weight, &bias];
                let taken = |n: usize| if affine { &parameters[..n] } else { &[] };
                let op = Composite::BatchNorm { eps, affine };
                let y = agree(op, &[&[&x][..], taken(2)].concat());
                let inputs = [&[&dy, &x, &y[1], &y[2]][..], taken(1)].concat();
                agree(Composite::BatchNormGrad { eps, affine }, &inputs);
            }
        }
    }
}

/// B050: the variance of a constant row is not negative.
#[test]
fn b050_norms_of_constant_rows() {
    for (value, bound) in [(1234.0f32, 0.0), (0.1, 1e-2)] {
        let x = hold_f32(&[1, 256], &[value; 256]);
        let spec = NormSpec {
            dims: 1,
            eps: 1e-5,
            affine: false,
        };
        let y = agree(Composite::LayerNorm(spec), &[&x]).remove(0);
        assert!(
            y.floats().iter().all(|v| v.abs() <= bound),
            "{:?}",
            y.floats()
        );
        let x = hold_f32(&[256, 1], &[value; 256]);
        let y = agree(
            Composite::BatchNorm {
                eps: 1e-5,
                affine: false,
            },
            &[&x],
        )
        .remove(0);
        assert!(
            y.floats().iter().all(|v| v.abs() <= bound),
            "{:?}",
            y.floats()
        );
    }
}

#[test]
fn cross_entropies() {
    let mut g = Generator::new(5, 0);
    for dtype in FLOATS {
        for dims in [&[1, 1][..], &[7, 5], &[3, 4, 6], &[2, 10, 3, 2], &[40, 130]] {
            for (smoothing, weighted) in [(0.0, false), (0.1, false), (0.0, true), (0.2, true)] {
                let classes = dims[1];
                let samples = [&dims[..1], &dims[2..]].concat();
                let logits = normal(&mut g, dtype, dims, Lie::Mixed);
                let dloss = normal(&mut g, dtype, &samples, Lie::Mixed);
                let draw = &mut |g: &mut Generator| match g.below(5) {
                    0 => Scalar::I64(-100),
                    _ => Scalar::I64(g.below(classes as u64) as i64),
                };
                let target = scattered(&mut g, DType::I64, &samples, Lie::Mixed, draw);
                let draw = &mut |g: &mut Generator| Scalar::F64(g.uniform());
                let weight = scattered(&mut g, dtype, &[classes], Lie::Mixed, draw);
                let tail: &[&Held] = if weighted { &[&weight] } else { &[] };
                let op = Composite::CrossEntropy {
                    ignore_index: -100,
                    label_smoothing: smoothing,
                    weighted,
                };
                let y = agree(op, &[&[&logits, &target][..], tail].concat());
                let op = Composite::CrossEntropyGrad {
                    ignore_index: -100,
                    label_smoothing: smoothing,
                    weighted,
                };
                agree(op, &[&[&dloss, &logits, &y[1], &target][..], tail].concat());
            }
        }
    }
}

/// B054: ignored targets give no loss and no gradient, whatever their value.
#[test]
fn b054_ignored_targets() {
    for ignored in [-100, 255] {
        let logits = hold_f32(&[3, 2], &[1.0, 2.0, 0.0, 5.0, 3.0, 1.0]);
        let target = hold_i64(&[3], &[1, ignored, 0]);
        let op = Composite::CrossEntropy {
            ignore_index: ignored,
            label_smoothing: 0.0,
            weighted: false,
        };
        let out = agree(op, &[&logits, &target]);
        let close = |got: Vec<f64>, expected: &[f64]| {
            let near = got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-6);
            assert!(near, "{got:?}");
        };
        close(out[0].floats(), &[0.3132617, 0.0, 0.1269280]);
        close(out[2].floats(), &[1.0, 0.0, 1.0]);
        let dloss = hold_f32(&[3], &[0.5; 3]);
        let op = Composite::CrossEntropyGrad {
            ignore_index: ignored,
            label_smoothing: 0.0,
            weighted: false,
        };
        let dx = agree(op, &[&dloss, &logits, &out[1], &target]).remove(0);
        let expected = [0.1344707, -0.1344707, 0.0, 0.0, -0.0596015, 0.0596015];
        close(dx.floats(), &expected);
    }
}

/// B055: a class out of range is an error that says which, where and how many there are.
#[test]
fn b055_class_out_of_range() {
    let logits = hold_f32(&[2, 3], &[0.0; 6]);
    for (targets, value, place) in [([0, 3], "3", "[1]"), ([-1, 0], "-1", "[0]")] {
        let target = hold_i64(&[2], &targets);
        let op = Composite::CrossEntropy {
            ignore_index: -100,
            label_smoothing: 0.0,
            weighted: false,
        };
        let samples = (DType::F32, &[2][..]);
        let error = run(op, &[&logits, &target], &[samples; 3]).err().unwrap();
        assert_eq!(error.kind(), drivetrain_core::ErrorKind::Value);
        for part in [
            &format!("target {value} at {place}")[..],
            "3 classes",
            "cpu",
        ] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

#[test]
fn linears() {
    let mut g = Generator::new(6, 0);
    for dtype in FLOATS {
        for (dims, out) in [
            (&[1][..], 1),
            (&[7], 5),
            (&[1, 300], 70),
            (&[33, 20], 1),
            (&[3, 5, 40], 17),
            (&[300, 129], 140),
        ] {
            for lie in Lie::ALL {
                let features = dims[dims.len() - 1];
                let x = normal(&mut g, dtype, dims, lie);
                let weight = normal(&mut g, dtype, &[out, features], lie);
                let bias = normal(&mut g, dtype, &[out], Lie::Mixed);
                agree(Composite::Linear, &[&x, &weight]);
                agree(Composite::Linear, &[&x, &weight, &bias]);
            }
        }
    }
}

#[test]
fn indexing() {
    let mut g = Generator::new(7, 0);
    for dtype in DType::ALL {
        for (dims, dim, n) in [
            (&[9][..], 0, 20),
            (&[5, 7], 0, 3),
            (&[4, 3, 6], 1, 8),
            (&[2, 50], 1, 300),
        ] {
            let x = scattered(&mut g, dtype, dims, Lie::Mixed, &mut moderate(dtype));
            let index = indices_below(&mut g, n, dims[dim]);
            let y = agree(Composite::IndexSelect { dim: dim as u8 }, &[&x, &index]).remove(0);
            if dtype != DType::Bool {
                let (dim, size) = (dim as u8, dims[dim]);
                agree(Composite::IndexSelectGrad { dim, size }, &[&y, &index]);
            }
            let others = [1, 4].map(|size| {
                let mut dims = dims.to_vec();
                dims[dim] = size;
                scattered(&mut g, dtype, &dims, Lie::Mixed, &mut moderate(dtype))
            });
            agree(
                Composite::Concat { dim: dim as u8 },
                &[&x, &others[0], &others[1]],
            );
        }
        let x = scattered(&mut g, dtype, &[3, 4], Lie::Mixed, &mut moderate(dtype));
        let (mut start, mut step) = ([0; MAX_DIMS], [1; MAX_DIMS]);
        (start[0], step[0], start[1], step[1]) = (1, 2, 7, -2);
        let spec = PadSpec {
            shape: shape(&[7, 9]),
            start,
            step,
            value: Scalar::I64(1),
        };
        agree(Composite::Pad(Box::new(spec)), &[&x]);
    }
}

#[test]
fn an_index_out_of_range_is_named() {
    let x = hold_f32(&[3, 2], &[0.0; 6]);
    for value in [3, -1] {
        let index = hold_i64(&[2], &[0, value]);
        let op = Composite::IndexSelect { dim: 0 };
        let error = run(op, &[&x, &index], &[(DType::F32, &[2, 2])])
            .err()
            .unwrap();
        let text = error.to_string();
        assert!(
            text.contains(&format!("index {value} at 1")) && text.contains("size 3"),
            "{text}"
        );
        let dy = hold_f32(&[2, 2], &[0.0; 4]);
        let op = Composite::IndexSelectGrad { dim: 0, size: 3 };
        let error = run(op, &[&dy, &index], &[(DType::F32, &[3, 2])])
            .err()
            .unwrap();
        assert!(
            error.to_string().contains(&format!("index {value}")),
            "{error}"
        );
    }
}

#[test]
fn optimizer_steps() {
    let mut g = Generator::new(8, 0);
    for dtype in FLOATS {
        for options in 0..16u32 {
            let bit = |i: u32| options >> i & 1 == 1;
            let dims = [3, 700];
            let gradient = normal(&mut g, dtype, &dims, Lie::Mixed);
            let state: Vec<Held> = (0..4)
                .map(|_| {
                    let draw = &mut |g: &mut Generator| Scalar::F64(g.uniform());
                    scattered(&mut g, dtype, &dims, Lie::Contiguous, draw)
                })
                .collect();
            let numbers = |values: &[f64]| {
                let values: Vec<Scalar> = values.iter().map(|&v| v.into()).collect();
                hold(dtype.accumulator(), &[values.len()], &values)
            };
            let momentum = if bit(0) { 0.9 } else { 0.0 };
            let sgd = Composite::SgdStep {
                momentum,
                dampening: if bit(1) && !bit(2) { 0.3 } else { 0.0 },
                weight_decay: if bit(3) { 0.01 } else { 0.0 },
                nesterov: bit(2) && bit(0),
                maximize: bit(3),
            };
            for first in [0.0, 1.0] {
                let hyper = numbers(&[0.1, first]);
                let taken: Vec<&Held> = state.iter().take(1 + usize::from(bit(0))).collect();
                agree_in_place(sgd.clone(), &[&gradient, &hyper], &taken);
            }
            let adam = Composite::AdamStep {
                beta1: 0.9,
                beta2: 0.99,
                eps: 1e-6,
                weight_decay: if bit(0) { 0.02 } else { 0.0 },
                decoupled: bit(1),
                amsgrad: bit(2),
                maximize: bit(3),
            };
            let hyper = numbers(&[0.1, 0.19, 0.14]);
            let taken: Vec<&Held> = state.iter().take(3 + usize::from(bit(2))).collect();
            agree_in_place(adam, &[&gradient, &hyper], &taken);
        }
    }
}
