//! Development tasks: `cargo xtask check`, `cargo xtask conformance DIR`.
fn main() {}
