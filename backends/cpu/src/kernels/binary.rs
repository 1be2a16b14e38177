//! `Binary`: element-wise functions of two operands.

use super::map::{functions, map2};
use super::math::{Float, Number};
use crate::element::Stored;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{BinaryOp, DType, Error, Operand, Result};

functions! {
    Add(a, b): Number -> C = a.add(b);
    Sub(a, b): Number -> C = a.sub(b);
    Mul(a, b): Number -> C = a.mul(b);
    Pow(a, b): Number -> C = a.pow(b);
    Maximum(a, b): Number -> C = a.larger(b);
    Minimum(a, b): Number -> C = a.smaller(b);
    Remainder(a, b): Number -> C = a.remainder(b);
    FloorDivide(a, b): Number -> C = a.floor_divide(b);
    Div(a, b): Float -> C = a.div(b);
    Atan2(a, b): Float -> C = a.atan2(b);
}

/// A function of two bytes that are 0 or 1.
#[derive(Clone, Copy)]
struct Bits<F>(F);

impl<F: Fn(u8, u8) -> u8 + Copy + Sync> super::map::Function2<u8, u8> for Bits<F> {
    #[inline(always)]
    fn of(self, a: u8, b: u8) -> u8 {
        self.0(a, b)
    }
}

/// Whether this dtype has the function.
pub(crate) fn supports(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::LogicalXor => dtype == DType::Bool,
        BinaryOp::Div | BinaryOp::Atan2 => dtype.is_float(),
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::Maximum | BinaryOp::Minimum => true,
        BinaryOp::Sub | BinaryOp::Pow | BinaryOp::Remainder | BinaryOp::FloorDivide => {
            dtype != DType::Bool
        }
    }
}

/// `out = op(a, b)`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn binary(op: BinaryOp, a: &Operand, b: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match a.dtype {
            DType::F32 => float::<f32, f32>(op, a, b, out),
            DType::F64 => float::<f64, f64>(op, a, b, out),
            DType::F16 => float::<f16, f32>(op, a, b, out),
            DType::BF16 => float::<bf16, f32>(op, a, b, out),
            DType::I64 => number::<i64, i64>(op, a, b, out),
            DType::I32 => number::<i32, i32>(op, a, b, out),
            DType::U8 => number::<u8, u8>(op, a, b, out),
            DType::Bool => boolean(op, a, b, out),
        }
    }
}

fn refused(op: BinaryOp, dtype: DType) -> Error {
    Error::dtype(op.name(), format!("not defined for {dtype}"))
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn float<T: Stored<C>, C: Float>(
    op: BinaryOp,
    a: &Operand,
    b: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            BinaryOp::Div => map2::<T, C, T, C>(a, b, out, Div),
            BinaryOp::Atan2 => map2::<T, C, T, C>(a, b, out, Atan2),
            _ => return number::<T, C>(op, a, b, out),
        }
    }
    Ok(())
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn number<T: Stored<C>, C: Number>(
    op: BinaryOp,
    a: &Operand,
    b: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            BinaryOp::Add => map2::<T, C, T, C>(a, b, out, Add),
            BinaryOp::Sub => map2::<T, C, T, C>(a, b, out, Sub),
            BinaryOp::Mul => map2::<T, C, T, C>(a, b, out, Mul),
            BinaryOp::Pow => map2::<T, C, T, C>(a, b, out, Pow),
            BinaryOp::Maximum => map2::<T, C, T, C>(a, b, out, Maximum),
            BinaryOp::Minimum => map2::<T, C, T, C>(a, b, out, Minimum),
            BinaryOp::Remainder => map2::<T, C, T, C>(a, b, out, Remainder),
            BinaryOp::FloorDivide => map2::<T, C, T, C>(a, b, out, FloorDivide),
            BinaryOp::Div
            | BinaryOp::Atan2
            | BinaryOp::LogicalAnd
            | BinaryOp::LogicalOr
            | BinaryOp::LogicalXor => return Err(refused(op, a.dtype)),
        }
    }
    Ok(())
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn boolean(op: BinaryOp, a: &Operand, b: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            BinaryOp::Add | BinaryOp::LogicalOr | BinaryOp::Maximum => {
                map2::<u8, u8, u8, u8>(a, b, out, Bits(|a, b| a | b))
            }
            BinaryOp::Mul | BinaryOp::LogicalAnd | BinaryOp::Minimum => {
                map2::<u8, u8, u8, u8>(a, b, out, Bits(|a, b| a & b))
            }
            BinaryOp::LogicalXor => map2::<u8, u8, u8, u8>(a, b, out, Bits(|a, b| a ^ b)),
            BinaryOp::Sub
            | BinaryOp::Div
            | BinaryOp::Pow
            | BinaryOp::Atan2
            | BinaryOp::Remainder
            | BinaryOp::FloorDivide => return Err(refused(op, a.dtype)),
        }
    }
    Ok(())
}
