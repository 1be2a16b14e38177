//! What the benchmarks share: the device they run on, named by `DRIVETRAIN_DEVICE` or else the best there is.

use drivetrain::tensor::{DType, Device, Result, Tensor};

/// The device measured.
///
/// # Errors
/// When none works.
pub fn device() -> Result<Device> {
    Device::best()
}

/// Standard normal F32 values.
///
/// # Errors
/// A device without room.
pub fn randn(shape: &[usize], device: &Device) -> Result<Tensor> {
    Tensor::randn(shape, DType::F32, device)
}
