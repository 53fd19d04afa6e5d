//! Circuit breakers: when they trip, and how they recover.

use std::fmt;
use std::time::Duration;

use super::flow::{check_buckets, is_time, or, time_or};
use super::{Mode, RuleError, RuleKind};

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls flow.
    Closed,
    /// Calls are blocked.
    Open,
    /// A few calls, the probes, are let through, or a rising share of all; their outcome closes or reopens the
    /// breaker.
    HalfOpen,
    /// Calls are blocked until somebody resets the breaker.
    ForcedOpen,
    /// Calls flow and are counted, and nothing trips the breaker until somebody resets it.
    ForcedClosed,
    /// Calls flow and are not counted, as if there were no such rule, until somebody resets the breaker.
    Disabled,
}

impl BreakerState {
    /// Whether somebody put the breaker there by hand, and nothing but a hand takes it away.
    pub const fn is_forced(self) -> bool {
        matches!(self, Self::ForcedOpen | Self::ForcedClosed | Self::Disabled)
    }
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
            Self::ForcedOpen => "forced open",
            Self::ForcedClosed => "forced closed",
            Self::Disabled => "disabled",
        })
    }
}

/// The calls that a breaker judges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerWindow {
    /// Those that ended in the last interval.
    Time {
        /// How long a result counts.
        interval: Duration,
        /// The equal parts in which it leaves.
        n_buckets: u32,
    },
    /// So many that ended last, however long ago.
    Calls(u32),
}

/// How a breaker comes back once its open time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// It closes when its probes have succeeded.
    #[default]
    Probes,
    /// When its probes have succeeded, a share of the calls is let through that rises from 1 % to all of them. Too many
    /// bad ones among them open the breaker again, by the rule's own threshold; else it closes.
    Ramp {
        /// How long the share takes to rise.
        over: Duration,
    },
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
///
/// Of the last calls instead of the last second, staying open longer each time, and coming back bit by bit:
///
/// ```
/// # use std::time::Duration;
/// # use leap_runtime::{BreakerRule, Recovery};
/// let rule = BreakerRule::error_ratio(0.5)?
///     .with_window_calls(100)?
///     .with_max_open(Duration::from_secs(60))?
///     .with_recovery(Recovery::Ramp { over: Duration::from_secs(10) })?;
/// assert_eq!(
///     rule.to_string(),
///     "error_ratio: over 0.5 of at least 5 of the last 100 calls, open 5s to 60s, then a ramp of 10s"
/// );
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRule {
    strategy: Strategy,
    min_calls: u32,
    window: BreakerWindow,
    open_for: Duration,
    max_open: Option<Duration>,
    probes: u32,
    recovery: Recovery,
    mode: Mode,
}

/// What a rule has where nothing is said: the one place for the types, the attribute and data.
#[cfg(feature = "serde")] // The attribute writes it out.
pub(super) const SLOW_RATIO: f64 = 1.0;
pub(super) const MIN_CALLS: u32 = 5;
pub(super) const WINDOW: Duration = Duration::from_secs(1);
pub(super) const N_BUCKETS: u32 = 1;
pub(super) const OPEN_FOR: Duration = Duration::from_secs(5);
pub(super) const PROBES: u32 = 1;
/// The largest window of calls.
pub(super) const MAX_CALLS: u32 = 10_000;
/// The most probes: the breaker's word has room for so many.
pub(super) const MAX_PROBES: u32 = 1_023;

/// The value of `recovery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "for expansions only")]
pub enum RecoveryWord {
    Probes,
    Ramp,
}

/// What the attribute or data say of a breaker besides what trips it, in their words.
#[derive(Clone, Copy)]
pub(crate) struct BreakerWords {
    pub(crate) min_calls: Option<u32>,
    pub(crate) window: Option<Duration>,
    pub(crate) buckets: Option<u32>,
    pub(crate) window_calls: Option<u32>,
    pub(crate) open_for: Option<Duration>,
    pub(crate) max_open: Option<Duration>,
    pub(crate) probes: Option<u32>,
    pub(crate) recovery: Option<RecoveryWord>,
    /// How long a ramp takes; as long as the breaker was open, unless given.
    pub(crate) ramp: Option<Duration>,
    pub(crate) mode: Mode,
}

