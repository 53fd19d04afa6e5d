//! The pass log: when each of the last permits passed, by number. The window that is exact.

use std::fmt;

use super::Answer;
use crate::{
    clock::{Reading, Timestamp},
    sync::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
        interleave,
    },
};

/// How many bits of a slot tell the time.
const TIME_BITS: u32 = 48;

/// The time's bits, and the last time there is: it never grows old.
const LAST_TIME: u64 = (1 << TIME_BITS) - 1;

/// The last moment that a log can tell from later ones, in ns since its origin: that of its last time.
const LAST_NS: u64 = (LAST_TIME - 1) * 1_000;

/// A moment as a log tells it, in ns since its origin: 0 before that, and at most [`LAST_NS`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Age(u64);

/// A sliding log, one slot per permit, that many threads read and write without a lock.
///
/// The decision is not taken here but on a word outside, `total`: how many permits have passed. Permits are
/// numbered by it. Number `p` stands in slot `9 p % len` (see [`place`]), which tells by its lap whose time it holds:
///
/// ```text
///              63      48 47                                       0
///  slot         | lap     | time: 0, or 1 + µs since the origin      |   lap = p / len, modulo 2¹⁶
///
///  limit 3, len 4, total 1 042
///  slot            0      1      2      3
///  permit      1 040  1 041  1 042  1 039
///                                       └ 1 043 fits if 1 043 − 3 = 1 040 is at least one interval old
/// ```
///
/// Times are rounded up to the microsecond; time 0 is older than every interval. Inside, numbers run two
/// laps ahead of the total, so that those before the first permit are numbers too.
///
/// A call of `n` permits asks [`ask`](Self::ask), commits by a compare-exchange `total → total + n`, and then
/// writes its clock reading by [`record`](Self::record).
///
/// # Why no interval holds more than `limit`
///
/// Permit `p` was admitted only when permit `p − limit` was one interval older, by the reading of `p` and
/// the time written for `p − limit`, which is not before its reading. So the permits of one residue class
/// modulo `limit` are at least one interval apart; a half-open interval, wherever it starts, holds at most
/// one of each class, and there are `limit` classes. Nothing in this asks that times be in order, so no
/// thread waits for its turn, and several limits with their own intervals can be asked of one log, each
/// with classes of its own.
///
/// # Why nobody reads a wrong time
///
/// A slot holds number `p` exactly if its lap is that of `p`. Laps are compared for equality only. A stale
/// reader of a number 2¹⁶ laps back could be deceived by that; but its compare-exchange on `total` fails.
/// Whoever moves `total` has to move it by fewer than 2¹⁵ laps at once and to write the log.
///
/// A number that is *committed but not yet written* counts as passing just now: who meets one writes every
/// missing number up to `total` with a fresh reading, which is later than the reading of whoever committed
/// it, and looks again. So a thread that is descheduled between its commit and its writing holds nobody up,
/// and its own late write finds the lap already there.
pub(crate) struct PassLog {
    /// A power of two of them.
    slots: Box<[AtomicU64]>,
    /// `len == 1 << shift`.
    shift: u32,
    origin: Timestamp,
}

impl PassLog {
    /// The longest log, and so the largest limit that can be asked about.
    pub(crate) const MAX_LEN: u64 = 1 << 20;

    /// From this age on a log should be followed by a successor: 71 minutes before its times run out after
    /// 8.9 years, so that nobody who is deciding meanwhile gets there.
    const WORN_OUT_NS: u64 = ((1 << TIME_BITS) - (1 << 32)) * 1_000;

    /// How far back a successor of an old log reaches, in µs: 4.4 years.
    const KEPT_US: u64 = 1 << (TIME_BITS - 1);

    /// A log for limits up to `capacity`; whatever passed before `passed` counts as infinitely old.
    pub(crate) fn new(capacity: u64, passed: u64, now: Timestamp) -> Self {
        Self::with_times(capacity, passed, now, |_| Some(0))
    }

    /// A log for other limits, or to replace one that [is worn out](Self::is_worn_out), which remembers
    /// what this one does, as far back as it can.
    ///
    /// `passed` is the total, loaded before. Calls that still decide by this log write only here, and what
    /// passes after `passed` is not copied: once the new log is published, [`fill`](Self::fill) it.
    ///
    /// Numbers older than this log count as infinitely old. For limits this log was made for they are: it was at least as
    /// long as the largest of them, so those numbers are at least one interval old. The last `recent` numbers are younger
    /// than a limit that this log was not made for allows: those that it does not remember are left unwritten, and count
    /// as passing when the new log is filled.
    pub(crate) fn successor(&self, capacity: u64, passed: u64, recent: u64, now: Timestamp) -> Self {
        Self::gathered(capacity, passed, &[(self, passed)], &[], recent, now)
    }

