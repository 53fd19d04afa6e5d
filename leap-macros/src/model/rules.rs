//! The rules that an attribute arms, and what does not go together in them.
#![expect(clippy::ref_option, reason = "helpers that are given fields as they are")]

use proc_macro2::Ident;
use syn::{Expr, LitStr};

use super::constants::Constants;
use super::{request, value};
use crate::args::{self, Args, BreakerArgs, Exception, FlowArgs, Given, Rate, Value, Word};
use crate::errors::Errors;

/// A rule that the attribute arms.
#[expect(clippy::large_enum_variant, reason = "a handful of them, each taken apart at once")]
pub(crate) enum Rule {
    Flow(Flow),
    Isolation { max: Value<u32>, queue_ms: Option<Value<u64>> },
    SlowRatio { slow_rt_ms: Value<u64>, ratio: Option<Value<f64>> },
    ErrorRatio { ratio: Value<f64> },
    ErrorCount { count: Value<u32> },
    Hot(Hot),
    Authority { allow: Vec<Value<String>>, deny: Vec<Value<String>> },
}

/// A limit per interval, which is a second unless given.
pub(crate) struct Flow {
    pub(crate) limit: Value<f64>,
    pub(crate) per_ms: Option<Value<u64>>,
    pub(crate) behavior: Option<Word>,
    pub(crate) warm_up_ms: Option<Value<u64>>,
    pub(crate) cold_factor: Option<Value<f64>>,
    pub(crate) max_wait_ms: Option<Value<u64>>,
    pub(crate) burst: Option<Value<u32>>,
    pub(crate) precision: Option<Word>,
    pub(crate) buckets: Option<Value<u32>>,
    pub(crate) associated: Option<Value<String>>,
}

/// What all breakers of one attribute have in common.
pub(crate) struct BreakerWords {
    pub(crate) min_calls: Option<Value<u32>>,
    pub(crate) window_ms: Option<Value<u64>>,
    pub(crate) window_calls: Option<Value<u32>>,
    pub(crate) open_ms: Option<Value<u64>>,
    pub(crate) open_max_ms: Option<Value<u64>>,
    pub(crate) probes: Option<Value<u32>>,
    pub(crate) recovery: Option<Word>,
}

/// A limit for each value of a key.
pub(crate) struct Hot {
    pub(crate) name: LitStr,
    pub(crate) qps: Option<Value<f64>>,
    pub(crate) per_ms: Option<Value<u64>>,
    pub(crate) burst: Option<Value<u32>>,
    pub(crate) max_concurrency: Option<Value<u32>>,
    pub(crate) behavior: Option<Word>,
    pub(crate) max_wait_ms: Option<Value<u64>>,
    pub(crate) max_keys: Option<Value<u32>>,
    pub(crate) precision: Option<Word>,
    pub(crate) except: Vec<Exception>,
}

/// The most permits per window that can be kept exactly.
const EXACT_AT_MOST: f64 = 1_048_576.0;

/// What breakers go by unless told otherwise.
const MIN_CALLS: u32 = 5;
const OPEN_MS: u64 = 5_000;

/// Takes the rules, and what their breakers have in common, out of the arguments.
pub(super) fn take(args: &mut Args, constants: &mut Constants) -> (Vec<Rule>, BreakerWords) {
    let mut rules = Vec::new();
    let flow = std::mem::take(&mut args.flow);
    if args.qps.is_some() {
        rules.extend(Flow::new(args.qps.take(), None, flow, constants).map(Rule::Flow));
    }
    rules.extend(args.rates.drain(..).filter_map(|rate| Flow::of_rate(rate, constants)).map(Rule::Flow));
    let queue_ms = constants.take(args.queue_ms.take());
    let max = constants.take(args.max_concurrency.take());
    rules.extend(max.map(|max| Rule::Isolation { max, queue_ms }));
    let ratio = constants.take(args.slow_ratio.take());
    let slow_rt_ms = constants.take(args.slow_rt_ms.take());
    rules.extend(slow_rt_ms.map(|slow_rt_ms| Rule::SlowRatio { slow_rt_ms, ratio }));
    rules.extend(constants.take(args.error_ratio.take()).map(|ratio| Rule::ErrorRatio { ratio }));
    rules.extend(constants.take(args.error_count.take()).map(|count| Rule::ErrorCount { count }));
    rules.extend(args.hots.drain(..).filter_map(|hot| Hot::new(hot, constants)).map(Rule::Hot));
    if args.allow.is_some() || args.deny.is_some() {
        let mut names = |given: Option<Given<Vec<Value<String>>>>| {
            let Some(Given { key, value }) = given else { return Vec::new() };
            for name in &value {
                constants.check(&key, name);
            }
            value
        };
        rules.push(Rule::Authority { allow: names(args.allow.take()), deny: names(args.deny.take()) });
    }
    (rules, BreakerWords::new(std::mem::take(&mut args.breakers), constants))
}

