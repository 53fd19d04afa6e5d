//! Rules by name: loading them, whose they are, and which registry is meant.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{R, Recorder, call, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    Blocked, BreakerRule, BreakerState, Builder, Cause, IsolationRule, ManualClock, Mode, Outcome, Registry,
    Rule, RuleKind, RuleSet, guarded,
};

/// Rules added, changed, kept and removed.
fn load(registry: &Registry, rules: RuleSet) -> [usize; 4] {
    let report = registry.load(rules).unwrap();
    [report.added(), report.changed(), report.kept(), report.removed()]
}

#[test]
fn a_report_counts_what_became_of_each_rule() {
    let (registry, _) = registry();
    let one = IsolationRule::new(1);
    assert_eq!(
        load(&registry, RuleSet::new().flow("a", qps(1.0)).isolation("a", one).flow("b", qps(1.0))),
        [3, 0, 0, 0]
    );
    assert_eq!(
        load(&registry, RuleSet::new().flow("a", qps(2.0)).isolation("a", one).flow("c", qps(1.0))),
        [1, 1, 1, 1]
    );
    let rules = RuleSet::new().flow("a", qps(2.0)).flow("a", qps(3.0)).isolation("c", one);
    assert_eq!(load(&registry, rules.clone()), [2, 0, 1, 2]);
    assert_eq!(load(&registry, rules), [0, 0, 3, 0]);
    assert_eq!(load(&registry, RuleSet::new().flow("a", qps(3.0))), [0, 1, 0, 2]);
    assert_eq!(load(&registry, RuleSet::new()), [0, 0, 0, 1]);
}

#[test]
fn a_report_reads_as_a_line_and_one_for_each_change_and_note() {
    let (registry, _) = registry();
    let report = registry.load(RuleSet::new().flow("a", qps(1.0)).flow("b", qps(3e9))).unwrap();
    assert_eq!(
        report.to_string(),
        "rules: 2 added, 0 changed, 0 kept, 0 removed\n  \
         added a/flow/0: flow: 1 per 1s, exact\n  \
         added b/flow/0: flow: 3000000000 per 1s, strict in 100 buckets\n  \
         `b`: flow: 3000000000 per 1s, strict in 100 buckets: a limit above 2147483647 per window is no limit"
    );
}

#[test]
fn loading_replaces_all_that_was_loaded_before() {
    let (registry, _) = registry_with(RuleSet::new().flow("a", qps(0.0)).flow("b", qps(0.0)));
    let rules = RuleSet::new().flow("b", qps(1.0));
    registry.load(rules.clone()).unwrap();
    assert_eq!((passes(&registry, "a", 5), passes(&registry, "b", 5)), (5, 1));
    assert_eq!(registry.loaded(), rules);
    registry.load(RuleSet::new()).unwrap();
    assert_eq!(passes(&registry, "b", 5), 5);
    assert!(registry.loaded().is_empty());
}

#[test]
fn a_set_with_one_wrong_name_is_not_loaded_at_all() {
    let rules = RuleSet::new().flow(R, qps(1.0));
    let (registry, _) = registry_with(rules.clone());
    let long = "x".repeat(1_025);
    let errors = [
        (String::new(), "the rules are not loaded: rule 1: `resource`: a name must not be empty".to_owned()),
        (
            long,
            format!(
                "the rules are not loaded: rule 1 of `{}…`: `resource`: a name of 1025 bytes is too long: at most 1024",
                "x".repeat(64)
            ),
        ),
    ];
    for (name, message) in errors {
        let wrong = RuleSet::new().flow("a", qps(0.0)).flow(name, qps(0.0)).flow(R, qps(0.0));
        assert_eq!(registry.load(wrong).unwrap_err().to_string(), message);
        assert_eq!(registry.loaded(), rules);
        assert_eq!(passes(&registry, "a", 1), 1);
    }
    assert_eq!(passes(&registry, R, 2), 1);
}

