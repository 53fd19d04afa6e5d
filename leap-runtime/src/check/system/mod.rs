//! System protection: what inbound calls of a whole registry are decided by, besides their resources' own rules.
//!
//! One [`System`] stands for a registry and is swapped as a whole when rules are loaded. What is counted lives on from one
//! to the next. The questions come in Sentinel's order: QPS, concurrency, average response time, load, CPU. Two words
//! decide: `admitted` (by the windows) and `in_flight`. Everything else that is asked is a figure of a moment ago.

mod inbound;
mod probe;
mod samples;
mod stats;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

pub use self::probe::{HostProbe, SystemProbe, SystemSample};
pub use self::stats::{DimensionStats, SystemStats};

use self::inbound::{Inbound, Recent, Room};
use self::samples::Samples;
use crate::check::figures::{Figures, Word};
use crate::check::flow::windows::Windows;
use crate::clock::{Reading, Timestamp};
use crate::event::Outcome;
use crate::rule::{Dimension, Exceeded, Mode, RuleId, RuleKind, SystemRule};

/// The system rules of a registry at work. The default is none, which asks and counts nothing.
#[derive(Debug, Default)]
pub(crate) struct System {
    rules: Box<[(RuleId, SystemRule)]>,
    /// The lowest of those on each dimension.
    qps: Option<Limit>,
    concurrency: Option<Limit>,
    avg_rt: Option<Limit>,
    load: Option<Limit>,
    cpu: Option<Limit>,
    /// Those of `qps`, over `admitted`.
    windows: Windows,
    /// Made with the first rule, and kept: calls that were counted in end in it, whatever was loaded since.
    live: Option<Arc<Live>>,
    shadows: Box<[Shadow]>,
}

/// What outlives the rules.
#[derive(Debug)]
struct Live {
    inbound: Inbound,
    machine: Arc<Machine>,
}

/// What is known of the machine, by all rules of a registry.
struct Machine {
    samples: Samples,
    probe: Arc<dyn SystemProbe>,
}

/// Panics of a probe are contained where it is asked; what one leaves in itself is its own business.
impl UnwindSafe for Machine {}
impl RefUnwindSafe for Machine {}

/// A rule in shadow: the system of that one rule, with words of its own, about what it would have let through.
#[derive(Debug)]
struct Shadow {
    id: RuleId,
    rule: SystemRule,
    system: System,
    figures: Arc<Figures>,
}

/// What the shadows of a system hold of a call: with the place of each.
pub(crate) type ShadowsHeld = Vec<(usize, Held)>;

#[derive(Debug)]
struct Limit {
    id: RuleId,
    dimension: Dimension,
    max: f64,
    as_sentinel: bool,
}

/// What an inbound call holds until its end: its permits in flight. Nothing where no system rule stood when it came.
#[derive(Debug, Default)]
#[must_use = "what is held is given back, or ends"]
pub(crate) struct Held(u32);

/// An inbound call was turned away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemRefusal<'a> {
    pub(crate) rule: &'a RuleId,
    pub(crate) exceeded: Exceeded,
    /// When QPS has room again. What depends on running calls or on the machine is known by nobody.
    pub(crate) until: Option<Timestamp>,
}

