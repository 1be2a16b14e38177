//! Optimizers, learning-rate schedules and gradient clipping of Drivetrain.
//!
//! An optimizer holds clones of a model's parameters (shared cells), so it stays right when the model is moved or
//! loaded. Its own state moves with [`Optimizer::to`].

mod algorithm;
mod clip;
mod core;
mod optimizers;
pub mod schedule;
mod state;

pub use algorithm::{
    Adadelta as AdadeltaOptions, Adagrad as AdagradOptions, Adam as AdamOptions, Algorithm,
    NAdam as NAdamOptions, RAdam as RAdamOptions, RmsProp as RmsPropOptions, Sgd as SgdOptions,
};
pub use clip::{clip_grad_norm, clip_grad_value};
pub use core::{Optimizer, ParameterGroup};
pub use optimizers::{Adadelta, Adagrad, Adam, AdamW, NAdam, RAdam, RmsProp, Sgd};
pub use schedule::{ReduceOnPlateau, Schedule, Scheduler};
pub use state::OptimizerState;