#[test]
fn names_are_taken_as_they_are_up_to_1024_bytes() {
    let names = ["*", "a\"b", "a|b", "a\nb", "🦘", " ", &"x".repeat(1_024)];
    let (registry, _) = registry();
    for name in names {
        assert_eq!(passes(&registry, name, 2), 2);
        assert_eq!(registry.stats(name).unwrap().resource(), name);
    }
    registry
        .load(
            names
                .into_iter()
                .fold(RuleSet::new(), |rules, name| rules.flow(name.replace('*', r"\*"), qps(0.0))),
        )
        .unwrap();
    assert!(names.iter().all(|name| registry.enter(name).unwrap_err().resource() == *name));
    assert_eq!(registry.resources().count(), names.len());
}

#[test]
fn calls_whose_name_cannot_be_one_share_a_resource_that_can_be_limited() {
    let (registry, _) = registry();
    let long = "x".repeat(1_025);
    assert_eq!((passes(&registry, "", 1), passes(&registry, &long, 1)), (1, 1));
    let names: Vec<_> = registry.resources().map(|stats| stats.resource().to_owned()).collect();
    assert_eq!(names, ["(overflow)"]);
    assert_eq!(registry.stats(&long).unwrap().totals().passed(), 2);
    registry.load(RuleSet::new().flow("(overflow)", qps(0.0))).unwrap();
    assert!(registry.enter("").is_err() && registry.would_pass(&long, 1).is_err());
}

#[test]
fn rules_of_one_kind_hold_together_and_are_told_apart_by_their_place() {
    let rules = RuleSet::new().flow(R, qps(10.0)).isolation(R, IsolationRule::new(9)).flow(R, qps(3.0));
    assert_eq!((rules.len(), rules.of(R).len(), rules.of("other").len()), (3, 3, 0));
    let (registry, _) = registry_with(rules);
    assert_eq!(passes(&registry, R, 20), 3);
    assert_eq!(registry.enter(R).unwrap_err().rule().to_string(), "loaded/flow/1");
}

#[test]
fn the_same_rule_twice_is_as_strict_as_once() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(10.0)).flow(R, qps(10.0)));
    assert_eq!(passes(&registry, R, 30), 10);
}

#[test]
fn what_passed_under_a_rule_counts_after_a_load_that_keeps_it() {
    let rules = RuleSet::new().flow(R, qps(5.0));
    let (registry, _) = registry_with(rules.clone());
    assert_eq!(passes(&registry, R, 3), 3);
    for extra in 0..10 {
        registry.load(rules.clone().flow(format!("other {extra}"), qps(1.0))).unwrap();
    }
    assert_eq!(passes(&registry, R, 9), 2);
}

#[test]
fn a_thousand_loads_while_calls_go_on_let_nobody_slip_through() {
    let rules = |limit| RuleSet::new().flow(R, qps(limit)).isolation(R, IsolationRule::new(50));
    let (registry, _) = registry_with(rules(10.0));
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| passes(&registry, R, 3_000))).collect();
        for load in 0..1_000 {
            registry.load(rules(if load % 2 == 0 { 9.0 } else { 10.0 })).unwrap();
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed + passes(&registry, R, 20), 10, "the last load allows 10");
    assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
}

#[test]
fn registries_know_nothing_of_each_other_and_clones_are_one() {
    let (first, _) = registry_with(RuleSet::new().flow(R, qps(0.0)));
    let (second, _) = registry();
    let clone = first.clone();
    assert_eq!((passes(&clone, R, 1), passes(&second, R, 1)), (0, 1));
    assert_eq!(first.stats(R).unwrap().totals().blocked(), 1);
    assert_eq!(second.stats(R).unwrap().totals().blocked(), 0);
}

#[test]
fn a_builder_by_default_builds_what_a_registry_is_by_default() {
    let registry = Builder::default().clock(ManualClock::new()).build();
    assert_eq!(passes(&registry, R, 1), 1);
    assert_eq!(format!("{:?}", Builder::default()), format!("{:?}", Registry::builder()));
}

