//! `+ - * / -x` on tensors, numbers and one `Result` beside a tensor.
//!
//! Numbers are `f64` and `i64` only: with one float and one integer type, `1.0 - &x` needs no annotation.
//! Others go through the methods: `x.mul(2.0f32)`.

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
                i64 => |other| other.into();
            }
            left!($trait, $method, $op: f64, i64);
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
