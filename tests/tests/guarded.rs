//! What a guarded function does, seen by who calls it. Each test has a registry and a clock of its own.
#![expect(
    clippy::extra_unused_type_parameters,
    clippy::large_types_passed_by_value,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::toplevel_ref_arg,
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    clippy::unused_self,
    reason = "functions of every shape, which stand here for their shape"
)]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leap_runtime::{
    Blocked, BreakerState, Cause, InRegistry, ManualClock, Registry, ResourceStats, TokioClock, guarded,
};

#[derive(Debug)]
enum AppError {
    Invalid,
    Broken,
    Blocked(Blocked),
}

impl From<Blocked> for AppError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

type Answer<T> = Result<T, AppError>;

fn registry() -> (Registry, ManualClock) {
    let clock = ManualClock::new();
    (Registry::builder().clock(clock.clone()).build(), clock)
}

/// Passed, blocked, success, exception, ignored, cancelled, in flight.
fn counts(stats: &ResourceStats) -> [u64; 7] {
    let all = stats.totals();
    let (passed, blocked) = (all.passed(), all.blocked());
    [passed, blocked, all.success(), all.exception(), all.ignored(), all.cancelled(), stats.in_flight()]
}

fn counts_of(registry: &Registry, resource: &str) -> [u64; 7] {
    counts(&registry.stats(resource).unwrap_or_else(|| panic!("nobody called `{resource}`")))
}

/// Polls a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

mod names {
    use leap_runtime::{Blocked, guarded};

    pub(super) mod a {
        #[leap_runtime::guarded]
        pub(crate) fn get() -> Result<(), leap_runtime::Blocked> {
            Ok(())
        }
    }

    pub(super) mod b {
        #[leap_runtime::guarded]
        pub(crate) async fn get() -> Result<(), leap_runtime::Blocked> {
            Ok(())
        }
    }

    pub(super) struct A;
    pub(super) struct B;
    pub(super) struct Boxed<T>(pub(super) T);

    pub(super) trait Tr {
        fn get(&self) -> Result<(), Blocked>;

        #[guarded]
        fn with_default_body(&self) -> Result<(), Blocked> {
            Ok(())
        }
    }

    impl A {
        #[guarded]
        pub(super) fn get(&self) -> Result<(), Blocked> {
            Ok(())
        }

        #[guarded]
        pub(super) async fn get_async(&self) -> Result<(), Blocked> {
            Ok(())
        }
    }

    impl Tr for A {
        #[guarded]
        fn get(&self) -> Result<(), Blocked> {
            Ok(())
        }
    }

    impl Tr for B {
        #[guarded]
        fn get(&self) -> Result<(), Blocked> {
            Ok(())
        }
    }

    impl<T> Boxed<T> {
        #[guarded]
        pub(super) fn get(&self) -> Result<(), Blocked> {
            Ok(())
        }
    }

    #[guarded]
    pub(super) fn generic<T>() -> Result<(), Blocked> {
        Ok(())
    }
}

// E19
#[test]
fn the_default_name_is_the_path_of_the_function_with_its_type() {
    use names::Tr;
    let (registry, _) = registry();
    registry.scope(|| {
        names::a::get().unwrap();
        ready(names::b::get()).unwrap();
        names::A.get().unwrap();
        ready(names::A.get_async()).unwrap();
        Tr::get(&names::A).unwrap();
        names::B.get().unwrap();
        names::A.with_default_body().unwrap();
        names::B.with_default_body().unwrap();
        names::Boxed(1_u8).get().unwrap();
        names::Boxed("a").get().unwrap();
        names::generic::<u8>().unwrap();
        names::generic::<u16>().unwrap();
        let closure = || {
            #[guarded]
            fn inside() -> Result<(), Blocked> {
                Ok(())
            }
            inside()
        };
        closure().unwrap();
    });
    let mut passed: Vec<(String, u64)> =
        registry.resources().map(|stats| (stats.resource().to_owned(), stats.totals().passed())).collect();
    passed.sort();
    let expected = [
        ("<guarded::names::A as guarded::names::Tr>::get", 1),
        ("<guarded::names::B as guarded::names::Tr>::get", 1),
        ("guarded::names::A::get", 1),
        ("guarded::names::A::get_async", 1),
        ("guarded::names::Boxed<_>::get", 2),
        ("guarded::names::Tr::with_default_body", 2),
        ("guarded::names::a::get", 1),
        ("guarded::names::b::get", 1),
        ("guarded::names::generic", 2),
        (
            "guarded::the_default_name_is_the_path_of_the_function_with_its_type::{{closure}}::{{closure}}::inside",
            1,
        ),
    ];
    assert_eq!(passed, expected.map(|(name, passed)| (name.to_owned(), passed)));
}

