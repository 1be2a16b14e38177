//! The match over ops: which kernel runs which.

mod composites;

use crate::kernels::{
    argreduce, binary, cast, compare, copy, cumulative, fill, gather, matmul, random, reduce,
    scatter, select, sort, unary,
};
use drivetrain_core::{Error, Meta, Op, Operand, Primitive, Result};

/// Whether there is a kernel for this op and inputs of these dtypes.
pub(crate) fn supports(op: &Op, inputs: &[Meta]) -> bool {
    let dtype = inputs.first().map(|meta| meta.dtype);
    match op {
        Op::Composite(composite) => composites::supports(composite, inputs),
        Op::Primitive(Primitive::Unary(op)) => dtype.is_some_and(|d| unary::supports(*op, d)),
        Op::Primitive(Primitive::Binary(op)) => dtype.is_some_and(|d| binary::supports(*op, d)),
        Op::Primitive(_) => true,
    }
}

/// Runs an op. The contract of `Device::execute` holds for the operands.
pub(crate) fn execute(
    op: &Op,
    inputs: &[Operand],
    in_place: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    match op {
        Op::Primitive(op) => primitive(op, inputs, in_place, outputs),
        Op::Composite(op) => composites::execute(op, inputs, in_place, outputs),
    }
}

fn primitive(
    op: &Primitive,
    inputs: &[Operand],
    in_place: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let wrong = || {
        let counts = [inputs.len(), in_place.len(), outputs.len()];
        let text = format!("{counts:?} inputs, in-place operands and outputs do not fit this op");
        Error::argument(op.name(), text)
    };
    // SAFETY: for all arms: core has checked the operands as the contract of `Device::execute` says: they
    // lie in live buffers, dtypes and shapes fit the op, and nobody else touches what is written.
    unsafe {
        match (op, inputs, in_place, outputs) {
            (Primitive::Fill { value }, [], [], [out]) => fill::fill(*value, out),
            (Primitive::Iota { dim }, [], [], [out]) => fill::iota(usize::from(*dim), out),
            (Primitive::Random { kind }, [state], [], [out]) => random::random(*kind, state, out)?,
            (Primitive::Cast { .. }, [x], [], [out]) => cast::cast(x, out),
            (Primitive::Copy, [x], [], [out]) => copy::copy(x, out),
            (Primitive::Unary(op), [x], [], [out]) => unary::unary(*op, x, out)?,
            (Primitive::Binary(op), [a, b], [], [out]) => binary::binary(*op, a, b, out)?,
            (Primitive::Compare(op), [a, b], [], [out]) => compare::compare(*op, a, b, out),
            (Primitive::Where, [condition, a, b], [], [out]) => {
                select::select(condition, a, b, out)
            }
            (Primitive::Reduce { op, dims, .. }, [x], [], [out]) => {
                reduce::reduce(*op, *dims, x, out)
            }
            (Primitive::ArgReduce { op, dim }, [x], [], [out]) => {
                argreduce::arg_reduce(*op, usize::from(*dim), x, out)
            }
            (Primitive::Matmul { .. }, [a, b], [], [out]) => matmul::matmul(a, b, out)?,
            (Primitive::Gather { dim }, [x, index], [], [out]) => {
                gather::gather(usize::from(*dim), x, index, out)?
            }
            (Primitive::Scatter { dim, mode }, [index, source], [target], []) => {
                scatter::scatter(*mode, usize::from(*dim), index, source, target)?
            }
            (Primitive::Cumulative { op, dim }, [x], [], [out]) => {
                cumulative::cumulative(*op, usize::from(*dim), x, out)
            }
            (Primitive::Sort { dim, descending }, [x], [], [values, indices]) => {
                sort::sort(usize::from(*dim), *descending, x, values, indices)
            }
            (
                Primitive::Fill { .. }
                | Primitive::Iota { .. }
                | Primitive::Random { .. }
                | Primitive::Cast { .. }
                | Primitive::Copy
                | Primitive::Unary(_)
                | Primitive::Binary(_)
                | Primitive::Compare(_)
                | Primitive::Where
                | Primitive::Reduce { .. }
                | Primitive::ArgReduce { .. }
                | Primitive::Matmul { .. }
                | Primitive::Gather { .. }
                | Primitive::Scatter { .. }
                | Primitive::Cumulative { .. }
                | Primitive::Sort { .. },
                ..,
            ) => return Err(wrong()),
        }
    }
    Ok(())
}
