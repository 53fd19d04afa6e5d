//! Limits on permits per interval.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::time::{Duration, SystemTime};

use common::{R, at, call_of, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    Behavior, Cause, FlowRule, HotRule, IsolationRule, Mode, Outcome, Precision, Registry, RuleError,
    RuleSet, Timestamp,
};
use proptest::prelude::*;

fn with_precision(limit: f64, precision: Precision, n_buckets: u32) -> FlowRule {
    qps(limit).with_buckets(n_buckets).unwrap().with_precision(precision).unwrap()
}

#[test]
fn the_last_call_within_the_limit_passes_and_the_first_beyond_it_does_not() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(10.0)));
    assert_eq!(passes(&registry, R, 10), 10);
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.cause(), blocked.limit(), blocked.observed()), (Cause::Flow, Some(10.0), Some(10.0)));
    assert_eq!(blocked.rule().to_string(), "loaded/flow/0");
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: its limit of 10 per 1s is reached; retry after 1s"
    );
}

#[test]
fn an_exact_limit_lets_a_call_through_the_microsecond_its_place_is_free() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(2.0)));
    for us in [100_000, 350_007] {
        clock.set(Timestamp::from_micros(us));
        assert_eq!(passes(&registry, R, 1), 1);
    }
    for (us, n) in
        [(1_099_999, 0), (1_100_000, 1), (1_350_006, 0), (1_350_007, 1), (2_099_999, 0), (2_100_000, 1)]
    {
        clock.set(Timestamp::from_micros(us));
        assert_eq!(passes(&registry, R, 2), n, "at {us} µs");
    }
}

#[test]
fn a_pass_between_two_microseconds_counts_until_the_later_one() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(1.0)));
    clock.set(Timestamp::from_nanos(500));
    assert_eq!(passes(&registry, R, 1), 1);
    clock.set(Timestamp::from_nanos(1_000_000_999));
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(Timestamp::from_nanos(1_000_001_000));
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn only_precision_sentinel_lets_buckets_expire_early() {
    // A07: five calls at 800 ms, then the last moment that blocks and the first that passes.
    let moments = [
        (with_precision(5.0, Precision::Sentinel, 2), 1_499, 1_500),
        (with_precision(5.0, Precision::Sentinel, 10), 1_799, 1_800),
        (with_precision(5.0, Precision::Exact, 2), 1_799, 1_800),
        (with_precision(5.0, Precision::Strict, 100), 1_809, 1_810),
        (with_precision(5.0, Precision::Strict, 10), 1_899, 1_900),
    ];
    for (rule, last_blocked, first_passed) in moments {
        let (registry, clock) = registry_with(RuleSet::new().flow(R, rule.clone()));
        clock.set(at(800));
        assert_eq!(passes(&registry, R, 5), 5);
        for (moment, n) in [(1_000, 0), (1_700, 0), (last_blocked, 0), (first_passed, 5)] {
            if moment <= first_passed {
                clock.set(at(moment));
                assert_eq!(
                    passes(&registry, R, 10),
                    if moment < last_blocked { 0 } else { n },
                    "{rule} at {moment} ms"
                );
            }
        }
    }
}

/// The most passes in any half-open span of `span` ms.
fn most_in(passed_at: &[u64], span: u64) -> usize {
    let in_span_from =
        |start: &u64| passed_at.iter().filter(|at| (*start..*start + span).contains(*at)).count();
    passed_at.iter().map(in_span_from).max().unwrap_or(0)
}

/// The moments at which calls passed that came so many ms apart.
fn passed_at(rule: FlowRule, deltas: &[u64]) -> Vec<u64> {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, rule));
    let moments = deltas.iter().scan(0, |now, delta| {
        *now += delta;
        Some(*now)
    });
    moments
        .filter(|moment| {
            clock.set(at(*moment));
            passes(&registry, R, 1) == 1
        })
        .collect()
}

