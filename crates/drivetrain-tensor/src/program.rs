//! Runs a decomposition on tensors: through the funnel, so that it is recorded where recording is on.

use crate::Tensor;
use crate::run::{run, run_scatter, run_source, run_view, run_write_owned};
use drivetrain_core::program::{Program, Step, Value};
use drivetrain_core::{Error, Op, Primitive, Result};

/// The outputs of a program for these inputs. Values are let go after their last use.
pub(crate) fn interpret(program: &Program, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let Some(first) = inputs.first() else {
        return Err(Error::argument("program", "no operands"));
    };
    let device = first.device().clone();
    let mut values: Vec<Option<Tensor>> = inputs.iter().map(|t| Some((*t).clone())).collect();
    values.resize(program.metas.len(), None);
    let last_use = last_uses(program);
    for (i, step) in program.steps.iter().enumerate() {
        match step {
            Step::View {
                view,
                input,
                output,
            } => values[output.0] = Some(run_view(*view, &get(&values, *input)?)?),
            Step::Write {
                target,
                window,
                source,
            } => {
                let source = get(&values, *source)?;
                let written = run_write_owned(take(&mut values, *target)?, window, &source)?;
                values[target.0] = Some(written);
            }
            Step::Run {
                op,
                inputs,
                in_place,
                outputs,
            } => {
                let operands = inputs
                    .iter()
                    .map(|&v| get(&values, v))
                    .collect::<Result<Vec<_>>>()?;
                let operands: Vec<&Tensor> = operands.iter().collect();
                match (op, in_place.as_slice(), outputs.as_slice()) {
                    (
                        Op::Primitive(
                            source @ (Primitive::Fill { .. }
                            | Primitive::Iota { .. }
                            | Primitive::Random { .. }),
                        ),
                        [],
                        [output],
                    ) => {
                        let meta = program.metas[output.0];
                        values[output.0] =
                            Some(run_source(source.clone(), &operands, meta, &device)?);
                    }
                    (Op::Primitive(scatter @ Primitive::Scatter { .. }), [target], []) => {
                        let [index, source] = operands[..] else {
                            return Err(Error::backend(
                                "scatter",
                                "a program with other than two inputs",
                            ));
                        };
                        let written =
                            run_scatter(scatter.clone(), &get(&values, *target)?, index, source)?;
                        values[target.0] = Some(written);
                    }
                    (op, [], outputs) => {
                        for (output, result) in outputs.iter().zip(run(op.clone(), &operands)?) {
                            values[output.0] = Some(result);
                        }
                    }
                    (op, ..) => {
                        return Err(Error::backend(op.name(), "a program that updates in place"));
                    }
                }
            }
        }
        for (value, &last) in values.iter_mut().zip(&last_use) {
            if last == i {
                *value = None;
            }
        }
    }
    program.outputs.iter().map(|&v| get(&values, v)).collect()
}

fn get(values: &[Option<Tensor>], value: Value) -> Result<Tensor> {
    values
        .get(value.0)
        .cloned()
        .flatten()
        .ok_or_else(|| missing(value))
}

/// A value that is written and put back.
fn take(values: &mut [Option<Tensor>], value: Value) -> Result<Tensor> {
    let found = values.get_mut(value.0).and_then(Option::take);
    found.ok_or_else(|| missing(value))
}

fn missing(value: Value) -> Error {
    Error::backend(
        "program",
        format!("value {} is read before it is made", value.0),
    )
}

/// The step after which each value is no longer needed; `usize::MAX` for outputs.
fn last_uses(program: &Program) -> Vec<usize> {
    let mut last = vec![usize::MAX; program.metas.len()];
    for (i, step) in program.steps.iter().enumerate() {
        let mut touch = |values: &[Value]| values.iter().for_each(|v| last[v.0] = i);
        match step {
            Step::Run {
                inputs,
                in_place,
                outputs,
                ..
            } => [inputs, in_place, outputs]
                .iter()
                .for_each(|list| touch(list)),
            Step::View { input, output, .. } => touch(&[*input, *output]),
            Step::Write { target, source, .. } => touch(&[*target, *source]),
        }
    }
    program.outputs.iter().for_each(|v| last[v.0] = usize::MAX);
    last
}
