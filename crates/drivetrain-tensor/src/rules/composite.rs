//! Gradient rules of the composites: most name the fused backward op.

use super::elementwise::{scalar, scalar_saves};
use super::{Grads, Saves, statistics};
use crate::Tensor;
use crate::autograd::Context;
use crate::run::{run, run_one};
use drivetrain_core::{
    Composite, ConvolutionSpec, DimSet, MAX_DIMS, PadSpec, PoolSpec, Result, Shape,
};

/// What each keeps.
pub(super) fn saves(op: &Composite, inputs: usize) -> Saves {
    // A list too long for the mask is one of `cat`, which keeps nothing.
    let all = 1u32
        .checked_shl(inputs as u32)
        .map_or(u32::MAX, |bit| bit - 1);
    match op {
        Composite::BinaryScalar { op, reversed, .. } => scalar_saves(*op, *reversed),
        Composite::Activation { .. } => Saves::inputs(1),
        Composite::Softmax { .. } => Saves::outputs(1),
        Composite::LayerNorm(_) | Composite::BatchNorm { .. } => Saves {
            inputs: all & 0b11,
            outputs: 0b110,
        },
        Composite::RmsNorm(_) => Saves {
            inputs: all,
            outputs: 0b10,
        },
        Composite::CrossEntropy { .. } => Saves {
            inputs: all,
            outputs: 0b10,
        },
        Composite::Convolution(_)
        | Composite::ConvolutionInputGrad(_)
        | Composite::ConvolutionWeightGrad(_)
        | Composite::Linear => Saves::inputs(0b11),
        Composite::MaxPool(_) => Saves::outputs(0b10),
        Composite::MaxPoolGrad(_)
        | Composite::IndexSelect { .. }
        | Composite::IndexSelectGrad { .. } => Saves::inputs(0b10),
        Composite::CompareScalar { .. }
        | Composite::AvgPool(_)
        | Composite::AvgPoolGrad(_)
        | Composite::Concat { .. }
        | Composite::Pad(_)
        // Without a rule (recorded through their decompositions), or never recorded.
        | Composite::ActivationGrad { .. }
        | Composite::SoftmaxGrad { .. }
        | Composite::LayerNormGrad(_)
        | Composite::RmsNormGrad(_)
        | Composite::BatchNormGrad { .. }
        | Composite::CrossEntropyGrad { .. }
        | Composite::SgdStep { .. }
        | Composite::AdamStep { .. } => Saves::NOTHING,
    }
}

