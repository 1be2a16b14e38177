//! Activations and their gradients in forms that neither overflow nor lose digits, with PyTorch's choices
//! at kinks.

use crate::program::{Builder, Value};
use crate::{ActivationKind, BinaryOp, CompareOp, Result, UnaryOp};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI};

/// The cubic term of the tanh approximation of GELU (Hendrycks & Gimpel 2016).
const GELU_CUBIC: f64 = 0.044715;

/// y of x, computed in the accumulation type.
pub(super) fn forward(
    b: &mut Builder,
    kind: ActivationKind,
    parameters: [f64; 2],
    x: Value,
) -> Result<Value> {
    let dtype = b.meta(x).dtype;
    let x = b.wide(x)?;
    let y = value(b, kind, parameters, x)?;
    b.cast(y, dtype)
}

fn value(
    b: &mut Builder,
    kind: ActivationKind,
    [alpha, beta]: [f64; 2],
    x: Value,
) -> Result<Value> {
    match kind {
        ActivationKind::Gelu => {
            let twice = twice_normal_cdf(b, x)?;
            let half = b.times(x, 0.5)?;
            b.mul(half, twice)
        }
        ActivationKind::GeluTanh => {
            let tanh = gelu_tanh(b, x)?;
            let twice = b.plus(tanh, 1.0)?;
            let half = b.times(x, 0.5)?;
            b.mul(half, twice)
        }
        ActivationKind::Silu => {
            let sigmoid = b.unary(UnaryOp::Sigmoid, x)?;
            b.mul(x, sigmoid)
        }
        ActivationKind::Mish => {
            let softplus = softplus(b, x)?;
            let tanh = b.unary(UnaryOp::Tanh, softplus)?;
            b.mul(x, tanh)
        }
        ActivationKind::Softplus => {
            let scaled = b.times(x, alpha)?;
            let curve = softplus(b, scaled)?;
            let curve = b.scalar(BinaryOp::Div, curve, alpha)?;
            let straight = b.compare_scalar(CompareOp::Gt, scaled, beta)?;
            b.select(straight, x, curve)
        }
        ActivationKind::Softsign => {
            let below = softsign_denominator(b, x)?;
            b.div(x, below)
        }
        ActivationKind::Elu => exponential(b, x, alpha, 1.0),
        ActivationKind::Selu => {
            let elu = exponential(b, x, alpha, 1.0)?;
            b.times(elu, beta)
        }
        ActivationKind::Celu => exponential(b, x, alpha, alpha),
        ActivationKind::LeakyRelu => {
            let low = b.times(x, alpha)?;
            let positive = b.compare_scalar(CompareOp::Gt, x, 0.0)?;
            b.select(positive, x, low)
        }
        ActivationKind::Relu6 => clamp(b, x, 0.0, 6.0),
        ActivationKind::HardTanh => clamp(b, x, alpha, beta),
        ActivationKind::HardSigmoid => hard_sigmoid(b, x),
        ActivationKind::HardSwish => {
            let gate = hard_sigmoid(b, x)?;
            b.mul(x, gate)
        }
        ActivationKind::LogSigmoid => {
            let negative = b.neg(x)?;
            let softplus = softplus(b, negative)?;
            b.neg(softplus)
        }
    }
}

/// dx of dy and x, computed in the accumulation type.
pub(super) fn gradient(
    b: &mut Builder,
    kind: ActivationKind,
    parameters: [f64; 2],
    dy: Value,
    x: Value,
) -> Result<Value> {
    let dtype = b.meta(x).dtype;
    let (dy, x) = (b.wide(dy)?, b.wide(x)?);
    let dx = derivative(b, kind, parameters, dy, x)?;
    b.cast(dx, dtype)
}

