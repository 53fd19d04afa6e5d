//! Priority calls: where a window is full they wait for a place in the next one.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::thread;

use common::waits::{ByClock, Call, Line, Silent, until};
use common::{R, at, call, call_of, ms, passes, qps, registry_with};
use leap_runtime::{
    AuthorityRule, Behavior, BreakerRule, BreakerState, Cause, EnterWith, FlowRule, HotRule, IsolationRule,
    ManualClock, Outcome, Precision, Registry, RuleSet, SystemRule,
};

fn limited(limit: f64) -> RuleSet {
    RuleSet::new().flow(R, qps(limit))
}

fn priority(registry: &Registry) -> EnterWith<'_> {
    registry.enter_with(R).priority()
}

/// In flight, passed, blocked.
fn figures(registry: &Registry) -> [u64; 3] {
    let stats = registry.stats(R).unwrap();
    [stats.in_flight(), stats.totals().passed(), stats.totals().blocked()]
}

#[test]
fn a_priority_call_that_finds_the_window_full_waits_for_the_next_and_passes() {
    let (registry, clock) = registry_with(limited(2.0));
    drop(Call::new(priority(&registry)).entry());
    clock.set(at(300));
    assert_eq!(passes(&registry, R, 2), 1);
    let mut waiting = Call::waiting(priority(&registry));
    assert_eq!(figures(&registry), [0, 2, 1], "it has not passed, and is not blocked");
    clock.set(at(999));
    assert!(!waiting.was_woken() && waiting.is_waiting());
    clock.set(at(1_000));
    assert!(waiting.was_woken());
    let entry = waiting.entry();
    clock.set(at(1_005));
    entry.end(Outcome::Success);
    assert_eq!(figures(&registry), [0, 3, 1]);
    assert_eq!(registry.stats(R).unwrap().second().rt_max(), Some(ms(5)), "the wait is no part of it");
}

#[test]
fn ordinary_calls_see_the_limit_less_the_places() {
    let (registry, clock) = registry_with(limited(3.0));
    assert_eq!(passes(&registry, R, 3), 3);
    let mut waiting = [Call::waiting(priority(&registry)), Call::waiting(priority(&registry))];
    clock.set(at(1_000));
    let blocked = call_of(&registry, R, 2).unwrap_err();
    assert_eq!((blocked.cause(), blocked.retry_after().is_some()), (Cause::Flow, true));
    assert_eq!(passes(&registry, R, 3), 1);
    for call in &mut waiting {
        drop(call.entry());
    }
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(at(2_000));
    assert_eq!(passes(&registry, R, 4), 3, "the places are gone");
}

#[test]
fn those_who_wait_pass_first_come_first_served() {
    let (registry, clock) = registry_with(limited(3.0));
    for moment in [0, 200, 400] {
        clock.set(at(moment));
        assert_eq!(passes(&registry, R, 1), 1);
    }
    let mut waiting: Vec<_> = (0..3).map(|_| Call::waiting(priority(&registry))).collect();
    for (n, moment) in [1_000, 1_200, 1_400].into_iter().enumerate() {
        clock.set(at(moment - 1));
        assert!(!waiting[n].was_woken());
        clock.set(at(moment));
        let woken: Vec<bool> = waiting[n..].iter().map(Call::was_woken).collect();
        assert!(woken[0] && !woken[1..].contains(&true), "{woken:?}");
        assert_eq!(passes(&registry, R, 1), 0, "it has the room of this moment");
        drop(waiting[n].entry());
    }
}

#[test]
fn a_later_one_that_is_polled_first_does_not_overtake() {
    let (registry, clock) = registry_with(limited(1.0));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut first = Call::waiting(priority(&registry));
    drop(Call::new(priority(&registry)).blocked());
    clock.set(at(1_000));
    drop(Call::new(priority(&registry)).blocked());
    drop(first.entry());
    let mut next = Call::waiting(priority(&registry));
    clock.set(at(2_000));
    drop(next.entry());
}

