//! Circuit breakers at work.
//!
//! A breaker is one word ([`state`]) that calls read on entry and results move on exit, and a tally of the last
//! window ([`trip`], [`last_calls`]) that tells when a closed breaker opens. State changes are computed when somebody
//! calls: no timer runs. Breaker states after Nygard, *Release It!*; thresholds after Sentinel's `circuitbreaker`
//! package.

mod last_calls;
mod open_time;
mod ramp;
mod sample;
mod state;
mod trip;

use std::sync::Arc;
use std::time::Duration;

use self::open_time::{draw, open_time};
use self::ramp::{Results, share};
use self::state::{Moment, OnCall, Phase, State, Verdict, WHOLE, Word};
use self::trip::Tally;
use crate::blocked::{By, Refusal};
use crate::clock::Timestamp;
use crate::rule::{BreakerRule, BreakerState, Recovery, RuleId, Strategy};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

pub(crate) use self::sample::Sample;

/// A change of a breaker's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
    /// Whether a hand moved it, and not what became of calls.
    pub(crate) forced: bool,
    /// Larger than that of every change of this breaker before.
    pub(crate) sequence: u64,
}

/// One breaker rule at work.
#[derive(Debug)]
pub(crate) struct Breaker {
    id: RuleId,
    rule: BreakerRule,
    /// Of a rule on slow calls; calls that take longer are bad.
    slow_rt_ns: u64,
    live: Arc<Live>,
}

/// What a breaker keeps when its rule is reloaded.
#[derive(Debug)]
struct Live {
    word: Word,
    /// When it last opened, in ns; how long it stays open is the present rule's. Published before the word says open.
    /// Only grows, so that one who comes late to a lost race cannot shorten the time.
    opened_at: AtomicU64,
    /// When the last probe was let through, in ns; an open time later those that are out count as stuck. Published
    /// before the word grants a probe. Only grows.
    probed_at: AtomicU64,
    /// When the last ramp began, in ns. Published before the word says so. Only grows.
    ramped_at: AtomicU64,
    /// What became of the calls that this ramp let through.
    results: Results,
    /// How often probes were written off because they did not end in time.
    stuck_probes: AtomicU64,
    tally: Tally,
    /// What the open times are drawn from.
    seed: u64,
    /// Whether its changes are told: not those of a rule in shadow. Its calls may have come before it was, or was not.
    is_told: AtomicBool,
}

/// What a breaker shows of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) state: BreakerState,
    pub(crate) sample: Sample,
    pub(crate) next_probe: Option<Duration>,
    pub(crate) stuck_probes: u64,
    /// The percentage of calls let through, while that rises.
    pub(crate) share: Option<u16>,
}

/// In place of a generation: the call was let through by a disabled breaker, and tells it nothing.
const UNCOUNTED: u64 = u64::MAX;

impl Breaker {
    /// The breaker of `rule`, going on from `previous` if that watched windows of the same shape. If not, what a hand
    /// has put there stays, and the breaker is closed otherwise.
    pub(crate) fn new(id: RuleId, rule: BreakerRule, previous: Option<&Self>, now: Timestamp) -> Self {
        let live = match previous {
            Some(previous) if previous.fits(&rule) => Arc::clone(&previous.live),
            _ => {
                // Sequences go on too.
                let state = previous.map(|previous| previous.live.word.load().succeeded());
                Arc::new(Live {
                    word: Word::new(state.unwrap_or(State::new())),
                    opened_at: AtomicU64::new(0),
                    probed_at: AtomicU64::new(0),
                    ramped_at: AtomicU64::new(0),
                    results: Results::new(),
                    stuck_probes: AtomicU64::new(0),
                    tally: Tally::new(&rule, now),
                    seed: open_time::seed(&id, now),
                    is_told: AtomicBool::new(true),
                })
            }
        };
        let slow_rt_ns = match rule.strategy() {
            Strategy::SlowRatio { slow_rt, .. } => u64::try_from(slow_rt.as_nanos()).unwrap_or(u64::MAX),
            Strategy::ErrorRatio { .. } | Strategy::ErrorCount { .. } => u64::MAX,
        };
        Self { id, rule, slow_rt_ns, live }
    }

    /// Whether anybody is to be told of what the end of a call has changed.
    pub(crate) fn is_told(&self) -> bool {
        // Relaxed: it goes with no other word.
        self.live.is_told.load(Ordering::Relaxed)
    }

    /// Says so, once the plan is published in which it decides, or does not.
    pub(crate) fn set_told(&self, is_told: bool) {
        self.live.is_told.store(is_told, Ordering::Relaxed);
    }

    fn fits(&self, rule: &BreakerRule) -> bool {
        self.rule.kind() == rule.kind() && self.rule.window() == rule.window()
    }

    pub(crate) fn id(&self) -> &RuleId {
        &self.id
    }

    /// The generation under which a closed breaker lets calls through.
    #[inline]
    pub(crate) fn closed(&self) -> Option<u64> {
        self.live.word.closed()
    }

