//! Runs ops and programs on values of the host: for tests and comparisons, on any device.

use super::values::{Values, from_bytes, into_bytes};
use drivetrain_core::program::{Program, Step, Value};
use drivetrain_core::{
    Buffer, Composite, DType, Device, Error, Layout, Meta, Op, Primitive, Result, Scalar, Shape,
    check_creation, decompose, infer,
};
use std::sync::Arc;

/// A value of any dtype, its elements row-major.
#[derive(Clone, Debug)]
pub struct HostValue {
    /// Its dtype and shape.
    pub meta: Meta,
    bytes: Vec<u8>,
}

impl HostValue {
    /// Of these elements, rounded to the dtype.
    ///
    /// # Errors
    /// A shape of another number of elements.
    pub fn new(dtype: DType, dims: &[usize], values: &[f64]) -> Result<HostValue> {
        Self::of(
            dtype,
            dims,
            &Values::of(DType::F64, values.iter().map(|&v| Scalar::F64(v))),
        )
    }

    /// Of these integers, exactly.
    ///
    /// # Errors
    /// A shape of another number of elements.
    pub fn ints(dtype: DType, dims: &[usize], values: &[i64]) -> Result<HostValue> {
        Self::of(dtype, dims, &Values::Int(values.to_vec()))
    }

    fn of(dtype: DType, dims: &[usize], values: &Values) -> Result<HostValue> {
        let shape = Shape::new(dims)?;
        if shape.elements() != values.len() {
            return Err(Error::shape(
                "host value",
                format!("{} values for shape {shape}", values.len()),
            ));
        }
        let meta = Meta::new(dtype, shape);
        let mut bytes = vec![0; meta.bytes()];
        into_bytes(dtype, values, &mut bytes, &Layout::contiguous(shape));
        Ok(HostValue { meta, bytes })
    }

    /// From the bytes of its elements.
    ///
    /// # Errors
    /// Another number of bytes than dtype and shape ask for.
    pub fn from_bytes(meta: Meta, bytes: Vec<u8>) -> Result<HostValue> {
        if bytes.len() != meta.bytes() {
            return Err(Error::shape(
                "host value",
                format!("{} bytes for {} {}", bytes.len(), meta.dtype, meta.shape),
            ));
        }
        Ok(HostValue { meta, bytes })
    }

    /// The elements that a layout shows of this value's memory, row-major.
    ///
    /// # Errors
    /// A layout that reaches outside of it.
    pub fn view(&self, layout: &Layout) -> Result<HostValue> {
        let size = self.meta.dtype.size();
        layout.check(size, self.bytes.len())?;
        let element = |i: usize| &self.bytes[i * size..(i + 1) * size];
        let bytes = layout.indices().flat_map(element).copied().collect();
        HostValue::from_bytes(Meta::new(self.meta.dtype, *layout.shape()), bytes)
    }

    /// The bytes of its elements.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its elements as F64.
    pub fn values(&self) -> Vec<f64> {
        let layout = Layout::contiguous(self.meta.shape);
        let values = from_bytes(self.meta.dtype, &self.bytes, &layout);
        (0..values.len())
            .map(|i| values.scalar(i).as_f64())
            .collect()
    }
}

/// A value on the device while programs run: memory and a view of it.
#[derive(Clone)]
struct Held {
    buffer: Arc<Buffer>,
    dtype: DType,
    layout: Layout,
}

impl Held {
    fn new(device: &Device, meta: Meta) -> Result<Held> {
        Ok(Held {
            buffer: Arc::new(device.allocate(meta.bytes())?),
            dtype: meta.dtype,
            layout: Layout::contiguous(meta.shape),
        })
    }

    fn operand(&self) -> drivetrain_core::Operand {
        self.buffer.operand(self.dtype, self.layout)
    }

    fn meta(&self) -> Meta {
        Meta::new(self.dtype, *self.layout.shape())
    }

    /// A row-major copy.
    fn copy(&self, device: &Device) -> Result<Held> {
        let copy = Held::new(device, self.meta())?;
        device.execute(
            &Primitive::Copy.into(),
            &[self.operand()],
            &[],
            &[copy.operand()],
        )?;
        Ok(copy)
    }
}

fn to_device(device: &Device, value: &HostValue) -> Result<Held> {
    let held = Held::new(device, value.meta)?;
    held.buffer.upload(&value.bytes, 0)?;
    Ok(held)
}

fn to_host(device: &Device, held: &Held) -> Result<HostValue> {
    let held = held.copy(device)?;
    let mut bytes = vec![0; held.meta().bytes()];
    held.buffer.download(&mut bytes, 0)?;
    HostValue::from_bytes(held.meta(), bytes)
}

/// The outputs of an op on a device, natively or through decompositions; for an op that works in place the new
/// values of its in-place operands. Ops whose output inference cannot know (fill, iota, random) are refused.
///
/// # Errors
/// As inference, decomposition and the device.
pub fn run(
    device: &Device,
    op: &Op,
    inputs: &[HostValue],
    in_place: &[HostValue],
) -> Result<Vec<HostValue>> {
    let load = |values: &[HostValue]| {
        values
            .iter()
            .map(|v| to_device(device, v))
            .collect::<Result<Vec<Held>>>()
    };
    let outputs = run_held(device, op, &load(inputs)?, &load(in_place)?)?;
    outputs.iter().map(|held| to_host(device, held)).collect()
}

