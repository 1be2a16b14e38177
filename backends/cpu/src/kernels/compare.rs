//! `Compare`: two operands to Bool.

use super::map::{functions, map2};
use super::math::Number;
use crate::element::Stored;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{CompareOp, DType, Operand};

functions! {
    Eq(a, b): Number -> u8 = u8::from(a == b);
    Ne(a, b): Number -> u8 = u8::from(a != b);
    Lt(a, b): Number -> u8 = u8::from(a < b);
    Le(a, b): Number -> u8 = u8::from(a <= b);
    Gt(a, b): Number -> u8 = u8::from(a > b);
    Ge(a, b): Number -> u8 = u8::from(a >= b);
}

/// `out = a op b`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn compare(op: CompareOp, a: &Operand, b: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match a.dtype {
            DType::F32 => typed::<f32, f32>(op, a, b, out),
            DType::F64 => typed::<f64, f64>(op, a, b, out),
            DType::F16 => typed::<f16, f32>(op, a, b, out),
            DType::BF16 => typed::<bf16, f32>(op, a, b, out),
            DType::I64 => typed::<i64, i64>(op, a, b, out),
            DType::I32 => typed::<i32, i32>(op, a, b, out),
            DType::U8 | DType::Bool => typed::<u8, u8>(op, a, b, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn typed<T: Stored<C>, C: Number>(op: CompareOp, a: &Operand, b: &Operand, out: &Operand) {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            CompareOp::Eq => map2::<T, C, u8, u8>(a, b, out, Eq),
            CompareOp::Ne => map2::<T, C, u8, u8>(a, b, out, Ne),
            CompareOp::Lt => map2::<T, C, u8, u8>(a, b, out, Lt),
            CompareOp::Le => map2::<T, C, u8, u8>(a, b, out, Le),
            CompareOp::Gt => map2::<T, C, u8, u8>(a, b, out, Gt),
            CompareOp::Ge => map2::<T, C, u8, u8>(a, b, out, Ge),
        }
    }
}
