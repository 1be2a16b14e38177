//! Layer norm, RMS norm and batch norm: statistics in two passes, in the accumulation type.

use crate::program::{Builder, Value};
use crate::{DimSet, NormSpec, Result, UnaryOp};

/// The last `count` dimensions of x.
fn trailing(b: &Builder, x: Value, count: u8) -> DimSet {
    let rank = b.shape(x).rank();
    DimSet::from_bits(DimSet::all(rank).bits() & !DimSet::all(rank - usize::from(count)).bits())
}

/// All dimensions of x but those of `dims`.
fn others(b: &Builder, x: Value, dims: DimSet) -> DimSet {
    DimSet::from_bits(DimSet::all(b.shape(x).rank()).bits() & !dims.bits())
}

/// All dimensions of `[N, C, …]` but C.
fn all_but_channel(b: &Builder, x: Value) -> DimSet {
    others(b, x, DimSet::of(&[1]))
}

/// Mean, x minus it, and the mean of that squared.
fn moments(b: &mut Builder, x: Value, dims: DimSet) -> Result<[Value; 3]> {
    let mean = b.mean(x, dims)?;
    let centred = b.sub(x, mean)?;
    let squared = b.square(centred)?;
    let variance = b.mean(squared, dims)?;
    Ok([mean, centred, variance])
}

/// 1/√(v + eps).
fn reciprocal_root(b: &mut Builder, v: Value, eps: f64) -> Result<Value> {
    let shifted = b.plus(v, eps)?;
    b.unary(UnaryOp::Rsqrt, shifted)
}

/// x·weight + bias in x's type, where they are given.
fn affine(
    b: &mut Builder,
    mut x: Value,
    weight: Option<Value>,
    bias: Option<Value>,
) -> Result<Value> {
    if let Some(weight) = weight {
        let weight = b.wide(weight)?;
        x = b.mul(x, weight)?;
    }
    if let Some(bias) = bias {
        let bias = b.wide(bias)?;
        x = b.add(x, bias)?;
    }
    Ok(x)
}

/// The sum over `dims` in the parameter's dtype and shape.
fn parameter_grad(b: &mut Builder, x: Value, dims: DimSet, like: Value) -> Result<Value> {
    let meta = b.meta(like);
    let sum = b.sum(x, dims)?;
    let sum = b.cast(sum, meta.dtype)?;
    b.reshape(sum, meta.shape.dims())
}

/// rstd·(g - mean(g) - x̂·mean(g·x̂)) over `dims`; without the first mean for RMS norm.
fn input_grad(
    b: &mut Builder,
    g: Value,
    normal: Value,
    rstd: Value,
    dims: DimSet,
    centred: bool,
) -> Result<Value> {
    let product = b.mul(g, normal)?;
    let slope = b.mean(product, dims)?;
    let along = b.mul(normal, slope)?;
    let mut inner = b.sub(g, along)?;
    if centred {
        let mean = b.mean(g, dims)?;
        inner = b.sub(inner, mean)?;
    }
    b.mul(inner, rstd)
}

pub(super) fn layer_norm(b: &mut Builder, v: &[Value], spec: &NormSpec) -> Result<Vec<Value>> {
    let dtype = b.meta(v[0]).dtype;
    let dims = trailing(b, v[0], spec.dims);
    let x = b.wide(v[0])?;
    let [mean, centred, variance] = moments(b, x, dims)?;
    let rstd = reciprocal_root(b, variance, spec.eps)?;
    let normal = b.mul(centred, rstd)?;
    let y = affine(b, normal, v.get(1).copied(), v.get(2).copied())?;
    Ok(vec![b.cast(y, dtype)?, mean, rstd])
}

/// Of dy, x, mean, rstd, [weight].
pub(super) fn layer_norm_grad(b: &mut Builder, v: &[Value], spec: &NormSpec) -> Result<Vec<Value>> {
    let dtype = b.meta(v[1]).dtype;
    let dims = trailing(b, v[1], spec.dims);
    let (dy, x) = (b.wide(v[0])?, b.wide(v[1])?);
    let centred = b.sub(x, v[2])?;
    let normal = b.mul(centred, v[3])?;
    let weight = v.get(4).copied();
    let g = affine(b, dy, weight, None)?;
    let dx = input_grad(b, g, normal, v[3], dims, true)?;
    let mut outputs = vec![b.cast(dx, dtype)?];
    if let Some(weight) = weight {
        let rows = others(b, x, dims);
        let product = b.mul(dy, normal)?;
        outputs.push(parameter_grad(b, product, rows, weight)?);
        outputs.push(bias_grad(b, dy, v[0], rows, weight)?);
    }
    Ok(outputs)
}

