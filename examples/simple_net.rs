//! The smallest training loop: one linear layer, the mean squared error, plain gradient descent.
//!
//! `cargo run --release --example simple_net -- --device cpu`

use drivetrain::prelude::*;
use drivetrain_examples::{Args, Outcome, Program};
use std::io::Write;
use std::process::ExitCode;

#[derive(Module)]
struct SimpleNet {
    fc: Linear,
}

impl SimpleNet {
    fn new(device: &Device) -> Result<SimpleNet> {
        let fc = Linear::new(10, 1, device)?;
        Ok(SimpleNet { fc })
    }

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.fc.forward(input)
    }
}

/// Trains and prints the loss of every epoch.
pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let device = args.begin(out)?; // Device::best(), or the one that --device names

    let model = SimpleNet::new(&device)?;
    let mut optimizer = Sgd::new(model.parameters(), 0.01);
    let input = Tensor::randn([5, 10], DType::F32, &device)?;
    let target = Tensor::randn([5, 1], DType::F32, &device)?;

    let epochs = if args.quick { 20 } else { 100 };
    for epoch in 1..=epochs {
        let output = model.forward(&input)?;
        let loss = mse_loss(&output, &target, Reduction::Mean)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        let loss = loss.item::<f32>()?;
        writeln!(out, "Epoch {epoch}/{epochs}, Loss: {loss:.4}")?;
    }
    writeln!(out, "Training finished!")?;
    Ok(())
}

const PROGRAM: Program = Program {
    name: "simple_net",
    about: "Trains one linear layer on random numbers.",
    data: None,
    save: None,
};

fn main() -> ExitCode {
    PROGRAM.main(run)
}
