//! `MaxPool`, `AvgPool` and their gradients: planes one by one, windows tap by tap over rows of the output.

use super::math::Number;
use super::vector::{Real, dense, for_float, vectorised, write};
use crate::element::Stored;
use crate::parallel::{self, Shared};
use crate::view::{numbers, slice_mut};
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{DType, Error, Operand, PoolSpec, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements looked at that a thread takes at once.
const WORK: usize = 65_536;

/// Sizes of pooling with three spatial dimensions; absent ones come first and have size 1.
#[derive(Clone, Copy)]
struct Windows {
    image: [usize; 3],
    out: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    padding: [usize; 3],
    dilation: [usize; 3],
    count_padding: bool,
}

/// Sizes or steps of up to three dimensions, moved to the end.
fn last(values: &[usize], fill: usize) -> [usize; 3] {
    let mut all = [fill; 3];
    all[3 - values.len()..].copy_from_slice(values);
    all
}

impl Windows {
    /// Of x's and y's shapes `[N, C, spatial…]`.
    fn new(spec: &PoolSpec, x: &[usize], y: &[usize]) -> Windows {
        let spatial = usize::from(spec.spatial);
        Windows {
            image: last(&x[2..], 1),
            out: last(&y[2..], 1),
            kernel: last(&spec.kernel[..spatial], 1),
            stride: last(&spec.stride[..spatial], 1),
            padding: last(&spec.padding[..spatial], 0),
            dilation: last(&spec.dilation[..spatial], 1),
            count_padding: spec.count_include_pad,
        }
    }

    fn plane(&self) -> usize {
        self.image.iter().product()
    }

    fn out_plane(&self) -> usize {
        self.out.iter().product()
    }

    /// Planes that a thread takes at once.
    fn together(&self) -> usize {
        let work = self.out_plane() * self.kernel.iter().product::<usize>();
        (WORK / work.max(self.plane())).max(1)
    }

    #[inline(always)]
    fn at(&self, axis: usize, position: usize, tap: usize) -> Option<usize> {
        let padded = position * self.stride[axis] + tap * self.dilation[axis];
        padded
            .checked_sub(self.padding[axis])
            .filter(|&at| at < self.image[axis])
    }

    /// The output columns for which a tap lies in the image, and the element of the first of them.
    #[inline(always)]
    fn columns(&self, tap: usize) -> (usize, usize, usize) {
        let (stride, shift) = (self.stride[2], tap * self.dilation[2]);
        let before = self.padding[2].saturating_sub(shift);
        let low = before.div_ceil(stride).min(self.out[2]);
        let room = (self.image[2] + self.padding[2]).saturating_sub(shift);
        let high = room.div_ceil(stride).min(self.out[2]).max(low);
        // Where no column sees the tap the product may be past everything.
        let at = low.saturating_mul(stride).saturating_add(shift);
        let first = at.saturating_sub(self.padding[2]);
        (low, high, first)
    }

    /// Calls `body` for each output row and each tap that sees some of the image: the row, the columns that see
    /// it, and the place of the first of these elements in the plane.
    #[inline(always)]
    fn each(&self, mut body: impl FnMut(usize, std::ops::Range<usize>, usize)) {
        for row in 0..self.out[0] * self.out[1] {
            let (depth, height) = (row / self.out[1], row % self.out[1]);
            for a in 0..self.kernel[0] {
                let Some(depth) = self.at(0, depth, a) else {
                    continue;
                };
                for b in 0..self.kernel[1] {
                    let Some(height) = self.at(1, height, b) else {
                        continue;
                    };
                    let line = (depth * self.image[1] + height) * self.image[2];
                    for c in 0..self.kernel[2] {
                        let (low, high, first) = self.columns(c);
                        if high > low {
                            body(row, low..high, line + first);
                        }
                    }
                }
            }
        }
    }

    /// How many elements of its window each output of a plane is divided by.
    fn divisors(&self) -> Vec<f64> {
        let along = |axis: usize| -> Vec<f64> {
            let (size, padding) = (self.image[axis], self.padding[axis]);
            let (low, high) = match self.count_padding {
                true => (0, size + 2 * padding),
                false => (padding, size + padding),
            };
            let within = |o: usize| {
                let first = o * self.stride[axis];
                (first + self.kernel[axis])
                    .min(high)
                    .saturating_sub(first.max(low)) as f64
            };
            (0..self.out[axis]).map(within).collect()
        };
        let [depth, height, width] = [along(0), along(1), along(2)];
        let mut all = Vec::with_capacity(self.out_plane());
        for d in &depth {
            for h in &height {
                all.extend(width.iter().map(|w| d * h * w));
            }
        }
        all
    }
}

/// x to largest values and their flat indices.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn max(
    spec: &PoolSpec,
    x: &Operand,
    values: &Operand,
    indices: &Operand,
) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => max_typed::<f32, f32>(spec, x, values, indices),
            DType::F64 => max_typed::<f64, f64>(spec, x, values, indices),
            DType::F16 => max_typed::<f16, f32>(spec, x, values, indices),
            DType::BF16 => max_typed::<bf16, f32>(spec, x, values, indices),
            DType::I64 => max_typed::<i64, i64>(spec, x, values, indices),
            DType::I32 => max_typed::<i32, i32>(spec, x, values, indices),
            DType::U8 | DType::Bool => max_typed::<u8, u8>(spec, x, values, indices),
        }
    }
    Ok(())
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn max_typed<T: Stored<C>, C: Number>(
    spec: &PoolSpec,
    x: &Operand,
    values: &Operand,
    indices: &Operand,
) {
    let windows = Windows::new(spec, x.layout.dims(), values.layout.dims());
    // SAFETY: as the caller promises.
    let x = unsafe { numbers::<T, C>(x) };
    // SAFETY: as the caller promises.
    let (values, indices) = unsafe { (slice_mut::<T>(values), slice_mut::<i64>(indices)) };
    let indices = Shared(indices.as_mut_ptr());
    let (plane, out) = (windows.plane(), windows.out_plane());
    let mut taps = Vec::new();
    windows.each(|row, columns, first| {
        taps.push(Tap {
            out: row * windows.out[2] + columns.start,
            count: columns.len(),
            first,
        });
    });
    parallel::chunks(values, windows.together() * out, &|start, values| {
        // SAFETY: a chunk has as many indices of its own as values.
        let indices =
            unsafe { std::slice::from_raw_parts_mut(indices.get().add(start), values.len()) };
        let x = x[start / out * plane..].chunks_exact(plane);
        let mut best = vec![C::LOWEST; out];
        let mut line = vec![C::LOWEST; windows.out[2]];
        let stride = windows.stride[2];
        let planes = values
            .chunks_exact_mut(out)
            .zip(indices.chunks_exact_mut(out));
        for (x, (values, indices)) in x.zip(planes) {
            max_plane(&taps, stride, x, &mut best, indices, &mut line);
            T::store_all(&best, values);
        }
    });
}

