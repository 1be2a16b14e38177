//! The contract between Drivetrain and its engines: [`Backend`] finds devices, [`Device`] allocates,
//! copies and executes. Nothing here knows of autograd, modules or training.
//!
//! Who owns what: a buffer belongs to the device that allocated it and is given back to it with
//! [`Device::free`], by core only. Operands are borrowed for the call; a device that queues work keeps
//! what it needs of them (they are plain data), and core frees a buffer only through `free`, which the
//! device orders after the work queued before it.
//!
//! Which calls may run at once: all of them, from any threads. Core never passes one buffer to two
//! calls at once of which one writes it.

use crate::{DType, Error, Layout, Op, Result, Shape};
use std::sync::Arc;

/// An engine: finds its devices and opens them. Made by the registry before first use, so it must not
/// work in its constructor.
pub trait Backend: Send + Sync {
    /// Its name, the part of a device's name before the colon: lower-case letters, digits and `_`.
    fn name(&self) -> &str;

    /// Whether a device's name needs no number because there is only ever one (`cpu`).
    fn single_device(&self) -> bool {
        false
    }

    /// What is there.
    ///
    /// # Errors
    /// Why nothing is there: "driver library not found …", with what to do.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Opens device `ordinal`.
    ///
    /// # Errors
    /// When there is no such device or it does not start.
    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>>;
}

/// An opened device. All calls may come from any thread at any time.
pub trait Device: Send + Sync {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// Memory of `bytes` (never 0), aligned to 64 bytes at least, content undefined.
    ///
    /// # Errors
    /// [`crate::ErrorKind::OutOfMemory`] when there is none; core then calls [`Device::trim`] and asks once more.
    fn allocate(&self, bytes: usize) -> Result<RawBuffer>;

    /// Takes back what `allocate` gave, after the work that was queued before. Must not panic or block.
    fn free(&self, buffer: RawBuffer);

    /// Copies `source` into the buffer at byte `offset`. The source may be reused when it returns.
    ///
    /// # Errors
    /// When the device fails.
    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()>;

    /// Copies from the buffer at byte `offset`, after the work that was queued before.
    ///
    /// # Errors
    /// When the device fails, or an operation queued before did.
    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()>;

    /// Whether `execute` takes this op for inputs of these dtypes and shapes. Primitives may be refused
    /// for dtypes the device lacks; composites freely. Answers are cached by the op's code, the variant of its
    /// enum (which activation, which unary function) and the inputs' dtypes and ranks: they must not depend on
    /// sizes or other attributes.
    fn supports(&self, op: &Op, inputs: &[Meta]) -> bool;

    /// Runs an op, or queues it. The operands were checked by core against [`crate::infer`]: counts, dtypes,
    /// shapes and bounds hold; none is empty; outputs overlap nothing; `in_place` operands are read and
    /// written, and nobody else holds their memory.
    ///
    /// # Errors
    /// When an operand's values are out of range, or the device fails.
    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()>;

    /// Waits for all that was queued.
    ///
    /// # Errors
    /// When something queued failed.
    fn synchronize(&self) -> Result<()>;

    /// Memory of the device, in bytes.
    fn memory(&self) -> MemoryStats;

    /// Gives unused memory back to the system.
    fn trim(&self) {}

    /// Copies `bytes` from a buffer of `peer` into one of its own without going through the host.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] when it cannot; core then goes through the host.
    fn copy_from(
        &self,
        peer: &dyn Device,
        source: RawBuffer,
        target: RawBuffer,
        bytes: usize,
    ) -> Result<()> {
        let _ = (source, target, bytes);
        Err(Error::unsupported(
            "copy_from",
            format!("no direct copy from {}", peer.info().label()),
        ))
    }

    /// Shows a buffer's memory to the host without a copy, after the work queued before, when the device's
    /// memory is the host's. Returns whether it did.
    ///
    /// # Errors
    /// When the device fails.
    fn with_host_view(&self, buffer: RawBuffer, look: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let _ = (buffer, look);
        Ok(false)
    }
}

/// What a device is. Filled in without opening it where that is possible.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// The backend's name.
    pub backend: String,
    /// The device's number within its backend.
    pub ordinal: usize,
    /// What people call it: `AMD EPYC 7B13`.
    pub description: String,
    /// Bytes of memory, 0 when unknown.
    pub memory: u64,
    /// Whether its memory is the host's.
    pub host_memory: bool,
    /// For choosing the best: cpu-like devices about 100, GPUs from 1,000 on; higher wins.
    pub score: u32,
    /// Free facts for the user: SIMD level, compute capability, threads.
    pub capabilities: Vec<(String, String)>,
    /// Whether the label has no number.
    pub single: bool,
}

impl DeviceInfo {
    /// `cpu`, `cuda:0`.
    pub fn label(&self) -> String {
        if self.single {
            self.backend.clone()
        } else {
            format!("{}:{}", self.backend, self.ordinal)
        }
    }
}

/// Memory of one device. The handle means something to that device only (often an address).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawBuffer {
    /// The device's name for it.
    pub handle: u64,
    /// Its size.
    pub bytes: usize,
}

/// Memory of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Held by buffers that are in use.
    pub in_use: u64,
    /// Taken from the system, in use or kept for reuse.
    pub reserved: u64,
    /// Most ever in use.
    pub peak: u64,
    /// Free on the device as a whole, where it says so.
    pub free: Option<u64>,
}

/// The dtype and shape of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Meta {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Shape,
}

impl Meta {
    /// Of these.
    pub const fn new(dtype: DType, shape: Shape) -> Meta {
        Meta { dtype, shape }
    }

    /// Bytes of a contiguous value.
    pub fn bytes(&self) -> usize {
        self.shape.elements() * self.dtype.size()
    }
}

/// A view of a buffer that an op reads or writes: plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operand {
    /// The memory.
    pub buffer: RawBuffer,
    /// Element type.
    pub dtype: DType,
    /// Shape, strides and offset, in elements.
    pub layout: Layout,
    /// Identity of the storage and version of its content, for data that a device derives and keeps.
    pub storage: u64,
    /// Raised at each in-place write.
    pub version: u64,
}

impl Operand {
    /// Dtype and shape.
    pub fn meta(&self) -> Meta {
        Meta::new(self.dtype, *self.layout.shape())
    }
}
