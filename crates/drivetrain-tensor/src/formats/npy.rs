//! NumPy's `.npy` files: one array each. Versions 1.0, 2.0 and 3.0, both byte orders, both memory orders.
//!
//! Format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>. Object, string, date,
//! complex and structured arrays are refused by the name of their dtype; nothing is ever unpickled.

mod header;

use super::HostTensor;
use super::bytes::{gather, to_little_endian};
use super::disk::{self, Place};
use drivetrain_core::{DType, Result, Shape};
use header::Header;
use std::borrow::Cow;
use std::io::{Read, Write};
use std::path::Path;

/// The longest header that is read, 1 MiB: a limit of ours, not of the format. NumPy's own are 118 bytes.
pub const HEADER_LIMIT: u64 = 1 << 20;

/// The array of a file.
///
/// ```no_run
/// use drivetrain_tensor::{Device, formats::npy};
/// let images = npy::read("images.npy")?.to_tensor(&Device::best()?)?;
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
///
/// # Errors
/// A file that cannot be read, is no npy file or of an unknown version; a dtype that we lack (see
/// [`formats`](super)); fewer or more bytes than the shape asks for. The message names the file.
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> Result<HostTensor> {
    let path = path.as_ref();
    let place = Place::new("npy::read", path);
    let (file, length) = disk::open(&place, path)?;
    read_array(
        &place,
        &mut std::io::BufReader::new(file),
        Some(length),
        true,
    )
}

/// The array of a file that is already in memory.
///
/// # Errors
/// As [`read`].
#[track_caller]
pub fn read_bytes(bytes: &[u8]) -> Result<HostTensor> {
    let place = Place::memory("npy::read_bytes");
    read_array(&place, &mut &bytes[..], Some(bytes.len() as u64), true)
}

/// The array that starts where the reader stands. The reader is left at the byte behind the array, so that
/// several arrays saved one after the other are read by as many calls. Memory is taken as bytes arrive.
///
/// # Errors
/// As [`read`], except that bytes may follow.
#[track_caller]
pub fn read_from(mut reader: impl Read) -> Result<HostTensor> {
    let place = Place {
        operation: "npy::read_from",
        file: "reader".to_owned(),
    };
    read_array(&place, &mut reader, None, false)
}

// With `length` given, the array must take exactly that many bytes; `checked` when they are known to be there.
#[track_caller]
pub(super) fn read_array(
    place: &Place,
    reader: &mut dyn Read,
    length: Option<u64>,
    checked: bool,
) -> Result<HostTensor> {
    let (header, start) = Header::read(place, reader, length)?;
    let Header {
        stored,
        big_endian,
        fortran_order,
        shape,
    } = header;
    let expected = (shape.elements() * stored.size()) as u64;
    if let Some(found) = length.map(|length| length - start)
        && found != expected
    {
        let error = place.format(format!(
            "shape {shape} of {} takes {expected} bytes from byte {start} on, found {found}",
            header::descr(stored)
        ));
        return Err(if found > expected {
            error.help("read_from reads several arrays saved one after the other")
        } else {
            error
        });
    }
    let bytes = disk::read_exactly(reader, expected, checked)
        .map_err(|cause| place.io("the elements", cause))?;
    let bytes = if fortran_order && shape.rank() > 1 {
        row_major(&bytes, stored.size(), &shape)
    } else {
        bytes
    };
    let bytes = stored
        .decode(bytes, big_endian)
        .map_err(|problem| place.format(problem))?;
    HostTensor::new(stored.dtype(), shape, bytes)
}

// Column-major elements, where the first dimension runs fastest, in row-major order.
fn row_major(bytes: &[u8], size: usize, shape: &Shape) -> Vec<u8> {
    let mut strides = vec![1; shape.rank()];
    for dim in 1..shape.rank() {
        strides[dim] = strides[dim - 1] * shape[dim - 1].max(1);
    }
    gather(bytes, size, 0, shape.dims(), &strides)
}

/// Writes an array to a file, atomically, byte for byte as `numpy.save` does.
///
/// # Errors
/// A BF16 array, for which NumPy has no dtype; public fields that do not fit each other; a disk that fails.
/// Whatever was at `path` is then still there.
#[track_caller]
pub fn write(path: impl AsRef<Path>, tensor: &HostTensor) -> Result<()> {
    let path = path.as_ref();
    let place = Place::new("npy::write", path);
    let header = compose(&place, tensor)?;
    disk::write_atomically(&place, path, |out| put(&place, out, &header, tensor))
}

/// Writes an array to a writer, in many or few calls as `tensor` is large or small.
///
/// # Errors
/// As [`write()`].
#[track_caller]
pub fn write_to(mut writer: impl Write, tensor: &HostTensor) -> Result<()> {
    let place = Place {
        operation: "npy::write_to",
        file: "writer".to_owned(),
    };
    let header = compose(&place, tensor)?;
    put(&place, &mut writer, &header, tensor)
}

#[track_caller]
fn put(place: &Place, out: &mut dyn Write, header: &[u8], tensor: &HostTensor) -> Result<()> {
    out.write_all(header)
        .and_then(|()| out.write_all(&payload(tensor)))
        .map_err(|cause| place.io("writing", cause))
}

/// The elements as the header of [`compose`] describes them.
pub(super) fn payload(tensor: &HostTensor) -> Cow<'_, [u8]> {
    to_little_endian(&tensor.bytes, tensor.dtype.size())
}

/// What stands before the elements.
#[track_caller]
pub(super) fn compose(place: &Place, tensor: &HostTensor) -> Result<Vec<u8>> {
    tensor
        .check(place.operation)
        .map_err(|error| error.context(place.file.clone()))?;
    let descr = match tensor.dtype {
        DType::F64 => "<f8",
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::I64 => "<i8",
        DType::I32 => "<i4",
        DType::U8 => "|u1",
        DType::Bool => "|b1",
        DType::BF16 => {
            return Err(place
                .dtype("NumPy has no dtype for BF16")
                .help("to_dtype(DType::F32)? first, which is exact"));
        }
    };
    Ok(header::compose(descr, &tensor.shape))
}
