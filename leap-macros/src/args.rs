//! What was written between the parentheses, each value with the key it was given under.

use std::ops::RangeInclusive;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Expr, ExprPath, Lit, LitStr, Pat, Path, Result, Token, UnOp, parenthesized, token};

use crate::errors::{self, Errors};

/// The arguments of the attribute, in the order in which messages list them.
const ARGUMENTS: [&str; 21] = [
    "resource",
    "permits",
    "qps",
    "rate",
    "precision",
    "buckets",
    "max_concurrency",
    "slow_rt_ms",
    "slow_ratio",
    "error_ratio",
    "error_count",
    "min_calls",
    "window_ms",
    "open_ms",
    "probes",
    "ignore",
    "ok_if",
    "err_if",
    "fallback",
    "mode",
    "crate",
];

/// The arguments of `rate(…)`.
const RATE: [&str; 4] = ["limit", "per_ms", "precision", "buckets"];

/// Arguments that are known and on their way.
const LATER: [&str; 23] = [
    "inbound",
    "origin",
    "entrance",
    "priority",
    "behavior",
    "warm_up_ms",
    "cold_factor",
    "max_wait_ms",
    "burst",
    "associated",
    "scope",
    "on_empty",
    "on_fail",
    "queue_ms",
    "window_calls",
    "open_max_ms",
    "recovery",
    "hot",
    "allow",
    "deny",
    "fallback_on",
    "span",
    "skip",
];

/// The same for `rate(…)`.
const RATE_LATER: [&str; 9] = [
    "behavior",
    "warm_up_ms",
    "cold_factor",
    "max_wait_ms",
    "burst",
    "associated",
    "scope",
    "on_empty",
    "on_fail",
];

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
pub(crate) struct Word(pub(crate) &'static str);

/// Everything that was written.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) resource: Option<Given<Value<String>>>,
    pub(crate) permits: Option<Given<Value<u32>>>,
    pub(crate) qps: Option<Given<Value<f64>>>,
    pub(crate) rates: Vec<Rate>,
    pub(crate) precision: Option<Given<Word>>,
    pub(crate) buckets: Option<Given<Value<u32>>>,
    pub(crate) max_concurrency: Option<Given<Value<u32>>>,
    pub(crate) slow_rt_ms: Option<Given<Value<u64>>>,
    pub(crate) slow_ratio: Option<Given<Value<f64>>>,
    pub(crate) error_ratio: Option<Given<Value<f64>>>,
    pub(crate) error_count: Option<Given<Value<u32>>>,
    pub(crate) min_calls: Option<Given<Value<u32>>>,
    pub(crate) window_ms: Option<Given<Value<u64>>>,
    pub(crate) open_ms: Option<Given<Value<u64>>>,
    pub(crate) probes: Option<Given<Value<u32>>>,
    pub(crate) ignore: Option<Given<Pat>>,
    pub(crate) ok_if: Option<Given<Expr>>,
    pub(crate) err_if: Option<Given<Expr>>,
    pub(crate) fallback: Option<Given<ExprPath>>,
    pub(crate) mode: Option<Given<Word>>,
    pub(crate) runtime: Option<Given<Path>>,
}

/// One `rate(…)`.
pub(crate) struct Rate {
    pub(crate) key: Ident,
    pub(crate) limit: Option<Given<Value<f64>>>,
    pub(crate) per_ms: Option<Given<Value<u64>>>,
    pub(crate) precision: Option<Given<Word>>,
    pub(crate) buckets: Option<Given<Value<u32>>>,
}

pub(crate) fn parse(tokens: TokenStream) -> Result<Args> {
    let read = |input: ParseStream| {
        let mut args = Args::default();
        let errors = each(input, |input, is_first| {
            if is_first && input.peek(LitStr) { args.bare_name(input) } else { args.argument(input) }
        });
        errors.or(args)
    };
    read.parse2(tokens)
}

impl Args {
    fn bare_name(&mut self, input: ParseStream) -> Result<()> {
        let key = Ident::new("resource", input.span());
        let value = name(&key, input.parse()?)?;
        self.resource = Some(Given { key, value });
        Ok(())
    }

