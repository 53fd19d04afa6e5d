//! Limits on a whole process: from where on inbound calls are turned away, whatever resource they enter.

use std::fmt;
use std::time::Duration;

use super::flow::is_time;
use super::{Behavior, FlowRule, Mode, Precision, RuleError};

/// What a system rule watches, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Dimension {
    /// Inbound permits let through in a second.
    Qps,
    /// Inbound permits in flight.
    Concurrency,
    /// The average response time of the inbound calls that ended within the last second.
    AvgRt,
    /// The machine's load average over one minute.
    Load,
    /// The processor time that this process's group uses, as a share of its quota; of the whole machine where there is
    /// no quota. It is not the share of this process alone.
    Cpu,
}

impl Dimension {
    /// The dimension as it stands in reports: `inbound_qps`, `inbound_concurrency`, `avg_rt`, `load`, `cpu_of_quota`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qps => "inbound_qps",
            Self::Concurrency => "inbound_concurrency",
            Self::AvgRt => "avg_rt",
            Self::Load => "load",
            Self::Cpu => "cpu_of_quota",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Turns inbound calls away while a figure of the whole process is too high.
///
/// A rule watches one [`Dimension`]. Where several watch the same one, the lowest decides. Outbound calls are neither
/// counted nor refused. How each figure is taken and what the estimate behind load and CPU is: see
/// [the guide](crate::guide::system).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leap_runtime::SystemRule;
///
/// assert_eq!(SystemRule::cpu(0.8)?.to_string(), "system: cpu at most 0.8 of the quota");
/// assert_eq!(SystemRule::qps(500.0)?.to_string(), "system: at most 500 inbound calls per 1s, exact");
/// assert_eq!(
///     SystemRule::avg_rt(Duration::from_millis(50))?.to_string(),
///     "system: inbound calls at most 50ms on average"
/// );
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SystemRule {
    pub(super) limit: Limit,
    as_sentinel: bool,
    mode: Mode,
}

/// A dimension with what it may come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Limit {
    Qps(FlowRule),
    Concurrency(u32),
    AvgRt(Duration),
    Load(f64),
    Cpu(f64),
}

impl SystemRule {
    /// Lets `limit` inbound permits through per second, over all resources; 0 blocks every inbound call.
    ///
    /// It holds like a [`FlowRule`]: exactly up to 1 024, in buckets above, and not at all above 2³¹ − 1.
    ///
    /// # Errors
    ///
    /// A limit that is negative, infinite, not a number, or between 0 and 1.
    pub fn qps(limit: f64) -> Result<Self, RuleError> {
        match FlowRule::new(limit, Behavior::Reject) {
            Ok(window) => Ok(Self::new(Limit::Qps(window))),
            Err(RuleError::FractionalLimit { limit, .. }) => Err(RuleError::FractionalSystemQps(limit)),
            Err(error) => Err(error),
        }
    }

    /// Allows `max` inbound permits in flight, over all resources; 0 blocks every inbound call.
    ///
    /// Calls that were already running when the first system rule was loaded are not counted.
    pub fn concurrency(max: u32) -> Self {
        Self::new(Limit::Concurrency(max))
    }

    /// Lets inbound calls through while those that ended within the last second took at most `max` on average.
    ///
    /// When it refuses, it does so until slow calls have left that second: there is no way to be fast in between.
    ///
    /// # Errors
    ///
    /// A time of 0 or over 366 days.
    pub fn avg_rt(max: Duration) -> Result<Self, RuleError> {
        if is_time(max) { Ok(Self::new(Limit::AvgRt(max))) } else { Err(RuleError::AvgRt(max)) }
    }

    /// Watches the machine's load average over one minute. Above `max`, inbound calls are let through only while no
    /// more of them are in flight than get through (see [the guide](crate::guide::system) for the
    /// estimate).
    ///
    /// In a container it is still the whole machine's load: [`cpu`](Self::cpu) is usually what you want there.
    ///
    /// # Errors
    ///
    /// A load that is negative, infinite or not a number.
    pub fn load(max: f64) -> Result<Self, RuleError> {
        if max >= 0.0 && max.is_finite() {
            Ok(Self::new(Limit::Load(max)))
        } else {
            Err(RuleError::SystemLoad(max))
        }
    }

