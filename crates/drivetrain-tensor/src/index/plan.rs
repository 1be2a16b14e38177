//! What an index means for a shape: views first, then index tensors on dimensions of what is left.

use super::Index;
use crate::Tensor;
use crate::slicing::slice_bounds;
use drivetrain_core::{DType, Error, Result, Shape, ViewOp};

/// An index worked out for one tensor.
pub(super) struct Plan {
    /// Slices and new shapes, one after the other.
    pub(super) views: Vec<ViewOp>,
    /// For each dimension of the viewed tensor the index tensor that looks it up, if any: I64, 0 ≤ index < size.
    pub(super) lookups: Vec<Option<Tensor>>,
}

/// The plan being made: views as they come, and the sizes of the dimensions done.
struct Planner<'a> {
    x: &'a Tensor,
    operation: &'static str,
    views: Vec<ViewOp>,
    sizes: Vec<usize>,
    lookups: Vec<Option<Tensor>>,
    /// How many dimensions of x are used up.
    source: usize,
}

#[track_caller]
pub(super) fn plan(x: &Tensor, items: &[Index], operation: &'static str) -> Result<Plan> {
    let mut items = items.to_vec();
    for item in &mut items {
        resolve_tensor(x, item, operation)?;
    }
    let taken: usize = items.iter().map(takes).sum();
    let spare = x.rank().checked_sub(taken).ok_or_else(|| {
        Error::argument(
            operation,
            format!(
                "{taken} indices for shape {} of rank {}",
                x.shape(),
                x.rank()
            ),
        )
    })?;
    let ellipses = items
        .iter()
        .filter(|i| matches!(i, Index::Ellipsis))
        .count();
    if ellipses > 1 {
        return Err(Error::argument(
            operation,
            format!("{ellipses} ellipses, where one takes all dimensions left"),
        ));
    }
    let mut planner = Planner {
        x,
        operation,
        views: Vec::new(),
        sizes: Vec::new(),
        lookups: Vec::new(),
        source: 0,
    };
    for item in &items {
        planner.take(item, spare)?;
    }
    while planner.source < x.rank() {
        planner.keep();
    }
    planner.finish()
}

/// How many dimensions of x an item uses up.
fn takes(item: &Index) -> usize {
    match item {
        Index::NewAxis | Index::Ellipsis => 0,
        Index::At(_) | Index::Range { .. } | Index::List(_) => 1,
        Index::Tensor(t) if t.dtype() == DType::Bool => t.rank(),
        Index::Tensor(_) => 1,
    }
}

/// Lists become tensors, and an integer tensor without dimensions the integer that it holds.
#[track_caller]
fn resolve_tensor(x: &Tensor, item: &mut Index, operation: &'static str) -> Result<()> {
    match item {
        Index::List(list) => {
            *item = Index::Tensor(Tensor::from_slice(list, [list.len()], x.device())?);
        }
        Index::Tensor(t) => {
            if !matches!(t.dtype(), DType::I64 | DType::I32 | DType::Bool) {
                return Err(Error::dtype(
                    operation,
                    format!("an index tensor of {} {}", t.dtype(), t.shape()),
                )
                .help("to_dtype(DType::I64) for positions, to_dtype(DType::Bool) for a mask"));
            }
            if t.device() != x.device() {
                return Err(crate::run::different_devices(operation, x, 1, t));
            }
            if t.rank() == 0 && t.dtype() != DType::Bool {
                *item = Index::At(t.item::<i64>()? as isize);
            }
        }
        _ => {}
    }
    Ok(())
}

