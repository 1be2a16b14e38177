//! Ops with random attributes, every variant in turn, for tests. Included by core's unit tests and by `tests/`,
//! which name the crate differently: `super::ops` is whichever it is.

use super::ops::random::Generator;
use super::ops::{
    ActivationKind, ArgReduceOp, BinaryOp, CompareOp, Composite, ConvolutionSpec, CumulativeOp,
    DType, DimSet, MAX_DIMS, NormSpec, Op, PadSpec, PoolSpec, Primitive, RandomKind, ReduceOp,
    Scalar, ScatterMode, Shape, UnaryOp,
};

const PRIMITIVES: u64 = 16;
const COMPOSITES: u64 = 28;

/// How many kinds of op [`Maker::op`] makes.
pub const KINDS: u64 = PRIMITIVES + COMPOSITES;

/// Makes random attributes.
pub struct Maker(pub Generator);

impl Maker {
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    pub fn bool(&mut self) -> bool {
        self.0.below(2) == 1
    }

    pub fn dim(&mut self) -> u8 {
        self.0.below(12) as u8
    }

    pub fn float(&mut self) -> f64 {
        let odd = [0.0, -0.0, 1e300, f64::INFINITY, f64::NAN, -f64::NAN, 5e-324];
        if self.0.below(3) == 0 {
            self.of(&odd)
        } else {
            self.0.normal()
        }
    }

    pub fn size(&mut self) -> usize {
        self.0.below(1000) as usize
    }

    pub fn sizes(&mut self) -> [usize; 3] {
        std::array::from_fn(|_| self.size())
    }

    pub fn int(&mut self) -> i64 {
        let odd = [0, -100, 255, i64::MIN, i64::MAX];
        self.of(&odd)
    }

    pub fn scalar(&mut self) -> Scalar {
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

    /// An op of kind `which mod KINDS`.
    pub fn op(&mut self, which: u64) -> Op {
        let which = which % KINDS;
        if which < PRIMITIVES {
            Op::from(self.primitive(which))
        } else {
            Op::from(self.composite(which - PRIMITIVES))
        }
    }
}
