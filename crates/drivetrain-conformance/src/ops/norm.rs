//! Normalisations.

use super::{Answer, Call, Function, Wide};
use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

pub const TABLE: &[(&str, Function)] = &[
    ("layer_norm", |c| {
        let shape = normalized_shape(c)?;
        c.x()?
            .layer_norm(shape, c.optional(1), c.optional(2), eps(c)?)
    }),
    ("rms_norm", |c| {
        let shape = normalized_shape(c)?;
        c.x()?
            .rms_norm(shape, c.optional(1), c.attrs.number("eps")?)
    }),
    ("group_norm", |c| {
        let groups = c.attrs.count_or("num_groups", 1)?;
        c.x()?
            .group_norm(groups, c.optional(1), c.optional(2), eps(c)?)
    }),
    ("instance_norm", |c| {
        c.x()?.instance_norm(c.optional(1), c.optional(2), eps(c)?)
    }),
    ("batch_norm_eval", |c| {
        // x, weight, bias, running mean, running variance; without weight and bias: x and the statistics.
        let (weight, bias, first) = affine(c);
        c.x()?
            .batch_norm(c.input(first)?, c.input(first + 1)?, weight, bias, eps(c)?)
    }),
];

pub const WIDE_TABLE: &[(&str, Wide)] = &[("batch_norm_train", batch_norm_train)];

fn eps(call: &Call) -> Result<f64> {
    call.attrs.number_or("eps", 1e-5)
}

/// The last `normalized_dims` sizes of x, or `normalized_shape`; by default the weight's shape, or the last size.
fn normalized_shape(call: &Call) -> Result<Vec<usize>> {
    let x = call.x()?;
    if let Some(shape) = call.attrs.integers("normalized_shape")? {
        return Ok(shape
            .iter()
            .filter_map(|&size| usize::try_from(size).ok())
            .collect());
    }
    let default = call.optional(1).map_or(1, Tensor::rank);
    let count = call.attrs.count_or("normalized_dims", default)?;
    let start = x.rank().checked_sub(count).ok_or_else(|| {
        Error::argument(
            "conformance",
            format!("normalized_dims {count} of shape {}", x.shape()),
        )
    })?;
    Ok(x.dims().iter().skip(start).copied().collect())
}

/// Weight, bias, and where the running statistics begin.
fn affine<'a>(call: &Call<'a>) -> (Option<&'a Tensor>, Option<&'a Tensor>, usize) {
    if call.inputs.len() >= 5 {
        (call.optional(1), call.optional(2), 3)
    } else {
        (None, None, 1)
    }
}

/// y and the new running statistics, for whose variance the unbiased one of the batch is taken.
fn batch_norm_train(call: &Call) -> Result<Answer> {
    let (weight, bias, first) = affine(call);
    let momentum = call.attrs.number_or("momentum", 0.1)?;
    let result = call.x()?.batch_norm_training(weight, bias, eps(call)?)?;
    let count = result.count as f64;
    let unbiased = result.variance.mul(count / (count - 1.0))?;
    let blend = |running: &Tensor, new: &Tensor| {
        let running = running.mul(1.0 - momentum)?;
        running.add(&new.mul(momentum)?.to_dtype(running.dtype())?)
    };
    let mean = blend(call.input(first)?, &result.mean)?;
    let variance = blend(call.input(first + 1)?, &unbiased)?;
    Ok(vec![result.output, mean, variance].into())
}
