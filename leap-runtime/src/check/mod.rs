//! Checks: a resource's rules at work, compiled into one immutable plan.
//!
//! A call goes through a plan in a fixed order:
//!
//! ```text
//! authority · system · custom · breakers (may take a probe slot) · isolation · hot parameters · scoped flow · throttle · windows
//! ```
//!
//! What an earlier check took belongs to the [`Reservation`] until the windows commit; when a later check says no,
//! dropping it gives everything back. Nothing is ever given back to a window: so what counts for good is asked before any of
//! it is committed, and only a lost race wastes something. The resource's own windows commit last. A check never sleeps:
//! it says when the call may start, or hands out what the call may wait for.
//!
//! Most resources have breakers, an isolation and plain windows at most: their calls go [the short way](Plan::admit).

pub(crate) mod authority;
pub(crate) mod breaker;
pub(crate) mod call;
pub(crate) mod custom;
pub(crate) mod figures;
pub(crate) mod flow;
mod held;
pub(crate) mod hot;
pub(crate) mod isolation;
mod past;
mod rest;
mod shadow;
pub(crate) mod system;

use std::sync::Arc;
use std::time::Duration;

use self::authority::Authority;
use self::breaker::{Breaker, Moved};
use self::call::Request;
use self::custom::Custom;
use self::figures::ShadowStats;
use self::flow::associated::{Associated, Watches};
use self::flow::scoped::{Scoped, Selected};
use self::flow::windows::Place;
use self::flow::{Flow, patiently};
pub(crate) use self::held::{Generations, Held};
use self::held::{Permits, Reservation, Taking};
use self::hot::{Hot, Limit, Refused};
use self::isolation::{Isolation, Ticket, ToWake};
use self::past::{Parked, Past};
use self::shadow::{Shadow, Surroundings};
use self::system::{System, SystemRefusal};
use crate::blocked::{By, HotFull, Refusal};
use crate::clock::{Reading, Timestamp};
use crate::event::Outcome;
use crate::key::Key;
use crate::rule::{AuthorityRule, FlowRule, IsolationRule, Mode, Relation, Rule, RuleId, RuleKind};
use crate::sync::{AtomicU64, Ordering};
use crate::window::{Answer, LeapArray};

/// What the calls of a resource are decided by, from one load of rules to the next.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    rules: Box<[(RuleId, Rule)]>,
    breakers: Box<[Breaker]>,
    isolation: Option<Isolation>,
    flow: Flow,
    /// What most resources do without.
    extras: Option<Box<Extras>>,
    /// Whether calls of this plan may need more than [`admit`](Self::admit).
    needs_more: bool,
    /// Whether [`try_admit_one`](Self::try_admit_one) can be asked.
    is_simple: bool,
    wants_the_end: bool,
}

#[derive(Debug, Default)]
struct Extras {
    authority: Authority,
    customs: Box<[Custom]>,
    hot: Box<[Hot]>,
    associated: Associated,
    scoped: Scoped,
    shadows: Box<[Shadow]>,
    parked: Parked,
}

/// What a plan is made of.
#[derive(Debug, Default)]
pub(crate) struct Parts<'a> {
    pub(crate) rules: Vec<(RuleId, Rule)>,
    pub(crate) customs: Vec<Custom>,
    /// The windows over other resources that the rules ask.
    pub(crate) watches: &'a [&'a Watches],
    /// Where rules of other resources count what passes here.
    pub(crate) watched: Box<[Arc<LeapArray>]>,
}

/// A call that arrives at a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) request: &'a Request<'a>,
    /// The system's protection, where there is one and the call concerns it.
    pub(crate) system: Option<&'a Arc<System>>,
    /// The word of its resource.
    pub(crate) passed: &'a AtomicU64,
    /// Counts who has passed and not started there.
    pub(crate) waiting: &'a AtomicU64,
    pub(crate) now: Timestamp,
}

/// What a call on its way in needs of those who ask for it.
pub(crate) trait Around {
    /// A fresh reading of the clock.
    fn reading(&self) -> Timestamp;
    /// Whether the call can wait.
    fn can_wait(&self) -> bool;
    /// Tells that a breaker has moved.
    fn tell(&self, rule: &RuleId, moved: Moved);
}

