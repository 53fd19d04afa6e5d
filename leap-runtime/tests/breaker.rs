//! Circuit breakers: when they trip, and how they recover.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use common::{R, Recorder, at, call, call_for, ms, passes, qps, registry, registry_with};
use leap_runtime::BreakerState::{Closed, Disabled, ForcedClosed, ForcedOpen, HalfOpen, Open};
use leap_runtime::{
    Blocked, BreakerHandle, BreakerRule, BreakerState, BreakerStats, Cause, Entry, IsolationRule,
    ManualClock, Mode, Observer, Outcome, Recovery, Registry, RuleSet, Timestamp, Transition, guarded,
};

/// Trips on the second exception, opens for 1 s.
fn touchy() -> BreakerRule {
    BreakerRule::error_count(1).with_min_calls(1).unwrap().open_for(ms(1_000)).unwrap()
}

fn state(registry: &Registry) -> BreakerState {
    registry.stats(R).unwrap().breakers()[0].state()
}

/// A registry whose only breaker has just opened.
fn open(rule: BreakerRule) -> (Registry, ManualClock) {
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule));
    trip(&registry);
    (registry, clock)
}

fn trip(registry: &Registry) {
    for _ in 0..1_000 {
        if !call(registry, R, Outcome::Exception) {
            break;
        }
    }
    assert_eq!(state(registry), Open);
}

#[test]
fn an_open_breaker_blocks_until_its_time_is_over_and_then_lets_one_probe_through() {
    let (registry, clock) = open(touchy());
    clock.set(at(999));
    assert_eq!(passes(&registry, R, 3), 0);
    assert_eq!(state(&registry), Open);
    clock.set(at(1_000));
    let probe = registry.enter(R).unwrap();
    assert_eq!(state(&registry), HalfOpen);
    assert_eq!(passes(&registry, R, 3), 0);
    probe.end(Outcome::Success);
    assert_eq!(state(&registry), Closed);
    assert_eq!(passes(&registry, R, 3), 3);
}

#[test]
fn a_failed_probe_opens_the_breaker_for_as_long_again() {
    let (registry, clock) = open(touchy());
    clock.set(at(1_200));
    let probe = registry.enter(R).unwrap();
    clock.set(at(1_300));
    probe.end(Outcome::Exception);
    assert_eq!(state(&registry), Open);
    clock.set(at(2_299));
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(at(2_300));
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn a_block_by_a_breaker_is_told_apart_from_the_users_own_errors_and_says_when_to_come_back() {
    // C16
    #[derive(Debug)]
    enum AppError {
        Blocked(Blocked),
        Own,
    }
    impl From<Blocked> for AppError {
        fn from(blocked: Blocked) -> Self {
            Self::Blocked(blocked)
        }
    }
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, touchy()));
    let buy = |result: Result<(), AppError>| registry.enter(R)?.run(|| result);
    for _ in 0..2 {
        assert!(matches!(buy(Err(AppError::Own)), Err(AppError::Own)));
    }
    clock.set(at(250));
    let Err(AppError::Blocked(blocked)) = buy(Ok(())) else { panic!("it was let through") };
    assert_eq!((blocked.cause(), blocked.resource()), (Cause::Breaker, R));
    assert_eq!(blocked.rule().to_string(), "loaded/error_count/0");
    assert_eq!((blocked.retry_after(), blocked.limit(), blocked.observed()), (Some(ms(750)), None, None));
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: its circuit breaker is open; retry after 750ms"
    );

    clock.set(at(1_000));
    let probe = registry.enter(R).unwrap();
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!(blocked.retry_after(), None);
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: its circuit breaker is half-open and all probes are out"
    );
    drop(probe);
}

#[test]
fn a_late_completion_is_counted() {
    // A03: the thread that holds a reading of 1999 ends its call after another has turned the only bucket.
    let rule = BreakerRule::error_count(1).with_min_calls(1).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule));
    clock.set(at(1_900));
    let late = registry.enter(R).unwrap();
    clock.set(at(2_000));
    assert!(call(&registry, R, Outcome::Exception));
    clock.set(at(1_999));
    late.end(Outcome::Exception);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().completed(), stats.totals().exception(), stats.in_flight()), (2, 2, 0));
    assert_eq!(
        (stats.breakers()[0].calls(), stats.breakers()[0].bad_calls()),
        (2, 2),
        "in the newest bucket"
    );
    assert_eq!(state(&registry), Open);
}

#[test]
fn a_call_slower_than_any_default_is_seen_at_its_full_length() {
    // A10
    let rule = BreakerRule::slow_ratio(ms(5_000), 0.5).unwrap().with_min_calls(1).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule));
    let stats = registry.stats(R).unwrap();
    assert_eq!(
        (stats.second().rt_min(), stats.second().rt_avg(), stats.second().rt_max()),
        (None, None, None)
    );
    assert!(call_for(&registry, &clock, R, ms(7_200), Outcome::Success));
    let stats = registry.stats(R).unwrap();
    let rt = Some(ms(7_200));
    assert_eq!((stats.second().rt_min(), stats.second().rt_avg(), stats.second().rt_max()), (rt, rt, rt));
    assert_eq!(state(&registry), Open);
}

