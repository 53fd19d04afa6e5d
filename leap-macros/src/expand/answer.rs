//! What becomes of a call that was turned away, or that failed.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, ExprClosure, ExprPath, FnArg, Pat, Signature};

use super::params::Param;
use super::types::Returned;
use super::{Expansion, ours};
use crate::args;
use crate::model::{Fallback, bound_by, mention, plain_name};

/// Statements that answer in place of the body.
pub(super) struct Answer {
    /// The name that they know the `Blocked`, or the error, by.
    pub(super) given: Ident,
    pub(super) tokens: TokenStream,
}

/// Where an answer stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// In the function: it returns.
    Function,
    /// In an async block, which it returns from, and where it may be awaited.
    Block,
    /// In a closure whose value it is.
    Closure,
}

/// The return type itself says that the call was blocked: the value.
pub(super) fn from_blocked(returned: &Returned) -> (Ident, TokenStream) {
    // Blamed on the return type; for the compiler to do so, the variable must be the user's, in name and span.
    let given = Ident::new("__blocked", returned.span);
    // Under a name that nobody else gives it, lest the user's own be told to do.
    let value = quote_spanned! {returned.span=> __leap::Blockable::from_blocked(#given)};
    (given, value)
}

/// Takes all arguments as the caller passed them, one after the other: so they are dropped as a function drops its own;
/// a block drops what it has captured the other way round.
pub(super) fn take_all(expansion: &Expansion<'_>) -> TokenStream {
    // Under their own names: one with a `_` in front would say that the user wants to keep its type.
    let receiver = expansion.sig().receiver().map(|receiver| {
        let this = &receiver.self_token;
        quote_spanned! {ours()=> let __argument = #this;}
    });
    let params = expansion.params.iter().map(|Param { other_attrs: attrs, name, .. }| {
        let mut own = name.clone();
        own.set_span(ours().located_at(name.span()));
        quote_spanned! {ours()=> #(#attrs)* let #own = #name;}
    });
    quote_spanned! {ours()=> #receiver #(#params)*}
}

/// The same, under names of ours.
fn take(sig: &Signature, params: &[Param<'_>], span: Span) -> (TokenStream, Vec<Ident>) {
    let receiver =
        sig.receiver().map(|receiver| (&receiver.attrs[..], Ident::new("self", receiver.self_token.span)));
    let passed =
        receiver.into_iter().chain(params.iter().map(|param| (&param.other_attrs[..], param.name.clone())));
    let mut names = Vec::new();
    let bind = passed.enumerate().map(|(index, (attrs, passed))| {
        let name = Ident::new(&format!("__argument{index}"), span);
        // A name that says that it is not used is used here, by us.
        let lint = passed.to_string().starts_with('_').then(|| {
            quote_spanned! {ours()=> #[allow(clippy::used_underscore_binding)]}
        });
        let bind = quote_spanned! {ours()=> #lint #(#attrs)* let #name = #passed;};
        names.push(name);
        bind
    });
    let bind = bind.collect();
    (bind, names)
}

/// Takes the arguments that an expression uses under the names by which it does, and all others as above, unless the body
/// had them.
fn take_by_name(fallback: &Fallback, expansion: &Expansion<'_>) -> TokenStream {
    let (sig, params, is_after) =
        (expansion.sig(), &expansion.params, expansion.is_answered_after_the_body());
    let receiver = sig.receiver().filter(|receiver| {
        let this = Ident::new("self", receiver.self_token.span);
        !is_after && !fallback.mentions(&this)
    });
    let receiver = receiver.map(|receiver| {
        let (attrs, this) = (&receiver.attrs, &receiver.self_token);
        quote_spanned! {ours()=> #(#attrs)* let __argument = #this;}
    });
    let params =
        params.iter().enumerate().map(|(index, Param { other_attrs: attrs, name, pat, is_wanted, .. })| {
            if *is_wanted {
                return taken_apart(attrs, name, pat);
            }
            if is_after {
                return TokenStream::new();
            }
            let argument = Ident::new(&format!("__argument{index}"), ours());
            quote_spanned! {ours()=> #(#attrs)* let #argument = #name;}
        });
    let params: TokenStream = params.collect();
    quote_spanned! {ours()=> #receiver #params}
}

/// Takes a parameter apart for an expression. All of it counts as used, and as changed if it may be: the body may do what the
/// fallback does not.
fn taken_apart(attrs: &[Attribute], name: &Ident, pat: &Pat) -> TokenStream {
    let mut bound = Vec::new();
    bound_by(pat, &mut bound);
    let used = bound.iter().map(|name| {
        let mutability = is_mut(pat.to_token_stream(), name).then(|| quote_spanned! {ours()=> mut});
        quote_spanned! {ours()=> #(#attrs)* let _ = &#mutability #name;}
    });
    quote_spanned! {ours()=>
        #[allow(clippy::shadow_same, clippy::shadow_reuse)]
        #(#attrs)*
        let #pat = #name;
        #(#used)*
    }
}

/// Whether a pattern binds `name` as `mut`.
fn is_mut(pat: TokenStream, name: &Ident) -> bool {
    let mut after_mut = false;
    pat.into_iter().any(|token| {
        let found = match &token {
            TokenTree::Group(group) => is_mut(group.stream(), name),
            TokenTree::Ident(word) => after_mut && word == name,
            _ => false,
        };
        after_mut = matches!(&token, TokenTree::Ident(word) if word == "mut");
        found
    })
}

/// The fallback answers.
pub(super) fn of_fallback(fallback: &Fallback, place: Place, expansion: &Expansion<'_>) -> Answer {
    let Called { given, bind, call } = called(fallback, place, expansion);
    let answer = returned(&call, fallback, place, &expansion.returned);
    Answer { given, tokens: quote_spanned! {ours()=> #bind #answer} }
}

/// A fallback that is called, or evaluated.
struct Called {
    /// The name that it knows the `Blocked`, or the error, by.
    given: Ident,
    /// Statements that bring the arguments.
    bind: TokenStream,
    call: TokenStream,
}

fn called(fallback: &Fallback, place: Place, expansion: &Expansion<'_>) -> Called {
    let (sig, params) = (expansion.sig(), &expansion.params);
    let is_after = fallback.is_after_the_body();
    let given = |span| Ident::new(if is_after { "__error" } else { "__blocked" }, span);
    // What does not fit is blamed on the fallback. The arguments are ours, lest the compiler propose to edit them.
    match &fallback.what {
        args::Fallback::Path(path) => {
            let span = ours().located_at(path.span());
            let (bind, arguments) = take(sig, params, span);
            let given_there = given(span);
            let Fitting { bind: bind_path, callee } = fitting(path, arguments.len() + 1);
            let call = quote_spanned! {span=> #callee(#(#arguments,)* #given_there)};
            Called { given: given(ours()), bind: quote_spanned! {ours()=> #bind #bind_path}, call }
        }
        args::Fallback::Closure(closure) => {
            let span = ours().located_at(closure.span());
            let (bind, arguments) = take(sig, params, span);
            let closure = of_a_tuple(closure);
            let ty = match place {
                Place::Function => expansion.returned.ty.to_token_stream(),
                Place::Block | Place::Closure => quote_spanned! {ours()=> _},
            };
            let given_there = given(span);
            let call = quote_spanned! {span=>
                __leap::answer::<_, #ty>(#closure, (#(#arguments,)* #given_there,))
            };
            Called { given: given(ours()), bind, call }
        }
        args::Fallback::Expr(expr) => {
            let word = Ident::new(if is_after { "error" } else { "blocked" }, expr.span());
            let given = match mention(expr.to_token_stream(), &word) {
                Some(span) => Ident::new(&word.to_string(), span),
                None => given(ours()),
            };
            let bind = expansion.named.as_ref().map(|_| take_by_name(fallback, expansion));
            // It may only seem to be used.
            let bind = quote_spanned! {ours()=> let _ = &#given; #bind};
            Called { given, bind, call: expr.to_token_stream() }
        }
    }
}

/// What was called, as the value of where it stands.
fn returned(call: &TokenStream, fallback: &Fallback, place: Place, returned: &Returned) -> TokenStream {
    match place {
        Place::Closure => {
            let span = ours().located_at(call.span());
            quote_spanned! {span=> __leap::stream(#call)}
        }
        _ if returned.is_never => call.clone(),
        // What is called here may be async, which its type tells. An expression is evaluated as written: it awaits what
        // it wants to itself.
        Place::Block if fallback.takes_all() => {
            let (span, ty) = (ours().located_at(call.span()), &returned.ty);
            let answer = if returned.is_opaque {
                quote_spanned! {span=> AnswerOfAny::<_>}
            } else {
                quote_spanned! {span=> Answer::<_, #ty>}
            };
            quote_spanned! {span=>
                use __leap::{ViaFuture as _, ViaValue as _};
                let (__answer, __kind) = __leap::#answer::of(#call);
                let __way = (&__kind).leap_way();
                let (__value, __future) = __way.split(__answer);
                if __way.is_value() {
                    return __leap::one(__value);
                }
                __leap::no_value(__value);
                return __leap::one(__future).await;
            }
        }
        Place::Function | Place::Block => {
            let span = ours().located_at(call.span());
            quote_spanned! {span=>
                #[allow(unreachable_code, clippy::diverging_sub_expression, reason = "a fallback may never return")]
                return #call;
            }
        }
    }
}

/// The most values for which a fallback is asked whether it takes so many.
const MOST_TAKEN: usize = 12;

struct Fitting {
    bind: TokenStream,
    callee: TokenStream,
}

/// Asks a fallback whether it takes so many values, before it is given them.
fn fitting(path: &ExprPath, n_values: usize) -> Fitting {
    if n_values > MOST_TAKEN {
        return Fitting { bind: TokenStream::new(), callee: path.to_token_stream() };
    }
    let span = path.span();
    let ours = ours().located_at(span);
    let values = (0..n_values).map(|_| quote_spanned! {ours=> _});
    let bind = quote_spanned! {ours=>
        use __leap::{ViaFit as _, ViaMisfit as _};
        let __fallback = #path;
        (&__leap::taking::<_, (#(#values,)*)>(&__fallback)).leap_fits();
    };
    Fitting { bind, callee: quote_spanned! {ours=> __fallback} }
}

/// The closure, of one tuple: as an argument of a function that is given that as well, it knows its types.
fn of_a_tuple(closure: &ExprClosure) -> TokenStream {
    let ExprClosure { attrs, lifetimes, asyncness, output, body, .. } = closure;
    let capture = &closure.capture;
    let params = closure.inputs.iter().map(|input| match input {
        Pat::Type(typed) => {
            let (pat, ty) = (&typed.pat, &typed.ty);
            (pat.to_token_stream(), ty.to_token_stream())
        }
        pat => (pat.to_token_stream(), quote_spanned! {ours()=> _}),
    });
    let (pats, types): (Vec<_>, Vec<_>) = params.unzip();
    quote_spanned! {closure.span()=>
        #(#attrs)* #lifetimes #asyncness #capture |(#(#pats,)*): (#(#types,)*)| #output #body
    }
}

/// Asks of each argument that the fallback wants whether it is still there after the body had it, and says so at its type.
pub(super) fn kept(fallback: &Fallback, expansion: &Expansion<'_>) -> TokenStream {
    let receiver = expansion.sig().receiver().and_then(|receiver| {
        let this = Ident::new("self", receiver.self_token.span);
        let is_wanted = fallback.takes_all() || fallback.mentions(&this);
        is_wanted.then_some((this.clone(), this.span()))
    });
    let typed = expansion.sig().inputs.iter().filter_map(|input| match input {
        FnArg::Receiver(_) => None,
        FnArg::Typed(typed) => Some(typed.ty.span()),
    });
    // What is taken where it stands has a name only if it is no pattern.
    let has_name = |param: &Param<'_>| expansion.named.is_some() || plain_name(param.pat).is_some();
    let wanted = expansion
        .params
        .iter()
        .zip(typed)
        .filter(|(param, _)| (fallback.takes_all() || param.is_wanted) && has_name(param));
    let params = wanted.map(|(param, span)| (param.name.clone(), span));
    let asked = receiver.into_iter().chain(params).map(|(name, span)| {
        quote_spanned! {span=> __leap::kept(&#name);}
    });
    asked.collect()
}
