//! Number types and their functions, marked so that loops over them become vector code.

use drivetrain_core::half::{bf16, f16};

/// What every number type that is computed with has. Integers wrap; division by 0 gives 0.
pub(crate) trait Number: Copy + Default + PartialOrd + Send + Sync + 'static {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// No number is less.
    const LOWEST: Self;
    /// No number is more.
    const HIGHEST: Self;
    /// a + b.
    fn add(self, other: Self) -> Self;
    /// a - b.
    fn sub(self, other: Self) -> Self;
    /// a × b.
    fn mul(self, other: Self) -> Self;
    /// -a.
    fn neg(self) -> Self;
    /// |a|.
    fn abs(self) -> Self;
    /// a to the power b.
    fn pow(self, other: Self) -> Self;
    /// a - b·⌊a/b⌋.
    fn remainder(self, other: Self) -> Self;
    /// ⌊a/b⌋.
    fn floor_divide(self, other: Self) -> Self;

    /// Whether it is NaN.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }

    /// The larger; NaN if either is.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        // Not-greater keeps a NaN on the left, the second test one on the right.
        if (self > other) | self.is_nan() {
            self
        } else {
            other
        }
    }

    /// The smaller; NaN if either is.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if (self < other) | self.is_nan() {
            self
        } else {
            other
        }
    }
}

