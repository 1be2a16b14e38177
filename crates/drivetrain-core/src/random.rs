//! Counter-based random numbers: Philox4x32-10, equal on every backend.
//!
//! Salmon, Moraes, Dror, Shaw: *Parallel random numbers: as easy as 1, 2, 3*, SC 2011. The key is the seed,
//! the counter is (offset, stream); no state is carried from one number to the next, so any worker, thread
//! or device can make any part of a sequence.
//!
//! Words of an element: `Bits` and F32, F16, BF16 uniforms use one word, so element `i` takes word `i mod 4`
//! of block `offset + i div 4`. F64 uniforms use two words: element `i` takes words `2(i mod 2)` and
//! `2(i mod 2) + 1` of block `offset + i div 2`. Normals come in pairs of two words each by Box–Muller in F64:
//! elements `2k` and `2k + 1` take block `offset + k`.

use crate::{DType, RandomKind};

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// One block of four words for a counter and a key.
///
/// ```
/// // Known answer of the Random123 distribution: counter and key of all ones.
/// let words = drivetrain_core::random::philox([u32::MAX; 4], [u32::MAX; 2]);
/// assert_eq!(words, [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
/// ```
#[inline(always)]
pub const fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    let mut round = 0;
    while round < 10 {
        let a = MULTIPLIERS[0] as u64 * c[0] as u64;
        let b = MULTIPLIERS[1] as u64 * c[2] as u64;
        c = [
            (b >> 32) as u32 ^ c[1] ^ k[0],
            b as u32,
            (a >> 32) as u32 ^ c[3] ^ k[1],
            a as u32,
        ];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
        round += 1;
    }
    c
}

/// A place in the number space: what the `state` operand of a random op holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The user's seed: the key.
    pub seed: u64,
    /// Upper half of the counter: sequences that never meet.
    pub stream: u64,
    /// Lower half of the counter: blocks already used.
    pub offset: u64,
}

impl State {
    /// The four words of block `offset + index`.
    #[inline(always)]
    pub const fn block(&self, index: u64) -> [u32; 4] {
        let at = self.offset.wrapping_add(index);
        philox(
            [
                at as u32,
                (at >> 32) as u32,
                self.stream as u32,
                (self.stream >> 32) as u32,
            ],
            [self.seed as u32, (self.seed >> 32) as u32],
        )
    }

    /// As the I64 \[3\] operand of a random op.
    pub const fn to_operand(self) -> [i64; 3] {
        [self.seed as i64, self.stream as i64, self.offset as i64]
    }

    /// From that operand.
    pub const fn from_operand(words: [i64; 3]) -> State {
        State {
            seed: words[0] as u64,
            stream: words[1] as u64,
            offset: words[2] as u64,
        }
    }
}

/// Blocks that `elements` elements of a kind and dtype use.
pub const fn blocks(kind: RandomKind, dtype: DType, elements: u64) -> u64 {
    match (kind, dtype) {
        (RandomKind::Normal, _) | (RandomKind::Uniform, DType::F64) => elements.div_ceil(2),
        _ => elements.div_ceil(4),
    }
}

/// A uniform in [0, 1) from one word: its leading `bits` bits (24 for F32, 11 for F16, 8 for BF16), exact in the dtype.
#[inline(always)]
pub const fn uniform(word: u32, bits: u32) -> f32 {
    (word >> (32 - bits)) as f32 * (1.0 / (1u32 << bits) as f32)
}

/// A uniform in [0, 1) of 53 bits from two words.
#[inline(always)]
pub const fn uniform_f64(high: u32, low: u32) -> f64 {
    let bits = ((high as u64) << 32 | low as u64) >> 11;
    bits as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Bits of a uniform in this float dtype; 24 for all but the halves.
pub const fn uniform_bits(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    }
}

/// Two independent standard normals from a block, by Box–Muller (Box and Muller 1958) in F64 with only plus,
/// minus, times, divide and square root, so that every engine without fused contraction gives the same bits.
/// Free of branches, so that a loop over it becomes vector code.
#[inline(always)]
pub fn normal_pair(block: [u32; 4]) -> [f64; 2] {
    // In (0, 1], so that the logarithm is finite.
    let radius = 1.0 - uniform_f64(block[0], block[1]);
    let turn = uniform_f64(block[2], block[3]);
    let length = (-2.0 * log(radius)).sqrt();
    let (sine, cosine) = sin_cos_turn(turn);
    [length * cosine, length * sine]
}

