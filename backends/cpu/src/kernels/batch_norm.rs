//! `BatchNorm` in training mode and its gradient: channels of `[N, C, …]`, statistics in two passes.

use super::vector::{Real, dense, for_float, sum1, sum2, vectorised, write};
use crate::element::Stored;
use crate::parallel::{self, Shared};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{Operand, Result};

/// Elements of a channel's plane from which a channel is worked on alone; below, rows of several channels are
/// summed side by side.
const PLANE: usize = 32;

/// Elements side by side.
const ROW: usize = 256;

/// Elements a thread takes at once.
const WORK: usize = 16_384;

/// Sizes of `[N, C, …]`.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    channels: usize,
    plane: usize,
}

impl Sizes {
    fn of(x: &Operand) -> Sizes {
        let dims = x.layout.dims();
        Sizes {
            batch: dims[0],
            channels: dims[1],
            plane: dims[2..].iter().product(),
        }
    }

    fn count(self) -> f64 {
        (self.batch * self.plane) as f64
    }

    /// Channels that are summed together.
    fn together(self) -> usize {
        match self.plane >= PLANE {
            true => 1,
            false => ROW / self.plane,
        }
    }
}

/// For each channel the sum of `f(x, y, m)` over its elements, with `m` a number of the channel.
fn channel_sums<C: Real>(sizes: Sizes, x: &[C], y: &[C], m: &[f64], kind: Sum) -> Vec<f64> {
    let mut sums = vec![0.0; sizes.channels];
    let together = sizes.together();
    parallel::chunks(&mut sums, together, &|first, sums| {
        let at = |n: usize| (n * sizes.channels + first) * sizes.plane;
        let width = sums.len() * sizes.plane;
        if sizes.plane >= PLANE {
            let centre = C::from_f64(m[first]);
            for n in 0..sizes.batch {
                let range = at(n)..at(n) + width;
                sums[0] += plane_sum(&x[range.clone()], &y[range], centre, kind);
            }
            return;
        }
        let mut row = [C::ZERO; ROW];
        let mut centres = [C::ZERO; ROW];
        for (i, centre) in centres[..width].iter_mut().enumerate() {
            *centre = C::from_f64(m[first + i / sizes.plane]);
        }
        // Blocks of the batch are joined in F64.
        for block in (0..sizes.batch).step_by(256) {
            row[..width].fill(C::ZERO);
            for n in block..sizes.batch.min(block + 256) {
                let range = at(n)..at(n) + width;
                let (x, y) = (&x[range.clone()], &y[range]);
                row_sum(x, y, &centres[..width], &mut row[..width], kind);
            }
            for (i, &value) in row[..width].iter().enumerate() {
                sums[i / sizes.plane] += value.to_f64();
            }
        }
    });
    sums
}

/// What is summed of x, y and a centre.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    /// x.
    Plain,
    /// (x - centre)².
    Squares,
    /// y·(x - centre).
    Products,
}

#[inline(always)]
fn term<C: Real>(x: C, y: C, centre: C, kind: Sum) -> C {
    match kind {
        Sum::Plain => x,
        Sum::Squares => (x - centre) * (x - centre),
        Sum::Products => y * (x - centre),
    }
}

vectorised! {
    fn plane_sum<C: Real>(x: &[C], y: &[C], centre: C, kind: Sum) -> f64 {
        match kind {
            Sum::Plain => sum1(x, |x| x),
            Sum::Squares => sum1(x, |x| term(x, x, centre, Sum::Squares)),
            Sum::Products => sum2(x, y, |x, y| term(x, y, centre, Sum::Products)),
        }
    }
}

vectorised! {
    fn row_sum<C: Real>(x: &[C], y: &[C], centres: &[C], row: &mut [C], kind: Sum) {
        for i in 0..row.len() {
            row[i] += term(x[i], y[i], centres[i], kind);
        }
    }
}

/// `out = a·x + b·y + c` with numbers of the channel.
fn channel_map<C: Real>(sizes: Sizes, x: &[C], y: &[C], abc: &[[C; 3]], out: &mut [C]) {
    let out = Shared(out.as_mut_ptr());
    let planes = sizes.batch * sizes.channels;
    parallel_for(planes, (WORK / sizes.plane).max(1), &|range| {
        let elements = range.start * sizes.plane..range.end * sizes.plane;
        // SAFETY: planes are disjoint, and there are as many in the output.
        let out = unsafe {
            std::slice::from_raw_parts_mut(out.get().add(elements.start), elements.len())
        };
        let (x, y) = (&x[elements.clone()], &y[elements]);
        map_planes(x, y, abc, range.start % sizes.channels, sizes.plane, out);
    });
}

vectorised! {
    fn map_planes<C: Real>(x: &[C], y: &[C], abc: &[[C; 3]], first: usize, plane: usize, out: &mut [C]) {
        let channels = abc.iter().cycle().skip(first);
        let planes = x.chunks_exact(plane).zip(y.chunks_exact(plane));
        for (((x, y), out), &[a, b, c]) in planes.zip(out.chunks_exact_mut(plane)).zip(channels) {
            for i in 0..plane {
                out[i] = a * x[i] + b * y[i] + c;
            }
        }
    }
}

