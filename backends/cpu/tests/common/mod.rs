//! A harness for single ops: random operands in awkward layouts, outputs between sentinels, results as numbers.
#![allow(dead_code)]

use drivetrain_core::half::{bf16, f16};
use drivetrain_core::random::Generator;
use drivetrain_core::{Buffer, DType, Device, Element, Layout, Op, Operand, Result, Scalar, Shape};
use drivetrain_cpu as _;

/// Bytes of sentinel on both sides of every output.
const GUARD: usize = 192;

/// The device under test.
pub fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Contiguous,
    /// Dimensions in reverse order in memory.
    Transposed,
    /// Every second or third element of each dimension.
    Stepped,
    /// Every dimension runs backwards.
    Reversed,
    /// The first dimension (and with luck others) has stride 0.
    Expanded,
    /// Any mix of the others.
    Mixed,
}

impl Lie {
    pub const ALL: [Lie; 6] = [
        Lie::Contiguous,
        Lie::Transposed,
        Lie::Stepped,
        Lie::Reversed,
        Lie::Expanded,
        Lie::Mixed,
    ];
}

/// An operand with the buffer that holds it.
pub struct Held {
    pub buffer: Buffer,
    pub operand: Operand,
}

impl Held {
    pub fn dims(&self) -> &[usize] {
        self.operand.layout.dims()
    }

    /// Its elements row-major, as the layout's definition says.
    pub fn values(&self) -> Vec<Scalar> {
        let bytes = read(&self.buffer);
        let (layout, dtype) = (&self.operand.layout, self.operand.dtype);
        let offsets = indices(layout.dims()).map(|index| {
            let steps = index.iter().zip(layout.strides());
            steps.fold(layout.offset() as isize, |at, (&i, &s)| at + i as isize * s)
        });
        offsets
            .map(|at| decode(&bytes, dtype, at as usize))
            .collect()
    }

    pub fn floats(&self) -> Vec<f64> {
        self.values().into_iter().map(Scalar::as_f64).collect()
    }

    pub fn integers(&self) -> Vec<i64> {
        self.values().into_iter().map(Scalar::as_i64).collect()
    }
}

/// All indices of a shape, row-major.
pub fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let dims = dims.to_vec();
    (0..dims.iter().product()).map(move |mut number| {
        let mut index = vec![0; dims.len()];
        for d in (0..dims.len()).rev() {
            index[d] = number % dims[d];
            number /= dims[d];
        }
        index
    })
}

/// The row-major number of an index.
pub fn number(dims: &[usize], index: &[usize]) -> usize {
    index
        .iter()
        .zip(dims)
        .fold(0, |n, (&i, &size)| n * size + i)
}

pub fn read(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.bytes()];
    buffer.download(&mut bytes, 0).unwrap();
    bytes
}

pub fn decode(bytes: &[u8], dtype: DType, at: usize) -> Scalar {
    let bytes = &bytes[at * dtype.size()..][..dtype.size()];
    fn one<T: Element>(bytes: &[u8]) -> Scalar {
        T::from_bytes(bytes)[0].into()
    }
    match dtype {
        DType::F32 => one::<f32>(bytes),
        DType::F64 => one::<f64>(bytes),
        DType::F16 => one::<f16>(bytes),
        DType::BF16 => one::<bf16>(bytes),
        DType::I64 => one::<i64>(bytes),
        DType::I32 => one::<i32>(bytes),
        DType::U8 => one::<u8>(bytes),
        DType::Bool => one::<bool>(bytes),
    }
}

pub fn encode(values: &[Scalar], dtype: DType) -> Vec<u8> {
    fn all<T: Element>(values: &[Scalar]) -> Vec<u8> {
        let typed: Vec<T> = values.iter().map(|&v| T::from_scalar(v)).collect();
        T::to_bytes(&typed).to_vec()
    }
    match dtype {
        DType::F32 => all::<f32>(values),
        DType::F64 => all::<f64>(values),
        DType::F16 => all::<f16>(values),
        DType::BF16 => all::<bf16>(values),
        DType::I64 => all::<i64>(values),
        DType::I32 => all::<i32>(values),
        DType::U8 => all::<u8>(values),
        DType::Bool => all::<bool>(values),
    }
}

