//! A clock that can be made to stand, so that what time costs is told from what caches do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use leap_runtime::{Clock, SystemClock, Timestamp};

/// The system's clock, read with every question; while it stands, the moment at which it stopped is the answer.
#[derive(Clone, Debug)]
pub(crate) struct Halting(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    system: SystemClock,
    /// In ns; 0 while it runs.
    stands_at: AtomicU64,
}

impl Halting {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { system: SystemClock::new(), stands_at: AtomicU64::new(0) }))
    }

    /// It stands as long as `body` runs.
    pub(crate) fn stand<R>(&self, body: impl FnOnce() -> R) -> R {
        self.0.stands_at.store(self.0.system.now().as_nanos(), Relaxed);
        let value = body();
        self.0.stands_at.store(0, Relaxed);
        value
    }
}

impl Clock for Halting {
    fn now(&self) -> Timestamp {
        let now = self.0.system.now();
        match self.0.stands_at.load(Relaxed) {
            0 => now,
            stopped => Timestamp::from_nanos(stopped),
        }
    }
}