#[test]
fn a_probe_refused_by_a_second_breaker_gives_its_slot_back() {
    // C01
    let rule = |seconds| touchy().open_for(Duration::from_secs(seconds)).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule(10)).breaker(R, rule(20)));
    trip(&registry);
    clock.set(at(10_000));
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.rule().position(), blocked.retry_after()), (1, Some(ms(10_000))));
    let stats = registry.stats(R).unwrap();
    assert_eq!(
        (stats.breakers()[0].state(), stats.breakers()[0].next_probe()),
        (HalfOpen, Some(Duration::ZERO))
    );
    clock.set(at(20_000));
    assert!(call(&registry, R, Outcome::Success));
    let stats = registry.stats(R).unwrap();
    assert!(stats.breakers().iter().all(|breaker| breaker.state() == Closed));
}

#[test]
fn a_probe_refused_by_a_later_check_gives_its_slot_back() {
    // C01, variants
    let (registry, clock) = registry();
    let touchy = RuleSet::new().breaker(R, touchy());
    registry.load(touchy.clone()).unwrap();
    trip(&registry);
    clock.set(at(1_000));
    registry.load(touchy.clone().isolation(R, IsolationRule::new(0))).unwrap();
    assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Isolation);
    registry.load(touchy.clone().flow(R, qps(0.0))).unwrap();
    assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Flow);
    registry.load(touchy).unwrap();
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(state(&registry), Closed);
}

#[test]
fn a_probe_that_ends_without_a_verdict_leaves_its_slot_to_the_next_call() {
    // C02, C03
    for outcome in [Outcome::Cancelled, Outcome::Ignored] {
        let (registry, clock) = open(touchy());
        clock.set(at(1_000));
        let probe = registry.enter(R).unwrap();
        assert!(registry.enter(R).is_err());
        clock.set(at(1_100));
        probe.end(outcome);
        assert_eq!(state(&registry), HalfOpen);
        clock.set(at(1_101));
        assert!(call(&registry, R, Outcome::Success), "{outcome:?}");
        assert_eq!(state(&registry), Closed);
    }
}

#[test]
fn a_probe_that_never_ends_is_written_off_after_the_open_time() {
    // C04
    let (registry, clock) = open(touchy());
    clock.set(at(1_000));
    let hung = registry.enter(R).unwrap();
    clock.set(at(1_999));
    assert!(registry.enter(R).is_err());
    assert_eq!(registry.stats(R).unwrap().breakers()[0].stuck_probes(), 0);
    clock.set(at(2_000));
    let probe = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err(), "one more, and no second one");
    assert_eq!(registry.stats(R).unwrap().breakers()[0].stuck_probes(), 1);
    hung.end(Outcome::Exception);
    assert_eq!(state(&registry), HalfOpen, "a result that comes this late moves nothing");
    probe.end(Outcome::Success);
    assert_eq!(state(&registry), Closed);
}

#[test]
fn exactly_as_many_probes_as_asked_for_pass_however_many_come() {
    // C05
    for probes in [1, 3] {
        let (registry, clock) = open(touchy().with_probes(probes).unwrap());
        clock.set(at(1_000));
        let (start, all_asked) = (Barrier::new(200), Barrier::new(200));
        let ask = || {
            start.wait();
            let entries: Vec<Entry> = (0..5).filter_map(|_| registry.enter(R).ok()).collect();
            all_asked.wait();
            entries.into_iter().map(|entry| entry.end(Outcome::Success)).count()
        };
        let passed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..200).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, probes as usize);
        let stats = registry.stats(R).unwrap();
        // One call was blocked when the breaker was tripped.
        assert_eq!(stats.totals().blocked_by(Cause::Breaker), 1 + 1_000 - u64::from(probes));
        assert_eq!(state(&registry), Closed);
    }
}

#[test]
fn a_ratio_of_1_trips_when_it_is_reached() {
    // C06
    let slow = BreakerRule::slow_ratio(ms(50), 1.0).unwrap().with_min_calls(5).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, slow));
    for n in 1..=5 {
        assert_eq!(state(&registry), Closed, "before call {n}");
        assert!(call_for(&registry, &clock, R, ms(100), Outcome::Success));
    }
    assert_eq!(state(&registry), Open);

    let errors = BreakerRule::error_ratio(1.0).unwrap().with_min_calls(5).unwrap();
    let (registry, _) = registry_with(RuleSet::new().breaker(R, errors));
    for n in 1..=5 {
        assert_eq!(state(&registry), Closed, "before call {n}");
        assert!(call(&registry, R, Outcome::Exception));
    }
    assert_eq!(state(&registry), Open);
}

#[test]
fn a_ratio_below_1_trips_above_it_and_not_at_it() {
    // C07
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(10).unwrap();
    let (registry, _) = registry_with(RuleSet::new().breaker(R, rule));
    for outcome in [Outcome::Success, Outcome::Exception] {
        for _ in 0..5 {
            assert!(call(&registry, R, outcome));
        }
    }
    assert_eq!(state(&registry), Closed, "5 of 10");
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Open, "6 of 11");
}

#[test]
fn more_than_the_count_of_exceptions_trips() {
    // C07
    let rule = BreakerRule::error_count(3).with_min_calls(1).unwrap();
    let (registry, _) = registry_with(RuleSet::new().breaker(R, rule));
    for n in 1..=4 {
        assert_eq!(state(&registry), Closed, "before exception {n}");
        assert!(call(&registry, R, Outcome::Exception));
    }
    assert_eq!(state(&registry), Open);
}

#[test]
fn a_call_as_slow_as_allowed_is_not_slow() {
    // C07
    let rule = BreakerRule::slow_ratio(ms(50), 0.0).unwrap().with_min_calls(1).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule));
    assert!(call_for(&registry, &clock, R, ms(50), Outcome::Success));
    assert_eq!(state(&registry), Closed);
    assert!(call_for(&registry, &clock, R, ms(50) + Duration::from_nanos(1), Outcome::Success));
    assert_eq!(state(&registry), Open);
}

