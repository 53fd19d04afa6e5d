use proptest::{collection::vec, prelude::*};

use super::*;

/// `limit` per `interval`, in nanoseconds.
type Rule = (u64, u64);

const MICRO: u64 = 1_000;
const START: Timestamp = Timestamp::from_millis(5);

/// A log and its total, asked by one thread.
struct World {
    log: PassLog,
    total: AtomicU64,
}

impl World {
    fn new(capacity: u64) -> Self {
        Self::at(capacity, 0)
    }

    fn at(capacity: u64, total: u64) -> Self {
        Self { log: PassLog::new(capacity, total, START), total: AtomicU64::new(total) }
    }

    fn passed(&self) -> u64 {
        self.total.load(Relaxed)
    }

    fn ask(&self, now: Timestamp, n: u64, (limit, interval): Rule) -> Answer {
        let unread = || -> Timestamp { panic!("nothing is missing, so nobody reads the clock") };
        self.log.ask(&self.total, self.passed(), n, limit, interval, now, &unread)
    }

    /// Commits without asking, and leaves it to the caller to write.
    fn commit(&self, n: u64) -> u64 {
        self.total.fetch_add(n, Relaxed)
    }

    fn admit(&self, now: Timestamp, n: u64, rules: &[Rule]) -> bool {
        let fits = rules.iter().all(|&rule| self.ask(now, n, rule) == Answer::Fits);
        if fits {
            self.log.record(&self.total, self.commit(n), n, now);
        }
        fits
    }

    fn replace(&mut self, capacity: u64, now: Timestamp) {
        self.log = self.log.successor(capacity, self.passed(), 0, now);
        self.log.fill(&self.total, &|| now);
    }

    /// The times of the permits `numbers` as the log has them, in µs since its origin.
    fn times(&self, numbers: std::ops::RangeInclusive<u64>) -> Vec<Option<u64>> {
        numbers.map(|number| self.log.time(self.log.number(number))).collect()
    }
}

fn after(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(START.as_nanos() + nanos)
}

#[test]
fn a_permit_leaves_exactly_one_interval_after_it_passed() {
    let world = World::new(2);
    let rule = (2, 10 * MICRO);
    assert!(world.admit(after(0), 1, &[rule]));
    assert!(world.admit(after(3_000), 1, &[rule]));
    assert_eq!(world.ask(after(9_999), 1, rule), Answer::Full { until: after(10_000) });
    assert_eq!(world.ask(after(10_000), 1, rule), Answer::Fits);
    assert_eq!(world.ask(after(10_000), 2, rule), Answer::Full { until: after(13_000) });
    assert_eq!(world.ask(after(13_000), 2, rule), Answer::Fits);
}

#[test]
fn times_are_rounded_up_to_the_microsecond_and_now_is_not() {
    let world = World::new(1);
    let rule = (1, 1_500);
    assert!(world.admit(after(2_001), 1, &[rule]));
    assert_eq!(world.ask(after(4_499), 1, rule), Answer::Full { until: after(4_500) });
    assert_eq!(world.ask(after(4_500), 1, rule), Answer::Fits);
}

#[test]
fn a_call_of_more_than_the_limit_fits_at_no_time() {
    let world = World::new(4);
    assert_eq!(world.ask(after(0), 5, (4, MICRO)), Answer::Never);
    assert_eq!(world.ask(after(0), 1, (0, MICRO)), Answer::Never);
    assert_eq!(world.ask(after(0), 4, (4, MICRO)), Answer::Fits);
}

#[test]
fn a_new_log_knows_nothing_of_what_passed_before() {
    for total in [0, 1, 7, 8, 1_000_003, (1 << 40) + 5] {
        let world = World::at(8, total);
        assert_eq!(world.ask(after(0), 8, (8, 1_000_000)), Answer::Fits, "total {total}");
    }
}

#[test]
fn several_limits_are_asked_of_one_log() {
    let world = World::new(5);
    let rules = [(2, 10 * MICRO), (5, 100 * MICRO)];
    let passed: Vec<_> =
        (0..=10).map(|i| i * 10 * MICRO).filter(|&t| world.admit(after(t), 2, &rules)).collect();
    // Two at 0 and at 10, then the slower rule has room for one only, until those of 0 leave.
    assert_eq!(passed, [0, 10_000, 100_000]);
    assert_eq!(world.ask(after(100_000), 1, rules[0]), Answer::Full { until: after(110_000) });
    assert_eq!(world.ask(after(100_000), 1, rules[1]), Answer::Fits);
}

