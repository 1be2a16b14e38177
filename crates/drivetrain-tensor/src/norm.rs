//! Normalisation: layer, RMS, group, instance and batch norm.

use crate::run::run;
use crate::{Operand, Tensor};
use drivetrain_core::{BinaryOp, Composite, DType, Error, IntoShape, NormSpec, Result, Shape};

/// What batch norm in training mode gives. The statistics carry no gradient.
#[derive(Clone)]
#[must_use]
pub struct BatchNormOutput {
    /// The normalised input.
    pub output: Tensor,
    /// Each channel's mean over the batch, \[C\]; F64 for F64 input, else F32.
    pub mean: Tensor,
    /// Each channel's variance over the batch, \[C\], biased: squared deviations divided by `count`.
    pub variance: Tensor,
    /// Values per channel. The running variance takes `variance`·count/(count - 1).
    pub count: usize,
}

impl Tensor {
    /// x with mean 0 and variance 1 over its trailing dimensions `normalized_shape`, times weight plus bias (both of
    /// that shape, each optional). Ba et al. 2016.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{Device, Tensor};
    /// let device = Device::open("cpu")?;
    /// let x = Tensor::from_slice(&[1.0f64, 3.0], [1, 2], &device)?;
    /// assert_eq!(x.layer_norm([2], None, None, 0.0)?.to_vec::<f64>()?, [-1.0, 1.0]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that is not the tail of x's, a weight or bias of another shape or dtype, a dtype that is no float.
    #[track_caller]
    pub fn layer_norm(
        &self,
        normalized_shape: impl IntoShape,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let name = "layer_norm";
        let shape = normalized_shape.into_shape()?;
        check_arguments(name, self, [("weight", weight), ("bias", bias)])?;
        let mut spec = trailing(name, self, &shape, eps)?;
        let (weight, bias) = both(shape, weight, bias)?;
        spec.affine = weight.is_some();
        let inputs: Vec<&Tensor> = [self].into_iter().chain(&weight).chain(&bias).collect();
        first(name, run(Composite::LayerNorm(spec), &inputs)?)
    }

    /// x divided by its root mean square over the trailing dimensions `normalized_shape`, times weight.
    /// `eps` is added to the mean square; not given it is the dtype's machine epsilon. Zhang & Sennrich 2019.
    ///
    /// # Errors
    /// As [`Tensor::layer_norm`].
    #[track_caller]
    pub fn rms_norm(
        &self,
        normalized_shape: impl IntoShape,
        weight: Option<&Tensor>,
        eps: impl Into<Option<f64>>,
    ) -> Result<Tensor> {
        let name = "rms_norm";
        let shape = normalized_shape.into_shape()?;
        check_arguments(name, self, [("weight", weight), ("bias", None)])?;
        let eps = eps.into().unwrap_or(epsilon(self.dtype()));
        let mut spec = trailing(name, self, &shape, eps)?;
        spec.affine = weight.is_some();
        let inputs: Vec<&Tensor> = [self].into_iter().chain(weight).collect();
        first(name, run(Composite::RmsNorm(spec), &inputs)?)
    }

