//! Calls that wait, polled by hand, and clocks that tell what they were asked.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail by it")]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use leap_runtime::{
    Blocked, Clock, EnterWith, Entry, ManualClock, Outcome, Registry, RuleSet, Sleep, Timestamp,
};

use super::R;

/// An async call by name. Dropping it cancels it.
pub(crate) struct Call<'a> {
    future: Pin<Box<dyn Future<Output = Result<Entry, Blocked>> + Send + 'a>>,
    bell: Arc<Bell>,
}

/// Counts how often a task was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<'a> Call<'a> {
    /// Not polled yet.
    pub(crate) fn new(call: EnterWith<'a>) -> Self {
        Self { future: Box::pin(call.enter_async()), bell: Arc::default() }
    }

    /// A call that has been polled and waits.
    #[track_caller]
    pub(crate) fn waiting(call: EnterWith<'a>) -> Self {
        let mut call = Self::new(call);
        let polled = call.poll();
        assert!(polled.is_pending(), "{polled:?}");
        call
    }

    pub(crate) fn poll(&mut self) -> Poll<Result<Entry, Blocked>> {
        let waker = Waker::from(Arc::clone(&self.bell));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    #[track_caller]
    pub(crate) fn is_waiting(&mut self) -> bool {
        match self.poll() {
            Poll::Pending => true,
            Poll::Ready(entered) => panic!("it has gone on: {entered:?}"),
        }
    }

    /// It passes now.
    #[track_caller]
    pub(crate) fn entry(&mut self) -> Entry {
        match self.poll() {
            Poll::Ready(Ok(entry)) => entry,
            other => panic!("it does not pass: {other:?}"),
        }
    }

    /// It is blocked now.
    #[track_caller]
    pub(crate) fn blocked(&mut self) -> Blocked {
        match self.poll() {
            Poll::Ready(Err(blocked)) => blocked,
            other => panic!("it is not blocked: {other:?}"),
        }
    }

    /// Whether it was woken since it was last asked.
    pub(crate) fn was_woken(&self) -> bool {
        self.bell.0.swap(0, Ordering::Relaxed) > 0
    }
}

/// A manual clock that keeps each moment until which somebody asked to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diary {
    pub(crate) clock: ManualClock,
    asked: Arc<Mutex<Vec<Timestamp>>>,
}

impl Diary {
    fn note(&self, until: Timestamp) {
        // Zero is only the question whether it wakes anybody at all.
        if until > Timestamp::ZERO {
            self.asked.lock().unwrap().push(until);
        }
    }

    pub(crate) fn take(&self) -> Vec<Timestamp> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Clock for Diary {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn park_until(&self, until: Timestamp) {
        self.note(until);
        self.clock.park_until(until);
    }

    fn wake_at(&self, until: Timestamp, waker: &Waker) -> bool {
        self.note(until);
        self.clock.wake_at(until, waker)
    }
}

/// Calls of [`R`] whose waits are known to the nanosecond when they ask.
pub(crate) struct Line {
    pub(crate) registry: Registry,
    pub(crate) diary: Diary,
}

impl Line {
    pub(crate) fn new(rules: RuleSet) -> Self {
        let diary = Diary::default();
        let registry = Registry::builder().clock(diary.clone()).build();
        registry.load(rules).unwrap();
        Self { registry, diary }
    }

    /// How long the call has to wait, with the call, whose turn is given back when it is dropped.
    pub(crate) fn ask<'a>(&self, call: EnterWith<'a>) -> Result<(Duration, Call<'a>), Blocked> {
        let mut call = Call::new(call);
        self.diary.take();
        match call.poll() {
            Poll::Ready(Ok(entry)) => {
                entry.end(Outcome::Success);
                Ok((Duration::ZERO, call))
            }
            Poll::Ready(Err(blocked)) => Err(blocked),
            Poll::Pending => Ok((self.diary.take()[0].since(self.diary.now()), call)),
        }
    }

    /// The waits of calls of so many permits that arrive now, one after another; none for those that are blocked. All
    /// keep their turns.
    pub(crate) fn waits(&self, permits: impl IntoIterator<Item = u32>) -> Vec<Option<Duration>> {
        let ask = |n| {
            let (wait, call) = self.ask(self.registry.enter_with(R).permits(n)).ok()?;
            std::mem::forget(call);
            Some(wait)
        };
        permits.into_iter().map(ask).collect()
    }
}

/// A clock that wakes nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silent(pub(crate) ManualClock);

impl Clock for Silent {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// A timer that sleeps by a manual clock.
pub(crate) struct ByClock(pub(crate) ManualClock);

impl Sleep for ByClock {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (clock, until) = (self.0.clone(), self.0.now().saturating_add(time));
        Box::pin(std::future::poll_fn(move |context| {
            if clock.now() < until && clock.wake_at(until, context.waker()) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        }))
    }
}

/// Lets other threads run until it is so.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}
