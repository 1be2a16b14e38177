//! The tensor: an immutable value, a view of shared memory on a device, with its place in the graph.

use crate::autograd::{Edge, Leaf};
use drivetrain_core::{
    Buffer as Memory, DType, Device, Error, Layout, Meta, Operand, Result, Shape,
};
use std::sync::Arc;

/// A tensor: shape, dtype and device are values. Cloning is cheap and shares the memory.
///
/// ```
/// # use drivetrain_cpu as _;
/// use drivetrain_tensor::{DType, Device, Tensor};
/// let device = Device::open("cpu")?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2], &device)?;
/// let y = (&x * 2.0)?.sum(())?;
/// assert_eq!(y.item::<f32>()?, 20.0);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Tensor(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) memory: Arc<Memory>,
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    /// Where its gradient goes; `Edge::None` for a value that needs none.
    pub(crate) edge: Edge,
}

impl Tensor {
    pub(crate) fn new(memory: Arc<Memory>, dtype: DType, layout: Layout, edge: Edge) -> Tensor {
        Tensor(Arc::new(Inner {
            memory,
            dtype,
            layout,
            edge,
        }))
    }

    /// Memory for a new contiguous value, content undefined.
    pub(crate) fn allocate(meta: Meta, device: &Device) -> Result<Tensor> {
        let bytes = meta.bytes();
        let memory = Arc::new(device.allocate(bytes)?);
        Ok(Tensor::new(
            memory,
            meta.dtype,
            Layout::contiguous(meta.shape),
            Edge::None,
        ))
    }

    /// The same value with another place in the graph.
    pub(crate) fn with_edge(&self, edge: Edge) -> Tensor {
        Tensor::new(self.0.memory.clone(), self.0.dtype, self.0.layout, edge)
    }

    /// [`Tensor::with_edge`] of itself, without a new handle where nobody else holds this one.
    pub(crate) fn set_edge(&mut self, edge: Edge) {
        match Arc::get_mut(&mut self.0) {
            Some(inner) => inner.edge = edge,
            None => *self = self.with_edge(edge),
        }
    }

    /// Its shape. Never touches the device.
    pub fn shape(&self) -> &Shape {
        self.0.layout.shape()
    }

    /// Its sizes.
    pub fn dims(&self) -> &[usize] {
        self.0.layout.dims()
    }

    /// Size of one dimension; negative ones count from the end.
    ///
    /// # Errors
    /// When there is no such dimension.
    #[track_caller]
    pub fn size(&self, dim: isize) -> Result<usize> {
        let index = self.shape().dim("size", dim)?;
        let size = self.dims().get(index).copied();
        size.ok_or_else(|| Error::argument("size", "a scalar has no dimensions"))
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape().elements()
    }

    /// Size of the first dimension, as Python's `len`; 1 for a scalar. Never touches the device.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.dims().first().copied().unwrap_or(1)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Where it lies.
    pub fn device(&self) -> &Device {
        self.0.memory.device()
    }

    /// Elements from one index to the next along each dimension.
    pub fn strides(&self) -> &[isize] {
        self.0.layout.strides()
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
    }

    /// Whether both view the same memory.
    pub fn shares_memory_with(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0.memory, &other.0.memory)
    }

    /// Dtype and shape.
    pub fn meta(&self) -> Meta {
        Meta::new(self.dtype(), *self.shape())
    }

    pub(crate) fn operand(&self) -> Operand {
        self.0.memory.operand(self.0.dtype, self.0.layout)
    }

    /// Whether a gradient flows through it.
    pub fn requires_grad(&self) -> bool {
        !matches!(self.0.edge, Edge::None)
    }

    /// Whether it is a leaf of the graph: made by the user, not by an op that is recorded.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.0.edge, Edge::Node(..))
    }

    /// A leaf of the same value whose gradient is kept in [`Tensor::grad`] by [`Tensor::backward`].
    ///
    /// # Errors
    /// When the dtype is not a float.
    #[track_caller]
    pub fn requires_grad_(&self) -> Result<Tensor> {
        if !self.dtype().is_float() {
            return Err(Error::dtype(
                "requires_grad",
                format!("{} tensors have no gradient", self.dtype()),
            )
            .help("to_dtype(DType::F32) first"));
        }
        Ok(self.with_edge(Edge::Leaf(Arc::new(Leaf::new()))))
    }

    /// The same value outside the graph.
    pub fn detach(&self) -> Tensor {
        match self.0.edge {
            Edge::None => self.clone(),
            _ => self.with_edge(Edge::None),
        }
    }

    /// The gradient collected by a leaf so far.
    pub fn grad(&self) -> Option<Tensor> {
        match &self.0.edge {
            Edge::Leaf(leaf) => leaf.grad(),
            _ => None,
        }
    }

    /// Forgets the gradient collected so far.
    pub fn zero_grad(&self) {
        if let Edge::Leaf(leaf) = &self.0.edge {
            leaf.set_grad(None);
        }
    }

    /// Runs `hook` on this leaf's gradient each time one is complete in a backward pass, before it is added
    /// to [`Tensor::grad`]; what it returns takes the gradient's place.
    ///
    /// # Errors
    /// When the tensor is not a leaf that requires a gradient.
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<()> {
        match &self.0.edge {
            Edge::Leaf(leaf) => {
                leaf.add_hook(Box::new(hook));
                Ok(())
            }
            _ => Err(Error::state(
                "register_hook",
                "the tensor is not a leaf that requires a gradient",
            )
            .help("register it on a parameter or on the result of requires_grad_()")),
        }
    }
}
