use std::collections::HashMap as Map;
use std::sync::{Barrier, Mutex};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::rule::{Behavior, Precision, RuleKind};

const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// The cases of `relations.jsonl` whose names begin so.
pub(in super::super) fn cases(prefix: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance/relations.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.filter(|case| case["case"].as_str().unwrap().starts_with(prefix)).collect()
}

fn limit(limit: u32, relation: Relation) -> FlowRule {
    FlowRule::new(limit.into(), Behavior::Reject).unwrap().related(relation).unwrap()
}

fn entrance(name: &'static str) -> Relation {
    Relation::Entrance(name.into())
}

fn origin(name: &'static str) -> Relation {
    Relation::Origin(name.into())
}

fn with_ids(rules: &[FlowRule]) -> Vec<(RuleId, FlowRule)> {
    let id = |i| RuleId::new(None, RuleKind::Flow, i);
    rules.iter().enumerate().map(|(i, rule)| (id(i), rule.clone())).collect()
}

fn scoped(rules: &[FlowRule]) -> Scoped {
    after(&Scoped::default(), rules, 0)
}

/// Takes the turns and counts the permits, or gives the turns back.
fn commit<'a>(
    selected: &Selected<'a>,
    n: u64,
    now: Timestamp,
    reading: &Reading<'_>,
) -> Result<Option<Timestamp>, Refusal<'a>> {
    let mut paced = vec![];
    let start = selected.take_turns(n, now, now, &mut paced, reading);
    let admitted =
        start.and_then(|start| selected.admit(n, now, start.unwrap_or(now), reading).map(|()| start));
    admitted.inspect_err(|_| paced.into_iter().for_each(Paced::give_back))
}

/// The same resource with other rules from `ms` on.
fn after(previous: &Scoped, rules: &[FlowRule], ms: u64) -> Scoped {
    let scoped = Scoped::new(&with_ids(rules), [previous], &|| at(ms));
    scoped.catch_up(&|| at(ms));
    scoped
}

impl Scoped {
    /// A call as its resource makes it.
    fn enter(&self, from: (&str, &str), n: u64, ms: u64) -> Result<(), Refusal<'_>> {
        let some = |name: &'static str| Some(name).filter(|name| !name.is_empty());
        let (origin, entrance) = (leak(from.0), leak(from.1));
        let (now, reading) = (at(ms), &|| at(ms));
        let selected = self.select(some(origin), some(entrance), now, reading);
        selected.ask(n, now, reading)?;
        commit(&selected, n, now, reading).map(drop)
    }

    fn passes(&self, origin: &str, n: u32, ms: u64) -> usize {
        (0..n).filter(|_| self.enter((origin, ""), 1, ms).is_ok()).count()
    }

    fn n_gates(&self) -> usize {
        let gates = |rule: &ScopedRule| match &rule.gates {
            Gates::One(_) => 1,
            Gates::PerOrigin(table) => table.read().gates.len(),
        };
        self.rules.iter().map(gates).sum()
    }
}

/// Tests have few names.
fn leak(name: &str) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap();
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }
    names.push(Box::leak(name.into()));
    names.last().unwrap()
}

#[test]
fn a_rule_for_an_entrance_counts_only_what_came_in_by_it() {
    let scoped = scoped(&[limit(2, entrance("front"))]);
    let call = |entrance| scoped.enter(("", entrance), 1, 0).is_ok();
    assert_eq!([call("front"), call("back"), call("front"), call("front")], [true, true, true, false]);
    assert_eq!([call(""), call("back")], [true, true]);
    assert_eq!(scoped.enter(("", "front"), 1, 999).unwrap_err().until, Some(at(1_000)));
    assert!(scoped.enter(("", "front"), 1, 1_000).is_ok());
}

#[test]
fn other_origins_are_those_that_no_rule_names_each_counted_on_its_own() {
    let scoped = scoped(&[limit(2, origin("vip")), limit(1, Relation::OtherOrigins)]);
    let passes = |origin| scoped.passes(origin, 5, 0);
    assert_eq!([passes("vip"), passes("x"), passes("y"), passes("x"), passes("")], [2, 1, 1, 0, 5]);
}

#[test]
fn a_rule_for_each_origin_holds_for_those_that_are_named_too() {
    let scoped = scoped(&[limit(3, origin("vip")), limit(2, Relation::EachOrigin)]);
    assert_eq!([scoped.passes("vip", 5, 0), scoped.passes("x", 5, 0), scoped.passes("", 5, 0)], [2, 2, 5]);
}

