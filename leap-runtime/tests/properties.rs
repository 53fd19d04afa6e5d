//! Random traffic, decided by the crate and by plain models of what its docs promise, which must agree call by call;
//! and real threads, whose passes are checked afterwards by their own clock readings.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use leap_runtime::{
    Behavior, Blocked, BreakerRule, BreakerState, Cause, Clock, Entry, FlowRule, IsolationRule, ManualClock,
    Mode, Observer, Outcome, Precision, Registry, RuleKind, RuleSet, SystemClock, Timestamp, Traffic,
    Transition,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

const NAME: &str = "orders.create";

fn config(cases: u32) -> Config {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    Config { cases, failure_persistence, ..Config::default() }
}

fn ns(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

// --- Windows ---

/// A flow rule as the models see it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Flow {
    limit: u32,
    precision: Precision,
    interval: u64,
    n_buckets: u32,
    mode: Mode,
}

impl Flow {
    fn rule(self) -> FlowRule {
        FlowRule::new(self.limit.into(), Behavior::Reject)
            .and_then(|rule| rule.per(Duration::from_nanos(self.interval)))
            .and_then(|rule| match self.precision {
                Precision::Exact => Ok(rule),
                _ => rule.with_buckets(self.n_buckets),
            })
            .and_then(|rule| rule.with_precision(self.precision))
            .unwrap()
            .with_mode(self.mode)
    }

    fn limit(self) -> usize {
        self.limit as usize
    }

    fn bucket(self) -> u64 {
        self.interval / u64::from(self.n_buckets)
    }
}

/// What a plain list of all permits remembers, and since when.
#[derive(Debug, Default)]
struct Windows {
    rules: Vec<Flow>,
    /// When each permit passed, in ns.
    permits: Vec<u64>,
    log: Option<Log>,
    /// By interval and number of buckets.
    rings: BTreeMap<(u64, u32), Memory>,
}

/// Where a memory begins.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// The first permit that counts.
    first: usize,
    /// When those before it passed that were taken over from a memory of the other sort; none of one that is infinitely old.
    carried: Vec<Option<u64>>,
}

#[derive(Clone, Debug)]
struct Log {
    origin: u64,
    len: usize,
    memory: Memory,
}

/// Refused by the rule at this place; fits at that moment, if ever.
#[derive(Debug, PartialEq)]
struct Refused {
    position: u16,
    until: Option<u64>,
}

impl Windows {
    /// The docs' words on reloads: the log goes on as far back as it remembers, a ring where its shape is the same; and
    /// a rule that moves from one to the other takes over how many permits count. Rules that are off remember as well.
    fn load(&mut self, rules: Vec<Flow>, now: u64) {
        let of_mode = |mode| rules.iter().enumerate().filter(move |(_, rule)| rule.mode == mode);
        let remembering = || of_mode(Mode::Enforce).chain(of_mode(Mode::Off));
        let exact = || remembering().filter(|(_, rule)| rule.precision == Precision::Exact);
        let passed = self.permits.len();
        let carried =
            || exact().map(|(position, rule)| self.carried(position, *rule, now)).max().unwrap_or(0);
        let just_now = Some(now + 1_000);
        let log = exact().map(|(_, rule)| rule.limit().max(1)).max().map(|longest| match &self.log {
            Some(log) if log.len >= longest => log.clone(),
            Some(log) => {
                let len = longest.next_power_of_two();
                let first = log.memory.first.max(passed.saturating_sub(log.len));
                // What it had taken over comes before all that it has seen.
                let taken_over = &log.memory.carried;
                let remembered = log.len.saturating_sub(passed - log.memory.first);
                let mut carried_on = taken_over[taken_over.len().saturating_sub(remembered)..].to_vec();
                // And what it does not remember, others may: that comes before.
                let beyond = carried().min(len).saturating_sub(log.len);
                if beyond > 0 {
                    let idle = log.len - carried_on.len() - (passed - first);
                    let before = std::iter::repeat_n(just_now, beyond).chain(std::iter::repeat_n(None, idle));
                    carried_on = before.chain(carried_on).collect();
                }
                Log { origin: log.origin, len, memory: Memory { first, carried: carried_on } }
            }
            None => {
                // Long enough for all that is taken over.
                let carried = vec![just_now; carried().min(passed)];
                let len = longest.max(carried.len()).next_power_of_two();
                Log { origin: now, len, memory: Memory { first: passed, carried } }
            }
        });
        let mut rings = BTreeMap::new();
        for (position, rule) in remembering().filter(|(_, rule)| rule.precision != Precision::Exact) {
            let shape = (rule.interval, rule.n_buckets);
            rings.entry(shape).or_insert_with(|| {
                let begin =
                    || Memory { first: passed, carried: vec![Some(now); self.carried(position, *rule, now)] };
                self.rings.get(&shape).cloned().unwrap_or_else(begin)
            });
        }
        (self.rules, self.log, self.rings) = (rules, log, rings);
    }

    /// How many permits count for the rule that stood at this place, if its memory is of the other sort.
    fn carried(&self, position: usize, rule: Flow, now: u64) -> usize {
        let is_same = |before: &&Flow| before.interval == rule.interval;
        let Some(before) = self.rules.get(position).filter(is_same) else { return 0 };
        match (before.precision, rule.precision) {
            (Precision::Exact, Precision::Exact) => 0,
            (Precision::Exact, _) => {
                let (leaving, len) = (self.leaving(*before), self.log.as_ref().unwrap().len);
                let leaving = &leaving[leaving.len().saturating_sub(len)..];
                leaving.iter().position(|leaves| *leaves > now).map_or(0, |gone| leaving.len() - gone)
            }
            (_, Precision::Exact) => {
                let strict = Flow { precision: Precision::Strict, ..*before };
                self.leaving(strict).iter().filter(|leaves| **leaves > now).count()
            }
            _ => 0,
        }
    }

