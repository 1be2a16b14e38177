//! safetensors files: 8 bytes of header length, a JSON header, the tensors' bytes.
//!
//! Format: <https://github.com/huggingface/safetensors#format>. [`read`] is the plain way; [`map`] is for
//! files too large to copy and is unsafe for the reason it gives.
//!
//! Tensors come back in the order in which the header names them, which is the order they were given to
//! [`write()`] in. The header may be up to [`HEADER_LIMIT`] bytes, more than twice what the reference
//! implementation allows (100 MB), so that a file of over a million tensors loads.

mod header;

use super::bytes::{Stored, to_little_endian};
use super::disk::{self, Place};
use super::{HostTensor, TensorFile};
use drivetrain_core::{DType, Error, Result, Shape};
use header::{Entry, Header};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::path::Path;

/// The longest header that is read or written, 256 MiB: a limit of ours, not of the format.
pub const HEADER_LIMIT: u64 = 256 << 20;

/// The tensors of a file, copied into memory.
///
/// ```no_run
/// use drivetrain_tensor::formats::safetensors;
/// for (name, tensor) in safetensors::read("model.safetensors")?.tensors {
///     println!("{name}: {} {}", tensor.dtype, tensor.shape);
/// }
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
///
/// # Errors
/// A file that cannot be read; a header that is longer than the file or than [`HEADER_LIMIT`], or is not
/// what the format asks for; tensors that overlap, leave holes, have more or fewer bytes than their shape
/// asks for, or a dtype that we lack (see [`formats`](super)). The message names file and tensor.
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> Result<TensorFile> {
    let path = path.as_ref();
    let place = Place::new("safetensors::read", path);
    let (file, length) = disk::open(&place, path)?;
    read_from(&place, &mut std::io::BufReader::new(file), length)
}

/// The tensors of a file that is already in memory.
///
/// # Errors
/// As [`read`].
#[track_caller]
pub fn read_bytes(bytes: &[u8]) -> Result<TensorFile> {
    let place = Place::memory("safetensors::read_bytes");
    read_from(&place, &mut &bytes[..], bytes.len() as u64)
}

#[track_caller]
fn read_from(place: &Place, reader: &mut dyn Read, length: u64) -> Result<TensorFile> {
    let header = Header::read(place, reader, length)?;
    let mut slots: Vec<Option<HostTensor>> = Vec::new();
    slots.resize_with(header.entries.len(), || None);
    for &index in &header.by_offset {
        let entry = &header.entries[index];
        let bytes = disk::read_exactly(reader, entry.length() as u64, true)
            .map_err(|cause| place.io(entry, cause))?;
        slots[index] = Some(entry.decode(place, bytes)?);
    }
    let names = header.entries.into_iter().map(|entry| entry.name);
    Ok(TensorFile {
        tensors: names.zip(slots.into_iter().flatten()).collect(),
        metadata: header.metadata,
        skipped: Vec::new(),
    })
}

/// A mapped file: only the header has been read, bytes come from the disk when they are touched.
pub struct Mapped {
    place: Place,
    map: memmap2::Mmap,
    entries: Vec<Entry>,
    metadata: BTreeMap<String, String>,
    index: HashMap<String, usize>,
}

/// Maps a file instead of reading it.
///
/// # Safety
/// Nobody may change or shorten the file while the value lives, this process and others alike: bytes that
/// change under a `&[u8]` are undefined behaviour, and touching a page that is no longer there kills the
/// process with a signal, which no `Result` can catch. [`read`] has neither danger. Replacing the file by a
/// rename, as [`write()`] does, is safe: the old content stays mapped.
///
/// # Errors
/// As [`read`], except that the bytes themselves are not looked at.
#[track_caller]
pub unsafe fn map(path: impl AsRef<Path>) -> Result<Mapped> {
    let path = path.as_ref();
    let place = Place::new("safetensors::map", path);
    let (file, _) = disk::open(&place, path)?;
    // SAFETY: the caller promises that the file does not change while it is mapped.
    let map = unsafe { memmap2::Mmap::map(&file) }
        .map_err(|cause| Error::io(place.operation, &place.file, cause))?;
    let header = Header::read(&place, &mut &map[..], map.len() as u64)?;
    let names = header.entries.iter().enumerate();
    let index = names.map(|(i, entry)| (entry.name.clone(), i)).collect();
    Ok(Mapped {
        place,
        map,
        entries: header.entries,
        metadata: header.metadata,
        index,
    })
}

impl Mapped {
    /// The names, in the header's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// The texts that the file carries beside its tensors.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The tensor of that name, copied out of the mapping.
    ///
    /// # Errors
    /// No tensor of that name, or a value that our dtypes cannot hold.
    #[track_caller]
    pub fn tensor(&self, name: &str) -> Result<HostTensor> {
        let entry = self.entry(name)?;
        entry.decode(&self.place, self.slice(entry).to_vec())
    }

    /// The shape of the tensor of that name and its dtype once it is read.
    ///
    /// # Errors
    /// No tensor of that name.
    #[track_caller]
    pub fn meta(&self, name: &str) -> Result<(DType, Shape)> {
        let entry = self.entry(name)?;
        Ok((entry.stored.dtype(), entry.shape))
    }

