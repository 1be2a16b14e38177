//! Keep the train, swap the engine: deep learning with the backend chosen at run time.
//!
//! This crate gathers the others under one name: [`tensor`], [`nn`], [`optim`], [`data`], [`train`], and links
//! the backends of its features. Programs begin with `use drivetrain::prelude::*;`: see [`prelude`].

pub mod prelude;

pub use drivetrain_core as core;
pub use drivetrain_data as data;
pub use drivetrain_nn as nn;
pub use drivetrain_optim as optim;
pub use drivetrain_tensor as tensor;
pub use drivetrain_train as train;

#[cfg(feature = "cpu")]
extern crate drivetrain_cpu as _;