    fn argument(&mut self, input: ParseStream) -> Result<()> {
        let key = key(input)?;
        match key.to_string().as_str() {
            "resource" => set(&mut self.resource, key, input, |key, input| name(key, value(key, input)?)),
            "permits" => set(&mut self.permits, key, input, whole(1..=u32::MAX)),
            "qps" => set(&mut self.qps, key, input, limit),
            "rate" => Rate::parse(key, input).map(|rate| self.rates.push(rate)),
            "precision" => set(&mut self.precision, key, input, precision),
            "buckets" => set(&mut self.buckets, key, input, whole(1..=u32::MAX)),
            "max_concurrency" => set(&mut self.max_concurrency, key, input, whole(0..=u32::MAX)),
            "slow_rt_ms" => set(&mut self.slow_rt_ms, key, input, whole(0..=YEAR_MS)),
            "slow_ratio" => set(&mut self.slow_ratio, key, input, ratio),
            "error_ratio" => set(&mut self.error_ratio, key, input, ratio),
            "error_count" => set(&mut self.error_count, key, input, whole(0..=u32::MAX)),
            "min_calls" => set(&mut self.min_calls, key, input, whole(1..=u32::MAX)),
            "window_ms" => set(&mut self.window_ms, key, input, whole(1..=YEAR_MS)),
            "open_ms" => set(&mut self.open_ms, key, input, whole(1..=YEAR_MS)),
            "probes" => set(&mut self.probes, key, input, whole(1..=1_023)),
            "ignore" => set(&mut self.ignore, key, input, pattern),
            "ok_if" => set(&mut self.ok_if, key, input, value),
            "err_if" => set(&mut self.err_if, key, input, value),
            "fallback" => set(&mut self.fallback, key, input, fallback),
            "mode" => set(&mut self.mode, key, input, mode),
            "crate" => set(&mut self.runtime, key, input, runtime),
            "limit" | "per_ms" => Err(Error::new_spanned(
                &key,
                format!("`{key}` stands inside `rate(…)`: `{}`", example("rate")),
            )),
            _ => Err(unusable(&key, input, "", &ARGUMENTS, &LATER)),
        }
    }
}

impl Rate {
    fn parse(key: Ident, input: ParseStream) -> Result<Self> {
        if !input.peek(token::Paren) {
            return Err(written_as(&key));
        }
        let content;
        parenthesized!(content in input);
        let mut rate = Self { key, limit: None, per_ms: None, precision: None, buckets: None };
        each(&content, |input, _| rate.argument(input)).or(rate)
    }

    fn argument(&mut self, input: ParseStream) -> Result<()> {
        let key = key(input)?;
        match key.to_string().as_str() {
            "limit" => set(&mut self.limit, key, input, limit),
            "per_ms" => set(&mut self.per_ms, key, input, whole(1..=YEAR_MS)),
            "precision" => set(&mut self.precision, key, input, precision),
            "buckets" => set(&mut self.buckets, key, input, whole(1..=u32::MAX)),
            _ => Err(unusable(&key, input, " of `rate`", &RATE, &RATE_LATER)),
        }
    }
}

/// How an argument is written.
fn example(key: &str) -> &'static str {
    match key {
        "resource" => "resource = \"orders.create\"",
        "permits" => "permits = 2",
        "qps" => "qps = 100",
        "rate" => "rate(limit = 1_000, per_ms = 60_000)",
        "limit" => "limit = 1_000",
        "per_ms" => "per_ms = 60_000",
        "precision" => "precision = strict",
        "buckets" => "buckets = 100",
        "max_concurrency" => "max_concurrency = 32",
        "slow_rt_ms" => "slow_rt_ms = 200",
        "slow_ratio" => "slow_ratio = 0.5",
        "error_ratio" => "error_ratio = 0.5",
        "error_count" => "error_count = 10",
        "min_calls" => "min_calls = 5",
        "window_ms" => "window_ms = 1_000",
        "open_ms" => "open_ms = 5_000",
        "probes" => "probes = 1",
        "ignore" => "ignore(AppError::Invalid(_))",
        "ok_if" => "ok_if = is_fine",
        "err_if" => "err_if = is_broken",
        "fallback" => "fallback = last_known",
        "mode" => "mode = off",
        _ => "crate = ::leap_runtime",
    }
}

