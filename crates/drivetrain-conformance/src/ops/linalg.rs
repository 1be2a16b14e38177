//! Products: matrices, einsum, attention.

use super::{Call, Function};
use drivetrain_core::{DType, Error, Result};
use drivetrain_tensor::Tensor;

pub const TABLE: &[(&str, Function)] = &[
    ("matmul", |c| c.x()?.matmul(c.input(1)?)),
    ("linear", |c| c.x()?.linear(c.input(1)?, c.optional(2))),
    ("einsum", |c| {
        let equation = c.attrs.text_or("equation", "")?;
        Tensor::einsum(equation, &c.inputs.iter().collect::<Vec<_>>())
    }),
    ("scaled_dot_product_attention", attention),
];

/// q, k, v and perhaps a mask: `mask` says of which kind, else its dtype does.
fn attention(call: &Call) -> Result<Tensor> {
    let causal = call.attrs.flag_or("is_causal", false)?;
    let mask = match (call.optional(3), call.attrs.text_or("mask", "")?) {
        (None, _) => None,
        (Some(mask), "" | "additive") => Some(mask.clone()),
        (Some(mask), "bool" | "boolean") => Some(mask.to_dtype(DType::Bool)?),
        (_, other) => {
            return Err(Error::argument(
                "conformance",
                format!("a mask of the kind {other:?}"),
            ));
        }
    };
    let scale = call.attrs.number("scale")?;
    let (key, value) = (call.input(1)?, call.input(2)?);
    call.x()?
        .scaled_dot_product_attention(key, value, mask.as_ref(), causal, scale)
}
