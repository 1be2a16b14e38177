//! Triangles, one-hot rows, outer and inner products, similarity and scaling of vectors.

use crate::Tensor;
use drivetrain_core::{DType, Error, Result};

impl Tensor {
    /// The matrices of the last two dimensions with the elements above the diagonal set to 0. `diagonal` moves it:
    /// above 0 towards the upper right.
    ///
    /// # Errors
    /// A rank below 2.
    #[track_caller]
    pub fn tril(&self, diagonal: isize) -> Result<Tensor> {
        let distance = self.right_of_diagonal("tril")?;
        self.masked_fill(&distance.gt(diagonal as i64)?, 0)
    }

    /// The matrices of the last two dimensions with the elements below the diagonal set to 0. `diagonal` moves it:
    /// above 0 towards the upper right.
    ///
    /// # Errors
    /// A rank below 2.
    #[track_caller]
    pub fn triu(&self, diagonal: isize) -> Result<Tensor> {
        let distance = self.right_of_diagonal("triu")?;
        self.masked_fill(&distance.lt(diagonal as i64)?, 0)
    }

    /// Column less row of each element of the last two dimensions.
    #[track_caller]
    fn right_of_diagonal(&self, name: &'static str) -> Result<Tensor> {
        let &[.., rows, columns] = self.dims() else {
            return Err(Error::shape(
                name,
                format!("shape {} has no matrices", self.shape()),
            ));
        };
        let row = Tensor::index_along([rows, 1], 0, self.device())?;
        let column = Tensor::index_along([1, columns], 1, self.device())?;
        column.sub(&row)
    }

    /// Class numbers (integers of any shape) as rows of zeros with a one: shape + \[classes\], I64. Not given,
    /// `num_classes` is the largest plus one. Reads the numbers on the host, to check them.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{Device, Tensor};
    /// let classes = Tensor::from_slice(&[2i64, 0], [2], &Device::open("cpu")?)?;
    /// assert_eq!(classes.one_hot(3)?.to_vec::<i64>()?, [0, 0, 1, 1, 0, 0]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// A number below 0 or not below `num_classes`, floats or Bool, no numbers and no `num_classes`.
    #[track_caller]
    pub fn one_hot(&self, num_classes: impl Into<Option<usize>>) -> Result<Tensor> {
        let name = "one_hot";
        if !self.dtype().is_int() {
            return Err(Error::dtype(
                name,
                format!("class numbers of {}, integers expected", self.dtype()),
            )
            .help("to_dtype(DType::I64) first"));
        }
        let ids = self.to_dtype(DType::I64)?;
        let values = ids.to_vec::<i64>()?;
        let top = values.iter().copied().max();
        let classes = match (num_classes.into(), top) {
            (Some(classes), _) => classes,
            (None, Some(top)) => usize::try_from(top).map_or(0, |top| top.saturating_add(1)),
            (None, None) => {
                return Err(Error::argument(
                    name,
                    format!(
                        "no class numbers in shape {} and no num_classes",
                        self.shape()
                    ),
                ));
            }
        };
        let outside = |&v: &i64| usize::try_from(v).map_or(true, |v| v >= classes);
        if let Some(at) = values.iter().position(outside) {
            return Err(Error::value(
                name,
                format!(
                    "class {} at position {at} of shape {} is not in 0..{classes}",
                    values[at],
                    self.shape()
                ),
            )
            .on(self.device()));
        }
        let shape = [self.dims(), &[classes]].concat();
        let class = Tensor::index_along([classes], 0, self.device())?;
        let hit = ids.unsqueeze(-1)?.eq(&class)?;
        hit.expand(shape)?.to_dtype(DType::I64)
    }

    /// The products of all pairs of two vectors' elements: \[n\] and \[m\] → [n, m].
    ///
    /// # Errors
    /// Tensors that are not vectors.
    #[track_caller]
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        check_vectors("outer", self, other)?;
        self.unsqueeze(1)?.mul(&other.unsqueeze(0)?)
    }

    /// The sum of the products of two vectors' elements, a scalar.
    ///
    /// # Errors
    /// Tensors that are not vectors, or of different lengths.
    #[track_caller]
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        check_vectors("dot", self, other)?;
        if self.shape() != other.shape() {
            return Err(Error::shape(
                "dot",
                format!("lengths differ, lhs {} rhs {}", self.shape(), other.shape()),
            ));
        }
        self.matmul(other)
    }

    /// Cosine of the angle between the vectors along `dim`: x·y/(max(‖x‖, eps)·max(‖y‖, eps)). Shapes broadcast.
    ///
    /// # Errors
    /// Shapes that do not broadcast, a dimension out of range.
    #[track_caller]
    pub fn cosine_similarity(&self, other: &Tensor, dim: isize, eps: f64) -> Result<Tensor> {
        let name = "cosine_similarity";
        let dtype = crate::elementwise::result_type(self, other);
        let dtype = if dtype.is_float() { dtype } else { DType::F32 };
        let (x, y) = crate::elementwise::broadcast(
            name,
            &self.to_dtype(dtype.accumulator())?,
            &other.to_dtype(dtype.accumulator())?,
        )?;
        x.shape().dim(name, dim)?;
        let length = |x: &Tensor| x.norm(2.0, dim, true)?.maximum(eps);
        let (a, b) = (x.div(&length(&x)?)?, y.div(&length(&y)?)?);
        a.mul(&b)?.sum(dim)?.to_dtype(dtype)
    }

    /// x divided by max(its `p`-norm along `dim`, eps). Where the norm is 0 the result is 0.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn normalize(&self, p: f64, dim: isize, eps: f64) -> Result<Tensor> {
        self.shape().dim("normalize", dim)?;
        let x = self.as_float()?;
        // Halves are computed in F32 and rounded once.
        let wide = x.to_dtype(x.dtype().accumulator())?;
        let length = wide.norm(p, dim, true)?.maximum(eps)?;
        wide.div(&length)?.to_dtype(x.dtype())
    }
}

#[track_caller]
fn check_vectors(name: &'static str, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.rank() == 1 && b.rank() == 1 {
        return Ok(());
    }
    Err(Error::shape(
        name,
        format!("lhs {} rhs {}: two vectors expected", a.shape(), b.shape()),
    )
    .help("use matmul"))
}
