//! Calls that wait their turn.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use common::waits::{ByClock, Call, Line, Silent, until};
use common::{R, at, call, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    Behavior, Blocked, BreakerRule, BreakerState, Cause, Check, Clock, Ended, Entry, FlowRule, HotRule,
    IsolationRule, ManualClock, Mode, Outcome, Precision, Registry, Rule, RuleSet, Timestamp, Verdict,
    current, guarded,
};

fn throttle(limit: f64, max_wait_ms: u64) -> FlowRule {
    FlowRule::new(limit, Behavior::Throttle { max_wait: ms(max_wait_ms) }).unwrap()
}

fn throttled(limit: f64, max_wait_ms: u64) -> RuleSet {
    RuleSet::new().flow(R, throttle(limit, max_wait_ms))
}

/// Whole milliseconds, of calls that are not blocked.
fn in_ms(waits: Vec<Option<Duration>>) -> Vec<Option<u64>> {
    let ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap();
    waits.into_iter().map(|wait| wait.map(ms)).collect()
}

/// In flight, waiting for their start, passed, cancelled.
fn figures(registry: &Registry) -> [u64; 4] {
    let stats = registry.stats(R).unwrap();
    [stats.in_flight(), stats.waiting(), stats.totals().passed(), stats.totals().cancelled()]
}

// --- How long calls wait ---

#[test]
fn calls_start_one_after_another_as_far_apart_as_the_rate_says() {
    // B04
    let line = Line::new(throttled(10.0, 500));
    assert_eq!(line.waits([1, 1]), [Some(Duration::ZERO), Some(ms(100))]);
    // B02
    let line = Line::new(throttled(0.2, 10_000));
    assert_eq!(in_ms(line.waits([1; 4])), [Some(0), Some(5_000), Some(10_000), None]);
    // B07
    let line = Line::new(throttled(3.0, 20_000));
    let thirds = (0..10).map(|n| Some(Duration::from_nanos(n * 1_000_000_000 / 3)));
    assert_eq!(line.waits([1; 10]), thirds.collect::<Vec<_>>());
    assert_eq!(line.registry.stats(R).unwrap().totals().blocked(), 0);
}

#[test]
fn a_fraction_of_a_call_per_second_is_no_limit_without_a_queue_and_the_error_says_what_is() {
    // B02
    let error = FlowRule::new(0.2, Behavior::Reject).unwrap_err();
    assert!(error.to_string().contains("rate(limit = 1, per_ms = 5000)"), "{error}");
}

#[test]
fn a_pace_above_1000_per_second_is_kept_to_the_part_of_a_millisecond() {
    // B01
    for (rate, passing) in [(2_000_u32, 2_001), (1_500, 1_501)] {
        let line = Line::new(throttled(f64::from(rate), 1_000));
        let waits = line.waits(std::iter::repeat_n(1, 5_000));
        for (n, wait) in (0_u64..).zip(&waits) {
            let exact = Duration::from_nanos(n * 1_000_000_000 / u64::from(rate));
            let is_exact = |wait: Duration| wait.abs_diff(exact) <= Duration::from_nanos(1);
            assert_eq!(wait.map(is_exact), (n < passing).then_some(true), "{rate}: {n} waits {wait:?}");
        }
        let stats = line.registry.stats(R).unwrap();
        assert_eq!(
            (stats.totals().passed(), stats.totals().blocked_by(Cause::Flow)),
            (passing, 5_000 - passing)
        );
    }
}

#[test]
fn two_billion_per_second_block_nobody() {
    // B16
    let hot = HotRule::throttle("user", 2e9, ms(1)).unwrap();
    for rule in [qps(2e9).into(), throttle(2e9, 1).into(), Rule::from(hot)] {
        let registry = Registry::new();
        registry.load(RuleSet::new().rule(R, rule)).unwrap();
        let ask = || registry.enter_with(R).key("user", 7).enter().map(|entry| entry.end(Outcome::Success));
        thread::scope(|scope| {
            let calls = || (0..100_000).filter(|_| ask().is_ok()).count();
            let threads = [scope.spawn(calls), scope.spawn(calls)];
            assert_eq!(threads.map(|thread| thread.join().unwrap()), [100_000; 2]);
        });
        assert_eq!(registry.stats(R).unwrap().totals().blocked(), 0);
    }
    let line = Line::new(throttled(2e9, 1));
    let halves = (0..5).map(|n| Some(Duration::from_nanos(n / 2)));
    assert_eq!(line.waits([1; 5]), halves.collect::<Vec<_>>(), "half a nanosecond apart");
}

#[test]
fn a_pace_may_be_from_one_call_in_a_year_to_two_billion_per_second() {
    for (rate, gap) in [
        (0.01, Duration::from_secs(100)),
        (0.7, Duration::from_nanos(1_428_571_428)),
        (1.0, Duration::from_secs(1)),
        (60.0, Duration::from_nanos(16_666_666)),
        (1_000.0, ms(1)),
        (12_345.0, Duration::from_nanos(81_004)),
        (1e9, Duration::from_nanos(1)),
    ] {
        let line = Line::new(throttled(rate, 200_000));
        assert_eq!(line.waits([1, 1]), [Some(Duration::ZERO), Some(gap)], "{rate}");
    }
    let year = Duration::from_secs(366 * 24 * 60 * 60);
    let rule = throttle(1.0, 0).per(year).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().flow(R, rule));
    assert_eq!(passes(&registry, R, 2), 1);
    // A year in a double is good to some nanoseconds.
    clock.set(Timestamp::ZERO.saturating_add(year).saturating_sub(Duration::from_nanos(50)));
    assert_eq!(passes(&registry, R, 1), 0);
    clock.advance(Duration::from_nanos(50));
    assert_eq!(passes(&registry, R, 2), 1);
}

#[test]
fn with_no_time_to_wait_calls_between_two_turns_are_blocked() {
    // B08
    let (registry, clock) = registry_with(throttled(10.0, 0));
    assert_eq!(passes(&registry, R, 1), 1);
    clock.set(at(50));
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Flow, Some(ms(50))));
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: its next turn has not come, and it does not wait; retry after 50ms"
    );
    clock.set(at(100));
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn the_longest_wait_is_still_waited_and_the_next_call_is_told_when_it_would_be_short_enough() {
    let line = Line::new(throttled(10.0, 200));
    assert_eq!(in_ms(line.waits([1; 3])), [Some(0), Some(100), Some(200)]);
    let blocked = line.registry.enter(R).unwrap_err();
    assert_eq!(blocked.retry_after(), Some(ms(100)));
    line.diary.clock.set(at(99));
    assert_eq!(line.waits([1]), [None]);
    line.diary.clock.set(at(100));
    assert_eq!(line.waits([1]), [Some(ms(200))]);
}