    /// A log for a total that is at `passed`, which remembers what other logs do. Each comes with its own total, loaded
    /// before: what that log tells of the last permits of its total counts for the last ones of this total.
    ///
    /// Those in `first` go before those in `then`, which are asked only where the others remember nothing. Of several that
    /// do, the latest time counts: so no limit finds more room than its own log would have shown. `recent` is as for a
    /// [`successor`](Self::successor).
    pub(crate) fn gathered(
        capacity: u64,
        passed: u64,
        first: &[(&Self, u64)],
        then: &[(&Self, u64)],
        recent: u64,
        now: Timestamp,
    ) -> Self {
        Self::gather(capacity, passed, first, then, recent, now, |_| true)
    }

    /// As [`gathered`](Self::gathered), of `own`, the log of this total: what is infinitely old there is nothing remembered,
    /// so `others` are asked about it. For limits that did not go by `own` before.
    pub(crate) fn beside(
        capacity: u64,
        passed: u64,
        own: &Self,
        others: &[(&Self, u64)],
        recent: u64,
        now: Timestamp,
    ) -> Self {
        Self::gather(capacity, passed, &[(own, passed)], others, recent, now, |time| time != Some(0))
    }

    /// As [`gathered`](Self::gathered). `is_known` says of a time in `first` whether it spares asking in `then`.
    fn gather(
        capacity: u64,
        passed: u64,
        first: &[(&Self, u64)],
        then: &[(&Self, u64)],
        recent: u64,
        now: Timestamp,
        is_known: impl Fn(Option<u64>) -> bool,
    ) -> Self {
        let origin = first.iter().chain(then).map(|(log, _)| log.kept_from(now)).min().unwrap_or(now);
        // What nobody could tell any more passed just now.
        let latest = now.since_ns(origin) / 1_000 + 2;
        let told = |logs: &[(&Self, u64)], back| {
            let remember = logs.iter().filter(|(log, _)| back < log.len());
            // A number that was overtaken while this is being copied passes for unwritten, which errs on
            // the safe side.
            let times =
                remember.map(|(log, passed)| log.time_from(origin, log.number(*passed) - back, latest));
            times.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other)))
        };
        Self::with_times(capacity, passed, origin, |back| {
            let own = told(first, back);
            own.filter(|time| is_known(*time))
                .or_else(|| told(then, back))
                .or(own)
                .unwrap_or_else(|| (back >= recent).then_some(0))
        })
    }

    /// The origin of a log that follows this one, a whole number of microseconds later, so that no time changes by
    /// rounding. Of several the earliest counts, because what comes before it would be infinitely old.
    fn kept_from(&self, now: Timestamp) -> Timestamp {
        let moved_us = (now.since_ns(self.origin) / 1_000).saturating_sub(Self::KEPT_US);
        Timestamp::from_nanos(self.origin.as_nanos() + moved_us * 1_000)
    }

    /// The time of permit `number` as a log from `origin` on keeps it, if it is written.
    fn time_from(&self, origin: Timestamp, number: u64, latest: u64) -> Option<u64> {
        match self.time(number)? {
            0 => Some(0),
            LAST_TIME => Some(latest),
            time => {
                let ns = self.origin.as_nanos().saturating_add((time - 1) * 1_000);
                Some(
                    ns.checked_sub(origin.as_nanos()).map_or(0, |ns| (ns.div_ceil(1_000) + 1).min(LAST_TIME)),
                )
            }
        }
    }

    /// A log whose permit number `passed - back` has the time `time_of(back)`, or is not written.
    fn with_times(
        capacity: u64,
        passed: u64,
        origin: Timestamp,
        time_of: impl Fn(u64) -> Option<u64>,
    ) -> Self {
        let len = capacity.next_power_of_two();
        debug_assert!(len <= Self::MAX_LEN, "a log of {len}");
        let shift = len.trailing_zeros();
        let newest = passed + 2 * len;
        let mut slots: Box<[AtomicU64]> = (0..len).map(|_| AtomicU64::new(0)).collect();
        for back in 0..len {
            let number = newest - back;
            let lap = lap(number, shift);
            let word = match time_of(back) {
                Some(time) => pack(lap, time),
                // The lap before: a number that nobody who knows of this log can ask for.
                None => pack(lap.wrapping_sub(1), 0),
            };
            slots[place(number, slots.len())] = AtomicU64::new(word);
        }
        Self { slots, shift, origin }
    }

    /// How many permits are remembered, and so the largest limit that can be asked about.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Whether the log is about as old as its times can tell, 2⁴⁸ µs: it is to be replaced by its
    /// [`successor`](Self::successor). If nobody does, its last time never grows old: it refuses and never
    /// admits too much.
    #[inline]
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        now.since_ns(self.origin) >= Self::WORN_OUT_NS
    }

    /// A moment as this log tells it: for a call that asks by it and is recorded by it.
    #[inline]
    pub(crate) fn age(&self, moment: Timestamp) -> Age {
        match moment.as_nanos().checked_sub(self.origin.as_nanos()) {
            Some(ns) if ns <= LAST_NS => Age(ns),
            _ => self.age_beyond(moment),
        }
    }

    /// Of a moment before the origin, or after all that the log can tell.
    #[cold]
    fn age_beyond(&self, moment: Timestamp) -> Age {
        Age(moment.since_ns(self.origin).min(LAST_NS))
    }

    /// Do `n` permits behind `passed` fit under `limit` per `interval_ns`?
    ///
    /// `passed` is a value loaded from `total`, `n` at least 1, and `limit` at most [`len`](Self::len). What was committed
    /// and is not yet written is written with a `reading` taken here.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "a question, its window and the two clocks; each is one word"
    )]
    pub(crate) fn ask(
        &self,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        limit: u64,
        interval_ns: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Answer {
        self.ask_at(total, passed, n, limit, interval_ns, self.age(now), reading)
    }

    /// As [`ask`](Self::ask).
    #[inline(always)]
    #[expect(clippy::inline_always, clippy::too_many_arguments, reason = "nearly every call asks so")]
    pub(crate) fn ask_at(
        &self,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        limit: u64,
        interval_ns: u64,
        now: Age,
        reading: &Reading<'_>,
    ) -> Answer {
        debug_assert!(limit <= self.len(), "a limit of {limit} asked of a log of {}", self.len());
        debug_assert!(n > 0 && interval_ns > 0, "{n} permits per {interval_ns} ns");
        if n > limit {
            return Answer::Never;
        }
        // The n numbers that have to leave the window before the n new ones enter.
        let leaving = self.number(passed) + 1 - limit;
        // Nearly all calls are of one permit, and a loop costs them more than the question.
        let time = if n == 1 { self.time(leaving) } else { self.latest_time(leaving, n) };
        let Some(time) = time else {
            self.catch_up(total, passed, leaving, reading);
            return Answer::Stale;
        };
        let Some(since) = time.checked_sub(1).map(|us| us * 1_000) else { return Answer::Fits };
        // What is later than now is no time ago.
        if now.0.saturating_sub(since) >= interval_ns {
            Answer::Fits
        } else {
            let until = since.saturating_add(interval_ns);
            Answer::Full { until: Timestamp::from_nanos(self.origin.as_nanos().saturating_add(until)) }
        }
    }

    /// The latest time of the `n` permits from `first` on, if all of them are written.
    #[cold]
    #[inline(never)]
    fn latest_time(&self, first: u64, n: u64) -> Option<u64> {
        (first..first + n).map(|number| self.time(number)).try_fold(0, |latest, time| Some(latest.max(time?)))
    }

    /// Writes down when the permits passed that a caller has committed by moving `total` from `before` to
    /// `before + n`.
    ///
    /// `time` is the reading by which they were admitted. Permits that were not asked for need one taken
    /// *after* the commit: an older one would make the log forget.
    #[inline]
    pub(crate) fn record(&self, total: &AtomicU64, before: u64, n: u64, time: Timestamp) {
        self.record_at(total, before, n, self.age(time));
    }

    /// As [`record`](Self::record).
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "nearly every call comes by, and of one permit it is a handful of instructions"
    )]
    pub(crate) fn record_at(&self, total: &AtomicU64, before: u64, n: u64, time: Age) {
        let time = stored(time);
        let last = self.number(before) + n;
        if n == 1 {
            self.write(total, last, time);
        } else {
            self.write_all(total, last, n, time);
        }
    }

    /// Writes the time of `n` permits, up to `last`.
    #[cold]
    #[inline(never)]
    fn write_all(&self, total: &AtomicU64, last: u64, n: u64, time: u64) {
        // Of more than a lap only the last len numbers will ever be asked for.
        for number in last + 1 - n.min(self.len())..=last {
            self.write(total, number, time);
        }
    }

    /// Writes whatever is committed and not written, as passing just now.
    ///
    /// For a loader that has just published a log: calls that decided before that did not write it.
    pub(crate) fn fill(&self, total: &AtomicU64, reading: &Reading<'_>) {
        // Acquire: as in `catch_up`.
        let passed = total.load(Acquire);
        self.write_missing(total, self.number(passed) + 1 - self.len(), passed, reading);
    }

    /// A number from `leaving` on is not written although `passed` says that it is committed.
    #[cold]
    fn catch_up(&self, total: &AtomicU64, passed: u64, leaving: u64, reading: &Reading<'_>) {
        // Otherwise `passed` is stale: the slot may have gone to a later lap, and nothing is missing.
        // Acquire: the reading below is to be taken after whoever committed `passed` took its own.
        if total.load(Acquire) == passed {
            self.write_missing(total, leaving, passed, reading);
        }
    }

    /// Writes the numbers from `first` to the one of `passed`, a value loaded from `total`, with a reading
    /// taken here.
    fn write_missing(&self, total: &AtomicU64, first: u64, passed: u64, reading: &Reading<'_>) {
        // Their own readings came before their commits, and those before this one. The microsecond pays for
        // processors that execute a reading early and whose counters are not quite equal.
        let time = stored(self.age(Timestamp::from_nanos(reading().as_nanos().saturating_add(1_000))));
        for number in first..=self.number(passed) {
            self.write(total, number, time);
        }
    }

    /// The time of permit `number`, if it is written (and not overtaken).
    #[inline]
    fn time(&self, number: u64) -> Option<u64> {
        // Acquire: who finds a later lap here also finds the total that this lap came from, so a stale
        // reader learns that it is stale by looking at the total again. The time needs no ordering, it is
        // in the word.
        let word = self.slot(number).load(Acquire);
        (lap_of(word) == lap(number, self.shift)).then_some(word & LAST_TIME)
    }

    /// Writes the time of a committed permit, unless it is written or nobody can ask for it any more.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `record_at`")]
    fn write(&self, total: &AtomicU64, number: u64, time: u64) {
        let slot = self.slot(number);
        let lap = lap(number, self.shift);
        // Relaxed: the exchange is what counts.
        let held = slot.load(Relaxed);
        // The lap before ours and not the one that will look like it, 2¹⁶ laps on: that one's time would not be earlier than
        // ours (but for a clock that was set back while this thread slept through all of them; then an old time stands here
        // for a lap). So whoever records just what it has committed need not look at the total, which others are writing.
        if lap_of(held) == lap.wrapping_sub(1) && held & LAST_TIME < time {
            interleave();
            // As below.
            if slot.compare_exchange(held, pack(lap, time), AcqRel, Relaxed).is_ok() {
                return;
            }
        }
        self.write_or_not(total, number, time);
    }

    /// As [`write`](Self::write), where somebody may have been faster.
    #[cold]
    #[inline(never)]
    fn write_or_not(&self, total: &AtomicU64, number: u64, time: u64) {
        let slot = self.slot(number);
        let lap = lap(number, self.shift);
        // Acquire: if this is a later lap's word, the load below sees a total at least as high as that lap's.
        let mut held = slot.load(Acquire);
        loop {
            // Relaxed: a total that is too low can only be read while `held` is of an earlier lap, and then
            // writing is right. Never too low for `number` itself, which this thread committed or saw
            // committed.
            let out_of_reach = self.number(total.load(Relaxed)) - number >= self.len();
            if lap_of(held) == lap || out_of_reach {
                return;
            }
            interleave();
            // An unchanged word proves that no later lap stood here since it was loaded. Release: see
            // above. Acquire on failure: what is found takes the place of the first load.
            match slot.compare_exchange(held, pack(lap, time), AcqRel, Acquire) {
                Ok(_) => return,
                Err(found) => held = found,
            }
        }
    }

    #[inline]
    fn slot(&self, number: u64) -> &AtomicU64 {
        &self.slots[place(number, self.slots.len())]
    }

    /// The number of the permit that made the total `passed`.
    #[inline]
    fn number(&self, passed: u64) -> u64 {
        passed + 2 * self.len()
    }
}

/// A moment as a slot keeps it: never earlier than it was, and never 0.
#[inline]
#[expect(clippy::manual_div_ceil, reason = "it cannot overflow, and is half of the instructions")]
fn stored(Age(ns): Age) -> u64 {
    (ns + 999) / 1_000 + 1
}

impl fmt::Debug for PassLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassLog")
            .field("len", &self.len())
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// Where the time of a permit stands, in a log of `len`.
///
/// Two threads that pass one after the other write on different cache lines: were they neighbours, each would take the line
/// that the other is about to read. Nine being odd, no two of `len` numbers in a row share a place.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "masked")]
fn place(number: u64, len: usize) -> usize {
    number.wrapping_mul(9) as usize & (len - 1)
}

#[inline]
fn pack(lap: u16, time: u64) -> u64 {
    u64::from(lap) << TIME_BITS | time
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "laps are kept modulo 2¹⁶")]
fn lap(number: u64, shift: u32) -> u16 {
    (number >> shift) as u16
}

#[inline]
fn lap_of(word: u64) -> u16 {
    (word >> TIME_BITS) as u16
}

#[cfg(test)]
#[cfg(leap_loom)]
mod models;
#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
