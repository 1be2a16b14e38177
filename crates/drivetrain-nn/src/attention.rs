//! Multi-head attention.

use crate::init::xavier_uniform;
use crate::{Layer, Linear, Mode, Module};
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_tensor::{Parameter, Tensor};

/// Attention in several heads (Vaswani et al. 2017), with PyTorch's parameters and names.
#[derive(Clone, Debug, Module)]
pub struct MultiheadAttention {
    /// Queries, keys and values side by side: [3·width, width].
    pub in_proj_weight: Parameter,
    /// [3·width].
    pub in_proj_bias: Option<Parameter>,
    /// The map after the heads.
    pub out_proj: Linear,
    #[module(skip)]
    config: MultiheadAttentionConfig,
    mode: Mode,
}

/// How a [`MultiheadAttention`] is made.
#[derive(Clone, Copy, Debug)]
pub struct MultiheadAttentionConfig {
    width: usize,
    heads: usize,
    bias: bool,
    batch_first: bool,
    dropout: f64,
    dtype: DType,
}

impl MultiheadAttentionConfig {
    /// With or without biases; with by default.
    #[must_use]
    pub fn bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// Inputs are [batch, time, width] instead of [time, batch, width].
    #[must_use]
    pub fn batch_first(mut self, batch_first: bool) -> Self {
        self.batch_first = batch_first;
        self
    }

    /// Dropout of the attention weights while training.
    #[must_use]
    pub fn dropout(mut self, p: f64) -> Self {
        self.dropout = p;
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
    pub fn build(self, device: &Device) -> Result<MultiheadAttention> {
        let (width, heads) = (self.width, self.heads);
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(Error::argument(
                "multihead_attention",
                format!("width {width} is not a multiple of {heads} heads"),
            ));
        }
        if !(0.0..=1.0).contains(&self.dropout) {
            return Err(Error::argument(
                "multihead_attention",
                format!("dropout {} is not in 0..=1", self.dropout),
            ));
        }
        let zeros = |n| Parameter::new(Tensor::zeros([n], self.dtype, device)?);
        let out_proj = Linear::config(width, width)
            .bias(self.bias)
            .dtype(self.dtype)
            .build(device)?;
        if let Some(bias) = &out_proj.bias {
            bias.set(&Tensor::zeros([width], self.dtype, device)?)?;
        }
        Ok(MultiheadAttention {
            in_proj_weight: Parameter::new(xavier_uniform(
                [3 * width, width],
                1.0,
                self.dtype,
                device,
            )?)?,
            in_proj_bias: self.bias.then(|| zeros(3 * width)).transpose()?,
            out_proj,
            config: self,
            mode: Mode::new(),
        })
    }
}

impl MultiheadAttention {
    /// With biases, in F32, time first.
    ///
    /// # Errors
    /// A width that the heads do not divide, or a device without room.
    pub fn new(width: usize, heads: usize, device: &Device) -> Result<MultiheadAttention> {
        MultiheadAttention::config(width, heads).build(device)
    }

    /// For other choices.
    pub fn config(width: usize, heads: usize) -> MultiheadAttentionConfig {
        MultiheadAttentionConfig {
            width,
            heads,
            bias: true,
            batch_first: false,
            dropout: 0.0,
            dtype: DType::F32,
        }
    }

    /// Attends from `query` to `key` and `value`. `mask` broadcasts to [batch, heads, targets, sources]: Bool (true:
    /// attend) or added to the scores.
    ///
    /// # Errors
    /// Shapes that do not fit.
    #[track_caller]
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        is_causal: bool,
    ) -> Result<Tensor> {
        let width = self.config.width;
        for (name, x) in [("query", query), ("key", key), ("value", value)] {
            if x.rank() != 3 || x.dims()[2] != width {
                return Err(Error::shape(
                    "multihead_attention",
                    format!(
                        "{name} {} has not three dimensions with a last size of {width}",
                        x.shape()
                    ),
                )
                .on(x.device()));
            }
        }
        let (q, k, v) = (
            self.project(query, 0)?,
            self.project(key, 1)?,
            self.project(value, 2)?,
        );
        let p = if self.mode.is_training() {
            self.config.dropout
        } else {
            0.0
        };
        let heads = if p > 0.0 {
            attention_with_dropout(&q, &k, &v, mask, is_causal, p)?
        } else {
            q.scaled_dot_product_attention(&k, &v, mask, is_causal, None)?
        };
        // [batch, heads, time, head width] → [batch, time, width]
        let joined = heads.transpose(1, 2)?.flatten(2, 3)?;
        let joined = if self.config.batch_first {
            joined
        } else {
            joined.transpose(0, 1)?
        };
        self.out_proj.forward(&joined)
    }

    /// Part `which` (queries, keys, values) of the input map, split into heads [batch, heads, time, head width].
    fn project(&self, x: &Tensor, which: usize) -> Result<Tensor> {
        let width = self.config.width;
        let rows = |p: &Parameter| p.value().narrow(0, which * width, width);
        let bias = self.in_proj_bias.as_ref().map(rows).transpose()?;
        let y = x.linear(&rows(&self.in_proj_weight)?, bias.as_ref())?;
        let y = if self.config.batch_first {
            y
        } else {
            y.transpose(0, 1)?
        };
        let (batch, time) = (y.dims()[0], y.dims()[1]);
        y.reshape([batch, time, self.config.heads, width / self.config.heads])?
            .transpose(1, 2)
    }
}

/// The plain form, for when attention weights are dropped.
fn attention_with_dropout(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Option<&Tensor>,
    is_causal: bool,
    p: f64,
) -> Result<Tensor> {
    let scale = 1.0 / (q.size(-1)? as f64).sqrt();
    let mut scores = q.matmul(&k.transpose(-1, -2)?)?.mul(scale)?;
    if is_causal {
        let shape = [q.size(-2)?, k.size(-2)?];
        let later = Tensor::index_along(shape, 1, q.device())?.gt(&Tensor::index_along(
            shape,
            0,
            q.device(),
        )?)?;
        scores = scores.masked_fill(&later, f64::NEG_INFINITY)?;
    }
    if let Some(mask) = mask {
        scores = match mask.dtype() {
            DType::Bool => scores.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY)?,
            _ => scores.add(mask)?,
        };
    }
    crate::functional::dropout(&scores.softmax(-1)?, p, true)?.matmul(v)
}

impl Layer for MultiheadAttention {
    /// Attends from the input to itself.
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.attend(input, input, input, None, false)
    }
}
