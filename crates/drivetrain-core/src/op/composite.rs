//! The composites: ops that a backend may run natively and that core can always decompose.

use super::kinds::{ActivationKind, BinaryOp, CompareOp};
use crate::{MAX_DIMS, Scalar, Shape};

/// An op with a decomposition into primitives (`decompose`). The set is open: a backend answers
/// "unsupported" for what it does not know.
///
/// In the signatures below `[x]` marks an optional operand and `→` the outputs in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Composite {
    /// x → out: `x op scalar`, or `scalar op x` when `reversed`.
    BinaryScalar {
        /// Which.
        op: BinaryOp,
        /// The number, cast to x's dtype.
        scalar: Scalar,
        /// Whether the number is on the left.
        reversed: bool,
    },
    /// x → Bool: `x op scalar`.
    CompareScalar {
        /// Which.
        op: CompareOp,
        /// The number, cast to x's dtype.
        scalar: Scalar,
    },
    /// x → y.
    Activation {
        /// Which.
        kind: ActivationKind,
        /// See [`ActivationKind`].
        alpha: f64,
        /// See [`ActivationKind`].
        beta: f64,
    },
    /// dy, x → dx.
    ActivationGrad {
        /// Which.
        kind: ActivationKind,
        /// See [`ActivationKind`].
        alpha: f64,
        /// See [`ActivationKind`].
        beta: f64,
    },
    /// x → y: softmax along `dim`, or its logarithm.
    Softmax {
        /// Along which dimension.
        dim: u8,
        /// Whether the logarithm.
        log: bool,
    },
    /// dy, y → dx, where y is the forward output.
    SoftmaxGrad {
        /// Along which dimension.
        dim: u8,
        /// Whether the logarithm.
        log: bool,
    },
    /// x, [weight, bias when affine] → y, mean, rstd (of the accumulation type, trailing dims size 1).
    LayerNorm(NormSpec),
    /// dy, x, mean, rstd, \[weight\] → dx, [dweight, dbias].
    LayerNormGrad(NormSpec),
    /// x, [weight when affine] → y, rstd.
    RmsNorm(NormSpec),
    /// dy, x, rstd, \[weight\] → dx, \[dweight\].
    RmsNormGrad(NormSpec),
    /// x [N, C, …], [weight, bias when affine] → y, mean \[C\], variance \[C\] (biased; both of the accumulation
    /// type): training mode.
    BatchNorm {
        /// Added to the variance.
        eps: f64,
        /// Whether weight and bias are given.
        affine: bool,
    },
    /// dy, x, mean, variance, \[weight\] → dx, [dweight, dbias].
    BatchNormGrad {
        /// Added to the variance.
        eps: f64,
        /// Whether the weight is given.
        affine: bool,
    },
    /// logits [N, C, …], target I64 [N, …], [class weight C] → loss [N, …], logsumexp [N, …],
    /// sample weight [N, …] (0 where ignored). The loss of a sample, not reduced, weight applied. Loss and
    /// sample weight have the logits' dtype, logsumexp the accumulation type.
    CrossEntropy {
        /// Targets of this value count nothing.
        ignore_index: i64,
        /// Share of the target spread evenly over the classes.
        label_smoothing: f64,
        /// Whether class weights are given.
        weighted: bool,
    },
    /// dloss [N, …], logits, logsumexp, target, [class weight] → dlogits.
    CrossEntropyGrad {
        /// As forward.
        ignore_index: i64,
        /// As forward.
        label_smoothing: f64,
        /// As forward.
        weighted: bool,
    },
    /// x [N, C, spatial…], weight [O, C/groups, kernel…], [bias O] → y: cross-correlation, 1 to 3 spatial dims.
    Convolution(ConvolutionSpec),
    /// dy, weight → dx; `spec.sizes` are the spatial sizes of x. Also transposed convolution's forward, where
    /// dy may have fewer windows than fit (output padding): the missing ones are the last.
    ConvolutionInputGrad(ConvolutionSpec),
    /// dy, x → dweight; `spec.sizes` are the kernel sizes. dy may have fewer windows, as above.
    ConvolutionWeightGrad(ConvolutionSpec),
    /// x [N, C, spatial…] → y, indices I64 (flat in x's spatial block; the first of equals; NaN wins).
    MaxPool(PoolSpec),
    /// dy, indices → dx; `spec.sizes` are the spatial sizes of x.
    MaxPoolGrad(PoolSpec),
    /// x [N, C, spatial…] → y.
    AvgPool(PoolSpec),
    /// dy → dx; `spec.sizes` are the spatial sizes of x.
    AvgPoolGrad(PoolSpec),
    /// x, index I64 \[n\] → out: x's shape with `dim` of size n.
    IndexSelect {
        /// The dimension looked up.
        dim: u8,
    },
    /// dy, index I64 \[n\] → dx of `size` along `dim`: zero, plus dy's slices added at their indices.
    IndexSelectGrad {
        /// The dimension looked up.
        dim: u8,
        /// x's size along it.
        size: usize,
    },
    /// x […, in], weight [out, in], [bias out] → y […, out].
    Linear,
    /// One or more tensors of one dtype, equal off `dim` → them end to end along `dim`.
    Concat {
        /// Along which dimension.
        dim: u8,
    },
    /// x → a tensor filled with a value that holds x in a strided window: constant padding, and the
    /// gradient of slicing.
    Pad(Box<PadSpec>),
    /// In place: parameter, [momentum buffer when momentum ≠ 0]; inputs: gradient, hyper \[2\] = (rate, 1 on the first
    /// step else 0) of the parameter's accumulation type.
    SgdStep {
        /// Share of the buffer kept.
        momentum: f64,
        /// The gradient enters the buffer times 1 - dampening.
        dampening: f64,
        /// Added to the gradient times the parameter.
        weight_decay: f64,
        /// Nesterov's form.
        nesterov: bool,
        /// Climb instead of descend.
        maximize: bool,
    },
    /// In place: parameter, first moment, second moment, [largest second moment when amsgrad];
    /// inputs: gradient, hyper \[3\] = (rate, 1 - β₁ᵗ, √(1 - β₂ᵗ)) of the parameter's accumulation type. Kingma & Ba 2015; decoupled: Loshchilov & Hutter 2019.
    AdamStep {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the denominator.
        eps: f64,
        /// Weight decay.
        weight_decay: f64,
        /// Whether the decay is applied to the parameter (AdamW) instead of the gradient.
        decoupled: bool,
        /// Whether the largest second moment so far is used.
        amsgrad: bool,
        /// Climb instead of descend.
        maximize: bool,
    },
}

