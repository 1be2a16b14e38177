//! Round trips of randomly made ops, and garbage.

use super::*;
use crate::random::Generator;
use crate::{
    ActivationKind, ArgReduceOp, BinaryOp, CompareOp, Composite, ConvolutionSpec, CumulativeOp,
    DimSet, ErrorKind, MAX_DIMS, NormSpec, PadSpec, PoolSpec, Primitive, RandomKind, ReduceOp,
    ScatterMode, Shape, UnaryOp,
};

/// Makes random attributes.
struct Maker(Generator);

impl Maker {
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    fn bool(&mut self) -> bool {
        self.0.below(2) == 1
    }

    fn dim(&mut self) -> u8 {
        self.0.below(12) as u8
    }

    fn float(&mut self) -> f64 {
        let odd = [0.0, -0.0, 1e300, f64::INFINITY, f64::NAN, -f64::NAN, 5e-324];
        if self.0.below(3) == 0 {
            self.of(&odd)
        } else {
            self.0.normal()
        }
    }

    fn size(&mut self) -> usize {
        self.0.below(1000) as usize
    }

    fn sizes(&mut self) -> [usize; 3] {
        std::array::from_fn(|_| self.size())
    }

    fn int(&mut self) -> i64 {
        let odd = [0, -100, 255, i64::MIN, i64::MAX];
        self.of(&odd)
    }

    fn scalar(&mut self) -> Scalar {
        match self.0.below(3) {
            0 => Scalar::F64(self.float()),
            1 => Scalar::I64(self.int()),
            _ => Scalar::Bool(self.bool()),
        }
    }

    fn norm(&mut self) -> NormSpec {
        NormSpec {
            dims: self.dim(),
            eps: self.float(),
            affine: self.bool(),
        }
    }

    fn convolution(&mut self) -> ConvolutionSpec {
        ConvolutionSpec {
            spatial: self.dim(),
            stride: self.sizes(),
            padding: self.sizes(),
            dilation: self.sizes(),
            groups: self.size(),
            sizes: self.sizes(),
        }
    }

    fn pool(&mut self) -> PoolSpec {
        PoolSpec {
            spatial: self.dim(),
            kernel: self.sizes(),
            stride: self.sizes(),
            padding: self.sizes(),
            dilation: self.sizes(),
            ceil_mode: self.bool(),
            count_include_pad: self.bool(),
            sizes: self.sizes(),
        }
    }

    fn pad(&mut self) -> PadSpec {
        let rank = self.0.below(MAX_DIMS as u64 + 1) as usize;
        let dims: Vec<usize> = (0..rank).map(|_| self.0.below(4) as usize).collect();
        PadSpec {
            shape: Shape::new(&dims).unwrap(),
            start: std::array::from_fn(|_| self.size()),
            step: std::array::from_fn(|_| self.0.below(9) as isize - 4),
            value: self.scalar(),
        }
    }

    fn primitive(&mut self, which: u64) -> Primitive {
        match which {
            0 => Primitive::Fill {
                value: self.scalar(),
            },
            1 => Primitive::Iota { dim: self.dim() },
            2 => Primitive::Random {
                kind: self.of(RandomKind::ALL),
            },
            3 => Primitive::Cast {
                to: self.of(&DType::ALL),
            },
            4 => Primitive::Copy,
            5 => Primitive::Unary(self.of(UnaryOp::ALL)),
            6 => Primitive::Binary(self.of(BinaryOp::ALL)),
            7 => Primitive::Compare(self.of(CompareOp::ALL)),
            8 => Primitive::Where,
            9 => Primitive::Reduce {
                op: self.of(ReduceOp::ALL),
                dims: DimSet::from_bits(self.0.word() as u16),
                accumulate: self.of(&DType::ALL),
            },
            10 => Primitive::ArgReduce {
                op: self.of(ArgReduceOp::ALL),
                dim: self.dim(),
            },
            11 => Primitive::Matmul {
                accumulate: self.of(&DType::ALL),
            },
            12 => Primitive::Gather { dim: self.dim() },
            13 => Primitive::Scatter {
                dim: self.dim(),
                mode: self.of(ScatterMode::ALL),
            },
            14 => Primitive::Cumulative {
                op: self.of(CumulativeOp::ALL),
                dim: self.dim(),
            },
            _ => Primitive::Sort {
                dim: self.dim(),
                descending: self.bool(),
            },
        }
    }

