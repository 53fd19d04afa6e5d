//! Hot-parameter rules at work: limits for each value of a parameter.
//!
//! `limits` is what the rule allows a value, `gate` what a value has taken, `table` the gates of all values in bounded
//! memory; `pace` and `sentinel` are the arithmetic.

mod gate;
mod limits;
mod pace;
mod sentinel;
mod table;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use self::limits::Limits;
use self::table::{Ask, Held, Table};
use crate::clock::{Reading, Timestamp};
use crate::key::Key;
use crate::rule::{HotRule, RuleId};
use crate::sync::{AtomicU64, Ordering::Relaxed};
use crate::window::HotLeapArray;

/// How finely the most frequent values are counted: a share of 1/64 of the calls is always seen.
const TOP_CAPACITY: usize = 64;
const TOP_BUCKETS: u32 = 5;

/// A hot-parameter rule, at work.
#[derive(Debug)]
pub(crate) struct Hot {
    id: RuleId,
    rule: HotRule,
    limits: Arc<Limits>,
    /// By hash.
    exceptions: Box<[Exception]>,
    /// How many loads the state has lived through.
    generation: u32,
    state: Arc<State>,
    top: Arc<HotLeapArray<Key>>,
}

#[derive(Debug)]
struct Exception {
    hash: u64,
    key: Key,
    limits: Arc<Limits>,
}

/// What lives on over reloads.
#[derive(Debug)]
struct State {
    table: Table,
    hasher: RandomState,
    missing: AtomicU64,
}

/// What a value's gate saw when it refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Refused {
    /// The value's limit is reached. Without `until`, so many permits never pass at once.
    Rate { limit: f64, until: Option<Timestamp> },
    /// The wait for a turn would be too long.
    Pace { limit: f64, wait_ns: u64, until: Timestamp },
    /// Too many permits are in flight.
    Concurrency { limit: u32, in_flight: u32 },
    /// Several elements of the call's collection were asked for together, `asked` permits in all; or its value shares one
    /// limit with others that have no place.
    Together { asked: u64, is_shared: bool, of: Limit, until: Option<Timestamp> },
    /// More values than are asked for.
    TooLarge { n_values: usize },
}

/// A limit that was asked for several values together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    Rate { limit: f64 },
    Pace { limit: f64 },
    Concurrency { limit: u32, in_flight: u32 },
}

impl Refused {
    /// From when on a call has another chance, where it is known.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Rate { until, .. } | Self::Together { until, .. } => *until,
            Self::Pace { until, .. } => Some(*until),
            Self::Concurrency { .. } | Self::TooLarge { .. } => None,
        }
    }

    /// The same, for what was asked for together.
    fn together(self, asked: u64, is_shared: bool) -> Self {
        let of = match self {
            Self::Rate { limit, .. } => Limit::Rate { limit },
            Self::Pace { limit, .. } => Limit::Pace { limit },
            Self::Concurrency { limit, in_flight } => Limit::Concurrency { limit, in_flight },
            Self::Together { .. } | Self::TooLarge { .. } => return self,
        };
        Self::Together { asked, is_shared, of, until: self.until() }
    }

    /// Of two values of one call: the first is named, with the later moment.
    fn and(self, other: Self) -> Self {
        match (self, other.until()) {
            (Self::Rate { limit, until: Some(until) }, Some(other)) => {
                Self::Rate { limit, until: Some(until.max(other)) }
            }
            (Self::Pace { limit, wait_ns, until }, Some(other)) => {
                Self::Pace { limit, wait_ns, until: until.max(other) }
            }
            (Self::Rate { limit, .. } | Self::Pace { limit, .. }, _) => Self::Rate { limit, until: None },
            (Self::Together { asked, is_shared, of, until }, other) => {
                let until = until.zip(other).map(|(until, other)| until.max(other));
                Self::Together { asked, is_shared, of, until }
            }
            (first @ (Self::Concurrency { .. } | Self::TooLarge { .. }), _) => first,
        }
    }
}

/// A call that its values let through.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// To be kept until the call ends; nothing where there is nothing to give back.
    pub(crate) hold: Option<Hold>,
    /// When the call may start, if not now.
    pub(crate) start: Option<Timestamp>,
}

/// What a call holds of its values, to be dropped when it ends: permits in flight come back with that, turns only by [`give_back`](Self::give_back).
#[derive(Debug)]
pub(crate) struct Hold {
    first: Held,
    others: Vec<Held>,
}

