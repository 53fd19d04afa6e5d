//! Rules as data: what is read, what is written, and what is said of mistakes.
#![cfg(feature = "serde")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy excuses only the tests themselves"
)]

use std::time::Duration;

use leap_runtime::{
    AuthorityRule, Behavior, Blocked, BreakerRule, FlowRule, HotRule, IsolationRule, LoadError, ManualClock,
    Mode, Precision, Recovery, Registry, Rejection, Rule, RuleData, RulePatch, RuleSet, SystemRule, guarded,
};
use serde_json::{Value, json};

const MS: Duration = Duration::from_millis(1);

fn from_toml(document: &str) -> RuleSet {
    toml::from_str(document).unwrap()
}

/// What is wrong with a document.
fn mistakes(document: &Value) -> Vec<Rejection> {
    let data: RuleData = serde_json::from_value(document.clone()).unwrap();
    match data.into_rules() {
        Err(LoadError::Rejected(rejections)) => rejections,
        other => panic!("it is {other:?}"),
    }
}

/// What is wrong with one rule: field and reason.
fn wrong(rule: &Value) -> Vec<(String, String)> {
    let mut rule = rule.clone();
    if rule["kind"] != "system" && rule.get("resource").is_none() {
        rule["resource"] = json!("orders.create");
    }
    let named = |one: &Rejection| (one.field().unwrap_or("").to_owned(), one.reason().to_owned());
    mistakes(&json!([rule])).iter().map(named).collect()
}

/// The only thing that is wrong.
fn only(rule: &Value) -> (String, String) {
    let mut all = wrong(rule);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn is_only(rule: &Value, field: &str, reason: &str) {
    assert_eq!(only(rule), (field.to_owned(), reason.to_owned()), "{rule}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "every word of every kind")]
fn each_kind_is_read_with_every_word() {
    let rules = from_toml(
        r#"
        [[rules]]
        resource = "orders.create"
        kind = "flow"
        id = "create-limit"
        mode = "off"
        limit = 30
        per_ms = 60_000
        behavior = "warm_up"
        warm_up = "1m 30s"
        cold_factor = 4
        precision = "strict"
        buckets = 60
        entrance = "front"

        [[rules]]
        kind = "flow"
        resource = "orders.*"
        qps = 0.5
        behavior = "throttle"
        max_wait = "1500us"
        burst = 5
        origin = "web"

        [[rules]]
        kind = "flow"
        resource = "orders.*"
        qps = 2.5
        behavior = "warm_up_throttle"
        warm_up_ms = 5000
        max_wait_ms = 100
        other_origins = true

        [[rules]]
        kind = "flow"
        resource = "stock.read"
        qps = 7
        associated = "stock.write"

        [[rules]]
        kind = "flow"
        resource = "stock.read"
        qps = 8
        each_origin = true
        mode = "shadow"

        [[rules]]
        kind = "isolation"
        resource = "stock.read"
        max_concurrency = 32
        queue = "50ms"

        [[rules]]
        kind = "slow_ratio"
        resource = "pay"
        slow_rt_ms = 200
        slow_ratio = 0.5
        min_calls = 20
        window_ms = 10_000
        buckets = 10
        open_ms = 2_000
        open_max = "1m"
        probes = 3
        recovery = "ramp"
        ramp_ms = 4_000

        [[rules]]
        kind = "error_ratio"
        resource = "pay"
        error_ratio = 0.25
        window_calls = 100
        recovery = "ramp"

        [[rules]]
        kind = "error_count"
        resource = "pay"
        error_count = 9
        recovery = "probes"

        [[rules]]
        kind = "hot"
        resource = "cart"
        key = "user"
        qps = 10
        per = "2s"
        burst = 20
        max_concurrency = 3
        max_keys = 100
        precision = "sentinel"
        except = [
            { value = "vip", limit = 1000 },
            { value = 42, limit = 1 },
            { value = true, limit = 2 },
            { char = "x", limit = 3 },
            { integer = "-170141183460469231731687303715884105728", limit = 4 },
            { integer = "340282366920938463463374607431768211455", limit = 5 },
        ]

        [[rules]]
        kind = "hot"
        resource = "cart"
        key = -1
        qps = 0.5
        behavior = "throttle"

        [[rules]]
        kind = "authority"
        resource = "admin"
        allow = ["web", "mobile"]

        [[rules]]
        kind = "authority"
        resource = "admin"
        deny = ["batch"]

        [[rules]]
        kind = "system"
        id = "cpu"
        cpu = 0.8
        precision = "sentinel"

        [[rules]]
        kind = "system"
        load = 4

        [[rules]]
        kind = "system"
        qps = 5000
        precision = "exact"

        [[rules]]
        kind = "system"
        max_concurrency = 100

        [[rules]]
        kind = "system"
        avg_rt = "250ms"
        "#,
    );
    let warm_up = Behavior::WarmUp { period: 90_000 * MS, cold_factor: 4.0 };
    let throttle = Behavior::Throttle { max_wait: Duration::from_micros(1_500) };
    let both = Behavior::WarmUpThrottle { period: 5_000 * MS, cold_factor: 3.0, max_wait: 100 * MS };
    let flow = |qps, behavior| FlowRule::new(qps, behavior).unwrap();
    let of_minute = flow(30.0, warm_up).per(60_000 * MS).unwrap().with_precision(Precision::Strict).unwrap();
    let of_minute = of_minute.with_buckets(60).unwrap().for_entrance("front").unwrap().with_mode(Mode::Off);
    let slow = BreakerRule::slow_ratio(200 * MS, 0.5).unwrap().with_min_calls(20).unwrap();
    let slow = slow.with_window(10_000 * MS, 10).unwrap().open_for(2_000 * MS).unwrap();
    let slow = slow.with_max_open(60_000 * MS).unwrap().with_probes(3).unwrap();
    let slow = slow.with_recovery(Recovery::Ramp { over: 4_000 * MS }).unwrap();
    let failing = BreakerRule::error_ratio(0.25).unwrap().with_window_calls(100).unwrap();
    let failing = failing.with_recovery(Recovery::Ramp { over: 5_000 * MS }).unwrap();
    let hot = HotRule::qps("user", 10.0).unwrap().per(2_000 * MS).unwrap().with_burst(20).unwrap();
    let hot =
        hot.with_max_concurrency(3).with_max_keys(100).unwrap().with_precision(Precision::Sentinel).unwrap();
    let hot = hot.except("vip", 1_000.0).unwrap().except(42, 1.0).unwrap().except(true, 2.0).unwrap();
    let hot = hot.except('x', 3.0).unwrap().except(i128::MIN, 4.0).unwrap().except(u128::MAX, 5.0).unwrap();
    let system = |rule: Result<SystemRule, _>| rule.unwrap();
    let expected = RuleSet::new()
        .named("create-limit", "orders.create", of_minute)
        .flow("orders.*", flow(0.5, throttle).with_burst(5).unwrap().for_origin("web").unwrap())
        .flow("orders.*", flow(2.5, both).for_other_origins().unwrap())
        .flow("stock.read", flow(7.0, Behavior::Reject).associated("stock.write").unwrap())
        .flow("stock.read", flow(8.0, Behavior::Reject).for_each_origin().unwrap().with_mode(Mode::Shadow))
        .isolation("stock.read", IsolationRule::new(32).with_queue(50 * MS).unwrap())
        .breaker("pay", slow)
        .breaker("pay", failing)
        .breaker("pay", BreakerRule::error_count(9))
        .hot("cart", hot)
        .hot("cart", HotRule::throttle(-1, 0.5, 500 * MS).unwrap())
        .authority("admin", AuthorityRule::allow(["web", "mobile"]).unwrap())
        .authority("admin", AuthorityRule::deny(["batch"]).unwrap())
        .system_named("cpu", system(SystemRule::cpu(0.8)).with_precision(Precision::Sentinel).unwrap())
        .system(system(SystemRule::load(4.0)))
        .system(system(SystemRule::qps(5_000.0)).with_precision(Precision::Exact).unwrap())
        .system(SystemRule::concurrency(100))
        .system(system(SystemRule::avg_rt(250 * MS)));
    assert_eq!(rules, expected);
    let in_order = |set: &RuleSet| set.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(in_order(&rules), in_order(&expected));
}

#[test]
fn the_same_rules_come_of_each_format_and_of_a_list_alone() {
    let toml = from_toml(
        "[[rules]]\nresource = \"a\"\nkind = \"flow\"\nqps = 10\nbehavior = \"throttle\"\nmax_wait = \"200ms\"",
    );
    let rule =
        json!({"resource": "a", "max_wait_ms": 200, "behavior": "throttle", "qps": 10.0, "kind": "flow"});
    let json: RuleSet = serde_json::from_value(json!({"rules": [rule]})).unwrap();
    let list: RuleSet = serde_json::from_str(&json!([rule]).to_string()).unwrap();
    assert_eq!(toml, json);
    assert_eq!(json, list);
    let empty: RuleSet = serde_json::from_str("[]").unwrap();
    assert_eq!(empty, RuleSet::new());
    let data: RuleData = toml::from_str("rules = []").unwrap();
    assert_eq!(RuleSet::try_from(data), Ok(RuleSet::new()));
}

#[guarded("data.plain", qps = 10, max_concurrency = 3, slow_rt_ms = 200, error_ratio = 0.5, error_count = 9)]
fn plain() -> Result<(), Blocked> {
    Ok(())
}

#[guarded(
    "data.flow",
    rate(limit = 30, per_ms = 60_000, behavior = warm_up, warm_up_ms = 90_000, cold_factor = 4.0, buckets = 60),
    rate(limit = 2_000, per_ms = 500, precision = strict),
    rate(limit = 5, per_ms = 1_000, behavior = throttle, burst = 5),
    rate(limit = 5, per_ms = 2_000, behavior = throttle, max_wait_ms = 40, precision = sentinel),
    rate(limit = 9, per_ms = 1_000, behavior = warm_up_throttle),
    rate(limit = 7, per_ms = 1_000, associated = "data.other")
)]
fn flow() -> Result<(), Blocked> {
    Ok(())
}

#[guarded("data.rest", max_concurrency = 3, queue_ms = 50, deny("batch", "x"), mode = off)]
fn rest() -> Result<(), Blocked> {
    Ok(())
}

#[guarded(
    "data.breakers",
    slow_rt_ms = 100,
    slow_ratio = 0.25,
    error_ratio = 0.5,
    error_count = 19,
    min_calls = 20,
    window_ms = 2_000,
    open_ms = 1_000,
    open_max_ms = 60_000,
    probes = 2,
    recovery = ramp
)]
fn breakers() -> Result<(), Blocked> {
    Ok(())
}

