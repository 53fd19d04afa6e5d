//! Values that go into a `static`.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{FnArg, Signature};

use super::function::plain_name;
use super::names::{binds_names, for_each_name};
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

pub(super) fn is_parameter(sig: &Signature, name: &Ident) -> bool {
    sig.inputs.iter().any(|input| match input {
        FnArg::Receiver(_) => false,
        FnArg::Typed(typed) => plain_name(&typed.pat).is_some_and(|parameter| parameter == name),
    })
}
