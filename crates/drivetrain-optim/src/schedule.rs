//! Learning-rate schedules: closed forms of the epoch, and what applies them to an optimizer.
//!
//! A [`Schedule`] is plain data that gives the rate of an epoch; a [`Scheduler`] remembers each group's base rate
//! and the epoch. [`ReduceOnPlateau`] looks at a metric instead.

mod plateau;

pub use plateau::ReduceOnPlateau;

use crate::Optimizer;
use drivetrain_core::{Error, Result};
use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

/// How the rate depends on the epoch. Fields as PyTorch names them.
#[derive(Clone)]
pub enum Schedule {
    /// Times `gamma` every `step_size` epochs.
    Step {
        /// Epochs between falls.
        step_size: usize,
        /// Factor.
        gamma: f64,
    },
    /// Times `gamma` at each milestone.
    MultiStep {
        /// Epochs at which it falls.
        milestones: Vec<usize>,
        /// Factor.
        gamma: f64,
    },
    /// Times `gamma` every epoch.
    Exponential {
        /// Factor.
        gamma: f64,
    },
    /// Half a cosine from the base rate to `eta_min` over `t_max` epochs, and back (Loshchilov and Hutter 2017).
    CosineAnnealing {
        /// Epochs to the lowest rate.
        t_max: usize,
        /// The lowest rate.
        eta_min: f64,
    },
    /// Cosines that begin anew, each `t_mult` times longer.
    CosineAnnealingWarmRestarts {
        /// Length of the first.
        t_0: usize,
        /// Growth.
        t_mult: usize,
        /// The lowest rate.
        eta_min: f64,
    },
    /// The factor goes linearly from `start_factor` to `end_factor` over `total_iters` epochs.
    Linear {
        /// First factor.
        start_factor: f64,
        /// Last factor.
        end_factor: f64,
        /// Epochs between them.
        total_iters: usize,
    },
    /// The factor `factor` for `total_iters` epochs, then 1.
    Constant {
        /// Factor.
        factor: f64,
        /// Epochs.
        total_iters: usize,
    },
    /// (1 - epoch/total_iters)^power.
    Polynomial {
        /// Epochs to 0.
        total_iters: usize,
        /// Power.
        power: f64,
    },
    /// Up to `max_lr` and down again along cosines (Smith and Topin 2018). The base rate is not used; momentum is not
    /// cycled.
    OneCycle {
        /// The highest rate.
        max_lr: f64,
        /// Steps of the whole cycle.
        total_steps: usize,
        /// Share of the way up.
        pct_start: f64,
        /// The first rate is `max_lr/div_factor`.
        div_factor: f64,
        /// The last is the first divided by this.
        final_div_factor: f64,
        /// Straight lines instead of cosines.
        linear: bool,
        /// A third phase that mirrors the first, before the fall to the last rate.
        three_phase: bool,
    },
    /// The rate rises linearly from 0 (exclusive) over `steps`, then follows another schedule counted from there.
    WarmUp {
        /// Steps of the rise.
        steps: usize,
        /// What comes after.
        then: Box<Schedule>,
    },
    /// One schedule after the other; each counts its own epochs from its milestone.
    Sequential {
        /// The schedules.
        schedules: Vec<Schedule>,
        /// Where each after the first begins.
        milestones: Vec<usize>,
    },
    /// The base rate times a function of the epoch.
    Lambda(Arc<dyn Fn(usize) -> f64 + Send + Sync>),
    /// The base rate.
    Fixed,
}

impl Schedule {
    /// One cycle with PyTorch's defaults: 30 % up, from a 25th, to a 10,000th of the first rate.
    pub fn one_cycle(max_lr: f64, total_steps: usize) -> Schedule {
        Schedule::OneCycle {
            max_lr,
            total_steps,
            pct_start: 0.3,
            div_factor: 25.0,
            final_div_factor: 1e4,
            linear: false,
            three_phase: false,
        }
    }

