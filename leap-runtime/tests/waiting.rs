//! Calls that wait, for turns, permits and places at once, in odd orders: nothing is exceeded and nothing is lost.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use common::waits::Call;
use common::{R, ms, passes, qps, registry_with};
use leap_runtime::{
    Behavior, BreakerRule, Clock, Entry, FlowRule, IsolationRule, ManualClock, Outcome, Registry, RuleSet,
};

/// A linear congruential generator (D. Knuth's MMIX constants): the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// Permits per second of the window, calls in flight, and calls per second of the pace; the pace's burst.
#[derive(Clone, Copy)]
struct Limits {
    window: u32,
    in_flight: u32,
    pace: u32,
    burst: u32,
}

impl Limits {
    fn rules(self) -> RuleSet {
        let breaker = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(20).unwrap();
        let breaker = breaker.open_for(ms(300)).unwrap();
        let throttle = FlowRule::new(self.pace.into(), Behavior::Throttle { max_wait: ms(400) }).unwrap();
        RuleSet::new()
            .flow(R, qps(self.window.into()))
            .flow(R, throttle.with_burst(self.burst).unwrap())
            .isolation(R, IsolationRule::new(self.in_flight).with_queue(ms(200)).unwrap())
            .breaker(R, breaker)
    }
}

/// What was let through, by when it was and when it started.
#[derive(Default)]
struct Log {
    started: Vec<(u64, u32)>,
    entries: VecDeque<Entry>,
}

impl Log {
    fn enter(&mut self, entry: Entry, clock: &ManualClock) {
        self.started.push((clock.now().as_millis(), u32::try_from(entry.permits()).unwrap()));
        self.entries.push_back(entry);
    }
}

/// Polls all that wait, and forgets those that are ready.
fn poll(waiting: &mut Vec<Call<'_>>, log: &mut Log, clock: &ManualClock) {
    waiting.retain_mut(|call| match call.poll() {
        Poll::Pending => true,
        Poll::Ready(entered) => {
            if let Ok(entry) = entered {
                log.enter(entry, clock);
            }
            false
        }
    });
}

fn assert_at_rest(registry: &Registry, clock: &ManualClock, limits: Limits) {
    let stats = registry.stats(R).unwrap();
    let totals = stats.totals();
    assert_eq!([stats.in_flight(), stats.waiting(), stats.queued()], [0; 3]);
    assert_eq!(totals.passed(), totals.completed());
    // Far on, where no breaker is open and no window holds anything.
    clock.advance(Duration::from_secs(60));
    registry.load(RuleSet::new().isolation(R, IsolationRule::new(limits.in_flight))).unwrap();
    let held: Vec<_> = (0..limits.in_flight).map(|_| registry.enter(R).unwrap()).collect();
    assert!(registry.enter(R).is_err());
    drop(held);
}

#[test]
fn under_every_rule_at_once_nothing_is_exceeded_and_all_of_it_comes_back() {
    for seed in 0..40 {
        let mut numbers = Numbers(seed);
        let limits = Limits { window: 12, in_flight: 4, pace: 20, burst: 3 };
        let (registry, clock) = registry_with(limits.rules());
        let (mut waiting, mut log) = (Vec::<Call<'_>>::new(), Log::default());
        for _ in 0..1_500 {
            match numbers.below(10) {
                0..=3 => {
                    let mut call =
                        registry.enter_with(R).permits(1 + u32::try_from(numbers.below(3)).unwrap());
                    if numbers.below(3) == 0 {
                        call = call.priority();
                    }
                    waiting.push(Call::new(call));
                }
                4 | 5 if !waiting.is_empty() => drop(waiting.swap_remove(numbers.below(waiting.len()))),
                6 | 7 => {
                    if let Some(entry) = log.entries.pop_front() {
                        let outcomes =
                            [Outcome::Success, Outcome::Exception, Outcome::Ignored, Outcome::Cancelled];
                        entry.end(outcomes[numbers.below(4)]);
                    }
                }
                8 if numbers.below(5) == 0 => drop(registry.load(limits.rules()).unwrap()),
                _ => clock.advance(ms(numbers.below(60) as u64)),
            }
            poll(&mut waiting, &mut log, &clock);
            let stats = registry.stats(R).unwrap();
            assert!(stats.in_flight() <= limits.in_flight.into(), "seed {seed}: {}", stats.in_flight());
        }
        for (i, (from, _)) in log.started.iter().enumerate() {
            let mut permits = 0;
            for (to, n) in &log.started[i..] {
                permits += n;
                // A call of 3 permits, or a burst, and what the rate has made room for; seen up to 60 ms late.
                let allowed = u64::from(limits.pace) * (to - from) / 1_000 + 3 + 2;
                assert!(u64::from(permits) <= allowed, "seed {seed}: {permits} from {from} to {to} ms");
            }
        }
        assert!(log.started.len() > 20, "seed {seed}: {}", log.started.len());
        drop((waiting, log));
        assert_at_rest(&registry, &clock, limits);
    }
}

#[test]
fn whatever_rules_come_and_go_while_calls_wait_all_of_it_comes_back() {
    for seed in 0..40 {
        let mut numbers = Numbers(1_000 + seed);
        let of = |numbers: &mut Numbers| Limits {
            window: 1 + u32::try_from(numbers.below(20)).unwrap(),
            in_flight: 1 + u32::try_from(numbers.below(6)).unwrap(),
            pace: 1 + u32::try_from(numbers.below(50)).unwrap(),
            burst: u32::try_from(numbers.below(4)).unwrap(),
        };
        let mut limits = of(&mut numbers);
        let (registry, clock) = registry_with(limits.rules());
        let (mut waiting, mut log) = (Vec::<Call<'_>>::new(), Log::default());
        for _ in 0..1_500 {
            match numbers.below(12) {
                0..=3 => {
                    let call = registry.enter_with(R).permits(1 + u32::try_from(numbers.below(2)).unwrap());
                    waiting.push(Call::new(if numbers.below(2) == 0 { call.priority() } else { call }));
                }
                4 if !waiting.is_empty() => drop(waiting.swap_remove(numbers.below(waiting.len()))),
                5 | 6 => drop(log.entries.pop_front()),
                7 => drop(log.entries.pop_back()),
                8 if numbers.below(3) == 0 => {
                    limits = of(&mut numbers);
                    drop(registry.load(limits.rules()).unwrap());
                }
                8 if numbers.below(4) == 0 => drop(registry.load(RuleSet::new()).unwrap()),
                // Back a little, too.
                9 if numbers.below(4) == 0 => clock.set(clock.now().saturating_sub(ms(5))),
                _ => clock.advance(ms(numbers.below(80) as u64)),
            }
            poll(&mut waiting, &mut log, &clock);
        }
        // Nobody waits for ever, whatever the rules have become.
        clock.advance(Duration::from_secs(10));
        poll(&mut waiting, &mut log, &clock);
        clock.advance(Duration::from_secs(10));
        poll(&mut waiting, &mut log, &clock);
        log.entries.clear();
        clock.advance(Duration::from_secs(10));
        poll(&mut waiting, &mut log, &clock);
        assert_eq!(waiting.len(), 0, "seed {seed}");
        drop(log);
        assert_at_rest(&registry, &clock, limits);
        registry.load(RuleSet::new().flow(R, qps(5.0))).unwrap();
        clock.advance(Duration::from_secs(60));
        assert_eq!(passes(&registry, R, 10), 5, "seed {seed}");
    }
}
