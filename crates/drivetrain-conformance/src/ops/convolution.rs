//! Convolutions, pooling, windows and resizing.

use super::{Answer, Call, Function, Wide};
use crate::attrs::as_integer;
use drivetrain_core::{Error, Result};
use drivetrain_tensor::{
    AvgPoolOptions, ConvOptions, ConvTransposeOptions, FoldOptions, MaxPoolOptions, PadMode, Tensor,
};
use serde_json::Value;

pub const TABLE: &[(&str, Function)] = &[
    ("conv1d", convolution::<1>),
    ("conv2d", convolution::<2>),
    ("conv3d", convolution::<3>),
    ("conv_transpose1d", |c| {
        let options = transpose_options::<1>(c)?;
        c.x()?
            .conv_transpose1d(c.input(1)?, c.optional(2), &options)
    }),
    ("conv_transpose2d", |c| {
        let options = transpose_options::<2>(c)?;
        c.x()?
            .conv_transpose2d(c.input(1)?, c.optional(2), &options)
    }),
    ("conv_transpose3d", |c| {
        let options = transpose_options::<3>(c)?;
        c.x()?
            .conv_transpose3d(c.input(1)?, c.optional(2), &options)
    }),
    ("avg_pool1d", average_pool::<1>),
    ("avg_pool2d", average_pool::<2>),
    ("avg_pool3d", average_pool::<3>),
    ("adaptive_avg_pool1d", |c| {
        c.x()?.adaptive_avg_pool1d(output_sizes::<1>(c)?[0])
    }),
    ("adaptive_avg_pool2d", |c| {
        c.x()?.adaptive_avg_pool2d(output_sizes::<2>(c)?)
    }),
    ("adaptive_avg_pool3d", |c| {
        c.x()?.adaptive_avg_pool3d(output_sizes::<3>(c)?)
    }),
    ("adaptive_max_pool1d", |c| {
        c.x()?.adaptive_max_pool1d(output_sizes::<1>(c)?[0])
    }),
    ("unfold", |c| c.x()?.unfold2d(&fold_options(c)?)),
    ("fold", |c| {
        c.x()?.fold2d(output_sizes::<2>(c)?, &fold_options(c)?)
    }),
    ("upsample_nearest1d", |c| nearest::<1>(c)),
    ("upsample_nearest2d", |c| nearest::<2>(c)),
    ("upsample_nearest3d", |c| nearest::<3>(c)),
    ("upsample_linear1d", |c| {
        match c.attrs.sizes::<1>("size")? {
            Some([size]) => c.x()?.upsample_linear1d(size, align_corners(c)?),
            None => linear_by::<1>(c),
        }
    }),
    ("upsample_bilinear2d", |c| {
        match c.attrs.sizes::<2>("size")? {
            Some(sizes) => c.x()?.upsample_bilinear2d(sizes, align_corners(c)?),
            None => linear_by::<2>(c),
        }
    }),
    ("upsample_trilinear3d", |c| {
        match c.attrs.sizes::<3>("size")? {
            Some(sizes) => c.x()?.upsample_trilinear3d(sizes, align_corners(c)?),
            None => linear_by::<3>(c),
        }
    }),
];

pub const WIDE_TABLE: &[(&str, Wide)] = &[
    ("max_pool1d", max_pool::<1>),
    ("max_pool2d", max_pool::<2>),
    ("max_pool3d", max_pool::<3>),
    ("adaptive_max_pool2d", |c| {
        let sizes = output_sizes::<2>(c)?;
        if c.attrs.flag_or("return_indices", false)? {
            let both = c.x()?.adaptive_max_pool2d_with_indices(sizes)?;
            return Ok(both.into());
        }
        Ok(c.x()?.adaptive_max_pool2d(sizes)?.into())
    }),
];

/// A convolution; `padding` may be `"valid"` or `"same"`, which pads the odd element after the input.
fn convolution<const N: usize>(call: &Call) -> Result<Tensor> {
    let (x, weight) = call.two()?;
    let attrs = call.attrs;
    let dilation = attrs.sizes_or::<N>("dilation", 1)?;
    let mut input = x.clone();
    let padding = match attrs.get("padding").and_then(Value::as_str) {
        Some("same") => {
            let mut padding = [0; N];
            let mut odd = Vec::new();
            let kernel = weight.dims().iter().rev().take(N).rev();
            for ((slot, &taps), step) in padding.iter_mut().zip(kernel).zip(dilation) {
                let total = step * taps.saturating_sub(1);
                *slot = total / 2;
                odd.push((total % 2) as isize);
            }
            if odd.contains(&1) {
                let pairs: Vec<isize> = odd.iter().rev().flat_map(|&after| [0, after]).collect();
                input = x.pad(&pairs, PadMode::Constant(0.0.into()))?;
            }
            padding
        }
        Some("valid") => [0; N],
        _ => attrs.sizes_or::<N>("padding", 0)?,
    };
    let options = ConvOptions::default()
        .stride(attrs.sizes_or::<N>("stride", 1)?)
        .padding(padding)
        .dilation(dilation)
        .groups(attrs.count_or("groups", 1)?);
    match N {
        1 => input.conv1d(weight, call.optional(2), &options),
        2 => input.conv2d(weight, call.optional(2), &options),
        _ => input.conv3d(weight, call.optional(2), &options),
    }
}

