//! Rules from outside: which of them hold, what a change keeps, and how it is taken back.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the tests themselves")]

mod common;

use std::sync::{Arc, Barrier};

use common::{R, Recorder, at, call, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    AuthorityRule, Behavior, Blocked, BreakerRule, BreakerState, Cause, Dimension, FlowRule, HotRule,
    IsolationRule, LoadError, Mode, Outcome, Precision, Registry, Rule, RuleSet, RuleState, SystemRule,
    guarded,
};

/// The rules at work on a resource, by their ids.
fn at_work(registry: &Registry, resource: &str) -> Vec<String> {
    registry.stats(resource).unwrap().rules().map(|(id, _)| id.to_string()).collect()
}

fn throttle(limit: f64) -> FlowRule {
    FlowRule::new(limit, Behavior::Throttle { max_wait: ms(0) }).unwrap()
}

/// A breaker that trips on the first exception, and is open for ten seconds.
fn breaker() -> BreakerRule {
    BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(10_000)).unwrap()
}

mod reload {
    use super::*;

    /// B12, I06.
    #[test]
    fn a_window_goes_on_over_reloads_and_a_raised_limit_gives_what_it_adds() {
        let recorder = Recorder::default();
        let (registry, clock) = registry_with(RuleSet::new().flow(R, qps(10.0)));
        registry.observe(recorder.clone());
        assert_eq!(passes(&registry, R, 20), 10);
        clock.set(at(200));
        recorder.take();
        for _ in 0..100 {
            let report = registry.load(RuleSet::new().flow(R, qps(10.0))).unwrap();
            assert_eq!((report.version(), report.kept(), report.changes().len()), (1, 1, 0));
        }
        assert!(recorder.take().is_empty(), "an unchanged set is no event");
        assert_eq!(passes(&registry, R, 10), 0);
        registry.load(RuleSet::new().flow(R, qps(12.0))).unwrap();
        assert_eq!(passes(&registry, R, 10), 2);
    }

    /// B12.
    #[test]
    fn a_throttle_keeps_its_line_over_a_reload() {
        let (registry, clock) = registry_with(RuleSet::new().flow(R, throttle(1.0)));
        assert!(call(&registry, R, Outcome::Success));
        clock.set(at(100));
        registry.load(RuleSet::new().flow(R, throttle(1.0)).isolation(R, IsolationRule::new(9))).unwrap();
        clock.set(at(999));
        assert!(!call(&registry, R, Outcome::Success));
        clock.set(at(1_000));
        assert!(call(&registry, R, Outcome::Success));
    }

    /// B18.
    #[test]
    fn a_load_replaces_the_one_before_and_of_two_rules_the_stricter_decides_and_is_named() {
        let (registry, clock) = registry_with(RuleSet::new().flow("r1", qps(1.0)));
        registry.load(RuleSet::new().flow("r2", qps(1.0))).unwrap();
        assert_eq!(passes(&registry, "r1", 100), 100);
        clock.set(at(1_000));
        registry.load(RuleSet::new().flow("r1", qps(10.0)).flow("r1", qps(3.0))).unwrap();
        assert_eq!(passes(&registry, "r1", 3), 3);
        let blocked = registry.enter("r1").unwrap_err();
        assert_eq!((blocked.rule().to_string().as_str(), blocked.limit()), ("loaded/flow/1", Some(3.0)));
    }