    /// The channels of x [N, C, …] in `groups` groups, each normalised within its sample, times weight \[C\] plus
    /// bias \[C\]. Wu & He 2018.
    ///
    /// # Errors
    /// Channels that cannot be cut into so many groups, one value a group, a weight or bias of another shape, a dtype
    /// that is no float.
    #[track_caller]
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        self.grouped("group_norm", groups, weight, bias, eps)
    }

    /// Each channel of x [N, C, spatial…] normalised within its sample, times weight \[C\] plus bias \[C\].
    /// Ulyanov et al. 2016.
    ///
    /// # Errors
    /// No spatial dimension, one value a channel, a weight or bias of another shape, a dtype that is no float.
    #[track_caller]
    pub fn instance_norm(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let name = "instance_norm";
        let channels = channels(name, self)?;
        if self.rank() < 3 {
            return Err(Error::shape(
                name,
                format!(
                    "input {} has no spatial dimension, [N, C, spatial…] expected",
                    self.shape()
                ),
            ));
        }
        self.grouped(name, channels.max(1), weight, bias, eps)
    }

    #[track_caller]
    fn grouped(
        &self,
        name: &'static str,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let channels = channels(name, self)?;
        check_channel_arguments(name, self, [("weight", weight), ("bias", bias)], true)?;
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(Error::argument(
                name,
                format!("{channels} channels cannot be cut into {groups} groups"),
            ));
        }
        let spatial: usize = self.dims()[2..].iter().product();
        let values = channels / groups * spatial;
        if values == 1 && !self.shape().is_empty() {
            return Err(Error::shape(
                name,
                format!(
                    "more than one value per group needed, input {} with {groups} groups has one",
                    self.shape()
                ),
            ));
        }
        if self.shape().is_empty() {
            return Ok(self.clone());
        }
        // Halves are computed in F32 and rounded once.
        let wide = self.to_dtype(self.dtype().accumulator())?;
        let flat = wide.reshape([self.dims()[0], groups, values])?;
        let spec = trailing(name, &flat, &Shape::new(&[values])?, eps)?;
        let y = first(name, run(Composite::LayerNorm(spec), &[&flat])?)?;
        let y = y.reshape(self.shape())?;
        let y = per_channel(&y, BinaryOp::Mul, weight)?;
        per_channel(&y, BinaryOp::Add, bias)?.to_dtype(self.dtype())
    }

    /// Training mode: the channels of x [N, C, …] normalised over the batch and all spatial dimensions, times
    /// weight \[C\] plus bias \[C\]. Ioffe & Szegedy 2015. The running statistics are the caller's to update:
    ///
    /// `running_mean ← (1 - m)·running_mean + m·mean`, and the variance likewise with `variance`·n/(n - 1).
    ///
    /// # Errors
    /// One value per channel only, a weight or bias of another shape or dtype, a dtype that is no float.
    #[track_caller]
    pub fn batch_norm_training(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<BatchNormOutput> {
        let name = "batch_norm";
        let channels = channels(name, self)?;
        check_arguments(name, self, [("weight", weight), ("bias", bias)])?;
        let (weight, bias) = both(Shape::new(&[channels])?, weight, bias)?;
        let op = Composite::BatchNorm {
            eps,
            affine: weight.is_some(),
        };
        let inputs: Vec<&Tensor> = [self].into_iter().chain(&weight).chain(&bias).collect();
        let mut results = run(op, &inputs)?.into_iter();
        let (Some(output), Some(mean), Some(variance)) =
            (results.next(), results.next(), results.next())
        else {
            return Err(Error::backend(name, "no statistics"));
        };
        let count = self.elements().checked_div(channels).unwrap_or(0);
        // The gradient of an output knows nothing of its statistics: they are values only.
        Ok(BatchNormOutput {
            output,
            mean: mean.detach(),
            variance: variance.detach(),
            count,
        })
    }

    /// Evaluation mode: (x - running_mean)/√(running_var + eps), times weight plus bias, by channel of
    /// x [N, C, …]. All four are \[C\].
    ///
    /// # Errors
    /// Statistics, a weight or a bias of another shape, a dtype that is no float, an `eps` below 0.
    #[track_caller]
    pub fn batch_norm(
        &self,
        running_mean: &Tensor,
        running_var: &Tensor,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let name = "batch_norm";
        channels(name, self)?;
        check_eps(name, eps)?;
        check_channel_arguments(
            name,
            self,
            [
                ("running_mean", Some(running_mean)),
                ("running_var", Some(running_var)),
            ],
            false,
        )?;
        check_channel_arguments(name, self, [("weight", weight), ("bias", bias)], true)?;
        let dtype = self.dtype().accumulator();
        let (x, mean) = (self.to_dtype(dtype)?, running_mean.to_dtype(dtype)?);
        let mut scale = running_var.to_dtype(dtype)?.add(eps)?.rsqrt()?;
        if let Some(weight) = weight {
            scale = scale.mul(&weight.to_dtype(dtype)?)?;
        }
        // One product and one sum an element: y = x·scale + (bias - mean·scale).
        let mut shift = mean.mul(&scale)?.neg()?;
        if let Some(bias) = bias {
            shift = shift.add(&bias.to_dtype(dtype)?)?;
        }
        let y = per_channel(&x, BinaryOp::Mul, Some(&scale))?;
        per_channel(&y, BinaryOp::Add, Some(&shift))?.to_dtype(self.dtype())
    }
}

