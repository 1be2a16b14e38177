//! What a device lacks, run on another: one primitive at a time, through the host, with one warning each.

use crate::backend::Operand;
use crate::registry::lock;
use crate::{Buffer, Device, Error, Layout, Op, Registry, Result};
use std::collections::HashSet;
use std::sync::Mutex;

/// The environment variable that names the device on which primitives run that another device lacks.
pub const FALLBACK_VARIABLE: &str = "DRIVETRAIN_FALLBACK";

/// The device that [`FALLBACK_VARIABLE`] names, if it names one.
pub(crate) fn from_environment() -> Result<Option<Device>> {
    match std::env::var(FALLBACK_VARIABLE) {
        Ok(name) if !name.is_empty() => Registry::global()
            .open(&name)
            .map(Some)
            .map_err(|e| e.context(format!("{FALLBACK_VARIABLE}={name}"))),
        _ => Ok(None),
    }
}

/// The error of a primitive that `device` lacks, from what its engine said.
pub(crate) fn missing(device: &Device, op: &Op, operands: [&[Operand]; 3], said: &Error) -> Error {
    let mut dtypes: Vec<String> = Vec::new();
    for operand in operands.into_iter().flatten() {
        let dtype = operand.dtype.to_string();
        if !dtypes.contains(&dtype) {
            dtypes.push(dtype);
        }
    }
    Error::unsupported(
        op.name(),
        format!(
            "not implemented by backend {} for {}: {}",
            device.info().backend,
            dtypes.join(", "),
            said.message()
        ),
    )
    .on(device)
    .help(format!(
        "set {FALLBACK_VARIABLE} to the name of a device that has it, and this op runs there"
    ))
}

/// Runs `op` on `other` with copies of the operands of `device`, and copies the results back.
///
/// # Errors
/// When either device fails.
pub(crate) fn run(
    device: &Device,
    other: &Device,
    op: &Op,
    inputs: &[Operand],
    in_place: &[Operand],
    outputs: &[Operand],
) -> Result<()> {
    warn(device, other, op);
    let copy = |operands: &[Operand]| {
        let copies = operands.iter().map(|o| Copy::new(device, other, o));
        copies.collect::<Result<Vec<Copy>>>()
    };
    let (from, changed, made) = (copy(inputs)?, copy(in_place)?, copy(outputs)?);
    let views = |copies: &[Copy]| copies.iter().map(|c| c.operand).collect::<Vec<_>>();
    let engine = other.raw();
    engine.execute(op, &views(&from), &views(&changed), &views(&made))?;
    let results = changed.iter().zip(in_place).chain(made.iter().zip(outputs));
    for (copy, operand) in results {
        let bytes = copy.bytes()?;
        device.raw().upload(&bytes, operand.buffer, copy.start)?;
    }
    Ok(())
}

/// Says once per op and pair of devices that it runs elsewhere.
fn warn(device: &Device, other: &Device, op: &Op) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let note = format!("{} runs on {other}, {device} lacks it", op.name());
    if lock(&SAID).get_or_insert_default().insert(note.clone()) {
        eprintln!("drivetrain: warning: {note} ({FALLBACK_VARIABLE}); this is slow");
    }
}

/// The bytes that an operand reaches over, on the other device.
struct Copy {
    buffer: Buffer,
    operand: Operand,
    /// First byte in the original's buffer.
    start: usize,
    length: usize,
}

impl Copy {
    fn new(device: &Device, other: &Device, operand: &Operand) -> Result<Copy> {
        // Operands that come here are not empty.
        let (first, last) = operand.layout.span()?.unwrap_or((0, 0));
        let size = operand.dtype.size();
        let (start, length) = (first * size, (last - first + 1) * size);
        let mut bytes = vec![0; length];
        device.raw().download(operand.buffer, start, &mut bytes)?;
        let buffer = other.allocate(length)?;
        buffer.upload(&bytes, 0)?;
        let layout = &operand.layout;
        let moved = Layout::new(*layout.shape(), layout.strides(), layout.offset() - first)?;
        Ok(Copy {
            operand: buffer.operand(operand.dtype, moved),
            buffer,
            start,
            length,
        })
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.length];
        self.buffer.download(&mut bytes, 0)?;
        Ok(bytes)
    }
}
