//! The JSON header of a safetensors file: parsed without trust, checked against the file, composed.

use super::{HEADER_LIMIT, stored_type};
use crate::formats::HostTensor;
use crate::formats::bytes::Stored;
use crate::formats::disk::{self, Place};
use drivetrain_core::{MAX_USER_DIMS, Result, Shape};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::Read;

/// The key that is no tensor.
pub const METADATA: &str = "__metadata__";

/// A tensor of a checked header; its bytes are at `start..end` of the file.
pub struct Entry {
    pub name: String,
    pub stored: Stored,
    pub shape: Shape,
    pub start: usize,
    pub end: usize,
}

impl Entry {
    pub fn length(&self) -> usize {
        self.end - self.start
    }

    #[track_caller]
    pub fn decode(&self, place: &Place, bytes: Vec<u8>) -> Result<HostTensor> {
        let bytes = self.stored.decode(bytes, false);
        let bytes = bytes.map_err(|problem| place.format(format!("{self}: {problem}")))?;
        HostTensor::new(self.stored.dtype(), self.shape, bytes)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor `{}`", self.name)
    }
}

/// A header that fits its file.
pub struct Header {
    pub entries: Vec<Entry>,
    pub metadata: BTreeMap<String, String>,
    /// Indices of `entries` in the order of their bytes.
    pub by_offset: Vec<usize>,
}

impl Header {
    /// Reads the header of a file of `length` bytes and leaves the reader at the first tensor's byte.
    #[track_caller]
    pub fn read(place: &Place, reader: &mut dyn Read, length: u64) -> Result<Header> {
        let Some(room) = length.checked_sub(8) else {
            return Err(place.format(format!(
                "{length} bytes, expected at least the 8 of the header's length"
            )));
        };
        let mut size = [0; 8];
        let failed = |cause| place.io("the header", cause);
        reader.read_exact(&mut size).map_err(failed)?;
        let size = u64::from_le_bytes(size);
        if size > room {
            return Err(place.format(format!(
                "the header's length is given as {size} bytes, but only {room} follow"
            )));
        }
        if size > HEADER_LIMIT {
            return Err(place.format(format!(
                "the header takes {size} bytes; our limit (the format has none) is {HEADER_LIMIT}"
            )));
        }
        let text = disk::read_exactly(reader, size, true).map_err(failed)?;
        if text.first() != Some(&b'{') {
            return Err(place.format("the header at byte 8 does not start with `{`"));
        }
        let raw: Raw = serde_json::from_slice(&text)
            .map_err(|error| place.format(format!("header at byte 8: {error}")))?;
        drop(text);
        check(place, raw, 8 + size, length)
    }
}

// The header as written, every type right but no number checked.
struct Raw {
    tensors: Vec<(String, RawEntry)>,
    metadata: BTreeMap<String, String>,
}

struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    offsets: [u64; 2],
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        struct Header;
        impl<'de> Visitor<'de> for Header {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let mut tensors = Vec::new();
                let mut metadata = None;
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        let texts = map
                            .next_value()
                            .map_err(|error| A::Error::custom(format!("`{METADATA}`: {error}")))?;
                        if metadata.replace(texts).is_some() {
                            return Err(A::Error::custom(format!("two of `{METADATA}`")));
                        }
                        continue;
                    }
                    let entry = map
                        .next_value()
                        .map_err(|error| A::Error::custom(format!("tensor `{name}`: {error}")))?;
                    tensors.push((name, entry));
                }
                let metadata = metadata.unwrap_or_default();
                Ok(Raw { tensors, metadata })
            }
        }
        deserializer.deserialize_map(Header)
    }
}

impl<'de> Deserialize<'de> for RawEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawEntry, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = RawEntry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with dtype, shape and data_offsets")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEntry, A::Error> {
                let (mut dtype, mut shape, mut offsets) = (None, None, None);
                while let Some(key) = map.next_key::<String>()? {
                    let twice = match key.as_str() {
                        "dtype" => dtype.replace(map.next_value()?).is_some(),
                        "shape" => shape.replace(map.next_value()?).is_some(),
                        "data_offsets" => offsets.replace(map.next_value()?).is_some(),
                        // As the reference implementation does.
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            false
                        }
                    };
                    if twice {
                        return Err(A::Error::custom(format!("two of `{key}`")));
                    }
                }
                Ok(RawEntry {
                    dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
                    shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
                    offsets: offsets.ok_or_else(|| A::Error::missing_field("data_offsets"))?,
                })
            }
        }
        deserializer.deserialize_map(Entry)
    }
}