fn written_as(key: &Ident) -> Error {
    Error::new_spanned(key, format!("`{key}` is written `{}`", example(&key.to_string())))
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
fn key(input: ParseStream) -> Result<Ident> {
    let expected = if input.peek(LitStr) {
        "a name without `resource =` comes first"
    } else {
        "expected an argument, e.g. `qps = 100`"
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
        let hint = if key == "ignore" { "; join the patterns: `ignore(A | B)`" } else { "" };
        return Err(Error::new_spanned(&key, format!("`{key}` is given twice{hint}")));
    }
    *slot = Some(Given { key, value });
    Ok(())
}

/// A key that cannot be used, for now or ever.
fn unusable(key: &Ident, input: ParseStream, of: &str, accepted: &[&str], later: &[&str]) -> Error {
    if later.contains(&key.to_string().as_str()) {
        // Its value may hold commas: `origin = a::<A, B>()`.
        let _ = value(key, input);
        return errors::not_yet(key);
    }
    errors::unknown(key, &format!("argument `{key}`{of}"), accepted)
}

/// `= value`, as written.
fn value(key: &Ident, input: ParseStream) -> Result<Expr> {
    if input.parse::<Option<Token![=]>>()?.is_none() || input.is_empty() || input.peek(Token![,]) {
        return Err(written_as(key));
    }
    let mut value = input.parse()?;
    // Fragments of `macro_rules!`, like `$value:expr`, come in invisible groups.
    while let Expr::Group(group) = value {
        value = *group.expr;
    }
    Ok(value)
}

/// The literal that `expr` is, and whether it is negated.
fn literal(expr: &Expr) -> Option<(&Lit, bool)> {
    match expr {
        Expr::Lit(expr) => Some((&expr.lit, false)),
        Expr::Group(expr) => literal(&expr.expr),
        Expr::Paren(expr) => literal(&expr.expr),
        Expr::Unary(expr) if matches!(expr.op, UnOp::Neg(_)) => {
            literal(&expr.expr).map(|(literal, is_negative)| (literal, !is_negative))
        }
        _ => None,
    }
}

/// A mistake in a value: ``​`key` is wrong in this way, e.g. `key = 1` ``.
fn wrong(key: &Ident, value: impl ToTokens, how: &str) -> Error {
    Error::new_spanned(value, format!("`{key}` {how}, e.g. `{}`", example(&key.to_string())))
}

/// A name of a resource.
fn name(key: &Ident, expr: Expr) -> Result<Value<String>> {
    let known = match literal(&expr) {
        None => None,
        Some((Lit::Str(name), false)) => Some(name.value()),
        Some(_) => return Err(wrong(key, expr, "needs a name in quotes")),
    };
    match known.as_ref().map(String::len) {
        Some(0) => Err(wrong(key, expr, "must not be empty")),
        Some(1_025..) => Err(wrong(key, expr, "is at most 1024 bytes long")),
        _ => Ok(Value { known, expr }),
    }
}

/// A number of permits: any number from 0 up.
fn limit(key: &Ident, input: ParseStream) -> Result<Value<f64>> {
    let expr = value(key, input)?;
    let known = number(key, &expr)?;
    match known {
        Some(limit) if limit.is_infinite() => Err(wrong(key, expr, "is too large")),
        _ => Ok(Value { known, expr }),
    }
}

/// A share between 0 and 1.
fn ratio(key: &Ident, input: ParseStream) -> Result<Value<f64>> {
    let expr = value(key, input)?;
    let known = number(key, &expr)?;
    match known {
        Some(ratio) if ratio > 1.0 => Err(wrong(key, expr, "is a share between 0 and 1")),
        _ => Ok(Value { known, expr }),
    }
}

fn number(key: &Ident, expr: &Expr) -> Result<Option<f64>> {
    let number = match literal(expr) {
        None => return Ok(None),
        Some((Lit::Int(_) | Lit::Float(_), true)) => return Err(wrong(key, expr, "must not be negative")),
        Some((Lit::Int(literal), false)) => literal.base10_digits(),
        Some((Lit::Float(literal), false)) => literal.base10_digits(),
        Some(_) => return Err(wrong(key, expr, "needs a number")),
    };
    number.parse().map(Some).map_err(|_| wrong(key, expr, "needs a number"))
}

/// A whole number within `range`.
fn whole<N: Copy + PartialOrd + TryFrom<u128> + ToString>(
    range: RangeInclusive<N>,
) -> impl FnOnce(&Ident, ParseStream) -> Result<Value<N>> {
    move |key, input| {
        let expr = value(key, input)?;
        let known = match literal(&expr) {
            None => return Ok(Value { known: None, expr }),
            Some((Lit::Int(_) | Lit::Float(_), true)) => {
                return Err(wrong(key, expr, "must not be negative"));
            }
            Some((Lit::Int(literal), false)) => {
                literal.base10_parse::<u128>().ok().and_then(|n| N::try_from(n).ok())
            }
            Some(_) => return Err(wrong(key, expr, "needs a whole number")),
        };
        match known {
            Some(known) if known < *range.start() => {
                Err(wrong(key, expr, &format!("must be at least {}", range.start().to_string())))
            }
            Some(known) if known <= *range.end() => Ok(Value { known: Some(known), expr }),
            _ => Err(wrong(key, expr, &format!("is at most {}", range.end().to_string()))),
        }
    }
}

fn precision(key: &Ident, input: ParseStream) -> Result<Word> {
    let words = [("exact", "Exact"), ("strict", "Strict"), ("sentinel", "Sentinel")];
    word(key, value(key, input)?, &words, &[])
}

fn mode(key: &Ident, input: ParseStream) -> Result<Word> {
    word(key, value(key, input)?, &[("enforce", "Enforce"), ("off", "Off")], &["shadow"])
}

/// One of a few words, without quotes.
fn word(key: &Ident, expr: Expr, words: &[(&str, &'static str)], later: &[&str]) -> Result<Word> {
    let accepted: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let written = match &expr {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    };
    let Some(written) = written else {
        let message = format!("`{key}` needs one of the words {}, without quotes", errors::List(&accepted));
        return Err(Error::new_spanned(expr, message));
    };
    match words.iter().find(|(word, _)| written == word) {
        Some((_, variant)) => Ok(Word(variant)),
        None if later.iter().any(|word| written == word) => {
            Err(Error::new_spanned(written, format!("`{key} = {written}` is not supported yet")))
        }
        None => Err(errors::unknown(written, &format!("{key} `{written}`"), &accepted)),
    }
}

/// `(pattern)`.
fn pattern(key: &Ident, input: ParseStream) -> Result<Pat> {
    if !input.peek(token::Paren) {
        return Err(written_as(key));
    }
    let content;
    parenthesized!(content in input);
    let pattern = content.call(Pat::parse_multi_with_leading_vert)?;
    if !content.is_empty() {
        return Err(content.error(format!("`{key}` takes one pattern; join several by `|`")));
    }
    Ok(pattern)
}

/// The path of a function.
fn fallback(key: &Ident, input: ParseStream) -> Result<ExprPath> {
    match value(key, input)? {
        Expr::Path(path) => Ok(path),
        Expr::Closure(closure) => Err(Error::new_spanned(
            closure,
            "a closure as `fallback` is not supported yet; give the path of a function",
        )),
        Expr::Call(call) => {
            let message = "a call as `fallback` is not supported yet; give the path of a function, which is called \
                           with all arguments and then the `Blocked`";
            Err(Error::new_spanned(call, message))
        }
        other => Err(wrong(key, other, "needs the path of a function")),
    }
}

/// The path of the runtime's crate.
fn runtime(key: &Ident, input: ParseStream) -> Result<Path> {
    match value(key, input)? {
        Expr::Path(ExprPath { qself: None, path, .. }) => Ok(path),
        other => Err(wrong(key, other, "needs a path")),
    }
}
