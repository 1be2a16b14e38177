//! The eight element types, their promotion table, and scalars.

use crate::{Error, Result};
use half::{bf16, f16};
use std::fmt;

/// The type of a tensor's elements.
///
/// The numbers are part of the plugin ABI: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum DType {
    /// 32-bit IEEE float.
    F32 = 0,
    /// 64-bit IEEE float.
    F64 = 1,
    /// 16-bit IEEE float.
    F16 = 2,
    /// 16-bit float with F32's exponent range.
    BF16 = 3,
    /// 64-bit signed integer.
    I64 = 4,
    /// 32-bit signed integer.
    I32 = 5,
    /// 8-bit unsigned integer.
    U8 = 6,
    /// A byte, 0 or 1.
    Bool = 7,
}

impl DType {
    /// All of them, in the order of their numbers.
    pub const ALL: [DType; 8] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::U8,
        DType::Bool,
    ];

    /// Bytes an element takes.
    pub const fn size(self) -> usize {
        match self {
            DType::F64 | DType::I64 => 8,
            DType::F32 | DType::I32 => 4,
            DType::F16 | DType::BF16 => 2,
            DType::U8 | DType::Bool => 1,
        }
    }

    /// F32, F64, F16 or BF16.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// I64, I32 or U8 (not Bool).
    pub const fn is_int(self) -> bool {
        matches!(self, DType::I64 | DType::I32 | DType::U8)
    }

    /// F16 or BF16: computed in F32.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// The type that sums and products of this type are kept in: F32 for halves, I64 for integers and Bool.
    pub const fn accumulator(self) -> DType {
        match self {
            DType::F64 => DType::F64,
            DType::F32 | DType::F16 | DType::BF16 => DType::F32,
            DType::I64 | DType::I32 | DType::U8 | DType::Bool => DType::I64,
        }
    }

    /// The type of an operation's result when both operands are tensors, as in PyTorch.
    ///
    /// ```
    /// use drivetrain_core::DType;
    /// assert_eq!(DType::I64.promote(DType::F16), DType::F16);
    /// assert_eq!(DType::F16.promote(DType::BF16), DType::F32);
    /// assert_eq!(DType::U8.promote(DType::Bool), DType::U8);
    /// ```
    pub const fn promote(self, other: DType) -> DType {
        use DType::*;
        match (self, other) {
            (F64, _) | (_, F64) => F64,
            (F32, _) | (_, F32) | (F16, BF16) | (BF16, F16) => F32,
            (F16, _) | (_, F16) => F16,
            (BF16, _) | (_, BF16) => BF16,
            (I64, _) | (_, I64) => I64,
            (I32, _) | (_, I32) => I32,
            (U8, _) | (_, U8) => U8,
            (Bool, Bool) => Bool,
        }
    }

    /// The type of an operation's result when the other operand is a plain number: the number only
    /// raises the category (Bool → I64 → F32), never the width. As PyTorch's Python scalars.
    pub const fn promote_scalar(self, scalar: Scalar) -> DType {
        match scalar {
            Scalar::Bool(_) => self,
            Scalar::I64(_) => match self {
                DType::Bool => DType::I64,
                other => other,
            },
            Scalar::F64(_) if self.is_float() => self,
            Scalar::F64(_) => DType::F32,
        }
    }

    /// Lower-case name as in PyTorch without `torch.`: `float32`, `int64`, `bool`.
    pub const fn torch_name(self) -> &'static str {
        match self {
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::I64 => "int64",
            DType::I32 => "int32",
            DType::U8 => "uint8",
            DType::Bool => "bool",
        }
    }

    /// The type with this number.
    ///
    /// # Errors
    /// When no dtype has it.
    pub fn from_code(code: u32) -> Result<DType> {
        let all = DType::ALL.get(code as usize).copied();
        all.ok_or_else(|| Error::dtype("dtype", format!("no dtype has the code {code}")))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A plain number beside tensors. Two are equal when their bits are, so that ops compare as data.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A float.
    F64(f64),
    /// An integer.
    I64(i64),
    /// A truth value.
    Bool(bool),
}

impl Scalar {
    /// Its value as a float.
    pub const fn as_f64(self) -> f64 {
        match self {
            Scalar::F64(v) => v,
            Scalar::I64(v) => v as f64,
            Scalar::Bool(v) => v as u8 as f64,
        }
    }

    /// Its value as an integer: floats truncate and saturate, NaN gives 0.
    pub const fn as_i64(self) -> i64 {
        match self {
            Scalar::F64(v) => v as i64,
            Scalar::I64(v) => v,
            Scalar::Bool(v) => v as i64,
        }
    }

