//! Values that go into a `static`, and the names that expressions use.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Signature;

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
        for_each_name(expr.to_token_stream(), &mut |name| {
            if is_generic(self.sig, name) {
                let message = format!(
                    "`{key}` cannot depend on `{name}`: all callers of the function share one guard, whatever its \
                     generic parameters"
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

/// Visits the names in an expression that stand for themselves: what follows `::` or `.` is a name in something else.
pub(super) fn for_each_name(tokens: TokenStream, visit: &mut impl FnMut(&Ident)) {
    let mut is_path_head = true;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => for_each_name(group.stream(), visit),
            TokenTree::Ident(name) if is_path_head => visit(name),
            _ => {}
        }
        is_path_head = !matches!(&token, TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '.'));
    }
}
