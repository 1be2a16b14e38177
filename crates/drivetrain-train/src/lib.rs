//! The trainer of Drivetrain: the loop, metrics, progress and history.
//!
//! A [`Trainer`] knows its backend only as a `Device` value: the same program trains on every engine.

mod callback;
mod history;
mod metrics;
mod progress;
mod source;
mod trainer;

pub use callback::{Callback, EarlyStopping, Flow};
pub use history::{History, Row};
pub use metrics::{Accuracy, Metric, RunningMean, TopK};
pub use progress::Progress;
pub use source::BatchSource;
pub use trainer::{Evaluation, ScheduleEvery, Trainer};
