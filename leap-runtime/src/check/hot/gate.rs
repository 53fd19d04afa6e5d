//! A gate: what one value of the parameter has taken, and whether it may take more.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Refused;
use super::limits::{Limits, Rate};
use super::pace::{MAX_AGE_NS, Pace, Told, approximate, whole};
use super::sentinel::{self, Bucket};
use crate::clock::{Reading, Timestamp};
use crate::rule::HOT_BUCKETS;
use crate::sync::{
    AtomicU32, AtomicU64, Mutex,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::window::{Answer, PassLog, Ring};

/// The limits of one value, at work. It is asked by reference, from any number of threads; who may change what it
/// consists of has it for itself.
#[derive(Debug)]
pub(super) struct Gate {
    limits: Arc<Limits>,
    /// The load of the rule that the limits are from: a gate goes back to no earlier ones.
    generation: u32,
    in_flight: Option<Arc<AtomicU32>>,
    memory: Memory,
}

/// What a gate remembers of its rate.
#[derive(Debug)]
enum Memory {
    Nothing,
    Log {
        passed: AtomicU64,
        log: PassLog,
    },
    Ring {
        passed: AtomicU64,
        ring: Ring,
    },
    /// A word of [`Pace`], that tells time from `origin` on. Shared with those who may give their turn back.
    Pace {
        word: Arc<AtomicU64>,
        origin: Timestamp,
    },
    SentinelBucket(Mutex<Option<Bucket>>),
    /// 1 + the ms of the last start, 0 before the first.
    SentinelTurns(Arc<AtomicU64>),
}

/// What a gate has let through lately, in terms that every sort of memory can go on from.
struct Recent {
    /// When permits passed, in order.
    times: Vec<Timestamp>,
    /// Permits that count beside them, as if they passed just now.
    more: f64,
}

/// What a call was given by a gate.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// When to start, if not now.
    pub(super) start: Option<Timestamp>,
    pub(super) permits: Option<Permits>,
    pub(super) turn: Option<Turn>,
}

/// Permits in flight. They come back when this is dropped.
#[derive(Debug)]
pub(super) struct Permits {
    count: Arc<AtomicU32>,
    n: u32,
}

impl Drop for Permits {
    fn drop(&mut self) {
        // Release: what this call did is seen by the one that takes these permits.
        self.count.fetch_sub(self.n, Release);
    }
}

/// A turn among those of one value.
#[derive(Debug)]
pub(super) struct Turn {
    word: Arc<AtomicU64>,
    before: u64,
    after: u64,
}

impl Turn {
    /// Gives the turn back, unless another one was taken behind it.
    pub(super) fn give_back(&self) {
        // Relaxed: the word is all there is. Should it have gone on and come back, then because those behind gave their
        // turns back, and nobody is behind this one.
        let _ = self.word.compare_exchange(self.after, self.before, Relaxed, Relaxed);
    }
}

impl Gate {
    /// A gate through which nothing has passed.
    pub(super) fn new(limits: &Arc<Limits>, generation: u32, now: Timestamp) -> Self {
        Self::after(&Recent { times: vec![], more: 0.0 }, limits, generation, now)
    }

    /// A gate of its own for a value that passed this one together with others: what passed here counts as its own.
    pub(super) fn split(&self, limits: &Arc<Limits>, generation: u32, now: Timestamp) -> Self {
        Self::after(&self.recent(limits.interval_ns, now), limits, generation, now)
    }

    /// What this gate will be when it has [adopted](Self::adopt) these limits, to be asked and not to be taken from.
    pub(super) fn converted(&self, limits: &Arc<Limits>, generation: u32, now: Timestamp) -> Self {
        let in_flight = limits.concurrency.map(|_| self.in_flight.clone().unwrap_or_default());
        Self { in_flight, ..self.split(limits, generation, now) }
    }

    fn after(recent: &Recent, limits: &Arc<Limits>, generation: u32, now: Timestamp) -> Self {
        Self {
            in_flight: limits.concurrency.map(|_| Arc::default()),
            memory: Memory::after(recent, limits, now),
            limits: Arc::clone(limits),
            generation,
        }
    }

    /// Whether the gate can be asked for these limits: they are its own, or older than its own.
    #[inline]
    pub(super) fn suits(&self, limits: &Arc<Limits>, generation: u32, now: Timestamp) -> bool {
        (Arc::ptr_eq(&self.limits, limits) || generation < self.generation) && !self.memory.is_worn_out(now)
    }

