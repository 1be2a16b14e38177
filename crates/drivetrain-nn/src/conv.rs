//! Convolutions as layers.

use crate::init::{Fan, Nonlinearity, fans, kaiming_uniform, uniform};
use crate::{Layer, Module};
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_tensor::{ConvOptions, ConvTransposeOptions, Parameter, Spatial, Tensor};

/// How a convolution is made; for [`Conv1d`], [`Conv2d`] and [`Conv3d`].
#[derive(Clone, Copy, Debug)]
pub struct ConvConfig<const N: usize> {
    inputs: usize,
    outputs: usize,
    kernel: Spatial,
    options: ConvOptions,
    bias: bool,
    dtype: DType,
}

impl<const N: usize> ConvConfig<N> {
    fn new(inputs: usize, outputs: usize, kernel: Spatial) -> Self {
        ConvConfig {
            inputs,
            outputs,
            kernel,
            options: ConvOptions::default(),
            bias: true,
            dtype: DType::F32,
        }
    }

    /// Steps between windows; 1 by default.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Spatial>) -> Self {
        self.options.stride = stride.into();
        self
    }

    /// Zeros added on both sides; 0 by default.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Spatial>) -> Self {
        self.options.padding = padding.into();
        self
    }

    /// Steps between taps of a window; 1 by default.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Spatial>) -> Self {
        self.options.dilation = dilation.into();
        self
    }

    /// Channels cut into this many groups; 1 by default.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Self {
        self.options.groups = groups;
        self
    }

    /// With or without a bias; with by default.
    #[must_use]
    pub fn bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// In another dtype than F32.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Weight [out, in/groups, kernel…] and bias [out].
    fn parameters(
        &self,
        operation: &'static str,
        device: &Device,
    ) -> Result<(Parameter, Option<Parameter>)> {
        let groups = self.options.groups;
        divided(operation, self.inputs, self.outputs, groups)?;
        let kernel = self.kernel.resolve(operation, "kernel_size", N, 1)?;
        let shape = [&[self.outputs, self.inputs / groups], &kernel[..N]].concat();
        parameters(&shape, self.outputs, self.bias, self.dtype, device)
    }
}

fn divided(operation: &'static str, inputs: usize, outputs: usize, groups: usize) -> Result<()> {
    if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
        let message = format!(
            "{inputs} input and {outputs} output channels are not multiples of {groups} groups"
        );
        return Err(Error::argument(operation, message));
    }
    Ok(())
}

/// Weight and bias, uniform in ±1/√fan-in as in PyTorch.
fn parameters(
    shape: &[usize],
    outputs: usize,
    bias: bool,
    dtype: DType,
    device: &Device,
) -> Result<(Parameter, Option<Parameter>)> {
    let weight = kaiming_uniform(
        shape,
        Fan::In,
        Nonlinearity::LeakyRelu(5f64.sqrt()),
        dtype,
        device,
    )?;
    let bound = 1.0 / (fans(weight.shape())?.0.max(1) as f64).sqrt();
    let bias = bias
        .then(|| Parameter::new(uniform([outputs], -bound, bound, dtype, device)?))
        .transpose()?;
    Ok((Parameter::new(weight)?, bias))
}

macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident, $spatial:literal, $method:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Module)]
            pub struct $name {
                /// [out, in/groups, kernel…].
                pub weight: Parameter,
                /// \[out\].
                pub bias: Option<Parameter>,
                #[module(skip)]
                options: ConvOptions,
            }

            impl $name {
                /// With a bias, stride 1, no padding, in F32.
                ///
                /// # Errors
                /// A device without room.
                pub fn new(inputs: usize, outputs: usize, kernel: impl Into<Spatial>, device: &Device) -> Result<Self> {
                    Self::config(inputs, outputs, kernel).build(device)
                }

                /// For other choices: `.padding(1).stride(2).build(&device)?`.
                pub fn config(inputs: usize, outputs: usize, kernel: impl Into<Spatial>) -> ConvConfig<$spatial> {
                    ConvConfig::new(inputs, outputs, kernel.into())
                }
            }

            impl ConvConfig<$spatial> {
                /// Makes the layer.
                ///
                /// # Errors
                /// Channels that the groups do not divide, or a device without room.
                pub fn build(self, device: &Device) -> Result<$name> {
                    let (weight, bias) = self.parameters(stringify!($method), device)?;
                    Ok($name { weight, bias, options: self.options })
                }
            }

            impl Layer for $name {
                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Tensor> {
                    let bias = self.bias.as_ref().map(Parameter::value);
                    input.$method(&self.weight.value(), bias.as_ref(), &self.options)
                }
            }
        )*
    };
}

convolutions! {
    /// Convolution over one dimension: x [N, in, L].
    Conv1d, 1, conv1d;
    /// Convolution over two dimensions: x [N, in, H, W].
    Conv2d, 2, conv2d;
    /// Convolution over three dimensions: x [N, in, D, H, W].
    Conv3d, 3, conv3d;
}

/// Transposed convolution over two dimensions: x [N, in, H, W].
#[derive(Clone, Debug, Module)]
pub struct ConvTranspose2d {
    /// [in, out/groups, kernel…].
    pub weight: Parameter,
    /// \[out\].
    pub bias: Option<Parameter>,
    #[module(skip)]
    options: ConvTransposeOptions,
}

/// How a [`ConvTranspose2d`] is made.
#[derive(Clone, Copy, Debug)]
pub struct ConvTranspose2dConfig {
    inputs: usize,
    outputs: usize,
    kernel: Spatial,
    options: ConvTransposeOptions,
    bias: bool,
    dtype: DType,
}

impl ConvTranspose2dConfig {
    /// How it slides: stride, padding, output padding, dilation, groups.
    #[must_use]
    pub fn options(mut self, options: ConvTransposeOptions) -> Self {
        self.options = options;
        self
    }

    /// With or without a bias; with by default.
    #[must_use]
    pub fn bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// In another dtype than F32.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Makes the layer.
    ///
    /// # Errors
    /// Channels that the groups do not divide, or a device without room.
    pub fn build(self, device: &Device) -> Result<ConvTranspose2d> {
        let groups = self.options.groups;
        divided("conv_transpose2d", self.inputs, self.outputs, groups)?;
        let kernel = self
            .kernel
            .resolve("conv_transpose2d", "kernel_size", 2, 1)?;
        let shape = [self.inputs, self.outputs / groups, kernel[0], kernel[1]];
        let (weight, bias) = parameters(&shape, self.outputs, self.bias, self.dtype, device)?;
        Ok(ConvTranspose2d {
            weight,
            bias,
            options: self.options,
        })
    }
}

impl ConvTranspose2d {
    /// With a bias, stride 1, no padding, in F32.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Spatial>,
        device: &Device,
    ) -> Result<Self> {
        Self::config(inputs, outputs, kernel).build(device)
    }

    /// For other choices.
    pub fn config(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Spatial>,
    ) -> ConvTranspose2dConfig {
        ConvTranspose2dConfig {
            inputs,
            outputs,
            kernel: kernel.into(),
            options: ConvTransposeOptions::default(),
            bias: true,
            dtype: DType::F32,
        }
    }
}

impl Layer for ConvTranspose2d {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Parameter::value);
        input.conv_transpose2d(&self.weight.value(), bias.as_ref(), &self.options)
    }
}
