//! What calls hold of a plan: while they are decided about, and from then to their end.

use std::sync::Arc;

use super::breaker::Moved;
use super::call::Request;
use super::flow::scoped::{Paced, Selected};
use super::flow::windows::Place;
use super::flow::{Turns, patiently};
use super::hot::Hold;
use super::isolation::{Isolation, Ticket};
use super::shadow::ShadowHeld;
use super::system::{self, System};
use super::{Around, Arrival, Pace, Plan, Stop, Tell, overloaded, used_up};
use crate::blocked::{By, Refusal};
use crate::clock::{Reading, Timestamp};
use crate::event::Outcome;
use crate::rule::RuleId;
use crate::seldom::Seldom;

/// Breakers whose generations an entry keeps in itself; more go to the heap.
const INLINE: usize = 3;

/// What an entry holds of its plan: the generation of each breaker that let it through, in the order of the plan, and what
/// only calls of the [long way](Plan::admit_fully) hold.
#[derive(Debug, Default)]
pub(crate) struct Held {
    generations: Generations,
    more: Seldom<More>,
}

/// The generations of the first breakers.
///
/// Fields and not an array, so that the compiler keeps them in registers on the way in, as long as nobody is told their
/// address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Generations {
    first: u64,
    second: u64,
    third: u64,
}

/// What few entries hold.
#[derive(Debug, Default)]
struct More {
    /// The generations of the breakers from the fourth on.
    generations: Vec<u64>,
    taken: Taken,
    /// What rules in shadow hold of a call that they would have let through.
    shadows: Vec<ShadowHeld>,
    system_shadows: Option<(Arc<System>, system::ShadowsHeld)>,
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

impl From<Generations> for Held {
    #[inline]
    fn from(generations: Generations) -> Self {
        Self { generations, more: Seldom::default() }
    }
}

impl Held {
    fn set(&mut self, i: usize, generation: u64) {
        if !self.generations.set(i, generation) {
            self.more().generations.push(generation);
        }
    }

    #[inline]
    pub(super) fn generation(&self, i: usize) -> u64 {
        self.generations.of(i, self.more.as_deref())
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// The end of what hardly any call holds, to be told beside [`Plan::end`]. `plan` is that of the entry.
    pub(crate) fn end_more(
        &mut self,
        plan: &Plan,
        outcome: Outcome,
        rt_ns: u64,
        now: Timestamp,
        tell: &mut Tell<'_>,
    ) {
        // Dropping the holds gives their permits back.
        let Some(more) = self.more.take() else { return };
        if let Some((system, held)) = more.taken.system {
            system.end(held, rt_ns, outcome, now);
        }
        more.shadows.into_iter().for_each(|held| held.end(plan, outcome, rt_ns, now, tell));
        if let Some((system, held)) = more.system_shadows {
            system.end_shadows(held, rt_ns, outcome, now);
        }
    }

    /// The call passed: asks the rules in shadow, of its resource and of the system, and keeps what they hold of it.
    pub(crate) fn ask_shadows(
        &mut self,
        plan: &Plan,
        system: Option<&Arc<System>>,
        request: &Request<'_>,
        now: Timestamp,
        reading: &Reading<'_>,
    ) {
        let shadows = plan.shadows().iter().enumerate();
        let shadows: Vec<_> =
            shadows.filter_map(|(i, shadow)| shadow.ask_passed(i, request, now, reading)).collect();
        if !shadows.is_empty() {
            self.more().shadows = shadows;
        }
        if let Some(system) = system
            && let Some(held) = system.ask_shadows(request.permits, now, reading)
        {
            self.more().system_shadows = Some((Arc::clone(system), held));
        }
    }

    /// The call has charged `n` permits: so it would have where it had been let through by a rule in shadow.
    pub(crate) fn charge_shadows(&self, plan: &Plan, n: u64, reading: &Reading<'_>) {
        if let Some(more) = &*self.more {
            more.shadows.iter().for_each(|held| held.charge(plan, n, reading));
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

impl Generations {
    /// Of the only breaker.
    #[inline]
    pub(super) fn of_one(generation: u64) -> Self {
        Self { first: generation, ..Self::default() }
    }

    /// Notes that of breaker `i`, if there is room for it.
    #[inline]
    pub(super) fn set(&mut self, i: usize, generation: u64) -> bool {
        match i {
            0 => self.first = generation,
            1 => self.second = generation,
            2 => self.third = generation,
            _ => return false,
        }
        true
    }

    #[inline]
    fn of(self, i: usize, more: Option<&More>) -> u64 {
        match i {
            0 => self.first,
            1 => self.second,
            2 => self.third,
            _ => more.expect("made when the fourth breaker was entered").generations[i - INLINE],
        }
    }
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
pub(super) struct Taking<'a> {
    plan: &'a Plan,
    taken: Taken,
}

impl<'a> Taking<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        Self { plan, taken: Taken::default() }
    }

    /// The call was let through: it keeps what it has, to be given back at its end.
    pub(super) fn keep(mut self, reservation: Reservation<'_>, waits: bool) -> Held {
        let mut held = reservation.keep();
        let taken = std::mem::take(&mut self.taken);
        let taken = if waits { taken } else { taken.started() };
        if !taken.is_nothing() {
            held.more().taken = taken;
        }
        held
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

/// Permits of an isolation that a call under decision has taken. Dropping them gives them back, also where a clock panics.
pub(super) struct Permits<'a> {
    isolation: &'a Isolation,
    n: u32,
}

impl<'a> Permits<'a> {
    #[inline]
    pub(super) fn take(isolation: &'a Isolation, n: u32) -> Option<Self> {
        isolation.take(n).ok().map(|()| Self { isolation, n })
    }
}

impl Drop for Permits<'_> {
    #[inline]
    fn drop(&mut self) {
        self.isolation.give_back(self.n);
    }
}

/// What a call under decision has taken so far. Dropping it gives that back.
pub(super) struct Reservation<'a> {
    plan: &'a Plan,
    held: Held,
    n_breakers: usize,
    /// Those of the isolation.
    pub(super) permits: u32,
}

impl<'a> Reservation<'a> {
    #[inline]
    pub(super) fn new(plan: &'a Plan) -> Self {
        Self { plan, held: Held::default(), n_breakers: 0, permits: 0 }
    }

