//! Rules as data: read from and written to any self-describing format of serde, in the words of the attribute.
//!
//! Reading has two stages: a format's values become plain ones ([`value`]), and these become rules ([`given`] finds the
//! words, [`build`] the rule), which tells every mistake together. [`words`] is the table that both go by.

mod build;
mod given;
mod hints;
mod patch;
mod time;
mod value;
mod words;
mod write;

use std::collections::BTreeSet;

use serde::de::{Deserialize, Deserializer};

pub use patch::RulePatch;

use self::given::{Fault, Given, MOST};
use self::hints::{List, Short, nearest};
use self::value::Value;
use super::rejection::{And, MORE, SHOWN};
use super::{LoadError, Rejection, Rule, RuleKind, RuleSet};

/// A rule set as it was written, read and not yet checked.
///
/// The document is a list of rules, or a map with such a list as `rules`. Each rule is a map of [words](crate::guide::fields):
/// `resource`, `kind`, perhaps an `id` and a `mode`, and those of its kind. A time is a whole number of milliseconds under
/// a word that ends in `_ms`, or text under the same word without it: `max_wait_ms = 200`, `max_wait = "200ms"`.
///
/// # Examples
///
/// ```
/// use leap_runtime::{LoadError, RuleData};
///
/// let data: RuleData = serde_json::from_str(r#"[
///     {"resource": "orders.create", "kind": "flow", "qps": 100},
///     {"resource": "orders.create", "kind": "error_ratio", "error_ratio": 0.5, "open": "2s", "probes": 0},
///     {"resource": "stock.read", "kind": "isolation", "max_concurency": 32}
/// ]"#)?;
/// let Err(LoadError::Rejected(mistakes)) = data.into_rules() else { panic!() };
/// let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
/// assert_eq!(mistakes, [
///     "rule 1 of `orders.create`: `probes`: 0 probes cannot decide a recovery: it takes 1 to 1023",
///     "rule 2 of `stock.read`: `max_concurency`: unknown field `max_concurency`; did you mean `max_concurrency`?",
/// ]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RuleData {
    /// What is wrong with the document around the rules.
    faults: Vec<Fault>,
    rules: Vec<Value>,
}

impl RuleData {
    /// The rules, if nothing is wrong with any of them.
    ///
    /// # Errors
    ///
    /// Every mistake in every rule, each with the rule's place, id and resource, and the field to change. Of more than 100
    /// it is the first 100, and one more that says so.
    pub fn into_rules(self) -> Result<RuleSet, LoadError> {
        let document = |Fault { field, reason }| Rejection { field, reason, ..Rejection::default() };
        let mut rejections: Vec<Rejection> = self.faults.into_iter().map(document).collect();
        // What is wrong between rules is looked for among those that are right.
        let (mut set, mut places) = (RuleSet::new(), vec![]);
        for (index, value) in self.rules.iter().enumerate() {
            if rejections.len() > MOST {
                break;
            }
            match Read::of(value, Scope::Set) {
                (Read { id, resource }, Ok(rule)) => {
                    set.push(resource.as_deref(), id.map(Into::into), rule);
                    places.push(index);
                }
                (read, Err(faults)) => rejections.extend(read.rejections(Some(index), faults)),
            }
        }
        for mut rejection in set.check() {
            rejection.index = rejection.index.and_then(|index| places.get(index).copied());
            rejections.push(rejection);
        }
        rejections.sort_by_key(Rejection::index);
        if rejections.len() > MOST {
            rejections.truncate(MOST);
            rejections.push(Rejection { reason: MORE.to_owned(), ..Rejection::default() });
        }
        if rejections.is_empty() { Ok(set) } else { Err(LoadError::Rejected(rejections)) }
    }

    fn of(value: Value) -> Result<Self, String> {
        let fields = match value {
            Value::List(rules) => return Ok(Self { faults: vec![], rules }),
            Value::Map(fields) => fields,
            other => {
                return Err(format!(
                    "rules are a list of maps, or a map with such a list as `rules`, not {}",
                    other.what()
                ));
            }
        };
        let (mut faults, mut list) = (vec![], None);
        for (name, value) in fields {
            // The list of rules is found behind any number of them.
            if given::is_enough(&faults) && name != "rules" {
                continue;
            }
            let reason = match (name.as_str(), value) {
                ("rules", _) if list.is_some() => "`rules` is given twice".to_owned(),
                ("rules", Value::List(rules)) => {
                    list = Some(rules);
                    continue;
                }
                ("rules", other) => {
                    list = Some(vec![]);
                    format!("`rules` takes a list of maps, not {}", other.what())
                }
                (other, _) => match nearest(other, ["rules"]) {
                    Some(meant) => format!("unknown field `{}`; did you mean `{meant}`?", Short(other)),
                    None => format!("unknown field `{}`; only `rules` is known here", Short(other)),
                },
            };
            faults.push(Fault::of(given::cut(&name), reason));
        }
        // A document that was cut short is not one that wants all rules gone.
        if list.is_none() {
            faults.push(Fault::of("rules", "`rules` is missing; a set without rules says `rules = []`"));
        }
        Ok(Self { faults, rules: list.unwrap_or_default() })
    }
}

impl TryFrom<RuleData> for RuleSet {
    type Error = LoadError;