#[guarded("shared by two", max_concurrency = 5)]
fn one_of_two() -> Answer<()> {
    Ok(())
}

#[guarded(resource = "shared by two", qps = 3)]
fn other_of_two() -> Answer<()> {
    Ok(())
}

// E19
#[test]
fn functions_of_one_name_share_a_resource_and_their_rules_add_up() {
    let (registry, _) = registry();
    registry.scope(|| {
        for _ in 0..2 {
            one_of_two().unwrap();
            other_of_two().unwrap();
        }
    });
    // The second call brought the limit of 3 along: it counts the permits of both functions from there on.
    let stats = registry.stats("shared by two").unwrap();
    let mut rules: Vec<String> = stats.rules().map(|(id, rule)| format!("{id}: {rule}")).collect();
    rules.sort();
    assert_eq!(
        rules,
        [
            "guarded::one_of_two/isolation/0: isolation: at most 5 in flight",
            "guarded::other_of_two/flow/0: flow: 3 per 1s, exact"
        ]
    );
    assert_eq!(counts(&stats)[0], 4);
    let next = registry.scope(one_of_two).and_then(|()| registry.scope(other_of_two));
    assert!(matches!(next, Err(AppError::Blocked(_))));
}

#[guarded(
    resource = "every rule",
    qps = 100,
    buckets = 10,
    precision = strict,
    rate(limit = 5_000, per_ms = 60_000),
    rate(limit = 7, per_ms = 2_000, precision = sentinel, buckets = 2),
    max_concurrency = 32,
    slow_rt_ms = 200,
    error_ratio = 0.5,
    error_count = 3,
    min_calls = 10,
    window_ms = 2_000,
    open_ms = 4_000,
    probes = 2
)]
fn every_rule() -> Answer<()> {
    Ok(())
}

#[test]
fn each_argument_becomes_its_rule() {
    let (registry, _) = registry();
    registry.scope(every_rule).unwrap();
    let stats = registry.stats("every rule").unwrap();
    let rules: Vec<String> = stats.rules().map(|(_, rule)| rule.to_string()).collect();
    assert_eq!(
        rules,
        [
            "flow: 100 per 1s, strict in 10 buckets",
            "flow: 5000 per 60s, strict in 100 buckets",
            "flow: 7 per 2s, as Sentinel in 2 buckets",
            "isolation: at most 32 in flight",
            "slow_ratio: all slower than 200ms of at least 10 calls in 2s, open 4s, 2 probes",
            "error_ratio: over 0.5 of at least 10 calls in 2s, open 4s, 2 probes",
            "error_count: over 3 of at least 10 calls in 2s, open 4s, 2 probes",
        ]
    );
}

#[guarded("two a second", qps = 2)]
fn two_a_second() -> Answer<u8> {
    Ok(1)
}

#[guarded("never", qps = 0, fallback = zero)]
fn not_once() -> u8 {
    1
}

fn zero(_: Blocked) -> u8 {
    0
}

const BATCH: u32 = 3;

#[guarded("in batches", qps = 10, permits = BATCH)]
fn in_batches() -> Answer<()> {
    Ok(())
}

#[test]
fn a_limit_of_the_attribute_holds_and_the_block_explains_itself() {
    let (registry, clock) = registry();
    registry.scope(|| {
        assert_eq!((two_a_second().unwrap(), two_a_second().unwrap()), (1, 1));
        clock.advance(Duration::from_millis(400));
        let Err(AppError::Blocked(blocked)) = two_a_second() else { panic!("it passed") };
        assert_eq!((blocked.resource(), blocked.cause()), ("two a second", Cause::Flow));
        assert_eq!(blocked.rule().function(), Some("guarded::two_a_second"));
        assert_eq!(blocked.retry_after(), Some(Duration::from_millis(600)));
        clock.advance(Duration::from_millis(600));
        assert_eq!(two_a_second().unwrap(), 1);

        assert_eq!(not_once(), 0);

        assert!(in_batches().is_ok() && in_batches().is_ok() && in_batches().is_ok());
        assert!(in_batches().is_err());
        assert_eq!(counts_of(&registry, "in batches"), [9, 3, 9, 0, 0, 0, 0]);
    });
}

