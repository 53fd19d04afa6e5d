//! Flow rules for some calls of a resource: those of one entrance, of one origin, of other origins, of each origin.
//!
//! Such a rule decides on words of its own, never on the resource's `passed`: a gate holds one word, `admitted`, and the
//! flow over it: windows, or a line for those who are paced. A rule that counts origins on their own has a gate for each. A call is first asked at all gates that
//! it has to go through, then commits at each in the order of the rules. Nothing is given back: what a lost race, or a
//! later check, wastes is in a rule's word and in no statistic.
//!
//! # No origin gets more by coming and going
//!
//! Gates by origin stand in a table with so many places. Where all are taken, those leave at which nothing was admitted
//! for an interval and [`SLACK`], and nobody is deciding: whoever decides holds the gate's `Arc`, which the table counts
//! under its lock. Whoever finds no place goes through one gate shared by all such, the overflow. An origin that was
//! sent there and gets a place of its own later goes through both, until what it had there has left the window.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::{Flow, Turns};
use crate::blocked::{By, Refusal};
use crate::clock::{Reading, Timestamp};
use crate::rule::{FlowRule, Relation, RuleId};
use crate::sync::{AtomicU64, Ordering};

/// The origins that a rule counts on their own at once.
const ORIGINS_MAX: usize = 1_000;
/// How much longer than an interval a gate is at rest before it may leave: as long as a thread may have been stopped
/// between the reading of its clock and its coming here.
const SLACK: Duration = Duration::from_secs(1);
/// How often a full table looks for gates that may leave: to look at a thousand takes some 10 µs.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// How many groups of origins are told apart in memory of who was sent to the overflow.
const GROUPS: usize = 1_024;

/// The rules of a resource that hold for some of its calls.
#[derive(Debug, Default)]
pub(crate) struct Scoped {
    rules: Box<[ScopedRule]>,
    /// The origins that have rules of their own, so they are no others.
    named: Box<[Box<str>]>,
}

#[derive(Debug)]
struct ScopedRule {
    id: RuleId,
    rule: FlowRule,
    gates: Gates,
}

#[derive(Clone, Debug)]
enum Gates {
    One(Arc<Gate>),
    /// Shared with the plans before and after, so that no call of an old plan makes an origin a second gate.
    PerOrigin(Arc<Table>),
}

/// A word that a rule decides on, and the flow over it.
#[derive(Debug)]
struct Gate {
    word: Arc<Word>,
    flow: Flow,
    /// Which rule of its table it was made by.
    generation: u64,
    /// Until when the overflow is to be asked too.
    beside_until: Timestamp,
}

/// Kept when the windows over it are replaced. On a cache line of its own: origins next to each other call at once.
#[derive(Debug)]
#[repr(align(64))]
struct Word {
    admitted: AtomicU64,
    /// The latest reading of whoever was admitted, or the latest start if that is later, in ns.
    last: AtomicU64,
}

impl Gate {
    fn new(id: RuleId, rule: &FlowRule, generation: u64, now: Timestamp) -> Self {
        let word = Word { admitted: AtomicU64::new(0), last: AtomicU64::new(now.as_nanos()) };
        let flow = Flow::new(&[(id, rule.clone())], &Flow::default(), &word.admitted, &|| now);
        Self { word: Arc::new(word), flow, generation, beside_until: Timestamp::ZERO }
    }

    /// The same word with the flow of another rule. [`catch_up`](Self::catch_up) is to be called once it stands.
    fn renewed(&self, id: RuleId, rule: &FlowRule, generation: u64, reading: &Reading<'_>) -> Self {
        let word = Arc::clone(&self.word);
        let flow = Flow::new(&[(id, rule.clone())], &self.flow, &word.admitted, reading);
        Self { word, flow, generation, beside_until: self.beside_until }
    }

    fn catch_up(&self, reading: &Reading<'_>) {
        self.flow.windows().catch_up(&self.word.admitted, reading);
    }

