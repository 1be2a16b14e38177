//! Between tensors and host memory: reading values out.

use crate::Tensor;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{DType, Element, Error, ErrorKind, Result, Scalar};

/// Elements `0..count` made on the host: a number that no memory holds is an error, not an abort.
#[track_caller]
pub(crate) fn list<T>(
    operation: &'static str,
    count: usize,
    make: impl FnMut(usize) -> T,
) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| {
        Error::new(
            ErrorKind::OutOfMemory,
            operation,
            format!("{count} elements do not fit the host's memory"),
        )
    })?;
    list.extend((0..count).map(make));
    Ok(list)
}

impl Tensor {
    /// The elements' bytes, row-major, in native order.
    ///
    /// # Errors
    /// When the device fails, now or in an op queued before.
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let source = self.detach().contiguous()?;
        let mut bytes = vec![0; self.meta().bytes()];
        let offset = source.0.layout.offset() * self.dtype().size();
        source.0.memory.download(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// The elements, row-major. `T` must be the tensor's dtype.
    ///
    /// # Errors
    /// Another dtype, or a device that fails.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::dtype(
                "to_vec",
                format!("{} asked of a tensor of {}", T::DTYPE, self.dtype()),
            )
            .help(format!("to_dtype(DType::{})? first", T::DTYPE)));
        }
        Ok(T::from_bytes(&self.to_bytes()?))
    }

    /// The rows of a matrix.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`]; or a rank other than 2.
    #[track_caller]
    pub fn to_vec2<T: Element>(&self) -> Result<Vec<Vec<T>>> {
        let &[rows, columns] = self.dims() else {
            return Err(Error::shape(
                "to_vec2",
                format!("shape {} is not a matrix", self.shape()),
            ));
        };
        if columns == 0 {
            return Ok(vec![Vec::new(); rows]);
        }
        Ok(self
            .to_vec::<T>()?
            .chunks(columns)
            .map(<[T]>::to_vec)
            .collect())
    }

    /// The elements of any dtype as F64, row-major.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        let bytes = self.to_bytes()?;
        fn wide<T: Element>(bytes: &[u8]) -> Vec<f64> {
            T::from_bytes(bytes)
                .into_iter()
                .map(|v| Into::<Scalar>::into(v).as_f64())
                .collect()
        }
        Ok(match self.dtype() {
            DType::F32 => wide::<f32>(&bytes),
            DType::F64 => wide::<f64>(&bytes),
            DType::F16 => wide::<f16>(&bytes),
            DType::BF16 => wide::<bf16>(&bytes),
            DType::I64 => wide::<i64>(&bytes),
            DType::I32 => wide::<i32>(&bytes),
            DType::U8 => wide::<u8>(&bytes),
            DType::Bool => wide::<bool>(&bytes),
        })
    }

    /// The value of a tensor of one element, whatever its dtype.
    ///
    /// # Errors
    /// More or fewer elements than one, or a device that fails.
    #[track_caller]
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.elements() != 1 {
            return Err(Error::shape(
                "item",
                format!(
                    "shape {} has {} elements, not one",
                    self.shape(),
                    self.elements()
                ),
            )
            .help("reduce it, or use to_vec"));
        }
        let bytes = self.to_bytes()?;
        fn scalar<T: Element>(bytes: &[u8]) -> Scalar {
            T::from_bytes(bytes)
                .first()
                .map_or(Scalar::I64(0), |&v| v.into())
        }
        let value = match self.dtype() {
            DType::F32 => scalar::<f32>(&bytes),
            DType::F64 => scalar::<f64>(&bytes),
            DType::F16 => scalar::<f16>(&bytes),
            DType::BF16 => scalar::<bf16>(&bytes),
            DType::I64 => scalar::<i64>(&bytes),
            DType::I32 => scalar::<i32>(&bytes),
            DType::U8 => scalar::<u8>(&bytes),
            DType::Bool => scalar::<bool>(&bytes),
        };
        Ok(T::from_scalar(value))
    }
}