fn transpose_options<const N: usize>(call: &Call) -> Result<ConvTransposeOptions> {
    let attrs = call.attrs;
    Ok(ConvTransposeOptions::default()
        .stride(attrs.sizes_or::<N>("stride", 1)?)
        .padding(attrs.sizes_or::<N>("padding", 0)?)
        .output_padding(attrs.sizes_or::<N>("output_padding", 0)?)
        .dilation(attrs.sizes_or::<N>("dilation", 1)?)
        .groups(attrs.count_or("groups", 1)?))
}

fn max_pool<const N: usize>(call: &Call) -> Result<Answer> {
    let attrs = call.attrs;
    let kernel = kernel::<N>(call)?;
    let options = MaxPoolOptions::new(kernel)
        .stride(attrs.sizes("stride")?.unwrap_or(kernel))
        .padding(attrs.sizes_or::<N>("padding", 0)?)
        .dilation(attrs.sizes_or::<N>("dilation", 1)?)
        .ceil_mode(attrs.flag_or("ceil_mode", false)?);
    let x = call.x()?;
    if attrs.flag_or("return_indices", false)? {
        let both = match N {
            1 => x.max_pool1d_with_indices(&options),
            2 => x.max_pool2d_with_indices(&options),
            _ => x.max_pool3d_with_indices(&options),
        };
        return both.map(Answer::from);
    }
    let values = match N {
        1 => x.max_pool1d(&options),
        2 => x.max_pool2d(&options),
        _ => x.max_pool3d(&options),
    };
    values.map(Answer::from)
}

fn average_pool<const N: usize>(call: &Call) -> Result<Tensor> {
    let attrs = call.attrs;
    let kernel = kernel::<N>(call)?;
    let divisor = attrs.number("divisor_override")?;
    let ceil = attrs.flag_or("ceil_mode", false)?;
    let include = attrs.flag_or("count_include_pad", true)?;
    let options = AvgPoolOptions::new(kernel)
        .stride(attrs.sizes("stride")?.unwrap_or(kernel))
        .padding(attrs.sizes_or::<N>("padding", 0)?)
        .ceil_mode(ceil)
        .count_include_pad(include || divisor.is_some());
    let x = call.x()?;
    let mean = match N {
        1 => x.avg_pool1d(&options),
        2 => x.avg_pool2d(&options),
        _ => x.avg_pool3d(&options),
    }?;
    match divisor {
        None => Ok(mean),
        Some(_) if ceil => Err(Error::argument(
            "conformance",
            "divisor_override with ceil_mode is not known to the runner",
        )),
        Some(divisor) => mean.mul(kernel.iter().product::<usize>() as f64 / divisor),
    }
}

fn kernel<const N: usize>(call: &Call) -> Result<[usize; N]> {
    let kernel = call.attrs.sizes("kernel_size")?;
    kernel.ok_or_else(|| Error::argument("conformance", format!("{}: no kernel_size", call.op)))
}

/// `output_size`, in which null keeps the input's size.
fn output_sizes<const N: usize>(call: &Call) -> Result<[usize; N]> {
    let Some(Value::Array(list)) = call.attrs.get("output_size") else {
        let one = call.attrs.sizes("output_size")?;
        return one
            .ok_or_else(|| Error::argument("conformance", format!("{}: no output_size", call.op)));
    };
    let mut sizes = [0; N];
    for (i, slot) in sizes.iter_mut().enumerate() {
        let entry = if list.len() == 1 {
            list.first()
        } else {
            list.get(i)
        };
        *slot = match entry {
            Some(Value::Null) => call.x()?.size(i as isize - N as isize)?,
            Some(size) => as_integer(size)
                .and_then(|size| usize::try_from(size).ok())
                .ok_or_else(|| Error::argument("conformance", format!("output_size {list:?}")))?,
            None => {
                return Err(Error::argument(
                    "conformance",
                    format!("output_size {list:?} for {N} axes"),
                ));
            }
        };
    }
    Ok(sizes)
}

fn fold_options(call: &Call) -> Result<FoldOptions> {
    let attrs = call.attrs;
    Ok(FoldOptions::new(kernel::<2>(call)?)
        .dilation(attrs.sizes_or::<2>("dilation", 1)?)
        .padding(attrs.sizes_or::<2>("padding", 0)?)
        .stride(attrs.sizes_or::<2>("stride", 1)?))
}

fn nearest<const N: usize>(call: &Call) -> Result<Tensor> {
    match call.attrs.sizes::<N>("size")? {
        Some(sizes) => call.x()?.upsample_nearest(&sizes),
        None => call.x()?.upsample_nearest_by(&factors::<N>(call)?),
    }
}

fn linear_by<const N: usize>(call: &Call) -> Result<Tensor> {
    call.x()?
        .upsample_linear_by(&factors::<N>(call)?, align_corners(call)?)
}

fn align_corners(call: &Call) -> Result<bool> {
    call.attrs.flag_or("align_corners", false)
}

/// `scale_factor`, one for each axis.
fn factors<const N: usize>(call: &Call) -> Result<Vec<f64>> {
    match call.attrs.numbers("scale_factor")? {
        Some(list) if list.len() == N => Ok(list),
        Some(list) if list.len() == 1 => Ok(list.repeat(N)),
        _ => Err(Error::argument(
            "conformance",
            format!("{}: neither size nor scale_factor for {N} axes", call.op),
        )),
    }
}