/// The outputs of a program on a device; composites that the device lacks are decomposed in turn.
///
/// # Errors
/// As inference, decomposition and the device; a program that is not well formed.
pub fn run_program(
    device: &Device,
    program: &Program,
    inputs: &[HostValue],
) -> Result<Vec<HostValue>> {
    let inputs = inputs
        .iter()
        .map(|v| to_device(device, v))
        .collect::<Result<Vec<Held>>>()?;
    let outputs = interpret(device, program, &inputs)?;
    outputs.iter().map(|held| to_host(device, held)).collect()
}

fn metas(values: &[Held]) -> Vec<Meta> {
    values.iter().map(Held::meta).collect()
}

fn run_held(device: &Device, op: &Op, inputs: &[Held], in_place: &[Held]) -> Result<Vec<Held>> {
    let outputs = infer(op, &metas(inputs), &metas(in_place))?;
    if let Op::Composite(composite) = op
        && !device.supports(op, &metas(inputs))
    {
        return run_decomposed(device, composite, inputs, in_place);
    }
    let results = outputs
        .iter()
        .map(|&meta| Held::new(device, meta))
        .collect::<Result<Vec<_>>>()?;
    execute(device, op, inputs, in_place, &results)?;
    Ok(if in_place.is_empty() {
        results
    } else {
        in_place.to_vec()
    })
}

fn run_decomposed(
    device: &Device,
    op: &Composite,
    inputs: &[Held],
    in_place: &[Held],
) -> Result<Vec<Held>> {
    let program = decompose(op, &metas(inputs), &metas(in_place))?;
    let operands: Vec<Held> = inputs.iter().chain(in_place).cloned().collect();
    interpret(device, &program, &operands)
}

fn execute(
    device: &Device,
    op: &Op,
    inputs: &[Held],
    in_place: &[Held],
    outputs: &[Held],
) -> Result<()> {
    let operands = |values: &[Held]| values.iter().map(Held::operand).collect::<Vec<_>>();
    device.execute(
        op,
        &operands(inputs),
        &operands(in_place),
        &operands(outputs),
    )
}

fn interpret(device: &Device, program: &Program, inputs: &[Held]) -> Result<Vec<Held>> {
    let mut values: Vec<Option<Held>> = inputs.iter().cloned().map(Some).collect();
    values.resize(program.metas.len().max(inputs.len()), None);
    for step in &program.steps {
        match step {
            Step::Run {
                op,
                inputs,
                in_place,
                outputs,
            } => {
                let (from, to) = (get_all(&values, inputs)?, get_all(&values, in_place)?);
                for (output, result) in outputs
                    .iter()
                    .zip(step_outputs(device, program, op, &from, &to, outputs)?)
                {
                    values[output.0] = Some(result);
                }
            }
            Step::View {
                view,
                input,
                output,
            } => {
                let mut held = get(&values, *input)?;
                let layout = match view.apply(&held.layout)? {
                    Some(layout) => layout,
                    None => {
                        held = held.copy(device)?;
                        view.apply(&held.layout)?.ok_or_else(|| {
                            Error::backend("view", format!("{view:?} of a row-major value"))
                        })?
                    }
                };
                values[output.0] = Some(Held { layout, ..held });
            }
            Step::Write {
                target,
                window,
                source,
            } => {
                let mut place = get(&values, *target)?;
                for view in window {
                    place.layout = view
                        .apply(&place.layout)?
                        .ok_or_else(|| Error::backend("write", format!("{view:?} is no view")))?;
                }
                let source = get(&values, *source)?;
                execute(device, &Primitive::Copy.into(), &[source], &[], &[place])?;
            }
        }
    }
    get_all(&values, &program.outputs)
}

/// Runs one step; what is created takes dtype and shape from the program.
fn step_outputs(
    device: &Device,
    program: &Program,
    op: &Op,
    inputs: &[Held],
    in_place: &[Held],
    outputs: &[Value],
) -> Result<Vec<Held>> {
    let created = matches!(
        op,
        Op::Primitive(Primitive::Fill { .. } | Primitive::Iota { .. } | Primitive::Random { .. })
    );
    if !created {
        return run_held(device, op, inputs, in_place);
    }
    let make = |value: &Value| {
        let meta = program.metas[value.0];
        check_creation(op, &meta)?;
        Held::new(device, meta)
    };
    let results = outputs.iter().map(make).collect::<Result<Vec<_>>>()?;
    execute(device, op, inputs, &[], &results)?;
    Ok(results)
}

fn get(values: &[Option<Held>], value: Value) -> Result<Held> {
    let held = values.get(value.0).cloned().flatten();
    held.ok_or_else(|| {
        Error::backend(
            "program",
            format!("value {} is read before it is made", value.0),
        )
    })
}

fn get_all(values: &[Option<Held>], wanted: &[Value]) -> Result<Vec<Held>> {
    wanted.iter().map(|&v| get(values, v)).collect()
}
