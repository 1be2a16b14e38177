//! Convolutions and pooling agree with core's decompositions, and with known answers.

mod common;
mod decomposed;

use common::*;
use decomposed::*;
use drivetrain_core::random::Generator;
use drivetrain_core::{Composite, ConvolutionSpec, DType, PoolSpec, Scalar};

fn normal(generator: &mut Generator, dtype: DType, dims: &[usize], lie: Lie) -> Held {
    scattered(generator, dtype, dims, lie, &mut |g: &mut Generator| {
        Scalar::F64(g.normal())
    })
}

fn convolution(spatial: u8, stride: usize, padding: usize, dilation: usize) -> ConvolutionSpec {
    let within = |value: usize, neutral: usize| {
        std::array::from_fn(|i| {
            if i < usize::from(spatial) {
                value
            } else {
                neutral
            }
        })
    };
    ConvolutionSpec {
        spatial,
        stride: within(stride, 1),
        padding: within(padding, 0),
        dilation: within(dilation, 1),
        groups: 1,
        sizes: [1; 3],
    }
}

/// A convolution of these sizes and its two gradients.
fn check(
    generator: &mut Generator,
    dtype: DType,
    spec: ConvolutionSpec,
    [batch, channels, outs]: [usize; 3],
    image: &[usize],
    kernel: &[usize],
) {
    let groups = spec.groups;
    let x = normal(
        generator,
        dtype,
        &[&[batch, channels], image].concat(),
        Lie::Mixed,
    );
    let dims = [&[outs, channels / groups], kernel].concat();
    let weight = normal(generator, dtype, &dims, Lie::Mixed);
    let bias = normal(generator, dtype, &[outs], Lie::Mixed);
    agree(Composite::Convolution(spec), &[&x, &weight]);
    let y = agree(Composite::Convolution(spec), &[&x, &weight, &bias]).remove(0);
    let dy = normal(generator, dtype, y.dims(), Lie::Mixed);
    let mut sized = spec;
    sized.sizes[..image.len()].copy_from_slice(image);
    agree(Composite::ConvolutionInputGrad(sized), &[&dy, &weight]);
    let mut sized = spec;
    sized.sizes[..image.len()].copy_from_slice(kernel);
    agree(Composite::ConvolutionWeightGrad(sized), &[&dy, &x]);
}

#[test]
fn convolutions_of_all_dimensions() {
    let mut g = Generator::new(1, 0);
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (stride, padding, dilation) in [(1, 0, 1), (1, 1, 1), (2, 1, 1), (3, 2, 2), (1, 5, 2)] {
            for groups in [1, 2, 4] {
                let with = |spatial| ConvolutionSpec {
                    groups,
                    ..convolution(spatial, stride, padding, dilation)
                };
                check(&mut g, dtype, with(1), [3, 4, 8], &[17], &[3]);
                check(&mut g, dtype, with(2), [2, 4, 4], &[9, 7], &[3, 2]);
                check(&mut g, dtype, with(3), [1, 4, 4], &[5, 6, 7], &[2, 3, 1]);
            }
        }
        let plain = convolution(2, 1, 0, 1);
        check(&mut g, dtype, plain, [1, 1, 1], &[1, 1], &[1, 1]);
        check(&mut g, dtype, plain, [2, 6, 5], &[4, 3], &[1, 1]);
        check(
            &mut g,
            dtype,
            convolution(2, 2, 0, 1),
            [2, 3, 2],
            &[5, 4],
            &[1, 1],
        );
    }
}

#[test]
fn convolutions_of_several_tiles_and_parts() {
    let mut g = Generator::new(2, 0);
    let same = convolution(2, 1, 1, 1);
    check(&mut g, DType::F32, same, [2, 40, 8], &[40, 36], &[3, 3]);
    check(&mut g, DType::F32, same, [20, 3, 9], &[12, 12], &[3, 3]);
    check(&mut g, DType::F64, same, [1, 70, 33], &[9, 30], &[3, 3]);
    let depthwise = ConvolutionSpec { groups: 24, ..same };
    check(
        &mut g,
        DType::F32,
        depthwise,
        [3, 24, 48],
        &[14, 14],
        &[3, 3],
    );
}

