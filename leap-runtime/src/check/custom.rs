//! Checks of the application's own, at work on one resource.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::call::Check;
use crate::rule::pattern::matches;
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
