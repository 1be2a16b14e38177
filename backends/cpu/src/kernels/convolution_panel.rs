//! The geometry of a convolution, and windows of an image as the columns of a panel and back.

use super::vector::{Real, vectorised};
use drivetrain_core::ConvolutionSpec;

/// Sizes of a convolution with three spatial dimensions; absent ones come first and have size 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) batch: usize,
    pub(super) groups: usize,
    /// Input channels of a group.
    pub(super) channels: usize,
    /// Output channels of a group.
    pub(super) outs: usize,
    pub(super) image: [usize; 3],
    pub(super) kernel: [usize; 3],
    pub(super) out: [usize; 3],
    stride: [usize; 3],
    padding: [usize; 3],
    dilation: [usize; 3],
}

/// Sizes or steps of up to three dimensions, moved to the end.
fn last(values: &[usize], fill: usize) -> [usize; 3] {
    let mut all = [fill; 3];
    all[3 - values.len()..].copy_from_slice(values);
    all
}

impl Geometry {
    /// Of x's and y's shapes `[N, C, spatial…]` and spatial kernel sizes.
    pub(super) fn new(spec: &ConvolutionSpec, x: &[usize], y: &[usize], kernel: &[usize]) -> Self {
        let spatial = usize::from(spec.spatial);
        Geometry {
            batch: x[0],
            groups: spec.groups,
            channels: x[1] / spec.groups,
            outs: y[1] / spec.groups,
            image: last(&x[2..], 1),
            kernel: last(kernel, 1),
            out: last(&y[2..], 1),
            stride: last(&spec.stride[..spatial], 1),
            padding: last(&spec.padding[..spatial], 0),
            dilation: last(&spec.dilation[..spatial], 1),
        }
    }

    /// Elements of a kernel, of one channel.
    pub(super) fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Elements of an input channel.
    pub(super) fn plane(&self) -> usize {
        self.image.iter().product()
    }

    /// Elements of an output channel.
    pub(super) fn out_plane(&self) -> usize {
        self.out.iter().product()
    }

    /// Rows of an output channel.
    pub(super) fn rows(&self) -> usize {
        self.out[0] * self.out[1]
    }

    /// Whether windows are single elements in their own places, so that the image is its own panel.
    pub(super) fn is_pointwise(&self) -> bool {
        self.taps() == 1 && self.stride == [1; 3] && self.padding == [0; 3]
    }

    /// Which element of an input dimension a tap of an output position looks at; `None` for padding.
    #[inline(always)]
    fn at(&self, axis: usize, position: usize, tap: usize) -> Option<usize> {
        let padded = position * self.stride[axis] + tap * self.dilation[axis];
        padded
            .checked_sub(self.padding[axis])
            .filter(|&at| at < self.image[axis])
    }

    /// The input line that a tap of an output row looks at, by its first element's place in the plane.
    #[inline(always)]
    fn line(&self, row: usize, tap: [usize; 3]) -> Option<usize> {
        let depth = self.at(0, row / self.out[1], tap[0])?;
        let height = self.at(1, row % self.out[1], tap[1])?;
        Some((depth * self.image[1] + height) * self.image[2])
    }

    /// The output columns for which a tap lies in the image, and the element of the first of them.
    #[inline(always)]
    fn columns(&self, tap: usize) -> (usize, usize, usize) {
        let (stride, shift) = (self.stride[2], tap * self.dilation[2]);
        let before = self.padding[2].saturating_sub(shift);
        let low = before.div_ceil(stride).min(self.out[2]);
        // The element of column j is j·stride + shift - padding, below the image's size.
        let room = (self.image[2] + self.padding[2]).saturating_sub(shift);
        let high = room.div_ceil(stride).min(self.out[2]).max(low);
        // Where no column sees the tap the product may be past everything.
        let at = low.saturating_mul(stride).saturating_add(shift);
        let first = at.saturating_sub(self.padding[2]);
        (low, high, first)
    }

