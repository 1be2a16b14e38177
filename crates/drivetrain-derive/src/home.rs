//! Finds the path under which the calling package sees `drivetrain_nn`.

use std::path::Path;

const DIRECT: &str = "drivetrain-nn";

/// The home of the package being compiled, from what Cargo tells every compiler process about it.
pub fn of_calling_package() -> syn::Path {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|folder| std::fs::read_to_string(Path::new(&folder).join("Cargo.toml")).ok())
        .unwrap_or_default();
    home(&package, &manifest)
}

/// `::drivetrain_nn` for the crate itself and for packages that name it as a dependency, else `::drivetrain::nn`.
fn home(package: &str, manifest: &str) -> syn::Path {
    if package == DIRECT || names_dependency(manifest, DIRECT) {
        syn::parse_quote!(::drivetrain_nn)
    } else {
        syn::parse_quote!(::drivetrain::nn)
    }
}

/// Whether a table of dependencies in `manifest` has the key `name`. Reads lines, not TOML: a dependency under
/// another name is not found, and its user writes `#[module(crate = "…")]`.
fn names_dependency(manifest: &str, name: &str) -> bool {
    let mut in_dependencies = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.split(']').next().unwrap_or_default().trim();
            in_dependencies = header.ends_with("dependencies");
            let table = header.rsplit_once("dependencies.").map(|(_, key)| key);
            if table.is_some_and(|key| unquote(key) == name) {
                return true;
            }
        } else if in_dependencies {
            let key = line.split(['=', '.']).next().unwrap_or_default();
            if unquote(key.trim()) == name {
                return true;
            }
        }
    }
    false
}

fn unquote(key: &str) -> &str {
    key.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: syn::Path) -> String {
        quote::quote!(#path).to_string().replace(' ', "")
    }

    #[test]
    fn dependency_tables_are_read() {
        for manifest in [
            "[dependencies]\ndrivetrain-nn.workspace = true",
            "[dependencies]\ndrivetrain-nn = \"0.1\"",
            "[dev-dependencies]\n\"drivetrain-nn\" = { path = \"x\" }",
            "[target.'cfg(unix)'.dependencies]\ndrivetrain-nn= \"0.1\"",
            "[dependencies.drivetrain-nn]\nversion = \"0.1\"",
        ] {
            assert_eq!(
                text(home("user", manifest)),
                "::drivetrain_nn",
                "{manifest}"
            );
        }
    }

    #[test]
    fn other_packages_go_through_the_facade() {
        for manifest in [
            "",
            "[dependencies]\ndrivetrain = \"0.1\"",
            "[dependencies]\ndrivetrain-nn-extras = \"0.1\"",
            "[package]\nname = \"drivetrain-nn\"",
            "[features]\ndrivetrain-nn = []",
            "# drivetrain-nn = \"0.1\"",
        ] {
            assert_eq!(
                text(home("user", manifest)),
                "::drivetrain::nn",
                "{manifest}"
            );
        }
    }

    #[test]
    fn the_crate_itself_is_its_own_home() {
        assert_eq!(text(home("drivetrain-nn", "")), "::drivetrain_nn");
    }
}
