//! The F64 function that the standard library lacks.

use std::f64::consts::FRAC_2_SQRT_PI;

/// erf x to about 1e-15. Below 3, 2/√π·e^(-x²)·Σ 2ⁿx²ⁿ⁺¹/(2n + 1)!!, whose terms are all positive
/// (Abramowitz and Stegun 7.1.6); above, 1 minus the continued fraction of erfc (7.1.14).
pub(crate) fn erf(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() {
        return x;
    }
    if a >= 6.0 {
        return 1f64.copysign(x);
    }
    let square = x * x;
    if a < 3.0 {
        let (mut term, mut sum, mut n) = (x, x, 1.0);
        while term.abs() > 1e-17 * sum.abs() {
            term *= 2.0 * square / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        return FRAC_2_SQRT_PI * (-square).exp() * sum;
    }
    let mut fraction = a;
    for n in (1..=60).rev() {
        fraction = a + 0.5 * n as f64 / fraction;
    }
    let tail = (-square).exp() / fraction * (0.5 * FRAC_2_SQRT_PI);
    (1.0 - tail).copysign(x)
}
