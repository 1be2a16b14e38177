//! `Reduce`: over any dimensions of any strides, in an order that depends on sizes alone.
//!
//! Sums are joined pairwise, so that rounding errors grow with the logarithm of the count. Reduced dimensions
//! that lie densest are reduced line by line; where a kept dimension is densest, whole rows are joined.

use super::binary::{Add, Maximum, Minimum, Mul};
use super::map::{Function2, PIECE};
use super::math::Number;
use crate::cursor::{BLOCK, Cursor};
use crate::element::Stored;
use crate::parallel::Shared;
use crate::simd::{self, Kernel};
use crate::view::{first, slice_mut};
use crate::walk::Walk;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{DType, DimSet, Layout, MAX_DIMS, Operand, ReduceOp};

/// A line longer than this is cut, and so are rows together: it is the work that one thread takes at least.
const SEGMENT: usize = 64 * BLOCK;

/// Rows joined one after the other before joining pairwise.
const ROWS: usize = 32;

/// Fewer columns than this are better gathered line by line.
pub(crate) const FEW_COLUMNS: usize = 16;

/// Numbers that are joined side by side within a block.
const LANES: usize = 32;

/// Reduces `dims` of x, in the accumulation type of its dtype.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn reduce(op: ReduceOp, dims: DimSet, x: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => joined::<f32, f32, f32>(op, dims, x, out),
            DType::F64 => joined::<f64, f64, f64>(op, dims, x, out),
            DType::F16 => joined::<f16, f32, f16>(op, dims, x, out),
            DType::BF16 => joined::<bf16, f32, bf16>(op, dims, x, out),
            DType::I64 => joined::<i64, i64, i64>(op, dims, x, out),
            DType::I32 if out.dtype == DType::I64 => joined::<i32, i64, i64>(op, dims, x, out),
            DType::I32 => joined::<i32, i32, i32>(op, dims, x, out),
            DType::U8 | DType::Bool if out.dtype == DType::I64 => {
                joined::<u8, i64, i64>(op, dims, x, out)
            }
            DType::U8 | DType::Bool => joined::<u8, u8, u8>(op, dims, x, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn joined<T: Stored<C>, C: Number, O: Stored<C>>(
    op: ReduceOp,
    dims: DimSet,
    x: &Operand,
    out: &Operand,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            ReduceOp::Sum => run::<T, C, O>(dims, x, out, Add, C::ZERO),
            ReduceOp::Prod => run::<T, C, O>(dims, x, out, Mul, C::ONE),
            ReduceOp::Max => run::<T, C, O>(dims, x, out, Maximum, C::LOWEST),
            ReduceOp::Min => run::<T, C, O>(dims, x, out, Minimum, C::HIGHEST),
        }
    }
}

/// What is reduced: kept dimensions first, reduced ones last, with as many results and elements in each.
struct Plan {
    kept: [usize; MAX_DIMS],
    kept_rank: usize,
    reduced: [usize; MAX_DIMS],
    reduced_rank: usize,
    results: usize,
    count: usize,
}

impl Plan {
    fn new(dims: DimSet, layout: &Layout) -> Plan {
        let mut plan = Plan {
            kept: [0; MAX_DIMS],
            kept_rank: 0,
            reduced: [0; MAX_DIMS],
            reduced_rank: 0,
            results: 1,
            count: 1,
        };
        for (d, &size) in layout.dims().iter().enumerate() {
            if dims.contains(d) {
                plan.reduced[plan.reduced_rank] = d;
                plan.reduced_rank += 1;
                plan.count *= size;
            } else {
                plan.kept[plan.kept_rank] = d;
                plan.kept_rank += 1;
                plan.results *= size;
            }
        }
        // The densest innermost.
        let stride = |d: &usize| std::cmp::Reverse(layout.strides()[*d].unsigned_abs());
        plan.reduced[..plan.reduced_rank].sort_by_key(stride);
        plan
    }

    fn kept(&self) -> &[usize] {
        &self.kept[..self.kept_rank]
    }

    fn reduced(&self) -> &[usize] {
        &self.reduced[..self.reduced_rank]
    }

    /// The layout with kept dimensions first.
    fn lines(&self, layout: &Layout) -> Layout {
        let mut order = self.kept;
        order[self.kept_rank..self.kept_rank + self.reduced_rank].copy_from_slice(self.reduced());
        layout.permute(&order[..self.kept_rank + self.reduced_rank])
    }
}

