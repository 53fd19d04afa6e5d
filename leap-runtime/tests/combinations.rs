//! Every rule, and random combinations of them on one resource, against plain models on random traffic: calls with
//! permits, origins, entrances, keys and priority, that wait, are cancelled half-way, and end in every way.
//!
//! A model is made of lists of times and calls. It says what must become of a call that arrives now, and is told what did.
//! The driver asks all models in the order in which a plan asks its rules, makes the call, and compares.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may fail by it")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use leap_runtime::{
    AuthorityRule, Behavior, Blocked, BreakerRule, BreakerState, BreakerStats, Call, Cause, Check, Clock,
    Ended, EnterWith, Entry, FlowRule, HotRule, IsolationRule, ManualClock, Mode, Outcome, Precision,
    Registry, RuleKind, RuleSet, SystemClock, SystemRule, Timestamp, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

const NAME: &str = "orders.create";
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn config(cases: u32) -> Config {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    Config { cases, failure_persistence, ..Config::default() }
}

const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

// --- What is played ---

/// A call on its way in.
#[derive(Clone, Debug)]
struct Request {
    /// Tells it apart.
    id: usize,
    n: u32,
    origin: Option<&'static str>,
    entrance: Option<&'static str>,
    keys: Vec<&'static str>,
    priority: bool,
    inbound: bool,
    /// Made by the call that parks its thread, where no wait can happen.
    is_sync: bool,
}

/// How the body of a call ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Says(Outcome),
    Returns(bool),
    Panics,
    IsDropped,
    Awaits(bool),
    IsDroppedHalfWay,
}

impl End {
    fn of(self, entry: Entry) -> Outcome {
        let result = |is_ok: bool| if is_ok { Ok(()) } else { Err(()) };
        let outcome = |is_ok: bool| if is_ok { Outcome::Success } else { Outcome::Exception };
        match self {
            Self::Says(outcome) => {
                entry.end(outcome);
                outcome
            }
            Self::Returns(is_ok) => {
                assert_eq!(entry.run(|| result(is_ok)), result(is_ok));
                outcome(is_ok)
            }
            Self::Panics => {
                let body = || -> Result<(), ()> { resume_unwind(Box::new("in the body")) };
                assert!(catch_unwind(AssertUnwindSafe(|| entry.run(body))).is_err());
                Outcome::Exception
            }
            Self::IsDropped => {
                drop(entry);
                Outcome::Cancelled
            }
            Self::Awaits(is_ok) => {
                let mut body = pin!(entry.run_async(async { result(is_ok) }));
                assert!(poll(body.as_mut(), Waker::noop()).is_ready());
                outcome(is_ok)
            }
            Self::IsDroppedHalfWay => {
                let mut body = Box::pin(entry.run_async(std::future::pending::<Result<(), ()>>()));
                assert!(poll(body.as_mut(), Waker::noop()).is_pending());
                Outcome::Cancelled
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Call(Request),
    /// Ends one of those that run.
    End(prop::sample::Index, End),
    /// Drops one of those that wait.
    Cancel(prop::sample::Index),
    /// Lets time go by, in ms, with whoever is woken polled at that moment.
    Wait(u64),
    /// Lets time go by with nobody polled meanwhile.
    Stall(u64),
    /// Polls all that were woken.
    Poll,
    /// What the application's own check says from now on.
    Say(Verdict),
    /// Reloads the rules, with other limits: the first for the first rule, and so on.
    Load(Vec<u32>),
}

fn request() -> impl Strategy<Value = Request> {
    (
        prop_oneof![6 => Just(1_u32), 1 => Just(2), 1 => Just(3), 1 => Just(5)],
        prop::sample::select(vec![None, Some("a"), Some("b"), Some("c")]),
        prop::sample::select(vec![None, Some("web"), Some("jobs")]),
        prop::sample::select(vec![vec![], vec!["x"], vec!["x"], vec!["y"], vec!["x", "y"], vec!["y", "y"]]),
        prop::bool::weighted(0.15),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(n, origin, entrance, keys, priority, inbound, is_sync)| Request {
            id: 0,
            n,
            origin,
            entrance,
            keys,
            priority,
            inbound,
            is_sync,
        })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Says(Outcome::Success)),
        Just(End::Says(Outcome::Exception)),
        Just(End::Says(Outcome::Ignored)),
        Just(End::Says(Outcome::Cancelled)),
        any::<bool>().prop_map(End::Returns),
        Just(End::Panics),
        Just(End::IsDropped),
        any::<bool>().prop_map(End::Awaits),
        Just(End::IsDroppedHalfWay),
    ]
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..20_u64, 3 => 20..200_u64, 2 => 200..1_100_u64, 1 => 1_500..6_000_u64]
}

fn steps(loads: u32) -> impl Strategy<Value = Vec<Step>> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Pass),
        2 => (1..300_u64).prop_map(|time| Verdict::Wait(ns(time * MS))),
        1 => Just(Verdict::block("no")),
    ];
    let step = prop_oneof![
        20 => request().prop_map(Step::Call),
        10 => (any::<prop::sample::Index>(), end()).prop_map(|(which, end)| Step::End(which, end)),
        3 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        8 => time().prop_map(Step::Wait),
        2 => time().prop_map(Step::Stall),
        4 => Just(Step::Poll),
        1 => verdict.prop_map(Step::Say),
        loads => vec(1..7_u32, 8).prop_map(Step::Load),
    ];
    vec(step, 1..100)
}

// --- The rules ---