/// One tap over the columns of an output row that see the image: where they begin in the output, how many they are,
/// and the place of the first element in the image.
struct Tap {
    out: usize,
    count: usize,
    first: usize,
}

vectorised! {
    fn max_plane<C: Number>(
        taps: &[Tap],
        stride: usize,
        x: &[C],
        best: &mut [C],
        indices: &mut [i64],
        line: &mut [C],
    ) {
        best.fill(C::LOWEST);
        // Below all places: the first element seen is taken, even where nothing is greater than the lowest.
        indices.fill(-1);
        for tap in taps {
            let best = &mut best[tap.out..][..tap.count];
            let indices = &mut indices[tap.out..][..tap.count];
            // Side by side, so that the comparison is vector code.
            let line = &mut line[..tap.count];
            for (to, from) in line.iter_mut().zip(x[tap.first..].iter().step_by(stride)) {
                *to = *from;
            }
            greater(best, indices, line, tap.first as i64, stride as i64);
        }
    }
}

/// Takes, for each window, the element of `x` where it is greater, the first seen, or the first NaN. Without
/// branches: which element of a window is largest cannot be guessed.
#[inline(always)]
fn greater<C: Number>(best: &mut [C], indices: &mut [i64], x: &[C], first: i64, stride: i64) {
    let mut place = first;
    for ((best, index), &x) in best.iter_mut().zip(indices).zip(x) {
        let (old, seen) = (*best, *index);
        let take = (x > old) | (seen < 0) | (x.is_nan() & !old.is_nan());
        *best = if take { x } else { old };
        *index = if take { place } else { seen };
        // A stride past the image comes with a single window, whose successor is never looked at.
        place = place.wrapping_add(stride);
    }
}

