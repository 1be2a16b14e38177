//! The numbers of ops in the plugin ABI, with their attributes in order. Append only.
//!
//! `kind`: the number of an enum's variant (Int); `scalar`: Float, Int or Bool; `…[3]`, `…[rank]`: Ints.

/// Codes from here on are composites.
pub const FIRST_COMPOSITE: u32 = 256;

/// Fill: value (scalar).
pub const FILL: u32 = 1;
/// Iota: dim (Int).
pub const IOTA: u32 = 2;
/// Random: kind.
pub const RANDOM: u32 = 3;
/// Cast: dtype (kind).
pub const CAST: u32 = 4;
/// Copy.
pub const COPY: u32 = 5;
/// Unary: kind.
pub const UNARY: u32 = 6;
/// Binary: kind.
pub const BINARY: u32 = 7;
/// Compare: kind.
pub const COMPARE: u32 = 8;
/// Where.
pub const WHERE: u32 = 9;
/// Reduce: kind, dims (bits, Int), accumulation dtype (kind).
pub const REDUCE: u32 = 10;
/// ArgReduce: kind, dim (Int).
pub const ARG_REDUCE: u32 = 11;
/// Matmul: accumulation dtype (kind).
pub const MATMUL: u32 = 12;
/// Gather: dim (Int).
pub const GATHER: u32 = 13;
/// Scatter: kind, dim (Int).
pub const SCATTER: u32 = 14;
/// Cumulative: kind, dim (Int).
pub const CUMULATIVE: u32 = 15;
/// Sort: dim (Int), descending (Bool).
pub const SORT: u32 = 16;

/// BinaryScalar: kind, scalar, reversed (Bool).
pub const BINARY_SCALAR: u32 = 256;
/// CompareScalar: kind, scalar.
pub const COMPARE_SCALAR: u32 = 257;
/// Activation: kind, alpha, beta (Float).
pub const ACTIVATION: u32 = 258;
/// ActivationGrad: kind, alpha, beta (Float).
pub const ACTIVATION_GRAD: u32 = 259;
/// Softmax: dim (Int), log (Bool).
pub const SOFTMAX: u32 = 260;
/// SoftmaxGrad: dim (Int), log (Bool).
pub const SOFTMAX_GRAD: u32 = 261;
/// LayerNorm: dims (Int), eps (Float), affine (Bool).
pub const LAYER_NORM: u32 = 262;
/// LayerNormGrad: as LayerNorm.
pub const LAYER_NORM_GRAD: u32 = 263;
/// RmsNorm: as LayerNorm.
pub const RMS_NORM: u32 = 264;
/// RmsNormGrad: as LayerNorm.
pub const RMS_NORM_GRAD: u32 = 265;
/// BatchNorm: eps (Float), affine (Bool).
pub const BATCH_NORM: u32 = 266;
/// BatchNormGrad: as BatchNorm.
pub const BATCH_NORM_GRAD: u32 = 267;
/// CrossEntropy: ignore_index (Int), label_smoothing (Float), weighted (Bool).
pub const CROSS_ENTROPY: u32 = 268;
/// CrossEntropyGrad: as CrossEntropy.
pub const CROSS_ENTROPY_GRAD: u32 = 269;
/// Convolution: spatial (Int), stride, padding, dilation (\[3\]), groups (Int), sizes (\[3\]).
pub const CONVOLUTION: u32 = 270;
/// ConvolutionInputGrad: as Convolution.
pub const CONVOLUTION_INPUT_GRAD: u32 = 271;
/// ConvolutionWeightGrad: as Convolution.
pub const CONVOLUTION_WEIGHT_GRAD: u32 = 272;
/// MaxPool: spatial (Int), kernel, stride, padding, dilation (\[3\]), ceil_mode, count_include_pad (Bool), sizes (\[3\]).
pub const MAX_POOL: u32 = 273;
/// MaxPoolGrad: as MaxPool.
pub const MAX_POOL_GRAD: u32 = 274;
/// AvgPool: as MaxPool.
pub const AVG_POOL: u32 = 275;
/// AvgPoolGrad: as MaxPool.
pub const AVG_POOL_GRAD: u32 = 276;
/// IndexSelect: dim (Int).
pub const INDEX_SELECT: u32 = 277;
/// IndexSelectGrad: dim, size (Int).
pub const INDEX_SELECT_GRAD: u32 = 278;
/// Linear.
pub const LINEAR: u32 = 279;
/// Concat: dim (Int).
pub const CONCAT: u32 = 280;
/// Pad: shape, start, step (\[rank\]), value (scalar).
pub const PAD: u32 = 281;
/// SgdStep: momentum, dampening, weight_decay (Float), nesterov, maximize (Bool).
pub const SGD_STEP: u32 = 282;
/// AdamStep: beta1, beta2, eps, weight_decay (Float), decoupled, amsgrad, maximize (Bool).
pub const ADAM_STEP: u32 = 283;
