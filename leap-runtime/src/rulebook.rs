//! All rules from outside, and which of them hold for a resource.
//!
//! Rules come from [sources](crate::Source), of which the later ones are stronger. For one resource and one kind of rule, of
//! each source those for the exact name hold, else those of the most specific pattern that has any; and of the sources the
//! strongest that has any. Rules in shadow replace none but others in shadow, and are replaced like all: they are there where
//! they would hold if they were enforced.

use std::sync::{Arc, LazyLock};

use crate::rule::pattern::{Globs, exactly, is_glob, more_specific_first};
use crate::rule::{
    Dimension, Mode, NamedRule, Rule, RuleChange, RuleId, RuleKind, RuleSet, SystemRule, are_same, changes,
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
    pub(crate) globs: Globs,
}

impl Chapter {
    pub(crate) fn new(source: &'static str, rules: RuleSet) -> Self {
        let globs = Globs::of(rules.by_resource().map(|(pattern, _)| pattern));
        Self { source, rules, globs }
    }

    /// The groups of rules for a resource, the most specific first.
    fn groups_for<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a [NamedRule]> {
        let exact = self.rules.group(&exactly(resource));
        let globs = self.globs.matching(resource).into_iter().filter_map(|glob| self.rules.group(glob));
        exact.into_iter().chain(globs).map(|group| group.as_slice())
    }

    /// The rules that hold for a resource as far as this source has a say: for each kind those of the most specific group
    /// that has any. A rule in shadow is there where it would hold if it were enforced.
    fn rules_for<'a>(&'a self, resource: &'a str) -> Vec<&'a NamedRule> {
        let mut rules: Vec<&NamedRule> = vec![];
        // The kinds that more specific groups have rules of, and whether those are in shadow.
        let mut taken: Vec<(RuleKind, bool)> = vec![];
        for group in self.groups_for(resource) {
            let n_before = rules.len();
            rules.extend(group.iter().filter(|rule| {
                !taken
                    .iter()
                    .any(|(kind, is_shadow)| *kind == rule.rule().kind() && (!is_shadow || rule.is_shadow()))
            }));
            taken.extend(rules[n_before..].iter().map(|rule| (rule.rule().kind(), rule.is_shadow())));
            taken.sort_unstable();
            taken.dedup();
        }
        rules
    }
}

impl Rulebook {
    /// The rules of the source of that name.
    pub(crate) fn of(&self, source: &str) -> Option<&Arc<Chapter>> {
        self.sources.iter().find(|chapter| chapter.source == source)
    }

    /// The rules of the source of that name, or none.
    pub(crate) fn rules_of(&self, source: &str) -> &RuleSet {
        static NONE: LazyLock<RuleSet> = LazyLock::new(RuleSet::new);
        self.of(source).map_or(&NONE, |chapter| &chapter.rules)
    }

    /// The same rules but for those of one source, as the next version. A source that is new is the strongest.
    pub(crate) fn with(&self, chapter: Arc<Chapter>) -> Self {
        let mut sources = self.sources.clone();
        match sources.iter_mut().find(|standing| standing.source == chapter.source) {
            Some(place) => *place = chapter,
            None => sources.push(chapter),
        }
        Self { version: self.version + 1, sources }
    }

    /// The rules from outside that hold for a resource, those of weaker sources first.
    pub(crate) fn rules_for(&self, resource: &str) -> Vec<(RuleId, Rule)> {
        let holding = self.holding(resource);
        holding.into_iter().map(|(source, named)| (named.rule_id(source), named.rule().clone())).collect()
    }

    fn holding<'a>(&'a self, resource: &'a str) -> Vec<(&'static str, &'a NamedRule)> {
        let mut rules: Vec<(&'static str, &NamedRule)> = vec![];
        for chapter in &self.sources {
            let stronger = chapter.rules_for(resource);
            let mut replaced: Vec<_> =
                stronger.iter().filter(|rule| !rule.is_shadow()).map(|rule| rule.rule().kind()).collect();
            replaced.sort_unstable();
            replaced.dedup();
            rules.retain(|(_, rule)| !replaced.contains(&rule.rule().kind()));
            rules.extend(stronger.into_iter().map(|rule| (chapter.source, rule)));
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

    /// Whether any rule is for exactly this resource.
    pub(crate) fn names(&self, resource: &str) -> bool {
        let exact = exactly(resource);
        self.sources.iter().any(|chapter| chapter.rules.group(&exact).is_some())
    }

    /// The patterns of more than one name by which rules hold for a resource, the most specific first. Those whose rules are
    /// all replaced are not among them: so there are at most as many as kinds of rules, shadows for themselves, and sources.
    pub(crate) fn globs_for(&self, resource: &str) -> Vec<Arc<str>> {
        let holding = self.holding(resource);
        let patterns = holding.into_iter().filter_map(|(_, named)| named.resource.as_ref());
        let mut globs: Vec<_> = patterns.filter(|pattern| is_glob(pattern)).cloned().collect();
        globs.sort_by(|one, other| more_specific_first(one, other));
        globs.dedup();
        globs
    }

    /// The names and patterns whose rules are others than they were `before`.
    pub(crate) fn touched_since(&self, before: &Self) -> Vec<Arc<str>> {
        let mut touched = vec![];
        for (_, before, after) in
            self.beside(before).filter(|(_, before, after)| !std::ptr::eq(*before, *after))
        {
            let is_same = |(before, after)| are_same(before, after);
            let groups = before.beside(after).filter(|(_, one, other)| !one.zip(*other).is_some_and(is_same));
            touched.extend(groups.map(|(name, ..)| Arc::clone(name)));
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// What differs from `before`, source by source, and how many rules do not.
    pub(crate) fn changes_since(&self, before: &Self) -> (Vec<RuleChange>, usize) {
        let (mut all, mut n_kept) = (vec![], 0);
        for (source, before, after) in self.beside(before) {
            let (changes, kept) = changes(source, before, after);
            all.extend(changes);
            n_kept += kept;
        }
        (all, n_kept)
    }

    /// The rules of each source, before and now.
    fn beside<'a>(
        &'a self,
        before: &'a Self,
    ) -> impl Iterator<Item = (&'static str, &'a RuleSet, &'a RuleSet)> {
        let gone = before.sources.iter().filter(|chapter| self.of(chapter.source).is_none());
        let sources = self.sources.iter().chain(gone).map(|chapter| chapter.source);
        sources.map(|source| (source, before.rules_of(source), self.rules_of(source)))
    }
}