    /// C13.
    #[test]
    fn an_open_breaker_stays_open_as_long_as_it_was_to_whatever_else_is_loaded() {
        let (registry, clock) = registry_with(RuleSet::new().breaker(R, breaker()));
        assert!(call(&registry, R, Outcome::Exception));
        clock.set(at(1_000));
        registry.load(RuleSet::new().breaker(R, breaker()).flow(R, qps(100.0))).unwrap();
        clock.set(at(1_001));
        assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Breaker);
        clock.set(at(9_999));
        assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Breaker);
        clock.set(at(10_000));
        assert!(call(&registry, R, Outcome::Success));
        assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
    }

    /// C13: what a changed threshold does to what the breaker has counted is said.
    #[test]
    fn a_report_says_of_a_changed_rule_whether_it_goes_on_or_starts_anew() {
        let strict = |n_buckets| {
            qps(100.0).with_precision(Precision::Strict).unwrap().with_buckets(n_buckets).unwrap()
        };
        let last = |calls| BreakerRule::error_ratio(0.5).unwrap().with_window_calls(calls).unwrap();
        let second = || qps(5.0).per(ms(2_000)).unwrap();
        let cases: [(Rule, Rule, RuleState); 12] = [
            (qps(1.0).into(), qps(2.0).into(), RuleState::Kept),
            (qps(1.0).into(), second().into(), RuleState::Kept),
            (strict(100).into(), strict(10).into(), RuleState::New),
            (qps(1.0).into(), strict(10).into(), RuleState::Kept),
            (second().into(), strict(10).into(), RuleState::New),
            (qps(1.0).into(), throttle(1.0).into(), RuleState::New),
            (qps(1.0).into(), qps(1.0).for_origin("web").unwrap().into(), RuleState::New),
            (breaker().into(), BreakerRule::error_count(7).into(), RuleState::Kept),
            (last(10).into(), last(20).into(), RuleState::New),
            (
                HotRule::qps("user", 1.0).unwrap().into(),
                HotRule::qps("user", 2.0).unwrap().into(),
                RuleState::Kept,
            ),
            (
                HotRule::qps("user", 1.0).unwrap().into(),
                HotRule::qps("tenant", 1.0).unwrap().into(),
                RuleState::New,
            ),
            (IsolationRule::new(1).into(), IsolationRule::new(2).into(), RuleState::Kept),
        ];
        for (from, to, state) in cases {
            let (registry, _) = registry_with(RuleSet::new().rule(R, from.clone()));
            let report = registry.load(RuleSet::new().rule(R, to.clone())).unwrap();
            assert_eq!(report.changed(), 1, "{from} -> {to}");
            assert_eq!(report.changes()[0].state(), Some(state), "{from} -> {to}");
        }
    }

    /// C18.
    #[test]
    fn one_breaker_lives_for_a_rule_however_often_it_changes_and_late_observers_hear_of_it() {
        let (registry, _) = registry_with(RuleSet::new().breaker(R, breaker()));
        let recorder = Recorder::default();
        registry.observe(recorder.clone());
        for n in 0..100 {
            registry.load(RuleSet::new().breaker(R, breaker().with_min_calls(n % 2 + 1).unwrap())).unwrap();
        }
        recorder.take();
        assert_eq!((registry.breakers(R).len(), registry.stats(R).unwrap().breakers().len()), (1, 1));
        call(&registry, R, Outcome::Exception);
        call(&registry, R, Outcome::Exception);
        assert_eq!(recorder.take(), ["loaded/error_count/0 closed -> open"]);
    }

    /// D05.
    #[test]
    fn a_rule_may_be_changed_and_removed_before_the_first_call() {
        let hot = |limit| RuleSet::new().hot(R, HotRule::qps("user", limit).unwrap());
        let (registry, _) = registry_with(hot(1.0));
        registry.load(hot(2.0)).unwrap();
        registry.load(RuleSet::new()).unwrap();
        assert!(registry.enter_with(R).key("user", "a").enter().is_ok());
        registry.load(hot(2.0)).unwrap();
        let n_passed = (0..9).filter(|_| registry.enter_with(R).key("user", "a").enter().is_ok()).count();
        assert_eq!(n_passed, 2);
    }

    /// D06.
    #[test]
    fn a_hot_rule_that_comes_back_after_an_hour_gives_one_limit_and_no_burst() {
        let hot = RuleSet::new().hot(R, HotRule::qps("k", 10.0).unwrap());
        let (registry, clock) = registry_with(hot.clone());
        let n_passed = |n| (0..n).filter(|_| registry.enter_with(R).key("k", "k").enter().is_ok()).count();
        assert_eq!(n_passed(10), 10);
        clock.set(at(1_000));
        registry.load(RuleSet::new()).unwrap();
        clock.set(at(3_600_000));
        registry.load(hot).unwrap();
        assert_eq!(n_passed(100), 10);
    }

    /// I05.
    #[test]
    fn two_rules_that_say_the_same_hold_as_one_and_are_told_of() {
        let (registry, clock) = registry();
        let report = registry.load(RuleSet::new().flow(R, qps(10.0)).flow(R, qps(10.0))).unwrap();
        assert_eq!(
            report.notes(),
            [
                "`orders.create`: orders.create/flow/0 and orders.create/flow/1 say the same: flow: 10 per 1s, exact"
            ]
        );
        assert_eq!(passes(&registry, R, 30), 10);
        clock.set(at(1_000));
        let report = registry.load(RuleSet::new().named("a", R, qps(10.0)).named("b", R, qps(10.0))).unwrap();
        assert_eq!(report.notes(), ["`orders.create`: a and b say the same: flow: 10 per 1s, exact"]);
        assert_eq!(passes(&registry, R, 30), 10);
    }

    /// I05.
    #[test]
    fn an_id_that_is_given_twice_rejects_the_set() {
        let (registry, _) = registry_with(RuleSet::new().flow(R, qps(1.0)));
        let twice = RuleSet::new().named("a", R, qps(10.0)).named("a", "other", IsolationRule::new(1));
        let LoadError::Rejected(rejections) = registry.load(twice).unwrap_err() else { panic!() };
        assert_eq!(rejections.len(), 1);
        assert_eq!(
            (rejections[0].index(), rejections[0].id(), rejections[0].resource(), rejections[0].field()),
            (Some(1), Some("a"), Some("other"), Some("id"))
        );
        assert_eq!(passes(&registry, R, 9), 1, "the good rules stay");
        assert_eq!(registry.rejected_changes(), 1);
    }

    #[test]
    fn all_that_is_wrong_with_a_set_is_said_together() {
        let (registry, _) = registry();
        let long = "x".repeat(1_025);
        let rules = RuleSet::new()
            .flow("", qps(1.0))
            .named("", R, qps(1.0))
            .named("a@shadow", R, qps(1.0))
            .rule(R, SystemRule::concurrency(1))
            .named("b", R, qps(1.0))
            .named("b", R, IsolationRule::new(1).with_mode(Mode::Shadow))
            .named(long.as_str(), long.as_str(), qps(1.0));
        let LoadError::Rejected(rejections) = registry.load(rules).unwrap_err() else { panic!() };
        let said: Vec<_> = rejections
            .iter()
            .map(|rejection| (rejection.index().unwrap(), rejection.field().unwrap(), rejection.reason()))
            .collect();
        assert_eq!(
            said,
            [
                (0, "resource", "a name must not be empty"),
                (1, "id", "an id must have 1 to 1024 bytes, and not 0"),
                (2, "id", "`@shadow` at the end of an id says which version of a rule is meant"),
                (3, "resource", "a rule of the system is for all inbound calls, and for no resource"),
                (5, "id", "a rule and its version in shadow are of one kind and for one resource"),
                (6, "resource", "a name of 1025 bytes is too long: at most 1024"),
                (6, "id", "an id must have 1 to 1024 bytes, and not 1025"),
            ]
        );
    }

    /// H04.
    #[test]
    fn of_rules_for_one_figure_of_the_system_the_lowest_holds_and_all_are_listed() {
        let rules = [
            SystemRule::cpu(0.9).unwrap(),
            SystemRule::cpu(0.7).unwrap(),
            SystemRule::qps(100.0).unwrap(),
            SystemRule::concurrency(50),
        ];
        let (registry, _) = registry_with(rules.iter().cloned().fold(RuleSet::new(), RuleSet::system));
        let stats = registry.system();
        let limits: Vec<_> =
            stats.dimensions().iter().map(|figure| (figure.dimension(), figure.limit())).collect();
        assert_eq!(limits, [(Dimension::Qps, 100.0), (Dimension::Concurrency, 50.0), (Dimension::Cpu, 0.7)]);
        let listed: Vec<_> = registry.loaded().of_system().iter().map(|named| named.rule().clone()).collect();
        assert_eq!(listed, rules.map(Rule::from));
    }
}