/// Keeps how long each thread was to wait by its last reading before.
#[derive(Debug)]
struct Watch {
    clock: ManualClock,
    waits: Mutex<Vec<Duration>>,
}

thread_local! {
    static READ: Cell<Timestamp> = const { Cell::new(Timestamp::ZERO) };
    static PARKED: Cell<bool> = const { Cell::new(false) };
}

impl Clock for &'static Watch {
    fn now(&self) -> Timestamp {
        READ.set(self.clock.now());
        READ.get()
    }

    fn park_until(&self, until: Timestamp) {
        if !PARKED.replace(true) {
            self.waits.lock().unwrap().push(until.since(READ.get()));
        }
        self.clock.park_until(until);
    }
}

#[test]
fn nobody_waits_for_longer_than_it_may_however_the_clock_moves_meanwhile() {
    // B03
    let watch: &'static Watch =
        Box::leak(Box::new(Watch { clock: ManualClock::new(), waits: Mutex::default() }));
    let registry = Registry::builder().clock(watch).build();
    registry.load(throttled(1_000.0, 200)).unwrap();
    let passed = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..1_000).map(|_| scope.spawn(|| call(&registry, R, Outcome::Success))).collect();
        until(|| {
            watch.clock.advance(Duration::from_micros(100));
            threads.iter().all(thread::ScopedJoinHandle::is_finished)
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|passed| *passed).count()
    });
    let waits = watch.waits.lock().unwrap();
    assert!(waits.iter().all(|wait| *wait <= ms(200)), "{:?}", waits.iter().max());
    assert!(passed >= 201, "{passed}");
    assert_eq!(figures(&registry), [0, 0, passed as u64, 0]);
}

/// A clock that stands at 0 until it has been read once after `ready`, and then is far ahead.
#[derive(Debug, Default)]
struct Rushing {
    ready: AtomicBool,
    has_gone: AtomicBool,
    parkings: AtomicU64,
}

impl Clock for &'static Rushing {
    fn now(&self) -> Timestamp {
        if self.has_gone.load(Ordering::Relaxed) {
            return at(5_000);
        }
        self.has_gone.store(self.ready.load(Ordering::Relaxed), Ordering::Relaxed);
        at(0)
    }

    fn park_until(&self, _: Timestamp) {
        self.parkings.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_turn_that_has_come_before_anybody_slept_is_no_wait() {
    // B05
    let clock: &'static Rushing = Box::leak(Box::default());
    let registry = Registry::builder().clock(clock).build();
    registry.load(throttled(10.0, 500)).unwrap();
    assert_eq!(passes(&registry, R, 1), 1);
    clock.ready.store(true, Ordering::Relaxed);
    registry.enter(R).unwrap().end(Outcome::Success);
    let rt_max = registry.stats(R).unwrap().minute().rt_max();
    assert_eq!((clock.parkings.load(Ordering::Relaxed), rt_max), (0, Some(Duration::ZERO)));

    let (registry, clock) = registry_with(throttled(10.0, 500));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut late = Call::waiting(registry.enter_with(R));
    clock.set(at(5_000));
    late.entry().end(Outcome::Success);
    assert_eq!(registry.stats(R).unwrap().second().rt_max(), Some(Duration::ZERO));
}

/// A check of the application's own that has each call start so much later.
struct Later(Duration);

impl Check for Later {
    fn check(&self, _: &leap_runtime::Call<'_>) -> Verdict {
        Verdict::Wait(self.0)
    }
}

#[test]
fn a_call_of_several_permits_pays_for_them_after_it_has_started() {
    let line = Line::new(throttled(10.0, 1_000));
    assert_eq!(in_ms(line.waits([3, 1, 2, 1])), [Some(0), Some(300), Some(400), Some(600)]);
    assert_eq!(line.registry.stats(R).unwrap().waiting(), 4);
}

#[test]
fn more_permits_than_pass_in_a_second_never_fit_and_as_many_do() {
    // B06
    let (registry, clock) = registry_with(throttled(10.0, 500));
    let blocked = registry.enter_with(R).permits(50).enter().unwrap_err();
    assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Flow, None));
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: 50 permits at once can never fit its limit of 10 per 1s"
    );
    assert!(registry.enter_with(R).permits(11).enter().is_err());
    registry.enter_with(R).permits(10).enter().unwrap().end(Outcome::Success);
    clock.set(at(499));
    assert!(registry.would_pass(R, 1).is_err());
    clock.set(at(500));
    assert!(registry.would_pass(R, 1).is_ok(), "in 500 ms");
}

#[test]
fn over_any_span_no_more_start_than_the_rate_allows_and_one_call() {
    // B06
    let line = Line::new(throttled(10.0, 500));
    let mut starts = vec![];
    for (i, n) in (0_u64..400).zip([1_u32, 3, 10, 2, 50, 1, 1, 7].into_iter().cycle()) {
        line.diary.clock.advance(ms(i * i % 173));
        if let [Some(wait)] = line.waits([n])[..] {
            starts.push((line.diary.now().saturating_add(wait), u64::from(n)));
        }
    }
    assert!(starts.len() > 40 && starts.is_sorted(), "{starts:?}");
    for (i, (from, _)) in starts.iter().enumerate() {
        let mut permits = 0;
        for (to, n) in &starts[i..] {
            permits += n;
            let span_ns = to.since(*from).as_nanos() + 1;
            assert!(u128::from(permits) * 100_000_000 <= span_ns + 1_000_000_000, "from {from:?} to {to:?}");
        }
    }
}

#[test]
fn a_burst_goes_at_once_and_not_one_call_more() {
    // B10
    let burst = throttle(10.0, 0).with_burst(10).unwrap();
    let (registry, clock) = registry_with(RuleSet::new().flow(R, burst));
    assert_eq!(passes(&registry, R, 11), 10);
    for (moment, passed) in [(1, 0), (99, 0), (100, 1), (101, 0), (199, 0), (200, 1)] {
        clock.set(at(moment));
        assert_eq!(passes(&registry, R, 2), passed, "at {moment} ms");
    }
    clock.set(at(60_000));
    assert_eq!(passes(&registry, R, 20), 10, "an idle minute saves up no more");
}

