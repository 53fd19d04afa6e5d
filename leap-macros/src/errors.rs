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

/// Lists of so many words are told even where one of them is near.
const SHORT: usize = 4;

/// `word`, in the message called `what`, is none of those that are accepted.
pub(crate) fn unknown(word: &Ident, what: &str, accepted: &[&str]) -> Error {
    let meant = closest(&word.to_string(), accepted);
    let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    let list = match meant {
        Some(_) if accepted.len() > SHORT => String::new(),
        _ => format!(" (accepted: {})", List(accepted)),
    };
    Error::new_spanned(word, format!("unknown {what}{hint}{list}"))
}

/// What is said of a word of other crates for which we have no single one.
pub(crate) fn explanation(word: &Ident) -> Option<&'static str> {
    let explanation = match snake_case(&word.to_string()).as_str() {
        "grade" => {
            "there is no `grade`, as each argument says what it counts: `qps` or `max_concurrency` for a limit; \
             `slow_rt_ms`, `error_ratio` or `error_count` for a breaker"
        }
        "strategy" => {
            "there is no `strategy`, as each argument says its own: `slow_rt_ms`, `error_ratio` or `error_count` for a \
             breaker; `associated` for a limit that looks at another resource"
        }
        "cpu" | "load" | "system" => "rules for the system are loaded: `RuleSet::system`",
        _ => return None,
    };
    Some(explanation)
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

/// What other crates call what we call otherwise. Of several for one word the first that is accepted is meant.
const SYNONYMS: [(&str, &str); 30] = [
    ("name", "resource"),
    ("value", "resource"),
    ("limit", "qps"),
    ("rate", "qps"),
    ("count", "qps"),
    ("count", "limit"),
    ("qps", "limit"),
    ("control_behavior", "behavior"),
    ("rate_limiter", "throttle"),
    ("warm_up_rate_limiter", "warm_up_throttle"),
    ("warm_up_period_sec", "warm_up_ms"),
    ("max_queueing_time_ms", "max_wait_ms"),
    ("ref_resource", "associated"),
    ("concurrency", "max_concurrency"),
    ("threads", "max_concurrency"),
    ("min_request_amount", "min_calls"),
    ("stat_interval_ms", "window_ms"),
    ("stat_interval_ms", "per_ms"),
    ("duration_in_sec", "per_ms"),
    ("time_window", "open_ms"),
    ("param_idx", "hot"),
    ("param_idx", "key"),
    ("direction", "inbound"),
    ("entry_type", "inbound"),
    ("prioritized", "priority"),
    ("limit_app", "origin"),
    ("block_handler", "fallback"),
    ("exceptions_to_ignore", "ignore"),
    ("burst_count", "burst"),
    ("param_flow_item_list", "except"),
];

/// The word that was probably meant: a synonym, one that goes on where the written one ends, else the nearest with at
/// most a third of its letters different.
pub(crate) fn closest<'a>(word: &str, accepted: &[&'a str]) -> Option<&'a str> {
    let word = snake_case(word);
    let synonyms = SYNONYMS.iter().filter(|(other, _)| *other == word);
    let ours = |meant: &str| accepted.iter().find(|candidate| **candidate == meant);
    if let Some(candidate) = synonyms.into_iter().find_map(|(_, meant)| ours(meant)) {
        return Some(candidate);
    }
    let longer = accepted.iter().filter(|candidate| candidate.starts_with(&format!("{word}_")));
    if let Some(candidate) = longer.min_by_key(|candidate| candidate.len()) {
        return Some(candidate);
    }
    let near = accepted.iter().map(|candidate| (distance(&word, candidate), *candidate));
    near.filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 3)
        .min()
        .map(|(_, word)| word)
}

/// `maxWaitMs` as `max_wait_ms`.
fn snake_case(word: &str) -> String {
    let mut snake = String::new();
    let mut after_small = false;
    for letter in word.chars() {
        if after_small && letter.is_uppercase() {
            snake.push('_');
        }
        after_small = letter.is_lowercase();
        snake.extend(letter.to_lowercase());
    }
    snake
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
    use proc_macro2::Span;

    use super::*;

    const ACCEPTED: [&str; 16] = [
        "resource",
        "inbound",
        "priority",
        "qps",
        "rate",
        "behavior",
        "warm_up_ms",
        "max_concurrency",
        "slow_rt_ms",
        "slow_ratio",
        "error_ratio",
        "window_ms",
        "hot",
        "ignore",
        "fallback",
        "crate",
    ];

    #[test]
    fn a_misspelt_word_finds_the_one_that_was_meant() {
        for (written, meant) in [
            ("qsp", Some("qps")),
            ("qp", Some("qps")),
            ("maxconcurrency", Some("max_concurrency")),
            ("max_concurency", Some("max_concurrency")),
            ("maxConcurrency", Some("max_concurrency")),
            ("error_rate", Some("error_ratio")),
            ("slow_rt", Some("slow_rt_ms")),
            ("colour", None),
            ("page", None),
            ("grade", None),
            ("x", None),
        ] {
            assert_eq!(closest(written, &ACCEPTED), meant, "{written}");
        }
    }

    #[test]
    fn a_word_of_sentinel_finds_ours() {
        for (written, meant) in [
            ("name", "resource"),
            ("value", "resource"),
            ("entryType", "inbound"),
            ("prioritized", "priority"),
            ("count", "qps"),
            ("controlBehavior", "behavior"),
            ("warm_up_period_sec", "warm_up_ms"),
            ("threads", "max_concurrency"),
            ("statIntervalMs", "window_ms"),
            ("paramIdx", "hot"),
            ("exceptionsToIgnore", "ignore"),
            ("blockHandler", "fallback"),
        ] {
            assert_eq!(closest(written, &ACCEPTED), Some(meant), "{written}");
        }
        assert_eq!(closest("count", &["limit", "per_ms"]), Some("limit"));
        assert_eq!(closest("statIntervalMs", &["limit", "per_ms"]), Some("per_ms"));
        assert_eq!(closest("RATE_LIMITER", &["reject", "throttle"]), Some("throttle"));
    }

    #[test]
    fn a_long_list_is_told_only_where_no_word_is_near() {
        let message = |word: &str, accepted: &[&str]| {
            let word = Ident::new(word, Span::call_site());
            unknown(&word, &format!("argument `{word}`"), accepted).to_string()
        };
        assert_eq!(message("qsp", &ACCEPTED), "unknown argument `qsp`; did you mean `qps`?");
        assert!(
            message("colour", &ACCEPTED).starts_with("unknown argument `colour` (accepted: `resource`, ")
        );
        assert_eq!(
            message("of", &["off", "on"]),
            "unknown argument `of`; did you mean `off`? (accepted: `off`, `on`)"
        );
    }
}