proptest! {
    #[test]
    fn sentinels_buckets_keep_half_a_window_and_let_at_most_twice_the_limit_into_a_whole_one(
        deltas in prop::collection::vec(prop_oneof![Just(0), 0..20u64, 0..800u64], 1..200),
    ) {
        // A07
        let passed = passed_at(with_precision(5.0, Precision::Sentinel, 2), &deltas);
        prop_assert!(most_in(&passed, 500) <= 5, "{passed:?}");
        prop_assert!(most_in(&passed, 1_000) <= 10, "{passed:?}");
    }

    #[test]
    fn no_second_ever_holds_more_than_an_exact_or_strict_limit(
        deltas in prop::collection::vec(prop_oneof![Just(0), 0..20u64, 0..800u64], 1..200),
        precision in prop_oneof![Just(Precision::Exact), Just(Precision::Strict)],
    ) {
        let passed = passed_at(with_precision(5.0, precision, 10), &deltas);
        prop_assert!(most_in(&passed, 1_000) <= 5, "{passed:?}");
    }
}

#[test]
fn more_permits_than_the_limit_never_fit_and_there_is_no_moment_to_wait_for() {
    // B09
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, _) = registry_with(RuleSet::new().flow(R, with_precision(10.0, precision, 2)));
        let blocked = call_of(&registry, R, 11).unwrap_err();
        assert_eq!((blocked.retry_after(), blocked.permits()), (None, 11));
        assert_eq!(
            blocked.to_string(),
            "`orders.create` is blocked: 11 permits at once can never fit its limit of 10 per 1s"
        );
        assert!(call_of(&registry, R, 10).is_ok(), "the refused call took nothing");
        assert!(call_of(&registry, R, 1).unwrap_err().retry_after().is_some());
    }
}

#[test]
fn a_call_of_several_permits_needs_room_for_all_of_them() {
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, _) = registry_with(RuleSet::new().flow(R, with_precision(10.0, precision, 10)));
        assert!(call_of(&registry, R, 4).is_ok());
        assert!(call_of(&registry, R, 7).is_err());
        assert!(call_of(&registry, R, 6).is_ok());
        assert!(call_of(&registry, R, 1).is_err());
    }
}

#[test]
fn no_permits_are_taken_as_one() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(1.0)));
    assert!(call_of(&registry, R, 0).is_ok());
    assert!(call_of(&registry, R, 0).is_err());
    assert_eq!(registry.stats(R).unwrap().totals().passed(), 1);
}

#[test]
fn after_the_time_to_wait_a_call_passes_and_a_moment_before_it_does_not() {
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        for n in [1, 2, 3, 5, 6] {
            let rule = with_precision(6.0, precision, 10);
            let (registry, clock) = registry_with(RuleSet::new().flow(R, rule.clone()));
            for (moment, n) in [(103, 2), (250, 3), (777, 1)] {
                clock.set(at(moment));
                call_of(&registry, R, n).unwrap();
            }
            let wait = registry.would_pass(R, n).unwrap_err().retry_after().unwrap();
            clock.advance(wait.saturating_sub(Duration::from_micros(1)));
            assert!(registry.would_pass(R, n).is_err(), "{rule}: {n} before {wait:?}");
            clock.advance(Duration::from_micros(1));
            assert!(registry.would_pass(R, n).is_ok(), "{rule}: {n} after {wait:?}");
        }
    }
}

#[test]
fn repeated_blocks_tell_the_same_moment() {
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, clock) = registry_with(RuleSet::new().flow(R, with_precision(2.0, precision, 10)));
        clock.set(at(40));
        assert_eq!(passes(&registry, R, 2), 2);
        let moments = [40, 41, 500, 850, 939].map(|moment| {
            clock.set(at(moment));
            at(moment).saturating_add(registry.enter(R).unwrap_err().retry_after().unwrap())
        });
        assert!(moments.iter().all(|moment| *moment == moments[0]), "{precision:?}: {moments:?}");
    }
}

#[test]
fn every_rule_of_a_resource_holds_and_the_first_that_refuses_is_named_with_the_latest_moment() {
    let per_minute = qps(3.0).per(ms(60_000)).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(2.0)).flow(R, per_minute));
    assert_eq!(passes(&registry, R, 3), 2);
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.rule().position(), blocked.retry_after()), (0, Some(ms(1_000))));

    clock.set(at(1_000));
    assert_eq!(passes(&registry, R, 2), 1);
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.rule().position(), blocked.retry_after()), (1, Some(ms(59_000))));

    // Both refuse two: the first is named, the other decides how long it takes.
    let blocked = call_of(&registry, R, 2).unwrap_err();
    assert_eq!((blocked.rule().position(), blocked.retry_after()), (0, Some(ms(59_000))));
    assert_eq!(registry.stats(R).unwrap().totals().blocked(), 6, "blocks count permits");
}