#[test]
fn behind_a_burst_calls_wait_as_ever() {
    let rule = throttle(10.0, 300).with_burst(3).unwrap();
    let line = Line::new(RuleSet::new().flow(R, rule));
    let waits = in_ms(line.waits([1; 7]));
    assert_eq!(waits, [Some(0), Some(0), Some(0), Some(100), Some(200), Some(300), None]);
    line.diary.clock.set(at(300));
    assert_eq!(in_ms(line.waits([2, 1])), [Some(200), Some(300)]);
    line.diary.clock.set(at(800));
    assert_eq!(in_ms(line.waits([1, 1, 1])), [Some(0), Some(0), Some(100)], "two have been saved up");
}

#[test]
fn sentinels_precision_has_a_call_pay_before_it_starts() {
    let rule = throttle(10.0, 1_000).with_precision(Precision::Sentinel).unwrap();
    let line = Line::new(RuleSet::new().flow(R, rule));
    line.diary.clock.set(at(10_000));
    assert_eq!(in_ms(line.waits([3, 1, 2, 1])), [Some(0), Some(100), Some(300), Some(400)]);
}

#[test]
fn a_limit_of_0_blocks_every_call_and_nobody_waits_for_it() {
    let (registry, clock) = registry_with(throttled(0.0, 10_000));
    for _ in 0..3 {
        let blocked = registry.enter(R).unwrap_err();
        assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Flow, None));
        assert_eq!(blocked.to_string(), "`orders.create` is blocked: its limit is 0");
        clock.advance(Duration::from_secs(3_600));
    }
    assert_eq!(figures(&registry), [0, 0, 0, 0]);
}

#[test]
fn a_throttle_that_is_off_has_nobody_wait() {
    let line = Line::new(RuleSet::new().flow(R, throttle(1.0, 10_000).with_mode(Mode::Off)));
    assert_eq!(in_ms(line.waits([1; 5])), [Some(0); 5]);
}

// --- Who waits, and how ---

#[test]
fn a_sync_call_is_parked_until_the_clock_gets_to_its_turn() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    assert_eq!(passes(&registry, R, 1), 1);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            // Somebody may have unparked this thread for reasons of its own.
            thread::current().unpark();
            let entry = registry.enter(R).unwrap();
            (clock.now(), entry)
        });
        until(|| registry.stats(R).unwrap().waiting() == 1);
        assert_eq!(figures(&registry), [0, 1, 2, 0], "it has passed and is not in flight");
        clock.set(at(99));
        waiting.thread().unpark();
        assert_eq!(figures(&registry), [0, 1, 2, 0]);
        clock.set(at(100));
        let (started, entry) = waiting.join().unwrap();
        assert_eq!((started, figures(&registry)), (at(100), [1, 0, 2, 0]));
        clock.set(at(107));
        entry.end(Outcome::Success);
    });
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.second().rt_min(), stats.second().rt_max()), (Some(ms(0)), Some(ms(7))));
}

#[test]
fn no_wake_up_is_lost_between_the_question_and_the_parking() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    assert_eq!(passes(&registry, R, 1), 1);
    thread::scope(|scope| {
        let ((go, going), (done, finished)) = (channel::<()>(), channel());
        let (registry, clock) = (&registry, &clock);
        scope.spawn(move || {
            for () in going {
                registry.enter(R).unwrap().end(Outcome::Success);
                done.send(clock.now()).unwrap();
            }
        });
        for round in 1..=3_000 {
            go.send(()).unwrap();
            // Before, while or after the call asks, waits, parks.
            if round % 3 == 0 {
                thread::yield_now();
            }
            clock.advance(ms(100));
            assert_eq!(finished.recv(), Ok(at(100 * round)));
        }
    });
}

#[guarded("throttle.paced", qps = 10, behavior = throttle, max_wait_ms = 100, fallback = late)]
fn paced(clock: &ManualClock) -> Option<Timestamp> {
    Some(clock.now())
}

fn late(_: &ManualClock, _: Blocked) -> Option<Timestamp> {
    None
}

#[test]
fn a_guarded_function_is_parked_before_its_body_runs() {
    let (registry, clock) = registry();
    let waiting = || registry.stats("throttle.paced").unwrap().waiting();
    assert_eq!(registry.scope(|| paced(&clock)), Some(at(0)));
    thread::scope(|scope| {
        let second = scope.spawn(|| registry.scope(|| paced(&clock)));
        until(|| waiting() == 1);
        assert_eq!(registry.scope(|| paced(&clock)), None, "200 ms are too long");
        clock.set(at(100));
        assert_eq!(second.join().unwrap(), Some(at(100)));
    });
    assert_eq!(waiting(), 0);
}

#[test]
fn parked_threads_start_one_at_a_time() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    thread::scope(|scope| {
        let (started, starts) = channel();
        for _ in 0..10 {
            let (registry, clock, started) = (&registry, &clock, started.clone());
            scope.spawn(move || {
                registry.enter(R).unwrap().end(Outcome::Success);
                started.send(clock.now()).unwrap();
            });
        }
        until(|| registry.stats(R).unwrap().totals().passed() == 10);
        assert_eq!(starts.recv(), Ok(at(0)));
        for n in 1..10 {
            clock.set(at(100 * n - 1));
            assert!(starts.try_recv().is_err());
            clock.set(at(100 * n));
            assert_eq!(starts.recv(), Ok(at(100 * n)));
        }
    });
    assert_eq!(figures(&registry), [0, 0, 10, 0]);
}

#[test]
fn async_calls_hold_no_thread_and_one_that_is_cancelled_delays_nobody() {
    // B19, on an executor that is this thread.
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    let mut tasks: Vec<_> = (0..10).map(|_| Some(Call::new(registry.enter_with(R)))).collect();
    let mut finished = vec![];
    for heartbeat in 0..=90 {
        clock.set(at(10 * heartbeat));
        for (n, task) in tasks.iter_mut().enumerate() {
            if heartbeat == 33 && n == 5 {
                *task = None;
            }
            let Some(call) = task else { continue };
            let is_first_poll = heartbeat == 0;
            if !is_first_poll && !call.was_woken() {
                continue;
            }
            if let std::task::Poll::Ready(entered) = call.poll() {
                entered.unwrap().end(Outcome::Success);
                finished.push((n, 10 * heartbeat));
                *task = None;
            }
        }
    }
    let expected = (0..10).filter(|n| *n != 5).map(|n| (usize::try_from(n).unwrap(), 100 * n));
    assert_eq!(finished, expected.collect::<Vec<_>>());
    assert_eq!(figures(&registry), [0, 0, 10, 1]);
}

