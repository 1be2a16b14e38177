//! Plays a set of cases on a device and reports what is wrong, what is right and what the device cannot do.

use crate::cases::{Case, Suite};
use crate::evaluate::{Evaluation, Setting, evaluate};
use crate::judge::{Tolerance, judge};
use crate::ops;
use crate::values::HostTensor;
use drivetrain_core::{DType, Device, ErrorKind};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What to play, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Dtype of the floats: F32, F64, F16 or BF16.
    pub dtype: DType,
    /// Only cases of these ops (or with these ids); all when empty.
    pub only: Vec<String>,
    /// What results in halves are compared with: the same case in F64 on this device, from inputs that were rounded
    /// to the half before. Without one, the device itself.
    pub reference: Option<Device>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            dtype: DType::F32,
            only: Vec::new(),
            reference: None,
        }
    }
}

/// What came of a run. Printed, it lists failures and skips and ends with `N passed, M failed, K skipped`.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many cases gave what was wanted.
    pub passed: usize,
    /// Cases that did not.
    pub failures: Vec<Failure>,
    /// Cases that were not judged.
    pub skipped: Vec<Skip>,
}

/// A case that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Its id.
    pub id: String,
    /// Why, a line each.
    pub reasons: Vec<String>,
}

/// A case that was not judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Skip {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            for reason in &failure.reasons {
                writeln!(f, "FAILED {}: {reason}", failure.id)?;
            }
        }
        for skip in &self.skipped {
            writeln!(f, "skipped {}: {}", skip.id, skip.reason)?;
        }
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failures.len(),
            self.skipped.len()
        )
    }
}

enum Outcome {
    Passed,
    Failed(Vec<String>),
    Skipped(String),
}

/// Plays the cases of `suite` on `device`. A panic fails its case; the run goes on.
pub fn run(device: &Device, suite: &Suite, options: &Options) -> Report {
    let mut report = Report::default();
    for case in &suite.cases {
        if !options.only.is_empty() && !options.only.iter().any(|o| *o == case.op || *o == case.id)
        {
            continue;
        }
        match play(case, suite, device, options) {
            Outcome::Passed => report.passed += 1,
            Outcome::Failed(reasons) => report.failures.push(Failure {
                id: case.id.clone(),
                reasons,
            }),
            Outcome::Skipped(reason) => report.skipped.push(Skip {
                id: case.id.clone(),
                reason,
            }),
        }
    }
    report
}

fn play(case: &Case, suite: &Suite, device: &Device, options: &Options) -> Outcome {
    if options.dtype.is_half() && ops::is_special(&case.op) {
        return Outcome::Skipped(format!("{} is judged in F32 and F64 only", case.op));
    }
    if !ops::is_known(&case.op) {
        return failed(format!("the runner knows no op {:?}", case.op));
    }
    let setting = Setting {
        device,
        dtype: options.dtype,
        round: None,
    };
    match (caught(case, suite, setting), &case.error) {
        (Played::Unsupported(reason), _) => Outcome::Skipped(reason),
        (Played::Panicked(message), _) => failed(format!("panicked: {message}")),
        (Played::Error(message), Some(texts)) => {
            let missing: Vec<_> = texts.iter().filter(|t| !message.contains(*t)).collect();
            if missing.is_empty() {
                return Outcome::Passed;
            }
            failed(format!("the error lacks {missing:?}: {message}"))
        }
        (Played::Error(message), None) => failed(with_unread(case, message)),
        (Played::Done(_), Some(texts)) => {
            failed(format!("no error came, one with {texts:?} was wanted"))
        }
        (Played::Done(got), None) if options.dtype.is_half() => {
            half(case, suite, &got, device, options)
        }
        (Played::Done(got), None) => {
            let tolerance = match options.dtype {
                DType::F64 => Tolerance {
                    rtol: 1e-9,
                    atol: 1e-10,
                },
                _ => Tolerance {
                    rtol: case.rtol,
                    atol: case.atol,
                },
            };
            match stored(case, suite) {
                Ok(want) => verdict(case, &got, &want, tolerance),
                Err(message) => failed(message),
            }
        }
    }
}

