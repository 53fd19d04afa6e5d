//! Where a breaker stands, in one word, and how it moves.

use crate::clock::Timestamp;
use crate::rule::BreakerState;
use crate::sync::{AtomicU64, Ordering};

/// A breaker's state: what a call may do and what a result moves.
///
/// State, probe slots and generation change together, so nobody can take a slot of one half-open period under the
/// name of another, and a late result is recognised by its generation alone. The generation grows with every change
/// of `phase`, and when probes that never ended are written off.
///
/// ```text
///  63   62 61         52 51               42 41           0
/// | phase | probes free | successes needed  | generation  |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: BreakerState,
    pub(super) free: u16,
    pub(super) needed: u16,
    pub(super) generation: u64,
}

/// What a call arriving at a breaker may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnCall {
    /// It passes, and nothing changes.
    Pass,
    /// It passes as a probe, if it is the one that makes this change.
    Probe(State),
    /// It is blocked, and may be a probe at that moment if it is known.
    Block(Option<Timestamp>),
}

const GENERATION: u64 = (1 << 42) - 1;
const COUNT: u64 = (1 << 10) - 1;

impl State {
    pub(super) const fn new() -> Self {
        Self { phase: BreakerState::Closed, free: 0, needed: 0, generation: 0 }
    }

    /// What a call arriving at `now` may do, given when an open breaker may be probed (`probe_at`) and when the
    /// probes that are out count as stuck (`lease_until`).
    pub(super) fn on_call(
        self,
        now: Timestamp,
        probe_at: Timestamp,
        lease_until: Timestamp,
        probes: u16,
    ) -> OnCall {
        match self.phase {
            BreakerState::Closed => OnCall::Pass,
            BreakerState::Open if now < probe_at => OnCall::Block(Some(probe_at)),
            BreakerState::Open => {
                OnCall::Probe(Self { free: probes - 1, needed: probes, ..self.moved(BreakerState::HalfOpen) })
            }
            BreakerState::HalfOpen if self.free > 0 => OnCall::Probe(Self { free: self.free - 1, ..self }),
            BreakerState::HalfOpen if now < lease_until => OnCall::Block(None),
            // Those out are written off: as many slots as successes are still needed, under a new generation.
            BreakerState::HalfOpen => OnCall::Probe(Self {
                free: self.needed.saturating_sub(1),
                needed: self.needed,
                ..self.moved(BreakerState::HalfOpen)
            }),
        }
    }

    /// After a call of `generation` ended without a verdict, or was blocked by a later check.
    pub(super) fn on_return(self, generation: u64) -> Option<Self> {
        let is_probe = self.phase == BreakerState::HalfOpen && self.generation == generation;
        is_probe.then_some(Self { free: self.free + 1, ..self })
    }

    /// After a call of `generation` ended: `bad` is its own verdict, `trips` that of its window.
    pub(super) fn on_result(self, generation: u64, bad: bool, trips: bool) -> Option<Self> {
        if self.generation != generation {
            return None;
        }
        match self.phase {
            BreakerState::Closed => trips.then(|| self.moved(BreakerState::Open)),
            // Nobody is let through under an open breaker's generation.
            BreakerState::Open => None,
            BreakerState::HalfOpen if bad => Some(self.moved(BreakerState::Open)),
            BreakerState::HalfOpen if self.needed > 1 => Some(Self { needed: self.needed - 1, ..self }),
            BreakerState::HalfOpen => Some(self.moved(BreakerState::Closed)),
        }
    }

    fn moved(self, phase: BreakerState) -> Self {
        Self { phase, free: 0, needed: 0, generation: (self.generation + 1) & GENERATION }
    }

    const fn pack(self) -> u64 {
        let phase = match self.phase {
            BreakerState::Closed => 0,
            BreakerState::Open => 1,
            BreakerState::HalfOpen => 2,
        };
        phase << 62 | (self.free as u64) << 52 | (self.needed as u64) << 42 | self.generation
    }

    const fn unpack(word: u64) -> Self {
        let phase = match word >> 62 {
            0 => BreakerState::Closed,
            1 => BreakerState::Open,
            _ => BreakerState::HalfOpen,
        };
        let (free, needed) = ((word >> 52 & COUNT) as u16, (word >> 42 & COUNT) as u16);
        Self { phase, free, needed, generation: word & GENERATION }
    }
}

/// The word that holds a [`State`].
#[derive(Debug)]
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(State::new().pack()))
    }

    /// Acquire: whoever sees an open or half-open state must see the times published before it.
    #[inline]
    pub(super) fn load(&self) -> State {
        State::unpack(self.0.load(Ordering::Acquire))
    }

    /// Moves `seen -> next`, or tells what stands there instead.
    ///
    /// `AcqRel`: releases the times published for the new state, and the floor of a closing breaker; acquires what
    /// goes with the state that it lost against.
    pub(super) fn change(&self, seen: State, next: State) -> Result<(), State> {
        self.0
            .compare_exchange(seen.pack(), next.pack(), Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(State::unpack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn half_open(free: u16, needed: u16, generation: u64) -> State {
        State { phase: BreakerState::HalfOpen, free, needed, generation }
    }

    #[test]
    fn a_state_comes_out_of_its_word_as_it_went_in() {
        for phase in [BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen] {
            for (free, needed, generation) in [(0, 0, 0), (1, 1_023, 1), (1_023, 1, GENERATION)] {
                let state = State { phase, free, needed, generation };
                assert_eq!(State::unpack(state.pack()), state);
            }
        }
    }

    #[test]
    fn an_open_breaker_lets_one_probe_through_when_recovery_is_over() {
        let open = State { phase: BreakerState::Open, generation: 7, ..State::new() };
        assert_eq!(open.on_call(at(999), at(1_000), at(0), 1), OnCall::Block(Some(at(1_000))));
        assert_eq!(open.on_call(at(1_000), at(1_000), at(0), 1), OnCall::Probe(half_open(0, 1, 8)));
        assert_eq!(half_open(0, 1, 8).on_call(at(1_000), at(1_000), at(2_000), 1), OnCall::Block(None));
    }

    #[test]
    fn stuck_probes_are_written_off_when_their_lease_is_over() {
        let stuck = half_open(0, 2, 8);
        assert_eq!(stuck.on_call(at(1_999), at(1_000), at(2_000), 3), OnCall::Block(None));
        assert_eq!(stuck.on_call(at(2_000), at(1_000), at(2_000), 3), OnCall::Probe(half_open(1, 2, 9)));
        assert_eq!(half_open(1, 2, 9).on_result(8, false, false), None);
    }

    #[test]
    fn every_probe_must_succeed_and_one_failure_opens_again() {
        let state = half_open(0, 2, 8);
        assert_eq!(state.on_result(8, false, true), Some(half_open(0, 1, 8)));
        assert_eq!(
            half_open(0, 1, 8).on_result(8, false, false).map(|s| s.phase),
            Some(BreakerState::Closed)
        );
        assert_eq!(
            state.on_result(8, true, false).map(|s| (s.phase, s.generation)),
            Some((BreakerState::Open, 9))
        );
    }

    #[test]
    fn a_slot_goes_back_under_its_own_generation_only() {
        assert_eq!(half_open(0, 1, 8).on_return(8), Some(half_open(1, 1, 8)));
        assert_eq!(half_open(0, 1, 9).on_return(8), None);
        assert_eq!(State::new().on_return(0), None);
    }
}
