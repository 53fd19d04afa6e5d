//! Limits that climb under load, and fall when there is little to do.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::time::Duration;

use common::waits::{Call, Line};
use common::{R, at, call, ms, passes, qps, registry_with};
use leap_runtime::{
    Behavior, Blocked, Cause, FlowRule, Limiter, ManualClock, Mode, Outcome, Precision, Registry, RuleSet,
};

fn behavior(period_s: u64, cold_factor: f64) -> Behavior {
    Behavior::WarmUp { period: Duration::from_secs(period_s), cold_factor }
}

fn warm_up(limit: f64, period_s: u64, cold_factor: f64) -> FlowRule {
    FlowRule::new(limit, behavior(period_s, cold_factor)).unwrap()
}

fn paced_warm_up(limit: f64, period_s: u64, cold_factor: f64, max_wait_ms: u64) -> FlowRule {
    let (period, max_wait) = (Duration::from_secs(period_s), ms(max_wait_ms));
    FlowRule::new(limit, Behavior::WarmUpThrottle { period, cold_factor, max_wait }).unwrap()
}

/// A resource under such a rule, on whole seconds.
fn warming(rule: FlowRule) -> (Registry, ManualClock) {
    registry_with(RuleSet::new().flow(R, rule))
}

/// How many calls pass in each of the next seconds, with one every 5 ms.
fn saturate(registry: &Registry, clock: &ManualClock, seconds: usize) -> Vec<usize> {
    let second = |_| {
        let calls = (0..200).filter(|_| {
            let passed = call(registry, R, Outcome::Success);
            clock.advance(ms(5));
            passed
        });
        calls.count()
    };
    (0..seconds).map(second).collect()
}

fn idle(clock: &ManualClock, seconds: u64) {
    clock.advance(Duration::from_secs(seconds));
}

#[test]
fn a_cold_limit_starts_at_a_third_and_reaches_the_whole_in_about_its_period() {
    // B13
    for precision in [Precision::Exact, Precision::Strict] {
        let (registry, clock) = warming(warm_up(30.0, 10, 3.0).with_precision(precision).unwrap());
        for _ in 0..2 {
            let seconds = saturate(&registry, &clock, 20);
            assert!((9..=11).contains(&seconds[0]), "{seconds:?}");
            assert!(seconds.is_sorted() && seconds.iter().all(|passed| *passed <= 30), "{seconds:?}");
            let full = seconds.iter().position(|passed| *passed == 30).unwrap() + 1;
            assert!((8..=13).contains(&full), "in second {full}: {seconds:?}");
            idle(&clock, 20);
        }
    }
}

#[test]
fn a_small_limit_warms_up_and_cools_down_too() {
    // B13
    let (registry, clock) = warming(warm_up(2.0, 5, 3.0));
    for _ in 0..2 {
        let seconds = saturate(&registry, &clock, 12);
        assert!((1..=3).contains(&seconds[..3].iter().sum::<usize>()), "{seconds:?}");
        assert!(seconds[7..].iter().all(|passed| *passed == 2), "{seconds:?}");
        idle(&clock, 10);
    }
    // After 5 s, 5 of the 10 tokens are used, which is exactly where the warning line lies.
    assert_eq!(saturate(&registry, &clock, 6), [1, 1, 1, 1, 1, 2]);
    idle(&clock, 10);
    assert_eq!(saturate(&registry, &clock, 1), [1]);
}

#[test]
fn what_cannot_warm_up_is_an_error_by_name_and_other_rules_are_not_touched() {
    // B14
    let period = Duration::from_secs(10);
    for (behavior, says) in [
        (behavior(10, 0.0), "a cold factor of 0 would not start below the limit"),
        (behavior(10, 1.0), "a cold factor of 1 would not start below the limit"),
        (behavior(10, f64::NAN), "a cold factor of NaN would not start below the limit"),
        (behavior(10, f64::INFINITY), "a cold factor of inf would not start below the limit"),
        (
            Behavior::WarmUpThrottle { period, cold_factor: 1.0, max_wait: ms(5) },
            "a cold factor of 1 would not start below the limit",
        ),
    ] {
        let error = FlowRule::new(10.0, behavior).unwrap_err();
        assert!(error.to_string().starts_with(says), "{error}");
    }
    let zero = FlowRule::new(10.0, behavior(0, 3.0)).unwrap_err();
    assert!(zero.to_string().contains("0ns"), "{zero}");
    // What can be, however odd, is a number of calls and never NaN.
    for factor in [1.0 + f64::EPSILON, 1.5, 1e9, 1e300] {
        let (registry, clock) = warming(warm_up(10.0, 10, factor));
        let seconds = saturate(&registry, &clock, 3);
        assert!(seconds.iter().all(|passed| (1..=10).contains(passed)), "{factor}: {seconds:?}");
    }
    let rules = RuleSet::new().flow(R, qps(3.0)).flow(R, warm_up(300.0, 10, 3.0));
    assert_eq!(passes(&registry_with(rules).0, R, 10), 3);
}

