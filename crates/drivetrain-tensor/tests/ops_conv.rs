//! Convolutions and their transposes: values, gradients, messages.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{ConvOptions, ConvTransposeOptions, Tensor};

fn plain() -> ConvOptions {
    ConvOptions::default()
}

#[test]
fn a_transposed_kernel_gets_the_right_gradient() {
    // B004.
    let x = count(1, &[1, 1, 3, 3]).requires_grad_().unwrap();
    let k = f64s(&[1.0, -1.0, 2.0, 3.0], &[2, 2])
        .requires_grad_()
        .unwrap();
    let w = k.t().unwrap().reshape([1, 1, 2, 2]).unwrap();
    let y = x.conv2d(&w, None, &plain()).unwrap();
    equal(&y, &[16.0, 21.0, 31.0, 36.0]);
    y.mul(&y).unwrap().sum(()).unwrap().backward().unwrap();
    equal(&k.grad().unwrap(), &[724.0, 1348.0, 932.0, 1556.0]);
    let dx = [32.0, 106.0, 84.0, 30.0, 250.0, 270.0, -62.0, 114.0, 216.0];
    equal(&x.grad().unwrap(), &dx);
}

#[test]
fn rows_that_no_window_visits_get_no_gradient() {
    // B033.
    let run = |x: &Tensor, options: &ConvOptions| {
        let x = x.requires_grad_().unwrap();
        let w = f64s(&[1.0; 9], &[1, 1, 3, 3]).requires_grad_().unwrap();
        let y = x.conv2d(&w, None, options).unwrap();
        y.sum(()).unwrap().backward().unwrap();
        (y, x.grad().unwrap(), w.grad().unwrap())
    };
    let (y, dx, dw) = run(&count(1, &[1, 1, 6, 6]), &plain().stride(2));
    equal(&y, &[72.0, 90.0, 180.0, 198.0]);
    equal(&dw, &[32.0, 36.0, 40.0, 56.0, 60.0, 64.0, 80.0, 84.0, 88.0]);
    let row = |r: isize| dx.squeeze_all().unwrap().select(0, r).unwrap();
    equal(&row(0), &[1.0, 1.0, 2.0, 1.0, 1.0, 0.0]);
    equal(&row(2), &[2.0, 2.0, 4.0, 2.0, 2.0, 0.0]);
    equal(&row(5), &[0.0; 6]);
    let (y, dx, dw) = run(&count(1, &[1, 1, 5, 5]), &plain().stride(2).padding(1));
    equal(
        &y,
        &[16.0, 33.0, 28.0, 69.0, 117.0, 87.0, 76.0, 123.0, 88.0],
    );
    equal(
        &dw,
        &[52.0, 78.0, 52.0, 78.0, 117.0, 78.0, 52.0, 78.0, 52.0],
    );
    equal(
        &dx.narrow(2, 0, 2).unwrap(),
        &[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 4.0, 2.0],
    );
}

#[test]
fn every_argument_counts_in_every_number_of_dimensions() {
    // One dimension by hand: x = 1..6, k = [1, 10], dilation 2, stride 2, padding 1.
    let x = count(1, &[1, 1, 6]);
    let k = f64s(&[1.0, 10.0], &[1, 1, 2]);
    let b = f64s(&[0.5], &[1]);
    let y = x
        .conv1d(&k, Some(&b), &plain().dilation(2).stride(2).padding(1))
        .unwrap();
    // Windows at 0|2, 2|4, 4|6 of [0, 1, 2, 3, 4, 5, 6, 0].
    equal(&y, &[20.5, 42.5, 64.5]);
    // A 3-D convolution with kernel 1 in two dimensions is the 1-D one.
    let deep = x.reshape([1, 1, 6, 1, 1]).unwrap();
    let kernel = k.reshape([1, 1, 2, 1, 1]).unwrap();
    let options = plain()
        .dilation([2, 1, 1])
        .stride([2, 1, 1])
        .padding([1, 0, 0]);
    let deep = deep.conv3d(&kernel, Some(&b), &options).unwrap();
    assert_eq!(deep.dims(), [1, 1, 3, 1, 1]);
    equal(&deep, &[20.5, 42.5, 64.5]);
    // Groups: each half of the channels sees its own kernels.
    let x = count(1, &[1, 2, 2]);
    let k = f64s(&[1.0, 100.0], &[2, 1, 1]);
    let y = x.conv1d(&k, None, &plain().groups(2)).unwrap();
    equal(&y, &[1.0, 2.0, 300.0, 400.0]);
}

