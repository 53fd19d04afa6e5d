//! Checks of the application's own: asked about every call, and told the end of each that they did not block, once.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{R, Recorder, at, call, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    AuthorityRule, Behavior, BreakerRule, Call, Cause, Check, Clock, Ended, FlowRule, HotRule, IsolationRule,
    ManualClock, Outcome, Registry, RuleSet, SystemRule, ToKey, Verdict,
};

/// A check that says what it is told to, and notes what it hears. Clones are one check.
#[derive(Clone, Debug)]
struct Watch(Arc<Mutex<(Verdict, Vec<String>)>>);

impl Watch {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((Verdict::Pass, vec![]))))
    }

    fn says(&self, verdict: Verdict) {
        self.0.lock().unwrap().0 = verdict;
    }

    /// What it has heard since the last time.
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().1)
    }
}

impl Check for Watch {
    fn check(&self, call: &Call<'_>) -> Verdict {
        let mut held = self.0.lock().unwrap();
        held.1.push(format!("asked for {}", call.permits()));
        held.0
    }

    fn ended(&self, call: &Ended<'_>) {
        let line = match call.outcome() {
            Some(outcome) => format!("{outcome:?} of {} after {:?}", call.permits(), call.rt()),
            None => format!("blocked, {} after {:?}", call.permits(), call.rt()),
        };
        self.0.lock().unwrap().1.push(line);
    }
}

/// A registry in which a check watches [`R`].
fn watched(rules: RuleSet) -> (Registry, ManualClock, Watch) {
    let (registry, clock) = registry_with(rules);
    let watch = Watch::new();
    registry.add_check(R, watch.clone());
    (registry, clock, watch)
}

fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A check that is a function.
struct Ask<F>(F);

impl<F: Fn(&Call<'_>) -> Verdict + Send + Sync + 'static> Check for Ask<F> {
    fn check(&self, call: &Call<'_>) -> Verdict {
        (self.0)(call)
    }
}

#[test]
fn a_check_blocks_for_a_reason_of_its_own() {
    let (registry, clock, watch) = watched(RuleSet::new());
    clock.set(at(5));
    watch.says(Verdict::Block { reason: "maintenance", retry_after: Some(ms(250)) });
    let blocked = registry.enter_with(R).permits(3).enter().unwrap_err();
    assert_eq!(
        (blocked.cause(), blocked.reason(), blocked.permits()),
        (Cause::Custom, Some("maintenance"), 3)
    );
    assert_eq!((blocked.retry_after(), blocked.at(), blocked.limit()), (Some(ms(250)), at(5), None));
    assert_eq!(blocked.rule().to_string(), "loaded/custom/0");
    assert_eq!(blocked.to_string(), "`orders.create` is blocked: maintenance; retry after 250ms");
    watch.says(Verdict::block("no"));
    assert_eq!(registry.enter(R).unwrap_err().to_string(), "`orders.create` is blocked: no");
    assert_eq!(watch.heard(), ["asked for 3", "asked for 1"], "whom it blocked it need not be told of");
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().blocked_by(Cause::Custom), stats.totals().passed()), (4, 0));
}

#[test]
fn a_check_is_told_what_the_call_brings() {
    let (registry, clock) = registry();
    let seen = Arc::new(Mutex::new(String::new()));
    let note = Arc::clone(&seen);
    registry.add_check(
        R,
        Ask(move |call: &Call<'_>| {
            let names = (call.resource(), call.entrance(), call.origin());
            let words = (call.permits(), call.is_inbound(), call.is_priority(), call.at());
            let keys = (call.key("user"), call.key("sku"));
            *note.lock().unwrap() = format!("{names:?} {words:?} {keys:?}");
            Verdict::Pass
        }),
    );
    clock.set(at(7));
    let call =
        registry.enter_with(R).permits(2).inbound().priority().entrance("web").origin("app").key("user", 42);
    drop(call.enter().unwrap());
    let at_7 = format!("{:?}", at(7));
    assert_eq!(
        *seen.lock().unwrap(),
        format!("(\"orders.create\", Some(\"web\"), Some(\"app\")) (2, true, true, {at_7}) (Some(42), None)")
    );
    leap_runtime::Context::new("jobs").with_origin("batch").scope(|| drop(registry.enter(R).unwrap()));
    assert_eq!(
        *seen.lock().unwrap(),
        format!(
            "(\"orders.create\", Some(\"jobs\"), Some(\"batch\")) (1, false, false, {at_7}) (None, None)"
        )
    );
}

