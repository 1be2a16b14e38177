//! Batch normalisation, with running statistics.

use crate::{Buffer, Layer, Mode, Module};
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_tensor::{Parameter, Tensor, no_grad};

/// How a [`BatchNorm1d`] or a [`BatchNorm2d`] is made.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormConfig {
    channels: usize,
    eps: f64,
    momentum: Option<f64>,
    affine: bool,
    dtype: DType,
}

impl BatchNormConfig {
    fn new(channels: usize) -> Self {
        BatchNormConfig {
            channels,
            eps: 1e-5,
            momentum: Some(0.1),
            affine: true,
            dtype: DType::F32,
        }
    }

    /// Added to the variance; 1e-5 by default.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }

    /// Share of the new batch in the running statistics; 0.1 by default. `None`: the mean of all batches so far.
    #[must_use]
    pub fn momentum(mut self, momentum: Option<f64>) -> Self {
        self.momentum = momentum;
        self
    }

    /// With or without weight and bias; with by default.
    #[must_use]
    pub fn affine(mut self, affine: bool) -> Self {
        self.affine = affine;
        self
    }

    /// In another dtype than F32.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    fn core(self, device: &Device) -> Result<Core> {
        if let Some(m) = self.momentum.filter(|m| !(0.0..=1.0).contains(m)) {
            return Err(Error::argument(
                "batch_norm",
                format!("momentum {m} is not in 0..=1"),
            ));
        }
        let full = |value: f64| Tensor::full([self.channels], value, self.dtype, device);
        let parameter = |value| {
            self.affine
                .then(|| Parameter::new(full(value)?))
                .transpose()
        };
        Ok(Core {
            weight: parameter(1.0)?,
            bias: parameter(0.0)?,
            running_mean: Buffer::new(full(0.0)?),
            running_var: Buffer::new(full(1.0)?),
            num_batches_tracked: Buffer::new(Tensor::zeros((), DType::I64, device)?),
            config: self,
            mode: Mode::new(),
        })
    }
}

/// What both forms share.
#[derive(Clone, Debug, Module)]
struct Core {
    weight: Option<Parameter>,
    bias: Option<Parameter>,
    running_mean: Buffer,
    running_var: Buffer,
    num_batches_tracked: Buffer,
    #[module(skip)]
    config: BatchNormConfig,
    mode: Mode,
}

impl Core {
    #[track_caller]
    fn forward(&self, operation: &'static str, ranks: &[usize], x: &Tensor) -> Result<Tensor> {
        if !ranks.contains(&x.rank()) || x.dims()[1] != self.config.channels {
            let message = format!(
                "input {} has not {ranks:?} dimensions with {} channels as the second",
                x.shape(),
                self.config.channels
            );
            return Err(Error::shape(operation, message).on(x.device()));
        }
        let (weight, bias) = (
            self.weight.as_ref().map(Parameter::value),
            self.bias.as_ref().map(Parameter::value),
        );
        if !self.mode.is_training() {
            let (mean, variance) = (self.running_mean.value(), self.running_var.value());
            return x.batch_norm(
                &mean,
                &variance,
                weight.as_ref(),
                bias.as_ref(),
                self.config.eps,
            );
        }
        let result = x.batch_norm_training(weight.as_ref(), bias.as_ref(), self.config.eps)?;
        no_grad(|| self.track(&result.mean, &result.variance, result.count))?;
        Ok(result.output)
    }

    /// Running statistics: the batch's mean, and its variance made unbiased.
    fn track(&self, mean: &Tensor, variance: &Tensor, count: usize) -> Result<()> {
        let batches = self.num_batches_tracked.value().add(1)?;
        let share = match self.config.momentum {
            Some(momentum) => momentum,
            None => 1.0 / batches.item::<f64>()?,
        };
        let mix = |cell: &Buffer, new: &Tensor, scale: f64| {
            let old = cell.value();
            let new = new.mul(share * scale)?.to_dtype(old.dtype())?;
            cell.set(&old.mul(1.0 - share)?.add(&new)?)
        };
        let unbiased = count as f64 / (count.max(2) - 1) as f64;
        mix(&self.running_mean, mean, 1.0)?;
        mix(&self.running_var, variance, unbiased)?;
        self.num_batches_tracked.set(&batches)
    }
}

macro_rules! batch_norms {
    ($($(#[$doc:meta])* $name:ident, $make:ident, $operation:literal, $ranks:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Module)]
            pub struct $name {
                #[module(flatten)]
                core: Core,
            }

            impl $name {
                /// With weight and bias, eps 1e-5, momentum 0.1, in F32.
                ///
                /// # Errors
                /// A device without room.
                pub fn new(channels: usize, device: &Device) -> Result<Self> {
                    Self::config(channels).$make(device)
                }

                /// For other choices.
                pub fn config(channels: usize) -> BatchNormConfig {
                    BatchNormConfig::new(channels)
                }

                /// \[C\]; begins as ones.
                pub fn weight(&self) -> Option<&Parameter> {
                    self.core.weight.as_ref()
                }

                /// \[C\]; begins as zeros.
                pub fn bias(&self) -> Option<&Parameter> {
                    self.core.bias.as_ref()
                }

                /// \[C\]; begins as zeros.
                pub fn running_mean(&self) -> &Buffer {
                    &self.core.running_mean
                }

                /// \[C\], unbiased; begins as ones.
                pub fn running_var(&self) -> &Buffer {
                    &self.core.running_var
                }
            }

            impl BatchNormConfig {
                /// Makes the layer.
                ///
                /// # Errors
                /// A momentum outside 0..=1, or a device without room.
                pub fn $make(self, device: &Device) -> Result<$name> {
                    Ok($name { core: self.core(device)? })
                }
            }

            impl Layer for $name {
                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Tensor> {
                    self.core.forward($operation, $ranks, input)
                }
            }
        )*
    };
}

batch_norms! {
    /// Batch norm of x [N, C] or [N, C, L] (Ioffe and Szegedy 2015).
    BatchNorm1d, batch_norm1d, "batch_norm1d", &[2, 3];
    /// Batch norm of x [N, C, H, W] (Ioffe and Szegedy 2015).
    BatchNorm2d, batch_norm2d, "batch_norm2d", &[4];
}