/// What layer norm and RMS norm share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormSpec {
    /// How many trailing dimensions are normalised together.
    pub dims: u8,
    /// Added to the variance (or the mean square).
    pub eps: f64,
    /// Whether a weight (and for layer norm a bias) of the trailing shape is given.
    pub affine: bool,
}

/// The geometry of a convolution of 1 to 3 spatial dimensions; entries past `spatial` are the neutral ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvolutionSpec {
    /// Number of spatial dimensions, 1 to 3.
    pub spatial: u8,
    /// Steps between windows.
    pub stride: [usize; 3],
    /// Zeros added on both sides.
    pub padding: [usize; 3],
    /// Steps between taps of a window.
    pub dilation: [usize; 3],
    /// Channels are cut into this many groups.
    pub groups: usize,
    /// Spatial sizes of the result of a gradient op; 1 in the forward op.
    pub sizes: [usize; 3],
}

/// The geometry of pooling over 1 to 3 spatial dimensions; entries past `spatial` are the neutral ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolSpec {
    /// Number of spatial dimensions, 1 to 3.
    pub spatial: u8,
    /// Window sizes.
    pub kernel: [usize; 3],
    /// Steps between windows.
    pub stride: [usize; 3],
    /// Padding on both sides: minus infinity for max, zeros for average.
    pub padding: [usize; 3],
    /// Steps between taps of a window (max only).
    pub dilation: [usize; 3],
    /// Whether a last window that starts inside but ends outside counts.
    pub ceil_mode: bool,
    /// Whether padding counts in the divisor (average only).
    pub count_include_pad: bool,
    /// Spatial sizes of the result of a gradient op; 1 in the forward op.
    pub sizes: [usize; 3],
}

/// A window in a filled tensor. Entries past the rank say nothing.
#[derive(Clone, Copy, Debug)]
pub struct PadSpec {
    /// The result's shape.
    pub shape: Shape,
    /// Index of x's first element along each dimension.
    pub start: [usize; MAX_DIMS],
    /// Step from one element of x to the next; may be negative, never 0.
    pub step: [isize; MAX_DIMS],
    /// The value elsewhere.
    pub value: Scalar,
}

