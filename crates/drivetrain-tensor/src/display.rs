//! Printing: tensors as PyTorch prints them, whatever device they are on.
//!
//! The rules are those of `torch/_tensor_str.py`: one format for all numbers of a tensor, 4 digits (or as many
//! as the format string asks for: `{x:.8}`), past 1,000 elements only three at each end of a dimension.

use crate::autograd::{Edge, anomaly_off};
use crate::{DType, Result, Tensor};
use std::fmt;

/// Tensors of more elements are summarised.
const THRESHOLD: usize = 1000;
/// How many elements a summary shows at each end of a dimension.
const EDGE: usize = 3;
/// Characters in a line.
const LINE: usize = 80;
/// Where a tensor's text begins, and so how far its further lines are set in.
const PREFIX: &str = "tensor(";

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text(f.precision().unwrap_or(4));
        // A device that fails must not make printing fail: the error is what there is to see.
        f.write_str(&text.unwrap_or_else(|error| format!("{PREFIX}<error {error}>)")))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Tensor {
    fn text(&self, precision: usize) -> Result<String> {
        let body = if self.shape().is_empty() {
            "[]".to_string()
        } else {
            let shown = anomaly_off(|| self.summary())?;
            let cells = Cells::of(&shown, precision)?;
            let cut = |(all, shown): (&usize, &usize)| all != shown;
            let cut: Vec<bool> = self.dims().iter().zip(shown.dims()).map(cut).collect();
            nested(&cells, shown.dims(), &cut, 0, PREFIX.len())
        };
        Ok(with_suffixes(format!("{PREFIX}{body}"), &self.suffixes()))
    }

    /// What is shown: the ends of each long dimension, cut out on the device before anything is read.
    fn summary(&self) -> Result<Tensor> {
        let mut x = self.detach();
        if self.elements() <= THRESHOLD {
            return Ok(x);
        }
        for dim in 0..self.rank() {
            let (d, size) = (dim as isize, self.dims()[dim]);
            if size > 2 * EDGE {
                let (head, tail) = (x.narrow(d, 0, EDGE)?, x.narrow(d, size - EDGE, EDGE)?);
                x = Tensor::cat(&[&head, &tail], d)?;
            }
        }
        Ok(x)
    }

    /// What is said behind the numbers: only what they do not say themselves.
    fn suffixes(&self) -> Vec<String> {
        let mut list = Vec::new();
        let on_cpu = Tensor::cpu_device().is_ok_and(|cpu| cpu == *self.device());
        if !on_cpu {
            list.push(format!("device='{}'", self.device()));
        }
        let empty = self.shape().is_empty();
        if empty && self.rank() != 1 {
            let sizes: Vec<String> = self.dims().iter().map(usize::to_string).collect();
            list.push(format!("size=({})", sizes.join(", ")));
        }
        // Without elements nothing shows that they would be integers.
        let plain = self.dtype() == DType::F32
            || (!empty && matches!(self.dtype(), DType::I64 | DType::Bool));
        if !plain {
            list.push(format!("dtype={}", self.dtype().torch_name()));
        }
        match &self.0.edge {
            Edge::None => {}
            Edge::Leaf(_) => list.push("requires_grad=True".to_string()),
            Edge::Node(node, _) => list.push(format!("grad_fn=<{}>", camel(node.rule.name()))),
        }
        list
    }
}

