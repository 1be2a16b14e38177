//! Max and average pooling over windows that are views, and their gradients.

use super::convolution::spread;
use crate::program::{Builder, Value};
use crate::{
    BinaryOp, CompareOp, DType, DimSet, MAX_DIMS, PoolSpec, Primitive, ReduceOp, Result, Scalar,
    ScatterMode, Shape, ViewOp,
};

/// Pooled sizes for an image `[…, spatial…]`; inference has checked that windows fit.
fn counts(spec: &PoolSpec, image: &[usize]) -> Vec<usize> {
    let sizes = image.iter().enumerate();
    sizes
        .map(|(i, &size)| spec.output_size(i, size).unwrap_or(0))
        .collect()
}

/// Windows of x `[first, second, spatial…]`, padded with `value`, as a view `[first, second, out…, kernel…]`. Windows that
/// reach past the padding (ceil mode) see more of it.
fn windows(
    b: &mut Builder,
    x: Value,
    spec: &PoolSpec,
    counts: &[usize],
    value: Scalar,
) -> Result<Value> {
    let mut shape = b.shape(x);
    let mut start = [0; MAX_DIMS];
    let reach = |i: usize| (spec.kernel[i] - 1) * spec.dilation[i] + 1;
    for (i, &count) in counts.iter().enumerate() {
        let end = (count - 1) * spec.stride[i] + reach(i);
        start[2 + i] = spec.padding[i];
        let padded = (shape[2 + i] + 2 * spec.padding[i]).max(end);
        shape = shape.with(2 + i, padded)?;
    }
    let mut view = b.pad(x, shape, start, [1; MAX_DIMS], value)?;
    for (i, &count) in counts.iter().enumerate() {
        let unfold = ViewOp::Unfold {
            dim: 2 + i,
            size: reach(i),
            step: spec.stride[i],
        };
        view = b.view(unfold, view)?;
        view = b.slice(view, 2 + i, 0, 1, count)?;
        let last = b.shape(view).rank() - 1;
        view = b.slice(view, last, 0, spec.dilation[i] as isize, spec.kernel[i])?;
    }
    Ok(view)
}

/// The tap dimensions of windows.
fn taps(spatial: usize) -> DimSet {
    let dims: Vec<usize> = (2 + spatial..2 + 2 * spatial).collect();
    DimSet::of(&dims)
}

/// The least value of a dtype.
fn least(dtype: DType) -> Scalar {
    match dtype {
        DType::I64 => Scalar::I64(i64::MIN),
        DType::I32 => Scalar::I64(i64::from(i32::MIN)),
        DType::U8 | DType::Bool => Scalar::I64(0),
        DType::F32 | DType::F64 | DType::F16 | DType::BF16 => Scalar::F64(f64::NEG_INFINITY),
    }
}

/// Values and their flat indices. The index is the least of those that hold the largest value, and padding
/// has an index above all others, so that padding is never pointed at, even where the image holds its value.
pub(super) fn max(b: &mut Builder, x: Value, spec: &PoolSpec) -> Result<Vec<Value>> {
    let meta = b.meta(x);
    let spatial = usize::from(spec.spatial);
    let image = &meta.shape.dims()[2..];
    let counts = counts(spec, image);
    let dims = taps(spatial);
    let view = windows(b, x, spec, &counts, least(meta.dtype))?;
    let largest = b.reduce(ReduceOp::Max, view, dims)?;
    let mut hit = b.compare(CompareOp::Eq, view, largest)?;
    if meta.dtype.is_float() {
        let nan = b.compare(CompareOp::Ne, view, view)?;
        hit = b.binary(BinaryOp::LogicalOr, hit, nan)?;
    }
    let total: usize = image.iter().product();
    let flat = b.iota(0, DType::I64, Shape::new(&[total])?)?;
    let mut sizes = vec![1, 1];
    sizes.extend_from_slice(image);
    let flat = b.reshape(flat, &sizes)?;
    let beyond = Scalar::I64(total as i64);
    let places = windows(b, flat, spec, &counts, beyond)?;
    let beyond = b.fill(beyond, DType::I64, Shape::SCALAR)?;
    let candidates = b.select(hit, places, beyond)?;
    let index = b.reduce(ReduceOp::Min, candidates, dims)?;
    let mut result = vec![meta.shape[0], meta.shape[1]];
    result.extend_from_slice(&counts);
    Ok(vec![
        b.reshape(largest, &result)?,
        b.reshape(index, &result)?,
    ])
}

