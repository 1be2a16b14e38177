//! Clipping of gradients.

use drivetrain_core::{DType, Error, ErrorKind, Result};
use drivetrain_tensor::{Parameter, Tensor, no_grad};

/// Scales all gradients so that their common norm is at most `max_norm`; gives the norm before (`norm_type` 2 is
/// usual, infinity the largest element). Sums are kept in F64, so that large F32 gradients do not overflow.
///
/// # Errors
/// A norm that is NaN or infinite: the gradients are then left as they are, not poisoned. PyTorch's default would
/// scale them to NaN.
pub fn clip_grad_norm(parameters: &[Parameter], max_norm: f64, norm_type: f64) -> Result<f64> {
    if max_norm.is_nan() || max_norm < 0.0 || norm_type.is_nan() || norm_type <= 0.0 {
        return Err(Error::argument(
            "clip_grad_norm",
            format!("max_norm {max_norm}, norm_type {norm_type}"),
        ));
    }
    no_grad(|| {
        let grads: Vec<(&Parameter, Tensor)> = parameters
            .iter()
            .filter_map(|p| Some((p, p.grad()?.detach())))
            .collect();
        let mut norms = Vec::new();
        for (_, grad) in &grads {
            if grad.elements() > 0 {
                norms.push(norm_of(grad, norm_type)?);
            }
        }
        let norm = joined(&norms, norm_type);
        if !norm.is_finite() {
            return Err(Error::value("clip_grad_norm", format!("the gradients' norm is {norm}"))
                .help("they are left as they are: skip this step, or look for what made them with detect_anomaly"));
        }
        let scale = (max_norm / (norm + 1e-6)).min(1.0);
        if scale < 1.0 {
            for (parameter, grad) in grads {
                parameter.set_grad(Some(grad.mul(scale)?))?;
            }
        }
        Ok(norm)
    })
}

/// The norm of norms.
fn joined(norms: &[f64], norm_type: f64) -> f64 {
    // `max` of floats would hide a NaN.
    if norms.iter().any(|n| n.is_nan()) {
        return f64::NAN;
    }
    let largest = norms.iter().copied().fold(0.0, f64::max);
    if norm_type == f64::INFINITY || largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    largest
        * norms
            .iter()
            .map(|n| (n / largest).powf(norm_type))
            .sum::<f64>()
            .powf(1.0 / norm_type)
}

fn norm_of(grad: &Tensor, norm_type: f64) -> Result<f64> {
    match grad.to_dtype(DType::F64) {
        Ok(wide) => wide.norm(norm_type, (), false)?.item::<f64>(),
        // A device without F64: scaled by the largest element, so that squares do not overflow.
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            let largest = grad.abs()?.amax(())?.item::<f64>()?;
            if largest == 0.0 || !largest.is_finite() {
                return Ok(largest);
            }
            Ok(largest
                * grad
                    .div(largest)?
                    .norm(norm_type, (), false)?
                    .item::<f64>()?)
        }
        Err(error) => Err(error),
    }
}

/// Limits every element of every gradient to ±`limit`.
///
/// # Errors
/// A limit that is negative.
pub fn clip_grad_value(parameters: &[Parameter], limit: f64) -> Result<()> {
    if limit.is_nan() || limit < 0.0 {
        return Err(Error::argument(
            "clip_grad_value",
            format!("limit {limit} is negative"),
        ));
    }
    no_grad(|| {
        for parameter in parameters {
            if let Some(grad) = parameter.grad() {
                parameter.set_grad(Some(grad.detach().clamp(-limit, limit)?))?;
            }
        }
        Ok(())
    })
}
