//! Random traffic and random hands, decided by the breaker and by its docs in plain words, which must agree.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::{Index, select};
use proptest::strategy::Strategy as _;

use super::*;
use crate::rule::{BreakerWindow, RuleKind};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn id() -> RuleId {
    RuleId::new(None, RuleKind::ErrorRatio, 0)
}

/// The breaker's promises, kept by lists. Times in ms.
#[derive(Debug)]
struct Model {
    rule: BreakerRule,
    phase: Phase,
    /// Changes whenever what was let through before is to move nothing any more.
    period: u64,
    doublings: u32,
    opened_at: u64,
    probed_at: u64,
    ramped_at: u64,
    free: u32,
    needed: u32,
    /// The shares of the calls under this ramp, in percent, and how many passed.
    shares: u64,
    passed: u64,
    ramp: Vec<bool>,
    /// Every verdict since the last closing, with its moment.
    results: Vec<(u64, bool)>,
    moves: Vec<Moved>,
}

impl Model {
    fn new(rule: BreakerRule) -> Self {
        Self {
            rule,
            phase: Phase::Closed,
            period: 0,
            doublings: 0,
            opened_at: 0,
            probed_at: 0,
            ramped_at: 0,
            free: 0,
            needed: 0,
            shares: 0,
            passed: 0,
            ramp: vec![],
            results: vec![],
            moves: vec![],
        }
    }

    fn go(&mut self, phase: Phase, forced: bool) {
        self.period += 1;
        let (from, to, sequence) = (self.phase.shown(), phase.shown(), self.period);
        if from != to {
            self.moves.push(Moved { from, to, forced, sequence });
        }
        self.phase = phase;
    }

    fn open(&mut self, now: u64) {
        self.doublings = if self.phase == Phase::Closed { 0 } else { self.doublings + 1 };
        self.opened_at = now;
        self.go(Phase::Open, false);
    }

    fn close(&mut self, forced: bool) {
        self.results.clear();
        self.go(Phase::Closed, forced);
    }

    /// In ns after the breaker opened, or let its last probe through.
    fn open_time(&self) -> Duration {
        open_time(&self.rule, self.doublings, || draw(open_time::seed(&id(), at(0)), self.period))
    }

    fn is_after(&self, since: u64, now: u64) -> bool {
        ms(now - since) >= self.open_time()
    }

    fn share(&self, now: u64) -> u64 {
        match self.rule.recovery() {
            Recovery::Ramp { over } => {
                let over = u64::try_from(over.as_millis()).unwrap();
                ((now - self.ramped_at) * 100 / over).clamp(1, 100)
            }
            Recovery::Probes => 100,
        }
    }

    fn enter(&mut self, now: u64) -> Result<u64, Option<Timestamp>> {
        match self.phase {
            Phase::Closed | Phase::ForcedClosed => return Ok(self.period),
            Phase::Disabled => return Ok(UNCOUNTED),
            Phase::ForcedOpen => return Err(None),
            Phase::Open if !self.is_after(self.opened_at, now) => {
                return Err(Some(at(self.opened_at).saturating_add(self.open_time())));
            }
            Phase::Open => {
                self.go(Phase::Probing, false);
                (self.free, self.needed) = (self.rule.probes(), self.rule.probes());
            }
            Phase::Probing if self.free > 0 => {}
            Phase::Probing if !self.is_after(self.probed_at, now) => return Err(None),
            Phase::Probing => {
                self.period += 1;
                self.free = self.needed;
            }
            Phase::Ramping => {
                self.shares += self.share(now);
                if self.shares / 100 == self.passed {
                    return Err(None);
                }
                self.passed += 1;
                return Ok(self.period);
            }
        }
        self.free -= 1;
        self.probed_at = now;
        Ok(self.period)
    }

    fn give_back(&mut self, period: u64) {
        if self.phase == Phase::Probing && period == self.period {
            self.free += 1;
        }
    }

