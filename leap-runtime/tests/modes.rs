//! What rules in shadow say, and what rules keep when they change their mode: as one that was never touched.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;
#[path = "common/twins.rs"]
mod twins;

use std::time::Duration;

use common::waits::Call;
use common::{R, at, ms, passes, qps, registry};
use leap_runtime::{
    FlowRule, IsolationRule, ManualClock, Mode, Precision, Registry, RuleSet, SystemRule, Timestamp,
};
use proptest::prelude::*;
use twins::{Said, Shadow, Site, all_rules, config, offers};

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_rule_alone_in_shadow_says_of_every_call_what_it_would_have_said(offers in offers(80)) {
        for rule in all_rules() {
            let (mut enforced, mut shadow) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Shadow));
            for (i, offer) in offers.iter().enumerate() {
                let said = enforced.offer(offer);
                prop_assert_eq!(shadow.shadow_says(offer), Shadow::from(&said), "call {} by {}", i, rule);
            }
        }
    }

    #[test]
    fn a_rule_that_was_off_for_a_while_goes_on_as_one_that_was_not(offers in offers(80), at in 1..60_usize) {
        for rule in all_rules() {
            let (mut enforced, mut switched) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Enforce));
            for (i, offer) in offers.iter().enumerate() {
                if i == at {
                    switched.load(&rule, Mode::Off);
                    // Calls that run end meanwhile.
                    let pause = ms(90);
                    switched.wait(pause);
                    enforced.wait(pause);
                    switched.load(&rule, Mode::Enforce);
                }
                prop_assert_eq!(switched.offer(offer), enforced.offer(offer), "call {} by {}", i, rule);
            }
        }
    }

    #[test]
    fn a_rule_that_is_promoted_goes_on_from_what_it_said_in_shadow(offers in offers(80), at in 1..60_usize) {
        for rule in all_rules() {
            let (mut enforced, mut promoted) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Shadow));
            for (i, offer) in offers.iter().enumerate() {
                let said = enforced.offer(offer);
                if i == at {
                    promoted.load(&rule, Mode::Enforce);
                }
                if i < at {
                    prop_assert_eq!(promoted.offer(offer), Said::Passes);
                } else {
                    prop_assert_eq!(promoted.offer(offer), said, "call {} by {}", i, rule);
                }
            }
        }
    }

    #[test]
    fn a_rule_that_is_demoted_says_in_shadow_what_it_would_have_gone_on_to_say(
        offers in offers(80),
        at in 1..60_usize,
    ) {
        for rule in all_rules() {
            let (mut enforced, mut demoted) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Enforce));
            for (i, offer) in offers.iter().enumerate() {
                let said = enforced.offer(offer);
                if i == at {
                    demoted.load(&rule, Mode::Shadow);
                }
                if i < at {
                    prop_assert_eq!(demoted.offer(offer), said);
                } else {
                    prop_assert_eq!(demoted.shadow_says(offer), Shadow::from(&said), "call {} by {}", i, rule);
                }
            }
        }
    }

    #[test]
    fn verdicts_are_the_same_with_any_rules_in_shadow_and_without(
        offers in offers(80),
        enforced in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        shadows in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let all = all_rules();
        let rules = || {
            let named = |set: RuleSet, (i, at): (usize, &prop::sample::Index)| {
                set.named(format!("rule-{i}"), R, at.get(&all).clone())
            };
            enforced.iter().enumerate().fold(RuleSet::new(), named)
        };
        let in_shadow = |set: RuleSet, (i, at): (usize, &prop::sample::Index)| {
            set.named(format!("shadow-{i}"), R, at.get(&all).clone().with_mode(Mode::Shadow))
        };
        let mut plain = Site::new(rules());
        let mut shadowed = Site::new(shadows.iter().enumerate().fold(rules(), in_shadow));
        for offer in &offers {
            prop_assert_eq!(shadowed.offer(offer), plain.offer(offer));
        }
        let traffic = |site: &Site| {
            let stats = site.registry().stats(R).unwrap();
            (*stats.totals(), stats.in_flight(), stats.waiting())
        };
        prop_assert_eq!(traffic(&shadowed), traffic(&plain));
    }
}

/// Limits of two per second in every precision, and when a call of 0 ms leaves their windows.
fn twos() -> [(FlowRule, u64); 3] {
    let in_ring = |precision| qps(2.0).with_precision(precision).unwrap().with_buckets(10).unwrap();
    [(qps(2.0), 1_000), (in_ring(Precision::Strict), 1_100), (in_ring(Precision::Sentinel), 1_000)]
}

