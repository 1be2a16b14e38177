//! `Scatter`: a source written or added along a dimension, in the order of the source whatever the threads.

use super::binary::Add;
use super::gather::out_of_range;
use super::map::Function2;
use crate::element::Stored;
use crate::parallel::Shared;
use crate::simd::{self, Kernel};
use crate::view::{first, numbers};
use crate::walk::Walk;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{DType, Layout, MAX_DIMS, Operand, Result, ScatterMode};

/// Elements a thread takes at least.
const PIECE: usize = 16_384;

/// Neighbouring elements that stay with one thread.
const ROW: usize = 128;

/// Writes or adds `source` at `index` along `dim` of `target`. Nothing is written when an index is out of range.
///
/// # Safety
/// Operands of the running `execute`; `target` is the in-place one.
pub(crate) unsafe fn scatter(
    mode: ScatterMode,
    dim: usize,
    index: &Operand,
    source: &Operand,
    target: &Operand,
) -> Result<()> {
    // SAFETY: as the caller promises; the types are those of the dtypes.
    unsafe {
        check(mode.name(), index, dim, target.layout.dims()[dim])?;
        let places = Places {
            dim,
            index,
            source,
            target: target.layout,
        };
        match (mode, target.dtype) {
            (ScatterMode::Set, dtype) => match dtype.size() {
                1 => places.run::<u8, u8>(first(target), Last),
                2 => places.run::<u16, u16>(first(target), Last),
                4 => places.run::<u32, u32>(first(target), Last),
                _ => places.run::<u64, u64>(first(target), Last),
            },
            (ScatterMode::Add, DType::F32) => places.run::<f32, f32>(first(target), Add),
            (ScatterMode::Add, DType::F64) => places.run::<f64, f64>(first(target), Add),
            (ScatterMode::Add, DType::F16) => widened::<f16>(places, target),
            (ScatterMode::Add, DType::BF16) => widened::<bf16>(places, target),
            (ScatterMode::Add, DType::I64) => places.run::<i64, i64>(first(target), Add),
            (ScatterMode::Add, DType::I32) => places.run::<i32, i32>(first(target), Add),
            // Inference has refused to add Bool.
            (ScatterMode::Add, DType::U8 | DType::Bool) => places.run::<u8, u8>(first(target), Add),
        }
    }
    Ok(())
}

/// Of two values the last.
#[derive(Clone, Copy)]
struct Last;

impl<C> Function2<C, C> for Last {
    #[inline(always)]
    fn of(self, _: C, new: C) -> C {
        new
    }
}

/// Refuses an index outside 0..size before anything is written.
///
/// # Safety
/// `index` is an I64 input of the running `execute`.
unsafe fn check(operation: &'static str, index: &Operand, dim: usize, size: usize) -> Result<()> {
    // An index that is expanded along a dimension needs one look.
    let mut dims = [1; MAX_DIMS];
    let strides = index.layout.strides();
    for (d, &stride) in strides.iter().enumerate() {
        dims[d] = if stride == 0 {
            1
        } else {
            index.layout.dims()[d]
        };
    }
    let dims = &dims[..strides.len()];
    let walk = Walk::new(dims, [strides]);
    let [step] = walk.inner_strides();
    let mut bad = None;
    walk.runs(0..walk.elements(), |[offset], number, length| {
        if bad.is_none() {
            let found = (0..length).find(|&k| {
                // SAFETY: within the index's layout.
                let value = unsafe { *first::<i64>(index).offset(offset + k as isize * step) };
                value as u64 >= size as u64
            });
            bad = found.map(|k| number + k);
        }
    });
    let Some(mut number) = bad else { return Ok(()) };
    // The number counts in the smaller dimensions; the error wants it in the index's own.
    let (mut whole, mut scale) = (0, 1);
    for (d, &size) in dims.iter().enumerate().rev() {
        whole += number % size * scale;
        number /= size;
        scale *= index.layout.dims()[d];
    }
    // SAFETY: as the caller promises.
    Err(unsafe { out_of_range(operation, index, whole, dim, size) })
}

/// Where a scatter reads and writes.
#[derive(Clone, Copy)]
struct Places<'a> {
    dim: usize,
    index: &'a Operand,
    source: &'a Operand,
    target: Layout,
}

