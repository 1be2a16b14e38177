//! The one funnel of every op: infer → decompose where needed → allocate → execute → record.

use crate::Tensor;
use crate::autograd::{Edge, Node, Rule, anomaly_off, is_grad_enabled};
use crate::{anomaly, program, rules};
use drivetrain_core::{
    Device, Error, ErrorKind, Meta, Op, Operand, Primitive, Result, ViewOp, decompose, infer,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// A few of something, on the stack: most ops have at most three operands and two results.
pub(crate) type Few<T> = SmallVec<[T; 3]>;
/// The results of an op.
pub(crate) type Results = SmallVec<[Tensor; 2]>;

/// Runs an op that updates nothing in place; its outputs, recorded for backward where an input asks for it.
///
/// The tensors must be on one device and of the dtypes the op takes: methods of [`Tensor`] promote and
/// broadcast before they come here.
///
/// # Errors
/// What inference refuses, a device that fails, or tensors on different devices.
#[track_caller]
pub fn run(op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    run_few(op.into(), inputs).map(Results::into_vec)
}

#[track_caller]
fn run_few(op: Op, inputs: &[&Tensor]) -> Result<Results> {
    let Some(first) = inputs.first() else {
        return Err(Error::argument(op.name(), "no operands"));
    };
    let device = same_device(&op, inputs)?;
    let metas: Few<Meta> = inputs.iter().map(|t| t.meta()).collect();
    let outputs = infer(&op, &metas, &[]).map_err(|e| e.on(device))?;
    let record = is_grad_enabled() && inputs.iter().any(|t| t.requires_grad());
    if let Op::Composite(composite) = &op
        && record
        && !rules::has_rule(&op)
    {
        // A backward op under `create_graph`: recorded through its decomposition.
        let steps = decompose(composite, &metas, &[])?;
        return program::interpret(&steps, inputs).map(Results::from_vec);
    }
    let results = compute(&op, inputs, &metas, &outputs, first.device())?;
    anomaly::check(&op, inputs, &results)?;
    Ok(if record {
        attach(Rule::Op(op), inputs, results)
    } else {
        results
    })
}

/// [`run`] for ops with one output.
#[track_caller]
pub(crate) fn run_one(op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Tensor> {
    // The first is the result; others are kept for backward only.
    run_few(op.into(), inputs)?
        .into_iter()
        .next()
        .ok_or_else(|| Error::backend("run", "the op has no output"))
}

/// Executes without recording, natively or through the decomposition.
fn compute(
    op: &Op,
    inputs: &[&Tensor],
    metas: &[Meta],
    outputs: &[Meta],
    device: &Device,
) -> Result<Results> {
    if let Op::Composite(composite) = op {
        let empty = inputs.iter().any(|t| t.shape().is_empty());
        if empty || !device.supports(op, metas) {
            let steps = decompose(composite, metas, &[])?;
            let plain: Vec<Tensor> = inputs.iter().map(|t| t.detach()).collect();
            let plain: Vec<&Tensor> = plain.iter().collect();
            // What it comes to is checked by the caller; infinities on the way are its own affair.
            let results = anomaly_off(|| program::interpret(&steps, &plain));
            return results
                .map(Results::from_vec)
                .map_err(|e| e.context(op.name()));
        }
    }
    let results = outputs
        .iter()
        .map(|&meta| Tensor::allocate(meta, device))
        .collect::<Result<Results>>()?;
    execute(device, op, inputs, &results)?;
    Ok(results)
}

/// Gives operands to the device; inputs may have any strides.
pub(crate) fn execute(
    device: &Device,
    op: &Op,
    inputs: &[&Tensor],
    outputs: &[Tensor],
) -> Result<()> {
    let operands: Few<Operand> = inputs.iter().map(|t| t.operand()).collect();
    let results: Few<Operand> = outputs.iter().map(|t| t.operand()).collect();
    device.execute(op, &operands, &[], &results)
}

/// Makes results part of the graph.
pub(crate) fn attach(rule: Rule, inputs: &[&Tensor], mut results: Results) -> Results {
    let saves = rules::saves(&rule, inputs.len());
    let node = Arc::new(Node::new(rule, inputs, &results, saves));
    for (i, result) in results.iter_mut().enumerate() {
        if result.dtype().is_float() {
            result.set_edge(Edge::Node(node.clone(), i));
        }
    }
    results
}

/// [`attach`] of one result.
pub(crate) fn attach_one(rule: Rule, inputs: &[&Tensor], result: Tensor) -> Tensor {
    let spare = result.clone();
    let mut linked = attach(rule, inputs, smallvec::smallvec![result]);
    linked.pop().unwrap_or(spare)
}

/// A source op (fill, iota, random): no input but perhaps a state, an output of this kind.
pub(crate) fn run_source(
    op: Primitive,
    inputs: &[&Tensor],
    meta: Meta,
    device: &Device,
) -> Result<Tensor> {
    let output = Tensor::allocate(meta, device)?;
    execute(device, &op.into(), inputs, std::slice::from_ref(&output))?;
    Ok(output)
}

/// Runs a view, copying first where a reshape needs it.
#[track_caller]
pub(crate) fn run_view(view: ViewOp, input: &Tensor) -> Result<Tensor> {
    let layout = match view.apply(&input.0.layout)? {
        Some(layout) => layout,
        None => return run_view(view, &input.contiguous()?),
    };
    let result = Tensor::new(input.0.memory.clone(), input.dtype(), layout, Edge::None);
    if !(is_grad_enabled() && input.requires_grad()) {
        return Ok(result);
    }
    Ok(attach_one(Rule::View(view), &[input], result))
}

/// A scatter as a function: `destination` with the source put in. Recorded as one op.
#[track_caller]
pub(crate) fn run_scatter(
    op: Primitive,
    destination: &Tensor,
    index: &Tensor,
    source: &Tensor,
) -> Result<Tensor> {
    let op = Op::from(op);
    let device = same_device(&op, &[destination, index, source])?;
    infer(&op, &[index.meta(), source.meta()], &[destination.meta()]).map_err(|e| e.on(device))?;
    let result = destination.detach().copy()?;
    device.execute(
        &op,
        &[index.operand(), source.operand()],
        &[result.operand()],
        &[],
    )?;
    let inputs = [destination, index, source];
    anomaly::check(&op, &inputs, std::slice::from_ref(&result))?;
    record_one(Rule::Op(op), &inputs, result)
}

/// `source` written into the window of `target` that the slices cut out, as a function.
#[track_caller]
pub(crate) fn run_write(target: &Tensor, window: &[ViewOp], source: &Tensor) -> Result<Tensor> {
    let result = target.detach().copy()?;
    write_window(&result, window, source)?;
    record_one(Rule::Write(window.to_vec()), &[target, source], result)
}

/// [`run_write`] into a target that is given away: its own memory is written where nobody else holds it and nothing is
/// recorded, so that many writes into one value do not copy it each time.
pub(crate) fn run_write_owned(
    mut target: Tensor,
    window: &[ViewOp],
    source: &Tensor,
) -> Result<Tensor> {
    if is_grad_enabled() && (target.requires_grad() || source.requires_grad()) {
        return run_write(&target, window, source);
    }
    make_unique(&mut target)?;
    write_window(&target, window, source)?;
    target.0.memory.bump_version();
    Ok(target)
}

/// Copies `source` into the window of `result`, whose memory nobody else sees.
#[track_caller]
fn write_window(result: &Tensor, window: &[ViewOp], source: &Tensor) -> Result<()> {
    let op = Op::from(Primitive::Copy);
    let device = same_device(&op, &[result, source])?;
    let mut layout = result.0.layout;
    for view in window {
        layout = view
            .apply(&layout)?
            .ok_or_else(|| Error::argument("slice_assign", "the window is no view"))?;
    }
    if *layout.shape() != *source.shape() || source.dtype() != result.dtype() {
        return Err(Error::shape(
            "slice_assign",
            format!(
                "a window {} {} for a source {} {}",
                result.dtype(),
                layout.shape(),
                source.dtype(),
                source.shape()
            ),
        )
        .on(device));
    }
    let output = result.0.memory.operand(result.dtype(), layout);
    device.execute(&op, &[source.operand()], &[], &[output])
}

/// Records one result where an input asks for it.
pub(crate) fn record_one(rule: Rule, inputs: &[&Tensor], result: Tensor) -> Result<Tensor> {
    if is_grad_enabled() && inputs.iter().any(|t| t.requires_grad()) {
        return Ok(attach_one(rule, inputs, result));
    }
    Ok(result)
}

/// Runs an op that updates `targets` in place (an optimizer step). Nobody else sees the change: a target whose
/// memory is shared is copied first. Targets keep their place in the graph; nothing is recorded.
///
/// # Errors
/// As [`run`]. After an error a target may hold a copy of its old value or the new one, never a mixture,
/// unless the device failed half-way.
#[track_caller]
pub fn run_in_place(
    op: impl Into<Op>,
    inputs: &[&Tensor],
    targets: &mut [&mut Tensor],
) -> Result<()> {
    let op = op.into();
    let Some(first) = targets.first() else {
        return Err(Error::argument(op.name(), "no operands"));
    };
    let device = first.device().clone();
    let all: Vec<&Tensor> = inputs
        .iter()
        .copied()
        .chain(targets.iter().map(|t| &**t))
        .collect();
    same_device(&op, &all)?;
    let input_metas: Vec<Meta> = inputs.iter().map(|t| t.meta()).collect();
    let target_metas: Vec<Meta> = targets.iter().map(|t| t.meta()).collect();
    infer(&op, &input_metas, &target_metas).map_err(|e| e.on(&device))?;
    match &op {
        Op::Composite(composite)
            if !supports_in_place(&device, &op, &input_metas, &target_metas) =>
        {
            let steps = decompose(composite, &input_metas, &target_metas)?;
            let plain: Vec<Tensor> = all.iter().map(|t| t.detach()).collect();
            let plain: Vec<&Tensor> = plain.iter().collect();
            let results = program::interpret(&steps, &plain)?;
            for (target, result) in targets.iter_mut().zip(results) {
                // The result may be a view of something that lives on; a target owns its memory.
                let edge = target.0.edge.clone();
                **target = result.contiguous()?.with_edge(edge);
            }
        }
        _ => {
            for target in targets.iter_mut() {
                make_unique(target)?;
            }
            let operands: Vec<_> = inputs.iter().map(|t| t.operand()).collect();
            let in_place: Vec<_> = targets.iter().map(|t| t.operand()).collect();
            device.execute(&op, &operands, &in_place, &[])?;
            targets.iter().for_each(|t| t.0.memory.bump_version());
        }
    }
    targets
        .iter()
        .try_for_each(|t| anomaly::check(&op, inputs, std::slice::from_ref(&**t)))
}

fn supports_in_place(device: &Device, op: &Op, inputs: &[Meta], targets: &[Meta]) -> bool {
    let metas: Vec<Meta> = inputs.iter().chain(targets).copied().collect();
    !targets.iter().any(|m| m.shape.is_empty()) && device.supports(op, &metas)
}

/// Makes sure that nobody else holds a tensor's memory and that it is contiguous, by copying it otherwise.
fn make_unique(tensor: &mut Tensor) -> Result<()> {
    let alone = Arc::get_mut(&mut tensor.0).is_some_and(|inner| {
        inner.layout.is_contiguous() && Arc::get_mut(&mut inner.memory).is_some()
    });
    if !alone {
        let edge = tensor.0.edge.clone();
        *tensor = tensor.detach().copy()?.with_edge(edge);
    }
    Ok(())
}

/// The one device of all tensors.
pub(crate) fn same_device<'a>(op: &Op, tensors: &[&'a Tensor]) -> Result<&'a Device> {
    let device = tensors[0].device();
    for (i, tensor) in tensors.iter().enumerate().skip(1) {
        if tensor.device() != device {
            return Err(different_devices(op.name(), tensors[0], i, tensor));
        }
    }
    Ok(device)
}

