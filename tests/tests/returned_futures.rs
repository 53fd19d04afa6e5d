//! Functions that return a future or a stream, which is what runs; and those that `async_trait` makes such.
#![expect(
    clippy::large_types_passed_by_value,
    clippy::manual_async_fn,
    clippy::panic,
    clippy::unwrap_used,
    reason = "functions of every shape, which stand here for their shape"
)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn, ready};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use leap_runtime::{Blocked, Cause, InRegistry, ManualClock, Registry, TokioClock, guarded};

#[derive(Debug)]
enum AppError {
    Broken,
    Blocked(Blocked),
}

impl From<Blocked> for AppError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

type Answer<T> = Result<T, AppError>;
type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

fn registry() -> Registry {
    Registry::builder().clock(ManualClock::new()).build()
}

/// Passed, blocked, success, exception, ignored, cancelled, in flight; nothing, if there is no such resource.
fn counts(registry: &Registry, resource: &str) -> Option<[u64; 7]> {
    let stats = registry.stats(resource)?;
    let all = stats.totals();
    let (passed, blocked) = (all.passed(), all.blocked());
    Some([passed, blocked, all.success(), all.exception(), all.ignored(), all.cancelled(), stats.in_flight()])
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Waits once.
async fn pause() {
    let mut has_waited = false;
    poll_fn(|_| if std::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

// --- Futures ---

type Log<'a> = &'a RefCell<Vec<&'static str>>;

#[guarded("boxed", qps = 2)]
fn boxed<'a>(log: Log<'a>, name: String) -> Pin<Box<dyn Future<Output = Answer<String>> + 'a>> {
    log.borrow_mut().push("called");
    if name.is_empty() {
        return Box::pin(ready(Err(AppError::Broken)));
    }
    Box::pin(async move {
        log.borrow_mut().push("polled");
        pause().await;
        log.borrow_mut().push("over");
        Ok(name)
    })
}

#[guarded("opaque", qps = 1)]
fn opaque(log: Log<'_>) -> impl Future<Output = Answer<u8>> {
    log.borrow_mut().push("called");
    async move {
        log.borrow_mut().push("polled");
        Ok(1)
    }
}

/// Of the argument nothing is kept.
#[guarded("detached", qps = 1)]
fn detached(name: &str) -> BoxFuture<'static, Answer<usize>> {
    let len = name.len();
    Box::pin(async move { Ok(len) })
}

#[guarded("block", qps = 1)]
fn block(log: Log<'_>, n: u8) -> impl Future<Output = Answer<Box<dyn Fn() -> u8>>> {
    async move {
        log.borrow_mut().push("polled");
        if n == 0 {
            return Err(AppError::Broken);
        }
        Ok(Box::new(move || n))
    }
}

#[guarded("boxed block", qps = 1, fallback = later)]
fn boxed_block(name: String, (a, b): (u8, u8)) -> BoxFuture<'static, String> {
    Box::pin(async move { format!("{name} {a} {b}") })
}

fn later(name: String, pair: (u8, u8), _: Blocked) -> BoxFuture<'static, String> {
    Box::pin(async move { format!("{name} {pair:?}") })
}

#[guarded("fallback by reference", qps = 1, fallback = |name, n, _| n + u8::try_from(name.len()).unwrap())]
fn with_fallback(name: &str, n: u8) -> impl Future<Output = u8> {
    let n = n + u8::from(!name.is_empty());
    async move { n }
}

#[guarded("fallback on any", qps = 1, fallback_on = any, fallback = Ok(n + 10), hot(key = n, qps = 1))]
fn on_any(name: String, n: u8) -> BoxFuture<'static, Answer<u8>> {
    let is_empty = name.is_empty();
    Box::pin(async move { if is_empty { Err(AppError::Broken) } else { Ok(n) } })
}

#[guarded("keyed", hot(key = name, qps = 1))]
fn keyed(mut name: String) -> impl Future<Output = Answer<String>> {
    async move {
        name.push('!');
        Ok(name)
    }
}

#[guarded("keyed, with a fallback", hot(key = name, qps = 1), fallback = |name: String, _| Ok(name + "?"))]
fn keyed_with_fallback(mut name: String) -> impl Future<Output = Answer<String>> {
    async move {
        name.push('!');
        Ok(name)
    }
}

#[guarded("keyed, boxed", hot(key = name, qps = 1))]
fn keyed_boxed(mut name: String) -> BoxFuture<'static, Answer<String>> {
    name.push('!');
    Box::pin(async move { Ok(name) })
}

