//! The CPU backend of Drivetrain.
