//! What somebody may have meant.

use std::fmt;

use crate::rule::near::distance;
use crate::rule::rejection::write_cut;

/// The longest word that is looked at: none of ours is near a longer one.
const LONGEST: usize = 40;

/// The word with at most a third of its letters different, or one that goes on where the written one ends.
pub(super) fn nearest<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let written = snake_case(written);
    let words: Vec<&str> = words.into_iter().collect();
    if let Some(word) = words.iter().find(|word| **word == written) {
        return Some(word);
    }
    let start = format!("{written}_");
    let longer = words.iter().filter(|word| word.starts_with(&start)).min_by_key(|word| word.len());
    if let Some(word) = longer {
        return Some(word);
    }
    let most = |word: &str| word.len().max(written.len()) / 3;
    // Letters that one has more than the other are different in any case.
    let near = words.iter().filter(|word| word.len().abs_diff(written.len()) <= most(word));
    let letters: Vec<_> = written.bytes().map(Some).collect();
    let near = near.filter_map(|word| Some((distance(&letters, word.as_bytes(), most(word))?, *word)));
    near.min().map(|(_, word)| word)
}

/// `maxWaitMs` as `max_wait_ms`, `max-wait` as `max_wait`.
pub(super) fn snake_case(word: &str) -> String {
    let mut snake = String::new();
    let mut after_small = false;
    for letter in word.chars() {
        if after_small && letter.is_uppercase() {
            snake.push('_');
        }
        after_small = letter.is_lowercase();
        match letter {
            '-' => snake.push('_'),
            letter => snake.extend(letter.to_lowercase()),
        }
    }
    snake
}

const BREAKERS: &[&str] = &["slow_ratio", "error_ratio", "error_count"];
const RATES: &[&str] = &["flow", "hot"];
const ALL: &[&str] = &super::words::KIND_NAMES;

/// What Sentinel's words are called here, in rules of some kinds.
const SENTINEL: [(&[&str], &[&str], &str); 33] = [
    (&["count", "threshold"], RATES, "`qps`"),
    (&["count", "threshold"], &["isolation"], "`max_concurrency`"),
    (&["count", "max_allowed_rt_ms"], &["slow_ratio"], "`slow_rt_ms`"),
    (&["count", "threshold"], &["error_ratio"], "`error_ratio`"),
    (&["count", "threshold"], &["error_count"], "`error_count`"),
    (&["grade"], ALL, "`kind` that says what is counted"),
    (&["limit_app"], &["flow"], "`origin`, or `other_origins = true`; `default` is left out"),
    (&["limit_app"], &["authority"], "`allow` or `deny`, a list"),
    (&["strategy"], &["flow"], "`associated` or `entrance` alone that says it"),
    (&["strategy"], &["authority"], "`allow` or `deny` alone that says it"),
    (&["strategy"], BREAKERS, "`kind`: `slow_ratio`, `error_ratio` or `error_count`"),
    (&["ref_resource"], &["flow"], "`associated`, or `entrance` for the strategy chain"),
    (&["control_behavior"], RATES, "`behavior`"),
    (&["warm_up_period_sec"], &["flow"], "`warm_up_ms`, in milliseconds"),
    (&["warm_up_cold_factor"], &["flow"], "`cold_factor`"),
    (&["max_queueing_time_ms"], RATES, "`max_wait_ms`"),
    (&["time_window"], BREAKERS, "`open_ms`, in milliseconds"),
    (&["retry_timeout_ms"], BREAKERS, "`open_ms`"),
    (&["min_request_amount"], BREAKERS, "`min_calls`"),
    (&["stat_interval_ms"], BREAKERS, "`window_ms`"),
    (&["stat_interval_ms", "stat_interval_in_ms"], &["flow"], "`per_ms`, with `limit`"),
    (&["slow_ratio_threshold"], &["slow_ratio"], "`slow_ratio`"),
    (&["param_idx", "param_index", "param_key"], &["hot"], "`key`, a name or a place"),
    (&["duration_in_sec"], &["hot"], "`per_ms`, in milliseconds"),
    (&["burst_count"], &["hot"], "`burst`"),
    (&["param_flow_item_list", "specific_items"], &["hot"], "`except`, a list of `value` and `limit`"),
    (&["params_max_capacity"], &["hot"], "`max_keys`"),
    (&["max_thread"], &["system"], "`max_concurrency`"),
    (&["avg_rt"], &["system"], "`avg_rt_ms`"),
    (&["highest_system_load"], &["system"], "`load`"),
    (&["highest_cpu_usage"], &["system"], "`cpu`"),
    (
        &["trigger_count"],
        &["system"],
        "the figure's own: one of `load`, `cpu`, `qps`, `max_concurrency` and `avg_rt_ms`",
    ),
    (&["regex"], ALL, "a pattern as `resource`, like `orders.*`"),
];

/// What Sentinel's word for a field is called here, in a rule of this kind.
pub(super) fn of_sentinel(written: &str, kind: &str) -> Option<&'static str> {
    if written.len() > LONGEST {
        return None;
    }
    let written = snake_case(written);
    let is_it = |(words, kinds, _): &&(&[&str], &[&str], _)| {
        words.contains(&written.as_str()) && kinds.contains(&kind)
    };
    SENTINEL.iter().find(is_it).map(|(_, _, ours)| *ours)
}

/// `a`, `b` and `c`.
pub(super) struct List<'a>(pub(super) &'a [&'a str]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.0.iter().enumerate() {
            f.write_str(match i {
                0 => "",
                i if i + 1 == self.0.len() => " and ",
                _ => ", ",
            })?;
            write!(f, "`{word}`")?;
        }
        Ok(())
    }
}

/// A text from outside: on one line, and not all of it if it is long.
pub(super) struct Short<'a>(pub(super) &'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cut(f, self.0, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_the_one_that_was_meant() {
        let words = ["qps", "limit", "behavior", "max_wait_ms", "max_wait", "other_origins", "associated"];
        for (written, meant) in [
            ("qsp", Some("qps")),
            ("QPS", Some("qps")),
            ("maxWaitMs", Some("max_wait_ms")),
            ("max-wait", Some("max_wait")),
            ("behaviour", Some("behavior")),
            ("assoc", None),
            ("colour", None),
            ("", None),
            ("日本", None),
        ] {
            assert_eq!(nearest(written, words), meant, "{written}");
        }
        assert_eq!(nearest(&"qps".repeat(100_000), words), None);
    }

    #[test]
    fn text_from_outside_is_told_on_one_line_and_cut() {
        assert_eq!(Short("a\nb\u{7}").to_string(), "a\\nb\\u{7}");
        assert_eq!(Short(&"ä".repeat(1_000_000)).to_string(), format!("{}…", "ä".repeat(40)));
        assert_eq!(List(&["a", "b", "c"]).to_string(), "`a`, `b` and `c`");
    }
}
