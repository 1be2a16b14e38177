//! Looking up, adding back, joining and padding along dimensions.

use crate::program::{Builder, Value};
use crate::{PadSpec, Primitive, Result, ScatterMode, Shape, ViewOp};

/// Index `[n]` along `dim` of `shape`, the same for all other dimensions.
fn spread(b: &mut Builder, index: Value, shape: Shape, dim: usize) -> Result<Value> {
    let mut dims = [1; crate::MAX_DIMS];
    dims[dim] = shape[dim];
    let index = b.reshape(index, &dims[..shape.rank()])?;
    b.expand(index, shape)
}

pub(super) fn select(b: &mut Builder, x: Value, index: Value, dim: u8) -> Result<Value> {
    let at = usize::from(dim);
    let shape = b.shape(x).with(at, b.shape(index)[0])?;
    let index = spread(b, index, shape, at)?;
    b.one(Primitive::Gather { dim }, &[x, index])
}

pub(super) fn select_grad(
    b: &mut Builder,
    dy: Value,
    index: Value,
    dim: u8,
    size: usize,
) -> Result<Value> {
    let meta = b.meta(dy);
    let at = usize::from(dim);
    let index = spread(b, index, meta.shape, at)?;
    // Halves are added up in F32; integers keep their type, which wraps as the sum does.
    let dy = if meta.dtype.is_float() {
        b.wide(dy)?
    } else {
        dy
    };
    let dx = b.fill(0i64, b.meta(dy).dtype, meta.shape.with(at, size)?)?;
    let mode = ScatterMode::Add;
    b.run_in_place(Primitive::Scatter { dim, mode }, &[index, dy], dx)?;
    b.cast(dx, meta.dtype)
}

pub(super) fn concat(b: &mut Builder, v: &[Value], dim: u8) -> Result<Value> {
    let dim = usize::from(dim);
    let (dtype, first) = (b.meta(v[0]).dtype, b.shape(v[0]));
    let total = v.iter().map(|&part| b.shape(part)[dim]).sum();
    let result = b.fill(0i64, dtype, first.with(dim, total)?)?;
    let mut start = 0;
    for &part in v {
        let shape = b.shape(part);
        let length = shape[dim];
        if !shape.is_empty() {
            let window = ViewOp::Slice {
                dim,
                start,
                step: 1,
                length,
            };
            b.write(result, &[window], part)?;
        }
        start += length;
    }
    Ok(result)
}

pub(super) fn pad(b: &mut Builder, x: Value, spec: &PadSpec) -> Result<Value> {
    let meta = b.meta(x);
    let result = b.fill(spec.value, meta.dtype, spec.shape)?;
    if meta.shape.is_empty() {
        return Ok(result);
    }
    let mut window = Vec::new();
    for dim in 0..meta.shape.rank() {
        let (start, step, length) = (spec.start[dim], spec.step[dim], meta.shape[dim]);
        if (start, step, length) != (0, 1, spec.shape[dim]) {
            window.push(ViewOp::Slice {
                dim,
                start,
                step,
                length,
            });
        }
    }
    b.write(result, &window, x)?;
    Ok(result)
}
