//! Programs: short straight-line sequences of ops and views as plain data, for decompositions.

mod arithmetic;

use crate::backend::Meta;
use crate::infer::{check_creation, infer};
use crate::{
    BinaryOp, CompareOp, Composite, DType, DimSet, Error, Op, Primitive, ReduceOp, Result, Scalar,
    Shape, UnaryOp, ViewOp,
};

/// A value of a program: its inputs come first, then what its steps make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(pub usize);

/// One step of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Runs an op; `in_place` values were made by this program and have no other reader before.
    Run {
        /// What.
        op: Op,
        /// Of which.
        inputs: Vec<Value>,
        /// Changed in place.
        in_place: Vec<Value>,
        /// New values.
        outputs: Vec<Value>,
    },
    /// Views a value; a reshape may copy.
    View {
        /// How.
        view: ViewOp,
        /// Of which.
        input: Value,
        /// New value.
        output: Value,
    },
    /// Copies `source` into the window of `target` that the slices cut out; `target` was made by this program.
    Write {
        /// Written.
        target: Value,
        /// `ViewOp::Slice`s, one after the other.
        window: Vec<ViewOp>,
        /// Of the window's shape.
        source: Value,
    },
}

/// Steps from input values to output values. Made with [`Builder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// How many of the values are given.
    pub inputs: usize,
    /// Dtype and shape of every value.
    pub metas: Vec<Meta>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// What comes out.
    pub outputs: Vec<Value>,
}

/// Builds a [`Program`], inferring every value's dtype and shape on the way.
///
/// Binary ops broadcast; dtypes must be equal. All methods fail as inference does.
pub struct Builder {
    program: Program,
}

impl Builder {
    /// A program of these inputs: `Value(0)`, `Value(1)`, …
    pub fn new(inputs: &[Meta]) -> Builder {
        Builder {
            program: Program {
                inputs: inputs.len(),
                metas: inputs.to_vec(),
                steps: Vec::new(),
                outputs: Vec::new(),
            },
        }
    }

    /// Ends the program with its outputs.
    #[must_use]
    pub fn finish(mut self, outputs: &[Value]) -> Program {
        self.program.outputs = outputs.to_vec();
        self.program
    }

    /// Dtype and shape of a value.
    pub fn meta(&self, value: Value) -> Meta {
        self.program.metas[value.0]
    }

    /// Shape of a value.
    pub fn shape(&self, value: Value) -> Shape {
        self.meta(value).shape
    }

    fn add_value(&mut self, meta: Meta) -> Value {
        self.program.metas.push(meta);
        Value(self.program.metas.len() - 1)
    }

    /// Any op without in-place operands; all its outputs.
    pub fn run(&mut self, op: impl Into<Op>, inputs: &[Value]) -> Result<Vec<Value>> {
        let op = op.into();
        let metas: Vec<Meta> = inputs.iter().map(|&v| self.meta(v)).collect();
        let outputs: Vec<Value> = infer(&op, &metas, &[])?
            .iter()
            .map(|&meta| self.add_value(meta))
            .collect();
        self.program.steps.push(Step::Run {
            op,
            inputs: inputs.to_vec(),
            in_place: Vec::new(),
            outputs: outputs.clone(),
        });
        Ok(outputs)
    }

    /// An op with one output.
    pub fn one(&mut self, op: impl Into<Op>, inputs: &[Value]) -> Result<Value> {
        Ok(self.run(op, inputs)?[0])
    }

    /// An op that changes `target`, a value this program made.
    pub fn run_in_place(
        &mut self,
        op: impl Into<Op>,
        inputs: &[Value],
        target: Value,
    ) -> Result<()> {
        let op = op.into();
        let metas: Vec<Meta> = inputs.iter().map(|&v| self.meta(v)).collect();
        infer(&op, &metas, &[self.meta(target)])?;
        self.program.steps.push(Step::Run {
            op,
            inputs: inputs.to_vec(),
            in_place: vec![target],
            outputs: Vec::new(),
        });
        Ok(())
    }

    /// A view.
    pub fn view(&mut self, view: ViewOp, input: Value) -> Result<Value> {
        let meta = self.meta(input);
        let shape = view.shape(&meta.shape)?;
        let output = self.add_value(Meta::new(meta.dtype, shape));
        self.program.steps.push(Step::View {
            view,
            input,
            output,
        });
        Ok(output)
    }

