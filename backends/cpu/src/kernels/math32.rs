//! Branch-free F32 functions that become vector code; each at most 2 units in the last place off.

use std::f32::consts::LOG2_E;

/// Adding and taking away this rounds to the nearest integer, below 2²².
const ROUND: f32 = 12_582_912.0;

/// ln 2 cut so that multiples of the leading part by up to 9 bits are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// 2ⁿ for n from -126 to 127.
#[inline(always)]
fn power_of_two(n: f32) -> f32 {
    f32::from_bits(((n as i32).wrapping_add(127) << 23) as u32)
}

/// eˣ: x = n·ln 2 + r, a Taylor polynomial in r, times 2ⁿ in two steps so that the ends of the range come
/// out as infinity, subnormals and 0.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Past the clamp the result is infinite or 0 already; NaN passes through.
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -104.0 { -104.0 } else { clamped };
    let n = (clamped * LOG2_E + ROUND) - ROUND;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut sum = 1.0 / 5040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    let value = (sum * (r * r) + r) + 1.0;
    let half = (n * 0.5 + ROUND) - ROUND;
    value * power_of_two(half) * power_of_two(n - half)
}

/// ln x: the exponent, and an odd series in (m - 1)/(m + 1) for a mantissa within √½ … √2.
#[inline(always)]
pub(crate) fn log(x: f32) -> f32 {
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
    let series = f - t * (f - sum);
    let value = exponent * LN_2_HIGH + (exponent * LN_2_LOW + series);
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    let value = if x < 0.0 { f32::NAN } else { value };
    // Infinity and NaN are their own logarithms.
    if x < f32::INFINITY { value } else { x }
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
    let above = ((square + 378.0) * square + 17_325.0) * square + 135_135.0;
    let below = ((28.0 * square + 3_150.0) * square + 62_370.0) * square + 135_135.0;
    let small = x * (above / below);
    let large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    if a < 0.625 { small } else { large.copysign(x) }
}

/// erf x: its Taylor series below 1, else 1 - e^(-x²)·P(x) with a polynomial interpolated at Chebyshev's
/// points of 1 … 4; from 4 on it is 1.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let a = x.abs();
    let square = x * x;
    // (-1)ⁿ·2/√π/(n!·(2n + 1)), n from 10 down.
    const SERIES: [f32; 11] = [
        1.48071928e-08,
        -1.63658447e-07,
        1.64621144e-06,
        -1.49256504e-05,
        0.00012055333,
        -0.000854832702,
        0.00522397763,
        -0.0268661706,
        0.112837917,
        -0.376126389,
        1.12837917,
    ];
    let mut sum = 0.0;
    for coefficient in SERIES {
        sum = sum * square + coefficient;
    }
    let small = x * sum;
    const TAIL: [f32; 12] = [
        -3.56641788e-05,
        9.6291202e-05,
        -0.000147416143,
        0.000368151098,
        -0.0010136626,
        0.00242563894,
        -0.00556883765,
        0.0124841231,
        -0.0270054582,
        0.0561109476,
        -0.111521018,
        0.210806358,
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
