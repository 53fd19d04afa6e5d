//! The number of resources is bounded: who has one of its own, who makes room, and who shares.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{R, Recorder, call, ms, passes, qps};
use leap_runtime::{
    Behavior, Blocked, BreakerRule, Call, Check, FlowRule, IsolationRule, ManualClock, Outcome, Registry,
    RuleSet, Verdict, guarded,
};

/// A registry with room for so many names, on a clock of its own.
fn registry_of(max: usize) -> (Registry, ManualClock, Recorder) {
    let (clock, recorder) = (ManualClock::new(), Recorder::default());
    let builder = Registry::builder().clock(clock.clone()).observer(recorder.clone());
    (builder.max_resources(max).build(), clock, recorder)
}

/// The names of all resources.
fn names(registry: &Registry) -> Vec<String> {
    registry.resources().map(|stats| stats.resource().to_owned()).collect()
}

fn passed(registry: &Registry, name: &str) -> u64 {
    registry.stats(name).map_or(0, |stats| stats.totals().passed())
}

/// Longer than what is counted is told of.
const REST: std::time::Duration = ms(60_100);

#[test]
fn a_rule_for_the_last_of_ten_thousand_names_holds_whatever_the_cap() {
    for max in [1, 100, 10_000, 20_000] {
        let (registry, _, recorder) = registry_of(max);
        for i in 0..10_000 {
            assert_eq!(passes(&registry, &format!("name {i}"), 1), 1);
        }
        for last in ["name 9999", "never entered"] {
            registry.load(RuleSet::new().flow(last, qps(1.0))).unwrap();
            assert_eq!(passes(&registry, last, 2), 1, "{last} with room for {max}");
            assert_eq!(registry.enter(last).unwrap_err().resource(), last);
        }
        let told = recorder.take().into_iter().filter(|line| line.starts_with("overflow")).count();
        assert_eq!(told, usize::from(max < 10_000), "once, with room for {max}");
        let roster = registry.roster();
        assert_eq!(roster.overflowed(), 10_000_u64.saturating_sub(max as u64));
        assert_eq!(roster.resources() + roster.shared(), registry.resources().count());
    }
}

#[test]
fn odd_names_are_resources_of_their_own_and_appear_as_they_are() {
    let (registry, _, recorder) = registry_of(100);
    let odd = ["*", "a\"b", "a|b", "a\nb", "🦘", "a?b=c:d", "(overflow) x", &"x".repeat(1_024)];
    for name in odd {
        assert_eq!(passes(&registry, name, 2), 2);
        assert_eq!(registry.stats(name).unwrap().resource(), name);
        assert!(registry.stats(name).unwrap().to_string().starts_with(name));
    }
    let mut sorted = odd;
    sorted.sort_unstable();
    assert_eq!(names(&registry), sorted);
    assert_eq!((registry.roster().unusable(), recorder.take().len()), (0, 0));
}

#[test]
fn names_that_are_empty_or_too_long_share_a_resource_are_counted_and_told_of_once() {
    let (registry, _, recorder) = registry_of(100);
    for name in ["", &"x".repeat(1_025), &"x".repeat(1 << 20), ""] {
        assert_eq!(passes(&registry, name, 1), 1);
    }
    assert_eq!(names(&registry), ["(overflow)"]);
    assert_eq!(passed(&registry, ""), 4);
    let roster = registry.roster();
    assert_eq!((roster.resources(), roster.shared(), roster.overflowed(), roster.unusable()), (0, 1, 0, 4));
    assert_eq!(recorder.take(), ["overflow: a name of 0 bytes is none: it shares `(overflow)`"]);
}

