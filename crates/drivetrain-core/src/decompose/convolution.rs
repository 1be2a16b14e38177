//! Convolutions as matrix products over windows that are views, and their gradients.

use crate::program::{Builder, Value};
use crate::{Composite, ConvolutionSpec, MAX_DIMS, Result, Scalar, Shape, ViewOp};

/// Zeros around the spatial dimensions of `[N, C, spatial…]`.
fn pad(b: &mut Builder, x: Value, spec: &ConvolutionSpec) -> Result<Value> {
    let mut shape = b.shape(x);
    let mut start = [0; MAX_DIMS];
    for i in 0..usize::from(spec.spatial) {
        start[2 + i] = spec.padding[i];
        shape = shape.with(2 + i, shape[2 + i] + 2 * spec.padding[i])?;
    }
    b.pad(x, shape, start, [1; MAX_DIMS], Scalar::F64(0.0))
}

/// Windows of padded x `[N, C, spatial…]` as a view `[N, groups, C/groups, out…, kernel…]`.
fn windows(
    b: &mut Builder,
    x: Value,
    kernel: &[usize],
    counts: &[usize],
    spec: &ConvolutionSpec,
) -> Result<Value> {
    let padded = pad(b, x, spec)?;
    let shape = b.shape(padded);
    let mut dims = vec![shape[0], spec.groups, shape[1] / spec.groups];
    dims.extend_from_slice(&shape.dims()[2..]);
    let mut view = b.reshape(padded, &dims)?;
    for (i, (&taps, &count)) in kernel.iter().zip(counts).enumerate() {
        let dilation = spec.dilation[i];
        let unfold = ViewOp::Unfold {
            dim: 3 + i,
            size: (taps - 1) * dilation + 1,
            step: spec.stride[i],
        };
        view = b.view(unfold, view)?;
        view = b.slice(view, 3 + i, 0, 1, count)?;
        let last = b.shape(view).rank() - 1;
        view = b.slice(view, last, 0, dilation as isize, taps)?;
    }
    Ok(view)
}

/// The dimensions of windows: batch, group, channel, then positions, then taps.
fn order(spatial: usize) -> (Vec<usize>, Vec<usize>) {
    (
        (3..3 + spatial).collect(),
        (3 + spatial..3 + 2 * spatial).collect(),
    )
}

/// Of x, weight, [bias]: weight `[N, groups, O/groups, C/groups·kernel]` times the windows as columns.
pub(super) fn forward(b: &mut Builder, v: &[Value], spec: &ConvolutionSpec) -> Result<Value> {
    let (x, weight) = (b.shape(v[0]), b.shape(v[1]));
    let (spatial, groups) = (usize::from(spec.spatial), spec.groups);
    let kernel = &weight.dims()[2..];
    let counts = counts(spec, &x.dims()[2..], kernel);
    let view = windows(b, v[0], kernel, &counts, spec)?;
    let inner = weight[1] * kernel.iter().product::<usize>();
    let positions: usize = counts.iter().product();
    let (places, taps) = order(spatial);
    let axes: Vec<usize> = [&[0, 1, 2], &taps[..], &places[..]].concat();
    let columns = b.permute(view, &axes)?;
    let columns = b.reshape(columns, &[x[0], groups, inner, positions])?;
    let rows = [1, groups, weight[0] / groups, inner];
    let matrix = b.reshape(v[1], &rows)?;
    let matrix = b.expand(matrix, Shape::new(&rows)?.with(0, x[0])?)?;
    let y = b.matmul(matrix, columns)?;
    let mut dims = vec![x[0], weight[0]];
    dims.extend_from_slice(&counts);
    let mut y = b.reshape(y, &dims)?;
    if let Some(&bias) = v.get(2) {
        let mut row = vec![1; 2 + spatial];
        row[1] = weight[0];
        let bias = b.reshape(bias, &row)?;
        y = b.add(y, bias)?;
    }
    Ok(y)
}

/// Windows along each spatial dimension; inference has checked that they fit.
fn counts(spec: &ConvolutionSpec, image: &[usize], kernel: &[usize]) -> Vec<usize> {
    let sizes = image.iter().zip(kernel).enumerate();
    sizes
        .map(|(i, (&size, &taps))| spec.output_size(i, size, taps).unwrap_or(0))
        .collect()
}

