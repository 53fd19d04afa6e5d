//! A call that was let through, from its admission to its end.

mod begin;
mod guarded;
mod guarded_made;
#[cfg(feature = "stream")]
mod guarded_stream;
mod scene;

use std::future::Future;
use std::thread::panicking;
use std::time::Duration;

pub use self::begin::{Begun, Waiting};
pub(crate) use self::begin::{Entering, begin, begin_with, enter, enter_with, peek, peek_new};
pub use self::guarded::{Calm, Guarded, Judge, is_turned_away, turned_away};
pub use self::guarded_made::GuardedMade;
#[cfg(feature = "stream")]
pub use self::guarded_stream::GuardedStream;
use self::scene::Scene;
use crate::blocked::Blocked;
use crate::check::call::{Ended, Request};
use crate::check::{Held, Plan, breaker::Moved};
use crate::clock::Timestamp;
use crate::current::Marks;
use crate::event::{Outcome, Transition};
use crate::node::Node;
use crate::plans::PlanHold;
use crate::resource::{Handle, Resource};
use crate::rule::RuleId;
use crate::seldom::Seldom;

/// As [`enter_with`], for an entry that may be dropped without a word: it is to know a panic of its own.
pub(crate) fn enter_by_name(handle: Handle, request: &Request<'_>) -> Result<Entry, Blocked> {
    let mut entry =
        if request.is_bare() { enter(handle, request.permits) } else { enter_with(&handle, request) }?;
    entry.was_panicking = panicking();
    Ok(entry)
}

/// As [`begin_with`], for calls by name.
pub(crate) fn begin_by_name(handle: Handle, request: &Request<'_>) -> Begun {
    if request.is_bare() { begin(handle, request.permits) } else { begin_with(&handle, request) }
}

#[cold]
pub(crate) fn tell_transition(resource: &Resource, rule: &RuleId, moved: Moved, at: Timestamp) {
    let Moved { from, to, forced, sequence } = moved;
    let transition =
        Transition { resource: resource.name(), rule: rule.clone(), from, to, forced, at, sequence };
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
    plan: PlanHold,
    held: Held,
    /// Who calls and from where, if that is known.
    scene: Seldom<Scene>,
    entered: Timestamp,
    permits: u32,
    stage: Stage,
    /// What the body said of its call.
    marks: Marks,
    charged: u64,
    /// What was said of the end. The pessimistic outcome is the default: success has to be said.
    outcome: Option<Outcome>,
    /// Whether a panic was on its way before the call: it is not the call's own. Only asked where nothing is said.
    was_panicking: bool,
}

/// How far a call has come that was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// It has passed, and waits for its start.
    Waiting,
    /// It runs, and is counted nowhere: guarding was switched off when it entered.
    Uncounted,
}

impl Entry {
    #[inline]
    fn new(resource: Handle, plan: PlanHold, held: Held, entered: Timestamp, permits: u32) -> Self {
        Self {
            resource,
            plan,
            held,
            scene: Seldom::default(),
            entered,
            permits,
            stage: Stage::Running,
            marks: Marks::INSIDE,
            charged: 0,
            outcome: None,
            was_panicking: false,
        }
    }

