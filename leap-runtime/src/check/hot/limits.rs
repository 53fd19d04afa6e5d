//! What a rule allows one value, ready to be asked: the rule's numbers, chosen and converted once per load.

use super::pace::{Pace, whole};
use super::sentinel;
use crate::rule::{HOT_EXACT_AT_MOST, HotRule};
use crate::window::Ring;

/// The limits of one value of the parameter.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) rate: Rate,
    /// As the rule gives it, for whoever is refused.
    pub(super) limit: f64,
    pub(super) interval_ns: u64,
    pub(super) concurrency: Option<u32>,
}

/// How the rate of a value is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    /// It is not limited.
    Free,
    /// Nothing passes.
    Nothing,
    /// By when each of the last permits passed.
    Log { permits: u64 },
    /// In buckets, counting the one that ends in the interval too.
    Ring { permits: u64 },
    /// By a token bucket.
    Bucket(Pace),
    /// By turns.
    Turns(Pace),
    /// As Sentinel's token bucket.
    SentinelBucket(sentinel::Rate),
    /// As Sentinel's turns.
    SentinelTurns(sentinel::Rate),
}

impl Limits {
    /// What `rule` allows a value whose limit is `exception`, or one without a limit of its own.
    pub(super) fn new(rule: &HotRule, exception: Option<f64>) -> Self {
        let interval_ns = u64::try_from(rule.interval().as_nanos()).expect("at most a year");
        let (rate, limit, concurrency) = match rule.limit() {
            Some(limit) => {
                let limit = exception.unwrap_or(limit);
                (Rate::new(rule, limit, interval_ns), limit, rule.max_concurrency())
            }
            None => {
                let exception = exception.map(|limit| u32::try_from(whole(limit)).unwrap_or(u32::MAX));
                (Rate::Free, f64::INFINITY, exception.or(rule.max_concurrency()))
            }
        };
        Self { rate, limit, interval_ns, concurrency }
    }

    /// Whether both allow the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.rate, self.interval_ns, self.concurrency) == (other.rate, other.interval_ns, other.concurrency)
            && self.limit.to_bits() == other.limit.to_bits()
    }
}

impl Rate {
    fn new(rule: &HotRule, limit: f64, interval_ns: u64) -> Self {
        let max_wait_ns =
            rule.max_wait().map(|max_wait| u64::try_from(max_wait.as_nanos()).expect("at most a year"));
        if rule.precision().is_some() {
            let rate = sentinel::Rate {
                tokens: whole(limit),
                burst: rule.burst().into(),
                span_ms: interval_ns.div_ceil(1_000_000),
                max_wait_ms: max_wait_ns.unwrap_or(0) / 1_000_000,
            };
            return match max_wait_ns {
                _ if rate.tokens == 0 => Self::Nothing,
                Some(_) => Self::SentinelTurns(rate),
                None => Self::SentinelBucket(rate),
            };
        }
        match max_wait_ns {
            _ if limit == 0.0 => Self::Nothing,
            Some(max_wait_ns) => Self::Turns(Pace::turns(limit, rule.burst(), interval_ns, max_wait_ns)),
            None if rule.burst() > 0 => Self::Bucket(Pace::bucket(limit, rule.burst(), interval_ns)),
            None if limit <= HOT_EXACT_AT_MOST => Self::Log { permits: whole(limit) },
            None if whole(limit) <= Ring::MAX_COUNT => Self::Ring { permits: whole(limit) },
            None => Self::Free,
        }
    }
}