#[test]
fn a_breaker_judges_at_each_end_and_not_at_the_end_of_its_window() {
    // C08
    let rule = |min_calls| {
        let rule = BreakerRule::error_ratio(1.0).unwrap().with_min_calls(min_calls).unwrap();
        rule.with_window(ms(20_000), 1).unwrap()
    };
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule(5)));
    for n in 1..=5 {
        assert_eq!(state(&registry), Closed, "before exception {n}");
        assert!(call_for(&registry, &clock, R, ms(400), Outcome::Exception));
    }
    assert_eq!(state(&registry), Open);

    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule(100)));
    for _ in 0..10 {
        assert!(call(&registry, R, Outcome::Exception));
    }
    clock.set(at(25_000));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(state(&registry), Closed);
}

#[test]
fn what_was_bad_before_a_recovery_is_forgotten() {
    // C09
    let rule = BreakerRule::error_count(3).with_min_calls(1).unwrap();
    let rule = rule.with_window(ms(60_000), 1).unwrap().open_for(ms(5_000)).unwrap();
    let (registry, clock) = open(rule);
    clock.set(at(5_010));
    assert!(call(&registry, R, Outcome::Success));
    clock.set(at(6_000));
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Closed);
    assert_eq!(registry.stats(R).unwrap().breakers()[0].bad_calls(), 1);
    for _ in 0..2 {
        assert!(call(&registry, R, Outcome::Exception));
    }
    assert_eq!(state(&registry), Closed, "3 since the recovery");
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Open, "4 since the recovery");
}

#[test]
fn a_window_forgets_what_is_older_than_it() {
    let rule = BreakerRule::error_count(1).with_min_calls(1).unwrap().with_window(ms(1_000), 10).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule));
    clock.set(at(50));
    assert!(call(&registry, R, Outcome::Exception));
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Closed);
    clock.set(at(1_999));
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Open);
}

#[test]
fn calls_refused_by_a_limit_are_no_results() {
    // C10
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(10).unwrap();
    let (registry, _) = registry_with(RuleSet::new().breaker(R, rule).flow(R, qps(1.0)));
    assert_eq!(passes(&registry, R, 1_001), 1);
    let stats = registry.stats(R).unwrap();
    assert_eq!(
        (stats.breakers()[0].calls(), stats.breakers()[0].bad_calls(), state(&registry)),
        (1, 0, Closed)
    );
    assert_eq!((stats.totals().exception(), stats.totals().blocked()), (0, 1_000));
}

#[test]
fn an_error_counts_where_it_passes_and_a_block_is_to_its_caller_an_error_like_any() {
    // C11
    let (registry, _) = registry_with(RuleSet::new().flow("inner", qps(2.0)));
    let inner =
        || registry.enter("inner").map_err(|blocked| blocked.to_string())?.run(|| Err("broken".to_owned()));
    let passed_up = || registry.enter("outer").map_err(|blocked| blocked.to_string())?.run(inner);
    let handled = || registry.enter("outer").unwrap().run(|| Ok::<_, String>(inner().unwrap_or("instead")));
    let counts = |name: &str| {
        let stats = registry.stats(name).unwrap();
        [stats.totals().success(), stats.totals().exception(), stats.totals().blocked()]
    };

    assert_eq!(passed_up(), Err("broken".to_owned()));
    assert_eq!((counts("outer"), counts("inner")), ([0, 1, 0], [0, 1, 0]));
    assert_eq!(handled(), Ok("instead"));
    assert_eq!((counts("outer"), counts("inner")), ([1, 1, 0], [0, 2, 0]));
    assert!(passed_up().unwrap_err().starts_with("`inner` is blocked"));
    assert_eq!((counts("outer"), counts("inner")), ([1, 2, 0], [0, 2, 1]));
}

#[derive(Debug)]
enum ShopError {
    Blocked(Blocked),
    Invalid,
}

impl From<Blocked> for ShopError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

#[guarded("breaker.inner", max_concurrency = 0)]
fn inner() -> Result<(), ShopError> {
    Ok(())
}

#[guarded("breaker.outer", ignore(ShopError::Blocked(_)))]
fn outer() -> Result<(), ShopError> {
    inner()
}

#[guarded("breaker.validate", error_ratio = 0.5, min_calls = 5, ignore(ShopError::Invalid))]
fn validate(result: Result<(), ShopError>) -> Result<(), ShopError> {
    result
}

#[test]
fn an_outer_call_may_ignore_that_an_inner_one_was_blocked() {
    // C11
    let (registry, _) = registry();
    let result = registry.scope(outer);
    assert!(matches!(result, Err(ShopError::Blocked(blocked)) if blocked.resource() == "breaker.inner"));
    let stats = registry.stats("breaker.outer").unwrap();
    assert_eq!((stats.totals().ignored(), stats.totals().exception()), (1, 0));
}

#[test]
fn an_attributes_ignored_errors_never_trip_its_breaker() {
    // C12
    let (registry, _) = registry();
    for _ in 0..10 {
        assert!(matches!(registry.scope(|| validate(Err(ShopError::Invalid))), Err(ShopError::Invalid)));
    }
    let stats = registry.stats("breaker.validate").unwrap();
    assert_eq!((stats.totals().completed(), stats.totals().exception()), (10, 0));
    assert_eq!((stats.breakers()[0].calls(), stats.breakers()[0].state()), (0, Closed));
    for _ in 0..5 {
        assert!(registry.scope(|| validate(Err(refused().into()))).is_err());
    }
    assert_eq!(registry.stats("breaker.validate").unwrap().breakers()[0].state(), Open, "other errors count");
}

