//! What a registry tells of its resources.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{R, at, call, call_for, call_of, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    BreakerRule, Cause, Clock, IsolationRule, Mode, Outcome, Registry, ResourceStats, RuleSet, Timestamp,
    Traffic,
};

fn stats(registry: &Registry) -> ResourceStats {
    registry.stats(R).unwrap()
}

#[test]
fn the_last_second_forgets_a_call_when_its_bucket_is_a_second_old() {
    let (registry, clock) = registry();
    clock.set(at(50));
    assert_eq!(passes(&registry, R, 3), 3);
    for (moment, passed) in [(50, 3), (999, 3), (1_000, 0)] {
        clock.set(at(moment));
        assert_eq!(
            (stats(&registry).second().passed(), stats(&registry).second().success()),
            (passed, passed)
        );
    }
}

#[test]
fn the_last_minute_forgets_a_call_when_its_second_is_a_minute_old() {
    let (registry, clock) = registry();
    clock.set(at(500));
    assert_eq!(passes(&registry, R, 3), 3);
    for (moment, passed) in [(30_000, 3), (59_999, 3), (60_000, 0)] {
        clock.set(at(moment));
        assert_eq!(stats(&registry).minute().passed(), passed, "at {moment} ms");
        assert_eq!(stats(&registry).totals().passed(), 3);
    }
}

#[test]
fn the_second_before_is_the_last_full_one() {
    let (registry, clock) = registry();
    for (moment, n) in [(0, 1), (1_999, 2), (2_000, 4)] {
        clock.set(at(moment));
        assert_eq!(passes(&registry, R, n), n);
    }
    assert_eq!(stats(&registry).previous_second_passed(), 2);
    for (moment, passed) in [(2_999, 2), (3_000, 4), (3_999, 4), (4_000, 0), (100_000, 0)] {
        clock.set(at(moment));
        assert_eq!(stats(&registry).previous_second_passed(), passed, "at {moment} ms");
    }
}

#[test]
fn nothing_is_told_of_response_times_where_nothing_completed() {
    // A10, A11
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(0.0)));
    assert_eq!(passes(&registry, R, 5), 0);
    let stats = stats(&registry);
    for span in [stats.second(), stats.minute(), stats.totals()] {
        assert_eq!((span.rt_min(), span.rt_avg(), span.rt_max(), span.completed()), (None, None, None, 0));
        assert_eq!((span.blocked(), span.blocked_by(Cause::Flow), span.passed()), (5, 5, 0));
    }
    assert!(stats.percentiles().is_none());
}

#[test]
fn blocked_calls_have_no_part_in_response_times() {
    // A11
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(10.0)));
    let calls: Vec<_> = (0..100).map(|_| registry.enter(R)).collect();
    clock.advance(ms(100));
    let passed = calls.into_iter().flatten().map(|entry| entry.end(Outcome::Success)).count();
    let stats = stats(&registry);
    assert_eq!((passed, stats.second().blocked(), stats.second().success()), (10, 90, 10));
    let rt = Some(ms(100));
    assert_eq!((stats.second().rt_min(), stats.second().rt_avg(), stats.second().rt_max()), (rt, rt, rt));
    assert_near(stats.percentiles().unwrap().p99_9(), ms(100));
}

/// Within 6 %, as percentiles promise.
fn assert_near(got: Duration, expected: Duration) {
    let error = got.abs_diff(expected);
    assert!(error.as_secs_f64() <= expected.as_secs_f64() * 0.06, "{got:?} is not near {expected:?}");
}

#[test]
fn percentiles_are_near_the_response_times_of_the_last_minute() {
    let (registry, clock) = registry();
    let mut entries: Vec<_> = (0..1_000).map(|_| registry.enter(R).unwrap()).collect();
    while let Some(entry) = entries.pop() {
        clock.advance(ms(1));
        entry.end(Outcome::Success);
    }
    let percentiles = *stats(&registry).percentiles().unwrap();
    for (got, expected) in [
        (percentiles.p50(), ms(500)),
        (percentiles.p90(), ms(900)),
        (percentiles.p99(), ms(990)),
        (percentiles.p99_9(), ms(999)),
    ] {
        assert_near(got, expected);
    }
    clock.set(at(45_000));
    assert!(stats(&registry).percentiles().is_some());
    clock.set(at(61_000));
    assert!(stats(&registry).percentiles().is_none(), "a minute later nothing is left of them");
}

