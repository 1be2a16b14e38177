//! Nothing above `backends/` names a backend, so that an engine nobody here wrote is no second-class one.
//!
//! Exempt: tests, doctests and examples (they need some device); the facade's features and the line that links
//! the backend of a feature; the one literal `"cpu"` of `Tensor::cpu`; and this program.

use crate::source::{File, Tree, line_of};

/// Backends that exist or are planned; what is found under `backends/` is added.
const KNOWN: [&str; 3] = ["cpu", "cuda", "dfdx"];

/// The only crate that may name one device, once, in `Tensor::cpu`.
const TENSOR: &str = "crates/drivetrain-tensor/src/";

/// The facade: it links backends by feature.
const FACADE: &str = "crates/drivetrain/";

/// Crates that may stand on the facade; on any other one the facade's backends would come along.
const ABOVE_FACADE: [&str; 1] = ["crates/drivetrain-cli/Cargo.toml"];

pub fn check(tree: &Tree) -> Vec<String> {
    let backends = backends(tree);
    let mut faults = Vec::new();
    let mut cpu_literals = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("crates/"))
    {
        if file.path.ends_with("/Cargo.toml") {
            manifest(file, &backends, &mut faults);
        } else if file.path.ends_with(".rs") && !file.is_test() {
            code(file, &backends, &mut faults);
            literals(file, &backends, &mut faults, &mut cpu_literals);
        }
    }
    if cpu_literals.len() > 1 {
        faults.push(format!(
            "\"cpu\" stands at {}; only Tensor::cpu may name it",
            cpu_literals.join(", ")
        ));
    }
    faults
}

fn backends(tree: &Tree) -> Vec<String> {
    let mut names = KNOWN.map(str::to_owned).to_vec();
    for file in &tree.files {
        let folder = file
            .path
            .strip_prefix("backends/")
            .and_then(|rest| rest.split_once('/'));
        if let Some((name, _)) = folder.filter(|(name, _)| !names.iter().any(|known| known == name))
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Crates of backends in code: `drivetrain_cpu`.
fn code(file: &File, backends: &[String], faults: &mut Vec<String>) {
    let tests = file.test_lines();
    for backend in backends {
        for at in file.words(&format!("drivetrain_{backend}")) {
            let line = line_of(&file.code, at);
            if !tests[line - 1] && !links_a_feature(file, line, backend) {
                faults.push(format!(
                    "{}:{line}: names the backend crate drivetrain_{backend}",
                    file.path
                ));
            }
        }
    }
}

/// `#[cfg(feature = "cpu")] extern crate drivetrain_cpu as _;` in the facade.
fn links_a_feature(file: &File, line: usize, backend: &str) -> bool {
    let lines = file.text.lines().map(str::trim).collect::<Vec<_>>();
    let above = line.checked_sub(2).map_or("", |index| lines[index]);
    file.path.starts_with(FACADE)
        && lines[line - 1] == format!("extern crate drivetrain_{backend} as _;")
        && above == format!("#[cfg(feature = \"{backend}\")]")
}

/// Literals that are a device's name (`"cuda"`, `"cuda:1"`) or hold a backend crate's.
fn literals(
    file: &File,
    backends: &[String],
    faults: &mut Vec<String>,
    cpu_literals: &mut Vec<String>,
) {
    let tests = file.test_lines();
    let lines = file.text.lines().collect::<Vec<_>>();
    for (line, literal) in file.literals.iter().filter(|(line, _)| !tests[line - 1]) {
        let place = format!("{}:{line}", file.path);
        for backend in backends {
            let crate_named = ["_", "-"]
                .iter()
                .any(|dash| literal.contains(&format!("drivetrain{dash}{backend}")));
            if !is_device(literal, backend) && !crate_named {
                continue;
            }
            if file.path.starts_with(FACADE) && lines[line - 1].contains("cfg(") {
                continue;
            }
            if literal == "cpu" && file.path.starts_with(TENSOR) {
                cpu_literals.push(place.clone());
            } else {
                faults.push(format!(
                    "{place}: the literal \"{literal}\" names a backend"
                ));
            }
        }
    }
}

/// Whether `literal` is `backend` or `backend:0`.
fn is_device(literal: &str, backend: &str) -> bool {
    literal.strip_prefix(backend).is_some_and(|rest| {
        rest.is_empty()
            || rest
                .strip_prefix(':')
                .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Dependencies on a backend are for tests only, or optional ones of the facade.
fn manifest(file: &File, backends: &[String], faults: &mut Vec<String>) {
    let mut table = String::new();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let key = if let Some(header) = line.strip_prefix('[') {
            table = header.trim_matches(['[', ']']).to_owned();
            table
                .rsplit_once("dependencies.")
                .map(|(_, key)| key.to_owned())
        } else {
            table.ends_with("dependencies").then(|| {
                line.split(['=', '.'])
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            })
        };
        let Some(key) = key.filter(|_| !table.contains("dev-dependencies")) else {
            continue;
        };
        let place = format!("{}:{}", file.path, index + 1);
        if backends
            .iter()
            .any(|backend| key == format!("drivetrain-{backend}"))
        {
            let optional = line.replace(' ', "").contains("optional=true");
            if !(file.path.starts_with(FACADE) && optional) {
                faults.push(format!("{place}: depends on the backend crate {key}"));
            }
        }
        if key == "drivetrain" && !ABOVE_FACADE.contains(&file.path.as_str()) {
            faults.push(format!(
                "{place}: stands on the facade, which brings its backends along"
            ));
        }
    }
}

#[cfg(test)]
#[path = "layering_tests.rs"]
mod tests;