#[test]
fn names_beyond_the_cap_share_a_resource_that_can_be_limited() {
    let (registry, _, recorder) = registry_of(2);
    for name in ["a", "b", "c", "d", "c"] {
        assert_eq!(passes(&registry, name, 1), 1);
    }
    assert_eq!(names(&registry), ["(overflow)", "a", "b"]);
    assert_eq!((passed(&registry, "a"), passed(&registry, "(overflow)")), (1, 3));
    assert!(registry.stats("c").is_none());
    assert_eq!(
        recorder.take(),
        ["overflow: there are 2 resources, the most there may be: `c` shares `(overflow)`"]
    );

    registry.load(RuleSet::new().flow("(overflow)", qps(4.0))).unwrap();
    assert_eq!(passes(&registry, "a", 9), 9, "it has one of its own");
    assert!(registry.would_pass("e", 5).is_err() && registry.would_pass("e", 4).is_ok());
    assert_eq!((passes(&registry, "e", 9), passes(&registry, "f", 9)), (4, 0), "together");
    assert_eq!(registry.enter("c").unwrap_err().resource(), "(overflow)");
}

#[test]
fn would_pass_takes_no_room() {
    let (registry, ..) = registry_of(1);
    registry.would_pass("a", 1).unwrap();
    assert_eq!(passes(&registry, "b", 1), 1);
    assert_eq!(names(&registry), ["b"]);
}

#[test]
fn at_the_cap_a_resource_at_rest_makes_room_and_that_is_told_once() {
    let (registry, clock, recorder) = registry_of(3);
    for name in ["a", "b", "c"] {
        passes(&registry, name, 1);
    }
    clock.advance(REST);
    passes(&registry, "b", 1);
    for name in ["d", "e"] {
        assert_eq!(passes(&registry, name, 1), 1);
    }
    assert_eq!(names(&registry), ["b", "d", "e"], "b was called just now");
    assert_eq!(registry.roster().evicted(), 2);
    assert_eq!(
        recorder.take(),
        ["overflow: there are 3 resources, the most there may be: one at rest made room for `d`"]
    );
    passes(&registry, "f", 1);
    assert_eq!(names(&registry), ["(overflow)", "b", "d", "e"], "none was at rest");
    assert_eq!(
        recorder.take(),
        ["overflow: there are 3 resources, the most there may be: `f` shares `(overflow)`"]
    );
}

/// Blocks every call.
struct Closed;

impl Check for Closed {
    fn check(&self, _: &Call<'_>) -> Verdict {
        Verdict::Block { reason: "closed", retry_after: None }
    }
}

#[test]
fn a_resource_leaves_a_minute_after_its_last_call_or_block_and_not_before() {
    for blocked in [false, true] {
        let (registry, clock, _) = registry_of(1);
        if blocked {
            registry.add_check("a", Closed);
        }
        clock.advance(ms(50));
        assert_eq!(call(&registry, "a", Outcome::Ignored), !blocked);
        // Told of in buckets of 100 ms.
        clock.advance(ms(60_049));
        assert_eq!(passes(&registry, "b", 1), 1);
        assert!(registry.stats("b").is_none());
        clock.advance(ms(1));
        assert_eq!(passes(&registry, "b", 1), 1);
        assert_eq!(names(&registry).last().unwrap(), "b");
    }
}

#[test]
fn statistics_that_are_read_all_the_time_keep_nobody_from_leaving() {
    let (registry, clock, _) = registry_of(1);
    passes(&registry, "a", 1);
    for _ in 0..130 {
        clock.advance(ms(1_000));
        assert!(registry.table().to_string().lines().count() > 1);
        passes(&registry, "b", 1);
    }
    assert!(registry.stats("a").is_none() && registry.stats("b").is_some());
}

#[test]
fn a_name_that_comes_again_after_it_left_starts_anew() {
    let (registry, clock, _) = registry_of(1);
    passes(&registry, "a", 5);
    clock.advance(REST);
    passes(&registry, "b", 1);
    clock.advance(REST);
    passes(&registry, "a", 1);
    assert_eq!((names(&registry), passed(&registry, "a")), (vec!["a".to_owned()], 1));
}

