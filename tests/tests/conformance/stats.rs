//! Cases that ask for statistics in between.

use std::fmt::{self, Display};
use std::time::Duration;

use leap_runtime::{Registry, RuleSet};
use leap_tests::json::{Result, field, list, number, text, whole};
use serde_json::Value;

use crate::bench::{Answer, Bench, RESOURCE};
use crate::report::Answers;
use crate::rules::flow_rule;

pub(crate) fn stats(case: &Value, answers: &mut Answers) -> Result<()> {
    let mut bench = Bench::new(RuleSet::new().flow(RESOURCE, flow_rule(field(case, "rule")?)?))?;
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, what, rest @ ..] = list(event)? else { return Err(format!("event {i} has no time")) };
        bench.go_to(t)?;
        match (text(what)?, rest) {
            ("query", [figures]) => {
                let expected = Figures::recorded(figures)?;
                answers.compare(i, &expected, &Figures::of(&bench.registry)?);
            }
            (what, [id, answer @ ..]) => {
                let got = bench.act(what, whole(id)?)?;
                if let (Some(got), [answer]) = (got, answer) {
                    answers.compare(i, &Answer::recorded(text(answer)?)?, &got);
                }
            }
            (what, []) => return Err(format!("event {i}, `{what}`, has no more to it")),
        }
    }
    Ok(())
}

/// What a query reads.
#[derive(Debug, PartialEq)]
struct Figures {
    second: [u64; 4],
    minute: [u64; 4],
    /// Average and minimum, in whole ns; none where nothing completed.
    rt_ns: Option<[u64; 2]>,
    in_flight: u64,
    previous_second_passed: u64,
}

impl Figures {
    fn recorded(figures: &Value) -> Result<Self> {
        let figure = |name: &str| field(figures, name).and_then(whole);
        let span = |prefix: &str| -> Result<[u64; 4]> {
            let figure = |name: &str| figure(&format!("{prefix}{name}"));
            Ok([figure("pass")?, figure("block")?, figure("success")?, figure("exception")?])
        };
        let second = span("")?;
        let completed = second[2];
        let rt_ns = if completed == 0 {
            let none = (whole(field(figures, "avg_rt_ms")?)?, whole(field(figures, "min_rt_ms")?)?);
            if none != (0, 5_000) {
                return Err(format!("nothing completed, and response times of {none:?}"));
            }
            None
        } else {
            // The average is a fraction of whole ms. Its numerator is restored, because doubles of ns would be
            // rounded where our division truncates.
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small"
            )]
            let sum_ms = (number(field(figures, "avg_rt_ms")?)? * completed as f64).round() as u64;
            Some([sum_ms * 1_000_000 / completed, figure("min_rt_ms")? * 1_000_000])
        };
        let (in_flight, previous) = (figure("concurrency")?, figure("previous_second_pass")?);
        Ok(Self { second, minute: span("minute_")?, rt_ns, in_flight, previous_second_passed: previous })
    }

    fn of(registry: &Registry) -> Result<Self> {
        let stats = registry.stats(RESOURCE).ok_or("no statistics")?;
        let [second, minute] = [stats.second(), stats.minute()]
            .map(|span| [span.passed(), span.blocked(), span.completed(), span.exception()]);
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Sentinel's shortest response time is never under 1 ms; ours is what it was.
        let shortest = |min: Duration| min.max(Duration::from_millis(1));
        let rt_ns = stats.second().rt_avg().zip(stats.second().rt_min());
        let rt_ns = rt_ns.map(|(avg, min)| [ns(avg), ns(shortest(min))]);
        let (in_flight, previous_second_passed) = (stats.in_flight(), stats.previous_second_passed());
        Ok(Self { second, minute, rt_ns, in_flight, previous_second_passed })
    }
}

impl Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
