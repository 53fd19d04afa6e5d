//! The words that one rule was given, each with a value of its type.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::hints::{List, Short, nearest, of_sentinel};
use super::time;
use super::value::Value;
use super::words::{COMMON, KINDS, Takes, Word, of_kind};
use crate::key::{Key, ToKey};
use crate::rule::rejection::MORE;
use crate::rule::{KeySelector, NAME_MAX, RuleError, RuleKind, is_name};

/// A mistake in a rule: the field that it is about, and what is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) field: Option<String>,
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn of(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: Some(field.into()), reason: reason.into() }
    }
}

/// The mistakes in data that are told. With more than these, nobody corrects them one by one.
pub(super) const MOST: usize = 100;

/// Whether there are more mistakes than are told.
pub(super) fn is_enough(faults: &[Fault]) -> bool {
    faults.len() > MOST
}

/// Those mistakes that are told, and that there are more, if there are.
pub(super) fn told(mut faults: Vec<Fault>) -> Vec<Fault> {
    if is_enough(&faults) {
        faults.truncate(MOST);
        faults.push(Fault { field: None, reason: MORE.to_owned() });
    }
    faults
}

#[derive(Clone, Debug)]
enum Typed {
    Number(f64),
    Whole(u32),
    Time(Duration),
    Text(String),
    Word(&'static str),
    Key(KeySelector),
    Names(Vec<String>),
    Exceptions(Vec<(Key, f64)>),
    Flag(bool),
}

/// What a rule of a known kind was given.
#[derive(Debug)]
pub(super) struct Given {
    kind: RuleKind,
    /// By the name of the word, with the name it was given under.
    values: BTreeMap<&'static str, (&'static str, Typed)>,
    /// Words that were given, but wrongly: that is told, and nothing else is to be told because of it.
    wrong: BTreeSet<&'static str>,
}

