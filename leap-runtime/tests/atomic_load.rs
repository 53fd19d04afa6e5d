//! Rules loaded while others call and load: each call goes by the rules before or by those after, and ends where it began.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the tests themselves")]

mod common;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Wake};
use std::thread;
use std::time::Duration;

use common::{R, Recorder, at, call, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    BreakerRule, BreakerState, Entry, FlowRule, IsolationRule, LoadError, LoadReport, Mode, Observer,
    Outcome, Registry, Rule, RuleEvent, RuleSet, guarded,
};

/// A limit that nobody reaches here.
const MUCH: f64 = 1e6;

/// Two sets of two rules, of which one alone lets nobody pass: the first in one set, the second in the other. So a call that
/// passes has seen a mixture of them, or neither.
fn refusing(resource: &str) -> [RuleSet; 2] {
    [(0.0, 1_000), (MUCH, 0)].map(|(limit, n)| {
        RuleSet::new().named("rate", resource, qps(limit)).named("flight", resource, IsolationRule::new(n))
    })
}

/// Calls R and others until `change` is done, and has none pass. Who blocked them is told: by which rule, and its limit.
fn none_passes_while(
    enter: impl Fn() -> Result<Entry, leap_runtime::Blocked> + Sync,
    change: impl FnOnce(),
) -> BTreeSet<String> {
    let (start, is_over) = (Barrier::new(3), AtomicBool::new(false));
    let calls = || {
        let mut seen = BTreeSet::new();
        start.wait();
        while !is_over.load(Ordering::Acquire) {
            let blocked = enter().expect_err("a call passes that the rules before and those after refuse");
            seen.insert(format!("{} at {:?}", blocked.rule(), blocked.limit()));
        }
        seen
    };
    thread::scope(|scope| {
        let threads = [scope.spawn(calls), scope.spawn(calls)];
        start.wait();
        change();
        is_over.store(true, Ordering::Release);
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn seen<const N: usize>(all: [&str; N]) -> BTreeSet<String> {
    all.map(str::to_owned).into()
}

mod calls {
    use super::*;

    /// G06.
    #[test]
    fn a_call_sees_the_old_rules_or_the_new_ones_and_never_a_mixture_or_none() {
        let sets = refusing(R);
        let (registry, _) = registry_with(sets[0].clone());
        let by = none_passes_while(
            || registry.enter(R),
            || {
                for i in 1..=300 {
                    registry.load(sets[i % 2].clone()).unwrap();
                }
            },
        );
        let both = seen(["loaded/flight at Some(0.0)", "loaded/rate at Some(0.0)"]);
        assert!(by.is_subset(&both), "{by:?}");
        assert_eq!(registry.version(), 301);
    }

    #[test]
    fn so_it_is_when_the_rules_of_one_resource_are_loaded_or_a_version_is_taken_back() {
        let sets = refusing(R);
        let (registry, _) = registry_with(sets[0].clone());
        let source = registry.source("loaded");
        let by = none_passes_while(
            || registry.enter(R),
            || {
                for i in 1..=100 {
                    source.load_resource(R, &sets[i % 2]).unwrap();
                    registry.rollback(registry.version() - 1).unwrap();
                    registry.rollback(registry.version() - 1).unwrap();
                }
            },
        );
        assert!(by.is_subset(&seen(["loaded/flight at Some(0.0)", "loaded/rate at Some(0.0)"])), "{by:?}");
    }

    #[test]
    fn so_it_is_when_two_versions_of_a_rule_change_places() {
        let shadow = Rule::from(qps(0.0).per(ms(2_000)).unwrap()).with_mode(Mode::Shadow);
        let (registry, _) = registry_with(RuleSet::new().named("stop", R, qps(0.0)).named("stop", R, shadow));
        let source = registry.source("loaded");
        let by = none_passes_while(
            || registry.enter(R),
            || {
                for _ in 0..200 {
                    source.promote("stop").unwrap();
                }
            },
        );
        assert!(by.is_subset(&seen(["loaded/stop at Some(0.0)"])), "{by:?}");
    }

    #[test]
    fn so_it_is_when_a_stronger_source_takes_over_and_steps_back() {
        let (registry, _) = registry();
        let (file, api) = (registry.source("file"), registry.source("api"));
        let [both, _] = refusing(R);
        file.load(both).unwrap();
        let stronger = RuleSet::new().flow(R, qps(MUCH)).isolation(R, IsolationRule::new(0));
        let by = none_passes_while(
            || registry.enter(R),
            || {
                for _ in 0..150 {
                    api.load(stronger.clone()).unwrap();
                    api.load(RuleSet::new()).unwrap();
                }
            },
        );
        assert!(by.is_subset(&seen(["file/rate at Some(0.0)", "api/isolation/0 at Some(0.0)"])), "{by:?}");
    }

    #[test]
    fn so_it_is_when_loaded_rules_replace_those_of_an_attribute() {
        #[guarded(resource = "atomic.attribute", qps = 0, fallback = refused)]
        fn passes() -> bool {
            true
        }
        fn refused(_: leap_runtime::Blocked) -> bool {
            false
        }

        let (registry, _) = registry();
        let (start, is_over) = (Barrier::new(3), AtomicBool::new(false));
        let rules = RuleSet::new()
            .flow("atomic.attribute", qps(MUCH))
            .isolation("atomic.attribute", IsolationRule::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    while !is_over.load(Ordering::Acquire) {
                        assert!(!registry.scope(passes));
                    }
                });
            }
            start.wait();
            for _ in 0..150 {
                registry.load(rules.clone()).unwrap();
                registry.load(RuleSet::new()).unwrap();
            }
            is_over.store(true, Ordering::Release);
        });
    }

    #[test]
    fn so_it_is_for_resources_that_are_made_meanwhile() {
        let sets = refusing("job.*");
        let (registry, _) = registry_with(sets[0].clone());
        let next = AtomicU64::new(0);
        none_passes_while(
            || registry.enter(&format!("job.{}", next.fetch_add(1, Ordering::Relaxed) % 500)),
            || {
                let mut i = 0;
                while next.load(Ordering::Relaxed) < 600 {
                    i += 1;
                    registry.load(sets[i % 2].clone()).unwrap();
                }
            },
        );
    }

    #[test]
    fn once_a_load_has_returned_no_resource_goes_by_the_rules_before_however_new_it_is() {
        let (registry, _) = registry();
        let (start, is_over) = (Barrier::new(3), AtomicBool::new(false));
        let limit_of = |name: &str| {
            let stats = registry.stats(name).unwrap();
            let limits = stats.rules().map(|(_, rule)| match rule {
                Rule::Flow(rule) => rule.limit(),
                _ => f64::NAN,
            });
            limits.collect::<Vec<_>>()
        };
        thread::scope(|scope| {
            for thread in ["a", "b"] {
                let (registry, start, is_over) = (&registry, &start, &is_over);
                scope.spawn(move || {
                    start.wait();
                    for i in 0..60 {
                        drop(registry.enter(&format!("job.{thread}.{i}")));
                        if is_over.load(Ordering::Acquire) {
                            break;
                        }
                    }
                });
            }
            start.wait();
            for version in 1..=24 {
                let limit = f64::from(version);
                // Now a rule for all of them, now one for each thread's, now one for a name that is perhaps not there yet.
                let exact = format!("job.a.{version}");
                let rules = match version % 3 {
                    0 => RuleSet::new().flow("job.*", qps(limit)),
                    1 => RuleSet::new().flow("job.a.*", qps(limit)).flow("job.b.*", qps(limit)),
                    _ => RuleSet::new().flow(&exact, qps(limit)).flow("*", qps(limit)),
                };
                registry.load(rules).unwrap();
                let mut names: Vec<String> =
                    registry.resources().map(|stats| stats.resource().to_owned()).collect();
                drop(registry.enter(&exact));
                names.push(exact);
                for name in names {
                    assert_eq!(limit_of(&name), [limit], "{name}");
                }
            }
            is_over.store(true, Ordering::Release);
        });
    }
}

