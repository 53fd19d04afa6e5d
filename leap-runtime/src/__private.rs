//! What an expansion of `#[guarded]` calls. Nothing in here is for anyone else, and all of it may change.
#![expect(missing_debug_implementations, reason = "nothing in here is held by anybody")]

use std::future::{Future, Pending};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

#[cfg(feature = "stream")]
use std::{
    pin::Pin,
    task::{Context, Poll},
};

#[cfg(feature = "stream")]
use futures_core::Stream;

use crate::rule::{self, AuthorityRule, IsolationRule, Strategy};

pub use std::any::type_name_of_val;
pub use std::boxed::Box;
pub use std::future::Future as Awaited;
pub use std::option::Option::{self, None, Some};
pub use std::primitive::{f64, str, u32};
pub use std::result::Result::{Err, Ok};

pub use crate::blocked::{Blocked, FromBlocked as Blockable};
pub use crate::callsite::CallSite;
#[cfg(feature = "catalog")]
pub use crate::catalog::{Listed, Place, submit};
pub use crate::check::call::Request;
pub use crate::entry::GuardedMade;
#[cfg(feature = "stream")]
pub use crate::entry::GuardedStream;
pub use crate::entry::{Begun, Calm, Entry, Guarded, Judge, Waiting, is_turned_away, turned_away};
pub use crate::event::Outcome;
pub use crate::key::{Key, ToKey as Keyed};
pub use crate::rule::{Mode, Precision, Rule};

/// Lists a call site in the catalogue, where there is one.
#[cfg(feature = "catalog")]
#[doc(hidden)]
#[macro_export]
macro_rules! __leap_catalogued {
    ($($listed:tt)*) => {
        $crate::__private::submit! { $($listed)* }
    };
}

/// Lists a call site in the catalogue, where there is one.
#[cfg(not(feature = "catalog"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __leap_catalogued {
    ($($listed:tt)*) => {};
}

pub use crate::__leap_catalogued as catalogued;

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
pub fn run_async<F, J>(begun: Begun, future: F, judge: J) -> Guarded<F, Calm<J>>
where
    F: Future,
    J: FnOnce(&F::Output) -> Outcome,
{
    Guarded::new(begun, future, Calm(judge))
}

/// As [`run_async`], for a `judge` that asks the user's predicates: a panic in it is contained and counts as an exception.
#[inline]
pub fn run_async_judged<F, J>(begun: Begun, future: F, judge: J) -> Guarded<F, J>
where
    F: Future,
    J: FnOnce(&F::Output) -> Outcome,
{
    Guarded::new(begun, future, judge)
}

/// As [`run_judged`], and notes whether the call failed.
#[inline]
pub fn run_noted<R>(
    entry: &mut Entry,
    failed: &Failed,
    body: impl FnOnce() -> R,
    judge: impl FnOnce(&R) -> Outcome,
) -> R {
    entry.run_judged(body, Noting { judge, failed })
}

/// As [`run_async`], and notes whether the call failed.
#[inline]
pub fn run_async_noted<F, J>(begun: Begun, failed: &Failed, future: F, judge: J) -> Guarded<F, Noting<'_, J>>
where
    F: Future,
    J: FnOnce(&F::Output) -> Outcome,
{
    Guarded::new(begun, future, Noting { judge, failed })
}

/// A judge whose words are noted.
pub struct Noting<'a, J> {
    judge: J,
    failed: &'a Failed,
}

impl<R, J: FnOnce(&R) -> Outcome> Judge<R> for Noting<'_, J> {
    /// Also if it is not counted: what becomes of an error does not depend on whether guarding is on.
    fn settle(self, entry: &mut Entry, value: &R) {
        entry.settle(|said| {
            let outcome = said.unwrap_or_else(|| (self.judge)(value));
            let noted = if outcome == Outcome::Exception { FAILED } else { FINE };
            self.failed.0.store(noted, Ordering::Relaxed);
            outcome
        });
    }
}

/// Whether a call ended as an exception, so that its fallback is to answer. Nobody says so of a blocked one, or where a
/// predicate has panicked: an `Err` is all that is known then.
pub struct Failed(AtomicU8);

