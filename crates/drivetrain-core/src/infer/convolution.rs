//! Inference of convolutions and their two gradients.

use super::Outputs;
use super::check::{Call, output};
use crate::{ConvolutionSpec, MAX_DIMS, Result, Shape};

/// Attributes that fit no input, and the number of spatial dimensions.
#[track_caller]
fn check_spec(call: &Call, spec: &ConvolutionSpec) -> Result<usize> {
    let spatial = usize::from(spec.spatial);
    if !(1..=3).contains(&spatial) {
        return Err(call.argument(format!("{spatial} spatial dimensions, 1 to 3 expected")));
    }
    for (label, values) in [("stride", &spec.stride), ("dilation", &spec.dilation)] {
        if values[..spatial].contains(&0) {
            let values = &values[..spatial];
            return Err(call.argument(format!("{label} {values:?}, must be at least 1")));
        }
    }
    if spec.groups == 0 {
        return Err(call.argument("groups 0, must be at least 1".into()));
    }
    Ok(spatial)
}

/// Checks that input `i` has a batch (or output) and a channel dimension before its spatial ones.
#[track_caller]
fn check_rank(call: &Call, i: usize, label: &str, spatial: usize) -> Result<()> {
    let shape = &call.inputs[i].shape;
    if shape.rank() != spatial + 2 {
        return Err(call.bad_shape(format!(
            "{label} {shape} has rank {}, {} expected",
            shape.rank(),
            spatial + 2
        )));
    }
    Ok(())
}

/// The two first inputs are floats of one dtype.
#[track_caller]
fn check_dtypes(call: &Call, labels: [&str; 2]) -> Result<crate::DType> {
    let dtype = call.float(0, labels[0])?;
    call.dtype(1, labels[1], dtype)?;
    Ok(dtype)
}

/// `groups` divides the output channels.
#[track_caller]
fn check_groups(call: &Call, label: &str, channels: usize, groups: usize) -> Result<()> {
    if !channels.is_multiple_of(groups) {
        return Err(call.argument(format!(
            "{channels} {label} channels cannot be cut into {groups} groups"
        )));
    }
    Ok(())
}

/// The number of windows along each spatial dimension.
#[track_caller]
fn window_counts(
    call: &Call,
    spec: &ConvolutionSpec,
    image: &[usize],
    kernel: &[usize],
) -> Result<[usize; 3]> {
    let mut counts = [1; 3];
    for (i, (&size, &taps)) in image.iter().zip(kernel).enumerate() {
        counts[i] = spec.output_size(i, size, taps).ok_or_else(|| {
            if taps == 0 {
                return call.bad_shape(format!("kernel {kernel:?} has a size of 0"));
            }
            let reach = (taps - 1).saturating_mul(spec.dilation[i]).saturating_add(1);
            let padded = spec.padding[i].saturating_mul(2).saturating_add(size);
            call.bad_shape(format!(
                "kernel larger than padded input at spatial dimension {i}: kernel {kernel:?} reaches over {reach}, \
                 input {image:?} with padding {} has {padded}",
                spec.padding[i]
            ))
            .help("smaller kernel or dilation, more padding, or a larger input")
        })?;
    }
    Ok(counts)
}

/// Batch, channels and spatial sizes as a shape.
#[track_caller]
fn image_shape(first: usize, second: usize, sizes: &[usize]) -> Result<Shape> {
    let mut dims = [0; MAX_DIMS];
    dims[0] = first;
    dims[1] = second;
    dims[2..2 + sizes.len()].copy_from_slice(sizes);
    Shape::new(&dims[..2 + sizes.len()])
}

