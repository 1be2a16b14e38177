//! `ArgReduce`: where the largest or smallest lies, the first of equals; NaN is the most extreme of all.

use super::binary::{Maximum, Minimum};
use super::map::{Function2, PIECE};
use super::math::Number;
use super::reduce::{FEW_COLUMNS, join_block};
use super::sort::last;
use crate::cursor::{BLOCK, Cursor};
use crate::element::Stored;
use crate::parallel::{self, Shared};
use crate::simd::{self, Kernel};
use crate::view::{first, slice_mut};
use crate::walk::Walk;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{ArgReduceOp, DType, Operand};

/// Indices along `dim`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn arg_reduce(op: ArgReduceOp, dim: usize, x: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => typed::<f32, f32>(op, dim, x, out),
            DType::F64 => typed::<f64, f64>(op, dim, x, out),
            DType::F16 => typed::<f16, f32>(op, dim, x, out),
            DType::BF16 => typed::<bf16, f32>(op, dim, x, out),
            DType::I64 => typed::<i64, i64>(op, dim, x, out),
            DType::I32 => typed::<i32, i32>(op, dim, x, out),
            DType::U8 | DType::Bool => typed::<u8, u8>(op, dim, x, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn typed<T: Stored<C>, C: Number>(op: ArgReduceOp, dim: usize, x: &Operand, out: &Operand) {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            ArgReduceOp::Max => search::<T, C>(dim, x, out, Maximum, C::LOWEST),
            ArgReduceOp::Min => search::<T, C>(dim, x, out, Minimum, C::HIGHEST),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn search<T: Stored<C>, C: Number>(
    dim: usize,
    x: &Operand,
    out: &Operand,
    join: impl Function2<C, C>,
    start: C,
) {
    let rest = Walk::new(
        x.layout.dims().get(dim + 1..).unwrap_or_default(),
        [x.layout.strides().get(dim + 1..).unwrap_or_default()],
    );
    if let ([columns], [1]) = (rest.dims(), rest.inner_strides())
        && *columns >= FEW_COLUMNS
    {
        // SAFETY: as the caller promises.
        return unsafe { by_rows::<T, C>(dim, *columns, x, out, join, start) };
    }
    let layout = last(&x.layout, dim);
    let length = x.layout.dims().get(dim).copied().unwrap_or(1);
    let from = Shared(first::<T>(x));
    // SAFETY: as the caller promises.
    let out = unsafe { slice_mut::<i64>(out) };
    parallel::chunks(out, (PIECE / length).max(1), &|line, chunk| {
        // SAFETY: the layout is a permutation of the input's.
        let mut cursor = unsafe { Cursor::<T, C>::over(from.get(), &layout, line * length) };
        for slot in chunk {
            *slot = first_extreme(&mut cursor, length, join, start) as i64;
        }
    });
}

/// As [`search`] where what follows `dim` is dense: row by row, with the best so far of every column. The
/// layout is [outer…, length, columns].
///
/// # Safety
/// Operands of the running `execute`.
unsafe fn by_rows<T: Stored<C>, C: Number>(
    dim: usize,
    columns: usize,
    x: &Operand,
    out: &Operand,
    join: impl Function2<C, C>,
    start: C,
) {
    let (dims, strides) = (x.layout.dims(), x.layout.strides());
    let outer = Walk::new(&dims[..dim], [&strides[..dim]]);
    let (length, step) = (dims[dim], strides[dim]);
    let blocks = columns.div_ceil(BLOCK);
    let from = Shared(first::<T>(x));
    let to = Shared(first::<i64>(out));
    let work = length * columns.min(BLOCK);
    parallel_for(outer.elements() * blocks, (PIECE / work).max(1), &|range| {
        let (mut best, mut buffer) = (Vec::new(), Vec::new());
        for item in range {
            let (line, column) = (item / blocks, item % blocks * BLOCK);
            let width = BLOCK.min(columns - column);
            // SAFETY: within the contiguous output; items are disjoint.
            let index = unsafe {
                std::slice::from_raw_parts_mut(to.get().add(line * columns + column), width)
            };
            let [offset] = outer.place(line).offsets;
            index.fill(0);
            best.clear();
            best.resize(width, start);
            for k in 0..length {
                let at = offset + k as isize * step + column as isize;
                // SAFETY: a dense row of the input's layout.
                let row = unsafe { std::slice::from_raw_parts(from.get().offset(at), width) };
                let row = T::as_numbers(row).unwrap_or_else(|| {
                    buffer.clear();
                    T::load_all(row, &mut buffer);
                    &buffer
                });
                simd::run(Better {
                    row,
                    best: &mut best,
                    index,
                    number: k as i64,
                    join,
                });
            }
        }
    });
}

/// Notes where a row beats the best so far.
struct Better<'a, C, J> {
    row: &'a [C],
    best: &'a mut [C],
    index: &'a mut [i64],
    number: i64,
    join: J,
}

impl<C: Number, J: Function2<C, C>> Kernel for Better<'_, C, J> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let places = self.best.iter_mut().zip(self.index);
        for (&x, (best, index)) in self.row.iter().zip(places) {
            let joined = self.join.of(*best, x);
            let better = (joined != *best) & !best.is_nan();
            *index = if better { self.number } else { *index };
            *best = joined;
        }
    }
}

/// The index of the first extreme among the next `length` numbers.
fn first_extreme<T: Stored<C>, C: Number>(
    cursor: &mut Cursor<'_, T, C>,
    length: usize,
    join: impl Function2<C, C>,
    start: C,
) -> usize {
    let (mut best, mut index) = (start, 0);
    for done in (0..length).step_by(BLOCK) {
        let numbers = cursor.next_slice(BLOCK.min(length - done));
        let extreme = join_block(numbers, join, start);
        // A later block wins only when it is more extreme; once NaN, nothing is.
        let better = join.of(best, extreme) != best && !best.is_nan();
        if done == 0 || better {
            let same = |x: &C| *x == extreme || (extreme.is_nan() && x.is_nan());
            index = done + numbers.iter().position(same).unwrap_or(0);
            best = extreme;
        }
    }
    index
}
