//! A user's program, built against the packed crates.
use drivetrain as _;

fn main() {
    println!("built against the packed crates");
}
