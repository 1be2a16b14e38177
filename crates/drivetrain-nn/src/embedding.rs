//! Embeddings: rows of a table by number.

use crate::init::normal;
use crate::{Layer, Module};
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_tensor::{Parameter, Tensor};

/// Rows of a table [count, width] at the ids given (I64, any shape). Begins standard normal.
#[derive(Clone, Debug, Module)]
pub struct Embedding {
    /// [count, width].
    pub weight: Parameter,
    /// A row that stays as it is: it begins as zeros and gets no gradient.
    #[module(skip)]
    pub padding_idx: Option<usize>,
}

/// How an [`Embedding`] is made.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingConfig {
    count: usize,
    width: usize,
    padding_idx: Option<usize>,
    dtype: DType,
}

impl EmbeddingConfig {
    /// With a row of zeros that is not trained.
    #[must_use]
    pub fn padding_idx(mut self, index: usize) -> Self {
        self.padding_idx = Some(index);
        self
    }

    /// In another dtype than F32.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Makes the layer.
    ///
    /// # Errors
    /// A padding row outside the table, or a device without room.
    pub fn build(self, device: &Device) -> Result<Embedding> {
        let mut weight = normal([self.count, self.width], 0.0, 1.0, self.dtype, device)?;
        if let Some(row) = self.padding_idx {
            if row >= self.count {
                return Err(Error::argument(
                    "embedding",
                    format!("padding_idx {row} of a table of {} rows", self.count),
                ));
            }
            weight = weight.masked_fill(&row_mask(self.count, row, device)?, 0.0)?;
        }
        Ok(Embedding {
            weight: Parameter::new(weight)?,
            padding_idx: self.padding_idx,
        })
    }
}

fn row_mask(count: usize, row: usize, device: &Device) -> Result<Tensor> {
    Tensor::index_along([count, 1], 0, device)?.eq(row as i64)
}

impl Embedding {
    /// A table of `count` rows of `width`, in F32.
    ///
    /// # Errors
    /// A device without room.
    pub fn new(count: usize, width: usize, device: &Device) -> Result<Embedding> {
        Embedding::config(count, width).build(device)
    }

    /// For other choices.
    pub fn config(count: usize, width: usize) -> EmbeddingConfig {
        EmbeddingConfig {
            count,
            width,
            padding_idx: None,
            dtype: DType::F32,
        }
    }
}

impl Layer for Embedding {
    #[track_caller]
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        crate::functional::embedding(ids, &self.weight.value(), self.padding_idx)
    }
}
