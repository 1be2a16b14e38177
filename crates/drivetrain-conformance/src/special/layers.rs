//! Layers with parameters of their own: attention, recurrent layers, the transformer's encoder layer.

use super::parameter_names;
use crate::ops::{Answer, Call, Wide};
use drivetrain_core::{DType, Error, Result};
use drivetrain_nn::{Gru, Lstm, LstmState, Module, MultiheadAttention, RecurrentConfig};
use drivetrain_nn::{TransformerEncoderLayer, TransformerEncoderLayerConfig};
use drivetrain_tensor::{Parameter, Tensor};

pub const TABLE: &[(&str, Wide)] = &[
    ("multihead_attention", multihead_attention),
    ("lstm", lstm),
    ("gru", gru),
    ("transformer_encoder_layer", transformer_encoder_layer),
];

/// Sets the layer's parameters to the inputs after x, in the order of `attrs.parameters`; says which is which.
fn load(call: &Call, layer: &impl Module) -> Result<Vec<(usize, Parameter)>> {
    let names = parameter_names(call)?;
    let cells = layer.named_parameters();
    if let Some((name, _)) = cells.iter().find(|(name, _)| !names.contains(name)) {
        return Err(Error::argument(
            "conformance",
            format!("{} has a parameter {name} that the case lacks", call.op),
        ));
    }
    let mut loaded = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let (_, cell) = cells.iter().find(|(n, _)| n == name).ok_or_else(|| {
            Error::argument(
                "conformance",
                format!("{} has no parameter {name}", call.op),
            )
        })?;
        cell.set(&call.input(i + 1)?.detach())?;
        loaded.push((i + 1, cell.clone()));
    }
    Ok(loaded)
}

/// Whether the case has biases.
fn has_bias(call: &Call) -> Result<bool> {
    let names = parameter_names(call)?;
    let default = names.iter().any(|name| name.contains("bias"));
    call.attrs.flag_or("bias", default)
}

/// A mask after the parameters: `mask` says whether it is of truth values (true: not seen, as in PyTorch's layers)
/// or added to the scores.
fn mask(call: &Call) -> Result<Option<Tensor>> {
    let Some(mask) = call.optional(parameter_names(call)?.len() + 1) else {
        return Ok(None);
    };
    let mask = match mask.dtype() {
        DType::Bool => mask.logical_not()?,
        _ => mask.clone(),
    };
    Ok(Some(mask))
}

fn multihead_attention(call: &Call) -> Result<Answer> {
    let x = call.x()?;
    let width = call.attrs.count_or("embed_dim", 0)?;
    let heads = call.attrs.count_or("num_heads", 1)?;
    let layer = MultiheadAttention::config(width, heads)
        .bias(has_bias(call)?)
        .batch_first(call.attrs.flag_or("batch_first", false)?)
        .dtype(call.dtype)
        .build(call.device)?;
    let parameters = load(call, &layer)?;
    let causal = call.attrs.flag_or("is_causal", false)?;
    let output = layer.attend(x, x, x, mask(call)?.as_ref(), causal)?;
    Ok(Answer {
        outputs: vec![output],
        parameters,
    })
}

fn transformer_encoder_layer(call: &Call) -> Result<Answer> {
    let attrs = call.attrs;
    let layer = encoder_config(call)?
        .dim_feedforward(attrs.count_or("dim_feedforward", 2048)?)
        .dropout(attrs.number_or("dropout", 0.1)?)
        .gelu(match attrs.text_or("activation", "relu")? {
            "relu" => false,
            "gelu" => true,
            other => {
                return Err(Error::argument(
                    "conformance",
                    format!("activation {other:?}"),
                ));
            }
        })
        .norm_first(attrs.flag_or("norm_first", false)?)
        .eps(attrs.number_or("layer_norm_eps", 1e-5)?)
        .build(call.device)?;
    let parameters = load(call, &layer)?;
    let causal = attrs.flag_or("is_causal", false)?;
    let output = layer.forward_with(call.x()?, mask(call)?.as_ref(), causal)?;
    Ok(Answer {
        outputs: vec![output],
        parameters,
    })
}

fn encoder_config(call: &Call) -> Result<TransformerEncoderLayerConfig> {
    let width = call.attrs.count_or("d_model", 0)?;
    let heads = call.attrs.count_or("nhead", 1)?;
    // Unlike PyTorch's, the format's default is the batch first.
    let batch_first = call.attrs.flag_or("batch_first", true)?;
    let config = TransformerEncoderLayer::config(width, heads);
    Ok(config.dtype(call.dtype).batch_first(batch_first))
}

fn recurrent(call: &Call, config: RecurrentConfig) -> Result<RecurrentConfig> {
    let attrs = call.attrs;
    Ok(config
        .layers(attrs.count_or("num_layers", 1)?)
        .bias(has_bias(call)?)
        .batch_first(attrs.flag_or("batch_first", false)?)
        .bidirectional(attrs.flag_or("bidirectional", false)?)
        .dropout(attrs.number_or("dropout", 0.0)?)
        .dtype(call.dtype))
}

fn sizes(call: &Call) -> Result<(usize, usize)> {
    let inputs = call.attrs.count_or("input_size", 0)?;
    Ok((inputs, call.attrs.count_or("hidden_size", 0)?))
}

/// The sequence, and the last states where the case wants more than one output. States to begin with may follow
/// the parameters.
fn lstm(call: &Call) -> Result<Answer> {
    let (inputs, hidden) = sizes(call)?;
    let layer = recurrent(call, Lstm::config(inputs, hidden))?.lstm(call.device)?;
    let parameters = load(call, &layer)?;
    let first = parameters.len() + 1;
    let begin = match (call.optional(first), call.optional(first + 1)) {
        (Some(hidden), Some(cell)) => Some(LstmState {
            hidden: hidden.clone(),
            cell: cell.clone(),
        }),
        _ => None,
    };
    let (output, last) = layer.forward_with(call.x()?, begin.as_ref())?;
    let mut outputs = vec![output, last.hidden, last.cell];
    outputs.truncate(call.outputs.max(1));
    Ok(Answer {
        outputs,
        parameters,
    })
}

/// As [`lstm`], with one state.
fn gru(call: &Call) -> Result<Answer> {
    let (inputs, hidden) = sizes(call)?;
    let layer = recurrent(call, Gru::config(inputs, hidden))?.gru(call.device)?;
    let parameters = load(call, &layer)?;
    let (output, last) = layer.forward_with(call.x()?, call.optional(parameters.len() + 1))?;
    let mut outputs = vec![output, last];
    outputs.truncate(call.outputs.max(1));
    Ok(Answer {
        outputs,
        parameters,
    })
}