impl Places<'_> {
    /// Joins every source element to its target. Threads share out a dimension off `dim`, so that whatever
    /// lands on one element is joined by one thread, in order.
    ///
    /// # Safety
    /// The indices are within range; `first` is the target's first element, of type `C`.
    unsafe fn run<T: Stored<C>, C: Copy + Send + Sync>(
        &self,
        first_target: *mut C,
        join: impl Function2<C, C>,
    ) {
        let rank = self.target.strides().len();
        let mut dims = [0; MAX_DIMS];
        dims[..rank].copy_from_slice(self.index.layout.dims());
        let mut strides = [0; MAX_DIMS];
        strides[..rank].copy_from_slice(self.target.strides());
        let along = std::mem::take(&mut strides[self.dim]);
        let elements = self.index.layout.elements();
        let shared = (0..rank)
            .filter(|&d| d != self.dim)
            .max_by_key(|&d| dims[d]);
        let (size, shared) = shared.map_or((1, 0), |d| (dims[d], d));
        let least = if shared + 1 == rank { ROW } else { 1 };
        let piece = if elements <= 2 * PIECE {
            size
        } else {
            (PIECE / (elements / size)).max(least)
        };
        let (at, from) = (
            Shared(first::<i64>(self.index)),
            Shared(first::<T>(self.source)),
        );
        let to = Shared(first_target);
        parallel_for(size, piece, &|range| {
            let mut dims = dims;
            if size > 1 {
                dims[shared] = range.len();
            }
            let all = [
                self.index.layout.strides(),
                self.source.layout.strides(),
                &strides[..rank],
            ];
            let skip = if size > 1 { range.start as isize } else { 0 };
            let skip = all.map(|s| s.get(shared).copied().unwrap_or(0) * skip);
            let walk = Walk::new(&dims[..rank], all);
            let [a, b, c] = walk.inner_strides();
            walk.runs(0..walk.elements(), |[i, j, k], _, length| {
                // SAFETY: runs lie within the layouts, and the indices within the dimension; a source does
                // not overlap the target, of which this thread alone has these elements.
                unsafe {
                    let at = at.get().offset(skip[0] + i);
                    let from = from.get().offset(skip[1] + j);
                    let to = to.get().offset(skip[2] + k);
                    if [a, b, c] == [0, 1, 1] {
                        // A row with one index.
                        let to = to.offset(*at as isize * along);
                        let source = std::slice::from_raw_parts(from, length);
                        let target = std::slice::from_raw_parts_mut(to, length);
                        return simd::run(JoinInto {
                            source,
                            target,
                            join,
                        });
                    }
                    for n in 0..length as isize {
                        let slot = to.offset(n * c + *at.offset(n * a) as isize * along);
                        *slot = join.of(*slot, (*from.offset(n * b)).load());
                    }
                }
            });
        });
    }
}

/// Joins stored elements into numbers.
struct JoinInto<'a, T, C, J> {
    source: &'a [T],
    target: &'a mut [C],
    join: J,
}

impl<T: Stored<C>, C: Copy, J: Function2<C, C>> Kernel for JoinInto<'_, T, C, J> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (slot, source) in self.target.iter_mut().zip(self.source) {
            *slot = self.join.of(*slot, source.load());
        }
    }
}

/// Adds to halves: in F32, rounded once.
///
/// # Safety
/// As [`scatter`].
unsafe fn widened<T: Stored<f32>>(places: Places<'_>, target: &Operand) {
    // SAFETY: as the caller promises.
    let mut sums = unsafe { numbers::<T, f32>(target) }.into_owned();
    let wide = Places {
        target: Layout::contiguous(*target.layout.shape()),
        ..places
    };
    // SAFETY: as the caller promises; `sums` has the shape of the target.
    unsafe { wide.run::<T, f32>(sums.as_mut_ptr(), Add) };
    let walk = Walk::new(target.layout.dims(), [target.layout.strides()]);
    let [step] = walk.inner_strides();
    walk.runs(0..sums.len(), |[offset], number, length| {
        for k in 0..length {
            // SAFETY: within the target's layout, which is ours alone.
            unsafe {
                let slot = first::<T>(target).offset(offset + k as isize * step);
                *slot = T::store(sums[number + k]);
            }
        }
    });
}