    /// When each permit that counts for the rule leaves its window, in the order in which they passed.
    fn leaving(&self, rule: Flow) -> Vec<u64> {
        let buckets = |n_buckets: u32| {
            let bucket = rule.bucket();
            move |time: u64| (time / bucket + u64::from(n_buckets)) * bucket
        };
        let ring = || &self.rings[&(rule.interval, rule.n_buckets)];
        let (memory, leaves): (&Memory, Box<dyn Fn(u64) -> u64>) = match rule.precision {
            Precision::Exact => {
                let Log { origin, memory, .. } = self.log.as_ref().unwrap();
                let micros = move |time: u64| (time - origin).div_ceil(1_000) * 1_000 + origin;
                (memory, Box::new(move |time| micros(time) + rule.interval))
            }
            Precision::Strict => (ring(), Box::new(buckets(rule.n_buckets + 1))),
            _ => (ring(), Box::new(buckets(rule.n_buckets))),
        };
        let carried = memory.carried.iter().copied();
        let passed = self.permits[memory.first..].iter().copied().map(Some);
        carried.chain(passed).map(|time| time.map_or(0, &leaves)).collect()
    }

    /// A plain sliding log or bucket sum per rule: all must have room.
    fn ask(&self, n: usize, now: u64) -> Result<(), Refused> {
        let mut refused: Option<Refused> = None;
        for (position, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.mode == Mode::Enforce) {
            let until = if n > rule.limit() {
                None
            } else {
                // Those that have to leave before n more fit. (In order, but for what was taken over.)
                let leaving = self.leaving(*rule);
                let gone = (leaving.len() + n).saturating_sub(rule.limit());
                match leaving[gone.saturating_sub(n)..gone].iter().max() {
                    Some(leaves) if *leaves > now => Some(*leaves),
                    _ => continue,
                }
            };
            let refused =
                refused.get_or_insert(Refused { position: u16::try_from(position).unwrap(), until });
            refused.until = refused.until.zip(until).map(|(a, b)| a.max(b));
        }
        refused.map_or(Ok(()), Err)
    }

    fn pass(&mut self, n: usize, now: u64) {
        self.permits.extend(std::iter::repeat_n(now, n));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    /// A call of so many permits; whether, if it is refused, to come back when it is told to.
    Call(u32, bool),
    Charge(u32),
    Load(Vec<Flow>),
}

fn exact() -> impl Strategy<Value = Flow> {
    let intervals = prop::sample::select(vec![1_000, 1_000_000, 7_000_000, 999_983, 10_000_001, 50_000_000]);
    (0..7_u32, intervals).prop_map(|(limit, interval)| Flow {
        limit,
        precision: Precision::Exact,
        interval,
        n_buckets: 100,
        mode: Mode::Enforce,
    })
}

fn in_buckets(precision: Precision) -> impl Strategy<Value = Flow> {
    let shapes = prop::sample::select(vec![
        (1_000_000, 1),
        (1_000_000, 10),
        (9_000_000, 3),
        (3 * 1_000_003, 3),
        (20_000_000, 2),
        (50_000_000, 50),
    ]);
    (0..7_u32, shapes).prop_map(move |(limit, (interval, n_buckets))| Flow {
        limit,
        precision,
        interval,
        n_buckets,
        mode: Mode::Enforce,
    })
}

fn any_rule() -> impl Strategy<Value = Flow> {
    let rule = prop_oneof![exact(), in_buckets(Precision::Strict), in_buckets(Precision::Sentinel)];
    (rule, prop::bool::weighted(0.1))
        .prop_map(|(rule, off)| Flow { mode: if off { Mode::Off } else { Mode::Enforce }, ..rule })
}

fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        2 => 1..2_000_u64,
        4 => (0..3_000_u64).prop_map(|micros| micros * 1_000),
        2 => 1_000_000..12_000_000_u64,
        1 => 30_000_000..200_000_000_u64,
    ]
}

fn steps(rule: BoxedStrategy<Flow>, loads: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => wait().prop_map(Step::Wait),
        20 => (prop_oneof![4 => Just(1_u32), 1 => 1..5_u32, 1 => Just(0)], prop::bool::weighted(0.3))
            .prop_map(|(n, comes_back)| Step::Call(n, comes_back)),
        1 => (0..9_u32).prop_map(Step::Charge),
        loads => vec(rule.clone(), 0..4).prop_map(Step::Load),
    ];
    (vec(rule, 1..4), vec(step, 1..120)).prop_map(|(rules, mut steps)| {
        steps.insert(0, Step::Load(rules));
        steps
    })
}

/// A registry on a clock of its own, beside the model.
struct Scene {
    clock: ManualClock,
    registry: Registry,
    windows: Windows,
    now: u64,
}

impl Scene {
    fn new(start: u64) -> Self {
        let clock = ManualClock::at(ns(start));
        let registry = Registry::builder().clock(clock.clone()).build();
        Self { clock, registry, windows: Windows::default(), now: start }
    }

    fn at(&mut self, now: u64) {
        self.now = now;
        self.clock.set(ns(now));
    }

