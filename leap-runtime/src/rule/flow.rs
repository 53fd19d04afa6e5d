//! Limits on permits per interval.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::{Mode, NAME_MAX, RuleError};

/// The largest limit that is kept exactly unless asked for otherwise.
const EXACT_BY_DEFAULT: f64 = 1_024.0;
/// The largest limit that can be kept exactly.
const EXACT_AT_MOST: f64 = 1_048_576.0;
/// Above so many permits per window a limit is no limit.
const UNLIMITED_ABOVE: f64 = 2_147_483_647.0;
/// The most buckets that an interval is cut into.
pub(super) const MAX_BUCKETS: u32 = 10_000;
/// What a rule has where nothing is said: the one place for the types, the attribute and data.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);
pub(super) const N_BUCKETS: u32 = 100;
pub(super) const WARM_UP: Duration = Duration::from_secs(10);
pub(super) const COLD_FACTOR: f64 = 3.0;
pub(super) const MAX_WAIT: Duration = Duration::from_millis(500);
/// The longest interval, open time or wait.
pub(super) const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);

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
    /// As `Reject`, and the limit itself climbs from `limit / cold_factor` to `limit` over about `period` of full load. It
    /// falls again while there is little to do.
    WarmUp {
        /// How long full load lasts until the whole limit is reached: above 0 and at most a year.
        period: Duration,
        /// How many times lower the limit is when cold: above 1.
        cold_factor: f64,
    },
    /// Calls start one after another, `interval / limit` apart: they wait their turn, or are blocked if that would take
    /// longer than `max_wait`.
    Throttle {
        /// The longest wait: up to a year; with 0 nobody waits.
        max_wait: Duration,
    },
    /// As `Throttle`, and the pace itself warms up as the limit does in `WarmUp`.
    WarmUpThrottle {
        /// How long full load lasts until the whole pace is reached: above 0 and at most a year.
        period: Duration,
        /// How many times slower the pace is when cold: above 1.
        cold_factor: f64,
        /// The longest wait: up to a year; with 0 nobody waits.
        max_wait: Duration,
    },
}

impl Behavior {
    /// The longest that a call waits for its turn; none where calls do not wait.
    pub const fn max_wait(self) -> Option<Duration> {
        match self {
            Self::Throttle { max_wait } | Self::WarmUpThrottle { max_wait, .. } => Some(max_wait),
            Self::Reject | Self::WarmUp { .. } => None,
        }
    }

    /// The period and the cold factor, where there is a warm-up.
    pub const fn warm_up(self) -> Option<(Duration, f64)> {
        match self {
            Self::WarmUp { period, cold_factor } | Self::WarmUpThrottle { period, cold_factor, .. } => {
                Some((period, cold_factor))
            }
            Self::Reject | Self::Throttle { .. } => None,
        }
    }
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
    /// the limit may pass in an interval that is not aligned with them. Warm-up and throttling follow Sentinel's
    /// arithmetic to the letter, its whole numbers included.
    Sentinel,
}

