//! Which composites have kernels of their own; the others run as core's decompositions.

use crate::kernels::{
    activation, batch_norm, convolution, index, loss, matmul, norm, optimizer, pool, scalar,
    softmax,
};
use drivetrain_core::{Composite, DType, Error, Meta, Operand, Result};

/// Whether there is a kernel for this composite and inputs of these dtypes.
pub(crate) fn supports(op: &Composite, inputs: &[Meta]) -> bool {
    let Some(dtype) = inputs.first().map(|meta| meta.dtype) else {
        return false;
    };
    match op {
        Composite::BinaryScalar { op, .. } => scalar::binary_supports(*op, dtype),
        Composite::CompareScalar { .. } => true,
        Composite::Activation { .. }
        | Composite::ActivationGrad { .. }
        | Composite::Softmax { .. }
        | Composite::SoftmaxGrad { .. }
        | Composite::LayerNorm(_)
        | Composite::LayerNormGrad(_)
        | Composite::RmsNorm(_)
        | Composite::RmsNormGrad(_)
        | Composite::BatchNorm { .. }
        | Composite::BatchNormGrad { .. }
        | Composite::CrossEntropy { .. }
        | Composite::CrossEntropyGrad { .. }
        | Composite::Linear
        | Composite::Convolution(_)
        | Composite::ConvolutionInputGrad(_)
        | Composite::ConvolutionWeightGrad(_)
        | Composite::MaxPoolGrad(_)
        | Composite::AvgPool(_)
        | Composite::AvgPoolGrad(_)
        | Composite::SgdStep { .. }
        | Composite::AdamStep { .. } => dtype.is_float(),
        Composite::IndexSelect { .. } | Composite::Concat { .. } | Composite::Pad(_) => true,
        Composite::IndexSelectGrad { .. } | Composite::MaxPool(_) => dtype != DType::Bool,
    }
}

/// Runs a composite that `supports` accepted.
pub(crate) fn execute(
    op: &Composite,
    inputs: &[Operand],
    in_place: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let wrong = || {
        let counts = [inputs.len(), in_place.len(), outputs.len()];
        let text = format!("{counts:?} inputs, in-place operands and outputs do not fit this op");
        Error::argument(op.name(), text)
    };
    // SAFETY: for all arms: core has checked the operands as the contract of `Device::execute` says: they
    // lie in live buffers, dtypes and shapes fit the op, and nobody else touches what is written.
    unsafe {
        match (op, inputs, in_place, outputs) {
            (
                Composite::BinaryScalar {
                    op,
                    scalar,
                    reversed,
                },
                [x],
                [],
                [out],
            ) => scalar::binary(*op, *scalar, *reversed, x, out),
            (Composite::CompareScalar { op, scalar }, [x], [], [out]) => {
                scalar::compare(*op, *scalar, x, out);
                Ok(())
            }
            (Composite::Activation { kind, alpha, beta }, [x], [], [out]) => {
                activation::forward(*kind, [*alpha, *beta], x, out)
            }
            (Composite::ActivationGrad { kind, alpha, beta }, [dy, x], [], [out]) => {
                activation::gradient(*kind, [*alpha, *beta], dy, x, out)
            }
            (Composite::Softmax { dim, log }, [x], [], [out]) => {
                softmax::forward(usize::from(*dim), *log, x, out)
            }
            (Composite::SoftmaxGrad { dim, log }, [dy, y], [], [out]) => {
                softmax::gradient(usize::from(*dim), *log, dy, y, out)
            }
            (Composite::LayerNorm(spec), [_, ..], [], [_, _, _]) => {
                norm::forward(spec, true, inputs, outputs)
            }
            (Composite::RmsNorm(spec), [_, ..], [], [_, _]) => {
                norm::forward(spec, false, inputs, outputs)
            }
            (Composite::LayerNormGrad(spec), [_, _, _, _, ..], [], [_, ..]) => {
                norm::gradient(spec, true, inputs, outputs)
            }
            (Composite::RmsNormGrad(spec), [_, _, _, ..], [], [_, ..]) => {
                norm::gradient(spec, false, inputs, outputs)
            }
            (Composite::BatchNorm { eps, .. }, [_, ..], [], [_, _, _]) => {
                batch_norm::forward(*eps, inputs, outputs)
            }
            (Composite::BatchNormGrad { eps, .. }, [_, _, _, _, ..], [], [_, ..]) => {
                batch_norm::gradient(*eps, inputs, outputs)
            }
            (
                Composite::CrossEntropy {
                    ignore_index,
                    label_smoothing,
                    ..
                },
                [_, _, ..],
                [],
                [_, _, _],
            ) => loss::forward(attributes(*ignore_index, *label_smoothing), inputs, outputs),
            (
                Composite::CrossEntropyGrad {
                    ignore_index,
                    label_smoothing,
                    ..
                },
                [_, _, _, _, ..],
                [],
                [out],
            ) => loss::gradient(attributes(*ignore_index, *label_smoothing), inputs, out),
            (Composite::IndexSelect { dim }, [x, index], [], [out]) => {
                index::select(usize::from(*dim), x, index, out)
            }
            (Composite::IndexSelectGrad { dim, size }, [dy, index], [], [out]) => {
                index::select_gradient(usize::from(*dim), *size, dy, index, out)
            }
            (Composite::Linear, [x, weight, bias @ ..], [], [out]) => {
                matmul::linear(x, weight, bias.first(), out)
            }
            (Composite::Concat { dim }, [_, ..], [], [out]) => {
                index::concat(usize::from(*dim), inputs, out)
            }
            (Composite::Pad(spec), [x], [], [out]) => index::pad(spec, x, out),
            (
                Composite::SgdStep { .. } | Composite::AdamStep { .. },
                [gradient, hyper],
                [_, ..],
                [],
            ) => optimizer::step(op, gradient, hyper, in_place),
            (Composite::Convolution(spec), [x, weight, bias @ ..], [], [out]) => {
                convolution::forward(spec, x, weight, bias.first(), out)
            }
            (Composite::ConvolutionInputGrad(spec), [dy, weight], [], [out]) => {
                convolution::input_gradient(spec, dy, weight, out)
            }
            (Composite::ConvolutionWeightGrad(spec), [dy, x], [], [out]) => {
                convolution::weight_gradient(spec, dy, x, out)
            }
            (Composite::MaxPool(spec), [x], [], [values, indices]) => {
                pool::max(spec, x, values, indices)
            }
            (Composite::MaxPoolGrad(_), [dy, indices], [], [out]) => {
                pool::max_gradient(dy, indices, out)
            }
            (Composite::AvgPool(spec), [x], [], [out]) => pool::average(spec, x, out),
            (Composite::AvgPoolGrad(spec), [dy], [], [out]) => {
                pool::average_gradient(spec, dy, out)
            }
            _ => Err(wrong()),
        }
    }
}

fn attributes(ignore_index: i64, smoothing: f64) -> loss::Attributes {
    loss::Attributes {
        ignore_index,
        smoothing,
    }
}
