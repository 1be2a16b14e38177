//! Dropout.

use crate::{Layer, Mode, Module};
use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

/// Zeroes elements with probability `p` while training and scales the others by 1/(1 - p).
#[derive(Clone, Debug, Module)]
pub struct Dropout {
    #[module(skip)]
    p: f64,
    mode: Mode,
}

impl Dropout {
    /// With this probability.
    ///
    /// # Errors
    /// A probability outside 0..=1.
    #[track_caller]
    pub fn new(p: f64) -> Result<Dropout> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::argument(
                "dropout",
                format!("probability {p} is not in 0..=1"),
            ));
        }
        Ok(Dropout {
            p,
            mode: Mode::new(),
        })
    }
}

impl Layer for Dropout {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        crate::functional::dropout(input, self.p, self.mode.is_training())
    }
}
