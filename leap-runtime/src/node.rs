//! The live numbers of a resource.
//!
//! Counters only grow. What happened in the last second or minute is the difference between a counter now and what it
//! was when a bucket opened; the same counters are the totals since the start. `passed` is the word that window rules
//! decide on; everything else decides nothing.
//!
//! What calls write on entry and what they write on exit stand on cache lines of their own: in a busy service they
//! are written by different threads. Where several threads write the same at once, each gets a place of its own
//! ([`lanes`]).

mod lanes;

use std::array;
use std::fmt;
use std::slice;
use std::time::Duration;

use once_cell::sync::OnceCell;

use self::lanes::{Company, Lane, Lanes};
use crate::blocked::Cause;
use crate::clock::Timestamp;
use crate::event::Outcome;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::window::{Histogram, ResponseTimes, Snapshots};

const N_CAUSES: usize = Cause::ALL.len();
const N_OUTCOMES: usize = 4;

/// A group of words on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

/// The live numbers of a resource.
#[derive(Debug)]
pub(crate) struct Node {
    entry: Line<EntryTotals>,
    exit: Line<Exit>,
    second: Snapshots<Slot>,
    /// Allocated with the first call.
    minute: OnceCell<Box<Minute>>,
}

/// What calls write when they enter or are blocked.
#[derive(Debug, Default)]
struct EntryTotals {
    passed: AtomicU64,
    /// Permits beyond the first of each call: calls = permits − extra. Written only by calls of several permits.
    extra: AtomicU64,
    /// Permits passed whose calls have not started yet: they are paced, and in flight only when they run.
    waiting: AtomicU64,
    blocked: [AtomicU64; N_CAUSES],
    /// In the rest of the second line.
    company: Company,
}

/// What calls write when they end, or where they do so instead.
#[derive(Debug, Default)]
struct Exit {
    totals: ExitTotals,
    /// Allocated when several threads are seen to count at once. From then on nobody writes this line.
    lanes: OnceCell<Box<Lanes>>,
}

/// What calls write when they end.
#[derive(Debug, Default)]
struct ExitTotals {
    outcomes: [AtomicU64; N_OUTCOMES],
    /// As `extra` above, of the calls that have a response time (all but cancelled ones).
    extra_timed: AtomicU64,
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

/// What the counters were when a bucket opened, and the extremes seen in it.
///
/// Permits are kept whole, because bytes may be charged as permits; what counts calls is kept modulo 2³².
#[derive(Debug)]
struct Slot {
    passed: AtomicU64,
    outcomes: [AtomicU64; N_OUTCOMES],
    rt_ns: AtomicU64,
    rt_min_ns: AtomicU64,
    rt_max_ns: AtomicU64,
    extra: AtomicU32,
    extra_timed: AtomicU32,
    blocked: [AtomicU32; N_CAUSES],
    peak: AtomicU32,
}

impl Slot {
    fn new() -> Self {
        Self {
            passed: AtomicU64::new(0),
            outcomes: Default::default(),
            rt_ns: AtomicU64::new(0),
            rt_min_ns: AtomicU64::new(u64::MAX),
            rt_max_ns: AtomicU64::new(0),
            extra: AtomicU32::new(0),
            extra_timed: AtomicU32::new(0),
            blocked: Default::default(),
            peak: AtomicU32::new(0),
        }
    }

    /// Load, compare, and almost never store.
    #[inline]
    fn is_new_peak(&self, in_flight: u64) -> bool {
        in_flight > self.peak.load(Ordering::Relaxed).into()
    }

    fn note_peak(&self, in_flight: u64) {
        self.peak.fetch_max(u32::try_from(in_flight).unwrap_or(u32::MAX), Ordering::Relaxed);
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

/// The counters at a moment, over all lanes.
#[derive(Debug, Default)]
struct Totals {
    passed: u64,
    extra: u64,
    blocked: [u64; N_CAUSES],
    outcomes: [u64; N_OUTCOMES],
    extra_timed: u64,
    rt_ns: u64,
}

/// What happened in a span, in permits unless it says calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) passed_calls: u64,
    pub(crate) blocked: [u64; N_CAUSES],
    pub(crate) outcomes: [u64; N_OUTCOMES],
    /// The calls that have a response time.
    pub(crate) timed_calls: u64,
    pub(crate) rt_ns: u64,
    pub(crate) rt_min: Option<Duration>,
    pub(crate) rt_max: Option<Duration>,
    pub(crate) peak: u64,
}

impl Counts {
    pub(crate) fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
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