/// Which calls a limit is about, and which of them it counts together.
#[derive(Clone, Debug, PartialEq)]
enum Scope {
    All,
    Inbound,
    Entrance(&'static str),
    Origin(&'static str),
    /// All that are not named here.
    OtherOrigins(Vec<&'static str>),
    EachOrigin,
    Key,
}

impl Scope {
    /// What a call is counted under, with how many permits.
    fn gates(&self, call: &Request) -> Vec<(&'static str, u32)> {
        let one = |holds: bool, gate| if holds { vec![(gate, call.n)] } else { vec![] };
        let origin = call.origin.unwrap_or_default();
        match self {
            Self::All => one(true, ""),
            Self::Inbound => one(call.inbound, ""),
            Self::Entrance(name) => one(call.entrance == Some(name), ""),
            Self::Origin(name) => one(origin == *name, ""),
            Self::OtherOrigins(named) => one(!origin.is_empty() && !named.contains(&origin), origin),
            Self::EachOrigin => one(!origin.is_empty(), origin),
            Self::Key => {
                let times =
                    |key| u32::try_from(call.keys.iter().filter(|other| **other == key).count()).unwrap();
                let keys: BTreeSet<_> = call.keys.iter().copied().collect();
                keys.into_iter().map(|key| (key, call.n * times(key))).collect()
            }
        }
    }

    /// The rule for the calls of this scope.
    fn of(&self, rule: FlowRule) -> FlowRule {
        match self {
            Self::Entrance(name) => rule.for_entrance(*name),
            Self::Origin(name) => rule.for_origin(*name),
            Self::OtherOrigins(_) => rule.for_other_origins(),
            Self::EachOrigin => rule.for_each_origin(),
            Self::All | Self::Inbound | Self::Key => Ok(rule),
        }
        .unwrap()
    }

    /// A call that this scope is about.
    fn call(&self) -> Request {
        let (origin, entrance) = match self {
            Self::Origin(name) => (Some(*name), None),
            Self::OtherOrigins(_) | Self::EachOrigin => (Some("else"), None),
            Self::Entrance(name) => (None, Some(*name)),
            Self::All | Self::Inbound | Self::Key => (None, None),
        };
        let keys = if *self == Self::Key { vec!["x"] } else { vec![] };
        let inbound = *self == Self::Inbound;
        Request { id: 0, n: 1, origin, entrance, keys, priority: false, inbound, is_sync: false }
    }
}

/// A rule as the models see it; times in ms.
#[derive(Clone, Debug)]
enum Spec {
    Authority {
        allows: bool,
        origins: Vec<&'static str>,
    },
    Breaker {
        threshold: Threshold,
        min_calls: u32,
        open: u64,
        probes: u32,
    },
    InFlight {
        scope: Scope,
        max: u32,
        queue: u64,
    },
    Window {
        scope: Scope,
        limit: u32,
        interval: u64,
        shape: Shape,
    },
    Pace {
        scope: Scope,
        limit: u32,
        interval: u64,
        burst: u32,
        max_wait: Option<u64>,
        cold_factor: u32,
    },
    /// A hot rule with a window and a limit on what is in flight.
    Both {
        limit: u32,
        interval: u64,
        max: u32,
    },
}

#[derive(Clone, Copy, Debug)]
enum Threshold {
    Slow(u64, f64),
    Errors(f64),
    Count(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Exact,
    /// In ten buckets.
    Strict,
    WarmUp,
}

impl Spec {
    fn add_to(&self, set: RuleSet, mode: Mode) -> RuleSet {
        let warm = |cold_factor: u32| (ns(SECOND), f64::from(cold_factor));
        match *self {
            Self::Authority { allows, ref origins } => {
                let origins = origins.iter().copied();
                let rule = if allows { AuthorityRule::allow(origins) } else { AuthorityRule::deny(origins) };
                set.authority(NAME, rule.unwrap().with_mode(mode))
            }
            Self::Breaker { threshold, min_calls, open, probes } => {
                let rule = match threshold {
                    Threshold::Slow(rt, ratio) => BreakerRule::slow_ratio(ns(rt * MS), ratio),
                    Threshold::Errors(ratio) => BreakerRule::error_ratio(ratio),
                    Threshold::Count(count) => Ok(BreakerRule::error_count(count)),
                };
                let rule = rule.and_then(|rule| rule.with_min_calls(min_calls));
                let rule = rule.and_then(|rule| rule.open_for(ns(open * MS))?.with_probes(probes));
                set.breaker(NAME, rule.unwrap().with_mode(mode))
            }
            Self::InFlight { scope: Scope::Inbound, max, .. } => {
                set.system(SystemRule::concurrency(max).with_mode(mode))
            }
            Self::InFlight { scope: Scope::Key, max, .. } => {
                set.hot(NAME, HotRule::concurrency("user", max).unwrap().with_mode(mode))
            }
            Self::InFlight { max, queue, .. } => {
                let rule = IsolationRule::new(max).with_queue(ns(queue * MS)).unwrap();
                set.isolation(NAME, rule.with_mode(mode))
            }
            Self::Window { scope: Scope::Inbound, limit, .. } => {
                set.system(SystemRule::qps(limit.into()).unwrap().with_mode(mode))
            }
            Self::Window { scope: Scope::Key, limit, interval, .. } => {
                let rule = HotRule::qps("user", limit.into()).and_then(|rule| rule.per(ns(interval * MS)));
                set.hot(NAME, rule.unwrap().with_mode(mode))
            }
            Self::Window { ref scope, limit, interval, shape } => {
                let (period, cold_factor) = warm(3);
                let behavior = match shape {
                    Shape::WarmUp => Behavior::WarmUp { period, cold_factor },
                    Shape::Exact | Shape::Strict => Behavior::Reject,
                };
                let rule = FlowRule::new(limit.into(), behavior).and_then(|rule| rule.per(ns(interval * MS)));
                let rule = rule.and_then(|rule| match shape {
                    Shape::Strict => rule.with_buckets(10)?.with_precision(Precision::Strict),
                    Shape::Exact | Shape::WarmUp => Ok(rule),
                });
                set.flow(NAME, scope.of(rule.unwrap()).with_mode(mode))
            }
            Self::Pace { scope: Scope::Key, limit, interval, burst, max_wait, .. } => {
                let rule = match max_wait {
                    Some(max_wait) => HotRule::throttle("user", limit.into(), ns(max_wait * MS)),
                    None => HotRule::qps("user", limit.into()),
                };
                let rule = rule.and_then(|rule| rule.per(ns(interval * MS))?.with_burst(burst));
                set.hot(NAME, rule.unwrap().with_mode(mode))
            }
            Self::Pace { ref scope, limit, interval, burst, max_wait, cold_factor } => {
                let max_wait = ns(max_wait.unwrap() * MS);
                let (period, factor) = warm(cold_factor);
                let behavior = match cold_factor {
                    1 => Behavior::Throttle { max_wait },
                    _ => Behavior::WarmUpThrottle { period, cold_factor: factor, max_wait },
                };
                let rule = FlowRule::new(limit.into(), behavior);
                let rule = rule.and_then(|rule| rule.per(ns(interval * MS))?.with_burst(burst));
                set.flow(NAME, scope.of(rule.unwrap()).with_mode(mode))
            }
            Self::Both { limit, interval, max } => {
                let rule = HotRule::qps("user", limit.into()).and_then(|rule| rule.per(ns(interval * MS)));
                set.hot(NAME, rule.unwrap().with_max_concurrency(max).with_mode(mode))
            }
        }
    }

    /// The same rule with another limit. What a bucket of a hot parameter has used is carried over as so many permits when the
    /// value next comes, so those keep theirs.
    fn with_limit(self, to: u32) -> Self {
        match self {
            Self::Authority { allows, origins } => {
                Self::Authority { allows: allows != to.is_multiple_of(2), origins }
            }
            Self::Breaker { threshold, min_calls, .. } => {
                Self::Breaker { threshold, min_calls, open: u64::from(to) * 100, probes: to.min(3) }
            }
            Self::InFlight { scope, queue, .. } => Self::InFlight { scope, max: to, queue },
            Self::Window { scope, interval, shape, .. } => Self::Window { scope, limit: to, interval, shape },
            Self::Pace { scope: Scope::Key, .. } => self,
            Self::Pace { scope, interval, burst, max_wait, cold_factor, .. } => {
                let limit = [1, 2, 4, 5, 10, 20, 50][to as usize % 7];
                Self::Pace { scope, limit, interval, burst, max_wait, cold_factor }
            }
            Self::Both { interval, max, .. } => Self::Both { limit: to, interval, max },
        }
    }

    /// Whether calls may have to wait under this rule.
    fn may_wait(&self) -> bool {
        matches!(self, Self::InFlight { queue: 1.., .. } | Self::Pace { max_wait: Some(_), .. })
    }

    fn kind(&self) -> RuleKind {
        match self {
            Self::Authority { .. } => RuleKind::Authority,
            Self::Breaker { threshold: Threshold::Slow(..), .. } => RuleKind::SlowRatio,
            Self::Breaker { threshold: Threshold::Errors(_), .. } => RuleKind::ErrorRatio,
            Self::Breaker { threshold: Threshold::Count(_), .. } => RuleKind::ErrorCount,
            Self::InFlight { scope: Scope::All, .. } => RuleKind::Isolation,
            Self::InFlight { scope, .. } | Self::Window { scope, .. } | Self::Pace { scope, .. } => {
                match scope {
                    Scope::Inbound => RuleKind::System,
                    Scope::Key => RuleKind::Hot,
                    _ => RuleKind::Flow,
                }
            }
            Self::Both { .. } => RuleKind::Hot,
        }
    }

    fn models(&self) -> Vec<Box<dyn Model>> {
        match *self {
            Self::Authority { allows, ref origins } => {
                vec![Box::new(Authority { allows, origins: origins.clone() })]
            }
            Self::Breaker { threshold, min_calls, open, probes } => {
                vec![Box::new(Breaker::new(threshold, min_calls, open * MS, probes))]
            }
            Self::InFlight { ref scope, max, queue } => {
                vec![Box::new(InFlight::new(scope.clone(), max, queue * MS))]
            }
            Self::Window { ref scope, limit, interval, shape } => {
                vec![Box::new(Window::new(scope.clone(), limit, interval * MS, shape))]
            }
            Self::Pace { ref scope, limit, interval, burst, max_wait, cold_factor } => {
                let cost = interval * MS / u64::from(limit);
                assert_eq!(cost * u64::from(limit), interval * MS, "in whole nanoseconds");
                let (bucket, most) = match (scope, max_wait) {
                    // It is refilled to the limit and the burst.
                    (_, None) => (limit + burst, limit + burst),
                    (Scope::Key, Some(_)) => (burst.max(1), limit.max(burst)),
                    (_, Some(_)) => (burst.max(1), limit + burst),
                };
                let max_wait = max_wait.map(|max_wait| max_wait * MS);
                vec![Box::new(Pace {
                    scope: scope.clone(),
                    cost,
                    cold_factor: cold_factor.into(),
                    bucket,
                    most,
                    max_wait,
                    turns: vec![],
                })]
            }
            Self::Both { limit, interval, max } => vec![
                Box::new(InFlight::new(Scope::Key, max, 0)),
                Box::new(Window::new(Scope::Key, limit, interval * MS, Shape::Exact)),
            ],
        }
    }
}

fn rules(specs: &[Spec], mode: impl Fn(usize) -> Mode) -> RuleSet {
    specs.iter().enumerate().fold(RuleSet::new(), |set, (i, spec)| spec.add_to(set, mode(i)))
}

// --- The models ---

/// What becomes of a call for which there are no permits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Queue {
    None,
    /// It waits for them.
    Waits,
    /// Others wait, for more than the limit is now. They hold up nobody, but it goes by the queue.
    Overtakes,
}

/// What a model says of a call.
#[derive(Clone, Copy, Debug)]
struct Answer {
    may_pass: bool,
    may_refuse: bool,
    queue: Queue,
    /// When it may start at the earliest, if it passes: between these moments.
    start: (u64, u64),
}

impl Answer {
    const PASSES: Self = Self { may_pass: true, may_refuse: false, queue: Queue::None, start: (0, 0) };
    const REFUSES: Self = Self { may_pass: false, may_refuse: true, ..Self::PASSES };
    /// Promised is neither.
    const EITHER: Self = Self { may_refuse: true, ..Self::PASSES };
    const QUEUES: Self = Self { queue: Queue::Waits, ..Self::REFUSES };

    /// All of one rule's gates have to agree.
    fn and(self, other: Self) -> Self {
        Self {
            may_pass: self.may_pass && other.may_pass,
            may_refuse: self.may_refuse || other.may_refuse,
            queue: Queue::None,
            start: (self.start.0.max(other.start.0), self.start.1.max(other.start.1)),
        }
    }
}

/// The rank of what counts all calls of the resource, which is asked last.
const OWN_WINDOW: u8 = 8;

/// The rank of the throttles of all calls.
const OWN_THROTTLE: u8 = 7;

/// Whether a rule refuses a call because others have it wait for too long.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Late {
    IsNot,
    MayBe,
    Is,
}

/// How a call ended that had passed.
#[derive(Clone, Copy, Debug)]
struct Ending {
    outcome: Outcome,
    /// None if it was dropped before its start.
    started: Option<u64>,
    now: u64,
}

impl Ending {
    /// A call that never started ran for no time.
    fn rt(self) -> u64 {
        self.started.map_or(0, |started| self.now - started)
    }
}

trait Model: Debug {
    /// Its place in the order in which a plan asks.
    fn rank(&self) -> u8;

    /// What becomes of a call that arrives now.
    fn may(&mut self, call: &Request, now: u64) -> Answer;

    /// The call has passed all rules, and starts at `start`.
    fn passed(&mut self, _call: &Request, _now: u64, _start: u64) {}

    /// This rule would have let the call pass, another did not.
    fn refused(&mut self, _call: &Request) {}

    /// A call that had passed has ended.
    fn ended(&mut self, _call: &Request, _ending: Ending) {}

    /// The call waits for a place in the window.
    fn placed(&mut self, _call: &Request) {}

    /// The call waits for permits.
    fn queued(&mut self, _call: &Request) {}

    /// The call does not wait any more, for a place or for permits: it is asked again, or has gone.
    fn left(&mut self, _call: &Request) {}

    /// Whether the call has got the permits that it waited for.
    fn has_granted(&self, _call: &Request) -> bool {
        false
    }

    /// How many calls queue.
    fn n_queued(&self) -> u64 {
        0
    }

    /// Whether it has to do with what is in flight.
    fn has_permits(&self) -> bool {
        false
    }

    /// That of a breaker.
    fn state(&self) -> Option<BreakerState> {
        None
    }

    /// The longest wait that the rule allows this call, if it says anything about that.
    fn max_wait(&self, _call: &Request) -> Option<u64> {
        None
    }

    /// The rule was loaded with other limits.
    fn go_by(&mut self, spec: &Spec, now: u64);
}

#[derive(Debug)]
struct Authority {
    allows: bool,
    origins: Vec<&'static str>,
}

impl Model for Authority {
    fn rank(&self) -> u8 {
        0
    }

    fn may(&mut self, call: &Request, _: u64) -> Answer {
        match call.origin {
            Some(origin) if self.origins.contains(&origin) != self.allows => Answer::REFUSES,
            _ => Answer::PASSES,
        }
    }

    fn go_by(&mut self, spec: &Spec, _: u64) {
        if let Spec::Authority { allows, .. } = spec {
            self.allows = *allows;
        }
    }
}

/// The application's own check. It is told the end of each call that it let pass: the outcome, the permits, and how long it
/// ran.
#[derive(Clone, Debug)]
struct Custom(Rc<RefCell<Script>>);

#[derive(Debug)]
struct Script {
    says: Verdict,
    told: Vec<(Option<Outcome>, u64, u64)>,
}

impl Model for Custom {
    fn rank(&self) -> u8 {
        2
    }

    fn may(&mut self, _: &Request, now: u64) -> Answer {
        match self.0.borrow().says {
            Verdict::Wait(time) => {
                let start = now + u64::try_from(time.as_nanos()).unwrap();
                Answer { start: (start, start), ..Answer::PASSES }
            }
            Verdict::Block { .. } => Answer::REFUSES,
            _ => Answer::PASSES,
        }
    }

    fn refused(&mut self, call: &Request) {
        self.0.borrow_mut().told.push((None, call.n.into(), 0));
    }

    fn ended(&mut self, call: &Request, ending: Ending) {
        self.0.borrow_mut().told.push((Some(ending.outcome), call.n.into(), ending.rt()));
    }

    fn go_by(&mut self, _: &Spec, _: u64) {}
}

/// A breaker over a window of one second.
#[derive(Debug)]
struct Breaker {
    threshold: Threshold,
    min_calls: u32,
    open: u64,
    probes: u32,
    state: BreakerState,
    /// Counts its states, and the times that probes were written off.
    generation: u32,
    opened: u64,
    probed: u64,
    /// Probes that may still be let through, and successes that are needed.
    free: u32,
    needed: u32,
    /// The results since it last closed: when, and whether they were bad.
    results: Vec<(u64, bool)>,
    /// The calls it let through, and in which generation.
    held: BTreeMap<usize, u32>,
}

impl Breaker {
    fn new(threshold: Threshold, min_calls: u32, open: u64, probes: u32) -> Self {
        Self {
            threshold,
            min_calls,
            open,
            probes,
            state: BreakerState::Closed,
            generation: 0,
            opened: 0,
            probed: 0,
            free: 0,
            needed: 0,
            results: vec![],
            held: BTreeMap::new(),
        }
    }

    fn go(&mut self, state: BreakerState) {
        (self.state, self.generation, self.free) = (state, self.generation + 1, 0);
    }

    fn trips(&self, now: u64) -> bool {
        let recent = self.results.iter().filter(|(time, _)| time / SECOND == now / SECOND);
        let (calls, bad) =
            recent.fold((0, 0), |(calls, bad), (_, is_bad)| (calls + 1, bad + u32::from(*is_bad)));
        calls >= self.min_calls
            && match self.threshold {
                Threshold::Slow(_, ratio) | Threshold::Errors(ratio) => {
                    f64::from(bad) > ratio * f64::from(calls) || (ratio >= 1.0 && bad == calls)
                }
                Threshold::Count(count) => bad > count,
            }
    }
}

impl Model for Breaker {
    fn rank(&self) -> u8 {
        3
    }

    fn may(&mut self, call: &Request, now: u64) -> Answer {
        match self.state {
            BreakerState::Open if now < self.opened + self.open => return Answer::REFUSES,
            BreakerState::Open => {
                self.go(BreakerState::HalfOpen);
                (self.free, self.needed) = (self.probes, self.probes);
            }
            BreakerState::HalfOpen if self.free == 0 && now < self.probed + self.open => {
                return Answer::REFUSES;
            }
            BreakerState::HalfOpen if self.free == 0 => {
                (self.generation, self.free) = (self.generation + 1, self.needed);
            }
            _ => {}
        }
        if self.state == BreakerState::HalfOpen {
            (self.free, self.probed) = (self.free - 1, now);
        }
        self.held.insert(call.id, self.generation);
        Answer::PASSES
    }

    fn refused(&mut self, call: &Request) {
        if self.held.remove(&call.id) == Some(self.generation) && self.state == BreakerState::HalfOpen {
            self.free += 1;
        }
    }

    fn ended(&mut self, call: &Request, ending: Ending) {
        let is_exception = match ending.outcome {
            Outcome::Success => false,
            Outcome::Exception => true,
            Outcome::Ignored | Outcome::Cancelled => return self.refused(call),
        };
        let is_bad = match self.threshold {
            Threshold::Slow(slow_rt, _) => ending.rt() > slow_rt * MS,
            _ => is_exception,
        };
        self.results.push((ending.now, is_bad));
        if self.held.remove(&call.id) != Some(self.generation) {
            return;
        }
        match self.state {
            BreakerState::Closed if !self.trips(ending.now) => {}
            BreakerState::HalfOpen if !is_bad && self.needed > 1 => self.needed -= 1,
            BreakerState::HalfOpen if !is_bad => {
                self.results.clear();
                self.go(BreakerState::Closed);
            }
            _ => {
                self.go(BreakerState::Open);
                self.opened = ending.now;
            }
        }
    }

    fn state(&self) -> Option<BreakerState> {
        Some(self.state)
    }

    fn go_by(&mut self, spec: &Spec, _: u64) {
        if let Spec::Breaker { open, probes, .. } = spec {
            (self.open, self.probes) = (open * MS, *probes);
        }
    }
}

/// So many permits in flight; others queue, where they do.
#[derive(Debug)]
struct InFlight {
    scope: Scope,
    max: u32,
    queue_time: u64,
    /// Who holds how many permits, and under what.
    inside: Vec<(usize, &'static str, u32)>,
    /// In the order in which they came.
    queue: Vec<(usize, u32)>,
}

impl InFlight {
    fn new(scope: Scope, max: u32, queue_time: u64) -> Self {
        Self { scope, max, queue_time, inside: vec![], queue: vec![] }
    }

    fn fits(&self, gate: &str, n: u32) -> bool {
        let held: u32 = self.inside.iter().filter(|(_, of, _)| *of == gate).map(|(.., n)| n).sum();
        held + n <= self.max
    }

    /// First come, first served; who never fits holds up nobody.
    fn grant(&mut self) {
        while let Some(first) = self.queue.iter().position(|(_, n)| *n <= self.max)
            && self.fits("", self.queue[first].1)
        {
            let (id, n) = self.queue.remove(first);
            self.inside.push((id, "", n));
        }
    }
}

impl Model for InFlight {
    fn rank(&self) -> u8 {
        match self.scope {
            Scope::Inbound => 1,
            Scope::Key => 5,
            _ => 4,
        }
    }

    fn may(&mut self, call: &Request, _: u64) -> Answer {
        let fits = self.scope.gates(call).iter().all(|(gate, n)| self.fits(gate, *n));
        if self.has_granted(call) || (fits && self.queue.is_empty()) {
            Answer::PASSES
        } else if fits && self.queue.iter().all(|(_, n)| *n > self.max) {
            Answer { queue: Queue::Overtakes, ..Answer::EITHER }
        } else if self.queue_time > 0 && call.n <= self.max {
            Answer::QUEUES
        } else {
            Answer::REFUSES
        }
    }

    fn passed(&mut self, call: &Request, _: u64, _: u64) {
        if !self.has_granted(call) {
            self.inside.extend(self.scope.gates(call).into_iter().map(|(gate, n)| (call.id, gate, n)));
        }
    }

    fn refused(&mut self, call: &Request) {
        self.left(call);
    }

    fn ended(&mut self, call: &Request, _: Ending) {
        self.left(call);
    }

    fn queued(&mut self, call: &Request) {
        self.queue.push((call.id, call.n));
        self.grant();
    }

    fn left(&mut self, call: &Request) {
        self.inside.retain(|(id, ..)| *id != call.id);
        self.queue.retain(|(id, _)| *id != call.id);
        self.grant();
    }

    fn has_granted(&self, call: &Request) -> bool {
        self.scope == Scope::All && self.inside.iter().any(|(id, ..)| *id == call.id)
    }

    fn n_queued(&self) -> u64 {
        self.queue.len() as u64
    }

    fn has_permits(&self) -> bool {
        true
    }

    fn go_by(&mut self, spec: &Spec, _: u64) {
        if let Spec::InFlight { max, .. } | Spec::Both { max, .. } = spec {
            self.max = *max;
            self.grant();
        }
    }
}

/// So many permits in any interval.
#[derive(Debug)]
struct Window {
    scope: Scope,
    limit: u32,
    interval: u64,
    /// How much longer than the interval a permit may count.
    grain: u64,
    /// While it warms up, only one permit per interval is promised.
    is_warming_up: bool,
    passes: Vec<(&'static str, u64, u32)>,
    /// Who waits for a place, in the order in which they came.
    places: Vec<(usize, u32)>,
}

impl Window {
    fn new(scope: Scope, limit: u32, interval: u64, shape: Shape) -> Self {
        let grain = if shape == Shape::Strict { interval / 10 } else { 0 };
        let is_warming_up = shape == Shape::WarmUp;
        Self { scope, limit, interval, grain, is_warming_up, passes: vec![], places: vec![] }
    }

    /// The permits of the half-open span that ends with this moment.
    fn within(&self, span: u64, gate: &str, now: u64) -> u32 {
        let inside = self.passes.iter().filter(|(of, time, _)| *of == gate && time + span > now);
        inside.map(|(.., n)| n).sum()
    }
}

impl Model for Window {
    fn rank(&self) -> u8 {
        match self.scope {
            Scope::Inbound => 1,
            Scope::Key => 5,
            Scope::All => OWN_WINDOW,
            _ => 6,
        }
    }

    fn may(&mut self, call: &Request, now: u64) -> Answer {
        // Each rule has places of its own, so who has one in another's stands behind all that are here.
        let ahead = self.places.iter().filter(|(id, _)| *id != call.id).map(|(_, n)| n).sum();
        let promised = if self.is_warming_up { 1 } else { self.limit }.saturating_sub(ahead);
        let one = |(gate, n): (&str, u32)| {
            if self.within(self.interval, gate, now) + n > self.limit {
                Answer::REFUSES
            } else if self.within(self.interval + self.grain, gate, now) + n <= promised {
                Answer::PASSES
            } else {
                Answer::EITHER
            }
        };
        self.scope.gates(call).into_iter().map(one).fold(Answer::PASSES, Answer::and)
    }

    fn passed(&mut self, call: &Request, now: u64, _: u64) {
        self.passes.extend(self.scope.gates(call).into_iter().map(|(gate, n)| (gate, now, n)));
        self.left(call);
    }

    fn placed(&mut self, call: &Request) {
        if self.scope == Scope::All && self.places.iter().all(|(id, _)| *id != call.id) {
            self.places.push((call.id, call.n));
        }
    }

    fn left(&mut self, call: &Request) {
        self.places.retain(|(id, _)| *id != call.id);
    }

    fn go_by(&mut self, spec: &Spec, _: u64) {
        if let Spec::Window { limit, .. } | Spec::Both { limit, .. } = spec {
            self.limit = *limit;
        }
    }
}

/// Starts that are as far apart as their permits cost, beyond what a bucket holds.
#[derive(Debug)]
struct Pace {
    scope: Scope,
    /// Of a permit, in ns.
    cost: u64,
    /// Up to how much more it costs while it is cold.
    cold_factor: u64,
    bucket: u32,
    most: u32,
    /// None where nobody waits for a turn.
    max_wait: Option<u64>,
    turns: Vec<Turn>,
}

#[derive(Debug)]
struct Turn {
    id: usize,
    gate: &'static str,
    start: u64,
    /// At least and at most.
    cost: (u64, u64),
}

/// What is left to be paid of the turns before a reload, as one turn of nobody.
const CARRIED: usize = usize::MAX;

impl Pace {
    /// When everything is paid, if permits cost the least, or the most: from each turn on, all of those behind it have to be.
    fn next(&self, gate: &str, pick: impl Fn((u64, u64)) -> u64) -> u64 {
        let (mut paid, mut next) = (0, 0);
        for turn in self.turns.iter().rev().filter(|turn| turn.gate == gate) {
            paid += pick(turn.cost);
            next = next.max(turn.start + paid);
        }
        next
    }

    /// When a call could start.
    fn earliest(&self, gate: &str, n: u32, now: u64, pick: impl Fn((u64, u64)) -> u64) -> u64 {
        let next = self.next(gate, &pick);
        let early = u64::from(self.bucket.saturating_sub(n)) * pick(self.costs(1));
        now.max(next.saturating_sub(early))
    }

    fn costs(&self, n: u32) -> (u64, u64) {
        let least = self.cost * u64::from(n);
        // Rates that change are no whole numbers.
        let most = if self.cold_factor > 1 { least * self.cold_factor + u64::from(n) } else { least };
        (least, most)
    }
}

impl Model for Pace {
    fn rank(&self) -> u8 {
        match self.scope {
            Scope::Key => 5,
            Scope::All => OWN_THROTTLE,
            _ => 6,
        }
    }

    fn may(&mut self, call: &Request, now: u64) -> Answer {
        let one = |(gate, n): (&str, u32)| {
            let least = self.earliest(gate, n, now, |(least, _)| least);
            let most = self.earliest(gate, n, now, |(_, most)| most);
            let latest = now + self.max_wait.unwrap_or(0);
            if n > self.most || least > latest {
                Answer::REFUSES
            } else {
                let start = (least, most.min(latest));
                Answer { may_refuse: most > latest, start, ..Answer::PASSES }
            }
        };
        self.scope.gates(call).into_iter().map(one).fold(Answer::PASSES, Answer::and)
    }

    /// Whoever waits takes its turn everywhere at the moment at which it starts. A bucket is used when it is asked.
    fn passed(&mut self, call: &Request, now: u64, start: u64) {
        let start = if self.max_wait.is_some() { start } else { now };
        for (gate, n) in self.scope.gates(call) {
            self.turns.push(Turn { id: call.id, gate, start, cost: self.costs(n) });
        }
    }

    /// A turn that was not come to is given back, if nobody has queued behind it. What was repriced by a reload is not.
    fn ended(&mut self, call: &Request, ending: Ending) {
        if ending.started.is_some() || self.max_wait.is_none() {
            return;
        }
        for (gate, _) in self.scope.gates(call) {
            let last = self.turns.iter().rposition(|turn| turn.gate == gate).unwrap();
            if self.turns[last].id == call.id {
                self.turns.remove(last);
            }
        }
    }

    fn max_wait(&self, call: &Request) -> Option<u64> {
        self.max_wait.filter(|_| !self.scope.gates(call).is_empty())
    }

    fn go_by(&mut self, spec: &Spec, now: u64) {
        if let Spec::Pace { scope, limit, interval, burst, .. } = spec
            && *scope != Scope::Key
        {
            let before = self.cost;
            (self.cost, self.most) = (interval * MS / u64::from(*limit), limit + burst);
            // Those who wait keep their starts. What the bucket lacks then, or now, it lacks in permits, which come back at the
            // new price.
            let ahead = |next: u64| {
                let ahead = next.saturating_sub(now);
                let lacking = ahead.min(before * u64::from(self.bucket));
                ahead - lacking + lacking * self.cost / before
            };
            let gates: BTreeSet<_> = self.turns.iter().map(|turn| turn.gate).collect();
            for gate in gates {
                let (least, most) = (self.next(gate, |cost| cost.0), self.next(gate, |cost| cost.1));
                if most > now && before != self.cost {
                    // In whole nanoseconds, cut off.
                    let cost = (ahead(least), ahead(most) + 1);
                    self.turns.retain(|turn| turn.gate != gate);
                    self.turns.push(Turn { id: CARRIED, gate, start: now, cost });
                }
            }
        }
    }
}

// --- The driver ---

/// A clock that tells at which moments somebody wants to be woken.
#[derive(Clone, Debug, Default)]
struct Alarms {
    clock: ManualClock,
    moments: Arc<Mutex<Vec<u64>>>,
}

impl Clock for Alarms {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wake_at(&self, until: Timestamp, waker: &Waker) -> bool {
        self.moments.lock().unwrap().push(until.as_nanos());
        self.clock.wake_at(until, waker)
    }
}

/// The application's own check: says what it was told to say, and keeps what it hears.
#[derive(Debug)]
struct Scripted {
    says: Mutex<Verdict>,
    told: Mutex<Vec<(Option<Outcome>, u64, u64)>>,
}

impl Check for Scripted {
    fn check(&self, _: &Call<'_>) -> Verdict {
        *self.says.lock().unwrap()
    }

    fn ended(&self, ended: &Ended<'_>) {
        let rt = u64::try_from(ended.rt().as_nanos()).unwrap();
        self.told.lock().unwrap().push((ended.outcome(), ended.permits(), rt));
    }
}

#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

type Entering = Pin<Box<dyn Future<Output = Result<Entry, Blocked>>>>;

/// A call that was not refused.
struct Live {
    call: Request,
    stage: Stage,
}

enum Stage {
    Waits { future: Entering, woken: Arc<Flag>, wait: Wait },
    Runs { entry: Entry, started: u64 },
}

/// What a call waits for, and until when.
#[derive(Clone, Copy, Debug)]
enum Wait {
    /// It has not been asked yet.
    Nothing,
    Permits(u64),
    Place(u64),
    Start(u64),
}

/// What a call was seen to be told.
enum Seen {
    Runs(Entry),
    Blocked(Blocked),
    Waits(Wait),
}

/// Permits, as the statistics are to show them.
#[derive(Debug, Default)]
struct Totals {
    passed: u64,
    blocked: BTreeMap<Cause, u64>,
    outcomes: [u64; 4],
}

struct Scene {
    clock: Alarms,
    registry: Registry,
    specs: Vec<Spec>,
    /// In the order in which a plan asks.
    rules: Vec<Ruling>,
    check: Option<(Arc<Scripted>, Custom)>,
    now: u64,
    calls: BTreeMap<usize, Live>,
    n_calls: usize,
    totals: Totals,
}

/// A model, and its rule as a block names it.
#[derive(Debug)]
struct Ruling {
    kind: RuleKind,
    position: u16,
    spec: usize,
    model: Box<dyn Model>,
}

impl Scene {
    fn new(specs: Vec<Spec>, has_check: bool) -> Self {
        let clock = Alarms::default();
        let registry = Registry::builder().clock(clock.clone()).build();
        registry.load(rules(&specs, |_| Mode::Enforce)).unwrap();
        let mut rules = vec![];
        let mut positions = BTreeMap::new();
        for (i, spec) in specs.iter().enumerate() {
            let next = positions.entry(spec.kind()).or_insert(0);
            let ruling = |model| Ruling { kind: spec.kind(), position: *next, spec: i, model };
            rules.extend(spec.models().into_iter().map(ruling));
            *next += 1;
        }
        let check = has_check.then(|| {
            let scripted = Scripted { says: Mutex::new(Verdict::Pass), told: Mutex::default() };
            let custom = Custom(Rc::new(RefCell::new(Script { says: Verdict::Pass, told: vec![] })));
            let model = Box::new(custom.clone());
            rules.push(Ruling { kind: RuleKind::Custom, position: 0, spec: usize::MAX, model });
            (Arc::new(scripted), custom)
        });
        if let Some((check, _)) = &check {
            registry.add_check(NAME, Arc::clone(check));
        }
        // Of the rules for the system, that on QPS is asked first.
        rules.sort_by_key(|rule| {
            (rule.model.rank(), rule.kind == RuleKind::System && rule.model.has_permits())
        });
        let (calls, totals) = (BTreeMap::new(), Totals::default());
        Self { clock, registry, specs, rules, check, now: 0, calls, n_calls: 0, totals }
    }

    fn play(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Call(call) => self.call(call),
                Step::End(which, end) => {
                    let running: Vec<_> = self.ids(|stage| matches!(stage, Stage::Runs { .. }));
                    if !running.is_empty() {
                        self.end(running[which.index(running.len())], end);
                    }
                }
                Step::Cancel(which) => {
                    let waiting: Vec<_> = self.ids(|stage| matches!(stage, Stage::Waits { .. }));
                    if !waiting.is_empty() {
                        self.cancel(waiting[which.index(waiting.len())]);
                    }
                }
                Step::Wait(time) => self.wait(self.now + time * MS),
                Step::Stall(time) => self.at(self.now + time * MS),
                Step::Poll => self.poll_woken(),
                Step::Say(verdict) => self.say(verdict),
                Step::Load(limits) => self.load(&limits),
            }
            self.compare();
        }
    }

    fn ids(&self, is_wanted: impl Fn(&Stage) -> bool) -> Vec<usize> {
        self.calls.iter().filter(|(_, live)| is_wanted(&live.stage)).map(|(id, _)| *id).collect()
    }

    fn at(&mut self, now: u64) {
        self.now = now;
        self.clock.clock.set(Timestamp::from_nanos(now));
    }

    /// Lets time go by, and stops wherever somebody wants to be woken.
    fn wait(&mut self, until: u64) {
        self.poll_woken();
        while let Some(next) = self.next_alarm().filter(|next| *next < until) {
            self.at(next);
            self.poll_woken();
        }
        self.at(until);
        self.poll_woken();
    }

    fn next_alarm(&self) -> Option<u64> {
        let mut moments = self.clock.moments.lock().unwrap();
        moments.retain(|moment| *moment > self.now);
        moments.iter().min().copied()
    }

    fn poll_woken(&mut self) {
        let is_woken = |stage: &Stage| matches!(stage, Stage::Waits { woken, .. } if woken.0.swap(false, Ordering::Relaxed));
        loop {
            let woken = self.ids(is_woken);
            if woken.is_empty() {
                return;
            }
            for id in woken {
                self.poll(id);
            }
        }
    }

    fn say(&mut self, says: Verdict) {
        if let Some((check, custom)) = &self.check {
            *check.says.lock().unwrap() = says;
            custom.0.borrow_mut().says = says;
        }
    }

    fn load(&mut self, limits: &[u32]) {
        for (spec, limit) in self.specs.iter_mut().zip(limits) {
            *spec = spec.clone().with_limit(*limit);
        }
        self.registry.load(rules(&self.specs, |_| Mode::Enforce)).unwrap();
        for rule in &mut self.rules {
            if let Some(spec) = self.specs.get(rule.spec) {
                rule.model.go_by(spec, self.now);
            }
        }
    }

    fn call(&mut self, mut call: Request) {
        call.id = self.n_calls;
        self.n_calls += 1;
        let waits =
            || matches!(&self.check, Some((_, custom)) if matches!(custom.0.borrow().says, Verdict::Wait(_)));
        if call.is_sync && !call.priority && !waits() && !self.specs.iter().any(Spec::may_wait) {
            let answers = self.ask(&call);
            let entered = self.enter_with(&call).enter();
            let seen = entered.map_or_else(Seen::Blocked, Seen::Runs);
            self.told(call, None, &answers, seen);
        } else {
            let (registry, asked) = (self.registry.clone(), call.clone());
            let future = Box::pin(async move { enter_with(&registry, &asked).enter_async().await });
            let stage = Stage::Waits { future, woken: Arc::default(), wait: Wait::Nothing };
            let id = call.id;
            self.calls.insert(id, Live { call, stage });
            self.poll(id);
        }
    }

    fn enter_with<'a>(&'a self, call: &'a Request) -> EnterWith<'a> {
        enter_with(&self.registry, call)
    }

    /// What all rules say of a call, up to the first that certainly refuses it.
    fn ask(&mut self, call: &Request) -> Vec<Answer> {
        let now = self.now;
        let mut answers = vec![];
        for rule in &mut self.rules {
            let answer = rule.model.may(call, now);
            answers.push(answer);
            if !answer.may_pass {
                break;
            }
        }
        // The throttles of all calls are asked as one.
        let is_own = |rule: &Ruling| rule.model.rank() == OWN_THROTTLE;
        let own = self.late(call, &answers, is_own);
        for ((rule, answer), late) in self.rules.iter().zip(&mut answers).zip(own) {
            if is_own(rule) {
                answer.may_pass &= late != Late::Is;
                answer.may_refuse |= late != Late::IsNot;
            }
        }
        answers
    }

    /// When a call starts by all of these rules together: between these moments.
    fn start(&self, answers: &[Answer], is_asked: impl Fn(&Ruling) -> bool) -> (u64, u64) {
        let asked = self.rules.iter().zip(answers).filter(|(rule, _)| is_asked(rule));
        asked.fold((self.now, self.now), |(least, most), (_, answer)| {
            (least.max(answer.start.0), most.max(answer.start.1))
        })
    }

    /// For which of the rules the start by all of these is too late.
    fn late(&self, call: &Request, answers: &[Answer], is_asked: impl Fn(&Ruling) -> bool) -> Vec<Late> {
        let (least, most) = self.start(answers, is_asked);
        let late = |rule: &Ruling| match rule.model.max_wait(call).map(|max_wait| self.now + max_wait) {
            Some(latest) if least > latest => Late::Is,
            Some(latest) if most > latest => Late::MayBe,
            _ => Late::IsNot,
        };
        self.rules.iter().zip(answers).map(|(rule, _)| late(rule)).collect()
    }

    /// Polls a call that waits, or has not been asked yet.
    fn poll(&mut self, id: usize) {
        let Some(Live { call, stage: Stage::Waits { mut future, woken, wait } }) = self.calls.remove(&id)
        else {
            return;
        };
        let is_asked_again = match wait {
            Wait::Nothing => true,
            Wait::Permits(_) => self.rules.iter().any(|rule| rule.model.has_granted(&call)),
            Wait::Place(until) => until <= self.now,
            Wait::Start(_) => false,
        };
        let looked = matches!(wait, Wait::Nothing).then(|| self.enter_with(&call).would_pass());
        let mut asked = is_asked_again.then(|| self.ask(&call));
        if let (Some(looked), Some(answers)) = (looked, &asked) {
            self.assert_looked(&call, &looked, answers);
            if let Some(queue) = answers.iter().position(|answer| answer.queue == Queue::Overtakes) {
                self.refused(&call, queue);
                self.rules[queue].model.queued(&call);
                asked = Some(self.ask(&call));
            }
        }
        let polled = poll(future.as_mut(), &Arc::clone(&woken).into());
        let seen = match polled {
            Poll::Ready(Ok(entry)) => Seen::Runs(entry),
            Poll::Ready(Err(blocked)) => Seen::Blocked(blocked),
            Poll::Pending if !is_asked_again => Seen::Waits(wait),
            Poll::Pending => {
                let until = *self.clock.moments.lock().unwrap().last().unwrap();
                assert!(until > self.now, "it waits for what has come");
                let stats = self.registry.stats(NAME).unwrap();
                Seen::Waits(match (stats.waiting() > self.paced(), stats.queued() > self.n_queued()) {
                    (true, _) => Wait::Start(until),
                    (false, true) => Wait::Permits(until),
                    (false, false) => Wait::Place(until),
                })
            }
        };
        match (asked, wait, seen) {
            (Some(answers), _, Seen::Waits(next)) => {
                self.told(call.clone(), Some(wait), &answers, Seen::Waits(next));
                self.calls.insert(id, Live { call, stage: Stage::Waits { future, woken, wait: next } });
            }
            (Some(answers), _, seen) => self.told(call, Some(wait), &answers, seen),
            (None, Wait::Start(start), Seen::Runs(entry)) if self.now >= start => {
                let started = self.now;
                self.calls.insert(id, Live { call, stage: Stage::Runs { entry, started } });
            }
            (None, Wait::Permits(deadline), Seen::Blocked(blocked)) if self.now >= deadline => {
                assert_eq!(blocked.cause(), Cause::Isolation);
                *self.totals.blocked.entry(Cause::Isolation).or_default() += u64::from(call.n);
                self.rules.iter_mut().for_each(|rule| rule.model.left(&call));
            }
            (None, Wait::Start(until) | Wait::Permits(until) | Wait::Place(until), Seen::Waits(_))
                if self.now < until =>
            {
                self.calls.insert(id, Live { call, stage: Stage::Waits { future, woken, wait } });
            }
            (None, wait, _) => panic!("{call:?} waits for {wait:?} at {}", self.now),
        }
    }

    /// Compares what a call was told with what the models say, and tells them.
    fn told(&mut self, call: Request, before: Option<Wait>, answers: &[Answer], seen: Seen) {
        let now = self.now;
        match seen {
            Seen::Runs(entry) => {
                self.passed(&call, answers, now);
                let stage = Stage::Runs { entry, started: now };
                self.calls.insert(call.id, Live { call, stage });
            }
            Seen::Waits(Wait::Start(start)) => self.passed(&call, answers, start),
            Seen::Waits(Wait::Permits(deadline)) => {
                let stopper = self.stopper(&call, answers, "queues", |rule, answer| {
                    answer.queue == Queue::Waits && rule.kind == RuleKind::Isolation
                });
                let queue_time = self.specs.iter().find_map(|spec| match spec {
                    Spec::InFlight { scope: Scope::All, queue, .. } => Some(queue * MS),
                    _ => None,
                });
                assert_eq!(Some(deadline - now), queue_time);
                self.refused(&call, stopper);
                self.rules[stopper].model.queued(&call);
            }
            Seen::Waits(Wait::Place(until)) => {
                assert!(
                    call.priority && until <= now + SECOND + SECOND / 10,
                    "{call:?} waits for {until} at {now}"
                );
                let is_window =
                    |rule: &Ruling| rule.kind == RuleKind::Flow && rule.model.rank() == OWN_WINDOW;
                let stopper = self.stopper(&call, answers, "has a place", |rule, _| is_window(rule));
                self.refused(&call, stopper);
                self.rules.iter_mut().for_each(|rule| rule.model.placed(&call));
            }
            Seen::Waits(Wait::Nothing) => unreachable!("it was asked"),
            Seen::Blocked(blocked) => {
                let named = (blocked.rule().kind(), blocked.rule().position());
                let has_place = matches!(before, Some(Wait::Place(_)));
                let stopper = self.stopper(&call, answers, &blocked.to_string(), |rule, answer| {
                    (rule.kind, rule.position) == named && (has_place || answer.queue != Queue::Waits)
                });
                *self.totals.blocked.entry(blocked.cause()).or_default() += u64::from(call.n);
                self.refused(&call, stopper);
                self.rules.iter_mut().for_each(|rule| rule.model.left(&call));
            }
        }
    }

    /// All rules let the call pass, and it starts at `start`.
    fn passed(&mut self, call: &Request, answers: &[Answer], start: u64) {
        let now = self.now;
        let all_agree = answers.len() == self.rules.len() && answers.iter().all(|answer| answer.may_pass);
        let is_late = self.late(call, answers, |_| true).contains(&Late::Is);
        assert!(all_agree && !is_late, "passed: {}", self.context(call, answers));
        let (least, most) = self.start(answers, |_| true);
        assert!((least..=most).contains(&start), "starts at {start}: {}", self.context(call, answers));
        self.rules.iter_mut().for_each(|rule| rule.model.passed(call, now, start));
        self.totals.passed += u64::from(call.n);
    }

    /// The rule that stopped a call, which is one that may, after all before it may have let the call pass.
    fn stopper(
        &self,
        call: &Request,
        answers: &[Answer],
        how: &str,
        is_it: impl Fn(&Ruling, &Answer) -> bool,
    ) -> usize {
        let asked = || self.rules.iter().zip(answers);
        let may_stop = |(rule, answer): (&Ruling, &Answer)| {
            let mut earlier = asked().filter(|(other, _)| other.model.rank() < rule.model.rank());
            answer.may_refuse && is_it(rule, answer) && earlier.all(|(_, answer)| answer.may_pass)
        };
        // The common start is looked for when all have agreed.
        let may_be_late = || {
            let all_agree = answers.len() == self.rules.len() && answers.iter().all(|answer| answer.may_pass);
            let late = self.late(call, answers, |_| true);
            let mut late =
                asked().zip(late).map(|((rule, answer), late)| late != Late::IsNot && is_it(rule, answer));
            late.position(|is_it| is_it).filter(|_| all_agree)
        };
        let stopper = asked().position(may_stop).or_else(may_be_late);
        stopper.unwrap_or_else(|| panic!("{how}: {}", self.context(call, answers)))
    }

    fn context(&self, call: &Request, answers: &[Answer]) -> String {
        format!("{call:?} at {}, of {:?}: {answers:?}", self.now, self.rules)
    }

    /// Whoever was asked before the one at `stopper` hears that the call did not pass.
    fn refused(&mut self, call: &Request, stopper: usize) {
        self.rules[..stopper].iter_mut().for_each(|rule| rule.model.refused(call));
    }

    /// Looking says what entering would, but that a check of the application's own is not asked, and that nobody queues for
    /// permits, if only to be granted them at once.
    fn assert_looked(&self, call: &Request, looked: &Result<(), Blocked>, answers: &[Answer]) {
        let asked = || self.rules.iter().zip(answers).filter(|(rule, _)| rule.kind != RuleKind::Custom);
        let is_whole = answers.len() == self.rules.len();
        let late = self.late(call, answers, |rule| rule.kind != RuleKind::Custom);
        match looked {
            Ok(()) => {
                assert!(asked().all(|(_, answer)| answer.may_pass), "{answers:?}");
                assert!(!is_whole || !late.contains(&Late::Is), "{answers:?}");
            }
            Err(blocked) => {
                let may_be_late = late.iter().any(|late| *late != Late::IsNot);
                let may_refuse = asked().any(|(_, answer)| answer.may_refuse) || may_be_late || !is_whole;
                let is_queue = blocked.cause() == Cause::Isolation && self.n_queued() > 0;
                assert!(may_refuse || is_queue, "{blocked}: {answers:?}");
            }
        }
    }

    fn n_queued(&self) -> u64 {
        self.rules.iter().map(|rule| rule.model.n_queued()).sum()
    }

    fn end(&mut self, id: usize, end: End) {
        let Some(Live { call, stage: Stage::Runs { entry, started } }) = self.calls.remove(&id) else {
            panic!("{id} does not run");
        };
        let outcome = end.of(entry);
        self.ended(&call, Ending { outcome, started: Some(started), now: self.now });
    }

    fn cancel(&mut self, id: usize) {
        let Some(Live { call, stage: Stage::Waits { future, wait, .. } }) = self.calls.remove(&id) else {
            panic!("{id} does not wait");
        };
        drop(future);
        match wait {
            Wait::Start(_) => {
                self.ended(&call, Ending { outcome: Outcome::Cancelled, started: None, now: self.now });
            }
            _ => self.rules.iter_mut().for_each(|rule| rule.model.left(&call)),
        }
    }

    fn ended(&mut self, call: &Request, ending: Ending) {
        self.totals.outcomes[ending.outcome as usize] += u64::from(call.n);
        self.rules.iter_mut().for_each(|rule| rule.model.ended(call, ending));
    }

    fn permits(&self, is_wanted: impl Fn(&Live) -> bool) -> u64 {
        self.calls.values().filter(|live| is_wanted(live)).map(|live| u64::from(live.call.n)).sum()
    }

    /// The permits of those who have passed and wait for their start.
    fn paced(&self) -> u64 {
        self.permits(|live| matches!(live.stage, Stage::Waits { wait: Wait::Start(_), .. }))
    }

    /// The statistics are those of the totals, and of who is where.
    fn compare(&self) {
        let Some(stats) = self.registry.stats(NAME) else { return };
        let running = self.permits(|live| matches!(live.stage, Stage::Runs { .. }));
        let paced = self.paced();
        // Who has got its permits and does not know it yet is in flight already.
        let granted = self.permits(|live| {
            matches!(live.stage, Stage::Waits { wait: Wait::Permits(_), .. })
                && self.rules.iter().any(|rule| rule.model.has_granted(&live.call))
        });
        assert_eq!((stats.in_flight(), stats.waiting()), (running + granted, paced));
        assert_eq!(stats.queued(), self.n_queued());
        let totals = stats.totals();
        let outcomes = [totals.success(), totals.exception(), totals.ignored(), totals.cancelled()];
        assert_eq!((totals.passed(), outcomes), (self.totals.passed, self.totals.outcomes));
        assert_eq!(totals.passed(), totals.completed() + running + paced);
        let causes = [
            Cause::Flow,
            Cause::Isolation,
            Cause::Breaker,
            Cause::Authority,
            Cause::System,
            Cause::Hot,
            Cause::Custom,
        ];
        for cause in causes {
            assert_eq!(
                totals.blocked_by(cause),
                self.totals.blocked.get(&cause).copied().unwrap_or(0),
                "{cause:?}"
            );
        }
        assert_eq!(totals.blocked(), self.totals.blocked.values().sum::<u64>());
        if let Some((check, custom)) = &self.check {
            assert_eq!(*check.told.lock().unwrap(), custom.0.borrow().told);
        }
        let breakers: Vec<_> = stats.breakers().iter().map(BreakerStats::state).collect();
        assert_eq!(breakers, self.rules.iter().filter_map(|rule| rule.model.state()).collect::<Vec<_>>());
    }

    /// Ends everything, half of what waits by dropping it, and looks whether anything is left. Then one rule alone lets
    /// through as much as it says.
    fn come_to_rest(mut self, alone: prop::sample::Index) {
        self.say(Verdict::Pass);
        for id in self.ids(|stage| matches!(stage, Stage::Waits { .. })).into_iter().step_by(2) {
            self.cancel(id);
        }
        while !self.calls.is_empty() {
            for id in self.ids(|stage| matches!(stage, Stage::Runs { .. })) {
                self.end(id, End::Says(Outcome::Ignored));
            }
            self.poll_woken();
            if let Some(next) = self.next_alarm() {
                self.wait(next);
            }
        }
        self.compare();
        let stats = self.registry.stats(NAME);
        if let Some(stats) = &stats {
            assert_eq!((stats.in_flight(), stats.waiting(), stats.queued()), (0, 0, 0));
            for share in stats.origins().iter().chain(stats.entrances()) {
                assert_eq!(
                    (share.in_flight(), share.totals().passed()),
                    (0, share.totals().completed()),
                    "{share}"
                );
            }
        }
        assert_eq!(self.registry.system().inbound_in_flight(), 0);
        self.close_breakers();
        self.wait(self.now + 20 * SECOND);
        if !self.specs.is_empty() {
            let alone = alone.index(self.specs.len());
            assert_whole(&self.registry, &self.specs, alone);
        }
    }

    /// A probe gets in everywhere, and its success closes.
    fn close_breakers(&mut self) {
        let call = Request { id: 0, ..Scope::All.call() };
        for _ in 0..4 {
            self.wait(self.now + 20 * SECOND);
            let id = self.n_calls;
            self.call(call.clone());
            self.end(id, End::Says(Outcome::Success));
        }
        let stats = self.registry.stats(NAME).unwrap();
        assert!(stats.breakers().iter().all(|breaker| breaker.state() == BreakerState::Closed), "{stats}");
    }
}

/// With all others switched off, and at one moment, a rule lets through exactly what it allows.
fn assert_whole(registry: &Registry, specs: &[Spec], alone: usize) {
    let mode = |i| if i == alone { Mode::Enforce } else { Mode::Off };
    registry.load(rules(specs, mode)).unwrap();
    let (scope, expected, is_held) = match &specs[alone] {
        Spec::Authority { .. } | Spec::Breaker { .. } | Spec::Window { shape: Shape::WarmUp, .. } => return,
        Spec::InFlight { scope, max, .. } => (scope.clone(), *max, true),
        Spec::Window { scope, limit, .. } => (scope.clone(), *limit, false),
        Spec::Pace { scope, burst, limit, max_wait: None, .. } => (scope.clone(), limit + burst, false),
        Spec::Pace { scope, burst, .. } => (scope.clone(), (*burst).max(1), false),
        Spec::Both { limit, max, .. } => (Scope::Key, *limit.min(max), true),
    };
    let mut held = vec![];
    let mut passed = 0;
    for _ in 0..=expected + 1 {
        let call = scope.call();
        let mut future = Box::pin(enter_with(registry, &call).enter_async());
        if let Poll::Ready(Ok(entry)) = poll(future.as_mut(), Waker::noop()) {
            passed += 1;
            if is_held {
                held.push(entry);
            }
        }
    }
    assert_eq!(passed, expected, "{:?}", specs[alone]);
}

fn enter_with<'a>(registry: &'a Registry, call: &'a Request) -> EnterWith<'a> {
    let mut entering = registry.enter_with(NAME).permits(call.n);
    if let Some(origin) = call.origin {
        entering = entering.origin(origin);
    }
    if let Some(entrance) = call.entrance {
        entering = entering.entrance(entrance);
    }
    if call.priority {
        entering = entering.priority();
    }
    if call.inbound {
        entering = entering.inbound();
    }
    match call.keys.as_slice() {
        [] => entering,
        [key] => entering.key("user", key),
        keys => entering.key("user", keys),
    }
}

// --- The properties ---

fn interval() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![100, 200, 500, 1_000])
}

