//! The ring under every schedule of two or three threads (loom), and under many random ones of more
//! (shuttle).

use std::sync::{Arc as StdArc, Mutex as StdMutex};

#[cfg(leap_loom)]
use loom::{sync::Arc, thread};
#[cfg(all(leap_shuttle, not(leap_loom)))]
use shuttle::{sync::Arc, thread};

use super::*;

/// Models begin here, in ticks of 1 µs.
const START: u64 = 100;

fn time(tick: u64) -> Timestamp {
    Timestamp::from_micros(START + tick)
}

fn ring(n_buckets: u32, total: u64) -> Ring {
    let interval = Duration::from_micros(n_buckets.into());
    Ring::new(n_buckets, interval, time(0), total).unwrap()
}

/// The tick, counted from the start of the model, at which a call of `n` was let through.
fn admit(ring: &Ring, total: &AtomicU64, now: u64, n: u64, limit: u64, strict: bool) -> Option<u64> {
    let mut passed = total.load(Acquire);
    loop {
        let (answer, at) = ring.ask_at(total, passed, n, limit, strict, time(now));
        match answer {
            Answer::Fits => {}
            Answer::Full { .. } | Answer::Never => return None,
            Answer::Stale => {
                passed = total.load(Acquire);
                continue;
            }
        }
        match total.compare_exchange(passed, passed + n, AcqRel, Acquire) {
            Ok(_) => return Some(at - ring.lap() - START),
            Err(found) => passed = found,
        }
    }
}

#[derive(Clone)]
struct Scene {
    n_buckets: u32,
    limit: u64,
    strict: bool,
    total: u64,
    /// By thread, the ticks at which it calls.
    calls: Vec<Vec<u64>>,
}

impl Scene {
    /// Plays it once. No window, by the ticks at which calls were let through, holds more than the limit,
    /// and nothing is lost.
    fn play(self) {
        let Self { n_buckets, limit, strict, total, calls } = self;
        let last = calls.iter().flatten().copied().max().unwrap();
        let ring = Arc::new(ring(n_buckets, total));
        let passed = Arc::new(AtomicU64::new(total));
        let log = StdArc::new(StdMutex::new(vec![]));
        let mut threads: Vec<_> = calls
            .into_iter()
            .map(|ticks| {
                let (ring, passed, log) = (Arc::clone(&ring), Arc::clone(&passed), StdArc::clone(&log));
                move || {
                    for tick in ticks {
                        if let Some(at) = admit(&ring, &passed, tick, 1, limit, strict) {
                            log.lock().unwrap().push((tick, at));
                        }
                    }
                }
            })
            .collect();
        // The last of them is this one: a thread less to schedule.
        let here = threads.pop().unwrap();
        let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
        here();
        for thread in threads {
            thread.join().unwrap();
        }
        let log = log.lock().unwrap();
        assert_eq!(passed.load(Acquire) - total, log.len() as u64, "a pass was lost or doubled");
        assert!(log.iter().all(|&(asked, at)| (asked..=last).contains(&at)), "out of its time: {log:?}");
        assert_eq!(ring.head.load(Acquire), ring.lap() + START + last, "the ring is not where time is");
        let span = u64::from(n_buckets) + u64::from(strict);
        for &(_, last) in log.iter() {
            let inside = log.iter().filter(|&&(_, at)| at <= last && at + span > last).count();
            assert!(inside as u64 <= limit, "more than {limit} in the window that ends at {last}: {log:?}");
        }
    }
}

/// Threads add one each at their tick, which nobody exceeds: each sees its own add in the last interval,
/// and at the end the window holds exactly what was added at its ticks (all clocks agree) or later.
fn adds_across_a_turn(n_buckets: u32, threads: usize) {
    let array = Arc::new(LeapArray { ring: ring(n_buckets, 0), total: AtomicU64::new(0) });
    array.add(time(0), 5);
    let turned = u64::from(n_buckets);
    let adders = (0..threads).map(|_| {
        let array = Arc::clone(&array);
        thread::spawn(move || {
            array.add(time(turned), 1);
            let sum = array.sum(time(turned));
            assert!(
                (1..=threads as u64).contains(&sum),
                "the old value shows, or our own add does not: {sum}"
            );
        })
    });
    for adder in adders.collect::<Vec<_>>() {
        adder.join().unwrap();
    }
    assert_eq!(array.sum(time(turned)), threads as u64);
    assert_eq!(array.current(time(turned)).count(), threads as u64);
    assert_eq!(array.total(), 5 + threads as u64);
}

#[cfg(leap_loom)]
mod loom_models {
    use super::*;

    fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(model);
    }

    fn never_over(n_buckets: u32, limit: u64, strict: bool, preemptions: usize, calls: &[&[u64]]) {
        let calls = calls.iter().map(|ticks| ticks.to_vec()).collect();
        let scene = Scene { n_buckets, limit, strict, total: 0, calls };
        check(preemptions, move || scene.clone().play());
    }

    #[test]
    fn a_turn() {
        never_over(1, 1, false, 4, &[&[0, 1], &[0, 1]]);
    }

    #[test]
    fn two_buckets() {
        never_over(2, 1, false, 4, &[&[0, 2], &[1, 3]]);
    }

    #[test]
    fn a_strict_window() {
        never_over(1, 1, true, 3, &[&[0, 2], &[1, 3]]);
    }

    #[test]
    fn an_idle_gap() {
        never_over(2, 1, true, 4, &[&[2], &[2, 3]]);
    }

    #[test]
    fn a_gap_of_more_than_a_lap() {
        never_over(1, 1, false, 3, &[&[0, 9], &[9, 10]]);
    }

    #[test]
    fn three_threads_across_a_turn() {
        never_over(1, 2, false, 1, &[&[0, 1], &[1], &[0, 2]]);
    }

    #[test]
    fn three_threads_across_an_idle_gap() {
        never_over(2, 1, true, 1, &[&[3], &[3, 4], &[2]]);
    }

    #[test]
    fn a_base_that_wraps() {
        let calls = vec![vec![0, 1], vec![0, 2]];
        let scene = Scene { n_buckets: 1, limit: 1, strict: false, total: (1 << 32) - 1, calls };
        check(3, move || scene.clone().play());
    }

    #[test]
    fn no_add_of_the_current_tick_is_lost_while_it_turns() {
        check(4, || adds_across_a_turn(1, 2));
    }

    #[test]
    fn no_add_is_lost_while_the_ring_turns_by_several_buckets() {
        check(4, || adds_across_a_turn(2, 2));
    }

    #[test]
    fn a_reader_across_turns_sees_no_more_than_a_window() {
        check(3, || {
            let array = Arc::new(LeapArray { ring: ring(1, 0), total: AtomicU64::new(0) });
            let adder = {
                let array = Arc::clone(&array);
                thread::spawn(move || (0..3).for_each(|tick| array.add(time(tick), 1)))
            };
            // By a clock that is never ahead, so that it files no add later than it was meant.
            let sum = array.sum(time(0));
            let values: u64 = array.values(time(0)).iter().map(Bucket::count).sum();
            // One bucket, one add in each: two are in no window of one bucket.
            assert!(sum <= 1 && values <= 1, "{sum}, {values}");
            adder.join().unwrap();
            assert_eq!(array.sum(time(2)), 1);
        });
    }
}

#[cfg(all(leap_shuttle, not(leap_loom)))]
mod shuttle_models {
    use super::*;

    const ROUNDS: usize = 20_000;

    /// Both schedulers: random ones preempt often, and PCT finds what needs few but well-placed preemptions.
    fn check(model: impl Fn() + Clone + Send + Sync + 'static) {
        shuttle::check_random(model.clone(), ROUNDS);
        shuttle::check_pct(model, ROUNDS, 3);
    }

    fn never_over(n_buckets: u32, limit: u64, strict: bool, calls: &[&[u64]]) {
        let calls = calls.iter().map(|ticks| ticks.to_vec()).collect();
        let scene = Scene { n_buckets, limit, strict, total: (1 << 32) - 2, calls };
        check(move || scene.clone().play());
    }

    #[test]
    fn three_threads_across_turns() {
        never_over(2, 2, false, &[&[0, 1, 2, 3], &[1, 2, 4], &[0, 2, 3, 5]]);
    }

    #[test]
    fn three_threads_across_an_idle_gap() {
        never_over(2, 1, true, &[&[3, 4], &[3, 6], &[2, 7]]);
    }

    #[test]
    fn four_threads_across_gaps_of_more_than_a_lap() {
        never_over(1, 1, false, &[&[0, 9], &[9, 10], &[8, 20], &[10, 21]]);
    }

    #[test]
    fn a_slot_that_is_opened_for_two_laps_at_once() {
        // Of four slots, ticks 1, 5 and 9 share one: who loses it to a lap before has to open it all the same. Loom
        // does not look here: to it the yield before each slot makes threads take turns.
        never_over(1, 1, false, &[&[1], &[5, 6], &[1, 9]]);
    }

    #[test]
    fn late_clocks_beside_one_that_runs_ahead() {
        never_over(3, 2, true, &[&[0, 1, 2, 3], &[0, 1, 2, 3], &[12, 13]]);
    }

    #[test]
    fn no_add_of_the_current_tick_is_lost_while_it_turns() {
        check(|| adds_across_a_turn(1, 3));
        check(|| adds_across_a_turn(3, 3));
    }
}
