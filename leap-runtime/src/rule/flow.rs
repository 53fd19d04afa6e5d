//! Limits on permits per interval.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::{Mode, RuleError};

/// The largest limit that is kept exactly unless asked for otherwise.
const EXACT_BY_DEFAULT: f64 = 1_024.0;
/// The largest limit that can be kept exactly.
const EXACT_AT_MOST: f64 = 1_048_576.0;
/// Above so many permits per window a limit is no limit.
const UNLIMITED_ABOVE: f64 = 2_147_483_647.0;
/// The most buckets that an interval is cut into.
const MAX_BUCKETS: u32 = 10_000;
/// The longest interval or open time.
const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Whether an interval or open time can be watched.
pub(super) const fn is_time(time: Duration) -> bool {
    !time.is_zero() && time.as_nanos() <= YEAR.as_nanos()
}

/// Whether an interval is cut into equal buckets that a window can have.
pub(super) const fn check_buckets(interval: Duration, n_buckets: u32) -> Result<(), RuleError> {
    if n_buckets > MAX_BUCKETS {
        return Err(RuleError::TooManyBuckets(n_buckets));
    }
    let (nanos, n) = (interval.as_nanos(), n_buckets as u128);
    if n == 0 || !nanos.is_multiple_of(n) || nanos / n < 1_000 {
        return Err(RuleError::Buckets { interval, n_buckets });
    }
    Ok(())
}

/// What becomes of calls above the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Behavior {
    /// Calls above the limit are blocked.
    #[default]
    Reject,
}

