//! Shape changes: views where strides can say it, copies where they cannot.

use crate::Tensor;
use crate::run::run_view;
use drivetrain_core::{Error, IntoShape, MAX_USER_DIMS, Result, Shape, ViewOp};

/// A new shape in which one size may be left to be found out.
pub trait IntoReshape {
    /// The sizes; at most one is -1.
    fn sizes(&self) -> Vec<isize>;
}

impl<const N: usize> IntoReshape for [isize; N] {
    fn sizes(&self) -> Vec<isize> {
        self.to_vec()
    }
}
impl<const N: usize> IntoReshape for [usize; N] {
    fn sizes(&self) -> Vec<isize> {
        self.iter()
            .map(|&d| isize::try_from(d).unwrap_or(isize::MAX))
            .collect()
    }
}
impl<const N: usize> IntoReshape for [i32; N] {
    fn sizes(&self) -> Vec<isize> {
        self.iter().map(|&d| d as isize).collect()
    }
}
impl IntoReshape for &[isize] {
    fn sizes(&self) -> Vec<isize> {
        self.to_vec()
    }
}
impl IntoReshape for &[usize] {
    fn sizes(&self) -> Vec<isize> {
        self.iter()
            .map(|&d| isize::try_from(d).unwrap_or(isize::MAX))
            .collect()
    }
}
impl IntoReshape for Vec<usize> {
    fn sizes(&self) -> Vec<isize> {
        self.as_slice().sizes()
    }
}
impl IntoReshape for Vec<isize> {
    fn sizes(&self) -> Vec<isize> {
        self.clone()
    }
}
impl IntoReshape for &Vec<usize> {
    fn sizes(&self) -> Vec<isize> {
        self.as_slice().sizes()
    }
}
impl IntoReshape for Shape {
    fn sizes(&self) -> Vec<isize> {
        self.dims().sizes()
    }
}
impl IntoReshape for &Shape {
    fn sizes(&self) -> Vec<isize> {
        self.dims().sizes()
    }
}
impl IntoReshape for () {
    fn sizes(&self) -> Vec<isize> {
        Vec::new()
    }
}
impl IntoReshape for isize {
    fn sizes(&self) -> Vec<isize> {
        vec![*self]
    }
}

/// A shape that a user's tensor may have.
#[track_caller]
pub(crate) fn user_shape(operation: &'static str, shape: impl IntoShape) -> Result<Shape> {
    let shape = shape.into_shape()?;
    if shape.rank() > MAX_USER_DIMS {
        return Err(Error::shape(
            operation,
            format!(
                "{} dimensions {shape}, at most {MAX_USER_DIMS}",
                shape.rank()
            ),
        ));
    }
    Ok(shape)
}

impl Tensor {
    /// The same elements, row-major, in another shape; one size may be -1. A view where possible.
    ///
    /// # Errors
    /// Another number of elements; names both shapes.
    #[track_caller]
    pub fn reshape(&self, sizes: impl IntoReshape) -> Result<Tensor> {
        let sizes = sizes.sizes();
        let shape = self.resolve(&sizes)?;
        if shape == *self.shape() {
            return Ok(self.clone());
        }
        run_view(ViewOp::Reshape(shape), self)
    }

    /// [`Tensor::reshape`] that refuses to copy, as `torch.Tensor.view`.
    ///
    /// # Errors
    /// Another number of elements, or strides that no view can say.
    #[track_caller]
    pub fn view(&self, sizes: impl IntoReshape) -> Result<Tensor> {
        let shape = self.resolve(&sizes.sizes())?;
        if self.0.layout.reshape(&shape).is_none() {
            return Err(Error::shape(
                "view",
                format!(
                    "strides {:?} of shape {} cannot be seen as {shape}",
                    self.strides(),
                    self.shape()
                ),
            )
            .help("use reshape, which copies where it must"));
        }
        self.reshape(shape)
    }

    /// The sizes with -1 found out.
    #[track_caller]
    fn resolve(&self, sizes: &[isize]) -> Result<Shape> {
        let refuse = |why: &str| {
            Error::shape(
                "reshape",
                format!(
                    "{} elements of shape {} do not fit {sizes:?}: {why}",
                    self.elements(),
                    self.shape()
                ),
            )
        };
        let mut known = 1usize;
        let mut open = None;
        let mut dims = Vec::with_capacity(sizes.len());
        for (i, &size) in sizes.iter().enumerate() {
            match usize::try_from(size) {
                Ok(size) => {
                    known = known
                        .checked_mul(size)
                        .ok_or_else(|| refuse("size overflow"))?;
                    dims.push(size);
                }
                Err(_) if size == -1 && open.is_none() => {
                    open = Some(i);
                    dims.push(1);
                }
                Err(_) => return Err(refuse("only one size may be -1, and none less")),
            }
        }
        if let Some(i) = open {
            if known == 0 {
                return Err(refuse("-1 beside a size of 0 could be anything"));
            }
            if !self.elements().is_multiple_of(known) {
                return Err(refuse(&format!("not a multiple of {known}")));
            }
            dims[i] = self.elements() / known;
        } else if known != self.elements() {
            return Err(refuse(&format!("that is {known} elements")));
        }
        user_shape("reshape", dims)
    }

