//! Weights and arrays in files: safetensors, NumPy's npy and npz, and PyTorch's `.pt` (read only).
//!
//! Files hold [`HostTensor`]s: plain arrays in host memory, which [`HostTensor::to_tensor`] puts on a device
//! and [`HostTensor::from_tensor`] takes off one.
//!
//! | module | reads | writes |
//! | --- | --- | --- |
//! | [`safetensors`] | yes, or maps | yes |
//! | [`npy`], [`npz`] | yes | yes |
//! | [`pt`] | yes, executing nothing | no |
//!
//! What holds for all of them:
//! - **No file is trusted.** A length is checked against the file before memory is taken for it; an error
//!   names the file, the tensor or offset, what was expected and what was found. What a file may expand to
//!   (compressed members, broadcast views) is bounded by its own size, see [`npz::read`] and [`pt::read`].
//! - **Values arrive exactly or not at all.** Types that Drivetrain lacks are widened where that is exact:
//!   I8, I16 and U16 become I32; U32 and U64 become I64, a U64 of 2^63 or more being an error. A byte of a
//!   Bool other than 0 is true. Any other type (complex, 8-bit floats, strings, …) is an error that names
//!   the tensor and the type. Tensors have at most [`MAX_USER_DIMS`](drivetrain_core::MAX_USER_DIMS)
//!   dimensions.
//! - **Writing is deterministic and atomic.** The same tensors give the same bytes; a file is written beside
//!   its destination and renamed over it when complete, so a failure leaves the old file as it was.

mod bytes;
mod disk;
mod host;
pub mod npy;
pub mod npz;
pub mod pt;
pub mod safetensors;
mod zip;

pub use host::{HostTensor, TensorFile};
