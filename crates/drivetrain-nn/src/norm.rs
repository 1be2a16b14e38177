//! Normalisation within a sample: layer, group, instance and RMS norm.

use crate::{Layer, Module};
use drivetrain_core::{DType, Device, IntoShape, Result, Shape};
use drivetrain_tensor::{Parameter, Tensor};

fn parameter(
    shape: Shape,
    value: f64,
    affine: bool,
    dtype: DType,
    device: &Device,
) -> Result<Option<Parameter>> {
    affine
        .then(|| Parameter::new(Tensor::full(shape, value, dtype, device)?))
        .transpose()
}

macro_rules! norm_config {
    ($($(#[$doc:meta])* $config:ident { $($field:ident: $type:ty),* };)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $config {
                $($field: $type,)*
                eps: f64,
                affine: bool,
                dtype: DType,
            }

            impl $config {
                /// Added to the variance.
                #[must_use]
                pub fn eps(mut self, eps: f64) -> Self {
                    self.eps = eps;
                    self
                }

                /// With or without a trained weight (and bias).
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
            }
        )*
    };
}

norm_config! {
    /// How a [`LayerNorm`] is made.
    LayerNormConfig { shape: Result<Shape> };
    /// How an [`RmsNorm`] is made.
    RmsNormConfig { shape: Result<Shape> };
    /// How a [`GroupNorm`] is made.
    GroupNormConfig { groups: usize, channels: usize };
    /// How an [`InstanceNorm`] is made.
    InstanceNormConfig { channels: usize };
}

/// Layer norm over the trailing dimensions of a given shape (Ba et al. 2016).
#[derive(Clone, Debug, Module)]
pub struct LayerNorm {
    /// Of the normalised shape; begins as ones.
    pub weight: Option<Parameter>,
    /// Of the normalised shape; begins as zeros.
    pub bias: Option<Parameter>,
    #[module(skip)]
    shape: Shape,
    #[module(skip)]
    eps: f64,
}

impl LayerNorm {
    /// With weight and bias, eps 1e-5, in F32.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(shape: impl IntoShape, device: &Device) -> Result<LayerNorm> {
        LayerNorm::config(shape).build(device)
    }

    /// For other choices.
    pub fn config(shape: impl IntoShape) -> LayerNormConfig {
        LayerNormConfig {
            shape: shape.into_shape(),
            eps: 1e-5,
            affine: true,
            dtype: DType::F32,
        }
    }
}

impl LayerNormConfig {
    /// Makes the layer.
    ///
    /// # Errors
    /// A shape that is none, or a device without room.
    pub fn build(self, device: &Device) -> Result<LayerNorm> {
        let shape = self.shape?;
        Ok(LayerNorm {
            weight: parameter(shape, 1.0, self.affine, self.dtype, device)?,
            bias: parameter(shape, 0.0, self.affine, self.dtype, device)?,
            shape,
            eps: self.eps,
        })
    }
}

impl Layer for LayerNorm {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (
            self.weight.as_ref().map(Parameter::value),
            self.bias.as_ref().map(Parameter::value),
        );
        input.layer_norm(self.shape, weight.as_ref(), bias.as_ref(), self.eps)
    }
}

/// Root-mean-square norm over the trailing dimensions of a given shape (Zhang and Sennrich 2019).
#[derive(Clone, Debug, Module)]
pub struct RmsNorm {
    /// Of the normalised shape; begins as ones.
    pub weight: Option<Parameter>,
    #[module(skip)]
    shape: Shape,
    #[module(skip)]
    eps: f64,
}

impl RmsNorm {
    /// With a weight, eps 1e-6, in F32.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(shape: impl IntoShape, device: &Device) -> Result<RmsNorm> {
        RmsNorm::config(shape).build(device)
    }

    /// For other choices.
    pub fn config(shape: impl IntoShape) -> RmsNormConfig {
        RmsNormConfig {
            shape: shape.into_shape(),
            eps: 1e-6,
            affine: true,
            dtype: DType::F32,
        }
    }
}

