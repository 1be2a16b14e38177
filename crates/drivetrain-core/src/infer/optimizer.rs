//! Inference of optimizer steps: their in-place operands, gradient and numbers.

use super::Outputs;
use super::check::Call;
use crate::backend::Meta;
use crate::{Result, Shape};

/// Checks that gradient and state match the parameter and that `hyper` holds `numbers` numbers.
#[track_caller]
fn check_operands(call: &Call, state: &[&str], numbers: usize) -> Result<()> {
    call.operands(2)?;
    let parameter = &call.in_place[0];
    if !parameter.dtype.is_float() {
        return Err(call.bad_dtype(format!(
            "parameter {} is {}, a float expected",
            parameter.shape, parameter.dtype
        )));
    }
    let gradient = std::iter::once(("gradient", &call.inputs[0]));
    let state = state.iter().copied().zip(&call.in_place[1..]);
    for (label, meta) in gradient.chain(state) {
        if meta.dtype != parameter.dtype {
            return Err(call.bad_dtype(format!(
                "{label} is {}, the parameter {}",
                meta.dtype, parameter.dtype
            )));
        }
        if meta.shape != parameter.shape {
            return Err(call.bad_shape(format!(
                "{label} {} does not match parameter {}",
                meta.shape, parameter.shape
            )));
        }
    }
    let hyper = Meta::new(parameter.dtype.accumulator(), Shape::new(&[numbers])?);
    call.meta(1, "hyper", &hyper)
}

#[track_caller]
pub(super) fn sgd(
    call: &Call,
    [momentum, dampening, weight_decay]: [f64; 3],
    nesterov: bool,
) -> Result<Outputs> {
    call.within("momentum", momentum, 0.0, f64::INFINITY)?;
    call.within("weight_decay", weight_decay, 0.0, f64::INFINITY)?;
    if nesterov && !(momentum > 0.0 && dampening == 0.0) {
        return Err(call.argument(format!(
            "nesterov with momentum {momentum} and dampening {dampening}, it needs a momentum and no dampening"
        )));
    }
    check_operands(call, &["momentum buffer"], 2)?;
    Ok(Outputs::NONE)
}

#[track_caller]
pub(super) fn adam(call: &Call, betas: [f64; 2], eps: f64) -> Result<Outputs> {
    for (label, beta) in ["beta1", "beta2"].into_iter().zip(betas) {
        if !(0.0..1.0).contains(&beta) {
            return Err(call.argument(format!("{label} {beta}, must be at least 0 and below 1")));
        }
    }
    call.within("eps", eps, 0.0, f64::INFINITY)?;
    let state = ["first moment", "second moment", "largest second moment"];
    check_operands(call, &state, 3)?;
    Ok(Outputs::NONE)
}
