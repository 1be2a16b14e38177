//! What the examples share: their command line, and what some of them need that is not what they show.

mod command_line;
pub mod draw;
pub mod shapes;
pub mod twin;

pub use command_line::{Args, Outcome, Program, UsageError};
