//! Writes zip archives: always with zip64 records, so that small and large archives take the same path.

use super::{CENTRAL, DEFLATED, END, END64, LOCAL, LOCATOR64, STORED};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write};

// 1 January 1980, the first day a zip knows: the same content gives the same bytes at any time.
const DATE: u16 = 1 << 5 | 1;
// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
// Of the format that a reader must know: 4.5, zip64.
const VERSION: u16 = 45;

/// An archive being written.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    position: u64,
    directory: Vec<u8>,
    count: u64,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut dyn Write) -> Writer<'a> {
        Writer {
            out,
            position: 0,
            directory: Vec::new(),
            count: 0,
        }
    }

    /// Adds a member of these parts, one after the other. The name is shorter than 64 KiB.
    pub fn add(&mut self, name: &str, parts: &[&[u8]], compress: bool) -> io::Result<()> {
        let name_length = u16::try_from(name.len()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "name of over 65,535 bytes")
        })?;
        let mut checksum = Crc::new();
        parts.iter().for_each(|part| checksum.update(part));
        let size: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let deflated = if compress {
            Some(deflate(parts)?)
        } else {
            None
        };
        let packed = deflated.as_ref().map_or(size, |bytes| bytes.len() as u64);
        let method = if compress { DEFLATED } else { STORED };

        // What the local header and the directory share.
        let mut common = Vec::new();
        common.extend(VERSION.to_le_bytes());
        common.extend(FLAGS.to_le_bytes());
        common.extend(method.to_le_bytes());
        common.extend(0u16.to_le_bytes());
        common.extend(DATE.to_le_bytes());
        common.extend(checksum.sum().to_le_bytes());
        common.extend([0xff; 8]);
        common.extend(name_length.to_le_bytes());

        let mut local = LOCAL.to_le_bytes().to_vec();
        local.extend(&common);
        local.extend(20u16.to_le_bytes());
        local.extend(name.as_bytes());
        extra(&mut local, &[size, packed]);

        self.directory.extend(CENTRAL.to_le_bytes());
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(&common);
        self.directory.extend(28u16.to_le_bytes());
        // No comment, disk 0, no attributes.
        self.directory.extend([0; 10]);
        self.directory.extend([0xff; 4]);
        self.directory.extend(name.as_bytes());
        extra(&mut self.directory, &[size, packed, self.position]);

        self.out.write_all(&local)?;
        match &deflated {
            Some(bytes) => self.out.write_all(bytes)?,
            None => parts.iter().try_for_each(|part| self.out.write_all(part))?,
        }
        self.position += local.len() as u64 + packed;
        self.count += 1;
        Ok(())
    }

    /// Writes the directory.
    pub fn finish(self) -> io::Result<()> {
        if self.count == 0 {
            // Readers know an empty archive by its first bytes.
            let mut end = END.to_le_bytes().to_vec();
            end.extend([0; 18]);
            return self.out.write_all(&end);
        }
        let size = self.directory.len() as u64;
        let mut end = END64.to_le_bytes().to_vec();
        end.extend(44u64.to_le_bytes());
        end.extend(VERSION.to_le_bytes());
        end.extend(VERSION.to_le_bytes());
        end.extend([0; 8]);
        for value in [self.count, self.count, size, self.position] {
            end.extend(value.to_le_bytes());
        }
        end.extend(LOCATOR64.to_le_bytes());
        end.extend(0u32.to_le_bytes());
        end.extend((self.position + size).to_le_bytes());
        end.extend(1u32.to_le_bytes());
        end.extend(END.to_le_bytes());
        end.extend([0; 4]);
        end.extend([0xff; 12]);
        end.extend(0u16.to_le_bytes());
        self.out.write_all(&self.directory)?;
        self.out.write_all(&end)
    }
}

// The zip64 field with the sizes that 32 bits may not hold.
fn extra(record: &mut Vec<u8>, values: &[u64]) {
    record.extend(1u16.to_le_bytes());
    record.extend((values.len() as u16 * 8).to_le_bytes());
    values
        .iter()
        .for_each(|value| record.extend(value.to_le_bytes()));
}

fn deflate(parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    parts.iter().try_for_each(|part| encoder.write_all(part))?;
    encoder.finish()
}
