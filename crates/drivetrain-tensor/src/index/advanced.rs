//! Indexing carried out: views, look-ups by tensors, masks, and updates of what an index picks out.

use super::plan::{Plan, plan};
use super::{Index, IntoIndex};
use crate::run::{run_view, run_write};
use crate::{Operand, Tensor};
use drivetrain_core::{DType, Error, Result, Shape};

impl Tensor {
    /// What the index picks out, as Python's `x[…]`: see [`Index`]. Integers, ranges and new axes give a view;
    /// index tensors (which broadcast together) and masks a copy. As in PyTorch, neighbouring index tensors put
    /// their dimensions where they stand, others in front.
    ///
    /// Index tensors are checked before they are used, and the size of what a mask picks is known only by
    /// reading it: both wait for the device.
    ///
    /// # Errors
    /// An index out of range (names index, dimension and size), more indices than dimensions, a step of 0,
    /// a mask of another shape, index tensors that do not broadcast or are not integers.
    #[track_caller]
    pub fn index(&self, index: impl IntoIndex) -> Result<Tensor> {
        let Plan { views, lookups } = plan(self, &index.items(), "index")?;
        let mut x = self.clone();
        for view in views {
            x = run_view(view, &x)?;
        }
        match lookups.iter().filter(|l| l.is_some()).count() {
            0 => Ok(x),
            1 => look_up_one(&x, &lookups),
            _ => {
                let lookup = Lookup::new(&x, &lookups)?;
                let rows = lookup.flat(&x)?.index_select(0, &lookup.rows)?;
                lookup.outward(&rows.reshape(lookup.picked_shape()?)?)
            }
        }
    }

    /// x with `source` (a tensor that broadcasts to it, or a number) in place of what the index picks out:
    /// Python's `x[…] = source`, as a new tensor. x itself keeps its value. Where an index tensor names a place
    /// twice, the last one stays.
    ///
    /// ```
    /// # use drivetrain_cpu as _;
    /// use drivetrain_tensor::{DType, Device, Tensor};
    /// let x = Tensor::zeros([2, 3], DType::F32, &Device::open("cpu")?)?;
    /// let y = x.assign((.., 1), 5.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 5.0, 0.0, 0.0, 5.0, 0.0]);
    /// # Ok::<(), drivetrain_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::index`]; or a source that does not broadcast to what is picked out, or lies elsewhere.
    #[track_caller]
    pub fn assign<'a>(
        &self,
        index: impl IntoIndex,
        source: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let items = index.items();
        let source = match source.into() {
            Operand::Tensor(source) => source.to_dtype(self.dtype())?,
            Operand::Scalar(number) => Tensor::full((), number, self.dtype(), self.device())?,
        };
        if source.device() != self.device() {
            return Err(crate::run::different_devices("assign", self, 1, &source));
        }
        // One value where a mask holds needs no count of the places.
        if let [Index::Tensor(mask)] = items.as_slice()
            && mask.dtype() == DType::Bool
            && source.rank() == 0
            && self.dims().starts_with(mask.dims())
        {
            let sizes = [mask.dims(), &vec![1; self.rank() - mask.rank()]].concat();
            return source.where_(&mask.reshape(sizes)?, self);
        }
        let Plan { views, lookups } = plan(self, &items, "assign")?;
        let mut window = self.clone();
        for &view in &views {
            window = run_view(view, &window)?;
        }
        if lookups.iter().all(Option::is_none) {
            return run_write(self, &views, &fit(&source, window.shape())?);
        }
        let lookup = Lookup::new(&window, &lookups)?;
        let rows = lookup.inward(&source)?;
        let flat = lookup.flat(&window)?;
        let width = lookup.sizes[lookup.looked..].iter().product();
        let flat = flat.reshape([flat.len(), width])?;
        let index = lookup
            .rows
            .reshape([rows.len(), 1])?
            .expand(*rows.shape())?;
        let flat = flat.scatter(0, &index, &rows)?;
        let updated = lookup.unflat(&flat)?;
        match views.is_empty() {
            true => Ok(updated),
            false => run_write(self, &views, &updated),
        }
    }

    /// The indices (I64 [n, rank]) of the elements that are not 0, in row-major order. Waits for the device.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        if self.rank() == 0 {
            let count = usize::from(self.ne(0)?.item::<bool>()?);
            return Tensor::zeros([count, 0], DType::I64, self.device());
        }
        let columns = self.nonzero_columns()?;
        Tensor::stack(&columns.iter().collect::<Vec<_>>(), 1)
    }

    /// [`Tensor::nonzero`] as one vector a dimension; the rank is at least 1.
    #[track_caller]
    pub(super) fn nonzero_columns(&self) -> Result<Vec<Tensor>> {
        let x = self.detach();
        let truth = x.ne(0)?.reshape([x.elements()])?;
        let running = truth.cumsum(0)?;
        let count = match x.elements() {
            0 => 0,
            _ => running.select(0, -1)?.item::<i64>()?,
        };
        // Each true element writes its position at its number; the others meet in one place past the end.
        let place = running.sub(1i64)?.where_(&truth, count)?;
        let position = Tensor::index_along([x.elements()], 0, x.device())?;
        let flat = Tensor::zeros([count as usize + 1], DType::I64, x.device())?
            .scatter_add(0, &place, &position)?
            .narrow(0, 0, count as usize)?;
        let mut stride = 1i64;
        let mut columns = Vec::new();
        for &size in x.dims().iter().rev() {
            let size = size.max(1) as i64;
            columns.push(flat.floor_divide(stride)?.remainder(size)?);
            stride = stride.saturating_mul(size);
        }
        columns.reverse();
        Ok(columns)
    }
}

