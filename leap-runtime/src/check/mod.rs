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
pub(crate) mod flow;
pub(crate) mod hot;
pub(crate) mod isolation;
pub(crate) mod system;

use std::sync::Arc;
use std::time::Duration;

use self::authority::Authority;
use self::breaker::{Breaker, Moved};
use self::call::Request;
use self::custom::Custom;
use self::flow::associated::{Associated, Watches};
use self::flow::scoped::{Paced, Scoped, Selected};
use self::flow::windows::Place;
use self::flow::{Flow, Turns, patiently};
use self::hot::{Hold, Hot, Limit, Refused};
use self::isolation::{Isolation, Ticket, ToWake};
use self::system::{System, SystemRefusal};
use crate::blocked::{By, HotFull, Refusal};
use crate::clock::Timestamp;
use crate::event::Outcome;
use crate::key::Key;
use crate::rule::{Mode, Relation, Rule, RuleId};
use crate::seldom::Seldom;
use crate::sync::{AtomicU64, Ordering};
use crate::window::LeapArray;

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
}

#[derive(Debug, Default)]
struct Extras {
    authority: Authority,
    customs: Box<[Custom]>,
    hot: Box<[Hot]>,
    associated: Associated,
    scoped: Scoped,
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    /// `passed` as this call left it.
    pub(crate) after: u64,
    /// When it may start, if not at once.
    pub(crate) start: Option<Timestamp>,
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
    pub(crate) fn new(
        parts: Parts<'_>,
        previous: &Self,
        passed: &AtomicU64,
        reading: impl Fn() -> Timestamp,
    ) -> Self {
        let Parts { rules, customs, watches, watched } = parts;
        let now = reading();
        let none = Extras::default();
        let old = previous.extras.as_deref().unwrap_or(&none);
        let (mut breakers, mut isolation, mut own, mut related) = (vec![], vec![], vec![], vec![]);
        let (mut authority, mut hot) = (vec![], vec![]);
        for (id, rule) in rules.iter().filter(|(_, rule)| rule.mode() == Mode::Enforce) {
            match rule {
                Rule::Flow(rule) if *rule.relation() == Relation::Own => own.push((id.clone(), rule.clone())),
                Rule::Flow(rule) => related.push((id.clone(), rule.clone())),
                Rule::Isolation(rule) => isolation.push((id.clone(), *rule)),
                Rule::Breaker(rule) => {
                    let standing = previous.breakers.iter().find(|breaker| breaker.id() == id);
                    breakers.push(Breaker::new(id.clone(), *rule, standing, now));
                }
                Rule::Hot(rule) => {
                    let standing = old.hot.iter().find(|hot| hot.id() == id);
                    hot.push(Hot::new(id.clone(), rule.clone(), standing));
                }
                Rule::Authority(rule) => authority.push((id.clone(), rule.clone())),
                // It is no resource's.
                Rule::System(_) => {}
            }
        }
        let extras = Extras {
            authority: Authority::new(&authority),
            customs: customs.into(),
            hot: hot.into(),
            associated: Associated::new(&related, watches),
            scoped: Scoped::new(&related, &old.scoped, &reading),
        };
        let is_bare = authority.is_empty() && related.is_empty() && extras.is_empty();
        let isolation = Isolation::new(isolation, previous.isolation.as_ref());
        let flow = Flow::new(&own, &previous.flow, passed, &reading).watched_by(watched);
        Self {
            needs_more: !is_bare || flow.is_paced() || isolation.as_ref().is_some_and(Isolation::may_queue),
            breakers: breakers.into(),
            isolation,
            flow,
            extras: (!is_bare).then(|| Box::new(extras)),
            rules: rules.into(),
        }
    }

    /// To be called once this plan is published in place of `previous`, in the order in which plans are: writes what calls
    /// of the other one left unwritten, and lets those go on who wait for what it makes room for.
    pub(crate) fn settle(
        &self,
        previous: &Self,
        passed: &AtomicU64,
        reading: impl Fn() -> Timestamp,
    ) -> ToWake {
        self.flow.windows().catch_up(passed, &reading);
        if let Some(extras) = &self.extras {
            extras.scoped.catch_up(&reading);
        }
        Isolation::settle(self.isolation.as_ref(), previous.isolation.as_ref())
    }

