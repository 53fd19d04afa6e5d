//! The parameters: their names in the signature, and how the body takes them.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Meta, Pat, PatType, ReceiverKind, ReturnType, Signature, parse_quote_spanned};

use super::ours;
use super::types::with_plain_groups;
use crate::model::{Guarded, bound_by, plain_name};

/// A parameter: the name that it has in the signature, and the pattern that the body takes it by.
pub(super) struct Param<'a> {
    /// For the one place where it stands as the user wrote it.
    attrs: Vec<&'a Attribute>,
    /// For all others, where nobody may expect a lint.
    pub(super) other_attrs: Vec<Attribute>,
    pub(super) name: Ident,
    pub(super) pat: &'a Pat,
    /// Whether what a call says of itself uses it.
    pub(super) is_lent: bool,
    /// Whether the fallback is an expression that uses it, or a part of it.
    pub(super) is_wanted: bool,
    /// Whether a predicate uses it.
    is_asked_of: bool,
}

impl Param<'_> {
    /// Whether an expression of the attribute uses it.
    fn is_mentioned(&self) -> bool {
        self.is_lent || self.is_wanted || self.is_asked_of
    }
}

/// The signature with a name for each parameter, and the patterns that stood there.
///
/// Where the body is an async block, which takes the parameters from where they stand, plain names stand as they did.
pub(super) fn name_params(guarded: &Guarded, is_block: bool) -> (Signature, Vec<Param<'_>>) {
    let sig = &guarded.function.sig;
    let typed = sig.inputs.iter().enumerate().filter_map(|(index, input)| match input {
        FnArg::Receiver(_) => None,
        FnArg::Typed(PatType { attrs, pat, .. }) => Some((index, attrs, &**pat)),
    });
    let mut named = sig.clone();
    if let ReturnType::Type(_, ty) = &mut named.output {
        with_plain_groups(ty);
    }
    let mut params = Vec::new();
    for (index, attrs, pat) in typed {
        let is_lent = plain_name(pat).is_some_and(|name| guarded.request.mentions(name));
        let is_wanted = is_in_fallback(pat, guarded);
        let is_asked_of = plain_name(pat).is_some_and(|name| guarded.verdict.mentions(name));
        let is_mentioned = is_lent || is_wanted || is_asked_of;
        let name = match plain_name(pat) {
            // A plain name stays: documentation shows it, and keys are found by it.
            Some(name) if is_block || is_mentioned || !name.to_string().starts_with("__") => {
                let mut name = name.clone();
                if name.to_string().starts_with('_') && !is_mentioned && !is_block {
                    // Else the user would seem to use what is named as unused.
                    name.set_span(ours().located_at(name.span()));
                }
                name
            }
            // Nor would a name like ours be another than ours.
            _ => Ident::new(&format!("__arg{index}"), ours()),
        };
        let attrs: Vec<_> = attrs.iter().filter(|attr| is_for_the_compiler(attr)).collect();
        let other_attrs: Vec<_> = attrs.iter().map(|attr| without_expectation(attr)).collect();
        if let Some(FnArg::Typed(typed)) = named.inputs.get_mut(index) {
            let stays = is_block && plain_name(pat).is_some();
            if !stays {
                typed.attrs = typed.attrs.iter().map(without_expectation).collect();
            }
            if !stays {
                *typed.pat = parse_quote_spanned! {name.span()=> #name};
            }
            with_plain_groups(&mut typed.ty);
        }
        params.push(Param { attrs, other_attrs, name, pat, is_lent, is_wanted, is_asked_of });
    }
    (named, params)
}

/// Whether an attribute may stand on a `let` too; others are there for other macros.
fn is_for_the_compiler(attr: &Attribute) -> bool {
    ["cfg", "cfg_attr", "allow", "expect", "warn", "deny", "forbid"]
        .iter()
        .any(|name| attr.path().is_ident(name))
}

/// `#[expect(…)]` as `#[allow(…)]`.
fn without_expectation(attr: &Attribute) -> Attribute {
    let mut attr = attr.clone();
    if let Meta::List(list) = &mut attr.meta
        && list.path.is_ident("expect")
    {
        list.path = parse_quote_spanned! {list.path.span()=> allow};
    }
    attr
}

/// Whether the fallback is an expression that uses a name that `pat` binds.
fn is_in_fallback(pat: &Pat, guarded: &Guarded) -> bool {
    let Some(fallback) = &guarded.fallback else { return false };
    let mut bound = Vec::new();
    bound_by(pat, &mut bound);
    bound.into_iter().any(|name| fallback.mentions(name))
}

/// Binds all arguments again where the body is, one after the other: so they are dropped when and in the order in
/// which those of the plain function are.
pub(super) fn rebind(sig: &Signature, params: &[Param<'_>], is_block: bool) -> TokenStream {
    let receiver = sig.receiver().filter(|receiver| !matches!(receiver.kind, ReceiverKind::Reference(..)));
    let receiver = receiver.map(|receiver| {
        // All of `self` goes where the body goes, even if the body names one field.
        let this = &receiver.self_token;
        quote_spanned! {ours()=> let _ = &#this;}
    });
    let is_bound = |param: &&Param<'_>| is_block && plain_name(param.pat).is_some();
    let params = params.iter().filter(|param| !is_bound(param)).map(|param @ Param { attrs, other_attrs, name, pat, .. }| match pat {
        Pat::Ident(plain) if plain.ident == *name => {
            // A name that says that it is not used is used here, by us; others seem to shadow themselves.
            let is_unused = name.to_string().starts_with('_');
            let lints = match (is_unused, param.is_mentioned()) {
                (true, false) => quote_spanned! {ours()=> clippy::no_effect_underscore_binding},
                (true, true) => quote_spanned! {ours()=>
                    clippy::no_effect_underscore_binding, clippy::used_underscore_binding, clippy::shadow_same
                },
                (false, _) => quote_spanned! {ours()=> clippy::shadow_same, clippy::shadow_reuse},
            };
            let lints = quote_spanned! {ours()=> #[allow(#lints)]};
            // One that only the attribute uses is used all the same.
            let used = (param.is_mentioned() && !is_unused)
                .then(|| quote_spanned! {ours()=> #(#other_attrs)* let _ = &#name;});
            quote_spanned! {ours()=> #lints #(#attrs)* let #pat = #name; #used}
        }
        Pat::Wild(_) => quote_spanned! {ours()=> #(#attrs)* let #name = #name;},
        _ => {
            let mutability = has_ref_mut(pat.to_token_stream()).then(|| quote_spanned! {ours()=> mut});
            quote_spanned! {ours()=>
                #(#other_attrs)* let #mutability #name = #name;
                #(#attrs)* let #pat = #name;
            }
        }
    });
    quote! { #receiver #(#params)* }
}

/// Whether a pattern borrows what it takes apart mutably.
fn has_ref_mut(pattern: TokenStream) -> bool {
    let mut after_ref = false;
    pattern.into_iter().any(|token| {
        let found = match &token {
            TokenTree::Group(group) => has_ref_mut(group.stream()),
            TokenTree::Ident(name) => after_ref && name == "mut",
            _ => false,
        };
        after_ref = matches!(&token, TokenTree::Ident(name) if name == "ref");
        found
    })
}