#[track_caller]
pub(super) fn forward(call: &Call, spec: &ConvolutionSpec) -> Result<Outputs> {
    let biased = call.inputs.len() == 3;
    call.operands(if biased { 3 } else { 2 })?;
    let spatial = check_spec(call, spec)?;
    check_rank(call, 0, "input", spatial)?;
    check_rank(call, 1, "weight", spatial)?;
    let (x, weight) = (&call.inputs[0].shape, &call.inputs[1].shape);
    let groups = spec.groups;
    if weight[1].checked_mul(groups) != Some(x[1]) {
        return Err(call
            .bad_shape(format!(
                "input {x} has {} channels, weight {weight} with groups {groups} expects {}",
                x[1],
                weight[1].saturating_mul(groups)
            ))
            .help("sizes are [N, C, spatial…] and [out, C/groups, kernel…]"));
    }
    check_groups(call, "output", weight[0], groups)?;
    let dtype = check_dtypes(call, ["input", "weight"])?;
    if biased {
        call.dtype(2, "bias", dtype)?;
        call.shape(2, "bias", &[weight[0]])?;
    }
    let counts = window_counts(call, spec, &x.dims()[2..], &weight.dims()[2..])?;
    output(dtype, image_shape(x[0], weight[0], &counts[..spatial])?)
}

/// Checks that the output's sizes are windows of an image by a kernel. A transposed convolution with output
/// padding may leave out windows at the end.
#[track_caller]
fn check_windows(
    call: &Call,
    spec: &ConvolutionSpec,
    image: &[usize],
    kernel: &[usize],
    got: &Shape,
) -> Result<()> {
    let counts = window_counts(call, spec, image, kernel)?;
    let fits = got.dims()[2..]
        .iter()
        .zip(counts)
        .all(|(&n, most)| n <= most);
    if !fits {
        return Err(call.bad_shape(format!(
            "{got} has more windows than {:?}, for image {image:?} and kernel {kernel:?}",
            &counts[..kernel.len()]
        )));
    }
    Ok(())
}

#[track_caller]
pub(super) fn input_grad(call: &Call, spec: &ConvolutionSpec) -> Result<Outputs> {
    call.operands(2)?;
    let spatial = check_spec(call, spec)?;
    check_rank(call, 0, "gradient", spatial)?;
    check_rank(call, 1, "weight", spatial)?;
    let (dy, weight) = (&call.inputs[0].shape, &call.inputs[1].shape);
    if dy[1] != weight[0] {
        return Err(call.bad_shape(format!(
            "gradient {dy} has {} channels, weight {weight} expects {}",
            dy[1], weight[0]
        )));
    }
    check_groups(call, "gradient", weight[0], spec.groups)?;
    let dtype = check_dtypes(call, ["gradient", "weight"])?;
    let sizes = &spec.sizes[..spatial];
    check_windows(call, spec, sizes, &weight.dims()[2..], dy)?;
    let channels = weight[1]
        .checked_mul(spec.groups)
        .ok_or_else(|| call.argument(format!("groups {} for weight {weight}", spec.groups)))?;
    output(dtype, image_shape(dy[0], channels, sizes)?)
}

#[track_caller]
pub(super) fn weight_grad(call: &Call, spec: &ConvolutionSpec) -> Result<Outputs> {
    call.operands(2)?;
    let spatial = check_spec(call, spec)?;
    check_rank(call, 0, "gradient", spatial)?;
    check_rank(call, 1, "input", spatial)?;
    let (dy, x) = (&call.inputs[0].shape, &call.inputs[1].shape);
    if dy[0] != x[0] {
        return Err(call.bad_shape(format!(
            "batch sizes {} and {} differ, gradient {dy} input {x}",
            dy[0], x[0]
        )));
    }
    check_groups(call, "gradient", dy[1], spec.groups)?;
    check_groups(call, "input", x[1], spec.groups)?;
    let dtype = check_dtypes(call, ["gradient", "input"])?;
    let kernel = &spec.sizes[..spatial];
    check_windows(call, spec, &x.dims()[2..], kernel, dy)?;
    output(dtype, image_shape(dy[1], x[1] / spec.groups, kernel)?)
}