mod ends {
    use super::*;

    /// Has threads enter and exit in all ways while `change` is called over and over with the number of the round.
    fn churn(registry: &Registry, change: impl Fn(u32)) {
        let (start, is_over) = (Barrier::new(3), AtomicBool::new(false));
        thread::scope(|scope| {
            for thread in 0..2_usize {
                let (start, is_over) = (&start, &is_over);
                scope.spawn(move || {
                    let mut held = vec![];
                    start.wait();
                    let mut i = thread;
                    while !is_over.load(Ordering::Acquire) {
                        held.extend(registry.enter(R));
                        i += 1;
                        // Some are held over several loads.
                        if held.len() == 7 {
                            let entry: Entry = held.swap_remove(i % 7);
                            match i % 4 {
                                0 => drop(entry),
                                1 => entry.end(Outcome::Ignored),
                                _ => entry.end(Outcome::Success),
                            }
                        }
                    }
                });
            }
            start.wait();
            (0..200).for_each(change);
            is_over.store(true, Ordering::Release);
        });
    }

    fn has_room_for_one_and_no_more(registry: &Registry) {
        assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
        let entry = registry.enter(R).expect("nobody is in flight");
        assert_eq!(registry.enter(R).unwrap_err().limit(), Some(1.0));
        entry.end(Outcome::Success);
        assert!(call(registry, R, Outcome::Success));
        let stats = registry.stats(R).unwrap();
        assert_eq!((stats.in_flight(), stats.totals().passed()), (0, stats.totals().completed()));
    }

