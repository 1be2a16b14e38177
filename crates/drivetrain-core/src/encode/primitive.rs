//! Primitives to attributes and back.

use super::{Reader, Writer, codes};
use crate::{
    ArgReduceOp, BinaryOp, CompareOp, CumulativeOp, DimSet, Primitive, RandomKind, ReduceOp,
    Result, ScatterMode, UnaryOp,
};

pub(super) const fn code(op: &Primitive) -> u32 {
    match op {
        Primitive::Fill { .. } => codes::FILL,
        Primitive::Iota { .. } => codes::IOTA,
        Primitive::Random { .. } => codes::RANDOM,
        Primitive::Cast { .. } => codes::CAST,
        Primitive::Copy => codes::COPY,
        Primitive::Unary(_) => codes::UNARY,
        Primitive::Binary(_) => codes::BINARY,
        Primitive::Compare(_) => codes::COMPARE,
        Primitive::Where => codes::WHERE,
        Primitive::Reduce { .. } => codes::REDUCE,
        Primitive::ArgReduce { .. } => codes::ARG_REDUCE,
        Primitive::Matmul { .. } => codes::MATMUL,
        Primitive::Gather { .. } => codes::GATHER,
        Primitive::Scatter { .. } => codes::SCATTER,
        Primitive::Cumulative { .. } => codes::CUMULATIVE,
        Primitive::Sort { .. } => codes::SORT,
    }
}

/// The number of the variant that parametrises it.
pub(super) const fn variant(op: &Primitive) -> u32 {
    match *op {
        Primitive::Random { kind } => kind as u32,
        Primitive::Cast { to } => to as u32,
        Primitive::Unary(op) => op as u32,
        Primitive::Binary(op) => op as u32,
        Primitive::Compare(op) => op as u32,
        Primitive::Reduce { op, .. } => op as u32,
        Primitive::ArgReduce { op, .. } => op as u32,
        Primitive::Scatter { mode, .. } => mode as u32,
        Primitive::Cumulative { op, .. } => op as u32,
        Primitive::Fill { .. }
        | Primitive::Iota { .. }
        | Primitive::Copy
        | Primitive::Where
        | Primitive::Matmul { .. }
        | Primitive::Gather { .. }
        | Primitive::Sort { .. } => 0,
    }
}

pub(super) fn encode(op: &Primitive, w: &mut Writer) {
    match *op {
        Primitive::Fill { value } => w.scalar(value),
        Primitive::Iota { dim } | Primitive::Gather { dim } => w.int(dim.into()),
        Primitive::Random { .. }
        | Primitive::Cast { .. }
        | Primitive::Unary(_)
        | Primitive::Binary(_)
        | Primitive::Compare(_) => w.code(variant(op)),
        Primitive::Copy | Primitive::Where => w,
        Primitive::Reduce {
            dims, accumulate, ..
        } => (w.code(variant(op)))
            .int(dims.bits().into())
            .code(accumulate as u32),
        Primitive::ArgReduce { dim, .. }
        | Primitive::Scatter { dim, .. }
        | Primitive::Cumulative { dim, .. } => w.code(variant(op)).int(dim.into()),
        Primitive::Matmul { accumulate } => w.code(accumulate as u32),
        Primitive::Sort { dim, descending } => w.int(dim.into()).bool(descending),
    };
}

pub(super) fn decode(r: &mut Reader) -> Result<Primitive> {
    Ok(match r.code {
        codes::FILL => Primitive::Fill { value: r.scalar()? },
        codes::IOTA => Primitive::Iota { dim: r.dim()? },
        codes::RANDOM => Primitive::Random {
            kind: r.variant(RandomKind::from_code)?,
        },
        codes::CAST => Primitive::Cast { to: r.dtype()? },
        codes::COPY => Primitive::Copy,
        codes::UNARY => Primitive::Unary(r.variant(UnaryOp::from_code)?),
        codes::BINARY => Primitive::Binary(r.variant(BinaryOp::from_code)?),
        codes::COMPARE => Primitive::Compare(r.variant(CompareOp::from_code)?),
        codes::WHERE => Primitive::Where,
        codes::REDUCE => Primitive::Reduce {
            op: r.variant(ReduceOp::from_code)?,
            dims: DimSet::from_bits(r.fitting("a set of dimensions")?),
            accumulate: r.dtype()?,
        },
        codes::ARG_REDUCE => Primitive::ArgReduce {
            op: r.variant(ArgReduceOp::from_code)?,
            dim: r.dim()?,
        },
        codes::MATMUL => Primitive::Matmul {
            accumulate: r.dtype()?,
        },
        codes::GATHER => Primitive::Gather { dim: r.dim()? },
        codes::SCATTER => Primitive::Scatter {
            mode: r.variant(ScatterMode::from_code)?,
            dim: r.dim()?,
        },
        codes::CUMULATIVE => Primitive::Cumulative {
            op: r.variant(CumulativeOp::from_code)?,
            dim: r.dim()?,
        },
        codes::SORT => Primitive::Sort {
            dim: r.dim()?,
            descending: r.bool()?,
        },
        _ => return Err(r.unknown()),
    })
}
