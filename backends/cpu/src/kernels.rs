//! The kernels, a file a family.

pub(crate) mod argreduce;
pub(crate) mod binary;
pub(crate) mod cast;
pub(crate) mod compare;
pub(crate) mod copy;
pub(crate) mod cumulative;
pub(crate) mod fill;
pub(crate) mod gather;
pub(crate) mod map;
pub(crate) mod math;
mod math32;
mod math64;
pub(crate) mod matmul_small;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod scatter;
pub(crate) mod select;
pub(crate) mod sort;
pub(crate) mod unary;
