//! Tests of the derive's output, and of its messages.

use super::*;
use syn::parse_quote;

fn home() -> Path {
    parse_quote!(::drivetrain::nn)
}

fn output(input: DeriveInput) -> String {
    expand(&input, &home()).unwrap().to_string()
}

/// Compares with the tokens of `wanted`, whose spacing does not matter.
fn check(input: DeriveInput, wanted: TokenStream) {
    assert_eq!(output(input), wanted.to_string());
}

fn message(input: DeriveInput) -> String {
    let error = expand(&input, &home()).unwrap_err();
    error
        .into_iter()
        .map(|one| one.to_string())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn struct_fields_are_visited_in_order_under_their_names() {
    check(
        parse_quote! {
            struct Net {
                fc: Linear,
                #[module(skip)]
                scale: f64,
                r#type: Vec<Linear>,
            }
        },
        quote! {
            #[automatically_derived]
            impl ::drivetrain::nn::Visit for Net {
                #[allow(unused_variables)]
                fn visit(&self, path: &mut ::drivetrain::nn::Path, visitor: &mut dyn ::drivetrain::nn::Visitor) {
                    path.push("fc");
                    ::drivetrain::nn::Visit::visit(&self.fc, path, visitor);
                    path.pop();
                    path.push("type");
                    ::drivetrain::nn::Visit::visit(&self.r#type, path, visitor);
                    path.pop();
                }
            }
            #[automatically_derived]
            impl ::drivetrain::nn::Module for Net {}
        },
    );
}

#[test]
fn rename_and_flatten() {
    let text = output(parse_quote! {
        struct Net {
            #[module(rename = "weight_ih_l0")]
            input: Parameter,
            #[module(flatten)]
            inner: Inner,
        }
    });
    let body: TokenStream = quote! {{
        path.push("weight_ih_l0");
        ::drivetrain::nn::Visit::visit(&self.input, path, visitor);
        path.pop();
        ::drivetrain::nn::Visit::visit(&self.inner, path, visitor);
    }};
    assert!(text.contains(&body.to_string()), "{text}");
}

#[test]
fn numbered_fields_are_named_by_their_index() {
    let text = output(parse_quote!(
        struct Pair(Linear, #[module(skip)] usize, Linear);
    ));
    let body: TokenStream = quote! {{
        path.push("0");
        ::drivetrain::nn::Visit::visit(&self.0, path, visitor);
        path.pop();
        path.push("2");
        ::drivetrain::nn::Visit::visit(&self.2, path, visitor);
        path.pop();
    }};
    assert!(text.contains(&body.to_string()), "{text}");
}

#[test]
fn enums_visit_the_variant_at_hand() {
    let text = output(parse_quote! {
        enum Block {
            Plain(#[module(flatten)] Linear),
            Gated { gate: Linear },
            Nothing,
        }
    });
    let body: TokenStream = quote! {{
        match self {
            Self::Plain { 0: field_0 } => { ::drivetrain::nn::Visit::visit(field_0, path, visitor); }
            Self::Gated { gate: field_0 } => {
                path.push("gate");
                ::drivetrain::nn::Visit::visit(field_0, path, visitor);
                path.pop();
            }
            Self::Nothing {} => {}
        }
    }};
    assert!(text.contains(&body.to_string()), "{text}");
    assert!(
        output(parse_quote!(
            enum Never {}
        ))
        .contains("match * self { }")
    );
}

#[test]
fn bounds_follow_the_types_that_are_visited() {
    let text = output(parse_quote! {
        struct Wrapper<'a, M: Clone, F, const N: usize>
        where
            F: Fn(),
        {
            inner: Vec<M>,
            again: Vec<M>,
            plain: Linear,
            #[module(skip)]
            after: &'a F,
        }
    });
    let visit: TokenStream = quote! {
        impl<'a, M: Clone, F, const N: usize> ::drivetrain::nn::Visit for Wrapper<'a, M, F, N>
        where F: Fn(), Vec<M>: ::drivetrain::nn::Visit
    };
    let module: TokenStream = quote! {
        impl<'a, M: Clone, F, const N: usize> ::drivetrain::nn::Module for Wrapper<'a, M, F, N>
        where F: Fn(), Vec<M>: ::drivetrain::nn::Visit, Self: ::core::marker::Send + ::core::marker::Sync {}
    };
    assert!(text.contains(&visit.to_string()), "{text}");
    assert!(text.contains(&module.to_string()), "{text}");
}

#[test]
fn crate_option_moves_every_path() {
    let text = output(parse_quote! {
        #[module(crate = "engine::layers")]
        struct Net {
            fc: Linear,
        }
    });
    assert!(
        text.contains("impl engine :: layers :: Module for Net"),
        "{text}"
    );
    assert!(!text.contains("drivetrain"), "{text}");
}

#[test]
fn unions_are_refused() {
    let text = message(parse_quote!(
        union Either {
            a: u32,
            b: f32,
        }
    ));
    assert!(
        text.contains("union") && text.contains("use an enum"),
        "{text}"
    );
}

#[test]
fn wrong_options_are_named() {
    let cases: [(DeriveInput, &str); 10] = [
        (
            parse_quote!(
                struct N {
                    #[module(ignore)]
                    a: u8,
                }
            ),
            "known are skip, flatten and rename",
        ),
        (
            parse_quote!(
                struct N {
                    #[module(skip, flatten)]
                    a: u8,
                }
            ),
            "one of skip, flatten and rename",
        ),
        (
            parse_quote!(
                struct N {
                    #[module(skip)]
                    #[module(skip)]
                    a: u8,
                }
            ),
            "one of skip, flatten and rename",
        ),
        (
            parse_quote!(
                struct N {
                    #[module(rename = "")]
                    a: u8,
                }
            ),
            "not empty",
        ),
        (
            parse_quote!(
                struct N {
                    #[module(rename = "a.b")]
                    a: u8,
                }
            ),
            "has no dot",
        ),
        (
            parse_quote!(
                struct N {
                    #[module(rename = 3)]
                    a: u8,
                }
            ),
            "string literal",
        ),
        (
            parse_quote!(
                struct N {
                    #[module]
                    a: u8,
                }
            ),
            "module(...)",
        ),
        (
            parse_quote!(
                #[module(skip)]
                struct N;
            ),
            "belong to a field",
        ),
        (
            parse_quote!(
                enum N {
                    #[module(skip)]
                    A,
                }
            ),
            "give it to the fields inside",
        ),
        (
            parse_quote!(
                struct N {
                    a: u8,
                    #[module(rename = "a")]
                    b: u8,
                }
            ),
            "two fields are named `a`",
        ),
    ];
    for (input, wanted) in cases {
        let declaration = input.to_token_stream().to_string();
        let text = message(input);
        assert!(text.contains(wanted), "{declaration}: {text}");
    }
}

#[test]
fn every_wrong_field_is_reported_at_once() {
    let text = message(parse_quote!(
        struct N {
            #[module(first)]
            a: u8,
            #[module(second)]
            b: u8,
        }
    ));
    assert_eq!(text.lines().count(), 2, "{text}");
}
