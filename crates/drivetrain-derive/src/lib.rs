//! `#[derive(Module)]`: a struct of layers becomes a module.
//!
//! The derive walks the fields in the order they are declared and hands each one to the visitor under its name,
//! so that `parameters`, `named_parameters`, `to`, `state_dict` and the rest of the `Module` trait see through
//! the struct. Names are PyTorch's: `features.0.weight` is field `features`, element 0, field `weight`.
//!
//! ```text
//! #[derive(Module)]
//! struct SimpleNet {
//!     fc: Linear,
//!     #[module(skip)]
//!     scale: f64,
//! }
//! ```
//!
//! writes
//!
//! ```text
//! impl Visit for SimpleNet {
//!     fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
//!         path.push("fc");
//!         Visit::visit(&self.fc, path, visitor);
//!         path.pop();
//!     }
//! }
//! impl Module for SimpleNet {}
//! ```
//!
//! # Which types
//! Structs with named or numbered fields, unit structs, and enums (the variant at hand is visited; its name is
//! not part of the path). Unions are refused. Every field that is not skipped must implement `Visit`: parameters,
//! buffers, layers, other derived modules, and `Vec`, `Option`, `Box` and arrays of those. A generic struct gets
//! the bound `FieldType: Visit` for each visited field whose type mentions a type parameter.
//!
//! # Options of a field
//! - `#[module(skip)]`: holds nothing to train, save or move (numbers, flags, text, closures).
//! - `#[module(rename = "weight_ih_l0")]`: this name in the path instead of the field's own.
//! - `#[module(flatten)]`: no name of its own; what is inside appears one level up.
//!
//! # Option of the type
//! - `#[module(crate = "drivetrain::nn")]`: where `Visit`, `Visitor`, `Path` and `Module` live. Without it the
//!   derive writes `::drivetrain_nn` in a package that depends on `drivetrain-nn` under that name (and in that
//!   package itself, which says `extern crate self as drivetrain_nn;`), and `::drivetrain::nn` everywhere else.

mod expand;
mod home;
mod options;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Visit` and `Module` by visiting the fields; see the crate's documentation for the options.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input, &home::of_calling_package())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
