//! The rules of the repository, each a function from the tree to its faults, each tested on bad samples.

mod coverage;
mod documents;
mod layering;
mod leftovers;
mod size;
mod unsafe_code;

use crate::source::Tree;

/// A check: one line for each fault.
type Check = fn(&Tree) -> Vec<String>;

/// All checks with their names.
pub const ALL: &[(&str, Check)] = &[
    ("no backend is named above backends/", layering::check),
    ("files are short and say what they do", size::check),
    (
        "every op is covered by a case or a comparison",
        coverage::check,
    ),
    (
        "unsafe code has its reason and its place",
        unsafe_code::check,
    ),
    ("the documents hold", documents::check),
    ("nothing is left over", leftovers::check),
];

#[cfg(test)]
fn tree(files: &[(&str, &str)]) -> Tree {
    let names = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    let files = files
        .iter()
        .map(|(path, text)| crate::source::File::new(path, text))
        .collect();
    Tree { files, names }
}