fn load(registry: &Registry, rules: &[(&str, &FlowRule, Mode)]) {
    let rules = rules.iter().fold(RuleSet::new(), |rules, (id, rule, mode)| {
        rules.named(*id, R, (*rule).clone().with_mode(*mode))
    });
    registry.load(rules).unwrap();
}

/// How many of three calls pass just before a moment, and of five at it.
fn around(registry: &Registry, clock: &ManualClock, moment: u64) -> (usize, usize) {
    clock.set(Timestamp::from_nanos(moment * 1_000_000 - 1));
    let before = passes(registry, R, 3);
    clock.set(at(moment));
    (before, passes(registry, R, 5))
}

#[test]
fn calls_that_pass_while_a_limit_is_off_count_when_it_is_on_again() {
    // Alone, and beside a limit that decides meanwhile.
    for beside in [None, Some(qps(50.0)), Some(qps(2_000.0))] {
        for (rule, leaves) in twos() {
            let (registry, clock) = registry();
            let in_mode = |mode| {
                let wide = beside.as_ref().map(|rule| ("wide", rule, Mode::Enforce));
                load(&registry, &[("two", &rule, mode)].into_iter().chain(wide).collect::<Vec<_>>());
            };
            in_mode(Mode::Enforce);
            assert_eq!(passes(&registry, R, 1), 1);
            clock.set(at(100));
            in_mode(Mode::Off);
            clock.set(at(200));
            assert_eq!(passes(&registry, R, 3), 3);
            clock.set(at(300));
            in_mode(Mode::Enforce);
            assert_eq!(passes(&registry, R, 1), 0, "{rule}");
            // Those of 200 ms were one too many already, and leave together.
            assert_eq!(around(&registry, &clock, 200 + leaves), (0, 2), "{rule}");
        }
    }
}

#[test]
fn a_limit_that_was_always_off_knows_what_passed_when_it_is_switched_on() {
    for (rule, leaves) in twos() {
        let (registry, clock) = registry();
        load(&registry, &[("two", &rule, Mode::Off)]);
        clock.set(at(500));
        assert_eq!(passes(&registry, R, 2), 2);
        assert_eq!(registry.enter(R).unwrap().charge(4), 4);
        clock.set(at(700));
        load(&registry, &[("two", &rule, Mode::Enforce)]);
        assert_eq!(around(&registry, &clock, 500 + leaves), (0, 2), "{rule}");
    }
}

#[test]
fn switching_a_limit_off_and_on_gives_no_second_burst_and_no_needless_refusal() {
    for (rule, leaves) in twos() {
        let (registry, clock) = registry();
        load(&registry, &[("two", &rule, Mode::Enforce)]);
        assert_eq!(passes(&registry, R, 1), 1);
        clock.set(at(300));
        load(&registry, &[("two", &rule, Mode::Off)]);
        load(&registry, &[("two", &rule, Mode::Enforce)]);
        assert_eq!(passes(&registry, R, 3), 1, "{rule}");
        assert_eq!(around(&registry, &clock, leaves), (0, 1), "{rule}");
        assert_eq!(around(&registry, &clock, 300 + leaves), (0, 1), "{rule}");
    }
}

#[test]
fn a_promoted_limit_counts_what_it_let_through_in_shadow_and_when() {
    for (rule, leaves) in twos() {
        let (registry, clock) = registry();
        load(&registry, &[("two", &rule, Mode::Shadow)]);
        for moment in [0, 100, 200, 300] {
            clock.set(at(moment));
            assert_eq!(passes(&registry, R, 1), 1);
        }
        clock.set(at(350));
        load(&registry, &[("two", &rule, Mode::Enforce)]);
        // In shadow it had let those of 0 and 100 ms through.
        assert_eq!(around(&registry, &clock, leaves), (0, 1), "{rule}");
        assert_eq!(around(&registry, &clock, 100 + leaves), (0, 1), "{rule}");
    }
}

#[test]
fn a_limit_that_is_promoted_under_full_load_blocks_nothing_and_has_no_pause() {
    let (registry, clock) = registry();
    load(&registry, &[("hundred", &qps(100.0), Mode::Shadow)]);
    for call in 0..500 {
        clock.set(at(call * 10));
        if call == 250 {
            load(&registry, &[("hundred", &qps(100.0), Mode::Enforce)]);
        }
        assert_eq!(passes(&registry, R, 1), 1, "call {call}");
        if call >= 250 {
            assert_eq!(passes(&registry, R, 1), 0, "one beside call {call}");
        }
    }
}