#[test]
fn a_waiting_future_is_woken_at_its_moment_and_not_polled_in_vain() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut call = Call::waiting(registry.enter_with(R));
    clock.set(at(99));
    assert!(!call.was_woken() && call.is_waiting());
    clock.set(at(100));
    assert!(call.was_woken());
    drop(call.entry());
}

#[test]
fn who_waits_is_not_in_flight_and_the_response_time_begins_when_the_wait_is_over() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    let first = registry.enter(R).unwrap();
    let mut second = Call::waiting(registry.enter_with(R).permits(2));
    let third = Call::waiting(registry.enter_with(R));
    assert_eq!(figures(&registry), [1, 3, 4, 0]);
    assert_eq!(registry.stats(R).unwrap().second().peak_in_flight(), Some(1));
    clock.set(at(100));
    let second = second.entry();
    assert_eq!(figures(&registry), [3, 1, 4, 0]);
    clock.set(at(130));
    first.end(Outcome::Success);
    second.end(Outcome::Exception);
    drop(third);
    let stats = registry.stats(R).unwrap();
    assert_eq!(figures(&registry), [0, 0, 4, 1]);
    assert_eq!((stats.second().rt_min(), stats.second().rt_max()), (Some(ms(30)), Some(ms(130))));
    assert_eq!((stats.second().peak_in_flight(), stats.totals().calls()), (Some(3), 3));
}

#[test]
fn the_last_call_that_gives_up_gives_its_turn_back_and_one_before_others_does_not() {
    let line = Line::new(throttled(10.0, 1_000));
    let ask = || line.ask(line.registry.enter_with(R)).unwrap();
    assert_eq!(line.waits([1]), [Some(ms(0))]);
    let (wait, last) = ask();
    assert_eq!(wait, ms(100));
    drop(last);
    let (wait, first) = ask();
    assert_eq!(wait, ms(100), "as long as the cancelled one had to");
    let (wait, second) = ask();
    assert_eq!(wait, ms(200));
    drop(first);
    let (wait, third) = ask();
    assert_eq!(wait, ms(300), "who stands in the queue keeps its place, and so does the gap");
    drop((second, third));
    assert_eq!(ask().0, ms(300), "the third's; the second had somebody behind it");
    assert_eq!(figures(&line.registry), [0, 0, 6, 5]);
}

#[test]
fn a_wait_that_is_dropped_is_cancelled_has_no_response_time_and_is_nobodys_failure() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap();
    let rules = throttled(10.0, 1_000).breaker(R, breaker).isolation(R, IsolationRule::new(2));
    let (registry, clock) = registry_with(rules);
    assert_eq!(passes(&registry, R, 1), 1);
    let waiting = Call::waiting(registry.enter_with(R));
    clock.set(at(50));
    drop(waiting);
    let stats = registry.stats(R).unwrap();
    assert_eq!(figures(&registry), [0, 0, 2, 1]);
    assert_eq!((stats.totals().success(), stats.second().rt_max()), (1, Some(ms(0))));
    assert_eq!((stats.breakers()[0].calls(), stats.breakers()[0].state()), (1, BreakerState::Closed));
    clock.set(at(10_000));
    let both = [registry.enter(R).unwrap(), Call::waiting(registry.enter_with(R)).poll_at(&clock, 10_100)];
    assert!(registry.enter(R).is_err(), "the two permits are all there");
    drop(both);
}

impl Call<'_> {
    /// The entry of a call that starts at this moment.
    fn poll_at(mut self, clock: &ManualClock, moment: u64) -> Entry {
        clock.set(at(moment));
        self.entry()
    }
}

#[test]
fn a_wait_that_is_dropped_keeps_what_it_took_of_a_window() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000).flow(R, qps(3.0)));
    assert_eq!(passes(&registry, R, 1), 1);
    drop([Call::waiting(registry.enter_with(R)), Call::waiting(registry.enter_with(R))]);
    clock.set(at(500));
    let blocked = registry.enter(R).unwrap_err();
    assert_eq!((blocked.rule().position(), blocked.retry_after()), (1, Some(ms(500))));
    clock.set(at(1_000));
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn a_future_that_is_dropped_before_it_is_polled_has_asked_nothing() {
    let line = Line::new(throttled(10.0, 1_000));
    drop(Call::new(line.registry.enter_with(R)));
    assert_eq!(line.waits([1]), [Some(ms(0))]);
    assert_eq!(figures(&line.registry), [0, 0, 1, 0], "it was made known only now");
}

#[test]
fn asking_takes_no_turn() {
    let line = Line::new(throttled(10.0, 100));
    for _ in 0..10 {
        assert!(line.registry.would_pass(R, 1).is_ok());
    }
    assert_eq!(in_ms(line.waits([1])), [Some(0)]);
    for _ in 0..10 {
        assert!(line.registry.would_pass(R, 1).is_ok(), "it would wait, and pass");
    }
    assert_eq!(in_ms(line.waits([1])), [Some(100)]);
    let blocked = line.registry.would_pass(R, 1).unwrap_err();
    assert_eq!(blocked.retry_after(), Some(ms(100)));
    assert_eq!(line.registry.stats(R).unwrap().totals().blocked(), 0);
}

// --- Timers ---

#[test]
fn an_async_call_that_would_wait_where_nobody_wakes_it_is_blocked_and_told_why() {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(Silent(clock.clone())).build();
    registry.load(throttled(10.0, 1_000)).unwrap();
    Call::new(registry.enter_with(R)).entry().end(Outcome::Success);
    let blocked = Call::new(registry.enter_with(R)).blocked();
    assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Flow, Some(ms(100))));
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: it would have to wait, and there is no timer here to end that: see \
         `Builder::sleep`; retry after 100ms"
    );
    assert_eq!(figures(&registry), [0, 0, 1, 0]);
    clock.set(at(100));
    Call::new(registry.enter_with(R)).entry().end(Outcome::Success);
    assert_eq!(registry.stats(R).unwrap().totals().blocked_by(Cause::Flow), 1, "it took no turn");
}

#[test]
fn an_async_call_waits_by_the_timer_that_a_registry_is_given() {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(Silent(clock.clone())).sleep(ByClock(clock.clone())).build();
    registry.load(throttled(10.0, 1_000)).unwrap();
    Call::new(registry.enter_with(R)).entry().end(Outcome::Success);
    let mut waiting = Call::waiting(registry.enter_with(R));
    clock.set(at(99));
    assert!(!waiting.was_woken() && waiting.is_waiting());
    clock.set(at(100));
    assert!(waiting.was_woken());
    waiting.entry().end(Outcome::Success);
    assert_eq!(figures(&registry), [0, 0, 2, 0]);
}

