//! Safe ways to spread a slice over core's threads, cut by size.

use drivetrain_core::threads::parallel_for;
use std::ops::Range;

/// A pointer that may be sent to other threads; whoever uses it says why that is sound.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(pub(crate) *mut T);

// SAFETY: a pointer is a number; every use of it is in an unsafe block with its own reason.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The pointer. (A method, so that closures take the wrapper and not its field.)
    pub(crate) fn get(&self) -> *mut T {
        self.0
    }
}

/// Calls `body` with pieces of `data` of at most `piece` elements and where each starts.
pub(crate) fn chunks<T: Send>(
    data: &mut [T],
    piece: usize,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let length = data.len();
    if length <= piece {
        return body(0, data);
    }
    let base = Shared(data.as_mut_ptr());
    parallel_for(length, piece, &|range: Range<usize>| {
        // SAFETY: the ranges are disjoint and within the slice, which is borrowed until all are done.
        let chunk =
            unsafe { std::slice::from_raw_parts_mut(base.get().add(range.start), range.len()) };
        body(range.start, chunk);
    });
}
