//! Reductions: sums, means, extremes, variance, norms, cumulative sums, sorting.

use crate::Tensor;
use crate::run::{run, run_one};
use drivetrain_core::{
    ArgReduceOp, CumulativeOp, DType, DimSet, Error, Primitive, ReduceOp, Result,
};

/// Which dimensions: `()` for all, one number, or several; negative ones count from the end.
pub trait IntoDims {
    /// The set for a tensor.
    ///
    /// # Errors
    /// Dimensions out of range or given twice; names `operation`.
    fn dims(&self, operation: &'static str, x: &Tensor) -> Result<DimSet>;
}

impl IntoDims for () {
    fn dims(&self, _: &'static str, x: &Tensor) -> Result<DimSet> {
        Ok(DimSet::all(x.rank()))
    }
}
impl IntoDims for isize {
    #[track_caller]
    fn dims(&self, operation: &'static str, x: &Tensor) -> Result<DimSet> {
        [*self].as_slice().dims(operation, x)
    }
}
impl IntoDims for &[isize] {
    #[track_caller]
    fn dims(&self, operation: &'static str, x: &Tensor) -> Result<DimSet> {
        let mut set = DimSet::EMPTY;
        for &dim in *self {
            let d = x.shape().dim(operation, dim)?;
            if set.contains(d) {
                return Err(Error::argument(
                    operation,
                    format!("dimension {d} given twice in {self:?}"),
                ));
            }
            if x.rank() > 0 {
                set = DimSet::from_bits(set.bits() | 1 << d);
            }
        }
        // As in PyTorch an empty list means all.
        Ok(if self.is_empty() {
            DimSet::all(x.rank())
        } else {
            set
        })
    }
}
impl<const N: usize> IntoDims for [isize; N] {
    #[track_caller]
    fn dims(&self, operation: &'static str, x: &Tensor) -> Result<DimSet> {
        self.as_slice().dims(operation, x)
    }
}
impl IntoDims for DimSet {
    fn dims(&self, _: &'static str, _: &Tensor) -> Result<DimSet> {
        Ok(*self)
    }
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident, $name_keepdim:ident => $method:ident;)*) => {
        impl Tensor {
            $($(#[$doc])*
            ///
            /// # Errors
            /// Dimensions out of range; an extreme of no elements.
            #[track_caller]
            pub fn $name(&self, dims: impl IntoDims) -> Result<Tensor> {
                let dims = dims.dims(stringify!($name), self)?;
                self.$method(dims)?.drop_dims(dims)
            }

            $(#[$doc])*
            /// The reduced dimensions stay with size 1.
            ///
            /// # Errors
            /// Dimensions out of range; an extreme of no elements.
            #[track_caller]
            pub fn $name_keepdim(&self, dims: impl IntoDims) -> Result<Tensor> {
                let dims = dims.dims(stringify!($name), self)?;
                self.$method(dims)
            })*
        }
    };
}

reductions! {
    /// Sum over `dims`; integers and Bool sum as I64, halves are kept in F32 on the way.
    sum, sum_keepdim => sum_over;
    /// Mean over `dims`; of integers and Bool as F32.
    mean, mean_keepdim => mean_over;
    /// Product over `dims`.
    prod, prod_keepdim => prod_over;
    /// Largest over `dims`; NaN wins. Equal ones share the gradient.
    amax, amax_keepdim => amax_over;
    /// Smallest over `dims`; NaN wins. Equal ones share the gradient.
    amin, amin_keepdim => amin_over;
    /// ln Σ eˣ over `dims`, without overflow.
    logsumexp, logsumexp_keepdim => logsumexp_over;
}

impl Tensor {
    #[track_caller]
    fn reduce(&self, op: ReduceOp, dims: DimSet) -> Result<Tensor> {
        let accumulate = self.dtype().accumulator();
        if dims.is_empty() {
            let wide = !self.dtype().is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Prod);
            return if wide {
                self.to_dtype(accumulate)
            } else {
                Ok(self.clone())
            };
        }
        run_one(
            Primitive::Reduce {
                op,
                dims,
                accumulate,
            },
            &[self],
        )
    }

    #[track_caller]
    pub(crate) fn sum_over(&self, dims: DimSet) -> Result<Tensor> {
        self.reduce(ReduceOp::Sum, dims)
    }

    #[track_caller]
    pub(crate) fn amax_over(&self, dims: DimSet) -> Result<Tensor> {
        self.reduce(ReduceOp::Max, dims)
    }

    #[track_caller]
    fn amin_over(&self, dims: DimSet) -> Result<Tensor> {
        self.reduce(ReduceOp::Min, dims)
    }

    #[track_caller]
    fn mean_over(&self, dims: DimSet) -> Result<Tensor> {
        let count: usize = dims.iter().filter_map(|d| self.dims().get(d)).product();
        // Halves are summed and divided in F32 and rounded once: the sum alone could overflow.
        let wide = self.to_dtype(if self.dtype().is_half() {
            DType::F32
        } else {
            self.dtype()
        })?;
        let sum = wide.sum_over(dims)?;
        let mean = sum.div(count as f64)?;
        if self.dtype().is_half() {
            mean.to_dtype(self.dtype())
        } else {
            Ok(mean)
        }
    }

    /// Where a gradient is wanted the product is a tree of pairwise products, so that zeros and higher
    /// derivatives come out right by themselves.
    #[track_caller]
    fn prod_over(&self, dims: DimSet) -> Result<Tensor> {
        if !(self.requires_grad() && crate::is_grad_enabled()) {
            return self.reduce(ReduceOp::Prod, dims);
        }
        let mut x = self.clone();
        for dim in dims.iter() {
            let d = dim as isize;
            if x.dims()[dim] == 0 {
                return self.reduce(ReduceOp::Prod, dims);
            }
            while x.dims()[dim] > 1 {
                let half = x.dims()[dim] / 2;
                let product = x.narrow(d, 0, half)?.mul(&x.narrow(d, half, half)?)?;
                x = match x.dims()[dim] % 2 {
                    0 => product,
                    _ => Tensor::cat(&[&product, &x.narrow(d, 2 * half, 1)?], d)?,
                };
            }
        }
        Ok(x)
    }

    #[track_caller]
    fn logsumexp_over(&self, dims: DimSet) -> Result<Tensor> {
        let x = self.as_float()?;
        let top = x.detach().amax_over(dims)?;
        // Infinite maxima are left in the sum: inf - inf would be NaN.
        let zero = Tensor::zeros(*top.shape(), top.dtype(), top.device())?;
        let top = top.where_(&top.isfinite()?, &zero)?;
        x.sub(&top)?.exp()?.sum_over(dims)?.log()?.add(&top)
    }

    /// Itself, or as F32 when it is not a float.
    pub(crate) fn as_float(&self) -> Result<Tensor> {
        if self.dtype().is_float() {
            Ok(self.clone())
        } else {
            self.to_dtype(DType::F32)
        }
    }

    /// Reduced dimensions of size 1 left out.
    pub(crate) fn drop_dims(&self, dims: DimSet) -> Result<Tensor> {
        if dims.is_empty() {
            return Ok(self.clone());
        }
        let kept: Vec<usize> = (0..self.rank())
            .filter(|&d| !dims.contains(d))
            .map(|d| self.dims()[d])
            .collect();
        self.reshape(kept)
    }

    /// Variance over `dims`: squared deviations from the mean, divided by their number less `correction`
    /// (1: unbiased, 0: of the whole population).
    ///
    /// # Errors
    /// Dimensions out of range.
    #[track_caller]
    pub fn var(&self, dims: impl IntoDims, correction: f64, keepdim: bool) -> Result<Tensor> {
        let dims = dims.dims("var", self)?;
        let x = self.as_float()?;
        let wide = x.to_dtype(if x.dtype().is_half() {
            DType::F32
        } else {
            x.dtype()
        })?;
        let count: usize = dims.iter().filter_map(|d| x.dims().get(d)).product();
        let squares = wide.sub(&wide.mean_over(dims)?)?.square()?.sum_over(dims)?;
        let result = squares
            .div((count as f64 - correction).max(0.0))?
            .to_dtype(x.dtype())?;
        if keepdim {
            Ok(result)
        } else {
            result.drop_dims(dims)
        }
    }

    /// Standard deviation over `dims`, the root of [`Tensor::var`]. Where it is 0 its gradient is 0.
    ///
    /// # Errors
    /// Dimensions out of range.
    #[track_caller]
    pub fn std(&self, dims: impl IntoDims, correction: f64, keepdim: bool) -> Result<Tensor> {
        self.var(dims, correction, keepdim)?.safe_sqrt()
    }

    /// √x with a gradient of 0 where x is 0.
    fn safe_sqrt(&self) -> Result<Tensor> {
        if !self.requires_grad() {
            return self.sqrt();
        }
        let zero = self.detach().eq(0.0)?;
        let one = Tensor::ones(*self.shape(), self.dtype(), self.device())?;
        one.where_(&zero, self)?.sqrt()?.masked_fill(&zero, 0.0)
    }

    /// The `ord`-norm over `dims`: (Σ|x|^ord)^(1/ord); infinity for the largest |x|, 0 for the number of non-zeros.
    /// Where the 2-norm is 0 its gradient is 0.
    ///
    /// # Errors
    /// Dimensions out of range.
    #[track_caller]
    pub fn norm(&self, ord: f64, dims: impl IntoDims, keepdim: bool) -> Result<Tensor> {
        let dims = dims.dims("norm", self)?;
        let x = self.as_float()?;
        let result = if ord == 2.0 {
            x.square()?.sum_over(dims)?.safe_sqrt()?
        } else if ord == 1.0 {
            x.abs()?.sum_over(dims)?
        } else if ord == f64::INFINITY {
            x.abs()?.amax_over(dims)?
        } else if ord == f64::NEG_INFINITY {
            x.abs()?.amin_over(dims)?
        } else if ord == 0.0 {
            x.ne(0.0)?.to_dtype(x.dtype())?.sum_over(dims)?
        } else {
            x.abs()?.pow(ord)?.sum_over(dims)?.pow(1.0 / ord)?
        };
        if keepdim {
            Ok(result)
        } else {
            result.drop_dims(dims)
        }
    }

    /// Index (I64) of the largest along `dim`, the first of equals; NaN counts as the largest.
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    #[track_caller]
    pub fn argmax(&self, dim: isize, keepdim: bool) -> Result<Tensor> {
        self.arg_reduce(ArgReduceOp::Max, dim, keepdim)
    }

    /// Index (I64) of the smallest along `dim`, the first of equals; NaN counts as the smallest.
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    #[track_caller]
    pub fn argmin(&self, dim: isize, keepdim: bool) -> Result<Tensor> {
        self.arg_reduce(ArgReduceOp::Min, dim, keepdim)
    }

    #[track_caller]
    fn arg_reduce(&self, op: ArgReduceOp, dim: isize, keepdim: bool) -> Result<Tensor> {
        let d = self.shape().dim(op.name(), dim)?;
        if self.rank() == 0 {
            return Tensor::zeros((), DType::I64, self.device());
        }
        let index = run_one(Primitive::ArgReduce { op, dim: d as u8 }, &[&self.detach()])?;
        if keepdim {
            Ok(index)
        } else {
            index.squeeze(dim)
        }
    }

    /// Largest along `dim` and its index; the gradient goes to that element alone.
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    #[track_caller]
    pub fn max(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        self.pick(self.argmax(dim, true)?, dim, keepdim)
    }

    /// Smallest along `dim` and its index; the gradient goes to that element alone.
    ///
    /// # Errors
    /// A dimension out of range or of size 0.
    #[track_caller]
    pub fn min(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        self.pick(self.argmin(dim, true)?, dim, keepdim)
    }

    fn pick(&self, index: Tensor, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        if self.rank() == 0 {
            return Ok((self.clone(), index));
        }
        let values = self.gather(dim, &index)?;
        if keepdim {
            Ok((values, index))
        } else {
            Ok((values.squeeze(dim)?, index.squeeze(dim)?))
        }
    }

    /// Running sum along `dim`.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn cumsum(&self, dim: isize) -> Result<Tensor> {
        self.cumulative(CumulativeOp::Sum, dim)
    }

    /// Running product along `dim`. No gradient through zeros: they give NaN there.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn cumprod(&self, dim: isize) -> Result<Tensor> {
        self.cumulative(CumulativeOp::Prod, dim)
    }

    #[track_caller]
    fn cumulative(&self, op: CumulativeOp, dim: isize) -> Result<Tensor> {
        let dim = self.shape().dim(op.name(), dim)?;
        let x = if self.dtype().is_float() {
            self.clone()
        } else {
            self.to_dtype(DType::I64)?
        };
        if self.rank() == 0 {
            return Ok(x);
        }
        run_one(Primitive::Cumulative { op, dim: dim as u8 }, &[&x])
    }

    /// Sorted along `dim`, and the indices (I64) the elements came from. Stable; NaN counts as the largest.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn sort(&self, dim: isize, descending: bool) -> Result<(Tensor, Tensor)> {
        let index = self.argsort(dim, descending)?;
        if self.rank() == 0 {
            return Ok((self.clone(), index));
        }
        Ok((self.gather(dim, &index)?, index))
    }

    /// The indices (I64) that sort along `dim`.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn argsort(&self, dim: isize, descending: bool) -> Result<Tensor> {
        let d = self.shape().dim("sort", dim)? as u8;
        if self.rank() == 0 {
            return Tensor::zeros((), DType::I64, self.device());
        }
        let mut sorted = run(Primitive::Sort { dim: d, descending }, &[&self.detach()])?;
        sorted
            .pop()
            .ok_or_else(|| Error::backend("sort", "no indices"))
    }

    /// The `k` largest (or smallest) along `dim`, in order, and their indices.
    ///
    /// # Errors
    /// A dimension out of range, or `k` larger than its size.
    #[track_caller]
    pub fn topk(&self, k: usize, dim: isize, largest: bool) -> Result<(Tensor, Tensor)> {
        let size = self.size(dim)?;
        if k > size {
            return Err(Error::argument(
                "topk",
                format!(
                    "k {k} is larger than size {size} of dimension {dim} of shape {}",
                    self.shape()
                ),
            ));
        }
        let index = self
            .argsort(dim, largest)?
            .narrow(dim, 0, k)?
            .contiguous()?;
        Ok((self.gather(dim, &index)?, index))
    }

    /// Whether any element is not 0, over all dimensions, as Bool.
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn any(&self) -> Result<Tensor> {
        let truth = self.ne(0)?;
        if truth.elements() == 0 {
            return Tensor::full((), false, DType::Bool, self.device());
        }
        truth.amax(())
    }

    /// Whether all elements are not 0, over all dimensions, as Bool.
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn all(&self) -> Result<Tensor> {
        let truth = self.ne(0)?;
        if truth.elements() == 0 {
            return Tensor::full((), true, DType::Bool, self.device());
        }
        truth.amin(())
    }

    /// Softmax along `dim`. A row of nothing but -inf gives NaN, as in PyTorch.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn softmax(&self, dim: isize) -> Result<Tensor> {
        self.soft(dim, false)
    }

    /// Logarithm of [`Tensor::softmax`], exact for logits of any size.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn log_softmax(&self, dim: isize) -> Result<Tensor> {
        self.soft(dim, true)
    }

    #[track_caller]
    fn soft(&self, dim: isize, log: bool) -> Result<Tensor> {
        let d = self
            .shape()
            .dim(if log { "log_softmax" } else { "softmax" }, dim)? as u8;
        let x = self.as_float()?;
        if self.rank() == 0 {
            return x.reshape([1usize])?.soft(0, log)?.reshape(());
        }
        run_one(drivetrain_core::Composite::Softmax { dim: d, log }, &[&x])
    }
}
