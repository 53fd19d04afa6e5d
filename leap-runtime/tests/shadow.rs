//! Rules in shadow: what they are asked about, what they would have done, and that nothing comes of it.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::waits::Call;
use common::{R, Recorder, at, call, call_for, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    AuthorityRule, Behavior, BreakerRule, BreakerState, Check, Clock, FlowRule, HotRule, IsolationRule,
    ManualClock, Mode, Outcome, Precision, Registry, Rule, RuleSet, SystemProbe, SystemRule, SystemSample,
    Verdict,
};

/// The figures of the shadow in that place: asked, would block, would wait, would pass though blocked.
fn figures(registry: &Registry, i: usize) -> [u64; 4] {
    let stats = registry.stats(R).unwrap();
    let shadow = &stats.shadows()[i];
    [shadow.asked(), shadow.would_block(), shadow.would_wait(), shadow.would_pass_blocked()]
}

/// A set with this rule in shadow.
fn shadow(rule: impl Into<Rule>) -> RuleSet {
    with_shadow(RuleSet::new(), rule)
}

fn with_shadow(rules: RuleSet, rule: impl Into<Rule>) -> RuleSet {
    rules.rule(R, rule.into().with_mode(Mode::Shadow))
}

/// A call that ends well at once, of this origin and with this value of `user`.
fn call_by(registry: &Registry, origin: &str, user: u32) -> bool {
    let asked = registry.enter_with(R).origin(origin).key("user", user);
    asked.enter().map(|entry| entry.end(Outcome::Success)).is_ok()
}

#[test]
fn a_shadow_limit_tells_its_share_alone_and_beside_an_enforced_limit() {
    for (precision, limit, expected) in [
        (Precision::Exact, 50.0, 50.0),
        (Precision::Exact, 95.0, 5.0),
        (Precision::Strict, 50.0, 50.5),
        (Precision::Strict, 95.0, 5.9),
    ] {
        for enforced in [None, Some(30.0), Some(70.0), Some(200.0)] {
            let rules = enforced.map_or_else(RuleSet::new, |limit| RuleSet::new().flow(R, qps(limit)));
            let candidate = qps(limit).with_precision(precision).unwrap();
            let (registry, clock) = registry_with(with_shadow(rules, candidate));
            // Evenly, for 100 s.
            for _ in 0..10_000 {
                call(&registry, R, Outcome::Success);
                clock.advance(ms(10));
            }
            let stats = registry.stats(R).unwrap();
            let shadow = &stats.shadows()[0];
            let share = shadow.share() * 100.0;
            assert_eq!(shadow.asked(), 10_000);
            assert!(
                (share - expected).abs() < 0.2,
                "{share} of {limit} in {precision:?} beside {enforced:?}, and not {expected}"
            );
        }
    }
}

#[test]
fn a_shadow_is_asked_about_what_passed_and_what_its_own_kind_blocked_and_nothing_else() {
    let enforced = RuleSet::new()
        .flow(R, qps(2.0))
        .authority(R, AuthorityRule::deny(["stranger"]).unwrap())
        .hot(R, HotRule::qps("user", 3.0).unwrap());
    let rules = with_shadow(enforced, qps(3.0));
    let rules = with_shadow(rules, AuthorityRule::allow(["friend"]).unwrap());
    let (registry, _) = registry_with(with_shadow(rules, HotRule::qps("user", 1.0).unwrap()));
    assert!(call_by(&registry, "friend", 1));
    assert_eq!([0, 1, 2].map(|i| figures(&registry, i)), [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]);
    assert!(!call_by(&registry, "stranger", 2), "by the list, which only the other list is asked about");
    assert_eq!([0, 1, 2].map(|i| figures(&registry, i)), [[1, 0, 0, 0], [2, 1, 0, 0], [1, 0, 0, 0]]);
    assert!(call_by(&registry, "other", 1));
    assert_eq!([0, 1, 2].map(|i| figures(&registry, i)), [[2, 0, 0, 0], [3, 2, 0, 0], [2, 1, 0, 0]]);
    assert!(!call_by(&registry, "friend", 3) && !call_by(&registry, "friend", 3), "by the limit");
    assert_eq!([0, 1, 2].map(|i| figures(&registry, i)), [[4, 1, 0, 1], [3, 2, 0, 0], [2, 1, 0, 0]]);
}