#[test]
fn minimum_mean_and_maximum_are_those_of_their_span() {
    let (registry, clock) = registry();
    for rt in [10, 30, 80] {
        assert!(call_for(&registry, &clock, R, ms(rt), Outcome::Success));
    }
    let rts = |span: &Traffic| [span.rt_min(), span.rt_avg(), span.rt_max()];
    assert_eq!(rts(stats(&registry).second()), [Some(ms(10)), Some(ms(40)), Some(ms(80))]);
    clock.set(at(5_000));
    assert!(call_for(&registry, &clock, R, ms(200), Outcome::Exception));
    assert_eq!(rts(stats(&registry).second()), [Some(ms(200)), Some(ms(200)), Some(ms(200))]);
    assert_eq!(rts(stats(&registry).minute()), [Some(ms(10)), Some(ms(80)), Some(ms(200))]);
    assert_eq!(rts(stats(&registry).totals()), [None, Some(ms(80)), None], "extremes are not kept for ever");
}

#[test]
fn a_cancelled_call_has_no_response_time() {
    let (registry, clock) = registry();
    assert!(call_for(&registry, &clock, R, ms(10), Outcome::Cancelled));
    let seen = stats(&registry);
    assert_eq!((seen.second().cancelled(), seen.second().completed(), seen.second().rt_avg()), (1, 1, None));
    assert!(seen.percentiles().is_none());
    for outcome in [Outcome::Ignored, Outcome::Exception, Outcome::Success] {
        assert!(call_for(&registry, &clock, R, ms(20), outcome));
    }
    assert_eq!(stats(&registry).second().rt_avg(), Some(ms(20)), "every other outcome has one");
}

#[test]
fn counts_are_permits_and_response_times_are_calls() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(10.0)));
    let three = registry.enter_with(R).permits(3).enter().unwrap();
    let one = registry.enter(R).unwrap();
    assert!(call_of(&registry, R, 7).is_err());
    clock.advance(ms(10));
    three.end(Outcome::Success);
    clock.advance(ms(20));
    one.end(Outcome::Exception);
    let stats = stats(&registry);
    for span in [stats.second(), stats.minute(), stats.totals()] {
        assert_eq!((span.passed(), span.calls(), span.blocked()), (4, 2, 7));
        assert_eq!((span.success(), span.exception(), span.completed()), (3, 1, 4));
        assert_eq!(span.rt_avg(), Some(ms(20)));
    }
}

#[test]
fn the_peak_is_the_most_permits_in_flight_at_once() {
    let (registry, clock) = registry();
    let mut held: Vec<_> = (0..3).map(|_| registry.enter(R).unwrap()).collect();
    held.pop();
    held.pop();
    let peaks = || (stats(&registry).second().peak_in_flight(), stats(&registry).minute().peak_in_flight());
    assert_eq!((peaks(), stats(&registry).in_flight()), ((Some(3), Some(3)), 1));
    clock.set(at(2_000));
    assert_eq!(peaks(), (Some(1), Some(3)), "who is still in flight counts in each later bucket");
    drop(held);
    clock.set(at(70_000));
    assert_eq!((peaks(), stats(&registry).in_flight()), ((Some(0), Some(0)), 0));
    assert_eq!(stats(&registry).totals().peak_in_flight(), None);
}

#[test]
fn blocks_are_told_by_kind() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap();
    let rules = RuleSet::new().flow("flow", qps(0.0)).isolation("isolation", IsolationRule::new(0));
    let (registry, _) = registry_with(rules.breaker("breaker", breaker));
    assert!(call(&registry, "breaker", Outcome::Exception));
    for (name, cause) in [("flow", Cause::Flow), ("isolation", Cause::Isolation), ("breaker", Cause::Breaker)]
    {
        assert!(call_of(&registry, name, 2).is_err());
        let stats = registry.stats(name).unwrap();
        let blocked = Cause::ALL.map(|cause| stats.second().blocked_by(cause));
        assert_eq!(blocked, Cause::ALL.map(|other| if other == cause { 2 } else { 0 }), "{name}");
    }
}