/// Judges a half's results by the same case in F64 from inputs rounded to the half.
fn half(
    case: &Case,
    suite: &Suite,
    got: &Evaluation,
    device: &Device,
    options: &Options,
) -> Outcome {
    let setting = Setting {
        device: options.reference.as_ref().unwrap_or(device),
        dtype: DType::F64,
        round: Some(options.dtype),
    };
    let tolerance = Tolerance {
        rtol: 2e-2,
        atol: 2e-2,
    };
    match caught(case, suite, setting) {
        Played::Done(want) => verdict(case, got, &want.rounded(options.dtype), tolerance),
        Played::Unsupported(reason) => Outcome::Skipped(reason),
        Played::Error(message) => failed(format!("in F64: {message}")),
        Played::Panicked(message) => failed(format!("in F64: panicked: {message}")),
    }
}

enum Played {
    Done(Evaluation),
    Error(String),
    Unsupported(String),
    Panicked(String),
}

fn caught(case: &Case, suite: &Suite, setting: Setting) -> Played {
    match catch_unwind(AssertUnwindSafe(|| evaluate(case, suite, setting))) {
        Ok(Ok(evaluation)) => Played::Done(evaluation),
        Ok(Err(error)) if error.kind() == ErrorKind::Unsupported => {
            Played::Unsupported(error.to_string())
        }
        Ok(Err(error)) => Played::Error(error.to_string()),
        Err(panic) => Played::Panicked(panic_text(panic)),
    }
}

/// What a panic said.
fn panic_text(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
        .unwrap_or_else(|| "with a value that is no text".into())
}

/// The right values of a case.
fn stored(case: &Case, suite: &Suite) -> Result<Evaluation, String> {
    let value = |name: &String| suite.value(name).cloned().map_err(|e| e.to_string());
    Ok(Evaluation {
        outputs: case.outputs.iter().map(value).collect::<Result<_, _>>()?,
        grads: case
            .grads
            .iter()
            .map(|name| name.as_ref().map(value).transpose())
            .collect::<Result<_, _>>()?,
    })
}

fn verdict(case: &Case, got: &Evaluation, want: &Evaluation, tolerance: Tolerance) -> Outcome {
    let mut reasons = Vec::new();
    if got.outputs.len() != want.outputs.len() {
        reasons.push(format!(
            "{} outputs, {} expected",
            got.outputs.len(),
            want.outputs.len()
        ));
    }
    for (index, (got, want)) in got.outputs.iter().zip(&want.outputs).enumerate() {
        if let Err(mismatch) = judge(got, want, tolerance) {
            reasons.push(format!("output {index}: {mismatch}"));
        }
    }
    for (index, want) in want.grads.iter().enumerate() {
        let got = got.grads.get(index).and_then(Option::as_ref);
        match (got, want) {
            (Some(got), Some(want)) => {
                if let Err(mismatch) = judge(got, want, tolerance) {
                    reasons.push(format!("gradient of input {index}: {mismatch}"));
                }
            }
            // None from the op: what is wanted may still be zeros.
            (None, Some(want)) if !is_zero(want) => {
                reasons.push(format!("gradient of input {index}: there is none"));
            }
            _ => {}
        }
    }
    if reasons.is_empty() {
        return Outcome::Passed;
    }
    if let Some(last) = reasons.last_mut() {
        *last = with_unread(case, std::mem::take(last));
    }
    Outcome::Failed(reasons)
}

fn is_zero(value: &HostTensor) -> bool {
    value.elements.iter().all(|&element| element == 0.0)
}

/// The message, with the attributes that the runner did not look at: they may be why.
fn with_unread(case: &Case, message: String) -> String {
    match case.attrs.unread().as_slice() {
        [] => message,
        unread => format!(
            "{message} (attributes not looked at: {})",
            unread.join(", ")
        ),
    }
}

