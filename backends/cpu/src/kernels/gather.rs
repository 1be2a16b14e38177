//! `Gather`: elements looked up along a dimension; rows are copied whole where one index serves a row.

use super::map::PIECE;
use crate::parallel;
use crate::parallel::Shared;
use crate::view::{first, slice_mut};
use crate::walk::Walk;
use drivetrain_core::{Error, MAX_DIMS, Operand, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// `out[…i…] = x[…index[…i…]…]` along `dim`. Elements are moved by their size alone.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn gather(dim: usize, x: &Operand, index: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: the types are as large as the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype.size() {
            1 => sized::<u8>(dim, x, index, out),
            2 => sized::<u16>(dim, x, index, out),
            4 => sized::<u32>(dim, x, index, out),
            _ => sized::<u64>(dim, x, index, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn sized<T: Copy + Send + Sync>(
    dim: usize,
    x: &Operand,
    index: &Operand,
    out: &Operand,
) -> Result<()> {
    // Off `dim`, x is walked along with the index; along it, only the index decides.
    let mut strides = [0; MAX_DIMS];
    let rank = x.layout.strides().len();
    strides[..rank].copy_from_slice(x.layout.strides());
    let size = x.layout.dims()[dim];
    let along = std::mem::take(&mut strides[dim]);
    let walk = Walk::new(
        index.layout.dims(),
        [index.layout.strides(), &strides[..rank]],
    );
    let [index_step, step] = walk.inner_strides();
    let (from, at) = (Shared(first::<T>(x)), Shared(first::<i64>(index)));
    let bad = AtomicUsize::new(usize::MAX);
    // SAFETY: as the caller promises.
    let out = unsafe { slice_mut::<T>(out) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        walk.runs(start..start + chunk.len(), |[i, x], number, length| {
            let slots = &mut chunk[number - start..][..length];
            let look = |k: usize| {
                // SAFETY: a run of the index's layout has `length` elements.
                let index = unsafe { *at.get().offset(i + k as isize * index_step) };
                // Negative ones become huge.
                if index as u64 >= size as u64 {
                    bad.fetch_min(number + k, Ordering::Relaxed);
                    return None;
                }
                Some(from.get().wrapping_offset(x + index as isize * along))
            };
            if index_step == 0 && step == 1 {
                if let Some(row) = look(0) {
                    // SAFETY: the index is within the dimension, and off it the walk is within x.
                    slots.copy_from_slice(unsafe { std::slice::from_raw_parts(row, length) });
                }
                return;
            }
            for (k, slot) in slots.iter_mut().enumerate() {
                if let Some(line) = look(k) {
                    // SAFETY: as above.
                    *slot = unsafe { *line.offset(k as isize * step) };
                }
            }
        });
    });
    match bad.into_inner() {
        usize::MAX => Ok(()),
        // SAFETY: as the caller promises.
        number => Err(unsafe { out_of_range("gather", index, number, dim, size) }),
    }
}

/// The error for the index with this row-major number.
///
/// # Safety
/// `index` is an I64 input of the running `execute`.
pub(crate) unsafe fn out_of_range(
    operation: &'static str,
    index: &Operand,
    number: usize,
    dim: usize,
    size: usize,
) -> Error {
    let mut place = [0; MAX_DIMS];
    let (mut rest, mut offset) = (number, 0);
    let dims = index.layout.dims();
    for d in (0..dims.len()).rev() {
        place[d] = rest % dims[d];
        rest /= dims[d];
        offset += place[d] as isize * index.layout.strides()[d];
    }
    // SAFETY: an element of the index.
    let value = unsafe { *first::<i64>(index).offset(offset) };
    Error::value(
        operation,
        format!(
            "index {value} out of range for dimension {dim} of size {size}, at {:?} of the index",
            &place[..dims.len()]
        ),
    )
    .help(format!("indices are 0 to {}", size.saturating_sub(1)))
}
