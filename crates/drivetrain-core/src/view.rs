//! View ops as plain data: changes of layout that move no element, for the tape and for programs.

use crate::{Error, Layout, MAX_DIMS, Result, Shape};

/// A change of layout. All but `Reshape` always give a view; `Reshape` may need a copy first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ViewOp {
    /// The same elements, row-major, in this shape.
    Reshape(Shape),
    /// New dimension `i` is old dimension `order[i]`; entries past the rank are unused.
    Permute {
        /// The order.
        order: [u8; MAX_DIMS],
    },
    /// Broadcast to this shape.
    Expand(Shape),
    /// `length` elements along `dim` from `start` in steps of `step`.
    Slice {
        /// The dimension.
        dim: usize,
        /// First index.
        start: usize,
        /// Step, may be negative.
        step: isize,
        /// How many.
        length: usize,
    },
    /// Overlapping windows along `dim` as a new last dimension.
    Unfold {
        /// The dimension.
        dim: usize,
        /// Window size.
        size: usize,
        /// Step between windows.
        step: usize,
    },
    /// The diagonal of two dimensions as a new last dimension.
    Diagonal {
        /// One.
        a: usize,
        /// The other.
        b: usize,
    },
}

impl ViewOp {
    /// A permutation.
    ///
    /// # Errors
    /// When `order` is not a permutation of `0..order.len()`.
    #[track_caller]
    pub fn permute(order: &[usize]) -> Result<ViewOp> {
        let mut codes = [0; MAX_DIMS];
        for (slot, &dim) in codes.iter_mut().zip(order) {
            *slot = u8::try_from(dim).unwrap_or(u8::MAX);
        }
        if order.len() > MAX_DIMS || !is_permutation(&codes[..order.len()]) {
            return Err(Error::argument(
                "permute",
                format!("{order:?} is not a permutation of 0..{}", order.len()),
            ));
        }
        Ok(ViewOp::Permute { order: codes })
    }

    /// The layout after it; `None` when a reshape needs a copy.
    ///
    /// # Errors
    /// When the view does not fit the shape.
    #[track_caller]
    pub fn apply(&self, layout: &Layout) -> Result<Option<Layout>> {
        match *self {
            ViewOp::Reshape(shape) => {
                if shape.elements() != layout.elements() {
                    return Err(Error::shape(
                        "reshape",
                        format!(
                            "{} elements of shape {} do not fit shape {shape} of {}",
                            layout.elements(),
                            layout.shape(),
                            shape.elements()
                        ),
                    ));
                }
                Ok(layout.reshape(&shape))
            }
            ViewOp::Permute { order } => {
                let rank = layout.shape().rank();
                if !is_permutation(&order[..rank]) {
                    return Err(Error::argument(
                        "permute",
                        format!(
                            "{:?} is no permutation for shape {}",
                            &order[..rank],
                            layout.shape()
                        ),
                    ));
                }
                let order = order.map(usize::from);
                Ok(Some(layout.permute(&order[..rank])))
            }
            ViewOp::Expand(shape) => layout.expand(&shape).map(Some),
            ViewOp::Slice {
                dim,
                start,
                step,
                length,
            } => layout.slice(dim, start, step, length).map(Some),
            ViewOp::Unfold { dim, size, step } => layout.unfold(dim, size, step).map(Some),
            ViewOp::Diagonal { a, b } => layout.diagonal(a, b).map(Some),
        }
    }

    /// The shape after it.
    ///
    /// # Errors
    /// As [`ViewOp::apply`].
    #[track_caller]
    pub fn shape(&self, shape: &Shape) -> Result<Shape> {
        let view = self.apply(&Layout::contiguous(*shape))?;
        // A contiguous layout never needs a copy.
        Ok(view.map_or(*shape, |layout| *layout.shape()))
    }
}

/// Whether each of `0..order.len()`, at most [`MAX_DIMS`], is there once.
fn is_permutation(order: &[u8]) -> bool {
    let bit = |&dim: &u8| 1u16.checked_shl(dim.into()).unwrap_or(0);
    let seen = order.iter().fold(0, |seen, dim| seen | bit(dim));
    seen == ((1u32 << order.len()) - 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_permutations_permute() {
        assert!(ViewOp::permute(&[2, 0, 1]).is_ok());
        for order in [&[0, 0][..], &[1, 2], &[0, 1 << 32], &[0; 13], &[300]] {
            let message = ViewOp::permute(order).unwrap_err().to_string();
            assert!(message.contains("not a permutation"), "{message}");
        }
        let shape = Shape::new(&[2, 3]).unwrap();
        let three = ViewOp::permute(&[2, 0, 1]).unwrap();
        assert!(three.shape(&shape).is_err());
        assert_eq!(
            ViewOp::permute(&[1, 0]).unwrap().shape(&shape).unwrap(),
            [3, 2]
        );
        assert!(
            ViewOp::Reshape(Shape::new(&[5]).unwrap())
                .shape(&shape)
                .is_err()
        );
    }
}