    /// All taps, in the order of the weight.
    #[inline(always)]
    fn each_tap(&self, mut body: impl FnMut(usize, [usize; 3])) {
        let mut number = 0;
        for a in 0..self.kernel[0] {
            for b in 0..self.kernel[1] {
                for c in 0..self.kernel[2] {
                    body(number, [a, b, c]);
                    number += 1;
                }
            }
        }
    }
}

/// Some rows of the output.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: usize,
    pub(super) count: usize,
}

vectorised! {
    /// Windows of the planes of `x` for rows of the output, as a panel [planes·taps, rows·width].
    pub(super) fn gather_windows<C: Real>(geometry: &Geometry, x: &[C], rows: Rows, panel: &mut [C]) {
        let (width, stride) = (geometry.out[2], geometry.stride[2]);
        let columns = rows.count * width;
        let taps = geometry.taps();
        let planes = x.chunks_exact(geometry.plane());
        for (x, panel) in planes.zip(panel.chunks_exact_mut(taps * columns)) {
            geometry.each_tap(|number, tap| {
                let (low, high, first) = geometry.columns(tap[2]);
                let panel = &mut panel[number * columns..][..columns];
                for (i, to) in panel.chunks_exact_mut(width).enumerate() {
                    let Some(line) = geometry.line(rows.first + i, tap) else {
                        to.fill(C::ZERO);
                        continue;
                    };
                    to[..low].fill(C::ZERO);
                    to[high..].fill(C::ZERO);
                    if high > low {
                        let from = &x[line + first..];
                        let to = &mut to[low..high];
                        if stride == 1 {
                            to.copy_from_slice(&from[..high - low]);
                        } else {
                            for (to, &from) in to.iter_mut().zip(from.iter().step_by(stride)) {
                                *to = from;
                            }
                        }
                    }
                }
            });
        }
    }
}

vectorised! {
    /// The reverse: what a panel holds for each window is added to the planes of `x`.
    pub(super) fn scatter_windows<C: Real>(geometry: &Geometry, panel: &[C], rows: Rows, x: &mut [C]) {
        let (width, stride) = (geometry.out[2], geometry.stride[2]);
        let columns = rows.count * width;
        let taps = geometry.taps();
        let planes = x.chunks_exact_mut(geometry.plane());
        for (x, panel) in planes.zip(panel.chunks_exact(taps * columns)) {
            geometry.each_tap(|number, tap| {
                let (low, high, first) = geometry.columns(tap[2]);
                let panel = &panel[number * columns..][..columns];
                for (i, from) in panel.chunks_exact(width).enumerate() {
                    let Some(line) = geometry.line(rows.first + i, tap) else { continue };
                    if high > low {
                        let to = &mut x[line + first..];
                        let from = &from[low..high];
                        if stride == 1 {
                            for (to, &from) in to.iter_mut().zip(from) {
                                *to += from;
                            }
                        } else {
                            for (to, &from) in to.iter_mut().step_by(stride).zip(from) {
                                *to += from;
                            }
                        }
                    }
                }
            });
        }
    }
}

vectorised! {
    /// One plane of the output from one of the image, tap by tap, for groups too thin for a matrix product.
    pub(super) fn add_plane<C: Real>(geometry: &Geometry, x: &[C], taps: &[C], y: &mut [C]) {
        let (width, stride) = (geometry.out[2], geometry.stride[2]);
        geometry.each_tap(|number, tap| {
            let (low, high, first) = geometry.columns(tap[2]);
            let weight = taps[number];
            for (row, to) in y.chunks_exact_mut(width).enumerate() {
                let Some(line) = geometry.line(row, tap) else { continue };
                if high > low {
                    let from = &x[line + first..];
                    let to = &mut to[low..high];
                    if stride == 1 {
                        for (to, &from) in to.iter_mut().zip(from) {
                            *to += weight * from;
                        }
                    } else {
                        for (to, &from) in to.iter_mut().zip(from.iter().step_by(stride)) {
                            *to += weight * from;
                        }
                    }
                }
            }
        });
    }
}
