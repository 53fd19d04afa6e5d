//! Guarding switched off and on: what is asked, what is counted, and what becomes of the calls in between.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Poll, Waker};

use common::{R, Recorder, call, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    Behavior, Blocked, BreakerRule, BreakerState, Call, Check, Context, Ended, FlowRule, HotRule, InRegistry,
    IsolationRule, ManualClock, Mode, Outcome, Registry, RuleSet, SystemRule, Verdict, current, guarded,
};

/// Permits passed, blocked and completed, and those in flight, since the start.
fn counts(registry: &Registry, name: &str) -> [u64; 4] {
    registry.stats(name).map_or([0; 4], |stats| {
        let totals = stats.totals();
        [totals.passed(), totals.blocked(), totals.completed(), stats.in_flight()]
    })
}

fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut task::Context::from_waker(Waker::noop()))
}

/// Every kind of rule that refuses every call.
fn refusing() -> RuleSet {
    RuleSet::new()
        .flow(R, qps(0.0))
        .flow(R, FlowRule::new(0.0, Behavior::Throttle { max_wait: ms(0) }).unwrap())
        .flow(R, qps(0.0).for_each_origin().unwrap())
        .isolation(R, IsolationRule::new(0))
        .hot(R, HotRule::qps("user", 0.0).unwrap())
}

#[test]
fn while_it_is_off_nothing_is_asked_blocked_or_counted() {
    let (registry, _) = registry_with(refusing());
    let call = || registry.enter_with(R).origin("vip").key("user", "ann");
    assert!(call().enter().is_err() && call().would_pass().is_err() && registry.enter(R).is_err());
    let before = counts(&registry, R);
    registry.turn_off();
    assert!(!registry.is_on() && registry.is_resource_on(R));
    assert!(!registry.stats(R).unwrap().is_guarded());
    for _ in 0..10 {
        call().would_pass().unwrap();
        registry.would_pass("never entered", 1).unwrap();
        call().enter().unwrap().end(Outcome::Exception);
        call().permits(7).priority().enter().unwrap().end(Outcome::Success);
        drop(registry.enter(R).unwrap());
        drop(registry.enter("elsewhere").unwrap());
    }
    assert_eq!(counts(&registry, R), before);
    let stats = registry.stats(R).unwrap();
    assert_eq!(stats.origins()[0].totals().passed(), 0);
    assert!(stats.hot(10)[0].top().iter().all(|value| value.permits() <= 2), "{stats}");
    assert_eq!(counts(&registry, "elsewhere"), [0; 4]);
    registry.turn_on();
    assert!(registry.is_on() && registry.stats(R).unwrap().is_guarded());
    assert!(call().enter().is_err() && registry.enter(R).is_err() && call().would_pass().is_err());
}

#[test]
fn one_resource_is_switched_off_alone_also_before_anybody_has_entered_it() {
    for entered_before in [false, true] {
        let (registry, _) = registry_with(RuleSet::new().flow("b", qps(0.0)));
        let load = || registry.load(RuleSet::new().flow(R, qps(0.0)).flow("b", qps(0.0))).unwrap();
        if entered_before {
            load();
            assert!(registry.enter(R).is_err());
        }
        registry.turn_off_resource(R);
        // Rules are loaded, reloaded and taken away beside it.
        registry.load(RuleSet::new()).unwrap();
        load();
        assert_eq!(
            (registry.is_resource_on(R), registry.is_resource_on("b"), registry.is_on()),
            (false, true, true)
        );
        assert_eq!((passes(&registry, R, 5), passes(&registry, "b", 5)), (5, 0));
        assert_eq!(counts(&registry, R), [0, u64::from(entered_before), 0, 0]);
        registry.turn_on_resource(R);
        assert_eq!((passes(&registry, R, 5), registry.is_resource_on(R)), (0, true));
    }
}

#[test]
fn a_resource_is_guarded_where_both_switches_are_on() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(0.0)));
    let guards = || registry.enter(R).is_err();
    assert!(guards());
    registry.turn_off_resource(R);
    registry.turn_off();
    registry.turn_on_resource(R);
    assert!(!guards());
    registry.turn_off_resource(R);
    registry.turn_on();
    assert!(!guards());
    registry.turn_on_resource(R);
    assert!(guards());
}

