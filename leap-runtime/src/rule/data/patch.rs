//! Some words of a rule changed, the others kept.

use std::collections::BTreeSet;

use serde::de::{Deserialize, Deserializer};

use super::build::{DIMENSIONS, RELATIONS, build};
use super::given::{Fault, Given, cut, is_enough, told};
use super::hints::Short;
use super::value::{Fields, Value};
use super::words::{is_flag, of_kind};
use super::write;
use crate::rule::{LoadError, NamedRule, Rejection, Rule, RuleKind};

/// New values for some words of a rule. Null puts a word back to its default.
///
/// It cannot change which rule it is: `id`, `resource` and `kind`.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, LoadError, Rule, RulePatch};
///
/// let rule = Rule::from(FlowRule::new(100.0, Behavior::Reject)?);
/// let patch: RulePatch = serde_json::from_str(r#"{"qps": 50, "behavior": "throttle", "max_wait": "2s"}"#)?;
/// let patched = rule.patched(&patch)?;
/// assert_eq!(patched.to_string(), "flow: 50 per 1s, throttled, waiting 2s at most");
///
/// let wrong: RulePatch = serde_json::from_str(r#"{"qps": -1, "resource": "orders.create"}"#)?;
/// let LoadError::Rejected(mistakes) = rule.patched(&wrong).unwrap_err() else { panic!() };
/// assert_eq!(mistakes[0].to_string(), "`resource`: a patch cannot change `resource`: load another rule");
/// assert_eq!((mistakes.len(), mistakes[1].field()), (2, Some("qps")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RulePatch {
    changes: Fields,
}

impl RulePatch {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The rule with the changes made, or all that is wrong with them.
    fn apply(&self, rule: &Rule) -> Result<Rule, Vec<Fault>> {
        let kind = rule.kind();
        let mut fields = write::fields(rule).map_err(|reason| vec![Fault { field: None, reason }])?;
        fields.retain(|(name, _)| name != "kind");
        let mut faults = vec![];
        self.change(kind, &mut fields, &mut faults);
        let given = Given::new(kind, fields.iter().map(|(name, value)| (name.as_str(), value)), &mut faults);
        build(given, &mut faults).ok_or_else(|| told(faults))
    }

    fn change(&self, kind: RuleKind, fields: &mut Fields, faults: &mut Vec<Fault>) {
        // An interval of a second has a limit by another name, which is no change to anybody.
        if kind == RuleKind::Flow
            && !fields.iter().any(|(name, _)| name == "limit")
            && self.sets("per_ms")
            && !self.sets("qps")
        {
            for (name, _) in fields.iter_mut().filter(|(name, _)| name == "qps") {
                "limit".clone_into(name);
            }
        }
        let mut names = BTreeSet::new();
        for (name, value) in &self.changes {
            if is_enough(faults) {
                return;
            }
            if !names.insert(name.as_str()) {
                faults.push(Fault::of(cut(name), format!("`{}` is given twice", Short(name))));
                continue;
            }
            if matches!(name.as_str(), "id" | "resource" | "kind") {
                faults.push(Fault::of(name, format!("a patch cannot change `{name}`: load another rule")));
                continue;
            }
            let word = of_kind(kind).find(|word| word.names().any(|known| known == name));
            let Some(word) = word else {
                fields.push((name.clone(), value.clone()));
                continue;
            };
            // What the word replaces, unless the patch gives that too: then one of the two is a mistake.
            let replaced = |other: &str| {
                let is_itself = other == name || (is(other, word.name) && !names.contains(other));
                let is_excluded =
                    says(name, value) && replaces(kind, word.name, base(other)) && !self.sets(base(other));
                is_itself || is_excluded
            };
            fields.retain(|(other, _)| !replaced(other));
            if says(name, value) {
                fields.push((name.clone(), value.clone()));
            }
        }
        let over = self.left_over(kind, fields);
        fields.retain(|(name, _)| !over.iter().any(|word| is(name, word) && !self.names(word)));
        // The default of an interval is not said by leaving it out: a limit without one is a mistake in a document.
        let has = |fields: &Fields, word: &str| fields.iter().any(|(name, _)| is(name, word));
        if kind == RuleKind::Flow && has(fields, "limit") && !has(fields, "per_ms") {
            fields.push(("per_ms".to_owned(), Value::Whole(1_000)));
        }
    }

