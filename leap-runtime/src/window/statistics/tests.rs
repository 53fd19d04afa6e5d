use proptest::{collection::vec, prelude::*};

use super::*;

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

const BUCKET: Duration = Duration::from_millis(100);

/// One total and its ring.
struct Counter {
    ring: Snapshots<AtomicU64>,
    total: AtomicU64,
}

impl Counter {
    fn new(n_buckets: u32, now: Timestamp, total: u64) -> Self {
        let open = |slot: &AtomicU64| slot.store(total, Relaxed);
        Self {
            ring: Snapshots::new(n_buckets, BUCKET, now, || AtomicU64::new(0), open),
            total: AtomicU64::new(total),
        }
    }

    fn turn(&self, now: Timestamp) -> bool {
        self.ring.turn(now, |slot| slot.store(self.total.load(Relaxed), Relaxed))
    }

    fn add(&self, now: Timestamp, n: u64) {
        if self.ring.is_due(now) {
            assert!(self.turn(now));
        }
        self.total.fetch_add(n, Relaxed);
    }

    fn sum(&self, now: Timestamp) -> u64 {
        self.ring.read(now, |view| {
            view.oldest().map_or(0, |base| {
                let base = base.load(Relaxed);
                self.total.load(Relaxed) - base
            })
        })
    }

    fn bases(&self, now: Timestamp) -> Vec<u64> {
        self.ring.read(now, |view| view.iter().map(|slot| slot.load(Relaxed)).collect())
    }
}

#[test]
fn a_bucket_is_due_from_its_first_moment() {
    let counter = Counter::new(2, ms(120), 0);
    assert!(!counter.ring.is_due(Timestamp::ZERO));
    assert!(!counter.ring.is_due(ms(199)));
    assert!(counter.ring.is_due(ms(200)));
    assert!(counter.turn(ms(230)));
    assert!(!counter.ring.is_due(ms(299)));
    assert!(counter.ring.is_due(ms(300)));
}

#[test]
fn every_missing_bucket_opens_but_at_most_one_lap() {
    let counter = Counter::new(4, ms(0), 7);
    let opened = |now: u64| {
        let mut opened = 0;
        assert!(counter.ring.turn(ms(now), |_| opened += 1));
        (opened, counter.ring.head())
    };
    assert_eq!(opened(0), (0, 0));
    assert_eq!(opened(100), (1, 1));
    assert_eq!(opened(350), (2, 3));
    assert_eq!(opened(200), (0, 3)); // a late clock
    assert_eq!(opened(799), (4, 7));
    assert_eq!(opened(1 << 40), (4, (1 << 40) / 100));
}

#[test]
fn who_finds_it_turning_passes_by() {
    let counter = Counter::new(2, ms(0), 0);
    counter.ring.turn(ms(100), |_| {
        assert!(!counter.turn(ms(100)), "nobody waits");
        assert_eq!(counter.ring.head(), 0, "the new bucket shows when it is open");
    });
    assert!(counter.turn(ms(100)), "it is open: there is nothing left to do");
    assert_eq!(counter.ring.head(), 1);
}

#[test]
fn a_view_has_the_open_slots_of_the_last_interval() {
    let counter = Counter::new(3, ms(0), 0);
    for (now, n) in [(0, 1), (100, 2), (200, 4), (300, 8)] {
        counter.add(ms(now), n);
    }
    assert_eq!(counter.bases(ms(300)), [1, 3, 7]);
    assert_eq!(counter.bases(ms(0)), [1, 3, 7]); // a late question counts at the head
    assert_eq!(counter.bases(ms(400)), [3, 7]);
    assert_eq!(counter.bases(ms(599)), [7]);
    assert_eq!(counter.bases(ms(600)), [0; 0]);
    let sums: Vec<_> = [300, 400, 500, 600].into_iter().map(|now| counter.sum(ms(now))).collect();
    assert_eq!(sums, [14, 12, 8, 0]);
    counter.ring.read(ms(400), |view| {
        assert_eq!((view.first(), view.tick()), (2, 4));
        let slots: Vec<_> = (1..6).map(|tick| view.slot(tick).map(|slot| slot.load(Relaxed))).collect();
        assert_eq!(slots, [None, Some(3), Some(7), None, None]);
    });
    assert_eq!(counter.ring.current().load(Relaxed), 7);
    assert_eq!(counter.ring.start(3), ms(300));
}

