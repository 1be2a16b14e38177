//! From nested dicts and lists to entries with dotted names.

use super::value::{Id, Rebuild, Value};
use crate::formats::disk::Place;
use drivetrain_core::Result;

/// The deepest that dicts and lists may be nested.
pub const DEPTH_LIMIT: usize = 64;

// The most bytes that all names together may take.
const NAME_LIMIT: usize = 64 << 20;

/// What a pickle holds, in its order.
#[derive(Default)]
pub struct Entries {
    /// Names and how the tensor is made of which arguments.
    pub tensors: Vec<(String, Rebuild, Id)>,
    /// Names and descriptions of everything else.
    pub skipped: Vec<(String, String)>,
}

struct Frame {
    container: Id,
    next: usize,
    name_length: usize,
}

/// Names everything below `root`. A container that holds itself is an error; so is one that is small in the
/// pickle and, by holding others twice each, huge when written out.
#[track_caller]
pub fn flatten(place: &Place, values: &[Value], root: Id) -> Result<Entries> {
    let mut walk = Walk {
        place,
        values,
        name: String::new(),
        frames: Vec::new(),
        entries: Entries::default(),
        // Twice what a tree of these values needs.
        work_left: 2 * values.len() + 100_000,
        names_left: NAME_LIMIT,
    };
    walk.visit(root)?;
    while let Some(frame) = walk.frames.last_mut() {
        let index = frame.next;
        frame.next += 1;
        walk.name.truncate(frame.name_length);
        let child = match &values[frame.container as usize] {
            Value::Dict(items) => items.get(index).map(|&(key, value)| (Some(key), value)),
            Value::List(items) | Value::Tuple(items) => items.get(index).map(|&id| (None, id)),
            _ => None,
        };
        let Some((key, child)) = child else {
            walk.frames.pop();
            continue;
        };
        if !walk.name.is_empty() {
            walk.name.push('.');
        }
        walk.name
            .push_str(&key_name(key.map(|key| &values[key as usize]), index));
        walk.visit(child)?;
    }
    Ok(walk.entries)
}

struct Walk<'a, 'v> {
    place: &'a Place,
    values: &'a [Value<'v>],
    name: String,
    frames: Vec<Frame>,
    entries: Entries,
    work_left: usize,
    names_left: usize,
}

impl Walk<'_, '_> {
    #[track_caller]
    fn visit(&mut self, id: Id) -> Result<()> {
        self.spend(1, 0)?;
        let value = &self.values[id as usize];
        let enter = match value {
            Value::Dict(items) => !items.is_empty(),
            Value::List(items) | Value::Tuple(items) => {
                // A list of plain numbers (a history of losses) is one entry.
                self.spend(items.len(), 0)?;
                items
                    .iter()
                    .any(|&item| is_structure(&self.values[item as usize]))
            }
            _ => false,
        };
        if enter {
            return self.enter(id);
        }
        self.spend(0, self.name.len())?;
        let name = self.name.clone();
        match value {
            Value::Tensor(rebuild, arguments) => {
                self.entries.tensors.push((name, *rebuild, *arguments));
            }
            Value::Refused(what) => {
                return Err(self.place.dtype(format!(
                    "entry `{name}` is a {what}, expected a dense tensor"
                )));
            }
            other => self.entries.skipped.push((name, other.describe())),
        }
        Ok(())
    }

    #[track_caller]
    fn enter(&mut self, id: Id) -> Result<()> {
        if self.frames.iter().any(|frame| frame.container == id) {
            return Err(self
                .place
                .format(format!("entry `{}` contains itself", self.name)));
        }
        if self.frames.len() == DEPTH_LIMIT {
            return Err(self.place.format(format!(
                "entry `{}` is nested deeper than our limit of {DEPTH_LIMIT}",
                self.name
            )));
        }
        self.frames.push(Frame {
            container: id,
            next: 0,
            name_length: self.name.len(),
        });
        Ok(())
    }

    #[track_caller]
    fn spend(&mut self, work: usize, name: usize) -> Result<()> {
        let left = (
            self.work_left.checked_sub(work),
            self.names_left.checked_sub(name),
        );
        let (Some(work_left), Some(names_left)) = left else {
            return Err(self.place.format(format!(
                "its {} values expand to far more entries, at `{}`",
                self.values.len(),
                self.name
            )));
        };
        (self.work_left, self.names_left) = (work_left, names_left);
        Ok(())
    }
}

fn is_structure(value: &Value) -> bool {
    matches!(
        value,
        Value::Dict(_)
            | Value::List(_)
            | Value::Tuple(_)
            | Value::Tensor(..)
            | Value::Storage(_)
            | Value::Refused(_)
    )
}

fn key_name(key: Option<&Value>, index: usize) -> String {
    match key {
        None => index.to_string(),
        Some(Value::Text(text)) => (*text).to_owned(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(other) => format!("<{} {index}>", other.describe()),
    }
}
