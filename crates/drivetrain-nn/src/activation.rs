//! Activations as layers.

use crate::{Layer, Module, Path, Visit, Visitor};
use drivetrain_core::Result;
use drivetrain_tensor::Tensor;

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident => |$x:ident| $call:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name;

            impl Visit for $name {
                fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
            }
            impl Module for $name {}
            impl Layer for $name {
                #[track_caller]
                fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                    $call
                }
            }
        )*
    };
}

activations! {
    /// max(x, 0).
    Relu => |x| x.relu();
    /// min(max(x, 0), 6).
    Relu6 => |x| x.relu6();
    /// 1/(1 + e⁻ˣ).
    Sigmoid => |x| x.sigmoid();
    /// Hyperbolic tangent.
    Tanh => |x| x.tanh();
    /// x·Φ(x), exact.
    Gelu => |x| x.gelu();
    /// x·Φ(x), tanh approximation.
    GeluTanh => |x| x.gelu_tanh();
    /// x·σ(x).
    Silu => |x| x.silu();
    /// x·tanh(softplus(x)).
    Mish => |x| x.mish();
    /// x/(1 + |x|).
    Softsign => |x| x.softsign();
    /// min(max(x/6 + 1/2, 0), 1).
    Hardsigmoid => |x| x.hardsigmoid();
    /// x·hardsigmoid(x).
    Hardswish => |x| x.hardswish();
    /// ln σ(x).
    LogSigmoid => |x| x.logsigmoid();
    /// Self-normalising ELU.
    Selu => |x| x.selu();
}

macro_rules! activations_with {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr),* } => |$this:ident, $x:ident| $call:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

            impl Default for $name {
                fn default() -> Self {
                    $name { $($field: $default,)* }
                }
            }
            impl Visit for $name {
                fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
            }
            impl Module for $name {}
            impl Layer for $name {
                #[track_caller]
                fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                    let $this = self;
                    $call
                }
            }
        )*
    };
}

activations_with! {
    /// x where positive, else α(eˣ - 1).
    Elu {
        /// α.
        alpha: f64 = 1.0
    } => |this, x| x.elu(this.alpha);
    /// max(0, x) + min(0, α(e^(x/α) - 1)).
    Celu {
        /// α.
        alpha: f64 = 1.0
    } => |this, x| x.celu(this.alpha);
    /// x where positive, else slope·x.
    LeakyRelu {
        /// Slope below 0.
        negative_slope: f64 = 0.01
    } => |this, x| x.leaky_relu(this.negative_slope);
    /// ln(1 + e^(βx))/β.
    Softplus {
        /// β.
        beta: f64 = 1.0,
        /// x itself where βx is above.
        threshold: f64 = 20.0
    } => |this, x| x.softplus(this.beta, this.threshold);
    /// min(max(x, low), high).
    Hardtanh {
        /// Lower bound.
        low: f64 = -1.0,
        /// Upper bound.
        high: f64 = 1.0
    } => |this, x| x.hardtanh(this.low, this.high);
    /// Softmax along a dimension.
    Softmax {
        /// The dimension.
        dim: isize = -1
    } => |this, x| x.softmax(this.dim);
    /// Logarithm of the softmax along a dimension.
    LogSoftmax {
        /// The dimension.
        dim: isize = -1
    } => |this, x| x.log_softmax(this.dim);
}
