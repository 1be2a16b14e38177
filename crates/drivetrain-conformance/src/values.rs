//! The numbers of a set of cases: a safetensors file read into host memory, and its way onto a device.

use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{DType, Device, Error, Result, Shape};
use drivetrain_tensor::Tensor;
use serde_json::Value;
use std::collections::HashMap;

/// A tensor in host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// Sizes.
    pub shape: Vec<usize>,
    /// What it holds: floats become the dtype of the run, indices I64, masks Bool.
    pub kind: Kind,
    /// The elements, row-major.
    pub elements: Vec<f64>,
}

/// What a tensor of a case holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Floats.
    Float,
    /// Indices or labels.
    Index,
    /// 0 or 1.
    Mask,
}

impl HostTensor {
    /// A copy of a tensor on a device.
    ///
    /// # Errors
    /// When the device fails, now or in an op queued before.
    pub fn of(tensor: &Tensor) -> Result<HostTensor> {
        Ok(HostTensor {
            shape: tensor.dims().to_vec(),
            kind: match tensor.dtype() {
                dtype if dtype.is_float() => Kind::Float,
                DType::Bool | DType::U8 => Kind::Mask,
                _ => Kind::Index,
            },
            elements: tensor.to_f64_vec()?,
        })
    }

    /// Rounds floats to `dtype`.
    pub fn round(&mut self, dtype: DType) {
        if self.kind == Kind::Float {
            self.elements
                .iter_mut()
                .for_each(|v| *v = rounded(*v, Some(dtype)));
        }
    }

    /// The tensor on `device`: floats as `dtype`, rounded to `round` before when that is given.
    ///
    /// # Errors
    /// When the device fails.
    pub fn upload(&self, dtype: DType, round: Option<DType>, device: &Device) -> Result<Tensor> {
        let shape = self.shape.as_slice();
        let elements = &self.elements;
        match self.kind {
            Kind::Index => {
                let indices: Vec<i64> = elements.iter().map(|&v| v as i64).collect();
                Tensor::from_vec(indices, shape, device)
            }
            Kind::Mask => {
                let mask: Vec<bool> = elements.iter().map(|&v| v != 0.0).collect();
                Tensor::from_vec(mask, shape, device)
            }
            Kind::Float => {
                let rounded: Vec<f64> = elements.iter().map(|&v| rounded(v, round)).collect();
                float_tensor(rounded, shape, dtype, device)
            }
        }
    }
}

/// `value` rounded to a dtype and back.
fn rounded(value: f64, dtype: Option<DType>) -> f64 {
    match dtype {
        Some(DType::F16) => f16::from_f64(value).to_f64(),
        Some(DType::BF16) => bf16::from_f64(value).to_f64(),
        Some(DType::F32) => f64::from(value as f32),
        _ => value,
    }
}

fn float_tensor(
    values: Vec<f64>,
    shape: &[usize],
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    match dtype {
        DType::F64 => Tensor::from_vec(values, shape, device),
        DType::F32 => Tensor::from_vec(
            values.iter().map(|&v| v as f32).collect::<Vec<_>>(),
            shape,
            device,
        ),
        DType::F16 => Tensor::from_vec(
            values.iter().map(|&v| f16::from_f64(v)).collect::<Vec<_>>(),
            shape,
            device,
        ),
        DType::BF16 => Tensor::from_vec(
            values
                .iter()
                .map(|&v| bf16::from_f64(v))
                .collect::<Vec<_>>(),
            shape,
            device,
        ),
        other => Err(Error::dtype(
            "conformance",
            format!("{other} is not a float"),
        )),
    }
}

