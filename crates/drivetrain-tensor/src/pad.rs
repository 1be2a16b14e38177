//! Padding: with a value, by mirroring, by repeating the edge, or round and round.

use crate::Tensor;
use crate::host::list;
use drivetrain_core::{Error, Result, Scalar};

/// What padding is filled with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// This value.
    Constant(Scalar),
    /// The elements mirrored at the edge, which is not repeated: `c b | a b c | b a`.
    Reflect,
    /// The element at the edge: `a a | a b c | c c`.
    Replicate,
    /// The elements from the other end: `b c | a b c | a b`.
    Circular,
}

impl PadMode {
    fn name(self) -> &'static str {
        match self {
            PadMode::Constant(_) => "constant",
            PadMode::Reflect => "reflect",
            PadMode::Replicate => "replicate",
            PadMode::Circular => "circular",
        }
    }
}

impl Tensor {
    /// x with elements added before and after: `[before, after]` of the last dimension, then of the one before it,
    /// and so on, as `torch.nn.functional.pad`. Negative numbers take elements off.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{Device, PadMode, Tensor};
    /// let device = Device::open("cpu")?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3], &device)?;
    /// assert_eq!(x.pad(&[2, -1], PadMode::Reflect)?.to_vec::<f32>()?, [3.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// An odd number of numbers or too many, a size below 0, a reflection of more than size - 1 elements, more
    /// than one round of circular padding, an edge of an empty dimension.
    #[track_caller]
    pub fn pad(&self, padding: &[isize], mode: PadMode) -> Result<Tensor> {
        if !padding.len().is_multiple_of(2) || padding.len() / 2 > self.rank() {
            return Err(Error::argument(
                "pad",
                format!(
                    "{} numbers {padding:?} for shape {}",
                    padding.len(),
                    self.shape()
                ),
            )
            .help("give two for each dimension from the last: before, after"));
        }
        let pairs: Vec<(usize, isize, isize)> = padding
            .chunks_exact(2)
            .enumerate()
            .map(|(i, pair)| (self.rank() - 1 - i, pair[0], pair[1]))
            .collect();
        for &(dim, before, after) in &pairs {
            self.check_padding(dim, before, after, mode)?;
        }
        match mode {
            PadMode::Constant(value) => self.pad_with(&pairs, value),
            _ => self.pad_from(&pairs, mode),
        }
    }

    #[track_caller]
    fn check_padding(&self, dim: usize, before: isize, after: isize, mode: PadMode) -> Result<()> {
        let size = self.dims()[dim] as isize;
        let refuse = |why: String| {
            Err(Error::shape(
                "pad",
                format!(
                    "{} padding ({before}, {after}) of dimension {dim} of shape {}: {why}",
                    mode.name(),
                    self.shape()
                ),
            ))
        };
        let total = size
            .checked_add(before)
            .and_then(|total| total.checked_add(after));
        match total {
            None => return refuse("size overflow".into()),
            Some(total) if total < 0 => return refuse(format!("a size of {total} is left")),
            // What is cut at one end must not reach into the padding at the other.
            Some(_) if before < -size || after < -size => {
                return refuse("more is taken off than there is".into());
            }
            Some(_) => {}
        }
        let most = before.max(after);
        match mode {
            PadMode::Reflect if most > 0 && most >= size => {
                refuse(format!("at most {} can be mirrored", (size - 1).max(0)))
            }
            PadMode::Circular if most > size => refuse(format!("at most {size} can go round")),
            PadMode::Replicate if most > 0 && size == 0 => {
                refuse("there is no element at the edge".into())
            }
            _ => Ok(()),
        }
    }

    /// Crops by views, then places the rest in a filled tensor.
    #[track_caller]
    fn pad_with(&self, pairs: &[(usize, isize, isize)], value: Scalar) -> Result<Tensor> {
        let mut x = self.clone();
        let mut grown = vec![(0, 0); self.rank()];
        for &(dim, before, after) in pairs {
            let cut = |amount: isize| amount.min(0).unsigned_abs();
            let size = x.dims()[dim];
            let left = size.saturating_sub(cut(before)).saturating_sub(cut(after));
            x = x.narrow(dim as isize, cut(before).min(size - left), left)?;
            grown[dim] = (before.max(0) as usize, after.max(0) as usize);
        }
        if grown.iter().all(|&pair| pair == (0, 0)) {
            return Ok(x);
        }
        x.pad_constant(&grown, value)
    }

    /// Looks each element up at where the mode says that it comes from.
    #[track_caller]
    fn pad_from(&self, pairs: &[(usize, isize, isize)], mode: PadMode) -> Result<Tensor> {
        let mut x = self.clone();
        for &(dim, before, after) in pairs {
            let size = self.dims()[dim] as isize;
            if before <= 0 && after <= 0 {
                let length = (size + before + after) as usize;
                x = x.narrow(dim as isize, before.unsigned_abs(), length)?;
                continue;
            }
            let shape = self.shape().with(dim, (size + before + after) as usize)?;
            let from = |i: isize| -> i64 {
                (match mode {
                    PadMode::Reflect if i < 0 => -i,
                    PadMode::Reflect if i >= size => 2 * (size - 1) - i,
                    PadMode::Circular => i.rem_euclid(size.max(1)),
                    _ => i.clamp(0, (size - 1).max(0)),
                }) as i64
            };
            let index = list("pad", shape[dim], |i| from(i as isize - before))?;
            let index = Tensor::from_slice(&index, [shape[dim]], self.device())?;
            x = x.index_select(dim as isize, &index)?;
        }
        Ok(x)
    }
}