#[test]
fn a_check_of_the_applications_own_and_a_question_are_no_call_for_a_shadow() {
    struct Closed;
    impl Check for Closed {
        fn check(&self, _: &leap_runtime::Call<'_>) -> Verdict {
            Verdict::block("closed")
        }
    }
    let (registry, _) = registry_with(shadow(qps(1.0)));
    let check = registry.add_check(R, Closed);
    assert_eq!(passes(&registry, R, 3), 0);
    assert!(registry.remove_check(check));
    assert!(registry.would_pass(R, 5).is_ok());
    assert_eq!(figures(&registry, 0), [0, 0, 0, 0]);
}

#[test]
fn a_throttle_in_shadow_takes_its_turns_and_has_nobody_wait() {
    let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: ms(150) }).unwrap();
    let (registry, clock) = registry_with(shadow(throttle));
    // Starts at 0, 100 and, were it not too late, 200 ms.
    assert_eq!(passes(&registry, R, 3), 3);
    assert_eq!(figures(&registry, 0), [3, 1, 1, 0]);
    assert_eq!((registry.stats(R).unwrap().waiting(), clock.now()), (0, at(0)));
    clock.advance(ms(199));
    assert_eq!((passes(&registry, R, 1), figures(&registry, 0)), (1, [4, 1, 2, 0]), "from 200 ms on");
    clock.advance(ms(101));
    assert_eq!((passes(&registry, R, 1), figures(&registry, 0)), (1, [5, 1, 2, 0]), "at 300 ms it is free");
}

#[test]
fn a_warm_up_in_shadow_is_as_cold_as_it_would_be() {
    let warm_up = Behavior::WarmUp { period: Duration::from_secs(10), cold_factor: 3.0 };
    let rule = FlowRule::new(30.0, warm_up).unwrap();
    let (registry, _) = registry_with(shadow(rule));
    assert_eq!(passes(&registry, R, 30), 30);
    assert_eq!(figures(&registry, 0), [30, 20, 0, 0]);
}

#[test]
fn rules_for_some_calls_are_asked_about_those() {
    let rules = shadow(qps(1.0).for_origin("web").unwrap());
    let rules = with_shadow(rules, qps(1.0).for_each_origin().unwrap());
    let rules = with_shadow(
        rules.flow(R, qps(0.0).for_origin("banned").unwrap()),
        qps(1.0).for_other_origins().unwrap(),
    );
    let (registry, _) = registry_with(rules);
    for origin in ["web", "web", "app", "app", "batch"] {
        assert!(call_by(&registry, origin, 1));
    }
    // The one for others counts each of them for itself, without those that have rules of their own.
    assert_eq!([0, 1, 2].map(|i| figures(&registry, i)), [[5, 1, 0, 0], [5, 2, 0, 0], [5, 1, 0, 0]]);
    assert!(!call_by(&registry, "banned", 1) && !call_by(&registry, "banned", 1));
    assert_eq!([0, 1, 2].map(|i| figures(&registry, i)), [[7, 1, 0, 2], [7, 3, 0, 1], [7, 1, 0, 2]]);
}

#[test]
fn a_rule_that_watches_another_resource_does_so_in_shadow() {
    let (registry, clock) = registry_with(shadow(qps(2.0).associated("orders.write").unwrap()));
    assert_eq!((passes(&registry, R, 3), figures(&registry, 0)), (3, [3, 0, 0, 0]));
    assert_eq!(passes(&registry, "orders.write", 2), 2);
    assert_eq!((passes(&registry, R, 3), figures(&registry, 0)), (3, [6, 3, 0, 0]));
    clock.advance(ms(1_010));
    assert_eq!((passes(&registry, R, 1), figures(&registry, 0)), (1, [7, 3, 0, 0]));
}