// --- With other rules ---

#[test]
fn a_window_counts_a_paced_call_when_it_passes_and_not_when_it_starts() {
    let line = Line::new(RuleSet::new().flow(R, qps(3.0)).flow(R, throttle(10.0, 1_000)));
    assert_eq!(in_ms(line.waits([1; 4])), [Some(0), Some(100), Some(200), None]);
    line.diary.clock.set(at(999));
    assert_eq!(line.waits([1]), [None]);
    line.diary.clock.set(at(1_000));
    assert_eq!(in_ms(line.waits([1; 4])), [Some(0), Some(100), Some(200), None]);
}

#[test]
fn what_a_window_refuses_takes_no_turn() {
    let line = Line::new(RuleSet::new().flow(R, throttle(10.0, 1_000)).flow(R, qps(1.0)));
    assert_eq!(in_ms(line.waits([1, 1, 1, 1])), [Some(0), None, None, None]);
    line.registry.load(throttled(10.0, 1_000)).unwrap();
    assert_eq!(in_ms(line.waits([1])), [Some(100)]);
}

#[test]
fn of_two_throttles_a_call_starts_when_both_let_it() {
    let rules = throttled(10.0, 1_000).flow(R, throttle(5.0, 300));
    let line = Line::new(rules);
    assert_eq!(in_ms(line.waits([1, 1, 1])), [Some(0), Some(200), None]);
    let blocked = line.registry.enter(R).unwrap_err();
    assert_eq!((blocked.rule().position(), blocked.retry_after()), (1, Some(ms(100))));
    line.diary.clock.set(at(100));
    let (wait, last) = line.ask(line.registry.enter_with(R)).unwrap();
    assert_eq!(wait, ms(300));
    drop(last);
    assert_eq!(in_ms(line.waits([1])), [Some(300)], "both turns were given back");
}

#[test]
fn a_paced_call_holds_its_permit_of_the_isolation_while_it_waits() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000).isolation(R, IsolationRule::new(2)));
    assert_eq!(passes(&registry, R, 1), 1);
    let waiting = [Call::waiting(registry.enter_with(R)), Call::waiting(registry.enter_with(R))];
    assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Isolation);
    assert_eq!(figures(&registry), [0, 2, 3, 0]);
    drop(waiting);
    clock.set(at(200));
    drop([registry.enter(R).unwrap(), Call::waiting(registry.enter_with(R)).poll_at(&clock, 300)]);
}

#[test]
fn a_probe_that_waits_for_its_turn_keeps_its_slot_until_it_is_dropped() {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(50)).unwrap();
    let (registry, clock) = registry_with(throttled(10.0, 1_000).breaker(R, breaker));
    assert!(call(&registry, R, Outcome::Exception));
    clock.set(at(50));
    let probe = Call::waiting(registry.enter_with(R));
    assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Breaker);
    drop(probe);
    let mut probe = Call::waiting(registry.enter_with(R));
    clock.set(at(100));
    probe.entry().end(Outcome::Success);
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
}

#[test]
fn a_check_of_the_applications_own_and_a_throttle_have_a_call_wait_for_the_later_one() {
    let line = Line::new(throttled(10.0, 1_000));
    let check = line.registry.add_check(R, Later(ms(150)));
    assert_eq!(in_ms(line.waits([1, 1, 1, 1])), [Some(150), Some(250), Some(350), Some(450)]);
    assert!(line.registry.remove_check(check));
    assert_eq!(in_ms(line.waits([1])), [Some(550)]);
}

// --- Several that have a call wait: it starts for all of them at one moment ---

#[test]
fn a_call_that_waits_for_its_values_turn_takes_that_of_the_throttle_for_then() {
    let hot = HotRule::throttle("user", 1.0, ms(10_000)).unwrap();
    let line = Line::new(throttled(10.0, 10_000).hot(R, hot));
    let user = |user| line.registry.enter_with(R).key("user", user);
    let (wait, _first) = line.ask(user("a")).unwrap();
    let (again, mut second) = line.ask(user("a")).unwrap();
    assert_eq!([wait, again], [ms(0), ms(1_000)]);
    line.diary.clock.set(at(1_000));
    let (wait, other) = line.ask(user("b")).unwrap();
    assert_eq!(wait, ms(100), "the second of `a` starts now");
    drop((second.entry(), other));
}

#[test]
fn a_call_that_waits_for_its_origins_turn_takes_that_of_the_throttle_for_then() {
    let each = throttle(1.0, 10_000).for_each_origin().unwrap();
    let line = Line::new(throttled(10.0, 10_000).flow(R, each));
    let origin = |origin| line.registry.enter_with(R).origin(origin);
    let (wait, _first) = line.ask(origin("a")).unwrap();
    let (again, mut second) = line.ask(origin("a")).unwrap();
    assert_eq!([wait, again], [ms(0), ms(1_000)]);
    line.diary.clock.set(at(1_000));
    let (wait, other) = line.ask(origin("b")).unwrap();
    assert_eq!(wait, ms(100), "the second of `a` starts now");
    drop((second.entry(), other));
}

#[test]
fn a_call_that_a_check_has_wait_takes_its_turn_of_the_throttle_for_then() {
    let line = Line::new(throttled(10.0, 10_000));
    let check = line.registry.add_check(R, Later(ms(1_000)));
    let (wait, mut first) = line.ask(line.registry.enter_with(R)).unwrap();
    assert_eq!(wait, ms(1_000));
    assert!(line.registry.remove_check(check));
    line.diary.clock.set(at(1_000));
    assert_eq!(in_ms(line.waits([1])), [Some(100)], "the first one starts now");
    drop(first.entry());
}

#[test]
fn turns_that_a_call_waits_for_together_are_given_back_together() {
    let hot = HotRule::throttle("user", 1.0, ms(10_000)).unwrap();
    let each = throttle(2.0, 10_000).for_each_origin().unwrap();
    let line = Line::new(throttled(10.0, 10_000).flow(R, each).hot(R, hot));
    let call = || line.registry.enter_with(R).key("user", "a").origin("a");
    assert_eq!(line.ask(call()).unwrap().0, ms(0));
    for _ in 0..3 {
        let (wait, dropped) = line.ask(call()).unwrap();
        assert_eq!(wait, ms(1_000));
        drop(dropped);
    }
    assert_eq!(line.ask(line.registry.enter_with(R).origin("a")).unwrap().0, ms(500));
}

