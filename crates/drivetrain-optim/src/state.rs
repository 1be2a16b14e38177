//! An optimizer's state as data: numbers and tensors by name, for checkpoints.

use crate::core::{Core, Slot};
use drivetrain_core::{Error, ErrorKind, Result};
use drivetrain_tensor::Tensor;
use std::collections::HashMap;

/// Rates, step counts and moments. Names: `group.0.learning_rate`, `state.3.step`, `state.3.exp_avg`, where 3 is the
/// parameter's number, counted through the groups.
#[derive(Clone, Default)]
pub struct OptimizerState {
    /// Numbers by name.
    pub numbers: Vec<(String, f64)>,
    /// Tensors by name.
    pub tensors: Vec<(String, Tensor)>,
}

impl OptimizerState {
    pub(crate) fn of(core: &Core) -> OptimizerState {
        let mut state = OptimizerState::default();
        let sizes = core.groups.iter().map(|group| group.parameters.len());
        for (g, (group, size)) in core.groups.iter().zip(sizes).enumerate() {
            state
                .numbers
                .push((format!("group.{g}.learning_rate"), group.learning_rate));
            state
                .numbers
                .push((format!("group.{g}.parameters"), size as f64));
        }
        for (i, parameter) in core.parameters().enumerate() {
            let Some(slot) = core.slots.get(&parameter.id()) else {
                continue;
            };
            state
                .numbers
                .push((format!("state.{i}.step"), slot.step as f64));
            for (name, value) in &slot.numbers {
                state.numbers.push((format!("state.{i}.{name}"), *value));
            }
            for (name, tensor) in &slot.tensors {
                state
                    .tensors
                    .push((format!("state.{i}.{name}"), tensor.clone()));
            }
        }
        state
    }

    pub(crate) fn load_into(&self, core: &mut Core) -> Result<()> {
        let refuse = |message: String| {
            Error::new(ErrorKind::State, "load_state_dict", message).help("nothing was loaded")
        };
        let numbers: HashMap<&str, f64> = self
            .numbers
            .iter()
            .map(|(name, v)| (name.as_str(), *v))
            .collect();
        let mut rates = Vec::new();
        for (g, group) in core.groups.iter().enumerate() {
            let number = |what: &str| numbers.get(format!("group.{g}.{what}").as_str()).copied();
            let (Some(rate), Some(count)) = (number("learning_rate"), number("parameters")) else {
                return Err(refuse(format!(
                    "the state has no group {g}, the optimizer has {}",
                    core.groups.len()
                )));
            };
            if count != group.parameters.len() as f64 {
                return Err(refuse(format!(
                    "group {g} has {} parameters, the state {count}",
                    group.parameters.len()
                )));
            }
            rates.push(rate);
        }
        if numbers.contains_key(format!("group.{}.learning_rate", core.groups.len()).as_str()) {
            return Err(refuse(format!(
                "the state has more groups than the optimizer's {}",
                core.groups.len()
            )));
        }
        let parameters: Vec<_> = core.parameters().cloned().collect();
        let mut slots: HashMap<usize, Slot> = HashMap::new();
        for (name, value) in &self.numbers {
            if let Some((i, rest)) = slot_name(name) {
                let slot = slots.entry(i).or_default();
                match rest {
                    "step" => slot.step = *value as u64,
                    other => *slot.number(other, 0.0) = *value,
                }
            }
        }
        for (name, tensor) in &self.tensors {
            let Some((i, rest)) = slot_name(name) else {
                return Err(refuse(format!("{name} is no name of a state tensor")));
            };
            let Some(parameter) = parameters.get(i) else {
                return Err(refuse(format!(
                    "{name} belongs to parameter {i}, the optimizer has {}",
                    parameters.len()
                )));
            };
            if *tensor.shape() != parameter.shape() {
                return Err(refuse(format!(
                    "{name} has shape {}, its parameter {}",
                    tensor.shape(),
                    parameter.shape()
                )));
            }
            let tensor = tensor
                .detach()
                .to(&parameter.device())?
                .to_dtype(parameter.dtype())?;
            slots
                .entry(i)
                .or_default()
                .tensors
                .insert(rest.to_string(), tensor);
        }
        for (group, rate) in core.groups.iter_mut().zip(rates) {
            group.learning_rate = rate;
        }
        let by_id = slots
            .into_iter()
            .filter_map(|(i, slot)| Some((parameters.get(i)?.id(), slot)));
        core.slots = by_id.collect();
        Ok(())
    }
}

/// Parameter number and rest of a name `state.3.exp_avg`.
fn slot_name(name: &str) -> Option<(usize, &str)> {
    let (i, rest) = name.strip_prefix("state.")?.split_once('.')?;
    Some((i.parse().ok()?, rest))
}
