//! Admission under every schedule of two or three threads: nothing is lost or doubled, and no window ever holds too
//! many, by the calls' own readings.

use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::time::Duration;

use loom::model::Builder;
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;
use crate::rule::{Behavior, RuleKind};

/// When the windows are made, in µs.
const START: u64 = 1_000;

/// A rule of so many permits per interval (in µs): kept exactly, or strictly in so many buckets.
#[derive(Clone, Copy, PartialEq)]
enum Limited {
    Exact { limit: u32, interval: u64 },
    Strict { limit: u32, interval: u64, n_buckets: u32 },
}

use Limited::{Exact, Strict};

impl Limited {
    fn limit(self) -> u64 {
        let (Exact { limit, .. } | Strict { limit, .. }) = self;
        limit.into()
    }

    fn interval(self) -> u64 {
        let (Exact { interval, .. } | Strict { interval, .. }) = self;
        interval
    }

    /// Whether it is the same rule, or the same with a lower limit.
    fn is_at_most(self, other: Self) -> bool {
        match (self, other) {
            (Exact { limit, interval }, Exact { limit: above, interval: same }) => {
                limit <= above && interval == same
            }
            _ => self == other,
        }
    }

    fn rule(self) -> FlowRule {
        let (Exact { limit, .. } | Strict { limit, .. }) = self;
        let rule = FlowRule::new(limit.into(), Behavior::Reject).unwrap();
        let rule = rule.per(Duration::from_micros(self.interval())).unwrap();
        match self {
            Exact { .. } => rule.with_precision(Precision::Exact).unwrap(),
            Strict { n_buckets, .. } => {
                rule.with_buckets(n_buckets).unwrap().with_precision(Precision::Strict).unwrap()
            }
        }
    }
}

type Rules = &'static [Limited];

#[derive(Clone, Copy)]
enum Call {
    /// Asks for `n` permits by a reading at µs `at`.
    Ask { at: u64, n: u64 },
    /// Takes `n` without asking, at `at` or later.
    Charge { at: u64, n: u64 },
    /// Asks as `Ask` does, takes nothing.
    Peek { at: u64 },
    /// Asks for 1 permit at `at`, and takes a place if it is refused.
    Priority { at: u64 },
}

use Call::{Charge, Peek, Priority};

const fn ask(at: u64) -> Call {
    Call::Ask { at, n: 1 }
}

const fn pair(at: u64) -> Call {
    Call::Ask { at, n: 2 }
}

/// Permits that were let through.
#[derive(Clone, Copy, Debug)]
struct Pass {
    n: u64,
    at: u64,
    /// The latest readings that the resource had surely seen, and can have seen, when it committed.
    seen: (u64, u64),
    /// Which rules decided.
    plan: usize,
}

/// What really happened, outside of the model's view.
#[derive(Default)]
struct Truth {
    /// The latest clock reading of anybody: what a fresh reading shows.
    now: u64,
    /// The latest reading of a call that was decided.
    seen: u64,
    passes: Vec<Pass>,
    /// The tickets of places, and when their calls passed.
    placed: Vec<(u64, u64)>,
    /// Permits charged, and the reading before: the log has them at that moment or later.
    charges: Vec<(u64, u64)>,
}

#[derive(Clone)]
struct World {
    /// Swapped as a plan is: a call keeps what it found.
    windows: Arc<Mutex<(usize, StdArc<Windows>)>>,
    total: Arc<AtomicU64>,
    truth: StdArc<StdMutex<Truth>>,
}

fn windows(rules: Rules, previous: &Windows, total: &AtomicU64, reading: &Reading<'_>) -> Windows {
    let rules = rules.iter().enumerate();
    let rules = rules.map(|(position, rule)| (RuleId::new(None, RuleKind::Flow, position), rule.rule()));
    Windows::after(&rules.collect::<Vec<_>>(), previous, &[], total, reading)
}

