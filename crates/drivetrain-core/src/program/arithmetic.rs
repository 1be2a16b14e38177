//! Short forms for the arithmetic of decompositions.

use super::{Builder, Value};
use crate::{
    BinaryOp, CompareOp, Composite, DType, DimSet, MAX_DIMS, PadSpec, Primitive, ReduceOp, Result,
    Scalar, Shape, UnaryOp, ViewOp,
};

impl Builder {
    /// `x op number`.
    pub fn scalar(&mut self, op: BinaryOp, x: Value, number: impl Into<Scalar>) -> Result<Value> {
        let scalar = number.into();
        let reversed = false;
        self.one(
            Composite::BinaryScalar {
                op,
                scalar,
                reversed,
            },
            &[x],
        )
    }

    /// `number op x`.
    pub fn scalar_left(
        &mut self,
        op: BinaryOp,
        number: impl Into<Scalar>,
        x: Value,
    ) -> Result<Value> {
        let scalar = number.into();
        let reversed = true;
        self.one(
            Composite::BinaryScalar {
                op,
                scalar,
                reversed,
            },
            &[x],
        )
    }

    /// `x op number` as Bool.
    pub fn compare_scalar(
        &mut self,
        op: CompareOp,
        x: Value,
        number: impl Into<Scalar>,
    ) -> Result<Value> {
        let scalar = number.into();
        self.one(Composite::CompareScalar { op, scalar }, &[x])
    }

    /// a + b.
    pub fn add(&mut self, a: Value, b: Value) -> Result<Value> {
        self.binary(BinaryOp::Add, a, b)
    }

    /// a - b.
    pub fn sub(&mut self, a: Value, b: Value) -> Result<Value> {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// a × b.
    pub fn mul(&mut self, a: Value, b: Value) -> Result<Value> {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// a ÷ b.
    pub fn div(&mut self, a: Value, b: Value) -> Result<Value> {
        self.binary(BinaryOp::Div, a, b)
    }

    /// x + number.
    pub fn plus(&mut self, x: Value, number: f64) -> Result<Value> {
        self.scalar(BinaryOp::Add, x, number)
    }

    /// x × number.
    pub fn times(&mut self, x: Value, number: f64) -> Result<Value> {
        self.scalar(BinaryOp::Mul, x, number)
    }

    /// number - x.
    pub fn minus_from(&mut self, number: f64, x: Value) -> Result<Value> {
        self.scalar_left(BinaryOp::Sub, number, x)
    }

    /// -x.
    pub fn neg(&mut self, x: Value) -> Result<Value> {
        self.unary(UnaryOp::Neg, x)
    }

    /// x².
    pub fn square(&mut self, x: Value) -> Result<Value> {
        self.unary(UnaryOp::Square, x)
    }

    /// Sum over dimensions, which stay with size 1.
    pub fn sum(&mut self, x: Value, dims: DimSet) -> Result<Value> {
        self.reduce(ReduceOp::Sum, x, dims)
    }

    /// Mean over dimensions, which stay with size 1.
    pub fn mean(&mut self, x: Value, dims: DimSet) -> Result<Value> {
        let shape = self.shape(x);
        let count: usize = dims.iter().map(|dim| shape[dim]).product();
        let sum = self.sum(x, dims)?;
        self.scalar(BinaryOp::Div, sum, count as f64)
    }

    /// x in its accumulation type, in which halves are computed.
    pub fn wide(&mut self, x: Value) -> Result<Value> {
        self.cast(x, self.meta(x).dtype.accumulator())
    }

    /// `length` elements along `dim`.
    pub fn slice(
        &mut self,
        x: Value,
        dim: usize,
        start: usize,
        step: isize,
        length: usize,
    ) -> Result<Value> {
        if start == 0 && step == 1 && length == self.shape(x)[dim] {
            return Ok(x);
        }
        let view = ViewOp::Slice {
            dim,
            start,
            step,
            length,
        };
        self.view(view, x)
    }

    /// The first elements along each dimension, up to `shape`.
    pub fn crop(&mut self, mut x: Value, shape: &Shape) -> Result<Value> {
        for dim in 0..shape.rank() {
            x = self.slice(x, dim, 0, 1, shape[dim])?;
        }
        Ok(x)
    }

    /// The elements along `dim` in reverse order.
    pub fn flip(&mut self, x: Value, dim: usize) -> Result<Value> {
        match self.shape(x)[dim] {
            0 | 1 => Ok(x),
            length => self.slice(x, dim, length - 1, -1, length),
        }
    }

    /// A new, row-major value of the same elements.
    pub fn copy(&mut self, x: Value) -> Result<Value> {
        self.one(Primitive::Copy, &[x])
    }

    /// x inside `shape` filled with `value`, from index `start` on in steps of `step`.
    pub fn pad(
        &mut self,
        x: Value,
        shape: Shape,
        start: [usize; MAX_DIMS],
        step: [isize; MAX_DIMS],
        value: Scalar,
    ) -> Result<Value> {
        if self.shape(x) == shape && step[..shape.rank()].iter().all(|&step| step == 1) {
            return Ok(x);
        }
        let spec = PadSpec {
            shape,
            start,
            step,
            value,
        };
        self.one(Composite::Pad(Box::new(spec)), &[x])
    }

    /// Zeros of x's shape in `dtype`.
    pub fn zeros(&mut self, dtype: DType, shape: Shape) -> Result<Value> {
        self.fill(0.0, dtype, shape)
    }
}
