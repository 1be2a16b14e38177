//! Autograd: the tape's nodes and leaves, grad mode, and backward.

mod engine;
mod mode;
mod node;

pub use engine::{GradOptions, grad, grad_with};
pub(crate) use mode::{anomaly_enabled, anomaly_off, with_grad_mode};
pub use mode::{detect_anomaly, enable_grad, is_grad_enabled, no_grad};
pub(crate) use node::{Context, Edge, Leaf, Node, Rule};
