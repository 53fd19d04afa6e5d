//! What answers in place of a guarded function: fallbacks of every form, for blocked calls and for those that failed.
#![expect(
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    clippy::unused_async,
    reason = "functions of every shape, which stand here for their shape"
)]

use std::cell::RefCell;
use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use leap_runtime::{Blocked, ManualClock, Registry, guarded};

#[derive(Debug, PartialEq)]
enum AppError {
    Broken(u8),
    Gone,
    Blocked(String),
}

impl From<Blocked> for AppError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked.resource().to_owned())
    }
}

/// Runs `calls` in a registry of their own.
fn in_registry(calls: impl FnOnce(&Registry)) {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    registry.clone().scope(|| calls(&registry));
}

/// Passed, blocked, success, exception, ignored, in flight.
fn counts(registry: &Registry, resource: &str) -> [u64; 6] {
    let stats = registry.stats(resource).unwrap_or_else(|| panic!("nobody called `{resource}`"));
    let all = stats.totals();
    [all.passed(), all.blocked(), all.success(), all.exception(), all.ignored(), stats.in_flight()]
}

/// Polls a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

// --- Closures and expressions, for blocked calls ---

#[guarded("closure", qps = 1, fallback = |sku, n, blocked| format!("{sku} {} {}", n.0, blocked.resource()))]
fn by_closure(sku: &str, n: (u8, u8)) -> String {
    format!("{sku}: {}", n.1)
}

#[guarded("typed closure", qps = 1, fallback = |(a, b): (u8, u8), _: Blocked| -> Box<dyn Fn() -> u8> { Box::new(move || a - b) })]
fn by_typed_closure((a, b): (u8, u8)) -> Box<dyn Fn() -> u8> {
    Box::new(move || a + b)
}

#[guarded("async closure", qps = 1, fallback = async |sku: String, _| { ready(()).await; sku })]
async fn by_async_closure(sku: String) -> String {
    format!("{sku}!")
}

#[guarded("closure in async", qps = 1, fallback = |sku, _| sku)]
async fn by_closure_in_async(sku: String) -> String {
    format!("{sku}!")
}

#[guarded("call", qps = 1, fallback = twice(sku))]
fn by_call(sku: String, n: u8) -> String {
    format!("{sku}{n}")
}

#[guarded("call in async", qps = 1, fallback = twice_async(sku).await)]
async fn by_call_in_async(sku: String, n: u8) -> String {
    format!("{sku}{n}")
}

#[guarded("awaited", qps = 1, fallback = twice_async(sku).await + "?")]
async fn by_awaited_call(mut sku: String, n: u8) -> String {
    sku.push(char::from(n));
    sku
}

fn twice(sku: String) -> String {
    format!("{sku}{sku}")
}

async fn twice_async(sku: String) -> String {
    ready(()).await;
    twice(sku)
}

#[guarded("parts", qps = 1, fallback = u32::from(a) + u32::try_from(blocked.resource().len()).unwrap())]
fn by_parts((a, mut b): (u8, u32), _: String) -> u32 {
    b += u32::from(a);
    b
}

#[guarded("macro", qps = 1, fallback = format!("{sku} {blocked:.0}"))]
fn by_macro(sku: &str) -> String {
    sku.to_owned()
}

const DEFAULT: usize = 7;

#[guarded("constant", qps = 0, fallback = DEFAULT)]
fn by_constant() -> usize {
    1
}

#[guarded("parameter", qps = 0, fallback = sku)]
async fn by_parameter(sku: String) -> String {
    sku + "!"
}

#[guarded("blocked itself", qps = 0, fallback = Some(blocked))]
fn by_blocked() -> Option<Blocked> {
    None
}

#[guarded("text", qps = 0, fallback = "nothing")]
fn by_literal() -> &'static str {
    "something"
}

/// What an expression is, it learns from what the function returns.
#[guarded("inferred", qps = 0, fallback = n.into())]
async fn by_inference(n: u8) -> u64 {
    u64::from(n) + 1
}

#[guarded("value", qps = 1, fallback = None)]
fn by_value(sku: &str) -> Option<usize> {
    Some(sku.len())
}

#[guarded("block", qps = 1, fallback = { list.push(0); list })]
fn by_block(mut list: Vec<u8>) -> Vec<u8> {
    list.push(1);
    list
}

#[guarded("panics", qps = 1, fallback = panic!("{}", blocked.resource()))]
async fn by_panic() -> u8 {
    1
}

#[guarded("dies", qps = 1, fallback = die)]
fn by_death(_code: u8) -> u8 {
    1
}

fn die(code: u8, _: Blocked) -> ! {
    panic!("died with {code}")
}