mod strength {
    use super::*;

    #[derive(Debug)]
    struct Busy;

    impl From<Blocked> for Busy {
        fn from(_: Blocked) -> Self {
            Self
        }
    }

    #[guarded("sources.create", qps = 100)]
    fn create() -> Result<(), Busy> {
        Ok(())
    }

    /// E18.
    #[test]
    fn a_rule_from_outside_is_not_undone_by_the_next_call_and_taking_it_away_brings_the_attributes_back() {
        let (registry, clock) = registry();
        let n_passed = |n| registry.scope(|| (0..n).filter(|_| create().is_ok()).count());
        assert_eq!(n_passed(1_000), 100);
        clock.set(at(1_000));
        registry.load(RuleSet::new().flow("sources.create", qps(1.0))).unwrap();
        assert_eq!(n_passed(10), 1);
        assert_eq!(at_work(&registry, "sources.create"), ["loaded/flow/0"]);
        clock.set(at(2_000));
        registry.load(RuleSet::new()).unwrap();
        assert_eq!(n_passed(1_000), 100);
        assert!(at_work(&registry, "sources.create")[0].ends_with("create/flow/0"));
    }

    #[test]
    fn of_several_sources_the_one_that_was_asked_for_last_is_the_strongest_kind_by_kind() {
        let (registry, _) = registry();
        let [file, api, cluster] = ["limits.toml", "api", "cluster"].map(|name| registry.source(name));
        cluster.load(RuleSet::new().flow(R, qps(3.0))).unwrap();
        file.load(RuleSet::new().flow(R, qps(1.0)).isolation(R, IsolationRule::new(9)).breaker(R, breaker()))
            .unwrap();
        api.load(RuleSet::new().flow(R, qps(2.0)).breaker(R, BreakerRule::error_ratio(0.5).unwrap()))
            .unwrap();
        assert_eq!(registry.sources(), ["limits.toml", "api", "cluster"]);
        assert_eq!(
            at_work(&registry, R),
            ["limits.toml/isolation/0", "limits.toml/error_count/0", "api/error_ratio/0", "cluster/flow/0"]
        );
        assert_eq!(passes(&registry, R, 9), 3);
        cluster.load(RuleSet::new()).unwrap();
        assert_eq!(
            at_work(&registry, R),
            ["limits.toml/isolation/0", "limits.toml/error_count/0", "api/flow/0", "api/error_ratio/0"]
        );
        api.load(RuleSet::new()).unwrap();
        assert_eq!(
            at_work(&registry, R),
            ["limits.toml/flow/0", "limits.toml/isolation/0", "limits.toml/error_count/0"]
        );
        assert_eq!(api.rules().len() + cluster.rules().len(), 0);
        assert_eq!(file.rules().len(), 3);
    }

