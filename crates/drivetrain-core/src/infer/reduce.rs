//! Inference of ops along dimensions: reductions, running sums, sorting, softmax.

use super::Outputs;
use super::check::{Call, output};
use crate::backend::Meta;
use crate::{DType, DimSet, ReduceOp, Result, Shape};

/// The dtype of sums and products: I64 for integers and Bool, the operand's for floats.
fn sum_dtype(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::I64 }
}

/// Checks the accumulation type that an op carries.
#[track_caller]
pub(super) fn check_accumulate(call: &Call, dtype: DType, accumulate: DType) -> Result<()> {
    let wanted = dtype.accumulator();
    if accumulate != wanted {
        return Err(call.bad_dtype(format!(
            "accumulation type {accumulate} for {dtype}, {wanted} expected"
        )));
    }
    Ok(())
}

/// Extremes of nothing have no value.
#[track_caller]
fn refuse_empty(call: &Call, dim: usize) -> Result<()> {
    let shape = &call.inputs[0].shape;
    if shape[dim] == 0 {
        return Err(call.bad_shape(format!(
            "dimension {dim} of shape {shape} has size 0, and nothing has no extreme"
        )));
    }
    Ok(())
}

#[track_caller]
pub(super) fn reduce(
    call: &Call,
    op: ReduceOp,
    dims: DimSet,
    accumulate: DType,
) -> Result<Outputs> {
    call.operands(1)?;
    let x = call.inputs[0];
    let mut sizes = [0; crate::MAX_DIMS];
    let rank = x.shape.rank();
    sizes[..rank].copy_from_slice(x.shape.dims());
    let extreme = matches!(op, ReduceOp::Max | ReduceOp::Min);
    for dim in dims.iter() {
        call.dim(dim as u8)?;
        // Of Bool they are any and all, which nothing has: false and true.
        if extreme && x.dtype != DType::Bool {
            refuse_empty(call, dim)?;
        }
        sizes[dim] = 1;
    }
    let dtype = if extreme {
        x.dtype
    } else {
        check_accumulate(call, x.dtype, accumulate)?;
        sum_dtype(x.dtype)
    };
    output(dtype, Shape::new(&sizes[..rank])?)
}

#[track_caller]
pub(super) fn arg_reduce(call: &Call, dim: u8) -> Result<Outputs> {
    call.operands(1)?;
    let dim = call.dim(dim)?;
    refuse_empty(call, dim)?;
    output(DType::I64, call.inputs[0].shape.with(dim, 1)?)
}

#[track_caller]
pub(super) fn cumulative(call: &Call, dim: u8) -> Result<Outputs> {
    call.operands(1)?;
    call.dim(dim)?;
    let x = call.inputs[0];
    output(sum_dtype(x.dtype), x.shape)
}

#[track_caller]
pub(super) fn sort(call: &Call, dim: u8) -> Result<Outputs> {
    call.operands(1)?;
    call.dim(dim)?;
    let x = call.inputs[0];
    Ok(Outputs::of(&[x, Meta::new(DType::I64, x.shape)]))
}

#[track_caller]
pub(super) fn softmax(call: &Call, dim: u8) -> Result<Outputs> {
    call.operands(1)?;
    call.float(0, "input")?;
    call.dim(dim)?;
    Ok(Outputs::one(call.inputs[0]))
}

#[track_caller]
pub(super) fn softmax_grad(call: &Call, dim: u8) -> Result<Outputs> {
    call.operands(2)?;
    call.float(0, "gradient")?;
    call.meta(1, "output", &call.inputs[0])?;
    call.dim(dim)?;
    Ok(Outputs::one(call.inputs[0]))
}