#[guarded("unit", qps = 1, fallback = log.borrow_mut().push("busy"))]
fn by_unit(log: &RefCell<Vec<&'static str>>) {
    log.borrow_mut().push("ran");
}

#[derive(Debug, PartialEq)]
struct Refusal {
    sku: String,
    by: String,
    n: u8,
}

#[guarded("fields", qps = 0, fallback = Err(Refusal { by: blocked.resource().to_owned(), ..refusal }))]
fn by_fields(refusal: Refusal, n: u8) -> Result<u8, Refusal> {
    if n == 0 { Err(refusal) } else { Ok(n) }
}

#[guarded("field names", fallback_on = error, fallback = Err(AppError::Blocked(format!("{n:>n_wide$}"))))]
fn by_text(order: String, n: u8, n_wide: usize) -> Result<String, AppError> {
    if order.is_empty() { Err(AppError::Broken(n + u8::try_from(n_wide).unwrap_or(0))) } else { Ok(order) }
}

#[guarded("raw", qps = 0, fallback = format!("no {type}"))]
fn by_raw_name(r#type: String) -> String {
    r#type
}

#[guarded("opaque", qps = 1, fallback = from_one)]
async fn by_opaque(n: u8) -> impl Iterator<Item = u8> {
    0..n
}

fn from_one(n: u8, _: Blocked) -> std::ops::Range<u8> {
    1..n
}

#[guarded("opaque future", qps = 1, fallback = from_two(n).await)]
async fn by_opaque_future(n: u8) -> Result<impl Iterator<Item = u8>, AppError> {
    Ok(0..n)
}

async fn from_two(n: u8) -> Result<std::ops::Range<u8>, AppError> {
    ready(()).await;
    Ok(2..n)
}

/// What it returns is not `Send`; its future is.
#[guarded("not send", qps = 1, fallback = |_| Rc::new(2))]
async fn by_value_that_is_not_send() -> Rc<u8> {
    ready(()).await;
    Rc::new(1)
}

#[guarded("functions", qps = 1, fallback = |_, _| Box::new(|text: &str| text.len() + 1))]
fn by_function(n: usize) -> Box<dyn Fn(&str) -> usize> {
    Box::new(move |text| text.len() + n)
}

#[guarded("seems", qps = 0, fallback = { let blocked = u8::from(a); blocked + 1 })]
fn by_what_seems((a, mut b): (bool, u8)) -> u8 {
    b += u8::from(a);
    b
}

struct Shop {
    last: u8,
}

impl Shop {
    #[guarded("method", qps = 1, fallback = self.stored(factor))]
    fn by_method(&self, factor: u8) -> u8 {
        self.last * factor + 1
    }

    #[guarded("method by value", qps = 1, fallback = Self::empty())]
    async fn by_function_of_the_type(self) -> Self {
        self
    }

    #[guarded("mutable method", qps = 1, fallback = Self::stored_mut)]
    fn by_method_with_less(&mut self, factor: u8) -> u8 {
        self.last += factor;
        self.last
    }

    #[guarded("method closure", qps = 1, fallback = |this, factor, _| this.stored(factor))]
    fn by_closure(&self, factor: u8) -> u8 {
        self.last * factor + 2
    }

    fn stored(&self, factor: u8) -> u8 {
        self.last * factor
    }

    fn stored_mut(&self, factor: u8, _: Blocked) -> u8 {
        self.last * factor
    }

    fn empty() -> Self {
        Self { last: 0 }
    }
}

#[test]
fn a_closure_is_given_the_arguments_and_the_block() {
    in_registry(|registry| {
        assert_eq!(by_closure("a", (1, 2)), "a: 2");
        assert_eq!(by_closure("a", (1, 2)), "a 1 closure");
        assert_eq!(counts(registry, "closure"), [1, 1, 1, 0, 0, 0]);
        assert_eq!([by_typed_closure((5, 2))(), by_typed_closure((5, 2))()], [7, 3]);
        assert_eq!([now(by_async_closure("a".into())), now(by_async_closure("a".into()))], ["a!", "a"]);
        assert_eq!([now(by_closure_in_async("a".into())), now(by_closure_in_async("a".into()))], ["a!", "a"]);
    });
}