impl System {
    /// The system of `rules`, going on from `previous`: what is in flight and what was sampled is kept, and what was let
    /// through within the last second as far as [`Windows`] carry it. Only the first one's `probe` is ever asked.
    ///
    /// While calls go on by the previous one, [`catch_up`](Self::catch_up) is to be called once this is published.
    pub(crate) fn new(
        rules: Vec<(RuleId, SystemRule)>,
        previous: &Self,
        probe: &Arc<dyn SystemProbe>,
        reading: &Reading<'_>,
    ) -> Self {
        let machine = match &previous.live {
            Some(live) => Arc::clone(&live.machine),
            None => Arc::new(Machine { samples: Samples::new(), probe: Arc::clone(probe) }),
        };
        // A rule that was in shadow only, and is so no more, takes its window along; a shadow that stays keeps it. An id that
        // is only a place may be that of a rule on another figure.
        let is_same = |one: (&RuleId, &SystemRule), other: (&RuleId, &SystemRule)| {
            one.0 == other.0 && one.1.dimension() == other.1.dimension()
        };
        let has = |rules: &[(RuleId, SystemRule)], this: (&RuleId, &SystemRule)| {
            rules.iter().any(|(id, rule)| is_same((id, rule), this) && rule.mode() != Mode::Shadow)
        };
        let is_promoted = |shadow: &&Shadow| {
            let this = (&shadow.id, &shadow.rule);
            let stays = || rules.iter().any(|(id, rule)| (id, rule) == this);
            has(&rules, this) && !has(&previous.rules, this) && !stays()
        };
        let (promoted, standing): (Vec<_>, Vec<_>) = previous.shadows.iter().partition(is_promoted);
        let others: Vec<_> = promoted.iter().map(|shadow| &shadow.system).collect();
        let shadows = rules.iter().filter(|(_, rule)| rule.mode() == Mode::Shadow).map(|(id, rule)| {
            let this = (id, rule);
            let standing = standing.iter().find(|shadow| is_same((&shadow.id, &shadow.rule), this)).copied();
            let descends = has(&previous.rules, this) && !has(&rules, this);
            Shadow::new(id, rule, standing, Some(previous).filter(|_| descends), &machine, reading)
        });
        let shadows = shadows.collect();
        Self { shadows, ..Self::after(rules, previous, &others, &machine, reading) }
    }

    /// The system of those of `rules` that are not in shadow, going on from `previous`; what that does not know of a window
    /// is taken over from `others`.
    fn after(
        rules: Vec<(RuleId, SystemRule)>,
        previous: &Self,
        others: &[&Self],
        machine: &Arc<Machine>,
        reading: &Reading<'_>,
    ) -> Self {
        let standing = |mode: Mode| rules.iter().filter(move |(_, rule)| rule.mode() == mode);
        let live = previous.live.clone().or_else(|| {
            let live = || Arc::new(Live { inbound: Inbound::new(reading()), machine: Arc::clone(machine) });
            (!rules.is_empty()).then(live)
        });
        // The first of the lowest ones, where several are equal.
        let lowest = |mode, dimension| {
            let of_dimension = standing(mode).filter(move |(_, rule)| rule.dimension() == dimension);
            of_dimension.min_by(|(_, a), (_, b)| a.limit().total_cmp(&b.limit()))
        };
        let limit =
            |dimension| lowest(Mode::Enforce, dimension).map(|(id, rule)| Limit::new(id.clone(), rule));
        // Under one id, whichever rule it is of: what passed before is carried over to it.
        let id = RuleId::new(None, RuleKind::System, 0);
        let window = |mode| {
            let (_, rule) = lowest(mode, Dimension::Qps)?;
            Some((id.clone(), rule.clone().into_window()?.with_mode(mode)))
        };
        // One that is off remembers what passes.
        let window = window(Mode::Enforce).or_else(|| window(Mode::Off));
        let others: Vec<_> = others
            .iter()
            .filter_map(|other| Some((&other.windows, other.live.as_ref()?.inbound.admitted())))
            .collect();
        let windows = match &live {
            Some(live) => Windows::after(
                window.as_slice(),
                &previous.windows,
                &others,
                live.inbound.admitted(),
                reading,
            ),
            None => Windows::default(),
        };
        Self {
            qps: limit(Dimension::Qps),
            concurrency: limit(Dimension::Concurrency),
            avg_rt: limit(Dimension::AvgRt),
            load: limit(Dimension::Load),
            cpu: limit(Dimension::Cpu),
            windows,
            live,
            shadows: Box::default(),
            rules: rules.into(),
        }
    }

    /// Writes what calls that went by the previous system left unwritten.
    pub(crate) fn catch_up(&self, reading: &Reading<'_>) {
        if let Some(live) = &self.live {
            self.windows.catch_up(live.inbound.admitted(), reading);
        }
        self.shadows.iter().for_each(|shadow| shadow.system.catch_up_alone(reading));
    }

    fn catch_up_alone(&self, reading: &Reading<'_>) {
        if let Some(live) = &self.live {
            self.windows.catch_up(live.inbound.admitted(), reading);
        }
    }

