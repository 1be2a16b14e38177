//! The table from an op's name to the function that calls it with a case's inputs and arguments.

mod convolution;
mod elementwise;
mod index;
mod linalg;
mod loss;
mod movement;
mod norm;
mod reduce;

pub(crate) use movement::expanded_shape;

use crate::attrs::Attrs;
use crate::special;
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_tensor::{Parameter, Tensor};

/// What a case gives to its op.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The op's name.
    pub op: &'a str,
    /// Its arguments.
    pub attrs: &'a Attrs,
    /// Its tensors, in PyTorch's order.
    pub inputs: &'a [Tensor],
    /// Weights by PyTorch's state-dict names (training cases).
    pub weights: &'a [(String, Tensor)],
    /// How many outputs are wanted.
    pub outputs: usize,
    /// How many numbers the first right output holds.
    pub steps: usize,
    /// Where.
    pub device: &'a Device,
    /// Dtype of the floats.
    pub dtype: DType,
}

/// What an op gives back.
pub struct Answer {
    /// Its outputs.
    pub outputs: Vec<Tensor>,
    /// Parameters of a layer that stand for inputs: the input's index and the cell that gets its gradient.
    pub parameters: Vec<(usize, Parameter)>,
}

impl From<Tensor> for Answer {
    fn from(output: Tensor) -> Answer {
        Answer::from(vec![output])
    }
}

impl From<Vec<Tensor>> for Answer {
    fn from(outputs: Vec<Tensor>) -> Answer {
        Answer {
            outputs,
            parameters: Vec::new(),
        }
    }
}

impl From<(Tensor, Tensor)> for Answer {
    fn from((a, b): (Tensor, Tensor)) -> Answer {
        Answer::from(vec![a, b])
    }
}

/// An op of one output.
pub type Function = fn(&Call) -> Result<Tensor>;

/// An op of several outputs, or with parameters of its own.
pub type Wide = fn(&Call) -> Result<Answer>;

const TABLES: &[&[(&str, Function)]] = &[
    elementwise::TABLE,
    reduce::TABLE,
    movement::TABLE,
    linalg::TABLE,
    index::TABLE,
    convolution::TABLE,
    norm::TABLE,
    loss::TABLE,
];

const WIDE_TABLES: &[&[(&str, Wide)]] = &[
    reduce::WIDE_TABLE,
    convolution::WIDE_TABLE,
    norm::WIDE_TABLE,
];

const SPECIAL_TABLES: &[&[(&str, Wide)]] = &[
    special::layers::TABLE,
    special::optimizer::TABLE,
    special::schedule::TABLE,
    special::train::TABLE,
];

fn find<F: Copy>(tables: &[&[(&str, F)]], op: &str) -> Option<F> {
    let mut rows = tables.iter().copied().flatten();
    rows.find(|(name, _)| *name == op).map(|&(_, f)| f)
}

/// Whether the runner has this op.
pub fn is_known(op: &str) -> bool {
    find(TABLES, op).is_some() || find(WIDE_TABLES, op).is_some() || is_special(op)
}

/// Whether it is one of the special ops: layers of many ops, optimizers, schedules, training runs. What they round on
/// the way adds up, so that halves say little about them.
pub fn is_special(op: &str) -> bool {
    find(SPECIAL_TABLES, op).is_some()
}

/// Calls the op.
///
/// # Errors
/// What the op says; or inputs or arguments that do not fit it.
pub fn call(call: &Call) -> Result<Answer> {
    if let Some(function) = find(TABLES, call.op) {
        return function(call).map(Answer::from);
    }
    let wide = find(WIDE_TABLES, call.op).or_else(|| find(SPECIAL_TABLES, call.op));
    let Some(function) = wide else {
        return Err(Error::argument(
            "conformance",
            format!("the runner knows no op {:?}", call.op),
        ));
    };
    function(call)
}

impl<'a> Call<'a> {
    /// Input `index`.
    ///
    /// # Errors
    /// When the case has fewer.
    pub fn input(&self, index: usize) -> Result<&'a Tensor> {
        self.optional(index).ok_or_else(|| {
            Error::argument(
                "conformance",
                format!("{} has {} inputs only", self.op, self.inputs.len()),
            )
        })
    }

    /// Input `index`, where the case has it.
    pub fn optional(&self, index: usize) -> Option<&'a Tensor> {
        self.inputs.get(index)
    }

    /// The first input.
    ///
    /// # Errors
    /// When the case has none.
    pub fn x(&self) -> Result<&'a Tensor> {
        self.input(0)
    }

    /// The first two inputs.
    ///
    /// # Errors
    /// When the case has fewer.
    pub fn two(&self) -> Result<(&'a Tensor, &'a Tensor)> {
        Ok((self.input(0)?, self.input(1)?))
    }

    /// The dimension `dim`, or `default`.
    ///
    /// # Errors
    /// When it is no integer.
    pub fn dim_or(&self, default: isize) -> Result<isize> {
        self.attrs.integer_or("dim", default)
    }
}
