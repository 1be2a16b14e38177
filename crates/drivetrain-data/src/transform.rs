//! Transforms of images: to floats, normalise, crop, flip; `Compose` runs them in turn.

use drivetrain_core::random::Generator;
use drivetrain_core::{Error, Result};

use crate::image::{Image, Pixels};

/// A step from image to image. What is random in it comes from the generator alone, so that the same generator
/// gives the same image. Closures `|image, random| …` are transforms too.
pub trait Transform: Send + Sync {
    /// The transformed image.
    fn apply(&self, image: Image, random: &mut Generator) -> Result<Image>;
}

impl<F> Transform for F
where
    F: Fn(Image, &mut Generator) -> Result<Image> + Send + Sync,
{
    fn apply(&self, image: Image, random: &mut Generator) -> Result<Image> {
        self(image, random)
    }
}

/// Transforms one after the other.
///
/// ```
/// use drivetrain_data::{Compose, Normalize, RandomCrop, RandomHorizontalFlip, ToTensor};
/// let train = Compose::new()
///     .then(RandomCrop::new(32, 32).padding(4))
///     .then(RandomHorizontalFlip::new(0.5)?)
///     .then(ToTensor)
///     .then(Normalize::new(&[0.5, 0.5, 0.5], &[0.5, 0.5, 0.5])?);
/// # let _ = train;
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Default)]
pub struct Compose(Vec<Box<dyn Transform>>);

impl Compose {
    /// No step yet.
    pub fn new() -> Self {
        Compose::default()
    }

    /// Adds a step at the end.
    #[must_use]
    pub fn then(mut self, step: impl Transform + 'static) -> Self {
        self.0.push(Box::new(step));
        self
    }
}

impl Transform for Compose {
    fn apply(&self, image: Image, random: &mut Generator) -> Result<Image> {
        self.0
            .iter()
            .try_fold(image, |image, step| step.apply(image, random))
    }
}

/// Bytes 0..=255 become floats 0..=1 (divided by 255). The batch becomes a tensor in the collation.
#[derive(Clone, Copy, Debug)]
pub struct ToTensor;

impl Transform for ToTensor {
    fn apply(&self, image: Image, _: &mut Generator) -> Result<Image> {
        Ok(image.to_f32())
    }
}

/// `(pixel − mean) / std` for each channel; takes floats, so [`ToTensor`] comes before it.
#[derive(Clone, Debug)]
pub struct Normalize {
    mean: Vec<f32>,
    std: Vec<f32>,
}

impl Normalize {
    /// Mean and standard deviation of each channel, or one of each for all channels; `std` must not be 0.
    pub fn new(mean: &[f32], std: &[f32]) -> Result<Self> {
        let finite = mean.iter().chain(std).all(|x| x.is_finite());
        if mean.is_empty() || mean.len() != std.len() || !finite || std.contains(&0.0) {
            return Err(Error::argument(
                "Normalize",
                format!(
                    "mean {mean:?} and std {std:?} must have one finite entry a channel, std not 0"
                ),
            ));
        }
        Ok(Normalize {
            mean: mean.to_vec(),
            std: std.to_vec(),
        })
    }
}

impl Transform for Normalize {
    fn apply(&self, image: Image, _: &mut Generator) -> Result<Image> {
        let [channels, height, width] = image.shape();
        let given = self.mean.len();
        if given != 1 && given != channels {
            return Err(Error::shape(
                "Normalize",
                format!(
                    "mean of {given} channels, image of shape {:?}",
                    image.shape()
                ),
            ));
        }
        let Pixels::F32(mut pixels) = image.into_pixels() else {
            return Err(
                Error::dtype("Normalize", "the image has U8 pixels, must be F32")
                    .help("put ToTensor before Normalize"),
            );
        };
        let plane = height * width;
        for channel in 0..channels {
            let (mean, std) = (self.mean[channel % given], self.std[channel % given]);
            for pixel in &mut pixels[channel * plane..(channel + 1) * plane] {
                *pixel = (*pixel - mean) / std;
            }
        }
        Image::from_f32(channels, height, width, pixels)
    }
}

/// Mirrors left and right with a given chance.
#[derive(Clone, Copy, Debug)]
pub struct RandomHorizontalFlip(f64);

impl RandomHorizontalFlip {
    /// Flips with chance `probability`, 0 to 1.
    pub fn new(probability: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(Error::argument(
                "RandomHorizontalFlip",
                format!("probability {probability} is not in 0..=1"),
            ));
        }
        Ok(RandomHorizontalFlip(probability))
    }
}

impl Transform for RandomHorizontalFlip {
    fn apply(&self, image: Image, random: &mut Generator) -> Result<Image> {
        // Always one draw, so that later steps see the same numbers either way.
        if random.uniform() >= self.0 || image.width() == 0 {
            return Ok(image);
        }
        let [channels, height, width] = image.shape();
        let mut pixels = image.into_pixels();
        match &mut pixels {
            Pixels::U8(pixels) => pixels.chunks_mut(width).for_each(<[u8]>::reverse),
            Pixels::F32(pixels) => pixels.chunks_mut(width).for_each(<[f32]>::reverse),
        }
        Image::new(channels, height, width, pixels)
    }
}