    /// Whether this has to be built anew because what it remembers is too old to count on.
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        self.windows.is_worn_out(now)
            || self.shadows.iter().any(|shadow| shadow.system.windows.is_worn_out(now))
    }

    /// The rules as loaded, with those that are switched off or in shadow.
    pub(crate) fn rules(&self) -> &[(RuleId, SystemRule)] {
        &self.rules
    }

    /// Whether any rule decides, or wants to know of inbound calls. Where none does, they need not ask.
    pub(crate) fn counts(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Asks the rules in shadow about a call of `n` permits that passed. Returns what they hold of it.
    pub(crate) fn ask_shadows(&self, n: u32, now: Timestamp, reading: &Reading<'_>) -> Option<ShadowsHeld> {
        let shadows = self.shadows.iter().enumerate();
        let held: Vec<_> =
            shadows.filter_map(|(i, shadow)| Some((i, shadow.ask(n, false, now, reading)?))).collect();
        (!held.is_empty()).then_some(held)
    }

    /// Asks the rules in shadow about a call of `n` permits that a system rule blocked.
    pub(crate) fn ask_shadows_blocked(&self, n: u32, now: Timestamp, reading: &Reading<'_>) {
        for shadow in &self.shadows {
            if let Some(held) = shadow.ask(n, true, now, reading) {
                shadow.system.give_back(held);
            }
        }
    }

    /// A call that was let through ended, of which the rules in shadow hold something.
    pub(crate) fn end_shadows(&self, held: ShadowsHeld, rt_ns: u64, outcome: Outcome, now: Timestamp) {
        for (i, held) in held {
            self.shadows[i].system.end(held, rt_ns, outcome, now);
        }
    }

    /// What an inbound call of `n` permits would be told; takes nothing.
    pub(crate) fn peek(
        &self,
        n: u32,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(), SystemRefusal<'_>> {
        let Some(live) = self.counting() else { return Ok(()) };
        let windows = self.windows.peek(live.inbound.admitted(), now, n.into(), reading);
        windows.map_err(|refusal| self.full(live, n, refusal.until))?;
        let in_flight = live.inbound.in_flight().get();
        match self.bounds(live, now).into_iter().flatten().find(|bound| !bound.room.fits(in_flight, n)) {
            Some(bound) => Err(bound.refusal(in_flight)),
            None => Ok(()),
        }
    }

    /// Lets an inbound call of `n` permits through and counts it in, or neither. It asks all that [`peek`](Self::peek)
    /// asks, on the words that decide.
    ///
    /// What a window let through is not given back, so this comes after everything that can be: a call that another
    /// check refuses later has used up a permit of the second.
    pub(crate) fn admit(
        &self,
        n: u32,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Held, SystemRefusal<'_>> {
        let Some(live) = self.counting() else { return Ok(Held::default()) };
        live.inbound.turn(now);
        let bounds = self.bounds(live, now);
        let room = bounds.iter().flatten().fold(Room::ANY, |room, bound| room.and(bound.room));
        live.inbound.in_flight().take(n, room).map_err(|in_flight| {
            let mut bounds = bounds.into_iter().flatten();
            let bound =
                bounds.find(|bound| !bound.room.fits(in_flight, n)).expect("the room is that of all bounds");
            bound.refusal(in_flight)
        })?;
        let held = Held(n);
        match self.windows.admit(live.inbound.admitted(), now, n.into(), reading) {
            Ok(_) => Ok(held),
            Err(refusal) => {
                self.give_back(held);
                Err(self.full(live, n, refusal.until))
            }
        }
    }

    /// A call that was let through is turned away by a later check: it is no longer in flight.
    #[inline]
    pub(crate) fn give_back(&self, held: Held) {
        if let (Some(live), Held(n @ 1..)) = (&self.live, held) {
            live.inbound.in_flight().give_back(n);
        }
    }

    /// A call that was let through ended, `rt_ns` after it began to run. Any later system of the same registry may be told.
    #[inline]
    pub(crate) fn end(&self, held: Held, rt_ns: u64, outcome: Outcome, now: Timestamp) {
        if let (Some(live), Held(n @ 1..)) = (&self.live, held) {
            if outcome != Outcome::Cancelled {
                live.inbound.complete(n, rt_ns, now);
            }
            // Last, so that a call that is no longer in flight has left its numbers.
            live.inbound.in_flight().give_back(n);
        }
    }

    /// Whether a rule waits for a new sample of the machine. Ask before [`peek`](Self::peek), and
    /// [`sample_if_due`](Self::sample_if_due) if so.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let asks_machine =
            self.asks_machine() || self.shadows.iter().any(|shadow| shadow.system.asks_machine());
        asks_machine && self.live.as_ref().is_some_and(|live| live.machine.samples.is_due(now))
    }

    fn asks_machine(&self) -> bool {
        self.load.is_some() || self.cpu.is_some()
    }

    /// Takes the sample that is due, if nobody else is at it. A panic of the probe is the caller's to contain; it leaves
    /// the figures as they were, for another second.
    #[cold]
    pub(crate) fn sample_if_due(&self, now: Timestamp) {
        if let Some(live) = &self.live
            && live.machine.samples.claim(now)
        {
            live.machine.sample(now);
        }
    }

    /// Takes a sample now, for whoever samples by himself. Nothing where no system rule ever stood.
    pub(crate) fn sample(&self, now: Timestamp) {
        if let Some(live) = &self.live {
            live.machine.samples.put_off(now);
            live.machine.sample(now);
        }
    }

    /// What the rules see at `now`.
    pub(crate) fn figures(&self, now: Timestamp) -> SystemStats {
        let Some(live) = &self.live else { return SystemStats::default() };
        let (inbound, samples, recent) = (&live.inbound, &live.machine.samples, live.inbound.recent(now));
        #[expect(clippy::cast_precision_loss, reason = "permits of a second, and those in flight")]
        let (qps, in_flight) = (recent.admitted as f64, inbound.in_flight().get() as f64);
        let (load, cpu_of_quota) = (samples.load(now), samples.cpu_of_quota(now));
        let dimensions = [
            (&self.qps, Some(qps)),
            (&self.concurrency, Some(in_flight)),
            (&self.avg_rt, Some(recent.avg_rt())),
            (&self.load, load),
            (&self.cpu, cpu_of_quota),
        ];
        let as_sentinel =
            [&self.load, &self.cpu].into_iter().flatten().next().is_some_and(|limit| limit.as_sentinel);
        SystemStats {
            load,
            cpu_of_quota,
            quota: samples.quota(now),
            inbound_qps: recent.admitted,
            inbound_in_flight: inbound.in_flight().get(),
            avg_rt_s: (recent.calls > 0).then(|| recent.avg_rt()),
            #[expect(clippy::cast_precision_loss, reason = "the nanoseconds of a call")]
            min_rt_s: recent.rt_min_ns.map(|ns| ns as f64 / 1e9),
            estimate: recent.estimate(as_sentinel),
            ignored_samples: samples.ignored(),
            dimensions: dimensions
                .into_iter()
                .filter_map(|(limit, observed)| limit.as_ref().map(|limit| limit.stats(observed)))
                .collect(),
            shadows: self
                .shadows
                .iter()
                .map(|shadow| shadow.figures.stats(&shadow.id, &shadow.rule))
                .collect(),
        }
    }

    /// What whoever loaded the rules should know: which of them do nothing here, and what others go by. A sample is to
    /// have been taken before.
    pub(crate) fn notes(&self, now: Timestamp) -> Vec<String> {
        let Some(live) = &self.live else { return vec![] };
        let mut notes = vec![];
        for (_, rule) in self.rules.iter().filter(|(_, rule)| rule.is_no_limit()) {
            notes.push(format!("{rule}: a limit above 2147483647 per second is no limit"));
        }
        if self.load.is_some() && live.machine.samples.load(now).is_none() {
            notes.push("system: no load average can be read here; limits on it are inactive".to_owned());
        }
        if self.cpu.is_some() && live.machine.samples.quota(now).is_none() {
            notes.push(
                "system: no quota of processor time can be read here; figures are the machine's".to_owned(),
            );
        }
        notes
    }

    fn counting(&self) -> Option<&Live> {
        if self.counts() { self.live.as_deref() } else { None }
    }

    /// What bounds the permits in flight at `now`, in the order of Sentinel's questions.
    fn bounds(&self, live: &Live, now: Timestamp) -> [Option<Bound<'_>>; 4] {
        let recent = || live.inbound.recent(now);
        let concurrency = self.concurrency.as_ref().map(|limit| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made from a u32")]
            let max = limit.max as u64;
            // Sentinel asks what is in flight before the call.
            let room = if limit.as_sentinel {
                Room { found: max, ..Room::ANY }
            } else {
                Room { left: max, ..Room::ANY }
            };
            Bound { limit, room, observed: None }
        });
        let avg_rt = self.avg_rt.as_ref().and_then(|limit| {
            let avg_rt = recent().avg_rt();
            (avg_rt > limit.max).then_some(Bound { limit, room: Room::NONE, observed: Some(avg_rt) })
        });
        let load = self.load.as_ref().and_then(|limit| limit.bound(live.machine.samples.load(now), recent));
        let cpu =
            self.cpu.as_ref().and_then(|limit| limit.bound(live.machine.samples.cpu_of_quota(now), recent));
        [concurrency, avg_rt, load, cpu]
    }

    /// The refusal of the windows.
    fn full(&self, live: &Live, n: u32, until: Option<Timestamp>) -> SystemRefusal<'_> {
        let limit = self.qps.as_ref().expect("a window stands for a limit");
        // As many as were at least taken, or `n` would have fitted.
        let taken = (limit.max.floor() + 1.0 - f64::from(n)).max(0.0);
        let in_flight = live.inbound.in_flight().get();
        SystemRefusal { until, ..Bound { limit, room: Room::NONE, observed: Some(taken) }.refusal(in_flight) }
    }
}

