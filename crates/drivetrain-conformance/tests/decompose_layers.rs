//! Decompositions of convolutions and pooling against plain loops, and their gradients against differences.

mod common;

use common::{check_gradients, close, f64s, i64s, random, run};
use drivetrain_conformance::reference::HostValue;
use drivetrain_core::random::Generator;
use drivetrain_core::{Composite, ConvolutionSpec, DType, PoolSpec};

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

/// Sizes of `[A, B, spatial…]` with missing spatial dimensions as 1.
fn sizes(value: &HostValue) -> [usize; 5] {
    let dims = value.meta.shape.dims();
    std::array::from_fn(|i| dims.get(i).copied().unwrap_or(1))
}

fn at(sizes: [usize; 5], index: [usize; 5]) -> usize {
    (0..5).fold(0, |place, d| place * sizes[d] + index[d])
}

/// Input position of tap `t` of window `o`, when it is in the image.
fn position(
    o: usize,
    t: usize,
    stride: usize,
    dilation: usize,
    padding: usize,
    size: usize,
) -> Option<usize> {
    (o * stride + t * dilation)
        .checked_sub(padding)
        .filter(|&p| p < size)
}

/// Cross-correlation by its definition.
fn convolve(x: &HostValue, w: &HostValue, bias: &HostValue, s: &ConvolutionSpec) -> Vec<f64> {
    let (xs, ws) = (sizes(x), sizes(w));
    let (xv, wv, bv) = (x.values(), w.values(), bias.values());
    let out: [usize; 3] = std::array::from_fn(|i| s.output_size(i, xs[2 + i], ws[2 + i]).unwrap());
    let mut y = Vec::new();
    let span = |n: [usize; 3]| {
        (0..n[0]).flat_map(move |a| (0..n[1]).flat_map(move |b| (0..n[2]).map(move |c| [a, b, c])))
    };
    for n in 0..xs[0] {
        for o in 0..ws[0] {
            let group = o / (ws[0] / s.groups);
            for place in span(out) {
                let mut sum = bv[o];
                for c in 0..ws[1] {
                    for tap in span([ws[2], ws[3], ws[4]]) {
                        let p: [Option<usize>; 3] = std::array::from_fn(|i| {
                            position(
                                place[i],
                                tap[i],
                                s.stride[i],
                                s.dilation[i],
                                s.padding[i],
                                xs[2 + i],
                            )
                        });
                        if let [Some(a), Some(b), Some(d)] = p {
                            sum += xv[at(xs, [n, group * ws[1] + c, a, b, d])]
                                * wv[at(ws, [o, c, tap[0], tap[1], tap[2]])];
                        }
                    }
                }
                y.push(sum);
            }
        }
    }
    y
}

fn check_convolution(spec: ConvolutionSpec, x: &[usize], w: &[usize]) {
    let mut generator = Generator::new(7, 0);
    let x = random(&mut generator, x);
    let w = random(&mut generator, w);
    let bias = random(&mut generator, &w.meta.shape.dims()[..1]);
    let op = Composite::Convolution(spec);
    let y = run(op.clone(), &[x.clone(), w.clone(), bias.clone()]);
    close(&y[0].values(), &convolve(&x, &w, &bias, &spec), 1e-12);
    let with_sizes = |value: &HostValue| {
        let mut spec = spec;
        for i in 0..usize::from(spec.spatial) {
            spec.sizes[i] = value.meta.shape[2 + i];
        }
        spec
    };
    check_gradients(&op, &[x.clone(), w.clone(), bias], |dy, _| {
        let dx = run(
            Composite::ConvolutionInputGrad(with_sizes(&x)),
            &[dy.clone(), w.clone()],
        );
        let dw = run(
            Composite::ConvolutionWeightGrad(with_sizes(&w)),
            &[dy.clone(), x.clone()],
        );
        vec![dx.into_iter().next(), dw.into_iter().next(), None]
    });
}

