//! Where words become rules.

use std::time::Duration;

use super::given::{Fault, Given, is_enough};
use super::hints::List;
use super::words::precision_name;
use crate::rule::hot::HotNumbers;
use crate::rule::{
    AuthorityRule, BehaviorWord, BreakerWords, FlowRule, FlowWords, HotRule, HotWords, IsolationRule,
    KeySelector, Mode, Precision, RecoveryWord, Relation, Rule, RuleError, RuleKind, Strategy, SystemRule,
    breaker,
};

/// The rule of these words. All that is wrong is told: what is, is forgotten, and the rest is looked at without it.
pub(super) fn build(mut given: Given, faults: &mut Vec<Fault>) -> Option<Rule> {
    loop {
        // Too much hangs on it to say anything about the others.
        if given.is_wrong("behavior") || is_enough(faults) {
            return None;
        }
        match attempt(&given) {
            Ok(rule) => return faults.is_empty().then_some(rule),
            Err(Wrong { word, .. }) if given.is_wrong(word) => return None,
            Err(Wrong { word, reason }) => {
                faults.push(Fault::of(given.name_of(word), reason));
                given.forget(word);
            }
        }
    }
}

/// What is wrong, and the word to change.
struct Wrong {
    word: &'static str,
    reason: String,
}

impl Wrong {
    fn new(word: &'static str, reason: impl Into<String>) -> Self {
        Self { word, reason: reason.into() }
    }
}

type Result<T> = std::result::Result<T, Wrong>;

fn attempt(given: &Given) -> Result<Rule> {
    Ok(match given.kind() {
        RuleKind::Flow => flow(given)?.into(),
        RuleKind::Isolation => isolation(given)?.into(),
        RuleKind::SlowRatio => {
            let slow_rt = needed(given, "slow_rt_ms", given.time("slow_rt_ms"), Duration::ZERO)?;
            let ratio = given.number("slow_ratio").unwrap_or(breaker::SLOW_RATIO);
            trips_by(given, Strategy::SlowRatio { slow_rt, ratio })?
        }
        RuleKind::ErrorRatio => {
            let ratio = needed(given, "error_ratio", given.number("error_ratio"), 1.0)?;
            trips_by(given, Strategy::ErrorRatio { ratio })?
        }
        RuleKind::ErrorCount => {
            let count = needed(given, "error_count", given.whole("error_count"), 0)?;
            trips_by(given, Strategy::ErrorCount { count })?
        }
        RuleKind::Hot => hot(given)?.into(),
        RuleKind::Authority => authority(given)?.into(),
        RuleKind::System => system(given)?.into(),
        RuleKind::Custom => return Err(Wrong::new("kind", "a check of the application's own is no data")),
    })
}

/// A word that the rule needs; where it was given wrongly, something in its place.
fn needed<T>(given: &Given, word: &'static str, value: Option<T>, instead: T) -> Result<T> {
    match value {
        Some(value) => Ok(value),
        None if given.is_wrong(word) => Ok(instead),
        None => Err(Wrong::new(word, format!("`{word}` is missing"))),
    }
}