impl Shadow {
    /// The shadow of `rule`, going on from `standing`; where there is none, from the rule that `enforced` was asked by.
    fn new(
        id: &RuleId,
        rule: &SystemRule,
        standing: Option<&Self>,
        enforced: Option<&System>,
        machine: &Arc<Machine>,
        reading: &Reading<'_>,
    ) -> Self {
        let is_same = |standing: &&Self| standing.rule == *rule;
        let figures =
            standing.filter(is_same).map(|standing| Arc::clone(&standing.figures)).unwrap_or_default();
        let none = System::default();
        let previous = standing.map_or(&none, |standing| &standing.system);
        let others = enforced.filter(|_| standing.is_none());
        let rules = vec![(id.clone(), rule.clone().with_mode(Mode::Enforce))];
        let system = System::after(rules, previous, others.as_slice(), machine, reading);
        Self { id: id.clone(), rule: rule.clone(), system, figures }
    }

    /// What the shadow holds of a call that it would let through.
    fn ask(&self, n: u32, is_blocked: bool, now: Timestamp, reading: &Reading<'_>) -> Option<Held> {
        let asked = self.system.admit(n, now, reading).ok();
        self.figures.note(if asked.is_some() { Word::Passes } else { Word::Blocks }, is_blocked);
        asked
    }
}