#[test]
fn a_registry_that_is_off_has_new_resources_off_too_and_on_again_with_it() {
    let (registry, _) = registry();
    registry.turn_off();
    assert_eq!(passes(&registry, R, 3), 3);
    registry.load(RuleSet::new().flow("ruled", qps(0.0))).unwrap();
    assert_eq!(passes(&registry, "ruled", 3), 3);
    registry.turn_on();
    assert_eq!((passes(&registry, R, 3), passes(&registry, "ruled", 3)), (3, 0));
    assert_eq!(counts(&registry, R), [3, 0, 3, 0]);
}

#[test]
fn calls_that_entered_before_end_as_they_began() {
    let isolation =
        RuleSet::new().isolation(R, IsolationRule::new(3)).breaker(R, BreakerRule::error_count(0));
    let (registry, clock) = registry_with(isolation);
    let [well, badly, dropped] = [(); 3].map(|()| registry.enter(R).unwrap());
    registry.turn_off();
    clock.advance(ms(50));
    well.end(Outcome::Success);
    badly.end(Outcome::Exception);
    drop(dropped);
    let stats = registry.stats(R).unwrap();
    assert_eq!(counts(&registry, R), [3, 0, 3, 0]);
    assert_eq!((stats.totals().success(), stats.totals().exception(), stats.totals().cancelled()), (1, 1, 1));
    assert_eq!(stats.totals().rt_avg(), Some(ms(50)));
    registry.turn_on();
    assert_eq!(passes(&registry, R, 3), 3, "the isolation has all its permits");
}

#[test]
fn calls_that_entered_while_it_was_off_leave_no_trace_whichever_way_they_end() {
    let rules = RuleSet::new().isolation(R, IsolationRule::new(1)).breaker(R, BreakerRule::error_count(0));
    let (registry, clock) = registry_with(rules);
    registry.turn_off();
    let enter = || registry.enter(R).unwrap();
    let [ended, failed, dropped, ran, panicking, judged] = [(); 6].map(|()| enter());
    let mut cancelled = Box::pin(enter().run_async(pending::<Result<(), ()>>()));
    assert!(poll(&mut cancelled).is_pending());
    registry.turn_on();

    let mut charged = ended;
    assert_eq!((charged.charge(9), charged.permits()), (0, 1), "there is nothing to add to");
    charged.end(Outcome::Success);
    failed.end(Outcome::Exception);
    drop(dropped);
    clock.advance(ms(10));
    ran.run(|| {
        current().charge(5);
        current().fail();
        Err::<(), _>("no")
    })
    .unwrap_err();
    let body = || panicking.run::<(), ()>(|| panic!("inside"));
    assert!(catch_unwind(AssertUnwindSafe(body)).is_err());
    assert_eq!(judged.run_with(|| 7, |_| panic!("nobody asks")), 7);
    drop(cancelled);
    assert_eq!(counts(&registry, R), [0; 4]);
    assert_eq!(registry.contained_panics(), 0);
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
    assert_eq!(passes(&registry, R, 2), 2);
}

#[guarded("switch.site", qps = 1, fallback = no)]
fn site() -> bool {
    true
}

#[guarded("switch.async", qps = 1, slow_rt_ms = 5, fallback = no)]
async fn site_async() -> bool {
    true
}

fn no(_: Blocked) -> bool {
    false
}

#[test]
fn guarded_functions_run_sync_and_async() {
    let (registry, _) = registry();
    let sync = || registry.scope(site);
    let run_async = || match poll(&mut Box::pin(site_async().in_registry(&registry))) {
        Poll::Ready(ran) => ran,
        Poll::Pending => panic!("it waits"),
    };
    assert!(sync() && !sync() && run_async() && !run_async());
    registry.turn_off();
    assert!((0..5).all(|_| sync() && run_async()));
    registry.turn_on();
    assert!(!sync() && !run_async());
    assert_eq!(
        (counts(&registry, "switch.site"), counts(&registry, "switch.async")),
        ([1, 2, 1, 0], [1, 2, 1, 0])
    );
}

/// Counts what it is asked and told.
#[derive(Default)]
struct Counting {
    asked: AtomicUsize,
    ended: AtomicUsize,
}

impl Check for Counting {
    fn check(&self, _: &Call<'_>) -> Verdict {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Verdict::Pass
    }

