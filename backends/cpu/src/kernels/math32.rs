//! Branch-free F32 functions that become vector code; each at most 2 units in the last place off,
//! sigmoid 2.5.

use std::f32::consts::LOG2_E;

/// Adding and taking away this rounds to the nearest integer, below 2²².
const ROUND: f32 = 12_582_912.0;

/// ln 2 cut so that multiples of the leading part by up to 9 bits are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// 2ⁿ for n from -126 to 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// eˣ: x = n·ln 2 + r, a Taylor polynomial in r, times 2ⁿ in two steps so that the ends of the range come
/// out as infinity, subnormals and 0.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Past the clamp the result is infinite or 0 already; NaN passes through.
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -104.0 { -104.0 } else { clamped };
    let shifted = clamped * LOG2_E + ROUND;
    let n = shifted - ROUND;
    // The integer lies in the low bits: cheaper than a conversion, which must saturate.
    let whole = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let high = clamped - n * LN_2_HIGH;
    let low = n * LN_2_LOW;
    let r = high - low;
    // What rounding took from r.
    let lost = (high - r) - low;
    let mut sum = 1.0 / 5040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    // 1 + r + the rest, with what rounding takes from 1 + r put back.
    let one = 1.0 + r;
    let value = one + (sum * (r * r) + ((r - (one - 1.0)) + lost));
    let half = whole >> 1;
    value * power_of_two(half) * power_of_two(whole.wrapping_sub(half))
}

/// The exponent of x and the logarithm of its mantissa, which is within √½ … √2: an odd series in
/// (m - 1)/(m + 1).
#[inline(always)]
fn log_parts(x: f32) -> (f32, f32) {
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 8_388_608.0 } else { x };
    // Counted from √½, so that the mantissa is near 1.
    let bits = (scaled.to_bits() as i32).wrapping_sub(0x3F35_04F3);
    let exponent = (bits >> 23) as f32 - if subnormal { 23.0 } else { 0.0 };
    let m = f32::from_bits((bits & 0x007F_FFFF).wrapping_add(0x3F35_04F3) as u32);
    let f = m - 1.0;
    let t = f / (2.0 + f);
    let square = t * t;
    let mut sum = 2.0 / 9.0;
    sum = sum * square + 2.0 / 7.0;
    sum = sum * square + 2.0 / 5.0;
    sum = sum * square + 2.0 / 3.0;
    sum *= square;
    // 2t = f - t·f, so that the leading term is exact.
    (exponent, f - t * (f - sum))
}

/// The logarithm's value where it is not that of a positive number.
#[inline(always)]
fn log_ends(x: f32, value: f32) -> f32 {
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    let value = if x < 0.0 { f32::NAN } else { value };
    // Infinity and NaN are their own logarithms.
    if x < f32::INFINITY { value } else { x }
}

/// ln x.
#[inline(always)]
pub(crate) fn log(x: f32) -> f32 {
    let (exponent, series) = log_parts(x);
    log_ends(x, exponent * LN_2_HIGH + (exponent * LN_2_LOW + series))
}

/// log₂ x: as [`log`], each part in base 2.
#[inline(always)]
pub(crate) fn log2(x: f32) -> f32 {
    let (exponent, series) = log_parts(x);
    log_ends(x, exponent + series * LOG2_E)
}

/// ln(1 + x): the logarithm of the rounded 1 + x, and what rounding took relative to it.
#[inline(always)]
pub(crate) fn log1p(x: f32) -> f32 {
    let one = 1.0 + x;
    let lost = x - (one - 1.0);
    let near = log(one) + lost / one;
    // x itself where 1 + x is 1, and at infinity, where nothing is lost.
    let value = if one == 1.0 { x } else { near };
    if (x < f32::INFINITY) & (x > -1.0) {
        value
    } else {
        log(one)
    }
}

/// eˣ - 1: a Taylor polynomial below ½, else from eˣ.
#[inline(always)]
pub(crate) fn expm1(x: f32) -> f32 {
    let mut sum = 1.0 / 362_880.0;
    sum = sum * x + 1.0 / 40_320.0;
    sum = sum * x + 1.0 / 5_040.0;
    sum = sum * x + 1.0 / 720.0;
    sum = sum * x + 1.0 / 120.0;
    sum = sum * x + 1.0 / 24.0;
    sum = sum * x + 1.0 / 6.0;
    sum = sum * x + 0.5;
    let small = x + x * x * sum;
    if x.abs() < 0.5 { small } else { exp(x) - 1.0 }
}

/// 1/(1 + e⁻ˣ), from e^-|x|, which never overflows.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}