/// The gradients of the inputs, given that of the first output.
pub(super) fn backward(op: &Composite, c: &Context, g: &Tensor) -> Result<Grads> {
    Ok(match op {
        Composite::BinaryScalar {
            op,
            scalar: s,
            reversed,
        } => vec![Some(scalar(*op, *s, *reversed, c, g)?)],
        Composite::Activation { kind, alpha, beta } => {
            let backward = Composite::ActivationGrad {
                kind: *kind,
                alpha: *alpha,
                beta: *beta,
            };
            vec![Some(run_one(backward, &[g, &c.input(0)?])?)]
        }
        Composite::Softmax { dim, log } => {
            let backward = Composite::SoftmaxGrad {
                dim: *dim,
                log: *log,
            };
            vec![Some(run_one(backward, &[g, &c.output(0)?])?)]
        }
        Composite::LayerNorm(spec) => {
            let kept = statistics::layer_norm(spec, c)?;
            norm(Composite::LayerNormGrad(*spec), &kept, spec.affine, c, g)?
        }
        Composite::RmsNorm(spec) => {
            let kept = statistics::rms_norm(spec, c)?;
            norm(Composite::RmsNormGrad(*spec), &kept, spec.affine, c, g)?
        }
        Composite::BatchNorm { eps, affine } => {
            let kept = statistics::batch_norm(c)?;
            let backward = Composite::BatchNormGrad {
                eps: *eps,
                affine: *affine,
            };
            norm(backward, &kept, *affine, c, g)?
        }
        Composite::CrossEntropy {
            ignore_index,
            label_smoothing,
            weighted,
        } => {
            let backward = Composite::CrossEntropyGrad {
                ignore_index: *ignore_index,
                label_smoothing: *label_smoothing,
                weighted: *weighted,
            };
            let (logits, target) = (c.input(0)?, c.input(1)?);
            let lse = statistics::cross_entropy(c)?;
            let weight = weighted.then(|| c.input(2)).transpose()?;
            let inputs: Vec<&Tensor> = [g, &logits, &lse, &target]
                .into_iter()
                .chain(&weight)
                .collect();
            let mut grads = vec![Some(run_one(backward, &inputs)?)];
            grads.resize(c.inputs(), None);
            grads
        }
        Composite::Convolution(spec) => convolution(spec, c, g)?,
        Composite::ConvolutionInputGrad(spec) => {
            // out = Convᵀ(u, w) and ⟨g, Convᵀ(u, w)⟩ = ⟨Conv(g, w), u⟩.
            let (u, w) = (c.input(0)?, c.input(1)?);
            let du = c
                .needs(0)
                .then(|| run_one(Composite::Convolution(forward(spec)), &[g, &w]))
                .transpose()?;
            let dw = c
                .needs(1)
                .then(|| weight_grad(spec, w.shape(), &u, g))
                .transpose()?;
            vec![du, dw]
        }
        Composite::ConvolutionWeightGrad(spec) => {
            // ⟨h, WeightGrad(dy, x)⟩ = ⟨Conv(x, h), dy⟩.
            let (dy, x) = (c.input(0)?, c.input(1)?);
            let d_dy = c
                .needs(0)
                .then(|| run_one(Composite::Convolution(forward(spec)), &[&x, g]))
                .transpose()?;
            let d_x = c
                .needs(1)
                .then(|| input_grad(spec, x.shape(), &dy, g))
                .transpose()?;
            vec![d_dy, d_x]
        }
        Composite::MaxPool(spec) => {
            let backward = Composite::MaxPoolGrad(pool_of(spec, &c.input_meta(0).shape));
            vec![Some(run_one(backward, &[g, &c.output(1)?])?)]
        }
        Composite::MaxPoolGrad(_) => {
            let index = c.input(1)?;
            let picked = g.flatten(2, -1)?.gather(2, &index.flatten(2, -1)?)?;
            vec![Some(picked.reshape(index.shape())?), None]
        }
        Composite::AvgPool(spec) => {
            vec![Some(run_one(
                Composite::AvgPoolGrad(pool_of(spec, &c.input_meta(0).shape)),
                &[g],
            )?)]
        }
        Composite::AvgPoolGrad(spec) => {
            let forward = PoolSpec {
                sizes: [1; 3],
                ..*spec
            };
            vec![Some(run_one(Composite::AvgPool(forward), &[g])?)]
        }
        Composite::IndexSelect { dim } => {
            let size = c.input_meta(0).shape[*dim as usize];
            let backward = Composite::IndexSelectGrad { dim: *dim, size };
            vec![Some(run_one(backward, &[g, &c.input(1)?])?), None]
        }
        Composite::IndexSelectGrad { dim, .. } => {
            vec![Some(g.index_select(*dim as isize, &c.input(1)?)?), None]
        }
        Composite::Linear => linear(c, g)?,
        Composite::Concat { dim } => {
            let mut start = 0;
            let mut grads = Vec::new();
            for i in 0..c.inputs() {
                let size = c.input_meta(i).shape[*dim as usize];
                grads.push(
                    c.needs(i)
                        .then(|| g.narrow(*dim as isize, start, size))
                        .transpose()?,
                );
                start += size;
            }
            grads
        }
        Composite::Pad(spec) => vec![Some(window(spec, &c.input_meta(0).shape, g)?)],
        Composite::CompareScalar { .. }
        | Composite::ActivationGrad { .. }
        | Composite::SoftmaxGrad { .. }
        | Composite::LayerNormGrad(_)
        | Composite::RmsNormGrad(_)
        | Composite::BatchNormGrad { .. }
        | Composite::CrossEntropyGrad { .. }
        | Composite::SgdStep { .. }
        | Composite::AdamStep { .. } => vec![None; c.inputs()],
    })
}

