//! State dictionaries: named tensors in order, and loading them into a module all or nothing.

use crate::module::{Cells, Entry};
use drivetrain_core::{Device, Error, ErrorKind, Result, Shape};
use drivetrain_tensor::formats::{HostTensor, safetensors};
use drivetrain_tensor::{DType, Tensor};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Named tensors, in the order they were put in.
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    names: Vec<String>,
    values: HashMap<String, Tensor>,
}

impl StateDict {
    /// An empty one.
    pub fn new() -> StateDict {
        StateDict::default()
    }

    /// Puts a tensor in; one of the same name is replaced, in its place.
    pub fn insert(&mut self, name: impl Into<String>, value: Tensor) {
        let name = name.into();
        if self.values.insert(name.clone(), value).is_none() {
            self.names.push(name);
        }
    }

    /// Takes a tensor out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        self.names.retain(|n| n != name);
        self.values.remove(name)
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.values.get(name)
    }

    /// Names and tensors, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.names
            .iter()
            .filter_map(|name| Some((name.as_str(), self.values.get(name)?)))
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Writes a safetensors file, whole or not at all: a failure leaves an older file as it was. The same tensors give
    /// the same bytes.
    ///
    /// # Errors
    /// When a device or the disk fails.
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        let host = self
            .iter()
            .map(|(name, value)| Ok((name.to_string(), HostTensor::from_tensor(value)?)));
        safetensors::write(path, host.collect::<Result<Vec<_>>>()?, &BTreeMap::new())
    }

    /// Reads a safetensors file onto `device`, whatever device it was saved from. For PyTorch's `.pt` see
    /// [`drivetrain_tensor::formats`].
    ///
    /// # Errors
    /// When the file is not there, is damaged, or holds what tensors cannot.
    pub fn load(path: impl AsRef<std::path::Path>, device: &Device) -> Result<StateDict> {
        let file = safetensors::read(path)?;
        file.tensors
            .iter()
            .map(|(name, value)| Ok((name.as_str(), value.to_tensor(device)?)))
            .collect()
    }

    /// All tensors on `device`.
    ///
    /// # Errors
    /// When a device fails.
    pub fn to(&self, device: &Device) -> Result<StateDict> {
        let mut moved = StateDict::new();
        for (name, value) in self.iter() {
            moved.insert(name, value.to(device)?);
        }
        Ok(moved)
    }
}

impl<S: Into<String>> FromIterator<(S, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (S, Tensor)>>(entries: I) -> Self {
        let mut state = StateDict::new();
        entries
            .into_iter()
            .for_each(|(name, value)| state.insert(name, value));
        state
    }
}

/// What did not fit when a state dictionary was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// In the module but not in the dictionary.
    pub missing: Vec<String>,
    /// In the dictionary but not in the module.
    pub unexpected: Vec<String>,
    /// In both, with another shape: name, the module's, the dictionary's.
    pub mismatched: Vec<(String, Shape, Shape)>,
}

impl LoadReport {
    /// Whether everything fitted.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.mismatched.is_empty()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes = |(name, want, got): &(String, Shape, Shape)| {
            format!("{name} (module {want}, file {got})")
        };
        let parts = [
            ("missing", self.missing.join(", ")),
            ("unexpected", self.unexpected.join(", ")),
            (
                "shapes differ",
                self.mismatched
                    .iter()
                    .map(shapes)
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(what, list)| format!("{what}: {list}"))
            .collect();
        f.write_str(&parts.join("; "))
    }
}

/// Loads into the cells what fits. Values are converted before any cell changes.
pub(crate) fn load(cells: &Cells, state: &StateDict, strict: bool) -> Result<LoadReport> {
    let mut report = LoadReport::default();
    let mut known: Vec<&str> = Vec::new();
    let mut ready: Vec<(&Entry, Tensor)> = Vec::new();
    for entry in &cells.order {
        let (name, current) = match entry {
            Entry::Parameter(i) => (&cells.parameters[*i].0, cells.parameters[*i].1.value()),
            Entry::Buffer(i) => (&cells.buffers[*i].0, cells.buffers[*i].1.value()),
        };
        known.push(name);
        match state.get(name) {
            None => report.missing.push(name.clone()),
            Some(value) if value.shape() != current.shape() => {
                report
                    .mismatched
                    .push((name.clone(), *current.shape(), *value.shape()));
            }
            Some(value) => ready.push((
                entry,
                like(value, current.dtype(), current.device())
                    .map_err(|e| e.context(name.as_str()))?,
            )),
        }
    }
    let expected: std::collections::HashSet<&str> = known.into_iter().collect();
    report.unexpected = state
        .names()
        .iter()
        .filter(|n| !expected.contains(n.as_str()))
        .cloned()
        .collect();
    if strict && !report.is_empty() {
        return Err(
            Error::new(ErrorKind::Shape, "load_state_dict", report.to_string())
                .help("nothing was loaded; load_state_dict_partial takes what fits"),
        );
    }
    for (entry, value) in ready {
        match entry {
            Entry::Parameter(i) => cells.parameters[*i].1.set(&value)?,
            Entry::Buffer(i) => cells.buffers[*i].1.set(&value)?,
        }
    }
    Ok(report)
}

/// A copy of a value in the dtype and on the device of the cell it goes into.
fn like(value: &Tensor, dtype: DType, device: &Device) -> Result<Tensor> {
    value.detach().to(device)?.to_dtype(dtype)?.contiguous()
}