/// B033: a stride that does not divide evenly leaves rows that no window visits.
#[test]
fn b033_uneven_strides() {
    let ones = hold_f32(&[1, 1, 3, 3], &[1.0; 9]);
    let values: Vec<f32> = (1..=36).map(|v| v as f32).collect();
    let x = hold_f32(&[1, 1, 6, 6], &values);
    let spec = convolution(2, 2, 0, 1);
    let y = agree(Composite::Convolution(spec), &[&x, &ones]).remove(0);
    assert_eq!(y.floats(), [72.0, 90.0, 180.0, 198.0]);
    let dy = hold_f32(&[1, 1, 2, 2], &[1.0; 4]);
    let sized = ConvolutionSpec {
        sizes: [3, 3, 1],
        ..spec
    };
    let dw = agree(Composite::ConvolutionWeightGrad(sized), &[&dy, &x]).remove(0);
    let expected = [32.0, 36.0, 40.0, 56.0, 60.0, 64.0, 80.0, 84.0, 88.0];
    assert_eq!(dw.floats(), expected);
    let sized = ConvolutionSpec {
        sizes: [6, 6, 1],
        ..spec
    };
    let dx = agree(Composite::ConvolutionInputGrad(sized), &[&dy, &ones])
        .remove(0)
        .floats();
    assert_eq!(dx[..6], [1.0, 1.0, 2.0, 1.0, 1.0, 0.0]);
    assert_eq!(dx[12..18], [2.0, 2.0, 4.0, 2.0, 2.0, 0.0]);
    assert_eq!(dx[30..], [0.0; 6]);
    let x = hold_f32(&[1, 1, 5, 5], &values[..25]);
    let spec = convolution(2, 2, 1, 1);
    let y = agree(Composite::Convolution(spec), &[&x, &ones]).remove(0);
    let expected = [16.0, 33.0, 28.0, 69.0, 117.0, 87.0, 76.0, 123.0, 88.0];
    assert_eq!(y.floats(), expected);
    let dy = hold_f32(&[1, 1, 3, 3], &[1.0; 9]);
    let sized = ConvolutionSpec {
        sizes: [3, 3, 1],
        ..spec
    };
    let dw = agree(Composite::ConvolutionWeightGrad(sized), &[&dy, &x]).remove(0);
    let expected = [52.0, 78.0, 52.0, 78.0, 117.0, 78.0, 52.0, 78.0, 52.0];
    assert_eq!(dw.floats(), expected);
    let sized = ConvolutionSpec {
        sizes: [5, 5, 1],
        ..spec
    };
    let dx = agree(Composite::ConvolutionInputGrad(sized), &[&dy, &ones])
        .remove(0)
        .floats();
    assert_eq!(dx[..10], [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 4.0, 2.0]);
}

fn pool(spatial: u8, kernel: usize, stride: usize, padding: usize) -> PoolSpec {
    let within = |value: usize, neutral: usize| {
        std::array::from_fn(|i| {
            if i < usize::from(spatial) {
                value
            } else {
                neutral
            }
        })
    };
    PoolSpec {
        spatial,
        kernel: within(kernel, 1),
        stride: within(stride, 1),
        padding: within(padding, 0),
        dilation: [1; 3],
        ceil_mode: false,
        count_include_pad: false,
        sizes: [1; 3],
    }
}

#[test]
fn pools() {
    let mut g = Generator::new(3, 0);
    let floats = [DType::F32, DType::F64, DType::F16, DType::BF16];
    for dtype in floats
        .into_iter()
        .chain([DType::I64, DType::I32, DType::U8])
    {
        for (kernel, stride, padding) in [(1, 1, 0), (2, 2, 0), (3, 2, 1), (2, 3, 1), (3, 1, 1)] {
            for option in 0..4 {
                for image in [&[13][..], &[6, 9], &[5, 4, 7]] {
                    let mut spec = pool(image.len() as u8, kernel, stride, padding);
                    spec.ceil_mode = option & 1 == 1;
                    spec.count_include_pad = option & 2 == 2;
                    let dims = [&[2, 3], image].concat();
                    let x = scattered(&mut g, dtype, &dims, Lie::Mixed, &mut special(dtype));
                    let mut dilated = spec;
                    dilated.dilation[0] = 1 + usize::from(option & 2 == 2);
                    let out = agree(Composite::MaxPool(dilated), &[&x]);
                    if !dtype.is_float() {
                        continue;
                    }
                    let dy = normal(&mut g, dtype, out[0].dims(), Lie::Mixed);
                    dilated.sizes[..image.len()].copy_from_slice(image);
                    agree(Composite::MaxPoolGrad(dilated), &[&dy, &out[1]]);
                    let x = normal(&mut g, dtype, &dims, Lie::Mixed);
                    let y = agree(Composite::AvgPool(spec), &[&x]).remove(0);
                    let dy = normal(&mut g, dtype, y.dims(), Lie::Mixed);
                    spec.sizes[..image.len()].copy_from_slice(image);
                    agree(Composite::AvgPoolGrad(spec), &[&dy]);
                }
            }
        }
    }
}

