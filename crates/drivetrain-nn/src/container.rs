//! Layers made of layers, and the small ones that hold nothing.

use crate::{Layer, Module, Path, Visit, Visitor};
use drivetrain_core::Result;
use drivetrain_tensor::Tensor;

/// Layers one after the other. Their names are their numbers: `0.weight`.
///
/// ```
/// # use drivetrain_cpu as _;
/// # use drivetrain_nn::{Layer, Linear, Module, Relu, Sequential};
/// # use drivetrain_tensor::Device;
/// let device = Device::open("cpu")?;
/// let model = Sequential::new().add(Linear::new(4, 8, &device)?).add(Relu).add(Linear::new(8, 2, &device)?);
/// assert_eq!(model.num_parameters(), 4 * 8 + 8 + 8 * 2 + 2);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
}

impl Sequential {
    /// None yet: gives its input back.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// With one more layer at the end.
    #[must_use]
    #[allow(clippy::should_implement_trait)]
    pub fn add(mut self, layer: impl Layer + 'static) -> Sequential {
        self.push(layer);
        self
    }

    /// Puts one more layer at the end.
    pub fn push(&mut self, layer: impl Layer + 'static) {
        self.layers.push(Box::new(layer));
    }

    /// The layers.
    pub fn layers(&self) -> &[Box<dyn Layer>] {
        &self.layers
    }
}

impl Visit for Sequential {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        self.layers.visit(path, visitor);
    }
}

impl Module for Sequential {}

impl Layer for Sequential {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut x = input.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer
                .forward(&x)
                .map_err(|e| e.context(format!("layer {i}")))?;
        }
        Ok(x)
    }
}

/// Dimensions from `start` to `end` merged; the default keeps the first, the batch.
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    /// First dimension merged.
    pub start: isize,
    /// Last dimension merged.
    pub end: isize,
}

impl Default for Flatten {
    fn default() -> Self {
        Flatten { start: 1, end: -1 }
    }
}

impl Visit for Flatten {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}
impl Module for Flatten {}
impl Layer for Flatten {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.flatten(self.start, self.end)
    }
}

/// Gives its input back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl Visit for Identity {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}
impl Module for Identity {}
impl Layer for Identity {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(input.clone())
    }
}

/// A function of tensors as a layer.
pub struct Function<F>(pub F);

impl<F> Visit for Function<F> {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}
impl<F: Send + Sync> Module for Function<F> {}
impl<F: Fn(&Tensor) -> Result<Tensor> + Send + Sync> Layer for Function<F> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (self.0)(input)
    }
}
