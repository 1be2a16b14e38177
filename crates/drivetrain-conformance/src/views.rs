//! The views of a case: what makes an input strided before its op.

use crate::attrs::as_integer;
use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;
use serde_json::Value;

/// One step of a chain of views: a kind and its integers.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    kind: String,
    arguments: Vec<isize>,
}

impl View {
    /// From `[kind, args…]`; arguments may also stand in one list.
    pub fn parse(value: &Value) -> Option<View> {
        let (kind, rest) = value.as_array()?.split_first()?;
        let arguments = match rest {
            [Value::Array(list)] => list.as_slice(),
            list => list,
        };
        Some(View {
            kind: kind.as_str()?.to_string(),
            arguments: arguments.iter().map(as_integer).collect::<Option<_>>()?,
        })
    }

    /// The view of a tensor.
    ///
    /// # Errors
    /// A kind that is not known, or arguments that do not fit the tensor.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        match (self.kind.as_str(), self.arguments.as_slice()) {
            ("transpose", &[a, b]) => x.transpose(a, b),
            ("narrow", &[dim, start, length]) => {
                x.narrow(dim, self.size(start)?, self.size(length)?)
            }
            ("expand", sizes) => x.expand(crate::ops::expanded_shape(x, sizes)?),
            ("flip", dims) => x.flip(dims),
            ("step", &[dim, start, end, step]) => x.slice(dim, Some(start), Some(end), step),
            ("permute", order) => x.permute(order),
            ("unsqueeze", &[dim]) => x.unsqueeze(dim),
            ("squeeze", &[dim]) => x.squeeze(dim),
            ("select", &[dim, index]) => x.select(dim, index),
            _ => Err(Error::argument(
                "conformance",
                format!("the view {} {:?} is not known", self.kind, self.arguments),
            )),
        }
    }

    fn size(&self, argument: isize) -> Result<usize> {
        usize::try_from(argument).map_err(|_| {
            Error::argument(
                "conformance",
                format!("the view {} {:?}", self.kind, self.arguments),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drivetrain_core::Device;
    use drivetrain_cpu as _;
    use serde_json::json;

    fn view(value: Value, shape: [usize; 2]) -> Result<Tensor> {
        let numbers: Vec<f64> = (0..shape[0] * shape[1]).map(|n| n as f64).collect();
        let x = Tensor::from_vec(numbers, shape, &Device::open("cpu")?)?;
        View::parse(&value).expect("a view").apply(&x)
    }

    #[test]
    fn each_kind_is_applied() {
        let numbers = |value, shape| view(value, shape).unwrap().to_f64_vec().unwrap();
        assert_eq!(
            numbers(json!(["transpose", 0, 1]), [2, 2]),
            [0., 2., 1., 3.]
        );
        assert_eq!(numbers(json!(["narrow", 1, 1, 1]), [2, 2]), [1., 3.]);
        assert_eq!(numbers(json!(["expand", 2, 2]), [1, 2]), [0., 1., 0., 1.]);
        assert_eq!(
            numbers(json!(["expand", [2, -1]]), [1, 2]),
            [0., 1., 0., 1.]
        );
        assert_eq!(numbers(json!(["flip", 0, 1]), [2, 2]), [3., 2., 1., 0.]);
        assert_eq!(numbers(json!(["step", 1, 0, 4, 2]), [1, 4]), [0., 2.]);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(View::parse(&json!("flip")).is_none());
        let error = view(json!(["spin", 1]), [1, 1]).unwrap_err().to_string();
        assert!(error.contains("spin [1]"), "{error}");
    }
}
