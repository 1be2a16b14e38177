//! `Where`: one of two operands, element by element.

use super::map::{PIECE, Sink};
use crate::cursor::{Block, Cursor};
use crate::element::Stored;
use crate::parallel;
use crate::simd::{self, Kernel};
use crate::view::{slice_mut, untransposed};
use drivetrain_core::Operand;

/// `out = condition ? a : b`. Elements are moved by their size alone.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn select(condition: &Operand, a: &Operand, b: &Operand, out: &Operand) {
    // SAFETY: the types are as large as the dtypes; the rest as the caller promises.
    unsafe {
        match a.dtype.size() {
            1 => sized::<u8>(condition, a, b, out),
            2 => sized::<u16>(condition, a, b, out),
            4 => sized::<u32>(condition, a, b, out),
            _ => sized::<u64>(condition, a, b, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn sized<T: Stored<T> + Default>(
    condition: &Operand,
    a: &Operand,
    b: &Operand,
    out: &Operand,
) {
    let mut rooms = [Vec::new(), Vec::new(), Vec::new()];
    let [room_c, room_a, room_b] = &mut rooms;
    // SAFETY: as the caller promises.
    let condition = unsafe { untransposed(condition, room_c) };
    // SAFETY: as the caller promises.
    let (a, b) = unsafe { (untransposed(a, room_a), untransposed(b, room_b)) };
    // SAFETY: as the caller promises.
    let out = unsafe { slice_mut::<T>(out) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        // SAFETY: as the caller promises, here and below.
        let mut condition = unsafe { Cursor::<u8, u8>::new(&condition, start) };
        // SAFETY: as above.
        let mut a = unsafe { Cursor::<T, T>::new(&a, start) };
        // SAFETY: as above.
        let mut b = unsafe { Cursor::<T, T>::new(&b, start) };
        let mut sink = Sink::new(chunk);
        while let Some(room) = sink.room() {
            let length = room
                .min(condition.available())
                .min(a.available())
                .min(b.available());
            sink.write(length, |out| {
                let condition = condition.next_slice(length);
                let (a, b) = (a.next(length), b.next(length));
                simd::run(Select {
                    condition,
                    a,
                    b,
                    out,
                });
            });
        }
    });
}

struct Select<'a, T> {
    condition: &'a [u8],
    a: Block<'a, T>,
    b: Block<'a, T>,
    out: &'a mut [T],
}

impl<T: Copy> Kernel for Select<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let pairs = self.out.iter_mut().zip(self.condition);
        match (self.a, self.b) {
            (Block::Slice(a), Block::Slice(b)) => {
                for (((out, &condition), &a), &b) in pairs.zip(a).zip(b) {
                    *out = if condition != 0 { a } else { b };
                }
            }
            (Block::Slice(a), Block::Scalar(b)) => {
                for ((out, &condition), &a) in pairs.zip(a) {
                    *out = if condition != 0 { a } else { b };
                }
            }
            (Block::Scalar(a), Block::Slice(b)) => {
                for ((out, &condition), &b) in pairs.zip(b) {
                    *out = if condition != 0 { a } else { b };
                }
            }
            (Block::Scalar(a), Block::Scalar(b)) => {
                for (out, &condition) in pairs {
                    *out = if condition != 0 { a } else { b };
                }
            }
        }
    }
}