/// A limit in the window of these calls.
fn window(scope: Scope, shape: Shape) -> BoxedStrategy<Spec> {
    (1..7_u32, interval())
        .prop_map(move |(limit, interval)| Spec::Window { scope: scope.clone(), limit, interval, shape })
        .boxed()
}

fn throttle(scope: Scope, cold_factor: u32) -> BoxedStrategy<Spec> {
    let limit = prop::sample::select(vec![1, 2, 4, 5, 10, 20, 50]);
    let burst =
        if cold_factor == 1 { prop_oneof![2 => Just(0), 1 => 1..6_u32].boxed() } else { Just(0).boxed() };
    (limit, interval(), burst, prop::sample::select(vec![0, 50, 300, 1_000]))
        .prop_map(move |(limit, interval, burst, max_wait)| {
            let (scope, max_wait) = (scope.clone(), Some(max_wait));
            Spec::Pace { scope, limit, interval, burst, max_wait, cold_factor }
        })
        .boxed()
}

fn bucket() -> BoxedStrategy<Spec> {
    (prop::sample::select(vec![1, 2, 4, 5]), interval(), 1..5_u32)
        .prop_map(|(limit, interval, burst)| Spec::Pace {
            scope: Scope::Key,
            limit,
            interval,
            burst,
            max_wait: None,
            cold_factor: 1,
        })
        .boxed()
}