    fn ended(&self, _: &Ended<'_>) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn own_checks_are_not_asked_but_told_the_end_of_calls_that_they_let_pass() {
    let (registry, _) = registry();
    let check = Arc::new(Counting::default());
    registry.add_check("*", Arc::clone(&check));
    let counted = || [&check.asked, &check.ended].map(|count| count.load(Ordering::Relaxed));
    let before = registry.enter(R).unwrap();
    registry.turn_off();
    passes(&registry, R, 5);
    passes(&registry, "new", 5);
    assert_eq!(counted(), [1, 0]);
    drop(before);
    let during = registry.enter(R).unwrap();
    registry.turn_on();
    drop(during);
    assert_eq!(counted(), [1, 1]);
}

#[test]
fn rules_in_shadow_are_not_asked_either() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(0.0).with_mode(Mode::Shadow)));
    let asked = || registry.stats(R).unwrap().shadows()[0].asked();
    assert_eq!((passes(&registry, R, 3), asked()), (3, 3));
    registry.turn_off();
    assert_eq!((passes(&registry, R, 3), asked()), (3, 3));
    registry.turn_on();
    assert_eq!((passes(&registry, R, 3), asked()), (3, 6));
}

#[test]
fn a_breaker_stands_where_it_stood() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(5_000)).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, breaker));
    call(&registry, R, Outcome::Exception);
    let state = || registry.stats(R).unwrap().breakers()[0].state();
    assert_eq!(state(), BreakerState::Open);
    registry.turn_off();
    assert_eq!(passes(&registry, R, 5), 5);
    assert_eq!(state(), BreakerState::Open);
    registry.turn_on();
    assert_eq!(passes(&registry, R, 5), 0);
    clock.advance(ms(5_000));
    assert_eq!(passes(&registry, R, 1), 1);
    assert_eq!(state(), BreakerState::Closed);
}

#[test]
fn what_passed_before_counts_when_it_is_on_again_and_what_passed_meanwhile_does_not() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(4.0)));
    assert_eq!(passes(&registry, R, 3), 3);
    registry.turn_off();
    assert_eq!(passes(&registry, R, 100), 100);
    registry.turn_on();
    assert_eq!(passes(&registry, R, 9), 1);
    clock.advance(ms(1_000));
    assert_eq!(passes(&registry, R, 9), 4);
}

#[test]
fn calls_in_contexts_are_not_in_the_tree_but_what_they_call_still_has_the_context() {
    let (registry, _) = registry_with(
        RuleSet::new().flow("inner", qps(0.0).for_entrance("front").unwrap()).flow("inner", qps(1.0)),
    );
    let nested = || {
        let outer = registry.enter_with("outer").entrance("front").enter().unwrap();
        outer.run_with(|| registry.enter("inner").is_ok(), |_| Outcome::Success)
    };
    assert!(!nested(), "the rule is for those who come in by the front");
    let outer = || {
        let tree = registry.tree();
        let front = tree.entrance("front").unwrap();
        front.child("outer").map(|outer| (outer.passed(), outer.in_flight()))
    };
    assert_eq!(outer(), Some((1, 0)));

    registry.turn_off_resource("outer");
    assert!(!nested(), "that of the inner one still holds");
    assert_eq!(outer(), Some((1, 0)));
    assert_eq!(counts(&registry, "outer"), [1, 0, 1, 0]);
    registry.turn_off();
    let tree = registry.tree();
    assert!(nested());
    Context::new("back").scope(|| drop(registry.enter("inner").unwrap()));
    assert_eq!(registry.tree(), tree);
    assert!(Context::current().is_none(), "it was left");
}

#[test]
fn inbound_calls_do_not_count_for_the_system_while_they_are_off() {
    let rules = RuleSet::new().system(SystemRule::concurrency(1));
    let (registry, _) = registry_with(rules);
    let enter = |name: &str| registry.enter_with(name).inbound().enter();
    registry.turn_off_resource("off");
    let [first, second] = [(); 2].map(|()| enter("off").unwrap());
    assert!(registry.enter_with("off").inbound().would_pass().is_ok());
    let on = enter(R).unwrap();
    assert!(enter(R).is_err(), "one is in flight that counts");
    assert!(enter("off").is_ok());
    registry.turn_off();
    assert!(enter(R).is_ok());
    drop((on, first));
    registry.turn_on();
    drop(second);
    let again = enter(R).unwrap();
    assert!(enter(R).is_err(), "neither too few nor too many");
    drop(again);
}

