//! Random numbers are exactly those that core's definition gives.

mod common;

use common::*;
use drivetrain_core::random::{State, normal_pair, uniform, uniform_bits, uniform_f64};
use drivetrain_core::{DType, Primitive, RandomKind, Scalar};

const STATES: [State; 2] = [
    State {
        seed: 42,
        stream: 7,
        offset: 0,
    },
    // The counter wraps over, and its upper word is used.
    State {
        seed: u64::MAX - 5,
        stream: 1 << 63,
        offset: u64::MAX - 3,
    },
];

fn draw(kind: RandomKind, dtype: DType, dims: &[usize], state: State) -> Held {
    let state = hold_i64(&[3], &state.to_operand());
    one(Primitive::Random { kind }, &[&state], dtype, dims)
}

/// Element `i` by the definition in `random`.
fn expected(kind: RandomKind, dtype: DType, state: State, i: u64) -> Scalar {
    let word = || state.block(i / 4)[(i % 4) as usize];
    match (kind, dtype) {
        (RandomKind::Bits, _) => Scalar::I64(word() as i64),
        (RandomKind::Uniform, DType::F64) => {
            let (block, at) = (state.block(i / 2), (i % 2 * 2) as usize);
            uniform_f64(block[at], block[at + 1]).into()
        }
        (RandomKind::Uniform, _) => (uniform(word(), uniform_bits(dtype)) as f64).into(),
        (RandomKind::Normal, _) => normal_pair(state.block(i / 2))[(i % 2) as usize].into(),
    }
}

#[test]
fn exactly_as_defined() {
    let shapes: [&[usize]; 7] = [&[], &[1], &[2], &[7], &[3, 5], &[1001], &[100_003]];
    for state in STATES {
        for dims in shapes {
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                for kind in [RandomKind::Uniform, RandomKind::Normal] {
                    let out = draw(kind, dtype, dims, state);
                    for (i, got) in out.values().into_iter().enumerate() {
                        let exact = cast(expected(kind, dtype, state, i as u64), dtype);
                        assert_eq!(got, exact, "{} {dtype} {dims:?} {i}", kind.name());
                    }
                }
            }
            let out = draw(RandomKind::Bits, DType::I64, dims, state);
            for (i, got) in out.values().into_iter().enumerate() {
                assert_eq!(got, expected(RandomKind::Bits, DType::I64, state, i as u64));
            }
        }
    }
}

#[test]
fn uniforms_stay_below_one() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let values = draw(RandomKind::Uniform, dtype, &[200_000], STATES[0]).floats();
        assert!(values.iter().all(|&v| (0.0..1.0).contains(&v)), "{dtype}");
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{dtype} {mean}");
    }
}
