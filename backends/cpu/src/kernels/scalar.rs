//! `BinaryScalar` and `CompareScalar`: a tensor and a plain number.

use super::binary::{
    Add, Atan2, Div, FloorDivide, Maximum, Minimum, Mul, Pow, Remainder, Sub, supports,
};
use super::compare::{Eq, Ge, Gt, Le, Lt, Ne};
use super::map::{Function1, Function2, map1};
use super::math::{Float, Number};
use crate::element::Stored;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{BinaryOp, CompareOp, DType, Element, Error, Operand, Result, Scalar};

/// A function of two numbers with the right one given.
#[derive(Clone, Copy)]
struct Right<F, C>(F, C);

impl<F: Function2<C, R>, C: Copy + Sync, R> Function1<C, R> for Right<F, C> {
    #[inline(always)]
    fn of(self, x: C) -> R {
        self.0.of(x, self.1)
    }
}

/// A function of two numbers with the left one given.
#[derive(Clone, Copy)]
struct Left<F, C>(F, C);

impl<F: Function2<C, R>, C: Copy + Sync, R> Function1<C, R> for Left<F, C> {
    #[inline(always)]
    fn of(self, x: C) -> R {
        self.0.of(self.1, x)
    }
}

/// x², for the commonest power.
#[derive(Clone, Copy)]
struct Square;

impl<C: Number> Function1<C, C> for Square {
    #[inline(always)]
    fn of(self, x: C) -> C {
        x.mul(x)
    }
}

/// Whether a dtype takes the function with a number beside it.
pub(crate) fn binary_supports(op: BinaryOp, dtype: DType) -> bool {
    dtype != DType::Bool && supports(op, dtype)
}

/// `out = x op scalar`, or `scalar op x` when `reversed`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn binary(
    op: BinaryOp,
    scalar: Scalar,
    reversed: bool,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => float::<f32, f32>(op, scalar, reversed, x, out),
            DType::F64 => float::<f64, f64>(op, scalar, reversed, x, out),
            DType::F16 => float::<f16, f32>(op, scalar, reversed, x, out),
            DType::BF16 => float::<bf16, f32>(op, scalar, reversed, x, out),
            DType::I64 => number::<i64, i64>(op, scalar, reversed, x, out),
            DType::I32 => number::<i32, i32>(op, scalar, reversed, x, out),
            DType::U8 => number::<u8, u8>(op, scalar, reversed, x, out),
            DType::Bool => Err(refused(op, x.dtype)),
        }
    }
}

fn refused(op: BinaryOp, dtype: DType) -> Error {
    Error::dtype(op.name(), format!("not defined for {dtype}"))
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn float<T: Stored<C> + Element, C: Float>(
    op: BinaryOp,
    scalar: Scalar,
    reversed: bool,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    let s = T::from_scalar(scalar).load();
    // SAFETY: as the caller promises.
    unsafe {
        match (op, reversed) {
            (BinaryOp::Div, false) => map1::<T, C, T, C>(x, out, Right(Div, s)),
            (BinaryOp::Div, true) => map1::<T, C, T, C>(x, out, Left(Div, s)),
            (BinaryOp::Atan2, false) => map1::<T, C, T, C>(x, out, Right(Atan2, s)),
            (BinaryOp::Atan2, true) => map1::<T, C, T, C>(x, out, Left(Atan2, s)),
            _ => return number::<T, C>(op, scalar, reversed, x, out),
        }
    }
    Ok(())
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn number<T: Stored<C> + Element, C: Number>(
    op: BinaryOp,
    scalar: Scalar,
    reversed: bool,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    let s = T::from_scalar(scalar).load();
    let two = C::ONE.add(C::ONE);
    // SAFETY: as the caller promises.
    unsafe {
        match (op, reversed) {
            // Those that do not mind the order.
            (BinaryOp::Add, _) => map1::<T, C, T, C>(x, out, Right(Add, s)),
            (BinaryOp::Mul, _) => map1::<T, C, T, C>(x, out, Right(Mul, s)),
            (BinaryOp::Maximum, _) => map1::<T, C, T, C>(x, out, Right(Maximum, s)),
            (BinaryOp::Minimum, _) => map1::<T, C, T, C>(x, out, Right(Minimum, s)),
            (BinaryOp::Sub, false) => map1::<T, C, T, C>(x, out, Right(Sub, s)),
            (BinaryOp::Sub, true) => map1::<T, C, T, C>(x, out, Left(Sub, s)),
            (BinaryOp::Pow, false) if s == two => map1::<T, C, T, C>(x, out, Square),
            (BinaryOp::Pow, false) => map1::<T, C, T, C>(x, out, Right(Pow, s)),
            (BinaryOp::Pow, true) => map1::<T, C, T, C>(x, out, Left(Pow, s)),
            (BinaryOp::Remainder, false) => map1::<T, C, T, C>(x, out, Right(Remainder, s)),
            (BinaryOp::Remainder, true) => map1::<T, C, T, C>(x, out, Left(Remainder, s)),
            (BinaryOp::FloorDivide, false) => map1::<T, C, T, C>(x, out, Right(FloorDivide, s)),
            (BinaryOp::FloorDivide, true) => map1::<T, C, T, C>(x, out, Left(FloorDivide, s)),
            (
                BinaryOp::Div
                | BinaryOp::Atan2
                | BinaryOp::LogicalAnd
                | BinaryOp::LogicalOr
                | BinaryOp::LogicalXor,
                _,
            ) => return Err(refused(op, x.dtype)),
        }
    }
    Ok(())
}

/// `out = x op scalar`, to Bool.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn compare(op: CompareOp, scalar: Scalar, x: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => compare_with::<f32, f32>(op, f32::from_scalar(scalar), x, out),
            DType::F64 => compare_with::<f64, f64>(op, f64::from_scalar(scalar), x, out),
            DType::F16 => compare_with::<f16, f32>(op, f16::from_scalar(scalar), x, out),
            DType::BF16 => compare_with::<bf16, f32>(op, bf16::from_scalar(scalar), x, out),
            DType::I64 => compare_with::<i64, i64>(op, i64::from_scalar(scalar), x, out),
            DType::I32 => compare_with::<i32, i32>(op, i32::from_scalar(scalar), x, out),
            DType::U8 => compare_with::<u8, u8>(op, u8::from_scalar(scalar), x, out),
            DType::Bool => compare_with::<u8, u8>(op, u8::from(scalar.as_bool()), x, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn compare_with<T: Stored<C>, C: Number>(
    op: CompareOp,
    scalar: T,
    x: &Operand,
    out: &Operand,
) {
    let s = scalar.load();
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            CompareOp::Eq => map1::<T, C, u8, u8>(x, out, Right(Eq, s)),
            CompareOp::Ne => map1::<T, C, u8, u8>(x, out, Right(Ne, s)),
            CompareOp::Lt => map1::<T, C, u8, u8>(x, out, Right(Lt, s)),
            CompareOp::Le => map1::<T, C, u8, u8>(x, out, Right(Le, s)),
            CompareOp::Gt => map1::<T, C, u8, u8>(x, out, Right(Gt, s)),
            CompareOp::Ge => map1::<T, C, u8, u8>(x, out, Right(Ge, s)),
        }
    }
}