/// `source` as one of `shape`.
#[track_caller]
fn fit(source: &Tensor, shape: &Shape) -> Result<Tensor> {
    // As in Python, leading sizes of 1 too many do not matter.
    let spare = source.rank().saturating_sub(shape.rank());
    let source = match source.dims()[..spare].iter().all(|&d| d == 1) {
        true => source.reshape(&source.dims()[spare..])?,
        false => source.clone(),
    };
    source.expand(*shape).map_err(|_| {
        Error::shape(
            "assign",
            format!(
                "a source {} does not broadcast to what is picked out, {shape}",
                source.shape()
            ),
        )
    })
}

/// One index tensor: along its dimension, without moving the others.
#[track_caller]
fn look_up_one(x: &Tensor, lookups: &[Option<Tensor>]) -> Result<Tensor> {
    let Some((dim, index)) = lookups
        .iter()
        .enumerate()
        .find_map(|(d, l)| Some((d, l.as_ref()?)))
    else {
        return Ok(x.clone());
    };
    let picked = x.index_select(dim as isize, &index.reshape([index.elements()])?)?;
    picked.reshape([&x.dims()[..dim], index.dims(), &x.dims()[dim + 1..]].concat())
}

/// Several index tensors: the dimensions that they look up become one, in front of the others.
struct Lookup {
    /// Looked-up dimensions first, then the others, in their order.
    order: Vec<isize>,
    /// Sizes in that order.
    sizes: Vec<usize>,
    /// How many are looked up.
    looked: usize,
    /// The common shape of the index tensors.
    common: Shape,
    /// Where that shape goes among the other dimensions of the result.
    position: usize,
    /// The place of each element of that shape in the joined dimension: I64 [n].
    rows: Tensor,
}

impl Lookup {
    #[track_caller]
    fn new(x: &Tensor, lookups: &[Option<Tensor>]) -> Result<Lookup> {
        let looked: Vec<usize> = (0..x.rank()).filter(|&d| lookups[d].is_some()).collect();
        let others: Vec<usize> = (0..x.rank()).filter(|&d| lookups[d].is_none()).collect();
        let indices: Vec<&Tensor> = lookups.iter().flatten().collect();
        let mut common = Shape::SCALAR;
        for index in &indices {
            common = common.broadcast(index.shape(), "index")?;
        }
        let mut rows = Tensor::zeros(common, DType::I64, x.device())?;
        for (&dim, index) in looked.iter().zip(&indices) {
            rows = rows.mul(x.dims()[dim] as i64)?.add(*index)?;
        }
        let first = looked.first().copied().unwrap_or(0);
        let adjacent = looked.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let order: Vec<usize> = looked.iter().chain(&others).copied().collect();
        Ok(Lookup {
            sizes: order.iter().map(|&d| x.dims()[d]).collect(),
            order: order.iter().map(|&d| d as isize).collect(),
            looked: looked.len(),
            position: if adjacent { first } else { 0 },
            rows: rows.reshape([common.elements()])?,
            common,
        })
    }

    /// x with the looked-up dimensions as one, then the others.
    fn flat(&self, x: &Tensor) -> Result<Tensor> {
        let joined = self.sizes[..self.looked].iter().product();
        x.permute(&self.order)?
            .reshape([&[joined], &self.sizes[self.looked..]].concat())
    }

    /// Back from [`Lookup::flat`] to x's dimensions.
    fn unflat(&self, flat: &Tensor) -> Result<Tensor> {
        let mut back = vec![0; self.order.len()];
        for (at, &dim) in self.order.iter().enumerate() {
            back[dim as usize] = at as isize;
        }
        flat.reshape(self.sizes.as_slice())?.permute(&back)
    }

    /// The sizes of what is picked: the index tensors' shape, then the other dimensions.
    #[track_caller]
    fn picked_shape(&self) -> Result<Shape> {
        let sizes = [self.common.dims(), &self.sizes[self.looked..]].concat();
        crate::movement::user_shape("index", sizes)
    }

    /// What was picked, with the index tensors' dimensions moved to where they go.
    fn outward(&self, picked: &Tensor) -> Result<Tensor> {
        let (k, p) = (self.common.rank(), self.position);
        let order: Vec<isize> = (k..k + p)
            .chain(0..k)
            .chain(k + p..picked.rank())
            .map(|d| d as isize)
            .collect();
        picked.permute(&order)
    }

    /// A source for what is picked, broadcast and in rows as [`Lookup::flat`] has them, one dimension each.
    #[track_caller]
    fn inward(&self, source: &Tensor) -> Result<Tensor> {
        let picked = self.picked_shape()?;
        let (k, p) = (self.common.rank(), self.position);
        let others = &self.sizes[self.looked..];
        let outside = Shape::new(&[&others[..p], self.common.dims(), &others[p..]].concat())?;
        let order: Vec<isize> = (p..p + k)
            .chain(0..p)
            .chain(p + k..picked.rank())
            .map(|d| d as isize)
            .collect();
        let width = others.iter().product();
        fit(source, &outside)?
            .permute(&order)?
            .reshape([self.common.elements(), width])
    }
}
