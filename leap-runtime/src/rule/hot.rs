//! Limits for each value of a parameter.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use super::flow::{INTERVAL, MAX_WAIT, check_buckets, is_time, or, time_or};
use super::{Mode, NAME_MAX, Precision, RuleError};
use crate::key::{Key, ToKey};

/// The most permits per window that are remembered one by one, for each value.
pub(crate) const HOT_EXACT_AT_MOST: f64 = 64.0;
/// The buckets in which more are counted.
pub(crate) const HOT_BUCKETS: u32 = 10;
/// The values that are told apart unless said otherwise.
pub(super) const MAX_KEYS: u32 = 4_000;
/// The most values that can be told apart.
pub(super) const MAX_KEYS_AT_MOST: u32 = 1_000_000;

/// By which of a call's keys a rule counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySelector {
    /// The key of this name, which an attribute's `hot(key = …, name = …)` or a call by name gives it.
    Name(Cow<'static, str>),
    /// The key at this place, counted from 0; from the end where it is negative, −1 being the last.
    Position(i32),
}

impl KeySelector {
    /// The place of the key among those of a call.
    pub(crate) fn find(&self, keys: &[(&str, Key)]) -> Option<usize> {
        match self {
            Self::Name(name) => keys.iter().position(|(key, _)| key == name),
            Self::Position(place) => {
                let distance = usize::try_from(place.unsigned_abs()).ok()?;
                let place = if *place < 0 { keys.len().checked_sub(distance)? } else { distance };
                (place < keys.len()).then_some(place)
            }
        }
    }
}

impl From<&'static str> for KeySelector {
    fn from(name: &'static str) -> Self {
        Self::Name(name.into())
    }
}

impl From<String> for KeySelector {
    fn from(name: String) -> Self {
        Self::Name(name.into())
    }
}

impl From<i32> for KeySelector {
    fn from(place: i32) -> Self {
        Self::Position(place)
    }
}

impl fmt::Display for KeySelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Position(place) => write!(f, "key at {place}"),
        }
    }
}

/// So many permits per interval, or in flight, for *each value* of a parameter.
///
/// A call that has no such key, or whose key is absent, is not asked.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use leap_runtime::HotRule;
///
/// let rule = HotRule::qps("user", 10.0)?.except("vip", 1_000.0)?;
/// assert_eq!(rule.to_string(), "hot: 10 per 1s for each `user`, 1 exception");
///
/// let last = HotRule::throttle(-1, 50.0, Duration::from_millis(200))?.with_max_concurrency(5);
/// assert_eq!(
///     last.to_string(),
///     "hot: 50 per 1s, paced with waits of up to 200ms, and at most 5 in flight for each key at -1"
/// );
/// # Ok::<(), leap_runtime::RuleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HotRule {
    selector: KeySelector,
    numbers: HotNumbers,
    exceptions: Exceptions,
}

/// What is checked of a rule, in constants too: it has nothing to drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HotNumbers {
    qps: Option<f64>,
    interval: Duration,
    burst: u32,
    max_wait: Option<Duration>,
    max_concurrency: Option<u32>,
    max_keys: u32,
    precision: Option<Precision>,
    mode: Mode,
}

#[derive(Clone, Debug)]
enum Exceptions {
    Static(&'static [(Except, f64)]),
    Owned(Vec<(Key, f64)>),
}

/// A value with a limit of its own, as a constant can hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "for expansions only")]
pub enum Except {
    Text(&'static str),
    Int(i128),
    Bool(bool),
    Char(char),
}

impl Except {
    fn key(&self) -> Key {
        match self {
            Self::Text(text) => text.to_key(),
            Self::Int(number) => number.to_key(),
            Self::Bool(value) => value.to_key(),
            Self::Char(value) => value.to_key(),
        }
    }

    const fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => {
                let (one, other) = (one.as_bytes(), other.as_bytes());
                if one.len() != other.len() {
                    return false;
                }
                let mut i = 0;
                while i < one.len() {
                    if one[i] != other[i] {
                        return false;
                    }
                    i += 1;
                }
                true
            }
            (Self::Int(one), Self::Int(other)) => *one == *other,
            (Self::Bool(one), Self::Bool(other)) => *one == *other,
            (Self::Char(one), Self::Char(other)) => *one == *other,
            _ => false,
        }
    }
}

