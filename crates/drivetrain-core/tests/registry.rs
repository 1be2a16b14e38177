//! The registry on toy backends: names, numbers, absence, choice.

mod toy;

use drivetrain_core::{Candidate, Error, ErrorKind, Registry};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use toy::Toy;

fn registry(toys: Vec<Toy>) -> Registry {
    let registry = Registry::new();
    for toy in toys {
        registry.register(Arc::new(toy)).unwrap();
    }
    registry
}

fn one_of_each() -> Registry {
    let mut cpu = Toy::new("cpu", 1, 100);
    cpu.single = true;
    registry(vec![cpu, Toy::new("cuda", 1, 1000)])
}

#[track_caller]
fn refused(registry: &Registry, name: &str, words: &[&str]) -> Error {
    let error = registry.open(name).unwrap_err();
    let message = error.to_string();
    for word in words.iter().chain(&[format!("{name:?}").as_str()]) {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    error
}

#[test]
fn devices_open_by_name_and_once() {
    let registry = one_of_each();
    let cpu = registry.open("cpu").unwrap();
    assert_eq!(cpu.label(), "cpu");
    assert_eq!(cpu, registry.open("cpu:0").unwrap());
    let cuda = registry.open("cuda").unwrap();
    assert_eq!(cuda.to_string(), "cuda:0");
    assert_eq!(cuda, registry.open("cuda:0").unwrap());
    assert_ne!(cpu, cuda);
    assert_eq!(registry.open("auto").unwrap(), cuda);
}

#[test]
fn names_that_are_no_names_are_quoted() {
    let registry = one_of_each();
    for name in [
        "cuda:",
        "cuda:-1",
        "cuda:0x1",
        "CUDA:0",
        " cpu ",
        "",
        ":0",
        "cpu:1:2",
        "cuda:+1",
        "cuda:99999999999999999999",
    ] {
        let error = refused(&registry, name, &["lower case", "cpu, cuda:0"][..1]);
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(
            error.to_string().contains("available: cuda:0, cpu"),
            "{error}"
        );
    }
}

#[test]
fn numbers_that_are_not_there_are_counted() {
    let registry = one_of_each();
    let error = refused(&registry, "cuda:7", &["1 device: cuda:0"]);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    refused(&registry, "cpu:3", &["1 device: cpu"]);
    refused(
        &registry,
        "tpu",
        &["no backend named", "available: cuda:0, cpu"],
    );
    let none = self::registry(vec![Toy::new("empty", 0, 1)]);
    refused(&none, "empty:0", &["0 devices: none"]);
    let nothing = Registry::new();
    refused(&nothing, "cpu", &["no backend is linked"]);
}

#[test]
fn backend_names_do_not_clash_and_have_a_form() {
    let registry = one_of_each();
    let clash = registry
        .register(Arc::new(Toy::new("cuda", 1, 1)))
        .unwrap_err();
    assert!(
        clash.to_string().contains("\"cuda\" is there already"),
        "{clash}"
    );
    for name in ["CPU", "", "my:dev", "auto", "1st", "a b", "ä"] {
        let error = registry
            .register(Arc::new(Toy::new(name, 1, 1)))
            .unwrap_err();
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        assert!(error.to_string().contains("lower-case letters"), "{error}");
    }
    assert_eq!(registry.names(), ["cpu", "cuda"]);
    registry.open("cpu").unwrap().self_test().unwrap();
}

#[test]
fn an_absent_backend_says_why() {
    let mut gone = Toy::new("cuda", 1, 1000);
    gone.switches.absent = Some("driver library not found".into());
    let registry = registry(vec![Toy::new("cpu", 1, 100), gone]);
    refused(
        &registry,
        "cuda:0",
        &[
            "not available",
            "driver library not found",
            "available: cpu:0",
        ],
    );
    let candidates = registry.candidates();
    assert!(matches!(&candidates[0], Candidate::Present(info) if info.backend == "cpu"));
    assert!(matches!(&candidates[1], Candidate::Absent { backend, .. } if backend == "cuda"));
    assert_eq!(registry.best().unwrap().label(), "cpu:0");
    assert!(registry.notes()[0].contains("driver library not found"));
}

#[test]
fn best_passes_over_what_does_not_work() {
    let (mut wrong, mut closed) = (Toy::new("wrong", 1, 3000), Toy::new("closed", 1, 2000));
    wrong.switches.wrong = true;
    closed.switches.closed = true;
    let registry = registry(vec![Toy::new("plain", 2, 100), closed, wrong]);
    assert_eq!(registry.best().unwrap().label(), "plain:0");
    let notes = registry.notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("wrong:0") && notes[0].contains("1.5 + 2.25 gave -0.75"));
    assert!(notes[1].starts_with("closed:0") && notes[1].contains("does not start"));
    registry.best().unwrap();
    assert_eq!(registry.notes(), notes, "the same note twice");
    let labels: Vec<String> = registry.all().iter().map(ToString::to_string).collect();
    assert_eq!(labels, ["wrong:0", "plain:0", "plain:1"]);
}

#[test]
fn nothing_works_is_an_error() {
    let mut closed = Toy::new("closed", 1, 1);
    closed.switches.closed = true;
    let error = registry(vec![closed]).best().unwrap_err().to_string();
    assert!(
        error.contains("no device works") && error.contains("does not start"),
        "{error}"
    );
}

#[test]
fn threads_open_a_device_once() {
    let toy = Toy::new("cuda", 4, 1);
    let opened = toy.opened.clone();
    let registry = registry(vec![toy]);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let registry = &registry;
            scope.spawn(move || registry.open(&format!("cuda:{}", i % 2)).unwrap());
        }
    });
    assert_eq!(opened.load(Ordering::Relaxed), 2);
}
