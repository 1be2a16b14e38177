//! Callbacks: what a user hooks into the loop.

use crate::History;
use drivetrain_core::Result;

/// Whether training goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// On.
    Continue,
    /// Stop after this.
    Stop,
}

/// Called by the loop; every method does nothing unless written.
pub trait Callback: Send {
    /// After each training step: the epoch (from 1), the step within it (from 1), the batch's loss. Reading the loss
    /// waits for the device.
    ///
    /// # Errors
    /// What the callback returns ends training.
    fn on_step(
        &mut self,
        epoch: usize,
        step: usize,
        loss: &drivetrain_tensor::Tensor,
    ) -> Result<()> {
        let _ = (epoch, step, loss);
        Ok(())
    }

    /// After each epoch, whose row is the last.
    ///
    /// # Errors
    /// What the callback returns ends training.
    fn on_epoch_end(&mut self, history: &History) -> Result<Flow> {
        let _ = history;
        Ok(Flow::Continue)
    }
}

/// Stops when the validation loss (or, without one, the training loss) has not improved for `patience` epochs.
#[derive(Clone, Debug)]
pub struct EarlyStopping {
    patience: usize,
    best: f64,
    waited: usize,
}

impl EarlyStopping {
    /// With this patience.
    pub fn new(patience: usize) -> EarlyStopping {
        EarlyStopping {
            patience,
            best: f64::INFINITY,
            waited: 0,
        }
    }
}

impl Callback for EarlyStopping {
    fn on_epoch_end(&mut self, history: &History) -> Result<Flow> {
        let Some(row) = history.rows.last() else {
            return Ok(Flow::Continue);
        };
        let loss = row
            .valid
            .first()
            .or(row.train.first())
            .copied()
            .unwrap_or(f64::NAN);
        if loss < self.best {
            (self.best, self.waited) = (loss, 0);
            return Ok(Flow::Continue);
        }
        self.waited += 1;
        Ok(if self.waited > self.patience {
            Flow::Stop
        } else {
            Flow::Continue
        })
    }
}