/// Hears that a breaker has moved.
pub(crate) type Tell<'a> = dyn FnMut(&RuleId, Moved) + 'a;

/// When a call may start, and the rule that has it wait until then.
#[derive(Clone, Copy, Debug)]
struct Pace<'a> {
    start: Option<Timestamp>,
    by: Option<&'a RuleId>,
}

impl<'a> Pace<'a> {
    fn wait_for(&mut self, start: Option<Timestamp>, by: Option<&'a RuleId>) {
        if start > self.start {
            *self = Self { start, by };
        }
    }

    /// The start of a call that asks `now`.
    fn at(&self, now: Timestamp) -> Timestamp {
        self.start.map_or(now, |start| start.max(now))
    }
}

/// What a call has waited for.
#[derive(Debug)]
pub(crate) enum Hand {
    Empty,
    Permits(Ticket),
    Place(Place),
}

/// A call that was let through.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// What its entry holds until its end.
    pub(crate) held: Held,
    /// `passed` as this call left it.
    pub(crate) after: u64,
    /// When it may start, if not at once.
    pub(crate) start: Option<Timestamp>,
}

/// A call that was let through in few words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// `passed` as this call left it. None where nobody decides on it: the caller is to count.
    pub(crate) after: Option<u64>,
    pub(crate) generations: Generations,
}

/// Why a call is not let through in few words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doubt<F> {
    /// A window has no room, and says so.
    Full(F),
    /// There is more to ask.
    Other,
}

/// Why a call is not let through now.
#[derive(Debug)]
pub(crate) enum Stop<'a> {
    Refused(Refusal<'a>),
    /// It queues for permits of the isolation, and is refused if it gets none.
    Permits(Ticket, Refusal<'a>),
    /// It has a place in the next window, and is to ask again at that moment.
    Place(Place, Timestamp),
}

impl<'a> From<Refusal<'a>> for Stop<'a> {
    fn from(refusal: Refusal<'a>) -> Self {
        Self::Refused(refusal)
    }
}

impl Plan {
    /// The plan of these rules, keeping the live state that `previous` has of the same ones. It is to be
    /// [settled](Self::settle) once it is published.
    pub(crate) fn new(parts: Parts<'_>, previous: &Self, passed: &AtomicU64, reading: &Reading<'_>) -> Self {
        let Parts { rules, customs, watches, watched } = parts;
        let has = |rules: &[(RuleId, Rule)], id: &RuleId| {
            rules.iter().any(|(other, rule)| other == id && rule.mode() != Mode::Shadow)
        };
        // A rule that was in shadow only, and is so no more, takes its state along; a shadow that stays keeps it.
        let stays = |shadow: &Shadow| rules.iter().any(|(id, rule)| shadow.is_of(id, rule));
        let is_promoted = |shadow: &&Shadow| {
            has(&rules, shadow.id()) && !has(&previous.rules, shadow.id()) && !stays(shadow)
        };
        let (promoted, standing): (Vec<_>, Vec<_>) = previous.shadows().iter().partition(is_promoted);
        let others = promoted.iter().map(|shadow| (shadow.plan(), shadow.passed())).collect();
        let past = Past { plan: previous, others, takes_permits: true };
        let (shadowed, at_work): (Vec<_>, Vec<_>) =
            rules.iter().cloned().partition(|(_, rule)| rule.mode() == Mode::Shadow);
        let is_isolation = |rule: &Rule| rule.kind() == RuleKind::Isolation;
        let descends = |id: &RuleId| has(&previous.rules, id) && !has(&rules, id);
        // The count of those before goes to one shadow only, and to none where an isolation is left.
        let heir = if at_work.iter().any(|(_, rule)| is_isolation(rule)) {
            None
        } else {
            let was_on = |id: &RuleId| previous.isolation().is_some_and(|before| before.has(id));
            let ids = || shadowed.iter().filter(|(_, rule)| is_isolation(rule)).map(|(id, _)| id);
            let stood = |id: &&RuleId| standing.iter().any(|shadow| shadow.id() == *id);
            let heirs = || ids().filter(|id| descends(id) && !stood(id));
            heirs().find(|id| was_on(id)).or_else(|| heirs().next()).cloned()
        };
        let plan = Self::after(at_work, &past, watches, passed, reading);

        let named = flow_rules(&rules).filter(|rule| rule.mode() != Mode::Off);
        let named = flow::scoped::named(named);
        let around = Surroundings { previous, passed, watches, named: &named };
        let shadows = shadowed.iter().map(|(id, rule)| {
            let standing = standing.iter().find(|shadow| shadow.id() == id).copied();
            let takes_permits = heir.as_ref() == Some(id);
            Shadow::new(id, rule, standing, descends(id), takes_permits, around, reading)
        });
        let shadows: Box<[_]> = shadows.collect();
        let needs_more = plan.needs_more || !customs.is_empty() || !shadows.is_empty();
        let flow = plan.flow.watched_by(watched);
        let is_simple = !needs_more && flow.windows().are_simple();
        let extras = match plan.extras {
            None if customs.is_empty() && shadows.is_empty() => None,
            extras => {
                Some(Box::new(Extras { customs: customs.into(), shadows, ..*extras.unwrap_or_default() }))
            }
        };
        Self { rules: rules.into(), extras, needs_more, is_simple, flow, ..plan }
    }