    fn peek(&self, n: u64, now: Timestamp, reading: &Reading<'_>) -> Result<(), Refusal<'_>> {
        self.flow.peek(&self.word.admitted, now, n, reading)
    }

    /// As [`peek`](Self::peek), for a call that is on its way in.
    fn ask(&self, n: u64, now: Timestamp, reading: &Reading<'_>) -> Result<(), Refusal<'_>> {
        let admitted = &self.word.admitted;
        self.flow.ask_turns(admitted, now, n, reading)?;
        self.flow.windows().ask_before(None, admitted, now, n, reading)
    }

    /// Counts `n` permits in for a call that starts at `start`, once its turn is taken.
    fn admit(
        &self,
        n: u64,
        now: Timestamp,
        start: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'_>> {
        self.flow.windows().admit(&self.word.admitted, now, n, reading)?;
        // Relaxed: read only by who holds the last `Arc`, and so has acquired it.
        self.word.last.fetch_max(start.as_nanos(), Ordering::Relaxed);
        Ok(())
    }

    /// Whether nothing was admitted for so long, and nobody is deciding here, nor by windows that stood before.
    fn is_at_rest(gate: &mut Arc<Self>, rest: Duration, now: Timestamp) -> bool {
        let word = Arc::get_mut(gate).and_then(|gate| Arc::get_mut(&mut gate.word));
        word.is_some_and(|word| {
            now >= Timestamp::from_nanos(word.last.load(Ordering::Relaxed)).saturating_add(rest)
        })
    }
}

impl Scoped {
    /// Those of `rules` that hold for some calls only, going on from the first of `previous` that knows them. Rules that are
    /// no limit are left out, unless they were one: these go on counting.
    ///
    /// While calls go on by the previous ones, [`catch_up`](Self::catch_up) is to be called once these are published.
    pub(crate) fn new<'p>(
        rules: &[(RuleId, FlowRule)],
        previous: impl IntoIterator<Item = &'p Self>,
        reading: &Reading<'_>,
    ) -> Self {
        Self::with_places(ORIGINS_MAX, rules, previous, reading)
    }

    fn with_places<'p>(
        most: usize,
        rules: &[(RuleId, FlowRule)],
        previous: impl IntoIterator<Item = &'p Self>,
        reading: &Reading<'_>,
    ) -> Self {
        let previous: Vec<_> = previous.into_iter().flat_map(|previous| &previous.rules).collect();
        let scoped = |(id, rule): &(RuleId, FlowRule)| {
            let is_scoped = !matches!(rule.relation(), Relation::Own | Relation::Associated(_));
            let is_same =
                |before: &&&ScopedRule| before.id == *id && before.rule.relation() == rule.relation();
            let gates = match previous.iter().find(is_same) {
                _ if !is_scoped => return None,
                None if rule.permits().is_none() => return None,
                Some(before) => before.gates.renewed(id.clone(), &before.rule, rule, reading),
                None => Gates::new(most, id.clone(), rule, reading()),
            };
            Some(ScopedRule { id: id.clone(), rule: rule.clone(), gates })
        };
        let named = named(rules.iter().map(|(_, rule)| rule));
        Self { rules: rules.iter().filter_map(scoped).collect(), named }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The same, where these origins have rules of their own and no others.
    pub(crate) fn with_named(self, named: &[Box<str>]) -> Self {
        Self { named: named.into(), ..self }
    }

    /// Writes what calls that went by the previous windows left unwritten.
    pub(crate) fn catch_up(&self, reading: &Reading<'_>) {
        for rule in &self.rules {
            if let Gates::One(gate) = &rule.gates {
                gate.catch_up(reading);
            }
        }
    }

    /// Whether these have to be built anew because a log is too old to count on. Those of single origins see to it
    /// themselves.
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        let is_worn_out = |rule: &ScopedRule| match &rule.gates {
            Gates::One(gate) => gate.flow.is_worn_out(now),
            Gates::PerOrigin(_) => false,
        };
        self.rules.iter().any(is_worn_out)
    }

    /// The first rule by which calls may have to wait.
    pub(crate) fn paced_by(&self) -> Option<&RuleId> {
        self.rules.iter().find(|rule| rule.rule.is_paced()).map(|rule| &rule.id)
    }