    /// Whether it has to be made anew because what it remembers is too old to tell the time by.
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        self.flow.is_worn_out(now)
            || self.extras.as_ref().is_some_and(|extras| extras.scoped.is_worn_out(now))
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

    /// Whether an entry that went the short way has to tell this plan how it ended.
    #[inline]
    pub(crate) fn wants_the_end(&self) -> bool {
        !self.breakers.is_empty() || self.isolation.is_some()
    }

    /// Lets a call of `n` permits through all checks of a plain plan, or none. Returns `passed` as this call left it; `held`
    /// is what the entry holds until its end, `tell` hears of transitions.
    #[inline]
    pub(crate) fn admit(
        &self,
        held: &mut Held,
        passed: &AtomicU64,
        mut now: Timestamp,
        n: u32,
        reading: impl Fn() -> Timestamp,
        tell: impl FnMut(&RuleId, Moved),
    ) -> Result<u64, Refusal<'_>> {
        let mut reservation = Reservation { plan: self, held, n_breakers: 0, permits: 0 };
        reservation.pass_breakers(&mut now, &reading, tell)?;
        if let Some(isolation) = &self.isolation {
            isolation.take(n)?;
            reservation.permits = n;
        }
        let admitted = self.flow.windows().admit(passed, now, n.into(), reading);
        if admitted.is_ok() {
            // All checks agreed: what was taken belongs to the entry.
            std::mem::forget(reservation);
        }
        admitted
    }

    /// What is only asked about a call, before anybody else is: who calls, and how the system is.
    pub(crate) fn greet<'a>(
        &'a self,
        arrival: &Arrival<'a>,
        reading: impl Fn() -> Timestamp,
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
        held: &mut Held,
        arrival: &Arrival<'a>,
        hand: Hand,
        start: Option<Timestamp>,
        around: &impl Around,
    ) -> Result<Admitted, Stop<'a>> {
        let Arrival { request, waiting, mut now, .. } = *arrival;
        let reading = || around.reading();
        let mut reservation = Reservation { plan: self, held, n_breakers: 0, permits: 0 };
        reservation.pass_breakers(&mut now, reading, |rule, moved| around.tell(rule, moved))?;
        let place = match hand {
            Hand::Empty => reservation.take_permits(None, request.permits, now, around)?,
            Hand::Permits(ticket) => reservation.take_permits(Some(ticket), request.permits, now, around)?,
            Hand::Place(place) => reservation.take_permits_placed(place, request.permits)?,
        };
        let gates = self.ask_all(request, place.is_some(), now, reading)?;
        let place = self.ask_flow(place, arrival, now, around)?;
        let mut taking = Taking::new(self);
        let when = taking.commit(arrival, &gates, Pace { start, by: None }, now, reading)?;

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
                // All checks agreed: what was taken belongs to the entry.
                taking.keep(reservation.held, start.is_some());
                std::mem::forget(reservation);
                Ok(Admitted { after, start })
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
        reading: impl Fn() -> Timestamp,
    ) -> Result<Selected<'a>, Refusal<'a>> {
        let Some(extras) = &self.extras else { return Ok(Selected::default()) };
        if has_place {
            extras.ask(request, now, &reading)?;
        } else {
            extras.meet(request, now, &reading)?;
        }
        let gates = extras.scoped.select(request.origin, request.entrance, now, &reading);
        gates.ask(request.permits.into(), now, &reading)?;
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
        self.flow.ask_turns(passed, now, n, || around.reading())?;
        match self.flow.windows().ask_before(place.as_ref(), passed, now, n, || around.reading()) {
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
            Some(place) => windows.admit_placed(place, passed, now, n, reading),
            None => windows.admit(passed, now, n, reading),
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
                match self.flow.windows().take_place(passed, now, n, || around.reading()) {
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
        reading: impl Fn() -> Timestamp,
    ) -> Result<(), Refusal<'a>> {
        let Arrival { request, passed, now, .. } = *arrival;
        self.greet(arrival, &reading)?;
        self.breakers.iter().try_for_each(|breaker| breaker.peek(now))?;
        self.isolation.iter().try_for_each(|isolation| isolation.peek(request.permits))?;
        if let Some(extras) = &self.extras {
            extras.ask(request, now, &reading)?;
            let gates = extras.scoped.look(request.origin, request.entrance, now);
            gates.peek(request.permits.into(), now, &reading)?;
            self.flow.peek(passed, now, request.permits.into(), &reading)?;
            let pace = Pace { start: None, by: None };
            if self.n_paces(request, &gates) > 1 {
                patiently(now, &reading, |now| self.start(arrival, &gates, pace, now, &reading))?;
            }
            return Ok(());
        }
        self.flow.peek(passed, now, request.permits.into(), &reading)
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
        reading: &impl Fn() -> Timestamp,
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
    #[inline]
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
        for (i, breaker) in self.breakers.iter().enumerate() {
            let exception = match outcome {
                Outcome::Success => false,
                Outcome::Exception => true,
                // No verdict.
                Outcome::Ignored | Outcome::Cancelled => {
                    breaker.give_back(held.generation(i));
                    continue;
                }
            };
            if let Some(moved) = breaker.end(held.generation(i), rt_ns, exception, now) {
                tell(breaker.id(), moved);
            }
        }
    }
}

