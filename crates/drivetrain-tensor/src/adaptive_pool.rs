//! Adaptive pooling: any image to a given number of windows, which divide it as evenly as can be.

use crate::conv::{batched, unbatched};
use crate::host::list;
use crate::{AvgPoolOptions, Spatial, Tensor};
use drivetrain_core::{DType, Error, Result};

const AVG: [&str; 3] = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
];
const MAX: [&str; 3] = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
];

impl Tensor {
    /// Means of `output_size` windows of x [N, C, L] or [C, L]: window i covers ⌊i·L/out⌋ to ⌈(i + 1)·L/out⌉.
    ///
    /// # Errors
    /// Another rank, an image without elements, a dtype that is no float.
    #[track_caller]
    pub fn adaptive_avg_pool1d(&self, output_size: usize) -> Result<Tensor> {
        self.adaptive_avg_pool(1, output_size.into())
    }

    /// Means of `output_size` windows of x [N, C, H, W] or [C, H, W]: window i along a dimension covers
    /// ⌊i·size/out⌋ to ⌈(i + 1)·size/out⌉. `adaptive_avg_pool2d(1)` is the mean of each channel.
    ///
    /// # Errors
    /// Another rank, an image without elements, a dtype that is no float.
    #[track_caller]
    pub fn adaptive_avg_pool2d(&self, output_size: impl Into<Spatial>) -> Result<Tensor> {
        self.adaptive_avg_pool(2, output_size.into())
    }

    /// Means of `output_size` windows of x [N, C, D, H, W] or [C, D, H, W].
    ///
    /// # Errors
    /// Another rank, an image without elements, a dtype that is no float.
    #[track_caller]
    pub fn adaptive_avg_pool3d(&self, output_size: impl Into<Spatial>) -> Result<Tensor> {
        self.adaptive_avg_pool(3, output_size.into())
    }

    #[track_caller]
    fn adaptive_avg_pool(&self, spatial: usize, output_size: Spatial) -> Result<Tensor> {
        let name = AVG[spatial - 1];
        let (x, single, sizes) = self.adaptive(name, spatial, output_size)?;
        if !x.dtype().is_float() {
            return Err(Error::dtype(
                name,
                format!("input is {}, not a float", x.dtype()),
            ));
        }
        let image = &x.dims()[2..];
        let even = image
            .iter()
            .zip(&sizes)
            .all(|(&from, &to)| to > 0 && from % to == 0);
        let y = if even {
            let windows: Vec<usize> = image.iter().zip(&sizes).map(|(f, t)| f / t).collect();
            let options = AvgPoolOptions::new(windows.as_slice());
            match spatial {
                1 => x.avg_pool1d(&options)?,
                2 => x.avg_pool2d(&options)?,
                _ => x.avg_pool3d(&options)?,
            }
        } else {
            // Halves are summed in F32 and rounded once. The mean of means is the mean: all windows along one
            // dimension have the same extent along the others.
            let mut y = x.to_dtype(x.dtype().accumulator())?;
            for (i, &to) in sizes.iter().enumerate() {
                y = mean_windows(name, &y, 2 + i, to)?;
            }
            y.to_dtype(x.dtype())?
        };
        unbatched(y, single)
    }

    /// Largest of `output_size` windows of x [N, C, L] or [C, L], windows as [`Tensor::adaptive_avg_pool1d`].
    /// The gradient goes to the first of equals.
    ///
    /// # Errors
    /// Another rank, or an image without elements.
    #[track_caller]
    pub fn adaptive_max_pool1d(&self, output_size: usize) -> Result<Tensor> {
        Ok(self.adaptive_max_pool(1, output_size.into())?.0)
    }

    /// Largest of `output_size` windows of x [N, C, H, W] or [C, H, W], windows as
    /// [`Tensor::adaptive_avg_pool2d`]. The gradient goes to the first of equals.
    ///
    /// # Errors
    /// Another rank, or an image without elements.
    #[track_caller]
    pub fn adaptive_max_pool2d(&self, output_size: impl Into<Spatial>) -> Result<Tensor> {
        Ok(self.adaptive_max_pool(2, output_size.into())?.0)
    }

    /// [`Tensor::adaptive_max_pool2d`], and where each largest element lies (I64): row·W + column in its image.
    ///
    /// # Errors
    /// Another rank, or an image without elements.
    #[track_caller]
    pub fn adaptive_max_pool2d_with_indices(
        &self,
        output_size: impl Into<Spatial>,
    ) -> Result<(Tensor, Tensor)> {
        self.adaptive_max_pool(2, output_size.into())
    }

    #[track_caller]
    fn adaptive_max_pool(&self, spatial: usize, output_size: Spatial) -> Result<(Tensor, Tensor)> {
        let name = MAX[spatial - 1];
        let (x, single, sizes) = self.adaptive(name, spatial, output_size)?;
        let image: usize = x.dims()[2..].iter().product();
        let shape = [&x.dims()[..2], &sizes].concat();
        if shape.contains(&0) {
            let empty = Tensor::zeros(shape.as_slice(), x.dtype(), x.device())?;
            let none = Tensor::zeros(shape, DType::I64, x.device())?;
            return Ok((unbatched(empty, single)?, unbatched(none, single)?));
        }
        let (table, windows, most) = window_table(name, &x.dims()[2..], &sizes)?;
        let table = Tensor::from_slice(&table, [windows * most], x.device())?;
        let lead = [x.dims()[0], x.dims()[1]];
        let seen = x
            .reshape([lead[0], lead[1], image])?
            .index_select(2, &table)?
            .reshape([lead[0], lead[1], windows, most])?;
        let (y, place) = seen.max(-1, true)?;
        let at = table
            .reshape([1, 1, windows, most])?
            .expand([lead[0], lead[1], windows, most])?
            .gather(3, &place)?;
        Ok((
            unbatched(y.reshape(&shape)?, single)?,
            unbatched(at.reshape(&shape)?, single)?,
        ))
    }

