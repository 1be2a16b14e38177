//! Random-shape comparison: of the reference with itself, of the CPU with it, and of a faulty device.

use drivetrain_conformance::compare::{compare, names};
use drivetrain_conformance::reference;
use drivetrain_core::backend::{self, RawBuffer};
use drivetrain_core::{
    BinaryOp, Device, DeviceInfo, Layout, MemoryStats, Meta, Op, Operand, Primitive, Result, Shape,
};
use drivetrain_cpu as _;
use std::sync::Arc;

#[test]
fn the_reference_equals_itself() {
    let report = compare(&reference::device(), &[], 20, 1);
    assert!(report.failures.is_empty(), "{report}");
    // It has no composites of its own.
    assert!(report.passed >= 20 * (names().len() - 6), "{report}");
    assert!(
        report.skipped.iter().all(|s| s.contains("Composite")),
        "{report}"
    );
}

#[test]
fn the_cpu_equals_the_reference() {
    let device = Device::open("cpu").unwrap();
    let report = compare(&device, &[], 150, 2);
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.passed > 2000, "{report}");
}

/// The reference with two faults: a product that drops the sign, a copy that writes past its end.
struct Faulty(Device);

impl backend::Device for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }
    fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        self.0.raw().allocate(bytes)
    }
    fn free(&self, buffer: RawBuffer) {
        self.0.raw().free(buffer);
    }
    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()> {
        self.0.raw().upload(source, buffer, offset)
    }
    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        self.0.raw().download(buffer, offset, target)
    }
    fn supports(&self, op: &Op, inputs: &[Meta]) -> bool {
        self.0.raw().supports(op, inputs)
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    fn memory(&self) -> MemoryStats {
        self.0.raw().memory()
    }

    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        let engine = self.0.raw();
        engine.execute(op, inputs, in_place, outputs)?;
        match op {
            Op::Primitive(Primitive::Binary(BinaryOp::Mul)) if outputs[0].dtype.is_float() => {
                let abs = Primitive::Unary(drivetrain_core::UnaryOp::Abs);
                engine.execute(&abs.into(), &outputs[..1], &[], &outputs[..1])
            }
            Op::Primitive(Primitive::Copy) => {
                let beyond = outputs[0].layout.offset() + outputs[0].layout.elements();
                let layout = Layout::new(Shape::SCALAR, &[], beyond)?;
                let fill = Primitive::Fill { value: 0.into() };
                engine.execute(
                    &fill.into(),
                    &[],
                    &[],
                    &[Operand {
                        layout,
                        ..outputs[0]
                    }],
                )
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn faults_are_found() {
    let device = Device::new(Arc::new(Faulty(reference::device())));
    let named = |name: &str, rounds| compare(&device, &[name.to_string()], rounds, 3);
    let copies = named("copy", 60);
    let outside = copies
        .failures
        .iter()
        .filter(|f| f.contains("outside its bounds"));
    assert_eq!((copies.passed, outside.count()), (0, 60), "{copies}");
    let binary = named("binary", 400);
    assert!(!binary.failures.is_empty(), "{binary}");
    assert!(
        binary.failures.iter().all(|f| f.contains("Binary(Mul)")),
        "{binary}"
    );
    assert_eq!(named("fill", 60).passed, 60);
}
