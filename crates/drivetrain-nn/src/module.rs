//! The module: everything that holds parameters, with what can be done to all of them at once.

use crate::visit::{Constant, Mode, Path, Visit, Visitor};
use crate::{LoadReport, StateDict};
use drivetrain_core::{Device, Result};
use drivetrain_tensor::{Buffer, Parameter, Tensor};
use std::collections::HashSet;

/// Something with parameters. Implemented by `#[derive(Module)]`; every method is provided.
///
/// ```
/// # use drivetrain_cpu as _;
/// use drivetrain_nn::{Layer, Linear, Module};
/// use drivetrain_tensor::{Device, Result, Tensor};
///
/// #[derive(Module)]
/// struct Mlp {
///     hidden: Linear,
///     output: Linear,
/// }
///
/// impl Layer for Mlp {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.output.forward(&self.hidden.forward(x)?.relu()?)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let device = Device::open("cpu")?;
/// let mlp = Mlp { hidden: Linear::new(4, 8, &device)?, output: Linear::new(8, 2, &device)? };
/// let names: Vec<String> = mlp.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.weight", "hidden.bias", "output.weight", "output.bias"]);
/// # Ok(()) }
/// ```
pub trait Module: Visit + Send + Sync {
    /// The parameters, each once (tied ones under their first name), in the order of the fields.
    fn parameters(&self) -> Vec<Parameter> {
        self.named_parameters()
            .into_iter()
            .map(|(_, parameter)| parameter)
            .collect()
    }

    /// The parameters with their names.
    fn named_parameters(&self) -> Vec<(String, Parameter)> {
        let mut seen = HashSet::new();
        let mut all = collect(self).parameters;
        all.retain(|(_, parameter)| seen.insert(parameter.id()));
        all
    }

    /// The buffers with their names, each once.
    fn named_buffers(&self) -> Vec<(String, Buffer)> {
        let mut seen = HashSet::new();
        let mut all = collect(self).buffers;
        all.retain(|(_, buffer)| seen.insert(buffer.id()));
        all
    }

    /// The buffers, each once.
    fn buffers(&self) -> Vec<Buffer> {
        self.named_buffers()
            .into_iter()
            .map(|(_, buffer)| buffer)
            .collect()
    }

    /// Number of trainable elements.
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(|p| p.shape().elements()).sum()
    }

    /// Moves parameters with their gradients, buffers and constants to `device`. What is there already stays.
    /// An optimizer made before stays right: it holds the same cells.
    ///
    /// # Errors
    /// When a device fails or is full; what was moved is then moved back.
    fn to(&self, device: &Device) -> Result<()> {
        let cells = collect(self);
        let home = cells.parameters.first().map(|(_, p)| p.device());
        let result = cells.move_to(device);
        if let (Err(_), Some(home)) = (&result, home) {
            // As well as it can be done; the first error is the one to tell.
            let _ = cells.move_to(&home);
        }
        result
    }

    /// Sets every layer to training: dropout drops, batch norm uses the batch.
    fn train(&self) {
        self.set_training(true);
    }

    /// Sets every layer to evaluation.
    fn eval(&self) {
        self.set_training(false);
    }

    /// The training switches of all layers that have one.
    fn modes(&self) -> Vec<Mode> {
        collect(self).modes
    }

    /// Sets every layer's mode.
    fn set_training(&self, training: bool) {
        collect(self)
            .modes
            .iter()
            .for_each(|mode| mode.set_training(training));
    }

    /// Forgets all gradients.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Parameter::zero_grad);
    }

    /// Freezes all parameters (`false`) or trains them again.
    fn requires_grad_(&self, requires: bool) {
        self.parameters()
            .iter()
            .for_each(|p| p.set_requires_grad(requires));
    }

    /// All parameters and buffers by name, as they are now: later steps do not change it. Tied parameters appear
    /// under each of their names.
    fn state_dict(&self) -> StateDict {
        let cells = collect(self);
        let mut state = StateDict::new();
        for entry in cells.order {
            match entry {
                Entry::Parameter(i) => {
                    let (name, parameter) = &cells.parameters[i];
                    state.insert(name.clone(), parameter.value().detach());
                }
                Entry::Buffer(i) => {
                    let (name, buffer) = &cells.buffers[i];
                    state.insert(name.clone(), buffer.value());
                }
            }
        }
        state
    }

    /// Puts saved values in, each in the dtype and on the device that the parameter has.
    ///
    /// # Errors
    /// Names that are missing, unexpected or of another shape: all of them in one error, and nothing is changed.
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        crate::state_dict::load(&collect(self), state, true).map(|_| ())
    }

    /// Puts in what fits and reports the rest.
    ///
    /// # Errors
    /// When a device fails.
    fn load_state_dict_partial(&self, state: &StateDict) -> Result<LoadReport> {
        crate::state_dict::load(&collect(self), state, false)
    }
}

/// A module of one tensor in, one tensor out.
pub trait Layer: Module {
    /// The result for this input.
    ///
    /// # Errors
    /// An input that does not fit, or a device that fails.
    fn forward(&self, input: &Tensor) -> Result<Tensor>;
}

impl Module for Box<dyn Layer> {}

impl Layer for Box<dyn Layer> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (**self).forward(input)
    }
}

pub(crate) enum Entry {
    Parameter(usize),
    Buffer(usize),
}

/// Everything a module holds, under every name it has.
#[derive(Default)]
pub(crate) struct Cells {
    pub(crate) parameters: Vec<(String, Parameter)>,
    pub(crate) buffers: Vec<(String, Buffer)>,
    constants: Vec<Constant>,
    modes: Vec<Mode>,
    pub(crate) order: Vec<Entry>,
}

impl Visitor for Cells {
    fn parameter(&mut self, path: &Path, parameter: &Parameter) {
        self.order.push(Entry::Parameter(self.parameters.len()));
        self.parameters.push((path.to_string(), parameter.clone()));
    }
    fn buffer(&mut self, path: &Path, buffer: &Buffer) {
        self.order.push(Entry::Buffer(self.buffers.len()));
        self.buffers.push((path.to_string(), buffer.clone()));
    }
    fn constant(&mut self, _: &Path, constant: &Constant) {
        self.constants.push(constant.clone());
    }
    fn mode(&mut self, _: &Path, mode: &Mode) {
        self.modes.push(mode.clone());
    }
}

impl Cells {
    fn move_to(&self, device: &Device) -> Result<()> {
        for (name, parameter) in &self.parameters {
            parameter.to(device).map_err(|e| e.context(name.as_str()))?;
        }
        for (name, buffer) in &self.buffers {
            buffer.to(device).map_err(|e| e.context(name.as_str()))?;
        }
        self.constants
            .iter()
            .try_for_each(|constant| constant.cell().to(device))
    }
}

pub(crate) fn collect<M: Visit + ?Sized>(module: &M) -> Cells {
    let mut cells = Cells::default();
    module.visit(&mut Path::new(), &mut cells);
    cells
}
