//! A call that was let through, from its admission to its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread::panicking;

use arc_swap::Guard;
use pin_project_lite::pin_project;

use crate::blocked::{Blocked, Refusal};
use crate::check::flow::windows::WINDOW_MAX;
use crate::check::{Completed, Held, Plan, breaker::Moved};
use crate::clock::Timestamp;
use crate::current::Marks;
use crate::event::{Outcome, Transition};
use crate::resource::{Handle, Resource};
use crate::rule::RuleId;

/// Asks the plan of `resource` to let a call of `permits` through.
#[inline]
pub(crate) fn enter(resource: Handle, permits: u32) -> Result<Entry, Blocked> {
    let permits = permits.max(1);
    let environment = resource.environment();
    let now = environment.now();
    resource.node().turn(now);
    let plan = resource.plan();
    let tell = |rule, moved| tell_transition(&resource, rule, moved, now);
    match plan.admit(resource.node().passed(), now, permits, || environment.now(), tell) {
        Ok((held, after)) => {
            resource.node().enter(after, permits, now);
            let plan = plan.wants_the_end().then_some(plan);
            let was_panicking = panicking();
            Ok(Entry { resource, plan, held, entered: now, permits, charged: 0, outcome: None, marked: None, was_panicking })
        }
        Err(refusal) => {
            let is_worn_out = plan.windows().is_worn_out(now);
            drop(plan);
            if is_worn_out {
                resource.renew(now);
                return enter(resource, permits);
            }
            Err(turn_away(&resource, permits, &refusal, now))
        }
    }
}

#[cold]
fn turn_away(resource: &Handle, permits: u32, refusal: &Refusal, now: Timestamp) -> Blocked {
    resource.node().block(refusal.rule.kind().into(), permits, now);
    let blocked = Blocked::new(resource.to_name(), permits, refusal, now);
    resource.environment().tell(|observer| observer.on_block(&blocked));
    blocked
}

#[cold]
fn tell_transition(resource: &Resource, rule: RuleId, (from, to): Moved, at: Timestamp) {
    let transition = Transition { resource: resource.name(), rule, from, to, at };
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
    charged: u64,
    /// What was said of the end. The pessimistic outcome is the default: success has to be said.
    outcome: Option<Outcome>,
    /// What the body said of itself.
    marked: Option<Outcome>,
    /// A panic that was on its way before the call is not the call's own.
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
    pub fn run<T, E>(self, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.run_with(body, of_result)
    }

    /// Runs the body and ends the call as `judge` says of what it returned.
    ///
    /// A panic in `judge` is contained and counts as an exception of the call.
    pub fn run_with<R>(self, body: impl FnOnce() -> R, judge: impl FnOnce(&R) -> Outcome) -> R {
        let mut slot = Some(self);
        let running = Running::new(&mut slot);
        let value = body();
        running.returned();
        if let Some(entry) = slot {
            entry.end_as(&value, judge);
        }
        value
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
    /// breakers do not see them. A charge may overdraw a window, which then refuses until it has flowed out. Fewer
    /// than `n` are added where a window, or the last minute, would come to hold more than 2³¹ − 1.
    pub fn charge(&mut self, n: u64) -> u64 {
        let (node, environment) = (self.resource.node(), self.resource.environment());
        let now = environment.now();
        let room = WINDOW_MAX.saturating_sub(node.passed_in_minute(now));
        let added = self.resource.plan().windows().charge(node.passed(), n, room, || environment.now());
        node.charge(added);
        self.charged += added;
        added
    }

    /// Ends the call as `judge` says, unless the body had the last word.
    #[inline]
    fn end_as<R>(mut self, value: &R, judge: impl FnOnce(&R) -> Outcome) {
        let resource = &self.resource;
        self.outcome = self.marked.or_else(|| {
            let outcome = resource.environment().contain("outcome predicate", resource.name(), || judge(value));
            Some(outcome.unwrap_or(Outcome::Exception))
        });
    }
}

fn of_result<T, E>(result: &Result<T, E>) -> Outcome {
    if result.is_ok() { Outcome::Success } else { Outcome::Exception }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        let outcome = match self.outcome {
            Some(outcome) => outcome,
            None if panicking() && !self.was_panicking => Outcome::Exception,
            None => Outcome::Cancelled,
        };
        let now = self.resource.environment().now();
        let rt_ns = now.since_ns(self.entered);
        self.resource.node().turn(now);
        self.resource.node().complete(outcome, self.permits(), rt_ns, now);
        if let Some(plan) = &self.plan {
            let completed = match outcome {
                Outcome::Success => Some(Completed { rt_ns, exception: false }),
                Outcome::Exception => Some(Completed { rt_ns, exception: true }),
                Outcome::Ignored | Outcome::Cancelled => None,
            };
            let tell = |rule, moved| tell_transition(&self.resource, rule, moved, now);
            plan.end(&self.held, self.permits, completed, now, tell);
        }
    }
}

/// The stretch during which the body of an entry runs on this thread: it may mark its call meanwhile.
struct Running<'a> {
    slot: &'a mut Option<Entry>,
    outer: Marks,
    returned: bool,
}

impl<'a> Running<'a> {
    #[inline]
    fn new(slot: &'a mut Option<Entry>) -> Self {
        let marked = slot.as_ref().and_then(|entry| entry.marked);
        let outer = Marks::inside(marked).swap();
        Self { slot, outer, returned: false }
    }

    /// The body returned, or its future waits.
    #[inline]
    fn returned(mut self) {
        self.returned = true;
    }
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        let marks = self.outer.swap();
        if let Some(entry) = self.slot {
            entry.marked = marks.outcome;
            if marks.charged > 0 {
                entry.charge(marks.charged);
            }
        }
        if !self.returned {
            // The body panicked: the call ends here, as an exception, although its future may live on.
            if let Some(entry) = self.slot.take() {
                entry.end(Outcome::Exception);
            }
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
    pub(crate) fn new(entry: Entry, future: F, judge: J) -> Self {
        Self { future, judge: Some(judge), entry: Some(entry) }
    }
}

impl<F: Future, J: FnOnce(&F::Output) -> Outcome> Future for Guarded<F, J> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let running = Running::new(this.entry);
        let polled = this.future.poll(context);
        running.returned();
        let value = ready!(polled);
        if let (Some(entry), Some(judge)) = (this.entry.take(), this.judge.take()) {
            entry.end_as(&value, judge);
        }
        Poll::Ready(value)
    }
}
