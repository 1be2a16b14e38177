//! Operands in memory: views into larger buffers, and outputs between guards.

use crate::reference::{self, HostValue};
use drivetrain_core::{Buffer, DType, Device, Layout, Meta, Op, Operand, Result, infer};

/// Bytes before and after an output that an op must leave alone.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xA5;

/// A view of a value that lies in a buffer.
#[derive(Clone)]
pub(super) struct Placed {
    /// What the buffer holds.
    pub storage: HostValue,
    /// What of it the op sees.
    pub layout: Layout,
}

impl Placed {
    pub fn meta(&self) -> Meta {
        Meta::new(self.storage.meta.dtype, *self.layout.shape())
    }
}

/// An op's operands.
pub(super) struct Operands {
    pub inputs: Vec<Placed>,
    pub in_place: Vec<Placed>,
    /// Dtype and shape of the outputs that inference cannot know.
    pub outputs: Vec<Meta>,
}

impl Operands {
    pub fn metas(&self) -> Vec<Meta> {
        self.inputs.iter().map(Placed::meta).collect()
    }
}

/// What came out, and whether the guards held.
pub(super) struct Output {
    pub value: HostValue,
    pub guarded: bool,
}

struct Held {
    buffer: Buffer,
    dtype: DType,
    layout: Layout,
}

impl Held {
    /// A row-major value between guards.
    fn guarded(device: &Device, meta: Meta, content: &[u8]) -> Result<Held> {
        let mut bytes = vec![GUARD_BYTE; 2 * GUARD + meta.bytes()];
        bytes[GUARD..GUARD + content.len()].copy_from_slice(content);
        let buffer = device.allocate(bytes.len())?;
        buffer.upload(&bytes, 0)?;
        let strides = meta.shape.strides();
        let offset = GUARD / meta.dtype.size();
        let layout = Layout::new(meta.shape, &strides[..meta.shape.rank()], offset)?;
        Ok(Held {
            buffer,
            dtype: meta.dtype,
            layout,
        })
    }

    fn view(device: &Device, placed: &Placed) -> Result<Held> {
        let buffer = device.allocate(placed.storage.bytes().len())?;
        buffer.upload(placed.storage.bytes(), 0)?;
        Ok(Held {
            buffer,
            dtype: placed.storage.meta.dtype,
            layout: placed.layout,
        })
    }

    fn operand(&self) -> Operand {
        self.buffer.operand(self.dtype, self.layout)
    }

    fn output(&self) -> Result<Output> {
        let meta = Meta::new(self.dtype, *self.layout.shape());
        let mut bytes = vec![0; 2 * GUARD + meta.bytes()];
        self.buffer.download(&mut bytes, 0)?;
        let end = GUARD + meta.bytes();
        let mut guards = bytes[..GUARD].iter().chain(&bytes[end..]);
        Ok(Output {
            guarded: guards.all(|&byte| byte == GUARD_BYTE),
            value: HostValue::from_bytes(meta, bytes[GUARD..end].to_vec())?,
        })
    }
}

/// What the reference gives, by way of decompositions where the op is a composite.
pub(super) fn expected(device: &Device, op: &Op, operands: &Operands) -> Result<Vec<HostValue>> {
    if let Op::Primitive(_) = op {
        let outputs = run(device, op, operands)?;
        return Ok(outputs.into_iter().map(|output| output.value).collect());
    }
    let plain = |list: &[Placed]| {
        let values = list
            .iter()
            .map(|placed| placed.storage.view(&placed.layout));
        values.collect::<Result<Vec<HostValue>>>()
    };
    reference::run(
        device,
        op,
        &plain(&operands.inputs)?,
        &plain(&operands.in_place)?,
    )
}

/// Runs an op as it is, without decomposition: its outputs, or the new values of its in-place operands.
pub(super) fn run(device: &Device, op: &Op, operands: &Operands) -> Result<Vec<Output>> {
    let in_place: Vec<Meta> = operands.in_place.iter().map(Placed::meta).collect();
    let inferred = infer(op, &operands.metas(), &in_place)?;
    let metas = if inferred.is_empty() {
        &operands.outputs
    } else {
        &inferred.to_vec()
    };
    let hold = |list: &[Placed]| {
        let held = list.iter().map(|placed| Held::view(device, placed));
        held.collect::<Result<Vec<Held>>>()
    };
    let inputs = hold(&operands.inputs)?;
    let changed = operands.in_place.iter();
    let changed = changed.map(|p| Held::guarded(device, p.meta(), p.storage.bytes()));
    let changed = changed.collect::<Result<Vec<Held>>>()?;
    let made = metas.iter().map(|&meta| Held::guarded(device, meta, &[]));
    let made = made.collect::<Result<Vec<Held>>>()?;
    let views = |held: &[Held]| held.iter().map(Held::operand).collect::<Vec<_>>();
    device.execute(op, &views(&inputs), &views(&changed), &views(&made))?;
    changed.iter().chain(&made).map(Held::output).collect()
}
