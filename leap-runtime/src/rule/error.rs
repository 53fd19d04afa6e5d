//! What can be wrong with a rule.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::NAME_MAX;
use super::flow::{Precision, is_time};

/// Why a rule cannot be held.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule};
///
/// let error = FlowRule::new(0.2, Behavior::Reject).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "a limit of 0.2 per 1s would never let a call through; say 1 per 5s instead: `rate(limit = 1, per_ms = 5000)`"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RuleError {
    /// A limit that is negative, infinite or not a number.
    Limit(f64),
    /// A window limit above 0 and below 1.
    FractionalLimit {
        /// The limit as given.
        limit: f64,
        /// The interval that it was given for.
        interval: Duration,
    },
    /// An interval of nothing, or of over a year.
    Interval(Duration),
    /// An interval that the number of buckets does not divide into whole nanoseconds, or into buckets under 1 µs.
    Buckets {
        /// The interval to divide.
        interval: Duration,
        /// The number of buckets as given.
        n_buckets: u32,
    },
    /// More buckets than a window can have.
    TooManyBuckets(u32),
    /// A limit too large to be kept exactly.
    ExactLimit(f64),
    /// A ratio outside 0 to 1.
    Ratio(f64),
    /// A breaker that would need no call to judge.
    MinCalls,
    /// An open time of nothing, or of over a year.
    OpenFor(Duration),
    /// A number of probes outside 1 to 1 023.
    Probes(u32),
    /// A system's limit of inbound calls per second above 0 and below 1.
    FractionalSystemQps(f64),
    /// A system's load that is negative, infinite or not a number.
    SystemLoad(f64),
    /// A share of the processor's quota outside 0 to 1.
    CpuShare(f64),
    /// An average response time of nothing, or of over a year.
    AvgRt(Duration),
    /// A time in a queue of over a year.
    QueueTime(Duration),
    /// A list of origins without any.
    NoOrigins,
    /// An origin in a list that nobody can have: an empty name, or one of over 1 KiB.
    Origin {
        /// Its place in the list, counted from 0.
        position: usize,
        /// The length of the name in bytes.
        len: usize,
    },
    /// A window of no calls, or of over 10 000.
    WindowCalls(u32),
    /// A breaker that needs more calls than its window holds.
    MinCallsOfWindow {
        /// The calls it needs.
        min_calls: u32,
        /// The calls its window holds.
        calls: u32,
    },
    /// A count of exceptions that the calls of the window cannot exceed.
    CountOfWindow {
        /// The count that is still borne.
        count: u32,
        /// The calls the window holds.
        calls: u32,
    },
    /// A longest open time that is over a year, or shorter than the open time.
    MaxOpen {
        /// The longest open time as given.
        longest: Duration,
        /// The open time.
        open_for: Duration,
    },
    /// A ramp over no time, or over a year.
    Ramp(Duration),
    /// A warm-up period of nothing, or of over a year.
    WarmUpPeriod(Duration),
    /// A cold factor that would not start below the limit: 1 or less, infinite or not a number.
    ColdFactor(f64),
    /// A cold factor that is not whole, with precision `sentinel`.
    SentinelColdFactor(f64),
    /// A burst for a rule that does not throttle, or does so as Sentinel.
    Burst(u32),
    /// A second relation of one rule.
    SecondRelation,
    /// An associated resource with a behaviour other than `reject`.
    AssociatedBehavior,
    /// An empty name, or one over 1 KiB.
    Name {
        /// The length of the name in bytes.
        len: usize,
    },
    /// A name of a hot rule's key that is empty or over 1 KiB: its length.
    KeyName(usize),
    /// A setting that goes with a rate, for a hot rule that has none.
    WithoutRate(&'static str),
    /// A hot rule that limits neither a rate nor what is in flight.
    NoHotLimit,
    /// A longest wait of over a year.
    MaxWait(Duration),
    /// A number of values to tell apart outside 1 to 1 000 000.
    MaxKeys(u32),
    /// A precision that a hot rule cannot have.
    HotPrecision(Precision),
    /// An exception for a value that has one already: its place, counted from 0.
    ExceptTwice(usize),
    /// A limit between 0 and 1 for each value, which would never let a call through.
    FractionalHotLimit {
        /// The limit as given.
        limit: f64,
        /// The interval that it was for.
        interval: Duration,
    },
}