#[test]
fn what_others_make_too_long_for_a_throttle_is_told_before_anything_is_counted() {
    let minute = FlowRule::new(2.0, Behavior::Reject).and_then(|rule| rule.per(ms(60_000))).unwrap();
    let hot = HotRule::throttle("user", 1.0, ms(10_000)).unwrap();
    let rules = throttled(10.0, 500).flow(R, minute.for_origin("a").unwrap()).hot(R, hot);
    let (registry, clock) = registry_with(rules);
    let call = || registry.enter_with(R).key("user", 1).origin("a");
    assert!(call().enter().is_ok());
    let blocked = call().enter().unwrap_err();
    assert_eq!((blocked.cause(), blocked.rule().position()), (Cause::Flow, 0));
    assert_eq!(blocked.retry_after(), Some(ms(500)), "then the value's turn is near enough");
    assert_eq!(call().would_pass().unwrap_err(), blocked);
    clock.set(at(500));
    assert_eq!(call().would_pass(), Ok(()));
    drop(Call::waiting(call()));
    assert_eq!(registry.stats(R).unwrap().totals().passed(), 2, "the window had room for it");
    clock.set(at(5_000));
    assert_eq!(call().enter().unwrap_err().rule().position(), 1);
}

thread_local! {
    /// Until when a call of this thread last asked to wait.
    static ASKED: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// A clock that stands still, and notes who wants to be woken when.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        at(0)
    }

    fn wake_at(&self, until: Timestamp, _: &Waker) -> bool {
        ASKED.set(Some(until));
        true
    }
}

#[test]
fn threads_that_wait_for_several_turns_at_once_get_each_of_them_alone() {
    let minute = ms(60_000);
    let throttle = |limit| FlowRule::new(limit, Behavior::Throttle { max_wait: minute }).unwrap();
    let rules = RuleSet::new()
        .flow(R, throttle(1_000.0))
        .flow(R, throttle(500.0).for_each_origin().unwrap())
        .hot(R, HotRule::throttle("user", 300.0, minute).unwrap());
    let registry = Registry::builder().clock(Still).build();
    registry.load(rules).unwrap();
    let starts = |of: usize| {
        let start = |n: usize| {
            let call = registry.enter_with(R).origin(["a", "b"][of % 2]).key("user", (of + n) % 3);
            ASKED.set(None);
            let mut call = Call::new(call);
            let is_ready = call.poll().is_ready();
            // It keeps its turns.
            std::mem::forget(call);
            ((of + n) % 3, of % 2, if is_ready { at(0) } else { ASKED.get().unwrap() })
        };
        (0..500).map(start).collect::<Vec<_>>()
    };
    let starts: Vec<_> = thread::scope(|scope| {
        let starts = &starts;
        let threads: Vec<_> = (0..4).map(|of| scope.spawn(move || starts(of))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let closest = |of: &dyn Fn(&(usize, usize, Timestamp)) -> bool| {
        let mut starts: Vec<_> = starts.iter().filter(|start| of(start)).map(|(.., start)| *start).collect();
        starts.sort_unstable();
        starts.windows(2).map(|pair| pair[1].since(pair[0])).min().unwrap()
    };
    assert!(closest(&|_| true) >= ms(1));
    for one in 0..3 {
        assert!(closest(&|(_, origin, _)| *origin == one % 2) >= ms(2));
        assert!(closest(&|(user, ..)| *user == one) >= Duration::from_nanos(3_333_333));
    }
}

#[test]
fn no_check_has_a_call_wait_for_longer_than_a_throttle_lets_it() {
    let line = Line::new(throttled(10.0, 100));
    let check = line.registry.add_check(R, Later(ms(100)));
    assert_eq!(in_ms(line.waits([1, 1])), [Some(100), None]);
    assert!(line.registry.remove_check(check));
    line.registry.add_check(R, Later(ms(101)));
    let blocked = line.ask(line.registry.enter_with(R)).map(drop).unwrap_err();
    assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Flow, Some(ms(100))));
}

/// Keeps how the calls ended that it let pass.
#[derive(Default)]
struct Ends(Mutex<Vec<(Option<Outcome>, Duration)>>);

impl Check for Ends {
    fn check(&self, _: &leap_runtime::Call<'_>) -> Verdict {
        Verdict::Pass
    }

    fn ended(&self, call: &Ended<'_>) {
        self.0.lock().unwrap().push((call.outcome(), call.rt()));
    }
}

#[test]
fn a_check_of_the_applications_own_is_told_of_each_end_and_that_a_cancelled_wait_ran_for_no_time() {
    let (registry, clock) = registry_with(throttled(10.0, 100));
    let ends = Arc::new(Ends::default());
    registry.add_check(R, Arc::clone(&ends));
    let first = registry.enter(R).unwrap();
    let second = Call::waiting(registry.enter_with(R));
    assert!(registry.enter(R).is_err());
    clock.set(at(50));
    drop(second);
    let mut third = Call::waiting(registry.enter_with(R));
    clock.set(at(100));
    let third = third.entry();
    clock.set(at(103));
    third.end(Outcome::Success);
    first.end(Outcome::Ignored);
    assert_eq!(
        *ends.0.lock().unwrap(),
        [
            (None, ms(0)),
            (Some(Outcome::Cancelled), ms(0)),
            (Some(Outcome::Success), ms(3)),
            (Some(Outcome::Ignored), ms(103)),
        ]
    );
}

#[test]
fn who_waits_is_not_in_flight_for_its_origin_either() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    let call = || registry.enter_with(R).origin("vip");
    let _first = call().enter().unwrap();
    let mut waiting = [Call::waiting(call()), Call::waiting(call())];
    let of_vip = || {
        let vip = registry.stats(R).unwrap().origins()[0].clone();
        let totals = *vip.totals();
        [vip.in_flight(), totals.passed(), totals.completed(), totals.cancelled()]
    };
    assert_eq!(of_vip(), [1, 3, 0, 0]);
    clock.set(at(100));
    let second = waiting[0].entry();
    assert_eq!(of_vip(), [2, 3, 0, 0]);
    drop(waiting);
    assert_eq!(of_vip(), [2, 3, 1, 1]);
    second.end(Outcome::Success);
    assert_eq!(of_vip(), [1, 3, 2, 1]);
}

// --- Reloads ---