#[guarded("switched off", qps = 1, max_concurrency = 0, error_count = 0, min_calls = 1, mode = off)]
fn switched_off() -> Answer<()> {
    Err(AppError::Broken)
}

#[test]
fn rules_that_are_off_count_and_block_nothing() {
    let (registry, _) = registry();
    for _ in 0..5 {
        assert!(matches!(registry.scope(switched_off), Err(AppError::Broken)));
    }
    assert_eq!(counts_of(&registry, "switched off"), [5, 0, 0, 5, 0, 0, 0]);
    assert_eq!(registry.stats("switched off").unwrap().rules().count(), 3);
}

#[guarded("slow", slow_rt_ms = 100)]
fn slow(clock: &ManualClock, time: Duration) -> Answer<()> {
    clock.advance(time);
    Ok(())
}

#[guarded("slow async", slow_rt_ms = 100)]
async fn slow_async(time: Duration) -> Answer<()> {
    tokio::time::sleep(time).await;
    Ok(())
}

#[test]
fn slow_rt_ms_alone_opens_a_breaker_when_all_calls_are_slow() {
    let (registry, clock) = registry();
    registry.scope(|| {
        for _ in 0..5 {
            slow(&clock, Duration::from_millis(101)).unwrap();
        }
        let Err(AppError::Blocked(blocked)) = slow(&clock, Duration::ZERO) else { panic!("it passed") };
        assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::Breaker, Some(Duration::from_secs(5))));
    });
    let stats = registry.stats("slow").unwrap();
    assert_eq!(stats.breakers()[0].state(), BreakerState::Open);
    assert_eq!(stats.minute().rt_max(), Some(Duration::from_millis(101)));
}

#[tokio::test(start_paused = true)]
async fn a_slow_async_call_is_timed_until_it_is_ready() {
    let registry = Registry::builder().clock(TokioClock::new()).build();
    for _ in 0..5 {
        slow_async(Duration::from_millis(150)).in_registry(&registry).await.unwrap();
    }
    assert!(matches!(slow_async(Duration::ZERO).in_registry(&registry).await, Err(AppError::Blocked(_))));
    assert_eq!(counts_of(&registry, "slow async"), [5, 1, 5, 0, 0, 0, 0]);
}

fn parse(text: &str) -> Answer<i32> {
    text.parse().map_err(|_| AppError::Invalid)
}

#[guarded("leaves early")]
fn leaves_early(text: &str) -> Answer<i32> {
    if text.is_empty() {
        return Err(AppError::Broken);
    }
    let number = 'number: {
        if text == "zero" {
            break 'number 0;
        }
        parse(text)?
    };
    for n in 0.. {
        if n == number {
            return Ok(n);
        }
        if n > 3 {
            break;
        }
    }
    Ok(-1)
}

#[guarded("leaves early async")]
async fn leaves_early_async(text: &str) -> Answer<i32> {
    if text.is_empty() {
        return Err(AppError::Broken);
    }
    let number = 'number: {
        if text == "zero" {
            break 'number 0;
        }
        std::future::ready(parse(text)).await?
    };
    let moved = async move { number + 1 };
    if number == 2 {
        return Ok(moved.await);
    }
    Ok(-1)
}

// E16
#[test]
fn every_way_out_of_a_body_ends_the_call_once() {
    let (registry, _) = registry();
    registry.scope(|| {
        assert_eq!(leaves_early("zero").unwrap(), 0);
        assert_eq!(leaves_early("2").unwrap(), 2);
        assert_eq!(leaves_early("9").unwrap(), -1);
        assert!(matches!(leaves_early(""), Err(AppError::Broken)));
        assert!(matches!(leaves_early("x"), Err(AppError::Invalid)));
        assert_eq!(ready(leaves_early_async("zero")).unwrap(), -1);
        assert_eq!(ready(leaves_early_async("2")).unwrap(), 3);
        assert_eq!(ready(leaves_early_async("9")).unwrap(), -1);
        assert!(matches!(ready(leaves_early_async("")), Err(AppError::Broken)));
        assert!(matches!(ready(leaves_early_async("x")), Err(AppError::Invalid)));
    });
    assert_eq!(counts_of(&registry, "leaves early"), [5, 0, 3, 2, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "leaves early async"), [5, 0, 3, 2, 0, 0, 0]);
}

#[guarded("panics", max_concurrency = 1)]
fn panics(if_so: bool) -> Answer<()> {
    assert!(!if_so, "as asked");
    Ok(())
}

