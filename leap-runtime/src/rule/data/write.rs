//! Rules as fields, in the words by which they are read: those that differ from the default.

use std::time::Duration;

use serde::ser::{Error, Serialize, SerializeMap, Serializer};

use super::value::{Fields, Value};
use super::words::precision_name;
use crate::key::{Key, Scalar};
use crate::rule::flow::{self, BehaviorWord};
use crate::rule::system::Limit;
use crate::rule::{
    AuthorityRule, Behavior, BreakerRule, BreakerWindow, FlowRule, HotRule, IsolationRule, KeySelector, Mode,
    NamedRule, Precision, Recovery, Relation, Rule, RuleId, RuleKind, RuleSet, Strategy, SystemRule, breaker,
    hot,
};

/// Fields in the making.
struct Writer(Fields);

impl Writer {
    fn put(&mut self, name: &str, value: Value) {
        self.0.push((name.to_owned(), value));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.put(name, Value::Text(text.to_owned()));
    }

    fn number(&mut self, name: &str, number: f64) {
        self.put(name, plain(number));
    }

    fn whole(&mut self, name: &str, number: u32) {
        self.put(name, Value::Whole(number.into()));
    }

    fn whole_unless(&mut self, name: &str, number: u32, default: u32) {
        if number != default {
            self.whole(name, number);
        }
    }

    /// A time by its word in milliseconds, or by the twin that takes text where it is no number of them.
    fn time(&mut self, name: &str, time: Duration) {
        match i64::try_from(time.as_millis()) {
            Ok(millis) if time.subsec_nanos().is_multiple_of(1_000_000) => {
                self.put(name, Value::Whole(millis.into()));
            }
            _ => self.text(name.trim_end_matches("_ms"), &super::time::text(time)),
        }
    }

    fn time_unless(&mut self, name: &str, time: Duration, default: Duration) {
        if time != default {
            self.time(name, time);
        }
    }

    fn mode(mut self, mode: Mode) -> Fields {
        if mode != Mode::default() {
            self.text("mode", mode.name());
        }
        self.0
    }
}

/// A whole number as one: it is shorter, and every format keeps it.
fn plain(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and at most 2⁵³")]
    if number.fract() == 0.0 && number.abs() <= EXACT {
        Value::Whole(number as i128)
    } else {
        Value::Number(number)
    }
}

/// Why a rule cannot be written.
pub(super) type Unwritable = String;

/// The words of a rule, its kind among them.
pub(super) fn fields(rule: &Rule) -> Result<Fields, Unwritable> {
    let mut writer = Writer(vec![]);
    writer.text("kind", rule.kind().name());
    Ok(match rule {
        Rule::Flow(rule) => flow(writer, rule),
        Rule::Isolation(rule) => isolation(writer, rule),
        Rule::Breaker(rule) => breaker(writer, rule),
        Rule::Hot(rule) => hot(writer, rule)?,
        Rule::Authority(rule) => authority(writer, rule),
        Rule::System(rule) => system(writer, rule),
    })
}

