//! Dropout: elements, or whole channels, left out at random.

use crate::Tensor;
use drivetrain_core::{DType, Error, Result};

impl Tensor {
    /// Each element 0 with probability `p`, else divided by 1 - p: the training form. Srivastava et al. 2014.
    /// What is left out depends on [`manual_seed`](crate::manual_seed) alone, on every device.
    ///
    /// # Errors
    /// A probability outside 0..=1, a dtype that is no float.
    #[track_caller]
    pub fn dropout(&self, p: f64) -> Result<Tensor> {
        self.drop_by("dropout", p, self.dims())
    }

    /// Each channel of x [N, C, …] wholly 0 with probability `p`, else divided by 1 - p. Tompson et al. 2015.
    ///
    /// # Errors
    /// A probability outside 0..=1, a rank below 2, a dtype that is no float.
    #[track_caller]
    pub fn feature_dropout(&self, p: f64) -> Result<Tensor> {
        let name = "feature_dropout";
        let &[batch, channels, ..] = self.dims() else {
            return Err(Error::shape(
                name,
                format!("input has shape {}, [N, C, …] expected", self.shape()),
            ));
        };
        let mut shape = vec![1; self.rank()];
        shape[..2].copy_from_slice(&[batch, channels]);
        self.drop_by(name, p, &shape)
    }

    /// Dropout by a mask of `shape`, which broadcasts to x.
    #[track_caller]
    fn drop_by(&self, name: &'static str, p: f64, shape: &[usize]) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::argument(
                name,
                format!("probability {p} is not in 0..=1"),
            ));
        }
        if !self.dtype().is_float() {
            return Err(Error::dtype(
                name,
                format!("input is {}, not a float", self.dtype()),
            ));
        }
        if p == 0.0 {
            return Ok(self.clone());
        }
        let left_out = Tensor::rand(shape, DType::F32, self.device())?.lt(p)?;
        let kept = self.masked_fill(&left_out, 0.0)?;
        if p == 1.0 {
            return Ok(kept);
        }
        kept.mul(1.0 / (1.0 - p))
    }
}
