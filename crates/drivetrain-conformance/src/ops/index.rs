//! Look-ups and scattered writes.

use super::Function;

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
];
