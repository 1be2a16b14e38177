//! Optimizer steps in PyTorch's formulas, computed in the accumulation type.

use crate::program::{Builder, Value};
use crate::{BinaryOp, CompareOp, Composite, Result, UnaryOp};

/// Number `i` of the operand that changes every step, as a scalar.
fn number(b: &mut Builder, hyper: Value, i: usize) -> Result<Value> {
    let one = b.slice(hyper, 0, i, 1, 1)?;
    b.reshape(one, &[])
}

/// a + factor·b.
fn add_scaled(b: &mut Builder, a: Value, factor: f64, x: Value) -> Result<Value> {
    let scaled = b.times(x, factor)?;
    b.add(a, scaled)
}

/// The gradient to follow: turned round to climb, with weight decay.
fn effective_gradient(
    b: &mut Builder,
    gradient: Value,
    parameter: Value,
    maximize: bool,
    weight_decay: f64,
) -> Result<Value> {
    let mut g = b.wide(gradient)?;
    if maximize {
        g = b.neg(g)?;
    }
    if weight_decay != 0.0 {
        g = add_scaled(b, g, weight_decay, parameter)?;
    }
    Ok(g)
}

/// Of gradient, hyper (rate, first), parameter, [buffer]: the new parameter and buffer.
pub(super) fn sgd(b: &mut Builder, v: &[Value], op: &Composite) -> Result<Vec<Value>> {
    let &Composite::SgdStep {
        momentum,
        dampening,
        weight_decay,
        nesterov,
        maximize,
    } = op
    else {
        return Ok(Vec::new());
    };
    let dtype = b.meta(v[2]).dtype;
    let parameter = b.wide(v[2])?;
    let mut g = effective_gradient(b, v[0], parameter, maximize, weight_decay)?;
    let mut state = None;
    if let Some(&buffer) = v.get(3) {
        let buffer = b.wide(buffer)?;
        let kept = b.times(buffer, momentum)?;
        let later = add_scaled(b, kept, 1.0 - dampening, g)?;
        // The first buffer is the gradient itself, whatever the memory holds.
        let first = number(b, v[1], 1)?;
        let first = b.compare_scalar(CompareOp::Ne, first, 0.0)?;
        let buffer = b.select(first, g, later)?;
        g = if nesterov {
            add_scaled(b, g, momentum, buffer)?
        } else {
            buffer
        };
        state = Some(b.cast(buffer, dtype)?);
    }
    let rate = number(b, v[1], 0)?;
    let step = b.mul(g, rate)?;
    let parameter = b.sub(parameter, step)?;
    let mut outputs = vec![b.cast(parameter, dtype)?];
    outputs.extend(state);
    Ok(outputs)
}

/// Of gradient, hyper (rate, 1 - β₁ᵗ, √(1 - β₂ᵗ)), parameter, first and second moment, [largest second
/// moment]: their new values.
pub(super) fn adam(b: &mut Builder, v: &[Value], op: &Composite) -> Result<Vec<Value>> {
    let &Composite::AdamStep {
        beta1,
        beta2,
        eps,
        weight_decay,
        decoupled,
        maximize,
        ..
    } = op
    else {
        return Ok(Vec::new());
    };
    let dtype = b.meta(v[2]).dtype;
    let mut parameter = b.wide(v[2])?;
    let rate = number(b, v[1], 0)?;
    let decay = if decoupled { 0.0 } else { weight_decay };
    let g = effective_gradient(b, v[0], parameter, maximize, decay)?;
    if decoupled && weight_decay != 0.0 {
        let shrink = b.times(rate, weight_decay)?;
        let keep = b.minus_from(1.0, shrink)?;
        parameter = b.mul(parameter, keep)?;
    }
    let first = b.wide(v[3])?;
    let change = b.sub(g, first)?;
    let first = add_scaled(b, first, 1.0 - beta1, change)?;
    let second = b.wide(v[4])?;
    let kept = b.times(second, beta2)?;
    let squared = b.square(g)?;
    let second = add_scaled(b, kept, 1.0 - beta2, squared)?;
    let mut state = vec![b.cast(first, dtype)?, b.cast(second, dtype)?];
    let mut scale = second;
    if let Some(&largest) = v.get(5) {
        let largest = b.wide(largest)?;
        scale = b.binary(BinaryOp::Maximum, largest, second)?;
        state.push(b.cast(scale, dtype)?);
    }
    let root = b.unary(UnaryOp::Sqrt, scale)?;
    let correction = number(b, v[1], 2)?;
    let root = b.div(root, correction)?;
    let below = b.plus(root, eps)?;
    let correction = number(b, v[1], 1)?;
    let length = b.div(rate, correction)?;
    let direction = b.div(first, below)?;
    let step = b.mul(direction, length)?;
    let parameter = b.sub(parameter, step)?;
    let mut outputs = vec![b.cast(parameter, dtype)?];
    outputs.append(&mut state);
    Ok(outputs)
}