#[test]
fn a_promoted_limit_beside_exact_ones_goes_by_what_they_know_and_further_back_by_its_own() {
    // As far back as the log of the one that stands reaches, there are the calls that really passed.
    let (registry, clock) = registry();
    let (two, three) = (qps(2.0), qps(3.0));
    load(&registry, &[("three", &three, Mode::Enforce), ("two", &two, Mode::Shadow)]);
    for moment in [0, 100, 200] {
        clock.set(at(moment));
        assert_eq!(passes(&registry, R, 1), 1);
    }
    clock.set(at(300));
    load(&registry, &[("three", &three, Mode::Enforce), ("two", &two, Mode::Enforce)]);
    // Not at 1 s, when one leaves that it let through in shadow.
    assert_eq!(around(&registry, &clock, 1_100), (0, 1));

    let (registry, clock) = common::registry();
    let (one, five) = (qps(1.0), qps(5.0).per(Duration::from_secs(10)).unwrap());
    load(&registry, &[("one", &one, Mode::Enforce), ("five", &five, Mode::Shadow)]);
    for second in 0..5 {
        clock.set(at(second * 1_000));
        assert_eq!(passes(&registry, R, 1), 1);
    }
    load(&registry, &[("one", &one, Mode::Enforce), ("five", &five, Mode::Enforce)]);
    assert_eq!(around(&registry, &clock, 10_000), (0, 1));
}

#[test]
fn several_exact_limits_are_promoted_at_once_and_each_finds_what_it_had() {
    let (registry, clock) = registry();
    let (two, five) = (qps(2.0), qps(5.0).per(Duration::from_secs(10)).unwrap());
    let both = |mode| load(&registry, &[("two", &two, mode), ("five", &five, mode)]);
    both(Mode::Shadow);
    for second in 0..5 {
        clock.set(at(second * 1_000));
        assert_eq!(passes(&registry, R, 1), 1);
    }
    both(Mode::Enforce);
    // Those that left the shorter window long ago stand in the longer one.
    assert_eq!(around(&registry, &clock, 10_000), (0, 1));
    assert_eq!(around(&registry, &clock, 11_000), (0, 1));
}

#[test]
fn a_promoted_isolation_knows_the_calls_that_run() {
    let isolation = |mode| RuleSet::new().isolation(R, IsolationRule::new(2).with_mode(mode));
    let (registry, _) = registry();
    registry.load(isolation(Mode::Shadow)).unwrap();
    let running = [registry.enter(R).unwrap(), registry.enter(R).unwrap()];
    let beyond = registry.enter(R).unwrap();
    registry.load(isolation(Mode::Enforce)).unwrap();
    assert_eq!(passes(&registry, R, 1), 0);
    drop(beyond);
    assert_eq!(passes(&registry, R, 1), 0, "it was none of the two");
    drop(running);
    assert_eq!((passes(&registry, R, 1), registry.stats(R).unwrap().in_flight()), (1, 0));
}

#[test]
fn a_demoted_isolation_lets_those_go_on_who_queue_and_counts_on_beside_another_one_anew() {
    let queue = IsolationRule::new(1).with_queue(ms(500)).unwrap();
    let (registry, _) = registry();
    let loaded = |mode| RuleSet::new().isolation(R, queue.with_mode(mode));
    registry.load(loaded(Mode::Enforce)).unwrap();
    let running = registry.enter(R).unwrap();
    let mut waiting = Call::waiting(registry.enter_with(R));
    registry.load(loaded(Mode::Shadow)).unwrap();
    let second = waiting.entry();
    let told = || {
        let stats = registry.stats(R).unwrap();
        (stats.shadows()[0].asked(), stats.shadows()[0].would_wait())
    };
    assert_eq!(told(), (1, 1), "the one that runs is in its count");
    drop((running, second));
    assert_eq!((passes(&registry, R, 1), told()), (1, (2, 1)));
    let beside =
        |mode| RuleSet::new().named("a", R, queue.with_mode(mode)).named("b", R, IsolationRule::new(3));
    registry.load(beside(Mode::Enforce)).unwrap();
    let running = registry.enter(R).unwrap();
    registry.load(beside(Mode::Shadow)).unwrap();
    assert_eq!(passes(&registry, R, 1), 1);
    assert_eq!(told(), (1, 0), "the count of those before is that of the rule that still decides");
    drop(running);
    assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
}

