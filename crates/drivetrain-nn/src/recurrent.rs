//! What LSTM and GRU share: their configuration, parameters with PyTorch's names, and the walk over time.

use crate::init::uniform;
use crate::{Mode, Path, Visit, Visitor};
use drivetrain_core::{DType, Device, Error, Result};
use drivetrain_tensor::{Parameter, Tensor};

/// How an [`Lstm`](crate::Lstm) or a [`Gru`](crate::Gru) is made.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentConfig {
    pub(crate) inputs: usize,
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) bias: bool,
    pub(crate) batch_first: bool,
    pub(crate) bidirectional: bool,
    pub(crate) dropout: f64,
    pub(crate) dtype: DType,
}

impl RecurrentConfig {
    pub(crate) fn new(inputs: usize, hidden: usize) -> RecurrentConfig {
        RecurrentConfig {
            inputs,
            hidden,
            layers: 1,
            bias: true,
            batch_first: false,
            bidirectional: false,
            dropout: 0.0,
            dtype: DType::F32,
        }
    }

    /// Stacked layers; 1 by default.
    #[must_use]
    pub fn layers(mut self, layers: usize) -> Self {
        self.layers = layers;
        self
    }

    /// With or without biases; with by default.
    #[must_use]
    pub fn bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// Inputs are [batch, time, features] instead of [time, batch, features].
    #[must_use]
    pub fn batch_first(mut self, batch_first: bool) -> Self {
        self.batch_first = batch_first;
        self
    }

    /// Reads in both directions; outputs stand side by side.
    #[must_use]
    pub fn bidirectional(mut self, bidirectional: bool) -> Self {
        self.bidirectional = bidirectional;
        self
    }

    /// Dropout between stacked layers while training.
    #[must_use]
    pub fn dropout(mut self, p: f64) -> Self {
        self.dropout = p;
        self
    }

    /// In another dtype than F32.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// One layer in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    suffix: String,
    weight_ih: Parameter,
    weight_hh: Parameter,
    biases: Option<(Parameter, Parameter)>,
}

impl Visit for Weights {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        let mut show = |name: &str, parameter: &Parameter| {
            path.push(format!("{name}_{}", self.suffix));
            visitor.parameter(path, parameter);
            path.pop();
        };
        show("weight_ih", &self.weight_ih);
        show("weight_hh", &self.weight_hh);
        if let Some((ih, hh)) = &self.biases {
            show("bias_ih", ih);
            show("bias_hh", hh);
        }
    }
}

impl Weights {
    /// x·W_ihᵀ + b_ih for a whole sequence at once.
    pub(crate) fn input_gates(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.biases.as_ref().map(|(ih, _)| ih.value());
        x.linear(&self.weight_ih.value(), bias.as_ref())
    }

    /// h·W_hhᵀ + b_hh, given both values read once.
    pub(crate) fn hidden(&self) -> (Tensor, Option<Tensor>) {
        (
            self.weight_hh.value(),
            self.biases.as_ref().map(|(_, hh)| hh.value()),
        )
    }
}

/// The stack of layers.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) config: RecurrentConfig,
    pub(crate) weights: Vec<Weights>,
    pub(crate) mode: Mode,
}

impl Visit for Stack {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        self.weights.iter().for_each(|w| w.visit(path, visitor));
        self.mode.visit(path, visitor);
    }
}

impl Stack {
    /// Parameters for `gates` gates, uniform in ±1/√hidden.
    pub(crate) fn new(
        operation: &'static str,
        config: RecurrentConfig,
        gates: usize,
        device: &Device,
    ) -> Result<Stack> {
        if config.layers == 0 || config.hidden == 0 {
            return Err(Error::argument(
                operation,
                format!("{} layers of {} hidden units", config.layers, config.hidden),
            ));
        }
        if !(0.0..=1.0).contains(&config.dropout) {
            return Err(Error::argument(
                operation,
                format!("dropout {} is not in 0..=1", config.dropout),
            ));
        }
        let bound = 1.0 / (config.hidden as f64).sqrt();
        let rows = gates * config.hidden;
        let make =
            |shape: &[usize]| Parameter::new(uniform(shape, -bound, bound, config.dtype, device)?);
        let directions = 1 + usize::from(config.bidirectional);
        let mut weights = Vec::new();
        for layer in 0..config.layers {
            let inputs = if layer == 0 {
                config.inputs
            } else {
                config.hidden * directions
            };
            for direction in 0..directions {
                let reverse = if direction == 1 { "_reverse" } else { "" };
                weights.push(Weights {
                    suffix: format!("l{layer}{reverse}"),
                    weight_ih: make(&[rows, inputs])?,
                    weight_hh: make(&[rows, config.hidden])?,
                    biases: match config.bias {
                        true => Some((make(&[rows])?, make(&[rows])?)),
                        false => None,
                    },
                });
            }
        }
        Ok(Stack {
            config,
            weights,
            mode: Mode::new(),
        })
    }