#[guarded("panics async", max_concurrency = 1)]
async fn panics_async(if_so: bool) -> Answer<()> {
    tokio::task::yield_now().await;
    assert!(!if_so, "as asked");
    Ok(())
}

// E17
#[test]
fn a_panic_goes_on_unchanged_and_ends_the_call_as_an_exception() {
    let (registry, _) = registry();
    registry.scope(|| {
        let panic = catch_unwind(|| panics(true)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as asked"));
        panics(false).unwrap();
    });
    assert_eq!(counts_of(&registry, "panics"), [2, 0, 1, 1, 0, 0, 0]);
}

// E17
#[tokio::test]
async fn a_panic_in_a_task_ends_the_call_as_an_exception() {
    let (registry, _) = registry();
    let task = tokio::spawn(panics_async(true).in_registry(&registry));
    assert!(task.await.unwrap_err().is_panic());
    tokio::spawn(panics_async(false).in_registry(&registry)).await.unwrap().unwrap();
    assert_eq!(counts_of(&registry, "panics async"), [2, 0, 1, 1, 0, 0, 0]);
}

#[guarded("verdict of an alias")]
fn aliased(answer: Answer<u8>) -> Answer<u8> {
    answer
}

#[guarded("verdict of an opaque type")]
async fn opaque(answer: Answer<u8>) -> Result<impl ToString, AppError> {
    Ok(answer?)
}

#[guarded("verdict of a generic type", fallback = first_of)]
fn generic<T, E>(answer: Result<T, E>, _: Result<T, E>) -> Result<T, E> {
    answer
}

fn first_of<T>(first: T, _: T, _: Blocked) -> T {
    first
}

#[guarded("verdict of an option", fallback = first_of)]
fn option(answer: Option<u8>, _: Option<u8>) -> Option<u8> {
    answer
}

#[test]
fn an_err_is_an_exception_by_its_type() {
    let (registry, _) = registry();
    registry.scope(|| {
        let _ = (aliased(Ok(1)), aliased(Err(AppError::Broken)));
        let _ = (ready(opaque(Ok(1))).is_ok(), ready(opaque(Err(AppError::Broken))).is_ok());
        let _ = (generic(Ok(1), Err(2)), generic(Err(1), Ok(2)));
        let _ = (option(Some(1), None), option(None, None));
    });
    assert_eq!(counts_of(&registry, "verdict of an alias"), [2, 0, 1, 1, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "verdict of an opaque type"), [2, 0, 1, 1, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "verdict of a generic type"), [2, 0, 1, 1, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "verdict of an option"), [2, 0, 2, 0, 0, 0, 0]);
}

fn is_seven(answer: &Result<u8, u8>) -> bool {
    answer.is_ok_and(|n| n == 7)
}

#[guarded(
    "verdicts in order",
    ignore(1 | 2),
    ok_if = |answer| matches!(answer, Err(2..=4)),
    err_if = is_seven,
    fallback = first_of
)]
fn judged(answer: Result<u8, u8>, _: Result<u8, u8>) -> Result<u8, u8> {
    answer
}

#[guarded("verdict on a number", err_if = |n| *n > 5, fallback = first_of)]
async fn judged_number(n: u8, _: u8) -> u8 {
    n
}

#[guarded("verdict that panics", ok_if = |_| panic!("no verdict"), fallback = first_of)]
fn judged_by_a_panic(n: u8, _: u8) -> u8 {
    n
}

#[test]
fn ignore_goes_before_ok_if_before_err_if_before_err() {
    for (answer, outcome) in [
        (Err(1), [0, 0, 1]),
        (Err(2), [0, 0, 1]),
        (Err(3), [1, 0, 0]),
        (Err(5), [0, 1, 0]),
        (Ok(1), [1, 0, 0]),
        (Ok(7), [0, 1, 0]),
    ] {
        let (registry, _) = registry();
        assert_eq!(registry.scope(|| judged(answer, answer)), answer);
        let [passed, _, success, exception, ignored, ..] = counts_of(&registry, "verdicts in order");
        assert_eq!((passed, [success, exception, ignored]), (1, outcome), "{answer:?}");
    }
}

#[test]
fn a_predicate_judges_any_type_and_its_panic_is_contained() {
    let (registry, _) = registry();
    registry.scope(|| {
        assert_eq!((ready(judged_number(5, 0)), ready(judged_number(6, 0))), (5, 6));
        assert_eq!(judged_by_a_panic(1, 0), 1);
    });
    assert_eq!(counts_of(&registry, "verdict on a number"), [2, 0, 1, 1, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "verdict that panics"), [1, 0, 0, 1, 0, 0, 0]);
    assert_eq!(registry.contained_panics(), 1);
}

