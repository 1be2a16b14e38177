//! The comparisons by name, and how each makes its op and operands.

use super::place::{Operands, Placed};
use crate::reference::HostValue;
use drivetrain_core::random::Generator;
use drivetrain_core::{
    ActivationKind, ArgReduceOp, BinaryOp, CompareOp, Composite, CumulativeOp, DType, DimSet,
    Layout, Meta, Op, Primitive, RandomKind, ReduceOp, Result, Scalar, ScatterMode, Shape, UnaryOp,
};

/// One op on its operands.
pub(super) struct Trial {
    pub op: Op,
    pub operands: Operands,
    /// Whether floats must be equal.
    pub exact: bool,
    /// How many times the dtype's epsilon may separate results.
    pub slack: f64,
}

type Make = fn(&mut Maker) -> Result<Trial>;

/// All of them.
pub(super) const COMPARISONS: &[(&str, Make)] = &[
    ("fill", fill),
    ("iota", iota),
    ("random", random),
    ("cast", cast),
    ("copy", copy),
    ("unary", unary),
    ("binary", binary),
    ("compare", compare),
    ("where", choose),
    ("reduce", reduce),
    ("arg_reduce", arg_reduce),
    ("matmul", matmul),
    ("gather", gather),
    ("scatter", scatter),
    ("cumulative", cumulative),
    ("sort", sort),
    ("binary_scalar", binary_scalar),
    ("compare_scalar", compare_scalar),
    ("activation", activation),
    ("activation_backward", activation_backward),
    ("softmax", softmax),
    ("softmax_backward", softmax_backward),
];

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
const NUMBERS: [DType; 7] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::U8,
];

/// Makes operands.
pub(super) struct Maker(pub Generator);

impl Maker {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Up to four dimensions, now and then a long one.
    fn dims(&mut self) -> Vec<usize> {
        let rank = self.below(5);
        let mut dims: Vec<usize> = (0..rank).map(|_| 1 + self.below(5)).collect();
        if rank > 0 && self.below(3) == 0 {
            let at = self.below(rank);
            dims[at] = 8 + self.below(90);
        }
        dims
    }

    /// As `dims`, of at least one dimension; and one of them.
    fn dims_and_dim(&mut self) -> (Vec<usize>, usize) {
        let mut dims = self.dims();
        if dims.is_empty() {
            dims.push(1 + self.below(9));
        }
        let dim = self.below(dims.len());
        (dims, dim)
    }

