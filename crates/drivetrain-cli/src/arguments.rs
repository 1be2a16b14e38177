//! The arguments of `drivetrain conformance`.

use drivetrain::tensor::DType;
use std::path::PathBuf;

/// What is asked for.
#[derive(Debug, PartialEq)]
pub struct Request {
    /// The folder of cases; the built-in ones when it is left out.
    pub folder: Option<PathBuf>,
    /// A device's name; the best one when it is left out.
    pub device: String,
    /// Dtype of the floats.
    pub dtype: DType,
    /// Ops or ids of cases; all when empty.
    pub only: Vec<String>,
}

/// Reads the arguments; `None` when help is asked for.
///
/// # Errors
/// What is wrong with them.
pub fn parse(arguments: &[String]) -> Result<Option<Request>, String> {
    let mut request = Request {
        folder: None,
        device: "auto".into(),
        dtype: DType::F32,
        only: Vec::new(),
    };
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        // `--name value` and `--name=value`.
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (argument, None),
        };
        let mut value = || {
            let value = attached.or_else(|| rest.next());
            value.ok_or_else(|| format!("{name} needs a value"))
        };
        match name {
            "--help" | "-h" => return Ok(None),
            "--device" => request.device = value()?.to_string(),
            "--dtype" => request.dtype = dtype(value()?)?,
            "--only" => request
                .only
                .extend(value()?.split(',').map(|op| op.trim().to_string())),
            _ if name.starts_with('-') => return Err(format!("there is no option {name}")),
            _ if request.folder.is_none() => request.folder = Some(PathBuf::from(argument)),
            _ => return Err(format!("{argument:?} is one folder too many")),
        }
    }
    Ok(Some(request))
}

fn dtype(name: &str) -> Result<DType, String> {
    match name.to_ascii_lowercase().as_str() {
        "f32" => Ok(DType::F32),
        "f64" => Ok(DType::F64),
        "f16" => Ok(DType::F16),
        "bf16" => Ok(DType::BF16),
        other => Err(format!("--dtype {other}: f32, f64, f16 or bf16 expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Request>, String> {
        parse(
            &line
                .split_whitespace()
                .map(String::from)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn arguments_are_read_in_any_order() {
        let wanted = Request {
            folder: Some("dir".into()),
            device: "some:1".into(),
            dtype: DType::BF16,
            only: ["add", "mul", "neg.0"].map(String::from).to_vec(),
        };
        for line in [
            "dir --device some:1 --dtype bf16 --only add,mul --only neg.0",
            "--only=add,mul,neg.0 --dtype=BF16 --device=some:1 dir",
        ] {
            assert_eq!(parsed(line).unwrap().as_ref(), Some(&wanted), "{line}");
        }
        assert_eq!(parsed("dir --help"), Ok(None));
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (line, wanted) in [
            ("--devise some", "--devise"),
            ("--device", "--device needs a value"),
            ("--dtype i64", "i64"),
            ("a b", "\"b\" is one folder too many"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(wanted), "{line}: {error}");
        }
    }
}
