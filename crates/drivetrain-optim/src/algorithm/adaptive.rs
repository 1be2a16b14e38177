//! RMSprop, Adagrad and Adadelta.

use super::{Adadelta, Adagrad, RmsProp, decayed};
use crate::core::Slot;
use drivetrain_core::Result;
use drivetrain_tensor::{Parameter, Tensor};

pub(super) fn rmsprop(
    o: &RmsProp,
    rate: f64,
    parameter: &Parameter,
    grad: &Tensor,
    slot: &mut Slot,
) -> Result<()> {
    let value = parameter.value().detach();
    let grad = decayed(grad, &value, o.weight_decay)?;
    let [square] = slot.tensors(["square_avg"], &value)?;
    *square = square
        .mul(o.alpha)?
        .add(&grad.square()?.mul(1.0 - o.alpha)?)?;
    let mut spread = square.clone();
    if o.centered {
        let [mean] = slot.tensors(["grad_avg"], &value)?;
        *mean = mean.add(&grad.sub(&*mean)?.mul(1.0 - o.alpha)?)?;
        spread = spread.sub(&mean.square()?)?;
    }
    let mut step = grad.div(&spread.sqrt()?.add(o.eps)?)?;
    if o.momentum > 0.0 {
        let [buffer] = slot.tensors(["momentum_buffer"], &value)?;
        *buffer = buffer.mul(o.momentum)?.add(&step)?;
        step = buffer.clone();
    }
    parameter.set(&value.sub(&step.mul(rate)?)?)
}

pub(super) fn adagrad(
    o: &Adagrad,
    rate: f64,
    parameter: &Parameter,
    grad: &Tensor,
    slot: &mut Slot,
) -> Result<()> {
    let value = parameter.value().detach();
    let grad = decayed(grad, &value, o.weight_decay)?;
    let rate = rate / (1.0 + (slot.step - 1) as f64 * o.lr_decay);
    let first = slot.step == 1;
    let [sum] = slot.tensors(["sum"], &value)?;
    if first {
        *sum = sum.add(o.initial_accumulator_value)?;
    }
    *sum = sum.add(&grad.square()?)?;
    let step = grad.div(&sum.sqrt()?.add(o.eps)?)?;
    parameter.set(&value.sub(&step.mul(rate)?)?)
}

pub(super) fn adadelta(
    o: &Adadelta,
    rate: f64,
    parameter: &Parameter,
    grad: &Tensor,
    slot: &mut Slot,
) -> Result<()> {
    let value = parameter.value().detach();
    let grad = decayed(grad, &value, o.weight_decay)?;
    let [square, steps] = slot.tensors(["square_avg", "acc_delta"], &value)?;
    *square = square.mul(o.rho)?.add(&grad.square()?.mul(1.0 - o.rho)?)?;
    let step = steps
        .add(o.eps)?
        .sqrt()?
        .div(&square.add(o.eps)?.sqrt()?)?
        .mul(&grad)?;
    *steps = steps.mul(o.rho)?.add(&step.square()?.mul(1.0 - o.rho)?)?;
    parameter.set(&value.sub(&step.mul(rate)?)?)
}
