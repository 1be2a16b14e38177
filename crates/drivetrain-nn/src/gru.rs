//! Gated recurrent units.

use crate::recurrent::{RecurrentConfig, Stack};
use crate::{Layer, Module};
use drivetrain_core::{Device, Result};
use drivetrain_tensor::Tensor;

/// GRU (Cho et al. 2014) with PyTorch's gates (reset, update, new) and names.
///
/// Input [time, batch, features], or [batch, time, features] with `batch_first`.
#[derive(Clone, Debug, Module)]
pub struct Gru {
    #[module(flatten)]
    stack: Stack,
}

impl Gru {
    /// One layer, one direction, time first.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(inputs: usize, hidden: usize, device: &Device) -> Result<Gru> {
        Gru::config(inputs, hidden).gru(device)
    }

    /// For other choices: `Gru::config(64, 128).batch_first(true).gru(&device)?`.
    pub fn config(inputs: usize, hidden: usize) -> RecurrentConfig {
        RecurrentConfig::new(inputs, hidden)
    }

    /// Outputs for a sequence and the hidden state after it [layers·directions, batch, hidden]; `state` is zeros when
    /// left out.
    ///
    /// # Errors
    /// Shapes that do not fit.
    #[track_caller]
    pub fn forward_with(&self, input: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let begin = self.stack.begin("gru", input, &[state])?;
        let (output, last) = self.stack.run("gru", input, begin, &step)?;
        let state = self.stack.end(input, &last, 0)?;
        Ok((output, state))
    }
}

impl RecurrentConfig {
    /// Makes a GRU.
    ///
    /// # Errors
    /// No layers or units, or a device without room.
    pub fn gru(self, device: &Device) -> Result<Gru> {
        Ok(Gru {
            stack: Stack::new("gru", self, 3, device)?,
        })
    }
}

fn step(
    gates: &Tensor,
    state: &[Tensor],
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> Result<Vec<Tensor>> {
    let [hidden] = state else {
        return Err(drivetrain_core::Error::state("gru", "one state is carried"));
    };
    let from_input = gates.chunk(3, -1)?;
    let from_hidden = hidden.linear(weight, bias)?.chunk(3, -1)?;
    let reset = from_input[0].add(&from_hidden[0])?.sigmoid()?;
    let update = from_input[1].add(&from_hidden[1])?.sigmoid()?;
    let new = from_input[2].add(&reset.mul(&from_hidden[2])?)?.tanh()?;
    // (1 - z)·n + z·h = n + z·(h - n).
    Ok(vec![new.add(&update.mul(&hidden.sub(&new)?)?)?])
}

impl Layer for Gru {
    /// The outputs, from a state of zeros.
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(self.forward_with(input, None)?.0)
    }
}