#[test]
fn input_without_a_batch_dimension_is_taken() {
    let (x, k) = (values(1, &[2, 4, 5]), values(2, &[3, 2, 3, 2]));
    let y = x.conv2d(&k, None, &plain()).unwrap();
    assert_eq!(y.dims(), [3, 2, 4]);
    let batch = x.unsqueeze(0).unwrap().conv2d(&k, None, &plain()).unwrap();
    equal(&y, &batch.to_f64_vec().unwrap());
    let w = values(3, &[2, 3, 2, 2]);
    let y = x.conv_transpose2d(&w, None, &ConvTransposeOptions::default());
    assert_eq!(y.unwrap().dims(), [3, 5, 6]);
}

#[test]
fn an_empty_batch_gives_an_empty_batch() {
    let x = values(1, &[0, 2, 4, 4]).requires_grad_().unwrap();
    let k = values(2, &[3, 2, 3, 3]).requires_grad_().unwrap();
    let y = x.conv2d(&k, None, &plain()).unwrap();
    assert_eq!(y.dims(), [0, 3, 2, 2]);
    y.sum(()).unwrap().backward().unwrap();
    equal(&k.grad().unwrap(), &[0.0; 54]);
    assert_eq!(x.grad().unwrap().dims(), [0, 2, 4, 4]);
}

#[test]
fn gradients_of_convolutions() {
    let (x, k, b) = (
        values(1, &[2, 4, 5]),
        values(2, &[2, 2, 2]),
        values(3, &[2]),
    );
    check_gradients(&[x, k, b], |t| {
        t[0].conv1d(&t[1], Some(&t[2]), &plain().stride(2).padding(1).groups(2))
    });
    let (x, k) = (values(4, &[1, 2, 4, 3]), values(5, &[2, 2, 2, 2]));
    check_gradients(&[x, k], |t| {
        t[0].conv2d(&t[1], None, &plain().dilation([2, 1]).padding([1, 0]))
    });
    let (x, k) = (values(6, &[1, 1, 2, 3, 2]), values(7, &[1, 1, 2, 2, 1]));
    check_gradients(&[x, k], |t| t[0].conv3d(&t[1], None, &plain()));
}

#[test]
fn layouts_and_dtypes_of_convolutions() {
    let inputs = [
        values(1, &[2, 3, 6, 5]),
        values(2, &[4, 3, 3, 3]),
        values(3, &[4]),
    ];
    check_layouts_and_dtypes(&inputs, |t| {
        t[0].conv2d(&t[1], Some(&t[2]), &plain().padding(1))
    });
    let inputs = [
        values(1, &[1, 2, 3, 3]),
        values(2, &[2, 2, 3, 3]),
        values(3, &[2]),
    ];
    check_layouts_and_dtypes(&inputs, |t| {
        t[0].conv_transpose2d(
            &t[1],
            Some(&t[2]),
            &ConvTransposeOptions::default().stride(2),
        )
    });
}

#[test]
fn a_transposed_convolution_spreads_each_element() {
    // x = [1, 2], k = [1, 10, 100], stride 2: [1, 10, 100 + 2, 20, 200].
    let x = f64s(&[1.0, 2.0], &[1, 1, 2]);
    let k = f64s(&[1.0, 10.0, 100.0], &[1, 1, 3]);
    let two = ConvTransposeOptions::default().stride(2);
    let y = x.conv_transpose1d(&k, None, &two).unwrap();
    equal(&y, &[1.0, 10.0, 102.0, 20.0, 200.0]);
    let y = x.conv_transpose1d(&k, None, &two.padding(1)).unwrap();
    equal(&y, &[10.0, 102.0, 20.0]);
    let b = f64s(&[0.5], &[1]);
    let y = x
        .conv_transpose1d(&k, Some(&b), &two.padding(1).output_padding(1))
        .unwrap();
    equal(&y, &[10.5, 102.5, 20.5, 200.5]);
    // Output padding past the last window is bias alone.
    let y = x
        .conv_transpose1d(&k, Some(&b), &two.output_padding(1))
        .unwrap();
    equal(&y, &[1.5, 10.5, 102.5, 20.5, 200.5, 0.5]);
    // Below the dilation it may reach the stride.
    let wide = ConvTransposeOptions::default()
        .dilation(3)
        .output_padding(2);
    let y = x.conv_transpose1d(&k, None, &wide).unwrap();
    equal(
        &y,
        &[1.0, 2.0, 0.0, 10.0, 20.0, 0.0, 100.0, 200.0, 0.0, 0.0],
    );
}

