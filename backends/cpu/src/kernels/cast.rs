//! `Cast`: from any dtype to any other.
//!
//! Float to integer truncates and saturates, NaN to 0 (Rust's `as`); integers wrap among themselves; to Bool
//! is "not 0"; halves are rounded once, from F32 or, for F64 and integers, from F64.

use super::map::{Function1, map1};
use crate::element::{Stored, from_f64};
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{DType, Operand};

/// `out = x as out's dtype`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn cast(x: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => from::<f32, f32>(x, out),
            DType::F64 => from::<f64, f64>(x, out),
            DType::F16 => from::<f16, f32>(x, out),
            DType::BF16 => from::<bf16, f32>(x, out),
            DType::I64 => from::<i64, i64>(x, out),
            DType::I32 => from::<i32, i32>(x, out),
            DType::U8 | DType::Bool => from::<u8, u8>(x, out),
        }
    }
}

/// A number that turns into every other.
pub(crate) trait Castable: Copy + Sync + 'static {
    /// To F32.
    fn to_f32(self) -> f32;
    /// To F64.
    fn to_f64(self) -> f64;
    /// To I64.
    fn to_i64(self) -> i64;
    /// To I32.
    fn to_i32(self) -> i32;
    /// To U8.
    fn to_u8(self) -> u8;
    /// To F16.
    fn to_f16(self) -> f16;
    /// To BF16.
    fn to_bf16(self) -> bf16;
    /// Whether it is not 0, as a byte.
    fn to_bool(self) -> u8;
}

macro_rules! castable {
    ($($type:ty, $wide:ty, $f16:path, $bf16:path;)*) => {
        $(impl Castable for $type {
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn to_i32(self) -> i32 { self as i32 }
            #[inline(always)]
            fn to_u8(self) -> u8 { self as u8 }
            #[inline(always)]
            fn to_f16(self) -> f16 { $f16(self as $wide) }
            #[inline(always)]
            fn to_bf16(self) -> bf16 { $bf16(self as $wide) }
            #[inline(always)]
            fn to_bool(self) -> u8 { u8::from(self != (0 as $type)) }
        })*
    };
}
castable! {
    f32, f32, f16::from_f32, bf16::from_f32;
    f64, f64, from_f64, from_f64;
    i64, f64, from_f64, from_f64;
    i32, f64, from_f64, from_f64;
    u8, f32, f16::from_f32, bf16::from_f32;
}

/// Declares the conversions as functions of the element-wise loops.
macro_rules! conversions {
    ($($name:ident: $method:ident -> $result:ty;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name;
            impl<C: Castable> Function1<C, $result> for $name {
                #[inline(always)]
                fn of(self, x: C) -> $result { x.$method() }
            }
        )*
    };
}
conversions! {
    ToF32: to_f32 -> f32;
    ToF64: to_f64 -> f64;
    ToI64: to_i64 -> i64;
    ToI32: to_i32 -> i32;
    ToU8: to_u8 -> u8;
    ToF16: to_f16 -> f16;
    ToBf16: to_bf16 -> bf16;
    ToBool: to_bool -> u8;
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn from<T: Stored<C>, C: Castable>(x: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match out.dtype {
            DType::F32 => map1::<T, C, f32, f32>(x, out, ToF32),
            DType::F64 => map1::<T, C, f64, f64>(x, out, ToF64),
            DType::F16 => map1::<T, C, f16, f16>(x, out, ToF16),
            DType::BF16 => map1::<T, C, bf16, bf16>(x, out, ToBf16),
            DType::I64 => map1::<T, C, i64, i64>(x, out, ToI64),
            DType::I32 => map1::<T, C, i32, i32>(x, out, ToI32),
            DType::U8 => map1::<T, C, u8, u8>(x, out, ToU8),
            DType::Bool => map1::<T, C, u8, u8>(x, out, ToBool),
        }
    }
}
