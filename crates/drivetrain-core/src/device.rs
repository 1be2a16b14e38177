//! The device that users hold: a cheap clone, comparable and printable, around an opened engine.

use crate::allocator::Allocator;
use crate::backend::{self, DeviceInfo, MemoryStats, Meta, Operand, RawBuffer};
use crate::{
    BinaryOp, DType, Error, ErrorKind, Layout, Op, Primitive, Registry, Result, Scalar, Shape,
};
use crate::{empty, fallback};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A device of some backend, opened. Clones are the same device.
///
/// ```no_run
/// use drivetrain_core::Device;
/// let best = Device::best()?;            // cuda:0 where it works, else cpu
/// let second = Device::open("cuda:1")?;  // or an error that says what there is
/// println!("{best} and {second}");
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    raw: Arc<dyn backend::Device>,
    label: String,
    allocator: Allocator,
    supports: RwLock<HashMap<SupportKey, bool>>,
    executed: AtomicU64,
    /// Where primitives run that this device lacks; not chosen yet, or nowhere, or there.
    fallback: RwLock<Option<Option<Device>>>,
}

/// What an answer of `supports` may depend on: the op's code and variant, and the inputs' dtypes and ranks.
#[derive(PartialEq, Eq, Hash)]
struct SupportKey {
    code: u32,
    variant: u32,
    inputs: [u8; 12],
}

static STORAGE_IDS: AtomicU64 = AtomicU64::new(1);
static LIVE_BUFFERS: AtomicU64 = AtomicU64::new(0);

impl Device {
    /// Around an opened engine. Users call [`Device::open`]; tests and loaders make devices of their own.
    pub fn new(raw: Arc<dyn backend::Device>) -> Device {
        Device(Arc::new(Inner {
            label: raw.info().label(),
            raw,
            allocator: Allocator::default(),
            supports: RwLock::new(HashMap::new()),
            executed: AtomicU64::new(0),
            fallback: RwLock::new(None),
        }))
    }

    /// The device of this name in the global registry: `cpu`, `cuda`, `cuda:1`, `auto`. See [`Registry::open`].
    ///
    /// # Errors
    /// When it is not there, with what is.
    pub fn open(name: &str) -> Result<Device> {
        Registry::global().open(name)
    }

    /// The best device that works; `DRIVETRAIN_DEVICE` names another. See [`Registry::best`].
    ///
    /// # Errors
    /// When none works.
    pub fn best() -> Result<Device> {
        Registry::global().best()
    }

    /// Every device that opens, best first.
    pub fn all() -> Vec<Device> {
        Registry::global().all()
    }

    /// Its name: `cpu`, `cuda:0`.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// What it is.
    pub fn info(&self) -> &DeviceInfo {
        self.0.raw.info()
    }

    /// The engine below.
    pub fn raw(&self) -> &Arc<dyn backend::Device> {
        &self.0.raw
    }

    /// Waits for all work queued so far.
    ///
    /// # Errors
    /// When some of it failed.
    pub fn synchronize(&self) -> Result<()> {
        self.0.raw.synchronize().map_err(|e| e.on(self))
    }

    /// Memory in use, cached and at most, in bytes.
    pub fn memory(&self) -> MemoryStats {
        self.0.allocator.stats(&*self.0.raw)
    }

    /// Refuses to take more than `bytes` from the device; `None` lifts the limit.
    pub fn set_memory_limit(&self, bytes: Option<u64>) {
        self.0.allocator.set_limit(bytes);
    }

    /// Gives cached memory back to the system.
    pub fn empty_cache(&self) {
        self.0.allocator.empty(&*self.0.raw);
        self.0.raw.trim();
    }

    /// How many ops it has executed.
    pub fn executed_ops(&self) -> u64 {
        self.0.executed.load(Ordering::Relaxed)
    }

    /// Buffers that are alive on all devices, for leak tests.
    pub fn live_buffers() -> u64 {
        LIVE_BUFFERS.load(Ordering::Relaxed)
    }

