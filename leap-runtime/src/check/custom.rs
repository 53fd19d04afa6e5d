//! Checks of the application's own, at work on one resource.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::call::Check;
use crate::rule::{RuleId, RuleKind};

/// A check that was added to the resources whose names a pattern matches.
#[derive(Clone)]
pub(crate) struct Custom {
    /// Tells it apart from all others of its registry.
    pub(crate) number: u64,
    pub(crate) id: RuleId,
    pattern: Arc<str>,
    pub(crate) check: Arc<dyn Check>,
}

impl Custom {
    pub(crate) fn new(number: u64, pattern: &str, check: Arc<dyn Check>) -> Self {
        let position = usize::try_from(number).unwrap_or(usize::MAX);
        Self { number, id: RuleId::new(None, RuleKind::Custom, position), pattern: pattern.into(), check }
    }

    /// Whether the check is for the resource called `name`.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        matches(&self.pattern, name)
    }
}

/// Panics in a check are contained where it is called; what one leaves in itself is its own business.
impl UnwindSafe for Custom {}
impl RefUnwindSafe for Custom {}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("id", &self.id).field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

/// Whether `name` is what `pattern` says, where `*` stands for any text, also none.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    // Each part as early as it can be, which leaves the most for those behind it.
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text_and_everything_else_for_itself() {
        for (pattern, name) in [
            ("orders.create", "orders.create"),
            ("orders.*", "orders.create"),
            ("orders.*", "orders."),
            ("*", ""),
            ("*", "anything"),
            ("*.create", "orders.create"),
            ("a*b*c", "a-b-b-c"),
            ("a*b*c", "abc"),
            ("a**c", "ac"),
            ("*ab", "aab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("orders.create", "orders.created"),
            ("orders.*", "order"),
            ("*.create", "orders.created"),
            ("a*b*c", "acb"),
            ("a*a", "a"),
            ("", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
