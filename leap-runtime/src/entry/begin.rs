//! The way in of a call: asked, let through, turned away, or made to wait first.
//!
//! A check never sleeps. What it says about waiting is acted on here: a sync caller is parked, an async one polls
//! [`Waiting`]. A call waits for one of three things.
//!
//! - Its *start*: it has passed, its windows have counted it, and it is paced. Nothing is asked again.
//! - *Permits* of the isolation, or a *place* in the next window: it has passed nothing. What it had taken otherwise has
//!   been given back, and when its wait is over it is asked again from the top, by a fresh clock reading, with what it
//!   waited for in its hands.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll, ready};
use std::thread::panicking;
use std::time::Duration;

use super::scene::{self, Scene};
use super::{Entry, Stage, tell_transition};
use crate::blocked::{Blocked, By, Name, Refusal};
use crate::check::breaker::Moved;
use crate::check::call::{Call, Ended, OwnedRequest, Request, Verdict};
use crate::check::custom::Custom;
use crate::check::flow::windows::Place;
use crate::check::isolation::Ticket;
use crate::check::{Admitted, Agreed, Around, Arrival, Doubt, Hand, Held, Plan, Stop, overloaded};
use crate::clock::Timestamp;
use crate::context::Context;
use crate::environment::Environment;
use crate::plans::PlanHold;
use crate::resource::{Handle, Resource};
use crate::rule::{RuleId, RuleKind};
use crate::timer::Alarm;
use crate::window::Answer as WindowAnswer;

/// How far a call has come that asked to be let through, and that of a future.
#[derive(Debug)]
pub enum Begun {
    /// It may run.
    Passed(Entry),
    /// It may not.
    Blocked(Blocked),
    /// It has to wait before that is known, or before it may run.
    Waiting(Box<Waiting>),
    /// There is none any more.
    Over,
}

/// Who asks, and so how it can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// Its thread can be parked.
    Sync,
    /// It needs a timer.
    Async,
}

/// What a caller is told about a call: each kind of answer is written where it is to be, because an entry and a block are
/// large to move about.
trait Answer: Sized {
    fn passed(entry: Entry) -> Self;
    fn blocked(blocked: Blocked) -> Self;
    /// What the long way makes of the call.
    fn fully(handle: &Handle, request: &Request<'static>, now: Timestamp) -> Self;
}

impl Answer for Result<Entry, Blocked> {
    #[inline]
    fn passed(entry: Entry) -> Self {
        Ok(entry)
    }

    #[inline]
    fn blocked(blocked: Blocked) -> Self {
        Err(blocked)
    }

    #[inline(never)]
    fn fully(handle: &Handle, request: &Request<'static>, now: Timestamp) -> Self {
        settle(begin_at(handle, request, Caller::Sync, Hand::Empty, now))
    }
}

impl Answer for Begun {
    #[inline]
    fn passed(entry: Entry) -> Self {
        Self::Passed(entry)
    }

    #[inline]
    fn blocked(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }

