//! `+ - * / -x` on tensors, numbers and one `Result` beside a tensor.

use crate::{Operand, Tensor};
use drivetrain_core::{BinaryOp, Result, Scalar};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A right-hand side by its own type: the operand it is.
macro_rules! right {
    ($trait:ident, $method:ident, $op:ident: $($right:ty => |$other:ident| $operand:expr;)*) => {
        $(right!(@one $trait, $method, $op, $right, $other, $operand);)*
    };
    (@one $trait:ident, $method:ident, $op:ident, $right:ty, $other:ident, $operand:expr) => {
        impl $trait<$right> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, $other: $right) -> Result<Tensor> {
                self.binary(BinaryOp::$op, $operand)
            }
        }
        impl $trait<$right> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, $other: $right) -> Result<Tensor> {
                self.binary(BinaryOp::$op, $operand)
            }
        }
    };
}

/// A number on the left.
macro_rules! left {
    ($trait:ident, $method:ident, $op:ident: $($number:ty),*) => {
        $(
            impl $trait<&Tensor> for $number {
                type Output = Result<Tensor>;
                #[track_caller]
                fn $method(self, tensor: &Tensor) -> Result<Tensor> {
                    tensor.binary_scalar(BinaryOp::$op, Scalar::from(self), true)
                }
            }
            impl $trait<Tensor> for $number {
                type Output = Result<Tensor>;
                #[track_caller]
                fn $method(self, tensor: Tensor) -> Result<Tensor> {
                    tensor.binary_scalar(BinaryOp::$op, Scalar::from(self), true)
                }
            }
        )*
    };
}

macro_rules! operators {
    ($($trait:ident, $method:ident => $op:ident;)*) => {
        $(
            right! { $trait, $method, $op:
                &Tensor => |other| Operand::Tensor(other);
                Tensor => |other| Operand::Tensor(&other);
                Result<Tensor> => |other| Operand::Tensor(&other?);
                f64 => |other| other.into();
                f32 => |other| other.into();
                i64 => |other| other.into();
                i32 => |other| other.into();
            }
            left!($trait, $method, $op: f64, f32, i64, i32);
        )*
    };
}

operators! {
    Add, add => Add;
    Sub, sub => Sub;
    Mul, mul => Mul;
    Div, div => Div;
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Result<Tensor>;
    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(&self)
    }
}
