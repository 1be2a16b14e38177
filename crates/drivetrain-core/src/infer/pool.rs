//! Inference of max and average pooling and their gradients.

use super::Outputs;
use super::check::{Call, output};
use crate::backend::Meta;
use crate::{DType, MAX_DIMS, PoolSpec, Result, Shape};

/// Attributes that fit no input, and the number of spatial dimensions.
#[track_caller]
fn check_spec(call: &Call, spec: &PoolSpec) -> Result<usize> {
    let spatial = usize::from(spec.spatial);
    if !(1..=3).contains(&spatial) {
        return Err(call.argument(format!("{spatial} spatial dimensions, 1 to 3 expected")));
    }
    let positive = [
        ("kernel size", &spec.kernel),
        ("stride", &spec.stride),
        ("dilation", &spec.dilation),
    ];
    for (label, values) in positive {
        if values[..spatial].contains(&0) {
            let values = &values[..spatial];
            return Err(call.argument(format!("{label} {values:?}, must be at least 1")));
        }
    }
    for i in 0..spatial {
        if spec.padding[i] > spec.kernel[i] / 2 {
            return Err(call
                .argument(format!(
                    "padding {:?} is more than half the kernel {:?}",
                    &spec.padding[..spatial],
                    &spec.kernel[..spatial]
                ))
                .help("padding must be at most half the kernel size, or windows would see padding only"));
        }
    }
    let window = spec.kernel[..spatial]
        .iter()
        .try_fold(1usize, |all, &size| all.checked_mul(size));
    if window.is_none_or(|elements| elements > MAX_WINDOW) {
        let kernel = &spec.kernel[..spatial];
        return Err(call
            .argument(format!(
                "a kernel of {kernel:?} has more than {MAX_WINDOW} elements"
            ))
            .help("a mean or maximum over everything is adaptive pooling, or a reduction"));
    }
    Ok(spatial)
}

/// The most elements of a window. Wide padding lets windows far larger than the image fit; engines walk all of a
/// window's elements, so one of absurd size would never end.
const MAX_WINDOW: usize = 1 << 24;

/// The shape of `image` (`[N, C, spatial…]`) with its spatial sizes replaced by the number of windows.
#[track_caller]
fn pooled(call: &Call, spec: &PoolSpec, spatial: usize, image: &Shape) -> Result<Shape> {
    let mut dims = [0; MAX_DIMS];
    dims[..2].copy_from_slice(&image.dims()[..2]);
    for i in 0..spatial {
        let size = image[2 + i];
        dims[2 + i] = spec.output_size(i, size).filter(|_| size > 0).ok_or_else(|| {
            let reach = (spec.kernel[i] - 1).saturating_mul(spec.dilation[i]).saturating_add(1);
            call.bad_shape(format!(
                "window does not fit at spatial dimension {i}: kernel {} reaches over {reach}, size {size} of {image} \
                 with padding {} has {}",
                spec.kernel[i],
                spec.padding[i],
                spec.padding[i].saturating_mul(2).saturating_add(size)
            ))
            .help("smaller kernel or dilation, or a larger input")
        })?;
    }
    Shape::new(&dims[..2 + spatial])
}

/// Checks the image's rank and gives the pooled shape.
#[track_caller]
fn forward(call: &Call, spec: &PoolSpec) -> Result<Shape> {
    call.operands(1)?;
    let spatial = check_spec(call, spec)?;
    let x = &call.inputs[0].shape;
    if x.rank() != spatial + 2 {
        return Err(call.bad_shape(format!(
            "input {x} has rank {}, {} expected",
            x.rank(),
            spatial + 2
        )));
    }
    pooled(call, spec, spatial, x)
}

/// The shape of the image that a gradient belongs to.
#[track_caller]
fn image(call: &Call, spec: &PoolSpec) -> Result<Shape> {
    let spatial = check_spec(call, spec)?;
    let dy = &call.inputs[0].shape;
    if dy.rank() != spatial + 2 {
        return Err(call.bad_shape(format!(
            "gradient {dy} has rank {}, {} expected",
            dy.rank(),
            spatial + 2
        )));
    }
    let mut dims = [0; MAX_DIMS];
    dims[..2].copy_from_slice(&dy.dims()[..2]);
    dims[2..2 + spatial].copy_from_slice(&spec.sizes[..spatial]);
    let image = Shape::new(&dims[..2 + spatial])?;
    let wanted = pooled(call, spec, spatial, &image)?;
    if *dy != wanted {
        return Err(call.bad_shape(format!(
            "gradient {dy} for input {image}, {wanted} expected"
        )));
    }
    Ok(image)
}

/// Every window has a tap in the image: with a dilation above the size one may step over it.
#[track_caller]
fn check_taps(call: &Call, spec: &PoolSpec, image: &Shape) -> Result<()> {
    for i in 0..image.rank() - 2 {
        let (size, dilation) = (image[2 + i], spec.dilation[i]);
        if dilation <= size {
            continue;
        }
        // Only windows that begin in the padding can; inference has bounded it by half the kernel.
        for before in (1..=spec.padding[i]).rev().step_by(spec.stride[i]) {
            let first = before.next_multiple_of(dilation) - before;
            if first >= size {
                return Err(call.bad_shape(format!(
                    "window does not fit at spatial dimension {i}: with dilation {dilation} and padding {} one steps \
                     over all of size {size} of {image}",
                    spec.padding[i]
                )));
            }
        }
    }
    Ok(())
}

#[track_caller]
pub(super) fn max(call: &Call, spec: &PoolSpec) -> Result<Outputs> {
    let shape = forward(call, spec)?;
    check_taps(call, spec, &call.inputs[0].shape)?;
    let dtype = call.inputs[0].dtype;
    if dtype == DType::Bool {
        return Err(call
            .bad_dtype("does not take Bool".into())
            .help("cast to U8"));
    }
    Ok(Outputs::of(&[
        Meta::new(dtype, shape),
        Meta::new(DType::I64, shape),
    ]))
}

#[track_caller]
pub(super) fn max_grad(call: &Call, spec: &PoolSpec) -> Result<Outputs> {
    call.operands(2)?;
    let dtype = call.float(0, "gradient")?;
    let image = image(call, spec)?;
    call.meta(1, "indices", &Meta::new(DType::I64, call.inputs[0].shape))?;
    output(dtype, image)
}

/// Averages have no dilation, as in PyTorch.
#[track_caller]
fn check_dilation(call: &Call, spec: &PoolSpec) -> Result<()> {
    if spec.dilation != [1; 3] {
        return Err(call.argument(format!(
            "dilation {:?}, average pooling has none",
            spec.dilation
        )));
    }
    Ok(())
}

#[track_caller]
pub(super) fn avg(call: &Call, spec: &PoolSpec) -> Result<Outputs> {
    let shape = forward(call, spec)?;
    check_dilation(call, spec)?;
    output(call.float(0, "input")?, shape)
}

#[track_caller]
pub(super) fn avg_grad(call: &Call, spec: &PoolSpec) -> Result<Outputs> {
    call.operands(1)?;
    check_dilation(call, spec)?;
    output(call.float(0, "gradient")?, image(call, spec)?)
}
