//! The live numbers of a resource.
//!
//! Counters only grow. What happened in the last second or minute is the difference between a counter now and what it
//! was when a bucket opened; the same counters are the totals since the start. `passed` is the word that window rules
//! decide on; everything else decides nothing.
//!
//! What calls write on entry and what they write on exit stand on cache lines of their own: in a busy service they
//! are written by different threads.

use std::fmt;
use std::time::Duration;

use once_cell::sync::OnceCell;

use crate::blocked::Cause;
use crate::clock::Timestamp;
use crate::event::Outcome;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::window::{Histogram, Snapshots};

const N_CAUSES: usize = Cause::ALL.len();
/// Columns written on entry: passed, extra permits passed, blocked by cause.
const N_ENTRY: usize = 2 + N_CAUSES;
/// Columns written on exit: the four outcomes, extra permits completed.
const N_EXIT: usize = 5;

const PASSED: usize = 0;
/// Permits beyond the first of each call: calls = permits − extra. Written only by calls of several permits.
const EXTRA_PASSED: usize = 1;
const BLOCKED: usize = 2;

const SUCCESS: usize = 0;
const EXCEPTION: usize = 1;
const IGNORED: usize = 2;
const CANCELLED: usize = 3;
/// As `EXTRA_PASSED`, of the calls that have a response time (all but cancelled ones).
const EXTRA_TIMED: usize = 4;

/// A group of words on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

/// The live numbers of a resource.
#[derive(Debug)]
pub(crate) struct Node {
    entry: Line<[AtomicU64; N_ENTRY]>,
    exit: Line<Exit>,
    second: Snapshots<Slot>,
    /// Allocated with the first call.
    minute: OnceCell<Box<Minute>>,
}

#[derive(Debug, Default)]
struct Exit {
    columns: [AtomicU64; N_EXIT],
    rt_ns: AtomicU64,
}

struct Minute {
    buckets: Snapshots<Slot>,
    histogram: Histogram,
}

impl fmt::Debug for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Minute").field("buckets", &self.buckets).finish_non_exhaustive()
    }
}

/// What the counters were when a bucket opened (the counts modulo 2³²), and the extremes seen in it.
#[derive(Debug)]
struct Slot {
    entry: [AtomicU32; N_ENTRY],
    exit: [AtomicU32; N_EXIT],
    peak: AtomicU32,
    rt_ns: AtomicU64,
    rt_min_ns: AtomicU64,
    rt_max_ns: AtomicU64,
}

impl Slot {
    fn new() -> Self {
        Self {
            entry: Default::default(),
            exit: Default::default(),
            peak: AtomicU32::new(0),
            rt_ns: AtomicU64::new(0),
            rt_min_ns: AtomicU64::new(u64::MAX),
            rt_max_ns: AtomicU64::new(0),
        }
    }

    /// Load, compare, and almost never store.
    #[inline]
    fn note_peak(&self, in_flight: u32) -> bool {
        let is_new = in_flight > self.peak.load(Ordering::Relaxed);
        if is_new {
            self.peak.fetch_max(in_flight, Ordering::Relaxed);
        }
        is_new
    }

    #[inline]
    fn note_rt(&self, rt_ns: u64) -> bool {
        let is_min = rt_ns < self.rt_min_ns.load(Ordering::Relaxed);
        if is_min {
            self.rt_min_ns.fetch_min(rt_ns, Ordering::Relaxed);
        }
        let is_max = rt_ns > self.rt_max_ns.load(Ordering::Relaxed);
        if is_max {
            self.rt_max_ns.fetch_max(rt_ns, Ordering::Relaxed);
        }
        is_min || is_max
    }
}

/// What happened in a span, in permits unless it says calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    entry: [u64; N_ENTRY],
    exit: [u64; N_EXIT],
    pub(crate) rt_ns: u64,
    pub(crate) rt_min: Option<Duration>,
    pub(crate) rt_max: Option<Duration>,
    pub(crate) peak: u64,
}

impl Counts {
    pub(crate) fn passed(&self) -> u64 {
        self.entry[PASSED]
    }

    pub(crate) fn passed_calls(&self) -> u64 {
        self.entry[PASSED].saturating_sub(self.entry[EXTRA_PASSED])
    }

    pub(crate) fn blocked(&self, cause: Cause) -> u64 {
        self.entry[BLOCKED + cause as usize]
    }

    pub(crate) fn of(&self, outcome: Outcome) -> u64 {
        self.exit[column(outcome)]
    }

    /// The calls that have a response time.
    pub(crate) fn timed_calls(&self) -> u64 {
        let timed = self.exit[SUCCESS] + self.exit[EXCEPTION] + self.exit[IGNORED];
        timed.saturating_sub(self.exit[EXTRA_TIMED])
    }
}

