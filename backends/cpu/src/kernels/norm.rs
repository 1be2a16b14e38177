//! `LayerNorm`, `RmsNorm` and their gradients: rows of trailing dimensions, statistics in two passes.

use super::vector::{Real, dense, for_float, rows_of, sum1, sum2, vectorised, write};
use crate::element::Stored;
use crate::parallel::{self, Shared};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{NormSpec, Operand, Result};

/// Elements a thread takes at once.
const WORK: usize = 16_384;

/// Partial sums of parameter gradients at most; how rows are shared among them depends on their number only.
const PARTS: usize = 32;

/// Elements of a row.
fn width(x: &Operand, spec: &NormSpec) -> usize {
    let dims = x.layout.dims();
    dims[dims.len() - usize::from(spec.dims)..].iter().product()
}

/// y, mean and rstd; without mean and bias for RMS norm.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn forward(
    spec: &NormSpec,
    centred: bool,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let name = if centred { "layer_norm" } else { "rms_norm" };
    let dtype = inputs[0].dtype;
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dtype, forward_typed(spec, centred, inputs, outputs)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn forward_typed<T: Stored<C>, C: Real>(
    spec: &NormSpec,
    centred: bool,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let width = width(&inputs[0], spec);
    // SAFETY: as the caller promises.
    let x = unsafe { dense::<T, C>(&inputs[0]) };
    // SAFETY: as the caller promises.
    let parameter = |i: usize| inputs.get(i).map(|p| unsafe { dense::<T, C>(p) });
    let (weight, bias) = (parameter(1), parameter(2));
    let (weight, bias) = (weight.as_deref(), bias.as_deref());
    let eps = spec.eps;
    // SAFETY: as the caller promises; statistics are stored as the type computed with.
    unsafe {
        let rstd = crate::view::slice_mut::<C>(&outputs[outputs.len() - 1]);
        let rstd = Shared(rstd.as_mut_ptr());
        let mean = centred.then(|| Shared(crate::view::slice_mut::<C>(&outputs[1]).as_mut_ptr()));
        write::<T, C, _>(&outputs[0], |y| {
            parallel::chunks(y, rows_of(WORK, width) * width, &|start, y| {
                let x = &x[start..][..y.len()];
                let (first, count) = (start / width, y.len() / width);
                // SAFETY: chunks have rows of their own, with a statistic each.
                let part =
                    |all: Shared<C>| std::slice::from_raw_parts_mut(all.get().add(first), count);
                let mut none = [];
                let mean = mean.map_or(&mut none[..], |mean| part(mean));
                normalise(x, y, width, eps, weight, bias, mean, part(rstd));
            });
        });
    }
    Ok(())
}

vectorised! {
    /// Rows normalised; `mean` is empty for RMS norm.
    fn normalise<C: Real>(
        x: &[C],
        y: &mut [C],
        width: usize,
        eps: f64,
        weight: Option<&[C]>,
        bias: Option<&[C]>,
        mean: &mut [C],
        rstd: &mut [C],
    ) {
        let count = width as f64;
        for (row, (x, y)) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).enumerate() {
            let mut centre = C::ZERO;
            if let Some(mean) = mean.get_mut(row) {
                centre = C::from_f64(sum1(x, |x| x) / count);
                *mean = centre;
            }
            let variance = sum1(x, |x| (x - centre) * (x - centre)) / count;
            let scale = C::from_f64(1.0 / (variance + eps).sqrt());
            rstd[row] = scale;
            match (weight, bias) {
                (Some(weight), Some(bias)) => {
                    for i in 0..width {
                        y[i] = (x[i] - centre) * scale * weight[i] + bias[i];
                    }
                }
                (Some(weight), None) => {
                    for i in 0..width {
                        y[i] = (x[i] - centre) * scale * weight[i];
                    }
                }
                _ => {
                    for i in 0..width {
                        y[i] = (x[i] - centre) * scale;
                    }
                }
            }
        }
    }
}

