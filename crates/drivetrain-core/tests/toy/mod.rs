//! A small backend of safe Rust for core's own tests: F32 fill, copy, addition and multiplication over a table
//! of buffers, with switches for what goes wrong.
#![allow(dead_code, missing_docs)]

use drivetrain_core::backend::{Backend, Device};
use drivetrain_core::{
    BinaryOp, DType, DeviceInfo, Element, Error, ErrorKind, MemoryStats, Meta, Op, Operand,
    Primitive, RawBuffer, Result, UnaryOp,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of a toy without a limit.
pub const LARGE: usize = 1 << 30;

/// What the toy counts and how it fails.
#[derive(Default)]
pub struct Switches {
    /// `devices` fails with this reason.
    pub absent: Option<String>,
    /// Sums come out wrong.
    pub wrong: bool,
    /// `open` fails.
    pub closed: bool,
    /// Bytes that exist.
    pub capacity: Option<usize>,
}

pub struct Toy {
    pub name: &'static str,
    pub count: usize,
    pub score: u32,
    pub single: bool,
    pub switches: Switches,
    pub opened: Arc<AtomicU64>,
}

impl Toy {
    pub fn new(name: &'static str, count: usize, score: u32) -> Toy {
        Toy {
            name,
            count,
            score,
            single: false,
            switches: Switches::default(),
            opened: Arc::default(),
        }
    }

    fn info(&self, ordinal: usize) -> DeviceInfo {
        DeviceInfo {
            backend: self.name.into(),
            ordinal,
            description: "toy".into(),
            memory: 0,
            host_memory: true,
            score: self.score,
            capabilities: Vec::new(),
            single: self.single,
        }
    }
}

impl Backend for Toy {
    fn name(&self) -> &str {
        self.name
    }

    fn single_device(&self) -> bool {
        self.single
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        match &self.switches.absent {
            Some(reason) => Err(Error::unavailable(self.name, reason)),
            None => Ok((0..self.count).map(|i| self.info(i)).collect()),
        }
    }

    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        if self.switches.closed {
            return Err(Error::backend("open", "it does not start"));
        }
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(ToyDevice {
            info: self.info(ordinal),
            wrong: self.switches.wrong,
            capacity: self.switches.capacity.unwrap_or(LARGE),
            ..ToyDevice::new()
        }))
    }
}

pub struct ToyDevice {
    pub info: DeviceInfo,
    pub has_relu: bool,
    pub wrong: bool,
    pub capacity: usize,
    pub buffers: Mutex<HashMap<u64, Vec<u8>>>,
    pub next: AtomicU64,
    pub trims: AtomicU64,
    pub asked: AtomicU64,
    pub log: Mutex<Vec<String>>,
}

impl ToyDevice {
    pub fn new() -> ToyDevice {
        ToyDevice {
            info: Toy::new("toy", 1, 1).info(0),
            has_relu: false,
            wrong: false,
            capacity: LARGE,
            buffers: Mutex::default(),
            next: AtomicU64::new(1),
            trims: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            log: Mutex::default(),
        }
    }

    pub fn held(&self) -> usize {
        self.buffers.lock().unwrap().values().map(Vec::len).sum()
    }

    fn read(&self, operand: &Operand) -> Vec<f32> {
        let buffers = self.buffers.lock().unwrap();
        let all = f32::from_bytes(&buffers[&operand.buffer.handle]);
        operand.layout.indices().map(|i| all[i]).collect()
    }

    fn write(&self, operand: &Operand, values: &[f32]) {
        let mut buffers = self.buffers.lock().unwrap();
        let bytes = buffers.get_mut(&operand.buffer.handle).unwrap();
        for (i, value) in operand.layout.indices().zip(values) {
            bytes[i * 4..][..4].copy_from_slice(&value.to_ne_bytes());
        }
    }
}

impl Device for ToyDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        assert!(bytes > 0, "asked for nothing");
        if bytes > self.capacity - self.held() {
            let message = format!("{bytes} bytes of {}", self.capacity);
            return Err(Error::new(ErrorKind::OutOfMemory, "allocate", message));
        }
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.buffers.lock().unwrap().insert(handle, vec![0; bytes]);
        Ok(RawBuffer { handle, bytes })
    }

    fn free(&self, buffer: RawBuffer) {
        self.buffers.lock().unwrap().remove(&buffer.handle).unwrap();
    }

    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()> {
        let mut buffers = self.buffers.lock().unwrap();
        let bytes = buffers.get_mut(&buffer.handle).unwrap();
        bytes[offset..offset + source.len()].copy_from_slice(source);
        Ok(())
    }

    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        let buffers = self.buffers.lock().unwrap();
        target.copy_from_slice(&buffers[&buffer.handle][offset..offset + target.len()]);
        Ok(())
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        inputs.iter().all(|m| m.dtype == DType::F32) && matches!(op, Op::Primitive(_))
    }

    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        let mut operands = inputs.iter().chain(in_place).chain(outputs);
        assert!(
            operands.all(|o| o.layout.elements() > 0),
            "an empty operand reached the engine"
        );
        self.log.lock().unwrap().push(op.name().into());
        let values: Vec<Vec<f32>> = inputs.iter().map(|o| self.read(o)).collect();
        let pair = |f: fn(f32, f32) -> f32| -> Vec<f32> {
            values[0]
                .iter()
                .zip(&values[1])
                .map(|(&a, &b)| f(a, b))
                .collect()
        };
        let result = match op {
            Op::Primitive(Primitive::Fill { value }) => {
                vec![value.as_f64() as f32; outputs[0].layout.elements()]
            }
            Op::Primitive(Primitive::Copy) => values[0].clone(),
            Op::Primitive(Primitive::Binary(BinaryOp::Add)) if self.wrong => pair(|a, b| a - b),
            Op::Primitive(Primitive::Binary(BinaryOp::Add)) => pair(|a, b| a + b),
            Op::Primitive(Primitive::Binary(BinaryOp::Mul)) => pair(|a, b| a * b),
            Op::Primitive(Primitive::Unary(UnaryOp::Relu)) if self.has_relu => {
                values[0].iter().map(|x| x.max(0.0)).collect()
            }
            other => return Err(Error::unsupported(other.name(), "the toy has it not")),
        };
        self.write(&outputs[0], &result);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> MemoryStats {
        MemoryStats {
            free: Some((self.capacity - self.held()) as u64),
            ..MemoryStats::default()
        }
    }

    fn trim(&self) {
        self.trims.fetch_add(1, Ordering::Relaxed);
    }
}
