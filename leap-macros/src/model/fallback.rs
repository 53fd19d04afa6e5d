//! What answers in place of the function, and when.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Error, Expr, FnArg, Signature};

use super::constants::is_parameter;
use super::function::{Runs, plain_name};
use super::names::{binds_names, mention};
use crate::args::{self, Args, FallbackOn, Given};
use crate::errors::Errors;

pub(crate) struct Fallback {
    pub(crate) what: args::Fallback,
    pub(crate) on: FallbackOn,
    /// The word by which it was said when.
    pub(crate) on_key: Option<Ident>,
}

impl Fallback {
    pub(super) fn new(args: &mut Args, sig: &Signature, runs: &Runs, errors: &mut Errors) -> Option<Self> {
        let on = args.fallback_on.take();
        let is_after = on.as_ref().is_some_and(|on| on.value != FallbackOn::Block);
        let [gets, other] = if is_after { ["error", "blocked"] } else { ["blocked", "error"] };
        let Some(Given { value: mut what, .. }) = args.fallback.take() else {
            if let Some(on) = on {
                errors.at(
                    &on.key,
                    "`fallback_on` says when the `fallback` answers; add `fallback = last_known`",
                );
            }
            return None;
        };
        if matches!(runs, Runs::Made(made) if made.is_stream)
            && let Some(Given { key, value: FallbackOn::Error | FallbackOn::Any }) = &on
        {
            errors.at(key, "the `fallback` of a stream answers for blocked calls only: what it has yielded cannot be taken back");
        }
        if let args::Fallback::Path(path) = &what
            && path
                .path
                .get_ident()
                .is_some_and(|name| name == gets || name == other || is_parameter(sig, name))
        {
            what = args::Fallback::Expr(Expr::Path(path.clone()));
        }
        if let args::Fallback::Expr(expr) = &what {
            let other = Ident::new(other, Span::call_site());
            let tokens = expr.to_token_stream();
            if !is_parameter(sig, &other)
                && !binds_names(tokens.clone())
                && let Some(span) = mention(tokens, &other)
            {
                let message = format!("what the fallback is given is called `{gets}` here");
                errors.push(Error::new(span, message));
            }
        } else {
            no_conditional_params(sig, errors);
        }
        if let args::Fallback::Closure(closure) = &what {
            let n_wanted = sig.inputs.len() + 1;
            if closure.inputs.len() != n_wanted {
                let message = format!(
                    "a fallback gets every argument and then why it is asked: `{}`; to name only what is needed, write \
                     an expression",
                    wanted(sig, gets)
                );
                if closure.inputs.is_empty() {
                    errors.push(Error::new(closure.span(), message));
                } else {
                    errors.at(&closure.inputs, message);
                }
            }
        }
        let (on_key, on) = on.map(|on| (on.key, on.value)).unzip();
        Some(Self { what, on: on.unwrap_or_default(), on_key })
    }

    /// Whether it answers for calls that ran, and so after the body had the arguments.
    pub(crate) fn is_after_the_body(&self) -> bool {
        self.on != FallbackOn::Block
    }

    /// Whether it is given all arguments, named or not.
    pub(crate) fn takes_all(&self) -> bool {
        !matches!(self.what, args::Fallback::Expr(_))
    }

    /// Whether it is an expression that uses `name`.
    pub(crate) fn mentions(&self, name: &Ident) -> bool {
        match &self.what {
            args::Fallback::Expr(expr) => mention(expr.to_token_stream(), name).is_some(),
            args::Fallback::Path(_) | args::Fallback::Closure(_) => false,
        }
    }
}

/// The head of a closure that would do: `|sku, blocked| …`.
fn wanted(sig: &Signature, last: &str) -> String {
    let names = sig.inputs.iter().map(|input| match input {
        FnArg::Receiver(_) => "this".to_owned(),
        FnArg::Typed(typed) => plain_name(&typed.pat).map_or_else(|| "_".to_owned(), Ident::to_string),
    });
    format!("|{}| …", names.chain([last.to_owned()]).collect::<Vec<_>>().join(", "))
}

/// Finds parameters that may not be there when the fallback is called with them.
fn no_conditional_params(sig: &Signature, errors: &mut Errors) {
    for attr in sig.inputs.iter().flat_map(|input| match input {
        FnArg::Receiver(receiver) => &receiver.attrs,
        FnArg::Typed(typed) => &typed.attrs,
    }) {
        if attr.path().is_ident("cfg") {
            errors.at(attr, "a parameter that may be configured away cannot be handed to a `fallback`");
        }
    }
}