/// A block of another registry, as an error that is not ignored.
fn refused() -> Blocked {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(0.0)));
    registry.enter(R).unwrap_err()
}

#[test]
fn what_is_ignored_never_trips_a_breaker() {
    // C12
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(5).unwrap();
    let (registry, _) = registry_with(RuleSet::new().breaker(R, rule));
    let ignore_invalid = |result: &Result<(), &str>| match result {
        Ok(()) => Outcome::Success,
        Err("invalid") => Outcome::Ignored,
        Err(_) => Outcome::Exception,
    };
    for _ in 0..10 {
        let _ = registry.enter(R).unwrap().run_with(|| Err("invalid"), ignore_invalid);
    }
    let stats = registry.stats(R).unwrap();
    assert_eq!(
        (stats.totals().completed(), stats.totals().ignored(), stats.totals().exception()),
        (10, 10, 0)
    );
    assert_eq!((stats.breakers()[0].calls(), state(&registry)), (0, Closed));
}

#[test]
fn an_open_breaker_needs_no_timer() {
    // C15
    let hour = Duration::from_secs(3_600);
    let (registry, clock) = open(touchy().open_for(hour).unwrap());
    clock.advance(hour * 5);
    let breaker = registry.stats(R).unwrap().breakers()[0].clone();
    assert_eq!((breaker.state(), breaker.next_probe()), (Open, Some(Duration::ZERO)), "nobody moved it");
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(state(&registry), Closed);
}

#[test]
fn the_log_of_transitions_is_a_path_however_many_threads_fail_at_once() {
    // C17
    let recorder = Recorder::default();
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).observer(recorder.clone()).build();
    let rule =
        BreakerRule::error_ratio(0.0).unwrap().with_min_calls(64).unwrap().open_for(ms(1_000)).unwrap();
    registry.load(RuleSet::new().breaker(R, rule)).unwrap();
    assert_eq!(recorder.take().len(), 1);
    let all_at_once = |outcome| {
        let (start, all_asked) = (Barrier::new(64), Barrier::new(64));
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    start.wait();
                    let entry = registry.enter(R);
                    all_asked.wait();
                    entry.map(|entry| entry.end(outcome))
                });
            }
        });
        let transitions = recorder.take().into_iter().filter(|line| !line.starts_with("block"));
        transitions.map(|line| line.replace("loaded/error_ratio/0 ", "")).collect::<Vec<_>>()
    };
    for round in 0..10 {
        clock.set(at(round * 10_000));
        assert_eq!(all_at_once(Outcome::Exception), ["closed -> open"]);
        clock.advance(ms(1_000));
        assert_eq!(all_at_once(Outcome::Exception), ["open -> half-open", "half-open -> open"]);
        assert_eq!(all_at_once(Outcome::Exception), [""; 0], "it has only just opened");
        clock.advance(ms(1_000));
        assert_eq!(all_at_once(Outcome::Success), ["open -> half-open", "half-open -> closed"]);
    }
}

#[test]
fn the_least_number_of_calls_plays_no_part_in_a_recovery() {
    // C19
    let rule = |probes| {
        let rule = BreakerRule::error_count(1).with_min_calls(10).unwrap().open_for(ms(1_000)).unwrap();
        rule.with_probes(probes).unwrap()
    };
    let (registry, clock) = open(rule(1));
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(state(&registry), Closed);

    let (registry, clock) = open(rule(3));
    clock.set(at(1_000));
    let [first, second, third] = [(); 3].map(|()| registry.enter(R).unwrap());
    assert!(registry.enter(R).is_err());
    first.end(Outcome::Exception);
    assert_eq!(state(&registry), Open, "at the first failure");
    second.end(Outcome::Success);
    third.end(Outcome::Success);
    assert_eq!(state(&registry), Open, "what comes after it moves nothing");

    clock.set(at(2_000));
    for expected in [HalfOpen, HalfOpen, Closed] {
        assert!(call(&registry, R, Outcome::Success));
        assert_eq!(state(&registry), expected);
    }
}

#[test]
fn a_result_from_before_the_breaker_opened_decides_nothing_in_a_recovery() {
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, touchy()));
    let old = [registry.enter(R).unwrap(), registry.enter(R).unwrap()];
    trip(&registry);
    clock.set(at(1_000));
    let probe = registry.enter(R).unwrap();
    let [first, second] = old;
    first.end(Outcome::Exception);
    second.end(Outcome::Success);
    assert_eq!(state(&registry), HalfOpen);
    probe.end(Outcome::Success);
    assert_eq!(state(&registry), Closed);
}

#[test]
fn asking_leaves_the_probe_slot_where_it_is() {
    // B17
    let (registry, clock) = open(touchy());
    assert_eq!(registry.would_pass(R, 1).unwrap_err().retry_after(), Some(ms(1_000)));
    clock.set(at(1_000));
    for _ in 0..100 {
        assert!(registry.would_pass(R, 1).is_ok());
        assert_eq!(registry.stats(R).unwrap().breakers()[0].next_probe(), Some(Duration::ZERO));
    }
    assert_eq!(state(&registry), Open);
    let probe = registry.enter(R).unwrap();
    assert!(registry.would_pass(R, 1).is_err());
    drop(probe);
}

