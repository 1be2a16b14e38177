//! Ops that move elements: shapes, joins, slices, padding, triangles.

use super::{Call, Function};
use drivetrain_core::{Error, Result};
use drivetrain_tensor::{PadMode, Tensor};

pub const TABLE: &[(&str, Function)] = &[
    ("cat", |c| {
        Tensor::cat(&c.inputs.iter().collect::<Vec<_>>(), c.dim_or(0)?)
    }),
    ("stack", |c| {
        Tensor::stack(&c.inputs.iter().collect::<Vec<_>>(), c.dim_or(0)?)
    }),
    ("reshape", |c| c.x()?.reshape(list(c, &["shape", "size"])?)),
    ("view", |c| c.x()?.view(list(c, &["shape", "size"])?)),
    ("permute", |c| c.x()?.permute(&list(c, &["dims"])?)),
    ("transpose", |c| {
        let first = c.attrs.integer_or("dim0", 0)?;
        c.x()?.transpose(first, c.attrs.integer_or("dim1", 1)?)
    }),
    ("flatten", |c| {
        let start = c.attrs.integer_or("start_dim", 0)?;
        c.x()?.flatten(start, c.attrs.integer_or("end_dim", -1)?)
    }),
    ("squeeze", |c| match c.attrs.integer("dim")? {
        Some(dim) => c.x()?.squeeze(dim),
        None => c.x()?.squeeze_all(),
    }),
    ("unsqueeze", |c| c.x()?.unsqueeze(c.dim_or(0)?)),
    ("slice", |c| {
        let (start, end) = (c.attrs.integer("start")?, c.attrs.integer("end")?);
        c.x()?
            .slice(c.dim_or(0)?, start, end, c.attrs.integer_or("step", 1)?)
    }),
    ("narrow", |c| {
        let start = c.attrs.count_or("start", 0)?;
        c.x()?
            .narrow(c.dim_or(0)?, start, c.attrs.count_or("length", 1)?)
    }),
    ("select", |c| {
        c.x()?.select(c.dim_or(0)?, c.attrs.integer_or("index", 0)?)
    }),
    ("flip", |c| c.x()?.flip(&list(c, &["dims", "dim"])?)),
    ("roll", roll),
    ("repeat", |c| {
        let times = list(c, &["repeats", "sizes"])?;
        c.x()?.repeat(&counts("repeats", &times)?)
    }),
    ("pad", pad),
    ("tril", |c| c.x()?.tril(c.attrs.integer_or("diagonal", 0)?)),
    ("triu", |c| c.x()?.triu(c.attrs.integer_or("diagonal", 0)?)),
    ("expand", |c| {
        let sizes = list(c, &["shape", "size"])?;
        c.x()?.expand(expanded_shape(c.x()?, &sizes)?)
    }),
];

/// The first of these attributes that is there, as integers.
fn list(call: &Call, names: &[&str]) -> Result<Vec<isize>> {
    for name in names {
        if let Some(list) = call.attrs.integers(name)? {
            return Ok(list);
        }
    }
    Err(Error::argument(
        "conformance",
        format!("{} lacks the attribute {}", call.op, names.join(" or ")),
    ))
}

fn counts(name: &str, list: &[isize]) -> Result<Vec<usize>> {
    let count = |&n: &isize| {
        usize::try_from(n)
            .map_err(|_| Error::argument("conformance", format!("{name} {list:?} has a negative")))
    };
    list.iter().map(count).collect()
}

/// The sizes of an expansion, in which -1 keeps a size of `x`.
pub fn expanded_shape(x: &Tensor, sizes: &[isize]) -> Result<Vec<usize>> {
    let lead = sizes.len().saturating_sub(x.rank());
    let resolve = |(i, &size): (usize, &isize)| match usize::try_from(size) {
        Ok(size) => Ok(size),
        Err(_) => i
            .checked_sub(lead)
            .and_then(|dim| x.dims().get(dim).copied())
            .ok_or_else(|| {
                Error::argument(
                    "expand",
                    format!("{sizes:?} keeps a size that {} does not have", x.shape()),
                )
            }),
    };
    sizes.iter().enumerate().map(resolve).collect()
}

/// `shift` and `dim`, or PyTorch's `shifts` and `dims`; without dimensions the flattened tensor is rolled.
fn roll(call: &Call) -> Result<Tensor> {
    let x = call.x()?;
    let shifts = list(call, &["shift", "shifts"])?;
    let dims = match call.attrs.integers("dim")? {
        Some(dims) => Some(dims),
        None => call.attrs.integers("dims")?,
    };
    match dims {
        Some(dims) if !dims.is_empty() => {
            let mut pairs = shifts.iter().zip(&dims);
            pairs.try_fold(x.clone(), |x, (&shift, &dim)| x.roll(shift, dim))
        }
        _ => {
            let flat = x.reshape([-1isize])?;
            let shift = shifts.first().copied().unwrap_or(0);
            flat.roll(shift, 0)?.reshape(x.shape())
        }
    }
}

/// Padding of the last dimensions first.
fn pad(call: &Call) -> Result<Tensor> {
    let value = call.attrs.number_or("value", 0.0)?;
    let mode = match call.attrs.text_or("mode", "constant")? {
        "constant" => PadMode::Constant(value.into()),
        "reflect" => PadMode::Reflect,
        "replicate" => PadMode::Replicate,
        "circular" => PadMode::Circular,
        other => {
            return Err(Error::argument(
                "conformance",
                format!("padding mode {other:?}"),
            ));
        }
    };
    call.x()?.pad(&list(call, &["pad"])?, mode)
}