fn in_flight(scope: Scope, queue: impl Strategy<Value = u64> + 'static) -> BoxedStrategy<Spec> {
    (1..6_u32, queue)
        .prop_map(move |(max, queue)| Spec::InFlight { scope: scope.clone(), max, queue })
        .boxed()
}

fn isolation() -> BoxedStrategy<Spec> {
    in_flight(Scope::All, prop_oneof![1 => Just(0), 3 => prop::sample::select(vec![30, 200, 2_000])])
}

fn breaker() -> BoxedStrategy<Spec> {
    let ratio = || prop::sample::select(vec![0.0, 0.3, 0.5, 1.0]);
    let threshold = prop_oneof![
        (prop::sample::select(vec![0, 5, 50]), ratio()).prop_map(|(rt, ratio)| Threshold::Slow(rt, ratio)),
        ratio().prop_map(Threshold::Errors),
        (0..3_u32).prop_map(Threshold::Count),
    ];
    (threshold, 1..5_u32, prop::sample::select(vec![50, 300, 2_000]), 1..4_u32)
        .prop_map(|(threshold, min_calls, open, probes)| Spec::Breaker { threshold, min_calls, open, probes })
        .boxed()
}

/// One of each kind at most, so that their states can be told apart.
fn breakers() -> impl Strategy<Value = Vec<Spec>> {
    vec(breaker(), 0..4).prop_map(|mut breakers| {
        breakers.sort_by_key(Spec::kind);
        breakers.dedup_by_key(|breaker| breaker.kind());
        breakers
    })
}