/// dy spread by the stride into zeros, so that windows of `reach` positions, one apart, over it see for each
/// of the `size` input positions the outputs it went to. Along dimension `dim`.
pub(super) fn spread(
    b: &mut Builder,
    dy: Value,
    dim: usize,
    size: usize,
    reach: usize,
    stride: usize,
    padding: usize,
) -> Result<Value> {
    let shape = b.shape(dy);
    // Output o goes to position first + o·stride of `length`; with much padding the ends fall outside.
    let first = reach as i128 - 1 - padding as i128;
    let length = size + reach - 1;
    let place = |o: usize| first + o as i128 * stride as i128;
    let inside = |o: &usize| (0..length as i128).contains(&place(*o));
    let (from, to) = (
        (0..shape[dim]).find(inside),
        (0..shape[dim]).rev().find(inside),
    );
    let wanted = shape.with(dim, length)?;
    let (Some(from), Some(to)) = (from, to) else {
        return b.zeros(b.meta(dy).dtype, wanted);
    };
    let kept = b.slice(dy, dim, from, 1, to - from + 1)?;
    let (mut start, mut step) = ([0; MAX_DIMS], [1; MAX_DIMS]);
    start[dim] = place(from) as usize;
    step[dim] = stride as isize;
    b.pad(kept, wanted, start, step, Scalar::F64(0.0))
}

/// dx: a convolution, with stride 1, of the spread dy by the kernel turned round, channels exchanged.
pub(super) fn input_grad(
    b: &mut Builder,
    dy: Value,
    weight: Value,
    spec: &ConvolutionSpec,
) -> Result<Value> {
    let (spatial, groups) = (usize::from(spec.spatial), spec.groups);
    let shape = b.shape(weight);
    let mut image = dy;
    for i in 0..spatial {
        let reach = (shape[2 + i] - 1) * spec.dilation[i] + 1;
        let (stride, padding) = (spec.stride[i], spec.padding[i]);
        image = spread(b, image, 2 + i, spec.sizes[i], reach, stride, padding)?;
    }
    let mut kernel = weight;
    for i in 0..spatial {
        kernel = b.flip(kernel, 2 + i)?;
    }
    // [groups, O/groups, C/groups, …] to [groups, C/groups, O/groups, …].
    let mut dims = vec![groups, shape[0] / groups, shape[1]];
    dims.extend_from_slice(&shape.dims()[2..]);
    kernel = b.reshape(kernel, &dims)?;
    let axes: Vec<usize> = [0, 2, 1].into_iter().chain(3..3 + spatial).collect();
    kernel = b.permute(kernel, &axes)?;
    let mut dims = vec![groups * shape[1], shape[0] / groups];
    dims.extend_from_slice(&shape.dims()[2..]);
    kernel = b.reshape(kernel, &dims)?;
    let plain = ConvolutionSpec {
        stride: [1; 3],
        padding: [0; 3],
        sizes: [1; 3],
        ..*spec
    };
    b.composite(Composite::Convolution(plain), &[image, kernel])
}

/// dweight: dy `[groups, O/groups, N·out]` times the windows `[groups, N·out, C/groups·kernel]`.
pub(super) fn weight_grad(
    b: &mut Builder,
    dy: Value,
    x: Value,
    spec: &ConvolutionSpec,
) -> Result<Value> {
    let (spatial, groups) = (usize::from(spec.spatial), spec.groups);
    let (out, image) = (b.shape(dy), b.shape(x));
    let kernel = &spec.sizes[..spatial];
    let view = windows(b, x, kernel, &out.dims()[2..], spec)?;
    let (places, taps) = order(spatial);
    let axes: Vec<usize> = [&[1, 0], &places[..], &[2], &taps[..]].concat();
    let view = b.permute(view, &axes)?;
    let inner = image[1] / groups * kernel.iter().product::<usize>();
    let summed = out[0] * out.dims()[2..].iter().product::<usize>();
    let columns = b.reshape(view, &[groups, summed, inner])?;
    let mut dims = vec![out[0], groups, out[1] / groups];
    dims.extend_from_slice(&out.dims()[2..]);
    let rows = b.reshape(dy, &dims)?;
    let axes: Vec<usize> = [1, 2, 0].into_iter().chain(3..3 + spatial).collect();
    let rows = b.permute(rows, &axes)?;
    let rows = b.reshape(rows, &[groups, out[1] / groups, summed])?;
    let product = b.matmul(rows, columns)?;
    let mut dims = vec![out[1], image[1] / groups];
    dims.extend_from_slice(kernel);
    b.reshape(product, &dims)
}
