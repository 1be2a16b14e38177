//! A case's arguments by name, typed, each with PyTorch's default where it is missing or null.

use drivetrain_core::{Error, Result};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The arguments of one call. It remembers which were asked for.
#[derive(Debug, Default)]
pub struct Attrs {
    values: Map<String, Value>,
    read: RefCell<BTreeSet<String>>,
}

impl Attrs {
    /// Of a JSON object.
    pub fn new(values: Map<String, Value>) -> Attrs {
        Attrs {
            values,
            read: RefCell::default(),
        }
    }

    /// The arguments that nobody asked for: when a case fails, they may be why.
    pub fn unread(&self) -> Vec<&str> {
        let read = self.read.borrow();
        let names = self.values.keys().map(String::as_str);
        names.filter(|name| !read.contains(*name)).collect()
    }

    /// The value as it stands, `None` for null or nothing.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.read.borrow_mut().insert(name.to_string());
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// Whether it stands there, be it as null.
    pub fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// A number, perhaps infinite.
    ///
    /// # Errors
    /// Something else.
    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        self.get(name)
            .map(|value| as_number(value).ok_or_else(|| refuse(name, value, "a number")))
            .transpose()
    }

    /// A number, or `default`.
    ///
    /// # Errors
    /// Something else.
    pub fn number_or(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.number(name)?.unwrap_or(default))
    }

    /// An integer.
    ///
    /// # Errors
    /// Something else.
    pub fn integer(&self, name: &str) -> Result<Option<isize>> {
        self.get(name)
            .map(|value| as_integer(value).ok_or_else(|| refuse(name, value, "an integer")))
            .transpose()
    }

    /// An integer, or `default`.
    ///
    /// # Errors
    /// Something else.
    pub fn integer_or(&self, name: &str, default: isize) -> Result<isize> {
        Ok(self.integer(name)?.unwrap_or(default))
    }

    /// A count, or `default`.
    ///
    /// # Errors
    /// Something else, or a negative number.
    pub fn count_or(&self, name: &str, default: usize) -> Result<usize> {
        match self.integer(name)? {
            None => Ok(default),
            Some(n) => usize::try_from(n).map_err(|_| negative(name, n)),
        }
    }

    /// True or false, or `default`.
    ///
    /// # Errors
    /// Something else.
    pub fn flag_or(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(value) => match as_integer(value) {
                Some(0) => Ok(false),
                Some(1) => Ok(true),
                _ => Err(refuse(name, value, "true or false")),
            },
        }
    }

    /// A text, or `default`.
    ///
    /// # Errors
    /// Something else.
    pub fn text_or<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value.as_str().ok_or_else(|| refuse(name, value, "a text")),
        }
    }

    /// Integers: one, or a list.
    ///
    /// # Errors
    /// Something else.
    pub fn integers(&self, name: &str) -> Result<Option<Vec<isize>>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let list = match value {
            Value::Array(list) => list.iter().map(as_integer).collect(),
            one => as_integer(one).map(|one| vec![one]),
        };
        list.map(Some)
            .ok_or_else(|| refuse(name, value, "an integer or a list of integers"))
    }

    /// Numbers: one, or a list.
    ///
    /// # Errors
    /// Something else.
    pub fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let list = match value {
            Value::Array(list) => list.iter().map(as_number).collect(),
            one => as_number(one).map(|one| vec![one]),
        };
        list.map(Some)
            .ok_or_else(|| refuse(name, value, "a number or a list of numbers"))
    }

    /// One size for each of `N` axes: a list, or one number for all; `None` when missing.
    ///
    /// # Errors
    /// A list of another length, something else, or a negative number.
    pub fn sizes<const N: usize>(&self, name: &str) -> Result<Option<[usize; N]>> {
        let Some(list) = self.integers(name)? else {
            return Ok(None);
        };
        let mut sizes = [0; N];
        for (i, size) in sizes.iter_mut().enumerate() {
            let given = if list.len() == 1 {
                list.first()
            } else {
                list.get(i)
            };
            let &given = given
                .filter(|_| list.len() == 1 || list.len() == N)
                .ok_or_else(|| {
                    Error::argument("conformance", format!("{name} {list:?} for {N} axes"))
                })?;
            *size = usize::try_from(given).map_err(|_| negative(name, given))?;
        }
        Ok(Some(sizes))
    }

    /// [`Attrs::sizes`], or `default` for every axis.
    ///
    /// # Errors
    /// As [`Attrs::sizes`].
    pub fn sizes_or<const N: usize>(&self, name: &str, default: usize) -> Result<[usize; N]> {
        Ok(self.sizes(name)?.unwrap_or([default; N]))
    }
}

/// A JSON number, or one of the texts that stand for the numbers that JSON lacks.
pub fn as_number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("inf" | "Infinity") => Some(f64::INFINITY),
        Some("-inf" | "-Infinity") => Some(f64::NEG_INFINITY),
        Some("nan" | "NaN") => Some(f64::NAN),
        Some(_) => None,
        None => value.as_f64(),
    }
}

/// An integer, also one written `2.0`.
pub fn as_integer(value: &Value) -> Option<isize> {
    let exact = value.as_i64().and_then(|n| isize::try_from(n).ok());
    let rounded = || {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as isize)
    };
    exact.or_else(rounded)
}

fn refuse(name: &str, value: &Value, wanted: &str) -> Error {
    Error::argument(
        "conformance",
        format!("attribute {name} is {value}, {wanted} expected"),
    )
}

fn negative(name: &str, given: isize) -> Error {
    Error::argument(
        "conformance",
        format!("attribute {name} is {given}, which is negative"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attrs(text: &str) -> Attrs {
        Attrs::new(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn missing_and_null_take_the_default() {
        let attrs = attrs(r#"{"a": null}"#);
        for name in ["a", "b"] {
            assert_eq!(attrs.number_or(name, 2.5).unwrap(), 2.5);
            assert_eq!(attrs.integers(name).unwrap(), None);
            assert_eq!(attrs.sizes_or::<2>(name, 3).unwrap(), [3, 3]);
            assert!(attrs.flag_or(name, true).unwrap());
            assert_eq!(attrs.text_or(name, "mean").unwrap(), "mean");
        }
    }

    #[test]
    fn one_number_stands_for_all_axes() {
        let attrs = attrs(r#"{"one": 2, "list": [1, 2], "bad": [1, 2, 3], "negative": -1}"#);
        assert_eq!(attrs.sizes::<2>("one").unwrap(), Some([2, 2]));
        assert_eq!(attrs.sizes::<2>("list").unwrap(), Some([1, 2]));
        assert!(attrs.sizes::<2>("bad").is_err());
        let error = attrs.sizes::<2>("negative").unwrap_err().to_string();
        assert!(error.contains("negative is -1"), "{error}");
        assert!(attrs.unread().is_empty());
    }

    #[test]
    fn numbers_may_be_texts_and_integers_may_have_a_point() {
        let attrs = attrs(r#"{"ord": "inf", "k": 2.0, "bad": 2.5, "left": 0}"#);
        assert_eq!(attrs.number("ord").unwrap(), Some(f64::INFINITY));
        assert_eq!(attrs.integer("k").unwrap(), Some(2));
        assert!(attrs.integer("bad").is_err());
        assert_eq!(attrs.unread(), ["left"]);
    }
}