    /// A number that fits the dtype: small integers; normals with the odd zero, NaN and infinity for floats.
    fn number(&mut self, dtype: DType) -> f64 {
        match dtype {
            DType::Bool => self.below(2) as f64,
            DType::U8 => self.below(256) as f64,
            DType::I32 | DType::I64 => self.below(41) as f64 - 20.0,
            _ => match self.below(40) {
                0 => self.of(&[0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
                1..=5 => self.below(9) as f64 - 4.0,
                _ => self.0.normal() * 2.0,
            },
        }
    }

    fn value(&mut self, dtype: DType, dims: &[usize]) -> Result<HostValue> {
        let values: Vec<f64> = (0..dims.iter().product())
            .map(|_| self.number(dtype))
            .collect();
        HostValue::new(dtype, dims, &values)
    }

    /// A view of this shape: dimensions permuted, and each plain, reversed, stepped or broadcast.
    fn input(&mut self, dtype: DType, dims: &[usize]) -> Result<Placed> {
        let kinds: Vec<usize> = dims.iter().map(|_| self.below(6)).collect();
        let order = self.0.permutation(dims.len());
        let base = |d: usize| match kinds[d] {
            0 => 2 * dims[d],
            1 => 1,
            _ => dims[d],
        };
        let stored: Vec<usize> = order.iter().map(|&d| base(d)).collect();
        let storage = self.value(dtype, &stored)?;
        let mut back = vec![0; dims.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(place, &d)| back[d] = place);
        let mut layout = Layout::contiguous(storage.meta.shape).permute(&back);
        for (d, &size) in dims.iter().enumerate() {
            layout = match kinds[d] {
                0 => layout.slice(d, 1, 2, size)?,
                2 => layout.slice(d, size - 1, -1, size)?,
                _ => layout,
            };
        }
        let layout = layout.expand(&Shape::new(dims)?)?;
        Ok(Placed { storage, layout })
    }

    /// Indices below `bound`.
    fn index(&mut self, dims: &[usize], bound: usize) -> Result<Placed> {
        let values: Vec<f64> = (0..dims.iter().product())
            .map(|_| self.below(bound) as f64)
            .collect();
        Ok(placed(HostValue::new(DType::I64, dims, &values)?))
    }
}

/// All of a value.
fn placed(storage: HostValue) -> Placed {
    let layout = Layout::contiguous(storage.meta.shape);
    Placed { storage, layout }
}

fn trial<const N: usize>(op: impl Into<Op>, inputs: [Result<Placed>; N]) -> Result<Trial> {
    Ok(Trial {
        op: op.into(),
        operands: Operands {
            inputs: inputs.into_iter().collect::<Result<_>>()?,
            in_place: Vec::new(),
            outputs: Vec::new(),
        },
        exact: false,
        slack: 16.0,
    })
}

fn exact<const N: usize>(op: impl Into<Op>, inputs: [Result<Placed>; N]) -> Result<Trial> {
    Ok(Trial {
        exact: true,
        ..trial(op, inputs)?
    })
}

/// An op that takes dtype and shape from its output.
fn created<const N: usize>(
    op: Primitive,
    inputs: [Result<Placed>; N],
    dtype: DType,
    dims: &[usize],
) -> Result<Trial> {
    let mut trial = exact(op, inputs)?;
    trial.operands.outputs = vec![Meta::new(dtype, Shape::new(dims)?)];
    Ok(trial)
}

fn fill(m: &mut Maker) -> Result<Trial> {
    let (dtype, dims) = (m.of(&DType::ALL), m.dims());
    let value = Scalar::F64(m.number(dtype));
    created(Primitive::Fill { value }, [], dtype, &dims)
}

fn iota(m: &mut Maker) -> Result<Trial> {
    let (dims, dim) = m.dims_and_dim();
    let dtype = m.of(&NUMBERS);
    created(Primitive::Iota { dim: dim as u8 }, [], dtype, &dims)
}

fn random(m: &mut Maker) -> Result<Trial> {
    let (kind, dims) = (m.of(RandomKind::ALL), m.dims());
    let dtype = if kind == RandomKind::Bits {
        DType::I64
    } else {
        m.of(&FLOATS)
    };
    let state = [m.below(1 << 40), m.below(1 << 40), m.below(1 << 40)].map(|v| v as f64);
    let state = HostValue::new(DType::I64, &[3], &state).map(placed);
    created(Primitive::Random { kind }, [state], dtype, &dims)
}

fn cast(m: &mut Maker) -> Result<Trial> {
    let (from, to, dims) = (m.of(&DType::ALL), m.of(&DType::ALL), m.dims());
    exact(Primitive::Cast { to }, [m.input(from, &dims)])
}

fn copy(m: &mut Maker) -> Result<Trial> {
    let (dtype, dims) = (m.of(&DType::ALL), m.dims());
    exact(Primitive::Copy, [m.input(dtype, &dims)])
}

/// A dtype that the op takes, by asking inference.
fn taken(m: &mut Maker, op: &Op, operands: usize) -> DType {
    let takes = |dtype: &DType| {
        let meta = Meta::new(*dtype, Shape::SCALAR);
        drivetrain_core::infer(op, &vec![meta; operands], &[]).is_ok()
    };
    let dtypes: Vec<DType> = DType::ALL.into_iter().filter(takes).collect();
    m.of(&dtypes)
}

fn unary(m: &mut Maker) -> Result<Trial> {
    let op = Op::from(Primitive::Unary(m.of(UnaryOp::ALL)));
    let (dtype, dims) = (taken(m, &op, 1), m.dims());
    trial(op, [m.input(dtype, &dims)])
}

fn binary(m: &mut Maker) -> Result<Trial> {
    let op = Op::from(Primitive::Binary(m.of(BinaryOp::ALL)));
    let (dtype, dims) = (taken(m, &op, 2), m.dims());
    trial(op, [m.input(dtype, &dims), m.input(dtype, &dims)])
}

fn compare(m: &mut Maker) -> Result<Trial> {
    let op = Primitive::Compare(m.of(CompareOp::ALL));
    let (dtype, dims) = (m.of(&DType::ALL), m.dims());
    trial(op, [m.input(dtype, &dims), m.input(dtype, &dims)])
}

fn choose(m: &mut Maker) -> Result<Trial> {
    let (dtype, dims) = (m.of(&DType::ALL), m.dims());
    let inputs = [
        m.input(DType::Bool, &dims),
        m.input(dtype, &dims),
        m.input(dtype, &dims),
    ];
    exact(Primitive::Where, inputs)
}

/// Sums of `count` numbers of this size may differ by more than one rounding.
fn summed(trial: Result<Trial>, count: usize) -> Result<Trial> {
    let slack = 16.0 * (1.0 + count as f64);
    Ok(Trial { slack, ..trial? })
}

fn reduce(m: &mut Maker) -> Result<Trial> {
    let (dims, _) = m.dims_and_dim();
    let (op, dtype) = (m.of(ReduceOp::ALL), m.of(&DType::ALL));
    let set = DimSet::from_bits(1 + m.below((1 << dims.len()) - 1) as u16);
    let op = Primitive::Reduce {
        op,
        dims: set,
        accumulate: dtype.accumulator(),
    };
    let count = set.iter().map(|d| dims[d]).product();
    summed(trial(op, [m.input(dtype, &dims)]), count)
}

fn arg_reduce(m: &mut Maker) -> Result<Trial> {
    let ((dims, dim), dtype) = (m.dims_and_dim(), m.of(&NUMBERS));
    let (op, dim) = (m.of(ArgReduceOp::ALL), dim as u8);
    exact(Primitive::ArgReduce { op, dim }, [m.input(dtype, &dims)])
}

fn matmul(m: &mut Maker) -> Result<Trial> {
    let dtype = m.of(&NUMBERS);
    let mut a: Vec<usize> = (0..m.below(3)).map(|_| 1 + m.below(3)).collect();
    let mut b = a.clone();
    let (rows, inner, columns) = (1 + m.below(20), 1 + m.below(40), 1 + m.below(20));
    a.extend([rows, inner]);
    b.extend([inner, columns]);
    let op = Primitive::Matmul {
        accumulate: dtype.accumulator(),
    };
    summed(trial(op, [m.input(dtype, &a), m.input(dtype, &b)]), inner)
}

/// An index's shape: no larger than `dims` off `dim`.
fn index_dims(m: &mut Maker, dims: &[usize], dim: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = dims.iter().map(|&size| 1 + m.below(size)).collect();
    sizes[dim] = 1 + m.below(7);
    sizes
}

fn gather(m: &mut Maker) -> Result<Trial> {
    let ((dims, dim), dtype) = (m.dims_and_dim(), m.of(&DType::ALL));
    let sizes = index_dims(m, &dims, dim);
    let inputs = [m.input(dtype, &dims), m.index(&sizes, dims[dim])];
    exact(Primitive::Gather { dim: dim as u8 }, inputs)
}

fn scatter(m: &mut Maker) -> Result<Trial> {
    let ((dims, dim), dtype) = (m.dims_and_dim(), m.of(&NUMBERS));
    let mode = m.of(ScatterMode::ALL);
    let sizes = index_dims(m, &dims, dim);
    let inputs = [m.index(&sizes, dims[dim]), m.input(dtype, &sizes)];
    let op = Primitive::Scatter {
        dim: dim as u8,
        mode,
    };
    let mut trial = summed(trial(op, inputs), sizes[dim])?;
    trial.operands.in_place = vec![placed(m.value(dtype, &dims)?)];
    Ok(trial)
}

fn cumulative(m: &mut Maker) -> Result<Trial> {
    let ((dims, dim), dtype) = (m.dims_and_dim(), m.of(&DType::ALL));
    let op = m.of(CumulativeOp::ALL);
    let count = dims[dim];
    let op = Primitive::Cumulative { op, dim: dim as u8 };
    summed(trial(op, [m.input(dtype, &dims)]), count)
}

fn sort(m: &mut Maker) -> Result<Trial> {
    let ((dims, dim), dtype) = (m.dims_and_dim(), m.of(&DType::ALL));
    let descending = m.below(2) == 1;
    let dim = dim as u8;
    exact(Primitive::Sort { dim, descending }, [m.input(dtype, &dims)])
}

fn binary_scalar(m: &mut Maker) -> Result<Trial> {
    let (op, reversed) = (m.of(BinaryOp::ALL), m.below(2) == 1);
    let dtype = taken(m, &Primitive::Binary(op).into(), 2);
    let (scalar, dims) = (Scalar::F64(m.number(dtype)), m.dims());
    let op = Composite::BinaryScalar {
        op,
        scalar,
        reversed,
    };
    trial(op, [m.input(dtype, &dims)])
}

fn compare_scalar(m: &mut Maker) -> Result<Trial> {
    let (op, dtype, dims) = (m.of(CompareOp::ALL), m.of(&DType::ALL), m.dims());
    let scalar = Scalar::F64(m.number(dtype));
    trial(
        Composite::CompareScalar { op, scalar },
        [m.input(dtype, &dims)],
    )
}

/// PyTorch's defaults, or something near.
fn parameters(kind: ActivationKind) -> (f64, f64) {
    match kind {
        ActivationKind::Softplus => (1.0, 20.0),
        ActivationKind::HardTanh => (-1.0, 1.5),
        ActivationKind::Selu => (1.673_263_242_354_377_2, 1.050_700_987_355_480_5),
        ActivationKind::LeakyRelu => (0.01, 0.0),
        _ => (0.75, 0.0),
    }
}

fn activation(m: &mut Maker) -> Result<Trial> {
    let (kind, dtype, dims) = (m.of(ActivationKind::ALL), m.of(&FLOATS), m.dims());
    let (alpha, beta) = parameters(kind);
    trial(
        Composite::Activation { kind, alpha, beta },
        [m.input(dtype, &dims)],
    )
}

fn activation_backward(m: &mut Maker) -> Result<Trial> {
    let (kind, dtype, dims) = (m.of(ActivationKind::ALL), m.of(&FLOATS), m.dims());
    let (alpha, beta) = parameters(kind);
    let inputs = [m.input(dtype, &dims), m.input(dtype, &dims)];
    trial(Composite::ActivationGrad { kind, alpha, beta }, inputs)
}

fn softmax(m: &mut Maker) -> Result<Trial> {
    let ((dims, dim), dtype) = (m.dims_and_dim(), m.of(&FLOATS));
    let (dim, log) = (dim as u8, m.below(2) == 1);
    trial(Composite::Softmax { dim, log }, [m.input(dtype, &dims)])
}

fn softmax_backward(m: &mut Maker) -> Result<Trial> {
    let ((dims, dim), dtype) = (m.dims_and_dim(), m.of(&FLOATS));
    let count = dims[dim];
    let (dim, log) = (dim as u8, m.below(2) == 1);
    let inputs = [m.input(dtype, &dims), m.input(dtype, &dims)];
    summed(trial(Composite::SoftmaxGrad { dim, log }, inputs), count)
}