#[test]
fn an_isolation_in_shadow_counts_the_calls_that_run_however_they_end() {
    let (registry, clock) = registry_with(shadow(IsolationRule::new(1)));
    let would_block = || {
        drop(registry.enter(R).unwrap());
        let [.., blocked, _, _] = figures(&registry, 0);
        blocked
    };
    let running = registry.enter(R).unwrap();
    assert_eq!(
        (would_block(), would_block()),
        (1, 2),
        "one that would have been blocked is not in flight for it"
    );
    running.end(Outcome::Success);
    assert_eq!(would_block(), 2);

    let panics = catch_unwind(AssertUnwindSafe(|| {
        registry.enter(R).unwrap().run(|| -> Result<(), ()> { panic!("it does") })
    }));
    assert!(panics.is_err());
    assert_eq!(would_block(), 2);

    let mut entry = Call::new(registry.enter_with(R)).entry();
    entry.charge(7);
    assert_eq!(would_block(), 3);
    drop(entry);
    assert_eq!(would_block(), 3);

    // A call that waits for its start has passed.
    let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: ms(500) }).unwrap();
    registry.load(shadow(IsolationRule::new(1)).flow(R, throttle)).unwrap();
    clock.advance(ms(500));
    assert_eq!(would_block(), 3);
    let [asked, ..] = figures(&registry, 0);
    let waiting = Call::waiting(registry.enter_with(R));
    assert_eq!(figures(&registry, 0)[0], asked + 1);
    drop(waiting);
    clock.advance(ms(500));
    assert_eq!(would_block(), 3, "nothing is left of a wait that was cancelled");
}

#[test]
fn what_is_blocked_is_not_in_flight_in_shadow() {
    let (registry, _) =
        registry_with(with_shadow(RuleSet::new().isolation(R, IsolationRule::new(1)), IsolationRule::new(2)));
    let running = registry.enter(R).unwrap();
    assert_eq!(passes(&registry, R, 4), 0);
    assert_eq!(figures(&registry, 0), [5, 0, 0, 4]);
    drop(running);
}

#[test]
fn a_queue_is_a_wait_in_shadow_and_one_that_waits_in_vain_is_asked_about_at_the_end() {
    let queue = IsolationRule::new(1).with_queue(ms(100)).unwrap();
    let (registry, clock) = registry_with(with_shadow(RuleSet::new().isolation(R, queue), queue));
    let running = registry.enter(R).unwrap();
    let mut waiting = Call::waiting(registry.enter_with(R));
    let cancelled = Call::waiting(registry.enter_with(R));
    drop(cancelled);
    assert_eq!(figures(&registry, 0), [1, 0, 0, 0], "what becomes of them is not known yet");
    clock.advance(ms(100));
    let _ = waiting.blocked();
    assert_eq!(figures(&registry, 0), [2, 0, 1, 0]);
    drop(running);
    assert_eq!((passes(&registry, R, 1), figures(&registry, 0)), (1, [3, 0, 1, 0]));
}

#[test]
fn a_breaker_in_shadow_opens_probes_and_closes_and_nobody_is_told() {
    let slow = BreakerRule::slow_ratio(ms(50), 0.5).unwrap();
    for (rule, bad) in [
        (slow, (ms(60), Outcome::Success)),
        (BreakerRule::error_ratio(0.5).unwrap(), (ms(0), Outcome::Exception)),
        (BreakerRule::error_count(1), (ms(0), Outcome::Exception)),
    ] {
        let rule = rule.with_min_calls(2).unwrap().open_for(ms(1_000)).unwrap();
        let clock = ManualClock::new();
        let recorder = Recorder::default();
        let registry = Registry::builder().clock(clock.clone()).observer(recorder.clone()).build();
        registry.load(shadow(rule)).unwrap();
        recorder.take();
        let offer = |(rt, outcome)| assert!(call_for(&registry, &clock, R, rt, outcome));
        let good = (ms(0), Outcome::Success);
        offer(bad);
        offer(bad);
        offer(good);
        assert_eq!(figures(&registry, 0), [3, 1, 0, 0], "it is open: {rule}");
        clock.advance(ms(999));
        offer(good);
        assert_eq!(figures(&registry, 0), [4, 2, 0, 0]);
        clock.advance(ms(1));
        // A probe, and beside it another call.
        let probe = registry.enter(R).unwrap();
        offer(good);
        assert_eq!(figures(&registry, 0), [6, 3, 0, 0], "half open");
        clock.advance(bad.0);
        probe.end(bad.1);
        offer(good);
        assert_eq!(figures(&registry, 0), [7, 4, 0, 0], "open again");
        clock.advance(ms(1_000));
        offer(good);
        offer(good);
        assert_eq!(figures(&registry, 0), [9, 4, 0, 0], "closed by a good probe");
        assert_eq!(recorder.take(), Vec::<String>::new());
        assert!(registry.stats(R).unwrap().breakers().is_empty());
        assert!(registry.breakers(R).is_empty());
    }
}