macro_rules! integer {
    ($($type:ty, |$x:ident| $abs:expr;)*) => {
        $(impl Number for $type {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$type>::MIN;
            const HIGHEST: Self = <$type>::MAX;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn abs(self) -> Self { let $x = self; $abs }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn pow(self, other: Self) -> Self {
                if other < 0 {
                    // 1/aⁿ, towards 0.
                    return match self {
                        1 => 1,
                        _ if self.wrapping_add(1) == 0 => if other & 1 == 0 { 1 } else { self },
                        _ => 0,
                    };
                }
                let (mut base, mut left, mut power) = (self, other, 1 as $type);
                while left > 0 {
                    if left & 1 == 1 {
                        power = power.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                power
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_divide(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let (whole, rest) = (self.wrapping_div(other), self.wrapping_rem(other));
                if rest != 0 && (rest < 0) != (other < 0) { whole.wrapping_sub(1) } else { whole }
            }
        })*
    };
}
integer! {
    i64, |x| x.wrapping_abs();
    i32, |x| x.wrapping_abs();
    u8, |x| x;
}

/// What the float types have beside; halves are computed as F32 and have none of their own.
pub(crate) trait Float: Number {
    /// a ÷ b.
    fn div(self, other: Self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Smallest integer not below.
    fn ceil(self) -> Self;
    /// Nearest integer, halves to even.
    fn round(self) -> Self;
    /// Towards zero.
    fn trunc(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// eˣ.
    fn exp(self) -> Self;
    /// eˣ - 1.
    fn expm1(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// ln(1 + x).
    fn log1p(self) -> Self;
    /// Base-2 logarithm.
    fn log2(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Tangent.
    fn tan(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Gauss error function.
    fn erf(self) -> Self;
    /// 1/(1 + e⁻ˣ).
    fn sigmoid(self) -> Self;
    /// Angle of the point (other, self).
    fn atan2(self, other: Self) -> Self;
}

macro_rules! float {
    ($type:ty, { $($special:tt)* }) => {
        impl Number for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$type>::NEG_INFINITY;
            const HIGHEST: Self = <$type>::INFINITY;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn abs(self) -> Self { <$type>::abs(self) }
            #[inline(always)]
            fn pow(self, other: Self) -> Self { self.powf(other) }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                let rest = self % other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) {
                    rest + other
                } else {
                    // A zero has the sign of b, as in Python.
                    if rest == 0.0 { (0.0 as $type).copysign(other) } else { rest }
                }
            }
            #[inline(always)]
            fn floor_divide(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                // The exact quotient's floor: a ÷ b itself may have rounded up to an integer.
                let rest = self % other;
                let whole = (self - rest) / other;
                let down = rest != 0.0 && (rest < 0.0) != (other < 0.0);
                let whole = <$type>::round_ties_even(if down { whole - 1.0 } else { whole });
                if whole == 0.0 { (0.0 as $type).copysign(self / other) } else { whole }
            }
        }

        impl Float for $type {
            #[inline(always)]
            fn div(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn floor(self) -> Self { <$type>::floor(self) }
            #[inline(always)]
            fn ceil(self) -> Self { <$type>::ceil(self) }
            #[inline(always)]
            fn round(self) -> Self { <$type>::round_ties_even(self) }
            #[inline(always)]
            fn trunc(self) -> Self { <$type>::trunc(self) }
            #[inline(always)]
            fn sqrt(self) -> Self { <$type>::sqrt(self) }
            #[inline(always)]
            fn sin(self) -> Self { <$type>::sin(self) }
            #[inline(always)]
            fn cos(self) -> Self { <$type>::cos(self) }
            #[inline(always)]
            fn tan(self) -> Self { <$type>::tan(self) }
            #[inline(always)]
            fn atan2(self, other: Self) -> Self { <$type>::atan2(self, other) }
            $($special)*
        }
    };
}
float!(f32, {
    #[inline(always)]
    fn exp(self) -> Self {
        super::math32::exp(self)
    }
    #[inline(always)]
    fn expm1(self) -> Self {
        super::math32::expm1(self)
    }
    #[inline(always)]
    fn log(self) -> Self {
        super::math32::log(self)
    }
    #[inline(always)]
    fn log1p(self) -> Self {
        super::math32::log1p(self)
    }
    #[inline(always)]
    fn log2(self) -> Self {
        super::math32::log2(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        super::math32::tanh(self)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        super::math32::erf(self)
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        super::math32::sigmoid(self)
    }
});
float!(f64, {
    #[inline(always)]
    fn exp(self) -> Self {
        f64::exp(self)
    }
    #[inline(always)]
    fn expm1(self) -> Self {
        self.exp_m1()
    }
    #[inline(always)]
    fn log(self) -> Self {
        self.ln()
    }
    #[inline(always)]
    fn log1p(self) -> Self {
        self.ln_1p()
    }
    #[inline(always)]
    fn log2(self) -> Self {
        f64::log2(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        f64::tanh(self)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        super::math64::erf(self)
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        let e = (-self.abs()).exp();
        let r = 1.0 / (1.0 + e);
        if self < 0.0 { e * r } else { r }
    }
});

/// The bytes of a stored type as an order: comparisons by [`PartialOrd`] of the number it stands for.
pub(crate) trait Key: Copy + Send + Sync + 'static {
    /// An integer whose order is the numbers' order, NaN largest, both zeros equal.
    fn key(self) -> u64;
    /// Whether keys fit 32 bits.
    const SMALL: bool;
}

macro_rules! float_key {
    ($($type:ty, $bits:ty, $small:expr;)*) => {
        $(impl Key for $type {
            const SMALL: bool = $small;
            #[inline(always)]
            fn key(self) -> u64 {
                if self.is_nan() {
                    return <$bits>::MAX as u64;
                }
                let bits = self.to_bits();
                let top = 1 << (<$bits>::BITS - 1);
                // Negative numbers grow with their bits the wrong way round; -0 becomes 0.
                let ordered = if bits & top == 0 { bits | top } else { (!bits).wrapping_add(1) };
                ordered as u64
            }
        })*
    };
}
float_key! {
    f32, u32, true;
    f64, u64, false;
    f16, u16, true;
    bf16, u16, true;
}

macro_rules! integer_key {
    ($($type:ty, $unsigned:ty, $low:expr, $small:expr;)*) => {
        $(impl Key for $type {
            const SMALL: bool = $small;
            #[inline(always)]
            fn key(self) -> u64 { (self as $unsigned ^ $low) as u64 }
        })*
    };
}
integer_key! {
    i64, u64, 1 << 63, false;
    i32, u32, 1 << 31, true;
    u8, u8, 0, true;
}
