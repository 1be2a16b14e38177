//! The trainer on small models: it learns, records, leaves evaluation without a trace, and names what fails.

use drivetrain_core::Error;
use drivetrain_cpu as _;
use drivetrain_nn::loss::{CrossEntropyLoss, MseLoss};
use drivetrain_nn::{BatchNorm1d, Dropout, Layer, Linear, Module, Relu, Sequential};
use drivetrain_optim::{Adam, Optimizer, Schedule, Sgd};
use drivetrain_tensor::{DType, Device, Result, Tensor, with_seed};
use drivetrain_train::*;

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// Points in four quadrants, labelled by them.
fn quadrants(count: usize) -> Vec<(Tensor, Tensor)> {
    let batch = |_| {
        let x = Tensor::randn([32, 2], DType::F32, &cpu()).unwrap();
        let positive = x.gt(0.0).unwrap().to_dtype(DType::I64).unwrap();
        let weights = Tensor::from_data([2i64, 1], &cpu()).unwrap();
        let label = positive.mul(&weights).unwrap().sum([1]).unwrap();
        (x, label)
    };
    (0..count).map(batch).collect()
}

fn model() -> Result<Sequential> {
    Ok(Sequential::new()
        .add(Linear::new(2, 16, &cpu())?)
        .add(BatchNorm1d::new(16, &cpu())?)
        .add(Relu)
        .add(Dropout::new(0.1)?)
        .add(Linear::new(16, 4, &cpu())?))
}

fn trainer() -> Result<Trainer<Sequential, CrossEntropyLoss, Adam>> {
    let model = model()?;
    let optimizer = Adam::new(model.parameters(), 0.02);
    Ok(
        Trainer::new(model, CrossEntropyLoss::new(), optimizer, &cpu())?
            .metric(Accuracy)
            .metric(TopK(2))
            .progress(Progress::Silent),
    )
}

#[test]
fn learns_and_keeps_a_history() -> Result<()> {
    let mut trainer = trainer()?
        .schedule(Schedule::one_cycle(0.02, 8 * 20), ScheduleEvery::Step)?
        .clip_norm(5.0);
    let (train, valid) = (quadrants(20), quadrants(4));
    let history = trainer.fit(&train, Some(&valid), 8)?.clone();
    assert_eq!(history.rows.len(), 8);
    let last = &history.rows[7];
    assert!(
        last.train[0] < 0.7 * history.rows[0].train[0],
        "{history:?}"
    );
    assert!(
        last.valid[1] > 0.9 && last.valid[2] >= last.valid[1],
        "{history:?}"
    );
    assert!(last.learning_rate < history.rows[2].learning_rate);
    let evaluation = trainer.evaluate(&valid)?;
    assert_eq!(evaluation.get("accuracy"), Some(last.valid[1]));
    let csv = history.to_csv();
    let header = "epoch,learning_rate,seconds,train_loss,train_accuracy,train_top2,valid_loss,valid_accuracy,valid_top2";
    assert_eq!(csv.lines().next(), Some(header));
    assert_eq!(csv.lines().count(), 9);
    let path = std::env::temp_dir().join(format!("drivetrain-history-{}.csv", std::process::id()));
    history.save_csv(&path)?;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), csv);
    std::fs::remove_file(&path).unwrap();
    Ok(())
}

#[test]
fn evaluation_leaves_modes_and_statistics_as_they_are() -> Result<()> {
    let trainer = trainer()?;
    let valid = quadrants(3);
    trainer.model().layers()[1].eval();
    let before = trainer.model().state_dict();
    let _ = trainer.evaluate(&valid)?;
    let _ = trainer.predict(&valid[0].0)?;
    let modes: Vec<bool> = trainer
        .model()
        .modes()
        .iter()
        .map(|mode| mode.is_training())
        .collect();
    assert_eq!(modes, [false, true]);
    for (name, value) in trainer.model().state_dict().iter() {
        assert_eq!(
            value.to_f64_vec()?,
            before.get(name).unwrap().to_f64_vec()?,
            "{name}"
        );
    }
    assert!(!trainer.predict(&valid[0].0)?.requires_grad());
    Ok(())
}

#[test]
fn seeds_fix_the_whole_run() -> Result<()> {
    let run = || {
        with_seed(1, || -> Result<Vec<f64>> {
            let mut trainer = trainer()?;
            let data = quadrants(5);
            let history = trainer.fit(&data, None, 3)?;
            Ok(history.rows.iter().map(|row| row.train[0]).collect())
        })
    };
    assert_eq!(run()?, run()?);
    Ok(())
}

/// Gives one batch and then fails.
struct Broken;

impl BatchSource for Broken {
    fn batches(&self) -> usize {
        2
    }
    fn epoch(&self) -> Box<dyn Iterator<Item = Result<(Tensor, Tensor)>> + '_> {
        let good = quadrants(1).remove(0);
        Box::new([Ok(good), Err(Error::value("disk", "sector 7 is gone"))].into_iter())
    }
}

#[test]
fn errors_name_epoch_and_batch() -> Result<()> {
    let message = trainer()?.fit(&Broken, None, 2).unwrap_err().to_string();
    assert!(
        message.contains("epoch 1, batch 2") && message.contains("sector 7"),
        "{message}"
    );
    let none: Vec<(Tensor, Tensor)> = Vec::new();
    assert!(
        trainer()?
            .fit(&none, None, 1)
            .unwrap_err()
            .to_string()
            .contains("no batch")
    );
    Ok(())
}

#[test]
fn early_stopping_stops() -> Result<()> {
    let layer = Linear::new(2, 1, &cpu())?;
    let optimizer = Sgd::new(layer.parameters(), 0.0);
    let mut trainer = Trainer::new(layer, MseLoss::new(), optimizer, &cpu())?
        .callback(EarlyStopping::new(2))
        .progress(Progress::Silent);
    let x = Tensor::ones([4, 2], DType::F32, &cpu())?;
    let y = Tensor::ones([4, 1], DType::F32, &cpu())?;
    assert_eq!(trainer.fit(&vec![(x, y)], None, 50)?.rows.len(), 4);
    assert_eq!(trainer.optimizer().learning_rate(), 0.0);
    let output = trainer
        .model()
        .forward(&Tensor::ones([1, 2], DType::F32, &cpu())?)?;
    assert!(output.requires_grad());
    Ok(())
}

#[test]
fn running_mean_weighs() {
    let mut mean = RunningMean::new();
    assert!(mean.value().is_nan());
    mean.add(1.0, 3.0);
    mean.add(5.0, 1.0);
    assert_eq!(mean.value(), 2.0);
}