    fn end(&mut self, period: u64, bad: bool, now: u64) {
        if period == UNCOUNTED {
            return;
        }
        self.results.push((now, bad));
        if period != self.period {
            return;
        }
        match self.phase {
            Phase::Closed if self.trips(now) => self.open(now),
            Phase::Probing if bad => self.open(now),
            Phase::Probing if self.needed > 1 => self.needed -= 1,
            Phase::Probing if self.rule.recovery() == Recovery::Probes => self.close_well(),
            Phase::Probing => {
                self.ramped_at = now;
                (self.shares, self.passed) = (0, 0);
                self.ramp.clear();
                self.go(Phase::Ramping, false);
            }
            Phase::Ramping => {
                self.ramp.push(bad);
                let n_bad = self.ramp.iter().map(|bad| u32::from(*bad)).sum();
                let (is_over, n) = (self.share(now) == 100, u32::try_from(self.ramp.len()).unwrap());
                if (is_over || n >= self.rule.min_calls()) && self.is_too_bad(n_bad, n) {
                    self.open(now);
                } else if is_over {
                    self.close_well();
                }
            }
            _ => {}
        }
    }

    fn close_well(&mut self) {
        self.doublings = 0;
        self.close(false);
    }

    fn put(&mut self, phase: Phase) {
        if self.phase != phase {
            self.doublings = 0;
            self.go(phase, true);
        }
    }

    /// The verdicts in the window, bad and all.
    fn sample(&self, now: u64) -> (u32, u32) {
        if self.phase == Phase::Disabled {
            return (0, 0);
        }
        let inside: Vec<_> = match self.rule.window() {
            BreakerWindow::Time { interval, n_buckets } => {
                let bucket = u64::try_from((interval / n_buckets).as_millis()).unwrap();
                let inside = |time: u64| time / bucket + u64::from(n_buckets) > now / bucket;
                self.results.iter().filter(|(time, _)| inside(*time)).collect()
            }
            BreakerWindow::Calls(n) => self.results.iter().rev().take(n as usize).collect(),
        };
        let n_bad = inside.iter().filter(|(_, bad)| *bad).count();
        (u32::try_from(n_bad).unwrap(), u32::try_from(inside.len()).unwrap())
    }

    fn trips(&self, now: u64) -> bool {
        let (bad, calls) = self.sample(now);
        calls >= self.rule.min_calls() && self.is_too_bad(bad, calls)
    }

    fn is_too_bad(&self, bad: u32, calls: u32) -> bool {
        match self.rule.strategy() {
            Strategy::ErrorRatio { ratio } => {
                let share = f64::from(bad) / f64::from(calls);
                share > ratio || ratio >= 1.0 && share >= 1.0
            }
            Strategy::ErrorCount { count } => bad > count,
            Strategy::SlowRatio { .. } => unreachable!("not asked for"),
        }
    }
}

fn rule() -> impl proptest::strategy::Strategy<Value = BreakerRule> {
    let strategy = prop_oneof![
        select(vec![0.0, 0.3, 0.5, 1.0]).prop_map(|ratio| BreakerRule::error_ratio(ratio).unwrap()),
        (0..3_u32).prop_map(BreakerRule::error_count),
    ];
    let window = prop_oneof![
        select(vec![(50, 1), (100, 2), (1_000, 10)]).prop_map(|(time, n)| Err((ms(time), n))),
        (4..9_u32).prop_map(Ok),
    ];
    let open = (select(vec![1, 40, 200]), proptest::option::of(select(vec![200, 1_000])));
    let recovery = proptest::option::of(select(vec![1, 30, 500]));
    (strategy, window, 1..5_u32, open, 1..4_u32, recovery).prop_map(
        |(rule, window, min_calls, (open, longest), probes, ramp)| {
            let rule = rule.with_min_calls(min_calls).unwrap().with_probes(probes).unwrap();
            let rule = rule.open_for(ms(open)).unwrap();
            let rule = longest.map_or(rule, |longest| rule.with_max_open(ms(longest)).unwrap());
            let ramp = ramp.map_or(Recovery::Probes, |over| Recovery::Ramp { over: ms(over) });
            let rule = rule.with_recovery(ramp).unwrap();
            match window {
                Err((time, n_buckets)) => rule.with_window(time, n_buckets).unwrap(),
                Ok(calls) => rule.with_window_calls(calls).unwrap(),
            }
        },
    )
}

