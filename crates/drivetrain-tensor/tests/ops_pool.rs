//! Pooling, sliding and adaptive: values, gradients, messages.
#![allow(missing_docs)]

mod common;

use common::*;
use drivetrain_tensor::{AvgPoolOptions, DType, MaxPoolOptions, Tensor};

const INF: f64 = f64::INFINITY;

#[test]
fn max_pool_pads_with_minus_infinity_and_shows_nan() {
    // B067.
    let options = MaxPoolOptions::new(2).stride(2).padding(1);
    let x = f64s(&[-5.0, -6.0, -7.0, -8.0], &[1, 1, 2, 2]);
    equal(&x.max_pool2d(&options).unwrap(), &[-5.0, -6.0, -7.0, -8.0]);
    let whole = x
        .to_dtype(DType::I32)
        .unwrap()
        .max_pool2d(&options)
        .unwrap();
    assert_eq!(whole.dtype(), DType::I32);
    equal(&whole, &[-5.0, -6.0, -7.0, -8.0]);
    let line = f64s(&[1.0, f64::NAN, 2.0, 3.0], &[1, 1, 4]);
    let y = line.max_pool1d(&MaxPoolOptions::new(2).stride(2)).unwrap();
    equal(&y, &[f64::NAN, 3.0]);
    let low = f64s(&[-INF; 4], &[1, 1, 2, 2]).requires_grad_().unwrap();
    let y = low.max_pool2d(&options).unwrap();
    equal(&y, &[-INF; 4]);
    y.sum(()).unwrap().backward().unwrap();
    equal(&low.grad().unwrap(), &[1.0; 4]);
}

#[test]
fn windows_that_do_not_fit_are_refused() {
    // B068.
    let x = f64s(&[1.0], &[1, 1, 1, 1]);
    let words = ["padding", "half the kernel"];
    refused(
        x.max_pool2d(&MaxPoolOptions::new(3).stride(3).padding(3)),
        &words,
    );
    refused(
        x.avg_pool2d(&AvgPoolOptions::new(3).stride(3).padding(3)),
        &words,
    );
    let dilated = MaxPoolOptions::new(3).dilation(2);
    refused(x.max_pool2d(&dilated), &["does not fit", "kernel 3"]);
    refused(
        x.avg_pool2d(&AvgPoolOptions::new(4).padding(1)),
        &["does not fit"],
    );
    refused(
        x.max_pool2d(&MaxPoolOptions::new(1).stride(0)),
        &["stride", "at least 1"],
    );
    refused(
        x.max_pool2d(&MaxPoolOptions::new(0)),
        &["kernel size [0, 0]"],
    );
    refused(
        x.max_pool1d(&MaxPoolOptions::new(1)),
        &["max_pool1d", "rank 4"],
    );
    refused(
        x.avg_pool2d(&AvgPoolOptions::new([1, 1, 1])),
        &["3 numbers for kernel_size"],
    );
    let whole = x.to_dtype(DType::I64).unwrap();
    refused(
        whole.avg_pool2d(&AvgPoolOptions::new(1)),
        &["avg_pool", "I64"],
    );
}

#[test]
fn the_divisor_at_the_edges() {
    // B069.
    let x = count(0, &[1, 1, 5, 5]);
    let y = x
        .avg_pool2d(&AvgPoolOptions::new(2).ceil_mode(true))
        .unwrap();
    equal(&y, &[3.0, 5.0, 6.5, 13.0, 15.0, 16.5, 20.5, 22.5, 24.0]);
    let x = count(1, &[1, 1, 3, 3]);
    let options = AvgPoolOptions::new(3).stride(2).padding(1);
    let y = x.avg_pool2d(&options).unwrap();
    close(&y, &[12.0 / 9.0, 16.0 / 9.0, 24.0 / 9.0, 28.0 / 9.0], 1e-15);
    let y = x.avg_pool2d(&options.count_include_pad(false)).unwrap();
    equal(&y, &[3.0, 4.0, 6.0, 7.0]);
}

