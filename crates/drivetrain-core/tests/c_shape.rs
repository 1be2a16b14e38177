//! A device behind a flat table: what a C plugin would have. Every call is a plain function over integers,
//! floats and flat records, so whatever an op or an operand carries must cross as those and come back equal.
//!
//! Handles stand for devices and buffers, statuses for results, and a message is fetched by a call of its own.

mod toy;

#[path = "../src/encode/tests/maker.rs"]
mod maker;
mod ops {
    pub use drivetrain_core::*;
}

use drivetrain_core::backend::{self, Device as _};
use drivetrain_core::random::Generator;
use drivetrain_core::{
    Attribute, DType, Device, DeviceInfo, Encoded, Error, ErrorKind, Layout, MAX_DIMS, MemoryStats,
    Meta, Op, Operand, RawBuffer, Result, Shape,
};
use maker::{KINDS, Maker};
use std::sync::Mutex;
use toy::ToyDevice;

/// An attribute as C would have it: which field counts is `tag`; integers of a list lie elsewhere.
#[derive(Clone, Copy)]
#[repr(C)]
struct FlatAttribute {
    tag: u32,
    int: i64,
    float: f64,
    first: u64,
    count: u64,
}

/// An operand as C would have it.
#[derive(Clone, Copy)]
#[repr(C)]
struct FlatView {
    handle: u64,
    bytes: u64,
    dtype: u32,
    rank: u32,
    dims: [i64; MAX_DIMS],
    strides: [i64; MAX_DIMS],
    offset: i64,
    storage: u64,
    version: u64,
}

/// An op as C would have it: a code, attributes and the integers of their lists.
struct FlatOp {
    code: u32,
    attributes: Vec<FlatAttribute>,
    ints: Vec<i64>,
}

type Views<'a> = &'a [FlatView];
type Attributes<'a> = &'a [FlatAttribute];
type Execute = fn(u64, u32, Attributes, &[i64], Views, Views, Views) -> i32;

/// The table of a plugin: plain functions; 0 is success, and 1 + the number of an error kind is failure.
struct Table {
    allocate: fn(u64, u64, &mut u64) -> i32,
    free: fn(u64, u64, u64),
    upload: fn(u64, &[u8], u64, u64, u64) -> i32,
    download: fn(u64, u64, u64, u64, &mut [u8]) -> i32,
    supports: fn(u64, u32, Attributes, &[i64], Views) -> i32,
    execute: Execute,
    message: fn(&mut [u8]) -> u64,
}

// What crosses, both ways.

fn flatten(op: &Op) -> FlatOp {
    let Encoded { code, attributes } = op.encode();
    let mut flat = FlatOp {
        code,
        attributes: Vec::new(),
        ints: Vec::new(),
    };
    for attribute in attributes {
        let mut record = FlatAttribute {
            tag: 0,
            int: 0,
            float: 0.0,
            first: 0,
            count: 0,
        };
        match attribute {
            Attribute::Int(value) => record.int = value,
            Attribute::Float(value) => (record.tag, record.float) = (1, value),
            Attribute::Bool(value) => (record.tag, record.int) = (2, value.into()),
            Attribute::Ints(values) => {
                record.tag = 3;
                (record.first, record.count) = (flat.ints.len() as u64, values.len() as u64);
                flat.ints.extend(values);
            }
        }
        flat.attributes.push(record);
    }
    flat
}

fn unflatten(code: u32, attributes: &[FlatAttribute], ints: &[i64]) -> Result<Op> {
    let attribute = |record: &FlatAttribute| match record.tag {
        0 => Ok(Attribute::Int(record.int)),
        1 => Ok(Attribute::Float(record.float)),
        2 => Ok(Attribute::Bool(record.int != 0)),
        3 => {
            let end = record.first.saturating_add(record.count) as usize;
            let list = ints.get(record.first as usize..end);
            let list = list.ok_or_else(|| Error::format("attribute", "a list past the end"))?;
            Ok(Attribute::Ints(list.to_vec()))
        }
        tag => Err(Error::format("attribute", format!("tag {tag}"))),
    };
    let attributes = attributes.iter().map(attribute).collect::<Result<_>>()?;
    Op::decode(&Encoded { code, attributes })
}

fn flatten_view(operand: &Operand) -> FlatView {
    let (mut dims, mut strides) = ([0; MAX_DIMS], [0; MAX_DIMS]);
    let layout = &operand.layout;
    for (i, (&size, &stride)) in layout.dims().iter().zip(layout.strides()).enumerate() {
        (dims[i], strides[i]) = (size as i64, stride as i64);
    }
    FlatView {
        handle: operand.buffer.handle,
        bytes: operand.buffer.bytes as u64,
        dtype: operand.dtype as u32,
        rank: layout.shape().rank() as u32,
        dims,
        strides,
        offset: layout.offset() as i64,
        storage: operand.storage,
        version: operand.version,
    }
}