/// Of dy, x, (mean,) rstd, (weight): dx, (dweight, (dbias)).
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn gradient(
    spec: &NormSpec,
    centred: bool,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let name = if centred {
        "layer_norm_backward"
    } else {
        "rms_norm_backward"
    };
    let dtype = inputs[0].dtype;
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dtype, gradient_typed(spec, centred, inputs, outputs)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn gradient_typed<T: Stored<C>, C: Real>(
    spec: &NormSpec,
    centred: bool,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let width = width(&inputs[0], spec);
    let next = 2 + usize::from(centred);
    // SAFETY: as the caller promises.
    let (dy, x) = unsafe { (dense::<T, C>(&inputs[0]), dense::<T, C>(&inputs[1])) };
    // SAFETY: as the caller promises; statistics are stored as the type computed with.
    let (mean, rstd) = unsafe { (dense::<C, C>(&inputs[2]), dense::<C, C>(&inputs[next])) };
    // SAFETY: as the caller promises.
    let weight = inputs.get(next + 1).map(|w| unsafe { dense::<T, C>(w) });
    let weight = weight.as_deref();
    let rows = x.len() / width;
    // Each part of the rows has sums of its own for the parameters.
    let piece = rows.div_ceil(PARTS).max(rows_of(WORK, width));
    let parts = rows.div_ceil(piece);
    let mut sums = vec![
        C::ZERO;
        if weight.is_some() {
            parts * 2 * width
        } else {
            0
        }
    ];
    let shared = Shared(sums.as_mut_ptr());
    let summed = sums.len() / parts.max(1);
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(&outputs[0], |dx| {
            let dx = Shared(dx.as_mut_ptr());
            parallel_for(rows, piece, &|range| {
                let (first, length) = (range.start * width, range.len() * width);
                // SAFETY: parts have rows and sums of their own.
                let dx = std::slice::from_raw_parts_mut(dx.get().add(first), length);
                // SAFETY: as above.
                let sums = std::slice::from_raw_parts_mut(
                    shared.get().add(range.start / piece * summed),
                    summed,
                );
                let (dy, x) = (&dy[first..][..length], &x[first..][..length]);
                let mean = if centred { &mean[range.clone()] } else { &[] };
                denormalise(dy, x, dx, width, weight, mean, &rstd[range], sums);
            });
        });
    }
    for (i, out) in outputs[1..].iter().enumerate() {
        let total = |at: usize| {
            let parts = (0..parts).map(|p| sums[(2 * p + i) * width + at].to_f64());
            C::from_f64(parts.sum::<f64>())
        };
        // SAFETY: as the caller promises.
        unsafe {
            write::<T, C, _>(out, |out| {
                out.iter_mut()
                    .enumerate()
                    .for_each(|(at, slot)| *slot = total(at));
            });
        }
    }
    Ok(())
}

vectorised! {
    /// dx of rows, and dy·x̂ and dy added to the two halves of `sums` where there are any.
    fn denormalise<C: Real>(
        dy: &[C],
        x: &[C],
        dx: &mut [C],
        width: usize,
        weight: Option<&[C]>,
        mean: &[C],
        rstd: &[C],
        sums: &mut [C],
    ) {
        let count = width as f64;
        for (row, &scale) in rstd.iter().enumerate() {
            let range = row * width..(row + 1) * width;
            let (dy, x, dx) = (&dy[range.clone()], &x[range.clone()], &mut dx[range]);
            let centre = mean.get(row).copied().unwrap_or(C::ZERO);
            // g, the gradient of x̂, goes to dx for now.
            match weight {
                Some(weight) => {
                    let (weight_sums, bias_sums) = sums.split_at_mut(width);
                    for i in 0..width {
                        weight_sums[i] += dy[i] * ((x[i] - centre) * scale);
                        bias_sums[i] += dy[i];
                        dx[i] = dy[i] * weight[i];
                    }
                }
                None => dx.copy_from_slice(dy),
            }
            let slope = sum2(dx, x, |g, x| g * ((x - centre) * scale)) / count;
            let level = if mean.is_empty() { 0.0 } else { sum1(dx, |g| g) / count };
            let (slope, level) = (C::from_f64(slope), C::from_f64(level));
            for i in 0..width {
                let normal = (x[i] - centre) * scale;
                dx[i] = (dx[i] - normal * slope - level) * scale;
            }
        }
    }
}
