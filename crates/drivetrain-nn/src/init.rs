//! Initialisers: how weights begin. Drawn on the host from the process's random numbers, so that a seed gives
//! the same weights on every device.

use drivetrain_core::{DType, Device, Error, IntoShape, Result, Shape};
use drivetrain_tensor::{Tensor, host_generator};

/// How much a nonlinearity shrinks a signal, for [`kaiming_uniform`] and its like (PyTorch's `calculate_gain`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonlinearity {
    /// None, convolutions, sigmoid: 1.
    Linear,
    /// 5/3.
    Tanh,
    /// √2.
    Relu,
    /// √(2/(1 + slope²)).
    LeakyRelu(f64),
    /// 3/4.
    Selu,
}

impl Nonlinearity {
    /// The gain.
    pub fn gain(self) -> f64 {
        match self {
            Nonlinearity::Linear => 1.0,
            Nonlinearity::Tanh => 5.0 / 3.0,
            Nonlinearity::Relu => std::f64::consts::SQRT_2,
            Nonlinearity::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Nonlinearity::Selu => 0.75,
        }
    }
}

/// Which fan keeps its variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// Inputs: the forward pass.
    #[default]
    In,
    /// Outputs: the backward pass.
    Out,
}

/// Fan-in and fan-out of a weight [out, in, kernel…].
///
/// # Errors
/// Fewer than two dimensions.
pub fn fans(shape: &Shape) -> Result<(usize, usize)> {
    let &[outputs, inputs, ref kernel @ ..] = shape.dims() else {
        return Err(Error::shape(
            "init",
            format!(
                "a weight of shape {shape} has no fan-in and fan-out, two dimensions are needed"
            ),
        ));
    };
    let field: usize = kernel.iter().product();
    Ok((inputs * field, outputs * field))
}

fn draw(
    shape: impl IntoShape,
    dtype: DType,
    device: &Device,
    mut next: impl FnMut() -> f64,
) -> Result<Tensor> {
    let shape = shape.into_shape()?;
    let values: Vec<f64> = (0..shape.elements()).map(|_| next()).collect();
    place(&values, shape, dtype, device)
}

/// Host values as a tensor: converted on the host, so that the device need not know F64.
fn place(values: &[f64], shape: Shape, dtype: DType, device: &Device) -> Result<Tensor> {
    use drivetrain_core::half::{bf16, f16};
    match dtype {
        DType::F32 => Tensor::from_vec(values.iter().map(|&v| v as f32).collect(), shape, device),
        DType::F64 => Tensor::from_slice(values, shape, device),
        DType::F16 => Tensor::from_vec(
            values.iter().map(|&v| f16::from_f64(v)).collect(),
            shape,
            device,
        ),
        DType::BF16 => Tensor::from_vec(
            values.iter().map(|&v| bf16::from_f64(v)).collect(),
            shape,
            device,
        ),
        _ => Err(Error::dtype("init", format!("{dtype} is not a float"))),
    }
}

/// Uniform in [`low`, `high`).
///
/// # Errors
/// Bounds that are not finite or out of order, or a dtype that is not a float.
pub fn uniform(
    shape: impl IntoShape,
    low: f64,
    high: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    if !(low.is_finite() && high.is_finite() && low <= high) {
        return Err(Error::argument(
            "uniform",
            format!("bounds {low} and {high}"),
        ));
    }
    let mut generator = host_generator();
    draw(shape, dtype, device, || {
        low + (high - low) * generator.uniform()
    })
}

/// Normal with this mean and standard deviation.
///
/// # Errors
/// A negative deviation, or a dtype that is not a float.
pub fn normal(
    shape: impl IntoShape,
    mean: f64,
    deviation: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    if deviation < 0.0 || !deviation.is_finite() || !mean.is_finite() {
        return Err(Error::argument(
            "normal",
            format!("mean {mean}, standard deviation {deviation}"),
        ));
    }
    let mut generator = host_generator();
    draw(shape, dtype, device, || {
        mean + deviation * generator.normal()
    })
}