/// dy, x, the kept statistics, [weight] → dx, [dweight, dbias].
fn norm(
    op: Composite,
    statistics: &[Tensor],
    affine: bool,
    c: &Context,
    g: &Tensor,
) -> Result<Grads> {
    let mut inputs = vec![g.clone(), c.input(0)?];
    inputs.extend_from_slice(statistics);
    if affine {
        inputs.push(c.input(1)?);
    }
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    Ok(run(op, &inputs)?.into_iter().map(Some).collect())
}

fn forward(spec: &ConvolutionSpec) -> ConvolutionSpec {
    ConvolutionSpec {
        sizes: [1; 3],
        ..*spec
    }
}

/// The spatial sizes of a shape [_, _, spatial…], padded with 1.
fn spatial(shape: &Shape) -> [usize; 3] {
    let mut sizes = [1; 3];
    for (slot, &size) in sizes.iter_mut().zip(&shape.dims()[2..]) {
        *slot = size;
    }
    sizes
}

fn input_grad(spec: &ConvolutionSpec, x: &Shape, dy: &Tensor, w: &Tensor) -> Result<Tensor> {
    let spec = ConvolutionSpec {
        sizes: spatial(x),
        ..*spec
    };
    run_one(Composite::ConvolutionInputGrad(spec), &[dy, w])
}

fn weight_grad(spec: &ConvolutionSpec, w: &Shape, dy: &Tensor, x: &Tensor) -> Result<Tensor> {
    let spec = ConvolutionSpec {
        sizes: spatial(w),
        ..*spec
    };
    run_one(Composite::ConvolutionWeightGrad(spec), &[dy, x])
}

fn convolution(spec: &ConvolutionSpec, c: &Context, g: &Tensor) -> Result<Grads> {
    let (x, w) = (c.input(0)?, c.input(1)?);
    let dx = c
        .needs(0)
        .then(|| input_grad(spec, x.shape(), g, &w))
        .transpose()?;
    let dw = c
        .needs(1)
        .then(|| weight_grad(spec, w.shape(), g, &x))
        .transpose()?;
    let mut grads = vec![dx, dw];
    if c.inputs() == 3 {
        let dims = DimSet::from_bits(DimSet::all(g.rank()).bits() & !0b10);
        grads.push(
            c.needs(2)
                .then(|| g.sum_over(dims)?.drop_dims(dims))
                .transpose()?,
        );
    }
    Ok(grads)
}

fn pool_of(spec: &PoolSpec, x: &Shape) -> PoolSpec {
    PoolSpec {
        sizes: spatial(x),
        ..*spec
    }
}

fn linear(c: &Context, g: &Tensor) -> Result<Grads> {
    let (x, w) = (c.input(0)?, c.input(1)?);
    let dx = c.needs(0).then(|| g.matmul(&w)).transpose()?;
    let &[outputs, inputs] = w.dims() else {
        return Ok(vec![None; c.inputs()]);
    };
    let rows: usize = x.dims()[..x.rank() - 1].iter().product();
    let flat = g.reshape([rows, outputs])?;
    let dw = c
        .needs(1)
        .then(|| flat.t()?.matmul(&x.reshape([rows, inputs])?))
        .transpose()?;
    let mut grads = vec![dx, dw];
    if c.inputs() == 3 {
        grads.push(c.needs(2).then(|| flat.sum([0])).transpose()?);
    }
    Ok(grads)
}

/// The window of g that a padded tensor came from.
fn window(spec: &PadSpec, shape: &Shape, g: &Tensor) -> Result<Tensor> {
    let mut x = g.clone();
    for dim in (0..shape.rank()).take(MAX_DIMS) {
        let view = drivetrain_core::ViewOp::Slice {
            dim,
            start: spec.start[dim],
            step: spec.step[dim],
            length: shape[dim],
        };
        x = crate::run::run_view(view, &x)?;
    }
    Ok(x)
}
