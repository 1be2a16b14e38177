//! `Softmax` and its gradient along any dimension, the largest element subtracted first.

use super::vector::{
    Real, dense, for_float, largest, rows_of, sum1, sum2, vectorised, with_scratch, write,
};
use crate::element::Stored;
use crate::parallel;
use drivetrain_core::{Operand, Result};

/// Elements a thread takes at once.
const WORK: usize = 16_384;

/// Columns of a strided softmax that are worked on together.
const COLUMNS: usize = 64;

/// A tensor seen as `[outer, size, inner]` around a dimension.
#[derive(Clone, Copy)]
struct Around {
    size: usize,
    inner: usize,
}

impl Around {
    fn of(x: &Operand, dim: usize) -> Around {
        let dims = x.layout.dims();
        Around {
            size: dims[dim],
            inner: dims[dim + 1..].iter().product(),
        }
    }

    /// Elements of a slab `[size, inner]`.
    fn slab(self) -> usize {
        self.size * self.inner
    }
}

/// y of x.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn forward(dim: usize, log: bool, x: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!("softmax", x.dtype, forward_typed(dim, log, x, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn forward_typed<T: Stored<C>, C: Real>(
    dim: usize,
    log: bool,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    let around = Around::of(x, dim);
    // SAFETY: as the caller promises.
    let x = unsafe { dense::<T, C>(x) };
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |y| {
            let piece = rows_of(WORK, around.slab()) * around.slab();
            parallel::chunks(y, piece, &|start, y| {
                let x = &x[start..][..y.len()];
                match around.inner {
                    1 => rows(x, y, around.size, log),
                    _ => columns(x, y, around, log),
                }
            });
        });
    }
    Ok(())
}

vectorised! {
    /// Softmax of each row of `size`.
    fn rows<C: Real>(x: &[C], y: &mut [C], size: usize, log: bool) {
        for (x, y) in x.chunks_exact(size).zip(y.chunks_exact_mut(size)) {
            let top = largest(x);
            if log {
                let sum = sum1(x, |x| (x - top).exp());
                let rest = C::from_f64(sum).log();
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = (x - top) - rest;
                }
            } else {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = (x - top).exp();
                }
                let sum = C::from_f64(sum1(y, |y| y));
                for y in y.iter_mut() {
                    *y = *y / sum;
                }
            }
        }
    }
}

/// Softmax of each column of slabs `[size, inner]`, a few columns at a time.
fn columns<C: Real>(x: &[C], y: &mut [C], around: Around, log: bool) {
    with_scratch::<C, _>(2 * COLUMNS, |buffer| {
        let slabs = x
            .chunks_exact(around.slab())
            .zip(y.chunks_exact_mut(around.slab()));
        for (x, y) in slabs {
            for first in (0..around.inner).step_by(COLUMNS) {
                band(x, y, around, first, buffer, log);
            }
        }
    });
}

vectorised! {
    /// Columns `first..` of one slab.
    fn band<C: Real>(x: &[C], y: &mut [C], around: Around, first: usize, buffer: &mut [C], log: bool) {
        let width = COLUMNS.min(around.inner - first);
        let (top, sum) = buffer.split_at_mut(COLUMNS);
        let (top, sum) = (&mut top[..width], &mut sum[..width]);
        top.fill(C::LOWEST);
        sum.fill(C::ZERO);
        for x in x.chunks_exact(around.inner) {
            for (top, &x) in top.iter_mut().zip(&x[first..]) {
                *top = top.larger(x);
            }
        }
        for (x, y) in x.chunks_exact(around.inner).zip(y.chunks_exact_mut(around.inner)) {
            let (x, y) = (&x[first..][..width], &mut y[first..][..width]);
            for i in 0..width {
                let shifted = x[i] - top[i];
                let e = shifted.exp();
                y[i] = if log { shifted } else { e };
                sum[i] += e;
            }
        }
        if log {
            for sum in sum.iter_mut() {
                *sum = sum.log();
            }
        }
        for y in y.chunks_exact_mut(around.inner) {
            for (y, &sum) in y[first..].iter_mut().zip(&*sum) {
                *y = if log { *y - sum } else { *y / sum };
            }
        }
    }
}

/// dx of dy and y, the forward output.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn gradient(
    dim: usize,
    log: bool,
    dy: &Operand,
    y: &Operand,
    out: &Operand,
) -> Result<()> {
    let name = "softmax_backward";
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, y.dtype, gradient_typed(dim, log, dy, y, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn gradient_typed<T: Stored<C>, C: Real>(
    dim: usize,
    log: bool,
    dy: &Operand,
    y: &Operand,
    out: &Operand,
) -> Result<()> {
    let around = Around::of(y, dim);
    // SAFETY: as the caller promises.
    let (dy, y) = unsafe { (dense::<T, C>(dy), dense::<T, C>(y)) };
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |dx| {
            let piece = rows_of(WORK, around.slab()) * around.slab();
            parallel::chunks(dx, piece, &|start, dx| {
                let range = start..start + dx.len();
                let (dy, y) = (&dy[range.clone()], &y[range]);
                match around.inner {
                    1 => gradient_rows(dy, y, dx, around.size, log),
                    _ => gradient_columns(dy, y, dx, around, log),
                }
            });
        });
    }
    Ok(())
}

vectorised! {
    fn gradient_rows<C: Real>(dy: &[C], y: &[C], dx: &mut [C], size: usize, log: bool) {
        let rows = dy.chunks_exact(size).zip(y.chunks_exact(size));
        for ((dy, y), dx) in rows.zip(dx.chunks_exact_mut(size)) {
            if log {
                let total = C::from_f64(sum1(dy, |dy| dy));
                for i in 0..size {
                    dx[i] = dy[i] - y[i].exp() * total;
                }
            } else {
                let total = C::from_f64(sum2(dy, y, |dy, y| dy * y));
                for i in 0..size {
                    dx[i] = dy[i] * y[i] - y[i] * total;
                }
            }
        }
    }
}

/// As [`columns`].
fn gradient_columns<C: Real>(dy: &[C], y: &[C], dx: &mut [C], around: Around, log: bool) {
    let slab = around.slab();
    with_scratch::<C, _>(COLUMNS, |sum| {
        let slabs = dy.chunks_exact(slab).zip(y.chunks_exact(slab));
        for ((dy, y), dx) in slabs.zip(dx.chunks_exact_mut(slab)) {
            for first in (0..around.inner).step_by(COLUMNS) {
                gradient_band(dy, y, dx, around, first, sum, log);
            }
        }
    });
}

vectorised! {
    fn gradient_band<C: Real>(dy: &[C], y: &[C], dx: &mut [C], around: Around, first: usize, sum: &mut [C], log: bool) {
        let width = COLUMNS.min(around.inner - first);
        let sum = &mut sum[..width];
        sum.fill(C::ZERO);
        for row in (0..around.slab()).step_by(around.inner) {
            let (dy, y) = (&dy[row + first..][..width], &y[row + first..][..width]);
            for i in 0..width {
                sum[i] += if log { dy[i] } else { dy[i] * y[i] };
            }
        }
        for row in (0..around.slab()).step_by(around.inner) {
            let (dy, y) = (&dy[row + first..][..width], &y[row + first..][..width]);
            let dx = &mut dx[row + first..][..width];
            for i in 0..width {
                dx[i] = if log {
                    dy[i] - y[i].exp() * sum[i]
                } else {
                    dy[i] * y[i] - y[i] * sum[i]
                };
            }
        }
    }
}
