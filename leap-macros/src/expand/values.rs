//! Values that the user wrote, as tokens.

use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;

use super::ours;
use crate::args::Value;

pub(super) fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote_spanned! {ours()=> __leap::Some(#value)},
        None => quote_spanned! {ours()=> __leap::None},
    }
}

/// A name: as the literal that it was, or as the expression that it is, checked where that stands.
pub(super) fn name(name: &Value<String>) -> TokenStream {
    let expr = &name.expr;
    match &name.known {
        Some(name) => literal(Literal::string(name), expr.span()),
        None => {
            quote_spanned! {expr.span()=> __leap::name(#expr)}
        }
    }
}

/// A whole number: as the literal that it was, less its suffix, or as the expression that it is.
pub(super) fn whole<N: Copy + Into<u64>>(value: &Value<N>) -> TokenStream {
    match value.known {
        Some(number) => literal(Literal::u64_unsuffixed(number.into()), value.expr.span()),
        None => value.expr.to_token_stream(),
    }
}

/// A number of any type as a float.
pub(super) fn float(value: &Value<f64>) -> TokenStream {
    match (value.known, &value.expr) {
        (Some(number), expr) => literal(Literal::f64_suffixed(number), ours().located_at(expr.span())),
        (None, expr) => quote_spanned! {ours().located_at(expr.span())=> (#expr) as __leap::f64},
    }
}

pub(super) fn literal(mut literal: Literal, span: Span) -> TokenStream {
    literal.set_span(span);
    TokenTree::from(literal).into()
}
