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

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::iter::once;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::warm_up::WarmUp;
use crate::blocked::{By, Refusal};
use crate::check::Doubt;
use crate::clock::{Reading, Timestamp};
use crate::rule::{FlowRule, Mode, Precision, RuleId};
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::window::{Age, Answer, LeapArray, PassLog, Ring};

/// The largest count of a window: more would not be told apart from less in 32 bits.
pub(crate) const WINDOW_MAX: u64 = Ring::MAX_COUNT;

/// The most permits that a new log remembers beyond its own limits, 512 KiB.
const CARRIED_MAX: u64 = 1 << 16;

/// From so many permits on a log is a large one: 128 KiB.
const LARGE: u64 = 1 << 14;

/// The window rules of a resource, and what they remember of `passed`.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    limits: Box<[Limit]>,
    /// Those of rules that are off, or no limit any more: nobody asks them, and what they remember is kept up to date.
    /// Usually none.
    parked: Box<[Limit]>,
    /// What is opened for that before anything is counted.
    to_open: Box<[Arc<Ring>]>,
    /// Limits in the log that stood until a while ago, above others that stand now. Usually none.
    lowered: Box<[Lowered]>,
    /// Whether limits are warming up, or were lowered.
    is_moving: bool,
    /// The permits in all places of these windows, over reloads.
    placed: Arc<AtomicU64>,
    /// Not 0 if there is more to do than to ask the limits themselves: `placed`, or 1 for ever where limits are moving or
    /// parked. So the usual call looks at one word.
    unusual: Arc<AtomicU64>,
    /// Written by whoever moves `passed`, while it stands.
    log: Option<Arc<PassLog>>,
    /// Where rules of other resources count what passes here. Usually none.
    watched: Box<[Arc<LeapArray>]>,
    /// Whether what passes is told to anybody where there are no limits.
    is_told: bool,
    /// Whether at most one limit decides, and nobody has to be told.
    is_simple: bool,
}

/// What every call asks; the rest is apart, so that the limits of a resource lie close together.
#[derive(Debug)]
struct Limit {
    permits: u64,
    interval_ns: u64,
    memory: Memory,
    terms: Box<Terms>,
}

#[derive(Debug)]
struct Terms {
    id: RuleId,
    rule: FlowRule,
    warm_up: Option<WarmUp>,
    places: Arc<Places>,
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
    Log(Arc<PassLog>),
    Ring { ring: Arc<Ring>, strict: bool },
}

impl Memory {
    /// A moment as the log tells it, if it is one.
    #[inline]
    fn age(&self, moment: Timestamp) -> Age {
        match self {
            Self::Log(log) => log.age(moment),
            Self::Ring { .. } => Age::default(),
        }
    }
}

