//! The trainer of Drivetrain: the loop, metrics, progress and history.
