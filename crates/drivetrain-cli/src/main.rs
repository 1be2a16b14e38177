//! The `drivetrain` program.
fn main() {}
