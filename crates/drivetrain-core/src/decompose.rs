//! Decompositions: every composite as a program of primitives, written once for all backends.

use crate::backend::Meta;
use crate::program::{Builder, Program};
use crate::{Composite, Error, Result};

/// The program of primitives (and simpler composites) that computes `op`. Its inputs are the op's inputs and
/// then its in-place operands; its outputs are the op's outputs, or for an op that works in place the new
/// values of the in-place operands.
///
/// # Errors
/// As inference does.
pub fn decompose(op: &Composite, inputs: &[Meta], in_place: &[Meta]) -> Result<Program> {
    let _ = (Builder::new(inputs), in_place);
    Err(Error::unsupported(op.name(), "not written yet"))
}