/// Aliases of one name may mean different things: what they yield is seen from their type.
mod aliases {
    use super::{Blocked, Future, Pin, guarded};

    type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

    #[guarded("aliases", qps = 1)]
    pub(super) fn of_two(n: u8) -> BoxFuture<u8, Blocked> {
        Box::pin(async move { Ok(n) })
    }
}

#[guarded("unpin", qps = 1)]
fn unpin(n: u8) -> impl Future<Output = Answer<u8>> + Unpin {
    ready(Ok(n))
}

// E02
#[test]
fn what_stands_before_a_future_runs_once_when_the_function_is_called_and_the_call_enters_when_it_is_polled() {
    let (registry, log) = (registry(), RefCell::new(vec![]));
    registry.scope(|| {
        let mut future = boxed(&log, "a".into());
        assert_eq!((log.borrow().as_slice(), counts(&registry, "boxed")), (&["called"][..], None));
        assert!(poll(future.as_mut()).is_pending());
        assert_eq!(counts(&registry, "boxed"), Some([1, 0, 0, 0, 0, 0, 1]));
        assert!(matches!(poll(future.as_mut()), Poll::Ready(Ok(name)) if name == "a"));
        assert_eq!(*log.borrow(), ["called", "polled", "over"]);
        assert_eq!(counts(&registry, "boxed"), Some([1, 0, 1, 0, 0, 0, 0]));

        assert!(matches!(now(boxed(&log, String::new())), Err(AppError::Broken)));
        assert!(
            matches!(now(boxed(&log, "a".into())), Err(AppError::Blocked(by)) if by.cause() == Cause::Flow)
        );
        assert_eq!(log.borrow_mut().drain(3..).collect::<Vec<_>>(), ["called", "called"]);
        assert_eq!(counts(&registry, "boxed"), Some([2, 1, 1, 1, 0, 0, 0]));
    });
}

#[test]
fn a_future_that_is_dropped_was_not_called_before_its_first_poll_and_is_cancelled_after_it() {
    let (registry, log) = (registry(), RefCell::new(vec![]));
    registry.scope(|| {
        drop(boxed(&log, "a".into()));
        assert_eq!(counts(&registry, "boxed"), None);
        let mut future = boxed(&log, "a".into());
        assert!(poll(future.as_mut()).is_pending());
        drop(future);
        assert_eq!(counts(&registry, "boxed"), Some([1, 0, 0, 0, 0, 1, 0]));
    });
}

#[test]
fn every_form_of_a_returned_future_is_guarded() {
    let (registry, log) = (registry(), RefCell::new(vec![]));
    registry.scope(|| {
        assert!(matches!(now(opaque(&log)), Ok(1)));
        assert!(now(opaque(&log)).is_err());
        assert_eq!(*log.borrow(), ["called", "polled", "called"]);
        assert_eq!(now(detached(&String::from("abc"))).unwrap(), 3);
        assert!(now(detached("abc")).is_err());
        assert_eq!(now(block(&log, 3)).unwrap()(), 3);
        assert!(matches!(now(block(&log, 3)), Err(AppError::Blocked(_))));
        assert_eq!(
            [now(boxed_block("a".into(), (1, 2))), now(boxed_block("a".into(), (1, 2)))],
            ["a 1 2", "a (1, 2)"]
        );
        assert_eq!([now(with_fallback("abc", 1)), now(with_fallback("abc", 1))], [2, 4]);
        assert_eq!((now(aliases::of_two(1)).unwrap(), now(unpin(2)).unwrap()), (1, 2));
        assert!(now(aliases::of_two(1)).is_err() && now(unpin(2)).is_err());
        for (resource, expected) in
            [("opaque", [1, 1, 1]), ("detached", [1, 1, 1]), ("block", [1, 1, 1]), ("boxed block", [1, 1, 1])]
        {
            let counts = counts(&registry, resource).unwrap();
            assert_eq!(counts[..3], expected, "{resource}");
        }
    });
}