/// Whose calls a rule counts and decides about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// All calls of the resource.
    #[default]
    Own,
    /// It counts the calls of this other resource, and refuses those of its own while the other one is busy.
    Associated(Cow<'static, str>),
    /// Calls that came in through this entrance.
    Entrance(Cow<'static, str>),
    /// Calls of this origin.
    Origin(Cow<'static, str>),
    /// Calls of each origin that no rule for an origin names: each has a count of its own.
    OtherOrigins,
    /// Calls of each origin: each has a count of its own.
    EachOrigin,
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
///
/// let paced = FlowRule::new(0.2, Behavior::Throttle { max_wait: Duration::from_secs(10) })?;
/// assert_eq!(paced.to_string(), "flow: 0.2 per 1s, throttled, waiting 10s at most");
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRule {
    pub(super) numbers: FlowNumbers,
    relation: Relation,
}

/// All of a rule but its names: what is copied and checked in constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlowNumbers {
    limit: f64,
    interval: Duration,
    behavior: Behavior,
    burst: u32,
    /// As asked for.
    pub(super) precision: Option<Precision>,
    n_buckets: u32,
    mode: Mode,
}

/// The value of `behavior`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "for expansions only")]
pub enum BehaviorWord {
    Reject,
    WarmUp,
    Throttle,
    WarmUpThrottle,
}

/// What the attribute or data say of a limit per interval, in their words.
#[derive(Clone, Copy)]
pub(crate) struct FlowWords {
    pub(crate) limit: f64,
    pub(crate) per: Option<Duration>,
    pub(crate) behavior: Option<BehaviorWord>,
    pub(crate) warm_up: Option<Duration>,
    pub(crate) cold_factor: Option<f64>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) burst: Option<u32>,
    pub(crate) precision: Option<Precision>,
    pub(crate) buckets: Option<u32>,
    pub(crate) mode: Mode,
}

impl FlowWords {
    /// The numbers of the rule, with defaults for what is not said.
    pub(crate) const fn numbers(self) -> Result<FlowNumbers, RuleError> {
        let period = time_or(self.warm_up, WARM_UP);
        let cold_factor = match self.cold_factor {
            Some(cold_factor) => cold_factor,
            None => COLD_FACTOR,
        };
        let max_wait = time_or(self.max_wait, MAX_WAIT);
        let behavior = match self.behavior {
            None | Some(BehaviorWord::Reject) => Behavior::Reject,
            Some(BehaviorWord::WarmUp) => Behavior::WarmUp { period, cold_factor },
            Some(BehaviorWord::Throttle) => Behavior::Throttle { max_wait },
            Some(BehaviorWord::WarmUpThrottle) => Behavior::WarmUpThrottle { period, cold_factor, max_wait },
        };
        let interval = time_or(self.per, INTERVAL);
        let numbers = FlowNumbers {
            limit: self.limit,
            interval,
            behavior,
            burst: or(self.burst, 0),
            precision: self.precision,
            n_buckets: or(self.buckets, N_BUCKETS),
            mode: self.mode,
        };
        if let Some(n_buckets) = self.buckets
            && is_time(interval)
            && let Err(error) = check_buckets(interval, n_buckets)
        {
            return Err(error);
        }
        numbers.checked()
    }
}

/// What is given, else the default: `unwrap_or`, in constants.
pub(super) const fn or(given: Option<u32>, default: u32) -> u32 {
    match given {
        Some(given) => given,
        None => default,
    }
}

/// The same for a time.
pub(super) const fn time_or(given: Option<Duration>, default: Duration) -> Duration {
    match given {
        Some(given) => given,
        None => default,
    }
}

impl FlowNumbers {
    const fn new(limit: f64, behavior: Behavior) -> Result<Self, RuleError> {
        let (interval, n_buckets, mode) = (INTERVAL, N_BUCKETS, Mode::Enforce);
        Self { limit, interval, behavior, burst: 0, precision: None, n_buckets, mode }.checked()
    }

    const fn with_buckets(mut self, n_buckets: u32) -> Result<Self, RuleError> {
        self.n_buckets = n_buckets;
        match check_buckets(self.interval, n_buckets) {
            Ok(()) => self.checked(),
            Err(error) => Err(error),
        }
    }

    /// The rule about a resource's own calls.
    pub(crate) const fn alone(self) -> FlowRule {
        FlowRule { numbers: self, relation: Relation::Own }
    }

    /// Whether there can be such a rule that counts the calls of `resource`.
    pub(crate) const fn check_associated(self, resource: &str) -> Result<(), RuleError> {
        match self.behavior {
            Behavior::Reject => check_name(resource),
            _ => Err(RuleError::AssociatedBehavior),
        }
    }

    /// The rule that counts the calls of another resource, [checked](Self::check_associated).
    pub(crate) const fn associated(self, resource: &'static str) -> FlowRule {
        FlowRule { numbers: self, relation: Relation::Associated(Cow::Borrowed(resource)) }
    }

    const fn checked(self) -> Result<Self, RuleError> {
        if !(self.limit >= 0.0 && self.limit.is_finite()) {
            return Err(RuleError::Limit(self.limit));
        }
        if !is_time(self.interval) {
            return Err(RuleError::Interval(self.interval));
        }
        // Those asked for divide the interval even where they are not used, those of a default need not.
        if self.n_buckets != N_BUCKETS
            && let Err(error) = check_buckets(self.interval, self.n_buckets)
        {
            return Err(error);
        }
        if let Some((period, cold_factor)) = self.behavior.warm_up() {
            if !is_time(period) {
                return Err(RuleError::WarmUpPeriod(period));
            }
            if !(cold_factor > 1.0 && cold_factor.is_finite()) {
                return Err(RuleError::ColdFactor(cold_factor));
            }
            // Its integer division knows no other.
            if matches!(self.precision, Some(Precision::Sentinel)) && cold_factor % 1.0 != 0.0 {
                return Err(RuleError::SentinelColdFactor(cold_factor));
            }
        }
        if self.burst > 0
            && (!matches!(self.behavior, Behavior::Throttle { .. })
                || matches!(self.precision, Some(Precision::Sentinel)))
        {
            return Err(RuleError::Burst(self.burst));
        }
        if let Some(max_wait) = self.behavior.max_wait() {
            // A queue needs no window, and lets a fraction of a call per interval through.
            if max_wait.as_nanos() > YEAR.as_nanos() {
                return Err(RuleError::MaxWait(max_wait));
            }
            // Warming up as Sentinel does goes by what passed in each interval.
            return match (self.behavior.warm_up(), self.precision, check_buckets(self.interval, 1)) {
                (Some(_), Some(Precision::Sentinel), Err(error)) => Err(error),
                _ => Ok(self),
            };
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

    const fn precision(&self) -> Precision {
        match self.precision {
            Some(precision) => precision,
            None if self.behavior.max_wait().is_some() || self.limit <= EXACT_BY_DEFAULT => Precision::Exact,
            None => Precision::Strict,
        }
    }
}

/// Whether this can be the name of a resource, an origin or an entrance.
const fn check_name(name: &str) -> Result<(), RuleError> {
    if name.is_empty() || name.len() > NAME_MAX { Err(RuleError::Name { len: name.len() }) } else { Ok(()) }
}

impl FlowRule {
    /// Allows `limit` permits per second; 0 blocks every call.
    ///
    /// In a window a fraction of a permit never passes: 2.5 lets 2 through. Above 2³¹ − 1 permits per window the rule is
    /// kept and shown, but is no limit. A throttle takes any limit: at 0.2 calls start 5 s apart.
    ///
    /// # Errors
    ///
    /// A limit that is negative, infinite or not a number, or between 0 and 1 where calls do not wait; a warm-up period
    /// of 0 or over 366 days, a cold factor not above 1; a longest wait over 366 days.
    pub const fn new(limit: f64, behavior: Behavior) -> Result<Self, RuleError> {
        match FlowNumbers::new(limit, behavior) {
            Ok(numbers) => Ok(numbers.alone()),
            Err(error) => Err(error),
        }
    }

    /// Sets the interval that the limit is for (1 s).
    ///
    /// # Errors
    ///
    /// An interval of 0 or over 366 days, or one that the buckets do not divide.
    pub fn per(mut self, interval: Duration) -> Result<Self, RuleError> {
        self.numbers = FlowNumbers { interval, ..self.numbers }.checked()?;
        Ok(self)
    }

    /// Sets how exactly the limit holds (`Exact` up to 1 024 permits per window, else `Strict`). A throttle knows only
    /// `Exact` and `Sentinel`.
    ///
    /// # Errors
    ///
    /// `Exact` with over 2²⁰ permits per window; otherwise a number of buckets that does not divide the interval.
    /// `Sentinel` with a burst, or with a cold factor that is not whole.
    pub fn with_precision(mut self, precision: Precision) -> Result<Self, RuleError> {
        self.numbers = FlowNumbers { precision: Some(precision), ..self.numbers }.checked()?;
        Ok(self)
    }

    /// Sets how many buckets the interval, which is set before, is counted in (100). `Exact` counts without buckets.
    ///
    /// # Errors
    ///
    /// A number that does not divide the interval into equal parts of at least 1 µs.
    pub fn with_buckets(mut self, n_buckets: u32) -> Result<Self, RuleError> {
        self.numbers = self.numbers.with_buckets(n_buckets)?;
        Ok(self)
    }

    /// Lets a throttle that has been idle start `burst` permits at once (1).
    ///
    /// # Errors
    ///
    /// A burst for a rule that does not `Throttle`, or whose precision is `Sentinel`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use leap_runtime::{Behavior, FlowRule};
    ///
    /// let rule = FlowRule::new(10.0, Behavior::Throttle { max_wait: Duration::ZERO })?.with_burst(5)?;
    /// assert_eq!(rule.to_string(), "flow: 10 per 1s, throttled, waiting 0ns at most, 5 at once");
    /// assert!(FlowRule::new(10.0, Behavior::Reject)?.with_burst(5).is_err());
    /// # Ok::<(), leap_runtime::RuleError>(())
    /// ```
    pub fn with_burst(mut self, burst: u32) -> Result<Self, RuleError> {
        self.numbers = FlowNumbers { burst, ..self.numbers }.checked()?;
        Ok(self)
    }

    /// Counts the calls of `resource` instead of its own: calls are refused while that one has reached the limit.
    ///
    /// # Errors
    ///
    /// An empty name or one over 1 KiB, a second relation, or a behaviour other than [`Behavior::Reject`].
    pub fn associated(self, resource: impl Into<Cow<'static, str>>) -> Result<Self, RuleError> {
        if self.numbers.behavior != Behavior::Reject {
            return Err(RuleError::AssociatedBehavior);
        }
        self.related(Relation::Associated(resource.into()))
    }

    /// Makes it a rule for calls through this entrance only.
    ///
    /// # Errors
    ///
    /// An empty name or one over 1 KiB, or a second relation.
    pub fn for_entrance(self, entrance: impl Into<Cow<'static, str>>) -> Result<Self, RuleError> {
        self.related(Relation::Entrance(entrance.into()))
    }

    /// Makes it a rule for calls of this origin only.
    ///
    /// # Errors
    ///
    /// An empty name or one over 1 KiB, or a second relation.
    pub fn for_origin(self, origin: impl Into<Cow<'static, str>>) -> Result<Self, RuleError> {
        self.related(Relation::Origin(origin.into()))
    }

    /// Makes it a rule for each origin that no rule names, on its own.
    ///
    /// # Errors
    ///
    /// A second relation.
    pub fn for_other_origins(self) -> Result<Self, RuleError> {
        self.related(Relation::OtherOrigins)
    }

    /// Makes it a rule for each origin on its own.
    ///
    /// # Errors
    ///
    /// A second relation.
    pub fn for_each_origin(self) -> Result<Self, RuleError> {
        self.related(Relation::EachOrigin)
    }

    pub(crate) fn related(mut self, relation: Relation) -> Result<Self, RuleError> {
        if self.relation != Relation::Own {
            return Err(RuleError::SecondRelation);
        }
        if let Relation::Associated(name) | Relation::Entrance(name) | Relation::Origin(name) = &relation {
            check_name(name)?;
        }
        self.relation = relation;
        Ok(self)
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.numbers.mode = mode;
        self
    }

    /// The permits allowed per interval, as given.
    pub const fn limit(&self) -> f64 {
        self.numbers.limit
    }

    /// The interval that the limit is for.
    pub const fn interval(&self) -> Duration {
        self.numbers.interval
    }

    /// What becomes of calls above the limit.
    pub const fn behavior(&self) -> Behavior {
        self.numbers.behavior
    }

    /// The permits that an idle throttle starts at once, beyond the one that any does; 0 unless set.
    pub const fn burst(&self) -> u32 {
        self.numbers.burst
    }

    /// Whose calls it is about.
    pub const fn relation(&self) -> &Relation {
        &self.relation
    }

    /// How exactly the limit holds.
    pub const fn precision(&self) -> Precision {
        self.numbers.precision()
    }

    /// The buckets that the interval is counted in, unless it is counted exactly.
    pub const fn n_buckets(&self) -> u32 {
        self.numbers.n_buckets
    }

    /// Whether the rule decides.
    pub const fn mode(&self) -> Mode {
        self.numbers.mode
    }

    /// Whether calls wait for their turn instead of being counted in a window.
    #[inline]
    pub(crate) const fn is_paced(&self) -> bool {
        self.numbers.behavior.max_wait().is_some()
    }

    /// The interval in ns.
    #[inline]
    pub(crate) fn interval_ns(&self) -> u64 {
        let interval = self.numbers.interval;
        interval.as_secs() * 1_000_000_000 + u64::from(interval.subsec_nanos())
    }

    /// The longest wait in ns; 0 where calls do not wait.
    pub(crate) fn max_wait_ns(&self) -> u64 {
        let max_wait = self.numbers.behavior.max_wait().unwrap_or_default();
        u64::try_from(max_wait.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whole permits per window; none where the limit is too large to be one.
    pub(crate) const fn permits(&self) -> Option<u64> {
        let limit = self.numbers.limit;
        if limit > UNLIMITED_ABOVE {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: 0 to 2³¹ − 1")]
        Some(limit as u64)
    }
}

impl fmt::Display for FlowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowNumbers { limit, interval, behavior, burst, n_buckets, .. } = self.numbers;
        write!(f, "flow: {limit} per {interval:?}, ")?;
        match (behavior.max_wait(), self.precision()) {
            (Some(max_wait), precision) => {
                write!(f, "throttled, waiting {max_wait:?} at most")?;
                if precision == Precision::Sentinel {
                    f.write_str(", as Sentinel")?;
                }
            }
            (None, Precision::Exact) => f.write_str("exact")?,
            (None, Precision::Strict) => write!(f, "strict in {n_buckets} buckets")?,
            (None, Precision::Sentinel) => write!(f, "as Sentinel in {n_buckets} buckets")?,
        }
        if let Some((period, cold_factor)) = behavior.warm_up() {
            write!(f, ", warming up over {period:?} from 1/{cold_factor}")?;
        }
        if burst > 0 {
            write!(f, ", {burst} at once")?;
        }
        self.relation.fmt(f)
    }
}

impl fmt::Display for Relation {
    /// As it follows the numbers of a rule; nothing for [`Relation::Own`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            Self::Associated(resource) => write!(f, ", by the calls of `{resource}`"),
            Self::Entrance(entrance) => write!(f, ", for entrance `{entrance}`"),
            Self::Origin(origin) => write!(f, ", for origin `{origin}`"),
            Self::OtherOrigins => f.write_str(", for each other origin"),
            Self::EachOrigin => f.write_str(", for each origin"),
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
        let (asked, interval) = (rule(10.0).unwrap().with_buckets(50).unwrap(), Duration::from_micros(10));
        assert_eq!(asked.per(interval), Err(RuleError::Buckets { interval, n_buckets: 50 }));
    }

    #[test]
    fn buckets_must_divide_the_interval() {
        let strict = rule(10.0).unwrap().with_precision(Precision::Strict).unwrap();
        assert!(strict.clone().with_buckets(1_000).is_ok());
        for n_buckets in [0, 3, 7] {
            let error = strict.clone().with_buckets(n_buckets).unwrap_err();
            assert_eq!(error, RuleError::Buckets { interval: Duration::from_secs(1), n_buckets });
            assert!(error.to_string().contains("1s") && error.to_string().contains(&n_buckets.to_string()));
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_warm_up_starts_below_its_limit_and_takes_a_while() {
        let warm_up = |period, cold_factor| FlowRule::new(30.0, Behavior::WarmUp { period, cold_factor });
        assert!(warm_up(SECOND, 1.000_1).is_ok());
        for factor in [0.0, 1.0, -3.0, 0.5, f64::INFINITY] {
            assert_eq!(warm_up(SECOND, factor), Err(RuleError::ColdFactor(factor)));
        }
        assert!(matches!(warm_up(SECOND, f64::NAN), Err(RuleError::ColdFactor(factor)) if factor.is_nan()));
        for period in [Duration::ZERO, YEAR + SECOND] {
            assert_eq!(warm_up(period, 3.0), Err(RuleError::WarmUpPeriod(period)));
        }
        assert!(warm_up(YEAR, 3.0).is_ok());
        assert_eq!(
            warm_up(SECOND, 2.5).unwrap().with_precision(Precision::Sentinel),
            Err(RuleError::SentinelColdFactor(2.5))
        );
        let fraction = FlowRule::new(0.5, Behavior::WarmUp { period: SECOND, cold_factor: 3.0 });
        assert_eq!(fraction, Err(RuleError::FractionalLimit { limit: 0.5, interval: SECOND }));
    }

    #[test]
    fn a_throttle_takes_any_limit_and_a_wait_of_up_to_a_year() {
        let throttle = |limit, max_wait| FlowRule::new(limit, Behavior::Throttle { max_wait });
        for limit in [0.0, f64::MIN_POSITIVE, 0.01, 2e9, 1e308] {
            assert!(throttle(limit, Duration::ZERO).is_ok(), "{limit}");
        }
        assert!(throttle(-1.0, SECOND).is_err());
        assert!(throttle(1.0, YEAR).is_ok());
        assert_eq!(throttle(1.0, YEAR + SECOND), Err(RuleError::MaxWait(YEAR + SECOND)));
        assert_eq!(throttle(5e6, SECOND).unwrap().precision(), Precision::Exact);
    }

    #[test]
    fn only_a_throttle_has_a_burst() {
        let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: SECOND }).unwrap();
        assert_eq!(throttle.clone().with_burst(7).unwrap().burst(), 7);
        let as_sentinel = throttle.with_precision(Precision::Sentinel).unwrap();
        assert_eq!(as_sentinel.with_burst(7), Err(RuleError::Burst(7)));
        assert_eq!(rule(10.0).unwrap().with_burst(7), Err(RuleError::Burst(7)));
        assert!(rule(10.0).unwrap().with_burst(0).is_ok());
    }

    #[test]
    fn a_rule_has_one_relation_and_its_name_is_one() {
        let own = rule(10.0).unwrap();
        let front = own.clone().for_entrance("front").unwrap();
        assert_eq!(front.relation(), &Relation::Entrance("front".into()));
        assert_eq!(front.clone().for_origin("vip"), Err(RuleError::SecondRelation));
        assert_eq!(front.associated("stock"), Err(RuleError::SecondRelation));
        assert_eq!(own.clone().for_origin(""), Err(RuleError::Name { len: 0 }));
        assert!(own.clone().associated("x".repeat(1_024)).is_ok());
        assert_eq!(own.associated("x".repeat(1_025)), Err(RuleError::Name { len: 1_025 }));
        let throttle = FlowRule::new(10.0, Behavior::Throttle { max_wait: SECOND }).unwrap();
        assert_eq!(throttle.clone().associated("stock"), Err(RuleError::AssociatedBehavior));
        assert!(throttle.for_each_origin().is_ok());
    }

    #[test]
    fn rules_are_told_in_one_line() {
        let (period, cold_factor) = (10 * SECOND, 3.0);
        let told = |rule: Result<FlowRule, RuleError>| rule.unwrap().to_string();
        assert_eq!(
            told(FlowRule::new(30.0, Behavior::WarmUp { period, cold_factor })),
            "flow: 30 per 1s, exact, warming up over 10s from 1/3"
        );
        assert_eq!(
            told(FlowRule::new(30.0, Behavior::WarmUpThrottle { period, cold_factor, max_wait: SECOND })),
            "flow: 30 per 1s, throttled, waiting 1s at most, warming up over 10s from 1/3"
        );
        assert_eq!(
            told(rule(2.0).unwrap().for_other_origins()),
            "flow: 2 per 1s, exact, for each other origin"
        );
        assert_eq!(
            told(rule(2.0).unwrap().associated("stock")),
            "flow: 2 per 1s, exact, by the calls of `stock`"
        );
    }
}