fn authority() -> BoxedStrategy<Spec> {
    (any::<bool>(), prop::sample::subsequence(vec!["a", "b", "c"], 1..3))
        .prop_map(|(allows, origins)| Spec::Authority { allows, origins })
        .boxed()
}

fn hot() -> BoxedStrategy<Spec> {
    let both = (1..7_u32, interval(), 1..4_u32);
    prop_oneof![
        window(Scope::Key, Shape::Exact),
        bucket(),
        throttle(Scope::Key, 1),
        in_flight(Scope::Key, Just(0)),
        both.prop_map(|(limit, interval, max)| Spec::Both { limit, interval, max }),
    ]
    .boxed()
}

fn scoped() -> BoxedStrategy<Spec> {
    let scope = prop::sample::select(vec![
        Scope::Entrance("web"),
        Scope::Origin("a"),
        Scope::OtherOrigins(vec![]),
        Scope::EachOrigin,
    ]);
    (scope, 0..3_u8)
        .prop_flat_map(|(scope, which)| match which {
            0 => window(scope, Shape::Exact),
            1 => window(scope, Shape::Strict),
            _ => throttle(scope, 1),
        })
        .boxed()
}

fn system() -> BoxedStrategy<Spec> {
    let qps = (1..9_u32).prop_map(|limit| Spec::Window {
        scope: Scope::Inbound,
        limit,
        interval: 1_000,
        shape: Shape::Exact,
    });
    prop_oneof![qps, in_flight(Scope::Inbound, Just(0))].boxed()
}

