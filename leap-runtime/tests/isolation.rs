//! Limits on calls in flight.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use common::waits::{ByClock, Call, Silent, until};
use common::{R, Recorder, at, call, call_of, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    Behavior, BreakerRule, BreakerState, Cause, Entry, FlowRule, IsolationRule, ManualClock, Mode, Outcome,
    Registry, RuleSet,
};

fn at_most(max: u32) -> RuleSet {
    RuleSet::new().isolation(R, IsolationRule::new(max))
}

/// As [`at_most`], and calls above it queue for so long.
fn queueing(max: u32, queue_ms: u64) -> RuleSet {
    RuleSet::new().isolation(R, IsolationRule::new(max).with_queue(ms(queue_ms)).unwrap())
}

/// In flight, queued, passed, blocked.
fn figures(registry: &Registry) -> [u64; 4] {
    let stats = registry.stats(R).unwrap();
    [stats.in_flight(), stats.queued(), stats.totals().passed(), stats.totals().blocked()]
}

fn hold(registry: &Registry, n: usize) -> Vec<Entry> {
    (0..n).map(|_| registry.enter(R).unwrap()).collect()
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
    let passed = thread::scope(|scope| {
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
        let panicked =
            catch_unwind(AssertUnwindSafe(|| entry.run(|| -> Result<(), ()> { panic!("in the body") })));
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

// --- The queue ---

#[test]
fn a_call_above_the_limit_queues_until_a_permit_comes_back() {
    let (registry, clock) = registry_with(queueing(1, 50));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R));
    assert_eq!(figures(&registry), [1, 1, 1, 0], "it has not passed, and is not blocked");
    clock.set(at(20));
    assert!(!second.was_woken() && second.is_waiting());
    first.end(Outcome::Success);
    assert!(second.was_woken());
    let second = second.entry();
    assert_eq!(figures(&registry), [1, 0, 2, 0]);
    clock.set(at(25));
    second.end(Outcome::Success);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.second().rt_min(), stats.second().rt_max()), (Some(ms(5)), Some(ms(20))));
    assert_eq!(stats.second().peak_in_flight(), Some(1));
}

#[test]
fn a_call_that_gets_no_permit_in_its_time_is_blocked_at_the_end_of_it() {
    let (registry, clock) = registry_with(queueing(1, 50));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R));
    clock.set(at(49));
    assert!(second.is_waiting());
    clock.set(at(50));
    assert!(second.was_woken());
    let blocked = second.blocked();
    assert_eq!((blocked.cause(), blocked.at(), blocked.retry_after()), (Cause::Isolation, at(50), None));
    assert_eq!(blocked.to_string(), "`orders.create` is blocked: 1 of at most 1 calls are in flight");
    assert_eq!(figures(&registry), [1, 0, 1, 1]);
    assert_eq!(registry.stats(R).unwrap().totals().blocked_by(Cause::Isolation), 1);
    drop(first);
    assert_eq!(passes(&registry, R, 2), 2);
}

#[test]
fn permits_are_granted_in_the_order_in_which_calls_came() {
    let (registry, _) = registry_with(queueing(2, 1_000));
    let mut held: VecDeque<Entry> = hold(&registry, 2).into();
    let mut queue: VecDeque<_> = (0..20).map(|_| Call::waiting(registry.enter_with(R))).collect();
    for left in (0..20).rev() {
        drop(held.pop_front());
        for (place, call) in queue.iter_mut().enumerate() {
            assert_eq!(call.was_woken(), place == 0);
        }
        held.push_back(queue.pop_front().unwrap().entry());
        assert_eq!(figures(&registry)[..2], [2, left]);
    }
}

#[test]
fn nobody_overtakes_those_who_wait_whatever_it_asks_for() {
    let (registry, _) = registry_with(queueing(10, 1_000));
    let six = registry.enter_with(R).permits(6).enter().unwrap();
    let mut five = Call::waiting(registry.enter_with(R).permits(5));
    let mut one = Call::waiting(registry.enter_with(R));
    assert!(registry.would_pass(R, 1).is_err());
    assert_eq!(figures(&registry), [6, 2, 6, 0]);
    drop(six);
    assert!(five.was_woken() && one.was_woken());
    drop((one.entry(), five.entry()));
    assert_eq!(figures(&registry), [0, 0, 12, 0]);
}

