//! Decompositions: every composite as a program of primitives, written once for all backends.
//!
//! Halves are computed in F32 where PyTorch does so: cast at entry, cast back at exit. A decomposition uses
//! primitives, views, writes and simpler composites only, and no program leads back to its own composite.

mod activation;
mod convolution;
mod index;
mod loss;
mod norm;
mod optimizer;
mod pool;
mod softmax;

use crate::backend::Meta;
use crate::infer::infer;
use crate::program::{Builder, Program, Value};
use crate::{BinaryOp, CompareOp, Composite, Op, Result, Scalar, Shape};

/// The program of primitives (and simpler composites) that computes `op`. Its inputs are the op's inputs and
/// then its in-place operands; its outputs are the op's outputs, or for an op that works in place the new
/// values of the in-place operands. Outputs are row-major and none is an input.
///
/// ```
/// use drivetrain_core::{Composite, DType, Meta, Shape, decompose};
/// let x = Meta::new(DType::F16, Shape::new(&[2, 3])?);
/// let program = decompose(&Composite::Softmax { dim: 1, log: false }, &[x], &[])?;
/// assert_eq!(program.metas[program.outputs[0].0], x);
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
///
/// # Errors
/// As inference does.
#[track_caller]
pub fn decompose(op: &Composite, inputs: &[Meta], in_place: &[Meta]) -> Result<Program> {
    infer(&Op::from(op.clone()), inputs, in_place)?;
    let operands: Vec<Meta> = inputs.iter().chain(in_place).copied().collect();
    let values: Vec<Value> = (0..operands.len()).map(Value).collect();
    let mut builder = Builder::new(&operands);
    let outputs = build(&mut builder, op, &values)?;
    Ok(builder.finish(&outputs))
}

/// Writes the steps of `op` on operands that inference has accepted.
fn build(b: &mut Builder, op: &Composite, v: &[Value]) -> Result<Vec<Value>> {
    let one = |value: Result<Value>| value.map(|value| vec![value]);
    match op {
        Composite::BinaryScalar {
            op,
            scalar,
            reversed,
        } => one(binary_scalar(b, *op, v[0], *scalar, *reversed)),
        Composite::CompareScalar { op, scalar } => one(compare_scalar(b, *op, v[0], *scalar)),
        Composite::Activation { kind, alpha, beta } => {
            one(activation::forward(b, *kind, [*alpha, *beta], v[0]))
        }
        Composite::ActivationGrad { kind, alpha, beta } => {
            one(activation::gradient(b, *kind, [*alpha, *beta], v[0], v[1]))
        }
        Composite::Softmax { dim, log } => one(softmax::forward(b, v[0], *dim, *log)),
        Composite::SoftmaxGrad { dim, log } => one(softmax::gradient(b, v[0], v[1], *dim, *log)),
        Composite::LayerNorm(spec) => norm::layer_norm(b, v, spec),
        Composite::LayerNormGrad(spec) => norm::layer_norm_grad(b, v, spec),
        Composite::RmsNorm(spec) => norm::rms_norm(b, v, spec),
        Composite::RmsNormGrad(spec) => norm::rms_norm_grad(b, v, spec),
        Composite::BatchNorm { eps, affine } => norm::batch_norm(b, v, *eps, *affine),
        Composite::BatchNormGrad { eps, affine } => norm::batch_norm_grad(b, v, *eps, *affine),
        Composite::CrossEntropy {
            ignore_index,
            label_smoothing,
            ..
        } => loss::cross_entropy(b, v, *ignore_index, *label_smoothing),
        Composite::CrossEntropyGrad {
            ignore_index,
            label_smoothing,
            ..
        } => one(loss::cross_entropy_grad(
            b,
            v,
            *ignore_index,
            *label_smoothing,
        )),
        Composite::Convolution(spec) => one(convolution::forward(b, v, spec)),
        Composite::ConvolutionInputGrad(spec) => one(convolution::input_grad(b, v[0], v[1], spec)),
        Composite::ConvolutionWeightGrad(spec) => {
            one(convolution::weight_grad(b, v[0], v[1], spec))
        }
        Composite::MaxPool(spec) => pool::max(b, v[0], spec),
        Composite::MaxPoolGrad(spec) => one(pool::max_grad(b, v[0], v[1], spec)),
        Composite::AvgPool(spec) => one(pool::avg(b, v[0], spec)),
        Composite::AvgPoolGrad(spec) => one(pool::avg_grad(b, v[0], spec)),
        Composite::IndexSelect { dim } => one(index::select(b, v[0], v[1], *dim)),
        Composite::IndexSelectGrad { dim, size } => {
            one(index::select_grad(b, v[0], v[1], *dim, *size))
        }
        Composite::Linear => one(linear(b, v)),
        Composite::Concat { dim } => one(index::concat(b, v, *dim)),
        Composite::Pad(spec) => one(index::pad(b, v[0], spec)),
        Composite::SgdStep { .. } => optimizer::sgd(b, v, op),
        Composite::AdamStep { .. } => optimizer::adam(b, v, op),
    }
}

fn binary_scalar(
    b: &mut Builder,
    op: BinaryOp,
    x: Value,
    scalar: Scalar,
    reversed: bool,
) -> Result<Value> {
    let number = b.fill(scalar, b.meta(x).dtype, Shape::SCALAR)?;
    if reversed {
        b.binary(op, number, x)
    } else {
        b.binary(op, x, number)
    }
}

fn compare_scalar(b: &mut Builder, op: CompareOp, x: Value, scalar: Scalar) -> Result<Value> {
    let number = b.fill(scalar, b.meta(x).dtype, Shape::SCALAR)?;
    b.compare(op, x, number)
}

/// y = x Wᵀ + bias over all rows at once.
fn linear(b: &mut Builder, v: &[Value]) -> Result<Value> {
    let (shape, weight) = (b.shape(v[0]), b.shape(v[1]));
    let (out, features) = (weight[0], weight[1]);
    let rows = shape.dims()[..shape.rank() - 1].iter().product();
    let x = b.reshape(v[0], &[rows, features])?;
    let weight = b.permute(v[1], &[1, 0])?;
    let mut y = b.matmul(x, weight)?;
    if let Some(&bias) = v.get(2) {
        y = b.add(y, bias)?;
    }
    let result = shape.with(shape.rank() - 1, out)?;
    b.reshape(y, result.dims())
}

#[cfg(test)]
mod tests;