    #[test]
    fn a_rule_that_is_off_replaces_weaker_ones_and_one_in_shadow_does_not() {
        let (registry, _) = registry();
        let [file, api] = ["limits.toml", "api"].map(|name| registry.source(name));
        file.load(RuleSet::new().flow(R, qps(0.0))).unwrap();
        api.load(RuleSet::new().flow(R, qps(1.0).with_mode(Mode::Shadow))).unwrap();
        assert_eq!(passes(&registry, R, 9), 0);
        api.load(RuleSet::new().flow(R, qps(1.0).with_mode(Mode::Off))).unwrap();
        assert_eq!(passes(&registry, R, 9), 9);
    }

    #[test]
    fn of_the_rules_of_the_system_the_strongest_source_holds_figure_by_figure() {
        let (registry, _) = registry();
        let [file, api] = ["limits.toml", "api"].map(|name| registry.source(name));
        let limits = || -> Vec<_> {
            registry.system().dimensions().iter().map(|figure| (figure.dimension(), figure.limit())).collect()
        };
        file.load(RuleSet::new().system(SystemRule::qps(100.0).unwrap()).system(SystemRule::concurrency(5)))
            .unwrap();
        api.load(RuleSet::new().system(SystemRule::concurrency(50))).unwrap();
        assert_eq!(limits(), [(Dimension::Qps, 100.0), (Dimension::Concurrency, 50.0)]);
        api.load(RuleSet::new()).unwrap();
        assert_eq!(limits(), [(Dimension::Qps, 100.0), (Dimension::Concurrency, 5.0)]);
    }
}

mod patterns {
    use super::*;

    #[test]
    fn the_most_specific_rules_of_a_kind_hold_and_each_resource_counts_on_its_own() {
        let (registry, _) = registry_with(
            RuleSet::new()
                .flow("*", qps(4.0))
                .isolation("*", IsolationRule::new(9))
                .flow("orders.*", qps(3.0))
                .flow("orders.c*", qps(2.0))
                .flow("orders.create", qps(1.0)),
        );
        let passed = ["orders.create", "orders.cancel", "orders.close", "orders.list", "stock.read"]
            .map(|name| passes(&registry, name, 9));
        assert_eq!(passed, [1, 2, 2, 3, 4]);
        assert_eq!(at_work(&registry, "orders.create"), ["loaded/flow/0", "loaded/*/isolation/0"]);
        assert_eq!(at_work(&registry, "orders.list"), ["loaded/orders.*/flow/0", "loaded/*/isolation/0"]);
    }

