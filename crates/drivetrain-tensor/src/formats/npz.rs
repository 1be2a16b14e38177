//! NumPy's `.npz` files: a zip archive of npy files, stored (`numpy.savez`) or compressed
//! (`numpy.savez_compressed`).
//!
//! Arrays come back in the archive's order. A compressed archive may unpack to a thousand times its size, so
//! [`read`] refuses one whose members together unpack to more than 256 MiB and 64 times the file's length;
//! [`read_limited`] takes another bound.

use super::disk::{self, Place};
use super::npy;
use super::zip::{Archive, Source, Writer};
use super::{HostTensor, TensorFile};
use drivetrain_core::Result;
use std::collections::HashSet;
use std::io::{Cursor, Write};
use std::path::Path;

/// The arrays of a file by name, without the `.npy` their members end in.
///
/// ```no_run
/// use drivetrain_tensor::formats::npz;
/// let file = npz::read("data.npz")?;
/// println!("{}", file.get("images")?.shape);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
///
/// # Errors
/// A file that cannot be read or is no zip archive; members that overlap, share a name, are encrypted, do
/// not match their checksum, or unpack to more than the bound above; any array that [`npy::read`] refuses.
/// The message names file and member. Members that are no npy files stand in
/// [`skipped`](TensorFile::skipped).
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> Result<TensorFile> {
    read_path("npz::read", path.as_ref(), None)
}

/// As [`read`], but the members together may unpack to `max_bytes`.
///
/// # Errors
/// As [`read`].
#[track_caller]
pub fn read_limited(path: impl AsRef<Path>, max_bytes: u64) -> Result<TensorFile> {
    read_path("npz::read_limited", path.as_ref(), Some(max_bytes))
}

/// The arrays of a file that is already in memory.
///
/// # Errors
/// As [`read`].
#[track_caller]
pub fn read_bytes(bytes: &[u8]) -> Result<TensorFile> {
    let place = Place::memory("npz::read_bytes");
    read_archive(&place, Cursor::new(bytes), bytes.len() as u64, None)
}

#[track_caller]
fn read_path(operation: &'static str, path: &Path, limit: Option<u64>) -> Result<TensorFile> {
    let place = Place::new(operation, path);
    let (file, length) = disk::open(&place, path)?;
    read_archive(&place, std::io::BufReader::new(file), length, limit)
}

#[track_caller]
fn read_archive(
    place: &Place,
    source: impl Source,
    length: u64,
    limit: Option<u64>,
) -> Result<TensorFile> {
    let mut archive = Archive::open(place, source, length)?;
    let limit = limit.unwrap_or((256 << 20) + length.saturating_mul(64));
    let members = std::mem::take(&mut archive.members);
    let sizes = members.iter().map(|member| member.size);
    let total = sizes.fold(0u64, u64::saturating_add);
    if total > limit {
        return Err(place
            .format(format!(
                "its members unpack to {total} bytes, the limit for a file of {length} bytes is {limit}"
            ))
            .help("npz::read_limited takes another limit"));
    }
    let mut file = TensorFile::default();
    for member in members {
        let Some(name) = member.name.strip_suffix(".npy") else {
            let what = format!("no npy file, {} bytes", member.size);
            file.skipped.push((member.name, what));
            continue;
        };
        let inside = Place {
            operation: place.operation,
            file: format!("{}: {member}", place.file),
        };
        let mut reader = archive.reader(&member)?;
        let tensor = npy::read_array(&inside, &mut reader, Some(member.size), member.is_stored())?;
        reader
            .finish()
            .map_err(|cause| inside.io("the end", cause))?;
        file.tensors.push((name.to_owned(), tensor));
    }
    Ok(file)
}

/// Writes arrays to a file, uncompressed as `numpy.savez` does, atomically and in the order given.
///
/// # Errors
/// A name given twice or of over 65,531 bytes; an array that [`npy::write`] refuses; a disk that fails.
/// Whatever was at `path` is then still there.
#[track_caller]
pub fn write(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (String, HostTensor)>,
) -> Result<()> {
    let place = Place::new("npz::write", path.as_ref());
    write_archive(&place, path.as_ref(), tensors.into_iter().collect(), false)
}

/// As [`write()`], but compressed as `numpy.savez_compressed` does.
///
/// # Errors
/// As [`write()`].
#[track_caller]
pub fn write_compressed(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (String, HostTensor)>,
) -> Result<()> {
    let place = Place::new("npz::write_compressed", path.as_ref());
    write_archive(&place, path.as_ref(), tensors.into_iter().collect(), true)
}

#[track_caller]
fn write_archive(
    place: &Place,
    path: &Path,
    tensors: Vec<(String, HostTensor)>,
    compress: bool,
) -> Result<()> {
    let mut names = HashSet::new();
    let mut headers = Vec::with_capacity(tensors.len());
    for (name, tensor) in &tensors {
        if !names.insert(name) {
            return Err(place.argument(format!("two arrays are named `{name}`")));
        }
        if name.len() > 0xffff - ".npy".len() {
            return Err(place.argument(format!("a name of {} bytes, at most 65531", name.len())));
        }
        let header = npy::compose(place, tensor);
        headers.push(header.map_err(|error| error.context(format!("array `{name}`")))?);
    }
    disk::write_atomically(place, path, |out: &mut dyn Write| {
        let mut writer = Writer::new(out);
        for ((name, tensor), header) in tensors.iter().zip(&headers) {
            let data = npy::payload(tensor);
            writer
                .add(&format!("{name}.npy"), &[header, &data], compress)
                .map_err(|cause| place.io(format!("writing `{name}`"), cause))?;
        }
        writer.finish().map_err(|cause| place.io("writing", cause))
    })
}
