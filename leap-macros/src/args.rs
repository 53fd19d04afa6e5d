//! What was written between the parentheses, each value with the key it was given under.

mod values;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprClosure, ExprPath, LitStr, Pat, Path, Result, Token};

use crate::errors::{self, Errors};

/// The arguments of the attribute, in the order in which messages list them.
const ARGUMENTS: [&str; 40] = [
    "resource",
    "inbound",
    "origin",
    "entrance",
    "permits",
    "priority",
    "qps",
    "rate",
    "behavior",
    "warm_up_ms",
    "cold_factor",
    "max_wait_ms",
    "burst",
    "precision",
    "buckets",
    "associated",
    "max_concurrency",
    "queue_ms",
    "slow_rt_ms",
    "slow_ratio",
    "error_ratio",
    "error_count",
    "min_calls",
    "window_ms",
    "window_calls",
    "open_ms",
    "open_max_ms",
    "probes",
    "recovery",
    "hot",
    "allow",
    "deny",
    "ignore",
    "ok_if",
    "err_if",
    "fallback",
    "fallback_on",
    "mode",
    "skip",
    "crate",
];

/// The arguments of `rate(…)`.
const RATE: [&str; 10] = [
    "limit",
    "per_ms",
    "behavior",
    "warm_up_ms",
    "cold_factor",
    "max_wait_ms",
    "burst",
    "precision",
    "buckets",
    "associated",
];

/// The arguments of `hot(…)`.
const HOT: [&str; 11] = [
    "key",
    "name",
    "qps",
    "per_ms",
    "burst",
    "max_concurrency",
    "behavior",
    "max_wait_ms",
    "max_keys",
    "precision",
    "except",
];

/// Arguments that are known and on their way.
const LATER: [&str; 4] = ["scope", "on_empty", "on_fail", "span"];

/// The same for `rate(…)`.
const RATE_LATER: [&str; 3] = ["scope", "on_empty", "on_fail"];

/// The longest time that a rule may speak of: 366 days.
const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1_000;

/// A value and the key it was given under.
pub(crate) struct Given<T> {
    pub(crate) key: Ident,
    pub(crate) value: T,
}

/// A literal, whose value is known, or an expression that is left to the compiler.
pub(crate) struct Value<T> {
    pub(crate) known: Option<T>,
    pub(crate) expr: Expr,
}

impl<T> Value<T> {
    /// The expression, if its value is for the compiler to find.
    pub(crate) fn unknown(&self) -> Option<&Expr> {
        self.known.is_none().then_some(&self.expr)
    }
}

/// The variant that an accepted word stands for.
#[derive(Clone, Copy)]
pub(crate) struct Word(pub(crate) &'static str);

/// Everything that was written.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) resource: Option<Given<Value<String>>>,
    pub(crate) inbound: Option<Given<bool>>,
    pub(crate) origin: Option<Given<Expr>>,
    pub(crate) entrance: Option<Given<Value<String>>>,
    pub(crate) permits: Option<Given<Value<u32>>>,
    pub(crate) priority: Option<Given<bool>>,
    pub(crate) qps: Option<Given<Value<f64>>>,
    pub(crate) flow: FlowArgs,
    pub(crate) rates: Vec<Rate>,
    pub(crate) max_concurrency: Option<Given<Value<u32>>>,
    pub(crate) queue_ms: Option<Given<Value<u64>>>,
    pub(crate) slow_rt_ms: Option<Given<Value<u64>>>,
    pub(crate) slow_ratio: Option<Given<Value<f64>>>,
    pub(crate) error_ratio: Option<Given<Value<f64>>>,
    pub(crate) error_count: Option<Given<Value<u32>>>,
    pub(crate) breakers: BreakerArgs,
    pub(crate) hots: Vec<Hot>,
    pub(crate) allow: Option<Given<Vec<Value<String>>>>,
    pub(crate) deny: Option<Given<Vec<Value<String>>>>,
    pub(crate) ignore: Option<Given<Pat>>,
    pub(crate) ok_if: Option<Given<Expr>>,
    pub(crate) err_if: Option<Given<Expr>>,
    pub(crate) fallback: Option<Given<Fallback>>,
    pub(crate) fallback_on: Option<Given<FallbackOn>>,
    pub(crate) mode: Option<Given<Word>>,
    pub(crate) skip: Option<Given<bool>>,
    pub(crate) runtime: Option<Given<Path>>,
}

