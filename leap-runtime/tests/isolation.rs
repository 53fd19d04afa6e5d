//! Limits on calls in flight.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::sync::Barrier;

use common::{R, call, call_of, passes, qps, registry, registry_with};
use leap_runtime::{BreakerRule, Cause, IsolationRule, Mode, Outcome, RuleSet};

fn at_most(max: u32) -> RuleSet {
    RuleSet::new().isolation(R, IsolationRule::new(max))
}

#[test]
fn the_last_permit_passes_the_next_does_not_and_each_end_frees_one() {
    let (registry, _) = registry_with(at_most(2));
    let first = registry.enter(R).unwrap();
    let second = registry.enter(R).unwrap();
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!(
        (blocked.cause(), blocked.limit(), blocked.observed()),
        (Cause::Isolation, Some(2.0), Some(2.0))
    );
    assert_eq!(blocked.retry_after(), None, "it depends on calls that are running");
    assert_eq!(blocked.to_string(), "`orders.create` is blocked: 2 of at most 2 calls are in flight");
    drop(first);
    let third = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    second.end(Outcome::Exception);
    third.end(Outcome::Ignored);
    assert_eq!(passes(&registry, R, 3), 3, "calls that follow one another never meet");
    assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
}

#[test]
fn a_limit_of_0_blocks_every_call() {
    let (registry, _) = registry_with(at_most(0));
    assert_eq!(passes(&registry, R, 5), 0);
    assert_eq!(registry.stats(R).unwrap().totals().blocked_by(Cause::Isolation), 5);
}

#[test]
fn of_100_threads_exactly_as_many_as_allowed_are_inside_at_once() {
    // A13
    let (registry, _) = registry_with(at_most(10));
    let (start, all_asked) = (Barrier::new(100), Barrier::new(101));
    let passed = std::thread::scope(|scope| {
        let ask = || {
            start.wait();
            let entry = registry.enter(R);
            all_asked.wait();
            entry.map(|entry| entry.end(Outcome::Success)).is_ok()
        };
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
        all_asked.wait();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|passed| *passed).count()
    });
    let stats = registry.stats(R).unwrap();
    assert_eq!((passed, stats.totals().blocked()), (10, 90));
    assert_eq!((stats.second().peak_in_flight(), stats.in_flight()), (Some(10), 0));
}

#[test]
fn a_call_of_several_permits_takes_them_all_and_gives_them_all_back() {
    // A15
    let (registry, _) = registry_with(at_most(10));
    let six = registry.enter_with(R).permits(6).enter().unwrap();
    assert!(call_of(&registry, R, 6).is_err());
    assert_eq!(registry.stats(R).unwrap().in_flight(), 6);
    assert!(call_of(&registry, R, 4).is_ok());
    drop(six);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.in_flight(), stats.totals().passed(), stats.totals().calls()), (0, 10, 2));
    assert_eq!(stats.totals().blocked(), 6);
    assert!(call_of(&registry, R, 10).is_ok());
}

#[test]
fn a_permit_is_given_back_when_a_later_check_refuses() {
    // A18
    let (registry, _) = registry_with(at_most(5).flow(R, qps(1.0)));
    let calls: Vec<_> = (0..1_000).map(|_| registry.enter(R)).collect();
    let stats = registry.stats(R).unwrap();
    assert_eq!(
        (stats.totals().passed(), stats.totals().blocked_by(Cause::Flow), stats.in_flight()),
        (1, 999, 1)
    );
    drop(calls);
    assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
    assert_eq!(
        registry.stats(R).unwrap().second().peak_in_flight(),
        Some(1),
        "who is refused is never in flight"
    );
}

#[test]
fn a_permit_is_given_back_when_the_body_panics() {
    let (registry, _) = registry_with(at_most(1));
    for _ in 0..3 {
        let entry = registry.enter(R).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            entry.run(|| -> Result<(), ()> { panic!("in the body") })
        }));
        assert!(panicked.is_err());
    }
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().exception(), stats.in_flight()), (3, 0));
}

#[test]
fn the_first_of_several_limits_that_refuses_is_named() {
    let rules = at_most(3).isolation(R, IsolationRule::new(2)).isolation(R, IsolationRule::new(1));
    let (registry, _) = registry_with(rules);
    assert_eq!(call_of(&registry, R, 4).unwrap_err().rule().position(), 0);
    assert_eq!(call_of(&registry, R, 3).unwrap_err().rule().position(), 1);
    assert_eq!(call_of(&registry, R, 2).unwrap_err().rule().position(), 2);
    assert!(call_of(&registry, R, 1).is_ok());
}

#[test]
fn calls_in_flight_keep_their_permits_over_a_reload() {
    let (registry, _) = registry_with(at_most(2));
    let held = [registry.enter(R).unwrap(), registry.enter(R).unwrap()];
    let report = registry.load(at_most(3)).unwrap();
    assert_eq!((report.changed(), report.notes().len()), (1, 0));
    let third = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    registry.load(at_most(1)).unwrap();
    drop(held);
    assert!(registry.enter(R).is_err(), "the third is still inside");
    drop(third);
    assert_eq!(passes(&registry, R, 2), 2);
}

#[test]
fn calls_that_were_running_before_the_first_limit_are_not_in_it_and_the_report_says_so() {
    let (registry, _) = registry();
    let before = [registry.enter(R).unwrap(), registry.enter(R).unwrap()];
    let report = registry.load(at_most(1)).unwrap();
    assert_eq!(
        report.notes(),
        ["`orders.create`: the 2 calls already in flight are not in the new isolation's count"]
    );
    let inside = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    assert_eq!(registry.stats(R).unwrap().in_flight(), 3);
    drop(before);
    assert!(registry.enter(R).is_err(), "they took nothing and give nothing back");
    drop(inside);
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn a_limit_that_is_off_blocks_nobody() {
    let (registry, _) =
        registry_with(RuleSet::new().isolation(R, IsolationRule::new(0).with_mode(Mode::Off)));
    assert_eq!(passes(&registry, R, 5), 5);
}

#[test]
fn asking_takes_no_permit() {
    // B17
    let (registry, _) = registry_with(at_most(1));
    for _ in 0..100 {
        assert!(registry.would_pass(R, 1).is_ok());
    }
    assert!(registry.would_pass(R, 2).is_err());
    let entry = registry.enter(R).unwrap();
    assert!(registry.would_pass(R, 1).is_err());
    drop(entry);
    assert!(registry.would_pass(R, 1).is_ok());
}

#[test]
fn a_call_that_is_refused_here_is_no_result_for_a_breaker() {
    // C10
    let breaker = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(10).unwrap();
    let (registry, _) = registry_with(at_most(1).breaker(R, breaker));
    let inside = registry.enter(R).unwrap();
    for _ in 0..100 {
        assert!(!call(&registry, R, Outcome::Exception));
    }
    inside.end(Outcome::Success);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.breakers()[0].calls(), stats.breakers()[0].bad_calls()), (1, 0));
    assert_eq!((stats.totals().exception(), stats.totals().blocked_by(Cause::Isolation)), (0, 100));
}

#[test]
fn charged_permits_are_not_seen() {
    let (registry, _) = registry_with(at_most(2));
    let mut entry = registry.enter(R).unwrap();
    entry.charge(50);
    assert!(call(&registry, R, Outcome::Success));
    drop(entry);
    assert!(call_of(&registry, R, 2).is_ok());
    assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
}