#[test]
fn of_several_rules_the_first_is_named_with_the_latest_moment() {
    let minute = limit(1, entrance("front")).per(Duration::from_secs(60)).unwrap();
    let scoped = scoped(&[limit(1, origin("vip")), minute]);
    scoped.enter(("vip", "front"), 1, 0).unwrap();
    let refused = scoped.enter(("vip", "front"), 1, 500).unwrap_err();
    assert_eq!((refused.rule.position(), refused.until), (0, Some(at(60_000))));
    // What a later rule refuses takes nothing from an earlier one.
    let refused = scoped.enter(("vip", "front"), 1, 1_000).unwrap_err();
    assert_eq!(refused.rule.position(), 1);
    assert!(scoped.enter(("vip", "back"), 1, 1_000).is_ok());
    let never = scoped.enter(("vip", "back"), 2, 9_000).unwrap_err();
    assert!(matches!(never.by, By::Flow { fits: false, .. }));
    assert_eq!(never.until, None);
}

#[test]
fn a_question_makes_no_gate() {
    let scoped = scoped(&[limit(2, Relation::EachOrigin)]);
    assert!(scoped.look(Some("x"), None, at(0)).peek(2, at(0), &|| at(0)).is_ok());
    assert_eq!(scoped.look(Some("x"), None, at(0)).peek(3, at(0), &|| at(0)).unwrap_err().until, None);
    assert_eq!(scoped.n_gates(), 0);
}

fn pace(limit: f64, burst: u32) -> FlowRule {
    let rule = FlowRule::new(limit, Behavior::Throttle { max_wait: Duration::ZERO });
    rule.and_then(|rule| rule.with_burst(burst)?.for_each_origin()).unwrap()
}

#[test]
fn a_question_about_a_new_origin_s_pace_is_told_what_a_call_is() {
    let scoped = scoped(&[pace(1.0, 2)]);
    let asked = |n| scoped.look(Some("x"), None, at(0)).peek(n, at(0), &|| at(0));
    assert!(asked(3).is_ok());
    assert!(matches!(asked(4).unwrap_err(), Refusal { by: By::Flow { fits: false, .. }, until: None, .. }));
    assert_eq!(scoped.n_gates(), 0);
    let told = scoped.enter(("x", ""), 4, 0).unwrap_err();
    assert!(matches!(told, Refusal { by: By::Flow { fits: false, .. }, until: None, .. }));
}

#[test]
fn an_origin_leaves_no_sooner_than_its_pace_has_forgotten_it() {
    // One every 5 s; and three at once, then one per second.
    for (rule, first, forgotten_ms) in [(pace(0.2, 0), 1, 5_000), (pace(1.0, 3), 3, 3_000)] {
        let scoped = Scoped::with_places(1, &with_ids(&[rule]), [&Scoped::default()], &|| at(0));
        assert!(scoped.enter(("a", ""), first, 0).is_ok());
        // All places are taken, so this one goes where all do that find none.
        assert!(scoped.enter(("b", ""), 1, forgotten_ms - 900).is_ok());
        assert!(scoped.enter(("a", ""), first, forgotten_ms - 1).is_err());
        assert!(scoped.enter(("a", ""), first, forgotten_ms).is_ok());
    }
}

#[test]
fn a_limit_that_is_changed_counts_what_was_admitted_for_every_origin() {
    let rules = |n| [limit(n, Relation::EachOrigin), limit(n, entrance("front"))];
    let two = scoped(&rules(2));
    assert_eq!((two.passes("x", 2, 0), two.passes("y", 1, 0)), (2, 1));
    two.enter(("", "front"), 2, 0).unwrap();
    // A call that is deciding by the old plan meanwhile.
    let old = two.select(Some("x"), Some("front"), at(10), &|| at(10));
    let three = after(&two, &rules(3), 10);
    assert_eq!((three.passes("x", 5, 10), three.passes("y", 5, 10), three.passes("z", 5, 10)), (1, 2, 3));
    assert!(three.enter(("", "front"), 2, 10).is_err());
    three.enter(("", "front"), 1, 10).unwrap();
    assert!(commit(&old, 1, at(10), &|| at(10)).is_err());
    // An origin that is new to the old plan is not new to the new one.
    assert_eq!((two.passes("late", 2, 20), three.passes("late", 5, 20)), (2, 1));
    // What two and three had admitted is over 1, until the last of it has left.
    let one = after(&three, &rules(1), 30);
    assert_eq!((one.passes("x", 1, 1_009), one.passes("x", 2, 1_010)), (0, 1));
}