/// Tells when it is dropped.
struct Traced<'a>(&'static str, &'a RefCell<Vec<&'static str>>);

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

#[guarded("blocks all", qps = 0)]
fn blocks_all(runs: &Cell<u32>, _argument: Traced<'_>) -> Answer<()> {
    runs.set(runs.get() + 1);
    Ok(())
}

#[guarded("blocks all async", qps = 0)]
async fn blocks_all_async(runs: &Cell<u32>, _argument: Traced<'_>) -> Answer<()> {
    runs.set(runs.get() + 1);
    std::future::pending().await
}

// F02
#[test]
fn the_body_of_a_blocked_call_never_runs_and_its_arguments_are_dropped() {
    let (registry, _) = registry();
    let (runs, dropped) = (Cell::new(0), RefCell::default());
    registry.scope(|| {
        assert!(blocks_all(&runs, Traced("sync", &dropped)).is_err());
        assert!(ready(blocks_all_async(&runs, Traced("async", &dropped))).is_err());
    });
    assert_eq!(runs.get(), 0);
    assert_eq!(dropped.take(), ["sync", "async"]);
    assert_eq!(counts_of(&registry, "blocks all"), [0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "blocks all async"), [0, 1, 0, 0, 0, 0, 0]);
}

/// Cannot be cloned.
#[derive(Debug, PartialEq)]
struct Order(u8);

#[guarded("falls back", qps = 1, fallback = give_back)]
fn take(order: Order, (a, _): (u8, u8)) -> Result<Order, (Order, u8)> {
    Ok(Order(order.0 + a))
}

fn give_back(order: Order, (a, b): (u8, u8), blocked: Blocked) -> Result<Order, (Order, u8)> {
    assert_eq!(blocked.cause(), Cause::Flow);
    Err((order, a + b))
}

#[guarded("falls back async", qps = 1, fallback = give_back_async)]
async fn take_async(order: Order) -> Result<Order, Order> {
    Ok(order)
}

async fn give_back_async(order: Order, _: Blocked) -> Result<Order, Order> {
    tokio::task::yield_now().await;
    Err(order)
}

#[guarded("falls back from async", qps = 1, fallback = give_back_at_once)]
async fn take_async_too(order: Order) -> Result<Order, Order> {
    Ok(order)
}

fn give_back_at_once(order: Order, _: Blocked) -> Result<Order, Order> {
    Err(order)
}

// E20
#[tokio::test]
async fn a_fallback_gets_the_arguments_by_value_and_may_be_async() {
    let (registry, _) = registry();
    registry.scope(|| {
        assert_eq!(take(Order(1), (2, 3)), Ok(Order(3)));
        assert_eq!(take(Order(1), (2, 3)), Err((Order(1), 5)));
    });
    async {
        assert_eq!(take_async(Order(1)).await, Ok(Order(1)));
        assert_eq!(take_async(Order(1)).await, Err(Order(1)));
        assert_eq!(take_async_too(Order(1)).await, Ok(Order(1)));
        assert_eq!(take_async_too(Order(1)).await, Err(Order(1)));
    }
    .in_registry(&registry)
    .await;
    // The body's own errors do not fall back, and neither is an outcome of the blocked call.
    assert_eq!(counts_of(&registry, "falls back"), [1, 1, 1, 0, 0, 0, 0]);
}