impl RuleError {
    /// The error in words that are known at compile time, for rules made in constants.
    pub(crate) const fn headline(self) -> &'static str {
        match self {
            Self::Limit(_) => "a limit must be 0 or more, and finite",
            Self::FractionalLimit { .. } => {
                "a limit between 0 and 1 would never let a call through; say `rate(limit = 1, per_ms = …)` instead"
            }
            Self::Interval(_) => "an interval must be above 0 and at most a year",
            Self::Buckets { .. } => "the interval must divide into `buckets` equal parts of at least 1 µs",
            Self::TooManyBuckets(_) => "`buckets` must be at most 10000",
            Self::ExactLimit(_) => "precision `exact` keeps at most 1048576 permits per window",
            Self::Ratio(_) => "a ratio must be between 0 and 1",
            Self::MinCalls => "`min_calls` must be at least 1",
            Self::OpenFor(_) => "`open_ms` must be above 0 and at most a year",
            Self::Probes(_) => "`probes` must be between 1 and 1023",
            Self::FractionalSystemQps(_) => "a system's limit of calls per second must be 0 or at least 1",
            Self::SystemLoad(_) => "a load must be 0 or more, and finite",
            Self::CpuShare(_) => "a cpu share must be between 0 and 1",
            Self::AvgRt(_) => "an average response time must be above 0 and at most a year",
            Self::QueueTime(_) => "`queue_ms` must be at most a year",
            Self::NoOrigins => "a list of origins must name at least one",
            Self::Origin { .. } => "an origin's name must have 1 to 1024 bytes",
            Self::WindowCalls(_) => "`window_calls` must be between 1 and 10000",
            Self::MinCallsOfWindow { .. } => {
                "`window_calls` must be at least `min_calls`, which is 5 unless given"
            }
            Self::CountOfWindow { .. } => "`error_count` must be under `window_calls`, or it never trips",
            Self::MaxOpen { .. } => {
                "`open_max_ms` must be at least `open_ms`, which is 5000 unless given, and at most a year"
            }
            Self::Ramp(_) => "a ramp must take above 0 and at most a year",
            Self::WarmUpPeriod(_) => "`warm_up_ms` must be above 0 and at most a year",
            Self::ColdFactor(_) => "`cold_factor` must be above 1, and finite",
            Self::SentinelColdFactor(_) => "precision `sentinel` takes whole cold factors only",
            Self::MaxWait(_) => "`max_wait_ms` must be at most a year",
            Self::Burst(_) => "`burst` needs `behavior = throttle`, and a precision other than `sentinel`",
            Self::SecondRelation => "a rule has one relation",
            Self::AssociatedBehavior => "`associated` goes with `behavior = reject` only",
            Self::Name { .. } => "a name must not be empty, and at most 1024 bytes long",
            Self::KeyName(_) => "the name of a key must have 1 to 1024 bytes",
            Self::WithoutRate(_) => "`per_ms`, `burst` and `behavior` go with `qps`",
            Self::NoHotLimit => "a hot rule needs `qps` or `max_concurrency`",
            Self::MaxKeys(_) => "`max_keys` must be between 1 and 1000000",
            Self::HotPrecision(_) => "a hot rule takes precision `sentinel` or none",
            Self::ExceptTwice(_) => "`except` names the same value twice",
            Self::FractionalHotLimit { .. } => {
                "a limit between 0 and 1 would let no call through; say `qps = 1, per_ms = …`, or `behavior = throttle`"
            }
        }
    }
}