/// Natural logarithm of a normal number in (0, 1]: the exponent plus an odd series in (m-1)/(m+1).
#[inline(always)]
fn log(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    // 2·atanh(t) with |t| ≤ 0.1716: eleven terms leave an error below 1e-17.
    let mut sum = 0.0;
    let mut n = 21;
    while n >= 1 {
        sum = sum * square + 1.0 / n as f64;
        n -= 2;
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * t * sum
}

/// Sine and cosine of `turn` full turns, 0 ≤ turn < 1, by Taylor series on an eighth of a turn.
#[inline(always)]
fn sin_cos_turn(turn: f64) -> (f64, f64) {
    let quarter = (turn * 4.0 + 0.5).floor();
    let angle = (turn * 4.0 - quarter) * std::f64::consts::FRAC_PI_2;
    let square = angle * angle;
    let (mut sine, mut cosine) = (1.0, 1.0);
    let mut n = 18.0;
    while n >= 2.0 {
        // Horner: 1 - x²/((n)(n+1))·(…) for sine, 1 - x²/((n-1)n)·(…) for cosine.
        sine = 1.0 - square / (n * (n + 1.0)) * sine;
        cosine = 1.0 - square / ((n - 1.0) * n) * cosine;
        n -= 2.0;
    }
    let sine = sine * angle;
    // Quarter 4 is quarter 0 again.
    let odd = (quarter == 1.0) | (quarter == 3.0);
    let (a, b) = if odd { (cosine, sine) } else { (sine, cosine) };
    let a = if (quarter == 2.0) | (quarter == 3.0) {
        -a
    } else {
        a
    };
    let b = if (quarter == 1.0) | (quarter == 2.0) {
        -b
    } else {
        b
    };
    (a, b)
}

/// A small sequential generator over one stream, for hosts: shuffles, crops, initialisers.
///
/// ```
/// use drivetrain_core::random::Generator;
/// let (mut a, mut b) = (Generator::new(1, 2), Generator::new(1, 2));
/// assert_eq!(a.uniform(), b.uniform());
/// assert!(a.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Generator {
    state: State,
    words: [u32; 4],
    left: usize,
}

impl Generator {
    /// The sequence of this seed and stream.
    pub const fn new(seed: u64, stream: u64) -> Generator {
        Generator {
            state: State {
                seed,
                stream,
                offset: 0,
            },
            words: [0; 4],
            left: 0,
        }
    }

    /// The next word.
    pub fn word(&mut self) -> u32 {
        if self.left == 0 {
            self.words = self.state.block(0);
            self.state.offset = self.state.offset.wrapping_add(1);
            self.left = 4;
        }
        self.left -= 1;
        self.words[3 - self.left]
    }

    /// A uniform in [0, 1) with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let high = self.word();
        uniform_f64(high, self.word())
    }

    /// A standard normal.
    pub fn normal(&mut self) -> f64 {
        let block = [self.word(), self.word(), self.word(), self.word()];
        normal_pair(block)[0]
    }

    /// An integer in `0..bound`, without bias (Lemire 2019); 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let reject_below = bound.wrapping_neg() % bound;
        loop {
            let word = (self.word() as u64) << 32 | self.word() as u64;
            let wide = word as u128 * bound as u128;
            if wide as u64 >= reject_below {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A random order of `0..n` (Fisher–Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_random123() {
        // kat_vectors of the Random123 distribution, philox4x32 10 rounds.
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]
        );
        assert_eq!(
            philox(
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0]
            ),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    #[test]
    fn own_functions_agree_with_the_standard_ones() {
        let mut generator = Generator::new(3, 0);
        for _ in 0..20_000 {
            let x = 1.0 - generator.uniform();
            assert!(
                (log(x) - x.ln()).abs() <= 1e-15 * x.ln().abs().max(1.0),
                "log {x}"
            );
            let turn = generator.uniform();
            let (sine, cosine) = sin_cos_turn(turn);
            let angle = turn * std::f64::consts::TAU;
            assert!((sine - angle.sin()).abs() < 2e-15, "sin {turn}");
            assert!((cosine - angle.cos()).abs() < 2e-15, "cos {turn}");
        }
    }

    #[test]
    fn normals_have_mean_0_and_variance_1() {
        let state = State {
            seed: 1,
            stream: 0,
            offset: 0,
        };
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for i in 0..n {
            for x in normal_pair(state.block(i)) {
                sum += x;
                squares += x * x;
            }
        }
        assert!((sum / (2 * n) as f64).abs() < 0.01);
        assert!((squares / (2 * n) as f64 - 1.0).abs() < 0.01);
    }

    #[test]
    fn permutations_are_complete() {
        let mut order = Generator::new(5, 1).permutation(1000);
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}
