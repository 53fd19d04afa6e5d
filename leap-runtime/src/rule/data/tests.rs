//! The table of words tells the truth, and so does the page that is made of it.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use super::build::DIMENSIONS;
use super::given::Fault;
use super::value::{Fields, Value};
use super::words::{COMMON, Default, KINDS, MODE, Takes, Word, of_kind, parts};
use super::{Read, Scope, time};
use crate::rule::{Rule, RuleKind};

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// A rule of this kind that can be given the word: what it needs besides.
fn around(kind: RuleKind, word: &str) -> Vec<(&'static str, Value)> {
    let mut fields = match kind {
        RuleKind::Flow => match word {
            "qps" => vec![],
            "limit" => vec![("per_ms", Value::Whole(1_000))],
            "per_ms" => vec![("limit", Value::Whole(10))],
            _ => vec![("qps", Value::Whole(10))],
        },
        RuleKind::Isolation => vec![("max_concurrency", Value::Whole(8))],
        RuleKind::SlowRatio => vec![("slow_rt_ms", Value::Whole(200))],
        RuleKind::ErrorRatio => vec![("error_ratio", Value::Number(0.5))],
        RuleKind::ErrorCount => vec![("error_count", Value::Whole(0))],
        RuleKind::Hot => vec![("key", text("user")), ("qps", Value::Whole(10))],
        RuleKind::Authority if word == "deny" => vec![],
        RuleKind::Authority => vec![("allow", Value::List(vec![text("web")]))],
        RuleKind::System if DIMENSIONS.contains(&word) => vec![],
        RuleKind::System => vec![("qps", Value::Whole(10))],
        RuleKind::Custom => unreachable!("no data"),
    };
    match (kind, word) {
        (_, "warm_up_ms" | "cold_factor") => fields.push(("behavior", text("warm_up"))),
        (_, "max_wait_ms") | (RuleKind::Flow, "burst") => fields.push(("behavior", text("throttle"))),
        (_, "ramp_ms") => fields.push(("recovery", text("ramp"))),
        (_, "open_max_ms") => fields.push(("open", text("1ns"))),
        (_, "window_calls") => fields.push(("min_calls", Value::Whole(1))),
        _ => {}
    }
    fields.push(("kind", text(kind.name())));
    fields.retain(|(name, _)| *name != word);
    fields
}

