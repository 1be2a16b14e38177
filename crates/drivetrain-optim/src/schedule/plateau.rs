//! The schedule that looks at a metric.

use crate::Optimizer;
use drivetrain_core::{Error, Result};

/// Lowers the rate when a metric has stopped improving.
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceOnPlateau {
    /// The rate is multiplied by this.
    pub factor: f64,
    /// Epochs without improvement that are borne.
    pub patience: usize,
    /// How much counts as improvement: relative to the best, or absolute.
    pub threshold: f64,
    /// Whether `threshold` is absolute.
    pub absolute: bool,
    /// Whether larger is better.
    pub maximize: bool,
    /// Epochs after a fall in which nothing is counted.
    pub cooldown: usize,
    /// No rate falls below this.
    pub min_lr: f64,
    /// Falls smaller than this are left out.
    pub eps: f64,
    best: Option<f64>,
    bad_epochs: usize,
    cooling: usize,
}

impl Default for ReduceOnPlateau {
    /// PyTorch's defaults: to a tenth after 10 epochs without an improvement of 0.01 %.
    fn default() -> Self {
        ReduceOnPlateau {
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            absolute: false,
            maximize: false,
            cooldown: 0,
            min_lr: 0.0,
            eps: 1e-8,
            best: None,
            bad_epochs: 0,
            cooling: 0,
        }
    }
}

impl ReduceOnPlateau {
    /// Takes an epoch's metric and lowers the rates if it is time. A NaN never counts as improvement.
    ///
    /// # Errors
    /// A factor that is not below 1.
    pub fn step(&mut self, metric: f64, optimizer: &mut dyn Optimizer) -> Result<()> {
        if !(0.0..1.0).contains(&self.factor) {
            return Err(Error::argument(
                "reduce_on_plateau",
                format!("factor {} is not in 0..1", self.factor),
            ));
        }
        if self.improves(metric) {
            self.best = Some(metric);
            self.bad_epochs = 0;
        } else {
            self.bad_epochs += 1;
        }
        if self.cooling > 0 {
            self.cooling -= 1;
            self.bad_epochs = 0;
        }
        if self.bad_epochs > self.patience {
            for group in optimizer.groups_mut() {
                let lower = (group.learning_rate * self.factor).max(self.min_lr);
                if group.learning_rate - lower > self.eps {
                    group.learning_rate = lower;
                }
            }
            self.cooling = self.cooldown;
            self.bad_epochs = 0;
        }
        Ok(())
    }

    fn improves(&self, metric: f64) -> bool {
        let Some(best) = self.best else {
            return !metric.is_nan();
        };
        match (self.maximize, self.absolute) {
            (false, false) => metric < best * (1.0 - self.threshold),
            (false, true) => metric < best - self.threshold,
            (true, false) => metric > best * (1.0 + self.threshold),
            (true, true) => metric > best + self.threshold,
        }
    }
}