/// A clock that moves on by 1 ms whenever it is read.
#[derive(Clone, Debug, Default)]
struct Ticking(Arc<AtomicU64>);

impl Ticking {
    fn set(&self, ms: u64) {
        self.0.store(ms, Ordering::Relaxed);
    }

    fn next(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[test]
fn a_call_reads_the_clock_once_when_it_enters_and_once_when_it_ends() {
    // A12
    let clock = Ticking::default();
    let registry = Registry::builder().clock(clock.clone()).build();
    let breaker = BreakerRule::error_ratio(0.5).unwrap();
    let minute = qps(100.0).per(ms(60_000)).unwrap();
    let rules = RuleSet::new().flow(R, qps(5.0)).flow(R, minute).isolation(R, IsolationRule::new(9));
    registry.load(rules.breaker(R, breaker)).unwrap();

    clock.set(999);
    let entry = registry.enter(R).unwrap();
    assert_eq!(clock.next(), 1_000);
    let stats = registry.stats(R).unwrap();
    assert_eq!(clock.next(), 1_001, "statistics are read at one moment");
    assert_eq!(stats.previous_second_passed(), 1, "it passed at 999 ms");

    clock.set(1_500);
    entry.end(Outcome::Success);
    assert_eq!(clock.next(), 1_501);
    assert_eq!(registry.stats(R).unwrap().second().rt_max(), Some(ms(501)));
}

#[test]
fn a_blocked_call_reads_the_clock_once() {
    let clock = Ticking::default();
    let registry = Registry::builder().clock(clock.clone()).build();
    registry.load(RuleSet::new().flow(R, qps(1.0))).unwrap();
    assert_eq!(passes(&registry, R, 1), 1);
    clock.set(500);
    assert!(registry.enter(R).is_err());
    assert_eq!(clock.next(), 501);
}

#[test]
fn nothing_is_lost_and_nothing_counted_twice_under_many_threads() {
    let (registry, clock) = registry();
    let outcomes = [Outcome::Success, Outcome::Exception, Outcome::Ignored, Outcome::Cancelled];
    std::thread::scope(|scope| {
        for outcome in outcomes {
            let (registry, clock) = (&registry, &clock);
            scope.spawn(move || {
                for _ in 0..5_000 {
                    clock.advance(Duration::from_micros(50));
                    assert!(call(registry, R, outcome));
                }
            });
        }
    });
    let stats = stats(&registry);
    for span in [stats.minute(), stats.totals()] {
        assert_eq!((span.passed(), span.calls(), span.completed()), (20_000, 20_000, 20_000));
        let counts = [span.success(), span.exception(), span.ignored(), span.cancelled()];
        assert_eq!(counts, [5_000; 4]);
    }
    assert_eq!(stats.in_flight(), 0);
}

#[test]
fn an_idle_resource_has_zeros() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(1.0)));
    for moment in [0, 5_000, 100_000_000] {
        clock.set(at(moment));
        let stats = stats(&registry);
        for span in [stats.second(), stats.minute(), stats.totals()] {
            assert_eq!((span.passed(), span.blocked(), span.completed()), (0, 0, 0));
        }
        assert_eq!((stats.in_flight(), stats.previous_second_passed(), stats.resource()), (0, 0, R));
    }
}

#[test]
fn a_second_can_be_cut_into_two_buckets_as_sentinel_does() {
    let clock = leap_runtime::ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).second_buckets(2).build();
    clock.set(at(499));
    assert_eq!(passes(&registry, R, 1), 1);
    clock.set(at(999));
    assert_eq!(stats(&registry).second().passed(), 1);
    clock.set(at(1_000));
    assert_eq!(stats(&registry).second().passed(), 0);
}