fn derivative(
    b: &mut Builder,
    kind: ActivationKind,
    [alpha, beta]: [f64; 2],
    dy: Value,
    x: Value,
) -> Result<Value> {
    let slope = match kind {
        ActivationKind::Gelu => gelu_slope(b, x)?,
        ActivationKind::GeluTanh => gelu_tanh_slope(b, x)?,
        ActivationKind::Silu => silu_slope(b, x)?,
        ActivationKind::Mish => mish_slope(b, x)?,
        ActivationKind::Softplus => {
            let scaled = b.times(x, alpha)?;
            let sigmoid = b.unary(UnaryOp::Sigmoid, scaled)?;
            let curve = b.mul(dy, sigmoid)?;
            let straight = b.compare_scalar(CompareOp::Gt, scaled, beta)?;
            return b.select(straight, dy, curve);
        }
        ActivationKind::Softsign => {
            let below = softsign_denominator(b, x)?;
            let squared = b.square(below)?;
            return b.div(dy, squared);
        }
        ActivationKind::LogSigmoid => {
            let negative = b.neg(x)?;
            b.unary(UnaryOp::Sigmoid, negative)?
        }
        ActivationKind::Elu => return exponential_gradient(b, dy, x, alpha, 1.0),
        ActivationKind::Selu => {
            let scaled = b.times(dy, beta)?;
            return exponential_gradient(b, scaled, x, alpha, 1.0);
        }
        ActivationKind::Celu => return exponential_gradient(b, dy, x, 1.0, alpha),
        ActivationKind::LeakyRelu => {
            let low = b.times(dy, alpha)?;
            let positive = b.compare_scalar(CompareOp::Gt, x, 0.0)?;
            return b.select(positive, dy, low);
        }
        // On a bound the gradient is 0, as in PyTorch.
        ActivationKind::Relu6 => return outside_is_zero(b, dy, x, 0.0, 6.0),
        ActivationKind::HardTanh => return outside_is_zero(b, dy, x, alpha, beta),
        ActivationKind::HardSigmoid => {
            let sixth = b.times(dy, HARD_SIGMOID_SLOPE)?;
            return outside_is_zero(b, sixth, x, -3.0, 3.0);
        }
        ActivationKind::HardSwish => return hard_swish_gradient(b, dy, x),
    };
    b.mul(dy, slope)
}

/// PyTorch's slope of hardsigmoid: a sixth rounded to F32, also where it computes in F64.
const HARD_SIGMOID_SLOPE: f64 = (1.0f32 / 6.0f32) as f64;

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e^-|x|).
fn softplus(b: &mut Builder, x: Value) -> Result<Value> {
    let positive = b.unary(UnaryOp::Relu, x)?;
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    let negative = b.neg(magnitude)?;
    let small = b.unary(UnaryOp::Exp, negative)?;
    let rest = b.unary(UnaryOp::Log1p, small)?;
    b.add(positive, rest)
}

/// 1 + |x|.
fn softsign_denominator(b: &mut Builder, x: Value) -> Result<Value> {
    let magnitude = b.unary(UnaryOp::Abs, x)?;
    b.plus(magnitude, 1.0)
}

/// x where x > 0, else scale·(e^(x/width) - 1). The exponent never sees a positive x, so that what is not
/// selected stays finite.
fn exponential(b: &mut Builder, x: Value, scale: f64, width: f64) -> Result<Value> {
    let low = negative_part(b, x, width)?;
    let low = b.unary(UnaryOp::Expm1, low)?;
    let low = b.times(low, scale)?;
    let positive = b.compare_scalar(CompareOp::Gt, x, 0.0)?;
    b.select(positive, x, low)
}

/// dy where x > 0, else dy·scale·e^(x/width).
fn exponential_gradient(
    b: &mut Builder,
    dy: Value,
    x: Value,
    scale: f64,
    width: f64,
) -> Result<Value> {
    let low = negative_part(b, x, width)?;
    let low = b.unary(UnaryOp::Exp, low)?;
    let low = b.times(low, scale)?;
    let low = b.mul(dy, low)?;
    let negative = b.compare_scalar(CompareOp::Le, x, 0.0)?;
    b.select(negative, low, dy)
}

/// min(x, 0)/width.
fn negative_part(b: &mut Builder, x: Value, width: f64) -> Result<Value> {
    let low = b.scalar(BinaryOp::Minimum, x, 0.0)?;
    if width == 1.0 {
        return Ok(low);
    }
    b.scalar(BinaryOp::Div, low, width)
}

/// min(max(x, low), high); NaN stays.
fn clamp(b: &mut Builder, x: Value, low: f64, high: f64) -> Result<Value> {
    let raised = b.scalar(BinaryOp::Maximum, x, low)?;
    b.scalar(BinaryOp::Minimum, raised, high)
}

/// dy strictly between the bounds (and for NaN), 0 elsewhere.
fn outside_is_zero(b: &mut Builder, dy: Value, x: Value, low: f64, high: f64) -> Result<Value> {
    let below = b.compare_scalar(CompareOp::Le, x, low)?;
    let above = b.compare_scalar(CompareOp::Ge, x, high)?;
    let outside = b.binary(BinaryOp::LogicalOr, below, above)?;
    let zero = b.zeros(b.meta(dy).dtype, crate::Shape::SCALAR)?;
    b.select(outside, zero, dy)
}

