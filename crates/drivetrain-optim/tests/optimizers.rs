//! Optimizers, schedules and clipping against PyTorch's values.

use drivetrain_cpu as _;
use drivetrain_optim::*;
use drivetrain_tensor::{DType, Device, Parameter, Result, Tensor};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

fn parameter(values: &[f32]) -> Parameter {
    Parameter::new(Tensor::from_slice(values, [values.len()], &cpu()).unwrap()).unwrap()
}

fn values(parameter: &Parameter) -> Vec<f64> {
    parameter.value().to_f64_vec().unwrap()
}

fn close(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    assert!(
        got.iter()
            .zip(want)
            .all(|(g, w)| (g - w).abs() <= tolerance),
        "{got:?} is not {want:?}"
    );
}

/// One step on (w0 - 3)² + 10·(w1 - 1)².
fn bowl_step(w: &Parameter, optimizer: &mut dyn Optimizer) -> Result<()> {
    let target = Tensor::from_data([3.0f32, 1.0], &cpu())?;
    let scale = Tensor::from_data([1.0f32, 10.0], &cpu())?;
    optimizer.zero_grad();
    w.value()
        .sub(&target)?
        .square()?
        .mul(&scale)?
        .sum(())?
        .backward()?;
    optimizer.step()
}

const BOWL: [[f64; 2]; 5] = [
    [1.099, -1.898],
    [1.197737, -1.796207],
    [1.296088, -1.694696],
    [1.393923, -1.593546],
    [1.4911, -1.492838],
];

#[test]
fn adamw_follows_pytorch_and_resumes_bit_for_bit() -> Result<()> {
    let w = parameter(&[1.0, -2.0]);
    let mut optimizer = AdamW::new(vec![w.clone()], 0.1);
    let mut saved = None;
    for (i, want) in BOWL.iter().enumerate() {
        bowl_step(&w, &mut optimizer)?;
        close(&values(&w), want, 2e-6);
        if i == 2 {
            saved = Some((w.value().detach(), optimizer.state_dict()));
        }
    }
    let (value, state) = saved.unwrap();
    let again = Parameter::new(value)?;
    let mut resumed = AdamW::new(vec![again.clone()], 0.5);
    resumed.load_state_dict(&state)?;
    assert_eq!(resumed.learning_rate(), 0.1);
    bowl_step(&again, &mut resumed)?;
    bowl_step(&again, &mut resumed)?;
    assert_eq!(again.value().to_vec::<f32>()?, w.value().to_vec::<f32>()?);
    Ok(())
}

#[test]
fn state_saved_before_the_first_step_loads() -> Result<()> {
    let w = parameter(&[1.0, -2.0]);
    let state = AdamW::new(vec![w.clone()], 0.1).state_dict();
    let mut optimizer = AdamW::new(vec![w.clone()], 0.1);
    optimizer.load_state_dict(&state)?;
    bowl_step(&w, &mut optimizer)?;
    close(&values(&w), &BOWL[0], 2e-6);
    Ok(())
}

#[test]
fn state_of_another_model_is_refused_and_nothing_changes() -> Result<()> {
    let w = parameter(&[1.0, -2.0]);
    let mut optimizer = AdamW::new(vec![w.clone()], 0.1);
    bowl_step(&w, &mut optimizer)?;
    let other = parameter(&[1.0]);
    let mut small = AdamW::new(vec![other.clone()], 0.1);
    let message = small
        .load_state_dict(&optimizer.state_dict())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("[2]") && message.contains("[1]"),
        "{message}"
    );
    let mut two = AdamW::new(vec![w, other], 0.3);
    assert!(two.load_state_dict(&small.state_dict()).is_err());
    assert_eq!(two.learning_rate(), 0.3);
    Ok(())
}

#[test]
fn sgd_variants() -> Result<()> {
    let run = |make: &dyn Fn(Sgd) -> Sgd| -> Result<Vec<f64>> {
        let w = parameter(&[1.0]);
        let mut optimizer = make(Sgd::new(vec![w.clone()], 0.1));
        let mut seen = Vec::new();
        for _ in 0..3 {
            optimizer.zero_grad();
            w.value().square()?.sum(())?.backward()?;
            optimizer.step()?;
            seen.push(values(&w)[0]);
        }
        Ok(seen)
    };
    close(&run(&|o| o.momentum(0.9))?, &[0.8, 0.46, 0.062], 1e-6);
    close(
        &run(&|o| o.momentum(0.9).dampening(0.5))?,
        &[0.8, 0.54, 0.252],
        1e-6,
    );
    close(
        &run(&|o| o.momentum(0.9).nesterov(true))?,
        &[0.62, 0.2224, -0.108352],
        1e-6,
    );
    close(
        &run(&|o| o.weight_decay(0.1))?,
        &[0.79, 0.6241, 0.493039],
        1e-6,
    );
    assert!(run(&|o| o.nesterov(true)).is_err());
    Ok(())
}

