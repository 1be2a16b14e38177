//! `Cumulative`: running sums and products along a dimension, kept in F64 for floats and I64 for integers.

use super::binary::{Add, Mul};
use super::map::{Function2, PIECE};
use super::math::Number;
use crate::cursor::{BLOCK, Cursor};
use crate::element::Stored;
use crate::{parallel, view};
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{CumulativeOp, DType, Operand};

/// Joins along `dim`.
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn cumulative(op: CumulativeOp, dim: usize, x: &Operand, out: &Operand) {
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match x.dtype {
            DType::F32 => joined::<f32, f64, f32>(op, dim, x, out),
            DType::F64 => joined::<f64, f64, f64>(op, dim, x, out),
            DType::F16 => joined::<f16, f64, f16>(op, dim, x, out),
            DType::BF16 => joined::<bf16, f64, bf16>(op, dim, x, out),
            DType::I64 => joined::<i64, i64, i64>(op, dim, x, out),
            DType::I32 if out.dtype == DType::I64 => joined::<i32, i64, i64>(op, dim, x, out),
            DType::I32 => joined::<i32, i64, i32>(op, dim, x, out),
            DType::U8 | DType::Bool if out.dtype == DType::I64 => {
                joined::<u8, i64, i64>(op, dim, x, out)
            }
            DType::U8 | DType::Bool => joined::<u8, i64, u8>(op, dim, x, out),
        }
    }
}

/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn joined<T: Stored<C>, C: Number, O: Stored<C>>(
    op: CumulativeOp,
    dim: usize,
    x: &Operand,
    out: &Operand,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match op {
            CumulativeOp::Sum => run::<T, C, O>(dim, x, out, Add, C::ZERO),
            CumulativeOp::Prod => run::<T, C, O>(dim, x, out, Mul, C::ONE),
        }
    }
}

/// Each slice [length, inner] of an outer index is read front to back, with `inner` running values.
///
/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn run<T: Stored<C>, C: Number, O: Stored<C>>(
    dim: usize,
    x: &Operand,
    out: &Operand,
    join: impl Function2<C, C>,
    start: C,
) {
    let length = x.layout.dims().get(dim).copied().unwrap_or(1);
    let inner: usize = x.layout.dims().iter().skip(dim + 1).product();
    // SAFETY: as the caller promises.
    let out = unsafe { view::slice_mut::<O>(out) };
    let slice = length * inner;
    let piece = (PIECE / slice).max(1) * slice;
    parallel::chunks(out, piece, &|number, chunk| {
        // SAFETY: as the caller promises.
        let mut cursor = unsafe { Cursor::<T, C>::new(x, number) };
        let mut running = vec![start; inner];
        for slice in chunk.chunks_exact_mut(slice) {
            running.fill(start);
            if inner == 1 {
                for block in slice.chunks_mut(BLOCK) {
                    let numbers = cursor.next_slice(block.len());
                    for (slot, &x) in block.iter_mut().zip(numbers) {
                        running[0] = join.of(running[0], x);
                        *slot = O::store(running[0]);
                    }
                }
                continue;
            }
            for row in slice.chunks_exact_mut(inner) {
                for (block, running) in row.chunks_mut(BLOCK).zip(running.chunks_mut(BLOCK)) {
                    let numbers = cursor.next_slice(block.len());
                    for ((slot, running), &x) in block.iter_mut().zip(running).zip(numbers) {
                        *running = join.of(*running, x);
                        *slot = O::store(*running);
                    }
                }
            }
        }
    });
}
