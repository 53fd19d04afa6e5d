//! The last calls under every schedule of two or three threads: each result sees exactly those before it.

use std::sync::Arc;

use loom::model::Builder;
use loom::thread;

use super::*;

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

fn sample(calls: u32, bad: u32) -> Sample {
    Sample { calls, bad }
}

/// Runs on threads of their own, each of which counts these results.
fn on_threads<const N: usize>(window: &Arc<LastCalls>, results: [&'static [bool]; N]) -> Vec<Vec<Sample>> {
    let threads = results.map(|results| {
        let window = Arc::clone(window);
        thread::spawn(move || results.iter().map(|bad| window.add(*bad)).collect())
    });
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn results_at_once_are_counted_one_after_another() {
    check(3, || {
        let window = Arc::new(LastCalls::new(3));
        let mut seen: Vec<Sample> =
            on_threads(&window, [&[true], &[true], &[true]]).into_iter().flatten().collect();
        seen.sort_unstable_by_key(|sample| sample.calls);
        assert_eq!(seen, [sample(1, 1), sample(2, 2), sample(3, 3)]);
    });
}

#[test]
fn the_ring_wraps_under_two_threads_without_losing_count() {
    for n in [1, 2] {
        check(3, move || {
            let window = Arc::new(LastCalls::new(n));
            window.add(true);
            on_threads(&window, [&[true, false], &[false, true]]);
            // A lap of known results: whatever is left in the slots was left by exactly these.
            let after: Vec<u32> = (0..n).map(|_| window.add(false).bad).collect();
            assert_eq!(after.last(), Some(&0), "{after:?}");
            (1..=n).for_each(|i| assert_eq!(window.add(true), sample(n, i)));
        });
    }
}

#[test]
fn one_who_is_held_up_for_a_lap_writes_over_nothing() {
    check(2, || {
        let window = Arc::new(LastCalls::new(2));
        window.add(true);
        // Whoever is about to put that one away may find its place taken by a good one. Did it put it there all the same,
        // one bad result too few would be left when its place is taken again.
        on_threads(&window, [&[true], &[false, false, true, true]]);
        assert_eq!([(); 2].map(|()| window.add(true)), [sample(2, 2); 2]);
    });
}

#[test]
fn what_comes_after_a_forgetting_counts_in_full() {
    check(3, || {
        let window = Arc::new(LastCalls::new(2));
        window.add(true);
        let other = Arc::clone(&window);
        let thread = thread::spawn(move || other.add(true));
        while !window.forget(window.mark()) {}
        let after = window.add(true);
        let beside = thread.join().unwrap();
        // Its result came before the forgetting, or between, or after our own.
        let expected =
            [(sample(1, 1), sample(2, 2)), (sample(2, 2), sample(1, 1)), (sample(1, 1), sample(2, 2))];
        assert!(expected.contains(&(after, beside)), "{after:?} {beside:?}");
    });
}
