//! Bad and good samples for the layering check.

use super::super::tree;

fn faults(path: &str, text: &str) -> Vec<String> {
    super::check(&tree(&[
        (path, text),
        ("backends/tpu/src/lib.rs", "//! Another engine."),
    ]))
}

#[test]
fn names_above_the_backends_are_found() {
    for bad in [
        "fn a() { open(\"cpu\") }",
        "fn a() { open(\"cuda:1\") }",
        "fn a() { open(\"tpu\") }",
        "use drivetrain_cpu as _;",
        "#[cfg(feature = \"cpu\")]\nextern crate drivetrain_cpu as _;",
        "fn a() { help(\"add drivetrain_cuda\") }",
        "fn a() { help(\"add drivetrain-dfdx\") }",
        "fn a() {}\n#[cfg(test)]\nmod tests {}\nfn b() { open(\"cpu\") }",
    ] {
        assert!(
            !faults("crates/drivetrain-nn/src/a.rs", bad).is_empty(),
            "{bad}"
        );
    }
}

#[test]
fn tests_comments_and_other_words_are_free() {
    for good in [
        "/// ```\n/// use drivetrain_cpu as _;\n/// open(\"cpu\");\n/// ```\nfn a() {}",
        "#[cfg(test)]\nmod tests {\n    use drivetrain_cpu as _;\n    fn b() { open(\"cpu\") }\n}",
        "fn a() { print(\"cpus\", \"the cpu\", \"cpu:x\") }",
        "use drivetrain_core as _;",
    ] {
        assert_eq!(
            faults("crates/drivetrain-nn/src/a.rs", good),
            Vec::<String>::new(),
            "{good}"
        );
    }
    assert!(
        faults(
            "crates/drivetrain-nn/tests/a.rs",
            "use drivetrain_cpu as _;"
        )
        .is_empty()
    );
    assert!(faults("backends/cpu/src/a.rs", "name(\"cpu\")").is_empty());
    assert!(faults("examples/mnist.rs", "open(\"cuda:0\")").is_empty());
}

#[test]
fn tensor_names_the_cpu_once() {
    let path = "crates/drivetrain-tensor/src/tensor.rs";
    assert!(faults(path, "fn cpu() { open(\"cpu\") }").is_empty());
    assert_eq!(
        faults(path, "fn cpu() { open(\"cpu\"); open(\"cpu\") }").len(),
        1
    );
    assert_eq!(faults(path, "fn cuda() { open(\"cuda\") }").len(), 1);
}

#[test]
fn the_facade_links_by_feature_only() {
    let path = "crates/drivetrain/src/lib.rs";
    assert!(
        faults(
            path,
            "#[cfg(feature = \"cpu\")]\nextern crate drivetrain_cpu as _;"
        )
        .is_empty()
    );
    assert_eq!(faults(path, "extern crate drivetrain_cpu as _;").len(), 1);
    assert_eq!(
        faults(
            path,
            "#[cfg(feature = \"cpu\")]\nuse drivetrain_cpu::Thing;"
        )
        .len(),
        1
    );
}

#[test]
fn manifests_depend_on_backends_for_tests_only() {
    let nn = "crates/drivetrain-nn/Cargo.toml";
    let facade = "crates/drivetrain/Cargo.toml";
    for bad in [
        "[dependencies]\ndrivetrain-cpu.workspace = true",
        "[dependencies.drivetrain-cuda]\nversion = \"1\"",
        "[target.'cfg(unix)'.dependencies]\ndrivetrain-tpu = \"1\"",
        "[dependencies]\ndrivetrain-cpu = { workspace = true, optional = true }",
        "[dependencies]\ndrivetrain.workspace = true",
    ] {
        assert_eq!(faults(nn, bad).len(), 1, "{bad}");
    }
    assert!(
        faults(
            nn,
            "[dev-dependencies]\ndrivetrain-cpu = { path = \"x\" }\ndrivetrain.workspace = true"
        )
        .is_empty()
    );
    assert!(
        faults(
            nn,
            "[dependencies]\ndrivetrain-core.workspace = true\n# drivetrain-cpu = 1"
        )
        .is_empty()
    );
    assert!(
        faults(
            facade,
            "[dependencies]\ndrivetrain-cpu = { workspace = true, optional = true }"
        )
        .is_empty()
    );
    assert_eq!(
        faults(
            facade,
            "[dependencies]\ndrivetrain-cpu = { workspace = true }"
        )
        .len(),
        1
    );
    assert!(
        faults(
            "crates/drivetrain-cli/Cargo.toml",
            "[dependencies]\ndrivetrain.workspace = true"
        )
        .is_empty()
    );
}
