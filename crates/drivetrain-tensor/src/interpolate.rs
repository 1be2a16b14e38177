//! Resizing of signals and images: nearest neighbour and linear.

use crate::Tensor;
use crate::host::list;
use drivetrain_core::{Error, Result};

impl Tensor {
    /// x [N, C, spatial…] (1 to 3 spatial dimensions) resized to these sizes, each element being that at
    /// ⌊i·in/out⌋, as PyTorch's mode "nearest".
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{Device, Tensor};
    /// let device = Device::open("cpu")?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 1, 2], &device)?;
    /// assert_eq!(x.upsample_nearest(&[4])?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not one size for each spatial dimension, a size of 0.
    #[track_caller]
    pub fn upsample_nearest(&self, sizes: &[usize]) -> Result<Tensor> {
        let name = "upsample_nearest";
        self.check_resize(name, sizes)?;
        let scales: Vec<f64> = self.dims()[2..]
            .iter()
            .zip(sizes)
            .map(|(&from, &to)| from as f64 / to as f64)
            .collect();
        self.nearest(sizes, &scales)
    }

    /// [`Tensor::upsample_nearest`] by a factor for each spatial dimension: sizes ⌊in·factor⌋, elements at
    /// ⌊i/factor⌋.
    ///
    /// # Errors
    /// Not one factor for each spatial dimension, a factor that is not above 0 or leaves no element.
    #[track_caller]
    pub fn upsample_nearest_by(&self, factors: &[f64]) -> Result<Tensor> {
        let sizes = self.scaled_sizes("upsample_nearest", factors)?;
        let scales: Vec<f64> = factors.iter().map(|f| 1.0 / f).collect();
        self.nearest(&sizes, &scales)
    }

    #[track_caller]
    fn nearest(&self, sizes: &[usize], scales: &[f64]) -> Result<Tensor> {
        let mut x = self.clone();
        for (i, (&to, &scale)) in sizes.iter().zip(scales).enumerate() {
            let from = self.dims()[2 + i];
            if from == to {
                continue;
            }
            // In F32, as PyTorch: the rounding decides between neighbours.
            let at = |i: usize| ((i as f32 * scale as f32) as usize).min(from - 1) as i64;
            let index = list("upsample_nearest", to, at)?;
            let index = Tensor::from_slice(&index, [to], self.device())?;
            x = x.index_select(2 + i as isize, &index)?;
        }
        Ok(x)
    }

    /// x [N, C, L] resized to length `size`, linearly between neighbours. `align_corners` maps the first and last
    /// elements onto each other; otherwise the outer edges of the elements are.
    ///
    /// # Errors
    /// Another rank, a size of 0, a dtype that is no float.
    #[track_caller]
    pub fn upsample_linear1d(&self, size: usize, align_corners: bool) -> Result<Tensor> {
        self.linear_to("upsample_linear1d", &[size], align_corners)
    }

    /// x [N, C, H, W] resized to `sizes`, linearly between neighbours along both dimensions. `align_corners` maps
    /// the corner elements onto each other; otherwise the outer edges of the elements are.
    ///
    /// # Errors
    /// Another rank, a size of 0, a dtype that is no float.
    #[track_caller]
    pub fn upsample_bilinear2d(&self, sizes: [usize; 2], align_corners: bool) -> Result<Tensor> {
        self.linear_to("upsample_bilinear2d", &sizes, align_corners)
    }

    /// x [N, C, D, H, W] resized to `sizes`, linearly between neighbours along all three dimensions.
    ///
    /// # Errors
    /// Another rank, a size of 0, a dtype that is no float.
    #[track_caller]
    pub fn upsample_trilinear3d(&self, sizes: [usize; 3], align_corners: bool) -> Result<Tensor> {
        self.linear_to("upsample_trilinear3d", &sizes, align_corners)
    }

    /// Linear resizing of x [N, C, spatial…] by a factor for each spatial dimension: sizes ⌊in·factor⌋. The
    /// factor itself, not the rounded sizes' quotient, places the elements (with `align_corners` the sizes do).
    ///
    /// # Errors
    /// Not one factor for each spatial dimension, a factor that is not above 0 or leaves no element.
    #[track_caller]
    pub fn upsample_linear_by(&self, factors: &[f64], align_corners: bool) -> Result<Tensor> {
        let name = "upsample_linear";
        let sizes = self.scaled_sizes(name, factors)?;
        let scales: Vec<f64> = factors.iter().map(|f| 1.0 / f).collect();
        self.linear_resize(name, &sizes, &scales, align_corners)
    }

