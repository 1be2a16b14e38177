//! Runs a composite by core's decomposition, primitive by primitive, on the device, and compares.
#![allow(dead_code)]

use super::common::*;
use drivetrain_core::program::{Program, Step, Value};
use drivetrain_core::{
    Buffer, Composite, DType, Layout, Meta, Op, Operand, Primitive, Scalar, Shape, ViewOp,
    decompose, infer,
};

/// Values of a program that runs, and the memory that holds them.
struct Run {
    values: Vec<Option<Operand>>,
    memory: Vec<Buffer>,
}

impl Run {
    fn get(&self, value: Value) -> Operand {
        self.values[value.0].expect("made before it is read")
    }

    fn all(&self, values: &[Value]) -> Vec<Operand> {
        values.iter().map(|&v| self.get(v)).collect()
    }

    fn fresh(&mut self, meta: Meta) -> Operand {
        let buffer = cpu().allocate(meta.bytes().max(1)).unwrap();
        let operand = buffer.operand(meta.dtype, Layout::contiguous(meta.shape));
        self.memory.push(buffer);
        operand
    }

    fn copy(&mut self, x: Operand) -> Operand {
        let out = self.fresh(x.meta());
        execute(&Primitive::Copy.into(), &[x], &[], &[out]);
        out
    }

    fn view(&mut self, view: ViewOp, x: Operand) -> Operand {
        let mut viewed = x;
        match view.apply(&x.layout).unwrap() {
            Some(layout) => viewed.layout = layout,
            None => {
                viewed = self.copy(x);
                viewed.layout = view.apply(&viewed.layout).unwrap().unwrap();
            }
        }
        viewed
    }

    fn program(&mut self, program: &Program, inputs: &[Operand]) -> Vec<Operand> {
        let mut inner = Run {
            values: vec![None; program.metas.len()],
            memory: Vec::new(),
        };
        for (slot, input) in inner.values.iter_mut().zip(inputs) {
            *slot = Some(*input);
        }
        for step in &program.steps {
            inner.step(program, step);
        }
        let outputs = inner.all(&program.outputs);
        self.memory.append(&mut inner.memory);
        outputs
    }

    fn step(&mut self, program: &Program, step: &Step) {
        match step {
            Step::View {
                view,
                input,
                output,
            } => self.values[output.0] = Some(self.view(*view, self.get(*input))),
            Step::Write {
                target,
                window,
                source,
            } => {
                let mut target = self.get(*target);
                for view in window {
                    target.layout = view.apply(&target.layout).unwrap().unwrap();
                }
                execute(
                    &Primitive::Copy.into(),
                    &[self.get(*source)],
                    &[],
                    &[target],
                );
            }
            Step::Run {
                op,
                inputs,
                in_place,
                outputs,
            } => {
                let inputs = self.all(inputs);
                if let Op::Composite(composite) = op {
                    let metas: Vec<Meta> = inputs.iter().map(Operand::meta).collect();
                    let inner = decompose(composite, &metas, &[]).unwrap();
                    let results = self.program(&inner, &inputs);
                    for (output, result) in outputs.iter().zip(results) {
                        self.values[output.0] = Some(result);
                    }
                    return;
                }
                for output in outputs {
                    self.values[output.0] = Some(self.fresh(program.metas[output.0]));
                }
                execute(op, &inputs, &self.all(in_place), &self.all(outputs));
            }
        }
    }
}

fn execute(op: &Op, inputs: &[Operand], in_place: &[Operand], outputs: &[Operand]) {
    cpu().execute(op, inputs, in_place, outputs).unwrap();
}

/// The numbers of an operand.
fn numbers(run: &mut Run, x: Operand) -> Vec<Scalar> {
    let copy = run.copy(x);
    let bytes = read(&run.memory[run.memory.len() - 1]);
    (0..copy.layout.elements())
        .map(|i| decode(&bytes, copy.dtype, i))
        .collect()
}

/// What core's decomposition gives.
pub fn decomposed(op: &Composite, inputs: &[&Held], in_place: &[&Held]) -> Vec<Vec<Scalar>> {
    let metas = |held: &[&Held]| held.iter().map(|h| h.operand.meta()).collect::<Vec<_>>();
    let program = decompose(op, &metas(inputs), &metas(in_place)).unwrap();
    let operands: Vec<Operand> = inputs.iter().chain(in_place).map(|h| h.operand).collect();
    let mut run = Run {
        values: Vec::new(),
        memory: Vec::new(),
    };
    let outputs = run.program(&program, &operands);
    outputs.into_iter().map(|x| numbers(&mut run, x)).collect()
}

/// Relative to the largest magnitude of a result, at least 1, what a kernel may differ by: halves are rounded
/// more often in a decomposition, and near 0 rounding is all there is.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-10,
        DType::F32 => 1e-4,
        DType::F16 => 1e-2,
        DType::BF16 => 2e-2,
        _ => 0.0,
    }
}

/// Runs a composite natively and decomposed, and compares all outputs; gives the native ones.
#[track_caller]
pub fn agree(op: impl Into<Composite>, inputs: &[&Held]) -> Vec<Held> {
    let op = op.into();
    let metas: Vec<Meta> = inputs.iter().map(|h| h.operand.meta()).collect();
    let wrapped = Op::from(op.clone());
    assert!(
        cpu().supports(&wrapped, &metas),
        "{op:?} has no kernel for {metas:?}"
    );
    let outputs = infer(&wrapped, &metas, &[]).unwrap();
    let wanted: Vec<(DType, Vec<usize>)> = outputs
        .iter()
        .map(|m| (m.dtype, m.shape.dims().to_vec()))
        .collect();
    let wanted: Vec<(DType, &[usize])> = wanted.iter().map(|(d, s)| (*d, &s[..])).collect();
    let native = run(wrapped, inputs, &wanted).unwrap();
    let expected = decomposed(&op, inputs, &[]);
    for (i, (native, expected)) in native.iter().zip(&expected).enumerate() {
        let what = format!("{op:?} of {metas:?}, output {i}");
        near(&native.values(), expected, native.operand.dtype, &what);
    }
    native
}

/// As [`agree`] for an op that updates operands in place, which are left as they were.
#[track_caller]
pub fn agree_in_place(op: Composite, inputs: &[&Held], in_place: &[&Held]) {
    let expected = decomposed(&op, inputs, in_place);
    let copies: Vec<Held> = (in_place.iter())
        .map(|h| hold(h.operand.dtype, h.dims(), &h.values()))
        .collect();
    let copies: Vec<&Held> = copies.iter().collect();
    run_in_place(op.clone(), inputs, &copies, &[]).unwrap();
    for (i, (native, expected)) in copies.iter().zip(&expected).enumerate() {
        let what = format!("{op:?}, operand {i}");
        near(&native.values(), expected, native.operand.dtype, &what);
    }
}

#[track_caller]
pub fn near(got: &[Scalar], expected: &[Scalar], dtype: DType, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let finite = expected
        .iter()
        .map(|v| v.as_f64().abs())
        .filter(|v| v.is_finite());
    let scale = finite.fold(1.0, f64::max);
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let (g, e) = (got.as_f64(), expected.as_f64());
        let same = g == e || (g.is_nan() && e.is_nan());
        assert!(
            same || (g - e).abs() <= tolerance(dtype) * scale,
            "{what}: element {i} is {got}, expected {expected}"
        );
    }
}

/// A shape of these sizes.
pub fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}
