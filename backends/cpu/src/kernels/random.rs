//! `Random`: core's counter-based numbers, in parallel and in any order.

use super::map::PIECE;
use crate::element::from_f64;
use crate::simd::{self, Kernel};
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
            (RandomKind::Uniform | RandomKind::Normal, DType::F64) => {
                pairs(out, state, kind, |x| x)
            }
            (RandomKind::Normal, DType::F32) => pairs(out, state, kind, |x| x as f32),
            (RandomKind::Normal, DType::F16) => pairs(out, state, kind, from_f64::<f16>),
            (RandomKind::Normal, DType::BF16) => pairs(out, state, kind, from_f64::<bf16>),
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
/// `out` is a contiguous output of the running `execute` of type `T`.
unsafe fn quads<T: Send>(out: &Operand, state: State, draw: impl Fn(u32) -> T + Sync) {
    // SAFETY: as the caller promises.
    let out = unsafe { view::slice_mut::<T>(out) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        let mut words = [[0; 4]; BLOCKS];
        for (i, part) in chunk.chunks_mut(4 * BLOCKS).enumerate() {
            let used = &mut words[..part.len().div_ceil(4)];
            let start = (start / 4 + i * BLOCKS) as u64;
            simd::run(Words {
                state,
                start,
                words: used,
            });
            for (slot, &word) in part.iter_mut().zip(used.as_flattened()) {
                *slot = draw(word);
            }
        }
    });
}

/// Two elements a block, each drawn as `f64` first.
///
/// # Safety
/// `out` is a contiguous output of the running `execute` of type `T`.
unsafe fn pairs<T: Send>(
    out: &Operand,
    state: State,
    kind: RandomKind,
    store: impl Fn(f64) -> T + Sync,
) {
    // SAFETY: as the caller promises.
    let out = unsafe { view::slice_mut::<T>(out) };
    parallel::chunks(out, PIECE, &|start, chunk| {
        let mut values = [[0.0; 2]; BLOCKS];
        for (i, part) in chunk.chunks_mut(2 * BLOCKS).enumerate() {
            let values = &mut values[..part.len().div_ceil(2)];
            let start = (start / 2 + i * BLOCKS) as u64;
            let normal = kind == RandomKind::Normal;
            if normal {
                simd::run(Pairs {
                    state,
                    start,
                    values,
                    draw: normal_pair,
                });
            } else {
                simd::run(Pairs {
                    state,
                    start,
                    values,
                    draw: uniform_pair,
                });
            }
            for (slot, &value) in part.iter_mut().zip(values.as_flattened()) {
                *slot = store(value);
            }
        }
    });
}

/// Two uniforms in F64.
#[inline(always)]
fn uniform_pair(block: [u32; 4]) -> [f64; 2] {
    [
        uniform_f64(block[0], block[1]),
        uniform_f64(block[2], block[3]),
    ]
}

/// Blocks drawn together.
const BLOCKS: usize = 64;

/// Raw words of consecutive blocks.
struct Words<'a> {
    state: State,
    start: u64,
    words: &'a mut [[u32; 4]],
}

impl Kernel for Words<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (i, words) in self.words.iter_mut().enumerate() {
            *words = self.state.block(self.start.wrapping_add(i as u64));
        }
    }
}

/// Pairs of numbers of consecutive blocks.
struct Pairs<'a, F> {
    state: State,
    start: u64,
    values: &'a mut [[f64; 2]],
    draw: F,
}

impl<F: Fn([u32; 4]) -> [f64; 2]> Kernel for Pairs<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (i, pair) in self.values.iter_mut().enumerate() {
            *pair = (self.draw)(self.state.block(self.start.wrapping_add(i as u64)));
        }
    }
}
