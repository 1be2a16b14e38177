//! `Copy`: from any strides into any window, by element size alone; transpositions go tile by tile.

use super::map::PIECE;
use crate::parallel::Shared;
use crate::view::first;
use crate::walk::Walk;
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{MAX_DIMS, Operand};

/// Side of a tile, in elements: a cache line of the commonest type.
const TILE: usize = 16;

/// `out = x`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn copy(x: &Operand, out: &Operand) {
    // SAFETY: the types are as large as the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype.size() {
            1 => sized::<u8>(x, out),
            2 => sized::<u16>(x, out),
            4 => sized::<u32>(x, out),
            _ => sized::<u64>(x, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn sized<T: Copy + Send + Sync>(x: &Operand, out: &Operand) {
    let walk = ordered(x, out);
    // SAFETY: as the caller promises.
    let (from, to) = (Shared(first::<T>(x)), Shared(first::<T>(out)));
    let inner = walk.dims().len() - 1;
    // The dimension that is dense in x, when the innermost, dense in out, is not: a transposition.
    let dense = (0..inner)
        .filter(|&d| walk.dims()[d] >= 4)
        .min_by_key(|&d| walk.strides()[d][0].unsigned_abs());
    if let Some(dense) = dense
        && walk.dims()[inner] >= 4
        && walk.strides()[dense][0].unsigned_abs() < walk.strides()[inner][0].unsigned_abs()
    {
        // SAFETY: as the caller promises.
        return unsafe { tiled(&walk, dense, from, to) };
    }
    parallel_for(walk.elements(), PIECE, &|range| {
        walk.runs(range, |[a, b], _, length| {
            // SAFETY: runs lie within the two layouts; ranges of elements are disjoint in the output.
            unsafe {
                let steps = walk.inner_strides();
                run(from.get().offset(a), to.get().offset(b), steps, length);
            }
        });
    });
}

/// The dimensions of both, the one that is densest in the output innermost: order does not matter to a copy.
fn ordered(x: &Operand, out: &Operand) -> Walk<2> {
    let rank = out.layout.dims().len();
    let mut order: [usize; MAX_DIMS] = std::array::from_fn(|d| d);
    let key = |d: usize| std::cmp::Reverse(out.layout.strides()[d].unsigned_abs());
    order[..rank].sort_by_key(|&d| key(d));
    let (mut dims, mut from, mut to) = ([0; MAX_DIMS], [0; MAX_DIMS], [0; MAX_DIMS]);
    for (i, &d) in order[..rank].iter().enumerate() {
        dims[i] = out.layout.dims()[d];
        from[i] = x.layout.strides()[d];
        to[i] = out.layout.strides()[d];
    }
    Walk::new(&dims[..rank], [&from[..rank], &to[..rank]])
}

/// Copies a run.
///
/// # Safety
/// `length` elements of these strides can be read and written.
#[inline]
unsafe fn run<T: Copy>(from: *const T, to: *mut T, [a, b]: [isize; 2], length: usize) {
    // SAFETY: as the caller promises; inputs and outputs do not overlap.
    unsafe {
        match (a, b) {
            (1, 1) => std::ptr::copy_nonoverlapping(from, to, length),
            (_, 1) => {
                (0..length as isize).for_each(|i| *to.offset(i) = *from.offset(i * a));
            }
            _ => (0..length as isize).for_each(|i| *to.offset(i * b) = *from.offset(i * a)),
        }
    }
}

/// Turns one tile by way of a buffer, so that each cache line is read at once and written at once: lines a
/// power of two apart would push each other out of the cache.
///
/// # Safety
/// `height` rows of `width` columns with these strides can be read and written.
#[inline]
unsafe fn tile<T: Copy>(
    from: *const T,
    to: *mut T,
    [height, width]: [usize; 2],
    row: [isize; 2],
    column: [isize; 2],
) {
    // SAFETY: as the caller promises.
    unsafe {
        let mut buffer = [[*from; TILE]; TILE];
        for (j, line) in buffer.iter_mut().enumerate().take(width) {
            // Dense in the input.
            let from = from.offset(j as isize * column[0]);
            for (i, slot) in line.iter_mut().enumerate().take(height) {
                *slot = *from.offset(i as isize * row[0]);
            }
        }
        for i in 0..height {
            // Dense in the output.
            let to = to.offset(i as isize * row[1]);
            for (j, line) in buffer.iter().enumerate().take(width) {
                *to.offset(j as isize * column[1]) = line[i];
            }
        }
    }
}

/// Copies with tiles of `dense` × innermost, so that each cache line is used whole on both sides.
///
/// # Safety
/// The walk is that of an input at `from` and an output at `to` of the running `execute`.
unsafe fn tiled<T: Copy>(walk: &Walk<2>, dense: usize, from: Shared<T>, to: Shared<T>) {
    let inner = walk.dims().len() - 1;
    let (rows, columns) = (walk.dims()[dense], walk.dims()[inner]);
    let (row, column) = (walk.strides()[dense], walk.strides()[inner]);
    let (mut dims, mut strides) = ([0; MAX_DIMS], [[0; MAX_DIMS]; 2]);
    let others = (0..inner).filter(|&d| d != dense);
    let mut rank = 0;
    for d in others {
        dims[rank] = walk.dims()[d];
        (strides[0][rank], strides[1][rank]) = (walk.strides()[d][0], walk.strides()[d][1]);
        rank += 1;
    }
    let outer = Walk::new(&dims[..rank], [&strides[0][..rank], &strides[1][..rank]]);
    // A piece is a band of tiles along the columns of one outer index.
    let bands = rows.div_ceil(TILE);
    let piece = (PIECE / (TILE * columns)).max(1);
    parallel_for(outer.elements() * bands, piece, &|range| {
        for number in range {
            let place = outer.place(number / bands).offsets;
            let top = number % bands * TILE;
            let offset = |n: usize, i: usize, j: usize| {
                place[n] + i as isize * row[n] + j as isize * column[n]
            };
            let height = TILE.min(rows - top);
            for left in (0..columns).step_by(TILE) {
                let width = TILE.min(columns - left);
                let from = from.get().wrapping_offset(offset(0, top, left));
                let to = to.get().wrapping_offset(offset(1, top, left));
                // SAFETY: within the two layouts; tiles are disjoint in the output.
                unsafe { tile(from, to, [height, width], row, column) };
            }
        }
    });
}