struct Fruit(u8);
struct Cake(&'static str);

impl Fruit {
    #[guarded(qps = 0, fallback = Self::fb)]
    fn get(&self, n: u8) -> u8 {
        self.0 + n
    }

    fn fb(&self, n: u8, _: Blocked) -> u8 {
        self.0 - n
    }
}

impl Cake {
    #[guarded(qps = 0, fallback = Self::fb)]
    fn get(self, name: &str) -> String {
        self.0.to_owned() + name
    }

    fn fb(self, name: &str, _: Blocked) -> String {
        name.to_owned() + self.0
    }
}

// E21
#[test]
fn each_type_has_its_own_fallback_of_one_name() {
    let (registry, _) = registry();
    registry.scope(|| {
        assert_eq!(Fruit(5).get(2), 3);
        assert_eq!(Cake("apple").get("pie"), "pieapple");
    });
}

struct Service;

impl Service {
    #[guarded("calls itself")]
    fn outer(&self) -> Answer<u8> {
        self.inner()
    }

    #[guarded("is called")]
    fn inner(&self) -> Answer<u8> {
        Ok(1)
    }

    #[guarded("recursion", max_concurrency = 3)]
    fn deeper(levels: u8) -> Answer<u8> {
        if levels == 0 { Ok(0) } else { Self::deeper(levels - 1).map(|n| n + 1) }
    }

    #[guarded("async recursion", max_concurrency = 3)]
    async fn deeper_async(levels: u8) -> Answer<u8> {
        if levels == 0 { Ok(0) } else { Box::pin(Self::deeper_async(levels - 1)).await.map(|n| n + 1) }
    }
}

// E23
#[test]
fn calls_inside_a_type_and_recursive_ones_are_guarded_too() {
    let (registry, _) = registry();
    registry.scope(|| {
        Service.outer().unwrap();
        assert_eq!(Service::deeper(2).unwrap(), 2);
        let Err(AppError::Blocked(blocked)) = Service::deeper(5) else { panic!("it passed") };
        assert_eq!((blocked.cause(), blocked.observed()), (Cause::Isolation, Some(3.0)));
        assert_eq!(ready(Service::deeper_async(2)).unwrap(), 2);
        assert!(ready(Service::deeper_async(5)).is_err());
    });
    assert_eq!(counts_of(&registry, "calls itself"), [1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "is called"), [1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "recursion"), [6, 1, 3, 3, 0, 0, 0]);
    assert_eq!(counts_of(&registry, "async recursion"), [6, 1, 3, 3, 0, 0, 0]);
}

#[guarded("hangs")]
async fn hangs() -> Answer<()> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}

// F01
#[tokio::test(start_paused = true)]
async fn a_call_whose_future_is_dropped_is_cancelled_and_leaves_no_sample() {
    let registry = Registry::builder().clock(TokioClock::new()).build();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            tokio::spawn(tokio::time::timeout(Duration::from_millis(10), hangs().in_registry(&registry)))
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap().is_err());
    }
    let stats = registry.stats("hangs").unwrap();
    assert_eq!(counts(&stats), [100, 0, 0, 0, 0, 100, 0]);
    assert_eq!((stats.totals().completed(), stats.minute().rt_max()), (100, None));
    assert!(stats.percentiles().is_none());
}

#[test]
fn an_async_call_enters_when_it_is_first_polled() {
    let (registry, _) = registry();
    registry.scope(|| drop(hangs()));
    assert!(registry.stats("hangs").is_none());
}

#[guarded("inner", qps = 2)]
fn inner(broken: bool) -> Answer<u8> {
    if broken { Err(AppError::Broken) } else { Ok(1) }
}

#[guarded("outer passes on")]
fn passes_on(broken: bool) -> Answer<u8> {
    Ok(inner(broken)? + 1)
}

#[guarded("outer handles")]
fn handles(broken: bool) -> Answer<u8> {
    Ok(inner(broken).unwrap_or(0))
}

#[guarded("outer ignores blocks", ignore(AppError::Blocked(_)))]
fn ignores_blocks(broken: bool) -> Answer<u8> {
    inner(broken)
}

// C11
#[test]
fn an_error_counts_on_every_resource_that_it_passes() {
    let (registry, _) = registry();
    registry.scope(|| {
        assert!(matches!(passes_on(true), Err(AppError::Broken)));
        assert_eq!(counts_of(&registry, "outer passes on"), [1, 0, 0, 1, 0, 0, 0]);
        assert_eq!(counts_of(&registry, "inner"), [1, 0, 0, 1, 0, 0, 0]);

        assert_eq!(handles(true).unwrap(), 0);
        assert_eq!(counts_of(&registry, "outer handles"), [1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(counts_of(&registry, "inner"), [2, 0, 0, 2, 0, 0, 0]);

        // A block of the inner one is an exception of the outer one like any `Err`, unless it is ignored.
        assert!(matches!(passes_on(false), Err(AppError::Blocked(_))));
        assert!(matches!(ignores_blocks(false), Err(AppError::Blocked(_))));
        assert_eq!(counts_of(&registry, "inner"), [2, 2, 0, 2, 0, 0, 0]);
        assert_eq!(counts_of(&registry, "outer passes on"), [2, 0, 0, 2, 0, 0, 0]);
        assert_eq!(counts_of(&registry, "outer ignores blocks"), [1, 0, 0, 0, 1, 0, 0]);
    });
}

/// One function plain and one guarded, each of which is given traced arguments in turn.
macro_rules! twins {
    ($plain:ident, $guarded:ident: $($fn:tt)*) => {
        mod $plain {
            use super::*;
            $($fn)*
        }
        mod $guarded {
            use super::*;
            #[guarded]
            $($fn)*
        }
    };
}

twins! { plain, watched:
    pub(super) fn keeps<'a>(a: Traced<'a>, _: Traced<'a>, (b, _): (Traced<'a>, Traced<'a>), log: &'a RefCell<Vec<&'static str>>, mut c: Traced<'a>, ref _d: Traced<'a>) -> Answer<usize> {
        let _local = Traced("local", log);
        c.0 = "changed";
        drop(a);
        let _ = &b;
        Ok(Traced("temporary", log).0.len())
    }
}

twins! { plain_async, watched_async:
    pub(super) async fn keeps<'a>(a: Traced<'a>, _: Traced<'a>, (b, _): (Traced<'a>, Traced<'a>), log: &'a RefCell<Vec<&'static str>>, mut c: Traced<'a>, ref _d: Traced<'a>) -> Answer<usize> {
        let _local = Traced("local", log);
        c.0 = "changed";
        drop(a);
        let _ = &b;
        Ok(Traced("temporary", log).0.len())
    }
}

