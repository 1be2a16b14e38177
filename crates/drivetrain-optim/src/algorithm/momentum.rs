//! SGD and the Adam family.

use super::{Adam, NAdam, RAdam, Sgd, decayed};
use crate::core::Slot;
use drivetrain_core::{Composite, DType, Result};
use drivetrain_tensor::{Parameter, Tensor};

/// Numbers that change from step to step, as the operand that the fused steps read.
fn hyper(values: &[f64], parameter: &Tensor) -> Result<Tensor> {
    let device = parameter.device();
    match parameter.dtype().accumulator() {
        DType::F64 => Tensor::from_slice(values, [values.len()], device),
        _ => Tensor::from_vec(
            values.iter().map(|&v| v as f32).collect(),
            [values.len()],
            device,
        ),
    }
}

pub(super) fn sgd(
    o: &Sgd,
    rate: f64,
    parameter: &Parameter,
    grad: &Tensor,
    slot: &mut Slot,
) -> Result<()> {
    let first = f64::from(u8::from(slot.step == 1));
    let op = Composite::SgdStep {
        momentum: o.momentum,
        dampening: o.dampening,
        weight_decay: o.weight_decay,
        nesterov: o.nesterov,
        maximize: o.maximize,
    };
    // The value taken here is let go before the step, which then reuses its memory.
    let hyper = hyper(&[rate, first], &parameter.value())?;
    if o.momentum == 0.0 {
        return parameter.run_in_place(op, &[grad, &hyper], &mut []);
    }
    let [buffer] = slot.tensors(["momentum_buffer"], grad)?;
    parameter.run_in_place(op, &[grad, &hyper], &mut [buffer])
}

pub(super) fn adam(
    o: &Adam,
    rate: f64,
    parameter: &Parameter,
    grad: &Tensor,
    slot: &mut Slot,
) -> Result<()> {
    let t = i32::try_from(slot.step).unwrap_or(i32::MAX);
    let corrections = (1.0 - o.betas.0.powi(t), (1.0 - o.betas.1.powi(t)).sqrt());
    let op = Composite::AdamStep {
        beta1: o.betas.0,
        beta2: o.betas.1,
        eps: o.eps,
        weight_decay: o.weight_decay,
        decoupled: o.decoupled,
        amsgrad: o.amsgrad,
        maximize: o.maximize,
    };
    let hyper = hyper(&[rate, corrections.0, corrections.1], &parameter.value())?;
    if o.amsgrad {
        let [first, second, largest] =
            slot.tensors(["exp_avg", "exp_avg_sq", "max_exp_avg_sq"], grad)?;
        return parameter.run_in_place(op, &[grad, &hyper], &mut [first, second, largest]);
    }
    let [first, second] = slot.tensors(["exp_avg", "exp_avg_sq"], grad)?;
    parameter.run_in_place(op, &[grad, &hyper], &mut [first, second])
}

/// Both moments brought forward by a gradient.
fn moments(betas: (f64, f64), grad: &Tensor, slot: &mut Slot) -> Result<(Tensor, Tensor)> {
    let [first, second] = slot.tensors(["exp_avg", "exp_avg_sq"], grad)?;
    *first = first.add(&grad.sub(&*first)?.mul(1.0 - betas.0)?)?;
    *second = second
        .mul(betas.1)?
        .add(&grad.square()?.mul(1.0 - betas.1)?)?;
    Ok((first.clone(), second.clone()))
}

pub(super) fn nadam(
    o: &NAdam,
    rate: f64,
    parameter: &Parameter,
    grad: &Tensor,
    slot: &mut Slot,
) -> Result<()> {
    let value = parameter.value().detach();
    let t = slot.step as f64;
    let (value, grad) = if o.decoupled {
        (value.mul(1.0 - rate * o.weight_decay)?, grad.clone())
    } else {
        let grad = decayed(grad, &value, o.weight_decay)?;
        (value, grad)
    };
    let momentum = |t: f64| o.betas.0 * (1.0 - 0.5 * 0.96f64.powf(t * o.momentum_decay));
    let (now, next) = (momentum(t), momentum(t + 1.0));
    let product = slot.number("mu_product", 1.0);
    // PyTorch keeps this running product in F32, whatever the parameter's dtype; so do we, to stay beside it.
    *product = f64::from(*product as f32 * now as f32);
    let product = *product;
    let (first, second) = moments(o.betas, &grad, slot)?;
    let denominator = second.div(1.0 - o.betas.1.powf(t))?.sqrt()?.add(o.eps)?;
    let by_grad = grad
        .div(&denominator)?
        .mul(rate * (1.0 - now) / (1.0 - product))?;
    let by_first = first
        .div(&denominator)?
        .mul(rate * next / (1.0 - product * next))?;
    parameter.set(&value.sub(&by_grad)?.sub(&by_first)?)
}

pub(super) fn radam(
    o: &RAdam,
    rate: f64,
    parameter: &Parameter,
    grad: &Tensor,
    slot: &mut Slot,
) -> Result<()> {
    let value = parameter.value().detach();
    let t = slot.step as f64;
    let (value, grad) = if o.decoupled {
        (value.mul(1.0 - rate * o.weight_decay)?, grad.clone())
    } else {
        let grad = decayed(grad, &value, o.weight_decay)?;
        (value, grad)
    };
    let (first, second) = moments(o.betas, &grad, slot)?;
    let (beta1, beta2) = o.betas;
    let (one, two) = (1.0 - beta1.powf(t), 1.0 - beta2.powf(t));
    // Length of the approximated simple moving average, at infinity and now.
    let longest = 2.0 / (1.0 - beta2) - 1.0;
    let length = longest - 2.0 * t * beta2.powf(t) / two;
    let mut step = first.mul(rate / one)?;
    if length > 5.0 {
        let top = (length - 4.0) * (length - 2.0) * longest;
        let rectified = (top / ((longest - 4.0) * (longest - 2.0) * length)).sqrt();
        step = step
            .mul(rectified * two.sqrt())?
            .div(&second.sqrt()?.add(o.eps)?)?;
    }
    parameter.set(&value.sub(&step)?)
}
