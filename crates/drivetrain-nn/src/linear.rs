//! The linear layer.

use crate::init::{Fan, Nonlinearity, kaiming_uniform, uniform};
use crate::{Layer, Module};
use drivetrain_core::{DType, Device, Result};
use drivetrain_tensor::{Parameter, Tensor};

/// y = x·Wᵀ + b over the last dimension: x […, in], W [out, in], b \[out\].
///
/// Weights and bias begin uniform in ±1/√in, as in PyTorch.
///
/// ```
/// # use drivetrain_cpu as _;
/// # use drivetrain_nn::{Layer, Linear};
/// # use drivetrain_tensor::{DType, Device, Tensor};
/// let device = Device::open("cpu")?;
/// let layer = Linear::new(10, 1, &device)?;
/// let y = layer.forward(&Tensor::randn([5, 10], DType::F32, &device)?)?;
/// assert_eq!(y.dims(), [5, 1]);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Linear {
    /// [out, in].
    pub weight: Parameter,
    /// \[out\].
    pub bias: Option<Parameter>,
}

/// How a [`Linear`] is made.
#[derive(Clone, Copy, Debug)]
pub struct LinearConfig {
    inputs: usize,
    outputs: usize,
    bias: bool,
    dtype: DType,
}

impl LinearConfig {
    /// Without a bias.
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
    /// A device without room, or a dtype that is not a float.
    pub fn build(self, device: &Device) -> Result<Linear> {
        let weight = kaiming_uniform(
            [self.outputs, self.inputs],
            Fan::In,
            Nonlinearity::LeakyRelu(5f64.sqrt()),
            self.dtype,
            device,
        )?;
        let bound = 1.0 / (self.inputs.max(1) as f64).sqrt();
        let bias = self
            .bias
            .then(|| Parameter::new(uniform([self.outputs], -bound, bound, self.dtype, device)?))
            .transpose()?;
        Ok(Linear {
            weight: Parameter::new(weight)?,
            bias,
        })
    }
}

impl Linear {
    /// A layer with a bias, in F32.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(inputs: usize, outputs: usize, device: &Device) -> Result<Linear> {
        Linear::config(inputs, outputs).build(device)
    }

    /// For other choices: `Linear::config(10, 1).bias(false).build(&device)?`.
    pub fn config(inputs: usize, outputs: usize) -> LinearConfig {
        LinearConfig {
            inputs,
            outputs,
            bias: true,
            dtype: DType::F32,
        }
    }
}

impl Layer for Linear {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Parameter::value);
        input.linear(&self.weight.value(), bias.as_ref())
    }
}
