//! One value each, as the key before it wants it.

use std::ops::RangeInclusive;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::parse::{ParseBuffer, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprBlock, ExprPath, Lit, LitStr, Pat, PatIdent, Path, Result, Stmt, Token, UnOp,
    parenthesized, token,
};

use super::{Constant, Exception, Fallback, FallbackOn, Value, Word, each, example};
use crate::errors;

/// `= value`, as written.
pub(super) fn expr(key: &Ident, input: ParseStream) -> Result<Expr> {
    if input.parse::<Option<Token![=]>>()?.is_none() || input.is_empty() || input.peek(Token![,]) {
        return Err(written_as(key));
    }
    Ok(without_groups(input.parse()?))
}

/// Fragments of `macro_rules!`, like `$value:expr`, come in invisible groups.
fn without_groups(mut expr: Expr) -> Expr {
    while let Expr::Group(group) = expr {
        expr = *group.expr;
    }
    expr
}

/// What stands in the parentheses behind `word`.
pub(super) fn parentheses<'a>(word: &Ident, input: ParseStream<'a>) -> Result<ParseBuffer<'a>> {
    if !input.peek(token::Paren) {
        return Err(written_as(word));
    }
    let content;
    parenthesized!(content in input);
    Ok(content)
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

fn written_as(key: &Ident) -> Error {
    Error::new_spanned(key, format!("`{key}` is written `{}`", example(&key.to_string())))
}

/// A mistake in a value: ``​`key` is wrong in this way, e.g. `key = 1` ``.
fn wrong(key: &Ident, value: impl ToTokens, how: &str) -> Error {
    Error::new_spanned(value, format!("`{key}` {how}, e.g. `{}`", example(&key.to_string())))
}

/// A word that stands alone, or is said to be true or not.
pub(super) fn flag(key: &Ident, input: ParseStream) -> Result<bool> {
    if !input.peek(Token![=]) {
        return Ok(true);
    }
    let message = format!("write `{key}` alone, or `{key} = true` or `{key} = false`");
    if input.peek2(Token![in]) {
        input.parse::<Token![=]>()?;
        return Err(Error::new_spanned(input.parse::<Token![in]>()?, message));
    }
    let value = expr(key, input)?;
    match literal(&value) {
        Some((Lit::Bool(literal), false)) => Ok(literal.value),
        _ => Err(Error::new_spanned(value, message)),
    }
}

/// By what calls are told apart.
pub(super) fn key(key: &Ident, input: ParseStream) -> Result<Expr> {
    varying(expr(key, input)?)
}

/// A key that is not the same for every call, as far as can be seen.
pub(super) fn varying(expr: Expr) -> Result<Expr> {
    let looked_at = match &expr {
        Expr::Reference(reference) => &*reference.expr,
        expr => expr,
    };
    if literal(looked_at).is_none() {
        return Ok(expr);
    }
    Err(Error::new_spanned(
        expr,
        "this key is the same for every call, so all callers would share one limit: count all calls together with `qps` \
         outside of `hot(…)`, or tell them apart by `key = <the parameter>`, which Sentinel writes `paramIdx = 0`",
    ))
}

/// A name of a resource, an entrance or an origin.
pub(super) fn name(key: &Ident, input: ParseStream) -> Result<Value<String>> {
    name_in(key, expr(key, input)?)
}