    #[track_caller]
    fn linear_to(
        &self,
        name: &'static str,
        sizes: &[usize],
        align_corners: bool,
    ) -> Result<Tensor> {
        self.check_resize(name, sizes)?;
        let scales: Vec<f64> = self.dims()[2..]
            .iter()
            .zip(sizes)
            .map(|(&from, &to)| from as f64 / to as f64)
            .collect();
        self.linear_resize(name, sizes, &scales, align_corners)
    }

    #[track_caller]
    fn linear_resize(
        &self,
        name: &'static str,
        sizes: &[usize],
        scales: &[f64],
        align_corners: bool,
    ) -> Result<Tensor> {
        if !self.dtype().is_float() {
            return Err(Error::dtype(
                name,
                format!("input is {}, not a float", self.dtype()),
            ));
        }
        // Halves are computed in F32 and rounded once.
        let mut x = self.to_dtype(self.dtype().accumulator())?;
        for (i, (&to, &scale)) in sizes.iter().zip(scales).enumerate().rev() {
            let from = self.dims()[2 + i];
            // Equal sizes are a copy whatever the factor, as in PyTorch.
            if from == to {
                continue;
            }
            x = linear_along(name, &x, 2 + i, to, scale, align_corners)?;
        }
        x.to_dtype(self.dtype())
    }

    /// One size above 0 for each of 1 to 3 spatial dimensions, on either side.
    #[track_caller]
    fn check_resize(&self, name: &'static str, sizes: &[usize]) -> Result<()> {
        let spatial = self.rank().saturating_sub(2);
        if !(1..=3).contains(&spatial) || sizes.len() != spatial {
            return Err(Error::shape(
                name,
                format!(
                    "{} sizes {sizes:?} for input {}, one for each spatial dimension of [N, C, spatial…] expected",
                    sizes.len(),
                    self.shape()
                ),
            ));
        }
        if sizes.contains(&0) || self.dims()[2..].contains(&0) {
            return Err(Error::shape(
                name,
                format!(
                    "sizes {sizes:?} for input {}: all sizes must be at least 1",
                    self.shape()
                ),
            ));
        }
        Ok(())
    }

    /// ⌊in·factor⌋ for each spatial dimension.
    #[track_caller]
    fn scaled_sizes(&self, name: &'static str, factors: &[f64]) -> Result<Vec<usize>> {
        if factors.iter().any(|f| !(f.is_finite() && *f > 0.0)) {
            return Err(Error::argument(
                name,
                format!("factors {factors:?}, must be above 0"),
            ));
        }
        let spatial = self.dims().get(2..).unwrap_or_default();
        let sizes: Vec<usize> = spatial
            .iter()
            .zip(factors)
            .map(|(&size, factor)| (size as f64 * factor) as usize)
            .collect();
        if factors.len() != spatial.len() {
            return Err(Error::shape(
                name,
                format!(
                    "{} factors {factors:?} for input {}, one for each spatial dimension of [N, C, spatial…] expected",
                    factors.len(),
                    self.shape()
                ),
            ));
        }
        self.check_resize(name, &sizes)?;
        Ok(sizes)
    }
}

/// x resized along one dimension: each element between two neighbours, weighted by its distance to them.
fn linear_along(
    name: &'static str,
    x: &Tensor,
    dim: usize,
    to: usize,
    scale: f64,
    align_corners: bool,
) -> Result<Tensor> {
    let from = x.dims()[dim];
    let place = |i: usize| -> f64 {
        if !align_corners {
            ((i as f64 + 0.5) * scale - 0.5).max(0.0)
        } else if to > 1 {
            i as f64 * ((from - 1) as f64 / (to - 1) as f64)
        } else {
            0.0
        }
    };
    let mut shape = vec![1; x.rank()];
    shape[dim] = to;
    let below = |i: usize| (place(i) as usize).min(from - 1);
    let low = list(name, to, |i| below(i) as i64)?;
    let high = list(name, to, |i| (below(i) + 1).min(from - 1) as i64)?;
    let share = list(name, to, |i| (place(i) - below(i) as f64).clamp(0.0, 1.0))?;
    let pick = |index: &[i64]| {
        let index = Tensor::from_slice(index, [to], x.device())?;
        x.index_select(dim as isize, &index)
    };
    let share = Tensor::from_slice(&share, shape, x.device())?;
    let rest = share.neg()?.add(1.0)?.to_dtype(x.dtype())?;
    let share = share.to_dtype(x.dtype())?;
    pick(&low)?.mul(&rest)?.add(&pick(&high)?.mul(&share)?)
}