/// Which calls a flow rule counts and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Relation {
    /// All calls of the resource.
    #[default]
    Own,
    /// The calls of the resource are refused while another resource has reached the limit.
    Associated(Cow<'static, str>),
    /// Calls that came in by this entrance.
    Entrance(Cow<'static, str>),
    /// Calls of this origin.
    Origin(Cow<'static, str>),
    /// Calls of origins that no other rule of the resource names, each counted on its own.
    OtherOrigins,
    /// Calls of every origin, each counted on its own.
    EachOrigin,
}

/// How exactly a window limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// No span of one interval, wherever it starts, holds more than the limit; and a call is refused only when there
    /// is no room. Remembers when each of the last permits passed: 8 bytes per permit, up to 2²⁰ permits.
    Exact,
    /// Never more than the limit, by the latest clock reading that the resource had seen when a call was let through; a
    /// call may be refused when more than `limit − n` permits passed within the last
    /// interval plus one bucket. Costs the same for any limit.
    Strict,
    /// What Sentinel counts: the running bucket and those before it, up to one interval. With 2 buckets up to twice
    /// the limit may pass in an interval that is not aligned with them.
    Sentinel,
}

/// At most `limit` permits per interval.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leap_runtime::{Behavior, FlowRule, Precision};
///
/// let per_second = FlowRule::new(100.0, Behavior::Reject)?;
/// assert_eq!(per_second.to_string(), "flow: 100 per 1s, exact");
///
/// let per_minute = FlowRule::new(5_000.0, Behavior::Reject)?.per(Duration::from_secs(60))?;
/// assert_eq!(per_minute.precision(), Precision::Strict);
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRule {
    limit: f64,
    interval: Duration,
    behavior: Behavior,
    precision: Option<Precision>,
    n_buckets: u32,
    relation: &'static Relation,
    mode: Mode,
}

impl FlowRule {
    /// Allows `limit` permits per second; 0 blocks every call.
    ///
    /// A fraction of a permit never passes: 2.5 lets 2 through. Above 2³¹ − 1 permits per window the rule is kept
    /// and shown, but is no limit.
    ///
    /// # Errors
    ///
    /// A limit that is negative, infinite, not a number, or between 0 and 1.
    pub const fn new(limit: f64, behavior: Behavior) -> Result<Self, RuleError> {
        Self { behavior, ..Self::unchecked(limit, Duration::from_secs(1)) }.checked()
    }

    /// As `new(limit, Reject)?.per(interval)`, but a wrong limit is told with its own interval.
    pub(crate) const fn with_interval(limit: f64, interval: Duration) -> Result<Self, RuleError> {
        Self::unchecked(limit, interval).checked()
    }

    const fn unchecked(limit: f64, interval: Duration) -> Self {
        let (behavior, mode) = (Behavior::Reject, Mode::Enforce);
        Self { limit, interval, behavior, precision: None, n_buckets: 100, relation: &Relation::Own, mode }
    }

    /// Sets the interval that the limit is for (1 s).
    ///
    /// # Errors
    ///
    /// An interval of 0 or over 366 days, or one that the buckets do not divide.
    pub const fn per(mut self, interval: Duration) -> Result<Self, RuleError> {
        self.interval = interval;
        self.checked()
    }

    /// Sets how exactly the limit holds (`Exact` up to 1 024 permits per window, else `Strict`).
    ///
    /// # Errors
    ///
    /// `Exact` with over 2²⁰ permits per window; otherwise a number of buckets that does not divide the interval.
    pub const fn with_precision(mut self, precision: Precision) -> Result<Self, RuleError> {
        self.precision = Some(precision);
        self.checked()
    }

    /// Sets how many buckets the interval, which is set before, is counted in (100). `Exact` counts without buckets.
    ///
    /// # Errors
    ///
    /// A number that does not divide the interval into equal parts of at least 1 µs.
    pub const fn with_buckets(mut self, n_buckets: u32) -> Result<Self, RuleError> {
        self.n_buckets = n_buckets;
        match check_buckets(self.interval, n_buckets) {
            Ok(()) => self.checked(),
            Err(error) => Err(error),
        }
    }

    /// Which calls the rule counts and limits.
    pub fn relation(&self) -> &Relation {
        self.relation
    }

    #[cfg(test)]
    pub(crate) fn related_by(mut self, relation: Relation) -> Self {
        self.relation = Box::leak(Box::new(relation));
        self
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    const fn checked(self) -> Result<Self, RuleError> {
        if !(self.limit >= 0.0 && self.limit.is_finite()) {
            return Err(RuleError::Limit(self.limit));
        }
        if !is_time(self.interval) {
            return Err(RuleError::Interval(self.interval));
        }
        if self.limit > 0.0 && self.limit < 1.0 {
            return Err(RuleError::FractionalLimit { limit: self.limit, interval: self.interval });
        }
        match self.precision() {
            Precision::Exact if self.limit > EXACT_AT_MOST => Err(RuleError::ExactLimit(self.limit)),
            Precision::Exact => Ok(self),
            Precision::Strict | Precision::Sentinel => match check_buckets(self.interval, self.n_buckets) {
                Ok(()) => Ok(self),
                Err(error) => Err(error),
            },
        }
    }

    /// The permits allowed per interval, as given.
    pub const fn limit(&self) -> f64 {
        self.limit
    }

    /// The interval that the limit is for.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// What becomes of calls above the limit.
    pub const fn behavior(&self) -> Behavior {
        self.behavior
    }

    /// How exactly the limit holds.
    pub const fn precision(&self) -> Precision {
        match self.precision {
            Some(precision) => precision,
            None if self.limit <= EXACT_BY_DEFAULT => Precision::Exact,
            None => Precision::Strict,
        }
    }

    /// The buckets that the interval is counted in, unless it is counted exactly.
    pub const fn n_buckets(&self) -> u32 {
        self.n_buckets
    }

    /// Whether the rule decides.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The interval in ns.
    #[inline]
    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval.as_secs() * 1_000_000_000 + u64::from(self.interval.subsec_nanos())
    }

    /// Whole permits per window; none where the limit is too large to be one.
    pub(crate) const fn permits(&self) -> Option<u64> {
        if self.limit > UNLIMITED_ABOVE {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: 0 to 2³¹ − 1")]
        Some(self.limit as u64)
    }
}

impl fmt::Display for FlowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow: {} per {:?}, ", self.limit, self.interval)?;
        match self.precision() {
            Precision::Exact => f.write_str("exact"),
            Precision::Strict => write!(f, "strict in {} buckets", self.n_buckets),
            Precision::Sentinel => write!(f, "as Sentinel in {} buckets", self.n_buckets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(limit: f64) -> Result<FlowRule, RuleError> {
        FlowRule::new(limit, Behavior::Reject)
    }

    #[test]
    fn a_limit_is_zero_or_at_least_one_and_finite() {
        for limit in [0.0, 1.0, 2.5, 1_024.0, 1e308] {
            assert!(rule(limit).is_ok(), "{limit}");
        }
        for limit in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.5, f64::MIN_POSITIVE, 0.999] {
            assert!(rule(limit).is_err(), "{limit}");
        }
        assert_eq!(rule(-1.0), Err(RuleError::Limit(-1.0)));
    }

    #[test]
    fn limits_up_to_1024_are_exact_and_larger_ones_strict_unless_asked_for() {
        assert_eq!(rule(1_024.0).unwrap().precision(), Precision::Exact);
        assert_eq!(rule(1_025.0).unwrap().precision(), Precision::Strict);
        assert!(rule(1_048_576.0).unwrap().with_precision(Precision::Exact).is_ok());
        assert_eq!(
            rule(1_048_577.0).unwrap().with_precision(Precision::Exact),
            Err(RuleError::ExactLimit(1_048_577.0))
        );
    }

    #[test]
    fn whole_permits_pass_and_huge_limits_are_none() {
        assert_eq!(rule(2.9).unwrap().permits(), Some(2));
        assert_eq!(rule(2_147_483_647.0).unwrap().permits(), Some(2_147_483_647));
        assert_eq!(rule(2_147_483_648.0).unwrap().permits(), None);
    }

    #[test]
    fn a_limit_too_small_for_any_interval_is_told_without_a_proposal() {
        for limit in [1e-20, f64::MIN_POSITIVE, 1e-9] {
            let text = rule(limit).unwrap_err().to_string();
            assert!(text.ends_with("the least is 1 per 366 days"), "{text}");
        }
    }

    #[test]
    fn buckets_are_checked_when_they_are_given_whatever_the_precision() {
        assert!(rule(10.0).unwrap().with_buckets(0).is_err());
        assert!(rule(10.0).unwrap().with_buckets(10_001).is_err());
        assert!(rule(10.0).unwrap().per(Duration::from_micros(10)).is_ok(), "exact needs no buckets");
    }

    #[test]
    fn buckets_must_divide_the_interval() {
        let strict = rule(10.0).unwrap().with_precision(Precision::Strict).unwrap();
        assert!(strict.with_buckets(1_000).is_ok());
        for n_buckets in [0, 3, 7] {
            let error = strict.with_buckets(n_buckets).unwrap_err();
            assert_eq!(error, RuleError::Buckets { interval: Duration::from_secs(1), n_buckets });
            assert!(error.to_string().contains("1s") && error.to_string().contains(&n_buckets.to_string()));
        }
    }
}