    /// Memory for a value of `bytes` bytes, content undefined.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], with the sizes.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer> {
        // An empty value has an address all the same, but no memory of the device.
        let raw = match bytes {
            0 => RawBuffer {
                handle: 0,
                bytes: 0,
            },
            _ => self
                .0
                .allocator
                .allocate(&*self.0.raw, bytes)
                .map_err(|e| e.on(self))?,
        };
        LIVE_BUFFERS.fetch_add(1, Ordering::Relaxed);
        Ok(Buffer {
            device: self.clone(),
            raw,
            id: STORAGE_IDS.fetch_add(1, Ordering::Relaxed),
            version: AtomicU64::new(0),
        })
    }

    /// Whether the device runs this op natively for such inputs. Answers are remembered.
    pub fn supports(&self, op: &Op, inputs: &[Meta]) -> bool {
        let mut key = SupportKey {
            code: op.code(),
            variant: op.variant(),
            inputs: [0; 12],
        };
        for (slot, meta) in key.inputs.iter_mut().zip(inputs) {
            *slot = 1 + (meta.dtype as u8) * 16 + meta.shape.rank() as u8;
        }
        let known = self
            .0
            .supports
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .copied();
        known.unwrap_or_else(|| {
            let answer = self.0.raw.supports(op, inputs);
            let mut table = self
                .0
                .supports
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            table.insert(key, answer);
            answer
        })
    }

    /// Runs an op on operands of this device that inference has accepted. Empty values never reach the
    /// engine: they are answered here.
    ///
    /// # Errors
    /// An operand outside its buffer, or the engine's error, naming the device.
    pub fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        for operand in inputs.iter().chain(in_place).chain(outputs) {
            operand
                .layout
                .check(operand.dtype.size(), operand.buffer.bytes)
                .map_err(|e| e.context(op.name()).on(self))?;
        }
        self.0.executed.fetch_add(1, Ordering::Relaxed);
        match empty::answer(op, inputs, in_place, outputs) {
            empty::Answer::Run => self.run(op, inputs, in_place, outputs),
            empty::Answer::Nothing => Ok(()),
            empty::Answer::Fill(value) => self.fill(value, outputs),
            empty::Answer::Copy(source) => {
                let copy = Op::from(Primitive::Copy);
                self.run(&copy, &[*source], &[], outputs)
            }
            empty::Answer::Without => {
                let filled = |operand: &&Operand| !operand.layout.shape().is_empty();
                let inputs: Vec<Operand> = inputs.iter().filter(filled).copied().collect();
                self.run(op, &inputs, in_place, outputs)
            }
        }
        .map_err(|e| e.on(self))
    }

    /// Fills every operand that is not empty.
    fn fill(&self, value: Scalar, outputs: &[Operand]) -> Result<()> {
        let fill = Op::from(Primitive::Fill { value });
        let mut filled = outputs.iter().filter(|o| !o.layout.shape().is_empty());
        filled.try_for_each(|output| self.run(&fill, &[], &[], std::slice::from_ref(output)))
    }

    /// Chooses where primitives run that this device lacks: one at a time, through the host, with a warning.
    /// Unless this is called, the device named by `DRIVETRAIN_FALLBACK`; with `None` (or without the variable)
    /// they are errors.
    pub fn set_fallback(&self, device: Option<Device>) {
        let mut fallback = self
            .0
            .fallback
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Itself would be no help, and keep itself alive.
        *fallback = Some(device.filter(|other| other != self));
    }

    /// Where primitives run that this device lacks.
    fn fallback(&self) -> Result<Option<Device>> {
        let chosen = self
            .0
            .fallback
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let device = match chosen {
            Some(device) => device,
            None => fallback::from_environment()?,
        };
        Ok(device.filter(|other| other != self))
    }

    /// Gives an op to the engine, and a primitive that it lacks to the fallback.
    fn run(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        let result = self.0.raw.execute(op, inputs, in_place, outputs);
        let (Op::Primitive(_), Err(error)) = (op, &result) else {
            return result;
        };
        if error.kind() != ErrorKind::Unsupported {
            return result;
        }
        match self.fallback()? {
            Some(other) => fallback::run(self, &other, op, inputs, in_place, outputs),
            None => Err(fallback::missing(
                self,
                op,
                [inputs, in_place, outputs],
                error,
            )),
        }
    }

    /// Adds two numbers on the device and looks at the result.
    ///
    /// # Errors
    /// When it fails or the sum is wrong.
    pub fn self_test(&self) -> Result<()> {
        let buffer = |value: f32| {
            let buffer = self.allocate(4)?;
            buffer.upload(&value.to_ne_bytes(), 0)?;
            Ok::<_, Error>(buffer)
        };
        let (a, b, sum) = (buffer(1.5)?, buffer(2.25)?, buffer(0.0)?);
        let layout = Layout::contiguous(Shape::SCALAR);
        let operand = |b: &Buffer| b.operand(DType::F32, layout);
        let op = Op::from(Primitive::Binary(BinaryOp::Add));
        self.execute(&op, &[operand(&a), operand(&b)], &[], &[operand(&sum)])?;
        let mut bytes = [0; 4];
        sum.download(&mut bytes, 0)?;
        let got = f32::from_ne_bytes(bytes);
        if got != 3.75 {
            return Err(Error::new(
                ErrorKind::Backend,
                "self_test",
                format!("1.5 + 2.25 gave {got}"),
            )
            .on(self));
        }
        Ok(())
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.label)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.label)
    }
}