#[guarded("data.last_calls", error_ratio = 0.5, window_calls = 50, allow("web"))]
fn last_calls() -> Result<(), Blocked> {
    Ok(())
}

#[guarded(
    "data.hot",
    hot(key = user, qps = 10),
    hot(key = user, name = "who", qps = 100, per_ms = 2_000, burst = 7, max_concurrency = 3, max_keys = 9, precision = sentinel),
    hot(key = user, qps = 2, behavior = throttle),
    hot(key = user, qps = 2, behavior = throttle, max_wait_ms = 20),
    hot(key = user, max_concurrency = 5, except("vip" => 1_000, 42 => 1, true => 2, 'x' => 3, -7 => 4))
)]
fn hot(user: &str) -> Result<(), Blocked> {
    let _ = user;
    Ok(())
}

/// The rules that attributes gave a resource, by kind and place.
fn of_attribute(registry: &Registry, resource: &str) -> Vec<(String, Rule)> {
    let stats = registry.stats(resource).unwrap();
    let mut rules: Vec<_> = stats
        .rules()
        .map(|(id, rule)| (format!("{}/{}", id.kind().name(), id.position()), rule.clone()))
        .collect();
    rules.sort_by(|(one, _), (other, _)| one.cmp(other));
    rules
}

#[test]
fn a_rule_in_the_attributes_words_is_the_attributes_rule() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    registry.scope(|| {
        let _ = (plain(), flow(), rest(), breakers(), last_calls(), hot("ann"));
    });
    let breaker = |kind: &str, own: Value| {
        let mut rule = json!({
            "kind": kind, "min_calls": 20, "window_ms": 2000, "open_ms": 1000, "open_max_ms": 60000, "probes": 2,
            "recovery": "ramp"
        });
        rule.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        rule
    };
    for (resource, rules) in [
        (
            "data.plain",
            vec![
                json!({"kind": "flow", "qps": 10}),
                json!({"kind": "isolation", "max_concurrency": 3}),
                json!({"kind": "slow_ratio", "slow_rt_ms": 200}),
                json!({"kind": "error_ratio", "error_ratio": 0.5}),
                json!({"kind": "error_count", "error_count": 9}),
            ],
        ),
        (
            "data.flow",
            vec![
                json!({
                    "kind": "flow", "limit": 30, "per_ms": 60000, "behavior": "warm_up", "warm_up_ms": 90000,
                    "cold_factor": 4, "buckets": 60
                }),
                json!({"kind": "flow", "limit": 2000, "per_ms": 500, "precision": "strict"}),
                json!({"kind": "flow", "limit": 5, "per_ms": 1000, "behavior": "throttle", "burst": 5}),
                json!({
                    "kind": "flow", "limit": 5, "per_ms": 2000, "behavior": "throttle", "max_wait_ms": 40,
                    "precision": "sentinel"
                }),
                json!({"kind": "flow", "qps": 9, "behavior": "warm_up_throttle"}),
                json!({"kind": "flow", "qps": 7, "associated": "data.other"}),
            ],
        ),
        (
            "data.rest",
            vec![
                json!({"kind": "isolation", "max_concurrency": 3, "queue_ms": 50, "mode": "off"}),
                json!({"kind": "authority", "deny": ["batch", "x"], "mode": "off"}),
            ],
        ),
        (
            "data.breakers",
            vec![
                breaker("slow_ratio", json!({"slow_rt_ms": 100, "slow_ratio": 0.25})),
                breaker("error_ratio", json!({"error_ratio": 0.5})),
                breaker("error_count", json!({"error_count": 19})),
            ],
        ),
        (
            "data.last_calls",
            vec![
                json!({"kind": "error_ratio", "error_ratio": 0.5, "window_calls": 50}),
                json!({"kind": "authority", "allow": ["web"]}),
            ],
        ),
        (
            "data.hot",
            vec![
                json!({"kind": "hot", "key": "user", "qps": 10}),
                json!({
                    "kind": "hot", "key": "who", "qps": 100, "per_ms": 2000, "burst": 7, "max_concurrency": 3,
                    "max_keys": 9, "precision": "sentinel"
                }),
                json!({"kind": "hot", "key": "user", "qps": 2, "behavior": "throttle"}),
                json!({"kind": "hot", "key": "user", "qps": 2, "behavior": "throttle", "max_wait_ms": 20}),
                json!({
                    "kind": "hot", "key": "user", "max_concurrency": 5, "except": [
                        {"value": "vip", "limit": 1000}, {"value": 42, "limit": 1}, {"value": true, "limit": 2},
                        {"char": "x", "limit": 3}, {"value": -7, "limit": 4}
                    ]
                }),
            ],
        ),
    ] {
        let mut set = RuleSet::new();
        for rule in rules {
            set = set.rule(resource, serde_json::from_value::<Rule>(rule).unwrap());
        }
        let mut read: Vec<_> = set
            .iter()
            .map(|named| (named.to_string().replace(&format!("{resource}/"), ""), named.rule().clone()))
            .collect();
        read.sort_by(|(one, _), (other, _)| one.cmp(other));
        assert_eq!(read, of_attribute(&registry, resource), "{resource}");
    }
}