    /// The rules that a call has to do with.
    fn rules_for<'s, 'c>(
        &'s self,
        origin: Option<&'c str>,
        entrance: Option<&'c str>,
    ) -> impl Iterator<Item = (&'s ScopedRule, &'c str)> {
        self.rules.iter().filter_map(move |rule| {
            let holds = match rule.rule.relation() {
                Relation::Own | Relation::Associated(_) => false,
                Relation::Entrance(name) => entrance == Some(name),
                Relation::Origin(name) => origin == Some(name),
                Relation::OtherOrigins => origin.is_some_and(|origin| !self.is_named(origin)),
                Relation::EachOrigin => origin.is_some(),
            };
            holds.then_some((rule, origin.unwrap_or_default()))
        })
    }

    fn is_named(&self, origin: &str) -> bool {
        self.named.iter().any(|named| **named == *origin)
    }

    /// The gates that a call has to go through, in the order of their rules. An origin that is new gets a gate.
    pub(crate) fn select(
        &self,
        origin: Option<&str>,
        entrance: Option<&str>,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Selected<'_> {
        let mut selected = Selected::default();
        for (rule, origin) in self.rules_for(origin, entrance) {
            match &rule.gates {
                Gates::One(gate) => selected.push(rule, Arc::clone(gate)),
                Gates::PerOrigin(table) => {
                    let Found { gate, beside } = table.find(origin, now, reading);
                    selected.push(rule, gate);
                    if let Some(gate) = beside {
                        selected.push(rule, gate);
                    }
                }
            }
        }
        selected
    }

    /// As [`select`](Self::select), for a call that is only asked about: where an origin has no gate, one is made that is
    /// forgotten again.
    pub(crate) fn look(&self, origin: Option<&str>, entrance: Option<&str>, now: Timestamp) -> Selected<'_> {
        let mut selected = Selected::default();
        for (rule, origin) in self.rules_for(origin, entrance) {
            let found = match &rule.gates {
                Gates::One(gate) => Some(Found { gate: Arc::clone(gate), beside: None }),
                Gates::PerOrigin(table) => table.look(origin, now),
            };
            let new =
                || Found { gate: Arc::new(Gate::new(rule.id.clone(), &rule.rule, 0, now)), beside: None };
            let Found { gate, beside } = found.unwrap_or_else(new);
            selected.push(rule, gate);
            if let Some(gate) = beside {
                selected.push(rule, gate);
            }
        }
        selected
    }
}

/// The origins that have rules of their own.
pub(crate) fn named<'r>(rules: impl IntoIterator<Item = &'r FlowRule>) -> Box<[Box<str>]> {
    let name = |rule: &'r FlowRule| match rule.relation() {
        Relation::Origin(name) => Some(name.as_ref().into()),
        _ => None,
    };
    rules.into_iter().filter_map(name).collect()
}

/// The gates that one call has to go through. They stay while it is deciding.
#[derive(Debug, Default)]
pub(crate) struct Selected<'a> {
    first: Option<Chosen<'a>>,
    second: Option<Chosen<'a>>,
    /// More rules than two for one call cost an allocation.
    more: Vec<Chosen<'a>>,
}

#[derive(Debug)]
struct Chosen<'a> {
    rule: &'a ScopedRule,
    gate: Arc<Gate>,
}

impl<'a> Selected<'a> {
    fn push(&mut self, rule: &'a ScopedRule, gate: Arc<Gate>) {
        let chosen = Some(Chosen { rule, gate });
        match (&self.first, &self.second) {
            (None, _) => self.first = chosen,
            (_, None) => self.second = chosen,
            _ => self.more.extend(chosen),
        }
    }

    /// Would `n` permits of this call get through all gates? The first rule that refuses is named, with the latest moment of all.
    pub(crate) fn ask(&self, n: u64, now: Timestamp, reading: &Reading<'_>) -> Result<(), Refusal<'a>> {
        let mut verdict = Verdict::new(now);
        for Chosen { rule, gate } in self.iter() {
            verdict.hear(rule, &gate.ask(n, now, reading));
        }
        verdict.result()
    }

    /// As [`ask`](Self::ask), for a call that is only asked about.
    pub(crate) fn peek(&self, n: u64, now: Timestamp, reading: &Reading<'_>) -> Result<(), Refusal<'a>> {
        let mut verdict = Verdict::new(now);
        for Chosen { rule, gate } in self.iter() {
            verdict.hear(rule, &gate.peek(n, now, reading));
        }
        verdict.result()
    }

    fn iter(&self) -> impl Iterator<Item = &Chosen<'a>> {
        self.first.iter().chain(&self.second).chain(&self.more)
    }

    fn paced(&self) -> impl Iterator<Item = &Chosen<'a>> {
        self.iter().filter(|chosen| chosen.gate.flow.is_paced())
    }

