//! Resizing and padding: values, gradients, messages.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{DType, PadMode, Tensor};

#[test]
fn nearest_takes_the_element_below() {
    let x = count(1, &[1, 1, 2, 2]);
    let y = x.upsample_nearest(&[4, 4]).unwrap();
    #[rustfmt::skip]
    equal(&y, &[
        1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0,
        3.0, 3.0, 4.0, 4.0, 3.0, 3.0, 4.0, 4.0,
    ]);
    let line = count(0, &[1, 1, 5]);
    equal(&line.upsample_nearest(&[3]).unwrap(), &[0.0, 1.0, 3.0]);
    equal(
        &line.upsample_nearest(&[7]).unwrap(),
        &[0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 4.0],
    );
    equal(
        &line.upsample_nearest_by(&[2.0]).unwrap(),
        &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0],
    );
    equal(&line.upsample_nearest_by(&[0.5]).unwrap(), &[0.0, 2.0]);
    let whole = line
        .to_dtype(DType::I64)
        .unwrap()
        .upsample_nearest(&[2])
        .unwrap();
    assert_eq!(whole.dtype(), DType::I64);
    equal(&whole, &[0.0, 2.0]);
}

#[test]
fn gradients_add_to_those_of_other_uses() {
    // B031.
    let x = f64s(&[1.0; 4], &[1, 1, 2, 2]).requires_grad_().unwrap();
    let y = x.upsample_nearest(&[4, 4]).unwrap().sum(()).unwrap();
    let z = x.sum(()).unwrap().mul(3.0).unwrap();
    y.add(&z).unwrap().backward().unwrap();
    equal(&x.grad().unwrap(), &[7.0; 4]);
}

#[test]
fn linear_between_neighbours() {
    let x = f64s(&[0.0, 10.0, 40.0], &[1, 1, 3]);
    // Edges on edges: places -0.25, 0.25, 0.75, …, clipped to the image.
    let y = x.upsample_linear1d(6, false).unwrap();
    equal(&y, &[0.0, 2.5, 7.5, 17.5, 32.5, 40.0]);
    // Corners on corners: places 0, 0.5, 1, 1.5, 2.
    let y = x.upsample_linear1d(5, true).unwrap();
    equal(&y, &[0.0, 5.0, 10.0, 25.0, 40.0]);
    equal(&x.upsample_linear1d(1, true).unwrap(), &[0.0]);
    equal(&x.upsample_linear1d(1, false).unwrap(), &[10.0]);
    equal(&x.upsample_linear1d(3, false).unwrap(), &[0.0, 10.0, 40.0]);
    equal(
        &f64s(&[5.0], &[1, 1, 1])
            .upsample_linear1d(3, false)
            .unwrap(),
        &[5.0; 3],
    );
    // torch.nn.functional.interpolate([[1, 2], [3, 4]], size 4, bilinear).
    let image = count(1, &[1, 1, 2, 2]);
    let y = image.upsample_bilinear2d([4, 4], false).unwrap();
    #[rustfmt::skip]
    close(&y, &[
        1.0, 1.25, 1.75, 2.0, 1.5, 1.75, 2.25, 2.5,
        2.5, 2.75, 3.25, 3.5, 3.0, 3.25, 3.75, 4.0,
    ], 1e-15);
    let y = image.upsample_bilinear2d([3, 3], true).unwrap();
    equal(&y, &[1.0, 1.5, 2.0, 2.0, 2.5, 3.0, 3.0, 3.5, 4.0]);
    let y = image.upsample_linear_by(&[2.0, 2.0], false).unwrap();
    close(
        &y,
        &image
            .upsample_bilinear2d([4, 4], false)
            .unwrap()
            .to_vec::<f64>()
            .unwrap(),
        1e-15,
    );
    // A factor of 1.5 gives 3 of 2 and places them by the factor.
    let y = f64s(&[0.0, 6.0], &[1, 1, 2])
        .upsample_linear_by(&[1.6], false)
        .unwrap();
    close(&y, &[0.0, 6.0 * 0.4375, 6.0], 1e-14);
    let cube = count(0, &[1, 1, 2, 2, 2])
        .upsample_trilinear3d([3, 3, 3], true)
        .unwrap();
    equal(
        &cube.flatten(0, -1).unwrap().narrow(0, 13, 1).unwrap(),
        &[3.5],
    );
}

#[test]
fn gradients_of_resizing() {
    let x = [values(1, &[1, 2, 3, 4])];
    check_gradients(&x, |t| t[0].upsample_nearest(&[5, 3]));
    check_gradients(&x, |t| t[0].upsample_bilinear2d([5, 3], false));
    check_gradients(&x, |t| t[0].square()?.upsample_bilinear2d([2, 6], true));
    check_layouts_and_dtypes(&x, |t| t[0].upsample_bilinear2d([5, 6], false));
    check_layouts_and_dtypes(&x, |t| t[0].upsample_nearest(&[5, 6]));
}

