//! Convolutions of 1 to 3 spatial dimensions, and their transposes.

use crate::run::run_one;
use crate::{Spatial, Tensor};
use drivetrain_core::{Composite, ConvolutionSpec, Error, ErrorKind, Result};

/// How a convolution slides: PyTorch's arguments and defaults.
///
/// ```
/// use drivetrain_tensor::ConvOptions;
/// let options = ConvOptions::default().stride(2).padding([1, 0]);
/// assert_eq!(options.groups, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// Steps between windows; 1.
    pub stride: Spatial,
    /// Zeros added on both sides; 0.
    pub padding: Spatial,
    /// Steps between taps of a window; 1.
    pub dilation: Spatial,
    /// Channels are cut into this many groups, each seen by its own kernels; 1.
    pub groups: usize,
}

impl Default for ConvOptions {
    fn default() -> Self {
        ConvOptions {
            stride: 1.into(),
            padding: 0.into(),
            dilation: 1.into(),
            groups: 1,
        }
    }
}

impl ConvOptions {
    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Spatial>) -> Self {
        self.stride = stride.into();
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

    /// With another number of groups.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Self {
        self.groups = groups;
        self
    }
}

/// How a transposed convolution slides: PyTorch's arguments and defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvTransposeOptions {
    /// Steps between the windows of the convolution that this transposes; 1.
    pub stride: Spatial,
    /// What that convolution would pad, taken off here on both sides; 0.
    pub padding: Spatial,
    /// Added to one side of the result: says which of the sizes that a stride maps to one is meant; 0.
    pub output_padding: Spatial,
    /// Steps between taps of a window; 1.
    pub dilation: Spatial,
    /// Channels are cut into this many groups; 1.
    pub groups: usize,
}

impl Default for ConvTransposeOptions {
    fn default() -> Self {
        ConvTransposeOptions {
            stride: 1.into(),
            padding: 0.into(),
            output_padding: 0.into(),
            dilation: 1.into(),
            groups: 1,
        }
    }
}

impl ConvTransposeOptions {
    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Spatial>) -> Self {
        self.stride = stride.into();
        self
    }

    /// With another padding.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Spatial>) -> Self {
        self.padding = padding.into();
        self
    }

    /// With another output padding.
    #[must_use]
    pub fn output_padding(mut self, output_padding: impl Into<Spatial>) -> Self {
        self.output_padding = output_padding.into();
        self
    }

    /// With another dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Spatial>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// With another number of groups.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Self {
        self.groups = groups;
        self
    }
}