#[test]
fn a_returned_future_falls_back_on_errors_and_is_told_apart_by_keys() {
    let registry = registry();
    registry.scope(|| {
        assert_eq!(now(on_any(String::new(), 1)).unwrap(), 11);
        assert_eq!(now(on_any("a".into(), 2)).unwrap(), 12);
        assert_eq!(counts(&registry, "fallback on any"), Some([1, 1, 0, 1, 0, 0, 0]));
        let call = |name: &str| now(keyed_with_fallback(name.into())).unwrap();
        assert_eq!([call("a"), call("a"), call("b")], ["a!", "a?", "b!"]);
        for call in [|name: &str| now(keyed(name.into())), |name: &str| now(keyed_boxed(name.into()))] {
            assert_eq!((call("a").unwrap(), call("b").unwrap()), ("a!".into(), "b!".into()));
            assert!(matches!(call("a"), Err(AppError::Blocked(by)) if by.cause() == Cause::Hot));
        }
    });
}

// E25
#[test]
fn a_returned_future_is_send_where_the_plain_one_is() {
    #[guarded("send")]
    fn sends(n: u8) -> impl Future<Output = Answer<u8>> {
        let n = n + 1;
        async move { Ok(n) }
    }
    #[guarded("stays")]
    fn stays(n: Rc<u8>) -> impl Future<Output = Answer<u8>> {
        async move { Ok(*n) }
    }
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    registry().scope(|| {
        assert_eq!(now(is_send(sends(1))).unwrap(), 2);
        assert_eq!(now(stays(Rc::new(1))).unwrap(), 1);
    });
}

#[guarded("locks", qps = 0, fallback = lock.try_lock().map_or(0, |n| *n + 1))]
fn locks(lock: &Mutex<u8>) -> impl Future<Output = u8> {
    let held = lock.lock().unwrap();
    async move { *held }
}

#[test]
fn what_a_body_has_made_is_dropped_before_another_answers() {
    registry().scope(|| assert_eq!(now(locks(&Mutex::new(1))), 2));
}

type Large = [u8; 8 * 1024];

/// Futures that hold a large argument while they wait, each written once and compiled twice.
macro_rules! large {
    ($(@[$($args:tt)*] $item:item)*) => {
        mod plain_sizes {
            use super::*;
            $($item)*
        }
        mod guarded_sizes {
            use super::*;
            $(#[guarded($($args)*)] $item)*
        }
    };
}

large! {
    @[]
    pub(super) fn made(x: Large) -> impl Future<Output = Answer<u8>> {
        let y = x;
        async move {
            pause().await;
            Ok(y[0])
        }
    }

    @[hot(key = x.len(), qps = 1)]
    pub(super) fn keyed(x: Large) -> impl Future<Output = Answer<u8>> {
        async move {
            pause().await;
            Ok(x[0])
        }
    }

    @[fallback = |x: Large, _| Ok(x[1])]
    pub(super) fn falling_back(mut x: Large) -> impl Future<Output = Answer<u8>> {
        async move {
            x[0] = 1;
            pause().await;
            Ok(x[0])
        }
    }
}

// E24
#[test]
fn a_returned_future_is_at_most_one_copy_of_the_arguments_and_256_bytes_larger() {
    let x = [0; 8 * 1024];
    for (name, plain, guarded) in [
        ("made", size_of_val(&plain_sizes::made(x)), size_of_val(&guarded_sizes::made(x))),
        ("keyed", size_of_val(&plain_sizes::keyed(x)), size_of_val(&guarded_sizes::keyed(x))),
        (
            "falling back",
            size_of_val(&plain_sizes::falling_back(x)),
            size_of_val(&guarded_sizes::falling_back(x)),
        ),
    ] {
        assert!(guarded <= plain + x.len() + 256, "{name}: {guarded} against {plain}");
    }
}

// --- async_trait ---

#[async_trait]
trait Store: Sync {
    async fn read(&self, key: &str) -> Answer<String>;

    async fn slow(&self) -> Answer<()>;

    #[guarded("async_trait default", qps = 1)]
    async fn with_body(&self, n: u8) -> Answer<u8> {
        pause().await;
        Ok(n)
    }
}

struct Inside(u8);

#[async_trait]
impl Store for Inside {
    #[guarded(qps = 1, fallback = Self::last_known)]
    async fn read(&self, key: &str) -> Answer<String> {
        pause().await;
        if key.is_empty() {
            return Err(AppError::Broken);
        }
        Ok(format!("{key}{}", self.0))
    }

    #[guarded("async_trait slow")]
    async fn slow(&self) -> Answer<()> {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(AppError::Broken)
    }
}

impl Inside {
    async fn last_known(&self, key: &str, _: Blocked) -> Answer<String> {
        ready(()).await;
        Ok(format!("{key}?"))
    }
}

struct Before;

#[guarded(qps = 1)]
#[async_trait]
impl Store for Before {
    async fn read(&self, key: &str) -> Answer<String> {
        pause().await;
        Ok(key.to_owned())
    }

    async fn slow(&self) -> Answer<()> {
        pause().await;
        Ok(())
    }
}

struct After;

#[async_trait]
#[guarded(qps = 1)]
impl Store for After {
    async fn read(&self, key: &str) -> Answer<String> {
        pause().await;
        Ok(key.to_owned())
    }

    async fn slow(&self) -> Answer<()> {
        pause().await;
        Ok(())
    }
}

/// Polls a future that waits once.
fn soon<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    assert!(poll(future.as_mut()).is_pending(), "the future does not wait");
    match poll(future) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits twice"),
    }
}