#[test]
fn indices_are_flat_and_the_first_of_equals_gets_the_gradient() {
    let x = f64s(&[1.0, 7.0, 7.0, 2.0, 3.0, 9.0, 0.0, 9.0], &[1, 2, 4])
        .requires_grad_()
        .unwrap();
    let image = x.reshape([1, 2, 2, 2]).unwrap();
    let (y, at) = image
        .max_pool2d_with_indices(&MaxPoolOptions::new(2))
        .unwrap();
    equal(&y, &[7.0, 9.0]);
    equal(&at, &[1.0, 1.0]);
    y.sum(()).unwrap().backward().unwrap();
    equal(
        &x.grad().unwrap(),
        &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    );
    // Without a batch dimension; overlapping windows; the index is of the image.
    let x = count(0, &[1, 3, 3]);
    let (y, at) = x
        .max_pool2d_with_indices(&MaxPoolOptions::new(2).stride(1))
        .unwrap();
    assert_eq!(y.dims(), [1, 2, 2]);
    equal(&at, &[4.0, 5.0, 7.0, 8.0]);
    let (_, at) = count(0, &[1, 2, 2, 2])
        .max_pool3d_with_indices(&MaxPoolOptions::new(2))
        .unwrap();
    equal(&at, &[7.0]);
    let (_, at) = x
        .squeeze(0)
        .unwrap()
        .max_pool1d_with_indices(&MaxPoolOptions::new(3))
        .unwrap();
    equal(&at, &[2.0, 2.0, 2.0]);
}

#[test]
fn gradients_of_sliding_windows() {
    check_gradients(&[values(1, &[1, 2, 5, 4])], |t| {
        t[0].max_pool2d(&MaxPoolOptions::new([3, 2]).stride(2).padding(1))
    });
    check_gradients(&[values(2, &[2, 1, 7])], |t| {
        t[0].max_pool1d(&MaxPoolOptions::new(2).dilation(2).stride(1))
    });
    check_gradients(&[values(3, &[1, 2, 4, 5])], |t| {
        let options = AvgPoolOptions::new([2, 3]).stride(2).padding([1, 1]);
        t[0].avg_pool2d(&options.ceil_mode(true).count_include_pad(false))
    });
    check_gradients(&[values(4, &[2, 2, 5])], |t| {
        t[0].avg_pool1d(&AvgPoolOptions::new(2))
    });
    check_gradients(&[values(5, &[1, 2, 2, 3, 2])], |t| {
        t[0].avg_pool3d(&AvgPoolOptions::new(2))?
            .mul(&t[0].max_pool3d(&MaxPoolOptions::new(2))?)
    });
}

#[test]
fn layouts_and_dtypes_of_pooling() {
    let x = [values(1, &[2, 3, 6, 5])];
    check_layouts_and_dtypes(&x, |t| t[0].max_pool2d(&MaxPoolOptions::new(3).padding(1)));
    check_layouts_and_dtypes(&x, |t| t[0].avg_pool2d(&AvgPoolOptions::new(3).padding(1)));
    check_layouts_and_dtypes(&x, |t| t[0].adaptive_avg_pool2d([4, 3]));
    check_layouts_and_dtypes(&x, |t| t[0].adaptive_avg_pool2d(1));
    check_layouts_and_dtypes(&x, |t| t[0].adaptive_max_pool2d([4, 3]));
}

/// Windows as the definition says them, one by one.
fn adaptive_by_hand(x: &Tensor, to: [usize; 2], join: fn(&[f64]) -> f64) -> Vec<f64> {
    let &[n, c, h, w] = x.dims() else { panic!() };
    let elements = x.to_vec::<f64>().unwrap();
    let range = |i: usize, from: usize, to: usize| i * from / to..((i + 1) * from).div_ceil(to);
    let mut out = Vec::new();
    for plane in elements.chunks(h * w).take(n * c) {
        for i in 0..to[0] {
            for j in 0..to[1] {
                let cells: Vec<f64> = range(i, h, to[0])
                    .flat_map(|r| range(j, w, to[1]).map(move |s| r * w + s))
                    .map(|at| plane[at])
                    .collect();
                out.push(join(&cells));
            }
        }
    }
    out
}

