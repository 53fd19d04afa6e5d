//! Where a breaker stands, in one word, and how it moves.

use crate::clock::Timestamp;
use crate::rule::BreakerState;
use crate::sync::{AtomicU64, Ordering};

/// What a breaker does with calls and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    Open,
    /// Half-open: a few calls are let through, all of which must succeed.
    Probing,
    /// Half-open: a rising share of the calls is let through, and judged as those of a closed breaker are.
    Ramping,
    ForcedOpen,
    ForcedClosed,
    Disabled,
}

impl Phase {
    /// The state as the world sees it.
    pub(super) const fn shown(self) -> BreakerState {
        match self {
            Self::Closed => BreakerState::Closed,
            Self::Open => BreakerState::Open,
            Self::Probing | Self::Ramping => BreakerState::HalfOpen,
            Self::ForcedOpen => BreakerState::ForcedOpen,
            Self::ForcedClosed => BreakerState::ForcedClosed,
            Self::Disabled => BreakerState::Disabled,
        }
    }
}

/// A breaker's state: what a call may do and what a result moves.
///
/// Phase, probe slots and generation change together, so nobody can take a slot of one half-open period under the
/// name of another, and a late result is recognised by its generation alone, whether results or a hand moved the
/// breaker meanwhile. The generation grows with every change of `phase`, with every reset, and when probes that never
/// ended are written off.
///
/// ```text
///  63   61 60       55 54         45 44               35 34           0
/// | phase | doublings | probes free | successes needed  | generation  |
/// ```
///
/// A closed breaker's word is its generation and nothing else. While a ramp runs, `free` is what the calls turned away
/// so far have saved up towards the next one that passes, in percent of a call: always under 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Trips since the last closing, but for the first: how often the open time has doubled.
    pub(super) doublings: u32,
    pub(super) free: u16,
    pub(super) needed: u16,
    pub(super) generation: u64,
}

/// What a call arriving at a breaker may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnCall {
    /// It passes, and nothing changes.
    Pass,
    /// It passes, if it is the one that makes this change.
    Take(State),
    /// It is blocked, if it is the one that makes this change.
    Yield(State),
    /// It is blocked, and may be a probe at that moment if it is known.
    Block(Option<Timestamp>),
}

/// What the rule and what was published beside the word make of the moment at which a call arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) now: Timestamp,
    /// When the open breaker may be probed, or the probes that are out count as stuck.
    pub(super) due: Timestamp,
    /// How many probes there are.
    pub(super) probes: u16,
    /// The share of calls that a ramp lets through, in percent.
    pub(super) share: u16,
}

/// What a result says of a breaker, together with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    Bad,
    Undecided,
}

/// One call, in percent.
pub(super) const WHOLE: u16 = 100;

const PHASE: u32 = 61;
const DOUBLINGS: u32 = 55;
const FREE: u32 = 45;
const NEEDED: u32 = 35;
const MAX_DOUBLINGS: u32 = (1 << (PHASE - DOUBLINGS)) - 1;
const COUNT: u64 = (1 << (FREE - NEEDED)) - 1;
const GENERATION: u64 = (1 << NEEDED) - 1;

impl State {
    pub(super) const fn new() -> Self {
        Self { phase: Phase::Closed, doublings: 0, free: 0, needed: 0, generation: 0 }
    }

    /// What a call may do.
    pub(super) fn on_call(self, moment: &Moment) -> OnCall {
        let Moment { now, due, probes, share } = *moment;
        match self.phase {
            Phase::Closed | Phase::ForcedClosed | Phase::Disabled => OnCall::Pass,
            Phase::ForcedOpen => OnCall::Block(None),
            Phase::Open if now < due => OnCall::Block(Some(due)),
            Phase::Open => {
                OnCall::Take(Self { free: probes - 1, needed: probes, ..self.moved(Phase::Probing) })
            }
            Phase::Probing if self.free > 0 => OnCall::Take(Self { free: self.free - 1, ..self }),
            Phase::Probing if now < due => OnCall::Block(None),
            // Those out are written off: as many slots as successes are still needed, under a new generation.
            Phase::Probing => OnCall::Take(Self {
                free: self.needed.saturating_sub(1),
                needed: self.needed,
                ..self.moved(Phase::Probing)
            }),
            // Each call brings its share, and whoever makes a whole call of what is there passes: of any calls in a row
            // as many pass as their shares add up to, up or down to a whole number.
            Phase::Ramping => match (self.free + share).checked_sub(WHOLE) {
                Some(rest) => OnCall::Take(Self { free: rest, ..self }),
                None => OnCall::Yield(Self { free: self.free + share, ..self }),
            },
        }
    }

    /// After a call of `generation` ended without a verdict, or was blocked by a later check. A ramp's share is one of
    /// calls let through, whatever became of them: nothing goes back to it.
    pub(super) fn on_return(self, generation: u64) -> Option<Self> {
        let is_probe = self.phase == Phase::Probing && self.generation == generation;
        is_probe.then_some(Self { free: self.free + 1, ..self })
    }

