//! `Convolution` and its two gradients: panels of windows, a few output rows at a time, in a matrix product. The
//! windows of a whole batch never lie in memory, and work is cut by sizes only.

use super::convolution_panel::{Geometry, Rows, add_plane, gather_windows, scatter_windows};
use super::matmul::product;
use super::vector::{Matrix, Real, dense, for_float, with_scratch, write};
use crate::element::Stored;
use crate::parallel::{self, Shared};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{ConvolutionSpec, Operand, Result};

/// Elements of a panel, about: it stays in the second cache.
const PANEL: usize = 65_536;

/// Multiplications that a thread takes at once, at least.
const WORK: usize = 1 << 18;

/// Pieces of work wanted, so that many threads have some.
const PIECES: usize = 16;

/// Elements that partial sums of a weight gradient may take.
const PARTIAL: usize = 1 << 22;

/// How many output rows a panel of `depth` rows of its own takes.
fn rows_per_panel(geometry: &Geometry, depth: usize) -> usize {
    (PANEL / (depth * geometry.out[2])).clamp(1, geometry.rows())
}

/// Calls `body` with each tile of output rows.
fn each_tile(geometry: &Geometry, depth: usize, mut body: impl FnMut(Rows)) {
    let count = rows_per_panel(geometry, depth);
    for first in (0..geometry.rows()).step_by(count) {
        let count = count.min(geometry.rows() - first);
        body(Rows { first, count });
    }
}

/// x, weight, (bias) to y.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn forward(
    spec: &ConvolutionSpec,
    x: &Operand,
    weight: &Operand,
    bias: Option<&Operand>,
    out: &Operand,
) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        for_float!(
            "convolution",
            x.dtype,
            forward_typed(spec, x, weight, bias, out)
        )
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn forward_typed<T: Stored<C>, C: Real>(
    spec: &ConvolutionSpec,
    x: &Operand,
    weight: &Operand,
    bias: Option<&Operand>,
    out: &Operand,
) -> Result<()> {
    let kernel = &weight.layout.dims()[2..];
    let g = Geometry::new(spec, x.layout.dims(), out.layout.dims(), kernel);
    // SAFETY: as the caller promises.
    let (x, weight) = unsafe { (dense::<T, C>(x), dense::<T, C>(weight)) };
    // SAFETY: as the caller promises.
    let bias = bias.map(|bias| unsafe { dense::<T, C>(bias) });
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |y| {
            if g.channels == 1 && g.groups > 1 && g.outs <= 4 {
                thin(&g, &x, &weight, bias.as_deref(), y);
            } else {
                dense_forward(&g, &x, &weight, bias.as_deref(), y);
            }
        });
    }
    Ok(())
}

/// Depthwise convolution: a plane of the output looks at one plane of the image.
fn thin<C: Real>(g: &Geometry, x: &[C], weight: &[C], bias: Option<&[C]>, y: &mut [C]) {
    let (plane, outs) = (g.out_plane(), g.groups * g.outs);
    let together = (WORK / (plane * g.taps())).max(1);
    parallel::chunks(y, together * plane, &|start, y| {
        for (i, y) in y.chunks_exact_mut(plane).enumerate() {
            let number = start / plane + i;
            let (n, o) = (number / outs, number % outs);
            y.fill(bias.map_or(C::ZERO, |bias| bias[o]));
            let x = &x[(n * g.groups + o / g.outs) * g.plane()..][..g.plane()];
            add_plane(g, x, &weight[o * g.taps()..][..g.taps()], y);
        }
    });
}

