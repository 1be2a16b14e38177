//! The reference backend: every primitive, element by element, in F64 and I64; no composite. What it computes
//! is easy to read and slow, and is what other backends are compared with.
//!
//! ```
//! use drivetrain_conformance::reference::{self, HostValue};
//! use drivetrain_core::{Composite, DType};
//! let device = reference::device();
//! let x = HostValue::new(DType::F64, &[3], &[1.0, 2.0, 3.0])?;
//! let y = reference::run(&device, &Composite::Softmax { dim: 0, log: false }.into(), &[x], &[])?;
//! assert!((y[0].values().iter().sum::<f64>() - 1.0).abs() < 1e-15);
//! # Ok::<(), drivetrain_core::Error>(())
//! ```

mod along;
mod elementwise;
mod execute;
mod functions;
mod host;
mod values;

pub use functions::erf;
pub use host::{HostValue, run, run_program};

use drivetrain_core::backend::{Backend, Device};
use drivetrain_core::{DeviceInfo, Error, MemoryStats, Meta, Op, Operand, RawBuffer, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The backend `reference` with its one device. It is in no registry unless a program puts it there.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceBackend;

/// A new device of the reference backend.
pub fn device() -> drivetrain_core::Device {
    drivetrain_core::Device::new(Arc::new(ReferenceDevice::new()))
}

impl Backend for ReferenceBackend {
    fn name(&self) -> &str {
        "reference"
    }

    fn single_device(&self) -> bool {
        true
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![info()])
    }

    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        if ordinal != 0 {
            return Err(Error::unavailable(
                "open",
                format!("no device {ordinal}, 1 device: reference"),
            ));
        }
        Ok(Arc::new(ReferenceDevice::new()))
    }
}

fn info() -> DeviceInfo {
    DeviceInfo {
        backend: "reference".into(),
        ordinal: 0,
        description: "naive interpreter for comparison".into(),
        memory: 0,
        host_memory: true,
        score: 1,
        capabilities: Vec::new(),
        single: true,
    }
}

/// Memory by handle.
#[derive(Default)]
pub(crate) struct Memory {
    buffers: HashMap<u64, Vec<u8>>,
    next: u64,
}

impl Memory {
    /// The bytes of a buffer.
    fn bytes(&self, buffer: RawBuffer) -> Result<&[u8]> {
        let bytes = self.buffers.get(&buffer.handle).map(Vec::as_slice);
        bytes.ok_or_else(|| unknown(buffer))
    }

    /// The bytes of a buffer, to write.
    fn bytes_mut(&mut self, buffer: RawBuffer) -> Result<&mut [u8]> {
        let bytes = self.buffers.get_mut(&buffer.handle).map(Vec::as_mut_slice);
        bytes.ok_or_else(|| unknown(buffer))
    }
}

fn unknown(buffer: RawBuffer) -> Error {
    Error::backend(
        "buffer",
        format!("no buffer has the handle {}", buffer.handle),
    )
}

/// Bytes `offset..offset + length`, when they are there.
fn window(bytes: usize, offset: usize, length: usize) -> Result<std::ops::Range<usize>> {
    let end = offset.checked_add(length).filter(|&end| end <= bytes);
    let end = end.ok_or_else(|| {
        Error::argument("buffer", format!("{length} bytes at {offset} of {bytes}"))
    })?;
    Ok(offset..end)
}

struct ReferenceDevice {
    info: DeviceInfo,
    memory: Mutex<Memory>,
}

impl ReferenceDevice {
    fn new() -> ReferenceDevice {
        ReferenceDevice {
            info: info(),
            memory: Mutex::new(Memory::default()),
        }
    }

    /// Memory stays whole when a holder panics: each call writes it in one step.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for ReferenceDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        let mut content = Vec::new();
        content.try_reserve_exact(bytes).map_err(|_| {
            Error::new(
                drivetrain_core::ErrorKind::OutOfMemory,
                "allocate",
                format!("{bytes} bytes asked"),
            )
        })?;
        // What nobody wrote reads as NaN or as large integers: a forgotten element is seen.
        content.resize(bytes, 0xFF);
        let mut memory = self.memory();
        memory.next += 1;
        let handle = memory.next;
        memory.buffers.insert(handle, content);
        Ok(RawBuffer { handle, bytes })
    }

    fn free(&self, buffer: RawBuffer) {
        self.memory().buffers.remove(&buffer.handle);
    }

    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()> {
        let mut memory = self.memory();
        let bytes = memory.bytes_mut(buffer)?;
        let window = window(bytes.len(), offset, source.len())?;
        bytes[window].copy_from_slice(source);
        Ok(())
    }

    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        let memory = self.memory();
        let bytes = memory.bytes(buffer)?;
        let window = window(bytes.len(), offset, target.len())?;
        target.copy_from_slice(&bytes[window]);
        Ok(())
    }

    fn supports(&self, op: &Op, _inputs: &[Meta]) -> bool {
        matches!(op, Op::Primitive(_))
    }

    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        let Op::Primitive(primitive) = op else {
            return Err(Error::unsupported(
                op.name(),
                "the reference has primitives only",
            ));
        };
        execute::execute(&mut self.memory(), primitive, inputs, in_place, outputs)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> MemoryStats {
        let memory = ReferenceDevice::memory(self);
        let in_use = memory.buffers.values().map(|b| b.len() as u64).sum();
        MemoryStats {
            in_use,
            reserved: in_use,
            peak: in_use,
            free: None,
        }
    }
}
