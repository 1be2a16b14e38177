//! Reads the `#[module(…)]` attributes of types and fields.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Field, LitStr, Path, Result, Variant};

/// What the derive does with one field.
#[derive(Debug, PartialEq, Eq)]
pub enum FieldOption {
    /// Visited under its own name.
    Own,
    /// Not visited.
    Skip,
    /// Visited under this name.
    Rename(String),
    /// Visited without a name.
    Flatten,
}

/// The option of one field; at most one may be given.
pub fn of_field(field: &Field) -> Result<FieldOption> {
    let mut option = FieldOption::Own;
    each_option(&field.attrs, |meta| {
        let found = if meta.path.is_ident("skip") {
            FieldOption::Skip
        } else if meta.path.is_ident("flatten") {
            FieldOption::Flatten
        } else if meta.path.is_ident("rename") {
            FieldOption::Rename(name(&meta.value()?.parse()?)?)
        } else {
            return Err(meta.error(
                "unknown option of a field; known are skip, flatten and rename = \"name\"",
            ));
        };
        if option != FieldOption::Own {
            return Err(meta.error("a field takes one of skip, flatten and rename, once"));
        }
        option = found;
        Ok(())
    })?;
    Ok(option)
}

/// The `crate = "path"` of the type, if given.
pub fn of_type(attributes: &[Attribute]) -> Result<Option<Path>> {
    let mut home = None;
    each_option(attributes, |meta| {
        if !meta.path.is_ident("crate") {
            return Err(meta.error(
                "unknown option of a type; known is crate = \"path\" (skip, flatten and rename belong to a field)",
            ));
        }
        if home.is_some() {
            return Err(meta.error("crate is given twice"));
        }
        home = Some(meta.value()?.parse::<LitStr>()?.parse::<Path>()?);
        Ok(())
    })?;
    Ok(home)
}

/// A variant takes no option of its own.
pub fn refuse_on(variant: &Variant) -> Result<()> {
    each_option(&variant.attrs, |meta| {
        Err(meta.error("an enum's variant takes no option; give it to the fields inside"))
    })
}

fn each_option(
    attributes: &[Attribute],
    mut read: impl FnMut(ParseNestedMeta) -> Result<()>,
) -> Result<()> {
    for attribute in attributes.iter().filter(|a| a.path().is_ident("module")) {
        attribute.parse_nested_meta(&mut read)?;
    }
    Ok(())
}

fn name(literal: &LitStr) -> Result<String> {
    let name = literal.value();
    if name.is_empty() || name.contains('.') {
        return Err(Error::new(
            literal.span(),
            "a name in the path is not empty and has no dot, which separates names",
        ));
    }
    Ok(name)
}
