//! Look-ups and scattered writes.

use super::{Call, Function};
use drivetrain_core::{Error, Result};
use drivetrain_tensor::Tensor;

pub const TABLE: &[(&str, Function)] = &[
    ("gather", |c| c.x()?.gather(c.dim_or(0)?, c.input(1)?)),
    ("index_select", |c| {
        c.x()?.index_select(c.dim_or(0)?, c.input(1)?)
    }),
    ("scatter_add", |c| {
        c.x()?.scatter_add(c.dim_or(0)?, c.input(1)?, c.input(2)?)
    }),
    ("scatter", |c| {
        c.x()?.scatter(c.dim_or(0)?, c.input(1)?, c.input(2)?)
    }),
    ("index_add", |c| {
        c.x()?.index_add(c.dim_or(0)?, c.input(1)?, c.input(2)?)
    }),
    ("embedding", embedding),
    ("one_hot", |c| {
        let classes = c.attrs.integer_or("num_classes", -1)?;
        c.x()?.one_hot(usize::try_from(classes).ok())
    }),
];

/// ids, then the table; a negative `padding_idx` counts from the end.
fn embedding(call: &Call) -> Result<Tensor> {
    let (ids, table) = call.two()?;
    let row = call.attrs.integer("padding_idx")?.map(|row| {
        let row = if row < 0 {
            row + table.len() as isize
        } else {
            row
        };
        usize::try_from(row).map_err(|_| Error::argument("embedding", format!("padding_idx {row}")))
    });
    drivetrain_nn::functional::embedding(ids, table, row.transpose()?)
}