#[test]
fn a_held_call_keeps_its_resource_and_ends_where_it_began() {
    let (registry, clock, _) = registry_of(2);
    let held = registry.enter("held").unwrap();
    for i in 0..1_000 {
        clock.advance(REST);
        assert_eq!(passes(&registry, &format!("name {i}"), 1), 1);
    }
    assert_eq!(registry.stats("held").unwrap().in_flight(), 1);
    held.end(Outcome::Success);
    let stats = registry.stats("held").unwrap();
    assert_eq!((stats.in_flight(), stats.totals().passed(), stats.totals().success()), (0, 1, 1));
    clock.advance(REST);
    passes(&registry, "one more", 1);
    assert_eq!(names(&registry), ["name 999", "one more"], "at rest like any other, and it was its turn");
}

#[test]
fn who_waits_keeps_its_resource_too() {
    let (registry, clock, _) = registry_of(1);
    let throttle = FlowRule::new(1.0, Behavior::Throttle { max_wait: ms(300_000) }).unwrap();
    registry.load(RuleSet::new().flow("a", throttle)).unwrap();
    passes(&registry, "a", 1);
    let mut first = Box::pin(registry.enter_async("a"));
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    assert!(first.as_mut().poll(&mut context).is_pending());
    registry.load(RuleSet::new()).unwrap();
    clock.advance(ms(200_000));
    passes(&registry, "b", 1);
    assert_eq!(registry.stats("a").unwrap().waiting(), 1);
    drop(first);
    let stats = registry.stats("a").unwrap();
    assert_eq!((stats.waiting(), stats.in_flight(), stats.totals().cancelled()), (0, 0, 1));
}

#[guarded("bounds.site")]
fn site() -> Result<(), Blocked> {
    Ok(())
}

#[test]
fn what_somebody_counts_on_by_name_never_leaves() {
    let (registry, clock, _) = registry_of(1);
    let watching = qps(5.0).associated("watched").unwrap();
    registry.load(RuleSet::new().flow("ruled", qps(5.0)).flow("watching", watching)).unwrap();
    registry.turn_off_resource("off");
    registry.scope(site).unwrap();
    drop(registry.enter("off").unwrap());
    for i in 0..100 {
        clock.advance(REST);
        assert_eq!(passes(&registry, &format!("name {i}"), 1), 1);
    }
    let kept = ["(overflow)", "bounds.site", "off", "ruled", "watched", "watching"];
    assert_eq!(names(&registry), kept);
    assert!(registry.roster().resources() > registry.roster().max_resources());

    // Those that nobody counts on any more go, two for one until there is room.
    registry.load(RuleSet::new()).unwrap();
    registry.turn_on_resource("off");
    for i in 0..5 {
        clock.advance(REST);
        passes(&registry, &format!("again {i}"), 1);
    }
    assert_eq!(names(&registry), ["(overflow)", "bounds.site"], "the function takes the one place there is");
}

#[test]
fn a_call_site_has_a_resource_of_its_own_at_the_cap() {
    let (registry, ..) = registry_of(1);
    passes(&registry, "a", 1);
    for _ in 0..3 {
        registry.scope(site).unwrap();
    }
    assert_eq!((passed(&registry, "bounds.site"), registry.roster().overflowed()), (3, 0));
}

#[test]
fn who_holds_a_breaker_in_the_hand_keeps_its_resource() {
    let (registry, clock, _) = registry_of(1);
    registry.load(RuleSet::new().breaker(R, BreakerRule::error_count(1))).unwrap();
    let breaker = registry.breakers(R).remove(0);
    registry.load(RuleSet::new()).unwrap();
    clock.advance(REST);
    passes(&registry, "a", 1);
    assert!(registry.stats(R).is_some());
    drop(breaker);
    passes(&registry, "a", 1);
    assert!(registry.stats(R).is_none());
}

