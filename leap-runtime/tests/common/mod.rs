//! What the behaviour tests share.
#![allow(dead_code, reason = "each test file is a crate of its own and uses a part")]

pub(crate) mod waits;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leap_runtime::{
    Behavior, Blocked, ContainedPanic, FlowRule, LoadReport, ManualClock, Observer, Outcome, Overflow,
    Registry, RuleEvent, RuleSet, Switched, Timestamp, Transition,
};

/// The resource of a test that needs only one.
pub(crate) const R: &str = "orders.create";

/// A registry of its own on a clock of its own, which stands at zero.
pub(crate) fn registry() -> (Registry, ManualClock) {
    let clock = ManualClock::new();
    (Registry::builder().clock(clock.clone()).build(), clock)
}

/// As [`registry`], with rules.
pub(crate) fn registry_with(rules: RuleSet) -> (Registry, ManualClock) {
    let (registry, clock) = registry();
    registry.load(rules).unwrap();
    (registry, clock)
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A limit per second that refuses what is above.
pub(crate) fn qps(limit: f64) -> FlowRule {
    FlowRule::new(limit, Behavior::Reject).unwrap()
}

/// Makes `n` calls that end well at once, and tells how many were let through.
pub(crate) fn passes(registry: &Registry, resource: &str, n: usize) -> usize {
    (0..n).filter(|_| call(registry, resource, Outcome::Success)).count()
}

/// Makes a call that ends at once in this way, if it is let through.
pub(crate) fn call(registry: &Registry, resource: &str, outcome: Outcome) -> bool {
    registry.enter(resource).map(|entry| entry.end(outcome)).is_ok()
}

/// Makes a call of `n` permits that ends well at once, if it is let through.
pub(crate) fn call_of(registry: &Registry, resource: &str, n: u32) -> Result<(), Blocked> {
    registry.enter_with(resource).permits(n).enter().map(|entry| entry.end(Outcome::Success))
}

/// Makes a call that takes `rt`, and tells whether it was let through.
pub(crate) fn call_for(
    registry: &Registry,
    clock: &ManualClock,
    resource: &str,
    rt: Duration,
    outcome: Outcome,
) -> bool {
    let entry = registry.enter(resource);
    clock.advance(rt);
    entry.map(|entry| entry.end(outcome)).is_ok()
}

/// An observer that keeps what it was told, a line each. Clones share their lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    /// The lines so far; they are kept no longer.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Observer for Recorder {
    fn on_block(&self, blocked: &Blocked) {
        self.note(format!("block {} by {}", blocked.resource(), blocked.rule()));
    }

    fn on_transition(&self, transition: &Transition<'_>) {
        self.note(format!("{} {} -> {}", transition.rule(), transition.from(), transition.to()));
    }

    fn on_load(&self, report: &LoadReport) {
        let report = report.to_string();
        self.note(format!("load: {}", report.lines().next().unwrap_or_default()));
    }

    fn on_reject(&self, rejected: &RuleEvent) {
        self.note(format!("reject: {rejected}"));
    }

    fn on_overflow(&self, overflow: &Overflow<'_>) {
        self.note(format!("overflow: {overflow}"));
    }

    fn on_switch(&self, switched: &Switched<'_>) {
        self.note(switched.to_string());
    }

    fn on_panic(&self, panic: &ContainedPanic<'_>) {
        self.note(format!("panic in {} ({:?}): {}", panic.place(), panic.resource(), panic.message()));
    }
}