impl PartialEq for PadSpec {
    fn eq(&self, other: &Self) -> bool {
        let rank = self.shape.rank();
        self.shape == other.shape
            && self.start[..rank] == other.start[..rank]
            && self.step[..rank] == other.step[..rank]
            && self.value == other.value
    }
}

impl Composite {
    /// PyTorch's name where it has one; gradients end in `_backward`.
    pub fn name(&self) -> &'static str {
        match self {
            Composite::BinaryScalar { op, .. } => op.name(),
            Composite::CompareScalar { op, .. } => op.name(),
            Composite::Activation { kind, .. } => kind.name(),
            Composite::ActivationGrad { .. } => "activation_backward",
            Composite::Softmax { log: false, .. } => "softmax",
            Composite::Softmax { log: true, .. } => "log_softmax",
            Composite::SoftmaxGrad { .. } => "softmax_backward",
            Composite::LayerNorm(_) => "layer_norm",
            Composite::LayerNormGrad(_) => "layer_norm_backward",
            Composite::RmsNorm(_) => "rms_norm",
            Composite::RmsNormGrad(_) => "rms_norm_backward",
            Composite::BatchNorm { .. } => "batch_norm",
            Composite::BatchNormGrad { .. } => "batch_norm_backward",
            Composite::CrossEntropy { .. } => "cross_entropy",
            Composite::CrossEntropyGrad { .. } => "cross_entropy_backward",
            Composite::Convolution(spec) => conv_name(spec, ["conv1d", "conv2d", "conv3d"]),
            Composite::ConvolutionInputGrad(_) => "conv_input_backward",
            Composite::ConvolutionWeightGrad(_) => "conv_weight_backward",
            Composite::MaxPool(_) => "max_pool",
            Composite::MaxPoolGrad(_) => "max_pool_backward",
            Composite::AvgPool(_) => "avg_pool",
            Composite::AvgPoolGrad(_) => "avg_pool_backward",
            Composite::IndexSelect { .. } => "index_select",
            Composite::IndexSelectGrad { .. } => "index_select_backward",
            Composite::Linear => "linear",
            Composite::Concat { .. } => "cat",
            Composite::Pad(_) => "pad",
            Composite::SgdStep { .. } => "sgd_step",
            Composite::AdamStep { .. } => "adam_step",
        }
    }

    /// How many operands it updates in place.
    pub fn in_place_operands(&self) -> usize {
        match self {
            Composite::SgdStep { momentum, .. } => 1 + usize::from(*momentum != 0.0),
            Composite::AdamStep { amsgrad, .. } => 3 + usize::from(*amsgrad),
            _ => 0,
        }
    }
}

fn conv_name(spec: &ConvolutionSpec, names: [&'static str; 3]) -> &'static str {
    names[usize::from(spec.spatial).clamp(1, 3) - 1]
}

impl ConvolutionSpec {
    /// Output size along spatial dimension `i` for input and kernel sizes; `None` when the window does not fit.
    pub fn output_size(&self, i: usize, input: usize, kernel: usize) -> Option<usize> {
        window_count(
            input,
            kernel,
            self.stride[i],
            self.padding[i],
            self.dilation[i],
            false,
        )
    }
}

impl PoolSpec {
    /// Output size along spatial dimension `i`; `None` when the window does not fit.
    pub fn output_size(&self, i: usize, input: usize) -> Option<usize> {
        window_count(
            input,
            self.kernel[i],
            self.stride[i],
            self.padding[i],
            self.dilation[i],
            self.ceil_mode,
        )
    }
}

/// How many windows fit, as PyTorch counts them; `None` when not one does or the sizes overflow.
fn window_count(
    input: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    ceil: bool,
) -> Option<usize> {
    let extent = dilation
        .checked_mul(kernel.checked_sub(1)?)?
        .checked_add(1)?;
    let padded = input.checked_add(padding.checked_mul(2)?)?;
    if padded < extent {
        // Rounding up, a first window that ends outside still counts when a step reaches past it.
        return (ceil && extent - padded < stride && input > 0).then_some(1);
    }
    let room = padded - extent;
    let mut count = room.checked_div(stride)? + 1;
    if ceil && !room.is_multiple_of(stride) && count.saturating_mul(stride) < input + padding {
        // The extra window must start inside the image or its left padding.
        count += 1;
    }
    Some(count)
}
