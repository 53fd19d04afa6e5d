//! How the value that a body returned is judged.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;

use super::ours;
use super::types::Returned;
use crate::model::Guarded;

/// A closure that judges: `ignore`, then `ok_if`, then `err_if`, then whether it is an `Err`.
/// That is found by type, so an alias of `Result` is no secret.
pub(super) fn judge(guarded: &Guarded, returned: &Returned) -> TokenStream {
    let verdict = &guarded.verdict;
    if returned.is_never {
        return quote_spanned! {ours()=> |_| __leap::Outcome::Success};
    }
    let ignored = verdict.ignore.as_ref().map(|pattern| {
        let span = pattern.span();
        let returned = Ident::new("__returned", span);
        let error = quote_spanned! {span=> __leap::error_of(#returned)};
        quote_spanned! {ours()=>
            let #returned = __value;
            if let __leap::Some(__error) = #error {
                match __error {
                    #pattern => return __leap::Outcome::Ignored,
                    _ => {}
                }
            }
        }
    });
    let told = [(&verdict.ok_if, "Success"), (&verdict.err_if, "Exception")];
    let told = told.into_iter().filter_map(|(predicate, outcome)| {
        let (predicate, outcome) = (predicate.as_ref()?, Ident::new(outcome, ours()));
        Some(quote_spanned! {ours()=>
            if __leap::holds(__value, #predicate) {
                return __leap::Outcome::#outcome;
            }
        })
    });
    // What is to be said of a future that is returned is said of the return type.
    // So is that a breaker waits for errors, where there are none.
    let waits_for_errors = verdict.err_if.is_none() && guarded.has_breaker_on_errors();
    let outcome = if waits_for_errors { "leap_outcome_or_error" } else { "leap_outcome" };
    let outcome = Ident::new(outcome, returned.span);
    quote_spanned! {ours()=>
        |__value| {
            use __leap::{ViaAny as _, ViaResult as _, ViaUnseenFuture as _, ViaUnseenStream as _};
            #ignored
            #(#told)*
            (&&__leap::Judged(__value)).#outcome()
        }
    }
}