    #[test]
    fn a_pattern_reaches_resources_that_are_there_and_those_that_come() {
        let (registry, clock) = registry();
        assert_eq!(passes(&registry, "orders.list", 9), 9);
        registry.load(RuleSet::new().flow("orders.*", qps(2.0))).unwrap();
        clock.set(at(1_000));
        assert_eq!((passes(&registry, "orders.list", 9), passes(&registry, "orders.create", 9)), (2, 2));
        assert!(registry.would_pass("orders.list", 1).is_err());
        assert!(
            registry.would_pass("orders.new", 2).is_ok() && registry.would_pass("orders.new", 3).is_err()
        );
        registry.load(RuleSet::new()).unwrap();
        assert_eq!((passes(&registry, "orders.list", 9), passes(&registry, "orders.new", 9)), (9, 9));
    }

    #[test]
    fn a_star_in_a_name_is_written_with_a_backslash() {
        let (registry, _) = registry_with(RuleSet::new().flow(r"a\*b", qps(1.0)).flow("c*", qps(2.0)));
        assert_eq!(["a*b", "a-b", "c*", "cd"].map(|name| passes(&registry, name, 9)), [1, 9, 2, 2]);
        assert_eq!(at_work(&registry, "a*b"), ["loaded/flow/0"]);
    }

    #[test]
    fn a_rule_in_shadow_is_there_where_it_would_hold_if_it_were_enforced() {
        let shadow = |limit| qps(limit).with_mode(Mode::Shadow);
        let (registry, _) = registry_with(
            RuleSet::new().flow("orders.*", shadow(1.0)).flow("orders.create", qps(5.0)).flow("*", qps(7.0)),
        );
        for name in ["orders.create", "orders.list"] {
            registry.enter(name).unwrap().end(Outcome::Success);
        }
        assert_eq!(at_work(&registry, "orders.create"), ["loaded/flow/0"]);
        assert_eq!(at_work(&registry, "orders.list"), ["loaded/orders.*/flow/0", "loaded/*/flow/0"]);
    }

    #[test]
    fn a_rule_that_watches_another_resource_counts_from_its_load_on() {
        let watch = qps(2.0).associated("writes").unwrap();
        let (registry, _) = registry_with(RuleSet::new().flow("reads", watch));
        assert_eq!(passes(&registry, "writes", 5), 5);
        assert_eq!(passes(&registry, "reads", 5), 0);
    }
}

mod changes {
    use super::*;

    fn two() -> RuleSet {
        RuleSet::new()
            .named("create", R, qps(10.0))
            .flow("stock.read", qps(5.0))
            .isolation(R, IsolationRule::new(3))
    }

    #[test]
    fn one_rule_is_patched_removed_or_put_into_another_mode_and_the_others_stay() {
        let (registry, clock) = registry_with(two());
        let source = registry.source("loaded");
        assert_eq!(passes(&registry, R, 20), 10);
        let report = source.patch("create", |_| Ok(qps(12.0).into())).unwrap();
        assert_eq!((report.version(), report.changed(), report.kept()), (2, 1, 2));
        assert_eq!(
            report.changes()[0].to_string(),
            "changed create: flow: 10 per 1s, exact -> flow: 12 per 1s, exact"
        );
        assert_eq!(passes(&registry, R, 20), 2);

        let report = source.set_mode("stock.read/flow/0", Mode::Off).unwrap();
        assert_eq!(
            report.changes()[0].to_string(),
            "changed stock.read/flow/0: flow: 5 per 1s, exact -> flow: 5 per 1s, exact (off)"
        );
        assert_eq!(passes(&registry, "stock.read", 9), 9);

        clock.set(at(1_000));
        assert_eq!(source.remove("create").unwrap().removed(), 1);
        assert_eq!(passes(&registry, R, 100), 100);
        assert_eq!(source.rules().len(), 2);
        assert_eq!(source.remove("create").unwrap_err(), LoadError::UnknownRule("create".into()));
        assert_eq!(
            source.patch("nobody/flow/7", Ok).unwrap_err().to_string(),
            "there is no rule `nobody/flow/7`"
        );
    }

    #[test]
    fn a_patch_that_makes_no_rule_changes_nothing() {
        let (registry, _) = registry_with(two());
        let source = registry.source("loaded");
        let error =
            source.patch("create", |_| Ok(FlowRule::new(f64::NAN, Behavior::Reject)?.into())).unwrap_err();
        let LoadError::Rejected(rejections) = error else { panic!("{error}") };
        assert_eq!((rejections[0].id(), rejections[0].resource()), (Some("create"), Some(R)));
        let error = source.patch("create", |_| Ok(IsolationRule::new(1).into())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the rules are not loaded: rule 0 `create` of `orders.create`: a patch cannot make a rule of kind isolation \
             of one of kind flow"
        );
        assert_eq!((registry.version(), source.rules()), (1, two()));
    }