#[test]
fn a_call_of_more_permits_than_there_are_does_not_queue() {
    let (registry, _) = registry_with(queueing(2, 1_000));
    let blocked = Call::new(registry.enter_with(R).permits(3)).blocked();
    assert_eq!((blocked.cause(), figures(&registry)), (Cause::Isolation, [0, 0, 0, 3]));
    let (none, _) = registry_with(queueing(0, 1_000));
    drop(Call::new(none.enter_with(R)).blocked());
}

#[test]
fn those_whose_time_is_over_leave_the_permits_to_others_a_thousand_times_over() {
    // A14
    let (registry, clock) = registry_with(queueing(8, 50));
    for round in 1..=1_000 {
        let held = hold(&registry, 8);
        let mut queued: Vec<_> = (0..8).map(|_| Call::waiting(registry.enter_with(R))).collect();
        clock.advance(ms(50));
        for call in &mut queued {
            assert_eq!(call.blocked().cause(), Cause::Isolation);
        }
        drop(held);
        let again = hold(&registry, 8);
        assert!(registry.would_pass(R, 1).is_err());
        assert_eq!(figures(&registry), [8, 0, 16 * round, 8 * round]);
        drop(again);
    }
}

#[test]
fn those_who_give_up_lose_nothing_a_thousand_times_over() {
    let (registry, _) = registry_with(queueing(8, 50));
    for round in 0..1_000_usize {
        let mut held = hold(&registry, 8);
        let mut queued: Vec<_> = (0..8).map(|_| Call::waiting(registry.enter_with(R))).collect();
        // Some before they are granted anything, some after, some of them knowing it.
        queued.remove(round % 8);
        held.truncate(8 - round % 5);
        queued.truncate(7 - round % 3);
        if round % 2 == 0 {
            drop(queued.first_mut().map(Call::poll));
        }
        drop(held);
        queued.clear();
        assert_eq!(figures(&registry)[..2], [0, 0], "round {round}");
        drop(hold(&registry, 8));
    }
}

#[test]
fn a_grant_that_nobody_takes_goes_to_the_next() {
    let (registry, _) = registry_with(queueing(1, 1_000));
    let first = registry.enter(R).unwrap();
    let second = Call::waiting(registry.enter_with(R));
    let mut third = Call::waiting(registry.enter_with(R));
    drop(first);
    assert!(second.was_woken() && !third.was_woken());
    drop(second);
    assert!(third.was_woken());
    drop(third.entry());
    assert_eq!(figures(&registry), [0, 0, 2, 0], "who leaves the queue has neither passed nor ended");
}

#[test]
fn a_call_that_is_granted_its_permit_at_the_last_moment_has_it() {
    let (registry, clock) = registry_with(queueing(1, 50));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R));
    clock.set(at(49));
    drop(first);
    clock.set(at(5_000));
    drop(second.entry());
}

#[test]
fn sync_calls_are_parked_in_the_queue_and_pass_in_order() {
    let (registry, _) = registry_with(queueing(1, 1_000));
    let first = registry.enter(R).unwrap();
    thread::scope(|scope| {
        let (passed, order) = channel();
        for n in 1..=5 {
            let (registry, passed) = (&registry, passed.clone());
            scope.spawn(move || {
                let entry = registry.enter(R).unwrap();
                passed.send((n, entry)).unwrap();
            });
            until(|| registry.stats(R).unwrap().queued() == n);
        }
        assert!(order.try_recv().is_err());
        drop(first);
        for n in 1..=5 {
            let (next, entry) = order.recv().unwrap();
            assert_eq!((next, figures(&registry)[..2].to_vec()), (n, vec![1, 5 - n]));
            drop(entry);
        }
    });
    assert_eq!(figures(&registry), [0, 0, 6, 0]);
}

#[test]
fn a_parked_call_is_blocked_when_the_clock_gets_to_the_end_of_its_time() {
    let (registry, clock) = registry_with(queueing(1, 50));
    let _first = registry.enter(R).unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            thread::current().unpark();
            registry.enter(R).unwrap_err()
        });
        until(|| registry.stats(R).unwrap().queued() == 1);
        clock.set(at(49));
        second.thread().unpark();
        assert_eq!(figures(&registry), [1, 1, 1, 0]);
        clock.set(at(50));
        let blocked = second.join().unwrap();
        assert_eq!((blocked.cause(), blocked.at()), (Cause::Isolation, at(50)));
    });
}

