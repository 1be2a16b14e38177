//! Gradient rules of the element-wise functions.

use super::{Grads, Saves};
use crate::Tensor;
use crate::autograd::Context;
use drivetrain_core::{BinaryOp, Result, Scalar, UnaryOp};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};

/// What a unary function keeps: its input, its result, or nothing.
pub(super) fn unary_saves(op: UnaryOp) -> Saves {
    use UnaryOp::*;
    match op {
        Neg | Sign | Floor | Ceil | Round | Trunc | LogicalNot => Saves::NOTHING,
        Abs | Square | Log | Log1p | Log2 | Sin | Cos | Erf => Saves::inputs(1),
        Sqrt | Rsqrt | Reciprocal | Exp | Expm1 | Tan | Tanh | Sigmoid | Relu => Saves::outputs(1),
    }
}

/// dx of y = f(x), given g = dy.
pub(super) fn unary(op: UnaryOp, c: &Context, g: &Tensor) -> Result<Tensor> {
    use UnaryOp::*;
    match op {
        Neg => g.neg(),
        Sign | Floor | Ceil | Round | Trunc | LogicalNot => g.zeros_like(),
        Abs => g.mul(&c.input(0)?.sign()?),
        Square => g.mul(&c.input(0)?.mul(2.0)?),
        Log => g.div(&c.input(0)?),
        Log1p => g.div(&c.input(0)?.add(1.0)?),
        Log2 => g.div(&c.input(0)?.mul(LN_2)?),
        Sin => g.mul(&c.input(0)?.cos()?),
        Cos => g.mul(&c.input(0)?.sin()?.neg()?),
        Erf => g.mul(&c.input(0)?.square()?.neg()?.exp()?.mul(FRAC_2_SQRT_PI)?),
        Sqrt => g.div(&c.output(0)?.mul(2.0)?),
        Rsqrt => g.mul(&c.output(0)?.pow(3.0)?.mul(-0.5)?),
        Reciprocal => g.mul(&c.output(0)?.square()?.neg()?),
        Exp => g.mul(&c.output(0)?),
        Expm1 => g.mul(&c.output(0)?.add(1.0)?),
        Tan => g.mul(&c.output(0)?.square()?.add(1.0)?),
        Tanh => g.mul(&(1.0 - c.output(0)?.square()?)?),
        Sigmoid => {
            let y = c.output(0)?;
            g.mul(&y)?.mul(&(1.0 - &y)?)
        }
        Relu => keep_where(g, &c.output(0)?.detach().gt(0.0)?),
    }
}

/// g where the mask holds, else 0: never NaN from what the mask leaves out.
fn keep_where(g: &Tensor, mask: &Tensor) -> Result<Tensor> {
    g.where_(mask, 0.0)
}

/// What a binary function keeps.
pub(super) fn binary_saves(op: BinaryOp) -> Saves {
    use BinaryOp::*;
    match op {
        Add | Sub | FloorDivide | LogicalAnd | LogicalOr | LogicalXor => Saves::NOTHING,
        Mul | Div | Maximum | Minimum | Atan2 | Remainder => Saves::inputs(0b11),
        Pow => Saves {
            inputs: 0b11,
            outputs: 1,
        },
    }
}

/// da and db of y = a op b, each only where it is wanted.
pub(super) fn binary(op: BinaryOp, c: &Context, g: &Tensor) -> Result<Grads> {
    let want = |i: usize, make: &dyn Fn() -> Result<Tensor>| c.needs(i).then(make).transpose();
    let (a, b) = (|| c.input(0), || c.input(1));
    use BinaryOp::*;
    let (da, db): (&dyn Fn() -> Result<Tensor>, &dyn Fn() -> Result<Tensor>) = match op {
        Add => (&|| Ok(g.clone()), &|| Ok(g.clone())),
        Sub => (&|| Ok(g.clone()), &|| g.neg()),
        Mul => (&|| g.mul(&b()?), &|| g.mul(&a()?)),
        Div => (&|| g.div(&b()?), &|| {
            g.neg()?.mul(&a()?.div(&b()?)?)?.div(&b()?)
        }),
        Pow => (&|| pow_base(c, g), &|| pow_exponent(c, g)),
        Maximum => (&|| larger(g, &a()?, &b()?), &|| larger(g, &b()?, &a()?)),
        Minimum => (&|| smaller(g, &a()?, &b()?), &|| smaller(g, &b()?, &a()?)),
        Atan2 => (
            &|| g.mul(&b()?)?.div(&a()?.square()?.add(&b()?.square()?)?),
            &|| {
                g.neg()?
                    .mul(&a()?)?
                    .div(&a()?.square()?.add(&b()?.square()?)?)
            },
        ),
        Remainder => (&|| Ok(g.clone()), &|| {
            g.neg()?.mul(&a()?.div(&b()?)?.floor()?)
        }),
        FloorDivide | LogicalAnd | LogicalOr | LogicalXor => {
            (&|| g.zeros_like(), &|| g.zeros_like())
        }
    };
    Ok(vec![want(0, da)?, want(1, db)?])
}