    #[test]
    fn the_rules_of_one_resource_are_loaded_and_all_others_stay() {
        let (registry, _) = registry_with(two());
        let source = registry.source("loaded");
        let report = source.load_resource(R, &RuleSet::new().flow(R, qps(1.0))).unwrap();
        assert_eq!((report.added(), report.changed(), report.removed(), report.kept()), (1, 0, 2, 1));
        assert_eq!((passes(&registry, R, 9), passes(&registry, "stock.read", 9)), (1, 5));
        let error = source.load_resource(R, &RuleSet::new().flow("stock.read", qps(1.0))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the rules are not loaded: rule 0 of `stock.read`: `resource`: the rules are loaded for `orders.create` only"
        );
        source.load_resource(R, &RuleSet::new()).unwrap();
        assert_eq!(source.rules(), RuleSet::new().flow("stock.read", qps(5.0)));
    }

    #[test]
    fn a_version_in_shadow_changes_places_with_the_one_that_decides() {
        let candidate = qps(20.0).with_mode(Mode::Shadow);
        let (registry, _) = registry_with(two().named("create", R, candidate));
        let source = registry.source("loaded");
        let limits = || -> Vec<_> {
            let rules = source.rules();
            rules.of(R).iter().map(|named| (named.to_string(), named.rule().to_string())).collect()
        };
        let listed = |decides: u32, shadow: u32| {
            [
                ("create", format!("flow: {decides} per 1s, exact")),
                ("orders.create/isolation/0", "isolation: at most 3 in flight".to_owned()),
                ("create@shadow", format!("flow: {shadow} per 1s, exact")),
            ]
            .map(|(name, rule)| (name.to_owned(), rule))
        };
        assert_eq!(limits(), listed(10, 20));
        assert_eq!(passes(&registry, R, 30), 10);
        assert_eq!(source.promote("create").unwrap().changed(), 2);
        assert_eq!(limits(), listed(20, 10));
        assert_eq!(passes(&registry, R, 30), 10, "what it adds, and no more");
        source.demote("create").unwrap();
        assert_eq!(limits(), listed(10, 20));
        source.remove("create@shadow").unwrap();
        let report = source.demote("create").unwrap();
        assert_eq!((report.changed(), report.added(), report.removed()), (1, 0, 0));
        assert_eq!(passes(&registry, R, 99), 99);
        assert_eq!(source.demote("create").unwrap_err(), LoadError::UnknownRule("create".into()));
        source.promote("create").unwrap();
        assert_eq!(source.promote("create").unwrap_err(), LoadError::UnknownRule("create@shadow".into()));
    }

    #[test]
    fn a_version_goes_into_a_mode_in_which_another_is_only_by_an_exchange() {
        for ids in [true, false] {
            let add = |rules: RuleSet, rule: FlowRule| {
                if ids { rules.named("a", R, rule) } else { rules.flow(R, rule) }
            };
            let rules = add(add(RuleSet::new(), qps(1.0)), qps(2.0).with_mode(Mode::Shadow));
            let (registry, _) = registry_with(rules.clone());
            let source = registry.source("loaded");
            let names =
                if ids { ["a", "a@shadow"] } else { ["orders.create/flow/0", "orders.create/flow/0@shadow"] };
            for (name, mode) in names.into_iter().zip([Mode::Shadow, Mode::Enforce]) {
                let LoadError::Rejected(rejections) = source.set_mode(name, mode).unwrap_err() else {
                    panic!()
                };
                assert_eq!(rejections[0].field(), Some("mode"));
            }
            assert_eq!(source.rules(), rules);
            source.set_mode(names[0], Mode::Off).unwrap();
        }
    }

    #[test]
    fn a_rule_is_added_beside_all_others() {
        let (registry, _) = registry_with(two());
        let source = registry.source("loaded").note("trial");
        let report = source.add("create", R, qps(20.0).with_mode(Mode::Shadow)).unwrap();
        assert_eq!((report.added(), report.kept()), (1, 3));
        assert!(source.add("create", R, qps(30.0)).is_err());
        assert_eq!(
            registry.audit()[1].to_string(),
            "version 2: addition of `create` by loaded: 1 added, 0 changed, 0 removed (trial)"
        );
        source.if_version(1).rollback(1).unwrap_err();
        source.if_version(2).rollback(1).unwrap();
        assert_eq!(registry.audit()[4].source(), Some("loaded"));
        assert_eq!(source.rules(), two());
    }

