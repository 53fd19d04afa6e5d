//! Circuit breakers: when they trip, and how they recover.

use std::fmt;
use std::time::Duration;

use super::flow::{check_buckets, is_time};
use super::{Mode, RuleError, RuleKind};

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Calls flow.
    Closed,
    /// Calls are blocked.
    Open,
    /// A few calls, the probes, are let through; their outcome closes or reopens the breaker.
    HalfOpen,
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        })
    }
}

/// What trips a breaker.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Strategy {
    /// More than `ratio` of the calls took longer than `slow_rt`. A ratio of 1 trips when reached.
    SlowRatio {
        /// A call is slow when its response time is above this.
        slow_rt: Duration,
        /// The share of slow calls that is still borne.
        ratio: f64,
    },
    /// More than `ratio` of the calls ended with an exception. A ratio of 1 trips when reached.
    ErrorRatio {
        /// The share of exceptions that is still borne.
        ratio: f64,
    },
    /// More than `count` calls ended with an exception.
    ErrorCount {
        /// The number of exceptions that is still borne.
        count: u32,
    },
}

/// Blocks calls for a while after too many of them went wrong, then lets probes decide.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leap_runtime::BreakerRule;
///
/// let rule = BreakerRule::error_ratio(0.5)?.with_min_calls(10)?.open_for(Duration::from_secs(2))?;
/// assert_eq!(rule.to_string(), "error_ratio: over 0.5 of at least 10 calls in 1s, open 2s");
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRule {
    strategy: Strategy,
    min_calls: u32,
    window: Duration,
    n_buckets: u32,
    open_for: Duration,
    probes: u32,
    mode: Mode,
}

impl BreakerRule {
    /// Trips when more than `ratio` of the calls are slower than `slow_rt`.
    ///
    /// # Errors
    ///
    /// A ratio outside 0 to 1.
    pub const fn slow_ratio(slow_rt: Duration, ratio: f64) -> Result<Self, RuleError> {
        Self::new(Strategy::SlowRatio { slow_rt, ratio }).checked()
    }

    /// Trips when more than `ratio` of the calls end with an exception.
    ///
    /// # Errors
    ///
    /// A ratio outside 0 to 1.
    pub const fn error_ratio(ratio: f64) -> Result<Self, RuleError> {
        Self::new(Strategy::ErrorRatio { ratio }).checked()
    }

    /// Trips when more than `count` calls end with an exception.
    pub const fn error_count(count: u32) -> Self {
        Self::new(Strategy::ErrorCount { count })
    }

