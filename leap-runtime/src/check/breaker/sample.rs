//! What a breaker judges by: calls and bad calls.

use crate::rule::{BreakerRule, Strategy};

/// Calls and bad calls of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) calls: u32,
    pub(crate) bad: u32,
}

impl Sample {
    /// Whether a closed breaker opens on this.
    pub(super) fn trips(self, rule: &BreakerRule) -> bool {
        self.calls >= rule.min_calls() && self.exceeds(rule)
    }

    /// Whether this is worse than the rule bears, however few calls there are. As in Sentinel: *more than* the ratio or
    /// count, and a ratio of 1 when it is reached, because nothing is more than all calls.
    pub(super) fn exceeds(self, rule: &BreakerRule) -> bool {
        if self.bad == 0 {
            return false;
        }
        match rule.strategy() {
            Strategy::SlowRatio { ratio, .. } | Strategy::ErrorRatio { ratio } => {
                let share = f64::from(self.bad) / f64::from(self.calls);
                share > ratio || self.bad == self.calls && ratio >= 1.0
            }
            Strategy::ErrorCount { count } => self.bad > count,
        }
    }
}