/// What else may be said of a limit per interval, in a `rate(…)` or, for `qps`, outside.
#[derive(Default)]
pub(crate) struct FlowArgs {
    pub(crate) behavior: Option<Given<Word>>,
    pub(crate) warm_up_ms: Option<Given<Value<u64>>>,
    pub(crate) cold_factor: Option<Given<Value<f64>>>,
    pub(crate) max_wait_ms: Option<Given<Value<u64>>>,
    pub(crate) burst: Option<Given<Value<u32>>>,
    pub(crate) precision: Option<Given<Word>>,
    pub(crate) buckets: Option<Given<Value<u32>>>,
    pub(crate) associated: Option<Given<Value<String>>>,
}

/// What else may be said of the breakers of an attribute.
#[derive(Default)]
pub(crate) struct BreakerArgs {
    pub(crate) min_calls: Option<Given<Value<u32>>>,
    pub(crate) window_ms: Option<Given<Value<u64>>>,
    pub(crate) window_calls: Option<Given<Value<u32>>>,
    pub(crate) open_ms: Option<Given<Value<u64>>>,
    pub(crate) open_max_ms: Option<Given<Value<u64>>>,
    pub(crate) probes: Option<Given<Value<u32>>>,
    pub(crate) recovery: Option<Given<Word>>,
}

/// One `rate(…)`.
pub(crate) struct Rate {
    pub(crate) word: Ident,
    pub(crate) limit: Option<Given<Value<f64>>>,
    pub(crate) per_ms: Option<Given<Value<u64>>>,
    pub(crate) flow: FlowArgs,
}

/// One `hot(…)`.
pub(crate) struct Hot {
    pub(crate) word: Ident,
    pub(crate) key: Option<Given<Expr>>,
    pub(crate) name: Option<Given<LitStr>>,
    pub(crate) qps: Option<Given<Value<f64>>>,
    pub(crate) per_ms: Option<Given<Value<u64>>>,
    pub(crate) burst: Option<Given<Value<u32>>>,
    pub(crate) max_concurrency: Option<Given<Value<u32>>>,
    pub(crate) behavior: Option<Given<Word>>,
    pub(crate) max_wait_ms: Option<Given<Value<u64>>>,
    pub(crate) max_keys: Option<Given<Value<u32>>>,
    pub(crate) precision: Option<Given<Word>>,
    pub(crate) except: Option<Given<Vec<Exception>>>,
}

/// A limit of its own for one value of a key.
pub(crate) struct Exception {
    pub(crate) of: Constant,
    pub(crate) expr: Expr,
    pub(crate) limit: Value<f64>,
}

/// What answers in place of the function.
#[derive(Clone)]
pub(crate) enum Fallback {
    /// A function, which is given all arguments and why.
    Path(ExprPath),
    /// The same, written here.
    Closure(ExprClosure),
    /// An expression, evaluated as it stands.
    Expr(Expr),
}

/// When the fallback answers.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum FallbackOn {
    #[default]
    Block,
    Error,
    Any,
}

/// A key that is known when compiling.
#[derive(Debug, PartialEq)]
pub(crate) enum Constant {
    Text(String),
    Int(i128),
    Bool(bool),
    Char(char),
}

pub(crate) fn parse(tokens: TokenStream) -> Result<Args> {
    let read = |input: ParseStream| {
        let mut args = Args::default();
        let errors = each(input, |input, is_first| {
            if is_first && input.peek(LitStr) {
                args.bare_name(input)
            } else if is_first && (input.peek2(Token![.]) || input.peek2(Token![::])) {
                Err(name_without_quotes(input))
            } else {
                args.argument(input)
            }
        });
        errors.or(args)
    };
    read.parse2(tokens)
}

impl Args {
    fn bare_name(&mut self, input: ParseStream) -> Result<()> {
        let key = Ident::new("resource", input.span());
        let value = values::name_in(&key, input.parse()?)?;
        self.resource = Some(Given { key, value });
        Ok(())
    }