#[test]
fn a_limit_of_one_call_lets_it_through_however_cold() {
    let (registry, clock) = warming(warm_up(1.0, 10, 3.0));
    assert_eq!(saturate(&registry, &clock, 5), [1; 5]);
    let (registry, clock) = warming(warm_up(0.0, 10, 3.0));
    assert_eq!(saturate(&registry, &clock, 3), [0; 3]);
}

#[test]
fn little_traffic_lets_a_limit_get_cold_and_steady_traffic_keeps_it_warm() {
    let (registry, clock) = warming(warm_up(30.0, 10, 3.0));
    assert_eq!(saturate(&registry, &clock, 20).last(), Some(&30));
    idle(&clock, 1);
    // 15 calls per second are over the third that passes when cold.
    for _ in 0..60 {
        assert_eq!(passes(&registry, R, 15), 15);
        idle(&clock, 1);
    }
    assert!(saturate(&registry, &clock, 1)[0] >= 28);
    idle(&clock, 1);
    for _ in 0..60 {
        assert_eq!(passes(&registry, R, 5), 5);
        idle(&clock, 1);
    }
    assert!(saturate(&registry, &clock, 1)[0] <= 12);
}

#[test]
fn traffic_below_the_limit_and_above_the_cold_one_is_never_refused_once_it_is_warm() {
    for (period_s, per_second) in [(1, 11), (1, 21), (1, 29), (3, 15), (10, 21)] {
        let (registry, clock) = warming(warm_up(30.0, period_s, 3.0));
        saturate(&registry, &clock, 20);
        // Until what passed last has left the window.
        clock.advance(ms(150));
        for second in 0..60 {
            assert_eq!(passes(&registry, R, per_second), per_second, "{period_s} s: second {second}");
            idle(&clock, 1);
        }
    }
}

#[test]
fn those_who_are_refused_are_demand_so_that_a_limit_does_not_cool_down_under_them() {
    let rules = RuleSet::new().flow(R, warm_up(30.0, 10, 3.0)).flow(R, qps(5.0));
    let (registry, clock) = registry_with(rules);
    assert_eq!(saturate(&registry, &clock, 30), [5; 30], "another rule decides");
}

#[test]
fn a_blocked_call_is_told_the_limit_and_a_moment_at_which_there_is_room() {
    let (registry, clock) = warming(warm_up(30.0, 10, 3.0));
    assert_eq!(passes(&registry, R, 11), 10);
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.cause(), blocked.limit()), (Cause::Flow, Some(10.0)), "that of the moment");
    let retry_after = blocked.retry_after().unwrap();
    assert!(retry_after <= ms(1_000), "{retry_after:?}");
    clock.advance(retry_after);
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn more_permits_than_pass_when_cold_fit_when_it_is_warm() {
    let (registry, clock) = warming(warm_up(30.0, 10, 3.0));
    let ask = |n| registry.enter_with(R).permits(n).enter();
    let blocked: Blocked = ask(20).unwrap_err();
    assert!(blocked.retry_after().is_some(), "it fits the limit, only not what stands");
    assert_eq!(ask(31).unwrap_err().retry_after(), None);
    saturate(&registry, &clock, 20);
    idle(&clock, 1);
    assert!(ask(20).is_ok());
}

#[test]
fn a_reload_leaves_a_limit_as_warm_as_it_is() {
    let (registry, clock) = warming(warm_up(30.0, 10, 3.0));
    saturate(&registry, &clock, 20);
    registry.load(RuleSet::new().flow(R, warm_up(30.0, 10, 3.0))).unwrap();
    assert_eq!(saturate(&registry, &clock, 1), [30]);
    registry.load(RuleSet::new().flow(R, warm_up(60.0, 10, 3.0))).unwrap();
    assert_eq!(saturate(&registry, &clock, 2)[1], 60);
    registry.load(RuleSet::new().flow(R, warm_up(60.0, 10, 3.0).with_mode(Mode::Off))).unwrap();
    assert_eq!(passes(&registry, R, 200), 200);
}

#[test]
fn a_charge_is_traffic_like_any_other() {
    let (registry, clock) = warming(warm_up(30.0, 10, 3.0));
    for _ in 0..15 {
        let mut entry = registry.enter(R).unwrap();
        entry.charge(20);
        entry.end(Outcome::Success);
        idle(&clock, 1);
    }
    let passed = passes(&registry, R, 40);
    assert!(passed >= 25, "{passed}: 21 per second have warmed it up");
}

