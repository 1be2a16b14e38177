//! Tensors, views, autograd, printing and file formats of Drivetrain.
//!
//! A [`Tensor`] is an immutable value on some device: a cheap clone, `Send + Sync`, not generic. Device and
//! dtype are values too. Every op goes through one funnel (`run`): infer, decompose where the device lacks
//! the op, allocate, execute, record for [`Tensor::backward`].

mod adaptive_pool;
mod anomaly;
mod attention;
pub mod autograd;
mod conv;
mod create;
mod display;
mod dropout;
mod einsum;
mod elementwise;
mod fold;
pub mod formats;
mod host;
mod index;
mod interpolate;
mod joining;
mod linalg;
mod matrix;
mod movement;
mod norm;
mod operand;
mod operators;
mod pad;
mod parameter;
mod pool;
mod program;
mod reduce;
mod rules;
mod run;
mod slicing;
mod spatial;
mod tensor;

pub use autograd::{detect_anomaly, enable_grad, grad, is_grad_enabled, no_grad};
pub use conv::{ConvOptions, ConvTransposeOptions};
pub use create::{IntoData, host_generator, manual_seed, with_seed};
pub use fold::FoldOptions;
pub use index::{Index, IndexRange, IntoIndex};
pub use movement::IntoReshape;
pub use norm::BatchNormOutput;
pub use operand::Operand;
pub use pad::PadMode;
pub use parameter::{Buffer, Parameter};
pub use pool::{AvgPoolOptions, MaxPoolOptions};
pub use reduce::IntoDims;
pub use run::{run, run_in_place};
pub use spatial::Spatial;
pub use tensor::Tensor;

pub use drivetrain_core::{
    DType, Device, Element, Error, ErrorKind, IntoShape, Result, Scalar, Shape,
};
