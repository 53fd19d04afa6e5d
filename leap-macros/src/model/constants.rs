//! Values that go into a `static`, and the names that expressions use.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, Signature};

use super::function::plain_name;
use crate::args::{Given, Value};
use crate::errors::Errors;

/// Values that are looked at as they are taken: they go into a `static`, and one of it serves all callers.
pub(super) struct Constants<'a> {
    pub(super) sig: &'a Signature,
    pub(super) errors: &'a mut Errors,
}

impl<'a> Constants<'a> {
    pub(super) fn new(sig: &'a Signature, errors: &'a mut Errors) -> Self {
        Self { sig, errors }
    }

    pub(super) fn take<T>(&mut self, given: Option<Given<Value<T>>>) -> Option<Value<T>> {
        let Given { key, value } = given?;
        self.check(&key, &value);
        Some(value)
    }

    pub(super) fn check<T>(&mut self, key: &Ident, value: &Value<T>) {
        let Some(expr) = value.unknown() else { return };
        let binds_names = binds_names(expr.to_token_stream());
        for_each_name(expr.to_token_stream(), &mut |name, is_path| {
            if is_generic(self.sig, name) {
                let message = format!(
                    "`{key}` cannot depend on `{name}`: all callers of the function share one guard, whatever its \
                     generic parameters"
                );
                self.errors.at(name, message);
            } else if !is_path && !binds_names && is_parameter(self.sig, name) {
                let message = format!(
                    "`{key}` cannot depend on `{name}`, which each call brings: it is a constant, one for all calls"
                );
                self.errors.at(name, message);
            }
        });
    }
}

fn is_generic(sig: &Signature, name: &Ident) -> bool {
    name == "Self"
        || name == "self"
        || sig.generics.type_params().any(|parameter| parameter.ident == *name)
        || sig.generics.const_params().any(|parameter| parameter.ident == *name)
}

fn is_parameter(sig: &Signature, name: &Ident) -> bool {
    sig.inputs.iter().any(|input| match input {
        FnArg::Receiver(_) => false,
        FnArg::Typed(typed) => plain_name(&typed.pat).is_some_and(|parameter| parameter == name),
    })
}

/// Visits the names in an expression that stand for themselves, and tells whether a path begins with them: what follows
/// `::` or `.` is a name in something else.
pub(super) fn for_each_name(tokens: TokenStream, visit: &mut impl FnMut(&Ident, bool)) {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    let mut is_path_head = true;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Group(group) => for_each_name(group.stream(), visit),
            TokenTree::Ident(name) if is_path_head => visit(name, tokens.peek().is_some_and(is_colon)),
            _ => {}
        }
        is_path_head = !matches!(&token, TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '.'));
    }
}

/// Whether there may be names in an expression that it binds itself.
pub(super) fn binds_names(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => binds_names(group.stream()),
        TokenTree::Ident(word) => word == "let" || word == "match" || word == "fn",
        TokenTree::Punct(punct) => punct.as_char() == '|',
        TokenTree::Literal(_) => false,
    })
}
