//! Functions of every kind, each written once and compiled twice, plain and guarded: whichever way out a call takes, both
//! return the same and drop the same things in the same order, and the guarded one is counted once.
#![expect(
    clippy::manual_async_fn,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "functions of every shape, which stand here for their shape"
)]

use std::cell::RefCell;
use std::future::{Future, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use leap_runtime::{Blocked, ManualClock, Registry, ResourceStats};

/// What happened, in order.
type Log = Rc<RefCell<Vec<String>>>;

/// Tells when it is dropped.
struct Traced {
    name: &'static str,
    log: Log,
}

impl Traced {
    fn new(name: &'static str, log: &Log) -> Self {
        Self { name, log: Rc::clone(log) }
    }

    fn say(&self, what: &str) {
        self.log.borrow_mut().push(format!("{} {what}", self.name));
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.say("dropped");
    }
}

#[derive(Debug, PartialEq)]
enum AppError {
    Early,
    Question,
    Blocked,
}

impl From<Blocked> for AppError {
    fn from(_: Blocked) -> Self {
        Self::Blocked
    }
}

/// The way that a call takes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Ok,
    Early,
    Question,
    Panic,
    NeverPolled,
    DroppedAtAnAwait,
}

use Way::{DroppedAtAnAwait, Early, NeverPolled, Panic, Question};

fn question(way: Way) -> Result<(), AppError> {
    if way == Question { Err(AppError::Question) } else { Ok(()) }
}

/// Waits once.
async fn pause() {
    let mut has_waited = false;
    poll_fn(|_| if std::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

type Answer = Result<&'static str, AppError>;
type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What is compiled twice, in `plain` and in `guarded`.
macro_rules! twins {
    ($(@[$($args:tt)*] $item:item)*) => {
        mod plain {
            use super::*;
            pub(super) struct Shop(pub(super) Traced);
            $($item)*
        }
        mod guarded {
            use super::*;
            pub(super) struct Shop(pub(super) Traced);
            $(#[leap_runtime::guarded($($args)*)] $item)*
        }
    };
}

twins! {
    @["twins sync"]
    pub(super) fn sync(first: Traced, (second, _): (Traced, Traced), _: Traced, way: Way) -> Answer {
        let local = Traced::new("local", &first.log);
        if way == Early {
            return Err(AppError::Early);
        }
        question(way)?;
        let _moved = first;
        assert!(way != Panic, "as told");
        local.say("ran");
        second.say("ran");
        Ok("over")
    }

    @["twins async"]
    pub(super) async fn asynchronous(first: Traced, (second, _): (Traced, Traced), _: Traced, way: Way) -> Answer {
        let local = Traced::new("local", &first.log);
        if way == Early {
            return Err(AppError::Early);
        }
        question(way)?;
        pause().await;
        let _moved = first;
        assert!(way != Panic, "as told");
        local.say("ran");
        second.say("ran");
        Ok("over")
    }

    @["twins boxed block"]
    pub(super) fn boxed_block(first: Traced, _second: Traced, third: &Traced, way: Way) -> LocalBoxFuture<'_, Answer> {
        Box::pin(async move {
            let local = Traced::new("local", &first.log);
            if way == Early {
                return Err(AppError::Early);
            }
            question(way)?;
            pause().await;
            assert!(way != Panic, "as told");
            third.say("ran");
            local.say("ran");
            Ok("over")
        })
    }

    @["twins opaque block"]
    pub(super) fn opaque_block(first: Traced, second: Traced, way: Way) -> impl Future<Output = Answer> {
        async move {
            let _local = Traced::new("local", &first.log);
            question(way)?;
            pause().await;
            if way == Early {
                return Err(AppError::Early);
            }
            assert!(way != Panic, "as told");
            second.say("ran");
            Ok("over")
        }
    }

    @["twins made"]
    pub(super) fn made(first: Traced, (second, _): (Traced, Traced), way: Way) -> LocalBoxFuture<'static, Answer> {
        first.say("before");
        if way == Early {
            return Box::pin(ready(Err(AppError::Early)));
        }
        Box::pin(async move {
            second.say("polled");
            question(way)?;
            pause().await;
            assert!(way != Panic, "as told");
            Ok("over")
        })
    }

    @[ignore(AppError::Blocked)]
    impl Shop {
        pub(super) fn by_value(self, first: Traced, way: Way) -> Answer {
            let Self(inner) = self;
            if way == Early {
                return Err(AppError::Early);
            }
            question(way)?;
            assert!(way != Panic, "as told");
            inner.say("ran");
            drop(first);
            Ok("over")
        }

        pub(super) async fn in_a_box(self: Box<Self>, first: Traced, way: Way) -> Answer {
            first.say("polled");
            if way == Early {
                return Err(AppError::Early);
            }
            question(way)?;
            pause().await;
            assert!(way != Panic, "as told");
            self.0.say("ran");
            Ok("over")
        }

        pub(super) async fn by_reference(&self, _first: Traced, way: Way) -> Answer {
            if way == Early {
                return Err(AppError::Early);
            }
            question(way)?;
            pause().await;
            assert!(way != Panic, "as told");
            self.0.say("ran");
            Ok("over")
        }
    }
}

/// What became of a call: what it returned, if it came so far, or what it panicked with; and the log.
type Trace = (Result<Option<Answer>, String>, Vec<String>);

fn trace(call: impl FnOnce(&Log) -> Option<Answer>) -> Trace {
    let log = Log::default();
    let end = catch_unwind(AssertUnwindSafe(|| call(&log)));
    let end = end.map_err(|panic| (*panic.downcast_ref::<&str>().unwrap_or(&"another panic")).to_owned());
    (end, Rc::try_unwrap(log).expect("all is dropped").into_inner())
}

/// Runs a future along the way.
fn along(way: Way, future: impl Future<Output = Answer>) -> Option<Answer> {
    let mut future = Box::pin(future);
    for n_polls in 0..3 {
        if way == NeverPolled || (way == DroppedAtAnAwait && n_polls == 1) {
            return None;
        }
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(answer);
        }
    }
    panic!("it waits for ever");
}

