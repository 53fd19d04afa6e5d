use std::sync::Barrier;

use proptest::{collection::vec, prelude::*};

use super::*;

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn us(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn window(n_buckets: u32, interval_ms: u64) -> LeapArray {
    LeapArray::new(n_buckets, Duration::from_millis(interval_ms)).unwrap()
}

fn bucket(start_ms: u64, count: u64) -> Bucket {
    Bucket { start: ms(start_ms), count }
}

/// A ring with its total, asked by one thread.
struct Limiter {
    ring: Ring,
    total: AtomicU64,
    strict: bool,
}

impl Limiter {
    fn new(n_buckets: u32, interval: Duration, strict: bool, now: Timestamp, total: u64) -> Self {
        let ring = Ring::new(n_buckets, interval, now, total).unwrap();
        Self { ring, total: AtomicU64::new(total), strict }
    }

    fn ask(&self, now: Timestamp, n: u64, limit: u64) -> Answer {
        self.ring.ask(&self.total, self.total.load(Relaxed), n, limit, self.strict, now)
    }

    fn admit(&self, now: Timestamp, n: u64, limit: u64) -> bool {
        let fits = self.ask(now, n, limit) == Answer::Fits;
        if fits {
            self.total.fetch_add(n, Relaxed);
        }
        fits
    }
}

#[test]
fn adds_leave_the_sum_with_their_bucket() {
    let window = window(2, 1_000);
    window.add(ms(0), 1);
    window.add(ms(499), 2);
    window.add(ms(500), 4);
    for (now, sum) in [(500, 7), (999, 7), (1_000, 4), (1_499, 4), (1_500, 0), (1 << 40, 0)] {
        assert_eq!(window.sum(ms(now)), sum, "at {now} ms");
    }
    assert_eq!(window.total(), 7);
}

#[test]
fn values_are_the_live_buckets_oldest_first() {
    let window = window(3, 300);
    window.add(ms(50), 1);
    window.add(ms(250), 2);
    assert_eq!(window.values(ms(50)), [bucket(0, 1), bucket(100, 0), bucket(200, 2)]); // a late question
    assert_eq!(window.values(ms(310)), [bucket(100, 0), bucket(200, 2), bucket(300, 0)]);
    assert_eq!(window.values(ms(999)), [bucket(700, 0), bucket(800, 0), bucket(900, 0)]);
}

#[test]
fn a_window_younger_than_its_interval_has_fewer_buckets_and_is_empty_before_the_start() {
    // A05
    let window = window(60, 60_000);
    assert_eq!(window.sum(ms(5)), 0);
    assert_eq!(window.values(ms(5)), [bucket(0, 0)]);
    assert_eq!(window.previous(ms(5)), bucket(0, 0));
    window.add(ms(5), 3);
    window.add(ms(2), 4); // 3 ms before the last reading: the same instant
    assert_eq!(window.current(ms(5)), bucket(0, 7));
    assert_eq!(window.values(ms(1_000)), [bucket(0, 7), bucket(1_000, 0)]);
}

#[test]
fn the_previous_bucket_of_a_single_bucket_window_is_never_the_current_one() {
    // A02
    let window = window(1, 1_000);
    window.add(ms(1_500), 7);
    assert_eq!(window.previous(ms(1_500)), bucket(0, 0));
    assert_eq!(window.current(ms(1_500)), bucket(1_000, 7));
    window.add(ms(2_500), 1);
    assert_eq!(window.previous(ms(2_500)), bucket(1_000, 7));
    assert_eq!(window.previous(ms(3_999)), bucket(2_000, 1));
    assert_eq!(window.previous(ms(4_000)), bucket(3_000, 0));
}

#[test]
fn an_add_by_a_clock_read_before_the_turn_counts_in_the_newest_bucket() {
    // A03
    let window = window(1, 1_000);
    window.add(ms(1_000), 5);
    let read_before = ms(1_999);
    window.add(ms(2_000), 1);
    window.add(read_before, 1);
    assert_eq!(window.current(ms(2_000)), bucket(2_000, 2));
    assert_eq!(window.previous(ms(2_000)), bucket(1_000, 5));
    assert_eq!(window.total(), 7);
}

#[test]
fn decisions_do_not_follow_the_wall_clock() {
    // A04
    use crate::clock::{Clock, ManualClock};
    let back = |clock: &ManualClock| clock.set_wall(clock.wall() - Duration::from_secs(3_600));
    let forward = |clock: &ManualClock| clock.set_wall(clock.wall() + Duration::from_secs(3_600));
    for forward_first in [false, true] {
        let clock = ManualClock::at(ms(10_000));
        clock.set_wall(clock.wall() + Duration::from_secs(1 << 30));
        let limiter = Limiter::new(10, Duration::from_secs(1), false, clock.now(), 0);
        let passed = |n| (0..n).filter(|_| limiter.admit(clock.now(), 1, 5)).count();
        assert_eq!(passed(9), 5);
        if forward_first {
            forward(&clock);
        }
        back(&clock);
        clock.set(ms(10_999));
        assert_eq!(passed(9), 0);
        clock.set(ms(11_000));
        assert_eq!(passed(9), 5);
    }
}

#[test]
fn nothing_that_is_stale_is_summed_after_a_pause() {
    // A06
    let window = window(5, 1_000);
    for start in [0, 200, 400, 600, 800] {
        window.add(ms(start + 199), 10);
    }
    assert_eq!(window.sum(ms(999)), 50);
    window.add(ms(5_000), 1);
    assert_eq!(window.sum(ms(5_000)), 1);
    let late = ms(864_000_000);
    assert_eq!((window.sum(late), window.current(late).count(), window.previous(late).count()), (0, 0, 0));
    assert!(window.values(late).iter().all(|bucket| bucket.count() == 0));
}

#[test]
fn an_interval_that_does_not_divide_is_an_error_that_names_both_numbers() {
    // A08
    let error = |n_buckets, interval| LeapArray::new(n_buckets, interval).unwrap_err().to_string();
    let second = Duration::from_secs(1);
    assert_eq!(error(3, second), "an interval of 1s does not divide into 3 equal buckets");
    assert_eq!(error(0, second), "a window cannot have 0 buckets, only 1 to 1048576");
    assert_eq!(error(u32::MAX, second), "a window cannot have 4294967295 buckets, only 1 to 1048576");
    assert_eq!(
        error(2_000, Duration::from_millis(1)),
        "an interval of 1ms in 2000 buckets would make them shorter than 1µs"
    );
    assert_eq!(error(1, Duration::ZERO), "an interval of 0ns in 1 buckets would make them shorter than 1µs");
    assert_eq!(
        error(1, Duration::MAX),
        "an interval of 18446744073709551615.999999999s is longer than time can be told"
    );
    assert!(LeapArray::new(1_000, Duration::from_millis(1)).is_ok());
    assert!(LeapArray::new(1 << 20, Duration::from_micros(1 << 20)).is_ok());
}

#[test]
fn buckets_lie_on_the_grid_of_their_length() {
    // A09
    let window = window(5, 1_000);
    let now = ms(1_596_199_317_921);
    assert_eq!(window.current(now), bucket(1_596_199_317_800, 0));
    let starts: Vec<_> = window.values(now).iter().map(|bucket| bucket.start().as_millis() % 1_000).collect();
    assert_eq!(starts, [0, 200, 400, 600, 800]);
    assert_eq!(window.sum(now), 0);
}

#[test]
fn sixty_four_threads_that_turn_the_window_together_lose_nothing() {
    // A01
    let rounds: u64 = if cfg!(debug_assertions) { 100 } else { 1_000 };
    let window = window(2, 1_000);
    let barrier = Barrier::new(64);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for round in 0..rounds {
                    // Two windows later, so that all that the last round added is stale.
                    let turned = ms(round * 2_000 + 1_000);
                    if barrier.wait().is_leader() {
                        window.add(ms(round * 2_000), 77);
                    }
                    barrier.wait();
                    for _ in 0..1_000 {
                        window.add(turned, 1);
                    }
                    let sum = window.sum(turned);
                    assert!((1_000..=64_000).contains(&sum), "round {round}: {sum}");
                    barrier.wait();
                    assert_eq!(window.sum(turned), 64_000, "round {round}");
                    assert_eq!(window.current(turned).count(), 64_000, "round {round}");
                }
            });
        }
    });
    assert_eq!(window.total(), rounds * (64_000 + 77));
}

