//! Products.

use super::Function;

pub const TABLE: &[(&str, Function)] = &[
    ("matmul", |c| c.x()?.matmul(c.input(1)?)),
    ("linear", |c| c.x()?.linear(c.input(1)?, c.optional(2))),
];