#[test]
fn a_panic_is_an_exception() {
    let (registry, _) = registry_with(RuleSet::new().breaker(R, touchy()));
    for _ in 0..2 {
        let entry = registry.enter(R).unwrap();
        let run = || entry.run_with(|| panic!("in the body"), |(): &()| Outcome::Success);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
    assert_eq!(state(&registry), Open);
}

#[test]
fn each_strategy_is_a_breaker_of_its_own() {
    let slow = BreakerRule::slow_ratio(ms(10), 0.5).unwrap().with_min_calls(2).unwrap();
    let rules = RuleSet::new().breaker(R, slow).breaker(R, touchy());
    let (registry, clock) = registry_with(rules);
    for _ in 0..2 {
        assert!(call_for(&registry, &clock, R, ms(11), Outcome::Success));
    }
    let stats = registry.stats(R).unwrap();
    let shown: Vec<_> =
        stats.breakers().iter().map(|breaker| (breaker.rule().to_string(), breaker.state())).collect();
    assert_eq!(
        shown,
        [("loaded/slow_ratio/0".to_owned(), Open), ("loaded/error_count/0".to_owned(), Closed)]
    );
}

#[test]
fn more_breakers_than_an_entry_holds_in_itself_work_the_same() {
    let rules = (0..6).fold(RuleSet::new(), |rules, _| rules.breaker(R, touchy()));
    let (registry, clock) = registry_with(rules);
    trip(&registry);
    let states = || registry.stats(R).unwrap().breakers().iter().map(BreakerStats::state).collect::<Vec<_>>();
    assert_eq!(states(), [Open; 6]);
    clock.set(at(1_000));
    let probe = registry.enter(R).unwrap();
    assert_eq!(states(), [HalfOpen; 6]);
    probe.end(Outcome::Success);
    assert_eq!(states(), [Closed; 6]);
}

#[test]
fn a_breaker_stays_open_over_a_reload_and_one_of_another_window_starts_anew() {
    let (registry, clock) = open(touchy().open_for(ms(10_000)).unwrap());
    clock.set(at(1_000));
    let changed = touchy().open_for(ms(20_000)).unwrap().with_min_calls(7).unwrap();
    registry.load(RuleSet::new().breaker(R, changed).flow("another", qps(1.0))).unwrap();
    clock.set(at(19_999));
    assert_eq!((passes(&registry, R, 1), state(&registry)), (0, Open));
    clock.set(at(20_000));
    assert_eq!(passes(&registry, R, 1), 1, "how long it stays open is the present rule's");
    trip(&registry);
    registry.load(RuleSet::new().breaker(R, changed.with_window(ms(2_000), 1).unwrap())).unwrap();
    assert_eq!(state(&registry), Closed);
}

#[test]
fn a_breaker_that_is_off_neither_judges_nor_blocks() {
    let (registry, _) = registry_with(RuleSet::new().breaker(R, touchy().with_mode(Mode::Off)));
    for _ in 0..10 {
        assert!(call(&registry, R, Outcome::Exception));
    }
    assert!(registry.stats(R).unwrap().breakers().is_empty());
}

#[test]
fn an_open_time_at_the_end_of_all_time_does_not_overflow() {
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, touchy()));
    clock.set(Timestamp::from_nanos(u64::MAX - 5));
    trip(&registry);
    assert_eq!(passes(&registry, R, 3), 0);
}

#[test]
fn transitions_in_the_order_of_their_sequence_are_a_path_however_threads_tell_them() {
    // C17
    #[derive(Default)]
    struct Path(Mutex<Vec<(u64, BreakerState, BreakerState)>>);
    impl Observer for Path {
        fn on_transition(&self, transition: &Transition<'_>) {
            self.0.lock().unwrap().push((transition.sequence(), transition.from(), transition.to()));
        }
    }
    let path = Arc::new(Path::default());
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).observer(path.clone()).build();
    let rule = BreakerRule::error_ratio(0.2).unwrap().with_min_calls(2).unwrap().open_for(ms(1)).unwrap();
    registry.load(RuleSet::new().breaker(R, rule)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let (registry, clock) = (&registry, &clock);
            scope.spawn(move || {
                for call in 0..500_u32 {
                    clock.advance(Duration::from_micros(200));
                    if let Ok(entry) = registry.enter(R) {
                        let is_bad = (call * 7 + thread) % 3 == 0;
                        entry.end(if is_bad { Outcome::Exception } else { Outcome::Success });
                    }
                }
            });
        }
    });
    let mut path = path.0.lock().unwrap().clone();
    path.sort_unstable_by_key(|(sequence, ..)| *sequence);
    assert!(path.len() > 10, "{path:?}");
    assert_eq!(path[0].1, Closed);
    assert!(path.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].2 == pair[1].1), "{path:?}");
}

/// The only breaker.
fn handle(registry: &Registry) -> BreakerHandle {
    let [handle] = registry.breakers(R).try_into().unwrap();
    handle
}

#[test]
fn a_breaker_that_is_forced_open_blocks_until_it_is_reset_and_names_no_time() {
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, touchy()));
    let running = registry.enter(R).unwrap();
    assert!(handle(&registry).force_open());
    assert_eq!(state(&registry), ForcedOpen);
    running.end(Outcome::Success);
    for _ in 0..10 {
        clock.advance(ms(5_000));
        let blocked = registry.enter(R).unwrap_err();
        assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Breaker, None));
        assert_eq!(blocked.to_string(), "`orders.create` is blocked: its circuit breaker is forced open");
        assert!(registry.would_pass(R, 1).is_err());
    }
    assert_eq!(registry.stats(R).unwrap().breakers()[0].next_probe(), None);
    assert!(handle(&registry).reset());
    assert_eq!((state(&registry), passes(&registry, R, 3)), (Closed, 3));
}