    /// x with a batch dimension, whether it had none, and the output sizes.
    #[track_caller]
    fn adaptive(
        &self,
        name: &'static str,
        spatial: usize,
        output_size: Spatial,
    ) -> Result<(Tensor, bool, Vec<usize>)> {
        let sizes = output_size.resolve(name, "output_size", spatial, 1)?;
        let (x, single) = batched(name, self, spatial)?;
        if x.dims()[1..].contains(&0) {
            return Err(Error::shape(
                name,
                format!("input {} has no elements to pool", self.shape()),
            ));
        }
        Ok((x, single, sizes[..spatial].to_vec()))
    }
}

/// Where window i of `to` over `from` elements begins and ends.
fn window(i: usize, from: usize, to: usize) -> (usize, usize) {
    // In 128 bits: sizes times indices may not fit 64.
    let (i, from, to) = (i as u128, from as u128, to as u128);
    (
        (i * from / to) as usize,
        ((i + 1) * from).div_ceil(to) as usize,
    )
}

/// Means over the windows of one dimension. What a window does not cover is left out by choice, not multiplied by
/// 0, so that an infinity outside does not reach in.
fn mean_windows(name: &'static str, x: &Tensor, dim: usize, to: usize) -> Result<Tensor> {
    let from = x.dims()[dim];
    if to == from {
        return Ok(x.clone());
    }
    if to == 0 {
        return x.narrow(dim as isize, 0, 0);
    }
    let most = largest_window(from, to);
    let taps = to.saturating_mul(most);
    let at = |i: usize| window(i / most, from, to).0 + i % most;
    let index = list(name, taps, |i| at(i).min(from - 1) as i64)?;
    let inside = list(name, taps, |i| at(i) < window(i / most, from, to).1)?;
    let count = list(name, to, |i| {
        let (start, end) = window(i, from, to);
        (end - start) as f64
    })?;
    let device = x.device();
    let (before, after) = (&x.dims()[..dim], &x.dims()[dim + 1..]);
    let rank = x.rank();
    let tail = |sizes: &[usize]| [sizes, &vec![1; rank - dim - 1]].concat();
    let index = Tensor::from_slice(&index, [taps], device)?;
    let inside = Tensor::from_slice(&inside, tail(&[to, most]), device)?;
    let count = Tensor::from_slice(&count, tail(&[to]), device)?.to_dtype(x.dtype())?;
    let seen = x
        .index_select(dim as isize, &index)?
        .reshape([before, &[to, most], after].concat())?
        .where_(&inside, 0.0)?;
    seen.sum(dim as isize + 1)?.div(&count)
}

/// For each window the flat places of its elements. Along each dimension the last is repeated up to the largest
/// window's number: a repeated place follows the element itself, so it never is the first of equals. With the numbers of windows and of places.
#[track_caller]
fn window_table(
    name: &'static str,
    image: &[usize],
    sizes: &[usize],
) -> Result<(Vec<i64>, usize, usize)> {
    // Everything along each dimension: (from, to, the largest window).
    let axes: Vec<(usize, usize, usize)> = image
        .iter()
        .zip(sizes)
        .map(|(&from, &to)| (from, to, largest_window(from, to)))
        .collect();
    let product = |part: fn(&(usize, usize, usize)) -> usize| {
        axes.iter().map(part).fold(1, usize::saturating_mul)
    };
    let (windows, most) = (product(|axis| axis.1), product(|axis| axis.2));
    let place = |i: usize| {
        let (mut tap, mut cell) = (i % most, i / most);
        let (mut flat, mut scale) = (0, 1);
        for &(from, to, most) in axes.iter().rev() {
            let (start, end) = window(cell % to, from, to);
            flat += (start + tap % most).min(end - 1) * scale;
            (tap, cell, scale) = (tap / most, cell / to, scale * from);
        }
        flat as i64
    };
    let table = list(name, windows.saturating_mul(most), place)?;
    Ok((table, windows, most))
}

/// The largest number of elements of one of `to` windows over `from` elements.
fn largest_window(from: usize, to: usize) -> usize {
    // With from = q·to + r, window i has q + ⌈(i + 1)·r/to⌉ - ⌊i·r/to⌋ elements. That is q + 2 at most, and only
    // where a window begins and ends inside elements: never when r divides to.
    let (whole, rest) = (from / to, from % to);
    match rest {
        0 => whole,
        rest if to.is_multiple_of(rest) => whole + 1,
        _ => whole + 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_window_is_found_without_looking() {
        for from in 1..40 {
            for to in 1..40 {
                let length = |i| {
                    let (start, end) = window(i, from, to);
                    end - start
                };
                let most = (0..to).map(length).max();
                assert_eq!(Some(largest_window(from, to)), most, "{from} to {to}");
            }
        }
    }
}