#[test]
fn until_is_the_latest_of_the_leaving_permits_whatever_their_order() {
    let world = World::new(2);
    world.log.record(&world.total, world.commit(1), 1, after(9_000));
    world.log.record(&world.total, world.commit(1), 1, after(4_000)); // a late reading
    assert_eq!(world.ask(after(12_000), 1, (2, 10 * MICRO)), Answer::Full { until: after(19_000) });
    assert_eq!(world.ask(after(12_000), 2, (2, 10 * MICRO)), Answer::Full { until: after(19_000) });
}

#[test]
fn who_meets_an_unwritten_permit_writes_it_as_just_now_and_looks_again() {
    let world = World::new(2);
    let before = world.commit(2);
    let ask = |reading| world.log.ask(&world.total, 2, 1, 2, 10 * MICRO, after(100), &|| after(reading));
    assert_eq!(ask(5_000), Answer::Stale);
    assert_eq!(world.times(1..=2), [Some(6 + 1), Some(6 + 1)]);
    assert_eq!(ask(9_000), Answer::Full { until: after(16_000) });
    // Its owner wakes up: what others have written stays.
    world.log.record(&world.total, before, 2, after(50));
    assert_eq!(ask(9_000), Answer::Full { until: after(16_000) });
}

#[test]
fn a_stale_total_is_told_and_nothing_is_written() {
    let world = World::new(2);
    for time in [1_000, 2_000, 3_000] {
        world.log.record(&world.total, world.commit(1), 1, after(time));
    }
    let unread = || -> Timestamp { panic!("nothing is missing") };
    assert_eq!(world.log.ask(&world.total, 0, 1, 1, MICRO, after(9_000), &unread), Answer::Stale);
    assert_eq!(world.log.ask(&world.total, 1, 1, 1, MICRO, after(9_000), &unread), Answer::Stale);
    assert_eq!(world.log.ask(&world.total, 2, 1, 1, MICRO, after(9_000), &unread), Answer::Fits);
    assert_eq!(world.times(2..=3), [Some(2 + 1), Some(3 + 1)]);
}

#[test]
fn a_writer_that_slept_for_a_lap_writes_nothing() {
    let world = World::new(2);
    let slow = world.commit(1);
    for time in [1_000, 2_000, 3_000] {
        world.log.record(&world.total, world.commit(1), 1, after(time));
    }
    world.log.record(&world.total, slow, 1, after(500));
    assert_eq!(world.times(1..=4), [None, None, Some(2 + 1), Some(3 + 1)]);
}

#[test]
fn a_charge_of_many_laps_leaves_the_last_lap() {
    let world = World::new(4);
    world.log.record(&world.total, world.commit(1), 1, after(0));
    world.log.record(&world.total, world.commit(103), 103, after(7_000));
    assert_eq!(world.times(100..=104), [None, Some(8), Some(8), Some(8), Some(8)]);
    assert_eq!(world.ask(after(7_000), 1, (4, 10 * MICRO)), Answer::Full { until: after(17_000) });
}

#[test]
fn laps_wrap_after_65_536_of_them() {
    for laps in [0xFFFC_u64, 0xFFFD, 0xFFFE, 0xFFFF, 0x1_0000, 0x1_0001] {
        let world = World::at(2, 2 * laps);
        let rule = (2, 10 * MICRO);
        for i in 0..9 {
            let now = after(i * 10_000);
            assert!(world.admit(now, 2, &[rule]), "{laps} laps, call {i}");
            assert!(!world.admit(now, 1, &[rule]), "{laps} laps, call {i}");
        }
    }
}

#[test]
fn readings_before_the_origin_count_as_the_origin() {
    let world = World::new(1);
    let rule = (1, 10 * MICRO);
    assert!(world.admit(Timestamp::ZERO, 1, &[rule]));
    assert_eq!(world.ask(Timestamp::ZERO, 1, rule), Answer::Full { until: after(10_000) });
    assert_eq!(world.ask(after(9_999), 1, rule), Answer::Full { until: after(10_000) });
    assert_eq!(world.ask(after(10_000), 1, rule), Answer::Fits);
    // However long before.
    let late = Timestamp::from_nanos(u64::MAX - 10);
    let log = PassLog::new(1, 0, late);
    let total = AtomicU64::new(1);
    log.record(&total, 0, 1, late);
    assert!(matches!(log.ask(&total, 1, 1, 1, 1_000, after(0), &|| late), Answer::Full { .. }));
}

#[test]
fn an_interval_beyond_all_time_saturates() {
    let world = World::new(1);
    assert!(world.admit(after(0), 1, &[(1, u64::MAX)]));
    let until = Timestamp::from_nanos(u64::MAX);
    assert_eq!(world.ask(after(1 << 40), 1, (1, u64::MAX)), Answer::Full { until });
}