impl Extras {
    fn is_empty(&self) -> bool {
        self.customs.is_empty() && self.hot.is_empty()
    }

    /// Asks the hot parameters, and the flow rules that watch other resources.
    fn ask(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Result<(), Refusal<'_>> {
        for hot in &self.hot {
            if let Some(key) = hot.key_of(request.keys) {
                let peeked = hot.peek(key, request.permits, now, reading);
                peeked.map_err(|refused| used_up(hot, refused))?;
            }
        }
        self.associated.ask(request.permits.into(), now)
    }

    /// As [`ask`](Self::ask), for a call that has just come: hot parameters note it, whatever becomes of it.
    fn meet(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Result<(), Refusal<'_>> {
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

/// Breakers whose generations an entry keeps in itself; more go to the heap.
const INLINE: usize = 3;

/// What an entry holds of its plan: the generation of each breaker that let it through, in the order of the plan, and what
/// only calls of the [long way](Plan::admit_fully) hold.
///
/// The first ones are fields and not an array, so that the compiler can keep them in registers on the way in.
#[derive(Debug, Default)]
pub(crate) struct Held {
    first: u64,
    second: u64,
    third: u64,
    more: Seldom<More>,
}

/// What few entries hold.
#[derive(Debug, Default)]
struct More {
    /// The generations of the breakers from the fourth on.
    generations: Vec<u64>,
    taken: Taken,
}

/// What a call of the [long way](Plan::admit_fully) has taken, as far as it can be given back.
#[derive(Debug, Default)]
struct Taken {
    /// Of the first value of a hot parameter that anything is held of, and of further ones.
    hold: Option<Hold>,
    more_holds: Vec<Hold>,
    turns: Turns,
    /// The same at the gates of entrances and origins.
    paced: Vec<Paced>,
    system: Option<(Arc<System>, system::Held)>,
}

impl Held {
    #[inline]
    fn set(&mut self, i: usize, generation: u64) {
        match i {
            0 => self.first = generation,
            1 => self.second = generation,
            2 => self.third = generation,
            // Only this field's address: see above.
            _ => push_generation(&mut self.more, generation),
        }
    }

    #[inline]
    fn generation(&self, i: usize) -> u64 {
        match i {
            0 => self.first,
            1 => self.second,
            2 => self.third,
            _ => self.more.as_ref().expect("set when the fourth breaker was entered").generations[i - INLINE],
        }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// The end of what hardly any call holds, to be told beside [`Plan::end`].
    pub(crate) fn end_more(&mut self, outcome: Outcome, rt_ns: u64, now: Timestamp) {
        // Dropping the holds gives their permits back.
        if let Some(more) = self.more.take()
            && let Some((system, held)) = more.taken.system
        {
            system.end(held, rt_ns, outcome, now);
        }
    }

    /// Whether the call holds what hardly any does.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// The call is dropped before its start: what can be given back to those behind it is.
    pub(crate) fn cancel_start(&mut self, plan: &Plan) {
        if let Some(more) = &mut *self.more {
            more.taken.give_back_turns(plan);
        }
    }
}

#[cold]
#[inline(never)]
fn push_generation(more: &mut Seldom<More>, generation: u64) {
    more.get_or_insert_default().generations.push(generation);
}

impl Taken {
    fn hold(&mut self, hold: Option<Hold>) {
        match self.hold {
            None => self.hold = hold,
            Some(_) => self.more_holds.extend(hold),
        }
    }

    /// What is left of it for a call that starts at once: it has come to its turns.
    fn started(self) -> Self {
        let Self { hold, mut more_holds, system, .. } = self;
        more_holds.retain(Hold::has_permits);
        Self { hold: hold.filter(Hold::has_permits), more_holds, system, ..Self::default() }
    }

    fn is_nothing(&self) -> bool {
        self.hold.is_none()
            && self.more_holds.is_empty()
            && self.turns.is_none()
            && self.paced.is_empty()
            && self.system.is_none()
    }

    /// Gives the turns back that the call has not come to.
    fn give_back_turns(&mut self, plan: &Plan) {
        plan.flow.give_back(&std::mem::take(&mut self.turns));
        self.paced.drain(..).for_each(Paced::give_back);
        self.hold.take().into_iter().chain(self.more_holds.drain(..)).for_each(Hold::give_back);
    }
}

/// What a call under decision has taken beside [that](Reservation). Dropping it gives that back.
struct Taking<'a> {
    plan: &'a Plan,
    taken: Taken,
}

impl<'a> Taking<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self { plan, taken: Taken::default() }
    }