    /// Dimensions `start` to `end` (inclusive, negative ones from the end) merged into one. `flatten(1, -1)` keeps the batch.
    ///
    /// # Errors
    /// Dimensions out of range, or `start` after `end`.
    #[track_caller]
    pub fn flatten(&self, start: isize, end: isize) -> Result<Tensor> {
        if self.rank() == 0 {
            return self.reshape([1usize]);
        }
        let (start, end) = (
            self.shape().dim("flatten", start)?,
            self.shape().dim("flatten", end)?,
        );
        if start > end {
            return Err(Error::argument(
                "flatten",
                format!("start {start} comes after end {end}"),
            ));
        }
        let dims = self.dims();
        let mut sizes = dims[..start].to_vec();
        sizes.push(dims[start..=end].iter().product());
        sizes.extend(&dims[end + 1..]);
        self.reshape(sizes)
    }

    /// Dimensions reordered: new dimension `i` is old `order[i]`. A view.
    ///
    /// # Errors
    /// When `order` is not a permutation of the dimensions.
    #[track_caller]
    pub fn permute(&self, order: &[isize]) -> Result<Tensor> {
        if order.len() != self.rank() {
            return Err(Error::argument(
                "permute",
                format!(
                    "{} dimensions {order:?} for shape {}",
                    order.len(),
                    self.shape()
                ),
            ));
        }
        let order = order
            .iter()
            .map(|&d| self.shape().dim("permute", d))
            .collect::<Result<Vec<_>>>()?;
        run_view(ViewOp::permute(&order)?, self)
    }

    /// Two dimensions swapped. A view.
    ///
    /// # Errors
    /// Dimensions out of range.
    #[track_caller]
    pub fn transpose(&self, a: isize, b: isize) -> Result<Tensor> {
        let (a, b) = (
            self.shape().dim("transpose", a)?,
            self.shape().dim("transpose", b)?,
        );
        if self.rank() == 0 {
            return Ok(self.clone());
        }
        let mut order: Vec<usize> = (0..self.rank()).collect();
        order.swap(a, b);
        run_view(ViewOp::permute(&order)?, self)
    }

    /// The transposed matrix. A view.
    ///
    /// # Errors
    /// A rank above 2.
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        match self.rank() {
            0 | 1 => Ok(self.clone()),
            2 => self.transpose(0, 1),
            _ => Err(
                Error::shape("t", format!("shape {} is not a matrix", self.shape()))
                    .help("use transpose(-2, -1)"),
            ),
        }
    }

    /// Broadcast to `shape` by strides of 0. A view.
    ///
    /// # Errors
    /// Sizes that differ and are not 1.
    #[track_caller]
    pub fn expand(&self, shape: impl IntoShape) -> Result<Tensor> {
        let shape = shape.into_shape()?;
        if shape == *self.shape() {
            return Ok(self.clone());
        }
        run_view(ViewOp::Expand(shape), self)
    }

    /// A dimension of size 1 put in at `dim`. A view.
    ///
    /// # Errors
    /// A dimension out of `-rank-1..=rank`.
    #[track_caller]
    pub fn unsqueeze(&self, dim: isize) -> Result<Tensor> {
        let rank = self.rank() as isize;
        if dim < -rank - 1 || dim > rank {
            return Err(Error::argument(
                "unsqueeze",
                format!(
                    "dimension {dim} out of range {} to {rank} for shape {}",
                    -rank - 1,
                    self.shape()
                ),
            ));
        }
        let mut dims = self.dims().to_vec();
        dims.insert(if dim < 0 { dim + rank + 1 } else { dim } as usize, 1);
        self.reshape(dims)
    }

    /// Dimension `dim` left out if its size is 1. A view.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn squeeze(&self, dim: isize) -> Result<Tensor> {
        let dim = self.shape().dim("squeeze", dim)?;
        if self.dims().get(dim) != Some(&1) {
            return Ok(self.clone());
        }
        self.reshape(self.shape().without(dim))
    }

    /// All dimensions of size 1 left out. A view.
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn squeeze_all(&self) -> Result<Tensor> {
        let dims: Vec<usize> = self.dims().iter().copied().filter(|&d| d != 1).collect();
        self.reshape(dims)
    }

    /// Windows of `size` along `dim`, `step` apart, as a new last dimension (`torch.Tensor.unfold`). A view.
    ///
    /// # Errors
    /// When no window fits.
    #[track_caller]
    pub fn unfold(&self, dim: isize, size: usize, step: usize) -> Result<Tensor> {
        let index = self.shape().dim("unfold", dim)?;
        self.size(dim)?;
        run_view(
            ViewOp::Unfold {
                dim: index,
                size,
                step,
            },
            self,
        )
    }

    /// The diagonal of two dimensions as a new last dimension. A view.
    ///
    /// # Errors
    /// Dimensions out of range or equal.
    #[track_caller]
    pub fn diagonal(&self, a: isize, b: isize) -> Result<Tensor> {
        let (a, b) = (
            self.shape().dim("diagonal", a)?,
            self.shape().dim("diagonal", b)?,
        );
        if self.rank() < 2 {
            return Err(Error::shape(
                "diagonal",
                format!("shape {} has no two dimensions", self.shape()),
            ));
        }
        run_view(ViewOp::Diagonal { a, b }, self)
    }
}
