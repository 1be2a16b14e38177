//! Whole training steps: zero_grad, forward, loss, backward, step, and the loss read back.

use criterion::{Criterion, criterion_group, criterion_main};
use drivetrain::nn::loss::{CrossEntropyLoss, Loss, MseLoss};
use drivetrain::nn::{Conv2d, Flatten, Layer, Linear, MaxPool2d, Module, Relu, Sequential};
use drivetrain::optim::{Adam, Optimizer, Sgd};
use drivetrain::tensor::{Device, Result, Tensor};
use drivetrain_benches::{device, randn};

fn step(
    model: &dyn Layer,
    loss: &dyn Loss,
    optimizer: &mut dyn Optimizer,
    x: &Tensor,
    y: &Tensor,
) -> Result<f32> {
    optimizer.zero_grad();
    let value = loss.forward(&model.forward(x)?, y)?;
    value.backward()?;
    optimizer.step()?;
    value.item::<f32>()
}

fn simple_net(criterion: &mut Criterion, device: &Device) -> Result<()> {
    let model = Linear::new(10, 1, device)?;
    let mut optimizer = Sgd::new(model.parameters(), 0.01);
    let (x, y) = (randn(&[5, 10], device)?, randn(&[5, 1], device)?);
    criterion.bench_function("simple_net", |bencher| {
        bencher.iter(|| step(&model, &MseLoss::new(), &mut optimizer, &x, &y).expect("a step"));
    });
    Ok(())
}

fn mlp(criterion: &mut Criterion, device: &Device) -> Result<()> {
    let model = Sequential::new()
        .add(Linear::new(784, 512, device)?)
        .add(Relu)
        .add(Linear::new(512, 512, device)?)
        .add(Relu)
        .add(Linear::new(512, 10, device)?);
    let mut optimizer = Adam::new(model.parameters(), 1e-3);
    let (x, y) = (
        randn(&[128, 784], device)?,
        Tensor::randint(0, 10, [128], device)?,
    );
    criterion.bench_function("mlp_b128", |bencher| {
        bencher.iter(|| {
            step(&model, &CrossEntropyLoss::new(), &mut optimizer, &x, &y).expect("a step")
        });
    });
    Ok(())
}

fn cnn(criterion: &mut Criterion, device: &Device) -> Result<()> {
    let model = Sequential::new()
        .add(Conv2d::config(3, 64, 3).padding(1).build(device)?)
        .add(Relu)
        .add(MaxPool2d::new(2))
        .add(Conv2d::config(64, 128, 3).padding(1).build(device)?)
        .add(Relu)
        .add(MaxPool2d::new(2))
        .add(Flatten::default())
        .add(Linear::new(8192, 512, device)?)
        .add(Relu)
        .add(Linear::new(512, 10, device)?);
    let mut optimizer = Sgd::new(model.parameters(), 1e-3).momentum(0.9);
    let (x, y) = (
        randn(&[4, 3, 32, 32], device)?,
        Tensor::randint(0, 10, [4], device)?,
    );
    criterion.bench_function("cnn_b4", |bencher| {
        bencher.iter(|| {
            step(&model, &CrossEntropyLoss::new(), &mut optimizer, &x, &y).expect("a step")
        });
    });
    Ok(())
}

fn steps(criterion: &mut Criterion) {
    let device = device().expect("a device that works");
    for family in [simple_net, mlp, cnn] {
        family(criterion, &device).expect("model and data are made");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = steps
}
criterion_main!(benches);
