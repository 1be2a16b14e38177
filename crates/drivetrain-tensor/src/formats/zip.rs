//! Zip archives as npz and `.pt` files use them: stored or deflated members, with zip64, read from the
//! central directory and checked against the file.

mod writer;

pub use writer::Writer;

use super::disk::Place;
use drivetrain_core::Result;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use std::fmt;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Take};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

// Deflate cannot do better: 258 bytes from 2 bits.
const MAX_RATIO: u64 = 1032;

/// Where archives come from: a file, or bytes in memory.
pub trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// A member of an archive.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    /// Bytes when unpacked.
    pub size: u64,
    packed: u64,
    method: u16,
    checksum: u32,
    header: u64,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member `{}`", self.name)
    }
}

/// An archive whose directory has been read.
pub struct Archive<'a> {
    source: Box<dyn Source + 'a>,
    place: &'a Place,
    /// Where the members end and the directory starts.
    directory: u64,
    pub members: Vec<Member>,
}

impl<'a> Archive<'a> {
    /// Reads the directory of an archive of `length` bytes. Members that share a name or bytes are refused.
    #[track_caller]
    pub fn open(place: &'a Place, source: impl Source + 'a, length: u64) -> Result<Archive<'a>> {
        let mut archive = Archive {
            source: Box::new(source),
            place,
            directory: 0,
            members: Vec::new(),
        };
        let (count, size, start) = archive.find_directory(length)?;
        archive.directory = start;
        let directory = archive.bytes_at(start, size)?;
        archive.members = archive.parse_directory(&directory, count)?;
        archive.check_members()?;
        Ok(archive)
    }

    // How many members, and the length and start of their directory.
    #[track_caller]
    fn find_directory(&mut self, length: u64) -> Result<(u64, u64, u64)> {
        let tail_length = length.min(22 + 0xffff + 20);
        let tail_start = length - tail_length;
        let tail = self.bytes_at(tail_start, tail_length)?;
        let is_end = |&at: &usize| {
            let record = Fields(&tail[at..]);
            record.u32(0) == END && at + 22 + record.u16(20) as usize == tail.len()
        };
        let last = tail.len().checked_sub(22);
        let Some(at) = last.and_then(|last| (0..=last).rev().find(is_end)) else {
            return Err(self
                .place
                .format("no zip directory at the end: no zip file, or one cut short"));
        };
        let end = Fields(&tail[at..]);
        let mut found = (
            u64::from(end.u16(10)),
            u64::from(end.u32(12)),
            u64::from(end.u32(16)),
        );
        let mut limit = tail_start + at as u64;
        if let Some(locator) = at.checked_sub(20).map(|at| Fields(&tail[at..]))
            && locator.u32(0) == LOCATOR64
        {
            limit = locator.u64(8);
            if limit.checked_add(56).is_none_or(|end| end > length) {
                let message = format!("zip64 directory at byte {limit} of {length}");
                return Err(self.place.format(message));
            }
            let record = self.bytes_at(limit, 56)?;
            let record = Fields(&record);
            if record.u32(0) != END64 {
                let message = format!("no zip64 directory at byte {limit}");
                return Err(self.place.format(message));
            }
            found = (record.u64(32), record.u64(40), record.u64(48));
        }
        let (count, size, start) = found;
        if start.checked_add(size).is_none_or(|end| end > limit) || count > size / 46 {
            return Err(self.place.format(format!(
                "zip directory of {count} members in {size} bytes at byte {start}, but it must end by byte {limit}"
            )));
        }
        Ok(found)
    }

    #[track_caller]
    fn parse_directory(&self, directory: &[u8], count: u64) -> Result<Vec<Member>> {
        let mut rest = directory;
        let mut members = Vec::new();
        for number in 0..count {
            let broken = || {
                self.place
                    .format(format!("zip directory entry {number} of {count} is broken"))
            };
            let record = Fields(rest.get(..46).ok_or_else(broken)?);
            let name_end = 46 + record.u16(28) as usize;
            let extra_end = name_end + record.u16(30) as usize;
            let end = extra_end + record.u16(32) as usize;
            if record.u32(0) != CENTRAL || end > rest.len() {
                return Err(broken());
            }
            let name = str::from_utf8(&rest[46..name_end]).map_err(|_| broken())?;
            let mut member = Member {
                name: name.to_owned(),
                size: u64::from(record.u32(24)),
                packed: u64::from(record.u32(20)),
                method: record.u16(10),
                checksum: record.u32(16),
                header: u64::from(record.u32(42)),
            };
            member
                .widen(&rest[name_end..extra_end])
                .ok_or_else(broken)?;
            if record.u16(8) & 1 != 0 {
                return Err(self.place.format(format!("{member} is encrypted")));
            }
            members.push(member);
            rest = &rest[end..];
        }
        Ok(members)
    }

    #[track_caller]
    fn check_members(&self) -> Result<()> {
        let mut names: Vec<&str> = self.members.iter().map(|m| m.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("two members are named `{}`", pair[0]);
            return Err(self.place.format(message));
        }
        let mut in_order: Vec<&Member> = self.members.iter().collect();
        in_order.sort_unstable_by_key(|member| member.header);
        for (i, member) in in_order.iter().enumerate() {
            let next = in_order
                .get(i + 1)
                .map_or(self.directory, |next| next.header);
            let least = member.packed.checked_add(30 + member.name.len() as u64);
            let end = least.and_then(|least| least.checked_add(member.header));
            if end.is_none_or(|end| end > next) {
                return Err(self.place.format(format!(
                    "{member} of {} bytes at byte {} must end by byte {next}",
                    member.packed, member.header
                )));
            }
            let possible = match member.method {
                STORED => member.size == member.packed,
                _ => member.size / MAX_RATIO <= member.packed,
            };
            if !possible {
                return Err(self.place.format(format!(
                    "{member} cannot give {} bytes out of {}",
                    member.size, member.packed
                )));
            }
        }
        Ok(())
    }

    /// A reader of a member's unpacked bytes.
    #[track_caller]
    pub fn reader(&mut self, member: &Member) -> Result<MemberReader<'_, 'a>> {
        let fixed = self.bytes_at(member.header, 30)?;
        let fixed = Fields(&fixed);
        let name_length = u64::from(fixed.u16(26));
        let data = member.header + 30 + name_length + u64::from(fixed.u16(28));
        let name = self.bytes_at(member.header + 30, name_length)?;
        let fits = data.saturating_add(member.packed) <= self.directory;
        if fixed.u32(0) != LOCAL || name != member.name.as_bytes() || !fits {
            return Err(self.place.format(format!(
                "{member}: the header at byte {} does not fit the directory",
                member.header
            )));
        }
        self.source
            .seek(SeekFrom::Start(data))
            .map_err(|cause| self.place.io(member, cause))?;
        let packed = (&mut self.source).take(member.packed);
        let data = match member.method {
            STORED => Data::Stored(packed),
            DEFLATED => Data::Deflated(Box::new(DeflateDecoder::new(packed))),
            method => {
                return Err(self.place.format(format!(
                    "{member} is compressed by method {method}, expected 0 (stored) or 8 (deflate)"
                )));
            }
        };
        Ok(MemberReader {
            data,
            left: member.size,
            checksum: Crc::new(),
            expected: Some(member.checksum),
        })
    }

    /// A member's unpacked bytes, checked. A checksum of 0 counts as none: `torch.save` writes it where it is
    /// told to compute none.
    #[track_caller]
    pub fn read(&mut self, member: &Member) -> Result<Vec<u8>> {
        let place = self.place;
        let mut reader = self.reader(member)?;
        reader.expected = reader.expected.filter(|&checksum| checksum != 0);
        super::disk::read_exactly(&mut reader, member.size, member.is_stored())
            .and_then(|bytes| reader.finish().map(|()| bytes))
            .map_err(|cause| place.io(member, cause))
    }

    #[track_caller]
    fn bytes_at(&mut self, start: u64, length: u64) -> Result<Vec<u8>> {
        self.source
            .seek(SeekFrom::Start(start))
            .and_then(|_| super::disk::read_exactly(&mut self.source, length, false))
            .map_err(|cause| {
                self.place
                    .io(format!("{length} bytes at byte {start}"), cause)
            })
    }
}