#[test]
fn no_grant_is_lost_between_threads_that_wait_and_those_that_end() {
    let (registry, clock) = registry_with(queueing(2, 10));
    let barrier = Barrier::new(4);
    let (mut passed, mut blocked) = (0, 0);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    (0..3_000).filter(|_| call(&registry, R, Outcome::Success)).count() as u64
                })
            })
            .collect();
        until(|| {
            clock.advance(ms(1));
            threads.iter().all(thread::ScopedJoinHandle::is_finished)
        });
        for thread in threads {
            let n = thread.join().unwrap();
            (passed, blocked) = (passed + n, blocked + 3_000 - n);
        }
    });
    assert_eq!(figures(&registry), [0, 0, passed, blocked]);
    assert_eq!(registry.stats(R).unwrap().minute().peak_in_flight().map(|peak| peak <= 2), Some(true));
    drop(hold(&registry, 2));
}

#[test]
fn of_several_limits_the_shortest_queue_of_those_that_refuse_counts() {
    let rule = |max, queue_ms| IsolationRule::new(max).with_queue(ms(queue_ms)).unwrap();
    let rules = RuleSet::new().isolation(R, rule(1, 100)).isolation(R, rule(2, 30)).isolation(R, rule(9, 0));
    let (registry, clock) = registry_with(rules);
    let _first = registry.enter(R).unwrap();
    let mut one = Call::waiting(registry.enter_with(R));
    let mut two = Call::new(registry.enter_with(R).permits(2));
    assert_eq!(two.blocked().cause(), Cause::Isolation, "never fits the smallest");
    clock.set(at(99));
    assert!(one.is_waiting(), "the second would have had room for it");
    clock.set(at(100));
    assert_eq!(one.blocked().rule().position(), 0);
}

#[test]
fn an_async_call_that_would_queue_where_nobody_wakes_it_is_blocked_and_told_why() {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(Silent(clock.clone())).build();
    registry.load(queueing(1, 50)).unwrap();
    let first = Call::new(registry.enter_with(R)).entry();
    let blocked = Call::new(registry.enter_with(R)).blocked();
    assert_eq!(blocked.cause(), Cause::Isolation);
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: it would have to wait, and there is no timer here to end that: see \
         `Builder::sleep`"
    );
    assert_eq!(figures(&registry), [1, 0, 1, 1]);
    drop(first);

    let registry = Registry::builder().clock(Silent(clock.clone())).sleep(ByClock(clock.clone())).build();
    registry.load(queueing(1, 50)).unwrap();
    let _first = Call::new(registry.enter_with(R)).entry();
    let mut second = Call::waiting(registry.enter_with(R));
    clock.set(at(50));
    assert!(second.was_woken());
    assert_eq!(
        second.blocked().to_string(),
        "`orders.create` is blocked: 1 of at most 1 calls are in flight"
    );
}

// --- The queue and other rules ---

#[test]
fn a_breaker_that_opened_meanwhile_blocks_a_call_that_comes_out_of_the_queue() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap();
    let (registry, _) = registry_with(queueing(1, 1_000).breaker(R, breaker));
    let first = registry.enter(R).unwrap();
    let mut queue = [Call::waiting(registry.enter_with(R)), Call::waiting(registry.enter_with(R))];
    first.end(Outcome::Exception);
    for call in &mut queue {
        assert!(call.was_woken());
        assert_eq!(call.blocked().cause(), Cause::Breaker);
    }
    assert_eq!(figures(&registry), [0, 0, 1, 2], "its permit went on to the next");
    assert_eq!(registry.stats(R).unwrap().totals().blocked_by(Cause::Breaker), 2);
}

#[test]
fn an_exhausted_window_blocks_a_call_that_comes_out_of_the_queue() {
    let (registry, clock) = registry_with(queueing(1, 1_000).flow(R, qps(1.0)));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R));
    let mut third = Call::waiting(registry.enter_with(R));
    clock.set(at(400));
    drop(first);
    let blocked = second.blocked();
    assert_eq!((blocked.cause(), blocked.at(), blocked.retry_after()), (Cause::Flow, at(400), Some(ms(600))));
    clock.set(at(1_000));
    assert!(third.was_woken());
    drop(third.entry());
    assert_eq!(figures(&registry), [0, 0, 2, 1]);
}

#[test]
fn a_call_that_comes_out_of_the_queue_is_paced_from_then_on() {
    let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: ms(100) }).unwrap();
    let (registry, clock) = registry_with(queueing(1, 1_000).flow(R, throttle));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R));
    clock.set(at(30));
    drop(first);
    assert!(second.is_waiting(), "now for its turn");
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.waiting(), figures(&registry)), (1, [0, 0, 2, 0]));
    clock.set(at(100));
    drop(second.entry());
}

