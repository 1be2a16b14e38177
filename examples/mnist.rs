//! A small convolutional network on handwritten digits: the trainer, a loader with augmentation, a schedule, and
//! weights saved as safetensors.
//!
//! `cargo run --release --example mnist -- --seed 0 --save digits.safetensors`
//!
//! The first 10,000 training images and the whole test set are in `examples/data/mnist`; `--data DIR` takes the full
//! set (its four files, gzip or not).

use drivetrain::prelude::*;
use drivetrain_examples::{Args, Outcome, Program, draw};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EPOCHS: usize = 6;
const BATCH: usize = 64;
/// The highest rate of the schedule.
const RATE: f64 = 0.006;
/// Pixels in a row of a digit, and rows.
const SIDE: usize = 28;

/// Two convolutions, each followed by pooling, and two linear layers.
#[derive(Module)]
struct Net {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    dropout: Dropout,
    fc1: Linear,
    fc2: Linear,
}

impl Net {
    fn new(device: &Device) -> Result<Net> {
        Ok(Net {
            conv1: Conv2d::config(1, 16, 3).padding(1).build(device)?,
            conv2: Conv2d::config(16, 32, 3).padding(1).build(device)?,
            pool: MaxPool2d::new(2),
            dropout: Dropout::new(0.25)?,
            fc1: Linear::new(32 * 7 * 7, 64, device)?,
            fc2: Linear::new(64, 10, device)?,
        })
    }
}

impl Layer for Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.pool.forward(&self.conv1.forward(x)?)?.relu()?; // [N, 16, 14, 14]
        let x = self.pool.forward(&self.conv2.forward(&x)?)?.relu()?; // [N, 32, 7, 7]
        let x = self.dropout.forward(&x.flatten(1, -1)?)?;
        let x = self.fc1.forward(&x)?.relu()?;
        self.fc2.forward(&x)
    }
}

/// Trains, tests, draws a few digits, and prints the accuracy.
pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let device = args.begin(out)?;
    let folder = args.data.clone().unwrap_or_else(bundled);
    let (train, test) = (
        Mnist::open(&folder, Split::Train)?,
        Mnist::open(&folder, Split::Test)?,
    );
    let pictures = test.images().to_vec();

    // Where a digit lies in its frame says nothing about it: training sees each at a new place every epoch.
    let normalize = Normalize::new(&[0.1307], &[0.3081])?;
    let shifted = Compose::new()
        .then(RandomCrop::new(SIDE, SIDE).padding(2))
        .then(ToTensor)
        .then(normalize.clone());
    let plain = Compose::new().then(ToTensor).then(normalize);

    let (samples, epochs) = match args.quick {
        true => (train.len().min(2_000), 2),
        false => (train.len(), EPOCHS),
    };
    let train = DataLoader::builder(train.subset((0..samples).collect())?.transform(shifted))
        .batch_size(BATCH)
        .shuffle(args.seed)
        .drop_last(true)
        .num_workers(1)
        .build()?;
    let test = DataLoader::builder(test.transform(plain))
        .batch_size(500)
        .num_workers(1)
        .build()?;

    let model = Net::new(&device)?;
    writeln!(
        out,
        "{samples} digits to learn from, {} parameters to learn",
        model.num_parameters()
    )?;
    let optimizer = AdamW::new(model.parameters(), RATE);
    let schedule = Schedule::one_cycle(RATE, epochs * train.len());
    let mut trainer = Trainer::new(model, CrossEntropyLoss::new(), optimizer, &device)?
        .metric(Accuracy)
        .schedule(schedule, ScheduleEvery::Step)?;
    trainer.fit(&train, None, epochs)?;

    let evaluation = trainer.evaluate(&test)?;
    if let Some(path) = &args.save {
        let state = trainer.model().state_dict();
        state.save(path)?;
        writeln!(out, "saved {} tensors to {}", state.len(), path.display())?;
    }
    if let Some(batch) = test.iter().next() {
        let (images, labels) = batch?;
        let guesses = trainer.predict(&images)?.argmax(1, false)?;
        show(&pictures, &labels.to_vec()?, &guesses.to_vec()?, out)?;
    }
    let accuracy = evaluation.get("accuracy").unwrap_or(f64::NAN);
    writeln!(out, "test accuracy: {:.1} %", 100.0 * accuracy)?;
    Ok(())
}

/// The digits that come with the examples, wherever the program is started.
fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/mnist")
}

/// Draws the first three digits, and the first that was read wrong.
fn show(
    pictures: &[u8],
    labels: &[i64],
    guesses: &[i64],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let wrong = (3..labels.len()).find(|&i| labels[i] != guesses[i]);
    let drawn: Vec<(&[u8], String)> = (0..labels.len().min(3))
        .chain(wrong)
        .filter_map(|i| {
            let caption = match labels[i] == guesses[i] {
                true => format!("read as {}", guesses[i]),
                false => format!("read as {}, is {}", guesses[i], labels[i]),
            };
            Some((pictures.chunks_exact(SIDE * SIDE).nth(i)?, caption))
        })
        .collect();
    writeln!(out, "{}", draw::side_by_side(&drawn, SIDE, 4))
}

const PROGRAM: Program = Program {
    name: "mnist",
    about: "Trains a small convolutional network on handwritten digits.",
    data: Some("a folder with MNIST's four files (the 10,000 + 10,000 digits that come with it)"),
    save: Some("where to write the weights, as safetensors"),
};

fn main() -> ExitCode {
    PROGRAM.main(run)
}