// E01
#[test]
fn methods_of_async_trait_are_guarded_as_async_functions_in_either_order() {
    let registry = registry();
    registry.scope(|| {
        let inside: &dyn Store = &Inside(7);
        assert_eq!(soon(inside.read("a")).unwrap(), "a7");
        assert_eq!(now(inside.read("a")).unwrap(), "a?");
        let name = "<returned_futures::Inside as returned_futures::Store>::read";
        assert_eq!(counts(&registry, name), Some([1, 1, 1, 0, 0, 0, 0]));

        assert_eq!(soon(inside.with_body(1)).unwrap(), 1);
        assert!(now(Before.with_body(1)).is_err());

        for (store, name) in [(&Before as &dyn Store, "Before"), (&After, "After")] {
            let mut future = store.read("a");
            assert!(poll(future.as_mut()).is_pending());
            let read = format!("<returned_futures::{name} as returned_futures::Store>::read");
            assert_eq!(counts(&registry, &read), Some([1, 0, 0, 0, 0, 0, 1]));
            assert!(matches!(poll(future.as_mut()), Poll::Ready(Ok(_))));
            assert!(matches!(now(store.read("a")), Err(AppError::Blocked(_))));
            soon(store.slow()).unwrap();
            assert_eq!(counts(&registry, &read), Some([1, 1, 1, 0, 0, 0, 0]));
        }
    });
}

// E01
#[tokio::test(start_paused = true)]
async fn a_method_of_async_trait_is_timed_until_it_is_ready() {
    let registry = Registry::builder().clock(TokioClock::new()).build();
    let slow = tokio::spawn({
        let registry = registry.clone();
        async move { Inside(1).slow().in_registry(&registry).await }
    });
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(counts(&registry, "async_trait slow"), Some([1, 0, 0, 0, 0, 0, 1]));
    assert!(slow.await.unwrap().is_err());
    let stats = registry.stats("async_trait slow").unwrap();
    assert_eq!(stats.minute().rt_max(), Some(Duration::from_millis(50)));
    assert_eq!(counts(&registry, "async_trait slow"), Some([1, 0, 0, 1, 0, 0, 0]));
}

// --- Streams ---

/// Yields its items; waits for each `None`.
struct Items<T>(VecDeque<Option<T>>);

impl<T: Unpin> Stream for Items<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(None) => Poll::Pending,
            Some(item) => Poll::Ready(item),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.0.len()))
    }
}

fn items<T>(items: impl IntoIterator<Item = Option<T>>) -> Items<T> {
    Items(items.into_iter().collect())
}

fn next<S: Stream>(stream: &mut Pin<Box<S>>) -> Poll<Option<S::Item>> {
    stream.as_mut().poll_next(&mut Context::from_waker(Waker::noop()))
}

fn all<S: Stream>(stream: S) -> Vec<S::Item> {
    let mut stream = Box::pin(stream);
    let mut all = vec![];
    loop {
        match next(&mut stream) {
            Poll::Ready(None) => return all,
            Poll::Ready(Some(item)) => all.push(item),
            Poll::Pending => {}
        }
    }
}

#[guarded("stream", qps = 3, ignore(AppError::Blocked(_)))]
fn stream(log: Log<'_>, with: Vec<Option<Answer<u8>>>) -> impl Stream<Item = Answer<u8>> {
    log.borrow_mut().push("called");
    items(with)
}

#[guarded("boxed stream", qps = 1, fallback = others)]
fn boxed_stream(from: u8) -> BoxStream<'static, u8> {
    Box::pin(items((from..3).map(Some)))
}

fn others(from: u8, _: Blocked) -> BoxStream<'static, u8> {
    Box::pin(items([Some(from)]))
}

#[guarded("queued stream", max_concurrency = 1, queue_ms = 1_000, hot(key = name, qps = 10), fallback = items([Some(0)]))]
fn queued_stream(name: &str) -> impl Stream<Item = u8> + use<> {
    items([Some(u8::try_from(name.len()).unwrap()), None])
}

