//! Element-wise ops: functions, activations, arithmetic, comparisons, choices.

use super::{Call, Function};
use drivetrain_core::{DType, Error, Result};
use drivetrain_tensor::Tensor;

pub const TABLE: &[(&str, Function)] = &[
    ("neg", |c| c.x()?.neg()),
    ("abs", |c| c.x()?.abs()),
    ("exp", |c| c.x()?.exp()),
    ("expm1", |c| c.x()?.expm1()),
    ("log", |c| c.x()?.log()),
    ("log1p", |c| c.x()?.log1p()),
    ("log2", |c| c.x()?.log2()),
    ("sqrt", |c| c.x()?.sqrt()),
    ("rsqrt", |c| c.x()?.rsqrt()),
    ("sin", |c| c.x()?.sin()),
    ("cos", |c| c.x()?.cos()),
    ("tan", |c| c.x()?.tan()),
    ("tanh", |c| c.x()?.tanh()),
    ("sigmoid", |c| c.x()?.sigmoid()),
    ("erf", |c| c.x()?.erf()),
    ("reciprocal", |c| c.x()?.reciprocal()),
    ("square", |c| c.x()?.square()),
    ("sign", |c| c.x()?.sign()),
    ("floor", |c| c.x()?.floor()),
    ("ceil", |c| c.x()?.ceil()),
    ("round", |c| c.x()?.round()),
    ("trunc", |c| c.x()?.trunc()),
    ("isnan", |c| c.x()?.isnan()),
    ("isfinite", |c| c.x()?.isfinite()),
    ("logical_not", |c| c.x()?.logical_not()),
    ("relu", |c| c.x()?.relu()),
    ("relu6", |c| c.x()?.relu6()),
    ("silu", |c| c.x()?.silu()),
    ("mish", |c| c.x()?.mish()),
    ("softsign", |c| c.x()?.softsign()),
    ("hardswish", |c| c.x()?.hardswish()),
    ("hardsigmoid", |c| c.x()?.hardsigmoid()),
    ("logsigmoid", |c| c.x()?.logsigmoid()),
    ("selu", |c| c.x()?.selu()),
    ("gelu", gelu),
    ("softplus", |c| {
        let beta = c.attrs.number_or("beta", 1.0)?;
        c.x()?.softplus(beta, c.attrs.number_or("threshold", 20.0)?)
    }),
    ("elu", |c| c.x()?.elu(c.attrs.number_or("alpha", 1.0)?)),
    ("celu", |c| c.x()?.celu(c.attrs.number_or("alpha", 1.0)?)),
    ("leaky_relu", |c| {
        c.x()?
            .leaky_relu(c.attrs.number_or("negative_slope", 0.01)?)
    }),
    ("hardtanh", |c| {
        let low = c.attrs.number_or("min_val", -1.0)?;
        c.x()?.hardtanh(low, c.attrs.number_or("max_val", 1.0)?)
    }),
    ("clamp", |c| {
        c.x()?.clamp(c.attrs.number("min")?, c.attrs.number("max")?)
    }),
    ("pow_scalar", |c| {
        let exponent = c.attrs.number("exponent")?;
        c.x()?.pow(exponent.ok_or_else(|| missing("exponent"))?)
    }),
    ("add", |c| {
        let (a, b) = c.two()?;
        match c.attrs.number("alpha")? {
            None => a.add(b),
            Some(alpha) => a.add(&b.mul(alpha)?),
        }
    }),
    ("sub", |c| {
        let (a, b) = c.two()?;
        match c.attrs.number("alpha")? {
            None => a.sub(b),
            Some(alpha) => a.sub(&b.mul(alpha)?),
        }
    }),
    ("mul", |c| c.x()?.mul(c.input(1)?)),
    ("div", div),
    ("maximum", |c| c.x()?.maximum(c.input(1)?)),
    ("minimum", |c| c.x()?.minimum(c.input(1)?)),
    ("pow", |c| c.x()?.pow(c.input(1)?)),
    ("atan2", |c| c.x()?.atan2(c.input(1)?)),
    ("remainder", |c| c.x()?.remainder(c.input(1)?)),
    ("floor_divide", |c| c.x()?.floor_divide(c.input(1)?)),
    ("logical_and", |c| c.x()?.logical_and(c.input(1)?)),
    ("logical_or", |c| c.x()?.logical_or(c.input(1)?)),
    ("logical_xor", |c| c.x()?.logical_xor(c.input(1)?)),
    ("eq", |c| c.x()?.eq(c.input(1)?)),
    ("ne", |c| c.x()?.ne(c.input(1)?)),
    ("lt", |c| c.x()?.lt(c.input(1)?)),
    ("le", |c| c.x()?.le(c.input(1)?)),
    ("gt", |c| c.x()?.gt(c.input(1)?)),
    ("ge", |c| c.x()?.ge(c.input(1)?)),
    ("where", |c| c.input(1)?.where_(c.x()?, c.input(2)?)),
    ("masked_fill", masked_fill),
];

fn gelu(call: &Call) -> Result<Tensor> {
    match call.attrs.text_or("approximate", "none")? {
        "none" => call.x()?.gelu(),
        "tanh" => call.x()?.gelu_tanh(),
        other => Err(Error::argument(
            "conformance",
            format!("gelu with approximate {other:?}"),
        )),
    }
}

fn div(call: &Call) -> Result<Tensor> {
    let (a, b) = call.two()?;
    match call.attrs.text_or("rounding_mode", "none")? {
        "floor" => a.floor_divide(b),
        "trunc" => a.div(b)?.trunc(),
        _ => a.div(b),
    }
}

/// The value is an attribute, or a third input of one element.
fn masked_fill(call: &Call) -> Result<Tensor> {
    let mask = call.input(1)?.to_dtype(DType::Bool)?;
    let value = match (call.attrs.number("value")?, call.optional(2)) {
        (Some(value), _) => value,
        (None, Some(value)) => value.item::<f64>()?,
        (None, None) => return Err(missing("value")),
    };
    call.x()?.masked_fill(&mask, value)
}

fn missing(name: &str) -> Error {
    Error::argument("conformance", format!("attribute {name} is missing"))
}
