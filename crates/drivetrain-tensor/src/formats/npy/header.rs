//! The header of an npy file: a Python dict literal of three keys, parsed by hand.

use super::HEADER_LIMIT;
use crate::formats::bytes::Stored;
use crate::formats::disk::{self, Place};
use drivetrain_core::{MAX_USER_DIMS, Result, Shape};
use std::io::Read;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What the bytes that follow are.
pub struct Header {
    pub stored: Stored,
    pub big_endian: bool,
    pub fortran_order: bool,
    pub shape: Shape,
}

impl Header {
    /// Reads the header; also gives its length, which is where the elements start.
    #[track_caller]
    pub fn read(
        place: &Place,
        reader: &mut dyn Read,
        length: Option<u64>,
    ) -> Result<(Header, u64)> {
        let failed = |cause| place.io("the header", cause);
        let mut take = |count: u64| disk::read_exactly(reader, count, false).map_err(failed);
        let start = take(8)?;
        if !start.starts_with(MAGIC) {
            return Err(place.format(format!(
                "starts with {}, expected \\x93NUMPY",
                start[..6].escape_ascii()
            )));
        }
        let width = match (start[6], start[7]) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            (major, minor) => {
                return Err(place.format(format!(
                    "version {major}.{minor} is unknown, expected 1.0, 2.0 or 3.0"
                )));
            }
        };
        let digits = take(width)?.into_iter().rev();
        let size = digits.fold(0, |size, digit| size << 8 | u64::from(digit));
        let end = 8 + width + size;
        if let Some(length) = length.filter(|&length| end > length) {
            return Err(place.format(format!(
                "the header's length is given as {size} bytes, but only {} follow",
                length - 8 - width
            )));
        }
        if size > HEADER_LIMIT {
            return Err(place.format(format!(
                "the header takes {size} bytes; our limit (the format has none) is {HEADER_LIMIT}"
            )));
        }
        let text = take(size)?;
        // Latin-1 before version 3, which matters for field names only, and those are refused.
        let text = String::from_utf8_lossy(&text);
        let header = parse(place, &text).map_err(|error| error.context("npy header"))?;
        Ok((header, end))
    }
}

#[track_caller]
fn parse(place: &Place, text: &str) -> Result<Header> {
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    let mut rest = Literal(text);
    let wrong = |rest: Literal, expected: &str| {
        let offset = text.len() - rest.0.len();
        place.format(format!(
            "expected {expected} at character {offset} of `{}`",
            text.trim()
        ))
    };
    if !rest.eat("{") {
        return Err(wrong(rest, "`{`"));
    }
    while !rest.eat("}") {
        let key = rest.string().ok_or_else(|| wrong(rest, "a key"))?;
        if !rest.eat(":") {
            return Err(wrong(rest, "`:`"));
        }
        let value = rest;
        let twice = match key {
            "descr" => {
                let Some(name) = rest.string() else {
                    let structure = value.0.trim_start();
                    return Err(place.dtype(format!("structured dtype {structure}")));
                };
                descr.replace(name).is_some()
            }
            "fortran_order" => {
                let order = rest
                    .boolean()
                    .ok_or_else(|| wrong(value, "True or False"))?;
                fortran_order.replace(order).is_some()
            }
            "shape" => {
                let dims = rest
                    .tuple()
                    .ok_or_else(|| wrong(value, "a tuple of sizes"))?;
                shape.replace(dims).is_some()
            }
            _ => return Err(wrong(value, "descr, fortran_order or shape before the `:`")),
        };
        if twice {
            return Err(wrong(value, "each key once"));
        }
        if !rest.eat(",") && !rest.0.trim_start().starts_with('}') {
            return Err(wrong(rest, "`,` or `}`"));
        }
    }
    let (Some(descr), Some(fortran_order), Some(dims)) = (descr, fortran_order, shape) else {
        return Err(wrong(
            rest,
            "the keys descr, fortran_order and shape before the end",
        ));
    };
    if !rest.0.trim_matches([' ', '\n', '\0']).is_empty() {
        return Err(wrong(rest, "nothing but spaces"));
    }
    if dims.len() > MAX_USER_DIMS {
        return Err(place.format(format!(
            "{} dimensions {dims:?}, at most {MAX_USER_DIMS}",
            dims.len()
        )));
    }
    let shape = Shape::new(&dims).map_err(|error| place.format(error.message()))?;
    let (stored, big_endian) = dtype(descr).ok_or_else(|| {
        place.dtype(format!(
            "dtype '{descr}', expected b1, f2, f4, f8, i1, i2, i4, i8, u1, u2, u4 or u8"
        ))
    })?;
    Ok(Header {
        stored,
        big_endian,
        fortran_order,
        shape,
    })
}

