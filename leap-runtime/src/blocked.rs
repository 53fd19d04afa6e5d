//! Why a call was turned away, and how a function says so.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::key::Key;
use crate::rule::{BreakerState, Dimension, Exceeded, FlowRule, RuleId, RuleKind};

/// The name of a resource, shared without touching a reference count where it lives for ever.
#[derive(Clone)]
pub(crate) enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Static(name) => name,
            Self::Shared(name) => name,
        }
    }
}

/// What kind of rule turned a call away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A limit on permits per interval.
    Flow,
    /// A limit on calls in flight.
    Isolation,
    /// A circuit breaker.
    Breaker,
    /// An origin that may not call.
    Authority,
    /// The machine, or all inbound calls together.
    System,
    /// A limit on a value of a parameter.
    Hot,
    /// A check of the application's own.
    Custom,
}

impl Cause {
    /// Every cause, in the order in which statistics list them.
    pub const ALL: [Self; 7] =
        [Self::Flow, Self::Isolation, Self::Breaker, Self::Authority, Self::System, Self::Hot, Self::Custom];

    /// The cause in one word: `flow`, `isolation`, `breaker`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Isolation => "isolation",
            Self::Breaker => "breaker",
            Self::Authority => "authority",
            Self::System => "system",
            Self::Hot => "hot",
            Self::Custom => "custom",
        }
    }
}

impl From<RuleKind> for Cause {
    fn from(kind: RuleKind) -> Self {
        match kind {
            RuleKind::Flow => Self::Flow,
            RuleKind::Isolation => Self::Isolation,
            RuleKind::SlowRatio | RuleKind::ErrorRatio | RuleKind::ErrorCount => Self::Breaker,
            RuleKind::Authority => Self::Authority,
            RuleKind::System => Self::System,
            RuleKind::Hot => Self::Hot,
            RuleKind::Custom => Self::Custom,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The answer of a check that says no.
///
/// Blocked calls come in masses: it borrows from the rule, and is passed on by reference, because moving large values
/// about costs more than the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) rule: &'a RuleId,
    pub(crate) by: By<'a>,
    /// The moment from which a call would have another chance, where it is known.
    pub(crate) until: Option<Timestamp>,
}

/// The kind of check that says no, and what it saw.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By<'a> {
    /// `limit` is what the rule allows at this moment, `fits` whether as many permits can ever pass at once.
    Flow {
        rule: &'a FlowRule,
        limit: f64,
        fits: bool,
    },
    /// As [`Flow`](Self::Flow), of the passes of another resource.
    Associated {
        rule: &'a FlowRule,
        limit: f64,
        fits: bool,
    },
    /// It would have had to wait for too long: until the moment of the refusal plus the rule's longest wait. `fits`
    /// tells whether as many permits can ever start at once.
    Pace {
        rule: &'a FlowRule,
        fits: bool,
    },
    Isolation {
        limit: u32,
        in_flight: u32,
    },
    /// `share` is the percentage of calls let through, while that rises.
    Breaker {
        state: BreakerState,
        share: Option<u16>,
    },
    Authority,
    System(Exceeded),
    /// A limit on a value of a parameter, which may be that value's own.
    Hot {
        limit: f64,
        interval_ns: u64,
        full: HotFull,
    },
    Custom {
        reason: &'static str,
    },
    /// The call would have to wait, and nobody would wake it.
    NoTimer,
}

/// What of a parameter's value is used up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HotFull {
    Rate {
        fits: bool,
    },
    Pace {
        max_wait_ns: u64,
    },
    Concurrency {
        in_flight: u32,
    },
    /// What a call asks for several of its values together, or for one that shares a limit with others.
    RateTogether {
        asked: u64,
        is_shared: bool,
        fits: bool,
    },
    ConcurrencyTogether {
        asked: u64,
        is_shared: bool,
        in_flight: u32,
    },
    /// More values than a call may have.
    TooLarge {
        n_values: usize,
    },
}