/// The error of mixing devices; also for callers that know the arguments' names.
pub(crate) fn different_devices(
    operation: &'static str,
    first: &Tensor,
    i: usize,
    other: &Tensor,
) -> Error {
    let (a, b) = (first.device(), other.device());
    Error::new(
        ErrorKind::Device,
        operation,
        format!(
            "operand 0 {} is on {a}, operand {i} {} is on {b}",
            first.shape(),
            other.shape()
        ),
    )
    .help(format!(
        "move one with .to(&device)?, for example operand {i} to {a}"
    ))
}

impl Tensor {
    /// The same value with its elements row-major; itself when they are.
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() {
            return Ok(self.clone());
        }
        self.copy()
    }

    /// A copy in memory of its own, row-major. The gradient flows through (`torch.clone`).
    #[track_caller]
    #[allow(clippy::missing_errors_doc)]
    pub fn copy(&self) -> Result<Tensor> {
        let result = Tensor::allocate(self.meta(), self.device())?;
        let op = Op::from(Primitive::Copy);
        execute(self.device(), &op, &[self], std::slice::from_ref(&result))?;
        record_one(Rule::Op(op), &[self], result)
    }

    /// The same value on `device`; itself, without a copy and without an error, when it is there already.
    /// The gradient flows back to where it came from.
    ///
    /// # Errors
    /// When either device fails or the target has no room.
    #[track_caller]
    #[must_use = "the tensor itself stays where it is: use what `to` returns"]
    pub fn to(&self, device: &Device) -> Result<Tensor> {
        if self.device() == device {
            return Ok(self.clone());
        }
        let source = self.detach().contiguous()?;
        let result = Tensor::allocate(self.meta(), device)?;
        // A contiguous view may begin in the middle of its memory.
        let source = if source.0.layout.offset() == 0 {
            source
        } else {
            source.copy()?
        };
        result
            .0
            .memory
            .copy_from(&source.0.memory, self.meta().bytes())?;
        record_one(Rule::Transfer(self.device().clone()), &[self], result)
    }

    /// The same value on the CPU.
    ///
    /// # Errors
    /// As [`Tensor::to`]; or when the program has no CPU backend.
    #[track_caller]
    pub fn cpu(&self) -> Result<Tensor> {
        self.to(&Tensor::cpu_device()?)
    }

    /// The CPU, where data sets prepare their batches.
    ///
    /// # Errors
    /// When the program has no CPU backend.
    #[track_caller]
    pub fn cpu_device() -> Result<Device> {
        Device::open("cpu")
    }
}