    /// G06.
    #[test]
    fn calls_end_where_they_began_however_often_the_isolation_is_changed() {
        let isolation = |n| RuleSet::new().named("flight", R, IsolationRule::new(n));
        let (registry, _) = registry_with(isolation(10));
        churn(&registry, |i| _ = registry.load(isolation(5 + i % 9)).unwrap());
        registry.load(isolation(1)).unwrap();
        has_room_for_one_and_no_more(&registry);
    }

    #[test]
    fn calls_end_where_they_began_when_their_isolation_goes_and_another_comes() {
        let rules = |i: u32| match i % 4 {
            0 => RuleSet::new(),
            1 => RuleSet::new().isolation(R, IsolationRule::new(9)),
            2 => RuleSet::new().isolation("*", IsolationRule::new(8)).flow(R, qps(MUCH)),
            _ => RuleSet::new().named("flight", R, IsolationRule::new(7)),
        };
        let (registry, _) = registry_with(rules(1));
        churn(&registry, |i| _ = registry.load(rules(i)).unwrap());
        registry.load(RuleSet::new().isolation(R, IsolationRule::new(1))).unwrap();
        has_room_for_one_and_no_more(&registry);
    }

    #[test]
    fn a_probe_that_is_dropped_after_a_reload_gives_its_slot_back() {
        let breaker = |threshold| {
            let rule = BreakerRule::error_count(threshold).with_min_calls(1).unwrap();
            RuleSet::new().named("trip", R, rule.open_for(ms(1_000)).unwrap())
        };
        let (registry, clock) = registry_with(breaker(0));
        assert!(call(&registry, R, Outcome::Exception));
        clock.set(at(1_000));
        for round in 1..=50 {
            let probe = registry.enter(R).expect("the slot of the round before is free");
            assert!(registry.enter(R).is_err());
            registry.load(breaker(round)).unwrap();
            assert!(registry.enter(R).is_err(), "the slot is still taken");
            drop(probe);
        }
        assert!(call(&registry, R, Outcome::Success));
        assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
    }

    #[test]
    fn no_probe_slot_is_lost_while_others_reload() {
        let rules = |i: u32| {
            let rule = BreakerRule::error_count(i % 3).with_min_calls(1).unwrap();
            let rules = RuleSet::new().named("trip", R, rule.open_for(ms(1_000)).unwrap());
            // What refuses after the breaker has given a slot.
            if i.is_multiple_of(2) {
                rules.isolation(R, IsolationRule::new(1))
            } else {
                rules.flow(R, qps(1.0))
            }
        };
        let (registry, clock) = registry_with(rules(0));
        for round in 1..=20 {
            registry.load(rules(0)).unwrap();
            clock.set(at(round * 10_000));
            assert!(call(&registry, R, Outcome::Exception));
            clock.advance(ms(1_000));
            // All ask for the one slot, at one moment of the clock, and nobody ends well.
            churn_cancelled(&registry, |i| _ = registry.load(rules(i)).unwrap());
            let breaker = || registry.stats(R).unwrap().breakers()[0].clone();
            assert_eq!((breaker().state(), breaker().stuck_probes()), (BreakerState::HalfOpen, 0), "{round}");
            registry.load(rules(0)).unwrap();
            assert!(call(&registry, R, Outcome::Success), "the slot is free in round {round}");
            assert_eq!(breaker().state(), BreakerState::Closed);
        }
    }