    /// The word that window rules decide on. With [lanes](lanes) it is not all that passed: see [`pass`](Self::pass).
    #[inline]
    pub(crate) fn passed(&self) -> &AtomicU64 {
        &self.entry.0.passed
    }

    /// Whether a bucket should have opened by `now`: [`turn`](Self::turn) is to come before anything is counted or read.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.second.is_due(now)
    }

    /// Brings the statistics up to `now`. A bucket of the minute opens only where one of the second does, so one look
    /// serves both.
    #[cold]
    pub(crate) fn turn(&self, now: Timestamp) {
        self.entry.0.company.forget();
        self.second.turn(now, |slot| self.open(slot));
        if let Some(minute) = self.minute.get() {
            if minute.buckets.is_due(now) {
                minute.buckets.turn(now, |slot| self.open(slot));
                minute.histogram.turn(now, || self.response_times());
            }
            // What a second's bucket starts with, nobody notes after it: a call that committed before it opened and
            // notes its peak only now would be silent about the minute.
            minute.buckets.current().note_peak(self.second.current().peak.load(Ordering::Relaxed).into());
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "kept and subtracted modulo 2³²")]
    fn open(&self, slot: &Slot) {
        let totals = self.totals();
        for (base, total) in slot.outcomes.iter().zip(totals.outcomes) {
            base.store(total, Ordering::Relaxed);
        }
        for (base, total) in slot.blocked.iter().zip(totals.blocked) {
            base.store(total as u32, Ordering::Relaxed);
        }
        slot.passed.store(totals.passed, Ordering::Relaxed);
        slot.extra.store(totals.extra as u32, Ordering::Relaxed);
        slot.extra_timed.store(totals.extra_timed as u32, Ordering::Relaxed);
        slot.rt_ns.store(totals.rt_ns, Ordering::Relaxed);
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

    /// Counts a call of `n` permits that is let through where nobody decides on their number.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a handful of instructions")]
    pub(crate) fn pass(&self, n: u32, now: Timestamp) {
        let after = match self.exit.0.lanes.get() {
            // Relaxed, both: nobody decides on it.
            None => self.passed().fetch_add(n.into(), Ordering::Relaxed) + u64::from(n),
            Some(lanes) => lanes.own().passed.fetch_add(n.into(), Ordering::Relaxed),
        };
        self.enter(after, n, now);
    }

    /// Notes a call of `n` permits that was let through and left `passed` at `after`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a handful of instructions")]
    pub(crate) fn enter(&self, after: u64, n: u32, now: Timestamp) {
        if n > 1 {
            self.entry.0.extra.fetch_add(u64::from(n) - 1, Ordering::Relaxed);
        }
        // After this call's commit too: had there been lanes before it, somebody who ended in one would be missed below.
        if let Some(lanes) = self.exit.0.lanes.get() {
            return self.look_if_due(lanes, now);
        }
        // `completed` is read after this call's own commit, and calls wait before they commit, so the difference is never too
        // high. Relaxed: what ended before this call began, in the order that its caller can know of, is seen; nothing else
        // is promised.
        let idle = completed(&self.exit.0.totals) + self.n_waiting();
        let in_flight = after.saturating_sub(idle);
        self.note_peak(in_flight, now);
        if in_flight > n.into() {
            self.note_company();
        }
    }

    /// A call has entered while another one was in flight.
    #[inline]
    fn note_company(&self) {
        if self.entry.0.company.add() {
            self.make_lanes();
        }
    }

    #[cold]
    #[inline(never)]
    fn make_lanes(&self) {
        self.exit.0.lanes.get_or_init(|| Box::new(Lanes::new()));
    }

    /// Notes how many are in flight, if nobody has for a while.
    #[inline]
    fn look_if_due(&self, lanes: &Lanes, now: Timestamp) {
        if lanes.is_time_to_look(now) {
            self.look(now);
        }
    }

    /// Notes how many are in flight.
    #[cold]
    #[inline(never)]
    fn look(&self, now: Timestamp) {
        self.note_peak(self.in_flight(), now);
    }

    fn each_lane(&self) -> slice::Iter<'_, Lane> {
        self.exit.0.lanes.get().map_or(&[][..], |lanes| lanes.all()).iter()
    }

    /// What lanes have counted of response times.
    fn response_times(&self) -> impl Iterator<Item = &ResponseTimes> + Clone {
        self.each_lane().map(|lane| &lane.response_times)
    }