    fn composite(&mut self, which: u64) -> Composite {
        let (dim, log) = (self.dim(), self.bool());
        let (eps, affine) = (self.float(), self.bool());
        let (kind, alpha, beta) = (self.of(ActivationKind::ALL), self.float(), self.float());
        let (ignore_index, label_smoothing, weighted) = (self.int(), self.float(), self.bool());
        match which {
            0 => Composite::BinaryScalar {
                op: self.of(BinaryOp::ALL),
                scalar: self.scalar(),
                reversed: self.bool(),
            },
            1 => Composite::CompareScalar {
                op: self.of(CompareOp::ALL),
                scalar: self.scalar(),
            },
            2 => Composite::Activation { kind, alpha, beta },
            3 => Composite::ActivationGrad { kind, alpha, beta },
            4 => Composite::Softmax { dim, log },
            5 => Composite::SoftmaxGrad { dim, log },
            6 => Composite::LayerNorm(self.norm()),
            7 => Composite::LayerNormGrad(self.norm()),
            8 => Composite::RmsNorm(self.norm()),
            9 => Composite::RmsNormGrad(self.norm()),
            10 => Composite::BatchNorm { eps, affine },
            11 => Composite::BatchNormGrad { eps, affine },
            12 => Composite::CrossEntropy {
                ignore_index,
                label_smoothing,
                weighted,
            },
            13 => Composite::CrossEntropyGrad {
                ignore_index,
                label_smoothing,
                weighted,
            },
            14 => Composite::Convolution(self.convolution()),
            15 => Composite::ConvolutionInputGrad(self.convolution()),
            16 => Composite::ConvolutionWeightGrad(self.convolution()),
            17 => Composite::MaxPool(self.pool()),
            18 => Composite::MaxPoolGrad(self.pool()),
            19 => Composite::AvgPool(self.pool()),
            20 => Composite::AvgPoolGrad(self.pool()),
            21 => Composite::IndexSelect { dim },
            22 => Composite::IndexSelectGrad {
                dim,
                size: self.size(),
            },
            23 => Composite::Linear,
            24 => Composite::Concat { dim },
            25 => Composite::Pad(Box::new(self.pad())),
            26 => Composite::SgdStep {
                momentum: alpha,
                dampening: beta,
                weight_decay: eps,
                nesterov: affine,
                maximize: log,
            },
            _ => Composite::AdamStep {
                beta1: alpha,
                beta2: beta,
                eps,
                weight_decay: label_smoothing,
                decoupled: log,
                amsgrad: affine,
                maximize: weighted,
            },
        }
    }
}

const PRIMITIVES: u64 = 16;
const COMPOSITES: u64 = 28;

#[test]
fn every_op_survives_the_round_trip() {
    let mut maker = Maker(Generator::new(2, 0));
    let mut seen = std::collections::HashSet::new();
    for round in 0..20_000 {
        let which = round % (PRIMITIVES + COMPOSITES);
        let op = if which < PRIMITIVES {
            Op::from(maker.primitive(which))
        } else {
            Op::from(maker.composite(which - PRIMITIVES))
        };
        let encoded = op.encode();
        let back = Op::decode(&encoded).unwrap();
        // Encoded forms compare floats by their bits, so that NaN is held to the same.
        assert_eq!(back.encode(), encoded, "{op:?}");
        let has_nan = format!("{op:?}").contains("NaN");
        assert!(has_nan || back == op, "{op:?} became {back:?}");
        seen.insert(encoded.code);
    }
    assert_eq!(seen.len() as u64, PRIMITIVES + COMPOSITES);
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