const fn column(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Success => SUCCESS,
        Outcome::Exception => EXCEPTION,
        Outcome::Ignored => IGNORED,
        Outcome::Cancelled => CANCELLED,
    }
}

impl Node {
    /// `second_buckets` divides a second into whole nanoseconds.
    pub(crate) fn new(second_buckets: u32, now: Timestamp) -> Self {
        let bucket = Duration::from_secs(1) / second_buckets;
        Self {
            entry: Line::default(),
            exit: Line::default(),
            second: Snapshots::new(second_buckets, bucket, now, Slot::new, |_| {}),
            minute: OnceCell::new(),
        }
    }

    /// The word that window rules decide on.
    #[inline]
    pub(crate) fn passed(&self) -> &AtomicU64 {
        &self.entry.0[PASSED]
    }

    /// Brings the statistics up to `now`: to be called before anything is counted at that moment.
    #[inline]
    pub(crate) fn turn(&self, now: Timestamp) {
        if self.second.is_due(now) {
            self.turn_rings(now);
        }
    }

    /// A bucket of the minute opens only where one of the second does, so one look serves both.
    #[cold]
    fn turn_rings(&self, now: Timestamp) {
        self.second.turn(now, |slot| self.open(slot));
        if let Some(minute) = self.minute.get()
            && minute.buckets.is_due(now)
        {
            minute.buckets.turn(now, |slot| self.open(slot));
            minute.histogram.turn(now);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "bases are kept and subtracted modulo 2³²")]
    fn open(&self, slot: &Slot) {
        for (base, total) in slot.entry.iter().zip(&self.entry.0) {
            base.store(total.load(Ordering::Relaxed) as u32, Ordering::Relaxed);
        }
        for (base, total) in slot.exit.iter().zip(&self.exit.0.columns) {
            base.store(total.load(Ordering::Relaxed) as u32, Ordering::Relaxed);
        }
        slot.rt_ns.store(self.exit.0.rt_ns.load(Ordering::Relaxed), Ordering::Relaxed);
        slot.rt_min_ns.store(u64::MAX, Ordering::Relaxed);
        slot.rt_max_ns.store(0, Ordering::Relaxed);
        slot.peak.store(clamp(self.in_flight()), Ordering::Relaxed);
    }

    #[inline]
    fn minute(&self, now: Timestamp) -> &Minute {
        match self.minute.get() {
            Some(minute) => minute,
            None => self.make_minute(now),
        }
    }

    /// Nothing was counted before, so every base is 0.
    #[cold]
    fn make_minute(&self, now: Timestamp) -> &Minute {
        self.minute.get_or_init(|| {
            let buckets = Snapshots::new(60, Duration::from_secs(1), now, Slot::new, |_| {});
            Box::new(Minute { buckets, histogram: Histogram::new(now) })
        })
    }

    /// Notes a call of `n` permits that was let through and left `passed` at `after`.
    #[inline]
    pub(crate) fn enter(&self, after: u64, n: u32, now: Timestamp) {
        if n > 1 {
            self.entry.0[EXTRA_PASSED].fetch_add(u64::from(n) - 1, Ordering::Relaxed);
        }
        // `completed` is read after this call's own commit, so the difference is never too high. Relaxed: what ended
        // before this call began, in the order that its caller can know of, is seen; nothing else is promised.
        let in_flight = clamp(after.saturating_sub(self.completed()));
        if self.second.current().note_peak(in_flight) {
            self.minute(now).buckets.current().note_peak(in_flight);
        }
    }

    /// Counts a call of `n` permits that was blocked.
    #[inline]
    pub(crate) fn block(&self, cause: Cause, n: u32, now: Timestamp) {
        self.minute(now);
        self.entry.0[BLOCKED + cause as usize].fetch_add(n.into(), Ordering::Relaxed);
    }

    /// Notes `n` permits that were charged to a running call.
    pub(crate) fn charge(&self, n: u64) {
        self.entry.0[EXTRA_PASSED].fetch_add(n, Ordering::Relaxed);
    }

    /// Counts a call of `permits` that ended.
    #[inline]
    pub(crate) fn complete(&self, outcome: Outcome, permits: u64, rt_ns: u64, now: Timestamp) {
        let exit = &self.exit.0;
        if outcome != Outcome::Cancelled {
            let minute = self.minute(now);
            exit.rt_ns.fetch_add(rt_ns, Ordering::Relaxed);
            minute.histogram.record(rt_ns);
            if self.second.current().note_rt(rt_ns) {
                minute.buckets.current().note_rt(rt_ns);
            }
            if permits > 1 {
                exit.columns[EXTRA_TIMED].fetch_add(permits - 1, Ordering::Relaxed);
            }
        }
        // Last, so that a call that is no longer in flight has left its numbers. Release, for the same reason.
        exit.columns[column(outcome)].fetch_add(permits, Ordering::Release);
    }

