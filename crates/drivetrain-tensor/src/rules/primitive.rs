//! Gradient rules of the primitives.

use super::elementwise::{binary, binary_saves, unary, unary_saves};
use super::{Grads, Saves};
use crate::Tensor;
use crate::autograd::Context;
use drivetrain_core::{CumulativeOp, DimSet, Primitive, ReduceOp, Result, ScatterMode};

/// What each keeps.
pub(super) fn saves(op: &Primitive) -> Saves {
    match op {
        Primitive::Fill { .. }
        | Primitive::Iota { .. }
        | Primitive::Random { .. }
        | Primitive::Cast { .. }
        | Primitive::Copy
        | Primitive::Compare(_)
        | Primitive::ArgReduce { .. }
        | Primitive::Sort { .. }
        | Primitive::Cumulative {
            op: CumulativeOp::Sum,
            ..
        }
        | Primitive::Reduce {
            op: ReduceOp::Sum, ..
        } => Saves::NOTHING,
        Primitive::Unary(op) => unary_saves(*op),
        Primitive::Binary(op) => binary_saves(*op),
        Primitive::Where => Saves::inputs(1),
        Primitive::Reduce { .. } | Primitive::Cumulative { .. } => Saves {
            inputs: 1,
            outputs: 1,
        },
        Primitive::Matmul { .. } => Saves::inputs(0b11),
        Primitive::Gather { .. } | Primitive::Scatter { .. } => Saves::inputs(0b10),
    }
}

/// The gradients of the inputs, given that of the first output.
pub(super) fn backward(op: &Primitive, c: &Context, g: &Tensor) -> Result<Grads> {
    let x_meta = c.input_meta(0);
    Ok(match *op {
        Primitive::Fill { .. }
        | Primitive::Iota { .. }
        | Primitive::Random { .. }
        | Primitive::Compare(_)
        | Primitive::ArgReduce { .. }
        | Primitive::Sort { .. } => vec![None; c.inputs()],
        Primitive::Cast { .. } => vec![Some(g.to_dtype(x_meta.dtype)?)],
        Primitive::Copy => vec![Some(g.clone())],
        Primitive::Unary(op) => vec![Some(unary(op, c, g)?)],
        Primitive::Binary(op) => binary(op, c, g)?,
        Primitive::Where => {
            let (mask, zero) = (c.input(0)?, g.zeros_like()?);
            let a = c.needs(1).then(|| g.where_(&mask, &zero)).transpose()?;
            let b = c.needs(2).then(|| zero.where_(&mask, g)).transpose()?;
            vec![None, a, b]
        }
        Primitive::Reduce { op, dims, .. } => vec![Some(reduce(op, dims, c, g)?)],
        Primitive::Matmul { .. } => {
            let a = c
                .needs(0)
                .then(|| g.matmul(&c.input(1)?.transpose(-1, -2)?))
                .transpose()?;
            let b = c
                .needs(1)
                .then(|| c.input(0)?.transpose(-1, -2)?.matmul(g))
                .transpose()?;
            vec![a, b]
        }
        Primitive::Gather { dim } => {
            let zero = Tensor::zeros(x_meta.shape, x_meta.dtype, g.device())?;
            vec![Some(zero.scatter_add(dim as isize, &c.input(1)?, g)?), None]
        }
        Primitive::Scatter { dim, mode } => {
            let (dim, index) = (dim as isize, c.input(1)?);
            let destination = match mode {
                ScatterMode::Add => g.clone(),
                ScatterMode::Set => {
                    let meta = c.input_meta(2);
                    g.scatter(
                        dim,
                        &index,
                        &Tensor::zeros(meta.shape, meta.dtype, g.device())?,
                    )?
                }
            };
            let source = c.needs(2).then(|| g.gather(dim, &index)).transpose()?;
            vec![Some(destination), None, source]
        }
        Primitive::Cumulative { op, dim } => {
            let dim = dim as isize;
            let from_the_end = |x: &Tensor| x.flip(&[dim])?.cumsum(dim)?.flip(&[dim]);
            vec![Some(match op {
                CumulativeOp::Sum => from_the_end(g)?,
                CumulativeOp::Prod => from_the_end(&g.mul(&c.output(0)?)?)?.div(&c.input(0)?)?,
            })]
        }
    })
}

fn reduce(op: ReduceOp, dims: DimSet, c: &Context, g: &Tensor) -> Result<Tensor> {
    let meta = c.input_meta(0);
    match op {
        ReduceOp::Sum => g.to_dtype(meta.dtype)?.expand(meta.shape),
        ReduceOp::Prod => g.mul(&c.output(0)?)?.div(&c.input(0)?),
        ReduceOp::Max | ReduceOp::Min => {
            // Equal extremes share the gradient evenly.
            let hit = c
                .input(0)?
                .detach()
                .eq(&c.output(0)?.detach())?
                .to_dtype(meta.dtype)?;
            g.div(&hit.sum_over(dims)?)?.mul(&hit)
        }
    }
}