impl Tensor {
    /// Cross-correlation along one dimension: x [N, C, L] or [C, L], weight [out, C/groups, k], bias \[out\]
    /// → [N, out, (L + 2·padding - dilation·(k - 1) - 1)/stride + 1].
    ///
    /// # Errors
    /// Channels that differ, a kernel larger than the padded input, a stride or a dilation of 0, dtypes or devices
    /// that differ; the message names both sides.
    #[track_caller]
    pub fn conv1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvOptions,
    ) -> Result<Tensor> {
        self.convolution(1, weight, bias, options)
    }

    /// Cross-correlation of images: x [N, C, H, W] or [C, H, W], weight [out, C/groups, kh, kw], bias \[out\]
    /// → [N, out, H', W'], sizes as [`Tensor::conv1d`].
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{ConvOptions, DType, Device, Tensor};
    /// let device = Device::open("cpu")?;
    /// let x = Tensor::ones([1, 3, 8, 8], DType::F32, &device)?;
    /// let weight = Tensor::ones([4, 3, 3, 3], DType::F32, &device)?;
    /// let y = x.conv2d(&weight, None, &ConvOptions::default().stride(2).padding(1))?;
    /// assert_eq!(y.dims(), [1, 4, 4, 4]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::conv1d`].
    #[track_caller]
    pub fn conv2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvOptions,
    ) -> Result<Tensor> {
        self.convolution(2, weight, bias, options)
    }

    /// Cross-correlation of volumes: x [N, C, D, H, W] or [C, D, H, W], weight [out, C/groups, kd, kh, kw].
    ///
    /// # Errors
    /// As [`Tensor::conv1d`].
    #[track_caller]
    pub fn conv3d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvOptions,
    ) -> Result<Tensor> {
        self.convolution(3, weight, bias, options)
    }

    #[track_caller]
    fn convolution(
        &self,
        spatial: usize,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvOptions,
    ) -> Result<Tensor> {
        let name = ["conv1d", "conv2d", "conv3d"][spatial - 1];
        let spec = ConvolutionSpec {
            spatial: spatial as u8,
            stride: options.stride.resolve(name, "stride", spatial, 1)?,
            padding: options.padding.resolve(name, "padding", spatial, 0)?,
            dilation: options.dilation.resolve(name, "dilation", spatial, 1)?,
            groups: options.groups,
            sizes: [1; 3],
        };
        check_devices(name, self, weight, bias)?;
        let (x, single) = batched(name, self, spatial)?;
        let inputs: Vec<&Tensor> = [&x, weight].into_iter().chain(bias).collect();
        unbatched(run_one(Composite::Convolution(spec), &inputs)?, single)
    }

    /// The transpose of [`Tensor::conv1d`]: x [N, C, L] or [C, L], weight [C, out/groups, k], bias \[out\]
    /// → [N, out, (L - 1)·stride - 2·padding + dilation·(k - 1) + output_padding + 1].
    ///
    /// # Errors
    /// Channels that differ, an output padding that is not smaller than stride or dilation, a result without
    /// elements, a stride or a dilation of 0, dtypes or devices that differ.
    #[track_caller]
    pub fn conv_transpose1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvTransposeOptions,
    ) -> Result<Tensor> {
        self.convolution_transpose(1, weight, bias, options)
    }

    /// The transpose of [`Tensor::conv2d`], also called deconvolution: x [N, C, H, W] or [C, H, W],
    /// weight [C, out/groups, kh, kw], bias \[out\] → [N, out, H', W'], sizes as [`Tensor::conv_transpose1d`].
    ///
    /// # Errors
    /// As [`Tensor::conv_transpose1d`].
    #[track_caller]
    pub fn conv_transpose2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvTransposeOptions,
    ) -> Result<Tensor> {
        self.convolution_transpose(2, weight, bias, options)
    }

    /// The transpose of [`Tensor::conv3d`]: x [N, C, D, H, W] or [C, D, H, W],
    /// weight [C, out/groups, kd, kh, kw].
    ///
    /// # Errors
    /// As [`Tensor::conv_transpose1d`].
    #[track_caller]
    pub fn conv_transpose3d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvTransposeOptions,
    ) -> Result<Tensor> {
        self.convolution_transpose(3, weight, bias, options)
    }

    #[track_caller]
    fn convolution_transpose(
        &self,
        spatial: usize,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvTransposeOptions,
    ) -> Result<Tensor> {
        let name = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"][spatial - 1];
        let mut spec = ConvolutionSpec {
            spatial: spatial as u8,
            stride: options.stride.resolve(name, "stride", spatial, 1)?,
            padding: options.padding.resolve(name, "padding", spatial, 0)?,
            dilation: options.dilation.resolve(name, "dilation", spatial, 1)?,
            groups: options.groups,
            sizes: [1; 3],
        };
        let extra = options
            .output_padding
            .resolve(name, "output_padding", spatial, 0)?;
        check_devices(name, self, weight, bias)?;
        let (x, single) = batched(name, self, spatial)?;
        check_transpose(name, &x, weight, bias, &spec)?;
        for (i, &extra) in extra[..spatial].iter().enumerate() {
            spec.sizes[i] = transposed_size(name, &x, weight, &spec, i, extra)?;
        }
        let mut y = run_one(Composite::ConvolutionInputGrad(spec), &[&x, weight])
            .map_err(|e| e.context(name))?;
        if let Some(bias) = bias {
            let mut shape = [1; 5];
            shape[1] = bias.elements();
            y = y.add(&bias.reshape(&shape[..2 + spatial])?)?;
        }
        unbatched(y, single)
    }
}