impl Given {
    /// Sorts the fields of a rule by the words of its kind, and tells what none of them is.
    pub(super) fn new<'a>(
        kind: RuleKind,
        fields: impl IntoIterator<Item = (&'a str, &'a Value)>,
        faults: &mut Vec<Fault>,
    ) -> Self {
        let mut given = Self { kind, values: BTreeMap::new(), wrong: BTreeSet::new() };
        for (name, value) in fields {
            if is_enough(faults) {
                break;
            }
            match word_of(kind, name) {
                Some(word) => given.put(word, name, value, faults),
                None => {
                    let (reason, meant) = unknown(kind, name);
                    // It is not missing, then.
                    given.wrong.extend(meant);
                    faults.push(Fault::of(cut(name), reason));
                }
            }
        }
        given
    }

    fn put(&mut self, word: &'static Word, name: &str, value: &Value, faults: &mut Vec<Fault>) {
        let name = if name == word.name { word.name } else { word.twin().unwrap_or(word.name) };
        if let Some((earlier, _)) = self.values.get(word.name)
            && *earlier != name
        {
            faults.push(Fault::of(name, format!("`{earlier}` and `{name}` say the same: give one of them")));
            return;
        }
        match read(word, name, value) {
            // Its default: it says nothing, and so nothing that another word could contradict.
            Ok(Typed::Flag(false)) => {}
            Ok(typed) => {
                self.values.insert(word.name, (name, typed));
            }
            Err(reason) => {
                self.wrong.insert(word.name);
                faults.push(Fault::of(name, reason));
            }
        }
    }

    pub(super) fn kind(&self) -> RuleKind {
        self.kind
    }

    /// Whether the word was given, rightly or wrongly.
    pub(super) fn has(&self, word: &str) -> bool {
        self.values.contains_key(word) || self.wrong.contains(word)
    }

    /// Whether the word was given, but wrongly.
    pub(super) fn is_wrong(&self, word: &str) -> bool {
        self.wrong.contains(word)
    }

    /// The name by which a word was given, if it was.
    pub(super) fn name_of(&self, word: &'static str) -> &'static str {
        self.values.get(word).map_or(word, |(name, _)| name)
    }

    /// Takes a word for given wrongly.
    pub(super) fn forget(&mut self, word: &'static str) {
        self.wrong.insert(word);
        self.values.remove(word);
    }

    pub(super) fn number(&self, word: &str) -> Option<f64> {
        match self.values.get(word) {
            Some((_, Typed::Number(number))) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn whole(&self, word: &str) -> Option<u32> {
        match self.values.get(word) {
            Some((_, Typed::Whole(number))) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn time(&self, word: &str) -> Option<Duration> {
        match self.values.get(word) {
            Some((_, Typed::Time(time))) => Some(*time),
            _ => None,
        }
    }

    pub(super) fn text(&self, word: &str) -> Option<&str> {
        match self.values.get(word) {
            Some((_, Typed::Text(text))) => Some(text),
            _ => None,
        }
    }

    pub(super) fn word(&self, word: &str) -> Option<&'static str> {
        match self.values.get(word) {
            Some((_, Typed::Word(value))) => Some(value),
            _ => None,
        }
    }

    pub(super) fn key(&self, word: &str) -> Option<&KeySelector> {
        match self.values.get(word) {
            Some((_, Typed::Key(key))) => Some(key),
            _ => None,
        }
    }

    pub(super) fn names(&self, word: &str) -> Option<&[String]> {
        match self.values.get(word) {
            Some((_, Typed::Names(names))) => Some(names),
            _ => None,
        }
    }

    pub(super) fn exceptions(&self, word: &str) -> Option<&[(Key, f64)]> {
        match self.values.get(word) {
            Some((_, Typed::Exceptions(exceptions))) => Some(exceptions),
            _ => None,
        }
    }

    /// Whether the word is given and true.
    pub(super) fn flag(&self, word: &str) -> bool {
        matches!(self.values.get(word), Some((_, Typed::Flag(true))))
    }
}

/// The word that a rule of this kind takes under this name.
fn word_of(kind: RuleKind, name: &str) -> Option<&'static Word> {
    of_kind(kind).find(|word| word.names().any(|known| known == name))
}

/// The word that was meant by a field that a rule of this kind does not have, if one is near.
pub(super) fn meant(kind: RuleKind, name: &str) -> Option<&'static str> {
    if word_of(kind, name).is_some() { None } else { unknown(kind, name).1 }
}

/// What is said of a field that a rule of this kind does not have, and the word that was meant, if one is near.
fn unknown(kind: RuleKind, name: &str) -> (String, Option<&'static str>) {
    let (shown, of) = (Short(name), kind.name());
    let word_of = |meant: &str| {
        let word = word_of(kind, meant).or_else(|| COMMON.iter().find(|word| word.name == meant));
        word.map(|word| word.name)
    };
    if let Some(ours) = of_sentinel(name, of) {
        let meant = ours.split('`').nth(1).and_then(word_of);
        return (format!("`{shown}` is Sentinel's word; here it is {ours}"), meant);
    }
    let has_it = |kind: &RuleKind| of_kind(*kind).any(|word| word.names().any(|known| known == name));
    let others: Vec<&str> = KINDS.into_iter().filter(has_it).map(RuleKind::name).collect();
    if !others.is_empty() {
        let rules = if others.len() == 1 { "a rule of the kind" } else { "rules of the kinds" };
        return (format!("`{shown}` goes with {rules} {}, not with `{of}`", List(&others)), None);
    }
    let known = of_kind(kind).flat_map(Word::names).chain(COMMON.iter().map(|word| word.name));
    match nearest(name, known) {
        Some(meant) => (format!("unknown field `{shown}`; did you mean `{meant}`?"), word_of(meant)),
        None => {
            let all: Vec<&str> = of_kind(kind).map(|word| word.name).collect();
            (format!("unknown field `{shown}`: a rule of the kind `{of}` takes {}", List(&all)), None)
        }
    }
}

/// A name as a report keeps it.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= NAME_MAX { text.to_owned() } else { Short(text).to_string() }
}

/// The value of a word that was given under `name`, or what is wrong with it.
fn read(word: &Word, name: &str, value: &Value) -> Result<Typed, String> {
    match &word.takes {
        Takes::Permits { .. } | Takes::Number { .. } | Takes::AtLeast(_) | Takes::Above(_) => {
            number(name, value).map(Typed::Number)
        }
        Takes::Whole { .. } => whole(name, value).map(Typed::Whole),
        Takes::Time { .. } if name == word.name => millis(name, word.twin(), value).map(Typed::Time),
        Takes::Time { .. } => time_as_text(name, word.name, value).map(Typed::Time),
        Takes::Name => name_in(name, value).map(Typed::Text),
        Takes::OneOf(words) => one_of(name, words, value).map(Typed::Word),
        Takes::Key => key(name, value).map(Typed::Key),
        Takes::Names => names(name, value).map(Typed::Names),
        Takes::Exceptions => exceptions(name, value).map(Typed::Exceptions),
        Takes::Flag => match value {
            Value::Bool(value) => Ok(Typed::Flag(*value)),
            other => Err(instead(name, "`true` or `false`", other)),
        },
    }
}

