//! `Random`: core's counter-based numbers, in parallel and in any order.

use super::map::PIECE;
use crate::element::from_f64;
use crate::{parallel, view};
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::random::{State, normal_pair, uniform, uniform_bits, uniform_f64};
use drivetrain_core::{DType, Error, Operand, RandomKind, Result};

/// Draws into `out` from the state (seed, stream, offset).
///
/// # Safety
/// Operands of the running `execute`.
pub(crate) unsafe fn random(kind: RandomKind, state: &Operand, out: &Operand) -> Result<()> {
    // SAFETY: the state is I64 by inference.
    let words = unsafe { view::numbers::<i64, i64>(state) };
    let &[seed, stream, offset] = &*words else {
        return Err(Error::shape(
            kind.name(),
            format!("a state of {} numbers, expected 3", words.len()),
        ));
    };
    let state = State::from_operand([seed, stream, offset]);
    let bits = uniform_bits(out.dtype);
    let scale = move |word: u32| uniform(word, bits);
    // SAFETY: the types are those of the dtypes; the rest as the caller promises.
    unsafe {
        match (kind, out.dtype) {
            (RandomKind::Bits, DType::I64) => quads(out, state, |word| word as i64),
            (RandomKind::Uniform, DType::F32) => quads(out, state, scale),
            (RandomKind::Uniform, DType::F16) => {
                quads(out, state, |word| f16::from_f32(scale(word)))
            }
            (RandomKind::Uniform, DType::BF16) => {
                quads(out, state, |word| bf16::from_f32(scale(word)))
            }
            (RandomKind::Uniform, DType::F64) => pairs(out, state, |block| {
                [
                    uniform_f64(block[0], block[1]),
                    uniform_f64(block[2], block[3]),
                ]
            }),
            (RandomKind::Normal, DType::F32) => {
                pairs(out, state, |block| normal_pair(block).map(|x| x as f32))
            }
            (RandomKind::Normal, DType::F64) => pairs(out, state, normal_pair),
            (RandomKind::Normal, DType::F16) => {
                pairs(out, state, |block| normal_pair(block).map(from_f64::<f16>))
            }
            (RandomKind::Normal, DType::BF16) => {
                pairs(out, state, |block| normal_pair(block).map(from_f64::<bf16>))
            }
            (_, dtype) => {
                return Err(Error::dtype(kind.name(), format!("not drawn as {dtype}")));
            }
        }
    }
    Ok(())
}

/// One word an element, four a block.
///
/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn quads<T: Send>(out: &Operand, state: State, draw: impl Fn(u32) -> T + Sync) {
    // SAFETY: as the caller promises.
    let out = unsafe { view::slice_mut::<T>(out) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        for (i, quad) in chunk.chunks_mut(4).enumerate() {
            let words = state.block((start / 4 + i) as u64);
            for (slot, word) in quad.iter_mut().zip(words) {
                *slot = draw(word);
            }
        }
    });
}

/// Two elements a block.
///
/// # Safety
/// Operands of the running `execute`, of the types named.
unsafe fn pairs<T: Send>(out: &Operand, state: State, draw: impl Fn([u32; 4]) -> [T; 2] + Sync) {
    // SAFETY: as the caller promises.
    let out = unsafe { view::slice_mut::<T>(out) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        for (i, pair) in chunk.chunks_mut(2).enumerate() {
            let values = draw(state.block((start / 2 + i) as u64));
            for (slot, value) in pair.iter_mut().zip(values) {
                *slot = value;
            }
        }
    });
}
