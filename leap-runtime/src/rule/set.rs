//! Rules for any number of resources.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::pattern::{canonical, is_glob, literally};
use super::rejection::Rejection;
use super::{
    AuthorityRule, BreakerRule, FlowRule, HotRule, IsolationRule, Mode, NAME_MAX, Rule, RuleError, RuleId,
    RuleKind, SystemRule, is_name,
};

/// Rules for any number of resources, to be loaded together.
///
/// A rule is for the resource of that name, or for each one that a pattern matches, on its own: in it `*` stands for any
/// text, and `\*` for a star. `*` alone is for every resource. Of the rules of one [kind](RuleKind), those for the exact name
/// hold, else those of the most specific pattern: the one with the most text of its own.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, IsolationRule, Registry, RuleSet};
///
/// let qps = |limit| FlowRule::new(limit, Behavior::Reject);
/// let rules = RuleSet::new()
///     .flow("orders.create", qps(100.0)?)
///     .flow("orders.*", qps(1_000.0)?)
///     .named("usual", "*", IsolationRule::new(32));
/// let report = Registry::new().load(rules)?;
/// assert_eq!(report.added(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// By resource or pattern, as it is written. Shared by the copies of a set until they are changed.
    rules: BTreeMap<Arc<str>, Group>,
    system: Group,
    /// How many were added so far.
    n_added: usize,
}

/// The rules of a set for one resource or pattern, in the order in which they were added.
type Group = Arc<Vec<NamedRule>>;

/// A rule of a [set](RuleSet), with what it is for and what it is called.
///
/// It is told from others by the id that it was given, or by its place: `orders.create/flow/0` is the first flow rule for
/// that resource. A rule in shadow is another version of the one that is told in the same way; it is found by
/// `create-limit@shadow`.
#[derive(Clone, Debug)]
pub struct NamedRule {
    /// None for a rule of the system.
    pub(crate) resource: Option<Arc<str>>,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) rule: Rule,
    /// Its place among those of its kind for the same resource that have no id, shadows for themselves; 0 if it has one.
    pub(crate) position: usize,
    index: usize,
}

/// So many rules of one resource take no more room than they need.
const FEW: usize = 4;

/// What stands behind the id of a version in shadow.
pub(crate) const SHADOW: &str = "@shadow";

impl NamedRule {
    /// The resource that the rule is for, or the pattern of resources; none for a rule of the whole system.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// The id that the rule was given.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// By what it is told from others for the same resource, as one rule or as its version in shadow; and whether it is that.
    pub(crate) fn version(&self) -> ((RuleKind, Option<&str>, usize), bool) {
        ((self.rule.kind(), self.id(), self.position), self.is_shadow())
    }

    /// Whether it is told by the same id, or the same place, as `other`: as one rule, or as its version in shadow.
    pub(crate) fn is_version_of(&self, other: &Self) -> bool {
        self.resource == other.resource && self.version().0 == other.version().0
    }

    pub(crate) fn is_shadow(&self) -> bool {
        self.rule.mode() == Mode::Shadow
    }

    /// What the rule is called where it holds.
    pub(crate) fn rule_id(&self, source: &'static str) -> RuleId {
        let kind = self.rule.kind();
        match (&self.id, &self.resource) {
            (Some(id), _) => RuleId::given(source, id, kind),
            (None, Some(pattern)) if is_glob(pattern) => {
                RuleId::of_pattern(source, pattern, kind, self.position)
            }
            (None, _) => RuleId::of_source(source, kind, self.position),
        }
    }

    pub(crate) fn rejection(&self, field: &str, reason: impl fmt::Display) -> Rejection {
        Rejection {
            index: Some(self.index),
            id: self.id().map(str::to_owned),
            resource: self.resource().map(str::to_owned),
            field: Some(field.to_owned()),
            reason: reason.to_string(),
        }
    }
}

/// Whether they say the same of the same, wherever in their sets they stand.
impl PartialEq for NamedRule {
    fn eq(&self, other: &Self) -> bool {
        (&self.resource, &self.id, self.position) == (&other.resource, &other.id, other.position)
            && self.rule == other.rule
    }
}

impl fmt::Display for NamedRule {
    /// By what it is found: `create-limit`, `orders.create/flow/0`, `system/0`, and so on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.id, &self.resource) {
            (Some(id), _) => f.write_str(id)?,
            (None, Some(resource)) => {
                write!(f, "{resource}/{}/{}", self.rule.kind().name(), self.position)?;
            }
            (None, None) => write!(f, "{}/{}", self.rule.kind().name(), self.position)?,
        }
        if self.is_shadow() { f.write_str(SHADOW) } else { Ok(()) }
    }
}

