//! What differs between two sets of rules.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{FlowRule, Mode, NamedRule, Precision, Relation, Rule, RuleSet};

/// What becomes of what a rule has counted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleState {
    /// It counts on.
    Kept,
    /// The rule starts anew: it counts in windows of another shape, or something else.
    New,
}

/// A rule that was added, changed or removed.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, Registry, RuleSet};
///
/// let registry = Registry::new();
/// let limit = |qps| Ok::<_, leap_runtime::RuleError>(FlowRule::new(qps, Behavior::Reject)?);
/// registry.load(RuleSet::new().flow("orders.create", limit(100.0)?))?;
/// let report = registry.load(RuleSet::new().flow("orders.create", limit(50.0)?))?;
/// assert_eq!(
///     report.changes()[0].to_string(),
///     "changed orders.create/flow/0: flow: 100 per 1s, exact -> flow: 50 per 1s, exact"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RuleChange {
    source: &'static str,
    from: Option<NamedRule>,
    to: Option<NamedRule>,
}

impl RuleChange {
    /// The source of the rule.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The rule as it was; none if it was added.
    pub fn from(&self) -> Option<&NamedRule> {
        self.from.as_ref()
    }

    /// The rule as it is; none if it was removed.
    pub fn to(&self) -> Option<&NamedRule> {
        self.to.as_ref()
    }

    /// The resource or the pattern of resources that the rule is for; none for a rule of the system.
    pub fn resource(&self) -> Option<&str> {
        self.from.as_ref().or(self.to.as_ref()).and_then(NamedRule::resource)
    }

    /// Of a rule that was changed, what becomes of what it has counted.
    pub fn state(&self) -> Option<RuleState> {
        let (from, to) = self.from.as_ref().zip(self.to.as_ref())?;
        Some(if keeps_state(from.rule(), to.rule()) { RuleState::Kept } else { RuleState::New })
    }
}

impl fmt::Display for RuleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (None, None) => Ok(()),
            (None, Some(to)) => write!(f, "added {to}: {}", Shown(to.rule())),
            (Some(from), None) => write!(f, "removed {from}: {}", Shown(from.rule())),
            (Some(from), Some(to)) => {
                write!(f, "changed {to}: {} -> {}", Shown(from.rule()), Shown(to.rule()))?;
                if self.state() == Some(RuleState::New) { f.write_str(", starting anew") } else { Ok(()) }
            }
        }
    }
}

/// A rule with its mode, where that is not the usual one.
struct Shown<'a>(&'a Rule);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        match self.0.mode() {
            Mode::Enforce => Ok(()),
            Mode::Off => f.write_str(" (off)"),
            Mode::Shadow => f.write_str(" (shadow)"),
        }
    }
}

/// Whether a rule that becomes another one goes on from where it stood.
fn keeps_state(from: &Rule, to: &Rule) -> bool {
    match (from, to) {
        (Rule::Flow(from), Rule::Flow(to)) => {
            let is_log = |rule: &FlowRule| rule.is_paced() || rule.precision() == Precision::Exact;
            let is_same_shape = (from.interval(), from.n_buckets()) == (to.interval(), to.n_buckets());
            from.relation() == to.relation()
                && from.is_paced() == to.is_paced()
                && match (is_log(from), is_log(to)) {
                    // What another resource lets through is counted in buckets.
                    (true, true) if matches!(from.relation(), Relation::Associated(_)) => is_same_shape,
                    (true, true) => true,
                    (false, false) => is_same_shape,
                    // What is in the window is carried over as passing now.
                    _ => from.interval() == to.interval(),
                }
        }
        (Rule::Breaker(from), Rule::Breaker(to)) => from.kind() == to.kind() && from.window() == to.window(),
        (Rule::Hot(from), Rule::Hot(to)) => from.selector() == to.selector(),
        (Rule::System(from), Rule::System(to)) => from.dimension() == to.dimension(),
        _ => from.kind() == to.kind(),
    }
}

/// What differs from `before` to `after`, two sets of one source, and how many rules do not.
///
/// A rule is the same one if it has the same id, or its place among those of its kind for the same resource; a version in
/// shadow is apart, unless the rule has gone into shadow, or come out of it, altogether.
pub(crate) fn changes(source: &'static str, before: &RuleSet, after: &RuleSet) -> (Vec<RuleChange>, usize) {
    let mut found = Found { source, changes: vec![], n_kept: 0 };
    for (_, before, after) in before.beside(after) {
        match (before, after) {
            (Some(before), Some(after)) if Arc::ptr_eq(before, after) => found.n_kept += after.len(),
            (before, after) => {
                found.compare(before.map_or(&[], |rules| rules), after.map_or(&[], |rules| rules));
            }
        }
    }
    found.compare(before.of_system(), after.of_system());
    (found.changes, found.n_kept)
}

struct Found {
    source: &'static str,
    changes: Vec<RuleChange>,
    n_kept: usize,
}

impl Found {
    /// Compares the rules of one resource.
    fn compare(&mut self, before: &[NamedRule], after: &[NamedRule]) {
        let mut left: BTreeMap<_, _> = before.iter().map(|from| (from.version(), from)).collect();
        let mut pairs: Vec<_> = after.iter().map(|to| (left.remove(&to.version()), to)).collect();
        for (from, to) in pairs.iter_mut().filter(|(from, _)| from.is_none()) {
            let (name, is_shadow) = to.version();
            *from = left.remove(&(name, !is_shadow));
        }
        let source = self.source;
        let removed = before.iter().filter(|from| left.contains_key(&from.version()));
        self.changes.extend(removed.map(|from| RuleChange { source, from: Some(from.clone()), to: None }));
        for (from, to) in pairs {
            if from == Some(to) {
                self.n_kept += 1;
            } else {
                self.changes.push(RuleChange { source, from: from.cloned(), to: Some(to.clone()) });
            }
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for RuleChange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let text = |named: &NamedRule| Shown(named.rule()).to_string();
        let mut change = serializer.serialize_struct("RuleChange", 6)?;
        change.serialize_field("source", self.source)?;
        change.serialize_field("resource", &self.resource())?;
        let rule = self.to.as_ref().or(self.from.as_ref());
        change.serialize_field("rule", &rule.map(ToString::to_string))?;
        change.serialize_field("from", &self.from.as_ref().map(text))?;
        change.serialize_field("to", &self.to.as_ref().map(text))?;
        let state = self.state().map(|state| match state {
            RuleState::Kept => "kept",
            RuleState::New => "new",
        });
        change.serialize_field("state", &state)?;
        change.end()
    }
}
