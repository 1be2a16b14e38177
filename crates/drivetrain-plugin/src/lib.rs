//! How a backend joins a Drivetrain program.
