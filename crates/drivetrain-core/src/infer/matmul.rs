//! Inference of the batched matrix product and of the linear layer.

use super::Outputs;
use super::check::{Call, output};
use super::reduce::check_accumulate;
use crate::{DType, MAX_DIMS, Result, Shape};

/// Both operands have one dtype that can be multiplied and summed.
#[track_caller]
fn check_dtypes(call: &Call, labels: [&str; 2]) -> Result<DType> {
    let (a, b) = (&call.inputs[0], &call.inputs[1]);
    if a.dtype != b.dtype {
        return Err(call
            .bad_dtype(format!(
                "dtypes differ, {} {} {} {}",
                labels[0], a.dtype, labels[1], b.dtype
            ))
            .help(format!("cast both to {}", a.dtype.promote(b.dtype))));
    }
    if a.dtype == DType::Bool {
        return Err(call
            .bad_dtype("does not take Bool".into())
            .help("cast both to a number type"));
    }
    Ok(a.dtype)
}

#[track_caller]
pub(super) fn matmul(call: &Call, accumulate: DType) -> Result<Outputs> {
    call.operands(2)?;
    let (a, b) = (&call.inputs[0].shape, &call.inputs[1].shape);
    let rank = a.rank();
    if rank < 2 || b.rank() != rank {
        return Err(call
            .bad_shape(format!(
                "ranks {rank} and {} must be equal and at least 2, lhs {a} rhs {b}",
                b.rank()
            ))
            .help("add dimensions of size 1 in front"));
    }
    let (rows, inner, columns) = (a[rank - 2], a[rank - 1], b[rank - 1]);
    if b[rank - 2] != inner {
        let error = call.bad_shape(format!(
            "inner sizes differ, lhs {a} rhs {b}: {inner} columns against {} rows",
            b[rank - 2]
        ));
        let transposed = b[rank - 1] == inner;
        let help = "the last size of lhs must equal the last but one of rhs";
        return Err(error.help(if transposed { "transpose rhs?" } else { help }));
    }
    for dim in 0..rank - 2 {
        if a[dim] != b[dim] {
            return Err(call
                .bad_shape(format!(
                    "batch sizes {} and {} differ at dimension {dim}, lhs {a} rhs {b}",
                    a[dim], b[dim]
                ))
                .help("batch sizes must be equal or 1"));
        }
    }
    let dtype = check_dtypes(call, ["lhs", "rhs"])?;
    check_accumulate(call, dtype, accumulate)?;
    let mut dims = [0; MAX_DIMS];
    dims[..rank].copy_from_slice(a.dims());
    dims[rank - 2] = rows;
    dims[rank - 1] = columns;
    output(dtype, Shape::new(&dims[..rank])?)
}

#[track_caller]
pub(super) fn linear(call: &Call) -> Result<Outputs> {
    let biased = call.inputs.len() == 3;
    call.operands(if biased { 3 } else { 2 })?;
    let (x, weight) = (&call.inputs[0].shape, &call.inputs[1].shape);
    let &[out, features] = weight.dims() else {
        return Err(call.bad_shape(format!("weight has shape {weight}, [out, in] expected")));
    };
    let Some((&last, _)) = x.dims().split_last() else {
        return Err(call
            .bad_shape(format!(
                "input is a scalar, weight {weight} expects {features} features"
            ))
            .help("give it a last dimension"));
    };
    if last != features {
        return Err(call
            .bad_shape(format!(
                "input {x} has {last} features, weight {weight} expects {features}"
            ))
            .help(format!(
                "the last size of the input must be {features}; look at the layer before, or at a flatten"
            )));
    }
    let dtype = check_dtypes(call, ["input", "weight"])?;
    if biased {
        call.dtype(2, "bias", dtype)?;
        call.shape(2, "bias", &[out])?;
    }
    output(dtype, x.with(x.rank() - 1, out)?)
}
