//! Development tasks: `cargo xtask check`, `cargo xtask conformance …`, `cargo xtask full-check`.

mod checks;
mod source;
mod tasks;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  check                  the rules of the repository: layering, file sizes, op coverage, unsafe, leftovers
  conformance [DIR] …    the conformance runner, built for release; arguments go to `drivetrain conformance`
  full-check             .ci/run, conformance in four dtypes, and the mnist example with seeds 0 to 4";

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."));
    let result = match arguments.split_first() {
        Some((task, [])) if task == "check" => check(root),
        Some((task, rest)) if task == "conformance" => tasks::conformance(root, rest),
        Some((task, [])) if task == "full-check" => tasks::full_check(root),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every check and reports all faults at once.
fn check(root: &Path) -> Result<(), String> {
    let tree =
        source::Tree::read(root).map_err(|error| format!("cannot read the repository: {error}"))?;
    let mut faults = 0;
    for (name, check) in checks::ALL {
        let found = check(&tree);
        println!(
            "{name}: {}",
            if found.is_empty() {
                "ok".to_owned()
            } else {
                format!("{} faults", found.len())
            }
        );
        for fault in &found {
            println!("  {fault}");
        }
        faults += found.len();
    }
    match faults {
        0 => Ok(()),
        _ => Err(format!(
            "{faults} faults; the rules are explained in CONTRIBUTING.md"
        )),
    }
}