/// `log_softmax` as `LogSoftmaxBackward`.
fn camel(name: &str) -> String {
    let mut text = String::new();
    for word in name.split('_') {
        let mut letters = word.chars();
        text.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text + "Backward"
}

/// The suffixes behind the text, on a new line where the line would become too long.
fn with_suffixes(mut text: String, suffixes: &[String]) -> String {
    let mut length = text.len() - text.rfind('\n').map_or(0, |at| at + 1) + 2;
    for suffix in suffixes {
        if length + suffix.len() + 2 > LINE {
            text.push_str(&format!(",\n{}{suffix}", " ".repeat(PREFIX.len())));
            length = PREFIX.len() + suffix.len();
        } else {
            text.push_str(&format!(", {suffix}"));
            length += suffix.len() + 2;
        }
    }
    text + ")"
}

/// The texts of the elements shown, row-major, all of one width (NaN and infinity may be wider).
struct Cells {
    texts: Vec<String>,
    width: usize,
}

impl Cells {
    fn of(shown: &Tensor, precision: usize) -> Result<Cells> {
        let texts = match shown.dtype() {
            DType::Bool => words(shown.to_vec::<bool>()?.iter().map(|&b| {
                match b {
                    true => "True",
                    false => "False",
                }
                .to_string()
            })),
            dtype if !dtype.is_float() => {
                let values = anomaly_off(|| shown.to_dtype(DType::I64))?.to_vec::<i64>()?;
                words(values.iter().map(i64::to_string))
            }
            _ => floats(&shown.to_f64_vec()?, precision),
        };
        Ok(texts)
    }
}

fn words(texts: impl Iterator<Item = String>) -> Cells {
    let texts: Vec<String> = texts.collect();
    let width = texts.iter().map(String::len).max().unwrap_or(1);
    Cells { texts, width }.padded()
}

/// Floats in one format: whole numbers as `1.`, powers of ten where magnitudes differ by more than 1,000 or
/// are beyond 10⁸ or below 10⁻⁴, else a fixed number of digits.
fn floats(values: &[f64], precision: usize) -> Cells {
    let known: Vec<f64> = values
        .iter()
        .copied()
        .filter(|v| v.is_finite() && *v != 0.0)
        .collect();
    let largest = known.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let smallest = known.iter().fold(f64::INFINITY, |m: f64, v| m.min(v.abs()));
    let whole = known.iter().all(|v| v.fract() == 0.0);
    let powers =
        !known.is_empty() && (largest / smallest > 1000.0 || largest > 1e8 || smallest < 1e-4);
    let text = |v: f64| match v {
        v if v.is_nan() => "nan".to_string(),
        v if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.to_string(),
        v if powers => scientific(v, precision),
        v if whole => format!("{v:.0}."),
        v => format!("{v:.precision$}"),
    };
    // PyTorch's width is that of the finite numbers other than 0; the rest is never cut, only not aligned.
    let width = known.iter().map(|&v| text(v).len()).max().unwrap_or(1);
    Cells {
        texts: values.iter().map(|&v| text(v)).collect(),
        width,
    }
    .padded()
}

/// `1.2500e+03`, with a sign and two digits at least in the exponent.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

impl Cells {
    fn padded(mut self) -> Cells {
        let width = self.width;
        self.texts
            .iter_mut()
            .for_each(|t| *t = format!("{t:>width$}"));
        self
    }
}

/// The text of the elements from `first` on, in brackets, set in by `indent`. `cut` says which dimensions
/// have their middle left out.
fn nested(cells: &Cells, dims: &[usize], cut: &[bool], first: usize, indent: usize) -> String {
    let (&[size, ref inner @ ..], &[cut, ref inner_cut @ ..]) = (dims, cut) else {
        return cells.texts.get(first).cloned().unwrap_or_default();
    };
    let stride: usize = inner.iter().product();
    let mut parts: Vec<String> = (0..size)
        .map(|i| nested(cells, inner, inner_cut, first + i * stride, indent + 1))
        .collect();
    let margin = " ".repeat(indent + 1);
    if !inner.is_empty() {
        if cut {
            parts.insert(EDGE, "...".to_string());
        }
        let between = format!(",{}{margin}", "\n".repeat(inner.len()));
        return format!("[{}]", parts.join(&between));
    }
    if cut {
        parts.insert(EDGE, " ...".to_string());
    }
    let a_line = (LINE.saturating_sub(indent) / (cells.width + 2)).max(1);
    let lines: Vec<String> = parts.chunks(a_line).map(|line| line.join(", ")).collect();
    format!("[{}]", lines.join(&format!(",\n{margin}")))
}
