//! The one device of this backend: host memory, and ops that run before `execute` returns.

use crate::{exec, simd};
use drivetrain_core::backend::{Backend, Device};
use drivetrain_core::{
    DeviceInfo, Error, ErrorKind, MemoryStats, Meta, Op, Operand, RawBuffer, Result, threads,
};
use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where buffers start: a cache line, and the widest vector.
const ALIGNMENT: usize = 64;

/// The CPU as a backend.
///
/// ```
/// use drivetrain_core::Device;
/// use drivetrain_core::backend::Backend;
/// use drivetrain_cpu::CpuBackend;
/// let backend = CpuBackend::new();
/// let device = Device::new(backend.open(0)?);
/// assert_eq!(device.label(), "cpu");
/// device.self_test()?;
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CpuBackend;

impl CpuBackend {
    /// Does nothing yet, as the contract asks.
    pub const fn new() -> CpuBackend {
        CpuBackend
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        "cpu"
    }

    fn single_device(&self) -> bool {
        true
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![describe()])
    }

    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        if ordinal != 0 {
            return Err(Error::unavailable(
                "open",
                format!("there is one cpu device, 0, not {ordinal}"),
            ));
        }
        Ok(Arc::new(CpuDevice::new()))
    }
}

/// The CPU as a device. A buffer's handle is its address.
///
/// ```
/// use drivetrain_core::backend::Device;
/// use drivetrain_cpu::CpuDevice;
/// let device = CpuDevice::new();
/// let buffer = device.allocate(1000)?;
/// assert_eq!(buffer.handle % 64, 0);
/// device.free(buffer);
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Debug)]
pub struct CpuDevice {
    info: DeviceInfo,
    reserved: AtomicU64,
    peak: AtomicU64,
}

impl CpuDevice {
    /// Looks at the machine.
    pub fn new() -> CpuDevice {
        CpuDevice {
            info: describe(),
            reserved: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        }
    }
}

impl Default for CpuDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        let refuse = || {
            let free =
                system_memory("MemAvailable").map_or("unknown".to_string(), |b| b.to_string());
            Error::new(
                ErrorKind::OutOfMemory,
                "allocate",
                format!(
                    "{bytes} bytes asked for, {} held, {free} free on the host",
                    self.reserved.load(Ordering::Relaxed)
                ),
            )
            .on(self.info.label())
            .help("use a smaller batch, or drop tensors that are no longer needed")
        };
        // Systems that overcommit would grant more than there is and kill the process at first touch.
        if self.info.memory > 0 && bytes as u64 > self.info.memory {
            return Err(refuse());
        }
        let layout = layout(bytes).ok_or_else(refuse)?;
        // Zeroed, so that a buffer is always initialised memory; large ones cost nothing, as the system
        // hands out zero pages, and core keeps buffers for reuse.
        // SAFETY: the layout's size is not 0.
        let address = unsafe { std::alloc::alloc_zeroed(layout) };
        if address.is_null() {
            return Err(refuse());
        }
        let held = self.reserved.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.peak.fetch_max(held, Ordering::Relaxed);
        Ok(RawBuffer {
            handle: address as u64,
            bytes,
        })
    }

    fn free(&self, buffer: RawBuffer) {
        if let Some(layout) = layout(buffer.bytes) {
            // SAFETY: core gives back what `allocate` gave with this size, once.
            unsafe { std::alloc::dealloc(buffer.handle as *mut u8, layout) };
            self.reserved
                .fetch_sub(buffer.bytes as u64, Ordering::Relaxed);
        }
    }

    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()> {
        check("upload", source.len(), buffer, offset)?;
        // SAFETY: within the buffer, as just checked; nobody else uses it during a call that writes it.
        unsafe {
            let target = (buffer.handle as *mut u8).add(offset);
            target.copy_from_nonoverlapping(source.as_ptr(), source.len());
        }
        Ok(())
    }

    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        check("download", target.len(), buffer, offset)?;
        // SAFETY: within the buffer, as just checked; nobody writes it during a call that reads it.
        unsafe {
            let source = (buffer.handle as *const u8).add(offset);
            source.copy_to_nonoverlapping(target.as_mut_ptr(), target.len());
        }
        Ok(())
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> bool {
        exec::supports(op, inputs)
    }

    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        exec::execute(op, inputs, in_place, outputs)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> MemoryStats {
        let reserved = self.reserved.load(Ordering::Relaxed);
        MemoryStats {
            in_use: reserved,
            reserved,
            peak: self.peak.load(Ordering::Relaxed),
            free: system_memory("MemAvailable"),
        }
    }

    fn with_host_view(&self, buffer: RawBuffer, look: &mut dyn FnMut(&[u8])) -> Result<bool> {
        // SAFETY: the buffer is alive and initialised, and nobody writes it during a call that reads it.
        look(unsafe { std::slice::from_raw_parts(buffer.handle as *const u8, buffer.bytes) });
        Ok(true)
    }
}

/// How a buffer of `bytes` is asked of the system; `None` for 0 and for sizes past the address space.
fn layout(bytes: usize) -> Option<Layout> {
    (bytes > 0)
        .then(|| Layout::from_size_align(bytes, ALIGNMENT).ok())
        .flatten()
}

fn check(operation: &'static str, bytes: usize, buffer: RawBuffer, offset: usize) -> Result<()> {
    match offset.checked_add(bytes) {
        Some(end) if end <= buffer.bytes => Ok(()),
        _ => Err(Error::argument(
            operation,
            format!("{bytes} bytes at {offset} of a buffer of {}", buffer.bytes),
        )),
    }
}

fn describe() -> DeviceInfo {
    let text = |key: &str, value: String| (key.to_string(), value);
    DeviceInfo {
        backend: "cpu".to_string(),
        ordinal: 0,
        description: model_name().unwrap_or_else(|| std::env::consts::ARCH.to_string()),
        memory: system_memory("MemTotal").unwrap_or(0),
        host_memory: true,
        score: 100,
        capabilities: vec![
            text("threads", threads::num_threads().to_string()),
            text("simd", simd::level().name().to_string()),
        ],
        single: true,
    }
}

/// The processor's name, where Linux says it.
fn model_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// A line of Linux's `/proc/meminfo`, in bytes; `None` on other systems.
fn system_memory(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line
        .trim_start_matches(':')
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    kibibytes.checked_mul(1024)
}
