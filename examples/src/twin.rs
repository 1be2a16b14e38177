//! A second device for machines that have one: the same engine under another name, which hands everything on.
//!
//! It has its own memory as far as anyone can tell: values must be moved to it, and operations that mix the two
//! devices are refused. It also shows how little an engine has to be.

use drivetrain::core::backend;
use drivetrain::core::{DeviceInfo, MemoryStats, Meta, Op, Operand, RawBuffer, Result};
use drivetrain::prelude::Device;
use std::sync::Arc;

struct Twin {
    engine: Arc<dyn backend::Device>,
    info: DeviceInfo,
}

/// Another device on the engine of `device`, called `twin`.
pub fn twin(device: &Device) -> Device {
    let engine = device.raw().clone();
    let info = DeviceInfo {
        backend: "twin".to_string(),
        ordinal: 0,
        single: true,
        ..engine.info().clone()
    };
    Device::new(Arc::new(Twin { engine, info }))
}

impl backend::Device for Twin {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        self.engine.allocate(bytes)
    }

    fn free(&self, buffer: RawBuffer) {
        self.engine.free(buffer);
    }

    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()> {
        self.engine.upload(source, buffer, offset)
    }

    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        self.engine.download(buffer, offset, target)
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> bool {
        self.engine.supports(op, inputs)
    }

    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        self.engine.execute(op, inputs, in_place, outputs)
    }

    fn synchronize(&self) -> Result<()> {
        self.engine.synchronize()
    }

    fn memory(&self) -> MemoryStats {
        self.engine.memory()
    }
}
