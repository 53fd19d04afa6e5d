//! What a resource takes of the heap, a rule of each kind, a value of a hot parameter, and an origin.

use std::time::Duration;

use leap_runtime::{
    AuthorityRule, Behavior, BreakerRule, FlowRule, HotRule, IsolationRule, Mode, Outcome, Precision,
    Registry, Rule, RuleError, RuleSet,
};

use crate::alloc;

/// Bytes per resource in one state.
#[derive(Debug)]
pub struct Memory {
    /// What takes them.
    pub state: String,
    /// The mean of many.
    pub bytes: usize,
    /// At most, where that is promised.
    pub budget: Option<usize>,
}

impl Memory {
    /// Whether it takes more than is promised.
    pub fn is_over(&self) -> bool {
        self.budget.is_some_and(|budget| self.bytes > budget)
    }
}

const N_RESOURCES: usize = 1_000;
const IDLE: usize = 2 * 1024;
const ACTIVE: usize = 16 * 1024;

/// What resources take, values of hot parameters, and origins.
pub fn all() -> Vec<Memory> {
    let mut all = per_resource();
    all.extend(per_value());
    all.extend(per_origin());
    all
}

/// The mean of 1 000 resources, their share of the registry's map included.
fn per_resource() -> Vec<Memory> {
    let rule = |limit, precision| {
        FlowRule::new(limit, Behavior::Reject)
            .and_then(|rule| rule.with_precision(precision))
            .expect("in range")
    };
    let (exact_100, exact_1024) = (rule(100.0, Precision::Exact), rule(1_024.0, Precision::Exact));
    let strict = rule(1e9, Precision::Strict);
    let of = |state: &str, budget, bytes| Memory { state: state.to_owned(), bytes, budget };
    vec![
        of("idle: no rule, not called yet", Some(IDLE), bytes(&[], 0)),
        of("called, no rule", Some(ACTIVE), bytes(&[], 100)),
        of("called, one QPS rule, exact, limit 100", Some(ACTIVE), bytes(&[exact_100.into()], 50)),
        of("called, one QPS rule, strict, 100 buckets", Some(ACTIVE), bytes(&[strict.into()], 100)),
        of(
            "called, one QPS rule, exact, limit 1 024 (8 KiB of it the log)",
            None,
            bytes(&[exact_1024.into()], 100),
        ),
    ]
}

/// Loads the rules for every resource, and calls each so often.
fn bytes(rules: &[Rule], calls: usize) -> usize {
    let names: Vec<String> = (0..N_RESOURCES).map(|i| format!("orders.of.customer.{i}")).collect();
    let registry = Registry::new();
    let before = alloc::live_bytes();
    let each = names.iter().flat_map(|name| rules.iter().map(move |rule| (name, rule.clone())));
    registry
        .load(each.fold(RuleSet::new(), |set, (name, rule)| set.rule(name, rule)))
        .expect("the names are short");
    // Makes them, and counts nothing.
    registry.turn_off();
    for name in &names {
        registry.enter(name).expect("nobody is asked").end(Outcome::Success);
    }
    registry.turn_on();
    for name in &names {
        for _ in 0..calls {
            registry.enter(name).expect("within the limit").end(Outcome::Success);
        }
    }
    let used = alloc::live_bytes() - before;
    drop(registry);
    used / N_RESOURCES
}

/// What a resource takes for a rule of each kind more than without any, once it was called: its part of the loaded rules
/// included, and a plan, which the second rule of a resource does not need again.
#[expect(clippy::missing_panics_doc, reason = "the rules are in range")]
pub fn per_rule() -> Vec<Memory> {
    const CALLS: usize = 50;
    let without = bytes(&[], CALLS);
    let rules = rules_of_each_kind().expect("in range");
    let of = |(what, rule): (&str, Rule)| {
        let bytes = bytes(&[rule], CALLS).saturating_sub(without);
        Memory { state: format!("a rule: {what}"), bytes, budget: None }
    };
    rules.into_iter().map(of).collect()
}