/// The spec of a norm over a tail of x's shape, without parameters.
#[track_caller]
fn trailing(name: &'static str, x: &Tensor, shape: &Shape, eps: f64) -> Result<NormSpec> {
    if shape.rank() == 0 || !x.dims().ends_with(shape.dims()) {
        return Err(
            Error::shape(name, format!("input {} does not end in {shape}", x.shape()))
                .help("the normalised shape must be a non-empty tail of the input's shape"),
        );
    }
    check_eps(name, eps)?;
    Ok(NormSpec {
        dims: shape.rank() as u8,
        eps,
        affine: false,
    })
}

#[track_caller]
fn check_eps(name: &'static str, eps: f64) -> Result<()> {
    if eps >= 0.0 && eps.is_finite() {
        return Ok(());
    }
    Err(Error::argument(
        name,
        format!("eps {eps}, must be at least 0"),
    ))
}

/// Of weight and bias both or none: where one is given the other is ones or zeros.
fn both(
    shape: Shape,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<(Option<Tensor>, Option<Tensor>)> {
    Ok(match (weight, bias) {
        (None, None) => (None, None),
        (Some(w), Some(b)) => (Some(w.clone()), Some(b.clone())),
        (Some(w), None) => (
            Some(w.clone()),
            Some(Tensor::zeros(shape, w.dtype(), w.device())?),
        ),
        (None, Some(b)) => (
            Some(Tensor::ones(shape, b.dtype(), b.device())?),
            Some(b.clone()),
        ),
    })
}

fn first(name: &'static str, results: Vec<Tensor>) -> Result<Tensor> {
    let mut results = results.into_iter();
    results
        .next()
        .ok_or_else(|| Error::backend(name, "no output"))
}

/// The size of x's channel dimension.
#[track_caller]
fn channels(name: &'static str, x: &Tensor) -> Result<usize> {
    match x.dims() {
        [_, channels, ..] if x.dtype().is_float() => Ok(*channels),
        [_, _, ..] => Err(Error::dtype(
            name,
            format!("input is {}, not a float", x.dtype()),
        )),
        _ => Err(Error::shape(
            name,
            format!("input has shape {}, [N, C, …] expected", x.shape()),
        )),
    }
}

/// The arguments lie where x does.
#[track_caller]
fn check_arguments(
    name: &'static str,
    x: &Tensor,
    arguments: [(&str, Option<&Tensor>); 2],
) -> Result<()> {
    for (label, argument) in arguments {
        if let Some(argument) = argument {
            crate::conv::check_device(name, x, label, argument)?;
        }
    }
    Ok(())
}

/// The arguments have one element a channel, and x's dtype where that is asked for.
#[track_caller]
fn check_channel_arguments(
    name: &'static str,
    x: &Tensor,
    arguments: [(&str, Option<&Tensor>); 2],
    same_dtype: bool,
) -> Result<()> {
    check_arguments(name, x, arguments)?;
    for (label, argument) in arguments {
        let Some(argument) = argument else { continue };
        if argument.dims() != [x.dims()[1]] {
            return Err(Error::shape(
                name,
                format!(
                    "{label} {} does not match input {}, [{}] expected",
                    argument.shape(),
                    x.shape(),
                    x.dims()[1]
                ),
            ));
        }
        if same_dtype && argument.dtype() != x.dtype() {
            return Err(Error::dtype(
                name,
                format!("{label} is {}, input is {}", argument.dtype(), x.dtype()),
            ));
        }
    }
    Ok(())
}

/// `x op parameter` with the parameter [C] along dimension 1.
fn per_channel(x: &Tensor, op: BinaryOp, parameter: Option<&Tensor>) -> Result<Tensor> {
    let Some(parameter) = parameter else {
        return Ok(x.clone());
    };
    let mut shape = vec![1; x.rank()];
    shape[1] = parameter.elements();
    let parameter = parameter.to_dtype(x.dtype())?.reshape(shape)?;
    x.binary(op, Operand::Tensor(&parameter))
}

/// The distance from 1 to the next number of a float dtype.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}