    fn argument(&mut self, input: ParseStream) -> Result<()> {
        let key = key(input, example("qps"))?;
        match key.to_string().as_str() {
            "resource" => set(&mut self.resource, key, input, values::name),
            "inbound" => set(&mut self.inbound, key, input, values::flag),
            "origin" => set(&mut self.origin, key, input, values::expr),
            "entrance" => set(&mut self.entrance, key, input, values::name),
            "permits" => set(&mut self.permits, key, input, values::whole(1..=u32::MAX)),
            "priority" => set(&mut self.priority, key, input, values::flag),
            "qps" => set(&mut self.qps, key, input, values::limit),
            "rate" => Rate::parse(key, input).map(|rate| self.rates.push(rate)),
            "behavior" | "warm_up_ms" | "cold_factor" | "max_wait_ms" | "burst" | "precision" | "buckets"
            | "associated" => self.flow.argument(key, input),
            "max_concurrency" => set(&mut self.max_concurrency, key, input, values::whole(0..=u32::MAX)),
            "queue_ms" => set(&mut self.queue_ms, key, input, values::whole(0..=YEAR_MS)),
            "slow_rt_ms" => set(&mut self.slow_rt_ms, key, input, values::whole(0..=YEAR_MS)),
            "slow_ratio" => set(&mut self.slow_ratio, key, input, values::ratio),
            "error_ratio" => set(&mut self.error_ratio, key, input, values::ratio),
            "error_count" => set(&mut self.error_count, key, input, values::whole(0..=u32::MAX)),
            "min_calls" | "window_ms" | "window_calls" | "open_ms" | "open_max_ms" | "probes"
            | "recovery" => self.breakers.argument(key, input),
            "hot" => Hot::parse(key, input).map(|hot| self.hots.push(hot)),
            "allow" => set(&mut self.allow, key, input, values::names),
            "deny" => set(&mut self.deny, key, input, values::names),
            "ignore" => set(&mut self.ignore, key, input, values::pattern),
            "ok_if" => set(&mut self.ok_if, key, input, values::expr),
            "err_if" => set(&mut self.err_if, key, input, values::expr),
            "fallback" => set(&mut self.fallback, key, input, values::fallback),
            "fallback_on" => set(&mut self.fallback_on, key, input, values::fallback_on),
            "mode" => set(&mut self.mode, key, input, values::mode),
            "skip" => set(&mut self.skip, key, input, values::flag),
            "crate" => set(&mut self.runtime, key, input, values::runtime),
            "limit" | "per_ms" => Err(belongs_inside(&key, "rate")),
            "key" | "max_keys" | "except" => Err(belongs_inside(&key, "hot")),
            "outbound" => Err(Error::new_spanned(
                &key,
                "a call is outbound unless `inbound` is given; leave `outbound` out",
            )),
            _ => Err(unusable(&key, input, "", &ARGUMENTS, &LATER)),
        }
    }
}

impl FlowArgs {
    /// Reads an argument of this name, which is one of a limit.
    fn argument(&mut self, key: Ident, input: ParseStream) -> Result<()> {
        match key.to_string().as_str() {
            "behavior" => set(&mut self.behavior, key, input, values::behavior),
            "warm_up_ms" => set(&mut self.warm_up_ms, key, input, values::whole(1..=YEAR_MS)),
            "cold_factor" => set(&mut self.cold_factor, key, input, values::cold_factor),
            "max_wait_ms" => set(&mut self.max_wait_ms, key, input, values::whole(0..=YEAR_MS)),
            "burst" => set(&mut self.burst, key, input, values::whole(0..=u32::MAX)),
            "precision" => set(&mut self.precision, key, input, values::precision),
            "buckets" => set(&mut self.buckets, key, input, values::whole(1..=u32::MAX)),
            _ => set(&mut self.associated, key, input, values::name),
        }
    }
}

impl BreakerArgs {
    /// Reads an argument of this name, which is one of all breakers.
    fn argument(&mut self, key: Ident, input: ParseStream) -> Result<()> {
        match key.to_string().as_str() {
            "min_calls" => set(&mut self.min_calls, key, input, values::whole(1..=u32::MAX)),
            "window_ms" => set(&mut self.window_ms, key, input, values::whole(1..=YEAR_MS)),
            "window_calls" => set(&mut self.window_calls, key, input, values::whole(1..=u32::MAX)),
            "open_ms" => set(&mut self.open_ms, key, input, values::whole(1..=YEAR_MS)),
            "open_max_ms" => set(&mut self.open_max_ms, key, input, values::whole(1..=YEAR_MS)),
            "probes" => set(&mut self.probes, key, input, values::whole(1..=1_023)),
            _ => set(&mut self.recovery, key, input, values::recovery),
        }
    }
}

impl Rate {
    fn parse(word: Ident, input: ParseStream) -> Result<Self> {
        let content = values::parentheses(&word, input)?;
        no_values_alone(&content)?;
        let mut rate = Self { word, limit: None, per_ms: None, flow: FlowArgs::default() };
        each(&content, |input, _| rate.argument(input)).or(rate)
    }