    #[test]
    fn an_id_that_is_the_place_of_another_rule_is_refused() {
        let (registry, _) = registry();
        let rules = RuleSet::new().flow("a", qps(1.0)).named("a/flow/0", "b", qps(2.0));
        let LoadError::Rejected(rejections) = registry.load(rules).unwrap_err() else { panic!() };
        assert_eq!((rejections[0].index(), rejections[0].field()), (Some(1), Some("id")));
        registry.load(RuleSet::new().named("a/flow/0", "b", qps(2.0))).unwrap();
    }

    #[test]
    fn who_expects_another_version_changes_nothing_and_of_many_exactly_one_is_in_time() {
        let (registry, _) = registry_with(two());
        let barrier = Barrier::new(8);
        let n_done = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    let source = registry.source("loaded").if_version(1);
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        source.patch("create", |_| Ok(qps(20.0 + f64::from(i)).into()))
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread.join().unwrap() {
                    Ok(report) => usize::from(report.version() == 2),
                    Err(error) => {
                        assert_eq!(error, LoadError::Conflict { expected: 1, found: 2 });
                        0
                    }
                })
                .sum::<usize>()
        });
        assert_eq!((n_done, registry.version(), registry.rejected_changes()), (1, 2, 7));
    }

    #[test]
    fn changes_of_many_at_once_are_all_made() {
        let rules =
            (0..8).fold(RuleSet::new(), |rules, i| rules.named(format!("{i}"), format!("r{i}"), qps(1.0)));
        let (registry, _) = registry_with(rules);
        std::thread::scope(|scope| {
            for i in 0..8 {
                let source = registry.source("loaded");
                scope.spawn(move || {
                    for limit in 2..52 {
                        source.patch(&i.to_string(), |_| Ok(qps(f64::from(limit)).into())).unwrap();
                    }
                });
            }
        });
        assert_eq!(registry.version(), 401);
        assert!((0..8).all(|i| passes(&registry, &format!("r{i}"), 99) == 51));
    }

    #[test]
    fn a_patch_may_use_the_registry_itself() {
        let (registry, _) = registry_with(two());
        let source = registry.source("loaded");
        let inner = registry.clone();
        source
            .patch("create", |rule| {
                inner.source("api").load(RuleSet::new().flow("other", qps(1.0))).unwrap();
                Ok(rule.with_mode(Mode::Off))
            })
            .unwrap();
        assert_eq!(registry.version(), 3);
    }
}

mod versions {
    use super::*;

    fn limited(limit: u32) -> RuleSet {
        RuleSet::new().flow(R, qps(limit.into()))
    }