    /// The rate in force in an epoch (0 is the first), for a base rate.
    pub fn rate(&self, base: f64, epoch: usize) -> f64 {
        let e = epoch as f64;
        match self {
            Schedule::Step { step_size, gamma } => {
                base * power(*gamma, epoch / (*step_size).max(1))
            }
            Schedule::MultiStep { milestones, gamma } => {
                base * power(*gamma, milestones.iter().filter(|&&m| m <= epoch).count())
            }
            Schedule::Exponential { gamma } => base * power(*gamma, epoch),
            Schedule::CosineAnnealing { t_max, eta_min } => {
                cosine(base, *eta_min, e / (*t_max).max(1) as f64)
            }
            Schedule::CosineAnnealingWarmRestarts {
                t_0,
                t_mult,
                eta_min,
            } => {
                let (mut at, mut length) = (epoch, (*t_0).max(1));
                while at >= length {
                    at -= length;
                    length = length.saturating_mul((*t_mult).max(1));
                }
                cosine(base, *eta_min, at as f64 / length as f64)
            }
            Schedule::Linear {
                start_factor,
                end_factor,
                total_iters,
            } => {
                let share = e.min(*total_iters as f64) / (*total_iters).max(1) as f64;
                base * (start_factor + (end_factor - start_factor) * share)
            }
            Schedule::Constant {
                factor,
                total_iters,
            } => {
                if epoch < *total_iters {
                    base * factor
                } else {
                    base
                }
            }
            Schedule::Polynomial { total_iters, power } => {
                base * (1.0 - e.min(*total_iters as f64) / (*total_iters).max(1) as f64)
                    .powf(*power)
            }
            Schedule::OneCycle { .. } => self.one_cycle_rate(e),
            Schedule::WarmUp { steps, then } => match epoch.checked_sub(*steps) {
                None => base * (e + 1.0) / (*steps as f64 + 1.0),
                Some(after) => then.rate(base, after),
            },
            Schedule::Sequential {
                schedules,
                milestones,
            } => {
                let passed = milestones.iter().filter(|&&m| m <= epoch).count();
                let begun = if passed == 0 {
                    0
                } else {
                    milestones[passed - 1]
                };
                schedules
                    .get(passed.min(schedules.len().saturating_sub(1)))
                    .map_or(base, |s| s.rate(base, epoch - begun))
            }
            Schedule::Lambda(factor) => base * factor(epoch),
            Schedule::Fixed => base,
        }
    }

    fn one_cycle_rate(&self, step: f64) -> f64 {
        let Schedule::OneCycle {
            max_lr,
            total_steps,
            pct_start,
            div_factor,
            final_div_factor,
            linear,
            three_phase,
        } = self
        else {
            return 0.0;
        };
        let total = *total_steps as f64;
        let (first, top) = (max_lr / div_factor, *max_lr);
        let last = first / final_div_factor;
        let up = pct_start * total - 1.0;
        let phases = if *three_phase {
            vec![
                (up, first, top),
                (2.0 * pct_start * total - 2.0, top, first),
                (total - 1.0, first, last),
            ]
        } else {
            vec![(up, first, top), (total - 1.0, top, last)]
        };
        let step = step.min(total - 1.0);
        let mut begin = 0.0;
        for (i, &(end, from, to)) in phases.iter().enumerate() {
            if step <= end || i + 1 == phases.len() {
                let share = if end > begin {
                    ((step - begin) / (end - begin)).clamp(0.0, 1.0)
                } else {
                    1.0
                };
                return if *linear {
                    from + (to - from) * share
                } else {
                    to + (from - to) / 2.0 * (1.0 + (PI * share).cos())
                };
            }
            begin = end;
        }
        last
    }

    fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::argument("schedule", message));
        match self {
            Schedule::Step { step_size: 0, .. } => refuse("step_size 0".into()),
            Schedule::CosineAnnealing { t_max: 0, .. } => refuse("t_max 0".into()),
            Schedule::CosineAnnealingWarmRestarts { t_0, t_mult, .. }
                if *t_0 == 0 || *t_mult == 0 =>
            {
                refuse(format!("t_0 {t_0}, t_mult {t_mult}"))
            }
            Schedule::OneCycle { total_steps: 0, .. } => refuse("total_steps 0".into()),
            Schedule::OneCycle { pct_start, .. } if !(0.0..=1.0).contains(pct_start) => {
                refuse(format!("pct_start {pct_start} is not in 0..=1"))
            }
            Schedule::Sequential {
                schedules,
                milestones,
            } => {
                if schedules.is_empty()
                    || milestones.len() + 1 != schedules.len()
                    || !milestones.is_sorted()
                {
                    return refuse(format!(
                        "{} schedules with milestones {milestones:?}",
                        schedules.len()
                    ));
                }
                schedules.iter().try_for_each(Schedule::check)
            }
            Schedule::WarmUp { then, .. } => then.check(),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it is and does, on one line: the first rates for a base of 1.
        let rates: Vec<f64> = (0..4).map(|epoch| self.rate(1.0, epoch)).collect();
        write!(f, "Schedule({rates:?}, …)")
    }
}

fn power(factor: f64, times: usize) -> f64 {
    factor.powi(i32::try_from(times).unwrap_or(i32::MAX))
}

fn cosine(base: f64, low: f64, share: f64) -> f64 {
    low + (base - low) * (1.0 + (PI * share).cos()) / 2.0
}

/// Applies a [`Schedule`] to an optimizer's groups.
///
/// ```
/// # use drivetrain_cpu as _;
/// # use drivetrain_optim::{Optimizer, Schedule, Scheduler, Sgd};
/// let mut optimizer = Sgd::new(Vec::new(), 1.0);
/// let mut scheduler = Scheduler::new(Schedule::Exponential { gamma: 0.5 }, &mut optimizer)?;
/// scheduler.step(&mut optimizer);
/// assert_eq!(optimizer.learning_rate(), 0.5);
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scheduler {
    schedule: Schedule,
    bases: Vec<f64>,
    epoch: usize,
}

/// What a [`Scheduler`] needs to go on later.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerState {
    /// Base rates of the groups.
    pub bases: Vec<f64>,
    /// The epoch in force.
    pub epoch: usize,
}

impl Scheduler {
    /// From the rates that the groups have now, which become the base rates; sets the first epoch's rates.
    ///
    /// # Errors
    /// A schedule whose numbers make no sense.
    pub fn new(schedule: Schedule, optimizer: &mut dyn Optimizer) -> Result<Scheduler> {
        schedule.check()?;
        let bases = optimizer
            .groups()
            .iter()
            .map(|group| group.learning_rate)
            .collect();
        let scheduler = Scheduler {
            schedule,
            bases,
            epoch: 0,
        };
        scheduler.apply(optimizer);
        Ok(scheduler)
    }

    /// Goes to the next epoch (or step) and sets its rates.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        self.epoch += 1;
        self.apply(optimizer);
    }

    /// The epoch in force.
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    fn apply(&self, optimizer: &mut dyn Optimizer) {
        let last = self.bases.last().copied();
        for (i, group) in optimizer.groups_mut().iter_mut().enumerate() {
            // A group added later counts from the rate it came with only if it has a base of its own.
            if let Some(base) = self.bases.get(i).copied().or(last) {
                group.learning_rate = self.schedule.rate(base, self.epoch);
            }
        }
    }

    /// Everything needed to go on later.
    pub fn state_dict(&self) -> SchedulerState {
        SchedulerState {
            bases: self.bases.clone(),
            epoch: self.epoch,
        }
    }

    /// Goes on from a saved state; the optimizer's rates are those of its epoch at once.
    pub fn load_state_dict(&mut self, state: &SchedulerState, optimizer: &mut dyn Optimizer) {
        self.bases.clone_from(&state.bases);
        self.epoch = state.epoch;
        self.apply(optimizer);
    }
}
