//! Benchmarks of Drivetrain.