// Every tensor alone, then all of them together: names once each, bytes without overlap, hole or rest.
#[track_caller]
fn check(place: &Place, raw: Raw, data: u64, length: u64) -> Result<Header> {
    let mut entries = Vec::with_capacity(raw.tensors.len());
    for (name, entry) in raw.tensors {
        entries.push(check_entry(place, name, entry, data, length)?);
    }
    let mut by_name: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    by_name.sort_unstable();
    if let Some(pair) = by_name.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(place.format(format!("two tensors are named `{}`", pair[0])));
    }
    let mut by_offset: Vec<usize> = (0..entries.len()).collect();
    by_offset.sort_by_key(|&index| (entries[index].start, entries[index].end));
    let data = data as usize;
    let mut previous: Option<&Entry> = None;
    for entry in by_offset.iter().map(|&index| &entries[index]) {
        let expected = previous.map_or(data, |entry| entry.end);
        if entry.start != expected {
            let what = if entry.start < expected {
                "overlap"
            } else {
                "leave a hole"
            };
            let after = previous.map_or("the header".to_owned(), Entry::to_string);
            return Err(place.format(format!(
                "{entry} and {after} {what}: it starts at offset {}, expected {}",
                entry.start - data,
                expected - data
            )));
        }
        previous = Some(entry);
    }
    let end = previous.map_or(data, |entry| entry.end) as u64;
    if end != length {
        return Err(place.format(format!(
            "{} bytes follow the last tensor, which ends at byte {end} of {length}",
            length - end
        )));
    }
    Ok(Header {
        entries,
        metadata: raw.metadata,
        by_offset,
    })
}

#[track_caller]
fn check_entry(
    place: &Place,
    name: String,
    raw: RawEntry,
    data: u64,
    length: u64,
) -> Result<Entry> {
    let Some(stored) = stored_type(&raw.dtype) else {
        return Err(place.dtype(format!(
            "tensor `{name}` has dtype {}, expected F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 or BOOL",
            raw.dtype
        )));
    };
    let wrong = |what: String| place.format(format!("tensor `{name}`: {what}"));
    let [begin, end] = raw.offsets;
    let room = length - data;
    if begin > end || end > room {
        return Err(wrong(format!(
            "data_offsets [{begin}, {end}] are not an ascending range within the {room} bytes of data"
        )));
    }
    if raw.shape.len() > MAX_USER_DIMS {
        return Err(wrong(format!(
            "{} dimensions, at most {MAX_USER_DIMS}",
            raw.shape.len()
        )));
    }
    let dims: Option<Vec<usize>> = raw.shape.iter().map(|&dim| dim.try_into().ok()).collect();
    let shape = dims.and_then(|dims| Shape::new(&dims).ok());
    let shape = shape.ok_or_else(|| {
        wrong(format!(
            "shape {:?} has more elements than memory can address",
            raw.shape
        ))
    })?;
    let expected = (shape.elements() * stored.size()) as u64;
    if end - begin != expected {
        return Err(wrong(format!(
            "shape {shape} of {} takes {expected} bytes, data_offsets [{begin}, {end}] give {}",
            raw.dtype,
            end - begin
        )));
    }
    // Within the file's length, which a usize holds: on a 32-bit machine larger ones are refused here.
    let (start, end) = (usize::try_from(data + begin), usize::try_from(data + end));
    let (Ok(start), Ok(end)) = (start, end) else {
        return Err(wrong("lies past what memory can address".to_owned()));
    };
    Ok(Entry {
        name,
        stored,
        shape,
        start,
        end,
    })
}

/// The header of tensors (name, type, shape, start, end), padded with spaces to 8 bytes.
pub fn compose<'a>(
    entries: impl Iterator<Item = (&'a str, &'static str, Shape, usize, usize)>,
    metadata: &BTreeMap<String, String>,
) -> String {
    let mut header = "{".to_owned();
    if !metadata.is_empty() {
        quote(&mut header, METADATA);
        header.push_str(":{");
        for (key, value) in metadata {
            quote(&mut header, key);
            header.push(':');
            quote(&mut header, value);
            header.push(',');
        }
        header.pop();
        header.push_str("},");
    }
    for (name, dtype, shape, start, end) in entries {
        quote(&mut header, name);
        let dims: Vec<String> = shape.dims().iter().map(usize::to_string).collect();
        let dims = dims.join(",");
        // Writing to a String does not fail.
        let _ = write!(
            header,
            ":{{\"dtype\":\"{dtype}\",\"shape\":[{dims}],\"data_offsets\":[{start},{end}]}},"
        );
    }
    if header.ends_with(',') {
        header.pop();
    }
    header.push('}');
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    header
}

fn quote(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
