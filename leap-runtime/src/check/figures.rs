//! What a rule in shadow would have done, counted.

use std::fmt;

use crate::rule::RuleId;
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// The counts of one rule in shadow. They live on over loads while the rule stays as it is.
///
/// All accesses are relaxed: each count is by itself.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    asked: AtomicU64,
    would_block: AtomicU64,
    would_wait: AtomicU64,
    would_pass_blocked: AtomicU64,
}

/// What a rule in shadow says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Passes,
    /// It starts later.
    Waits,
    /// It queues, and whether it passes is not known.
    Queues,
    Blocks,
}

impl Figures {
    /// Counts what was said about a call that passed, or was blocked by another rule.
    pub(crate) fn note(&self, word: Word, is_blocked: bool) {
        self.asked.fetch_add(1, Relaxed);
        if word == Word::Blocks {
            self.would_block.fetch_add(1, Relaxed);
        }
        if matches!(word, Word::Waits | Word::Queues) {
            self.would_wait.fetch_add(1, Relaxed);
        }
        if is_blocked && matches!(word, Word::Passes | Word::Waits) {
            self.would_pass_blocked.fetch_add(1, Relaxed);
        }
    }

    /// The counts, under the id and the words of their rule.
    pub(crate) fn stats(&self, rule: &RuleId, text: impl fmt::Display) -> ShadowStats {
        ShadowStats {
            rule: rule.clone(),
            text: text.to_string(),
            // Read before those that it is more than.
            would_block: self.would_block.load(Relaxed),
            would_wait: self.would_wait.load(Relaxed),
            would_pass_blocked: self.would_pass_blocked.load(Relaxed),
            asked: self.asked.load(Relaxed),
        }
    }
}

/// What a rule in [shadow](crate::Mode::Shadow) would have done, had it been enforced.
///
/// Counts are of calls, whatever their permits, since the rule was loaded as it is. They go on over loads that leave it
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowStats {
    rule: RuleId,
    text: String,
    asked: u64,
    would_block: u64,
    would_wait: u64,
    would_pass_blocked: u64,
}

impl ShadowStats {
    /// The rule's id. An enforced rule may have the same one.
    pub fn rule(&self) -> &RuleId {
        &self.rule
    }

    /// The rule in words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The calls about which the rule was asked: those that passed, and those that an enforced rule of its kind blocked.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Those that it would have blocked.
    pub fn would_block(&self) -> u64 {
        self.would_block
    }

    /// Those that it would have had wait: for their start, or for permits, which they might have waited for in vain.
    pub fn would_wait(&self) -> u64 {
        self.would_wait
    }

    /// Those that it would have let through although an enforced rule of its kind blocked them.
    pub fn would_pass_blocked(&self) -> u64 {
        self.would_pass_blocked
    }

    /// The share of the calls asked about that it would have blocked; 0 where none were.
    pub fn share(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let (asked, would_block) = (self.asked.max(1) as f64, self.would_block as f64);
        would_block / asked
    }
}

impl fmt::Display for ShadowStats {
    /// In a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, text, asked, would_block, would_wait, would_pass_blocked } = self;
        write!(f, "{text}: would block {would_block} of {asked} calls ({:.1}%)", self.share() * 100.0)?;
        if *would_wait > 0 {
            write!(f, ", have {would_wait} wait")?;
        }
        if *would_pass_blocked > 0 {
            write!(f, ", let {would_pass_blocked} blocked ones through")?;
        }
        write!(f, "  [{rule}]")
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for ShadowStats {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let mut figures = serializer.serialize_struct("ShadowStats", 7)?;
        figures.serialize_field("rule", &self.rule.to_string())?;
        figures.serialize_field("text", &self.text)?;
        figures.serialize_field("asked", &self.asked)?;
        figures.serialize_field("would_block", &self.would_block)?;
        figures.serialize_field("would_wait", &self.would_wait)?;
        figures.serialize_field("would_pass_blocked", &self.would_pass_blocked)?;
        figures.serialize_field("share", &self.share())?;
        figures.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::RuleKind;

    #[test]
    fn each_answer_counts_where_it_belongs() {
        let figures = Figures::default();
        for word in [Word::Passes, Word::Waits, Word::Queues, Word::Blocks] {
            figures.note(word, false);
            figures.note(word, true);
        }
        let stats = figures.stats(&RuleId::new(None, RuleKind::Flow, 0), "flow: a rule");
        let counts = (stats.asked(), stats.would_block(), stats.would_wait(), stats.would_pass_blocked());
        assert_eq!(counts, (8, 2, 4, 2));
        assert_eq!(
            stats.to_string(),
            "flow: a rule: would block 2 of 8 calls (25.0%), have 4 wait, let 2 blocked ones through  [loaded/flow/0]"
        );
    }

    #[test]
    fn a_rule_that_was_asked_nothing_would_have_blocked_no_share() {
        let stats = Figures::default().stats(&RuleId::new(None, RuleKind::Flow, 0), "");
        assert!(stats.share() < f64::MIN_POSITIVE);
    }
}