#[test]
fn it_is_told_once_how_a_call_ended_in_whatever_way() {
    let (registry, clock, watch) = watched(RuleSet::new());
    let enter = || registry.enter(R).unwrap();
    for outcome in [Outcome::Success, Outcome::Exception, Outcome::Ignored, Outcome::Cancelled] {
        let entry = enter();
        clock.advance(ms(10));
        entry.end(outcome);
        assert_eq!(watch.heard(), ["asked for 1".to_owned(), format!("{outcome:?} of 1 after 10ms")]);
    }
    drop(enter());
    assert_eq!(watch.heard()[1..], ["Cancelled of 1 after 0ns"]);
    assert_eq!(enter().run(|| "x".parse::<u32>()).ok(), None);
    assert_eq!(watch.heard()[1..], ["Exception of 1 after 0ns"]);
    let panicked =
        catch_unwind(AssertUnwindSafe(|| enter().run(|| -> Result<(), ()> { panic!("in the body") })));
    assert!(panicked.is_err());
    assert_eq!(watch.heard()[1..], ["Exception of 1 after 0ns"]);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _entry = enter();
        panic!("beside it")
    }));
    assert!(panicked.is_err());
    assert_eq!(watch.heard()[1..], ["Exception of 1 after 0ns"]);
    let mut entry = registry.enter_with(R).permits(2).enter().unwrap();
    entry.charge(5);
    drop(entry);
    assert_eq!(watch.heard(), ["asked for 2", "Cancelled of 7 after 0ns"]);
}

#[test]
fn it_is_told_once_how_a_future_ended_in_whatever_way() {
    let (registry, clock, watch) = watched(RuleSet::new());
    let run = |body: Pin<Box<dyn Future<Output = Result<(), ()>>>>| {
        Box::pin(registry.enter(R).unwrap().run_async(body))
    };
    assert!(poll(&mut run(Box::pin(std::future::ready(Ok(()))))).is_ready());
    assert_eq!(watch.heard(), ["asked for 1", "Success of 1 after 0ns"]);
    let mut dropped = run(Box::pin(std::future::pending()));
    assert!(poll(&mut dropped).is_pending());
    clock.advance(ms(3));
    drop(dropped);
    assert_eq!(watch.heard()[1..], ["Cancelled of 1 after 3ms"]);
    let mut kept = run(Box::pin(std::future::poll_fn(|_| panic!("at once"))));
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut kept))).is_err());
    assert_eq!(watch.heard()[1..], ["Exception of 1 after 0ns"]);
    drop(kept);
    assert_eq!(watch.heard(), [""; 0]);
}

#[test]
fn it_is_told_that_a_later_rule_blocked_the_call() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap();
    let throttle = FlowRule::new(0.0, Behavior::Throttle { max_wait: ms(0) }).unwrap();
    let rules = [
        RuleSet::new().flow(R, qps(0.0)),
        RuleSet::new().flow(R, throttle),
        RuleSet::new().flow(R, qps(0.0).for_each_origin().unwrap()),
        RuleSet::new().flow(R, qps(0.0).associated("stock.read").unwrap()),
        RuleSet::new().isolation(R, IsolationRule::new(0)),
        RuleSet::new().hot(R, HotRule::qps("user", 0.0).unwrap()),
        RuleSet::new().breaker(R, breaker),
    ];
    for rules in rules {
        let (registry, _, watch) = watched(rules);
        for breaker in registry.breakers(R) {
            assert!(breaker.force_open());
        }
        let call = || registry.enter_with(R).permits(2).origin("app").key("user", 1);
        assert!(call().enter().is_err());
        assert_eq!(watch.heard(), ["asked for 2", "blocked, 2 after 0ns"]);
        assert!(matches!(poll(&mut Box::pin(call().enter_async())), Poll::Ready(Err(_))));
        assert_eq!(watch.heard(), ["asked for 2", "blocked, 2 after 0ns"]);
    }
    // Who was turned away before is not shown to it.
    let rules = RuleSet::new()
        .authority(R, AuthorityRule::deny(["batch"]).unwrap())
        .system(SystemRule::concurrency(0));
    let (registry, _, watch) = watched(rules);
    assert_eq!(registry.enter_with(R).origin("batch").enter().unwrap_err().cause(), Cause::Authority);
    assert_eq!(registry.enter_with(R).inbound().enter().unwrap_err().cause(), Cause::System);
    assert_eq!(watch.heard(), [""; 0]);
}