#[test]
fn without_a_gradient_nothing_moves() -> Result<()> {
    let w = parameter(&[1.0, 1.0]);
    let mut optimizer = AdamW::new(vec![w.clone()], 0.1).weight_decay(0.5);
    optimizer.step()?;
    assert_eq!(values(&w), [1.0, 1.0]);
    bowl_step(&w, &mut optimizer)?;
    let moved = values(&w);
    optimizer.zero_grad();
    optimizer.step()?;
    assert_eq!(values(&w), moved);
    Ok(())
}

#[test]
fn a_value_taken_before_a_step_keeps_its_content() -> Result<()> {
    let w = parameter(&[1.0, -2.0]);
    let mut optimizer = Sgd::new(vec![w.clone()], 0.1);
    let before = w.value();
    let loss = before.square()?.sum(())?;
    bowl_step(&w, &mut optimizer)?;
    assert_eq!(before.to_vec::<f32>()?, [1.0, -2.0]);
    w.zero_grad();
    loss.backward()?;
    close(&w.grad().unwrap().to_f64_vec()?, &[2.0, -4.0], 0.0);
    Ok(())
}

#[test]
fn clipping_flags_what_it_cannot_scale() -> Result<()> {
    let with_grad = |grad: &[f32]| -> Result<Parameter> {
        let w = parameter(&vec![0.0; grad.len()]);
        w.set_grad(Some(Tensor::from_slice(grad, [grad.len()], &cpu())?))?;
        Ok(w)
    };
    let grad = |w: &Parameter| w.grad().unwrap().to_f64_vec().unwrap();
    let w = with_grad(&[3.0, 4.0])?;
    assert_eq!(clip_grad_norm(std::slice::from_ref(&w), 1.0, 2.0)?, 5.0);
    close(&grad(&w), &[0.6, 0.8], 1e-6);
    let w = with_grad(&[f32::INFINITY, 1.0])?;
    assert!(
        clip_grad_norm(std::slice::from_ref(&w), 1.0, 2.0)
            .unwrap_err()
            .to_string()
            .contains("inf")
    );
    assert_eq!(grad(&w), [f64::INFINITY, 1.0]);
    let w = with_grad(&[3e20, 4e20])?;
    let norm = clip_grad_norm(std::slice::from_ref(&w), 1.0, 2.0)?;
    assert!((norm / 5e20 - 1.0).abs() < 1e-6);
    close(&grad(&w), &[0.6, 0.8], 1e-6);
    assert_eq!(clip_grad_norm(&[parameter(&[1.0])], 1.0, 2.0)?, 0.0);
    assert_eq!(clip_grad_norm(&[with_grad(&[])?], 1.0, f64::INFINITY)?, 0.0);
    let w = with_grad(&[3.0, -4.0])?;
    clip_grad_value(std::slice::from_ref(&w), 3.5)?;
    assert_eq!(grad(&w), [3.0, -3.5]);
    Ok(())
}

#[test]
fn schedules_resume_where_they_were() -> Result<()> {
    let cosine = [
        1.0, 0.975528, 0.904508, 0.793893, 0.654508, 0.5, 0.345492, 0.206107, 0.095492, 0.024472,
        0.0,
    ];
    let falls = [1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01, 0.01];
    let cases: [(Schedule, &[f64]); 2] = [
        (
            Schedule::CosineAnnealing {
                t_max: 10,
                eta_min: 0.0,
            },
            &cosine,
        ),
        (
            Schedule::MultiStep {
                milestones: vec![3, 5],
                gamma: 0.1,
            },
            &falls,
        ),
    ];
    for (schedule, want) in cases {
        let mut optimizer = Sgd::new(Vec::new(), 1.0);
        let mut scheduler = Scheduler::new(schedule.clone(), &mut optimizer)?;
        let mut saved = None;
        for (epoch, want) in want.iter().enumerate() {
            assert!(
                (optimizer.learning_rate() - want).abs() < 1e-6,
                "epoch {epoch}"
            );
            if epoch == 4 {
                saved = Some((optimizer.state_dict(), scheduler.state_dict()));
            }
            scheduler.step(&mut optimizer);
        }
        let (state, position) = saved.unwrap();
        let mut optimizer = Sgd::new(Vec::new(), 1.0);
        let mut scheduler = Scheduler::new(schedule, &mut optimizer)?;
        optimizer.load_state_dict(&state)?;
        scheduler.load_state_dict(&position, &mut optimizer);
        assert!((optimizer.learning_rate() - want[4]).abs() < 1e-6);
        scheduler.step(&mut optimizer);
        assert!((optimizer.learning_rate() - want[5]).abs() < 1e-6);
    }
    Ok(())
}