    fn argument(&mut self, input: ParseStream) -> Result<()> {
        let key = key(input, example("rate"))?;
        match key.to_string().as_str() {
            "limit" => set(&mut self.limit, key, input, values::limit),
            "per_ms" => set(&mut self.per_ms, key, input, values::whole(1..=YEAR_MS)),
            name if RATE.contains(&name) => self.flow.argument(key, input),
            _ => Err(unusable(&key, input, " of `rate`", &RATE, &RATE_LATER)),
        }
    }
}

impl Hot {
    fn parse(word: Ident, input: ParseStream) -> Result<Self> {
        let content = values::parentheses(&word, input)?;
        let mut hot = Self {
            word,
            key: None,
            name: None,
            qps: None,
            per_ms: None,
            burst: None,
            max_concurrency: None,
            behavior: None,
            max_wait_ms: None,
            max_keys: None,
            precision: None,
            except: None,
        };
        each(&content, |input, is_first| {
            if is_first {
                no_key_alone(input)?;
            }
            hot.argument(input)
        })
        .or(hot)
    }

    fn argument(&mut self, input: ParseStream) -> Result<()> {
        let key = key(input, example("hot"))?;
        match key.to_string().as_str() {
            "key" => set(&mut self.key, key, input, values::key),
            "name" => set(&mut self.name, key, input, values::literal_name),
            "qps" => set(&mut self.qps, key, input, values::limit),
            "per_ms" => set(&mut self.per_ms, key, input, values::whole(1..=YEAR_MS)),
            "burst" => set(&mut self.burst, key, input, values::whole(0..=u32::MAX)),
            "max_concurrency" => set(&mut self.max_concurrency, key, input, values::whole(0..=u32::MAX)),
            "behavior" => set(&mut self.behavior, key, input, values::hot_behavior),
            "max_wait_ms" => set(&mut self.max_wait_ms, key, input, values::whole(0..=YEAR_MS)),
            "max_keys" => set(&mut self.max_keys, key, input, values::whole(1..=u32::MAX)),
            "precision" => set(&mut self.precision, key, input, values::hot_precision),
            "except" => set(&mut self.except, key, input, values::exceptions),
            _ => Err(unusable(&key, input, " of `hot`", &HOT, &[])),
        }
    }
}

fn belongs_inside(key: &Ident, list: &str) -> Error {
    Error::new_spanned(key, format!("`{key}` stands inside `{list}(…)`: `{}`", example(list)))
}

/// What stands before the next comma is a path: `mail.send`.
fn name_without_quotes(input: ParseStream) -> Error {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        match input.parse::<TokenTree>() {
            Ok(token) => tokens.extend([token]),
            Err(error) => return error,
        }
    }
    let name: String = tokens.clone().into_iter().map(|token| token.to_string()).collect();
    Error::new_spanned(tokens, format!("the name of a resource stands in quotes: `\"{name}\"`"))
}

/// Finds `rate(4, 100)`.
fn no_values_alone(input: ParseStream) -> Result<()> {
    let Ok(values) = Punctuated::<Expr, Token![,]>::parse_terminated(&input.fork()) else { return Ok(()) };
    let is_alone = |value: &&Expr| !matches!(value, Expr::Assign(_)) && !is_word(value, &RATE);
    let alone: Vec<String> =
        values.iter().filter(is_alone).map(|value| value.to_token_stream().to_string()).collect();
    match alone.as_slice() {
        [limit, per_ms] if values.len() == 2 => {
            let message = format!("each value has its name: `rate(limit = {limit}, per_ms = {per_ms})`");
            Err(Error::new_spanned(values, message))
        }
        _ => Ok(()),
    }
}

/// Finds `hot(user, …)`.
fn no_key_alone(input: ParseStream) -> Result<()> {
    let ahead = input.fork();
    match ahead.parse::<Expr>() {
        Ok(expr) if !ahead.is_empty() && !ahead.peek(Token![,]) || is_word(&expr, &HOT) => Ok(()),
        Ok(Expr::Assign(_)) | Err(_) => Ok(()),
        Ok(expr) => {
            let expr = values::varying(expr)?;
            let message = format!("each value has its name: `key = {}`", expr.to_token_stream());
            Err(Error::new_spanned(expr, message))
        }
    }
}

/// Whether `expr` is one of `words`, alone.
fn is_word(expr: &Expr, words: &[&str]) -> bool {
    match expr {
        Expr::Path(path) => path.path.get_ident().is_some_and(|word| words.iter().any(|known| word == known)),
        _ => false,
    }
}