/// Finds arguments that say more about a rule that is not there.
pub(super) fn everything_has_its_rule(args: &Args, errors: &mut Errors) {
    // Who wrote `slow_ratio` meant a breaker, and is told below what it needs.
    let has_breaker = args.slow_rt_ms.is_some()
        || args.slow_ratio.is_some()
        || args.error_ratio.is_some()
        || args.error_count.is_some();
    if !has_breaker {
        let BreakerArgs { min_calls, window_ms, window_calls, open_ms, open_max_ms, probes, recovery } =
            &args.breakers;
        let keys = [
            key(min_calls),
            key(window_ms),
            key(window_calls),
            key(open_ms),
            key(open_max_ms),
            key(probes),
            key(recovery),
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
    if let (Some(Given { key, .. }), None) = (&args.queue_ms, &args.max_concurrency) {
        let hint = if args.qps.is_some() || !args.rates.is_empty() {
            "; calls above a limit per interval wait with `behavior = throttle`, up to `max_wait_ms`"
        } else {
            ""
        };
        errors.at(key, format!("`queue_ms` needs `max_concurrency`, the limit that calls queue for{hint}"));
    }
    if args.qps.is_none() {
        let hint = if args.rates.is_empty() {
            "or a `rate(…)` with it"
        } else {
            "or move it into the `rate(…)` it is for"
        };
        for key in args.flow.keys().into_iter().flatten() {
            let queue = if args.max_concurrency.is_some() && key == "max_wait_ms" {
                "; calls above `max_concurrency` wait with `queue_ms`"
            } else {
                ""
            };
            errors.at(key, format!("`{key}` needs a limit per interval: add `qps`, {hint}{queue}"));
        }
    }
    if let (Some(_), Some(Given { key, .. })) = (&args.allow, &args.deny) {
        errors.at(key, "`deny` does not go with `allow`: whom `allow` does not name is denied");
    }
}

/// The key that an argument was given under, if it was.
fn key<T>(given: &Option<Given<T>>) -> Option<&Ident> {
    given.as_ref().map(|given| &given.key)
}

fn unknown<T>(value: &Option<Value<T>>) -> Option<&Expr> {
    value.as_ref().and_then(Value::unknown)
}

fn known<T: Copy>(given: &Option<Given<Value<T>>>, default: T) -> Option<T> {
    given.as_ref().map_or(Some(default), |given| given.value.known)
}

impl FlowArgs {
    fn keys(&self) -> [Option<&Ident>; 8] {
        let Self { behavior, warm_up_ms, cold_factor, max_wait_ms, burst, precision, buckets, associated } =
            self;
        [
            key(behavior),
            key(warm_up_ms),
            key(cold_factor),
            key(max_wait_ms),
            key(burst),
            key(precision),
            key(buckets),
            key(associated),
        ]
    }

    /// Finds what does not go with the behaviour.
    fn check(&self, errors: &mut Errors) {
        let behavior = self.behavior.as_ref().map_or("Reject", |given| given.value.0);
        if !matches!(behavior, "WarmUp" | "WarmUpThrottle") {
            for key in [key(&self.warm_up_ms), key(&self.cold_factor)].into_iter().flatten() {
                let message = format!("`{key}` needs `behavior = warm_up` or `behavior = warm_up_throttle`");
                errors.at(key, message);
            }
        }
        if let (Some(key), "Reject" | "WarmUp") = (key(&self.max_wait_ms), behavior) {
            errors.at(key, "`max_wait_ms` needs `behavior = throttle` or `behavior = warm_up_throttle`");
        }
        match (key(&self.burst), behavior) {
            (None, _) | (_, "Throttle") => {}
            (Some(key), _) => errors.at(
                key,
                "`burst` needs `behavior = throttle`: elsewhere the limit itself is what may come at once",
            ),
        }
        match (key(&self.associated), behavior) {
            (None, _) | (_, "Reject") => {}
            (Some(key), _) => errors.at(
                key,
                "`associated` goes with `behavior = reject` only: what passes there cannot be paced from here",
            ),
        }
        if behavior == "Throttle" {
            if let Some(Given { key, value: Word("Exact" | "Strict") }) = &self.precision {
                errors.at(
                    key,
                    "`behavior = throttle` keeps no window to be precise about: leave `precision` out, or say \
                     `sentinel` for Sentinel's arithmetic",
                );
            }
            if let Some(key) = key(&self.buckets) {
                errors.at(key, "`behavior = throttle` keeps no window: leave `buckets` out");
            }
        }
    }
}

impl Flow {
    fn new(
        limit: Option<Given<Value<f64>>>,
        per_ms: Option<Given<Value<u64>>>,
        args: FlowArgs,
        constants: &mut Constants,
    ) -> Option<Self> {
        args.check(constants.errors);
        let (limit, per_ms) = (constants.take(limit), constants.take(per_ms));
        let warm_up_ms = constants.take(args.warm_up_ms);
        let cold_factor = constants.take(args.cold_factor);
        let max_wait_ms = constants.take(args.max_wait_ms);
        let burst = constants.take(args.burst);
        let buckets = constants.take(args.buckets);
        let associated = constants.take(args.associated);
        let (behavior, precision) = (value(args.behavior), value(args.precision));
        let limit = limit?;
        let flow = Self {
            limit,
            per_ms,
            behavior,
            warm_up_ms,
            cold_factor,
            max_wait_ms,
            burst,
            precision,
            buckets,
            associated,
        };
        flow.check(constants.errors);
        Some(flow)
    }

    fn of_rate(rate: Rate, constants: &mut Constants) -> Option<Self> {
        let Rate { word, limit, per_ms, flow } = rate;
        if limit.is_none() {
            constants.errors.at(&word, "`rate` needs `limit`, the permits per interval");
        }
        if per_ms.is_none() {
            let message = "`rate` needs `per_ms`, the interval; a limit per second is written `qps = 100`";
            constants.errors.at(&word, message);
            // Numbers that a second would do for may do for no other interval.
            return None;
        }
        Self::new(limit, per_ms, flow, constants)
    }

    /// Checks the numbers that are known; the rest is left to the compiler.
    fn check(&self, errors: &mut Errors) {
        if matches!(self.behavior, Some(Word("Throttle"))) {
            return;
        }
        let per_ms = self.per_ms.as_ref().map_or(Some(1_000), |per_ms| per_ms.known);
        let paces = matches!(self.behavior, Some(Word("WarmUpThrottle")));
        if let (Some(per_ms), Some(limit), false) = (per_ms, self.limit.known, paces)
            && let Some(per_ms) = whole_permits(limit, per_ms)
        {
            let message = format!(
                "a limit between 0 and 1 would let no call through; for one in {per_ms} ms write \
                 `rate(limit = 1, per_ms = {per_ms})`"
            );
            errors.at(&self.limit.expr, message);
        }
        if let (Some(limit), Some(Word("Exact"))) = (self.limit.known, &self.precision)
            && limit > EXACT_AT_MOST
        {
            let message = format!(
                "an exact limit is at most {EXACT_AT_MOST} permits per interval; use `precision = strict`"
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

    /// The first number that is for the compiler to find.
    pub(crate) fn unknown(&self) -> Option<&Expr> {
        self.limit
            .unknown()
            .or(unknown(&self.per_ms))
            .or(unknown(&self.warm_up_ms))
            .or(unknown(&self.cold_factor))
            .or(unknown(&self.max_wait_ms))
            .or(unknown(&self.burst))
            .or(unknown(&self.buckets))
    }
}

/// The interval of a whole permit, if `limit` is less than that per `per_ms`.
fn whole_permits(limit: f64, per_ms: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a proposal, and a year is under 2^53 ms")]
    (limit > 0.0 && limit < 1.0).then(|| (per_ms as f64 / limit).ceil())
}

impl BreakerWords {
    fn new(args: BreakerArgs, constants: &mut Constants) -> Self {
        let errors = &mut *constants.errors;
        if let (Some(_), Some(Given { key, .. })) = (&args.window_ms, &args.window_calls) {
            errors.at(key, "`window_calls` does not go with `window_ms`: a window is of time or of calls");
        }
        if let (Some(Given { value, .. }), Some(min_calls)) =
            (&args.window_calls, known(&args.min_calls, MIN_CALLS))
            && value.known.is_some_and(|window_calls| window_calls < min_calls)
        {
            let message = format!(
                "`window_calls` must be at least `min_calls`, which is {min_calls}, or nothing is judged"
            );
            errors.at(&value.expr, message);
        }
        if let (Some(Given { value, .. }), Some(open_ms)) = (&args.open_max_ms, known(&args.open_ms, OPEN_MS))
            && value.known.is_some_and(|open_max_ms| open_max_ms < open_ms)
        {
            errors.at(&value.expr, format!("`open_max_ms` must be at least `open_ms`, which is {open_ms}"));
        }
        Self {
            min_calls: constants.take(args.min_calls),
            window_ms: constants.take(args.window_ms),
            window_calls: constants.take(args.window_calls),
            open_ms: constants.take(args.open_ms),
            open_max_ms: constants.take(args.open_max_ms),
            probes: constants.take(args.probes),
            recovery: value(args.recovery),
        }
    }

    /// The first number that is for the compiler to find.
    pub(crate) fn unknown(&self) -> Option<&Expr> {
        unknown(&self.min_calls)
            .or(unknown(&self.window_ms))
            .or(unknown(&self.window_calls))
            .or(unknown(&self.open_ms))
            .or(unknown(&self.open_max_ms))
            .or(unknown(&self.probes))
    }
}

impl Hot {
    /// The rule, unless the key stands alone: then it is only there for rules that are loaded.
    fn new(hot: args::Hot, constants: &mut Constants) -> Option<Self> {
        check_hot(&hot, constants.errors);
        let name = request::name_of(&hot);
        let args::Hot { qps, per_ms, burst, max_concurrency, behavior, max_wait_ms, .. } = hot;
        let (qps, per_ms, burst) = (constants.take(qps), constants.take(per_ms), constants.take(burst));
        let max_concurrency = constants.take(max_concurrency);
        let (max_wait_ms, max_keys) = (constants.take(max_wait_ms), constants.take(hot.max_keys));
        let except = hot.except.map(|Given { key, value }| {
            for exception in &value {
                constants.check(&key, &exception.limit);
            }
            value
        });
        if qps.is_none() && max_concurrency.is_none() {
            return None;
        }
        Some(Self {
            name: name?,
            qps,
            per_ms,
            burst,
            max_concurrency,
            behavior: value(behavior),
            max_wait_ms,
            max_keys,
            precision: value(hot.precision),
            except: except.unwrap_or_default(),
        })
    }

    /// The first number that is for the compiler to find.
    pub(crate) fn unknown(&self) -> Option<&Expr> {
        unknown(&self.qps)
            .or(unknown(&self.per_ms))
            .or(unknown(&self.burst))
            .or(unknown(&self.max_concurrency))
            .or(unknown(&self.max_wait_ms))
            .or(unknown(&self.max_keys))
            .or(self.except.iter().find_map(|exception| exception.limit.unknown()))
    }
}

/// Finds what does not go together in a `hot(…)`.
fn check_hot(hot: &args::Hot, errors: &mut Errors) {
    if hot.key.is_none() {
        errors.at(
            &hot.word,
            "`hot` needs `key`, by which calls are told apart: `hot(key = user_id, qps = 10)`",
        );
    }
    if hot.qps.is_none() {
        let keys = [key(&hot.per_ms), key(&hot.burst), key(&hot.behavior), key(&hot.precision)];
        for key in keys.into_iter().flatten() {
            errors.at(key, format!("`{key}` needs `qps`, the permits for each value of the key"));
        }
    }
    let throttles = matches!(hot.behavior, Some(Given { value: Word("Throttle"), .. }));
    if let (Some(key), false) = (key(&hot.max_wait_ms), throttles) {
        errors.at(key, "`max_wait_ms` needs `behavior = throttle`");
    }
    if hot.qps.is_none() && hot.max_concurrency.is_none() {
        for key in [key(&hot.max_keys), key(&hot.except)].into_iter().flatten() {
            errors.at(key, format!("`{key}` needs a limit: add `qps` or `max_concurrency`"));
        }
    }
    if let (Some(Given { value, .. }), Some(per_ms)) = (&hot.qps, known(&hot.per_ms, 1_000))
        && !throttles
        && hot.burst.is_none()
        && let Some(per_ms) = value.known.and_then(|limit| whole_permits(limit, per_ms))
    {
        let message = format!(
            "a limit between 0 and 1 would let no call through; for one in {per_ms} ms write \
             `qps = 1, per_ms = {per_ms}`"
        );
        errors.at(&value.expr, message);
    }
}