impl Limit {
    fn new(id: RuleId, rule: &SystemRule) -> Self {
        let (dimension, max) = (rule.dimension(), rule.limit());
        Self { id, dimension, max, as_sentinel: rule.is_as_sentinel() }
    }

    /// What this limit on a figure of the machine allows, if that is above it.
    ///
    /// A machine is busy for many reasons, and one that does nothing else should be: so calls are not refused outright but
    /// held to what gets through, as estimated. Sentinel does so for load, and refuses every call for CPU.
    fn bound(&self, figure: Option<f64>, recent: impl FnOnce() -> Recent) -> Option<Bound<'_>> {
        let observed = figure.filter(|figure| *figure > self.max)?;
        let is_outright = self.as_sentinel && self.dimension == Dimension::Cpu;
        let room = if is_outright { Room::NONE } else { Room::up_to(recent().estimate(self.as_sentinel)) };
        Some(Bound { limit: self, room, observed: Some(observed) })
    }

    fn stats(&self, observed: Option<f64>) -> DimensionStats {
        DimensionStats { dimension: self.dimension, rule: self.id.clone(), limit: self.max, observed }
    }
}

/// A limit that bounds the permits in flight now.
#[derive(Clone, Copy)]
struct Bound<'a> {
    limit: &'a Limit,
    room: Room,
    /// The figure by which it does; none where that is what is in flight.
    observed: Option<f64>,
}

impl<'a> Bound<'a> {
    fn refusal(self, in_flight: u64) -> SystemRefusal<'a> {
        let Limit { id, dimension, max, .. } = self.limit;
        let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
        let observed = self.observed.unwrap_or(in_flight.into());
        let exceeded = Exceeded { dimension: *dimension, observed, limit: *max, in_flight };
        SystemRefusal { rule: id, exceeded, until: None }
    }
}

impl Machine {
    fn sample(&self, now: Timestamp) {
        // No lock is held: a probe is not ours.
        self.samples.note(&self.probe.sample(), now);
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("samples", &self.samples).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
