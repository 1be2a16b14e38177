//! Files for the formats: checked reads, atomic writes, errors that name the file.

use drivetrain_core::{Error, Result};
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which operation works on which file: the first half of every message.
#[derive(Clone, Debug)]
pub struct Place {
    pub operation: &'static str,
    pub file: String,
}

impl Place {
    pub fn new(operation: &'static str, path: &Path) -> Place {
        Place {
            operation,
            file: path.display().to_string(),
        }
    }

    pub fn memory(operation: &'static str) -> Place {
        Place {
            operation,
            file: "bytes in memory".to_owned(),
        }
    }

    #[track_caller]
    pub fn format(&self, message: impl Display) -> Error {
        Error::format(self.operation, format!("{}: {}", self.file, clip(message)))
    }

    #[track_caller]
    pub fn dtype(&self, message: impl Display) -> Error {
        Error::dtype(self.operation, format!("{}: {}", self.file, clip(message)))
    }

    #[track_caller]
    pub fn argument(&self, message: impl Display) -> Error {
        Error::argument(self.operation, format!("{}: {}", self.file, clip(message)))
    }

    /// An I/O error; data that ended early or did not decode is the file's fault.
    #[track_caller]
    pub fn io(&self, what: impl Display, cause: io::Error) -> Error {
        match cause.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                self.format(format!("{what}: {cause}")).caused_by(cause)
            }
            _ => Error::io(self.operation, format!("{}: {what}", self.file), cause),
        }
    }
}

// A file's names and numbers stand in messages, and a hostile file's are as long as it likes.
fn clip(message: impl Display) -> String {
    let mut message = message.to_string();
    if message.len() > 1000 {
        message.truncate(message.floor_char_boundary(1000));
        message.push('…');
    }
    message
}

/// Opens a regular file and tells its length.
#[track_caller]
pub fn open(place: &Place, path: &Path) -> Result<(File, u64)> {
    let failed = |cause| Error::io(place.operation, &place.file, cause);
    // Looked at before opening: opening a pipe that nobody writes to would wait for ever.
    let kind = fs::metadata(path).map_err(failed)?;
    if !kind.is_file() {
        return Err(place.argument("not a regular file"));
    }
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    Ok((file, length))
}

/// Exactly `length` bytes. Memory is taken at once when the length is known to be there (`checked`), else
/// only as bytes arrive.
pub fn read_exactly(reader: &mut dyn Read, length: u64, checked: bool) -> io::Result<Vec<u8>> {
    let size = usize::try_from(length)
        .map_err(|_| io::Error::new(ErrorKind::OutOfMemory, format!("{length} bytes")))?;
    let mut bytes = Vec::new();
    if checked {
        bytes
            .try_reserve_exact(size)
            .map_err(|_| io::Error::new(ErrorKind::OutOfMemory, format!("{length} bytes")))?;
    }
    reader.take(length).read_to_end(&mut bytes)?;
    if bytes.len() != size {
        let message = format!("the data end after {} of {length} bytes", bytes.len());
        return Err(io::Error::new(ErrorKind::UnexpectedEof, message));
    }
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// Writes a file beside `path` and renames it over `path` when all of it is on the disk; on any failure
/// `path` stays as it was and nothing is left beside it. A symbolic link keeps pointing where it did; what
/// is no regular file (a terminal, a pipe) is written to directly.
#[track_caller]
pub fn write_atomically(
    place: &Place,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let failed = |cause| Error::io(place.operation, &place.file, cause);
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|old| !old.is_file()) {
        let mut file = OpenOptions::new()
            .write(true)
            .open(&target)
            .map_err(failed)?;
        write(&mut file)?;
        return file.flush().map_err(failed);
    }
    let (file, mut temporary) = create_beside(&target).map_err(failed)?;
    let mut buffered = BufWriter::with_capacity(1 << 18, file);
    write(&mut buffered)?;
    let file = buffered.into_inner().map_err(|e| failed(e.into_error()))?;
    if let Some(old) = existing {
        file.set_permissions(old.permissions()).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    fs::rename(&temporary.path, &target).map_err(failed)?;
    temporary.keep = true;
    // The name lives in the directory. Where a directory cannot be synced, the data still are.
    if let Some(Ok(directory)) = target.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

// Removes the file when dropped before the rename, in a panic too.
struct Temporary {
    path: PathBuf,
    keep: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn create_beside(target: &Path) -> io::Result<(File, Temporary)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let directory = target.parent().unwrap_or(Path::new(""));
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".drivetrain-{}-{number}.tmp", std::process::id());
        let path = directory.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, Temporary { path, keep: false })),
            // A leftover of an earlier process of that number.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("drivetrain-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_failed_write_changes_nothing() {
        let folder = folder("atomic");
        let path = folder.join("a");
        let place = Place::new("test", &path);
        let put = |bytes: &'static [u8], fail: bool| {
            write_atomically(&place, &path, |out| {
                out.write_all(bytes).map_err(|e| place.io("write", e))?;
                if fail {
                    return Err(place.format("stop"));
                }
                Ok(())
            })
        };
        put(b"old", false).unwrap();
        assert!(put(b"new", true).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        put(b"newer", false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_written_through() {
        let folder = folder("link");
        let (file, link) = (folder.join("file"), folder.join("link"));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let place = Place::new("test", &link);
        write_atomically(&place, &link, |out| {
            out.write_all(b"new").map_err(|e| place.io("write", e))
        })
        .unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn short_data_are_told_with_both_numbers() {
        let error = read_exactly(&mut &b"abc"[..], 1 << 40, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("after 3 of 1099511627776"));
    }
}
