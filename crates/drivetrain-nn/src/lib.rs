//! Neural-network layers, losses and initialisers of Drivetrain.
//!
//! A [`Module`] holds parameters, buffers and other modules; `#[derive(Module)]` walks a struct's fields. A
//! [`Layer`] is a module of one tensor in, one tensor out. `forward`, `train` and `eval` take `&self`:
//! parameters are shared cells, so a model can be used from many threads.

extern crate self as drivetrain_nn;

mod activation;
mod attention;
mod batch_norm;
mod container;
mod conv;
mod dropout;
mod embedding;
pub mod functional;
mod gru;
pub mod init;
mod linear;
pub mod loss;
mod lstm;
mod module;
mod norm;
mod pool;
mod recurrent;
mod state_dict;
mod transformer;
mod upsample;
mod visit;

pub use activation::*;
pub use attention::{MultiheadAttention, MultiheadAttentionConfig};
pub use batch_norm::{BatchNorm1d, BatchNorm2d, BatchNormConfig};
pub use container::{Flatten, Function, Identity, Sequential};
pub use conv::{Conv1d, Conv2d, Conv3d, ConvConfig, ConvTranspose2d, ConvTranspose2dConfig};
pub use drivetrain_derive::Module;
pub use drivetrain_tensor::{Buffer, Parameter};
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingConfig};
pub use gru::Gru;
pub use linear::{Linear, LinearConfig};
pub use lstm::{Lstm, LstmState};
pub use module::{Layer, Module};
pub use norm::{
    GroupNorm, GroupNormConfig, InstanceNorm, InstanceNormConfig, LayerNorm, LayerNormConfig,
    RmsNorm, RmsNormConfig,
};
pub use pool::{AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d};
pub use recurrent::RecurrentConfig;
pub use state_dict::{LoadReport, StateDict};
pub use transformer::{TransformerEncoderLayer, TransformerEncoderLayerConfig};
pub use upsample::{Upsample, UpsampleMode, UpsampleSize};
pub use visit::{Constant, Mode, Path, Visit, Visitor};