    fn play(mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Wait(time) => self.at(self.now + time),
                Step::Call(n, comes_back) => {
                    if let (Some(until), true) = (self.call(n), comes_back) {
                        self.come_back(n, until);
                    }
                }
                Step::Charge(n) => {
                    // The call that is charged passes like any other.
                    if let Ok(mut entry) = self.registry.enter(NAME) {
                        assert_eq!(entry.charge(n.into()), n.into());
                        self.windows.pass(1 + n as usize, self.now);
                    }
                }
                Step::Load(rules) => {
                    let set = rules.iter().fold(RuleSet::new(), |set, rule| set.flow(NAME, rule.rule()));
                    self.registry.load(set).unwrap();
                    self.windows.load(rules, self.now);
                }
            }
        }
        if let Some(stats) = self.registry.stats(NAME) {
            assert_eq!(stats.in_flight(), 0);
            assert_eq!(stats.totals().passed(), self.windows.permits.len() as u64);
        }
    }

    /// Makes a call; says when to come back, if it was refused and there is such a moment.
    fn call(&mut self, n: u32) -> Option<u64> {
        let taken = n.max(1) as usize;
        let expected = self.windows.ask(taken, self.now);
        assert_eq!(self.told(self.registry.would_pass(NAME, n)), expected, "looking, at {}", self.now);
        let entry = self.registry.enter_with(NAME).permits(n).enter();
        assert_eq!(self.told(entry.map(drop)), expected, "at {}", self.now);
        match expected {
            Ok(()) => {
                self.windows.pass(taken, self.now);
                None
            }
            Err(refused) => refused.until,
        }
    }

    fn told(&self, answer: Result<(), Blocked>) -> Result<(), Refused> {
        answer.map_err(|blocked| {
            assert_eq!(blocked.cause(), Cause::Flow);
            let until = blocked.retry_after().map(|wait| self.now + u64::try_from(wait.as_nanos()).unwrap());
            Refused { position: blocked.rule().position(), until }
        })
    }

    /// A moment before it still does not fit, and then it does.
    fn come_back(&mut self, n: u32, until: u64) {
        self.at(until - 1);
        assert!(self.registry.would_pass(NAME, n).is_err(), "{n} fit before {until}");
        self.at(until);
        assert_eq!(
            self.registry.would_pass(NAME, n).err().map(|blocked| blocked.to_string()),
            None,
            "at {until}"
        );
        assert_eq!(self.call(n), None);
    }
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn exact_decides_every_call_as_plain_sliding_logs_do(start in 0..u64::MAX / 4, steps in steps(exact().boxed(), 0)) {
        Scene::new(start).play(steps);
    }

    #[test]
    fn strict_refuses_only_for_the_last_interval_and_one_bucket(
        start in 0..u64::MAX / 4,
        steps in steps(in_buckets(Precision::Strict).boxed(), 0),
    ) {
        Scene::new(start).play(steps);
    }

    #[test]
    fn sentinel_decides_as_the_sum_of_its_buckets(
        start in 0..u64::MAX / 4,
        steps in steps(in_buckets(Precision::Sentinel).boxed(), 0),
    ) {
        Scene::new(start).play(steps);
    }

    #[test]
    fn mixed_rules_agree_or_nothing_is_taken_and_reloads_keep_what_passed(
        start in 0..u64::MAX / 4,
        steps in steps(any_rule().boxed(), 2),
    ) {
        Scene::new(start).play(steps);
    }

    /// The promise itself, without the model: whatever is refused or not, no span holds more than the limit.
    #[test]
    fn no_span_of_an_interval_holds_more_than_an_exact_or_strict_limit(
        rules in vec(prop_oneof![exact(), in_buckets(Precision::Strict)], 1..4),
        calls in vec((wait(), 1..4_u32), 1..150),
    ) {
        let clock = ManualClock::new();
        let registry = Registry::builder().clock(clock.clone()).build();
        registry.load(rules.iter().fold(RuleSet::new(), |set, rule| set.flow(NAME, rule.rule()))).unwrap();
        let mut passes = vec![];
        for (time, n) in calls {
            clock.advance(Duration::from_nanos(time));
            if registry.enter_with(NAME).permits(n).enter().is_ok() {
                passes.extend(std::iter::repeat_n(clock.now().as_nanos(), n as usize));
            }
        }
        for rule in rules {
            prop_assert_eq!(over(&passes, rule.limit(), rule.interval), None);
        }
    }
}

/// Two of `limit + 1` permits in order that are less than an interval apart.
fn over(sorted: &[u64], limit: usize, interval: u64) -> Option<(u64, u64)> {
    if limit == 0 {
        return sorted.first().map(|first| (*first, *first));
    }
    sorted.windows(limit + 1).map(|span| (span[0], span[limit])).find(|(first, last)| last - first < interval)
}

// --- Breakers and isolation ---

#[derive(Clone, Copy, Debug)]
enum Threshold {
    Slow(u64, f64),
    Errors(f64),
    Count(u32),
}

#[derive(Clone, Copy, Debug)]
struct BreakerSettings {
    threshold: Threshold,
    min_calls: u32,
    window: u64,
    n_buckets: u32,
    open: u64,
    probes: u32,
}

impl BreakerSettings {
    fn rule(self) -> BreakerRule {
        match self.threshold {
            Threshold::Slow(rt, ratio) => BreakerRule::slow_ratio(Duration::from_millis(rt), ratio),
            Threshold::Errors(ratio) => BreakerRule::error_ratio(ratio),
            Threshold::Count(count) => Ok(BreakerRule::error_count(count)),
        }
        .and_then(|rule| rule.with_min_calls(self.min_calls))
        .and_then(|rule| rule.with_window(Duration::from_millis(self.window), self.n_buckets))
        .and_then(|rule| rule.open_for(Duration::from_millis(self.open)))
        .and_then(|rule| rule.with_probes(self.probes))
        .unwrap()
    }

    fn kind(self) -> RuleKind {
        match self.threshold {
            Threshold::Slow(..) => RuleKind::SlowRatio,
            Threshold::Errors(_) => RuleKind::ErrorRatio,
            Threshold::Count(_) => RuleKind::ErrorCount,
        }
    }
}

/// The state machine in plain words; times in ms.
#[derive(Debug)]
struct BreakerModel {
    settings: BreakerSettings,
    state: BreakerState,
    generation: u32,
    probe_at: u64,
    lease_until: u64,
    free: u32,
    needed: u32,
    /// Every verdict: when, and whether it was bad.
    results: Vec<(u64, bool)>,
    /// The verdicts before the last closing.
    forgotten: usize,
    moves: Vec<(BreakerState, BreakerState, u64)>,
}

