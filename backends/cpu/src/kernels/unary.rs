//! `Unary`: element-wise functions of one operand.

use super::map::{functions, map1};
use super::math::{Float, Number};
use crate::element::Stored;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{DType, Error, Operand, Result, UnaryOp};

functions! {
    Neg(x): Number -> C = x.neg();
    Abs(x): Number -> C = x.abs();
    /// The comparison with NaN fails both times.
    Sign(x): Number -> C = {
        let below = if x < C::ZERO { C::ONE.neg() } else { C::ZERO };
        if x > C::ZERO { C::ONE } else { below }
    };
    Same(x): Number -> C = x;
    Square(x): Number -> C = x.mul(x);
    /// NaN is not at most 0.
    Relu(x): Number -> C = if x <= C::ZERO { C::ZERO } else { x };
    Floor(x): Float -> C = x.floor();
    Ceil(x): Float -> C = x.ceil();
    Round(x): Float -> C = x.round();
    Trunc(x): Float -> C = x.trunc();
    Sqrt(x): Float -> C = x.sqrt();
    Rsqrt(x): Float -> C = C::ONE.div(x.sqrt());
    Reciprocal(x): Float -> C = C::ONE.div(x);
    Exp(x): Float -> C = x.exp();
    Expm1(x): Float -> C = x.expm1();
    Log(x): Float -> C = x.log();
    Log1p(x): Float -> C = x.log1p();
    Log2(x): Float -> C = x.log2();
    Sin(x): Float -> C = x.sin();
    Cos(x): Float -> C = x.cos();
    Tan(x): Float -> C = x.tan();
    Tanh(x): Float -> C = x.tanh();
    Erf(x): Float -> C = x.erf();
    Sigmoid(x): Float -> C = x.sigmoid();
}

#[derive(Clone, Copy)]
struct Not;

impl super::map::Function1<u8, u8> for Not {
    #[inline(always)]
    fn of(self, x: u8) -> u8 {
        x ^ 1
    }
}

/// Whether this dtype has the function.
pub(crate) fn supports(op: UnaryOp, dtype: DType) -> bool {
    match op {
        UnaryOp::LogicalNot => dtype == DType::Bool,
        _ if dtype.is_float() => true,
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Square => dtype.is_int(),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => dtype.is_int(),
        _ => false,
    }
}

/// `out = op(x)`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn unary(op: UnaryOp, x: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => float::<f32, f32>(op, x, out),
            DType::F64 => float::<f64, f64>(op, x, out),
            DType::F16 => float::<f16, f32>(op, x, out),
            DType::BF16 => float::<bf16, f32>(op, x, out),
            DType::I64 => integer::<i64>(op, x, out),
            DType::I32 => integer::<i32>(op, x, out),
            DType::U8 => integer::<u8>(op, x, out),
            DType::Bool if op == UnaryOp::LogicalNot => {
                map1::<u8, u8, u8, u8>(x, out, Not);
                Ok(())
            }
            DType::Bool => Err(refused(op, x.dtype)),
        }
    }
}

fn refused(op: UnaryOp, dtype: DType) -> Error {
    Error::dtype(op.name(), format!("not defined for {dtype}"))
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn float<T: Stored<C>, C: Float>(op: UnaryOp, x: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            UnaryOp::Neg => map1::<T, C, T, C>(x, out, Neg),
            UnaryOp::Abs => map1::<T, C, T, C>(x, out, Abs),
            UnaryOp::Sign => map1::<T, C, T, C>(x, out, Sign),
            UnaryOp::Floor => map1::<T, C, T, C>(x, out, Floor),
            UnaryOp::Ceil => map1::<T, C, T, C>(x, out, Ceil),
            UnaryOp::Round => map1::<T, C, T, C>(x, out, Round),
            UnaryOp::Trunc => map1::<T, C, T, C>(x, out, Trunc),
            UnaryOp::Square => map1::<T, C, T, C>(x, out, Square),
            UnaryOp::Sqrt => map1::<T, C, T, C>(x, out, Sqrt),
            UnaryOp::Rsqrt => map1::<T, C, T, C>(x, out, Rsqrt),
            UnaryOp::Reciprocal => map1::<T, C, T, C>(x, out, Reciprocal),
            UnaryOp::Exp => map1::<T, C, T, C>(x, out, Exp),
            UnaryOp::Expm1 => map1::<T, C, T, C>(x, out, Expm1),
            UnaryOp::Log => map1::<T, C, T, C>(x, out, Log),
            UnaryOp::Log1p => map1::<T, C, T, C>(x, out, Log1p),
            UnaryOp::Log2 => map1::<T, C, T, C>(x, out, Log2),
            UnaryOp::Sin => map1::<T, C, T, C>(x, out, Sin),
            UnaryOp::Cos => map1::<T, C, T, C>(x, out, Cos),
            UnaryOp::Tan => map1::<T, C, T, C>(x, out, Tan),
            UnaryOp::Tanh => map1::<T, C, T, C>(x, out, Tanh),
            UnaryOp::Erf => map1::<T, C, T, C>(x, out, Erf),
            UnaryOp::Sigmoid => map1::<T, C, T, C>(x, out, Sigmoid),
            UnaryOp::Relu => map1::<T, C, T, C>(x, out, Relu),
            UnaryOp::LogicalNot => return Err(refused(op, x.dtype)),
        }
    }
    Ok(())
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn integer<C: Number + Stored<C>>(op: UnaryOp, x: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            UnaryOp::Neg => map1::<C, C, C, C>(x, out, Neg),
            UnaryOp::Abs => map1::<C, C, C, C>(x, out, Abs),
            UnaryOp::Sign => map1::<C, C, C, C>(x, out, Sign),
            UnaryOp::Square => map1::<C, C, C, C>(x, out, Square),
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => {
                map1::<C, C, C, C>(x, out, Same)
            }
            UnaryOp::Sqrt
            | UnaryOp::Rsqrt
            | UnaryOp::Reciprocal
            | UnaryOp::Exp
            | UnaryOp::Expm1
            | UnaryOp::Log
            | UnaryOp::Log1p
            | UnaryOp::Log2
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Tanh
            | UnaryOp::Erf
            | UnaryOp::Sigmoid
            | UnaryOp::Relu
            | UnaryOp::LogicalNot => return Err(refused(op, x.dtype)),
        }
    }
    Ok(())
}