    /// The plan of rules that are enforced or off, each of which goes on from what `past` knows of it.
    fn after(
        rules: Vec<(RuleId, Rule)>,
        past: &Past<'_>,
        watches: &[&Watches],
        passed: &AtomicU64,
        reading: &Reading<'_>,
    ) -> Self {
        let now = reading();
        let (mut on, mut off, mut own) = (Sorted::default(), Sorted::default(), vec![]);
        for (id, rule) in &rules {
            let sorted = if rule.mode() == Mode::Enforce { &mut on } else { &mut off };
            match rule {
                // These are told apart where they remember.
                Rule::Flow(rule) if *rule.relation() == Relation::Own => own.push((id.clone(), rule.clone())),
                Rule::Flow(rule) => sorted.related.push((id.clone(), rule.clone())),
                Rule::Isolation(rule) => sorted.isolation.push((id.clone(), *rule)),
                Rule::Breaker(rule) => {
                    sorted.breakers.push(Breaker::new(id.clone(), *rule, past.breaker(id), now));
                }
                Rule::Hot(rule) => sorted.hot.push(Hot::new(id.clone(), rule.clone(), past.hot(id))),
                Rule::Authority(rule) => sorted.authority.push((id.clone(), rule.clone())),
                // It is no resource's.
                Rule::System(_) => {}
            }
        }
        let standing = past.isolation(&on.isolation);
        let isolation = Isolation::new(on.isolation, standing);
        let standing = past.isolation(&off.isolation).filter(|_| isolation.is_none());
        let parked = Parked {
            breakers: off.breakers.into(),
            isolation: standing.and_then(|standing| Isolation::new(off.isolation, Some(standing))),
            hot: off.hot.into(),
            scoped: Scoped::new(&off.related, past.scoped(), reading),
        };
        let is_bare = on.authority.is_empty() && on.related.is_empty() && on.hot.is_empty();
        let extras = (!is_bare || !parked.is_empty()).then(|| {
            Box::new(Extras {
                authority: Authority::new(&on.authority),
                hot: on.hot.into(),
                associated: Associated::new(&on.related, watches),
                scoped: Scoped::new(&on.related, past.scoped(), reading),
                parked,
                ..Extras::default()
            })
        });
        let (before, others) = past.flows();
        let flow = Flow::after(&own, before, &others, passed, reading);
        Self {
            needs_more: !is_bare || flow.is_paced() || isolation.as_ref().is_some_and(Isolation::may_queue),
            is_simple: false,
            wants_the_end: !on.breakers.is_empty() || isolation.is_some(),
            breakers: on.breakers.into(),
            isolation,
            flow,
            extras,
            rules: rules.into(),
        }
    }

    /// The same plan, where these origins have rules of their own.
    fn with_named(mut self, named: &[Box<str>]) -> Self {
        if let Some(extras) = &mut self.extras {
            extras.scoped = std::mem::take(&mut extras.scoped).with_named(named);
        }
        self
    }