/// B067: padding is minus infinity, NaN wins, and indices stay inside where all is minus infinity.
#[test]
fn b067_max_pool_of_negative_numbers() {
    let spec = pool(2, 2, 2, 1);
    let values = [-5, -6, -7, -8];
    for dtype in [DType::F32, DType::I32] {
        let x = hold(dtype, &[1, 1, 2, 2], &values.map(Scalar::I64));
        let out = agree(Composite::MaxPool(spec), &[&x]);
        assert_eq!(out[0].integers(), values);
        assert_eq!(out[1].integers(), [0, 1, 2, 3]);
    }
    let x = hold_f32(&[1, 1, 4], &[1.0, f32::NAN, 2.0, 3.0]);
    let y = agree(Composite::MaxPool(pool(1, 2, 2, 0)), &[&x])
        .remove(0)
        .floats();
    assert!(y[0].is_nan() && y[1] == 3.0, "{y:?}");
    let x = hold_f32(&[1, 1, 2, 2], &[f32::NEG_INFINITY; 4]);
    let out = agree(Composite::MaxPool(spec), &[&x]);
    assert_eq!(out[1].integers(), [0, 1, 2, 3]);
    let sized = PoolSpec {
        sizes: [2, 2, 1],
        ..spec
    };
    let dy = hold_f32(&[1, 1, 2, 2], &[1.0; 4]);
    let dx = agree(Composite::MaxPoolGrad(sized), &[&dy, &out[1]]).remove(0);
    assert_eq!(dx.floats(), [1.0; 4]);
}

/// B069: divisors at the edges.
#[test]
fn b069_average_pool_divisors() {
    let average = |spec: PoolSpec, side: usize, from: i64| {
        let values: Vec<f32> = (0..side * side).map(|v| (v as i64 + from) as f32).collect();
        let x = hold_f32(&[1, 1, side, side], &values);
        agree(Composite::AvgPool(spec), &[&x]).remove(0).floats()
    };
    let mut spec = pool(2, 2, 2, 0);
    spec.ceil_mode = true;
    let expected = [3.0, 5.0, 6.5, 13.0, 15.0, 16.5, 20.5, 22.5, 24.0];
    assert_eq!(average(spec, 5, 0), expected);
    let mut spec = pool(2, 3, 2, 1);
    assert_eq!(average(spec, 3, 1), [3.0, 4.0, 6.0, 7.0]);
    spec.count_include_pad = true;
    let got = average(spec, 3, 1);
    let expected = [1.3333333, 1.7777778, 2.6666667, 3.1111111];
    let near = got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-6);
    assert!(near, "{got:?}");
}

#[test]
fn an_index_outside_its_plane_is_an_error() {
    let dy = hold_f32(&[1, 1, 2, 2], &[1.0; 4]);
    let spec = PoolSpec {
        sizes: [4, 4, 1],
        ..pool(2, 2, 2, 0)
    };
    for value in [16, -1] {
        let index = hold_i64(&[1, 1, 2, 2], &[0, 2, value, 10]);
        let image = (DType::F32, &[1, 1, 4, 4][..]);
        let error = run(Composite::MaxPoolGrad(spec), &[&dy, &index], &[image])
            .err()
            .unwrap();
        assert!(
            error.to_string().contains(&format!("index {value}")),
            "{error}"
        );
    }
}
