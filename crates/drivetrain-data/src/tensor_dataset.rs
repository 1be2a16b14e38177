//! `TensorDataset`: items cut from tensors along their first dimension.

use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

use crate::dataset::{Dataset, check_index};

/// Pairs of (input, target), cut from two tensors of one length: item `i` is `(inputs[i], targets[i])`, views on
/// the tensors' own devices. Batches are stacked there too.
#[derive(Clone)]
pub struct TensorDataset {
    inputs: Tensor,
    targets: Tensor,
}

impl TensorDataset {
    /// Inputs [N, …] and targets [N, …]; an error if the N differ or a tensor is a scalar.
    pub fn new(inputs: Tensor, targets: Tensor) -> Result<Self> {
        match (inputs.dims().first(), targets.dims().first()) {
            (Some(a), Some(b)) if a == b => Ok(TensorDataset { inputs, targets }),
            _ => Err(Error::shape(
                "TensorDataset",
                format!(
                    "inputs {} and targets {} must have the same first size",
                    inputs.shape(),
                    targets.shape()
                ),
            )),
        }
    }
}

impl Dataset for TensorDataset {
    type Item = (Tensor, Tensor);

    fn len(&self) -> usize {
        self.inputs.dims().first().copied().unwrap_or(0)
    }

    fn get(&self, index: usize) -> Result<(Tensor, Tensor)> {
        check_index("TensorDataset::get", index, self.len())?;
        // Below the length of something in memory, so it fits.
        let at = index as isize;
        Ok((self.inputs.select(0, at)?, self.targets.select(0, at)?))
    }
}
