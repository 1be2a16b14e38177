//! Losses, as functions and as modules.

use crate::{Constant, Module};
use drivetrain_core::{Composite, DType, Error, Result};
use drivetrain_tensor::{Tensor, run};

mod modules;
pub use modules::*;

/// How the losses of the elements become the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// One loss an element (or a sample).
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Their sum, divided by the first size: Kullback–Leibler's own mean.
    BatchMean,
}

impl Reduction {
    fn apply(self, loss: &Tensor) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(loss.clone()),
            Reduction::Mean => loss.mean(()),
            Reduction::Sum => loss.sum(()),
            Reduction::BatchMean => loss.sum(())?.div(loss.len().max(1) as f64),
        }
    }
}

/// Prediction and target of one shape: broadcasting here would hide a mistake.
#[track_caller]
fn same_shape(operation: &'static str, prediction: &Tensor, target: &Tensor) -> Result<()> {
    if prediction.shape() == target.shape() {
        return Ok(());
    }
    Err(Error::shape(
        operation,
        format!(
            "prediction {} and target {} differ in shape",
            prediction.shape(),
            target.shape()
        ),
    )
    .on(prediction.device())
    .help("squeeze or unsqueeze one of them: they are compared element by element"))
}

/// Mean squared error: (p - t)².
///
/// # Errors
/// Shapes that differ.
#[track_caller]
pub fn mse_loss(prediction: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    same_shape("mse_loss", prediction, target)?;
    reduction.apply(&prediction.sub(target)?.square()?)
}

/// Mean absolute error: |p - t|.
///
/// # Errors
/// Shapes that differ.
#[track_caller]
pub fn l1_loss(prediction: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    same_shape("l1_loss", prediction, target)?;
    reduction.apply(&prediction.sub(target)?.abs()?)
}

/// (p - t)²/(2β) where |p - t| < β, else |p - t| - β/2. β = 0 is [`l1_loss`].
///
/// # Errors
/// Shapes that differ, or a negative β.
#[track_caller]
pub fn smooth_l1_loss(
    prediction: &Tensor,
    target: &Tensor,
    beta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    if beta == 0.0 {
        return l1_loss(prediction, target, reduction);
    }
    if beta.is_nan() || beta < 0.0 {
        return Err(Error::argument(
            "smooth_l1_loss",
            format!("beta {beta} is negative"),
        ));
    }
    huber(prediction, target, beta, "smooth_l1_loss")
        .and_then(|loss| reduction.apply(&loss.div(beta)?))
}

/// (p - t)²/2 where |p - t| < δ, else δ(|p - t| - δ/2) (Huber 1964).
///
/// # Errors
/// Shapes that differ, or a δ that is not positive.
#[track_caller]
pub fn huber_loss(
    prediction: &Tensor,
    target: &Tensor,
    delta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    if delta.is_nan() || delta <= 0.0 {
        return Err(Error::argument(
            "huber_loss",
            format!("delta {delta} is not positive"),
        ));
    }
    huber(prediction, target, delta, "huber_loss").and_then(|loss| reduction.apply(&loss))
}

#[track_caller]
fn huber(
    prediction: &Tensor,
    target: &Tensor,
    delta: f64,
    operation: &'static str,
) -> Result<Tensor> {
    same_shape(operation, prediction, target)?;
    let difference = prediction.sub(target)?;
    let size = difference.abs()?;
    let near = size.detach().lt(delta)?;
    let linear = size.sub(0.5 * delta)?.mul(delta)?;
    difference.square()?.mul(0.5)?.where_(&near, &linear)
}

/// How [`cross_entropy`] counts.
#[derive(Clone, Debug)]
pub struct CrossEntropyOptions {
    /// How samples are joined; the mean divides by the weights of the targets that count.
    pub reduction: Reduction,
    /// A weight for each class.
    pub weight: Option<Tensor>,
    /// Targets of this value count nothing.
    pub ignore_index: i64,
    /// Share of the target spread evenly over the classes, 0 to 1.
    pub label_smoothing: f64,
}

impl Default for CrossEntropyOptions {
    fn default() -> Self {
        CrossEntropyOptions {
            reduction: Reduction::Mean,
            weight: None,
            ignore_index: -100,
            label_smoothing: 0.0,
        }
    }
}