fn unflatten_view(view: &FlatView) -> Result<Operand> {
    let rank = view.rank as usize;
    let dims = view
        .dims
        .get(..rank)
        .ok_or_else(|| Error::format("view", "rank"))?;
    let dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
    let strides: Vec<isize> = view.strides[..rank].iter().map(|&s| s as isize).collect();
    Ok(Operand {
        buffer: RawBuffer {
            handle: view.handle,
            bytes: view.bytes as usize,
        },
        dtype: DType::from_code(view.dtype)?,
        layout: Layout::new(Shape::new(&dims)?, &strides, view.offset as usize)?,
        storage: view.storage,
        version: view.version,
    })
}

// The guest's side of the table.

static DEVICES: Mutex<Vec<ToyDevice>> = Mutex::new(Vec::new());
static SEEN: Mutex<Vec<(Op, Vec<Operand>)>> = Mutex::new(Vec::new());
static MESSAGE: Mutex<String> = Mutex::new(String::new());

const TABLE: Table = Table {
    allocate: |device, bytes, handle| {
        status(on(device, |toy| {
            *handle = toy.allocate(bytes as usize)?.handle;
            Ok(())
        }))
    },
    free: |device, handle, bytes| {
        let bytes = bytes as usize;
        let _ = on(device, |toy| {
            toy.free(RawBuffer { handle, bytes });
            Ok(())
        });
    },
    upload: |device, source, handle, bytes, offset| {
        let buffer = RawBuffer {
            handle,
            bytes: bytes as usize,
        };
        status(on(device, |toy| {
            toy.upload(source, buffer, offset as usize)
        }))
    },
    download: |device, handle, bytes, offset, target| {
        let buffer = RawBuffer {
            handle,
            bytes: bytes as usize,
        };
        status(on(device, |toy| {
            toy.download(buffer, offset as usize, target)
        }))
    },
    supports: |device, code, attributes, ints, inputs| {
        let answer = on(device, |toy| {
            let op = unflatten(code, attributes, ints)?;
            let metas: Vec<Meta> = operands(inputs)?.iter().map(Operand::meta).collect();
            Ok(toy.supports(&op, &metas))
        });
        answer.unwrap_or(false).into()
    },
    execute: |device, code, attributes, ints, inputs, in_place, outputs| {
        status(on(device, |toy| {
            let op = unflatten(code, attributes, ints)?;
            let (inputs, in_place) = (operands(inputs)?, operands(in_place)?);
            let outputs = operands(outputs)?;
            let all = [&inputs[..], &in_place, &outputs].concat();
            SEEN.lock().unwrap().push((op.clone(), all));
            toy.execute(&op, &inputs, &in_place, &outputs)
        }))
    },
    message: |target| {
        let message = MESSAGE.lock().unwrap();
        let count = message.len().min(target.len());
        target[..count].copy_from_slice(&message.as_bytes()[..count]);
        message.len() as u64
    },
};

fn on<T>(device: u64, call: impl FnOnce(&ToyDevice) -> Result<T>) -> Result<T> {
    let devices = DEVICES.lock().unwrap();
    call(&devices[device as usize])
}

fn operands(views: Views) -> Result<Vec<Operand>> {
    views.iter().map(unflatten_view).collect()
}

fn status(result: Result<()>) -> i32 {
    let Err(error) = result else { return 0 };
    *MESSAGE.lock().unwrap() = error.message().to_string();
    1 + error.kind() as i32
}

// The host's side.

/// A device known by a handle and a table only.
struct FlatDevice {
    handle: u64,
    table: Table,
    info: DeviceInfo,
}

impl FlatDevice {
    fn check(&self, operation: &'static str, status: i32) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let mut bytes = [0; 256];
        let length = (self.table.message)(&mut bytes) as usize;
        let message = String::from_utf8_lossy(&bytes[..length.min(256)]).into_owned();
        let kind = match status - 1 {
            k if k == ErrorKind::OutOfMemory as i32 => ErrorKind::OutOfMemory,
            k if k == ErrorKind::Unsupported as i32 => ErrorKind::Unsupported,
            _ => ErrorKind::Backend,
        };
        Err(Error::new(kind, operation, message))
    }
}