impl World {
    fn new(rules: Rules) -> Self {
        let total = AtomicU64::new(0);
        let windows = windows(rules, &Windows::default(), &total, &|| Timestamp::from_micros(START));
        Self {
            windows: Arc::new(Mutex::new((0, StdArc::new(windows)))),
            total: Arc::new(total),
            truth: StdArc::default(),
        }
    }

    fn plan(&self) -> (usize, StdArc<Windows>) {
        let standing = self.windows.lock().unwrap();
        (standing.0, StdArc::clone(&standing.1))
    }

    fn reading(&self) -> Timestamp {
        Timestamp::from_micros(self.truth.lock().unwrap().now)
    }

    fn call(&self, call: Call) {
        let (plan, windows) = self.plan();
        let (Call::Ask { at, .. } | Charge { at, .. } | Peek { at } | Priority { at }) = call;
        let seen = {
            let mut truth = self.truth.lock().unwrap();
            truth.now = truth.now.max(at);
            truth.seen
        };
        // Between the reading and what is done with it, anything may happen.
        thread::yield_now();
        let now = Timestamp::from_micros(at);
        match call {
            Call::Ask { n, .. } => {
                let overdrawn = self.overdrawn(at);
                if windows.admit(&self.total, now, n, &|| self.reading()).is_ok() {
                    assert!(!overdrawn, "a charge was overlooked at {at}");
                    let mut truth = self.truth.lock().unwrap();
                    let seen = (seen.max(at), truth.now);
                    truth.passes.push(Pass { n, at, seen, plan });
                }
            }
            Charge { n, .. } => {
                assert_eq!(windows.charge(&self.total, n, &|| self.reading()), n);
                self.truth.lock().unwrap().charges.push((at, n));
            }
            Peek { .. } => drop(windows.peek(&self.total, now, 1, &|| self.reading())),
            Priority { .. } => self.call_with_priority(&windows, plan, at, seen),
        }
        let mut truth = self.truth.lock().unwrap();
        truth.seen = truth.seen.max(at);
    }

    fn call_with_priority(&self, windows: &Windows, plan: usize, at: u64, seen: u64) {
        let passed = |at: u64| {
            let mut truth = self.truth.lock().unwrap();
            let seen = (seen.max(at), truth.now);
            truth.passes.push(Pass { n: 1, at, seen, plan });
        };
        let now = Timestamp::from_micros(at);
        if windows.admit(&self.total, now, 1, &|| self.reading()).is_ok() {
            return passed(at);
        }
        let Some(mut place) = windows.take_place(&self.total, now, 1, &|| self.reading()) else { return };
        let mut until = place.until();
        // Whoever was faster without a place had asked before it was taken: that is one call at most.
        for _ in 0..2 {
            let at = until.as_nanos().div_ceil(1_000);
            {
                let mut truth = self.truth.lock().unwrap();
                truth.now = truth.now.max(at);
            }
            let ticket = place.held.as_ref().map(|held| held.ticket);
            let now = Timestamp::from_micros(at);
            match windows.admit_placed(&mut place, &self.total, now, 1, &|| self.reading()) {
                Ok(_) => {
                    passed(at);
                    self.truth.lock().unwrap().placed.extend(ticket.map(|ticket| (ticket, at)));
                    return;
                }
                Err(refusal) => until = refusal.until.unwrap(),
            }
        }
    }

    /// Whether charges that are over leave no room at `at`, whatever else passed.
    fn overdrawn(&self, at: u64) -> bool {
        let charges = &self.truth.lock().unwrap().charges;
        PLANS_WITH_CHARGES.iter().any(|rule| {
            let inside = charges.iter().filter(|(time, _)| time + rule.interval() > at);
            inside.map(|(_, n)| n).sum::<u64>() >= rule.limit()
        })
    }

    fn load(&self, rules: Rules) {
        let (plan, previous) = self.plan();
        let new = StdArc::new(windows(rules, &previous, &self.total, &|| self.reading()));
        *self.windows.lock().unwrap() = (plan + 1, StdArc::clone(&new));
        new.catch_up(&self.total, &|| self.reading());
    }

