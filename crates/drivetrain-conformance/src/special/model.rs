//! The sequential model of a training case, from its list of layers.

use crate::attrs::Attrs;
use crate::ops::{self, Call};
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_nn::{
    BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Conv3d, ConvTranspose2d, Dropout, Embedding, Flatten,
    Function, GroupNorm, Identity, InstanceNorm, Layer, LayerNorm, Linear, RmsNorm, Sequential,
};
use drivetrain_tensor::{ConvTransposeOptions, Spatial, Tensor};
use serde_json::{Map, Value};

/// Names of the positional arguments of PyTorch's layers.
const POSITIONS: &[(&str, &[&str])] = &[
    ("linear", &["in_features", "out_features", "bias"]),
    ("conv1d", CONVOLUTION),
    ("conv2d", CONVOLUTION),
    ("conv3d", CONVOLUTION),
    (
        "conv_transpose2d",
        &[
            "in_channels",
            "out_channels",
            "kernel_size",
            "stride",
            "padding",
            "output_padding",
            "groups",
            "bias",
            "dilation",
        ],
    ),
    ("batch_norm1d", CHANNELS),
    ("batch_norm2d", CHANNELS),
    ("instance_norm1d", CHANNELS),
    ("instance_norm2d", CHANNELS),
    (
        "group_norm",
        &["num_groups", "num_channels", "eps", "affine"],
    ),
    ("layer_norm", NORMALIZED),
    ("rms_norm", NORMALIZED),
    (
        "embedding",
        &["num_embeddings", "embedding_dim", "padding_idx"],
    ),
    ("dropout", &["p"]),
    ("flatten", &["start_dim", "end_dim"]),
    ("max_pool1d", MAX_POOL),
    ("max_pool2d", MAX_POOL),
    ("avg_pool1d", AVG_POOL),
    ("avg_pool2d", AVG_POOL),
    ("adaptive_avg_pool1d", &["output_size"]),
    ("adaptive_avg_pool2d", &["output_size"]),
    ("adaptive_max_pool2d", &["output_size"]),
    ("gelu", &["approximate"]),
    ("elu", &["alpha"]),
    ("celu", &["alpha"]),
    ("leaky_relu", &["negative_slope"]),
    ("softplus", &["beta", "threshold"]),
    ("hardtanh", &["min_val", "max_val"]),
    ("softmax", &["dim"]),
    ("log_softmax", &["dim"]),
];
const CONVOLUTION: &[&str] = &[
    "in_channels",
    "out_channels",
    "kernel_size",
    "stride",
    "padding",
    "dilation",
    "groups",
    "bias",
];
const CHANNELS: &[&str] = &["num_features", "eps", "momentum", "affine"];
const NORMALIZED: &[&str] = &["normalized_shape", "eps", "elementwise_affine", "bias"];
const MAX_POOL: &[&str] = &[
    "kernel_size",
    "stride",
    "padding",
    "dilation",
    "return_indices",
    "ceil_mode",
];
const AVG_POOL: &[&str] = &[
    "kernel_size",
    "stride",
    "padding",
    "ceil_mode",
    "count_include_pad",
];

/// The model of `attrs.layers`: `[kind, positional arguments…, {named arguments}]` each.
///
/// # Errors
/// Kinds or arguments that are not known.
pub fn build(call: &Call) -> Result<Sequential> {
    let list = call.attrs.get("layers").and_then(Value::as_array);
    let mut model = Sequential::new();
    for entry in list.map_or(&[][..], Vec::as_slice) {
        let (kind, arguments) = arguments(entry).ok_or_else(|| {
            Error::argument("conformance", format!("the layer {entry} cannot be read"))
        })?;
        model.push(layer(&kind, arguments, call.device, call.dtype)?);
    }
    Ok(model)
}

/// The kind and all arguments by name.
fn arguments(entry: &Value) -> Option<(String, Map<String, Value>)> {
    let (kind, rest) = entry.as_array()?.split_first()?;
    let kind = kind.as_str()?;
    let row = POSITIONS.iter().find(|(name, _)| *name == kind);
    let names = row.map_or(&[][..], |(_, names)| names);
    let mut named = Map::new();
    for (i, argument) in rest.iter().enumerate() {
        match argument {
            Value::Object(map) => named.extend(map.clone()),
            value => {
                named.insert(names.get(i)?.to_string(), value.clone());
            }
        }
    }
    Some((kind.to_string(), named))
}

fn layer(
    kind: &str,
    arguments: Map<String, Value>,
    device: &Device,
    dtype: DType,
) -> Result<Box<dyn Layer>> {
    let attrs = Attrs::new(arguments.clone());
    let bias = attrs.flag_or("bias", true)?;
    Ok(match kind {
        "linear" => {
            let inputs = attrs.count_or("in_features", 0)?;
            let config = Linear::config(inputs, attrs.count_or("out_features", 0)?);
            Box::new(config.bias(bias).dtype(dtype).build(device)?)
        }
        "conv1d" | "conv2d" | "conv3d" | "conv_transpose2d" => {
            convolution(kind, &attrs, device, dtype)?
        }
        "batch_norm1d" | "batch_norm2d" | "instance_norm1d" | "instance_norm2d" | "group_norm"
        | "layer_norm" | "rms_norm" => normalisation(kind, &attrs, device, dtype)?,
        "embedding" => {
            let count = attrs.count_or("num_embeddings", 0)?;
            let config = Embedding::config(count, attrs.count_or("embedding_dim", 0)?).dtype(dtype);
            Box::new(match attrs.integer("padding_idx")? {
                None => config.build(device)?,
                Some(_) => config
                    .padding_idx(attrs.count_or("padding_idx", 0)?)
                    .build(device)?,
            })
        }
        "dropout" => Box::new(Dropout::new(attrs.number_or("p", 0.5)?)?),
        "flatten" => Box::new(Flatten {
            start: attrs.integer_or("start_dim", 1)?,
            end: attrs.integer_or("end_dim", -1)?,
        }),
        "identity" => Box::new(Identity),
        _ if ops::is_known(kind) => Box::new(function(kind, arguments, device, dtype)),
        other => {
            return Err(Error::argument(
                "conformance",
                format!("the runner knows no layer {other:?}"),
            ));
        }
    })
}

