//! The special ops of the format: layers with parameters, optimizers, schedules, clipping, training runs.

pub mod layers;
mod model;
pub mod optimizer;
pub mod schedule;
pub mod train;

use crate::ops::Call;
use drivetrain_core::{Error, Result};

/// `attrs.parameters`: the names of the inputs after x.
fn parameter_names(call: &Call) -> Result<Vec<String>> {
    let list = call.attrs.get("parameters").and_then(|v| v.as_array());
    let names: Option<Vec<String>> = list.and_then(|list| {
        list.iter()
            .map(|name| name.as_str().map(str::to_string))
            .collect()
    });
    names.ok_or_else(|| {
        Error::argument("conformance", format!("{}: no list of parameters", call.op))
    })
}
