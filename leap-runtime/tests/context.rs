//! Contexts, the call tree, numbers by origin and entrance, and rules for some calls, as a user meets them.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use common::{R, at, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    AuthorityRule, BreakerRule, BreakerState, CallTree, Cause, Clock, Context, HotRule, InContext,
    IsolationRule, Mode, Outcome, Registry, RuleSet, SystemRule, Timestamp,
};

/// The tree in lines: depth, name, passed, blocked, exceptions, in flight.
fn lines(tree: &CallTree) -> Vec<String> {
    let line = |(depth, node): (usize, &leap_runtime::CallNode)| {
        let figures = (node.passed(), node.blocked(), node.exceptions(), node.in_flight());
        format!("{depth} {} {figures:?}", node.name())
    };
    tree.iter().map(line).collect()
}

#[test]
fn what_is_entered_in_a_body_is_its_child_and_outside_a_context_nothing_is_noted() {
    let (registry, _) = registry();
    let outer = || {
        registry.enter("outer").unwrap().run(|| {
            registry.enter("inner").unwrap().end(Outcome::Exception);
            Ok::<_, ()>(())
        })
    };
    outer().unwrap();
    assert_eq!(registry.tree(), CallTree::default());
    Context::new("front").scope(outer).unwrap();
    Context::new("front").scope(|| drop(registry.enter("inner")));
    assert_eq!(
        lines(&registry.tree()),
        ["0 front (2, 0, 0, 0)", "1 inner (1, 0, 0, 0)", "1 outer (1, 0, 0, 0)", "2 inner (1, 0, 1, 0)"]
    );
}

#[test]
fn a_body_that_panics_leaves_its_place_and_its_context() {
    let (registry, _) = registry();
    Context::new("front").scope(|| {
        let entry = registry.enter("outer").unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            entry.run(|| -> Result<(), ()> {
                let _inner = registry.enter("inner").unwrap();
                panic!("inside")
            })
        }));
        assert!(panicked.is_err());
        drop(registry.enter("after"));
    });
    assert!(Context::current().is_none());
    assert_eq!(
        lines(&registry.tree()),
        ["0 front (2, 0, 1, 0)", "1 after (1, 0, 0, 0)", "1 outer (1, 0, 1, 0)", "2 inner (1, 0, 1, 0)"]
    );
}

#[tokio::test]
async fn bodies_that_await_by_turns_keep_their_places_and_dropped_ones_leave_theirs() {
    let (registry, _) = registry();
    let call = |name: &'static str| {
        let registry = registry.clone();
        async move {
            let entry = registry.enter(name).unwrap();
            let body = async {
                for _ in 0..3 {
                    drop(registry.enter("inner").unwrap());
                    tokio::task::yield_now().await;
                }
                Ok::<_, ()>(())
            };
            entry.run_async(body).await
        }
    };
    let (front, back) = (Context::new("front"), Context::new("back"));
    let (a, b) = (call("a").in_context(&front), call("b").in_context(&front));
    let (c, d) = (tokio::join!(a, b), tokio::spawn(call("a").in_context(&back)));
    assert_eq!((c, d.await.unwrap()), ((Ok(()), Ok(())), Ok(())));
    {
        let mut dropped = Box::pin(call("dropped").in_context(&back));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(dropped.as_mut().poll(&mut context).is_pending());
        assert_eq!(registry.tree().entrance("back").unwrap().in_flight(), 1);
    }
    assert_eq!(
        lines(&registry.tree()),
        [
            "0 back (2, 0, 0, 0)",
            "1 a (1, 0, 0, 0)",
            "2 inner (3, 0, 0, 0)",
            "1 dropped (1, 0, 0, 0)",
            "2 inner (1, 0, 0, 0)",
            "0 front (2, 0, 0, 0)",
            "1 a (1, 0, 0, 0)",
            "2 inner (3, 0, 0, 0)",
            "1 b (1, 0, 0, 0)",
            "2 inner (3, 0, 0, 0)",
        ]
    );
}

#[tokio::test]
async fn a_task_that_is_given_the_context_of_a_body_goes_on_as_its_child() {
    let (registry, _) = registry();
    let entry = Context::new("front").scope(|| registry.enter("outer")).unwrap();
    let inner = |registry: Registry| async move { drop(registry.enter("inner")) };
    let body = async {
        let here = Context::current().unwrap();
        tokio::spawn(inner(registry.clone()).in_context(&here)).await.unwrap();
        tokio::spawn(inner(registry.clone())).await
    };
    entry.run_async(body).await.unwrap();
    assert_eq!(
        lines(&registry.tree()),
        ["0 front (1, 0, 0, 0)", "1 outer (1, 0, 0, 0)", "2 inner (1, 0, 0, 0)"]
    );
    assert_eq!(registry.stats("inner").unwrap().totals().passed(), 2);
}

/// A clock that moves by a millisecond whenever it is read.
#[derive(Debug)]
struct Restless(AtomicU64);

