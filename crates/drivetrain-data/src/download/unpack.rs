//! Chosen files out of a `.tar.gz`, and nothing else: names and sizes are known beforehand.
//!
//! A tar file is a sequence of members: a header of 512 bytes (name at 0, size in octal digits at 124, kind at
//! 156), then the content, filled up to a multiple of 512. POSIX.1-1988 "ustar".

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;

use drivetrain_core::{Error, Result};
use flate2::bufread::MultiGzDecoder;

const BLOCK: u64 = 512;

/// Writes the members `wanted` (path and size) of an archive below `directory`, each by one rename.
pub(crate) fn unpack(archive: &Path, directory: &Path, wanted: &[(&str, u64)]) -> Result<()> {
    let archive_error = |cause| Error::io("unpack", archive.display(), cause);
    let fault =
        |message: String| Error::format("unpack", format!("{}: {message}", archive.display()));
    let file = File::open(archive).map_err(archive_error)?;
    let mut reader = MultiGzDecoder::new(BufReader::new(file));
    let mut found = vec![false; wanted.len()];
    let mut header = [0; BLOCK as usize];
    while found.contains(&false) {
        reader.read_exact(&mut header).map_err(archive_error)?;
        let Some((name, size)) = member(&header) else {
            break;
        };
        let filled = size.next_multiple_of(BLOCK);
        let index = wanted.iter().position(|(wanted, _)| *wanted == name);
        let (skip, content) = match index {
            None => (filled, None),
            Some(index) if wanted[index].1 == size => (filled - size, Some(index)),
            Some(index) => {
                let expected = wanted[index].1;
                return Err(fault(format!(
                    "{name} has {size} bytes, expected {expected}"
                )));
            }
        };
        if let Some(index) = content {
            write(&mut (&mut reader).take(size), &directory.join(name), size)?;
            found[index] = true;
        }
        let skipped = std::io::copy(&mut (&mut reader).take(skip), &mut std::io::sink());
        if skipped.map_err(archive_error)? < skip {
            return Err(fault("ends within a member".to_string()));
        }
    }
    match found.iter().position(|found| !found) {
        Some(missing) => Err(fault(format!("{} is not in it", wanted[missing].0))),
        None => Ok(()),
    }
}

/// Name and size of a member; `None` at the end or for what is no header.
fn member(header: &[u8]) -> Option<(&str, u64)> {
    let name = header.get(..100)?.split(|&byte| byte == 0).next()?;
    let name = std::str::from_utf8(name).ok()?;
    let size = std::str::from_utf8(header.get(124..136)?).ok()?;
    let size = u64::from_str_radix(size.trim_matches(['\0', ' ']), 8).ok()?;
    // Sizes of 11 octal digits are below 2³³, so filling up cannot overflow.
    Some((name.strip_prefix("./").unwrap_or(name), size))
}

fn write(content: &mut impl Read, target: &Path, size: u64) -> Result<()> {
    let error = |cause| Error::io("unpack", target.display(), cause);
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(error)?;
    }
    let mut part = target.as_os_str().to_owned();
    part.push(".part");
    let mut file = File::create(&part).map_err(error)?;
    let written = std::io::copy(content, &mut file).map_err(error)?;
    if written < size {
        return Err(Error::format(
            "unpack",
            format!("{}: got {written} of {size} bytes", target.display()),
        ));
    }
    file.sync_all().map_err(error)?;
    fs::rename(&part, target).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (name, content) in members {
            let mut header = [0; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            let size = format!("{:011o}\0", content.len());
            header[124..136].copy_from_slice(size.as_bytes());
            tar.extend(header);
            tar.extend(*content);
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar.resize(tar.len() + 1024, 0);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&tar).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn takes_what_is_wanted_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("drivetrain-unpack-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.tar.gz");
        let members: [(&str, &[u8]); 4] = [
            ("in/", b""),
            ("../outside", b"bad"),
            ("./in/one", &[1; 700]),
            ("in/two", b"22"),
        ];
        fs::write(&path, archive(&members)).unwrap();
        unpack(&path, &folder, &[("in/one", 700), ("in/two", 2)]).unwrap();
        assert_eq!(fs::read(folder.join("in/one")).unwrap(), [1; 700]);
        assert_eq!(fs::read(folder.join("in/two")).unwrap(), b"22");
        assert_eq!(fs::read_dir(folder.join("in")).unwrap().count(), 2);
        assert!(!folder.join("../outside").exists());

        let message = |wanted| unpack(&path, &folder, &[wanted]).unwrap_err().to_string();
        assert!(message(("in/three", 1)).contains("in/three is not in it"));
        assert!(message(("in/two", 3)).contains("2 bytes, expected 3"));
        let whole = archive(&members);
        fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        assert!(unpack(&path, &folder, &[("in/three", 1)]).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
