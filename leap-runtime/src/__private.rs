//! What an expansion of `#[guarded]` calls. Nothing in here is for anyone else, and all of it may change.
#![expect(missing_debug_implementations, reason = "nothing in here is held by anybody")]

use std::future::{Future, Ready, ready};
use std::marker::PhantomData;
use std::time::Duration;

use crate::rule::{BreakerRule, FlowRule, IsolationRule};

pub use std::any::type_name_of_val;
pub use std::option::Option::{None, Some};
pub use std::result::Result::{Err, Ok};

pub use crate::blocked::{Blocked, FromBlocked};
pub use crate::callsite::CallSite;
pub use crate::entry::{Entry, Guarded};
pub use crate::event::Outcome;
pub use crate::rule::{Mode, Precision, Rule};

/// Runs the body of a guarded function. Its call ends when the entry is dropped, which is to be next. `judge` must not
/// panic.
#[inline]
pub fn run<R>(entry: &mut Entry, body: impl FnOnce() -> R, judge: impl FnOnce(&R) -> Outcome) -> R {
    entry.run_inside(body, judge)
}

/// As [`run`], for a `judge` that asks the user's predicates: a panic in it is contained and counts as an exception.
#[inline]
pub fn run_judged<R>(entry: &mut Entry, body: impl FnOnce() -> R, judge: impl FnOnce(&R) -> Outcome) -> R {
    entry.run_judged(body, judge)
}

/// As [`run`], for async functions.
#[inline]
pub fn run_async<F, J>(entry: Entry, future: F, judge: J) -> Guarded<F, J>
where
    F: Future,
    J: FnOnce(&F::Output) -> Outcome,
{
    Guarded::new(entry, future, judge)
}

/// Takes a rule out of its checks, which run while the guarded function is compiled.
macro_rules! checked {
    ($rule:expr) => {
        match $rule {
            Ok(rule) => rule,
            Err(error) => panic!("{}", error.headline()),
        }
    };
}

/// `qps` and `rate(..)`.
#[track_caller]
pub const fn flow(
    limit: f64,
    per_ms: u64,
    precision: Option<Precision>,
    n_buckets: Option<u32>,
    mode: Mode,
) -> Rule {
    let mut rule = checked!(FlowRule::with_interval(limit, Duration::from_millis(per_ms)));
    // Buckets first: those that a precision comes with by default need not divide the interval.
    if let Some(n_buckets) = n_buckets {
        rule = checked!(rule.with_buckets(n_buckets));
    }
    if let Some(precision) = precision {
        rule = checked!(rule.with_precision(precision));
    }
    Rule::Flow(rule.with_mode(mode))
}

/// `max_concurrency`.
pub const fn isolation(max_concurrency: u32, mode: Mode) -> Rule {
    Rule::Isolation(IsolationRule::new(max_concurrency).with_mode(mode))
}

/// What all breakers of an attribute share.
#[derive(Clone, Copy)]
pub struct BreakerWords {
    pub min_calls: Option<u32>,
    pub window_ms: Option<u64>,
    pub open_ms: Option<u64>,
    pub probes: Option<u32>,
    pub mode: Mode,
}

/// `slow_rt_ms` and `slow_ratio`.
#[track_caller]
pub const fn slow_ratio(slow_rt_ms: u64, ratio: f64, words: BreakerWords) -> Rule {
    breaker(checked!(BreakerRule::slow_ratio(Duration::from_millis(slow_rt_ms), ratio)), words)
}

/// `error_ratio`.
#[track_caller]
pub const fn error_ratio(ratio: f64, words: BreakerWords) -> Rule {
    breaker(checked!(BreakerRule::error_ratio(ratio)), words)
}

/// `error_count`.
#[track_caller]
pub const fn error_count(count: u32, words: BreakerWords) -> Rule {
    breaker(BreakerRule::error_count(count), words)
}

#[track_caller]
const fn breaker(mut rule: BreakerRule, words: BreakerWords) -> Rule {
    if let Some(min_calls) = words.min_calls {
        rule = checked!(rule.with_min_calls(min_calls));
    }
    if let Some(window_ms) = words.window_ms {
        rule = checked!(rule.with_window(Duration::from_millis(window_ms), 1));
    }
    if let Some(open_ms) = words.open_ms {
        rule = checked!(rule.open_for(Duration::from_millis(open_ms)));
    }
    if let Some(probes) = words.probes {
        rule = checked!(rule.with_probes(probes));
    }
    Rule::Breaker(rule.with_mode(words.mode))
}