#[test]
fn the_window_says_what_it_is() {
    let window = window(2, 1_000);
    window.add(ms(0), 3);
    assert_eq!(
        (window.n_buckets(), window.bucket(), window.interval()),
        (2, ms(500).since(ms(0)), ms(1_000).since(ms(0)))
    );
    assert_eq!(format!("{window:?}"), "LeapArray { n_buckets: 2, interval: 1s, total: 3, .. }");
}

#[test]
fn a_window_holds_at_most_two_to_the_31_minus_one() {
    let window = window(2, 1_000);
    let most = (1 << 31) - 1;
    window.add(ms(0), u64::MAX);
    window.add(ms(0), 1);
    assert_eq!(window.sum(ms(0)), most);
    window.add(ms(1_000), 1); // the bucket of 0 still belongs to the interval and its unfinished bucket
    assert_eq!(window.total(), most);
    window.add(ms(1_500), most - 1);
    window.add(ms(1_500), 9);
    assert_eq!((window.sum(ms(1_500)), window.total()), (most, 2 * most));
    for i in 1..20 {
        window.add(ms(i * 1_500), most);
        assert_eq!(window.sum(ms(i * 1_500)), most, "wrapped {i} times");
    }
}

#[test]
fn the_first_and_the_last_moment_of_time_have_buckets() {
    let window = LeapArray::new(1, Duration::from_secs(1)).unwrap();
    window.add(Timestamp::ZERO, 1);
    assert_eq!(window.current(Timestamp::ZERO), bucket(0, 1));
    let last = Timestamp::from_nanos(u64::MAX);
    window.add(last, 2);
    assert_eq!(window.current(last), Bucket { start: ms(18_446_744_073_000), count: 2 });
    assert_eq!(window.sum(last), 2);
    window.add(Timestamp::ZERO, 4);
    assert_eq!(window.sum(last), 6);
}