impl BreakerModel {
    fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: BreakerState::Closed,
            generation: 0,
            probe_at: 0,
            lease_until: 0,
            free: 0,
            needed: 0,
            results: vec![],
            forgotten: 0,
            moves: vec![],
        }
    }

    fn go(&mut self, to: BreakerState, now: u64) {
        self.moves.push((self.state, to, now));
        self.state = to;
        self.generation += 1;
        self.free = 0;
    }

    /// The generation, or when to come back.
    fn enter(&mut self, now: u64) -> Result<u32, Option<u64>> {
        match self.state {
            BreakerState::Closed => return Ok(self.generation),
            BreakerState::Open if now < self.probe_at => return Err(Some(self.probe_at)),
            BreakerState::Open => {
                self.go(BreakerState::HalfOpen, now);
                (self.free, self.needed) = (self.settings.probes, self.settings.probes);
            }
            BreakerState::HalfOpen if self.free > 0 => {}
            BreakerState::HalfOpen if now < self.lease_until => return Err(None),
            BreakerState::HalfOpen => {
                self.generation += 1;
                self.free = self.needed;
            }
            forced => unreachable!("nobody has put it {forced}"),
        }
        self.free -= 1;
        self.lease_until = now + self.settings.open;
        Ok(self.generation)
    }

    fn give_back(&mut self, generation: u32) {
        if self.state == BreakerState::HalfOpen && generation == self.generation {
            self.free += 1;
        }
    }

    fn end(&mut self, generation: u32, rt: u64, exception: bool, now: u64) {
        let bad = match self.settings.threshold {
            Threshold::Slow(slow_rt, _) => rt > slow_rt,
            _ => exception,
        };
        self.results.push((now, bad));
        if generation != self.generation {
            return;
        }
        match self.state {
            BreakerState::Closed if !self.trips(now) => return,
            BreakerState::HalfOpen if !bad && self.needed > 1 => {
                self.needed -= 1;
                return;
            }
            BreakerState::HalfOpen if !bad => {
                self.forgotten = self.results.len();
                self.go(BreakerState::Closed, now);
                return;
            }
            _ => {}
        }
        self.go(BreakerState::Open, now);
        self.probe_at = now + self.settings.open;
    }

    fn sample(&self, now: u64) -> (u32, u32) {
        let bucket = self.settings.window / u64::from(self.settings.n_buckets);
        let inside = |time: u64| time / bucket + u64::from(self.settings.n_buckets) > now / bucket;
        let results = self.results[self.forgotten..].iter().filter(|(time, _)| inside(*time));
        results.fold((0, 0), |(calls, bad), (_, is_bad)| (calls + 1, bad + u32::from(*is_bad)))
    }

    fn trips(&self, now: u64) -> bool {
        let (calls, bad) = self.sample(now);
        calls >= self.settings.min_calls
            && match self.settings.threshold {
                Threshold::Slow(_, ratio) | Threshold::Errors(ratio) => {
                    let share = f64::from(bad) / f64::from(calls);
                    share > ratio || ratio >= 1.0 && share >= 1.0
                }
                Threshold::Count(count) => bad > count,
            }
    }

    fn next_probe(&self, now: u64) -> Option<u64> {
        match self.state {
            BreakerState::Closed => None,
            BreakerState::Open => Some(self.probe_at.saturating_sub(now)),
            BreakerState::HalfOpen => (self.free > 0 || now >= self.lease_until).then_some(0),
            forced => unreachable!("nobody has put it {forced}"),
        }
    }
}

fn breaker() -> impl Strategy<Value = BreakerSettings> {
    let ratio = || prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]);
    let threshold = prop_oneof![
        (prop::sample::select(vec![0, 5, 20]), ratio()).prop_map(|(rt, ratio)| Threshold::Slow(rt, ratio)),
        ratio().prop_map(Threshold::Errors),
        (0..3_u32).prop_map(Threshold::Count),
    ];
    let window = prop::sample::select(vec![(50, 1), (100, 2), (90, 3), (1_000, 10)]);
    (threshold, 1..5_u32, window, prop::sample::select(vec![1, 40, 200]), 1..4_u32).prop_map(
        |(threshold, min_calls, (window, n_buckets), open, probes)| BreakerSettings {
            threshold,
            min_calls,
            window,
            n_buckets,
            open,
            probes,
        },
    )
}

#[derive(Clone, Debug)]
enum Act {
    Wait(u64),
    Enter(u32),
    /// Ends one of those in flight.
    End(prop::sample::Index, Outcome),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Success),
        4 => Just(Outcome::Exception),
        1 => Just(Outcome::Ignored),
        1 => Just(Outcome::Cancelled),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let wait = prop_oneof![Just(0), 1..8_u64, 10..60_u64, 150..250_u64, 900..1_200_u64];
    let act = prop_oneof![
        2 => wait.prop_map(Act::Wait),
        4 => (1..3_u32).prop_map(Act::Enter),
        3 => (any::<prop::sample::Index>(), outcome()).prop_map(|(which, outcome)| Act::End(which, outcome)),
    ];
    vec(act, 1..250)
}

type Moves = Vec<(RuleKind, BreakerState, BreakerState, u64)>;

#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Moves>>);

impl Observer for Watch {
    fn on_transition(&self, transition: &Transition<'_>) {
        let moved =
            (transition.rule().kind(), transition.from(), transition.to(), transition.at().as_millis());
        self.0.lock().unwrap().push(moved);
    }
}

fn play_breakers(settings: &[BreakerSettings], max: Option<u32>, acts: Vec<Act>) {
    let (clock, watch) = (ManualClock::new(), Watch::default());
    let registry = Registry::builder().clock(clock.clone()).observer(watch.clone()).build();
    let rules = settings.iter().fold(RuleSet::new(), |set, settings| set.breaker(NAME, settings.rule()));
    registry.load(max.iter().fold(rules, |set, max| set.isolation(NAME, IsolationRule::new(*max)))).unwrap();
    let mut models: Vec<_> = settings.iter().copied().map(BreakerModel::new).collect();
    let mut running: Vec<(Entry, Vec<u32>, u32, u64)> = vec![];
    let mut now = 0;
    for act in acts {
        match act {
            Act::Wait(time) => {
                now += time;
                clock.set(Timestamp::from_millis(now));
            }
            Act::Enter(n) => {
                let in_flight: u32 = running.iter().map(|(_, _, n, _)| *n).sum();
                let mut expected = Ok(vec![]);
                for (i, model) in models.iter_mut().enumerate() {
                    match (&mut expected, model.enter(now)) {
                        (Ok(held), Ok(generation)) => held.push(generation),
                        (Ok(_), Err(until)) => {
                            expected = Err((i, until));
                            break;
                        }
                        (Err(_), _) => unreachable!("it broke off"),
                    }
                }
                let n_entered = expected.as_ref().map_or_else(|(i, _)| *i, Vec::len);
                let isolated = expected.is_ok() && max.is_some_and(|max| in_flight + n > max);
                if expected.is_err() || isolated {
                    for model in &mut models[..n_entered] {
                        model.give_back(model.generation);
                    }
                }
                let looked = registry.would_pass(NAME, n).is_ok();
                match registry.enter_with(NAME).permits(n).enter() {
                    Ok(entry) => {
                        assert!(!isolated, "{in_flight} + {n} in flight");
                        running.push((entry, expected.expect("let through"), n, now));
                        assert!(looked);
                    }
                    Err(blocked) if isolated => {
                        assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Isolation, None));
                        assert_eq!(blocked.observed(), Some(in_flight.into()));
                    }
                    Err(blocked) => {
                        let (i, until) = expected.expect_err("blocked");
                        let wait = until.map(|until| Duration::from_millis(until - now));
                        assert_eq!(
                            (blocked.rule().kind(), blocked.retry_after()),
                            (settings[i].kind(), wait)
                        );
                        assert!(!looked);
                    }
                }
            }
            Act::End(which, outcome) => {
                if running.is_empty() {
                    continue;
                }
                let (entry, held, _, entered) = running.swap_remove(which.index(running.len()));
                entry.end(outcome);
                for (model, generation) in models.iter_mut().zip(held) {
                    match outcome {
                        Outcome::Success => model.end(generation, now - entered, false, now),
                        Outcome::Exception => model.end(generation, now - entered, true, now),
                        Outcome::Ignored | Outcome::Cancelled => model.give_back(generation),
                    }
                }
            }
        }
        let stats = registry.stats(NAME).unwrap();
        for (shown, model) in stats.breakers().iter().zip(&models) {
            assert_eq!((shown.state(), (shown.calls(), shown.bad_calls())), (model.state, model.sample(now)));
            assert_eq!(shown.next_probe(), model.next_probe(now).map(Duration::from_millis));
        }
    }
    for (kind, model) in settings.iter().map(|settings| settings.kind()).zip(&models) {
        let told = watch.0.lock().unwrap();
        let told: Vec<_> =
            told.iter().filter(|moved| moved.0 == kind).map(|moved| (moved.1, moved.2, moved.3)).collect();
        assert_eq!(told, model.moves);
    }
    drop(running);
    let stats = registry.stats(NAME).unwrap();
    assert_eq!(stats.in_flight(), 0);
    assert_eq!(stats.totals().passed(), stats.totals().completed());
}