    /// Watches the processor time used, as a share (0 to 1) of what this process may use: the quota of its control
    /// group, or the machine. Above `max`, inbound calls are let through only while no more of them are in flight than
    /// get through (see [the guide](crate::guide::system) for the
    /// estimate).
    ///
    /// # Errors
    ///
    /// A share outside 0 to 1.
    pub fn cpu(max: f64) -> Result<Self, RuleError> {
        if (0.0..=1.0).contains(&max) {
            Ok(Self::new(Limit::Cpu(max)))
        } else {
            Err(RuleError::CpuShare(max))
        }
    }

    fn new(limit: Limit) -> Self {
        Self { limit, as_sentinel: false, mode: Mode::Enforce }
    }

    /// Sets how exactly the rule holds.
    ///
    /// `Exact` and `Strict` matter to [`qps`](Self::qps) only. Under `Sentinel` a rule answers as Sentinel's: QPS is
    /// counted in 2 buckets of 500 ms, concurrency refuses only when it is *above* its figure before the call, the
    /// estimate is made of whole milliseconds, and CPU above its figure refuses every call.
    ///
    /// # Errors
    ///
    /// `Exact` with over 2²⁰ permits per second.
    pub fn with_precision(mut self, precision: Precision) -> Result<Self, RuleError> {
        self.as_sentinel = precision == Precision::Sentinel;
        self.limit = match self.limit {
            Limit::Qps(window) => {
                let n_buckets = if self.as_sentinel { 2 } else { 100 };
                Limit::Qps(window.with_precision(precision)?.with_buckets(n_buckets)?)
            }
            limit => limit,
        };
        Ok(self)
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// What the rule watches.
    pub fn dimension(&self) -> Dimension {
        match self.limit {
            Limit::Qps(_) => Dimension::Qps,
            Limit::Concurrency(_) => Dimension::Concurrency,
            Limit::AvgRt(_) => Dimension::AvgRt,
            Limit::Load(_) => Dimension::Load,
            Limit::Cpu(_) => Dimension::Cpu,
        }
    }

    /// What the figure may come to: permits per second, permits in flight, seconds, a load, or a share of the quota.
    pub fn limit(&self) -> f64 {
        match &self.limit {
            Limit::Qps(window) => window.limit(),
            Limit::Concurrency(max) => (*max).into(),
            Limit::AvgRt(max) => max.as_secs_f64(),
            Limit::Load(max) | Limit::Cpu(max) => *max,
        }
    }

    /// Whether the rule answers as Sentinel's would.
    pub(crate) fn is_as_sentinel(&self) -> bool {
        self.as_sentinel
    }

    /// The window that a limit on QPS is.
    pub(crate) fn into_window(self) -> Option<FlowRule> {
        match self.limit {
            Limit::Qps(window) => Some(window),
            _ => None,
        }
    }

    /// Whether the rule is too high to limit anything.
    pub(crate) fn is_no_limit(&self) -> bool {
        matches!(&self.limit, Limit::Qps(window) if window.permits().is_none())
    }

    /// Whether the rule decides.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

impl fmt::Display for SystemRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("system: ")?;
        match &self.limit {
            Limit::Qps(window) => {
                write!(f, "at most {} inbound calls per {:?}, ", window.limit(), window.interval())?;
                return match window.precision() {
                    Precision::Exact => f.write_str("exact"),
                    Precision::Strict => write!(f, "strict in {} buckets", window.n_buckets()),
                    Precision::Sentinel => write!(f, "as Sentinel in {} buckets", window.n_buckets()),
                };
            }
            Limit::Concurrency(max) => write!(f, "at most {max} inbound calls in flight"),
            Limit::AvgRt(max) => write!(f, "inbound calls at most {max:?} on average"),
            Limit::Load(max) => write!(f, "load at most {max}"),
            Limit::Cpu(max) => write!(f, "cpu at most {max} of the quota"),
        }?;
        f.write_str(if self.as_sentinel { ", as Sentinel" } else { "" })
    }
}

