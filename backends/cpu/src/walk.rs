//! Walks over strided operands: dimensions are merged where strides allow, and the innermost one is handed
//! out as runs of constant stride, so that no index arithmetic is left in inner loops.

use drivetrain_core::MAX_DIMS;
use std::ops::Range;

/// The dimensions that `N` operands of one shape share, merged; offsets count elements from each first one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<const N: usize> {
    rank: usize,
    dims: [usize; MAX_DIMS],
    strides: [[isize; N]; MAX_DIMS],
}

/// A place on a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<const N: usize> {
    index: [usize; MAX_DIMS],
    /// Of each operand's element.
    pub(crate) offsets: [isize; N],
}

impl<const N: usize> Walk<N> {
    /// Row-major over `dims`, none of which is 0.
    pub(crate) fn new(dims: &[usize], strides: [&[isize]; N]) -> Walk<N> {
        let mut walk = Walk {
            rank: 0,
            dims: [1; MAX_DIMS],
            strides: [[1; N]; MAX_DIMS],
        };
        for (d, &size) in dims.iter().enumerate() {
            if size != 1 {
                walk.push(size, strides.map(|s| s[d]));
            }
        }
        walk.rank = walk.rank.max(1);
        walk
    }

    /// Adds an innermost dimension, merged with the last one when each operand's strides allow it.
    pub(crate) fn push(&mut self, size: usize, strides: [isize; N]) {
        if let Some(last) = self.rank.checked_sub(1) {
            let outer = self.strides[last];
            if (0..N).all(|n| outer[n] == strides[n] * size as isize) {
                self.dims[last] *= size;
                self.strides[last] = strides;
                return;
            }
        }
        self.dims[self.rank] = size;
        self.strides[self.rank] = strides;
        self.rank += 1;
    }

    /// Sizes after merging, outermost first; at least one.
    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims[..self.rank]
    }

    /// Strides of each dimension.
    pub(crate) fn strides(&self) -> &[[isize; N]] {
        &self.strides[..self.rank]
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.dims().iter().product()
    }

    /// Each operand's stride within a run.
    pub(crate) fn inner_strides(&self) -> [isize; N] {
        self.strides[self.rank - 1]
    }

    /// The place of the element with this row-major number.
    pub(crate) fn place(&self, mut number: usize) -> Place<N> {
        let mut place = Place {
            index: [0; MAX_DIMS],
            offsets: [0; N],
        };
        for d in (0..self.rank).rev() {
            if number == 0 {
                break;
            }
            let index = number % self.dims[d];
            number /= self.dims[d];
            place.index[d] = index;
            for n in 0..N {
                place.offsets[n] += index as isize * self.strides[d][n];
            }
        }
        place
    }

    /// How many elements are left of the run that `place` is in, itself included.
    #[inline]
    pub(crate) fn left(&self, place: &Place<N>) -> usize {
        self.dims[self.rank - 1] - place.index[self.rank - 1]
    }

    /// Moves on by `steps`, no further than the start of the next run.
    #[inline]
    pub(crate) fn advance(&self, place: &mut Place<N>, steps: usize) {
        let mut d = self.rank - 1;
        place.index[d] += steps;
        for n in 0..N {
            place.offsets[n] += steps as isize * self.strides[d][n];
        }
        while place.index[d] == self.dims[d] && d > 0 {
            for n in 0..N {
                place.offsets[n] -= self.dims[d] as isize * self.strides[d][n];
                place.offsets[n] += self.strides[d - 1][n];
            }
            place.index[d] = 0;
            d -= 1;
            place.index[d] += 1;
        }
    }

    /// Calls `body` with the offsets, the row-major number and the length of every run in a range of numbers.
    #[inline]
    pub(crate) fn runs(&self, range: Range<usize>, mut body: impl FnMut([isize; N], usize, usize)) {
        let mut place = self.place(range.start);
        let mut number = range.start;
        while number < range.end {
            let length = self.left(&place).min(range.end - number);
            body(place.offsets, number, length);
            self.advance(&mut place, length);
            number += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Walk;

    #[test]
    fn contiguous_dimensions_merge() {
        let walk = Walk::new(&[2, 1, 3, 4], [&[12, 99, 4, 1]]);
        assert_eq!(walk.dims(), [24]);
        let walk = Walk::new(&[2, 3, 4], [&[12, 4, 1], &[0, 4, 1]]);
        assert_eq!((walk.dims(), walk.inner_strides()), (&[2, 12][..], [1, 1]));
        assert_eq!(Walk::new(&[], [&[]]).dims(), [1]);
        assert_eq!(Walk::new(&[4, 5], [&[0, 0]]).dims(), [20]);
    }

    #[test]
    fn runs_from_anywhere_give_the_same_offsets() {
        let (dims, strides) = ([3, 4, 5], [7isize, -30, 2]);
        let walk = Walk::new(&dims, [&strides]);
        let mut expected = Vec::new();
        for i in 0..60isize {
            expected.push(i / 20 * 7 + i / 5 % 4 * -30 + i % 5 * 2);
        }
        for start in 0..60 {
            let mut got = Vec::new();
            walk.runs(start..60, |[offset], number, length| {
                assert_eq!(number, start + got.len());
                got.extend((0..length).map(|i| offset + 2 * i as isize));
            });
            assert_eq!(got, expected[start..]);
        }
    }
}