    /// To be called once this plan is published in place of `previous`, in the order in which plans are: writes what calls
    /// of the other one left unwritten, and lets those go on who wait for what it makes room for. What calls of the other
    /// one move from now on is told of the breakers that decide here.
    pub(crate) fn settle(&self, previous: &Self, passed: &AtomicU64, reading: &Reading<'_>) -> ToWake {
        self.catch_up(passed, reading);
        self.shadows().iter().for_each(|shadow| shadow.catch_up(reading));
        self.breakers.iter().for_each(|breaker| breaker.set_told(true));
        self.shadows()
            .iter()
            .flat_map(|shadow| shadow.plan().breakers())
            .for_each(|breaker| breaker.set_told(false));
        Isolation::settle(self.isolation.as_ref(), previous.isolation.as_ref())
    }

    fn catch_up(&self, passed: &AtomicU64, reading: &Reading<'_>) {
        self.flow.windows().catch_up(passed, reading);
        if let Some(extras) = &self.extras {
            extras.scoped.catch_up(reading);
        }
    }

    /// Whether it has to be made anew because what it remembers is too old to tell the time by.
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        self.flow.is_worn_out(now)
            || self.extras.as_ref().is_some_and(|extras| extras.scoped.is_worn_out(now))
            || self.shadows().iter().any(|shadow| shadow.plan().is_worn_out(now))
    }

    /// The rules at work, with those that are switched off.
    pub(crate) fn rules(&self) -> &[(RuleId, Rule)] {
        &self.rules
    }

    pub(crate) fn breakers(&self) -> &[Breaker] {
        &self.breakers
    }

    pub(crate) fn isolation(&self) -> Option<&Isolation> {
        self.isolation.as_ref()
    }

    pub(crate) fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(crate) fn hot(&self) -> &[Hot] {
        self.extras.as_ref().map_or(&[], |extras| &extras.hot)
    }

    fn shadows(&self) -> &[Shadow] {
        self.extras.as_ref().map_or(&[], |extras| &extras.shadows)
    }

    fn parked(&self) -> Option<&Parked> {
        self.extras.as_ref().map(|extras| &extras.parked)
    }

    /// What the rules in shadow would have done.
    pub(crate) fn shadow_stats(&self) -> Vec<ShadowStats> {
        self.shadows().iter().map(Shadow::stats).collect()
    }

    /// A call was blocked by a rule of that kind: asks those of the kind that are in shadow.
    #[inline]
    pub(crate) fn ask_shadows(
        &self,
        kind: RuleKind,
        request: &Request<'_>,
        now: Timestamp,
        reading: &Reading<'_>,
    ) {
        for shadow in self.shadows().iter().filter(|shadow| shadow.kind() == kind) {
            shadow.ask_blocked(request, now, reading);
        }
    }

    /// The application's own checks, which are asked after [`greet`](Self::greet).
    pub(crate) fn customs(&self) -> &[Custom] {
        self.extras.as_ref().map_or(&[], |extras| &extras.customs)
    }

    /// Whether calls that say no more than their permits can go the short way.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.needs_more
    }

    /// Whether there is nothing to ask, and nobody to tell of what passes.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_plain() && !self.wants_the_end() && self.flow.windows().is_idle()
    }

    /// Whether it may be kept for as long as its resource: calls go the short way by it, nothing hangs on it that others
    /// give up when it goes, and it takes little.
    pub(crate) fn may_last(&self) -> bool {
        let windows = self.flow.windows();
        self.is_plain()
            && !self.is_idle()
            && self.extras.is_none()
            && !windows.is_watched()
            && !windows.are_large()
    }

    /// Whether an entry that went the short way has to tell this plan how it ended.
    #[inline]
    pub(crate) fn wants_the_end(&self) -> bool {
        self.wants_the_end
    }

    /// Whether [`try_admit_one`](Self::try_admit_one) can be asked.
    #[inline]
    pub(crate) fn is_simple(&self) -> bool {
        self.is_simple
    }

    /// As [`admit`](Self::admit), for what nearly every call meets: closed breakers, permits to be had, and windows that
    /// have room or are full. Everything else is left to `admit`, which is asked next: nothing has been taken.
    ///
    /// Its answers are few words, all of which can stay in registers. What `admit` returns is large, and what was written in
    /// pieces is slow to move about.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see above")]
    pub(crate) fn try_admit(
        &self,
        passed: &AtomicU64,
        now: Timestamp,
        n: u32,
        reading: &Reading<'_>,
    ) -> Result<Agreed, Doubt<(usize, Answer)>> {
        let (generations, permits) = self.try_before_windows(n).ok_or(Doubt::Other)?;
        let windows = self.flow.windows();
        let after = if windows.is_idle() {
            None
        } else {
            let after = windows.try_admit(None, passed, now, n.into(), reading);
            Some(after.map_err(Doubt::Full)?)
        };
        std::mem::forget(permits);
        Ok(Agreed { after, generations })
    }

    /// The same of one permit, for a [simple](Self::is_simple) plan.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see above")]
    pub(crate) fn try_admit_one(
        &self,
        passed: &AtomicU64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Agreed, Doubt<Answer>> {
        let (generations, permits) = self.try_before_windows(1).ok_or(Doubt::Other)?;
        let after = self.flow.windows().try_admit_one(passed, now, reading)?;
        std::mem::forget(permits);
        Ok(Agreed { after, generations })
    }

    /// What is asked before the windows: the breakers and the isolation.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    fn try_before_windows(&self, n: u32) -> Option<(Generations, Option<Permits<'_>>)> {
        let generations = match &*self.breakers {
            [] => Generations::default(),
            [breaker] => Generations::of_one(breaker.closed()?),
            several => closed(several)?,
        };
        let permits = match &self.isolation {
            Some(isolation) => Some(Permits::take(isolation, n)?),
            None => None,
        };
        Some((generations, permits))
    }

    /// Lets a call of `n` permits through all checks of a plain plan, or none. Returns `passed` as this call left it, and
    /// what the entry holds until its end. `tell` hears of transitions.
    #[inline]
    pub(crate) fn admit(
        &self,
        passed: &AtomicU64,
        mut now: Timestamp,
        n: u32,
        reading: &Reading<'_>,
        tell: impl FnMut(&RuleId, Moved),
    ) -> Result<(u64, Held), Refusal<'_>> {
        let mut reservation = Reservation::new(self);
        reservation.pass_breakers(&mut now, reading, tell)?;
        if let Some(isolation) = &self.isolation {
            isolation.take(n)?;
            reservation.permits = n;
        }
        let after = self.flow.windows().admit(passed, now, n.into(), reading)?;
        Ok((after, reservation.keep()))
    }

    /// What is only asked about a call, before anybody else is: who calls, and how the system is.
    pub(crate) fn greet<'a>(
        &'a self,
        arrival: &Arrival<'a>,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'a>> {
        if let Some(extras) = &self.extras {
            let denied = |rule| Refusal { rule, by: By::Authority, until: None };
            extras.authority.ask(arrival.request.origin).map_err(denied)?;
        }
        match arrival.system {
            Some(system) => system.peek(arrival.request.permits, arrival.now, reading).map_err(overloaded),
            None => Ok(()),
        }
    }

    /// The rest of the way after [`greet`](Self::greet): lets the call through all checks, or none. `start` is when it
    /// may start as far as others have a say.
    pub(crate) fn admit_fully<'a>(
        &'a self,
        arrival: &Arrival<'a>,
        hand: Hand,
        start: Option<Timestamp>,
        around: &impl Around,
    ) -> Result<Admitted, Stop<'a>> {
        let Arrival { request, waiting, mut now, .. } = *arrival;
        let reading = || around.reading();
        let mut reservation = Reservation::new(self);
        reservation.pass_breakers(&mut now, &reading, |rule, moved| around.tell(rule, moved))?;
        let place = match hand {
            Hand::Empty => reservation.take_permits(None, request.permits, now, around)?,
            Hand::Permits(ticket) => reservation.take_permits(Some(ticket), request.permits, now, around)?,
            Hand::Place(place) => reservation.take_permits_placed(place, request.permits)?,
        };
        let gates = self.ask_all(request, place.is_some(), now, &reading)?;
        let place = self.ask_flow(place, arrival, now, around)?;
        let mut taking = Taking::new(self);
        let when = taking.commit(arrival, &gates, Pace { start, by: None }, now, &reading)?;

        let n = u64::from(request.permits);
        let start = when.start.filter(|start| *start > now);
        if start.is_some() {
            if !around.can_wait() {
                let rule = when.by.or_else(|| self.customs().first().map(|custom| &custom.id));
                let rule = rule.expect("who has a call wait is a hot rule, a throttle or a check");
                return Err(Refusal { rule, by: By::NoTimer, until: start }.into());
            }
            // Before the commit, so that the call is in flight at no moment.
            waiting.fetch_add(n, Ordering::Relaxed);
        }
        match self.commit_windows(place, arrival, now, around) {
            Ok(after) => {
                let held = taking.keep(reservation, start.is_some());
                Ok(Admitted { held, after, start })
            }
            Err(stop) => {
                if start.is_some() {
                    waiting.fetch_sub(n, Ordering::Relaxed);
                }
                Err(stop)
            }
        }
    }

    /// Asks everything but the resource's own flow that counts what it lets through for good, so that nothing is counted in
    /// vain. Returns the gates that the call has to go through.
    fn ask_all<'a>(
        &'a self,
        request: &Request<'a>,
        has_place: bool,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Selected<'a>, Refusal<'a>> {
        let Some(extras) = &self.extras else { return Ok(Selected::default()) };
        if has_place {
            extras.ask(request, now, reading)?;
        } else {
            extras.meet(request, now, reading)?;
        }
        let gates = extras.scoped.select(request.origin, request.entrance, now, reading);
        gates.ask(request.permits.into(), now, reading)?;
        Ok(gates)
    }

    /// Asks the resource's own flow, where others count before it does: a call that is refused, or has to wait for its place
    /// in the next window, is counted nowhere.
    fn ask_flow(
        &self,
        place: Option<Place>,
        arrival: &Arrival<'_>,
        now: Timestamp,
        around: &impl Around,
    ) -> Result<Option<Place>, Stop<'_>> {
        let Arrival { request, system, passed, .. } = *arrival;
        if self.extras.is_none() && system.is_none() {
            return Ok(place);
        }
        let n = request.permits.into();
        self.flow.ask_turns(passed, now, n, &|| around.reading())?;
        match self.flow.windows().ask_before(place.as_ref(), passed, now, n, &|| around.reading()) {
            Ok(()) => Ok(place),
            Err(refusal) => Err(self.refused(place, refusal, arrival, now, around)),
        }
    }

    /// The windows, last.
    fn commit_windows(
        &self,
        mut place: Option<Place>,
        arrival: &Arrival<'_>,
        now: Timestamp,
        around: &impl Around,
    ) -> Result<u64, Stop<'_>> {
        let (windows, reading) = (self.flow.windows(), || around.reading());
        let (passed, n) = (arrival.passed, arrival.request.permits.into());
        let admitted = match &mut place {
            Some(place) => windows.admit_placed(place, passed, now, n, &reading),
            None => windows.admit(passed, now, n, &reading),
        };
        admitted.map_err(|refusal| self.refused(place, refusal, arrival, now, around))
    }

    /// What becomes of a call that the windows refuse: it keeps its place while that lasts, or takes one if it has priority.
    #[cold]
    fn refused<'a>(
        &self,
        place: Option<Place>,
        refusal: Refusal<'a>,
        arrival: &Arrival<'_>,
        now: Timestamp,
        around: &impl Around,
    ) -> Stop<'a> {
        let Arrival { request, passed, .. } = *arrival;
        match (place.filter(Place::is_held), refusal.until) {
            (Some(place), Some(until)) if place.lasts_until(until) => Stop::Place(place, until),
            (None, _) if request.priority && around.can_wait() => {
                let n = request.permits.into();
                match self.flow.windows().take_place(passed, now, n, &|| around.reading()) {
                    Some(place) => {
                        let until = place.until();
                        Stop::Place(place, until)
                    }
                    None => refusal.into(),
                }
            }
            _ => refusal.into(),
        }
    }

    /// What a call would be told; takes nothing.
    pub(crate) fn peek<'a>(
        &'a self,
        arrival: &Arrival<'a>,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'a>> {
        let Arrival { request, passed, now, .. } = *arrival;
        self.greet(arrival, reading)?;
        self.breakers.iter().try_for_each(|breaker| breaker.peek(now))?;
        self.isolation.iter().try_for_each(|isolation| isolation.peek(request.permits))?;
        if let Some(extras) = &self.extras {
            extras.ask(request, now, reading)?;
            let gates = extras.scoped.look(request.origin, request.entrance, now);
            gates.peek(request.permits.into(), now, reading)?;
            self.flow.peek(passed, now, request.permits.into(), reading)?;
            let pace = Pace { start: None, by: None };
            if self.n_paces(request, &gates) > 1 {
                patiently(now, reading, |now| self.start(arrival, &gates, pace, now, reading))?;
            }
            return Ok(());
        }
        self.flow.peek(passed, now, request.permits.into(), reading)
    }

    /// How many of those that may have a call wait for its turn there are.
    fn n_paces(&self, request: &Request<'_>, gates: &Selected<'_>) -> usize {
        self.paced_hot(request).count() + gates.n_paced() + usize::from(self.flow.is_paced())
    }

    /// The hot parameters by which a call may have to wait for its turn, with its keys.
    fn paced_hot<'r>(&self, request: &Request<'r>) -> impl Iterator<Item = (&Hot, &'r Key)> {
        let hot = self.hot().iter().filter(|hot| hot.is_paced());
        hot.filter_map(|hot| Some((hot, hot.key_of(request.keys)?)))
    }

    /// When a call could start by all that may have it wait, and not before the start of `pace`; takes nothing.
    ///
    /// It is the same moment for all, or a call would be too close to the one before it where it could have started
    /// earlier: whoever moves it on has all others asked again.
    fn start<'a>(
        &'a self,
        arrival: &Arrival<'a>,
        gates: &Selected<'a>,
        mut pace: Pace<'a>,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Pace<'a>, Refusal<'a>> {
        let Arrival { request, passed, .. } = *arrival;
        let n = request.permits;
        loop {
            let before = pace.start;
            for (hot, key) in self.paced_hot(request) {
                let start = hot.start(key, n, now, pace.at(now), reading);
                pace.wait_for(start.map_err(|refused| used_up(hot, refused))?, Some(hot.id()));
            }
            if let Some(extras) = &self.extras {
                let start = gates.start(n.into(), now, pace.at(now))?;
                pace.wait_for(Some(start).filter(|start| *start > now), extras.scoped.paced_by());
            }
            if self.flow.is_paced() {
                let start = self.flow.start(passed, now, pace.at(now), n.into())?;
                pace.wait_for(Some(start).filter(|start| *start > now), self.flow.paced_by());
            }
            if pace.start == before {
                return Ok(pace);
            }
        }
    }

    /// A call of `n` permits that was let through with `held` ended, `rt_ns` after it began to run.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "for the one place where every call ends")]
    pub(crate) fn end(
        &self,
        held: &mut Held,
        n: u32,
        outcome: Outcome,
        rt_ns: u64,
        now: Timestamp,
        mut tell: impl FnMut(&RuleId, Moved),
    ) {
        if let Some(isolation) = &self.isolation {
            isolation.give_back(n);
        }
        match &*self.breakers {
            [] => {}
            // As below, of the one that most resources have: a loop costs as much as what it does.
            [breaker] => tell_breaker(breaker, held.generation(0), outcome, rt_ns, now, tell),
            several => {
                for (i, breaker) in several.iter().enumerate() {
                    tell_breaker(breaker, held.generation(i), outcome, rt_ns, now, &mut tell);
                }
            }
        }
    }
}