/// A figure that was too high when an inbound call came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exceeded {
    pub(crate) dimension: Dimension,
    /// What was seen, in the unit of [`SystemRule::limit`]; of QPS as many as were at least taken.
    pub(crate) observed: f64,
    pub(crate) limit: f64,
    /// Inbound permits in flight at that moment.
    pub(crate) in_flight: u32,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dimension, observed, limit, in_flight } = *self;
        match dimension {
            Dimension::Qps => write!(f, "the system's limit of {limit} inbound calls per second is reached"),
            Dimension::Concurrency => {
                write!(f, "{in_flight} inbound calls are in flight and the system's limit is {limit}")
            }
            Dimension::AvgRt => {
                let ms = 1_000.0;
                write!(
                    f,
                    "inbound calls take {:.1}ms on average, over the system's limit of {}ms",
                    observed * ms,
                    limit * ms
                )
            }
            Dimension::Load => write!(
                f,
                "the load is {observed:.2}, over the system's limit of {limit}, with {in_flight} inbound calls in flight"
            ),
            Dimension::Cpu => write!(
                f,
                "the cpu is at {observed:.2} of its quota, over the system's limit of {limit}, with {in_flight} inbound \
                 calls in flight"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_would_guard_nothing_or_means_nothing_cannot_be_made() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1] {
            assert!(matches!(SystemRule::load(wrong), Err(RuleError::SystemLoad(_))), "{wrong}");
            assert!(matches!(SystemRule::cpu(wrong), Err(RuleError::CpuShare(_))), "{wrong}");
            assert!(matches!(SystemRule::qps(wrong), Err(RuleError::Limit(_))), "{wrong}");
        }
        assert_eq!(SystemRule::cpu(80.0), Err(RuleError::CpuShare(80.0)));
        assert_eq!(SystemRule::qps(0.5), Err(RuleError::FractionalSystemQps(0.5)));
        for wrong in [Duration::ZERO, Duration::MAX] {
            assert_eq!(SystemRule::avg_rt(wrong), Err(RuleError::AvgRt(wrong)));
        }
        assert_eq!(
            SystemRule::cpu(80.0).unwrap_err().to_string(),
            "a cpu share of 80 is not a share of a quota: it must be between 0 and 1, e.g. 0.8"
        );
    }

    #[test]
    fn the_ends_of_what_a_rule_may_say_can_be_said() {
        let rules = [
            SystemRule::load(0.0).unwrap(),
            SystemRule::cpu(0.0).unwrap(),
            SystemRule::cpu(1.0).unwrap(),
            SystemRule::qps(0.0).unwrap(),
            SystemRule::concurrency(0),
            SystemRule::avg_rt(Duration::from_nanos(1)).unwrap(),
        ];
        assert_eq!(
            rules.map(|rule| rule.to_string()),
            [
                "system: load at most 0",
                "system: cpu at most 0 of the quota",
                "system: cpu at most 1 of the quota",
                "system: at most 0 inbound calls per 1s, exact",
                "system: at most 0 inbound calls in flight",
                "system: inbound calls at most 1ns on average",
            ]
        );
    }

    #[test]
    fn a_precision_is_the_windows_and_sentinels_is_of_two_buckets() {
        let rule = SystemRule::qps(100.0).unwrap().with_precision(Precision::Sentinel).unwrap();
        assert_eq!(rule.to_string(), "system: at most 100 inbound calls per 1s, as Sentinel in 2 buckets");
        let rule = rule.with_precision(Precision::Strict).unwrap();
        assert_eq!(rule.to_string(), "system: at most 100 inbound calls per 1s, strict in 100 buckets");
        assert_eq!(
            SystemRule::qps(2e6).unwrap().with_precision(Precision::Exact),
            Err(RuleError::ExactLimit(2e6))
        );
        let cpu = SystemRule::cpu(0.8).unwrap().with_precision(Precision::Sentinel).unwrap();
        assert_eq!(cpu.to_string(), "system: cpu at most 0.8 of the quota, as Sentinel");
    }

    #[test]
    fn what_was_exceeded_says_what_was_seen_and_what_is_allowed() {
        let text =
            |dimension, observed, limit| Exceeded { dimension, observed, limit, in_flight: 11 }.to_string();
        assert_eq!(
            text(Dimension::Cpu, 0.95, 0.8),
            "the cpu is at 0.95 of its quota, over the system's limit of 0.8, with 11 inbound calls in flight"
        );
        assert_eq!(
            text(Dimension::AvgRt, 0.062_5, 0.05),
            "inbound calls take 62.5ms on average, over the system's limit of 50ms"
        );
        assert_eq!(
            text(Dimension::Concurrency, 11.0, 11.0),
            "11 inbound calls are in flight and the system's limit is 11"
        );
    }
}