/// The bias's gradient: a sum of dy, copied where nothing is summed, for an output is never an input.
fn bias_grad(b: &mut Builder, dy: Value, given: Value, dims: DimSet, like: Value) -> Result<Value> {
    let dy = if dims.is_empty() && dy == given {
        b.copy(dy)?
    } else {
        dy
    };
    parameter_grad(b, dy, dims, like)
}

pub(super) fn rms_norm(b: &mut Builder, v: &[Value], spec: &NormSpec) -> Result<Vec<Value>> {
    let dtype = b.meta(v[0]).dtype;
    let dims = trailing(b, v[0], spec.dims);
    let x = b.wide(v[0])?;
    let squared = b.square(x)?;
    let mean = b.mean(squared, dims)?;
    let rstd = reciprocal_root(b, mean, spec.eps)?;
    let normal = b.mul(x, rstd)?;
    let y = affine(b, normal, v.get(1).copied(), None)?;
    Ok(vec![b.cast(y, dtype)?, rstd])
}

/// Of dy, x, rstd, [weight].
pub(super) fn rms_norm_grad(b: &mut Builder, v: &[Value], spec: &NormSpec) -> Result<Vec<Value>> {
    let dtype = b.meta(v[1]).dtype;
    let dims = trailing(b, v[1], spec.dims);
    let (dy, x) = (b.wide(v[0])?, b.wide(v[1])?);
    let normal = b.mul(x, v[2])?;
    let weight = v.get(3).copied();
    let g = affine(b, dy, weight, None)?;
    let dx = input_grad(b, g, normal, v[2], dims, false)?;
    let mut outputs = vec![b.cast(dx, dtype)?];
    if let Some(weight) = weight {
        let product = b.mul(dy, normal)?;
        let rows = others(b, x, dims);
        outputs.push(parameter_grad(b, product, rows, weight)?);
    }
    Ok(outputs)
}

/// `[C]` as `[1, C, 1, …]` in the accumulation type.
fn channel_row(b: &mut Builder, value: Value, rank: usize) -> Result<Value> {
    let mut dims = [1; crate::MAX_DIMS];
    dims[1] = b.shape(value)[0];
    let wide = b.wide(value)?;
    b.reshape(wide, &dims[..rank])
}

pub(super) fn batch_norm(
    b: &mut Builder,
    v: &[Value],
    eps: f64,
    is_affine: bool,
) -> Result<Vec<Value>> {
    let meta = b.meta(v[0]);
    let (rank, channels) = (meta.shape.rank(), [meta.shape[1]]);
    let dims = all_but_channel(b, v[0]);
    let x = b.wide(v[0])?;
    let [mean, centred, variance] = moments(b, x, dims)?;
    let rstd = reciprocal_root(b, variance, eps)?;
    let mut y = b.mul(centred, rstd)?;
    if is_affine {
        let (weight, bias) = (channel_row(b, v[1], rank)?, channel_row(b, v[2], rank)?);
        y = affine(b, y, Some(weight), Some(bias))?;
    }
    Ok(vec![
        b.cast(y, meta.dtype)?,
        b.reshape(mean, &channels)?,
        b.reshape(variance, &channels)?,
    ])
}

/// Of dy, x, mean, variance, [weight].
pub(super) fn batch_norm_grad(
    b: &mut Builder,
    v: &[Value],
    eps: f64,
    is_affine: bool,
) -> Result<Vec<Value>> {
    let meta = b.meta(v[1]);
    let rank = meta.shape.rank();
    let dims = all_but_channel(b, v[1]);
    let (dy, x) = (b.wide(v[0])?, b.wide(v[1])?);
    let mean = channel_row(b, v[2], rank)?;
    let variance = channel_row(b, v[3], rank)?;
    let rstd = reciprocal_root(b, variance, eps)?;
    let centred = b.sub(x, mean)?;
    let normal = b.mul(centred, rstd)?;
    let mut g = dy;
    if is_affine {
        let weight = channel_row(b, v[4], rank)?;
        g = b.mul(g, weight)?;
    }
    let dx = input_grad(b, g, normal, rstd, dims, true)?;
    let mut outputs = vec![b.cast(dx, meta.dtype)?];
    if is_affine {
        let product = b.mul(dy, normal)?;
        outputs.push(parameter_grad(b, product, dims, v[4])?);
        outputs.push(parameter_grad(b, dy, dims, v[4])?);
    }
    Ok(outputs)
}
