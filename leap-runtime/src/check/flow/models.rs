//! The throttle's word under every schedule of two or three threads: no turn is given to two calls, none starts too close
//! to the one before, and nobody waits too long.

use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::time::Duration;

use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::rule::{Behavior, Precision};

const COST_MS: u64 = 10;
const MAX_WAIT_MS: u64 = 25;

/// When a call asks, in ms, for how many permits, and whether it goes before it starts.
#[derive(Clone, Copy)]
struct Call {
    at: u64,
    n: u64,
    is_cancelled: bool,
}

const fn call(at: u64) -> Call {
    Call { at, n: 1, is_cancelled: false }
}

const fn cancelled(at: u64) -> Call {
    Call { at, n: 1, is_cancelled: true }
}

const fn pair(at: u64) -> Call {
    Call { at, n: 2, is_cancelled: false }
}

fn throttle() -> FlowRule {
    let max_wait = Duration::from_millis(MAX_WAIT_MS);
    // Two permits at once are the most that an interval has room for.
    let rule = FlowRule::new(2.0, Behavior::Throttle { max_wait }).unwrap();
    rule.per(Duration::from_millis(2 * COST_MS)).unwrap()
}

/// Threads make their calls, each in order. `pays_before` where a call keeps its distance from the one before by its
/// own permits, and not by that one's.
fn kept(rules: &'static [fn() -> FlowRule], pays_before: bool, calls: &[&[Call]]) {
    let calls: Vec<Vec<Call>> = calls.iter().map(|calls| calls.to_vec()).collect();
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let total = Arc::new(AtomicU64::new(0));
        let rules = rules.iter().enumerate();
        let rules = rules.map(|(i, rule)| (RuleId::new(None, RuleKind::Flow, i), rule()));
        let now = || Timestamp::from_millis(100);
        let flow = Flow::new(&rules.collect::<Vec<_>>(), &Flow::default(), &total, &now);
        let flow = Arc::new(flow);
        let starts = StdArc::new(StdMutex::new(vec![]));
        let threads = calls.clone().into_iter().map(|calls| {
            let (flow, total, starts) = (flow.clone(), total.clone(), starts.clone());
            thread::spawn(move || {
                for Call { at, n, is_cancelled } in calls {
                    let now = Timestamp::from_millis(at);
                    let mut turns = Turns::default();
                    match flow.take_turns(&total, now, now, n, &mut turns, &|| now).ok() {
                        Some(Some(start)) => {
                            assert!(start.since(now) <= Duration::from_millis(MAX_WAIT_MS));
                            if is_cancelled {
                                thread::yield_now();
                                flow.give_back(&turns);
                            } else {
                                starts.lock().unwrap().push((start, n));
                            }
                        }
                        Some(None) => starts.lock().unwrap().push((now, n)),
                        None => {}
                    }
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut starts = starts.lock().unwrap().clone();
        starts.sort_unstable();
        for pair in starts.windows(2) {
            let [(before, n_before), (start, n)] = pair else { unreachable!() };
            let n = if pays_before { n } else { n_before };
            assert!(start.since(*before) >= Duration::from_millis(n * COST_MS), "{starts:?}");
        }
    });
}

fn as_sentinel() -> FlowRule {
    throttle().with_precision(Precision::Sentinel).unwrap()
}

#[test]
fn calls_that_come_together() {
    let calls: &[&[Call]] = &[&[call(100), call(104)], &[call(100), pair(103)]];
    kept(&[throttle], false, calls);
    kept(&[as_sentinel], true, calls);
}

#[test]
fn a_call_that_is_cancelled_while_others_queue() {
    let calls: &[&[Call]] = &[&[call(100), cancelled(101)], &[call(102)], &[cancelled(101), call(103)]];
    kept(&[throttle], false, calls);
    kept(&[as_sentinel], true, calls);
}

#[test]
fn cancelled_calls_behind_one_another() {
    let calls: &[&[Call]] = &[&[pair(100)], &[cancelled(100), call(111)], &[cancelled(101), call(112)]];
    kept(&[throttle], false, calls);
}

#[test]
fn late_readings() {
    kept(&[throttle], false, &[&[call(120), call(119)], &[call(101), cancelled(100), call(130)]]);
}

#[test]
fn two_throttles_at_once() {
    fn slower() -> FlowRule {
        throttle().per(Duration::from_millis(3 * COST_MS)).unwrap()
    }
    kept(&[throttle, slower], false, &[&[call(100), call(104)], &[call(100), cancelled(103)]]);
}

/// How many of `n` calls pass at `at` ms.
fn burst(flow: &Flow, total: &AtomicU64, at: u64, n: usize) -> usize {
    let now = Timestamp::from_millis(at);
    (0..n).filter(|_| flow.windows().admit(total, now, 1, &|| now).is_ok()).count()
}

/// Who comes first in a second works out its tokens, and the others find them: as one thread would.
#[test]
fn a_warm_up_across_a_turn() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(|| {
        let behavior = Behavior::WarmUp { period: Duration::from_secs(2), cold_factor: 4.0 };
        let rules = [(RuleId::new(None, RuleKind::Flow, 0), FlowRule::new(8.0, behavior).unwrap())];
        let flow =
            |total: &AtomicU64| Flow::new(&rules, &Flow::default(), total, &|| Timestamp::from_millis(1_000));
        let (total, alone) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        let (shared, reference) = (Arc::new(flow(&total)), flow(&alone));
        assert_eq!(burst(&shared, &total, 1_000, 3), 2);
        let threads = [2_000, 2_001].map(|at| {
            let (flow, total) = (shared.clone(), total.clone());
            thread::spawn(move || assert_eq!(burst(&flow, &total, at, 1), 1))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(burst(&reference, &alone, 1_000, 3), 2);
        assert_eq!(burst(&reference, &alone, 2_001, 2), 2);
        let warmer = burst(&reference, &alone, 3_001, 9);
        assert_eq!(warmer, 3);
        assert_eq!(burst(&shared, &total, 3_001, 9), warmer);
    });
}
