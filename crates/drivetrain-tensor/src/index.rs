//! Indexing as in Python: integers, ranges, steps, new axes, an ellipsis, index tensors and masks.
//!
//! `x[1, ..., :-1]` is `x.index((1, Index::Ellipsis, ..-1))`. What Python does by views is a view here; index
//! tensors and masks gather a copy. Everything stays on x's device and in the graph.

mod advanced;
mod plan;

use crate::Tensor;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// One item between the brackets. Made from integers, ranges, tensors and lists by `into()`.
///
/// ```
/// # use drivetrain_cpu as _;
/// use drivetrain_tensor::{Device, Index, Tensor};
/// let x = Tensor::arange(0.0f32, 12.0, 1.0, &Device::open("cpu")?)?.reshape([3, 4])?;
/// assert_eq!(x.index((1, ..2))?.to_vec::<f32>()?, [4.0, 5.0]);
/// assert_eq!(x.index((.., -1))?.to_vec::<f32>()?, [3.0, 7.0, 11.0]);
/// assert_eq!(x.index((0, Index::step(.., -2)))?.to_vec::<f32>()?, [3.0, 1.0]);
/// assert_eq!(x.index(([2, 0], [1, 1]))?.to_vec::<f32>()?, [9.0, 1.0]);
/// assert_eq!(x.index(x.gt(9.0)?)?.to_vec::<f32>()?, [10.0, 11.0]);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
#[derive(Clone)]
pub enum Index {
    /// One element; the dimension goes. Negative ones count from the end.
    At(isize),
    /// `start:end:step` as in Python: negative bounds count from the end, bounds outside are clipped.
    Range {
        /// First; the beginning when left out (the end, walking back).
        start: Option<isize>,
        /// The one not taken any more; the end when left out (past the beginning, walking back).
        end: Option<isize>,
        /// From one to the next; negative steps walk back.
        step: isize,
    },
    /// A new dimension of size 1.
    NewAxis,
    /// As many full dimensions as are left.
    Ellipsis,
    /// Integers (I64, I32): elements in this order, in this shape. Bool: where it is true; it takes as many
    /// dimensions as it has.
    Tensor(Tensor),
    /// Elements in this order.
    List(Vec<i64>),
}

/// A range of indices: `1..3`, `..-1`, `2..`, `..`, `0..=4`. (Clippy takes a literal `1..-1` for a mistake;
/// `Index::from(1..).until(-1)` says the same.)
pub trait IndexRange {
    /// Start and end as in [`Index::Range`].
    fn bounds(self) -> (Option<isize>, Option<isize>);
}

impl IndexRange for RangeFull {
    fn bounds(self) -> (Option<isize>, Option<isize>) {
        (None, None)
    }
}

impl Index {
    /// Every `step`-th of a range: `Index::step(1..9, 2)`, `Index::step(.., -1)`. A range that walks back is
    /// written as in Python, from the higher bound to the lower.
    pub fn step(range: impl IndexRange, step: isize) -> Index {
        let (start, end) = range.bounds();
        Index::Range { start, end, step }
    }
}

impl Index {
    /// A range with another end: `Index::from(1..).until(-1)` is Python's `1:-1`. Other items stay as they are.
    #[must_use]
    pub fn until(self, end: isize) -> Index {
        match self {
            Index::Range { start, step, .. } => Index::Range {
                start,
                end: Some(end),
                step,
            },
            other => other,
        }
    }
}

/// The end of a range that includes `last`; -1 is the last element, so nothing comes after it.
fn after(last: isize) -> Option<isize> {
    match last {
        -1 => None,
        last => Some(last.saturating_add(1)),
    }
}

impl From<RangeFull> for Index {
    fn from(range: RangeFull) -> Index {
        Index::step(range, 1)
    }
}

/// The same for every type that an integer literal may have. What is too large for `isize` is out of any range.
macro_rules! integers {
    ($($type:ty),*) => {
        $(
            integers!(@range $type: Range<$type>, |r| (Some(r.start), Some(r.end)), |end| Some(end));
            integers!(@range $type: RangeFrom<$type>, |r| (Some(r.start), None), |end| Some(end));
            integers!(@range $type: RangeTo<$type>, |r| (None, Some(r.end)), |end| Some(end));
            integers!(@range $type: RangeInclusive<$type>, |r| (Some(*r.start()), Some(*r.end())), after);
            integers!(@range $type: RangeToInclusive<$type>, |r| (None, Some(r.end)), after);

            impl From<$type> for Index {
                fn from(index: $type) -> Index {
                    Index::At(isize::try_from(index).unwrap_or(isize::MAX))
                }
            }
            impl<const N: usize> From<[$type; N]> for Index {
                fn from(list: [$type; N]) -> Index {
                    Index::from(list.as_slice())
                }
            }
            impl From<&[$type]> for Index {
                fn from(list: &[$type]) -> Index {
                    let wide = |&i: &$type| i64::try_from(i).unwrap_or(i64::MAX);
                    Index::List(list.iter().map(wide).collect())
                }
            }
            impl From<Vec<$type>> for Index {
                fn from(list: Vec<$type>) -> Index {
                    Index::from(list.as_slice())
                }
            }
        )*
    };
    (@range $type:ty: $range:ty, $bounds:expr, $end:expr) => {
        impl IndexRange for $range {
            fn bounds(self) -> (Option<isize>, Option<isize>) {
                let wide = |i: $type| isize::try_from(i).unwrap_or(isize::MAX);
                let split: fn($range) -> (Option<$type>, Option<$type>) = $bounds;
                let end: fn(isize) -> Option<isize> = $end;
                let (first, last) = split(self);
                (first.map(wide), last.map(wide).and_then(end))
            }
        }
        impl From<$range> for Index {
            fn from(range: $range) -> Index {
                Index::step(range, 1)
            }
        }
    };
}
integers!(i32, i64, isize, usize);

impl From<&Tensor> for Index {
    fn from(tensor: &Tensor) -> Index {
        Index::Tensor(tensor.clone())
    }
}

impl From<Tensor> for Index {
    fn from(tensor: Tensor) -> Index {
        Index::Tensor(tensor)
    }
}

/// What may stand between the brackets: one item, a tuple of up to eight, or a list of [`Index`].
pub trait IntoIndex {
    /// The items in order.
    fn items(self) -> Vec<Index>;
}

impl<I: Into<Index>> IntoIndex for I {
    fn items(self) -> Vec<Index> {
        vec![self.into()]
    }
}

impl IntoIndex for Vec<Index> {
    fn items(self) -> Vec<Index> {
        self
    }
}

impl IntoIndex for &[Index] {
    fn items(self) -> Vec<Index> {
        self.to_vec()
    }
}

impl<const N: usize> IntoIndex for [Index; N] {
    fn items(self) -> Vec<Index> {
        self.to_vec()
    }
}

impl<const N: usize> IntoIndex for &[Index; N] {
    fn items(self) -> Vec<Index> {
        self.to_vec()
    }
}

impl IntoIndex for () {
    fn items(self) -> Vec<Index> {
        Vec::new()
    }
}

macro_rules! tuples {
    ($(($($name:ident),*);)*) => {
        $(impl<$($name: Into<Index>),*> IntoIndex for ($($name,)*) {
            #[allow(non_snake_case)]
            fn items(self) -> Vec<Index> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        })*
    };
}
tuples! {
    (A);
    (A, B);
    (A, B, C);
    (A, B, C, D);
    (A, B, C, D, E);
    (A, B, C, D, E, F);
    (A, B, C, D, E, F, G);
    (A, B, C, D, E, F, G, H);
}
