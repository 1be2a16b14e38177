//! Files fit in a head: at most 500 lines, and the first says what the file is for.

use crate::source::Tree;

const LINES: usize = 500;

pub fn check(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > LINES {
            faults.push(format!(
                "{}: {lines} lines, at most {LINES}; split it",
                file.path
            ));
        }
        if !file.text.starts_with("//!") {
            faults.push(format!(
                "{}: the first line is no `//!` that says what the file does",
                file.path
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::tree;

    #[test]
    fn long_files_and_silent_files_are_found() {
        let long = "//! Long.\n".repeat(501);
        let fine = "//! Fine.\n".repeat(500);
        let tree = tree(&[
            ("a.rs", &long),
            ("b.rs", &fine),
            ("c.rs", "fn c() {}\n"),
            ("d.py", "x\n"),
        ]);
        let faults = super::check(&tree);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("a.rs: 501 lines"), "{faults:?}");
        assert!(faults[1].starts_with("c.rs: the first line"), "{faults:?}");
    }
}