#[test]
fn rules_that_were_read_are_loaded_under_their_ids_and_hold() {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();
    let rules = from_toml(
        "[[rules]]\nid = \"all-orders\"\nresource = \"orders.*\"\nkind = \"flow\"\nqps = 2\n\
         [[rules]]\nresource = \"orders.list\"\nkind = \"flow\"\nqps = 3",
    );
    assert_eq!(registry.load(rules).unwrap().added(), 2);
    let passed = |resource: &str| (0..10).filter(|_| registry.enter(resource).is_ok()).count();
    assert_eq!((passed("orders.create"), passed("orders.list"), passed("stock.read")), (2, 3, 10));
    let stats = registry.stats("orders.create").unwrap();
    let ids: Vec<_> = stats.rules().map(|(id, _)| id).collect();
    assert_eq!(serde_json::to_value(&ids).unwrap(), json!(["loaded/all-orders"]));
    assert_eq!(serde_json::to_value((ids[0].kind(), Mode::Shadow)).unwrap(), json!(["flow", "shadow"]));
}

/// Case I04.
#[test]
fn of_three_rules_the_one_that_is_wrong_is_named_and_nothing_is_lost() {
    let document = json!({"rules": [
        {"resource": "a", "kind": "flow", "qps": 10},
        {"resource": "b", "kind": "flow", "id": "b-limit", "qps": -1},
        {"resource": "c", "kind": "isolation", "max_concurrency": 3},
    ]});
    let rejections = mistakes(&document);
    let [one] = &rejections[..] else { panic!("{rejections:?}") };
    assert_eq!(
        (one.index(), one.id(), one.resource(), one.field()),
        (Some(1), Some("b-limit"), Some("b"), Some("qps"))
    );
    assert_eq!(one.reason(), "a limit of -1 is not a number of permits: it must be 0 or more, and finite");
    let error = serde_json::from_value::<RuleSet>(document).unwrap_err();
    assert_eq!(error.to_string(), format!("the rules are not loaded: {one}"));
    assert_eq!(
        one.to_string(),
        "rule 1 `b-limit` of `b`: `qps`: a limit of -1 is not a number of permits: it must be 0 or more, and finite"
    );
}

/// Case A08.
#[test]
fn an_interval_that_its_buckets_do_not_divide_is_told_with_both_numbers() {
    let breaker = |buckets: u32| json!({"kind": "error_count", "error_count": 1, "window_ms": 1000, "buckets": buckets});
    let flow =
        |buckets: u32, per: &str| json!({"kind": "flow", "limit": 2000, "per": per, "buckets": buckets});
    let told = |interval: &str, n: u32| {
        format!("an interval of {interval} does not divide into {n} equal buckets of at least 1µs")
    };
    for buckets in [3, 0] {
        is_only(&breaker(buckets), "buckets", &told("1s", buckets));
        is_only(&flow(buckets, "1s"), "buckets", &told("1s", buckets));
    }
    is_only(&flow(101, "100us"), "buckets", &told("100µs", 101));
    is_only(&flow(200, "100us"), "buckets", &told("100µs", 200));
    is_only(&breaker(1_000_000), "buckets", "a window cannot have 1000000 buckets: at most 10000");
    // The buckets of a default are nobody's mistake: the interval is.
    let odd = json!({"kind": "flow", "limit": 2000, "per": "1001ns"});
    is_only(&odd, "per", &told("1.001µs", 100));
}

#[test]
fn every_mistake_of_every_rule_is_told_at_once() {
    let document = json!({"rules": [
        {"resource": "a", "kind": "slow_ratio", "slow_ratio": 2, "min_calls": 0, "probes": 2000, "open_ms": "5s",
         "window_calls": 0, "recovery": "rampe", "burst": 5, "openMs": 3},
        17,
        {"kind": "flow", "limit": 10, "burst": 3, "warm_up_ms": 5, "origin": "", "resource": "", "mode": "on"},
        {"resource": "d", "kind": "hot", "key": "", "max_keys": 0, "except": [{"value": 1.5, "limit": 1}]},
        {"resource": "e", "kind": "system"},
        {"resource": "f", "id": 7},
        {"resource": "g", "id": "twice", "kind": "isolation", "max_concurrency": 1},
        {"resource": "h", "id": "twice", "kind": "isolation", "max_concurrency": 1},
    ], "rule": []});
    let told: Vec<String> = mistakes(&document).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "`rule`: unknown field `rule`; did you mean `rules`?",
            "rule 0 of `a`: `burst`: `burst` goes with rules of the kinds `flow` and `hot`, not with `slow_ratio`",
            "rule 0 of `a`: `openMs`: unknown field `openMs`; did you mean `open_ms`?",
            "rule 0 of `a`: `open_ms`: `open_ms` takes whole milliseconds; text like \"200ms\" goes with `open`",
            "rule 0 of `a`: `recovery`: unknown recovery `rampe`; did you mean `ramp`?",
            "rule 0 of `a`: `slow_rt_ms`: `slow_rt_ms` is missing",
            "rule 0 of `a`: `slow_ratio`: a ratio of 2 is not a share of calls: it must be between 0 and 1",
            "rule 0 of `a`: `min_calls`: a breaker that needs 0 calls has nothing to judge by: `min_calls` must be at \
             least 1",
            "rule 0 of `a`: `window_calls`: a window of 0 calls cannot be kept: it takes 1 to 10000",
            "rule 0 of `a`: `probes`: 2000 probes cannot decide a recovery: it takes 1 to 1023",
            "rule 1: a rule is a map of words, not a number",
            "rule 2: `resource`: a name must not be empty",
            "rule 2: `mode`: unknown mode `on`: it takes `enforce`, `off` and `shadow`",
            "rule 2: `origin`: a name must not be empty",
            "rule 2: `limit`: `limit` needs `per_ms`, the interval; a limit per second is called `qps`",
            "rule 2: `warm_up_ms`: `warm_up_ms` needs `behavior` to be `warm_up` or `warm_up_throttle`",
            "rule 2: `burst`: a burst of 3 needs a rule that throttles, in a precision other than `sentinel`",
            "rule 3 of `d`: `except`: exception 0: `value` takes no fractions: they are no keys. A number that this \
             format cannot hold is written as text: `integer = \"18446744073709551616\"`",
            "rule 3 of `d`: `qps`: a hot rule without `qps` and `max_concurrency` would limit nothing",
            "rule 3 of `d`: `max_keys`: a hot rule cannot tell 0 values apart: it takes 1 to 1000000",
            "rule 3 of `d`: `key`: the name of a key must not be empty",
            "rule 4 of `e`: `resource`: a system rule is for all inbound calls together: it has no `resource`",
            "rule 4 of `e`: `load`: the figure to watch is missing: one of `load`, `cpu`, `qps`, `max_concurrency` and \
             `avg_rt_ms`",
            "rule 5 of `f`: `id`: `id` takes text, not a number",
            "rule 5 of `f`: `kind`: `kind` is missing: one of `flow`, `isolation`, `slow_ratio`, `error_ratio`, \
             `error_count`, `hot`, `authority` and `system`",
            "rule 7 `twice` of `h`: `id`: another rule of the set has the same id",
        ]
    );
    let error = serde_json::from_str::<RuleSet>(&document.to_string()).unwrap_err().to_string();
    assert!(told[..20].iter().all(|one| error.contains(one)), "{error}");
    assert!(error.contains("\n  and 6 more at line 1 column "), "{error}");
}