#[test]
fn a_log_is_worn_out_shortly_before_its_times_end() {
    let log = World::new(1).log;
    let end = after((1 << 48) * MICRO);
    assert!(!log.is_worn_out(Timestamp::ZERO));
    assert!(!log.is_worn_out(after(((1 << 48) - (1 << 32)) * MICRO - 1)));
    assert!(log.is_worn_out(after(((1 << 48) - (1 << 32)) * MICRO)));
    assert!(log.is_worn_out(end) && log.is_worn_out(Timestamp::from_nanos(u64::MAX)));
}

#[test]
fn a_log_that_nobody_replaces_refuses_in_the_end_and_never_admits_too_much() {
    let mut world = World::new(1);
    let rule = (1, 10 * MICRO);
    let end = (1 << 48) * MICRO;
    assert!(world.admit(after(end + 1), 1, &[rule])); // what stands there is from before the log
    for later in [0, 10_001, 1 << 50] {
        assert!(matches!(world.ask(after(end + 1 + later), 1, rule), Answer::Full { .. }));
    }
    // A successor forgets nothing: to it, what passed beyond the end of time passed just now.
    let now = end + (1 << 50);
    world.replace(1, after(now));
    assert!(matches!(world.ask(after(now + 9_999), 1, rule), Answer::Full { .. }));
    assert_eq!(world.ask(after(now + 11_000), 1, rule), Answer::Fits);
}

#[test]
fn a_successor_of_a_worn_out_log_remembers_to_the_nanosecond() {
    let mut world = World::new(4);
    let rule = (2, 10 * MICRO);
    let late = ((1 << 48) - (1 << 20)) * MICRO;
    assert!(world.admit(after(100), 2, &[rule]));
    assert!(world.admit(after(late + 250), 1, &[rule]));
    assert!(world.admit(after(late + 3_250), 1, &[rule]));
    assert!(world.log.is_worn_out(after(late)));
    world.replace(4, after(late + 4_000));
    assert!(!world.log.is_worn_out(after(late + (1 << 40))));
    assert_eq!(world.times(1..=2), [Some(0), Some(0)]);
    assert_eq!(world.ask(after(late + 10_999), 1, rule), Answer::Full { until: after(late + 11_000) });
    assert_eq!(world.ask(after(late + 11_000), 1, rule), Answer::Fits);
    assert_eq!(world.ask(after(late + 11_000), 2, rule), Answer::Full { until: after(late + 14_000) });
}

#[test]
fn a_changed_limit_applies_at_once_and_without_a_fresh_burst() {
    let mut world = World::new(10);
    let second = 1_000_000_000;
    assert!((0..10).all(|i| world.admit(after(i), 1, &[(10, second)])));
    world.replace(12, after(200_000_000));
    assert_eq!(world.log.len(), 16);
    let passed = (0..10).filter(|_| world.admit(after(200_000_000), 1, &[(12, second)])).count();
    assert_eq!(passed, 2);
    world.replace(100, after(300_000_000));
    let passed = (0..200).filter(|_| world.admit(after(300_000_000), 1, &[(100, second)])).count();
    assert_eq!(passed, 88);
    world.replace(3, after(1_150_000_000)); // shorter: 100 passed within the second, then 88
    assert_eq!(world.ask(after(1_299_999_999), 1, (3, second)), Answer::Full { until: after(1_300_000_000) });
}

#[test]
fn what_calls_of_the_old_plan_left_unwritten_is_filled_as_just_now() {
    let mut world = World::new(2);
    world.log.record(&world.total, world.commit(1), 1, after(1_000));
    let old_call = world.commit(1);
    let old_log = std::mem::replace(&mut world.log, PassLog::new(1, 0, START));
    world.log = old_log.successor(4, world.passed(), 0, after(3_000));
    assert_eq!(world.times(1..=2), [Some(1 + 1), None]);
    world.commit(1); // one that decides by the old log, after the new one was made
    world.log.fill(&world.total, &|| after(4_000));
    assert_eq!(world.times(1..=3), [Some(1 + 1), Some(5 + 1), Some(5 + 1)]);
    old_log.record(&world.total, old_call, 1, after(2_000));
    assert_eq!(world.times(1..=3), [Some(1 + 1), Some(5 + 1), Some(5 + 1)]);
}