/// Memory of a device, given back when dropped. Shared through `Arc` by the tensors that view it.
pub struct Buffer {
    device: Device,
    raw: RawBuffer,
    id: u64,
    version: AtomicU64,
}

impl Buffer {
    /// Where it lies.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Its size in bytes, at least what was asked for.
    pub const fn bytes(&self) -> usize {
        self.raw.bytes
    }

    /// A number that no other buffer of the process has.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Says that the content was changed in place.
    pub fn bump_version(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// A view of it for [`Device::execute`].
    pub fn operand(&self, dtype: DType, layout: Layout) -> Operand {
        Operand {
            buffer: self.raw,
            dtype,
            layout,
            storage: self.id,
            version: self.version.load(Ordering::Relaxed),
        }
    }

    /// Copies host bytes in, from byte `offset` on.
    ///
    /// # Errors
    /// Bytes past the end, or a device that fails.
    pub fn upload(&self, source: &[u8], offset: usize) -> Result<()> {
        self.check("upload", source.len(), offset)?;
        if source.is_empty() {
            return Ok(());
        }
        self.device
            .0
            .raw
            .upload(source, self.raw, offset)
            .map_err(|e| e.on(&self.device))
    }

    /// Copies bytes out to the host, after the work queued so far.
    ///
    /// # Errors
    /// Bytes past the end, or a device that fails.
    pub fn download(&self, target: &mut [u8], offset: usize) -> Result<()> {
        self.check("download", target.len(), offset)?;
        if target.is_empty() {
            return Ok(());
        }
        self.device
            .0
            .raw
            .download(self.raw, offset, target)
            .map_err(|e| e.on(&self.device))
    }

    /// Copies the first `bytes` bytes of `source`, which may lie on another device.
    ///
    /// # Errors
    /// Bytes past either end, or a device that fails.
    pub fn copy_from(&self, source: &Buffer, bytes: usize) -> Result<()> {
        self.check("copy", bytes, 0)?;
        source.check("copy", bytes, 0)?;
        if bytes == 0 {
            return Ok(());
        }
        let peer = &*source.device.0.raw;
        match self
            .device
            .0
            .raw
            .copy_from(peer, source.raw, self.raw, bytes)
        {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                let mut staging = vec![0; bytes];
                source.download(&mut staging, 0)?;
                self.upload(&staging, 0)
            }
            other => other.map_err(|e| e.on(&self.device)),
        }
    }

    fn check(&self, operation: &'static str, bytes: usize, offset: usize) -> Result<()> {
        if offset
            .checked_add(bytes)
            .is_none_or(|end| end > self.raw.bytes)
        {
            return Err(Error::argument(
                operation,
                format!(
                    "{bytes} bytes at {offset} of a buffer of {}",
                    self.raw.bytes
                ),
            ));
        }
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        LIVE_BUFFERS.fetch_sub(1, Ordering::Relaxed);
        if self.raw.bytes > 0 {
            self.device.0.allocator.release(self.raw);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Every buffer holds the device, so all of them are back in the cache by now.
        self.allocator.empty(&*self.raw);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Buffer {} of {} bytes on {}",
            self.id, self.raw.bytes, self.device
        )
    }
}
