//! `Fill` and `Iota`: outputs without inputs.

use super::map::PIECE;
use crate::element::from_f64;
use crate::parallel::Shared;
use crate::view::{first, slice_mut};
use crate::walk::Walk;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::threads::parallel_for;
use drivetrain_core::{DType, Element, Operand, Scalar};

/// Writes `value`, cast to the output's dtype, everywhere in a window of any strides.
///
/// # Safety
/// Operand of the running `execute`.
pub(crate) unsafe fn fill(value: Scalar, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match out.dtype {
            DType::F32 => window(f32::from_scalar(value), out),
            DType::F64 => window(f64::from_scalar(value), out),
            DType::F16 => window(f16::from_scalar(value), out),
            DType::BF16 => window(bf16::from_scalar(value), out),
            DType::I64 => window(i64::from_scalar(value), out),
            DType::I32 => window(i32::from_scalar(value), out),
            DType::U8 => window(u8::from_scalar(value), out),
            DType::Bool => window(u8::from(value.as_bool()), out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn window<T: Copy + Send + Sync>(value: T, out: &Operand) {
    let walk = Walk::new(out.layout.dims(), [out.layout.strides()]);
    let [stride] = walk.inner_strides();
    let first = Shared(first::<T>(out));
    parallel_for(walk.elements(), PIECE, &|range| {
        walk.runs(range, |[offset], _, length| {
            // SAFETY: the run lies within the output's layout; ranges of elements are disjoint, and so
            // are the elements, as outputs do not overlap themselves.
            unsafe {
                let from = first.get().offset(offset);
                if stride == 1 {
                    std::slice::from_raw_parts_mut(from, length).fill(value);
                } else {
                    (0..length as isize).for_each(|i| *from.offset(i * stride) = value);
                }
            }
        });
    });
}

/// Writes each element's index along `dim`.
///
/// # Safety
/// Operand of the running `execute`, contiguous.
pub(crate) unsafe fn iota(dim: usize, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match out.dtype {
            DType::F32 => count(dim, out, |i| i as f32),
            DType::F64 => count(dim, out, |i| i as f64),
            DType::F16 => count(dim, out, |i| from_f64::<f16>(i as f64)),
            DType::BF16 => count(dim, out, |i| from_f64::<bf16>(i as f64)),
            DType::I64 => count(dim, out, |i| i as i64),
            DType::I32 => count(dim, out, |i| i as i32),
            DType::U8 => count(dim, out, |i| i as u8),
            DType::Bool => count(dim, out, |i| u8::from(i != 0)),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn count<T: Send>(dim: usize, out: &Operand, number: impl Fn(usize) -> T + Sync) {
    let dims = out.layout.dims();
    let size = dims.get(dim).copied().unwrap_or(1);
    let inner: usize = dims.iter().skip(dim + 1).product();
    // SAFETY: as the caller promises.
    let out = unsafe { slice_mut::<T>(out) };
    crate::parallel::chunks(out, PIECE, &|start, chunk| {
        let (mut index, mut within) = (start / inner % size, start % inner);
        for slot in chunk {
            *slot = number(index);
            within += 1;
            if within == inner {
                within = 0;
                index += 1;
                if index == size {
                    index = 0;
                }
            }
        }
    });
}
