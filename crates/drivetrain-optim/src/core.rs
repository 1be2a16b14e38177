//! What all optimizers share: parameter groups, per-parameter state, stepping, moving.

use crate::algorithm::Algorithm;
use crate::state::OptimizerState;
use drivetrain_core::{Device, Error, Result};
use drivetrain_tensor::{Parameter, Tensor, no_grad};
use std::collections::{BTreeMap, HashMap};

/// Parameters that are updated with the same rate and settings.
#[derive(Clone, Debug)]
pub struct ParameterGroup {
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// The learning rate.
    pub learning_rate: f64,
    /// The rule and its settings.
    pub algorithm: Algorithm,
}

/// What is kept of one parameter between steps.
#[derive(Clone, Default)]
pub(crate) struct Slot {
    pub(crate) step: u64,
    pub(crate) tensors: BTreeMap<String, Tensor>,
    pub(crate) numbers: BTreeMap<String, f64>,
}

impl Slot {
    /// The tensors of these names, zeros like `value` at first.
    pub(crate) fn tensors<const N: usize>(
        &mut self,
        names: [&str; N],
        value: &Tensor,
    ) -> Result<[&mut Tensor; N]> {
        for name in names {
            if !self.tensors.contains_key(name) {
                self.tensors
                    .insert(name.to_string(), value.detach().zeros_like()?);
            }
        }
        let mut found: Vec<Option<&mut Tensor>> = names.iter().map(|_| None).collect();
        for (key, tensor) in &mut self.tensors {
            if let Some(i) = names.iter().position(|name| name == key) {
                found[i] = Some(tensor);
            }
        }
        let all: Option<Vec<&mut Tensor>> = found.into_iter().collect();
        all.and_then(|list| list.try_into().ok())
            .ok_or_else(|| Error::state("optimizer", format!("state {names:?} is incomplete")))
    }

    /// A number of this name.
    pub(crate) fn number(&mut self, name: &str, first: f64) -> &mut f64 {
        self.numbers.entry(name.to_string()).or_insert(first)
    }
}

/// What every optimizer does.
pub trait Optimizer: Send {
    /// Updates every parameter that has a gradient; the others, and their state, stay as they are.
    ///
    /// # Errors
    /// A gradient on another device than its parameter, or a device that fails.
    fn step(&mut self) -> Result<()>;

    /// Forgets the gradients of all parameters.
    fn zero_grad(&self);

    /// Moves the optimizer's own state to `device` (the parameters are moved by the model's `to`). PyTorch has no
    /// such call. State that is left behind is also moved by the next `step`, to where its parameter lies.
    ///
    /// # Errors
    /// When a device fails.
    fn to(&mut self, device: &Device) -> Result<()>;

    /// The parameter groups.
    fn groups(&self) -> &[ParameterGroup];

    /// The parameter groups, to change rates and settings.
    fn groups_mut(&mut self) -> &mut [ParameterGroup];

    /// Adds a group of parameters with a rate of its own and the settings of the first group.
    ///
    /// # Errors
    /// A parameter that is in a group already.
    fn add_group(&mut self, parameters: Vec<Parameter>, learning_rate: f64) -> Result<()>;

    /// The rate of the first group.
    fn learning_rate(&self) -> f64 {
        self.groups()
            .first()
            .map_or(0.0, |group| group.learning_rate)
    }

    /// Sets the rate of all groups.
    fn set_learning_rate(&mut self, rate: f64) {
        self.groups_mut()
            .iter_mut()
            .for_each(|group| group.learning_rate = rate);
    }

    /// Everything needed to go on later: rates, step counts, moments.
    fn state_dict(&self) -> OptimizerState;

    /// Puts a saved state in. Tensors go to where their parameters lie.
    ///
    /// # Errors
    /// Another number of groups or parameters, or shapes that differ; nothing is changed then.
    fn load_state_dict(&mut self, state: &OptimizerState) -> Result<()>;
}

/// The machinery behind the named optimizers.
pub(crate) struct Core {
    pub(crate) groups: Vec<ParameterGroup>,
    pub(crate) slots: HashMap<u64, Slot>,
}

impl Core {
    pub(crate) fn new(
        parameters: Vec<Parameter>,
        learning_rate: f64,
        algorithm: Algorithm,
    ) -> Core {
        Core {
            groups: vec![ParameterGroup {
                parameters,
                learning_rate,
                algorithm,
            }],
            slots: HashMap::new(),
        }
    }

    pub(crate) fn step(&mut self) -> Result<()> {
        for group in &self.groups {
            group.algorithm.check()?;
            if !group.learning_rate.is_finite() || group.learning_rate < 0.0 {
                return Err(Error::argument(
                    group.algorithm.name(),
                    format!("learning rate {} is not at least 0", group.learning_rate),
                ));
            }
            for parameter in &group.parameters {
                let Some(grad) = parameter.grad() else {
                    continue;
                };
                let slot = self.slots.entry(parameter.id()).or_default();
                let device = parameter.device();
                for tensor in slot.tensors.values_mut() {
                    *tensor = tensor.to(&device)?;
                }
                let grad = grad.detach();
                // A step that fails is not counted: repeated, it goes on from where it was.
                let numbers = slot.numbers.clone();
                slot.step += 1;
                let (algorithm, rate) = (&group.algorithm, group.learning_rate);
                no_grad(|| algorithm.step(rate, parameter, &grad, slot)).map_err(|e| {
                    slot.step -= 1;
                    slot.numbers = numbers;
                    e.context(format!("{} step", algorithm.name()))
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn zero_grad(&self) {
        self.parameters().for_each(Parameter::zero_grad);
    }

    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.groups.iter().flat_map(|group| &group.parameters)
    }

    pub(crate) fn to(&mut self, device: &Device) -> Result<()> {
        for tensor in self
            .slots
            .values_mut()
            .flat_map(|slot| slot.tensors.values_mut())
        {
            *tensor = tensor.to(device)?;
        }
        Ok(())
    }

    pub(crate) fn add_group(
        &mut self,
        parameters: Vec<Parameter>,
        learning_rate: f64,
    ) -> Result<()> {
        if let Some(twice) = parameters
            .iter()
            .find(|p| self.parameters().any(|q| q.id() == p.id()))
        {
            return Err(Error::argument(
                "add_group",
                format!("{twice:?} is in a group already"),
            ));
        }
        let Some(algorithm) = self.groups.first().map(|group| group.algorithm) else {
            return Err(Error::state(
                "add_group",
                "the optimizer has no group to take settings from",
            ));
        };
        self.groups.push(ParameterGroup {
            parameters,
            learning_rate,
            algorithm,
        });
        Ok(())
    }
}