struct Owner<'a> {
    first: Traced<'a>,
    second: Traced<'a>,
}

impl<'a> Owner<'a> {
    fn new(log: &'a RefCell<Vec<&'static str>>) -> Self {
        Self { first: Traced("first", log), second: Traced("second", log) }
    }

    fn plain(self, _argument: Traced<'a>) -> Answer<usize> {
        Ok(self.second.0.len())
    }

    #[guarded]
    fn watched(self, _argument: Traced<'a>) -> Answer<usize> {
        Ok(self.second.0.len())
    }

    fn plain_in_parts(self, _argument: Traced<'a>) -> Answer<Traced<'a>> {
        let _local = self.first;
        Ok(self.second)
    }

    #[guarded]
    fn watched_in_parts(self, _argument: Traced<'a>) -> Answer<Traced<'a>> {
        let _local = self.first;
        Ok(self.second)
    }
}

#[test]
fn what_a_guarded_function_holds_is_dropped_as_in_the_plain_one() {
    let (registry, _) = registry();
    let log = &RefCell::default();
    let traced = |name| Traced(name, log);
    let tuple = || (traced("b"), traced("b's other half"));
    let logged = |call: &dyn Fn() -> Answer<usize>| {
        registry.scope(call).unwrap();
        log.take()
    };
    let sync = logged(&|| plain::keeps(traced("a"), traced("_"), tuple(), log, traced("c"), traced("d")));
    assert_eq!(sync.len(), 8);
    assert_eq!(
        logged(&|| watched::keeps(traced("a"), traced("_"), tuple(), log, traced("c"), traced("d"))),
        sync
    );
    let futures = logged(&|| {
        ready(plain_async::keeps(traced("a"), traced("_"), tuple(), log, traced("c"), traced("d")))
    });
    assert_eq!(futures, sync);
    assert_eq!(
        logged(&|| ready(watched_async::keeps(
            traced("a"),
            traced("_"),
            tuple(),
            log,
            traced("c"),
            traced("d")
        ))),
        sync
    );

    let methods = logged(&|| Owner::new(log).plain(traced("argument")));
    assert_eq!(methods, ["argument", "first", "second"]);
    assert_eq!(logged(&|| Owner::new(log).watched(traced("argument"))), methods);
    let parts = logged(&|| Owner::new(log).plain_in_parts(traced("argument")).map(|part| part.0.len()));
    assert_eq!(
        logged(&|| Owner::new(log).watched_in_parts(traced("argument")).map(|part| part.0.len())),
        parts
    );
}

mod sizes {
    use super::*;

    pub(super) async fn plain(argument: [u8; 8 * 1024]) -> Answer<u8> {
        tokio::task::yield_now().await;
        Ok(argument[0])
    }

    #[guarded]
    pub(super) async fn watched(argument: [u8; 8 * 1024]) -> Answer<u8> {
        tokio::task::yield_now().await;
        Ok(argument[0])
    }
}

// E24
#[test]
fn a_guarded_future_is_at_most_one_copy_of_the_arguments_and_256_bytes_larger() {
    let argument = [0; 8 * 1024];
    let (plain, watched) = (size_of_val(&sizes::plain(argument)), size_of_val(&sizes::watched(argument)));
    assert!(watched <= plain + argument.len() + 256, "{watched} against {plain}");
}

/// Chains of 12 functions, each of which calls the next with the stack of its own still in use.
mod chains {
    use super::*;

    pub(super) type Large = [u8; 8 * 1024];

    macro_rules! calls_next {
        ($($name:ident $next:ident)*) => {
            $(
                #[guarded]
                pub(super) async fn $name(argument: &Large, depth: u8) -> Answer<u8> {
                    Ok($next(argument, depth + 1).await? + 1)
                }
            )*
        };
    }

    calls_next! { f1 f2 f2 f3 f3 f4 f4 f5 f5 f6 f6 f7 f7 f8 f8 f9 f9 f10 f10 f11 f11 takes_a_copy }

    #[expect(clippy::large_futures, reason = "it is to be large")]
    async fn takes_a_copy(argument: &Large, depth: u8) -> Answer<u8> {
        f12(*argument, depth + 1).await
    }

    #[guarded]
    async fn f12(argument: Large, depth: u8) -> Answer<u8> {
        tokio::task::yield_now().await;
        Ok(argument[usize::from(depth)])
    }

    macro_rules! calls_next_with_a_copy {
        ($($name:ident $next:ident)*) => {
            $(
                #[guarded]
                pub(super) fn $name(argument: Large) -> Answer<u8> {
                    Ok($next(argument)? + argument[0])
                }
            )*
        };
    }

    calls_next_with_a_copy! { g1 g2 g2 g3 g3 g4 g4 g5 g5 g6 g6 g7 g7 g8 g8 g9 g9 g10 g10 g11 g11 g12 }

    #[guarded]
    fn g12(argument: Large) -> Answer<u8> {
        Ok(argument[7])
    }
}

// E24
#[test]
fn a_chain_of_12_guarded_functions_with_8_kib_fits_on_a_stack_of_2_mib() {
    let (registry, _) = registry();
    let scope = registry.clone();
    let call = move || {
        scope.scope(|| {
            let mut future = pin!(chains::f1(&[7; _], 0));
            let mut context = Context::from_waker(Waker::noop());
            let first = future.as_mut().poll(&mut context).is_ready();
            let Poll::Ready(answer) = future.as_mut().poll(&mut context) else { panic!("it waits but once") };
            (first, answer.unwrap(), chains::g1([1; _]).unwrap())
        })
    };
    // What threads of the standard library have, and of tokio.
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(call).unwrap();
    let answers = thread.join().unwrap();
    assert_eq!(answers, (false, 7 + 11, 1 + 11));
    for name in ["chains::f1", "chains::f12", "chains::g1", "chains::g12"] {
        assert_eq!(counts_of(&registry, &format!("guarded::{name}")), [1, 0, 1, 0, 0, 0, 0], "{name}");
    }
}

#[guarded]
async fn shared(value: Arc<AtomicU32>) -> Answer<u32> {
    tokio::task::yield_now().await;
    Ok(value.load(Ordering::Relaxed))
}

#[guarded]
async fn local(value: Rc<Cell<u32>>) -> Answer<u32> {
    tokio::task::yield_now().await;
    Ok(value.get())
}

// E25
#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_future_is_send_when_the_plain_one_is_and_runs_locally_when_not() {
    let (registry, _) = registry();
    let spawned = tokio::spawn(shared(Arc::new(AtomicU32::new(1))).in_registry(&registry));
    assert_eq!(spawned.await.unwrap().unwrap(), 1);
    let set = tokio::task::LocalSet::new();
    let task = set.spawn_local(local(Rc::new(Cell::new(2))).in_registry(&registry));
    set.await;
    assert_eq!(task.await.unwrap().unwrap(), 2);
    assert_eq!(counts_of(&registry, "guarded::local"), [1, 0, 1, 0, 0, 0, 0]);
}

#[guarded]
fn in_a_scope() -> Answer<()> {
    Ok(())
}

#[test]
fn a_call_goes_to_the_registry_in_scope_and_back_to_the_global_one_after_it() {
    let (first, second) = (registry().0, registry().0);
    first.scope(in_a_scope).unwrap();
    second.scope(|| first.scope(in_a_scope).and_then(|()| in_a_scope())).unwrap();
    in_a_scope().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| first.scope(|| panic!("out of the scope"))));
    assert!(panicked.is_err());
    in_a_scope().unwrap();
    assert_eq!(counts_of(&first, "guarded::in_a_scope")[0], 2);
    assert_eq!(counts_of(&second, "guarded::in_a_scope")[0], 1);
    assert_eq!(counts_of(&leap_runtime::registry(), "guarded::in_a_scope")[0], 2);
}
