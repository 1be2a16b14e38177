//! Memory after errors and over many rounds. One test alone in its program: others would move the statistics.

use drivetrain_cpu as _;
use drivetrain_nn::loss::{Reduction, mse_loss};
use drivetrain_nn::{Layer, Linear, Module, Relu, Sequential, StateDict};
use drivetrain_optim::{AdamW, Optimizer};
use drivetrain_tensor::{DType, Device, ErrorKind, Result, Tensor};

fn model(device: &Device) -> Result<Sequential> {
    Ok(Sequential::new()
        .add(Linear::new(64, 64, device)?)
        .add(Relu)
        .add(Linear::new(64, 1, device)?))
}

fn step(model: &Sequential, optimizer: &mut AdamW, batch: usize) -> Result<f64> {
    let device = model.parameters()[0].device();
    let x = Tensor::ones([batch, 64], DType::F32, &device)?;
    let y = Tensor::zeros([batch, 1], DType::F32, &device)?;
    optimizer.zero_grad();
    let loss = mse_loss(&model.forward(&x)?, &y, Reduction::Mean)?;
    loss.backward()?;
    optimizer.step()?;
    loss.item::<f64>()
}

fn out_of_memory_leaves_nothing_behind(device: &Device) -> Result<()> {
    device.set_memory_limit(Some(64 << 20));
    let model = model(device)?;
    // A rate of 0: every step has the same right loss.
    let mut optimizer = AdamW::new(model.parameters(), 0.0);
    let want = step(&model, &mut optimizer, 2)?;
    optimizer.zero_grad();
    let in_use = device.memory().in_use;
    for round in 0..20 {
        let huge = Tensor::zeros([1 << 38], DType::F32, device).unwrap_err();
        assert_eq!(huge.kind(), ErrorKind::OutOfMemory);
        assert!(huge.to_string().contains("1099511627776"), "{huge}");
        // The input fits, the activations do not.
        let error = step(&model, &mut optimizer, 120_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        optimizer.zero_grad();
        assert_eq!(device.memory().in_use, in_use, "round {round}");
        assert_eq!(step(&model, &mut optimizer, 2)?, want);
        optimizer.zero_grad();
    }
    device.set_memory_limit(None);
    Ok(())
}

fn rounds_leak_nothing(device: &Device) -> Result<()> {
    let round = || -> Result<()> {
        let device = Device::open(device.label())?;
        let model = model(&device)?;
        let mut optimizer = AdamW::new(model.parameters(), 0.01);
        step(&model, &mut optimizer, 4)?;
        let mut bad = StateDict::new();
        bad.insert("0.weight", Tensor::zeros([1], DType::F32, &device)?);
        assert!(model.load_state_dict(&bad).is_err());
        Ok(())
    };
    round()?;
    let (live, stats) = (Device::live_buffers(), device.memory());
    (0..2000).try_for_each(|_| round())?;
    assert_eq!(Device::live_buffers(), live);
    assert_eq!(device.memory().in_use, stats.in_use);
    assert_eq!(device.memory().reserved, stats.reserved);
    Ok(())
}

#[test]
fn memory_comes_back() -> Result<()> {
    let device = Device::open("cpu")?;
    out_of_memory_leaves_nothing_behind(&device)?;
    rounds_leak_nothing(&device)
}