proptest! {
    #![proptest_config(config(160))]

    #[test]
    fn a_breaker_moves_as_its_state_machine_says(settings in breaker(), acts in acts()) {
        play_breakers(&[settings], None, acts);
    }

    #[test]
    fn several_breakers_and_isolation_agree_or_give_back_what_they_took(
        settings in vec(breaker(), 1..6),
        max in prop::option::of(0..6_u32),
        acts in acts(),
    ) {
        // One of each kind, so that a transition can be told by its kind.
        let mut settings = settings;
        settings.sort_by_key(|settings| settings.kind());
        settings.dedup_by_key(|settings| settings.kind());
        play_breakers(&settings, max, acts);
    }

    #[test]
    fn isolation_lets_as_many_in_as_its_smallest_limit_and_every_permit_comes_back(
        limits in vec(vec(0..9_u32, 1..4), 1..4),
        acts in vec((1..4_u32, any::<prop::sample::Index>(), outcome(), 0..4_u8), 1..200),
    ) {
        let registry = Registry::builder().clock(ManualClock::new()).build();
        let load = |limits: &[u32]| {
            let set = limits.iter().fold(RuleSet::new(), |set, max| set.isolation(NAME, IsolationRule::new(*max)));
            registry.load(set).unwrap();
        };
        load(&limits[0]);
        let (mut standing, mut running) = (0, Vec::<Entry>::new());
        for (n, which, outcome, act) in acts {
            let in_flight: u64 = running.iter().map(Entry::permits).sum();
            match act {
                0 if !running.is_empty() => running.swap_remove(which.index(running.len())).end(outcome),
                1 if n == 1 => {
                    standing = which.index(limits.len());
                    load(&limits[standing]);
                }
                _ => {
                    let smallest = limits[standing].iter().min().unwrap();
                    let answer = registry.enter_with(NAME).permits(n).enter();
                    prop_assert_eq!(answer.is_ok(), in_flight + u64::from(n) <= u64::from(*smallest));
                    match answer {
                        Ok(entry) => running.push(entry),
                        Err(blocked) => {
                            let refuses = |max: &u32| in_flight + u64::from(n) > u64::from(*max);
                            let position = limits[standing].iter().position(refuses).unwrap();
                            prop_assert_eq!(usize::from(blocked.rule().position()), position);
                        }
                    }
                }
            }
            let in_flight: u64 = running.iter().map(Entry::permits).sum();
            prop_assert_eq!(registry.stats(NAME).unwrap().in_flight(), in_flight);
        }
        running.clear();
        prop_assert_eq!(registry.stats(NAME).unwrap().in_flight(), 0);
    }
}

// --- Statistics ---

#[derive(Clone, Debug)]
enum Event {
    Wait(u64),
    Enter(u32),
    Charge(prop::sample::Index, u64),
    End(prop::sample::Index, Outcome),
}

/// What happened at a moment, in ms.
#[derive(Clone, Copy, Debug)]
enum Happened {
    Passed { n: u64, in_flight: u64 },
    Charged { n: u64, in_flight: u64 },
    Blocked(u64),
    Ended { n: u64, outcome: Outcome, rt: u64 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let wait = prop_oneof![
        3 => Just(0),
        3 => 1..40_u64,
        3 => 50..400_u64,
        2 => 900..2_100_u64,
        1 => 9_000..12_000_u64,
        1 => 55_000..65_000_u64,
        1 => 100_000..200_000_u64,
    ];
    let event = prop_oneof![
        3 => wait.prop_map(Event::Wait),
        5 => prop_oneof![Just(1_u32), 1..5_u32].prop_map(Event::Enter),
        1 => (any::<prop::sample::Index>(), 0..20_u64).prop_map(|(which, n)| Event::Charge(which, n)),
        4 => (any::<prop::sample::Index>(), outcome()).prop_map(|(which, outcome)| Event::End(which, outcome)),
    ];
    vec(event, 1..200)
}

/// A plain list of everything, and the span of it that a figure is about.
struct Span<'a> {
    happened: &'a [(u64, Happened)],
    /// From this moment on.
    from: u64,
}