    /// Its wait is over: the response time begins.
    fn start(&mut self) {
        let now = self.resource.environment().now();
        self.resource.turn(now);
        self.stage = Stage::Running;
        self.entered = now;
        self.resource.node().start(self.permits, now);
        if let Some(scene) = &*self.scene {
            scene.start(self.permits, now);
        }
    }

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
        Guarded::of_entry(self, future, of_result)
    }

    /// Runs the future and ends the call, when it is ready, as `judge` says of its output.
    ///
    /// A panic in `judge` is contained and counts as an exception of the call.
    pub fn run_async_with<F, J>(self, future: F, judge: J) -> impl Future<Output = F::Output> + use<F, J>
    where
        F: Future,
        J: FnOnce(&F::Output) -> Outcome,
    {
        Guarded::of_entry(self, future, judge)
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
    /// to hold more than that. Nothing is added to a call that entered while guarding was [off](crate::Registry::turn_off).
    pub fn charge(&mut self, n: u64) -> u64 {
        if self.stage == Stage::Uncounted {
            return 0;
        }
        let (node, environment) = (self.resource.node(), self.resource.environment());
        let added = self.resource.plan().flow().charge(node.passed(), n, &|| environment.now());
        // First, whatever becomes of the rest: they have passed.
        self.charged += added;
        let now = environment.now();
        node.charge(added, now);
        if let Some(scene) = &*self.scene {
            scene.charge(added, now);
        }
        if self.held.has_more()
            && let Some(plan) = self.resource.held(&self.plan)
        {
            self.held.charge_shadows(plan, added, &|| environment.now());
        }
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
    /// is copied once more, and just after it was written that is slow. So the body's context is left by the end of the call.
    #[inline]
    pub(crate) fn run_inside<R>(&mut self, body: impl FnOnce() -> R, judge: impl FnOnce(&R) -> Outcome) -> R {
        // What a panic leaves behind.
        self.outcome = Some(Outcome::Exception);
        if let Some(scene) = &mut *self.scene {
            scene.enter();
        }
        let marking = Marking::new(&mut self.marks);
        let value = body();
        drop(marking);
        let judged = judge(&value);
        self.outcome = Some(self.marks.outcome().unwrap_or(judged));
        value
    }

    /// As [`run_inside`](Self::run_inside), but a panic in `judge` is contained and counts as an exception.
    #[inline]
    pub(crate) fn run_judged<R>(&mut self, body: impl FnOnce() -> R, judge: impl Judge<R>) -> R {
        let value = self.run_inside(body, |_| Outcome::Exception);
        if let Some(scene) = &mut *self.scene {
            scene.leave();
        }
        judge.settle(self, &value);
        value
    }

    /// Whether guarding was on when it entered.
    pub(crate) fn is_counted(&self) -> bool {
        self.stage != Stage::Uncounted
    }

    /// Has the call end as `judge` says, who is told what the body said. A panic in it counts as an exception.
    pub(crate) fn settle(&mut self, judge: impl FnOnce(Option<Outcome>) -> Outcome) {
        let (environment, name, said) =
            (self.resource.environment(), self.resource.name(), self.marks.outcome());
        let judged = environment.contain("outcome predicate", &**name, || judge(said));
        self.outcome = judged.or(Some(Outcome::Exception));
    }
}

#[inline]
fn of_result<T, E>(result: &Result<T, E>) -> Outcome {
    if result.is_ok() { Outcome::Success } else { Outcome::Exception }
}

impl Entry {
    /// Counts the end of the call, which has run or was dropped before its start, and tells everybody who wants to know.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the rest of the one function that nearly all calls end by")]
    fn finish(&mut self, has_run: bool, outcome: Outcome, rt_ns: u64, now: Timestamp) {
        let resource: &Resource = &self.resource;
        let node = resource.node();
        let permits = u64::from(self.permits) + self.charged;
        resource.turn(now);
        node.complete(outcome, permits, rt_ns, now);
        if let Some(scene) = &mut *self.scene {
            scene.end(outcome, permits, rt_ns, now);
        }
        let plan = resource.held(&self.plan);
        if !has_run {
            cancel_start(node, self.permits, &self.scene, plan, &mut self.held);
        }
        if let Some(plan) = plan {
            let tell = |rule: &RuleId, moved| tell_transition(resource, rule, moved, now);
            plan.end(&mut self.held, self.permits, outcome, rt_ns, now, tell);
            if self.held.has_more() || !plan.is_plain() {
                end_fully(resource, plan, &mut self.held, permits, outcome, rt_ns, now);
            }
        }
    }

    /// What was said of the end, or is to be made of a call of which nothing was said.
    #[inline]
    fn outcome(&self) -> Outcome {
        match self.outcome {
            Some(outcome) => outcome,
            None if panicking() && !self.was_panicking => Outcome::Exception,
            None => Outcome::Cancelled,
        }
    }

    /// The end of a call that did not run, or that nobody counts, or of which no clock tells when it ended.
    #[cold]
    #[inline(never)]
    fn finish_aside(&mut self, now: Timestamp) {
        let outcome = match self.stage {
            Stage::Uncounted => {
                if let Some(scene) = &mut *self.scene {
                    scene.leave();
                }
                return;
            }
            // Hardly anything was said of it, and it has had no time to answer in.
            Stage::Waiting => self.outcome.unwrap_or(Outcome::Cancelled),
            Stage::Running => self.outcome(),
        };
        self.finish(self.stage == Stage::Running, outcome, 0, now);
    }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        self.conclude();
    }
}

impl Entry {
    /// The call ends. Out of line: each guarded function has a copy of what is not.
    #[inline(never)]
    fn conclude(&mut self) {
        let mut ending = Ending { at: self.entered, entry: self };
        if !ending.entry.marks.is_silent() {
            ending.entry.hear();
        }
        if ending.entry.stage != Stage::Running {
            return ending.read_if_counted();
        }
        let now = ending.entry.resource.environment().now();
        std::mem::forget(ending);
        self.finish(true, self.outcome(), now.since_ns(self.entered), now);
    }
}

/// The end of a call, at the latest moment that is known of it: if the clock panics, nothing of the call is to stay. Forgotten
/// where the call ends as nearly all do.
struct Ending<'a> {
    entry: &'a mut Entry,
    at: Timestamp,
}

impl Ending<'_> {
    /// Of a call that nobody counts no clock is asked.
    #[cold]
    fn read_if_counted(&mut self) {
        if self.entry.is_counted() {
            self.at = self.entry.resource.environment().now();
        }
    }
}

impl Drop for Ending<'_> {
    #[cold]
    fn drop(&mut self) {
        self.entry.finish_aside(self.at);
    }
}

/// The end of a call that went the long way.
#[cold]
#[inline(never)]
fn end_fully(
    resource: &Resource,
    plan: &Plan,
    held: &mut Held,
    permits: u64,
    outcome: Outcome,
    rt_ns: u64,
    now: Timestamp,
) {
    held.end_more(plan, outcome, rt_ns, now, &mut |rule, moved| tell_transition(resource, rule, moved, now));
    if let customs @ [_, ..] = plan.customs() {
        let rt = Duration::from_nanos(rt_ns);
        let ended = Ended { resource: resource.name(), permits, outcome: Some(outcome), rt };
        begin::tell_customs(resource.environment(), customs, &ended);
    }
}

/// An entry of `n` permits is dropped before its start.
#[cold]
#[inline(never)]
fn cancel_start(node: &Node, n: u32, scene: &Seldom<Scene>, plan: Option<&Plan>, held: &mut Held) {
    node.stop_waiting(n);
    if let Some(scene) = &**scene {
        scene.stop_waiting(n);
    }
    if let Some(plan) = plan {
        held.cancel_start(plan);
    }
}

/// The stretch during which the body of an entry runs on this thread: it may mark its call meanwhile.
struct Marking<'a> {
    marks: &'a mut Marks,
    outer: Marks,
}

impl<'a> Marking<'a> {
    #[inline]
    fn new(marks: &'a mut Marks) -> Self {
        Self { outer: marks.swap(), marks }
    }
}

impl Drop for Marking<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.marks = self.outer.swap();
    }
}