#[test]
fn convolutions_of_every_geometry() {
    check_convolution(CONVOLUTION, &[2, 3, 5, 4], &[4, 3, 3, 2]);
    let uneven = ConvolutionSpec {
        stride: [2, 3, 1],
        padding: [1, 2, 0],
        dilation: [2, 1, 1],
        groups: 2,
        ..CONVOLUTION
    };
    check_convolution(uneven, &[2, 4, 7, 6], &[6, 2, 3, 2]);
    let line = ConvolutionSpec {
        spatial: 1,
        stride: [3, 1, 1],
        padding: [4, 0, 0],
        ..CONVOLUTION
    };
    check_convolution(line, &[1, 2, 5], &[3, 2, 2]);
    let volume = ConvolutionSpec {
        spatial: 3,
        stride: [1, 2, 1],
        padding: [0, 1, 1],
        groups: 3,
        ..CONVOLUTION
    };
    check_convolution(volume, &[1, 3, 3, 4, 3], &[3, 1, 2, 3, 2]);
}

#[test]
fn strides_that_leave_rows_over() {
    // Rows and columns that no window visits have gradient 0.
    let x: Vec<f64> = (1..=36).map(f64::from).collect();
    let (x, w) = (f64s(&[1, 1, 6, 6], &x), f64s(&[1, 1, 3, 3], &[1.0; 9]));
    let spec = ConvolutionSpec {
        stride: [2, 2, 1],
        ..CONVOLUTION
    };
    let y = run(Composite::Convolution(spec), &[x.clone(), w.clone()]);
    close(&y[0].values(), &[72.0, 90.0, 180.0, 198.0], 0.0);
    let dy = f64s(&[1, 1, 2, 2], &[1.0; 4]);
    let sizes = |n| ConvolutionSpec {
        sizes: [n, n, 1],
        ..spec
    };
    let dw = run(Composite::ConvolutionWeightGrad(sizes(3)), &[dy.clone(), x]);
    close(
        &dw[0].values(),
        &[32.0, 36.0, 40.0, 56.0, 60.0, 64.0, 80.0, 84.0, 88.0],
        0.0,
    );
    let dx = run(Composite::ConvolutionInputGrad(sizes(6)), &[dy, w]);
    let dx = dx[0].values();
    close(&dx[..6], &[1.0, 1.0, 2.0, 1.0, 1.0, 0.0], 0.0);
    close(&dx[12..18], &[2.0, 2.0, 4.0, 2.0, 2.0, 0.0], 0.0);
    close(&dx[30..], &[0.0; 6], 0.0);
}

#[test]
fn transposed_convolution_leaves_out_windows() {
    // One window of two fits: output padding of a transposed convolution with dilation.
    let spec = ConvolutionSpec {
        spatial: 1,
        sizes: [4, 1, 1],
        ..CONVOLUTION
    };
    let (x, w) = (
        f64s(&[1, 1, 2], &[1.0, 10.0]),
        f64s(&[1, 1, 2], &[1.0, 2.0]),
    );
    let y = run(Composite::ConvolutionInputGrad(spec), &[x, w]);
    close(&y[0].values(), &[1.0, 12.0, 20.0, 0.0], 0.0);
}

#[test]
fn max_pool_ignores_padding_and_keeps_nan() {
    let padded = PoolSpec {
        padding: [1, 1, 0],
        ..POOL
    };
    let negative = [-5.0, -6.0, -7.0, -8.0];
    let y = run(
        Composite::MaxPool(padded),
        &[f64s(&[1, 1, 2, 2], &negative)],
    );
    close(&y[0].values(), &negative, 0.0);
    for dtype in [DType::I32, DType::U8] {
        let x = HostValue::ints(dtype, &[1, 1, 2, 2], &[0, 0, 0, 0]).unwrap();
        let y = run(Composite::MaxPool(padded), &[x]);
        close(&y[0].values(), &[0.0; 4], 0.0);
        close(&y[1].values(), &[0.0, 1.0, 2.0, 3.0], 0.0);
    }
    let infinite = f64s(&[1, 1, 2, 2], &[f64::NEG_INFINITY; 4]);
    let y = run(Composite::MaxPool(padded), &[infinite]);
    close(&y[1].values(), &[0.0, 1.0, 2.0, 3.0], 0.0);
    let line = PoolSpec { spatial: 1, ..POOL };
    let y = run(
        Composite::MaxPool(line),
        &[f64s(&[1, 1, 4], &[1.0, f64::NAN, 3.0, 3.0])],
    );
    close(&y[0].values(), &[f64::NAN, 3.0], 0.0);
    close(&y[1].values(), &[1.0, 2.0], 0.0);
}

