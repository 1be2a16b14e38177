//! The one table of gradient rules: what each op keeps, and the gradients it hands back.
//!
//! Rules are written with tensor operations, so that a gradient can have a gradient. A composite may use a
//! fused backward op; where that has no rule of its own, the funnel records its decomposition instead.

mod composite;
mod elementwise;
mod primitive;
mod statistics;
mod view;

use crate::Tensor;
use crate::autograd::{Context, Rule};
use drivetrain_core::{Composite, Op, Result};

/// A gradient for each input, `None` for those that get none.
pub(crate) type Grads = Vec<Option<Tensor>>;

/// Which inputs and outputs an op keeps for backward, as bit masks by position.
#[derive(Clone, Copy, Default)]
pub(crate) struct Saves {
    pub(crate) inputs: u32,
    pub(crate) outputs: u32,
}

impl Saves {
    const NOTHING: Saves = Saves {
        inputs: 0,
        outputs: 0,
    };

    const fn inputs(mask: u32) -> Saves {
        Saves {
            inputs: mask,
            outputs: 0,
        }
    }

    const fn outputs(mask: u32) -> Saves {
        Saves {
            inputs: 0,
            outputs: mask,
        }
    }
}

/// What is kept of an op with so many inputs.
pub(crate) fn saves(rule: &Rule, inputs: usize) -> Saves {
    match rule {
        Rule::View(_) | Rule::Transfer(_) | Rule::Write(_) => Saves::NOTHING,
        Rule::Op(Op::Primitive(op)) => primitive::saves(op),
        Rule::Op(Op::Composite(op)) => composite::saves(op, inputs),
    }
}

/// Whether an op is in this table.
pub(crate) fn has_rule(op: &Op) -> bool {
    !matches!(
        op,
        Op::Composite(
            Composite::ActivationGrad { .. }
                | Composite::SoftmaxGrad { .. }
                | Composite::LayerNormGrad(_)
                | Composite::RmsNormGrad(_)
                | Composite::BatchNormGrad { .. }
                | Composite::CrossEntropyGrad { .. }
        )
    )
}

/// The gradients of a recorded op's inputs, given those of its outputs. At least one of those is there.
pub(crate) fn backward(context: &Context, grads: &[Option<Tensor>]) -> Result<Grads> {
    match context.rule() {
        Rule::View(view) => {
            let grad = first(context, grads)?;
            Ok(vec![Some(view::backward(
                view,
                &grad,
                context.input_meta(0).shape,
            )?)])
        }
        Rule::Transfer(device) => Ok(vec![Some(first(context, grads)?.to(device)?)]),
        Rule::Write(window) => view::write_backward(window, context, &first(context, grads)?),
        Rule::Op(Op::Primitive(op)) => primitive::backward(op, context, &first(context, grads)?),
        Rule::Op(Op::Composite(op)) => composite::backward(op, context, &first(context, grads)?),
    }
}

/// The gradient of the first output. Further float outputs are statistics, which no user sees and which `statistics`
/// computes anew for gradients of gradients, so theirs are always none; should only such a one come, the first
/// counts as zero.
fn first(context: &Context, grads: &[Option<Tensor>]) -> Result<Tensor> {
    match &grads[0] {
        Some(grad) => Ok(grad.clone()),
        None => {
            let meta = context.output_meta(0);
            Tensor::zeros(meta.shape, meta.dtype, context.device())
        }
    }
}
