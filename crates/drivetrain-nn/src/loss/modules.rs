//! The losses as modules, with `to(device)` for their weights.

use super::*;
use crate::{Path, Visit, Visitor};

/// Declares a loss with only a reduction.
macro_rules! plain_losses {
    ($($(#[$doc:meta])* $name:ident => |$prediction:ident, $target:ident, $reduction:ident| $call:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default)]
            pub struct $name {
                /// How elements are joined.
                pub reduction: Reduction,
            }

            impl $name {
                /// With the mean over all elements.
                pub fn new() -> Self {
                    Self::default()
                }
            }

            impl Visit for $name {
                fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
            }
            impl Module for $name {}
            impl Loss for $name {
                #[track_caller]
                fn forward(&self, $prediction: &Tensor, $target: &Tensor) -> Result<Tensor> {
                    let $reduction = self.reduction;
                    $call
                }
            }
        )*
    };
}

plain_losses! {
    /// [`mse_loss`] as a module.
    MseLoss => |prediction, target, reduction| mse_loss(prediction, target, reduction);
    /// [`l1_loss`] as a module.
    L1Loss => |prediction, target, reduction| l1_loss(prediction, target, reduction);
}

/// [`smooth_l1_loss`] as a module.
#[derive(Clone, Copy, Debug)]
pub struct SmoothL1Loss {
    /// Where the quadratic part ends.
    pub beta: f64,
    /// How elements are joined.
    pub reduction: Reduction,
}

/// [`huber_loss`] as a module.
#[derive(Clone, Copy, Debug)]
pub struct HuberLoss {
    /// Where the quadratic part ends.
    pub delta: f64,
    /// How elements are joined.
    pub reduction: Reduction,
}

/// [`cross_entropy`] as a module.
#[derive(Clone, Debug, Default, Module)]
pub struct CrossEntropyLoss {
    /// A weight for each class.
    pub weight: Option<Constant>,
    /// The other options; their own weight is not used.
    #[module(skip)]
    pub options: CrossEntropyOptions,
}

/// [`nll_loss`] as a module.
#[derive(Clone, Debug, Default, Module)]
pub struct NllLoss {
    /// A weight for each class.
    pub weight: Option<Constant>,
    /// The other options; their own weight is not used.
    #[module(skip)]
    pub options: CrossEntropyOptions,
}

/// [`bce_loss`] as a module.
#[derive(Clone, Debug, Default, Module)]
pub struct BceLoss {
    /// A weight for each element, broadcast.
    pub weight: Option<Constant>,
    /// How elements are joined.
    #[module(skip)]
    pub reduction: Reduction,
}

/// [`bce_with_logits`] as a module.
#[derive(Clone, Debug, Default, Module)]
pub struct BceWithLogitsLoss {
    /// A weight for each element, broadcast.
    pub weight: Option<Constant>,
    /// A weight of the positive term, broadcast.
    pub positive_weight: Option<Constant>,
    /// How elements are joined.
    #[module(skip)]
    pub reduction: Reduction,
}

/// [`kl_div`] as a module.
#[derive(Clone, Copy, Debug, Module)]
pub struct KlDivLoss {
    /// Whether targets are logarithms too.
    #[module(skip)]
    pub log_target: bool,
    /// How elements are joined.
    #[module(skip)]
    pub reduction: Reduction,
}

impl Default for SmoothL1Loss {
    fn default() -> Self {
        SmoothL1Loss {
            beta: 1.0,
            reduction: Reduction::Mean,
        }
    }
}

impl Default for HuberLoss {
    fn default() -> Self {
        HuberLoss {
            delta: 1.0,
            reduction: Reduction::Mean,
        }
    }
}

impl Default for KlDivLoss {
    fn default() -> Self {
        KlDivLoss {
            log_target: false,
            reduction: Reduction::BatchMean,
        }
    }
}

impl Visit for SmoothL1Loss {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}
impl Module for SmoothL1Loss {}
impl Loss for SmoothL1Loss {
    #[track_caller]
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        smooth_l1_loss(prediction, target, self.beta, self.reduction)
    }
}

impl Visit for HuberLoss {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}
impl Module for HuberLoss {}
impl Loss for HuberLoss {
    #[track_caller]
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        huber_loss(prediction, target, self.delta, self.reduction)
    }
}

impl CrossEntropyLoss {
    /// With the mean over the samples, no weights.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Loss for CrossEntropyLoss {
    #[track_caller]
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        let options = CrossEntropyOptions {
            weight: moved(&self.weight),
            ..self.options.clone()
        };
        cross_entropy(prediction, target, &options)
    }
}

impl Loss for NllLoss {
    #[track_caller]
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        let options = CrossEntropyOptions {
            weight: moved(&self.weight),
            ..self.options.clone()
        };
        nll_loss(prediction, target, &options)
    }
}

impl Loss for BceLoss {
    #[track_caller]
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        bce_loss(
            prediction,
            target,
            moved(&self.weight).as_ref(),
            self.reduction,
        )
    }
}

impl Loss for BceWithLogitsLoss {
    #[track_caller]
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        let (weight, positive) = (moved(&self.weight), moved(&self.positive_weight));
        bce_with_logits(
            prediction,
            target,
            weight.as_ref(),
            positive.as_ref(),
            self.reduction,
        )
    }
}

impl Loss for KlDivLoss {
    #[track_caller]
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        kl_div(prediction, target, self.log_target, self.reduction)
    }
}