#[test]
fn a_breaker_that_is_forced_closed_counts_and_never_trips() {
    let (registry, _) = open(touchy());
    assert!(handle(&registry).force_closed());
    for _ in 0..10 {
        assert!(call(&registry, R, Outcome::Exception));
    }
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.breakers()[0].state(), stats.breakers()[0].bad_calls()), (ForcedClosed, 12));
    assert!(handle(&registry).reset());
    assert_eq!(registry.stats(R).unwrap().breakers()[0].calls(), 0, "what was before plays no part");
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Closed);
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Open);
}

#[test]
fn a_breaker_that_is_disabled_lets_pass_and_counts_nothing() {
    let (registry, _) = registry_with(RuleSet::new().breaker(R, touchy()));
    assert!(handle(&registry).disable());
    let late = registry.enter(R).unwrap();
    for _ in 0..10 {
        assert!(call(&registry, R, Outcome::Exception));
    }
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.breakers()[0].state(), stats.breakers()[0].calls()), (Disabled, 0));
    assert_eq!(stats.totals().exception(), 10);
    assert!(handle(&registry).reset());
    late.end(Outcome::Exception);
    assert_eq!(registry.stats(R).unwrap().breakers()[0].calls(), 0, "not even a late one");
}

#[test]
fn results_of_calls_from_before_a_hand_moved_it_move_nothing() {
    let (registry, clock) = open(touchy());
    clock.set(at(1_000));
    let probe = registry.enter(R).unwrap();
    assert!(handle(&registry).reset());
    probe.end(Outcome::Exception);
    assert_eq!(state(&registry), Closed);

    trip(&registry);
    clock.set(at(2_000));
    let probe = registry.enter(R).unwrap();
    assert!(handle(&registry).force_open());
    probe.end(Outcome::Success);
    assert_eq!(state(&registry), ForcedOpen);
}

#[test]
fn observers_hear_of_what_a_hand_did_and_that_it_was_one() {
    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);
    impl Observer for Log {
        fn on_transition(&self, transition: &Transition<'_>) {
            assert_eq!(transition.is_forced(), transition.to_string().ends_with(", by hand"));
            self.0.lock().unwrap().push(transition.to_string().replace("breaker of `orders.create` ", ""));
        }
    }
    let log = Arc::new(Log::default());
    let (registry, _) = registry_with(RuleSet::new().breaker(R, touchy()));
    registry.observe(Arc::clone(&log));
    trip(&registry);
    let handle = handle(&registry);
    assert!(handle.force_open());
    assert!(handle.force_open(), "it stands there already: nobody is told");
    assert!(handle.force_closed() && handle.disable() && handle.reset() && handle.reset());
    assert_eq!(
        *log.0.lock().unwrap(),
        [
            "(loaded/error_count/0): closed -> open",
            "(loaded/error_count/0): open -> forced open, by hand",
            "(loaded/error_count/0): forced open -> forced closed, by hand",
            "(loaded/error_count/0): forced closed -> disabled, by hand",
            "(loaded/error_count/0): disabled -> closed, by hand",
        ]
    );
}

#[test]
fn what_a_hand_has_put_outlives_reloads_and_goes_with_its_rule() {
    let load = |registry: &Registry, rule: BreakerRule| {
        registry.load(RuleSet::new().breaker(R, rule).flow("another", qps(1.0))).unwrap();
    };
    let (registry, _) = registry_with(RuleSet::new().breaker(R, touchy()));
    let handle = handle(&registry);
    assert!(handle.force_open());
    for rule in [touchy(), touchy().with_min_calls(3).unwrap(), touchy().with_window(ms(7_000), 7).unwrap()] {
        load(&registry, rule);
        assert_eq!((handle.state(), passes(&registry, R, 1)), (Some(ForcedOpen), 0), "{rule}");
    }
    load(&registry, touchy().with_mode(Mode::Off));
    assert_eq!((handle.state(), passes(&registry, R, 1)), (None, 1));
    assert!(!handle.force_open());
    load(&registry, touchy());
    assert_eq!((handle.state(), passes(&registry, R, 1)), (Some(ForcedOpen), 0), "it was only off");
    registry.load(RuleSet::new().flow("another", qps(1.0))).unwrap();
    assert_eq!((handle.state(), passes(&registry, R, 1)), (None, 1));
    load(&registry, touchy());
    assert_eq!((handle.state(), handle.resource()), (Some(Closed), R));
    assert!(registry.breakers("nobody").is_empty());
}

#[test]
fn the_open_time_doubles_with_each_trip_up_to_its_longest_and_a_run_repeats_itself() {
    let run = || {
        let rule = touchy().with_max_open(ms(6_000)).unwrap();
        let (registry, clock) = open(rule);
        let waits: Vec<Duration> = (0..6)
            .map(|_| {
                let wait = registry.enter(R).unwrap_err().retry_after().unwrap();
                clock.advance(wait.saturating_sub(Duration::from_nanos(1)));
                assert_eq!(passes(&registry, R, 1), 0);
                clock.advance(Duration::from_nanos(1));
                assert!(call(&registry, R, Outcome::Exception), "the probe");
                wait
            })
            .collect();
        // A recovery: the next trip begins anew.
        clock.advance(ms(6_000));
        assert!(call(&registry, R, Outcome::Success));
        trip(&registry);
        (waits, registry.enter(R).unwrap_err().retry_after().unwrap())
    };
    let (waits, after) = run();
    for (wait, [least, most]) in waits.iter().zip([
        [900, 1_100],
        [1_800, 2_200],
        [3_600, 4_400],
        [5_400, 6_000],
        [5_400, 6_000],
        [5_400, 6_000],
    ]) {
        assert!((ms(least)..=ms(most)).contains(wait), "{waits:?}");
    }
    assert_ne!(waits[3], waits[4], "each is drawn");
    assert!((ms(900)..=ms(1_100)).contains(&after), "{after:?}");
    assert_eq!(run(), (waits, after));
}

