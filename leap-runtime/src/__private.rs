//! What an expansion of `#[guarded]` calls. Nothing in here is for anyone else, and all of it may change.
#![expect(missing_debug_implementations, reason = "nothing in here is held by anybody")]

use std::future::{Future, Ready, ready};
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use crate::rule::{self, AuthorityRule, IsolationRule, Strategy};

pub use std::any::type_name_of_val;
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{Err, Ok};

pub use crate::blocked::{Blocked, FromBlocked};
pub use crate::callsite::CallSite;
pub use crate::check::call::Request;
pub use crate::entry::{Begun, Entry, Guarded, Waiting, is_turned_away, turned_away};
pub use crate::event::Outcome;
pub use crate::key::{Key, ToKey};
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

/// As [`run`], for async functions: waits where the call has to, and ends it when the future is ready. The future asks
/// [`is_turned_away`] first of all, and if so answers a call that was blocked.
#[inline]
pub fn run_async<F, J>(begun: Begun, future: F, judge: J) -> Guarded<F, J>
where
    F: Future,
    J: FnOnce(&F::Output) -> Outcome,
{
    Guarded::new(begun, future, judge)
}

/// The value of a parameter, by the expression that a `hot(key = …)` gives; none if that panics.
pub fn key(site: &'static CallSite, expression: impl FnOnce() -> Key) -> Key {
    site.contain("parameter", expression).unwrap_or(Key::ABSENT)
}

/// The origin of a call, by the expression of `origin = …`; none if that panics.
pub fn origin(site: &'static CallSite, expression: impl FnOnce() -> Option<Origin>) -> Option<Origin> {
    site.contain("origin", expression).flatten()
}

/// Has `ask` look at arguments of an async function before its body has them. By value, as in [`Answer::of`].
pub fn lend<T, R>(arguments: T, ask: impl FnOnce(T) -> (R, T)) -> (R, T) {
    ask(arguments)
}

/// The longest origin that needs no allocation, in bytes.
const SHORT: usize = 30;

/// The origin of a call, until it has entered.
pub struct Origin(Text);

enum Text {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<str>),
}

impl From<&str> for Origin {
    fn from(text: &str) -> Self {
        let mut bytes = [0; SHORT];
        Self(match (u8::try_from(text.len()), bytes.get_mut(..text.len())) {
            (Ok(len), Some(place)) => {
                place.copy_from_slice(text.as_bytes());
                Text::Short { len, bytes }
            }
            _ => Text::Long(text.into()),
        })
    }
}

impl Deref for Origin {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Text::Short { len, bytes } => {
                str::from_utf8(&bytes[..usize::from(*len)]).expect("copied from a text")
            }
            Text::Long(text) => text,
        }
    }
}

/// What `origin = …` can be: text, or perhaps text.
#[diagnostic::on_unimplemented(
    message = "`origin` needs text, not `{Self}`",
    label = "not text, nor an `Option` of it",
    note = "turn it into text, as in `origin = user.id.to_string()`, or name a field that is; an `Option` of text will do"
)]
pub trait ToOrigin {
    fn to_origin(&self) -> Option<Origin>;
}

impl ToOrigin for str {
    fn to_origin(&self) -> Option<Origin> {
        Some(self.into())
    }
}

