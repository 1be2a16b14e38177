//! Inference of the normalisations and their gradients.

use super::Outputs;
use super::check::Call;
use crate::backend::Meta;
use crate::{DType, NormSpec, Result, Shape};

/// What a norm over trailing dimensions has: the parameters' and the statistics' metas.
struct Trailing {
    parameter: Meta,
    statistic: Meta,
}

#[track_caller]
fn trailing(call: &Call, x: &Meta, spec: &NormSpec) -> Result<Trailing> {
    call.within("eps", spec.eps, 0.0, f64::INFINITY)?;
    let dims = usize::from(spec.dims);
    let rank = x.shape.rank();
    if dims == 0 || dims > rank {
        return Err(call
            .bad_shape(format!(
                "{dims} trailing dimensions of input {} of rank {rank}",
                x.shape
            ))
            .help("the normalised shape must be a non-empty tail of the input's shape"));
    }
    let mut sizes = [1; crate::MAX_DIMS];
    sizes[..rank - dims].copy_from_slice(&x.shape.dims()[..rank - dims]);
    Ok(Trailing {
        parameter: Meta::new(x.dtype, Shape::new(&x.shape.dims()[rank - dims..])?),
        statistic: Meta::new(x.dtype.accumulator(), Shape::new(&sizes[..rank])?),
    })
}

/// Checks a parameter of trailing shape, naming both shapes.
#[track_caller]
fn check_parameter(call: &Call, i: usize, label: &str, x: &Meta, wanted: &Meta) -> Result<()> {
    call.dtype(i, label, wanted.dtype)?;
    if call.inputs[i].shape != wanted.shape {
        return Err(call.bad_shape(format!(
            "{label} {} does not match input {}, {} expected",
            call.inputs[i].shape, x.shape, wanted.shape
        )));
    }
    Ok(())
}

#[track_caller]
pub(super) fn layer_norm(call: &Call, spec: &NormSpec) -> Result<Outputs> {
    call.operands(if spec.affine { 3 } else { 1 })?;
    call.float(0, "input")?;
    let x = call.inputs[0];
    let parts = trailing(call, &x, spec)?;
    if spec.affine {
        check_parameter(call, 1, "weight", &x, &parts.parameter)?;
        check_parameter(call, 2, "bias", &x, &parts.parameter)?;
    }
    Ok(Outputs::of(&[x, parts.statistic, parts.statistic]))
}

#[track_caller]
pub(super) fn layer_norm_grad(call: &Call, spec: &NormSpec) -> Result<Outputs> {
    call.operands(4 + usize::from(spec.affine))?;
    call.float(1, "input")?;
    let x = call.inputs[1];
    let parts = trailing(call, &x, spec)?;
    call.meta(0, "gradient", &x)?;
    call.meta(2, "mean", &parts.statistic)?;
    call.meta(3, "rstd", &parts.statistic)?;
    if !spec.affine {
        return Ok(Outputs::one(x));
    }
    check_parameter(call, 4, "weight", &x, &parts.parameter)?;
    Ok(Outputs::of(&[x, parts.parameter, parts.parameter]))
}

#[track_caller]
pub(super) fn rms_norm(call: &Call, spec: &NormSpec) -> Result<Outputs> {
    call.operands(1 + usize::from(spec.affine))?;
    call.float(0, "input")?;
    let x = call.inputs[0];
    let parts = trailing(call, &x, spec)?;
    if spec.affine {
        check_parameter(call, 1, "weight", &x, &parts.parameter)?;
    }
    Ok(Outputs::of(&[x, parts.statistic]))
}

#[track_caller]
pub(super) fn rms_norm_grad(call: &Call, spec: &NormSpec) -> Result<Outputs> {
    call.operands(3 + usize::from(spec.affine))?;
    call.float(1, "input")?;
    let x = call.inputs[1];
    let parts = trailing(call, &x, spec)?;
    call.meta(0, "gradient", &x)?;
    call.meta(2, "rstd", &parts.statistic)?;
    if !spec.affine {
        return Ok(Outputs::one(x));
    }
    check_parameter(call, 3, "weight", &x, &parts.parameter)?;
    Ok(Outputs::of(&[x, parts.parameter]))
}

/// Channels of `[N, C, …]`, more than one value each.
#[track_caller]
fn channels(call: &Call, x: &Meta, eps: f64) -> Result<[usize; 1]> {
    call.within("eps", eps, 0.0, f64::INFINITY)?;
    let &[batch, channels, ref spatial @ ..] = x.shape.dims() else {
        return Err(call.bad_shape(format!("input has shape {}, [N, C, …] expected", x.shape)));
    };
    let values: usize = spatial.iter().product::<usize>() * batch;
    if values < 2 && channels > 0 {
        return Err(call
            .bad_shape(format!(
                "more than one value per channel needed when training, input {} has {values}",
                x.shape
            ))
            .help(
                "use larger batches, drop the last incomplete one, or switch to evaluation mode",
            ));
    }
    Ok([channels])
}

#[track_caller]
fn check_channel(
    call: &Call,
    i: usize,
    label: &str,
    x: &Meta,
    dtype: DType,
    sizes: [usize; 1],
) -> Result<()> {
    let wanted = Meta::new(dtype, Shape::new(&sizes)?);
    check_parameter(call, i, label, x, &wanted)
}

#[track_caller]
pub(super) fn batch_norm(call: &Call, eps: f64, affine: bool) -> Result<Outputs> {
    call.operands(if affine { 3 } else { 1 })?;
    let dtype = call.float(0, "input")?;
    let x = call.inputs[0];
    let sizes = channels(call, &x, eps)?;
    if affine {
        check_channel(call, 1, "weight", &x, dtype, sizes)?;
        check_channel(call, 2, "bias", &x, dtype, sizes)?;
    }
    let statistic = Meta::new(dtype.accumulator(), Shape::new(&sizes)?);
    Ok(Outputs::of(&[x, statistic, statistic]))
}

#[track_caller]
pub(super) fn batch_norm_grad(call: &Call, eps: f64, affine: bool) -> Result<Outputs> {
    call.operands(4 + usize::from(affine))?;
    let dtype = call.float(1, "input")?;
    let x = call.inputs[1];
    let sizes = channels(call, &x, eps)?;
    call.meta(0, "gradient", &x)?;
    check_channel(call, 2, "mean", &x, dtype.accumulator(), sizes)?;
    check_channel(call, 3, "variance", &x, dtype.accumulator(), sizes)?;
    if !affine {
        return Ok(Outputs::one(x));
    }
    check_channel(call, 4, "weight", &x, dtype, sizes)?;
    let parameter = Meta::new(dtype, Shape::new(&sizes)?);
    Ok(Outputs::of(&[x, parameter, parameter]))
}
