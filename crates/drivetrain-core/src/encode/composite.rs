//! Composites to attributes and back.

use super::{Reader, Writer, codes};
use crate::{
    ActivationKind, BinaryOp, CompareOp, Composite, ConvolutionSpec, Error, NormSpec, PadSpec,
    PoolSpec, Result, Shape,
};

pub(super) const fn code(op: &Composite) -> u32 {
    match op {
        Composite::BinaryScalar { .. } => codes::BINARY_SCALAR,
        Composite::CompareScalar { .. } => codes::COMPARE_SCALAR,
        Composite::Activation { .. } => codes::ACTIVATION,
        Composite::ActivationGrad { .. } => codes::ACTIVATION_GRAD,
        Composite::Softmax { .. } => codes::SOFTMAX,
        Composite::SoftmaxGrad { .. } => codes::SOFTMAX_GRAD,
        Composite::LayerNorm(_) => codes::LAYER_NORM,
        Composite::LayerNormGrad(_) => codes::LAYER_NORM_GRAD,
        Composite::RmsNorm(_) => codes::RMS_NORM,
        Composite::RmsNormGrad(_) => codes::RMS_NORM_GRAD,
        Composite::BatchNorm { .. } => codes::BATCH_NORM,
        Composite::BatchNormGrad { .. } => codes::BATCH_NORM_GRAD,
        Composite::CrossEntropy { .. } => codes::CROSS_ENTROPY,
        Composite::CrossEntropyGrad { .. } => codes::CROSS_ENTROPY_GRAD,
        Composite::Convolution(_) => codes::CONVOLUTION,
        Composite::ConvolutionInputGrad(_) => codes::CONVOLUTION_INPUT_GRAD,
        Composite::ConvolutionWeightGrad(_) => codes::CONVOLUTION_WEIGHT_GRAD,
        Composite::MaxPool(_) => codes::MAX_POOL,
        Composite::MaxPoolGrad(_) => codes::MAX_POOL_GRAD,
        Composite::AvgPool(_) => codes::AVG_POOL,
        Composite::AvgPoolGrad(_) => codes::AVG_POOL_GRAD,
        Composite::IndexSelect { .. } => codes::INDEX_SELECT,
        Composite::IndexSelectGrad { .. } => codes::INDEX_SELECT_GRAD,
        Composite::Linear => codes::LINEAR,
        Composite::Concat { .. } => codes::CONCAT,
        Composite::Pad(_) => codes::PAD,
        Composite::SgdStep { .. } => codes::SGD_STEP,
        Composite::AdamStep { .. } => codes::ADAM_STEP,
    }
}

/// The number of the variant that parametrises it, 0 where there is none.
pub(super) const fn variant(op: &Composite) -> u32 {
    match *op {
        Composite::BinaryScalar { op, .. } => op as u32,
        Composite::CompareScalar { op, .. } => op as u32,
        Composite::Activation { kind, .. } | Composite::ActivationGrad { kind, .. } => kind as u32,
        Composite::Softmax { log, .. } | Composite::SoftmaxGrad { log, .. } => log as u32,
        _ => 0,
    }
}