/// The path of a guarded function, given that of a function inside it: `shop::Cart::add`.
pub fn path_of(nested: &'static str) -> &'static str {
    let mut path = nested.rsplit_once("::").map_or(nested, |(function, _)| function);
    // The body of an async function is a closure.
    while let Some(outer) = path.strip_suffix("::{{closure}}") {
        path = outer;
    }
    path
}

/// The name of a resource, checked.
#[track_caller]
pub const fn name(name: &'static str) -> &'static str {
    assert!(!name.is_empty(), "the name of a resource must not be empty");
    assert!(name.len() <= 1_024, "the name of a resource is at most 1024 bytes long");
    name
}

/// The permits that a call asks for, checked.
#[track_caller]
pub const fn permits(permits: u32) -> u32 {
    assert!(permits > 0, "a call asks for at least 1 permit");
    permits
}

/// Gives a block that never calls it a type.
pub fn never<T>() -> T {
    unreachable!("stands in a branch that is never taken")
}

/// The type `!`, under a name that may be a type argument.
pub type Never = <fn() -> ! as Returns>::Output;

/// What a function pointer returns.
pub trait Returns {
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

/// A returned value whose type is to say whether it is an `Err`.
///
/// The method is found on `Judged` itself for a `Result`, under whatever name, and one reference further for everything
/// else.
pub struct Judged<'a, T>(pub &'a T);

pub trait ViaResult {
    fn leap_outcome(&self) -> Outcome;
}

impl<T, E> ViaResult for Judged<'_, Result<T, E>> {
    fn leap_outcome(&self) -> Outcome {
        if self.0.is_ok() { Outcome::Success } else { Outcome::Exception }
    }
}

pub trait ViaAny {
    fn leap_outcome(&self) -> Outcome;
}

impl<T> ViaAny for &Judged<'_, T> {
    fn leap_outcome(&self) -> Outcome {
        Outcome::Success
    }
}

/// What `ignore(pattern)` looks at.
#[diagnostic::on_unimplemented(
    message = "`ignore` needs a function that returns a `Result`, not `{Self}`",
    label = "a pattern for an `Err` that `{Self}` does not have",
    note = "`ok_if = predicate` and `err_if = predicate` look at values of any type"
)]
pub trait Fallible {
    type Error;

    fn error(&self) -> Option<&Self::Error>;
}

impl<T, E> Fallible for Result<T, E> {
    type Error = E;

    fn error(&self) -> Option<&E> {
        self.as_ref().err()
    }
}

pub fn error_of<R: Fallible>(returned: &R) -> Option<&R::Error> {
    returned.error()
}

/// Asks a predicate. As an argument, a closure knows the type of what it is given.
pub fn holds<R>(returned: &R, predicate: impl FnOnce(&R) -> bool) -> bool {
    predicate(returned)
}

/// What the fallback of an async function gave, whose type is to say whether it is to be awaited.
pub struct Answer<'a, A, R>(PhantomData<(&'a A, R)>);

impl<'a, A, R> Answer<'a, A, R> {
    pub fn new(_answer: &'a A) -> Self {
        Self(PhantomData)
    }
}

pub trait ViaFuture {
    fn leap_way(&self) -> AsFuture;
}

impl<A: Future<Output = R>, R> ViaFuture for Answer<'_, A, R> {
    fn leap_way(&self) -> AsFuture {
        AsFuture
    }
}

pub trait ViaValue {
    fn leap_way(&self) -> AsValue;
}

impl<A, R> ViaValue for &Answer<'_, A, R> {
    fn leap_way(&self) -> AsValue {
        AsValue
    }
}

/// The answer is awaited.
pub struct AsFuture;

impl AsFuture {
    pub fn settle<A: Future>(self, answer: A) -> A {
        answer
    }
}

/// The answer is what the function returns.
pub struct AsValue;

impl AsValue {
    pub fn settle<A>(self, answer: A) -> Ready<A> {
        ready(answer)
    }
}