/// An op without parameters as a layer.
fn function(
    kind: &str,
    arguments: Map<String, Value>,
    device: &Device,
    dtype: DType,
) -> impl Layer + 'static {
    let (kind, device) = (kind.to_string(), device.clone());
    Function(move |x: &Tensor| {
        let answer = ops::call(&Call {
            op: &kind,
            attrs: &Attrs::new(arguments.clone()),
            inputs: std::slice::from_ref(x),
            weights: &[],
            outputs: 1,
            steps: 0,
            device: &device,
            dtype,
        })?;
        let first = answer.outputs.into_iter().next();
        first.ok_or_else(|| Error::argument("conformance", format!("{kind} gives nothing")))
    })
}

fn convolution(kind: &str, attrs: &Attrs, device: &Device, dtype: DType) -> Result<Box<dyn Layer>> {
    let inputs = attrs.count_or("in_channels", 0)?;
    let outputs = attrs.count_or("out_channels", 0)?;
    let kernel = spatial(attrs, "kernel_size", 1)?;
    let (stride, padding) = (spatial(attrs, "stride", 1)?, spatial(attrs, "padding", 0)?);
    let dilation = spatial(attrs, "dilation", 1)?;
    let groups = attrs.count_or("groups", 1)?;
    let bias = attrs.flag_or("bias", true)?;
    macro_rules! build {
        ($layer:ident) => {
            Box::new(
                $layer::config(inputs, outputs, kernel)
                    .stride(stride)
                    .padding(padding)
                    .dilation(dilation)
                    .groups(groups)
                    .bias(bias)
                    .dtype(dtype)
                    .build(device)?,
            )
        };
    }
    Ok(match kind {
        "conv1d" => build!(Conv1d),
        "conv2d" => build!(Conv2d),
        "conv3d" => build!(Conv3d),
        _ => {
            let options = ConvTransposeOptions::default()
                .stride(stride)
                .padding(padding)
                .output_padding(spatial(attrs, "output_padding", 0)?)
                .dilation(dilation)
                .groups(groups);
            let config = ConvTranspose2d::config(inputs, outputs, kernel).options(options);
            Box::new(config.bias(bias).dtype(dtype).build(device)?)
        }
    })
}

fn normalisation(
    kind: &str,
    attrs: &Attrs,
    device: &Device,
    dtype: DType,
) -> Result<Box<dyn Layer>> {
    let channels = attrs.count_or("num_features", 0)?;
    let eps = attrs.number_or("eps", 1e-5)?;
    let affine = attrs.flag_or("affine", true)?;
    let elementwise = attrs.flag_or("elementwise_affine", true)?;
    let shape = || -> Result<Vec<usize>> {
        let shape = attrs.integers("normalized_shape")?.unwrap_or_default();
        Ok(shape
            .iter()
            .filter_map(|&n| usize::try_from(n).ok())
            .collect())
    };
    // Null is not the default: it asks for the mean of all batches.
    let momentum = match attrs.is_given("momentum") {
        true => attrs.number("momentum")?,
        false => Some(0.1),
    };
    let batch = BatchNorm2d::config(channels)
        .eps(eps)
        .momentum(momentum)
        .affine(affine)
        .dtype(dtype);
    Ok(match kind {
        "batch_norm1d" => Box::new(batch.batch_norm1d(device)?) as Box<BatchNorm1d>,
        "batch_norm2d" => Box::new(batch.batch_norm2d(device)?),
        "layer_norm" => {
            let config = LayerNorm::config(shape()?.as_slice()).eps(eps);
            Box::new(config.affine(elementwise).dtype(dtype).build(device)?)
        }
        "rms_norm" => {
            let mut config = RmsNorm::config(shape()?.as_slice());
            if let Some(eps) = attrs.number("eps")? {
                config = config.eps(eps);
            }
            Box::new(config.affine(elementwise).dtype(dtype).build(device)?)
        }
        "group_norm" => {
            let groups = attrs.count_or("num_groups", 1)?;
            let config = GroupNorm::config(groups, attrs.count_or("num_channels", 0)?);
            Box::new(config.eps(eps).affine(affine).dtype(dtype).build(device)?)
        }
        _ => {
            let affine = attrs.flag_or("affine", false)?;
            let config = InstanceNorm::config(channels).eps(eps).affine(affine);
            Box::new(config.dtype(dtype).build(device)?)
        }
    })
}

/// One size for all axes, or one for each.
fn spatial(attrs: &Attrs, name: &str, default: usize) -> Result<Spatial> {
    let sizes = attrs.integers(name)?.unwrap_or_default();
    let sizes: Vec<usize> = sizes
        .iter()
        .filter_map(|&n| usize::try_from(n).ok())
        .collect();
    Ok(match sizes.as_slice() {
        [] => Spatial::from(default),
        &[one] => Spatial::from(one),
        list => Spatial::from(list),
    })
}
