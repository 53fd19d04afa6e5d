//! What is to be guarded and how: whatever is in here makes sense together.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    AttrStyle, Attribute, Error, Expr, ExprPath, FnArg, GenericArgument, Pat, Path, PathArguments, Result,
    ReturnType, Signature, Token, Type, TypeParamBound, Visibility, token,
};

use crate::args::{Args, Given, Rate, Value, Word};
use crate::errors::Errors;

/// A guarded function.
pub(crate) struct Guarded {
    pub(crate) function: Function,
    pub(crate) resource: Option<Value<String>>,
    pub(crate) permits: Option<Value<u32>>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) breakers: BreakerWords,
    pub(crate) mode: Option<Word>,
    pub(crate) verdict: Verdict,
    pub(crate) fallback: Option<ExprPath>,
    pub(crate) runtime: Option<Path>,
}

/// A rule that the attribute arms.
pub(crate) enum Rule {
    Flow(Flow),
    Isolation { max: Value<u32> },
    SlowRatio { slow_rt_ms: Value<u64>, ratio: Option<Value<f64>> },
    ErrorRatio { ratio: Value<f64> },
    ErrorCount { count: Value<u32> },
}

/// A limit per interval, which is a second unless given.
pub(crate) struct Flow {
    pub(crate) limit: Value<f64>,
    pub(crate) per_ms: Option<Value<u64>>,
    pub(crate) precision: Option<Word>,
    pub(crate) buckets: Option<Value<u32>>,
}

/// What all breakers of one attribute have in common.
pub(crate) struct BreakerWords {
    pub(crate) min_calls: Option<Value<u32>>,
    pub(crate) window_ms: Option<Value<u64>>,
    pub(crate) open_ms: Option<Value<u64>>,
    pub(crate) probes: Option<Value<u32>>,
}

impl BreakerWords {
    /// The first value that is for the compiler to find.
    pub(crate) fn unknown(&self) -> Option<&Expr> {
        let min_calls = self.min_calls.as_ref().and_then(Value::unknown);
        let window_ms = self.window_ms.as_ref().and_then(Value::unknown);
        let open_ms = self.open_ms.as_ref().and_then(Value::unknown);
        let probes = self.probes.as_ref().and_then(Value::unknown);
        min_calls.or(window_ms).or(open_ms).or(probes)
    }
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

/// A function whose body nobody has read.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) defaultness: Option<Token![default]>,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

impl Guarded {
    pub(crate) fn new(args: Args, item: TokenStream) -> Result<Self> {
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
        everything_has_its_rule(&args, &mut errors);
        if args.fallback.is_some() {
            no_conditional_params(&function.sig, &mut errors);
        }

        let mut constants = Constants { sig: &function.sig, errors: &mut errors };
        let resource = constants.take(args.resource);
        let breakers = BreakerWords {
            min_calls: constants.take(args.min_calls),
            window_ms: constants.take(args.window_ms),
            open_ms: constants.take(args.open_ms),
            probes: constants.take(args.probes),
        };
        let mut rules = Vec::new();
        let (precision, buckets) = (word(args.precision), constants.take(args.buckets));
        if let Some(limit) = constants.take(args.qps) {
            rules.push(Rule::Flow(Flow { limit, per_ms: None, precision, buckets }));
        }
        rules.extend(args.rates.into_iter().filter_map(|rate| constants.rate(rate)).map(Rule::Flow));
        rules.extend(constants.take(args.max_concurrency).map(|max| Rule::Isolation { max }));
        let ratio = constants.take(args.slow_ratio);
        rules.extend(constants.take(args.slow_rt_ms).map(|slow_rt_ms| Rule::SlowRatio { slow_rt_ms, ratio }));
        rules.extend(constants.take(args.error_ratio).map(|ratio| Rule::ErrorRatio { ratio }));
        rules.extend(constants.take(args.error_count).map(|count| Rule::ErrorCount { count }));
        let permits = constants.take(args.permits);
        for rule in &rules {
            if let Rule::Flow(flow) = rule {
                flow.check(&mut errors);
            }
        }

        errors.or(Self {
            function,
            resource,
            permits,
            rules,
            breakers,
            mode: word(args.mode),
            verdict: Verdict {
                ignore: args.ignore.map(|given| given.value),
                ok_if: args.ok_if.map(|given| given.value),
                err_if: args.err_if.map(|given| given.value),
            },
            fallback: args.fallback.map(|given| given.value),
            runtime: args.runtime.map(|given| given.value),
        })
    }
}

fn word(given: Option<Given<Word>>) -> Option<Word> {
    given.map(|given| given.value)
}

/// Finds arguments that say more about a rule that is not there.
fn everything_has_its_rule(args: &Args, errors: &mut Errors) {
    // Who wrote `slow_ratio` meant a breaker, and is told below what it needs.
    let has_breaker = args.slow_rt_ms.is_some()
        || args.slow_ratio.is_some()
        || args.error_ratio.is_some()
        || args.error_count.is_some();
    if !has_breaker {
        let keys = [
            args.min_calls.as_ref().map(|given| &given.key),
            args.window_ms.as_ref().map(|given| &given.key),
            args.open_ms.as_ref().map(|given| &given.key),
            args.probes.as_ref().map(|given| &given.key),
        ];
        for key in keys.into_iter().flatten() {
            let message =
                format!("`{key}` needs a circuit breaker: add `slow_rt_ms`, `error_ratio` or `error_count`");
            errors.at(key, message);
        }
    }
    if let (Some(Given { key, .. }), None) = (&args.slow_ratio, &args.slow_rt_ms) {
        errors.at(key, "`slow_ratio` needs `slow_rt_ms`, the response time above which a call is slow");
    }
    if args.qps.is_none() {
        let precision = args.precision.as_ref().map(|given| &given.key);
        let buckets = args.buckets.as_ref().map(|given| &given.key);
        let hint = if args.rates.is_empty() {
            "or a `rate(…)` with it"
        } else {
            "or move it into the `rate(…)` it is for"
        };
        for key in [precision, buckets].into_iter().flatten() {
            errors.at(key, format!("`{key}` needs a limit: add `qps`, {hint}"));
        }
    }
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

/// Values that are looked at as they are taken: they go into a `static`, and one of it serves all callers.
struct Constants<'a> {
    sig: &'a Signature,
    errors: &'a mut Errors,
}

impl Constants<'_> {
    fn take<T>(&mut self, given: Option<Given<Value<T>>>) -> Option<Value<T>> {
        let Given { key, value } = given?;
        if let Some(expr) = value.unknown() {
            self.look_for_generics(&key, expr.to_token_stream());
        }
        Some(value)
    }

