//! `cifar10 --quick` on drawn shapes, and what happens to the network that pools once.

#[allow(dead_code)]
#[path = "../cifar10.rs"]
mod cifar10;

use drivetrain::prelude::*;
use drivetrain_examples::Args;

#[test]
fn quick_run_prints_losses_and_learns() {
    let args = Args {
        device: Some("cpu".to_string()),
        quick: true,
        ..Args::default()
    };
    let mut out = Vec::new();
    cifar10::run(&args, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Using device: cpu");
    let losses: Vec<f64> = ["[1, 50] loss: ", "[1, 100] loss: "]
        .iter()
        .zip(&lines[2..4])
        .map(|(start, line)| line.strip_prefix(start).unwrap().parse().unwrap())
        .collect();
    assert!(losses[1] < losses[0], "{text}");
    assert_eq!(lines[4], "Training finished!");
    let last = lines[5].strip_prefix("test accuracy: ").unwrap();
    let accuracy: f64 = last.strip_suffix(" %").unwrap().parse().unwrap();
    assert!((0.0..=100.0).contains(&accuracy), "{text}");
    assert_eq!(lines.len(), 6);
}

/// The network as it is often written down: one pooling, and a `view` that makes 16 rows of 4 pictures.
#[derive(Module)]
struct PoolsOnce {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
}

impl PoolsOnce {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.conv1.forward(x)?.relu()?;
        let x = self.conv2.forward(&x)?.relu()?;
        let x = MaxPool2d::new(2).forward(&x)?; // [4, 128, 16, 16]
        let x = x.view([-1, 128 * 8 * 8])?;
        self.fc2.forward(&self.fc1.forward(&x)?.relu()?)
    }
}

#[test]
fn the_network_that_pools_once_is_told_where_to_look() -> Result<()> {
    let device = Device::open("cpu")?;
    let model = PoolsOnce {
        conv1: Conv2d::config(3, 64, 3).padding(1).build(&device)?,
        conv2: Conv2d::config(64, 128, 3).padding(1).build(&device)?,
        fc1: Linear::new(128 * 8 * 8, 32, &device)?,
        fc2: Linear::new(32, 10, &device)?,
    };
    let images = Tensor::zeros([4, 3, 32, 32], DType::F32, &device)?;
    let labels = Tensor::from_data([0i64, 1, 2, 3], &device)?;
    let output = model.forward(&images)?;
    assert_eq!(output.dims(), [16, 10]);
    let error = CrossEntropyLoss::new()
        .forward(&output, &labels)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("input batch size 16 does not match target batch size 4"),
        "{error}"
    );
    assert!(error.contains("flatten/view"), "{error}");
    Ok(())
}