/// The tensors of a safetensors file by name.
///
/// # Errors
/// Bytes that do not fit the format, with `file` and the tensor's name.
pub fn read(file: &str, bytes: &[u8]) -> Result<HashMap<String, HostTensor>> {
    let short = || Error::format("conformance", format!("{file}: the header is cut short"));
    let length = bytes.first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let header = bytes[8..].get(..length).ok_or_else(short)?;
    let data = &bytes[8 + length..];
    let header = std::str::from_utf8(header)
        .map_err(|error| Error::format("conformance", format!("{file}: header: {error}")))?;
    let header = crate::json::parse(file, header)?;
    let entries = header
        .as_object()
        .ok_or_else(|| Error::format("conformance", format!("{file}: the header is no object")))?;
    let mut tensors = HashMap::new();
    for (name, entry) in entries.iter().filter(|(name, _)| *name != "__metadata__") {
        let tensor = read_entry(entry, data).map_err(|why| {
            Error::format("conformance", format!("{file}: tensor {name:?}: {why}"))
        })?;
        tensors.insert(name.clone(), tensor);
    }
    Ok(tensors)
}

/// One tensor of the header; an error says what is wrong with it.
fn read_entry(entry: &Value, data: &[u8]) -> std::result::Result<HostTensor, String> {
    let numbers = |key: &str| -> Option<Vec<usize>> {
        let list = entry.get(key)?.as_array()?;
        list.iter()
            .map(|n| usize::try_from(n.as_u64()?).ok())
            .collect()
    };
    let shape = numbers("shape").ok_or("no shape")?;
    let offsets = numbers("data_offsets").ok_or("no data_offsets")?;
    let &[start, end] = offsets.as_slice() else {
        return Err(format!("data_offsets {offsets:?}"));
    };
    let bytes = data.get(start..end).ok_or_else(|| {
        format!(
            "bytes {start}..{end} of a file with {} bytes of data",
            data.len()
        )
    })?;
    let dtype = entry.get("dtype").and_then(Value::as_str).unwrap_or("none");
    let (kind, elements) = match dtype {
        "F64" => (Kind::Float, wide::<8>(bytes, f64::from_le_bytes)),
        "F32" => (
            Kind::Float,
            wide::<4>(bytes, |b| f32::from_le_bytes(b).into()),
        ),
        "I64" => (
            Kind::Index,
            wide::<8>(bytes, |b| i64::from_le_bytes(b) as f64),
        ),
        "I32" => (
            Kind::Index,
            wide::<4>(bytes, |b| i32::from_le_bytes(b).into()),
        ),
        "U8" | "BOOL" => (Kind::Mask, wide::<1>(bytes, |[b]| b.into())),
        other => return Err(format!("dtype {other}")),
    };
    let count = Shape::new(&shape).map_err(|e| e.to_string())?.elements();
    if elements.len() != count || bytes.len() % count.max(1) != 0 {
        return Err(format!(
            "{} bytes of {dtype} for shape {shape:?}",
            bytes.len()
        ));
    }
    Ok(HostTensor {
        shape,
        kind,
        elements,
    })
}

fn wide<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|&b| number(b))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [
            &(header.len() as u64).to_le_bytes(),
            header.as_bytes(),
            data,
        ]
        .concat()
    }

    #[test]
    fn tensors_are_read_by_name() {
        let header =
            r#"{"__metadata__": {}, "a": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}"#;
        let tensors = read("f", &file(header, &[9, 0, 1])).unwrap();
        let wanted = HostTensor {
            shape: vec![2],
            kind: Kind::Mask,
            elements: vec![0.0, 1.0],
        };
        assert_eq!(tensors["a"], wanted);
    }

    #[test]
    fn broken_files_are_refused() {
        let entry = |dtype: &str, shape: &str, offsets: &str| {
            file(
                &format!(
                    r#"{{"a": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}}}"#
                ),
                &[0; 16],
            )
        };
        for bytes in [
            vec![1, 2],
            file("{", &[]),
            (u64::MAX).to_le_bytes().to_vec(),
            entry("F64", "[2]", "[0, 24]"),
            entry("F64", "[3]", "[0, 16]"),
            entry("F64", "[2]", "[16, 0]"),
            entry("C64", "[2]", "[0, 16]"),
            entry("F64", "[4294967296, 4294967296]", "[0, 16]"),
        ] {
            let error = read("data.safetensors", &bytes).unwrap_err().to_string();
            assert!(error.contains("data.safetensors"), "{error}");
        }
    }
}
