//! Parts of tensors as views: ranges, steps, single slices, pieces.

use crate::Tensor;
use crate::run::run_view;
use drivetrain_core::{DimSet, Error, Result, ViewOp};

/// First index and length of Python's `start:end:step` along a dimension of `size`; the step is not 0.
pub(crate) fn slice_bounds(
    size: usize,
    start: Option<isize>,
    end: Option<isize>,
    step: isize,
) -> (usize, usize) {
    let size = size as isize;
    let clip = |bound: isize, low: isize, high: isize| {
        let counted = match bound < 0 {
            true => bound.saturating_add(size),
            false => bound,
        };
        counted.clamp(low, high)
    };
    let (first, span) = if step > 0 {
        let first = clip(start.unwrap_or(0), 0, size);
        (first, clip(end.unwrap_or(size), 0, size) - first)
    } else {
        // Walking back: the bound before the first element is written as -1.
        let first = clip(start.unwrap_or(size - 1), -1, size - 1);
        (first, first - end.map_or(-1, |end| clip(end, -1, size - 1)))
    };
    let length = (span.max(0) as usize).div_ceil(step.unsigned_abs());
    (first.max(0) as usize, length)
}

impl Tensor {
    /// `length` elements along `dim` from `start`. A view.
    ///
    /// # Errors
    /// When they leave the dimension.
    #[track_caller]
    pub fn narrow(&self, dim: isize, start: usize, length: usize) -> Result<Tensor> {
        self.slice_steps("narrow", dim, start, 1, length)
    }

    /// The elements along `dim` at `start`, `start + step`, … before `end`, as Python's `start:end:step`:
    /// negative bounds count from the end, bounds outside are clipped. A view.
    ///
    /// # Errors
    /// A step of 0, or a dimension out of range.
    #[track_caller]
    pub fn slice(
        &self,
        dim: isize,
        start: Option<isize>,
        end: Option<isize>,
        step: isize,
    ) -> Result<Tensor> {
        let index = self.shape().dim("slice", dim)?;
        let size = self.size(dim)?;
        if step == 0 {
            return Err(Error::argument(
                "slice",
                format!(
                    "a step of 0 along dimension {index} of shape {}",
                    self.shape()
                ),
            ));
        }
        let (first, length) = slice_bounds(size, start, end, step);
        self.slice_steps("slice", dim, first, step, length)
    }

    #[track_caller]
    fn slice_steps(
        &self,
        operation: &'static str,
        dim: isize,
        start: usize,
        step: isize,
        length: usize,
    ) -> Result<Tensor> {
        let dim = self.shape().dim(operation, dim)?;
        let Some(&size) = self.dims().get(dim) else {
            return Err(Error::argument(operation, "a scalar has no dimensions"));
        };
        if start
            .checked_add(length)
            .is_none_or(|end| step == 1 && end > size)
        {
            return Err(Error::argument(
                operation,
                format!(
                    "{length} elements from {start} leave dimension {dim} of size {size} of shape {}",
                    self.shape()
                ),
            ));
        }
        if (start, step, length) == (0, 1, size) {
            return Ok(self.clone());
        }
        run_view(
            ViewOp::Slice {
                dim,
                start,
                step,
                length,
            },
            self,
        )
    }

    /// The slice at `index` along `dim`, without that dimension; negative indices count from the end. A view.
    ///
    /// # Errors
    /// An index or a dimension out of range.
    #[track_caller]
    pub fn select(&self, dim: isize, index: isize) -> Result<Tensor> {
        let d = self.shape().dim("select", dim)?;
        let size = self.size(dim)? as isize;
        if index < -size || index >= size {
            return Err(Error::argument(
                "select",
                format!(
                    "index {index} out of range for dimension {d} of size {size} of shape {}",
                    self.shape()
                ),
            ));
        }
        let one = self.narrow(dim, index.rem_euclid(size) as usize, 1)?;
        one.reshape(one.shape().without(d))
    }

    /// The order of elements along these dimensions reversed. A view.
    ///
    /// # Errors
    /// Dimensions out of range or given twice.
    #[track_caller]
    pub fn flip(&self, dims: &[isize]) -> Result<Tensor> {
        let mut x = self.clone();
        let mut seen = DimSet::EMPTY;
        for &dim in dims {
            let d = self.shape().dim("flip", dim)?;
            if seen.contains(d) {
                return Err(Error::argument(
                    "flip",
                    format!("dimension {d} given twice in {dims:?}"),
                ));
            }
            seen = DimSet::from_bits(seen.bits() | 1 << d);
            x = x.slice(dim, None, None, -1)?;
        }
        Ok(x)
    }

    /// Cut along `dim` into pieces of `size`; the last may be smaller. Views.
    ///
    /// # Errors
    /// A size of 0, or a dimension out of range.
    #[track_caller]
    pub fn split(&self, size: usize, dim: isize) -> Result<Vec<Tensor>> {
        let total = self.size(dim)?;
        if size == 0 {
            return Err(Error::argument("split", "pieces of size 0"));
        }
        let piece = |start| self.narrow(dim, start, size.min(total - start));
        if total == 0 {
            return Ok(vec![self.clone()]);
        }
        (0..total).step_by(size).map(piece).collect()
    }

    /// Cut along `dim` into at most `chunks` pieces of equal size; the last may be smaller. Views.
    ///
    /// # Errors
    /// No chunks, or a dimension out of range.
    #[track_caller]
    pub fn chunk(&self, chunks: usize, dim: isize) -> Result<Vec<Tensor>> {
        if chunks == 0 {
            return Err(Error::argument("chunk", "0 chunks"));
        }
        self.split(self.size(dim)?.div_ceil(chunks).max(1), dim)
    }
}
