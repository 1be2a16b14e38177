//! Products and look-ups: matrix products, linear maps, gather, scatter, index-select.

use crate::Tensor;
use crate::elementwise::result_type;
use crate::run::{run_one, run_scatter};
use drivetrain_core::{Composite, DType, Error, Primitive, Result, ScatterMode, Shape};

impl Tensor {
    /// Matrix product of the last two dimensions; leading ones broadcast. A vector counts as a row on the left
    /// and as a column on the right, and the dimension added for it is left out of the result.
    ///
    /// # Errors
    /// Inner sizes that differ, scalars, or batch sizes that do not broadcast.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        if self.rank() == 0 || other.rank() == 0 {
            return Err(Error::shape(
                "matmul",
                format!(
                    "lhs {} rhs {}: a scalar is no matrix",
                    self.shape(),
                    other.shape()
                ),
            )
            .help("use mul"));
        }
        let dtype = result_type(self, other);
        let (lhs, rhs) = (self.to_dtype(dtype)?, other.to_dtype(dtype)?);
        let a = if lhs.rank() == 1 {
            lhs.unsqueeze(0)?
        } else {
            lhs
        };
        let b = if rhs.rank() == 1 {
            rhs.unsqueeze(1)?
        } else {
            rhs
        };
        let (batch_a, batch_b) = (batch(&a)?, batch(&b)?);
        if a.dims()[a.rank() - 1] != b.dims()[b.rank() - 2] {
            return Err(Error::shape(
                "matmul",
                format!(
                    "inner sizes differ, lhs {} rhs {}",
                    self.shape(),
                    other.shape()
                ),
            )
            .on(self.device())
            .help("the last size of lhs must equal the last but one of rhs: transpose one?"));
        }
        // A matrix on the right serves all rows of all batches at once.
        let product = if b.rank() == 2 && a.rank() > 2 && !a.shape().is_empty() {
            let rows: usize = a.dims()[..a.rank() - 1].iter().product();
            let flat = a.reshape([rows, a.dims()[a.rank() - 1]])?;
            let shape = [&a.dims()[..a.rank() - 1], &[b.dims()[1]]].concat();
            product(&flat, &b)?.reshape(shape)?
        } else {
            let common = batch_a.broadcast(&batch_b, "matmul")?;
            let full = |x: &Tensor| {
                let matrix = &x.dims()[x.rank() - 2..];
                x.expand([common.dims(), matrix].concat())
            };
            product(&full(&a)?, &full(&b)?)?
        };
        match (self.rank(), other.rank()) {
            (1, 1) => product.reshape(()),
            (1, _) => product.squeeze(-2),
            (_, 1) => product.squeeze(-1),
            _ => Ok(product),
        }
    }

    /// x·Wᵀ + b over the last dimension: weight [out, in], bias \[out\].
    ///
    /// # Errors
    /// Sizes that differ; names both shapes.
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let inputs: Vec<&Tensor> = [self, weight].into_iter().chain(bias).collect();
        run_one(Composite::Linear, &inputs)
    }

    /// out[…i…] = x[… index[…i…] …] along `dim`; index has x's rank.
    ///
    /// # Errors
    /// An index of another rank, dtype or larger size; an index out of range (perhaps at the next call that waits).
    #[track_caller]
    pub fn gather(&self, dim: isize, index: &Tensor) -> Result<Tensor> {
        let d = self.shape().dim("gather", dim)? as u8;
        run_one(Primitive::Gather { dim: d }, &[self, &as_index(index)?])
    }

    /// x with `source` added at `index` along `dim`: the reverse of [`Tensor::gather`].
    ///
    /// # Errors
    /// As [`Tensor::gather`].
    #[track_caller]
    pub fn scatter_add(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        self.scatter_mode(dim, index, source, ScatterMode::Add)
    }

    /// x with `source` written at `index` along `dim`; of repeated indices the last stays.
    ///
    /// # Errors
    /// As [`Tensor::gather`].
    #[track_caller]
    pub fn scatter(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        self.scatter_mode(dim, index, source, ScatterMode::Set)
    }

    #[track_caller]
    fn scatter_mode(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        mode: ScatterMode,
    ) -> Result<Tensor> {
        let dim = self.shape().dim(mode.name(), dim)? as u8;
        run_scatter(
            Primitive::Scatter { dim, mode },
            self,
            &as_index(index)?,
            source,
        )
    }

    /// The slices of x along `dim` at the indices (I64 \[n\]).
    ///
    /// # Errors
    /// An index that is not a vector; an index out of range (perhaps at the next call that waits).
    #[track_caller]
    pub fn index_select(&self, dim: isize, index: &Tensor) -> Result<Tensor> {
        let d = self.shape().dim("index_select", dim)? as u8;
        run_one(
            Composite::IndexSelect { dim: d },
            &[self, &as_index(index)?],
        )
    }

    /// x with `source`'s slices added at the indices (I64 \[n\]) along `dim`.
    ///
    /// # Errors
    /// As [`Tensor::index_select`].
    #[track_caller]
    pub fn index_add(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let d = self.shape().dim("index_add", dim)?;
        let mut sizes = vec![1; self.rank()];
        if let Some(size) = sizes.get_mut(d) {
            *size = index.elements();
        }
        let index = as_index(index)?.reshape(sizes)?.expand(*source.shape())?;
        self.scatter_add(dim, &index, source)
    }

    /// Rows of this table at `ids` (any shape): ids.shape + \[width\].
    ///
    /// # Errors
    /// A table that is not a matrix; an id out of range (perhaps at the next call that waits).
    #[track_caller]
    pub fn embedding(&self, ids: &Tensor) -> Result<Tensor> {
        let &[_, width] = self.dims() else {
            return Err(Error::shape(
                "embedding",
                format!("weight {} is not a matrix", self.shape()),
            ));
        };
        let rows = self
            .index_select(0, &ids.reshape([-1isize])?)
            .map_err(|e| e.context("embedding"))?;
        rows.reshape([ids.dims(), &[width]].concat())
    }
}

fn batch(x: &Tensor) -> Result<Shape> {
    Shape::new(&x.dims()[..x.rank() - 2])
}

fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let accumulate = a.dtype().accumulator();
    if a.dtype() == DType::Bool {
        return Err(
            Error::dtype("matmul", "Bool has no products").help("to_dtype(DType::F32) first")
        );
    }
    run_one(Primitive::Matmul { accumulate }, &[a, b])
}

/// Indices as I64.
fn as_index(index: &Tensor) -> Result<Tensor> {
    match index.dtype() {
        DType::I64 => Ok(index.clone()),
        DType::I32 | DType::U8 => index.to_dtype(DType::I64),
        other => {
            Err(Error::dtype("index", format!("indices of {other}"))
                .help("to_dtype(DType::I64) first"))
        }
    }
}
