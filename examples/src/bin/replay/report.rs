//! What is told about a replay.

use std::fmt;

use leap_runtime::{Cause, Rule, RuleSet};
use serde_json::{Map, Value, json};

use crate::simulation::{Change, Outcome};
use crate::trace::Call;

const SPAN_MS: u64 = 1_000;
/// What the rules that can be given block by.
const CAUSES: [Cause; 3] = [Cause::Flow, Cause::Isolation, Cause::Breaker];
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The figures of a replay, all computed from the calls and what became of each.
#[derive(Debug)]
pub(crate) struct Report {
    source: String,
    rules: Vec<Rule>,
    calls: usize,
    span_ms: u64,
    outcome: Outcome,
    most_passed: usize,
    /// The response times of the calls that passed, in ascending order.
    rts_ms: Vec<u64>,
}

impl Report {
    pub(crate) fn new(source: String, rules: &RuleSet, calls: &[Call], outcome: Outcome) -> Self {
        let times: Vec<_> = outcome.passed.iter().map(|call| call.at_ms).collect();
        let mut rts_ms: Vec<_> = outcome.passed.iter().map(|call| call.rt_ms).collect();
        rts_ms.sort_unstable();
        Self {
            source,
            rules: rules.iter().map(|named| named.rule().clone()).collect(),
            calls: calls.len(),
            span_ms: calls.last().zip(calls.first()).map_or(0, |(last, first)| last.at_ms - first.at_ms),
            most_passed: most_in_any_span(&times, SPAN_MS),
            rts_ms,
            outcome,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Self { source, calls, outcome, rts_ms, .. } = self;
        let blocked_by: Map<_, _> =
            CAUSES.iter().map(|cause| (cause.name().to_owned(), self.blocked_by(*cause).into())).collect();
        let transitions: Vec<_> = outcome
            .transitions
            .iter()
            .map(|change| json!({ "at_ms": change.at_ms, "from": change.from.to_string(), "to": change.to.to_string() }))
            .collect();
        let rt_ms: Map<_, _> =
            QUANTILES.iter().map(|&(name, q)| (name.to_owned(), quantile(rts_ms, q).into())).collect();
        json!({
            "traffic": source,
            "rules": self.rules.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "calls": calls,
            "passed": outcome.passed.len(),
            "blocked": self.blocked(),
            "blocked_by": blocked_by,
            "max_passed_in_1000_ms": self.most_passed,
            "transitions": transitions,
            "rt_ms": rt_ms,
        })
    }

    fn blocked(&self) -> usize {
        self.outcome.blocked.values().sum()
    }

    fn blocked_by(&self, cause: Cause) -> usize {
        self.outcome.blocked.get(&cause).copied().unwrap_or(0)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More transitions than these are counted and not listed.
        const LISTED: usize = 10;
        let Self { source, rules, calls, span_ms, outcome, most_passed, rts_ms } = self;

        writeln!(f, "{:18}{source}, {} long", "traffic", span(*span_ms))?;
        if rules.is_empty() {
            writeln!(f, "{:18}none", "rules")?;
        }
        for (nth, rule) in rules.iter().enumerate() {
            writeln!(f, "{:18}{rule}", if nth == 0 { "rules" } else { "" })?;
        }
        writeln!(f, "{:18}{:>9}", "calls", grouped(calls))?;
        writeln!(f, "{:18}{:>9}", "passed", grouped(&outcome.passed.len()))?;
        write!(f, "{:18}{:>9}", "blocked", grouped(&self.blocked()))?;
        for (nth, cause) in CAUSES.into_iter().enumerate() {
            let separator = if nth == 0 { "   " } else { ", " };
            write!(f, "{separator}{cause} {}", grouped(&self.blocked_by(cause)))?;
        }
        writeln!(f, "\n{:18}{:>9}   in any 1 000 ms", "most passed", grouped(most_passed))?;
        write!(f, "{:18}", "response time")?;
        for (nth, (name, q)) in QUANTILES.into_iter().enumerate() {
            let separator = if nth == 0 { "" } else { ", " };
            let rt =
                quantile(rts_ms, q).map_or_else(|| "-".to_owned(), |rt_ms| format!("{} ms", grouped(&rt_ms)));
            write!(f, "{separator}{name} {rt}")?;
        }
        writeln!(f, "\n{:18}{:>9}", "transitions", grouped(&outcome.transitions.len()))?;
        for Change { at_ms, from, to } in outcome.transitions.iter().take(LISTED) {
            writeln!(f, "{:18}{}   {from} -> {to}", "", time_of_day(*at_ms))?;
        }
        if outcome.transitions.len() > LISTED {
            writeln!(f, "{:18}and {} more", "", grouped(&(outcome.transitions.len() - LISTED)))?;
        }
        Ok(())
    }
}

/// The most of the ascending `times` in any half-open span: two that are `span` apart are not in one.
fn most_in_any_span(times: &[u64], span: u64) -> usize {
    let mut most = 0;
    let mut first = 0;
    for (last, time) in times.iter().enumerate() {
        while time - times[first] >= span {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}

/// The smallest value that at least a share of `q` of the ascending values is not above.
fn quantile(ascending: &[u64], q: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "no trace has 2⁵² calls")]
    ascending
        .iter()
        .enumerate()
        .find(|(below, _)| (below + 1) as f64 >= q * ascending.len() as f64)
        .map(|(_, &value)| value)
}

/// A number with its digits in groups of three.
fn grouped(number: &impl ToString) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn span(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours} h {minutes} min {seconds} s")
    } else {
        format!("{minutes} min {seconds} s")
    }
}

fn time_of_day(ms: u64) -> String {
    let seconds = ms / 1_000;
    format!("{:02}:{:02}:{:02}.{:03}", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60, ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_passes_exactly_one_span_apart_are_not_in_one() {
        for (times, most) in [
            (&[][..], 0),
            (&[5], 1),
            (&[0, 1_000, 2_000], 1),
            (&[0, 999, 1_000], 2),
            (&[0, 0, 0, 999, 999, 1_000, 1_998, 1_999], 5),
        ] {
            assert_eq!(most_in_any_span(times, 1_000), most, "{times:?}");
        }
    }

    #[test]
    fn the_sweep_finds_what_looking_at_every_span_finds() {
        let times: Vec<_> = crate::trace::synthetic(2_000, 3).iter().map(|call| call.at_ms).collect();
        let in_span_from =
            |start: &u64| times.iter().filter(|&time| (*start..start + 1_000).contains(time)).count();

        assert_eq!(Some(most_in_any_span(&times, 1_000)), times.iter().map(in_span_from).max());
    }

    #[test]
    fn a_quantile_is_a_value_that_occurred() {
        let values: Vec<_> = (1..=1_000).collect();

        assert_eq!(
            QUANTILES.map(|(_, q)| quantile(&values, q)),
            [Some(500), Some(900), Some(990), Some(999)]
        );
        assert_eq!(quantile(&[7], 0.5), Some(7));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn long_numbers_can_be_read() {
        assert_eq!(
            [0, 999, 1_000, 8_819, 1_234_567].map(|number| grouped(&number)),
            ["0", "999", "1 000", "8 819", "1 234 567"]
        );
    }
}
