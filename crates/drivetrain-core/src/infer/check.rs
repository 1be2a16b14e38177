//! What all rules of inference share: operand counts, dtypes, dimensions and how refusals read.

use super::Outputs;
use crate::backend::Meta;
use crate::{DType, Error, Result, Shape};

/// An op's name and operands while it is inferred.
pub(super) struct Call<'a> {
    /// The op's name for messages.
    pub name: &'static str,
    /// Its inputs.
    pub inputs: &'a [Meta],
    /// Its in-place operands.
    pub in_place: &'a [Meta],
}

impl Call<'_> {
    /// Checks that there are exactly `count` inputs.
    #[track_caller]
    pub fn operands(&self, count: usize) -> Result<()> {
        if self.inputs.len() != count {
            return Err(self.argument(format!("{} inputs, {count} expected", self.inputs.len())));
        }
        Ok(())
    }

    /// A shape error of this op.
    #[track_caller]
    pub fn bad_shape(&self, message: String) -> Error {
        Error::shape(self.name, message)
    }

    /// A dtype error of this op.
    #[track_caller]
    pub fn bad_dtype(&self, message: String) -> Error {
        Error::dtype(self.name, message)
    }

    /// An argument error of this op.
    #[track_caller]
    pub fn argument(&self, message: String) -> Error {
        Error::argument(self.name, message)
    }

    /// Checks that input `i`, called `label`, has this dtype.
    #[track_caller]
    pub fn dtype(&self, i: usize, label: &str, wanted: DType) -> Result<()> {
        let got = self.inputs[i].dtype;
        if got != wanted {
            let error = self.bad_dtype(format!("{label} is {got}, {wanted} expected"));
            return Err(error.help(format!("cast {label} to {wanted}")));
        }
        Ok(())
    }

    /// Checks that input `i`, called `label`, is a float, and gives its dtype.
    #[track_caller]
    pub fn float(&self, i: usize, label: &str) -> Result<DType> {
        let dtype = self.inputs[i].dtype;
        if !dtype.is_float() {
            return Err(self
                .bad_dtype(format!("{label} is {dtype}, a float expected"))
                .help(format!("cast {label} to F32 first")));
        }
        Ok(dtype)
    }

    /// Checks that input `i`, called `label`, has this shape.
    #[track_caller]
    pub fn shape(&self, i: usize, label: &str, wanted: &[usize]) -> Result<()> {
        let got = &self.inputs[i].shape;
        if got.dims() != wanted {
            return Err(self.bad_shape(format!("{label} has shape {got}, {wanted:?} expected")));
        }
        Ok(())
    }

    /// Checks that input `i`, called `label`, has this dtype and shape.
    #[track_caller]
    pub fn meta(&self, i: usize, label: &str, wanted: &Meta) -> Result<()> {
        self.dtype(i, label, wanted.dtype)?;
        self.shape(i, label, wanted.shape.dims())
    }

    /// `dim` as an index into the dimensions of input 0.
    #[track_caller]
    pub fn dim(&self, dim: u8) -> Result<usize> {
        dim_below_rank(self.name, dim, &self.inputs[0].shape)
    }

    /// Checks that an attribute lies in `low..=high` (not NaN).
    #[track_caller]
    pub fn within(&self, label: &str, value: f64, low: f64, high: f64) -> Result<()> {
        if !(low..=high).contains(&value) {
            let range = match high {
                f64::INFINITY => format!("at least {low}"),
                _ => format!("between {low} and {high}"),
            };
            return Err(self.argument(format!("{label} {value}, must be {range}")));
        }
        Ok(())
    }
}

/// `dim` as an index, or an error that names shape and rank.
#[track_caller]
pub(super) fn dim_below_rank(name: &'static str, dim: u8, shape: &Shape) -> Result<usize> {
    let index = usize::from(dim);
    if index >= shape.rank() {
        return Err(Error::argument(
            name,
            format!(
                "dimension {dim} out of range for shape {shape} of rank {}",
                shape.rank()
            ),
        ));
    }
    Ok(index)
}

/// One output of this dtype and shape.
pub(super) fn output(dtype: DType, shape: Shape) -> Result<Outputs> {
    Ok(Outputs::one(Meta::new(dtype, shape)))
}
