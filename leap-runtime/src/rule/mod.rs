//! Rules as plain data: what an operator may ask for, checked when it is made.
//!
//! A rule does not know that checks are built from it. Whoever holds one holds a rule that makes sense.

mod authority;
mod breaker;
mod change;
#[cfg(feature = "serde")]
mod data;
mod error;
mod flow;
mod hot;
mod id;
mod isolation;
#[cfg(any(feature = "catalog", feature = "serde"))]
pub(crate) mod near;
pub(crate) mod pattern;
mod rejection;
mod set;
mod system;

use std::fmt;

pub use authority::AuthorityRule;
pub(crate) use breaker::BreakerWords;
pub use breaker::{BreakerRule, BreakerState, BreakerWindow, Recovery, RecoveryWord, Strategy};
pub(crate) use change::changes;
pub use change::{RuleChange, RuleState};
#[cfg(feature = "serde")]
pub use data::{RuleData, RulePatch};
pub use error::RuleError;
pub(crate) use flow::FlowWords;
pub use flow::{Behavior, BehaviorWord, FlowRule, Precision, Relation};
pub use hot::{Except, HotRule, KeySelector};
pub(crate) use hot::{HOT_BUCKETS, HOT_EXACT_AT_MOST, HotWords};
pub use id::RuleId;
pub(crate) use id::source_name;
pub use isolation::IsolationRule;
pub(crate) use rejection::Cut;
pub use rejection::{LoadError, Rejection};
pub use set::{NamedRule, RuleSet};
pub(crate) use set::{SHADOW, are_same};
pub(crate) use system::Exceeded;
pub use system::{Dimension, SystemRule};

/// The longest name that a resource, an entrance or an origin can have, in bytes.
pub(crate) const NAME_MAX: usize = 1024;
/// What is counted under names that cannot be one.
pub(crate) const OVERFLOW: &str = "(overflow)";

/// The source of what [`Registry::load`](crate::Registry::load) loads.
pub(crate) const LOADED: &str = "loaded";

/// Whether a resource, an entrance or an origin can be called this.
pub(crate) const fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX
}

/// Whether a rule decides.
///
/// A rule that changes its mode over a load keeps what it remembers, so that no change of modes gives calls a fresh burst:
///
/// - *Off and on again*: a breaker stays where it was, and so do the line of a throttle, the values of a parameter, what
///   origins and entrances had, and the calls in flight. What limits the resource as a whole by a window, or warms up, goes on
///   counting while it is off. Everything else is asked nothing, and counts nothing, until it is on.
/// - *From shadow to enforced*, where no rule of that id was enforced or off: it goes on from what it had let through in
///   shadow, and when. Only where other exact rules of the resource stand already, what these know of the last permits counts
///   for it too. *From enforced or off to shadow*, where no rule of that id was in shadow: likewise.
/// - Where a rule of that id had the new role before, that one's memory is gone on from.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, ManualClock, Mode, Registry, RuleSet};
///
/// let registry = Registry::builder().clock(ManualClock::new()).build();
/// let candidate = FlowRule::new(1.0, Behavior::Reject)?.with_mode(Mode::Shadow);
/// registry.load(RuleSet::new().flow("orders.create", candidate))?;
/// for _ in 0..4 {
///     registry.enter("orders.create")?.run(|| Ok::<_, ()>(())).unwrap();
/// }
/// let stats = registry.stats("orders.create").unwrap();
/// assert_eq!((stats.shadows()[0].asked(), stats.shadows()[0].would_block()), (4, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The rule decides about calls.
    #[default]
    Enforce,
    /// The rule is known and shown, replaces weaker rules of its kind, and decides nothing.
    Off,
    /// The rule decides nothing, and is asked as if it did: see [`ShadowStats`](crate::ShadowStats). It replaces no rule.
    ///
    /// It is asked about every call that passed, and about every call that an enforced rule of its own
    /// [kind](RuleKind) blocked; not about others, which it would have had no say in. It goes by what it would have let
    /// through itself: so several in shadow, and enforced ones, do not disturb each other. Permits in flight, and results of
    /// calls, it knows only of calls that ran. No call waits for it, no observer hears of its breakers, and priority plays
    /// no part in it.
    Shadow,
}