#[test]
fn mistakes_of_resizing_are_named() {
    let x = values(1, &[1, 2, 3, 4]);
    refused(
        x.upsample_nearest(&[3]),
        &["upsample_nearest", "1 sizes [3]", "[1, 2, 3, 4]"],
    );
    refused(x.upsample_nearest(&[0, 3]), &["[0, 3]", "at least 1"]);
    refused(x.upsample_nearest_by(&[0.1, 1.0]), &["at least 1"]);
    refused(
        x.upsample_nearest_by(&[-1.0, 1.0]),
        &["factors [-1.0, 1.0]"],
    );
    refused(x.upsample_linear_by(&[2.0], false), &["1 factors"]);
    refused(x.upsample_linear1d(4, false), &["upsample_linear1d"]);
    refused(
        values(1, &[1, 2, 0]).upsample_linear1d(4, false),
        &["[1, 2, 0]"],
    );
    let whole = x.to_dtype(DType::I64).unwrap();
    refused(whole.upsample_bilinear2d([2, 2], false), &["I64"]);
}

#[test]
fn padding_of_every_mode() {
    let x = count(1, &[1, 4]);
    let pad = |padding: &[isize], mode| x.pad(padding, mode).unwrap();
    let constant = PadMode::Constant(9.into());
    equal(
        &pad(&[1, 2], constant),
        &[9.0, 1.0, 2.0, 3.0, 4.0, 9.0, 9.0],
    );
    equal(
        &pad(&[2, 3], PadMode::Reflect),
        &[3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0],
    );
    equal(
        &pad(&[2, 1], PadMode::Replicate),
        &[1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0],
    );
    equal(
        &pad(&[4, 1], PadMode::Circular),
        &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0],
    );
    // Negative numbers take off.
    equal(&pad(&[-1, 1], constant), &[2.0, 3.0, 4.0, 9.0]);
    equal(&pad(&[-1, -2], constant), &[2.0]);
    equal(&pad(&[1, -2], PadMode::Reflect), &[2.0, 1.0, 2.0]);
    equal(&pad(&[-2, -1], PadMode::Replicate), &[3.0]);
    equal(
        &pad(&[-1, 2], PadMode::Circular),
        &[2.0, 3.0, 4.0, 1.0, 2.0],
    );
    equal(&pad(&[], constant), &[1.0, 2.0, 3.0, 4.0]);
    // Pairs go from the last dimension to the first.
    let y = count(1, &[2, 2])
        .pad(&[1, 0, 0, 1], PadMode::Constant(0.into()))
        .unwrap();
    equal(&y, &[0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0]);
    let y = count(1, &[2, 2])
        .pad(&[1, 0, 0, 1], PadMode::Reflect)
        .unwrap();
    equal(&y, &[2.0, 1.0, 2.0, 4.0, 3.0, 4.0, 2.0, 1.0, 2.0]);
    let flags = Tensor::from_slice(&[true], [1], &device()).unwrap();
    let flags = flags.pad(&[1, 0], PadMode::Constant(false.into())).unwrap();
    assert_eq!(flags.to_vec::<bool>().unwrap(), [false, true]);
}

#[test]
fn gradients_of_padding() {
    let x = [values(1, &[2, 3, 4])];
    check_gradients(&x, |t| {
        t[0].square()?
            .pad(&[2, -1, -1, 3], PadMode::Constant(1.5.into()))
    });
    for mode in [PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
        check_gradients(&x, |t| t[0].square()?.pad(&[2, -1, 1, 2], mode));
        check_layouts_and_dtypes(&x, |t| t[0].pad(&[2, 1, 1, 2], mode));
    }
}

#[test]
fn mistakes_of_padding_are_named() {
    let x = values(1, &[2, 3]);
    let constant = PadMode::Constant(0.into());
    refused(x.pad(&[1], constant), &["pad", "1 numbers [1]", "[2, 3]"]);
    refused(x.pad(&[0; 6], constant), &["6 numbers"]);
    refused(x.pad(&[-2, -2], constant), &["(-2, -2)", "a size of -1"]);
    refused(x.pad(&[-4, 5], constant), &["more is taken off"]);
    refused(x.pad(&[isize::MAX, 1], constant), &["size overflow"]);
    refused(
        x.pad(&[3, 0], PadMode::Reflect),
        &["reflect", "(3, 0)", "at most 2"],
    );
    refused(
        x.pad(&[4, 0], PadMode::Circular),
        &["circular", "at most 3"],
    );
    let none = values(1, &[2, 0]);
    refused(
        none.pad(&[1, 0], PadMode::Replicate),
        &["no element at the edge"],
    );
    refused(none.pad(&[1, 0], PadMode::Reflect), &["at most 0"]);
    assert_eq!(none.pad(&[1, 1], constant).unwrap().dims(), [2, 2]);
    refused(
        x.pad(&[isize::MAX - 3, 0], PadMode::Replicate),
        &["overflow"],
    );
}