    const fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            min_calls: 5,
            window: Duration::from_secs(1),
            n_buckets: 1,
            open_for: Duration::from_secs(5),
            probes: 1,
            mode: Mode::Enforce,
        }
    }

    /// Sets how many calls a window needs before it means anything (5).
    ///
    /// # Errors
    ///
    /// 0 calls.
    pub const fn with_min_calls(mut self, min_calls: u32) -> Result<Self, RuleError> {
        self.min_calls = min_calls;
        self.checked()
    }

    /// Sets the window that calls are judged in (1 s in 1 bucket).
    ///
    /// # Errors
    ///
    /// A window of 0 or over 366 days, or one that `n_buckets` does not divide into parts of at least 1 µs.
    pub const fn with_window(mut self, window: Duration, n_buckets: u32) -> Result<Self, RuleError> {
        self.window = window;
        self.n_buckets = n_buckets;
        self.checked()
    }

    /// Sets how long the breaker stays open before probes are let through (5 s).
    ///
    /// # Errors
    ///
    /// A time of 0 or over 366 days.
    pub const fn open_for(mut self, time: Duration) -> Result<Self, RuleError> {
        self.open_for = time;
        self.checked()
    }

    /// Sets how many calls are let through while half-open, all of which must succeed to close the breaker (1).
    ///
    /// # Errors
    ///
    /// A number outside 1 to 1 023.
    pub const fn with_probes(mut self, probes: u32) -> Result<Self, RuleError> {
        self.probes = probes;
        self.checked()
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    const fn checked(self) -> Result<Self, RuleError> {
        if let Strategy::SlowRatio { ratio, .. } | Strategy::ErrorRatio { ratio } = self.strategy
            && !(ratio >= 0.0 && ratio <= 1.0)
        {
            return Err(RuleError::Ratio(ratio));
        }
        if self.min_calls == 0 {
            return Err(RuleError::MinCalls);
        }
        if !is_time(self.window) {
            return Err(RuleError::Interval(self.window));
        }
        if let Err(error) = check_buckets(self.window, self.n_buckets) {
            return Err(error);
        }
        if !is_time(self.open_for) {
            return Err(RuleError::OpenFor(self.open_for));
        }
        if self.probes == 0 || self.probes > 1_023 {
            return Err(RuleError::Probes(self.probes));
        }
        Ok(self)
    }

    /// The kind of this rule: each strategy is one.
    pub const fn kind(&self) -> RuleKind {
        match self.strategy {
            Strategy::SlowRatio { .. } => RuleKind::SlowRatio,
            Strategy::ErrorRatio { .. } => RuleKind::ErrorRatio,
            Strategy::ErrorCount { .. } => RuleKind::ErrorCount,
        }
    }

    /// What trips the breaker.
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The calls that a window needs before it means anything.
    pub const fn min_calls(&self) -> u32 {
        self.min_calls
    }

    /// The window that calls are judged in.
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// The buckets of that window.
    pub const fn n_buckets(&self) -> u32 {
        self.n_buckets
    }

    /// How long the breaker stays open before probes are let through.
    pub const fn open_time(&self) -> Duration {
        self.open_for
    }

    /// The calls let through while half-open.
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// Whether the rule decides.
    pub const fn mode(&self) -> Mode {
        self.mode
    }
}

impl fmt::Display for BreakerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.strategy {
            Strategy::SlowRatio { slow_rt, ratio: 1.0 } => {
                write!(f, "slow_ratio: all slower than {slow_rt:?}")?;
            }
            Strategy::SlowRatio { slow_rt, ratio } => {
                write!(f, "slow_ratio: over {ratio} slower than {slow_rt:?}")?;
            }
            Strategy::ErrorRatio { ratio: 1.0 } => f.write_str("error_ratio: all")?,
            Strategy::ErrorRatio { ratio } => write!(f, "error_ratio: over {ratio}")?,
            Strategy::ErrorCount { count } => write!(f, "error_count: over {count}")?,
        }
        write!(f, " of at least {} calls in {:?}, open {:?}", self.min_calls, self.window, self.open_for)?;
        if self.probes > 1 {
            write!(f, ", {} probes", self.probes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_takes_shares_between_0_and_1_only() {
        for ratio in [0.0, 0.5, 1.0] {
            assert!(BreakerRule::error_ratio(ratio).is_ok());
        }
        for ratio in [-0.1, 1.1, f64::INFINITY] {
            assert_eq!(BreakerRule::error_ratio(ratio), Err(RuleError::Ratio(ratio)));
        }
        assert!(BreakerRule::slow_ratio(Duration::ZERO, f64::NAN).is_err());
    }

    #[test]
    fn the_bounds_of_a_breaker_are_named() {
        let rule = BreakerRule::error_count(3);
        assert_eq!(rule.with_min_calls(0), Err(RuleError::MinCalls));
        assert_eq!(rule.with_probes(1_024), Err(RuleError::Probes(1_024)));
        assert!(rule.with_probes(1_023).is_ok());
        assert_eq!(rule.open_for(Duration::ZERO), Err(RuleError::OpenFor(Duration::ZERO)));
        let (interval, n_buckets) = (Duration::from_secs(1), 3);
        assert_eq!(rule.with_window(interval, 3), Err(RuleError::Buckets { interval, n_buckets }));
    }
}
