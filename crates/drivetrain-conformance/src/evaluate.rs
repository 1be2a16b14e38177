//! One case played on a device: inputs uploaded and viewed, the op called, gradients taken, all read back.

use crate::cases::{Case, Suite};
use crate::ops::{self, Answer, Call};
use crate::values::HostTensor;
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_tensor::Tensor;
use drivetrain_tensor::autograd::GradOptions;

/// Where and in which dtype a case is played.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The device.
    pub device: &'a Device,
    /// Of the floats.
    pub dtype: DType,
    /// Floats are rounded to this before: what a half's results are compared with.
    pub round: Option<DType>,
}

/// What came of a case.
pub struct Evaluation {
    /// The outputs.
    pub outputs: Vec<HostTensor>,
    /// The gradient of each input, where one is wanted.
    pub grads: Vec<Option<HostTensor>>,
}

impl Evaluation {
    /// Its floats as `dtype` has them: what is too large for it is infinite.
    pub fn rounded(mut self, dtype: DType) -> Evaluation {
        for value in self
            .outputs
            .iter_mut()
            .chain(self.grads.iter_mut().flatten())
        {
            value.round(dtype);
        }
        self
    }
}

/// Plays a case.
///
/// # Errors
/// What the op, its gradients or reading them say.
pub fn evaluate(case: &Case, suite: &Suite, setting: Setting) -> Result<Evaluation> {
    let upload = |name: &str| -> Result<Tensor> {
        suite
            .value(name)?
            .upload(setting.dtype, setting.round, setting.device)
    };
    let mut leaves = Vec::new();
    for (index, name) in case.inputs.iter().enumerate() {
        let value = upload(name)?;
        leaves.push(match case.grads.get(index) {
            Some(Some(_)) => value.requires_grad_()?,
            _ => value,
        });
    }
    let mut inputs = leaves.clone();
    for (&index, views) in &case.views {
        if let Some(input) = inputs.get_mut(index) {
            *input = views
                .iter()
                .try_fold(input.clone(), |x, view| view.apply(&x))?;
        }
    }
    let mut weights = Vec::new();
    for (name, tensor) in &case.weights {
        weights.push((name.clone(), upload(tensor)?));
    }
    let call = Call {
        op: &case.op,
        attrs: &case.attrs,
        inputs: &inputs,
        weights: &weights,
        outputs: case.outputs.len(),
        steps: suite_length(case, suite),
        device: setting.device,
        dtype: setting.dtype,
    };
    let answer = ops::call(&call)?;
    let outputs = answer.outputs.iter().map(HostTensor::of);
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    let grads = if case.cotangents.is_empty() {
        Vec::new()
    } else {
        let cotangents: Vec<(usize, Tensor)> = case
            .cotangents
            .iter()
            .map(|(&index, name)| Ok((index, upload(name)?)))
            .collect::<Result<_>>()?;
        gradients(case, &answer, &cotangents, &leaves, &inputs)?
    };
    Ok(Evaluation { outputs, grads })
}

/// How many numbers the first right output holds: a schedule is asked for as many epochs.
fn suite_length(case: &Case, suite: &Suite) -> usize {
    let first = case.outputs.first().map(|name| suite.value(name));
    first.and_then(Result::ok).map_or(0, |v| v.elements.len())
}

/// The gradients of the sum over outputs of `sum(output * cotangent)` with respect to the stored inputs.
fn gradients(
    case: &Case,
    answer: &Answer,
    cotangents: &[(usize, Tensor)],
    leaves: &[Tensor],
    inputs: &[Tensor],
) -> Result<Vec<Option<HostTensor>>> {
    let keep = GradOptions {
        retain_graph: true,
        ..GradOptions::default()
    };
    for (index, cotangent) in cotangents {
        let output = answer.outputs.get(*index).ok_or_else(|| {
            Error::argument(
                "conformance",
                format!("output {index} of {}", answer.outputs.len()),
            )
        })?;
        if output.dims() != cotangent.dims() {
            // The judge says which shape was wanted.
            return Ok(vec![None; leaves.len()]);
        }
        // An output that depends on no input smoothly (a count, say) has a gradient of zeros.
        if output.requires_grad() {
            output.backward_with(Some(cotangent), keep)?;
        }
    }
    // A layer's parameters are leaves of their own: their gradients go on through the views of the inputs.
    for (index, parameter) in &answer.parameters {
        if let (Some(input), Some(grad)) = (inputs.get(*index), parameter.grad())
            && input.requires_grad()
        {
            input.backward_with(Some(&grad), keep)?;
        }
    }
    let grads = case.grads.iter().zip(leaves).map(|(wanted, leaf)| {
        let grad = wanted.as_ref().and_then(|_| leaf.grad());
        grad.as_ref().map(HostTensor::of).transpose()
    });
    grads.collect()
}