impl Member {
    /// Whether its bytes lie in the file as they are, and so are known to be there. A deflated member may
    /// end long before the size it claims.
    pub fn is_stored(&self) -> bool {
        self.method == STORED
    }

    // Takes the sizes that do not fit 32 bits from the zip64 extra field.
    fn widen(&mut self, mut extra: &[u8]) -> Option<()> {
        let slots = [&mut self.size, &mut self.packed, &mut self.header];
        let mut slots = slots
            .into_iter()
            .filter(|slot| **slot == 0xffff_ffff)
            .peekable();
        while slots.peek().is_some() {
            let (kind, length) = (
                Fields(extra.get(..4)?).u16(0),
                Fields(extra).u16(2) as usize,
            );
            let field = extra.get(4..4 + length)?;
            if kind == 1 {
                let (values, _) = field.as_chunks::<8>();
                let mut values = values.iter();
                for slot in slots {
                    *slot = u64::from_le_bytes(*values.next()?);
                }
                return Some(());
            }
            extra = &extra[4 + length..];
        }
        Some(())
    }
}

// Little-endian numbers of a record whose length has been checked.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[at + i])
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
}

/// Reads a member's unpacked bytes, never more than it claims.
pub struct MemberReader<'a, 'b> {
    data: Data<'a, 'b>,
    left: u64,
    checksum: Crc,
    expected: Option<u32>,
}

type Packed<'a, 'b> = Take<&'a mut Box<dyn Source + 'b>>;

enum Data<'a, 'b> {
    Stored(Packed<'a, 'b>),
    Deflated(Box<DeflateDecoder<Packed<'a, 'b>>>),
}

impl MemberReader<'_, '_> {
    fn pull(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.data {
            Data::Stored(data) => data.read(buffer),
            Data::Deflated(data) => data.read(buffer),
        }
    }

    /// After the last byte: is there none behind it, and is the checksum right?
    pub fn finish(mut self) -> io::Result<()> {
        let invalid = |message| Err(io::Error::new(ErrorKind::InvalidData, message));
        if self.left > 0 || self.pull(&mut [0])? > 0 {
            return invalid("more bytes than expected".to_owned());
        }
        let found = self.checksum.sum();
        match self.expected {
            Some(expected) if expected != found => {
                invalid(format!("CRC-32 is {found:08x}, expected {expected:08x}"))
            }
            _ => Ok(()),
        }
    }
}

impl Read for MemberReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.pull(&mut buffer[..room])?;
        self.checksum.update(&buffer[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}