#[test]
fn a_stuck_probe_is_written_off_after_the_present_open_time() {
    // C04
    let (registry, clock) = open(touchy().with_max_open(ms(60_000)).unwrap());
    clock.advance(ms(1_100));
    assert!(call(&registry, R, Outcome::Exception));
    clock.advance(ms(2_200));
    let hung = registry.enter(R).unwrap();
    clock.advance(ms(1_799));
    assert_eq!(passes(&registry, R, 1), 0, "the open time is 1.8 s to 2.2 s by now");
    clock.advance(ms(401));
    assert_eq!(passes(&registry, R, 1), 1);
    drop(hung);
}

/// Trips on the second exception, opens for 1 s, comes back over 10 s.
fn ramping() -> BreakerRule {
    touchy().with_recovery(Recovery::Ramp { over: ms(10_000) }).unwrap()
}

/// A registry whose only breaker begins its ramp at 1 s.
fn on_the_ramp(rule: BreakerRule) -> (Registry, ManualClock) {
    let (registry, clock) = open(rule);
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Success), "the first call is a probe");
    assert_eq!(registry.stats(R).unwrap().breakers()[0].share_percent(), Some(1));
    (registry, clock)
}

#[test]
fn a_ramp_lets_a_rising_share_through_and_then_closes() {
    let (registry, clock) = on_the_ramp(ramping());
    for second in 0..10 {
        let share = (second * 10).max(1);
        assert_eq!(passes(&registry, R, 100), share, "in second {second}");
        assert_eq!(state(&registry), HalfOpen);
        clock.advance(ms(1_000));
    }
    assert_eq!(state(&registry), HalfOpen, "nobody has called");
    assert_eq!(passes(&registry, R, 100), 100);
    assert_eq!(state(&registry), Closed, "at the first result after the ramp");
}

#[test]
fn a_call_that_a_ramp_turns_away_is_told_the_share() {
    let (registry, clock) = on_the_ramp(ramping());
    clock.advance(ms(2_500));
    assert!(registry.would_pass(R, 1).is_err());
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.retry_after(), blocked.limit(), blocked.observed()), (None, None, None));
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: its circuit breaker is half-open and lets 25% of the calls through"
    );
    let shown = registry.stats(R).unwrap().breakers()[0].to_string();
    assert_eq!(shown, "error_count: half-open, 0 of 0 calls bad, 25% let through");
    assert_eq!(passes(&registry, R, 2), 0);
    for _ in 0..100 {
        assert!(registry.would_pass(R, 1).is_ok(), "the fourth passes, and looking takes nothing");
    }
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn the_calls_of_a_ramp_are_judged_by_the_rules_own_threshold() {
    // C07
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(4).unwrap().open_for(ms(1_000)).unwrap();
    let (registry, clock) = on_the_ramp(rule.with_recovery(Recovery::Ramp { over: ms(10_000) }).unwrap());
    clock.advance(ms(9_900));
    // At 99 % the first is turned away.
    assert!(!call(&registry, R, Outcome::Exception));
    for outcome in [Outcome::Exception, Outcome::Exception, Outcome::Success, Outcome::Success] {
        assert!(call(&registry, R, outcome));
    }
    assert_eq!(state(&registry), HalfOpen, "2 of 4");
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Open, "3 of 5");
}

#[test]
fn when_a_ramp_is_over_the_least_number_of_calls_plays_no_part() {
    // C19
    let rule =
        BreakerRule::error_ratio(0.5).unwrap().with_min_calls(10).unwrap().open_for(ms(1_000)).unwrap();
    let rule = rule.with_recovery(Recovery::Ramp { over: ms(10_000) }).unwrap();
    for (outcome, expected) in [(Outcome::Success, Closed), (Outcome::Exception, Open)] {
        let (registry, clock) = on_the_ramp(rule);
        clock.set(at(10_999));
        let early = [(); 3].map(|()| registry.enter(R));
        early.into_iter().flatten().for_each(|entry| entry.end(outcome));
        assert_eq!(state(&registry), HalfOpen);
        clock.set(at(11_000));
        assert!(call(&registry, R, outcome));
        assert_eq!(state(&registry), expected);
    }
}

#[test]
fn calls_that_are_cancelled_or_hang_do_not_hold_up_a_ramp() {
    // C02, C03, C04
    let (registry, clock) = on_the_ramp(ramping());
    clock.advance(ms(5_000));
    let mut hung = vec![];
    for n in 0..20 {
        match registry.enter(R) {
            Ok(entry) if n % 3 == 0 => drop(entry),
            Ok(entry) if n % 3 == 1 => entry.end(Outcome::Ignored),
            entry => hung.extend(entry),
        }
    }
    assert!(!hung.is_empty());
    clock.advance(ms(5_000));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(state(&registry), Closed);
    // What they come to afterwards moves nothing.
    for entry in hung {
        entry.end(Outcome::Exception);
    }
    assert_eq!(state(&registry), Closed);
}