    /// After a call of this generation ended, given what that says. `ramps` is whether a ramp follows the probes.
    pub(super) fn on_result(self, verdict: Verdict, ramps: bool) -> Option<Self> {
        match (self.phase, verdict) {
            (Phase::Closed, Verdict::Bad) => Some(self.moved(Phase::Open)),
            (Phase::Probing | Phase::Ramping, Verdict::Bad) => {
                let doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
                Some(Self { doublings, ..self.moved(Phase::Open) })
            }
            (Phase::Probing, Verdict::Good) if self.needed > 1 => {
                Some(Self { needed: self.needed - 1, ..self })
            }
            (Phase::Probing, Verdict::Good) if ramps => Some(self.moved(Phase::Ramping)),
            (Phase::Probing | Phase::Ramping, Verdict::Good) => Some(self.put(Phase::Closed)),
            // Undecided; or nothing moves it but a hand; or open, under whose generation nobody is let through.
            _ => None,
        }
    }

    /// Put there by hand, or closed: how often it tripped before plays no part any more.
    pub(super) fn put(self, phase: Phase) -> Self {
        Self { doublings: 0, ..self.moved(phase) }
    }

    /// Where a breaker begins that takes this one's place and judges by other calls: what a hand has put stays.
    pub(super) fn succeeded(self) -> Self {
        self.put(if self.phase.shown().is_forced() { self.phase } else { Phase::Closed })
    }

    fn moved(self, phase: Phase) -> Self {
        let generation = (self.generation + 1) & GENERATION;
        Self { phase, doublings: self.doublings, free: 0, needed: 0, generation }
    }

    const fn pack(self) -> u64 {
        let phase = match self.phase {
            Phase::Closed => 0,
            Phase::Open => 1,
            Phase::Probing => 2,
            Phase::Ramping => 3,
            Phase::ForcedOpen => 4,
            Phase::ForcedClosed => 5,
            Phase::Disabled => 6,
        };
        phase << PHASE
            | (self.doublings as u64) << DOUBLINGS
            | (self.free as u64) << FREE
            | (self.needed as u64) << NEEDED
            | self.generation
    }

    const fn unpack(word: u64) -> Self {
        let phase = match word >> PHASE {
            0 => Phase::Closed,
            1 => Phase::Open,
            2 => Phase::Probing,
            3 => Phase::Ramping,
            4 => Phase::ForcedOpen,
            5 => Phase::ForcedClosed,
            _ => Phase::Disabled,
        };
        let doublings = (word >> DOUBLINGS) as u32 & MAX_DOUBLINGS;
        let (free, needed) = ((word >> FREE & COUNT) as u16, (word >> NEEDED & COUNT) as u16);
        Self { phase, doublings, free, needed, generation: word & GENERATION }
    }
}

