//! The match over all primitives.

use super::values::{Values, View, read, write};
use super::{Memory, along, elementwise};
use drivetrain_core::{Error, Operand, Primitive, Result};

/// Runs a primitive on operands in this memory.
pub(super) fn execute(
    memory: &mut Memory,
    op: &Primitive,
    inputs: &[Operand],
    in_place: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    let views = inputs
        .iter()
        .map(|o| read(memory, o))
        .collect::<Result<Vec<View>>>()?;
    if let Primitive::Scatter { dim, mode } = *op {
        let ([destination], [index, source]) = (in_place, &views[..]) else {
            return Err(operands(op));
        };
        let before = read(memory, destination)?;
        let after = along::scatter(&before, index, source, dim.into(), mode)?;
        return write(memory, destination, &after);
    }
    let results = compute(op, &views, outputs)?;
    if results.len() != outputs.len() {
        return Err(operands(op));
    }
    let mut pairs = outputs.iter().zip(&results);
    pairs.try_for_each(|(output, values)| write(memory, output, values))
}

fn operands(op: &Primitive) -> Error {
    Error::backend(op.name(), "a wrong number of operands")
}

/// The outputs' values.
fn compute(op: &Primitive, inputs: &[View], outputs: &[Operand]) -> Result<Vec<Values>> {
    let first = outputs.first().ok_or_else(|| operands(op))?;
    let (dtype, dims) = (first.dtype, first.layout.dims());
    let count = first.layout.elements();
    let one = match (op, inputs) {
        (Primitive::Fill { value }, []) => elementwise::fill(dtype, *value, count),
        (Primitive::Iota { dim }, []) => elementwise::iota(dtype, dims, (*dim).into()),
        (Primitive::Random { kind }, [state]) => {
            let state = state.values.ints().try_into().map_err(|_| operands(op))?;
            elementwise::random(*kind, dtype, state, count)
        }
        (Primitive::Cast { to }, [x]) => elementwise::cast(x, *to),
        (Primitive::Copy, [x]) => x.values.clone(),
        (Primitive::Unary(op), [x]) => elementwise::unary(*op, x),
        (Primitive::Binary(op), [a, b]) => elementwise::binary(*op, a, b),
        (Primitive::Compare(op), [a, b]) => elementwise::compare(*op, a, b),
        (Primitive::Where, [condition, a, b]) => elementwise::choose(condition, a, b),
        (Primitive::Reduce { op, dims, .. }, [x]) => along::reduce(*op, x, *dims),
        (Primitive::ArgReduce { op, dim }, [x]) => along::arg_reduce(*op, x, (*dim).into()),
        (Primitive::Matmul { .. }, [a, b]) => along::matmul(a, b),
        (Primitive::Gather { dim }, [x, index]) => along::gather(x, index, (*dim).into())?,
        (Primitive::Cumulative { op, dim }, [x]) => along::cumulative(*op, x, (*dim).into()),
        (Primitive::Sort { dim, descending }, [x]) => {
            return Ok(along::sort(x, (*dim).into(), *descending).into());
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
            _,
        ) => return Err(operands(op)),
    };
    Ok(vec![one])
}
