//! Values on the host: floats as F64, integers and Bool as I64, read from and written to views of buffers.

use super::Memory;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{DType, Element, Error, Layout, Operand, Result, Scalar};

/// Elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// Of a float dtype.
    Float(Vec<f64>),
    /// Of an integer dtype or Bool.
    Int(Vec<i64>),
}

impl Values {
    /// Element `i`.
    pub fn scalar(&self, i: usize) -> Scalar {
        match self {
            Values::Float(values) => Scalar::F64(values[i]),
            Values::Int(values) => Scalar::I64(values[i]),
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::Float(values) => values.len(),
            Values::Int(values) => values.len(),
        }
    }

    /// The elements at these places, in their order.
    pub fn pick(&self, places: impl Iterator<Item = usize>) -> Values {
        match self {
            Values::Float(values) => Values::Float(places.map(|i| values[i]).collect()),
            Values::Int(values) => Values::Int(places.map(|i| values[i]).collect()),
        }
    }

    /// The integers; none when they are floats.
    pub fn ints(&self) -> &[i64] {
        match self {
            Values::Float(_) => &[],
            Values::Int(values) => values,
        }
    }

    /// Scalars as values of this dtype's kind.
    pub fn of(dtype: DType, scalars: impl Iterator<Item = Scalar>) -> Values {
        if dtype.is_float() {
            Values::Float(scalars.map(Scalar::as_f64).collect())
        } else {
            Values::Int(scalars.map(Scalar::as_i64).collect())
        }
    }
}

/// Views of one buffer that is being read.
pub(super) struct View {
    /// The elements.
    pub values: Values,
    /// Their dtype.
    pub dtype: DType,
    /// Their shape.
    pub dims: Vec<usize>,
}

/// Reads an operand.
pub(super) fn read(memory: &Memory, operand: &Operand) -> Result<View> {
    let bytes = memory.bytes(operand.buffer)?;
    Ok(View {
        values: from_bytes(operand.dtype, bytes, &operand.layout),
        dtype: operand.dtype,
        dims: operand.layout.dims().to_vec(),
    })
}

/// The elements that a layout shows of a buffer.
pub(super) fn from_bytes(dtype: DType, bytes: &[u8], layout: &Layout) -> Values {
    fn gather<T: Element>(bytes: &[u8], layout: &Layout) -> Values {
        let all = T::from_bytes(bytes);
        Values::of(
            T::DTYPE,
            layout.indices().map(|i| into_plain(all[i].into())),
        )
    }
    match dtype {
        DType::F32 => gather::<f32>(bytes, layout),
        DType::F64 => gather::<f64>(bytes, layout),
        DType::F16 => gather::<f16>(bytes, layout),
        DType::BF16 => gather::<bf16>(bytes, layout),
        DType::I64 => gather::<i64>(bytes, layout),
        DType::I32 => gather::<i32>(bytes, layout),
        DType::U8 => gather::<u8>(bytes, layout),
        DType::Bool => gather::<bool>(bytes, layout),
    }
}

fn into_plain(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::Bool(value) => Scalar::I64(value.into()),
        other => other,
    }
}

/// Writes values, rounded (or wrapped) to the operand's dtype, through its layout.
pub(super) fn write(memory: &mut Memory, operand: &Operand, values: &Values) -> Result<()> {
    let wanted = operand.layout.elements();
    if values.len() != wanted {
        return Err(Error::backend(
            "write",
            format!("{} values for a view of {wanted}", values.len()),
        ));
    }
    let bytes = memory.bytes_mut(operand.buffer)?;
    into_bytes(operand.dtype, values, bytes, &operand.layout);
    Ok(())
}

/// Puts values into a buffer where a layout says.
pub(super) fn into_bytes(dtype: DType, values: &Values, bytes: &mut [u8], layout: &Layout) {
    fn scatter<T: Element>(values: &Values, bytes: &mut [u8], layout: &Layout) {
        let size = size_of::<T>();
        for (i, at) in layout.indices().enumerate() {
            let element = [T::from_scalar(values.scalar(i))];
            bytes[at * size..(at + 1) * size].copy_from_slice(T::to_bytes(&element));
        }
    }
    match dtype {
        DType::F32 => scatter::<f32>(values, bytes, layout),
        DType::F64 => scatter::<f64>(values, bytes, layout),
        DType::F16 => scatter::<f16>(values, bytes, layout),
        DType::BF16 => scatter::<bf16>(values, bytes, layout),
        DType::I64 => scatter::<i64>(values, bytes, layout),
        DType::I32 => scatter::<i32>(values, bytes, layout),
        DType::U8 => scatter::<u8>(values, bytes, layout),
        DType::Bool => scatter::<bool>(values, bytes, layout),
    }
}
