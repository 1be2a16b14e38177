//! Scaled dot-product attention.

use crate::Tensor;
use drivetrain_core::{DType, Error, Result};

impl Tensor {
    /// softmax(q·kᵀ·scale + mask)·v: q (this tensor) [..., L, E], k [..., S, E], v [..., S, Ev] → [..., L, Ev].
    /// Leading dimensions broadcast. Vaswani et al. 2017.
    ///
    /// `mask` broadcasts to [..., L, S]: of Bool it says which keys a query sees, of floats it is added to the
    /// scores. `is_causal` lets query i see the keys 0..=i; both may be given. `scale` is 1/√E when not given.
    /// A query that sees no key gets zeros, as in PyTorch, and a gradient of zeros.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{DType, Device, Tensor};
    /// let device = Device::open("cpu")?;
    /// let x = Tensor::ones([2, 4, 5, 8], DType::F32, &device)?;
    /// let y = x.scaled_dot_product_attention(&x, &x, None, true, None)?;
    /// assert_eq!(y.dims(), [2, 4, 5, 8]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sizes that do not fit each other, a mask that does not broadcast or is neither Bool nor float, dtypes that
    /// are no floats.
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &self,
        key: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        is_causal: bool,
        scale: impl Into<Option<f64>>,
    ) -> Result<Tensor> {
        let name = "scaled_dot_product_attention";
        crate::conv::check_device(name, self, "value", value)?;
        if value.rank() < 2 || key.rank() < 2 || value.size(-2)? != key.size(-2)? {
            return Err(Error::shape(
                name,
                format!(
                    "key {} value {}: the same number S of both expected, [..., S, E] and [..., S, Ev]",
                    key.shape(),
                    value.shape()
                ),
            ));
        }
        self.attention_weights(key, mask, is_causal, scale)?
            .matmul(value)
    }

    /// What [`Tensor::scaled_dot_product_attention`] weighs the values with: softmax(q·kᵀ·scale + mask),
    /// [..., L, S]. Rows sum to 1; those of a query that sees no key are zeros.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn attention_weights(
        &self,
        key: &Tensor,
        mask: Option<&Tensor>,
        is_causal: bool,
        scale: impl Into<Option<f64>>,
    ) -> Result<Tensor> {
        let name = "scaled_dot_product_attention";
        crate::conv::check_device(name, self, "key", key)?;
        let width = check_query(name, self, key)?;
        let scale = scale
            .into()
            .unwrap_or_else(|| 1.0 / (width.max(1) as f64).sqrt());
        // Scaled before the product, so that half precision does not overflow in it.
        let mut scores = self.mul(scale)?.matmul(&key.transpose(-1, -2)?)?;
        if is_causal {
            let future = future_keys(&scores)?;
            scores = scores.masked_fill(&future, f64::NEG_INFINITY)?;
        }
        let Some(mask) = mask else {
            return soft_rows(&scores);
        };
        crate::conv::check_device(name, self, "mask", mask)?;
        let fits = mask
            .shape()
            .broadcast(scores.shape(), name)
            .is_ok_and(|shape| shape == *scores.shape());
        if !fits {
            return Err(Error::shape(
                name,
                format!(
                    "mask {} does not broadcast to the scores {}",
                    mask.shape(),
                    scores.shape()
                ),
            )
            .help("a mask is [..., L, S]: queries by keys"));
        }
        scores = match mask.dtype() {
            DType::Bool => scores.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY)?,
            dtype if dtype.is_float() => scores.add(&mask.to_dtype(scores.dtype())?)?,
            dtype => {
                return Err(Error::dtype(
                    name,
                    format!("mask is {dtype}, Bool (what is seen) or a float (added) expected"),
                ));
            }
        };
        if scores.shape().is_empty() {
            return soft_rows(&scores);
        }
        // Rows without any key: softmax sees zeros instead, and its result is put out. The other rows keep
        // their bits.
        let blind = scores.detach().amax_keepdim(-1)?.eq(f64::NEG_INFINITY)?;
        let weights = soft_rows(&scores.masked_fill(&blind, 0.0)?)?;
        weights.masked_fill(&blind, 0.0)
    }
}

/// Softmax over the keys; no keys give an empty row.
fn soft_rows(scores: &Tensor) -> Result<Tensor> {
    if scores.shape().is_empty() {
        return Ok(scores.clone());
    }
    scores.softmax(-1)
}

/// The width E that queries and keys share.
#[track_caller]
fn check_query(name: &'static str, query: &Tensor, key: &Tensor) -> Result<usize> {
    match (query.dims(), key.dims()) {
        (&[.., _, width], &[.., _, other])
            if width == other && query.dtype().is_float() && key.dtype().is_float() =>
        {
            Ok(width)
        }
        (&[.., _, width], &[.., _, other]) if width == other => Err(Error::dtype(
            name,
            format!(
                "query is {}, key {}, floats expected",
                query.dtype(),
                key.dtype()
            ),
        )),
        _ => Err(Error::shape(
            name,
            format!(
                "query {} key {}: [..., L, E] and [..., S, E] expected",
                query.shape(),
                key.shape()
            ),
        )),
    }
}

/// Where a key lies after its query, [L, S] as Bool.
fn future_keys(scores: &Tensor) -> Result<Tensor> {
    let shape = &scores.dims()[scores.rank() - 2..];
    let queries = Tensor::index_along(shape, 0, scores.device())?;
    let keys = Tensor::index_along(shape, 1, scores.device())?;
    keys.gt(&queries)
}
