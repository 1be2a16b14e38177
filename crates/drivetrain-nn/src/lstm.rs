//! Long short-term memory.

use crate::recurrent::{RecurrentConfig, Stack};
use crate::{Layer, Module};
use drivetrain_core::{Device, Result};
use drivetrain_tensor::Tensor;

/// Hidden and cell state, each [layers·directions, batch, hidden].
#[derive(Clone)]
pub struct LstmState {
    /// The hidden state.
    pub hidden: Tensor,
    /// The cell state.
    pub cell: Tensor,
}

/// LSTM (Hochreiter and Schmidhuber 1997) with PyTorch's gates (input, forget, cell, output) and names.
///
/// Input [time, batch, features], or [batch, time, features] with `batch_first`.
#[derive(Clone, Debug, Module)]
pub struct Lstm {
    #[module(flatten)]
    stack: Stack,
}

impl Lstm {
    /// One layer, one direction, time first.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(inputs: usize, hidden: usize, device: &Device) -> Result<Lstm> {
        Lstm::config(inputs, hidden).lstm(device)
    }

    /// For other choices: `Lstm::config(64, 128).batch_first(true).lstm(&device)?`.
    pub fn config(inputs: usize, hidden: usize) -> RecurrentConfig {
        RecurrentConfig::new(inputs, hidden)
    }

    /// Outputs for a sequence and the state after it; `state` is zeros when left out.
    ///
    /// # Errors
    /// Shapes that do not fit.
    #[track_caller]
    pub fn forward_with(
        &self,
        input: &Tensor,
        state: Option<&LstmState>,
    ) -> Result<(Tensor, LstmState)> {
        let given = [state.map(|s| &s.hidden), state.map(|s| &s.cell)];
        let begin = self.stack.begin("lstm", input, &given)?;
        let (output, last) = self.stack.run("lstm", input, begin, &step)?;
        let state = LstmState {
            hidden: self.stack.end(input, &last, 0)?,
            cell: self.stack.end(input, &last, 1)?,
        };
        Ok((output, state))
    }
}

impl RecurrentConfig {
    /// Makes an LSTM.
    ///
    /// # Errors
    /// No layers or units, or a device without room.
    pub fn lstm(self, device: &Device) -> Result<Lstm> {
        Ok(Lstm {
            stack: Stack::new("lstm", self, 4, device)?,
        })
    }
}

fn step(
    gates: &Tensor,
    state: &[Tensor],
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> Result<Vec<Tensor>> {
    let [hidden, cell] = state else {
        return Err(drivetrain_core::Error::state(
            "lstm",
            "two states are carried",
        ));
    };
    let gates = gates.add(&hidden.linear(weight, bias)?)?;
    let parts = gates.chunk(4, -1)?;
    let (input, forget) = (parts[0].sigmoid()?, parts[1].sigmoid()?);
    let (candidate, output) = (parts[2].tanh()?, parts[3].sigmoid()?);
    let cell = forget.mul(cell)?.add(&input.mul(&candidate)?)?;
    Ok(vec![output.mul(&cell.tanh()?)?, cell])
}

impl Layer for Lstm {
    /// The outputs, from a state of zeros.
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(self.forward_with(input, None)?.0)
    }
}