    fn assert_kept(&self, plans: &[Rules]) {
        let truth = self.truth.lock().unwrap();
        let in_truth = |passes: &[Pass]| passes.iter().map(|pass| pass.n).sum::<u64>();
        let charged: u64 = truth.charges.iter().map(|(_, n)| n).sum();
        assert_eq!(self.total.load(Ordering::Relaxed), in_truth(&truth.passes) + charged, "lost or doubled");
        let mut placed = truth.placed.clone();
        placed.sort_unstable();
        assert!(placed.is_sorted_by_key(|(_, at)| at), "out of turn: {placed:?}");
        let (_, windows) = self.plan();
        assert_eq!(windows.placed.load(Ordering::Relaxed), 0, "a place is lost");
        let rules: Vec<Limited> = plans.iter().copied().flatten().copied().collect();
        for rule in &rules {
            if rules.iter().any(|other| rule != other && rule.is_at_most(*other)) {
                continue;
            }
            // In a later plan a lower limit may stand in its place, and mix with it.
            let stands_in = |plan: &[Limited]| plan.iter().any(|other| other.is_at_most(*rule));
            let under_it = truth.passes.iter().filter(|pass| stands_in(plans[pass.plan]));
            let under_it: Vec<Pass> = under_it.copied().collect();
            match rule {
                Exact { .. } => {
                    let times: Vec<_> = under_it.iter().map(|pass| (pass.at, pass.n)).collect();
                    assert!(fits(&times, *rule), "more than {}: {under_it:?}", rule.limit());
                }
                Strict { .. } => {
                    assert!(
                        stands(&mut vec![], &under_it, *rule),
                        "more than {}: {under_it:?}",
                        rule.limit()
                    );
                }
            }
        }
    }
}

/// Whether no span of the rule's interval holds more than its limit.
fn fits(times: &[(u64, u64)], rule: Limited) -> bool {
    times.iter().all(|(last, _)| {
        let inside = times.iter().filter(|(time, _)| time <= last && time + rule.interval() > *last);
        inside.map(|(_, n)| n).sum::<u64>() <= rule.limit()
    })
}

/// Whether the passes can be given moments between the readings that had surely been seen and those that can have
/// been, so that the rule holds.
fn stands(given: &mut Vec<(u64, u64)>, passes: &[Pass], rule: Limited) -> bool {
    let Some((pass, rest)) = passes.split_first() else { return fits(given, rule) };
    let mut moments = vec![pass.seen.0, pass.seen.1];
    moments.dedup();
    moments.into_iter().any(|moment| {
        given.push((moment, pass.n));
        let stands = stands(given, rest, rule);
        given.pop();
        stands
    })
}

/// Rules that stand in every model with charges.
const PLANS_WITH_CHARGES: Rules = &[TWO_EXACT];

const ONE_EXACT: Limited = Exact { limit: 1, interval: 10 };
const TWO_EXACT: Limited = Exact { limit: 2, interval: 10 };
const TWO_EXACT_LONG: Limited = Exact { limit: 2, interval: 30 };
const ONE_STRICT: Limited = Strict { limit: 1, interval: 10, n_buckets: 1 };
const ONE_STRICT_IN_TWO: Limited = Strict { limit: 1, interval: 10, n_buckets: 2 };
const TWO_STRICT_IN_ONE: Limited = Strict { limit: 2, interval: 10, n_buckets: 1 };
const TWO_STRICT: Limited = Strict { limit: 2, interval: 20, n_buckets: 2 };

/// Threads make their calls, each in order, while the main thread loads `plans` after the first; no rule is broken.
fn never_over(preemptions: usize, plans: &'static [Rules], calls: &[&[Call]]) {
    never_over_after(&[], preemptions, plans, calls);
}