    #[test]
    fn what_was_done_can_be_compared_and_taken_back() {
        let (registry, clock) = registry_with(limited(1));
        registry.source("api").load(RuleSet::new().isolation(R, IsolationRule::new(3))).unwrap();
        registry.load(limited(2)).unwrap();
        let changes = |from, to| -> Vec<_> {
            registry
                .diff(from, to)
                .unwrap()
                .iter()
                .map(|change| (change.source(), change.to_string()))
                .collect()
        };
        let texts = |changes: &[(&'static str, &str)]| -> Vec<_> {
            changes.iter().map(|(source, text)| (*source, (*text).to_owned())).collect()
        };
        assert_eq!(
            changes(1, 3),
            texts(&[
                ("loaded", "changed orders.create/flow/0: flow: 1 per 1s, exact -> flow: 2 per 1s, exact"),
                ("api", "added orders.create/isolation/0: isolation: at most 3 in flight"),
            ])
        );
        assert_eq!(
            changes(3, 2),
            texts(&[(
                "loaded",
                "changed orders.create/flow/0: flow: 2 per 1s, exact -> flow: 1 per 1s, exact"
            )])
        );
        assert_eq!(passes(&registry, R, 9), 2);
        let report = registry.rollback(1).unwrap();
        assert_eq!((report.version(), report.changed(), report.removed()), (4, 1, 1));
        assert_eq!(at_work(&registry, R), ["loaded/flow/0"]);
        clock.set(at(1_000));
        assert_eq!(passes(&registry, R, 9), 1);
        assert_eq!(registry.rollback(3).unwrap().version(), 5);
        assert_eq!(at_work(&registry, R), ["loaded/flow/0", "api/isolation/0"]);
        assert_eq!(registry.rollback(3).unwrap().version(), 5, "it is there already");
        registry.rollback(0).unwrap();
        assert!(registry.loaded().is_empty());
    }

    #[test]
    fn the_last_16_versions_are_kept_and_no_older_one() {
        let (registry, _) = registry();
        for limit in 1..=20 {
            registry.load(limited(limit)).unwrap();
        }
        let kept: Vec<_> = registry.versions().iter().map(leap_runtime::RuleEvent::version).collect();
        assert_eq!(kept, (4..=20).collect::<Vec<_>>());
        assert_eq!(registry.rollback(3).unwrap_err(), LoadError::UnknownVersion(3));
        assert_eq!(registry.diff(21, 20).unwrap_err(), LoadError::UnknownVersion(21));
        registry.rollback(4).unwrap();
        assert_eq!(registry.loaded(), limited(4));
    }

    #[test]
    fn the_audit_tells_who_did_what_and_what_was_refused() {
        let (registry, clock) = registry_with(limited(1));
        clock.set(at(500));
        let source = registry.source("api").note("incident 42");
        source.load(RuleSet::new().named("stop", R, qps(0.0))).unwrap();
        source.load(RuleSet::new().flow("", qps(0.0))).unwrap_err();
        registry.source("api").remove("stop").unwrap();
        registry.rollback(2).unwrap();
        let audit = registry.audit();
        let told: Vec<_> = audit.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "version 1: load by loaded: 1 added, 0 changed, 0 removed",
                "version 2: load by api: 1 added, 0 changed, 0 removed (incident 42)",
                "version 2: load by api refused: the rules are not loaded: rule 0: `resource`: a name must not be empty \
                 (incident 42)",
                "version 3: removal of `stop` by api: 0 added, 0 changed, 1 removed",
                "version 4: rollback to version 2: 1 added, 0 changed, 0 removed",
            ]
        );
        assert_eq!((audit[0].at(), audit[1].at()), (at(0), at(500)));
        assert!(audit[2].error().is_some() && audit[3].error().is_none());
        for limit in 0..300 {
            registry.load(limited(limit)).unwrap();
        }
        assert_eq!(registry.audit().len(), 256);
    }

    #[test]
    fn what_is_validated_is_told_as_if_it_were_loaded_and_nothing_is_changed() {
        let recorder = Recorder::default();
        let (registry, _) = registry_with(limited(1));
        registry.observe(recorder.clone());
        let source = registry.source("loaded");
        let report = source.validate(&limited(3_000_000_000)).unwrap();
        assert_eq!((report.version(), report.changed(), report.notes().len()), (1, 1, 1));
        assert!(source.validate(&RuleSet::new().flow("", qps(1.0))).is_err());
        assert!(source.if_version(7).validate(&limited(2)).is_err());
        assert_eq!((registry.version(), registry.rejected_changes(), registry.audit().len()), (1, 0, 1));
        assert_eq!(registry.loaded(), limited(1));
        assert!(recorder.take().is_empty());
    }

    #[test]
    fn an_event_can_be_told_to_observers_that_use_the_registry() {
        #[derive(Clone)]
        struct Asks(Arc<std::sync::OnceLock<Registry>>);
        impl leap_runtime::Observer for Asks {
            fn on_load(&self, report: &leap_runtime::LoadReport) {
                let registry = self.0.get().unwrap();
                assert_eq!(registry.version(), report.version());
                assert!(registry.audit().len() == 1 && registry.loaded().len() == 1);
            }
        }
        let asks = Asks(Arc::default());
        let (registry, _) = registry();
        asks.0.set(registry.clone()).unwrap();
        registry.observe(asks);
        registry.load(limited(1)).unwrap();
        assert_eq!(registry.contained_panics(), 0);
    }

    #[test]
    fn rules_of_every_kind_are_taken_back_with_all_their_words() {
        let rules = RuleSet::new()
            .authority(R, AuthorityRule::deny(["batch"]).unwrap())
            .hot(R, HotRule::qps("user", 1.0).unwrap().except("vip", 9.0).unwrap())
            .breaker(R, breaker())
            .system(SystemRule::concurrency(7))
            .system_named("cpu", SystemRule::cpu(0.5).unwrap());
        let (registry, _) = registry_with(rules.clone());
        registry.load(RuleSet::new()).unwrap();
        assert!(registry.enter_with(R).origin("batch").enter().is_ok());
        registry.rollback(1).unwrap();
        assert_eq!(registry.loaded(), rules);
        assert_eq!(registry.enter_with(R).origin("batch").enter().unwrap_err().cause(), Cause::Authority);
    }
}
