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
macro_rules! adaptive_pools {
    ($($(#[$doc:meta])* $name:ident => $method:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// Height and width of the result.
                pub output_size: Spatial,
            }

            impl $name {
                /// To this size.
                pub fn new(output_size: impl Into<Spatial>) -> Self {
                    $name { output_size: output_size.into() }
                }
            }
            impl Visit for $name {
                fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
            }
            impl Module for $name {}
            impl Layer for $name {
                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Tensor> {
                    input.$method(self.output_size)
                }
            }
        )*
    };
}

adaptive_pools! {
    /// Means to a fixed size, whatever the input's.
    AdaptiveAvgPool2d => adaptive_avg_pool2d;
    /// Maxima to a fixed size, whatever the input's.
    AdaptiveMaxPool2d => adaptive_max_pool2d;
}