impl Span<'_> {
    fn sum(&self, count: impl Fn(Happened) -> u64) -> u64 {
        self.happened
            .iter()
            .filter(|(time, _)| *time >= self.from)
            .map(|(_, happened)| count(*happened))
            .sum()
    }

    fn response_times(&self) -> Vec<u64> {
        let inside = self.happened.iter().filter(|(time, _)| *time >= self.from);
        inside
            .filter_map(|(_, happened)| match happened {
                Happened::Ended { outcome, rt, .. } if *outcome != Outcome::Cancelled => Some(*rt),
                _ => None,
            })
            .collect()
    }

    /// In flight when a bucket of the span began, and after each call and charge in it.
    fn peak(&self, bucket: u64, now: u64) -> u64 {
        let in_flight_at = |start: u64| {
            self.happened.iter().take_while(|(time, _)| *time < start).fold(0, |in_flight, (_, happened)| {
                match happened {
                    Happened::Passed { n, .. } | Happened::Charged { n, .. } => in_flight + n,
                    Happened::Ended { n, .. } => in_flight - n,
                    Happened::Blocked(_) => in_flight,
                }
            })
        };
        let starts = (self.from / bucket..=now / bucket).map(|tick| in_flight_at(tick * bucket));
        let entered =
            self.happened.iter().filter(|(time, _)| *time >= self.from).map(|(_, happened)| match happened {
                Happened::Passed { in_flight, .. } | Happened::Charged { in_flight, .. } => *in_flight,
                _ => 0,
            });
        starts.chain(entered).max().unwrap_or(0)
    }

    fn assert_shown(&self, shown: &Traffic, peak: Option<u64>) {
        let of = |wanted: Outcome| {
            self.sum(|happened| match happened {
                Happened::Ended { n, outcome, .. } if outcome == wanted => n,
                _ => 0,
            })
        };
        let passed = self.sum(|happened| match happened {
            Happened::Passed { n, .. } | Happened::Charged { n, .. } => n,
            _ => 0,
        });
        let calls = self.sum(|happened| u64::from(matches!(happened, Happened::Passed { .. })));
        let blocked = self.sum(|happened| if let Happened::Blocked(n) = happened { n } else { 0 });
        assert_eq!((shown.passed(), shown.calls(), shown.blocked()), (passed, calls, blocked));
        assert_eq!(shown.blocked_by(Cause::Isolation), blocked);
        assert_eq!(
            [shown.success(), shown.exception(), shown.ignored(), shown.cancelled()],
            [Outcome::Success, Outcome::Exception, Outcome::Ignored, Outcome::Cancelled].map(of)
        );
        let times = self.response_times();
        let average =
            (times.iter().sum::<u64>() * 1_000_000).checked_div(times.len() as u64).map(Duration::from_nanos);
        assert_eq!(shown.rt_avg(), average);
        if let Some(peak) = peak {
            assert_eq!(shown.rt_min(), times.iter().min().copied().map(Duration::from_millis));
            assert_eq!(shown.rt_max(), times.iter().max().copied().map(Duration::from_millis));
            assert_eq!(shown.peak_in_flight(), Some(peak));
        }
    }
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn statistics_are_those_of_a_plain_list(events in events(), second_buckets in prop::sample::select(vec![1, 2, 10])) {
        const MAX: u64 = 12;
        let clock = ManualClock::new();
        let registry = Registry::builder().clock(clock.clone()).second_buckets(second_buckets).build();
        registry.load(RuleSet::new().isolation(NAME, IsolationRule::new(12))).unwrap();
        let mut happened: Vec<(u64, Happened)> = vec![];
        let (mut running, mut now, mut isolated, mut in_flight) = (Vec::<(Entry, u64, u64)>::new(), 0, 0, 0);
        for event in events {
            match event {
                Event::Wait(time) => {
                    now += time;
                    clock.set(Timestamp::from_millis(now));
                }
                Event::Enter(n) => match registry.enter_with(NAME).permits(n).enter() {
                    Ok(entry) => {
                        isolated += u64::from(n);
                        in_flight += u64::from(n);
                        happened.push((now, Happened::Passed { n: n.into(), in_flight }));
                        running.push((entry, n.into(), now));
                    }
                    Err(_) => {
                        prop_assert!(isolated + u64::from(n) > MAX);
                        happened.push((now, Happened::Blocked(n.into())));
                    }
                },
                Event::Charge(which, n) if !running.is_empty() => {
                    let which = which.index(running.len());
                    prop_assert_eq!(running[which].0.charge(n), n);
                    in_flight += n;
                    happened.push((now, Happened::Charged { n, in_flight }));
                }
                Event::End(which, outcome) if !running.is_empty() => {
                    let (entry, permits, entered) = running.swap_remove(which.index(running.len()));
                    let n = entry.permits();
                    entry.end(outcome);
                    isolated -= permits;
                    in_flight -= n;
                    happened.push((now, Happened::Ended { n, outcome, rt: now - entered }));
                }
                Event::Charge(..) | Event::End(..) => {}
            }
            if happened.is_empty() {
                continue;
            }
            let stats = registry.stats(NAME).unwrap();
            let since = |bucket: u64, n_buckets: u64| {
                Span { happened: &happened, from: (now / bucket + 1).saturating_sub(n_buckets) * bucket }
            };
            let bucket = 1_000 / u64::from(second_buckets);
            let second = since(bucket, second_buckets.into());
            second.assert_shown(stats.second(), Some(second.peak(bucket, now)));
            let minute = since(1_000, 60);
            minute.assert_shown(stats.minute(), Some(minute.peak(1_000, now)));
            since(1, now + 1).assert_shown(stats.totals(), None);
            prop_assert_eq!(stats.in_flight(), in_flight);

            let previous = since(1_000, 2).sum(|happened| match happened {
                Happened::Passed { n, .. } | Happened::Charged { n, .. } => n,
                _ => 0,
            }) - since(1_000, 1).sum(|happened| match happened {
                Happened::Passed { n, .. } | Happened::Charged { n, .. } => n,
                _ => 0,
            });
            prop_assert_eq!(stats.previous_second_passed(), if now < 1_000 { 0 } else { previous });

            let mut times = since(15_000, 4).response_times();
            times.sort_unstable();
            prop_assert_eq!(stats.percentiles().is_some(), !times.is_empty());
            if let Some(percentiles) = stats.percentiles() {
                let shares = [(500, percentiles.p50()), (900, percentiles.p90()), (990, percentiles.p99()), (999, percentiles.p99_9())];
                for (per_mille, shown) in shares {
                    let rank = (times.len() * per_mille).div_ceil(1_000).max(1);
                    let time = Duration::from_millis(times[rank - 1]);
                    // The longest time that the histogram tells apart; beyond, anything up to the true one is right.
                    let told = time.min(Duration::from_nanos(1 << 39));
                    let error = told.saturating_sub(shown).max(shown.saturating_sub(time));
                    prop_assert!(error <= time / 17 + Duration::from_nanos(64), "{shown:?} for {time:?}");
                }
            }
        }
        running.clear();
        let stats = registry.stats(NAME).unwrap();
        prop_assert_eq!(stats.in_flight(), 0);
        prop_assert_eq!(stats.totals().passed(), stats.totals().completed());
    }
}

