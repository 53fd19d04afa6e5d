//! Statistics and load reports as JSON (feature `serde`): every name and every value.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use leap_runtime::{
    Behavior, BreakerRule, FlowRule, IsolationRule, ManualClock, Mode, Outcome, Registry, RuleSet, Timestamp,
};
use serde_json::{json, to_value};

const ZERO: Duration = Duration::ZERO;

fn qps(limit: f64) -> FlowRule {
    FlowRule::new(limit, Behavior::Reject).unwrap()
}

/// Permits blocked by a flow rule, and by no other.
fn blocked(flow: u64) -> serde_json::Value {
    json!({
        "all": flow, "flow": flow, "isolation": 0, "breaker": 0,
        "authority": 0, "system": 0, "hot": 0, "custom": 0,
    })
}

#[test]
fn an_idle_resource_has_nulls_where_there_is_no_figure() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    registry.load(RuleSet::new().flow("idle", qps(2.5))).unwrap();
    let span = |peak: serde_json::Value| {
        json!({
            "passed": 0, "calls": 0,
            "blocked": blocked(0),
            "success": 0, "exception": 0, "ignored": 0, "cancelled": 0,
            "rt_min_ms": null, "rt_avg_ms": null, "rt_max_ms": null,
            "peak_in_flight": peak,
        })
    };
    assert_eq!(
        to_value(registry.stats("idle").unwrap()).unwrap(),
        json!({
            "resource": "idle",
            "at_unix_ms": 0,
            "second": span(0.into()),
            "minute": span(0.into()),
            "minute_rt_ms": null,
            "totals": span(serde_json::Value::Null),
            "is_guarded": true, "in_flight": 0, "waiting": 0, "queued": 0,
            "previous_second_passed": 0,
            "breakers": [], "hot": [], "shadows": [], "origins": [], "entrances": [],
            "rules": [
                { "id": "loaded/flow/0", "kind": "flow", "rule": "flow: 2.5 per 1s, exact", "mode": "enforce" },
            ],
        })
    );
}

#[test]
fn a_busy_resource_has_times_in_milliseconds_and_counts_by_kind() {
    let clock = ManualClock::at(Timestamp::from_millis(59_500));
    let registry = Registry::builder().clock(clock.clone()).build();
    clock.set_wall(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let breaker = BreakerRule::slow_ratio(Duration::from_millis(10), 0.5).unwrap().with_min_calls(1).unwrap();
    let rules = RuleSet::new()
        .flow("busy", qps(4.0))
        .isolation("busy", IsolationRule::new(9).with_mode(Mode::Off))
        .breaker("busy", breaker)
        .flow("busy", qps(2.0).with_mode(Mode::Shadow));
    registry.load(rules).unwrap();

    let calls: Vec<_> = (0..3).map(|_| registry.enter("busy").unwrap()).collect();
    assert!(registry.enter_with("busy").permits(2).enter().is_err());
    let outcomes = [
        (Outcome::Success, ZERO),
        (Outcome::Ignored, ZERO),
        (Outcome::Exception, Duration::from_micros(12_500)),
    ];
    for (call, (outcome, rt)) in calls.into_iter().zip(outcomes) {
        clock.advance(rt);
        call.end(outcome);
    }
    clock.advance(Duration::from_secs(1));
    assert!(registry.enter("busy").is_ok_and(|call| {
        call.end(Outcome::Cancelled);
        true
    }));

    assert_eq!(
        to_value(registry.stats("busy").unwrap()).unwrap(),
        json!({
            "resource": "busy",
            "at_unix_ms": 1_700_000_001_012_u64,
            "second": {
                "passed": 1, "calls": 1,
                "blocked": blocked(0),
                "success": 0, "exception": 0, "ignored": 0, "cancelled": 1,
                "rt_min_ms": null, "rt_avg_ms": null, "rt_max_ms": null,
                "peak_in_flight": 1,
            },
            "minute": {
                "passed": 4, "calls": 4,
                "blocked": blocked(2),
                "success": 1, "exception": 1, "ignored": 1, "cancelled": 1,
                "rt_min_ms": 0.0, "rt_avg_ms": 4.166_666, "rt_max_ms": 12.5,
                "peak_in_flight": 3,
            },
            "minute_rt_ms": { "p50": 0.000_064, "p90": 12.035_828, "p99": 12.035_828, "p99_9": 12.035_828 },
            "totals": {
                "passed": 4, "calls": 4,
                "blocked": blocked(2),
                "success": 1, "exception": 1, "ignored": 1, "cancelled": 1,
                "rt_min_ms": null, "rt_avg_ms": 4.166_666, "rt_max_ms": null,
                "peak_in_flight": null,
            },
            "is_guarded": true, "in_flight": 0, "waiting": 0, "queued": 0,
            "previous_second_passed": 3,
            "breakers": [{
                "rule": "loaded/slow_ratio/0",
                "state": "closed",
                "next_probe_ms": null,
                "calls": 0,
                "bad_calls": 0,
                "stuck_probes": 0, "share_percent": null,
            }],
            "hot": [],
            "shadows": [{
                "rule": "loaded/flow/0", "text": "flow: 2 per 1s, exact",
                "asked": 5, "would_block": 2, "would_wait": 0, "would_pass_blocked": 0, "share": 0.4,
            }],
            "origins": [], "entrances": [],
            "rules": [
                { "id": "loaded/flow/0", "kind": "flow", "rule": "flow: 4 per 1s, exact", "mode": "enforce" },
                {
                    "id": "loaded/isolation/0", "kind": "isolation",
                    "rule": "isolation: at most 9 in flight", "mode": "off",
                },
                {
                    "id": "loaded/slow_ratio/0", "kind": "slow_ratio",
                    "rule": "slow_ratio: over 0.5 slower than 10ms of at least 1 calls in 1s, open 5s", "mode": "enforce",
                },
                { "id": "loaded/flow/0", "kind": "flow", "rule": "flow: 2 per 1s, exact", "mode": "shadow" },
            ],
        })
    );
}

#[test]
fn an_open_breaker_tells_the_time_to_its_next_probe() {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();
    registry
        .load(RuleSet::new().breaker("b", BreakerRule::error_count(0).with_min_calls(1).unwrap()))
        .unwrap();
    registry.enter("b").unwrap().end(Outcome::Exception);
    clock.advance(Duration::from_micros(1_500));
    let stats = to_value(registry.stats("b").unwrap()).unwrap();
    assert_eq!(
        stats["breakers"],
        json!([{
            "rule": "loaded/error_count/0",
            "state": "open",
            "next_probe_ms": 4_998.5,
            "calls": 1,
            "bad_calls": 1,
            "stuck_probes": 0, "share_percent": null,
        }])
    );
}

#[test]
fn a_load_report_names_its_counts_and_notes() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    let report = registry.load(RuleSet::new().flow("a", qps(1.0)).flow("b", qps(4e9))).unwrap();
    assert_eq!(
        to_value(report).unwrap(),
        json!({
            "version": 1, "added": 2, "changed": 0, "kept": 0, "removed": 0,
            "changes": [
                {
                    "source": "loaded", "resource": "a", "rule": "a/flow/0",
                    "from": null, "to": "flow: 1 per 1s, exact", "state": null,
                },
                {
                    "source": "loaded", "resource": "b", "rule": "b/flow/0",
                    "from": null, "to": "flow: 4000000000 per 1s, strict in 100 buckets", "state": null,
                },
            ],
            "notes": ["`b`: flow: 4000000000 per 1s, strict in 100 buckets: a limit above 2147483647 per window is no limit"],
        })
    );
}

