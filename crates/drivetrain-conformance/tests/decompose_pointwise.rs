//! Decompositions of activations, softmax, norms, cross entropy and optimizer steps against plain formulas,
//! and their gradients against differences.

mod common;

use common::{cast, check_gradients, close, f64s, i64s, random, run};
use drivetrain_conformance::reference::{self, HostValue, erf};
use drivetrain_core::random::Generator;
use drivetrain_core::{ActivationKind, Composite, DType, NormSpec};

/// Every activation with parameters and its formula.
type Formula = Box<dyn Fn(f64) -> f64>;

fn formulas() -> Vec<(ActivationKind, [f64; 2], Formula)> {
    use ActivationKind::*;
    let softplus = |x: f64| (1.0 + x.exp()).ln();
    let elu = |x: f64, a: f64| if x > 0.0 { x } else { a * (x.exp() - 1.0) };
    let tanh_gelu = |x: f64| {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        0.5 * x * (1.0 + inner.tanh())
    };
    vec![
        (
            Gelu,
            [0.0; 2],
            Box::new(|x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt()))),
        ),
        (GeluTanh, [0.0; 2], Box::new(tanh_gelu)),
        (Silu, [0.0; 2], Box::new(|x| x / (1.0 + (-x).exp()))),
        (Mish, [0.0; 2], Box::new(move |x| x * softplus(x).tanh())),
        (
            Softplus,
            [2.0, 3.0],
            Box::new(move |x| {
                if 2.0 * x > 3.0 {
                    x
                } else {
                    softplus(2.0 * x) / 2.0
                }
            }),
        ),
        (Softsign, [0.0; 2], Box::new(|x| x / (1.0 + x.abs()))),
        (Elu, [0.7, 0.0], Box::new(move |x| elu(x, 0.7))),
        (
            LeakyRelu,
            [0.1, 0.0],
            Box::new(|x| if x > 0.0 { x } else { 0.1 * x }),
        ),
        (Relu6, [0.0; 2], Box::new(|x| x.clamp(0.0, 6.0))),
        (
            HardSigmoid,
            [0.0; 2],
            Box::new(|x| (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        ),
        (
            HardSwish,
            [0.0; 2],
            Box::new(|x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        ),
        (LogSigmoid, [0.0; 2], Box::new(move |x| -softplus(-x))),
        (HardTanh, [-0.5, 1.5], Box::new(|x| x.clamp(-0.5, 1.5))),
        (Selu, [1.67, 1.05], Box::new(move |x| 1.05 * elu(x, 1.67))),
        (
            Celu,
            [0.6, 0.0],
            Box::new(|x| x.max(0.0) + (0.6 * ((x / 0.6).exp() - 1.0)).min(0.0)),
        ),
    ]
}

#[test]
fn activations_follow_their_formulas() {
    let values: Vec<f64> = (-40..=40).map(|i| f64::from(i) * 0.2 + 0.03).collect();
    let all = formulas();
    assert_eq!(all.len(), ActivationKind::ALL.len());
    for (kind, [alpha, beta], formula) in all {
        let x = f64s(&[values.len()], &values);
        let want: Vec<f64> = values.iter().map(|&x| formula(x)).collect();
        let op = Composite::Activation { kind, alpha, beta };
        close(
            &run(op.clone(), std::slice::from_ref(&x))[0].values(),
            &want,
            1e-13,
        );
        let grad = Composite::ActivationGrad { kind, alpha, beta };
        check_gradients(&op, std::slice::from_ref(&x), |dy, _| {
            vec![run(grad.clone(), &[dy.clone(), x.clone()]).pop()]
        });
        // Halves are rounded once, at the end.
        let half = cast(&x, DType::F16);
        let wide = run(op.clone(), &[cast(&half, DType::F32)]);
        assert_eq!(
            run(op, &[half])[0].bytes(),
            cast(&wide[0], DType::F16).bytes(),
            "{kind:?}"
        );
    }
}

fn slope(kind: ActivationKind, parameters: [f64; 2], x: &[f64]) -> Vec<f64> {
    let [alpha, beta] = parameters;
    let grad = Composite::ActivationGrad { kind, alpha, beta };
    let dy = f64s(&[x.len()], &vec![1.0; x.len()]);
    run(grad, &[dy, f64s(&[x.len()], x)])[0].values()
}

#[test]
fn activation_gradients_at_bounds_and_far_out() {
    use ActivationKind::*;
    close(
        &slope(Relu6, [0.0; 2], &[0.0, 6.0, 3.0]),
        &[0.0, 0.0, 1.0],
        0.0,
    );
    close(
        &slope(HardTanh, [-1.0, 1.0], &[-1.0, 1.0, 0.5, f64::NAN]),
        &[0.0, 0.0, 1.0, 1.0],
        0.0,
    );
    close(
        &slope(HardSigmoid, [0.0; 2], &[-3.0, 3.0, 0.0]),
        &[0.0, 0.0, f64::from(1f32 / 6.0)],
        1e-16,
    );
    close(
        &slope(Silu, [0.0; 2], &[-2.0, 0.0, 3.0]),
        &[-0.0907842, 0.5, 1.0881041],
        1e-7,
    );
    close(
        &slope(Elu, [0.5, 0.0], &[0.0, 800.0, -800.0]),
        &[0.5, 1.0, 0.0],
        0.0,
    );
    close(
        &slope(Softplus, [1.0, 20.0], &[1000.0, -1000.0]),
        &[1.0, 0.0],
        0.0,
    );
    for kind in [Gelu, GeluTanh, Silu, Mish, Softsign, LogSigmoid] {
        let far = slope(kind, [0.0; 2], &[-1e4, 1e4]);
        assert!(far.iter().all(|v| v.is_finite()), "{kind:?} {far:?}");
    }
}

#[test]
fn softmax_keeps_digits_of_large_logits() {
    let log = Composite::Softmax { dim: 1, log: true };
    let x = HostValue::new(
        DType::F32,
        &[2, 3],
        &[-1e7, -1e7 + 1.0, -1e7 + 2.0, 0.0, 1000.0, -1000.0],
    )
    .unwrap();
    let want = [-2.4076059, -1.4076059, -0.4076059, -1000.0, 0.0, -2000.0];
    close(&run(log.clone(), &[x])[0].values(), &want, 1e-6);
    let infinite = f64s(&[1, 2], &[f64::NEG_INFINITY; 2]);
    assert!(run(log, &[infinite])[0].values().iter().all(|v| v.is_nan()));
    for (dim, log) in [(0, false), (1, true), (2, false)] {
        let x = random(&mut Generator::new(4, 0), &[2, 3, 2]);
        let grad = Composite::SoftmaxGrad { dim, log };
        check_gradients(&Composite::Softmax { dim, log }, &[x], |dy, y| {
            vec![run(grad.clone(), &[dy.clone(), y[0].clone()]).pop()]
        });
    }
    let empty = run(
        Composite::Softmax { dim: 1, log: false },
        &[f64s(&[2, 0], &[])],
    );
    assert!(empty[0].values().is_empty());
}

#[test]
fn norms_and_their_gradients() {
    let mut generator = Generator::new(5, 0);
    let spec = NormSpec {
        dims: 2,
        eps: 1e-3,
        affine: true,
    };
    let x = random(&mut generator, &[3, 2, 4]);
    let (w, b) = (
        random(&mut generator, &[2, 4]),
        random(&mut generator, &[2, 4]),
    );
    check_gradients(
        &Composite::LayerNorm(spec),
        &[x.clone(), w.clone(), b],
        |dy, y| {
            let inputs = [dy.clone(), x.clone(), y[1].clone(), y[2].clone(), w.clone()];
            run(Composite::LayerNormGrad(spec), &inputs)
                .into_iter()
                .map(Some)
                .collect()
        },
    );
    check_gradients(
        &Composite::RmsNorm(spec),
        &[x.clone(), w.clone()],
        |dy, y| {
            let inputs = [dy.clone(), x.clone(), y[1].clone(), w.clone()];
            run(Composite::RmsNormGrad(spec), &inputs)
                .into_iter()
                .map(Some)
                .collect()
        },
    );
    let (w, b) = (random(&mut generator, &[2]), random(&mut generator, &[2]));
    let norm = Composite::BatchNorm {
        eps: 1e-3,
        affine: true,
    };
    let grad = Composite::BatchNormGrad {
        eps: 1e-3,
        affine: true,
    };
    check_gradients(&norm, &[x.clone(), w.clone(), b], |dy, y| {
        let inputs = [dy.clone(), x.clone(), y[1].clone(), y[2].clone(), w.clone()];
        run(grad.clone(), &inputs).into_iter().map(Some).collect()
    });
    // The whole of x normalised: nothing is summed for the weight.
    let whole = NormSpec { dims: 1, ..spec };
    let (x, w) = (random(&mut generator, &[5]), random(&mut generator, &[5]));
    check_gradients(
        &Composite::LayerNorm(whole),
        &[x.clone(), w.clone(), w.clone()],
        |dy, y| {
            let inputs = [dy.clone(), x.clone(), y[1].clone(), y[2].clone(), w.clone()];
            run(Composite::LayerNormGrad(whole), &inputs)
                .into_iter()
                .map(Some)
                .collect()
        },
    );
}

#[test]
fn norms_have_the_right_values() {
    let plain = NormSpec {
        dims: 1,
        eps: 1e-5,
        affine: false,
    };
    for (value, bound) in [(1234.0, 0.0), (0.1, 1e-2)] {
        let x = HostValue::new(DType::F32, &[1, 256], &[value; 256]).unwrap();
        let y = run(Composite::LayerNorm(plain), &[x]);
        assert!(y[0].values().iter().all(|v| v.abs() <= bound), "{value}");
    }
    let x = f64s(&[1, 2], &[1.0, 3.0]);
    let y = run(Composite::LayerNorm(plain), std::slice::from_ref(&x));
    close(&y[1].values(), &[2.0], 1e-15);
    close(
        &y[0].values(),
        &[-1.0 / 1.00001f64.sqrt(), 1.0 / 1.00001f64.sqrt()],
        1e-15,
    );
    let y = run(Composite::RmsNorm(plain), &[x]);
    let root = (5.0 + 1e-5f64).sqrt();
    close(&y[0].values(), &[1.0 / root, 3.0 / root], 1e-15);
    let norm = Composite::BatchNorm {
        eps: 0.0,
        affine: false,
    };
    let y = run(norm, &[f64s(&[2, 2], &[1.0, 5.0, 3.0, 9.0])]);
    close(&y[0].values(), &[-1.0, -1.0, 1.0, 1.0], 1e-15);
    close(&y[1].values(), &[2.0, 7.0], 1e-15);
    close(&y[2].values(), &[1.0, 4.0], 1e-15);
}

/// The loss of each sample and the sample's weight, by PyTorch's definition.
fn cross_entropy(
    x: &[f64],
    classes: usize,
    target: &[i64],
    weight: &[f64],
    ignore: i64,
    smoothing: f64,
) -> [Vec<f64>; 2] {
    let mut result = [Vec::new(), Vec::new()];
    for (row, &t) in x.chunks(classes).zip(target) {
        let total = row.iter().map(|v| v.exp()).sum::<f64>().ln();
        if t == ignore {
            result[0].push(0.0);
            result[1].push(0.0);
            continue;
        }
        let own = (row[t as usize] - total) * weight[t as usize];
        let all: f64 = row.iter().zip(weight).map(|(v, w)| (v - total) * w).sum();
        result[0].push(-(1.0 - smoothing) * own - smoothing / classes as f64 * all);
        result[1].push(weight[t as usize]);
    }
    result
}

#[test]
fn cross_entropy_with_weights_smoothing_and_ignored_targets() {
    let x = random(&mut Generator::new(6, 0), &[4, 3]);
    let weight = [0.5, 2.0, 1.25];
    for (ignore_index, label_smoothing, weighted) in [
        (-100, 0.0, false),
        (255, 0.2, true),
        (1, 0.1, false),
        (-100, 0.0, true),
    ] {
        let target = [0, ignore_index, 2, 1];
        let op = Composite::CrossEntropy {
            ignore_index,
            label_smoothing,
            weighted,
        };
        let grad = Composite::CrossEntropyGrad {
            ignore_index,
            label_smoothing,
            weighted,
        };
        let mut inputs = vec![x.clone(), i64s(&[4], &target)];
        let ones = [1.0; 3];
        if weighted {
            inputs.push(f64s(&[3], &weight));
        }
        let y = run(op.clone(), &inputs);
        let weight = if weighted { &weight } else { &ones };
        let want = cross_entropy(
            &x.values(),
            3,
            &target,
            weight,
            ignore_index,
            label_smoothing,
        );
        close(&y[0].values(), &want[0], 1e-14);
        close(&y[2].values(), &want[1], 0.0);
        check_gradients(&op, &inputs, |dy, y| {
            let mut given = vec![dy.clone(), x.clone(), y[1].clone(), inputs[1].clone()];
            given.extend(inputs.get(2).cloned());
            vec![run(grad.clone(), &given).pop()]
        });
    }
}

#[test]
fn cross_entropy_of_images_and_of_bad_targets() {
    let op = Composite::CrossEntropy {
        ignore_index: -100,
        label_smoothing: 0.0,
        weighted: false,
    };
    let x = random(&mut Generator::new(8, 0), &[2, 3, 2]);
    let target = i64s(&[2, 2], &[0, 2, -100, 1]);
    let y = run(op.clone(), &[x.clone(), target]);
    let values = x.values();
    let rows: Vec<f64> = (0..4)
        .flat_map(|i| [0, 1, 2].map(|c| values[i / 2 * 6 + c * 2 + i % 2]))
        .collect();
    let want = cross_entropy(&rows, 3, &[0, 2, -100, 1], &[1.0; 3], -100, 0.0);
    close(&y[0].values(), &want[0], 1e-14);
    let bad = [x, i64s(&[2, 2], &[0, 3, 0, 0])];
    let error = reference::run(&reference::device(), &op.into(), &bad, &[]).unwrap_err();
    assert!(
        error.to_string().contains("index 3 out of range"),
        "{error}"
    );
}

/// Runs an op that updates in place; hyper and state in F64.
fn step(op: &Composite, gradient: &[f64], hyper: &[f64], state: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let value = |v: &[f64]| f64s(&[v.len()], v);
    let state: Vec<HostValue> = state.iter().map(|v| value(v)).collect();
    let inputs = [value(gradient), value(hyper)];
    let outputs =
        reference::run(&reference::device(), &op.clone().into(), &inputs, &state).unwrap();
    outputs.iter().map(HostValue::values).collect()
}

#[test]
fn sgd_follows_pytorch() {
    let sgd = |momentum, dampening, nesterov, maximize| Composite::SgdStep {
        momentum,
        dampening,
        weight_decay: 0.1,
        nesterov,
        maximize,
    };
    let plain = step(
        &sgd(0.0, 0.0, false, true),
        &[1.0],
        &[0.5, 1.0],
        &[vec![2.0]],
    );
    close(&plain[0], &[2.0 - 0.5 * (-1.0 + 0.2)], 1e-15);
    // The first buffer is the gradient, whatever it held; later ones are damped.
    let op = sgd(0.9, 0.5, false, false);
    let first = step(&op, &[1.0], &[0.5, 1.0], &[vec![2.0], vec![f64::NAN]]);
    close(&first[1], &[1.2], 1e-15);
    close(&first[0], &[2.0 - 0.6], 1e-15);
    let second = step(&op, &[1.0], &[0.5, 0.0], &first);
    let g = 1.0 + 0.1 * 1.4;
    close(&second[1], &[0.9 * 1.2 + 0.5 * g], 1e-15);
    let nesterov = step(
        &sgd(0.9, 0.0, true, false),
        &[1.0],
        &[0.5, 0.0],
        &[vec![2.0], vec![3.0]],
    );
    let buffer = 0.9 * 3.0 + 1.2;
    close(&nesterov[0], &[2.0 - 0.5 * (1.2 + 0.9 * buffer)], 1e-15);
}

#[test]
fn adam_follows_pytorch() {
    for (decoupled, amsgrad) in [(false, false), (true, true)] {
        let op = Composite::AdamStep {
            beta1: 0.9,
            beta2: 0.99,
            eps: 1e-6,
            weight_decay: 0.1,
            decoupled,
            amsgrad,
            maximize: false,
        };
        let mut state = vec![vec![2.0, -1.0]; 1];
        state.extend(vec![vec![0.0; 2]; 2 + usize::from(amsgrad)]);
        let mut want = [[2.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]];
        for t in 1..=3 {
            let gradient = [0.5 / f64::from(t), -3.0];
            let (c1, c2) = (1.0 - 0.9f64.powi(t), (1.0 - 0.99f64.powi(t)).sqrt());
            state = step(&op, &gradient, &[0.1, c1, c2], &state);
            for (values, mut g) in want.iter_mut().zip(gradient) {
                let [p, m, v, top] = values;
                if decoupled {
                    *p *= 1.0 - 0.1 * 0.1;
                } else {
                    g += 0.1 * *p;
                }
                *m = 0.9 * *m + 0.1 * g;
                *v = 0.99 * *v + 0.01 * g * g;
                *top = top.max(*v);
                let scale = if amsgrad { *top } else { *v };
                *p -= 0.1 / c1 * *m / (scale.sqrt() / c2 + 1e-6);
            }
        }
        for (i, values) in state.iter().enumerate() {
            close(values, &[want[0][i], want[1][i]], 1e-13);
        }
    }
}