    /// Writes `source` into a window of `target`.
    pub fn write(&mut self, target: Value, window: &[ViewOp], source: Value) -> Result<()> {
        let mut shape = self.shape(target);
        for view in window {
            shape = view.shape(&shape)?;
        }
        if shape != self.shape(source) {
            return Err(Error::shape(
                "write",
                format!("a window of {shape} for a value of {}", self.shape(source)),
            ));
        }
        self.program.steps.push(Step::Write {
            target,
            window: window.to_vec(),
            source,
        });
        Ok(())
    }

    /// The same elements in another shape.
    pub fn reshape(&mut self, x: Value, dims: &[usize]) -> Result<Value> {
        self.view(ViewOp::Reshape(Shape::new(dims)?), x)
    }

    /// Dimensions reordered.
    pub fn permute(&mut self, x: Value, order: &[usize]) -> Result<Value> {
        self.view(ViewOp::permute(order)?, x)
    }

    /// Broadcast to `shape`; nothing when it has it already.
    pub fn expand(&mut self, x: Value, shape: Shape) -> Result<Value> {
        if self.shape(x) == shape {
            return Ok(x);
        }
        self.view(ViewOp::Expand(shape), x)
    }

    /// A new value full of one number.
    pub fn fill(&mut self, value: impl Into<Scalar>, dtype: DType, shape: Shape) -> Result<Value> {
        let value = value.into();
        self.create(Primitive::Fill { value }, Meta::new(dtype, shape))
    }

    /// An op without inputs, which takes dtype and shape from its output.
    fn create(&mut self, op: Primitive, meta: Meta) -> Result<Value> {
        let op = Op::from(op);
        check_creation(&op, &meta)?;
        let output = self.add_value(meta);
        self.program.steps.push(Step::Run {
            op,
            inputs: Vec::new(),
            in_place: Vec::new(),
            outputs: vec![output],
        });
        Ok(output)
    }

    /// Indices along `dim`.
    pub fn iota(&mut self, dim: usize, dtype: DType, shape: Shape) -> Result<Value> {
        self.create(Primitive::Iota { dim: dim as u8 }, Meta::new(dtype, shape))
    }

    /// x in another dtype; nothing when it has it already.
    pub fn cast(&mut self, x: Value, to: DType) -> Result<Value> {
        if self.meta(x).dtype == to {
            return Ok(x);
        }
        self.one(Primitive::Cast { to }, &[x])
    }

    /// An element-wise function.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Result<Value> {
        self.one(Primitive::Unary(op), &[x])
    }

    /// An element-wise function of two, broadcast.
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Result<Value> {
        let shape = self.shape(a).broadcast(&self.shape(b), op.name())?;
        let (a, b) = (self.expand(a, shape)?, self.expand(b, shape)?);
        self.one(Primitive::Binary(op), &[a, b])
    }

    /// A comparison, broadcast.
    pub fn compare(&mut self, op: CompareOp, a: Value, b: Value) -> Result<Value> {
        let shape = self.shape(a).broadcast(&self.shape(b), op.name())?;
        let (a, b) = (self.expand(a, shape)?, self.expand(b, shape)?);
        self.one(Primitive::Compare(op), &[a, b])
    }

    /// a where the condition holds, else b; broadcast.
    pub fn select(&mut self, condition: Value, a: Value, b: Value) -> Result<Value> {
        let shape = self.shape(a).broadcast(&self.shape(b), "where")?;
        let shape = self.shape(condition).broadcast(&shape, "where")?;
        let condition = self.expand(condition, shape)?;
        let (a, b) = (self.expand(a, shape)?, self.expand(b, shape)?);
        self.one(Primitive::Where, &[condition, a, b])
    }

    /// A reduction that keeps the reduced dimensions at size 1.
    pub fn reduce(&mut self, op: ReduceOp, x: Value, dims: DimSet) -> Result<Value> {
        if dims.is_empty() && self.meta(x).dtype.is_float() {
            return Ok(x);
        }
        let accumulate = self.meta(x).dtype.accumulator();
        self.one(
            Primitive::Reduce {
                op,
                dims,
                accumulate,
            },
            &[x],
        )
    }

    /// Batched matrix product of the last two dimensions; ranks and batch sizes are equal.
    pub fn matmul(&mut self, a: Value, b: Value) -> Result<Value> {
        let accumulate = self.meta(a).dtype.accumulator();
        self.one(Primitive::Matmul { accumulate }, &[a, b])
    }

    /// A composite with one output, to be decomposed in turn where the device lacks it.
    pub fn composite(&mut self, op: Composite, inputs: &[Value]) -> Result<Value> {
        self.one(op, inputs)
    }
}
