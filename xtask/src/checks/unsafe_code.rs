//! Unsafe code stands where the architecture allows it, and each piece says why it is sound.

use crate::source::{File, Tree, line_of};

/// Where unsafe code may stand: the engines, the C boundary, and the one mapping function of the file formats.
const PLACES: [&str; 3] = [
    "backends/",
    "crates/drivetrain-plugin/",
    "crates/drivetrain-tensor/src/formats/",
];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for file in tree.rust() {
        let tests = file.test_lines();
        for at in file
            .words("unsafe")
            .filter(|&at| needs_reason(&file.code[at..]))
        {
            let line = line_of(&file.code, at);
            if !tests[line - 1] && !PLACES.iter().any(|place| file.path.starts_with(place)) {
                faults.push(format!(
                    "{}:{line}: unsafe code outside {}",
                    file.path,
                    PLACES.join(", ")
                ));
            } else if !has_reason(file, line) {
                faults.push(format!(
                    "{}:{line}: unsafe without `// SAFETY:` (or `# Safety`) above",
                    file.path
                ));
            }
        }
    }
    faults
}

/// Types of function pointers and attributes claim nothing themselves.
fn needs_reason(code: &str) -> bool {
    let rest = code["unsafe".len()..].trim_start();
    if rest.starts_with('(') {
        return false;
    }
    let after_extern = rest.strip_prefix("extern").map_or(rest, |rest| {
        let rest = rest.trim_start();
        rest.strip_prefix('"')
            .and_then(|rest| rest.split_once('"'))
            .map_or(rest, |(_, rest)| rest)
            .trim_start()
    });
    !after_extern
        .strip_prefix("fn")
        .is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// Whether the comments right above line `line` (from 1), or above the statement it belongs to, give a reason.
fn has_reason(file: &File, line: usize) -> bool {
    let lines = file.text.lines().collect::<Vec<_>>();
    let code = file.code.lines().collect::<Vec<_>>();
    let says = |text: &str| text.contains("SAFETY:") || text.contains("# Safety");
    if says(lines[line - 1]) {
        return true;
    }
    let mut seen_comment = false;
    for above in (0..line - 1).rev() {
        let (text, code) = (lines[above].trim(), code[above].trim());
        if text.starts_with("//") {
            seen_comment = true;
            if says(text) {
                return true;
            }
            continue;
        }
        let attribute = code.starts_with("#[") || code.ends_with(")]");
        let same_statement = !code.is_empty() && !code.ends_with([';', '{', '}', ',']);
        if seen_comment || !(attribute || same_statement) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::tree;

    fn faults(path: &str, text: &str) -> Vec<String> {
        super::check(&tree(&[(path, text)]))
    }

    #[test]
    fn silent_unsafe_is_found() {
        for bad in [
            "fn a() {\n    unsafe { b() }\n}",
            "// SAFETY: far away.\n\nfn a() { unsafe { b() } }",
            "/// Frees.\npub unsafe fn a() {}",
            "unsafe impl Send for A {}",
            "// SAFETY: the first only.\nunsafe impl Send for A {}\nunsafe impl Sync for A {}",
            "unsafe extern \"C\" { fn a(); }",
            "let a = 1; // SAFETY: not this one\nlet b = unsafe { c() };",
        ] {
            assert_eq!(faults("backends/x/src/a.rs", bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn reasons_are_seen() {
        for good in [
            "// SAFETY: b has no conditions.\nunsafe { b() }",
            "// SAFETY: b has no conditions,\n// and will have none.\nlet x =\n    unsafe { b() };",
            "/// Frees.\n///\n/// # Safety\n/// Once.\n#[inline]\npub unsafe fn a() {}",
            "unsafe { b() } // SAFETY: b has no conditions.",
            "type A = unsafe extern \"C\" fn(u32);\nstruct B { a: unsafe fn() }",
            "#[unsafe(no_mangle)]\nfn a() {}",
            "// unsafe { in a comment }",
        ] {
            assert!(faults("backends/x/src/a.rs", good).is_empty(), "{good}");
        }
    }

    #[test]
    fn unsafe_keeps_to_its_places() {
        let text = "// SAFETY: fine.\nunsafe { b() }";
        assert_eq!(faults("crates/drivetrain-core/src/a.rs", text).len(), 1);
        assert!(faults("crates/drivetrain-plugin/src/a.rs", text).is_empty());
        assert!(faults("crates/drivetrain-core/tests/a.rs", text).is_empty());
    }
}