impl BreakerWords {
    /// The rule that trips by `strategy`, with defaults for what is not said.
    pub(crate) const fn rule(self, strategy: Strategy) -> Result<BreakerRule, RuleError> {
        let open_for = time_or(self.open_for, OPEN_FOR);
        let window = match self.window_calls {
            Some(calls) => BreakerWindow::Calls(calls),
            None => BreakerWindow::Time {
                interval: time_or(self.window, WINDOW),
                n_buckets: or(self.buckets, N_BUCKETS),
            },
        };
        let recovery = match self.recovery {
            Some(RecoveryWord::Ramp) => Recovery::Ramp { over: time_or(self.ramp, open_for) },
            Some(RecoveryWord::Probes) | None => Recovery::Probes,
        };
        let rule = BreakerRule {
            strategy,
            min_calls: or(self.min_calls, MIN_CALLS),
            window,
            open_for,
            max_open: self.max_open,
            probes: or(self.probes, PROBES),
            recovery,
            mode: self.mode,
        };
        rule.checked()
    }
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
            min_calls: MIN_CALLS,
            window: BreakerWindow::Time { interval: WINDOW, n_buckets: N_BUCKETS },
            open_for: OPEN_FOR,
            max_open: None,
            probes: PROBES,
            recovery: Recovery::Probes,
            mode: Mode::Enforce,
        }
    }

    /// Sets how many calls a window needs before it means anything (5).
    ///
    /// # Errors
    ///
    /// 0 calls, or more than a window of calls holds.
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
        self.window = BreakerWindow::Time { interval: window, n_buckets };
        self.checked()
    }

    /// Judges by the `calls` that ended last instead of those of a time. Their age plays no part.
    ///
    /// # Errors
    ///
    /// A number outside 1 to 10 000, or under the [least number of calls](Self::with_min_calls), which is to be set
    /// first; a count of exceptions that so few calls can never exceed.
    pub const fn with_window_calls(mut self, calls: u32) -> Result<Self, RuleError> {
        self.window = BreakerWindow::Calls(calls);
        self.checked()
    }

    /// Sets how long the breaker stays open before probes are let through (5 s).
    ///
    /// # Errors
    ///
    /// A time of 0 or over 366 days, or above the [longest](Self::with_max_open).
    pub const fn open_for(mut self, time: Duration) -> Result<Self, RuleError> {
        self.open_for = time;
        self.checked()
    }

    /// Lets the open time grow: each trip without a recovery before it doubles the time, up to `longest`.
    ///
    /// Each time is then drawn between 0.9 and 1.1 times that, and never above `longest`, so that many processes do not
    /// come back at one moment. What is drawn depends on the rule's id, the number of the transition and the moment at
    /// which the breaker was made, and on nothing else: on virtual time a run repeats itself.
    ///
    /// # Errors
    ///
    /// A time over 366 days, or under the [open time](Self::open_for), which is to be set first.
    pub const fn with_max_open(mut self, longest: Duration) -> Result<Self, RuleError> {
        self.max_open = Some(longest);
        self.checked()
    }

    /// Sets how the breaker comes back once its open time is over ([`Recovery::Probes`]).
    ///
    /// # Errors
    ///
    /// A ramp over no time or over 366 days.
    pub const fn with_recovery(mut self, recovery: Recovery) -> Result<Self, RuleError> {
        self.recovery = recovery;
        self.checked()
    }

    /// Sets how many calls are let through while half-open, all of which must succeed to close the breaker, or to begin
    /// its ramp (1).
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
        match self.window {
            BreakerWindow::Time { interval, n_buckets } => {
                if !is_time(interval) {
                    return Err(RuleError::Interval(interval));
                }
                if let Err(error) = check_buckets(interval, n_buckets) {
                    return Err(error);
                }
            }
            BreakerWindow::Calls(calls) => {
                if calls == 0 || calls > MAX_CALLS {
                    return Err(RuleError::WindowCalls(calls));
                }
                if self.min_calls > calls {
                    return Err(RuleError::MinCallsOfWindow { min_calls: self.min_calls, calls });
                }
                if let Strategy::ErrorCount { count } = self.strategy
                    && count >= calls
                {
                    return Err(RuleError::CountOfWindow { count, calls });
                }
            }
        }
        if !is_time(self.open_for) {
            return Err(RuleError::OpenFor(self.open_for));
        }
        if let Some(longest) = self.max_open
            && (!is_time(longest) || longest.as_nanos() < self.open_for.as_nanos())
        {
            return Err(RuleError::MaxOpen { longest, open_for: self.open_for });
        }
        if let Recovery::Ramp { over } = self.recovery
            && !is_time(over)
        {
            return Err(RuleError::Ramp(over));
        }
        if self.probes == 0 || self.probes > MAX_PROBES {
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
    pub const fn window(&self) -> BreakerWindow {
        self.window
    }

    /// How long the breaker stays open before probes are let through: always, or at first where the time grows.
    pub const fn open_time(&self) -> Duration {
        self.open_for
    }

    /// The longest that the open time grows to; none where it does not grow.
    pub const fn max_open(&self) -> Option<Duration> {
        self.max_open
    }

    /// How the breaker comes back once its open time is over.
    pub const fn recovery(&self) -> Recovery {
        self.recovery
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
        match self.window {
            BreakerWindow::Time { interval, .. } => {
                write!(f, " of at least {} calls in {interval:?}", self.min_calls)?;
            }
            BreakerWindow::Calls(calls) => {
                write!(f, " of at least {} of the last {calls} calls", self.min_calls)?;
            }
        }
        write!(f, ", open {:?}", self.open_for)?;
        if let Some(longest) = self.max_open {
            write!(f, " to {longest:?}")?;
        }
        if self.probes > 1 {
            write!(f, ", {} probes", self.probes)?;
        }
        match self.recovery {
            Recovery::Probes => Ok(()),
            Recovery::Ramp { over } => write!(f, ", then a ramp of {over:?}"),
        }
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

    #[test]
    fn a_window_of_calls_holds_the_calls_that_it_needs() {
        let rule = BreakerRule::error_ratio(0.5).unwrap();
        let too_few = RuleError::MinCallsOfWindow { min_calls: 5, calls: 4 };
        assert_eq!(rule.with_window_calls(4), Err(too_few));
        assert!(rule.with_window_calls(5).is_ok());
        assert_eq!(
            rule.with_window_calls(5).unwrap().with_min_calls(6),
            Err(RuleError::MinCallsOfWindow { min_calls: 6, calls: 5 })
        );
        assert!(rule.with_window_calls(10_000).is_ok());
        for calls in [0, 10_001] {
            assert_eq!(rule.with_window_calls(calls), Err(RuleError::WindowCalls(calls)));
        }
        let count = RuleError::CountOfWindow { count: 9, calls: 9 };
        assert_eq!(BreakerRule::error_count(9).with_window_calls(9), Err(count));
        assert!(BreakerRule::error_count(8).with_window_calls(9).is_ok());
    }

    #[test]
    fn an_open_time_grows_to_no_less_than_it_begins_with() {
        let rule = BreakerRule::error_count(3);
        let (open_for, shorter) = (Duration::from_secs(5), Duration::from_millis(4_999));
        assert_eq!(rule.with_max_open(shorter), Err(RuleError::MaxOpen { longest: shorter, open_for }));
        assert!(rule.with_max_open(open_for).is_ok());
        let year = Duration::from_secs(366 * 86_400 + 1);
        assert_eq!(rule.with_max_open(year), Err(RuleError::MaxOpen { longest: year, open_for }));
        let over = Duration::ZERO;
        assert_eq!(rule.with_recovery(Recovery::Ramp { over }), Err(RuleError::Ramp(over)));
    }
}
