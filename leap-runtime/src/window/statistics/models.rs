//! Turning the ring against adding and reading, under every schedule of two or three threads.

use loom::{model::Builder, sync::Arc, thread};

use super::*;

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

fn time(tick: u64) -> Timestamp {
    Timestamp::from_millis(tick)
}

/// Two totals that are always raised in this order, and both kept per bucket.
struct Counters {
    ring: Snapshots<[AtomicU64; 2]>,
    totals: [AtomicU64; 2],
}

impl Counters {
    fn new(n_buckets: u32) -> Arc<Self> {
        let slot = || [AtomicU64::new(0), AtomicU64::new(0)];
        Arc::new(Self {
            ring: Snapshots::new(n_buckets, Duration::from_millis(1), time(0), slot, |_| {}),
            totals: slot(),
        })
    }

    fn open(&self, slot: &[AtomicU64; 2]) {
        // The second first: so a snapshot, too, never has more of it than of the first.
        let second = self.totals[1].load(Acquire);
        let first = self.totals[0].load(Acquire);
        slot[1].store(second, Relaxed);
        slot[0].store(first, Relaxed);
    }

    fn add(&self, now: Timestamp) {
        if self.ring.is_due(now) {
            self.ring.turn(now, |slot| self.open(slot));
        }
        self.totals[0].fetch_add(1, Relaxed);
        self.totals[1].fetch_add(1, Release);
    }

    /// The bases and then the totals, as one view has them.
    fn read(&self, now: Timestamp) -> Option<([u64; 2], [u64; 2])> {
        self.ring.read(now, |view| {
            let slot = view.oldest()?;
            let bases = [slot[0].load(Relaxed), slot[1].load(Relaxed)];
            let second = self.totals[1].load(Acquire);
            Some((bases, [self.totals[0].load(Relaxed), second]))
        })
    }
}

#[test]
fn no_add_is_lost_while_the_ring_turns() {
    check(3, || {
        let counters = Counters::new(2);
        counters.add(time(0));
        let adder = {
            let counters = Arc::clone(&counters);
            thread::spawn(move || counters.add(time(1)))
        };
        counters.add(time(1));
        adder.join().unwrap();
        let (bases, totals) = counters.read(time(1)).unwrap();
        assert_eq!((bases, totals), ([0, 0], [3, 3]));
        // The bucket of tick 1 opened with the first add and possibly with one that found it turning.
        let base = counters.read(time(2)).map(|(bases, _)| bases[0]).unwrap();
        assert!((1..=2).contains(&base), "{base}");
    });
}

#[test]
fn a_reader_never_sees_half_a_turn() {
    check(3, || {
        let counters = Counters::new(1);
        counters.add(time(0));
        let adder = {
            let counters = Arc::clone(&counters);
            thread::spawn(move || (1..3).for_each(|tick| counters.add(time(tick))))
        };
        for now in 0..2 {
            if let Some((bases, totals)) = counters.read(time(now)) {
                assert_eq!(bases[0], bases[1], "one thread adds: it opens with both totals equal");
                assert!(bases[0] <= totals[0] && bases[1] <= totals[1], "{bases:?} {totals:?}");
            }
        }
        adder.join().unwrap();
        assert_eq!(counters.read(time(2)), Some(([2, 2], [3, 3])));
    });
}

#[test]
fn a_base_is_never_above_the_total_that_is_read_after_it() {
    check(2, || {
        let counters = Counters::new(2);
        let adders = [1, 2].map(|tick| {
            let counters = Arc::clone(&counters);
            thread::spawn(move || counters.add(time(tick)))
        });
        if let Some((bases, totals)) = counters.read(time(1)) {
            assert!(bases[0] <= totals[0] && bases[1] <= totals[1], "{bases:?} {totals:?}");
            assert!(bases[0] >= bases[1] && totals[0] >= totals[1], "{bases:?} {totals:?}");
        }
        for adder in adders {
            adder.join().unwrap();
        }
        assert_eq!(counters.ring.head(), counters.ring.tick(time(0)));
    });
}

#[test]
fn who_waits_for_the_turn_finds_the_bucket_open() {
    check(3, || {
        let counters = Counters::new(1);
        counters.add(time(0));
        let turners = [1, 1].map(|tick| {
            let counters = Arc::clone(&counters);
            thread::spawn(move || {
                counters.ring.turn_or_wait(time(tick), |slot| counters.open(slot));
                assert_eq!(counters.ring.head(), tick);
                let (bases, _) = counters.read(time(tick)).unwrap();
                assert_eq!(bases, [1, 1]);
                assert!(!counters.ring.is_due(time(tick)));
            })
        });
        for turner in turners {
            turner.join().unwrap();
        }
    });
}

#[test]
fn what_a_bucket_keeps_for_itself_is_reset_before_it_is_current() {
    check(3, || {
        // A maximum per bucket, as nodes keep it; 9 is from long ago.
        let ring =
            Arc::new(Snapshots::new(1, Duration::from_millis(1), time(0), || AtomicU64::new(9), |_| {}));
        let turner = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.turn(time(1), |slot| slot.store(0, Relaxed)))
        };
        if ring.head() == 1 {
            assert_eq!(ring.current().load(Relaxed), 0);
        }
        assert!(turner.join().unwrap());
    });
}