    #[inline(never)]
    fn fully(handle: &Handle, request: &Request<'static>, now: Timestamp) -> Self {
        begin_at(handle, request, Caller::Async, Hand::Empty, now)
    }
}

/// Lets a call of `permits` through by the short way, if nothing about it asks for the whole one.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the whole of the two functions that it is for")]
fn shortly<A: Answer>(handle: Handle, permits: u32) -> A {
    let permits = permits.max(1);
    let resource: &Resource = &handle;
    let (node, environment) = (resource.node(), resource.environment());
    let now = environment.now();
    resource.turn(now);
    if Context::is_any() {
        return A::fully(&handle, &Request::of(permits), now);
    }
    if permits == 1
        && let Some((number, plan)) = resource.lasting()
        && plan.is_simple()
    {
        return match plan.try_admit_one(node.passed(), now, &|| environment.now()) {
            Ok(Agreed { after, generations }) => {
                match after {
                    Some(after) => node.enter(after, 1, now),
                    None => node.pass(1, now),
                }
                let hold = if plan.wants_the_end() { number.into() } else { PlanHold::default() };
                A::passed(Entry::new(handle, hold, generations.into(), now, 1))
            }
            Err(Doubt::Full(answer)) => turn_away_one(&handle, plan, answer, now),
            Err(Doubt::Other) => ask_again(handle, number.into(), 1, now),
        };
    }
    if resource.is_idle() {
        node.pass(permits, now);
        return A::passed(Entry::new(handle, PlanHold::default(), Held::default(), now, permits));
    }
    ask(handle, permits, now)
}

/// The rest of the short way: several permits or limits, watchers, a plan that does not last; or what needs the whole way.
#[inline(never)]
fn ask<A: Answer>(handle: Handle, permits: u32, now: Timestamp) -> A {
    let resource: &Resource = &handle;
    let (node, environment) = (resource.node(), resource.environment());
    let hold = resource.hold();
    let plan = resource.held(&hold).expect("it is held");
    if resource.is_off() || !plan.is_plain() {
        return A::fully(&handle, &Request::of(permits), now);
    }
    match plan.try_admit(node.passed(), now, permits, &|| environment.now()) {
        Ok(Agreed { after, generations }) => {
            match after {
                Some(after) => node.enter(after, permits, now),
                None => node.pass(permits, now),
            }
            let hold = if plan.wants_the_end() { hold } else { PlanHold::default() };
            A::passed(Entry::new(handle, hold, generations.into(), now, permits))
        }
        Err(Doubt::Full((first, answer))) => turn_away_full(&handle, plan, first, answer, permits, now),
        Err(Doubt::Other) => ask_again(handle, hold, permits, now),
    }
}

/// As [`ask`], whatever is to be done about the call.
#[cold]
#[inline(never)]
fn ask_again<A: Answer>(handle: Handle, hold: PlanHold, permits: u32, now: Timestamp) -> A {
    let resource: &Resource = &handle;
    let (node, environment) = (resource.node(), resource.environment());
    let plan = resource.held(&hold).expect("it is asked");
    let tell = |rule: &RuleId, moved| tell_transition(resource, rule, moved, now);
    match plan.admit(node.passed(), now, permits, &|| environment.now(), tell) {
        Ok((after, taken)) => {
            node.enter(after, permits, now);
            A::passed(Entry::new(handle, hold, taken, now, permits))
        }
        Err(refusal) => turn_away(&handle, permits, &refusal, now),
    }
}

/// Asks the plan of the resource to let a call of `permits` through, and parks the thread where it has to wait.
pub(crate) fn enter(handle: Handle, permits: u32) -> Result<Entry, Blocked> {
    shortly(handle, permits)
}

/// As [`enter`], for a call that has more to say.
pub(crate) fn enter_with(handle: &Handle, request: &Request<'_>) -> Result<Entry, Blocked> {
    let now = handle.environment().now();
    settle(begin_at(handle, request, Caller::Sync, Hand::Empty, now))
}

/// As [`enter`], for a caller that can await.
pub(crate) fn begin(handle: Handle, permits: u32) -> Begun {
    shortly(handle, permits)
}

/// As [`begin`], for a call that has more to say.
pub(crate) fn begin_with(handle: &Handle, request: &Request<'_>) -> Begun {
    let now = handle.environment().now();
    begin_at(handle, request, Caller::Async, Hand::Empty, now)
}

/// Parks the thread until the call is let through or turned away.
fn settle(mut begun: Begun) -> Result<Entry, Blocked> {
    loop {
        begun = match begun {
            Begun::Passed(entry) => return Ok(entry),
            Begun::Blocked(blocked) => return Err(blocked),
            Begun::Waiting(waiting) => waiting.park(),
            Begun::Over => unreachable!("it has just begun"),
        }
    }
}

/// What a call would be told; takes nothing.
pub(crate) fn peek(handle: &Handle, request: &Request<'_>) -> Result<(), Blocked> {
    let environment = handle.environment();
    let now = environment.now();
    if handle.is_off() {
        return Ok(());
    }
    handle.turn(now);
    let context = Context::of_call(request.entrance, request.origin);
    let completed = scene::complete(request, context.as_ref());
    let request = &completed;
    let system = environment.system_for(request);
    let node = handle.node();
    let arrival =
        Arrival { request, system: system.as_ref(), passed: node.passed(), waiting: node.waiting(), now };
    let plan = handle.plan();
    let peeked = plan.peek(&arrival, &|| environment.now());
    peeked.map_err(|refusal| Blocked::new(handle.to_name(), request.permits, &refusal, now))
}

/// As [`peek`], for a resource that is not there yet: only what holds for all of them can say no.
pub(crate) fn peek_new(environment: &Environment, name: &str, request: &Request<'_>) -> Result<(), Blocked> {
    let now = environment.now();
    if !environment.guards(name) {
        return Ok(());
    }
    let Some(system) = environment.system_for(request) else { return Ok(()) };
    let peeked = system.peek(request.permits, now, &|| environment.now()).map_err(overloaded);
    peeked.map_err(|refusal| Blocked::new(Name::Shared(name.into()), request.permits, &refusal, now))
}

/// The whole way in: everything that a resource may have is asked.
fn begin_at(handle: &Handle, request: &Request<'_>, caller: Caller, hand: Hand, now: Timestamp) -> Begun {
    let resource: &Resource = handle;
    let (node, environment) = (resource.node(), resource.environment());
    if resource.is_off() {
        return Begun::Passed(pass_by(handle, request, now));
    }
    resource.turn(now);
    let context = Context::of_call(request.entrance, request.origin);
    let completed = scene::complete(request, context.as_ref());
    let request = &completed;
    let mut scene = Scene::of(resource, request, context.clone(), now);
    let plan = resource.plan();
    let system = environment.system_for(request);
    let mut arrival =
        Arrival { request, system: system.as_ref(), passed: node.passed(), waiting: node.waiting(), now };
    let way = Way { resource, caller, now };

    let admitted = plan.greet(&arrival, &|| environment.now()).map_err(Stop::Refused).and_then(|()| {
        let asked = AskedChecks::all(environment, resource.name(), plan.customs(), &arrival)?;
        if asked.n > 0 {
            // Whoever was asked may have taken its time, and windows go by the present.
            arrival.now = environment.now();
            resource.turn(arrival.now);
        }
        let admitted = plan.admit_fully(&arrival, hand, asked.start, &way)?;
        asked.keep();
        Ok(admitted)
    });
    let now = arrival.now;
    let again = || Again { handle: handle.clone(), request: OwnedRequest::from(request), caller };
    match admitted {
        Ok(Admitted { mut held, after, start }) => {
            match start {
                None => node.enter(after, request.permits, now),
                Some(_) => node.enter_waiting(request.permits, now),
            }
            if let Some(scene) = &mut scene {
                scene.pass(request.permits, start.is_some(), now);
            }
            held.ask_shadows(&plan, system.as_ref(), request, now, &|| environment.now());
            let wants_the_end = plan.wants_the_end() || !plan.customs().is_empty() || held.has_more();
            let hold = if wants_the_end { plan.into() } else { PlanHold::default() };
            let mut entry = Entry::new(handle.clone(), hold, held, now, request.permits);
            entry.scene = scene.into();
            match start {
                None => Begun::Passed(entry),
                Some(start) => {
                    entry.stage = Stage::Waiting;
                    Waiting::begun(Wait::Start(entry), start)
                }
            }
        }
        Err(Stop::Permits(ticket, refusal)) => {
            let blocked = Blocked::new(handle.to_name(), request.permits, &refusal, now);
            let until = ticket.deadline();
            Waiting::begun(Wait::Permits(again(), ticket, blocked), until)
        }
        Err(Stop::Place(place, until)) => Waiting::begun(Wait::Place(again(), place), until),
        Err(Stop::Refused(refusal)) => {
            if let Some(scene) = &scene {
                scene.block(refusal.rule.kind().into(), request.permits, now);
            }
            match (refusal.rule.kind(), &system) {
                (RuleKind::System, Some(system)) => {
                    system.ask_shadows_blocked(request.permits, now, &|| environment.now());
                }
                (kind, _) => plan.ask_shadows(kind, request, now, &|| environment.now()),
            }
            turn_away(handle, request.permits, &refusal, now)
        }
    }
}

/// Lets a call through that is not guarded: nothing is asked, and it leaves no trace.
#[cold]
fn pass_by(handle: &Handle, request: &Request<'_>, now: Timestamp) -> Entry {
    let mut entry =
        Entry::new(handle.clone(), PlanHold::default(), Held::default(), now, request.permits.max(1));
    entry.stage = Stage::Uncounted;
    entry.scene = Scene::uncounted(Context::of_call(request.entrance, request.origin)).into();
    entry
}

/// What is around a call on its way in.
struct Way<'a> {
    resource: &'a Resource,
    caller: Caller,
    now: Timestamp,
}

