//! Random-shape comparison: ops on strided operands of random shapes, on a device and on the reference.
//!
//! Inputs are views (permuted, reversed, stepped, broadcast) into larger buffers; outputs lie between guards
//! that must not change. A seed makes the same comparisons on every device.

mod place;
mod trials;

use crate::reference;
use drivetrain_core::random::Generator;
use drivetrain_core::{DType, Device, ErrorKind, Op, Result};
use place::Operands;
use std::fmt;
use trials::{COMPARISONS, Maker, Trial};

/// What came of comparisons.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// How many gave what the reference gives.
    pub passed: usize,
    /// What differed: the comparison's name, the op, and how.
    pub failures: Vec<String>,
    /// What the device does not run itself: the comparison's name, op and dtypes.
    pub skipped: Vec<String>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "FAILED {failure}")?;
        }
        for skip in &self.skipped {
            writeln!(f, "skipped {skip}")?;
        }
        write!(
            f,
            "{} compared equal, {} differed, {} skipped",
            self.passed,
            self.failures.len(),
            self.skipped.len()
        )
    }
}

/// The names of all comparisons.
pub fn names() -> Vec<&'static str> {
    COMPARISONS.iter().map(|(name, _)| *name).collect()
}

/// Compares `device` with the reference, `rounds` times each of the comparisons named by `only` (all when empty).
pub fn compare(device: &Device, only: &[String], rounds: usize, seed: u64) -> Comparison {
    let reference = reference::device();
    let mut report = Comparison::default();
    for (stream, (name, make)) in COMPARISONS.iter().enumerate() {
        if !only.is_empty() && !only.iter().any(|o| o == name) {
            continue;
        }
        let mut maker = Maker(Generator::new(seed, stream as u64));
        for _ in 0..rounds {
            let trial = match make(&mut maker) {
                Ok(trial) => trial,
                Err(error) => {
                    report.failures.push(format!("{name}: not made: {error}"));
                    continue;
                }
            };
            let dtypes: Vec<DType> = trial.operands.metas().iter().map(|m| m.dtype).collect();
            let what = format!("{name}: {:?} of {dtypes:?}", trial.op);
            match judge(device, &reference, &trial) {
                Ok(Verdict::Equal) => report.passed += 1,
                Ok(Verdict::Unsupported) => {
                    if !report.skipped.contains(&what) {
                        report.skipped.push(what);
                    }
                }
                Ok(Verdict::Differs(how)) => {
                    let operands = &trial.operands;
                    report.failures.push(format!("{what}: {how}; {operands}"));
                }
                Err(error) => report.failures.push(format!("{what}: {error}")),
            }
        }
    }
    report
}

enum Verdict {
    Equal,
    Unsupported,
    Differs(String),
}

fn judge(device: &Device, reference: &Device, trial: &Trial) -> Result<Verdict> {
    if matches!(trial.op, Op::Composite(_)) && !device.supports(&trial.op, &trial.operands.metas())
    {
        return Ok(Verdict::Unsupported);
    }
    let want = place::expected(reference, &trial.op, &trial.operands)?;
    let got = match place::run(device, &trial.op, &trial.operands) {
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Verdict::Unsupported),
        other => other?,
    };
    for (output, (got, want)) in got.iter().zip(&want).enumerate() {
        if !got.guarded {
            return Ok(Verdict::Differs(format!(
                "output {output} was written outside its bounds"
            )));
        }
        let (dtype, shape) = (got.value.meta.dtype, got.value.meta.shape);
        let exact = trial.exact || !dtype.is_float();
        let allowed = if exact {
            0.0
        } else {
            epsilon(dtype) * trial.slack
        };
        let (got, want) = (got.value.values(), want.values());
        let wrong = |(g, w): (&f64, &f64)| {
            let same = g == w || (g.is_nan() && w.is_nan());
            let near = (g - w).abs() <= allowed * (1.0 + w.abs());
            !same && (!near || w.is_infinite())
        };
        if let Some(at) = got.iter().zip(&want).position(wrong) {
            return Ok(Verdict::Differs(format!(
                "output {output} {shape} at {at}: {} instead of {}",
                got[at], want[at]
            )));
        }
    }
    Ok(Verdict::Equal)
}

/// Distance of 1 from the next number.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}

impl fmt::Display for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for input in self.inputs.iter().chain(&self.in_place) {
            write!(f, "{:?} ", input.layout)?;
        }
        Ok(())
    }
}