    fn rate(&mut self, rate: Rate) -> Option<Flow> {
        let Rate { key, limit, per_ms, precision, buckets } = rate;
        if limit.is_none() {
            self.errors.at(&key, "`rate` needs `limit`, the permits per interval");
        }
        if per_ms.is_none() {
            self.errors
                .at(&key, "`rate` needs `per_ms`, the interval; a limit per second is written `qps = 100`");
        }
        let (limit, per_ms, buckets) = (self.take(limit), self.take(per_ms), self.take(buckets));
        Some(Flow { limit: limit?, per_ms: Some(per_ms?), precision: word(precision), buckets })
    }

    fn look_for_generics(&mut self, key: &Ident, tokens: TokenStream) {
        let mut is_path_head = true;
        for token in tokens {
            match &token {
                TokenTree::Group(group) => self.look_for_generics(key, group.stream()),
                TokenTree::Ident(name) if is_path_head && self.is_generic(name) => {
                    let message = format!(
                        "`{key}` cannot depend on `{name}`: all callers of the function share one guard, \
                         whatever its generic parameters"
                    );
                    self.errors.at(name, message);
                }
                _ => {}
            }
            // What follows `::` or `.` is a name in something else.
            is_path_head = !matches!(&token, TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '.'));
        }
    }

    fn is_generic(&self, name: &Ident) -> bool {
        name == "Self"
            || name == "self"
            || self.sig.generics.type_params().any(|parameter| parameter.ident == *name)
            || self.sig.generics.const_params().any(|parameter| parameter.ident == *name)
    }
}

impl Flow {
    /// The most permits per window that can be kept exactly.
    const EXACT_AT_MOST: f64 = 1_048_576.0;

    /// Checks the numbers that are known; the rest is left to the compiler.
    fn check(&self, errors: &mut Errors) {
        let per_ms = self.per_ms.as_ref().map_or(Some(1_000), |per_ms| per_ms.known);
        if let (Some(limit), Some(per_ms)) = (self.limit.known, per_ms)
            && limit > 0.0
            && limit < 1.0
        {
            #[expect(clippy::cast_precision_loss, reason = "a proposal, and a year is under 2^53 ms")]
            let per_ms = (per_ms as f64 / limit).ceil();
            let message = format!(
                "a limit between 0 and 1 would let no call through; for one in {per_ms} ms write \
                 `rate(limit = 1, per_ms = {per_ms})`"
            );
            errors.at(&self.limit.expr, message);
        }
        if let (Some(limit), Some(Word("Exact"))) = (self.limit.known, &self.precision)
            && limit > Self::EXACT_AT_MOST
        {
            let message = format!(
                "an exact limit is at most {} permits per interval; use `precision = strict`",
                Self::EXACT_AT_MOST
            );
            errors.at(&self.limit.expr, message);
        }
        if let (Some(buckets), Some(per_ms)) = (&self.buckets, per_ms)
            && let Some(n_buckets) = buckets.known
        {
            let (nanos, n_buckets) = (u128::from(per_ms) * 1_000_000, u128::from(n_buckets));
            if !nanos.is_multiple_of(n_buckets) || nanos / n_buckets < 1_000 {
                let message = format!(
                    "{n_buckets} buckets do not divide the interval of {per_ms} ms into equal parts of at least 1 µs"
                );
                errors.at(&buckets.expr, message);
            }
        }
    }
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let defaultness = input.parse()?;
        refuse_other_items(input)?;
        let sig: Signature = input.parse()?;
        if input.peek(Token![;]) {
            let message = "a method without a body cannot be guarded; put `#[guarded]` on the methods that \
                           implement it";
            return Err(Error::new_spanned(&sig.ident, message));
        }
        if !input.peek(token::Brace) {
            return Err(input.error("expected the body of the function"));
        }
        let mut body = whole_group(input.parse()?);