    /// The call was let through: it keeps what it has, to be given back at its end.
    fn keep(mut self, held: &mut Held, waits: bool) {
        let taken = std::mem::take(&mut self.taken);
        let taken = if waits { taken } else { taken.started() };
        if !taken.is_nothing() {
            held.more().taken = taken;
        }
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        self.taken.give_back_turns(self.plan);
        if let Some((system, held)) = self.taken.system.take() {
            system.give_back(held);
        }
    }
}

/// What a call under decision has taken so far. Dropping it gives that back.
struct Reservation<'a, 'h> {
    plan: &'a Plan,
    held: &'h mut Held,
    n_breakers: usize,
    permits: u32,
}

impl<'a> Reservation<'a, '_> {
    /// Has every breaker let the call through. `now` is read anew where somebody was told of a transition meanwhile.
    #[inline]
    fn pass_breakers(
        &mut self,
        now: &mut Timestamp,
        reading: impl Fn() -> Timestamp,
        mut tell: impl FnMut(&RuleId, Moved),
    ) -> Result<(), Refusal<'a>> {
        for breaker in &self.plan.breakers {
            let (generation, moved) = breaker.enter(*now)?;
            self.held.set(self.n_breakers, generation);
            self.n_breakers += 1;
            if let Some(moved) = moved {
                tell(breaker.id(), moved);
                // Whoever was told may have taken its time, and windows go by the present.
                *now = reading();
            }
        }
        Ok(())
    }
}

impl Reservation<'_, '_> {
    #[inline(never)]
    fn give_back(&mut self) {
        if let Some(isolation) = &self.plan.isolation
            && self.permits > 0
        {
            isolation.give_back(self.permits);
        }
        for (i, breaker) in self.plan.breakers.iter().take(self.n_breakers).enumerate() {
            breaker.give_back(self.held.generation(i));
        }
    }
}

impl<'a> Reservation<'a, '_> {
    /// Takes the permits of the isolation, or hands out a ticket for them.
    fn take_permits(
        &mut self,
        ticket: Option<Ticket>,
        n: u32,
        now: Timestamp,
        around: &impl Around,
    ) -> Result<Option<Place>, Stop<'a>> {
        let Some(isolation) = &self.plan.isolation else { return Ok(None) };
        let taken = match ticket {
            Some(ticket) => isolation.redeem(ticket),
            None => isolation.take(n),
        };
        match taken {
            Ok(()) => {
                self.permits = n;
                Ok(None)
            }
            Err(refusal) if isolation.queue_time(n).is_none() => Err(refusal.into()),
            Err(refusal) if !around.can_wait() => Err(Refusal { by: By::NoTimer, ..refusal }.into()),
            Err(refusal) => Err(match isolation.queue(n, now) {
                Some(ticket) => Stop::Permits(ticket, refusal),
                None => refusal.into(),
            }),
        }
    }

    /// The same for a call that has waited for its place: it does not queue on top of that.
    fn take_permits_placed(&mut self, place: Place, n: u32) -> Result<Option<Place>, Refusal<'a>> {
        if let Some(isolation) = &self.plan.isolation {
            isolation.take(n)?;
            self.permits = n;
        }
        Ok(Some(place))
    }
}

