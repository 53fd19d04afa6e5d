//! Random traffic with random changes of the rules in between, against a plain model: which rules hold, what they may let
//! through, what they must remember.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the tests themselves")]

mod common;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use common::{at, ms, qps};
use leap_runtime::{
    BreakerRule, BreakerState, Cause, Entry, IsolationRule, LoadError, ManualClock, Mode, Outcome, Registry,
    Rule, RuleSet,
};
use proptest::prelude::*;
use proptest::sample::Index;

const RESOURCES: [&str; 3] = ["a.x", "a.y", "b.x"];
/// The most specific first; of two that are equally so, by their letters.
const PATTERNS: [&str; 4] = ["a.x", "*.x", "a.*", "*"];
const SOURCES: [&str; 2] = ["file", "api"];
const SECOND: u64 = 1_000_000;
/// How long a breaker of the model is open.
const OPEN: u64 = 500_000;

// --- The model of the rules ---

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Flow,
    Isolation,
    Breaker,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Isolation => "isolation",
            Self::Breaker => "error_count",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Plain {
    pattern: usize,
    kind: Kind,
    id: Option<String>,
    limit: u32,
    mode: Mode,
}

impl Plain {
    fn rule(&self) -> Rule {
        match self.kind {
            Kind::Flow => qps(self.limit.into()).with_mode(self.mode).into(),
            Kind::Isolation => IsolationRule::new(self.limit).with_mode(self.mode).into(),
            // It trips on the first exception.
            Kind::Breaker => BreakerRule::error_count(0)
                .with_min_calls(1)
                .and_then(|rule| rule.open_for(ms(OPEN / 1_000)))
                .unwrap()
                .with_mode(self.mode)
                .into(),
        }
    }

    fn is_shadow(&self) -> bool {
        self.mode == Mode::Shadow
    }

    fn is_for(&self, resource: &str) -> bool {
        match PATTERNS[self.pattern].split_once('*') {
            None => PATTERNS[self.pattern] == resource,
            Some((start, end)) => resource.starts_with(start) && resource.ends_with(end),
        }
    }
}

/// The rules of one source, in the order in which they were added.
type Set = Vec<Plain>;

fn rule_set(set: &Set) -> RuleSet {
    set.iter().fold(RuleSet::new(), |rules, plain| {
        let pattern = PATTERNS[plain.pattern];
        match &plain.id {
            Some(id) => rules.named(id.as_str(), pattern, plain.rule()),
            None => rules.rule(pattern, plain.rule()),
        }
    })
}

/// The place of a rule among those of its kind, shadows for themselves.
fn position(set: &Set, i: usize) -> usize {
    let me = &set[i];
    let is_alike = |other: &&Plain| {
        other.id.is_none()
            && (other.pattern, other.kind, other.is_shadow()) == (me.pattern, me.kind, me.is_shadow())
    };
    if me.id.is_some() { 0 } else { set[..i].iter().filter(is_alike).count() }
}

/// By what a rule is found.
fn address(set: &Set, i: usize) -> String {
    let me = &set[i];
    let shadow = if me.is_shadow() { "@shadow" } else { "" };
    match &me.id {
        Some(id) => format!("{id}{shadow}"),
        None => format!("{}/{}/{}{shadow}", PATTERNS[me.pattern], me.kind.name(), position(set, i)),
    }
}

/// What a rule is called at work.
fn name(source: usize, set: &Set, i: usize) -> String {
    let (me, source) = (&set[i], SOURCES[source]);
    let (kind, position, pattern) = (me.kind.name(), position(set, i), PATTERNS[me.pattern]);
    match &me.id {
        Some(id) => format!("{source}/{id}"),
        None if pattern.contains('*') => format!("{source}/{pattern}/{kind}/{position}"),
        None => format!("{source}/{kind}/{position}"),
    }
}

