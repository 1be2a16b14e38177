//! Inference: what an op gives for inputs of given dtypes and shapes, and every rule that refuses.

mod check;
mod convolution;
mod elementwise;
mod index;
mod loss;
mod matmul;
mod norm;
mod optimizer;
mod pool;
mod reduce;

use crate::backend::Meta;
use crate::{Composite, DType, Error, Op, Primitive, RandomKind, Result};
use check::Call;
use std::ops::Deref;

/// Dtypes and shapes of an op's outputs; derefs to a slice. One output, the common case, is held inline.
#[derive(Clone)]
pub struct Outputs(Held);

#[derive(Clone)]
enum Held {
    One(Meta),
    Several(Vec<Meta>),
}

impl Outputs {
    /// No output.
    pub const NONE: Outputs = Outputs(Held::Several(Vec::new()));

    /// One output.
    pub const fn one(meta: Meta) -> Outputs {
        Outputs(Held::One(meta))
    }

    /// Several outputs.
    pub fn of(metas: &[Meta]) -> Outputs {
        Outputs(Held::Several(metas.to_vec()))
    }
}

impl Deref for Outputs {
    type Target = [Meta];
    fn deref(&self) -> &[Meta] {
        match &self.0 {
            Held::One(meta) => std::slice::from_ref(meta),
            Held::Several(metas) => metas,
        }
    }
}