#[test]
fn a_document_that_is_no_list_of_rules_is_refused() {
    let error = |json: &str| serde_json::from_str::<RuleData>(json).unwrap_err().to_string();
    let told = "rules are a list of maps, or a map with such a list as `rules`, not";
    for (json, what) in [("17", "a number"), ("null", "null"), ("\"x\"", "text"), ("true", "`true`")] {
        assert_eq!(error(json), format!("{told} {what} at line 1 column {}", json.len()));
    }
    let told = |document: Value| mistakes(&document).iter().map(ToString::to_string).collect::<Vec<_>>();
    // A file that was cut short does not take all rules away.
    assert_eq!(told(json!({})), ["`rules`: `rules` is missing; a set without rules says `rules = []`"]);
    assert_eq!(told(json!({"rules": null})), ["`rules`: `rules` takes a list of maps, not null"]);
    assert_eq!(
        told(json!({"rules": [], "server": 1})),
        ["`server`: unknown field `server`; only `rules` is known here"]
    );
    let twice: RuleData = serde_json::from_str(r#"{"rules": [], "rules": []}"#).unwrap();
    assert_eq!(
        twice.into_rules().unwrap_err().to_string(),
        "the rules are not loaded: `rules`: `rules` is given twice"
    );
}

#[test]
fn an_unknown_field_finds_the_one_that_was_meant() {
    let flow = |field: &str, value: Value| {
        let mut rule = json!({"kind": "flow", "qps": 10});
        rule[field] = value;
        rule
    };
    is_only(&flow("qsp", json!(1)), "qsp", "unknown field `qsp`; did you mean `qps`?");
    is_only(
        &flow("behaviour", json!("reject")),
        "behaviour",
        "unknown field `behaviour`; did you mean `behavior`?",
    );
    is_only(&flow("resorce", json!("x")), "resorce", "unknown field `resorce`; did you mean `resource`?");
    is_only(
        &flow("colour", json!("x")),
        "colour",
        "unknown field `colour`: a rule of the kind `flow` takes `qps`, `limit`, `per_ms`, `behavior`, `warm_up_ms`, \
         `cold_factor`, `max_wait_ms`, `burst`, `precision`, `buckets`, `associated`, `entrance`, `origin`, \
         `other_origins`, `each_origin` and `mode`",
    );
    is_only(
        &flow("queue_ms", json!(1)),
        "queue_ms",
        "`queue_ms` goes with a rule of the kind `isolation`, not with `flow`",
    );
    is_only(
        &flow("open", json!("1s")),
        "open",
        "`open` goes with rules of the kinds `slow_ratio`, `error_ratio` and `error_count`, not with `flow`",
    );
    is_only(&json!({"kind": "flwo", "qps": 1}), "kind", "unknown kind `flwo`; did you mean `flow`?");
    is_only(&json!({"kind": 3, "qps": 1}), "kind", "`kind` takes a word, not a number");
    let reason = mistakes(&json!([{"kind": "flow", "qps": 1}]))[0].to_string();
    assert_eq!(reason, "rule 0: `resource`: `resource` is missing");
}

#[test]
fn a_word_of_sentinel_is_told_ours() {
    let told = |kind: &str, field: &str| {
        let mut rule = json!({"kind": kind});
        rule[field] = json!(1);
        let all = wrong(&rule);
        all.into_iter().find(|(one, _)| one == field).unwrap().1
    };
    for (kind, field, ours) in [
        ("flow", "count", "`qps`"),
        ("isolation", "count", "`max_concurrency`"),
        ("slow_ratio", "count", "`slow_rt_ms`"),
        ("error_count", "count", "`error_count`"),
        ("hot", "count", "`qps`"),
        ("flow", "grade", "`kind` that says what is counted"),
        ("error_ratio", "timeWindow", "`open_ms`, in milliseconds"),
        ("flow", "strategy", "`associated` or `entrance` alone that says it"),
        ("slow_ratio", "strategy", "`kind`: `slow_ratio`, `error_ratio` or `error_count`"),
        ("flow", "controlBehavior", "`behavior`"),
        ("flow", "warmUpPeriodSec", "`warm_up_ms`, in milliseconds"),
        ("flow", "maxQueueingTimeMs", "`max_wait_ms`"),
        ("flow", "limitApp", "`origin`, or `other_origins = true`; `default` is left out"),
        ("authority", "limitApp", "`allow` or `deny`, a list"),
        ("error_ratio", "minRequestAmount", "`min_calls`"),
        ("error_ratio", "stat_interval_ms", "`window_ms`"),
        ("hot", "paramIdx", "`key`, a name or a place"),
        ("system", "highestCpuUsage", "`cpu`"),
        ("system", "maxThread", "`max_concurrency`"),
    ] {
        assert_eq!(told(kind, field), format!("`{field}` is Sentinel's word; here it is {ours}"));
    }
}

#[test]
fn a_time_has_two_names_each_with_a_type_of_its_own() {
    let flow = |field: &str, value: Value| {
        let mut rule = json!({"kind": "flow", "qps": 10, "behavior": "throttle"});
        rule[field] = value;
        rule
    };
    for (field, value, reason) in [
        (
            "max_wait_ms",
            json!("200ms"),
            "`max_wait_ms` takes whole milliseconds; text like \"200ms\" goes with `max_wait`",
        ),
        (
            "max_wait_ms",
            json!(0.5),
            "`max_wait_ms` takes whole milliseconds; finer times are text, like `max_wait = \"1500us\"`",
        ),
        ("max_wait_ms", json!(-1), "`max_wait_ms` must not be negative"),
        ("max_wait_ms", json!(1e30), "`max_wait_ms` is at most 18446744073709551615 milliseconds"),
        ("max_wait_ms", json!(null), "`max_wait_ms` is null: give it a value, or leave it out"),
        ("max_wait_ms", json!(u64::MAX), "a call cannot wait for 18446744073709551.615s: at most a year"),
        (
            "max_wait",
            json!(200),
            "`max_wait` takes text like \"200ms\"; a number of milliseconds goes with `max_wait_ms`",
        ),
        (
            "max_wait",
            json!("200"),
            "`max_wait` takes a time like \"200ms\", not \"200\": it has no unit: one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`",
        ),
        ("max_wait", json!("367d"), "a call cannot wait for 31708800s: at most a year"),
        ("max_wait", json!([1]), "`max_wait` takes text like \"200ms\", not a list"),
    ] {
        is_only(&flow(field, value), field, reason);
    }
    let both =
        json!({"kind": "flow", "qps": 10, "behavior": "throttle", "max_wait_ms": 1, "max_wait": "1ms"});
    let (_, reason) = only(&both);
    assert!(reason.ends_with("say the same: give one of them"), "{reason}");
}

#[test]
fn words_that_do_not_go_together_are_told() {
    for (rule, field, reason) in [
        (
            json!({"kind": "flow", "qps": 1, "limit": 1, "per_ms": 1000}),
            "limit",
            "`limit` does not go with `qps`: the limit is per second, or per interval",
        ),
        (json!({"kind": "flow", "qps": 1, "per": "2s"}), "per", "`per` needs `limit` instead of `qps`"),
        (
            json!({"kind": "flow", "qps": 1, "max_wait": "2s"}),
            "max_wait",
            "`max_wait` needs `behavior` to be `throttle` or `warm_up_throttle`",
        ),
        (
            json!({"kind": "flow", "qps": 1, "behavior": "throttle", "cold_factor": 2}),
            "cold_factor",
            "`cold_factor` needs `behavior` to be `warm_up` or `warm_up_throttle`",
        ),
        (
            json!({"kind": "flow", "qps": 1, "behavior": "throttle", "associated": "b"}),
            "associated",
            "a rule that counts another resource can only reject: nobody waits for another's calls",
        ),
        (
            json!({"kind": "flow", "qps": 1, "origin": "a", "each_origin": true}),
            "each_origin",
            "`each_origin` does not go with `origin`: a rule is for one entrance, origin or associated resource",
        ),
        (
            json!({"kind": "error_ratio", "error_ratio": 1, "window_calls": 9, "window": "1s"}),
            "window_calls",
            "`window_calls` does not go with `window`: a window is of time or of calls",
        ),
        (
            json!({"kind": "error_ratio", "error_ratio": 1, "window_calls": 9, "buckets": 2}),
            "buckets",
            "`buckets` needs a window of time, and none of `window_calls`",
        ),
        (
            json!({"kind": "error_ratio", "error_ratio": 1, "ramp_ms": 9}),
            "ramp_ms",
            "`ramp_ms` needs `recovery` to be `ramp`",
        ),
        (
            json!({"kind": "error_ratio", "error_ratio": 1, "open_max_ms": 9}),
            "open_max_ms",
            "an open time cannot grow from 5s to 9ms: the longest must be no shorter, and at most a year",
        ),
        (
            json!({"kind": "error_count", "error_count": 9, "window_calls": 9}),
            "error_count",
            "more than 9 exceptions never fit a window of 9 calls: the count must be lower",
        ),
        (
            json!({"kind": "hot", "key": 0, "max_concurrency": 3, "burst": 1}),
            "burst",
            "`burst` goes with a rate, which this hot rule does not have",
        ),
        (
            json!({"kind": "hot", "key": 0, "max_concurrency": 3, "per": "1s"}),
            "per",
            "`per_ms` goes with a rate, which this hot rule does not have",
        ),
        (
            json!({"kind": "hot", "key": 0, "qps": 3, "except": [{"value": 1, "limit": 1}, {"value": 1, "limit": 2}]}),
            "except",
            "exception 1 is for a value that has a limit of its own already",
        ),
        (
            json!({"kind": "authority", "allow": ["a"], "deny": ["b"]}),
            "deny",
            "`deny` does not go with `allow`: whom `allow` does not name is denied",
        ),
        (
            json!({"kind": "system", "cpu": 0.5, "precision": "exact"}),
            "precision",
            "`precision` `exact` needs `qps`: no other figure is counted",
        ),
        (
            json!({"kind": "system", "max_concurrency": 5, "precision": "strict"}),
            "precision",
            "`precision` `strict` needs `qps`: no other figure is counted",
        ),
        (
            json!({"kind": "system", "load": 1, "cpu": 0.5}),
            "cpu",
            "`cpu` does not go with `load`: a rule watches one figure; write a rule for each",
        ),
    ] {
        is_only(&rule, field, reason);
    }
}

#[test]
fn one_mistake_is_not_told_as_several() {
    for misspelt in ["knid", "Kind", "kin"] {
        let mut rule = json!({"qps": 5});
        rule[misspelt] = json!("flow");
        is_only(&rule, misspelt, &format!("unknown field `{misspelt}`; did you mean `kind`?"));
    }
    is_only(
        &json!({"key": "flow", "qps": 5}),
        "kind",
        "`kind` is missing: one of `flow`, `isolation`, `slow_ratio`, `error_ratio`, `error_count`, `hot`, `authority` \
         and `system`",
    );
    for misspelt in ["resuorce", "Resource", "resources"] {
        let told = mistakes(&json!([{misspelt: "a", "kind": "flow", "qps": 5}]));
        let told: Vec<_> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [format!("rule 0: `{misspelt}`: unknown field `{misspelt}`; did you mean `resource`?")]
        );
    }
    for misspelt in ["qsp", "limits", "count"] {
        let mut rule = json!({"kind": "flow"});
        rule[misspelt] = json!(10);
        assert_eq!(only(&rule).0, misspelt);
    }
    assert_eq!(
        only(&json!({"kind": "flow", "behaviour": "throttle", "qps": 1, "max_wait": "1s"})).0,
        "behaviour"
    );
    let slow = json!({"kind": "error_ratio", "error_ratio": 1, "open_ms": "2s", "open_max_ms": 3000});
    assert_eq!(only(&slow).0, "open_ms");
    let throttle = json!({"kind": "flow", "qps": 0.5, "behavior": "throtle", "max_wait_ms": 20, "burst": 3});
    is_only(&throttle, "behavior", "unknown behavior `throtle`; did you mean `throttle`?");
    let interval = json!({"kind": "flow", "limit": 2000, "per_ms": "2s", "buckets": 64});
    assert_eq!(only(&interval).0, "per_ms");
    let window = json!({"kind": "error_ratio", "error_ratio": 1, "window_ms": "2s", "buckets": 64});
    assert_eq!(only(&window).0, "window_ms");
    let calls = json!({"kind": "error_ratio", "error_ratio": 1, "min_calls": "2", "window_calls": 3});
    assert_eq!(only(&calls).0, "min_calls");
}

