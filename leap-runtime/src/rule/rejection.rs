//! Why rules are not loaded.

use std::error::Error;
use std::fmt::{self, Write};

/// What is wrong with one rule of a set.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, LoadError, Registry, RuleSet};
///
/// let rules = RuleSet::new().flow("", FlowRule::new(100.0, Behavior::Reject)?);
/// let Err(LoadError::Rejected(rejections)) = Registry::new().load(rules) else { panic!() };
/// assert_eq!((rejections[0].index(), rejections[0].field()), (Some(0), Some("resource")));
/// assert_eq!(rejections[0].to_string(), "rule 0: `resource`: a name must not be empty");
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Rejection {
    pub(crate) index: Option<usize>,
    pub(crate) id: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) field: Option<String>,
    pub(crate) reason: String,
}

impl Rejection {
    /// The place of the rule in the set, counted from 0; none where no rule of the set is to blame.
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// The id that the rule was given.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The resource, or the pattern of resources, that the rule is for.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// The word of the rule that is wrong; none where it is the whole rule.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// What is wrong with it, and what would be right.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether it is no mistake, but says that there are more than are told.
    fn is_end(&self) -> bool {
        self.reason == MORE
    }
}

/// Stands in the place of all mistakes in data behind the first.
pub(crate) const MORE: &str = "there are more mistakes: the first 100 are told";
/// The mistakes that one message shows.
pub(crate) const SHOWN: usize = 20;

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, id, resource, field, reason } = self;
        match (index, field) {
            (Some(index), _) => write!(f, "rule {index}")?,
            // Of a rule that stands alone, or of what is around the rules.
            (None, Some(field)) => return write!(f, "`{}`: {reason}", Cut(field)),
            (None, None) if self.is_end() => return f.write_str(reason),
            (None, None) => f.write_str("the set")?,
        }
        if let Some(id) = id {
            write!(f, " `{}`", Cut(id))?;
        }
        if let Some(resource) = resource.as_deref().filter(|resource| !resource.is_empty()) {
            write!(f, " of `{}`", Cut(resource))?;
        }
        if let Some(field) = field {
            write!(f, ": `{}`", Cut(field))?;
        }
        write!(f, ": {reason}")
    }
}

/// Text from outside: on one line, and cut short where it is long.
pub(crate) struct Cut<'a>(pub(crate) &'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cut(f, self.0, 64)
    }
}

/// Writes the first letters of a text, and what a terminal would obey instead of showing it as an escape.
pub(crate) fn write_cut(f: &mut fmt::Formatter<'_>, text: &str, most: usize) -> fmt::Result {
    let mut letters = text.chars();
    for letter in letters.by_ref().take(most) {
        match letter {
            // The latter two end a line or turn the direction of writing.
            letter if letter.is_control() => write!(f, "{}", letter.escape_debug())?,
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => write!(f, "{}", letter.escape_debug())?,
            letter => f.write_char(letter)?,
        }
    }
    f.write_str(if letters.next().is_some() { "…" } else { "" })
}

/// Why a change of the rules was refused. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// What is wrong with the rules: everything, in their order. Of data it is the first 100 mistakes; behind these a last
    /// one says that there are more. A message shows 20.
    Rejected(Vec<Rejection>),
    /// Somebody else has changed the rules since.
    Conflict {
        /// The version that was to be there.
        expected: u64,
        /// The version that is there.
        found: u64,
    },
    /// There is no rule of that id.
    UnknownRule(String),
    /// There is no such version, or it is too old to be kept.
    UnknownVersion(u64),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejections) => {
                f.write_str("the rules are not loaded")?;
                match &rejections[..] {
                    [rejection] => write!(f, ": {rejection}"),
                    rejections => {
                        f.write_str(":")?;
                        let shown = rejections.iter().take(SHOWN);
                        shown.clone().try_for_each(|rejection| write!(f, "\n  {rejection}"))?;
                        And { rest: &rejections[shown.len()..], before: "\n  " }.fmt(f)
                    }
                }
            }
            Self::Conflict { expected, found } => {
                write!(f, "the rules were to be changed at version {expected}, and are at version {found}")
            }
            Self::UnknownRule(id) => write!(f, "there is no rule `{}`", Cut(id)),
            Self::UnknownVersion(version) => {
                write!(f, "there is no version {version}, or it is not kept any more")
            }
        }
    }
}