    fn try_from(data: RuleData) -> Result<Self, LoadError> {
        data.into_rules()
    }
}

impl<'de> Deserialize<'de> for RuleData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::read(deserializer, Self::of)
    }
}

impl<'de> Deserialize<'de> for RuleSet {
    /// As [`RuleData`]; the first 20 mistakes stand in one message.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |value| RuleData::of(value)?.into_rules().map_err(|error| error.to_string());
        Value::read(deserializer, read)
    }
}

impl<'de> Deserialize<'de> for Rule {
    /// The words of one rule, without `id` and `resource`; the first 20 mistakes stand in one message.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::read(deserializer, |value| {
            let (read, rule) = Read::of(&value, Scope::Alone);
            rule.map_err(|faults| {
                let faults = given::told(faults);
                let mistakes: Vec<_> = read.rejections(None, faults).collect();
                let shown: Vec<_> = mistakes.iter().take(SHOWN).map(ToString::to_string).collect();
                format!("{}{}", shown.join("; "), And { rest: &mistakes[shown.len()..], before: "; " })
            })
        })
    }
}

/// Whether a rule is told for which resource it is.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    Set,
    Alone,
}

/// By what a rule is known, as far as it said so.
struct Read {
    id: Option<String>,
    resource: Option<String>,
}

impl Read {
    /// Reads one rule, and tells all that is wrong with it.
    fn of(value: &Value, scope: Scope) -> (Self, Result<Rule, Vec<Fault>>) {
        let mut read = Self { id: None, resource: None };
        let Value::Map(fields) = value else {
            let reason = format!("a rule is a map of words, not {}", value.what());
            return (read, Err(vec![Fault { field: None, reason }]));
        };
        let mut faults = vec![];
        let mut names = BTreeSet::new();
        let (mut kind, mut resource, mut words) = (None, None, vec![]);
        for (name, value) in fields {
            if given::is_enough(&faults) {
                break;
            }
            if !names.insert(name) {
                let reason = format!("`{}` is given twice", Short(name));
                faults.push(Fault::of(given::cut(name), reason));
                continue;
            }
            match name.as_str() {
                "kind" => kind = Some(value),
                "resource" if scope == Scope::Set => {
                    read.resource = text_of(value);
                    resource = Some(value);
                }
                "id" if scope == Scope::Set => {
                    read.id = text_of(value);
                    let checked = given::name_in("id", value);
                    faults.extend(checked.err().map(|reason| Fault::of("id", reason)));
                }
                "resource" | "id" => {
                    faults.push(Fault::of(
                        name,
                        format!("`{name}` does not belong to a rule that stands alone"),
                    ));
                }
                _ => words.push((name.as_str(), value)),
            }
        }
        let kind = kind_of(kind, &words, &mut faults);
        if scope == Scope::Set {
            faults.extend(wrong_resource(kind, resource, &words));
        }
        let rule = kind.and_then(|kind| {
            let given = Given::new(kind, words, &mut faults);
            build::build(given, &mut faults)
        });
        (read, rule.ok_or(faults))
    }

    fn rejections(self, index: Option<usize>, faults: Vec<Fault>) -> impl Iterator<Item = Rejection> {
        let Self { id, resource } = self;
        let one = move |Fault { field, reason }| Rejection {
            index,
            id: id.clone(),
            resource: resource.clone(),
            field,
            reason,
        };
        faults.into_iter().map(one)
    }
}

/// What a report calls a rule by.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(given::cut(text)),
        _ => None,
    }
}

/// The other fields of a rule.
type Others<'a> = [(&'a str, &'a Value)];

fn kind_of(value: Option<&Value>, others: &Others<'_>, faults: &mut Vec<Fault>) -> Option<RuleKind> {
    let Some(value) = value else {
        let is_meant = |name: &&str| nearest(name, ["kind"]).is_some();
        faults.push(match others.iter().map(|(name, _)| *name).find(is_meant) {
            Some(name) => Fault::of(name, format!("unknown field `{}`; did you mean `kind`?", Short(name))),
            None => Fault::of("kind", format!("`kind` is missing: one of {}", List(&words::KIND_NAMES))),
        });
        return None;
    };
    match given::one_of("kind", &words::KIND_NAMES, value) {
        Ok(name) => words::KINDS.into_iter().find(|kind| kind.name() == name),
        Err(reason) => {
            faults.push(Fault::of("kind", reason));
            None
        }
    }
}

fn wrong_resource(kind: Option<RuleKind>, resource: Option<&Value>, others: &Others<'_>) -> Option<Fault> {
    let reason = match (kind, resource) {
        (Some(RuleKind::System), Some(_)) => {
            "a system rule is for all inbound calls together: it has no `resource`".to_owned()
        }
        (_, Some(value)) => given::name_in("resource", value).err()?,
        (Some(RuleKind::System) | None, None) => return None,
        (Some(kind), None) => {
            // A word that is misspelt is told as such, and is not missing as well. The first fields are enough: behind so
            // many mistakes nothing is told.
            let mut names = others.iter().take(MOST).map(|(name, _)| name);
            if names.any(|name| given::meant(kind, name) == Some("resource")) {
                return None;
            }
            "`resource` is missing".to_owned()
        }
    };
    Some(Fault::of("resource", reason))
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
