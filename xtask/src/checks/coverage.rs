//! Every op is proven: by a conformance case or by a named random-shape comparison with the reference interpreter.
//!
//! The table is `crates/drivetrain-conformance/src/coverage.rs`, rows of two literals: `("UnaryOp::Neg", "case neg")`
//! or `("Primitive::Iota", "compare iota")`, several proofs separated by commas. A case is named by its op or its
//! id in `cases.json`; a comparison by a literal in the crate's `compare` files.

use crate::source::{File, Tree};
use std::collections::BTreeSet;

const OPS: &str = "crates/drivetrain-core/src/op";
const TABLE: &str = "crates/drivetrain-conformance/src/coverage.rs";
const CASES: &str = "crates/drivetrain-conformance/cases/cases.json";
const COMPARISONS: &str = "crates/drivetrain-conformance/src/compare";

pub fn check(tree: &Tree) -> Vec<String> {
    let ops = tree
        .rust()
        .filter(|file| file.path.starts_with(OPS) && !file.is_test())
        .flat_map(variants);
    let ops = ops.collect::<BTreeSet<_>>();
    let Some(table) = tree.file(TABLE) else {
        return vec![format!(
            "{TABLE} is missing; {} ops need their rows in it",
            ops.len()
        )];
    };
    let mut faults = Vec::new();
    let mut covered = BTreeSet::new();
    let (cases, comparisons) = (cases(tree), comparisons(tree));
    let literals = table.literals.iter().collect::<Vec<_>>();
    for row in literals.chunks(2) {
        let (line, op) = row[0];
        let proofs = row.get(1).map_or("", |(_, proofs)| proofs.as_str());
        if !ops.contains(op) {
            faults.push(format!("{TABLE}:{line}: there is no op {op}"));
        }
        covered.insert(op.clone());
        for proof in proofs.split(',').map(str::trim) {
            let known = match proof.split_once(' ') {
                Some(("case", name)) => cases.contains(name),
                Some(("compare", name)) => comparisons.contains(name),
                _ => false,
            };
            if !known {
                faults.push(format!(
                    "{TABLE}:{line}: {op} names `{proof}`, which is no case and no comparison"
                ));
            }
        }
    }
    for op in ops.difference(&covered) {
        faults.push(format!("{op} has no row in {TABLE}"));
    }
    faults
}

/// The variants of `pub enum Primitive`, `pub enum Composite` and of each `coded_enum!`, as `Enum::Variant`.
fn variants(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["Primitive", "Composite"] {
        if let Some(at) = file.code.find(&format!("pub enum {name} {{")) {
            found.extend(
                names_in_braces(&file.code[at..]).map(|variant| format!("{name}::{variant}")),
            );
        }
    }
    for (at, opening) in file.code.match_indices("coded_enum! {") {
        let inside = file.code[at + opening.len()..].trim_start();
        let name = identifier(inside);
        found.extend(names_in_braces(inside).map(|variant| format!("{name}::{variant}")));
    }
    found
}

/// The identifiers that stand first, or first after a comma or semicolon, in the first pair of braces.
fn names_in_braces(code: &str) -> impl Iterator<Item = &str> {
    let mut names = Vec::new();
    let (mut depth, mut first, mut skip) = (0usize, false, 0usize);
    for (at, character) in code.char_indices() {
        if at < skip {
            continue;
        }
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
        if depth != 1 {
            continue;
        }
        let name = identifier(&code[at..]);
        if matches!(character, '{' | ',' | ';') {
            first = true;
        } else if !name.is_empty() {
            if first {
                names.push(name);
            }
            (first, skip) = (false, at + name.len());
        }
    }
    names.into_iter()
}

fn identifier(code: &str) -> &str {
    let end = code
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(code.len());
    if code.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        &code[..end]
    }
}