/// What the attribute or data say of a limit for each value, in their words.
#[derive(Clone, Copy)]
pub(crate) struct HotWords {
    pub(crate) qps: Option<f64>,
    pub(crate) per: Option<Duration>,
    pub(crate) burst: Option<u32>,
    pub(crate) max_concurrency: Option<u32>,
    /// `behavior = throttle`.
    pub(crate) throttle: bool,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) max_keys: Option<u32>,
    pub(crate) precision: Option<Precision>,
    pub(crate) mode: Mode,
}

impl HotWords {
    /// The numbers of the rule, with defaults for what is not said.
    pub(crate) const fn numbers(self) -> Result<HotNumbers, RuleError> {
        if self.qps.is_none() {
            let setting = if self.per.is_some() {
                Some("per_ms")
            } else if self.burst.is_some() {
                Some("burst")
            } else if self.throttle {
                Some("behavior")
            } else {
                None
            };
            // Without a limit of any kind it is that which is missing.
            if let (Some(setting), Some(_)) = (setting, self.max_concurrency) {
                return Err(RuleError::WithoutRate(setting));
            }
        }
        let mut numbers = HotNumbers::new(self.qps, self.max_concurrency);
        numbers.interval = time_or(self.per, INTERVAL);
        numbers.burst = or(self.burst, 0);
        if self.throttle {
            numbers.max_wait = Some(time_or(self.max_wait, MAX_WAIT));
        }
        numbers.max_keys = or(self.max_keys, MAX_KEYS);
        numbers.precision = self.precision;
        numbers.mode = self.mode;
        numbers.checked()
    }
}

impl HotNumbers {
    /// Whether an attribute's rule can have this name and these exceptions.
    pub(crate) const fn check_static(&self, name: &str, except: &[(Except, f64)]) -> Result<(), RuleError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(RuleError::KeyName(name.len()));
        }
        let mut i = 0;
        while i < except.len() {
            if let Err(error) = self.check_limit(except[i].1) {
                return Err(error);
            }
            let mut earlier = 0;
            while earlier < i {
                if except[earlier].0.is(&except[i].0) {
                    return Err(RuleError::ExceptTwice(i));
                }
                earlier += 1;
            }
            i += 1;
        }
        Ok(())
    }

    /// The rule of an attribute, [checked](Self::check_static).
    pub(crate) const fn rule_static(self, name: &'static str, except: &'static [(Except, f64)]) -> HotRule {
        HotRule {
            selector: KeySelector::Name(Cow::Borrowed(name)),
            numbers: self,
            exceptions: Exceptions::Static(except),
        }
    }

    const fn new(qps: Option<f64>, max_concurrency: Option<u32>) -> Self {
        Self {
            qps,
            interval: INTERVAL,
            burst: 0,
            max_wait: None,
            max_concurrency,
            max_keys: MAX_KEYS,
            precision: None,
            mode: Mode::Enforce,
        }
    }

    const fn checked(self) -> Result<Self, RuleError> {
        match (self.qps, self.max_concurrency) {
            (None, None) => return Err(RuleError::NoHotLimit),
            (Some(qps), _) => {
                if let Err(error) = self.check_limit(qps) {
                    return Err(error);
                }
            }
            (None, Some(_)) => {}
        }
        if !is_time(self.interval) {
            return Err(RuleError::Interval(self.interval));
        }
        if let Some(max_wait) = self.max_wait
            && !(max_wait.is_zero() || is_time(max_wait))
        {
            return Err(RuleError::MaxWait(max_wait));
        }
        if self.max_keys == 0 || self.max_keys > MAX_KEYS_AT_MOST {
            return Err(RuleError::MaxKeys(self.max_keys));
        }
        match self.precision {
            None | Some(Precision::Sentinel) => Ok(self),
            Some(precision) => Err(RuleError::HotPrecision(precision)),
        }
    }

    /// Whether `limit` can stand for one value of the parameter.
    const fn check_limit(&self, limit: f64) -> Result<(), RuleError> {
        if !(limit >= 0.0 && limit.is_finite()) {
            return Err(RuleError::Limit(limit));
        }
        let is_window = self.qps.is_some() && self.max_wait.is_none();
        if is_window && limit > 0.0 && limit < 1.0 {
            return Err(RuleError::FractionalHotLimit { limit, interval: self.interval });
        }
        let is_counted = is_window && self.burst == 0 && self.precision.is_none();
        if is_counted && limit > HOT_EXACT_AT_MOST {
            return check_buckets(self.interval, HOT_BUCKETS);
        }
        Ok(())
    }
}

