//! Shapes: up to 12 sizes held inline, with checked products and broadcasting.

use crate::{Error, Result};
use std::fmt;

/// The most dimensions that the contract carries (windows of a grouped 3-D convolution need them).
pub const MAX_DIMS: usize = 12;

/// The most dimensions that a user's tensor may have.
pub const MAX_USER_DIMS: usize = 8;

/// The sizes of a tensor's dimensions; sizes of 0 and 1 are ordinary, and rank 0 is a scalar.
///
/// ```
/// use drivetrain_core::Shape;
/// let shape = Shape::new(&[2, 3])?;
/// assert_eq!(shape.elements(), 6);
/// assert_eq!(shape.to_string(), "[2, 3]");
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Shape {
    rank: u8,
    dims: [usize; MAX_DIMS],
}

impl Shape {
    /// The shape of one number.
    pub const SCALAR: Shape = Shape {
        rank: 0,
        dims: [0; MAX_DIMS],
    };

    /// A shape of these sizes.
    ///
    /// # Errors
    /// More than [`MAX_DIMS`] sizes, or more elements than an address space holds.
    #[track_caller]
    pub fn new(dims: &[usize]) -> Result<Shape> {
        if dims.len() > MAX_DIMS {
            return Err(Error::shape(
                "shape",
                format!("{} dimensions {dims:?}, at most {MAX_DIMS}", dims.len()),
            ));
        }
        // Zeros do not hide an overflow: [0, 2^40, 2^40] is refused too, so strides never wrap.
        let product = dims
            .iter()
            .filter(|&&d| d != 0)
            .try_fold(1usize, |p, &d| p.checked_mul(d));
        if product.is_none_or(|p| p > isize::MAX as usize / 8) {
            return Err(Error::shape(
                "shape",
                format!("size overflow, {dims:?} has more elements than memory can address"),
            ));
        }
        Ok(Shape::within(dims))
    }

    // Of sizes that are known to be in bounds.
    fn within(dims: &[usize]) -> Shape {
        let mut shape = Shape {
            rank: dims.len() as u8,
            dims: [0; MAX_DIMS],
        };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape
    }

    /// Number of dimensions.
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The sizes.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank as usize]
    }

    /// Number of elements; 1 for a scalar.
    pub fn elements(&self) -> usize {
        self.dims().iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dims().contains(&0)
    }

    /// `dim`, where negative ones count from the end, as an index.
    ///
    /// # Errors
    /// When it is not in `-rank..rank` (a scalar takes 0 and -1); names `operation`.
    #[track_caller]
    pub fn dim(&self, operation: &'static str, dim: isize) -> Result<usize> {
        let rank = self.rank().max(1) as isize;
        if dim < -rank || dim >= rank {
            let range = format!("{} to {}", -rank, rank - 1);
            return Err(Error::argument(
                operation,
                format!(
                    "dimension {dim} out of range for shape {self} of rank {}, expected {range}",
                    self.rank()
                ),
            ));
        }
        Ok(dim.rem_euclid(rank) as usize)
    }

    /// The shape both broadcast to, as in NumPy: aligned from the last dimension, sizes equal or 1.
    ///
    /// # Errors
    /// Sizes that differ and are not 1; names `operation` and both shapes.
    #[track_caller]
    pub fn broadcast(&self, other: &Shape, operation: &'static str) -> Result<Shape> {
        if self == other {
            return Ok(*self);
        }
        let rank = self.rank().max(other.rank());
        let mut dims = [0; MAX_DIMS];
        for (back, slot) in dims[..rank].iter_mut().rev().enumerate() {
            let size = |s: &Shape| match s.rank().checked_sub(back + 1) {
                Some(i) => s.dims[i],
                None => 1,
            };
            *slot = match (size(self), size(other)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                (a, b) => {
                    return Err(Error::shape(
                        operation,
                        format!("shapes {self} and {other} do not broadcast, sizes {a} and {b} differ at dimension {}", rank - 1 - back),
                    )
                    .help("sizes must be equal or 1, counted from the last dimension"));
                }
            };
        }
        Shape::new(&dims[..rank])
    }

    /// Row-major strides in elements. Dimensions of size 0 count as 1.
    pub fn strides(&self) -> [isize; MAX_DIMS] {
        let mut strides = [0; MAX_DIMS];
        let mut step = 1isize;
        for i in (0..self.rank()).rev() {
            strides[i] = step;
            step *= self.dims[i].max(1) as isize;
        }
        strides
    }

    /// This shape with `dim` set to `size`.
    ///
    /// # Errors
    /// As [`Shape::new`].
    #[track_caller]
    pub fn with(&self, dim: usize, size: usize) -> Result<Shape> {
        let mut dims = *self;
        dims.dims[dim] = size;
        Shape::new(dims.dims())
    }

    /// This shape without `dim`.
    #[must_use]
    pub fn without(&self, dim: usize) -> Shape {
        let mut dims = [0; MAX_DIMS];
        let rank = self.rank() - 1;
        dims[..dim].copy_from_slice(&self.dims[..dim]);
        dims[dim..rank].copy_from_slice(&self.dims[dim + 1..=rank]);
        Shape::within(&dims[..rank])
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.dims() == other.dims()
    }
}

