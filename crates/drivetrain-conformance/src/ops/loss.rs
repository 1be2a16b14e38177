//! Losses.

use super::{Call, Function};
use drivetrain_core::{Error, Result};
use drivetrain_nn::loss::{self, CrossEntropyOptions, Reduction};
use drivetrain_tensor::Tensor;

pub const TABLE: &[(&str, Function)] = &[
    ("mse_loss", |c| {
        loss::mse_loss(c.x()?, c.input(1)?, reduction(c)?)
    }),
    ("l1_loss", |c| {
        loss::l1_loss(c.x()?, c.input(1)?, reduction(c)?)
    }),
    ("smooth_l1_loss", |c| {
        let beta = c.attrs.number_or("beta", 1.0)?;
        loss::smooth_l1_loss(c.x()?, c.input(1)?, beta, reduction(c)?)
    }),
    ("huber_loss", |c| {
        let delta = c.attrs.number_or("delta", 1.0)?;
        loss::huber_loss(c.x()?, c.input(1)?, delta, reduction(c)?)
    }),
    ("cross_entropy", |c| {
        loss::cross_entropy(c.x()?, c.input(1)?, &class_options(c)?)
    }),
    ("cross_entropy_probs", |c| {
        loss::cross_entropy(c.x()?, c.input(1)?, &class_options(c)?)
    }),
    ("nll_loss", |c| {
        loss::nll_loss(c.x()?, c.input(1)?, &class_options(c)?)
    }),
    ("bce_loss", bce),
    ("binary_cross_entropy", bce),
    ("bce_with_logits", bce_with_logits),
    ("binary_cross_entropy_with_logits", bce_with_logits),
    ("kl_div", |c| {
        let log_target = c.attrs.flag_or("log_target", false)?;
        loss::kl_div(c.x()?, c.input(1)?, log_target, reduction(c)?)
    }),
    ("cosine_similarity", |c| {
        let eps = c.attrs.number_or("eps", 1e-8)?;
        c.x()?.cosine_similarity(c.input(1)?, c.dim_or(1)?, eps)
    }),
];

fn reduction(call: &Call) -> Result<Reduction> {
    match call.attrs.text_or("reduction", "mean")? {
        "none" => Ok(Reduction::None),
        "mean" => Ok(Reduction::Mean),
        "sum" => Ok(Reduction::Sum),
        "batchmean" => Ok(Reduction::BatchMean),
        other => Err(Error::argument(
            "conformance",
            format!("reduction {other:?}"),
        )),
    }
}

fn class_options(call: &Call) -> Result<CrossEntropyOptions> {
    Ok(CrossEntropyOptions {
        reduction: reduction(call)?,
        weight: weight(call)?.cloned(),
        ignore_index: call.attrs.integer_or("ignore_index", -100)? as i64,
        label_smoothing: call.attrs.number_or("label_smoothing", 0.0)?,
    })
}

/// The weights, the third input of a `weighted` loss.
fn weight<'a>(call: &Call<'a>) -> Result<Option<&'a Tensor>> {
    let _ = call.attrs.flag_or("weighted", false)?;
    Ok(call.optional(2))
}

fn bce(call: &Call) -> Result<Tensor> {
    loss::bce_loss(call.x()?, call.input(1)?, weight(call)?, reduction(call)?)
}

/// With `pos_weight` (or `pos_weighted`) the last input weighs the positive examples.
fn bce_with_logits(call: &Call) -> Result<Tensor> {
    let positive = ["pos_weight", "pos_weighted"];
    let positive = positive
        .iter()
        .any(|name| call.attrs.get(name).is_some_and(|value| value != false));
    let weighted = call.attrs.flag_or("weighted", false)?;
    let (weight, positive) = match (weighted, positive) {
        (true, true) => (call.optional(2), call.optional(3)),
        (false, true) => (None, call.optional(2)),
        _ => (call.optional(2), None),
    };
    loss::bce_with_logits(
        call.x()?,
        call.input(1)?,
        weight,
        positive,
        reduction(call)?,
    )
}