/// dy added up where the indices point.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn max_gradient(dy: &Operand, indices: &Operand, out: &Operand) -> Result<()> {
    let name = "max_pool_backward";
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dy.dtype, max_gradient_typed(dy, indices, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn max_gradient_typed<T: Stored<C>, C: Real>(
    dy: &Operand,
    indices: &Operand,
    out: &Operand,
) -> Result<()> {
    let from: usize = dy.layout.dims()[2..].iter().product();
    let plane: usize = out.layout.dims()[2..].iter().product();
    // SAFETY: as the caller promises.
    let (dy, indices) = unsafe { (dense::<T, C>(dy), numbers::<i64, i64>(indices)) };
    let bad = AtomicUsize::new(usize::MAX);
    let together = (WORK / plane.max(from)).max(1);
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |dx| {
            parallel::chunks(dx, together * plane, &|start, dx| {
                dx.fill(C::ZERO);
                let first = start / plane;
                for (i, dx) in dx.chunks_exact_mut(plane).enumerate() {
                    let range = (first + i) * from..(first + i + 1) * from;
                    for number in range {
                        // Negative ones become huge.
                        match dx.get_mut(indices[number] as usize) {
                            Some(slot) => *slot += dy[number],
                            None => _ = bad.fetch_min(number, Ordering::Relaxed),
                        }
                    }
                }
            });
        });
    }
    match bad.into_inner() {
        usize::MAX => Ok(()),
        number => Err(Error::value(
            "max_pool_backward",
            format!(
                "index {} at element {number} of the indices is out of range for a plane of {plane} elements",
                indices[number]
            ),
        )),
    }
}

/// x to means of windows.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn average(spec: &PoolSpec, x: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!("avg_pool", x.dtype, average_typed(spec, x, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn average_typed<T: Stored<C>, C: Real>(
    spec: &PoolSpec,
    x: &Operand,
    out: &Operand,
) -> Result<()> {
    let windows = Windows::new(spec, x.layout.dims(), out.layout.dims());
    let divisors: Vec<C> = windows.divisors().into_iter().map(C::from_f64).collect();
    // SAFETY: as the caller promises.
    let x = unsafe { dense::<T, C>(x) };
    let (plane, size) = (windows.plane(), windows.out_plane());
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |y| {
            parallel::chunks(y, windows.together() * size, &|start, y| {
                let x = x[start / size * plane..].chunks_exact(plane);
                for (x, y) in x.zip(y.chunks_exact_mut(size)) {
                    average_plane(&windows, x, &divisors, y);
                }
            });
        });
    }
    Ok(())
}

vectorised! {
    fn average_plane<C: Real>(windows: &Windows, x: &[C], divisors: &[C], y: &mut [C]) {
        y.fill(C::ZERO);
        let (width, stride) = (windows.out[2], windows.stride[2]);
        windows.each(|row, columns, first| {
            let y = &mut y[row * width..][columns];
            for (y, &x) in y.iter_mut().zip(x[first..].iter().step_by(stride)) {
                *y += x;
            }
        });
        for (y, &divisor) in y.iter_mut().zip(divisors) {
            *y = *y / divisor;
        }
    }
}

/// dy to dx, whose spatial sizes the output has.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn average_gradient(spec: &PoolSpec, dy: &Operand, out: &Operand) -> Result<()> {
    let name = "avg_pool_backward";
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe { for_float!(name, dy.dtype, average_gradient_typed(spec, dy, out)) }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn average_gradient_typed<T: Stored<C>, C: Real>(
    spec: &PoolSpec,
    dy: &Operand,
    out: &Operand,
) -> Result<()> {
    let windows = Windows::new(spec, out.layout.dims(), dy.layout.dims());
    let divisors: Vec<C> = windows.divisors().into_iter().map(C::from_f64).collect();
    // SAFETY: as the caller promises.
    let dy = unsafe { dense::<T, C>(dy) };
    let (plane, size) = (windows.plane(), windows.out_plane());
    // SAFETY: as the caller promises.
    unsafe {
        write::<T, C, _>(out, |dx| {
            let dx = Shared(dx.as_mut_ptr());
            parallel_for(dy.len() / size, windows.together(), &|range| {
                let mut shares = vec![C::ZERO; size];
                for number in range {
                    // SAFETY: a plane of its own.
                    let dx = std::slice::from_raw_parts_mut(dx.get().add(number * plane), plane);
                    let dy = &dy[number * size..][..size];
                    spread_plane(&windows, dy, &divisors, &mut shares, dx);
                }
            });
        });
    }
    Ok(())
}

vectorised! {
    fn spread_plane<C: Real>(windows: &Windows, dy: &[C], divisors: &[C], shares: &mut [C], dx: &mut [C]) {
        for (share, (&dy, &divisor)) in shares.iter_mut().zip(dy.iter().zip(divisors)) {
            *share = dy / divisor;
        }
        dx.fill(C::ZERO);
        let (width, stride) = (windows.out[2], windows.stride[2]);
        windows.each(|row, columns, first| {
            let shares = &shares[row * width..][columns];
            for (dx, &share) in dx[first..].iter_mut().step_by(stride).zip(shares) {
                *dx += share;
            }
        });
    }
}