#[test]
fn threads_that_enter_one_name_while_others_push_it_out_never_lose_a_call() {
    // Two names take turns in one place; whoever is inside must be seen in flight by all.
    let (registry, clock, _) = registry_of(1);
    let n_passed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (registry, clock, n_passed) = (&registry, &clock, &n_passed);
            scope.spawn(move || {
                for i in 0..5_000 {
                    let name = if (i + thread) % 3 == 0 { "a" } else { "b" };
                    let Ok(entry) = registry.enter(name) else { continue };
                    n_passed.fetch_add(1, Ordering::Relaxed);
                    let entered = entry.resource().to_owned();
                    let live = registry.stats(&entered).expect("it is held");
                    assert!(live.in_flight() >= 1, "{entered} is another one than the one that counts");
                    entry.end(Outcome::Success);
                    clock.advance(REST);
                }
            });
        }
    });
    clock.advance(REST);
    passes(&registry, "c", 1);
    n_passed.fetch_add(1, Ordering::Relaxed);
    assert!(registry.roster().evicted() > 0, "or nothing was shown");
    assert_eq!(n_passed.into_inner(), 20_001);
    assert!(registry.resources().all(|stats| stats.in_flight() == 0));
    let roster = registry.roster();
    assert_eq!(roster.resources() + roster.shared(), registry.resources().count());
    assert!(roster.resources() <= 1);
}

#[test]
fn the_cap_is_ten_thousand_unless_it_is_said() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    assert_eq!(registry.roster().max_resources(), 10_000);
    assert_eq!(
        registry.roster().to_string(),
        "resources: 0 of 10000, 0 made room, 0 shared; calls without one of their own: 0, 0 for their names"
    );
}

#[test]
#[should_panic(expected = "0 resources leave no room for any name")]
fn a_registry_without_room_is_refused() {
    let _ = Registry::builder().max_resources(0);
}

#[test]
fn a_name_that_only_a_pattern_matches_leaves_when_its_windows_are_empty_and_not_before() {
    let (registry, clock, _) = registry_of(1);
    let hourly = qps(3.0).per(ms(3_600_000)).unwrap();
    registry.load(RuleSet::new().flow("orders.*", hourly)).unwrap();
    assert_eq!(passes(&registry, "orders.a", 5), 3);
    clock.advance(ms(3_600_000));
    assert_eq!(passes(&registry, "b", 1), 1);
    assert!(registry.stats("orders.a").is_some(), "an hour later it may still remember");
    clock.advance(REST);
    assert_eq!(passes(&registry, "b", 1), 1);
    assert!(registry.stats("orders.a").is_none() && registry.stats("b").is_some());
    clock.advance(REST);
    assert_eq!(passes(&registry, "orders.a", 5), 3, "it comes again under its rule");
}

#[test]
fn an_open_breaker_of_a_pattern_keeps_its_resource() {
    let (registry, clock, _) = registry_of(1);
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap();
    registry.load(RuleSet::new().breaker("*.a", breaker)).unwrap();
    call(&registry, "x.a", Outcome::Exception);
    clock.advance(ms(100_000_000));
    passes(&registry, "b", 1);
    assert!(registry.stats("x.a").is_some());
    assert_eq!(passes(&registry, "x.a", 1), 1, "a probe closes it");
    clock.advance(REST);
    passes(&registry, "b", 1);
    assert!(registry.stats("x.a").is_none());
}

#[test]
fn names_of_a_pattern_beyond_the_cap_have_its_limit_together() {
    let (registry, clock, recorder) = registry_of(2);
    let rules =
        |limit| RuleSet::new().flow("orders.*", qps(limit)).isolation("orders.big.*", IsolationRule::new(1));
    registry.load(rules(3.0)).unwrap();
    recorder.take();
    assert_eq!((passes(&registry, "orders.1", 9), passes(&registry, "orders.2", 9)), (3, 3));
    assert!(registry.would_pass("orders.3", 3).is_ok() && registry.would_pass("orders.3", 4).is_err());
    assert_eq!((passes(&registry, "orders.3", 2), passes(&registry, "orders.4", 9)), (2, 1));
    let big = registry.enter("orders.big.5").unwrap();
    assert_eq!(registry.enter("orders.big.6").unwrap_err().resource(), "(overflow) orders.big.* + orders.*");
    drop(big);
    assert_eq!(passes(&registry, "stock.7", 9), 9);
    assert_eq!(
        recorder.take().into_iter().filter(|line| line.starts_with("overflow")).collect::<Vec<_>>(),
        [
            "overflow: there are 2 resources, the most there may be: `orders.3` shares `(overflow) orders.*`",
            "overflow: there are 2 resources, the most there may be: `orders.big.5` shares \
             `(overflow) orders.big.* + orders.*`",
            "overflow: there are 2 resources, the most there may be: `stock.7` shares `(overflow)`",
        ]
    );

    // They go by what is loaded later, too.
    registry.load(rules(5.0)).unwrap();
    clock.advance(ms(1_000));
    assert_eq!(passes(&registry, "orders.3", 9), 5);
    registry.load(RuleSet::new()).unwrap();
    assert_eq!(passes(&registry, "orders.3", 9), 9);
}