    /// The word that counts who has passed and not started: raised by whoever is about to pass and wait.
    #[inline]
    pub(crate) fn waiting(&self) -> &AtomicU64 {
        &self.entry.0.waiting
    }

    /// Permits passed whose calls have not started.
    #[inline]
    pub(crate) fn n_waiting(&self) -> u64 {
        self.waiting().load(Ordering::Relaxed)
    }

    /// Notes a call of `n` permits that was let through and waits for its start.
    pub(crate) fn enter_waiting(&self, n: u32, now: Timestamp) {
        if n > 1 {
            self.entry.0.extra.fetch_add(u64::from(n) - 1, Ordering::Relaxed);
        }
        self.minute(now);
    }

    /// Notes that such a call starts.
    pub(crate) fn start(&self, n: u32, now: Timestamp) {
        self.entry.0.waiting.fetch_sub(n.into(), Ordering::Relaxed);
        self.note_peak(self.in_flight(), now);
    }

    /// Notes that such a call has ended without a start: after [`complete`](Self::complete), so that it is in flight at no
    /// moment.
    pub(crate) fn stop_waiting(&self, n: u32) {
        self.entry.0.waiting.fetch_sub(n.into(), Ordering::Relaxed);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "nearly every call comes by, and has nothing to note")]
    fn note_peak(&self, in_flight: u64, now: Timestamp) {
        if self.second.current().is_new_peak(in_flight) {
            self.note_new_peak(in_flight, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_new_peak(&self, in_flight: u64, now: Timestamp) {
        self.second.current().note_peak(in_flight);
        self.minute(now).buckets.current().note_peak(in_flight);
    }

    /// Counts a call of `n` permits that was blocked.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a handful of instructions")]
    pub(crate) fn block(&self, cause: Cause, n: u32, now: Timestamp) {
        self.minute(now);
        match self.exit.0.lanes.get() {
            None => {
                let blocked = &self.entry.0.blocked[cause as usize];
                if !lanes::add(blocked, n.into(), Ordering::Relaxed) {
                    self.note_company();
                }
            }
            Some(lanes) => lanes::count(&lanes.own().blocked.0[cause as usize], n.into(), Ordering::Relaxed),
        }
    }

    /// Notes `n` permits that were charged to a running call: they are in flight with it.
    pub(crate) fn charge(&self, n: u64, now: Timestamp) {
        self.entry.0.extra.fetch_add(n, Ordering::Relaxed);
        self.note_peak(self.in_flight(), now);
    }

    /// Counts a call of `permits` that ended.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "every call comes by")]
    pub(crate) fn complete(&self, outcome: Outcome, permits: u64, rt_ns: u64, now: Timestamp) {
        let minute = self.minute(now);
        let lanes = self.exit.0.lanes.get();
        let (exit, response_times) = match lanes {
            None => (&self.exit.0.totals, minute.histogram.counts()),
            Some(lanes) => {
                // While this call is in flight: who was so for long enough is looked at, also where nobody enters any more.
                self.look_if_due(lanes, now);
                let lane = lanes.own();
                (&lane.exit, &lane.response_times)
            }
        };
        if outcome != Outcome::Cancelled {
            exit.rt_ns.fetch_add(rt_ns, Ordering::Relaxed);
            response_times.record(rt_ns);
            if self.second.current().note_rt(rt_ns) {
                minute.buckets.current().note_rt(rt_ns);
            }
            if permits > 1 {
                exit.extra_timed.fetch_add(permits - 1, Ordering::Relaxed);
            }
        }
        // Last, so that a call that is no longer in flight has left its numbers. Release, for the same reason.
        let counter = &exit.outcomes[outcome as usize];
        match lanes {
            None => _ = counter.fetch_add(permits, Ordering::Release),
            Some(_) => lanes::count(counter, permits, Ordering::Release),
        }
    }

    fn completed(&self) -> u64 {
        self.each_exit().map(completed).fold(0, u64::wrapping_add)
    }

    fn each_exit(&self) -> impl Iterator<Item = &ExitTotals> {
        self.each_lane().map(|lane| &lane.exit).chain([&self.exit.0.totals])
    }

    /// All that passed.
    fn passed_in_all(&self) -> u64 {
        // Acquire: as in `totals`.
        let passed = |word: &AtomicU64| word.load(Ordering::Acquire);
        self.each_lane().map(|lane| passed(&lane.passed)).fold(passed(self.passed()), u64::wrapping_add)
    }

    /// A number that is another one once anything was counted. Only where nobody is counting is it of a single moment.
    pub(crate) fn activity(&self) -> u64 {
        let blocked = self.blocked().into_iter();
        blocked.chain([self.passed_in_all(), self.completed()]).fold(0, u64::wrapping_add)
    }

    /// A moment before which everything was counted that was counted so far: a bucket opens first.
    pub(crate) fn active_before(&self) -> Timestamp {
        self.second.start(self.second.head() + 1)
    }

    /// Permits passed, started and not yet completed. Read again while calls end in between, at most 8 times.
    pub(crate) fn in_flight(&self) -> u64 {
        let mut completed = self.completed();
        let mut passed = 0;
        for _ in 0..8 {
            passed = self.passed_in_all().saturating_sub(self.n_waiting());
            let again = self.completed();
            if again == completed {
                break;
            }
            completed = again;
        }
        passed.saturating_sub(completed)
    }

    fn blocked(&self) -> [u64; N_CAUSES] {
        let each = || self.each_lane().map(|lane| &lane.blocked.0).chain([&self.entry.0.blocked]);
        let load = |i: usize| move |blocked: &[AtomicU64; N_CAUSES]| blocked[i].load(Ordering::Acquire);
        array::from_fn(|i| each().map(load(i)).fold(0, u64::wrapping_add))
    }

    /// The counters since the start.
    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        // In this order: whoever is seen to have completed is seen to have passed.
        for exit in self.each_exit() {
            for (sum, total) in totals.outcomes.iter_mut().zip(&exit.outcomes) {
                *sum = sum.wrapping_add(total.load(Ordering::Acquire));
            }
            totals.extra_timed = totals.extra_timed.wrapping_add(exit.extra_timed.load(Ordering::Acquire));
            totals.rt_ns = totals.rt_ns.wrapping_add(exit.rt_ns.load(Ordering::Acquire));
        }
        // Calls are the difference, so both are read again while calls of several permits come in between, at most 8 times.
        let extra = || self.entry.0.extra.load(Ordering::Acquire);
        for _ in 0..8 {
            totals.extra = extra();
            totals.passed = self.passed_in_all();
            if extra() == totals.extra {
                break;
            }
        }
        totals.blocked = self.blocked();
        totals
    }

    /// What was counted since the start. Extremes are not kept that long.
    pub(crate) fn since_start(&self) -> Counts {
        let Totals { passed, extra, blocked, outcomes, extra_timed, rt_ns } = self.totals();
        Counts {
            passed,
            passed_calls: passed.saturating_sub(extra),
            blocked,
            outcomes,
            timed_calls: timed(&outcomes).saturating_sub(extra_timed),
            rt_ns,
            ..Counts::default()
        }
    }

    /// What happened in the last second, the running bucket included.
    pub(crate) fn second(&self, now: Timestamp) -> Counts {
        self.counts(&self.second, now)
    }

    /// What happened in the last minute, the running second included.
    pub(crate) fn minute_counts(&self, now: Timestamp) -> Counts {
        self.minute.get().map_or_else(Counts::default, |minute| self.counts(&minute.buckets, now))
    }

    /// Permits passed in the full second before the running one.
    pub(crate) fn passed_in_previous_second(&self, now: Timestamp) -> u64 {
        self.minute.get().map_or(0, |minute| {
            minute.buckets.read(now, |view| {
                let base = |tick| view.slot(tick).map(|slot| slot.passed.load(Ordering::Relaxed));
                match (base(view.tick()), view.tick().checked_sub(1).and_then(base)) {
                    (Some(now), Some(before)) => now.wrapping_sub(before),
                    _ => 0,
                }
            })
        })
    }

    /// The response times below which the shares `q` of the calls of the last minute lie.
    pub(crate) fn quantiles<const N: usize>(&self, now: Timestamp, q: [f64; N]) -> Option<[Duration; N]> {
        self.minute.get().and_then(|minute| minute.histogram.quantiles(now, q, || self.response_times()))
    }

    #[expect(clippy::cast_possible_truncation, reason = "kept and subtracted modulo 2³²")]
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
            let totals = self.totals();
            let since = |total: u64, base: &AtomicU64| total.wrapping_sub(base.load(Ordering::Relaxed));
            let since_u32 =
                |total: u64, base: &AtomicU32| (total as u32).wrapping_sub(base.load(Ordering::Relaxed));
            counts.passed = since(totals.passed, &oldest.passed);
            counts.rt_ns = since(totals.rt_ns, &oldest.rt_ns);
            for i in 0..N_OUTCOMES {
                counts.outcomes[i] = since(totals.outcomes[i], &oldest.outcomes[i]);
            }
            for i in 0..N_CAUSES {
                counts.blocked[i] = since_u32(totals.blocked[i], &oldest.blocked[i]).into();
            }
            // Calls are permits less the extra ones, all modulo 2³².
            let extra = since_u32(totals.extra, &oldest.extra);
            let extra_timed = since_u32(totals.extra_timed, &oldest.extra_timed);
            // A call whose permits were counted before the oldest bucket opened and the extra ones after it leaves less
            // than nothing.
            let calls = |permits: u64, extra: u32| match (permits as u32).wrapping_sub(extra) {
                calls if calls > u32::MAX / 2 => 0,
                calls => calls.into(),
            };
            counts.passed_calls = calls(counts.passed, extra);
            counts.timed_calls = calls(timed(&counts.outcomes), extra_timed);
            counts
        })
    }
}