#[test]
fn a_breaker_in_shadow_hears_nothing_of_calls_that_another_breaker_blocked() {
    let touchy = BreakerRule::error_count(1).with_min_calls(1).unwrap().open_for(ms(1_000)).unwrap();
    let patient = touchy.with_min_calls(3).unwrap();
    let (registry, clock) = registry_with(with_shadow(RuleSet::new().breaker(R, touchy), patient));
    for _ in 0..2 {
        assert!(call(&registry, R, Outcome::Exception));
    }
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Open);
    assert_eq!((passes(&registry, R, 5), figures(&registry, 0)), (0, [7, 0, 0, 5]));
    clock.advance(ms(1_000));
    assert!(call(&registry, R, Outcome::Exception), "a probe");
    assert_eq!((passes(&registry, R, 1), figures(&registry, 0)), (0, [9, 0, 0, 6]));
}

#[test]
fn hot_values_in_shadow_have_their_limits_each() {
    let rules = shadow(HotRule::qps("user", 1.0).unwrap());
    let rules = with_shadow(rules, HotRule::throttle("user", 1.0, ms(1_000)).unwrap());
    let (registry, _) = registry_with(with_shadow(rules, HotRule::concurrency("user", 1).unwrap()));
    let enter = |user| registry.enter_with(R).key("user", user).enter().unwrap();
    let running = enter(1_u32);
    drop(enter(1));
    drop(enter(1));
    drop(enter(2));
    let all = || [0, 1, 2].map(|i| figures(&registry, i));
    assert_eq!(all(), [[4, 2, 0, 0], [4, 1, 1, 0], [4, 2, 0, 0]]);
    drop(running);
    drop(enter(1));
    assert_eq!(all(), [[5, 3, 0, 0], [5, 2, 1, 0], [5, 2, 0, 0]], "it is no longer in flight");
    // A call without the parameter is none of theirs, and would pass.
    drop(registry.enter(R).unwrap());
    assert_eq!(all(), [[6, 3, 0, 0], [6, 2, 1, 0], [6, 2, 0, 0]]);
}

#[test]
fn what_a_call_charges_counts_in_shadow_where_it_had_passed() {
    let (registry, clock) = registry_with(shadow(qps(10.0)));
    let mut entry = registry.enter(R).unwrap();
    assert_eq!(entry.charge(8), 8);
    drop(entry);
    assert_eq!((passes(&registry, R, 2), figures(&registry, 0)), (2, [3, 1, 0, 0]));
    clock.advance(ms(1_000));
    assert_eq!((passes(&registry, R, 10), figures(&registry, 0)), (10, [13, 1, 0, 0]));
    let mut blocked = registry.enter(R).unwrap();
    blocked.charge(1_000);
    drop(blocked);
    clock.advance(ms(1_000));
    assert_eq!(
        (passes(&registry, R, 1), figures(&registry, 0)),
        (1, [15, 2, 0, 0]),
        "that of a call it blocked does not"
    );
}

#[test]
fn priority_plays_no_part_in_shadow() {
    let (registry, _) = registry_with(shadow(qps(1.0)));
    for _ in 0..3 {
        drop(registry.enter_with(R).priority().enter().unwrap());
    }
    assert_eq!(figures(&registry, 0), [3, 2, 0, 0]);
}

