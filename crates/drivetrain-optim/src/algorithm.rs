//! The update rules as plain data, and one step of each.

mod adaptive;
mod momentum;

use crate::core::Slot;
use drivetrain_core::{Error, Result};
use drivetrain_tensor::{Parameter, Tensor};

/// Stochastic gradient descent (Robbins and Monro 1951; momentum: Sutskever et al. 2013).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sgd {
    /// Share of the last step's direction kept.
    pub momentum: f64,
    /// The gradient enters the direction times 1 - dampening.
    pub dampening: f64,
    /// Added to the gradient times the parameter.
    pub weight_decay: f64,
    /// Look ahead along the direction.
    pub nesterov: bool,
    /// Climb instead of descend.
    pub maximize: bool,
}

/// Adam (Kingma and Ba 2015), and AdamW where the decay is decoupled (Loshchilov and Hutter 2019).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decays of the first and second moment.
    pub betas: (f64, f64),
    /// Added to the denominator.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Whether the decay shrinks the parameter itself (AdamW).
    pub decoupled: bool,
    /// Whether the largest second moment so far is used (Reddi et al. 2018).
    pub amsgrad: bool,
    /// Climb instead of descend.
    pub maximize: bool,
}

/// RMSprop (Tieleman and Hinton 2012).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    /// Decay of the mean square.
    pub alpha: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Share of the last step kept.
    pub momentum: f64,
    /// Whether the mean is taken off the mean square.
    pub centered: bool,
}

/// Adagrad (Duchi et al. 2011).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adagrad {
    /// The rate falls as 1/(1 + step·decay).
    pub lr_decay: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// What the sum of squares begins with.
    pub initial_accumulator_value: f64,
    /// Added to the denominator.
    pub eps: f64,
}

/// Adadelta (Zeiler 2012).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adadelta {
    /// Decay of both mean squares.
    pub rho: f64,
    /// Added inside both roots.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
}

/// Adam with Nesterov momentum (Dozat 2016).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NAdam {
    /// Decays of the first and second moment.
    pub betas: (f64, f64),
    /// Added to the denominator.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// How fast the momentum grows to β₁.
    pub momentum_decay: f64,
    /// Whether the decay shrinks the parameter itself.
    pub decoupled: bool,
}

/// Adam with a rectified variance (Liu et al. 2020).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RAdam {
    /// Decays of the first and second moment.
    pub betas: (f64, f64),
    /// Added to the denominator.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Whether the decay shrinks the parameter itself.
    pub decoupled: bool,
}

impl Default for Adam {
    fn default() -> Self {
        Adam {
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
            amsgrad: false,
            maximize: false,
        }
    }
}

impl Default for RmsProp {
    fn default() -> Self {
        RmsProp {
            alpha: 0.99,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum: 0.0,
            centered: false,
        }
    }
}

impl Default for Adagrad {
    fn default() -> Self {
        Adagrad {
            lr_decay: 0.0,
            weight_decay: 0.0,
            initial_accumulator_value: 0.0,
            eps: 1e-10,
        }
    }
}

impl Default for Adadelta {
    fn default() -> Self {
        Adadelta {
            rho: 0.9,
            eps: 1e-6,
            weight_decay: 0.0,
        }
    }
}

impl Default for NAdam {
    fn default() -> Self {
        NAdam {
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 0.0,
            momentum_decay: 4e-3,
            decoupled: false,
        }
    }
}

impl Default for RAdam {
    fn default() -> Self {
        RAdam {
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
        }
    }
}

/// Which update rule a parameter group follows, with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Algorithm {
    Sgd(Sgd),
    Adam(Adam),
    RmsProp(RmsProp),
    Adagrad(Adagrad),
    Adadelta(Adadelta),
    NAdam(NAdam),
    RAdam(RAdam),
}