/// Cross-entropy of logits [N, C, …] (or \[C\]) with class indices (I64 [N, …]) or, for float targets of the logits'
/// shape, with probabilities.
///
/// With every target ignored the mean is NaN, as in PyTorch.
///
/// # Errors
/// Batch sizes that differ (names both), class indices of a float dtype, an index that is no class (perhaps when
/// the loss is read).
///
/// ```
/// # use drivetrain_cpu as _;
/// # use drivetrain_nn::loss::{cross_entropy, CrossEntropyOptions};
/// # use drivetrain_tensor::{Device, Tensor};
/// let device = Device::open("cpu")?;
/// let logits = Tensor::from_data([[1.0f32, 2.0], [0.0, 5.0], [3.0, 1.0]], &device)?;
/// let target = Tensor::from_data([1i64, -100, 0], &device)?;
/// let loss = cross_entropy(&logits, &target, &CrossEntropyOptions::default())?;
/// assert!((loss.item::<f32>()? - 0.220_094_9).abs() < 1e-6);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[track_caller]
pub fn cross_entropy(
    logits: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&options.label_smoothing) {
        return Err(Error::argument(
            "cross_entropy",
            format!(
                "label_smoothing {} is not in 0..=1",
                options.label_smoothing
            ),
        ));
    }
    if target.dtype().is_float() && target.shape() == logits.shape() {
        return cross_entropy_probabilities(logits, target, options);
    }
    if logits.rank() == 1 && target.rank() == 0 {
        let loss = cross_entropy(&logits.unsqueeze(0)?, &target.unsqueeze(0)?, options)?;
        return if options.reduction == Reduction::None {
            loss.squeeze(0)
        } else {
            Ok(loss)
        };
    }
    let target = match target.dtype() {
        DType::I32 | DType::U8 => target.to_dtype(DType::I64)?,
        _ => target.clone(),
    };
    let op = Composite::CrossEntropy {
        ignore_index: options.ignore_index,
        label_smoothing: options.label_smoothing,
        weighted: options.weight.is_some(),
    };
    let inputs: Vec<&Tensor> = [logits, &target]
        .into_iter()
        .chain(&options.weight)
        .collect();
    let outputs = run(op, &inputs)?;
    let [loss, _, counted] = &outputs[..] else {
        return Err(Error::backend("cross_entropy", "outputs are missing"));
    };
    match options.reduction {
        Reduction::Mean => loss.sum(())?.div(&counted.detach().sum(())?),
        reduction => reduction.apply(loss),
    }
}

#[track_caller]
fn cross_entropy_probabilities(
    logits: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
) -> Result<Tensor> {
    let dim = if logits.rank() == 1 { 0 } else { 1 };
    let classes = logits.size(dim)? as f64;
    let smoothing = options.label_smoothing;
    let target = if smoothing > 0.0 {
        target.mul(1.0 - smoothing)?.add(smoothing / classes)?
    } else {
        target.clone()
    };
    let mut terms = logits.log_softmax(dim)?.mul(&target)?;
    if let Some(weight) = &options.weight {
        terms = terms.mul(&per_class(weight, logits.rank())?)?;
    }
    let loss = terms.sum([dim])?.neg()?;
    options.reduction.apply(&loss)
}

/// A weight [C] that broadcasts over [N, C, …].
fn per_class(weight: &Tensor, rank: usize) -> Result<Tensor> {
    let mut sizes = vec![1; rank.saturating_sub(1)];
    if let Some(size) = sizes.first_mut() {
        *size = weight.elements();
        return weight.reshape(sizes);
    }
    Ok(weight.clone())
}

