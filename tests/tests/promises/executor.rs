//! Throttling leaves the executor free. Time is tokio's, paused, on one thread: were that thread ever put to sleep,
//! nothing else would run meanwhile.

use std::time::Duration;

use leap_runtime::{Blocked, InRegistry, Registry, TokioClock, guarded};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::ms;

#[guarded("promises.throttled", qps = 10, behavior = throttle, max_wait_ms = 1_000)]
async fn throttled(start: Instant) -> Result<Duration, Blocked> {
    Ok(start.elapsed())
}

/// A guarded call in a task: when its body ran.
fn spawn(registry: &Registry, start: Instant) -> JoinHandle<Result<Duration, Blocked>> {
    tokio::spawn(throttled(start).in_registry(registry))
}

fn registry() -> Registry {
    Registry::builder().clock(TokioClock::new()).build()
}

/// When each of these tasks ran; none for one that was cancelled.
async fn ran_at(tasks: Vec<JoinHandle<Result<Duration, Blocked>>>) -> Vec<Option<Duration>> {
    let mut ran = vec![];
    for task in tasks {
        ran.push(match task.await {
            Ok(at) => Some(at.unwrap()),
            Err(error) => {
                assert!(error.is_cancelled(), "{error}");
                None
            }
        });
    }
    ran
}

/// A task that wakes every 10 ms for a second, and notes when it does.
fn heartbeat(start: Instant) -> JoinHandle<Vec<Duration>> {
    tokio::spawn(async move {
        let mut beats = vec![];
        for n in 1..=100 {
            sleep_until(start + ms(10) * n).await;
            beats.push(start.elapsed());
        }
        beats
    })
}

/// When it does so in time.
fn beats() -> Vec<Duration> {
    (1..=100).map(|n| ms(10 * n)).collect()
}

// B19
#[tokio::test(start_paused = true)]
async fn calls_that_wait_leave_the_thread_to_a_heartbeat() {
    let (registry, start) = (registry(), Instant::now());
    let heartbeat = heartbeat(start);
    let tasks = (0..10).map(|_| spawn(&registry, start)).collect();
    let slots: Vec<_> = (0..10).map(|n| Some(ms(100 * n))).collect();
    assert_eq!(ran_at(tasks).await, slots);
    assert_eq!(heartbeat.await.unwrap(), beats());
    assert_eq!(registry.stats("promises.throttled").unwrap().totals().blocked(), 0);
}

#[guarded("promises.queued", max_concurrency = 1, queue_ms = 1_000)]
async fn queued(start: Instant) -> Result<Duration, Blocked> {
    let began = start.elapsed();
    sleep(ms(100)).await;
    Ok(began)
}

/// The user of all calls: a literal is refused.
const USER: &str = "ann";

#[guarded("promises.paced_key", hot(key = USER, qps = 10, behavior = throttle, max_wait_ms = 1_000))]
async fn of_one_user(start: Instant) -> Result<Duration, Blocked> {
    Ok(start.elapsed())
}

#[guarded("promises.placed", qps = 1, priority)]
async fn urgent(start: Instant) -> Result<Duration, Blocked> {
    Ok(start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn so_do_calls_that_wait_for_permits_for_a_keys_turn_or_for_a_place() {
    let (registry, start) = (registry(), Instant::now());
    let heartbeat = heartbeat(start);
    let queued = (0..3).map(|_| tokio::spawn(queued(start).in_registry(&registry))).collect();
    let of_one_user = (0..3).map(|_| tokio::spawn(of_one_user(start).in_registry(&registry))).collect();
    let urgent = (0..2).map(|_| tokio::spawn(urgent(start).in_registry(&registry))).collect();
    assert_eq!(ran_at(queued).await, [0, 100, 200].map(|at| Some(ms(at))));
    assert_eq!(ran_at(of_one_user).await, [0, 100, 200].map(|at| Some(ms(at))));
    assert_eq!(ran_at(urgent).await, [0, 1_000].map(|at| Some(ms(at))));
    assert_eq!(heartbeat.await.unwrap(), beats());
}

/// When the tasks run, of which one is cancelled.
fn slots_without(cancelled: usize) -> Vec<Option<Duration>> {
    let slots = (0..10).map(|n| Some(ms(100 * n)));
    slots.enumerate().map(|(n, slot)| slot.filter(|_| n != cancelled)).collect()
}

// B19
#[tokio::test(start_paused = true)]
async fn a_queued_call_that_is_cancelled_delays_nobody_beyond_its_slot() {
    for cancelled in 1..10 {
        for cancelled_at in [1, 50, 99] {
            let (registry, start) = (registry(), Instant::now());
            let tasks: Vec<_> = (0..10).map(|_| spawn(&registry, start)).collect();
            sleep(ms(cancelled_at)).await;
            tasks[cancelled].abort();
            assert_eq!(ran_at(tasks).await, slots_without(cancelled), "{cancelled} at {cancelled_at}ms");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_in_the_queue_leaves_its_slot_to_who_comes_next() {
    let (registry, start) = (registry(), Instant::now());
    let mut tasks: Vec<_> = (0..10).map(|_| spawn(&registry, start)).collect();
    sleep(ms(50)).await;
    tasks[9].abort();
    sleep(ms(1)).await;
    tasks.push(spawn(&registry, start));
    let mut slots: Vec<_> = (0..9).map(|n| Some(ms(100 * n))).collect();
    slots.extend([None, Some(ms(900))]);
    assert_eq!(ran_at(tasks).await, slots);
}
