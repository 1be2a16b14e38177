//! Fetching files from mirrors (feature `download`): checked by SHA-256, resumed where they broke off, put in
//! place by one rename.

mod sources;
mod unpack;

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use drivetrain_core::{Error, Result};
use sha2::{Digest, Sha256};
use ureq::Agent;

const OPERATION: &str = "download";
/// A server that says nothing for this long is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Times that one mirror is asked again without having sent anything new.
const IDLE_ATTEMPTS: u32 = 2;
/// Times that one mirror is asked in all.
const ATTEMPTS: u32 = 100;

/// A file on one or more servers.
///
/// ```no_run
/// use drivetrain_data::RemoteFile;
/// let labels = RemoteFile {
///     name: "t10k-labels-idx1-ubyte.gz".to_string(),
///     mirrors: vec!["https://ossci-datasets.s3.amazonaws.com/mnist/".to_string()],
///     bytes: 4542,
///     sha256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6".to_string(),
/// };
/// let path = labels.fetch("data/mnist")?;
/// # Ok::<(), drivetrain_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RemoteFile {
    /// Its name, on the servers and here.
    pub name: String,
    /// Addresses that the name is put behind, asked in this order.
    pub mirrors: Vec<String>,
    /// Its size; not a byte more is ever taken.
    pub bytes: u64,
    /// SHA-256 of its content, 64 hexadecimal digits.
    pub sha256: String,
}

