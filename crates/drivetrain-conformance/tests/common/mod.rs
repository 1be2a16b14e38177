//! Values, comparisons and finite differences for tests of decompositions.
#![allow(dead_code, missing_docs)]

use drivetrain_conformance::reference::{self, HostValue};
use drivetrain_core::random::Generator;
use drivetrain_core::{Composite, DType, Device, Op};

pub fn f64s(dims: &[usize], values: &[f64]) -> HostValue {
    HostValue::new(DType::F64, dims, values).unwrap()
}

pub fn i64s(dims: &[usize], values: &[i64]) -> HostValue {
    HostValue::ints(DType::I64, dims, values).unwrap()
}

/// Standard normals.
pub fn random(generator: &mut Generator, dims: &[usize]) -> HostValue {
    let count = dims.iter().product();
    let values: Vec<f64> = (0..count).map(|_| generator.normal()).collect();
    f64s(dims, &values)
}

pub fn cast(value: &HostValue, dtype: DType) -> HostValue {
    HostValue::new(dtype, value.meta.shape.dims(), &value.values()).unwrap()
}

#[track_caller]
pub fn run(op: impl Into<Op>, inputs: &[HostValue]) -> Vec<HostValue> {
    run_on(&reference::device(), op, inputs)
}

/// Runs an op and checks that what comes out is what inference says.
#[track_caller]
pub fn run_on(device: &Device, op: impl Into<Op>, inputs: &[HostValue]) -> Vec<HostValue> {
    let op = op.into();
    let metas: Vec<_> = inputs.iter().map(|v| v.meta).collect();
    let outputs = reference::run(device, &op, inputs, &[]).unwrap();
    let wanted = drivetrain_core::infer(&op, &metas, &[]).unwrap();
    assert_eq!(outputs.iter().map(|v| v.meta).collect::<Vec<_>>(), &*wanted);
    outputs
}

#[track_caller]
pub fn close(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan());
        assert!(
            same || (g - w).abs() <= tolerance * (1.0 + w.abs()),
            "element {i}: {g} instead of {w}\n got {got:?}\nwant {want:?}"
        );
    }
}

/// Compares the gradients that `gradients` gives for a random cotangent of output 0 with central differences
/// of `forward`, for each input `i` with `Some` gradient.
#[track_caller]
pub fn check_gradients(
    forward: &Composite,
    inputs: &[HostValue],
    gradients: impl Fn(&HostValue, &[HostValue]) -> Vec<Option<HostValue>>,
) {
    let device = reference::device();
    let op = Op::from(forward.clone());
    let outputs = run_on(&device, op.clone(), inputs);
    let mut generator = Generator::new(99, 0);
    let cotangent = random(&mut generator, outputs[0].meta.shape.dims());
    let weight = cotangent.values();
    let loss = |inputs: &[HostValue]| -> f64 {
        let y = reference::run(&device, &op, inputs, &[]).unwrap();
        y[0].values().iter().zip(&weight).map(|(y, w)| y * w).sum()
    };
    for (i, gradient) in gradients(&cotangent, &outputs).iter().enumerate() {
        let Some(gradient) = gradient else { continue };
        assert_eq!(gradient.meta, inputs[i].meta);
        let values = inputs[i].values();
        let mut want = Vec::new();
        for k in 0..values.len() {
            let shifted = |by: f64| {
                let mut values = values.clone();
                values[k] += by;
                let mut all = inputs.to_vec();
                all[i] = f64s(inputs[i].meta.shape.dims(), &values);
                loss(&all)
            };
            let step = 1e-5;
            want.push((shifted(step) - shifted(-step)) / (2.0 * step));
        }
        close(&gradient.values(), &want, 1e-7);
    }
}