/// How an argument is written.
fn example(key: &str) -> &'static str {
    match key {
        "resource" => "resource = \"orders.create\"",
        "origin" => "origin = request.app()",
        "entrance" => "entrance = \"web\"",
        "permits" => "permits = 2",
        "qps" => "qps = 100",
        "rate" => "rate(limit = 1_000, per_ms = 60_000)",
        "limit" => "limit = 1_000",
        "per_ms" => "per_ms = 60_000",
        "behavior" => "behavior = throttle",
        "warm_up_ms" => "warm_up_ms = 10_000",
        "cold_factor" => "cold_factor = 3",
        "max_wait_ms" => "max_wait_ms = 500",
        "burst" => "burst = 10",
        "precision" => "precision = strict",
        "buckets" => "buckets = 100",
        "associated" => "associated = \"orders.write\"",
        "max_concurrency" => "max_concurrency = 32",
        "queue_ms" => "queue_ms = 500",
        "slow_rt_ms" => "slow_rt_ms = 200",
        "slow_ratio" => "slow_ratio = 0.5",
        "error_ratio" => "error_ratio = 0.5",
        "error_count" => "error_count = 10",
        "min_calls" => "min_calls = 5",
        "window_ms" => "window_ms = 1_000",
        "window_calls" => "window_calls = 100",
        "open_ms" => "open_ms = 5_000",
        "open_max_ms" => "open_max_ms = 60_000",
        "probes" => "probes = 1",
        "recovery" => "recovery = ramp",
        "hot" => "hot(key = user_id, qps = 10)",
        "key" => "key = user_id",
        "name" => "name = \"user\"",
        "max_keys" => "max_keys = 4_000",
        "except" => "except(\"vip\" => 1_000, 42 => 1)",
        "allow" => "allow(\"web\", \"batch\")",
        "deny" => "deny(\"batch\")",
        "ignore" => "ignore(AppError::Invalid(_))",
        "ok_if" => "ok_if = is_fine",
        "err_if" => "err_if = is_broken",
        "fallback" => "fallback = last_known",
        "fallback_on" => "fallback_on = any",
        "mode" => "mode = off",
        _ => "crate = ::leap_runtime",
    }
}

/// Reads one argument after the other. After a mistake it goes on behind the next comma.
fn each(input: ParseStream, mut read: impl FnMut(ParseStream, bool) -> Result<()>) -> Errors {
    let mut errors = Errors::default();
    let mut is_first = true;
    while !input.is_empty() {
        let at_end = |()| {
            if input.is_empty() || input.peek(Token![,]) { Ok(()) } else { Err(input.error("expected `,`")) }
        };
        if errors.keep(read(input, is_first).and_then(at_end)).is_none() {
            while !input.is_empty() && !input.peek(Token![,]) {
                errors.keep(input.parse::<TokenTree>());
            }
        }
        errors.keep(input.parse::<Option<Token![,]>>());
        is_first = false;
    }
    errors
}

/// The key of the next argument; any identifier will do, as `crate` is a keyword.
fn key(input: ParseStream, example: &str) -> Result<Ident> {
    let expected = if input.peek(LitStr) {
        "a name without `resource =` comes first".to_owned()
    } else {
        format!("expected an argument, e.g. `{example}`")
    };
    input.call(Ident::parse_any).map_err(|error| Error::new(error.span(), expected))
}

/// Reads the value of `key` into its place, once.
fn set<T>(
    slot: &mut Option<Given<T>>,
    key: Ident,
    input: ParseStream,
    read: impl FnOnce(&Ident, ParseStream) -> Result<T>,
) -> Result<()> {
    let value = read(&key, input)?;
    if slot.is_some() {
        let hint = match key.to_string().as_str() {
            "ignore" => "; join the patterns: `ignore(A | B)`",
            "allow" | "deny" | "except" => "; join the lists",
            _ => "",
        };
        return Err(Error::new_spanned(&key, format!("`{key}` is given twice{hint}")));
    }
    *slot = Some(Given { key, value });
    Ok(())
}

/// A key that cannot be used, for now or ever.
fn unusable(key: &Ident, input: ParseStream, of: &str, accepted: &[&str], later: &[&str]) -> Error {
    if later.contains(&key.to_string().as_str()) {
        // Its value may hold commas: `scope = a::<A, B>()`.
        let _ = values::expr(key, input);
        return errors::not_yet(key);
    }
    match errors::explanation(key) {
        Some(explanation) => Error::new_spanned(key, explanation),
        None => errors::unknown(key, &format!("argument `{key}`{of}"), accepted),
    }
}

#[cfg(test)]
mod tests;