impl Hold {
    fn of(held: impl IntoIterator<Item = Held>) -> Option<Self> {
        let mut held = held.into_iter();
        let first = held.next()?;
        Some(Self { first, others: held.collect() })
    }

    /// Whether permits in flight are among it.
    pub(crate) fn has_permits(&self) -> bool {
        self.first.has_permits() || self.others.iter().any(Held::has_permits)
    }

    /// The call did not start: its wait was cancelled, or a later check refused it. Permits come back, and turns behind
    /// which nobody queued.
    pub(crate) fn give_back(self) {
        // The last one first, as turns of one value lie behind each other.
        self.others.iter().rev().for_each(Held::give_back);
        self.first.give_back();
    }
}

impl Hot {
    /// The rule at work. What each value has taken so far counts on, if `previous` is the same rule before a load and
    /// counted by the same key.
    pub(crate) fn new(id: RuleId, rule: HotRule, previous: Option<&Self>) -> Self {
        let previous = previous.filter(|previous| previous.rule.selector() == rule.selector());
        let state = previous.map_or_else(|| Arc::new(State::new()), |previous| Arc::clone(&previous.state));
        // Limits that stay are the very same, so that their gates need not be converted.
        let same = |limits: Limits, before: Option<&Arc<Limits>>| match before {
            Some(before) if before.is_like(&limits) => Arc::clone(before),
            _ => Arc::new(limits),
        };
        let limits = same(Limits::new(&rule, None), previous.map(|previous| &previous.limits));
        let mut exceptions: Vec<_> = rule
            .exceptions()
            .map(|(key, limit)| {
                let hash = state.hasher.hash_one(&key);
                let before = previous.and_then(|previous| previous.exception(hash, &key));
                Exception { hash, limits: same(Limits::new(&rule, Some(limit)), before), key }
            })
            .collect();
        exceptions.sort_by_key(|exception| exception.hash);
        let top = previous.filter(|previous| previous.top_interval() == top_interval(&rule)).map_or_else(
            || {
                let top = HotLeapArray::new(TOP_BUCKETS, top_interval(&rule), TOP_CAPACITY);
                Arc::new(top.expect("whole seconds divide by five"))
            },
            |previous| Arc::clone(&previous.top),
        );
        Self {
            id,
            limits,
            exceptions: exceptions.into(),
            generation: previous.map_or(0, |previous| previous.generation.saturating_add(1)),
            state,
            top,
            rule,
        }
    }

    pub(crate) fn id(&self) -> &RuleId {
        &self.id
    }

    pub(crate) fn rule(&self) -> &HotRule {
        &self.rule
    }

