//! Inference of element-wise ops: casts, functions of one, two and three operands, activations.

use super::Outputs;
use super::check::{Call, output};
use crate::{ActivationKind, BinaryOp, DType, Result, UnaryOp};

#[track_caller]
pub(super) fn cast(call: &Call, to: DType) -> Result<Outputs> {
    call.operands(1)?;
    output(to, call.inputs[0].shape)
}

#[track_caller]
pub(super) fn copy(call: &Call) -> Result<Outputs> {
    call.operands(1)?;
    Ok(Outputs::one(call.inputs[0]))
}

/// Whether an op takes a dtype, as the tables of `op::kinds` say.
fn unary_takes(op: UnaryOp, dtype: DType) -> bool {
    use UnaryOp::*;
    match op {
        Neg | Abs | Sign | Square | Floor | Ceil | Round | Trunc => dtype != DType::Bool,
        LogicalNot => dtype == DType::Bool,
        Sqrt | Rsqrt | Reciprocal | Exp | Expm1 | Log | Log1p | Log2 | Sin | Cos | Tan | Tanh
        | Erf | Sigmoid | Relu => dtype.is_float(),
    }
}

fn binary_takes(op: BinaryOp, dtype: DType) -> bool {
    use BinaryOp::*;
    match op {
        Add | Mul | Maximum | Minimum => true,
        Sub | Pow | Remainder | FloorDivide => dtype != DType::Bool,
        Div | Atan2 => dtype.is_float(),
        LogicalAnd | LogicalOr | LogicalXor => dtype == DType::Bool,
    }
}

/// Says which dtypes would do where `dtype` does not.
#[track_caller]
fn refuse_dtype(call: &Call, dtype: DType, takes: impl Fn(DType) -> bool) -> crate::Error {
    let taken: Vec<String> = DType::ALL
        .into_iter()
        .filter(|&d| takes(d))
        .map(|d| d.to_string())
        .collect();
    call.bad_dtype(format!(
        "does not take {dtype}, shape {}",
        call.inputs[0].shape
    ))
    .help(format!("it takes {}; cast first", taken.join(", ")))
}

#[track_caller]
pub(super) fn unary(call: &Call, op: UnaryOp) -> Result<Outputs> {
    call.operands(1)?;
    let x = call.inputs[0];
    if !unary_takes(op, x.dtype) {
        return Err(refuse_dtype(call, x.dtype, |d| unary_takes(op, d)));
    }
    Ok(Outputs::one(x))
}

/// Two operands of one dtype and shape.
#[track_caller]
fn pair(call: &Call) -> Result<()> {
    call.operands(2)?;
    equal(call, 0, 1)
}

/// Inputs `i` and `j` have one dtype and shape.
#[track_caller]
fn equal(call: &Call, i: usize, j: usize) -> Result<()> {
    let (a, b) = (&call.inputs[i], &call.inputs[j]);
    if a.dtype != b.dtype {
        return Err(call
            .bad_dtype(format!(
                "dtypes differ, lhs {} {} rhs {} {}",
                a.dtype, a.shape, b.dtype, b.shape
            ))
            .help(format!("cast both to {}", a.dtype.promote(b.dtype))));
    }
    if a.shape != b.shape {
        return Err(call
            .bad_shape(format!("shapes differ, lhs {} rhs {}", a.shape, b.shape))
            .help("expand both to one shape"));
    }
    Ok(())
}

#[track_caller]
pub(super) fn binary(call: &Call, op: BinaryOp) -> Result<Outputs> {
    pair(call)?;
    scalar_or_pair(call, op)
}

#[track_caller]
pub(super) fn binary_scalar(call: &Call, op: BinaryOp) -> Result<Outputs> {
    call.operands(1)?;
    scalar_or_pair(call, op)
}

#[track_caller]
fn scalar_or_pair(call: &Call, op: BinaryOp) -> Result<Outputs> {
    let dtype = call.inputs[0].dtype;
    if !binary_takes(op, dtype) {
        return Err(refuse_dtype(call, dtype, |d| binary_takes(op, d)));
    }
    Ok(Outputs::one(call.inputs[0]))
}

#[track_caller]
pub(super) fn compare(call: &Call) -> Result<Outputs> {
    pair(call)?;
    output(DType::Bool, call.inputs[0].shape)
}

#[track_caller]
pub(super) fn compare_scalar(call: &Call) -> Result<Outputs> {
    call.operands(1)?;
    output(DType::Bool, call.inputs[0].shape)
}

#[track_caller]
pub(super) fn choose(call: &Call) -> Result<Outputs> {
    call.operands(3)?;
    call.dtype(0, "condition", DType::Bool)?;
    equal(call, 1, 2)?;
    call.shape(0, "condition", call.inputs[1].shape.dims())?;
    Ok(Outputs::one(call.inputs[1]))
}

#[track_caller]
pub(super) fn activation(
    call: &Call,
    kind: ActivationKind,
    alpha: f64,
    beta: f64,
) -> Result<Outputs> {
    call.operands(1)?;
    call.float(0, "input")?;
    check_activation(call, kind, alpha, beta)?;
    Ok(Outputs::one(call.inputs[0]))
}

#[track_caller]
pub(super) fn activation_grad(
    call: &Call,
    kind: ActivationKind,
    alpha: f64,
    beta: f64,
) -> Result<Outputs> {
    call.operands(2)?;
    call.float(1, "input")?;
    equal(call, 0, 1)?;
    check_activation(call, kind, alpha, beta)?;
    Ok(Outputs::one(call.inputs[1]))
}

#[track_caller]
fn check_activation(call: &Call, kind: ActivationKind, alpha: f64, beta: f64) -> Result<()> {
    match kind {
        ActivationKind::Softplus if alpha == 0.0 => {
            Err(call.argument("beta 0, it divides and must not be 0".into()))
        }
        ActivationKind::Celu if alpha == 0.0 => {
            Err(call.argument("alpha 0, it divides and must not be 0".into()))
        }
        ActivationKind::HardTanh if alpha > beta => {
            Err(call.argument(format!("lower bound {alpha} is above upper bound {beta}")))
        }
        _ => Ok(()),
    }
}