impl backend::Device for FlatDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        let mut handle = 0;
        let status = (self.table.allocate)(self.handle, bytes as u64, &mut handle);
        self.check("allocate", status)?;
        Ok(RawBuffer { handle, bytes })
    }

    fn free(&self, buffer: RawBuffer) {
        (self.table.free)(self.handle, buffer.handle, buffer.bytes as u64);
    }

    fn upload(&self, source: &[u8], buffer: RawBuffer, offset: usize) -> Result<()> {
        let (bytes, offset) = (buffer.bytes as u64, offset as u64);
        self.check(
            "upload",
            (self.table.upload)(self.handle, source, buffer.handle, bytes, offset),
        )
    }

    fn download(&self, buffer: RawBuffer, offset: usize, target: &mut [u8]) -> Result<()> {
        let (bytes, offset) = (buffer.bytes as u64, offset as u64);
        let status = (self.table.download)(self.handle, buffer.handle, bytes, offset, target);
        self.check("download", status)
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> bool {
        let flat = flatten(op);
        let views: Vec<FlatView> = (inputs.iter())
            .map(|meta| {
                flatten_view(&Operand {
                    buffer: RawBuffer {
                        handle: 0,
                        bytes: 0,
                    },
                    dtype: meta.dtype,
                    layout: Layout::contiguous(meta.shape),
                    storage: 0,
                    version: 0,
                })
            })
            .collect();
        (self.table.supports)(self.handle, flat.code, &flat.attributes, &flat.ints, &views) != 0
    }

    fn execute(
        &self,
        op: &Op,
        inputs: &[Operand],
        in_place: &[Operand],
        outputs: &[Operand],
    ) -> Result<()> {
        let flat = flatten(op);
        let views = |list: &[Operand]| list.iter().map(flatten_view).collect::<Vec<_>>();
        let status = (self.table.execute)(
            self.handle,
            flat.code,
            &flat.attributes,
            &flat.ints,
            &views(inputs),
            &views(in_place),
            &views(outputs),
        );
        self.check(op.name(), status)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> MemoryStats {
        MemoryStats::default()
    }
}

fn flat_device() -> FlatDevice {
    let mut devices = DEVICES.lock().unwrap();
    devices.push(ToyDevice {
        capacity: 1 << 20,
        ..ToyDevice::new()
    });
    FlatDevice {
        handle: devices.len() as u64 - 1,
        table: TABLE,
        info: DeviceInfo {
            backend: "flat".into(),
            ..ToyDevice::new().info
        },
    }
}

#[test]
fn a_device_behind_a_flat_table_works() {
    let device = Device::new(std::sync::Arc::new(flat_device()));
    device.self_test().unwrap();
    let error = device.allocate(1 << 21).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("on flat:0"), "{error}");
    let buffer = device.allocate(4).unwrap();
    let operand = buffer.operand(DType::F32, Layout::contiguous(Shape::SCALAR));
    let relu = Op::from(drivetrain_core::Primitive::Unary(
        drivetrain_core::UnaryOp::Relu,
    ));
    let error = device
        .execute(&relu, &[operand], &[], &[operand])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error
            .to_string()
            .contains("by backend flat for F32: the toy has it not"),
        "{error}"
    );
}

/// An operand of any dtype, shape, strides and offset, in no memory.
fn operand(maker: &mut Maker) -> Operand {
    let rank = maker.0.below(MAX_DIMS as u64 + 1) as usize;
    let dims: Vec<usize> = (0..rank).map(|_| 1 + maker.0.below(3) as usize).collect();
    let strides: Vec<isize> = (0..rank).map(|_| maker.0.below(99) as isize - 49).collect();
    let shape = Shape::new(&dims).unwrap();
    Operand {
        buffer: RawBuffer {
            handle: maker.0.word().into(),
            bytes: maker.size(),
        },
        dtype: maker.of(&DType::ALL),
        layout: Layout::new(shape, &strides, maker.size()).unwrap(),
        storage: maker.0.word().into(),
        version: maker.0.word().into(),
    }
}

#[test]
fn everything_crosses_and_comes_back_equal() {
    let mut maker = Maker(Generator::new(11, 0));
    for round in 0..KINDS * 50 {
        let op = maker.op(round);
        let flat = flatten(&op);
        let back = unflatten(flat.code, &flat.attributes, &flat.ints).unwrap();
        assert_eq!(back.encode(), op.encode(), "{op:?}");
        let operand = operand(&mut maker);
        assert_eq!(unflatten_view(&flatten_view(&operand)).unwrap(), operand);
    }
}

#[test]
fn the_guest_sees_what_the_host_sent() {
    let device = flat_device();
    let handles: Vec<RawBuffer> = (0..3).map(|_| device.allocate(64).unwrap()).collect();
    let view = |i: usize, layout: Layout| Operand {
        buffer: handles[i],
        dtype: DType::F32,
        layout,
        storage: 40 + i as u64,
        version: 7,
    };
    let base = Layout::contiguous(Shape::new(&[2, 3]).unwrap());
    let turned = base.slice(1, 2, -1, 3).unwrap();
    let sent = [view(0, turned), view(1, base), view(2, base)];
    let op = Op::from(drivetrain_core::Primitive::Binary(
        drivetrain_core::BinaryOp::Mul,
    ));
    device.execute(&op, &sent[..2], &[], &sent[2..]).unwrap();
    let seen = SEEN.lock().unwrap();
    assert!(seen.contains(&(op, sent.to_vec())));
}
