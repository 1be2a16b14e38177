//! Optimizers, and clipping of gradients.

use crate::attrs::Attrs;
use crate::ops::{Answer, Call, Wide};
use drivetrain_core::{Error, Result};
use drivetrain_optim::{
    Adadelta, Adagrad, Adam, AdamW, NAdam, Optimizer, RAdam, RmsProp, Sgd, clip_grad_norm,
};
use drivetrain_tensor::{Parameter, Tensor};

pub const TABLE: &[(&str, Wide)] = &[("optimizer", optimizer), ("clip_grad_norm", clip)];

/// The optimizer that `attrs` describes: `name` and PyTorch's arguments, with PyTorch's defaults.
///
/// # Errors
/// A name that is not known, or arguments of a wrong kind.
pub fn build(attrs: &Attrs, parameters: Vec<Parameter>) -> Result<Box<dyn Optimizer>> {
    let rate = |default: f64| attrs.number_or("lr", default);
    let decay = |default: f64| attrs.number_or("weight_decay", default);
    let eps = attrs.number_or("eps", 1e-8)?;
    let momentum = attrs.number_or("momentum", 0.0)?;
    let maximize = attrs.flag_or("maximize", false)?;
    let amsgrad = attrs.flag_or("amsgrad", false)?;
    let decoupled = attrs.flag_or("decoupled_weight_decay", false)?;
    Ok(match attrs.text_or("name", "")? {
        "sgd" => Box::new(
            Sgd::new(parameters, rate(1e-3)?)
                .momentum(momentum)
                .dampening(attrs.number_or("dampening", 0.0)?)
                .weight_decay(decay(0.0)?)
                .nesterov(attrs.flag_or("nesterov", false)?)
                .maximize(maximize),
        ),
        "adam" if !decoupled => Box::new(
            Adam::new(parameters, rate(1e-3)?)
                .betas(betas(attrs)?)
                .eps(eps)
                .weight_decay(decay(0.0)?)
                .amsgrad(amsgrad)
                .maximize(maximize),
        ),
        name @ ("adam" | "adamw") => Box::new(
            AdamW::new(parameters, rate(1e-3)?)
                .betas(betas(attrs)?)
                .eps(eps)
                .weight_decay(decay(if name == "adam" { 0.0 } else { 0.01 })?)
                .amsgrad(amsgrad)
                .maximize(maximize),
        ),
        "rmsprop" | "rms_prop" => Box::new(
            RmsProp::new(parameters, rate(1e-2)?)
                .alpha(attrs.number_or("alpha", 0.99)?)
                .eps(eps)
                .weight_decay(decay(0.0)?)
                .momentum(momentum)
                .centered(attrs.flag_or("centered", false)?),
        ),
        "adagrad" => Box::new(
            Adagrad::new(parameters, rate(1e-2)?)
                .lr_decay(attrs.number_or("lr_decay", 0.0)?)
                .weight_decay(decay(0.0)?)
                .initial_accumulator_value(attrs.number_or("initial_accumulator_value", 0.0)?)
                .eps(attrs.number_or("eps", 1e-10)?),
        ),
        "adadelta" => Box::new(
            Adadelta::new(parameters, rate(1.0)?)
                .rho(attrs.number_or("rho", 0.9)?)
                .eps(attrs.number_or("eps", 1e-6)?)
                .weight_decay(decay(0.0)?),
        ),
        "nadam" => Box::new(
            NAdam::new(parameters, rate(2e-3)?)
                .betas(betas(attrs)?)
                .eps(eps)
                .weight_decay(decay(0.0)?)
                .momentum_decay(attrs.number_or("momentum_decay", 4e-3)?)
                .decoupled(decoupled),
        ),
        "radam" => Box::new(
            RAdam::new(parameters, rate(1e-3)?)
                .betas(betas(attrs)?)
                .eps(eps)
                .weight_decay(decay(0.0)?)
                .decoupled(decoupled),
        ),
        other => {
            return Err(Error::argument(
                "conformance",
                format!("the runner knows no optimizer {other:?}"),
            ));
        }
    })
}

/// Whether the runner must turn the gradients round, since the optimizer has no `maximize` of its own.
pub fn turns_round(attrs: &Attrs) -> Result<bool> {
    let own = ["sgd", "adam", "adamw"].contains(&attrs.text_or("name", "")?);
    Ok(!own && attrs.flag_or("maximize", false)?)
}

fn betas(attrs: &Attrs) -> Result<(f64, f64)> {
    match attrs.numbers("betas")?.as_deref() {
        None => Ok((0.9, 0.999)),
        Some(&[first, second]) => Ok((first, second)),
        Some(other) => Err(Error::argument("conformance", format!("betas {other:?}"))),
    }
}

/// A parameter, then one gradient a step; the parameter after each.
fn optimizer(call: &Call) -> Result<Answer> {
    let parameter = Parameter::new(call.x()?.copy()?)?;
    let mut optimizer = build(call.attrs, vec![parameter.clone()])?;
    let turned = turns_round(call.attrs)?;
    let mut outputs = Vec::new();
    for gradient in call.inputs.iter().skip(1) {
        let gradient = if turned {
            gradient.neg()?
        } else {
            gradient.clone()
        };
        parameter.set_grad(Some(gradient))?;
        optimizer.step()?;
        outputs.push(parameter.value().detach().copy()?);
    }
    Ok(outputs.into())
}

/// Gradients; they clipped, then their norm before.
fn clip(call: &Call) -> Result<Answer> {
    let mut parameters = Vec::new();
    for gradient in call.inputs {
        let parameter = Parameter::new(gradient.zeros_like()?)?;
        parameter.set_grad(Some(gradient.clone()))?;
        parameters.push(parameter);
    }
    let max_norm = call.attrs.number_or("max_norm", 1.0)?;
    let norm_type = call.attrs.number_or("norm_type", 2.0)?;
    let norm = clip_grad_norm(&parameters, max_norm, norm_type)?;
    let mut outputs: Vec<Tensor> = parameters.iter().filter_map(Parameter::grad).collect();
    outputs.push(Tensor::full((), norm, call.dtype, call.device)?);
    Ok(outputs.into())
}