impl Around for Way<'_> {
    fn reading(&self) -> Timestamp {
        self.resource.environment().now()
    }

    fn can_wait(&self) -> bool {
        self.caller == Caller::Sync || self.resource.environment().can_wait()
    }

    fn tell(&self, rule: &RuleId, moved: Moved) {
        tell_transition(self.resource, rule, moved, self.now);
    }
}

/// The window of a simple plan refuses, and says so in few words.
#[inline(never)]
fn turn_away_one<A: Answer>(handle: &Handle, plan: &Plan, answer: WindowAnswer, now: Timestamp) -> A {
    turn_away_full(handle, plan, 0, answer, 1, now)
}

/// A window refuses, and says so in few words.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as below")]
fn turn_away_full<A: Answer>(
    handle: &Handle,
    plan: &Plan,
    first: usize,
    answer: WindowAnswer,
    permits: u32,
    now: Timestamp,
) -> A {
    let (total, reading) = (handle.node().passed(), || handle.environment().now());
    let windows = plan.flow().windows();
    windows.note_refused(first, total, now);
    let refusal = windows.refusal(first, answer, total, permits.into(), now, &reading);
    turn_away(handle, permits, &refusal, now)
}

/// Counts a block and tells of it. The block is made last, so that it is written where the caller wants it.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "who refuses is known where it is called, and the block is large to move about"
)]
fn turn_away<A: Answer>(handle: &Handle, permits: u32, refusal: &Refusal<'_>, now: Timestamp) -> A {
    handle.node().block(refusal.rule.kind().into(), permits, now);
    // Who is told may ask for the statistics, and finds the block there.
    if handle.environment().is_observed() {
        tell_refusal(handle, permits, refusal, now);
    }
    A::blocked(Blocked::new(handle.to_name(), permits, refusal, now))
}