/// tanh x: a continued fraction near 0, else 1 - 2/(e²ˣ + 1).
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let square = x * x;
    // The fraction minus 1, so that its rounding errors count little.
    let above = ((27.0 * square + 2_772.0) * square + 45_045.0) * square;
    let below = ((28.0 * square + 3_150.0) * square + 62_370.0) * square + 135_135.0;
    let small = x - x * (above / below);
    let large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    let value = if a < 0.625 { small } else { large };
    value.copysign(x)
}

/// erf x: its Taylor series below 1, else 1 - e^(-x²)·P(x) with a polynomial interpolated at Chebyshev's
/// points of 1 … 4; from 4 on it is 1.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let a = x.abs();
    let square = x * x;
    // (-1)ⁿ·2/√π/(n!·(2n + 1)), n from 10 down, the last one less 1, which is added in the end.
    const SERIES: [f32; 11] = [
        1.4807193e-08,
        -1.6365844e-07,
        1.6462114e-06,
        -1.492565e-05,
        0.00012055333,
        -0.0008548327,
        0.005223978,
        -0.026866172,
        0.11283792,
        -0.37612638,
        0.12837917,
    ];
    let mut sum = 0.0;
    for coefficient in SERIES {
        sum = sum * square + coefficient;
    }
    let small = x + x * sum;
    const TAIL: [f32; 12] = [
        -3.566418e-05,
        9.62912e-05,
        -0.00014741614,
        0.0003681511,
        -0.0010136625,
        0.002425639,
        -0.0055688377,
        0.012484123,
        -0.027005458,
        0.05611095,
        -0.11152102,
        0.21080635,
    ];
    let clamped = if a > 4.0 { 4.0 } else { a };
    let u = (clamped - 2.5) * (1.0 / 1.5);
    let mut tail = 0.0;
    for coefficient in TAIL {
        tail = tail * u + coefficient;
    }
    let large = 1.0 - exp(-clamped * clamped) * tail;
    let value = if a < 1.0 { small } else { large.copysign(x) };
    if x.is_nan() { x } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::math64;

    /// The largest error in units of the last place over a sweep of all floats.
    fn worst(own: fn(f32) -> f32, exact: fn(f64) -> f64) -> (f64, f32) {
        let mut worst = (0.0, 0.0);
        for bits in (0..=u32::MAX).step_by(1013) {
            let x = f32::from_bits(bits);
            let (got, exact) = (own(x), exact(x as f64));
            let near = exact as f32;
            if near.is_nan() || near.is_infinite() || near == 0.0 {
                let same = got == near || (got.is_nan() && near.is_nan());
                // On the edge of the range the neighbour is as good.
                let edge = got.abs() <= f32::from_bits(2) || got.abs() >= f32::MAX;
                assert!(same || edge, "{x} gave {got}, not {near}");
                continue;
            }
            let unit = (near.abs().next_up() as f64 - near.abs() as f64).abs();
            let error = (got as f64 - exact).abs() / unit;
            assert!(!error.is_nan(), "{x} gave {got}, not {near}");
            if error > worst.0 {
                worst = (error, x);
            }
        }
        worst
    }

    #[test]
    fn errors_are_as_stated() {
        type Row = (&'static str, fn(f32) -> f32, fn(f64) -> f64);
        let functions: [Row; 8] = [
            ("exp", exp, f64::exp),
            ("log", log, f64::ln),
            ("log2", log2, f64::log2),
            ("log1p", log1p, f64::ln_1p),
            ("expm1", expm1, f64::exp_m1),
            ("tanh", tanh, f64::tanh),
            ("erf", erf, math64::erf),
            ("sigmoid", sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ];
        for (name, own, exact) in functions {
            let (error, x) = worst(own, exact);
            println!("{name}: {error:.3} at {x}");
            let bound = if name == "sigmoid" { 2.5 } else { 2.0 };
            assert!(error <= bound, "{name} is {error} units off at {x}");
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NAN).is_nan() && log(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
        assert!(erf(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan() && log(-1.0).is_nan());
        assert_eq!(log(0.0), f32::NEG_INFINITY);
        assert_eq!(log(f32::INFINITY), f32::INFINITY);
        assert_eq!((tanh(20.0), tanh(-20.0)), (1.0, -1.0));
        assert_eq!((erf(9.0), erf(-9.0)), (1.0, -1.0));
        assert_eq!((sigmoid(200.0), sigmoid(-200.0)), (1.0, 0.0));
        assert!(tanh(-0.0).is_sign_negative() && erf(-0.0).is_sign_negative());
    }
}
