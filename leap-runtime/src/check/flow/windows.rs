//! Admission: every window rule of a resource is asked of one value of `passed`, and one compare-exchange lets the
//! call through all of them or none.
//!
//! `passed` only grows. A rule in the log asks whether the permits that would leave its window are an interval old; a
//! rule in a ring whether `passed + n − base ≤ limit`. When all agree, `passed → passed + n` *is* the admission: had
//! anybody else been let through meanwhile, the exchange would fail and everything is asked again. So no two calls
//! can take the same room, and nothing has to be given back.
//!
//! Bases never decrease, so what was true of a window when the exchange succeeded stays true of every later window
//! that contains it. The base may be read after `passed`: it is then compared with a `passed` that is no longer
//! current if it is newer, and the exchange fails. Times in the log are written after the exchange; whoever meets a
//! number that is not written yet writes it (see `window/pass_log.rs`).

use std::sync::Arc;

use crate::blocked::{By, Refusal};
use crate::clock::Timestamp;
use crate::rule::{FlowRule, Precision, RuleId};
use crate::sync::{AtomicU64, Ordering};
use crate::window::{Answer, PassLog, Ring};

/// The largest count of a window: more would not be told apart from less in 32 bits.
pub(crate) const WINDOW_MAX: u64 = Ring::MAX_COUNT;

/// The window rules of a resource, and what they remember of `passed`.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    limits: Box<[Limit]>,
    /// Written by whoever moves `passed`, while it stands.
    log: Option<Arc<PassLog>>,
}

#[derive(Debug)]
struct Limit {
    id: RuleId,
    rule: FlowRule,
    permits: u64,
    interval_ns: u64,
    memory: Memory,
}

/// Where a rule finds what passed before.
#[derive(Debug)]
enum Memory {
    Log,
    Ring { ring: Arc<Ring>, strict: bool },
}

impl Windows {
    /// The windows of `rules`, going on from `previous`: the log and rings of the same shape are kept. Rules that are
    /// no limit are left out.
    ///
    /// While calls go on by the previous windows, [`catch_up`](Self::catch_up) is to be called once these are
    /// published.
    pub(crate) fn new(
        rules: &[(RuleId, FlowRule)],
        previous: &Self,
        total: &AtomicU64,
        reading: &impl Fn() -> Timestamp,
    ) -> Self {
        let now = reading();
        let carried = |id, rule: &FlowRule| previous.carried(id, rule, total, now, reading);
        let limited = || rules.iter().filter_map(|(id, rule)| Some((*id, *rule, rule.permits()?)));
        let longest = limited()
            .filter(|(_, rule, _)| rule.precision() == Precision::Exact)
            .map(|(_, _, permits)| permits)
            .max();
        let log = longest.map(|longest| {
            let of_exact = limited().filter(|(_, rule, _)| rule.precision() == Precision::Exact);
            let carried = of_exact.map(|(id, rule, _)| carried(id, &rule)).max().unwrap_or(0);
            previous.log_of(longest.max(1), carried, total, now)
        });
        let mut rings = previous.rings();
        let limits = limited()
            .map(|(id, rule, permits)| {
                let memory = match rule.precision() {
                    Precision::Exact => Memory::Log,
                    precision => Memory::Ring {
                        ring: ring_of(&mut rings, &rule, total, now, || carried(id, &rule)),
                        strict: precision == Precision::Strict,
                    },
                };
                Limit { id, rule, permits, interval_ns: rule.interval_ns(), memory }
            })
            .collect();
        Self { limits, log }
    }

    /// The log for limits up to `longest`. Where there is none yet, the last `carried` permits count as passing when it
    /// [catches up](Self::catch_up).
    fn log_of(&self, longest: u64, carried: u64, total: &AtomicU64, now: Timestamp) -> Arc<PassLog> {
        match &self.log {
            Some(log) if log.len() >= longest && !log.is_worn_out(now) => Arc::clone(log),
            Some(log) => Arc::new(log.successor(longest, total.load(Ordering::Acquire), now)),
            None => {
                let known = total.load(Ordering::Acquire) - carried.min(longest);
                Arc::new(PassLog::new(longest, known, now))
            }
        }
    }

