//! Two devices in one program: moving models, optimizers and saved state, and the errors of mixing.

use drivetrain_core::{DeviceInfo, MemoryStats, Meta, Op, Operand, RawBuffer, backend};
use drivetrain_cpu as _;
use drivetrain_nn::loss::{CrossEntropyLoss, CrossEntropyOptions, Loss, cross_entropy};
use drivetrain_nn::{
    BatchNorm1d, Buffer, Constant, Conv2d, Layer, Linear, Module, Parameter, Sequential, StateDict,
};
use drivetrain_optim::{AdamW, Optimizer};
use drivetrain_tensor::{DType, Device, ErrorKind, Result, Tensor};
use std::sync::Arc;

/// The same engine under another name.
struct Twin(Arc<dyn backend::Device>, DeviceInfo);

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

fn twin() -> Device {
    let engine = cpu().raw().clone();
    let info = DeviceInfo {
        backend: "twin".to_string(),
        single: true,
        ..engine.info().clone()
    };
    Device::new(Arc::new(Twin(engine, info)))
}

impl backend::Device for Twin {
    fn info(&self) -> &DeviceInfo {
        &self.1
    }
    fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        self.0.allocate(bytes)
    }
    fn free(&self, buffer: RawBuffer) {
        self.0.free(buffer);
    }
    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()> {
        self.0.upload(source, buffer, offset)
    }
    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        self.0.download(buffer, offset, target)
    }
    fn supports(&self, op: &Op, inputs: &[Meta]) -> bool {
        self.0.supports(op, inputs)
    }
    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        self.0.execute(op, inputs, in_place, outputs)
    }
    fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }
    fn memory(&self) -> MemoryStats {
        self.0.memory()
    }
}

fn zeros(shape: &[usize], device: &Device) -> Tensor {
    Tensor::zeros(shape, DType::F32, device).unwrap()
}

#[test]
fn mixing_devices_names_both_and_what_to_do() -> Result<()> {
    let other = twin();
    let names_both = |error: drivetrain_tensor::Error, operation: &str| {
        assert_eq!(error.kind(), ErrorKind::Device, "{error}");
        let message = error.to_string();
        for part in [operation, "cpu", "twin", ".to("] {
            assert!(message.contains(part), "{message}");
        }
    };
    let (x, y) = (zeros(&[2, 3], &cpu()), zeros(&[2, 3], &other));
    names_both(x.add(&y).unwrap_err(), "add");
    names_both(y.matmul(&x.t()?).unwrap_err(), "matmul");
    let linear = Linear::new(3, 2, &cpu())?;
    names_both(linear.forward(&y).unwrap_err(), "linear");
    linear.to(&other)?;
    names_both(linear.forward(&x).unwrap_err(), "linear");
    let conv = Conv2d::new(1, 1, 1, &other)?;
    names_both(
        conv.forward(&zeros(&[1, 1, 2, 2], &cpu())).unwrap_err(),
        "conv2d",
    );
    let target = Tensor::zeros([2], DType::I64, &cpu())?;
    names_both(
        cross_entropy(&y, &target, &CrossEntropyOptions::default()).unwrap_err(),
        "cross_entropy",
    );
    let model = Sequential::new()
        .add(Linear::new(3, 3, &cpu())?)
        .add(Linear::new(3, 2, &other)?);
    let message = model.forward(&x).unwrap_err().to_string();
    assert!(message.contains("layer 1"), "{message}");
    Ok(())
}

/// Everything that a module can hold.
#[derive(Module)]
struct Everything {
    weight: Parameter,
    running: Buffer,
    mask: Constant,
    layers: Vec<Linear>,
    norm: Option<BatchNorm1d>,
}

#[test]
fn a_module_moves_whole() -> Result<()> {
    let (home, other) = (cpu(), twin());
    let model = Everything {
        weight: Parameter::new(zeros(&[2], &home))?,
        running: Buffer::new(zeros(&[2], &home)),
        mask: Constant::new(zeros(&[2], &home)),
        layers: vec![Linear::new(2, 2, &home)?, Linear::new(2, 2, &home)?],
        norm: Some(BatchNorm1d::new(2, &home)?),
    };
    model.weight.value().sum(())?.backward()?;
    let x = Tensor::randn([4, 2], DType::F32, &home)?;
    model.eval();
    let before = model.layers[1].forward(&x)?.to_vec::<f32>()?;
    model.to(&other)?;
    model.to(&other)?;
    assert!(model.parameters().iter().all(|p| p.device() == other));
    assert!(model.buffers().iter().all(|b| *b.value().device() == other));
    assert_eq!(model.mask.value().device(), &other);
    assert_eq!(model.weight.grad().unwrap().device(), &other);
    assert_eq!(
        model.layers[1].forward(&x.to(&other)?)?.to_vec::<f32>()?,
        before
    );
    // The mask moves but is not saved.
    assert!(!model.state_dict().names().iter().any(|name| name == "mask"));
    let loss = CrossEntropyLoss {
        weight: Some(Constant::new(Tensor::ones([2], DType::F32, &home)?)),
        ..Default::default()
    };
    loss.to(&other)?;
    let target = Tensor::zeros([4], DType::I64, &other)?;
    assert!(
        loss.forward(&zeros(&[4, 2], &other), &target)?
            .item::<f32>()?
            .is_finite()
    );
    Ok(())
}

