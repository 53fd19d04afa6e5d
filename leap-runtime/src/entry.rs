//! A call that was let through, from its admission to its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::panicking;

use arc_swap::Guard;
use pin_project_lite::pin_project;

use crate::blocked::{Blocked, Refusal};
use crate::check::{Completed, Held, Plan, breaker::Moved};
use crate::clock::Timestamp;
use crate::current::Marks;
use crate::event::{Outcome, Transition};
use crate::resource::{Handle, Resource};
use crate::rule::RuleId;

/// Asks the plan of the resource to let a call of `permits` through.
#[inline]
pub(crate) fn enter(handle: Handle, permits: u32) -> Result<Entry, Blocked> {
    let permits = permits.max(1);
    let resource: &Resource = &handle;
    let (node, environment) = (resource.node(), resource.environment());
    let now = environment.now();
    resource.turn(now);
    let plan = resource.plan();
    let mut held = Held::default();
    let tell = |rule, moved| tell_transition(resource, rule, moved, now);
    match &plan.admit(&mut held, node.passed(), now, permits, || environment.now(), tell) {
        Ok(after) => node.enter(*after, permits, now),
        Err(refusal) => return turn_away(&handle, permits, refusal, now),
    }
    let plan = plan.wants_the_end().then_some(plan);
    Ok(Entry {
        resource: handle,
        plan,
        held,
        entered: now,
        charged: 0,
        permits,
        marks: Marks::INSIDE,
        outcome: None,
        was_panicking: false,
    })
}

/// As [`enter`], for an entry that may be dropped without a word: it is to know a panic of its own.
pub(crate) fn enter_by_name(handle: Handle, permits: u32) -> Result<Entry, Blocked> {
    let mut entry = enter(handle, permits)?;
    entry.was_panicking = panicking();
    Ok(entry)
}

/// Counts a block and tells of it.
#[inline(never)]
fn turn_away(handle: &Handle, permits: u32, refusal: &Refusal<'_>, now: Timestamp) -> Result<Entry, Blocked> {
    handle.node().block(refusal.rule.kind().into(), permits, now);
    if handle.environment().is_observed() {
        tell_block(handle, permits, refusal, now);
    }
    Err(Blocked::new(handle.to_name(), permits, refusal, now))
}

#[cold]
fn tell_block(handle: &Handle, permits: u32, refusal: &Refusal<'_>, now: Timestamp) {
    let blocked = Blocked::new(handle.to_name(), permits, refusal, now);
    handle.environment().tell(|observer| observer.on_block(&blocked));
}

#[cold]
pub(crate) fn tell_transition(resource: &Resource, rule: RuleId, moved: Moved, at: Timestamp) {
    let Moved { from, to, forced, sequence } = moved;
    let transition = Transition { resource: resource.name(), rule, from, to, forced, at, sequence };
    resource.environment().tell(|observer| observer.on_transition(&transition));
}

/// A call that was let through. It is in flight until it is dropped, and ends exactly once, however that happens.
///
/// [`run`](Self::run) and [`run_async`](Self::run_async) say how it ended by the result of the body, [`end`](Self::end)
/// says it outright. An entry that is dropped without a word ends as [`Outcome::Cancelled`], or as
/// [`Outcome::Exception`] when a panic drops it.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Outcome, Registry};
///
/// let registry = Registry::new();
/// let answer: Result<u32, std::num::ParseIntError> = registry.enter("parse")?.run(|| "42".parse());
/// assert_eq!(answer, Ok(42));
///
/// registry.enter("parse")?.end(Outcome::Ignored);
/// drop(registry.enter("parse")?);
///
/// let totals = *registry.stats("parse").unwrap().totals();
/// assert_eq!((totals.success(), totals.ignored(), totals.cancelled()), (1, 1, 1));
/// # Ok::<(), leap_runtime::Blocked>(())
/// ```
#[derive(Debug)]
#[must_use = "a call ends when its entry is dropped"]
pub struct Entry {
    resource: Handle,
    /// Held only where a check wants to be told of the end.
    plan: Option<Guard<Arc<Plan>>>,
    held: Held,
    entered: Timestamp,
    permits: u32,
    /// What the body said of its call.
    marks: Marks,
    charged: u64,
    /// What was said of the end. The pessimistic outcome is the default: success has to be said.
    outcome: Option<Outcome>,
    /// Whether a panic was on its way before the call: it is not the call's own. Only asked where nothing is said.
    was_panicking: bool,
}