impl RuleSet {
    /// A set without rules. Loading it takes all rules that were loaded from the same source away.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a flow rule for `resource`.
    #[must_use]
    pub fn flow(self, resource: impl AsRef<str>, rule: FlowRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a limit on the calls of `resource` in flight.
    #[must_use]
    pub fn isolation(self, resource: impl AsRef<str>, rule: IsolationRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a circuit breaker for `resource`.
    #[must_use]
    pub fn breaker(self, resource: impl AsRef<str>, rule: BreakerRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a limit on each value of a parameter of `resource`.
    #[must_use]
    pub fn hot(self, resource: impl AsRef<str>, rule: HotRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a list of origins that may call `resource`, or may not.
    #[must_use]
    pub fn authority(self, resource: impl AsRef<str>, rule: AuthorityRule) -> Self {
        self.rule(resource, rule)
    }

    /// Adds a rule for all inbound calls of the registry together.
    #[must_use]
    pub fn system(mut self, rule: SystemRule) -> Self {
        self.push(None, None, rule.into());
        self
    }

    /// As [`system`](Self::system), under an id.
    #[must_use]
    pub fn system_named(mut self, id: impl Into<Arc<str>>, rule: SystemRule) -> Self {
        self.push(None, Some(id.into()), rule.into());
        self
    }

    /// Adds a rule of any kind for `resource`, or for the resources that it matches. Several rules of one kind hold together.
    #[must_use]
    pub fn rule(mut self, resource: impl AsRef<str>, rule: impl Into<Rule>) -> Self {
        self.push(Some(resource.as_ref()), None, rule.into());
        self
    }

    /// As [`rule`](Self::rule), under an id by which it is [patched](crate::Source::patch), removed, promoted. An id is given
    /// once in a set: to one rule, and to its version in shadow.
    #[must_use]
    pub fn named(
        mut self,
        id: impl Into<Arc<str>>,
        resource: impl AsRef<str>,
        rule: impl Into<Rule>,
    ) -> Self {
        self.push(Some(resource.as_ref()), Some(id.into()), rule.into());
        self
    }

    /// Whether the set holds no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.system.is_empty()
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.groups().map(|group| group.len()).sum()
    }

    /// The rules in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &NamedRule> {
        let mut rules: Vec<_> = self.groups().flat_map(|group| group.iter()).collect();
        rules.sort_by_key(|rule| rule.index);
        rules.into_iter()
    }

    /// The rules for one resource or pattern, as it was given.
    pub fn of(&self, resource: &str) -> &[NamedRule] {
        self.rules.get(&*canonical(resource)).map_or(&[], |rules| rules)
    }

    /// The rules for all inbound calls together.
    pub fn of_system(&self) -> &[NamedRule] {
        &self.system
    }

    /// The rule that is found by `id`: the id that it was given, or its place, as [`NamedRule`] says. The version that is in
    /// shadow is found where there is no other.
    pub fn find(&self, id: &str) -> Option<&NamedRule> {
        self.versions(id).next()
    }

    /// The rules that `id` finds, the enforced version first.
    fn versions(&self, id: &str) -> impl Iterator<Item = &NamedRule> {
        let (id, only_shadow) = match id.strip_suffix(SHADOW) {
            Some(id) => (id, true),
            None => (id, false),
        };
        let is_named = |rule: &&NamedRule| rule.id.as_deref() == Some(id);
        let mut found: Vec<_> = self.groups().flat_map(|group| group.iter()).filter(is_named).collect();
        if found.is_empty() {
            found = self.placed(id);
        }
        found.sort_by_key(|rule| rule.is_shadow());
        found.into_iter().filter(move |rule| rule.is_shadow() || !only_shadow)
    }

    /// The rules at `resource/kind/position`, which have no id.
    fn placed(&self, place: &str) -> Vec<&NamedRule> {
        let Some((rest, position)) = place.rsplit_once('/') else { return vec![] };
        let Ok(position) = position.parse::<usize>() else { return vec![] };
        let (group, kind) = match rest.rsplit_once('/') {
            Some((resource, kind)) => (self.of(resource), kind),
            None => (self.of_system(), rest),
        };
        let is_there = |rule: &&NamedRule| {
            rule.id.is_none() && rule.position == position && rule.rule.kind().name() == kind
        };
        group.iter().filter(is_there).collect()
    }

    /// Takes the rule away that is [found](Self::find) by `id`, and returns it.
    pub fn remove(&mut self, id: &str) -> Option<NamedRule> {
        let rule = self.find(id)?.clone();
        self.replace(&rule, None);
        Some(rule)
    }

    /// The same set with `rule` in the place of `old`, or nothing.
    pub(crate) fn with(&self, old: &NamedRule, rule: Option<Rule>) -> Self {
        let mut set = self.clone();
        set.replace(old, rule);
        set
    }

    /// The same set, where each of two versions of a rule is in the other's mode; or the only one is.
    pub(crate) fn exchanged(&self, standing: Option<&NamedRule>, shadow: Option<&NamedRule>) -> Self {
        let mut set = self.clone();
        let in_mode = |named: &NamedRule, mode| Some(named.rule.clone().with_mode(mode));
        match (standing, shadow) {
            (Some(standing), Some(shadow)) => {
                set.replace(standing, in_mode(shadow, Mode::Enforce));
                set.replace(shadow, in_mode(standing, Mode::Shadow));
            }
            (Some(standing), None) => set.replace(standing, in_mode(standing, Mode::Shadow)),
            (None, Some(shadow)) => set.replace(shadow, in_mode(shadow, Mode::Enforce)),
            (None, None) => {}
        }
        set
    }

    fn replace(&mut self, old: &NamedRule, rule: Option<Rule>) {
        let group = match &old.resource {
            None => Some(&mut self.system),
            Some(resource) => self.rules.get_mut(resource),
        };
        let Some(group) = group else { return };
        let group_rules = Arc::make_mut(group);
        if let Some(place) = group_rules.iter().position(|rule| rule.index == old.index) {
            match rule {
                Some(rule) => group_rules[place].rule = rule,
                None => _ = group_rules.remove(place),
            }
        }
        number(group_rules);
        if let Some(resource) = old.resource.as_ref().filter(|_| group_rules.is_empty()) {
            self.rules.remove(resource);
        }
    }

    /// Puts the rules that `other` has for `resource` in the place of those that this set has.
    pub(crate) fn take_over(&mut self, resource: &str, other: &Self) {
        self.rules.remove(&*canonical(resource));
        for rule in other.of(resource) {
            self.push(Some(resource), rule.id.clone(), rule.rule.clone());
        }
    }

    /// The same set, with what it says in the same way as `other` held by both: so versions that differ in little take little.
    pub(crate) fn sharing(mut self, other: &Self) -> Self {
        let places = |group: &Group| group.iter().map(|rule| rule.index).collect::<Vec<_>>();
        for (name, group) in &mut self.rules {
            if let Some(standing) = other.rules.get(name)
                && group == standing
                && places(group) == places(standing)
            {
                *group = Arc::clone(standing);
            }
        }
        self
    }

    /// The two versions that `id` finds: the one that decides or is off, and the one in shadow.
    pub(crate) fn both_versions(&self, id: &str) -> (Option<&NamedRule>, Option<&NamedRule>) {
        let id = id.strip_suffix(SHADOW).unwrap_or(id);
        let version = |in_shadow| self.versions(id).find(|rule| rule.is_shadow() == in_shadow);
        (version(false), version(true))
    }

    pub(super) fn push(&mut self, resource: Option<&str>, id: Option<Arc<str>>, rule: Rule) {
        let resource: Option<Arc<str>> = resource.map(|resource| canonical(resource).into());
        let group = match &resource {
            None => &mut self.system,
            Some(resource) => self.rules.entry(Arc::clone(resource)).or_default(),
        };
        let group = Arc::make_mut(group);
        let mut new = NamedRule { resource, id, rule, position: 0, index: self.n_added };
        new.position = position(group, &new);
        if group.len() < FEW {
            // Hardly any resource has more, and room for more would be kept for each.
            group.reserve_exact(1);
        }
        group.push(new);
        self.n_added += 1;
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.rules.values().chain([&self.system])
    }

    /// The rules for resources, by what they are for.
    pub(crate) fn by_resource(&self) -> impl Iterator<Item = (&Arc<str>, &Group)> {
        self.rules.iter()
    }

    /// The rules for one resource or pattern, as it is written in the [only way](canonical).
    pub(crate) fn group(&self, resource: &str) -> Option<&Group> {
        self.rules.get(resource)
    }

    /// The groups of this set and of `other`, side by side in the order of what they are for.
    pub(crate) fn beside<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a Arc<str>, Option<&'a Group>, Option<&'a Group>)> {
        let (mut left, mut right) = (self.rules.iter().peekable(), other.rules.iter().peekable());
        std::iter::from_fn(move || {
            let order = match (left.peek(), right.peek()) {
                (Some((one, _)), Some((other, _))) if Arc::ptr_eq(one, other) => Ordering::Equal,
                (Some((one, _)), Some((other, _))) => one.cmp(other),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let one = left.next_if(|_| order.is_le());
            let other = right.next_if(|_| order.is_ge());
            let (name, _) = one.or(other)?;
            Some((name, one.map(|(_, group)| group), other.map(|(_, group)| group)))
        })
    }

    /// What is wrong with the set, beside what no rule can be made with.
    pub(crate) fn check(&self) -> Vec<Rejection> {
        let mut rejections = vec![];
        let mut ids: HashMap<(&str, bool), &NamedRule> = HashMap::new();
        for rule in self.groups().flat_map(|group| group.iter()) {
            if let Some(resource) = rule.resource() {
                // Of a name that is written with backslashes, what counts is the name.
                let name = literally(resource).unwrap_or(Cow::Borrowed(resource));
                if !is_name(&name) {
                    rejections.push(rule.rejection("resource", RuleError::Name { len: name.len() }));
                }
            }
            if rule.rule.kind() == RuleKind::System && rule.resource.is_some() {
                let reason = "a rule of the system is for all inbound calls, and for no resource";
                rejections.push(rule.rejection("resource", reason));
            }
            let Some(id) = rule.id() else { continue };
            if !is_name(id) {
                let reason = format!("an id must have 1 to {NAME_MAX} bytes, and not {}", id.len());
                rejections.push(rule.rejection("id", reason));
            } else if id.ends_with(SHADOW) {
                let reason = format!("`{SHADOW}` at the end of an id says which version of a rule is meant");
                rejections.push(rule.rejection("id", reason));
            } else if !self.placed(id).is_empty() {
                rejections.push(rule.rejection(
                    "id",
                    "another rule of the set, without an id, is found by its place under it",
                ));
            } else if let Some(other) = ids.insert((id, rule.is_shadow()), rule) {
                // The first that was given it may keep it.
                let (first, second) = if other.index < rule.index { (other, rule) } else { (rule, other) };
                ids.insert((id, rule.is_shadow()), first);
                rejections.push(second.rejection("id", "another rule of the set has the same id"));
            }
        }
        for ((id, _), rule) in ids.iter().filter(|((_, is_shadow), _)| *is_shadow) {
            if ids.get(&(*id, false)).is_some_and(|other| !rule.is_version_of(other)) {
                let reason = "a rule and its version in shadow are of one kind and for one resource";
                rejections.push(rule.rejection("id", reason));
            }
        }
        rejections.sort_by_key(Rejection::index);
        rejections
    }
}

/// The place of `new` behind those of its kind.
fn position(before: &[NamedRule], new: &NamedRule) -> usize {
    let is_alike = |rule: &&NamedRule| {
        rule.id.is_none() && rule.rule.kind() == new.rule.kind() && rule.is_shadow() == new.is_shadow()
    };
    let last = || before.iter().rev().find(is_alike);
    if new.id.is_some() { 0 } else { last().map_or(0, |last| last.position + 1) }
}

/// Numbers the rules of a group anew.
fn number(group: &mut [NamedRule]) {
    let mut next = BTreeMap::new();
    for rule in group {
        let next = next.entry((rule.rule.kind(), rule.is_shadow())).or_insert(0);
        rule.position = if rule.id.is_some() { 0 } else { std::mem::replace(next, *next + 1) };
    }
}

/// Whether they say the same of the same. The order of rules plays a part among those of one kind for one resource.
impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        self.rules.len() == other.rules.len()
            && self.groups().zip(other.groups()).all(|(one, other)| are_same(one, other))
    }
}

/// Whether the rules of two groups say the same of the same.
pub(crate) fn are_same(one: &Group, other: &Group) -> bool {
    let in_order = |group: &Group| {
        let mut places: Vec<_> = (0..group.len()).collect();
        places.sort_by_key(|place| {
            let NamedRule { id, rule, position, .. } = &group[*place];
            (rule.kind(), group[*place].is_shadow(), id.clone(), *position)
        });
        places
    };
    let is_pair = |(i, j): (usize, usize)| one[i] == other[j];
    Arc::ptr_eq(one, other)
        || one == other
        || (one.len() == other.len() && in_order(one).into_iter().zip(in_order(other)).all(is_pair))
}