#[test]
fn of_several_checks_the_first_that_blocks_decides_and_those_before_it_are_told() {
    let (registry, _, first) = watched(RuleSet::new());
    let (second, third) = (Watch::new(), Watch::new());
    let ids = [registry.add_check("orders.*", second.clone()), registry.add_check("*", third.clone())];
    second.says(Verdict::block("second"));
    assert_eq!(registry.enter(R).unwrap_err().rule().to_string(), "loaded/custom/1");
    assert_eq!(first.heard(), ["asked for 1", "blocked, 1 after 0ns"]);
    assert_eq!((second.heard(), third.heard()), (vec!["asked for 1".to_owned()], vec![]));
    assert!(registry.remove_check(ids[0]) && !registry.remove_check(ids[0]));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!((first.heard().len(), second.heard().len(), third.heard().len()), (2, 0, 2));
}

#[test]
fn a_thread_waits_as_long_as_a_check_says_and_its_response_time_begins_then() {
    let (registry, clock, watch) = watched(RuleSet::new());
    watch.says(Verdict::Wait(ms(100)));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let entry = registry.enter(R).unwrap();
            let started = clock.now();
            clock.advance(ms(7));
            entry.end(Outcome::Success);
            started
        });
        while registry.stats(R).is_none_or(|stats| stats.waiting() == 0) {
            std::thread::yield_now();
        }
        clock.set(at(99));
        assert_eq!(registry.stats(R).unwrap().waiting(), 1);
        clock.set(at(100));
        assert_eq!(waits.join().unwrap(), at(100));
    });
    assert_eq!(watch.heard(), ["asked for 1", "Success of 1 after 7ms"]);
}

#[test]
fn a_future_awaits_what_a_check_says_and_a_cancelled_wait_is_an_end() {
    let (registry, clock, watch) = watched(RuleSet::new());
    watch.says(Verdict::Wait(ms(100)));
    let begin = || Box::pin(registry.enter_async(R));
    let (mut waits, mut dropped) = (begin(), begin());
    assert!(poll(&mut waits).is_pending() && poll(&mut dropped).is_pending());
    clock.set(at(99));
    assert!(poll(&mut waits).is_pending());
    drop(dropped);
    assert_eq!(watch.heard()[2..], ["Cancelled of 1 after 0ns"], "it never ran");
    clock.set(at(100));
    let Poll::Ready(Ok(entry)) = poll(&mut waits) else { panic!("its wait is over") };
    clock.set(at(130));
    entry.end(Outcome::Success);
    assert_eq!(watch.heard(), ["Success of 1 after 30ms"]);
    let stats = registry.stats(R).unwrap();
    assert_eq!(
        (stats.totals().rt_avg(), stats.totals().cancelled(), stats.in_flight()),
        (Some(ms(30)), 1, 0)
    );
    watch.says(Verdict::Wait(Duration::ZERO));
    assert!(matches!(poll(&mut begin()), Poll::Ready(Ok(_))));
}

#[test]
fn where_several_have_a_call_wait_it_waits_for_the_longest() {
    let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: ms(1_000) }).unwrap();
    let rules = RuleSet::new().flow(R, throttle).hot(R, HotRule::throttle("user", 4.0, ms(1_000)).unwrap());
    let (registry, clock, watch) = watched(rules);
    let other = Watch::new();
    registry.add_check(R, other.clone());
    watch.says(Verdict::Wait(ms(30)));
    other.says(Verdict::Wait(ms(20)));
    let begin = |user: u32| Box::pin(registry.enter_with(R).key("user", user).enter_async());
    for (user, starts) in [(1, 30), (2, 130), (1, 280)] {
        let mut call = begin(user);
        assert!(poll(&mut call).is_pending());
        clock.set(at(starts - 1));
        assert!(poll(&mut call).is_pending(), "{user} at {}", starts - 1);
        clock.set(at(starts));
        assert!(matches!(poll(&mut call), Poll::Ready(Ok(_))), "{user} at {starts}");
        clock.set(at(0));
    }
}

