//! The training loop.

use crate::callback::{Callback, Flow};
use crate::history::{History, Row};
use crate::metrics::{Metric, Totals};
use crate::progress::{Bar, Progress, line};
use crate::source::BatchSource;
use drivetrain_core::{Device, Error, Result};
use drivetrain_nn::loss::Loss;
use drivetrain_nn::{Layer, Mode};
use drivetrain_optim::{Optimizer, Schedule, Scheduler, clip_grad_norm};
use drivetrain_tensor::{Tensor, no_grad};
use std::time::Instant;

/// When a schedule goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleEvery {
    /// After each step.
    Step,
    /// After each epoch.
    Epoch,
}

/// Trains a model with a loss and an optimizer on a device.
///
/// ```
/// # use drivetrain_cpu as _;
/// use drivetrain_nn::{Linear, loss::MseLoss, Module};
/// use drivetrain_optim::Sgd;
/// use drivetrain_tensor::{DType, Device, Tensor};
/// use drivetrain_train::{Progress, Trainer};
/// let device = Device::open("cpu")?;
/// let model = Linear::new(2, 1, &device)?;
/// let optimizer = Sgd::new(model.parameters(), 0.1);
/// let x = Tensor::randn([16, 2], DType::F32, &device)?;
/// let y = x.sum_keepdim([1])?;
/// let mut trainer = Trainer::new(model, MseLoss::new(), optimizer, &device)?.progress(Progress::Silent);
/// let history = trainer.fit(&vec![(x, y)], None, 20)?;
/// assert!(history.rows[19].train[0] < history.rows[0].train[0]);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
pub struct Trainer<M, L, O> {
    model: M,
    loss: L,
    optimizer: O,
    device: Device,
    metrics: Vec<Box<dyn Metric>>,
    callbacks: Vec<Box<dyn Callback>>,
    scheduler: Option<(Scheduler, ScheduleEvery)>,
    clip_norm: Option<f64>,
    progress: Progress,
    history: History,
}

/// Loss and metrics of an evaluation, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// `loss`, then the metrics.
    pub names: Vec<String>,
    /// Their means over the samples.
    pub values: Vec<f64>,
}

impl Evaluation {
    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        let at = self.names.iter().position(|known| known == name)?;
        self.values.get(at).copied()
    }
}

impl<M: Layer, L: Loss, O: Optimizer> Trainer<M, L, O> {
    /// A trainer; model, loss and optimizer are moved to `device`.
    ///
    /// # Errors
    /// When a device fails.
    pub fn new(model: M, loss: L, mut optimizer: O, device: &Device) -> Result<Self> {
        model.to(device)?;
        loss.to(device)?;
        optimizer.to(device)?;
        Ok(Trainer {
            model,
            loss,
            optimizer,
            device: device.clone(),
            metrics: Vec::new(),
            callbacks: Vec::new(),
            scheduler: None,
            clip_norm: None,
            progress: Progress::Auto,
            history: History {
                names: vec!["loss".to_string()],
                rows: Vec::new(),
            },
        })
    }

    /// Counts this too.
    #[must_use]
    pub fn metric(mut self, metric: impl Metric + 'static) -> Self {
        self.history.names.push(metric.name());
        self.metrics.push(Box::new(metric));
        self
    }

    /// Calls this too.
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'static) -> Self {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// Follows a schedule from the optimizer's rate.
    ///
    /// # Errors
    /// A schedule whose numbers make no sense.
    pub fn schedule(mut self, schedule: Schedule, every: ScheduleEvery) -> Result<Self> {
        self.scheduler = Some((Scheduler::new(schedule, &mut self.optimizer)?, every));
        Ok(self)
    }

    /// Scales gradients so that their norm is at most this.
    #[must_use]
    pub fn clip_norm(mut self, norm: f64) -> Self {
        self.clip_norm = Some(norm);
        self
    }

    /// Shows progress in this way.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The optimizer.
    pub fn optimizer(&mut self) -> &mut O {
        &mut self.optimizer
    }

    /// Where it trains.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// All epochs so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Gives the parts back.
    pub fn into_parts(self) -> (M, L, O, History) {
        (self.model, self.loss, self.optimizer, self.history)
    }

    /// Trains for `epochs` more epochs, each followed by an evaluation where validation batches are given.
    ///
    /// # Errors
    /// What the data, the model or a device raises, with epoch and batch.
    pub fn fit(
        &mut self,
        train: &dyn BatchSource,
        valid: Option<&dyn BatchSource>,
        epochs: usize,
    ) -> Result<&History> {
        let first = self.history.rows.len() + 1;
        let last = self.history.rows.len() + epochs;
        for epoch in first..=last {
            let start = Instant::now();
            let label = format!("epoch {epoch}/{last}");
            let trained = self.train_epoch(train, epoch, &label)?;
            let validated = match valid {
                Some(valid) => {
                    self.evaluate(valid)
                        .map_err(|e| e.context(label.clone()))?
                        .values
                }
                None => Vec::new(),
            };
            if let Some((scheduler, ScheduleEvery::Epoch)) = &mut self.scheduler {
                scheduler.step(&mut self.optimizer);
            }
            self.history.rows.push(Row {
                epoch,
                learning_rate: self.optimizer.learning_rate(),
                seconds: start.elapsed().as_secs_f64(),
                train: trained,
                valid: validated,
            });
            line(self.progress, &self.summary(&label));
            let mut flow = Flow::Continue;
            for callback in &mut self.callbacks {
                if callback.on_epoch_end(&self.history)? == Flow::Stop {
                    flow = Flow::Stop;
                }
            }
            if flow == Flow::Stop {
                break;
            }
        }
        Ok(&self.history)
    }