/// As [`turn_away`], for a call that has waited in vain.
#[cold]
fn turn_away_late(again: &Again, blocked: Blocked) -> Blocked {
    let (handle, permits) = (&again.handle, blocked.permits());
    let now = handle.environment().now();
    handle.turn(now);
    let blocked = blocked.later(now);
    handle.node().block(blocked.cause(), permits, now);
    again.request.with(|request| {
        // Only an isolation has calls wait that it then blocks.
        handle.plan().ask_shadows(RuleKind::Isolation, request, now, &|| handle.environment().now());
        let context = Context::of_call(request.entrance, request.origin);
        if let Some(scene) = Scene::of(handle, request, context, now) {
            scene.block(blocked.cause(), permits, now);
        }
    });
    if handle.environment().is_observed() {
        tell_block(handle, &blocked);
    }
    blocked
}

/// Makes the block anew: one that somebody had looked at would have to be copied once more.
#[cold]
#[inline(never)]
fn tell_refusal(handle: &Handle, permits: u32, refusal: &Refusal<'_>, now: Timestamp) {
    tell_block(handle, &Blocked::new(handle.to_name(), permits, refusal, now));
}

#[cold]
fn tell_block(handle: &Handle, blocked: &Blocked) {
    handle.environment().tell(|observer| observer.on_block(blocked));
}

/// The own checks of a resource that have let a call pass so far. Unless it is [kept](Self::keep), they are told that it was
/// blocked after all.
struct AskedChecks<'a> {
    environment: &'a Environment,
    resource: &'a str,
    permits: u32,
    customs: &'a [Custom],
    n: usize,
    /// When the call may start, as far as they have a say.
    start: Option<Timestamp>,
}

impl<'a> AskedChecks<'a> {
    fn all(
        environment: &'a Environment,
        resource: &'a str,
        customs: &'a [Custom],
        arrival: &Arrival<'a>,
    ) -> Result<Self, Refusal<'a>> {
        let permits = arrival.request.permits;
        let mut asked = Self { environment, resource, permits, customs, n: 0, start: None };
        let call = Call { resource, request: arrival.request, at: arrival.now };
        for custom in customs {
            // One that panics lets the call pass: it watches, and is broken.
            let verdict = environment.contain("check", resource, || custom.check.check(&call));
            match verdict.unwrap_or(Verdict::Pass) {
                Verdict::Pass => {}
                Verdict::Wait(time) => asked.start = asked.start.max(Some(arrival.now.saturating_add(time))),
                Verdict::Block { reason, retry_after } => {
                    let until = retry_after.map(|time| arrival.now.saturating_add(time));
                    return Err(Refusal { rule: &custom.id, by: By::Custom { reason }, until });
                }
            }
            asked.n += 1;
        }
        Ok(asked)
    }

    /// The call is let through: whoever was asked, which is all of them, will be told of its end instead.
    fn keep(mut self) {
        self.n = 0;
    }
}