    #[inline]
    fn completed(&self) -> u64 {
        let [success, exception, ignored, cancelled, _] = &self.exit.0.columns;
        [success, exception, ignored, cancelled].iter().map(|total| total.load(Ordering::Acquire)).sum()
    }

    /// Permits passed and not yet completed. Read again while calls end in between, at most 8 times.
    pub(crate) fn in_flight(&self) -> u64 {
        let mut completed = self.completed();
        let mut passed = 0;
        for _ in 0..8 {
            passed = self.passed().load(Ordering::Acquire);
            let again = self.completed();
            if again == completed {
                break;
            }
            completed = again;
        }
        passed.saturating_sub(completed)
    }

    /// The counters since the start. Extremes are not kept that long.
    pub(crate) fn totals(&self) -> Counts {
        let entry = self.entry.0.each_ref().map(|total| total.load(Ordering::Acquire));
        let exit = self.exit.0.columns.each_ref().map(|total| total.load(Ordering::Acquire));
        Counts { entry, exit, rt_ns: self.exit.0.rt_ns.load(Ordering::Acquire), ..Counts::default() }
    }

    /// What happened in the last second, the running bucket included.
    pub(crate) fn second(&self, now: Timestamp) -> Counts {
        self.turn(now);
        self.counts(&self.second, now)
    }

    /// What happened in the last minute, the running second included.
    pub(crate) fn minute_counts(&self, now: Timestamp) -> Counts {
        self.turn(now);
        self.minute.get().map_or_else(Counts::default, |minute| self.counts(&minute.buckets, now))
    }

    /// Permits passed in the last minute.
    pub(crate) fn passed_in_minute(&self, now: Timestamp) -> u64 {
        self.minute_counts(now).passed()
    }

    /// Permits passed in the full second before the running one.
    pub(crate) fn passed_in_previous_second(&self, now: Timestamp) -> u64 {
        self.turn(now);
        self.minute.get().map_or(0, |minute| {
            minute.buckets.read(now, |view| {
                let base = |tick| view.slot(tick).map(|slot| slot.entry[PASSED].load(Ordering::Relaxed));
                match (base(view.tick()), view.tick().checked_sub(1).and_then(base)) {
                    (Some(now), Some(before)) => now.wrapping_sub(before).into(),
                    _ => 0,
                }
            })
        })
    }

    /// The response times below which the shares `q` of the calls of the last minute lie.
    pub(crate) fn quantiles<const N: usize>(&self, now: Timestamp, q: [f64; N]) -> Option<[Duration; N]> {
        self.turn(now);
        self.minute.get().and_then(|minute| minute.histogram.quantiles(now, q))
    }

    #[expect(clippy::cast_possible_truncation, reason = "bases are kept and subtracted modulo 2³²")]
    fn counts(&self, ring: &Snapshots<Slot>, now: Timestamp) -> Counts {
        ring.read(now, |view| {
            let mut counts = Counts::default();
            let (mut min, mut max) = (u64::MAX, 0);
            for slot in view.iter() {
                min = min.min(slot.rt_min_ns.load(Ordering::Relaxed));
                max = max.max(slot.rt_max_ns.load(Ordering::Relaxed));
                counts.peak = counts.peak.max(slot.peak.load(Ordering::Relaxed).into());
            }
            if min <= max {
                counts.rt_min = Some(Duration::from_nanos(min));
                counts.rt_max = Some(Duration::from_nanos(max));
            }
            let Some(oldest) = view.oldest() else { return counts };
            let since = |total: u64, base: &AtomicU32| {
                u64::from((total as u32).wrapping_sub(base.load(Ordering::Relaxed)))
            };
            let totals = self.totals();
            for i in 0..N_ENTRY {
                counts.entry[i] = since(totals.entry[i], &oldest.entry[i]);
            }
            for i in 0..N_EXIT {
                counts.exit[i] = since(totals.exit[i], &oldest.exit[i]);
            }
            counts.rt_ns = totals.rt_ns.wrapping_sub(oldest.rt_ns.load(Ordering::Relaxed));
            counts
        })
    }

    /// Whether the minute's buckets and the histogram stand.
    #[cfg(test)]
    pub(crate) fn has_minute(&self) -> bool {
        self.minute.get().is_some()
    }
}

fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
