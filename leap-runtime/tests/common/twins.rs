//! Two registries that are offered the same calls: what is to make no difference makes none.
#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leap_runtime::{
    AuthorityRule, Behavior, Blocked, BreakerRule, Entry, FlowRule, HotRule, IsolationRule, ManualClock,
    Mode, Outcome, Precision, Recovery, Registry, Rule, RuleSet, Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

use crate::common::{R, ms, qps};

/// A call that is offered.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// How long after the one before.
    gap: Duration,
    permits: u32,
    origin: &'static str,
    user: u8,
    runs: Duration,
    outcome: Outcome,
}

pub(crate) fn offers(n: usize) -> impl Strategy<Value = Vec<Offer>> + Clone {
    let outcome = prop_oneof![
        4 => Just(Outcome::Success),
        3 => Just(Outcome::Exception),
        1 => Just(Outcome::Ignored),
        1 => Just(Outcome::Cancelled),
    ];
    let gap = prop_oneof![6 => 0..80_u64, 1 => 80..1_500_u64];
    let offer = (gap, 1..3_u32, prop::sample::select(vec!["a", "b", "c"]), 0..3_u8, 0..200_u64, outcome)
        .prop_map(|(gap, permits, origin, user, runs, outcome)| Offer {
            gap: ms(gap),
            permits,
            origin,
            user,
            runs: ms(runs),
            outcome,
        });
    vec(offer, n)
}

pub(crate) fn config(cases: u32) -> Config {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    Config { cases, failure_persistence, ..Config::default() }
}

/// What became of a call.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Passes,
    /// It starts later.
    Waits,
    Blocks(Blocked),
}

impl PartialEq for Said {
    /// What blocks is the same rule for the same reason until the same moment, but for a microsecond: how warm a pace is, is
    /// rounded whenever it is asked, and a load asks.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Passes, Self::Passes) | (Self::Waits, Self::Waits) => true,
            (Self::Blocks(one), Self::Blocks(other)) => {
                let [until, other_until] = [one.retry_after(), other.retry_after()];
                let is_until_the_same = match (until, other_until) {
                    (Some(until), Some(other)) => until.abs_diff(other) < Duration::from_micros(1),
                    (until, other) => until == other,
                };
                (one.rule(), one.cause()) == (other.rule(), other.cause()) && is_until_the_same
            }
            _ => false,
        }
    }
}

/// A call that waits for its start.
type Waiting = Pin<Box<dyn Future<Output = Result<Entry, Blocked>>>>;

/// A registry with calls in it.
pub(crate) struct Site {
    registry: Registry,
    clock: ManualClock,
    running: Vec<(Timestamp, Entry, Outcome)>,
    waiting: Vec<Waiting>,
    now: Timestamp,
}

impl Site {
    pub(crate) fn new(rules: RuleSet) -> Self {
        let clock = ManualClock::new();
        let registry = Registry::builder().clock(clock.clone()).build();
        registry.load(rules).unwrap();
        Self { registry, clock, running: vec![], waiting: vec![], now: Timestamp::ZERO }
    }

    pub(crate) fn of(rule: &Rule, mode: Mode) -> Self {
        Self::new(rules_of(rule, mode))
    }

    pub(crate) fn load(&self, rule: &Rule, mode: Mode) {
        self.registry.load(rules_of(rule, mode)).unwrap();
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Lets so much time go by, in which calls end.
    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        self.running.sort_by_key(|(end, ..)| *end);
        let n_ending = self.running.partition_point(|(end, ..)| *end <= until);
        for (end, entry, outcome) in self.running.drain(..n_ending) {
            self.clock.set(end);
            entry.end(outcome);
        }
        self.clock.set(until);
        self.now = until;
    }

    pub(crate) fn offer(&mut self, offer: &Offer) -> Said {
        self.wait(offer.gap);
        self.offer_now(offer)
    }

    pub(crate) fn offer_now(&mut self, offer: &Offer) -> Said {
        let Offer { permits, origin, user, runs, outcome, .. } = *offer;
        let registry = self.registry.clone();
        let mut call = Box::pin(async move {
            let call = registry.enter_with(R).permits(permits).origin(origin).key("user", u32::from(user));
            call.enter_async().await
        });
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(entry)) => {
                self.running.push((self.now.saturating_add(runs), entry, outcome));
                Said::Passes
            }
            Poll::Ready(Err(blocked)) => Said::Blocks(blocked),
            Poll::Pending => {
                self.waiting.push(call);
                Said::Waits
            }
        }
    }

    /// What the only rule, which is in shadow, says of a call that passes.
    pub(crate) fn shadow_says(&mut self, offer: &Offer) -> Shadow {
        self.wait(offer.gap);
        let before = self.shadow();
        assert_eq!(self.offer_now(offer), Said::Passes);
        let after = self.shadow();
        let [asked, would_block, would_wait, would_pass_blocked] = [0, 1, 2, 3].map(|i| after[i] - before[i]);
        assert_eq!((asked, would_pass_blocked), (1, 0));
        Shadow { blocks: would_block == 1, waits: would_wait == 1 }
    }

    /// The figures of the first rule in shadow: asked, would block, would wait, would pass though blocked.
    pub(crate) fn shadow(&self) -> [u64; 4] {
        figures(&self.registry, 0)
    }
}

