//! Pooling and resizing as layers.

use crate::{Layer, Module, Path, Visit, Visitor};
use drivetrain_core::Result;
use drivetrain_tensor::{AvgPoolOptions, MaxPoolOptions, Spatial, Tensor};

macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident($options:ident) => $method:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// The windows.
                pub options: $options,
            }

            impl $name {
                /// Windows of this size, side by side. For other choices fill in `options`.
                pub fn new(kernel: impl Into<Spatial>) -> Self {
                    $name { options: $options::new(kernel) }
                }

                /// Windows as said.
                pub fn with(options: $options) -> Self {
                    $name { options }
                }
            }
            impl Visit for $name {
                fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
            }
            impl Module for $name {}
            impl Layer for $name {
                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Tensor> {
                    input.$method(&self.options)
                }
            }
        )*
    };
}

pools! {
    /// Largest of each window over one dimension.
    MaxPool1d(MaxPoolOptions) => max_pool1d;
    /// Largest of each window over two dimensions.
    MaxPool2d(MaxPoolOptions) => max_pool2d;
    /// Mean of each window over one dimension.
    AvgPool1d(AvgPoolOptions) => avg_pool1d;
    /// Mean of each window over two dimensions.
    AvgPool2d(AvgPoolOptions) => avg_pool2d;
}
