//! Arrays in host memory, and the ordered list of them that a file holds.

use crate::Tensor;
use drivetrain_core::{DType, Device, Element, Error, IntoShape, MAX_USER_DIMS, Result, Shape};
use std::collections::BTreeMap;

/// An array in host memory: contiguous, row-major, native byte order.
///
/// ```
/// use drivetrain_tensor::formats::HostTensor;
/// let host = HostTensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(host.bytes.len(), 16);
/// assert_eq!(host.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    /// The type of the elements.
    pub dtype: DType,
    /// The sizes of the dimensions.
    pub shape: Shape,
    /// The elements' bytes; of a Bool only 0 and 1.
    pub bytes: Vec<u8>,
}

impl HostTensor {
    /// An array of these bytes.
    ///
    /// # Errors
    /// When there are more or fewer bytes than the shape asks for, more than
    /// [`MAX_USER_DIMS`](drivetrain_core::MAX_USER_DIMS) dimensions, or a Bool other than 0 and 1.
    #[track_caller]
    pub fn new(dtype: DType, shape: impl IntoShape, bytes: Vec<u8>) -> Result<HostTensor> {
        let shape = shape.into_shape()?;
        let tensor = HostTensor {
            dtype,
            shape,
            bytes,
        };
        tensor.check("HostTensor::new")?;
        Ok(tensor)
    }

    /// An array of these elements.
    ///
    /// # Errors
    /// When their number is not the shape's.
    #[track_caller]
    pub fn from_slice<T: Element>(values: &[T], shape: impl IntoShape) -> Result<HostTensor> {
        HostTensor::new(T::DTYPE, shape, T::to_bytes(values).to_vec())
    }

    /// The elements, row-major. `T` must be the array's dtype.
    ///
    /// # Errors
    /// Another dtype.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::dtype(
                "to_vec",
                format!("{} asked of an array of {}", T::DTYPE, self.dtype),
            ));
        }
        Ok(T::from_bytes(&self.bytes))
    }

    /// This array on a device.
    ///
    /// # Errors
    /// As [`HostTensor::new`] when the public fields do not fit each other; or a device without room.
    #[track_caller]
    pub fn to_tensor(&self, device: &Device) -> Result<Tensor> {
        self.check("HostTensor::to_tensor")?;
        Tensor::from_bytes(&self.bytes, self.dtype, self.shape, device)
    }

    /// A tensor's elements in host memory, row-major whatever the tensor's strides.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn from_tensor(tensor: &Tensor) -> Result<HostTensor> {
        HostTensor::new(tensor.dtype(), tensor.shape(), tensor.to_bytes()?)
    }

    // The fields are public, so whoever relies on them checks first.
    #[track_caller]
    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        let HostTensor {
            dtype,
            shape,
            bytes,
        } = self;
        if shape.rank() > MAX_USER_DIMS {
            return Err(Error::shape(
                operation,
                format!(
                    "{} dimensions {shape}, at most {MAX_USER_DIMS}",
                    shape.rank()
                ),
            ));
        }
        let expected = shape.elements() * dtype.size();
        if bytes.len() != expected {
            return Err(Error::shape(
                operation,
                format!(
                    "shape {shape} of {dtype} takes {expected} bytes, found {}",
                    bytes.len()
                ),
            ));
        }
        if *dtype == DType::Bool
            && let Some(index) = bytes.iter().position(|&byte| byte > 1)
        {
            return Err(Error::value(
                operation,
                format!("Bool element {index} is {}, expected 0 or 1", bytes[index]),
            ));
        }
        Ok(())
    }
}

/// What a file of named tensors holds, in the file's order.
///
/// ```
/// use drivetrain_tensor::formats::{HostTensor, safetensors};
/// let ones = HostTensor::from_slice(&[1.0f32, 1.0], [2])?;
/// let bytes = safetensors::write_bytes([("bias".to_owned(), ones.clone())], &Default::default())?;
/// let file = safetensors::read_bytes(&bytes)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["bias"]);
/// assert_eq!(file.get("bias")?, &ones);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorFile {
    /// Names and tensors; no name comes twice.
    pub tensors: Vec<(String, HostTensor)>,
    /// The texts that a safetensors file carries beside its tensors; empty for other formats.
    pub metadata: BTreeMap<String, String>,
    /// Entries that are no tensors (an epoch number in a `.pt`, another file in an `.npz`): name and what it
    /// is. Nothing is left out without standing here.
    pub skipped: Vec<(String, String)>,
}

impl TensorFile {
    /// The names, in the file's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|(name, _)| name.as_str())
    }

    /// The tensor of that name. Looks through the list; make a map of it for very many.
    ///
    /// # Errors
    /// When there is none; lists the first names there are.
    #[track_caller]
    pub fn get(&self, name: &str) -> Result<&HostTensor> {
        let found = self.tensors.iter().find(|(known, _)| known == name);
        found.map(|(_, tensor)| tensor).ok_or_else(|| {
            let names: Vec<&str> = self.names().take(5).collect();
            let dots = if self.tensors.len() > 5 { ", …" } else { "" };
            Error::argument(
                "TensorFile::get",
                format!(
                    "no tensor `{name}` among {}: {}{dots}",
                    self.tensors.len(),
                    names.join(", ")
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_must_fit_the_shape() {
        assert!(HostTensor::new(DType::F32, [2], vec![0; 8]).is_ok());
        let error = HostTensor::new(DType::F32, [2], vec![0; 9]).unwrap_err();
        assert!(error.to_string().contains("8 bytes, found 9"), "{error}");
        assert!(HostTensor::new(DType::Bool, [2], vec![0, 2]).is_err());
        assert!(HostTensor::new(DType::U8, [1; 9], vec![0]).is_err());
        assert!(HostTensor::new(DType::F64, [0, 3], vec![]).is_ok());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known() {
        let one = HostTensor::from_slice(&[1u8], ()).unwrap();
        let file = TensorFile {
            tensors: vec![("weight".into(), one)],
            ..TensorFile::default()
        };
        let error = file.get("wieght").unwrap_err().to_string();
        assert!(error.contains("`wieght`") && error.contains("weight"));
    }
}