impl Drop for AskedChecks<'_> {
    fn drop(&mut self) {
        let Self { environment, resource, permits, customs, n, .. } = *self;
        if n > 0 {
            let ended = Ended { resource, permits: permits.into(), outcome: None, rt: Duration::ZERO };
            tell_customs(environment, &customs[..n], &ended);
        }
    }
}

/// Tells own checks that a call has ended.
#[cold]
pub(super) fn tell_customs(environment: &Environment, customs: &[Custom], ended: &Ended<'_>) {
    for custom in customs {
        let _ = environment.contain("check", ended.resource, || custom.check.ended(ended));
    }
}

/// A call that waits.
///
/// Dropping it ends the wait: what it had or was promised is given back.
#[derive(Debug)]
pub struct Waiting {
    wait: Wait,
    alarm: Alarm,
}

/// What for.
#[derive(Debug)]
enum Wait {
    Start(Entry),
    /// With the block that it gets if its time is over.
    Permits(Again, Ticket, Blocked),
    Place(Again, Place),
    Over,
}

/// A call that is asked again.
#[derive(Debug)]
struct Again {
    handle: Handle,
    request: OwnedRequest,
    caller: Caller,
}

impl Again {
    fn ask(self, hand: Hand) -> Begun {
        let Self { handle, request, caller } = self;
        let now = handle.environment().now();
        request.with(|request| begin_at(&handle, request, caller, hand, now))
    }
}

impl Waiting {
    fn begun(wait: Wait, until: Timestamp) -> Begun {
        Begun::Waiting(Box::new(Self { wait, alarm: Alarm::new(until) }))
    }

    /// Goes on when what it waits for has come, or will not come.
    pub(super) fn poll(&mut self, context: &mut task::Context<'_>) -> Poll<Begun> {
        let environment = self.wait.environment();
        let is_granted = match &self.wait {
            Wait::Permits(_, ticket, _) => ticket.register(context.waker()),
            Wait::Start(_) | Wait::Place(..) | Wait::Over => false,
        };
        if !is_granted {
            ready!(self.alarm.poll(environment, context));
        }
        Poll::Ready(std::mem::replace(&mut self.wait, Wait::Over).go_on())
    }

    /// As [`poll`](Self::poll), with the thread parked until then.
    fn park(self: Box<Self>) -> Begun {
        let clock = self.wait.environment().clock();
        match &self.wait {
            Wait::Permits(_, ticket, _) => drop(ticket.wait(clock)),
            Wait::Start(_) | Wait::Place(..) | Wait::Over => {
                // It may return early.
                while clock.now() < self.alarm.until() {
                    clock.park_until(self.alarm.until());
                }
            }
        }
        self.wait.go_on()
    }
}

impl Wait {
    fn environment(&self) -> &Environment {
        match self {
            Self::Start(entry) => entry.resource.environment(),
            Self::Permits(again, ..) | Self::Place(again, _) => again.handle.environment(),
            Self::Over => unreachable!("a wait that is over is not asked again"),
        }
    }

    fn go_on(self) -> Begun {
        match self {
            Self::Start(mut entry) => {
                entry.start();
                Begun::Passed(entry)
            }
            Self::Permits(again, ticket, _) if ticket.is_granted() => again.ask(Hand::Permits(ticket)),
            // Guarding was switched off meanwhile.
            Self::Permits(again, ..) if again.handle.is_off() => again.ask(Hand::Empty),
            Self::Permits(again, _, blocked) => Begun::Blocked(turn_away_late(&again, blocked)),
            Self::Place(again, place) => again.ask(Hand::Place(place)),
            Self::Over => unreachable!("a wait that is over is not asked again"),
        }
    }
}

/// A call by name on its way in.
#[derive(Debug)]
pub(crate) struct Entering(Option<Begun>);

impl Entering {
    pub(crate) fn new(begun: Begun) -> Self {
        Self(Some(begun))
    }
}

impl Future for Entering {
    type Output = Result<Entry, Blocked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.0.take().expect("not polled again after it was ready") {
                Begun::Passed(mut entry) => {
                    entry.was_panicking = panicking();
                    return Poll::Ready(Ok(entry));
                }
                Begun::Blocked(blocked) => return Poll::Ready(Err(blocked)),
                Begun::Waiting(mut waiting) => match waiting.poll(context) {
                    Poll::Ready(begun) => self.0 = Some(begun),
                    Poll::Pending => {
                        self.0 = Some(Begun::Waiting(waiting));
                        return Poll::Pending;
                    }
                },
                Begun::Over => unreachable!("it has just begun"),
            }
        }
    }
}
