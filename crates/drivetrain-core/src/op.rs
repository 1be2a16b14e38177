//! Ops as plain data: the closed set of primitives and the open set of composites.
//!
//! An op says what to compute; tensors travel beside it. Every op is `Clone + Debug + PartialEq`, holds
//! no closure and no pointer, and encodes to a code with typed attributes ([`Op::encode`](crate::Op)).
//! What changes at every training step (a rate, a random offset) is an operand, never an attribute.

mod composite;
mod kinds;

pub use composite::{Composite, ConvolutionSpec, NormSpec, PadSpec, PoolSpec};
pub use kinds::{
    ActivationKind, ArgReduceOp, BinaryOp, CompareOp, CumulativeOp, RandomKind, ReduceOp,
    ScatterMode, UnaryOp,
};

use crate::{DType, MAX_DIMS, Scalar};
use std::fmt;

/// One operation of the contract.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A primitive: every backend has it.
    Primitive(Primitive),
    /// A composite: a backend may have it; otherwise its decomposition into primitives runs.
    Composite(Composite),
}

/// The primitives: closed within an ABI major, matched exhaustively by every backend.
///
/// Operands of one op have equal shapes unless said otherwise (broadcasting is done above by stride 0),
/// and dtypes that inference has checked. Inputs may have any strides; outputs are contiguous, except
/// that `Fill` and `Copy` may write a window with positive or negative strides that does not overlap itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Primitive {
    /// No input → out: every element is `value` (cast to the output's dtype).
    Fill {
        /// The value.
        value: Scalar,
    },
    /// No input → out: the element's index along `dim`, in the output's dtype (not Bool).
    Iota {
        /// The dimension counted.
        dim: u8,
    },
    /// `state` I64 \[3\] (seed, stream, offset) → out: Philox4x32-10 numbers, see [`crate::random`].
    ///
    /// Element `i` of the output (row-major) takes word `i mod 4` of counter block `offset + i div 4`.
    /// (F64 uniforms and all normals take more words; `random` says which.)
    Random {
        /// What is drawn.
        kind: RandomKind,
    },
    /// x → out of another dtype. Float to integer truncates and saturates, NaN to 0; to Bool: x ≠ 0.
    Cast {
        /// The dtype of the result.
        to: DType,
    },
    /// x → out, same dtype and shape.
    Copy,
    /// x → out.
    Unary(UnaryOp),
    /// a, b → out.
    Binary(BinaryOp),
    /// a, b → Bool.
    Compare(CompareOp),
    /// condition (Bool), a, b → out of a's dtype: a where the condition holds, else b.
    Where,
    /// x → out with the reduced dimensions kept as size 1.
    ///
    /// Sum and product have the output dtype `accumulate` for integers (I64), x's for floats, whose sums
    /// are kept in `accumulate` and whose order is fixed: it does not depend on the number of threads.
    Reduce {
        /// How.
        op: ReduceOp,
        /// Over which dimensions.
        dims: DimSet,
        /// The type that the running value has.
        accumulate: DType,
    },
    /// x → I64 with `dim` kept as size 1.
    ArgReduce {
        /// Which extreme.
        op: ArgReduceOp,
        /// Along which dimension.
        dim: u8,
    },
    /// a [batch…, M, K], b [batch…, K, N] → [batch…, M, N]; equal batch sizes.
    Matmul {
        /// The type that sums are kept in.
        accumulate: DType,
    },
    /// x, index (I64, x's rank) → out of the index's shape: out[…i…] = x[… index[…i…] …] along `dim`.
    /// Off `dim` the index is no larger than x. An index outside 0..size is an error.
    Gather {
        /// The dimension looked up.
        dim: u8,
    },
    /// In place: destination; inputs: index (I64), source (index's shape): the reverse of `Gather`.
    Scatter {
        /// The dimension written.
        dim: u8,
        /// What happens where it lands.
        mode: ScatterMode,
    },
    /// x → out: running sum or product along `dim`, kept in the accumulation type; out is I64 for integers and
    /// Bool, of x's dtype for floats.
    Cumulative {
        /// What is joined.
        op: CumulativeOp,
        /// Along which dimension.
        dim: u8,
    },
    /// x → values, indices (I64), sorted along `dim`; stable; NaN counts as the largest.
    Sort {
        /// Along which dimension.
        dim: u8,
        /// Largest first.
        descending: bool,
    },
}

/// A set of dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DimSet(u16);

impl DimSet {
    /// No dimension.
    pub const EMPTY: DimSet = DimSet(0);

    /// Of these indices; ones past [`MAX_DIMS`] are left out.
    pub fn of(dims: &[usize]) -> DimSet {
        DimSet(
            dims.iter()
                .filter(|&&d| d < MAX_DIMS)
                .fold(0, |set, d| set | 1 << d),
        )
    }

    /// The first `rank` dimensions.
    pub fn all(rank: usize) -> DimSet {
        DimSet(((1u32 << rank.min(MAX_DIMS)) - 1) as u16)
    }

    /// From its bits (bit `i`: dimension `i`); higher bits are left out.
    pub const fn from_bits(bits: u16) -> DimSet {
        DimSet(bits & ((1 << MAX_DIMS) - 1))
    }

    /// Its bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether `dim` is in it.
    pub const fn contains(self, dim: usize) -> bool {
        dim < MAX_DIMS && self.0 >> dim & 1 == 1
    }

    /// Its dimensions, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_DIMS).filter(move |&dim| self.contains(dim))
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for DimSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Op {
    /// Its name as messages, logs and counters show it: PyTorch's where it has one.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Primitive(primitive) => primitive.name(),
            Op::Composite(composite) => composite.name(),
        }
    }

    /// How many operands it updates in place (they follow the inputs in no list: see `Device::execute`).
    pub fn in_place_operands(&self) -> usize {
        match self {
            Op::Primitive(Primitive::Scatter { .. }) => 1,
            Op::Primitive(_) => 0,
            Op::Composite(composite) => composite.in_place_operands(),
        }
    }
}

impl From<Primitive> for Op {
    fn from(primitive: Primitive) -> Op {
        Op::Primitive(primitive)
    }
}

impl From<Composite> for Op {
    fn from(composite: Composite) -> Op {
        Op::Composite(composite)
    }
}

impl Primitive {
    /// PyTorch's name where it has one.
    pub fn name(&self) -> &'static str {
        match self {
            Primitive::Fill { .. } => "fill",
            Primitive::Iota { .. } => "iota",
            Primitive::Random { kind } => kind.name(),
            Primitive::Cast { .. } => "cast",
            Primitive::Copy => "copy",
            Primitive::Unary(op) => op.name(),
            Primitive::Binary(op) => op.name(),
            Primitive::Compare(op) => op.name(),
            Primitive::Where => "where",
            Primitive::Reduce { op, .. } => op.name(),
            Primitive::ArgReduce { op, .. } => op.name(),
            Primitive::Matmul { .. } => "matmul",
            Primitive::Gather { .. } => "gather",
            Primitive::Scatter { mode, .. } => mode.name(),
            Primitive::Cumulative { op, .. } => op.name(),
            Primitive::Sort { .. } => "sort",
        }
    }
}
