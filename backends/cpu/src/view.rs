//! From operands, which are plain data, to slices: where this backend trusts what core has checked.
//!
//! Core promises for every operand of `execute`: the layout lies inside the buffer, the buffer is alive and
//! initialised, nobody writes an input during the call, and nobody else touches an output or an in-place
//! operand. That is what callers of these functions rely on.

use crate::cursor::Cursor;
use crate::element::Stored;
use crate::kernels::copy;
use crate::walk::Walk;
use drivetrain_core::{Layout, Operand, RawBuffer};
use std::borrow::Cow;

/// Fewer elements are cached whichever way they lie.
const LARGE: usize = 4096;

/// The address of the operand's first element.
pub(crate) fn first<T>(operand: &Operand) -> *mut T {
    (operand.buffer.handle as *mut T).wrapping_add(operand.layout.offset())
}

/// The elements of a contiguous operand.
///
/// # Safety
/// An input of the running `execute` of type `T`.
pub(crate) unsafe fn slice<T>(operand: &Operand) -> &[T] {
    debug_assert!(operand.layout.is_contiguous() && operand.dtype.size() == size_of::<T>());
    // SAFETY: contiguous, inside a live initialised buffer, and not written meanwhile (see the module).
    unsafe { std::slice::from_raw_parts(first(operand), operand.layout.elements()) }
}

/// The elements of a contiguous output or in-place operand.
///
/// # Safety
/// One of the running `execute` of type `T`; no other slice of it is alive.
#[allow(clippy::mut_from_ref)]
pub(crate) unsafe fn slice_mut<T>(operand: &Operand) -> &mut [T] {
    debug_assert!(operand.layout.is_contiguous() && operand.dtype.size() == size_of::<T>());
    // SAFETY: contiguous, inside a live initialised buffer that nobody else touches (see the module).
    unsafe { std::slice::from_raw_parts_mut(first(operand), operand.layout.elements()) }
}

/// The numbers of a contiguous operand that is stored as what it is computed with.
///
/// # Safety
/// An input of the running `execute` of type `T`.
pub(crate) unsafe fn plain<T: Stored<C>, C: Copy>(operand: &Operand) -> Option<&[C]> {
    // SAFETY: contiguous, and as the caller promises.
    let slice = || unsafe { slice(operand) };
    (operand.layout.is_contiguous())
        .then(slice)
        .and_then(T::as_numbers)
}

/// Where a large operand lies transposed, so that reading it row-major would touch a cache line for every
/// element, a contiguous copy in `room`; else the operand itself. Good as long as `room` is left alone.
///
/// # Safety
/// An input of the running `execute`.
pub(crate) unsafe fn untransposed(operand: &Operand, room: &mut Vec<u64>) -> Operand {
    let elements = operand.layout.elements();
    if elements < LARGE || operand.layout.is_contiguous() {
        return *operand;
    }
    let walk = Walk::new(operand.layout.dims(), [operand.layout.strides()]);
    let [inner] = walk.inner_strides();
    let mut outer = walk.dims().iter().zip(walk.strides()).rev().skip(1);
    let denser = outer.any(|(&size, &[stride])| {
        size >= 4 && stride != 0 && stride.unsigned_abs() < inner.unsigned_abs()
    });
    if !denser {
        return *operand;
    }
    let bytes = elements * operand.dtype.size();
    *room = vec![0; bytes.div_ceil(8)];
    let copy = Operand {
        buffer: RawBuffer {
            handle: room.as_mut_ptr() as u64,
            bytes,
        },
        layout: Layout::contiguous(*operand.layout.shape()),
        ..*operand
    };
    // SAFETY: as the caller promises; the copy fills memory of its own.
    unsafe { copy::copy(operand, &copy) };
    copy
}

/// An operand's elements row-major as numbers: borrowed when they lie so, else gathered and widened.
///
/// # Safety
/// An input of the running `execute` of type `T`.
pub(crate) unsafe fn numbers<T: Stored<C>, C: Copy + Send>(operand: &Operand) -> Cow<'_, [C]> {
    if operand.layout.is_contiguous() {
        // SAFETY: as the caller promises.
        if let Some(numbers) = T::as_numbers(unsafe { slice(operand) }) {
            return Cow::Borrowed(numbers);
        }
    }
    let mut room = Vec::new();
    // SAFETY: as the caller promises, here and below.
    let dense = unsafe { untransposed(operand, &mut room) };
    // SAFETY: as above.
    let mut cursor = unsafe { Cursor::<T, C>::new(&dense, 0) };
    let mut numbers = Vec::with_capacity(operand.layout.elements());
    cursor.append(operand.layout.elements(), &mut numbers);
    Cow::Owned(numbers)
}