#[test]
fn what_one_rule_refuses_takes_nothing_from_another() {
    let strict = with_precision(5.0, Precision::Strict, 10);
    let (registry, clock) = registry_with(RuleSet::new().flow(R, strict).flow(R, qps(1.0)));
    assert_eq!(passes(&registry, R, 100), 1);
    for second in 1..=3 {
        clock.set(at(second * 1_000));
        assert_eq!(passes(&registry, R, 100), 1, "second {second}");
    }
}

#[test]
fn intervals_from_a_millisecond_to_a_day_are_kept() {
    for interval in [ms(1), ms(10), ms(60_000), Duration::from_secs(86_400)] {
        for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
            let rule = with_precision(3.0, precision, 10).per(interval).unwrap();
            let (registry, clock) = registry_with(RuleSet::new().flow(R, rule.clone()));
            assert_eq!(passes(&registry, R, 4), 3);
            clock.advance(interval.saturating_sub(Duration::from_micros(1)));
            assert_eq!(passes(&registry, R, 1), 0, "{rule}");
            clock.advance(Duration::from_micros(1) + interval / 10);
            assert_eq!(passes(&registry, R, 4), 3, "{rule}");
        }
    }
}

#[test]
fn a_limit_above_1024_is_strict_and_below_it_exact_unless_asked_for() {
    let (registry, clock) =
        registry_with(RuleSet::new().flow("small", qps(1_024.0)).flow("large", qps(1_025.0)));
    clock.set(at(5));
    assert_eq!((passes(&registry, "small", 1_025), passes(&registry, "large", 1_026)), (1_024, 1_025));
    clock.set(at(1_005));
    assert_eq!((passes(&registry, "small", 1_025), passes(&registry, "large", 1)), (1_024, 0));
    clock.set(at(1_010));
    assert_eq!(passes(&registry, "large", 1_026), 1_025);
}

#[test]
fn what_cannot_be_a_limit_is_an_error_by_name_and_what_can_be_holds() {
    // B15
    let limit = |limit| FlowRule::new(limit, Behavior::Reject);
    assert!(matches!(limit(f64::NAN), Err(RuleError::Limit(nan)) if nan.is_nan()));
    assert_eq!(limit(-1.0), Err(RuleError::Limit(-1.0)));
    assert_eq!(limit(f64::INFINITY), Err(RuleError::Limit(f64::INFINITY)));
    assert_eq!(
        limit(-1.0).unwrap_err().to_string(),
        "a limit of -1 is not a number of permits: it must be 0 or more, and finite"
    );

    let (registry, _) = registry();
    let rules = RuleSet::new().flow("a", qps(10.0)).flow("d", qps(0.0)).flow("f", qps(1e308));
    let report = registry.load(rules).unwrap();
    assert_eq!(report.added(), 3);
    let [note] = report.notes() else { panic!("{report}") };
    assert!(note.starts_with("`f`: flow: 1000000") && note.ends_with("is no limit"), "{note}");

    assert_eq!(passes(&registry, "a", 20), 10);
    assert_eq!(passes(&registry, "d", 20), 0);
    assert_eq!(passes(&registry, "f", 5_000), 5_000);
    assert!(call_of(&registry, "f", u32::MAX).is_ok());
    assert_eq!(registry.stats("f").unwrap().rules().count(), 1, "the rule is kept and shown");
    let blocked = registry.enter("d").unwrap_err();
    assert_eq!(
        (blocked.to_string().as_str(), blocked.retry_after()),
        ("`d` is blocked: its limit is 0", None)
    );
}

#[test]
fn a_fraction_of_a_permit_never_passes() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(2.5)));
    assert_eq!(passes(&registry, R, 5), 2);
}

#[test]
fn asking_takes_nothing() {
    // B17
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, _) = registry_with(RuleSet::new().flow(R, with_precision(1.0, precision, 2)));
        for _ in 0..100 {
            assert!(registry.would_pass(R, 1).is_ok());
            assert!(registry.stats(R).is_some());
        }
        assert_eq!(passes(&registry, R, 1), 1);
        assert_eq!(
            registry.would_pass(R, 1).unwrap_err().to_string(),
            registry.enter(R).unwrap_err().to_string()
        );
        assert_eq!(registry.stats(R).unwrap().totals().blocked(), 1, "the question is not counted");
    }
}

