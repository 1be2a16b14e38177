//! Modules as a whole: names, moving, saving, loading, modes, tied weights.

use drivetrain_cpu as _;
use drivetrain_nn::loss::{CrossEntropyOptions, Reduction, cross_entropy, mse_loss};
use drivetrain_nn::*;
use drivetrain_tensor::{DType, Device, Result, Tensor, with_seed};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

fn close(got: &Tensor, want: &[f64], tolerance: f64) {
    let got = got.to_f64_vec().unwrap();
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() <= tolerance, "{got:?} is not {want:?}");
    }
}

#[derive(Module)]
struct Tied {
    embedding: Embedding,
    output: Linear,
}

fn tied() -> Tied {
    let embedding = Embedding::new(4, 4, &cpu()).unwrap();
    let output = Linear {
        weight: embedding.weight.clone(),
        bias: None,
    };
    Tied { embedding, output }
}

#[test]
fn tied_weights_are_one_parameter_under_two_names() -> Result<()> {
    let model = tied();
    assert_eq!(model.parameters().len(), 1);
    let state = model.state_dict();
    assert_eq!(state.names(), ["embedding.weight", "output.weight"]);
    let fresh = tied();
    fresh.load_state_dict(&state)?;
    assert_eq!(
        fresh.embedding.weight.value().to_vec::<f32>()?,
        model.output.weight.value().to_vec::<f32>()?
    );
    assert_eq!(fresh.embedding.weight.id(), fresh.output.weight.id());
    Ok(())
}

#[test]
fn loading_is_all_or_nothing_and_names_everything() -> Result<()> {
    let layer = Linear::new(2, 2, &cpu())?;
    let before = layer.state_dict();
    let ones = |shape: &[usize]| Tensor::ones(shape, DType::F32, &cpu()).unwrap();
    let mut state = StateDict::new();
    state.insert("weight", ones(&[3]));
    state.insert("extra", ones(&[1]));
    let message = layer.load_state_dict(&state).unwrap_err().to_string();
    for part in [
        "missing: bias",
        "unexpected: extra",
        "weight",
        "[2, 2]",
        "[3]",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(
        layer.weight.value().to_vec::<f32>()?,
        before.get("weight").unwrap().to_vec::<f32>()?
    );
    let report = layer.load_state_dict_partial(&state)?;
    assert_eq!(
        (
            report.missing.len(),
            report.unexpected.len(),
            report.mismatched.len()
        ),
        (1, 1, 1)
    );
    Ok(())
}

#[test]
fn loading_keeps_the_modules_dtype() -> Result<()> {
    let layer = Linear::config(2, 1).bias(false).build(&cpu())?;
    let value = Tensor::from_data([[1.0f32, -2.5]], &cpu())?.to_dtype(DType::BF16)?;
    layer.load_state_dict(&StateDict::from_iter([("weight", value)]))?;
    assert_eq!(layer.weight.dtype(), DType::F32);
    assert_eq!(layer.weight.value().to_vec::<f32>()?, [1.0, -2.5]);
    Ok(())
}

#[test]
fn a_saved_model_comes_back_and_its_bytes_repeat() -> Result<()> {
    let build = || -> Result<Sequential> {
        Ok(Sequential::new()
            .add(Linear::new(3, 4, &cpu())?)
            .add(BatchNorm1d::new(4, &cpu())?)
            .add(Relu)
            .add(Linear::new(4, 2, &cpu())?))
    };
    let model = build()?;
    let folder = std::env::temp_dir().join(format!("drivetrain-nn-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (one, two) = (
        folder.join("one.safetensors"),
        folder.join("two.safetensors"),
    );
    let _ = model.forward(&Tensor::randn([8, 3], DType::F32, &cpu())?)?;
    model.state_dict().save(&one)?;
    model.state_dict().save(&two)?;
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
    let other = build()?;
    other.load_state_dict(&StateDict::load(&one, &cpu())?)?;
    let x = Tensor::randn([5, 3], DType::F32, &cpu())?;
    model.eval();
    other.eval();
    assert_eq!(
        model.forward(&x)?.to_vec::<f32>()?,
        other.forward(&x)?.to_vec::<f32>()?
    );
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}

#[test]
fn batch_norm_keeps_unbiased_running_statistics() -> Result<()> {
    let norm = BatchNorm1d::new(1, &cpu())?;
    let x = Tensor::from_data([[1.0f32], [2.0], [3.0], [6.0]], &cpu())?;
    close(
        &norm.forward(&x)?,
        &[-1.0690434, -0.5345217, 0.0, 1.6035651],
        1e-5,
    );
    close(&norm.running_mean().value(), &[0.3], 1e-6);
    close(&norm.running_var().value(), &[1.366_666_7], 1e-6);
    norm.eval();
    let want = [0.5987771, 1.4541729, 2.3095686, 4.8757563];
    close(&norm.forward(&x)?, &want, 1e-5);
    for (i, want) in want.iter().enumerate() {
        close(&norm.forward(&x.narrow(0, i, 1)?)?, &[*want], 1e-5);
    }
    let names: Vec<String> = norm
        .named_buffers()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        ["running_mean", "running_var", "num_batches_tracked"]
    );
    Ok(())
}

#[test]
fn batch_norm_refuses_one_value_a_channel_and_keeps_its_statistics() -> Result<()> {
    let norm = BatchNorm1d::new(2, &cpu())?;
    let one = Tensor::ones([1, 2], DType::F32, &cpu())?;
    let message = norm.forward(&one).unwrap_err().to_string();
    assert!(
        message.contains("more than one value per channel"),
        "{message}"
    );
    close(&norm.running_var().value(), &[1.0, 1.0], 0.0);
    norm.eval();
    let _ = norm.forward(&one)?;
    let image = BatchNorm2d::new(2, &cpu())?;
    assert!(
        image
            .forward(&Tensor::ones([1, 2, 1, 1], DType::F32, &cpu())?)
            .is_err()
    );
    let _ = image.forward(&Tensor::ones([1, 2, 2, 2], DType::F32, &cpu())?)?;
    Ok(())
}

#[test]
fn losses_refuse_shapes_that_would_broadcast() -> Result<()> {
    let prediction = Tensor::from_data([[1.0f32], [2.0], [3.0]], &cpu())?;
    let target = Tensor::from_data([1.0f32, 2.0, 3.0], &cpu())?;
    let message = mse_loss(&prediction, &target, Reduction::Mean)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("[3, 1]") && message.contains("[3]"),
        "{message}"
    );
    Ok(())
}