#[test]
fn adaptive_windows_of_any_size() {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let most = |v: &[f64]| v.iter().copied().fold(-INF, f64::max);
    let x = values(1, &[2, 2, 5, 7]);
    for to in [
        [1, 1],
        [5, 7],
        [2, 3],
        [3, 2],
        [4, 7],
        [5, 1],
        [7, 9],
        [10, 3],
    ] {
        let y = x.adaptive_avg_pool2d(to).unwrap();
        assert_eq!(y.dims(), [2, 2, to[0], to[1]]);
        close(&y, &adaptive_by_hand(&x, to, mean), 1e-14);
        let y = x.adaptive_max_pool2d(to).unwrap();
        equal(&y, &adaptive_by_hand(&x, to, most));
    }
    let even = values(2, &[1, 3, 6, 4]);
    close(
        &even.adaptive_avg_pool2d([3, 2]).unwrap(),
        &adaptive_by_hand(&even, [3, 2], mean),
        1e-14,
    );
    equal(
        &count(0, &[1, 5]).adaptive_avg_pool1d(3).unwrap(),
        &[0.5, 2.0, 3.5],
    );
    equal(
        &count(0, &[1, 1, 5]).adaptive_max_pool1d(3).unwrap(),
        &[1.0, 3.0, 4.0],
    );
    equal(
        &count(0, &[1, 2, 2, 2]).adaptive_avg_pool3d(1).unwrap(),
        &[3.5],
    );
}

#[test]
fn an_infinity_outside_a_window_does_not_reach_in() {
    let x = f64s(&[1.0, 2.0, 3.0, 4.0, INF], &[1, 1, 5]);
    equal(&x.adaptive_avg_pool1d(3).unwrap(), &[1.5, 3.0, INF]);
}

#[test]
fn adaptive_maxima_go_to_the_first_of_equals() {
    let x = f64s(&[2.0; 15], &[1, 1, 3, 5]).requires_grad_().unwrap();
    let (y, at) = x.adaptive_max_pool2d_with_indices([2, 2]).unwrap();
    // Rows 0..2 and 1..3, columns 0..3 and 2..5.
    equal(&at, &[0.0, 2.0, 5.0, 7.0]);
    y.sum(()).unwrap().backward().unwrap();
    let mut want = [0.0; 15];
    for at in [0, 2, 5, 7] {
        want[at] = 1.0;
    }
    equal(&x.grad().unwrap(), &want);
    let nan = f64s(&[1.0, f64::NAN, 3.0], &[1, 1, 3]);
    equal(&nan.adaptive_max_pool1d(2).unwrap(), &[f64::NAN, f64::NAN]);
}

#[test]
fn gradients_of_adaptive_windows() {
    let x = [values(1, &[1, 2, 5, 4])];
    check_gradients(&x, |t| t[0].adaptive_avg_pool2d([3, 2]));
    check_gradients(&x, |t| t[0].adaptive_avg_pool2d([1, 1]));
    check_gradients(&x, |t| t[0].adaptive_max_pool2d([3, 3]));
    check_gradients(&[values(2, &[2, 1, 3])], |t| t[0].adaptive_avg_pool1d(4));
}

#[test]
fn sizes_of_nothing() {
    let x = values(1, &[0, 2, 5, 5]);
    assert_eq!(x.adaptive_avg_pool2d([3, 3]).unwrap().dims(), [0, 2, 3, 3]);
    assert_eq!(x.adaptive_max_pool2d([3, 3]).unwrap().dims(), [0, 2, 3, 3]);
    assert_eq!(
        x.max_pool2d(&MaxPoolOptions::new(2)).unwrap().dims(),
        [0, 2, 2, 2]
    );
    assert_eq!(
        x.avg_pool2d(&AvgPoolOptions::new(2)).unwrap().dims(),
        [0, 2, 2, 2]
    );
    let x = values(1, &[1, 2, 5, 5]);
    assert_eq!(x.adaptive_avg_pool2d([0, 3]).unwrap().dims(), [1, 2, 0, 3]);
    assert_eq!(x.adaptive_max_pool2d([0, 3]).unwrap().dims(), [1, 2, 0, 3]);
    refused(
        values(1, &[1, 2, 0, 5]).adaptive_avg_pool2d(1),
        &["[1, 2, 0, 5]", "no elements"],
    );
    refused(
        x.adaptive_avg_pool2d([1, 2, 3]),
        &["3 numbers for output_size"],
    );
    refused(x.adaptive_avg_pool1d(1), &["adaptive_avg_pool1d", "rank 4"]);
}
