//! The table under every schedule of two or three threads: at a cap of one value, a value that comes may take another
//! one's gate away, or share the overflow gate with it.

use std::cell::Cell;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;

use loom::model::Builder;
use loom::thread;

use super::table::Taken as TakenOfOne;
use super::*;
use crate::key::ToKey;
use crate::sync::AtomicU32;

/// Values, by number; hashed to themselves, so that every run is alike.
const KEYS: usize = 3;

struct World {
    table: Table,
    limits: Arc<Limits>,
    max_keys: u32,
    /// What is in flight of each value.
    inside: [AtomicU32; KEYS],
    /// What passed of each value, by its reading in µs. Not in the model's view.
    passes: StdMutex<Vec<(usize, u64)>>,
    /// The latest reading of anybody.
    now: StdMutex<u64>,
}

impl World {
    fn new(rule: &HotRule) -> Self {
        Self {
            table: Table::new(),
            limits: Arc::new(Limits::new(rule, None)),
            max_keys: rule.max_keys(),
            inside: Default::default(),
            passes: StdMutex::default(),
            now: StdMutex::default(),
        }
    }

    fn take(&self, value: usize, now: Timestamp) -> Option<TakenOfOne> {
        self.take_with(value, now, &|| Timestamp::from_micros(*self.now.lock().unwrap()))
    }

    fn take_with(&self, value: usize, now: Timestamp, reading: &Reading<'_>) -> Option<TakenOfOne> {
        let (key, hash) = (value.to_key(), value as u64);
        let ask = Ask {
            key: &key,
            hash,
            n: 1,
            n_named: 1,
            limits: &self.limits,
            is_exception: false,
            generation: 0,
            max_keys: self.max_keys,
        };
        self.table.take(&ask, now, now, reading).ok()
    }

    /// A call from its entry to its end, if it passes.
    fn enter_and_exit(&self, value: usize, limit: u32) {
        if let Some(taken) = self.take(value, Timestamp::ZERO) {
            let inside = self.inside[value].fetch_add(1, Relaxed);
            assert!(inside < limit, "{} of value {value} in flight", inside + 1);
            thread::yield_now();
            self.inside[value].fetch_sub(1, Relaxed);
            drop(taken);
        }
    }

    /// A call by a reading of `us`, which is taken here.
    fn pass_at(&self, value: usize, us: u64) {
        {
            let mut now = self.now.lock().unwrap();
            *now = us.max(*now);
        }
        thread::yield_now();
        // Who reads the clock again, because a gate was taken away by a later reading, goes by that.
        let mine = Cell::new(us);
        let reading = || {
            mine.set(*self.now.lock().unwrap());
            Timestamp::from_micros(mine.get())
        };
        if self.take_with(value, Timestamp::from_micros(us), &reading).is_some() {
            self.passes.lock().unwrap().push((value, mine.get()));
        }
    }
}

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Each thread's calls, as values, in order; all of limit 1.
fn in_flight(preemptions: usize, max_keys: u32, threads: &'static [&'static [usize]]) {
    check(preemptions, move || {
        let rule = HotRule::concurrency("k", 1).unwrap().with_max_keys(max_keys).unwrap();
        let world = StdArc::new(World::new(&rule));
        let spawned: Vec<_> = threads[1..]
            .iter()
            .map(|values| {
                let world = StdArc::clone(&world);
                thread::spawn(move || values.iter().for_each(|value| world.enter_and_exit(*value, 1)))
            })
            .collect();
        threads[0].iter().for_each(|value| world.enter_and_exit(*value, 1));
        spawned.into_iter().for_each(|thread| thread.join().unwrap());

        assert_eq!(world.table.in_overflow(), (0, 0), "all is back");
        for value in 0..KEYS {
            assert_eq!(world.table.in_flight(&value.to_key(), value as u64).unwrap_or(0), 0);
            assert!(world.take(value, Timestamp::ZERO).is_some(), "value {value} passes again");
        }
        assert!(world.table.n_keys() <= max_keys);
    });
}

#[test]
fn a_value_that_takes_a_place_races_a_call_and_an_end_of_the_one_that_has_it() {
    in_flight(3, 1, &[&[0, 0], &[1]]);
}

#[test]
fn two_calls_of_one_value_race_one_that_takes_its_place() {
    in_flight(2, 1, &[&[0], &[0], &[1]]);
}

#[test]
fn two_values_share_the_overflow_gate_and_get_places() {
    in_flight(2, 1, &[&[0, 1], &[1, 2], &[2]]);
}

/// At a cap of one value, by their own readings: no interval holds more than the limit of a value.
fn in_window(
    preemptions: usize,
    rule: fn() -> HotRule,
    limit: usize,
    threads: &'static [&'static [(usize, u64)]],
) {
    const INTERVAL: u64 = 10;
    check(preemptions, move || {
        let rule = rule().per(Duration::from_micros(INTERVAL)).unwrap().with_max_keys(1).unwrap();
        let world = StdArc::new(World::new(&rule));
        let spawned: Vec<_> = threads[1..]
            .iter()
            .map(|calls| {
                let world = StdArc::clone(&world);
                thread::spawn(move || calls.iter().for_each(|(value, us)| world.pass_at(*value, *us)))
            })
            .collect();
        threads[0].iter().for_each(|(value, us)| world.pass_at(*value, *us));
        spawned.into_iter().for_each(|thread| thread.join().unwrap());

        let passes = world.passes.lock().unwrap();
        for (value, last) in passes.iter() {
            let inside =
                passes.iter().filter(|(other, us)| other == value && us <= last && us + INTERVAL > *last);
            assert!(inside.count() <= limit, "more than {limit}: {passes:?}");
        }
    });
}

#[test]
fn a_window_holds_while_its_gate_is_taken_away_and_made_anew() {
    in_window(3, || HotRule::qps("k", 1.0).unwrap(), 1, &[&[(0, 100), (0, 115)], &[(1, 112)]]);
}

#[test]
fn a_late_reading_finds_no_gate_that_forgot() {
    in_window(2, || HotRule::qps("k", 1.0).unwrap(), 1, &[&[(0, 100)], &[(0, 109)], &[(1, 111)]]);
}

#[test]
fn a_window_holds_over_the_overflow_gate() {
    in_window(2, || HotRule::qps("k", 1.0).unwrap(), 1, &[&[(0, 100), (1, 101)], &[(1, 108), (1, 112)]]);
}
