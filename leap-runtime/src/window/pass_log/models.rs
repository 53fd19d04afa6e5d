//! The log under every schedule of two or three threads: by their own clock readings, no interval ever
//! holds too many.

use std::sync::{Arc as StdArc, Mutex as StdMutex};

use loom::{
    model::Builder,
    sync::{Arc, Mutex},
    thread,
};

use super::*;

const START: u64 = 1_000;

#[derive(Clone, Copy)]
enum Call {
    /// Asks for `n` permits by a reading at µs `at`.
    Ask { at: u64, n: u64 },
    /// Takes `n` without asking.
    Charge { n: u64 },
}

fn ask(at: u64) -> Call {
    Call::Ask { at, n: 1 }
}

/// What really happened, outside of the model's view.
#[derive(Default)]
struct Truth {
    /// The latest clock reading of anybody: what a fresh reading shows.
    now: u64,
    /// The readings of the permits that were asked for, and let through.
    passes: Vec<u64>,
}

#[derive(Clone)]
struct World {
    total: Arc<AtomicU64>,
    truth: StdArc<StdMutex<Truth>>,
}

impl World {
    fn new(total: u64) -> Self {
        Self { total: Arc::new(AtomicU64::new(total)), truth: StdArc::default() }
    }

    fn reading(&self) -> Timestamp {
        Timestamp::from_micros(self.truth.lock().unwrap().now)
    }

    /// A call as the admission makes it; rules are `(limit, interval in µs)`.
    fn call(&self, log: &PassLog, call: Call, rules: &[(u64, u64)]) {
        match call {
            Call::Ask { at, n } => {
                {
                    let mut truth = self.truth.lock().unwrap();
                    truth.now = truth.now.max(at);
                }
                thread::yield_now();
                if self.admit(log, at, n, rules) {
                    self.truth.lock().unwrap().passes.extend((0..n).map(|_| at));
                }
            }
            Call::Charge { n } => {
                let before = self.total.fetch_add(n, AcqRel);
                let reading = self.reading();
                thread::yield_now();
                log.record(&self.total, before, n, reading);
            }
        }
    }

    fn admit(&self, log: &PassLog, at: u64, n: u64, rules: &[(u64, u64)]) -> bool {
        let now = Timestamp::from_micros(at);
        let mut passed = self.total.load(Acquire);
        'again: loop {
            for &(limit, interval) in rules {
                match log.ask(&self.total, passed, n, limit, interval * 1_000, now, &|| self.reading()) {
                    Answer::Fits => {}
                    Answer::Full { .. } | Answer::Never => return false,
                    Answer::Stale => {
                        passed = self.total.load(Acquire);
                        continue 'again;
                    }
                }
            }
            match self.total.compare_exchange(passed, passed + n, AcqRel, Acquire) {
                Ok(_) => break,
                Err(found) => passed = found,
            }
        }
        log.record(&self.total, passed, n, now);
        true
    }

    fn assert_never_over(&self, rules: &[(u64, u64)]) {
        let passes = &self.truth.lock().unwrap().passes;
        for &(limit, interval) in rules {
            for last in passes {
                let inside = passes.iter().filter(|&time| time <= last && time + interval > *last).count();
                assert!(inside as u64 <= limit, "more than {limit} per {interval}: {passes:?}");
            }
        }
    }
}

fn builder(preemptions: usize) -> Builder {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model
}