/// Tells a breaker of the end of a call, and others of its transition.
#[inline(always)]
#[expect(clippy::inline_always, reason = "for the one place where every call ends")]
fn tell_breaker(
    breaker: &Breaker,
    generation: u64,
    outcome: Outcome,
    rt_ns: u64,
    now: Timestamp,
    mut tell: impl FnMut(&RuleId, Moved),
) {
    let exception = match outcome {
        Outcome::Success => false,
        Outcome::Exception => true,
        // No verdict.
        Outcome::Ignored | Outcome::Cancelled => return breaker.give_back(generation),
    };
    let moved = breaker.end(generation, rt_ns, exception, now);
    if let Some(moved) = moved.filter(|_| breaker.is_told()) {
        tell(breaker.id(), moved);
    }
}

/// The generations of these breakers, if all of them are closed and an entry has room for them.
#[inline(never)]
fn closed(breakers: &[Breaker]) -> Option<Generations> {
    let mut generations = Generations::default();
    let mut all = breakers.iter().enumerate();
    all.all(|(i, breaker)| breaker.closed().is_some_and(|it| generations.set(i, it))).then_some(generations)
}

/// Rules by what becomes of them.
#[derive(Default)]
struct Sorted {
    breakers: Vec<Breaker>,
    isolation: Vec<(RuleId, IsolationRule)>,
    hot: Vec<Hot>,
    /// Flow rules that hold for some calls, or watch another resource.
    related: Vec<(RuleId, FlowRule)>,
    authority: Vec<(RuleId, AuthorityRule)>,
}

