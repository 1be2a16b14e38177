//! Softmax and its logarithm, with the largest element subtracted first.

use crate::program::{Builder, Value};
use crate::{DimSet, ReduceOp, Result, UnaryOp};

/// x - max(x) along `dim`, and the logarithm of the sum of its exponentials beside the exponentials.
pub(super) struct Shifted {
    /// The largest element.
    pub largest: Value,
    /// x minus it; NaN throughout where it is infinite, as in PyTorch.
    pub shifted: Value,
    /// e to that.
    pub exponentials: Value,
    /// Their sum.
    pub sum: Value,
}

pub(super) fn shift(b: &mut Builder, x: Value, dims: DimSet) -> Result<Shifted> {
    let largest = b.reduce(ReduceOp::Max, x, dims)?;
    let shifted = b.sub(x, largest)?;
    let exponentials = b.unary(UnaryOp::Exp, shifted)?;
    let sum = b.sum(exponentials, dims)?;
    Ok(Shifted {
        largest,
        shifted,
        exponentials,
        sum,
    })
}

pub(super) fn forward(b: &mut Builder, x: Value, dim: u8, log: bool) -> Result<Value> {
    let meta = b.meta(x);
    if meta.shape.is_empty() {
        return b.zeros(meta.dtype, meta.shape);
    }
    let x = b.wide(x)?;
    let parts = shift(b, x, DimSet::of(&[usize::from(dim)]))?;
    let y = if log {
        let rest = b.unary(UnaryOp::Log, parts.sum)?;
        b.sub(parts.shifted, rest)?
    } else {
        b.div(parts.exponentials, parts.sum)?
    };
    b.cast(y, meta.dtype)
}

/// y(dy - Σ dy·y), or for the logarithm dy - eʸ Σ dy.
pub(super) fn gradient(b: &mut Builder, dy: Value, y: Value, dim: u8, log: bool) -> Result<Value> {
    let dtype = b.meta(y).dtype;
    let dims = DimSet::of(&[usize::from(dim)]);
    let (dy, y) = (b.wide(dy)?, b.wide(y)?);
    let dx = if log {
        let total = b.sum(dy, dims)?;
        let probability = b.unary(UnaryOp::Exp, y)?;
        let rest = b.mul(probability, total)?;
        b.sub(dy, rest)?
    } else {
        let product = b.mul(dy, y)?;
        let total = b.sum(product, dims)?;
        let rest = b.mul(y, total)?;
        b.sub(product, rest)?
    };
    b.cast(dx, dtype)
}
