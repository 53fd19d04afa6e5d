//! Limits on calls in flight.

use std::fmt;
use std::time::Duration;

use super::flow::is_time;
use super::{Mode, RuleError};

/// At most so many calls (counted in permits) in flight at once; further ones are blocked, or wait in a queue.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leap_runtime::IsolationRule;
///
/// let rule = IsolationRule::new(32);
/// assert_eq!(rule.to_string(), "isolation: at most 32 in flight");
///
/// let queueing = rule.with_queue(Duration::from_millis(50))?;
/// assert_eq!(queueing.to_string(), "isolation: at most 32 in flight, others queue for 50ms");
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolationRule {
    max_concurrency: u32,
    queue_time: Duration,
    mode: Mode,
}

impl IsolationRule {
    /// Allows `max_concurrency` permits in flight; 0 blocks every call.
    pub const fn new(max_concurrency: u32) -> Self {
        Self { max_concurrency, queue_time: Duration::ZERO, mode: Mode::Enforce }
    }

    /// Has calls above the limit wait for up to `time`, first come, first served, before they are blocked (0: not at
    /// all).
    ///
    /// Who waits for permits holds none. While anybody waits, a call that comes later does not overtake it, even if
    /// there is room for its own permits. Of several rules that refuse a call, the shortest time counts.
    ///
    /// # Errors
    ///
    /// If the time is over a year.
    pub const fn with_queue(mut self, time: Duration) -> Result<Self, RuleError> {
        if !time.is_zero() && !is_time(time) {
            return Err(RuleError::QueueTime(time));
        }
        self.queue_time = time;
        Ok(self)
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The permits that may be in flight at once.
    pub const fn max_concurrency(&self) -> u32 {
        self.max_concurrency
    }

    /// How long a call above the limit waits before it is blocked; 0 if it does not wait.
    pub const fn queue_time(&self) -> Duration {
        self.queue_time
    }

    /// Whether the rule decides.
    pub const fn mode(&self) -> Mode {
        self.mode
    }
}

impl fmt::Display for IsolationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "isolation: at most {} in flight", self.max_concurrency)?;
        if !self.queue_time.is_zero() {
            write!(f, ", others queue for {:?}", self.queue_time)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_queue_for_a_year_and_no_longer() {
        let rule = IsolationRule::new(8);
        let year = Duration::from_secs(366 * 24 * 60 * 60);
        assert_eq!(rule.with_queue(Duration::ZERO), Ok(rule));
        assert_eq!(rule.with_queue(year).map(|rule| rule.queue_time()), Ok(year));
        let longer = year + Duration::from_nanos(1);
        assert_eq!(rule.with_queue(longer), Err(RuleError::QueueTime(longer)));
        assert_eq!(
            RuleError::QueueTime(longer).to_string(),
            "a call cannot queue for 31622400.000000001s: at most a year"
        );
    }
}
