//! Cases of events: breakers, calls in flight, rules by relation, lists of origins, and the system.

use leap_runtime::{AuthorityRule, IsolationRule, Outcome, Registry, RuleSet};
use leap_tests::json::{Result, field, list, optional, small, text, whole};
use serde_json::Value;

use crate::bench::{Answer, Bench, RESOURCE};
use crate::report::Answers;
use crate::rules::{breaker_rule, of_kind, related_rules, system_rules};

pub(crate) fn breaker(case: &Value, answers: &mut Answers) -> Result<()> {
    let rule = breaker_rule(field(case, "rule")?)?;
    let mut bench = Bench::new(RuleSet::new().breaker(RESOURCE, rule))?;
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, what, id, answer, state] = list(event)? else {
            return Err(format!("event {i} has not five parts"));
        };
        bench.go_to(t)?;
        let got = bench.act(text(what)?, whole(id)?)?.map_or("done".to_owned(), |answer| answer.to_string());
        let seen = bench.registry.stats(RESOURCE).ok_or("no statistics")?;
        let [breaker] = seen.breakers() else { return Err("there is not one breaker".to_owned()) };
        let expected = format!("{} {}", text(answer)?, text(state)?);
        answers.compare(i, &expected, &format!("{got} {}", breaker.state().to_string().replace('-', "_")));
    }
    Ok(())
}

pub(crate) fn concurrency(case: &Value, answers: &mut Answers) -> Result<()> {
    let rule = of_kind(field(case, "rule")?, "concurrency")?;
    let rule = IsolationRule::new(small(field(rule, "max")?)?);
    let mut bench = Bench::new(RuleSet::new().isolation(RESOURCE, rule))?;
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, what, id, answer] = list(event)? else { return Err(format!("event {i} has not four parts")) };
        bench.go_to(t)?;
        if let Some(got) = bench.act(text(what)?, whole(id)?)? {
            answers.compare(i, &Answer::recorded(text(answer)?)?, &got);
        }
    }
    Ok(())
}

/// What the second part of an event is: the resource, the origin or the entrance of its call.
pub(crate) fn relations(case: &Value, answers: &mut Answers) -> Result<()> {
    let bench = Bench::new(related_rules(case)?)?;
    let rule = optional(case, "rule");
    let call = |registry: &Registry, name: &str| {
        if rule.is_some_and(|rule| optional(rule, "relation").is_some()) {
            return Answer::to(registry.enter_with(name));
        }
        let call = registry.enter_with(RESOURCE);
        Answer::to(if rule.is_some() { call.entrance(name) } else { call.origin(name) })
    };
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, name, answer] = list(event)? else { return Err(format!("event {i} has not three parts")) };
        bench.go_to(t)?;
        let got = call(&bench.registry, text(name)?);
        answers.compare(i, &Answer::recorded(text(answer)?)?, &got);
    }
    Ok(())
}

pub(crate) fn authority(case: &Value, answers: &mut Answers) -> Result<()> {
    let rule = of_kind(field(case, "rule")?, "authority")?;
    let listed =
        |names: &Value| text(names).map(|names| names.split(',').map(str::to_owned).collect::<Vec<_>>());
    let rule = match (optional(rule, "allow"), optional(rule, "deny")) {
        (Some(allowed), None) => AuthorityRule::allow(listed(allowed)?),
        (None, Some(denied)) => AuthorityRule::deny(listed(denied)?),
        _ => return Err("there is not one of `allow` and `deny`".to_owned()),
    };
    let rule = rule.map_err(|error| error.to_string())?;
    let bench = Bench::new(RuleSet::new().authority(RESOURCE, rule))?;
    for (i, origin) in list(field(case, "origins")?)?.iter().enumerate() {
        let [origin, answer] = list(origin)? else { return Err(format!("origin {i} has not two parts")) };
        let got = Answer::to(bench.registry.enter_with(RESOURCE).origin(text(origin)?));
        answers.compare(i, &Answer::recorded(text(answer)?)?, &got);
    }
    Ok(())
}

pub(crate) fn system(case: &Value, answers: &mut Answers) -> Result<()> {
    let mut bench = Bench::new(system_rules(field(case, "rule")?)?)?;
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, what, id, rest @ ..] = list(event)? else {
            return Err(format!("event {i} has not three parts"));
        };
        bench.go_to(t)?;
        let id = whole(id)?;
        match (text(what)?, rest) {
            ("enter", [resource, answer]) => {
                let (resource, expected) = (text(resource)?, Answer::recorded(text(answer)?)?);
                let call = bench.registry.enter_with(resource);
                let call = if resource.starts_with("inbound") { call.inbound() } else { call };
                let entered = call.enter();
                let got = bench.keep(id, entered);
                answers.compare(i, &expected, &got);
            }
            ("exit", []) => bench.end(id, Outcome::Success),
            (what, _) => return Err(format!("event {i}, `{what}`, is not understood")),
        }
    }
    Ok(())
}