impl Error for LoadError {}

/// How many there are behind those that are shown, if any.
pub(crate) struct And<'a> {
    pub(crate) rest: &'a [Rejection],
    pub(crate) before: &'static str,
}

impl fmt::Display for And<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rest, before } = self;
        match rest {
            [] => Ok(()),
            [told @ .., end] if end.is_end() => write!(f, "{before}and more than {} more", told.len()),
            rest => write!(f, "{before}and {} more", rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_says_which_rule_which_field_and_why() {
        let whole = Rejection {
            index: Some(3),
            id: Some("create-limit".into()),
            resource: Some("orders.create".into()),
            field: Some("qps".into()),
            reason: "it must not be negative".into(),
        };
        assert_eq!(
            whole.to_string(),
            "rule 3 `create-limit` of `orders.create`: `qps`: it must not be negative"
        );
        let alone = Rejection { index: None, id: None, resource: None, ..whole.clone() };
        assert_eq!(alone.to_string(), "`qps`: it must not be negative");
        let bare = Rejection { reason: "no list of rules".into(), ..Rejection::default() };
        assert_eq!(bare.to_string(), "the set: no list of rules");
        assert_eq!(
            LoadError::Rejected(vec![bare.clone()]).to_string(),
            "the rules are not loaded: the set: no list of rules"
        );
        assert_eq!(
            LoadError::Rejected(vec![whole, bare]).to_string(),
            "the rules are not loaded:\n  rule 3 `create-limit` of `orders.create`: `qps`: it must not be negative\n  the \
             set: no list of rules"
        );
    }

    #[test]
    fn a_long_name_is_cut_short() {
        let name = "ä".repeat(1_000_000);
        let rejection = Rejection { resource: Some(name), reason: "too long".into(), ..Rejection::default() };
        assert_eq!(rejection.to_string(), format!("the set of `{}…`: too long", "ä".repeat(64)));
    }

    #[test]
    fn a_name_cannot_end_a_line_or_command_a_terminal() {
        assert_eq!(Cut("a\n\u{1b}[31m\u{7}\u{202e}").to_string(), "a\\n\\u{1b}[31m\\u{7}\\u{202e}");
        assert_eq!(Cut("a\u{301} 'b' \\* ü").to_string(), "a\u{301} 'b' \\* ü", "all else stays as it is");
        assert_eq!(Cut(&"\n".repeat(1_000)).to_string(), format!("{}…", "\\n".repeat(64)));
        let name = Some("a\n  rule 7: `qps`: forged".to_owned());
        let rejection = Rejection {
            index: Some(3),
            id: name.clone(),
            resource: name.clone(),
            field: name,
            reason: "wrong".into(),
        };
        assert!(!rejection.to_string().contains('\n'), "{rejection}");
        assert!(!LoadError::UnknownRule("a\nb".into()).to_string().contains('\n'));
    }

    #[test]
    fn a_message_shows_20_mistakes_and_says_how_many_more_there_are() {
        let message = |n: usize, end: Option<&str>| {
            let one = |reason: &str| Rejection { reason: reason.to_owned(), ..Rejection::default() };
            let all = (0..n).map(|i| one(&i.to_string())).chain(end.map(one)).collect();
            LoadError::Rejected(all).to_string().split_off("the rules are not loaded:".len())
        };
        let shown = (0..20).map(|i| i.to_string()).fold(String::new(), |all, i| all + "\n  the set: " + &i);
        assert_eq!(message(20, None), shown);
        assert_eq!(message(21, None), format!("{shown}\n  and 1 more"));
        assert_eq!(message(100, None), format!("{shown}\n  and 80 more"));
        assert_eq!(message(100, Some(MORE)), format!("{shown}\n  and more than 80 more"));
    }
}