fn read(fields: Vec<(&'static str, Value)>) -> Result<Rule, Vec<Fault>> {
    let fields: Fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Read::of(&Value::Map(fields), Scope::Alone).1
}

fn with(kind: RuleKind, word: &Word, name: &'static str, value: Value) -> Result<Rule, Vec<Fault>> {
    let mut fields = around(kind, word.name);
    fields.push((name, value));
    read(fields)
}

#[test]
fn what_the_table_calls_a_default_is_what_holds_without_the_word() {
    let mut seen = 0;
    for kind in KINDS {
        for word in of_kind(kind) {
            let value = match word.default {
                Default::Number(number) => Value::Number(number),
                Default::Whole(number) => Value::Whole(number.into()),
                Default::Time(time) => Value::Whole(i128::try_from(time.as_millis()).unwrap()),
                Default::Word("false") => Value::Bool(false),
                Default::Word(word) => text(word),
                Default::Needed | Default::Else(_) => continue,
            };
            seen += 1;
            let given = with(kind, word, word.name, value);
            assert!(given.is_ok(), "{kind:?} {}: {given:?}", word.name);
            let mut fields = around(kind, word.name);
            // Of the interval of a limit per second.
            fields.iter_mut().filter(|(name, _)| *name == "limit").for_each(|(name, _)| *name = "qps");
            assert_eq!(given, read(fields), "{kind:?} {}", word.name);
        }
    }
    assert!(seen >= 40, "{seen} defaults were looked at");
}

#[test]
fn what_the_table_calls_needed_is_or_something_else_says_it() {
    for kind in KINDS {
        let faults = read(vec![("kind", text(kind.name()))]).unwrap_err();
        let fields: Vec<&str> = faults.iter().filter_map(|fault| fault.field.as_deref()).collect();
        let needed: Vec<&str> = of_kind(kind)
            .filter(|word| matches!(word.default, Default::Needed))
            .map(|word| word.name)
            .collect();
        match kind {
            RuleKind::Flow => assert_eq!((fields, needed), (vec!["qps"], vec!["qps", "limit"])),
            RuleKind::Authority => assert_eq!((fields, needed), (vec!["allow"], vec!["allow", "deny"])),
            RuleKind::System => assert_eq!((fields, needed), (vec!["load"], DIMENSIONS.to_vec())),
            RuleKind::Hot => assert_eq!((fields, needed), (vec!["key", "qps"], vec!["key"])),
            _ => assert_eq!(fields, needed),
        }
    }
}

/// Values, each with the name it is given under.
type Named = Vec<(&'static str, Value)>;

/// Values that a word takes, its bounds among them, and values just beyond.
fn bounds(kind: RuleKind, word: &Word) -> (Named, Named) {
    let name = word.name;
    let named = |values: Vec<Value>| values.into_iter().map(|value| (name, value)).collect();
    let numbers = |values: &[f64]| named(values.iter().map(|number| Value::Number(*number)).collect());
    let wholes = |values: &[i128]| named(values.iter().map(|number| Value::Whole(*number)).collect());
    match word.takes {
        Takes::Permits { .. } => (
            numbers(&[0.0, 1.0, 2.5, f64::MAX]),
            numbers(&[0.0_f64.next_down(), 1.0_f64.next_down(), f64::INFINITY, f64::NEG_INFINITY, f64::NAN]),
        ),
        Takes::Number { least, most } => {
            (numbers(&[least, most]), numbers(&[least.next_down(), most.next_up(), f64::NAN]))
        }
        Takes::AtLeast(least) => {
            (numbers(&[least, f64::MAX]), numbers(&[least.next_down(), f64::INFINITY, f64::NAN]))
        }
        Takes::Above(bound) => {
            (numbers(&[bound.next_up(), f64::MAX]), numbers(&[bound, f64::INFINITY, f64::NAN]))
        }
        Takes::Whole { least, most } => {
            (wholes(&[least.into(), most.into()]), wholes(&[i128::from(least) - 1, i128::from(most) + 1]))
        }
        Takes::Time { least, most } => {
            let twin = word.twin().expect("a time has two names");
            let beyond = format!("{}ns", most.as_nanos() + 1);
            let mut wrong = vec![(twin, text(beyond)), (name, Value::Whole(-1))];
            if least > Duration::ZERO {
                wrong.push((twin, text(time::text(least.saturating_sub(Duration::from_nanos(1))))));
                wrong.push((name, Value::Whole(0)));
            }
            (vec![(twin, text(time::text(least))), (twin, text(time::text(most)))], wrong)
        }
        Takes::Name => {
            (named(vec![text("x"), text("x".repeat(1_024))]), named(vec![text(""), text("x".repeat(1_025))]))
        }
        Takes::OneOf(words) => {
            (named(words.iter().map(|word| text(*word)).collect()), named(vec![text(""), text("sentinal")]))
        }
        Takes::Key => {
            let (low, high) = (i128::from(i32::MIN), i128::from(i32::MAX));
            let mut right: Vec<_> = wholes(&[low, high]);
            right.extend(named(vec![text("x"), text("x".repeat(1_024))]));
            let mut wrong: Vec<_> = wholes(&[low - 1, high + 1]);
            wrong.extend(named(vec![text(""), text("x".repeat(1_025)), Value::Number(0.5)]));
            (right, wrong)
        }
        Takes::Names => {
            let list = |names: &[&str]| Value::List(names.iter().map(|name| text(*name)).collect());
            let long = "x".repeat(1_024);
            (
                named(vec![list(&["x"]), list(&["x", &long])]),
                named(vec![list(&[]), list(&["x", ""]), list(&[&format!("{long}x")])]),
            )
        }
        Takes::Exceptions => {
            assert_eq!(kind, RuleKind::Hot);
            let one = |value, limit| {
                Value::List(vec![Value::Map(vec![
                    ("value".to_owned(), value),
                    ("limit".to_owned(), Value::Number(limit)),
                ])])
            };
            (
                named(vec![
                    Value::List(vec![]),
                    one(text("x".repeat(1_024)), 0.0),
                    one(text(""), f64::MAX),
                    one(Value::Bool(true), 1.0),
                    one(Value::Whole(i128::MIN), 1.0),
                    one(Value::Huge(u128::MAX), 1.0),
                ]),
                named(vec![
                    one(text("x".repeat(1_025)), 1.0),
                    one(text("x"), 0.5),
                    one(text("x"), -1.0),
                    one(Value::Number(0.5), 1.0),
                ]),
            )
        }
        Takes::Flag => (named(vec![Value::Bool(true), Value::Bool(false)]), named(vec![Value::Whole(1)])),
    }
}

#[test]
fn a_value_at_a_bound_of_the_table_is_taken_and_one_just_beyond_is_not() {
    let (mut n_right, mut n_wrong) = (0, 0);
    for kind in KINDS {
        for word in of_kind(kind) {
            let (right, wrong) = bounds(kind, word);
            for (name, value) in right {
                let rule = with(kind, word, name, value.clone());
                assert!(rule.is_ok(), "{kind:?} {name} {value:?}: {rule:?}");
                n_right += 1;
            }
            for (name, value) in wrong {
                let faults = with(kind, word, name, value.clone()).expect_err(name);
                let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_deref()).collect();
                assert_eq!(fields, [Some(name)], "{kind:?} {name} {value:?}: {faults:?}");
                n_wrong += 1;
            }
        }
    }
    assert!(n_right > 150 && n_wrong > 150, "{n_right} and {n_wrong} values were tried");
}

#[test]
fn a_limit_may_be_any_from_0_where_calls_wait_if_the_table_says_so() {
    let mut seen = vec![];
    for kind in KINDS {
        for word in of_kind(kind) {
            let Takes::Permits { may_wait } = word.takes else { continue };
            seen.push((kind.name(), word.name, may_wait));
            for limit in [f64::MIN_POSITIVE, 0.5] {
                let mut fields = around(kind, word.name);
                fields.push((word.name, Value::Number(limit)));
                if of_kind(kind).any(|word| word.name == "behavior") {
                    fields.push(("behavior", text("throttle")));
                }
                assert_eq!(read(fields).is_ok(), may_wait, "{kind:?} {} {limit}", word.name);
            }
        }
    }
    assert_eq!(
        seen,
        [("flow", "qps", true), ("flow", "limit", true), ("hot", "qps", true), ("system", "qps", false)]
    );
}

#[test]
fn each_time_and_nothing_else_has_a_twin_without_its_unit() {
    for kind in KINDS {
        let names: Vec<&str> = of_kind(kind).flat_map(Word::names).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{kind:?}: {names:?}");
        for word in of_kind(kind) {
            assert_eq!(word.name.ends_with("_ms"), matches!(word.takes, Takes::Time { .. }), "{}", word.name);
            assert_eq!(word.twin().is_some(), word.name.ends_with("_ms"), "{}", word.name);
        }
    }
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/fields.md");
const BEGIN: &str = "<!-- What follows is written by a test: see there. -->\n";
const REFRESH: &str = "LEAP_UPDATE_FIELDS=1 cargo test -p leap-runtime --features serde --lib rule::data";

#[test]
fn the_page_of_all_fields_is_the_table() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (above, _) = page.split_once(BEGIN).expect("a line that says where the table begins");
    let expected = format!("{above}{BEGIN}{}", tables());
    if std::env::var_os("LEAP_UPDATE_FIELDS").is_some() {
        fs::write(PAGE, expected).unwrap();
    } else {
        assert!(
            page == expected,
            "guide/fields.md is not what the table of words says; write it anew by\n{REFRESH}"
        );
    }
}

fn tables() -> String {
    let mut page = String::new();
    let mut table = |title: &str, words: &mut dyn Iterator<Item = &'static Word>| {
        write!(
            page,
            "\n## {title}\n\n| field | takes | bounds | default | means |\n| --- | --- | --- | --- | --- |\n"
        )
        .unwrap();
        for word in words {
            let Word { name, takes, default, means } = word;
            let (takes, bounds) =
                takes.to_string().split_once(" |").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            let names = match word.twin() {
                Some(twin) => format!("`{name}`, `{twin}`"),
                None => format!("`{name}`"),
            };
            writeln!(page, "| {names} | {takes} |{bounds} | {default} | {means} |").unwrap();
        }
    };
    table("Every rule", &mut COMMON.iter().chain([&MODE]));
    let is_not_mode = |word: &&'static Word| word.name != MODE.name;
    for kind in KINDS {
        let (own, shared) = parts(kind);
        table(&format!("`{}`", kind.name()), &mut own.iter().filter(is_not_mode));
        if kind == RuleKind::ErrorCount {
            table("All three breakers", &mut shared.iter().filter(is_not_mode));
        }
    }
    page
}