impl fmt::Display for RuleError {
    #[expect(clippy::too_many_lines, reason = "a sentence for each error")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Limit(limit) => {
                write!(f, "a limit of {limit} is not a number of permits: it must be 0 or more, and finite")
            }
            Self::FractionalLimit { limit, interval } => {
                write!(f, "a limit of {limit} per {interval:?} would never let a call through; ")?;
                match Duration::try_from_secs_f64(interval.as_secs_f64() / limit) {
                    Ok(whole) if is_time(whole) => {
                        write!(
                            f,
                            "say 1 per {whole:?} instead: `rate(limit = 1, per_ms = {})`",
                            whole.as_millis()
                        )
                    }
                    _ => f.write_str("the least is 1 per 366 days"),
                }
            }
            Self::Interval(interval) => {
                write!(
                    f,
                    "an interval of {interval:?} cannot be watched: it must be above 0 and at most a year"
                )
            }
            Self::Buckets { interval, n_buckets } => {
                write!(
                    f,
                    "an interval of {interval:?} does not divide into {n_buckets} equal buckets of at least 1µs"
                )
            }
            Self::TooManyBuckets(n_buckets) => {
                write!(f, "a window cannot have {n_buckets} buckets: at most 10000")
            }
            Self::ExactLimit(limit) => {
                write!(
                    f,
                    "a limit of {limit} is too large for precision `exact`, which keeps at most 1048576 permits per window"
                )
            }
            Self::Ratio(ratio) => {
                write!(f, "a ratio of {ratio} is not a share of calls: it must be between 0 and 1")
            }
            Self::MinCalls => f.write_str(
                "a breaker that needs 0 calls has nothing to judge by: `min_calls` must be at least 1",
            ),
            Self::OpenFor(time) => {
                write!(
                    f,
                    "a breaker cannot stay open for {time:?}: the time must be above 0 and at most a year"
                )
            }
            Self::Probes(probes) => write!(f, "{probes} probes cannot decide a recovery: it takes 1 to 1023"),
            Self::FractionalSystemQps(limit) => {
                write!(
                    f,
                    "a system's limit of {limit} inbound calls per second would never let one through: it must be 0 or \
                     at least 1"
                )
            }
            Self::SystemLoad(load) => {
                write!(f, "a load of {load} is never reached: it must be 0 or more, and finite")
            }
            Self::CpuShare(share) => {
                write!(
                    f,
                    "a cpu share of {share} is not a share of a quota: it must be between 0 and 1, e.g. 0.8"
                )
            }
            Self::AvgRt(time) => {
                write!(
                    f,
                    "an average response time of {time:?} cannot be held: it must be above 0 and at most a year"
                )
            }
            Self::QueueTime(time) => write!(f, "a call cannot queue for {time:?}: at most a year"),
            Self::NoOrigins => f.write_str(
                "a list without origins would allow nobody or deny nobody: it must name at least one",
            ),
            Self::Origin { position, len: 0 } => {
                write!(
                    f,
                    "origin {position} of the list has no name; calls without an origin pass in any case"
                )
            }
            Self::Origin { position, len } => {
                write!(f, "origin {position} of the list has a name of {len} bytes: at most {NAME_MAX}")
            }
            Self::WindowCalls(calls) => {
                write!(f, "a window of {calls} calls cannot be kept: it takes 1 to 10000")
            }
            Self::MinCallsOfWindow { min_calls, calls } => {
                write!(
                    f,
                    "a window of {calls} calls never holds the {min_calls} needed to judge: \
                     lower `min_calls` first, or take a larger window"
                )
            }
            Self::CountOfWindow { count, calls } => {
                write!(
                    f,
                    "more than {count} exceptions never fit a window of {calls} calls: the count must be lower"
                )
            }
            Self::MaxOpen { longest, open_for } => {
                write!(
                    f,
                    "an open time cannot grow from {open_for:?} to {longest:?}: \
                     the longest must be no shorter, and at most a year"
                )
            }
            Self::Ramp(over) => {
                write!(f, "a ramp cannot take {over:?}: it must be above 0 and at most a year")
            }
            Self::WarmUpPeriod(period) => {
                write!(f, "a warm-up cannot take {period:?}: it must be above 0 and at most a year")
            }
            Self::ColdFactor(factor) => {
                write!(f, "a cold factor of {factor} would not start below the limit")
            }
            Self::SentinelColdFactor(factor) => {
                write!(f, "a cold factor of {factor} is not whole, as precision `sentinel` needs it")
            }
            Self::MaxWait(time) => write!(f, "a call cannot wait for {time:?}: at most a year"),
            Self::Burst(burst) => {
                write!(
                    f,
                    "a burst of {burst} needs a rule that throttles, in a precision other than `sentinel`"
                )
            }
            Self::SecondRelation => f.write_str("a rule is for one entrance, origin or associated resource"),
            Self::AssociatedBehavior => f.write_str(
                "a rule that counts another resource can only reject: nobody waits for another's calls",
            ),
            Self::Name { len: 0 } => f.write_str("a name must not be empty"),
            Self::Name { len } => write!(f, "a name of {len} bytes is too long: at most 1024"),
            Self::KeyName(0) => f.write_str("the name of a key must not be empty"),
            Self::KeyName(len) => {
                write!(f, "the name of a key must not have {len} bytes: at most 1024")
            }
            Self::WithoutRate(setting) => {
                write!(f, "`{setting}` goes with a rate, which this hot rule does not have")
            }
            Self::NoHotLimit => {
                f.write_str("a hot rule without `qps` and `max_concurrency` would limit nothing")
            }
            Self::MaxKeys(max_keys) => {
                write!(f, "a hot rule cannot tell {max_keys} values apart: it takes 1 to 1000000")
            }
            Self::HotPrecision(precision) => {
                write!(f, "a hot rule cannot be {precision:?}: it takes precision `sentinel` or none")
            }
            Self::FractionalHotLimit { limit, interval } => {
                write!(
                    f,
                    "a limit of {limit} per {interval:?} for each value would never let a call through; "
                )?;
                match Duration::try_from_secs_f64(interval.as_secs_f64() / limit) {
                    Ok(whole) if is_time(whole) => {
                        write!(f, "say 1 per {whole:?} instead, or pace the calls")
                    }
                    _ => f.write_str("the least is 1 per 366 days"),
                }
            }
            Self::ExceptTwice(place) => {
                write!(f, "exception {place} is for a value that has a limit of its own already")
            }
        }
    }
}

impl Error for RuleError {}