impl RmsNormConfig {
    /// Makes the layer.
    ///
    /// # Errors
    /// A shape that is none, or a device without room.
    pub fn build(self, device: &Device) -> Result<RmsNorm> {
        let shape = self.shape?;
        Ok(RmsNorm {
            weight: parameter(shape, 1.0, self.affine, self.dtype, device)?,
            shape,
            eps: self.eps,
        })
    }
}

impl Layer for RmsNorm {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let weight = self.weight.as_ref().map(Parameter::value);
        input.rms_norm(self.shape, weight.as_ref(), self.eps)
    }
}

/// Norm over groups of channels of x [N, C, …] (Wu and He 2018).
#[derive(Clone, Debug, Module)]
pub struct GroupNorm {
    /// \[C\]; begins as ones.
    pub weight: Option<Parameter>,
    /// \[C\]; begins as zeros.
    pub bias: Option<Parameter>,
    #[module(skip)]
    groups: usize,
    #[module(skip)]
    eps: f64,
}

impl GroupNorm {
    /// With weight and bias, eps 1e-5, in F32.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(groups: usize, channels: usize, device: &Device) -> Result<GroupNorm> {
        GroupNorm::config(groups, channels).build(device)
    }

    /// For other choices.
    pub fn config(groups: usize, channels: usize) -> GroupNormConfig {
        GroupNormConfig {
            groups,
            channels,
            eps: 1e-5,
            affine: true,
            dtype: DType::F32,
        }
    }
}

impl GroupNormConfig {
    /// Makes the layer.
    ///
    /// # Errors
    /// Channels that the groups do not divide, or a device without room.
    pub fn build(self, device: &Device) -> Result<GroupNorm> {
        if self.groups == 0 || !self.channels.is_multiple_of(self.groups) {
            let message = format!(
                "{} channels are not a multiple of {} groups",
                self.channels, self.groups
            );
            return Err(drivetrain_core::Error::argument("group_norm", message));
        }
        let shape = Shape::new(&[self.channels])?;
        Ok(GroupNorm {
            weight: parameter(shape, 1.0, self.affine, self.dtype, device)?,
            bias: parameter(shape, 0.0, self.affine, self.dtype, device)?,
            groups: self.groups,
            eps: self.eps,
        })
    }
}

impl Layer for GroupNorm {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (
            self.weight.as_ref().map(Parameter::value),
            self.bias.as_ref().map(Parameter::value),
        );
        input.group_norm(self.groups, weight.as_ref(), bias.as_ref(), self.eps)
    }
}

/// Norm of each channel of each sample of x [N, C, …] (Ulyanov et al. 2016). No weight and bias by default.
#[derive(Clone, Debug, Module)]
pub struct InstanceNorm {
    /// \[C\]; begins as ones.
    pub weight: Option<Parameter>,
    /// \[C\]; begins as zeros.
    pub bias: Option<Parameter>,
    #[module(skip)]
    eps: f64,
}

impl InstanceNorm {
    /// Without weight and bias, eps 1e-5, in F32.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(channels: usize, device: &Device) -> Result<InstanceNorm> {
        InstanceNorm::config(channels).build(device)
    }

    /// For other choices.
    pub fn config(channels: usize) -> InstanceNormConfig {
        InstanceNormConfig {
            channels,
            eps: 1e-5,
            affine: false,
            dtype: DType::F32,
        }
    }
}

impl InstanceNormConfig {
    /// Makes the layer.
    ///
    /// # Errors
    /// A device without room.
    pub fn build(self, device: &Device) -> Result<InstanceNorm> {
        let shape = Shape::new(&[self.channels])?;
        Ok(InstanceNorm {
            weight: parameter(shape, 1.0, self.affine, self.dtype, device)?,
            bias: parameter(shape, 0.0, self.affine, self.dtype, device)?,
            eps: self.eps,
        })
    }
}

impl Layer for InstanceNorm {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (
            self.weight.as_ref().map(Parameter::value),
            self.bias.as_ref().map(Parameter::value),
        );
        input.instance_norm(weight.as_ref(), bias.as_ref(), self.eps)
    }
}