    /// The key of a call that the rule counts by. A call without one passes.
    #[inline]
    pub(crate) fn key_of<'a>(&self, keys: &'a [(&str, Key)]) -> Option<&'a Key> {
        self.rule.selector().find(keys).map(|place| &keys[place].1).filter(|key| !key.is_absent())
    }

    /// Counts a call without a key.
    pub(crate) fn note_missing(&self) {
        self.state.missing.fetch_add(1, Relaxed);
    }

    /// What a call of `n` permits, at least 1, would be told. Takes nothing.
    pub(crate) fn peek(
        &self,
        key: &Key,
        n: u32,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(), Refused> {
        self.with_asks(key, n, |asks| self.state.table.peek(asks, now, now, reading).map(drop))
    }

    /// As [`peek`](Self::peek): when a call that has other turns to wait for until `at_least` could start, if not now.
    pub(crate) fn start(
        &self,
        key: &Key,
        n: u32,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Option<Timestamp>, Refused> {
        self.with_asks(key, n, |asks| self.state.table.peek(asks, now, at_least, reading))
    }

    /// Whether calls may have to wait for their turn.
    pub(crate) fn is_paced(&self) -> bool {
        self.rule.max_wait().is_some()
    }

    /// As [`peek`](Self::peek), for a call that is about to [`take`](Self::take) if it may: what it asks for counts for
    /// [`top`](Self::top), whether it passes or not.
    pub(crate) fn meet(
        &self,
        key: &Key,
        n: u32,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(), Refused> {
        self.with_asks(key, n, |asks| {
            for ask in asks {
                self.top.record_hashed(now, ask.hash, ask.key, ask.n);
            }
            let table = &self.state.table;
            table.peek(asks, now, now, reading).map(drop).inspect_err(|_| {
                if table.n_keys() >= self.rule.max_keys() {
                    table.look_further(asks, now);
                }
            })
        })
    }

    /// Takes `n` permits, at least 1, of the key's value; or of each of its values, all of them or nothing. Turns are taken
    /// from `at_least` on.
    #[inline]
    pub(crate) fn take(
        &self,
        key: &Key,
        n: u32,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Taken, Refused> {
        self.with_asks(key, n, |asks| match asks {
            [ask] => {
                let (start, held) = self.state.table.take(ask, now, at_least, reading)?;
                Ok(Taken { hold: Hold::of(held), start })
            }
            asks => self.take_each(asks, now, at_least, reading),
        })
    }

    #[cold]
    fn take_each(
        &self,
        asks: &[Ask<'_>],
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Taken, Refused> {
        let (start, held) = self.state.table.take_all(asks, now, at_least, reading)?;
        Ok(Taken { hold: Hold::of(held), start })
    }

    /// What is to be asked for a key: of one value without an allocation.
    #[inline]
    fn with_asks<R>(
        &self,
        key: &Key,
        n: u32,
        with: impl FnOnce(&[Ask<'_>]) -> Result<R, Refused>,
    ) -> Result<R, Refused> {
        match key.elements() {
            [key] => with(&[self.ask(key, n)]),
            // Before anything is done for each.
            keys if keys.len() > Key::MAX_ELEMENTS => Err(Refused::TooLarge { n_values: keys.len() }),
            keys => with(&self.ask_each(keys, n)),
        }
    }

    fn ask<'a>(&'a self, key: &'a Key, n: u32) -> Ask<'a> {
        let hash = self.state.hasher.hash_one(key);
        let exception = self.exception(hash, key);
        Ask {
            key,
            hash,
            n: n.max(1).into(),
            n_named: 1,
            limits: exception.unwrap_or(&self.limits),
            is_exception: exception.is_some(),
            generation: self.generation,
            max_keys: self.rule.max_keys(),
        }
    }

    /// Each value once, asked for as often as it occurs.
    fn ask_each<'a>(&'a self, keys: &'a [Key], n: u32) -> Vec<Ask<'a>> {
        let mut asks: Vec<_> = keys.iter().map(|key| self.ask(key, n)).collect();
        asks.sort_by(|one, other| (one.hash, one.key).cmp(&(other.hash, other.key)));
        asks.dedup_by(|again, first| {
            let is_same = again.key == first.key;
            if is_same {
                first.n = first.n.saturating_add(again.n);
                first.n_named += 1;
            }
            is_same
        });
        asks
    }

    fn exception(&self, hash: u64, key: &Key) -> Option<&Arc<Limits>> {
        let first = self.exceptions.partition_point(|exception| exception.hash < hash);
        let of_hash = self.exceptions[first..].iter().take_while(|exception| exception.hash == hash);
        of_hash.into_iter().find(|exception| exception.key == *key).map(|exception| &exception.limits)
    }

    /// How many values are counted on their own.
    pub(crate) fn n_keys(&self) -> u32 {
        self.state.table.n_keys()
    }

    /// How many calls had no key for this rule.
    pub(crate) fn missing(&self) -> u64 {
        self.state.missing.load(Relaxed)
    }

    /// How often a value had to be counted together with others because [`max_keys`](HotRule::max_keys) were counted.
    pub(crate) fn overflowed(&self) -> u64 {
        self.state.table.overflowed()
    }

    /// The up to `k` values that were asked for most in the last [`top_interval`](Self::top_interval): the value, its
    /// permits, and by how much they may be too many.
    pub(crate) fn top(&self, now: Timestamp, k: usize) -> Vec<(Key, u64, u64)> {
        self.top.top(now, k)
    }

    /// What [`top`](Self::top) looks back on: the rule's interval in whole seconds, at least one and at most a minute.
    pub(crate) fn top_interval(&self) -> Duration {
        top_interval(&self.rule)
    }
}

fn top_interval(rule: &HotRule) -> Duration {
    Duration::from_secs(rule.interval().as_secs().clamp(1, 60))
}

impl State {
    fn new() -> Self {
        Self { table: Table::new(), hasher: RandomState::new(), missing: AtomicU64::new(0) }
    }
}

#[cfg(all(test, leap_loom))]
mod models;
#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
