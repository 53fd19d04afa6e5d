//! What a guarded function has of its own, one for all callers: its call site, with the name and the rules.

use proc_macro2::{Literal, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;

use super::{ours, rules, values};
use crate::args::Value;
use crate::model::Guarded;

/// The call site and the permits that a call asks for. The names of items are not hygienic, so they stand in
/// a block of their own, which the body does not see.
pub(super) fn site(guarded: &Guarded) -> TokenStream {
    let rules = guarded.rules.iter().map(|rule| rules::build(rule, guarded));
    let n_rules = Literal::usize_unsuffixed(rules.len());
    let resource = values::option(guarded.resource.as_ref().map(values::name));
    // As an item, a bad value is an error of `cargo check` too.
    let (permits, constant) = match &guarded.permits {
        None => (quote_spanned! {ours()=> 1}, None),
        Some(permits @ Value { known: Some(_), .. }) => (values::whole(permits), None),
        Some(Value { known: None, expr }) => {
            let permits = quote_spanned! {expr.span()=> __leap::permits(#expr)};
            (
                quote_spanned! {ours()=> __PERMITS},
                Some(quote_spanned! {ours()=> const __PERMITS: __leap::u32 = #permits;}),
            )
        }
    };
    // Who asks where a method was called is told the place of its name: that of the function. All else is ours.
    let place = guarded.function.sig.ident.span();
    let site = quote_spanned! {ours()=> &__SITE};
    let listed = quote_spanned! {place=> .listed(#site)};
    quote_spanned! {ours()=>
        {
            static __RULES: [__leap::Rule; #n_rules] = [#(#rules),*];
            fn __here() -> &'static __leap::str {
                __leap::path_of(__leap::type_name_of_val(&__here))
            }
            static __SITE: __leap::CallSite = __leap::CallSite::new(#resource, __here, &__RULES);
            __leap::catalogued! { __leap::Place #listed }
            #constant
            (&__SITE, #permits)
        }
    }
}
