//! Whether values are right: element by element within a tolerance, with the worst element when not.

use crate::values::HostTensor;
use std::fmt;

/// How far a value may be off: `abs(got - want) <= atol + rtol * abs(want)`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Relative part.
    pub rtol: f64,
    /// Absolute part.
    pub atol: f64,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch {
    /// Another shape.
    Shape {
        /// The shape that came.
        got: Vec<usize>,
        /// The right one.
        want: Vec<usize>,
    },
    /// Elements out of tolerance.
    Elements {
        /// How many.
        wrong: usize,
        /// Of how many.
        of: usize,
        /// Index of the worst.
        index: Vec<usize>,
        /// The worst element.
        got: f64,
        /// Its right value.
        want: f64,
        /// How far it might have been off.
        allowed: f64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Shape { got, want } => write!(f, "shape {got:?}, {want:?} expected"),
            Mismatch::Elements {
                wrong,
                of,
                index,
                got,
                want,
                allowed,
            } => write!(
                f,
                "{wrong} of {of} elements wrong, worst at {index:?}: got {got:?}, want {want:?}, off by {:.3e} where {allowed:.3e} is allowed",
                (got - want).abs()
            ),
        }
    }
}

/// Compares a value with the right one. NaN equals NaN, infinities are equal by sign; indices and masks must be
/// equal.
///
/// # Errors
/// What is wrong.
pub fn judge(got: &HostTensor, want: &HostTensor, tolerance: Tolerance) -> Result<(), Mismatch> {
    if got.shape != want.shape || got.elements.len() != want.elements.len() {
        return Err(Mismatch::Shape {
            got: got.shape.clone(),
            want: want.shape.clone(),
        });
    }
    let exact = want.kind != crate::values::Kind::Float;
    let allowed = |want: f64| {
        if exact {
            0.0
        } else {
            tolerance.atol + tolerance.rtol * want.abs()
        }
    };
    let pairs = || got.elements.iter().zip(&want.elements).enumerate();
    let wrong = pairs()
        .filter(|(_, (got, want))| !agrees(**got, **want, allowed(**want)))
        .collect::<Vec<_>>();
    // The worst is the one that exceeds its allowance by the largest factor; NaN before all.
    let excess = |got: f64, want: f64| {
        let factor = (got - want).abs() / allowed(want).max(f64::MIN_POSITIVE);
        if factor.is_nan() {
            f64::INFINITY
        } else {
            factor
        }
    };
    let worst = wrong
        .iter()
        .max_by(|(_, (a, wa)), (_, (b, wb))| excess(**a, **wa).total_cmp(&excess(**b, **wb)));
    match worst {
        None => Ok(()),
        Some(&(at, (&got, &wanted))) => Err(Mismatch::Elements {
            wrong: wrong.len(),
            of: want.elements.len(),
            index: index(at, &want.shape),
            got,
            want: wanted,
            allowed: allowed(wanted),
        }),
    }
}

fn agrees(got: f64, want: f64, allowed: f64) -> bool {
    if want.is_nan() || got.is_nan() {
        return want.is_nan() && got.is_nan();
    }
    got == want || (want.is_finite() && (got - want).abs() <= allowed)
}

/// The index along each dimension of a row-major position.
fn index(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (slot, &size) in index.iter_mut().zip(shape).rev() {
        *slot = at % size.max(1);
        at /= size.max(1);
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Kind;

    const LOOSE: Tolerance = Tolerance {
        rtol: 0.1,
        atol: 0.0,
    };

    fn tensor(kind: Kind, elements: &[f64]) -> HostTensor {
        HostTensor {
            shape: vec![elements.len() / 2, 2],
            kind,
            elements: elements.to_vec(),
        }
    }

    fn floats(got: [f64; 4], want: [f64; 4]) -> Result<(), Mismatch> {
        judge(
            &tensor(Kind::Float, &got),
            &tensor(Kind::Float, &want),
            LOOSE,
        )
    }

    #[test]
    fn special_numbers_agree_with_themselves_only() {
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0];
        assert_eq!(floats(special, special), Ok(()));
        for wrong in 0..4 {
            for other in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5.0] {
                let mut got = special;
                got[wrong] = other;
                let same = special[wrong] == other || (special[wrong].is_nan() && other.is_nan());
                assert_eq!(floats(got, special).is_ok(), same, "{got:?}");
            }
        }
    }

    #[test]
    fn the_worst_element_is_named() {
        let error = floats([1.0, 2.0, 3.0, 3.3], [1.0, 1.0, 1.0, 3.0]).unwrap_err();
        let Mismatch::Elements {
            wrong,
            index,
            got,
            want,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((wrong, index, got, want), (2, vec![1, 0], 3.0, 1.0));
        let nan = floats([f64::NAN, 9.0, 1.0, 1.0], [1.0; 4]).unwrap_err();
        assert!(nan.to_string().contains("[0, 0]: got NaN"), "{nan}");
    }

    #[test]
    fn indices_have_no_tolerance_and_shapes_none_either() {
        let (a, b) = (
            tensor(Kind::Index, &[100.0, 1.0]),
            tensor(Kind::Index, &[101.0, 1.0]),
        );
        assert!(judge(&a, &b, LOOSE).is_err());
        let mut flat = a.clone();
        flat.shape = vec![2];
        assert!(judge(&flat, &a, LOOSE).is_err());
    }
}