#[test]
fn nobody_is_kept_from_a_resource_that_nobody_knows() {
    let (registry, _) = registry();
    assert!(registry.would_pass("unknown", 1_000).is_ok());
    assert!(registry.stats("unknown").is_none(), "asking makes no resource");
}

#[test]
fn the_wall_clock_moves_nothing() {
    // A04
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, clock) = registry_with(RuleSet::new().flow(R, with_precision(5.0, precision, 2)));
        let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let hour = Duration::from_secs(3_600);
        clock.set(at(10_000));
        clock.set_wall(noon);
        assert_eq!(passes(&registry, R, 6), 5);
        clock.set_wall(noon - hour);
        clock.set(at(11_500));
        assert_eq!(passes(&registry, R, 6), 5);
        clock.set_wall(noon + hour);
        assert_eq!(passes(&registry, R, 1), 0);
        clock.set_wall(noon);
        clock.set(at(13_000));
        assert_eq!(passes(&registry, R, 6), 5);
        assert_eq!(registry.stats(R).unwrap().at(), noon + ms(1_500));
    }
}

#[test]
fn a_clock_that_is_late_neither_panics_nor_frees_places() {
    // A04
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, clock) = registry_with(RuleSet::new().flow(R, with_precision(5.0, precision, 2)));
        clock.set(at(10_000));
        assert_eq!(passes(&registry, R, 3), 3);
        clock.set(at(3_000));
        assert_eq!(passes(&registry, R, 10), 2);
        assert_eq!(passes(&registry, R, 1), 0);
        clock.set(at(12_000));
        assert_eq!(passes(&registry, R, 6), 5);
    }
}

#[test]
fn a_rule_that_is_off_is_shown_and_decides_nothing() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(1.0).with_mode(Mode::Off)));
    assert_eq!(passes(&registry, R, 10), 10);
    let stats = registry.stats(R).unwrap();
    assert_eq!(
        stats.rules().map(|(id, rule)| (id.to_string(), rule.mode())).collect::<Vec<_>>(),
        [("loaded/flow/0".to_owned(), Mode::Off)]
    );
}

#[test]
fn a_raised_limit_leaves_only_the_difference_and_a_lowered_one_waits() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(2.0)));
    assert_eq!(passes(&registry, R, 9), 2);
    registry.load(RuleSet::new().flow(R, qps(5.0))).unwrap();
    assert_eq!(passes(&registry, R, 9), 3);
    clock.set(at(600));
    registry.load(RuleSet::new().flow(R, qps(40.0))).unwrap();
    assert_eq!(passes(&registry, R, 99), 35);
    registry.load(RuleSet::new().flow(R, qps(1.0))).unwrap();
    clock.set(at(1_599));
    assert_eq!(passes(&registry, R, 9), 0);
    clock.set(at(1_600));
    assert_eq!(passes(&registry, R, 9), 1);
}

#[test]
fn a_ring_remembers_over_a_reload_that_keeps_its_shape() {
    let strict = |limit| with_precision(limit, Precision::Strict, 10);
    let (registry, clock) = registry_with(RuleSet::new().flow(R, strict(2.0)));
    assert_eq!(passes(&registry, R, 9), 2);
    registry.load(RuleSet::new().flow(R, strict(5.0)).isolation(R, IsolationRule::new(9))).unwrap();
    assert_eq!(passes(&registry, R, 9), 3);
    clock.set(at(1_100));
    assert_eq!(passes(&registry, R, 9), 5);
}

#[test]
fn a_charge_may_overdraw_and_the_window_refuses_until_it_has_flowed_out() {
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, clock) = registry_with(RuleSet::new().flow(R, with_precision(10.0, precision, 10)));
        clock.set(at(100));
        let mut entry = registry.enter(R).unwrap();
        clock.set(at(450));
        assert_eq!(entry.charge(25), 25, "it is not asked whether there is room");
        assert_eq!(entry.permits(), 26);
        entry.end(Outcome::Success);
        assert_eq!(passes(&registry, R, 1), 0);
        let (last_blocked, first_passed) = match precision {
            Precision::Exact => (1_449, 1_450),
            Precision::Strict => (1_499, 1_500),
            _ => (1_399, 1_400),
        };
        clock.set(at(last_blocked));
        assert_eq!(passes(&registry, R, 1), 0, "{precision:?}");
        clock.set(at(first_passed));
        assert_eq!(passes(&registry, R, 11), 10, "{precision:?}");
    }
}

