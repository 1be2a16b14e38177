//! `Activation` and `ActivationGrad`: formulas that neither overflow nor lose digits, one pass each.

use super::map::{Function1, Function2, map1, map2};
use super::vector::{Real, for_float};
use crate::element::Stored;
use drivetrain_core::{ActivationKind, Operand, Result};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI};

/// The cubic term of the tanh approximation of GELU (Hendrycks & Gimpel 2016).
const GELU_CUBIC: f64 = 0.044715;

/// PyTorch's slope of the hard sigmoid, an F32 in every dtype.
const HARD_SIGMOID_SLOPE: f64 = (1.0f32 / 6.0f32) as f64;

/// A table of activations: the value of x, and the gradient of dy and x; `a` and `b` are alpha and beta.
macro_rules! activations {
    ($($name:ident: |$x:ident, $a:tt, $b:tt| $value:expr, |$dy:ident| $gradient:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name<C>(C, C);

            impl<C: Real> Function1<C, C> for $name<C> {
                #[inline(always)]
                fn of(self, $x: C) -> C {
                    let $name($a, $b) = self;
                    $value
                }
            }

            impl<C: Real> Function2<C, C> for $name<C> {
                #[inline(always)]
                fn of(self, $dy: C, $x: C) -> C {
                    let $name($a, $b) = self;
                    $gradient
                }
            }
        )*

        /// # Safety
        /// Operands of the running `execute`, of the types named.
        unsafe fn value<T: Stored<C>, C: Real>(
            kind: ActivationKind,
            [a, b]: [f64; 2],
            x: &Operand,
            out: &Operand,
        ) -> Result<()> {
            let (a, b) = (C::from_f64(a), C::from_f64(b));
            match kind {
                $(
                    ActivationKind::$name => {
                        // SAFETY: as the caller promises.
                        unsafe { map1::<T, C, T, C>(x, out, $name(a, b)) }
                    }
                )*
            }
            Ok(())
        }

        /// # Safety
        /// Operands of the running `execute`, of the types named.
        unsafe fn derivative<T: Stored<C>, C: Real>(
            kind: ActivationKind,
            [a, b]: [f64; 2],
            dy: &Operand,
            x: &Operand,
            out: &Operand,
        ) -> Result<()> {
            let (a, b) = (C::from_f64(a), C::from_f64(b));
            match kind {
                $(
                    ActivationKind::$name => {
                        // SAFETY: as the caller promises.
                        unsafe { map2::<T, C, T, C>(dy, x, out, $name(a, b)) }
                    }
                )*
            }
            Ok(())
        }
    };
}

activations! {
    Gelu: |x, _, _| x * number(0.5) * twice_normal_cdf(x),
        |dy| dy * gelu_slope(x);
    GeluTanh: |x, _, _| x * number(0.5) * (C::ONE + gelu_tanh(x)),
        |dy| dy * gelu_tanh_slope(x);
    Silu: |x, _, _| x * x.sigmoid(),
        |dy| {
            let s = x.sigmoid();
            dy * (s * (C::ONE + x * (C::ONE - s)))
        };
    Mish: |x, _, _| x * softplus(x).tanh(),
        |dy| {
            let t = softplus(x).tanh();
            dy * (t + x * x.sigmoid() * (C::ONE - t * t))
        };
    Softplus: |x, a, b| if x * a > b { x } else { softplus(x * a) / a },
        |dy| if x * a > b { dy } else { dy * (x * a).sigmoid() };
    Softsign: |x, _, _| x / (C::ONE + x.abs()),
        |dy| {
            let below = C::ONE + x.abs();
            dy / (below * below)
        };
    Elu: |x, a, _| if x > C::ZERO { x } else { x.expm1() * a },
        |dy| if x <= C::ZERO { dy * (x.exp() * a) } else { dy };
    LeakyRelu: |x, a, _| if x > C::ZERO { x } else { x * a },
        |dy| if x > C::ZERO { dy } else { dy * a };
    Relu6: |x, _, _| clamp(x, C::ZERO, number(6.0)),
        |dy| within(dy, x, C::ZERO, number(6.0));
    HardSigmoid: |x, _, _| hard_sigmoid(x),
        |dy| within(dy * number(HARD_SIGMOID_SLOPE), x, number(-3.0), number(3.0));
    HardSwish: |x, _, _| x * hard_sigmoid(x),
        |dy| hard_swish_gradient(dy, x);
    LogSigmoid: |x, _, _| -softplus(-x),
        |dy| dy * (-x).sigmoid();
    HardTanh: |x, a, b| clamp(x, a, b),
        |dy| within(dy, x, a, b);
    Selu: |x, a, b| (if x > C::ZERO { x } else { x.expm1() * a }) * b,
        |dy| if x <= C::ZERO { dy * b * (x.exp() * a) } else { dy * b };
    Celu: |x, a, _| if x > C::ZERO { x } else { (x / a).expm1() * a },
        |dy| if x <= C::ZERO { dy * (x / a).exp() } else { dy };
}