/// A call that was turned away: by which rule, why, and when to come back.
///
/// It is made without allocating and formats only when printed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leap_runtime::{Behavior, Cause, FlowRule, ManualClock, Registry, RuleSet};
///
/// let registry = Registry::builder().clock(ManualClock::new()).build();
/// registry.load(RuleSet::new().flow("orders.create", FlowRule::new(1.0, Behavior::Reject)?))?;
/// let first = registry.enter("orders.create")?;
///
/// let blocked = registry.enter("orders.create").unwrap_err();
/// assert_eq!(blocked.cause(), Cause::Flow);
/// assert_eq!(blocked.retry_after(), Some(Duration::from_secs(1)));
/// assert_eq!(
///     blocked.to_string(),
///     "`orders.create` is blocked: its limit of 1 per 1s is reached; retry after 1s"
/// );
/// # drop(first); Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The fields are plain words in the order in which they are written: it is made for every blocked call, and copied into
/// the caller's own error.
#[derive(Clone, PartialEq)]
#[must_use = "a blocked call should be answered"]
pub struct Blocked {
    resource: Name,
    /// With the reason of a check of the application's own.
    rule: RuleId,
    limit: f64,
    /// Not of windows: what of those was taken is told by the limit.
    observed: f64,
    /// The interval of the limit, or the longest wait, or the inbound permits in flight.
    ns: u64,
    retry_after_ns: u64,
    at: Timestamp,
    asked: u32,
    seen: Seen,
}

/// What the rule that said no had before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The window is full for now.
    Full,
    /// The window over another resource is full for now.
    RelatedFull,
    /// More permits than can ever pass at once.
    TooMany,
    /// A wait that would be too long.
    TooLate,
    /// As many permits in flight as may be.
    Busy,
    /// The limit of a parameter, for several values of the call together: what it asked for is the observed.
    FullTogether {
        is_shared: bool,
        fits: bool,
    },
    /// The same in flight: what it asked for is the time.
    BusyTogether {
        is_shared: bool,
    },
    /// More values than a call may have: as many as the time.
    TooLarge,
    /// An open breaker.
    Open,
    /// A half-open breaker whose probes are out.
    Probing,
    /// A half-open breaker that lets a share of the calls through, in percent as the limit.
    Ramping,
    /// A breaker that somebody has forced open.
    ForcedOpen,
    /// An origin that may not call.
    Denied,
    System(Dimension),
    /// Something that has a reason of its own.
    Reason,
    /// A wait that nobody would end.
    NoTimer,
}

/// No time to wait helps, or none is known.
const NEVER: u64 = u64::MAX;

