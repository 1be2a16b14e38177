//! The kit that proves a Drivetrain backend: case runner, reference interpreter, random-shape comparison.
//!
//! [`Suite::embedded`] holds cases whose right values PyTorch computed; [`run`] plays them on a device and
//! says what differs. `cases/FORMAT.md` documents the format, so that other sets can be made and run.
//!
//! ```
//! # use drivetrain_cpu as _;
//! use drivetrain_conformance::{Options, Suite, run};
//! use drivetrain_core::Device;
//! let device = Device::open("cpu")?;
//! let options = Options { only: vec!["relu".into()], ..Options::default() };
//! let report = run(&device, &Suite::embedded()?, &options);
//! assert!(report.failures.is_empty(), "{report}");
//! assert!(report.passed > 0);
//! # Ok::<(), drivetrain_core::Error>(())
//! ```

mod attrs;
mod cases;
pub mod compare;
pub mod coverage;
mod evaluate;
mod json;
mod judge;
mod ops;
pub mod reference;
mod run;
mod special;
mod values;
mod views;

pub use cases::{Case, Suite};
pub use run::{Failure, Options, Report, Skip, run};