    /// Runs `cell` over time, layer by layer. `state` holds for each layer and direction what the cell carries
    /// (hidden first); the result is the outputs and the last states.
    pub(crate) fn run(
        &self,
        operation: &'static str,
        input: &Tensor,
        state: Vec<Vec<Tensor>>,
        cell: &Cell,
    ) -> Result<(Tensor, Vec<Vec<Tensor>>)> {
        let x = self.time_first(operation, input)?;
        let directions = 1 + usize::from(self.config.bidirectional);
        let mut layer_input = x;
        let mut last = Vec::new();
        for (layer, pair) in self.weights.chunks(directions).enumerate() {
            if layer > 0 {
                layer_input = crate::functional::dropout(
                    &layer_input,
                    self.config.dropout,
                    self.mode.is_training(),
                )?;
            }
            let mut sides = Vec::new();
            for (direction, weights) in pair.iter().enumerate() {
                let begin = state[layer * directions + direction].clone();
                let (outputs, end) = scan(weights, &layer_input, begin, direction == 1, cell)?;
                sides.push(outputs);
                last.push(end);
            }
            layer_input = Tensor::cat(&sides.iter().collect::<Vec<_>>(), -1)?;
        }
        let output = if self.config.batch_first {
            layer_input.transpose(0, 1)?
        } else {
            layer_input
        };
        Ok((
            if input.rank() == 2 {
                output.squeeze(self.batch_dim())?
            } else {
                output
            },
            last,
        ))
    }

    fn batch_dim(&self) -> isize {
        if self.config.batch_first { 0 } else { 1 }
    }

    /// The input as [time, batch, features].
    fn time_first(&self, operation: &'static str, input: &Tensor) -> Result<Tensor> {
        let refuse = || {
            let order = if self.config.batch_first {
                "[batch, time, features]"
            } else {
                "[time, batch, features]"
            };
            Error::shape(
                operation,
                format!(
                    "input {} is not {order} with {} features",
                    input.shape(),
                    self.config.inputs
                ),
            )
            .on(input.device())
        };
        let x = match input.rank() {
            2 => input.unsqueeze(self.batch_dim())?,
            3 => input.clone(),
            _ => return Err(refuse()),
        };
        if x.dims()[2] != self.config.inputs || x.dims()[0] * x.dims()[1] == 0 {
            return Err(refuse());
        }
        if self.config.batch_first {
            x.transpose(0, 1)
        } else {
            Ok(x)
        }
    }

    /// The states to begin with: those given as [layers·directions, batch, hidden], or zeros.
    pub(crate) fn begin(
        &self,
        operation: &'static str,
        input: &Tensor,
        given: &[Option<&Tensor>],
    ) -> Result<Vec<Vec<Tensor>>> {
        let batch = match input.rank() {
            3 => input.dims()[if self.config.batch_first { 0 } else { 1 }],
            _ => 1,
        };
        let count = self.weights.len();
        let mut states = vec![Vec::new(); count];
        for state in given {
            let all = match state {
                Some(state) if state.rank() == 2 => state.unsqueeze(1)?,
                Some(state) => (*state).clone(),
                None => Tensor::zeros(
                    [count, batch, self.config.hidden],
                    self.config.dtype,
                    input.device(),
                )?,
            };
            if *all.shape() != [count, batch, self.config.hidden] {
                return Err(Error::shape(
                    operation,
                    format!(
                        "state {} is not [{count}, {batch}, {}]",
                        all.shape(),
                        self.config.hidden
                    ),
                ));
            }
            for (i, slot) in states.iter_mut().enumerate() {
                slot.push(all.select(0, i as isize)?);
            }
        }
        Ok(states)
    }

    /// Last states side by side, as they are given.
    pub(crate) fn end(&self, input: &Tensor, last: &[Vec<Tensor>], which: usize) -> Result<Tensor> {
        let parts: Vec<&Tensor> = last.iter().map(|state| &state[which]).collect();
        let all = Tensor::stack(&parts, 0)?;
        if input.rank() == 2 {
            all.squeeze(1)
        } else {
            Ok(all)
        }
    }
}

/// One step: gates from the input [batch, gates·hidden], the carried state, W_hh and b_hh → the new state, whose first
/// is the output.
pub(crate) type Cell = dyn Fn(&Tensor, &[Tensor], &Tensor, Option<&Tensor>) -> Result<Vec<Tensor>>;

fn scan(
    weights: &Weights,
    x: &Tensor,
    mut state: Vec<Tensor>,
    reverse: bool,
    cell: &Cell,
) -> Result<(Tensor, Vec<Tensor>)> {
    // One product for all steps; only the hidden part has to go step by step.
    let gates = weights.input_gates(x)?;
    let (weight, bias) = weights.hidden();
    let steps = x.len();
    let mut outputs = Vec::with_capacity(steps);
    for t in 0..steps {
        let t = if reverse { steps - 1 - t } else { t };
        state = cell(
            &gates.select(0, t as isize)?,
            &state,
            &weight,
            bias.as_ref(),
        )?;
        outputs.push(state[0].clone());
    }
    if reverse {
        outputs.reverse();
    }
    Ok((
        Tensor::stack(&outputs.iter().collect::<Vec<_>>(), 0)?,
        state,
    ))
}
