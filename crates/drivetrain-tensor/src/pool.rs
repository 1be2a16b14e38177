//! Pooling: the largest or the mean of windows that slide, or that divide the image evenly.

use crate::conv::{batched, unbatched};
use crate::run::{run, run_one};
use crate::{Spatial, Tensor};
use drivetrain_core::{Composite, Error, PoolSpec, Result};

/// How max pooling slides: PyTorch's arguments and defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxPoolOptions {
    /// Window sizes.
    pub kernel_size: Spatial,
    /// Steps between windows; the window's size when not given.
    pub stride: Option<Spatial>,
    /// Padding with minus infinity on both sides, at most half the window; 0.
    pub padding: Spatial,
    /// Steps between taps of a window; 1.
    pub dilation: Spatial,
    /// Whether a last window that begins inside but ends outside counts; no.
    pub ceil_mode: bool,
}

impl MaxPoolOptions {
    /// Windows of this size, side by side.
    pub fn new(kernel_size: impl Into<Spatial>) -> Self {
        MaxPoolOptions {
            kernel_size: kernel_size.into(),
            stride: None,
            padding: 0.into(),
            dilation: 1.into(),
            ceil_mode: false,
        }
    }

    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Spatial>) -> Self {
        self.stride = Some(stride.into());
        self
    }

    /// With another padding.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Spatial>) -> Self {
        self.padding = padding.into();
        self
    }

    /// With another dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Spatial>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// With or without a last window that ends outside.
    #[must_use]
    pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
        self.ceil_mode = ceil_mode;
        self
    }

    #[track_caller]
    fn spec(&self, name: &'static str, spatial: usize) -> Result<PoolSpec> {
        let stride = self.stride.unwrap_or(self.kernel_size);
        Ok(PoolSpec {
            spatial: spatial as u8,
            kernel: self.kernel_size.resolve(name, "kernel_size", spatial, 1)?,
            stride: stride.resolve(name, "stride", spatial, 1)?,
            padding: self.padding.resolve(name, "padding", spatial, 0)?,
            dilation: self.dilation.resolve(name, "dilation", spatial, 1)?,
            ceil_mode: self.ceil_mode,
            count_include_pad: true,
            sizes: [1; 3],
        })
    }
}

/// How average pooling slides: PyTorch's arguments and defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvgPoolOptions {
    /// Window sizes.
    pub kernel_size: Spatial,
    /// Steps between windows; the window's size when not given.
    pub stride: Option<Spatial>,
    /// Zeros on both sides, at most half the window; 0.
    pub padding: Spatial,
    /// Whether a last window that begins inside but ends outside counts; no.
    pub ceil_mode: bool,
    /// Whether padding counts in the divisor; yes.
    pub count_include_pad: bool,
}

impl AvgPoolOptions {
    /// Windows of this size, side by side.
    pub fn new(kernel_size: impl Into<Spatial>) -> Self {
        AvgPoolOptions {
            kernel_size: kernel_size.into(),
            stride: None,
            padding: 0.into(),
            ceil_mode: false,
            count_include_pad: true,
        }
    }

    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Spatial>) -> Self {
        self.stride = Some(stride.into());
        self
    }

    /// With another padding.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Spatial>) -> Self {
        self.padding = padding.into();
        self
    }

    /// With or without a last window that ends outside.
    #[must_use]
    pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
        self.ceil_mode = ceil_mode;
        self
    }

    /// Whether padding counts in the divisor.
    #[must_use]
    pub fn count_include_pad(mut self, count_include_pad: bool) -> Self {
        self.count_include_pad = count_include_pad;
        self
    }

    #[track_caller]
    fn spec(&self, name: &'static str, spatial: usize) -> Result<PoolSpec> {
        let max = MaxPoolOptions {
            kernel_size: self.kernel_size,
            stride: self.stride,
            padding: self.padding,
            dilation: 1.into(),
            ceil_mode: self.ceil_mode,
        };
        Ok(PoolSpec {
            count_include_pad: self.count_include_pad,
            ..max.spec(name, spatial)?
        })
    }
}

const MAX: [&str; 3] = ["max_pool1d", "max_pool2d", "max_pool3d"];
const AVG: [&str; 3] = ["avg_pool1d", "avg_pool2d", "avg_pool3d"];