impl RemoteFile {
    /// Puts the file into `directory` (made if need be) and gives its path; does nothing if the right content is
    /// there already.
    ///
    /// What was received is kept in `NAME.part` when a connection breaks, and continued from there by the next
    /// attempt, mirror or call. Only content of the right SHA-256 gets the file's name. The error, when all
    /// mirrors fail, says why each did.
    pub fn fetch(&self, directory: impl AsRef<Path>) -> Result<PathBuf> {
        if Path::new(&self.name).file_name() != Some(self.name.as_ref()) {
            let message = format!("{:?} is no plain file name", self.name);
            return Err(Error::argument(OPERATION, message));
        }
        let directory = directory.as_ref();
        let target = directory.join(&self.name);
        let part_path = directory.join(format!("{}.part", self.name));
        let file_error = |cause| Error::io(OPERATION, part_path.display(), cause);
        if self.is_there(&target)? {
            return Ok(target);
        }
        fs::create_dir_all(directory)
            .map_err(|cause| Error::io(OPERATION, directory.display(), cause))?;
        let mut part = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&part_path)
            .map_err(file_error)?;
        // Another process may be at it (workers on one machine): wait for it. File systems without locks go on
        // unguarded; the checksum then finds a mixed-up file.
        let _ = part.lock();
        if self.is_there(&target)? {
            return Ok(target);
        }
        let mut failures = Vec::new();
        for mirror in &self.mirrors {
            let url = format!("{mirror}{}", self.name);
            match self.fetch_from(&url, &mut part, &part_path) {
                Ok(()) => {
                    part.sync_all().map_err(file_error)?;
                    fs::rename(&part_path, &target).map_err(file_error)?;
                    return Ok(target);
                }
                Err(error) => failures.push(format!("{url}: {}", error.message())),
            }
        }
        if part.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = fs::remove_file(&part_path);
        }
        let cause = std::io::Error::other(failures.join("; "));
        let what = format!("{} ({} mirrors)", self.name, self.mirrors.len());
        Err(Error::io(OPERATION, what, cause).help(
            "what was received is kept, a later call continues it; or put the file there by hand",
        ))
    }

    /// Whether the right content is at `path`.
    fn is_there(&self, path: &Path) -> Result<bool> {
        let found = match File::open(path) {
            Ok(file) => file,
            Err(_) => return Ok(false),
        };
        let error = |cause| Error::io(OPERATION, path.display(), cause);
        if found.metadata().map_err(error)?.len() != self.bytes {
            return Ok(false);
        }
        Ok(sha256(found).map_err(error)? == self.sha256.to_ascii_lowercase())
    }

    /// Completes `part` from one server and checks it.
    fn fetch_from(&self, url: &str, part: &mut File, path: &Path) -> Result<()> {
        let file_error = |cause| Error::io(OPERATION, path.display(), cause);
        let length = |part: &File| part.metadata().map(|m| m.len()).map_err(file_error);
        let mut resumed = length(part)? > 0;
        let mut idle = 0;
        for attempt in 0..ATTEMPTS {
            let before = length(part)?;
            if before > self.bytes {
                part.set_len(0).map_err(file_error)?;
                continue;
            }
            let outcome = match before == self.bytes {
                true => Ok(()),
                false => self.transfer(url, part, before),
            };
            let after = length(part)?;
            if after == self.bytes {
                part.seek(SeekFrom::Start(0)).map_err(file_error)?;
                let found = sha256(&*part).map_err(file_error)?;
                if found == self.sha256.to_ascii_lowercase() {
                    return Ok(());
                }
                part.set_len(0).map_err(file_error)?;
                if std::mem::take(&mut resumed) {
                    // The beginning came from elsewhere: once more, from the start.
                    continue;
                }
                let expected = &self.sha256;
                let message = format!("SHA-256 is {found}, expected {expected}");
                return Err(Error::format(OPERATION, message));
            }
            idle = if after > before { 0 } else { idle + 1 };
            let message = match outcome {
                Err(Failure::Final(message)) => return Err(Error::format(OPERATION, message)),
                Err(Failure::Broken(message)) => message,
                Ok(()) => format!("ended after {after} of {} bytes", self.bytes),
            };
            if idle >= IDLE_ATTEMPTS || attempt + 1 == ATTEMPTS {
                return Err(Error::format(OPERATION, message));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(Error::format(OPERATION, "too many attempts"))
    }

    /// One request: appends what it sends to `part`, which has `have` bytes.
    fn transfer(&self, url: &str, part: &mut File, have: u64) -> Result<(), Failure> {
        let mut request = agent(url).get(url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = request.call().map_err(broken)?;
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|v| v.to_str().ok());
        let announced: Option<u64> = header("content-length").and_then(|text| text.parse().ok());
        let (start, expected) = match status {
            206 if have > 0 => {
                let range = header("content-range").unwrap_or("");
                if !range.starts_with(&format!("bytes {have}-")) {
                    part.set_len(0).map_err(broken)?;
                    return Err(Failure::Broken(format!(
                        "asked to continue at {have}, got the range {range:?}"
                    )));
                }
                (have, self.bytes - have)
            }
            // The server does not continue: from the start.
            200 => (0, self.bytes),
            // Nothing behind what is here: the part is not of this file.
            416 if have > 0 => {
                part.set_len(0).map_err(broken)?;
                return Err(Failure::Broken("HTTP status 416".to_string()));
            }
            status => return Err(Failure::Final(format!("HTTP status {status}"))),
        };
        if announced.is_some_and(|announced| announced != expected) {
            let sent = announced.unwrap_or(0);
            return Err(Failure::Final(format!(
                "announces {sent} bytes, expected {expected}"
            )));
        }
        part.set_len(start).map_err(broken)?;
        part.seek(SeekFrom::Start(start)).map_err(broken)?;
        // One byte more than there should be, to notice a server that does not end.
        let mut body = response.into_body().into_reader().take(expected + 1);
        copy(&mut body, part).map_err(broken)?;
        if part.metadata().map_err(broken)?.len() > self.bytes {
            part.set_len(0).map_err(broken)?;
            return Err(Failure::Final(format!(
                "sends more than {} bytes",
                self.bytes
            )));
        }
        Ok(())
    }
}

/// Why a request failed.
enum Failure {
    /// Asking the same server again may help.
    Broken(String),
    /// It will not.
    Final(String),
}

fn broken(cause: impl std::fmt::Display) -> Failure {
    Failure::Broken(cause.to_string())
}

fn agent(url: &str) -> Agent {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE))
        .user_agent(concat!("drivetrain/", env!("CARGO_PKG_VERSION")));
    if url.starts_with("http://127.0.0.1") {
        // No proxy knows this machine's own servers.
        config = config.proxy(None);
    }
    config.build().into()
}

/// Copies block by block, so that what came before a break is in the file.
fn copy(from: &mut impl Read, to: &mut File) -> std::io::Result<()> {
    let mut block = vec![0; 64 << 10];
    loop {
        match from.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&block[..read])?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// SHA-256 of the rest of a file, in hexadecimal digits.
fn sha256(file: impl Read) -> std::io::Result<String> {
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut hasher = Sha256::new();
    let mut block = vec![0; 64 << 10];
    loop {
        match reader.read(&mut block)? {
            0 => break,
            read => hasher.update(&block[..read]),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect())
}
