//! The atomics and locks that the crate's words are made of: std's, or those of a model checker that runs the tests.
//!
//! Under `cfg(leap_loom)` and `cfg(leap_shuttle)` an atomic may be touched only inside a model, so what is no
//! word under test (a test's clock, a name's cache) uses std directly.

#[cfg(leap_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(all(leap_shuttle, not(leap_loom)))]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(not(any(leap_loom, leap_shuttle)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(leap_loom)]
pub(crate) use loom::thread::yield_now;
#[cfg(all(leap_shuttle, not(leap_loom)))]
pub(crate) use shuttle::thread::yield_now;
#[cfg(not(any(leap_loom, leap_shuttle)))]
pub(crate) use std::thread::yield_now;

/// A place where a model checker has to try what other threads could do meanwhile; nothing otherwise.
///
/// Loom's bounded search looks at few preemptions. A real fault of an early decision ring stayed hidden
/// from it until it was made to yield between the read of a total and the write of a slot.
#[inline]
pub(crate) fn interleave() {
    #[cfg(any(leap_loom, leap_shuttle))]
    yield_now();
}
