//! Training runs: a sequential model with given weights, so many steps, the loss of each.

use super::model;
use super::optimizer;
use crate::attrs::Attrs;
use crate::ops::{self, Answer, Call, Wide};
use drivetrain_core::{Error, Result};
use drivetrain_nn::{Layer, Module, Sequential};
use drivetrain_tensor::{Tensor, no_grad};
use serde_json::{Map, Value};

pub const TABLE: &[(&str, Wide)] = &[("train", train)];

/// The losses, then the output in evaluation mode on the first batch.
fn train(call: &Call) -> Result<Answer> {
    let model = model::build(call)?;
    load(call, &model)?;
    let description = Attrs::new(map(call, "optimizer"));
    if optimizer::turns_round(&description)? {
        return Err(Error::argument("conformance", "train with maximize"));
    }
    let mut optimizer = optimizer::build(&description, model.parameters())?;
    let (batches, targets) = call.inputs.split_at(call.inputs.len() / 2);
    let pairs: Vec<(&Tensor, &Tensor)> = batches.iter().zip(targets).collect();
    model.train();
    let mut losses = Vec::new();
    for (batch, target) in pairs.iter().cycle().take(call.attrs.count_or("steps", 1)?) {
        let loss = loss(call, &model.forward(batch)?, target)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.item::<f64>()?);
    }
    model.eval();
    let output = no_grad(|| model.forward(call.x()?))?;
    let losses = Tensor::from_slice(&losses, [losses.len()], call.device)?;
    Ok(vec![losses.to_dtype(call.dtype)?, output].into())
}

fn map(call: &Call, name: &str) -> Map<String, Value> {
    let map = call.attrs.get(name).and_then(Value::as_object);
    map.cloned().unwrap_or_default()
}

/// The loss by its functional name, with arguments from `loss_attrs` where the case has them.
fn loss(call: &Call, output: &Tensor, target: &Tensor) -> Result<Tensor> {
    let name = call.attrs.text_or("loss", "mse_loss")?;
    let attrs = Attrs::new(map(call, "loss_attrs"));
    let inputs = [output.clone(), target.clone()];
    let answer = ops::call(&Call {
        op: name,
        attrs: &attrs,
        inputs: &inputs,
        weights: &[],
        outputs: 1,
        ..*call
    })?;
    answer
        .outputs
        .into_iter()
        .next()
        .ok_or_else(|| Error::argument("conformance", format!("the loss {name} gives nothing")))
}

/// Puts the case's weights into the model, each by its state-dict name; the counters of batch norms are not needed.
fn load(call: &Call, model: &Sequential) -> Result<()> {
    let (parameters, buffers) = (model.named_parameters(), model.named_buffers());
    for (name, value) in call.weights {
        let parameter = parameters.iter().find(|(n, _)| n == name);
        let buffer = buffers.iter().find(|(n, _)| n == name);
        match (parameter, buffer) {
            (Some((_, cell)), _) => cell.set(value)?,
            (_, Some((_, cell))) if cell.value().dtype() == value.dtype() => cell.set(value)?,
            _ if name.ends_with("num_batches_tracked") => {}
            _ => {
                return Err(Error::argument(
                    "conformance",
                    format!("the model has nothing named {name}"),
                ));
            }
        }
    }
    let given = |name: &String| call.weights.iter().any(|(n, _)| n == name);
    match parameters.iter().find(|(name, _)| !given(name)) {
        Some((name, _)) => Err(Error::argument(
            "conformance",
            format!("the case has no weight for {name}"),
        )),
        None => Ok(()),
    }
}