#[test]
fn warm_up_sequences_and_functions() -> Result<()> {
    let schedule = Schedule::WarmUp {
        steps: 3,
        then: Box::new(Schedule::Step {
            step_size: 2,
            gamma: 0.5,
        }),
    };
    let rates: Vec<f64> = (0..7).map(|epoch| schedule.rate(1.0, epoch)).collect();
    close(&rates, &[0.25, 0.5, 0.75, 1.0, 1.0, 0.5, 0.5], 1e-12);
    let sequence = Schedule::Sequential {
        schedules: vec![
            Schedule::Constant {
                factor: 0.1,
                total_iters: 10,
            },
            Schedule::Exponential { gamma: 0.9 },
        ],
        milestones: vec![2],
    };
    let rates: Vec<f64> = (0..4).map(|epoch| sequence.rate(1.0, epoch)).collect();
    close(&rates, &[0.1, 0.1, 1.0, 0.9], 1e-12);
    let lambda = Schedule::Lambda(std::sync::Arc::new(|epoch| 1.0 / (1.0 + epoch as f64)));
    assert_eq!(lambda.rate(3.0, 2), 1.0);
    let mut optimizer = Sgd::new(Vec::new(), 1.0);
    assert!(
        Scheduler::new(
            Schedule::Step {
                step_size: 0,
                gamma: 0.5
            },
            &mut optimizer
        )
        .is_err()
    );
    Ok(())
}

#[test]
fn groups_have_rates_of_their_own() -> Result<()> {
    let (a, b) = (parameter(&[1.0]), parameter(&[1.0]));
    let mut optimizer = Sgd::new(vec![a.clone()], 0.1);
    optimizer.add_group(vec![b.clone()], 0.01)?;
    assert!(optimizer.add_group(vec![a.clone()], 0.5).is_err());
    a.value().add(&b.value())?.sum(())?.backward()?;
    optimizer.step()?;
    close(&[values(&a)[0], values(&b)[0]], &[0.9, 0.99], 1e-6);
    Ok(())
}

#[test]
fn all_rules_work_in_every_float_dtype() -> Result<()> {
    type Make = fn(Vec<Parameter>) -> Box<dyn Optimizer>;
    let rules: [Make; 8] = [
        |p| Box::new(Sgd::new(p, 0.05).momentum(0.9)),
        |p| Box::new(Adam::new(p, 0.05).amsgrad(true)),
        |p| Box::new(AdamW::new(p, 0.05)),
        |p| Box::new(RmsProp::new(p, 0.05).centered(true).momentum(0.5)),
        |p| Box::new(Adagrad::new(p, 0.5)),
        |p| Box::new(Adadelta::new(p, 20.0)),
        |p| Box::new(NAdam::new(p, 0.05)),
        |p| Box::new(RAdam::new(p, 0.05)),
    ];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for make in rules {
            let w = Parameter::new(Tensor::from_data([2.0f32, -1.5], &cpu())?.to_dtype(dtype)?)?;
            let mut optimizer = make(vec![w.clone()]);
            for _ in 0..60 {
                optimizer.zero_grad();
                w.value().square()?.sum(())?.backward()?;
                optimizer.step()?;
            }
            let norm: f64 = values(&w).iter().map(|v| v.abs()).sum();
            assert!(
                norm < 2.5,
                "{} {dtype}: {:?}",
                optimizer.groups()[0].algorithm.name(),
                values(&w)
            );
            assert_eq!(w.dtype(), dtype);
        }
    }
    Ok(())
}