    /// At how many of them the call may have to wait for a turn.
    pub(crate) fn n_paced(&self) -> usize {
        self.paced().count()
    }

    /// When `n` permits could start at all gates, and not before `at_least`; takes nothing.
    pub(crate) fn start(
        &self,
        n: u64,
        now: Timestamp,
        at_least: Timestamp,
    ) -> Result<Timestamp, Refusal<'a>> {
        self.paced().try_fold(now.max(at_least), |start, chosen| {
            let asked = chosen.gate.flow.start(&chosen.gate.word.admitted, now, start, n);
            asked.map_err(|refusal| chosen.refused(refusal, now))
        })
    }

    /// Takes a turn from `at_least` on at every gate that has any, and says when the call may start, if that is later than
    /// now. The turns are put into `paced`.
    pub(crate) fn take_turns(
        &self,
        n: u64,
        now: Timestamp,
        at_least: Timestamp,
        paced: &mut Vec<Paced>,
        reading: &Reading<'_>,
    ) -> Result<Option<Timestamp>, Refusal<'a>> {
        let mut start = None;
        for chosen in self.paced() {
            let (flow, admitted) = (&chosen.gate.flow, &chosen.gate.word.admitted);
            let mut turns = Turns::default();
            let taken = flow.take_turns(admitted, now, at_least, n, &mut turns, reading);
            start = start.max(taken.map_err(|refusal| chosen.refused(refusal, now))?);
            paced.push(Paced { gate: Arc::clone(&chosen.gate), turns });
        }
        Ok(start)
    }

    /// Counts `n` permits of a call that starts at `start` in at every gate. Where another call was faster it is refused,
    /// and what was counted before stays so.
    pub(crate) fn admit(
        &self,
        n: u64,
        now: Timestamp,
        start: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'a>> {
        self.iter().try_for_each(|chosen| {
            let admitted = chosen.gate.admit(n, now, start, reading);
            admitted.map_err(|refusal| chosen.refused(refusal, now))
        })
    }

    /// Tells of a call that could not start at once.
    pub(crate) fn note_demand(&self, now: Timestamp) {
        self.paced().for_each(|chosen| chosen.gate.flow.note_demand(&chosen.gate.word.admitted, now));
    }
}

impl<'a> Chosen<'a> {
    /// What the gate says, as its rule says it.
    fn refused(&self, refusal: Refusal<'_>, now: Timestamp) -> Refusal<'a> {
        let mut verdict = Verdict::new(now);
        verdict.hear(self.rule, &Err(refusal));
        verdict.result().expect_err("heard of a refusal")
    }
}

/// Turns taken at a gate, which stays while the call waits for them.
#[derive(Debug)]
pub(crate) struct Paced {
    gate: Arc<Gate>,
    turns: Turns,
}

impl Paced {
    /// The call does not come to them: they go back where nobody has queued behind.
    pub(crate) fn give_back(self) {
        self.gate.flow.give_back(&self.turns);
    }
}

/// How long after its last permits, or their start, a gate answers as a new one would.
///
/// A pace may let as many start at once as fit, which then take so long by its lowest rate.
fn rest(rule: &FlowRule) -> Duration {
    let Some(max_wait) = rule.behavior().max_wait() else { return rule.interval() };
    let cold_factor = rule.behavior().warm_up().map_or(1.0, |(_, cold_factor)| cold_factor);
    let most = (rule.limit() + f64::from(rule.burst())).max(1.0);
    let seconds = rule.interval().as_secs_f64() * most / (rule.limit() / cold_factor);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).saturating_add(max_wait)
}

/// What all gates together say.
struct Verdict<'a> {
    first: Option<(&'a ScopedRule, Said)>,
    latest: Option<Timestamp>,
}

/// What a gate said of its rule, without the gate.
#[derive(Clone, Copy)]
enum Said {
    /// With what it allows at the moment.
    Full(f64),
    TooMany,
    TooLate,
}

impl<'a> Verdict<'a> {
    fn new(now: Timestamp) -> Self {
        Self { first: None, latest: Some(now) }
    }

