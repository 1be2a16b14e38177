//! The optimizers by name: each a rule with settings over parameter groups.

use crate::algorithm::{self, Algorithm};
use crate::core::{Core, Optimizer, ParameterGroup};
use crate::state::OptimizerState;
use drivetrain_core::{Device, Result};
use drivetrain_tensor::Parameter;

/// Declares an optimizer: its rule's settings become builder methods.
macro_rules! optimizer {
    ($(#[$doc:meta])* $name:ident, $variant:ident, $options:expr, { $($(#[$set_doc:meta])* $set:ident: $type:ty;)* }) => {
        $(#[$doc])*
        pub struct $name {
            core: Core,
        }

        impl $name {
            /// Of these parameters, with this learning rate.
            pub fn new(parameters: Vec<Parameter>, learning_rate: f64) -> Self {
                $name { core: Core::new(parameters, learning_rate, Algorithm::$variant($options)) }
            }

            $($(#[$set_doc])*
            #[must_use]
            pub fn $set(mut self, $set: $type) -> Self {
                for group in &mut self.core.groups {
                    if let Algorithm::$variant(options) = &mut group.algorithm {
                        options.$set = $set;
                    }
                }
                self
            })*
        }

        impl Optimizer for $name {
            fn step(&mut self) -> Result<()> {
                self.core.step()
            }
            fn zero_grad(&self) {
                self.core.zero_grad();
            }
            fn to(&mut self, device: &Device) -> Result<()> {
                self.core.to(device)
            }
            fn groups(&self) -> &[ParameterGroup] {
                &self.core.groups
            }
            fn groups_mut(&mut self) -> &mut [ParameterGroup] {
                &mut self.core.groups
            }
            fn add_group(&mut self, parameters: Vec<Parameter>, learning_rate: f64) -> Result<()> {
                self.core.add_group(parameters, learning_rate)
            }
            fn state_dict(&self) -> OptimizerState {
                OptimizerState::of(&self.core)
            }
            fn load_state_dict(&mut self, state: &OptimizerState) -> Result<()> {
                state.load_into(&mut self.core)
            }
        }
    };
}

optimizer! {
    /// Stochastic gradient descent, with momentum, dampening, Nesterov and weight decay as in PyTorch.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// # use drivetrain_optim::{Optimizer, Sgd};
    /// # use drivetrain_tensor::{Device, Parameter, Tensor};
    /// let w = Parameter::new(Tensor::from_data([1.0f32], &Device::open("cpu")?)?)?;
    /// let mut optimizer = Sgd::new(vec![w.clone()], 0.1).momentum(0.9);
    /// w.value().square()?.sum(())?.backward()?;
    /// optimizer.step()?;
    /// assert!((w.value().item::<f32>()? - 0.8).abs() < 1e-6);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    Sgd, Sgd, algorithm::Sgd::default(), {
        /// Share of the last step's direction kept; 0.
        momentum: f64;
        /// The gradient enters the direction times 1 - dampening; 0.
        dampening: f64;
        /// Added to the gradient times the parameter; 0.
        weight_decay: f64;
        /// Look ahead along the direction; no.
        nesterov: bool;
        /// Climb instead of descend; no.
        maximize: bool;
    }
}

optimizer! {
    /// Adam.
    Adam, Adam, algorithm::Adam::default(), {
        /// Decays of the moments; (0.9, 0.999).
        betas: (f64, f64);
        /// Added to the denominator; 1e-8.
        eps: f64;
        /// Added to the gradient times the parameter; 0.
        weight_decay: f64;
        /// Use the largest second moment so far; no.
        amsgrad: bool;
        /// Climb instead of descend; no.
        maximize: bool;
    }
}

optimizer! {
    /// Adam with decoupled weight decay.
    AdamW, Adam, algorithm::Adam { weight_decay: 0.01, decoupled: true, ..Default::default() }, {
        /// Decays of the moments; (0.9, 0.999).
        betas: (f64, f64);
        /// Added to the denominator; 1e-8.
        eps: f64;
        /// The parameter shrinks by rate·decay; 0.01.
        weight_decay: f64;
        /// Use the largest second moment so far; no.
        amsgrad: bool;
        /// Climb instead of descend; no.
        maximize: bool;
    }
}

optimizer! {
    /// RMSprop.
    RmsProp, RmsProp, algorithm::RmsProp::default(), {
        /// Decay of the mean square; 0.99.
        alpha: f64;
        /// Added to the denominator; 1e-8.
        eps: f64;
        /// Added to the gradient times the parameter; 0.
        weight_decay: f64;
        /// Share of the last step kept; 0.
        momentum: f64;
        /// Take the mean off the mean square; no.
        centered: bool;
    }
}

optimizer! {
    /// Adagrad.
    Adagrad, Adagrad, algorithm::Adagrad::default(), {
        /// The rate falls as 1/(1 + step·decay); 0.
        lr_decay: f64;
        /// Added to the gradient times the parameter; 0.
        weight_decay: f64;
        /// What the sum of squares begins with; 0.
        initial_accumulator_value: f64;
        /// Added to the denominator; 1e-10.
        eps: f64;
    }
}

optimizer! {
    /// Adadelta; its usual rate is 1.
    Adadelta, Adadelta, algorithm::Adadelta::default(), {
        /// Decay of both mean squares; 0.9.
        rho: f64;
        /// Added inside both roots; 1e-6.
        eps: f64;
        /// Added to the gradient times the parameter; 0.
        weight_decay: f64;
    }
}

optimizer! {
    /// Adam with Nesterov momentum.
    NAdam, NAdam, algorithm::NAdam::default(), {
        /// Decays of the moments; (0.9, 0.999).
        betas: (f64, f64);
        /// Added to the denominator; 1e-8.
        eps: f64;
        /// Weight decay; 0.
        weight_decay: f64;
        /// How fast the momentum grows to its limit; 0.004.
        momentum_decay: f64;
        /// Whether the decay shrinks the parameter itself; no.
        decoupled: bool;
    }
}

optimizer! {
    /// Adam with a rectified variance.
    RAdam, RAdam, algorithm::RAdam::default(), {
        /// Decays of the moments; (0.9, 0.999).
        betas: (f64, f64);
        /// Added to the denominator; 1e-8.
        eps: f64;
        /// Weight decay; 0.
        weight_decay: f64;
        /// Whether the decay shrinks the parameter itself; no.
        decoupled: bool;
    }
}
