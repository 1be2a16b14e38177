//! A tensor of a pickle: which elements of which storage, checked against the archive.

use super::value::{Global, Id, Rebuild, Value, stored};
use crate::formats::bytes::{Stored, gather, reach};
use crate::formats::disk::Place;
use crate::formats::zip::Member;
use drivetrain_core::{Error, MAX_USER_DIMS, Result, Shape};

/// A strided view of a storage that is known to hold it.
#[derive(Debug)]
pub struct View<'a> {
    pub storage: &'a Member,
    pub stored: Stored,
    pub offset: usize,
    pub shape: Shape,
    pub strides: Vec<usize>,
}

impl View<'_> {
    /// Its elements out of its storage, row-major.
    pub fn copy(&self, storage: &[u8]) -> Vec<u8> {
        let size = self.stored.size();
        if self.is_contiguous() {
            let start = self.offset * size;
            return storage[start..start + self.shape.elements() * size].to_vec();
        }
        gather(storage, size, self.offset, self.shape.dims(), &self.strides)
    }

    /// The same, of a storage that nobody else needs: no copy when the view is all of it.
    pub fn take(&self, storage: Vec<u8>) -> Vec<u8> {
        let whole = self.shape.elements() * self.stored.size() == storage.len();
        if whole && self.offset == 0 && self.is_contiguous() {
            return storage;
        }
        self.copy(&storage)
    }

    fn is_contiguous(&self) -> bool {
        let expected = self.shape.strides();
        let dims = self.shape.dims().iter().zip(&self.strides).zip(expected);
        !self.shape.is_empty()
            && dims
                .into_iter()
                .all(|((&dim, &stride), expected)| dim == 1 || stride as isize == expected)
    }
}

/// A named entry of a pickle, for its messages.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub place: &'a Place,
    pub values: &'a [Value<'a>],
    pub name: &'a str,
}

impl<'a> Entry<'a> {
    /// The view that the arguments describe; `find` knows the archive's storages by key.
    #[track_caller]
    pub fn view<'m>(
        self,
        rebuild: Rebuild,
        arguments: Id,
        find: impl Fn(&str) -> Option<&'m Member>,
    ) -> Result<View<'m>> {
        let arguments = self.tuple(arguments).unwrap_or(&[]);
        let &[storage, offset, sizes, strides, ..] = arguments else {
            let count = arguments.len();
            return Err(self.wrong(format!("is made of {count} arguments, expected at least 4")));
        };
        // What follows the hooks: a dtype, and flags of lazy conjugation and negation.
        let (dtype, flags) = match rebuild {
            Rebuild::Typed => (None, arguments.get(6)),
            Rebuild::Untyped => (arguments.get(6), arguments.get(7)),
        };
        self.check_flags(flags)?;
        let (class, key, count) = self.storage(storage)?;
        let name = match (rebuild, dtype.map(|&id| self.value(id))) {
            (Rebuild::Typed, _) => class,
            (Rebuild::Untyped, Some(Value::Global(Global::DType(name)))) => name,
            _ => return Err(self.wrong("has no dtype")),
        };
        let Some(stored) = stored(name) else {
            let dtype = name.strip_suffix("Storage").unwrap_or(name);
            return Err(self.place.dtype(format!(
                "entry `{}` is of dtype {dtype}, which Drivetrain lacks",
                self.name
            )));
        };
        let unit = if class == "UntypedStorage" {
            1
        } else {
            stored.size() as u64
        };
        let member = find(key).ok_or_else(|| {
            self.wrong(format!("is in storage `{key}`, which is not in the file"))
        })?;
        // An overflow is more than any file holds.
        let bytes = count.saturating_mul(unit);
        if bytes > member.size {
            return Err(self.wrong(format!(
                "is in storage `{key}`, said to have {bytes} bytes, but {member} has {}",
                member.size
            )));
        }
        let offset = self.size(offset)?;
        let sizes = self.sizes(sizes)?;
        let strides = self.sizes(strides)?;
        if sizes.len() > MAX_USER_DIMS || sizes.len() != strides.len() {
            return Err(self.wrong(format!(
                "has {} sizes and {} strides, expected as many of each and at most {MAX_USER_DIMS}",
                sizes.len(),
                strides.len()
            )));
        }
        let shape = Shape::new(&sizes).map_err(|error| self.wrong(error.message()))?;
        let available = bytes / stored.size() as u64;
        let end = reach(offset, &sizes, &strides);
        if end.is_none_or(|end| end as u64 > available) {
            return Err(self.wrong(format!(
                "with shape {shape}, strides {strides:?} and offset {offset} reaches past its storage of {available} elements"
            )));
        }
        Ok(View {
            storage: member,
            stored,
            offset,
            shape,
            strides,
        })
    }

    // Class, key and number of elements.
    #[track_caller]
    fn storage(self, id: Id) -> Result<(&'a str, &'a str, u64)> {
        let parts = match self.value(id) {
            Value::Storage(reference) => self.tuple(*reference),
            _ => None,
        };
        if let Some(&[kind, class, key, _, count, ..]) = parts
            && let Value::Text("storage") = self.value(kind)
            && let Value::Global(Global::Storage(class)) = self.value(class)
            && let Value::Text(key) = self.value(key)
            && let Value::Int(count) = self.value(count)
            && let Ok(count) = u64::try_from(*count)
        {
            return Ok((class, key, count));
        }
        Err(self.wrong("has no storage as torch.save writes it"))
    }

    #[track_caller]
    fn check_flags(self, flags: Option<&Id>) -> Result<()> {
        let set = |&(_, value): &(Id, Id)| matches!(self.value(value), Value::Bool(true));
        if let Some(Value::Dict(flags)) = flags.map(|&id| self.value(id))
            && flags.iter().any(set)
        {
            return Err(self
                .wrong("is conjugated or negated lazily")
                .help("in Python, save tensor.resolve_conj().resolve_neg()"));
        }
        Ok(())
    }

    #[track_caller]
    fn sizes(self, id: Id) -> Result<Vec<usize>> {
        let items = match self.value(id) {
            Value::Tuple(items) | Value::List(items) if items.len() <= 2 * MAX_USER_DIMS => items,
            other => {
                return Err(self.wrong(format!("has sizes or strides of {}", other.describe())));
            }
        };
        items.iter().map(|&item| self.size(item)).collect()
    }

    #[track_caller]
    fn size(self, id: Id) -> Result<usize> {
        if let Value::Int(number) = self.value(id)
            && let Ok(size) = usize::try_from(*number)
        {
            return Ok(size);
        }
        let found = self.value(id).describe();
        Err(self.wrong(format!("has {found} for a size, stride or offset")))
    }

    fn value(self, id: Id) -> &'a Value<'a> {
        &self.values[id as usize]
    }

    fn tuple(self, id: Id) -> Option<&'a [Id]> {
        match self.value(id) {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    #[track_caller]
    fn wrong(self, what: impl std::fmt::Display) -> Error {
        self.place.format(format!("entry `{}` {what}", self.name))
    }
}