    /// Makes the gate suit these limits; what has passed and what is in flight counts on.
    pub(super) fn adopt(&mut self, limits: &Arc<Limits>, generation: u32, now: Timestamp) {
        if generation >= self.generation {
            let previous = std::mem::replace(&mut self.limits, Arc::clone(limits));
            self.generation = generation;
            if self.limits.concurrency.is_some() {
                self.in_flight.get_or_insert_default();
            }
            if self.memory.goes_on(&previous, limits) && !self.memory.is_worn_out(now) {
                return;
            }
            let recent = recent(&self.memory, &previous, limits.interval_ns, now);
            self.memory = Memory::after(&recent, limits, now);
        } else if self.memory.is_worn_out(now) {
            let recent = self.recent(self.limits.interval_ns, now);
            self.memory = Memory::after(&recent, &self.limits, now);
        }
    }

    /// Whether the gate answers as a new one would, to whoever reads the clock from now on.
    pub(super) fn is_at_rest(&self, now: Timestamp) -> bool {
        // Relaxed: who takes permits does so under the lock of the table, which the caller has for itself. A permit that
        // is just coming back may still seem to be out.
        self.in_flight.as_ref().is_none_or(|count| count.load(Relaxed) == 0) && self.is_quiet(now)
    }

    fn is_quiet(&self, now: Timestamp) -> bool {
        match (&self.memory, &self.limits.rate) {
            // A window that has room for the whole limit is empty.
            (Memory::Log { passed, .. }, Rate::Log { permits })
            | (Memory::Ring { passed, .. }, Rate::Ring { permits }) => {
                self.ask_window(passed.load(Acquire), *permits, now, &|| now) == Answer::Fits
            }
            (Memory::Pace { word, origin }, Rate::Bucket(pace) | Rate::Turns(pace)) => {
                word.load(Relaxed) <= pace.parts(now.since_ns(*origin))
            }
            (Memory::SentinelBucket(bucket), Rate::SentinelBucket(rate)) => {
                lock(bucket).is_none_or(|bucket| rate.is_full(bucket, now.as_millis()))
            }
            // As long as a call of up to one span's worth would not be told to wait.
            (Memory::SentinelTurns(last), Rate::SentinelTurns(rate)) => {
                last.load(Relaxed).saturating_add(rate.span_ms) <= now.as_millis() + 1
            }
            _ => true,
        }
    }