#[test]
fn figures_go_on_while_a_rule_stays_as_it_is_and_begin_anew_when_it_changes() {
    let (registry, clock) = registry_with(shadow(qps(2.0)));
    assert_eq!((passes(&registry, R, 3), figures(&registry, 0)), (3, [3, 1, 0, 0]));
    registry.load(shadow(qps(2.0)).isolation(R, IsolationRule::new(9))).unwrap();
    assert_eq!((passes(&registry, R, 1), figures(&registry, 0)), (1, [4, 2, 0, 0]));
    registry.load(shadow(qps(3.0))).unwrap();
    assert_eq!(figures(&registry, 0), [0, 0, 0, 0]);
    assert_eq!(
        (passes(&registry, R, 2), figures(&registry, 0)),
        (2, [2, 1, 0, 0]),
        "two of three were taken"
    );
    clock.advance(ms(1_000));
    assert_eq!((passes(&registry, R, 3), figures(&registry, 0)), (3, [5, 1, 0, 0]));
}

#[test]
fn a_shadow_that_stays_as_it_is_goes_on_when_an_enforced_version_comes() {
    let small = qps(2.0).with_mode(Mode::Shadow);
    let (registry, _) = registry_with(RuleSet::new().named("x", R, small.clone()));
    assert_eq!((passes(&registry, R, 20), figures(&registry, 0)), (20, [20, 18, 0, 0]));
    let both = RuleSet::new().named("x", R, qps(50.0)).named("x", R, small);
    assert_eq!(registry.load(both).unwrap().kept(), 1);
    // The enforced one starts with an empty window.
    assert_eq!((passes(&registry, R, 100), figures(&registry, 0)), (50, [120, 118, 0, 0]));
}

#[test]
fn a_shadow_that_is_promoted_while_another_is_tried_takes_its_state_along() {
    let (registry, _) = registry_with(RuleSet::new().named("x", R, qps(2.0).with_mode(Mode::Shadow)));
    assert_eq!(passes(&registry, R, 20), 20);
    let next = qps(3.0).with_mode(Mode::Shadow);
    registry.load(RuleSet::new().named("x", R, qps(2.0)).named("x", R, next)).unwrap();
    assert_eq!((passes(&registry, R, 9), figures(&registry, 0)), (0, [9, 6, 0, 3]));
}

#[test]
fn a_system_rule_in_shadow_goes_on_whatever_else_is_loaded_beside_it() {
    let rule = || SystemRule::qps(2.0).unwrap().with_mode(Mode::Shadow);
    for other in [SystemRule::concurrency(50), SystemRule::qps(1_000.0).unwrap()] {
        let (registry, _) = registry_with(RuleSet::new().system(rule()));
        let figures = || {
            assert_eq!((0..20).filter(|_| registry.enter_with(R).inbound().enter().is_ok()).count(), 20);
            let system = registry.system();
            let shadows = system.shadows().iter();
            shadows.map(|shadow| (shadow.asked(), shadow.would_block())).collect::<Vec<_>>()
        };
        assert_eq!(figures(), [(20, 18)]);
        let report = registry.load(RuleSet::new().system(rule()).system(other.clone())).unwrap();
        assert_eq!((report.kept(), figures()), (1, vec![(40, 38)]), "{other}");
    }
}

#[test]
fn what_calls_of_before_move_is_told_of_the_breaker_that_decides_and_of_no_shadow() {
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(1).unwrap().open_for(ms(1_000)).unwrap();
    for (before, after) in [(Mode::Shadow, Mode::Enforce), (Mode::Enforce, Mode::Shadow)] {
        let recorder = Recorder::default();
        let registry = Registry::builder().clock(ManualClock::new()).observer(recorder.clone()).build();
        let load = |mode| registry.load(RuleSet::new().named("x", R, rule.with_mode(mode))).unwrap();
        load(before);
        let entry = registry.enter(R).unwrap();
        load(after);
        recorder.take();
        entry.end(Outcome::Exception);
        let told = recorder.take();
        assert_eq!(registry.enter(R).is_err(), after == Mode::Enforce);
        if after == Mode::Enforce {
            assert!(matches!(&told[..], [line] if line.contains("closed -> open")), "{told:?}");
        } else {
            assert_eq!((told, figures(&registry, 0)), (vec![], [1, 1, 0, 0]));
        }
    }
}