/// The word that holds a [`State`].
#[derive(Debug)]
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn new(state: State) -> Self {
        Self(AtomicU64::new(state.pack()))
    }

    /// Acquire: whoever sees an open or half-open state must see the times published before it.
    pub(super) fn load(&self) -> State {
        State::unpack(self.0.load(Ordering::Acquire))
    }

    /// The generation of a closed breaker.
    #[inline]
    pub(super) fn closed(&self) -> Option<u64> {
        // Acquire: whoever is let through by a breaker that has closed judges by the floor published before it.
        let word = self.0.load(Ordering::Acquire);
        (word <= GENERATION).then_some(word)
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

    const fn state(phase: Phase, free: u16, needed: u16, generation: u64) -> State {
        State { phase, doublings: 0, free, needed, generation }
    }

    const fn probing(free: u16, needed: u16, generation: u64) -> State {
        state(Phase::Probing, free, needed, generation)
    }

    /// A call at `now`, where the open time or the lease ends at 1 s.
    const fn call(now: u64, probes: u16) -> Moment {
        Moment { now: at(now), due: at(1_000), probes, share: WHOLE }
    }

    const PHASES: [Phase; 7] = [
        Phase::Closed,
        Phase::Open,
        Phase::Probing,
        Phase::Ramping,
        Phase::ForcedOpen,
        Phase::ForcedClosed,
        Phase::Disabled,
    ];

    #[test]
    fn a_state_comes_out_of_its_word_as_it_went_in() {
        for phase in PHASES {
            for (doublings, free, needed, generation) in
                [(0, 0, 0, 0), (1, 1, 1_023, 1), (63, 1_023, 1, GENERATION)]
            {
                let state = State { phase, doublings, free, needed, generation };
                assert_eq!(State::unpack(state.pack()), state);
            }
        }
    }

    #[test]
    fn a_closed_breakers_word_is_its_generation() {
        for phase in PHASES {
            let word = state(Phase::Probing, 3, 4, 7).put(phase).pack();
            assert_eq!(word <= GENERATION, phase == Phase::Closed, "{phase:?}");
            assert_eq!(word & GENERATION, 8);
        }
    }

    #[test]
    fn an_open_breaker_lets_one_probe_through_when_recovery_is_over() {
        let open = state(Phase::Open, 0, 0, 7);
        assert_eq!(open.on_call(&call(999, 1)), OnCall::Block(Some(at(1_000))));
        assert_eq!(open.on_call(&call(1_000, 1)), OnCall::Take(probing(0, 1, 8)));
        assert_eq!(probing(0, 1, 8).on_call(&call(999, 1)), OnCall::Block(None));
    }

    #[test]
    fn stuck_probes_are_written_off_when_their_lease_is_over() {
        let stuck = probing(0, 2, 8);
        assert_eq!(stuck.on_call(&call(999, 3)), OnCall::Block(None));
        assert_eq!(stuck.on_call(&call(1_000, 3)), OnCall::Take(probing(1, 2, 9)));
    }

    #[test]
    fn every_probe_must_succeed_and_one_failure_opens_again() {
        let two = probing(0, 2, 8);
        assert_eq!(two.on_result(Verdict::Good, false), Some(probing(0, 1, 8)));
        assert_eq!(probing(0, 1, 8).on_result(Verdict::Good, false), Some(state(Phase::Closed, 0, 0, 9)));
        let open = State { doublings: 1, ..state(Phase::Open, 0, 0, 9) };
        assert_eq!(two.on_result(Verdict::Bad, false), Some(open));
    }

    #[test]
    fn a_ramp_follows_the_last_probe_and_closes_or_opens() {
        let ramping = state(Phase::Ramping, 0, 0, 9);
        assert_eq!(probing(0, 2, 8).on_result(Verdict::Good, true), Some(probing(0, 1, 8)));
        assert_eq!(probing(0, 1, 8).on_result(Verdict::Good, true), Some(ramping));
        assert_eq!(ramping.on_result(Verdict::Undecided, true), None);
        assert_eq!(ramping.on_result(Verdict::Good, true), Some(state(Phase::Closed, 0, 0, 10)));
        let open = State { doublings: 1, ..state(Phase::Open, 0, 0, 10) };
        assert_eq!(ramping.on_result(Verdict::Bad, true), Some(open));
    }

    #[test]
    fn of_calls_under_a_ramp_as_many_pass_as_their_shares_add_up_to() {
        for share in 1..=WHOLE {
            let (mut ramping, mut passed) = (state(Phase::Ramping, 0, 0, 9), 0);
            for n in 1..=1_000_u32 {
                match ramping.on_call(&Moment { share, ..call(0, 1) }) {
                    OnCall::Take(next) => (ramping, passed) = (next, passed + 1),
                    OnCall::Yield(next) => ramping = next,
                    other => panic!("{other:?}"),
                }
                assert_eq!(passed, n * u32::from(share) / 100, "of {n} at {share} %");
            }
        }
    }

    #[test]
    fn the_open_time_doubles_with_each_trip_until_a_closing() {
        let mut open = State::new().on_result(Verdict::Bad, false).unwrap();
        for doublings in (0..=63).chain([63]) {
            assert_eq!((open.phase, open.doublings), (Phase::Open, doublings));
            let OnCall::Take(probing) = open.on_call(&call(1_000, 1)) else { panic!("no probe") };
            open = probing.on_result(Verdict::Bad, false).unwrap();
        }
        let OnCall::Take(probing) = open.on_call(&call(1_000, 1)) else { panic!("no probe") };
        let closed = probing.on_result(Verdict::Good, false).unwrap();
        assert_eq!(closed.on_result(Verdict::Bad, false).unwrap().doublings, 0);
    }

    #[test]
    fn a_slot_goes_back_under_its_own_generation_only() {
        assert_eq!(probing(0, 1, 8).on_return(8), Some(probing(1, 1, 8)));
        assert_eq!(probing(0, 1, 9).on_return(8), None);
        assert_eq!(state(Phase::Ramping, 0, 0, 8).on_return(8), None);
        assert_eq!(State::new().on_return(0), None);
    }

    #[test]
    fn only_a_hand_moves_what_a_hand_has_put() {
        for phase in [Phase::ForcedOpen, Phase::ForcedClosed, Phase::Disabled] {
            let put = probing(1, 2, 8).put(phase);
            assert_eq!(put, state(phase, 0, 0, 9));
            let told = if phase == Phase::ForcedOpen { OnCall::Block(None) } else { OnCall::Pass };
            assert_eq!(put.on_call(&call(5_000, 1)), told);
            for verdict in [Verdict::Good, Verdict::Bad, Verdict::Undecided] {
                assert_eq!(put.on_result(verdict, true), None);
            }
            assert_eq!(put.succeeded(), state(phase, 0, 0, 10));
        }
        assert_eq!(probing(1, 2, 8).succeeded(), state(Phase::Closed, 0, 0, 9));
    }
}