impl Windows {
    /// The windows of `rules`, going on from `previous`: the log and rings of the same shape are kept, and places and
    /// the warmth of the same rules. Those that throttle are left out, and rules that are no limit, unless they were one:
    /// these are not asked, as those that are off, and remember until they are a limit again.
    ///
    /// What `previous` does not know of a rule is taken over from `others`, each with the total that it decides on: what
    /// they remember to have passed there, and when, is remembered of this total. But a log of this total stays as it is,
    /// as far back as it reaches: it tells what did pass, and limits that come back are to find that.
    ///
    /// While calls go on by the previous windows, [`catch_up`](Self::catch_up) is to be called once these are
    /// published.
    pub(crate) fn after(
        rules: &[(RuleId, FlowRule)],
        previous: &Self,
        others: &[(&Self, &AtomicU64)],
        total: &AtomicU64,
        reading: &Reading<'_>,
    ) -> Self {
        let now = reading();
        // Before what is carried is counted: what passes in between then counts twice and not never.
        let passed = total.load(Ordering::Acquire);
        // Where an id stands twice, the first is meant.
        let mut before: HashMap<&RuleId, Standing<'_>> = HashMap::new();
        for (windows, total) in once((previous, total)).chain(others.iter().copied()) {
            for limit in windows.limits.iter().chain(&windows.parked) {
                before.entry(&limit.terms.id).or_insert(Standing { limit, windows, total });
            }
        }
        let find = |id: &RuleId| before.get(id).copied();
        let limited = |mode: Mode| {
            let windowed = rules.iter().filter(move |(_, rule)| !rule.is_paced() && rule.mode() == mode);
            windowed.filter_map(|(id, rule)| Some((id, rule, rule.permits()?)))
        };
        let raised = || {
            let unlimited = rules.iter().filter(|(_, rule)| !rule.is_paced() && rule.permits().is_none());
            unlimited.filter_map(|(id, rule)| Some((id, rule, find(id)?.limit.permits)))
        };
        let unasked = || limited(Mode::Off).chain(raised());
        let is_exact = |rule: &FlowRule| rule.precision() == Precision::Exact;
        let exact_limits: Vec<_> = limited(Mode::Enforce)
            .enumerate()
            .filter(|(_, (_, rule, _))| is_exact(rule))
            .map(|(i, (_, rule, permits))| (i, rule.interval_ns(), permits))
            .collect();
        let lowered = previous.lowered(&exact_limits, now);
        let log = previous.log_after(
            limited(Mode::Enforce).chain(unasked()).filter(|(_, rule, _)| is_exact(rule)),
            lowered.iter().map(|lowered| lowered.permits).max(),
            find,
            passed,
            now,
            reading,
        );
        // All resources begin with the same empty windows, and are to know of their own places.
        let placed = if previous.limits.is_empty() && previous.parked.is_empty() {
            Arc::default()
        } else {
            Arc::clone(&previous.placed)
        };
        let mut rings = previous.rings();
        let mut limit = |(id, rule, permits): (&RuleId, &FlowRule, u64)| {
            let standing = find(id);
            let memory = match rule.precision() {
                Precision::Exact => Memory::Log(log.clone().expect("made for the exact limits")),
                precision => Memory::Ring {
                    ring: ring_of(&mut rings, rule, standing.as_ref(), total, passed, now, reading),
                    strict: precision == Precision::Strict,
                },
            };
            let earlier = standing
                .as_ref()
                .and_then(|standing| Some((standing.terms().warm_up.as_ref()?, standing.total)));
            let terms = Terms {
                id: id.clone(),
                rule: rule.clone(),
                warm_up: WarmUp::new(rule, earlier, total, now),
                places: match &standing {
                    Some(standing) if standing.is_of(total) => Arc::clone(&standing.terms().places),
                    _ => Arc::new(Places::new(Arc::clone(&placed))),
                },
            };
            Limit { permits, interval_ns: rule.interval_ns(), memory, terms: Box::new(terms) }
        };
        let limits: Box<[Limit]> = limited(Mode::Enforce).map(&mut limit).collect();
        let parked: Box<[Limit]> = unasked().map(limit).collect();
        let is_moving = !lowered.is_empty() || limits.iter().any(|limit| limit.terms.warm_up.is_some());
        let unusual = if is_moving { Arc::new(AtomicU64::new(1)) } else { Arc::clone(&placed) };
        let is_told = log.is_some();
        let (to_open, watched) = <_>::default();
        let is_simple = parked.is_empty()
            && !is_moving
            && match &*limits {
                [] => !is_told,
                [_] => true,
                _ => false,
            };
        let windows = Self {
            limits,
            parked,
            to_open,
            lowered,
            is_moving,
            placed,
            unusual,
            log,
            watched,
            is_told,
            is_simple,
        };
        let to_open: Vec<_> = windows.parked.iter().flat_map(Limit::rings).cloned().collect();
        windows.opening(&to_open)
    }