impl Entry {
    /// The resource that was entered.
    pub fn resource(&self) -> &str {
        self.resource.name()
    }

    /// The permits that the call holds, charged ones included.
    pub fn permits(&self) -> u64 {
        u64::from(self.permits) + self.charged
    }

    /// Runs the body and ends the call: a success if it returns `Ok`, an exception if it returns `Err` or panics.
    ///
    /// # Errors
    ///
    /// Those of the body.
    #[inline]
    pub fn run<T, E>(mut self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.run_inside(body, of_result)
    }

    /// Runs the body and ends the call as `judge` says of what it returned.
    ///
    /// A panic in `judge` is contained and counts as an exception of the call.
    #[inline]
    pub fn run_with<R>(mut self, body: impl FnOnce() -> R, judge: impl FnOnce(&R) -> Outcome) -> R {
        self.run_judged(body, judge)
    }

    /// Runs the future and ends the call when it is ready: a success with `Ok`, an exception with `Err` or a panic,
    /// cancelled if the future is dropped before.
    pub fn run_async<F, T, E>(self, future: F) -> impl Future<Output = Result<T, E>> + use<F, T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        Guarded::new(self, future, of_result)
    }

    /// Runs the future and ends the call, when it is ready, as `judge` says of its output.
    ///
    /// A panic in `judge` is contained and counts as an exception of the call.
    pub fn run_async_with<F, J>(self, future: F, judge: J) -> impl Future<Output = F::Output> + use<F, J>
    where
        F: Future,
        J: FnOnce(&F::Output) -> Outcome,
    {
        Guarded::new(self, future, judge)
    }

    /// Ends the call with this outcome.
    pub fn end(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    /// Adds `n` permits that are known only now (bytes, tokens), without asking the limits, and returns how many it
    /// added.
    ///
    /// They count as passed at this moment and join the call's permits until its end; isolation, response times and
    /// breakers do not see them. A charge may overdraw a window, which then refuses until it has flowed out. Where a
    /// flow rule stands, at most 2³¹ − 1 are added at once, and fewer where the window of a rule in buckets would come
    /// to hold more than that.
    pub fn charge(&mut self, n: u64) -> u64 {
        let (node, environment) = (self.resource.node(), self.resource.environment());
        let added = self.resource.plan().windows().charge(node.passed(), n, || environment.now());
        node.charge(added, environment.now());
        self.charged += added;
        added
    }

    /// Adds what the body has charged while it ran.
    #[cold]
    fn hear(&mut self) {
        let charged = self.marks.take_charged();
        if charged > 0 {
            self.charge(charged);
        }
    }

    /// Runs the body; the call ends when the entry is dropped, which is to be next: an entry is large to move about.
    ///
    /// `judge` must not panic, nor must anything here that could see `value`: a value whose address is known to others
    /// is copied once more, and just after it was written that is slow.
    #[inline]
    pub(crate) fn run_inside<R>(&mut self, body: impl FnOnce() -> R, judge: impl FnOnce(&R) -> Outcome) -> R {
        // What a panic leaves behind.
        self.outcome = Some(Outcome::Exception);
        let running = Running::new(self);
        let value = body();
        drop(running);
        let judged = judge(&value);
        self.outcome = Some(self.marks.outcome().unwrap_or(judged));
        value
    }

    /// As [`run_inside`](Self::run_inside), but a panic in `judge` is contained and counts as an exception.
    #[inline]
    pub(crate) fn run_judged<R>(&mut self, body: impl FnOnce() -> R, judge: impl FnOnce(&R) -> Outcome) -> R {
        let value = self.run_inside(body, |_| Outcome::Exception);
        self.judge(&value, judge);
        value
    }

    /// Has the call end as the body said, if it did, else as `judge` says.
    fn judge<R>(&mut self, value: &R, judge: impl FnOnce(&R) -> Outcome) {
        self.outcome = self.marks.outcome().or_else(|| {
            let (environment, name) = (self.resource.environment(), self.resource.name());
            environment.contain("outcome predicate", name, || judge(value)).or(Some(Outcome::Exception))
        });
    }
}