fn bowl(w: &Parameter, optimizer: &mut AdamW) -> Result<()> {
    let device = w.device();
    let target = Tensor::from_data([3.0f32, 1.0], &device)?;
    let scale = Tensor::from_data([1.0f32, 10.0], &device)?;
    optimizer.zero_grad();
    w.value()
        .sub(&target)?
        .square()?
        .mul(&scale)?
        .sum(())?
        .backward()?;
    optimizer.step()
}

#[test]
fn training_goes_on_where_it_was_moved() -> Result<()> {
    let other = twin();
    let start = || Parameter::new(Tensor::from_data([1.0f32, -2.0], &cpu())?);
    let never_moved = start()?;
    let mut optimizer = AdamW::new(vec![never_moved.clone()], 0.1);
    (0..5).try_for_each(|_| bowl(&never_moved, &mut optimizer))?;

    // Moved after three steps, with or without moving the optimizer by hand.
    for by_hand in [true, false] {
        let w = start()?;
        let mut optimizer = AdamW::new(vec![w.clone()], 0.1);
        (0..3).try_for_each(|_| bowl(&w, &mut optimizer))?;
        w.to(&other)?;
        if by_hand {
            optimizer.to(&other)?;
        }
        (0..2).try_for_each(|_| bowl(&w, &mut optimizer))?;
        assert_eq!(w.device(), other);
        assert_eq!(
            w.value().to_vec::<f32>()?,
            never_moved.value().to_vec::<f32>()?
        );
    }

    // State saved on one device, loaded where the parameters lie on the other.
    let w = start()?;
    let mut first = AdamW::new(vec![w.clone()], 0.1);
    (0..3).try_for_each(|_| bowl(&w, &mut first))?;
    let moved = Parameter::new(w.value().to(&other)?)?;
    let mut second = AdamW::new(vec![moved.clone()], 0.1);
    second.load_state_dict(&first.state_dict())?;
    assert!(
        second
            .state_dict()
            .tensors
            .iter()
            .all(|(_, t)| *t.device() == other)
    );
    (0..2).try_for_each(|_| bowl(&moved, &mut second))?;
    assert_eq!(
        moved.value().to_vec::<f32>()?,
        never_moved.value().to_vec::<f32>()?
    );
    Ok(())
}

#[test]
fn weights_saved_on_one_device_load_on_another() -> Result<()> {
    let other = twin();
    let path = std::env::temp_dir().join(format!(
        "drivetrain-devices-{}.safetensors",
        std::process::id()
    ));
    let layer = Linear::new(2, 3, &other)?;
    layer.state_dict().save(&path)?;
    let loaded = StateDict::load(&path, &cpu())?;
    assert!(loaded.iter().all(|(_, value)| *value.device() == cpu()));
    let again = Linear::new(2, 3, &other)?;
    again.load_state_dict(&loaded)?;
    assert_eq!(again.weight.device(), other);
    assert_eq!(
        again.weight.value().to_vec::<f32>()?,
        layer.weight.value().to_vec::<f32>()?
    );
    std::fs::remove_file(&path).unwrap();
    let text = format!("{}", again.weight.value());
    assert!(text.contains("device='twin'"), "{text}");
    assert!(!format!("{}", layer.weight.value().cpu()?).contains("device="));
    Ok(())
}

#[test]
fn gradients_flow_between_devices() -> Result<()> {
    let x = Tensor::from_data([1.0f32, 2.0], &cpu())?.requires_grad_()?;
    let loss = x.to(&twin())?.square()?.sum(())?;
    loss.backward()?;
    let grad = x.grad().unwrap();
    assert_eq!(
        (grad.device(), grad.to_vec::<f32>()?),
        (&cpu(), vec![2.0, 4.0])
    );
    Ok(())
}