#[test]
fn a_reload_is_no_fresh_start() {
    // B12, the half about throttles
    let (registry, clock) = registry_with(throttled(1.0, 0));
    assert_eq!(passes(&registry, R, 1), 1);
    clock.set(at(100));
    for _ in 0..100 {
        registry.load(throttled(1.0, 0)).unwrap();
    }
    clock.set(at(200));
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(at(999));
    registry.load(throttled(1.0, 0).isolation(R, IsolationRule::new(5))).unwrap();
    assert_eq!(passes(&registry, R, 1), 0);
    clock.set(at(1_000));
    assert_eq!(passes(&registry, R, 2), 1);
}

#[test]
fn calls_that_wait_keep_their_moments_over_a_reload_and_others_come_behind_them() {
    let line = Line::new(throttled(10.0, 1_000));
    let ask = || line.ask(line.registry.enter_with(R)).unwrap();
    let mut waiting: Vec<Call<'_>> = (0..4).map(|_| ask().1).skip(1).collect();
    line.registry.load(throttled(10.0, 500)).unwrap();
    let (wait, last) = ask();
    assert_eq!(wait, ms(400));
    drop(last);
    drop(waiting.pop());
    assert_eq!(ask().0, ms(300), "a turn that was taken under the rule before is given back too");
    line.diary.clock.set(at(200));
    for call in &mut waiting {
        call.entry().end(Outcome::Success);
    }
    assert_eq!(figures(&line.registry), [0, 0, 6, 3]);
}

#[test]
fn a_rule_that_is_taken_away_leaves_those_who_wait_their_moments_and_has_nobody_else_wait() {
    let line = Line::new(throttled(10.0, 1_000));
    let mut waiting: Vec<_> =
        (0..3).map(|_| line.ask(line.registry.enter_with(R)).unwrap().1).skip(1).collect();
    line.registry.load(RuleSet::new()).unwrap();
    assert_eq!(in_ms(line.waits([1; 3])), [Some(0); 3]);
    assert_eq!(figures(&line.registry), [0, 2, 6, 0]);
    drop(waiting.pop());
    assert!(waiting[0].is_waiting());
    line.diary.clock.set(at(100));
    waiting[0].entry().end(Outcome::Success);
    assert_eq!(figures(&line.registry), [0, 0, 6, 1]);
}

#[test]
fn a_limit_that_is_lowered_while_calls_wait_spaces_out_those_that_come_next() {
    let line = Line::new(throttled(10.0, 10_000));
    assert_eq!(in_ms(line.waits([1; 3])), [Some(0), Some(100), Some(200)]);
    line.registry.load(throttled(1.0, 10_000)).unwrap();
    let waits = in_ms(line.waits([1, 1]));
    assert_eq!(waits, [Some(1_200), Some(2_200)], "a whole second after the last of those who waited");
    line.registry.load(throttled(0.0, 10_000)).unwrap();
    assert_eq!(in_ms(line.waits([1, 1])), [None, None]);
    line.registry.load(throttled(1.0, 10_000)).unwrap();
    assert_eq!(in_ms(line.waits([1, 1])), [Some(3_200), Some(4_200)]);
}

#[test]
fn a_limit_that_is_raised_holds_from_the_next_call_on_however_slow_it_was() {
    let line = Line::new(RuleSet::new().flow(R, throttle(1.0, 0).per(Duration::from_secs(3_600)).unwrap()));
    assert_eq!(line.waits([1, 1]), [Some(ms(0)), None]);
    line.diary.clock.set(at(1_000));
    line.registry.load(throttled(100.0, 100)).unwrap();
    let waits = in_ms(line.waits([1, 1]));
    assert_eq!(waits, [Some(9), Some(19)], "the hour's hundredth part of 10 ms has gone by");
}

#[test]
fn a_wait_from_before_a_reload_that_is_dropped_gives_nobody_elses_turn_back() {
    let line = Line::new(throttled(10.0, 300));
    let ask = || line.ask(line.registry.enter_with(R)).unwrap();
    let [(_, _first), (_, before)] = [ask(), ask()];
    line.registry.load(throttled(20.0, 300)).unwrap();
    let (wait, _behind) = ask();
    assert_eq!(wait, ms(150), "the one before starts at 100 ms");
    drop(before);
    assert_eq!(ask().0, ms(200), "50 ms behind the last one, who is still there");
}

#[test]
fn no_chain_of_limits_precisions_and_bursts_is_a_fresh_start_or_locks_anybody_out() {
    let sentinel = |limit| throttle(limit, 0).with_precision(Precision::Sentinel).unwrap();
    let burst = |limit, burst| throttle(limit, 0).with_burst(burst).unwrap();
    let year = 366 * 24 * 60 * 60 * 1_000;
    let chains: [&[FlowRule]; 8] = [
        &[throttle(100.0, 0), throttle(0.5, 0)],
        &[throttle(2.0, 0), sentinel(1.0), throttle(1.0, year)],
        &[throttle(0.0, 0)],
        &[sentinel(0.0), throttle(0.0, 0)],
        &[throttle(0.0, 0), sentinel(1.0), throttle(0.0, 0)],
        &[sentinel(1.0), sentinel(1.0)],
        &[burst(1.0, 1), burst(3.0, 1)],
        &[throttle(1.0, year), throttle(0.1, year), throttle(10.0, 5)],
    ];
    for (i, chain) in chains.into_iter().enumerate() {
        let (registry, clock) = registry_with(throttled(1.0, 0));
        clock.set(at(10_000));
        assert_eq!(passes(&registry, R, 1), 1);
        clock.set(at(10_100));
        for rule in chain.iter().cloned().chain([throttle(1.0, 0)]) {
            registry.load(RuleSet::new().flow(R, rule)).unwrap();
        }
        // Sentinel's costs are whole nanoseconds, and some changes round up.
        clock.set(at(10_999));
        assert_eq!(passes(&registry, R, 1), 0, "chain {i}");
        clock.set(at(11_001));
        assert_eq!(passes(&registry, R, 2), 1, "chain {i}");
    }
    // A bucket keeps what it lacks.
    let (registry, clock) = registry_with(RuleSet::new().flow(R, burst(10.0, 10)));
    assert_eq!(passes(&registry, R, 5), 5);
    registry.load(RuleSet::new().flow(R, burst(1.0, 10))).unwrap();
    registry.load(RuleSet::new().flow(R, burst(20.0, 10))).unwrap();
    assert_eq!(passes(&registry, R, 20), 5);
    clock.set(at(50));
    assert_eq!(passes(&registry, R, 20), 1);
}

