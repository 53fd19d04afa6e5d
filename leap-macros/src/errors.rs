//! Mistakes, gathered so that all of one stage are reported together.

use std::fmt::{self, Display};

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Error, Result};

/// What went wrong so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Reports a mistake at `tokens`, the ones to change.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    /// The value, or none and the mistake kept.
    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// `value`, if nothing went wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// `word`, in the message called `what`, is none of those that are accepted.
pub(crate) fn unknown(word: &Ident, what: &str, accepted: &[&str]) -> Error {
    let meant = closest(&word.to_string(), accepted);
    let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    Error::new_spanned(word, format!("unknown {what}{hint} (accepted: {})", List(accepted)))
}

/// `key` will mean something one day.
pub(crate) fn not_yet(key: &Ident) -> Error {
    Error::new_spanned(key, format!("`{key}` is not supported yet"))
}

/// Words as a list: `a`, `b`, `c`.
pub(crate) struct List<'a>(pub(crate) &'a [&'a str]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.0.iter().enumerate() {
            write!(f, "{}`{word}`", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// What other crates call what we call otherwise.
const SYNONYMS: [(&str, &str); 6] = [
    ("name", "resource"),
    ("limit", "qps"),
    ("rate", "qps"),
    ("concurrency", "max_concurrency"),
    ("direction", "inbound"),
    ("limit_app", "origin"),
];

/// The word that was probably meant: a synonym, one that goes on where the written one ends, else the nearest with at
/// most a third of its letters different.
pub(crate) fn closest<'a>(word: &str, accepted: &[&'a str]) -> Option<&'a str> {
    if let Some((_, ours)) = SYNONYMS.iter().find(|(other, ours)| *other == word && accepted.contains(ours)) {
        return accepted.iter().find(|candidate| *candidate == ours).copied();
    }
    let longer = accepted.iter().filter(|candidate| candidate.starts_with(&format!("{word}_")));
    if let Some(candidate) = longer.min_by_key(|candidate| candidate.len()) {
        return Some(candidate);
    }
    let near = accepted.iter().map(|candidate| (distance(word, candidate), *candidate));
    near.filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3)).min().map(|(_, word)| word)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { best.min(table[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_one_that_was_meant() {
        let accepted =
            ["resource", "qps", "rate", "max_concurrency", "slow_rt_ms", "slow_ratio", "error_ratio"];
        for (written, meant) in [
            ("qsp", Some("qps")),
            ("qp", Some("qps")),
            ("maxconcurrency", Some("max_concurrency")),
            ("max_concurency", Some("max_concurrency")),
            ("error_rate", Some("error_ratio")),
            ("slow_rt", Some("slow_rt_ms")),
            ("name", Some("resource")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(closest(written, &accepted), meant, "{written}");
        }
    }
}