#[test]
fn cross_entropy_explains_a_flattened_batch() -> Result<()> {
    let logits = Tensor::zeros([16, 10], DType::F32, &cpu())?;
    let target = Tensor::zeros([4], DType::I64, &cpu())?;
    let message = cross_entropy(&logits, &target, &CrossEntropyOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("16") && message.contains('4') && message.contains("flatten"),
        "{message}"
    );
    Ok(())
}

#[test]
fn cross_entropy_ignores_what_it_is_told_to() -> Result<()> {
    let logits =
        Tensor::from_data([[1.0f32, 2.0], [0.0, 5.0], [3.0, 1.0]], &cpu())?.requires_grad_()?;
    for ignore in [-100, 255] {
        logits.zero_grad();
        let target = Tensor::from_data([1i64, ignore, 0], &cpu())?;
        let options = |reduction| CrossEntropyOptions {
            reduction,
            ignore_index: ignore,
            ..Default::default()
        };
        let loss = cross_entropy(&logits, &target, &options(Reduction::Mean))?;
        close(&loss, &[0.2200949], 1e-6);
        close(
            &cross_entropy(&logits, &target, &options(Reduction::Sum))?,
            &[0.4401897],
            1e-6,
        );
        close(
            &cross_entropy(&logits, &target, &options(Reduction::None))?,
            &[0.3132617, 0.0, 0.1269280],
            1e-6,
        );
        loss.backward()?;
        close(
            &logits.grad().unwrap(),
            &[0.1344707, -0.1344707, 0.0, 0.0, -0.0596015, 0.0596015],
            1e-6,
        );
    }
    Ok(())
}

