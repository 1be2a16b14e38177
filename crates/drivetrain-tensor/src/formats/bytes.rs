//! Element types as files store them, brought to ours: byte order, exact widening, strides.

use drivetrain_core::DType;
use std::borrow::Cow;

/// An element type that a file may hold and that we can represent exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

impl Stored {
    /// Bytes an element takes in the file.
    pub const fn size(self) -> usize {
        match self {
            Stored::F64 | Stored::I64 | Stored::U64 => 8,
            Stored::F32 | Stored::I32 | Stored::U32 => 4,
            Stored::F16 | Stored::BF16 | Stored::I16 | Stored::U16 => 2,
            Stored::I8 | Stored::U8 | Stored::Bool => 1,
        }
    }

    /// The dtype it becomes.
    pub const fn dtype(self) -> DType {
        match self {
            Stored::F64 => DType::F64,
            Stored::F32 => DType::F32,
            Stored::F16 => DType::F16,
            Stored::BF16 => DType::BF16,
            Stored::I64 | Stored::U64 | Stored::U32 => DType::I64,
            Stored::I32 | Stored::I16 | Stored::I8 | Stored::U16 => DType::I32,
            Stored::U8 => DType::U8,
            Stored::Bool => DType::Bool,
        }
    }

    /// Whole elements of a file's bytes as elements of [`Stored::dtype`] in native order.
    ///
    /// The error, without file and tensor, is a U64 that I64 cannot hold.
    pub fn decode(self, mut bytes: Vec<u8>, big_endian: bool) -> Result<Vec<u8>, String> {
        if big_endian != cfg!(target_endian = "big") {
            swap(&mut bytes, self.size());
        }
        Ok(match self {
            Stored::I8 => widen(&bytes, |[b]: [u8; 1]| i32::from(b as i8).to_ne_bytes()),
            Stored::I16 => widen(&bytes, |b| i32::from(i16::from_ne_bytes(b)).to_ne_bytes()),
            Stored::U16 => widen(&bytes, |b| i32::from(u16::from_ne_bytes(b)).to_ne_bytes()),
            Stored::U32 => widen(&bytes, |b| i64::from(u32::from_ne_bytes(b)).to_ne_bytes()),
            Stored::U64 => {
                let (words, _) = bytes.as_chunks::<8>();
                let large = words.iter().map(|&word| u64::from_ne_bytes(word));
                if let Some((index, value)) =
                    large.enumerate().find(|(_, v)| i64::try_from(*v).is_err())
                {
                    return Err(format!(
                        "element {index} is {value}, more than I64 can hold"
                    ));
                }
                bytes
            }
            Stored::Bool => {
                for byte in &mut bytes {
                    *byte = u8::from(*byte != 0);
                }
                bytes
            }
            _ => bytes,
        })
    }
}

/// Native bytes of elements of `size` in little-endian order.
pub fn to_little_endian(bytes: &[u8], size: usize) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    let mut swapped = bytes.to_vec();
    swap(&mut swapped, size);
    Cow::Owned(swapped)
}

fn swap(bytes: &mut [u8], size: usize) {
    if size > 1 {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

fn widen<const N: usize, const M: usize>(
    bytes: &[u8],
    convert: impl Fn([u8; N]) -> [u8; M],
) -> Vec<u8> {
    let (elements, _) = bytes.as_chunks::<N>();
    let mut wide = Vec::with_capacity(elements.len() * M);
    for &element in elements {
        wide.extend_from_slice(&convert(element));
    }
    wide
}

/// How many elements from `offset` on a strided view reaches over, `offset` included; `None` on overflow.
/// An empty view reaches nothing.
pub fn reach(offset: usize, dims: &[usize], strides: &[usize]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    let mut last = offset;
    for (&dim, &stride) in dims.iter().zip(strides) {
        last = last.checked_add((dim - 1).checked_mul(stride)?)?;
    }
    last.checked_add(1)
}

/// The elements (of `size` bytes) of a strided view in row-major order. The caller has checked that
/// [`reach`] stays within `source`.
pub fn gather(
    source: &[u8],
    size: usize,
    offset: usize,
    dims: &[usize],
    strides: &[usize],
) -> Vec<u8> {
    let elements: usize = dims.iter().product();
    let mut out = Vec::with_capacity(elements * size);
    let Some((&inner, outer)) = dims.split_last() else {
        out.extend_from_slice(&source[offset * size..][..size]);
        return out;
    };
    if elements == 0 {
        return out;
    }
    let step = strides[outer.len()];
    let mut index = vec![0; outer.len()];
    let mut start = offset;
    for _ in 0..elements / inner {
        if step == 1 {
            out.extend_from_slice(&source[start * size..][..inner * size]);
        } else {
            for i in 0..inner {
                out.extend_from_slice(&source[(start + i * step) * size..][..size]);
            }
        }
        for dim in (0..outer.len()).rev() {
            index[dim] += 1;
            if index[dim] < outer[dim] {
                start += strides[dim];
                break;
            }
            start -= (outer[dim] - 1) * strides[dim];
            index[dim] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_is_exact_in_both_orders() {
        let decode = |stored: Stored, bytes: &[u8], big| stored.decode(bytes.to_vec(), big);
        let i32s = |bytes: Vec<u8>| -> Vec<i32> {
            let (chunks, _) = bytes.as_chunks::<4>();
            chunks.iter().map(|&c| i32::from_ne_bytes(c)).collect()
        };
        assert_eq!(
            i32s(decode(Stored::I8, &[0x80, 0x7f], false).unwrap()),
            [-128, 127]
        );
        assert_eq!(
            i32s(decode(Stored::I16, &[0xff, 0xfe], true).unwrap()),
            [-2]
        );
        assert_eq!(
            i32s(decode(Stored::U16, &[0xff, 0xfe], false).unwrap()),
            [0xfeff]
        );
        assert_eq!(
            i32s(decode(Stored::I32, &[0, 0, 1, 0], true).unwrap()),
            [256]
        );
        let wide = decode(Stored::U32, &[0xff; 4], false).unwrap();
        assert_eq!(wide, i64::from(u32::MAX).to_ne_bytes());
        let error = decode(Stored::U64, &[0xff; 8], true).unwrap_err();
        assert!(
            error.contains("element 0 is 18446744073709551615"),
            "{error}"
        );
        assert_eq!(decode(Stored::Bool, &[0, 1, 7], false).unwrap(), [0, 1, 1]);
    }

    #[test]
    fn views_are_gathered() {
        let source: Vec<u8> = (0..24).collect();
        assert_eq!(gather(&source, 1, 0, &[3, 2], &[1, 3]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(gather(&source, 2, 4, &[], &[]), [8, 9]);
        assert_eq!(gather(&source, 1, 5, &[2, 2], &[0, 0]), [5; 4]);
        assert_eq!(
            gather(&source, 1, 0, &[2, 2, 2], &[1, 2, 4]),
            [0, 4, 2, 6, 1, 5, 3, 7]
        );
        assert!(gather(&source, 1, 0, &[2, 0], &[9, 9]).is_empty());
    }

    #[test]
    fn reach_does_not_overflow() {
        assert_eq!(reach(4, &[3], &[1]), Some(7));
        assert_eq!(reach(4, &[], &[]), Some(5));
        assert_eq!(reach(usize::MAX, &[0], &[1]), Some(0));
        assert_eq!(reach(usize::MAX, &[1], &[1]), None);
        assert_eq!(reach(0, &[usize::MAX, 3], &[2, 2]), None);
    }
}
