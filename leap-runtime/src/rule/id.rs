//! What a rule is called.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::RuleKind;

/// Which rule of a resource: where it comes from, and what it is called there, or its kind and its place among those of
/// its kind.
///
/// A rule that keeps its id over a reload keeps its live state.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RuleId {
    from: From,
    is_of_attribute: bool,
    kind: RuleKind,
    position: u16,
}

/// The name of a source, for ever. There are few, and each is kept once.
pub(crate) fn source_name(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(Box::from(name));
    names.insert(name);
    name
}

/// Most rules are told apart by words that live for ever. So nothing is counted when their calls are blocked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum From {
    /// A function or a source.
    Place(&'static str),
    Named(Arc<Named>),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Named {
    source: &'static str,
    name: Name,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Name {
    Given(Box<str>),
    /// The glob that the rule is for.
    Pattern(Box<str>),
}

impl RuleId {
    /// The id of a rule that is told by its place: of the attribute of `function`, or else of what was
    /// [loaded](super::LOADED).
    pub(crate) const fn new(function: Option<&'static str>, kind: RuleKind, position: usize) -> Self {
        let (place, is_of_attribute) = match function {
            Some(function) => (function, true),
            None => (super::LOADED, false),
        };
        Self { from: From::Place(place), is_of_attribute, kind, position: place_of(position) }
    }

    /// The id of a rule that `source` gives a resource by its name.
    pub(crate) const fn of_source(source: &'static str, kind: RuleKind, position: usize) -> Self {
        Self { from: From::Place(source), is_of_attribute: false, kind, position: place_of(position) }
    }

    /// The id of a rule that `source` gives all resources that `pattern` matches.
    pub(crate) fn of_pattern(source: &'static str, pattern: &str, kind: RuleKind, position: usize) -> Self {
        let name = Name::Pattern(pattern.into());
        let from = From::Named(Arc::new(Named { source, name }));
        Self { from, is_of_attribute: false, kind, position: place_of(position) }
    }

    /// The id of a rule that was given one.
    pub(crate) fn given(source: &'static str, id: &str, kind: RuleKind) -> Self {
        let from = From::Named(Arc::new(Named { source, name: Name::Given(id.into()) }));
        Self { from, is_of_attribute: false, kind, position: 0 }
    }

    /// The same id, with the reason that a check of the application's own gave in the place of a function.
    pub(crate) fn with_reason(self, reason: &'static str) -> Self {
        Self { from: From::Place(reason), is_of_attribute: true, ..self }
    }

    /// The id as it was before a [reason](Self::with_reason).
    pub(crate) fn without_reason(&self) -> Self {
        match self.kind {
            RuleKind::Custom => Self::new(None, self.kind, self.position.into()),
            _ => self.clone(),
        }
    }

    /// The path of the function whose attribute gave the rule; none for any other rule.
    pub fn function(&self) -> Option<&'static str> {
        match self.from {
            From::Place(function) if self.is_of_attribute => Some(function),
            _ => None,
        }
    }

    /// The [source](crate::Source) of the rule; none for that of an attribute.
    pub fn source(&self) -> Option<&'static str> {
        match &self.from {
            From::Place(source) => (!self.is_of_attribute).then_some(source),
            From::Named(named) => Some(named.source),
        }
    }

    /// The id that the rule was given; none where it is told by its place.
    pub fn given_id(&self) -> Option<&str> {
        match &self.from {
            From::Named(named) => match &named.name {
                Name::Given(id) => Some(id),
                Name::Pattern(_) => None,
            },
            From::Place(_) => None,
        }
    }

    /// The kind of the rule.
    pub const fn kind(&self) -> RuleKind {
        self.kind
    }

    /// Its place among the rules of its kind for the same resource from the same source, counted from 0; 0 for a rule that
    /// was given an id.
    pub const fn position(&self) -> u16 {
        self.position
    }
}

/// A resource with more rules of a kind than that has the rest share the last place.
const fn place_of(position: usize) -> u16 {
    if position < u16::MAX as usize {
        #[expect(clippy::cast_possible_truncation, reason = "compared")]
        return position as u16;
    }
    u16::MAX
}

impl fmt::Display for RuleId {
    /// `shop::create/flow/0` for a rule of an attribute, `loaded/flow/0` for a loaded one, `loaded/orders.*/flow/0` for one
    /// of many resources, `loaded/create-limit` for one that was given an id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, kind, position, .. } = self;
        match from {
            From::Place(place) => write!(f, "{place}/{}/{position}", kind.name()),
            From::Named(named) => match &named.name {
                Name::Given(id) => write!(f, "{}/{id}", named.source),
                Name::Pattern(pattern) => {
                    write!(f, "{}/{pattern}/{}/{position}", named.source, kind.name())
                }
            },
        }
    }
}

impl fmt::Debug for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuleId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_where_a_rule_comes_from_and_what_it_is_called_there() {
        let ids = [
            RuleId::new(Some("shop::create"), RuleKind::Flow, 1),
            RuleId::new(None, RuleKind::ErrorRatio, 0),
            RuleId::of_source("limits.toml", RuleKind::Hot, 2),
            RuleId::of_pattern("limits.toml", "orders.*", RuleKind::Flow, 0),
            RuleId::given("limits.toml", "create-limit", RuleKind::Flow),
        ];
        assert_eq!(
            ids.each_ref().map(ToString::to_string),
            [
                "shop::create/flow/1",
                "loaded/error_ratio/0",
                "limits.toml/hot/2",
                "limits.toml/orders.*/flow/0",
                "limits.toml/create-limit",
            ]
        );
        assert_eq!(
            ids.each_ref().map(|id| (id.function(), id.source(), id.given_id())),
            [
                (Some("shop::create"), None, None),
                (None, Some("loaded"), None),
                (None, Some("limits.toml"), None),
                (None, Some("limits.toml"), None),
                (None, Some("limits.toml"), Some("create-limit")),
            ]
        );
    }

    #[test]
    fn an_id_is_as_small_as_two_words_and_its_place() {
        assert_eq!(size_of::<RuleId>(), 24);
    }

    #[test]
    fn more_rules_of_a_kind_than_places_share_the_last_one() {
        assert_eq!(RuleId::new(None, RuleKind::Flow, 65_535).position(), 65_535);
        assert_eq!(RuleId::new(None, RuleKind::Flow, 65_536).position(), 65_535);
    }
}
