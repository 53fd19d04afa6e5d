//! Names of resources with stars in them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::OVERFLOW;

/// Whether `name` is what `pattern` says, where `*` stands for any text, also none, `\*` for a star and `\\` for a
/// backslash.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    if pattern.contains('\\') {
        has_parts(name, parts(pattern).iter().map(|part| &**part))
    } else {
        has_parts(name, pattern.split('*'))
    }
}

/// Whether `name` consists of these parts, with any text between them.
fn has_parts<'a>(mut name: &str, mut parts: impl DoubleEndedIterator<Item = &'a str>) -> bool {
    let first = parts.next().unwrap_or_default();
    match name.strip_prefix(first) {
        Some(rest) => name = rest,
        None => return false,
    }
    let Some(last) = parts.next_back() else { return name.is_empty() };
    // Each part as early as it can be, which leaves the most for those behind it.
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

/// Patterns that stand for more than one name, to be asked which of them a name matches.
#[derive(Debug, Default)]
pub(crate) struct Globs {
    /// The most specific first.
    patterns: Vec<Arc<str>>,
    /// By the text before their first star, so that of many patterns few have to be tried: their places.
    by_start: HashMap<Box<str>, Vec<usize>>,
    /// How long these texts are.
    lengths: BTreeSet<usize>,
}

impl Globs {
    /// Those of `patterns` that are globs.
    pub(crate) fn of<'a>(patterns: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        let mut patterns: Vec<_> = patterns.into_iter().filter(|pattern| is_glob(pattern)).cloned().collect();
        patterns.sort_by(|one, other| more_specific_first(one, other));
        let mut by_start: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        for (place, pattern) in patterns.iter().enumerate() {
            let start = parts(pattern).swap_remove(0);
            by_start.entry(start.into()).or_default().push(place);
        }
        let lengths = by_start.keys().map(|start| start.len()).collect();
        Self { patterns, by_start, lengths }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Those whose rules hold for the resource called `name`, the most specific first: it matches them, or those do that share
    /// it.
    pub(crate) fn matching(&self, name: &str) -> Vec<&Arc<str>> {
        let mut places: Vec<usize> = self.candidates(name).collect();
        places.sort_unstable();
        places.into_iter().map(|place| &self.patterns[place]).collect()
    }

    pub(crate) fn is_match(&self, name: &str) -> bool {
        self.candidates(name).next().is_some()
    }

    /// The places of those that [match](Self::matching), in no order.
    fn candidates(&self, name: &str) -> impl Iterator<Item = usize> {
        // The name of a resource that others share is not theirs.
        let is_shared = name.starts_with(OVERFLOW);
        let starts =
            self.lengths.iter().filter_map(move |length| name.get(..*length)).filter(move |_| !is_shared);
        let places = starts.filter_map(|start| self.by_start.get(start)).flatten().copied();
        let matching = places.filter(move |place| matches(&self.patterns[*place], name));
        let shared = if is_shared { 0..self.patterns.len() } else { 0..0 };
        matching.chain(shared.filter(move |place| is_in_overflow(&self.patterns[*place], name)))
    }
}

/// The resource that names share which find no room for one of their own, and for which rules hold by these patterns, the most
/// specific first. Those rules hold for it.
pub(crate) fn overflow_of(patterns: &[Arc<str>]) -> Cow<'static, str> {
    match patterns {
        [] => Cow::Borrowed(OVERFLOW),
        patterns => Cow::Owned(format!("{OVERFLOW} {}", patterns.join(BETWEEN))),
    }
}

const BETWEEN: &str = " + ";

/// Whether rules by `pattern` hold for the names that share the resource called `name`. Whatever has no name that can be one
/// is counted there too, so patterns of stars alone hold for all of them.
fn is_in_overflow(pattern: &str, name: &str) -> bool {
    let Some(patterns) = name.strip_prefix(OVERFLOW).and_then(|rest| rest.strip_prefix(' ')) else {
        return name == OVERFLOW && pattern.bytes().all(|letter| letter == b'*');
    };
    // A pattern may have in it what stands between two.
    let [patterns, pattern] = [patterns, pattern].map(|text| format!("{BETWEEN}{text}{BETWEEN}"));
    patterns.contains(&pattern)
}

/// Whether `pattern` stands for more than one name.
pub(crate) fn is_glob(pattern: &str) -> bool {
    pattern.contains('*') && parts(pattern).len() > 1
}

/// The pattern that stands for `name` alone.
pub(crate) fn exactly(name: &str) -> Cow<'_, str> {
    if name.contains(['*', '\\']) {
        Cow::Owned(name.replace('\\', "\\\\").replace('*', "\\*"))
    } else {
        Cow::Borrowed(name)
    }
}

/// The name that `pattern` stands for, if it is no glob.
pub(crate) fn literally(pattern: &str) -> Option<Cow<'_, str>> {
    let mut parts = parts(pattern);
    let name = parts.pop()?;
    parts.is_empty().then_some(name)
}