/// Negative log likelihood of log-probabilities [N, C, …] at class indices (I64 [N, …]).
///
/// # Errors
/// As [`cross_entropy`] with indices.
#[track_caller]
pub fn nll_loss(
    log_probabilities: &Tensor,
    target: &Tensor,
    options: &CrossEntropyOptions,
) -> Result<Tensor> {
    if log_probabilities.rank() == 1 && target.rank() == 0 {
        let loss = nll_loss(
            &log_probabilities.unsqueeze(0)?,
            &target.unsqueeze(0)?,
            options,
        )?;
        return if options.reduction == Reduction::None {
            loss.squeeze(0)
        } else {
            Ok(loss)
        };
    }
    let (x, dims) = (log_probabilities, log_probabilities.dims());
    let fits = dims.len() >= 2
        && target.rank() + 1 == dims.len()
        && target.dims()[0] == dims[0]
        && target.dims()[1..] == dims[2..];
    if !fits {
        return Err(Error::shape(
            "nll_loss",
            format!(
                "log-probabilities {} and target {}: the target has the same sizes without the classes",
                x.shape(),
                target.shape()
            ),
        ));
    }
    if target.dtype().is_float() {
        return Err(
            Error::dtype("nll_loss", format!("targets of {}", target.dtype()))
                .help("class indices are I64"),
        );
    }
    let target = target.to_dtype(DType::I64)?;
    let ignored = target.eq(options.ignore_index)?;
    let index = target.masked_fill(&ignored, 0)?.unsqueeze(1)?;
    let picked = x.gather(1, &index)?.squeeze(1)?.neg()?;
    let counted = match &options.weight {
        Some(weight) => weight
            .detach()
            .to_dtype(x.dtype())?
            .index_select(0, &index.reshape([-1isize])?)?
            .reshape(target.shape())?,
        None => Tensor::ones(*target.shape(), x.dtype(), x.device())?,
    };
    let counted = counted.masked_fill(&ignored, 0.0)?;
    // Chosen, not multiplied: an ignored log-probability may be infinite.
    let loss = picked.mul(&counted)?.masked_fill(&ignored, 0.0)?;
    match options.reduction {
        Reduction::Mean => loss.sum(())?.div(&counted.sum(())?),
        reduction => reduction.apply(&loss),
    }
}

/// Binary cross-entropy of probabilities: -(t·ln p + (1-t)·ln(1-p)), logarithms not below -100 as in PyTorch.
///
/// # Errors
/// Shapes that differ.
#[track_caller]
pub fn bce_loss(
    probability: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    same_shape("bce_loss", probability, target)?;
    let log = |p: &Tensor| p.log()?.clamp(-100.0, None);
    let positive = target.mul(&log(probability)?)?;
    let negative = (1.0 - target)?.mul(&log(&(1.0 - probability)?)?)?;
    weighted(positive.add(&negative)?.neg()?, weight, reduction)
}

/// Binary cross-entropy of logits, without overflow; `positive_weight` multiplies the positive term.
///
/// # Errors
/// Shapes that differ.
#[track_caller]
pub fn bce_with_logits(
    logits: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    positive_weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    same_shape("bce_with_logits", logits, target)?;
    // -t·ln σ(z) - (1-t)·ln σ(-z), and ln σ(-z) = ln σ(z) - z.
    let positive = logits.logsigmoid()?;
    let negative = positive.sub(logits)?;
    let mut gain = target.mul(&positive)?;
    if let Some(positive_weight) = positive_weight {
        gain = gain.mul(positive_weight)?;
    }
    let loss = gain.add(&(1.0 - target)?.mul(&negative)?)?.neg()?;
    weighted(loss, weight, reduction)
}

fn weighted(loss: Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
    let loss = match weight {
        Some(weight) => loss.mul(weight)?,
        None => loss,
    };
    reduction.apply(&loss)
}

/// Kullback–Leibler divergence of log-probabilities from a target of probabilities (or of their logarithms):
/// t·(ln t - p), 0 where t is 0.
///
/// # Errors
/// Shapes that differ.
#[track_caller]
pub fn kl_div(
    log_probabilities: &Tensor,
    target: &Tensor,
    log_target: bool,
    reduction: Reduction,
) -> Result<Tensor> {
    same_shape("kl_div", log_probabilities, target)?;
    let loss = if log_target {
        target.exp()?.mul(&target.sub(log_probabilities)?)?
    } else {
        let zero = target.detach().eq(0.0)?;
        let own = target.masked_fill(&zero, 1.0)?.log()?.mul(target)?;
        own.sub(&target.mul(log_probabilities)?)?
    };
    reduction.apply(&loss)
}

/// A class weight that moves with its loss.
fn moved(weight: &Option<Constant>) -> Option<Tensor> {
    weight.as_ref().map(Constant::value)
}

/// A loss as a module: has `to(device)` like any other, and a forward of prediction and target.
pub trait Loss: Module {
    /// The loss.
    ///
    /// # Errors
    /// Shapes, dtypes or devices that do not fit.
    fn forward(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor>;
}