/// min(max(x + 3, 0), 6)/6.
fn hard_sigmoid(b: &mut Builder, x: Value) -> Result<Value> {
    let shifted = b.plus(x, 3.0)?;
    let clamped = clamp(b, shifted, 0.0, 6.0)?;
    b.scalar(BinaryOp::Div, clamped, 6.0)
}

/// 0 up to -3, dy(x/3 + 1/2) below 3, dy from there on.
fn hard_swish_gradient(b: &mut Builder, dy: Value, x: Value) -> Result<Value> {
    let third = b.scalar(BinaryOp::Div, x, 3.0)?;
    let slope = b.plus(third, 0.5)?;
    let middle = b.mul(dy, slope)?;
    let zero = b.zeros(b.meta(dy).dtype, crate::Shape::SCALAR)?;
    let low = b.compare_scalar(CompareOp::Le, x, -3.0)?;
    let high = b.compare_scalar(CompareOp::Ge, x, 3.0)?;
    let right = b.select(high, dy, middle)?;
    b.select(low, zero, right)
}

/// 1 + erf(x/√2) = 2Φ(x).
fn twice_normal_cdf(b: &mut Builder, x: Value) -> Result<Value> {
    let scaled = b.times(x, FRAC_1_SQRT_2)?;
    let erf = b.unary(UnaryOp::Erf, scaled)?;
    b.plus(erf, 1.0)
}

/// Φ(x) + x·φ(x).
fn gelu_slope(b: &mut Builder, x: Value) -> Result<Value> {
    let twice = twice_normal_cdf(b, x)?;
    let cdf = b.times(twice, 0.5)?;
    let squared = b.square(x)?;
    let exponent = b.times(squared, -0.5)?;
    let bell = b.unary(UnaryOp::Exp, exponent)?;
    let density = b.times(bell, 1.0 / (2.0 * PI).sqrt())?;
    let rest = b.mul(x, density)?;
    b.add(cdf, rest)
}

/// tanh(√(2/π)(x + 0.044715 x³)).
fn gelu_tanh(b: &mut Builder, x: Value) -> Result<Value> {
    let squared = b.square(x)?;
    let factor = b.times(squared, GELU_CUBIC)?;
    let factor = b.plus(factor, 1.0)?;
    let inner = b.mul(x, factor)?;
    let inner = b.times(inner, FRAC_2_PI.sqrt())?;
    b.unary(UnaryOp::Tanh, inner)
}

fn gelu_tanh_slope(b: &mut Builder, x: Value) -> Result<Value> {
    let tanh = gelu_tanh(b, x)?;
    let raised = b.plus(tanh, 1.0)?;
    let left = b.times(raised, 0.5)?;
    let squared = b.square(x)?;
    let inner = b.times(squared, 3.0 * GELU_CUBIC)?;
    let inner = b.plus(inner, 1.0)?;
    let inner = b.times(inner, 0.5 * FRAC_2_PI.sqrt())?;
    let tanh_slope = one_minus_square(b, tanh)?;
    let right = b.mul(x, tanh_slope)?;
    let right = b.mul(right, inner)?;
    b.add(left, right)
}

/// 1 - t².
fn one_minus_square(b: &mut Builder, t: Value) -> Result<Value> {
    let squared = b.square(t)?;
    b.minus_from(1.0, squared)
}

/// σ(x)(1 + x(1 - σ(x))).
fn silu_slope(b: &mut Builder, x: Value) -> Result<Value> {
    let sigmoid = b.unary(UnaryOp::Sigmoid, x)?;
    let rest = b.minus_from(1.0, sigmoid)?;
    let inner = b.mul(x, rest)?;
    let inner = b.plus(inner, 1.0)?;
    b.mul(sigmoid, inner)
}

/// t + x·σ(x)(1 - t²) with t = tanh(softplus(x)).
fn mish_slope(b: &mut Builder, x: Value) -> Result<Value> {
    let softplus = softplus(b, x)?;
    let tanh = b.unary(UnaryOp::Tanh, softplus)?;
    let sigmoid = b.unary(UnaryOp::Sigmoid, x)?;
    let slope = one_minus_square(b, tanh)?;
    let right = b.mul(x, sigmoid)?;
    let right = b.mul(right, slope)?;
    b.add(tanh, right)
}
