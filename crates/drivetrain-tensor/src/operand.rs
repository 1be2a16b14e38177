//! What stands beside a tensor in an operation: another tensor, or a plain number.

use crate::Tensor;
use drivetrain_core::Scalar;
use drivetrain_core::half::{bf16, f16};

/// A tensor or a number.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A number: it raises the dtype's category but never its width.
    Scalar(Scalar),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Operand::Tensor(tensor)
    }
}

impl From<Scalar> for Operand<'_> {
    fn from(scalar: Scalar) -> Self {
        Operand::Scalar(scalar)
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl From<$type> for Operand<'_> {
            fn from(number: $type) -> Self {
                Operand::Scalar(number.into())
            }
        })*
    };
}
numbers!(f64, f32, f16, bf16, i64, i32, u8, bool);