impl HotRule {
    /// Allows `limit` permits per second for each value; 0 blocks every call that has the key.
    ///
    /// `key` is the key's name, or its place among those of a call.
    ///
    /// # Errors
    ///
    /// A limit that is negative, infinite, not a number, or between 0 and 1; a name that is empty or over 1 KiB.
    pub fn qps(key: impl Into<KeySelector>, limit: f64) -> Result<Self, RuleError> {
        Self::new(key.into(), HotNumbers::new(Some(limit), None))
    }

    /// Lets the calls of each value start at an even pace, `limit` permits per second; those that would wait longer
    /// than `max_wait` for their turn are blocked. Any limit above 0 is a pace; 0 blocks every call that has the key.
    ///
    /// # Errors
    ///
    /// A limit that is negative, infinite or not a number; a wait of over a year; a name that is empty or over 1 KiB.
    pub fn throttle(key: impl Into<KeySelector>, limit: f64, max_wait: Duration) -> Result<Self, RuleError> {
        let numbers = HotNumbers { max_wait: Some(max_wait), ..HotNumbers::new(Some(limit), None) };
        Self::new(key.into(), numbers)
    }

    /// Allows `max_concurrency` permits in flight for each value; 0 blocks every call that has the key.
    ///
    /// # Errors
    ///
    /// A name that is empty or over 1 KiB.
    pub fn concurrency(key: impl Into<KeySelector>, max_concurrency: u32) -> Result<Self, RuleError> {
        Self::new(key.into(), HotNumbers::new(None, Some(max_concurrency)))
    }

    pub(super) fn new(selector: KeySelector, numbers: HotNumbers) -> Result<Self, RuleError> {
        if let KeySelector::Name(name) = &selector
            && (name.is_empty() || name.len() > NAME_MAX)
        {
            return Err(RuleError::KeyName(name.len()));
        }
        Self { selector, numbers, exceptions: Exceptions::Owned(vec![]) }.checked()
    }

    /// Sets the interval that the limit is for (1 s).
    ///
    /// # Errors
    ///
    /// A rule without a rate; an interval of 0 or over 366 days; with a limit over 64 and no burst, one that does not
    /// divide into 10 equal parts of at least 1 µs.
    pub fn per(mut self, interval: Duration) -> Result<Self, RuleError> {
        self.numbers.interval = interval;
        self.needs_rate("per")?.checked()
    }

    /// Lets a value that was quiet have more at once: of calls that are rejected above the limit, `burst` permits more
    /// than it; of calls at a pace, `burst` permits without a wait in between.
    ///
    /// Rejecting then goes by a token bucket: at most `limit + burst` permits at once, and at most
    /// `limit + burst + limit · t` in any time of `t` intervals.
    ///
    /// # Errors
    ///
    /// A rule without a rate.
    pub fn with_burst(mut self, burst: u32) -> Result<Self, RuleError> {
        self.numbers.burst = burst;
        self.needs_rate("burst")?.checked()
    }

    /// Sets how many permits may be in flight for each value, besides its rate.
    #[must_use]
    pub fn with_max_concurrency(mut self, max_concurrency: u32) -> Self {
        self.numbers.max_concurrency = Some(max_concurrency);
        self
    }

    /// Gives one value (or each of a collection) a limit of its own: a rate where the rule has one, otherwise so many
    /// whole permits in flight. Such a value is always counted on its own, whatever [`max_keys`](Self::max_keys) is.
    ///
    /// # Errors
    ///
    /// A limit that the rule could not have either, or a second one for the same value.
    pub fn except(self, key: impl ToKey, limit: f64) -> Result<Self, RuleError> {
        self.numbers.check_limit(limit)?;
        self.with_exceptions(key.to_key().elements().iter().map(|key| (key.clone(), limit)))
    }

