//! `Device` and its allocator on a toy engine.

mod toy;

use drivetrain_core::{
    BinaryOp, Buffer, Composite, DType, Device, Element, ErrorKind, Layout, Meta, Op, Primitive,
    ReduceOp, Scalar, Shape, UnaryOp,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use toy::{LARGE, ToyDevice};

fn toy(capacity: usize) -> (Device, Arc<ToyDevice>) {
    let engine = Arc::new(ToyDevice {
        capacity,
        ..ToyDevice::new()
    });
    (Device::new(engine.clone()), engine)
}

fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}

fn put(device: &Device, values: &[f32]) -> Buffer {
    let buffer = device.allocate(values.len() * 4).unwrap();
    buffer.upload(f32::to_bytes(values), 0).unwrap();
    buffer
}

fn get(buffer: &Buffer, count: usize) -> Vec<f32> {
    let mut bytes = vec![0; count * 4];
    buffer.download(&mut bytes, 0).unwrap();
    f32::from_bytes(&bytes)
}

fn layout(dims: &[usize]) -> Layout {
    Layout::contiguous(shape(dims))
}

#[test]
fn ops_run_on_strided_views() {
    let (device, _) = toy(LARGE);
    let (a, b) = (
        put(&device, &[1.0, 2.0, 3.0, 4.0]),
        put(&device, &[10.0, 20.0]),
    );
    let sum = put(&device, &[0.0; 4]);
    let a = a.operand(DType::F32, layout(&[2, 2]).permute(&[1, 0]));
    let b = b.operand(DType::F32, layout(&[2]).expand(&shape(&[2, 2])).unwrap());
    let out = sum.operand(DType::F32, layout(&[2, 2]));
    let add = Op::from(Primitive::Binary(BinaryOp::Add));
    device.execute(&add, &[a, b], &[], &[out]).unwrap();
    assert_eq!(get(&sum, 4), [11.0, 23.0, 12.0, 24.0]);
    assert_eq!(device.executed_ops(), 1);
    device.self_test().unwrap();
}

#[test]
fn views_outside_their_buffer_never_reach_the_engine() {
    let (device, engine) = toy(LARGE);
    let buffer = put(&device, &[0.0; 16]);
    let over = buffer.operand(DType::F32, layout(&[17]));
    let fill = Op::from(Primitive::Fill {
        value: Scalar::F64(1.0),
    });
    let error = device.execute(&fill, &[], &[], &[over]).unwrap_err();
    assert!(error.to_string().contains("fill: layout"), "{error}");
    assert!(error.to_string().contains("on toy:0"), "{error}");
    let before = Layout::new(shape(&[2]), &[-1], 0).unwrap();
    let before = buffer.operand(DType::F32, before);
    device.execute(&fill, &[], &[], &[before]).unwrap_err();
    assert!(engine.log.lock().unwrap().is_empty());
    assert!(buffer.upload(&[0; 4], buffer.bytes() - 3).is_err());
    assert!(buffer.download(&mut [0; 4], usize::MAX).is_err());
}

#[test]
fn empty_operands_are_answered_by_core() {
    let (device, engine) = toy(LARGE);
    let empty = device.allocate(0).unwrap();
    let out = put(&device, &[7.0; 4]);
    let nothing = |dims: &[usize]| empty.operand(DType::F32, layout(dims));
    let result = |dims: &[usize]| out.operand(DType::F32, layout(dims));
    let reduce = |op| {
        Op::from(Primitive::Reduce {
            op,
            dims: drivetrain_core::DimSet::of(&[0]),
            accumulate: DType::F32,
        })
    };
    device
        .execute(
            &reduce(ReduceOp::Prod),
            &[nothing(&[0, 4])],
            &[],
            &[result(&[1, 4])],
        )
        .unwrap();
    assert_eq!(get(&out, 4), [1.0; 4]);
    device
        .execute(
            &reduce(ReduceOp::Sum),
            &[nothing(&[0, 4])],
            &[],
            &[result(&[1, 4])],
        )
        .unwrap();
    assert_eq!(get(&out, 4), [0.0; 4]);
    let bias = put(&device, &[5.0, 6.0]);
    let inputs = [
        nothing(&[2, 0]),
        nothing(&[2, 0]),
        bias.operand(DType::F32, layout(&[2])),
    ];
    device
        .execute(&Composite::Linear.into(), &inputs, &[], &[result(&[2, 2])])
        .unwrap();
    assert_eq!(get(&out, 4), [5.0, 6.0, 5.0, 6.0]);
    let relu = Op::from(Primitive::Unary(UnaryOp::Relu));
    device
        .execute(&relu, &[nothing(&[0])], &[], &[nothing(&[0])])
        .unwrap();
    assert_eq!(*engine.log.lock().unwrap(), ["fill", "fill", "copy"]);
}