#[derive(Clone, Debug)]
enum Act {
    Wait(u64),
    Enter,
    /// Of one in flight: with a verdict, and a bad one, or without.
    End(Index, Option<bool>),
    Put(Phase),
    Reset,
}

fn acts() -> impl proptest::strategy::Strategy<Value = Vec<Act>> {
    let wait = prop_oneof![Just(0), 1..8_u64, 10..60_u64, 150..250_u64, 900..1_200_u64];
    let verdict = prop_oneof![5 => Just(Some(false)), 5 => Just(Some(true)), 1 => Just(None)];
    let act = prop_oneof![
        20 => wait.prop_map(Act::Wait),
        40 => Just(Act::Enter),
        30 => (any::<Index>(), verdict).prop_map(|(which, verdict)| Act::End(which, verdict)),
        1 => select(vec![Phase::ForcedOpen, Phase::ForcedClosed, Phase::Disabled]).prop_map(Act::Put),
        2 => Just(Act::Reset),
    ];
    vec(act, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_breaker_does_what_its_docs_say_by_traffic_and_by_hand(rule in rule(), acts in acts()) {
        let (breaker, mut model) = (Breaker::new(id(), rule, None, at(0)), Model::new(rule));
        let (mut now, mut running, mut told) = (0, vec![], vec![]);
        for act in acts {
            match act {
                Act::Wait(time) => now += time,
                Act::Enter => {
                    let looked = breaker.peek(at(now)).map_err(|refusal| refusal.until);
                    let expected = model.enter(now);
                    prop_assert_eq!(looked, expected.map(drop));
                    let answer = breaker.enter(at(now)).map_err(|refusal| refusal.until);
                    let answer = answer.map(|(generation, moved)| {
                        told.extend(moved);
                        running.push(generation);
                        generation
                    });
                    prop_assert_eq!(answer, expected);
                }
                Act::End(..) if running.is_empty() => {}
                Act::End(which, None) => {
                    let generation = running.swap_remove(which.index(running.len()));
                    breaker.give_back(generation);
                    model.give_back(generation);
                }
                Act::End(which, Some(bad)) => {
                    let generation = running.swap_remove(which.index(running.len()));
                    told.extend(breaker.end(generation, 0, bad, at(now)));
                    model.end(generation, bad, now);
                }
                Act::Put(phase) => {
                    told.extend(breaker.put(phase));
                    model.put(phase);
                }
                Act::Reset => {
                    told.extend(breaker.reset(at(now)));
                    model.doublings = 0;
                    model.close(true);
                }
            }
            let figures = breaker.figures(at(now));
            prop_assert_eq!(figures.state, model.phase.shown());
            let (bad, calls) = model.sample(now);
            prop_assert_eq!((figures.sample.bad, figures.sample.calls), (bad, calls));
            let share = (model.phase == Phase::Ramping).then(|| model.share(now));
            prop_assert_eq!(figures.share.map(u64::from), share);
        }
        prop_assert_eq!(told, model.moves);
    }
}

#[test]
fn what_a_hand_has_put_outlives_a_change_of_the_window_and_sequences_go_on() {
    let rule = BreakerRule::error_count(1).with_min_calls(1).unwrap();
    let other = rule.with_window_calls(10).unwrap();
    let breaker = Breaker::new(id(), rule, None, at(0));
    let forced = breaker.force_open().unwrap();
    assert_eq!((forced.to, forced.sequence), (BreakerState::ForcedOpen, 1));

    let successor = Breaker::new(id(), other, Some(&breaker), at(5));
    assert_eq!(successor.state(), BreakerState::ForcedOpen);
    assert!(successor.reset(at(5)).unwrap().sequence > 1);
    let generation = successor.enter(at(5)).unwrap().0;
    assert_eq!(successor.end(generation, 0, true, at(5)), None);
    assert_eq!(successor.end(generation, 0, true, at(5)).unwrap().to, BreakerState::Open);
    assert_eq!(Breaker::new(id(), rule, Some(&successor), at(5)).state(), BreakerState::Closed);
}
