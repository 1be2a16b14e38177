//! A set of cases: `cases.json` and `data.safetensors`, read and checked.

use crate::attrs::Attrs;
use crate::json;
use crate::values::{self, HostTensor};
use crate::views::View;
use drivetrain_core::{Error, Result};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

const CASES: &str = "cases.json";
const DATA: &str = "data.safetensors";

/// Cases with their numbers.
pub struct Suite {
    /// In the order of the file.
    pub cases: Vec<Case>,
    values: HashMap<String, HostTensor>,
}

/// One case: an op, its arguments, and what must come of it. `cases/FORMAT.md` explains the parts.
#[derive(Debug)]
pub struct Case {
    /// Its name, unique in the set.
    pub id: String,
    /// The operation, by PyTorch's name.
    pub op: String,
    pub(crate) attrs: Attrs,
    pub(crate) inputs: Vec<String>,
    pub(crate) views: BTreeMap<usize, Vec<View>>,
    pub(crate) outputs: Vec<String>,
    pub(crate) cotangents: BTreeMap<usize, String>,
    pub(crate) grads: Vec<Option<String>>,
    pub(crate) weights: BTreeMap<String, String>,
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
    /// What the message of the error must hold, when one is wanted.
    pub(crate) error: Option<Vec<String>>,
}

impl Suite {
    /// The set that this crate carries.
    ///
    /// # Errors
    /// None in a build whose tests pass.
    pub fn embedded() -> Result<Suite> {
        let cases = include_str!("../cases/cases.json");
        Suite::parse(cases, include_bytes!("../cases/data.safetensors"))
    }

    /// The set in a folder.
    ///
    /// # Errors
    /// Files that are not there or do not fit the format; names the file and the case.
    pub fn read(folder: &Path) -> Result<Suite> {
        let path = |name: &str| folder.join(name);
        let fail = |name: &str, cause| Error::io("conformance", path(name).display(), cause);
        let cases = std::fs::read_to_string(path(CASES)).map_err(|e| fail(CASES, e))?;
        let data = std::fs::read(path(DATA)).map_err(|e| fail(DATA, e))?;
        Suite::parse(&cases, &data).map_err(|e| e.context(folder.display().to_string()))
    }

    /// The set in the contents of its two files.
    ///
    /// # Errors
    /// Contents that do not fit the format.
    pub fn parse(cases: &str, data: &[u8]) -> Result<Suite> {
        let document = json::parse(CASES, cases)?;
        let refuse = |why: String| Error::format("conformance", format!("{CASES}: {why}"));
        if document.get("version").and_then(Value::as_u64) != Some(1) {
            let version = document.get("version").unwrap_or(&Value::Null);
            return Err(refuse(format!("version {version}, 1 expected")));
        }
        let Some(list) = document.get("cases").and_then(Value::as_array) else {
            return Err(refuse("no list of cases".into()));
        };
        let values = values::read(DATA, data)?;
        let mut suite = Suite {
            cases: Vec::with_capacity(list.len()),
            values,
        };
        for (index, entry) in list.iter().enumerate() {
            let id = entry.get("id").and_then(Value::as_str);
            let case = parse_case(entry, &suite.values).map_err(|why| {
                refuse(match id {
                    Some(id) => format!("case {id}: {why}"),
                    None => format!("case number {index}: {why}"),
                })
            })?;
            suite.cases.push(case);
        }
        Ok(suite)
    }

    /// The numbers of this name.
    pub(crate) fn value(&self, name: &str) -> Result<&HostTensor> {
        let value = self.values.get(name);
        value.ok_or_else(|| Error::format("conformance", format!("{DATA}: no tensor {name:?}")))
    }
}

type Parsed<T> = std::result::Result<T, String>;

fn parse_case(entry: &Value, values: &HashMap<String, HostTensor>) -> Parsed<Case> {
    let object = entry.as_object().ok_or("not an object")?;
    let text = |key: &str| {
        let value = object.get(key).and_then(Value::as_str);
        value.map(str::to_string).ok_or(format!("no {key}"))
    };
    let number = |key: &str, default: f64| match object.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value.as_f64().ok_or(format!("{key} is {value}")),
    };
    let case = Case {
        id: text("id")?,
        op: text("op")?,
        attrs: Attrs::new(map(object, "attrs")?),
        inputs: names(object, "inputs")?.unwrap_or_default(),
        views: by_index(object, "views", |value| {
            value.as_array()?.iter().map(View::parse).collect()
        })?,
        outputs: names(object, "outputs")?.unwrap_or_default(),
        cotangents: by_index(object, "cotangents", |v| v.as_str().map(str::to_string))?,
        grads: optional_names(object, "grads")?.unwrap_or_default(),
        weights: map(object, "weights")?
            .into_iter()
            .map(|(key, value)| match value.as_str() {
                Some(name) => Ok((key, name.to_string())),
                None => Err(format!("weight {key} is {value}")),
            })
            .collect::<Parsed<_>>()?,
        rtol: number("rtol", 1e-4)?,
        atol: number("atol", 1e-5)?,
        error: names(object, "error")?,
    };
    check(&case, values)?;
    Ok(case)
}