/// The rules that hold for a resource, with their names. A rule is replaced if one for something more specific, or of a
/// stronger source, is of its kind and not in shadow; a shadow also by a more specific shadow.
fn in_force(sets: &[Set], resource: &str) -> Vec<(String, Plain)> {
    let mut all = vec![];
    for (source, set) in sets.iter().enumerate() {
        for (i, plain) in set.iter().enumerate().filter(|(_, plain)| plain.is_for(resource)) {
            let by_pattern = set.iter().any(|other| {
                other.is_for(resource)
                    && other.kind == plain.kind
                    && other.pattern < plain.pattern
                    && (!other.is_shadow() || plain.is_shadow())
            });
            let by_source = sets[source + 1..]
                .iter()
                .flatten()
                .any(|other| other.is_for(resource) && other.kind == plain.kind && !other.is_shadow());
            if !by_pattern && !by_source {
                all.push(((source, plain.pattern, i), (name(source, set, i), plain.clone())));
            }
        }
    }
    all.sort_by_key(|(key, _)| *key);
    all.into_iter().map(|(_, rule)| rule).collect()
}

// --- The model of what they remember ---

/// What a rule knows of one resource for as long as it is at work there in some mode.
#[derive(Clone, Debug)]
struct Standing {
    kind: Kind,
    since: u64,
    /// The version with which it came. Two that came at one moment are told apart by it.
    version: u64,
    limit: u32,
    mode: Mode,
    /// Of a breaker: until when it is open.
    open_until: Option<u64>,
    /// How often it has let a probe through. The result of an earlier call moves nothing.
    n_probes: u32,
    /// An exception of an earlier call counts in its window, and may trip it later: the model does not follow it there.
    is_known: bool,
}

#[derive(Default)]
struct Resource {
    /// When calls passed, in µs.
    passes: Vec<u64>,
    /// The last of these, as many as windows remember at least: the largest limit that has stood. While none stands,
    /// nothing is remembered.
    remembered: VecDeque<u64>,
    memory: usize,
    standing: BTreeMap<String, Standing>,
    shadows: BTreeSet<String>,
    /// When a rule came out of shadow last. It goes on from what it would have let through, as its successors do.
    promoted: Option<u64>,
}

struct Held {
    resource: usize,
    entry: Entry,
    /// The breakers that let it through, with which version they came, how many probes they had had, and whether it is one.
    breakers: Vec<(String, u64, u32, bool)>,
}

struct World {
    clock: ManualClock,
    registry: Registry,
    now: u64,
    sets: Vec<Set>,
    versions: VecDeque<(u64, Vec<Set>)>,
    resources: Vec<Resource>,
    held: VecDeque<Held>,
}

#[derive(Clone, Debug)]
enum Step {
    Load { source: usize, set: Set },
    Patch { source: usize, rule: Index, limit: u32 },
    SetMode { source: usize, rule: Index, mode: Mode },
    Remove { source: usize, rule: Index },
    Exchange { source: usize, rule: Index },
    Rollback { version: Index },
    Reload { source: usize },
    Call { resource: usize, ends: Option<bool> },
    End { succeeds: bool },
    Advance { us: u64 },
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![4 => Just(Kind::Flow), 2 => Just(Kind::Isolation), 1 => Just(Kind::Breaker)]
}

fn plain() -> impl Strategy<Value = Plain> {
    let mode = prop_oneof![6 => Just(Mode::Enforce), 1 => Just(Mode::Off), 2 => Just(Mode::Shadow)];
    (0..PATTERNS.len(), kind(), 0..6_u32, mode).prop_map(|(pattern, kind, limit, mode)| {
        let mode = if kind == Kind::Breaker && mode == Mode::Shadow { Mode::Enforce } else { mode };
        Plain { pattern, kind, id: None, limit, mode }
    })
}

/// A set in which some rules have ids, and some of these a version in shadow.
fn set() -> impl Strategy<Value = Set> {
    proptest::collection::vec((plain(), 0..4_u8), 0..6).prop_map(|rules| {
        let mut set = vec![];
        for (i, (plain, sort)) in rules.into_iter().enumerate() {
            let id = (sort > 1).then(|| format!("{}{i}", plain.kind.name()));
            if sort == 3 && !plain.is_shadow() && plain.kind != Kind::Breaker {
                set.push(Plain {
                    id: id.clone(),
                    limit: (plain.limit + 3) % 6,
                    mode: Mode::Shadow,
                    ..plain.clone()
                });
            }
            set.push(Plain { id, ..plain });
        }
        set
    })
}