impl Blocked {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "blocked calls come in masses, and each goes by one of the arms"
    )]
    pub(crate) fn new(resource: Name, asked: u32, refusal: &Refusal<'_>, now: Timestamp) -> Self {
        let mut rule = refusal.rule.clone();
        let (limit, observed, ns, seen) = match refusal.by {
            By::Flow { rule, limit, fits } => {
                let seen = if fits { Seen::Full } else { Seen::TooMany };
                (limit, 0.0, rule.interval_ns(), seen)
            }
            By::Associated { rule, limit, fits } => {
                let seen = if fits { Seen::RelatedFull } else { Seen::TooMany };
                (limit, 0.0, rule.interval_ns(), seen)
            }
            By::Pace { rule, fits: false } => (rule.limit(), 0.0, rule.interval_ns(), Seen::TooMany),
            By::Pace { rule, fits: true } => (rule.limit(), 0.0, rule.max_wait_ns(), Seen::TooLate),
            By::Isolation { limit, in_flight } => (limit.into(), in_flight.into(), 0, Seen::Busy),
            By::Breaker { share: Some(share), .. } => (share.into(), 0.0, 0, Seen::Ramping),
            By::Breaker { state, share: None } => match state {
                BreakerState::ForcedOpen => (0.0, 0.0, 0, Seen::ForcedOpen),
                BreakerState::HalfOpen => (0.0, 0.0, 0, Seen::Probing),
                _ => (0.0, 0.0, 0, Seen::Open),
            },
            By::Authority => (0.0, 0.0, 0, Seen::Denied),
            By::System(Exceeded { dimension, observed, limit, in_flight }) => {
                (limit, observed, in_flight.into(), Seen::System(dimension))
            }
            By::Hot { limit, interval_ns, full } => match full {
                HotFull::Rate { fits: true } => (limit, 0.0, interval_ns, Seen::Full),
                HotFull::Rate { fits: false } => (limit, 0.0, interval_ns, Seen::TooMany),
                HotFull::Pace { max_wait_ns } => (limit, 0.0, max_wait_ns, Seen::TooLate),
                HotFull::Concurrency { in_flight } => (limit, in_flight.into(), 0, Seen::Busy),
                HotFull::RateTogether { asked, is_shared, fits } => {
                    (limit, permits(asked), interval_ns, Seen::FullTogether { is_shared, fits })
                }
                HotFull::ConcurrencyTogether { asked, is_shared, in_flight } => {
                    (limit, in_flight.into(), asked, Seen::BusyTogether { is_shared })
                }
                HotFull::TooLarge { n_values } => (0.0, 0.0, n_values as u64, Seen::TooLarge),
            },
            By::Custom { reason } => {
                rule = rule.with_reason(reason);
                (0.0, 0.0, 0, Seen::Reason)
            }
            By::NoTimer => (0.0, 0.0, 0, Seen::NoTimer),
        };
        let retry_after_ns = refusal.until.map_or(NEVER, |until| until.since_ns(now));
        Self { resource, rule, limit, observed, ns, retry_after_ns, at: now, asked, seen }
    }

    /// The same, for a call that has waited in vain until `now`.
    pub(crate) fn later(self, now: Timestamp) -> Self {
        Self { at: now, ..self }
    }

    /// The resource whose rule said no.
    pub fn resource(&self) -> &str {
        self.resource.as_str()
    }

    /// The kind of rule that said no.
    pub fn cause(&self) -> Cause {
        self.rule.kind().into()
    }

    /// The rule that said no: the first, where several did.
    pub fn rule(&self) -> RuleId {
        self.rule.without_reason()
    }

    /// The reason that a check of the application's own gave; none if a rule of leap's said no.
    pub fn reason(&self) -> Option<&'static str> {
        if self.seen == Seen::Reason { self.rule.function() } else { None }
    }

    /// How long to wait until a call has another chance, as far as this resource's own past tells.
    ///
    /// None where waiting does not help (more permits were asked for than can ever pass, an origin that may not call) or
    /// where it depends on calls that are running (isolation, probes), on the machine, or on a hand (a breaker that is
    /// forced open).
    pub fn retry_after(&self) -> Option<Duration> {
        (self.retry_after_ns != NEVER).then(|| Duration::from_nanos(self.retry_after_ns))
    }

    /// When it was blocked, by the registry's clock.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The permits that the call asked for.
    pub fn permits(&self) -> u32 {
        self.asked
    }

    /// What the rule allows: permits per interval, permits in flight, or the limit of the system's figure in its own unit
    /// (seconds for response times). Of a window that warms up, what it allows at this moment. None where nothing is
    /// counted.
    pub fn limit(&self) -> Option<f64> {
        match self.seen {
            Seen::Full
            | Seen::RelatedFull
            | Seen::TooMany
            | Seen::TooLate
            | Seen::Busy
            | Seen::FullTogether { .. }
            | Seen::BusyTogether { .. }
            | Seen::System(_) => Some(self.limit),
            Seen::Open
            | Seen::Probing
            | Seen::Ramping
            | Seen::ForcedOpen
            | Seen::Denied
            | Seen::TooLarge
            | Seen::Reason
            | Seen::NoTimer => None,
        }
    }

    /// What the rule saw when it said no: permits in flight (isolation), permits of the window that were taken, at least
    /// (flow), or the system's figure in its own unit. None where nothing is counted.
    pub fn observed(&self) -> Option<f64> {
        match self.seen {
            // As many as were at least taken, or so many permits would have fitted.
            Seen::Full | Seen::RelatedFull => {
                Some((self.limit.floor() + 1.0 - f64::from(self.asked)).max(0.0))
            }
            Seen::TooMany | Seen::Busy | Seen::BusyTogether { .. } | Seen::System(_) => Some(self.observed),
            _ => None,
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, asked, observed, .. } = self;
        let time = Duration::from_nanos(self.ns);
        // A value of a parameter has a limit of its own; everything else is the resource's.
        let whose = if self.rule.kind() == RuleKind::Hot { "the parameter's" } else { "its" };
        write!(f, "`{}` is blocked: ", self.resource())?;
        match self.seen {
            Seen::RelatedFull => {
                write!(f, "the limit of {limit} per {time:?} on its related resource is reached")
            }
            Seen::Full | Seen::TooMany | Seen::FullTogether { .. } if *limit == 0.0 => {
                write!(f, "{whose} limit is 0")
            }
            Seen::Full => write!(f, "{whose} limit of {limit} per {time:?} is reached"),
            Seen::TooMany => {
                write!(f, "{asked} permits at once can never fit {whose} limit of {limit} per {time:?}")
            }
            Seen::TooLate if self.ns == 0 => {
                write!(f, "{whose} next turn has not come, and it does not wait")
            }
            Seen::TooLate => write!(f, "{whose} turn would not come within {time:?}, its longest wait"),
            Seen::Busy if self.rule.kind() == RuleKind::Hot => {
                write!(f, "{observed} of at most {limit} calls of the parameter's value are in flight")
            }
            Seen::Busy => write!(f, "{observed} of at most {limit} calls are in flight"),
            Seen::FullTogether { is_shared, fits } => {
                let can = if fits { "do not" } else { "can never" };
                let asked = *observed;
                write!(
                    f,
                    "{asked} permits for its values {can} fit the parameter's limit of {limit} per {time:?}"
                )?;
                shared(f, is_shared)
            }
            Seen::BusyTogether { is_shared } => {
                let asked = self.ns;
                write!(
                    f,
                    "{asked} permits for its values do not fit the parameter's limit of {limit} in flight"
                )?;
                shared(f, is_shared)?;
                write!(f, ", of which {observed} are taken")
            }
            Seen::TooLarge => {
                write!(f, "its {} values of the parameter are more than {}", self.ns, Key::MAX_ELEMENTS)
            }
            Seen::Open => f.write_str("its circuit breaker is open"),
            Seen::Probing => f.write_str("its circuit breaker is half-open and all probes are out"),
            Seen::Ramping => {
                write!(f, "its circuit breaker is half-open and lets {limit}% of the calls through")
            }
            Seen::ForcedOpen => f.write_str("its circuit breaker is forced open"),
            Seen::Denied => f.write_str("its origin may not call"),
            Seen::System(dimension) => {
                let in_flight = u32::try_from(self.ns).unwrap_or(u32::MAX);
                Exceeded { dimension, observed: *observed, limit: *limit, in_flight }.fmt(f)
            }
            Seen::Reason => f.write_str(self.rule.function().unwrap_or("no reason given")),
            Seen::NoTimer => f.write_str(
                "it would have to wait, and there is no timer here to end that: see `Builder::sleep`",
            ),
        }?;
        match self.retry_after() {
            Some(time) => write!(f, "; retry after {:?}", readable(time)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocked")
            .field("resource", &self.resource())
            .field("rule", &self.rule())
            .field("permits", &self.asked)
            .field("limit", &self.limit())
            .field("observed", &self.observed())
            .field("at", &self.at)
            .field("retry_after", &self.retry_after())
            .finish_non_exhaustive()
    }
}

impl Error for Blocked {}

/// Whose limit it is.
fn shared(f: &mut fmt::Formatter<'_>, is_shared: bool) -> fmt::Result {
    f.write_str(if is_shared { ", shared by values beyond `max_keys`" } else { "" })
}

/// Permits as a figure.
fn permits(n: u64) -> f64 {
    u32::try_from(n).map_or(f64::from(u32::MAX), f64::from)
}

/// A time to wait, for people: in whole milliseconds where it has any, rounded up so that it is not too short.
pub(crate) fn readable(time: Duration) -> Duration {
    let millis = time.as_nanos().div_ceil(1_000_000);
    match u64::try_from(millis) {
        Ok(millis) if millis > 1 => Duration::from_millis(millis),
        _ => time,
    }
}

/// A return type that can say that a call was blocked.
///
/// `Result<T, E>` can where `E: From<Blocked>`. Functions that return anything else are given a `fallback`, or
/// implement this for their own type.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Blocked, FromBlocked};
///
/// enum Reply { Done, TooBusy }
///
/// impl FromBlocked for Reply {
///     fn from_blocked(_: Blocked) -> Self {
///         Self::TooBusy
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say that a call was blocked",
    label = "a blocked call has to return something of this type",
    note = "return a `Result<_, E>` with an error type of yours, and add `impl From<leap_runtime::Blocked> for E`",
    note = "or name a function to call instead: `#[guarded(.., fallback = path)]`",
    note = "or implement `leap_runtime::FromBlocked` for the return type, if that is yours",
    note = "or, of a method in a guarded `impl` block, leave it out: `#[guarded(skip)]`"
)]
pub trait FromBlocked {
    /// What a blocked call returns.
    fn from_blocked(blocked: Blocked) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Blocked>> FromBlocked for Result<T, E> {
    fn from_blocked(blocked: Blocked) -> Self {
        Err(E::from(blocked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_small_enough_to_return_by_value() {
        assert!(size_of::<Blocked>() <= 96, "{}", size_of::<Blocked>());
    }
}
