//! The contract of Drivetrain: dtypes, shapes, ops as plain data, the `Backend` and `Device` traits,
//! registry and allocator.

mod dtype;
mod error;
mod shape;

pub use dtype::{DType, Element, Scalar};
pub use error::{Error, ErrorKind, Result};
pub use shape::{IntoShape, MAX_DIMS, MAX_USER_DIMS, Shape};

pub use half;
