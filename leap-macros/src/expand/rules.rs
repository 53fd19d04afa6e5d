//! The rules of an attribute, as the runtime's `const fn`s make them.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote_spanned;
use syn::Expr;
use syn::spanned::Spanned;

use super::ours;
use super::values::{float, literal, name, option, whole};
use crate::args::{Constant, Exception, Value, Word};
use crate::model::{BreakerWords, Flow, Guarded, Hot, Rule};

/// A rule made by a `const fn`, which finds what is wrong with the values of expressions. The call stands where the
/// first of them is: literals have been checked.
pub(super) fn build(rule: &Rule, guarded: &Guarded) -> TokenStream {
    let mode = variant("Mode", guarded.mode.unwrap_or(Word("Enforce")));
    let breakers = &guarded.breakers;
    let (function, at, arguments) = match rule {
        Rule::Flow(flow) => ("flow", flow.unknown(), flow_words(flow, &mode)),
        Rule::Isolation { max, queue_ms } => {
            let at = max.unknown().or(unknown(queue_ms.as_ref()));
            let (max, queue_ms) = (whole(max), option(queue_ms.as_ref().map(whole)));
            ("isolation", at, quote_spanned! {ours()=> #max, #queue_ms, #mode})
        }
        Rule::SlowRatio { slow_rt_ms, ratio } => {
            let at = slow_rt_ms.unknown().or(unknown(ratio.as_ref())).or(breakers.unknown());
            let slow_rt_ms = whole(slow_rt_ms);
            let ratio = ratio.as_ref().map_or_else(|| quote_spanned! {ours()=> 1.0}, float);
            let words = breaker_words(breakers, &mode);
            ("slow_ratio", at, quote_spanned! {ours()=> #slow_rt_ms, #ratio, #words})
        }
        Rule::ErrorRatio { ratio } => {
            let (at, ratio) = (ratio.unknown().or(breakers.unknown()), float(ratio));
            let words = breaker_words(breakers, &mode);
            ("error_ratio", at, quote_spanned! {ours()=> #ratio, #words})
        }
        Rule::ErrorCount { count } => {
            let (at, count) = (count.unknown().or(breakers.unknown()), whole(count));
            let words = breaker_words(breakers, &mode);
            ("error_count", at, quote_spanned! {ours()=> #count, #words})
        }
        Rule::Hot(hot) => ("hot", hot.unknown(), hot_words(hot, &mode)),
        Rule::Authority { allow, deny } => {
            let (allow, deny) = (names(allow), names(deny));
            ("authority", None, quote_spanned! {ours()=> #allow, #deny, #mode})
        }
    };
    let at = at.map_or_else(ours, Spanned::span);
    let function = Ident::new(function, at);
    quote_spanned! {at=> __leap::#function(#arguments)}
}

fn flow_words(flow: &Flow, mode: &TokenStream) -> TokenStream {
    let limit = float(&flow.limit);
    let per_ms = flow.per_ms.as_ref().map_or_else(|| quote_spanned! {ours()=> 1_000}, whole);
    let precision = option(flow.precision.map(|word| variant("Precision", word)));
    let buckets = option(flow.buckets.as_ref().map(whole));
    let behavior = option(flow.behavior.map(|word| variant("BehaviorWord", word)));
    let warm_up_ms = option(flow.warm_up_ms.as_ref().map(whole));
    let cold_factor = option(flow.cold_factor.as_ref().map(float));
    let max_wait_ms = option(flow.max_wait_ms.as_ref().map(whole));
    let burst = option(flow.burst.as_ref().map(whole));
    let associated = option(flow.associated.as_ref().map(name));
    quote_spanned! {ours()=>
        __leap::FlowWords {
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

fn breaker_words(words: &BreakerWords, mode: &TokenStream) -> TokenStream {
    let min_calls = option(words.min_calls.as_ref().map(whole));
    let window_ms = option(words.window_ms.as_ref().map(whole));
    let window_calls = option(words.window_calls.as_ref().map(whole));
    let open_ms = option(words.open_ms.as_ref().map(whole));
    let open_max_ms = option(words.open_max_ms.as_ref().map(whole));
    let probes = option(words.probes.as_ref().map(whole));
    let recovery = option(words.recovery.map(|word| variant("Recovery", word)));
    quote_spanned! {ours()=>
        __leap::BreakerWords {
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

fn hot_words(hot: &Hot, mode: &TokenStream) -> TokenStream {
    let name = &hot.name;
    let qps = option(hot.qps.as_ref().map(float));
    let per_ms = option(hot.per_ms.as_ref().map(whole));
    let burst = option(hot.burst.as_ref().map(whole));
    let max_concurrency = option(hot.max_concurrency.as_ref().map(whole));
    let behavior = option(hot.behavior.map(|word| variant("BehaviorWord", word)));
    let max_wait_ms = option(hot.max_wait_ms.as_ref().map(whole));
    let max_keys = option(hot.max_keys.as_ref().map(whole));
    let precision = option(hot.precision.map(|word| variant("Precision", word)));
    let except = list(hot.except.iter().map(|Exception { of, expr, limit }| {
        let (of, limit) = (constant(of, expr), float(limit));
        quote_spanned! {ours()=> (#of, #limit)}
    }));
    quote_spanned! {ours()=>
        __leap::HotWords {
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
fn constant(constant: &Constant, expr: &Expr) -> TokenStream {
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
    quote_spanned! {ours()=> __leap::Except::#kind(#value)}
}

fn names(names: &[Value<String>]) -> TokenStream {
    list(names.iter().map(name))
}

/// A list that lives as long as the program, whatever its items are made by.
fn list(items: impl ExactSizeIterator<Item = TokenStream>) -> TokenStream {
    match items.len() {
        0 => quote_spanned! {ours()=> &[]},
        _ => quote_spanned! {ours()=> const { &[#(#items),*] }},
    }
}

fn variant(of: &str, word: Word) -> TokenStream {
    let (of, variant) = (Ident::new(of, ours()), Ident::new(word.0, ours()));
    quote_spanned! {ours()=> __leap::#of::#variant}
}

fn unknown<T>(value: Option<&Value<T>>) -> Option<&Expr> {
    value.and_then(Value::unknown)
}