/// None of which blocks or waits.
fn rules_of_each_kind() -> Result<Vec<(&'static str, Rule)>, RuleError> {
    let flow = |limit, precision| FlowRule::new(limit, Behavior::Reject)?.with_precision(precision);
    let warm_up = Behavior::WarmUp { period: Duration::from_secs(10), cold_factor: 3.0 };
    let throttle = Behavior::Throttle { max_wait: Duration::ZERO };
    let slow = || BreakerRule::slow_ratio(Duration::from_secs(1), 0.5);
    Ok(vec![
        ("flow, exact, limit 100", flow(100.0, Precision::Exact)?.into()),
        ("flow, strict, 100 buckets", flow(1e9, Precision::Strict)?.into()),
        ("flow, strict, 1 000 buckets", flow(1e9, Precision::Strict)?.with_buckets(1_000)?.into()),
        ("flow, as Sentinel counts, 2 buckets", flow(1e9, Precision::Sentinel)?.with_buckets(2)?.into()),
        ("flow, strict, in shadow", flow(1e9, Precision::Strict)?.with_mode(Mode::Shadow).into()),
        ("flow, warming up", FlowRule::new(1e9, warm_up)?.into()),
        ("flow, throttling", FlowRule::new(1e9, throttle)?.into()),
        ("isolation", IsolationRule::new(100).into()),
        ("isolation with a queue", IsolationRule::new(100).with_queue(Duration::from_millis(100))?.into()),
        ("breaker on slow calls", slow()?.into()),
        ("breaker on the last 100 calls", slow()?.with_window_calls(100)?.into()),
        ("hot, without values", HotRule::qps("user", 8.0)?.into()),
        ("authority, one origin", AuthorityRule::deny(["batch"])?.into()),
    ])
}

/// What the first value of a hot parameter takes, and what further ones do, in the mean up to 100 000.
///
/// A rule has room for up to a million values: what they take is what clients can make a service take.
fn per_value() -> Vec<Memory> {
    const MANY: u32 = 100_000;
    let qps = |limit| move || HotRule::qps("user", limit);
    let rules: [(_, &dyn Fn() -> Result<HotRule, RuleError>); 5] = [
        ("hot qps, exact, limit 8", &qps(8.0)),
        ("hot qps, exact, limit 64", &qps(64.0)),
        ("hot qps, 10 buckets, limit 65", &qps(65.0)),
        ("hot qps with a burst", &|| qps(8.0)()?.with_burst(8)),
        ("hot max_concurrency", &|| HotRule::concurrency("user", 8)),
    ];
    let of = |(what, rule): (_, &dyn Fn() -> Result<HotRule, RuleError>)| {
        let rule = rule().and_then(|rule| rule.with_max_keys(MANY)).expect("in range");
        let registry = Registry::new();
        registry.load(RuleSet::new().hot("orders.create", rule)).expect("the name is short");
        let call = |user: u32| {
            let entered = registry.enter_with("orders.create").key("user", user).enter();
            entered.expect("within the limit").end(Outcome::Success);
        };
        let grown = |users: std::ops::Range<u32>| {
            let before = alloc::live_bytes();
            users.for_each(call);
            alloc::live_bytes() - before
        };
        // The lists of the most frequent values grow too; with 64 in each they are full.
        drop(registry.enter("orders.create"));
        let first = grown(0..1);
        let further = grown(1..MANY) / (MANY as usize - 1);
        [
            Memory { state: format!("{what}: the first value"), bytes: first, budget: None },
            Memory { state: format!("{what}: each of {MANY} values"), bytes: further, budget: None },
        ]
    };
    rules.into_iter().flat_map(of).collect()
}

/// What an origin takes of which a resource keeps numbers, and one that has a limit of its own besides.
fn per_origin() -> Vec<Memory> {
    // As many as have numbers of their own.
    const N: usize = 200;
    let limit = |limit| FlowRule::new(limit, Behavior::Reject).and_then(FlowRule::for_each_origin);
    let of = |state: &str, rule: Option<FlowRule>| {
        let names: Vec<String> = (0..N).map(|i| format!("customer.{i}")).collect();
        let registry = Registry::new();
        let rules = rule.into_iter().fold(RuleSet::new(), |set, rule| set.flow("orders.create", rule));
        registry.load(rules).expect("the name is short");
        registry.enter("orders.create").expect("it has no origin").end(Outcome::Success);
        let before = alloc::live_bytes();
        for name in &names {
            for _ in 0..50 {
                let entered = registry.enter_with("orders.create").origin(name).enter();
                entered.expect("within the limit").end(Outcome::Success);
            }
        }
        let bytes = (alloc::live_bytes() - before) / N;
        Memory { state: state.to_owned(), bytes, budget: None }
    };
    vec![
        of("each origin of a resource, with its numbers", None),
        of("each origin with a limit of its own besides, exact, 100", limit(100.0).ok()),
        of("each origin with a limit of its own besides, strict", limit(1e9).ok()),
    ]
}