/// A value of another type.
fn instead(name: &str, takes: &str, value: &Value) -> String {
    match value {
        Value::Null => format!("`{name}` is null: give it a value, or leave it out"),
        value => format!("`{name}` takes {takes}, not {}", value.what()),
    }
}

fn number(name: &str, value: &Value) -> Result<f64, String> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "a limit, and what is lost is under 1 in 2⁵²")]
        Value::Whole(number) => Ok(*number as f64),
        #[expect(clippy::cast_precision_loss, reason = "the same")]
        Value::Huge(number) => Ok(*number as f64),
        Value::Number(number) => Ok(*number),
        other => Err(instead(name, "a number", other)),
    }
}

fn whole(name: &str, value: &Value) -> Result<u32, String> {
    let number = whole_number(name, "a whole number", value)?;
    u32::try_from(number).map_err(|_| match number {
        ..0 => format!("`{name}` must not be negative"),
        _ => format!("`{name}` is at most {}", u32::MAX),
    })
}

/// An integer of any size; beyond all of ours it is the largest.
fn whole_number(name: &str, takes: &str, value: &Value) -> Result<i128, String> {
    match value {
        Value::Whole(number) => Ok(*number),
        Value::Huge(_) => Ok(i128::MAX),
        // A format without integers, or one beyond those that the format knows.
        #[expect(clippy::cast_possible_truncation, reason = "whole; beyond the bounds it saturates")]
        Value::Number(number) if number.fract() == 0.0 => Ok(*number as i128),
        Value::Number(number) if number.is_finite() => {
            Err(format!("`{name}` takes {takes}, not {}", Short(&number.to_string())))
        }
        Value::Number(number) => Err(format!("`{name}` takes {takes}, not {number}")),
        other => Err(instead(name, takes, other)),
    }
}

fn millis(name: &str, twin: Option<&str>, value: &Value) -> Result<Duration, String> {
    let twin = twin.unwrap_or(name);
    let takes = "whole milliseconds";
    match value {
        Value::Text(_) => {
            return Err(format!("`{name}` takes {takes}; text like \"200ms\" goes with `{twin}`"));
        }
        Value::Number(number) if number.fract() != 0.0 => {
            return Err(format!("`{name}` takes {takes}; finer times are text, like `{twin} = \"1500us\"`"));
        }
        _ => {}
    }
    let number = whole_number(name, takes, value)?;
    match u64::try_from(number) {
        Ok(number) => Ok(Duration::from_millis(number)),
        Err(_) if number < 0 => Err(format!("`{name}` must not be negative")),
        Err(_) => Err(format!("`{name}` is at most {} milliseconds", u64::MAX)),
    }
}

fn time_as_text(name: &str, in_ms: &str, value: &Value) -> Result<Duration, String> {
    match value {
        Value::Text(text) => time::parse(text).map_err(|wrong| {
            format!("`{name}` takes a time like \"200ms\", not \"{}\": {wrong}", Short(text))
        }),
        Value::Whole(_) | Value::Huge(_) | Value::Number(_) => {
            Err(format!("`{name}` takes text like \"200ms\"; a number of milliseconds goes with `{in_ms}`"))
        }
        other => Err(instead(name, "text like \"200ms\"", other)),
    }
}

/// The name of a resource, an entrance, an origin or a rule.
pub(super) fn name_in(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::Text(text) if is_name(text) => Ok(text.clone()),
        Value::Text(text) => Err(RuleError::Name { len: text.len() }.to_string()),
        other => Err(instead(name, "text", other)),
    }
}

