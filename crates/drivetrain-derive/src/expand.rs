//! Turns a type's declaration into its `Visit` and `Module` implementations, tokens to tokens.

use crate::options::{self, FieldOption};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Generics, Path, Result, Type};

/// The two implementations for `input`; `default_home` is used where the type names no `crate`.
pub fn expand(input: &DeriveInput, default_home: &Path) -> Result<TokenStream> {
    let home = options::of_type(&input.attrs)?.unwrap_or_else(|| default_home.clone());
    let mut visited = Vec::new();
    let body = match &input.data {
        Data::Struct(data) => {
            let names = data.fields.members();
            let places = names
                .map(|member| quote!(&self.#member))
                .collect::<Vec<_>>();
            visit_fields(&data.fields, &places, &home, &mut visited)?
        }
        Data::Enum(data) => visit_variants(data, &home, &mut visited)?,
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span(),
                "a union cannot be a module: which of its fields is alive is not known; use an enum",
            ));
        }
    };
    let name = &input.ident;
    let (parameters, arguments, _) = input.generics.split_for_impl();
    let (visit_bounds, module_bounds) = bounds(&input.generics, &visited, &home);
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #home::Visit for #name #arguments #visit_bounds {
            #[allow(unused_variables)]
            fn visit(&self, path: &mut #home::Path, visitor: &mut dyn #home::Visitor) {
                #body
            }
        }
        #[automatically_derived]
        impl #parameters #home::Module for #name #arguments #module_bounds {}
    })
}

/// One arm a variant, which binds the fields that are visited.
fn visit_variants(
    data: &syn::DataEnum,
    home: &Path,
    visited: &mut Vec<Type>,
) -> Result<TokenStream> {
    if data.variants.is_empty() {
        return Ok(quote!(match *self {}));
    }
    let mut arms = TokenStream::new();
    for variant in &data.variants {
        options::refuse_on(variant)?;
        let name = &variant.ident;
        let members = variant.fields.members().collect::<Vec<_>>();
        let places = (0..members.len())
            .map(|index| Ident::new(&format!("field_{index}"), Span::mixed_site()))
            .collect::<Vec<_>>();
        let visits = visit_fields(
            &variant.fields,
            &places
                .iter()
                .map(ToTokens::to_token_stream)
                .collect::<Vec<_>>(),
            home,
            visited,
        )?;
        arms.extend(quote!(Self::#name { #(#members: #places),* } => { #visits }));
    }
    Ok(quote!(match self { #arms }))
}

/// The visits of `fields`, found at `places`, in order; notes the types that are visited.
fn visit_fields(
    fields: &Fields,
    places: &[TokenStream],
    home: &Path,
    visited: &mut Vec<Type>,
) -> Result<TokenStream> {
    let mut body = TokenStream::new();
    let mut names = Vec::new();
    let mut faults: Option<Error> = None;
    for (index, (field, place)) in fields.iter().zip(places).enumerate() {
        let own = || {
            field
                .ident
                .as_ref()
                .map_or_else(|| index.to_string(), |ident| ident.unraw().to_string())
        };
        let name = match options::of_field(field) {
            Ok(FieldOption::Skip) => continue,
            Ok(FieldOption::Own) => Some(own()),
            Ok(FieldOption::Rename(name)) => Some(name),
            Ok(FieldOption::Flatten) => None,
            Err(fault) => {
                note(&mut faults, fault);
                continue;
            }
        };
        if let Some(name) = &name {
            if names.contains(name) {
                note(
                    &mut faults,
                    Error::new(field.span(), format!("two fields are named `{name}`")),
                );
            }
            names.push(name.clone());
        }
        visited.push(field.ty.clone());
        // The type's span: if it is no `Visit`, the compiler points at the field.
        let visit = quote_spanned!(field.ty.span()=> #home::Visit::visit(#place, path, visitor););
        body.extend(match name {
            Some(name) => quote!(path.push(#name); #visit path.pop();),
            None => visit,
        });
    }
    faults.map_or(Ok(body), Err)
}

fn note(faults: &mut Option<Error>, fault: Error) {
    match faults {
        Some(first) => first.combine(fault),
        None => *faults = Some(fault),
    }
}

/// The where clauses of `Visit` and of `Module`. Fields of generic type must be `Visit`; `Module` is also shared
/// between threads, which only the user of a generic type can promise.
fn bounds(generics: &Generics, visited: &[Type], home: &Path) -> (TokenStream, TokenStream) {
    let parameters = generics
        .type_params()
        .map(|parameter| &parameter.ident)
        .collect::<Vec<_>>();
    let own = generics
        .where_clause
        .iter()
        .flat_map(|clause| &clause.predicates)
        .collect::<Vec<_>>();
    let mut visit = own
        .iter()
        .map(ToTokens::to_token_stream)
        .collect::<Vec<_>>();
    for ty in visited
        .iter()
        .filter(|ty| mentions(ty.to_token_stream(), &parameters))
    {
        let bound = quote!(#ty: #home::Visit);
        if !visit
            .iter()
            .any(|known| known.to_string() == bound.to_string())
        {
            visit.push(bound);
        }
    }
    let mut module = visit.clone();
    if !parameters.is_empty() {
        module.push(quote!(Self: ::core::marker::Send + ::core::marker::Sync));
    }
    (clause(&visit), clause(&module))
}

fn clause(predicates: &[TokenStream]) -> TokenStream {
    if predicates.is_empty() {
        return TokenStream::new();
    }
    quote!(where #(#predicates),*)
}

fn mentions(tokens: TokenStream, parameters: &[&Ident]) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => parameters.contains(&&ident),
        TokenTree::Group(group) => mentions(group.stream(), parameters),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