pub(super) fn encode(op: &Composite, w: &mut Writer) {
    match op {
        Composite::BinaryScalar {
            scalar, reversed, ..
        } => w.code(variant(op)).scalar(*scalar).bool(*reversed),
        Composite::CompareScalar { scalar, .. } => w.code(variant(op)).scalar(*scalar),
        Composite::Activation { alpha, beta, .. }
        | Composite::ActivationGrad { alpha, beta, .. } => {
            w.code(variant(op)).float(*alpha).float(*beta)
        }
        Composite::Softmax { dim, log } | Composite::SoftmaxGrad { dim, log } => {
            w.int((*dim).into()).bool(*log)
        }
        Composite::LayerNorm(spec)
        | Composite::LayerNormGrad(spec)
        | Composite::RmsNorm(spec)
        | Composite::RmsNormGrad(spec) => {
            (w.int(spec.dims.into())).float(spec.eps).bool(spec.affine)
        }
        Composite::BatchNorm { eps, affine } | Composite::BatchNormGrad { eps, affine } => {
            w.float(*eps).bool(*affine)
        }
        Composite::CrossEntropy {
            ignore_index,
            label_smoothing,
            weighted,
        }
        | Composite::CrossEntropyGrad {
            ignore_index,
            label_smoothing,
            weighted,
        } => (w.int(*ignore_index))
            .float(*label_smoothing)
            .bool(*weighted),
        Composite::Convolution(spec)
        | Composite::ConvolutionInputGrad(spec)
        | Composite::ConvolutionWeightGrad(spec) => (w.int(spec.spatial.into()))
            .sizes(&spec.stride)
            .sizes(&spec.padding)
            .sizes(&spec.dilation)
            .size(spec.groups)
            .sizes(&spec.sizes),
        Composite::MaxPool(spec)
        | Composite::MaxPoolGrad(spec)
        | Composite::AvgPool(spec)
        | Composite::AvgPoolGrad(spec) => (w.int(spec.spatial.into()))
            .sizes(&spec.kernel)
            .sizes(&spec.stride)
            .sizes(&spec.padding)
            .sizes(&spec.dilation)
            .bool(spec.ceil_mode)
            .bool(spec.count_include_pad)
            .sizes(&spec.sizes),
        Composite::IndexSelect { dim } | Composite::Concat { dim } => w.int((*dim).into()),
        Composite::IndexSelectGrad { dim, size } => w.int((*dim).into()).size(*size),
        Composite::Linear => w,
        Composite::Pad(spec) => {
            let rank = spec.shape.rank();
            (w.sizes(spec.shape.dims()))
                .sizes(&spec.start[..rank])
                .steps(&spec.step[..rank])
                .scalar(spec.value)
        }
        Composite::SgdStep {
            momentum,
            dampening,
            weight_decay,
            nesterov,
            maximize,
        } => (w.float(*momentum).float(*dampening))
            .float(*weight_decay)
            .bool(*nesterov)
            .bool(*maximize),
        Composite::AdamStep {
            beta1,
            beta2,
            eps,
            weight_decay,
            decoupled,
            amsgrad,
            maximize,
        } => (w.float(*beta1).float(*beta2))
            .float(*eps)
            .float(*weight_decay)
            .bool(*decoupled)
            .bool(*amsgrad)
            .bool(*maximize),
    };
}

