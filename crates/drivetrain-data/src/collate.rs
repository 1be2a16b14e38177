//! Collation: a list of items becomes one batch.

use drivetrain_core::Result;

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

/// Stacks items along a new first dimension: see [`Stack`].
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultCollate;

impl<Item: Stack> Collate<Item> for DefaultCollate {
    type Batch = Item::Batch;

    fn collate(&self, items: Vec<Item>) -> Result<Item::Batch> {
        Item::stack(items)
    }
}

/// Items that the default collation can stack.
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

impl Stack for String {
    type Batch = Vec<String>;

    fn stack(items: Vec<Self>) -> Result<Vec<String>> {
        Ok(items)
    }
}