/// A value of a dtype as the scalar of its category.
pub fn cast(value: Scalar, dtype: DType) -> Scalar {
    decode(&encode(&[value], dtype), dtype, 0)
}

/// A contiguous operand of these values.
pub fn hold(dtype: DType, dims: &[usize], values: &[Scalar]) -> Held {
    let bytes = encode(values, dtype);
    let buffer = cpu().allocate(bytes.len()).unwrap();
    buffer.upload(&bytes, 0).unwrap();
    let layout = Layout::contiguous(Shape::new(dims).unwrap());
    let operand = buffer.operand(dtype, layout);
    Held { buffer, operand }
}

pub fn hold_f32(dims: &[usize], values: &[f32]) -> Held {
    let values: Vec<Scalar> = values.iter().map(|&v| v.into()).collect();
    hold(DType::F32, dims, &values)
}

pub fn hold_i64(dims: &[usize], values: &[i64]) -> Held {
    let values: Vec<Scalar> = values.iter().map(|&v| v.into()).collect();
    hold(DType::I64, dims, &values)
}

/// An operand of this shape, lying so, filled with what `draw` gives.
pub fn scattered(
    generator: &mut Generator,
    dtype: DType,
    dims: &[usize],
    lie: Lie,
    draw: &mut dyn FnMut(&mut Generator) -> Scalar,
) -> Held {
    let layout = layout(generator, dims, lie);
    let (_, last) = layout.span().unwrap().unwrap();
    let values: Vec<Scalar> = (0..last + 1).map(|_| draw(generator)).collect();
    let bytes = encode(&values, dtype);
    let buffer = cpu().allocate(bytes.len()).unwrap();
    buffer.upload(&bytes, 0).unwrap();
    let operand = buffer.operand(dtype, layout);
    Held { buffer, operand }
}

/// A layout of this shape that lies so.
pub fn layout(generator: &mut Generator, dims: &[usize], lie: Lie) -> Layout {
    let mut order: Vec<usize> = (0..dims.len()).collect();
    let mut pick = |n: u64| generator.below(n);
    match lie {
        Lie::Transposed => order.reverse(),
        Lie::Mixed if pick(2) == 0 => order.reverse(),
        _ => {}
    }
    let mut strides = vec![0isize; dims.len()];
    let (mut step, mut offset) = (1isize, 5 * (lie != Lie::Contiguous) as isize);
    for &d in order.iter().rev() {
        let (mut factor, mut sign) = (1, 1);
        match lie {
            Lie::Stepped => factor = 2 + pick(2) as isize,
            Lie::Reversed => sign = -1,
            Lie::Expanded if d == 0 || pick(3) == 0 => factor = 0,
            Lie::Mixed => {
                factor = [1, 1, 2, 0][pick(4) as usize];
                sign = [1, -1][pick(2) as usize];
            }
            _ => {}
        }
        strides[d] = step * factor * sign;
        if strides[d] < 0 {
            offset -= strides[d] * (dims[d] as isize - 1);
        }
        step *= dims[d] as isize * factor.max(1);
    }
    Layout::new(Shape::new(dims).unwrap(), &strides, offset as usize).unwrap()
}

/// Runs an op into fresh outputs between sentinels, and checks that those are untouched.
pub fn run(
    op: impl Into<Op>,
    inputs: &[&Held],
    outputs: &[(DType, &[usize])],
) -> Result<Vec<Held>> {
    run_in_place(op, inputs, &[], outputs)
}

/// As [`run`], with in-place operands.
pub fn run_in_place(
    op: impl Into<Op>,
    inputs: &[&Held],
    in_place: &[&Held],
    outputs: &[(DType, &[usize])],
) -> Result<Vec<Held>> {
    let device = cpu();
    let op = op.into();
    let operands = |list: &[&Held]| list.iter().map(|h| h.operand).collect::<Vec<_>>();
    let mut held = Vec::new();
    for &(dtype, dims) in outputs {
        let shape = Shape::new(dims).unwrap();
        let bytes = shape.elements() * dtype.size();
        let buffer = device.allocate(bytes + 2 * GUARD).unwrap();
        buffer.upload(&vec![0xA5; buffer.bytes()], 0).unwrap();
        let strides = shape.strides();
        let layout = Layout::new(shape, &strides[..dims.len()], GUARD / dtype.size()).unwrap();
        let operand = buffer.operand(dtype, layout);
        held.push(Held { buffer, operand });
    }
    let before: Vec<Vec<u8>> = inputs.iter().map(|h| read(&h.buffer)).collect();
    let targets: Vec<Operand> = held.iter().map(|h| h.operand).collect();
    device.execute(&op, &operands(inputs), &operands(in_place), &targets)?;
    for (input, before) in inputs.iter().zip(before) {
        assert!(
            read(&input.buffer) == before,
            "{} wrote an input",
            op.name()
        );
    }
    for out in &held {
        let bytes = read(&out.buffer);
        let end = GUARD + out.operand.layout.elements() * out.operand.dtype.size();
        let outside = bytes[..GUARD].iter().chain(&bytes[end..]);
        assert!(
            outside.into_iter().all(|&b| b == 0xA5),
            "{} wrote outside its output",
            op.name()
        );
    }
    Ok(held)
}

