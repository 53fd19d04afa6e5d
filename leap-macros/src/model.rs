//! What is to be guarded and how: whatever is in here makes sense together.

mod block;
mod constants;
mod fallback;
mod function;
mod names;
mod request;
mod rules;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Expr, Pat, Path, Result};

pub(crate) use self::block::{Block, is_block};
use self::constants::Constants;
pub(crate) use self::fallback::Fallback;
pub(crate) use self::function::{AsyncBlock, Function, Made, Runs, plain_name};
pub(crate) use self::names::{bound_by, mention};
pub(crate) use self::request::{Key, Request};
pub(crate) use self::rules::{BreakerWords, Flow, Hot, Rule};
use crate::args::{Args, Given, Value, Word};
use crate::errors::Errors;

/// A guarded function.
pub(crate) struct Guarded {
    pub(crate) function: Function,
    pub(crate) runs: Runs,
    pub(crate) resource: Option<Value<String>>,
    pub(crate) permits: Option<Value<u32>>,
    pub(crate) request: Request,
    pub(crate) rules: Vec<Rule>,
    pub(crate) breakers: BreakerWords,
    pub(crate) mode: Option<Word>,
    pub(crate) verdict: Verdict,
    pub(crate) fallback: Option<Fallback>,
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

    /// Whether a predicate uses `name`.
    pub(crate) fn mentions(&self, name: &Ident) -> bool {
        let predicates = self.ok_if.iter().chain(&self.err_if);
        predicates.into_iter().any(|predicate| mention(predicate.to_token_stream(), name).is_some())
    }
}

impl Guarded {
    pub(crate) fn new(mut args: Args, function: Function) -> Result<Self> {
        let mut errors = Errors::default();
        if let Some(token) = &function.sig.constness {
            let message = "a `const fn` cannot be guarded: a guard reads the clock when it is called; in a guarded \
                           `impl` block, leave it out with `#[guarded(skip)]`";
            errors.at(token, message);
        }
        if let Some(skip) = &args.skip {
            let message = "`skip` leaves a method out of a guarded `impl` block, and stands alone; elsewhere, take the \
                           attribute away";
            errors.at(&skip.key, message);
        }
        let runs = errors.keep(Runs::of(&function)).unwrap_or(Runs::Body);
        let fallback = Fallback::new(&mut args, &function.sig, &runs, &mut errors);
        rules::everything_has_its_rule(&args, &mut errors);

        let mut constants = Constants::new(&function.sig, &mut errors);
        let resource = constants.take(args.resource.take());
        // Before the rules are taken out: the keys are in some of them.
        let request = Request::new(&mut args, &mut constants);
        let (rules, breakers) = rules::take(&mut args, &mut constants);
        let permits = constants.take(args.permits.take());

        errors.or(Self {
            function,
            runs,
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
            fallback,
            runtime: value(args.runtime),
        })
    }
}

impl Guarded {
    /// Whether it arms a breaker that hears of errors only.
    pub(crate) fn has_breaker_on_errors(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule, Rule::ErrorRatio { .. } | Rule::ErrorCount { .. }))
    }
}

fn value<T>(given: Option<Given<T>>) -> Option<T> {
    given.map(|given| given.value)
}

#[cfg(test)]
mod tests;