/// Threads make their calls, each in order; no rule is ever broken, and every committed permit is in the
/// total.
fn never_over(rules: &'static [(u64, u64)], preemptions: usize, total: u64, calls: &[&[Call]]) {
    let calls: Vec<Vec<Call>> = calls.iter().map(|calls| calls.to_vec()).collect();
    builder(preemptions).check(move || {
        let capacity = rules.iter().map(|&(limit, _)| limit).max().unwrap();
        let log = Arc::new(PassLog::new(capacity, total, Timestamp::from_micros(START)));
        let world = World::new(total);
        let mut threads: Vec<_> = calls
            .iter()
            .cloned()
            .map(|calls| {
                let (log, world) = (Arc::clone(&log), world.clone());
                move || calls.into_iter().for_each(|call| world.call(&log, call, rules))
            })
            .collect();
        // The last of them is this one: a thread less to schedule.
        let here = threads.pop().unwrap();
        let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
        here();
        for thread in threads {
            thread.join().unwrap();
        }
        world.assert_never_over(rules);
        let newest = log.number(world.total.load(Relaxed));
        for number in newest + 1 - log.len()..=newest {
            assert!(log.time(number).is_some(), "the time of {number} was lost, the last is {newest}");
        }
        let charged: u64 = calls
            .iter()
            .flatten()
            .map(|call| match call {
                Call::Charge { n } => *n,
                Call::Ask { .. } => 0,
            })
            .sum();
        let passes = world.truth.lock().unwrap().passes.len() as u64;
        assert_eq!(world.total.load(Relaxed), total + passes + charged, "a permit was lost or doubled");
    });
}

#[test]
fn one_per_interval() {
    never_over(&[(1, 10)], 5, 0, &[&[ask(1_100), ask(1_110)], &[ask(1_101), ask(1_111)]]);
}

#[test]
fn two_per_interval_with_unwritten_permits() {
    never_over(&[(2, 10)], 5, 0, &[&[ask(1_100), ask(1_109), ask(1_112)], &[ask(1_105), ask(1_110)]]);
}

#[test]
fn late_readers() {
    never_over(&[(1, 10)], 3, 0, &[&[ask(1_100)], &[ask(1_120)], &[ask(1_111)]]);
}

#[test]
fn three_threads() {
    never_over(&[(2, 10)], 2, 0, &[&[ask(1_100), ask(1_111)], &[ask(1_104)], &[ask(1_108)]]);
}

#[test]
fn two_rules_of_different_intervals() {
    never_over(&[(1, 5), (2, 20)], 5, 0, &[&[ask(1_100), ask(1_106), ask(1_120)], &[ask(1_104), ask(1_111)]]);
}

#[test]
fn several_permits_at_once() {
    let pair = |at| Call::Ask { at, n: 2 };
    never_over(&[(3, 10)], 5, 0, &[&[pair(1_100), pair(1_111)], &[ask(1_104), pair(1_112)]]);
}

#[test]
fn laps_that_wrap() {
    // Four permits before the lap, of one number each, runs over its 16 bits.
    let total = (1 << 16) - 2 - 2;
    never_over(
        &[(1, 10)],
        4,
        total,
        &[&[ask(1_100), ask(1_120), ask(1_140), ask(1_160)], &[ask(1_110), ask(1_150)]],
    );
}

#[test]
fn a_charge_between_calls() {
    never_over(&[(1, 10)], 5, 0, &[&[ask(1_100), ask(1_111)], &[Call::Charge { n: 1 }, ask(1_112)]]);
}

#[test]
fn a_charge_of_more_than_a_lap() {
    never_over(&[(2, 10)], 5, 0, &[&[ask(1_100), ask(1_111)], &[Call::Charge { n: 5 }, ask(1_112)]]);
}

#[test]
fn a_log_that_is_lengthened_under_way() {
    const RULES: &[(u64, u64)] = &[(1, 10)];
    builder(2).check(|| {
        // Swapped as a plan is: a call keeps the log that it found.
        let plan = Arc::new(Mutex::new(Arc::new(PassLog::new(1, 0, Timestamp::from_micros(START)))));
        let world = World::new(0);
        let caller = |calls: &'static [u64]| {
            let (plan, world) = (Arc::clone(&plan), world.clone());
            thread::spawn(move || {
                for &at in calls {
                    let log = Arc::clone(&plan.lock().unwrap());
                    world.call(&log, ask(at), RULES);
                }
            })
        };
        let (first, second) = (caller(&[1_100, 1_111]), caller(&[1_105]));
        let old = Arc::clone(&plan.lock().unwrap());
        let new = Arc::new(old.successor(2, world.total.load(Acquire), 0, world.reading()));
        *plan.lock().unwrap() = Arc::clone(&new);
        new.fill(&world.total, &|| world.reading());
        first.join().unwrap();
        second.join().unwrap();
        world.assert_never_over(RULES);
    });
}