/// dy added up where the indices point.
pub(super) fn max_grad(b: &mut Builder, dy: Value, index: Value, spec: &PoolSpec) -> Result<Value> {
    let meta = b.meta(dy);
    let sizes = &spec.sizes[..usize::from(spec.spatial)];
    let (n, c) = (meta.shape[0], meta.shape[1]);
    let positions = meta.shape.dims()[2..].iter().product();
    let dy = b.wide(dy)?;
    let dy = b.reshape(dy, &[n, c, positions])?;
    let index = b.reshape(index, &[n, c, positions])?;
    let flat = Shape::new(&[n, c, sizes.iter().product()])?;
    let dx = b.zeros(b.meta(dy).dtype, flat)?;
    let mode = ScatterMode::Add;
    b.run_in_place(Primitive::Scatter { dim: 2, mode }, &[index, dy], dx)?;
    let dx = b.cast(dx, meta.dtype)?;
    let mut dims = vec![n, c];
    dims.extend_from_slice(sizes);
    b.reshape(dx, &dims)
}

/// x divided by how many elements of each window count: those of the image, or of image and padding.
fn divide_by_counts(
    b: &mut Builder,
    mut x: Value,
    spec: &PoolSpec,
    image: &[usize],
) -> Result<Value> {
    for (i, &size) in image.iter().enumerate() {
        let shape = b.shape(x);
        let (count, kernel) = (shape[2 + i], spec.kernel[i]);
        let padding = spec.padding[i];
        let (low, high) = if spec.count_include_pad {
            (0, size + 2 * padding)
        } else {
            (padding, size + padding)
        };
        if low == 0 && (count - 1) * spec.stride[i] + kernel <= high {
            x = b.scalar(BinaryOp::Div, x, kernel as f64)?;
            continue;
        }
        let mut row = vec![1; shape.rank()];
        row[2 + i] = count;
        let number = b.iota(2 + i, DType::I64, Shape::new(&row)?)?;
        let first = b.scalar(BinaryOp::Mul, number, spec.stride[i] as i64)?;
        let last = b.scalar(BinaryOp::Add, first, kernel as i64)?;
        let first = b.scalar(BinaryOp::Maximum, first, low as i64)?;
        let last = b.scalar(BinaryOp::Minimum, last, high as i64)?;
        let within = b.sub(last, first)?;
        let within = b.cast(within, b.meta(x).dtype)?;
        x = b.div(x, within)?;
    }
    Ok(x)
}

pub(super) fn avg(b: &mut Builder, x: Value, spec: &PoolSpec) -> Result<Value> {
    let meta = b.meta(x);
    let image = &meta.shape.dims()[2..];
    let counts = counts(spec, image);
    let x = b.wide(x)?;
    let view = windows(b, x, spec, &counts, Scalar::F64(0.0))?;
    let sum = b.sum(view, taps(image.len()))?;
    let mut dims = vec![meta.shape[0], meta.shape[1]];
    dims.extend_from_slice(&counts);
    let sum = b.reshape(sum, &dims)?;
    let mean = divide_by_counts(b, sum, spec, image)?;
    b.cast(mean, meta.dtype)
}

/// dy divided as forward, then for each element of the image the sum over the windows that held it.
pub(super) fn avg_grad(b: &mut Builder, dy: Value, spec: &PoolSpec) -> Result<Value> {
    let dtype = b.meta(dy).dtype;
    let sizes = &spec.sizes[..usize::from(spec.spatial)];
    let dy = b.wide(dy)?;
    let mut dx = divide_by_counts(b, dy, spec, sizes)?;
    for (i, &size) in sizes.iter().enumerate() {
        let (kernel, stride, padding) = (spec.kernel[i], spec.stride[i], spec.padding[i]);
        let image = spread(b, dx, 2 + i, size, kernel, stride, padding)?;
        let unfold = ViewOp::Unfold {
            dim: 2 + i,
            size: kernel,
            step: 1,
        };
        let view = b.view(unfold, image)?;
        let last = b.shape(view).rank() - 1;
        let sum = b.sum(view, DimSet::of(&[last]))?;
        dx = b.reshape(sum, &b.shape(sum).dims()[..last])?;
    }
    b.cast(dx, dtype)
}