#[test]
fn buckets_that_do_not_divide_a_second_are_refused_with_both_numbers() {
    for n_buckets in [0, 3, 2_000] {
        let build = std::panic::catch_unwind(|| Registry::builder().second_buckets(n_buckets));
        let message = *build.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, format!("{n_buckets} buckets do not divide 1s into equal parts of at least 1ms"));
    }
}

#[test]
fn resources_come_in_the_order_of_their_names() {
    let (registry, _) = registry_with(RuleSet::new().flow("b", qps(1.0)));
    for name in ["c", "a"] {
        assert_eq!(passes(&registry, name, 1), 1);
    }
    let names: Vec<_> = registry.resources().map(|stats| stats.resource().to_owned()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn a_breaker_shows_what_it_judges_by_and_when_it_may_be_probed() {
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(3).unwrap().open_for(ms(2_000)).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule));
    let shown = || stats(&registry).breakers()[0].to_string();
    assert_eq!(shown(), "error_ratio: closed, 0 of 0 calls bad");
    for outcome in [Outcome::Success, Outcome::Exception, Outcome::Exception] {
        assert!(call(&registry, R, outcome));
    }
    clock.set(at(500));
    assert_eq!(shown(), "error_ratio: open, 2 of 3 calls bad, next probe in 1.5s");
    clock.set(at(2_000));
    assert_eq!(shown(), "error_ratio: open, 0 of 0 calls bad, the next call is a probe");
    let probe = registry.enter(R).unwrap();
    assert_eq!(shown(), "error_ratio: half-open, 0 of 0 calls bad");
    drop(probe);
}

/// A resource with something to show in every row.
fn busy() -> Registry {
    let breaker = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(4).unwrap();
    let rules = RuleSet::new().flow(R, qps(5.0)).isolation(R, IsolationRule::new(3).with_mode(Mode::Off));
    let (registry, clock) = registry_with(rules.breaker(R, breaker));
    let mut held = vec![];
    for outcome in [Outcome::Success, Outcome::Exception, Outcome::Ignored, Outcome::Cancelled] {
        held.push((registry.enter(R).unwrap(), outcome));
    }
    let in_flight = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    for (entry, outcome) in held {
        clock.advance(Duration::from_micros(12_500));
        entry.end(outcome);
    }
    clock.advance(ms(1_950));
    assert!(call_of(&registry, R, 3).is_ok());
    std::mem::forget(in_flight);
    registry
}

#[test]
fn the_statistics_of_a_resource_print_as_an_aligned_table() {
    assert_eq!(
        stats(&busy()).to_string(),
        "\
orders.create          last second last minute   since start
  passed                         3           8             8
  blocked                        0           1             1
    by flow                      0           1             1
  success                        3           4             4
  exception                      0           1             1
  ignored                        0           1             1
  cancelled                      0           1             1
  rt min                     0.0ns       0.0ns             -
  rt avg                     0.0ns      18.8ms        18.8ms
  rt max                     0.0ns      37.5ms             -
  peak in flight                 4           5             -
  rt p50                                12.0ms
  rt p90                                35.5ms
  rt p99                                35.5ms
  rt p99.9                              35.5ms
  in flight                      1
  breaker             error_ratio: closed, 0 of 1 calls bad
  rule                flow: 5 per 1s, exact  [loaded/flow/0]
  rule                isolation: at most 3 in flight (off)  [loaded/isolation/0]
  rule                error_ratio: over 0.5 of at least 4 calls in 1s, open 5s  [loaded/error_ratio/0]"
    );
}

#[test]
fn the_table_of_a_registry_has_a_line_for_each_resource() {
    let registry = busy();
    assert_eq!(passes(&registry, "a.resource.with.a.longer.name", 12), 12);
    registry.load(registry.loaded().flow("idle", qps(1.0))).unwrap();
    assert_eq!(
        registry.table().to_string(),
        "\
resource                        passed  blocked  success  except.    rt avg  p99 (1m) in flight  breakers
a.resource.with.a.longer.name       12        0       12        0     0.0ns     0.0ns         0  -
idle                                 0        0        0        0         -         -         0  -
orders.create                        3        0        3        0     0.0ns    35.5ms         1  closed"
    );
}