/// Runs an op with one output.
pub fn one(op: impl Into<Op>, inputs: &[&Held], dtype: DType, dims: &[usize]) -> Held {
    run(op, inputs, &[(dtype, dims)]).unwrap().remove(0)
}

/// Half a unit in the last place of 1, and a bit.
pub fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1.2e-7,
        DType::F64 => 2.3e-16,
        DType::F16 => 9.8e-4,
        DType::BF16 => 7.9e-3,
        _ => 0.0,
    }
}

/// Whether a result is what the oracle says, up to `units` of the dtype.
pub fn close(got: Scalar, expected: Scalar, dtype: DType, units: f64) -> bool {
    if !dtype.is_float() {
        return got == expected;
    }
    let (got, expected) = (got.as_f64(), cast(expected, dtype).as_f64());
    if expected.is_nan() || got.is_nan() {
        return got.is_nan() && expected.is_nan();
    }
    if expected.is_infinite() || got.is_infinite() {
        return got == expected;
    }
    let tiny = match dtype {
        DType::F16 => 6e-8,
        _ => 1e-37,
    };
    (got - expected).abs() <= units * unit(dtype) * expected.abs() + tiny
}

/// Compares all elements, naming the first that differs.
#[track_caller]
pub fn assert_close(got: &Held, expected: &[Scalar], units: f64, what: &str) {
    let values = got.values();
    assert_eq!(values.len(), expected.len(), "{what}");
    for (i, (&got_one, &expected)) in values.iter().zip(expected).enumerate() {
        assert!(
            close(got_one, expected, got.operand.dtype, units),
            "{what}: element {i} is {got_one}, expected {expected}"
        );
    }
}

/// Numbers of moderate size, with halves of integers among them and, for floats, specials now and then.
pub fn moderate(dtype: DType) -> impl FnMut(&mut Generator) -> Scalar {
    move |generator: &mut Generator| {
        if !dtype.is_float() {
            let value = generator.below(17) as i64 - if dtype == DType::U8 { 0 } else { 8 };
            return cast(Scalar::I64(value), dtype);
        }
        match generator.below(8) {
            0 => Scalar::F64(generator.below(9) as f64 * 0.5 - 2.0),
            _ => Scalar::F64(generator.normal()),
        }
    }
}

/// As [`moderate`], with infinities, NaN, both zeros and the ends of integer types.
pub fn special(dtype: DType) -> impl FnMut(&mut Generator) -> Scalar {
    let mut plain = moderate(dtype);
    move |generator: &mut Generator| match (generator.below(5), dtype) {
        (0, _) if dtype.is_float() => {
            let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
            Scalar::F64(specials[generator.below(5) as usize])
        }
        (0, DType::I64) => Scalar::I64([i64::MIN, i64::MAX][generator.below(2) as usize]),
        (0, DType::I32) => Scalar::I64([i32::MIN, i32::MAX][generator.below(2) as usize] as i64),
        (0, DType::U8) => Scalar::I64(255),
        _ => plain(generator),
    }
}

/// Shapes with sizes of 1, odd sizes, several ranks, and one that does not fit a block.
pub const SHAPES: &[&[usize]] = &[
    &[],
    &[1],
    &[7],
    &[130],
    &[3, 5],
    &[1, 33],
    &[17, 1],
    &[2, 3, 5],
    &[4, 1, 9, 3],
    &[5, 300],
    &[300, 5],
    &[3, 1500],
    &[70, 90],
];