#[test]
fn two_versions_of_a_rule_stand_side_by_side_under_one_id() {
    let both = |enforced: f64, candidate: f64| {
        let rules = RuleSet::new().named("create", R, qps(enforced));
        rules.named("create", R, qps(candidate).with_mode(Mode::Shadow))
    };
    let (registry, clock) = registry_with(both(2.0, 3.0));
    assert_eq!((passes(&registry, R, 5), figures(&registry, 0)), (2, [5, 2, 0, 1]));
    // Each role goes on with what it had.
    registry.load(both(3.0, 2.0)).unwrap();
    assert_eq!((passes(&registry, R, 5), figures(&registry, 0)), (1, [5, 5, 0, 0]));
    clock.advance(ms(1_000));
    assert_eq!((passes(&registry, R, 5), figures(&registry, 0)), (3, [10, 8, 0, 0]));
    let text = registry.stats(R).unwrap().to_string();
    let line =
        "in shadow           flow: 2 per 1s, exact: would block 8 of 10 calls (80.0%)  [loaded/create]";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("rule                flow: 2 per 1s, exact (shadow)  [loaded/create]"), "{text}");
}

/// A machine with this load, in hundredths.
#[derive(Clone, Default)]
struct Machine(Arc<AtomicU32>);

impl SystemProbe for Machine {
    fn sample(&self) -> SystemSample {
        SystemSample::default().with_load(f64::from(self.0.load(Ordering::Relaxed)) / 100.0)
    }
}

#[test]
fn system_rules_in_shadow_are_asked_about_inbound_calls_that_passed_or_that_their_kind_blocked() {
    let (registry, clock) = registry();
    let in_shadow = |rule: SystemRule| rule.with_mode(Mode::Shadow);
    let rules = RuleSet::new().system(SystemRule::qps(3.0).unwrap()).flow(R, qps(4.0));
    let rules = rules.system(in_shadow(SystemRule::qps(2.0).unwrap()));
    let rules = rules.system(in_shadow(SystemRule::concurrency(1)));
    registry.load(rules).unwrap();
    let told = || -> Vec<[u64; 3]> {
        let stats = registry.system();
        let told = stats
            .shadows()
            .iter()
            .map(|shadow| [shadow.asked(), shadow.would_block(), shadow.would_pass_blocked()]);
        told.collect()
    };
    drop(registry.enter(R).unwrap());
    assert_eq!(told(), [[0, 0, 0], [0, 0, 0]], "an outbound call");
    let enter = || registry.enter_with(R).inbound().enter();
    let running = enter().unwrap();
    drop(enter().unwrap());
    drop(enter().unwrap());
    assert_eq!(told(), [[3, 1, 0], [3, 2, 0]]);
    drop(running);
    assert!(enter().is_err());
    assert_eq!(told(), [[4, 2, 0], [4, 2, 1]]);
    clock.advance(ms(1_000));
    assert_eq!(passes(&registry, R, 4), 4, "outbound, and the limit of the resource is reached");
    assert!(enter().is_err());
    assert_eq!(told(), [[4, 2, 0], [4, 2, 1]], "another kind blocked it");
}

#[test]
fn a_limit_on_load_in_shadow_goes_by_the_machine() {
    let (machine, clock) = (Machine::default(), ManualClock::new());
    let registry = Registry::builder().clock(clock.clone()).system_probe(machine.clone()).build();
    registry.load(RuleSet::new().system(SystemRule::load(2.0).unwrap().with_mode(Mode::Shadow))).unwrap();
    let enter = || registry.enter_with(R).inbound().enter().unwrap();
    let told = || [registry.system().shadows()[0].asked(), registry.system().shadows()[0].would_block()];
    let running: Vec<_> = (0..11).map(|_| enter()).collect();
    assert_eq!(told(), [11, 0]);
    machine.0.store(300, Ordering::Relaxed);
    clock.advance(ms(1_000));
    drop(enter());
    assert_eq!(told(), [12, 1], "more are in flight than get through");
    drop(running);
    drop(enter());
    assert_eq!(told(), [13, 1]);
    assert_eq!(registry.system().inbound_in_flight(), 0);
}

#[test]
fn a_shadow_changes_its_state_and_no_statistic() {
    let (registry, _) = registry_with(shadow(qps(0.0)));
    assert_eq!(passes(&registry, R, 3), 3);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().passed(), stats.totals().blocked(), stats.in_flight()), (3, 0, 0));
    assert_eq!(figures(&registry, 0), [3, 3, 0, 0]);
}