#[test]
fn there_are_no_more_places_than_the_limit_has_permits() {
    let (registry, _) = registry_with(limited(3.0));
    assert_eq!(passes(&registry, R, 3), 3);
    let _two = Call::waiting(priority(&registry).permits(2));
    let mut too_many = Call::new(priority(&registry).permits(2));
    let blocked = too_many.blocked();
    assert_eq!((blocked.cause(), blocked.permits()), (Cause::Flow, 2));
    let _one = Call::waiting(priority(&registry));
    drop(Call::new(priority(&registry)).blocked());
    assert_eq!(figures(&registry), [0, 3, 3]);
}

#[test]
fn a_place_that_is_dropped_is_everybodys_again() {
    let (registry, clock) = registry_with(limited(2.0));
    assert_eq!(passes(&registry, R, 2), 2);
    let first = Call::waiting(priority(&registry));
    let mut second = Call::waiting(priority(&registry));
    drop(first);
    let third = Call::waiting(priority(&registry));
    drop(Call::new(priority(&registry)).blocked());
    clock.set(at(1_000));
    assert_eq!(passes(&registry, R, 1), 0);
    drop(second.entry());
    drop(third);
    assert_eq!(passes(&registry, R, 2), 1);
    drop(Call::waiting(priority(&registry)));
    assert_eq!(figures(&registry), [0, 4, 3], "who gave up has neither passed nor ended");
}

#[test]
fn what_can_never_fit_takes_no_place() {
    let (registry, _) = registry_with(limited(2.0));
    let blocked = Call::new(priority(&registry).permits(3)).blocked();
    assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Flow, None));
    let (none, _) = registry_with(limited(0.0));
    drop(Call::new(priority(&none)).blocked());
}

#[test]
fn asking_takes_no_place_and_tells_of_those_that_are_taken() {
    let (registry, clock) = registry_with(limited(1.0));
    assert_eq!(passes(&registry, R, 1), 1);
    for _ in 0..3 {
        assert!(priority(&registry).would_pass().is_err());
    }
    let mut waiting = Call::waiting(priority(&registry));
    clock.set(at(1_000));
    assert!(registry.would_pass(R, 1).is_err());
    drop(waiting.entry());
}

#[test]
fn a_parked_priority_call_passes_when_the_clock_gets_to_its_place() {
    let Line { registry, diary } = Line::new(limited(1.0));
    let clock = diary.clock.clone();
    assert_eq!(passes(&registry, R, 1), 1);
    thread::scope(|scope| {
        let (done, passed) = channel();
        let (shared, moved) = (&registry, &clock);
        scope.spawn(move || {
            drop(priority(shared).enter().unwrap());
            done.send(moved.now_ms()).unwrap();
        });
        // There is no figure of those who wait so; but the clock was asked to park it.
        until(|| diary.take().contains(&at(1_000)));
        clock.set(at(999));
        assert!(passed.try_recv().is_err());
        clock.set(at(1_000));
        assert_eq!(passed.recv(), Ok(1_000));
    });
}

trait Millis {
    fn now_ms(&self) -> u64;
}

impl Millis for ManualClock {
    fn now_ms(&self) -> u64 {
        leap_runtime::Clock::now(self).as_millis()
    }
}

#[test]
fn without_a_timer_a_priority_call_is_blocked_as_any_other_and_with_one_it_waits() {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(Silent(clock.clone())).build();
    registry.load(limited(1.0)).unwrap();
    assert_eq!(passes(&registry, R, 1), 1);
    let blocked = Call::new(priority(&registry)).blocked();
    assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Flow, Some(ms(1_000))));

    let registry = Registry::builder().clock(Silent(clock.clone())).sleep(ByClock(clock.clone())).build();
    registry.load(limited(1.0)).unwrap();
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(priority(&registry));
    clock.set(at(1_000));
    assert!(waiting.was_woken());
    drop(waiting.entry());
}

