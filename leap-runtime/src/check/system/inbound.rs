//! The live numbers of all inbound calls together, counted while a system rule stands.

use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::sync::{AtomicU64, Ordering};
use crate::window::Snapshots;

/// The window: Sentinel's entry node has 2 buckets of 500 ms, and the estimate is made of them.
const N_BUCKETS: u32 = 2;
const BUCKET: Duration = Duration::from_millis(500);
const BUCKETS_PER_SECOND: f64 = 2.0;

/// A window without a response time, or with none shorter, counts as one of 5 s.
const RT_AT_MOST_MS: f64 = 5_000.0;

/// What inbound calls write on entry and what they write on exit stand on cache lines of their own.
pub(super) struct Inbound {
    entry: Entry,
    exit: Exit,
    recent: Snapshots<Slot>,
}

#[derive(Default)]
#[repr(align(64))]
struct Entry {
    admitted: AtomicU64,
    in_flight: InFlight,
}

/// Of calls that ended with a response time: all but cancelled ones.
#[derive(Default)]
#[repr(align(64))]
struct Exit {
    completed: AtomicU64,
    /// Permits beyond the first of each call: calls = permits − extra.
    extra: AtomicU64,
    rt_ns: AtomicU64,
}

/// What the counters were when a bucket opened, and the shortest response time in it.
struct Slot {
    admitted: AtomicU64,
    completed: AtomicU64,
    extra: AtomicU64,
    rt_ns: AtomicU64,
    rt_min_ns: AtomicU64,
}

impl Inbound {
    pub(super) fn new(now: Timestamp) -> Self {
        // Every total is 0, as every base.
        let slot = || Slot {
            admitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            extra: AtomicU64::new(0),
            rt_ns: AtomicU64::new(0),
            rt_min_ns: AtomicU64::new(u64::MAX),
        };
        Self {
            entry: Entry::default(),
            exit: Exit::default(),
            recent: Snapshots::new(N_BUCKETS, BUCKET, now, slot, |_| {}),
        }
    }

    /// The word that limits on QPS decide on. It counts what they let through, whatever later checks say, so it is no
    /// statistic.
    pub(super) fn admitted(&self) -> &AtomicU64 {
        &self.entry.admitted
    }

    pub(super) fn in_flight(&self) -> &InFlight {
        &self.entry.in_flight
    }

    /// Brings the window up to `now`, which is to come before anything is counted.
    #[inline]
    pub(super) fn turn(&self, now: Timestamp) {
        if self.recent.is_due(now) {
            self.recent.turn(now, |slot| self.open(slot));
        }
    }

    #[cold]
    fn open(&self, slot: &Slot) {
        let store = |base: &AtomicU64, total: &AtomicU64| {
            base.store(total.load(Ordering::Relaxed), Ordering::Relaxed);
        };
        store(&slot.admitted, &self.entry.admitted);
        store(&slot.completed, &self.exit.completed);
        store(&slot.extra, &self.exit.extra);
        store(&slot.rt_ns, &self.exit.rt_ns);
        slot.rt_min_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// Counts a call of `n` permits that ended after `rt_ns`.
    #[inline]
    pub(super) fn complete(&self, n: u32, rt_ns: u64, now: Timestamp) {
        self.turn(now);
        let exit = &self.exit;
        exit.rt_ns.fetch_add(rt_ns, Ordering::Relaxed);
        if n > 1 {
            exit.extra.fetch_add(u64::from(n) - 1, Ordering::Relaxed);
        }
        exit.completed.fetch_add(n.into(), Ordering::Relaxed);
        let slot = self.recent.current();
        // Load, compare, and almost never store.
        if rt_ns < slot.rt_min_ns.load(Ordering::Relaxed) {
            slot.rt_min_ns.fetch_min(rt_ns, Ordering::Relaxed);
        }
    }

    /// What happened within the last second, the running bucket included.
    pub(super) fn recent(&self, now: Timestamp) -> Recent {
        self.recent.read(now, |view| {
            let Some(oldest) = view.oldest() else { return Recent::default() };
            let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
            let (mut fullest, mut before, mut rt_min_ns) = (0, read(&oldest.completed), u64::MAX);
            for slot in view.iter() {
                let opened_with = read(&slot.completed);
                fullest = fullest.max(opened_with.saturating_sub(before));
                before = opened_with;
                rt_min_ns = rt_min_ns.min(read(&slot.rt_min_ns));
            }
            // A total that is read after the slots is at least what they hold.
            let (entry, exit) = (&self.entry, &self.exit);
            let since = |total: &AtomicU64, base: &AtomicU64| read(total).saturating_sub(read(base));
            let completed = read(&exit.completed);
            Recent {
                admitted: since(&entry.admitted, &oldest.admitted),
                // Counted in two steps, so a call between them may seem to be less than nothing.
                calls: completed
                    .saturating_sub(read(&oldest.completed))
                    .saturating_sub(since(&exit.extra, &oldest.extra)),
                rt_ns: since(&exit.rt_ns, &oldest.rt_ns),
                rt_min_ns: (rt_min_ns < u64::MAX).then_some(rt_min_ns),
                fullest_bucket: fullest.max(completed.saturating_sub(before)),
            }
        })
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbound").field("in_flight", &self.in_flight().get()).finish_non_exhaustive()
    }
}

/// What happened within the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recent {
    pub(super) admitted: u64,
    /// Calls that ended with a response time, the sum of those, and the shortest.
    pub(super) calls: u64,
    pub(super) rt_ns: u64,
    pub(super) rt_min_ns: Option<u64>,
    /// The most permits that ended in one bucket.
    pub(super) fullest_bucket: u64,
}

