//! The contract of Drivetrain: dtypes, shapes, ops as plain data, the [`backend::Backend`] and
//! [`backend::Device`] traits, the registry and the caching allocator.
//!
//! Front doors: [`Op`] says what is computed, [`backend`] says who computes it, [`Device`] is the value
//! that users hold.

mod allocator;
pub mod backend;
pub mod decompose;
mod device;
mod dtype;
mod empty;
pub mod encode;
mod error;
mod fallback;
mod infer;
mod layout;
mod op;
pub mod program;
pub mod random;
mod registry;
mod shape;
pub mod threads;
mod view;

pub use backend::{DeviceInfo, MemoryStats, Meta, Operand, RawBuffer};
pub use decompose::decompose;
pub use device::{Buffer, Device};
pub use dtype::{DType, Element, Scalar};
pub use encode::{Attribute, Encoded};
pub use error::{Error, ErrorKind, Result};
pub use fallback::FALLBACK_VARIABLE;
pub use infer::{Outputs, check_creation, infer};
pub use layout::Layout;
pub use op::*;
pub use registry::{BackendRegistration, Candidate, DEVICE_VARIABLE, Registry};
pub use shape::{IntoShape, MAX_DIMS, MAX_USER_DIMS, Shape};
pub use view::ViewOp;

pub use half;
pub use inventory;