fn own_window() -> BoxedStrategy<Spec> {
    prop_oneof![
        2 => window(Scope::All, Shape::Exact),
        1 => window(Scope::All, Shape::Strict),
        1 => window(Scope::All, Shape::WarmUp),
    ]
    .boxed()
}

/// Some rules of every kind.
fn any_rules() -> impl Strategy<Value = Vec<Spec>> {
    let some = |spec: BoxedStrategy<Spec>, most: usize| {
        let n = prop_oneof![Just(0), 1..=most];
        n.prop_flat_map(move |n| vec(spec.clone(), n))
    };
    let resource = (breakers(), some(isolation(), 1), some(authority(), 1));
    let flow = (some(own_window(), 2), some(throttle(Scope::All, 1), 2), some(scoped(), 3));
    (resource, flow, some(hot(), 2), system_rules())
        .prop_map(|((breakers, isolation, authority), (windows, throttles, scoped), hot, system)| {
            let specs = [breakers, isolation, authority, windows, throttles, scoped, hot, system];
            with_names(specs.into_iter().flatten().collect())
        })
        .prop_shuffle()
}

/// One on each figure at most: of several the lowest would decide.
fn system_rules() -> impl Strategy<Value = Vec<Spec>> {
    vec(system(), 0..3).prop_map(|mut system| {
        system.dedup_by_key(|spec| matches!(spec, Spec::Window { .. }));
        system
    })
}