impl Recent {
    /// The average response time in seconds; 0 where there is none.
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a second's calls")]
    pub(super) fn avg_rt(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.rt_ns as f64 / self.calls as f64 / 1e9 }
    }

    /// How many permits in flight get through without waiting for one another: the most that ended per second, times the
    /// shortest time that one took.
    ///
    /// It is Little's law at the point where a queue begins to build, as BBR uses it for connections, and Sentinel's
    /// `maxSuccessQps · minRt`. A window in which nothing ended counts as there: one permit per bucket, in 5 s each, which
    /// makes 10.
    pub(super) fn estimate(&self, as_sentinel: bool) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "permits of a bucket, and nanoseconds of a call")]
        let (ended, shortest_ns) = (self.fullest_bucket.max(1) as f64, self.rt_min_ns.map(|ns| ns as f64));
        let min_rt_ns = match shortest_ns {
            // Sentinel knows whole milliseconds.
            Some(ns) if as_sentinel => (ns / 1e6).floor().clamp(1.0, RT_AT_MOST_MS) * 1e6,
            Some(ns) => ns,
            None => RT_AT_MOST_MS * 1e6,
        };
        ended * BUCKETS_PER_SECOND * min_rt_ns / 1e9
    }
}

/// How many permits there is room for: `found` is the most that may be in flight before a call, `left` the most that it
/// may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) found: u64,
    pub(super) left: u64,
}

impl Room {
    pub(super) const ANY: Self = Self { found: u64::MAX, left: u64::MAX };
    pub(super) const NONE: Self = Self { found: 0, left: 0 };

    /// Room while no more than `estimate` permits are found in flight. One may always be, so that somebody shows how much
    /// gets through; and since the call comes on top, so may a growing number.
    pub(super) fn up_to(estimate: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1; saturates")]
        let found = estimate.max(1.0) as u64;
        Self { found, ..Self::ANY }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { found: self.found.min(other.found), left: self.left.min(other.left) }
    }

    /// Whether `n` permits may join those in flight.
    pub(super) fn fits(self, in_flight: u64, n: u32) -> bool {
        in_flight <= self.found && in_flight + u64::from(n) <= self.left
    }
}

/// The inbound permits in flight: one word, on which concurrency is decided.
#[derive(Debug, Default)]
pub(super) struct InFlight(AtomicU64);