    /// As [`except`](Self::except), for many.
    pub(super) fn with_exceptions(
        mut self,
        more: impl IntoIterator<Item = (Key, f64)>,
    ) -> Result<Self, RuleError> {
        let mut exceptions: Vec<_> = self.exceptions().collect();
        let mut known: HashSet<Key> = exceptions.iter().map(|(key, _)| key.clone()).collect();
        for (key, limit) in more {
            self.numbers.check_limit(limit)?;
            if !known.insert(key.clone()) {
                return Err(RuleError::ExceptTwice(exceptions.len()));
            }
            exceptions.push((key, limit));
        }
        self.exceptions = Exceptions::Owned(exceptions);
        Ok(self)
    }

    /// Sets how many values are told apart at a time (4 000).
    ///
    /// Beyond that a value at rest makes room: nothing of it in flight, its window empty, its bucket full, its turns
    /// over. Where none is found at once, further values share one more count, and the limit holds for them together.
    ///
    /// # Errors
    ///
    /// 0, or more than 1 000 000.
    pub fn with_max_keys(mut self, max_keys: u32) -> Result<Self, RuleError> {
        self.numbers.max_keys = max_keys;
        self.checked()
    }

    /// Follows Sentinel's arithmetic, the only precision that a hot rule can be given: a token bucket that is refilled
    /// once per interval, waits in whole milliseconds and shorter than the longest. The interval counts in whole
    /// milliseconds, rounded up.
    ///
    /// # Errors
    ///
    /// Any other precision.
    pub fn with_precision(mut self, precision: Precision) -> Result<Self, RuleError> {
        self.numbers.precision = Some(precision);
        self.checked()
    }

    /// Sets whether the rule decides.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.numbers.mode = mode;
        self
    }

    fn needs_rate(self, setting: &'static str) -> Result<Self, RuleError> {
        if self.numbers.qps.is_none() { Err(RuleError::WithoutRate(setting)) } else { Ok(self) }
    }

    fn checked(mut self) -> Result<Self, RuleError> {
        self.numbers = self.numbers.checked()?;
        for (_, limit) in self.exceptions() {
            self.numbers.check_limit(limit)?;
        }
        Ok(self)
    }

    /// The key that the rule counts by.
    pub fn selector(&self) -> &KeySelector {
        &self.selector
    }

    /// The permits allowed per interval for each value, if that is limited.
    pub const fn limit(&self) -> Option<f64> {
        self.numbers.qps
    }

    /// The interval that the limit is for.
    pub const fn interval(&self) -> Duration {
        self.numbers.interval
    }

    /// The permits that a quiet value may have beyond the limit.
    pub const fn burst(&self) -> u32 {
        self.numbers.burst
    }

    /// The longest wait for a turn, if calls are paced.
    pub const fn max_wait(&self) -> Option<Duration> {
        self.numbers.max_wait
    }

    /// The permits that may be in flight for each value, if that is limited.
    pub const fn max_concurrency(&self) -> Option<u32> {
        self.numbers.max_concurrency
    }

    /// How many values are told apart at a time.
    pub const fn max_keys(&self) -> u32 {
        self.numbers.max_keys
    }

    /// [`Sentinel`](Precision::Sentinel) where its arithmetic is followed.
    pub const fn precision(&self) -> Option<Precision> {
        self.numbers.precision
    }

    /// Whether the rule decides.
    pub const fn mode(&self) -> Mode {
        self.numbers.mode
    }

    /// The values with limits of their own.
    pub fn exceptions(&self) -> impl Iterator<Item = (Key, f64)> + '_ {
        let (fixed, owned) = match &self.exceptions {
            Exceptions::Static(fixed) => (*fixed, &[][..]),
            Exceptions::Owned(owned) => (&[][..], owned.as_slice()),
        };
        let fixed = fixed.iter().map(|(except, limit)| (except.key(), *limit));
        fixed.chain(owned.iter().map(|(key, limit)| (key.clone(), *limit)))
    }
}

impl PartialEq for HotRule {
    fn eq(&self, other: &Self) -> bool {
        self.selector == other.selector
            && self.numbers == other.numbers
            && self.exceptions().eq(other.exceptions())
    }
}

