//! Resizing as a layer.

use crate::{Layer, Module, Path, Visit, Visitor};
use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

/// How new elements come from old ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpsampleMode {
    /// The nearest one.
    #[default]
    Nearest,
    /// Linear along each spatial dimension (bilinear for images).
    Linear {
        /// Whether the corners of both grids lie on each other.
        align_corners: bool,
    },
}

/// To which size.
#[derive(Clone, Debug, PartialEq)]
pub enum UpsampleSize {
    /// These spatial sizes.
    To(Vec<usize>),
    /// The input's times these factors, rounded down.
    By(Vec<f64>),
}

/// Resizes x [N, C, spatial…].
#[derive(Clone, Debug, PartialEq)]
pub struct Upsample {
    /// To which size.
    pub size: UpsampleSize,
    /// How.
    pub mode: UpsampleMode,
}

impl Upsample {
    /// By one factor along every dimension of an image, to the nearest element.
    pub fn new(factor: f64) -> Upsample {
        Upsample {
            size: UpsampleSize::By(vec![factor, factor]),
            mode: UpsampleMode::Nearest,
        }
    }
}

impl Visit for Upsample {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl Module for Upsample {}

impl Layer for Upsample {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        match (&self.size, self.mode) {
            (UpsampleSize::To(sizes), UpsampleMode::Nearest) => input.upsample_nearest(sizes),
            (UpsampleSize::By(factors), UpsampleMode::Nearest) => {
                input.upsample_nearest_by(factors)
            }
            (UpsampleSize::By(factors), UpsampleMode::Linear { align_corners }) => {
                input.upsample_linear_by(factors, align_corners)
            }
            (UpsampleSize::To(sizes), UpsampleMode::Linear { align_corners }) => match sizes[..] {
                [size] => input.upsample_linear1d(size, align_corners),
                [a, b] => input.upsample_bilinear2d([a, b], align_corners),
                [a, b, c] => input.upsample_trilinear3d([a, b, c], align_corners),
                _ => Err(Error::argument(
                    "upsample",
                    format!("{} spatial sizes {sizes:?}, 1 to 3 expected", sizes.len()),
                )),
            },
        }
    }
}
