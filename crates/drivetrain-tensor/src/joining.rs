//! Larger tensors out of smaller ones: joined, stacked, repeated, padded.

use crate::Tensor;
use crate::run::run_one;
use drivetrain_core::{Composite, Error, IntoShape, MAX_DIMS, PadSpec, Result, Scalar, Shape};

impl Tensor {
    /// Tensors end to end along `dim`. Float types promote among themselves, and so do integer types.
    ///
    /// # Errors
    /// No tensors, shapes that differ off `dim`, or floats beside integers (PyTorch would convert them silently;
    /// joined lists of both are more often a mistake, such as labels beside features).
    #[track_caller]
    pub fn cat(tensors: &[&Tensor], dim: isize) -> Result<Tensor> {
        let Some(first) = tensors.first() else {
            return Err(Error::argument("cat", "no tensors"));
        };
        let dtype = tensors
            .iter()
            .fold(first.dtype(), |d, t| d.promote(t.dtype()));
        if let Some(other) = tensors
            .iter()
            .find(|t| t.dtype().is_float() != first.dtype().is_float())
        {
            return Err(Error::dtype(
                "cat",
                format!(
                    "{} {} beside {} {}",
                    first.dtype(),
                    first.shape(),
                    other.dtype(),
                    other.shape()
                ),
            )
            .help("to_dtype one of them, if that is what is meant"));
        }
        let cast = tensors
            .iter()
            .map(|t| t.to_dtype(dtype))
            .collect::<Result<Vec<_>>>()?;
        let cast: Vec<&Tensor> = cast.iter().collect();
        if first.rank() == 0 {
            return Err(
                Error::shape("cat", "scalars have no dimension to go along").help("use stack")
            );
        }
        let dim = first.shape().dim("cat", dim)? as u8;
        if let [only] = cast[..] {
            return Ok(only.clone());
        }
        run_one(Composite::Concat { dim }, &cast)
    }

    /// Tensors of one shape side by side along a new dimension `dim`.
    ///
    /// # Errors
    /// No tensors, or shapes that differ.
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], dim: isize) -> Result<Tensor> {
        if let [first, rest @ ..] = tensors
            && let Some(other) = rest.iter().find(|t| t.shape() != first.shape())
        {
            return Err(Error::shape(
                "stack",
                format!("shapes {} and {} differ", first.shape(), other.shape()),
            ));
        }
        let rows = tensors
            .iter()
            .map(|t| t.unsqueeze(dim))
            .collect::<Result<Vec<_>>>()?;
        Tensor::cat(&rows.iter().collect::<Vec<_>>(), dim)
    }

    /// The tensor `repeats[i]` times along each dimension (more repeats than dimensions add leading ones).
    ///
    /// # Errors
    /// Fewer repeats than dimensions.
    #[track_caller]
    pub fn repeat(&self, repeats: &[usize]) -> Result<Tensor> {
        let Some(lead) = repeats.len().checked_sub(self.rank()) else {
            return Err(Error::argument(
                "repeat",
                format!(
                    "{} repeats {repeats:?} for shape {}",
                    repeats.len(),
                    self.shape()
                ),
            ));
        };
        // One at a time, so that no more than two extra dimensions are ever needed.
        let mut x = self.reshape([vec![1; lead], self.dims().to_vec()].concat())?;
        for (dim, &times) in repeats.iter().enumerate() {
            if times == 1 {
                continue;
            }
            let dims = x.dims().to_vec();
            let size = dims[dim]
                .checked_mul(times)
                .ok_or_else(|| Error::shape("repeat", "size overflow"))?;
            let (before, after) = (
                dims[..dim].iter().product::<usize>(),
                dims[dim..].iter().product::<usize>(),
            );
            let wide = x
                .reshape([before, 1, after])?
                .expand([before, times, after])?;
            x = wide.reshape([&dims[..dim], &[size], &dims[dim + 1..]].concat())?;
        }
        Ok(x)
    }

    /// Elements moved along `dim` by `shift` places, those that fall off coming in again at the other end.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn roll(&self, shift: isize, dim: isize) -> Result<Tensor> {
        let size = self.size(dim)?;
        if size == 0 {
            return Ok(self.clone());
        }
        let cut = size - shift.rem_euclid(size as isize) as usize;
        let (head, tail) = (
            self.narrow(dim, 0, cut)?,
            self.narrow(dim, cut, size - cut)?,
        );
        Tensor::cat(&[&tail, &head], dim)
    }

    /// Put into a tensor of `value` with `before` and `after` elements added to each dimension.
    ///
    /// # Errors
    /// Not one pair a dimension, or sizes that overflow.
    #[track_caller]
    pub fn pad_constant(
        &self,
        padding: &[(usize, usize)],
        value: impl Into<Scalar>,
    ) -> Result<Tensor> {
        if padding.len() != self.rank() {
            return Err(Error::argument(
                "pad",
                format!(
                    "{} pairs {padding:?} for shape {}",
                    padding.len(),
                    self.shape()
                ),
            ));
        }
        let mut start = [0; MAX_DIMS];
        let mut dims = Vec::new();
        for (i, (&(before, after), &size)) in padding.iter().zip(self.dims()).enumerate() {
            start[i] = before;
            let total = size.checked_add(before).and_then(|t| t.checked_add(after));
            dims.push(total.ok_or_else(|| Error::shape("pad", "size overflow"))?);
        }
        self.place(dims.into_shape()?, start, [1; MAX_DIMS], value.into())
    }

    /// This tensor in a window of a larger one filled with `value`.
    #[track_caller]
    pub(crate) fn place(
        &self,
        shape: Shape,
        start: [usize; MAX_DIMS],
        step: [isize; MAX_DIMS],
        value: Scalar,
    ) -> Result<Tensor> {
        let spec = PadSpec {
            shape,
            start,
            step,
            value,
        };
        run_one(Composite::Pad(Box::new(spec)), &[self])
    }
}
