//! The observer that speaks through `tracing` (feature `tracing`).
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leap_runtime::{
    Behavior, Blocked, BreakerRule, FlowRule, ManualClock, Observer, Outcome, Registry, RuleSet, Timestamp,
    TracingObserver,
};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// A subscriber that keeps every event as a line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// The lines that `body` causes.
    fn of(body: impl FnOnce()) -> Vec<String> {
        let lines = Self::default();
        tracing::subscriber::with_default(lines.clone(), body);
        lines.0.lock().unwrap().clone()
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let fields: Vec<_> = fields.0.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        self.0.lock().unwrap().push(format!("{level} {target}: {message};{}", fields.concat()));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// A registry that speaks through `tracing`, with a limit of 0 for two resources.
fn refusing() -> (Registry, ManualClock) {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).observer(TracingObserver::default()).build();
    let none = FlowRule::new(0.0, Behavior::Reject).unwrap();
    registry.load(RuleSet::new().flow("a", none.clone()).flow("b", none)).unwrap();
    (registry, clock)
}

#[test]
fn blocks_are_told_at_most_once_per_second_and_resource_with_their_number() {
    let (registry, clock) = refusing();
    let lines = Lines::of(|| {
        for (moment, name, n) in
            [(0, "a", 5), (0, "b", 1), (999, "a", 2), (1_000, "a", 3), (1_999, "a", 4), (5_000, "a", 1)]
        {
            clock.set(Timestamp::from_millis(moment));
            for _ in 0..n {
                assert!(registry.enter(name).is_err());
            }
        }
    });
    let line = |name, count| {
        format!(
            "WARN leap: `{name}` is blocked: its limit is 0; cause=flow count={count} resource={name} rule=loaded/flow/0"
        )
    };
    // Of `a`: 1 at once; 4 + 2 more and the one at 1 s; 2 more, 4, and the one at 5 s.
    assert_eq!(lines, [line("a", 1), line("b", 1), line("a", 7), line("a", 7)]);
}

#[test]
fn each_load_and_each_transition_is_an_event() {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).observer(TracingObserver::default()).build();
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap();
    let lines = Lines::of(|| {
        registry.load(RuleSet::new().breaker("a", breaker)).unwrap();
        registry.load(RuleSet::new().breaker("", breaker)).unwrap_err();
        registry.enter("a").unwrap().end(Outcome::Exception);
        clock.advance(Duration::from_secs(5));
        registry.enter("a").unwrap().end(Outcome::Success);
    });
    assert_eq!(
        lines,
        [
            "INFO leap: rules: 1 added, 0 changed, 0 kept, 0 removed; added=1 changed=0 kept=0 removed=0 version=1",
            "DEBUG leap: rule added a/error_count/0: error_count: over 0 of at least 1 calls in 1s, open 5s; source=loaded \
             version=1",
            "WARN leap: rules: version 1: load by loaded refused: the rules are not loaded: rule 0: `resource`: a name must \
             not be empty; version=1",
            "WARN leap: breaker opened; from=closed resource=a rule=loaded/error_count/0 to=open",
            "INFO leap: breaker is half-open; from=open resource=a rule=loaded/error_count/0 to=half-open",
            "INFO leap: breaker is closed; from=half-open resource=a rule=loaded/error_count/0 to=closed",
        ]
    );
}

#[test]
fn a_contained_panic_is_an_event() {
    struct Panicking;
    impl Observer for Panicking {
        fn on_block(&self, _: &Blocked) {
            panic!("at a block");
        }
    }
    let (registry, _) = refusing();
    registry.observe(Panicking);
    let lines = Lines::of(|| {
        registry.enter("free").unwrap().run_with(|| (), |()| panic!("no opinion"));
        assert!(registry.enter("a").is_err());
    });
    assert_eq!(
        lines,
        [
            "WARN leap: a panic was contained: no opinion; place=outcome predicate resource=free",
            "WARN leap: `a` is blocked: its limit is 0; cause=flow count=1 resource=a rule=loaded/flow/0",
            "WARN leap: a panic was contained: at a block; place=observer",
        ]
    );
}

#[test]
fn a_call_that_passes_is_no_event() {
    let (registry, _) = refusing();
    assert!(Lines::of(|| registry.enter("free").unwrap().end(Outcome::Success)).is_empty());
}

#[test]
fn a_switch_and_a_name_without_room_are_events() {
    let (clock, observer) = (ManualClock::new(), TracingObserver::default());
    let registry = Registry::builder().clock(clock).observer(observer).max_resources(1).build();
    let lines = Lines::of(|| {
        for name in ["a", "b", "c", ""] {
            registry.enter(name).unwrap().end(Outcome::Success);
        }
        registry.turn_off();
        registry.turn_off_resource("a");
    });
    assert_eq!(
        lines,
        [
            "WARN leap: there are 1 resources, the most there may be: `b` shares `(overflow)`; \
             max_resources=1 shared=(overflow)",
            "WARN leap: a name of 0 bytes is none: it shares `(overflow)`; max_resources=1 shared=(overflow)",
            "WARN leap: all guarding is switched off; is_on=false",
            "WARN leap: guarding of `a` is switched off; is_on=false resource=a",
        ]
    );
}