/// Other origins are those that have no rule of their own.
fn with_names(mut specs: Vec<Spec>) -> Vec<Spec> {
    let has_own = specs.iter().any(|spec| {
        matches!(
            spec,
            Spec::Window { scope: Scope::Origin(_), .. } | Spec::Pace { scope: Scope::Origin(_), .. }
        )
    });
    for spec in &mut specs {
        if let Spec::Window { scope: Scope::OtherOrigins(names), .. }
        | Spec::Pace { scope: Scope::OtherOrigins(names), .. } = spec
            && has_own
        {
            *names = vec!["a"];
        }
    }
    specs
}

fn play(specs: Vec<Spec>, has_check: bool, steps: Vec<Step>, alone: prop::sample::Index) {
    let mut scene = Scene::new(with_names(specs), has_check);
    scene.play(steps);
    scene.come_to_rest(alone);
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn no_interval_holds_more_than_a_window_and_nobody_is_refused_while_there_is_room(
        spec in own_window(),
        steps in steps(1),
        alone: prop::sample::Index,
    ) {
        play(vec![spec], false, steps, alone);
    }

    #[test]
    fn starts_are_as_far_apart_as_they_cost_and_no_wait_is_too_long(
        specs in vec(throttle(Scope::All, 1), 1..4),
        steps in steps(1),
        alone: prop::sample::Index,
    ) {
        play(specs, false, steps, alone);
    }

    #[test]
    fn a_throttle_that_warms_up_is_never_faster_than_its_limit_nor_slower_than_when_cold(
        spec in throttle(Scope::All, 3),
        steps in steps(0),
        alone: prop::sample::Index,
    ) {
        play(vec![spec], false, steps, alone);
    }

    #[test]
    fn permits_are_granted_in_the_order_of_the_queue_and_all_come_back(
        spec in isolation(),
        steps in steps(1),
        alone: prop::sample::Index,
    ) {
        play(vec![spec], false, steps, alone);
    }

    #[test]
    fn each_value_of_a_parameter_has_its_limits(
        specs in vec(hot(), 1..3),
        steps in steps(1),
        alone: prop::sample::Index,
    ) {
        play(specs, false, steps, alone);
    }

    #[test]
    fn each_entrance_and_origin_has_its_limits(
        specs in vec(scoped(), 1..4),
        steps in steps(1),
        alone: prop::sample::Index,
    ) {
        play(specs, false, steps, alone);
    }

    #[test]
    fn breakers_let_nobody_through_before_their_time_and_as_many_probes_as_they_say(
        specs in breakers(),
        steps in steps(1),
        alone: prop::sample::Index,
    ) {
        play(specs, false, steps, alone);
    }

    #[test]
    fn the_system_lists_of_origins_and_a_check_decide_as_they_say(
        system in system_rules(),
        authority in vec(authority(), 0..3),
        steps in steps(1),
        alone: prop::sample::Index,
    ) {
        play([system, authority].concat(), true, steps, alone);
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn any_rules_together_agree_or_nothing_is_taken(
        specs in any_rules(),
        has_check: bool,
        steps in steps(0),
        alone: prop::sample::Index,
    ) {
        play(specs, has_check, steps, alone);
    }

    #[test]
    fn any_rules_go_on_over_reloads_with_other_limits(
        specs in any_rules(),
        has_check: bool,
        steps in steps(3),
        alone: prop::sample::Index,
    ) {
        play(specs, has_check, steps, alone);
    }
}

// --- Threads ---

/// A call that passed, at some moment between these two readings of its thread.
#[derive(Clone, Debug)]
struct Pass {
    call: Request,
    read: (u64, u64),
}

/// The most permits of these calls that surely passed within one half-open span of such a length.
fn most_within(span: u64, passes: &[Pass], gate: impl Fn(&Request) -> u32) -> u32 {
    let mut passes: Vec<_> = passes.iter().map(|pass| (pass.read, gate(&pass.call))).collect();
    passes.retain(|(_, n)| *n > 0);
    passes.sort_unstable();
    let from = |i: usize| {
        let end = passes[i].0.0 + span;
        let begun = passes[i..].iter().take_while(move |((first, _), _)| *first < end);
        begun.filter(move |((_, last), _)| *last < end).map(|(_, n)| n).sum()
    };
    (0..passes.len()).map(from).max().unwrap_or(0)
}

/// A clock that wakes nobody: whoever waits polls all the time.
#[derive(Clone, Debug)]
struct Spun<C>(C);

impl<C: Clock> Clock for Spun<C> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn wake_at(&self, _: Timestamp, _: &Waker) -> bool {
        true
    }
}