/// The parts of a case belong together, and the tensors they name are there.
fn check(case: &Case, values: &HashMap<String, HostTensor>) -> Parsed<()> {
    let named = case
        .inputs
        .iter()
        .chain(&case.outputs)
        .chain(case.cotangents.values())
        .chain(case.grads.iter().flatten())
        .chain(case.weights.values());
    for name in named {
        if !values.contains_key(name) {
            return Err(format!("{DATA} has no tensor {name:?}"));
        }
    }
    if case.outputs.is_empty() == case.error.is_none() {
        return Err("either outputs or an error is wanted".into());
    }
    if case.error.is_none() && case.cotangents.is_empty() != case.grads.is_empty() {
        return Err("cotangents and grads go together".into());
    }
    let (inputs, outputs) = (case.inputs.len(), case.outputs.len());
    if !case.grads.is_empty() && case.grads.len() != inputs {
        return Err(format!("{} grads for {inputs} inputs", case.grads.len()));
    }
    if let Some(index) = case.views.keys().find(|&&index| index >= inputs) {
        return Err(format!("views of input {index} of {inputs}"));
    }
    if let Some(index) = case.cotangents.keys().find(|&&index| index >= outputs) {
        return Err(format!("a cotangent of output {index} of {outputs}"));
    }
    Ok(())
}

fn map(object: &Map<String, Value>, key: &str) -> Parsed<Map<String, Value>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(other) => Err(format!("{key} is {other}")),
    }
}

fn optional_names(object: &Map<String, Value>, key: &str) -> Parsed<Option<Vec<Option<String>>>> {
    let value = match object.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let list = value.as_array().ok_or(format!("{key} is {value}"))?;
    let name = |value: &Value| match value {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        other => Err(format!("{key} holds {other}")),
    };
    list.iter().map(name).collect::<Parsed<_>>().map(Some)
}

fn names(object: &Map<String, Value>, key: &str) -> Parsed<Option<Vec<String>>> {
    let Some(list) = optional_names(object, key)? else {
        return Ok(None);
    };
    let names: Option<Vec<String>> = list.into_iter().collect();
    names.map(Some).ok_or(format!("{key} holds null"))
}

fn by_index<T>(
    object: &Map<String, Value>,
    key: &str,
    parse: impl Fn(&Value) -> Option<T>,
) -> Parsed<BTreeMap<usize, T>> {
    let entry = |(index, value): (String, Value)| {
        let parsed = index.parse().ok().zip(parse(&value));
        parsed.ok_or(format!("{key} {index}: {value}"))
    };
    map(object, key)?.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &[u8] = b"\x02\0\0\0\0\0\0\0{}";

    #[test]
    fn the_embedded_set_is_whole() {
        let suite = Suite::embedded().unwrap();
        assert_eq!(suite.cases.len(), 346);
        let ids: std::collections::BTreeSet<_> = suite.cases.iter().map(|c| &c.id).collect();
        assert_eq!(ids.len(), suite.cases.len());
    }

    #[test]
    fn faults_name_the_case() {
        for (case, wanted) in [
            (r#"{"op": "neg"}"#, "case number 0: no id"),
            (
                r#"{"id": "neg.0", "op": "neg"}"#,
                "case neg.0: either outputs",
            ),
            (
                r#"{"id": "neg.0", "op": "neg", "inputs": ["x"], "error": ["e"]}"#,
                "case neg.0: data.safetensors has no tensor \"x\"",
            ),
            (
                r#"{"id": "neg.0", "op": "neg", "views": {"0": [["flip", 0]]}, "error": ["e"]}"#,
                "views of input 0 of 0",
            ),
            (
                r#"{"id": "neg.0", "op": "neg", "views": {"0": 3}, "error": ["e"]}"#,
                "views 0: 3",
            ),
        ] {
            let text = format!(r#"{{"version": 1, "cases": [{case}]}}"#);
            let error = Suite::parse(&text, EMPTY).err().expect(case).to_string();
            assert!(error.contains(wanted), "{error}");
        }
        for text in ["[]", r#"{"version": 2, "cases": []}"#, r#"{"version": 1}"#] {
            assert!(Suite::parse(text, EMPTY).is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Suite::read(Path::new("/nowhere")).err().unwrap();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }
}
