//! The CPU backend of Drivetrain: one device, `cpu`, in host memory, on core's thread pool.
//!
//! Linking the crate registers it: `use drivetrain_cpu as _;`. `exec` is the match over ops; a file of
//! `kernels` holds a family of them, written once over views (`view`, `walk`, `cursor`) so that
//! contiguous operands run as plain slices, and any other strides are gathered block by block.

mod cursor;
mod device;
mod element;
mod exec;
mod kernels;
mod parallel;
mod simd;
mod view;
mod walk;

pub use device::{CpuBackend, CpuDevice};

drivetrain_core::register_backend!(CpuBackend::new());
