//! The classic network on CIFAR-10's pictures, with the loop written out.
//!
//! `cargo run --release --example cifar10 -- --data DIR` reads the official binary files (or their folder
//! `cifar-10-batches-bin`). Without `--data` it draws pictures of ten shapes into files of the same layout.

use drivetrain::prelude::*;
use drivetrain_examples::{Args, Outcome, Program, shapes};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Two convolutions, each followed by pooling, and two linear layers.
#[derive(Module)]
struct Net {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    fc1: Linear,
    fc2: Linear,
}

impl Net {
    fn new(device: &Device) -> Result<Net> {
        Ok(Net {
            conv1: Conv2d::config(3, 64, 3).padding(1).build(device)?,
            conv2: Conv2d::config(64, 128, 3).padding(1).build(device)?,
            pool: MaxPool2d::new(2),
            fc1: Linear::new(128 * 8 * 8, 512, device)?,
            fc2: Linear::new(512, 10, device)?,
        })
    }
}

impl Layer for Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.pool.forward(&self.conv1.forward(x)?.relu()?)?; // [N, 64, 16, 16]
        let x = self.pool.forward(&self.conv2.forward(&x)?.relu()?)?; // [N, 128, 8, 8]
        // Dimension 0, the batch, stays: see what `view([-1, 128 * 8 * 8])` does after one pooling in tests/cifar10.rs.
        let x = x.flatten(1, -1)?;
        self.fc2.forward(&self.fc1.forward(&x)?.relu()?)
    }
}

/// Trains on the pictures of `--data`, or on drawn ones.
pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let device = args.begin(out)?;
    let (train, test, every, epochs) = match args.quick {
        true => (400, 100, 50, 1),
        false => (10_000, 1_000, 2_000, 2),
    };
    match &args.data {
        Some(folder) => learn(folder, args.seed, (every, epochs), &device, out),
        None => {
            writeln!(out, "no --data: {train} drawn pictures of ten shapes")?;
            let drawn = shapes::Folder::draw(args.seed, train, test)?;
            learn(drawn.path(), args.seed, (every, epochs), &device, out)
        }
    }
}

/// Trains on the files in `folder`, says the mean loss of every so many batches, and ends with the test accuracy.
fn learn(
    folder: &Path,
    seed: u64,
    (every, epochs): (usize, usize),
    device: &Device,
    out: &mut dyn Write,
) -> Outcome {
    let half = || Normalize::new(&[0.5, 0.5, 0.5], &[0.5, 0.5, 0.5]);
    let train = Cifar10::open(folder, Split::Train)?;
    let train = train.transform(Compose::new().then(ToTensor).then(half()?));
    let train = DataLoader::builder(train)
        .batch_size(4)
        .shuffle(seed)
        .num_workers(2)
        .build()?;
    let test = Cifar10::open(folder, Split::Test)?;
    let test = test.transform(Compose::new().then(ToTensor).then(half()?));
    let test = DataLoader::builder(test)
        .batch_size(100)
        .num_workers(2)
        .build()?;

    let model = Net::new(device)?;
    let criterion = CrossEntropyLoss::new();
    let mut optimizer = Sgd::new(model.parameters(), 0.001).momentum(0.9);
    for epoch in 1..=epochs {
        let mut running = RunningMean::new();
        for (i, batch) in train.iter().enumerate() {
            let (images, labels) = batch?;
            let (images, labels) = (images.to(device)?, labels.to(device)?);
            let loss = criterion.forward(&model.forward(&images)?, &labels)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            running.add(loss.item()?, 1.0);
            if (i + 1) % every == 0 {
                writeln!(out, "[{epoch}, {}] loss: {:.3}", i + 1, running.value())?;
                running = RunningMean::new();
            }
        }
    }
    writeln!(out, "Training finished!")?;

    model.eval();
    let (mut right, mut seen) = (0.0, 0);
    for batch in &test {
        let (images, labels) = batch?;
        let (images, labels) = (images.to(device)?, labels.to(device)?);
        let guesses = no_grad(|| model.forward(&images)?.argmax(1, false))?;
        right += guesses.eq(&labels)?.sum(())?.item::<f64>()?;
        seen += labels.len();
    }
    let share = 100.0 * right / seen as f64;
    writeln!(out, "test accuracy: {share:.1} %")?;
    Ok(())
}

const PROGRAM: Program = Program {
    name: "cifar10",
    about: "Trains a convolutional network on CIFAR-10, or on drawn shapes.",
    data: Some("a folder with CIFAR-10's official binary files (pictures are drawn)"),
    save: None,
};

fn main() -> ExitCode {
    PROGRAM.main(run)
}