    /// The same windows, with these rings too opened before anything is counted.
    pub(crate) fn opening<'r>(self, rings: impl IntoIterator<Item = &'r Arc<Ring>>) -> Self {
        let to_open: Box<[_]> = self.to_open.iter().cloned().chain(rings.into_iter().cloned()).collect();
        if to_open.is_empty() {
            return self;
        }
        Self { to_open, unusual: Arc::new(AtomicU64::new(1)), is_told: true, is_simple: false, ..self }
    }

    /// The same windows, with what passes told to the rules of other resources that watch these.
    pub(crate) fn watched_by(self, watched: Box<[Arc<LeapArray>]>) -> Self {
        let (is_told, is_simple) =
            (self.is_told || !watched.is_empty(), self.is_simple && watched.is_empty());
        Self { watched, is_told, is_simple, ..self }
    }

    /// Whether nothing is limited, nobody watches, and nothing is remembered for a rule that is off.
    pub(crate) fn is_idle(&self) -> bool {
        self.limits.is_empty() && !self.is_told
    }

    /// Whether [`try_admit_one`](Self::try_admit_one) can be asked.
    pub(crate) fn are_simple(&self) -> bool {
        self.is_simple
    }

    /// Whether rules of other resources count what passes here.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Whether they remember so much that nobody is to keep them who does not need to.
    pub(crate) fn are_large(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.len() > LARGE)
    }

    /// The limits that stand in the log no longer, above one of `exact` of the same interval (its place, its interval in
    /// ns, its permits): for an interval from now, those that had gone before as long as they had left.
    fn lowered(&self, exact: &[(usize, u64, u64)], now: Timestamp) -> Box<[Lowered]> {
        let stood =
            self.limits.iter().filter(|limit| matches!(limit.memory, Memory::Log(_))).map(|limit| {
                (limit.permits, limit.interval_ns, now.saturating_add(limit.terms.rule.interval()))
            });
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

    /// The log for the `exact` limits, and for those up to `stood` that were lowered; none where there are none. What
    /// passed by a rule that was not exact, where no log remembers it, counts as passing when the log
    /// [catches up](Self::catch_up).
    fn log_after<'r, 'w>(
        &'w self,
        exact: impl Iterator<Item = (&'r RuleId, &'r FlowRule, u64)>,
        stood: Option<u64>,
        find: impl Fn(&RuleId) -> Option<Standing<'w>>,
        passed: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Option<Arc<PassLog>> {
        let (mut longest, mut carried, mut is_kept, mut moved) = (stood, 0, false, vec![]);
        for (id, rule, permits) in exact {
            longest = longest.max(Some(permits));
            let Some(standing) = find(id) else { continue };
            carried = carried.max(standing.carried(rule, now, reading));
            match &standing.limit.memory {
                Memory::Log(_) if std::ptr::eq(standing.windows, self) => is_kept = true,
                // Acquire: the times that go with this value must be seen with it.
                Memory::Log(log) => moved.push((&**log, standing.total.load(Ordering::Acquire))),
                Memory::Ring { .. } => {}
            }
        }
        let longest = longest?.max(1);
        // Never shorter than before: a limit that comes back finds what passed under it.
        let longest = self.log.as_ref().map_or(longest, |log| longest.max(log.len()));
        // Where no rule goes on by it, what it does not remember is asked of the others.
        let is_enough =
            |log: &PassLog| (is_kept || moved.is_empty()) && log.len() >= longest && !log.is_worn_out(now);
        let log = match &self.log {
            Some(log) if is_enough(log) => return Some(Arc::clone(log)),
            Some(log) if moved.is_empty() => log.successor(longest, passed, carried, now),
            Some(log) if is_kept => {
                PassLog::gathered(longest, passed, &[(log, passed)], &moved, carried, now)
            }
            Some(log) => PassLog::beside(longest, passed, log, &moved, carried, now),
            None if moved.is_empty() => {
                // Long enough for all that is carried, so that a further load finds it again.
                let carried = carried.min(CARRIED_MAX.max(longest)).min(passed);
                PassLog::new(longest.max(carried), passed - carried, now)
            }
            None => PassLog::gathered(longest, passed, &moved, &[], carried, now),
        };
        Some(Arc::new(log))
    }

    fn rings(&self) -> Vec<(Shape, Arc<Ring>)> {
        let ring = |limit: &Limit| match &limit.memory {
            Memory::Ring { ring, .. } => Some((shape_of(&limit.terms.rule), Arc::clone(ring))),
            Memory::Log(_) => None,
        };
        self.limits.iter().chain(&self.parked).filter_map(ring).collect()
    }

    /// Writes what calls that went by the previous windows left unwritten in the log.
    pub(crate) fn catch_up(&self, total: &AtomicU64, reading: &Reading<'_>) {
        if let Some(log) = &self.log {
            log.fill(total, reading);
        }
    }

    /// Whether these windows have to be built anew because their log, or a warm-up, is too old to
    /// count on.
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        let is_worn_out =
            |limit: &Limit| limit.terms.warm_up.as_ref().is_some_and(|warm_up| warm_up.is_worn_out(now));
        self.log.as_ref().is_some_and(|log| log.is_worn_out(now))
            || (self.is_moving && self.limits.iter().any(is_worn_out))
            || self.parked.iter().any(is_worn_out)
    }

    /// Lets `n` permits through if every window has room, and returns `passed` as this call left it.
    #[inline]
    pub(crate) fn admit(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<u64, Refusal<'_>> {
        if n == 1 && self.is_simple {
            match self.try_admit_one(total, now, reading) {
                Ok(Some(after)) => return Ok(after),
                Err(Doubt::Full(answer)) => return Err(self.refusal(0, answer, total, 1, now, reading)),
                Ok(None) | Err(Doubt::Other) => {}
            }
        }
        self.try_admit(None, total, now, n, reading).map_err(|no| self.refused(no, total, n, now, reading))
    }

    /// As [`admit`](Self::admit), for the call that took `place`: ahead of all that have none, behind those that took
    /// theirs before. The place is given up when it has passed; otherwise it is to be kept until the moment that the
    /// refusal tells, if it [lasts](Place::lasts_until) that long.
    #[cold]
    pub(crate) fn admit_placed(
        &self,
        place: &mut Place,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<u64, Refusal<'_>> {
        let admitted = self.try_admit(Some(place), total, now, n, reading);
        if admitted.is_ok() {
            // What it stood for is counted in the window from now on.
            place.give_back();
        }
        admitted.map_err(|no| self.refused(no, total, n, now, reading))
    }

    /// Notes and tells of the refusal of a call that came to pass.
    #[inline]
    fn refused(
        &self,
        (first, answer): (usize, Answer),
        total: &AtomicU64,
        n: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Refusal<'_> {
        self.note_refused(first, total, now);
        self.refusal(first, answer, total, n, now, reading)
    }

    /// As [`try_admit`](Self::try_admit), of one permit and for windows that [are simple](Self::are_simple); or says that there
    /// is more to do for once. None where there is no limit: the caller is to count.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "for the one place where nearly every call comes by")]
    pub(crate) fn try_admit_one(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Option<u64>, Doubt<Answer>> {
        let limit = match &*self.limits {
            [limit] => limit,
            [] => return Ok(None),
            _ => return Err(Doubt::Other),
        };
        let age = limit.memory.age(now);
        // As where all are asked.
        let mut passed = total.load(Ordering::Acquire);
        loop {
            match limit.ask_at(limit.permits, total, passed, 1, now, age, reading) {
                Answer::Fits if self.is_unusual() => return Err(Doubt::Other),
                Answer::Fits => {}
                Answer::Stale => {
                    passed = total.load(Ordering::Acquire);
                    continue;
                }
                no => return Err(Doubt::Full(no)),
            }
            match total.compare_exchange(passed, passed + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(found) => passed = found,
            }
        }
        // Where the limit is in a ring, there is no log: that would be for one that is parked.
        if let Memory::Log(log) = &limit.memory {
            log.record_at(total, passed, 1, age);
        }
        Ok(Some(passed + 1))
    }

    /// As [`admit`](Self::admit) and [`admit_placed`](Self::admit_placed), but says no in few words: which window refuses
    /// first, and what it answers. The rest is told by [`refusal`](Self::refusal).
    #[inline(never)]
    pub(crate) fn try_admit(
        &self,
        place: Option<&Place>,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<u64, (usize, Answer)> {
        if self.limits.is_empty() {
            if self.is_told {
                return Ok(self.count(total, now, n, reading));
            }
            // Relaxed: nobody decides on it here.
            return Ok(total.fetch_add(n, Ordering::Relaxed) + n);
        }
        // Acquire: the bases and times that go with this value must be seen with it.
        let mut passed = total.load(Ordering::Acquire);
        loop {
            match self.ask_all(place, total, passed, n, now, reading) {
                Ok(()) => {}
                Err((_, Answer::Stale)) => {
                    passed = total.load(Ordering::Acquire);
                    continue;
                }
                Err(no) => return Err(no),
            }
            // AcqRel: releases the ticks this call opened before it counts in them; acquires what goes with the
            // value found when it lost.
            match total.compare_exchange(passed, passed + n, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(self.note_passed(total, passed, n, now)),
                Err(found) => passed = found,
            }
        }
    }

    /// Notes that `n` permits have been committed behind `passed`, and returns the total after that.
    #[inline]
    fn note_passed(&self, total: &AtomicU64, passed: u64, n: u64, now: Timestamp) -> u64 {
        if let Some(log) = &self.log {
            log.record(total, passed, n, now);
        }
        self.tell_watchers(n, now);
        passed + n
    }

    /// Counts what nobody limits, for those who watch and for rules that are off. Returns the total after that.
    #[cold]
    #[inline(never)]
    fn count(&self, total: &AtomicU64, now: Timestamp, n: u64, reading: &Reading<'_>) -> u64 {
        self.open(total, now);
        // AcqRel: as an admission.
        let before = total.fetch_add(n, Ordering::AcqRel);
        if let Some(log) = &self.log {
            // Read after that: it was not asked for, and an older reading would make the log forget.
            log.record(total, before, n, reading());
        }
        self.tell_watchers(n, now);
        before + n
    }

    /// Opens what rules that are off remember by: before anything is counted at `now`.
    fn open(&self, total: &AtomicU64, now: Timestamp) {
        for ring in &self.to_open {
            ring.open(now, total);
        }
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

    /// The rule at `first` has refused a call.
    #[inline]
    pub(crate) fn note_refused(&self, first: usize, total: &AtomicU64, now: Timestamp) {
        if self.is_moving {
            self.note_demand(first, total, now);
        }
    }

    /// A turn in which somebody is refused is not one with little to do.
    #[cold]
    fn note_demand(&self, refused_by: usize, total: &AtomicU64, now: Timestamp) {
        if let Some(warm_up) = &self.limits[refused_by].terms.warm_up {
            warm_up.note_demand(total, now);
        }
    }

    /// A place for a call of `n` permits that was refused, among those that come next by the rule that refused it; none
    /// if its turn would come later than in about one interval, or more than the limit were in places.
    ///
    /// It keeps calls without a place off the room that it waits for. At [`until`](Place::until) the call is to ask
    /// [`admit_placed`](Self::admit_placed).
    #[cold]
    pub(crate) fn take_place(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Option<Place> {
        let first = loop {
            match self.ask_all(None, total, total.load(Ordering::Acquire), n, now, reading) {
                // Somebody's place has become free meanwhile.
                Ok(()) => return Some(Place { until: now, latest: now, held: None }),
                Err((_, Answer::Stale)) => {}
                Err((_, Answer::Never)) => return None,
                Err((first, _)) => break first,
            }
        };
        let Limit { permits, interval_ns, terms, .. } = &self.limits[first];
        // When there is room for it behind those that are waiting already. Nobody is asked with the lock held: should
        // somebody queue meanwhile, its turn comes later than it thinks, and it waits again.
        let mut until = now;
        for limit in &self.limits {
            let standing = limit.standing(None, total, now);
            for permits in [limit.permits, standing] {
                let answer = loop {
                    let passed = total.load(Ordering::Acquire);
                    match limit.ask(permits, total, passed, n, now, reading) {
                        Answer::Stale => {}
                        answer => break answer,
                    }
                };
                match answer {
                    Answer::Never => return None,
                    answer => until = until.max(answer.until().unwrap_or(now)),
                }
            }
        }
        // A ring tells the moment to the bucket, the log to the microsecond.
        let grain_ns = match &self.limits[first].memory {
            Memory::Ring { .. } => interval_ns / u64::from(terms.rule.n_buckets()),
            Memory::Log(_) => 1_000,
        };
        let latest = now.saturating_add(Duration::from_nanos(interval_ns.saturating_add(grain_ns)));
        if until > latest {
            return None;
        }
        let held = Places::take(&terms.places, n, *permits)?;
        Some(Place { until, latest, held: Some(held) })
    }

    /// What [`admit`](Self::admit) would tell a call that is on its way in, perhaps with a place; takes nothing.
    pub(crate) fn ask_before(
        &self,
        place: Option<&Place>,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'_>> {
        self.ask_as(place, total, now, n, reading).map_err(|no| self.refused(no, total, n, now, reading))
    }

    /// As [`admit`](Self::admit), but takes nothing, and leaves no trace of having been asked.
    pub(crate) fn peek(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'_>> {
        self.ask_as(None, total, now, n, reading)
            .map_err(|(first, answer)| self.refusal(first, answer, total, n, now, reading))
    }

    /// As [`ask_all`](Self::ask_all), of what has passed at the moment.
    fn ask_as(
        &self,
        place: Option<&Place>,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<(), (usize, Answer)> {
        loop {
            match self.ask_all(place, total, total.load(Ordering::Acquire), n, now, reading) {
                Err((_, Answer::Stale)) => {}
                answer => return answer,
            }
        }
    }

    /// The position of the first rule that does not say `Fits`, and what it says.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call with so many arguments costs as much as the answer: 2.5 ns of 71"
    )]
    fn ask_all(
        &self,
        place: Option<&Place>,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(), (usize, Answer)> {
        for (i, limit) in self.limits.iter().enumerate() {
            match limit.ask(limit.permits, total, passed, n, now, reading) {
                Answer::Fits => {}
                other => return Err((i, other)),
            }
        }
        if self.is_unusual() { self.ask_standing(place, total, passed, n, now, reading) } else { Ok(()) }
    }

    /// Whether there is more to ask than the limits themselves.
    #[inline]
    fn is_unusual(&self) -> bool {
        // Relaxed: places decide who comes first, and not how many: for that, this call's compare-exchange stands.
        self.unusual.load(Ordering::Relaxed) != 0
    }

    /// Asks for what stands below the limits at the moment, and above them since a while ago, and opens what is parked.
    #[cold]
    fn ask_standing(
        &self,
        place: Option<&Place>,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(), (usize, Answer)> {
        self.open(total, now);
        if let Some(log) = &self.log {
            for Lowered { permits, interval_ns, until, limit } in &self.lowered {
                if now < *until {
                    match log.ask(total, passed, n, *permits, *interval_ns, now, reading) {
                        Answer::Fits => {}
                        other => return Err((*limit, other)),
                    }
                }
            }
        }
        for (i, limit) in self.limits.iter().enumerate() {
            let standing = limit.standing(place, total, now);
            if standing < limit.permits {
                match limit.ask(standing, total, passed, n, now, reading) {
                    Answer::Fits => {}
                    // It fits the limit, only not what stands: that is another in an interval at the latest.
                    Answer::Never => {
                        let until = now.saturating_add(limit.terms.rule.interval());
                        return Err((i, Answer::Full { until }));
                    }
                    other => return Err((i, other)),
                }
            }
        }
        Ok(())
    }

    /// Tells of the rule at `first`, which refuses, and of the latest moment at which it or one of the later ones lets go.
    /// Of a call that came to pass that is to be [noted](Self::note_refused) too.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what it returns is large to move about")]
    pub(crate) fn refusal(
        &self,
        first: usize,
        answer: Answer,
        total: &AtomicU64,
        n: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Refusal<'_> {
        let until = match &self.limits[first + 1..] {
            [] => answer.until(),
            later => latest(answer.until(), later, total, n, now, reading),
        };
        let Terms { id, rule, warm_up, .. } = &*self.limits[first].terms;
        let fits = answer != Answer::Never;
        let limit = match warm_up {
            Some(warm_up) if fits => warm_up.whole_rate(total, now),
            _ => rule.limit(),
        };
        Refusal { rule: id, by: By::Flow { rule, limit, fits }, until }
    }

    /// Adds up to `n` permits without asking the limits, so many that no window exceeds [`WINDOW_MAX`], and returns
    /// how many.
    pub(crate) fn charge(&self, total: &AtomicU64, n: u64, clock: &Reading<'_>) -> u64 {
        let now = clock();
        for warm_up in self.limits.iter().filter_map(|limit| limit.terms.warm_up.as_ref()) {
            warm_up.open(total, now);
        }
        self.open(total, now);
        let mut added = 0;
        // Where nothing is limited, only the total itself must not wrap.
        let limits = || self.limits.iter().chain(&self.parked);
        let most = if limits().next().is_none() { n.min(u64::MAX / 2) } else { n.min(WINDOW_MAX) };
        while added < most {
            let passed = total.load(Ordering::Acquire);
            let left = (most - added).min((u64::MAX / 2).saturating_sub(passed));
            let room = limits().try_fold(left, |room, limit| match &limit.memory {
                Memory::Ring { ring, .. } => ring.room(total, passed, now).map(|left| left.min(room)),
                Memory::Log(_) => Some(room),
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

/// From when on all of these limits have room too, if that is ever.
#[inline(never)]
fn latest(
    mut until: Option<Timestamp>,
    limits: &[Limit],
    total: &AtomicU64,
    n: u64,
    now: Timestamp,
    reading: &Reading<'_>,
) -> Option<Timestamp> {
    for limit in limits {
        let answer = loop {
            match limit.ask(limit.permits, total, total.load(Ordering::Acquire), n, now, reading) {
                Answer::Stale => {}
                answer => break answer,
            }
        };
        if answer != Answer::Fits {
            until = until.zip(answer.until()).map(|(latest, other)| latest.max(other));
        }
    }
    until
}

impl Limit {
    /// Do `n` permits behind `passed` fit under `permits`, which is this limit or what stands of it?
    #[inline]
    fn ask(
        &self,
        permits: u64,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Answer {
        self.ask_at(permits, total, passed, n, now, self.memory.age(now), reading)
    }

    /// As [`ask`](Self::ask), with `now` as its memory tells it too.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        clippy::too_many_arguments,
        reason = "a call with so many arguments costs as much as the answer: 2.5 ns of 71"
    )]
    fn ask_at(
        &self,
        permits: u64,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        now: Timestamp,
        age: Age,
        reading: &Reading<'_>,
    ) -> Answer {
        match &self.memory {
            Memory::Ring { ring, strict } => ring.ask(total, passed, n, permits, *strict, now),
            Memory::Log(log) => log.ask_at(total, passed, n, permits, self.interval_ns, age, reading),
        }
    }

    /// The rings that it remembers by.
    fn rings(&self) -> impl Iterator<Item = &Arc<Ring>> {
        let memory = match &self.memory {
            Memory::Ring { ring, .. } => Some(ring),
            Memory::Log(_) => None,
        };
        memory.into_iter().chain(self.terms.warm_up.as_ref().map(WarmUp::ring))
    }

    /// How many permits per interval the rule allows a call without a place at the moment, or the one with this place.
    fn standing(&self, place: Option<&Place>, total: &AtomicU64, now: Timestamp) -> u64 {
        let Terms { warm_up, places, .. } = &*self.terms;
        let warm = warm_up.as_ref().map_or(self.permits, |warm_up| warm_up.permits(total, now));
        let ahead = match place.and_then(|place| place.held.as_ref()) {
            Some(held) if Arc::ptr_eq(&held.places, places) => held.ahead(),
            // Relaxed: see `ask_all`.
            _ => places.taken.load(Ordering::Relaxed),
        };
        warm.min(self.permits).saturating_sub(ahead)
    }
}

/// Who comes next by a rule: priority calls that were refused, first come, first served.
///
/// A place is a claim on room and no room itself: whoever has one still commits as everybody does. Calls without one
/// see the limit less all that is claimed; the one with a place sees it less what was claimed before.
struct Places {
    /// The permits in the queue, for those who only want to know how many.
    taken: AtomicU64,
    /// The same of all rules of the windows.
    placed: Arc<AtomicU64>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Tickets grow from front to back; with each the permits that it stands for.
    waiting: VecDeque<(u64, u64)>,
    last_ticket: u64,
}

impl Places {
    fn new(placed: Arc<AtomicU64>) -> Self {
        Self { taken: AtomicU64::new(0), placed, queue: Mutex::default() }
    }

    /// The last place for `n` permits, if there are no more than `most` in places with them.
    fn take(places: &Arc<Self>, n: u64, most: u64) -> Option<Held> {
        let mut queue = places.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: u64 = queue.waiting.iter().map(|(_, n)| n).sum();
        if taken + n > most {
            return None;
        }
        queue.last_ticket += 1;
        let ticket = queue.last_ticket;
        queue.waiting.push_back((ticket, n));
        // Relaxed: see `ask_all`. Written under the lock, so that they are what the queue says.
        places.taken.fetch_add(n, Ordering::Relaxed);
        places.placed.fetch_add(n, Ordering::Relaxed);
        Some(Held { places: Arc::clone(places), ticket })
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// A place in the queue of a rule. Dropping it gives it back.
#[derive(Debug)]
#[must_use = "a place that is dropped is given back"]
pub(crate) struct Place {
    until: Timestamp,
    /// Nobody waits any longer than that, whatever becomes of the windows meanwhile.
    latest: Timestamp,
    /// None if somebody else's had just become free: then it is only to ask again.
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    places: Arc<Places>,
    ticket: u64,
}

impl Place {
    /// When it is its turn, unless somebody without a place was faster than could be seen.
    pub(crate) fn until(&self) -> Timestamp {
        self.until
    }

    /// Whether it is one at all, and not only a reason to ask again.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether its call may wait until then, about one interval after it began to.
    pub(crate) fn lasts_until(&self, until: Timestamp) -> bool {
        self.is_held() && until <= self.latest
    }

    /// Gives it back, as dropping it does.
    pub(crate) fn give_back(&mut self) {
        self.held = None;
    }
}

impl Held {
    /// The permits that come before it.
    fn ahead(&self) -> u64 {
        let queue = self.places.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.iter().take_while(|(ticket, _)| *ticket < self.ticket).map(|(_, n)| n).sum()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut queue = self.places.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = queue.waiting.iter().position(|(ticket, _)| *ticket == self.ticket)
            && let Some((_, n)) = queue.waiting.remove(at)
        {
            // Relaxed: as when it was taken.
            self.places.taken.fetch_sub(n, Ordering::Relaxed);
            self.places.placed.fetch_sub(n, Ordering::Relaxed);
        }
    }
}

/// What makes rings the same: interval and number of buckets.
type Shape = (Duration, u32);

fn shape_of(rule: &FlowRule) -> Shape {
    (rule.interval(), rule.n_buckets())
}

/// A limit as it stood before, in the windows and on the total that it stood in.
#[derive(Clone, Copy)]
struct Standing<'a> {
    limit: &'a Limit,
    windows: &'a Windows,
    total: &'a AtomicU64,
}

impl<'a> Standing<'a> {
    fn terms(&self) -> &'a Terms {
        &self.limit.terms
    }

    fn is_of(&self, total: &AtomicU64) -> bool {
        std::ptr::eq(self.total, total)
    }

    /// How many permits count in the window of this rule, if it is to have a memory of the other sort from now on.
    ///
    /// A limit that is lowered or raised past 1 024 changes its precision with it, and would start afresh. In the new
    /// memory these count as passing now, so it may refuse for up to an interval what the old one had let through.
    fn carried(&self, rule: &FlowRule, now: Timestamp, reading: &Reading<'_>) -> u64 {
        let Self { limit, total, .. } = *self;
        if self.terms().rule.interval() != rule.interval() {
            return 0;
        }
        match (&limit.memory, rule.precision()) {
            (Memory::Ring { ring, .. }, Precision::Exact) => loop {
                let passed = total.load(Ordering::Acquire);
                match ring.room(total, passed, now) {
                    Some(room) => return WINDOW_MAX - room,
                    None if total.load(Ordering::Acquire) == passed => return WINDOW_MAX,
                    None => {}
                }
            },
            (Memory::Log(log), Precision::Strict | Precision::Sentinel) => {
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
}

/// A ring of the rule's shape: the one that it stood by, another that is there already, or a new one.
fn ring_of(
    rings: &mut Vec<(Shape, Arc<Ring>)>,
    rule: &FlowRule,
    standing: Option<&Standing<'_>>,
    total: &AtomicU64,
    passed: u64,
    now: Timestamp,
    reading: &Reading<'_>,
) -> Arc<Ring> {
    let shape = shape_of(rule);
    if let Some(Standing { limit: Limit { memory: Memory::Ring { ring, .. }, terms, .. }, .. }) = standing
        && shape_of(&terms.rule) == shape
    {
        return match standing.filter(|standing| !standing.is_of(total)) {
            // It is this rule's alone: others of the shape have seen something else.
            Some(standing) => Arc::new(ring.moved(standing.total, passed, now)),
            None => Arc::clone(ring),
        };
    }
    if let Some((_, ring)) = rings.iter().find(|(held, _)| *held == shape) {
        return Arc::clone(ring);
    }
    // What is carried counts in the bucket of this moment.
    let carried = standing.map_or(0, |standing| standing.carried(rule, now, reading));
    let ring = Ring::new(rule.n_buckets(), rule.interval(), now, passed.saturating_sub(carried))
        .expect("a rule's buckets divide its interval");
    let ring = Arc::new(ring);
    rings.push((shape, Arc::clone(&ring)));
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
        Windows::after(&[(RuleId::new(None, RuleKind::Flow, 0), rule)], previous, &[], total, &|| now)
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
        let refused = two.peek(&total, now, 1, &|| now).unwrap_err();
        assert_eq!(refused.until, Some(at(1_900)));
        assert!(two.peek(&total, at(1_900), 1, &|| now).is_ok());
        // After an interval the old limit plays no part, also over another load; until then all that stood do.
        let lowered =
            |windows: &Windows| windows.lowered.iter().map(|lowered| lowered.permits).collect::<Vec<_>>();
        assert_eq!(lowered(&windows(1, &two, &total, later)), [2]);
        assert_eq!(lowered(&windows(1, &two, &total, now)), [2, 4]);
        assert_eq!(lowered(&windows(2, &two, &total, now)), [4]);
        assert_eq!(lowered(&windows(4, &two, &total, now)), [0; 0]);
    }

    const LIMITED: [Precision; 3] = [Precision::Exact, Precision::Strict, Precision::Sentinel];

    /// Two per second, in buckets of 100 ms where there are any.
    fn two_per_second(precision: Precision, total: &AtomicU64) -> Windows {
        let rule = FlowRule::new(2.0, Behavior::Reject).unwrap().with_buckets(10).unwrap();
        let rule = rule.with_precision(precision).unwrap();
        Windows::after(
            &[(RuleId::new(None, RuleKind::Flow, 0), rule)],
            &Windows::default(),
            &[],
            total,
            &|| at(0),
        )
    }

    #[test]
    fn a_refused_call_takes_a_place_and_passes_when_its_turn_comes() {
        for precision in LIMITED {
            let total = AtomicU64::new(0);
            let windows = two_per_second(precision, &total);
            let admit = |ms| windows.admit(&total, at(ms), 1, &|| at(ms)).is_ok();
            let place = |ms, n| windows.take_place(&total, at(ms), n, &|| at(ms));
            let placed = |place: &mut Place, ms| {
                let admitted = windows.admit_placed(place, &total, at(ms), 1, &|| at(ms));
                admitted.map(drop).map_err(|refusal| refusal.until.unwrap())
            };
            // In a strict ring a pass leaves with the bucket after its own.
            let late = if precision == Precision::Strict { 100 } else { 0 };
            assert!(admit(0) && admit(200) && !admit(300));
            assert!(place(300, 3).is_none(), "never fits");
            let mut first = place(300, 1).unwrap();
            assert_eq!(first.until(), at(1_000 + late));
            let mut second = place(300, 1).unwrap();
            assert_eq!(second.until(), at(1_200 + late), "behind the first");
            assert!(place(300, 1).is_none(), "as many in places as the limit");
            // Before its time, and before those ahead of it, nobody passes.
            assert_eq!(placed(&mut first, 999), Err(at(1_000 + late)));
            assert!(!admit(1_000 + late));
            assert_eq!(placed(&mut second, 1_000 + late), Err(at(1_200 + late)));
            assert_eq!(placed(&mut first, 1_000 + late), Ok(()));
            assert!(!admit(1_200 + late), "that room is the second's");
            assert_eq!(placed(&mut second, 1_200 + late), Ok(()));
            assert_eq!(windows.placed.load(Ordering::Relaxed), 0);
            assert!(!admit(1_300 + late) && admit(2_000 + 2 * late), "{precision:?}");
        }
    }

    #[test]
    fn a_place_that_is_dropped_is_everybodys_again() {
        for precision in LIMITED {
            let total = AtomicU64::new(0);
            let windows = two_per_second(precision, &total);
            let admit = |ms| windows.admit(&total, at(ms), 2, &|| at(ms)).is_ok();
            assert!(admit(0));
            let (first, mut second) =
                [1, 1].map(|n| windows.take_place(&total, at(300), n, &|| at(300)).unwrap()).into();
            drop(first);
            assert!(!admit(1_100));
            let peek = |n| windows.peek(&total, at(1_100), n, &|| at(1_100));
            assert!(peek(1).is_ok() && peek(2).unwrap_err().until.is_some());
            second.give_back();
            second.give_back();
            assert!(admit(1_100));
        }
    }

    #[test]
    fn a_place_outlives_a_reload_and_the_rule_it_was_taken_from() {
        let total = AtomicU64::new(0);
        let two = windows(2, &Windows::default(), &total, at(0));
        assert!(two.admit(&total, at(0), 2, &|| at(0)).is_ok());
        let mut place = two.take_place(&total, at(300), 1, &|| at(300)).unwrap();
        let one = windows(1, &two, &total, at(400));
        assert!(one.admit(&total, at(1_000), 1, &|| at(1_000)).is_err(), "it is taken");
        let none = Windows::after(&[], &one, &[], &total, &|| at(500));
        assert!(none.admit_placed(&mut place, &total, at(600), 1, &|| at(600)).is_ok());
        assert_eq!(one.placed.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_place_makes_calls_unusual_where_it_was_taken_and_nowhere_else() {
        let (total, none) = (AtomicU64::new(0), Windows::default());
        let (one, other) = (windows(1, &none, &total, at(0)), windows(1, &none, &AtomicU64::new(0), at(0)));
        assert!(one.admit(&total, at(0), 1, &|| at(0)).is_ok());
        let place = one.take_place(&total, at(300), 1, &|| at(300)).unwrap();
        let same = windows(1, &one, &total, at(400));
        assert_eq!([&one, &same, &other].map(Windows::is_unusual), [true, true, false]);
        drop(place);
        assert_eq!([&one, &same, &other].map(Windows::is_unusual), [false; 3]);
    }

    #[test]
    fn a_place_whose_turn_is_further_than_an_interval_away_is_none() {
        let total = AtomicU64::new(0);
        let rules = [(1.0, 1), (1.0, 10)].map(|(limit, seconds)| {
            FlowRule::new(limit, Behavior::Reject).unwrap().per(Duration::from_secs(seconds)).unwrap()
        });
        let rules = rules.into_iter().enumerate();
        let rules: Vec<_> = rules.map(|(i, rule)| (RuleId::new(None, RuleKind::Flow, i), rule)).collect();
        let windows = Windows::after(&rules, &Windows::default(), &[], &total, &|| at(0));
        assert!(windows.admit(&total, at(0), 1, &|| at(0)).is_ok());
        assert!(
            windows.take_place(&total, at(500), 1, &|| at(500)).is_none(),
            "the other rule lets go at 10 s"
        );
        // Where that rule is the one that refuses, it is within its interval.
        let place = windows.take_place(&total, at(5_000), 1, &|| at(5_000)).unwrap();
        assert_eq!(place.until(), at(10_000));
    }
}