    fn churn_cancelled(registry: &Registry, change: impl Fn(u32)) {
        let (start, is_over) = (Barrier::new(3), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    while !is_over.load(Ordering::Acquire) {
                        drop(registry.enter(R));
                    }
                });
            }
            start.wait();
            (0..20).for_each(change);
            is_over.store(true, Ordering::Release);
        });
        drop(registry.enter(R));
    }
}

mod loaders {
    use super::*;

    #[test]
    fn sources_that_load_at_once_lose_nothing_and_each_change_is_a_version() {
        let (registry, _) = registry();
        let recorder = Recorder::default();
        registry.observe(recorder.clone());
        let sources = ["one", "two", "three"].map(|name| registry.source(name));
        let start = Barrier::new(3);
        let versions = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for source in &sources {
                scope.spawn(|| {
                    start.wait();
                    for i in 1..=60 {
                        let rules = RuleSet::new().flow(R, qps(f64::from(i))).flow("job.*", qps(MUCH));
                        let report = source.load(rules).unwrap();
                        assert!(versions.lock().unwrap().insert(report.version()), "a version of its own");
                    }
                });
            }
        });
        assert_eq!(versions.into_inner().unwrap(), (1..=180).collect());
        assert_eq!((registry.version(), recorder.take().len()), (180, 180));
        for source in &sources {
            assert_eq!(source.rules().of(R)[0].rule(), &Rule::from(qps(60.0)));
        }
        assert_eq!(registry.enter(R).unwrap().end(Outcome::Success), ());
        let at_work: Vec<_> =
            registry.stats(R).unwrap().rules().map(|(id, rule)| format!("{id}: {rule}")).collect();
        assert_eq!(at_work, ["three/flow/0: flow: 60 per 1s, exact"]);
        let audit: Vec<u64> = registry.audit().iter().map(RuleEvent::version).collect();
        assert_eq!(audit, (1..=180).collect::<Vec<_>>());
    }

    #[test]
    fn a_load_of_many_rules_gets_its_turn_beside_patches_without_end() {
        let (registry, _) = registry();
        registry.source("api").load(RuleSet::new().named("limit", R, qps(1.0))).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let api = registry.source("api");
                while !is_over.load(Ordering::Acquire) {
                    api.patch("limit", |rule| Ok(more(&rule).into())).unwrap();
                }
            });
            for version in 1..=5 {
                let names = (0..300).map(|i| format!("job.{i}"));
                let rules = names.fold(RuleSet::new(), |set, name| set.flow(name, qps(f64::from(version))));
                let report = registry.load(rules).unwrap();
                assert_eq!(report.added() + report.changed(), 300);
            }
            is_over.store(true, Ordering::Release);
        });
        assert_eq!(registry.loaded().len(), 300);
    }

    /// The same rule with one more per second.
    fn more(rule: &Rule) -> FlowRule {
        let limit = if let Rule::Flow(rule) = rule { rule.limit() } else { f64::NAN };
        qps(limit + 1.0)
    }

    #[test]
    fn no_patch_is_lost_whether_it_asks_for_a_version_or_not() {
        let (registry, _) = registry_with(RuleSet::new().named("limit", R, qps(1.0)));
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for careful in [false, true, false, true] {
                let (registry, start) = (&registry, &start);
                scope.spawn(move || {
                    let source = registry.source("loaded");
                    start.wait();
                    for _ in 0..50 {
                        loop {
                            let asked =
                                if careful { source.if_version(registry.version()) } else { source.clone() };
                            match asked.patch("limit", |rule| Ok(more(&rule).into())) {
                                Ok(_) => break,
                                Err(LoadError::Conflict { expected, found }) => {
                                    assert!(careful && expected < found);
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(registry.loaded().of(R)[0].rule(), &Rule::from(qps(201.0)));
        assert_eq!(registry.version(), 201);
    }

    #[test]
    fn a_rollback_that_races_loads_takes_a_whole_version_back() {
        let sets = refusing(R);
        let (registry, _) = registry_with(sets[0].clone());
        let by = none_passes_while(
            || registry.enter(R),
            || {
                let start = Barrier::new(2);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        start.wait();
                        for i in 1..=150 {
                            registry.load(sets[i % 2].clone()).unwrap();
                        }
                    });
                    start.wait();
                    for i in 0..150 {
                        let version = registry.version().saturating_sub(i % 7).max(1);
                        match registry.rollback(version) {
                            Ok(report) => assert!(report.version() >= version),
                            Err(error) => assert_eq!(error, LoadError::UnknownVersion(version)),
                        }
                    }
                });
            },
        );
        assert!(by.is_subset(&seen(["loaded/flight at Some(0.0)", "loaded/rate at Some(0.0)"])), "{by:?}");
        let at_work: Vec<Rule> = registry.stats(R).unwrap().rules().map(|(_, rule)| rule.clone()).collect();
        let loaded: Vec<Rule> = registry.loaded().iter().map(|named| named.rule().clone()).collect();
        assert_eq!(at_work, loaded);
        assert_eq!(registry.versions().last().map(RuleEvent::version), Some(registry.version()));
    }

    #[test]
    fn two_resources_that_watch_each_other_are_loaded_by_two_sources_at_once() {
        let (registry, clock) = registry();
        let watching = |resource: &str, other: &'static str| {
            RuleSet::new().flow(resource, qps(5.0).associated(other).unwrap())
        };
        let rules = [watching("one", "two"), watching("two", "one")];
        let start = Barrier::new(2);
        for round in 1..=20_u64 {
            thread::scope(|scope| {
                for (name, rules) in ["first", "second"].into_iter().zip(&rules) {
                    let (registry, start) = (&registry, &start);
                    scope.spawn(move || {
                        let source = registry.source(name);
                        start.wait();
                        for _ in 0..5 {
                            source.load(RuleSet::new()).unwrap();
                            source.load(rules.clone()).unwrap();
                        }
                    });
                }
            });
            clock.set(at(round * 10_000));
            assert_eq!(passes(&registry, "one", 5), 5, "two is at rest");
            assert_eq!(passes(&registry, "two", 1), 0, "one has reached what two bears");
            clock.set(at(round * 10_000 + 5_000));
            assert_eq!(passes(&registry, "two", 5), 5);
            assert_eq!(passes(&registry, "one", 1), 0);
        }
    }

    #[test]
    fn a_watch_that_is_taken_away_while_another_is_added_leaves_the_other() {
        let (registry, clock) = registry();
        let watching = |resource: &str| RuleSet::new().flow(resource, qps(3.0).associated("stock").unwrap());
        let (start, n_rounds) = (Barrier::new(2), 100_u64);
        for round in 1..=n_rounds {
            let (leaves, comes) = if round % 2 == 0 { ("one", "two") } else { ("two", "one") };
            thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    registry.source(leaves).load(RuleSet::new()).unwrap();
                });
                start.wait();
                registry.source(comes).load(watching(comes)).unwrap();
            });
            clock.set(at(round * 10_000));
            assert_eq!(passes(&registry, "stock", 3), 3);
            assert_eq!((passes(&registry, comes, 1), passes(&registry, leaves, 1)), (0, 1), "round {round}");
        }
    }
}