#[test]
fn a_charge_smaller_than_the_room_leaves_the_rest() {
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, _) = registry_with(RuleSet::new().flow(R, with_precision(10.0, precision, 10)));
        let mut entry = registry.enter(R).unwrap();
        assert_eq!(entry.charge(3), 3);
        entry.end(Outcome::Success);
        assert_eq!(passes(&registry, R, 9), 6);
    }
}

#[test]
fn a_charge_is_cut_where_a_window_could_not_count_it() {
    let most = (1 << 31) - 1;
    let (registry, clock) =
        registry_with(RuleSet::new().flow(R, with_precision(10.0, Precision::Strict, 10)));
    let mut entry = registry.enter(R).unwrap();
    assert_eq!(entry.charge(u64::MAX), most - 1);
    assert_eq!(entry.charge(1), 0);
    assert_eq!(entry.permits(), most);
    entry.end(Outcome::Success);
    assert_eq!(passes(&registry, R, 1), 0);
    assert_eq!(registry.stats(R).unwrap().minute().passed(), most);
    clock.set(at(2_000));
    assert_eq!(passes(&registry, R, 11), 10);
}

#[test]
fn a_window_that_holds_more_than_it_can_count_is_full_until_all_of_it_has_left() {
    let huge = |precision| {
        let rule = FlowRule::new(1_500_000_000.0, Behavior::Reject).unwrap();
        RuleSet::new().flow(R, rule.with_buckets(1).unwrap().with_precision(precision).unwrap())
    };
    let (registry, clock) = registry_with(huge(Precision::Sentinel));
    for second in 0..2 {
        clock.set(at(second * 1_000));
        registry.enter_with(R).permits(1_500_000_000).enter().unwrap().end(Outcome::Success);
    }
    registry.load(huge(Precision::Strict)).unwrap();
    let blocked = registry.enter(R).unwrap_err();
    clock.advance(blocked.retry_after().unwrap());
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn what_passed_is_carried_through_any_chain_of_precisions_and_limits() {
    let rule = |limit, precision| RuleSet::new().flow(R, with_precision(limit, precision, 10));
    let (registry, clock) = registry_with(rule(5.0, Precision::Exact));
    assert_eq!(passes(&registry, R, 9), 5);
    for (limit, precision) in [
        (5.0, Precision::Strict),
        (4.0, Precision::Exact),
        (5.0, Precision::Strict),
        (2.0, Precision::Exact),
        (5.0, Precision::Sentinel),
        (5.0, Precision::Exact),
    ] {
        registry.load(rule(limit, precision)).unwrap();
        assert_eq!(passes(&registry, R, 1), 0, "{limit} {precision:?}");
    }
    // They count as passing when they were carried, a microsecond after they did.
    clock.set(at(1_001));
    assert_eq!(passes(&registry, R, 9), 5);
}

#[test]
fn what_a_ring_counted_is_carried_into_a_log_that_stood_for_a_smaller_limit() {
    let rules = |limit| {
        let few = qps(4.0).per(ms(1)).unwrap();
        RuleSet::new().flow(R, few).flow(R, qps(limit))
    };
    let (registry, clock) = registry_with(rules(1_500.0));
    let passes_until = |from, to| {
        let at_each = (from..to).map(|now| {
            clock.set(at(now));
            passes(&registry, R, 3)
        });
        at_each.sum::<usize>()
    };
    assert_eq!(passes_until(0, 300), 900);
    registry.load(rules(1_000.0)).unwrap();
    assert_eq!(passes_until(300, 800), 100);
}

#[test]
fn an_exact_window_is_exact_before_and_after_its_log_has_run_out_of_time() {
    let year = 366 * 24 * 60 * 60 * 1_000;
    for idle in [8, 9, 10, 30] {
        let (registry, clock) =
            registry_with(RuleSet::new().flow(R, with_precision(1.0, Precision::Exact, 10)));
        assert_eq!(passes(&registry, R, 2), 1);
        clock.set(at(idle * year));
        assert_eq!(passes(&registry, R, 2), 1, "{idle} years");
        clock.set(at(idle * year + 999));
        assert_eq!(passes(&registry, R, 1), 0, "{idle} years");
        clock.set(at(idle * year + 1_000));
        assert_eq!(passes(&registry, R, 1), 1, "{idle} years");
    }
}

#[test]
fn an_exact_window_takes_any_charge_and_is_full_for_an_interval() {
    let most = (1 << 31) - 1;
    let (registry, clock) = registry_with(RuleSet::new().flow(R, with_precision(10.0, Precision::Exact, 10)));
    let mut entry = registry.enter(R).unwrap();
    assert_eq!(entry.charge(u64::MAX), most);
    assert_eq!(entry.charge(1), 1);
    entry.end(Outcome::Success);
    clock.set(at(999));
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(at(1_000));
    assert_eq!(passes(&registry, R, 11), 10);
}

#[test]
fn a_block_of_a_cold_resource_names_the_limit_of_the_moment_and_not_the_one_it_climbs_to() {
    let warm_up = Behavior::WarmUp { period: Duration::from_secs(10), cold_factor: 3.0 };
    let rule = FlowRule::new(90.0, warm_up).unwrap();
    let (registry, _) =
        registry_with(RuleSet::new().flow(R, rule.clone()).flow("scoped", rule.for_each_origin().unwrap()));
    for resource in [R, "scoped"] {
        let call = || registry.enter_with(resource).origin("web").enter();
        assert_eq!((0..30).filter(|_| call().is_ok()).count(), 30);
        let blocked = call().unwrap_err();
        assert_eq!((blocked.limit(), blocked.observed()), (Some(30.0), Some(30.0)));
        // More than it will ever allow.
        let blocked = registry.enter_with(resource).origin("web").permits(91).enter().unwrap_err();
        assert_eq!((blocked.limit(), blocked.retry_after()), (Some(90.0), None));
    }
}

#[test]
fn statistics_count_more_charged_bytes_than_32_bits_hold() {
    let (registry, clock) = registry_with(RuleSet::new());
    let gigabytes = 5_000_000_000;
    for second in 0..3 {
        clock.set(at(second * 1_000));
        let mut entry = registry.enter(R).unwrap();
        assert_eq!(entry.charge(gigabytes), gigabytes);
        entry.end(Outcome::Success);
    }
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.minute().passed(), stats.minute().calls()), (3 * gigabytes + 3, 3));
    assert_eq!((stats.minute().success(), stats.second().passed()), (3 * gigabytes + 3, gigabytes + 1));
}