vectorised! {
    /// `out = (x - centre)·scale + shift` with numbers of the channel.
    fn normalise_planes<C: Real>(x: &[C], numbers: &[[C; 3]], first: usize, plane: usize, out: &mut [C]) {
        let channels = numbers.iter().cycle().skip(first);
        let planes = x.chunks_exact(plane).zip(out.chunks_exact_mut(plane));
        for ((x, out), &[centre, scale, shift]) in planes.zip(channels) {
            for i in 0..plane {
                out[i] = (x[i] - centre) * scale + shift;
            }
        }
    }
}

/// Of x, (weight, bias): y, mean and variance.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn forward(eps: f64, inputs: &[Operand], outputs: &[Operand]) -> Result<()> {
    let dtype = inputs[0].dtype;
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!("batch_norm", dtype, forward_typed(eps, inputs, outputs)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn forward_typed<T: Stored<C>, C: Real>(
    eps: f64,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let sizes = Sizes::of(&inputs[0]);
    // SAFETY: as the caller promises.
    let x = unsafe { dense::<T, C>(&inputs[0]) };
    // SAFETY: as the caller promises.
    let parameter = |i: usize| inputs.get(i).map(|p| unsafe { dense::<T, C>(p) });
    let (weight, bias) = (parameter(1), parameter(2));
    let zeros = vec![0.0; sizes.channels];
    let mut mean = channel_sums(sizes, &x, &x, &zeros, Sum::Plain);
    mean.iter_mut().for_each(|m| *m /= sizes.count());
    let mut variance = channel_sums(sizes, &x, &x, &mean, Sum::Squares);
    variance.iter_mut().for_each(|v| *v /= sizes.count());
    let numbers: Vec<[C; 3]> = (0..sizes.channels)
        .map(|c| {
            let rstd = 1.0 / (variance[c] + eps).sqrt();
            let scale = weight.as_ref().map_or(1.0, |w| w[c].to_f64()) * rstd;
            let shift = bias.as_ref().map_or(C::ZERO, |b| b[c]);
            [C::from_f64(mean[c]), C::from_f64(scale), shift]
        })
        .collect();
    // SAFETY: as the caller promises; statistics are stored as the type computed with.
    unsafe {
        write::<T, C, _>(&outputs[0], |y| {
            let piece = (WORK / sizes.plane).max(1) * sizes.plane;
            parallel::chunks(y, piece, &|start, y| {
                let first = start / sizes.plane % sizes.channels;
                normalise_planes(&x[start..][..y.len()], &numbers, first, sizes.plane, y);
            });
        });
        for (out, values) in outputs[1..].iter().zip([mean, variance]) {
            let out = crate::view::slice_mut::<C>(out);
            out.iter_mut()
                .zip(values)
                .for_each(|(slot, value)| *slot = C::from_f64(value));
        }
    }
    Ok(())
}

/// Of dy, x, mean, variance, (weight): dx, (dweight, dbias).
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn gradient(eps: f64, inputs: &[Operand], outputs: &[Operand]) -> Result<()> {
    let dtype = inputs[0].dtype;
    let name = "batch_norm_backward";
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dtype, gradient_typed(eps, inputs, outputs)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn gradient_typed<T: Stored<C>, C: Real>(
    eps: f64,
    inputs: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let sizes = Sizes::of(&inputs[0]);
    // SAFETY: as the caller promises; statistics are stored as the type computed with.
    let (dy, x, mean, variance) = unsafe {
        (
            dense::<T, C>(&inputs[0]),
            dense::<T, C>(&inputs[1]),
            dense::<C, C>(&inputs[2]),
            dense::<C, C>(&inputs[3]),
        )
    };
    // SAFETY: as the caller promises.
    let weight = inputs.get(4).map(|w| unsafe { dense::<T, C>(w) });
    let centres: Vec<f64> = mean.iter().map(|m| m.to_f64()).collect();
    let totals = channel_sums(sizes, &dy, &dy, &centres, Sum::Plain);
    let products = channel_sums(sizes, &x, &dy, &centres, Sum::Products);
    let rstd = |c: usize| 1.0 / (variance[c].to_f64() + eps).sqrt();
    // dx = s·(dy - mean(dy) - (x - m)·r²·mean(dy·(x - m))) with s = weight·r.
    let numbers: Vec<[C; 3]> = (0..sizes.channels)
        .map(|c| {
            let scale = weight.as_ref().map_or(1.0, |w| w[c].to_f64()) * rstd(c);
            let slope = -scale * rstd(c) * rstd(c) * products[c] / sizes.count();
            let level = -scale * totals[c] / sizes.count() - slope * centres[c];
            [scale, slope, level].map(C::from_f64)
        })
        .collect();
    let sums = [
        (0..sizes.channels).map(|c| products[c] * rstd(c)).collect(),
        totals.clone(),
    ];
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(&outputs[0], |dx| channel_map(sizes, &dy, &x, &numbers, dx));
        for (out, values) in outputs[1..].iter().zip::<[Vec<f64>; 2]>(sums) {
            write::<T, C, _>(out, |out| {
                out.iter_mut()
                    .zip(values)
                    .for_each(|(slot, value)| *slot = C::from_f64(value));
            });
        }
    }
    Ok(())
}