#[test]
fn the_probes_before_a_ramp_are_probes_as_any() {
    // C02, C04, C05, C19
    let (registry, clock) = open(ramping().with_probes(2).unwrap().with_min_calls(5).unwrap());
    clock.set(at(1_000));
    let [first, second] = [(); 2].map(|()| registry.enter(R).unwrap());
    assert_eq!(passes(&registry, R, 5), 0);
    drop(first);
    let third = registry.enter(R).unwrap();
    second.end(Outcome::Success);
    third.end(Outcome::Exception);
    assert_eq!(state(&registry), Open, "at the first failure, without a ramp");
    clock.set(at(2_000));
    let _hung = [(); 2].map(|()| registry.enter(R).unwrap());
    clock.set(at(3_000));
    assert_eq!(passes(&registry, R, 2), 2, "those that hang are written off");
    assert_eq!(registry.stats(R).unwrap().breakers()[0].share_percent(), Some(1));
}

#[test]
fn exactly_the_share_passes_a_ramp_however_many_come_at_once() {
    // C05
    let (registry, clock) = on_the_ramp(ramping());
    clock.advance(ms(3_000));
    let start = Barrier::new(8);
    let passed: usize = std::thread::scope(|scope| {
        let ask = || {
            start.wait();
            passes(&registry, R, 125)
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 300, "of 1 000, at 30 %");
}

#[test]
fn a_window_of_calls_holds_the_last_ones_however_old_they_are() {
    // C07, C08
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(4).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, rule.with_window_calls(4).unwrap()));
    let figures = || {
        let stats = registry.stats(R).unwrap();
        (stats.breakers()[0].bad_calls(), stats.breakers()[0].calls())
    };
    let calls = [
        (Outcome::Exception, (1, 1)),
        (Outcome::Exception, (2, 2)),
        (Outcome::Success, (2, 3)),
        (Outcome::Ignored, (2, 3)),
        (Outcome::Success, (2, 4)),
        (Outcome::Success, (1, 4)),
        (Outcome::Exception, (1, 4)),
        (Outcome::Exception, (2, 4)),
    ];
    for (outcome, expected) in calls {
        clock.advance(Duration::from_secs(3_600));
        assert!(call(&registry, R, outcome));
        assert_eq!((figures(), state(&registry)), (expected, Closed));
    }
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!((figures(), state(&registry)), ((3, 4), Open));
}

#[test]
fn the_last_calls_before_a_recovery_are_forgotten() {
    // C09
    let rule = BreakerRule::error_count(3).with_min_calls(1).unwrap().with_window_calls(100).unwrap();
    let (registry, clock) = open(rule);
    clock.set(at(5_000));
    assert!(call(&registry, R, Outcome::Success));
    for n in 1..=3 {
        assert!(call(&registry, R, Outcome::Exception));
        assert_eq!((state(&registry), registry.stats(R).unwrap().breakers()[0].bad_calls()), (Closed, n));
    }
    assert!(call(&registry, R, Outcome::Exception));
    assert_eq!(state(&registry), Open, "4 since the recovery");
}

#[test]
fn threads_at_once_trip_a_window_of_calls_at_the_very_call() {
    // C08, C17
    let recorder = Recorder::default();
    let registry = Registry::builder().clock(ManualClock::new()).observer(recorder.clone()).build();
    let rule = BreakerRule::error_ratio(1.0).unwrap().with_min_calls(64).unwrap();
    registry.load(RuleSet::new().breaker(R, rule.with_window_calls(64).unwrap())).unwrap();
    for expected in [Closed, Open] {
        // 63 exceptions behind one success, which the 64th exception then pushes out.
        let entries: Vec<Entry> =
            (0..if expected == Closed { 63 } else { 1 }).map(|_| registry.enter(R).unwrap()).collect();
        if expected == Closed {
            assert!(call(&registry, R, Outcome::Success));
        }
        std::thread::scope(|scope| {
            for entry in entries {
                scope.spawn(|| entry.end(Outcome::Exception));
            }
        });
        assert_eq!(state(&registry), expected);
    }
    assert_eq!(recorder.take()[1..], ["loaded/error_ratio/0 closed -> open"]);
}

#[test]
fn a_listener_added_later_is_told_of_the_next_transition() {
    // C18
    let (registry, clock) = open(touchy());
    let recorder = Recorder::default();
    registry.observe(recorder.clone());
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(
        recorder.take(),
        ["loaded/error_count/0 open -> half-open", "loaded/error_count/0 half-open -> closed"]
    );
}

#[test]
fn after_a_hundred_reloads_of_changed_rules_one_breaker_lives_per_rule() {
    // C18
    let recorder = Recorder::default();
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).observer(recorder.clone()).build();
    let mut handles = vec![];
    for n in 1..=100_u32 {
        // Its window, its threshold or its way back: something changes each time.
        let rule = touchy().with_window(ms(1_000 * u64::from(n / 3 + 1)), 1).unwrap();
        let rule = rule.with_min_calls(1 + n % 2).unwrap().with_probes(1 + n % 5).unwrap();
        registry.load(RuleSet::new().breaker(R, rule)).unwrap();
        handles.extend(registry.breakers(R));
    }
    assert_eq!((handles.len(), registry.breakers(R).len()), (100, 1));
    assert_eq!(registry.stats(R).unwrap().breakers().len(), 1);
    recorder.take();
    trip(&registry);
    assert!(handles.iter().all(|handle| handle.state() == Some(Open)), "all are the one that lives");
    let transitions: Vec<_> = recorder.take().into_iter().filter(|line| !line.starts_with("block")).collect();
    assert_eq!(transitions, ["loaded/error_count/0 closed -> open"], "told once");
    assert!(handles[0].reset());
    assert_eq!(recorder.take(), ["loaded/error_count/0 open -> closed"]);
}
