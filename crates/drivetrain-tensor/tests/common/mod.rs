//! Values, comparisons and finite differences for tests of operations.
#![allow(dead_code, missing_docs)]

use drivetrain_cpu as _;
use drivetrain_tensor::autograd::{GradOptions, grad_with};
use drivetrain_tensor::{DType, Device, Error, Result, Tensor};

pub fn device() -> Device {
    Device::open("cpu").unwrap()
}

/// An F64 tensor.
pub fn f64s(values: &[f64], dims: &[usize]) -> Tensor {
    Tensor::from_slice(values, dims, &device()).unwrap()
}

pub fn f32s(values: &[f32], dims: &[usize]) -> Tensor {
    Tensor::from_slice(values, dims, &device()).unwrap()
}

/// first, first + 1, … as F64.
pub fn count(first: i64, dims: &[usize]) -> Tensor {
    let n = dims.iter().product::<usize>() as i64;
    let values: Vec<f64> = (first..first + n).map(|v| v as f64).collect();
    f64s(&values, dims)
}

/// Numbers in -1..1 that look random, all different, from a sequence that depends on `seed`.
pub fn values(seed: u64, dims: &[usize]) -> Tensor {
    let n: usize = dims.iter().product();
    let number = |i: usize| {
        // The fractional parts of multiples of an irrational number.
        let x = (seed as f64 + 1.0) * 0.754_877_666_246_692_7 + i as f64 * 0.618_033_988_749_894_9;
        2.0 * x.fract() - 1.0
    };
    f64s(&(0..n).map(number).collect::<Vec<_>>(), dims)
}

/// The same value with strides of another order and gaps.
pub fn strided(x: &Tensor) -> Tensor {
    let order: Vec<isize> = (0..x.rank() as isize).rev().collect();
    let wide = Tensor::stack(&[x, x], -1).unwrap().select(-1, 1).unwrap();
    let turned = wide.permute(&order).unwrap().copy().unwrap();
    let spread = Tensor::stack(&[&turned, &turned], 0).unwrap();
    let spread = spread.flip(&[0]).unwrap().select(0, 0).unwrap();
    let x = spread.permute(&order).unwrap();
    if x.rank() > 0 {
        // Walked backwards twice: negative strides in memory.
        return x.flip(&[-1]).unwrap().copy().unwrap().flip(&[-1]).unwrap();
    }
    x
}

#[track_caller]
pub fn close(got: &Tensor, want: &[f64], tolerance: f64) {
    let got = got.to_f64_vec().unwrap();
    assert_eq!(got.len(), want.len(), "got {got:?}\nwant {want:?}");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan());
        assert!(
            same || (g - w).abs() <= tolerance * (1.0 + w.abs()),
            "element {i}: {g} instead of {w}\n got {got:?}\nwant {want:?}"
        );
    }
}

/// Exactly these values.
#[track_caller]
pub fn equal(got: &Tensor, want: &[f64]) {
    close(got, want, 0.0);
}

/// The message of an error that holds all of these words.
#[track_caller]
pub fn refused<T>(result: Result<T>, words: &[&str]) {
    let message = match result {
        Ok(_) => panic!("accepted"),
        Err(error) => Error::to_string(&error),
    };
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
}

type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;

/// A scalar that depends on every element of y in its own way.
fn weighed(y: &Tensor, seed: u64) -> Tensor {
    let weights = values(seed, y.dims()).add(1.5).unwrap();
    y.mul(&weights).unwrap().sum(()).unwrap()
}

fn leaves(inputs: &[Tensor]) -> Vec<Tensor> {
    inputs.iter().map(|x| x.requires_grad_().unwrap()).collect()
}

/// The gradients of a weighed result, themselves weighed: a function whose own gradient is of second order.
fn first_order(function: Function, inputs: &[Tensor], create_graph: bool) -> Vec<Tensor> {
    let y = weighed(&function(inputs).unwrap(), 7);
    let options = GradOptions {
        retain_graph: false,
        create_graph,
    };
    let list: Vec<&Tensor> = inputs.iter().collect();
    let grads = grad_with(&[&y], &[], &list, options).unwrap();
    let or_zero = |(grad, x): (Option<Tensor>, &Tensor)| grad.unwrap_or(x.zeros_like().unwrap());
    grads.into_iter().zip(inputs).map(or_zero).collect()
}

