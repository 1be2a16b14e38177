//! The encoder layer of a transformer.

use crate::{Dropout, Layer, LayerNorm, Linear, Module, MultiheadAttention};
use drivetrain_core::{DType, Device, Result};
use drivetrain_tensor::Tensor;

/// Self-attention and a two-layer map, each with a residual and a norm (Vaswani et al. 2017), with PyTorch's names.
#[derive(Clone, Debug, Module)]
pub struct TransformerEncoderLayer {
    /// Attention of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// First map, to the inner width.
    pub linear1: Linear,
    /// Second map, back.
    pub linear2: Linear,
    /// Norm around attention.
    pub norm1: LayerNorm,
    /// Norm around the maps.
    pub norm2: LayerNorm,
    dropout: Dropout,
    #[module(skip)]
    gelu: bool,
    #[module(skip)]
    norm_first: bool,
}

/// How a [`TransformerEncoderLayer`] is made.
#[derive(Clone, Copy, Debug)]
pub struct TransformerEncoderLayerConfig {
    width: usize,
    heads: usize,
    inner: usize,
    dropout: f64,
    gelu: bool,
    norm_first: bool,
    batch_first: bool,
    eps: f64,
    dtype: DType,
}

impl TransformerEncoderLayerConfig {
    /// Width of the inner map; 2048 by default.
    #[must_use]
    pub fn dim_feedforward(mut self, inner: usize) -> Self {
        self.inner = inner;
        self
    }

    /// Dropout while training; 0.1 by default.
    #[must_use]
    pub fn dropout(mut self, p: f64) -> Self {
        self.dropout = p;
        self
    }

    /// GELU instead of ReLU between the maps.
    #[must_use]
    pub fn gelu(mut self, gelu: bool) -> Self {
        self.gelu = gelu;
        self
    }

    /// Norms before attention and maps instead of after the residuals.
    #[must_use]
    pub fn norm_first(mut self, norm_first: bool) -> Self {
        self.norm_first = norm_first;
        self
    }

    /// Inputs are [batch, time, width] instead of [time, batch, width].
    #[must_use]
    pub fn batch_first(mut self, batch_first: bool) -> Self {
        self.batch_first = batch_first;
        self
    }

    /// Added to the norms' variances; 1e-5 by default.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
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
    /// A width that the heads do not divide, or a device without room.
    pub fn build(self, device: &Device) -> Result<TransformerEncoderLayer> {
        let linear = |inputs, outputs| {
            Linear::config(inputs, outputs)
                .dtype(self.dtype)
                .build(device)
        };
        let norm = || {
            LayerNorm::config([self.width])
                .eps(self.eps)
                .dtype(self.dtype)
                .build(device)
        };
        Ok(TransformerEncoderLayer {
            self_attn: MultiheadAttention::config(self.width, self.heads)
                .batch_first(self.batch_first)
                .dropout(self.dropout)
                .dtype(self.dtype)
                .build(device)?,
            linear1: linear(self.width, self.inner)?,
            linear2: linear(self.inner, self.width)?,
            norm1: norm()?,
            norm2: norm()?,
            dropout: Dropout::new(self.dropout)?,
            gelu: self.gelu,
            norm_first: self.norm_first,
        })
    }
}

impl TransformerEncoderLayer {
    /// With PyTorch's defaults.
    ///
    /// # Errors
    /// A width that the heads do not divide, or a device without room.
    pub fn new(width: usize, heads: usize, device: &Device) -> Result<TransformerEncoderLayer> {
        TransformerEncoderLayer::config(width, heads).build(device)
    }

    /// For other choices.
    pub fn config(width: usize, heads: usize) -> TransformerEncoderLayerConfig {
        TransformerEncoderLayerConfig {
            width,
            heads,
            inner: 2048,
            dropout: 0.1,
            gelu: false,
            norm_first: false,
            batch_first: false,
            eps: 1e-5,
            dtype: DType::F32,
        }
    }

    /// The layer with a mask as in [`MultiheadAttention::attend`].
    ///
    /// # Errors
    /// Shapes that do not fit.
    #[track_caller]
    pub fn forward_with(
        &self,
        input: &Tensor,
        mask: Option<&Tensor>,
        is_causal: bool,
    ) -> Result<Tensor> {
        let attention = |x: &Tensor| {
            self.dropout
                .forward(&self.self_attn.attend(x, x, x, mask, is_causal)?)
        };
        let maps = |x: &Tensor| {
            let inner = self.linear1.forward(x)?;
            let inner = if self.gelu {
                inner.gelu()?
            } else {
                inner.relu()?
            };
            self.dropout
                .forward(&self.linear2.forward(&self.dropout.forward(&inner)?)?)
        };
        if self.norm_first {
            let x = input.add(&attention(&self.norm1.forward(input)?)?)?;
            return x.add(&maps(&self.norm2.forward(&x)?)?);
        }
        let x = self.norm1.forward(&input.add(&attention(input)?)?)?;
        self.norm2.forward(&x.add(&maps(&x)?)?)
    }
}

impl Layer for TransformerEncoderLayer {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.forward_with(input, None, false)
    }
}
