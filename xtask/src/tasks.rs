//! Tasks that run other programs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the mnist example must reach with every seed, in percent.
const MNIST_ACCURACY: f64 = 98.2;

/// `drivetrain conformance ARGUMENTS`, built for release.
pub fn conformance(root: &Path, arguments: &[String]) -> Result<(), String> {
    let fixed = [
        "run",
        "--release",
        "--package",
        "drivetrain-cli",
        "--",
        "conformance",
    ];
    run(cargo(root).args(fixed).args(arguments))
}

/// Everything there is: the continuous checks and what does not fit into their time.
pub fn full_check(root: &Path) -> Result<(), String> {
    run(Command::new(root.join(".ci/run")).current_dir(root))?;
    for dtype in ["f32", "f64", "f16", "bf16"] {
        println!("\n==> conformance in {dtype}");
        conformance(root, &["--dtype".to_owned(), dtype.to_owned()])?;
    }
    for seed in 0..5 {
        println!("\n==> mnist with seed {seed}");
        let seed = seed.to_string();
        let last = last_line(cargo(root).args([
            "run",
            "--release",
            "--example",
            "mnist",
            "--",
            "--seed",
            &seed,
        ]))?;
        match accuracy(&last) {
            Some(percent) if percent >= MNIST_ACCURACY => {}
            _ => {
                return Err(format!(
                    "mnist with seed {seed} ended with `{last}`, wanted {MNIST_ACCURACY} % at least"
                ));
            }
        }
    }
    Ok(())
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?} did not start: {error}")),
    }
}

/// Runs `command`, shows what it prints, and gives its last line that is not empty.
fn last_line(command: &mut Command) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("running an example: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut last = String::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(failed)?;
            println!("{line}");
            if !line.trim().is_empty() {
                last = line;
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    if status.success() {
        Ok(last)
    } else {
        Err(format!("{command:?} ended with {status}"))
    }
}

/// The number in `test accuracy: 98.7 %`.
fn accuracy(line: &str) -> Option<f64> {
    line.trim()
        .strip_prefix("test accuracy:")?
        .strip_suffix('%')?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_is_read_from_the_last_line_only_if_it_is_one() {
        assert_eq!(accuracy("test accuracy: 98.7 %"), Some(98.7));
        assert_eq!(accuracy("test accuracy: none %"), None);
        assert_eq!(accuracy("Training finished!"), None);
    }

    #[test]
    fn a_program_that_fails_is_a_fault() {
        assert!(run(Command::new("false").current_dir(".")).is_err());
        assert!(last_line(Command::new("sh").args(["-c", "echo one; exit 3"])).is_err());
        assert_eq!(
            last_line(Command::new("sh").args(["-c", "echo one; echo two; echo"])).as_deref(),
            Ok("two")
        );
    }
}