#[test]
fn a_call_that_waits_for_its_start_goes_on_when_its_turn_comes_and_is_counted() {
    let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: ms(5_000) }).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().flow(R, throttle));
    passes(&registry, R, 1);
    let mut paced = Box::pin(registry.enter_async(R));
    assert!(poll(&mut paced).is_pending());
    registry.turn_off();
    assert!(poll(&mut paced).is_pending() && registry.enter(R).is_ok());
    clock.advance(ms(100));
    let Poll::Ready(Ok(entry)) = poll(&mut paced) else { panic!("its turn has come") };
    assert_eq!(counts(&registry, R), [2, 0, 1, 1]);
    entry.end(Outcome::Success);
    assert_eq!((counts(&registry, R), registry.stats(R).unwrap().waiting()), ([2, 0, 2, 0], 0));
}

#[test]
fn a_call_that_queues_passes_at_the_end_of_its_wait_and_is_not_counted() {
    let one = IsolationRule::new(1).with_queue(ms(500)).unwrap();
    for gets_permits in [true, false] {
        let (registry, clock) = registry_with(RuleSet::new().isolation(R, one));
        let inside = registry.enter(R).unwrap();
        let mut queued = Box::pin(registry.enter_async(R));
        assert!(poll(&mut queued).is_pending());
        registry.turn_off();
        let mut inside = Some(inside);
        if gets_permits {
            inside.take();
        } else {
            clock.advance(ms(500));
        }
        let Poll::Ready(Ok(entry)) = poll(&mut queued) else { panic!("its wait is over") };
        assert_eq!(counts(&registry, R)[..2], [1, 0]);
        drop(inside);
        registry.turn_on();
        drop(entry);
        assert_eq!((counts(&registry, R), registry.stats(R).unwrap().queued()), ([1, 0, 1, 0], 0));
        assert_eq!(passes(&registry, R, 1), 1, "the permit is back");
    }
}

#[test]
fn a_call_that_waits_for_a_place_passes_at_the_end_of_its_wait() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(1.0)));
    passes(&registry, R, 1);
    let mut placed = Box::pin(registry.enter_with(R).priority().enter_async());
    assert!(poll(&mut placed).is_pending());
    registry.turn_off();
    clock.advance(ms(1_000));
    assert!(matches!(poll(&mut placed), Poll::Ready(Ok(_))));
    registry.turn_on();
    assert_eq!(passes(&registry, R, 1), 1, "its place is everybody's again");
}

#[test]
fn observers_are_told_of_each_change_and_of_no_other() {
    let recorder = Recorder::default();
    let registry = Registry::builder().clock(ManualClock::new()).observer(recorder.clone()).build();
    registry.turn_on();
    registry.turn_on_resource(R);
    assert!(recorder.take().is_empty(), "they were on");
    registry.turn_off();
    registry.turn_off();
    registry.turn_off_resource(R);
    registry.turn_off_resource(R);
    registry.turn_on_resource(R);
    registry.turn_on();
    assert_eq!(
        recorder.take(),
        [
            "all guarding is switched off",
            "guarding of `orders.create` is switched off",
            "guarding of `orders.create` is switched on",
            "all guarding is switched on",
        ]
    );
}

#[test]
fn statistics_say_that_a_resource_is_off() {
    let (registry, _) = registry();
    passes(&registry, R, 1);
    let shown = || registry.stats(R).unwrap().to_string();
    assert!(!shown().contains("guarding"));
    registry.turn_off_resource(R);
    assert!(shown().contains("\n  guarding                     off"), "{}", shown());
}

#[test]
fn however_it_is_switched_while_threads_call_each_call_is_counted_wholly_or_not_at_all() {
    let rules = RuleSet::new().isolation(R, IsolationRule::new(1_000)).flow("idle", qps(1e6));
    let (registry, _) = registry_with(rules);
    let n_done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (registry, n_done) = (&registry, &n_done);
            scope.spawn(move || {
                let held = Cell::new(None);
                for i in 0..4_000_usize {
                    let entry = registry.enter(if (i + thread) % 2 == 0 { R } else { "plain" }).unwrap();
                    // One call later, so that many end under another switch than they began.
                    drop(held.replace(Some(entry)));
                }
                n_done.fetch_add(1, Ordering::Relaxed);
            });
        }
        let (registry, n_done) = (&registry, &n_done);
        scope.spawn(move || {
            while n_done.load(Ordering::Relaxed) < 3 {
                registry.turn_off();
                registry.turn_off_resource(R);
                registry.turn_on();
                registry.turn_on_resource(R);
            }
        });
    });
    for name in [R, "plain"] {
        let [passed, blocked, completed, in_flight] = counts(&registry, name);
        assert_eq!((blocked, completed, in_flight), (0, passed, 0), "{name}");
        assert!(passed <= 6_000);
    }
    assert_eq!(passes(&registry, R, 1), 1);
}