#[test]
fn system_rules_keep_what_they_know_over_their_modes() {
    let loaded = |rule: &SystemRule, mode| RuleSet::new().system(rule.clone().with_mode(mode));
    let inbound = |registry: &Registry| registry.enter_with(R).inbound().enter();
    let n_passing = |registry: &Registry| (0..3).filter(|_| inbound(registry).is_ok()).count();
    let two = SystemRule::qps(2.0).unwrap();
    for before in [Mode::Off, Mode::Shadow] {
        let (registry, clock) = registry();
        registry.load(loaded(&two, before)).unwrap();
        clock.set(at(100));
        assert_eq!(n_passing(&registry), 3);
        clock.set(at(200));
        registry.load(loaded(&two, Mode::Enforce)).unwrap();
        clock.set(Timestamp::from_nanos(1_099_999_999));
        assert_eq!(n_passing(&registry), 0, "{before:?}");
        clock.set(at(1_100));
        assert_eq!(n_passing(&registry), 2, "{before:?}");
        clock.set(at(1_200));
        registry.load(loaded(&two, Mode::Shadow)).unwrap();
        assert_eq!(n_passing(&registry), 3);
        assert_eq!(registry.system().shadows()[0].would_block(), 3, "what it let through before counts");
        clock.set(at(2_100));
        assert_eq!(n_passing(&registry), 3);
        assert_eq!(registry.system().shadows()[0].would_block(), 4);
    }
    let one = SystemRule::concurrency(1);
    let (registry, _) = registry();
    registry.load(loaded(&one, Mode::Shadow)).unwrap();
    let running = inbound(&registry).unwrap();
    registry.load(loaded(&one, Mode::Enforce)).unwrap();
    assert_eq!(n_passing(&registry), 0);
    drop(running);
    assert_eq!((n_passing(&registry), registry.system().inbound_in_flight()), (3, 0));
}

#[test]
fn a_limit_that_a_promoted_shadow_took_the_place_of_finds_what_passed_when_it_is_back() {
    for steps in 0..3 {
        let (registry, clock) = registry();
        clock.set(at(5_000));
        // The pattern's limit stands where the resource has none of its own at work.
        registry
            .load(RuleSet::new().flow("orders.*", qps(8.0)).named("x", R, qps(1.0).with_mode(Mode::Shadow)))
            .unwrap();
        let before = registry.version();
        let loaded = registry.source("loaded");
        assert_eq!(passes(&registry, R, 20), 8);
        match steps {
            0 => {
                loaded.promote("x").unwrap();
                assert_eq!(passes(&registry, R, 20), 0);
                registry.rollback(before).unwrap();
            }
            1 => {
                loaded.promote("x").unwrap();
                loaded.remove("x").unwrap();
            }
            _ => {
                loaded.set_mode("x", Mode::Off).unwrap();
                loaded.remove("x").unwrap();
            }
        }
        assert_eq!(around(&registry, &clock, 6_000), (0, 5), "{steps}");
        assert_eq!(passes(&registry, R, 20), 3);
    }
}

#[test]
fn what_a_shadow_would_have_let_through_does_not_stay_with_a_limit_that_comes_back() {
    let (registry, clock) = registry();
    let both = |mode| {
        let set = RuleSet::new().flow("orders.*", qps(8.0));
        registry.load(set.named("wide", R, qps(100.0).with_mode(mode))).unwrap();
    };
    both(Mode::Shadow);
    assert_eq!(passes(&registry, R, 8), 8);
    clock.set(at(900));
    assert_eq!(passes(&registry, R, 92), 0);
    both(Mode::Enforce);
    assert_eq!(passes(&registry, R, 1), 0, "those of 900 ms count for the promoted one");
    both(Mode::Shadow);
    clock.set(at(1_000));
    assert_eq!(passes(&registry, R, 20), 8, "and not for the other");
}

#[test]
fn a_promoted_limit_goes_by_its_own_where_the_log_of_the_other_began_later() {
    let (registry, clock) = registry();
    let alone = |mode| RuleSet::new().named("x", R, qps(5.0).with_mode(mode));
    registry.load(alone(Mode::Shadow)).unwrap();
    assert_eq!(passes(&registry, R, 5), 5);
    clock.set(at(500));
    registry.load(alone(Mode::Shadow).flow("orders.*", qps(8.0))).unwrap();
    registry.load(alone(Mode::Enforce).flow("orders.*", qps(8.0))).unwrap();
    assert_eq!(around(&registry, &clock, 1_000), (0, 5));
}