fn walk(layout: &Layout, dims: &[usize]) -> Walk<1> {
    let (mut sizes, mut strides) = ([1; MAX_DIMS], [0; MAX_DIMS]);
    for (i, &d) in dims.iter().enumerate() {
        sizes[i] = layout.dims()[d];
        strides[i] = layout.strides()[d];
    }
    Walk::new(&sizes[..dims.len()], [&strides[..dims.len()]])
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn run<T: Stored<C>, C: Number, O: Stored<C>>(
    dims: DimSet,
    x: &Operand,
    out: &Operand,
    join: impl Function2<C, C>,
    start: C,
) {
    let plan = Plan::new(dims, &x.layout);
    // SAFETY: as the caller promises.
    let out = unsafe { slice_mut::<O>(out) };
    let kept = walk(&x.layout, plan.kept());
    let columns = kept.dims().last().copied().unwrap_or(1);
    let by_rows = kept.inner_strides() == [1] && columns >= FEW_COLUMNS && plan.count > 1;
    let segments = if by_rows {
        plan.count.div_ceil(segment_rows(columns))
    } else {
        plan.count.div_ceil(SEGMENT)
    };
    let fill = |partial: &mut [C]| {
        // SAFETY: as the caller promises.
        unsafe {
            if by_rows {
                rows::<T, C>(&plan, x, &kept, segments, partial, join);
            } else {
                lines::<T, C>(&plan, x, segments, partial, join, start);
            }
        }
    };
    if segments == 1
        && let Some(numbers) = O::as_numbers_mut(out)
    {
        return fill(numbers);
    }
    let mut partial = vec![start; segments * plan.results];
    fill(&mut partial);
    let mut step = 1;
    while step < segments {
        for i in (0..segments - step).step_by(2 * step) {
            let (left, right) = partial.split_at_mut((i + step) * plan.results);
            let left = &mut left[i * plan.results..][..plan.results];
            simd::run(JoinRow {
                row: &right[..plan.results],
                sums: left,
                join,
            });
        }
        step *= 2;
    }
    O::store_all(&partial[..plan.results], out);
}

/// Line by line: every result is the join of `count` elements, gathered where they are not dense.
/// `partial` is [segments][results].
///
/// # Safety
/// `x` is an input of the running `execute` of type `T`.
unsafe fn lines<T: Stored<C>, C: Number>(
    plan: &Plan,
    x: &Operand,
    segments: usize,
    partial: &mut [C],
    join: impl Function2<C, C>,
    start: C,
) {
    let layout = plan.lines(&x.layout);
    let from = Shared(first::<T>(x));
    let to = Shared(partial.as_mut_ptr());
    let piece = (PIECE / plan.count.min(SEGMENT)).max(1);
    parallel_for(plan.results * segments, piece, &|range| {
        let at = |item: usize| item / segments * plan.count + item % segments * SEGMENT;
        // SAFETY: the layout is a permutation of the input's.
        let mut cursor = unsafe { Cursor::<T, C>::over(from.get(), &layout, at(range.start)) };
        for item in range {
            let length = SEGMENT.min(plan.count - item % segments * SEGMENT);
            let value = line(&mut cursor, length, join, start);
            // SAFETY: within `partial`; items are disjoint.
            unsafe {
                *to.get()
                    .add(item % segments * plan.results + item / segments) = value
            };
        }
    });
}

/// Joins the next `length` numbers, block by block and pairwise.
fn line<T: Stored<C>, C: Number>(
    cursor: &mut Cursor<'_, T, C>,
    length: usize,
    join: impl Function2<C, C>,
    start: C,
) -> C {
    if length <= BLOCK {
        let numbers = cursor.next_slice(length);
        return join_block(numbers, join, start);
    }
    let left = (length.div_ceil(BLOCK).next_power_of_two() / 2) * BLOCK;
    let value = line(cursor, left, join, start);
    join.of(value, line(cursor, length - left, join, start))
}

/// The join of a slice.
#[inline]
pub(crate) fn join_block<C: Number>(numbers: &[C], join: impl Function2<C, C>, start: C) -> C {
    if numbers.len() < LANES {
        return numbers.iter().fold(start, |sum, &x| join.of(sum, x));
    }
    simd::run(JoinBlock {
        numbers,
        join,
        start,
    })
}

struct JoinBlock<'a, C, J> {
    numbers: &'a [C],
    join: J,
    start: C,
}

impl<C: Number, J: Function2<C, C>> Kernel for JoinBlock<'_, C, J> {
    type Output = C;
    #[inline(always)]
    fn run(self) -> C {
        let mut lanes = [self.start; LANES];
        let (chunks, rest) = self.numbers.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = self.join.of(*lane, x);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = self.join.of(*lane, x);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                lanes[i] = self.join.of(lanes[i], lanes[i + width]);
            }
            width /= 2;
        }
        lanes[0]
    }
}

/// How many rows of so many columns make a segment.
fn segment_rows(columns: usize) -> usize {
    (SEGMENT / columns.min(BLOCK)).max(ROWS)
}