impl Planner<'_> {
    /// The next dimension of x as it is.
    fn keep(&mut self) {
        self.push(self.x.dims()[self.source], None);
        self.source += 1;
    }

    fn push(&mut self, size: usize, lookup: Option<Tensor>) {
        self.sizes.push(size);
        self.lookups.push(lookup);
    }

    #[track_caller]
    fn take(&mut self, item: &Index, spare: usize) -> Result<()> {
        match item {
            Index::NewAxis => {
                self.push(1, None);
                Ok(())
            }
            Index::Ellipsis => {
                (0..spare).for_each(|_| self.keep());
                Ok(())
            }
            Index::At(index) => self.at(*index),
            Index::Range { start, end, step } => self.range(*start, *end, *step),
            Index::Tensor(t) if t.dtype() == DType::Bool => self.mask(t),
            Index::Tensor(t) => self.lookup(t),
            // Lists were made tensors before.
            Index::List(_) => Ok(()),
        }
    }

    #[track_caller]
    fn at(&mut self, index: isize) -> Result<()> {
        let size = self.x.dims()[self.source];
        let place = self.place(index as i64)?;
        self.slice(place, 1, 1, size);
        // The dimension is left out of the sizes: the last view drops it.
        self.source += 1;
        Ok(())
    }

    #[track_caller]
    fn range(&mut self, start: Option<isize>, end: Option<isize>, step: isize) -> Result<()> {
        let size = self.x.dims()[self.source];
        if step == 0 {
            return Err(Error::argument(
                self.operation,
                format!(
                    "a step of 0 along dimension {} of shape {}",
                    self.source,
                    self.x.shape()
                ),
            ));
        }
        let (first, length) = slice_bounds(size, start, end, step);
        self.slice(first, step, length, size);
        self.push(length, None);
        self.source += 1;
        Ok(())
    }

    fn slice(&mut self, start: usize, step: isize, length: usize, size: usize) {
        if (start, step, length) != (0, 1, size) {
            self.views.push(ViewOp::Slice {
                dim: self.source,
                start,
                step,
                length,
            });
        }
    }

    /// A mask becomes one index tensor for each of its dimensions.
    #[track_caller]
    fn mask(&mut self, mask: &Tensor) -> Result<()> {
        let dims = &self.x.dims()[self.source..self.source + mask.rank()];
        if let Some(i) = (0..mask.rank()).find(|&i| mask.dims()[i] != dims[i]) {
            return Err(Error::shape(
                self.operation,
                format!(
                    "a mask {} for dimensions {} on of shape {}: size {} where x has {} at dimension {}",
                    mask.shape(),
                    self.source,
                    self.x.shape(),
                    mask.dims()[i],
                    dims[i],
                    self.source + i
                ),
            ));
        }
        if mask.rank() == 0 {
            // True keeps everything once, false nothing, in a new dimension.
            let times = usize::from(mask.item::<bool>()?);
            self.push(1, Some(Tensor::zeros([times], DType::I64, mask.device())?));
            return Ok(());
        }
        for column in mask.nonzero_columns()? {
            self.push(self.x.dims()[self.source], Some(column));
            self.source += 1;
        }
        Ok(())
    }

    /// Index tensor checked, negative ones made positive.
    #[track_caller]
    fn lookup(&mut self, index: &Tensor) -> Result<()> {
        let size = self.x.dims()[self.source];
        let mut index = index.detach().to_dtype(DType::I64)?;
        if !index.shape().is_empty() {
            let (low, high) = (
                index.amin(())?.item::<i64>()?,
                index.amax(())?.item::<i64>()?,
            );
            self.place(high)?;
            self.place(low)?;
            if low < 0 {
                index = index.add(size as i64)?.where_(&index.lt(0)?, &index)?;
            }
        }
        self.push(size, Some(index));
        self.source += 1;
        Ok(())
    }

    /// An index along the current dimension, counted from its beginning.
    #[track_caller]
    fn place(&self, index: i64) -> Result<usize> {
        let size = self.x.dims()[self.source] as i64;
        if index < -size || index >= size {
            return Err(Error::argument(
                self.operation,
                format!(
                    "index {index} out of range for dimension {} of size {size} of shape {}",
                    self.source,
                    self.x.shape()
                ),
            ));
        }
        Ok(index.rem_euclid(size) as usize)
    }

    #[track_caller]
    fn finish(mut self) -> Result<Plan> {
        let shape = crate::movement::user_shape(self.operation, self.sizes.as_slice())?;
        let sliced = self
            .views
            .iter()
            .try_fold(*self.x.shape(), |shape: Shape, view| view.shape(&shape))?;
        if sliced != shape {
            self.views.push(ViewOp::Reshape(shape));
        }
        Ok(Plan {
            views: self.views,
            lookups: self.lookups,
        })
    }
}
