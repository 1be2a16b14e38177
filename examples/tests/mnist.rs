//! `mnist --quick` learns from the bundled digits, saves what it learned, and ends with the accuracy.

#[allow(dead_code)]
#[path = "../mnist.rs"]
mod mnist;

use drivetrain::prelude::{Device, StateDict};
use drivetrain_examples::Args;

#[test]
fn quick_run_learns_draws_and_saves() {
    let path = std::env::temp_dir().join(format!(
        "drivetrain-mnist-{}.safetensors",
        std::process::id()
    ));
    let args = Args {
        device: Some("cpu".to_string()),
        seed: 3,
        quick: true,
        save: Some(path.clone()),
        ..Args::default()
    };
    let mut out = Vec::new();
    mnist::run(&args, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Using device: cpu");
    assert!(lines[1].starts_with("2000 digits to learn from"), "{text}");
    let last = lines.last().unwrap().strip_prefix("test accuracy: ");
    let accuracy: f64 = last.unwrap().strip_suffix(" %").unwrap().parse().unwrap();
    assert!((85.0..=100.0).contains(&accuracy), "{text}");

    // Ten lines of ink stand above what was read.
    let captions = lines
        .iter()
        .position(|line| line.trim_start().starts_with("read as"));
    let drawn = &lines[captions.unwrap() - 10..captions.unwrap()];
    assert!(drawn.iter().any(|line| line.contains('%')), "{text}");

    let state = StateDict::load(&path, &Device::open("cpu").unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(state.len(), 8);
    assert_eq!(state.get("conv1.weight").unwrap().dims(), [16, 1, 3, 3]);
    let saved = format!("saved 8 tensors to {}", path.display());
    assert!(text.contains(&saved), "{text}");
}

#[test]
fn a_folder_without_the_files_is_an_error_that_names_it() {
    let args = Args {
        device: Some("cpu".to_string()),
        data: Some("no/such/folder".into()),
        ..Args::default()
    };
    let error = mnist::run(&args, &mut Vec::new()).unwrap_err().to_string();
    assert!(
        error.contains("no/such/folder/train-images-idx3-ubyte"),
        "{error}"
    );
}