#[test]
fn a_transposed_convolution_is_the_transpose() {
    // ⟨conv(a, k), b⟩ = ⟨a, convᵀ(b, k)⟩.
    let (a, k) = (values(1, &[1, 4, 7, 6]), values(2, &[6, 2, 3, 2]));
    let forward = plain().stride([2, 3]).padding([1, 0]).groups(2);
    let y = a.conv2d(&k, None, &forward).unwrap();
    let b = values(3, y.dims());
    let backward = ConvTransposeOptions::default()
        .stride([2, 3])
        .padding([1, 0])
        .output_padding([0, 1])
        .groups(2);
    let x = b.conv_transpose2d(&k, None, &backward).unwrap();
    assert_eq!(x.dims(), a.dims());
    let left = y.mul(&b).unwrap().sum(()).unwrap().item::<f64>().unwrap();
    close(&x.mul(&a).unwrap().sum(()).unwrap(), &[left], 1e-12);
}

#[test]
fn gradients_of_transposed_convolutions() {
    let inputs = [
        values(1, &[1, 2, 2, 3]),
        values(2, &[2, 1, 2, 2]),
        values(3, &[2]),
    ];
    let options = ConvTransposeOptions::default()
        .stride(2)
        .output_padding(1)
        .groups(2);
    check_gradients(&inputs, |t| {
        t[0].conv_transpose2d(&t[1], Some(&t[2]), &options)
    });
    let inputs = [values(4, &[2, 1, 3]), values(5, &[1, 2, 2])];
    let options = ConvTransposeOptions::default().dilation(2).padding(1);
    check_gradients(&inputs, |t| t[0].conv_transpose1d(&t[1], None, &options));
    let inputs = [values(6, &[1, 1, 2, 1, 2]), values(7, &[1, 1, 1, 2, 2])];
    check_gradients(&inputs, |t| {
        t[0].conv_transpose3d(&t[1], None, &ConvTransposeOptions::default())
    });
}

#[test]
fn mistakes_are_named() {
    let x = values(1, &[1, 1, 5, 5]);
    let k = values(2, &[2, 3, 3, 3]);
    refused(
        x.conv2d(&k, None, &plain()),
        &["conv2d", "1 channels", "expects 3"],
    );
    let k = values(2, &[2, 1, 3, 3]);
    refused(
        x.conv2d(&k, None, &plain().stride(0)),
        &["conv2d", "stride [0, 0]"],
    );
    refused(
        x.conv2d(&k, None, &plain().stride([1, 2, 3])),
        &["3 numbers for stride"],
    );
    refused(x.conv2d(&k, None, &plain().groups(0)), &["groups 0"]);
    refused(x.conv1d(&k, None, &plain()), &["conv1d", "rank 4"]);
    refused(
        x.conv2d(&values(2, &[2, 1, 7, 7]), None, &plain()),
        &["kernel", "7"],
    );
    refused(
        x.conv2d(&k, None, &plain().padding(usize::MAX)),
        &["conv2d"],
    );
    refused(
        x.conv2d(&k, None, &plain().dilation(usize::MAX)),
        &["conv2d"],
    );
    refused(
        x.conv2d(&k, Some(&values(3, &[3])), &plain()),
        &["bias", "[2]", "[3]"],
    );
    let half = k.to_dtype(drivetrain_tensor::DType::F16).unwrap();
    refused(x.conv2d(&half, None, &plain()), &["F16", "F64"]);
}

#[test]
fn mistakes_of_transposed_convolutions_are_named() {
    let x = values(1, &[1, 2, 4, 4]);
    let w = values(2, &[2, 3, 3, 3]);
    let base = ConvTransposeOptions::default();
    let run = |w: &Tensor, options: &ConvTransposeOptions| x.conv_transpose2d(w, None, options);
    refused(
        run(&w, &base.output_padding(1)),
        &["output_padding 1", "stride 1", "dilation 1"],
    );
    refused(
        run(&w, &base.stride(0)),
        &["conv_transpose2d", "stride [0, 0]"],
    );
    refused(run(&w, &base.padding(9)), &["no size is left", "padding 9"]);
    refused(run(&w, &base.padding(usize::MAX)), &["no size is left"]);
    refused(run(&w, &base.stride(usize::MAX)), &["conv_transpose2d"]);
    refused(run(&w, &base.groups(3)), &["2 input channels", "3 groups"]);
    let other = values(2, &[4, 3, 3, 3]);
    refused(run(&other, &base), &["2 channels", "expects 4"]);
    refused(
        run(&values(2, &[2, 3, 3]), &base),
        &["weight [2, 3, 3]", "rank 3"],
    );
    refused(
        x.conv_transpose2d(&w, Some(&values(3, &[2])), &base),
        &["bias [2]", "3 output"],
    );
}