    /// One pass over the training batches; the means of loss and metrics.
    fn train_epoch(
        &mut self,
        train: &dyn BatchSource,
        epoch: usize,
        label: &str,
    ) -> Result<Vec<f64>> {
        self.model.train();
        let bar = Bar::new(self.progress, label.to_string(), train.batches());
        let mut totals = Totals::new(self.metrics.len());
        for (i, batch) in train.epoch().enumerate() {
            let place = || format!("epoch {epoch}, batch {}", i + 1);
            let (input, target) = batch.map_err(|e| e.context(place()))?;
            let loss = self
                .train_step(&input, &target, &mut totals)
                .map_err(|e| e.context(place()))?;
            for callback in &mut self.callbacks {
                callback.on_step(epoch, i + 1, &loss)?;
            }
            bar.step();
            if bar.is_shown() && i % 20 == 19 {
                bar.message(self.describe(&totals.means()?));
            }
        }
        bar.finish();
        if totals.is_empty() {
            return Err(
                Error::argument("fit", "the training data has no batch").context(label.to_string())
            );
        }
        totals.means()
    }

    /// Forward, loss, backward, step.
    fn train_step(
        &mut self,
        input: &Tensor,
        target: &Tensor,
        totals: &mut Totals,
    ) -> Result<Tensor> {
        let (input, target) = (input.to(&self.device)?, target.to(&self.device)?);
        let output = self.model.forward(&input)?;
        let loss = self.loss.forward(&output, &target)?;
        self.optimizer.zero_grad();
        loss.backward()?;
        if let Some(norm) = self.clip_norm {
            clip_grad_norm(&self.model.parameters(), norm, 2.0)?;
        }
        self.optimizer.step()?;
        if let Some((scheduler, ScheduleEvery::Step)) = &mut self.scheduler {
            scheduler.step(&mut self.optimizer);
        }
        let loss = loss.detach();
        no_grad(|| totals.add(&loss, &output, &target, &self.metrics))?;
        Ok(loss)
    }

    /// Loss and metrics over these batches, in evaluation mode and without recording. Afterwards every layer is
    /// in the mode it was in.
    ///
    /// # Errors
    /// What the data, the model or a device raises, with the batch.
    pub fn evaluate(&self, data: &dyn BatchSource) -> Result<Evaluation> {
        let result = self.in_evaluation(|| {
            let bar = Bar::new(self.progress, "evaluation".to_string(), data.batches());
            let mut totals = Totals::new(self.metrics.len());
            for (i, batch) in data.epoch().enumerate() {
                let step = || {
                    let (input, target) = batch?;
                    let (input, target) = (input.to(&self.device)?, target.to(&self.device)?);
                    let output = self.model.forward(&input)?;
                    let loss = self.loss.forward(&output, &target)?;
                    totals.add(&loss, &output, &target, &self.metrics)
                };
                step().map_err(|e: Error| e.context(format!("evaluation, batch {}", i + 1)))?;
                bar.step();
            }
            bar.finish();
            totals.means()
        });
        Ok(Evaluation {
            names: self.history.names.clone(),
            values: result?,
        })
    }

    /// The model's outputs for these inputs, in evaluation mode and without recording.
    ///
    /// # Errors
    /// What the model or a device raises.
    pub fn predict(&self, input: &Tensor) -> Result<Tensor> {
        self.in_evaluation(|| self.model.forward(&input.to(&self.device)?))
    }

    /// Runs `body` in evaluation mode without recording, and puts every layer's mode back, also after a panic.
    fn in_evaluation<R>(&self, body: impl FnOnce() -> Result<R>) -> Result<R> {
        struct Restore(Vec<(Mode, bool)>);
        impl Drop for Restore {
            fn drop(&mut self) {
                self.0
                    .iter()
                    .for_each(|(mode, training)| mode.set_training(*training));
            }
        }
        let modes = self.model.modes().into_iter().map(|mode| {
            let training = mode.is_training();
            (mode, training)
        });
        let _restore = Restore(modes.collect());
        self.model.eval();
        no_grad(body)
    }

    fn describe(&self, values: &[f64]) -> String {
        let parts = self
            .history
            .names
            .iter()
            .zip(values)
            .map(|(name, value)| format!("{name} {value:.4}"));
        parts.collect::<Vec<_>>().join(", ")
    }

    fn summary(&self, label: &str) -> String {
        let Some(row) = self.history.rows.last() else {
            return label.to_string();
        };
        let mut text = format!("{label}: {}", self.describe(&row.train));
        if !row.valid.is_empty() {
            text += &format!(" | valid {}", self.describe(&row.valid));
        }
        text + &format!(" | {:.1} s", row.seconds)
    }
}