/// Permits passed in each of so many seconds, in which calls of 4 permits come every 10 ms.
fn passed_by_second(rules: RuleSet, origin: &str, seconds: u64) -> Vec<u64> {
    let (registry, clock) = registry_with(rules);
    let second = |second| {
        let passed = (0..100).filter(|call| {
            clock.set(at(second * 1_000 + call * 10));
            registry.enter_with(R).permits(4).origin(origin).enter().is_ok()
        });
        passed.count() as u64 * 4
    };
    (0..seconds).map(second).collect()
}

#[test]
fn a_warm_up_climbs_under_load_whatever_other_rules_stand_beside_it() {
    // Cold, it lets 50 / 3 permits through, and calls of 4 use 16 of them: what is refused is what tells load from quiet.
    let (period, cold_factor) = (ms(10_000), 3.0);
    for behavior in [
        Behavior::WarmUp { period, cold_factor },
        Behavior::WarmUpThrottle { period, cold_factor, max_wait: Duration::ZERO },
    ] {
        let warm_up = FlowRule::new(50.0, behavior).unwrap();
        let idle = HotRule::concurrency("user", 1).unwrap();
        let alone = passed_by_second(RuleSet::new().flow(R, warm_up.clone()), "", 20);
        assert!(alone[0] < 24 && *alone.last().unwrap() >= 48, "{alone:?}");
        let beside = RuleSet::new().flow(R, warm_up.clone()).hot(R, idle);
        assert_eq!(passed_by_second(beside, "", 20), alone);
        let of_origin = RuleSet::new().flow(R, warm_up.for_each_origin().unwrap());
        assert_eq!(passed_by_second(of_origin, "vip", 20), alone);
    }
}

#[test]
fn many_threads_never_exceed_a_limit() {
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let (registry, clock) = registry_with(RuleSet::new().flow(R, with_precision(100.0, precision, 10)));
        for second in 0..5 {
            clock.set(at(second * 2_000));
            assert_eq!(passes_of_threads(&registry), 100, "{precision:?}");
        }
    }
}

fn passes_of_threads(registry: &Registry) -> usize {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| passes(registry, R, 100))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}