        // `#![…]` and `//!` at the top of a body speak of the function.
        let split =
            |input: ParseStream| Ok((input.call(Attribute::parse_inner)?, input.parse::<TokenStream>()?));
        let (inner, rest) = split.parse2(body.stream())?;
        if !inner.is_empty() {
            let span = body.span();
            body = Group::new(body.delimiter(), rest);
            body.set_span(span);
            attrs.extend(inner.into_iter().map(|attr| Attribute { style: AttrStyle::Outer, ..attr }));
        }
        Ok(Self { attrs, vis, defaultness, sig, body })
    }
}

/// The braces themselves, where a `$body:block` has brought them in an invisible group.
fn whole_group(mut token: TokenTree) -> Group {
    loop {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                token = group.stream().into_iter().next().expect("a brace was seen inside");
            }
            TokenTree::Group(group) => return group,
            _ => unreachable!("a brace was seen"),
        }
    }
}

/// Says what the attribute goes on, if it is put on anything but a function.
fn refuse_other_items(input: ParseStream) -> Result<()> {
    let found = if input.peek(Token![struct]) {
        "a struct"
    } else if input.peek(Token![enum]) {
        "an enum"
    } else if input.peek(Token![impl]) || input.peek(Token![unsafe]) && input.peek2(Token![impl]) {
        "an `impl` block"
    } else if input.peek(Token![trait]) || input.peek2(Token![trait]) {
        "a trait"
    } else if input.peek(Token![mod]) {
        "a module"
    } else if input.peek(Token![|])
        || input.peek(Token![move])
        || input.peek2(Token![|])
        || input.peek2(Token![move])
    {
        "a closure"
    } else if input.peek(Token![let]) {
        "a `let`"
    } else if input.peek(Token![static]) || input.peek(Token![const]) && input.peek3(Token![:]) {
        "a constant"
    } else if input.peek(Token![type]) {
        "a type"
    } else {
        return Ok(());
    };
    Err(input.error(format!("`#[guarded]` goes on a function or method with a body, not on {found}")))
}

/// The return type, if it says that what runs is a future or stream that the function only makes: `impl Future`,
/// `Pin<Box<dyn Future>>`, `BoxFuture`. What a type alias hides is not seen.
fn returned_future(sig: &Signature) -> Option<&Type> {
    match &sig.output {
        ReturnType::Type(_, ty) if sig.asyncness.is_none() && is_future(ty) => Some(ty),
        _ => None,
    }
}

fn is_future(ty: &Type) -> bool {
    let any_bound = |bounds: &Punctuated<TypeParamBound, Token![+]>| {
        bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => names(&bound.path, &["Future", "IntoFuture", "Stream"]),
            _ => false,
        })
    };
    match ty {
        Type::ImplTrait(ty) => any_bound(&ty.bounds),
        Type::TraitObject(ty) => any_bound(&ty.bounds),
        Type::Paren(ty) => is_future(&ty.elem),
        Type::Path(ty)
            if names(&ty.path, &["BoxFuture", "LocalBoxFuture", "BoxStream", "LocalBoxStream"]) =>
        {
            true
        }
        Type::Path(ty) if names(&ty.path, &["Pin", "Box"]) => {
            match ty.path.segments.last().map(|last| &last.arguments) {
                Some(PathArguments::AngleBracketed(list)) => list
                    .args
                    .iter()
                    .any(|arg| matches!(arg, GenericArgument::Type(inner) if is_future(inner))),
                _ => false,
            }
        }
        _ => false,
    }
}

fn names(path: &Path, known: &[&str]) -> bool {
    path.segments.last().is_some_and(|last| known.iter().any(|name| last.ident == name))
}