#[test]
fn an_engine_error_names_op_and_device() {
    let (device, _) = toy(LARGE);
    let buffer = put(&device, &[1.0]);
    let operand = buffer.operand(DType::F32, layout(&[1]));
    let relu = Op::from(Primitive::Unary(UnaryOp::Relu));
    let error = device
        .execute(&relu, &[operand], &[], &[operand])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let message = error.to_string();
    for part in [
        "relu: not implemented by backend toy for F32: the toy has it not on toy:0",
        "DRIVETRAIN_FALLBACK",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn what_a_device_lacks_runs_on_its_fallback() {
    let (device, _) = toy(LARGE);
    let helper = Arc::new(ToyDevice {
        has_relu: true,
        ..ToyDevice::new()
    });
    let relu = Op::from(Primitive::Unary(UnaryOp::Relu));
    let (x, y) = (
        put(&device, &[9.0, -1.0, 2.0, -3.0, 9.0]),
        put(&device, &[7.0; 6]),
    );
    // Reversed, from a window and into every other element of another: the rest is left alone.
    let window = Layout::contiguous(shape(&[5])).slice(0, 3, -1, 3).unwrap();
    let spread = Layout::contiguous(shape(&[6])).slice(0, 1, 2, 3).unwrap();
    let (from, to) = (x.operand(DType::F32, window), y.operand(DType::F32, spread));
    device.set_fallback(Some(device.clone()));
    device.execute(&relu, &[from], &[], &[to]).unwrap_err();
    device.set_fallback(Some(Device::new(helper.clone())));
    device.execute(&relu, &[from], &[], &[to]).unwrap();
    assert_eq!(get(&y, 6), [7.0, 0.0, 7.0, 2.0, 7.0, 0.0]);
    assert_eq!(*helper.log.lock().unwrap(), ["relu"]);
    device.set_fallback(None);
    device.execute(&relu, &[from], &[], &[to]).unwrap_err();
}

#[test]
fn answers_about_support_are_remembered_by_kind() {
    let (device, engine) = toy(LARGE);
    let meta = |dtype, dims: &[usize]| Meta::new(dtype, shape(dims));
    let relu = Op::from(Primitive::Unary(UnaryOp::Relu));
    for _ in 0..3 {
        assert!(device.supports(&relu, &[meta(DType::F32, &[3])]));
    }
    assert!(device.supports(&relu, &[meta(DType::F32, &[4])]));
    assert_eq!(engine.asked.load(Ordering::Relaxed), 1);
    assert!(!device.supports(&relu, &[meta(DType::F64, &[3])]));
    assert!(device.supports(&relu, &[meta(DType::F32, &[3, 1])]));
    assert!(device.supports(
        &Primitive::Unary(UnaryOp::Exp).into(),
        &[meta(DType::F32, &[3])]
    ));
    assert_eq!(engine.asked.load(Ordering::Relaxed), 4);
}

#[test]
fn memory_is_kept_and_given_out_again() {
    let (device, engine) = toy(LARGE);
    let live = Device::live_buffers;
    let first = device.allocate(1000).unwrap();
    assert!(first.bytes() >= 1000 && live() > 0);
    let (id, peak) = (first.id(), device.memory().peak);
    assert_eq!(device.memory().in_use, peak);
    drop(first);
    assert_eq!(device.memory().in_use, 0);
    assert_eq!(device.memory().reserved, peak);
    let again = device.allocate(1001).unwrap();
    assert_ne!(again.id(), id);
    assert_eq!(
        engine.next.load(Ordering::Relaxed),
        2,
        "asked the engine again"
    );
    drop(again);
    device.empty_cache();
    assert_eq!((engine.held(), device.memory().reserved), (0, 0));
    assert_eq!(device.memory().peak, peak);
}

#[test]
fn a_full_device_is_trimmed_and_asked_once_more() {
    let (device, engine) = toy(4096);
    let small: Vec<Buffer> = (0..4).map(|_| device.allocate(1024).unwrap()).collect();
    let error = device.allocate(2048).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert_eq!(engine.trims.load(Ordering::Relaxed), 1);
    drop(small);
    // All of it is in the cache, in the wrong sizes.
    let large = device.allocate(4096).unwrap();
    assert_eq!(engine.held(), large.bytes());
    assert_eq!(device.memory().free, Some(0));
    assert!(device.allocate(usize::MAX).is_err());
}

#[test]
fn a_limit_holds_and_is_lifted() {
    let (device, engine) = toy(LARGE);
    device.set_memory_limit(Some(2048));
    let first = device.allocate(1024).unwrap();
    let error = device.allocate(1536).unwrap_err().to_string();
    for word in [
        "1536 bytes asked",
        "1024 in use",
        "limit 2048",
        "on toy:0",
        "help",
    ] {
        assert!(error.contains(word), "{error}");
    }
    drop(first);
    let second = device.allocate(1536).unwrap();
    assert_eq!(engine.held(), 1536);
    device.set_memory_limit(None);
    device.allocate(1 << 20).unwrap();
    drop(second);
    drop(device);
    assert_eq!(engine.held(), 0, "memory outlived its device");
}

#[test]
fn buffers_copy_across_devices_and_keep_their_device() {
    let ((a, _), (b, engine)) = (toy(LARGE), toy(LARGE));
    let source = put(&a, &[1.0, 2.0]);
    let target = b.allocate(8).unwrap();
    target.copy_from(&source, 8).unwrap();
    assert_eq!(get(&target, 2), [1.0, 2.0]);
    assert!(target.copy_from(&source, 1 << 20).is_err());
    drop(b);
    assert_eq!(get(&target, 2), [1.0, 2.0]);
    drop(target);
    assert_eq!(engine.held(), 0);
}