// --- Threads ---

thread_local! {
    /// The first reading of the call that this thread is making: the one by which it is decided.
    static OWN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A clock that tells each thread by which reading its call was decided, and everybody the latest one.
#[derive(Clone, Debug)]
struct Witness<C> {
    clock: C,
    latest: Arc<AtomicU64>,
}

impl<C: Clock> Clock for Witness<C> {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        self.latest.fetch_max(now.as_nanos(), Ordering::SeqCst);
        OWN.set(OWN.get().or(Some(now.as_nanos())));
        now
    }
}

/// Permits that passed on some thread.
#[derive(Clone, Copy, Debug)]
struct Pass {
    n: usize,
    own: u64,
    /// Between these readings lies the latest one that the resource had seen when the call committed.
    seen: (u64, u64),
}

/// Threads call until they are done; returns what passed. `between` runs between two calls of a thread.
fn hammer<C: Clock + Clone>(
    n_threads: usize,
    n_calls: usize,
    clock: &C,
    rules: &[Flow],
    between: impl Fn(usize, &C) + Sync,
) -> Vec<Pass> {
    let witness = Witness { clock: clock.clone(), latest: Arc::default() };
    let registry = Registry::builder().clock(witness.clone()).build();
    registry.load(rules.iter().fold(RuleSet::new(), |set, rule| set.flow(NAME, rule.rule()))).unwrap();
    let (barrier, seen) = (Barrier::new(n_threads), AtomicU64::new(0));
    let passes: Vec<Pass> = thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|thread| {
                let (registry, clock, barrier, seen, latest) =
                    (registry.clone(), clock.clone(), &barrier, &seen, &witness.latest);
                let between = &between;
                scope.spawn(move || {
                    barrier.wait();
                    let mut passes = vec![];
                    for call in 0..n_calls {
                        let n = 1 + (call + thread) % 3;
                        let seen_before = seen.load(Ordering::SeqCst);
                        OWN.set(None);
                        let entry = registry.enter_with(NAME).permits(u32::try_from(n).unwrap()).enter();
                        let own = OWN.get().unwrap();
                        if let Ok(entry) = entry {
                            let latest = latest.load(Ordering::SeqCst);
                            passes.push(Pass { n, own, seen: (seen_before.max(own), latest) });
                            entry.end(Outcome::Success);
                        }
                        seen.fetch_max(own, Ordering::SeqCst);
                        between(thread, &clock);
                    }
                    passes
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let stats = registry.stats(NAME).unwrap();
    let permits: usize = passes.iter().map(|pass| pass.n).sum();
    assert_eq!((stats.totals().passed(), stats.in_flight()), (permits as u64, 0));
    passes
}

fn assert_exact(passes: &[Pass], rule: Flow) {
    let mut permits: Vec<u64> =
        passes.iter().flat_map(|pass| std::iter::repeat_n(pass.own, pass.n)).collect();
    permits.sort_unstable();
    assert_eq!(over(&permits, rule.limit(), rule.interval), None, "{} permits under {rule:?}", permits.len());
}

/// Counts those that surely stand in a span.
fn assert_strict(passes: &[Pass], rule: Flow) {
    let mut passes = passes.to_vec();
    passes.sort_unstable_by_key(|pass| pass.seen.0);
    for (i, first) in passes.iter().enumerate() {
        let end = first.seen.0 + rule.interval;
        let inside = passes[i..].iter().take_while(|pass| pass.seen.0 < end).filter(|pass| pass.seen.1 < end);
        let inside: usize = inside.map(|pass| pass.n).sum();
        assert!(inside <= rule.limit(), "{inside} within {rule:?} from {first:?}");
    }
}

const fn limit(limit: u32, precision: Precision, interval: u64, n_buckets: u32) -> Flow {
    Flow { limit, precision, interval, n_buckets, mode: Mode::Enforce }
}

#[test]
fn threads_on_a_real_clock_never_exceed_exact_limits() {
    let rules = [limit(50, Precision::Exact, 1_000_000, 100), limit(7, Precision::Exact, 50_001, 100)];
    for n_threads in [2, 4, 8] {
        let passes = hammer(n_threads, 6_000 / n_threads, &SystemClock::new(), &rules, |_, _| {});
        assert!(passes.len() > 3, "{}", passes.len());
        for rule in &rules {
            assert_exact(&passes, *rule);
        }
    }
}

#[test]
fn threads_on_a_real_clock_never_exceed_strict_limits() {
    let rules = [limit(50, Precision::Strict, 1_000_000, 100), limit(7, Precision::Strict, 50_000, 5)];
    for n_threads in [2, 4, 8] {
        let passes = hammer(n_threads, 6_000 / n_threads, &SystemClock::new(), &rules, |_, _| {});
        assert!(passes.len() > 3, "{}", passes.len());
        for rule in &rules {
            assert_strict(&passes, *rule);
        }
    }
}

#[test]
fn threads_that_move_the_clock_exceed_neither_exact_nor_strict_limits() {
    let rules = [
        limit(6, Precision::Exact, 10_000, 100),
        limit(20, Precision::Exact, 100_000, 100),
        limit(9, Precision::Strict, 20_000, 2),
        limit(8, Precision::Strict, 9_000, 3),
    ];
    for n_threads in [2, 3, 8] {
        let passes = hammer(n_threads, 8_000 / n_threads, &ManualClock::new(), &rules, |thread, clock| {
            clock.advance(Duration::from_nanos(if thread == 0 { 3_001 } else { 137 }));
        });
        assert!(passes.len() > 100, "{}", passes.len());
        for rule in &rules[..2] {
            assert_exact(&passes, *rule);
        }
        for rule in &rules[2..] {
            assert_strict(&passes, *rule);
        }
    }
}

#[test]
fn threads_leave_nothing_in_flight_and_never_exceed_an_isolation() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    let rules = RuleSet::new()
        .isolation(NAME, IsolationRule::new(5))
        .flow(NAME, FlowRule::new(1_000.0, Behavior::Reject).unwrap())
        // One that does not trip, whichever way the threads take turns.
        .breaker(NAME, BreakerRule::error_count(100_000));
    registry.load(rules).unwrap();
    let inside = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..8_u32 {
            let (registry, inside) = (&registry, &inside);
            scope.spawn(move || {
                for call in 0..500_u32 {
                    let n = 1 + (call + thread) % 2;
                    let Ok(entry) = registry.enter_with(NAME).permits(n).enter() else { continue };
                    assert!(inside.fetch_add(n.into(), Ordering::SeqCst) + u64::from(n) <= 5);
                    thread::yield_now();
                    inside.fetch_sub(n.into(), Ordering::SeqCst);
                    match call % 4 {
                        0 => drop(entry),
                        1 => entry.end(Outcome::Ignored),
                        2 => entry.end(Outcome::Exception),
                        _ => entry.end(Outcome::Success),
                    }
                }
            });
        }
    });
    let stats = registry.stats(NAME).unwrap();
    assert_eq!(stats.in_flight(), 0);
    assert_eq!(stats.totals().passed(), stats.totals().completed());
    assert!(stats.minute().peak_in_flight().unwrap() <= 5, "{:?}", stats.minute());
    assert!(registry.enter_with(NAME).permits(5).enter().is_ok() || stats.totals().passed() > 995);
}