#[test]
fn embedding_leaves_its_padding_row_alone() -> Result<()> {
    let table = Embedding::config(4, 2).padding_idx(0).build(&cpu())?;
    let ids: Vec<i64> = std::iter::repeat_n(0, 1000).chain([1, 1, 3]).collect();
    table
        .forward(&Tensor::from_slice(&ids, [1003], &cpu())?)?
        .sum(())?
        .backward()?;
    close(
        &table.weight.grad().unwrap(),
        &[0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 1.0, 1.0],
        0.0,
    );
    Ok(())
}

#[test]
fn dropout_is_off_in_evaluation_and_keeps_the_mean() -> Result<()> {
    let dropout = Dropout::new(0.25)?;
    let x = Tensor::ones([10_000], DType::F32, &cpu())?;
    let mean = dropout.forward(&x)?.mean(())?.item::<f64>()?;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
    dropout.eval();
    assert_eq!(dropout.forward(&x)?.mean(())?.item::<f64>()?, 1.0);
    assert!(Dropout::new(1.5).is_err());
    Ok(())
}

#[test]
fn seeds_fix_initial_weights() -> Result<()> {
    let weights = || -> Result<Vec<f32>> {
        let layer = with_seed(3, || Conv2d::new(2, 3, 3, &cpu()))?;
        layer.weight.value().to_vec::<f32>()
    };
    assert_eq!(weights()?, weights()?);
    let q = init::orthogonal([3, 5], 1.0, DType::F64, &cpu())?;
    let eye = Tensor::eye(3, DType::F64, &cpu())?.to_f64_vec()?;
    close(&q.matmul(&q.t()?)?, &eye, 1e-12);
    Ok(())
}

#[test]
fn recurrent_layers_run_in_both_directions_and_depths() -> Result<()> {
    let x = Tensor::randn([5, 3, 4], DType::F32, &cpu())?;
    let lstm = Lstm::config(4, 6)
        .layers(2)
        .bidirectional(true)
        .lstm(&cpu())?;
    let (y, state) = lstm.forward_with(&x, None)?;
    assert_eq!(y.dims(), [5, 3, 12]);
    assert_eq!(state.cell.dims(), [4, 3, 6]);
    let gru = Gru::config(4, 6).batch_first(true).gru(&cpu())?;
    assert_eq!(gru.forward(&x)?.dims(), [5, 3, 6]);
    let message = gru.forward(&x.narrow(2, 0, 3)?).unwrap_err().to_string();
    assert!(
        message.contains("[5, 3, 3]") && message.contains('4'),
        "{message}"
    );
    // Half of the sequence, then the other half from its state: the same as all at once.
    let one = Lstm::new(4, 6, &cpu())?;
    let (whole, _) = one.forward_with(&x, None)?;
    let (first, state) = one.forward_with(&x.narrow(0, 0, 2)?, None)?;
    let (second, _) = one.forward_with(&x.narrow(0, 2, 3)?, Some(&state))?;
    close(
        &Tensor::cat(&[&first, &second], 0)?,
        &whole.to_f64_vec()?,
        1e-6,
    );
    Ok(())
}

#[test]
fn modules_are_shared_between_threads() -> Result<()> {
    fn check<T: Send + Sync>() {}
    check::<Sequential>();
    check::<Lstm>();
    check::<MultiheadAttention>();
    check::<TransformerEncoderLayer>();
    check::<BatchNorm2d>();
    let model = Sequential::new()
        .add(Linear::new(4, 8, &cpu())?)
        .add(Tanh)
        .add(Linear::new(8, 2, &cpu())?);
    let x = Tensor::randn([3, 4], DType::F32, &cpu())?;
    let want = model.forward(&x)?.to_vec::<f32>()?;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(model.forward(&x).unwrap().to_vec::<f32>().unwrap(), want);
                }
            });
        }
    });
    Ok(())
}

#[test]
fn errors_name_the_layer() -> Result<()> {
    let model = Sequential::new()
        .add(Flatten::default())
        .add(Linear::new(10, 2, &cpu())?);
    let message = model
        .forward(&Tensor::zeros([2, 3, 4], DType::F32, &cpu())?)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("layer 1") && message.contains("12") && message.contains("10"),
        "{message}"
    );
    Ok(())
}