mod others {
    use super::*;

    /// Does `act` in another thread and waits for it: which it can do only if this one holds no lock.
    fn elsewhere(act: impl FnOnce() + Send + 'static) {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            act();
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(20)).expect("no lock is held");
    }

    /// Uses the registry from another thread whenever it is told something.
    #[derive(Clone, Default)]
    struct Meddler {
        registry: Arc<OnceLock<Registry>>,
        n_loads: Arc<AtomicU64>,
        n_rejects: Arc<AtomicU64>,
    }

    impl Meddler {
        fn meddle(&self) {
            let registry = self.registry.get().unwrap().clone();
            elsewhere(move || {
                registry.source("meddler").load(RuleSet::new().flow("*", qps(MUCH))).unwrap();
                registry.source("meddler").load(RuleSet::new()).unwrap();
                registry.rollback(registry.version()).unwrap();
                assert!(registry.enter(R).is_err());
                assert!(registry.resources().count() > 0 && !registry.audit().is_empty());
            });
        }
    }

    impl Observer for Meddler {
        fn on_load(&self, report: &LoadReport) {
            // Its own loads are told to it too.
            if report.changes().iter().all(|change| change.source() == "loaded") {
                self.n_loads.fetch_add(1, Ordering::Relaxed);
                self.meddle();
            }
        }

        fn on_reject(&self, _: &RuleEvent) {
            self.n_rejects.fetch_add(1, Ordering::Relaxed);
            self.meddle();
        }
    }

    #[test]
    fn observers_of_loads_are_told_with_no_lock_held() {
        let (registry, _) = registry_with(RuleSet::new().flow(R, qps(0.0)));
        let meddler = Meddler::default();
        assert!(meddler.registry.set(registry.clone()).is_ok());
        registry.observe(meddler.clone());
        registry.load(RuleSet::new().flow(R, qps(0.0)).isolation(R, IsolationRule::new(0))).unwrap();
        registry.source("loaded").patch(&format!("{R}/flow/0"), |_| Ok(qps(0.0).per(ms(1))?.into())).unwrap();
        registry.load(RuleSet::new().flow("", qps(0.0))).unwrap_err();
        let told = [&meddler.n_loads, &meddler.n_rejects].map(|n| n.load(Ordering::Relaxed));
        assert_eq!((told, registry.contained_panics()), ([2, 1], 0));
    }

    #[test]
    fn those_who_may_go_on_are_woken_with_no_lock_held() {
        struct Waking(Registry, AtomicBool);
        impl Wake for Waking {
            fn wake(self: Arc<Self>) {
                let waking = Arc::clone(&self);
                elsewhere(move || {
                    waking.0.source("meddler").load(RuleSet::new().flow("other", qps(1.0))).unwrap();
                    assert!(waking.0.stats(R).is_some());
                });
                self.1.store(true, Ordering::Release);
            }
        }

        let queueing = |n| RuleSet::new().isolation(R, IsolationRule::new(n).with_queue(ms(1_000)).unwrap());
        let (registry, _) = registry_with(queueing(1));
        let first = registry.enter(R).unwrap();
        let waking = Arc::new(Waking(registry.clone(), AtomicBool::new(false)));
        let waker = Arc::clone(&waking).into();
        let mut second = pin!(registry.enter_async(R));
        assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        registry.load(queueing(2)).unwrap();
        assert!(waking.1.load(Ordering::Acquire));
        let Poll::Ready(Ok(second)) = second.poll(&mut Context::from_waker(&waker)) else {
            panic!("there is room for two")
        };
        first.end(Outcome::Success);
        second.end(Outcome::Success);
        assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
    }

    #[test]
    fn a_panic_in_an_observer_or_a_patch_leaves_the_rules_whole() {
        struct Panics;
        impl Observer for Panics {
            fn on_load(&self, _: &LoadReport) {
                panic!("seen on load");
            }

            fn on_reject(&self, _: &RuleEvent) {
                panic!("seen on reject");
            }
        }

        let (registry, _) = registry_with(RuleSet::new().named("limit", R, qps(1.0)));
        registry.observe(Panics);
        let source = registry.source("loaded");
        registry.load(RuleSet::new().named("limit", R, qps(2.0))).unwrap();
        registry.load(RuleSet::new().flow("", qps(2.0))).unwrap_err();
        assert_eq!(registry.contained_panics(), 2);
        let patched = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            source.patch("limit", |_| panic!("in a patch"))
        }));
        assert!(patched.is_err());
        assert_eq!((registry.version(), registry.rejected_changes()), (2, 1));
        source.patch("limit", |_| Ok(qps(3.0).into())).unwrap();
        assert_eq!(passes(&registry, R, 9), 3);
        registry.rollback(1).unwrap();
        assert_eq!(registry.loaded(), RuleSet::new().named("limit", R, qps(1.0)));
    }
}