impl PartialEq for Outputs {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Outputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Outputs {
    type Item = &'a Meta;
    type IntoIter = std::slice::Iter<'a, Meta>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The outputs of an op for these inputs and in-place operands.
///
/// `Fill`, `Iota` and `Random` take dtype and shape from their output, so for them nothing comes back;
/// [`check_creation`] says whether they may make a given output. A `dim` must be below the rank: scalars are
/// given a dimension by the layer above.
///
/// ```
/// use drivetrain_core::{DType, Meta, Op, Primitive, Shape, infer};
/// let matmul = Op::from(Primitive::Matmul { accumulate: DType::F32 });
/// let a = Meta::new(DType::F32, Shape::new(&[3, 4])?);
/// let b = Meta::new(DType::F32, Shape::new(&[5, 6])?);
/// let error = infer(&matmul, &[a, b], &[]).unwrap_err();
/// assert!(error.to_string().starts_with("matmul: inner sizes differ, lhs [3, 4] rhs [5, 6]"));
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
///
/// # Errors
/// A wrong number of operands, dtypes, shapes or attributes that do not fit: the one place that decides.
#[track_caller]
pub fn infer(op: &Op, inputs: &[Meta], in_place: &[Meta]) -> Result<Outputs> {
    let call = Call {
        name: op.name(),
        inputs,
        in_place,
    };
    let wanted = op.in_place_operands();
    if in_place.len() != wanted {
        return Err(call.argument(format!(
            "{} in-place operands, {wanted} expected",
            in_place.len()
        )));
    }
    match op {
        Op::Primitive(primitive) => infer_primitive(&call, primitive),
        Op::Composite(composite) => infer_composite(&call, composite),
    }
}

#[track_caller]
fn infer_primitive(call: &Call, op: &Primitive) -> Result<Outputs> {
    match *op {
        Primitive::Fill { .. } | Primitive::Iota { .. } => call.operands(0).map(|()| Outputs::NONE),
        Primitive::Random { .. } => random(call),
        Primitive::Cast { to } => elementwise::cast(call, to),
        Primitive::Copy => elementwise::copy(call),
        Primitive::Unary(op) => elementwise::unary(call, op),
        Primitive::Binary(op) => elementwise::binary(call, op),
        Primitive::Compare(_) => elementwise::compare(call),
        Primitive::Where => elementwise::choose(call),
        Primitive::Reduce {
            op,
            dims,
            accumulate,
        } => reduce::reduce(call, op, dims, accumulate),
        Primitive::ArgReduce { dim, .. } => reduce::arg_reduce(call, dim),
        Primitive::Matmul { accumulate } => matmul::matmul(call, accumulate),
        Primitive::Gather { dim } => index::gather(call, dim),
        Primitive::Scatter { dim, mode } => index::scatter(call, dim, mode),
        Primitive::Cumulative { dim, .. } => reduce::cumulative(call, dim),
        Primitive::Sort { dim, .. } => reduce::sort(call, dim),
    }
}

#[track_caller]
fn infer_composite(call: &Call, op: &Composite) -> Result<Outputs> {
    match op {
        Composite::BinaryScalar { op, .. } => elementwise::binary_scalar(call, *op),
        Composite::CompareScalar { .. } => elementwise::compare_scalar(call),
        Composite::Activation { kind, alpha, beta } => {
            elementwise::activation(call, *kind, *alpha, *beta)
        }
        Composite::ActivationGrad { kind, alpha, beta } => {
            elementwise::activation_grad(call, *kind, *alpha, *beta)
        }
        Composite::Softmax { dim, .. } => reduce::softmax(call, *dim),
        Composite::SoftmaxGrad { dim, .. } => reduce::softmax_grad(call, *dim),
        Composite::LayerNorm(spec) => norm::layer_norm(call, spec),
        Composite::LayerNormGrad(spec) => norm::layer_norm_grad(call, spec),
        Composite::RmsNorm(spec) => norm::rms_norm(call, spec),
        Composite::RmsNormGrad(spec) => norm::rms_norm_grad(call, spec),
        Composite::BatchNorm { eps, affine } => norm::batch_norm(call, *eps, *affine),
        Composite::BatchNormGrad { eps, affine } => norm::batch_norm_grad(call, *eps, *affine),
        Composite::CrossEntropy {
            label_smoothing,
            weighted,
            ..
        } => loss::cross_entropy(call, *label_smoothing, *weighted),
        Composite::CrossEntropyGrad {
            label_smoothing,
            weighted,
            ..
        } => loss::cross_entropy_grad(call, *label_smoothing, *weighted),
        Composite::Convolution(spec) => convolution::forward(call, spec),
        Composite::ConvolutionInputGrad(spec) => convolution::input_grad(call, spec),
        Composite::ConvolutionWeightGrad(spec) => convolution::weight_grad(call, spec),
        Composite::MaxPool(spec) => pool::max(call, spec),
        Composite::MaxPoolGrad(spec) => pool::max_grad(call, spec),
        Composite::AvgPool(spec) => pool::avg(call, spec),
        Composite::AvgPoolGrad(spec) => pool::avg_grad(call, spec),
        Composite::IndexSelect { dim } => index::index_select(call, *dim),
        Composite::IndexSelectGrad { dim, size } => index::index_select_grad(call, *dim, *size),
        Composite::Linear => matmul::linear(call),
        Composite::Concat { dim } => index::concat(call, *dim),
        Composite::Pad(spec) => index::pad(call, spec),
        Composite::SgdStep {
            momentum,
            dampening,
            weight_decay,
            nesterov,
            ..
        } => optimizer::sgd(call, [*momentum, *dampening, *weight_decay], *nesterov),
        Composite::AdamStep {
            beta1, beta2, eps, ..
        } => optimizer::adam(call, [*beta1, *beta2], *eps),
    }
}

/// The state operand: seed, stream and offset.
#[track_caller]
fn random(call: &Call) -> Result<Outputs> {
    call.operands(1)?;
    call.dtype(0, "state", DType::I64)?;
    call.shape(0, "state", &[3])?;
    Ok(Outputs::NONE)
}

/// Whether `Fill`, `Iota` or `Random` may make an output of this dtype and shape; other ops always may
/// make what [`infer`] says.
///
/// # Errors
/// `Iota` of Bool or along a dimension that is not there; random bits that are not I64; uniform or normal
/// numbers that are not floats.
#[track_caller]
pub fn check_creation(op: &Op, output: &Meta) -> Result<()> {
    let refuse = |wanted: &str| {
        Err(Error::dtype(
            op.name(),
            format!("output of dtype {}, {wanted} expected", output.dtype),
        ))
    };
    match op {
        Op::Primitive(Primitive::Iota { dim }) => {
            if output.dtype == DType::Bool {
                return refuse("a number");
            }
            check::dim_below_rank(op.name(), *dim, &output.shape).map(|_| ())
        }
        Op::Primitive(Primitive::Random {
            kind: RandomKind::Bits,
        }) if output.dtype != DType::I64 => refuse("I64"),
        Op::Primitive(Primitive::Random {
            kind: RandomKind::Uniform | RandomKind::Normal,
        }) if !output.dtype.is_float() => refuse("a float"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