    fn hear(&mut self, rule: &'a ScopedRule, answer: &Result<(), Refusal<'_>>) {
        if let Err(refusal) = answer {
            let said = match refusal.by {
                By::Flow { fits: false, .. } | By::Pace { fits: false, .. } => Said::TooMany,
                By::Pace { fits: true, .. } => Said::TooLate,
                By::Flow { limit, .. } => Said::Full(limit),
                _ => Said::Full(rule.rule.limit()),
            };
            self.refuse(rule, said, refusal.until);
        }
    }

    fn refuse(&mut self, rule: &'a ScopedRule, said: Said, until: Option<Timestamp>) {
        self.first.get_or_insert((rule, said));
        self.latest = self.latest.zip(until).map(|(latest, until)| latest.max(until));
    }

    fn result(self) -> Result<(), Refusal<'a>> {
        let Some((ScopedRule { id, rule, .. }, said)) = self.first else { return Ok(()) };
        let by = match said {
            Said::Full(limit) => By::Flow { rule, limit, fits: true },
            Said::TooMany => By::Flow { rule, limit: rule.limit(), fits: false },
            Said::TooLate => By::Pace { rule, fits: true },
        };
        Err(Refusal { rule: id, by, until: self.latest })
    }
}

impl Gates {
    fn new(most: usize, id: RuleId, rule: &FlowRule, now: Timestamp) -> Self {
        match rule.relation() {
            Relation::OtherOrigins | Relation::EachOrigin => {
                Self::PerOrigin(Arc::new(Table::new(most, id, rule)))
            }
            _ => Self::One(Arc::new(Gate::new(id, rule, 0, now))),
        }
    }

    /// These gates as the rule that was `before` is `now`. What was admitted counts on.
    fn renewed(&self, id: RuleId, before: &FlowRule, now: &FlowRule, reading: &Reading<'_>) -> Self {
        match self {
            // A log that is worn out is replaced also where the rule is the same.
            Self::One(gate) if before == now && !gate.flow.is_worn_out(reading()) => self.clone(),
            Self::One(gate) => Self::One(Arc::new(gate.renewed(id, now, 0, reading))),
            Self::PerOrigin(table) => {
                table.go_by(now, reading);
                self.clone()
            }
        }
    }
}

/// A rule's gates by origin.
struct Table {
    id: RuleId,
    most: usize,
    /// Locked for a look-up, never while anything is asked or a clock is read.
    inner: RwLock<Inner>,
}

#[derive(Debug)]
struct Inner {
    rule: FlowRule,
    /// Counts the rules that the table went by.
    generation: u64,
    gates: HashMap<Box<str>, Arc<Gate>>,
    overflow: Option<Overflow>,
    next_sweep: Timestamp,
    hasher: RandomState,
}

/// Where all origins go that find no place.
#[derive(Debug)]
struct Overflow {
    gate: Arc<Gate>,
    /// Until when an origin of that group may have permits in here.
    used_until: Box<[Timestamp]>,
}

/// Where an origin goes: its gate, and the overflow beside it where it may have permits there too.
struct Found {
    gate: Arc<Gate>,
    beside: Option<Arc<Gate>>,
}