#[test]
fn max_pool_gradient_adds_up() {
    let spec = PoolSpec {
        kernel: [3, 2, 1],
        stride: [1, 2, 1],
        padding: [1, 1, 0],
        dilation: [1, 2, 1],
        ceil_mode: true,
        ..POOL
    };
    let x = random(&mut Generator::new(3, 0), &[2, 2, 4, 5]);
    let grad = PoolSpec {
        sizes: [4, 5, 1],
        ..spec
    };
    check_gradients(&Composite::MaxPool(spec), &[x], |dy, y| {
        run(Composite::MaxPoolGrad(grad), &[dy.clone(), y[1].clone()])
            .into_iter()
            .map(Some)
            .collect()
    });
}

#[test]
fn average_divides_by_what_counts() {
    let count = |n: u32| (0..n).map(f64::from).collect::<Vec<_>>();
    let ceil = PoolSpec {
        ceil_mode: true,
        ..POOL
    };
    let y = run(Composite::AvgPool(ceil), &[f64s(&[1, 1, 5, 5], &count(25))]);
    let want = [3.0, 5.0, 6.5, 13.0, 15.0, 16.5, 20.5, 22.5, 24.0];
    close(&y[0].values(), &want, 1e-15);
    let x: Vec<f64> = count(9).iter().map(|v| v + 1.0).collect();
    let x = f64s(&[1, 1, 3, 3], &x);
    let padded = |count_include_pad| PoolSpec {
        kernel: [3, 3, 1],
        padding: [1, 1, 0],
        count_include_pad,
        ..POOL
    };
    let y = run(Composite::AvgPool(padded(true)), std::slice::from_ref(&x));
    close(
        &y[0].values(),
        &[12.0 / 9.0, 16.0 / 9.0, 24.0 / 9.0, 28.0 / 9.0],
        1e-15,
    );
    let y = run(Composite::AvgPool(padded(false)), &[x]);
    close(&y[0].values(), &[3.0, 4.0, 6.0, 7.0], 1e-15);
}

#[test]
fn average_pool_gradients() {
    for (count_include_pad, ceil_mode) in [(true, true), (false, true), (false, false)] {
        let spec = PoolSpec {
            kernel: [3, 2, 1],
            stride: [2, 3, 1],
            padding: [1, 1, 0],
            ceil_mode,
            count_include_pad,
            ..POOL
        };
        let x = random(&mut Generator::new(3, 0), &[2, 2, 6, 5]);
        let grad = PoolSpec {
            sizes: [6, 5, 1],
            ..spec
        };
        check_gradients(&Composite::AvgPool(spec), &[x], |dy, _| {
            let dx = run(Composite::AvgPoolGrad(grad), std::slice::from_ref(dy));
            dx.into_iter().map(Some).collect()
        });
    }
}

#[test]
fn lookups_and_joins() {
    let x = f64s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let index = i64s(&[4], &[2, 0, 2, 1]);
    let select = Composite::IndexSelect { dim: 1 };
    let y = run(select.clone(), &[x.clone(), index.clone()]);
    close(
        &y[0].values(),
        &[3.0, 1.0, 3.0, 2.0, 6.0, 4.0, 6.0, 5.0],
        0.0,
    );
    let grad = Composite::IndexSelectGrad { dim: 1, size: 3 };
    check_gradients(&select, &[x.clone(), index.clone()], |dy, _| {
        vec![run(grad.clone(), &[dy.clone(), index.clone()]).pop(), None]
    });
    let y = run(
        Composite::Concat { dim: 1 },
        &[x.clone(), f64s(&[2, 0], &[]), f64s(&[2, 1], &[7.0, 8.0])],
    );
    close(
        &y[0].values(),
        &[1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0, 8.0],
        0.0,
    );
    let linear = Composite::Linear;
    let mut generator = Generator::new(1, 1);
    let (w, b) = (
        random(&mut generator, &[2, 3]),
        random(&mut generator, &[2]),
    );
    let y = run(linear, &[x.clone(), w.clone(), b.clone()]);
    let (x, w, b) = (x.values(), w.values(), b.values());
    let want: Vec<f64> = (0..4)
        .map(|i| {
            b[i % 2]
                + (0..3)
                    .map(|k| x[i / 2 * 3 + k] * w[i % 2 * 3 + k])
                    .sum::<f64>()
        })
        .collect();
    close(&y[0].values(), &want, 1e-14);
}