    /// The words that only went with what the rule was before the fields became these.
    fn left_over(&self, kind: RuleKind, fields: &Fields) -> &'static [&'static str] {
        let value_of = |word: &str| fields.iter().find(|(name, _)| name == word).map(|(_, value)| value);
        let said = |word: &str| match value_of(word) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        match kind {
            RuleKind::Flow if self.names("behavior") => match said("behavior") {
                None | Some("reject") => &["warm_up_ms", "cold_factor", "max_wait_ms", "burst"],
                Some("warm_up") => &["max_wait_ms", "burst"],
                Some("throttle") => &["warm_up_ms", "cold_factor"],
                Some("warm_up_throttle") => &["burst"],
                Some(_) => &[],
            },
            RuleKind::Hot if self.names("behavior") && said("behavior") != Some("throttle") => {
                &["max_wait_ms"]
            }
            RuleKind::SlowRatio | RuleKind::ErrorRatio | RuleKind::ErrorCount
                if self.names("recovery") && said("recovery") != Some("ramp") =>
            {
                &["ramp_ms"]
            }
            RuleKind::System if value_of("qps").is_none() && said("precision") != Some("sentinel") => {
                &["precision"]
            }
            _ => &[],
        }
    }

    /// Whether it is about the word, by whichever of its names.
    fn names(&self, word: &str) -> bool {
        self.changes.iter().any(|(name, _)| is(name, word))
    }

    /// Whether it gives the word a new value, by whichever of its names.
    fn sets(&self, word: &str) -> bool {
        self.changes.iter().any(|(name, value)| is(name, word) && says(name, value))
    }
}

/// Whether a value says more than the word's absence.
fn says(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(false) => !is_flag(name),
        _ => true,
    }
}

/// Whether a field is this word, by its own name or that of its twin.
fn is(name: &str, word: &str) -> bool {
    name == word || word.strip_suffix("_ms") == Some(name)
}

/// The word of which a field may be the twin.
fn base(name: &str) -> &str {
    match name {
        "per" => "per_ms",
        "window" => "window_ms",
        "avg_rt" => "avg_rt_ms",
        other => other,
    }
}

/// Whether a new value of the one word says that the other does not hold any more.
fn replaces(kind: RuleKind, word: &str, other: &str) -> bool {
    let alternatives: &[&[&str]] = match kind {
        RuleKind::Flow => &[&["qps", "limit"], &["qps", "per_ms"], &RELATIONS],
        // Buckets say how a window of time is counted, and not that there is one.
        RuleKind::SlowRatio | RuleKind::ErrorRatio | RuleKind::ErrorCount if word == "buckets" => &[],
        RuleKind::SlowRatio | RuleKind::ErrorRatio | RuleKind::ErrorCount => {
            &[&["window_calls", "window_ms"], &["window_calls", "buckets"]]
        }
        RuleKind::Authority => &[&["allow", "deny"]],
        RuleKind::System => &[&DIMENSIONS],
        RuleKind::Isolation | RuleKind::Hot | RuleKind::Custom => &[],
    };
    word != other && alternatives.iter().any(|words| words.contains(&word) && words.contains(&other))
}

impl<'de> Deserialize<'de> for RulePatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::read(deserializer, |value| match value {
            Value::Map(changes) => Ok(Self { changes }),
            other => Err(format!("a patch is a map of words and their new values, not {}", other.what())),
        })
    }
}

impl Rule {
    /// The same rule with some words changed, checked as a whole.
    ///
    /// A word that says otherwise what an old one said replaces it: `limit` with `per_ms` replaces `qps`, `window_calls` a
    /// window of time, one relation another, one figure of the system another. What only went with an old `behavior`,
    /// `recovery` or figure goes with it. A word that the patch does not name and that none of its words replaces stays.
    ///
    /// # Errors
    ///
    /// [`LoadError::Rejected`] with every mistake in the changes, or in what they make of the rule.
    pub fn patched(&self, patch: &RulePatch) -> Result<Self, LoadError> {
        let reject = |Fault { field, reason }| Rejection { field, reason, ..Rejection::default() };
        let rejected = |faults: Vec<Fault>| LoadError::Rejected(faults.into_iter().map(reject).collect());
        patch.apply(self).map_err(rejected)
    }
}

impl NamedRule {
    /// As [`Rule::patched`]; the mistakes say in which rule they are.
    ///
    /// # Errors
    ///
    /// [`LoadError::Rejected`] with every mistake in the changes, or in what they make of the rule.
    pub fn patched(&self, patch: &RulePatch) -> Result<Rule, LoadError> {
        let reject = |Fault { field, reason }| Rejection { field, ..self.rejection("", reason) };
        let rejected = |faults: Vec<Fault>| LoadError::Rejected(faults.into_iter().map(reject).collect());
        patch.apply(self.rule()).map_err(rejected)
    }
}