fn dtype(descr: &str) -> Option<(Stored, bool)> {
    let big_endian = match descr.chars().next()? {
        '<' => false,
        '>' => true,
        _ => cfg!(target_endian = "big"),
    };
    let stored = match descr.trim_start_matches(['<', '>', '=', '|']) {
        "f8" => Stored::F64,
        "f4" => Stored::F32,
        "f2" => Stored::F16,
        "i8" => Stored::I64,
        "i4" => Stored::I32,
        "i2" => Stored::I16,
        "i1" => Stored::I8,
        "u8" => Stored::U64,
        "u4" => Stored::U32,
        "u2" => Stored::U16,
        "u1" => Stored::U8,
        "b1" => Stored::Bool,
        _ => return None,
    };
    Some((stored, big_endian))
}

/// A type as NumPy writes it, without the byte order.
pub fn descr(stored: Stored) -> &'static str {
    match stored {
        Stored::F64 => "f8",
        Stored::F32 => "f4",
        Stored::F16 => "f2",
        Stored::BF16 => "bf16",
        Stored::I64 => "i8",
        Stored::I32 => "i4",
        Stored::I16 => "i2",
        Stored::I8 => "i1",
        Stored::U64 => "u8",
        Stored::U32 => "u4",
        Stored::U16 => "u2",
        Stored::U8 => "u1",
        Stored::Bool => "b1",
    }
}

// The rest of a Python literal. Each method eats what it gives, and leading space.
#[derive(Clone, Copy)]
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn string(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (inside, rest) = text[1..].split_once(quote)?;
        self.0 = rest;
        Some(inside)
    }

    fn boolean(&mut self) -> Option<bool> {
        if self.eat("True") {
            return Some(true);
        }
        self.eat("False").then_some(false)
    }

    // Python 2 wrote sizes as `3L`. One size needs its comma, as in Python.
    fn tuple(&mut self) -> Option<Vec<usize>> {
        if !self.eat("(") {
            return None;
        }
        let mut sizes = Vec::new();
        let mut comma = true;
        while !self.eat(")") {
            let text = self.0.trim_start();
            let end = text.find(|c: char| !c.is_ascii_digit())?;
            if !comma {
                return None;
            }
            sizes.push(text[..end].parse().ok()?);
            self.0 = text[end..].trim_start_matches('L');
            comma = self.eat(",");
        }
        (sizes.len() != 1 || comma).then_some(sizes)
    }
}

/// A whole header of version 1.0 as NumPy writes it: room for the first size to grow to 21 digits, then
/// spaces up to a multiple of 64 bytes.
pub fn compose(descr: &str, shape: &Shape) -> Vec<u8> {
    let sizes: Vec<String> = shape.dims().iter().map(usize::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    let mut text = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        sizes.join(", ")
    );
    if let Some(first) = sizes.first() {
        text.push_str(&" ".repeat(21usize.saturating_sub(first.len())));
    }
    // 10 bytes before the text and the line break behind it.
    while !(text.len() + 11).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    // At most 8 sizes of 20 digits: far below 65,536.
    header.extend_from_slice(&(text.len() as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header
}