#[derive(Debug)]
struct Busy(Blocked);

impl From<Blocked> for Busy {
    fn from(blocked: Blocked) -> Self {
        Self(blocked)
    }
}

#[guarded("registry.create", qps = 5, max_concurrency = 1, error_count = 0, min_calls = 1)]
fn create(succeeds: bool) -> Result<(), Busy> {
    if succeeds { Ok(()) } else { Err(Busy(nested().unwrap_err())) }
}

/// A block to return, of whatever kind.
fn nested() -> Result<(), Blocked> {
    let (registry, _) = registry_with(RuleSet::new().flow("nested", qps(0.0)));
    registry.enter("nested").map(drop)
}

/// The kinds and sources of the rules at work.
fn at_work(registry: &Registry, name: &str) -> Vec<String> {
    registry.stats(name).unwrap().rules().map(|(id, _)| id.to_string()).collect()
}

#[test]
fn a_loaded_rule_replaces_the_attributes_rules_of_its_kind_and_no_other() {
    let (registry, clock) = registry();
    let n_passed = |n| registry.scope(|| (0..n).filter(|_| create(true).is_ok()).count());
    assert_eq!(n_passed(9), 5);
    let own = ["flow/0", "isolation/0", "error_count/0"].map(|rule| format!("registry::create/{rule}"));
    assert_eq!(at_work(&registry, "registry.create"), own);

    let loaded = |limit| RuleSet::new().flow("registry.create", qps(limit)).flow("registry.create", qps(7.0));
    let report = registry.load(loaded(3.0)).unwrap();
    let replaced =
        "`registry.create`: the flow rules loaded replace 1 of attributes, until a load without any";
    assert_eq!(report.notes(), [replaced]);
    let report = registry.load(loaded(2.0)).unwrap();
    assert!(report.notes().is_empty(), "they were replaced before");
    clock.advance(ms(1_000));
    assert_eq!(n_passed(9), 2);
    assert_eq!(
        at_work(&registry, "registry.create"),
        [own[1].as_str(), own[2].as_str(), "loaded/flow/0", "loaded/flow/1"]
    );

    registry.load(RuleSet::new()).unwrap();
    assert_eq!(at_work(&registry, "registry.create"), own, "the attribute's rules are back");
    clock.advance(ms(1_000));
    assert_eq!(n_passed(9), 5);
}

#[test]
fn a_loaded_rule_that_is_off_switches_the_attributes_off() {
    let (registry, _) = registry();
    registry.load(RuleSet::new().flow("registry.create", qps(0.0).with_mode(Mode::Off))).unwrap();
    let passed = registry.scope(|| (0..100).filter(|_| create(true).is_ok()).count());
    assert_eq!(passed, 100);
}

#[test]
fn an_attributes_breaker_stays_open_while_other_kinds_are_loaded() {
    let (registry, _) = registry();
    registry.scope(|| create(false).unwrap_err());
    registry.load(RuleSet::new().flow("registry.create", qps(100.0))).unwrap();
    let blocked = registry.scope(|| create(true).unwrap_err()).0;
    assert_eq!((blocked.cause(), blocked.rule().kind()), (Cause::Breaker, RuleKind::ErrorCount));
    assert_eq!(blocked.rule().function(), Some("registry::create"));
    assert_eq!(registry.stats("registry.create").unwrap().breakers()[0].state(), BreakerState::Open);
}

#[test]
fn rules_loaded_before_the_first_call_hold_from_the_first_call() {
    let (registry, _) = registry_with(RuleSet::new().flow("registry.create", qps(1.0)));
    let passed = registry.scope(|| (0..5).filter(|_| create(true).is_ok()).count());
    assert_eq!(passed, 1);
}

#[guarded("registry.shared", qps = 3, fallback = no)]
fn first() -> bool {
    true
}

#[guarded("registry.shared", qps = 2, fallback = no)]
fn second() -> bool {
    true
}

fn no(_: Blocked) -> bool {
    false
}

