//! `Sort`: stable, along one dimension, by integer keys whose order is the numbers'.

use super::math::Key;
use crate::cursor::Cursor;
use crate::element::Stored;
use crate::parallel::Shared;
use crate::view;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{DType, Layout, MAX_DIMS, Operand};

/// x → values and indices along `dim`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn sort(
    dim: usize,
    descending: bool,
    x: &Operand,
    values: &Operand,
    indices: &Operand,
) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => typed::<f32>(dim, descending, x, values, indices),
            DType::F64 => typed::<f64>(dim, descending, x, values, indices),
            DType::F16 => typed::<f16>(dim, descending, x, values, indices),
            DType::BF16 => typed::<bf16>(dim, descending, x, values, indices),
            DType::I64 => typed::<i64>(dim, descending, x, values, indices),
            DType::I32 => typed::<i32>(dim, descending, x, values, indices),
            DType::U8 | DType::Bool => typed::<u8>(dim, descending, x, values, indices),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn typed<T: Key + Stored<T>>(
    dim: usize,
    descending: bool,
    x: &Operand,
    values: &Operand,
    indices: &Operand,
) {
    let layout = last(&x.layout, dim);
    let length = x.layout.dims().get(dim).copied().unwrap_or(1);
    let inner: usize = x.layout.dims().iter().skip(dim + 1).product();
    let lines = x.layout.elements() / length;
    let values = Shared(view::first::<T>(values));
    let indices = Shared(view::first::<i64>(indices));
    let first = Shared(view::first::<T>(x));
    parallel_for(lines, (8192 / length).max(1), &|range| {
        // SAFETY: the layout is a permutation of the input's.
        let mut cursor =
            unsafe { Cursor::<T, T>::over(first.get(), &layout, range.start * length) };
        let (mut row, mut scratch) = (Vec::with_capacity(length), Scratch::default());
        for line in range {
            row.clear();
            cursor.append(length, &mut row);
            // Contiguous outputs: line `line` starts here and goes on in steps of `inner`.
            let start = line / inner * inner * length + line % inner;
            order_of(&row, descending, &mut scratch, |place, index| {
                let at = start + place * inner;
                // SAFETY: within the contiguous outputs; lines are disjoint.
                unsafe {
                    *values.get().add(at) = row[index];
                    *indices.get().add(at) = index as i64;
                }
            });
        }
    });
}

/// The layout with `dim` moved to the end.
pub(crate) fn last(layout: &Layout, dim: usize) -> Layout {
    let rank = layout.shape().rank();
    if rank == 0 {
        return *layout;
    }
    let mut order: [usize; MAX_DIMS] = std::array::from_fn(|d| d);
    order[dim..rank].rotate_left(1);
    layout.permute(&order[..rank])
}

/// Room that is used again from line to line.
#[derive(Default)]
struct Scratch {
    small: Vec<u64>,
    large: Vec<u128>,
}

/// Calls `put` with each place and the index of the element that belongs there. A key and an index
/// together are all different, so that any sort is stable.
fn order_of<T: Key>(
    row: &[T],
    descending: bool,
    scratch: &mut Scratch,
    mut put: impl FnMut(usize, usize),
) {
    let flip = if descending { u64::MAX } else { 0 };
    if T::SMALL && u32::try_from(row.len()).is_ok() {
        let small = &mut scratch.small;
        small.clear();
        let packed = |(i, x): (usize, &T)| (x.key() ^ flip) << 32 | i as u64;
        small.extend(row.iter().enumerate().map(packed));
        small.sort_unstable();
        let indices = small
            .iter()
            .map(|packed| (packed & u32::MAX as u64) as usize);
        indices
            .enumerate()
            .for_each(|(place, index)| put(place, index));
    } else {
        let large = &mut scratch.large;
        large.clear();
        let packed = |(i, x): (usize, &T)| ((x.key() ^ flip) as u128) << 64 | i as u128;
        large.extend(row.iter().enumerate().map(packed));
        large.sort_unstable();
        let indices = large.iter().map(|packed| *packed as u64 as usize);
        indices
            .enumerate()
            .for_each(|(place, index)| put(place, index));
    }
}