/// Those that borrow or hold text.
macro_rules! text_origins {
    ($($text:ty),*) => {$(
        impl ToOrigin for $text {
            fn to_origin(&self) -> Option<Origin> {
                Some(Origin::from(&**self))
            }
        }
    )*};
}
text_origins!(String, Box<str>, std::rc::Rc<str>, std::sync::Arc<str>, std::borrow::Cow<'_, str>);

impl<T: ToOrigin + ?Sized> ToOrigin for &T {
    fn to_origin(&self) -> Option<Origin> {
        (**self).to_origin()
    }
}

impl<T: ToOrigin> ToOrigin for Option<T> {
    fn to_origin(&self) -> Option<Origin> {
        self.as_ref().and_then(ToOrigin::to_origin)
    }
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

/// The values of `behavior` and `recovery`.
pub use crate::rule::{BehaviorWord, RecoveryWord as Recovery};

/// `qps` and `rate(..)`.
#[derive(Clone, Copy)]
pub struct FlowWords {
    pub limit: f64,
    pub per_ms: u64,
    pub precision: Option<Precision>,
    pub buckets: Option<u32>,
    pub behavior: Option<BehaviorWord>,
    pub warm_up_ms: Option<u64>,
    pub cold_factor: Option<f64>,
    pub max_wait_ms: Option<u64>,
    pub burst: Option<u32>,
    pub associated: Option<&'static str>,
    pub mode: Mode,
}

#[track_caller]
pub const fn flow(words: FlowWords) -> Rule {
    let rule = checked!(
        rule::FlowWords {
            limit: words.limit,
            per: Some(Duration::from_millis(words.per_ms)),
            behavior: words.behavior,
            warm_up: millis(words.warm_up_ms),
            cold_factor: words.cold_factor,
            max_wait: millis(words.max_wait_ms),
            burst: words.burst,
            precision: words.precision,
            buckets: words.buckets,
            mode: words.mode,
        }
        .numbers()
    );
    Rule::Flow(match words.associated {
        Some(resource) => {
            checked!(rule.check_associated(resource));
            rule.associated(resource)
        }
        None => rule.alone(),
    })
}

const fn millis(given: Option<u64>) -> Option<Duration> {
    match given {
        Some(given) => Some(Duration::from_millis(given)),
        None => None,
    }
}

/// `max_concurrency`.
#[track_caller]
pub const fn isolation(max_concurrency: u32, queue_ms: Option<u64>, mode: Mode) -> Rule {
    let mut rule = IsolationRule::new(max_concurrency);
    if let Some(queue_ms) = queue_ms {
        rule = checked!(rule.with_queue(Duration::from_millis(queue_ms)));
    }
    Rule::Isolation(rule.with_mode(mode))
}

/// A value with a limit of its own.
pub use crate::rule::Except;

/// `hot(..)`.
#[derive(Clone, Copy)]
pub struct HotWords {
    pub name: &'static str,
    pub qps: Option<f64>,
    pub per_ms: Option<u64>,
    pub burst: Option<u32>,
    pub max_concurrency: Option<u32>,
    pub behavior: Option<BehaviorWord>,
    pub max_wait_ms: Option<u64>,
    pub max_keys: Option<u32>,
    pub precision: Option<Precision>,
    pub except: &'static [(Except, f64)],
    pub mode: Mode,
}

#[track_caller]
pub const fn hot(words: HotWords) -> Rule {
    let numbers = checked!(
        rule::HotWords {
            qps: words.qps,
            per: millis(words.per_ms),
            burst: words.burst,
            max_concurrency: words.max_concurrency,
            throttle: matches!(words.behavior, Some(BehaviorWord::Throttle)),
            max_wait: millis(words.max_wait_ms),
            max_keys: words.max_keys,
            precision: words.precision,
            mode: words.mode,
        }
        .numbers()
    );
    checked!(numbers.check_static(words.name, words.except));
    Rule::Hot(numbers.rule_static(words.name, words.except))
}

/// `allow(..)` and `deny(..)`, of which the other one is empty.
#[track_caller]
pub const fn authority(allow: &'static [&'static str], deny: &'static [&'static str], mode: Mode) -> Rule {
    let is_allow_list = deny.is_empty();
    let origins = if is_allow_list { allow } else { deny };
    checked!(AuthorityRule::check(origins));
    Rule::Authority(if is_allow_list {
        AuthorityRule::allow_static(origins, mode)
    } else {
        AuthorityRule::deny_static(origins, mode)
    })
}

/// What all breakers of an attribute share.
#[derive(Clone, Copy)]
pub struct BreakerWords {
    pub min_calls: Option<u32>,
    pub window_ms: Option<u64>,
    pub window_calls: Option<u32>,
    pub open_ms: Option<u64>,
    pub open_max_ms: Option<u64>,
    pub probes: Option<u32>,
    pub recovery: Option<Recovery>,
    pub mode: Mode,
}

/// `slow_rt_ms` and `slow_ratio`.
#[track_caller]
pub const fn slow_ratio(slow_rt_ms: u64, ratio: f64, words: BreakerWords) -> Rule {
    breaker(Strategy::SlowRatio { slow_rt: Duration::from_millis(slow_rt_ms), ratio }, words)
}

/// `error_ratio`.
#[track_caller]
pub const fn error_ratio(ratio: f64, words: BreakerWords) -> Rule {
    breaker(Strategy::ErrorRatio { ratio }, words)
}

/// `error_count`.
#[track_caller]
pub const fn error_count(count: u32, words: BreakerWords) -> Rule {
    breaker(Strategy::ErrorCount { count }, words)
}

#[track_caller]
const fn breaker(strategy: Strategy, words: BreakerWords) -> Rule {
    let words = rule::BreakerWords {
        min_calls: words.min_calls,
        window: millis(words.window_ms),
        buckets: None,
        window_calls: words.window_calls,
        open_for: millis(words.open_ms),
        max_open: millis(words.open_max_ms),
        probes: words.probes,
        recovery: words.recovery,
        ramp: None,
        mode: words.mode,
    };
    Rule::Breaker(checked!(words.rule(strategy)))
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

/// The name of a resource, an entrance or an origin, checked.
#[track_caller]
pub const fn name(name: &'static str) -> &'static str {
    assert!(!name.is_empty(), "a name must not be empty");
    assert!(name.len() <= 1_024, "a name is at most 1024 bytes long");
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
pub struct Answer<A, R>(PhantomData<fn() -> (A, R)>);

impl<A, R> Answer<A, R> {
    /// By value: a future keeps room for what it has borrowed, even when that has moved on.
    pub fn of(answer: A) -> (A, Self) {
        (answer, Self(PhantomData))
    }
}

pub trait ViaFuture {
    fn leap_way(&self) -> AsFuture;
}

impl<A: Future<Output = R>, R> ViaFuture for Answer<A, R> {
    fn leap_way(&self) -> AsFuture {
        AsFuture
    }
}

pub trait ViaValue {
    fn leap_way(&self) -> AsValue;
}

impl<A, R> ViaValue for &Answer<A, R> {
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
