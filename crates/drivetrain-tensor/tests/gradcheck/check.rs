//! The check: analytic gradients against central differences.

use drivetrain_cpu as _;
use drivetrain_tensor::autograd::GradOptions;
use drivetrain_tensor::{DType, Device, Result, Tensor, autograd};

/// A function of some tensors.
pub type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;

/// Half the distance between the two points of a difference.
const STEP: f64 = 1e-5;
/// Allowed: this much, and this much of the value.
const TOLERANCE: f64 = 2e-6;

/// Collects what fails, so that one run shows all of it.
#[derive(Default)]
pub struct Checker {
    failures: Vec<String>,
    checked: usize,
}

/// Which numbers the inputs are: distinct, and none within 0.1·scale of a multiple of 0.5·scale.
#[derive(Clone, Copy)]
pub struct Domain {
    low: i64,
    high: i64,
    scale: f64,
}

/// About -1.8 to 1.8.
pub const ANY: Domain = Domain {
    low: -4,
    high: 4,
    scale: 1.0,
};
/// About 0.2 to 1.8.
pub const POSITIVE: Domain = Domain {
    low: 0,
    high: 4,
    scale: 1.0,
};
/// About 0.7 to 2.3: past 0.5.
pub const LARGE: Domain = Domain {
    low: 1,
    high: 5,
    scale: 1.0,
};

impl Domain {
    pub const fn times(self, scale: f64) -> Domain {
        Domain { scale, ..self }
    }

    /// The `i`-th number: a cell drawn by a hash, and a place in it that no other has.
    fn value(self, i: usize) -> f64 {
        let hash = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let cell = self.low + (hash % (self.high - self.low) as u64) as i64;
        self.scale * (0.5 * cell as f64 + 0.2 + 0.1 * ((i * 37 % 101) as f64 / 101.0))
    }
}

pub fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// F64 numbers that repeat nothing, for weights beside the inputs.
pub fn weights(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| ((i * 7 + 3) as f64).sin() + 0.3).collect();
    Tensor::from_slice(&values, shape, &cpu()).unwrap()
}

pub fn ints<const N: usize>(values: [i64; N]) -> Tensor {
    Tensor::from_data(values, &cpu()).unwrap()
}

/// The same values as a view with strides: dimensions stored in reverse order, every second element used.
fn strided(values: &[f64], shape: &[usize]) -> Result<Tensor> {
    let x = Tensor::from_slice(values, shape, &cpu())?;
    let reverse: Vec<isize> = (0..shape.len() as isize).rev().collect();
    let turned = x.permute(&reverse)?.contiguous()?.permute(&reverse)?;
    if shape.is_empty() {
        return Ok(turned);
    }
    let doubled = Tensor::stack(&[&turned, &turned.mul(-7.0)?], -1)?;
    doubled.select(-1, 0)
}

impl Checker {
    /// Checks a function of inputs of these shapes.
    #[track_caller]
    pub fn check(&mut self, name: &str, shapes: &[&[usize]], domain: Domain, f: Function) {
        self.checked += 1;
        let mut first = 0;
        let mut values = Vec::new();
        for shape in shapes {
            let n: usize = shape.iter().product();
            values.push(
                (first..first + n)
                    .map(|i| domain.value(i))
                    .collect::<Vec<f64>>(),
            );
            first += n;
        }
        for layout in ["contiguous", "strided"] {
            let make = |values: &[f64], shape: &[usize]| match layout {
                "contiguous" => Tensor::from_slice(values, shape, &cpu()),
                _ => strided(values, shape),
            };
            let point = Point {
                shapes,
                values: &values,
                make: &make,
                f,
            };
            if let Err(why) = point.check() {
                self.failures.push(format!("{name}, {layout}: {why}"));
            }
        }
    }

    pub fn done(self) {
        assert!(
            self.failures.is_empty(),
            "{} of {} functions:\n{}",
            self.failures.len(),
            self.checked,
            self.failures.join("\n")
        );
    }
}

type Make<'a> = &'a dyn Fn(&[f64], &[usize]) -> Result<Tensor>;

/// Where a function is checked.
struct Point<'a> {
    shapes: &'a [&'a [usize]],
    values: &'a [Vec<f64>],
    make: Make<'a>,
    f: Function<'a>,
}

const GRAPH: GradOptions = GradOptions {
    retain_graph: true,
    create_graph: true,
};