#[test]
fn a_clock_that_steps_back_neither_panics_nor_warms_anything() {
    let (registry, clock) = warming(warm_up(30.0, 10, 3.0));
    clock.set(at(100_000));
    assert_eq!(passes(&registry, R, 20), 10);
    clock.set(at(50_000));
    assert_eq!(passes(&registry, R, 20), 0);
    clock.set(at(101_000));
    assert!((9..=11).contains(&passes(&registry, R, 20)));
}

#[test]
fn sentinels_precision_counts_in_whole_tokens_and_a_limit_of_two_never_passes() {
    let rule = warm_up(2.0, 5, 3.0).with_precision(Precision::Sentinel).unwrap();
    let (registry, clock) = warming(rule);
    clock.set(at(60_000));
    assert_eq!(saturate(&registry, &clock, 12), [0; 12]);
}

#[test]
fn a_bare_limiter_warms_up_as_well() {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(warm_up(30.0, 10, 3.0), clock.clone());
    let mut seconds = vec![];
    for _ in 0..15 {
        let before = limiter.acquired();
        for _ in 0..200 {
            let _ = limiter.try_acquire(1);
            clock.advance(ms(5));
        }
        seconds.push(limiter.acquired() - before);
    }
    assert!((9..=11).contains(&seconds[0]) && seconds[14] == 30, "{seconds:?}");
}

// --- Paced ---

#[test]
fn a_pace_warms_up_as_a_limit_does() {
    let (registry, clock) = warming(paced_warm_up(30.0, 10, 3.0, 0));
    for _ in 0..2 {
        let seconds = saturate(&registry, &clock, 20);
        assert!((9..=11).contains(&seconds[0]), "{seconds:?}");
        // With a call every 5 ms most turns of 33.3 ms take 35: 28 or 29 of them fit.
        assert!(seconds.windows(2).all(|pair| pair[0] <= pair[1] + 1), "{seconds:?}");
        assert!((28..=29).contains(seconds.last().unwrap()), "{seconds:?}");
        idle(&clock, 20);
    }
}

#[test]
fn a_cold_pace_has_calls_wait_a_factor_longer() {
    let line = Line::new(RuleSet::new().flow(R, paced_warm_up(30.0, 10, 3.0, 500)));
    let waits = line.waits([1; 8]);
    let ms: Vec<_> = waits.iter().map(|wait| wait.map(|wait| wait.as_millis())).collect();
    assert_eq!(ms, [Some(0), Some(100), Some(200), Some(300), Some(400), Some(500), None, None]);
    assert_eq!(line.registry.stats(R).unwrap().waiting(), 5);
}

#[test]
fn a_cancelled_wait_of_a_warming_pace_gives_its_turn_back() {
    let line = Line::new(RuleSet::new().flow(R, paced_warm_up(30.0, 10, 3.0, 500)));
    drop(Call::new(line.registry.enter_with(R)).entry());
    let (wait, last) = line.ask(line.registry.enter_with(R)).unwrap();
    assert_eq!(wait, ms(100));
    drop(last);
    assert_eq!(line.waits([1]), [Some(ms(100))]);
}

#[test]
fn calls_that_wait_in_a_warming_pace_are_demand() {
    let line = Line::new(RuleSet::new().flow(R, paced_warm_up(30.0, 10, 3.0, 200)));
    for _ in 0..15 * 200 {
        line.waits([1]);
        line.diary.clock.advance(ms(5));
    }
    line.diary.clock.advance(ms(500));
    let gaps = line.waits([1, 1]);
    assert_eq!(gaps[0], Some(Duration::ZERO));
    assert!(gaps[1].unwrap() < ms(36), "warm after 15 s of more than it takes: {gaps:?}");
}

#[test]
fn calls_that_would_wait_in_a_warming_pace_are_demand_where_a_limit_refuses_them_too() {
    let rules = || RuleSet::new().flow(R, paced_warm_up(15.0, 2, 3.0, 300)).flow(R, qps(3.0));
    let in_shadow = qps(1.0).with_mode(Mode::Shadow);
    for rules in [rules(), rules().flow(R, in_shadow)] {
        let (registry, clock) = registry_with(rules);
        let call = |n| registry.enter_with(R).permits(n);
        // One permit per second is little, and lets it get cold; unless more is asked for.
        for second in 0..12 {
            clock.set(at(second * 1_000));
            Call::new(call(1)).entry().end(Outcome::Success);
            assert!(Call::new(call(3)).blocked().to_string().contains("its limit of 3 per 1s is reached"));
        }
        clock.set(at(12_000));
        Call::new(call(2)).entry().end(Outcome::Success);
        // Two permits cost 400 ms when it is cold, and 187 ms by now.
        Call::waiting(call(1));
    }
}
