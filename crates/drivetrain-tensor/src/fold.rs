//! Windows of images as columns, and columns summed back into images.

use crate::conv::{batched, unbatched};
use crate::{Spatial, Tensor};
use drivetrain_core::{Error, IntoShape, MAX_DIMS, Result, Scalar};

/// How windows of an image are cut out: PyTorch's arguments and defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldOptions {
    /// Window sizes.
    pub kernel_size: Spatial,
    /// Steps between taps of a window; 1.
    pub dilation: Spatial,
    /// Zeros added on both sides; 0.
    pub padding: Spatial,
    /// Steps between windows; 1.
    pub stride: Spatial,
}

impl FoldOptions {
    /// Windows of this size, one step apart.
    pub fn new(kernel_size: impl Into<Spatial>) -> Self {
        FoldOptions {
            kernel_size: kernel_size.into(),
            dilation: 1.into(),
            padding: 0.into(),
            stride: 1.into(),
        }
    }

    /// With another dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Spatial>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// With another padding.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Spatial>) -> Self {
        self.padding = padding.into();
        self
    }

    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Spatial>) -> Self {
        self.stride = stride.into();
        self
    }
}

/// The options resolved for an image: everything along rows and columns.
struct Windows {
    kernel: [usize; 2],
    dilation: [usize; 2],
    padding: [usize; 2],
    stride: [usize; 2],
    /// Size of the padded image.
    padded: [usize; 2],
    /// From a window's first tap to its last, inclusive.
    reach: [usize; 2],
    /// Number of windows.
    count: [usize; 2],
}

impl Windows {
    #[track_caller]
    fn of(name: &'static str, options: &FoldOptions, image: [usize; 2]) -> Result<Windows> {
        let take = |value: Spatial, label: &str, least: usize| {
            let [a, b, _] = value.resolve(name, label, 2, 1)?;
            if a < least || b < least {
                return Err(Error::argument(
                    name,
                    format!("{label} [{a}, {b}], must be at least {least}"),
                ));
            }
            Ok([a, b])
        };
        let mut windows = Windows {
            kernel: take(options.kernel_size, "kernel_size", 1)?,
            dilation: take(options.dilation, "dilation", 1)?,
            padding: take(options.padding, "padding", 0)?,
            stride: take(options.stride, "stride", 1)?,
            padded: [0; 2],
            reach: [0; 2],
            count: [0; 2],
        };
        for (i, &size) in image.iter().enumerate() {
            let measure = || {
                let padded = size.checked_add(windows.padding[i].checked_mul(2)?)?;
                let reach = windows.dilation[i]
                    .checked_mul(windows.kernel[i] - 1)?
                    .checked_add(1)?;
                let count = padded.checked_sub(reach)? / windows.stride[i] + 1;
                Some((padded, reach, count))
            };
            (windows.padded[i], windows.reach[i], windows.count[i]) =
                measure().ok_or_else(|| {
                    Error::shape(
                        name,
                        format!(
                            "no window fits at spatial dimension {i}: kernel {} with dilation {}, size {size} with \
                             padding {}",
                            windows.kernel[i], windows.dilation[i], windows.padding[i]
                        ),
                    )
                })?;
        }
        Ok(windows)
    }
}

impl Tensor {
    /// The windows of x [N, C, H, W] or [C, H, W] as columns: [N, C·kh·kw, L], as `torch.nn.functional.unfold`.
    ///
    /// # Errors
    /// Another rank, no window that fits, a kernel, dilation or stride of 0.
    #[track_caller]
    pub fn unfold2d(&self, options: &FoldOptions) -> Result<Tensor> {
        let name = "unfold";
        let (x, single) = batched(name, self, 2)?;
        let &[batch, channels, height, width] = x.dims() else {
            return Err(Error::shape(name, format!("input {}", x.shape())));
        };
        let w = Windows::of(name, options, [height, width])?;
        let [rows, columns] = w.padding;
        let mut x = match w.padding {
            [0, 0] => x,
            _ => x.pad_constant(&[(0, 0), (0, 0), (rows, rows), (columns, columns)], 0)?,
        };
        for i in 0..2 {
            x = x.unfold(2 + i as isize, w.reach[i], w.stride[i])?.slice(
                -1,
                None,
                None,
                isize::try_from(w.dilation[i]).unwrap_or(isize::MAX),
            )?;
        }
        // [N, C, OH, OW, kh, kw] → [N, C·kh·kw, OH·OW].
        let taps = channels * w.kernel[0] * w.kernel[1];
        let columns =
            x.permute(&[0, 1, 4, 5, 2, 3])?
                .reshape([batch, taps, w.count[0] * w.count[1]])?;
        unbatched(columns, single)
    }

    /// Columns [N, C·kh·kw, L] or [C·kh·kw, L] summed back into images of `output_size` (H, W), where windows
    /// overlap they add up: the transpose of [`Tensor::unfold2d`], as `torch.nn.functional.fold`.
    ///
    /// # Errors
    /// Columns that the windows of such an image are not; names both numbers.
    #[track_caller]
    pub fn fold2d(&self, output_size: impl Into<Spatial>, options: &FoldOptions) -> Result<Tensor> {
        let name = "fold";
        let [height, width, _] = output_size.into().resolve(name, "output_size", 2, 1)?;
        let w = Windows::of(name, options, [height, width])?;
        let (x, single) = batched(name, self, 1)?;
        let &[batch, rows, windows] = x.dims() else {
            return Err(Error::shape(name, format!("input {}", x.shape())));
        };
        let taps = w.kernel[0].saturating_mul(w.kernel[1]);
        let count = w.count[0].saturating_mul(w.count[1]);
        if rows % taps != 0 || windows != count {
            return Err(Error::shape(
                name,
                format!(
                    "input {} for images of [{height}, {width}]: a multiple of {taps} rows and {count} columns expected",
                    self.shape()
                ),
            )
            .help("columns are [N, C·kh·kw, L] as unfold2d makes them"));
        }
        let channels = rows / taps;
        let x = x.reshape([
            batch,
            channels,
            w.kernel[0],
            w.kernel[1],
            w.count[0],
            w.count[1],
        ])?;
        let padded = [batch, channels, w.padded[0], w.padded[1]].into_shape()?;
        let mut step = [1; MAX_DIMS];
        for i in 0..2 {
            step[2 + i] = isize::try_from(w.stride[i])
                .map_err(|_| Error::argument(name, format!("stride {}", w.stride[i])))?;
        }
        let mut image: Option<Tensor> = None;
        for i in 0..w.kernel[0] {
            for j in 0..w.kernel[1] {
                let mut start = [0; MAX_DIMS];
                (start[2], start[3]) = (i * w.dilation[0], j * w.dilation[1]);
                let tap = x.select(2, i as isize)?.select(2, j as isize)?;
                let placed = tap.place(padded, start, step, Scalar::I64(0))?;
                image = Some(match image {
                    None => placed,
                    Some(sum) => sum.add(&placed)?,
                });
            }
        }
        let image = image.ok_or_else(|| Error::argument(name, "a kernel without taps"))?;
        let cropped = image
            .narrow(2, w.padding[0], height)?
            .narrow(3, w.padding[1], width)?;
        unbatched(cropped, single)
    }
}
