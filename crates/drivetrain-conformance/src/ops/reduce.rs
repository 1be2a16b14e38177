//! Reductions, cumulative ops, sorting, softmax.

use super::{Answer, Call, Function, Wide};
use drivetrain_core::Result;
use drivetrain_tensor::Tensor;

type Reduction = fn(&Tensor, &[isize]) -> Result<Tensor>;

pub const TABLE: &[(&str, Function)] = &[
    ("sum", |c| {
        reduce(c, |x, d| x.sum(d), |x, d| x.sum_keepdim(d))
    }),
    ("mean", |c| {
        reduce(c, |x, d| x.mean(d), |x, d| x.mean_keepdim(d))
    }),
    ("prod", |c| {
        reduce(c, |x, d| x.prod(d), |x, d| x.prod_keepdim(d))
    }),
    ("amax", |c| {
        reduce(c, |x, d| x.amax(d), |x, d| x.amax_keepdim(d))
    }),
    ("amin", |c| {
        reduce(c, |x, d| x.amin(d), |x, d| x.amin_keepdim(d))
    }),
    ("logsumexp", |c| {
        reduce(c, |x, d| x.logsumexp(d), |x, d| x.logsumexp_keepdim(d))
    }),
    ("var", |c| {
        c.x()?.var(dims(c)?.as_slice(), correction(c)?, keepdim(c)?)
    }),
    ("std", |c| {
        c.x()?.std(dims(c)?.as_slice(), correction(c)?, keepdim(c)?)
    }),
    ("norm", norm),
    ("argmax", |c| arg_reduce(c, Tensor::argmax)),
    ("argmin", |c| arg_reduce(c, Tensor::argmin)),
    ("cumsum", |c| c.x()?.cumsum(c.dim_or(0)?)),
    ("cumprod", |c| c.x()?.cumprod(c.dim_or(0)?)),
    ("argsort", |c| {
        let descending = c.attrs.flag_or("descending", false)?;
        c.x()?.argsort(c.dim_or(-1)?, descending)
    }),
    ("softmax", |c| c.x()?.softmax(c.dim_or(-1)?)),
    ("log_softmax", |c| c.x()?.log_softmax(c.dim_or(-1)?)),
];

pub const WIDE_TABLE: &[(&str, Wide)] = &[
    ("sort", |c| {
        let descending = c.attrs.flag_or("descending", false)?;
        c.x()?.sort(c.dim_or(-1)?, descending).map(Answer::from)
    }),
    ("topk", |c| {
        let k = c.attrs.count_or("k", 1)?;
        let largest = c.attrs.flag_or("largest", true)?;
        c.x()?.topk(k, c.dim_or(-1)?, largest).map(Answer::from)
    }),
    ("max", |c| {
        c.x()?.max(c.dim_or(-1)?, keepdim(c)?).map(Answer::from)
    }),
    ("min", |c| {
        c.x()?.min(c.dim_or(-1)?, keepdim(c)?).map(Answer::from)
    }),
];

/// The dimensions: none given means all, as an empty list does.
fn dims(call: &Call) -> Result<Vec<isize>> {
    Ok(call.attrs.integers("dim")?.unwrap_or_default())
}

fn keepdim(call: &Call) -> Result<bool> {
    call.attrs.flag_or("keepdim", false)
}

/// `correction`, or the older `unbiased`.
fn correction(call: &Call) -> Result<f64> {
    let unbiased = call.attrs.flag_or("unbiased", true)?;
    call.attrs
        .number_or("correction", if unbiased { 1.0 } else { 0.0 })
}

fn reduce(call: &Call, plain: Reduction, kept: Reduction) -> Result<Tensor> {
    let function = if keepdim(call)? { kept } else { plain };
    function(call.x()?, &dims(call)?)
}

fn norm(call: &Call) -> Result<Tensor> {
    let order = match (call.attrs.get("ord"), call.attrs.get("p")) {
        (None, None) => 2.0,
        (Some(value), _) if value == "fro" => 2.0,
        (Some(_), _) => call.attrs.number_or("ord", 2.0)?,
        (None, Some(value)) if value == "fro" => 2.0,
        (None, Some(_)) => call.attrs.number_or("p", 2.0)?,
    };
    call.x()?
        .norm(order, dims(call)?.as_slice(), keepdim(call)?)
}

/// Without a dimension: the index into the flattened tensor.
fn arg_reduce(call: &Call, function: fn(&Tensor, isize, bool) -> Result<Tensor>) -> Result<Tensor> {
    let x = call.x()?;
    if let Some(dim) = call.attrs.integer("dim")? {
        return function(x, dim, keepdim(call)?);
    }
    let index = function(&x.reshape([-1isize])?, 0, false)?;
    if keepdim(call)? {
        index.reshape(vec![1usize; x.rank()])
    } else {
        Ok(index)
    }
}
