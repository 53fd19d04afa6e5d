//! What the resources of one registry share: its clock, its settings, and who watches.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::clock::{Clock, SystemClock, Timestamp};
use crate::event::{ContainedPanic, Observer};

/// The clock of a registry. The usual one is called directly, so that reading it can be inlined.
#[derive(Debug)]
pub(crate) enum AnyClock {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

/// Shared by a registry and its resources.
pub(crate) struct Environment {
    clock: AnyClock,
    second_buckets: u32,
    observers: ArcSwap<Vec<Arc<dyn Observer>>>,
    /// Spares the usual call a look at an empty list.
    is_observed: AtomicBool,
    contained_panics: AtomicU64,
}

impl Environment {
    pub(crate) fn new(clock: AnyClock, second_buckets: u32, observers: Vec<Arc<dyn Observer>>) -> Self {
        Self {
            clock,
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