/// One of a few words.
pub(super) fn one_of(name: &str, words: &[&'static str], value: &Value) -> Result<&'static str, String> {
    match value {
        Value::Text(text) => words.iter().find(|word| *word == text).copied().ok_or_else(|| {
            let shown = Short(text);
            match nearest(text, words.iter().copied()) {
                Some(meant) => format!("unknown {name} `{shown}`; did you mean `{meant}`?"),
                None => format!("unknown {name} `{shown}`: it takes {}", List(words)),
            }
        }),
        other => Err(instead(name, "a word", other)),
    }
}

fn key(name: &str, value: &Value) -> Result<KeySelector, String> {
    let takes = "the name of a key or its place";
    match value {
        // Its length is checked with the rule.
        Value::Text(text) => Ok(text.clone().into()),
        Value::Whole(_) | Value::Huge(_) | Value::Number(_) => {
            let place = i32::try_from(whole_number(name, takes, value)?);
            place
                .map(KeySelector::Position)
                .map_err(|_| format!("`{name}` is a place from {} to {}", i32::MIN, i32::MAX))
        }
        other => Err(instead(name, takes, other)),
    }
}

fn names(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let Value::List(list) = value else { return Err(instead(name, "a list of text", value)) };
    list.iter()
        .enumerate()
        .map(|(place, value)| match value {
            // Their lengths are checked with the rule.
            Value::Text(text) => Ok(text.clone()),
            other => Err(format!("`{name}` takes a list of text; at {place} it has {}", other.what())),
        })
        .collect()
}

fn exceptions(name: &str, value: &Value) -> Result<Vec<(Key, f64)>, String> {
    let Value::List(list) = value else {
        return Err(instead(name, "a list of maps with `value` and `limit`", value));
    };
    let read = list.iter().map(exception).enumerate();
    read.map(|(place, read)| read.map_err(|wrong| format!("exception {place}: {wrong}"))).collect()
}

/// What an exception says, in the words of which it has `limit` and one other.
const EXCEPTION: [&str; 4] = ["value", "char", "integer", "limit"];

fn exception(value: &Value) -> Result<(Key, f64), String> {
    let Value::Map(fields) = value else {
        return Err(format!("it takes a map with `value` and `limit`, not {}", value.what()));
    };
    let (mut key, mut limit) = (None, None);
    for (name, value) in fields {
        let is_twice = match name.as_str() {
            "limit" => limit.replace(number(name, value)?).is_some(),
            "value" => key.replace(exact_key(value)?).is_some(),
            "char" => key.replace(char_key(value)?).is_some(),
            "integer" => key.replace(integer_key(value)?).is_some(),
            other => {
                let meant = nearest(other, EXCEPTION);
                let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                return Err(format!("unknown field `{}`{hint}", Short(other)));
            }
        };
        if is_twice {
            return Err(format!("`{name}` is one too many: it has one value and one `limit`"));
        }
    }
    Ok((key.ok_or("`value` is missing")?, limit.ok_or("`limit` is missing")?))
}

fn exact_key(value: &Value) -> Result<Key, String> {
    match value {
        Value::Text(text) if text.len() > NAME_MAX => {
            Err(format!("a value of {} bytes is too long: at most {NAME_MAX}", text.len()))
        }
        Value::Text(text) => Ok(text.to_key()),
        Value::Bool(value) => Ok(value.to_key()),
        Value::Whole(number) => Ok(number.to_key()),
        Value::Huge(number) => Ok(number.to_key()),
        Value::Number(_) => {
            Err("`value` takes no fractions: they are no keys. A number that this format cannot hold \
                                 is written as text: `integer = \"18446744073709551616\"`"
                .to_owned())
        }
        other => Err(instead("value", "text, a whole number, `true` or `false`", other)),
    }
}

fn char_key(value: &Value) -> Result<Key, String> {
    let Value::Text(text) = value else { return Err(instead("char", "text of one character", value)) };
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok(letter.to_key()),
        _ => Err(format!("`char` takes text of one character, not \"{}\"", Short(text))),
    }
}

/// A whole number as text: what does not fit the integers of every format.
fn integer_key(value: &Value) -> Result<Key, String> {
    let Value::Text(text) = value else { return Err(instead("integer", "a whole number as text", value)) };
    let small = text.parse::<i128>().map(|number| number.to_key());
    small
        .or_else(|_| text.parse::<u128>().map(|number| number.to_key()))
        .map_err(|_| format!("`integer` takes a whole number of at most 128 bits, not \"{}\"", Short(text)))
}
