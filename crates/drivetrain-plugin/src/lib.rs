//! How a backend joins a Drivetrain program: everything that an engine's own crate needs, under one name.
//!
//! A backend implements [`Backend`] and [`Device`] for its types and registers itself once in its crate's root:
//!
//! ```
//! use drivetrain_plugin::{Backend, Device, DeviceInfo, Error, Result};
//! use std::sync::Arc;
//!
//! /// An engine for machines that this example does not have.
//! struct Abacus;
//!
//! impl Backend for Abacus {
//!     fn name(&self) -> &str {
//!         "abacus"
//!     }
//!     fn devices(&self) -> Result<Vec<DeviceInfo>> {
//!         Err(Error::unavailable("abacus", "no beads found"))
//!     }
//!     fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
//!         Err(Error::unavailable("abacus", format!("no device {ordinal}")))
//!     }
//! }
//!
//! drivetrain_plugin::register_backend!(Abacus);
//!
//! // The registry knows it, and can say why it is not there.
//! let message = drivetrain_plugin::Registry::global().open("abacus").unwrap_err().to_string();
//! assert!(message.contains("no beads found"), "{message}");
//! ```
//!
//! A program that links such a crate (`use drivetrain_abacus as _;`) can open its devices by name. What is here is the
//! linked way of joining; backends in shared libraries, loaded when the program starts, are not part of this version.

pub use drivetrain_core::backend::{Backend, Device};
pub use drivetrain_core::{
    BackendRegistration, DType, DeviceInfo, Error, ErrorKind, Layout, MemoryStats, Meta, Op,
    Operand, RawBuffer, Registry, Result, Shape, register_backend,
};