fn flow(mut writer: Writer, rule: &FlowRule) -> Fields {
    if rule.interval() == flow::INTERVAL {
        writer.number("qps", rule.limit());
    } else {
        writer.number("limit", rule.limit());
        writer.time("per_ms", rule.interval());
    }
    let behavior = match rule.behavior() {
        Behavior::Reject => BehaviorWord::Reject,
        Behavior::WarmUp { .. } => BehaviorWord::WarmUp,
        Behavior::Throttle { .. } => BehaviorWord::Throttle,
        Behavior::WarmUpThrottle { .. } => BehaviorWord::WarmUpThrottle,
    };
    if behavior != BehaviorWord::Reject {
        writer.text("behavior", behavior.name());
    }
    if let Some((period, cold_factor)) = rule.behavior().warm_up() {
        writer.time_unless("warm_up_ms", period, flow::WARM_UP);
        if cold_factor.to_bits() != flow::COLD_FACTOR.to_bits() {
            writer.number("cold_factor", cold_factor);
        }
    }
    if let Some(max_wait) = rule.behavior().max_wait() {
        writer.time_unless("max_wait_ms", max_wait, flow::MAX_WAIT);
    }
    writer.whole_unless("burst", rule.burst(), 0);
    if let Some(precision) = rule.numbers.precision {
        writer.text("precision", precision_name(precision));
    }
    writer.whole_unless("buckets", rule.n_buckets(), flow::N_BUCKETS);
    match rule.relation() {
        Relation::Own => {}
        Relation::Associated(resource) => writer.text("associated", resource),
        Relation::Entrance(entrance) => writer.text("entrance", entrance),
        Relation::Origin(origin) => writer.text("origin", origin),
        Relation::OtherOrigins => writer.put("other_origins", Value::Bool(true)),
        Relation::EachOrigin => writer.put("each_origin", Value::Bool(true)),
    }
    writer.mode(rule.mode())
}

fn isolation(mut writer: Writer, rule: &IsolationRule) -> Fields {
    writer.whole("max_concurrency", rule.max_concurrency());
    writer.time_unless("queue_ms", rule.queue_time(), Duration::ZERO);
    writer.mode(rule.mode())
}

fn breaker(mut writer: Writer, rule: &BreakerRule) -> Fields {
    match rule.strategy() {
        Strategy::SlowRatio { slow_rt, ratio } => {
            writer.time("slow_rt_ms", slow_rt);
            if ratio.to_bits() != breaker::SLOW_RATIO.to_bits() {
                writer.number("slow_ratio", ratio);
            }
        }
        Strategy::ErrorRatio { ratio } => writer.number("error_ratio", ratio),
        Strategy::ErrorCount { count } => writer.whole("error_count", count),
    }
    writer.whole_unless("min_calls", rule.min_calls(), breaker::MIN_CALLS);
    match rule.window() {
        BreakerWindow::Time { interval, n_buckets } => {
            writer.time_unless("window_ms", interval, breaker::WINDOW);
            writer.whole_unless("buckets", n_buckets, breaker::N_BUCKETS);
        }
        BreakerWindow::Calls(calls) => writer.whole("window_calls", calls),
    }
    writer.time_unless("open_ms", rule.open_time(), breaker::OPEN_FOR);
    if let Some(longest) = rule.max_open() {
        writer.time("open_max_ms", longest);
    }
    writer.whole_unless("probes", rule.probes(), breaker::PROBES);
    if let Recovery::Ramp { over } = rule.recovery() {
        writer.text("recovery", "ramp");
        writer.time_unless("ramp_ms", over, rule.open_time());
    }
    writer.mode(rule.mode())
}

fn hot(mut writer: Writer, rule: &HotRule) -> Result<Fields, Unwritable> {
    match rule.selector() {
        KeySelector::Name(name) => writer.text("key", name),
        KeySelector::Position(place) => writer.put("key", Value::Whole((*place).into())),
    }
    if let Some(limit) = rule.limit() {
        writer.number("qps", limit);
    }
    writer.time_unless("per_ms", rule.interval(), flow::INTERVAL);
    writer.whole_unless("burst", rule.burst(), 0);
    if let Some(max) = rule.max_concurrency() {
        writer.whole("max_concurrency", max);
    }
    if let Some(max_wait) = rule.max_wait() {
        writer.text("behavior", BehaviorWord::Throttle.name());
        writer.time_unless("max_wait_ms", max_wait, flow::MAX_WAIT);
    }
    writer.whole_unless("max_keys", rule.max_keys(), hot::MAX_KEYS);
    if let Some(precision) = rule.precision() {
        writer.text("precision", precision_name(precision));
    }
    let exceptions = rule.exceptions().map(|(key, limit)| exception(&key, limit));
    let exceptions: Vec<Value> = exceptions.collect::<Result<_, _>>()?;
    if !exceptions.is_empty() {
        writer.put("except", Value::List(exceptions));
    }
    Ok(writer.mode(rule.mode()))
}

