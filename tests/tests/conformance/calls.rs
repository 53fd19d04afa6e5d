//! Cases of calls that end as soon as they have passed: flow rules of every behaviour, and hot parameters.

use std::time::Duration;

use leap_runtime::{EnterWith, Registry, RuleSet};
use leap_tests::json::{Result, field, list, optional, small, text, whole};
use serde_json::Value;

use crate::bench::{Answer, Bench, RESOURCE};
use crate::report::Answers;
use crate::rules::{flow_rule, hot_rule};

pub(crate) fn flow(case: &Value, answers: &mut Answers) -> Result<()> {
    let rule = flow_rule(field(case, "rule")?)?;
    let waits = rule.behavior().max_wait().is_some();
    replay(case, RuleSet::new().flow(RESOURCE, rule), waits, answers)
}

pub(crate) fn param(case: &Value, answers: &mut Answers) -> Result<()> {
    let rule = hot_rule(field(case, "rule")?)?;
    let waits = rule.max_wait().is_some();
    list(field(case, "keys")?)?;
    replay(case, RuleSet::new().hot(RESOURCE, rule), waits, answers)
}

/// `waits` says whether the rule has calls wait: then they are async, and their waits are compared too.
fn replay(case: &Value, rules: RuleSet, waits: bool, answers: &mut Answers) -> Result<()> {
    let mut bench = Bench::new(rules)?;
    let deltas = list(field(case, "arrival_deltas_ms")?)?;
    let (batch, keys) = (list_of(case, "batch", deltas)?, list_of(case, "keys", deltas)?);
    let expected = recorded(case, deltas, waits)?;
    for (i, (delta, expected)) in deltas.iter().zip(expected).enumerate() {
        bench.advance(delta)?;
        let permits = batch.map_or(Ok(1), |batch| small(&batch[i]))?;
        let key = keys.map(|keys| whole(&keys[i]).map(key)).transpose()?;
        let got = if waits {
            bench.await_turn(permits, key)?
        } else {
            Answer::to(call(&bench.registry, permits, key.as_ref()))
        };
        answers.compare(i, &expected, &got);
    }
    Ok(())
}

fn call<'a>(registry: &'a Registry, permits: u32, key: Option<&String>) -> EnterWith<'a> {
    let call = registry.enter_with(RESOURCE).permits(permits);
    match key {
        Some(key) => call.key("key", key),
        None => call,
    }
}

/// A key by its number, as rules name it.
fn key(number: u64) -> String {
    format!("k{number}")
}

/// A list that, if it is there, has one part for each call.
fn list_of<'a>(case: &'a Value, name: &str, calls: &[Value]) -> Result<Option<&'a [Value]>> {
    let Some(parts) = optional(case, name).map(list).transpose()? else { return Ok(None) };
    if parts.len() == calls.len() {
        Ok(Some(parts))
    } else {
        Err(format!("{} calls, {} `{name}`", calls.len(), parts.len()))
    }
}

/// What each of these calls was told.
fn recorded(case: &Value, calls: &[Value], waits: bool) -> Result<Vec<Answer>> {
    let pass = text(field(case, "pass")?)?;
    if pass.len() != calls.len() {
        return Err(format!("{} calls, {} answers", calls.len(), pass.len()));
    }
    let (ns, ms) = (list_of(case, "wait_ns", calls)?, list_of(case, "wait_ms", calls)?);
    let (waited, unit_ns) = match (ns, ms) {
        (Some(ns), _) => (Some(ns), 1),
        (None, Some(ms)) => (Some(ms), 1_000_000),
        (None, None) if waits => return Err("a rule by which calls wait, and no waits".to_owned()),
        (None, None) => (None, 1),
    };
    let waited = |i: usize| waited.map(|waited| (&waited[i], unit_ns));
    pass.chars().enumerate().map(|(i, pass)| answer(pass, waited(i))).collect()
}

/// What a call was told by `1` or `0` and, where that was noted, after how many times so many ns.
fn answer(pass: char, waited: Option<(&Value, u64)>) -> Result<Answer> {
    match (pass, waited) {
        ('1', None) => Ok(Answer::PASS),
        ('0', None) => Ok(Answer::Block),
        ('0', Some((wait, _))) if wait.as_i64() == Some(-1) => Ok(Answer::Block),
        ('1', Some((wait, unit_ns))) if wait.as_i64() != Some(-1) => {
            Ok(Answer::Pass { after: Duration::from_nanos(whole(wait)? * unit_ns) })
        }
        (pass, Some((wait, _))) => Err(format!("an answer of `{pass}` with a wait of {wait}")),
        (pass, None) => Err(format!("an answer of `{pass}`")),
    }
}