#[test]
fn no_probe_slot_is_held_in_the_queue() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(100)).unwrap();
    let (registry, clock) = registry_with(queueing(2, 1_000).breaker(R, breaker));
    let [running, failing]: [Entry; 2] = hold(&registry, 2).try_into().unwrap();
    failing.end(Outcome::Exception);
    clock.set(at(100));
    let late = registry.enter_with(R).permits(2);
    let mut probe = Call::waiting(late);
    drop(running);
    // Half-open, with the slot taken anew when the permits came; so it is given back by whoever gives up, too.
    let entry = probe.entry();
    assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Breaker);
    entry.end(Outcome::Success);
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
}

#[test]
fn a_queueing_probe_leaves_its_slot_to_others() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(100)).unwrap();
    let (registry, clock) = registry_with(queueing(3, 1_000).breaker(R, breaker));
    let mut held = hold(&registry, 3);
    held.pop().unwrap().end(Outcome::Exception);
    clock.set(at(100));
    let two = Call::waiting(registry.enter_with(R).permits(2));
    assert_ne!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
    // One permit is free, but somebody waits in front.
    let mut one = Call::waiting(registry.enter_with(R));
    drop(two);
    one.entry().end(Outcome::Success);
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
    drop(held);
    assert_eq!(figures(&registry)[..2], [0, 0]);
}

#[test]
fn a_call_that_queued_in_vain_is_told_of_once_and_one_that_got_its_permit_is_not() {
    let recorder = Recorder::default();
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).observer(recorder.clone()).build();
    registry.load(queueing(1, 50)).unwrap();
    recorder.take();
    let first = registry.enter(R).unwrap();
    let mut queue = [(); 2].map(|()| Call::waiting(registry.enter_with(R).origin("vip")));
    drop(first);
    let second = queue[0].entry();
    assert_eq!(recorder.take(), [""; 0]);
    clock.set(at(50));
    assert_eq!(queue[1].blocked().at(), at(50));
    assert_eq!(recorder.take(), ["block orders.create by loaded/isolation/0"]);
    drop(second);
    let stats = registry.stats(R).unwrap();
    let vip = &stats.origins()[0];
    assert_eq!((vip.totals().passed(), vip.totals().blocked(), vip.in_flight()), (1, 1, 0));
}

// --- The queue over reloads ---

#[test]
fn a_raised_limit_lets_those_who_wait_in_at_once() {
    let (registry, _) = registry_with(queueing(1, 1_000));
    let _first = registry.enter(R).unwrap();
    let mut queue: Vec<_> = (0..4).map(|_| Call::waiting(registry.enter_with(R))).collect();
    registry.load(queueing(3, 1_000)).unwrap();
    let woken: Vec<bool> = queue.iter().map(Call::was_woken).collect();
    assert_eq!(woken, [true, true, false, false]);
    let _entries: Vec<Entry> = queue[..2].iter_mut().map(Call::entry).collect();
    assert!(queue[2].is_waiting() && queue[3].is_waiting());
    assert_eq!(figures(&registry), [3, 2, 3, 0]);
}

#[test]
fn a_parked_call_goes_on_when_the_limit_is_raised() {
    let (registry, _) = registry_with(queueing(1, 1_000));
    let _first = registry.enter(R).unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| registry.enter(R).unwrap());
        until(|| registry.stats(R).unwrap().queued() == 1);
        registry.load(queueing(2, 1_000)).unwrap();
        drop(second.join().unwrap());
    });
}

#[test]
fn a_rule_that_is_taken_away_lets_all_go_on_who_wait() {
    let (registry, _) = registry_with(queueing(1, 1_000));
    let first = registry.enter(R).unwrap();
    let mut queue: Vec<_> = (0..3).map(|_| Call::waiting(registry.enter_with(R))).collect();
    registry.load(RuleSet::new()).unwrap();
    assert!(queue.iter().all(Call::was_woken));
    let mut entries: Vec<Entry> = queue[..2].iter_mut().map(Call::entry).collect();
    assert_eq!(figures(&registry)[..3], [3, 0, 3]);
    // Back before the last of them has looked: it asks the new rule.
    registry.load(queueing(1, 1_000)).unwrap();
    entries.push(queue[2].entry());
    assert!(Call::new(registry.enter_with(R)).is_waiting());
    drop((first, entries));
    assert_eq!(figures(&registry)[..2], [0, 0]);
    drop(hold(&registry, 1));
    assert!(registry.would_pass(R, 2).is_err());
}

