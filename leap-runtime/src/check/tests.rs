//! A whole plan, with time and threads held in the hand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::rule::{Behavior, FlowRule, IsolationRule, RuleKind};

#[test]
fn calls_of_a_resource_without_rules_go_the_short_way() {
    assert!(Plan::default().is_plain());
    let before = Plan::default();
    assert!(Plan::new(Parts::default(), &before, &AtomicU64::new(0), &|| Timestamp::ZERO).is_plain());
}

#[test]
fn a_clock_that_panics_leaves_the_isolation_as_it_was() {
    let flow = FlowRule::new(1.0, Behavior::Reject).unwrap();
    let rules = vec![
        (RuleId::new(None, RuleKind::Flow, 0), Rule::Flow(flow)),
        (RuleId::new(None, RuleKind::Isolation, 0), Rule::Isolation(IsolationRule::new(1))),
    ];
    let passed = AtomicU64::new(0);
    let plan = Plan::new(Parts { rules, ..Parts::default() }, &Plan::default(), &passed, &|| Timestamp::ZERO);
    // One that is committed and not written: who comes next asks the clock.
    passed.fetch_add(1, Ordering::Relaxed);
    let asked =
        || plan.try_admit_one(&passed, Timestamp::ZERO, &|| panic!("broken")).map(|agreed| agreed.after);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(asked)).is_err());
    assert_eq!(plan.isolation().map(Isolation::in_flight), Some(0));
}

/// A13: the windows come after the isolation, and are made slow. Permits that are committed and not written make each
/// call that gets there take a reading of the clock; the clock answers when all 100 calls have got there or been
/// refused.
#[test]
fn a_slow_check_after_the_isolation_lets_nobody_exceed_it() {
    let flow = FlowRule::new(100.0, Behavior::Reject).unwrap();
    let rules = vec![
        (RuleId::new(None, RuleKind::Flow, 0), Rule::Flow(flow)),
        (RuleId::new(None, RuleKind::Isolation, 0), Rule::Isolation(IsolationRule::new(10))),
    ];
    let passed = AtomicU64::new(0);
    let plan = Plan::new(Parts { rules, ..Parts::default() }, &Plan::default(), &passed, &|| Timestamp::ZERO);
    passed.fetch_add(100, Ordering::Relaxed);

    let now = Timestamp::from_millis(10_000);
    let (n_waiting, n_refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let slow_reading = || {
        n_waiting.fetch_add(1, Ordering::Relaxed);
        while n_waiting.load(Ordering::Relaxed) + n_refused.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        // The unwritten permits are old, so that they leave room.
        now.saturating_sub(Duration::from_secs(5))
    };
    let call = || {
        let admitted = plan.admit(&passed, now, 1, &slow_reading, |_, _| {});
        if admitted.is_err() {
            n_refused.fetch_add(1, Ordering::Relaxed);
        }
        admitted.ok().map(|(_, held)| held)
    };
    let inside: Vec<Held> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(call)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });

    let in_flight = || plan.isolation().unwrap().in_flight();
    assert_eq!((inside.len(), n_refused.into_inner(), n_waiting.into_inner(), in_flight()), (10, 90, 10, 10));
    assert_eq!(passed.load(Ordering::Relaxed), 110);
    for mut held in inside {
        plan.end(&mut held, 1, Outcome::Cancelled, 0, now, |_, _| {});
    }
    assert_eq!(in_flight(), 0);
}