fn flow_rules(rules: &[(RuleId, Rule)]) -> impl Iterator<Item = &FlowRule> {
    rules.iter().filter_map(|(_, rule)| match rule {
        Rule::Flow(rule) => Some(rule),
        _ => None,
    })
}

impl Extras {
    /// Asks the hot parameters, and the flow rules that watch other resources.
    fn ask(&self, request: &Request<'_>, now: Timestamp, reading: &Reading<'_>) -> Result<(), Refusal<'_>> {
        for hot in &self.hot {
            if let Some(key) = hot.key_of(request.keys) {
                let peeked = hot.peek(key, request.permits, now, reading);
                peeked.map_err(|refused| used_up(hot, refused))?;
            }
        }
        self.associated.ask(request.permits.into(), now)
    }

    /// As [`ask`](Self::ask), for a call that has just come: hot parameters note it, whatever becomes of it.
    fn meet(&self, request: &Request<'_>, now: Timestamp, reading: &Reading<'_>) -> Result<(), Refusal<'_>> {
        for hot in &self.hot {
            match hot.key_of(request.keys) {
                Some(key) => {
                    let met = hot.meet(key, request.permits, now, reading);
                    met.map_err(|refused| used_up(hot, refused))?;
                }
                None => hot.note_missing(),
            }
        }
        self.associated.ask(request.permits.into(), now)
    }
}