/// Finds words that mean something with others only.
fn go_with(given: &Given, words: &[&'static str], holds: bool, what: &str) -> Result<()> {
    match words.iter().find(|word| given.has(word) && !given.is_wrong(word)) {
        Some(word) if !holds => Err(Wrong::new(word, format!("`{}` needs {what}", given.name_of(word)))),
        _ => Ok(()),
    }
}

/// Finds a second one of words of which there is one.
fn at_most_one(given: &Given, words: &[&'static str], why: &str) -> Result<()> {
    let mut all = words.iter().filter(|word| given.has(word));
    match (all.next(), all.find(|word| !given.is_wrong(word))) {
        (Some(one), Some(other)) => {
            let (one, name) = (given.name_of(one), given.name_of(other));
            Err(Wrong::new(other, format!("`{name}` does not go with `{one}`: {why}")))
        }
        _ => Ok(()),
    }
}

fn mode(given: &Given) -> Mode {
    const MODES: [Mode; 3] = [Mode::Enforce, Mode::Off, Mode::Shadow];
    let said = given.word("mode");
    MODES.into_iter().find(|mode| said == Some(mode.name())).unwrap_or_default()
}

fn precision(given: &Given) -> Option<Precision> {
    let said = given.word("precision")?;
    [Precision::Exact, Precision::Strict, Precision::Sentinel]
        .into_iter()
        .find(|one| precision_name(*one) == said)
}

fn behavior(given: &Given) -> Option<BehaviorWord> {
    given.word("behavior").map(|word| match word {
        "warm_up" => BehaviorWord::WarmUp,
        "throttle" => BehaviorWord::Throttle,
        "warm_up_throttle" => BehaviorWord::WarmUpThrottle,
        _ => BehaviorWord::Reject,
    })
}

/// The words for whose calls a flow rule is about.
pub(super) const RELATIONS: [&str; 5] = ["associated", "entrance", "origin", "other_origins", "each_origin"];

fn flow(given: &Given) -> Result<FlowRule> {
    at_most_one(given, &["qps", "limit"], "the limit is per second, or per interval")?;
    let is_per_interval = given.has("limit");
    let limit = if is_per_interval {
        if !given.has("per_ms") && !given.is_wrong("limit") {
            let why = "`limit` needs `per_ms`, the interval; a limit per second is called `qps`";
            return Err(Wrong::new("limit", why));
        }
        given.number("limit").unwrap_or(1.0)
    } else {
        go_with(given, &["per_ms"], given.is_wrong("qps") || !given.has("qps"), "`limit` instead of `qps`")?;
        match given.number("qps") {
            Some(limit) => limit,
            None if given.is_wrong("qps") => 1.0,
            None => {
                let why = "the limit is missing: `qps`, or `limit` with `per_ms`";
                return Err(Wrong::new("qps", why));
            }
        }
    };
    let behavior = behavior(given);
    let warms_up = matches!(behavior, Some(BehaviorWord::WarmUp | BehaviorWord::WarmUpThrottle));
    let paces = matches!(behavior, Some(BehaviorWord::Throttle | BehaviorWord::WarmUpThrottle));
    go_with(
        given,
        &["warm_up_ms", "cold_factor"],
        warms_up,
        "`behavior` to be `warm_up` or `warm_up_throttle`",
    )?;
    go_with(given, &["max_wait_ms"], paces, "`behavior` to be `throttle` or `warm_up_throttle`")?;
    let words = FlowWords {
        limit,
        per: given.time("per_ms"),
        behavior,
        warm_up: given.time("warm_up_ms"),
        cold_factor: given.number("cold_factor"),
        max_wait: given.time("max_wait_ms"),
        burst: given.whole("burst"),
        precision: precision(given),
        buckets: given.whole("buckets"),
        mode: mode(given),
    };
    let rule = words.numbers().map_err(|error| about(given, &error))?.alone();
    at_most_one(given, &RELATIONS, "a rule is for one entrance, origin or associated resource")?;
    let relation = [
        given.text("associated").map(|name| Relation::Associated(name.to_owned().into())),
        given.text("entrance").map(|name| Relation::Entrance(name.to_owned().into())),
        given.text("origin").map(|name| Relation::Origin(name.to_owned().into())),
        given.flag("other_origins").then_some(Relation::OtherOrigins),
        given.flag("each_origin").then_some(Relation::EachOrigin),
    ];
    match relation.into_iter().flatten().next() {
        Some(Relation::Associated(resource)) => rule.associated(resource),
        Some(relation) => rule.related(relation),
        None => Ok(rule),
    }
    .map_err(|error| about(given, &error))
}

fn isolation(given: &Given) -> Result<IsolationRule> {
    let max = needed(given, "max_concurrency", given.whole("max_concurrency"), 0)?;
    let queue = given.time("queue_ms").unwrap_or_default();
    let rule = IsolationRule::new(max).with_queue(queue).map_err(|error| about(given, &error))?;
    Ok(rule.with_mode(mode(given)))
}

fn trips_by(given: &Given, strategy: Strategy) -> Result<Rule> {
    at_most_one(given, &["window_ms", "window_calls"], "a window is of time or of calls")?;
    go_with(given, &["buckets"], !given.has("window_calls"), "a window of time, and none of `window_calls`")?;
    let ramps = given.word("recovery") == Some("ramp") || given.is_wrong("recovery");
    go_with(given, &["ramp_ms"], ramps, "`recovery` to be `ramp`")?;
    let mut words = BreakerWords {
        min_calls: given.whole("min_calls"),
        window: given.time("window_ms"),
        buckets: given.whole("buckets"),
        window_calls: given.whole("window_calls"),
        open_for: given.time("open_ms"),
        max_open: given.time("open_max_ms"),
        probes: given.whole("probes"),
        recovery: (given.word("recovery") == Some("ramp")).then_some(RecoveryWord::Ramp),
        ramp: given.time("ramp_ms"),
        mode: mode(given),
    };
    // What a wrong word is compared with cannot be wrong by it.
    if given.is_wrong("open_ms") {
        words.max_open = None;
    }
    if given.is_wrong("min_calls") {
        words.min_calls = Some(1);
    }
    if given.is_wrong("window_ms") {
        words.buckets = None;
    }
    words.rule(strategy).map(Rule::Breaker).map_err(|error| about(given, &error))
}

fn hot(given: &Given) -> Result<HotRule> {
    let place = KeySelector::Position(0);
    let selector = needed(given, "key", given.key("key").cloned(), place)?;
    let throttle = behavior(given) == Some(BehaviorWord::Throttle);
    go_with(given, &["max_wait_ms"], throttle, "`behavior` to be `throttle`")?;
    let words = HotWords {
        qps: given.number("qps").or(given.is_wrong("qps").then_some(1.0)),
        per: given.time("per_ms"),
        burst: given.whole("burst"),
        max_concurrency: given.whole("max_concurrency").or(given.is_wrong("max_concurrency").then_some(1)),
        throttle,
        max_wait: given.time("max_wait_ms"),
        max_keys: given.whole("max_keys"),
        precision: precision(given),
        mode: mode(given),
    };
    let numbers: HotNumbers = words.numbers().map_err(|error| about(given, &error))?;
    let rule = HotRule::new(selector, numbers).map_err(|error| about(given, &error))?;
    let except = given.exceptions("except").unwrap_or_default();
    rule.with_exceptions(except.iter().cloned()).map_err(|error| Wrong::new("except", error.to_string()))
}

fn authority(given: &Given) -> Result<AuthorityRule> {
    at_most_one(given, &["allow", "deny"], "whom `allow` does not name is denied")?;
    let rule = match (given.names("allow"), given.names("deny")) {
        (Some(origins), _) => AuthorityRule::allow(origins.iter().cloned()),
        (None, Some(origins)) => AuthorityRule::deny(origins.iter().cloned()),
        (None, None) if given.has("allow") || given.has("deny") => AuthorityRule::allow(["nobody"]),
        (None, None) => {
            let why =
                "the list is missing: `allow` names the origins that may call, `deny` those that may not";
            return Err(Wrong::new("allow", why));
        }
    };
    Ok(rule.map_err(|error| about(given, &error))?.with_mode(mode(given)))
}

/// What a system rule can watch, each rule one.
pub(super) const DIMENSIONS: [&str; 5] = ["load", "cpu", "qps", "max_concurrency", "avg_rt_ms"];

fn system(given: &Given) -> Result<SystemRule> {
    at_most_one(given, &DIMENSIONS, "a rule watches one figure; write a rule for each")?;
    let rule = if let Some(load) = given.number("load") {
        SystemRule::load(load)
    } else if let Some(cpu) = given.number("cpu") {
        SystemRule::cpu(cpu)
    } else if let Some(qps) = given.number("qps") {
        SystemRule::qps(qps)
    } else if let Some(max) = given.whole("max_concurrency") {
        Ok(SystemRule::concurrency(max))
    } else if let Some(max) = given.time("avg_rt_ms") {
        SystemRule::avg_rt(max)
    } else if DIMENSIONS.iter().any(|word| given.has(word)) {
        Ok(SystemRule::concurrency(0))
    } else {
        let why = format!("the figure to watch is missing: one of {}", List(&DIMENSIONS));
        return Err(Wrong::new("load", why));
    };
    let mut rule = rule.map_err(|error| about(given, &error))?;
    if let Some(precision) = precision(given) {
        if precision != Precision::Sentinel && !given.has("qps") {
            let name = precision_name(precision);
            return Err(Wrong::new(
                "precision",
                format!("`precision` `{name}` needs `qps`: no other figure is counted"),
            ));
        }
        rule = rule.with_precision(precision).map_err(|error| about(given, &error))?;
    }
    Ok(rule.with_mode(mode(given)))
}

/// The error with the word that it is about.
fn about(given: &Given, error: &RuleError) -> Wrong {
    Wrong::new(word_of(given, error), error.to_string())
}

fn word_of(given: &Given, error: &RuleError) -> &'static str {
    let first =
        |words: &[&'static str]| words.iter().find(|word| given.has(word)).copied().unwrap_or(words[0]);
    match error {
        RuleError::Limit(_) | RuleError::FractionalLimit { .. } | RuleError::ExactLimit(_) => {
            first(&["qps", "limit"])
        }
        RuleError::FractionalSystemQps(_) | RuleError::FractionalHotLimit { .. } | RuleError::NoHotLimit => {
            "qps"
        }
        RuleError::Interval(_) => first(&["per_ms", "window_ms"]),
        RuleError::Buckets { .. } => first(&["buckets", "per_ms", "window_ms"]),
        RuleError::TooManyBuckets(_) => "buckets",
        RuleError::Ratio(_) => first(&["error_ratio", "slow_ratio"]),
        RuleError::MinCalls => "min_calls",
        RuleError::OpenFor(_) => "open_ms",
        RuleError::Probes(_) => "probes",
        RuleError::SystemLoad(_) => "load",
        RuleError::CpuShare(_) => "cpu",
        RuleError::AvgRt(_) => "avg_rt_ms",
        RuleError::QueueTime(_) => "queue_ms",
        RuleError::NoOrigins | RuleError::Origin { .. } => first(&["allow", "deny"]),
        RuleError::WindowCalls(_) | RuleError::MinCallsOfWindow { .. } => "window_calls",
        RuleError::CountOfWindow { .. } => "error_count",
        RuleError::MaxOpen { .. } => "open_max_ms",
        RuleError::Ramp(_) => "ramp_ms",
        RuleError::WarmUpPeriod(_) => "warm_up_ms",
        RuleError::ColdFactor(_) | RuleError::SentinelColdFactor(_) => "cold_factor",
        RuleError::Burst(_) | RuleError::WithoutRate("burst") => "burst",
        RuleError::SecondRelation | RuleError::Name { .. } => first(&RELATIONS),
        RuleError::AssociatedBehavior => "associated",
        RuleError::KeyName(_) => "key",
        RuleError::WithoutRate("behavior") => "behavior",
        RuleError::WithoutRate(_) => "per_ms",
        RuleError::MaxWait(_) => "max_wait_ms",
        RuleError::MaxKeys(_) => "max_keys",
        RuleError::HotPrecision(_) => "precision",
        RuleError::ExceptTwice(_) => "except",
    }
}