fn weighed_gradients(function: Function, inputs: &[Tensor]) -> Tensor {
    let mut sum = f64s(&[0.0], &[]);
    for (i, g) in first_order(function, inputs, true).iter().enumerate() {
        sum = sum.add(&weighed(g, 11 + i as u64)).unwrap();
    }
    sum
}

/// Central differences of `scalar` in element `at` of input `i`.
fn difference(scalar: &dyn Fn(&[Tensor]) -> f64, inputs: &[Tensor], i: usize, at: usize) -> f64 {
    let step = 1e-5;
    let moved = |by: f64| {
        let mut elements = inputs[i].to_vec::<f64>().unwrap();
        elements[at] += by;
        let mut inputs = inputs.to_vec();
        inputs[i] = f64s(&elements, inputs[i].dims());
        scalar(&leaves(&inputs))
    };
    (moved(step) - moved(-step)) / (2.0 * step)
}

#[track_caller]
fn compare(what: &str, scalar: &dyn Fn(&[Tensor]) -> f64, inputs: &[Tensor], grads: &[Tensor]) {
    for (i, grad) in grads.iter().enumerate() {
        assert_eq!(grad.shape(), inputs[i].shape());
        for (at, got) in grad.to_vec::<f64>().unwrap().into_iter().enumerate() {
            let want = difference(scalar, inputs, i, at);
            assert!(
                (got - want).abs() <= 1e-5 * (1.0 + want.abs()),
                "{what} gradient of input {i} at element {at}: {got}, differences say {want}"
            );
        }
    }
}

/// Compares the gradients of `function` with finite differences, for contiguous and for strided F64 inputs, and the
/// gradients of those gradients as well.
#[track_caller]
pub fn check_gradients(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Tensor>) {
    for inputs in [inputs.to_vec(), inputs.iter().map(strided).collect()] {
        let value = |x: &[Tensor]| {
            let y = weighed(&function(x).unwrap(), 7);
            y.item::<f64>().unwrap()
        };
        let grads = first_order(&function, &leaves(&inputs), false);
        compare("first", &value, &inputs, &grads);
        let slope = |x: &[Tensor]| weighed_gradients(&function, x).item::<f64>().unwrap();
        let at = leaves(&inputs);
        let sum = weighed_gradients(&function, &at);
        if !sum.requires_grad() {
            continue;
        }
        let list: Vec<&Tensor> = at.iter().collect();
        let second = grad_with(&[&sum], &[], &list, GradOptions::default()).unwrap();
        let or_zero =
            |(grad, x): (Option<Tensor>, &Tensor)| grad.unwrap_or(x.detach().zeros_like().unwrap());
        let second: Vec<Tensor> = second.into_iter().zip(&at).map(or_zero).collect();
        compare("second", &slope, &inputs, &second);
    }
}

/// The same function gives the same bits for strided inputs, and in F32, F16 and BF16 values near those of F64.
#[track_caller]
pub fn check_layouts_and_dtypes(inputs: &[Tensor], function: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let want = function(inputs).unwrap();
    let turned: Vec<Tensor> = inputs.iter().map(strided).collect();
    let got = function(&turned).unwrap();
    assert_eq!(got.shape(), want.shape());
    close(&got, &want.to_f64_vec().unwrap(), 1e-13);
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 5e-3), (DType::BF16, 4e-2)] {
        let cast: Vec<Tensor> = inputs.iter().map(|x| x.to_dtype(dtype).unwrap()).collect();
        let rounded: Vec<Tensor> = cast
            .iter()
            .map(|x| x.to_dtype(DType::F64).unwrap())
            .collect();
        let want = function(&rounded).unwrap().to_f64_vec().unwrap();
        let got = function(&cast).unwrap();
        assert_eq!(got.dtype(), dtype);
        close(&got, &want, tolerance);
    }
}