    /// Takes `n` permits in flight and `n` of the rate, or nothing. A turn is one from `at_least` on.
    #[inline]
    pub(super) fn take(
        &self,
        n: u64,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Part, Refused> {
        // Dropped, and so given back, when the rate refuses.
        let permits = self.take_permits(n)?;
        let (start, turn) = self.pass(n, now, at_least, reading)?;
        Ok(Part { start, permits, turn })
    }

    fn take_permits(&self, n: u64) -> Result<Option<Permits>, Refused> {
        let (Some(limit), Some(count)) = (self.limits.concurrency, &self.in_flight) else { return Ok(None) };
        let Ok(n) = u32::try_from(n) else {
            return Err(Refused::Concurrency { limit, in_flight: count.load(Relaxed) });
        };
        // Acquire: see the drop of `Permits`.
        let taken =
            count.fetch_update(Acquire, Relaxed, |held| held.checked_add(n).filter(|held| *held <= limit));
        match taken {
            Ok(_) => Ok(Some(Permits { count: Arc::clone(count), n })),
            Err(in_flight) => Err(Refused::Concurrency { limit, in_flight }),
        }
    }

    #[inline]
    fn pass(
        &self,
        n: u64,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(Option<Timestamp>, Option<Turn>), Refused> {
        match (&self.memory, &self.limits.rate) {
            (Memory::Log { passed, log }, Rate::Log { .. }) => {
                let before = self.commit(passed, n, now, reading)?;
                log.record(passed, before, n, now);
                Ok((None, None))
            }
            (Memory::Ring { passed, .. }, Rate::Ring { .. }) => {
                self.commit(passed, n, now, reading)?;
                Ok((None, None))
            }
            (Memory::Pace { word, origin }, Rate::Bucket(pace) | Rate::Turns(pace)) => {
                let mut at = pace.parts(now.since_ns(*origin));
                let mut before = word.load(Relaxed);
                loop {
                    let told = pace.ask_from(before, self.arrival(at_least, pace, *origin, at), at, n);
                    let (start, after) = match self.asked(told, pace, *origin, at) {
                        Ok(asked) => asked,
                        Err(refused) => {
                            at = asked_again(pace, *origin, at, &refused, reading).ok_or(refused)?;
                            continue;
                        }
                    };
                    // Relaxed, all through: the word is the decision, and nothing is published with it.
                    match word.compare_exchange(before, after, Relaxed, Relaxed) {
                        Ok(_) => {
                            let is_turn = matches!(self.limits.rate, Rate::Turns(_));
                            let turn = is_turn.then(|| Turn { word: Arc::clone(word), before, after });
                            return Ok((start, turn));
                        }
                        Err(found) => before = found,
                    }
                }
            }
            (Memory::SentinelBucket(bucket), Rate::SentinelBucket(rate)) => {
                let mut bucket = lock(bucket);
                let taken = rate.take(*bucket, now.as_millis(), n);
                let Some(taken) = taken else { return Err(self.no_tokens(rate, *bucket, n)) };
                *bucket = Some(taken);
                Ok((None, None))
            }
            (Memory::SentinelTurns(last), Rate::SentinelTurns(rate)) => {
                let mut before = last.load(Relaxed);
                loop {
                    let start_ms = self.turn_as_sentinel(rate, before, now, at_least, n)?;
                    let after = start_ms.saturating_add(1);
                    match last.compare_exchange(before, after, Relaxed, Relaxed) {
                        Ok(_) => {
                            let start = later_ms(start_ms, now);
                            return Ok((start, Some(Turn { word: Arc::clone(last), before, after })));
                        }
                        Err(found) => before = found,
                    }
                }
            }
            (_, Rate::Nothing) => Err(self.full(None)),
            _ => Ok((None, None)),
        }
    }

    /// As [`take`](Self::take), but takes nothing: when a call would start, if not now.
    pub(super) fn peek(
        &self,
        n: u64,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Option<Timestamp>, Refused> {
        if let (Some(limit), Some(count)) = (self.limits.concurrency, &self.in_flight) {
            let in_flight = count.load(Relaxed);
            if n.saturating_add(in_flight.into()) > limit.into() {
                return Err(Refused::Concurrency { limit, in_flight });
            }
        }
        match (&self.memory, &self.limits.rate) {
            (Memory::Log { passed, .. }, Rate::Log { .. })
            | (Memory::Ring { passed, .. }, Rate::Ring { .. }) => loop {
                match self.ask_window(passed.load(Acquire), n, now, reading) {
                    Answer::Fits => return Ok(None),
                    Answer::Stale => {}
                    answer => return Err(self.full(answer.until())),
                }
            },
            (Memory::Pace { word, origin }, Rate::Bucket(pace) | Rate::Turns(pace)) => {
                let mut at = pace.parts(now.since_ns(*origin));
                loop {
                    let arrival = self.arrival(at_least, pace, *origin, at);
                    let told = pace.ask_from(word.load(Relaxed), arrival, at, n);
                    match self.asked(told, pace, *origin, at) {
                        Ok((start, _)) => return Ok(start),
                        Err(refused) => {
                            at = asked_again(pace, *origin, at, &refused, reading).ok_or(refused)?;
                        }
                    }
                }
            }
            (Memory::SentinelBucket(bucket), Rate::SentinelBucket(rate)) => {
                let bucket = *lock(bucket);
                match rate.take(bucket, now.as_millis(), n) {
                    Some(_) => Ok(None),
                    None => Err(self.no_tokens(rate, bucket, n)),
                }
            }
            (Memory::SentinelTurns(last), Rate::SentinelTurns(rate)) => {
                let start_ms = self.turn_as_sentinel(rate, last.load(Relaxed), now, at_least, n)?;
                Ok(later_ms(start_ms, now))
            }
            (_, Rate::Nothing) => Err(self.full(None)),
            _ => Ok(None),
        }
    }

    /// Moves the window's count on by `n`, if they fit; returns what it was.
    #[inline]
    fn commit(
        &self,
        passed: &AtomicU64,
        n: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<u64, Refused> {
        // The orderings are those of an admission by all windows of a resource, `check/flow/windows.rs`.
        let mut before = passed.load(Acquire);
        loop {
            match self.ask_window(before, n, now, reading) {
                Answer::Fits => match passed.compare_exchange(before, before + n, AcqRel, Acquire) {
                    Ok(_) => return Ok(before),
                    Err(found) => before = found,
                },
                Answer::Stale => before = passed.load(Acquire),
                answer => return Err(self.full(answer.until())),
            }
        }
    }

    #[inline]
    fn ask_window(&self, before: u64, n: u64, now: Timestamp, reading: &Reading<'_>) -> Answer {
        match (&self.memory, &self.limits.rate) {
            (Memory::Log { passed, log }, Rate::Log { permits }) => {
                log.ask(passed, before, n, *permits, self.limits.interval_ns, now, reading)
            }
            (Memory::Ring { passed, ring }, Rate::Ring { permits }) => {
                ring.ask(passed, before, n, *permits, true, now)
            }
            _ => unreachable!("a window is asked by its own limit"),
        }
    }

    /// From when on a call that asks `at` is to have its turn. A bucket has none: it goes by the present.
    #[inline]
    fn arrival(&self, at_least: Timestamp, pace: &Pace, origin: Timestamp, at: u64) -> u64 {
        match self.limits.rate {
            Rate::Turns(_) => at.max(pace.parts(at_least.since_ns(origin))),
            _ => at,
        }
    }

    /// The moment to start at, if not now, and the word to leave.
    #[inline]
    fn asked(
        &self,
        told: Told,
        pace: &Pace,
        origin: Timestamp,
        at: u64,
    ) -> Result<(Option<Timestamp>, u64), Refused> {
        let moment = |parts| origin.saturating_add(Duration::from_nanos(pace.ns(parts)));
        match told {
            Told::Start { start, word } => Ok(((start > at).then(|| moment(start)), word)),
            Told::Never => Err(self.full(None)),
            Told::TooLong { start } if matches!(self.limits.rate, Rate::Turns(_)) => Err(Refused::Pace {
                limit: self.limits.limit,
                wait_ns: pace.ns(start - at),
                until: moment(pace.until(start)),
            }),
            Told::TooLong { start } => Err(self.full(Some(moment(start)))),
        }
    }

    fn no_tokens(&self, rate: &sentinel::Rate, bucket: Option<Bucket>, n: u64) -> Refused {
        let until = bucket
            .filter(|_| n <= rate.capacity())
            .map(|bucket| Timestamp::from_millis(rate.full_at(bucket, n)));
        self.full(until)
    }

    fn turn_as_sentinel(
        &self,
        rate: &sentinel::Rate,
        last: u64,
        now: Timestamp,
        at_least: Timestamp,
        n: u64,
    ) -> Result<u64, Refused> {
        rate.turn(last.checked_sub(1), at_least.as_millis(), now.as_millis(), n).map_err(|start_ms| {
            Refused::Pace {
                limit: self.limits.limit,
                wait_ns: Timestamp::from_millis(start_ms).since_ns(now),
                // A wait has to be under the longest.
                until: Timestamp::from_millis(
                    start_ms.saturating_add(1).saturating_sub(rate.max_wait_ms).min(start_ms),
                ),
            }
        })
    }

    #[cold]
    fn full(&self, until: Option<Timestamp>) -> Refused {
        Refused::Rate { limit: self.limits.limit, until }
    }

    fn recent(&self, interval_ns: u64, now: Timestamp) -> Recent {
        recent(&self.memory, &self.limits, interval_ns, now)
    }

    /// Permits in flight, where they are limited.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight.as_ref().map_or(0, |count| count.load(Relaxed))
    }
}

/// When to ask again, if the reading by which a call was refused is old: its thread had to stand aside for others, who have
/// gone ahead meanwhile.
#[cold]
fn asked_again(
    pace: &Pace,
    origin: Timestamp,
    at: u64,
    refused: &Refused,
    reading: &Reading<'_>,
) -> Option<u64> {
    let until = refused.until()?;
    let fresh = reading();
    let again = pace.parts(fresh.since_ns(origin));
    (until <= fresh && at < again).then_some(again)
}

impl Memory {
    fn after(recent: &Recent, limits: &Limits, now: Timestamp) -> Self {
        let used = || approximate(recent.times.len() as u64) + recent.more;
        match &limits.rate {
            Rate::Free | Rate::Nothing => Self::Nothing,
            Rate::Log { permits } => {
                // From the first of the times on, which are whole microseconds apart, so that none changes by rounding.
                let origin = recent.times.first().map_or(now, |first| now.min(*first));
                let (passed, log) = (AtomicU64::new(0), PassLog::new(*permits, 0, origin));
                let more = whole(recent.more.ceil()).min(*permits);
                let times = recent.times.iter().map(|time| (*time, 1));
                for (time, n) in times.chain((more > 0).then_some((now, more))) {
                    let before = passed.load(Relaxed);
                    passed.store(before + n, Release);
                    log.record(&passed, before, n, time);
                }
                Self::Log { passed, log }
            }
            Rate::Ring { .. } => {
                let ring = Ring::new(HOT_BUCKETS, Duration::from_nanos(limits.interval_ns), now, 0);
                let passed = AtomicU64::new(whole(used().ceil()).min(Ring::MAX_COUNT));
                Self::Ring { passed, ring: ring.expect("a rule's buckets divide its interval") }
            }
            Rate::Bucket(pace) | Rate::Turns(pace) => {
                Self::Pace { word: Arc::new(AtomicU64::new(pace.word(used(), 0))), origin: now }
            }
            Rate::SentinelBucket(rate) => {
                let left = rate.capacity().saturating_sub(whole(used().ceil()));
                let bucket = Bucket { left, filled_ms: now.as_millis() };
                Self::SentinelBucket(Mutex::new((used() > 0.0).then_some(bucket)))
            }
            Rate::SentinelTurns(rate) => {
                let queued_ms = whole((used() - 1.0).max(0.0) * approximate(rate.cost_ms(1)));
                let last = if used() > 0.0 { now.as_millis().saturating_add(queued_ms) + 1 } else { 0 };
                Self::SentinelTurns(Arc::new(AtomicU64::new(last)))
            }
        }
    }

    /// Whether this memory of the limits before is the one to have under the new ones.
    fn goes_on(&self, before: &Limits, now: &Limits) -> bool {
        match (self, &before.rate, &now.rate) {
            (Self::Ring { .. }, _, Rate::Ring { .. }) => before.interval_ns == now.interval_ns,
            (
                Self::Pace { .. },
                Rate::Bucket(before) | Rate::Turns(before),
                Rate::Bucket(now) | Rate::Turns(now),
            ) => before.is_like(now),
            // Another limit of a log has classes of its own, and times in order are what both can go on from.
            (_, before_rate, now_rate) => before_rate == now_rate && before.interval_ns == now.interval_ns,
        }
    }

    #[inline]
    fn is_worn_out(&self, now: Timestamp) -> bool {
        match self {
            Self::Log { log, .. } => log.is_worn_out(now),
            Self::Pace { origin, .. } => now.since_ns(*origin) >= MAX_AGE_NS,
            Self::Nothing | Self::Ring { .. } | Self::SentinelBucket(_) | Self::SentinelTurns(_) => false,
        }
    }
}

/// What `memory`, kept under `limits` and asked by nobody else, knows of the last `interval_ns`.
fn recent(memory: &Memory, limits: &Limits, interval_ns: u64, now: Timestamp) -> Recent {
    let interval = Duration::from_nanos(interval_ns);
    let mut times = vec![];
    let more = match (memory, &limits.rate) {
        (Memory::Log { passed, log }, _) => {
            // What would have to leave before one more fits a limit of `back` is the permit `back` ago.
            let total = passed.load(Acquire);
            times.extend((1..=log.len()).filter_map(|back| {
                let answer = log.ask(passed, total, 1, back, interval_ns, now, &|| now);
                answer.until().map(|until| until.saturating_sub(interval))
            }));
            times.sort_unstable();
            0.0
        }
        (Memory::Ring { passed, ring }, _) => {
            let room = ring.room(passed, passed.load(Acquire), now).unwrap_or(0);
            approximate(Ring::MAX_COUNT - room)
        }
        (Memory::Pace { word, origin }, Rate::Bucket(pace) | Rate::Turns(pace)) => {
            pace.used(word.load(Relaxed), pace.parts(now.since_ns(*origin)))
        }
        (Memory::SentinelBucket(bucket), Rate::SentinelBucket(rate)) => lock(bucket)
            .filter(|bucket| !rate.is_full(*bucket, now.as_millis()))
            .map_or(0.0, |bucket| approximate(rate.capacity().saturating_sub(bucket.left))),
        (Memory::SentinelTurns(last), Rate::SentinelTurns(rate)) => {
            let free_ms = last.load(Relaxed).saturating_add(rate.cost_ms(1));
            approximate(free_ms.saturating_sub(now.as_millis() + 1)) / approximate(rate.cost_ms(1).max(1))
        }
        _ => 0.0,
    };
    Recent { times, more }
}

/// The moment, if it is not now.
fn later_ms(start_ms: u64, now: Timestamp) -> Option<Timestamp> {
    (start_ms > now.as_millis()).then(|| Timestamp::from_millis(start_ms))
}

fn lock<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