fn dense_forward<C: Real>(g: &Geometry, x: &[C], weight: &[C], bias: Option<&[C]>, y: &mut [C]) {
    let (depth, plane) = (g.channels * g.taps(), g.out_plane());
    let rows = rows_per_panel(g, depth);
    let tiles = g.rows().div_ceil(rows);
    let y = Shared(y.as_mut_ptr());
    let cost = g.outs * depth * rows * g.out[2];
    parallel_for(g.batch * g.groups * tiles, (WORK / cost).max(1), &|range| {
        with_scratch::<C, _>(depth * rows * g.out[2], |panel| {
            for number in range {
                let (image, tile) = (number / tiles, number % tiles);
                let first = tile * rows;
                let rows = Rows {
                    first,
                    count: rows.min(g.rows() - first),
                };
                let columns = rows.count * g.out[2];
                let x = &x[image * g.channels * g.plane()..][..g.channels * g.plane()];
                let windows = if g.is_pointwise() {
                    Matrix::of(x, plane).from(0, first * g.out[2])
                } else {
                    let panel = &mut panel[..depth * columns];
                    gather_windows(g, x, rows, panel);
                    Matrix::of(panel, columns)
                };
                let group = image % g.groups;
                let weight = Matrix::of(&weight[group * g.outs * depth..], depth);
                let start = image * g.outs * plane + first * g.out[2];
                let out = Matrix {
                    first: y.get().wrapping_add(start),
                    row: plane as isize,
                    column: 1,
                };
                // SAFETY: this tile's rows of the planes of this image and group, which no other piece has.
                unsafe {
                    product([g.outs, columns, depth], weight, windows, out, None);
                    if let Some(bias) = bias {
                        for (o, &bias) in bias[group * g.outs..][..g.outs].iter().enumerate() {
                            let row = std::slice::from_raw_parts_mut(out.from(o, 0).first, columns);
                            row.iter_mut().for_each(|y| *y += bias);
                        }
                    }
                }
            }
        });
    });
}

