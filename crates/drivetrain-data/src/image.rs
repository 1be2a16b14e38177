//! `Image`: the pixels of one picture in host memory, as the data sets give them and the transforms take them.

use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

use crate::collate::byte_to_f32;

/// Pixels of an [`Image`], in the order [channels, height, width].
#[derive(Clone, Debug, PartialEq)]
pub enum Pixels {
    /// Bytes, 0 to 255, as files hold them.
    U8(Vec<u8>),
    /// Floats; 0 to 1 after [`ToTensor`](crate::ToTensor).
    F32(Vec<f32>),
}

impl Pixels {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Pixels::U8(pixels) => pixels.len(),
            Pixels::F32(pixels) => pixels.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `U8` or `F32`.
    pub fn dtype(&self) -> drivetrain_core::DType {
        match self {
            Pixels::U8(_) => drivetrain_core::DType::U8,
            Pixels::F32(_) => drivetrain_core::DType::F32,
        }
    }
}

/// A picture of shape [channels, height, width].
///
/// Items stay in this light form until the collation makes one tensor [N, C, H, W] of a whole batch.
///
/// ```
/// use drivetrain_data::{Image, Pixels};
/// let image = Image::from_u8(1, 2, 2, vec![0, 51, 102, 255])?;
/// assert_eq!(image.shape(), [1, 2, 2]);
/// assert_eq!(image.to_f32().pixels(), &Pixels::F32(vec![0.0, 0.2, 0.4, 1.0]));
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    channels: usize,
    height: usize,
    width: usize,
    pixels: Pixels,
}

impl Image {
    /// An image of bytes; `pixels` holds `channels · height · width` of them in that order.
    pub fn from_u8(channels: usize, height: usize, width: usize, pixels: Vec<u8>) -> Result<Image> {
        Image::new(channels, height, width, Pixels::U8(pixels))
    }

    /// An image of floats; `pixels` holds `channels · height · width` of them in that order.
    pub fn from_f32(
        channels: usize,
        height: usize,
        width: usize,
        pixels: Vec<f32>,
    ) -> Result<Image> {
        Image::new(channels, height, width, Pixels::F32(pixels))
    }

    /// An image of bytes from rows of pixels, each with its channels side by side: [height, width, channels].
    pub fn from_interleaved(
        channels: usize,
        height: usize,
        width: usize,
        pixels: &[u8],
    ) -> Result<Image> {
        check_size(
            "Image::from_interleaved",
            [channels, height, width],
            pixels.len(),
        )?;
        let mut planes = Vec::with_capacity(pixels.len());
        for channel in 0..channels {
            planes.extend(pixels.iter().skip(channel).step_by(channels));
        }
        Image::from_u8(channels, height, width, planes)
    }

    /// An image of either kind of pixel.
    pub fn new(channels: usize, height: usize, width: usize, pixels: Pixels) -> Result<Image> {
        check_size("Image::new", [channels, height, width], pixels.len())?;
        Ok(Image {
            channels,
            height,
            width,
            pixels,
        })
    }

    /// [channels, height, width].
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.height, self.width]
    }

    /// Number of channels: 1 for grey, 3 for colour.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The pixels, [channels, height, width].
    pub fn pixels(&self) -> &Pixels {
        &self.pixels
    }

    /// The pixels by value.
    pub fn into_pixels(self) -> Pixels {
        self.pixels
    }

    /// The pixels as a tensor [channels, height, width] on the CPU: U8 or F32, as they are.
    pub fn to_tensor(&self) -> Result<Tensor> {
        let device = Tensor::cpu_device()?;
        match &self.pixels {
            Pixels::U8(pixels) => Tensor::from_slice(pixels, self.shape(), &device),
            Pixels::F32(pixels) => Tensor::from_slice(pixels, self.shape(), &device),
        }
    }

    /// Bytes become floats from 0 to 1 (divided by 255, in F32); floats stay as they are.
    pub fn to_f32(self) -> Image {
        let pixels = match self.pixels {
            Pixels::U8(bytes) => Pixels::F32(bytes.iter().map(|&byte| byte_to_f32(byte)).collect()),
            floats => floats,
        };
        Image { pixels, ..self }
    }
}

fn check_size(operation: &'static str, shape: [usize; 3], found: usize) -> Result<()> {
    let [channels, height, width] = shape;
    let expected = channels
        .checked_mul(height)
        .and_then(|n| n.checked_mul(width));
    if expected == Some(found) {
        return Ok(());
    }
    Err(Error::shape(
        operation,
        format!("{found} pixels do not fit [channels, height, width] = {shape:?}"),
    ))
}
