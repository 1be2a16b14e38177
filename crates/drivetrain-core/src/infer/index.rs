//! Inference of ops that look up, write, join and pad along dimensions.

use super::Outputs;
use super::check::{Call, dim_below_rank, output};
use crate::{DType, Error, PadSpec, Result, ScatterMode, Shape};

/// Checks an index of `Gather` or `Scatter` against the tensor it points into.
#[track_caller]
fn check_index(call: &Call, label: &str, x: &Shape, index: &Shape, dim: usize) -> Result<()> {
    if index.rank() != x.rank() {
        return Err(call.bad_shape(format!(
            "ranks differ, {label} {x} of rank {} index {index} of rank {}",
            x.rank(),
            index.rank()
        )));
    }
    for other in (0..x.rank()).filter(|&d| d != dim) {
        if index[other] > x[other] {
            return Err(call.bad_shape(format!(
                "index {index} is larger than {label} {x} at dimension {other}: {} > {}",
                index[other], x[other]
            )));
        }
    }
    check_not_empty(call, x, dim, index)
}

/// No index points into nothing.
#[track_caller]
fn check_not_empty(call: &Call, x: &Shape, dim: usize, index: &Shape) -> Result<()> {
    if x[dim] == 0 && !index.is_empty() {
        return Err(Error::value(
            call.name,
            format!("index {index} out of range, dimension {dim} of {x} has size 0"),
        ));
    }
    Ok(())
}

#[track_caller]
pub(super) fn gather(call: &Call, dim: u8) -> Result<Outputs> {
    call.operands(2)?;
    let dim = call.dim(dim)?;
    call.dtype(1, "index", DType::I64)?;
    let (x, index) = (&call.inputs[0], &call.inputs[1].shape);
    check_index(call, "input", &x.shape, index, dim)?;
    output(x.dtype, *index)
}

#[track_caller]
pub(super) fn scatter(call: &Call, dim: u8, mode: ScatterMode) -> Result<Outputs> {
    call.operands(2)?;
    let destination = &call.in_place[0];
    let dim = dim_below_rank(call.name, dim, &destination.shape)?;
    call.dtype(0, "index", DType::I64)?;
    call.dtype(1, "source", destination.dtype)?;
    if mode == ScatterMode::Add && destination.dtype == DType::Bool {
        return Err(call
            .bad_dtype("does not add Bool".into())
            .help("cast to a number type"));
    }
    let index = call.inputs[0].shape;
    call.shape(1, "source", index.dims())?;
    check_index(call, "destination", &destination.shape, &index, dim)?;
    Ok(Outputs::NONE)
}

/// The length of an index of one dimension.
#[track_caller]
fn index_length(call: &Call) -> Result<usize> {
    call.dtype(1, "index", DType::I64)?;
    let index = &call.inputs[1].shape;
    match index.dims() {
        &[length] => Ok(length),
        _ => Err(call
            .bad_shape(format!("index has shape {index}, one dimension expected"))
            .help("flatten the index, and reshape the result")),
    }
}

#[track_caller]
pub(super) fn index_select(call: &Call, dim: u8) -> Result<Outputs> {
    call.operands(2)?;
    let dim = call.dim(dim)?;
    let length = index_length(call)?;
    let x = &call.inputs[0];
    check_not_empty(call, &x.shape, dim, &call.inputs[1].shape)?;
    output(x.dtype, x.shape.with(dim, length)?)
}

#[track_caller]
pub(super) fn index_select_grad(call: &Call, dim: u8, size: usize) -> Result<Outputs> {
    call.operands(2)?;
    let dim = call.dim(dim)?;
    let length = index_length(call)?;
    let dy = &call.inputs[0];
    if dy.dtype == DType::Bool {
        return Err(call.bad_dtype("does not add Bool".into()));
    }
    if dy.shape[dim] != length {
        return Err(call.bad_shape(format!(
            "gradient {} has {} slices along dimension {dim}, index {} has {length}",
            dy.shape, dy.shape[dim], call.inputs[1].shape
        )));
    }
    let shape = dy.shape.with(dim, size)?;
    check_not_empty(call, &shape, dim, &call.inputs[1].shape)?;
    output(dy.dtype, shape)
}

#[track_caller]
pub(super) fn concat(call: &Call, dim: u8) -> Result<Outputs> {
    let Some((first, others)) = call.inputs.split_first() else {
        return Err(call.argument("no tensors".into()));
    };
    let dim = call.dim(dim)?;
    let mut total = first.shape[dim];
    for (i, other) in others.iter().enumerate() {
        let (a, b) = (&first.shape, &other.shape);
        if other.dtype != first.dtype {
            return Err(call.bad_dtype(format!(
                "dtypes differ, tensor 0 {} tensor {} {}",
                first.dtype,
                i + 1,
                other.dtype
            )));
        }
        if a.rank() != b.rank() {
            return Err(call.bad_shape(format!(
                "ranks {} and {} differ, tensor 0 {a} tensor {} {b}",
                a.rank(),
                b.rank(),
                i + 1
            )));
        }
        if let Some(at) = (0..a.rank()).find(|&d| d != dim && a[d] != b[d]) {
            return Err(call
                .bad_shape(format!(
                    "sizes {} and {} differ at dimension {at}, tensor 0 {a} tensor {} {b}",
                    a[at],
                    b[at],
                    i + 1
                ))
                .help(format!(
                    "all sizes but that of dimension {dim} must be equal"
                )));
        }
        total = total.saturating_add(b[dim]);
    }
    output(first.dtype, first.shape.with(dim, total)?)
}

#[track_caller]
pub(super) fn pad(call: &Call, spec: &PadSpec) -> Result<Outputs> {
    call.operands(1)?;
    let x = &call.inputs[0];
    let (from, to) = (&x.shape, &spec.shape);
    if from.rank() != to.rank() {
        return Err(call.bad_shape(format!(
            "ranks {} and {} differ, input {from} result {to}",
            from.rank(),
            to.rank()
        )));
    }
    for dim in 0..from.rank() {
        let (start, step) = (spec.start[dim], spec.step[dim]);
        if step == 0 {
            return Err(call.argument(format!("step 0 at dimension {dim}")));
        }
        if from[dim] == 0 {
            continue;
        }
        let last = start as i128 + (from[dim] as i128 - 1) * step as i128;
        if start >= to[dim] || !(0..to[dim] as i128).contains(&last) {
            return Err(call.bad_shape(format!(
                "input {from} from {start} in steps of {step} leaves dimension {dim} of {to}"
            )));
        }
    }
    output(x.dtype, *to)
}
