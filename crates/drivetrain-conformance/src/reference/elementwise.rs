//! Element-wise primitives on host values.

use super::functions;
use super::values::{Values, View};
use drivetrain_core::{BinaryOp, CompareOp, DType, RandomKind, Scalar, UnaryOp, random};

pub(super) fn fill(dtype: DType, value: Scalar, count: usize) -> Values {
    Values::of(dtype, std::iter::repeat_n(value, count))
}

/// The index along `dim` of each element.
pub(super) fn iota(dtype: DType, dims: &[usize], dim: usize) -> Values {
    let inner: usize = dims[dim + 1..].iter().product();
    let count: usize = dims.iter().product();
    let index = |i: usize| Scalar::I64((i / inner % dims[dim]) as i64);
    Values::of(dtype, (0..count).map(index))
}

/// Element `i` as `drivetrain_core::random` lays them out.
pub(super) fn random(kind: RandomKind, dtype: DType, state: [i64; 3], count: usize) -> Values {
    let state = random::State::from_operand(state);
    let element = |i: usize| {
        let pair = || state.block(i as u64 / 2);
        let word = || state.block(i as u64 / 4)[i % 4];
        match (kind, dtype) {
            (RandomKind::Bits, _) => Scalar::I64(i64::from(word())),
            (RandomKind::Uniform, DType::F64) => {
                let (block, at) = (pair(), 2 * (i % 2));
                Scalar::F64(random::uniform_f64(block[at], block[at + 1]))
            }
            (RandomKind::Uniform, _) => {
                let bits = random::uniform_bits(dtype);
                Scalar::F64(f64::from(random::uniform(word(), bits)))
            }
            (RandomKind::Normal, _) => Scalar::F64(random::normal_pair(pair())[i % 2]),
        }
    };
    Values::of(dtype, (0..count).map(element))
}

/// Saturating, NaN to 0, to Bool whether it is not 0.
pub(super) fn cast(x: &View, to: DType) -> Values {
    let scalars = (0..x.values.len()).map(|i| x.values.scalar(i));
    match to {
        DType::Bool => Values::of(to, scalars.map(|s| Scalar::I64(s.as_bool().into()))),
        // Integers that are cast to a narrow integer wrap when they are written, floats saturate here.
        DType::I32 | DType::U8 => {
            let (low, high) = if to == DType::U8 {
                (0.0, 255.0)
            } else {
                (f64::from(i32::MIN), f64::from(i32::MAX))
            };
            let clamp = |s: Scalar| match s {
                Scalar::F64(value) => Scalar::F64(value.clamp(low, high)),
                other => other,
            };
            Values::of(to, scalars.map(clamp))
        }
        // Written as they are: an integer is rounded once to its float, not by way of F64.
        _ => match (&x.values, to.is_float()) {
            (Values::Int(values), true) => Values::Int(values.clone()),
            _ => Values::of(to, scalars),
        },
    }
}

pub(super) fn unary(op: UnaryOp, x: &View) -> Values {
    match &x.values {
        Values::Float(values) => {
            Values::Float(values.iter().map(|&v| functions::unary(op, v)).collect())
        }
        Values::Int(values) => Values::Int(
            values
                .iter()
                .map(|&v| functions::unary_int(op, v))
                .collect(),
        ),
    }
}

/// Both as floats where one is, else both as integers.
fn pairs<T>(
    a: &Values,
    b: &Values,
    float: impl Fn(f64, f64) -> T,
    int: impl Fn(i64, i64) -> T,
) -> Vec<T> {
    match (a, b) {
        (Values::Int(a), Values::Int(b)) => a.iter().zip(b).map(|(&a, &b)| int(a, b)).collect(),
        _ => (0..a.len())
            .map(|i| float(a.scalar(i).as_f64(), b.scalar(i).as_f64()))
            .collect(),
    }
}

pub(super) fn binary(op: BinaryOp, a: &View, b: &View) -> Values {
    if a.dtype.is_float() {
        let float = |a, b| functions::binary(op, a, b);
        Values::Float(pairs(&a.values, &b.values, float, |_, _| 0.0))
    } else {
        let int = |a, b| functions::binary_int(op, a, b);
        Values::Int(pairs(&a.values, &b.values, |_, _| 0, int))
    }
}

pub(super) fn compare(op: CompareOp, a: &View, b: &View) -> Values {
    let float = |a, b| i64::from(functions::compare(op, a, b));
    let int = |a, b| i64::from(functions::compare(op, a, b));
    Values::Int(pairs(&a.values, &b.values, float, int))
}

pub(super) fn choose(condition: &View, a: &View, b: &View) -> Values {
    let from = |i: usize| {
        if condition.values.scalar(i).as_bool() {
            a.values.scalar(i)
        } else {
            b.values.scalar(i)
        }
    };
    Values::of(a.dtype, (0..a.values.len()).map(from))
}