#[test]
fn it_is_asked_anew_about_a_call_that_has_queued_and_told_of_every_answer() {
    let isolation = IsolationRule::new(1).with_queue(ms(50)).unwrap();
    let (registry, clock, watch) = watched(RuleSet::new().isolation(R, isolation));
    let held = registry.enter(R).unwrap();
    let (mut queued, mut late, mut dropped) = (
        Box::pin(registry.enter_async(R)),
        Box::pin(registry.enter_async(R)),
        Box::pin(registry.enter_async(R)),
    );
    assert!(
        poll(&mut queued).is_pending() && poll(&mut late).is_pending() && poll(&mut dropped).is_pending()
    );
    drop(dropped);
    assert_eq!(
        watch.heard(),
        [&["asked for 1"][..], &["asked for 1", "blocked, 1 after 0ns"].repeat(3)].concat()
    );
    drop(held);
    assert_eq!(watch.heard(), ["Cancelled of 1 after 0ns"]);
    let Poll::Ready(Ok(entry)) = poll(&mut queued) else { panic!("a permit is free") };
    assert_eq!(watch.heard(), ["asked for 1"]);
    clock.set(at(50));
    assert!(matches!(poll(&mut late), Poll::Ready(Err(_))));
    entry.end(Outcome::Success);
    assert_eq!(watch.heard(), ["Success of 1 after 50ms"]);
    // It may have thought better of it.
    let held = registry.enter(R).unwrap();
    let mut queued = Box::pin(registry.enter_async(R));
    assert!(poll(&mut queued).is_pending());
    drop(held);
    watch.says(Verdict::block("no longer"));
    let Poll::Ready(Err(blocked)) = poll(&mut queued) else { panic!("it is asked again") };
    assert_eq!(blocked.reason(), Some("no longer"));
    watch.says(Verdict::Pass);
    assert_eq!(passes(&registry, R, 2), 2, "the permit is back");
}

/// F09.
#[test]
fn a_check_that_panics_lets_the_call_pass_and_is_counted() {
    struct Broken;
    impl Check for Broken {
        fn check(&self, _: &Call<'_>) -> Verdict {
            panic!("check is broken")
        }
        fn ended(&self, _: &Ended<'_>) {
            panic!("ended is broken")
        }
    }
    let (registry, _, watch) = watched(RuleSet::new().flow(R, qps(2.0)));
    let recorder = Recorder::default();
    registry.observe(recorder.clone());
    registry.add_check(R, Broken);
    let after = Watch::new();
    registry.add_check(R, after.clone());
    assert_eq!(passes(&registry, R, 3), 2);
    assert_eq!(registry.contained_panics(), 6);
    let two = [
        "panic in check (Some(\"orders.create\")): check is broken",
        "panic in check (Some(\"orders.create\")): ended is broken",
    ];
    assert_eq!(recorder.take(), [&two.repeat(3)[..], &["block orders.create by loaded/flow/0"]].concat());
    assert_eq!([watch.heard().len(), after.heard().len()], [6, 6]);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().success(), stats.in_flight()), (2, 0));
}

