//! Functions of numbers: the unary and binary ops on one F64 or I64, and the error function.

use drivetrain_core::{BinaryOp, CompareOp, UnaryOp};

/// The error function to about 1e-15: by its series of positive terms below 3, by the continued fraction of
/// its complement (Abramowitz & Stegun 7.1.6 and 7.1.14) above.
pub fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if x.is_nan() {
        return x;
    }
    if magnitude >= 6.0 {
        return x.signum();
    }
    let bell = 2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp();
    if magnitude < 3.0 {
        let (mut term, mut sum, mut n) = (x, x, 1.0);
        while term.abs() > sum.abs() * 1e-17 {
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
            n += 1.0;
        }
        return bell * sum;
    }
    // x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …))), from the inside.
    let fraction = (1..=60)
        .rev()
        .fold(magnitude, |below, k| magnitude + f64::from(k) / 2.0 / below);
    x.signum() * (1.0 - bell / 2.0 / fraction)
}

/// A unary op of a float.
pub(super) fn unary(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign if x == 0.0 || x.is_nan() => 0.0,
        UnaryOp::Sign => x.signum(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Square => x * x,
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Reciprocal => 1.0 / x,
        UnaryOp::Exp => x.exp(),
        UnaryOp::Expm1 => x.exp_m1(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log1p => x.ln_1p(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Erf => erf(x),
        UnaryOp::Sigmoid => {
            // Of the two forms the one whose exponential is small.
            let small = (-x.abs()).exp();
            let upper = 1.0 / (1.0 + small);
            if x < 0.0 { small * upper } else { upper }
        }
        UnaryOp::Relu if x < 0.0 => 0.0,
        UnaryOp::Relu => x,
        UnaryOp::LogicalNot => f64::from(u8::from(x == 0.0)),
    }
}

/// A unary op of an integer or Bool; those that inference refuses for integers leave it as it is.
pub(super) fn unary_int(op: UnaryOp, x: i64) -> i64 {
    match op {
        UnaryOp::Neg => x.wrapping_neg(),
        UnaryOp::Abs => x.wrapping_abs(),
        UnaryOp::Sign => x.signum(),
        UnaryOp::Square => x.wrapping_mul(x),
        UnaryOp::LogicalNot => i64::from(x == 0),
        _ => x,
    }
}

/// Of two the one that `better` prefers; NaN if either is.
fn extreme(a: f64, b: f64, better: fn(&f64, &f64) -> bool) -> f64 {
    if a.is_nan() || (better(&a, &b) && !b.is_nan()) {
        a
    } else {
        b
    }
}

/// The larger of two; NaN if either is.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    extreme(a, b, f64::ge)
}

/// The smaller of two; NaN if either is.
pub(super) fn minimum(a: f64, b: f64) -> f64 {
    extreme(a, b, f64::le)
}

/// Python's `%`: the sign of b.
fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

/// ⌊a/b⌋ of the exact quotient: the rest is taken off before dividing.
fn floor_divide(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    ((a - remainder(a, b)) / b).round_ties_even()
}

/// A binary op of floats.
pub(super) fn binary(op: BinaryOp, a: f64, b: f64) -> f64 {
    let truth = |value: bool| f64::from(u8::from(value));
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Maximum => maximum(a, b),
        BinaryOp::Minimum => minimum(a, b),
        BinaryOp::Atan2 => a.atan2(b),
        BinaryOp::Remainder => remainder(a, b),
        BinaryOp::FloorDivide if b.is_infinite() && a.is_finite() => {
            // Zero, or -1 where the signs differ.
            if a != 0.0 && (a < 0.0) != (b < 0.0) {
                -1.0
            } else {
                0.0
            }
        }
        BinaryOp::FloorDivide => floor_divide(a, b),
        BinaryOp::LogicalAnd => truth(a != 0.0 && b != 0.0),
        BinaryOp::LogicalOr => truth(a != 0.0 || b != 0.0),
        BinaryOp::LogicalXor => truth((a != 0.0) != (b != 0.0)),
    }
}

/// a to the power b, wrapping; of a negative b what the true value truncates to.
fn power(a: i64, b: i64) -> i64 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 if b % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut base, mut rest, mut result) = (a, b, 1i64);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        rest >>= 1;
    }
    result
}

/// A binary op of integers or Bool (0 and 1; what is not 0 is stored as 1).
pub(super) fn binary_int(op: BinaryOp, a: i64, b: i64) -> i64 {
    match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Pow => power(a, b),
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::Remainder | BinaryOp::FloorDivide | BinaryOp::Div if b == 0 => 0,
        BinaryOp::Remainder => {
            let rest = a.wrapping_rem(b);
            if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            }
        }
        BinaryOp::FloorDivide | BinaryOp::Div => {
            let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
            if rest != 0 && (rest < 0) != (b < 0) {
                quotient - 1
            } else {
                quotient
            }
        }
        BinaryOp::Atan2 => 0,
        BinaryOp::LogicalAnd => i64::from(a != 0 && b != 0),
        BinaryOp::LogicalOr => i64::from(a != 0 || b != 0),
        BinaryOp::LogicalXor => i64::from((a != 0) != (b != 0)),
    }
}

/// A comparison.
pub(super) fn compare<T: PartialOrd>(op: CompareOp, a: T, b: T) -> bool {
    match op {
        CompareOp::Eq => a == b,
        CompareOp::Ne => a != b,
        CompareOp::Lt => a < b,
        CompareOp::Le => a <= b,
        CompareOp::Gt => a > b,
        CompareOp::Ge => a >= b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_has_known_values() {
        // Abramowitz & Stegun, table 7.1, and high-precision values of the tail's complement.
        for (x, want) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (4.0, 0.999_999_984_582_742_1),
        ] {
            assert!((erf(x) - want).abs() < 2e-15, "{x}: {} {want}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!((erf(3.0 - 1e-9) - erf(3.0)).abs() < 1e-12);
        assert!(erf(f64::NAN).is_nan() && erf(f64::INFINITY) == 1.0);
    }

    #[test]
    fn division_rounds_down() {
        assert_eq!(binary(BinaryOp::FloorDivide, 1.0, 0.1), 9.0);
        assert_eq!(binary(BinaryOp::FloorDivide, -7.0, 2.0), -4.0);
        assert_eq!(binary(BinaryOp::Remainder, -7.0, 3.0), 2.0);
        assert_eq!(binary_int(BinaryOp::Remainder, -7, 3), 2);
        assert_eq!(binary_int(BinaryOp::FloorDivide, 7, -2), -4);
        assert_eq!(binary_int(BinaryOp::FloorDivide, 7, 0), 0);
        assert_eq!(binary_int(BinaryOp::Pow, -2, 3), -8);
        assert_eq!(binary_int(BinaryOp::Pow, 2, -1), 0);
        assert!(maximum(1.0, f64::NAN).is_nan() && minimum(f64::NAN, 1.0).is_nan());
    }
}
