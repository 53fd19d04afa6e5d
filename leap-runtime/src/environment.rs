//! What the resources of one registry share: its clock, its settings, and who watches.
#![cfg_attr(not(test), expect(dead_code, reason = "no call waits yet"))]

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use arc_swap::ArcSwap;

use crate::clock::{Clock, SystemClock, Timestamp};
use crate::event::{ContainedPanic, Observer};
use crate::timer::{Alarm, Sleep};

/// The clock of a registry. The usual one is called directly, so that reading it can be inlined.
#[derive(Debug)]
pub(crate) enum AnyClock {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

/// Shared by a registry and its resources.
pub(crate) struct Environment {
    clock: AnyClock,
    timer: Option<Box<dyn Sleep>>,
    second_buckets: u32,
    observers: ArcSwap<Vec<Arc<dyn Observer>>>,
    /// Spares the usual call a look at an empty list.
    is_observed: AtomicBool,
    contained_panics: AtomicU64,
}

impl Environment {
    pub(crate) fn new(
        clock: AnyClock,
        timer: Option<Box<dyn Sleep>>,
        second_buckets: u32,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            clock,
            timer,
            second_buckets,
            is_observed: AtomicBool::new(!observers.is_empty()),
            observers: ArcSwap::from_pointee(observers),
            contained_panics: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        match &self.clock {
            AnyClock::System(clock) => clock.now(),
            AnyClock::Other(clock) => clock.now(),
        }
    }

    pub(crate) fn wall(&self) -> std::time::SystemTime {
        match &self.clock {
            AnyClock::System(clock) => clock.wall(),
            AnyClock::Other(clock) => clock.wall(),
        }
    }

    /// The clock, for those who wait.
    pub(crate) fn clock(&self) -> &dyn Clock {
        match &self.clock {
            AnyClock::System(clock) => clock,
            AnyClock::Other(clock) => &**clock,
        }
    }

    /// Whether an async call can wait here: the clock wakes it, or a timer does.
    pub(crate) fn can_wait(&self) -> bool {
        self.clock().wake_at(Timestamp::ZERO, Waker::noop())
            || self.timer.as_ref().is_some_and(|timer| timer.can_sleep())
    }

    /// The buckets that statistics cut the last second into.
    pub(crate) fn second_buckets(&self) -> u32 {
        self.second_buckets
    }

    pub(crate) fn observe(&self, observer: &Arc<dyn Observer>) {
        self.observers.rcu(|observers| {
            let mut observers = Vec::clone(observers);
            observers.push(Arc::clone(observer));
            observers
        });
        self.is_observed.store(true, Ordering::Release);
    }

    /// Whether there is anybody to tell.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.is_observed.load(Ordering::Acquire)
    }

    /// Tells every observer. A panic in one is contained and told to the others.
    pub(crate) fn tell(&self, event: impl Fn(&dyn Observer)) {
        let observers = self.observers.load_full();
        for (i, observer) in observers.iter().enumerate() {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| event(&**observer))) {
                let others = observers.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, other)| other);
                self.contained("observer", None, &*payload, others);
                // Dropping a payload is the panicking code's own business, and may panic again.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            }
        }
    }

    /// Runs code that is not ours; a panic in it is contained, counted and told.
    #[inline]
    pub(crate) fn contain<T>(
        &self,
        place: &'static str,
        resource: &str,
        code: impl FnOnce() -> T,
    ) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.contained(place, Some(resource), &*payload, self.observers.load_full().iter());
                let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
                None
            }
        }
    }

    #[cold]
    fn contained<'a>(
        &self,
        place: &'static str,
        resource: Option<&str>,
        payload: &(dyn Any + Send),
        observers: impl Iterator<Item = &'a Arc<dyn Observer>>,
    ) {
        self.contained_panics.fetch_add(1, Ordering::Relaxed);
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a payload that is not text");
        let panic = ContainedPanic { place, resource, message };
        for observer in observers {
            // An observer that panics about a panic is counted, and told to nobody.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| observer.on_panic(&panic))) {
                self.contained_panics.fetch_add(1, Ordering::Relaxed);
                let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            }
        }
    }

    pub(crate) fn contained_panics(&self) -> u64 {
        self.contained_panics.load(Ordering::Relaxed)
    }
}

impl Alarm {
    /// Ready when its moment has come in this environment.
    pub(crate) fn poll(&mut self, environment: &Environment, context: &mut Context<'_>) -> Poll<()> {
        self.poll_by(environment.clock(), environment.timer.as_deref(), context)
    }
}

/// A panic leaves nothing half-done in here: what a clock or an observer leaves in itself is its own business, as with
/// any global that a body might call.
impl UnwindSafe for Environment {}
impl RefUnwindSafe for Environment {}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("clock", &self.clock)
            .field("second_buckets", &self.second_buckets)
            .field("observers", &self.observers.load().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use std::future::{Future, ready};
    use std::pin::Pin;
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    /// A timer that is there, or is not.
    struct Is(bool);

    impl Sleep for Is {
        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(ready(()))
        }

        fn can_sleep(&self) -> bool {
            self.0
        }
    }

    fn environment(clock: AnyClock, timer: Option<Is>) -> Environment {
        Environment::new(clock, timer.map(|timer| Box::new(timer) as _), 10, vec![])
    }

    #[test]
    fn a_call_can_wait_where_the_clock_wakes_it_or_a_timer_does() {
        let system = || AnyClock::System(SystemClock::new());
        assert!(environment(AnyClock::Other(Arc::new(ManualClock::new())), None).can_wait());
        assert!(environment(system(), Some(Is(true))).can_wait());
        assert!(!environment(system(), Some(Is(false))).can_wait());
        assert!(!environment(system(), None).can_wait());
    }

    #[test]
    fn an_alarm_goes_off_by_the_clock_of_its_environment() {
        let clock = ManualClock::new();
        let environment = environment(AnyClock::Other(Arc::new(clock.clone())), None);
        let mut alarm = Alarm::new(Timestamp::from_millis(5));
        let mut poll = || alarm.poll(&environment, &mut Context::from_waker(Waker::noop()));
        assert_eq!(poll(), Poll::Pending);
        clock.advance(Duration::from_millis(5));
        assert_eq!(poll(), Poll::Ready(()));
    }
}
