//! The README's first program, built against the packed crates.

use drivetrain::prelude::*;

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

fn main() -> Result<()> {
    let device = Device::best()?; // cuda:0 where it works, else cpu
    println!("Using device: {device}");

    let model = SimpleNet::new(&device)?;
    let mut optimizer = Sgd::new(model.parameters(), 0.01);
    let input = Tensor::randn([5, 10], DType::F32, &device)?;
    let target = Tensor::randn([5, 1], DType::F32, &device)?;

    let epochs = 100;
    for epoch in 1..=epochs {
        let output = model.forward(&input)?;
        let loss = mse_loss(&output, &target, Reduction::Mean)?;
        optimizer.zero_grad();
        loss.backward()?;
        optimizer.step()?;
        println!("Epoch {epoch}/{epochs}, Loss: {}", loss.item::<f32>()?);
    }
    println!("Training finished!");
    Ok(())
}
