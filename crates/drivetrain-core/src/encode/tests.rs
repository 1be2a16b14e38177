//! Round trips of randomly made ops, and garbage.

use super::*;
use crate::random::Generator;
use crate::{Composite, DimSet, ErrorKind, Primitive, ReduceOp};
use maker::{KINDS, Maker};

mod maker;
mod ops {
    pub use crate::*;
}

#[test]
fn every_op_survives_the_round_trip() {
    let mut maker = Maker(Generator::new(2, 0));
    let mut seen = std::collections::HashSet::new();
    for round in 0..20_000 {
        let op = maker.op(round);
        let encoded = op.encode();
        let back = Op::decode(&encoded).unwrap();
        // Encoded forms compare floats by their bits, so that NaN is held to the same.
        assert_eq!(back.encode(), encoded, "{op:?}");
        let has_nan = format!("{op:?}").contains("NaN");
        assert!(has_nan || back == op, "{op:?} became {back:?}");
        seen.insert(encoded.code);
    }
    assert_eq!(seen.len() as u64, KINDS);
}

#[test]
fn garbage_is_refused_without_a_panic() {
    let mut maker = Maker(Generator::new(3, 0));
    let mut decoded = 0;
    for _ in 0..200_000 {
        let code = match maker.0.below(3) {
            0 => maker.0.word(),
            1 => maker.0.below(20) as u32,
            _ => 250 + maker.0.below(40) as u32,
        };
        let count = maker.0.below(9);
        let attribute = |maker: &mut Maker| match maker.0.below(5) {
            0 => Attribute::Int(maker.int()),
            1 => Attribute::Int(maker.0.below(30) as i64),
            2 => Attribute::Float(maker.float()),
            3 => Attribute::Bool(maker.bool()),
            _ => Attribute::Ints((0..maker.0.below(15)).map(|_| maker.int()).collect()),
        };
        let attributes = (0..count).map(|_| attribute(&mut maker)).collect();
        let encoded = Encoded { code, attributes };
        if let Ok(op) = Op::decode(&encoded) {
            assert_eq!(op.encode().code, code);
            decoded += 1;
        }
    }
    assert!(decoded > 100, "{decoded} of the ops were ops");
}

#[test]
fn what_is_wrong_is_said() {
    let decode = |code, attributes| Op::decode(&Encoded { code, attributes }).unwrap_err();
    assert_eq!(decode(99, vec![]).kind(), ErrorKind::Unsupported);
    assert_eq!(
        decode(codes::UNARY, vec![Attribute::Int(999)]).kind(),
        ErrorKind::Unsupported
    );
    let surplus = decode(codes::COPY, vec![Attribute::Int(1)]);
    assert_eq!(surplus.kind(), ErrorKind::Unsupported);
    assert_eq!(decode(codes::IOTA, vec![]).kind(), ErrorKind::Format);
    let wrong = decode(codes::IOTA, vec![Attribute::Float(1.0)]).to_string();
    assert!(
        wrong.contains("attribute 0 of op code 2 is Float(1.0), Int expected"),
        "{wrong}"
    );
    assert_eq!(
        decode(codes::IOTA, vec![Attribute::Int(-1)]).kind(),
        ErrorKind::Format
    );
    let huge = vec![
        Attribute::Ints(vec![i64::MAX, 8]),
        Attribute::Ints(vec![0, 0]),
    ];
    assert!(decode(codes::PAD, huge).to_string().contains("overflow"));
}

#[test]
fn codes_do_not_change() {
    // A sample, written out: these numbers are in plugins that are already built.
    assert_eq!(Op::from(Primitive::Copy).code(), 5);
    assert_eq!(Op::from(Primitive::Where).code(), 9);
    assert_eq!(Op::from(Composite::Linear).code(), 279);
    let encoded = Op::from(Primitive::Reduce {
        op: ReduceOp::Max,
        dims: DimSet::of(&[0, 2]),
        accumulate: DType::F64,
    })
    .encode();
    let ints = [2, 0b101, 1].map(Attribute::Int);
    assert_eq!((encoded.code, &encoded.attributes[..]), (10, &ints[..]));
}