#[test]
fn gaps_of_any_length_are_crossed() {
    for gap in [1_u64 << 29, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, 1 << 31, 1 << 32, (1 << 33) + 7] {
        let window = LeapArray::new(4, Duration::from_micros(4)).unwrap();
        let mut now = 3;
        for round in 0..3 {
            window.add(us(now), 5);
            assert_eq!(window.current(us(now)), Bucket { start: us(now), count: 5 }, "gap {gap}");
            assert_eq!(window.sum(us(now)), 5, "gap {gap}, round {round}");
            now += gap;
        }
    }
}

#[test]
fn ticks_wrap_after_two_to_the_32_of_them() {
    let limiter = Limiter::new(2, Duration::from_micros(2), false, us((1 << 32) - 20), 0);
    let passed: Vec<_> = (0..40).filter(|i| limiter.admit(us((1 << 32) - 20 + i), 1, 1)).collect();
    assert_eq!(passed, (0..40).step_by(2).collect::<Vec<_>>());
}

#[test]
fn more_than_the_limit_fits_at_no_time_and_opens_nothing() {
    let limiter = Limiter::new(2, Duration::from_secs(1), true, ms(0), 0);
    let head = limiter.ring.head.load(Relaxed);
    assert_eq!(limiter.ask(ms(9_000), 6, 5), Answer::Never);
    assert_eq!(limiter.ask(ms(9_000), 1, 0), Answer::Never);
    assert_eq!(limiter.ring.head.load(Relaxed), head);
    assert_eq!(limiter.ask(ms(9_000), 5, 5), Answer::Fits);
}

