//! Where a breaker counts the calls of its last window.

use std::time::Duration;

use super::last_calls::LastCalls;
use super::sample::Sample;
use crate::clock::Timestamp;
use crate::rule::{BreakerRule, BreakerWindow};
use crate::sync::{AtomicU64, Ordering};
use crate::window::Snapshots;

/// Calls and bad calls of the window that a rule judges by.
#[derive(Debug)]
pub(super) enum Tally {
    Time(Timed),
    Calls(LastCalls),
}

/// What [`Tally::forget`] goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// What is to be replaced: the floor, or the word of the last calls.
    seen: u64,
    totals: u64,
    tick: u64,
}

impl Tally {
    pub(super) fn new(rule: &BreakerRule, now: Timestamp) -> Self {
        match rule.window() {
            BreakerWindow::Time { interval, n_buckets } => Self::Time(Timed::new(interval, n_buckets, now)),
            BreakerWindow::Calls(calls) => Self::Calls(LastCalls::new(calls)),
        }
    }

    /// Counts a completed call and tells what the window holds with it; nothing if that has no bad call.
    #[inline]
    pub(super) fn add(&self, bad: bool, now: Timestamp) -> Option<Sample> {
        match self {
            Self::Time(timed) => timed.add(bad, now),
            Self::Calls(calls) => Some(calls.add(bad)),
        }
    }

    /// What the window holds at `now`.
    pub(super) fn sample(&self, now: Timestamp) -> Sample {
        match self {
            Self::Time(timed) => timed.sample(now),
            Self::Calls(calls) => calls.sample(),
        }
    }

    /// What [`forget`](Self::forget) goes by: to be read *before* the state that is about to close.
    pub(super) fn mark(&self, now: Timestamp) -> Mark {
        match self {
            Self::Time(timed) => timed.mark(now),
            Self::Calls(calls) => Mark { seen: calls.mark(), totals: 0, tick: 0 },
        }
    }

    /// Lets nothing before `mark` play a part, unless somebody was quicker. To be called before the breaker's word says
    /// closed.
    ///
    /// Any number of callers may be about to close, from whatever state, and may be held up on the way. None can wipe
    /// out what a breaker has counted since it closed: its mark is older than the state it has seen, and that state is
    /// older than the closing and all calls that it let through.
    pub(super) fn forget(&self, mark: Mark) -> bool {
        match self {
            Self::Time(timed) => timed.forget(mark),
            Self::Calls(calls) => calls.forget(mark.seen),
        }
    }
}

/// Totals of completed calls, and what they were when each bucket opened.
///
/// Both totals are one word, `calls 32 | bad 32`: one `fetch_add` counts a call, and no reader sees a bad call
/// without the call. Two words are subtracted as 64-bit numbers and then split, so that a carry out of `bad` cancels.
#[derive(Debug)]
pub(super) struct Timed {
    totals: AtomicU64,
    ring: Snapshots<AtomicU64>,
    /// Until when a bad call is in the window, in ns: without one no breaker trips, and nothing has to be read.
    bad_until: AtomicU64,
    /// The totals when the breaker last closed: what came before plays no part any more. Never goes back.
    floor: AtomicU64,
    /// The tick of that moment plus one; 0 before the first. The floor counts while this tick is in the window.
    floor_tick: AtomicU64,
}

impl Timed {
    fn new(interval: Duration, n_buckets: u32, now: Timestamp) -> Self {
        Self {
            totals: AtomicU64::new(0),
            // The totals are 0 when anybody may count, and so are the bases.
            ring: Snapshots::new(n_buckets, interval / n_buckets, now, || AtomicU64::new(0), |_| {}),
            bad_until: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            floor_tick: AtomicU64::new(0),
        }
    }

    /// Whoever finds the ring turning waits for the turn (a handful of stores), so that each call is counted in the
    /// bucket it ended in, and no verdict is skipped.
    #[inline]
    fn add(&self, bad: bool, now: Timestamp) -> Option<Sample> {
        self.turn(now);
        if bad {
            let leaves = self.ring.start(self.ring.tick(now) + self.ring.n_buckets());
            // Before the totals, whose order publishes it.
            self.bad_until.fetch_max(leaves.as_nanos(), Ordering::Relaxed);
        }
        // AcqRel: of two calls that end together the one that is counted last sees the other, and if that was bad, how
        // long it stays; so one of them judges both.
        self.totals.fetch_add(1 << 32 | u64::from(bad), Ordering::AcqRel);
        (now.as_nanos() < self.bad_until.load(Ordering::Relaxed)).then(|| self.window(now))
    }

    fn sample(&self, now: Timestamp) -> Sample {
        self.turn(now);
        self.window(now)
    }

    fn mark(&self, now: Timestamp) -> Mark {
        self.turn(now);
        // Acquire, and before the totals: these are at least what the floor was taken from.
        let seen = self.floor.load(Ordering::Acquire);
        // Acquire: had we seen a call here that was let through by a closing, we should find that closing, or a later
        // state, in the breaker's word afterwards.
        let totals = self.totals.load(Ordering::Acquire);
        Mark { seen, totals, tick: self.ring.tick(now) }
    }

    /// If the floor is still what the mark saw, nothing was counted between that one and any floor stored meanwhile: so
    /// it never goes back, and one that is stored late takes away nothing but what came before its own mark.
    fn forget(&self, Mark { seen, totals, tick }: Mark) -> bool {
        // Release: see `mark`. The word's release publishes both stores to those who judge by them.
        let is_ours = self.floor.compare_exchange(seen, totals, Ordering::Release, Ordering::Relaxed).is_ok();
        if is_ours {
            // Max, because the floor of a successor may stand by now.
            self.floor_tick.fetch_max(tick + 1, Ordering::Relaxed);
        }
        is_ours
    }

    #[inline]
    fn turn(&self, now: Timestamp) {
        if self.ring.is_due(now) {
            self.ring
                .turn_or_wait(now, |base| base.store(self.totals.load(Ordering::Relaxed), Ordering::Relaxed));
        }
    }

    /// The calls since the oldest bucket in the window opened, or since the breaker closed if that was later.
    #[inline(never)]
    fn window(&self, now: Timestamp) -> Sample {
        let (first, base, totals) = self.ring.read(now, |view| {
            let base = view.oldest().map(|base| base.load(Ordering::Relaxed));
            let totals = self.totals.load(Ordering::Acquire);
            (view.first(), base.unwrap_or(totals), totals)
        });
        let closed_inside = self.floor_tick.load(Ordering::Relaxed) > first;
        let base = if closed_inside { self.floor.load(Ordering::Relaxed) } else { base };
        let inside = totals.wrapping_sub(base);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word")]
        let (calls, bad) = ((inside >> 32) as u32, inside as u32);
        // A breaker that closes meanwhile stores a floor above `totals`: then nothing has happened since.
        if calls > u32::MAX / 2 { Sample::default() } else { Sample { calls, bad } }
    }
}