impl Mode {
    /// The mode in the word of the attribute and of data: `enforce`, `off`, `shadow`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Off => "off",
            Self::Shadow => "shadow",
        }
    }
}

/// The kinds of rules. Rules of one kind that are loaded replace those of the kind that attributes gave a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RuleKind {
    /// A limit on permits per interval.
    Flow,
    /// A limit on calls in flight.
    Isolation,
    /// A breaker that trips on the share of slow calls.
    SlowRatio,
    /// A breaker that trips on the share of exceptions.
    ErrorRatio,
    /// A breaker that trips on the number of exceptions.
    ErrorCount,
    /// Origins that may call, or may not.
    Authority,
    /// A limit on the machine's load and on all inbound calls together.
    System,
    /// A limit on each value of a parameter.
    Hot,
    /// A check of the application's own.
    Custom,
}

impl RuleKind {
    /// The kind in words, as it stands in ids and reports: `flow`, `slow_ratio`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Isolation => "isolation",
            Self::SlowRatio => "slow_ratio",
            Self::ErrorRatio => "error_ratio",
            Self::ErrorCount => "error_count",
            Self::Authority => "authority",
            Self::System => "system",
            Self::Hot => "hot",
            Self::Custom => "custom",
        }
    }
}

/// One rule of any kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rule {
    /// A limit on permits per interval.
    Flow(FlowRule),
    /// A limit on calls in flight.
    Isolation(IsolationRule),
    /// A circuit breaker.
    Breaker(BreakerRule),
    /// A limit on each value of a parameter.
    Hot(HotRule),
    /// A list of origins that may call, or may not.
    Authority(AuthorityRule),
    /// A limit on the machine's load, or on all inbound calls together. It is for no resource.
    System(SystemRule),
}

impl Rule {
    /// The kind of this rule.
    pub const fn kind(&self) -> RuleKind {
        match self {
            Self::Flow(_) => RuleKind::Flow,
            Self::Isolation(_) => RuleKind::Isolation,
            Self::Breaker(rule) => rule.kind(),
            Self::Hot(_) => RuleKind::Hot,
            Self::Authority(_) => RuleKind::Authority,
            Self::System(_) => RuleKind::System,
        }
    }

    /// Whether this rule decides.
    pub fn mode(&self) -> Mode {
        match self {
            Self::Flow(rule) => rule.mode(),
            Self::Isolation(rule) => rule.mode(),
            Self::Breaker(rule) => rule.mode(),
            Self::Hot(rule) => rule.mode(),
            Self::Authority(rule) => rule.mode(),
            Self::System(rule) => rule.mode(),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(rule) => rule.fmt(f),
            Self::Isolation(rule) => rule.fmt(f),
            Self::Breaker(rule) => rule.fmt(f),
            Self::Hot(rule) => rule.fmt(f),
            Self::Authority(rule) => rule.fmt(f),
            Self::System(rule) => rule.fmt(f),
        }
    }
}

impl From<FlowRule> for Rule {
    fn from(rule: FlowRule) -> Self {
        Self::Flow(rule)
    }
}

impl From<IsolationRule> for Rule {
    fn from(rule: IsolationRule) -> Self {
        Self::Isolation(rule)
    }
}

impl From<BreakerRule> for Rule {
    fn from(rule: BreakerRule) -> Self {
        Self::Breaker(rule)
    }
}

impl From<HotRule> for Rule {
    fn from(rule: HotRule) -> Self {
        Self::Hot(rule)
    }
}

impl From<AuthorityRule> for Rule {
    fn from(rule: AuthorityRule) -> Self {
        Self::Authority(rule)
    }
}

impl From<SystemRule> for Rule {
    fn from(rule: SystemRule) -> Self {
        Self::System(rule)
    }
}

impl Rule {
    /// The same rule in another mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        match self {
            Self::Flow(rule) => rule.with_mode(mode).into(),
            Self::Isolation(rule) => rule.with_mode(mode).into(),
            Self::Breaker(rule) => rule.with_mode(mode).into(),
            Self::Hot(rule) => rule.with_mode(mode).into(),
            Self::Authority(rule) => rule.with_mode(mode).into(),
            Self::System(rule) => rule.with_mode(mode).into(),
        }
    }
}