fn step() -> impl Strategy<Value = Step> {
    let source = 0..SOURCES.len();
    prop_oneof![
        2 => (source.clone(), set()).prop_map(|(source, set)| Step::Load { source, set }),
        2 => (source.clone(), any::<Index>(), 0..6_u32)
            .prop_map(|(source, rule, limit)| Step::Patch { source, rule, limit }),
        2 => (source.clone(), any::<Index>(), prop_oneof![Just(Mode::Enforce), Just(Mode::Off)])
            .prop_map(|(source, rule, mode)| Step::SetMode { source, rule, mode }),
        1 => (source.clone(), any::<Index>()).prop_map(|(source, rule)| Step::Remove { source, rule }),
        1 => (source.clone(), any::<Index>()).prop_map(|(source, rule)| Step::Exchange { source, rule }),
        1 => any::<Index>().prop_map(|version| Step::Rollback { version }),
        1 => source.prop_map(|source| Step::Reload { source }),
        20 => (0..RESOURCES.len(), prop_oneof![1 => Just(None), 3 => Just(Some(true)), 1 => Just(Some(false))])
            .prop_map(|(resource, ends)| Step::Call { resource, ends }),
        5 => any::<bool>().prop_map(|succeeds| Step::End { succeeds }),
        6 => prop_oneof![1..300_000_u64, Just(SECOND), Just(OPEN), Just(SECOND - 1)]
            .prop_map(|us| Step::Advance { us }),
    ]
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let registry = Registry::builder().clock(clock.clone()).build();
        for name in SOURCES {
            registry.source(name);
        }
        Self {
            clock,
            registry,
            now: 0,
            sets: vec![vec![]; SOURCES.len()],
            versions: VecDeque::from([(0, vec![vec![]; SOURCES.len()])]),
            resources: RESOURCES.iter().map(|_| Resource::default()).collect(),
            held: VecDeque::new(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Load { source, set } => {
                let loaded = self.registry.source(SOURCES[source]).load(rule_set(&set));
                self.changed(source, set, loaded);
            }
            Step::Reload { source } => {
                let loaded = self.registry.source(SOURCES[source]).load(rule_set(&self.sets[source]));
                assert_eq!(loaded.unwrap().changes(), [], "nothing has changed");
            }
            Step::Patch { source, rule, limit } => {
                let Some(i) = self.pick(source, rule) else { return };
                let mut set = self.sets[source].clone();
                set[i].limit = limit;
                let new = set[i].rule();
                let address = address(&self.sets[source], i);
                let loaded = self.registry.source(SOURCES[source]).patch(&address, |_| Ok(new.clone()));
                self.changed(source, set, loaded);
            }
            Step::SetMode { source, rule, mode } => {
                let Some(i) = self.pick(source, rule) else { return };
                let mut set = self.sets[source].clone();
                let address = address(&set, i);
                let is_taken = set[i].is_shadow() && self.other_version(source, i).is_some();
                set[i].mode = mode;
                let loaded = self.registry.source(SOURCES[source]).set_mode(&address, mode);
                if is_taken {
                    assert!(matches!(loaded, Err(LoadError::Rejected(_))), "another version is there");
                } else {
                    self.changed(source, set, loaded);
                }
            }
            Step::Remove { source, rule } => {
                let Some(i) = self.pick(source, rule) else { return };
                let mut set = self.sets[source].clone();
                let address = address(&set, i);
                set.remove(i);
                let loaded = self.registry.source(SOURCES[source]).remove(&address);
                self.changed(source, set, loaded);
            }
            Step::Exchange { source, rule } => self.exchange(source, rule),
            Step::Rollback { version } => {
                let (number, sets) = self.versions[version.index(self.versions.len())].clone();
                let report = self.registry.rollback(number).unwrap();
                if report.changes().is_empty() {
                    assert_eq!(sets.iter().map(rule_set).collect::<Vec<_>>(), self.rule_sets());
                } else {
                    self.stand(sets, report.version());
                }
            }
            Step::Call { resource, ends } => self.call(resource, ends),
            Step::End { succeeds } => {
                if let Some(held) = self.held.pop_front() {
                    self.end(held, succeeds);
                }
            }
            Step::Advance { us } => {
                self.now += us;
                self.clock.advance(std::time::Duration::from_micros(us));
            }
        }
    }

    fn pick(&self, source: usize, rule: Index) -> Option<usize> {
        let n = self.sets[source].len();
        (n > 0).then(|| rule.index(n))
    }

    /// The place of the version of a rule that is in shadow where this one is not, or the other way round.
    fn other_version(&self, source: usize, i: usize) -> Option<usize> {
        let set = &self.sets[source];
        let (me, place) = (&set[i], position(set, i));
        (0..set.len()).find(|j| {
            let other = &set[*j];
            other.is_shadow() != me.is_shadow()
                && (&other.id, other.pattern, other.kind) == (&me.id, me.pattern, me.kind)
                && (me.id.is_some() || position(set, *j) == place)
        })
    }

    /// The two versions of a rule change places, or the only one its side.
    fn exchange(&mut self, source: usize, rule: Index) {
        let Some(i) = self.pick(source, rule) else { return };
        let mut set = self.sets[source].clone();
        // Breakers are not put into shadow here: the model knows nothing of what they would remember.
        if set[i].kind == Kind::Breaker {
            return;
        }
        let address = address(&set, i).trim_end_matches("@shadow").to_owned();
        let (standing, shadow) = match self.other_version(source, i) {
            Some(other) if set[i].is_shadow() => (Some(other), Some(i)),
            Some(other) => (Some(i), Some(other)),
            None if set[i].is_shadow() => (None, Some(i)),
            None => (Some(i), None),
        };
        // Only what decides can be demoted.
        if shadow.is_none() && set[i].mode == Mode::Off {
            return;
        }
        let source_of = self.registry.source(SOURCES[source]);
        let loaded = if shadow.is_some() { source_of.promote(&address) } else { source_of.demote(&address) };
        match (standing, shadow) {
            (Some(one), Some(other)) => {
                let (limit, decided) = (set[one].limit, set[one].clone());
                set[one] = Plain { limit: set[other].limit, mode: Mode::Enforce, ..decided.clone() };
                set[other] = Plain { limit, mode: Mode::Shadow, ..decided };
            }
            (Some(one), None) => set[one].mode = Mode::Shadow,
            (None, Some(other)) => set[other].mode = Mode::Enforce,
            (None, None) => unreachable!("it was picked"),
        }
        self.changed(source, set, loaded);
    }

    fn changed(&mut self, source: usize, set: Set, loaded: Result<leap_runtime::LoadReport, LoadError>) {
        let report = loaded.unwrap();
        let is_same = rule_set(&set) == self.rule_sets()[source];
        assert_eq!(report.changes().is_empty(), is_same, "{report}");
        let mut sets = self.sets.clone();
        sets[source] = set;
        if is_same {
            self.sets = sets;
        } else {
            self.stand(sets, report.version());
        }
        assert_eq!(self.registry.source(SOURCES[source]).rules(), self.rule_sets()[source]);
    }

    fn rule_sets(&self) -> Vec<RuleSet> {
        self.sets.iter().map(rule_set).collect()
    }

    /// Other rules stand from now on.
    fn stand(&mut self, sets: Vec<Set>, version: u64) {
        self.versions.push_back((version, sets.clone()));
        self.sets = sets;
        if self.versions.len() > 17 {
            self.versions.pop_front();
        }
        for (i, resource) in RESOURCES.iter().enumerate() {
            let force = in_force(&self.sets, resource);
            let roles: BTreeMap<String, &Plain> = force
                .iter()
                .filter(|(_, plain)| !plain.is_shadow())
                .map(|(name, plain)| (name.clone(), plain))
                .collect();
            let Resource { standing, shadows, promoted, remembered, memory, .. } = &mut self.resources[i];
            standing.retain(|name, before| roles.get(name).is_some_and(|plain| plain.kind == before.kind));
            for (name, plain) in roles {
                if shadows.contains(&name) && !standing.contains_key(&name) {
                    *promoted = Some(self.now);
                }
                let rule = standing.entry(name).or_insert(Standing {
                    kind: plain.kind,
                    since: self.now,
                    version,
                    limit: plain.limit,
                    mode: plain.mode,
                    open_until: None,
                    n_probes: 0,
                    is_known: true,
                });
                (rule.mode, rule.limit) = (plain.mode, plain.limit);
            }
            let limits =
                standing.values().filter(|rule| rule.kind == Kind::Flow).map(|rule| rule.limit as usize);
            match limits.max() {
                None => {
                    *memory = 0;
                    remembered.clear();
                }
                Some(limit) => *memory = (*memory).max(limit).max(1),
            }
            *shadows =
                force.iter().filter(|(_, plain)| plain.is_shadow()).map(|(name, _)| name.clone()).collect();
            self.check_rules(i, &force);
        }
    }

    /// What is at work is what the model says, down to the last word.
    fn check_rules(&self, resource: usize, force: &[(String, Plain)]) {
        let Some(stats) = self.registry.stats(RESOURCES[resource]) else { return };
        let at_work: Vec<_> =
            stats.rules().map(|(id, rule)| (id.to_string(), rule.to_string(), rule.mode())).collect();
        let expected: Vec<_> =
            force.iter().map(|(name, plain)| (name.clone(), plain.rule().to_string(), plain.mode)).collect();
        assert_eq!(at_work, expected, "{}", RESOURCES[resource]);
    }

    fn call(&mut self, place: usize, ends: Option<bool>) {
        let now = self.now;
        let entered = self.registry.enter(RESOURCES[place]);
        let resource = &mut self.resources[place];
        let enforced: Vec<_> = resource
            .standing
            .iter()
            .filter(|(_, rule)| rule.mode == Mode::Enforce)
            .map(|(name, rule)| (name.clone(), rule.clone()))
            .collect();
        let in_flight = self.held.iter().filter(|held| held.resource == place).count();
        match entered {
            Ok(entry) => {
                resource.passes.push(now);
                let mut breakers = vec![];
                for (name, rule) in enforced {
                    match rule.kind {
                        Kind::Flow => {
                            // What passed since it stands, in the last second, and this one.
                            let from = (now + 1).saturating_sub(SECOND).max(rule.since);
                            let passed = resource.remembered.iter().filter(|pass| **pass >= from).count() + 1;
                            // Those of the moment at which it came may have been before it.
                            let others =
                                resource.remembered.iter().filter(|pass| **pass == rule.since).count();
                            let limit = rule.limit as usize;
                            assert!(passed <= limit + others, "{name}: {passed} of {limit} at {now}");
                        }
                        Kind::Isolation => {
                            let limit = rule.limit as usize;
                            assert!(limit > 0, "{name} lets nobody through");
                        }
                        Kind::Breaker => {
                            let state = resource.standing.get_mut(&name).unwrap();
                            let is_probe = state.open_until.is_some();
                            if is_probe {
                                assert!(!state.is_known || rule.open_until <= Some(now), "{name} is open");
                                state.n_probes += 1;
                                // Nobody else until it is back, or an open time is over.
                                state.open_until = Some(now + OPEN);
                            }
                            breakers.push((name, state.version, state.n_probes, is_probe));
                        }
                    }
                }
                resource.remembered.push_back(now);
                while resource.remembered.len() > resource.memory {
                    resource.remembered.pop_front();
                }
                let held = Held { resource: place, entry, breakers };
                match ends {
                    Some(succeeds) => self.end(held, succeeds),
                    None => self.held.push_back(held),
                }
            }
            Err(blocked) => {
                // Breakers are asked before isolation and windows: one that would have let a probe through has done so, and
                // has it back.
                for (name, _) in
                    enforced.iter().filter(|(_, rule)| rule.open_until.is_some_and(|until| until <= now))
                {
                    let breaker = resource.standing.get_mut(name).unwrap();
                    breaker.n_probes += 1;
                    breaker.is_known &= blocked.cause() != Cause::Breaker;
                }
                let name = blocked.rule().to_string();
                let (_, rule) =
                    enforced.iter().find(|(known, _)| *known == name).expect("a rule in force refused");
                let limit = f64::from(rule.limit);
                match blocked.cause() {
                    Cause::Flow => {
                        assert_eq!(blocked.limit(), Some(limit), "{name}: of the rule in force");
                        let from = (now + 1).saturating_sub(SECOND);
                        let passed = resource.passes.iter().filter(|pass| **pass >= from).count();
                        assert!(
                            f64::from(u32::try_from(passed).unwrap()) + 1.0 > limit
                                || resource.promoted.is_some_and(|promoted| now < promoted + SECOND),
                            "{name} refuses {passed} of {limit} at {now}"
                        );
                    }
                    Cause::Isolation => {
                        assert_eq!(blocked.limit(), Some(limit), "{name}: of the rule in force");
                        assert!(
                            f64::from(u32::try_from(in_flight).unwrap()) + 1.0 > limit,
                            "{name} refuses {in_flight} of {limit}"
                        );
                    }
                    cause => {
                        assert_eq!(cause, Cause::Breaker);
                        assert!(!rule.is_known || rule.open_until > Some(now), "{name} was not open");
                    }
                }
            }
        }
    }

    fn end(&mut self, held: Held, succeeds: bool) {
        let Held { resource, entry, breakers } = held;
        entry.end(if succeeds { Outcome::Success } else { Outcome::Exception });
        for (name, version, n_probes, is_probe) in breakers {
            // A breaker that was taken away has forgotten the call; one that is off hears of it all the same, as the call ends
            // under the rules it began with.
            let Some(rule) = self.resources[resource].standing.get_mut(&name) else { continue };
            if rule.version != version {
                continue;
            }
            match succeeds {
                _ if rule.n_probes != n_probes => rule.is_known &= succeeds,
                true if is_probe => rule.open_until = None,
                false if is_probe || rule.open_until.is_none() => rule.open_until = Some(self.now + OPEN),
                _ => {}
            }
        }
    }

    /// Everybody leaves: nothing is held any more, and what may pass does.
    fn finish(mut self) {
        while let Some(held) = self.held.pop_front() {
            self.end(held, true);
        }
        for resource in RESOURCES {
            if let Some(stats) = self.registry.stats(resource) {
                assert_eq!(stats.in_flight(), 0, "{resource}");
            }
        }
        self.registry.rollback(self.versions[0].0).unwrap();
        for source in SOURCES {
            self.registry.source(source).load(RuleSet::new()).unwrap();
        }
        let isolated = RuleSet::new().isolation("*", IsolationRule::new(3));
        self.registry.load(isolated).unwrap();
        for resource in RESOURCES {
            let all: Vec<_> = (0..5).map_while(|_| self.registry.enter(resource).ok()).collect();
            assert_eq!(all.len(), 3, "{resource}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn rules_hold_and_remember_whatever_is_changed_while_calls_run(steps in proptest::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        world.finish();
    }
}

#[test]
fn the_model_knows_an_open_breaker() {
    let mut world = World::new();
    let breaker = Plain { pattern: 0, kind: Kind::Breaker, id: None, limit: 0, mode: Mode::Enforce };
    world.take(Step::Load { source: 0, set: vec![breaker] });
    world.take(Step::Call { resource: 0, ends: Some(false) });
    assert_eq!(world.clock_at(), at(0));
    assert_eq!(world.registry.breakers("a.x")[0].state(), Some(BreakerState::Open));
    assert_eq!(world.resources[0].standing["file/error_count/0"].open_until, Some(OPEN));
    world.finish();
}

impl World {
    fn clock_at(&self) -> leap_runtime::Timestamp {
        leap_runtime::Clock::now(&self.clock)
    }
}

#[test]
fn a_call_of_a_breaker_that_was_taken_away_says_nothing_to_the_one_that_came_back() {
    let mut world = World::new();
    let breaker = Plain { pattern: 0, kind: Kind::Breaker, id: None, limit: 0, mode: Mode::Enforce };
    world.take(Step::Load { source: 0, set: vec![breaker.clone()] });
    world.take(Step::Call { resource: 0, ends: None });
    world.take(Step::Load { source: 0, set: vec![] });
    world.take(Step::Load { source: 0, set: vec![breaker] });
    world.take(Step::End { succeeds: false });
    assert_eq!(world.registry.breakers("a.x")[0].state(), Some(BreakerState::Closed));
    world.take(Step::Call { resource: 0, ends: None });
    world.finish();
}
