//! Reads any operand front to back in blocks of numbers, whatever its strides and stored type.

use crate::element::Stored;
use crate::view::first;
use crate::walk::{Place, Walk};
use drivetrain_core::{Layout, Operand};
use std::marker::PhantomData;

/// Elements worked on at once, so that a few blocks stay in the nearest cache.
pub(crate) const BLOCK: usize = 1024;

/// Runs shorter than this are gathered into a block rather than handed out one by one.
const SHORT: usize = 128;

/// A place in an operand, moving on in row-major order.
pub(crate) struct Cursor<'a, T, C> {
    first: *const T,
    walk: Walk<1>,
    place: Place<1>,
    buffer: Vec<C>,
    operand: PhantomData<&'a [T]>,
}

/// A block of numbers.
#[derive(Clone, Copy)]
pub(crate) enum Block<'a, C> {
    /// As many as asked for.
    Slice(&'a [C]),
    /// All the same.
    Scalar(C),
}

impl<'a, T: Stored<C>, C: Copy> Cursor<'a, T, C> {
    /// At element `number` of an operand.
    ///
    /// # Safety
    /// An input of the running `execute` of type `T`.
    pub(crate) unsafe fn new(operand: &'a Operand, number: usize) -> Cursor<'a, T, C> {
        // SAFETY: the operand's own layout at its own first element.
        unsafe { Cursor::over(first(operand), &operand.layout, number) }
    }

    /// At element `number` of a layout (whose offset is left out) from a first element on.
    ///
    /// # Safety
    /// Every element of the layout is one of an input of the running `execute` of type `T`.
    pub(crate) unsafe fn over(first: *const T, layout: &Layout, number: usize) -> Cursor<'a, T, C> {
        let walk = Walk::new(layout.dims(), [layout.strides()]);
        Cursor {
            first,
            place: walk.place(number),
            walk,
            buffer: Vec::new(),
            operand: PhantomData,
        }
    }

    /// How many elements, at most [`BLOCK`], are best asked for next.
    #[inline]
    pub(crate) fn available(&self) -> usize {
        let left = self.walk.left(&self.place);
        let whole = match self.walk.inner_strides() {
            [0] => true,
            [1] => T::as_numbers(&[]).is_some(),
            _ => false,
        };
        match whole && left >= SHORT {
            true => left.min(BLOCK),
            false => BLOCK,
        }
    }

    /// The next `length` elements, which the operand must have.
    #[inline]
    pub(crate) fn next(&mut self, length: usize) -> Block<'_, C> {
        let [stride] = self.walk.inner_strides();
        if self.walk.left(&self.place) >= length {
            // SAFETY: the place is within the layout.
            let from = unsafe { self.first.offset(self.place.offsets[0]) };
            if stride == 0 {
                self.walk.advance(&mut self.place, length);
                // SAFETY: as above.
                return Block::Scalar(unsafe { *from }.load());
            }
            if stride == 1 {
                // SAFETY: a run has `length` elements from here on.
                let run = unsafe { std::slice::from_raw_parts(from, length) };
                if let Some(numbers) = T::as_numbers(run) {
                    self.walk.advance(&mut self.place, length);
                    return Block::Slice(numbers);
                }
            }
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve(BLOCK.max(length));
        self.append(length, &mut buffer);
        self.buffer = buffer;
        Block::Slice(&self.buffer)
    }

    /// The next `length` elements as a slice.
    #[inline]
    pub(crate) fn next_slice(&mut self, length: usize) -> &[C] {
        // A repeated element is written out.
        if let [0] = self.walk.inner_strides() {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            self.append(length, &mut buffer);
            self.buffer = buffer;
            return &self.buffer;
        }
        match self.next(length) {
            Block::Slice(numbers) => numbers,
            Block::Scalar(_) => unreachable!("the stride is not 0"),
        }
    }

    /// Appends the next `length` elements to `numbers`.
    pub(crate) fn append(&mut self, mut length: usize, numbers: &mut Vec<C>) {
        let [stride] = self.walk.inner_strides();
        while length > 0 {
            let run = self.walk.left(&self.place).min(length);
            // SAFETY: the place is within the layout, and the run has `run` elements from it on.
            unsafe {
                let from = self.first.offset(self.place.offsets[0]);
                match stride {
                    0 => numbers.extend(std::iter::repeat_n((*from).load(), run)),
                    1 => T::load_all(std::slice::from_raw_parts(from, run), numbers),
                    _ => numbers.extend(
                        (0..run as isize).map(|i| (*from.wrapping_offset(i * stride)).load()),
                    ),
                }
            }
            self.walk.advance(&mut self.place, run);
            length -= run;
        }
    }
}