#[test]
fn a_total_from_before_the_bucket_opened_is_stale() {
    let limiter = Limiter::new(1, Duration::from_secs(1), false, ms(0), 0);
    assert!(limiter.admit(ms(0), 3, 5));
    limiter.ring.open(ms(1_000), &limiter.total);
    assert_eq!(limiter.ring.ask(&limiter.total, 1, 1, 5, false, ms(1_000)), Answer::Stale);
    assert_eq!(limiter.ring.room(&limiter.total, 1, ms(2_000)), None);
    assert_eq!(limiter.ring.ask(&limiter.total, 3, 1, 5, false, ms(1_000)), Answer::Fits);
    assert_eq!(limiter.ring.room(&limiter.total, 3, ms(2_000)), Some(Ring::MAX_COUNT));
}

#[test]
fn a_ring_starts_with_the_total_of_the_moment_it_is_made() {
    let limiter = Limiter::new(10, Duration::from_secs(1), true, ms(123_456), (1 << 40) + 99);
    assert_eq!(limiter.ask(ms(123_456), 5, 5), Answer::Fits);
    assert!(limiter.admit(ms(123_456), 2, 5));
    assert_eq!(
        limiter.ring.room(&limiter.total, limiter.total.load(Relaxed), ms(123_456)),
        Some(Ring::MAX_COUNT - 2)
    );
}

#[test]
fn a_block_says_when_there_is_room_and_again_when_it_is_asked_again() {
    let limiter = Limiter::new(10, Duration::from_secs(1), false, ms(0), 0);
    for (at, n) in [(0, 2), (250, 3), (900, 5)] {
        assert!(limiter.admit(ms(at), n, 10));
    }
    for _ in 0..3 {
        for (n, until) in [(1, 1_000), (2, 1_000), (3, 1_200), (5, 1_200), (6, 1_900), (10, 1_900)] {
            assert_eq!(limiter.ask(ms(950), n, 10), Answer::Full { until: ms(until) }, "{n}");
        }
    }
    let strict = Limiter { strict: true, ..limiter };
    assert_eq!(strict.ask(ms(950), 1, 10), Answer::Full { until: ms(1_100) });
    assert_eq!(strict.ask(ms(950), 10, 10), Answer::Full { until: ms(2_000) });
}

/// Every add with the tick it counted in.
#[derive(Default)]
struct Plain {
    head: u64,
    adds: Vec<(u64, u64)>,
}

impl Plain {
    fn turn(&mut self, tick: u64) -> u64 {
        self.head = self.head.max(tick);
        self.head
    }

    fn add(&mut self, tick: u64, n: u64) {
        let at = self.turn(tick);
        self.adds.push((at, n));
    }