/// The values of `"op"` and `"id"` in the cases.
fn cases(tree: &Tree) -> BTreeSet<String> {
    let text = tree.file(CASES).map_or("", |file| file.text.as_str());
    let values = ["\"op\"", "\"id\""].into_iter().flat_map(|key| {
        text.match_indices(key).filter_map(move |(at, _)| {
            let value = text[at + key.len()..]
                .trim_start()
                .strip_prefix(':')?
                .trim_start()
                .strip_prefix('"')?;
            Some(value.split('"').next()?.to_owned())
        })
    });
    values.collect()
}

fn comparisons(tree: &Tree) -> BTreeSet<String> {
    let files = tree
        .rust()
        .filter(|file| file.path.starts_with(COMPARISONS));
    files
        .flat_map(|file| file.literals.iter().map(|(_, text)| text.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    const OP: &str = "
        pub enum Op { Primitive(Primitive), Composite(Composite) }
        #[derive(Clone)]
        pub enum Primitive {
            /// Fills, with a value.
            Fill { value: Scalar, other: u8 },
            #[doc(hidden)]
            Unary(UnaryOp, Box<Pad>),
            Where,
        }";
    const KINDS: &str = "
        macro_rules! coded_enum { ($name:ident) => { pub enum $name { A, B } }; }
        coded_enum! {
            /// One operand; one result.
            UnaryOp { /// Minus.
                Neg = 0, \"neg\";
                Abs = 1, \"abs\";
            }
        }";
    const JSON: &str =
        r#"{"cases": [{"id": "neg.0", "op": "neg"}, {"id":"where.0","op":"where"}]}"#;

    fn faults(table: &str) -> Vec<String> {
        check(&tree(&[
            ("crates/drivetrain-core/src/op.rs", OP),
            ("crates/drivetrain-core/src/op/kinds.rs", KINDS),
            (CASES, JSON),
            (
                "crates/drivetrain-conformance/src/compare.rs",
                "const NAMES: [&str; 2] = [\"fill\", \"unary\"];",
            ),
            (TABLE, table),
        ]))
    }

    const WHOLE: &str = r#"&[("Primitive::Fill", "compare fill"), ("Primitive::Unary", "compare unary, case neg"),
        ("Primitive::Where", "case where"), ("UnaryOp::Neg", "case neg.0"), ("UnaryOp::Abs", "compare unary")]"#;

    #[test]
    fn variants_are_found() {
        let ops = variants(&File::new("op.rs", OP));
        assert_eq!(
            ops,
            ["Primitive::Fill", "Primitive::Unary", "Primitive::Where"]
        );
        assert_eq!(
            variants(&File::new("kinds.rs", KINDS)),
            ["UnaryOp::Neg", "UnaryOp::Abs"]
        );
    }

    #[test]
    fn a_whole_table_passes() {
        assert_eq!(faults(WHOLE), Vec::<String>::new());
    }

    #[test]
    fn holes_in_the_table_are_found() {
        let cases = [
            (
                WHOLE.replace(r#", ("UnaryOp::Abs", "compare unary")"#, ""),
                "UnaryOp::Abs has no row",
            ),
            (
                WHOLE.replace("UnaryOp::Abs", "UnaryOp::Gone"),
                "there is no op UnaryOp::Gone",
            ),
            (
                WHOLE.replace("case where", "case absent"),
                "`case absent`, which is no case",
            ),
            (
                WHOLE.replace("compare fill", "compare absent"),
                "`compare absent`, which is no case",
            ),
            (
                WHOLE.replace("compare fill", "case fill"),
                "`case fill`, which is no case",
            ),
            (WHOLE.replace("compare fill", ""), "names ``"),
        ];
        for (table, wanted) in cases {
            let faults = faults(&table).join("\n");
            assert!(faults.contains(wanted), "{wanted}: {faults}");
        }
    }

    #[test]
    fn a_missing_table_is_found() {
        let faults = check(&tree(&[("crates/drivetrain-core/src/op.rs", OP)]));
        assert!(faults[0].contains("is missing; 3 ops"), "{faults:?}");
    }
}