#[test]
fn threads_that_race_for_real_never_exceed_the_limit() {
    const LIMIT: u64 = 8;
    const INTERVAL: u64 = 40 * MICRO;
    let world = World::new(LIMIT);
    let clock = crate::clock::SystemClock::new();
    let now = || after(crate::clock::Clock::now(&clock).as_nanos());
    let call = || {
        let reading = now();
        let mut passed = world.total.load(Acquire);
        loop {
            match world.log.ask(&world.total, passed, 1, LIMIT, INTERVAL, reading, &now) {
                Answer::Fits => match world.total.compare_exchange(passed, passed + 1, AcqRel, Acquire) {
                    Ok(_) => break,
                    Err(found) => passed = found,
                },
                Answer::Stale => passed = world.total.load(Acquire),
                Answer::Full { .. } | Answer::Never => return None,
            }
        }
        world.log.record(&world.total, passed, 1, reading);
        Some(reading.as_nanos())
    };
    let mut passes: Vec<u64> = std::thread::scope(|scope| {
        let threads =
            [(); 4].map(|()| scope.spawn(|| (0..20_000).filter_map(|_| call()).collect::<Vec<_>>()));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    passes.sort_unstable();
    assert_eq!(passes.len() as u64, world.passed());
    let limit = usize::try_from(LIMIT).unwrap();
    assert!(passes.windows(limit + 1).all(|span| span[limit] - span[0] >= INTERVAL));
}

/// The plain sliding log: every permit's time, rounded up as ours.
#[derive(Default)]
struct Plain(Vec<u64>);

impl Plain {
    fn pass(&mut self, now: u64, n: u64) {
        self.0.extend((0..n).map(|_| now.next_multiple_of(MICRO)));
    }

    fn fits(&self, now: u64, n: u64, (limit, interval): Rule) -> bool {
        self.0.iter().filter(|&&time| time + interval > now).count() as u64 + n <= limit
    }
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    vec((1_u64..12, 1_u64..60_000), 1..4)
}

fn longest(rules: &[Rule]) -> u64 {
    rules.iter().map(|&(limit, _)| limit).max().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn calls_one_after_another_are_decided_as_by_a_plain_sliding_log(
        rules in rules(),
        total in prop_oneof![Just(0), Just((1_u64 << 19) - 40), 0..u64::MAX >> 8],
        calls in vec((0_u64..9_000, 1_u64..5, prop::bool::weighted(0.1)), 1..200),
    ) {
        let world = World::at(longest(&rules), total);
        let mut plain = Plain::default();
        let mut now = 0;
        for (step, n, is_charge) in calls {
            now += step;
            if is_charge {
                let n = n * 5;
                world.log.record(&world.total, world.commit(n), n, after(now));
                plain.pass(now, n);
                continue;
            }
            for &rule in &rules {
                match world.ask(after(now), n, rule) {
                    Answer::Fits => prop_assert!(plain.fits(now, n, rule)),
                    Answer::Never => prop_assert!(n > rule.0),
                    Answer::Stale => prop_assert!(false, "nothing is stale"),
                    Answer::Full { until } => {
                        prop_assert!(!plain.fits(now, n, rule));
                        let until = until.as_nanos() - START.as_nanos();
                        prop_assert!(plain.fits(until, n, rule), "too early");
                        prop_assert!(!plain.fits(until - 1, n, rule), "too late");
                    }
                }
            }
            if world.admit(after(now), n, &rules) {
                plain.pass(now, n);
            }
        }
    }

    #[test]
    fn raised_limits_are_decided_as_by_a_plain_log_that_was_there_from_the_start(
        mut rules in rules(),
        raises in vec(0_u64..30, 3),
        calls in vec((0_u64..9_000, 1_u64..4), 1..200),
        at in 0_usize..200,
    ) {
        let mut world = World::new(longest(&rules));
        let mut plain = Plain::default();
        let mut now = 0;
        for (i, (step, n)) in calls.into_iter().enumerate() {
            now += step;
            if i == at {
                rules.iter_mut().zip(&raises).for_each(|(rule, raise)| rule.0 += raise);
                world.replace(longest(&rules), after(now));
            }
            let fits = rules.iter().all(|&rule| plain.fits(now, n, rule));
            prop_assert_eq!(world.admit(after(now), n, &rules), fits);
            if fits {
                plain.pass(now, n);
            }
        }
    }

    #[test]
    fn readings_in_any_order_never_exceed_a_limit(
        rules in rules(),
        calls in vec((0_u64..200_000, 1_u64..4), 1..200),
    ) {
        let world = World::new(longest(&rules));
        let mut passes = vec![];
        for (now, n) in calls {
            if world.admit(after(now), n, &rules) {
                passes.extend((0..n).map(|_| now));
            }
        }
        for (limit, interval) in rules {
            for &last in &passes {
                let inside = passes.iter().filter(|&&time| time <= last && time + interval > last).count();
                prop_assert!(inside as u64 <= limit, "more than {} per {}: {:?}", limit, interval, passes);
            }
        }
    }
}