/// An exception, its value under a word that says its type.
fn exception(key: &Key, limit: f64) -> Result<Value, Unwritable> {
    let value = match key.scalar() {
        Some(Scalar::Text(text)) => ("value", Value::Text(text.to_owned())),
        Some(Scalar::Bool(value)) => ("value", Value::Bool(value)),
        Some(Scalar::Char(letter)) => ("char", Value::Text(letter.into())),
        // Formats differ in how large their integers are.
        Some(Scalar::Whole(number)) if i64::try_from(number).is_ok() => ("value", Value::Whole(number)),
        Some(Scalar::Whole(number)) => ("integer", Value::Text(number.to_string())),
        Some(Scalar::Huge(number)) => ("integer", Value::Text(number.to_string())),
        None => {
            return Err(
                "an exception for a text of over 1 KiB cannot be written: only its beginning is known"
                    .to_owned(),
            );
        }
    };
    Ok(Value::Map(vec![(value.0.to_owned(), value.1), ("limit".to_owned(), plain(limit))]))
}

fn authority(mut writer: Writer, rule: &AuthorityRule) -> Fields {
    let origins = rule.origins().map(|origin| Value::Text(origin.to_owned())).collect();
    writer.put(if rule.is_allow_list() { "allow" } else { "deny" }, Value::List(origins));
    writer.mode(rule.mode())
}

fn system(mut writer: Writer, rule: &SystemRule) -> Fields {
    let as_sentinel = rule.is_as_sentinel().then_some(Precision::Sentinel);
    let precision = match &rule.limit {
        Limit::Qps(window) => {
            writer.number("qps", window.limit());
            window.numbers.precision
        }
        Limit::Concurrency(max) => {
            writer.whole("max_concurrency", *max);
            as_sentinel
        }
        Limit::AvgRt(max) => {
            writer.time("avg_rt_ms", *max);
            as_sentinel
        }
        Limit::Load(max) => {
            writer.number("load", *max);
            as_sentinel
        }
        Limit::Cpu(max) => {
            writer.number("cpu", *max);
            as_sentinel
        }
    };
    if let Some(precision) = precision {
        writer.text("precision", precision_name(precision));
    }
    writer.mode(rule.mode())
}

impl BehaviorWord {
    fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::WarmUp => "warm_up",
            Self::Throttle => "throttle",
            Self::WarmUpThrottle => "warm_up_throttle",
        }
    }
}

impl Serialize for Rule {
    /// Its kind and its words, as far as they differ from the default. What serde reads is the same rule, if the format
    /// keeps every number (`serde_json` needs its feature `float_roundtrip` for fractions of many digits).
    ///
    /// # Errors
    ///
    /// A hot rule with an exception for a text of over 1 KiB.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fields(self).map(Value::Map).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl Serialize for NamedRule {
    /// As a [`Rule`], with its resource and id.
    ///
    /// # Errors
    ///
    /// A hot rule with an exception for a text of over 1 KiB.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = fields(self.rule()).map_err(S::Error::custom)?;
        let own = [("resource", self.resource()), ("id", self.id())];
        let own = own.into_iter().filter_map(|(name, text)| Some((name, text?)));
        let mut map = serializer.serialize_map(Some(own.clone().count() + fields.len()))?;
        for (name, text) in own {
            map.serialize_entry(name, text)?;
        }
        for (name, value) in &fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

struct Rules<'a>(&'a RuleSet);

impl Serialize for Rules<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl Serialize for RuleSet {
    /// A map with the list of all rules as `rules`, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// A hot rule with an exception for a text of over 1 KiB.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("rules", &Rules(self))?;
        map.end()
    }
}

impl Serialize for RuleKind {
    /// As its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Mode {
    /// As its word: `enforce`, `off`, `shadow`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for RuleId {
    /// As text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