/// As [`never_over`], after calls that were made before.
fn never_over_after(before: &[Call], preemptions: usize, plans: &'static [Rules], calls: &[&[Call]]) {
    let before = before.to_vec();
    let calls: Vec<Vec<Call>> = calls.iter().map(|calls| calls.to_vec()).collect();
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let world = World::new(plans[0]);
        before.iter().for_each(|call| world.call(*call));
        let threads = calls.clone().into_iter().map(|calls| {
            let world = world.clone();
            thread::spawn(move || calls.into_iter().for_each(|call| world.call(call)))
        });
        let threads: Vec<_> = threads.collect();
        for rules in &plans[1..] {
            world.load(rules);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        world.assert_kept(plans);
    });
}

#[test]
fn a_ring_across_a_turn() {
    never_over(2, &[&[ONE_STRICT]], &[&[ask(1_105), ask(1_125)], &[ask(1_109), ask(1_121)]]);
}

#[test]
fn a_ring_across_an_idle_gap() {
    never_over(2, &[&[ONE_STRICT_IN_TWO]], &[&[ask(1_105), ask(1_203)], &[ask(1_201), ask(1_216)]]);
}

#[test]
fn a_ring_and_three_threads_across_a_turn() {
    let calls: &[&[Call]] = &[&[ask(1_109)], &[ask(1_121)], &[ask(1_122)]];
    never_over_after(&[ask(1_101)], 1, &[&[TWO_STRICT_IN_ONE]], calls);
}

#[test]
fn a_ring_and_three_threads_across_an_idle_gap() {
    never_over_after(&[ask(1_105)], 1, &[&[ONE_STRICT]], &[&[ask(1_109)], &[ask(1_131)], &[ask(1_132)]]);
}

#[test]
fn a_log_across_an_interval() {
    never_over(2, &[&[ONE_EXACT]], &[&[ask(1_105), ask(1_115)], &[ask(1_109), ask(1_116)]]);
}

#[test]
fn a_log_across_an_idle_gap() {
    never_over(2, &[&[TWO_EXACT]], &[&[ask(1_105), ask(1_201)], &[ask(1_200), ask(1_202)]]);
}

#[test]
fn a_log_and_three_threads() {
    let calls: &[&[Call]] = &[&[ask(1_106)], &[ask(1_114)], &[ask(1_115)]];
    never_over_after(&[ask(1_105)], 1, &[&[TWO_EXACT]], calls);
}

#[test]
fn a_log_and_a_ring_across_a_turn() {
    never_over(2, &[&[ONE_EXACT, TWO_STRICT]], &[&[ask(1_105), ask(1_116)], &[ask(1_109), ask(1_121)]]);
}

#[test]
fn a_log_and_a_ring_across_an_idle_gap() {
    never_over(2, &[&[ONE_STRICT, TWO_EXACT_LONG]], &[&[ask(1_105), ask(1_201)], &[ask(1_109), ask(1_203)]]);
}

#[test]
fn a_log_and_a_ring_and_three_threads() {
    let calls: &[&[Call]] = &[&[ask(1_109)], &[ask(1_115)], &[ask(1_121)]];
    never_over_after(&[ask(1_105)], 1, &[&[ONE_EXACT, TWO_STRICT_IN_ONE]], calls);
}

#[test]
fn two_rules_of_one_log() {
    never_over(
        2,
        &[&[ONE_EXACT, TWO_EXACT_LONG]],
        &[&[ask(1_105), ask(1_115), ask(1_135)], &[ask(1_109), ask(1_125)]],
    );
}

#[test]
fn two_rules_of_one_log_and_three_threads() {
    let calls: &[&[Call]] = &[&[ask(1_115)], &[ask(1_125)], &[ask(1_135)]];
    never_over_after(&[ask(1_105)], 1, &[&[ONE_EXACT, TWO_EXACT_LONG]], calls);
}

#[test]
fn several_permits_at_once() {
    never_over(2, &[&[TWO_EXACT, TWO_STRICT]], &[&[pair(1_105), ask(1_125)], &[ask(1_109), pair(1_115)]]);
}

