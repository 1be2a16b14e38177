//! Metrics: what is counted beside the loss. Counted on the device, read once an epoch.

use drivetrain_core::{DType, Error, Result};
use drivetrain_tensor::Tensor;

/// Something averaged over the samples of an epoch.
pub trait Metric: Send + Sync {
    /// Its name in progress lines and history columns.
    fn name(&self) -> String;

    /// The sum over a batch's samples, as a tensor of one element on the device.
    ///
    /// # Errors
    /// Shapes that do not fit.
    fn total(&self, output: &Tensor, target: &Tensor) -> Result<Tensor>;
}

/// Share of samples whose largest output is at the target's class: outputs `[N, C, …]`, targets `[N, …]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accuracy;

impl Metric for Accuracy {
    fn name(&self) -> String {
        "accuracy".to_string()
    }

    fn total(&self, output: &Tensor, target: &Tensor) -> Result<Tensor> {
        let found = output.argmax(1, false)?;
        if found.shape() != target.shape() {
            return Err(Error::shape(
                "accuracy",
                format!(
                    "outputs {} and targets {} do not fit",
                    output.shape(),
                    target.shape()
                ),
            ));
        }
        let hits = found.eq(target)?.sum(())?;
        // A sample of several targets (an image of labels) counts by its share of hits.
        let each = target
            .elements()
            .checked_div(target.len())
            .unwrap_or(1)
            .max(1);
        hits.div(each as f64)
    }
}

/// Share of samples whose target is among the `k` largest outputs: outputs `[N, C]`, targets `[N]`.
#[derive(Clone, Copy, Debug)]
pub struct TopK(pub usize);

impl Metric for TopK {
    fn name(&self) -> String {
        format!("top{}", self.0)
    }

    fn total(&self, output: &Tensor, target: &Tensor) -> Result<Tensor> {
        let (_, found) = output.topk(self.0, 1, true)?;
        found
            .eq(&target.unsqueeze(1)?)?
            .sum(())?
            .to_dtype(DType::F32)
    }
}

/// The mean of numbers seen so far, each with a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunningMean {
    sum: f64,
    weight: f64,
}

impl RunningMean {
    /// Of nothing yet.
    pub fn new() -> RunningMean {
        RunningMean::default()
    }

    /// Takes a number in.
    pub fn add(&mut self, value: f64, weight: f64) {
        self.sum += value * weight;
        self.weight += weight;
    }

    /// The mean; NaN of nothing.
    pub fn value(&self) -> f64 {
        self.sum / self.weight
    }
}

/// Sums of the loss and of all metrics over an epoch, kept on the device until they are read.
pub(crate) struct Totals {
    sums: Vec<Option<Tensor>>,
    samples: usize,
}

impl Totals {
    pub(crate) fn new(metrics: usize) -> Totals {
        Totals {
            sums: vec![None; 1 + metrics],
            samples: 0,
        }
    }

    /// Takes a batch in: its mean loss, and what the metrics count.
    pub(crate) fn add(
        &mut self,
        loss: &Tensor,
        output: &Tensor,
        target: &Tensor,
        metrics: &[Box<dyn Metric>],
    ) -> Result<()> {
        let samples = target.len();
        let (output, target) = (output.detach(), target.detach());
        let mut parts = vec![loss.detach().to_dtype(DType::F32)?.mul(samples as f64)?];
        for metric in metrics {
            parts.push(
                metric
                    .total(&output, &target)
                    .map_err(|e| e.context(metric.name()))?,
            );
        }
        for (slot, part) in self.sums.iter_mut().zip(parts) {
            *slot = Some(match slot.take() {
                None => part,
                Some(sum) => sum.add(&part)?,
            });
        }
        self.samples += samples;
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// The means so far: of the loss, then of the metrics. Waits for the device. NaN of nothing.
    pub(crate) fn means(&self) -> Result<Vec<f64>> {
        let mean = |sum: &Option<Tensor>| match sum {
            Some(sum) => Ok(sum.item::<f64>()? / self.samples as f64),
            None => Ok(f64::NAN),
        };
        self.sums.iter().map(mean).collect()
    }
}
