//! Layouts: a shape with strides and an offset, and the views that only change those.

use crate::{Error, MAX_DIMS, Result, Shape};

/// Where a view's elements lie in its buffer: shape, strides (0 and negative allowed) and offset, in elements.
///
/// ```
/// use drivetrain_core::{Layout, Shape};
/// let layout = Layout::contiguous(Shape::new(&[2, 3])?).permute(&[1, 0]);
/// assert_eq!(layout.shape(), &[3, 2]);
/// assert_eq!(layout.strides(), [1, 3]);
/// assert!(!layout.is_contiguous());
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    shape: Shape,
    strides: [isize; MAX_DIMS],
    offset: usize,
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.offset == other.offset
            && self.strides() == other.strides()
    }
}

impl Layout {
    /// Row-major, from the buffer's start.
    pub fn contiguous(shape: Shape) -> Layout {
        Layout {
            strides: shape.strides(),
            shape,
            offset: 0,
        }
    }

    /// From its parts.
    ///
    /// # Errors
    /// When there is not one stride a dimension.
    pub fn new(shape: Shape, strides: &[isize], offset: usize) -> Result<Layout> {
        if strides.len() != shape.rank() {
            return Err(Error::shape(
                "layout",
                format!("{} strides {strides:?} for shape {shape}", strides.len()),
            ));
        }
        let mut all = [0; MAX_DIMS];
        all[..strides.len()].copy_from_slice(strides);
        Ok(Layout {
            shape,
            strides: all,
            offset,
        })
    }