impl Eq for Shape {}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.dims().hash(state);
    }
}

impl std::ops::Index<usize> for Shape {
    type Output = usize;
    fn index(&self, dim: usize) -> &usize {
        &self.dims()[dim]
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.dims() == other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.dims() == other
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What may be given as a shape: arrays, slices, vectors, a single size, `()` and [`Shape`].
pub trait IntoShape {
    /// The shape.
    ///
    /// # Errors
    /// As [`Shape::new`].
    fn into_shape(self) -> Result<Shape>;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}
impl IntoShape for &Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(*self)
    }
}
impl IntoShape for () {
    fn into_shape(self) -> Result<Shape> {
        Ok(Shape::SCALAR)
    }
}
impl IntoShape for usize {
    #[track_caller]
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&[self])
    }
}
impl IntoShape for &[usize] {
    #[track_caller]
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}
impl IntoShape for &Vec<usize> {
    #[track_caller]
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}
impl IntoShape for Vec<usize> {
    #[track_caller]
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}
impl<const N: usize> IntoShape for [usize; N] {
    #[track_caller]
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}
impl<const N: usize> IntoShape for &[usize; N] {
    #[track_caller]
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let shape = |dims: &[usize]| Shape::new(dims).unwrap();
        let both = |a: &[usize], b: &[usize]| shape(a).broadcast(&shape(b), "add");
        assert_eq!(both(&[2, 1, 3], &[3]).unwrap(), [2, 1, 3]);
        assert_eq!(both(&[], &[2, 3]).unwrap(), [2, 3]);
        assert_eq!(both(&[3, 1], &[1, 0]).unwrap(), [3, 0]);
        let message = both(&[2, 4], &[2, 5]).unwrap_err().to_string();
        assert!(
            message.contains("[2, 4]") && message.contains("[2, 5]"),
            "{message}"
        );
    }

    #[test]
    fn too_many_elements_are_refused() {
        let error = Shape::new(&[1 << 33, 1 << 33]).unwrap_err();
        assert!(error.to_string().contains("size overflow"));
        assert!(Shape::new(&[0, 1 << 40, 1 << 40]).is_err());
        assert!(Shape::new(&[1; 13]).is_err());
    }

    #[test]
    fn dims_count_from_both_ends() {
        let shape = Shape::new(&[2, 3]).unwrap();
        assert_eq!(shape.dim("sum", -1).unwrap(), 1);
        assert!(shape.dim("sum", 2).unwrap_err().to_string().contains('2'));
        assert_eq!(Shape::SCALAR.dim("sum", -1).unwrap(), 0);
        assert_eq!(shape.without(0), [3]);
    }
}