#[test]
fn an_expression_is_evaluated_as_written_with_the_arguments_and_the_block() {
    in_registry(|_| {
        assert_eq!([by_call("a".into(), 1), by_call("a".into(), 1)], ["a1", "aa"]);
        assert_eq!(
            [now(by_call_in_async("a".into(), 1)), now(by_call_in_async("a".into(), 1))],
            ["a1", "aa"]
        );
        assert_eq!(
            [now(by_awaited_call("a".into(), b'b')), now(by_awaited_call("a".into(), b'b'))],
            ["ab", "aa?"]
        );
        assert_eq!([by_parts((1, 2), String::new()), by_parts((1, 2), String::new())], [3, 6]);
        assert_eq!(by_macro("a"), "a");
        assert_eq!(by_macro("a"), "a `macro` is blocked: its limit of 1 per 1s is reached; retry after 1s");
        assert_eq!([by_value("a"), by_value("a")], [Some(1), None]);
        assert_eq!((by_constant(), now(by_parameter("a".into())), by_literal()), (7, "a".into(), "nothing"));
        assert_eq!(by_blocked().unwrap().resource(), "blocked itself");
        assert_eq!(now(by_inference(7)), 7);
        assert_eq!([by_block(vec![7]), by_block(vec![7])], [[7, 1], [7, 0]]);
        let log = RefCell::new(vec![]);
        by_unit(&log);
        by_unit(&log);
        assert_eq!(log.into_inner(), ["ran", "busy"]);
    });
}

#[test]
fn an_expression_finds_its_arguments_wherever_they_stand_in_it() {
    in_registry(|_| {
        let refusal = Refusal { sku: "a".into(), by: String::new(), n: 1 };
        assert_eq!(by_fields(refusal, 1), Err(Refusal { sku: "a".into(), by: "fields".into(), n: 1 }));
        assert_eq!(by_text(String::new(), 7, 3), Err(AppError::Blocked("  7".into())));
        assert_eq!(by_raw_name("type".into()), "no type");
        assert_eq!(by_what_seems((true, 1)), 2);
    });
}

#[test]
fn a_body_and_its_fallback_know_what_they_return_where_that_cannot_be_written() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    in_registry(|_| {
        assert!(now(by_opaque(3)).eq(0..3) && now(by_opaque(3)).eq(1..3));
        assert!(now(by_opaque_future(3)).unwrap().eq(0..3) && now(by_opaque_future(3)).unwrap().eq(2..3));
        assert_eq!(
            [*now(is_send(by_value_that_is_not_send())), *now(is_send(by_value_that_is_not_send()))],
            [1, 2]
        );
        assert_eq!([by_function(2)("abc"), by_function(2)("abc")], [5, 4]);
    });
}

#[test]
fn a_fallback_may_be_a_method_of_self_or_of_its_type() {
    in_registry(|_| {
        let mut shop = Shop { last: 3 };
        assert_eq!([shop.by_method(2), shop.by_method(2)], [7, 6]);
        assert_eq!([shop.by_closure(2), shop.by_closure(2)], [8, 6]);
        assert_eq!([shop.by_method_with_less(1), shop.by_method_with_less(2)], [4, 8]);
        let shop = now(shop.by_function_of_the_type());
        assert_eq!((shop.last, now(shop.by_function_of_the_type()).last), (4, 0));
    });
}

#[test]
fn a_fallback_may_never_return() {
    in_registry(|registry| {
        assert_eq!((now(by_panic()), by_death(3)), (1, 1));
        let panic = catch_unwind(AssertUnwindSafe(|| now(by_panic()))).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "panics");
        let panic = catch_unwind(AssertUnwindSafe(|| by_death(3))).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().unwrap(), "died with 3");
        assert_eq!(counts(registry, "dies"), [1, 1, 1, 0, 0, 0]);
        assert_eq!(counts(registry, "panics"), [1, 1, 1, 0, 0, 0]);
    });
}

// --- For calls that failed ---

type Answer = Result<u8, AppError>;

#[guarded("on error", qps = 2, fallback_on = error, fallback = |n, error| match error {
    AppError::Gone => Ok(0),
    AppError::Broken(by) => Err(AppError::Broken(by + n)),
    error @ AppError::Blocked(_) => Err(error),
})]
fn on_error(n: u8) -> Answer {
    if n == 0 { Err(AppError::Gone) } else { Err(AppError::Broken(n)) }
}

#[guarded("on any", qps = 2, fallback_on = any, fallback = recover)]
fn on_any(name: &str, n: u8) -> Answer {
    if name.is_empty() { Err(AppError::Gone) } else { Ok(n) }
}

fn recover(name: &str, n: u8, error: AppError) -> Answer {
    if error == AppError::Gone { Ok(n + 100) } else { Err(AppError::Blocked(format!("{name} {error:?}"))) }
}

#[guarded("on any, async", qps = 2, fallback_on = any, fallback = recover_async(id, error).await)]
async fn on_any_async(order: String, id: u8) -> Answer {
    ready(()).await;
    if order.is_empty() { Err(AppError::Gone) } else { Ok(id) }
}

async fn recover_async(id: u8, error: AppError) -> Answer {
    ready(()).await;
    if error == AppError::Gone { Ok(id + 100) } else { Err(error) }
}