impl InFlight {
    /// Takes `n` permits, to be given back by [`give_back`](Self::give_back); else tells how many are in flight.
    ///
    /// Looking and taking are one compare-exchange, so no two calls can take the last permit.
    #[inline]
    pub(super) fn take(&self, n: u32, room: Room) -> Result<(), u64> {
        if room == Room::ANY {
            // Acquire: as below.
            self.0.fetch_add(n.into(), Ordering::Acquire);
            return Ok(());
        }
        // Acquire: what the calls that gave these permits back have counted is seen by the one that takes them, so that it
        // and its figures never know less than that they ended.
        let taken = self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, |in_flight| {
            room.fits(in_flight, n).then(|| in_flight + u64::from(n))
        });
        taken.map(drop)
    }

    #[inline]
    pub(super) fn give_back(&self, n: u32) {
        // Release: see `take`.
        self.0.fetch_sub(n.into(), Ordering::Release);
    }

    pub(super) fn get(&self) -> u64 {
        // Relaxed: a number, asked beforehand or shown; `take` decides.
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_estimate_is_the_fullest_buckets_rate_times_the_shortest_time() {
        let inbound = Inbound::new(at(0));
        for (ended, rt_ms) in [(100, 40), (200, 20), (400, 30), (600, 80)] {
            inbound.complete(if ended < 500 { 1 } else { 5 }, rt_ms * 1_000_000, at(ended));
        }
        let recent = inbound.recent(at(700));
        assert_eq!((recent.fullest_bucket, recent.rt_min_ns), (5, Some(20_000_000)));
        assert_eq!((recent.calls, recent.rt_ns), (4, 170_000_000));
        assert!((recent.estimate(false) - 0.2).abs() < 1e-12, "10 a second of 20 ms each");
        // The bucket from 0 to 500 ms has left, and with it the shortest time.
        let recent = inbound.recent(at(1_000));
        assert_eq!((recent.fullest_bucket, recent.rt_min_ns, recent.calls), (5, Some(80_000_000), 1));
        assert_eq!(inbound.recent(at(1_500)), Recent::default());
    }

    #[test]
    fn without_history_the_estimate_is_ten() {
        for as_sentinel in [false, true] {
            assert!((Recent::default().estimate(as_sentinel) - 10.0).abs() < 1e-12);
        }
    }

    #[test]
    fn sentinels_estimate_knows_whole_milliseconds_from_1_to_5000() {
        let estimate = |rt_ns, as_sentinel| {
            let recent = Recent { fullest_bucket: 500, rt_min_ns: Some(rt_ns), ..Recent::default() };
            (recent.estimate(as_sentinel) * 1e6).round() / 1e6
        };
        assert_eq!((estimate(50_000, true), estimate(50_000, false)), (1.0, 0.05));
        assert_eq!((estimate(2_900_000, true), estimate(2_900_000, false)), (2.0, 2.9));
        assert_eq!((estimate(7_000_000_000, true), estimate(7_000_000_000, false)), (5_000.0, 7_000.0));
    }

    #[test]
    fn an_average_is_of_calls_and_not_of_permits() {
        let inbound = Inbound::new(at(0));
        inbound.complete(9, 10_000_000, at(10));
        inbound.complete(1, 30_000_000, at(20));
        assert!((inbound.recent(at(20)).avg_rt() - 0.02).abs() < 1e-12);
        assert!(inbound.recent(at(1_020)).avg_rt() == 0.0);
    }

    #[test]
    fn room_has_two_ends() {
        let room = Room { found: 10, left: u64::MAX }.and(Room { found: u64::MAX, left: 12 });
        assert!(room.fits(10, 2) && !room.fits(10, 3) && !room.fits(11, 1));
        assert!(Room::ANY.fits(1 << 40, u32::MAX));
    }
}

#[cfg(all(test, leap_loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    /// Three calls at once where two may be in flight: by a limit (one permit each, 2 left), or as Sentinel counts (1 found).
    fn never_more_than_two(room: Room) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let (in_flight, inside) = (Arc::new(InFlight::default()), Arc::new(AtomicU64::new(0)));
            // What a call writes before it gives its permit back.
            let ended = Arc::new(AtomicU64::new(0));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (in_flight, inside, ended) = (in_flight.clone(), inside.clone(), ended.clone());
                    loom::thread::spawn(move || {
                        if in_flight.take(1, room).is_ok() {
                            assert!(inside.fetch_add(1, Ordering::Relaxed) < 2, "three at once");
                            inside.fetch_sub(1, Ordering::Relaxed);
                            ended.fetch_add(1, Ordering::Relaxed);
                            in_flight.give_back(1);
                            1
                        } else {
                            0
                        }
                    })
                })
                .collect();
            let passed: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert!(passed >= 2);
            assert_eq!((in_flight.get(), ended.load(Ordering::Relaxed)), (0, passed));
        });
    }

    #[test]
    fn never_more_in_flight_than_a_limit_leaves_and_every_permit_comes_back() {
        never_more_than_two(Room { found: u64::MAX, left: 2 });
    }

    #[test]
    fn never_more_in_flight_than_one_above_what_may_be_found() {
        never_more_than_two(Room { found: 1, left: u64::MAX });
    }

    #[test]
    fn who_takes_the_last_permit_sees_what_its_giver_counted() {
        loom::model(|| {
            let (in_flight, ended) = (Arc::new(InFlight::default()), Arc::new(AtomicU64::new(0)));
            let room = Room { found: u64::MAX, left: 1 };
            in_flight.take(1, room).unwrap();
            let giver = {
                let (in_flight, ended) = (in_flight.clone(), ended.clone());
                loom::thread::spawn(move || {
                    ended.store(1, Ordering::Relaxed);
                    in_flight.give_back(1);
                })
            };
            if in_flight.take(1, room).is_ok() {
                assert_eq!(ended.load(Ordering::Relaxed), 1);
            }
            giver.join().unwrap();
        });
    }
}