impl Tensor {
    /// Largest of each window of x [N, C, L] or [C, L]. NaN wins; the gradient goes to the first of equals.
    ///
    /// # Errors
    /// A window that does not fit, a padding of more than half the window, a stride or a dilation of 0.
    #[track_caller]
    pub fn max_pool1d(&self, options: &MaxPoolOptions) -> Result<Tensor> {
        Ok(self.max_pool(1, options)?.0)
    }

    /// Largest of each window of x [N, C, H, W] or [C, H, W]. NaN wins; the gradient goes to the first of equals.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{Device, MaxPoolOptions, Tensor};
    /// let device = Device::open("cpu")?;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 2.0, 3.0], [1, 1, 2, 2], &device)?;
    /// assert_eq!(x.max_pool2d(&MaxPoolOptions::new(2))?.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::max_pool1d`].
    #[track_caller]
    pub fn max_pool2d(&self, options: &MaxPoolOptions) -> Result<Tensor> {
        Ok(self.max_pool(2, options)?.0)
    }

    /// Largest of each window of x [N, C, D, H, W] or [C, D, H, W].
    ///
    /// # Errors
    /// As [`Tensor::max_pool1d`].
    #[track_caller]
    pub fn max_pool3d(&self, options: &MaxPoolOptions) -> Result<Tensor> {
        Ok(self.max_pool(3, options)?.0)
    }

    /// [`Tensor::max_pool1d`], and where each largest element lies (I64).
    ///
    /// # Errors
    /// As [`Tensor::max_pool1d`].
    #[track_caller]
    pub fn max_pool1d_with_indices(&self, options: &MaxPoolOptions) -> Result<(Tensor, Tensor)> {
        self.max_pool(1, options)
    }

    /// [`Tensor::max_pool2d`], and where each largest element lies (I64): row·W + column in its image.
    ///
    /// # Errors
    /// As [`Tensor::max_pool1d`].
    #[track_caller]
    pub fn max_pool2d_with_indices(&self, options: &MaxPoolOptions) -> Result<(Tensor, Tensor)> {
        self.max_pool(2, options)
    }

    /// [`Tensor::max_pool3d`], and where each largest element lies (I64): flat in its volume.
    ///
    /// # Errors
    /// As [`Tensor::max_pool1d`].
    #[track_caller]
    pub fn max_pool3d_with_indices(&self, options: &MaxPoolOptions) -> Result<(Tensor, Tensor)> {
        self.max_pool(3, options)
    }

    #[track_caller]
    fn max_pool(&self, spatial: usize, options: &MaxPoolOptions) -> Result<(Tensor, Tensor)> {
        let name = MAX[spatial - 1];
        let spec = options.spec(name, spatial)?;
        let (x, single) = batched(name, self, spatial)?;
        let mut results = run(Composite::MaxPool(spec), &[&x])?.into_iter();
        let (Some(y), Some(indices)) = (results.next(), results.next()) else {
            return Err(Error::backend(name, "no indices"));
        };
        Ok((unbatched(y, single)?, unbatched(indices, single)?))
    }

    /// Mean of each window of x [N, C, L] or [C, L].
    ///
    /// # Errors
    /// A window that does not fit, a padding of more than half the window, a stride of 0, a dtype that is no float.
    #[track_caller]
    pub fn avg_pool1d(&self, options: &AvgPoolOptions) -> Result<Tensor> {
        self.avg_pool(1, options)
    }

    /// Mean of each window of x [N, C, H, W] or [C, H, W].
    ///
    /// # Errors
    /// As [`Tensor::avg_pool1d`].
    #[track_caller]
    pub fn avg_pool2d(&self, options: &AvgPoolOptions) -> Result<Tensor> {
        self.avg_pool(2, options)
    }

    /// Mean of each window of x [N, C, D, H, W] or [C, D, H, W].
    ///
    /// # Errors
    /// As [`Tensor::avg_pool1d`].
    #[track_caller]
    pub fn avg_pool3d(&self, options: &AvgPoolOptions) -> Result<Tensor> {
        self.avg_pool(3, options)
    }

    #[track_caller]
    fn avg_pool(&self, spatial: usize, options: &AvgPoolOptions) -> Result<Tensor> {
        let name = AVG[spatial - 1];
        let spec = options.spec(name, spatial)?;
        let (x, single) = batched(name, self, spatial)?;
        unbatched(run_one(Composite::AvgPool(spec), &[&x])?, single)
    }
}