#[test]
fn nobody_gets_past_a_pattern_by_the_name_of_what_is_shared() {
    let (registry, ..) = registry_of(1);
    registry.load(RuleSet::new().flow("orders.*", qps(1.0))).unwrap();
    assert_eq!(passes(&registry, "(overflow) orders.*", 3), 1);
    assert_eq!(passes(&registry, "orders.1", 3), 0, "there is no more room, and the limit is reached");
}

#[test]
fn would_pass_asks_the_rules_of_patterns_and_still_takes_no_room() {
    let (registry, ..) = registry_of(1);
    registry.load(RuleSet::new().flow("orders.*", qps(2.0))).unwrap();
    assert!(registry.would_pass("orders.1", 2).is_ok());
    assert_eq!(registry.would_pass("orders.1", 3).unwrap_err().resource(), "orders.1");
    assert_eq!(registry.roster().resources(), 0);
}

#[test]
fn a_rule_that_comes_to_name_a_resource_keeps_it_and_one_that_ceases_to_lets_it_go() {
    let (registry, clock, _) = registry_of(1);
    let named = || RuleSet::new().flow("a", qps(5.0)).flow("*", qps(7.0));
    registry.load(named()).unwrap();
    clock.advance(REST);
    assert_eq!(passes(&registry, "b", 1), 1);
    assert!(registry.stats("a").is_some() && registry.stats("b").is_none());
    registry.load(RuleSet::new().flow("*", qps(7.0))).unwrap();
    clock.advance(REST);
    assert_eq!(passes(&registry, "b", 1), 1);
    assert!(registry.stats("a").is_none() && registry.stats("b").is_some());
    registry.load(named()).unwrap();
    assert_eq!(passes(&registry, "a", 9), 5);
}

/// The name of what names share is nobody's: patterns that happen to match it say nothing of those who share it.
#[test]
fn names_that_share_a_resource_go_by_the_patterns_that_match_them_and_by_no_other() {
    let registry = Registry::builder().clock(ManualClock::new()).max_resources(1).build();
    let none = || IsolationRule::new(0);
    registry
        .load(RuleSet::new().isolation("*flow*", none()).isolation("*v*", none()).flow("orders.*", qps(2.0)))
        .unwrap();
    assert_eq!(passes(&registry, "stock", 1), 1);
    assert_eq!((passes(&registry, "orders.1", 1), passes(&registry, "orders.2", 9)), (1, 1));
    assert_eq!(passes(&registry, "a", 9), 9);
    assert_eq!((passes(&registry, "flow", 9), passes(&registry, "v", 9)), (0, 0));
}

/// Of patterns with rules of one kind the most specific holds, so there is a shared resource for each, and not for each set.
#[test]
fn patterns_make_as_many_shared_resources_as_hold_and_not_as_can_be_combined() {
    let registry = Registry::builder().clock(ManualClock::new()).max_resources(1).build();
    let letters = 'a'..='p';
    let rules =
        letters.clone().fold(RuleSet::new(), |rules, letter| rules.flow(format!("*{letter}*"), qps(1.0)));
    registry.load(rules).unwrap();
    registry.enter("0").unwrap().end(Outcome::Success);
    let mut n_passed = 0;
    for set in 1_u32..1 << 11 {
        let name: String = letters
            .clone()
            .enumerate()
            .filter(|(i, _)| set >> i & 1 == 1)
            .map(|(_, letter)| letter)
            .collect();
        n_passed += passes(&registry, &name, 1);
    }
    assert_eq!((registry.roster().shared(), n_passed), (11, 11));
}