#[test]
fn every_precision_keeps_places_and_never_exceeds_its_limit() {
    for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
        let rule = qps(5.0).with_buckets(10).unwrap().with_precision(precision).unwrap();
        let (registry, clock) = registry_with(RuleSet::new().flow(R, rule));
        let mut waiting: Vec<Call<'_>> = vec![];
        let mut passed = vec![];
        for step in 0..600_u64 {
            clock.set(at(step * 10));
            waiting.retain_mut(|call| match call.poll() {
                std::task::Poll::Pending => true,
                std::task::Poll::Ready(entered) => {
                    passed.extend(entered.is_ok().then_some(step * 10));
                    false
                }
            });
            passed.extend(call(&registry, R, Outcome::Success).then_some(step * 10));
            if step % 7 == 0 {
                waiting.push(Call::new(priority(&registry)));
            }
            if step % 31 == 30 {
                drop(waiting.pop());
            }
        }
        let bucket = if precision == Precision::Sentinel { 100 } else { 0 };
        for (i, from) in passed.iter().enumerate() {
            let n = passed[i..].iter().filter(|to| **to < from + 1_000 - bucket).count();
            assert!(n <= 5, "{precision:?}: {n} from {from} ms");
        }
        assert!(passed.len() >= 25, "{precision:?}: {}", passed.len());
        assert!(waiting.len() <= 5);
    }
}

#[test]
fn threads_with_and_without_priority_share_one_limit() {
    let (registry, clock) = registry_with(limited(10.0));
    let passed: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let registry = &registry;
                scope.spawn(move || {
                    let ask = || if n % 2 == 0 { priority(registry).enter() } else { registry.enter(R) };
                    (0..200).filter(|_| ask().is_ok()).count()
                })
            })
            .collect();
        until(|| {
            clock.advance(ms(5));
            threads.iter().all(thread::ScopedJoinHandle::is_finished)
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().passed(), stats.in_flight()), (passed as u64, 0));
    assert!(passed as u64 <= 10 * (clock.now_ms() / 1_000 + 1), "{passed} in {} ms", clock.now_ms());
}

// --- With other rules ---

#[test]
fn of_two_windows_the_place_is_where_both_have_room() {
    let rules = limited(2.0).flow(R, qps(3.0).per(ms(1_500)).unwrap());
    let (registry, clock) = registry_with(rules);
    assert_eq!(passes(&registry, R, 2), 2);
    clock.set(at(1_000));
    assert_eq!(passes(&registry, R, 2), 1);
    let mut waiting = Call::waiting(priority(&registry));
    clock.set(at(1_499));
    assert!(waiting.is_waiting());
    clock.set(at(1_500));
    drop(waiting.entry());
}

#[test]
fn who_would_wait_for_longer_than_an_interval_is_blocked() {
    let rules = limited(1.0).flow(R, qps(1.0).per(ms(10_000)).unwrap());
    let (registry, clock) = registry_with(rules);
    assert_eq!(passes(&registry, R, 1), 1);
    drop(Call::new(priority(&registry)).blocked());
    clock.set(at(5_000));
    let mut waiting = Call::waiting(priority(&registry));
    clock.set(at(10_000));
    drop(waiting.entry());
}

#[test]
fn whoever_waits_for_a_place_is_asked_by_all_other_rules_when_it_comes() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap();
    let rules = limited(2.0).breaker(R, breaker).isolation(R, IsolationRule::new(2));
    let (registry, clock) = registry_with(rules);
    let mut held: Vec<_> = (0..2).map(|_| registry.enter(R).unwrap()).collect();
    assert_eq!(Call::new(priority(&registry)).blocked().cause(), Cause::Isolation);
    held.pop().unwrap().end(Outcome::Success);
    let mut waiting = [Call::waiting(priority(&registry)), Call::waiting(priority(&registry))];
    assert_eq!(registry.stats(R).unwrap().in_flight(), 1, "they hold no permit meanwhile");
    clock.set(at(1_000));
    let entry = waiting[0].entry();
    assert_eq!(waiting[1].blocked().cause(), Cause::Isolation);
    assert_eq!(passes(&registry, R, 1), 0);
    drop(held);
    assert_eq!(passes(&registry, R, 1), 1, "the place of the blocked one is free");
    let mut third = Call::waiting(priority(&registry));
    entry.end(Outcome::Exception);
    clock.set(at(2_000));
    assert_eq!(third.blocked().cause(), Cause::Breaker);
}