#[test]
fn what_was_done_to_the_rules_is_told_with_what_was_refused() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    let source = registry.source("limits.toml").note("nightly");
    source.load(RuleSet::new().flow("a", qps(1.0))).unwrap();
    source.load(RuleSet::new().flow("", qps(1.0))).unwrap_err();
    let mut audit = to_value(registry.audit()).unwrap();
    for event in audit.as_array_mut().unwrap() {
        assert!(event.as_object_mut().unwrap().remove("wall_ms").unwrap().is_u64());
    }
    assert_eq!(
        audit,
        json!([
            {
                "version": 1, "action": "load", "source": "limits.toml", "note": "nightly",
                "added": 1, "changed": 0, "removed": 0, "error": null,
            },
            {
                "version": 1, "action": "load", "source": "limits.toml", "note": "nightly",
                "added": 0, "changed": 0, "removed": 0,
                "error": "the rules are not loaded: rule 0: `resource`: a name must not be empty",
            },
        ])
    );
}

#[test]
fn names_of_any_kind_come_back_as_they_were() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    for name in ["*", "a\"b", "a|b", "a\nb", "🦘", "</script>", "\u{0}"] {
        registry.enter(name).unwrap().end(Outcome::Success);
        let text = serde_json::to_string(&registry.stats(name).unwrap()).unwrap();
        let stats: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(stats["resource"], name);
    }
}

#[test]
fn the_figures_of_the_roster_are_numbers_by_their_names() {
    let registry = Registry::builder().clock(ManualClock::new()).max_resources(1).build();
    for name in ["a", "b", "b", ""] {
        registry.enter(name).unwrap().end(Outcome::Success);
    }
    assert_eq!(
        to_value(registry.roster()).unwrap(),
        json!({
            "resources": 1, "max_resources": 1, "shared": 1, "evicted": 0, "overflowed": 2, "unusable": 1,
        })
    );
    registry.turn_off();
    assert_eq!(to_value(registry.stats("a").unwrap()).unwrap()["is_guarded"], false);
}
