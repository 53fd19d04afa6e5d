//! What is to be guarded and how: whatever is in here makes sense together.

mod constants;
mod function;
mod request;
mod rules;

use proc_macro2::TokenStream;
use syn::parse::{Parse, Parser};
use syn::{Expr, ExprPath, FnArg, Pat, Path, Result, Signature};

use self::constants::Constants;
use self::function::returned_future;
pub(crate) use self::function::{Function, plain_name};
pub(crate) use self::request::{Key, Request};
pub(crate) use self::rules::{BreakerWords, Flow, Hot, Rule};
use crate::args::{Args, Given, Value, Word};
use crate::errors::Errors;

/// A guarded function.
pub(crate) struct Guarded {
    pub(crate) function: Function,
    pub(crate) resource: Option<Value<String>>,
    pub(crate) permits: Option<Value<u32>>,
    pub(crate) request: Request,
    pub(crate) rules: Vec<Rule>,
    pub(crate) breakers: BreakerWords,
    pub(crate) mode: Option<Word>,
    pub(crate) verdict: Verdict,
    pub(crate) fallback: Option<ExprPath>,
    pub(crate) runtime: Option<Path>,
}

/// How the value that a call returned is judged, besides being an `Err` or not.
pub(crate) struct Verdict {
    pub(crate) ignore: Option<Pat>,
    pub(crate) ok_if: Option<Expr>,
    pub(crate) err_if: Option<Expr>,
}

impl Verdict {
    /// Whether the user has a say in it.
    pub(crate) fn is_asked(&self) -> bool {
        self.ignore.is_some() || self.ok_if.is_some() || self.err_if.is_some()
    }
}

impl Guarded {
    pub(crate) fn new(mut args: Args, item: TokenStream) -> Result<Self> {
        let function = Function::parse.parse2(item)?;
        let mut errors = Errors::default();
        if let Some(token) = &function.sig.constness {
            errors.at(token, "a `const fn` cannot be guarded: a guard reads the clock when it is called");
        }
        if let Some(future) = returned_future(&function.sig) {
            errors.at(
                future,
                "a function that returns a future cannot be guarded yet: only the making of the future would be \
                 guarded, not its running; guard an `async fn`, and call that here",
            );
        }
        if args.fallback.is_some() {
            no_conditional_params(&function.sig, &mut errors);
        }
        rules::everything_has_its_rule(&args, &mut errors);

        let mut constants = Constants::new(&function.sig, &mut errors);
        let resource = constants.take(args.resource.take());
        // Before the rules are taken out: the keys are in some of them.
        let request = Request::new(&mut args, &mut constants);
        let (rules, breakers) = rules::take(&mut args, &mut constants);
        let permits = constants.take(args.permits.take());

        errors.or(Self {
            function,
            resource,
            permits,
            request,
            rules,
            breakers,
            mode: value(args.mode),
            verdict: Verdict {
                ignore: value(args.ignore),
                ok_if: value(args.ok_if),
                err_if: value(args.err_if),
            },
            fallback: value(args.fallback),
            runtime: value(args.runtime),
        })
    }
}

fn value<T>(given: Option<Given<T>>) -> Option<T> {
    given.map(|given| given.value)
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

#[cfg(test)]
mod tests;