    /// What was added in the `n` ticks that end with `last`.
    fn sum(&self, last: u64, n: u64) -> u64 {
        self.adds.iter().filter(|&&(at, _)| at <= last && at + n > last).map(|&(_, n)| n).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_leap_array_agrees_with_a_plain_list_of_every_add(
        n_buckets in 1_u32..9,
        bucket_us in 1_u64..50,
        start in prop_oneof![Just(0), (1_u64 << 32) - 30..1 << 32, 0..1_u64 << 40],
        steps in vec((-30_i64..200, 0_u64..5, any::<bool>()), 1..100),
    ) {
        let interval = Duration::from_micros(bucket_us * u64::from(n_buckets));
        let window = LeapArray::new(n_buckets, interval).unwrap();
        let n = u64::from(n_buckets);
        let mut plain = Plain::default();
        let mut now = start * bucket_us;
        for (step, count, is_add) in steps {
            now = now.saturating_add_signed(step); // backwards too
            if is_add {
                window.add(us(now), count);
                plain.add(now / bucket_us, count);
            }
            let at = plain.turn(now / bucket_us);
            prop_assert_eq!(window.sum(us(now)), plain.sum(at, n));
            let current = Bucket { start: us(at * bucket_us), count: plain.sum(at, 1) };
            prop_assert_eq!(window.current(us(now)), current);
            let values: Vec<_> = ((at + 1).saturating_sub(n)..=at)
                .map(|tick| Bucket { start: us(tick * bucket_us), count: plain.sum(tick, 1) })
                .collect();
            prop_assert_eq!(window.values(us(now)), values);
            if at > 0 {
                let previous = Bucket { start: us((at - 1) * bucket_us), count: plain.sum(at - 1, 1) };
                prop_assert_eq!(window.previous(us(now)), previous);
            }
        }
    }

    #[test]
    fn strict_never_exceeds_a_limit_and_refuses_only_for_an_interval_and_one_bucket(
        n_buckets in 1_u32..12,
        bucket_us in 1_u64..20,
        limit in 1_u64..12,
        total in prop_oneof![Just(0), (1_u64 << 32) - 30..1 << 32],
        calls in vec((0_u64..60_000, 1_u64..5), 1..150),
    ) {
        let interval = bucket_us * 1_000 * u64::from(n_buckets);
        let limiter = Limiter::new(n_buckets, Duration::from_nanos(interval), true, us(7), total);
        let mut passes: Vec<(u64, u64)> = vec![];
        let mut now = 7_000;
        for (step, n) in calls {
            now += step;
            let passed_when = |is_meant: &dyn Fn(u64) -> bool| -> u64 {
                passes.iter().filter(|&&(at, _)| is_meant(at)).map(|&(_, n)| n).sum()
            };
            let within = |span: u64| passed_when(&|at| at + span > now);
            match limiter.ask(Timestamp::from_nanos(now), n, limit) {
                Answer::Fits => prop_assert!(within(interval) + n <= limit, "over"),
                Answer::Never => prop_assert!(n > limit),
                Answer::Stale => prop_assert!(false, "nothing is stale"),
                Answer::Full { until } => {
                    let wider = interval + bucket_us * 1_000;
                    prop_assert!(within(wider) + n > limit, "refused while there is room");
                    // If nothing passes meanwhile, it is refused until just then.
                    let bucket_of = |nanos| nanos / (bucket_us * 1_000);
                    let counted_at = |nanos| {
                        passed_when(&|at| bucket_of(at) + u64::from(n_buckets) >= bucket_of(nanos))
                    };
                    prop_assert!(counted_at(until.as_nanos()) + n <= limit, "too early");
                    prop_assert!(counted_at(until.as_nanos() - 1) + n > limit, "too late");
                }
            }
            if limiter.admit(Timestamp::from_nanos(now), n, limit) {
                passes.push((now, n));
            }
        }
    }

    #[test]
    fn sentinel_counts_the_buckets_of_one_interval(
        n_buckets in 1_u32..12,
        bucket_us in 1_u64..20,
        limit in 1_u64..12,
        calls in vec((-20_i64..60, 1_u64..5), 1..150),
    ) {
        let interval = Duration::from_micros(bucket_us * u64::from(n_buckets));
        let limiter = Limiter::new(n_buckets, interval, false, us(0), 0);
        let mut plain = Plain::default();
        let mut now = 0_u64;
        for (step, n) in calls {
            now = now.saturating_add_signed(step);
            if n <= limit {
                let at = plain.turn(now / bucket_us);
                let fits = plain.sum(at, u64::from(n_buckets)) + n <= limit;
                prop_assert_eq!(limiter.ask(us(now), n, limit) == Answer::Fits, fits);
                if limiter.admit(us(now), n, limit) {
                    plain.add(at, n);
                }
            } else {
                prop_assert_eq!(limiter.ask(us(now), n, limit), Answer::Never);
            }
        }
    }
}
