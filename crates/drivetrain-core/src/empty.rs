//! What ops on empty values give, so that no backend ever sees one.

use crate::backend::Operand;
use crate::{Composite, MAX_DIMS, Op, Primitive, ReduceOp, Scalar, Shape};

/// What to do with an op.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// Give it to the engine.
    Run,
    /// Nothing to compute.
    Nothing,
    /// Every output is this value.
    Fill(Scalar),
    /// The output is a copy of this view.
    Copy(Box<Operand>),
    /// Give it to the engine without the empty inputs.
    Without,
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
        // Extremes of nothing are refused by inference, but for Bool: none is true, all are.
        Op::Primitive(Primitive::Reduce {
            op: ReduceOp::Prod | ReduceOp::Min,
            ..
        }) => Answer::Fill(Scalar::I64(1)),
        Op::Composite(Composite::Pad(spec)) => Answer::Fill(spec.value),
        Op::Composite(Composite::Concat { .. }) => Answer::Without,
        // Products over no feature are 0, and the bias is left.
        Op::Composite(Composite::Linear) => bias(inputs, outputs, 1),
        Op::Composite(Composite::Convolution(spec)) => bias(inputs, outputs, 1 + spec.spatial),
        // A sum over nothing is 0, and so is every product and gradient built of such sums.
        _ => Answer::Fill(Scalar::I64(0)),
    }
}

/// The bias, when there is one, broadcast over the output, `dims` dimensions from the last.
fn bias(inputs: &[Operand], outputs: &[Operand], dims: u8) -> Answer {
    let (Some(bias), Some(output)) = (inputs.get(2), outputs.first()) else {
        return Answer::Fill(Scalar::I64(0));
    };
    let mut row = [1; MAX_DIMS];
    row[0] = bias.layout.elements();
    let row = Shape::new(&row[..usize::from(dims)]);
    let view = row.ok().and_then(|row| bias.layout.reshape(&row));
    match view.map(|view| view.expand(output.layout.shape())) {
        Some(Ok(layout)) => Answer::Copy(Box::new(Operand { layout, ..*bias })),
        _ => Answer::Fill(Scalar::I64(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, DType, DimSet, Layout, RawBuffer};

    fn operand(dims: &[usize]) -> Operand {
        Operand {
            buffer: RawBuffer {
                handle: 1,
                bytes: 64,
            },
            dtype: DType::F32,
            layout: Layout::contiguous(Shape::new(dims).unwrap()),
            storage: 1,
            version: 0,
        }
    }

    #[track_caller]
    fn gives(op: impl Into<Op>, inputs: &[&[usize]], output: &[usize], wanted: Answer) {
        let inputs: Vec<Operand> = inputs.iter().map(|dims| operand(dims)).collect();
        assert_eq!(answer(&op.into(), &inputs, &[], &[operand(output)]), wanted);
    }

    fn reduce(op: ReduceOp) -> Primitive {
        Primitive::Reduce {
            op,
            dims: DimSet::of(&[0]),
            accumulate: DType::F32,
        }
    }

    #[test]
    fn sums_products_and_joins_of_nothing() {
        let zero = || Answer::Fill(Scalar::I64(0));
        let add = Primitive::Binary(BinaryOp::Add);
        gives(add.clone(), &[&[2], &[2]], &[2], Answer::Run);
        gives(add, &[&[0], &[0]], &[0], Answer::Nothing);
        gives(reduce(ReduceOp::Sum), &[&[0, 3]], &[1, 3], zero());
        gives(
            reduce(ReduceOp::Prod),
            &[&[0, 3]],
            &[1, 3],
            Answer::Fill(Scalar::I64(1)),
        );
        let matmul = Primitive::Matmul {
            accumulate: DType::F32,
        };
        gives(matmul, &[&[2, 0], &[0, 3]], &[2, 3], zero());
        gives(
            Composite::Concat { dim: 0 },
            &[&[2], &[0]],
            &[2],
            Answer::Without,
        );
        gives(Composite::Linear, &[&[2, 0], &[3, 0]], &[2, 3], zero());
    }

    #[test]
    fn a_linear_layer_without_features_is_its_bias() {
        let bias = operand(&[3]);
        let inputs = [operand(&[2, 0]), operand(&[3, 0]), bias];
        let op = Op::from(Composite::Linear);
        let Answer::Copy(view) = answer(&op, &inputs, &[], &[operand(&[2, 3])]) else {
            panic!("no copy of the bias");
        };
        assert_eq!(view.layout.strides(), [0, 1]);
        assert_eq!(*view.layout.shape(), [2, 3]);
    }

    #[test]
    fn scattering_nothing_changes_nothing() {
        let op = Op::from(Primitive::Scatter {
            dim: 0,
            mode: crate::ScatterMode::Add,
        });
        let got = answer(&op, &[operand(&[0]), operand(&[0])], &[operand(&[3])], &[]);
        assert_eq!(got, Answer::Nothing);
    }
}
