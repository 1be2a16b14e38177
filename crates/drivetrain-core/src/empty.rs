//! What ops on empty values give, so that no backend ever sees one.

use crate::backend::Operand;
use crate::{Composite, Op, Primitive, ReduceOp, Scalar};

/// What to do with an op.
pub(crate) enum Answer {
    /// Give it to the engine.
    Run,
    /// Nothing to compute.
    Nothing,
    /// Every output is this value.
    Fill(Scalar),
}

/// How an op is answered: by the engine when no operand is empty.
pub(crate) fn answer(
    op: &Op,
    inputs: &[Operand],
    in_place: &[Operand],
    outputs: &[Operand],
) -> Answer {
    let empty = |operand: &Operand| operand.layout.shape().is_empty();
    if !inputs.iter().chain(in_place).chain(outputs).any(empty) {
        return Answer::Run;
    }
    if in_place.iter().all(empty) && outputs.iter().all(empty) {
        return Answer::Nothing;
    }
    match op {
        // Nothing is added to what is there.
        Op::Primitive(Primitive::Scatter { .. }) => Answer::Nothing,
        Op::Primitive(Primitive::Reduce {
            op: ReduceOp::Prod, ..
        }) => Answer::Fill(Scalar::I64(1)),
        Op::Composite(Composite::Pad(spec)) => Answer::Fill(spec.value),
        // Concatenation leaves its empty inputs out before it comes here. A sum over nothing is 0, and so
        // is every product and gradient built of such sums. (Extremes of nothing are refused by inference.)
        _ => Answer::Fill(Scalar::I64(0)),
    }
}
