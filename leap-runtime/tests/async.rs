//! Guarded futures: they end once, when they are ready or dropped. Time is tokio's, paused.
#![cfg(feature = "tokio")]
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::future::{Future, pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{R, at, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    Blocked, BreakerRule, BreakerState, Cause, InRegistry, IsolationRule, ManualClock, Outcome, Precision,
    Registry, RuleSet, TokioClock, current, guarded,
};
use tokio::time::{Instant, advance, sleep, sleep_until, timeout};

/// A registry on tokio's time; to be made inside a runtime.
fn on_tokios_clock(rules: RuleSet) -> Registry {
    let registry = Registry::builder().clock(TokioClock::new()).build();
    registry.load(rules).unwrap();
    registry
}

/// Success, exception, ignored, cancelled, in flight.
fn ends(registry: &Registry) -> [u64; 5] {
    let stats = registry.stats(R).unwrap();
    let totals = stats.totals();
    [totals.success(), totals.exception(), totals.ignored(), totals.cancelled(), stats.in_flight()]
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn slow_futures_trip_a_breaker_as_slow_functions_do() {
    // C14
    let slow = BreakerRule::slow_ratio(ms(100), 1.0).unwrap().with_min_calls(5).unwrap();
    let slow = slow.with_window(ms(10_000), 1).unwrap();
    let rules = RuleSet::new().breaker(R, slow).breaker("sync", slow);
    let registry = on_tokios_clock(rules);
    let states = || {
        ["sync", R].map(|name| {
            let breaker = registry.stats(name).unwrap().breakers()[0].clone();
            (breaker.state(), breaker.calls(), breaker.bad_calls())
        })
    };
    for n in 0..5 {
        assert_eq!(states(), [(BreakerState::Closed, n, n); 2]);
        let sync = registry.enter("sync").unwrap();
        let entry = registry.enter_async(R).await.unwrap();
        entry
            .run_async(async {
                sleep(ms(1_000)).await;
                Ok::<_, ()>(())
            })
            .await
            .unwrap();
        sync.end(Outcome::Success);
    }
    assert_eq!(states(), [(BreakerState::Open, 5, 5); 2]);
    assert!(registry.enter_async(R).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn futures_dropped_by_a_timeout_are_cancelled_and_in_flight_no_longer() {
    // F01
    let registry = on_tokios_clock(RuleSet::new().isolation(R, IsolationRule::new(100)));
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let entry = registry.enter(R).unwrap();
            tokio::spawn(timeout(
                ms(10),
                entry.run_async(async {
                    sleep(ms(100)).await;
                    Ok::<_, ()>(())
                }),
            ))
        })
        .collect();
    assert_eq!(ends(&registry), [0, 0, 0, 0, 100]);
    for call in calls {
        assert!(call.await.unwrap().is_err());
    }
    let stats = registry.stats(R).unwrap();
    assert_eq!(ends(&registry), [0, 0, 0, 100, 0]);
    assert_eq!((stats.totals().completed(), stats.second().rt_avg(), stats.percentiles()), (100, None, None));
    assert_eq!(passes(&registry, R, 100), 100);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_inside_the_body_is_the_bodys_own_error() {
    let registry = on_tokios_clock(RuleSet::new());
    let entry = registry.enter(R).unwrap();
    let result = entry.run_async(timeout(ms(10), sleep(ms(100)))).await;
    assert!(result.is_err());
    assert_eq!(ends(&registry), [0, 1, 0, 0, 0]);
    assert_eq!(registry.stats(R).unwrap().second().rt_avg().map(|rt| rt.as_millis()), Some(10));
}

static POLLED: AtomicUsize = AtomicUsize::new(0);

#[guarded("async.blocked", qps = 1)]
async fn count(argument: Arc<()>) -> Result<(), Blocked> {
    assert_eq!(Arc::strong_count(&argument), 2);
    POLLED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_blocked_body_is_never_polled_and_its_arguments_are_dropped() {
    // F02
    let registry = on_tokios_clock(RuleSet::new());
    let argument = Arc::new(());
    for n in 0..5 {
        let result = count(Arc::clone(&argument)).in_registry(&registry).await;
        assert_eq!(result.is_ok(), n == 0);
        assert_eq!(Arc::strong_count(&argument), 1);
    }
    assert_eq!(POLLED.load(Ordering::Relaxed), 1);
    let stats = registry.stats("async.blocked").unwrap();
    assert_eq!((stats.totals().success(), stats.totals().blocked(), stats.totals().exception()), (1, 4, 0));
}

#[tokio::test(start_paused = true)]
async fn an_async_call_enters_when_it_is_polled_and_not_when_it_is_made() {
    let registry = on_tokios_clock(RuleSet::new());
    drop(count(Arc::new(())).in_registry(&registry));
    assert!(registry.stats("async.blocked").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_when_its_future_is_ready_however_long_that_is_kept() {
    // F10
    let registry = on_tokios_clock(RuleSet::new().isolation(R, IsolationRule::new(1)));
    let entry = registry.enter(R).unwrap();
    let mut future = pin!(entry.run_async(async {
        sleep(ms(5)).await;
        Ok::<_, ()>(())
    }));
    assert_eq!(future.as_mut().await, Ok(()));
    assert_eq!(ends(&registry), [1, 0, 0, 0, 0]);
    assert!(registry.enter(R).is_ok());
    advance(Duration::from_secs(10)).await;
    assert_eq!(ends(&registry), [1, 0, 0, 1, 0]);
    assert_eq!(registry.stats(R).unwrap().minute().rt_max().map(|rt| rt < ms(10)), Some(true));
}

#[test]
fn a_probe_whose_future_is_dropped_leaves_its_slot_to_the_next_call() {
    // C02
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(1_000)).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().breaker(R, breaker));
    registry.enter(R).unwrap().end(Outcome::Exception);
    clock.set(at(1_000));
    let mut probe = Box::pin(registry.enter(R).unwrap().run_async(pending::<Result<(), ()>>()));
    assert!(poll_once(&mut probe).is_pending());
    assert!(registry.enter(R).is_err());
    clock.set(at(1_100));
    drop(probe);
    clock.set(at(1_101));
    let mut probe = Box::pin(registry.enter(R).unwrap().run_async(ready(Ok::<_, ()>(()))));
    assert!(poll_once(&mut probe).is_ready());
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
}

#[test]
fn a_future_that_is_never_polled_is_cancelled_when_it_is_dropped() {
    let (registry, _) = registry();
    let future = registry.enter(R).unwrap().run_async(ready(Ok::<_, ()>(())));
    assert_eq!(ends(&registry), [0, 0, 0, 0, 1]);
    drop(future);
    assert_eq!(ends(&registry), [0, 0, 0, 1, 0]);
}

#[test]
fn each_output_counts_as_what_it_is() {
    let (registry, _) = registry();
    let enter = || registry.enter(R).unwrap();
    assert!(poll_once(&mut pin!(enter().run_async(ready(Ok::<_, ()>(1))))).is_ready());
    assert!(poll_once(&mut pin!(enter().run_async(ready(Err::<(), _>(2))))).is_ready());
    assert!(poll_once(&mut pin!(enter().run_async_with(ready(3), |_| Outcome::Ignored))).is_ready());
    assert!(poll_once(&mut pin!(enter().run_async_with(ready(4), |_| panic!("no opinion")))).is_ready());
    assert_eq!(ends(&registry), [1, 2, 1, 0, 0]);
    assert_eq!(registry.contained_panics(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_future_ends_the_call_at_once() {
    let registry = on_tokios_clock(RuleSet::new());
    let entry = registry.enter(R).unwrap();
    let call = entry.run_async(async {
        sleep(ms(5)).await;
        panic!("after a while");
        #[expect(unreachable_code, reason = "says what the body would return")]
        Ok::<(), ()>(())
    });
    assert!(tokio::spawn(call).await.unwrap_err().is_panic());
    assert_eq!(ends(&registry), [0, 1, 0, 0, 0]);

    let entry = registry.enter(R).unwrap();
    let mut kept =
        Box::pin(entry.run_async(std::future::poll_fn(|_| -> Poll<Result<(), ()>> { panic!("at once") })));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll_once(&mut kept)));
    assert!(panic.is_err());
    assert_eq!(ends(&registry), [0, 2, 0, 0, 0], "although the future lives on");
    drop(kept);
    assert_eq!(ends(&registry), [0, 2, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn the_response_time_is_the_whole_time_and_not_that_of_the_polls() {
    let registry = on_tokios_clock(RuleSet::new());
    let entry = registry.enter(R).unwrap();
    let call = entry.run_async(async {
        for _ in 0..3 {
            advance(ms(100)).await;
        }
        Ok::<_, ()>(())
    });
    call.await.unwrap();
    assert_eq!(registry.stats(R).unwrap().second().rt_max(), Some(ms(300)));
}

#[test]
fn futures_that_take_turns_on_one_thread_mark_only_their_own_calls() {
    let (registry, _) = registry();
    let call = |name: &str, fails: bool| {
        let entry = registry.enter(name).unwrap();
        let mut turn = 0;
        Box::pin(entry.run_async(std::future::poll_fn(move |_| {
            turn += 1;
            if fails && turn == 1 {
                current().fail();
            }
            if turn == 3 { Poll::Ready(Ok::<_, ()>(())) } else { Poll::Pending }
        })))
    };
    let (mut fails, mut succeeds) = (call(R, true), call("other", false));
    for _ in 0..2 {
        assert!(poll_once(&mut fails).is_pending() && poll_once(&mut succeeds).is_pending());
    }
    current().fail();
    assert!(poll_once(&mut fails).is_ready() && poll_once(&mut succeeds).is_ready());
    assert_eq!(ends(&registry), [0, 1, 0, 0, 0], "the mark of the first poll is kept");
    assert_eq!(registry.stats("other").unwrap().totals().success(), 1);
}

#[test]
fn what_a_future_charges_counts_from_its_next_await() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(10.0)));
    let mut turn = 0;
    let mut call = Box::pin(registry.enter(R).unwrap().run_async(std::future::poll_fn(move |_| {
        turn += 1;
        current().charge(turn);
        if turn == 2 { Poll::Ready(Ok::<_, ()>(())) } else { Poll::Pending }
    })));
    assert!(poll_once(&mut call).is_pending());
    assert_eq!(ends(&registry), [0, 0, 0, 0, 2]);
    assert!(poll_once(&mut call).is_ready());
    assert_eq!(ends(&registry), [4, 0, 0, 0, 0]);
    assert_eq!(passes(&registry, R, 10), 6);
}

#[test]
fn what_a_cancelled_body_drops_is_still_part_of_its_call() {
    struct CleanUp(Registry);
    impl Drop for CleanUp {
        fn drop(&mut self) {
            assert_eq!(self.0.stats(R).unwrap().in_flight(), 1);
        }
    }
    let (registry, _) = registry();
    let clean_up = CleanUp(registry.clone());
    let mut call = Box::pin(registry.enter(R).unwrap().run_async(async move {
        let _clean_up = clean_up;
        pending::<Result<(), ()>>().await
    }));
    assert!(poll_once(&mut call).is_pending());
    drop(call);
    assert_eq!(ends(&registry), [0, 0, 0, 1, 0]);
}

#[guarded("async.scoped", fallback = busy)]
async fn scoped() -> bool {
    tokio::task::yield_now().await;
    nested().await
}

#[guarded("async.nested", fallback = busy)]
async fn nested() -> bool {
    true
}

fn busy(_: Blocked) -> bool {
    false
}

#[tokio::test]
async fn a_future_carries_its_registry_through_every_poll_and_a_spawned_task_does_not() {
    let (registry, _) = registry();
    let other = Registry::builder().clock(ManualClock::new()).build();
    let both = async { tokio::join!(scoped().in_registry(&registry), scoped().in_registry(&other)) };
    assert_eq!(both.await, (true, true));
    for registry in [&registry, &other] {
        for name in ["async.scoped", "async.nested"] {
            assert_eq!(registry.stats(name).unwrap().totals().success(), 1);
        }
    }
    let spawned =
        async { tokio::spawn(async { leap_runtime::registry().resources().count() }).await.unwrap() };
    let n_global = spawned.in_registry(&registry).await;
    assert_eq!(n_global, 0, "no test in this file calls through the global registry");
    let carried = async { tokio::spawn(scoped().in_registry(&leap_runtime::registry())).await.unwrap() };
    assert!(carried.in_registry(&registry).await);
    assert_eq!(registry.stats("async.scoped").unwrap().totals().success(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guarded_futures_move_between_threads() {
    let (registry, _) = registry_with(RuleSet::new().isolation(R, IsolationRule::new(64)));
    let calls: Vec<_> = (0..64)
        .map(|n| {
            let registry = registry.clone();
            tokio::spawn(async move {
                let entry = registry.enter_with(R).permits(1).enter_async().await?;
                let body = async {
                    for _ in 0..10 {
                        tokio::task::yield_now().await;
                    }
                    Ok::<_, Blocked>(n)
                };
                entry.run_async(body).await
            })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap(), n);
    }
    assert_eq!(ends(&registry), [64, 0, 0, 0, 0]);
}

#[test]
fn a_runtime_ends_at_once_while_a_breaker_is_open_for_an_hour() {
    // C15
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let hour = Duration::from_secs(3_600);
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(hour).unwrap();
    let registry = runtime.block_on(async {
        let registry = on_tokios_clock(RuleSet::new().breaker(R, breaker));
        registry.enter_async(R).await.unwrap().end(Outcome::Exception);
        registry
    });
    let breaker = registry.stats(R).unwrap().breakers()[0].clone();
    assert_eq!((breaker.state(), runtime.metrics().num_alive_tasks()), (BreakerState::Open, 0));
    drop(runtime);
    drop(registry);
}

// --- Calls that wait ---

#[tokio::test(start_paused = true)]
async fn a_window_of_a_minute_lets_its_limit_through_in_the_first_minute_and_not_one_more() {
    // B11
    for precision in [Precision::Exact, Precision::Strict] {
        let rule = qps(1_200.0).per(Duration::from_secs(60)).unwrap().with_precision(precision).unwrap();
        let start = Instant::now();
        let registry = on_tokios_clock(RuleSet::new().flow(R, rule));
        let tasks: Vec<_> = (0..8_u64)
            .map(|n| {
                let registry = registry.clone();
                tokio::spawn(async move {
                    let mut passed = 0;
                    while start.elapsed() < Duration::from_secs(60) {
                        if let Ok(entry) = registry.enter_with(R).permits(10).enter_async().await {
                            passed += entry.permits();
                            entry.end(Outcome::Success);
                        }
                        sleep(ms(300 + n)).await;
                    }
                    passed
                })
            })
            .collect();
        sleep_until(start + ms(59_999)).await;
        assert_eq!(registry.stats(R).unwrap().totals().passed(), 1_200);
        let mut passed = 0;
        for task in tasks {
            passed += task.await.unwrap();
        }
        let late = registry.stats(R).unwrap().totals().passed();
        assert_eq!(passed, late);
        assert!(late >= 1_200 && start.elapsed() >= Duration::from_secs(60), "{precision:?}");
    }
}

#[guarded("async.paced", qps = 10, behavior = throttle, max_wait_ms = 2000)]
async fn paced(argument: Arc<()>) -> Result<usize, Blocked> {
    sleep(ms(7)).await;
    Ok(Arc::strong_count(&argument))
}

#[tokio::test(start_paused = true)]
async fn guarded_futures_wait_their_turn_and_leave_the_executor_to_others() {
    // B19, through the attribute
    let (start, registry) = (Instant::now(), on_tokios_clock(RuleSet::new()));
    let heart = tokio::spawn(async move {
        let mut beats = vec![];
        for _ in 0..100 {
            sleep(ms(10)).await;
            beats.push(start.elapsed().as_millis());
        }
        beats
    });
    let argument = Arc::new(());
    let mut tasks: Vec<_> = (0..10)
        .map(|_| {
            let call = paced(Arc::clone(&argument)).in_registry(&registry);
            tokio::spawn(async move { (call.await.is_ok(), start.elapsed().as_millis()) })
        })
        .collect();
    sleep(ms(350)).await;
    let stats = registry.stats("async.paced").unwrap();
    assert_eq!((stats.waiting(), stats.in_flight(), stats.totals().success()), (6, 0, 4));
    tasks.remove(7).abort();
    for (n, task) in [0, 1, 2, 3, 4, 5, 6, 8, 9].into_iter().zip(tasks) {
        assert_eq!(task.await.unwrap(), (true, 100 * n + 7));
    }
    let beats = heart.await.unwrap();
    assert!(beats.iter().zip(1..).all(|(beat, n)| *beat == 10 * n), "{beats:?}");
    let stats = registry.stats("async.paced").unwrap();
    assert_eq!((stats.totals().success(), stats.totals().cancelled(), stats.waiting()), (9, 1, 0));
    assert_eq!((stats.minute().rt_min(), stats.minute().rt_max()), (Some(ms(7)), Some(ms(7))));
    assert_eq!(Arc::strong_count(&argument), 1);
}

#[tokio::test(start_paused = true)]
async fn a_guarded_future_that_is_dropped_while_it_waits_gives_its_turn_to_the_next() {
    let (start, registry) = (Instant::now(), on_tokios_clock(RuleSet::new()));
    let argument = Arc::new(());
    let call = || paced(Arc::clone(&argument)).in_registry(&registry);
    call().await.unwrap();
    assert!(timeout(ms(50), call()).await.is_err());
    assert_eq!(Arc::strong_count(&argument), 1, "the body never ran, and its argument is dropped");
    call().await.unwrap();
    assert_eq!(start.elapsed(), ms(107), "the turn of 100 ms");
    let stats = registry.stats("async.paced").unwrap();
    assert_eq!((stats.totals().passed(), stats.totals().cancelled(), stats.in_flight()), (3, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_guarded_future_may_be_dropped_at_every_stage() {
    let registry = on_tokios_clock(RuleSet::new());
    let argument = Arc::new(());
    for dropped_after_ms in [0, 1, 50, 99, 100, 101, 106, 107, 150] {
        let before = Instant::now();
        paced(Arc::clone(&argument)).in_registry(&registry).await.unwrap();
        let second = paced(Arc::clone(&argument)).in_registry(&registry);
        let _ = timeout(ms(dropped_after_ms), second).await;
        let stats = registry.stats("async.paced").unwrap();
        assert_eq!((stats.in_flight(), stats.waiting(), Arc::strong_count(&argument)), (0, 0, 1));
        sleep_until(before + Duration::from_secs(1)).await;
    }
    let totals = *registry.stats("async.paced").unwrap().totals();
    assert_eq!(totals.passed(), totals.success() + totals.cancelled());
}

#[guarded("async.queued", max_concurrency = 1, queue_ms = 50)]
async fn queued(time: Duration) -> Result<(), Blocked> {
    sleep(time).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn guarded_futures_queue_in_order_and_those_whose_time_is_over_are_blocked() {
    let (start, registry) = (Instant::now(), on_tokios_clock(RuleSet::new()));
    let call = |time| {
        let call = queued(ms(time)).in_registry(&registry);
        tokio::spawn(async move {
            let result = call.await;
            (result.map_err(|blocked| blocked.cause()), start.elapsed().as_millis())
        })
    };
    let calls = [call(30), call(10), call(100), call(1)];
    let mut ends = vec![];
    for call in calls {
        ends.push(call.await.unwrap());
    }
    assert_eq!(ends, [(Ok(()), 30), (Ok(()), 40), (Ok(()), 140), (Err(Cause::Isolation), 50)]);
    let stats = registry.stats("async.queued").unwrap();
    assert_eq!((stats.in_flight(), stats.queued(), stats.totals().blocked()), (0, 0, 1));
}

#[guarded("async.urgent", qps = 1, priority, fallback = none)]
async fn urgent() -> Option<Instant> {
    Some(Instant::now())
}

fn none(_: Blocked) -> Option<Instant> {
    None
}

#[tokio::test(start_paused = true)]
async fn a_guarded_priority_future_runs_when_its_place_has_come_and_its_fallback_when_there_is_none() {
    let (start, registry) = (Instant::now(), on_tokios_clock(RuleSet::new()));
    let call = || tokio::spawn(urgent().in_registry(&registry));
    let mut ran = vec![];
    for call in [call(), call(), call()] {
        ran.push(call.await.unwrap().map(|at| at - start));
    }
    assert_eq!(ran, [Some(ms(0)), Some(ms(1_000)), None]);
}

#[test]
fn an_async_call_that_would_wait_outside_a_runtime_is_blocked_and_told_why() {
    let registry = Registry::new();
    let mut first = Box::pin(paced(Arc::new(())).in_registry(&registry));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(runtime.block_on(&mut first).is_ok());
    let mut second = Box::pin(paced(Arc::new(())).in_registry(&registry));
    let Poll::Ready(Err(blocked)) = poll_once(&mut second) else { panic!("it waits") };
    assert!(blocked.to_string().contains("there is no timer here to end that"), "{blocked}");
}
