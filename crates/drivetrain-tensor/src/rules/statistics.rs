//! What norms and cross-entropy keep beside their result: as kept, or as a function of the input.
//!
//! A node hands on the gradient of its first output alone. While a graph of the gradient is being made, the gradient
//! of a statistic must reach the input too, so there it is computed anew with operations that are recorded.

use crate::Tensor;
use crate::autograd::Context;
use drivetrain_core::{DimSet, NormSpec, Result};

/// The input in the accumulation type, when statistics must be computed from it.
fn recorded(c: &Context) -> Result<Option<Tensor>> {
    let x = c.input(0)?;
    if !(crate::is_grad_enabled() && x.requires_grad()) {
        return Ok(None);
    }
    Ok(Some(x.to_dtype(x.dtype().accumulator())?))
}

/// The trailing dimensions that a norm joins.
fn trailing(spec: &NormSpec, x: &Tensor) -> DimSet {
    let lead = x.rank() - usize::from(spec.dims);
    DimSet::from_bits(DimSet::all(x.rank()).bits() & !DimSet::all(lead).bits())
}

/// Mean and 1/√(variance + eps).
pub(super) fn layer_norm(spec: &NormSpec, c: &Context) -> Result<Vec<Tensor>> {
    let Some(x) = recorded(c)? else {
        return Ok(vec![c.output(1)?, c.output(2)?]);
    };
    let dims = trailing(spec, &x);
    let variance = x.var(dims, 0.0, true)?;
    Ok(vec![
        x.mean_keepdim(dims)?,
        variance.add(spec.eps)?.rsqrt()?,
    ])
}

/// 1/√(mean square + eps).
pub(super) fn rms_norm(spec: &NormSpec, c: &Context) -> Result<Vec<Tensor>> {
    let Some(x) = recorded(c)? else {
        return Ok(vec![c.output(1)?]);
    };
    let square = x.square()?.mean_keepdim(trailing(spec, &x))?;
    Ok(vec![square.add(spec.eps)?.rsqrt()?])
}

/// Mean and biased variance of each channel.
pub(super) fn batch_norm(c: &Context) -> Result<Vec<Tensor>> {
    let Some(x) = recorded(c)? else {
        return Ok(vec![c.output(1)?, c.output(2)?]);
    };
    let dims = DimSet::from_bits(DimSet::all(x.rank()).bits() & !0b10);
    Ok(vec![x.mean(dims)?, x.var(dims, 0.0, false)?])
}

/// Logarithm of the sum of the exponentials over the classes.
pub(super) fn cross_entropy(c: &Context) -> Result<Tensor> {
    match recorded(c)? {
        Some(logits) => logits.logsumexp(1),
        None => c.output(1),
    }
}
