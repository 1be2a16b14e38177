//! `Resize`: bilinear scaling of images.

use drivetrain_core::random::Generator;
use drivetrain_core::{Error, Result};

use crate::image::{Image, Pixels};
use crate::transform::{Transform, zeros};

/// Scales an image with a bilinear (triangle) filter. When it gets smaller, the filter widens so that every
/// source pixel counts, as torchvision's `Resize` does by default (`antialias=True`).
#[derive(Clone, Copy, Debug)]
pub struct Resize(Size);

#[derive(Clone, Copy, Debug)]
enum Size {
    Exact(usize, usize),
    Shorter(usize),
}

impl Resize {
    /// To this height and width.
    pub fn new(height: usize, width: usize) -> Self {
        Resize(Size::Exact(height, width))
    }

    /// The shorter side to `pixels`, keeping the proportions (the longer side rounded down).
    pub fn shorter_side(pixels: usize) -> Self {
        Resize(Size::Shorter(pixels))
    }

    fn target(&self, [_, height, width]: [usize; 3]) -> Option<(usize, usize)> {
        match self.0 {
            Size::Exact(height, width) => Some((height, width)),
            Size::Shorter(side) if height <= width => {
                Some((side, side.checked_mul(width)?.checked_div(height)?))
            }
            Size::Shorter(side) => Some((side.checked_mul(height)?.checked_div(width)?, side)),
        }
    }
}

impl Transform for Resize {
    fn apply(&self, image: Image, _: &mut Generator) -> Result<Image> {
        let shape = image.shape();
        let fits = |&(rows, columns): &(usize, usize)| {
            (rows > 0 && columns > 0) && shape.iter().all(|&n| n > 0)
        };
        let (rows, columns) = self.target(shape).filter(fits).ok_or_else(|| {
            Error::shape(
                "Resize",
                format!(
                    "cannot resize an image of shape {shape:?} as {:?} says",
                    self.0
                ),
            )
        })?;
        if [rows, columns] == shape[1..] {
            return Ok(image);
        }
        let pixels = match image.pixels() {
            Pixels::U8(bytes) => {
                let floats: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte)).collect();
                let floats = scale(&floats, shape, rows, columns)?;
                // A mean of bytes stays within 0..=255; `as` saturates in any case.
                Pixels::U8(floats.iter().map(|x| x.round() as u8).collect())
            }
            Pixels::F32(floats) => Pixels::F32(scale(floats, shape, rows, columns)?),
        };
        Image::new(shape[0], rows, columns, pixels)
    }
}

/// The source pixels of one target pixel: the first, and their weights.
struct Tap {
    first: usize,
    weights: Vec<f32>,
}

/// Weights of a triangle of half width max(1, from / to) round the centre of each target pixel.
fn taps(from: usize, to: usize) -> Vec<Tap> {
    let ratio = from as f64 / to as f64;
    let support = ratio.max(1.0);
    (0..to)
        .map(|target| {
            let centre = (target as f64 + 0.5) * ratio;
            let first = (centre - support).floor().max(0.0) as usize;
            let end = ((centre + support).ceil() as usize).min(from);
            let weight = |at: usize| (1.0 - ((at as f64 + 0.5 - centre) / support).abs()).max(0.0);
            let sum: f64 = (first..end).map(weight).sum();
            Tap {
                first,
                weights: (first..end).map(|at| (weight(at) / sum) as f32).collect(),
            }
        })
        .collect()
}

fn scale(
    pixels: &[f32],
    [channels, height, width]: [usize; 3],
    rows: usize,
    columns: usize,
) -> Result<Vec<f32>> {
    // Both buffers first, so that a size beyond memory fails before any work.
    let mut narrow = zeros::<f32>("Resize", [channels, height, columns])?;
    let mut out = zeros::<f32>("Resize", [channels, rows, columns])?;
    let across = taps(width, columns);
    for (line, target) in pixels
        .chunks_exact(width)
        .zip(narrow.chunks_exact_mut(columns))
    {
        for (value, tap) in target.iter_mut().zip(&across) {
            let source = &line[tap.first..tap.first + tap.weights.len()];
            *value = source.iter().zip(&tap.weights).map(|(x, w)| x * w).sum();
        }
    }
    let down = taps(height, rows);
    for channel in 0..channels {
        let plane = &narrow[channel * height * columns..(channel + 1) * height * columns];
        for (row, tap) in down.iter().enumerate() {
            let target = &mut out[(channel * rows + row) * columns..][..columns];
            for (offset, weight) in tap.weights.iter().enumerate() {
                let line = &plane[(tap.first + offset) * columns..][..columns];
                for (value, x) in target.iter_mut().zip(line) {
                    *value += weight * x;
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resize(image: Image, height: usize, width: usize) -> Vec<f32> {
        let mut generator = Generator::new(0, 0);
        let image = Resize::new(height, width)
            .apply(image, &mut generator)
            .unwrap();
        match image.into_pixels() {
            Pixels::F32(pixels) => pixels,
            Pixels::U8(pixels) => pixels.into_iter().map(f32::from).collect(),
        }
    }

    #[test]
    fn enlarging_is_plain_bilinear() {
        // PyTorch: interpolate([[0, 1]], scale 2 along the width, bilinear, align_corners=False).
        let image = Image::from_f32(1, 1, 2, vec![0.0, 1.0]).unwrap();
        assert_eq!(resize(image, 1, 4), [0.0, 0.25, 0.75, 1.0]);
    }

    #[test]
    fn shrinking_weighs_every_pixel() {
        // Half width 2 round 1.0 (pixels 0 to 2) and 3.0 (1 to 3): weights 3, 3, 1 and 1, 3, 3 of 7.
        let image = Image::from_f32(1, 4, 1, vec![7.0, 0.0, 0.0, 14.0]).unwrap();
        assert_eq!(resize(image, 2, 1), [3.0, 6.0]);
    }

    #[test]
    fn planes_stay_apart_and_bytes_stay_bytes() {
        let image = Image::from_u8(2, 2, 2, vec![10, 10, 10, 10, 200, 200, 200, 200]).unwrap();
        let out = resize(image, 3, 5);
        assert!(out[..15].iter().all(|&x| x == 10.0) && out[15..].iter().all(|&x| x == 200.0));
    }

    #[test]
    fn shorter_side_keeps_the_proportions() {
        let image = Image::from_u8(1, 4, 6, vec![0; 24]).unwrap();
        let small = Resize::shorter_side(2)
            .apply(image, &mut Generator::new(0, 0))
            .unwrap();
        assert_eq!(small.shape(), [1, 2, 3]);
    }

    #[test]
    fn sizes_that_make_no_sense_are_errors() {
        for (height, width) in [(0, 1), (usize::MAX, 2), (1 << 60, 1)] {
            let image = Image::from_f32(1, 1, 2, vec![0.0, 1.0]).unwrap();
            let result = Resize::new(height, width).apply(image, &mut Generator::new(0, 0));
            assert!(result.is_err(), "{height} {width}");
        }
    }
}
