//! The IDX format of the MNIST files, plain or gzip: read with every size checked.
//!
//! A header of 2 zero bytes, a type (8: unsigned bytes), the number of dimensions, then each size as a big-endian
//! u32; the data follows. <http://yann.lecun.com/exdb/mnist/>

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use drivetrain_core::{Error, Result};
use flate2::bufread::MultiGzDecoder;

/// Bytes with their sizes, outermost first.
#[derive(Debug)]
pub(crate) struct Idx {
    pub sizes: Vec<usize>,
    pub data: Vec<u8>,
}

/// A file being read: where, and how far.
struct Source<'a> {
    path: &'a Path,
    reader: Box<dyn Read>,
    /// Offsets count unpacked bytes.
    packed: bool,
    offset: u64,
}

impl Source<'_> {
    fn fault(&self, offset: u64, message: &str) -> Error {
        let unpacked = if self.packed { " (unpacked)" } else { "" };
        Error::format(
            "read IDX",
            format!(
                "{}: at offset {offset}{unpacked}, {message}",
                self.path.display()
            ),
        )
    }

    /// Reads at most `limit` bytes; fewer if the file ends before. Memory grows with what is really there.
    fn read(&mut self, limit: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(limit).read_to_end(&mut bytes);
        self.offset += bytes.len() as u64;
        match read {
            Ok(_) => Ok(bytes),
            Err(cause) if self.packed => Err(self
                .fault(self.offset, &format!("the gzip stream is broken: {cause}"))
                .caused_by(cause)),
            Err(cause) => Err(Error::io("read IDX", self.path.display(), cause)),
        }
    }

    fn word(&mut self, what: &str) -> Result<u32> {
        let at = self.offset;
        let bytes = self.read(4)?;
        match <[u8; 4]>::try_from(bytes.as_slice()) {
            Ok(bytes) => Ok(u32::from_be_bytes(bytes)),
            Err(_) => Err(self.fault(
                at,
                &format!("expected 4 bytes of {what}, found {}", bytes.len()),
            )),
        }
    }
}

/// Reads unsigned bytes of `dimensions` dimensions; `content` names them in errors.
pub(crate) fn read_idx(path: &Path, dimensions: usize, content: &str) -> Result<Idx> {
    let file_error = |cause| Error::io("read IDX", path.display(), cause);
    let file = File::open(path).map_err(file_error)?;
    let file_length = file.metadata().map_err(file_error)?.len();
    let mut reader = BufReader::new(file);
    let packed = reader
        .fill_buf()
        .map_err(file_error)?
        .starts_with(&[0x1F, 0x8B]);
    let mut source = Source {
        path,
        reader: match packed {
            true => Box::new(MultiGzDecoder::new(reader)),
            false => Box::new(reader),
        },
        packed,
        offset: 0,
    };

    let magic = source.word("magic number")?;
    let expected = 0x0800 | dimensions as u32;
    if magic != expected {
        let message = format!(
            "expected the magic number {expected:#010x} of {content} (bytes, {dimensions} dimensions), found {magic:#010x}"
        );
        let error = source.fault(0, &message);
        return Err(match magic {
            0x0801 | 0x0803 => error.help("are the files of images and labels swapped?"),
            _ => error,
        });
    }
    let mut sizes = Vec::with_capacity(dimensions);
    let mut length = Some(1u64);
    for dimension in 0..dimensions {
        let size = source.word(&format!("size {dimension}"))?;
        length = length.and_then(|n| n.checked_mul(u64::from(size)));
        sizes.push(size as usize);
    }
    let header = source.offset;
    let length = length
        .filter(|&n| n < isize::MAX as u64)
        .ok_or_else(|| source.fault(4, &format!("the sizes {sizes:?} multiply past memory")))?;
    let short = |found: u64| {
        format!("expected {length} bytes of {content} (sizes {sizes:?}), found {found}")
    };
    if !packed && file_length.saturating_sub(header) < length {
        return Err(source.fault(header, &short(file_length.saturating_sub(header))));
    }
    // One byte more, to notice what does not belong there; a longer tail is never unpacked.
    let data = source.read(length + 1)?;
    if (data.len() as u64) < length {
        return Err(source.fault(header, &short(data.len() as u64)));
    }
    if data.len() as u64 > length {
        let message = format!(
            "expected the end after {length} bytes of {content} (sizes {sizes:?}), found more"
        );
        return Err(source.fault(header + length, &message));
    }
    Ok(Idx { sizes, data })
}