#[test]
fn numbers_that_are_none_of_ours_are_told() {
    let flow = |value: Value| {
        let mut rule = json!({"kind": "flow"});
        rule["qps"] = value;
        only(&rule).1
    };
    assert_eq!(flow(json!("100")), "`qps` takes a number, not text");
    assert_eq!(flow(json!(true)), "`qps` takes a number, not `true`");
    assert_eq!(flow(json!(null)), "`qps` is null: give it a value, or leave it out");
    assert_eq!(flow(json!({"a": [[[[[[[[[[]]]]]]]]]]})), "`qps` takes a number, not a map");
    let breaker = |value: Value| {
        let mut rule = json!({"kind": "error_ratio", "error_ratio": 0.5});
        rule["min_calls"] = value;
        only(&rule).1
    };
    assert_eq!(breaker(json!(1.5)), "`min_calls` takes a whole number, not 1.5");
    assert_eq!(breaker(json!(-1)), "`min_calls` must not be negative");
    assert_eq!(breaker(json!(4_294_967_296_u64)), "`min_calls` is at most 4294967295");
    assert_eq!(breaker(json!(u64::MAX)), "`min_calls` is at most 4294967295");
    assert_eq!(breaker(json!(-1e300)), "`min_calls` must not be negative");
    // Not every format tells whole numbers from others.
    assert!(
        serde_json::from_value::<Rule>(json!({"kind": "error_ratio", "error_ratio": 1, "min_calls": 7.0}))
            .is_ok()
    );

    let toml = |value: &str| {
        let document = format!("[[rules]]\nresource = \"a\"\nkind = \"flow\"\nqps = {value}");
        toml::from_str::<RuleData>(&document).unwrap().into_rules().unwrap_err().to_string()
    };
    for value in ["nan", "inf", "-inf"] {
        let shown = if value == "nan" { "NaN" } else { value };
        assert_eq!(
            toml(value),
            format!(
                "the rules are not loaded: rule 0 of `a`: `qps`: a limit of {shown} is not a number of permits: it must \
                 be 0 or more, and finite"
            )
        );
    }
    assert!(serde_json::from_str::<RuleData>(r#"[{"qps": 1e400}]"#).is_err(), "no number of the format");
}

#[test]
fn what_is_given_twice_is_told() {
    let json = r#"[{"resource": "a", "kind": "flow", "qps": 1, "qps": 2, "kind": "hot"}]"#;
    let Err(LoadError::Rejected(rejections)) = serde_json::from_str::<RuleData>(json).unwrap().into_rules()
    else {
        panic!("it was accepted");
    };
    let told: Vec<_> = rejections.iter().map(|one| (one.field().unwrap(), one.reason())).collect();
    assert_eq!(told, [("qps", "`qps` is given twice"), ("kind", "`kind` is given twice")]);
}

#[test]
fn long_and_deep_input_is_told_shortly() {
    let long = "x".repeat(1 << 20);
    for rule in [
        json!({"kind": "flow", "qps": 1, "resource": long}),
        json!({"kind": long, "resource": "a"}),
        json!({"kind": "flow", "qps": 1, "resource": "a", "behavior": long}),
        json!({"kind": "flow", "qps": 1, "resource": "a", "id": long}),
        json!({"kind": "flow", "qps": 1, "resource": "a", long.as_str(): 1}),
        json!({"kind": "flow", "limit": 1, "resource": "a", "per": long}),
        json!({"kind": "flow", "qps": long, "resource": "a"}),
        json!({"kind": "authority", "resource": "a", "allow": [long]}),
        json!({"kind": "hot", "resource": "a", "key": long, "qps": 1}),
        json!({"kind": "hot", "resource": "a", "key": 0, "qps": 1, "except": [{"value": long, "limit": 1}]}),
        json!({"kind": "hot", "resource": "a", "key": 0, "qps": 1, "except": [{"integer": long, "limit": 1}]}),
        json!({"kind": "hot", "resource": "a", "key": 0, "qps": 1, "except": [{"char": long, "limit": 1}]}),
        json!({"kind": "hot", "resource": "a", "key": 0, "qps": 1, "except": [{long.as_str(): 1, "limit": 1}]}),
    ] {
        let rejections = mistakes(&json!([rule]));
        assert_eq!(rejections.len(), 1, "{rejections:?}");
        assert!(rejections[0].to_string().len() < 500, "{}", rejections[0]);
        let kept = format!("{rejections:?}").len();
        assert!(kept < 2_000, "a report keeps {kept} bytes");
    }
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let data: RuleData = serde_json::from_str(&format!("[{{\"kind\": {deep}}}, {deep}]")).unwrap();
    let told = data.into_rules().unwrap_err().to_string();
    assert!(told.contains("`kind` takes a word, not a list"), "{told}");
    assert!(told.contains("rule 1: a rule is a map of words, not a list"), "{told}");
}

#[test]
fn of_many_mistakes_the_first_100_are_told_and_20_shown() {
    let more = "there are more mistakes: the first 100 are told";
    let rules = |n: usize| format!("[{}]", vec!["{}"; n].join(","));
    let rejections = |document: &str| {
        let data: RuleData = serde_json::from_str(document).unwrap();
        let Err(LoadError::Rejected(rejections)) = data.into_rules() else { panic!("it was accepted") };
        rejections
    };
    let hundred = rejections(&rules(100));
    assert_eq!((hundred.len(), hundred[99].field()), (100, Some("kind")));
    let megabyte = rules(350_000);
    let told = rejections(&megabyte);
    assert_eq!(told[..100], hundred);
    assert_eq!((told.len(), told[100].to_string().as_str()), (101, more));
    let message = serde_json::from_str::<RuleSet>(&megabyte).unwrap_err().to_string();
    assert!(message.len() < 4_096, "{message}");
    assert!(message.contains("\n  and more than 80 more at line 1"), "{message}");

    let unknown: Vec<_> = (0..10_000).map(|i| format!("\"max_wat_{i:05}\": 0")).collect();
    let fields = unknown.join(", ");
    let told = rejections(&format!("[{{\"resource\": \"a\", \"kind\": \"flow\", \"qps\": 1, {fields}}}]"));
    assert_eq!((told.len(), told[99].field(), told[100].reason()), (101, Some("max_wat_00099"), more));
    let told = rejections(&format!("{{{fields}, \"rules\": []}}"));
    assert_eq!((told.len(), told[99].field(), told[100].reason()), (101, Some("max_wat_00099"), more));
    let alone = serde_json::from_str::<Rule>(&format!("{{\"kind\": \"isolation\", {fields}}}")).unwrap_err();
    let alone = alone.to_string();
    assert!(alone.len() < 8_192 && alone.contains("; and more than 80 more at line 1"), "{alone}");

    let many: RulePatch = serde_json::from_str(&format!("{{{fields}}}")).unwrap();
    let set = RuleSet::new().isolation("a", IsolationRule::new(3));
    let named = set.iter().next().unwrap();
    for error in [named.patched(&many), named.rule().patched(&many)].map(Result::unwrap_err) {
        let LoadError::Rejected(told) = &error else { panic!("{error}") };
        assert_eq!((told.len(), told[99].field(), told[100].reason()), (101, Some("max_wat_00099"), more));
        assert!(error.to_string().len() < 8_192, "{error}");
    }
    let twice = vec!["\"qps\": 1"; 10_000].join(", ");
    let twice: RulePatch = serde_json::from_str(&format!("{{{twice}}}")).unwrap();
    let LoadError::Rejected(told) = named.patched(&twice).unwrap_err() else { panic!("no mistake") };
    assert_eq!(told.len(), 101);
}

#[test]
fn a_rule_alone_is_read_without_a_name() {
    let rule: Rule = serde_json::from_str(r#"{"kind": "isolation", "max_concurrency": 8}"#).unwrap();
    assert_eq!(rule, IsolationRule::new(8).into());
    let error =
        serde_json::from_str::<Rule>(r#"{"kind": "flow", "qps": -1, "id": "x", "burst": 1}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`id`: `id` does not belong to a rule that stands alone; `qps`: a limit of -1 is not a number of permits: it must \
         be 0 or more, and finite; `burst`: a burst of 1 needs a rule that throttles, in a precision other than \
         `sentinel` at line 1 column 50"
    );
}

#[test]
fn only_what_differs_from_the_default_is_written() {
    let throttle = Behavior::Throttle { max_wait: Duration::from_micros(1_500) };
    let set = RuleSet::new()
        .named("create", "orders.*", FlowRule::new(100.0, Behavior::Reject).unwrap())
        .flow("a", FlowRule::new(0.5, throttle).unwrap().with_mode(Mode::Shadow))
        .breaker("a", BreakerRule::error_ratio(0.5).unwrap())
        .hot(
            "a",
            HotRule::qps("user", 10.0).unwrap().except('x', 1.5).unwrap().except(u64::MAX, 2.0).unwrap(),
        )
        .system_named("cpu", SystemRule::cpu(0.8).unwrap());
    let ramp = |open: u64| {
        let rule = BreakerRule::error_count(3).open_for(Duration::from_millis(open)).unwrap();
        serde_json::to_value(Rule::from(rule.with_recovery(Recovery::Ramp { over: 5_000 * MS }).unwrap()))
            .unwrap()
    };
    assert_eq!(ramp(5_000), json!({"kind": "error_count", "error_count": 3, "recovery": "ramp"}));
    assert_eq!(
        ramp(2_000),
        json!({"kind": "error_count", "error_count": 3, "open_ms": 2000, "recovery": "ramp", "ramp_ms": 5000})
    );
    assert_eq!(
        serde_json::to_value(&set).unwrap(),
        json!({"rules": [
            {"resource": "orders.*", "id": "create", "kind": "flow", "qps": 100},
            {"resource": "a", "kind": "flow", "qps": 0.5, "behavior": "throttle", "max_wait": "1500us", "mode": "shadow"},
            {"resource": "a", "kind": "error_ratio", "error_ratio": 0.5},
            {"resource": "a", "kind": "hot", "key": "user", "qps": 10, "except": [
                {"char": "x", "limit": 1.5}, {"integer": "18446744073709551615", "limit": 2}
            ]},
            {"id": "cpu", "kind": "system", "cpu": 0.8},
        ]})
    );
    assert_eq!(
        toml::to_string(&set).unwrap().split("\n\n").next().unwrap(),
        "[[rules]]\nresource = \"orders.*\"\nid = \"create\"\nkind = \"flow\"\nqps = 100"
    );
}

#[test]
fn what_cannot_be_written_is_an_error_and_no_other_rule() {
    let long = HotRule::qps("user", 10.0).unwrap().except("x".repeat(2_000), 1.0).unwrap();
    let error = serde_json::to_string(&Rule::from(long.clone())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an exception for a text of over 1 KiB cannot be written: only its beginning is known"
    );
    assert!(toml::to_string(&RuleSet::new().hot("a", long)).is_err());
    let longest = HotRule::qps("user", 10.0).unwrap().except("x".repeat(1_024), 1.0).unwrap();
    assert!(serde_json::to_string(&Rule::from(longest)).is_ok());
}

fn patch(changes: Value) -> RulePatch {
    serde_json::from_value(changes).unwrap()
}

#[test]
fn a_patch_changes_some_words_and_keeps_the_others() {
    let throttle = Behavior::Throttle { max_wait: 200 * MS };
    let rule: Rule =
        FlowRule::new(10.0, throttle).unwrap().with_burst(3).unwrap().with_mode(Mode::Off).into();
    for (changes, told) in [
        (json!({}), "flow: 10 per 1s, throttled, waiting 200ms at most, 3 at once"),
        (json!({"qps": 20}), "flow: 20 per 1s, throttled, waiting 200ms at most, 3 at once"),
        (json!({"max_wait": "1500us"}), "flow: 10 per 1s, throttled, waiting 1.5ms at most, 3 at once"),
        (json!({"max_wait_ms": null}), "flow: 10 per 1s, throttled, waiting 500ms at most, 3 at once"),
        (json!({"max_wait": null, "burst": null}), "flow: 10 per 1s, throttled, waiting 500ms at most"),
        (json!({"limit": 90, "per": "1m"}), "flow: 90 per 60s, throttled, waiting 200ms at most, 3 at once"),
        (json!({"per_ms": 2000}), "flow: 10 per 2s, throttled, waiting 200ms at most, 3 at once"),
        (json!({"limit": 20}), "flow: 20 per 1s, throttled, waiting 200ms at most, 3 at once"),
        (
            json!({"behavior": null, "max_wait_ms": null, "burst": null, "entrance": "front"}),
            "flow: 10 per 1s, exact, for entrance `front`",
        ),
    ] {
        let patched = rule.patched(&patch(changes.clone())).unwrap();
        assert_eq!((patched.to_string().as_str(), patched.mode()), (told, Mode::Off), "{changes}");
    }
    assert_eq!(rule.patched(&patch(json!({"mode": null}))).unwrap().mode(), Mode::Enforce);
}

#[test]
fn what_a_patch_says_otherwise_replaces_what_was_said() {
    let patched = |rule: Value, changes: Value| {
        let rule: Rule = serde_json::from_value(rule).unwrap();
        serde_json::to_value(rule.patched(&patch(changes)).unwrap()).unwrap()
    };
    let flow = json!({"kind": "flow", "limit": 90, "per_ms": 60000, "origin": "web"});
    assert_eq!(patched(flow.clone(), json!({"qps": 5})), json!({"kind": "flow", "qps": 5, "origin": "web"}));
    assert_eq!(
        patched(flow.clone(), json!({"each_origin": true})),
        json!({"kind": "flow", "limit": 90, "per_ms": 60000, "each_origin": true})
    );
    assert_eq!(
        patched(flow, json!({"limit": 30, "origin": null})),
        json!({"kind": "flow", "limit": 30, "per_ms": 60000})
    );
    let entrance = json!({"kind": "flow", "qps": 1, "entrance": "front"});
    assert_eq!(patched(entrance.clone(), json!({"origin": null})), entrance, "it says nothing else");
    let breaker = json!({"kind": "error_ratio", "error_ratio": 0.5, "window_ms": 2000, "buckets": 4});
    assert_eq!(
        patched(breaker, json!({"window_calls": 50})),
        json!({"kind": "error_ratio", "error_ratio": 0.5, "window_calls": 50})
    );
    let breaker = json!({"kind": "error_ratio", "error_ratio": 0.5, "window_calls": 50});
    assert_eq!(
        patched(breaker, json!({"window": "3s"})),
        json!({"kind": "error_ratio", "error_ratio": 0.5, "window_ms": 3000})
    );
    let authority = json!({"kind": "authority", "allow": ["web"]});
    assert_eq!(
        patched(authority, json!({"deny": ["batch"]})),
        json!({"kind": "authority", "deny": ["batch"]})
    );
    let system = json!({"kind": "system", "avg_rt": "1500us"});
    assert_eq!(patched(system.clone(), json!({"cpu": 0.5})), json!({"kind": "system", "cpu": 0.5}));
    assert_eq!(patched(system, json!({"avg_rt_ms": 7})), json!({"kind": "system", "avg_rt_ms": 7}));
}

#[test]
fn a_flag_that_is_false_says_nothing_and_takes_only_its_own_relation_away() {
    let patched = |rule: Value, changes: Value| {
        let rule: Rule = serde_json::from_value(rule).unwrap();
        serde_json::to_value(rule.patched(&patch(changes)).unwrap()).unwrap()
    };
    let own = json!({"kind": "flow", "qps": 5});
    for relation in ["associated", "entrance", "origin"] {
        let mut rule = own.clone();
        rule[relation] = json!("web");
        for flag in ["other_origins", "each_origin"] {
            assert_eq!(patched(rule.clone(), json!({flag: false})), rule, "{relation}, {flag}");
            let mut said = rule.clone();
            said[flag] = json!(false);
            let read: Rule = serde_json::from_value(said).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), rule, "{relation}, {flag}");
        }
    }
    let each = json!({"kind": "flow", "qps": 5, "each_origin": true});
    assert_eq!(patched(each.clone(), json!({"other_origins": false})), each);
    assert_eq!(patched(each.clone(), json!({"each_origin": false})), own);
    let of_origin = json!({"kind": "flow", "qps": 5, "origin": "web"});
    assert_eq!(patched(each.clone(), json!({"each_origin": false, "origin": "web"})), of_origin);
    assert_eq!(patched(each.clone(), json!({"origin": "web", "each_origin": false})), of_origin);
    // Nothing else takes it for nothing.
    let rule: Rule = serde_json::from_value(own).unwrap();
    let error = rule.patched(&patch(json!({"qps": false}))).unwrap_err().to_string();
    assert_eq!(error, "the rules are not loaded: `qps`: `qps` takes a number, not `false`");
}

#[test]
fn a_patch_leaves_nothing_behind_that_went_with_what_it_replaces() {
    let patched = |rule: &Value, changes: Value| {
        let rule: Rule = serde_json::from_value(rule.clone()).unwrap();
        rule.patched(&patch(changes)).map(|rule| serde_json::to_value(rule).unwrap())
    };
    let plain = json!({"kind": "flow", "qps": 5});
    for max_wait in ["500ms", "501ms", "1500us"] {
        let throttle =
            json!({"kind": "flow", "qps": 5, "behavior": "throttle", "max_wait": max_wait, "burst": 3});
        assert_eq!(patched(&throttle, json!({"behavior": "reject"})), Ok(plain.clone()));
        assert_eq!(patched(&throttle, json!({"behavior": null})), Ok(plain.clone()));
        let warm_up = json!({"kind": "flow", "qps": 5, "behavior": "warm_up", "cold_factor": 2});
        assert_eq!(patched(&throttle, json!({"cold_factor": 2, "behavior": "warm_up"})), Ok(warm_up));
        let mut both = throttle.clone();
        both["behavior"] = json!("warm_up_throttle");
        both.as_object_mut().unwrap().remove("burst");
        let waits = serde_json::from_value::<Rule>(both.clone()).unwrap();
        let waits = serde_json::to_value(waits).unwrap();
        assert_eq!(patched(&throttle, json!({"behavior": "warm_up_throttle"})), Ok(waits), "the wait stays");
        both["warm_up_ms"] = json!(7);
        assert_eq!(patched(&both, json!({"behavior": "reject"})), Ok(plain.clone()));
        let hot = json!({"kind": "hot", "key": 0, "qps": 5, "behavior": "throttle", "max_wait": max_wait});
        assert_eq!(
            patched(&hot, json!({"behavior": "reject"})),
            Ok(json!({"kind": "hot", "key": 0, "qps": 5}))
        );
        // What the patch names itself is a mistake, as in a document.
        assert!(patched(&throttle, json!({"behavior": "reject", "max_wait": "500ms"})).is_err());
        assert!(patched(&throttle, json!({"behavior": "reject", "burst": 3})).is_err());
    }
    for ramp in [5_000, 7_000] {
        let ramp = json!({"kind": "error_count", "error_count": 3, "recovery": "ramp", "ramp_ms": ramp});
        let probes = json!({"kind": "error_count", "error_count": 3});
        assert_eq!(patched(&ramp, json!({"recovery": "probes"})), Ok(probes));
    }
    let exact = json!({"kind": "system", "qps": 5, "precision": "exact"});
    assert_eq!(patched(&exact, json!({"cpu": 0.5})), Ok(json!({"kind": "system", "cpu": 0.5})));
    let as_sentinel = json!({"kind": "system", "qps": 5, "precision": "sentinel"});
    assert_eq!(
        patched(&as_sentinel, json!({"cpu": 0.5})),
        Ok(json!({"kind": "system", "cpu": 0.5, "precision": "sentinel"}))
    );
}

#[test]
fn null_puts_the_interval_of_a_limit_back_to_a_second() {
    let rule: Rule = serde_json::from_value(json!({"kind": "flow", "limit": 5, "per": "1m"})).unwrap();
    for changes in [json!({"per_ms": null}), json!({"per": null}), json!({"limit": 5, "per_ms": null})] {
        let patched = rule.patched(&patch(changes.clone())).unwrap();
        assert_eq!(serde_json::to_value(patched).unwrap(), json!({"kind": "flow", "qps": 5}), "{changes}");
    }
}

#[test]
fn buckets_take_no_window_of_calls_away() {
    let rule = json!({"kind": "error_ratio", "error_ratio": 0.5, "window_calls": 100});
    let rule: Rule = serde_json::from_value(rule).unwrap();
    let error = rule.patched(&patch(json!({"buckets": 2}))).unwrap_err().to_string();
    assert_eq!(
        error,
        "the rules are not loaded: `buckets`: `buckets` needs a window of time, and none of `window_calls`"
    );
    let patched = rule.patched(&patch(json!({"buckets": 2, "window": "4s"}))).unwrap();
    assert_eq!(
        serde_json::to_value(patched).unwrap(),
        json!({"kind": "error_ratio", "error_ratio": 0.5, "window_ms": 4000, "buckets": 2})
    );
}

#[test]
fn a_patch_that_would_make_the_rule_wrong_is_refused_with_every_mistake() {
    let rule: Rule = FlowRule::new(10.0, Behavior::Throttle { max_wait: 200 * MS }).unwrap().into();
    let told = |changes: Value| {
        let Err(LoadError::Rejected(mistakes)) = rule.patched(&patch(changes)) else { panic!("accepted") };
        mistakes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        told(json!({"id": "x", "kind": "hot", "qps": "5", "burts": 3, "queue_ms": 3})),
        [
            "`id`: a patch cannot change `id`: load another rule",
            "`kind`: a patch cannot change `kind`: load another rule",
            "`burts`: unknown field `burts`; did you mean `burst`?",
            "`qps`: `qps` takes a number, not text",
            "`queue_ms`: `queue_ms` goes with a rule of the kind `isolation`, not with `flow`",
        ]
    );
    assert_eq!(told(json!({"qps": null})), ["`qps`: the limit is missing: `qps`, or `limit` with `per_ms`"]);
    assert_eq!(
        told(json!({"behavior": "reject", "max_wait_ms": 500})),
        ["`max_wait_ms`: `max_wait_ms` needs `behavior` to be `throttle` or `warm_up_throttle`"]
    );
    assert_eq!(
        told(json!({"limit": 5, "qps": 5})),
        ["`limit`: `limit` does not go with `qps`: the limit is per second, or per interval"]
    );
    assert_eq!(
        told(json!({"max_wait": "1s", "max_wait_ms": 5})),
        ["`max_wait_ms`: `max_wait` and `max_wait_ms` say the same: give one of them"]
    );
    let twice: RulePatch = serde_json::from_str(r#"{"qps": 1, "qps": 2}"#).unwrap();
    let error = rule.patched(&twice).unwrap_err().to_string();
    assert_eq!(error, "the rules are not loaded: `qps`: `qps` is given twice");
    let error = serde_json::from_str::<RulePatch>("[1]").unwrap_err().to_string();
    assert_eq!(error, "a patch is a map of words and their new values, not a list at line 1 column 3");
}

#[test]
fn a_patch_of_a_loaded_rule_holds_at_once_and_its_mistakes_name_the_rule() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    let limit = FlowRule::new(2.0, Behavior::Reject).unwrap();
    let file = registry.source("limits.toml");
    file.load(RuleSet::new().named("create", "orders.create", limit)).unwrap();
    let passed = || (0..10).filter(|_| registry.enter("orders.create").is_ok()).count();
    assert_eq!(passed(), 2);
    file.patch_words("create", &patch(json!({"qps": 5}))).unwrap();
    assert_eq!(passed(), 3);
    let error = file.patch_words("create", &patch(json!({"qps": 0.5}))).unwrap_err();
    let LoadError::Rejected(mistakes) = error else { panic!("{error}") };
    let [one] = &mistakes[..] else { panic!("{mistakes:?}") };
    assert_eq!((one.id(), one.resource(), one.field()), (Some("create"), Some("orders.create"), Some("qps")));
    let error = file.patch_words("nobody", &patch(json!({}))).unwrap_err();
    assert_eq!(error, LoadError::UnknownRule("nobody".to_owned()));
}
