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
use crate::window::{Answer, LeapArray, PassLog, Ring};

/// The largest count of a window: more would not be told apart from less in 32 bits.
pub(crate) const WINDOW_MAX: u64 = Ring::MAX_COUNT;

/// The most permits that a new log remembers beyond its own limits, 512 KiB.
const CARRIED_MAX: u64 = 1 << 16;

/// The window rules of a resource, and what they remember of `passed`.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    limits: Box<[Limit]>,
    /// Limits in the log that stood until a while ago, above others that stand now. Usually none.
    lowered: Box<[Lowered]>,
    /// Written by whoever moves `passed`, while it stands.
    log: Option<Arc<PassLog>>,
    /// Where rules of other resources count what passes here. Usually none.
    watched: Box<[Arc<LeapArray>]>,
}

#[derive(Debug)]
struct Limit {
    id: RuleId,
    rule: FlowRule,
    permits: u64,
    interval_ns: u64,
    memory: Memory,
}

/// A limit in the log that was higher than one that stands now, and stands no longer.
///
/// The log is exact because the permits of one residue class modulo the limit are an interval apart. Classes modulo
/// different limits do not combine, so for one interval after a limit was lowered both are asked for: then at least the
/// old one holds exactly over spans that reach back before the change.
#[derive(Clone, Copy, Debug)]
struct Lowered {
    permits: u64,
    interval_ns: u64,
    until: Timestamp,
    /// The place of the rule that stands lower now, and is named when this one refuses.
    limit: usize,
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
        // Before what is carried is counted: what passes in between then counts twice and not never.
        let passed = total.load(Ordering::Acquire);
        let carried = |id, rule: &FlowRule| previous.carried(id, rule, total, now, reading);
        let limited = || rules.iter().filter_map(|(id, rule)| Some((*id, *rule, rule.permits()?)));
        let exact = || limited().enumerate().filter(|(_, (_, rule, _))| rule.precision() == Precision::Exact);
        let exact_limits: Vec<_> =
            exact().map(|(i, (_, rule, permits))| (i, rule.interval_ns(), permits)).collect();
        let lowered = previous.lowered(&exact_limits, now);
        let stood = lowered.iter().map(|lowered| lowered.permits);
        let longest = exact_limits.iter().map(|(_, _, permits)| *permits).chain(stood).max();
        let log = longest.map(|longest| {
            let carried = exact().map(|(_, (id, rule, _))| carried(id, &rule)).max().unwrap_or(0);
            previous.log_of(longest.max(1), carried, passed, now)
        });
        let mut rings = previous.rings();
        let limits = limited()
            .map(|(id, rule, permits)| {
                let memory = match rule.precision() {
                    Precision::Exact => Memory::Log,
                    precision => Memory::Ring {
                        ring: ring_of(&mut rings, &rule, passed, now, || carried(id, &rule)),
                        strict: precision == Precision::Strict,
                    },
                };
                Limit { id, rule, permits, interval_ns: rule.interval_ns(), memory }
            })
            .collect();
        Self { limits, lowered, log, watched: Box::default() }
    }

    /// The same windows, with what passes told to the rules of other resources that watch these.
    #[allow(dead_code, reason = "used once relations are wired")]
    pub(crate) fn watched_by(self, watched: Box<[Arc<LeapArray>]>) -> Self {
        Self { watched, ..self }
    }

    /// The limits that stand in the log no longer, above one of `exact` of the same interval (its place, its interval in
    /// ns, its permits): for an interval from now, those that had gone before as long as they had left.
    fn lowered(&self, exact: &[(usize, u64, u64)], now: Timestamp) -> Box<[Lowered]> {
        let stood = self
            .limits
            .iter()
            .filter(|limit| matches!(limit.memory, Memory::Log))
            .map(|limit| (limit.permits, limit.interval_ns, now.saturating_add(limit.rule.interval())));
        let gone = self.lowered.iter().map(|gone| (gone.permits, gone.interval_ns, gone.until));
        stood
            .chain(gone.filter(|(.., until)| now < *until))
            .filter_map(|(permits, interval_ns, until)| {
                let same = || exact.iter().filter(|(_, interval, _)| *interval == interval_ns);
                let (limit, ..) = same().find(|(.., lower)| *lower < permits)?;
                let still_stands = same().any(|(.., standing)| *standing == permits);
                (!still_stands).then_some(Lowered { permits, interval_ns, until, limit: *limit })
            })
            .collect()
    }

    /// The log for limits up to `longest`. The last `carried` permits, where no log remembers them, count as passing when
    /// it [catches up](Self::catch_up).
    fn log_of(&self, longest: u64, carried: u64, passed: u64, now: Timestamp) -> Arc<PassLog> {
        match &self.log {
            Some(log) if log.len() >= longest && !log.is_worn_out(now) => Arc::clone(log),
            Some(log) => Arc::new(log.successor(longest, passed, carried, now)),
            None => {
                // Long enough for all that is carried, so that a further load finds it again.
                let carried = carried.min(CARRIED_MAX.max(longest)).min(passed);
                Arc::new(PassLog::new(longest.max(carried), passed - carried, now))
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
            let after = total.fetch_add(n, Ordering::Relaxed) + n;
            self.tell_watchers(n, now);
            return Ok(after);
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
        self.tell_watchers(n, now);
        Ok(passed + n)
    }

    #[inline]
    fn tell_watchers(&self, n: u64, now: Timestamp) {
        if !self.watched.is_empty() {
            self.tell_each_watcher(n, now);
        }
    }

    /// Out of line: hardly any resource is watched.
    #[cold]
    #[inline(never)]
    fn tell_each_watcher(&self, n: u64, now: Timestamp) {
        for passes in &self.watched {
            passes.add(now, n);
        }
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
        if self.lowered.is_empty() { Ok(()) } else { self.ask_lowered(total, passed, n, now, reading) }
    }

    #[cold]
    fn ask_lowered(
        &self,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        now: Timestamp,
        reading: &impl Fn() -> Timestamp,
    ) -> Result<(), (usize, Answer)> {
        let Some(log) = &self.log else { return Ok(()) };
        for Lowered { permits, interval_ns, until, limit } in &self.lowered {
            if now < *until {
                match log.ask(total, passed, n, *permits, *interval_ns, now, reading) {
                    Answer::Fits => {}
                    other => return Err((*limit, other)),
                }
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
        self.tell_watchers(added, now);
        added
    }
}

/// A ring of the rule's shape: one that is there already, or a new one.
fn ring_of(
    rings: &mut Vec<(FlowRule, Arc<Ring>)>,
    rule: &FlowRule,
    passed: u64,
    now: Timestamp,
    carried: impl FnOnce() -> u64,
) -> Arc<Ring> {
    let same = |(held, _): &&(FlowRule, Arc<Ring>)| {
        held.interval() == rule.interval() && held.n_buckets() == rule.n_buckets()
    };
    if let Some((_, ring)) = rings.iter().find(same) {
        return Arc::clone(ring);
    }
    // What is carried counts in the bucket of this moment.
    let base = passed.saturating_sub(carried());
    let ring = Ring::new(rule.n_buckets(), rule.interval(), now, base)
        .expect("a rule's buckets divide its interval");
    let ring = Arc::new(ring);
    rings.push((*rule, Arc::clone(&ring)));
    ring
}

#[cfg(all(test, leap_loom))]
mod models;

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rule::{Behavior, RuleKind};

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn windows(limit: u32, previous: &Windows, total: &AtomicU64, now: Timestamp) -> Windows {
        let rule = FlowRule::new(limit.into(), Behavior::Reject).unwrap();
        Windows::new(&[(RuleId::new(None, RuleKind::Flow, 0), rule)], previous, total, &|| now)
    }

    #[test]
    fn a_lowered_limit_is_asked_beside_the_one_it_was_for_an_interval() {
        let total = AtomicU64::new(0);
        let four = windows(4, &Windows::default(), &total, at(0));
        // Written in another order than committed, as calls that overlap do.
        for (before, ms) in [(0, 900), (1, 100), (2, 50), (3, 800)] {
            total.store(before + 1, Ordering::Release);
            four.log.as_ref().unwrap().record(&total, before, 1, at(ms));
        }
        let (now, later) = (at(1_060), at(1_060).saturating_add(Duration::from_secs(1)));
        let two = windows(2, &four, &total, now);
        // The permit two back, of 50 ms, has left; the one four back, of 900 ms, has not.
        let refused = two.peek(&total, now, 1, || now).unwrap_err();
        assert_eq!(refused.until, Some(at(1_900)));
        assert!(two.peek(&total, at(1_900), 1, || now).is_ok());
        // After an interval the old limit plays no part, also over another load; until then all that stood do.
        let lowered =
            |windows: &Windows| windows.lowered.iter().map(|lowered| lowered.permits).collect::<Vec<_>>();
        assert_eq!(lowered(&windows(1, &two, &total, later)), [2]);
        assert_eq!(lowered(&windows(1, &two, &total, now)), [2, 4]);
        assert_eq!(lowered(&windows(2, &two, &total, now)), [4]);
        assert_eq!(lowered(&windows(4, &two, &total, now)), [0; 0]);
    }
}