#[test]
fn an_unchanged_rule_keeps_its_gates_and_a_rule_for_somebody_else_gets_new_ones() {
    let first = scoped(&[limit(1, origin("vip")), limit(1, Relation::OtherOrigins)]);
    assert_eq!((first.passes("vip", 2, 0), first.passes("x", 2, 0)), (1, 1));
    let same = after(&first, &[limit(1, origin("vip")), limit(1, Relation::OtherOrigins)], 1);
    assert_eq!((same.passes("vip", 2, 1), same.passes("x", 2, 1)), (0, 0));
    let other = after(&same, &[limit(1, origin("x")), limit(1, Relation::OtherOrigins)], 2);
    assert_eq!((other.passes("vip", 2, 2), other.passes("x", 2, 2)), (1, 1));
    assert!(after(&other, &[], 3).rules.is_empty());
}

fn with_places(most: usize, n: u32) -> Scoped {
    let rules = with_ids(&[limit(n, Relation::EachOrigin)]);
    Scoped::with_places(most, &rules, [&Scoped::default()], &|| at(0))
}

#[test]
fn a_full_table_sends_origins_to_a_gate_they_share_until_others_are_at_rest() {
    let scoped = with_places(2, 2);
    assert_eq!((scoped.passes("a", 3, 0), scoped.passes("b", 1, 0)), (2, 1));
    assert_eq!((scoped.passes("c", 1, 500), scoped.passes("d", 3, 500)), (1, 1));
    // a and b have been at rest for an interval and a second from 2 000 ms on.
    assert_eq!((scoped.passes("e", 9, 1_999), scoped.n_gates()), (2, 2));
    assert_eq!((scoped.passes("f", 9, 2_099), scoped.n_gates()), (2, 1));
    assert_eq!((scoped.passes("e", 9, 2_099), scoped.n_gates()), (0, 2));
    assert_eq!(scoped.passes("e", 9, 2_999), 2);
}

#[test]
fn an_origin_that_moves_from_the_overflow_to_a_gate_of_its_own_takes_no_second_limit() {
    let scoped = with_places(1, 2);
    scoped.passes("a", 1, 0);
    assert_eq!((scoped.passes("x", 1, 1_999), scoped.n_gates()), (1, 1));
    // It gets the place of `a`, and is still held back by what it took before.
    assert_eq!((scoped.passes("x", 9, 2_100), scoped.n_gates()), (1, 1));
    assert_eq!(scoped.passes("x", 9, 2_998), 0);
    assert_eq!(scoped.passes("x", 9, 2_999), 1);
    assert_eq!(scoped.passes("x", 9, 6_000), 2);
}

#[test]
fn a_gate_at_which_somebody_is_deciding_does_not_leave() {
    let scoped = with_places(1, 1);
    let deciding = scoped.select(Some("a"), None, at(0), &|| at(0));
    assert_eq!(scoped.passes("b", 2, 9_000), 1);
    assert_eq!(scoped.n_gates(), 1);
    commit(&deciding, 1, at(9_000), &|| at(9_000)).unwrap();
    assert_eq!(scoped.passes("a", 1, 9_001), 0);
}

#[test]
fn origins_and_entrances_are_told_as_sentinel_tells_them() {
    let sentinel = |limit: &Value, relation| {
        let rule = FlowRule::new(limit.as_f64().unwrap(), Behavior::Reject).unwrap();
        rule.with_precision(Precision::Sentinel).unwrap().with_buckets(2).unwrap().related(relation).unwrap()
    };
    let mut n_answers = 0;
    for case in cases("origin-").into_iter().chain(cases("entrance-")) {
        let by_origin = case["rules"].is_array();
        let rules: Vec<FlowRule> = if by_origin {
            let relation = |rule: &Value| match rule["origin"].as_str().unwrap() {
                "other" => Relation::OtherOrigins,
                name => Relation::Origin(name.to_owned().into()),
            };
            let rules = case["rules"].as_array().unwrap();
            rules.iter().map(|rule| sentinel(&rule["qps"], relation(rule))).collect()
        } else {
            vec![sentinel(&case["rule"]["qps"], entrance("front"))]
        };
        let scoped = after(&Scoped::default(), &rules, 60_000);
        for event in case["events"].as_array().unwrap() {
            let (ms, who) = (60_000 + event[0].as_u64().unwrap(), event[1].as_str().unwrap());
            let from = if by_origin { (who, "") } else { ("", who) };
            assert_eq!(scoped.enter(from, 1, ms).is_ok(), event[2] == "pass", "{event} in {}", case["case"]);
            n_answers += 1;
        }
    }
    assert!(n_answers > 1_000, "{n_answers}");
}