const UNKNOWN: u8 = 0;
const FINE: u8 = 1;
const FAILED: u8 = 2;

impl Failed {
    #[expect(clippy::new_without_default, reason = "made by expansions only")]
    pub fn new() -> Self {
        Self(AtomicU8::new(UNKNOWN))
    }

    /// Has what a blocked call gives be returned as it is.
    pub fn spare(&self) {
        self.0.store(FINE, Ordering::Relaxed);
    }
}

/// The error that the fallback is given in place of `value`, if the call failed and returned one.
///
/// # Errors
///
/// That error.
pub fn error_in<R: IntoError>(failed: &Failed, value: R) -> Result<R, R::Error> {
    if failed.0.load(Ordering::Relaxed) == FINE { Ok(value) } else { value.into_error() }
}

/// What `fallback_on = error` takes the error out of.
#[diagnostic::on_unimplemented(
    message = "`fallback_on` needs a function that returns a `Result`, not `{Self}`",
    label = "there is no error in what the function returns",
    note = "leave `fallback_on` out: the `fallback` then answers for blocked calls"
)]
pub trait IntoError: Sized {
    type Error;

    fn into_error(self) -> Result<Self, Self::Error>;
}

impl<T, E> IntoError for Result<T, E> {
    type Error = E;

    fn into_error(self) -> Result<Self, E> {
        match self {
            Err(error) => Err(error),
            value => Ok(value),
        }
    }
}

/// Asks whether an argument is still there after the body had it.
pub fn kept<T>(_: &T)
where
    Fallback: Wants<T>,
{
}

/// What answers in place of a function.
pub struct Fallback;

/// An argument that a fallback can have after the body had it.
#[diagnostic::on_unimplemented(
    message = "the body uses up this argument, so the `fallback` cannot have it afterwards",
    label = "`{T}` is not `Copy`",
    note = "take it by reference, or name in the `fallback` only what it needs: `fallback = f(id)`"
)]
pub trait Wants<T> {}

#[diagnostic::do_not_recommend]
impl<T: Copy> Wants<T> for Fallback {}

/// Whether the fallback `F` takes as many values as `A` has, found by type. The compiler has its own words for one that does
/// not; these say what to write instead.
pub struct Taking<'a, F, A>(PhantomData<(&'a F, A)>);

pub fn taking<F, A>(_: &F) -> Taking<'_, F, A> {
    Taking(PhantomData)
}

pub trait ViaFit {
    fn leap_fits(&self) {}
}

pub trait ViaMisfit<F> {
    fn leap_fits(&self)
    where
        F: TakesEveryArgument,
    {
    }
}

impl<F, A> ViaMisfit<F> for &Taking<'_, F, A> {}

#[diagnostic::on_unimplemented(
    message = "this fallback does not take what it would be given",
    label = "given every argument, and then why it is asked",
    note = "a fallback takes the arguments of the function, `self` first, and then the `Blocked`, or with \
            `fallback_on` the error",
    note = "where it takes less, write the call as it is meant: `fallback = f(sku)`",
    note = "and where it is a value, put it in braces: `fallback = {{ Reply::Busy }}`"
)]
pub trait TakesEveryArgument {}

macro_rules! fits {
    ($($A:ident)*) => {
        impl<T, R, $($A),*> ViaFit for Taking<'_, T, ($($A,)*)> where T: FnOnce($($A),*) -> R {}
    };
}
fits!(A);
fits!(A B);
fits!(A B C);
fits!(A B C D);
fits!(A B C D E);
fits!(A B C D E F);
fits!(A B C D E F G);
fits!(A B C D E F G H);
fits!(A B C D E F G H I);
fits!(A B C D E F G H I J);
fits!(A B C D E F G H I J K);
fits!(A B C D E F G H I J K L);

/// Calls a fallback that is a closure. As an argument beside its own, it knows their types.
pub fn answer<A, R>(fallback: impl FnOnce(A) -> R, arguments: A) -> R {
    fallback(arguments)
}

/// Has the body of a function make the future or the stream that it returns.
pub fn made<R>(body: impl FnOnce() -> R) -> R {
    body()
}

