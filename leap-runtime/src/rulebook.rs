//! All rules from outside, and which of them hold for a resource.
//!
//! Rules come from [sources](crate::Source), of which the later ones are stronger. For one resource and one kind of rule, of
//! each source those for the exact name hold, else those of the most specific pattern that has any; and of the sources the
//! strongest that has any. Rules in shadow replace none but others in shadow, and are replaced like all: they are there where
//! they would hold if they were enforced.

use std::sync::Arc;

use crate::rule::pattern::{exactly, is_glob, matches, more_specific_first};
use crate::rule::{
    Dimension, Mode, NamedRule, Rule, RuleChange, RuleId, RuleSet, SystemRule, are_same, changes,
};

/// The rules of all sources, the weakest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rulebook {
    pub(crate) version: u64,
    pub(crate) sources: Vec<Arc<Chapter>>,
}

/// The rules of one source.
#[derive(Debug, Default)]
pub(crate) struct Chapter {
    pub(crate) source: &'static str,
    pub(crate) rules: RuleSet,
    /// The patterns that stand for more than one name, the most specific first.
    globs: Vec<Arc<str>>,
}

impl Chapter {
    pub(crate) fn new(source: &'static str, rules: RuleSet) -> Self {
        let mut globs: Vec<_> = rules
            .by_resource()
            .map(|(pattern, _)| pattern)
            .filter(|pattern| is_glob(pattern))
            .cloned()
            .collect();
        globs.sort_by(|one, other| more_specific_first(one, other));
        Self { source, rules, globs }
    }

    /// The groups of rules for a resource, the most specific first.
    fn groups_for<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a [NamedRule]> {
        let exact = self.rules.group(&exactly(resource));
        let globs = self.globs.iter().filter(|glob| matches(glob, resource));
        exact.into_iter().chain(globs.filter_map(|glob| self.rules.group(glob))).map(|group| group.as_slice())
    }

    /// The rules that hold for a resource as far as this source has a say: for each kind those of the most specific group
    /// that has any. A rule in shadow is there where it would hold if it were enforced.
    fn rules_for<'a>(&'a self, resource: &'a str) -> Vec<&'a NamedRule> {
        let mut rules: Vec<&NamedRule> = vec![];
        for group in self.groups_for(resource) {
            let n_before = rules.len();
            let is_replaced = |rule: &&NamedRule| {
                let more_specific = &rules[..n_before];
                !more_specific.iter().any(|other| {
                    other.rule().kind() == rule.rule().kind() && (!other.is_shadow() || rule.is_shadow())
                })
            };
            let new: Vec<_> = group.iter().filter(is_replaced).collect();
            rules.extend(new);
        }
        rules
    }
}

impl Rulebook {
    /// The rules of the source of that name.
    pub(crate) fn of(&self, source: &str) -> Option<&Arc<Chapter>> {
        self.sources.iter().find(|chapter| chapter.source == source)
    }

    /// The same rules but for those of one source, as the next version. A source that is new is the strongest.
    pub(crate) fn with(&self, source: &'static str, rules: RuleSet) -> Self {
        let chapter = Arc::new(Chapter::new(source, rules));
        let mut sources = self.sources.clone();
        match sources.iter_mut().find(|chapter| chapter.source == source) {
            Some(place) => *place = chapter,
            None => sources.push(chapter),
        }
        Self { version: self.version + 1, sources }
    }

    /// The rules from outside that hold for a resource, those of weaker sources first.
    pub(crate) fn rules_for(&self, resource: &str) -> Vec<(RuleId, Rule)> {
        let mut rules: Vec<(RuleId, Rule)> = vec![];
        for chapter in &self.sources {
            let stronger = chapter.rules_for(resource);
            rules.retain(|(_, rule)| {
                !stronger
                    .iter()
                    .any(|stronger| !stronger.is_shadow() && stronger.rule().kind() == rule.kind())
            });
            rules
                .extend(stronger.into_iter().map(|rule| (rule.rule_id(chapter.source), rule.rule().clone())));
        }
        rules
    }

    /// The rules of the system: of each dimension those of the strongest source that has any.
    pub(crate) fn of_system(&self) -> Vec<(RuleId, SystemRule)> {
        let mut rules: Vec<(RuleId, SystemRule)> = vec![];
        for chapter in &self.sources {
            let stronger: Vec<_> = chapter
                .rules
                .of_system()
                .iter()
                .filter_map(|named| match named.rule() {
                    Rule::System(rule) => Some((named.rule_id(chapter.source), rule.clone())),
                    _ => None,
                })
                .collect();
            let replaced: Vec<Dimension> = stronger
                .iter()
                .filter(|(_, rule)| rule.mode() != Mode::Shadow)
                .map(|(_, rule)| rule.dimension())
                .collect();
            rules.retain(|(_, rule)| !replaced.contains(&rule.dimension()));
            rules.extend(stronger);
        }
        rules
    }

    /// The patterns of more than one name by which rules hold for a resource, the most specific first.
    pub(crate) fn globs_for(&self, resource: &str) -> Vec<Arc<str>> {
        let globs = self.sources.iter().flat_map(|chapter| &chapter.globs);
        let mut globs: Vec<_> = globs.filter(|glob| matches(glob, resource)).cloned().collect();
        globs.sort_by(|one, other| more_specific_first(one, other));
        globs.dedup();
        globs
    }

    /// The names and patterns whose rules are others than they were `before`.
    pub(crate) fn touched_since(&self, before: &Self) -> Vec<Arc<str>> {
        let mut touched = vec![];
        for (_, one, other) in self.beside(before) {
            if let (Some(one), Some(other)) = (one, other)
                && Arc::ptr_eq(one, other)
            {
                continue;
            }
            for (these, those) in [(one, other), (other, one)] {
                for (name, rules) in these.iter().flat_map(|chapter| chapter.rules.by_resource()) {
                    let there = those.and_then(|chapter| chapter.rules.group(name));
                    if !there.is_some_and(|there| are_same(rules, there)) {
                        touched.push(Arc::clone(name));
                    }
                }
            }
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// What differs from `before`, source by source, and how many rules do not.
    pub(crate) fn changes_since(&self, before: &Self) -> (Vec<RuleChange>, usize) {
        let none = RuleSet::new();
        let (mut all, mut n_kept) = (vec![], 0);
        for (source, one, other) in self.beside(before) {
            let [one, other] = [one, other].map(|chapter| chapter.map_or(&none, |chapter| &chapter.rules));
            let (changes, kept) = changes(source, one, other);
            all.extend(changes);
            n_kept += kept;
        }
        (all, n_kept)
    }

    /// The chapters of each source, before and now.
    fn beside<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (&'static str, Option<&'a Arc<Chapter>>, Option<&'a Arc<Chapter>>)> {
        let gone = before.sources.iter().filter(|chapter| self.of(chapter.source).is_none());
        let sources = self.sources.iter().chain(gone).map(|chapter| chapter.source);
        sources.map(|source| (source, before.of(source), self.of(source)))
    }
}