#[inline]
fn completed(exit: &ExitTotals) -> u64 {
    exit.outcomes.iter().map(|total| total.load(Ordering::Acquire)).fold(0, u64::wrapping_add)
}

/// Permits of calls that have a response time.
fn timed(outcomes: &[u64; N_OUTCOMES]) -> u64 {
    // Wrapping: of a slot that was opened anew meanwhile there may be less than nothing, before it is read again.
    let sum = outcomes.iter().copied().fold(0, u64::wrapping_add);
    sum.wrapping_sub(outcomes[Outcome::Cancelled as usize])
}

fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_minute_is_allocated_by_the_first_call() {
        let node = Node::new(10, Timestamp::ZERO);
        node.turn(Timestamp::from_millis(500));
        assert_eq!(node.second(Timestamp::from_millis(500)).passed, 0);
        assert!(node.minute.get().is_none());
        node.enter(node.passed().fetch_add(1, Ordering::AcqRel) + 1, 1, Timestamp::from_millis(500));
        assert!(node.minute.get().is_some());
    }

    #[test]
    fn a_peak_that_is_noted_only_after_a_bucket_opened_reaches_the_minute() {
        let (node, later) = (Node::new(10, Timestamp::ZERO), Timestamp::from_millis(100));
        node.enter(node.passed().fetch_add(1, Ordering::AcqRel) + 1, 1, Timestamp::ZERO);
        // A call of 5 commits, another one opens the next bucket, and then the first goes on.
        let after = node.passed().fetch_add(5, Ordering::AcqRel) + 5;
        node.turn(later);
        node.enter(after, 5, Timestamp::ZERO);
        assert_eq!((node.second(later).peak, node.minute_counts(later).peak), (6, 6));
    }

    /// A node that has lanes, and has counted one call.
    fn contended() -> Node {
        let node = Node::new(10, Timestamp::ZERO);
        node.pass(1, Timestamp::ZERO);
        node.complete(Outcome::Success, 1, 1_000, Timestamp::ZERO);
        node.make_lanes();
        node
    }

    #[test]
    fn lanes_are_made_where_a_thousand_calls_in_a_bucket_have_company() {
        let now = |bucket: u64| Timestamp::from_millis(100 * bucket);
        let enter_and_end = |node: &Node, now| {
            node.pass(1, now);
            node.complete(Outcome::Success, 1, 1_000, now);
        };
        // One at a time, any number of them.
        let alone = Node::new(10, Timestamp::ZERO);
        (0..10_000).for_each(|_| enter_and_end(&alone, Timestamp::ZERO));
        assert!(alone.exit.0.lanes.get().is_none());
        // Beside one that runs all the time.
        let node = Node::new(10, Timestamp::ZERO);
        node.pass(1, Timestamp::ZERO);
        for bucket in 1..100 {
            (0..lanes::MANY).for_each(|_| enter_and_end(&node, now(bucket - 1)));
            assert!(node.exit.0.lanes.get().is_none());
            node.turn(now(bucket));
        }
        (0..=lanes::MANY).for_each(|_| enter_and_end(&node, now(99)));
        assert!(node.exit.0.lanes.get().is_some());
        assert_eq!((node.in_flight(), node.since_start().passed), (1, 1 + 100 * lanes::MANY + 1));
    }

    #[test]
    fn what_lanes_count_is_told_with_what_was_counted_before_them() {
        let (node, now) = (contended(), Timestamp::from_millis(50));
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let node = &node;
                scope.spawn(move || {
                    for _ in 0..thread {
                        // As a collision would have it: every lane is used.
                        lanes::move_over();
                        node.pass(2, now);
                        node.block(Cause::Breaker, 3, now);
                        node.complete(Outcome::Exception, 2, 2_000, now);
                    }
                });
            }
        });
        let told = |counts: Counts| {
            let calls = (counts.passed_calls, counts.timed_calls, counts.rt_ns);
            (counts.passed, calls, counts.outcomes, counts.blocked[Cause::Breaker as usize])
        };
        let expected = (57, (29, 29, 57_000), [1, 56, 0, 0], 84);
        assert_eq!(told(node.since_start()), expected);
        assert_eq!(told(node.second(now)), expected);
        assert_eq!(told(node.minute_counts(now)), expected);
        assert_eq!((node.in_flight(), node.activity()), (0, 57 + 57 + 84));
        let [median] = node.quantiles(now, [0.5]).unwrap();
        assert!((1_900..2_100).contains(&median.as_nanos()), "{median:?}");
        // And a second later it is out of the second.
        let later = Timestamp::from_millis(1_050);
        node.turn(later);
        assert_eq!((node.second(later).passed, node.minute_counts(later).passed), (0, 57));
    }

    #[test]
    fn with_lanes_the_peak_is_looked_at_once_in_ten_microseconds() {
        let node = contended();
        let at = |us| Timestamp::from_millis(200).saturating_add(Duration::from_micros(us));
        node.turn(at(0));
        let enter = |us| {
            node.pass(1, at(us));
            node.second(at(us)).peak
        };
        assert_eq!([0, 1, 9, 10, 19, 20].map(enter), [1, 1, 1, 4, 4, 6]);
        // A bucket starts with those in flight.
        node.turn(Timestamp::from_millis(300));
        assert_eq!(node.second(Timestamp::from_millis(300)).peak, 6);
    }

    #[test]
    fn what_is_read_while_its_slot_is_opened_anew_is_read_again_and_no_panic() {
        // Fewer than when it opened: 3 successes, 1 cancelled.
        assert_eq!(timed(&[0_u64.wrapping_sub(3), 5, 0, 0_u64.wrapping_sub(1)]), 2);
    }

    #[test]
    fn with_lanes_a_peak_that_lasts_is_seen_by_the_first_call_that_ends_it() {
        let node = contended();
        let at = |us| Timestamp::from_millis(200).saturating_add(Duration::from_micros(us));
        node.turn(at(0));
        // All come before the next look, and nobody comes after them.
        (0..7).for_each(|us| node.pass(1, at(us)));
        let end = |us| {
            node.complete(Outcome::Success, 1, 1_000, at(us));
            node.second(at(us)).peak
        };
        assert_eq!([9, 10, 30].map(end), [1, 6, 6], "one has ended before the look");
        assert_eq!((node.second(at(30)).peak, node.minute_counts(at(30)).peak), (6, 6));
    }

    #[test]
    fn a_call_that_is_counted_while_a_bucket_opens_leaves_no_less_than_nothing() {
        let node = Node::new(10, Timestamp::ZERO);
        let after = node.passed().fetch_add(5, Ordering::AcqRel) + 5;
        node.turn(Timestamp::from_millis(100));
        node.enter(after, 5, Timestamp::ZERO);
        assert_eq!(node.second(Timestamp::from_millis(99)).passed_calls, 1);
        assert_eq!(node.second(Timestamp::from_millis(1_050)).passed_calls, 0);
    }
}

#[cfg(all(test, leap_loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn calls_in_flight_over_lanes_are_told_as_at_one_moment() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            // All of a model's threads are one to the operating system.
            lanes::NUMBER.set(0);
            let node = Node::new(1, Timestamp::ZERO);
            // One enters before there are lanes, and ends in one of them.
            node.pass(1, Timestamp::ZERO);
            node.make_lanes();
            let node = Arc::new(node);
            let other = Arc::clone(&node);
            let other = thread::spawn(move || {
                lanes::move_over();
                other.pass(1, Timestamp::ZERO);
                other.complete(Outcome::Success, 1, 1, Timestamp::ZERO);
            });
            let seen = node.in_flight();
            assert!((1..=2).contains(&seen), "{seen} of 2 in flight, one of them for sure");
            node.complete(Outcome::Success, 1, 1, Timestamp::ZERO);
            other.join().unwrap();
            let counts = node.since_start();
            assert_eq!((counts.passed, counts.of(Outcome::Success), node.in_flight()), (2, 2, 0));
        });
    }
}