    /// All checks have agreed: what was taken belongs to the entry.
    #[inline]
    pub(super) fn keep(mut self) -> Held {
        let held = std::mem::take(&mut self.held);
        std::mem::forget(self);
        held
    }

    /// Has every breaker let the call through. `now` is read anew where somebody was told of a transition meanwhile.
    #[inline]
    pub(super) fn pass_breakers(
        &mut self,
        now: &mut Timestamp,
        reading: &Reading<'_>,
        mut tell: impl FnMut(&RuleId, Moved),
    ) -> Result<(), Refusal<'a>> {
        if self.plan.breakers.len() > INLINE {
            // At once, however many there are.
            self.held.more().generations = Vec::with_capacity(self.plan.breakers.len() - INLINE);
        }
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

impl<'a> Reservation<'a> {
    /// Takes the permits of the isolation, or hands out a ticket for them.
    pub(super) fn take_permits(
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
    pub(super) fn take_permits_placed(&mut self, place: Place, n: u32) -> Result<Option<Place>, Refusal<'a>> {
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
    pub(super) fn commit(
        &mut self,
        arrival: &Arrival<'a>,
        gates: &Selected<'a>,
        pace: Pace<'a>,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Pace<'a>, Refusal<'a>> {
        let Arrival { request, system, .. } = *arrival;
        let (plan, n) = (self.plan, request.permits);
        let pace = match plan.n_paces(request, gates) {
            0 => pace,
            1 if pace.start.is_none() => self.take_turns(arrival, gates, pace, now, reading)?,
            _ => self.take_turns_together(arrival, gates, pace, now, reading)?,
        };
        if let Some(system) = system {
            let held = system.admit(n, now, reading).map_err(overloaded)?;
            self.taken.system = Some((Arc::clone(system), held));
        }
        for hot in plan.hot().iter().filter(|hot| !hot.is_paced()) {
            let Some(key) = hot.key_of(request.keys) else { continue };
            let taken = hot.take(key, n, now, now, reading).map_err(|refused| used_up(hot, refused))?;
            self.taken.hold(taken.hold);
        }
        gates.admit(n.into(), now, pace.at(now), reading)?;
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
        reading: &Reading<'_>,
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
        reading: &Reading<'_>,
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

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
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