/// The answer of a rule in shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shadow {
    blocks: bool,
    waits: bool,
}

impl From<&Said> for Shadow {
    fn from(said: &Said) -> Self {
        Self { blocks: matches!(said, Said::Blocks(_)), waits: *said == Said::Waits }
    }
}

/// The figures of a rule in shadow: asked, would block, would wait, would pass though blocked.
pub(crate) fn figures(registry: &Registry, i: usize) -> [u64; 4] {
    let stats = registry.stats(R).unwrap();
    let shadow = &stats.shadows()[i];
    [shadow.asked(), shadow.would_block(), shadow.would_wait(), shadow.would_pass_blocked()]
}

fn rules_of(rule: &Rule, mode: Mode) -> RuleSet {
    RuleSet::new().named("the-rule", R, rule.clone().with_mode(mode))
}

/// Rules of every kind that decides about a resource, small enough to be felt. None has calls queue.
pub(crate) fn all_rules() -> Vec<Rule> {
    let second = Duration::from_secs(1);
    let in_ring =
        |rule: FlowRule, precision| rule.with_precision(precision).unwrap().with_buckets(10).unwrap();
    let flow = |limit, behavior| FlowRule::new(limit, behavior).unwrap();
    let warm_up = Behavior::WarmUp { period: second * 2, cold_factor: 3.0 };
    let throttle = Behavior::Throttle { max_wait: ms(300) };
    let warm_up_throttle =
        Behavior::WarmUpThrottle { period: second * 2, cold_factor: 3.0, max_wait: ms(300) };
    let sentinel =
        |rule: FlowRule| rule.with_precision(Precision::Sentinel).unwrap().with_buckets(2).unwrap();
    let breaker = |rule: BreakerRule| {
        rule.with_min_calls(2).unwrap().open_for(ms(150)).unwrap().with_window(ms(500), 5).unwrap()
    };
    let ramp = Recovery::Ramp { over: ms(300) };
    let hot = |limit| HotRule::qps("user", limit).unwrap();
    vec![
        qps(5.0).into(),
        qps(3.0).per(ms(300)).unwrap().into(),
        in_ring(qps(5.0), Precision::Strict).into(),
        in_ring(qps(5.0), Precision::Sentinel).into(),
        flow(15.0, warm_up).into(),
        in_ring(flow(15.0, warm_up), Precision::Strict).into(),
        in_ring(flow(15.0, warm_up), Precision::Sentinel).into(),
        flow(10.0, throttle).into(),
        flow(10.0, throttle).with_burst(3).unwrap().into(),
        sentinel(flow(10.0, throttle)).into(),
        flow(15.0, warm_up_throttle).into(),
        sentinel(flow(15.0, warm_up_throttle)).into(),
        qps(3.0).for_origin("a").unwrap().into(),
        qps(3.0).for_other_origins().unwrap().into(),
        qps(3.0).for_each_origin().unwrap().into(),
        in_ring(qps(3.0), Precision::Strict).for_each_origin().unwrap().into(),
        flow(5.0, throttle).for_each_origin().unwrap().into(),
        flow(5.0, throttle).for_origin("b").unwrap().into(),
        IsolationRule::new(3).into(),
        breaker(BreakerRule::slow_ratio(ms(100), 0.4).unwrap()).into(),
        breaker(BreakerRule::error_ratio(0.4).unwrap()).into(),
        breaker(BreakerRule::error_ratio(0.4).unwrap()).with_probes(2).unwrap().into(),
        breaker(BreakerRule::error_ratio(0.4).unwrap()).with_recovery(ramp).unwrap().into(),
        breaker(BreakerRule::error_count(2)).into(),
        BreakerRule::error_ratio(0.4)
            .unwrap()
            .with_window_calls(5)
            .unwrap()
            .open_for(ms(150))
            .unwrap()
            .into(),
        hot(2.0).into(),
        hot(2.0).with_burst(2).unwrap().into(),
        hot(70.0).into(),
        HotRule::throttle("user", 5.0, ms(300)).unwrap().into(),
        HotRule::concurrency("user", 2).unwrap().into(),
        hot(4.0).with_max_concurrency(2).into(),
        AuthorityRule::allow(["a"]).unwrap().into(),
        AuthorityRule::deny(["a"]).unwrap().into(),
    ]
}
