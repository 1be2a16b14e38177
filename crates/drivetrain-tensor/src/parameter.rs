//! Parameters and buffers: shared cells with an identity, whose value changes while tensors do not.

use crate::Tensor;
use crate::autograd::{Edge, Leaf};
use drivetrain_core::{DType, Device, Error, Op, Result, Shape};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static IDENTITIES: AtomicU64 = AtomicU64::new(1);

struct Cell {
    id: u64,
    value: RwLock<Tensor>,
}

impl Cell {
    fn read(&self) -> RwLockReadGuard<'_, Tensor> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tensor> {
        self.value.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn new(value: Tensor) -> Arc<Cell> {
        Arc::new(Cell {
            id: IDENTITIES.fetch_add(1, Ordering::Relaxed),
            value: RwLock::new(value),
        })
    }

    /// Puts `value` in, keeping the place in the graph.
    fn set(&self, what: &'static str, value: &Tensor) -> Result<()> {
        let mut slot = self.write();
        if value.shape() != slot.shape() || value.dtype() != slot.dtype() {
            return Err(Error::shape(
                what,
                format!(
                    "a value {} {} for one {} {}",
                    value.dtype(),
                    value.shape(),
                    slot.dtype(),
                    slot.shape()
                ),
            ));
        }
        let edge = slot.0.edge.clone();
        *slot = value.with_edge(edge);
        Ok(())
    }
}

/// A trainable value: a shared cell. Clones see each other's changes, so an optimizer that holds one stays
/// right when the model is moved, loaded or trained.
///
/// ```
/// # use drivetrain_cpu as _;
/// use drivetrain_tensor::{Device, DType, Parameter, Tensor};
/// let weight = Parameter::new(Tensor::ones([2], DType::F32, &Device::open("cpu")?)?)?;
/// let loss = (&weight.value() * &weight.value())?.sum(())?;
/// loss.backward()?;
/// assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Parameter(Arc<Cell>);

impl Parameter {
    /// A parameter of this value that requires a gradient.
    ///
    /// # Errors
    /// When the dtype is not a float.
    #[track_caller]
    pub fn new(value: Tensor) -> Result<Parameter> {
        Ok(Parameter(Cell::new(value.detach().requires_grad_()?)))
    }

    /// The value now. A tensor taken earlier keeps the value it had.
    pub fn value(&self) -> Tensor {
        self.0.read().clone()
    }

    /// A number that no other parameter or buffer of the process has; clones share it.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Shape of the value.
    pub fn shape(&self) -> Shape {
        *self.0.read().shape()
    }

    /// Dtype of the value.
    pub fn dtype(&self) -> DType {
        self.0.read().dtype()
    }

    /// Where the value lies.
    pub fn device(&self) -> Device {
        self.0.read().device().clone()
    }

    /// Replaces the value. Its gradient stays.
    ///
    /// # Errors
    /// Another shape or dtype.
    #[track_caller]
    pub fn set(&self, value: &Tensor) -> Result<()> {
        self.0.set("parameter", value)
    }

    /// Moves value and gradient to `device`; nothing when they are there.
    ///
    /// # Errors
    /// When either device fails; value and gradient are then as before.
    pub fn to(&self, device: &Device) -> Result<()> {
        let mut slot = self.0.write();
        if slot.device() == device {
            return Ok(());
        }
        let value = slot.detach().to(device)?;
        let grad = slot.grad().map(|g| g.detach().to(device)).transpose()?;
        let edge = slot.0.edge.clone();
        if let Edge::Leaf(leaf) = &edge {
            leaf.set_grad(grad);
        }
        *slot = value.with_edge(edge);
        Ok(())
    }

    /// Runs an op that updates this parameter (its first in-place operand) and `others`: the optimizers' way in. The
    /// value's memory is reused when nobody else holds it; a tensor taken earlier keeps what it had.
    ///
    /// # Errors
    /// As [`crate::run_in_place`].
    #[track_caller]
    pub fn run_in_place(
        &self,
        op: impl Into<Op>,
        inputs: &[&Tensor],
        others: &mut [&mut Tensor],
    ) -> Result<()> {
        // No code of the caller runs while the cell is locked, so nothing can wait for itself.
        let mut slot = self.0.write();
        let mut targets: Vec<&mut Tensor> = Vec::with_capacity(1 + others.len());
        targets.push(&mut slot);
        targets.extend(others.iter_mut().map(|other| &mut **other));
        crate::run_in_place(op, inputs, &mut targets)
    }

    /// The gradient collected so far.
    pub fn grad(&self) -> Option<Tensor> {
        self.0.read().grad()
    }

    /// Replaces the gradient, or forgets it.
    ///
    /// # Errors
    /// A gradient of another shape or dtype than the value.
    #[track_caller]
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        let slot = self.0.read();
        if let Some(grad) = grad.as_ref().filter(|g| g.meta() != slot.meta()) {
            return Err(Error::shape(
                "set_grad",
                format!(
                    "gradient {} {} for a parameter {} {}",
                    grad.dtype(),
                    grad.shape(),
                    slot.dtype(),
                    slot.shape()
                ),
            ));
        }
        if let Edge::Leaf(leaf) = &slot.0.edge {
            leaf.set_grad(grad);
        }
        Ok(())
    }

    /// Forgets the gradient.
    pub fn zero_grad(&self) {
        self.0.read().zero_grad();
    }

    /// Whether backward computes its gradient.
    pub fn requires_grad(&self) -> bool {
        self.0.read().requires_grad()
    }

    /// Freezes it (`false`) or trains it again. Freezing forgets the gradient and the hooks.
    pub fn set_requires_grad(&self, requires: bool) {
        let mut slot = self.0.write();
        if slot.requires_grad() != requires {
            let edge = match requires {
                true => Edge::Leaf(Arc::new(Leaf::new())),
                false => Edge::None,
            };
            *slot = slot.with_edge(edge);
        }
    }

    /// See [`Tensor::register_hook`].
    ///
    /// # Errors
    /// When the parameter is frozen.
    #[track_caller]
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Result<()> {
        self.0.read().register_hook(hook)
    }
}

impl std::fmt::Debug for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Parameter({} {} on {})",
            self.dtype(),
            self.shape(),
            self.device()
        )
    }
}

/// A value that belongs to a module and is saved with it, but not trained: a running mean. A shared cell.
#[derive(Clone)]
pub struct Buffer(Arc<Cell>);

impl Buffer {
    /// A buffer of this value.
    pub fn new(value: Tensor) -> Buffer {
        Buffer(Cell::new(value.detach()))
    }

    /// The value now.
    pub fn value(&self) -> Tensor {
        self.0.read().clone()
    }

    /// A number that no other parameter or buffer of the process has; clones share it.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Replaces the value.
    ///
    /// # Errors
    /// Another shape or dtype.
    #[track_caller]
    pub fn set(&self, value: &Tensor) -> Result<()> {
        self.0.set("buffer", &value.detach())
    }

    /// Moves the value to `device`; nothing when it is there.
    ///
    /// # Errors
    /// When either device fails.
    pub fn to(&self, device: &Device) -> Result<()> {
        let mut slot = self.0.write();
        *slot = slot.to(device)?;
        Ok(())
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.value();
        write!(
            f,
            "Buffer({} {} on {})",
            value.dtype(),
            value.shape(),
            value.device()
        )
    }
}
