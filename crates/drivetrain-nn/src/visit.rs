//! The walk over a module: names, visitors, and what can be visited.

use drivetrain_tensor::{Buffer, Parameter};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where in a module the walk is: `features.0.weight`.
#[derive(Clone, Debug, Default)]
pub struct Path(Vec<String>);

impl Path {
    /// The root.
    pub fn new() -> Path {
        Path::default()
    }

    /// Goes down into a field or an element.
    pub fn push(&mut self, name: impl fmt::Display) {
        self.0.push(name.to_string());
    }

    /// Comes back up.
    pub fn pop(&mut self) {
        self.0.pop();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Sees what a module holds, in the order its fields are declared.
pub trait Visitor {
    /// A trainable value.
    fn parameter(&mut self, path: &Path, parameter: &Parameter) {
        let _ = (path, parameter);
    }
    /// A value that is saved but not trained.
    fn buffer(&mut self, path: &Path, buffer: &Buffer) {
        let _ = (path, buffer);
    }
    /// A value that moves with the module but is neither saved nor trained.
    fn constant(&mut self, path: &Path, constant: &Constant) {
        let _ = (path, constant);
    }
    /// A layer's training switch.
    fn mode(&mut self, path: &Path, mode: &Mode) {
        let _ = (path, mode);
    }
}

/// What a visitor can walk over: parameters, buffers, layers, and lists of those.
///
/// A plain `Tensor` is not visited: as a field it would stay behind when the model moves. Hold it in a
/// [`Buffer`] (saved) or a [`Constant`] (not saved).
pub trait Visit {
    /// Shows what is inside to `visitor`, with names below `path`.
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor);
}

/// A value that moves with its module but is neither saved nor trained: a mask, a table of positions.
#[derive(Clone, Debug)]
pub struct Constant(Buffer);

impl Constant {
    /// A constant of this value.
    pub fn new(value: drivetrain_tensor::Tensor) -> Constant {
        Constant(Buffer::new(value))
    }

    /// The value, where the module lies now.
    pub fn value(&self) -> drivetrain_tensor::Tensor {
        self.0.value()
    }

    pub(crate) fn cell(&self) -> &Buffer {
        &self.0
    }
}

/// Whether a layer trains or evaluates: a shared switch, on at first.
#[derive(Clone, Debug)]
pub struct Mode(Arc<AtomicBool>);

impl Mode {
    /// A switch of its own, set to training.
    pub fn new() -> Mode {
        Mode(Arc::new(AtomicBool::new(true)))
    }

    /// Whether it is set to training.
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set_training(&self, training: bool) {
        self.0.store(training, Ordering::Relaxed);
    }
}

impl Default for Mode {
    fn default() -> Self {
        Mode::new()
    }
}

impl Visit for Parameter {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        visitor.parameter(path, self);
    }
}

impl Visit for Buffer {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        visitor.buffer(path, self);
    }
}

impl Visit for Constant {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        visitor.constant(path, self);
    }
}

impl Visit for Mode {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        visitor.mode(path, self);
    }
}

impl<T: Visit> Visit for [T] {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        for (i, item) in self.iter().enumerate() {
            path.push(i);
            item.visit(path, visitor);
            path.pop();
        }
    }
}

impl<T: Visit> Visit for Vec<T> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        self.as_slice().visit(path, visitor);
    }
}

impl<T: Visit, const N: usize> Visit for [T; N] {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        self.as_slice().visit(path, visitor);
    }
}

impl<T: Visit> Visit for Option<T> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        if let Some(inner) = self {
            inner.visit(path, visitor);
        }
    }
}

impl<T: Visit + ?Sized> Visit for Box<T> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        (**self).visit(path, visitor);
    }
}

impl<T: Visit + ?Sized> Visit for Arc<T> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        (**self).visit(path, visitor);
    }
}
