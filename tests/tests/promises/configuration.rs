//! A rule that makes no sense is an error that names what is wrong, and replaces nothing. In an attribute it is an error
//! of the compiler, in the same words: see the `ui` tests.

use std::time::Duration;

use leap_runtime::{
    AuthorityRule, Behavior, BreakerRule, FlowRule, HotRule, IsolationRule, Precision, RuleError, RuleSet,
    SystemRule,
};

use crate::{Bench, ms};

fn message<T: std::fmt::Debug>(rule: Result<T, RuleError>) -> String {
    rule.unwrap_err().to_string()
}

const NEVER: Duration = Duration::ZERO;

#[test]
fn a_flow_rule_that_makes_no_sense_says_why() {
    let reject = |limit| FlowRule::new(limit, Behavior::Reject);
    let warm = |period, cold_factor| FlowRule::new(10.0, Behavior::WarmUp { period, cold_factor });
    let two_words = || reject(10.0).unwrap().for_origin("vip").unwrap();
    for (rule, expected) in [
        (reject(f64::NAN), "a limit of NaN is not a number of permits: it must be 0 or more, and finite"),
        (reject(-1.0), "a limit of -1 is not a number of permits: it must be 0 or more, and finite"),
        (
            reject(f64::INFINITY),
            "a limit of inf is not a number of permits: it must be 0 or more, and finite",
        ),
        (
            reject(0.2),
            "a limit of 0.2 per 1s would never let a call through; say 1 per 5s instead: `rate(limit = 1, per_ms = 5000)`",
        ),
        (
            reject(10.0).unwrap().with_precision(Precision::Strict).unwrap().with_buckets(3),
            "an interval of 1s does not divide into 3 equal buckets of at least 1µs",
        ),
        (
            reject(10.0).unwrap().per(NEVER),
            "an interval of 0ns cannot be watched: it must be above 0 and at most a year",
        ),
        (warm(ms(1_000), 1.0), "a cold factor of 1 would not start below the limit"),
        (warm(NEVER, 3.0), "a warm-up cannot take 0ns: it must be above 0 and at most a year"),
        (
            reject(10.0).unwrap().with_burst(5),
            "a burst of 5 needs a rule that throttles, in a precision other than `sentinel`",
        ),
        (
            warm(ms(1_000), 3.0).unwrap().associated("writes"),
            "a rule that counts another resource can only reject: nobody waits for another's calls",
        ),
        (
            FlowRule::new(
                1.0,
                Behavior::WarmUpThrottle { period: ms(1_000), cold_factor: 3.0, max_wait: NEVER },
            )
            .unwrap()
            .per(Duration::from_nanos(999))
            .unwrap()
            .with_precision(Precision::Sentinel),
            "an interval of 999ns does not divide into 1 equal buckets of at least 1µs",
        ),
        (two_words().for_entrance("front"), "a rule is for one entrance, origin or associated resource"),
        (reject(10.0).unwrap().for_origin(""), "a name must not be empty"),
    ] {
        assert_eq!(message(rule), expected);
    }
}

#[test]
fn so_does_a_rule_of_any_other_kind() {
    for (message, expected) in [
        (
            message(IsolationRule::new(5).with_queue(Duration::from_secs(400 * 24 * 60 * 60))),
            "a call cannot queue for 34560000s: at most a year",
        ),
        (
            message(BreakerRule::error_ratio(1.5)),
            "a ratio of 1.5 is not a share of calls: it must be between 0 and 1",
        ),
        (
            message(BreakerRule::error_count(3).with_min_calls(0)),
            "a breaker that needs 0 calls has nothing to judge by: `min_calls` must be at least 1",
        ),
        (
            message(BreakerRule::error_count(3).open_for(NEVER)),
            "a breaker cannot stay open for 0ns: the time must be above 0 and at most a year",
        ),
        (
            message(BreakerRule::error_count(3).with_probes(0)),
            "0 probes cannot decide a recovery: it takes 1 to 1023",
        ),
        (message(HotRule::qps("", 10.0)), "the name of a key must not be empty"),
        (
            message(HotRule::qps("user", f64::NAN)),
            "a limit of NaN is not a number of permits: it must be 0 or more, and finite",
        ),
        (
            message(HotRule::qps("user", 10.0).unwrap().with_max_keys(0)),
            "a hot rule cannot tell 0 values apart: it takes 1 to 1000000",
        ),
        (
            message(AuthorityRule::allow(Vec::<String>::new())),
            "a list without origins would allow nobody or deny nobody: it must name at least one",
        ),
        (
            message(AuthorityRule::deny(["batch", ""])),
            "origin 1 of the list has no name; calls without an origin pass in any case",
        ),
        (
            message(SystemRule::cpu(80.0)),
            "a cpu share of 80 is not a share of a quota: it must be between 0 and 1, e.g. 0.8",
        ),
        (
            message(SystemRule::load(f64::NAN)),
            "a load of NaN is never reached: it must be 0 or more, and finite",
        ),
        (
            message(SystemRule::qps(0.5)),
            "a system's limit of 0.5 inbound calls per second would never let one through: it must be 0 or at least 1",
        ),
        (
            message(SystemRule::avg_rt(NEVER)),
            "an average response time of 0ns cannot be held: it must be above 0 and at most a year",
        ),
    ] {
        assert_eq!(message, expected);
    }
}

#[test]
fn a_set_of_rules_is_loaded_whole_or_not_at_all() {
    let limit = |limit| FlowRule::new(limit, Behavior::Reject).unwrap();
    let bench = Bench::with(RuleSet::new().flow("orders", limit(1.0)).system(SystemRule::concurrency(5)));
    let before = bench.registry.loaded();
    let passes = || bench.registry.enter("orders").is_ok();
    assert!(passes());
    for (name, expected) in [
        (String::new(), "the rules are not loaded: rule 2: `resource`: a name must not be empty"),
        (
            "x".repeat(1_025),
            "the rules are not loaded: rule 2 of `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`: \
             `resource`: a name of 1025 bytes is too long: at most 1024",
        ),
    ] {
        let wrong = RuleSet::new().flow("orders", limit(100.0)).flow("a", limit(0.0)).flow(name, limit(1.0));
        assert_eq!(bench.registry.load(wrong).unwrap_err().to_string(), expected);
        assert_eq!(bench.registry.loaded(), before);
        assert!(!passes(), "the limit of 1 still stands, and remembers what passed");
        assert!(bench.registry.enter("a").is_ok(), "nothing of the set was loaded");
    }
}
