//! The front-door documents hold: their links lead somewhere, and the first program in each README is the one that
//! CI builds outside the workspace.

use crate::source::{File, Tree, line_of};

const PROGRAM: &str = ".ci/outside-crate/src/main.rs";
const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        links(tree, file, &mut faults);
    }
    let built = tree.file(PROGRAM).map(|file| essence(&file.text));
    for path in READMES {
        let program = tree
            .file(path)
            .and_then(|file| first_program(&file.text))
            .map(essence);
        if program.is_none() || program != built {
            faults.push(format!(
                "{path}: its first program is not the one in {PROGRAM} (comments aside)"
            ));
        }
    }
    faults
}

/// Links to files: `](docs/x.md)`. Addresses and places within a page are not looked at.
fn links(tree: &Tree, file: &File, faults: &mut Vec<String>) {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for (at, _) in file.text.match_indices("](") {
        let target = file.text[at + 2..].split(')').next().unwrap_or_default();
        let target = target.split('#').next().unwrap_or_default();
        if target.is_empty() || target.contains("://") {
            continue;
        }
        let path = join(folder, target);
        let there = tree
            .names
            .iter()
            .any(|name| *name == path || name.starts_with(&format!("{path}/")));
        if !there {
            faults.push(format!(
                "{}:{}: nothing is at {target}",
                file.path,
                line_of(&file.text, at)
            ));
        }
    }
}

fn join(folder: &str, target: &str) -> String {
    let mut parts = folder
        .split('/')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn first_program(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```rust\n")?;
    rest.split_once("```").map(|(program, _)| program)
}

/// Code without comments and layout, and its literals.
fn essence(program: &str) -> (String, Vec<String>) {
    let file = File::new("program.rs", program);
    let code = file.code.split_whitespace().collect::<String>();
    (
        code,
        file.literals.into_iter().map(|(_, text)| text).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::tree;

    const PROGRAM: &str = "//! A program.\nfn main() {\n    print(\"a\");\n}\n";
    const README: &str = "See [b](docs/b.md#part), [c](https://example.org/c), [d](docs).\n\n```rust\nfn main() {\n  print(\"a\"); // here\n}\n```\n";

    fn faults(readme: &str, page: &str) -> Vec<String> {
        super::check(&tree(&[
            (super::PROGRAM, PROGRAM),
            ("README.md", readme),
            ("README.zh-CN.md", README),
            ("docs/b.md", page),
        ]))
    }

    #[test]
    fn documents_that_hold_pass() {
        assert_eq!(
            faults(README, "[up](../README.md) [here](./b.md)"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn dead_links_are_found() {
        assert_eq!(
            faults(README, "\n[up](README.md)"),
            ["docs/b.md:2: nothing is at README.md"]
        );
        assert_eq!(faults(&README.replace("docs/b", "docs/gone"), "").len(), 1);
    }

    #[test]
    fn other_programs_are_found() {
        for other in [
            README.replace("\"a\"", "\"b\""),
            README.replace("print", "show"),
            README.replace("rust", "text"),
        ] {
            assert_eq!(faults(&other, "").len(), 1, "{other}");
        }
    }
}
