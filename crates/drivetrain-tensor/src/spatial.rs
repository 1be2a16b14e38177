//! Numbers for the spatial dimensions of convolutions, pooling and resizing: one for all, or one for each.

use drivetrain_core::{Error, Result};

/// A number for each of 1 to 3 spatial dimensions: `2` stands for all of them, `[2, 1]` for each.
///
/// ```
/// use drivetrain_tensor::Spatial;
/// assert_eq!(Spatial::from(2), Spatial::from([2]));
/// let stride: Spatial = [2, 1].into();
/// assert_eq!(stride.to_string(), "[2, 1]");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spatial {
    values: [usize; 3],
    /// How many were given; more than 3 are kept as a count only, to be refused by name.
    given: usize,
}

impl Spatial {
    /// The numbers as an operation of `spatial` dimensions takes them, `neutral` past those.
    ///
    /// # Errors
    /// Neither one number nor one for each dimension; names `operation` and `label`.
    #[track_caller]
    pub fn resolve(
        &self,
        operation: &'static str,
        label: &str,
        spatial: usize,
        neutral: usize,
    ) -> Result<[usize; 3]> {
        let mut out = [neutral; 3];
        match self.given {
            1 => out[..spatial].fill(self.values[0]),
            given if given == spatial => out[..spatial].copy_from_slice(&self.values[..spatial]),
            given => {
                return Err(Error::argument(
                    operation,
                    format!("{given} numbers for {label}, 1 or {spatial} expected"),
                ));
            }
        }
        Ok(out)
    }
}

impl From<usize> for Spatial {
    fn from(value: usize) -> Spatial {
        Spatial::from([value])
    }
}

impl<const N: usize> From<[usize; N]> for Spatial {
    fn from(given: [usize; N]) -> Spatial {
        Spatial::from(given.as_slice())
    }
}

impl From<&[usize]> for Spatial {
    fn from(given: &[usize]) -> Spatial {
        let mut values = [0; 3];
        for (slot, &value) in values.iter_mut().zip(given) {
            *slot = value;
        }
        Spatial {
            values,
            given: given.len(),
        }
    }
}

impl std::fmt::Display for Spatial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.given {
            1 => write!(f, "{}", self.values[0]),
            given => write!(f, "{:?}", &self.values[..given.min(3)]),
        }
    }
}

impl std::fmt::Debug for Spatial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