    /// The shape.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The sizes.
    pub fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// Elements from one index to the next, a dimension each.
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.shape.rank()]
    }

    /// Elements from the buffer's start to the first element.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.elements()
    }

    /// Whether the elements lie row-major without gaps (from any offset). Sizes of 1 may have any stride.
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (&size, &stride) in self.dims().iter().zip(self.strides()).rev() {
            if size == 0 {
                return true;
            }
            if size != 1 && stride != step {
                return false;
            }
            step *= size as isize;
        }
        true
    }

    /// First and last element index touched, both inclusive; `None` when empty.
    ///
    /// # Errors
    /// When an index would be negative or does not fit.
    pub fn span(&self) -> Result<Option<(usize, usize)>> {
        if self.shape.is_empty() {
            return Ok(None);
        }
        let bounds = || {
            let (mut low, mut high) = (self.offset as i128, self.offset as i128);
            for (&size, &stride) in self.dims().iter().zip(self.strides()) {
                let reach = (size as i128 - 1) * stride as i128;
                low += reach.min(0);
                high += reach.max(0);
            }
            Some((usize::try_from(low).ok()?, usize::try_from(high).ok()?))
        };
        bounds()
            .map(Some)
            .ok_or_else(|| Error::shape("layout", format!("{self:?} reaches outside any buffer")))
    }

    /// Checks that every element lies in a buffer of `bytes` bytes.
    ///
    /// # Errors
    /// When one does not; names the layout and the size.
    pub fn check(&self, element_size: usize, bytes: usize) -> Result<()> {
        let Some((_, last)) = self.span()? else {
            return Ok(());
        };
        let end = (last as u128 + 1) * element_size as u128;
        if end > bytes as u128 {
            return Err(Error::shape(
                "layout",
                format!("{self:?} needs {end} bytes of a buffer of {bytes}"),
            ));
        }
        Ok(())
    }

    /// An error when `dim` is not there.
    #[track_caller]
    fn check_dim(&self, operation: &'static str, dim: usize) -> Result<()> {
        let rank = self.shape.rank();
        if dim >= rank {
            return Err(Error::argument(
                operation,
                format!(
                    "dimension {dim} out of range for shape {} of rank {rank}",
                    self.shape
                ),
            ));
        }
        Ok(())
    }

    /// Dimensions reordered: new dimension `i` is old `order[i]`. `order` is a permutation of the rank.
    #[must_use]
    pub fn permute(&self, order: &[usize]) -> Layout {
        let mut dims = [0; MAX_DIMS];
        let mut strides = [0; MAX_DIMS];
        for (to, &from) in order.iter().enumerate() {
            dims[to] = self.shape[from];
            strides[to] = self.strides[from];
        }
        Layout {
            // The same sizes in another order: as valid as before.
            shape: Shape::new(&dims[..order.len()]).unwrap_or(self.shape),
            strides,
            offset: self.offset,
        }
    }

    /// Broadcast to `shape` by strides of 0.
    ///
    /// # Errors
    /// Sizes that differ and are not 1, or a smaller rank.
    #[track_caller]
    pub fn expand(&self, shape: &Shape) -> Result<Layout> {
        let refuse = || {
            Error::shape("expand", format!("cannot expand {} to {shape}", self.shape))
                .help("sizes must be equal or 1, counted from the last dimension")
        };
        let lead = shape
            .rank()
            .checked_sub(self.shape.rank())
            .ok_or_else(refuse)?;
        let mut strides = [0; MAX_DIMS];
        for i in 0..self.shape.rank() {
            strides[lead + i] = match (self.shape[i], shape[lead + i]) {
                (from, to) if from == to => self.strides[i],
                (1, _) => 0,
                _ => return Err(refuse()),
            };
        }
        Ok(Layout {
            shape: *shape,
            strides,
            offset: self.offset,
        })
    }

    /// `length` elements along `dim` from `start` in steps of `step` (negative ones walk back).
    ///
    /// # Errors
    /// When an element taken lies outside the dimension, the dimension is not there, or the step is 0.
    #[track_caller]
    pub fn slice(&self, dim: usize, start: usize, step: isize, length: usize) -> Result<Layout> {
        self.check_dim("slice", dim)?;
        let size = self.shape[dim];
        let last = start as i128 + (length as i128 - 1) * step as i128;
        if step == 0 {
            return Err(Error::argument(
                "slice",
                format!("step 0 at dimension {dim}"),
            ));
        }
        if length > 0 && (start >= size || last < 0 || last >= size as i128) {
            return Err(Error::argument(
                "slice",
                format!(
                    "{length} elements from {start} in steps of {step} leave dimension {dim} of size {size} of shape {}",
                    self.shape
                ),
            ));
        }
        let mut view = *self;
        view.shape = self.shape.with(dim, length)?;
        if length > 0 {
            view.offset = (self.offset as isize + start as isize * self.strides[dim]) as usize;
        }
        // Of one element the stride says nothing, and the step may be any number.
        if length > 1 {
            view.strides[dim] = self.strides[dim].saturating_mul(step);
        }
        Ok(view)
    }

    /// The same elements in another shape, when strides can say it; `None` when a copy is needed.
    /// `shape` has as many elements as this.
    pub fn reshape(&self, shape: &Shape) -> Option<Layout> {
        if self.is_contiguous() {
            return Some(Layout {
                offset: self.offset,
                ..Layout::contiguous(*shape)
            });
        }
        // Groups of old dimensions with as many elements as a group of new ones, from the left; a group
        // that merges must be evenly strided. Sizes of 1 say nothing about strides.
        let old: Vec<(usize, isize)> = (self.dims().iter().copied())
            .zip(self.strides().iter().copied())
            .filter(|&(size, _)| size != 1)
            .collect();
        let new = shape.dims();
        let mut strides = [0; MAX_DIMS];
        let (mut i, mut j) = (0, 0);
        while i < new.len() && j < old.len() {
            let (first_new, first_old) = (i, j);
            let (mut a, mut b) = (new[i], old[j].0);
            while a != b {
                if a < b {
                    i += 1;
                    a *= new.get(i)?;
                } else {
                    j += 1;
                    b *= old.get(j)?.0;
                }
            }
            let group = &old[first_old..=j];
            if group
                .windows(2)
                .any(|w| w[0].1 != w[1].1.saturating_mul(w[1].0 as isize))
            {
                return None;
            }
            let mut stride = old[j].1;
            for k in (first_new..=i).rev() {
                strides[k] = stride;
                stride = stride.saturating_mul(new[k] as isize);
            }
            i += 1;
            j += 1;
        }
        // What is left are sizes of 1; their strides never matter.
        Some(Layout {
            shape: *shape,
            strides,
            offset: self.offset,
        })
    }

    /// Windows of `size` along `dim`, `step` apart: `dim` becomes the window's number, a last dimension its
    /// elements (`torch.Tensor.unfold`).
    ///
    /// # Errors
    /// When no window fits or the rank would pass [`MAX_DIMS`].
    #[track_caller]
    pub fn unfold(&self, dim: usize, size: usize, step: usize) -> Result<Layout> {
        self.check_dim("unfold", dim)?;
        let length = self.shape[dim];
        if size > length || step == 0 {
            return Err(Error::argument(
                "unfold",
                format!(
                    "windows of {size} with step {step} do not fit size {length} of dimension {dim}"
                ),
            ));
        }
        let rank = self.shape.rank();
        let mut dims = [0; MAX_DIMS + 1];
        dims[..rank].copy_from_slice(self.dims());
        dims[dim] = (length - size) / step + 1;
        dims[rank] = size;
        let mut view = *self;
        view.shape = Shape::new(&dims[..=rank])?;
        view.strides[rank] = self.strides[dim];
        if dims[dim] > 1 {
            view.strides[dim] = self.strides[dim].saturating_mul(step as isize);
        }
        Ok(view)
    }

    /// The elements whose indices along `a` and `b` are equal, as a last dimension.
    ///
    /// # Errors
    /// When `a` and `b` are the same dimension or one is not there.
    #[track_caller]
    pub fn diagonal(&self, a: usize, b: usize) -> Result<Layout> {
        self.check_dim("diagonal", a)?;
        self.check_dim("diagonal", b)?;
        if a == b {
            return Err(Error::argument(
                "diagonal",
                format!("dimension {a} given twice"),
            ));
        }
        let length = self.shape[a].min(self.shape[b]);
        let kept: Vec<usize> = (0..self.shape.rank())
            .filter(|&i| i != a && i != b)
            .collect();
        let mut view = self.permute(&kept);
        let mut dims = view.dims().to_vec();
        dims.push(length);
        view.strides[kept.len()] = self.strides[a].saturating_add(self.strides[b]);
        view.shape = Shape::new(&dims)?;
        Ok(view)
    }

    /// Element indices in the buffer, row-major. For hosts and references, not for kernels.
    pub fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        let mut index = [0usize; MAX_DIMS];
        let mut at = self.offset as isize;
        let mut left = self.elements();
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let current = at as usize;
            for dim in (0..self.shape.rank()).rev() {
                index[dim] += 1;
                // Wraps for the stride of a last step that is never taken.
                at = at.wrapping_add(self.strides[dim]);
                if index[dim] < self.shape[dim] {
                    break;
                }
                at = at.wrapping_sub(self.strides[dim].wrapping_mul(self.shape[dim] as isize));
                index[dim] = 0;
            }
            Some(current)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(dims: &[usize]) -> Layout {
        Layout::contiguous(Shape::new(dims).unwrap())
    }

    #[test]
    fn reshape_keeps_the_order_of_elements_or_declines() {
        let base = layout(&[2, 3, 4]);
        let views = [
            base,
            base.permute(&[1, 0, 2]),
            base.permute(&[2, 1, 0]),
            base.slice(2, 0, 2, 2).unwrap(),
            base.slice(1, 2, -1, 3).unwrap(),
            base.slice(0, 1, 1, 1).unwrap(),
            layout(&[2, 1, 4])
                .expand(&Shape::new(&[2, 3, 4]).unwrap())
                .unwrap(),
        ];
        let shapes: [&[usize]; 9] = [
            &[24],
            &[6, 4],
            &[2, 12],
            &[3, 8],
            &[1, 2, 3, 1, 4, 1],
            &[12],
            &[2, 6],
            &[4, 3],
            &[3, 2, 2],
        ];
        let mut viewed = 0;
        for view in &views {
            for dims in shapes {
                let shape = Shape::new(dims).unwrap();
                if shape.elements() != view.elements() {
                    continue;
                }
                if let Some(got) = view.reshape(&shape) {
                    assert!(got.indices().eq(view.indices()), "{view:?} as {shape}");
                    viewed += 1;
                }
            }
        }
        assert!(viewed > 12, "only {viewed} were views");
        assert!(
            base.permute(&[1, 0, 2])
                .reshape(&Shape::new(&[6, 4]).unwrap())
                .is_none()
        );
    }

    #[test]
    fn views_stay_in_bounds() {
        let base = layout(&[3, 4]);
        assert!(base.slice(1, 3, -1, 4).is_ok());
        assert!(base.slice(1, 3, -1, 5).is_err());
        assert!(base.slice(1, 1, 2, 3).is_err());
        assert!(base.check(4, 48).is_ok() && base.check(4, 47).is_err());
        let windows = base.unfold(1, 2, 1).unwrap();
        assert_eq!(windows.shape(), &[3, 3, 2]);
        assert_eq!(windows.indices().take(4).collect::<Vec<_>>(), [0, 1, 1, 2]);
        let one = base.slice(1, 3, isize::MAX, 1).unwrap();
        assert_eq!(one.indices().collect::<Vec<_>>(), [3, 7, 11]);
        assert!(one.check(4, 48).is_ok());
        let single = base.unfold(1, 4, usize::MAX).unwrap();
        assert_eq!(single.shape(), &[3, 1, 4]);
        assert_eq!(single.indices().last(), Some(11));
        for refused in [
            base.slice(2, 0, 1, 1),
            base.slice(0, 0, 0, 2),
            base.unfold(2, 1, 1),
            base.unfold(0, 1, 0),
            base.diagonal(0, 2),
            base.diagonal(1, 1),
        ] {
            refused.unwrap_err();
        }
        let diagonal = layout(&[3, 3]).diagonal(0, 1).unwrap();
        assert_eq!(diagonal.indices().collect::<Vec<_>>(), [0, 4, 8]);
    }
}
