//! What a call says of itself when it enters.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::Expr;
use syn::spanned::Spanned;

use super::params::Param;
use super::{ours, values};
use crate::model::{Guarded, Key};

/// Lets a call in: `enter(__permits)`, or `enter_with(&Request { … })` if it has more to say.
pub(super) fn enter(guarded: &Guarded) -> TokenStream {
    let (origin, keys) = evaluated(guarded);
    call(guarded, ["enter", "enter_with"], origin, &keys)
}

/// Begins the call of an async function, in a statement of its own: what the request is made of is not kept while the
/// block is awaited.
pub(super) fn begin(guarded: &Guarded, params: &[Param<'_>]) -> TokenStream {
    let (origin, keys) = evaluated(guarded);
    let begin = call(guarded, ["begin", "begin_with"], origin, &keys);
    let lent: Vec<&Ident> = params.iter().filter(|param| param.is_lent).map(|param| &param.name).collect();
    if lent.is_empty() {
        return quote_spanned! {ours()=> let __begun = #begin;};
    }
    // What a future has borrowed it keeps, even when it has moved it away: so keys are looked at in a function.
    quote_spanned! {ours()=>
        #[allow(clippy::shadow_reuse)]
        let (__begun, (#(#lent,)*)) = __leap::lend((#(#lent,)*), |(#(#lent,)*)| (#begin, (#(#lent,)*)));
    }
}

/// The same in two steps: evaluates what is to be said, while the arguments are there, and begins the call later.
pub(super) fn begin_later(guarded: &Guarded) -> (TokenStream, TokenStream) {
    let (origin, keys) = evaluated(guarded);
    let bind_origin = origin.as_ref().map(|origin| quote_spanned! {ours()=> let __origin = #origin;});
    let bind_keys = (!guarded.request.keys.is_empty()).then(|| quote_spanned! {ours()=> let __keys = #keys;});
    let origin = origin.map(|_| quote_spanned! {ours()=> __origin});
    let keys = bind_keys.as_ref().map_or(keys, |_| quote_spanned! {ours()=> __keys});
    let begin = call(guarded, ["begin", "begin_with"], origin, &keys);
    (quote_spanned! {ours()=> #bind_origin #bind_keys}, begin)
}

/// The origin and the keys, evaluated.
fn evaluated(guarded: &Guarded) -> (Option<TokenStream>, TokenStream) {
    let request = &guarded.request;
    let origin = request.origin.as_ref().map(|expr| {
        let origin = looked_at(expr, ["ToOrigin", "to_origin"]);
        quote_spanned! {ours()=> __leap::origin(__site, #origin)}
    });
    let keys = request.keys.iter().map(|Key { name, expr }| {
        let key = looked_at(expr, ["Keyed", "to_key"]);
        quote_spanned! {ours()=> (#name, __leap::key(__site, #key))}
    });
    (origin, quote_spanned! {ours()=> [#(#keys),*]})
}

fn call(
    guarded: &Guarded,
    [plain, with]: [&str; 2],
    origin: Option<TokenStream>,
    keys: &TokenStream,
) -> TokenStream {
    let request = &guarded.request;
    if request.is_plain() {
        let plain = Ident::new(plain, ours());
        return quote_spanned! {ours()=> __site.#plain(__permits)};
    }
    let with = Ident::new(with, ours());
    let (priority, inbound) = (request.priority, request.inbound);
    let origin = match origin {
        None => values::option(None),
        // By its path: what else is called `as_deref` is the user's.
        Some(origin) => quote_spanned! {ours()=> __leap::Option::as_deref(&#origin)},
    };
    let entrance = request.entrance.as_ref().map(|entrance| {
        let name = values::name(entrance);
        match entrance.unknown() {
            None => name,
            Some(_) => quote_spanned! {ours()=> { const __ENTRANCE: &__leap::str = #name; __ENTRANCE }},
        }
    });
    let entrance = values::option(entrance);
    quote_spanned! {ours()=>
        __site.#with(&__leap::Request {
            permits: __permits,
            priority: #priority,
            inbound: #inbound,
            origin: #origin,
            entrance: #entrance,
            keys: &#keys,
        })
    }
}

/// A closure that asks a trait of the runtime about the value of an expression, which it borrows. What does not fit is
/// blamed on the expression.
fn looked_at(expr: &Expr, [of, method]: [&str; 2]) -> TokenStream {
    let span = expr.span();
    let (of, method) = (Ident::new(of, span), Ident::new(method, span));
    let borrowed = match expr {
        // Without parentheses all of it is underlined, not its first token.
        Expr::Path(_)
        | Expr::Field(_)
        | Expr::Index(_)
        | Expr::Call(_)
        | Expr::MethodCall(_)
        | Expr::Macro(_) => {
            quote_spanned! {span=> &#expr}
        }
        _ => quote_spanned! {span=> &(#expr)},
    };
    let asked = quote_spanned! {span=> __leap::#of::#method(#borrowed)};
    quote_spanned! {ours()=> || #asked}
}
