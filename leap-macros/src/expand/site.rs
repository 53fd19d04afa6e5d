//! What a guarded function has of its own, one for all callers: its call site, with the name and the rules.

use proc_macro2::{Literal, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;

use super::{Leap, ours, rules, values};
use crate::args::Value;
use crate::model::Guarded;

/// The call site and the permits that a call asks for. The names of items are not hygienic, so they stand in
/// a block of their own, which the body does not see.
pub(super) fn site(guarded: &Guarded, leap: Leap<'_>) -> TokenStream {
    let rules = guarded.rules.iter().map(|rule| rules::build(rule, guarded, leap));
    let n_rules = Literal::usize_unsuffixed(rules.len());
    let resource = values::option(guarded.resource.as_ref().map(|name| values::name(name, leap)), leap);
    // As an item, a bad value is an error of `cargo check` too.
    let (permits, constant) = match &guarded.permits {
        None => (quote_spanned! {ours()=> 1}, None),
        Some(permits @ Value { known: Some(_), .. }) => (values::whole(permits), None),
        Some(Value { known: None, expr }) => {
            let at = leap.at(expr.span());
            let permits = quote_spanned! {expr.span()=> #at::permits(#expr)};
            (
                quote_spanned! {ours()=> __PERMITS},
                Some(quote_spanned! {ours()=> const __PERMITS: #leap::u32 = #permits;}),
            )
        }
    };
    // Who asks where a method was called is told the place of its name: that of the function. All else is ours.
    let place = guarded.function.sig.ident.span();
    let site = quote_spanned! {ours()=> &__SITE};
    let listed = quote_spanned! {place=> .listed(#site)};
    quote_spanned! {ours()=>
        {
            static __RULES: [#leap::Rule; #n_rules] = [#(#rules),*];
            fn __here() -> &'static #leap::str {
                #leap::path_of(#leap::type_name_of_val(&__here))
            }
            static __SITE: #leap::CallSite = #leap::CallSite::new(#resource, __here, &__RULES);
            #leap::catalogued! { #leap::Place #listed }
            #constant
            (&__SITE, #permits)
        }
    }
}