/// dy and weight to dx.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn input_gradient(
    spec: &ConvolutionSpec,
    dy: &Operand,
    weight: &Operand,
    out: &Operand,
) -> Result<()> {
    let name = "conv_input_backward";
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dy.dtype, input_typed(spec, dy, weight, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn input_typed<T: Stored<C>, C: Real>(
    spec: &ConvolutionSpec,
    dy: &Operand,
    weight: &Operand,
    out: &Operand,
) -> Result<()> {
    let kernel = &weight.layout.dims()[2..];
    let g = Geometry::new(spec, out.layout.dims(), dy.layout.dims(), kernel);
    // SAFETY: as the caller promises.
    let (dy, weight) = unsafe { (dense::<T, C>(dy), dense::<T, C>(weight)) };
    // SAFETY: as the caller promises.
    unsafe { write::<T, C, _>(out, |dx| spread_back(&g, &dy, &weight, dx)) };
    Ok(())
}

/// Channels that a piece takes: all, or fewer where images and groups are few.
fn channel_block(g: &Geometry, others: usize) -> usize {
    if others >= PIECES {
        return g.channels;
    }
    // Products of at least this many rows pay for reading the other matrix again.
    256usize.div_ceil(g.taps()).min(g.channels)
}

fn spread_back<C: Real>(g: &Geometry, dy: &[C], weight: &[C], dx: &mut [C]) {
    let block = channel_block(g, g.batch * g.groups);
    let blocks = g.channels.div_ceil(block);
    let (depth, plane) = (g.channels * g.taps(), g.out_plane());
    let cost = g.outs * block * g.taps() * plane;
    let dx = Shared(dx.as_mut_ptr());
    parallel_for(
        g.batch * g.groups * blocks,
        (WORK / cost).max(1),
        &|range| {
            let panel_rows = block * g.taps();
            let size = panel_rows * rows_per_panel(g, panel_rows) * g.out[2];
            with_scratch::<C, _>(size, |panel| {
                for number in range {
                    let (image, from) = (number / blocks, number % blocks * block);
                    let channels = block.min(g.channels - from);
                    let start = (image * g.channels + from) * g.plane();
                    // SAFETY: the planes of these channels, which no other piece has.
                    let dx = unsafe {
                        std::slice::from_raw_parts_mut(dx.get().add(start), channels * g.plane())
                    };
                    dx.fill(C::ZERO);
                    let group = image % g.groups;
                    let weight = &weight[group * g.outs * depth + from * g.taps()..];
                    let weight = Matrix::of(weight, depth).transposed();
                    let dy = Matrix::of(&dy[image * g.outs * plane..][..g.outs * plane], plane);
                    each_tile(g, panel_rows, |rows| {
                        let columns = rows.count * g.out[2];
                        let height = channels * g.taps();
                        let panel = &mut panel[..height * columns];
                        let out = Matrix {
                            first: panel.as_mut_ptr(),
                            row: columns as isize,
                            column: 1,
                        };
                        let dy = dy.from(0, rows.first * g.out[2]);
                        // SAFETY: the panel has these sizes, as have the parts of weight and dy.
                        unsafe { product([height, columns, g.outs], weight, dy, out, None) };
                        scatter_windows(g, panel, rows, dx);
                    });
                }
            });
        },
    );
}

/// dy and x to dweight.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn weight_gradient(
    spec: &ConvolutionSpec,
    dy: &Operand,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    let name = "conv_weight_backward";
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dy.dtype, weight_typed(spec, dy, x, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn weight_typed<T: Stored<C>, C: Real>(
    spec: &ConvolutionSpec,
    dy: &Operand,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    let kernel = &out.layout.dims()[2..];
    let g = Geometry::new(spec, x.layout.dims(), dy.layout.dims(), kernel);
    // SAFETY: as the caller promises.
    let (dy, x) = unsafe { (dense::<T, C>(dy), dense::<T, C>(x)) };
    // SAFETY: as the caller promises.
    unsafe { write::<T, C, _>(out, |dw| correlate(&g, &dy, &x, dw)) };
    Ok(())
}

/// Images are shared among parts, each with sums of its own, which are added up in their order.
fn correlate<C: Real>(g: &Geometry, dy: &[C], x: &[C], dw: &mut [C]) {
    let block = channel_block(g, 1);
    let blocks = g.channels.div_ceil(block);
    let wanted = PIECES.div_ceil(g.groups * blocks);
    let parts = wanted.min(g.batch).min(PARTIAL / dw.len()).max(1);
    let images = g.batch.div_ceil(parts);
    let parts = g.batch.div_ceil(images);
    let mut partial = vec![C::ZERO; if parts > 1 { parts * dw.len() } else { 0 }];
    let target = if parts > 1 {
        &mut partial[..]
    } else {
        &mut *dw
    };
    let length = target.len() / parts;
    let sums = Shared(target.as_mut_ptr());
    let cost = g.outs * block * g.taps() * g.out_plane() * images;
    parallel_for(parts * g.groups * blocks, (WORK / cost).max(1), &|range| {
        for number in range {
            let (part, rest) = (number / (g.groups * blocks), number % (g.groups * blocks));
            let (group, from) = (rest / blocks, rest % blocks * block);
            let task = Task {
                images: part * images..g.batch.min((part + 1) * images),
                group,
                from,
                channels: block.min(g.channels - from),
            };
            // SAFETY: sums of this part, group and block of channels, which no other piece has.
            unsafe { task.run(g, dy, x, sums.get().wrapping_add(part * length)) };
        }
    });
    if parts > 1 {
        parallel::chunks(dw, PANEL, &|start, dw| {
            for (i, slot) in dw.iter_mut().enumerate() {
                let mut sum = C::ZERO;
                for part in 0..parts {
                    sum += partial[part * length + start + i];
                }
                *slot = sum;
            }
        });
    }
}

/// A piece of a weight gradient.
struct Task {
    images: std::ops::Range<usize>,
    group: usize,
    /// First channel within the group.
    from: usize,
    channels: usize,
}

impl Task {
    /// # Safety
    /// `sums` is a whole weight, of which nobody else touches this task's part.
    unsafe fn run<C: Real>(&self, g: &Geometry, dy: &[C], x: &[C], sums: *mut C) {
        let (height, plane) = (self.channels * g.taps(), g.out_plane());
        let depth = g.channels * g.taps();
        let sums = Matrix {
            first: sums.wrapping_add(self.group * g.outs * depth + self.from * g.taps()),
            row: depth as isize,
            column: 1,
        };
        let mut add = false;
        let size = height * rows_per_panel(g, height) * g.out[2];
        with_scratch::<C, _>(size, |panel| {
            for n in self.images.clone() {
                let image = n * g.groups + self.group;
                let x = &x[(image * g.channels + self.from) * g.plane()..];
                let x = &x[..self.channels * g.plane()];
                let dy = Matrix::of(&dy[image * g.outs * plane..][..g.outs * plane], plane);
                each_tile(g, height, |rows| {
                    let columns = rows.count * g.out[2];
                    let first = rows.first * g.out[2];
                    let windows = if g.is_pointwise() {
                        Matrix::of(x, plane).from(0, first)
                    } else {
                        let panel = &mut panel[..height * columns];
                        gather_windows(g, x, rows, panel);
                        Matrix::of(panel, columns)
                    };
                    let sizes = [g.outs, height, columns];
                    // SAFETY: parts of dy, panel and weight of these sizes.
                    unsafe { C::gemm(sizes, dy.from(0, first), windows.transposed(), sums, add) };
                    add = true;
                });
            }
        });
    }
}
