//! The rules of cases as leap's own, all of precision `sentinel`.

use std::time::Duration;

use leap_runtime::{Behavior, BreakerRule, FlowRule, HotRule, Precision, RuleError, RuleSet, SystemRule};
use leap_tests::json::{Result, field, list, number, optional, small, text, whole};
use serde_json::Value;

use crate::bench::RESOURCE;

pub(crate) fn of_kind<'a>(rule: &'a Value, kind: &str) -> Result<&'a Value> {
    let found = text(field(rule, "kind")?)?;
    if found == kind { Ok(rule) } else { Err(format!("a rule of kind `{found}` is none of `{kind}`")) }
}

/// The times in a field: so many of these.
fn time(rule: &Value, name: &str, unit: fn(u64) -> Duration) -> Result<Duration> {
    field(rule, name).and_then(whole).map(unit)
}

fn sound<T>(rule: std::result::Result<T, RuleError>) -> Result<T> {
    rule.map_err(|error| error.to_string())
}

/// A limit in the window of a case, whatever becomes of the calls above it.
fn flow(limit: f64, behavior: Behavior, window: &Value) -> Result<FlowRule> {
    let number_or = |name, default| optional(window, name).map_or(Ok(default), small);
    let (n_buckets, interval) = (number_or("samples", 2)?, number_or("interval_ms", 1_000)?);
    sound(
        FlowRule::new(limit, behavior)
            .and_then(|rule| rule.with_buckets(n_buckets))
            .and_then(|rule| rule.per(Duration::from_millis(interval.into())))
            .and_then(|rule| rule.with_precision(Precision::Sentinel)),
    )
}

pub(crate) fn flow_rule(rule: &Value) -> Result<FlowRule> {
    let rule = of_kind(rule, "flow")?;
    let period = || time(rule, "warm_up_s", Duration::from_secs);
    let cold_factor = || field(rule, "cold_factor").and_then(number);
    let max_wait = || time(rule, "max_queue_ms", Duration::from_millis);
    let behavior = match text(field(rule, "behavior")?)? {
        "reject" => Behavior::Reject,
        "warm_up" => Behavior::WarmUp { period: period()?, cold_factor: cold_factor()? },
        "throttle" => Behavior::Throttle { max_wait: max_wait()? },
        "warm_up_throttle" => {
            Behavior::WarmUpThrottle { period: period()?, cold_factor: cold_factor()?, max_wait: max_wait()? }
        }
        other => return Err(format!("a behavior `{other}` is unknown")),
    };
    flow(number(field(rule, "qps")?)?, behavior, rule)
}

/// A rule that watches another resource, one for an entrance, or rules for origins.
pub(crate) fn related_rules(case: &Value) -> Result<RuleSet> {
    let limit =
        |rule: &Value, window: &Value| flow(field(rule, "qps").and_then(number)?, Behavior::Reject, window);
    if let Some(rules) = optional(case, "rules") {
        return list(rules)?.iter().try_fold(RuleSet::new(), |rules, rule| {
            let limit = limit(rule, case)?;
            let rule = sound(match text(field(rule, "origin")?)? {
                "other" => limit.for_other_origins(),
                origin => limit.for_origin(origin.to_owned()),
            })?;
            Ok(rules.flow(RESOURCE, rule))
        });
    }
    let rule = of_kind(field(case, "rule")?, "flow")?;
    let limit = limit(rule, rule)?;
    let rule = match (optional(rule, "relation"), optional(rule, "entrance")) {
        (Some(relation), None) if text(relation)? == "associated" => limit.associated("related"),
        (None, Some(entrance)) => limit.for_entrance(text(entrance)?.to_owned()),
        _ => return Err(format!("{rule} has no relation that is known")),
    };
    Ok(RuleSet::new().flow(RESOURCE, sound(rule)?))
}

pub(crate) fn hot_rule(rule: &Value) -> Result<HotRule> {
    let rule = of_kind(rule, "param")?;
    let qps = number(field(rule, "qps")?)?;
    let (interval, burst) = (time(rule, "duration_s", Duration::from_secs)?, small(field(rule, "burst")?)?);
    let limit = match text(field(rule, "behavior")?)? {
        "reject" => HotRule::qps("key", qps),
        "throttle" => HotRule::throttle("key", qps, time(rule, "max_queue_ms", Duration::from_millis)?),
        other => return Err(format!("a behavior `{other}` is unknown")),
    };
    let mut limit = sound(
        limit
            .and_then(|rule| rule.per(interval))
            .and_then(|rule| rule.with_burst(burst))
            .and_then(|rule| rule.with_precision(Precision::Sentinel)),
    )?;
    if let Some(items) = optional(rule, "items") {
        let items = items.as_object().ok_or_else(|| format!("{items} is not an object"))?;
        for (key, qps) in items {
            limit = sound(limit.except(key, number(qps)?))?;
        }
    }
    Ok(limit)
}

/// A rule of several figures is one for each.
pub(crate) fn system_rules(rule: &Value) -> Result<RuleSet> {
    let rule = of_kind(rule, "system")?;
    let mut rules = vec![];
    if let Some(qps) = optional(rule, "inbound_qps") {
        rules.push(SystemRule::qps(number(qps)?));
    }
    if let Some(concurrency) = optional(rule, "inbound_concurrency") {
        rules.push(Ok(SystemRule::concurrency(small(concurrency)?)));
    }
    if let Some(ms) = optional(rule, "avg_rt_ms") {
        rules.push(SystemRule::avg_rt(Duration::from_millis(whole(ms)?)));
    }
    if rules.is_empty() {
        return Err("a rule of `system` limits nothing".to_owned());
    }
    rules.into_iter().try_fold(RuleSet::new(), |set, rule| {
        Ok(set.system(sound(rule.and_then(|rule| rule.with_precision(Precision::Sentinel)))?))
    })
}

pub(crate) fn breaker_rule(rule: &Value) -> Result<BreakerRule> {
    let rule = of_kind(rule, "breaker")?;
    let threshold = field(rule, "threshold")?;
    let recovery = time(rule, "recovery_s", Duration::from_secs)?;
    let (min_calls, n_buckets) = (small(field(rule, "min_requests")?)?, small(field(rule, "samples")?)?);
    let window = time(rule, "interval_ms", Duration::from_millis)?;
    let breaker = match text(field(rule, "strategy")?)? {
        "slow_ratio" => {
            BreakerRule::slow_ratio(time(rule, "slow_rt_ms", Duration::from_millis)?, number(threshold)?)
        }
        "error_ratio" => BreakerRule::error_ratio(number(threshold)?),
        "error_count" => Ok(BreakerRule::error_count(small(threshold)?)),
        other => return Err(format!("a strategy `{other}` is unknown")),
    };
    sound(
        breaker
            .and_then(|breaker| breaker.with_min_calls(min_calls))
            .and_then(|breaker| breaker.with_window(window, n_buckets))
            .and_then(|breaker| breaker.open_for(recovery)),
    )
}