#[test]
fn whoever_waits_for_a_place_holds_no_probe_slot() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(100)).unwrap();
    let (registry, clock) = registry_with(limited(1.0).breaker(R, breaker));
    assert!(call(&registry, R, Outcome::Exception));
    clock.set(at(100));
    let mut first = Call::waiting(priority(&registry));
    registry.load(limited(2.0).breaker(R, breaker)).unwrap();
    assert!(registry.would_pass(R, 1).is_err(), "one of the two is the place");
    registry.load(limited(3.0).breaker(R, breaker)).unwrap();
    assert!(call(&registry, R, Outcome::Success), "so this is the probe");
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
    clock.set(at(1_000));
    drop(first.entry());
}

#[test]
fn a_priority_call_is_paced_when_its_place_has_come() {
    let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: ms(500) }).unwrap();
    let (registry, clock) = registry_with(limited(2.0).flow(R, throttle));
    assert_eq!(passes(&registry, R, 1), 1);
    clock.set(at(100));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = [Call::waiting(priority(&registry)), Call::waiting(priority(&registry))];
    assert_eq!(registry.stats(R).unwrap().waiting(), 0, "they wait for places, not for turns");
    clock.set(at(1_000));
    drop(waiting[0].entry());
    clock.set(at(1_100));
    drop(waiting[1].entry());
    assert_eq!(figures(&registry), [0, 4, 0]);
}

#[test]
fn a_full_pace_has_no_places() {
    let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: ms(0) }).unwrap();
    let (registry, _) = registry_with(RuleSet::new().flow(R, throttle));
    assert_eq!(passes(&registry, R, 1), 1);
    assert_eq!(Call::new(priority(&registry)).blocked().cause(), Cause::Flow);
}

#[test]
fn a_warming_limit_has_as_many_places_as_it_lets_calls_through() {
    let behavior = Behavior::WarmUp { period: ms(10_000), cold_factor: 3.0 };
    let (registry, clock) = registry_with(RuleSet::new().flow(R, FlowRule::new(30.0, behavior).unwrap()));
    assert_eq!(passes(&registry, R, 30), 10);
    let mut waiting: Vec<_> = (0..10).map(|_| Call::waiting(priority(&registry))).collect();
    drop(Call::new(priority(&registry)).blocked());
    clock.set(at(1_000));
    for call in &mut waiting {
        drop(call.entry());
    }
}

#[test]
fn what_counts_beside_the_window_counts_a_priority_call_once() {
    let vip = qps(2.0).for_origin("vip").unwrap();
    let hot = HotRule::qps("user", 2.0).unwrap();
    let system = SystemRule::qps(2.0).unwrap();
    let ask = |registry: &Registry| {
        Call::new(
            // The borrow of the registry outlives the closure: it is leaked.
            Box::leak(Box::new(registry.clone()))
                .enter_with(R)
                .priority()
                .origin("vip")
                .key("user", 7)
                .inbound(),
        )
    };
    for rules in [
        limited(1.0).flow(R, vip.per(ms(10_000)).unwrap()),
        limited(1.0).hot(R, hot.per(ms(10_000)).unwrap()),
        limited(1.0).system(system),
    ] {
        let (registry, clock) = registry_with(rules.clone());
        drop(ask(&registry).entry());
        let mut waiting = ask(&registry);
        assert!(waiting.is_waiting(), "{rules:?}");
        assert!(registry.enter_with("another").inbound().enter().is_ok(), "{rules:?}");
        clock.set(at(1_000));
        drop(waiting.entry());
    }
}

