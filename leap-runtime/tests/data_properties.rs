//! Rules as data, at random: any valid rule comes back as it was written, and no input is worse than an error.
#![cfg(feature = "serde")]
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use leap_runtime::{
    AuthorityRule, Behavior, BreakerRule, FlowRule, HotRule, IsolationRule, Key, LoadError, Mode, Precision,
    Recovery, Rule, RuleData, RulePatch, RuleSet, SystemRule, ToKey,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);

fn limit() -> BoxedStrategy<f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::MAX),
        Just(1.0),
        (1_u32..5_000).prop_map(f64::from),
        1.0..1e7_f64,
        f64::MIN_POSITIVE..1.0,
    ]
    .boxed()
}

fn time() -> BoxedStrategy<Duration> {
    prop_oneof![
        (0_u64..100_000).prop_map(Duration::from_millis),
        (0..YEAR.as_secs(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        Just(YEAR),
        Just(Duration::from_secs(1)),
        Just(Duration::from_secs(5)),
        Just(Duration::from_nanos(1)),
    ]
    .boxed()
}

fn name() -> BoxedStrategy<String> {
    prop_oneof!["[a-z]{1,8}(\\.[a-z*]{1,4})?", "\\PC{1,20}", "[\n\"\\\\*#=]{1,5}"].boxed()
}

fn precision() -> BoxedStrategy<Precision> {
    prop_oneof![Just(Precision::Exact), Just(Precision::Strict), Just(Precision::Sentinel)].boxed()
}

fn mode() -> BoxedStrategy<Mode> {
    prop_oneof![Just(Mode::Enforce), Just(Mode::Off), Just(Mode::Shadow)].boxed()
}

fn key() -> BoxedStrategy<Key> {
    prop_oneof![
        "\\PC{0,60}".prop_map(|text| text.to_key()),
        any::<i128>().prop_map(|number| number.to_key()),
        any::<i64>().prop_map(|number| number.to_key()),
        any::<u128>().prop_map(|number| number.to_key()),
        any::<bool>().prop_map(|value| value.to_key()),
        any::<char>().prop_map(|letter| letter.to_key()),
    ]
    .boxed()
}

/// What a step makes of a rule, unless it would make it wrong.
fn step<R: Clone, E, T>(rule: R, given: Option<T>, step: impl FnOnce(R, T) -> Result<R, E>) -> R {
    match given {
        Some(value) => step(rule.clone(), value).unwrap_or(rule),
        None => rule,
    }
}

fn flow() -> BoxedStrategy<Rule> {
    let behavior =
        (0_u8..4, time(), 1.0..100.0_f64, prop_oneof![Just(3.0), Just(4.0), 1.001..50.0_f64], time());
    let behavior = behavior.prop_map(|(which, period, _, cold_factor, max_wait)| match which {
        0 => Behavior::Reject,
        1 => Behavior::WarmUp { period, cold_factor },
        2 => Behavior::Throttle { max_wait },
        _ => Behavior::WarmUpThrottle { period, cold_factor, max_wait },
    });
    let numbers =
        (option::of(time()), option::of(1_u32..200), option::of(precision()), option::of(any::<u32>()));
    (limit(), behavior, numbers, 0_u8..6, name(), mode())
        .prop_filter_map(
            "a rule",
            |(limit, behavior, (per, buckets, precision, burst), relation, name, mode)| {
                let rule = FlowRule::new(limit, behavior).ok()?;
                let rule = step(rule, per, FlowRule::per);
                let rule = step(rule, buckets, FlowRule::with_buckets);
                let rule = step(rule, precision, FlowRule::with_precision);
                // Buckets that were asked for go with the interval that is set last, too.
                let rule = step(rule, per.map(|per| per / 2), FlowRule::per);
                let rule = step(rule, burst, FlowRule::with_burst);
                let rule = step(rule, Some(name), |rule, name| match relation {
                    0 => rule.associated(name),
                    1 => rule.for_entrance(name),
                    2 => rule.for_origin(name),
                    3 => rule.for_other_origins(),
                    4 => rule.for_each_origin(),
                    _ => Ok(rule),
                });
                Some(rule.with_mode(mode).into())
            },
        )
        .boxed()
}

fn isolation() -> BoxedStrategy<Rule> {
    (any::<u32>(), time(), mode())
        .prop_map(|(max, queue, mode)| {
            IsolationRule::new(max).with_queue(queue).unwrap().with_mode(mode).into()
        })
        .boxed()
}

fn breaker() -> BoxedStrategy<Rule> {
    let slow_rt = prop_oneof![time(), Just(Duration::MAX), Just(Duration::from_millis(u64::MAX))];
    let ratio = || prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64];
    let rule = prop_oneof![
        (slow_rt, ratio()).prop_map(|(slow_rt, ratio)| BreakerRule::slow_ratio(slow_rt, ratio).unwrap()),
        ratio().prop_map(|ratio| BreakerRule::error_ratio(ratio).unwrap()),
        prop_oneof![0_u32..100, any::<u32>()].prop_map(BreakerRule::error_count),
    ];
    let window = option::of((time(), 1_u32..100));
    let recovery = option::of(option::of(time()));
    let numbers = (option::of(1_u32..100), window, option::of(1_u32..10_001), option::of(1_u32..1_024));
    let times = (option::of(time()), option::of(time()), recovery);
    (rule, numbers, times, mode())
        .prop_map(|(rule, numbers, times, mode)| {
            let (min_calls, window, calls, probes) = numbers;
            let (open, longest, recovery) = times;
            let rule = step(rule, min_calls, BreakerRule::with_min_calls);
            let rule = step(rule, window, |rule, (time, n_buckets)| rule.with_window(time, n_buckets));
            let rule = step(rule, calls, BreakerRule::with_window_calls);
            let rule = step(rule, probes, BreakerRule::with_probes);
            let rule = step(rule, open, BreakerRule::open_for);
            let rule = step(rule, longest, BreakerRule::with_max_open);
            let rule = step(rule, recovery, |rule, over| {
                rule.with_recovery(Recovery::Ramp { over: over.unwrap_or(rule.open_time()) })
            });
            rule.with_mode(mode).into()
        })
        .boxed()
}

fn hot() -> BoxedStrategy<Rule> {
    let rule = prop_oneof![
        (name(), limit()).prop_filter_map("a rule", |(key, limit)| HotRule::qps(key, limit).ok()),
        (any::<i32>(), limit()).prop_filter_map("a rule", |(key, limit)| HotRule::qps(key, limit).ok()),
        (name(), limit(), time())
            .prop_map(|(key, limit, max_wait)| HotRule::throttle(key, limit, max_wait).unwrap()),
        (name(), any::<u32>()).prop_map(|(key, max)| HotRule::concurrency(key, max).unwrap()),
    ];
    let numbers = (option::of(time()), option::of(any::<u32>()), option::of(any::<u32>()));
    let rest = (option::of(1_u32..1_000_001), any::<bool>(), vec((key(), limit()), 0..5), mode());
    (rule, numbers, rest)
        .prop_map(|(rule, (per, burst, max), (max_keys, as_sentinel, except, mode))| {
            let rule = step(rule, burst, HotRule::with_burst);
            let rule = step(rule, per, HotRule::per);
            let rule = step(rule, max_keys, HotRule::with_max_keys);
            let rule = step(rule, as_sentinel.then_some(Precision::Sentinel), HotRule::with_precision);
            let rule = match max {
                Some(max) => rule.with_max_concurrency(max),
                None => rule,
            };
            let except = except
                .into_iter()
                .fold(rule, |rule, (key, limit)| step(rule, Some(key), |rule, key| rule.except(key, limit)));
            except.with_mode(mode).into()
        })
        .boxed()
}

fn authority() -> BoxedStrategy<Rule> {
    (any::<bool>(), vec(name(), 1..5), mode())
        .prop_map(|(is_allow_list, names, mode)| {
            let rule = if is_allow_list { AuthorityRule::allow(names) } else { AuthorityRule::deny(names) };
            rule.unwrap().with_mode(mode).into()
        })
        .boxed()
}

fn system() -> BoxedStrategy<Rule> {
    let load = prop_oneof![Just(0.0), Just(f64::MAX), 0.0..100.0_f64];
    let rule = prop_oneof![
        load.prop_map(|load| SystemRule::load(load).unwrap()),
        (0.0..1.0_f64).prop_map(|cpu| SystemRule::cpu(cpu).unwrap()),
        limit().prop_filter_map("a rule", |limit| SystemRule::qps(limit).ok()),
        any::<u32>().prop_map(SystemRule::concurrency),
        time().prop_filter_map("a rule", |max| SystemRule::avg_rt(max).ok()),
    ];
    (rule, option::of(precision()), mode())
        .prop_map(|(rule, precision, mode)| {
            step(rule, precision, SystemRule::with_precision).with_mode(mode).into()
        })
        .boxed()
}

fn rule() -> BoxedStrategy<Rule> {
    prop_oneof![flow(), isolation(), breaker(), hot(), authority(), system()].boxed()
}

/// Often of one kind.
fn two_of_a_kind() -> BoxedStrategy<(Rule, Rule)> {
    let two = |rule: fn() -> BoxedStrategy<Rule>| (rule(), rule()).boxed();
    prop_oneof![two(flow), two(isolation), two(breaker), two(hot), two(authority), two(system)].boxed()
}

fn set() -> BoxedStrategy<RuleSet> {
    let ids = btree_map(name(), (name(), rule()), 0..4);
    (ids, vec((name(), rule()), 0..8))
        .prop_map(|(named, others)| {
            let mut set = RuleSet::new();
            for (id, (resource, rule)) in named {
                set = match rule {
                    Rule::System(rule) => set.system_named(id, rule),
                    rule => set.named(id, resource, rule),
                };
            }
            for (resource, rule) in others {
                set = match rule {
                    Rule::System(rule) => set.system(rule),
                    rule => set.rule(resource, rule),
                };
            }
            set
        })
        .boxed()
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_set_is_read_as_it_was_written(set in set()) {
        let order = |set: &RuleSet| set.iter().map(ToString::to_string).collect::<Vec<_>>();
        let json = serde_json::to_string(&set).unwrap();
        let read: RuleSet = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &set, "{}", json);
        prop_assert_eq!(order(&read), order(&set));
        let toml = toml::to_string(&set).unwrap();
        let read: RuleSet = toml::from_str(&toml).unwrap();
        prop_assert_eq!(&read, &set, "{}", toml);
        prop_assert_eq!(order(&read), order(&set));
    }

    #[test]
    fn a_rule_alone_is_read_as_it_was_written(rule in rule()) {
        let json = serde_json::to_string(&rule).unwrap();
        prop_assert_eq!(serde_json::from_str::<Rule>(&json).unwrap(), rule, "{}", json);
    }

    #[test]
    fn a_patch_of_every_word_makes_any_rule_of_the_kind_of_any_other((one, other) in two_of_a_kind()) {
        prop_assume!(one.kind() == other.kind());
        let before = serde_json::to_value(&one).unwrap();
        let mut changes = serde_json::to_value(&other).unwrap();
        let changes = changes.as_object_mut().unwrap();
        changes.remove("kind");
        for name in before.as_object().unwrap().keys().filter(|name| *name != "kind") {
            changes.entry(name).or_insert(Value::Null);
        }
        let patch: RulePatch = serde_json::from_value(changes.clone().into()).unwrap();
        prop_assert_eq!(one.patched(&patch), Ok(other));
        let nothing: RulePatch = serde_json::from_str("{}").unwrap();
        prop_assert_eq!(one.patched(&nothing), Ok(one));
    }

    #[test]
    fn no_value_of_any_word_is_worse_than_an_error(
        kind in 0_usize..8,
        fields in vec(("(qps|limit|per|per_ms|burst|key|except|window|open_ms|probes|load|allow|mode|id|[a-z_]{1,9})", junk()), 0..6),
    ) {
        let kinds = ["flow", "isolation", "slow_ratio", "error_ratio", "error_count", "hot", "authority", "system"];
        let mut rule = json!({"kind": kinds[kind], "resource": "a"});
        for (name, value) in fields {
            rule[name] = value;
        }
        if let Err(LoadError::Rejected(rejections)) =
            serde_json::from_value::<RuleData>(json!([rule])).unwrap().into_rules()
        {
            prop_assert!(!rejections.is_empty());
            for (i, one) in rejections.iter().enumerate() {
                prop_assert_eq!(one.index(), Some(0));
                prop_assert!(!rejections[..i].contains(one), "{} is told twice", one);
            }
        }
    }
}

fn junk() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        "\\PC{0,9}".prop_map(Value::from),
        "[0-9]{1,3}(ms|s|h)".prop_map(Value::from),
    ];
    plain.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((prop_oneof!["value", "limit", "char", "[a-z]{1,3}"], inner), 0..3)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}