#[test]
fn eight_threads_at_once_take_no_more_than_every_origin_has() {
    for _ in 0..50 {
        let scoped = scoped(&[limit(7, Relation::EachOrigin), limit(15, entrance("front"))]);
        let passed = Mutex::new(Map::<&str, u32>::new());
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (scoped, passed) = (&scoped, &passed);
                scope.spawn(move || {
                    for i in 0..10 {
                        let origin = ["a", "b", "c"][(thread + i) % 3];
                        let selected = scoped.select(Some(origin), Some("front"), at(5), &|| at(5));
                        if commit(&selected, 1, at(5), &|| at(5)).is_ok() {
                            *passed.lock().unwrap().entry(origin).or_default() += 1;
                        }
                    }
                });
            }
        });
        let passed = passed.into_inner().unwrap();
        assert!(passed.values().all(|n| *n <= 7), "{passed:?}");
        assert_eq!(passed.values().sum::<u32>(), 15);
    }
}

/// Origins come and go, more than there are places for, and all threads call at each moment of the clock.
#[test]
fn threads_with_more_origins_than_places_never_exceed_an_origins_limit() {
    for round in 0..10 {
        let (scoped, moment) = (with_places(2, 2), Barrier::new(4));
        let passed = Mutex::new(Map::<&str, Vec<u64>>::new());
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let (scoped, moment, passed) = (&scoped, &moment, &passed);
                scope.spawn(move || {
                    for i in 0..200_usize {
                        moment.wait();
                        let origin = ["a", "b", "c", "d", "e"][(thread % 2 + i / 7 + i * i * round) % 5];
                        let ms = 60 * i as u64;
                        let selected = scoped.select(Some(origin), None, at(ms), &|| at(ms));
                        let fits = selected.ask(1, at(ms), &|| at(ms)).is_ok();
                        if fits && commit(&selected, 1, at(ms), &|| at(ms)).is_ok() {
                            passed.lock().unwrap().entry(origin).or_default().push(ms);
                        }
                    }
                });
            }
        });
        for (origin, mut times) in passed.into_inner().unwrap() {
            times.sort_unstable();
            let too_many = times.windows(3).find(|three| three[2] - three[0] < 1_000);
            assert_eq!(too_many, None, "{origin} in round {round}");
        }
    }
}

#[test]
fn a_log_that_cannot_tell_the_time_for_long_is_replaced_for_its_origin() {
    // 2⁴⁸ µs, 8.9 years, and what a log is replaced before.
    let (end, before) = ((1 << 48) / 1_000, (1 << 32) / 1_000);
    let scoped = scoped(&[limit(1, Relation::EachOrigin)]);
    assert_eq!(scoped.passes("x", 2, 0), 1);
    assert_eq!(scoped.passes("x", 2, end - before + 1), 1);
    assert_eq!((scoped.passes("x", 2, end - before + 2), scoped.passes("x", 2, end + 1)), (0, 1));

    let full = with_places(1, 1);
    let _stays = full.select(Some("x"), None, at(0), &|| at(0));
    assert_eq!(full.passes("y", 2, 0), 1);
    assert_eq!((full.passes("y", 2, end - before + 1), full.passes("y", 2, end + 1)), (1, 1));
}

/// A rule as plain as can be: the times of all that it let through, by whom it counts.
struct Model {
    rule: FlowRule,
    admitted: Map<String, Vec<(u64, u64)>>,
}

impl Model {
    /// The key that a call is counted under, if the rule has to do with it.
    fn key(&self, rules: &[FlowRule], from: (&str, &str)) -> Option<String> {
        let is_named = |name: &str| {
            rules.iter().any(|rule| *rule.relation() == Relation::Origin(name.to_owned().into()))
        };
        let (origin, entrance) = from;
        let holds = match self.rule.relation() {
            Relation::Entrance(name) => return (entrance == name).then(String::new),
            Relation::Origin(name) => origin == name,
            Relation::OtherOrigins => !origin.is_empty() && !is_named(origin),
            _ => !origin.is_empty(),
        };
        holds.then(|| origin.to_owned())
    }

    fn fits(&self, key: &str, n: u64, now: u64) -> bool {
        let interval = self.rule.interval_ns() / 1_000_000;
        let inside = |(at, _): &&(u64, u64)| at + interval > now;
        let held: u64 = self.admitted.get(key).into_iter().flatten().filter(inside).map(|(_, n)| n).sum();
        held + n <= self.rule.permits().unwrap()
    }
}

