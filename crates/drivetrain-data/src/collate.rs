//! Collation: a list of items becomes one batch of tensors.

use drivetrain_core::half::{bf16, f16};
use drivetrain_core::{Element, Error, Result};
use drivetrain_tensor::Tensor;

use crate::image::{Image, Pixels};

/// Makes one batch of a list of items. Closures are collations: `|items: Vec<Item>| -> Result<Batch> { … }`.
pub trait Collate<Item>: Send + Sync {
    /// What a batch is.
    type Batch: Send + 'static;

    /// The batch of these items (at least one), in order.
    fn collate(&self, items: Vec<Item>) -> Result<Self::Batch>;
}

impl<F, Item, Batch> Collate<Item> for F
where
    F: Fn(Vec<Item>) -> Result<Batch> + Send + Sync,
    Batch: Send + 'static,
{
    type Batch = Batch;

    fn collate(&self, items: Vec<Item>) -> Result<Batch> {
        self(items)
    }
}

/// Stacks items along a new first dimension: see [`Stack`]. `(Image, i64)` items give a tensor [N, C, H, W] of
/// F32 and one \[N\] of I64, on the CPU; `to` takes them to another device.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultCollate;

impl<Item: Stack> Collate<Item> for DefaultCollate {
    type Batch = Item::Batch;

    fn collate(&self, items: Vec<Item>) -> Result<Item::Batch> {
        Item::stack(items)
    }
}

/// Items that the default collation can stack: tensors (on their device); images, numbers, arrays and `Vec`s of
/// numbers (on the CPU); strings (as a `Vec`); tuples of up to four of these.
pub trait Stack: Sized {
    /// What they stack to.
    type Batch: Send + 'static;

    /// The items along a new first dimension, in order.
    fn stack(items: Vec<Self>) -> Result<Self::Batch>;
}

macro_rules! stack_tuple {
    ($($item:ident $list:ident),*) => {
        impl<$($item: Stack),*> Stack for ($($item,)*) {
            type Batch = ($($item::Batch,)*);

            fn stack(items: Vec<Self>) -> Result<Self::Batch> {
                $(let mut $list = Vec::with_capacity(items.len());)*
                for ($($item,)*) in items {
                    $($list.push($item);)*
                }
                Ok(($($item::stack($list)?,)*))
            }
        }
    };
}

// Type parameters double as the names of the values, hence the odd case.
#[allow(non_snake_case)]
mod tuples {
    use super::*;
    stack_tuple!(A a);
    stack_tuple!(A a, B b);
    stack_tuple!(A a, B b, C c);
    stack_tuple!(A a, B b, C c, D d);
}

impl Stack for Tensor {
    type Batch = Tensor;

    /// [N, …] on the device of the items, which must have one shape.
    fn stack(items: Vec<Self>) -> Result<Tensor> {
        Tensor::stack(&items.iter().collect::<Vec<_>>(), 0)
    }
}

impl Stack for Image {
    type Batch = Tensor;

    /// [N, C, H, W] of F32 on the CPU; bytes become 0 to 1. All images must have one shape.
    fn stack(items: Vec<Self>) -> Result<Tensor> {
        let shape = items.first().map_or([0; 3], Image::shape);
        if let Some(other) = items.iter().position(|image| image.shape() != shape) {
            return Err(Error::shape(
                "stack images",
                format!(
                    "image 0 has shape {shape:?}, image {other} of the batch {:?}",
                    items[other].shape()
                ),
            )
            .help("a Resize or a crop in the transform makes them equal"));
        }
        let count = items.first().map_or(0, |image| image.pixels().len());
        let mut floats = Vec::with_capacity(count.saturating_mul(items.len()));
        let [channels, height, width] = shape;
        let shape = [items.len(), channels, height, width];
        // Each image is freed once it is copied: a large batch does not need its memory twice.
        for image in items {
            match image.into_pixels() {
                Pixels::U8(bytes) => floats.extend(bytes.into_iter().map(byte_to_f32)),
                Pixels::F32(pixels) => floats.extend(pixels),
            }
        }
        Tensor::from_vec(floats, shape, &Tensor::cpu_device()?)
    }
}

/// 0..=255 to 0..=1, by the division that PyTorch does.
pub(crate) fn byte_to_f32(byte: u8) -> f32 {
    f32::from(byte) / 255.0
}

macro_rules! stack_numbers {
    ($($number:ty)*) => {
        $(impl Stack for $number {
            type Batch = Tensor;

            /// \[N\] of the items' dtype on the CPU.
            fn stack(items: Vec<Self>) -> Result<Tensor> {
                let count = items.len();
                Tensor::from_vec(items, [count], &Tensor::cpu_device()?)
            }
        })*
    };
}

stack_numbers!(f32 f64 f16 bf16 i64 i32 u8 bool);

impl<T: Element> Stack for Vec<T> {
    type Batch = Tensor;

    /// [N, length] on the CPU; all items must have one length.
    fn stack(items: Vec<Self>) -> Result<Tensor> {
        let length = items.first().map_or(0, Vec::len);
        stack_rows(items.len(), length, items)
    }
}

impl<T: Element, const LENGTH: usize> Stack for [T; LENGTH] {
    type Batch = Tensor;

    /// [N, LENGTH] on the CPU.
    fn stack(items: Vec<Self>) -> Result<Tensor> {
        stack_rows(items.len(), LENGTH, items)
    }
}

fn stack_rows<T: Element, Row: AsRef<[T]>>(
    count: usize,
    length: usize,
    rows: Vec<Row>,
) -> Result<Tensor> {
    let mut elements = Vec::with_capacity(count.saturating_mul(length));
    for (index, row) in rows.into_iter().enumerate() {
        let row = row.as_ref();
        if row.len() != length {
            return Err(Error::shape(
                "stack",
                format!(
                    "item 0 has {length} elements, item {index} of the batch {}",
                    row.len()
                ),
            )
            .help("a collate of your own may pad them"));
        }
        elements.extend_from_slice(row);
    }
    Tensor::from_vec(elements, [count, length], &Tensor::cpu_device()?)
}

impl Stack for String {
    type Batch = Vec<String>;

    fn stack(items: Vec<Self>) -> Result<Vec<String>> {
        Ok(items)
    }
}