fn failed(reason: String) -> Outcome {
    Outcome::Failed(vec![reason])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use serde_json::{Value, json};

    /// A set with the tensors x = [1, 2], y = [1, 2.5] and m = [[1], [2]] in F64.
    fn played(case: Value, dtype: DType) -> Report {
        let numbers = [1.0f64, 2.0, 1.0, 2.5, 1.0, 2.0];
        let entry = |shape: Value, from: usize| json!({"dtype": "F64", "shape": shape, "data_offsets": [from, from + 16]});
        let header = json!({"x": entry(json!([2]), 0), "y": entry(json!([2]), 16), "m": entry(json!([2, 1]), 32)});
        let header = header.to_string();
        let mut data = (header.len() as u64).to_le_bytes().to_vec();
        data.extend(header.bytes());
        data.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        let document = json!({"version": 1, "cases": [case]}).to_string();
        let options = Options {
            dtype,
            ..Options::default()
        };
        run(
            &reference::device(),
            &Suite::parse(&document, &data).unwrap(),
            &options,
        )
    }

    #[track_caller]
    fn fails(case: Value, wanted: &str) {
        let report = played(case, DType::F32);
        assert_eq!((report.passed, report.failures.len()), (0, 1), "{report}");
        assert!(report.to_string().contains(wanted), "{wanted}: {report}");
    }

    fn case(op: &str, rest: Value) -> Value {
        let mut case = json!({"id": "c.0", "op": op, "inputs": ["x"]});
        case.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        case
    }

    #[test]
    fn right_values_pass() {
        let report = played(case("abs", json!({"outputs": ["x"]})), DType::F64);
        assert_eq!(report.to_string(), "1 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn wrong_values_shapes_and_gradients_fail() {
        fails(
            case("abs", json!({"outputs": ["y"]})),
            "FAILED c.0: output 0: 1 of 2 elements wrong, worst at [1]: got 2.0, want 2.5",
        );
        fails(
            case("abs", json!({"outputs": ["m"]})),
            "shape [2], [2, 1] expected",
        );
        fails(
            case(
                "abs",
                json!({"outputs": ["x"], "cotangents": {"0": "x"}, "grads": ["y"]}),
            ),
            "gradient of input 0: 1 of 2",
        );
        fails(
            case("abs", json!({"outputs": ["x", "x"]})),
            "1 outputs, 2 expected",
        );
    }

    #[test]
    fn errors_must_come_and_say_what_is_wanted() {
        let wrong = json!({"error": ["3", "2"], "inputs": ["x", "x", "x"], "attrs": {"dim": 3}});
        fails(case("softmax", json!({"error": ["1"]})), "no error came");
        fails(
            case("softmax", json!({"error": ["banana"], "attrs": {"dim": 3}})),
            "lacks [\"banana\"]",
        );
        assert_eq!(played(case("softmax", wrong), DType::F32).passed, 1);
        fails(
            case(
                "softmax",
                json!({"outputs": ["x"], "attrs": {"dim": 3, "dimm": 1}}),
            ),
            "(attributes not looked at: dimm)",
        );
        fails(
            case("magic", json!({"error": ["1"]})),
            "the runner knows no op \"magic\"",
        );
    }

    #[test]
    fn what_a_panic_says_is_kept() {
        let caught = panic_text(catch_unwind(|| panic!("at {}", 3)).unwrap_err());
        assert_eq!(caught, "at 3");
        assert_eq!(panic_text(catch_unwind(|| panic!("so")).unwrap_err()), "so");
    }

    #[test]
    fn halves_leave_the_special_ops_out() {
        let report = played(case("optimizer", json!({"outputs": ["x"]})), DType::BF16);
        assert_eq!(report.skipped.len(), 1, "{report}");
        assert!(
            report
                .to_string()
                .ends_with("0 passed, 0 failed, 1 skipped")
        );
    }
}