    /// Whether it is not zero (NaN is not).
    pub fn as_bool(self) -> bool {
        match self {
            Scalar::F64(v) => v != 0.0,
            Scalar::I64(v) => v != 0,
            Scalar::Bool(v) => v,
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Scalar::F64(a), Scalar::F64(b)) => a.to_bits() == b.to_bits(),
            (Scalar::I64(a), Scalar::I64(b)) => a == b,
            (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Scalar {}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::F64(v) => v.fmt(f),
            Scalar::I64(v) => v.fmt(f),
            Scalar::Bool(v) => v.fmt(f),
        }
    }
}

macro_rules! scalar_from {
    ($variant:ident as $wide:ty: $($type:ty),*) => {
        $(impl From<$type> for Scalar {
            fn from(value: $type) -> Self {
                Scalar::$variant(<$wide>::from(value))
            }
        })*
    };
}
scalar_from!(F64 as f64: f64, f32, f16, bf16);
scalar_from!(I64 as i64: i64, i32, u8);
scalar_from!(Bool as bool: bool);

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that can be a tensor's element. Closed: exactly the eight of [`DType`].
pub trait Element:
    sealed::Sealed + Copy + Send + Sync + PartialEq + fmt::Debug + Into<Scalar> + 'static
{
    /// Its dtype.
    const DTYPE: DType;
    /// From a scalar, by the casting rules of [`Scalar::as_i64`] and IEEE rounding.
    fn from_scalar(scalar: Scalar) -> Self;
    /// These elements' bytes in native order.
    fn to_bytes(slice: &[Self]) -> &[u8];
    /// Elements from bytes in native order; a rest shorter than an element is left out.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! element {
    ($($type:ty, $dtype:ident, |$s:ident| $from:expr;)*) => {
        $(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
                fn from_scalar($s: Scalar) -> Self { $from }
                fn to_bytes(slice: &[Self]) -> &[u8] { bytemuck::cast_slice(slice) }
                fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                    let whole = bytes.len() / size_of::<Self>() * size_of::<Self>();
                    bytemuck::allocation::pod_collect_to_vec(&bytes[..whole])
                }
            }
        )*
    };
}
element! {
    f32, F32, |s| match s { Scalar::I64(v) => v as f32, s => s.as_f64() as f32 };
    f64, F64, |s| s.as_f64();
    f16, F16, |s| f16::from_f32(rounded_to_odd(s.as_f64()));
    bf16, BF16, |s| bf16::from_f32(rounded_to_odd(s.as_f64()));
    i64, I64, |s| s.as_i64();
    i32, I32, |s| match s { Scalar::F64(v) => v as i32, s => s.as_i64() as i32 };
    u8, U8, |s| match s { Scalar::F64(v) => v as u8, s => s.as_i64() as u8 };
}

/// The neighbour in F32 with an odd last bit unless the value is exact, so that rounding it again to fewer
/// bits gives what rounding once would. (`half`'s own conversion from F64 leaves the lower half of the
/// mantissa out and so takes values just above a tie for ties.)
fn rounded_to_odd(value: f64) -> f32 {
    let near = value as f32;
    if near as f64 == value || near.is_nan() {
        return near;
    }
    let away = (near as f64).abs() > value.abs();
    f32::from_bits((near.to_bits() - u32::from(away)) | 1)
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn from_scalar(scalar: Scalar) -> Self {
        scalar.as_bool()
    }
    fn to_bytes(slice: &[Self]) -> &[u8] {
        bytemuck::cast_slice(slice)
    }
    fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.iter().map(|&byte| byte != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_commutative_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            assert_eq!(DType::from_code(a as u32).unwrap(), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
            }
        }
        assert!(DType::from_code(8).is_err());
    }

    #[test]
    fn halves_are_rounded_once() {
        let bf = |v: f64| bf16::from_scalar(Scalar::F64(v)).to_f64();
        // Just above a tie, by bits that are far down the mantissa.
        assert_eq!(bf(1.48828125), 1.484375);
        assert_eq!(bf(1.48828125 + 1e-7), 1.4921875);
        assert_eq!(bf(1.48828125 + 1e-15), 1.4921875);
        assert_eq!(bf(1e300), f64::INFINITY);
        let half = |v: f64| f16::from_scalar(Scalar::F64(v)).to_f64();
        let tie = 1.0 + 0.5 * 2f64.powi(-10);
        assert_eq!((half(tie), half(tie + 1e-14)), (1.0, 1.0 + 2f64.powi(-10)));
        assert_eq!(half(-1e-300), 0.0);
        assert!(half(f64::NAN).is_nan());
    }

    #[test]
    fn casts_saturate() {
        let values = [-2.0, -0.5, 0.9, 255.9, 256.0, f64::NAN, f64::INFINITY];
        let got = values.map(|v| u8::from_scalar(Scalar::F64(v)));
        assert_eq!(got, [0, 0, 0, 255, 255, 0, 255]);
    }
}
