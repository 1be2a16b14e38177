//! Weights that PyTorch saved (`.pt`, `.pth`, `.bin`): read only, by a parser that executes nothing.
//!
//! A `.pt` file is a zip archive of a pickle and one member for each storage. Python's unpickler calls what
//! the pickle names; this one knows a short list of names (dicts, tensors, storages, dtypes, sizes) and
//! calls nothing. A file that asks for more, such as a whole model saved with `torch.save(model)`, is an
//! error that says how to save its weights.
//!
//! Nested dicts and lists become dotted names: `{"model": {"0.weight": …}}` gives `model.0.weight`, the
//! second item of a list `losses` gives `losses.1`, a lone tensor has the empty name. Numbers, texts and
//! other entries that are no tensors stand in [`skipped`](TensorFile::skipped). Strides and storage offsets
//! are honoured; tensors that share a storage (tied weights) come back as equal copies.
//!
//! Limits of ours, so that a small file cannot ask for much: a pickle of 64 MiB and 4 million values,
//! nesting of 64, and tensors and storages of together 64 MiB and 16 times the file's length (a broadcast
//! view may be far larger than what is stored); [`read_limited`] takes another bound for the last.

mod flatten;
mod opcode;
mod pickle;
#[cfg(test)]
mod tests;
mod value;
mod view;

use super::disk::{self, Place};
use super::zip::{Archive, Member, Source};
use super::{HostTensor, TensorFile};
use drivetrain_core::Result;
use std::collections::HashMap;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use view::{Entry, View};

/// The longest pickle that is read.
const PICKLE_LIMIT: u64 = 64 << 20;

/// The tensors of a file, with dotted names.
///
/// ```no_run
/// use drivetrain_tensor::formats::pt;
/// let file = pt::read("checkpoint.pt")?;
/// for (name, tensor) in &file.tensors {
///     println!("{name}: {} {}", tensor.dtype, tensor.shape);
/// }
/// for (name, what) in &file.skipped {
///     println!("{name}: {what}, no tensor");
/// }
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
///
/// # Errors
/// A file that cannot be read, is in PyTorch's format from before version 1.6 or is no `.pt` file; a name in
/// its pickle that weights do not need; a tensor that is sparse, quantized, of a dtype that we lack (see
/// [`formats`](super)) or reaches past its storage; cycles; anything over the limits above. The message
/// names file and entry.
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> Result<TensorFile> {
    read_path("pt::read", path.as_ref(), None)
}

/// As [`read`], but tensors and storages may take `max_bytes`.
///
/// # Errors
/// As [`read`].
#[track_caller]
pub fn read_limited(path: impl AsRef<Path>, max_bytes: u64) -> Result<TensorFile> {
    read_path("pt::read_limited", path.as_ref(), Some(max_bytes))
}

/// The tensors of a file that is already in memory.
///
/// # Errors
/// As [`read`].
#[track_caller]
pub fn read_bytes(bytes: &[u8]) -> Result<TensorFile> {
    let place = Place::memory("pt::read_bytes");
    read_source(&place, Cursor::new(bytes), bytes.len() as u64, None)
}

#[track_caller]
fn read_path(operation: &'static str, path: &Path, limit: Option<u64>) -> Result<TensorFile> {
    let place = Place::new(operation, path);
    let (file, length) = disk::open(&place, path)?;
    read_source(&place, std::io::BufReader::new(file), length, limit)
}

#[track_caller]
fn read_source(
    place: &Place,
    mut source: impl Source,
    length: u64,
    limit: Option<u64>,
) -> Result<TensorFile> {
    check_kind(place, &mut source, length)?;
    let mut archive = Archive::open(place, source, length)?;
    let members = std::mem::take(&mut archive.members);
    let members: HashMap<&str, &Member> = members
        .iter()
        .map(|member| (member.name.as_str(), member))
        .collect();
    let root = root(place, &members)?;
    let member = |name: &str| members.get(format!("{root}/{name}").as_str()).copied();
    let big_endian = match member("byteorder") {
        Some(order) => is_big_endian(place, &mut archive, order)?,
        None => false,
    };
    let Some(pickle) = member("data.pkl").filter(|pickle| pickle.size <= PICKLE_LIMIT) else {
        return Err(place.format(format!(
            "its pickle is over our limit of {PICKLE_LIMIT} bytes"
        )));
    };
    let pickle = archive.read(pickle)?;
    let (values, top) = pickle::run(place, &pickle)?;
    let entries = flatten::flatten(place, &values, top)?;

    let mut views = Vec::with_capacity(entries.tensors.len());
    for (name, rebuild, arguments) in entries.tensors {
        let inside = Entry {
            place,
            values: &values,
            name: &name,
        };
        let view = inside.view(rebuild, arguments, |key| member(&format!("data/{key}")))?;
        views.push((name, view));
    }
    check_names(place, &views)?;
    let limit = limit.unwrap_or((64 << 20) + length.saturating_mul(16));
    check_total(place, &views, limit)?;
    Ok(TensorFile {
        tensors: load(place, &mut archive, views, big_endian)?,
        metadata: Default::default(),
        skipped: entries.skipped,
    })
}