/// The one way to write what `pattern` says: a backslash that stands before anything else stands for itself.
pub(crate) fn canonical(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains('\\') {
        return Cow::Borrowed(pattern);
    }
    let parts = parts(pattern);
    let written: Vec<_> = parts.iter().map(|part| exactly(part)).collect();
    Cow::Owned(written.join("*"))
}

/// Orders patterns by what they say: those with more text of their own first, of these those with fewer stars, of these by
/// their letters.
pub(crate) fn more_specific_first(one: &str, other: &str) -> Ordering {
    let rank = |pattern: &str| {
        let parts = parts(pattern);
        (parts.iter().map(|part| part.len()).sum::<usize>(), usize::MAX - parts.len())
    };
    rank(other).cmp(&rank(one)).then_with(|| one.cmp(other))
}

/// The texts between the stars of a pattern: one more than there are stars.
pub(crate) fn parts(pattern: &str) -> Vec<Cow<'_, str>> {
    if !pattern.contains('\\') {
        return pattern.split('*').map(Cow::Borrowed).collect();
    }
    let mut parts = vec![String::new()];
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        let part = parts.last_mut().expect("there is one from the start");
        match letter {
            '\\' => part.push(letters.next_if(|next| matches!(next, '*' | '\\')).unwrap_or('\\')),
            '*' => parts.push(String::new()),
            letter => part.push(letter),
        }
    }
    parts.into_iter().map(Cow::Owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_a_shared_resource_are_found_in_its_name_also_where_they_look_like_several() {
        let patterns =
            |patterns: &[&str]| -> Vec<Arc<str>> { patterns.iter().map(|one| Arc::from(*one)).collect() };
        let name = overflow_of(&patterns(&["a + b", "orders.*", "*"]));
        assert_eq!(name, "(overflow) a + b + orders.* + *");
        for (pattern, is_in) in [
            ("a + b", true),
            ("orders.*", true),
            ("*", true),
            ("orders", false),
            ("rders.*", false),
            ("c", false),
        ] {
            assert_eq!(is_in_overflow(pattern, &name), is_in, "{pattern}");
        }
        // Where no rule holds only those hold that are for all there are, also without a name.
        assert_eq!(
            ["*", "**", "*v*", "(overflow)*"].map(|pattern| is_in_overflow(pattern, OVERFLOW)),
            [true, true, false, false]
        );
        assert!(!is_in_overflow("a", "orders + a"));
    }

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
            (r"a\*b", "a*b"),
            (r"a\\b", r"a\b"),
            (r"a\b", r"a\b"),
            (r"a\**", "a*bc"),
            (r"\", r"\"),
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
            (r"a\*b", "a-b"),
            (r"a\*b", r"a\*b"),
            (r"a\**", "abc"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_with_stars_can_be_written_as_what_stands_for_it_alone() {
        for name in ["orders.create", "*", "a*b", r"a\b", r"a\*b", "", r"\\*"] {
            let pattern = exactly(name);
            assert!(matches(&pattern, name) && !is_glob(&pattern), "{name}");
            assert_eq!(literally(&pattern).as_deref(), Some(name));
            assert_eq!(canonical(&pattern), pattern, "{name}");
        }
        assert_eq!(canonical(r"a\b\*c*"), r"a\\b\*c*");
        assert!(is_glob("*") && is_glob(r"\**") && !is_glob(r"\*") && !is_glob("a"));
    }

    #[test]
    fn of_many_globs_those_are_found_that_a_name_matches() {
        let patterns = [
            "*",
            "orders.*",
            "*orders*",
            "orders.c*",
            "orders.*.*",
            "*.create",
            r"orders.\*x*",
            "ü*",
            "orders",
        ];
        let patterns = patterns.map(Arc::from);
        let globs = Globs::of(&patterns);
        for name in
            ["orders.create", "orders.*x", "orders", "", "ü", "üb", "orders.a.create", "x.create", "o"]
        {
            let mut expected: Vec<_> =
                patterns.iter().filter(|glob| is_glob(glob) && matches(glob, name)).collect();
            expected.sort_by(|one, other| more_specific_first(one, other));
            assert_eq!(globs.matching(name), expected, "{name}");
        }
        let orders = Globs::of(&["orders.*".into(), "orders".into()]);
        assert!(
            orders.is_match("orders.create") && !orders.is_match("orders") && !Globs::of(&[]).is_match("a")
        );
    }

    #[test]
    fn the_most_specific_pattern_comes_first() {
        let mut patterns =
            ["*", "orders.*", "*orders*", "orders.c*", "orders.*.*", "*.create", r"orders.\*x*"];
        patterns.sort_by(|one, other| more_specific_first(one, other));
        assert_eq!(
            patterns,
            [r"orders.\*x*", "orders.c*", "orders.*.*", "*.create", "orders.*", "*orders*", "*"]
        );
    }
}