/// g to the larger of two; equal ones share it.
fn larger(g: &Tensor, this: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (this, other) = (this.detach(), other.detach());
    g.div(2.0)?
        .where_(&this.eq(&other)?, g)?
        .masked_fill(&this.lt(&other)?, 0.0)
}

/// g to the smaller of two; equal ones share it.
fn smaller(g: &Tensor, this: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (this, other) = (this.detach(), other.detach());
    g.div(2.0)?
        .where_(&this.eq(&other)?, g)?
        .masked_fill(&this.gt(&other)?, 0.0)
}

/// d/da aᵇ = b·aᵇ⁻¹, and 0 where b is 0 (also at a = 0).
fn pow_base(c: &Context, g: &Tensor) -> Result<Tensor> {
    let (a, b) = (c.input(0)?, c.input(1)?);
    let slope = b.mul(&a.pow(&b.sub(1.0)?)?)?;
    g.mul(&slope.masked_fill(&b.detach().eq(0.0)?, 0.0)?)
}

/// d/db aᵇ = aᵇ·ln a, and 0 where a is 0 and b is not negative.
fn pow_exponent(c: &Context, g: &Tensor) -> Result<Tensor> {
    let (a, b) = (c.input(0)?, c.input(1)?);
    let still = a.detach().eq(0.0)?.logical_and(&b.detach().ge(0.0)?)?;
    let log = a.masked_fill(&still, 1.0)?.log()?;
    g.mul(&c.output(0)?.mul(&log)?)
}

/// What `x op scalar` keeps.
pub(super) fn scalar_saves(op: BinaryOp, reversed: bool) -> Saves {
    use BinaryOp::*;
    match (op, reversed) {
        (Add | Sub | Mul | FloorDivide | LogicalAnd | LogicalOr | LogicalXor, _)
        | (Div | Remainder, false) => Saves::NOTHING,
        (Pow, true) => Saves {
            inputs: 1,
            outputs: 1,
        },
        _ => Saves::inputs(1),
    }
}

/// dx of y = x op s, or y = s op x.
pub(super) fn scalar(
    op: BinaryOp,
    s: Scalar,
    reversed: bool,
    c: &Context,
    g: &Tensor,
) -> Result<Tensor> {
    let s = s.as_f64();
    let x = || c.input(0);
    use BinaryOp::*;
    match (op, reversed) {
        (Add, _) | (Sub | Remainder, false) => Ok(g.clone()),
        (Sub, true) => g.neg(),
        (Mul, _) => g.mul(s),
        (Div, false) => g.div(s),
        (Div, true) => g.mul(-s)?.div(&x()?.square()?),
        (Pow, false) if s == 0.0 => g.zeros_like(),
        (Pow, false) if s == 1.0 => Ok(g.clone()),
        (Pow, false) if s == 2.0 => g.mul(&x()?.mul(2.0)?),
        (Pow, false) => g.mul(&x()?.pow(s - 1.0)?.mul(s)?),
        (Pow, true) if s == 0.0 => keep_where(
            &c.output(0)?.mul(f64::NEG_INFINITY)?.mul(g)?,
            &x()?.detach().lt(0.0)?,
        ),
        (Pow, true) => g.mul(&c.output(0)?.mul(s.ln())?),
        (Maximum, _) => keep_where(g, &x()?.detach().gt(s)?),
        (Minimum, _) => keep_where(g, &x()?.detach().lt(s)?),
        (Atan2, false) => g.mul(s)?.div(&x()?.square()?.add(s * s)?),
        (Atan2, true) => g.mul(-s)?.div(&x()?.square()?.add(s * s)?),
        (Remainder, true) => g.neg()?.mul(&(s / x()?)?.floor()?),
        (FloorDivide | LogicalAnd | LogicalOr | LogicalXor, _) => g.zeros_like(),
    }
}