#[test]
fn nothing_before_the_ring_was_made_is_counted() {
    let counter = Counter::new(10, ms(1_596_199_317_921), 40);
    assert_eq!(counter.sum(ms(1_596_199_317_921)), 0);
    counter.add(ms(1_596_199_317_921), 2);
    assert_eq!(counter.sum(ms(1_596_199_318_899)), 2);
    assert_eq!(counter.sum(ms(1_596_199_318_900)), 0);
}

#[test]
fn an_add_by_a_clock_read_before_the_turn_counts_in_the_newest_bucket() {
    // A03
    let counter = Counter::new(1, ms(1_950), 0);
    counter.add(ms(2_000), 1);
    counter.add(ms(1_999), 1);
    assert_eq!(counter.sum(ms(1_999)), 2);
    assert_eq!(counter.sum(ms(2_000)), 2);
    assert_eq!(counter.sum(ms(2_100)), 0);
    assert_eq!(counter.ring.tick(ms(0)), 20);
    assert_eq!(counter.ring.tick(ms(2_345)), 23);
}

#[test]
fn the_last_moment_of_time_has_a_bucket() {
    let last = Timestamp::from_nanos(u64::MAX);
    let counter = Counter::new(2, ms(0), 0);
    counter.add(last, 3);
    counter.add(last, 3);
    assert_eq!(counter.sum(last), 6);
}

#[test]
fn it_tells_what_it_is() {
    let counter = Counter::new(10, ms(0), 0);
    assert_eq!(counter.ring.n_buckets(), 10);
    assert_eq!(format!("{:?}", counter.ring), "Snapshots { n_buckets: 10, bucket: 100ms, .. }");
}

#[test]
fn threads_that_turn_and_read_for_real_see_no_base_above_its_total() {
    let counter = Counter::new(3, ms(0), 0);
    let rounds = 20_000;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 0..rounds {
                    if counter.ring.is_due(ms(round * 10)) {
                        counter.turn(ms(round * 10));
                    }
                    counter.total.fetch_add(1, Relaxed);
                }
            });
        }
        scope.spawn(|| {
            for round in 0..rounds {
                assert!(counter.sum(ms(round * 10)) <= 2 * rounds); // and the subtraction does not underflow
                assert!(counter.bases(ms(round * 10)).is_sorted());
            }
        });
    });
    assert_eq!(counter.total.into_inner(), 2 * rounds);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn snapshots_agree_with_a_plain_list_of_every_add(
        n_buckets in 1_u32..12,
        start in 0_u64..5_000,
        steps in vec((-150_i64..400, 0_u64..5, any::<bool>()), 1..100),
    ) {
        let counter = Counter::new(n_buckets, ms(start), 9);
        let n = u64::from(n_buckets);
        let mut plain: Vec<(u64, u64)> = vec![];
        let (mut now, mut head) = (start, start / 100);
        for (step, count, is_add) in steps {
            now = now.saturating_add_signed(step); // backwards too
            if is_add {
                counter.add(ms(now), count);
                head = head.max(now / 100);
                plain.push((head, count));
            }
            let at = head.max(now / 100);
            prop_assert_eq!(counter.ring.tick(ms(now)), at);
            let sum: u64 = plain.iter().filter(|&&(tick, _)| tick + n > at).map(|&(_, n)| n).sum();
            prop_assert_eq!(counter.sum(ms(now)), sum);
            let live = (at + 1).saturating_sub(n)..=head;
            let bases: Vec<u64> = live
                .map(|tick| 9 + plain.iter().filter(|&&(at, _)| at < tick).map(|&(_, n)| n).sum::<u64>())
                .collect();
            prop_assert_eq!(counter.bases(ms(now)), bases);
        }
    }
}