pub(super) fn decode(r: &mut Reader) -> Result<Composite> {
    Ok(match r.code {
        codes::BINARY_SCALAR => Composite::BinaryScalar {
            op: r.variant(BinaryOp::from_code)?,
            scalar: r.scalar()?,
            reversed: r.bool()?,
        },
        codes::COMPARE_SCALAR => Composite::CompareScalar {
            op: r.variant(CompareOp::from_code)?,
            scalar: r.scalar()?,
        },
        codes::ACTIVATION => Composite::Activation {
            kind: r.variant(ActivationKind::from_code)?,
            alpha: r.float()?,
            beta: r.float()?,
        },
        codes::ACTIVATION_GRAD => Composite::ActivationGrad {
            kind: r.variant(ActivationKind::from_code)?,
            alpha: r.float()?,
            beta: r.float()?,
        },
        codes::SOFTMAX => Composite::Softmax {
            dim: r.dim()?,
            log: r.bool()?,
        },
        codes::SOFTMAX_GRAD => Composite::SoftmaxGrad {
            dim: r.dim()?,
            log: r.bool()?,
        },
        codes::LAYER_NORM => Composite::LayerNorm(norm(r)?),
        codes::LAYER_NORM_GRAD => Composite::LayerNormGrad(norm(r)?),
        codes::RMS_NORM => Composite::RmsNorm(norm(r)?),
        codes::RMS_NORM_GRAD => Composite::RmsNormGrad(norm(r)?),
        codes::BATCH_NORM => Composite::BatchNorm {
            eps: r.float()?,
            affine: r.bool()?,
        },
        codes::BATCH_NORM_GRAD => Composite::BatchNormGrad {
            eps: r.float()?,
            affine: r.bool()?,
        },
        codes::CROSS_ENTROPY => Composite::CrossEntropy {
            ignore_index: r.int()?,
            label_smoothing: r.float()?,
            weighted: r.bool()?,
        },
        codes::CROSS_ENTROPY_GRAD => Composite::CrossEntropyGrad {
            ignore_index: r.int()?,
            label_smoothing: r.float()?,
            weighted: r.bool()?,
        },
        codes::CONVOLUTION => Composite::Convolution(convolution(r)?),
        codes::CONVOLUTION_INPUT_GRAD => Composite::ConvolutionInputGrad(convolution(r)?),
        codes::CONVOLUTION_WEIGHT_GRAD => Composite::ConvolutionWeightGrad(convolution(r)?),
        codes::MAX_POOL => Composite::MaxPool(pool(r)?),
        codes::MAX_POOL_GRAD => Composite::MaxPoolGrad(pool(r)?),
        codes::AVG_POOL => Composite::AvgPool(pool(r)?),
        codes::AVG_POOL_GRAD => Composite::AvgPoolGrad(pool(r)?),
        codes::INDEX_SELECT => Composite::IndexSelect { dim: r.dim()? },
        codes::INDEX_SELECT_GRAD => Composite::IndexSelectGrad {
            dim: r.dim()?,
            size: r.size()?,
        },
        codes::LINEAR => Composite::Linear,
        codes::CONCAT => Composite::Concat { dim: r.dim()? },
        codes::PAD => Composite::Pad(Box::new(pad(r)?)),
        codes::SGD_STEP => Composite::SgdStep {
            momentum: r.float()?,
            dampening: r.float()?,
            weight_decay: r.float()?,
            nesterov: r.bool()?,
            maximize: r.bool()?,
        },
        codes::ADAM_STEP => Composite::AdamStep {
            beta1: r.float()?,
            beta2: r.float()?,
            eps: r.float()?,
            weight_decay: r.float()?,
            decoupled: r.bool()?,
            amsgrad: r.bool()?,
            maximize: r.bool()?,
        },
        _ => return Err(r.unknown()),
    })
}

fn norm(r: &mut Reader) -> Result<NormSpec> {
    Ok(NormSpec {
        dims: r.dim()?,
        eps: r.float()?,
        affine: r.bool()?,
    })
}

fn convolution(r: &mut Reader) -> Result<ConvolutionSpec> {
    Ok(ConvolutionSpec {
        spatial: r.dim()?,
        stride: r.three()?,
        padding: r.three()?,
        dilation: r.three()?,
        groups: r.size()?,
        sizes: r.three()?,
    })
}

fn pool(r: &mut Reader) -> Result<PoolSpec> {
    Ok(PoolSpec {
        spatial: r.dim()?,
        kernel: r.three()?,
        stride: r.three()?,
        padding: r.three()?,
        dilation: r.three()?,
        ceil_mode: r.bool()?,
        count_include_pad: r.bool()?,
        sizes: r.three()?,
    })
}

fn pad(r: &mut Reader) -> Result<PadSpec> {
    let (dims, rank): ([usize; crate::MAX_DIMS], usize) = r.array(0)?;
    let shape = Shape::new(&dims[..rank])?;
    let (start, starts) = r.array(0)?;
    let (step, steps) = r.array(1)?;
    if starts != rank || steps != rank {
        return Err(Error::format(
            "decode",
            format!("pad to shape {shape} with {starts} starts and {steps} steps"),
        ));
    }
    Ok(PadSpec {
        shape,
        start,
        step,
        value: r.scalar()?,
    })
}