impl<'a> Taking<'a> {
    /// Commits everything but the windows: turns first, which can be given back, then the system, the values of hot
    /// parameters, the gates of entrances and origins. What can be given back is noted as it is taken.
    fn commit(
        &mut self,
        arrival: &Arrival<'a>,
        gates: &Selected<'a>,
        pace: Pace<'a>,
        now: Timestamp,
        reading: impl Fn() -> Timestamp,
    ) -> Result<Pace<'a>, Refusal<'a>> {
        let Arrival { request, system, .. } = *arrival;
        let (plan, n) = (self.plan, request.permits);
        let pace = match plan.n_paces(request, gates) {
            0 => pace,
            1 if pace.start.is_none() => self.take_turns(arrival, gates, pace, now, &reading)?,
            _ => self.take_turns_together(arrival, gates, pace, now, &reading)?,
        };
        if let Some(system) = system {
            let held = system.admit(n, now, &reading).map_err(overloaded)?;
            self.taken.system = Some((Arc::clone(system), held));
        }
        for hot in plan.hot().iter().filter(|hot| !hot.is_paced()) {
            let Some(key) = hot.key_of(request.keys) else { continue };
            let taken = hot.take(key, n, now, now, &reading).map_err(|refused| used_up(hot, refused))?;
            self.taken.hold(taken.hold);
        }
        gates.admit(n.into(), now, pace.at(now), &reading)?;
        Ok(pace)
    }

    /// Takes every turn for the one moment at which the call starts.
    #[cold]
    fn take_turns_together(
        &mut self,
        arrival: &Arrival<'a>,
        gates: &Selected<'a>,
        mut pace: Pace<'a>,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Result<Pace<'a>, Refusal<'a>> {
        let plan = self.plan;
        loop {
            let asked = patiently(now, reading, |now| plan.start(arrival, gates, pace, now, reading));
            let common = asked.inspect_err(|_| {
                plan.flow.note_demand(arrival.passed, now);
                gates.note_demand(now);
            })?;
            let taken = self.take_turns(arrival, gates, common, now, reading)?;
            if taken.at(now) <= common.at(now) {
                return Ok(common);
            }
            // Somebody was faster, and those that were taken before have to move too.
            self.taken.give_back_turns(plan);
            pace = taken;
        }
    }

    /// Takes every turn from the start of `pace` on, and says what becomes of it.
    fn take_turns(
        &mut self,
        arrival: &Arrival<'a>,
        gates: &Selected<'a>,
        mut pace: Pace<'a>,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Result<Pace<'a>, Refusal<'a>> {
        let Arrival { request, passed, .. } = *arrival;
        let (plan, n, at_least) = (self.plan, request.permits, pace.at(now));
        for (hot, key) in plan.paced_hot(request) {
            let taken = hot.take(key, n, now, at_least, reading).map_err(|refused| used_up(hot, refused))?;
            pace.wait_for(taken.start, Some(hot.id()));
            self.taken.hold(taken.hold);
        }
        if let Some(extras) = plan.extras.as_ref().filter(|_| gates.n_paced() > 0) {
            let paced = &mut self.taken.paced;
            let start = gates.take_turns(n.into(), now, at_least, paced, reading)?;
            pace.wait_for(start, extras.scoped.paced_by());
        }
        if plan.flow.is_paced() {
            let turns = &mut self.taken.turns;
            let start = plan.flow.take_turns(passed, now, at_least, n.into(), turns, reading)?;
            pace.wait_for(start, plan.flow.paced_by());
        }
        Ok(pace)
    }
}

impl Drop for Reservation<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if self.n_breakers > 0 || self.permits > 0 {
            self.give_back();
        }
    }
}

#[cfg(all(test, not(any(leap_loom, leap_shuttle))))]
mod tests;
