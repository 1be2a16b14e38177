//! Learning-rate schedules.

use crate::attrs::{Attrs, as_number};
use crate::ops::{Answer, Call, Wide};
use drivetrain_core::{Error, Result};
use drivetrain_optim::{Optimizer, ReduceOnPlateau, Schedule, Scheduler, Sgd};
use drivetrain_tensor::Tensor;
use serde_json::Value;

pub const TABLE: &[(&str, Wide)] = &[("lr_schedule", lr_schedule)];

/// The rate in force in each epoch. As many epochs as the right output holds.
fn lr_schedule(call: &Call) -> Result<Answer> {
    let attrs = call.attrs;
    let mut optimizer = Sgd::new(Vec::new(), attrs.number_or("base_lr", 0.1)?);
    let rates = if attrs.text_or("name", "")? == "reduce_on_plateau" {
        plateau(call, &mut optimizer)?
    } else {
        let mut scheduler = Scheduler::new(schedule(attrs)?, &mut optimizer)?;
        let mut rates = Vec::new();
        for _ in 0..call.steps {
            rates.push(optimizer.learning_rate());
            scheduler.step(&mut optimizer);
        }
        rates
    };
    let rates = Tensor::from_slice(&rates, [rates.len()], call.device)?;
    Ok(rates.to_dtype(call.dtype)?.into())
}

fn plateau(call: &Call, optimizer: &mut dyn Optimizer) -> Result<Vec<f64>> {
    let attrs = call.attrs;
    let mut plateau = ReduceOnPlateau::default();
    plateau.factor = attrs.number_or("factor", plateau.factor)?;
    plateau.patience = attrs.count_or("patience", plateau.patience)?;
    plateau.threshold = attrs.number_or("threshold", plateau.threshold)?;
    plateau.absolute = attrs.text_or("threshold_mode", "rel")? == "abs";
    plateau.maximize = attrs.text_or("mode", "min")? == "max";
    plateau.cooldown = attrs.count_or("cooldown", plateau.cooldown)?;
    plateau.min_lr = attrs.number_or("min_lr", plateau.min_lr)?;
    plateau.eps = attrs.number_or("eps", plateau.eps)?;
    let metrics = attrs.get("metric").and_then(Value::as_array);
    let metrics = metrics.map_or(&[][..], Vec::as_slice);
    let mut rates = Vec::new();
    for epoch in 0..call.steps {
        rates.push(optimizer.learning_rate());
        if let Some(metric) = metrics.get(epoch).and_then(as_number) {
            plateau.step(metric, optimizer)?;
        }
    }
    Ok(rates)
}

/// The schedule of this name with PyTorch's arguments and defaults.
fn schedule(attrs: &Attrs) -> Result<Schedule> {
    let total_iters = || attrs.count_or("total_iters", 5);
    Ok(match attrs.text_or("name", "")? {
        "step" => Schedule::Step {
            step_size: attrs.count_or("step_size", 1)?,
            gamma: attrs.number_or("gamma", 0.1)?,
        },
        "multi_step" => Schedule::MultiStep {
            milestones: milestones(attrs)?,
            gamma: attrs.number_or("gamma", 0.1)?,
        },
        "exponential" => Schedule::Exponential {
            gamma: attrs.number_or("gamma", 0.1)?,
        },
        "cosine_annealing" => Schedule::CosineAnnealing {
            t_max: either(attrs, "t_max", "T_max", 1)?,
            eta_min: attrs.number_or("eta_min", 0.0)?,
        },
        "cosine_annealing_warm_restarts" => Schedule::CosineAnnealingWarmRestarts {
            t_0: either(attrs, "t_0", "T_0", 1)?,
            t_mult: either(attrs, "t_mult", "T_mult", 1)?,
            eta_min: attrs.number_or("eta_min", 0.0)?,
        },
        "linear" => Schedule::Linear {
            start_factor: attrs.number_or("start_factor", 1.0 / 3.0)?,
            end_factor: attrs.number_or("end_factor", 1.0)?,
            total_iters: total_iters()?,
        },
        "constant" => Schedule::Constant {
            factor: attrs.number_or("factor", 1.0 / 3.0)?,
            total_iters: total_iters()?,
        },
        "polynomial" => Schedule::Polynomial {
            total_iters: total_iters()?,
            power: attrs.number_or("power", 1.0)?,
        },
        "one_cycle" => Schedule::OneCycle {
            max_lr: attrs.number_or("max_lr", 1.0)?,
            total_steps: match attrs.integer("total_steps")? {
                Some(_) => attrs.count_or("total_steps", 1)?,
                None => attrs.count_or("epochs", 1)? * attrs.count_or("steps_per_epoch", 1)?,
            },
            pct_start: attrs.number_or("pct_start", 0.3)?,
            div_factor: attrs.number_or("div_factor", 25.0)?,
            final_div_factor: attrs.number_or("final_div_factor", 1e4)?,
            linear: attrs.text_or("anneal_strategy", "cos")? == "linear",
            three_phase: attrs.flag_or("three_phase", false)?,
        },
        "sequential" => sequential(attrs)?,
        other => {
            return Err(Error::argument(
                "conformance",
                format!("the runner knows no schedule {other:?}"),
            ));
        }
    })
}

fn sequential(attrs: &Attrs) -> Result<Schedule> {
    let list = attrs.get("schedules").and_then(Value::as_array);
    let mut schedules = Vec::new();
    for entry in list.map_or(&[][..], Vec::as_slice) {
        let map = entry.as_object().cloned().unwrap_or_default();
        schedules.push(schedule(&Attrs::new(map))?);
    }
    Ok(Schedule::Sequential {
        schedules,
        milestones: milestones(attrs)?,
    })
}

fn milestones(attrs: &Attrs) -> Result<Vec<usize>> {
    let list = attrs.integers("milestones")?.unwrap_or_default();
    let epoch = |&n: &isize| {
        usize::try_from(n).map_err(|_| Error::argument("conformance", format!("milestone {n}")))
    };
    list.iter().map(epoch).collect()
}

/// A count under one of two spellings.
fn either(attrs: &Attrs, one: &str, other: &str, default: usize) -> Result<usize> {
    let default = attrs.count_or(other, default)?;
    attrs.count_or(one, default)
}