    /// The tensor's bytes as the file stores them: little-endian, of the file's type (an I16 is two bytes
    /// here, though [`Mapped::tensor`] gives an I32), not always aligned.
    ///
    /// # Errors
    /// No tensor of that name.
    #[track_caller]
    pub fn bytes(&self, name: &str) -> Result<&[u8]> {
        Ok(self.slice(self.entry(name)?))
    }

    #[track_caller]
    fn entry(&self, name: &str) -> Result<&Entry> {
        let found = self.index.get(name).map(|&index| &self.entries[index]);
        found.ok_or_else(|| {
            self.place.argument(format!(
                "no tensor `{name}` among its {}",
                self.entries.len()
            ))
        })
    }

    // The header's check has put every range inside the file.
    fn slice(&self, entry: &Entry) -> &[u8] {
        &self.map[entry.start..entry.end]
    }
}

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.names().collect();
        f.debug_struct("Mapped")
            .field("file", &self.place.file)
            .field("names", &names)
            .finish()
    }
}

/// Writes tensors to a file, atomically. The header names them in the order given; the bytes lie with the
/// widest elements first, so that every tensor is aligned for its type.
///
/// # Errors
/// A name given twice or `__metadata__`, a tensor whose public fields do not fit each other, a header over
/// [`HEADER_LIMIT`], or a disk that fails. Whatever was at `path` is then still there.
#[track_caller]
pub fn write(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (String, HostTensor)>,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref();
    let place = Place::new("safetensors::write", path);
    let tensors: Vec<_> = tensors.into_iter().collect();
    let (header, order) = compose(&place, &tensors, metadata)?;
    disk::write_atomically(&place, path, |out| {
        put(out, &tensors, &header, &order).map_err(|cause| place.io("writing", cause))
    })
}

/// What [`write()`] would put into the file.
///
/// # Errors
/// As [`write()`].
#[track_caller]
pub fn write_bytes(
    tensors: impl IntoIterator<Item = (String, HostTensor)>,
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let place = Place::memory("safetensors::write_bytes");
    let tensors: Vec<_> = tensors.into_iter().collect();
    let (header, order) = compose(&place, &tensors, metadata)?;
    let mut out = Vec::new();
    put(&mut out, &tensors, &header, &order).map_err(|cause| place.io("writing", cause))?;
    Ok(out)
}

fn put(
    out: &mut dyn Write,
    tensors: &[(String, HostTensor)],
    header: &str,
    order: &[usize],
) -> std::io::Result<()> {
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    for &index in order {
        let tensor = &tensors[index].1;
        out.write_all(&to_little_endian(&tensor.bytes, tensor.dtype.size()))?;
    }
    Ok(())
}

// The header, padded to 8 bytes, and the order in which the tensors' bytes follow it.
#[track_caller]
fn compose(
    place: &Place,
    tensors: &[(String, HostTensor)],
    metadata: &BTreeMap<String, String>,
) -> Result<(String, Vec<usize>)> {
    let mut names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(place.argument(format!("two tensors are named `{}`", pair[0])));
    }
    if names.binary_search(&header::METADATA).is_ok() {
        return Err(place.argument("the name `__metadata__` is the format's own"));
    }
    for (name, tensor) in tensors {
        let checked = tensor.check(place.operation);
        checked.map_err(|error| error.context(format!("{}: tensor `{name}`", place.file)))?;
    }
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(tensors[index].1.dtype.size()));
    let mut starts = vec![0; tensors.len()];
    let mut end = 0usize;
    for &index in &order {
        starts[index] = end;
        end += tensors[index].1.bytes.len();
    }
    let entries = tensors.iter().zip(&starts).map(|((name, tensor), &start)| {
        (
            name.as_str(),
            file_type(tensor.dtype),
            tensor.shape,
            start,
            start + tensor.bytes.len(),
        )
    });
    let header = header::compose(entries, metadata);
    if header.len() as u64 > HEADER_LIMIT {
        return Err(place.argument(format!(
            "the header takes {} bytes, our limit is {HEADER_LIMIT}",
            header.len()
        )));
    }
    Ok((header, order))
}

fn file_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "F32",
        DType::F64 => "F64",
        DType::F16 => "F16",
        DType::BF16 => "BF16",
        DType::I64 => "I64",
        DType::I32 => "I32",
        DType::U8 => "U8",
        DType::Bool => "BOOL",
    }
}

fn stored_type(name: &str) -> Option<Stored> {
    Some(match name {
        "F64" => Stored::F64,
        "F32" => Stored::F32,
        "F16" => Stored::F16,
        "BF16" => Stored::BF16,
        "I64" => Stored::I64,
        "I32" => Stored::I32,
        "I16" => Stored::I16,
        "I8" => Stored::I8,
        "U64" => Stored::U64,
        "U32" => Stored::U32,
        "U16" => Stored::U16,
        "U8" => Stored::U8,
        "BOOL" => Stored::Bool,
        _ => return None,
    })
}
