//! The search for the op that first made a NaN or an infinity.

use crate::Tensor;
use crate::autograd::anomaly_enabled;
use drivetrain_core::{Composite, Error, Op, Result, Scalar};

/// In anomaly mode: an error that names the op when a result has a NaN, or an infinity that nobody gave it. A mask of
/// minus infinity is meant: what is computed from it may be infinite, but not NaN.
#[track_caller]
pub(crate) fn check(op: &Op, inputs: &[&Tensor], results: &[Tensor]) -> Result<()> {
    if !anomaly_enabled() {
        return Ok(());
    }
    for result in results.iter().filter(|t| t.dtype().is_float()) {
        let values = result.to_f64_vec()?;
        let Some(mut at) = values.iter().position(|v| !v.is_finite()) else {
            continue;
        };
        if is_given(op)
            || inputs
                .iter()
                .try_fold(false, |any, x| Ok(any || has_infinity(x)?))?
        {
            match values.iter().position(|v| v.is_nan()) {
                Some(nan) => at = nan,
                None => continue,
            }
        }
        return Err(Error::value(
            op.name(),
            format!(
                "element {at} of its result {} is {}",
                result.shape(),
                values[at]
            ),
        )
        .on(result.device())
        .help("this op is the first whose result is not finite: look at its inputs"));
    }
    Ok(())
}

fn has_infinity(x: &Tensor) -> Result<bool> {
    Ok(x.dtype().is_float() && x.to_f64_vec()?.iter().any(|v| v.is_infinite()))
}

/// Whether the op itself carries an infinite number.
fn is_given(op: &Op) -> bool {
    let infinite = |scalar: Scalar| scalar.as_f64().is_infinite();
    match op {
        Op::Composite(Composite::Pad(spec)) => infinite(spec.value),
        Op::Composite(Composite::BinaryScalar { scalar, .. }) => infinite(*scalar),
        _ => false,
    }
}