/// Cuts out a window at a random place, after padding with zeros on all four sides.
#[derive(Clone, Copy, Debug)]
pub struct RandomCrop {
    height: usize,
    width: usize,
    padding: usize,
}

impl RandomCrop {
    /// A window of this size, without padding.
    pub fn new(height: usize, width: usize) -> Self {
        RandomCrop {
            height,
            width,
            padding: 0,
        }
    }

    /// Rows and columns of zeros added on each side before cutting.
    #[must_use]
    pub fn padding(mut self, pixels: usize) -> Self {
        self.padding = pixels;
        self
    }
}

impl Transform for RandomCrop {
    fn apply(&self, image: Image, random: &mut Generator) -> Result<Image> {
        let room = |have: usize, want: usize| {
            let padded = have.checked_add(self.padding.checked_mul(2)?)?;
            padded.checked_sub(want)
        };
        let rooms = room(image.height(), self.height).zip(room(image.width(), self.width));
        let (rows, columns) = rooms.ok_or_else(|| {
            Error::shape(
                "RandomCrop",
                format!(
                    "crop [{}, {}] with padding {} from an image of shape {:?}",
                    self.height,
                    self.width,
                    self.padding,
                    image.shape()
                ),
            )
            .help("Resize before, or more padding")
        })?;
        let top = random.below((rows as u64).saturating_add(1)) as usize;
        let left = random.below((columns as u64).saturating_add(1)) as usize;
        window(
            "RandomCrop",
            &image,
            (top, left),
            self.padding,
            (self.height, self.width),
        )
    }
}

/// Cuts out the middle.
#[derive(Clone, Copy, Debug)]
pub struct CenterCrop {
    height: usize,
    width: usize,
}

impl CenterCrop {
    /// A window of this size; not larger than the image.
    pub fn new(height: usize, width: usize) -> Self {
        CenterCrop { height, width }
    }
}

impl Transform for CenterCrop {
    fn apply(&self, image: Image, _: &mut Generator) -> Result<Image> {
        let rooms = image
            .height()
            .checked_sub(self.height)
            .zip(image.width().checked_sub(self.width));
        let (rows, columns) = rooms.ok_or_else(|| {
            Error::shape(
                "CenterCrop",
                format!(
                    "crop [{}, {}] from an image of shape {:?}",
                    self.height,
                    self.width,
                    image.shape()
                ),
            )
            .help("Resize before")
        })?;
        let at = (rows / 2, columns / 2);
        window("CenterCrop", &image, at, 0, (self.height, self.width))
    }
}

/// The window at (top, left), counted in the padded image.
fn window(
    operation: &'static str,
    image: &Image,
    at: (usize, usize),
    padding: usize,
    size: (usize, usize),
) -> Result<Image> {
    let pixels = match image.pixels() {
        Pixels::U8(pixels) => Pixels::U8(window_of(
            operation,
            pixels,
            image.shape(),
            at,
            padding,
            size,
        )?),
        Pixels::F32(pixels) => Pixels::F32(window_of(
            operation,
            pixels,
            image.shape(),
            at,
            padding,
            size,
        )?),
    };
    Image::new(image.channels(), size.0, size.1, pixels)
}

fn window_of<T: Copy + Default>(
    operation: &'static str,
    pixels: &[T],
    [channels, height, width]: [usize; 3],
    (top, left): (usize, usize),
    padding: usize,
    (rows, columns): (usize, usize),
) -> Result<Vec<T>> {
    let mut out = zeros(operation, [channels, rows, columns])?;
    // Columns of the window that lie on the image, in window coordinates.
    let first = padding.saturating_sub(left).min(columns);
    let last = (padding + width).saturating_sub(left).min(columns);
    if first >= last {
        return Ok(out);
    }
    for channel in 0..channels {
        for row in 0..rows {
            let Some(source) = (top + row).checked_sub(padding).filter(|&r| r < height) else {
                continue;
            };
            let from = (channel * height + source) * width + left + first - padding;
            let to = (channel * rows + row) * columns;
            out[to + first..to + last].copy_from_slice(&pixels[from..from + last - first]);
        }
    }
    Ok(out)
}

/// Zeros of a size that a user chose: an error, not an abort, when there is no such memory.
pub(crate) fn zeros<T: Copy + Default>(
    operation: &'static str,
    shape: [usize; 3],
) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let count = shape[0]
        .checked_mul(shape[1])
        .and_then(|n| n.checked_mul(shape[2]));
    match count.map(|n| (n, out.try_reserve_exact(n))) {
        Some((n, Ok(()))) => {
            out.resize(n, T::default());
            Ok(out)
        }
        _ => Err(Error::argument(
            operation,
            format!("no memory for an image of shape {shape:?}"),
        )),
    }
}