fn isolations(a: (u32, Mode), b: (u32, Mode)) -> RuleSet {
    let rule = |(limit, mode)| IsolationRule::new(limit).with_mode(mode);
    RuleSet::new().named("a", R, rule(a)).named("b", R, rule(b))
}

/// Of how many calls the shadows would have blocked some.
fn would_block(registry: &Registry) -> Vec<(u64, u64)> {
    let stats = registry.stats(R).unwrap();
    stats.shadows().iter().map(|shadow| (shadow.asked(), shadow.would_block())).collect()
}

#[test]
fn isolations_that_are_demoted_together_count_each_for_itself() {
    let (registry, _) = registry();
    registry.load(isolations((4, Mode::Enforce), (4, Mode::Enforce))).unwrap();
    let before = registry.enter(R).unwrap();
    registry.load(isolations((4, Mode::Shadow), (4, Mode::Shadow))).unwrap();
    let held: Vec<_> = (0..4).map(|_| registry.enter(R).unwrap()).collect();
    // One goes on with the count there was, and so has one call more in flight.
    assert_eq!(would_block(&registry), [(4, 1), (4, 0)]);
    drop((before, held));
    let held: Vec<_> = (0..4).map(|_| registry.enter(R).unwrap()).collect();
    assert_eq!(would_block(&registry), [(8, 1), (8, 0)], "nothing is left behind");
    drop(held);
    // And the one that is enforced again is not counted in by the other.
    registry.source("loaded").promote("a").unwrap();
    let held: Vec<_> = (0..9).filter_map(|_| registry.enter(R).ok()).collect();
    assert_eq!(held.len(), 4);
}

#[test]
fn the_count_of_an_enforced_isolation_goes_to_its_shadow_before_that_of_one_that_was_off() {
    let (registry, _) = registry();
    registry.load(isolations((2, Mode::Off), (2, Mode::Enforce))).unwrap();
    let held = [registry.enter(R).unwrap(), registry.enter(R).unwrap()];
    registry.load(isolations((2, Mode::Shadow), (2, Mode::Shadow))).unwrap();
    drop(registry.enter(R).unwrap());
    assert_eq!(would_block(&registry), [(1, 0), (1, 1)]);
    drop(held);
}

#[test]
fn an_isolation_that_is_promoted_beside_one_that_is_off_knows_the_calls_that_run() {
    for enforced in [Mode::Off, Mode::Enforce] {
        let (registry, _) = registry();
        registry.load(isolations((9, Mode::Enforce), (2, Mode::Shadow))).unwrap();
        registry.load(isolations((9, Mode::Off), (2, Mode::Shadow))).unwrap();
        let held = [registry.enter(R).unwrap(), registry.enter(R).unwrap()];
        registry.load(isolations((9, enforced), (2, Mode::Enforce))).unwrap();
        assert!(registry.enter(R).is_err());
        drop(held);
        let held: Vec<_> = (0..9).filter_map(|_| registry.enter(R).ok()).collect();
        assert_eq!(held.len(), 2);
    }
}

#[test]
fn a_limit_that_was_none_for_a_while_finds_what_passed_meanwhile() {
    let n = |registry: &Registry, n: usize| {
        (0..n).filter(|_| registry.enter_with(R).origin("o").enter().is_ok()).count()
    };
    for of in [
        |rule: FlowRule| rule,
        |rule: FlowRule| rule.for_origin("o").unwrap(),
        |rule: FlowRule| rule.for_each_origin().unwrap(),
    ] {
        for precision in [Precision::Exact, Precision::Strict, Precision::Sentinel] {
            let rule = |limit| {
                let precision =
                    if limit > 1e6 && precision == Precision::Exact { Precision::Strict } else { precision };
                of(qps(limit)).with_precision(precision).unwrap()
            };
            let (registry, clock) = registry();
            clock.set(at(5_000));
            let load = |limit| registry.load(RuleSet::new().named("x", R, rule(limit))).unwrap();
            load(10.0);
            assert_eq!(n(&registry, 20), 10);
            load(3e9);
            load(10.0);
            assert_eq!(n(&registry, 20), 0, "{}", rule(10.0));
            load(3e9);
            clock.set(at(9_000));
            assert_eq!(n(&registry, 7), 7);
            load(4e9);
            load(10.0);
            assert_eq!(n(&registry, 20), 3, "{}", rule(10.0));
            clock.set(at(19_000));
            assert_eq!(n(&registry, 20), 10);
        }
    }
}