    /// How many permits count in the window of this rule, if it is to have a memory of the other sort from now on.
    ///
    /// A limit that is lowered or raised past 1 024 changes its precision with it, and would start afresh. In the new
    /// memory these count as passing now, so it may refuse for up to an interval what the old one had let through.
    fn carried(
        &self,
        id: RuleId,
        rule: &FlowRule,
        total: &AtomicU64,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> u64 {
        let is_same = |limit: &&Limit| limit.id == id && limit.rule.interval() == rule.interval();
        let Some(limit) = self.limits.iter().find(is_same) else { return 0 };
        match (&limit.memory, &self.log, rule.precision()) {
            (Memory::Ring { ring, .. }, _, Precision::Exact) => loop {
                let passed = total.load(Ordering::Acquire);
                match ring.room(total, passed, now) {
                    Some(room) => return WINDOW_MAX - room,
                    None if total.load(Ordering::Acquire) == passed => return WINDOW_MAX,
                    None => {}
                }
            },
            (Memory::Log, Some(log), Precision::Strict | Precision::Sentinel) => {
                // As many as fit behind a full log have left.
                let (mut fit, mut too_many) = (0, log.len() + 1);
                while too_many - fit > 1 {
                    let n = u64::midpoint(fit, too_many);
                    let passed = total.load(Ordering::Acquire);
                    match log.ask(total, passed, n, log.len(), limit.interval_ns, now, reading) {
                        Answer::Fits => fit = n,
                        Answer::Full { .. } | Answer::Never => too_many = n,
                        Answer::Stale => {}
                    }
                }
                log.len() - fit
            }
            _ => 0,
        }
    }

    fn rings(&self) -> Vec<(FlowRule, Arc<Ring>)> {
        let ring = |limit: &Limit| match &limit.memory {
            Memory::Ring { ring, .. } => Some((limit.rule, Arc::clone(ring))),
            Memory::Log => None,
        };
        self.limits.iter().filter_map(ring).collect()
    }

    /// Writes what calls that went by the previous windows left unwritten in the log.
    pub(crate) fn catch_up(&self, total: &AtomicU64, reading: impl Fn() -> Timestamp) {
        if let Some(log) = &self.log {
            log.fill(total, reading);
        }
    }

    /// Whether these windows have to be built anew because their log is too old to count on.
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_worn_out(now))
    }

    /// Lets `n` permits through if every window has room, and returns `passed` as this call left it.
    #[inline]
    pub(crate) fn admit(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: impl Fn() -> Timestamp,
    ) -> Result<u64, Refusal<'_>> {
        if self.limits.is_empty() {
            // Relaxed: nobody decides on it here.
            return Ok(total.fetch_add(n, Ordering::Relaxed) + n);
        }
        // Acquire: the bases and times that go with this value must be seen with it.
        let mut passed = total.load(Ordering::Acquire);
        loop {
            match self.ask_all(total, passed, n, now, &reading) {
                Ok(()) => {}
                Err((_, Answer::Stale)) => {
                    passed = total.load(Ordering::Acquire);
                    continue;
                }
                Err((first, answer)) => return self.refuse(first, answer, total, n, now, &reading),
            }
            // AcqRel: releases the ticks this call opened before it counts in them; acquires what goes with the
            // value found when it lost.
            match total.compare_exchange(passed, passed + n, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(found) => passed = found,
            }
        }
        if let Some(log) = &self.log {
            log.record(total, passed, n, now);
        }
        Ok(passed + n)
    }

    /// As [`admit`](Self::admit), but takes nothing.
    pub(crate) fn peek(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: impl Fn() -> Timestamp,
    ) -> Result<(), Refusal<'_>> {
        loop {
            match self.ask_all(total, total.load(Ordering::Acquire), n, now, &reading) {
                Ok(()) => return Ok(()),
                Err((_, Answer::Stale)) => {}
                Err((first, answer)) => return self.refuse(first, answer, total, n, now, &reading),
            }
        }
    }

    /// The place of the first rule that does not say `Fits`, and what it says.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call with so many arguments costs as much as the answer: 2.5 ns of 71"
    )]
    fn ask_all(
        &self,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Result<(), (usize, Answer)> {
        for (i, limit) in self.limits.iter().enumerate() {
            match self.ask(limit, total, passed, n, now, reading) {
                Answer::Fits => {}
                other => return Err((i, other)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call with so many arguments costs as much as the answer: 2.5 ns of 71"
    )]
    fn ask(
        &self,
        limit: &Limit,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Answer {
        match (&limit.memory, &self.log) {
            (Memory::Ring { ring, strict }, _) => ring.ask(total, passed, n, limit.permits, *strict, now),
            (Memory::Log, Some(log)) => {
                log.ask(total, passed, n, limit.permits, limit.interval_ns, now, reading)
            }
            (Memory::Log, None) => unreachable!("a log stands while a rule asks it"),
        }
    }

    /// The rule at `first` refuses; tells so, with the latest moment at which it or one of the later ones lets go.
    #[inline]
    fn refuse<T>(
        &self,
        first: usize,
        answer: Answer,
        total: &AtomicU64,
        n: u64,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Result<T, Refusal<'_>> {
        let mut until = answer.until();
        for limit in &self.limits[first + 1..] {
            let answer = loop {
                match self.ask(limit, total, total.load(Ordering::Acquire), n, now, reading) {
                    Answer::Stale => {}
                    answer => break answer,
                }
            };
            if answer != Answer::Fits {
                until = until.zip(answer.until()).map(|(latest, other)| latest.max(other));
            }
        }
        let Limit { id, rule, .. } = &self.limits[first];
        Err(Refusal { rule: id, by: By::Flow { rule, fits: answer != Answer::Never }, until })
    }

    /// Adds up to `n` permits without asking the limits, so many that no window exceeds [`WINDOW_MAX`], and returns
    /// how many.
    pub(crate) fn charge(&self, total: &AtomicU64, n: u64, clock: impl Fn() -> Timestamp) -> u64 {
        let now = clock();
        let mut added = 0;
        // Where nothing is limited, only the total itself must not wrap.
        let most = if self.limits.is_empty() { n.min(u64::MAX / 2) } else { n.min(WINDOW_MAX) };
        while added < most {
            let passed = total.load(Ordering::Acquire);
            let left = (most - added).min((u64::MAX / 2).saturating_sub(passed));
            let room = self.limits.iter().try_fold(left, |room, limit| match &limit.memory {
                Memory::Ring { ring, .. } => ring.room(total, passed, now).map(|left| left.min(room)),
                Memory::Log => Some(room),
            });
            let Some(room) = room else {
                if total.load(Ordering::Acquire) == passed {
                    // Nothing is out of date: what `sentinel` let into adjoining windows is itself over the most.
                    break;
                }
                continue;
            };
            // The log tells laps apart by 16 bits: fewer than 2¹⁵ of them at once.
            let step = room.min(self.log.as_ref().map_or(u64::MAX, |log| log.len() << 14));
            if step == 0 {
                break;
            }
            // AcqRel: as an admission.
            if total.compare_exchange(passed, passed + step, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                if let Some(log) = &self.log {
                    // Read after the exchange: an older reading would make the permits look older than they are.
                    log.record(total, passed, step, clock());
                }
                added += step;
            }
        }
        added
    }
}

/// A ring of the rule's shape: one that is there already, or a new one.
fn ring_of(
    rings: &mut Vec<(FlowRule, Arc<Ring>)>,
    rule: &FlowRule,
    total: &AtomicU64,
    now: Timestamp,
    carried: impl FnOnce() -> u64,
) -> Arc<Ring> {
    let same = |(held, _): &&(FlowRule, Arc<Ring>)| {
        held.interval() == rule.interval() && held.n_buckets() == rule.n_buckets()
    };
    if let Some((_, ring)) = rings.iter().find(same) {
        return Arc::clone(ring);
    }
    // Before the total, which then has all of them. They count in the bucket of this moment.
    let carried = carried();
    let base = total.load(Ordering::Acquire) - carried;
    let ring = Ring::new(rule.n_buckets(), rule.interval(), now, base)
        .expect("a rule's buckets divide its interval");
    let ring = Arc::new(ring);
    rings.push((*rule, Arc::clone(&ring)));
    ring
}

#[cfg(all(test, leap_loom))]
mod models;