// --- At the edges ---

#[test]
fn a_limit_that_changes_its_precision_remembers_what_passed() {
    let rules = |limit| RuleSet::new().flow(NAME, FlowRule::new(limit, Behavior::Reject).unwrap());
    let (clock, registry) = registry_with(rules(2_000.0));
    let passes = |n: usize| (0..n).filter(|_| registry.enter(NAME).is_ok()).count();
    assert_eq!(passes(700), 700);
    registry.load(rules(1_000.0)).unwrap();
    assert_eq!(passes(2_000), 300);
    registry.load(rules(1_500.0)).unwrap();
    assert_eq!(passes(2_000), 500);
    clock.advance(Duration::from_millis(1_010));
    assert_eq!(passes(2_000), 1_500);
}

fn registry_with(rules: RuleSet) -> (ManualClock, Registry) {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();
    registry.load(rules).unwrap();
    (clock, registry)
}

#[test]
fn a_charge_returns_where_adjoining_windows_hold_more_than_can_be_told() {
    let rule = limit(1_500_000_000, Precision::Sentinel, 1_000_000_000, 1);
    let (clock, registry) = registry_with(RuleSet::new().flow(NAME, rule.rule()));
    let mut entry = registry.enter_with(NAME).permits(1_500_000_000).enter().unwrap();
    clock.advance(Duration::from_secs(1));
    drop(registry.enter_with(NAME).permits(1_500_000_000).enter().unwrap());
    assert_eq!(entry.charge(1), 0);
    // A minute later the statistics have room again too.
    clock.advance(Duration::from_secs(61));
    assert_eq!(entry.charge(7), 7);
}

#[test]
fn a_log_that_outlives_its_times_is_made_anew_and_forgets_nothing() {
    let rule = limit(2, Precision::Exact, 1_000_000_000, 100);
    let (clock, registry) = registry_with(RuleSet::new().flow(NAME, rule.rule()));
    drop(registry.enter(NAME).unwrap());
    for years in [9, 1, 30, 8] {
        clock.advance(Duration::from_secs(years * 365 * 24 * 3_600));
        // A time that the old log could not tell may come out two microseconds late.
        for (advance_us, expected) in [(0, 2), (999_999, 0), (3, 2), (999_999, 0), (1, 2)] {
            clock.advance(Duration::from_micros(advance_us));
            let passed = (0..4).filter(|_| registry.enter(NAME).is_ok()).count();
            assert_eq!(passed, expected, "{advance_us} us later, after {years} years");
        }
    }
}

#[test]
fn a_shorter_open_time_holds_for_a_breaker_that_is_open() {
    let rules = |seconds| {
        let rule = BreakerRule::error_ratio(0.5).and_then(|rule| rule.with_min_calls(1));
        RuleSet::new()
            .breaker(NAME, rule.and_then(|rule| rule.open_for(Duration::from_secs(seconds))).unwrap())
    };
    let (clock, registry) = registry_with(rules(3_600));
    registry.enter(NAME).unwrap().end(Outcome::Exception);
    clock.advance(Duration::from_secs(1));
    registry.load(rules(10)).unwrap();
    assert_eq!(registry.enter(NAME).unwrap_err().retry_after(), Some(Duration::from_secs(9)));
    clock.advance(Duration::from_secs(9));
    registry.enter(NAME).unwrap().end(Outcome::Success);
    assert_eq!(registry.stats(NAME).unwrap().breakers()[0].state(), BreakerState::Closed);
}

/// Takes two seconds to hear of a transition.
struct Slow(ManualClock);

impl Observer for Slow {
    fn on_transition(&self, _: &Transition<'_>) {
        self.0.advance(Duration::from_secs(2));
    }
}

#[test]
fn windows_go_by_the_time_after_an_observer_has_heard_of_the_probe() {
    let (clock, registry) = registry_with(
        RuleSet::new()
            .flow(NAME, limit(2, Precision::Exact, 3_000_000_000, 100).rule())
            .breaker(NAME, BreakerRule::error_ratio(0.5).unwrap().with_min_calls(1).unwrap()),
    );
    registry.enter(NAME).unwrap().end(Outcome::Exception);
    registry.observe(Slow(clock.clone()));
    clock.advance(Duration::from_secs(5));
    let probe = registry.enter(NAME).unwrap();
    assert_eq!(clock.now(), Timestamp::from_millis(7_000));
    probe.end(Outcome::Success);
    assert_eq!(clock.now(), Timestamp::from_millis(9_000));
    drop(registry.enter(NAME).unwrap());
    let blocked = registry.enter(NAME).unwrap_err();
    assert_eq!(blocked.retry_after(), Some(Duration::from_secs(1)), "the probe passed at 7 s");
}