fn three(log: &Log) -> (Traced, (Traced, Traced), Traced) {
    (Traced::new("a", log), (Traced::new("b", log), Traced::new("c", log)), Traced::new("d", log))
}

/// The calls of one of the twins, by their kind; whether it can be dropped half-way; and the resource of the guarded one.
macro_rules! calls {
    ($twin:ident, $way:expr) => {{
        let way: Way = $way;
        let calls: [(&str, bool, Trace); 8] = [
            (
                "twins sync",
                false,
                trace(|log| {
                    let (a, b, d) = three(log);
                    Some($twin::sync(a, b, d, way))
                }),
            ),
            (
                "twins async",
                true,
                trace(|log| {
                    let (a, b, d) = three(log);
                    along(way, $twin::asynchronous(a, b, d, way))
                }),
            ),
            (
                "twins boxed block",
                true,
                trace(|log| {
                    let (a, (b, c), _d) = three(log);
                    along(way, $twin::boxed_block(a, b, &c, way))
                }),
            ),
            (
                "twins opaque block",
                true,
                trace(|log| {
                    let (a, (b, _c), _d) = three(log);
                    along(way, $twin::opaque_block(a, b, way))
                }),
            ),
            (
                "twins made",
                true,
                trace(|log| {
                    let (a, b, _d) = three(log);
                    along(way, $twin::made(a, b, way))
                }),
            ),
            (
                "twins::guarded::Shop::by_value",
                false,
                trace(|log| {
                    let (a, (b, _c), _d) = three(log);
                    Some($twin::Shop(b).by_value(a, way))
                }),
            ),
            (
                "twins::guarded::Shop::in_a_box",
                true,
                trace(|log| {
                    let (a, (b, _c), _d) = three(log);
                    along(way, Box::new($twin::Shop(b)).in_a_box(a, way))
                }),
            ),
            (
                "twins::guarded::Shop::by_reference",
                true,
                trace(|log| {
                    let (a, (b, _c), _d) = three(log);
                    let shop = $twin::Shop(b);
                    along(way, shop.by_reference(a, way))
                }),
            ),
        ];
        calls
    }};
}

/// Passed, success, exception, ignored, cancelled, in flight.
fn counts(stats: &ResourceStats) -> [u64; 6] {
    let all = stats.totals();
    [all.passed(), all.success(), all.exception(), all.ignored(), all.cancelled(), stats.in_flight()]
}

// E16, E17, E28, F01
#[test]
fn whichever_way_out_a_call_takes_it_ends_as_that_of_the_plain_function_and_is_counted_once() {
    for way in [Way::Ok, Early, Question, Panic, NeverPolled, DroppedAtAnAwait] {
        let registry = Registry::builder().clock(ManualClock::new()).build();
        let plain = calls!(plain, way);
        let guarded = registry.scope(|| calls!(guarded, way));
        for ((name, waits, plain), (_, _, guarded)) in plain.into_iter().zip(guarded) {
            assert_eq!(guarded, plain, "{name}, {way:?}");
            let expected = match way {
                NeverPolled if waits => None,
                DroppedAtAnAwait if waits => Some([1, 0, 0, 0, 1, 0]),
                Way::Ok | NeverPolled | DroppedAtAnAwait => Some([1, 1, 0, 0, 0, 0]),
                Early | Question | Panic => Some([1, 0, 1, 0, 0, 0]),
            };
            assert_eq!(registry.stats(name).as_ref().map(counts), expected, "{name}, {way:?}");
        }
    }
}
