//! Limits on calls in flight.

use std::fmt;

use super::Mode;

/// At most so many calls (counted in permits) in flight at once; further ones are blocked.
///
/// # Examples
///
/// ```
/// use leap_runtime::IsolationRule;
///
/// assert_eq!(IsolationRule::new(32).to_string(), "isolation: at most 32 in flight");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolationRule {
    max_concurrency: u32,
    mode: Mode,
}

impl IsolationRule {
    /// Allows `max_concurrency` permits in flight; 0 blocks every call.
    pub const fn new(max_concurrency: u32) -> Self {
        Self { max_concurrency, mode: Mode::Enforce }
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The permits that may be in flight at once.
    pub const fn max_concurrency(&self) -> u32 {
        self.max_concurrency
    }

    /// Whether the rule decides.
    pub const fn mode(&self) -> Mode {
        self.mode
    }
}

impl fmt::Display for IsolationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "isolation: at most {} in flight", self.max_concurrency)
    }
}
