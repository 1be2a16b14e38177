//! Cross entropy with ignored targets, class weights and label smoothing, as PyTorch's.

use super::softmax::{Shifted, shift};
use crate::program::{Builder, Value};
use crate::{CompareOp, DType, DimSet, Primitive, Result, ScatterMode, Shape, UnaryOp};

/// The class dimension of logits `[N, C, …]`.
const CLASSES: DimSet = DimSet::from_bits(0b10);

/// What forward and gradient share, all with the class dimension at size 1.
struct Target {
    /// Whether it counts.
    valid: Value,
    /// The class where it counts, else class 0: an ignored target may be out of range and is never looked up.
    class: Value,
    /// The class's weight, 0 where ignored.
    weight: Value,
}

/// Values `[N, …]` as `[N, 1, …]`.
fn with_class_dim(b: &mut Builder, value: Value) -> Result<Value> {
    let shape = b.shape(value);
    let mut dims = vec![shape[0], 1];
    dims.extend_from_slice(&shape.dims()[1..]);
    b.reshape(value, &dims)
}

/// Class weights `[C]` as `[1, C, 1, …]` in the accumulation type.
fn class_row(b: &mut Builder, weight: Value, rank: usize) -> Result<Value> {
    let mut dims = vec![1; rank];
    dims[1] = b.shape(weight)[0];
    let wide = b.wide(weight)?;
    b.reshape(wide, &dims)
}

/// Looks at the targets. `row` is the class weights as a row.
fn look(
    b: &mut Builder,
    logits: Value,
    target: Value,
    row: Option<Value>,
    ignore_index: i64,
) -> Result<Target> {
    let target = with_class_dim(b, target)?;
    let valid = b.compare_scalar(CompareOp::Ne, target, ignore_index)?;
    let none = b.fill(0i64, DType::I64, Shape::SCALAR)?;
    let class = b.select(valid, target, none)?;
    let dtype = b.meta(logits).dtype;
    let weight = match row {
        None => b.cast(valid, dtype)?,
        Some(row) => {
            let all = b.expand(row, b.shape(logits))?;
            let own = b.one(Primitive::Gather { dim: 1 }, &[all, class])?;
            zero_unless(b, valid, own)?
        }
    };
    Ok(Target {
        valid,
        class,
        weight,
    })
}

/// x where the condition holds, else 0.
fn zero_unless(b: &mut Builder, condition: Value, x: Value) -> Result<Value> {
    let zero = b.zeros(b.meta(x).dtype, Shape::SCALAR)?;
    b.select(condition, x, zero)
}

/// Of logits, target, [class weight]: loss, logsumexp, sample weight.
pub(super) fn cross_entropy(
    b: &mut Builder,
    v: &[Value],
    ignore_index: i64,
    smoothing: f64,
) -> Result<Vec<Value>> {
    let (dtype, samples) = (b.meta(v[0]).dtype, b.shape(v[1]));
    let logits = b.wide(v[0])?;
    let rank = b.shape(logits).rank();
    let row = match v.get(2) {
        Some(&weight) => Some(class_row(b, weight, rank)?),
        None => None,
    };
    let target = look(b, logits, v[1], row, ignore_index)?;
    let Shifted {
        largest,
        shifted,
        sum,
        ..
    } = shift(b, logits, CLASSES)?;
    let log_sum = b.unary(UnaryOp::Log, sum)?;
    let log_probability = b.sub(shifted, log_sum)?;
    let own = b.one(
        Primitive::Gather { dim: 1 },
        &[log_probability, target.class],
    )?;
    let own = b.mul(own, target.weight)?;
    let mut loss = b.times(own, smoothing - 1.0)?;
    if smoothing > 0.0 {
        let weighted = match row {
            Some(row) => b.mul(log_probability, row)?,
            None => log_probability,
        };
        let total = b.sum(weighted, CLASSES)?;
        let share = b.times(total, -smoothing / b.shape(logits)[1] as f64)?;
        loss = b.add(loss, share)?;
    }
    let loss = zero_unless(b, target.valid, loss)?;
    let logsumexp = b.add(largest, log_sum)?;
    let mut outputs = Vec::new();
    for (value, dtype) in [
        (loss, dtype),
        (logsumexp, dtype.accumulator()),
        (target.weight, dtype),
    ] {
        let value = b.cast(value, dtype)?;
        outputs.push(b.reshape(value, samples.dims())?);
    }
    Ok(outputs)
}

/// Of dloss, logits, logsumexp, target, [class weight]: with p the softmax, s the smoothing and g the gradient
/// of a sample that counts, `g(p((1-s)w_t + s/C Σw) - (1-s)w_t·[c = t] - s/C w_c)`.
///
/// The softmax is made anew: e to the power of logits minus logsumexp would lose all digits of large logits.
pub(super) fn cross_entropy_grad(
    b: &mut Builder,
    v: &[Value],
    ignore_index: i64,
    smoothing: f64,
) -> Result<Value> {
    let dtype = b.meta(v[1]).dtype;
    let logits = b.wide(v[1])?;
    let shape = b.shape(logits);
    let row = match v.get(4) {
        Some(&weight) => Some(class_row(b, weight, shape.rank())?),
        None => None,
    };
    let target = look(b, logits, v[3], row, ignore_index)?;
    let g = b.wide(v[0])?;
    let g = with_class_dim(b, g)?;
    let g = zero_unless(b, target.valid, g)?;
    let parts = shift(b, logits, CLASSES)?;
    let probability = b.div(parts.exponentials, parts.sum)?;
    let own = b.times(target.weight, 1.0 - smoothing)?;
    let spread = smoothing / shape[1] as f64;
    let total = match row {
        _ if smoothing == 0.0 => own,
        None => b.plus(own, smoothing)?,
        Some(row) => {
            let sum = b.sum(row, CLASSES)?;
            let sum = b.times(sum, spread)?;
            b.add(own, sum)?
        }
    };
    let mut factor = b.mul(probability, total)?;
    if smoothing > 0.0 {
        factor = match row {
            None => b.plus(factor, -spread)?,
            Some(row) => {
                let share = b.times(row, spread)?;
                b.sub(factor, share)?
            }
        };
    }
    let gradient = b.mul(factor, g)?;
    let taken = b.mul(own, g)?;
    let taken = b.neg(taken)?;
    let mode = ScatterMode::Add;
    b.run_in_place(
        Primitive::Scatter { dim: 1, mode },
        &[target.class, taken],
        gradient,
    )?;
    b.cast(gradient, dtype)
}
