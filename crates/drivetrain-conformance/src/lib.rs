//! The kit that proves a Drivetrain backend: case runner, reference interpreter, random-shape comparison.

pub mod coverage;
pub mod reference;