#[inline]
fn of_result<T, E>(result: &Result<T, E>) -> Outcome {
    if result.is_ok() { Outcome::Success } else { Outcome::Exception }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        if !self.marks.is_silent() {
            self.hear();
        }
        let outcome = match self.outcome {
            Some(outcome) => outcome,
            None if panicking() && !self.was_panicking => Outcome::Exception,
            None => Outcome::Cancelled,
        };
        let resource: &Resource = &self.resource;
        let node = resource.node();
        let now = resource.environment().now();
        let rt_ns = now.since_ns(self.entered);
        resource.turn(now);
        node.complete(outcome, self.permits(), rt_ns, now);
        if let Some(plan) = &self.plan {
            let completed = match outcome {
                Outcome::Success => Some(Completed { rt_ns, exception: false }),
                Outcome::Exception => Some(Completed { rt_ns, exception: true }),
                Outcome::Ignored | Outcome::Cancelled => None,
            };
            let tell = |rule, moved| tell_transition(resource, rule, moved, now);
            plan.end(&self.held, self.permits, completed, now, tell);
        }
    }
}

/// The stretch during which the body of an entry runs on this thread: it may mark its call meanwhile.
struct Running<'a> {
    entry: &'a mut Entry,
    outer: Marks,
}

impl<'a> Running<'a> {
    #[inline]
    fn new(entry: &'a mut Entry) -> Self {
        let outer = entry.marks.swap();
        Self { entry, outer }
    }
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.entry.marks = self.outer.swap();
    }
}

/// Ends the call of a body that panics while it is polled, although its future may live on.
struct EndsByPanic<'a>(&'a mut Option<Entry>);

impl Drop for EndsByPanic<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            entry.end(Outcome::Exception);
        }
    }
}

pin_project! {
    /// The future of a guarded body, and the entry that ends with it.
    ///
    /// The fields are dropped in this order: what a cancelled body drops is still part of the call.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Guarded<F, J> {
        #[pin]
        future: F,
        judge: Option<J>,
        entry: Option<Entry>,
    }
}

impl<F, J> Guarded<F, J> {
    pub(crate) fn new(mut entry: Entry, future: F, judge: J) -> Self {
        entry.outcome = Some(Outcome::Cancelled);
        Self { future, judge: Some(judge), entry: Some(entry) }
    }
}

impl<F: Future, J: FnOnce(&F::Output) -> Outcome> Future for Guarded<F, J> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let ends_by_panic = EndsByPanic(this.entry);
        let running = ends_by_panic.0.as_mut().map(Running::new);
        let polled = this.future.poll(context);
        drop(running);
        std::mem::forget(ends_by_panic);
        match (polled, &mut *this.entry) {
            (Poll::Pending, Some(entry)) => {
                if !entry.marks.is_silent() {
                    entry.hear();
                }
                Poll::Pending
            }
            (Poll::Ready(value), Some(entry)) => {
                if let Some(judge) = this.judge.take() {
                    entry.judge(&value, judge);
                }
                *this.entry = None;
                Poll::Ready(value)
            }
            // Polled after it was ready: the body has said what it thinks of that.
            (polled, None) => polled,
        }
    }
}
