//! What a breaker judges by: calls and bad calls of the last window.

use crate::clock::Timestamp;
use crate::rule::{BreakerRule, Strategy};
use crate::sync::{AtomicU64, Ordering};
use crate::window::Snapshots;

/// Calls and bad calls of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) calls: u32,
    pub(crate) bad: u32,
}

impl Sample {
    /// Whether a closed breaker opens on this. As in Sentinel: *more than* the ratio or count, and a ratio of 1 when
    /// it is reached, because nothing is more than all calls.
    pub(super) fn trips(self, rule: &BreakerRule) -> bool {
        if self.bad == 0 || self.calls < rule.min_calls() {
            return false;
        }
        match rule.strategy() {
            Strategy::SlowRatio { ratio, .. } | Strategy::ErrorRatio { ratio } => {
                let share = f64::from(self.bad) / f64::from(self.calls);
                share > ratio || self.bad == self.calls && ratio >= 1.0
            }
            Strategy::ErrorCount { count } => self.bad > count,
        }
    }
}

/// Totals of completed calls, and what they were when each bucket opened.
///
/// Both totals are one word, `calls 32 | bad 32`: one `fetch_add` counts a call, and no reader sees a bad call
/// without the call. Two words are subtracted as 64-bit numbers and then split, so that a carry out of `bad` cancels.
#[derive(Debug)]
pub(super) struct Tally {
    totals: AtomicU64,
    ring: Snapshots<AtomicU64>,
    /// Until when a bad call is in the window, in ns: without one no breaker trips, and nothing has to be read.
    bad_until: AtomicU64,
    /// The totals when the breaker last closed: what came before plays no part any more.
    floor: AtomicU64,
    /// The tick of that moment plus one; 0 before the first. The floor counts while this tick is in the window.
    floor_tick: AtomicU64,
}

impl Tally {
    pub(super) fn new(rule: &BreakerRule, now: Timestamp) -> Self {
        let bucket = rule.window() / rule.n_buckets();
        Self {
            totals: AtomicU64::new(0),
            // The totals are 0 when anybody may count, and so are the bases.
            ring: Snapshots::new(rule.n_buckets(), bucket, now, || AtomicU64::new(0), |_| {}),
            bad_until: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            floor_tick: AtomicU64::new(0),
        }
    }

    /// Counts a completed call and tells what the window holds with it; nothing if that has no bad call.
    ///
    /// Whoever finds the ring turning waits for the turn (a handful of stores), so that each call is counted in the
    /// bucket it ended in, and no verdict is skipped.
    #[inline]
    pub(super) fn add(&self, bad: bool, now: Timestamp) -> Option<Sample> {
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

    /// What the window holds at `now`.
    pub(super) fn sample(&self, now: Timestamp) -> Sample {
        self.turn(now);
        self.window(now)
    }

    /// What [`forget`](Self::forget) replaces: to be read before the state that is about to close.
    pub(super) fn floor(&self) -> u64 {
        // Acquire: who sees a floor also sees the state from which that one closed, or a later one.
        self.floor.load(Ordering::Acquire)
    }

    /// Lets nothing before `now` play a part, unless somebody has moved the floor since it was `floor`. To be called
    /// before the breaker's word says closed.
    ///
    /// So a probe that is written off while it closes the breaker cannot wipe out what has been counted since its
    /// successor closed it. No floor is stored twice: each comes after one more call.
    pub(super) fn forget(&self, floor: u64, now: Timestamp) -> bool {
        self.turn(now);
        let (totals, tick) = (self.totals.load(Ordering::Relaxed), self.ring.tick(now));
        // Release: see `floor`. The word's release publishes both stores to those who judge by them.
        let is_ours =
            self.floor.compare_exchange(floor, totals, Ordering::Release, Ordering::Relaxed).is_ok();
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
