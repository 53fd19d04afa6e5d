//! The rules of an attribute, as the runtime's `const fn`s make them.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote_spanned;
use syn::Expr;
use syn::spanned::Spanned;

use super::values::{float, literal, name, option, whole};
use super::{Leap, ours};
use crate::args::{Constant, Exception, Value, Word};
use crate::model::{BreakerWords, Flow, Guarded, Hot, Rule};

/// A rule made by a `const fn`, which finds what is wrong with the values of expressions. The call stands where the
/// first of them is: literals have been checked.
pub(super) fn build(rule: &Rule, guarded: &Guarded, leap: Leap<'_>) -> TokenStream {
    let mode = variant("Mode", guarded.mode.unwrap_or(Word("Enforce")), leap);
    let breakers = &guarded.breakers;
    let (function, at, arguments) = match rule {
        Rule::Flow(flow) => ("flow", flow.unknown(), flow_words(flow, &mode, leap)),
        Rule::Isolation { max, queue_ms } => {
            let at = max.unknown().or(unknown(queue_ms.as_ref()));
            let (max, queue_ms) = (whole(max), option(queue_ms.as_ref().map(whole), leap));
            ("isolation", at, quote_spanned! {ours()=> #max, #queue_ms, #mode})
        }
        Rule::SlowRatio { slow_rt_ms, ratio } => {
            let at = slow_rt_ms.unknown().or(unknown(ratio.as_ref())).or(breakers.unknown());
            let slow_rt_ms = whole(slow_rt_ms);
            let ratio =
                ratio.as_ref().map_or_else(|| quote_spanned! {ours()=> 1.0}, |ratio| float(ratio, leap));
            let words = breaker_words(breakers, &mode, leap);
            ("slow_ratio", at, quote_spanned! {ours()=> #slow_rt_ms, #ratio, #words})
        }
        Rule::ErrorRatio { ratio } => {
            let (at, ratio) = (ratio.unknown().or(breakers.unknown()), float(ratio, leap));
            let words = breaker_words(breakers, &mode, leap);
            ("error_ratio", at, quote_spanned! {ours()=> #ratio, #words})
        }
        Rule::ErrorCount { count } => {
            let (at, count) = (count.unknown().or(breakers.unknown()), whole(count));
            let words = breaker_words(breakers, &mode, leap);
            ("error_count", at, quote_spanned! {ours()=> #count, #words})
        }
        Rule::Hot(hot) => ("hot", hot.unknown(), hot_words(hot, &mode, leap)),
        Rule::Authority { allow, deny } => {
            let (allow, deny) = (names(allow, leap), names(deny, leap));
            ("authority", None, quote_spanned! {ours()=> #allow, #deny, #mode})
        }
    };
    let at = at.map_or_else(ours, Spanned::span);
    let (leap, function) = (leap.at(at), Ident::new(function, at));
    quote_spanned! {at=> #leap::#function(#arguments)}
}

fn flow_words(flow: &Flow, mode: &TokenStream, leap: Leap<'_>) -> TokenStream {
    let limit = float(&flow.limit, leap);
    let per_ms = flow.per_ms.as_ref().map_or_else(|| quote_spanned! {ours()=> 1_000}, whole);
    let precision = option(flow.precision.map(|word| variant("Precision", word, leap)), leap);
    let buckets = option(flow.buckets.as_ref().map(whole), leap);
    let behavior = option(flow.behavior.map(|word| variant("BehaviorWord", word, leap)), leap);
    let warm_up_ms = option(flow.warm_up_ms.as_ref().map(whole), leap);
    let cold_factor = option(flow.cold_factor.as_ref().map(|factor| float(factor, leap)), leap);
    let max_wait_ms = option(flow.max_wait_ms.as_ref().map(whole), leap);
    let burst = option(flow.burst.as_ref().map(whole), leap);
    let associated = option(flow.associated.as_ref().map(|resource| name(resource, leap)), leap);
    quote_spanned! {ours()=>
        #leap::FlowWords {
            limit: #limit,
            per_ms: #per_ms,
            precision: #precision,
            buckets: #buckets,
            behavior: #behavior,
            warm_up_ms: #warm_up_ms,
            cold_factor: #cold_factor,
            max_wait_ms: #max_wait_ms,
            burst: #burst,
            associated: #associated,
            mode: #mode,
        }
    }
}

fn breaker_words(words: &BreakerWords, mode: &TokenStream, leap: Leap<'_>) -> TokenStream {
    let min_calls = option(words.min_calls.as_ref().map(whole), leap);
    let window_ms = option(words.window_ms.as_ref().map(whole), leap);
    let window_calls = option(words.window_calls.as_ref().map(whole), leap);
    let open_ms = option(words.open_ms.as_ref().map(whole), leap);
    let open_max_ms = option(words.open_max_ms.as_ref().map(whole), leap);
    let probes = option(words.probes.as_ref().map(whole), leap);
    let recovery = option(words.recovery.map(|word| variant("Recovery", word, leap)), leap);
    quote_spanned! {ours()=>
        #leap::BreakerWords {
            min_calls: #min_calls,
            window_ms: #window_ms,
            window_calls: #window_calls,
            open_ms: #open_ms,
            open_max_ms: #open_max_ms,
            probes: #probes,
            recovery: #recovery,
            mode: #mode,
        }
    }
}

fn hot_words(hot: &Hot, mode: &TokenStream, leap: Leap<'_>) -> TokenStream {
    let name = &hot.name;
    let qps = option(hot.qps.as_ref().map(|qps| float(qps, leap)), leap);
    let per_ms = option(hot.per_ms.as_ref().map(whole), leap);
    let burst = option(hot.burst.as_ref().map(whole), leap);
    let max_concurrency = option(hot.max_concurrency.as_ref().map(whole), leap);
    let behavior = option(hot.behavior.map(|word| variant("BehaviorWord", word, leap)), leap);
    let max_wait_ms = option(hot.max_wait_ms.as_ref().map(whole), leap);
    let max_keys = option(hot.max_keys.as_ref().map(whole), leap);
    let precision = option(hot.precision.map(|word| variant("Precision", word, leap)), leap);
    let except = list(hot.except.iter().map(|Exception { of, expr, limit }| {
        let (of, limit) = (constant(of, expr, leap), float(limit, leap));
        quote_spanned! {ours()=> (#of, #limit)}
    }));
    quote_spanned! {ours()=>
        #leap::HotWords {
            name: #name,
            qps: #qps,
            per_ms: #per_ms,
            burst: #burst,
            max_concurrency: #max_concurrency,
            behavior: #behavior,
            max_wait_ms: #max_wait_ms,
            max_keys: #max_keys,
            precision: #precision,
            except: #except,
            mode: #mode,
        }
    }
}

/// A key that is known when compiling.
fn constant(constant: &Constant, expr: &Expr, leap: Leap<'_>) -> TokenStream {
    let span = expr.span();
    let (kind, value) = match constant {
        Constant::Text(text) => ("Text", literal(Literal::string(text), span)),
        Constant::Int(number) => {
            let digits = literal(Literal::u128_unsuffixed(number.unsigned_abs()), span);
            let sign = number.is_negative().then(|| quote_spanned! {span=> -});
            ("Int", quote_spanned! {span=> #sign #digits})
        }
        Constant::Bool(value) => {
            let value = Ident::new(if *value { "true" } else { "false" }, span);
            ("Bool", quote_spanned! {span=> #value})
        }
        Constant::Char(value) => ("Char", literal(Literal::character(*value), span)),
    };
    let kind = Ident::new(kind, ours());
    quote_spanned! {ours()=> #leap::Except::#kind(#value)}
}

fn names(names: &[Value<String>], leap: Leap<'_>) -> TokenStream {
    list(names.iter().map(|each| name(each, leap)))
}

/// A list that lives as long as the program, whatever its items are made by.
fn list(items: impl ExactSizeIterator<Item = TokenStream>) -> TokenStream {
    match items.len() {
        0 => quote_spanned! {ours()=> &[]},
        _ => quote_spanned! {ours()=> const { &[#(#items),*] }},
    }
}

fn variant(of: &str, word: Word, leap: Leap<'_>) -> TokenStream {
    let (of, variant) = (Ident::new(of, ours()), Ident::new(word.0, ours()));
    quote_spanned! {ours()=> #leap::#of::#variant}
}

fn unknown<T>(value: Option<&Value<T>>) -> Option<&Expr> {
    value.and_then(Value::unknown)
}