pub(crate) fn overloaded(refusal: SystemRefusal<'_>) -> Refusal<'_> {
    let SystemRefusal { rule, exceeded, until } = refusal;
    Refusal { rule, by: By::System(exceeded), until }
}

fn used_up(hot: &Hot, refused: Refused) -> Refusal<'_> {
    let until = refused.until();
    let (limit, full) = match refused {
        Refused::Rate { limit, until } => (limit, HotFull::Rate { fits: until.is_some() }),
        Refused::Pace { limit, .. } => {
            (limit, HotFull::Pace { max_wait_ns: nanos(hot.rule().max_wait().unwrap_or_default()) })
        }
        Refused::Concurrency { limit, in_flight } => (limit.into(), HotFull::Concurrency { in_flight }),
        Refused::Together { asked, is_shared, of, until } => match of {
            Limit::Rate { limit } => {
                (limit, HotFull::RateTogether { asked, is_shared, fits: until.is_some() })
            }
            Limit::Pace { limit } => (limit, HotFull::RateTogether { asked, is_shared, fits: true }),
            Limit::Concurrency { limit, in_flight } => {
                (limit.into(), HotFull::ConcurrencyTogether { asked, is_shared, in_flight })
            }
        },
        Refused::TooLarge { n_values } => (0.0, HotFull::TooLarge { n_values }),
    };
    Refusal { rule: hot.id(), by: By::Hot { limit, interval_ns: nanos(hot.rule().interval()), full }, until }
}

/// At most a year, as a rule has it.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(any(leap_loom, leap_shuttle))))]
mod tests;