#[guarded(
    "judged",
    ignore(AppError::Gone),
    ok_if = |answer| *answer == Err(AppError::Broken(1)),
    err_if = |answer| *answer == Ok(3),
    fallback_on = error,
    fallback = { let _: AppError = error; Ok(100) }
)]
fn judged(answer: Answer) -> Answer {
    answer
}

#[guarded("ignores itself", fallback_on = any, fallback = Ok(1))]
async fn ignores_itself() -> Answer {
    ready(()).await;
    leap_runtime::current().ignore();
    Err(AppError::Gone)
}

#[guarded("in flight", fallback_on = error, fallback = Ok(in_flight(registry)))]
fn sees_itself(registry: &Registry) -> Answer {
    Err(AppError::Broken(in_flight(registry)))
}

fn in_flight(registry: &Registry) -> u8 {
    u8::try_from(registry.stats("in flight").unwrap().in_flight()).unwrap()
}

struct Stock(u8);

impl Stock {
    #[guarded("method on error", fallback_on = error, fallback = Self::stored)]
    async fn count(&self, n: u8) -> Answer {
        Err(AppError::Broken(n))
    }

    async fn stored(&self, n: u8, _: AppError) -> Answer {
        Ok(self.0 + n)
    }
}

// E22
#[test]
fn a_fallback_on_errors_is_given_the_error_and_serves_no_blocks() {
    in_registry(|registry| {
        assert_eq!(on_error(0), Ok(0));
        assert_eq!(on_error(2), Err(AppError::Broken(4)));
        assert_eq!(on_error(0), Err(AppError::Blocked("on error".into())));
        assert_eq!(counts(registry, "on error"), [2, 1, 0, 2, 0, 0]);
        assert_eq!(now(Stock(1).count(2)), Ok(3));
    });
}

// E22
#[test]
fn a_fallback_on_any_is_given_blocks_as_errors_too() {
    in_registry(|registry| {
        assert_eq!(on_any("a", 1), Ok(1));
        assert_eq!(on_any("", 1), Ok(101));
        assert_eq!(on_any("a", 1), Err(AppError::Blocked("a Blocked(\"on any\")".into())));
        assert_eq!(counts(registry, "on any"), [2, 1, 1, 1, 0, 0]);
        assert_eq!(now(on_any_async("a".into(), 1)), Ok(1));
        assert_eq!(now(on_any_async(String::new(), 1)), Ok(101));
        assert_eq!(now(on_any_async("a".into(), 1)), Err(AppError::Blocked("on any, async".into())));
        assert_eq!(counts(registry, "on any, async"), [2, 1, 1, 1, 0, 0]);
    });
}

#[test]
fn an_error_that_is_ignored_or_taken_for_a_success_is_returned_as_it_is() {
    in_registry(|registry| {
        assert_eq!(judged(Err(AppError::Gone)), Err(AppError::Gone));
        assert_eq!(judged(Err(AppError::Broken(1))), Err(AppError::Broken(1)));
        assert_eq!(judged(Ok(3)), Ok(3));
        assert_eq!(judged(Err(AppError::Broken(2))), Ok(100));
        assert_eq!(counts(registry, "judged"), [4, 0, 1, 2, 1, 0]);
    });
}

#[test]
fn the_call_is_over_when_the_fallback_runs() {
    in_registry(|registry| assert_eq!(sees_itself(registry), Ok(0)));
}

#[test]
fn errors_fall_back_while_guarding_is_off() {
    in_registry(|registry| {
        registry.turn_off();
        for n in 0..4 {
            assert_eq!((on_any("a", n), on_any("", n)), (Ok(n), Ok(n + 100)));
            assert_eq!(now(on_any_async(String::new(), n)), Ok(n + 100));
            assert_eq!(judged(Err(AppError::Gone)), Err(AppError::Gone));
            assert_eq!(judged(Err(AppError::Broken(1))), Err(AppError::Broken(1)));
            assert_eq!(now(ignores_itself()), Err(AppError::Gone));
        }
    });
}

#[guarded("around", qps = 4, fallback = 9)]
async fn around(is_async: bool) -> u8 {
    if is_async { marks_async().await } else { marks() }
}

#[guarded("marks", qps = 0, fallback = mark(1))]
fn marks() -> u8 {
    0
}

#[guarded("marks, async", qps = 0, fallback = mark(ready(1).await))]
async fn marks_async() -> u8 {
    0
}

fn mark(n: u8) -> u8 {
    leap_runtime::current().fail();
    n
}

/// A blocked call has no call of its own to be marked: what its fallback says is said of the call around it.
#[test]
fn what_a_fallback_marks_is_the_call_around_it() {
    in_registry(|registry| {
        assert_eq!((now(around(false)), now(around(true))), (1, 1));
        assert_eq!(counts(registry, "around"), [2, 0, 0, 2, 0, 0]);
    });
}
