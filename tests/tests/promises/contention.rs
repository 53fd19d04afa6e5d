//! Admission is exact: of calls that come at once from eight threads, as many pass as the limit says, and not one more
//! or less, burst after burst.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use leap_runtime::{Entry, Registry, RuleSet, SystemRule, guarded};

use crate::{Answer, Bench, ms};

const THREADS: usize = 8;
const BURSTS: usize = 300;
/// Calls of each thread in a burst.
const CALLS: usize = 50;

/// How many calls of each burst passed. What passed is kept until the burst is over; then the clock moves on by
/// `pause_ms`.
fn bursts<T>(bench: &Bench, pause_ms: u64, call: impl Fn(&Registry) -> Option<T> + Sync) -> Vec<usize> {
    let (barrier, passed) = (Barrier::new(THREADS), AtomicUsize::new(0));
    let mut totals = vec![];
    std::thread::scope(|scope| {
        let bursts = || {
            let mut totals = vec![];
            for _ in 0..BURSTS {
                barrier.wait();
                let kept: Vec<T> =
                    (0..CALLS).filter_map(|_| bench.registry.scope(|| call(&bench.registry))).collect();
                passed.fetch_add(kept.len(), Ordering::Relaxed);
                barrier.wait();
                drop(kept);
                if barrier.wait().is_leader() {
                    bench.clock.advance(ms(pause_ms));
                    totals.push(passed.swap(0, Ordering::Relaxed));
                }
            }
            totals
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(bursts)).collect();
        for thread in threads {
            totals.extend(thread.join().unwrap());
        }
    });
    totals
}

fn passed(answer: Answer) -> Option<()> {
    answer.ok()
}

#[guarded("promises.exact", qps = 100)]
fn exact() -> Answer {
    Ok(())
}

/// A second after a burst its permits have left. Of a call that was held up between its commit and its note in the log the
/// time is noted by another, a microsecond late.
const LATER_MS: u64 = 1_001;

#[test]
fn a_limit_per_second_lets_exactly_so_many_through_in_300_of_300_bursts() {
    let bench = Bench::new();
    assert_eq!(bursts(&bench, LATER_MS, |_| passed(exact())), [100; BURSTS]);
    let totals = *bench.registry.stats("promises.exact").unwrap().totals();
    assert_eq!((totals.passed(), totals.blocked()), (30_000, 90_000));
}

#[guarded("promises.strict", qps = 100, precision = strict)]
fn strict() -> Answer {
    Ok(())
}

#[guarded("promises.as_sentinel", qps = 100, precision = sentinel, buckets = 2)]
fn as_sentinel() -> Answer {
    Ok(())
}

#[test]
fn so_does_one_in_buckets() {
    assert_eq!(bursts(&Bench::new(), 1_010, |_| passed(strict())), [100; BURSTS]);
    assert_eq!(bursts(&Bench::new(), 1_000, |_| passed(as_sentinel())), [100; BURSTS]);
}

#[guarded("promises.hot.exact", hot(key = user, qps = 100))]
fn hot(user: u32) -> Answer {
    let _ = user;
    Ok(())
}

#[test]
fn so_does_the_limit_of_a_key() {
    // So many are counted in ten buckets, and leave with the last of them.
    assert_eq!(bursts(&Bench::new(), 1_100, |_| passed(hot(42))), [100; BURSTS]);
}

#[guarded("promises.one_by_one", qps = 1_000_000, behavior = throttle, burst = 100, max_wait_ms = 0)]
fn one_by_one() -> Answer {
    Ok(())
}

#[test]
fn so_does_the_burst_of_a_throttle() {
    assert_eq!(bursts(&Bench::new(), 1_000, |_| passed(one_by_one())), [100; BURSTS]);
}

#[guarded("promises.at_once", max_concurrency = 100)]
fn at_once() -> Answer {
    Ok(())
}

#[test]
fn a_limit_on_calls_in_flight_is_reached_and_never_exceeded() {
    let bench = Bench::new();
    // The attribute brings the rule along; entries by name can be kept until the end of the burst.
    bench.registry.scope(at_once).unwrap();
    let keep = |registry: &Registry| -> Option<Entry> { registry.enter("promises.at_once").ok() };
    assert_eq!(bursts(&bench, 0, keep), [100; BURSTS]);
    let stats = bench.registry.stats("promises.at_once").unwrap();
    assert_eq!((stats.in_flight(), stats.second().peak_in_flight()), (0, Some(100)));
}

#[test]
fn the_systems_limits_are_reached_and_never_exceeded() {
    let rules = RuleSet::new().system(SystemRule::concurrency(100));
    let keep = |registry: &Registry| registry.enter_with("promises.kept").inbound().enter().ok();
    assert_eq!(bursts(&Bench::with(rules), 0, keep), [100; BURSTS]);
    let rules = RuleSet::new().system(SystemRule::qps(100.0).unwrap());
    let end = |registry: &Registry| registry.enter_with("promises.ended").inbound().enter().ok().map(drop);
    assert_eq!(bursts(&Bench::with(rules), LATER_MS, end), [100; BURSTS]);
}

#[guarded("promises.probes", error_count = 0, min_calls = 1, open_ms = 1_000, probes = 3)]
fn failing() -> Answer {
    Err(crate::AppError::Down)
}

#[test]
fn a_half_open_breaker_lets_exactly_its_probes_through() {
    let bench = Bench::new();
    assert!(bench.registry.scope(failing).is_err());
    bench.at(1_000);
    // Kept, then cancelled: their slots are back for the next burst.
    let keep = |registry: &Registry| registry.enter("promises.probes").ok();
    assert_eq!(bursts(&bench, 0, keep), [3; BURSTS]);
}