impl Clock for Restless {
    fn now(&self) -> Timestamp {
        at(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// The same clock in the registry's hands and the test's.
#[derive(Debug)]
struct Shared(Arc<Restless>);

impl Clock for Shared {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
    fn wall(&self) -> SystemTime {
        self.0.wall()
    }
}

/// A12. The resource is entered at 999 ms; everybody else counts it in the bucket of that moment too.
#[test]
fn a_call_is_in_one_bucket_of_its_resource_its_origin_and_its_entrance() {
    let clock = Arc::new(Restless(AtomicU64::new(0)));
    let registry = Registry::builder().clock(Shared(Arc::clone(&clock))).build();
    // The resource is there, so that entering it reads the clock once.
    registry.load(RuleSet::new().flow(R, qps(100.0))).unwrap();
    clock.0.store(999, Ordering::Relaxed);
    let entry = Context::new("front").with_origin("vip").scope(|| registry.enter(R)).unwrap();
    assert_eq!(clock.0.load(Ordering::Relaxed), 1_000);
    entry.end(Outcome::Success);
    assert_eq!(clock.0.load(Ordering::Relaxed), 1_001);

    // The second before 1 950 ms begins at 1 000 ms: without the pass, with the end.
    clock.0.store(1_950, Ordering::Relaxed);
    let stats = registry.stats(R).unwrap();
    let [origin] = stats.origins() else { panic!("one origin") };
    let [entrance] = stats.entrances() else { panic!("one entrance") };
    assert_eq!((origin.name(), entrance.name()), ("vip", "front"));
    for second in [stats.second(), origin.second(), entrance.second()] {
        assert_eq!((second.passed(), second.success()), (0, 1));
    }
    for totals in [stats.totals(), origin.totals(), entrance.totals()] {
        assert_eq!((totals.passed(), totals.calls(), totals.rt_avg()), (1, 1, Some(ms(1))));
    }
}

#[test]
fn a_rule_for_an_origin_of_an_entrance_holds_in_its_context_only() {
    let rules = RuleSet::new()
        .flow(R, qps(2.0).for_origin("vip").unwrap())
        .flow(R, qps(1.0).for_other_origins().unwrap())
        .flow(R, qps(3.0).for_entrance("jobs").unwrap())
        .flow(R, qps(9.0));
    let (registry, clock) = registry_with(rules);
    let calls = |context: &Context| context.scope(|| passes(&registry, R, 5));
    let front = |origin: &'static str| Context::new("front").with_origin(origin);
    assert_eq!([calls(&front("vip")), calls(&front("a")), calls(&front("b"))], [2, 1, 1]);
    assert_eq!(calls(&Context::new("jobs").with_origin("c")), 1);
    assert_eq!(calls(&Context::new("jobs")), 2);
    assert_eq!(passes(&registry, R, 5), 2);
    // What the resource's own rule refused was taken from no other.
    clock.advance(ms(999));
    assert_eq!(calls(&Context::new("jobs")), 0);
    clock.advance(ms(1));
    assert_eq!(calls(&Context::new("jobs")), 3);
    assert!(front("vip").scope(|| registry.would_pass(R, 2)).is_ok());
    assert!(front("vip").scope(|| registry.would_pass(R, 3)).is_err());
}

/// Shows by its count whether its registry still lives.
#[derive(Debug)]
struct Watcher(#[expect(dead_code, reason = "held")] Arc<()>);

impl leap_runtime::Observer for Watcher {}

#[test]
fn resources_that_watch_each_other_block_each_other_and_are_freed() {
    let recorder = Arc::new(());
    let registry = Registry::builder()
        .clock(leap_runtime::ManualClock::new())
        .observer(Watcher(Arc::clone(&recorder)))
        .build();
    let rule = |related: &'static str| qps(2.0).associated(related).unwrap();
    registry.load(RuleSet::new().flow("a", rule("b")).flow("b", rule("a")).flow("c", rule("c"))).unwrap();
    assert_eq!((passes(&registry, "a", 5), passes(&registry, "b", 5)), (5, 0));
    // A resource that watches itself has a limit on itself.
    assert_eq!(passes(&registry, "c", 5), 2);
    drop(registry);
    assert_eq!(Arc::strong_count(&recorder), 1);
}

#[test]
fn a_resource_is_watched_as_long_as_a_rule_stands_and_remembers_while_its_limit_changes() {
    let rules = |limit| RuleSet::new().flow("reads", qps(limit).associated("writes").unwrap());
    let (registry, clock) = registry_with(rules(3.0));
    assert_eq!(passes(&registry, "writes", 2), 2);
    assert!(registry.enter("reads").is_ok());
    registry.load(rules(2.0)).unwrap();
    assert_eq!(
        registry.enter("reads").unwrap_err().to_string(),
        "`reads` is blocked: the limit of 2 per 1s on its related resource is reached; retry after 1.01s"
    );
    registry.load(RuleSet::new()).unwrap();
    assert!(registry.enter("reads").is_ok());
    registry.load(rules(2.0)).unwrap();
    assert!(registry.enter("reads").is_ok(), "a new window is empty");
    assert_eq!(passes(&registry, "writes", 2), 2);
    assert!(registry.enter("reads").is_err());
    clock.advance(Duration::from_millis(1_010));
    assert!(registry.enter("reads").is_ok());
}

/// Who of these is let through: nobody in particular, then each origin.
fn admitted(registry: &Registry, origins: &[&str]) -> Vec<bool> {
    let named = origins.iter().map(|origin| registry.enter_with(R).origin(origin).enter().is_ok());
    std::iter::once(registry.enter(R).is_ok()).chain(named).collect()
}

#[test]
fn whom_an_allow_list_does_not_name_is_denied_and_whom_a_deny_list_names() {
    let allow = || AuthorityRule::allow(["web", "app"]).unwrap();
    let (registry, _) = registry_with(RuleSet::new().authority(R, allow()));
    let origins = ["web", "app", "batch", "Web", "we", "webb", ""];
    assert_eq!(admitted(&registry, &origins), [true, true, true, false, false, false, false, true]);
    let blocked = registry.enter_with(R).origin("batch").permits(2).enter().unwrap_err();
    assert_eq!((blocked.cause(), blocked.permits(), blocked.retry_after()), (Cause::Authority, 2, None));
    assert_eq!((blocked.limit(), blocked.observed()), (None, None));
    assert_eq!(blocked.rule().to_string(), "loaded/authority/0");
    assert_eq!(blocked.to_string(), "`orders.create` is blocked: its origin may not call");

    registry.load(RuleSet::new().authority(R, AuthorityRule::deny(["batch", "jobs"]).unwrap())).unwrap();
    assert_eq!(admitted(&registry, &["web", "batch", "jobs", "job"]), [true, true, false, false, true]);
    // All lists have to agree.
    let both = RuleSet::new().authority(R, allow()).authority(R, AuthorityRule::deny(["app"]).unwrap());
    registry.load(both).unwrap();
    assert_eq!(admitted(&registry, &["web", "app", "batch"]), [true, true, false, false]);
    assert_eq!(registry.enter_with(R).origin("app").enter().unwrap_err().rule().position(), 1);
    registry.load(RuleSet::new().authority(R, allow().with_mode(Mode::Off))).unwrap();
    assert_eq!(admitted(&registry, &["batch"]), [true, true]);
}

#[test]
fn an_origin_is_that_of_the_call_or_else_of_its_context() {
    let (registry, _) = registry_with(RuleSet::new().authority(R, AuthorityRule::deny(["batch"]).unwrap()));
    Context::new("jobs").with_origin("batch").scope(|| {
        assert_eq!(admitted(&registry, &["web", "batch", ""]), [false, true, false, false]);
        assert!(registry.would_pass(R, 1).is_err());
        Context::new("inner").scope(|| assert!(registry.enter(R).is_ok()));
    });
    let stats = registry.stats(R).unwrap();
    let of = |share: &leap_runtime::ShareStats| {
        let totals = *share.totals();
        format!("{} {} {}", share.name(), totals.passed(), totals.blocked_by(Cause::Authority))
    };
    assert_eq!(stats.origins().iter().map(of).collect::<Vec<_>>(), ["batch 0 3", "web 1 0"]);
    assert_eq!(stats.entrances().iter().map(of).collect::<Vec<_>>(), ["inner 1 0", "jobs 1 3"]);
    let in_context = async { registry.enter_async(R).await.is_ok() }
        .in_context(&Context::new("jobs").with_origin("batch"));
    let mut in_context = Box::pin(in_context);
    let polled = in_context.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert_eq!(polled, std::task::Poll::Ready(false));
}

#[test]
fn who_may_not_call_takes_nothing_from_those_who_may() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(1_000)).unwrap();
    let rules = RuleSet::new()
        .authority(R, AuthorityRule::allow(["web"]).unwrap())
        .flow(R, qps(2.0))
        .flow(R, qps(2.0).for_each_origin().unwrap())
        .isolation(R, IsolationRule::new(1))
        .hot(R, HotRule::qps("user", 2.0).unwrap())
        .breaker(R, breaker)
        .system(SystemRule::qps(2.0).unwrap());
    let (registry, clock) = registry_with(rules);
    let call = |origin| registry.enter_with(R).origin(origin).key("user", 1).inbound().enter();
    call("web").unwrap().end(Outcome::Exception);
    clock.set(at(1_000));
    for _ in 0..100 {
        assert_eq!(call("batch").unwrap_err().cause(), Cause::Authority);
    }
    call("web").unwrap().end(Outcome::Success);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().passed(), stats.breakers()[0].state()), (2, BreakerState::Closed));
    call("web").unwrap().end(Outcome::Success);
    assert!(call("web").is_err());
}

#[test]
fn what_judges_a_body_is_called_outside_it() {
    let (registry, _) = registry();
    let judge = |(): &()| {
        registry.enter("judge").unwrap().end(Outcome::Success);
        Outcome::Success
    };
    Context::new("front").scope(|| registry.enter("body").unwrap().run_with(|| (), judge));
    assert!(Context::current().is_none());
    assert_eq!(
        lines(&registry.tree()),
        ["0 front (2, 0, 0, 0)", "1 body (1, 0, 0, 0)", "1 judge (1, 0, 0, 0)"]
    );
}