#[test]
fn a_limit_that_is_lowered_while_calls_wait_holds_for_them() {
    let (registry, clock) = registry_with(queueing(4, 1_000));
    let mut held = hold(&registry, 4);
    let mut four = Call::waiting(registry.enter_with(R).permits(4));
    let mut one = Call::waiting(registry.enter_with(R));
    registry.load(queueing(2, 1_000)).unwrap();
    held.truncate(2);
    assert!(!one.was_woken() && one.is_waiting());
    held.truncate(1);
    assert!(one.was_woken() && !four.was_woken(), "who can never fit holds nobody up");
    let entry = one.entry();
    clock.set(at(1_000));
    assert_eq!(four.blocked().cause(), Cause::Isolation);
    drop((held, entry));
    registry.load(queueing(0, 1_000)).unwrap();
    assert!(registry.enter(R).is_err());
    registry.load(queueing(2, 1_000)).unwrap();
    drop(hold(&registry, 2));
}

#[test]
fn a_queue_that_is_closed_keeps_those_who_are_in_it() {
    let (registry, clock) = registry_with(queueing(1, 50));
    let first = registry.enter(R).unwrap();
    let mut queue = [Call::waiting(registry.enter_with(R)), Call::waiting(registry.enter_with(R))];
    registry.load(at_most(1)).unwrap();
    assert_eq!(Call::new(registry.enter_with(R)).blocked().cause(), Cause::Isolation);
    drop(first);
    let second = queue[0].entry();
    clock.set(at(50));
    assert_eq!(queue[1].blocked().cause(), Cause::Isolation);
    drop(second);
    drop(hold(&registry, 1));
}

/// Looks at the rules when it is woken.
struct Curious(Registry);

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        let rules = self.0.loaded();
        drop(self.0.stats(R));
        self.0.load(rules).unwrap();
    }
}

#[test]
fn whoever_is_woken_by_a_reload_may_load_rules_itself() {
    let (registry, _) = registry_with(queueing(1, 1_000));
    let _first = registry.enter(R).unwrap();
    let mut second = Box::pin(registry.enter_async(R));
    let waker = Waker::from(Arc::new(Curious(registry.clone())));
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    registry.load(queueing(2, 1_000)).unwrap();
    assert!(matches!(second.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(_))));
}

// --- Odd orders ---

#[test]
fn a_body_that_enters_its_own_resource_queues_behind_itself_for_its_time_and_is_blocked() {
    let (registry, clock) = registry_with(queueing(1, 50));
    registry.enter(R).unwrap().run_with(
        || {
            let mut inner = Call::waiting(registry.enter_with(R));
            clock.set(at(50));
            assert_eq!(inner.blocked().cause(), Cause::Isolation);
        },
        |()| Outcome::Success,
    );
    assert_eq!(figures(&registry), [0, 0, 1, 1]);
}

#[test]
fn a_body_that_panics_lets_the_next_one_in() {
    let (registry, _) = registry_with(queueing(1, 1_000));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R));
    let panic = catch_unwind(AssertUnwindSafe(|| first.run(|| -> Result<(), ()> { panic!("mine") })));
    assert!(panic.is_err() && second.was_woken());
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _entry = second.entry();
        panic!("after the wait");
    }));
    assert!(panic.is_err());
    assert_eq!((figures(&registry), registry.stats(R).unwrap().totals().exception()), ([0, 0, 2, 0], 2));
}

#[test]
fn a_clock_that_steps_back_while_calls_queue_takes_nothing_from_them() {
    let (registry, clock) = registry_with(queueing(1, 50));
    clock.set(at(1_000));
    let first = registry.enter(R).unwrap();
    let mut queue = [Call::waiting(registry.enter_with(R)), Call::waiting(registry.enter_with(R))];
    clock.set(at(900));
    assert!(queue[0].is_waiting() && queue[1].is_waiting());
    drop(first);
    let second = queue[0].entry();
    clock.set(at(1_050));
    assert_eq!(queue[1].blocked().cause(), Cause::Isolation);
    drop(second);
    assert_eq!(figures(&registry), [0, 0, 2, 1]);
}

#[test]
fn an_entry_that_came_out_of_the_queue_may_be_kept_and_ends_under_other_rules() {
    struct Session {
        _entry: Entry,
    }
    let (registry, _) = registry_with(queueing(1, 1_000));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R));
    drop(first);
    let session = Session { _entry: second.entry() };
    let mut third = Call::waiting(registry.enter_with(R));
    registry.load(queueing(1, 2_000)).unwrap();
    assert!(third.is_waiting());
    drop(session);
    drop(third.entry());
    assert_eq!(figures(&registry), [0, 0, 3, 0]);
}
