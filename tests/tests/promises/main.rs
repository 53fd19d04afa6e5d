//! What leap promises to those who have used another port of Sentinel, and know what goes wrong there.
//!
//! | known to go wrong | the promise |
//! | --- | --- |
//! | cancelled futures, panics and `?` leave calls in flight for ever | [`leaks`]: whatever a call had taken comes back, under every kind of rule |
//! | rules that watch another resource do nothing | [`associated`]: they hold |
//! | throttling puts the executor's thread to sleep | [`executor`]: it stays free, and nobody waits longer because another one gave up |
//! | under contention more calls pass than the limit says | [`contention`]: exactly the limit, each time |
//! | a rule that makes no sense panics, or is dropped | [`configuration`]: it is an error that names what is wrong, and replaces nothing |
//!
//! Everything goes through `#[guarded]` and the public API.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod associated;
mod configuration;
mod contention;
mod executor;
mod leaks;

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leap_runtime::{Blocked, InRegistry, ManualClock, Registry, RuleSet, Timestamp};

#[derive(Debug)]
enum AppError {
    Down,
    Blocked(Blocked),
}

impl From<Blocked> for AppError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

type Answer = Result<(), AppError>;

/// How the body of a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Ends,
    /// Leaves by `?`.
    Fails,
    Panics,
    /// Runs until it is cancelled.
    Hangs,
}

impl Way {
    async fn go(self) -> Answer {
        match self {
            Self::Hangs => pending().await,
            other => other.go_at_once(),
        }
    }

    /// As [`go`](Self::go), for bodies that cannot be cancelled.
    #[expect(clippy::panic, reason = "that is the question")]
    fn go_at_once(self) -> Answer {
        match self {
            Self::Ends => Ok(()),
            Self::Fails => {
                Err(AppError::Down)?;
                Ok(())
            }
            Self::Panics | Self::Hangs => panic!("in the body"),
        }
    }
}

/// What became of a call so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It runs, or waits.
    Pending,
    Ended,
    Failed,
    Panicked,
    Blocked,
}

/// A call of a guarded async function. Dropping it cancels it.
struct Call(Pin<Box<dyn Future<Output = Answer>>>);

impl Call {
    fn poll(&mut self) -> Told {
        let mut context = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(&mut context))) {
            Ok(Poll::Pending) => Told::Pending,
            Ok(Poll::Ready(answer)) => told(&answer),
            Err(_) => Told::Panicked,
        }
    }

    /// One that has been polled, which is to say that it has tried to enter.
    fn tried(mut self) -> (Self, Told) {
        let told = self.poll();
        (self, told)
    }
}

fn told(answer: &Answer) -> Told {
    match answer {
        Ok(()) => Told::Ended,
        Err(AppError::Down) => Told::Failed,
        Err(AppError::Blocked(_)) => Told::Blocked,
    }
}

/// A registry of its own on a clock that is moved by hand: nothing happens by itself.
struct Bench {
    registry: Registry,
    clock: ManualClock,
}

impl Bench {
    fn new() -> Self {
        Self::with(RuleSet::new())
    }

    fn with(rules: RuleSet) -> Self {
        let clock = ManualClock::new();
        let registry = Registry::builder().clock(clock.clone()).build();
        registry.load(rules).unwrap();
        Self { registry, clock }
    }

    fn at(&self, ms: u64) {
        self.clock.set(Timestamp::from_millis(ms));
    }

    fn call(&self, call: impl Future<Output = Answer> + 'static) -> Call {
        Call(Box::pin(call.in_registry(&self.registry)))
    }

    /// Calls in flight, those that wait for their start, and those that queue.
    fn under_way(&self, resource: &str) -> [u64; 3] {
        let stats = self.registry.stats(resource).unwrap();
        [stats.in_flight(), stats.waiting(), stats.queued()]
    }
}

const NOBODY: [u64; 3] = [0, 0, 0];

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