/// As [`run_async_judged`], for a future that the body has made, whose call `begin` makes when it is first polled. `answer`
/// gives another in its place, if the call was turned away.
pub fn run_made<B, F, J, A, O>(begin: B, future: F, judge: J, answer: A) -> GuardedMade<B, F, J, A, O>
where
    B: FnOnce() -> Begun,
    F: Future,
    J: FnOnce(&F::Output) -> Outcome,
    A: FnOnce(Blocked) -> O,
    O: Future<Output = F::Output>,
{
    GuardedMade::new(begin, future, judge, answer)
}

/// The same, and notes whether the call failed.
pub fn run_made_noted<B, F, J, A, O>(
    begin: B,
    failed: &Failed,
    future: F,
    judge: J,
    answer: A,
) -> GuardedMade<B, F, Noting<'_, J>, A, O>
where
    B: FnOnce() -> Begun,
    F: Future,
    J: FnOnce(&F::Output) -> Outcome,
    A: FnOnce(Blocked) -> O,
    O: Future<Output = F::Output>,
{
    GuardedMade::new(begin, future, Noting { judge, failed }, answer)
}

/// As [`run_async`], for a stream, whose call `begin` makes when it is first polled. `answer` gives another in its place, if
/// the call was turned away.
#[cfg(feature = "stream")]
pub fn run_stream<B, S, J, A, O>(begin: B, stream: S, judge: J, answer: A) -> GuardedStream<B, S, J, A, O>
where
    B: FnOnce() -> Begun,
    S: Stream,
    J: FnMut(&S::Item) -> Outcome,
    A: FnOnce(Blocked) -> O,
    O: Stream<Item = S::Item>,
{
    GuardedStream::new(begin, stream, judge, answer)
}

/// What the fallback of a stream gives.
#[cfg(feature = "stream")]
pub fn stream<S: Stream>(stream: S) -> S {
    stream
}

#[cfg(not(feature = "stream"))]
pub fn stream<S>(_: S) {}

/// A stream of one item.
#[cfg(feature = "stream")]
pub fn once<T>(item: T) -> Once<T> {
    Once { item: Some(item) }
}

#[cfg(feature = "stream")]
pin_project_lite::pin_project! {
    pub struct Once<T> {
        item: Option<T>,
    }
}

#[cfg(feature = "stream")]
impl<T> Stream for Once<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Ready(self.project().item.take())
    }
}

/// Says which feature is missing.
#[cfg(not(feature = "stream"))]
pub fn run_stream<S: NeedsFeatureStream>(
    _: impl FnOnce() -> Begun,
    stream: S,
    _: impl FnMut(&S) -> Outcome,
    _: impl FnOnce(Blocked),
) -> S {
    stream
}

#[cfg(not(feature = "stream"))]
#[diagnostic::on_unimplemented(
    message = "`#[guarded]` on a function that returns a stream needs the feature `stream` of leap-runtime",
    label = "a stream",
    note = "write `leap-runtime = {{ version = \"…\", features = [\"stream\"] }}` in `Cargo.toml`"
)]
pub trait NeedsFeatureStream {}

#[cfg(not(feature = "stream"))]
pub fn once<T>(_: T) {}

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
/// The method is called on `&&Judged`, where it is looked for on `&Judged`, then on `&&Judged`, and last on `Judged`: so a
/// `Result` is found under whatever name, then a future, then everything else.
pub struct Judged<'a, T>(pub &'a T);

pub trait ViaResult {
    fn leap_outcome(&self) -> Outcome;

    fn leap_outcome_or_error(&self) -> Outcome {
        self.leap_outcome()
    }
}

impl<T, E> ViaResult for &Judged<'_, Result<T, E>> {
    fn leap_outcome(&self) -> Outcome {
        if self.0.is_ok() { Outcome::Success } else { Outcome::Exception }
    }
}