    /// Lets a call through under the generation returned, or says no. A probe slot that was taken is given back by
    /// [`give_back`](Self::give_back), or decided by [`end`](Self::end).
    #[inline]
    pub(crate) fn enter(&self, now: Timestamp) -> Result<(u64, Option<Moved>), Refusal<'_>> {
        match self.closed() {
            Some(generation) => Ok((generation, None)),
            None => self.enter_not_closed(now),
        }
    }

    #[cold]
    fn enter_not_closed(&self, now: Timestamp) -> Result<(u64, Option<Moved>), Refusal<'_>> {
        let mut state = self.live.word.load();
        loop {
            let moment = self.moment(state, now);
            let (passes, next) = match state.on_call(&moment) {
                OnCall::Pass if state.phase == Phase::Disabled => return Ok((UNCOUNTED, None)),
                OnCall::Pass => return Ok((state.generation, None)),
                OnCall::Block(until) => return Err(self.refusal(state, &moment, until)),
                OnCall::Take(next) => (true, next),
                OnCall::Yield(next) => (false, next),
            };
            if next.phase == Phase::Probing {
                // Release by the word's change, below: who sees the probe taken must see its lease.
                self.live.probed_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
            }
            match self.live.word.change(state, next) {
                Ok(()) if !passes => return Err(self.refusal(state, &moment, None)),
                Ok(()) => {
                    if state.phase == Phase::Probing && state.generation != next.generation {
                        self.live.stuck_probes.fetch_add(1, Ordering::Relaxed);
                    }
                    return Ok((next.generation, moved(state, next)));
                }
                Err(found) => state = found,
            }
        }
    }

    /// What a call arriving at `now` would be told; takes nothing.
    pub(crate) fn peek(&self, now: Timestamp) -> Result<(), Refusal<'_>> {
        let state = self.live.word.load();
        let moment = self.moment(state, now);
        match state.on_call(&moment) {
            OnCall::Pass | OnCall::Take(_) => Ok(()),
            OnCall::Yield(_) => Err(self.refusal(state, &moment, None)),
            OnCall::Block(until) => Err(self.refusal(state, &moment, until)),
        }
    }

    fn moment(&self, state: State, now: Timestamp) -> Moment {
        // Relaxed: they were published before the word that `state` was read from, with acquire.
        let since = match state.phase {
            Phase::Probing => self.live.probed_at.load(Ordering::Relaxed),
            _ => self.live.opened_at.load(Ordering::Relaxed),
        };
        let draw = || draw(self.live.seed, state.generation);
        Moment {
            now,
            due: Timestamp::from_nanos(since).saturating_add(open_time(&self.rule, state.doublings, draw)),
            probes: u16::try_from(self.rule.probes()).expect("a rule has at most 1 023 probes"),
            share: if state.phase == Phase::Ramping { self.share(now) } else { WHOLE },
        }
    }

    /// The percentage of calls that a ramp lets through at `now`: all when it is over, or not in the rule any more.
    fn share(&self, now: Timestamp) -> u16 {
        // Relaxed: as in `moment`.
        let began = Timestamp::from_nanos(self.live.ramped_at.load(Ordering::Relaxed));
        match self.rule.recovery() {
            Recovery::Ramp { over } => share(now.since(began), over),
            Recovery::Probes => WHOLE,
        }
    }

    fn refusal(&self, state: State, moment: &Moment, until: Option<Timestamp>) -> Refusal<'_> {
        let share = (state.phase == Phase::Ramping).then_some(moment.share);
        Refusal { rule: &self.id, by: By::Breaker { state: state.phase.shown(), share }, until }
    }

    /// A call that was let through ended without a verdict, or did not run after all.
    #[inline]
    pub(crate) fn give_back(&self, generation: u64) {
        let mut state = self.live.word.load();
        while let Some(next) = state.on_return(generation) {
            match self.live.word.change(state, next) {
                Ok(()) => return,
                Err(found) => state = found,
            }
        }
    }

    /// A call that was let through under `generation` ended at `now`. A result from another generation is counted
    /// and moves nothing.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "for the one place where every call ends")]
    pub(crate) fn end(&self, generation: u64, rt_ns: u64, exception: bool, now: Timestamp) -> Option<Moved> {
        if generation == UNCOUNTED {
            return None;
        }
        let bad = match self.rule.strategy() {
            Strategy::SlowRatio { .. } => rt_ns > self.slow_rt_ns,
            Strategy::ErrorRatio { .. } | Strategy::ErrorCount { .. } => exception,
        };
        let trips = self.live.tally.add(bad, now).is_some_and(|sample| sample.trips(&self.rule));
        if self.closed().is_some() && !trips {
            return None;
        }
        self.decide(generation, bad, trips, now)
    }

    /// The end of a call that may move the breaker: `bad` is its own verdict, `trips` that of its window.
    #[cold]
    fn decide(&self, generation: u64, bad: bool, trips: bool, now: Timestamp) -> Option<Moved> {
        let ramps = self.rule.recovery() != Recovery::Probes;
        let mut on_ramp = None;
        loop {
            let mark = self.live.tally.mark(now);
            let state = self.live.word.load();
            if state.generation != generation {
                return None;
            }
            let verdict = match state.phase {
                Phase::Closed if trips => Verdict::Bad,
                Phase::Probing if bad => Verdict::Bad,
                Phase::Probing => Verdict::Good,
                // Counted once, however often the word changes under it.
                Phase::Ramping => *on_ramp.get_or_insert_with(|| self.judge_ramp(generation, bad, now)),
                _ => Verdict::Undecided,
            };
            let next = state.on_result(verdict, ramps)?;
            match next.phase {
                // Relaxed: published by the word's change.
                Phase::Open => _ = self.live.opened_at.fetch_max(now.as_nanos(), Ordering::Relaxed),
                Phase::Ramping => _ = self.live.ramped_at.fetch_max(now.as_nanos(), Ordering::Relaxed),
                // Somebody else closes it, or has.
                Phase::Closed if !self.live.tally.forget(mark) => continue,
                _ => {}
            }
            if self.live.word.change(state, next).is_ok() {
                return moved(state, next);
            }
        }
    }

    /// Counts a result of the ramp of `generation`, and says what all of them say: with fewer calls than the rule needs
    /// nothing until the ramp is over, but then the first result decides, so that a recovery comes to an end.
    fn judge_ramp(&self, generation: u64, bad: bool, now: Timestamp) -> Verdict {
        let is_on = || self.live.word.load().generation == generation;
        let Some(sample) = self.live.results.add(generation, bad, is_on) else { return Verdict::Undecided };
        let is_over = self.share(now) == WHOLE;
        match is_over {
            _ if sample.trips(&self.rule) => Verdict::Bad,
            true if sample.exceeds(&self.rule) => Verdict::Bad,
            true => Verdict::Good,
            false => Verdict::Undecided,
        }
    }

    /// Blocks every call from now on, without probes, until a hand moves it again.
    pub(crate) fn force_open(&self) -> Option<Moved> {
        self.put(Phase::ForcedOpen)
    }

    /// Lets every call through from now on and counts it, until a hand moves it again.
    pub(crate) fn force_closed(&self) -> Option<Moved> {
        self.put(Phase::ForcedClosed)
    }

    /// Lets every call through from now on and counts none, until a hand moves it again.
    pub(crate) fn disable(&self) -> Option<Moved> {
        self.put(Phase::Disabled)
    }

    /// Puts the breaker there. Results of calls that were let through before move nothing: it has a new generation.
    fn put(&self, phase: Phase) -> Option<Moved> {
        let mut state = self.live.word.load();
        while state.phase != phase {
            let next = state.put(phase);
            match self.live.word.change(state, next) {
                Ok(()) => return forced(state, next),
                Err(found) => state = found,
            }
        }
        None
    }

    /// Closes the breaker, wherever it stands, and has nothing before play a part.
    pub(crate) fn reset(&self, now: Timestamp) -> Option<Moved> {
        loop {
            let mark = self.live.tally.mark(now);
            let state = self.live.word.load();
            let next = state.put(Phase::Closed);
            if self.live.tally.forget(mark) && self.live.word.change(state, next).is_ok() {
                return forced(state, next);
            }
        }
    }

    pub(crate) fn state(&self) -> BreakerState {
        self.live.word.load().phase.shown()
    }

    /// What to show; takes no slot.
    pub(crate) fn figures(&self, now: Timestamp) -> Figures {
        let state = self.live.word.load();
        let moment = self.moment(state, now);
        let next_probe = match state.on_call(&moment) {
            OnCall::Pass | OnCall::Yield(_) => None,
            OnCall::Take(_) => Some(Duration::ZERO),
            OnCall::Block(until) => until.map(|until| until.since(now)),
        };
        let sample = match state.phase {
            Phase::Disabled => Sample::default(),
            _ => self.live.tally.sample(now),
        };
        Figures {
            state: state.phase.shown(),
            sample,
            next_probe,
            stuck_probes: self.live.stuck_probes.load(Ordering::Relaxed),
            share: (state.phase == Phase::Ramping).then_some(moment.share),
        }
    }
}

/// What a change tells the world: nothing where it looks the same.
fn moved(from: State, to: State) -> Option<Moved> {
    let (sequence, from, to) = (to.generation, from.phase.shown(), to.phase.shown());
    (from != to).then_some(Moved { from, to, forced: false, sequence })
}

fn forced(from: State, to: State) -> Option<Moved> {
    moved(from, to).map(|moved| Moved { forced: true, ..moved })
}

#[cfg(all(test, leap_loom))]
mod models;
#[cfg(all(test, not(any(leap_loom, leap_shuttle))))]
mod tests;