#[inline(always)]
fn number<C: Real>(value: f64) -> C {
    C::from_f64(value)
}

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e^-|x|).
#[inline(always)]
fn softplus<C: Real>(x: C) -> C {
    x.larger(C::ZERO) + (-x.abs()).exp().log1p()
}

/// min(max(x, low), high); NaN stays.
#[inline(always)]
fn clamp<C: Real>(x: C, low: C, high: C) -> C {
    x.larger(low).smaller(high)
}

/// dy strictly between the bounds (and for NaN), 0 elsewhere.
#[inline(always)]
fn within<C: Real>(dy: C, x: C, low: C, high: C) -> C {
    if (x <= low) | (x >= high) {
        C::ZERO
    } else {
        dy
    }
}

/// min(max(x + 3, 0), 6)/6.
#[inline(always)]
fn hard_sigmoid<C: Real>(x: C) -> C {
    clamp(x + number(3.0), C::ZERO, number(6.0)) / number(6.0)
}

/// 0 up to -3, dy(x/3 + 1/2) below 3, dy from there on.
#[inline(always)]
fn hard_swish_gradient<C: Real>(dy: C, x: C) -> C {
    let middle = dy * (x / number(3.0) + number(0.5));
    let right = if x >= number(3.0) { dy } else { middle };
    if x <= number(-3.0) { C::ZERO } else { right }
}

/// 1 + erf(x/√2) = 2Φ(x).
#[inline(always)]
fn twice_normal_cdf<C: Real>(x: C) -> C {
    C::ONE + (x * number(FRAC_1_SQRT_2)).erf()
}

/// Φ(x) + x·φ(x).
#[inline(always)]
fn gelu_slope<C: Real>(x: C) -> C {
    let bell = (x * x * number(-0.5)).exp() * number(1.0 / (2.0 * PI).sqrt());
    twice_normal_cdf(x) * number(0.5) + x * bell
}

/// tanh(√(2/π)(x + 0.044715 x³)).
#[inline(always)]
fn gelu_tanh<C: Real>(x: C) -> C {
    let factor = C::ONE + x * x * number(GELU_CUBIC);
    (x * factor * number(FRAC_2_PI.sqrt())).tanh()
}

#[inline(always)]
fn gelu_tanh_slope<C: Real>(x: C) -> C {
    let t = gelu_tanh(x);
    let inner = (C::ONE + x * x * number(3.0 * GELU_CUBIC)) * number(0.5 * FRAC_2_PI.sqrt());
    (C::ONE + t) * number(0.5) + x * (C::ONE - t * t) * inner
}

/// y of x.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn forward(
    kind: ActivationKind,
    parameters: [f64; 2],
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(kind.name(), x.dtype, value(kind, parameters, x, out)) }
}

/// dx of dy and x.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn gradient(
    kind: ActivationKind,
    parameters: [f64; 2],
    dy: &Operand,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        for_float!(
            kind.name(),
            x.dtype,
            derivative(kind, parameters, dy, x, out)
        )
    }
}