#[test]
fn the_call_of_a_stream_lasts_from_its_first_poll_to_its_end() {
    let (registry, log) = (registry(), RefCell::new(vec![]));
    registry.scope(|| {
        let mut stream = Box::pin(stream(&log, vec![Some(Ok(1)), None, Some(Ok(2))]));
        assert_eq!(
            (log.borrow().len(), stream.size_hint(), counts(&registry, "stream")),
            (1, (0, None), None)
        );
        assert!(matches!(next(&mut stream), Poll::Ready(Some(Ok(1)))));
        assert_eq!(stream.size_hint(), (0, Some(2)));
        assert!(next(&mut stream).is_pending());
        assert_eq!(counts(&registry, "stream"), Some([1, 0, 0, 0, 0, 0, 1]));
        assert!(matches!(next(&mut stream), Poll::Ready(Some(Ok(2)))));
        assert!(matches!(next(&mut stream), Poll::Ready(None)));
        assert_eq!(counts(&registry, "stream"), Some([1, 0, 1, 0, 0, 0, 0]));
        drop(stream);
        assert_eq!(counts(&registry, "stream"), Some([1, 0, 1, 0, 0, 0, 0]));
    });
}

#[test]
fn a_stream_ends_as_its_worst_item_does_and_is_cancelled_if_it_is_dropped_before() {
    let (registry, log) = (registry(), RefCell::new(vec![]));
    registry.scope(|| {
        // An error in its midst, with which its reader leaves.
        let mut one = Box::pin(stream(&log, vec![Some(Ok(1)), Some(Err(AppError::Broken)), Some(Ok(2))]));
        assert!(matches!((next(&mut one), next(&mut one)), (_, Poll::Ready(Some(Err(_))))));
        drop(one);
        assert_eq!(counts(&registry, "stream"), Some([1, 0, 0, 1, 0, 0, 0]));
        // Left for no reason.
        let mut one = Box::pin(stream(&log, vec![Some(Ok(1)), Some(Ok(2))]));
        assert!(next(&mut one).is_ready());
        drop(one);
        assert_eq!(counts(&registry, "stream"), Some([2, 0, 0, 1, 0, 1, 0]));
        // Never polled.
        drop(stream(&log, vec![]));
        assert_eq!(counts(&registry, "stream"), Some([2, 0, 0, 1, 0, 1, 0]));
        assert!(all(stream(&log, vec![])).is_empty());
        assert_eq!(counts(&registry, "stream"), Some([3, 0, 1, 1, 0, 1, 0]));
    });
}

#[test]
fn a_blocked_stream_yields_the_block_as_its_only_item_or_what_its_fallback_gives() {
    let (registry, log) = (registry(), RefCell::new(vec![]));
    registry.scope(|| {
        for _ in 0..3 {
            assert_eq!(all(stream(&log, vec![Some(Ok(1))])).len(), 1);
        }
        let blocked = all(stream(&log, vec![Some(Ok(1)), Some(Ok(2))]));
        assert!(matches!(blocked[..], [Err(AppError::Blocked(_))]), "{blocked:?}");
        assert_eq!([all(boxed_stream(1)), all(boxed_stream(1))], [vec![1, 2], vec![1]]);
        assert_eq!(counts(&registry, "boxed stream"), Some([1, 1, 1, 0, 0, 0, 0]));
    });
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_in_the_queue_without_a_thread() {
    let registry = Registry::builder().clock(TokioClock::new()).build();
    let scope = |mut stream: Pin<Box<dyn Stream<Item = u8> + Send>>| async move {
        poll_fn(move |context| stream.as_mut().poll_next(context)).await
    };
    let mut first: Pin<Box<dyn Stream<Item = u8> + Send>> = Box::pin(queued_stream("abc"));
    let held = registry.scope(|| first.as_mut().poll_next(&mut Context::from_waker(Waker::noop())));
    assert_eq!(held, Poll::Ready(Some(3)));
    let waiting = scope(Box::pin(queued_stream("ab"))).in_registry(&registry);
    let late = scope(Box::pin(queued_stream("a"))).in_registry(&registry);
    let (waiting, late) = (tokio::spawn(waiting), late);
    tokio::task::yield_now().await;
    drop(first);
    assert_eq!(waiting.await.unwrap(), Some(2));
    assert_eq!(late.await, Some(1));
}