/// What the op underneath would report in terms of gradients is refused here in the caller's terms.
#[track_caller]
fn check_transpose(
    name: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    spec: &ConvolutionSpec,
) -> Result<()> {
    let spatial = usize::from(spec.spatial);
    for (label, values) in [("stride", spec.stride), ("dilation", spec.dilation)] {
        if values[..spatial].contains(&0) {
            return Err(Error::argument(
                name,
                format!("{label} {:?}, must be at least 1", &values[..spatial]),
            ));
        }
    }
    if weight.rank() != spatial + 2 {
        return Err(Error::shape(
            name,
            format!(
                "weight {} has rank {}, {} expected",
                weight.shape(),
                weight.rank(),
                spatial + 2
            ),
        )
        .help("weight is [in, out/groups, kernel…]"));
    }
    let (channels, groups) = (x.dims()[1], spec.groups);
    if channels != weight.dims()[0] {
        return Err(Error::shape(
            name,
            format!(
                "input {} has {channels} channels, weight {} expects {}",
                x.shape(),
                weight.shape(),
                weight.dims()[0]
            ),
        )
        .on(x.device())
        .help("input is [N, in, spatial…], weight [in, out/groups, kernel…]"));
    }
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(Error::argument(
            name,
            format!("{channels} input channels cannot be cut into {groups} groups"),
        ));
    }
    for (label, other) in [("weight", Some(weight)), ("bias", bias)] {
        if let Some(other) = other.filter(|t| t.dtype() != x.dtype()) {
            return Err(Error::dtype(
                name,
                format!("input is {}, {label} is {}", x.dtype(), other.dtype()),
            )
            .help(format!("to_dtype(DType::{}) the {label}", x.dtype())));
        }
    }
    let outputs = weight.dims()[1].saturating_mul(groups);
    if let Some(bias) = bias.filter(|b| b.dims() != [outputs]) {
        return Err(Error::shape(
            name,
            format!("bias {} for {outputs} output channels", bias.shape()),
        ));
    }
    Ok(())
}

/// Size of a transposed convolution's result along spatial dimension `i`.
#[track_caller]
fn transposed_size(
    name: &'static str,
    x: &Tensor,
    weight: &Tensor,
    spec: &ConvolutionSpec,
    i: usize,
    extra: usize,
) -> Result<usize> {
    let (input, kernel) = (x.dims()[2 + i], weight.dims()[2 + i]);
    let (stride, padding, dilation) = (spec.stride[i], spec.padding[i], spec.dilation[i]);
    if extra > 0 && extra >= stride && extra >= dilation {
        return Err(Error::argument(
            name,
            format!(
                "output_padding {extra} at spatial dimension {i} is not smaller than stride {stride} \
                 or dilation {dilation}"
            ),
        ));
    }
    let size = || {
        let reach = dilation.checked_mul(kernel.checked_sub(1)?)?;
        let full = input.checked_sub(1)?.checked_mul(stride)?;
        let full = full
            .checked_add(reach)?
            .checked_add(extra)?
            .checked_add(1)?;
        full.checked_sub(padding.checked_mul(2)?)
            .filter(|&size| size > 0)
    };
    size().ok_or_else(|| {
        Error::shape(
            name,
            format!(
                "no size is left at spatial dimension {i}: input {} weight {}, stride {stride}, padding {padding}, \
                 dilation {dilation}",
                x.shape(),
                weight.shape()
            ),
        )
        .help("less padding, or a larger input or kernel")
    })
}

/// x with a batch dimension, and whether it had none.
#[track_caller]
pub(crate) fn batched(name: &'static str, x: &Tensor, spatial: usize) -> Result<(Tensor, bool)> {
    match x.rank() {
        rank if rank == spatial + 2 => Ok((x.clone(), false)),
        rank if rank == spatial + 1 => Ok((x.unsqueeze(0)?, true)),
        rank => Err(Error::shape(
            name,
            format!(
                "input {} has rank {rank}, {} expected ({} without a batch dimension)",
                x.shape(),
                spatial + 2,
                spatial + 1
            ),
        )
        .help("input is [N, C, spatial…] or [C, spatial…]")),
    }
}

/// Without the batch dimension that [`batched`] added.
pub(crate) fn unbatched(y: Tensor, single: bool) -> Result<Tensor> {
    if single { y.squeeze(0) } else { Ok(y) }
}

/// The arguments lie where x does; the message says which does not.
#[track_caller]
fn check_devices(
    name: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> Result<()> {
    check_device(name, x, "weight", weight)?;
    bias.map_or(Ok(()), |bias| check_device(name, x, "bias", bias))
}

/// An argument lies where the input does.
#[track_caller]
pub(crate) fn check_device(
    name: &'static str,
    x: &Tensor,
    label: &str,
    argument: &Tensor,
) -> Result<()> {
    let (here, there) = (x.device(), argument.device());
    if here == there {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Device,
        name,
        format!("input is on {here}, {label} on {there}"),
    )
    .help(format!(
        "move one: input.to(&{there}) or {label}.to(&{here})"
    )))
}