impl Table {
    fn new(most: usize, id: RuleId, rule: &FlowRule) -> Self {
        let hasher = RandomState::new();
        let inner = Inner {
            rule: rule.clone(),
            generation: 0,
            gates: HashMap::with_hasher(RandomState::clone(&hasher)),
            overflow: None,
            next_sweep: Timestamp::ZERO,
            hasher,
        };
        Self { id, most, inner: RwLock::new(inner) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        // What stands under the lock is whole at every moment, also where its holder panicked.
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, origin: &str, now: Timestamp, reading: &Reading<'_>) -> Found {
        let known = self.read().known(origin, now);
        let mut found = known.unwrap_or_else(|| self.write().place(self.id.clone(), self.most, origin, now));
        if found.gate.flow.is_worn_out(now) {
            found.gate = self.renew(Some(origin), found.gate, reading);
        }
        found
    }

    /// As [`find`](Self::find), but nothing where the origin would get a new gate.
    fn look(&self, origin: &str, now: Timestamp) -> Option<Found> {
        let inner = self.read();
        inner.known(origin, now).or_else(|| {
            let overflow = inner.overflow.as_ref().filter(|_| inner.gates.len() >= self.most)?;
            Some(Found { gate: Arc::clone(&overflow.gate), beside: None })
        })
    }

    /// Has all gates go by `rule`: new ones at once, those that stand one after the other.
    fn go_by(&self, rule: &FlowRule, reading: &Reading<'_>) {
        let mut inner = self.write();
        if inner.rule == *rule {
            return;
        }
        inner.rule = rule.clone();
        inner.generation += 1;
        let mut standing: Vec<(Option<Box<str>>, Arc<Gate>)> =
            inner.gates.iter().map(|(origin, gate)| (Some(origin.clone()), Arc::clone(gate))).collect();
        standing.extend(inner.overflow.as_ref().map(|overflow| (None, Arc::clone(&overflow.gate))));
        drop(inner);
        for (origin, gate) in standing {
            self.renew(origin.as_deref(), gate, reading);
        }
    }

    /// Puts a gate with the same word and windows for the present rule in the place of `standing`: the origin's, or the
    /// overflow. Not under the lock, because the clock is read; who finds that somebody else was faster looks again.
    fn renew(&self, origin: Option<&str>, mut standing: Arc<Gate>, reading: &Reading<'_>) -> Arc<Gate> {
        loop {
            let (rule, generation) = {
                let inner = self.read();
                (inner.rule.clone(), inner.generation)
            };
            let renewed = Arc::new(standing.renewed(self.id.clone(), &rule, generation, reading));
            let mut inner = self.write();
            let present = inner.generation;
            let Inner { gates, overflow, .. } = &mut *inner;
            let own = origin.and_then(|origin| gates.get_mut(origin));
            let place = own.or(overflow.as_mut().map(|overflow| &mut overflow.gate));
            match place {
                Some(place) if !Arc::ptr_eq(place, &standing) && place.generation == present => {
                    return Arc::clone(place);
                }
                Some(place) if !Arc::ptr_eq(place, &standing) || generation != present => {
                    standing = Arc::clone(place);
                }
                Some(place) => {
                    *place = Arc::clone(&renewed);
                    drop(inner);
                    renewed.catch_up(reading);
                    return renewed;
                }
                None => unreachable!("no gate leaves while somebody holds it"),
            }
        }
    }
}

impl Inner {
    fn known(&self, origin: &str, now: Timestamp) -> Option<Found> {
        let gate = Arc::clone(self.gates.get(origin)?);
        let overflow = self.overflow.as_ref().filter(|_| now < gate.beside_until);
        Some(Found { beside: overflow.map(|overflow| Arc::clone(&overflow.gate)), gate })
    }

    /// Gives an origin a gate of its own if there is a place.
    fn place(&mut self, id: RuleId, most: usize, origin: &str, now: Timestamp) -> Found {
        if let Some(known) = self.known(origin, now) {
            return known;
        }
        let rest = rest(&self.rule).saturating_add(SLACK);
        if self.gates.len() >= most && now >= self.next_sweep {
            self.gates.retain(|_, gate| !Gate::is_at_rest(gate, rest, now));
            self.next_sweep = now.saturating_add(SWEEP_EVERY);
        }
        #[expect(clippy::cast_possible_truncation, reason = "modulo a small number")]
        let group = self.hasher.hash_one(origin) as usize % GROUPS;
        let make = |rule: &FlowRule| Gate::new(id, rule, self.generation, now);
        if self.gates.len() >= most {
            let overflow = self.overflow.get_or_insert_with(|| Overflow {
                gate: Arc::new(make(&self.rule)),
                used_until: vec![Timestamp::ZERO; GROUPS].into(),
            });
            let used_until = &mut overflow.used_until[group];
            *used_until = now.saturating_add(rest).max(*used_until);
            return Found { gate: Arc::clone(&overflow.gate), beside: None };
        }
        let beside_until =
            self.overflow.as_ref().map_or(Timestamp::ZERO, |overflow| overflow.used_until[group]);
        let gate = Arc::new(Gate { beside_until, ..make(&self.rule) });
        self.gates.insert(origin.into(), gate);
        self.known(origin, now).expect("just inserted")
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origins = self.read().gates.len();
        f.debug_struct("Table").field("id", &self.id).field("origins", &origins).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
pub(super) mod tests;
