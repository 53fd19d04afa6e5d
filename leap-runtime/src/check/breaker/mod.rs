//! Circuit breakers at work.
//!
//! A breaker is one word ([`state`]) that calls read on entry and results move on exit, and a tally of the last
//! window ([`trip`]) that tells when a closed breaker opens. State changes are computed when somebody calls: no timer
//! runs. Breaker states after Nygard, *Release It!*; thresholds after Sentinel's `circuitbreaker` package.

mod state;
mod trip;

use std::sync::Arc;
use std::time::Duration;

use self::state::{OnCall, State, Word};
use self::trip::Tally;
use crate::blocked::{By, Refusal};
use crate::clock::Timestamp;
use crate::rule::{BreakerRule, BreakerState, RuleId, Strategy};
use crate::sync::{AtomicU64, Ordering};

pub(crate) use self::trip::Sample;

/// A change of a breaker's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
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
    /// How often probes were written off because they did not end in time.
    stuck_probes: AtomicU64,
    tally: Tally,
}

/// What a breaker shows of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) state: BreakerState,
    pub(crate) sample: Sample,
    pub(crate) next_probe: Option<Duration>,
    pub(crate) stuck_probes: u64,
}

impl Breaker {
    /// The breaker of `rule`, going on from `previous` if that watched windows of the same shape.
    pub(crate) fn new(id: RuleId, rule: BreakerRule, previous: Option<&Self>, now: Timestamp) -> Self {
        let live = match previous {
            Some(previous) if previous.fits(&rule) => Arc::clone(&previous.live),
            _ => Arc::new(Live {
                word: Word::new(),
                opened_at: AtomicU64::new(0),
                probed_at: AtomicU64::new(0),
                stuck_probes: AtomicU64::new(0),
                tally: Tally::new(&rule, now),
            }),
        };
        let slow_rt_ns = match rule.strategy() {
            Strategy::SlowRatio { slow_rt, .. } => u64::try_from(slow_rt.as_nanos()).unwrap_or(u64::MAX),
            Strategy::ErrorRatio { .. } | Strategy::ErrorCount { .. } => u64::MAX,
        };
        Self { id, rule, slow_rt_ns, live }
    }

    fn fits(&self, rule: &BreakerRule) -> bool {
        self.rule.kind() == rule.kind()
            && self.rule.window() == rule.window()
            && self.rule.n_buckets() == rule.n_buckets()
    }

    pub(crate) fn id(&self) -> RuleId {
        self.id
    }

    /// Lets a call through under the generation returned, or says no. A probe slot that was taken is given back by
    /// [`give_back`](Self::give_back), or decided by [`end`](Self::end).
    #[inline]
    pub(crate) fn enter(&self, now: Timestamp) -> Result<(u64, Option<Moved>), Refusal<'_>> {
        let state = self.live.word.load();
        if state.phase == BreakerState::Closed {
            return Ok((state.generation, None));
        }
        self.enter_not_closed(state, now)
    }

    #[cold]
    fn enter_not_closed(
        &self,
        mut state: State,
        now: Timestamp,
    ) -> Result<(u64, Option<Moved>), Refusal<'_>> {
        loop {
            let next = match self.ask(state, now) {
                OnCall::Pass => return Ok((state.generation, None)),
                OnCall::Block(until) => return Err(self.refusal(state, until)),
                OnCall::Probe(next) => next,
            };
            // Release by the word's change, below: who sees the probe taken must see its lease.
            self.live.probed_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
            match self.live.word.change(state, next) {
                Ok(()) => {
                    if state.phase == BreakerState::HalfOpen && state.generation != next.generation {
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
        match self.ask(state, now) {
            OnCall::Pass | OnCall::Probe(_) => Ok(()),
            OnCall::Block(until) => Err(self.refusal(state, until)),
        }
    }

    fn ask(&self, state: State, now: Timestamp) -> OnCall {
        // Relaxed: both were published before the word that `state` was read from, with acquire.
        let after = |moment: &AtomicU64| {
            Timestamp::from_nanos(moment.load(Ordering::Relaxed)).saturating_add(self.rule.open_time())
        };
        let (probe_at, lease_until) = (after(&self.live.opened_at), after(&self.live.probed_at));
        let probes = u16::try_from(self.rule.probes()).expect("a rule has at most 1 023 probes");
        state.on_call(now, probe_at, lease_until, probes)
    }

    fn refusal(&self, state: State, until: Option<Timestamp>) -> Refusal<'_> {
        Refusal { rule: &self.id, by: By::Breaker { state: state.phase }, until }
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
    #[inline]
    pub(crate) fn end(&self, generation: u64, rt_ns: u64, exception: bool, now: Timestamp) -> Option<Moved> {
        let bad = match self.rule.strategy() {
            Strategy::SlowRatio { .. } => rt_ns > self.slow_rt_ns,
            Strategy::ErrorRatio { .. } | Strategy::ErrorCount { .. } => exception,
        };
        let trips = self.live.tally.add(bad, now).is_some_and(|sample| sample.trips(&self.rule));
        if self.live.word.load().phase == BreakerState::Closed && !trips {
            return None;
        }
        loop {
            let floor = self.live.tally.floor();
            let state = self.live.word.load();
            let next = state.on_result(generation, bad, trips)?;
            match next.phase {
                BreakerState::Open => {
                    // Relaxed: published by the word's change.
                    self.live.opened_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
                }
                BreakerState::Closed if self.live.tally.forget(floor, now) => {}
                // Somebody else has closed it, or was about to.
                BreakerState::Closed => continue,
                BreakerState::HalfOpen => {}
            }
            if self.live.word.change(state, next).is_ok() {
                return moved(state, next);
            }
        }
    }

    /// What to show; takes no slot.
    pub(crate) fn figures(&self, now: Timestamp) -> Figures {
        let state = self.live.word.load();
        let next_probe = match self.ask(state, now) {
            OnCall::Pass => None,
            OnCall::Probe(_) => Some(Duration::ZERO),
            OnCall::Block(until) => until.map(|until| until.since(now)),
        };
        Figures {
            state: state.phase,
            sample: self.live.tally.sample(now),
            next_probe,
            stuck_probes: self.live.stuck_probes.load(Ordering::Relaxed),
        }
    }
}

fn moved(from: State, to: State) -> Option<Moved> {
    (from.phase != to.phase).then_some(Moved { from: from.phase, to: to.phase, sequence: to.generation })
}

#[cfg(all(test, leap_loom))]
mod models;
