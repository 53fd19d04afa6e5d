//! Who may call: lists of origins.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::{Mode, RuleError, is_name};

/// Lets calls of some origins through and turns others away.
///
/// An origin is compared as it is: whole, and upper and lower case are different. A call without an origin passes any
/// such rule, as with Sentinel. Where several stand on a resource, all must agree.
///
/// # Examples
///
/// ```
/// use leap_runtime::{AuthorityRule, RuleError};
///
/// let rule = AuthorityRule::allow(["web", "mobile"])?;
/// assert_eq!(rule.to_string(), "authority: only web, mobile");
/// assert!(rule.admits(Some("web")) && !rule.admits(Some("batch")) && rule.admits(None));
/// assert_eq!(AuthorityRule::deny(["batch", ""]), Err(RuleError::Origin { position: 1, len: 0 }));
/// # Ok::<(), RuleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AuthorityRule {
    list: List,
    origins: Origins,
    mode: Mode,
}

/// What becomes of the origins in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Allowed,
    Denied,
}

/// An attribute's list stands in a constant, any other is shared by the clones of its rule.
#[derive(Clone, Debug)]
enum Origins {
    Static(&'static [&'static str]),
    Shared(Arc<[Cow<'static, str>]>),
}

impl Origins {
    /// The list, if everybody in it can be somebody.
    fn checked<S: Into<Cow<'static, str>>>(origins: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        let origins: Arc<[Cow<'static, str>]> = origins.into_iter().map(Into::into).collect();
        match origins.iter().position(|origin| !is_name(origin)) {
            Some(position) => Err(RuleError::Origin { position, len: origins[position].len() }),
            None if origins.is_empty() => Err(RuleError::NoOrigins),
            None => Ok(Self::Shared(origins)),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let (fixed, shared): (&[&str], &[Cow<str>]) = match self {
            Self::Static(fixed) => (fixed, &[]),
            Self::Shared(shared) => (&[], shared),
        };
        fixed.iter().copied().chain(shared.iter().map(AsRef::as_ref))
    }
}

impl AuthorityRule {
    /// Of the calls that have an origin, lets those of these through and no others. A call without an origin passes.
    ///
    /// # Errors
    ///
    /// An empty list, an empty name, or a name of over 1 KiB.
    pub fn allow<S: Into<Cow<'static, str>>>(
        origins: impl IntoIterator<Item = S>,
    ) -> Result<Self, RuleError> {
        Ok(Self { list: List::Allowed, origins: Origins::checked(origins)?, mode: Mode::Enforce })
    }

    /// Turns calls of these origins away, and no others. A call without an origin passes.
    ///
    /// # Errors
    ///
    /// An empty list, an empty name, or a name of over 1 KiB.
    pub fn deny<S: Into<Cow<'static, str>>>(origins: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        Ok(Self { list: List::Denied, origins: Origins::checked(origins)?, mode: Mode::Enforce })
    }

    /// As [`allow`](Self::allow), of a list that [`check`](Self::check) found to be right.
    pub(crate) const fn allow_static(origins: &'static [&'static str], mode: Mode) -> Self {
        Self { list: List::Allowed, origins: Origins::Static(origins), mode }
    }

    /// As [`deny`](Self::deny), of a list that [`check`](Self::check) found to be right.
    pub(crate) const fn deny_static(origins: &'static [&'static str], mode: Mode) -> Self {
        Self { list: List::Denied, origins: Origins::Static(origins), mode }
    }

    /// What is wrong with a list, in constants.
    pub(crate) const fn check(origins: &[&str]) -> Result<(), RuleError> {
        if origins.is_empty() {
            return Err(RuleError::NoOrigins);
        }
        let mut position = 0;
        while position < origins.len() {
            if !is_name(origins[position]) {
                return Err(RuleError::Origin { position, len: origins[position].len() });
            }
            position += 1;
        }
        Ok(())
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The origins in the list, as given.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        self.origins.iter()
    }

    /// Whether the list says who may call, and not who may not.
    pub const fn is_allow_list(&self) -> bool {
        matches!(self.list, List::Allowed)
    }

    /// Whether the rule lets calls of this origin through, by reading its list from the start.
    pub fn admits(&self, origin: Option<&str>) -> bool {
        origin.is_none_or(|origin| self.origins().any(|listed| listed == origin) == self.is_allow_list())
    }

    /// Whether the rule decides.
    pub const fn mode(&self) -> Mode {
        self.mode
    }
}

/// Rules are equal if they say the same, wherever their lists stand.
impl PartialEq for AuthorityRule {
    fn eq(&self, other: &Self) -> bool {
        (self.list, self.mode) == (other.list, other.mode) && self.origins().eq(other.origins())
    }
}

impl Eq for AuthorityRule {}

impl fmt::Display for AuthorityRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More would hide the rest of a report.
        const SHOWN: usize = 8;
        f.write_str(if self.is_allow_list() { "authority: only " } else { "authority: not " })?;
        for (i, origin) in self.origins().take(SHOWN).enumerate() {
            write!(f, "{}{origin}", if i == 0 { "" } else { ", " })?;
        }
        match self.origins().count().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_at_least_one_origin_and_each_by_a_name_it_can_have() {
        let long = "x".repeat(1_025);
        for make in [AuthorityRule::allow::<String> as fn(Vec<String>) -> _, AuthorityRule::deny] {
            assert!(make(vec!["a".into(), "x".repeat(1_024)]).is_ok());
            assert_eq!(make(vec![]), Err(RuleError::NoOrigins));
            assert_eq!(make(vec!["a".into(), String::new()]), Err(RuleError::Origin { position: 1, len: 0 }));
            assert_eq!(make(vec![long.clone()]), Err(RuleError::Origin { position: 0, len: 1_025 }));
        }
        assert_eq!(AuthorityRule::check(&[]), Err(RuleError::NoOrigins));
        assert_eq!(AuthorityRule::check(&["a", ""]), Err(RuleError::Origin { position: 1, len: 0 }));
        assert_eq!(AuthorityRule::check(&["a"]), Ok(()));
    }

    #[test]
    fn a_rule_of_a_constant_equals_one_made_at_run_time() {
        const RULE: AuthorityRule = AuthorityRule::deny_static(&["a", "b"], Mode::Enforce);
        assert_eq!(RULE, AuthorityRule::deny(["a", "b"]).unwrap());
        assert_ne!(RULE, AuthorityRule::allow(["a", "b"]).unwrap());
        assert_ne!(RULE, AuthorityRule::deny(["b", "a"]).unwrap());
    }

    #[test]
    fn a_long_list_is_shown_by_its_start() {
        let rule = AuthorityRule::deny((0..10).map(|i| i.to_string())).unwrap();
        assert_eq!(rule.to_string(), "authority: not 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