/// Normal, drawn again while outside [`low`, `high`].
///
/// # Errors
/// Bounds further than 6 deviations from the mean on one side, which would be drawn for ever.
pub fn trunc_normal(
    shape: impl IntoShape,
    mean: f64,
    deviation: f64,
    low: f64,
    high: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let reachable = low < high
        && deviation > 0.0
        && low < mean + 6.0 * deviation
        && high > mean - 6.0 * deviation;
    if !reachable || high - low < 1e-3 * deviation {
        return Err(Error::argument(
            "trunc_normal",
            format!("bounds {low} and {high} for mean {mean}, standard deviation {deviation}"),
        ));
    }
    let mut generator = host_generator();
    // A bound far in a tail is hit rarely: after so many tries a uniform in the bounds stands in.
    draw(shape, dtype, device, || {
        (0..10_000)
            .map(|_| mean + deviation * generator.normal())
            .find(|v| (low..=high).contains(v))
            .unwrap_or_else(|| low.max(mean - 6.0 * deviation).min(high))
    })
}

/// Uniform with the variance that keeps signals, for layers before `nonlinearity` (He et al. 2015).
///
/// # Errors
/// Fewer than two dimensions.
pub fn kaiming_uniform(
    shape: impl IntoShape,
    fan: Fan,
    nonlinearity: Nonlinearity,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let shape = shape.into_shape()?;
    let bound = 3f64.sqrt() * kaiming_deviation(&shape, fan, nonlinearity)?;
    uniform(shape, -bound, bound, dtype, device)
}

/// Normal form of [`kaiming_uniform`].
///
/// # Errors
/// Fewer than two dimensions.
pub fn kaiming_normal(
    shape: impl IntoShape,
    fan: Fan,
    nonlinearity: Nonlinearity,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let shape = shape.into_shape()?;
    normal(
        shape,
        0.0,
        kaiming_deviation(&shape, fan, nonlinearity)?,
        dtype,
        device,
    )
}

fn kaiming_deviation(shape: &Shape, fan: Fan, nonlinearity: Nonlinearity) -> Result<f64> {
    let (inputs, outputs) = fans(shape)?;
    let fan = if fan == Fan::In { inputs } else { outputs };
    Ok(nonlinearity.gain() / (fan.max(1) as f64).sqrt())
}

/// Uniform with the mean of both fans' variances, times `gain` (Glorot and Bengio 2010).
///
/// # Errors
/// Fewer than two dimensions.
pub fn xavier_uniform(
    shape: impl IntoShape,
    gain: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let shape = shape.into_shape()?;
    let (inputs, outputs) = fans(&shape)?;
    let bound = gain * (6.0 / (inputs + outputs).max(1) as f64).sqrt();
    uniform(shape, -bound, bound, dtype, device)
}

/// Normal form of [`xavier_uniform`].
///
/// # Errors
/// Fewer than two dimensions.
pub fn xavier_normal(
    shape: impl IntoShape,
    gain: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let shape = shape.into_shape()?;
    let (inputs, outputs) = fans(&shape)?;
    normal(
        shape,
        0.0,
        gain * (2.0 / (inputs + outputs).max(1) as f64).sqrt(),
        dtype,
        device,
    )
}

/// Rows (or columns, whichever are fewer) that are orthonormal, times `gain`; the first dimension against the rest
/// (Saxe et al. 2014). By Gram–Schmidt, twice, on normal vectors.
///
/// # Errors
/// Fewer than two dimensions.
pub fn orthogonal(
    shape: impl IntoShape,
    gain: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let shape = shape.into_shape()?;
    fans(&shape)?;
    let rows = shape[0];
    let columns = shape.elements() / rows.max(1);
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut generator = host_generator();
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    while basis.len() < count {
        let mut vector: Vec<f64> = (0..length).map(|_| generator.normal()).collect();
        for _ in 0..2 {
            for other in &basis {
                let along: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                vector
                    .iter_mut()
                    .zip(other)
                    .for_each(|(a, b)| *a -= along * b);
            }
        }
        let norm = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm > 1e-6 {
            vector.iter_mut().for_each(|v| *v /= norm);
            basis.push(vector);
        }
    }
    let at = |r: usize, c: usize| {
        gain * if rows <= columns {
            basis[r][c]
        } else {
            basis[c][r]
        }
    };
    let values: Vec<f64> = (0..rows * columns)
        .map(|i| at(i / columns, i % columns))
        .collect();
    place(&values, shape, dtype, device)
}