#[track_caller]
fn is_big_endian(place: &Place, archive: &mut Archive, order: &Member) -> Result<bool> {
    if order.size > 16 {
        return Err(place.format(format!("{order} of {} bytes", order.size)));
    }
    match archive.read(order)?.as_slice() {
        b"little" => Ok(false),
        b"big" => Ok(true),
        other => Err(place.format(format!(
            "byte order `{}`, expected little or big",
            other.escape_ascii()
        ))),
    }
}

// Tells what else a file may be, before the zip reader complains about something it is not.
#[track_caller]
fn check_kind(place: &Place, source: &mut (impl Read + Seek), length: u64) -> Result<()> {
    // The magic number, pickled, that PyTorch's format before version 1.6 starts with.
    const LEGACY: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    let failed = |cause| place.io("the first bytes", cause);
    let start = disk::read_exactly(source, length.min(262), true).map_err(failed)?;
    source.seek(SeekFrom::Start(0)).map_err(failed)?;
    let old = start.starts_with(LEGACY) || start.get(257..262) == Some(b"ustar");
    if old {
        return Err(place
            .format("PyTorch's format from before version 1.6, expected its zip format")
            .help(
                "convert it in Python: torch.save(torch.load(path, weights_only=True), new_path)",
            ));
    }
    if !start.starts_with(b"PK") {
        let shown = &start[..start.len().min(8)];
        return Err(place.format(format!(
            "starts with `{}`, expected a zip archive as torch.save writes it",
            shown.escape_ascii()
        )));
    }
    Ok(())
}

// The folder in the archive that everything is in; its name is free.
#[track_caller]
fn root<'a>(place: &Place, members: &HashMap<&'a str, &'a Member>) -> Result<&'a str> {
    let roots = members
        .keys()
        .filter_map(|name| name.strip_suffix("/data.pkl"));
    let mut roots: Vec<&str> = roots.filter(|root| !root.contains('/')).collect();
    let &mut [root] = roots.as_mut_slice() else {
        return Err(place.format(format!(
            "a zip archive with {} members named `*/data.pkl`, expected one: not written by torch.save",
            roots.len()
        )));
    };
    if members.contains_key(format!("{root}/constants.pkl").as_str()) {
        return Err(place
            .format("a TorchScript archive, expected weights")
            .help("in Python, torch.save(torch.jit.load(path).state_dict(), new_path)"));
    }
    Ok(root)
}

#[track_caller]
fn check_names(place: &Place, views: &[(String, View)]) -> Result<()> {
    let mut names: Vec<&str> = views.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(place.format(format!("two entries are named `{}`", pair[0]))),
        None => Ok(()),
    }
}

#[track_caller]
fn check_total(place: &Place, views: &[(String, View)], limit: u64) -> Result<()> {
    let mut storages: Vec<(&str, u64)> = Vec::with_capacity(views.len());
    let mut total = 0u64;
    for (_, view) in views {
        storages.push((&view.storage.name, view.storage.size));
        let bytes = view.shape.elements() * view.stored.dtype().size();
        total = total.saturating_add(bytes as u64);
    }
    storages.sort_unstable();
    storages.dedup();
    let total = storages
        .iter()
        .fold(total, |total, (_, size)| total.saturating_add(*size));
    if total > limit {
        return Err(place
            .format(format!(
                "tensors and storages take {total} bytes, the limit is {limit}"
            ))
            .help("pt::read_limited takes another limit"));
    }
    Ok(())
}

// Each storage is read once and forgotten after its last view.
#[track_caller]
fn load(
    place: &Place,
    archive: &mut Archive,
    views: Vec<(String, View)>,
    big_endian: bool,
) -> Result<Vec<(String, HostTensor)>> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for (_, view) in &views {
        *uses.entry(&view.storage.name).or_default() += 1;
    }
    let mut storages: HashMap<&str, Vec<u8>> = HashMap::new();
    let mut tensors = Vec::with_capacity(views.len());
    for (name, view) in views {
        let key = view.storage.name.as_str();
        let bytes = match storages.remove(key) {
            Some(bytes) => bytes,
            None => archive
                .read(view.storage)
                .map_err(|error| error.context(format!("entry `{name}`")))?,
        };
        let left = uses.entry(key).or_default();
        *left -= 1;
        let elements = if *left == 0 {
            view.take(bytes)
        } else {
            let elements = view.copy(&bytes);
            storages.insert(key, bytes);
            elements
        };
        let elements = view.stored.decode(elements, big_endian);
        let elements =
            elements.map_err(|problem| place.format(format!("entry `{name}`: {problem}")))?;
        let tensor = HostTensor::new(view.stored.dtype(), view.shape, elements)?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}