/// Row by row: the innermost kept dimension is dense, and rows of it are joined. `partial` is
/// [segments][results].
///
/// # Safety
/// `x` is an input of the running `execute` of type `T`, and `kept` the walk over its kept dimensions.
unsafe fn rows<T: Stored<C>, C: Number>(
    plan: &Plan,
    x: &Operand,
    kept: &Walk<1>,
    segments: usize,
    partial: &mut [C],
    join: impl Function2<C, C>,
) {
    let columns = kept.dims().last().copied().unwrap_or(1);
    let reduced = walk(&x.layout, plan.reduced());
    let blocks = columns.div_ceil(BLOCK);
    let outer = plan.results / columns;
    let rows_each = segment_rows(columns);
    let from = Shared(first::<T>(x));
    let to = Shared(partial.as_mut_ptr());
    let work = columns.min(BLOCK) * plan.count.min(rows_each);
    parallel_for(outer * segments * blocks, (PIECE / work).max(1), &|range| {
        let mut room = Room::default();
        for item in range {
            let (rest, block) = (item / blocks, item % blocks * BLOCK);
            let (line, segment) = (rest / segments, rest % segments);
            let width = BLOCK.min(columns - block);
            let [offset] = kept.place(line * columns + block).offsets;
            let mut walker = Rows {
                from: from.get().wrapping_offset(offset) as *const T,
                width,
                walk: &reduced,
                place: reduced.place(segment * rows_each),
                join,
            };
            let at = segment * plan.results + line * columns + block;
            // SAFETY: within `partial`; items are disjoint.
            let sums = unsafe { std::slice::from_raw_parts_mut(to.get().add(at), width) };
            let count = rows_each.min(plan.count - segment * rows_each);
            walker.join(count, sums, &mut room);
        }
    });
}

/// Rows of `width` dense elements, one after the other.
struct Rows<'a, T, J> {
    from: *const T,
    width: usize,
    walk: &'a Walk<1>,
    place: crate::walk::Place<1>,
    join: J,
}

/// Room for a row in numbers and for sums that wait, used again.
struct Room<C> {
    row: Vec<C>,
    waiting: Vec<Vec<C>>,
}

impl<C> Default for Room<C> {
    fn default() -> Self {
        Room {
            row: Vec::new(),
            waiting: Vec::new(),
        }
    }
}

impl<'a, T, J> Rows<'a, T, J> {
    /// The join of the next `count` rows, pairwise.
    fn join<C: Number>(&mut self, count: usize, sums: &mut [C], room: &mut Room<C>)
    where
        T: Stored<C>,
        J: Function2<C, C>,
    {
        if count > ROWS {
            let left = (count.div_ceil(ROWS).next_power_of_two() / 2) * ROWS;
            self.join(left, sums, room);
            let mut right = room.waiting.pop().unwrap_or_default();
            right.resize(self.width, C::ZERO);
            self.join(count - left, &mut right, room);
            simd::run(JoinRow {
                row: &right,
                sums,
                join: self.join,
            });
            room.waiting.push(right);
            return;
        }
        let mut done = 0;
        while done < count {
            // Four at a time, in the same order, so that sums are loaded and stored less often.
            if done > 0 && count - done >= 4 && T::as_numbers(&[]).is_some() {
                let stored = [(); 4].map(|()| self.row());
                if let [Some(a), Some(b), Some(c), Some(d)] = stored.map(T::as_numbers) {
                    let (rows, join) = ([a, b, c, d], self.join);
                    simd::run(JoinRows { rows, sums, join });
                }
                done += 4;
                continue;
            }
            let stored = self.row();
            let row = T::as_numbers(stored).unwrap_or_else(|| {
                room.row.clear();
                T::load_all(stored, &mut room.row);
                &room.row
            });
            if done == 0 {
                sums.copy_from_slice(row);
            } else {
                let join = self.join;
                simd::run(JoinRow { row, sums, join });
            }
            done += 1;
        }
    }

    /// The next row.
    fn row(&mut self) -> &'a [T] {
        // SAFETY: the rows are those of the walk over the reduced dimensions, dense and `width` long; none is
        // kept past the call of `rows`.
        let row = unsafe {
            let row = self.from.offset(self.place.offsets[0]);
            std::slice::from_raw_parts(row, self.width)
        };
        self.walk.advance(&mut self.place, 1);
        row
    }
}

/// Joins four rows into sums, one after the other.
struct JoinRows<'a, C, J> {
    rows: [&'a [C]; 4],
    sums: &'a mut [C],
    join: J,
}

impl<C: Number, J: Function2<C, C>> Kernel for JoinRows<'_, C, J> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let ([a, b, c, d], join) = (self.rows, self.join);
        let rows = a.iter().zip(b).zip(c.iter().zip(d));
        for (sum, ((&a, &b), (&c, &d))) in self.sums.iter_mut().zip(rows) {
            *sum = join.of(join.of(join.of(join.of(*sum, a), b), c), d);
        }
    }
}

/// Joins a row into sums, element by element.
struct JoinRow<'a, C, J> {
    row: &'a [C],
    sums: &'a mut [C],
    join: J,
}

impl<C: Number, J: Function2<C, C>> Kernel for JoinRow<'_, C, J> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (sum, &x) in self.sums.iter_mut().zip(self.row) {
            *sum = self.join.of(*sum, x);
        }
    }
}