// --- Odd orders ---

#[test]
fn a_clock_that_steps_back_while_calls_wait_wakes_nobody_early() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    clock.set(at(5_000));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(registry.enter_with(R));
    clock.set(at(4_997));
    assert!(waiting.is_waiting());
    let mut next = Call::waiting(registry.enter_with(R));
    clock.set(at(5_100));
    waiting.entry().end(Outcome::Success);
    assert!(next.is_waiting());
    clock.set(at(5_200));
    next.entry().end(Outcome::Success);
    assert_eq!(figures(&registry), [0, 0, 3, 0]);
}

#[test]
fn a_body_that_panics_after_its_wait_ends_as_an_exception_and_holds_nothing_up() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000).isolation(R, IsolationRule::new(2)));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut waiting = Call::waiting(registry.enter_with(R));
    clock.set(at(100));
    let entry = waiting.entry();
    clock.set(at(103));
    let panic =
        catch_unwind(AssertUnwindSafe(|| entry.run(|| -> Result<(), ()> { panic!("after the wait") })));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"after the wait"));
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().exception(), stats.second().rt_max()), (1, Some(ms(3))));
    assert_eq!(figures(&registry), [0, 0, 2, 0]);
    clock.set(at(200));
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn a_panic_beside_a_call_that_waits_cancels_it() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    assert_eq!(passes(&registry, R, 1), 1);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _waiting = Call::waiting(registry.enter_with(R));
        panic!("beside it");
    }));
    assert!(panic.is_err());
    assert_eq!(figures(&registry), [0, 0, 2, 1]);
    assert_eq!(registry.stats(R).unwrap().totals().exception(), 0);
    clock.set(at(100));
    assert_eq!(passes(&registry, R, 1), 1);
}

#[test]
fn a_body_may_enter_the_resource_that_it_is_in_and_waits_its_turn_there() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    registry.enter(R).unwrap().run_with(
        || {
            let mut inner = Call::waiting(registry.enter_with(R));
            assert_eq!(figures(&registry), [1, 1, 2, 0]);
            clock.set(at(100));
            inner.entry().run_with(|| current().fail(), |()| Outcome::Success);
        },
        |()| Outcome::Success,
    );
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().success(), stats.totals().exception()), (1, 1));
}

#[test]
fn an_entry_that_has_waited_may_be_kept_and_charged_and_ended_elsewhere() {
    struct Session {
        entry: Entry,
    }
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut session = Session { entry: Call::waiting(registry.enter_with(R)).poll_at(&clock, 100) };
    assert_eq!((session.entry.charge(4), session.entry.permits()), (4, 5));
    registry.load(RuleSet::new()).unwrap();
    clock.set(at(150));
    thread::spawn(move || session.entry.end(Outcome::Success)).join().unwrap();
    assert_eq!(figures(&registry), [0, 0, 6, 0]);
    assert_eq!(registry.stats(R).unwrap().second().rt_max(), Some(ms(50)));
}

#[test]
fn a_charge_is_not_paced() {
    let line = Line::new(throttled(10.0, 1_000));
    let mut entry = line.registry.enter(R).unwrap();
    assert_eq!(entry.charge(1_000), 1_000);
    assert_eq!(in_ms(line.waits([1])), [Some(100)]);
}

#[test]
fn waits_that_are_cancelled_in_any_order_leave_nothing_behind() {
    let (registry, clock) = registry_with(throttled(1_000.0, 1_000).isolation(R, IsolationRule::new(100)));
    for round in 0..50_usize {
        let mut waiting: Vec<_> = (0..100).map(|_| Call::new(registry.enter_with(R))).collect();
        let mut entries: Vec<Entry> = vec![];
        for call in &mut waiting {
            if let std::task::Poll::Ready(entry) = call.poll() {
                entries.push(entry.unwrap());
            }
        }
        assert_eq!(registry.enter(R).unwrap_err().cause(), Cause::Isolation);
        while !waiting.is_empty() {
            let call = waiting.swap_remove((round * 31 + 17) % waiting.len());
            drop(call);
            if waiting.len() % 7 == round % 7 {
                drop(entries.pop());
            }
        }
        drop(entries);
        assert_eq!(figures(&registry)[..2], [0, 0], "round {round}");
        clock.advance(ms(200));
    }
}

#[test]
fn threads_that_wait_cancel_and_reload_never_start_too_close() {
    let line = Line::new(throttled(1_000.0, 50));
    let starts = Mutex::new(vec![]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..4_u64)
            .map(|seed| {
                let (line, starts) = (&line, &starts);
                scope.spawn(move || {
                    for i in 0..500 {
                        let mut call = Call::new(line.registry.enter_with(R));
                        let mut polled = call.poll();
                        if (i + seed) % 3 == 0 && polled.is_pending() {
                            continue;
                        }
                        until(|| {
                            if polled.is_pending() {
                                polled = call.poll();
                            }
                            polled.is_ready()
                        });
                        let std::task::Poll::Ready(entered) = polled else { unreachable!("waited for") };
                        if let Ok(entry) = entered {
                            starts.lock().unwrap().push(());
                            entry.end(Outcome::Success);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                line.registry.load(throttled(1_000.0, 50).isolation(R, IsolationRule::new(64))).unwrap();
                line.registry.load(throttled(1_000.0, 50)).unwrap();
            }
        });
        until(|| {
            line.diary.clock.advance(Duration::from_micros(250));
            callers.iter().all(thread::ScopedJoinHandle::is_finished)
        });
        is_over.store(true, Ordering::Relaxed);
    });
    let started = starts.into_inner().unwrap().len() as u64;
    let [in_flight, waiting, passed, cancelled] = figures(&line.registry);
    assert_eq!((in_flight, waiting, passed), (0, 0, started + cancelled));
    let elapsed_ms = line.diary.now().as_millis();
    assert!(started <= elapsed_ms + 1, "{started} in {elapsed_ms} ms");
}

#[test]
fn a_waker_may_be_replaced_while_a_call_waits() {
    let (registry, clock) = registry_with(throttled(10.0, 1_000));
    assert_eq!(passes(&registry, R, 1), 1);
    let mut future = Box::pin(registry.enter_async(R));
    let noop = &mut std::task::Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(noop).is_pending());
    let mut call = Call::waiting(registry.enter_with(R));
    assert!(future.as_mut().poll(noop).is_pending());
    clock.set(at(200));
    assert!(call.was_woken());
    drop(call.entry());
    assert!(future.as_mut().poll(noop).is_ready());
}