/// Threads make calls at once, of which some are dropped while they wait; `between` runs whenever one has nothing to do.
/// Afterwards no limit was exceeded, and everything is back.
fn hammer<C: Clock + Clone>(
    n_threads: usize,
    n_calls: usize,
    clock: &C,
    between: impl Fn(&C) + Sync,
) -> (Registry, Vec<Spec>) {
    let specs = vec![
        Spec::InFlight { scope: Scope::All, max: 3, queue: 2 },
        Spec::Window { scope: Scope::All, limit: 20, interval: 5, shape: Shape::Exact },
        Spec::Window { scope: Scope::Origin("a"), limit: 5, interval: 5, shape: Shape::Exact },
        Spec::Window { scope: Scope::Key, limit: 8, interval: 5, shape: Shape::Exact },
        Spec::InFlight { scope: Scope::Key, max: 2, queue: 0 },
        Spec::Pace { scope: Scope::All, limit: 10, interval: 1, burst: 0, max_wait: Some(1), cold_factor: 1 },
        Spec::Pace { scope: Scope::Key, limit: 5, interval: 1, burst: 0, max_wait: Some(1), cold_factor: 1 },
    ];
    let registry = Registry::builder().clock(Spun(clock.clone())).build();
    registry.load(rules(&specs, |_| Mode::Enforce)).unwrap();
    let (start, inside, cancelled) = (Barrier::new(n_threads), AtomicU32::new(0), AtomicU32::new(0));
    let now = || clock.now().as_nanos();
    let call = |thread: usize, i: usize| {
        let n = 1 + u32::from((thread + i).is_multiple_of(5));
        let origin = [None, Some("a"), Some("b")][(thread + i) % 3];
        let keys = [vec![], vec!["x"], vec!["y"], vec!["x", "y"]][(thread + 3 * i) % 4].clone();
        Request {
            id: 0,
            n,
            origin,
            entrance: None,
            keys,
            priority: i.is_multiple_of(7),
            inbound: false,
            is_sync: false,
        }
    };
    // Enters, unless the call is blocked or dropped half-way.
    let enter = |call: &Request, is_dropped: bool| -> Option<(Entry, (u64, u64))> {
        let read = now();
        let mut entering = Box::pin(enter_with(&registry, call).enter_async());
        loop {
            match poll(entering.as_mut(), Waker::noop()) {
                Poll::Ready(entered) => return Some((entered.ok()?, (read, now()))),
                Poll::Pending if is_dropped => {
                    cancelled.fetch_add(1, Ordering::Relaxed);
                    return None;
                }
                Poll::Pending => between(clock),
            }
        }
    };
    let run = |thread: usize| {
        start.wait();
        let mut passes = vec![];
        for i in 0..n_calls {
            let call = call(thread, i);
            if let Some((entry, read)) = enter(&call, i % 3 == 0) {
                assert!(inside.fetch_add(call.n, Ordering::SeqCst) + call.n <= 3);
                between(clock);
                inside.fetch_sub(call.n, Ordering::SeqCst);
                let ends = [End::Says(Outcome::Success), End::Panics, End::IsDropped, End::IsDroppedHalfWay];
                ends[i % 4].of(entry);
                passes.push(Pass { call, read });
            }
            between(clock);
        }
        passes
    };
    let passes: Vec<Pass> = thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..n_threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(passes.len() > 50 && cancelled.into_inner() > 0, "{} passed", passes.len());

    for spec in &specs {
        let (scope, interval, most) = match spec {
            Spec::Window { scope, limit, interval, .. } => (scope, interval, *limit),
            // A call of two starts with the first of them.
            Spec::Pace { scope, limit, interval, .. } => (scope, interval, limit + 2),
            _ => continue,
        };
        for gate in ["", "x", "y"] {
            let of_gate = |call: &Request| {
                let mut gates = scope.gates(call).into_iter();
                gates.find(|(of, _)| *of == gate).map_or(0, |(_, n)| n)
            };
            assert!(most_within(interval * MS, &passes, of_gate) <= most, "{spec:?} of {gate:?}");
        }
    }
    let stats = registry.stats(NAME).unwrap();
    assert_eq!((stats.in_flight(), stats.waiting(), stats.queued()), (0, 0, 0));
    assert_eq!(stats.totals().passed(), stats.totals().completed());
    (registry, specs)
}

#[test]
fn threads_that_move_the_clock_exceed_no_limit_and_leave_nothing_behind() {
    for n_threads in [4, 8] {
        let clock = ManualClock::new();
        let (registry, specs) = hammer(n_threads, 300, &clock, |clock| {
            clock.advance(Duration::from_micros(37));
            thread::yield_now();
        });
        for alone in 0..specs.len() {
            clock.advance(ns(SECOND));
            assert_whole(&registry, &specs, alone);
            registry.load(rules(&specs, |_| Mode::Enforce)).unwrap();
        }
    }
}

#[test]
fn threads_on_a_real_clock_exceed_no_limit_and_leave_nothing_behind() {
    for n_threads in [4, 8] {
        let (registry, specs) = hammer(n_threads, 300, &SystemClock::new(), |_| thread::yield_now());
        // Only what is in flight does not depend on how long this thread is stopped meanwhile.
        for alone in [0, 4] {
            assert_whole(&registry, &specs, alone);
        }
    }
}

// --- At the edges ---

fn registry_with(rules: RuleSet) -> (ManualClock, Registry) {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();
    registry.load(rules).unwrap();
    (clock, registry)
}

#[test]
fn a_call_that_waits_for_its_place_is_counted_once_by_the_rules_before() {
    let flow = |limit, seconds| {
        FlowRule::new(limit, Behavior::Reject)
            .and_then(|rule| rule.per(Duration::from_secs(seconds)))
            .unwrap()
    };
    let hot = HotRule::qps("user", 1.0).and_then(|rule| rule.per(Duration::from_secs(60))).unwrap();
    let (clock, registry) = registry_with(
        RuleSet::new()
            .flow(NAME, flow(1.0, 1))
            .flow(NAME, flow(1.0, 60).for_origin("a").unwrap())
            .hot(NAME, hot),
    );
    drop(registry.enter(NAME).unwrap());
    let call = || registry.enter_with(NAME).origin("a").key("user", "x").priority();
    let mut entering = Box::pin(call().enter_async());
    assert!(poll(entering.as_mut(), Waker::noop()).is_pending(), "the first one filled the window");
    clock.advance(Duration::from_secs(1));
    assert!(matches!(poll(entering.as_mut(), Waker::noop()), Poll::Ready(Ok(_))));
    clock.advance(Duration::from_secs(1));
    assert_eq!(call().enter().unwrap_err().cause(), Cause::Hot, "that was its permit of the minute");
}

#[test]
fn values_count_as_asked_for_though_their_calls_are_blocked() {
    let rules = RuleSet::new().hot(NAME, HotRule::qps("user", 1.0).unwrap());
    let (_, registry) = registry_with(rules.flow(NAME, FlowRule::new(2.0, Behavior::Reject).unwrap()));
    for user in ["x", "x", "x", "y", "z"] {
        let _ = registry.enter_with(NAME).key("user", user).enter();
    }
    let _ = registry.enter(NAME);
    let users = registry.stats(NAME).unwrap().hot(3).remove(0);
    let mut top: Vec<_> = users.top().iter().map(|user| (user.value(), user.permits())).collect();
    top.sort_unstable();
    assert_eq!((top, users.missing()), (vec![("x", 3), ("y", 1), ("z", 1)], 1));
}

#[test]
fn looking_at_a_resource_that_nobody_has_called_asks_the_system() {
    let (_, registry) = registry_with(RuleSet::new().system(SystemRule::qps(1.0).unwrap()));
    let looked = registry.enter_with(NAME).inbound().permits(2).would_pass();
    assert_eq!(looked, registry.enter_with(NAME).inbound().permits(2).enter().map(drop));
    assert!(registry.enter_with("other").permits(2).would_pass().is_ok(), "it is not inbound");
    assert_eq!(registry.resources().count(), 1, "looking makes none");
}

#[test]
fn what_a_throttle_makes_too_long_for_another_is_told_before_anything_is_counted() {
    let throttle = |max_wait, burst| {
        FlowRule::new(1.0, Behavior::Throttle { max_wait: Duration::from_secs(max_wait) })
            .and_then(|rule| rule.with_burst(burst))
            .unwrap()
    };
    let hot = HotRule::qps("user", 2.0).and_then(|rule| rule.per(Duration::from_secs(60))).unwrap();
    let (clock, registry) =
        registry_with(RuleSet::new().flow(NAME, throttle(0, 9)).flow(NAME, throttle(5, 0)).hot(NAME, hot));
    let call = || registry.enter_with(NAME).key("user", "x");
    drop(call().enter().unwrap());
    let blocked = call().enter().unwrap_err();
    assert_eq!((blocked.cause(), blocked.rule().position()), (Cause::Flow, 0));
    assert_eq!(call().would_pass().unwrap_err(), blocked);
    clock.advance(Duration::from_secs(1));
    assert!(call().enter().is_ok());
}

#[test]
fn a_warm_up_warms_up_beside_other_rules_as_it_does_alone() {
    let behavior = Behavior::WarmUp { period: Duration::from_secs(4), cold_factor: 3.0 };
    let rules = || RuleSet::new().flow(NAME, FlowRule::new(10.0, behavior).unwrap());
    let seconds = |rules| -> Vec<usize> {
        let (clock, registry) = registry_with(rules);
        let second = |_| {
            let passed = (0..100).filter(|_| {
                clock.advance(Duration::from_millis(10));
                registry.enter(NAME).is_ok()
            });
            passed.count()
        };
        (0..12).map(second).collect()
    };
    let alone = seconds(rules());
    assert!(alone[0] <= 4 && alone[11] == 10, "{alone:?}");
    assert_eq!(seconds(rules().authority(NAME, AuthorityRule::deny(["batch"]).unwrap())), alone);
}