#[test]
fn looking_takes_nothing() {
    never_over(
        2,
        &[&[ONE_EXACT, TWO_STRICT]],
        &[&[ask(1_105), ask(1_116)], &[Peek { at: 1_106 }, Peek { at: 1_117 }]],
    );
}

#[test]
fn a_charge_against_calls() {
    never_over(2, &[&[TWO_EXACT]], &[&[ask(1_105), ask(1_116)], &[Charge { at: 1_107, n: 2 }, ask(1_115)]]);
}

#[test]
fn a_charge_of_more_than_the_log_against_calls() {
    never_over(2, &[&[TWO_EXACT]], &[&[ask(1_105), ask(1_116)], &[Charge { at: 1_107, n: 5 }, ask(1_118)]]);
}

#[test]
fn a_charge_against_a_call_in_a_log_and_a_ring() {
    never_over(2, &[&[TWO_EXACT, TWO_STRICT]], &[&[ask(1_105), ask(1_119)], &[Charge { at: 1_107, n: 2 }]]);
}

#[test]
fn a_plan_that_keeps_its_memory() {
    never_over(
        2,
        &[&[ONE_EXACT, TWO_STRICT], &[TWO_STRICT, ONE_EXACT]],
        &[&[ask(1_105), ask(1_121)], &[ask(1_109)]],
    );
}

#[test]
fn a_plan_that_lengthens_the_log() {
    never_over(2, &[&[ONE_EXACT], &[ONE_EXACT, TWO_EXACT_LONG]], &[&[ask(1_105), ask(1_116)], &[ask(1_109)]]);
}

#[test]
fn a_plan_that_starts_a_log_beside_a_ring() {
    never_over(2, &[&[ONE_STRICT], &[ONE_STRICT, TWO_EXACT]], &[&[ask(1_105), ask(1_121)], &[ask(1_109)]]);
}

#[test]
fn a_plan_that_starts_a_ring_beside_a_log() {
    never_over(2, &[&[ONE_EXACT], &[ONE_EXACT, TWO_STRICT]], &[&[ask(1_105), ask(1_116)], &[ask(1_109)]]);
}

#[test]
fn the_first_rule_of_a_busy_resource() {
    never_over(2, &[&[], &[ONE_EXACT]], &[&[ask(1_105), ask(1_112)], &[ask(1_109)]]);
}

#[test]
fn a_limit_that_is_lowered() {
    // For as long as calls of the old plan are under way, the old limit is what holds.
    never_over(2, &[&[TWO_EXACT], &[ONE_EXACT]], &[&[ask(1_105), ask(1_116)], &[ask(1_109)]]);
}

#[test]
fn priority_calls_pass_in_the_order_of_their_places() {
    let calls: &[&[Call]] = &[&[Priority { at: 1_107 }], &[Priority { at: 1_108 }]];
    never_over_after(&[ask(1_100), ask(1_105)], 2, &[&[TWO_EXACT]], calls);
}

#[test]
fn priority_calls_against_one_without_a_place() {
    let calls: &[&[Call]] = &[&[Priority { at: 1_106 }], &[Priority { at: 1_107 }], &[ask(1_111)]];
    never_over_after(&[ask(1_100), ask(1_105)], 1, &[&[TWO_EXACT]], calls);
}

#[test]
fn a_priority_call_in_a_ring_against_one_without_a_place() {
    let calls: &[&[Call]] = &[&[Priority { at: 1_105 }], &[ask(1_106), ask(1_125)]];
    never_over_after(&[ask(1_101)], 2, &[&[ONE_STRICT_IN_TWO]], calls);
}

#[test]
fn a_priority_call_while_its_rule_is_replaced() {
    let calls: &[&[Call]] = &[&[Priority { at: 1_106 }], &[ask(1_112)]];
    never_over_after(&[ask(1_101)], 1, &[&[ONE_EXACT], &[TWO_STRICT, ONE_EXACT]], calls);
}