impl Point<'_> {
    fn leaves(&self, values: &[Vec<f64>]) -> Result<Vec<Tensor>> {
        let leaf = |(v, shape): (&Vec<f64>, &&[usize])| (self.make)(v, shape)?.requires_grad_();
        values.iter().zip(self.shapes).map(leaf).collect()
    }

    /// A weighted sum of the function's result, as F64.
    fn loss(&self, x: &[Tensor]) -> Result<Tensor> {
        let y = (self.f)(x)?.to_dtype(DType::F64)?;
        y.mul(&weights(y.dims()))?.sum(())
    }

    /// Gradients of the loss, zeros where there are none.
    fn gradients(&self, x: &[Tensor], options: GradOptions) -> Result<Vec<Tensor>> {
        gradients(&self.loss(x)?, x, options)
    }

    /// A weighted sum of the gradients: its gradient is what the second order is checked with.
    fn slope(&self, x: &[Tensor]) -> Result<Tensor> {
        let mut sum = Tensor::zeros((), DType::F64, &cpu())?;
        for g in self.gradients(x, GRAPH)? {
            sum = (sum + g.mul(&weights(g.dims()))?.sum(())?)?;
        }
        Ok(sum)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let text = |e: drivetrain_tensor::Error| e.to_string();
        let x = self.leaves(self.values).map_err(text)?;
        let analytic = self.gradients(&x, GradOptions::default()).map_err(text)?;
        self.compare("first order", &analytic, &|x| self.loss(x))?;
        self.beside(&x, &analytic).map_err(text)??;
        let slope = self.slope(&x).map_err(text)?;
        let second = match slope.requires_grad() {
            true => gradients(&slope, &x, GradOptions::default()).map_err(text)?,
            false => analytic
                .iter()
                .map(Tensor::zeros_like)
                .collect::<Result<_>>()
                .map_err(text)?,
        };
        self.compare("second order", &second, &|x| self.slope(x))
    }

    /// Each gradient against differences of `function`.
    fn compare(
        &self,
        order: &str,
        analytic: &[Tensor],
        function: Function,
    ) -> std::result::Result<(), String> {
        let text = |e: drivetrain_tensor::Error| e.to_string();
        for (k, gradient) in analytic.iter().enumerate() {
            if gradient.dims() != self.shapes[k] {
                return Err(format!(
                    "{order}: gradient {k} has shape {}",
                    gradient.shape()
                ));
            }
            let got = gradient.to_vec::<f64>().map_err(text)?;
            for (i, &got) in got.iter().enumerate() {
                let at = |offset: f64| {
                    let mut values = self.values.to_vec();
                    values[k][i] += offset;
                    function(&self.leaves(&values)?)?.item::<f64>()
                };
                let want = (at(STEP).map_err(text)? - at(-STEP).map_err(text)?) / (2.0 * STEP);
                let far = (got - want).abs() > TOLERANCE * (1.0 + want.abs());
                if far || got.is_nan() {
                    return Err(format!(
                        "{order}: input {k}, element {i}: {got}, by differences {want}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Beside another use of the same inputs, before it and after it, the gradients add up.
    fn beside(&self, x: &[Tensor], alone: &[Tensor]) -> Result<std::result::Result<(), String>> {
        for op_first in [true, false] {
            let leaves = self.leaves(self.values)?;
            let threefold = |leaves: &[Tensor]| {
                let mut sum = Tensor::zeros((), DType::F64, &cpu())?;
                for leaf in leaves {
                    sum = (sum + leaf.sum(())?.mul(3.0)?)?;
                }
                Ok::<_, drivetrain_tensor::Error>(sum)
            };
            let total = match op_first {
                true => self.loss(&leaves)?.add(&threefold(&leaves)?)?,
                false => threefold(&leaves)?.add(&self.loss(&leaves)?)?,
            };
            total.backward()?;
            for (k, leaf) in leaves.iter().enumerate() {
                let got = leaf
                    .grad()
                    .map(|g| g.to_vec::<f64>())
                    .transpose()?
                    .unwrap_or_default();
                let want = alone[k].add(3.0)?.to_vec::<f64>()?;
                let far = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-12 * (1.0 + b.abs());
                if got.len() != want.len() || got.iter().zip(&want).any(far) {
                    return Ok(Err(format!(
                        "beside 3·x of {} inputs: gradient {k} is {got:?}, not {want:?}",
                        x.len()
                    )));
                }
            }
        }
        Ok(Ok(()))
    }
}

fn gradients(of: &Tensor, x: &[Tensor], options: GradOptions) -> Result<Vec<Tensor>> {
    let inputs: Vec<&Tensor> = x.iter().collect();
    let found = match of.requires_grad() {
        true => autograd::grad_with(&[of], &[], &inputs, options)?,
        false => vec![None; x.len()],
    };
    found
        .into_iter()
        .zip(x)
        .map(|(g, x)| g.map_or_else(|| x.zeros_like(), Ok))
        .collect()
}