impl fmt::Display for HotRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HotNumbers { qps, interval, burst, max_wait, max_concurrency, max_keys, precision, .. } =
            self.numbers;
        f.write_str("hot: ")?;
        if let Some(qps) = qps {
            write!(f, "{qps} per {interval:?}")?;
            match max_wait {
                Some(max_wait) => write!(f, ", paced with waits of up to {max_wait:?}")?,
                None if burst > 0 => write!(f, " and {burst} at once")?,
                None => {}
            }
            if max_wait.is_some() && burst > 1 {
                write!(f, " beyond {burst} at once")?;
            }
        }
        if let Some(max_concurrency) = max_concurrency {
            let and = if qps.is_some() { ", and " } else { "" };
            write!(f, "{and}at most {max_concurrency} in flight")?;
        }
        write!(f, " for each {}", self.selector)?;
        match self.exceptions().count() {
            0 => {}
            1 => f.write_str(", 1 exception")?,
            n => write!(f, ", {n} exceptions")?,
        }
        if max_keys != MAX_KEYS {
            write!(f, ", {max_keys} keys")?;
        }
        if precision.is_some() {
            f.write_str(", as Sentinel")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;

    const WORDS: HotWords = HotWords {
        qps: Some(10.0),
        per: None,
        burst: None,
        max_concurrency: None,
        throttle: false,
        max_wait: None,
        max_keys: None,
        precision: None,
        mode: Mode::Enforce,
    };

    /// As an attribute has it: the numbers are checked by the compiler.
    static RULE: HotRule = match WORDS.numbers() {
        Ok(numbers) => numbers.rule_static("user", &[(Except::Text("vip"), 1_000.0), (Except::Int(42), 1.0)]),
        Err(error) => panic!("{}", error.headline()),
    };

    #[test]
    fn a_rule_in_a_constant_is_the_one_made_at_run_time() {
        let made =
            HotRule::qps("user", 10.0).unwrap().except("vip", 1_000.0).unwrap().except(42_u8, 1.0).unwrap();
        assert_eq!(RULE, made);
        assert_eq!(RULE.clone().with_max_concurrency(3), made.with_max_concurrency(3));
    }

    /// D03: a rule without a selector cannot be made at all.
    #[test]
    fn a_key_is_found_by_name_or_by_its_place_from_either_end() {
        let keys = [("user", 1.to_key()), ("sku", 2.to_key())];
        for (selector, place) in [
            (KeySelector::from("sku"), Some(1)),
            ("nobody".into(), None),
            (0.into(), Some(0)),
            (1.into(), Some(1)),
            (2.into(), None),
            (5.into(), None),
            ((-1).into(), Some(1)),
            ((-2).into(), Some(0)),
            ((-3).into(), None),
            (i32::MIN.into(), None),
        ] {
            assert_eq!(selector.find(&keys), place, "{selector}");
        }
        assert_eq!(KeySelector::from(-1).find(&[]), None);
    }

    #[test]
    fn a_name_has_1_to_1024_bytes() {
        assert_eq!(HotRule::qps("", 1.0), Err(RuleError::KeyName(0)));
        assert!(HotRule::qps("x".repeat(1_024), 1.0).is_ok());
        assert_eq!(HotRule::concurrency("x".repeat(1_025), 1), Err(RuleError::KeyName(1_025)));
        assert_eq!(WORDS.numbers().unwrap().check_static("", &[]), Err(RuleError::KeyName(0)));
    }

    #[test]
    fn a_rule_limits_something() {
        assert_eq!(HotWords { qps: None, ..WORDS }.numbers(), Err(RuleError::NoHotLimit));
        assert!(HotWords { qps: None, max_concurrency: Some(0), ..WORDS }.numbers().is_ok());
    }

    #[test]
    fn a_limit_is_0_or_at_least_1_unless_it_is_a_pace() {
        for limit in [0.0, 1.0, 2.5, 1e308] {
            assert!(HotRule::qps("user", limit).is_ok(), "{limit}");
        }
        for limit in [-1.0, f64::NAN, f64::INFINITY, 0.5] {
            assert!(HotRule::qps("user", limit).is_err(), "{limit}");
            assert!(HotRule::qps("user", 5.0).unwrap().except("vip", limit).is_err(), "{limit}");
        }
        assert_eq!(
            HotRule::qps("user", 0.5).unwrap_err().to_string(),
            "a limit of 0.5 per 1s for each value would never let a call through; say 1 per 2s instead, or pace the calls"
        );
        assert!(HotRule::throttle("user", 0.2, Duration::ZERO).unwrap().except("vip", 0.1).is_ok());
        assert!(HotRule::throttle("user", f64::NAN, Duration::ZERO).is_err());
    }

    #[test]
    fn burst_and_interval_go_with_a_rate() {
        let concurrency = || HotRule::concurrency("user", 5).unwrap();
        assert_eq!(concurrency().with_burst(1), Err(RuleError::WithoutRate("burst")));
        assert_eq!(concurrency().per(Duration::from_secs(2)), Err(RuleError::WithoutRate("per")));
        assert!(HotRule::qps("user", 5.0).unwrap().with_burst(1).is_ok());
        let words = HotWords { qps: None, max_concurrency: Some(1), ..WORDS };
        assert_eq!(HotWords { burst: Some(1), ..words }.numbers(), Err(RuleError::WithoutRate("burst")));
        assert_eq!(HotWords { throttle: true, ..words }.numbers(), Err(RuleError::WithoutRate("behavior")));
    }

    #[test]
    fn what_is_counted_in_buckets_needs_an_interval_of_ten() {
        let odd = Duration::from_nanos(1_000_000_001);
        assert!(HotRule::qps("user", 64.0).unwrap().per(odd).is_ok());
        let error = RuleError::Buckets { interval: odd, n_buckets: 10 };
        assert_eq!(HotRule::qps("user", 65.0).unwrap().per(odd), Err(error));
        assert_eq!(HotRule::qps("user", 1.0).unwrap().except("vip", 65.0).unwrap().per(odd), Err(error));
        assert!(HotRule::qps("user", 65.0).unwrap().with_burst(1).unwrap().per(odd).is_ok());
    }

    #[test]
    fn between_1_and_a_million_values_are_told_apart() {
        for (max_keys, is_right) in [(0, false), (1, true), (1_000_000, true), (1_000_001, false)] {
            let rule = HotRule::qps("user", 1.0).unwrap().with_max_keys(max_keys);
            assert_eq!(rule.is_ok(), is_right, "{max_keys}");
        }
    }

    #[test]
    fn a_value_has_one_limit() {
        let rule = || HotRule::qps("user", 5.0).unwrap().except(42_u64, 1.0).unwrap();
        assert_eq!(rule().except(42_i32, 2.0), Err(RuleError::ExceptTwice(1)));
        assert!(rule().except("42", 2.0).is_ok());
        let twice = &[(Except::Text("a"), 1.0), (Except::Char('a'), 1.0), (Except::Text("a"), 2.0)];
        let numbers = WORDS.numbers().unwrap();
        assert_eq!(numbers.check_static("user", twice), Err(RuleError::ExceptTwice(2)));
    }

    #[test]
    fn sentinel_is_the_only_precision_to_ask_for() {
        let rule = || HotRule::qps("user", 5.0).unwrap();
        assert!(rule().with_precision(Precision::Sentinel).is_ok());
        assert_eq!(rule().with_precision(Precision::Exact), Err(RuleError::HotPrecision(Precision::Exact)));
    }

    #[test]
    fn a_rule_says_what_it_is() {
        let shown = |rule: Result<HotRule, RuleError>| rule.unwrap().to_string();
        assert_eq!(shown(HotRule::concurrency(0, 3)), "hot: at most 3 in flight for each key at 0");
        assert_eq!(
            shown(HotRule::qps("user", 10.0).unwrap().with_burst(5)),
            "hot: 10 per 1s and 5 at once for each `user`"
        );
        assert_eq!(
            shown(
                HotRule::throttle("user", 10.0, Duration::ZERO)
                    .unwrap()
                    .with_precision(Precision::Sentinel)
                    .unwrap()
                    .with_max_keys(9)
            ),
            "hot: 10 per 1s, paced with waits of up to 0ns for each `user`, 9 keys, as Sentinel"
        );
    }
}