fn relations() -> impl Strategy<Value = Relation> {
    prop_oneof![
        Just(entrance("front")),
        Just(origin("a")),
        Just(origin("b")),
        Just(Relation::OtherOrigins),
        Just(Relation::EachOrigin),
    ]
}

fn some_rules() -> impl Strategy<Value = Vec<FlowRule>> {
    let rule = (0_u32..5, relations(), prop_oneof![Just(100_u64), Just(1_000)])
        .prop_map(|(n, relation, interval)| limit(n, relation).per(Duration::from_millis(interval)).unwrap());
    prop::collection::vec(rule, 1..5)
}

fn calls(
    origins: &'static [&'static str],
) -> impl Strategy<Value = Vec<(u64, &'static str, &'static str, u64)>> {
    let delta = prop_oneof![4 => 0_u64..40, 1 => 0_u64..1_500];
    let call =
        (delta, prop::sample::select(origins), prop::sample::select(vec!["front", "back", ""]), 1_u64..3);
    prop::collection::vec(call, 1..120)
}

proptest! {
    #[test]
    fn any_rules_answer_as_a_list_of_times_does(rules in some_rules(), calls in calls(&["a", "b", "c", "d", ""])) {
        let scoped = scoped(&rules);
        let mut models: Vec<Model> =
            rules.iter().map(|rule| Model { rule: rule.clone(), admitted: Map::new() }).collect();
        let mut now = 0;
        for (delta, origin, entrance, n) in calls {
            now += delta;
            let from = (origin, entrance);
            let keys: Vec<_> = models.iter().map(|model| model.key(&rules, from)).collect();
            let hold = || models.iter().zip(&keys).filter_map(|(model, key)| Some((model, key.as_ref()?)));
            let fits = |now| hold().all(|(model, key)| model.fits(key, n, now));
            let some = |name: &'static str| Some(name).filter(|name| !name.is_empty());
            let asked = scoped.look(some(origin), some(entrance), at(now)).peek(n, at(now), &|| at(now));
            prop_assert_eq!(asked.is_ok(), fits(now));
            match scoped.enter(from, n, now) {
                Ok(()) => {
                    prop_assert!(fits(now));
                    for (model, key) in models.iter_mut().zip(&keys) {
                        if let Some(key) = key {
                            model.admitted.entry(key.clone()).or_default().push((now, n));
                        }
                    }
                }
                Err(refused) => {
                    prop_assert!(!fits(now));
                    match refused.until {
                        Some(until) => {
                            let until = until.as_nanos() / 1_000_000;
                            prop_assert!(fits(until) && !fits(until - 1), "until {}", until);
                        }
                        None => prop_assert!(!fits(now + 10_000)),
                    }
                }
            }
        }
    }

    #[test]
    fn no_origin_exceeds_its_limit_however_few_places_there_are_and_however_the_limit_changes(
        calls in calls(&["a", "b", "c", "d", "e", "f"]),
        limits in prop::collection::vec(1_u32..4, 4),
        most in 1_usize..4,
    ) {
        let rules = |limit_now| with_ids(&[limit(limit_now, Relation::EachOrigin)]);
        let largest = u64::from(*limits.iter().max().unwrap());
        let mut scoped = Scoped::with_places(most, &rules(limits[0]), [&Scoped::default()], &|| at(0));
        let mut admitted = Map::<&str, Vec<(u64, u64)>>::new();
        let mut now = 0;
        for (i, (delta, origin, _, n)) in calls.into_iter().enumerate() {
            now += delta;
            if i % 30 == 29 {
                let rules = rules(limits[i / 30]);
                scoped = Scoped::with_places(most, &rules, [&scoped], &|| at(now));
                scoped.catch_up(&|| at(now));
            }
            prop_assert!(scoped.n_gates() <= most);
            // A question does not know of the place that a call would find.
            let selected = scoped.select(Some(origin), None, at(now), &|| at(now));
            if selected.ask(n, at(now), &|| at(now)).is_ok() {
                commit(&selected, n, at(now), &|| at(now)).unwrap();
                let admitted = admitted.entry(origin).or_default();
                admitted.push((now, n));
                let held: u64 = admitted.iter().filter(|(at, _)| at + 1_000 > now).map(|(_, n)| n).sum();
                prop_assert!(held <= largest, "{held} of {origin} at {now}");
            }
        }
    }
}
