//! When a plan is at rest: a new one of the same rules would decide as it does.

use std::time::Duration;

use super::Plan;
use super::isolation::Isolation;
use crate::clock::Timestamp;
use crate::rule::{BreakerState, BreakerWindow, FlowRule, HotRule, Precision, Rule};

/// On top of what arithmetic says: late readings, buckets that are cut off, turns of a warm-up.
const SLACK: Duration = Duration::from_secs(1);

impl Plan {
    /// How long after its last call a resource of these rules still remembers it.
    ///
    /// Windows, lines, warmth and the values of parameters forget with time, so the rules alone say it, whatever number of
    /// values or origins has been seen.
    pub(crate) fn memory(&self) -> Duration {
        let longest = self.rules.iter().map(|(_, rule)| memory(rule)).max();
        longest.unwrap_or_default().saturating_add(SLACK)
    }

    /// Whether what time alone does not undo is as in a new plan: breakers closed, with nothing bad among their last calls,
    /// nobody in the isolation or before it, and no turn taken that is still to come, for a price that was another one. The same
    /// holds of rules in shadow; of a breaker that is off only what a hand has put.
    pub(crate) fn is_at_rest(&self, now: Timestamp) -> bool {
        let is_free = |isolation: &Isolation| isolation.in_flight() == 0 && isolation.queued() == 0;
        self.isolation.as_ref().is_none_or(is_free)
            && self.flow.has_no_line(now)
            && self.breakers.iter().all(|breaker| {
                let figures = breaker.figures(now);
                figures.state == BreakerState::Closed && figures.sample.bad == 0
            })
            && self.parked().is_none_or(|off| off.breakers.iter().all(|breaker| !breaker.state().is_forced()))
            && self.shadows().iter().all(|shadow| shadow.plan().is_at_rest(now))
    }
}

/// How long a rule remembers a call.
fn memory(rule: &Rule) -> Duration {
    match rule {
        Rule::Flow(rule) => of_flow(rule),
        Rule::Hot(rule) => of_hot(rule),
        Rule::Breaker(rule) => match rule.window() {
            // In buckets, which leave as a whole.
            BreakerWindow::Time { interval, .. } => interval.saturating_mul(2),
            // Of the last calls nothing but bad ones matter, whenever they were.
            BreakerWindow::Calls(_) => Duration::ZERO,
        },
        Rule::Isolation(_) | Rule::Authority(_) | Rule::System(_) => Duration::ZERO,
    }
}

/// A window in buckets is one bucket longer than its interval. A call may start as late as the longest wait allows, with as
/// many permits as fit at once, which are paid for at the lowest rate. What is warm cools down by a full limit per interval.
fn of_flow(rule: &FlowRule) -> Duration {
    let window = rule.interval().saturating_add(rule.interval() / rule.n_buckets());
    let cooling = rule.behavior().warm_up().map_or(Duration::ZERO, |(period, factor)| {
        // All the tokens that there can be, over those that come per interval: see `warm_up`. Sentinel cuts the factor off.
        let below = factor - 1.0;
        let below = if rule.precision() == Precision::Sentinel { below.trunc() } else { below };
        seconds(period.as_secs_f64() * (1.0 / below + 2.0 / (1.0 + factor))).saturating_add(rule.interval())
    });
    let line = rule.behavior().max_wait().map_or(Duration::ZERO, |max_wait| {
        let factor = rule.behavior().warm_up().map_or(1.0, |(_, factor)| factor);
        let most = (rule.limit() + f64::from(rule.burst())).max(1.0);
        max_wait.saturating_add(if rule.limit() > 0.0 {
            seconds(rule.interval().as_secs_f64() * most * factor / rule.limit())
        } else {
            Duration::ZERO
        })
    });
    window.saturating_add(cooling).saturating_add(line)
}

/// As for flow: a value's bucket, or its line, is empty again when all that fits at once is paid for. Of several limits the
/// lowest takes longest.
fn of_hot(rule: &HotRule) -> Duration {
    let limits = rule.limit().into_iter().chain(rule.exceptions().map(|(_, limit)| limit));
    let lowest = limits.filter(|limit| *limit > 0.0).fold(f64::INFINITY, f64::min);
    let line = seconds(rule.interval().as_secs_f64() * f64::from(rule.burst().max(1)) / lowest);
    let window = rule.interval().saturating_mul(2);
    window.saturating_add(line).saturating_add(rule.max_wait().unwrap_or_default())
}

/// For ever, where it is too long to be told.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