pub trait ViaUnseenFuture {
    #[deprecated(
        note = "the attribute does not see that this type is a future, so the call ends when the future is made, not when it \
                is ready; return `impl Future`, `Pin<Box<dyn Future>>` or `BoxFuture`, or guard the function that runs; \
                `#[allow(deprecated)]`, if only the making is meant"
    )]
    fn leap_outcome(&self) -> Outcome {
        Outcome::Success
    }

    #[deprecated(
        note = "the attribute does not see that this type is a future, so its breaker hears of none of its errors; return \
                `impl Future`, `Pin<Box<dyn Future>>` or `BoxFuture`, or guard the function that runs"
    )]
    fn leap_outcome_or_error(&self) -> Outcome {
        Outcome::Success
    }
}

impl<T: Future> ViaUnseenFuture for &&Judged<'_, T> {}

pub trait ViaUnseenStream {
    #[deprecated(
        note = "the attribute does not see that this type is a stream, so the call ends when the stream is made, not when it \
                ends; return `impl Stream`, `Pin<Box<dyn Stream>>` or `BoxStream`; `#[allow(deprecated)]`, if only the making \
                is meant"
    )]
    fn leap_outcome(&self) -> Outcome {
        Outcome::Success
    }

    #[deprecated(
        note = "the attribute does not see that this type is a stream, so its breaker hears of none of its errors; return \
                `impl Stream`, `Pin<Box<dyn Stream>>` or `BoxStream`"
    )]
    fn leap_outcome_or_error(&self) -> Outcome {
        Outcome::Success
    }
}

#[cfg(feature = "stream")]
impl<T: Stream> ViaUnseenStream for &&Judged<'_, T> {}

pub trait ViaAny {
    fn leap_outcome(&self) -> Outcome {
        Outcome::Success
    }

    #[deprecated(
        note = "this function has a breaker on errors, and returns no `Result`: only a panic counts, so it will not open; say \
                what is an error by `err_if = predicate`"
    )]
    fn leap_outcome_or_error(&self) -> Outcome {
        Outcome::Success
    }
}

impl<T> ViaAny for Judged<'_, T> {}

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

/// What the fallback of an async function gave, whose type is to say whether it is to be awaited: if it is a future of what
/// the function returns.
pub struct Answer<A, R>(PhantomData<fn() -> (A, R)>);

impl<A, R> Answer<A, R> {
    /// By value: a future keeps room for what it has borrowed, even when that has moved on.
    pub fn of(answer: A) -> (A, Self) {
        (answer, Self(PhantomData))
    }
}

/// The same where what the function returns cannot be written: any future is awaited.
pub struct AnswerOfAny<A>(PhantomData<fn() -> A>);

impl<A> AnswerOfAny<A> {
    pub fn of(answer: A) -> (A, Self) {
        (answer, Self(PhantomData))
    }
}

pub trait ViaFuture {
    fn leap_way(&self) -> AsFuture {
        AsFuture
    }
}

impl<A: Future<Output = R>, R> ViaFuture for Answer<A, R> {}

impl<A: Future> ViaFuture for AnswerOfAny<A> {}

pub trait ViaValue {
    fn leap_way(&self) -> AsValue {
        AsValue
    }
}

impl<A, R> ViaValue for &Answer<A, R> {}

impl<A> ViaValue for &AnswerOfAny<A> {}

/// The answer is awaited.
#[derive(Clone, Copy)]
pub struct AsFuture;

/// The answer is what the function returns.
#[derive(Clone, Copy)]
pub struct AsValue;

impl AsFuture {
    /// The value and the future that an answer is: one of them. They go separate ways, so that a value is nothing that is
    /// kept while a future is awaited: it need not be `Send`.
    pub fn split<A: Future>(self, answer: A) -> (Option<A::Output>, Option<A>) {
        (None, Some(answer))
    }

    pub fn is_value(self) -> bool {
        false
    }
}

impl AsValue {
    pub fn split<A>(self, answer: A) -> (Option<A>, Option<Pending<A>>) {
        (Some(answer), None)
    }

    pub fn is_value(self) -> bool {
        true
    }
}

/// That one of the two which it is.
pub fn one<T>(value: Option<T>) -> T {
    value.expect("asked of the one that there is")
}

/// That one of the two which it is not.
pub fn no_value<T>(_: Option<T>) {}
