//! How stored elements become numbers to compute with, and back: halves widen to F32, sums of integers to I64.

use drivetrain_core::half::slice::HalfFloatSliceExt;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{Element, Scalar};

/// A stored element that can be computed with as `C`. Bool is stored as a byte, 0 or 1, and is a `u8` here.
pub(crate) trait Stored<C: Copy>: Copy + Send + Sync + 'static {
    /// Widens.
    fn load(self) -> C;
    /// Narrows: one rounding for halves, wrapping for integers.
    fn store(value: C) -> Self;
    /// The elements themselves, when they are of type `C` already.
    fn as_numbers(_stored: &[Self]) -> Option<&[C]> {
        None
    }
    /// As [`Stored::as_numbers`].
    fn as_numbers_mut(_stored: &mut [Self]) -> Option<&mut [C]> {
        None
    }
    /// Appends all of `stored`, widened.
    fn load_all(stored: &[Self], to: &mut Vec<C>) {
        to.extend(stored.iter().map(|x| x.load()));
    }
    /// Narrows all of `numbers` into a slice as long.
    fn store_all(numbers: &[C], stored: &mut [Self]) {
        for (slot, number) in stored.iter_mut().zip(numbers) {
            *slot = Self::store(*number);
        }
    }
}

macro_rules! same {
    ($($type:ty),*) => {
        $(impl Stored<$type> for $type {
            #[inline(always)]
            fn load(self) -> $type { self }
            #[inline(always)]
            fn store(value: $type) -> $type { value }
            fn as_numbers(stored: &[$type]) -> Option<&[$type]> { Some(stored) }
            fn as_numbers_mut(stored: &mut [$type]) -> Option<&mut [$type]> { Some(stored) }
        })*
    };
}
same!(f32, f64, i64, i32, u8, u16, u32, u64, f16, bf16);

/// A half from F64, rounded once (`half`'s own conversion is not exact on ties).
#[inline(always)]
pub(crate) fn from_f64<H: Element>(value: f64) -> H {
    H::from_scalar(Scalar::F64(value))
}

macro_rules! widened {
    ($($type:ty => $wide:ty, $load:expr, $store:expr;)*) => {
        $(impl Stored<$wide> for $type {
            #[inline(always)]
            fn load(self) -> $wide { $load(self) }
            #[inline(always)]
            fn store(value: $wide) -> $type { $store(value) }
        })*
    };
}
widened! {
    f32 => f64, |x| x as f64, |x| x as f32;
    f16 => f64, f16::to_f64, from_f64;
    bf16 => f64, bf16::to_f64, from_f64;
    i32 => i64, |x| x as i64, |x| x as i32;
    u8 => i64, |x| x as i64, |x| x as u8;
}

macro_rules! half {
    ($($type:ty),*) => {
        $(impl Stored<f32> for $type {
            #[inline(always)]
            fn load(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn store(value: f32) -> $type { <$type>::from_f32(value) }
            fn load_all(stored: &[$type], to: &mut Vec<f32>) {
                let start = to.len();
                to.resize(start + stored.len(), 0.0);
                stored.convert_to_f32_slice(&mut to[start..]);
            }
            fn store_all(numbers: &[f32], stored: &mut [$type]) {
                stored.convert_from_f32_slice(numbers);
            }
        })*
    };
}
half!(f16, bf16);
