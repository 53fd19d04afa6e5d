//! What a resource takes of the heap.

use leap_runtime::{Behavior, FlowRule, Precision, Registry, RuleSet};

use crate::alloc;

/// Bytes per resource in one state.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) state: &'static str,
    pub(crate) bytes: usize,
    /// At most, where that is promised.
    pub(crate) budget: Option<usize>,
}

impl Memory {
    pub(crate) fn is_over(&self) -> bool {
        self.budget.is_some_and(|budget| self.bytes > budget)
    }
}

const N_RESOURCES: usize = 1_000;
const IDLE: usize = 2 * 1024;
const ACTIVE: usize = 16 * 1024;

/// The mean of 1 000 resources, their share of the registry's map included.
pub(crate) fn per_resource() -> Vec<Memory> {
    let rule = |limit, precision| {
        FlowRule::new(limit, Behavior::Reject)
            .and_then(|rule| rule.with_precision(precision))
            .expect("in range")
    };
    let (exact_100, exact_1024) = (rule(100.0, Precision::Exact), rule(1_024.0, Precision::Exact));
    let strict = rule(1e9, Precision::Strict);
    let of = |state, budget, bytes| Memory { state, bytes, budget };
    vec![
        of("idle: no rule, not called yet", Some(IDLE), bytes(std::slice::from_ref(&strict), true, 0)),
        of("called, no rule", Some(ACTIVE), bytes(&[], false, 100)),
        of("called, one QPS rule, exact, limit 100", Some(ACTIVE), bytes(&[exact_100], false, 50)),
        of("called, one QPS rule, strict, 100 buckets", Some(ACTIVE), bytes(&[strict], false, 100)),
        of(
            "called, one QPS rule, exact, limit 1 024 (8 KiB of it the log)",
            None,
            bytes(&[exact_1024], false, 100),
        ),
    ]
}

/// Loads the rules for every resource, unloads them if asked to, and calls each so often.
fn bytes(rules: &[FlowRule], unload: bool, calls: usize) -> usize {
    let names: Vec<String> = (0..N_RESOURCES).map(|i| format!("orders.of.customer.{i}")).collect();
    let registry = Registry::new();
    let before = alloc::live_bytes();
    let each = names.iter().flat_map(|name| rules.iter().map(move |rule| (name, rule.clone())));
    registry
        .load(each.fold(RuleSet::new(), |set, (name, rule)| set.flow(name, rule)))
        .expect("the names are short");
    if unload {
        registry.load(RuleSet::new()).expect("nothing is wrong with no rule");
    }
    for name in &names {
        for _ in 0..calls {
            registry.enter(name).expect("within the limit").end(leap_runtime::Outcome::Success);
        }
    }
    let used = alloc::live_bytes() - before;
    drop(registry);
    used / N_RESOURCES
}
