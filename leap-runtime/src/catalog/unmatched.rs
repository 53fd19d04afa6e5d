//! Rules that are for nobody: most are misspelt.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use super::catalog;
use super::nearest::Candidates;
use crate::registry::Registry;
use crate::rule::pattern::{exactly, is_glob, literally};
use crate::rule::{Cut, NamedRule, OVERFLOW, Relation, Rule};
use crate::rulebook::Chapter;

/// For so many rules it is looked what may be meant: it takes about 10 ms each where 10 000 names are known.
const HINTS: usize = 100;

/// A rule from outside that names a resource which nobody is known to enter: see [`Registry::unmatched_rules`].
#[derive(Clone, Debug, PartialEq)]
pub struct UnmatchedRule {
    source: &'static str,
    rule: NamedRule,
    name: Box<str>,
    is_associated: bool,
    nearest: Option<Box<str>>,
}

/// Rules that are for nobody.
impl Registry {
    /// The rules from outside that name a resource, or a pattern, by which no guarded function of the
    /// [catalogue](catalog) goes, and nothing that was entered here so far. That of another resource which a rule is
    /// [associated](crate::FlowRule::associated) with is looked at too.
    ///
    /// To be asked when everything is loaded, and shown to an operator: such a rule is no mistake where its resource is
    /// [entered](Self::enter) by name and nobody has done so yet, or not since it made room for others. In the order of
    /// the sources, the weakest first, and in that in which the rules stand there. Rules that are off or in shadow are
    /// among them; those of attributes and of the system are not.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Behavior, Blocked, FlowRule, Registry, RuleSet, guarded};
    ///
    /// #[guarded("orders.create")]
    /// fn create() -> Result<(), Blocked> {
    ///     Ok(())
    /// }
    ///
    /// let registry = Registry::new();
    /// let qps = |limit| FlowRule::new(limit, Behavior::Reject);
    /// registry.load(
    ///     RuleSet::new()
    ///         .flow("orders.*", qps(1_000.0)?)
    ///         .named("create", "orders.craete", qps(100.0)?),
    /// )?;
    /// assert_eq!(
    ///     registry.unmatched_rules()[0].to_string(),
    ///     "`create` of loaded: no resource is called `orders.craete`; did you mean `orders.create`?"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unmatched_rules(&self) -> Vec<UnmatchedRule> {
        let book = self.rules().book();
        let known = Known::of(self);
        let mut unmatched: Vec<_> =
            book.sources.iter().flat_map(|chapter| known.unmatched(chapter)).collect();
        for rule in unmatched.iter_mut().take(HINTS) {
            rule.nearest = known.candidates.nearest(&rule.pattern()).map(Box::from);
        }
        unmatched
    }
}

impl UnmatchedRule {
    /// The source of the rule.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The rule, which its source [finds](crate::RuleSet::find) by what this displays.
    pub fn rule(&self) -> &NamedRule {
        &self.rule
    }

    /// The name or pattern that nobody goes by: of the resource that the rule is for, or of the one that it is
    /// associated with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as a pattern, in which a star of its own is none.
    fn pattern(&self) -> Cow<'_, str> {
        if self.is_associated { exactly(&self.name) } else { Cow::Borrowed(&self.name) }
    }

    /// Whether it is the name of the resource that the rule is associated with.
    pub fn is_associated(&self) -> bool {
        self.is_associated
    }

    /// The name of a resource that is entered and may be the one that is meant: little of it is written otherwise, or
    /// it is a path that ends so. It is looked for with the first 100 rules of a list.
    pub fn nearest(&self) -> Option<&str> {
        self.nearest.as_deref()
    }
}

impl fmt::Display for UnmatchedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rule, name) = (self.rule.to_string(), Cut(&self.name));
        write!(f, "`{}` of {}: ", Cut(&rule), Cut(self.source))?;
        let is_glob = is_glob(&self.pattern());
        match (self.is_associated, is_glob) {
            (true, _) => write!(f, "it is associated with `{name}`, which no resource is called")?,
            (false, true) => write!(f, "no resource matches `{name}`")?,
            (false, false) => write!(f, "no resource is called `{name}`")?,
        }
        match self.nearest() {
            Some(near) if is_glob => write!(f, "; did you mean one that matches `{}`?", Cut(near)),
            Some(near) => write!(f, "; did you mean `{}`?", Cut(near)),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for UnmatchedRule {
    /// The rule as the text by which it is found, with what it is for.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let mut unmatched = serializer.serialize_struct("UnmatchedRule", 6)?;
        unmatched.serialize_field("source", self.source)?;
        unmatched.serialize_field("rule", &self.rule.to_string())?;
        unmatched.serialize_field("resource", &self.rule.resource())?;
        unmatched.serialize_field("name", self.name())?;
        unmatched.serialize_field("is_associated", &self.is_associated)?;
        unmatched.serialize_field("nearest", &self.nearest())?;
        unmatched.end()
    }
}

/// The resource that a rule makes room for, if it does for any.
fn associated(rule: &NamedRule) -> Option<&str> {
    match rule.rule() {
        Rule::Flow(rule) => match rule.relation() {
            Relation::Associated(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The names of all that is known to be entered.
struct Known {
    names: BTreeSet<Box<str>>,
    candidates: Candidates,
}

impl Known {
    fn of(registry: &Registry) -> Self {
        let functions = catalog().into_iter().map(|function| function.resource().into());
        // A rule makes the resource that it names; only a call counts there.
        let entered = registry.nodes().into_iter().filter(|resource| resource.node().activity() > 0);
        let names: BTreeSet<Box<str>> =
            functions.chain(entered.map(|resource| Box::from(&**resource.name()))).collect();
        let candidates = Candidates::of(names.iter().map(|name| &**name).filter(|name| !is_shared(name)));
        Self { names, candidates }
    }

    fn has(&self, name: &str) -> bool {
        // What nobody has had to share so far may have to be shared at any time.
        is_shared(name) || self.names.contains(name)
    }

    /// Those of a source that are for nobody.
    fn unmatched(&self, chapter: &Chapter) -> Vec<UnmatchedRule> {
        let globs: BTreeSet<&str> =
            self.names.iter().flat_map(|name| chapter.globs.matching(name)).map(|glob| &**glob).collect();
        let is_for_some = |pattern: &str| match literally(pattern) {
            Some(name) => self.has(&name),
            None => globs.contains(pattern),
        };
        let mut unmatched = vec![];
        for rule in chapter.rules.iter() {
            let mut push = |name: &str, is_associated| {
                let (source, rule, name) = (chapter.source, rule.clone(), name.into());
                unmatched.push(UnmatchedRule { source, rule, name, is_associated, nearest: None });
            };
            if let Some(pattern) = rule.resource().filter(|pattern| !is_for_some(pattern)) {
                push(pattern, false);
            }
            if let Some(name) = associated(rule).filter(|name| !self.has(name)) {
                push(name, true);
            }
        }
        unmatched
    }
}

/// Whether several names share that resource, or none can be called so.
fn is_shared(name: &str) -> bool {
    name.starts_with(OVERFLOW)
}
