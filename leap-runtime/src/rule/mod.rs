//! Rules as plain data: what an operator may ask for, checked when it is made.
//!
//! A rule does not know that checks are built from it. Whoever holds one holds a rule that makes sense.

mod authority;
mod breaker;
mod error;
mod flow;
mod hot;
mod isolation;
mod system;

use std::collections::BTreeMap;
use std::fmt;

pub use authority::AuthorityRule;
pub use breaker::{BreakerRule, BreakerState, BreakerWindow, Recovery, Strategy};
pub use error::RuleError;
pub(crate) use flow::FlowNumbers;
pub use flow::{Behavior, FlowRule, Precision, Relation};
pub use hot::{Except, HotRule, KeySelector};
pub(crate) use hot::{HOT_BUCKETS, HOT_EXACT_AT_MOST, HotWords};
pub use isolation::IsolationRule;
pub(crate) use system::Exceeded;
pub use system::{Dimension, SystemRule};

/// The longest name that a resource, an entrance or an origin can have, in bytes.
pub(crate) const NAME_MAX: usize = 1024;
/// What is counted under names that cannot be one.
pub(crate) const OVERFLOW: &str = "(overflow)";

/// Whether a resource, an entrance or an origin can be called this.
pub(crate) const fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX
}

/// Whether a rule decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The rule decides about calls.
    #[default]
    Enforce,
    /// The rule is known and shown, replaces weaker rules of its kind, and decides nothing.
    Off,
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
        }
    }

    /// Whether this rule decides.
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Flow(rule) => rule.mode(),
            Self::Isolation(rule) => rule.mode(),
            Self::Breaker(rule) => rule.mode(),
            Self::Hot(rule) => rule.mode(),
            Self::Authority(rule) => rule.mode(),
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

/// Which rule of a resource: where it comes from, its kind, and its place among those of its kind there.
///
/// A rule that keeps its id over a reload keeps its live state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleId {
    pub(crate) function: Option<&'static str>,
    pub(crate) kind: RuleKind,
    pub(crate) position: u16,
}

impl RuleId {
    /// None as `function` is a loaded rule's.
    pub(crate) fn new(function: Option<&'static str>, kind: RuleKind, position: usize) -> Self {
        Self { function, kind, position: u16::try_from(position).unwrap_or(u16::MAX) }
    }

    /// The path of the function whose attribute gave the rule; none for a loaded rule.
    pub const fn function(&self) -> Option<&'static str> {
        self.function
    }

    /// The kind of the rule.
    pub const fn kind(&self) -> RuleKind {
        self.kind
    }

    /// Its place among the rules of its kind from the same source, counted from 0.
    pub const fn position(&self) -> u16 {
        self.position
    }
}

impl fmt::Display for RuleId {
    /// `shop::create/flow/0` for a rule of an attribute, `loaded/flow/0` for a loaded one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.function.unwrap_or("loaded"), self.kind.name(), self.position)
    }
}

/// Rules for any number of resources, to be loaded together.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, IsolationRule, Registry, RuleSet};
///
/// let rules = RuleSet::new()
///     .flow("orders.create", FlowRule::new(100.0, Behavior::Reject)?)
///     .isolation("orders.create", IsolationRule::new(32));
/// let report = Registry::new().load(rules)?;
/// assert_eq!(report.added(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleSet {
    rules: BTreeMap<String, Vec<Rule>>,
    system: Vec<SystemRule>,
}

impl RuleSet {
    /// A set without rules. Loading it takes all loaded rules away.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a flow rule for `resource`.
    #[must_use]
    pub fn flow(self, resource: impl Into<String>, rule: FlowRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a limit on the calls of `resource` in flight.
    #[must_use]
    pub fn isolation(self, resource: impl Into<String>, rule: IsolationRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a circuit breaker for `resource`.
    #[must_use]
    pub fn breaker(self, resource: impl Into<String>, rule: BreakerRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a limit on each value of a parameter of `resource`.
    #[must_use]
    pub fn hot(self, resource: impl Into<String>, rule: HotRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a list of origins that may call `resource`, or may not.
    #[must_use]
    pub fn authority(self, resource: impl Into<String>, rule: AuthorityRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a rule for all inbound calls of the registry together.
    #[must_use]
    pub fn system(mut self, rule: SystemRule) -> Self {
        self.system.push(rule);
        self
    }

    /// Adds a rule of any kind for `resource`. Several rules of one kind hold together.
    #[must_use]
    pub fn rule(mut self, resource: impl Into<String>, rule: impl Into<Rule>) -> Self {
        self.rules.entry(resource.into()).or_default().push(rule.into());
        self
    }

    /// Whether the set holds no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.system.is_empty()
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.values().map(Vec::len).sum::<usize>() + self.system.len()
    }

    /// The rules for all inbound calls together, in the order in which they were added.
    pub fn of_system(&self) -> &[SystemRule] {
        &self.system
    }

    /// The rules by resource, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Rule])> {
        self.rules.iter().map(|(resource, rules)| (resource.as_str(), rules.as_slice()))
    }

    /// The rules of one resource.
    pub fn of(&self, resource: &str) -> &[Rule] {
        self.rules.get(resource).map_or(&[], Vec::as_slice)
    }
}
