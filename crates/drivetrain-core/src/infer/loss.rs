//! Inference of cross entropy and its gradient, with the mistakes people make most.

use super::Outputs;
use super::check::Call;
use crate::backend::Meta;
use crate::{DType, Result, Shape};

/// The shape of one value a sample: logits `[N, C, …]` without C.
#[track_caller]
fn sample_shape(call: &Call, logits: &Meta) -> Result<Shape> {
    let shape = &logits.shape;
    if shape.rank() < 2 {
        return Err(call
            .bad_shape(format!("logits have shape {shape}, [N, C, …] expected"))
            .help("add a batch dimension in front"));
    }
    if shape[1] == 0 {
        return Err(call.bad_shape(format!("logits {shape} have no classes")));
    }
    Ok(shape.without(1))
}

/// Checks that the target (input `i`) holds class indices for these logits.
#[track_caller]
fn check_target(call: &Call, logits: &Meta, i: usize, samples: &Shape) -> Result<()> {
    let (input, target) = (&logits.shape, &call.inputs[i]);
    let shape = &target.shape;
    if target.dtype.is_float() {
        let (dtype, classes) = (target.dtype, input[1]);
        return Err(call
            .bad_dtype(format!(
                "target {shape} is {dtype}, class indices of I64 expected for logits {input}"
            ))
            .help(format!(
                "one-hot or probability targets: take argmax along dimension 1, or the loss for probabilities; \
                 indices go from 0 to {}",
                classes - 1
            )));
    }
    if shape == input {
        return Err(call
            .bad_shape(format!(
                "target {shape} has the shape of logits {input}, class indices {samples} expected"
            ))
            .help("a one-hot target? take its argmax along dimension 1"));
    }
    let batch = shape.dims().first().copied();
    if let Some(batch) = batch.filter(|&b| b != input[0]) {
        return Err(call
            .bad_shape(format!(
                "input batch size {} does not match target batch size {batch}, logits {input} target {shape}",
                input[0]
            ))
            .help(
                "the batch dimension was flattened? look at flatten/view: keep dimension 0 and flatten from 1",
            ));
    }
    if shape != samples {
        let error = call.bad_shape(format!(
            "target {shape} does not match logits {input}, class indices {samples} expected"
        ));
        let squeezed = shape.rank() == samples.rank() + 1 && shape[shape.rank() - 1] == 1;
        return Err(error.help(if squeezed {
            "drop the last dimension of the target (squeeze)"
        } else {
            "the target has one class index a sample, without the class dimension 1 of the logits"
        }));
    }
    if target.dtype != DType::I64 {
        return Err(call
            .bad_dtype(format!(
                "target is {}, class indices of I64 expected",
                target.dtype
            ))
            .help("cast the target to I64"));
    }
    Ok(())
}

#[track_caller]
fn check_class_weight(call: &Call, i: usize, logits: &Meta) -> Result<()> {
    call.dtype(i, "class weight", logits.dtype)?;
    let (weight, classes) = (&call.inputs[i].shape, logits.shape[1]);
    if *weight != [classes] {
        return Err(call.bad_shape(format!(
            "class weight {weight} for {classes} classes of logits {}, [{classes}] expected",
            logits.shape
        )));
    }
    Ok(())
}

#[track_caller]
pub(super) fn cross_entropy(call: &Call, smoothing: f64, weighted: bool) -> Result<Outputs> {
    call.operands(2 + usize::from(weighted))?;
    let dtype = call.float(0, "logits")?;
    call.within("label_smoothing", smoothing, 0.0, 1.0)?;
    let logits = call.inputs[0];
    let samples = sample_shape(call, &logits)?;
    check_target(call, &logits, 1, &samples)?;
    if weighted {
        check_class_weight(call, 2, &logits)?;
    }
    let loss = Meta::new(dtype, samples);
    let logsumexp = Meta::new(dtype.accumulator(), samples);
    Ok(Outputs::of(&[loss, logsumexp, loss]))
}

#[track_caller]
pub(super) fn cross_entropy_grad(call: &Call, smoothing: f64, weighted: bool) -> Result<Outputs> {
    call.operands(4 + usize::from(weighted))?;
    let dtype = call.float(1, "logits")?;
    call.within("label_smoothing", smoothing, 0.0, 1.0)?;
    let logits = call.inputs[1];
    let samples = sample_shape(call, &logits)?;
    call.meta(0, "gradient", &Meta::new(dtype, samples))?;
    call.meta(2, "logsumexp", &Meta::new(dtype.accumulator(), samples))?;
    check_target(call, &logits, 3, &samples)?;
    if weighted {
        check_class_weight(call, 4, &logits)?;
    }
    Ok(Outputs::one(logits))
}