pub(super) fn name_in(key: &Ident, expr: Expr) -> Result<Value<String>> {
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

/// A name that has to be known here.
pub(super) fn literal_name(key: &Ident, input: ParseStream) -> Result<LitStr> {
    let Value { known, expr } = name(key, input)?;
    match known {
        Some(name) => Ok(LitStr::new(&name, expr.span())),
        None => Err(wrong(key, expr, "needs a name in quotes")),
    }
}

/// `("a", "b")`.
pub(super) fn names(key: &Ident, input: ParseStream) -> Result<Vec<Value<String>>> {
    let content = parentheses(key, input)?;
    let mut names = Vec::new();
    let errors = each(&content, |input, _| {
        names.push(name_in(key, without_groups(input.parse()?))?);
        Ok(())
    });
    match errors.or(names)? {
        names if names.is_empty() => Err(written_as(key)),
        names => Ok(names),
    }
}

/// A number of permits: any number from 0 up.
pub(super) fn limit(key: &Ident, input: ParseStream) -> Result<Value<f64>> {
    limit_in(key, expr(key, input)?)
}

fn limit_in(key: &Ident, expr: Expr) -> Result<Value<f64>> {
    let known = number(key, &expr)?;
    match known {
        Some(limit) if limit.is_infinite() => Err(wrong(key, expr, "is too large")),
        _ => Ok(Value { known, expr }),
    }
}

/// A share between 0 and 1.
pub(super) fn ratio(key: &Ident, input: ParseStream) -> Result<Value<f64>> {
    let expr = expr(key, input)?;
    let known = number(key, &expr)?;
    match known {
        Some(ratio) if ratio > 1.0 => Err(wrong(key, expr, "is a share between 0 and 1")),
        _ => Ok(Value { known, expr }),
    }
}

/// By how much less a cold resource lets through.
pub(super) fn cold_factor(key: &Ident, input: ParseStream) -> Result<Value<f64>> {
    let value = limit(key, input)?;
    match value.known {
        Some(factor) if factor <= 1.0 => Err(wrong(key, value.expr, "must be above 1")),
        _ => Ok(value),
    }
}

fn number(key: &Ident, expr: &Expr) -> Result<Option<f64>> {
    let number = match literal(expr) {
        None => return Ok(None),
        Some((Lit::Int(_) | Lit::Float(_), true)) => return Err(wrong(key, expr, "must not be negative")),
        Some((Lit::Int(literal), false)) => {
            no_unit(key, expr, literal.suffix())?;
            literal.base10_digits()
        }
        Some((Lit::Float(literal), false)) => {
            no_unit(key, expr, literal.suffix())?;
            literal.base10_digits()
        }
        Some(_) => return Err(wrong(key, expr, "needs a number")),
    };
    number.parse().map(Some).map_err(|_| wrong(key, expr, "needs a number"))
}

/// Finds a number that has a unit, which would be lost.
fn no_unit(key: &Ident, expr: &Expr, suffix: &str) -> Result<()> {
    let types = [
        "", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
        "f64",
    ];
    if types.contains(&suffix) {
        return Ok(());
    }
    let name = key.to_string();
    let unit = if name.ends_with("_ms") { "counts milliseconds" } else { "is a plain number" };
    Err(wrong(key, expr, &format!("{unit}, without a unit like `{suffix}`")))
}

/// A whole number within `range`.
pub(super) fn whole<N: Copy + PartialOrd + TryFrom<u128> + ToString>(
    range: RangeInclusive<N>,
) -> impl FnOnce(&Ident, ParseStream) -> Result<Value<N>> {
    move |key, input| {
        let expr = expr(key, input)?;
        let known = match literal(&expr) {
            None => return Ok(Value { known: None, expr }),
            Some((Lit::Int(_) | Lit::Float(_), true)) => {
                return Err(wrong(key, expr, "must not be negative"));
            }
            Some((Lit::Int(literal), false)) => {
                no_unit(key, &expr, literal.suffix())?;
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

pub(super) fn behavior(key: &Ident, input: ParseStream) -> Result<Word> {
    let words = [
        ("reject", "Reject"),
        ("warm_up", "WarmUp"),
        ("throttle", "Throttle"),
        ("warm_up_throttle", "WarmUpThrottle"),
    ];
    word(key, expr(key, input)?, &words)
}

pub(super) fn hot_behavior(key: &Ident, input: ParseStream) -> Result<Word> {
    word(key, expr(key, input)?, &[("reject", "Reject"), ("throttle", "Throttle")])
}

pub(super) fn precision(key: &Ident, input: ParseStream) -> Result<Word> {
    let words = [("exact", "Exact"), ("strict", "Strict"), ("sentinel", "Sentinel")];
    word(key, expr(key, input)?, &words)
}

pub(super) fn hot_precision(key: &Ident, input: ParseStream) -> Result<Word> {
    word(key, expr(key, input)?, &[("sentinel", "Sentinel")])
}

pub(super) fn recovery(key: &Ident, input: ParseStream) -> Result<Word> {
    word(key, expr(key, input)?, &[("probes", "Probes"), ("ramp", "Ramp")])
}

pub(super) fn mode(key: &Ident, input: ParseStream) -> Result<Word> {
    word(key, expr(key, input)?, &[("enforce", "Enforce"), ("off", "Off"), ("shadow", "Shadow")])
}

/// One of a few words, without quotes, which stands for a variant of the runtime's.
fn word(key: &Ident, expr: Expr, words: &[(&str, &'static str)]) -> Result<Word> {
    word_of(key, expr, words).map(Word)
}

/// What one of a few words, without quotes, stands for.
fn word_of<T: Copy>(key: &Ident, expr: Expr, words: &[(&str, T)]) -> Result<T> {
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
        Some((_, meaning)) => Ok(*meaning),
        None => Err(errors::unknown(written, &format!("{key} `{written}`"), &accepted)),
    }
}

/// `("vip" => 1_000, 42 => 1)`.
pub(super) fn exceptions(key: &Ident, input: ParseStream) -> Result<Vec<Exception>> {
    let content = parentheses(key, input)?;
    let mut exceptions: Vec<Exception> = Vec::new();
    let mut errors = each(&content, |input, _| {
        exceptions.push(exception(key, input)?);
        Ok(())
    });
    for (index, exception) in exceptions.iter().enumerate() {
        if exceptions[..index].iter().any(|earlier| earlier.of == exception.of) {
            let written = exception.expr.to_token_stream();
            errors.at(&exception.expr, format!("the limit of `{written}` is given twice"));
        }
    }
    match errors.or(exceptions)? {
        exceptions if exceptions.is_empty() => Err(written_as(key)),
        exceptions => Ok(exceptions),
    }
}

fn exception(key: &Ident, input: ParseStream) -> Result<Exception> {
    let expr = without_groups(input.parse()?);
    if input.parse::<Option<Token![=>]>>()?.is_none() {
        let message = format!("expected `value => limit`, e.g. `{}`", example("except"));
        return Err(Error::new_spanned(expr, message));
    }
    let limit = without_groups(input.parse()?);
    match (constant(key, &expr), limit_in(key, limit)) {
        (Ok(of), Ok(limit)) => Ok(Exception { of, expr, limit }),
        (Err(mut error), Err(other)) => {
            error.combine(other);
            Err(error)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

/// A key of a kind that can be compared when compiling.
fn constant(key: &Ident, expr: &Expr) -> Result<Constant> {
    match literal(expr) {
        Some((Lit::Str(literal), false)) => Ok(Constant::Text(literal.value())),
        Some((Lit::Bool(literal), false)) => Ok(Constant::Bool(literal.value)),
        Some((Lit::Char(literal), false)) => Ok(Constant::Char(literal.value())),
        Some((Lit::Int(literal), is_negative)) => {
            let number = literal.base10_parse::<i128>();
            let number = number.map_err(|_| wrong(key, expr, "has a number that is too large"))?;
            Ok(Constant::Int(if is_negative { -number } else { number }))
        }
        Some((Lit::Float(_), _)) => Err(wrong(key, expr, "takes no fractions: they are no keys")),
        _ => Err(wrong(key, expr, "takes literals: texts, whole numbers, `true`, `false` and characters")),
    }
}

/// `(pattern)`.
pub(super) fn pattern(key: &Ident, input: ParseStream) -> Result<Pat> {
    let content = parentheses(key, input)?;
    let pattern = content.call(Pat::parse_multi_with_leading_vert)?;
    if !content.is_empty() {
        return Err(content.error(format!("`{key}` takes one pattern; join several by `|`")));
    }
    if let Pat::Ident(PatIdent { ident, subpat: None, .. }) = &pattern
        && ident.to_string().starts_with(|c: char| c.is_lowercase())
    {
        let message = format!(
            "`{ident}` is a pattern that fits every error; name a variant, as in `{}`, or write `{key}(_)` if every one is meant; \
             a predicate goes to `ok_if` or `err_if`",
            example(&key.to_string())
        );
        return Err(Error::new_spanned(pattern, message));
    }
    Ok(pattern)
}

/// What answers in place of the function.
pub(super) fn fallback(key: &Ident, input: ParseStream) -> Result<Fallback> {
    match expr(key, input)? {
        Expr::Path(path) if !is_constant(&path.path) => Ok(Fallback::Path(path)),
        Expr::Closure(closure) => Ok(Fallback::Closure(closure)),
        // Braces are for the reader of the attribute; where its expression stands they would be too many.
        Expr::Paren(paren) => Ok(Fallback::Expr(*paren.expr)),
        Expr::Block(ExprBlock { attrs, label: None, mut block }) if attrs.is_empty() => {
            Ok(Fallback::Expr(match block.stmts.pop() {
                Some(Stmt::Expr(expr, None)) if block.stmts.is_empty() => expr,
                last => {
                    block.stmts.extend(last);
                    Expr::Block(ExprBlock { attrs, label: None, block })
                }
            }))
        }
        expr => Ok(Fallback::Expr(expr)),
    }
}

/// Whether a path is that of a value, by its name: `None`, `DEFAULT`, `u32::MAX`.
fn is_constant(path: &Path) -> bool {
    let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    name == "None"
        || name.len() > 1 && !name.contains(char::is_lowercase) && name.contains(char::is_uppercase)
}

pub(super) fn fallback_on(key: &Ident, input: ParseStream) -> Result<FallbackOn> {
    let words = [("block", FallbackOn::Block), ("error", FallbackOn::Error), ("any", FallbackOn::Any)];
    word_of(key, expr(key, input)?, &words)
}

/// The path of the runtime's crate.
pub(super) fn runtime(key: &Ident, input: ParseStream) -> Result<Path> {
    match expr(key, input)? {
        Expr::Path(ExprPath { qself: None, path, .. }) => Ok(path),
        other => Err(wrong(key, other, "needs a path")),
    }
}
