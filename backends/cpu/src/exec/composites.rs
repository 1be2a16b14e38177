//! Which composites have kernels of their own; the others run as core's decompositions.

use drivetrain_core::{Composite, Error, Meta, Operand, Result};

/// Whether there is a kernel for this composite and inputs of these dtypes.
pub(crate) fn supports(op: &Composite, inputs: &[Meta]) -> bool {
    let _ = (op, inputs);
    false
}

/// Runs a composite that `supports` accepted.
pub(crate) fn execute(
    op: &Composite,
    inputs: &[Operand],
    in_place: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let _ = (inputs, in_place, outputs);
    Err(Error::unsupported(
        op.name(),
        "no kernel; it runs by its decomposition",
    ))
}