#[test]
fn an_origin_that_may_not_call_takes_no_place() {
    let rules = limited(1.0).authority(R, AuthorityRule::deny(["mallory"]).unwrap());
    let (registry, _) = registry_with(rules);
    assert_eq!(passes(&registry, R, 1), 1);
    assert_eq!(Call::new(priority(&registry).origin("mallory")).blocked().cause(), Cause::Authority);
    drop(Call::waiting(priority(&registry)));
}

// --- Reloads and odd orders ---

#[test]
fn a_limit_that_is_raised_lets_others_in_and_keeps_the_place() {
    let (registry, clock) = registry_with(limited(1.0));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(priority(&registry));
    registry.load(limited(4.0)).unwrap();
    assert_eq!(passes(&registry, R, 4), 2);
    clock.set(at(1_000));
    drop(waiting.entry());
}

#[test]
fn a_limit_that_is_lowered_below_the_places_blocks_who_would_wait_for_another_interval() {
    let (registry, clock) = registry_with(limited(3.0));
    assert_eq!(passes(&registry, R, 3), 3);
    let mut waiting: Vec<_> = (0..3).map(|_| Call::waiting(priority(&registry))).collect();
    registry.load(limited(1.0)).unwrap();
    clock.set(at(1_000));
    drop(waiting[0].entry());
    for call in &mut waiting[1..] {
        assert_eq!(call.blocked().cause(), Cause::Flow);
    }
    clock.set(at(2_000));
    assert_eq!(passes(&registry, R, 2), 1);
}

#[test]
fn a_charge_that_overdraws_the_window_does_not_have_a_priority_call_wait_for_ever() {
    let (registry, clock) = registry_with(limited(1.0));
    let mut entry = registry.enter(R).unwrap();
    let mut waiting = Call::waiting(priority(&registry));
    clock.set(at(900));
    entry.charge(5);
    clock.set(at(1_000));
    let blocked = waiting.blocked();
    assert_eq!(
        (blocked.cause(), blocked.at(), blocked.retry_after()),
        (Cause::Flow, at(1_000), Some(ms(900)))
    );
}

#[test]
fn a_rule_that_is_taken_away_lets_a_waiting_call_through_at_its_moment() {
    let (registry, clock) = registry_with(limited(1.0));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(priority(&registry));
    registry.load(RuleSet::new()).unwrap();
    assert_eq!(passes(&registry, R, 5), 5);
    registry.load(limited(2.0)).unwrap();
    clock.set(at(1_000));
    drop(waiting.entry());
    assert_eq!(passes(&registry, R, 2), 1);
}

#[test]
fn a_limit_of_0_turns_a_waiting_call_away() {
    let (registry, clock) = registry_with(limited(1.0));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(priority(&registry));
    registry.load(limited(0.0)).unwrap();
    clock.set(at(1_000));
    assert_eq!(waiting.blocked().cause(), Cause::Flow);
}

#[test]
fn a_clock_that_steps_back_keeps_places_in_their_order() {
    let (registry, clock) = registry_with(limited(1.0));
    clock.set(at(5_000));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(priority(&registry));
    clock.set(at(4_000));
    assert!(waiting.is_waiting());
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(at(6_000));
    drop(waiting.entry());
}

#[test]
fn a_body_that_panics_after_its_wait_leaves_no_place_behind() {
    let (registry, clock) = registry_with(limited(1.0));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(priority(&registry));
    clock.set(at(1_000));
    let entry = waiting.entry();
    assert!(catch_unwind(AssertUnwindSafe(|| entry.run(|| -> Result<(), ()> { panic!("mine") }))).is_err());
    clock.set(at(2_000));
    assert_eq!(passes(&registry, R, 2), 1);
}