#[test]
fn a_pattern_finds_the_resources_that_are_there_and_those_made_later() {
    let (registry, _) = registry();
    assert_eq!(passes(&registry, "orders.create", 1) + passes(&registry, "stock.read", 1), 2);
    let check = registry.add_check("orders.*", Ask(|_: &Call<'_>| Verdict::block("orders rest")));
    let passed = |names: &[&str]| names.iter().map(|name| passes(&registry, name, 1)).collect::<Vec<_>>();
    assert_eq!(
        passed(&["orders.create", "orders.", "orders.delete", "orders", "stock.read"]),
        [0, 0, 0, 1, 1]
    );
    assert!(registry.remove_check(check));
    assert_eq!(passed(&["orders.create", "orders.delete"]), [1, 1]);
}

#[test]
fn a_check_that_was_removed_is_told_the_end_of_what_it_let_pass_and_asked_no_more() {
    let (registry, _) = registry();
    let watch = Watch::new();
    let check = registry.add_check("*", watch.clone());
    let entry = registry.enter(R).unwrap();
    registry.remove_check(check);
    registry.load(RuleSet::new().flow(R, qps(5.0))).unwrap();
    drop(registry.enter(R).unwrap());
    assert_eq!(watch.heard(), ["asked for 1"]);
    entry.end(Outcome::Success);
    assert_eq!(watch.heard(), ["Success of 1 after 0ns"]);
}

#[test]
fn a_check_stays_over_reloads_of_rules_and_a_call_that_was_there_before_it_is_not_its_business() {
    let (registry, _) = registry();
    let before = registry.enter(R).unwrap();
    let watch = Watch::new();
    registry.add_check(R, watch.clone());
    before.end(Outcome::Success);
    assert_eq!(watch.heard(), [""; 0]);
    registry.load(RuleSet::new().isolation(R, IsolationRule::new(1))).unwrap();
    registry.load(RuleSet::new()).unwrap();
    assert_eq!((passes(&registry, R, 1), watch.heard().len()), (1, 2));
}

#[test]
fn a_check_may_use_the_registry_itself() {
    let (registry, _) = registry();
    let inner = registry.clone();
    let added = Mutex::new(None);
    registry.add_check(
        R,
        Ask(move |_: &Call<'_>| {
            let check = inner.add_check(R, Watch::new());
            if let Some(before) = added.lock().unwrap().replace(check) {
                assert!(inner.remove_check(before));
            }
            inner.load(RuleSet::new().flow(R, qps(3.0))).unwrap();
            drop(inner.stats(R));
            inner.enter("stock.read").map_or_else(|_| Verdict::block("no stock"), |_| Verdict::Pass)
        }),
    );
    assert_eq!(passes(&registry, R, 5), 3);
    assert_eq!((registry.contained_panics(), passes(&registry, "stock.read", 1)), (0, 1));
}

#[test]
fn asking_what_a_call_would_be_told_asks_no_check() {
    let (registry, _, watch) = watched(RuleSet::new());
    watch.says(Verdict::block("no"));
    assert!(registry.would_pass(R, 1).is_ok());
    assert_eq!(watch.heard(), [""; 0]);
}

/// A13, with a check that takes its time.
#[test]
fn a_slow_check_lets_no_more_calls_in_than_allowed() {
    let (registry, _) = registry_with(RuleSet::new().isolation(R, IsolationRule::new(10)));
    let asked = Arc::new(Barrier::new(100));
    let together = Arc::clone(&asked);
    // All of them are in it at once.
    registry.add_check(
        R,
        Ask(move |_: &Call<'_>| {
            together.wait();
            Verdict::Pass
        }),
    );
    let decided = Barrier::new(100);
    let passed = std::thread::scope(|scope| {
        let ask = || {
            let entry = registry.enter(R);
            decided.wait();
            entry.map(|entry| entry.end(Outcome::Success)).is_ok()
        };
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|passed| *passed).count()
    });
    let stats = registry.stats(R).unwrap();
    assert_eq!((passed, stats.totals().blocked(), stats.in_flight()), (10, 90, 0));
    assert_eq!(stats.second().peak_in_flight(), Some(10));
}

#[test]
fn windows_and_statistics_go_by_the_moment_at_which_a_slow_check_has_answered() {
    let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(2.0)));
    let (slow, takes) = (clock.clone(), Arc::new(AtomicU32::new(2_600)));
    let time = Arc::clone(&takes);
    registry.add_check(
        R,
        Ask(move |_: &Call<'_>| {
            slow.advance(ms(time.swap(0, Ordering::Relaxed).into()));
            Verdict::Pass
        }),
    );
    // Arrives at 0, and passes at 2 600 ms.
    let call = |origin| registry.enter_with(R).origin(origin).enter();
    drop(call("slow").unwrap());
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.second().passed(), stats.origins()[0].second().passed()), (1, 1));
    assert_eq!(passes(&registry, R, 2), 1);
    clock.set(at(3_599));
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(at(3_600));
    assert_eq!(passes(&registry, R, 3), 2);
    // A block is counted when it is known.
    takes.store(2_000, Ordering::Relaxed);
    registry.load(RuleSet::new().flow(R, qps(0.0))).unwrap();
    assert_eq!(call("late").unwrap_err().at(), at(5_600));
    assert_eq!(registry.stats(R).unwrap().second().blocked(), 1);
}

#[test]
fn a_check_that_goes_by_a_key_is_a_rule_of_its_own() {
    let (registry, _) = registry();
    registry.add_check(
        "*",
        Ask(|call: &Call<'_>| {
            if call.key("user") == Some(&"mallory".to_key()) {
                Verdict::block("banned")
            } else {
                Verdict::Pass
            }
        }),
    );
    let passes = |user: &str| registry.enter_with(R).key("user", user).enter().is_ok();
    assert!(passes("ann") && !passes("mallory") && registry.enter(R).is_ok());
}
