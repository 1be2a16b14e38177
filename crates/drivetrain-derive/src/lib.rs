//! The Module derive macro of drivetrain-nn.