impl Algorithm {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Algorithm::Sgd(_) => "sgd",
            Algorithm::Adam(Adam {
                decoupled: true, ..
            }) => "adamw",
            Algorithm::Adam(_) => "adam",
            Algorithm::RmsProp(_) => "rmsprop",
            Algorithm::Adagrad(_) => "adagrad",
            Algorithm::Adadelta(_) => "adadelta",
            Algorithm::NAdam(_) => "nadam",
            Algorithm::RAdam(_) => "radam",
        }
    }

    /// Settings that make no sense.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: &str, value: f64, want: &str| {
            Err(Error::argument(
                self.name(),
                format!("{what} {value} is not {want}"),
            ))
        };
        let betas =
            |(one, two): (f64, f64)| match [one, two].iter().find(|b| !(0.0..1.0).contains(*b)) {
                Some(&beta) => refuse("beta", beta, "in 0..1"),
                None => Ok(()),
            };
        let at_least_0 = |what: &str, value: f64| {
            if value >= 0.0 && value.is_finite() {
                Ok(())
            } else {
                refuse(what, value, "at least 0")
            }
        };
        match *self {
            Algorithm::Sgd(o) => {
                at_least_0("momentum", o.momentum)?;
                at_least_0("weight_decay", o.weight_decay)?;
                if o.nesterov && (o.momentum <= 0.0 || o.dampening != 0.0) {
                    return Err(Error::argument(
                        "sgd",
                        "nesterov needs a momentum and no dampening",
                    ));
                }
                Ok(())
            }
            Algorithm::Adam(o) => betas(o.betas)
                .and(at_least_0("eps", o.eps))
                .and(at_least_0("weight_decay", o.weight_decay)),
            Algorithm::NAdam(o) => betas(o.betas)
                .and(at_least_0("eps", o.eps))
                .and(at_least_0("weight_decay", o.weight_decay)),
            Algorithm::RAdam(o) => betas(o.betas)
                .and(at_least_0("eps", o.eps))
                .and(at_least_0("weight_decay", o.weight_decay)),
            Algorithm::RmsProp(o) => at_least_0("alpha", o.alpha)
                .and(at_least_0("momentum", o.momentum))
                .and(at_least_0("eps", o.eps))
                .and(at_least_0("weight_decay", o.weight_decay)),
            Algorithm::Adagrad(o) => at_least_0("lr_decay", o.lr_decay)
                .and(at_least_0("eps", o.eps))
                .and(at_least_0(
                    "initial_accumulator_value",
                    o.initial_accumulator_value,
                ))
                .and(at_least_0("weight_decay", o.weight_decay)),
            Algorithm::Adadelta(o) => {
                if !(0.0..=1.0).contains(&o.rho) {
                    return refuse("rho", o.rho, "in 0..=1");
                }
                at_least_0("eps", o.eps).and(at_least_0("weight_decay", o.weight_decay))
            }
        }
    }

    /// One step of one parameter. `slot.step` has been raised already: 1 at the first step.
    pub(crate) fn step(
        &self,
        rate: f64,
        parameter: &Parameter,
        grad: &Tensor,
        slot: &mut Slot,
    ) -> Result<()> {
        match self {
            Algorithm::Sgd(o) => momentum::sgd(o, rate, parameter, grad, slot),
            Algorithm::Adam(o) => momentum::adam(o, rate, parameter, grad, slot),
            Algorithm::NAdam(o) => momentum::nadam(o, rate, parameter, grad, slot),
            Algorithm::RAdam(o) => momentum::radam(o, rate, parameter, grad, slot),
            Algorithm::RmsProp(o) => adaptive::rmsprop(o, rate, parameter, grad, slot),
            Algorithm::Adagrad(o) => adaptive::adagrad(o, rate, parameter, grad, slot),
            Algorithm::Adadelta(o) => adaptive::adadelta(o, rate, parameter, grad, slot),
        }
    }
}

/// The gradient with the decay added, where it is not decoupled.
fn decayed(grad: &Tensor, parameter: &Tensor, weight_decay: f64) -> Result<Tensor> {
    if weight_decay == 0.0 {
        return Ok(grad.clone());
    }
    grad.add(&parameter.mul(weight_decay)?)
}