#[test]
fn the_rules_of_two_functions_of_one_resource_add_up() {
    let (registry, clock) = registry();
    registry.scope(|| assert!(first() && second()));
    assert_eq!(at_work(&registry, "registry.shared"), ["registry::first/flow/0", "registry::second/flow/0"]);
    assert!(!registry.scope(first), "the stricter one decides, and both calls before count under it");
    clock.advance(ms(1_000));
    assert_eq!(registry.scope(|| (0..5).filter(|_| first()).count()), 2);
}

#[test]
fn a_scope_ends_with_its_body_also_when_that_panics_and_scopes_nest() {
    let (outer, _) = registry();
    let (inner, _) = registry();
    outer.scope(|| {
        first();
        inner.scope(first);
        let panic = catch_unwind(AssertUnwindSafe(|| inner.scope(|| panic!("inside"))));
        assert!(panic.is_err());
        first();
        assert_eq!(leap_runtime::registry().resources().count(), 1);
    });
    let passed = |registry: &Registry| registry.stats("registry.shared").unwrap().totals().passed();
    assert_eq!((passed(&outer), passed(&inner)), (2, 1));
}

#[test]
fn another_thread_is_not_in_the_scope() {
    let (registry, _) = registry();
    registry.scope(|| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                leap_runtime::registry().enter("registry.elsewhere").unwrap().end(Outcome::Success);
            });
        });
    });
    assert!(registry.stats("registry.elsewhere").is_none());
    assert!(leap_runtime::registry().stats("registry.elsewhere").is_some(), "it used the global one");
}

#[test]
fn an_observer_hears_of_every_load() {
    let recorder = Recorder::default();
    let registry = Registry::builder().clock(ManualClock::new()).observer(recorder.clone()).build();
    load(&registry, RuleSet::new().flow(R, qps(1.0)));
    assert!(registry.load(RuleSet::new().flow("", qps(1.0))).is_err());
    load(&registry, RuleSet::new());
    assert_eq!(
        recorder.take(),
        [
            "load: rules: 1 added, 0 changed, 0 kept, 0 removed",
            "reject: version 1: load by loaded refused: the rules are not loaded: rule 0: `resource`: a name must not be \
             empty",
            "load: rules: 0 added, 0 changed, 0 kept, 1 removed"
        ]
    );
}

#[test]
fn a_set_of_rules_lists_them_in_the_order_in_which_they_were_added() {
    let breaker = BreakerRule::error_count(1);
    let rules =
        RuleSet::new().flow("b", qps(2.0)).breaker("a", breaker).rule("b", Rule::from(IsolationRule::new(3)));
    let listed: Vec<_> = rules.iter().map(|named| (named.to_string(), named.rule().to_string())).collect();
    let expected = [
        ("b/flow/0", "flow: 2 per 1s, exact"),
        ("a/error_count/0", "error_count: over 1 of at least 5 calls in 1s, open 5s"),
        ("b/isolation/0", "isolation: at most 3 in flight"),
    ];
    assert_eq!(listed, expected.map(|(name, rule)| (name.to_owned(), rule.to_owned())));
}

#[test]
fn a_resource_that_nobody_called_works_after_its_rules_are_gone() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(0.0)));
    registry.load(RuleSet::new()).unwrap();
    assert!(call(&registry, R, Outcome::Success));
}

#[test]
fn a_rule_holds_from_its_load_on_where_there_was_none_and_no_longer_when_it_is_gone() {
    let (registry, clock) = registry();
    for _ in 0..2 {
        assert_eq!(passes(&registry, R, 5), 5);
        clock.advance(ms(1_000));
        load(&registry, RuleSet::new().flow(R, qps(2.0)));
        assert_eq!(passes(&registry, R, 5), 2);
        load(&registry, RuleSet::new());
    }
    let totals = *registry.stats(R).unwrap().totals();
    assert_eq!((totals.passed(), totals.blocked(), totals.success()), (14, 6, 14));
}
