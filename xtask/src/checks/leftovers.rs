//! Nothing unfinished and nothing of one machine is left in the tree.

use crate::source::{File, Tree, line_of};

/// Macros that mean "not finished". In two parts, so that this file holds none of them.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Folders that exist on somebody's machine only; built from parts for the same reason.
const MACHINE: [&[&str]; 5] = [
    &["/wo", "rk/"],
    &["/ho", "me/"],
    &["/ro", "ot/"],
    &["/Us", "ers/"],
    &["C:\\Us", "ers"],
];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for file in &tree.files {
        unfinished(file, &mut faults);
        ignored_tests(file, &mut faults);
        machine_paths(file, &mut faults);
    }
    faults
}

fn unfinished(file: &File, faults: &mut Vec<String>) {
    for name in UNFINISHED {
        for at in file
            .words(name)
            .filter(|at| file.code[at + name.len()..].starts_with('!'))
        {
            faults.push(format!(
                "{}:{}: {name}! is left",
                file.path,
                line_of(&file.code, at)
            ));
        }
    }
}

/// `#[ignore]` must say why: `#[ignore = "reason"]`, alone or inside `cfg_attr`.
fn ignored_tests(file: &File, faults: &mut Vec<String>) {
    for at in file.words("ignore") {
        let before = file.code[..at].trim_end();
        let after = file.code[at + "ignore".len()..].trim_start();
        let attribute =
            before.ends_with('[') || (before.ends_with(',') && before.contains("cfg_attr"));
        let bare = after.starts_with(']') || after.starts_with(')');
        if attribute && bare {
            faults.push(format!(
                "{}:{}: #[ignore] without a reason",
                file.path,
                line_of(&file.code, at)
            ));
        }
    }
}

fn machine_paths(file: &File, faults: &mut Vec<String>) {
    for parts in MACHINE {
        let path = parts.concat();
        for (at, _) in file.text.match_indices(&path) {
            // A folder of that name inside the repository (after a letter) is none of a machine.
            let inside =
                file.text[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}".contains(c));
            if !inside {
                faults.push(format!(
                    "{}:{}: a path of one machine, {path}",
                    file.path,
                    line_of(&file.text, at)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree;

    fn faults(path: &str, text: &str) -> Vec<String> {
        super::check(&tree(&[(path, text)]))
    }

    #[test]
    fn unfinished_code_is_found() {
        let bad = format!(
            "fn a() {{ {}!() }}\nfn b() {{ {}!(\"x\") }}",
            "todo", "unimplemented"
        );
        assert_eq!(faults("a.rs", &bad).len(), 2);
        assert!(faults("a.rs", "// a todo! in a comment\nlet todo = 1;").is_empty());
    }

    #[test]
    fn silent_ignores_are_found() {
        assert_eq!(
            faults("a.rs", "#[test]\n#[ignore]\nfn a() {}"),
            ["a.rs:2: #[ignore] without a reason"]
        );
        assert_eq!(
            faults("a.rs", "#[cfg_attr(windows, ignore)]\nfn a() {}").len(),
            1
        );
        assert!(
            faults(
                "a.rs",
                "#[ignore = \"needs a GPU\"]\nfn a() { x[ignore_me]; }"
            )
            .is_empty()
        );
    }

    #[test]
    fn machine_paths_are_found() {
        for parts in super::MACHINE {
            let path = parts.concat();
            assert_eq!(faults("a.md", &format!("see {path}x")).len(), 1, "{path}");
            assert_eq!(
                faults("a.rs", &format!("//! A.\nf(\"{path}x\")")).len(),
                1,
                "{path}"
            );
        }
        assert!(
            faults(
                "a.md",
                &format!("see examples{}x", super::MACHINE[0].concat())
            )
            .is_empty()
        );
    }
}
