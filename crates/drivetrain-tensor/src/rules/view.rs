//! Gradient rules of views and windows.

use super::Grads;
use crate::Tensor;
use crate::autograd::Context;
use drivetrain_core::{DimSet, MAX_DIMS, Result, Scalar, Shape, ViewOp};

/// The gradient of the viewed tensor of this shape.
pub(super) fn backward(view: &ViewOp, g: &Tensor, shape: Shape) -> Result<Tensor> {
    match *view {
        ViewOp::Reshape(_) => g.reshape(shape),
        ViewOp::Permute { order } => {
            let mut inverse = vec![0; shape.rank()];
            for (to, &from) in order[..shape.rank()].iter().enumerate() {
                inverse[from as usize] = to as isize;
            }
            g.permute(&inverse)
        }
        ViewOp::Expand(_) => sum_to(g, shape),
        ViewOp::Slice {
            dim, start, step, ..
        } => {
            let (mut starts, mut steps) = ([0; MAX_DIMS], [1; MAX_DIMS]);
            (starts[dim], steps[dim]) = (start, step);
            g.place(shape, starts, steps, Scalar::I64(0))
        }
        ViewOp::Unfold { dim, size, step } => {
            // One strided slice for each place in the window; the slices overlap and add up.
            let mut sum: Option<Tensor> = None;
            for k in 0..size {
                let (mut starts, mut steps) = ([0; MAX_DIMS], [1; MAX_DIMS]);
                (starts[dim], steps[dim]) = (k, step as isize);
                let part = g
                    .select(-1, k as isize)?
                    .place(shape, starts, steps, Scalar::I64(0))?;
                sum = Some(match sum {
                    None => part,
                    Some(sum) => sum.add(&part)?,
                });
            }
            sum.map_or_else(|| Tensor::zeros(shape, g.dtype(), g.device()), Ok)
        }
        ViewOp::Diagonal { a, b } => {
            let (a, b) = (a.min(b), a.max(b));
            let index = |dim: usize| Tensor::index_along(shape, dim as isize, g.device());
            let on = index(a)?.eq(&index(b)?)?;
            // Row i of the diagonal's dimension, stretched over both.
            let length = shape[a].min(shape[b]);
            let mut spread = g.unsqueeze(-1)?;
            let last = spread.rank() as isize - 1;
            if shape[a] > length {
                let mut padding = vec![(0, 0); spread.rank()];
                padding[last as usize - 1] = (0, shape[a] - length);
                spread = spread.pad_constant(&padding, 0)?;
            }
            let mut order: Vec<isize> = (0..last - 1).collect();
            order.insert(a, last - 1);
            order.insert(b, last);
            let spread = spread.permute(&order)?.expand(shape)?;
            spread.where_(&on, 0.0)
        }
    }
}

/// g summed over what was broadcast from `shape`.
fn sum_to(g: &Tensor, shape: Shape) -> Result<Tensor> {
    let lead = g.rank() - shape.rank();
    let dims: Vec<usize> = (0..g.rank())
        .filter(|&d| d < lead || (shape[d - lead] == 1 && g.dims()[d] != 1))
        .collect();
    g.sum_over(DimSet::of(&dims))?.reshape(shape)
}

/// Gradients of a target with a source written into its window.
pub(super) fn write_backward(window: &[ViewOp], c: &Context, g: &Tensor) -> Result<Grads> {
    let mut inside = g.clone();
    for view in window {
        inside = crate::run::run_view(*view, &inside)?;
    }
    let target = match c.needs(0) {
        true => Some(crate::run::run_write(g, window, &inside.zeros_like()?)?),
        false => None,
    };
    Ok(vec![target, c.needs(1).then_some(inside)])
}
