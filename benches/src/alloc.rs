//! An allocator that counts what it is asked for, for programs that ask for it:
//!
//! ```
//! use leap_benches::alloc::{self, Counting};
//!
//! #[global_allocator]
//! static COUNTING: Counting = Counting;
//!
//! let before = alloc::calls();
//! drop(vec![1, 2, 3]);
//! assert_eq!(alloc::calls() - before, 1);
//! ```
#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one only counts and passes on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, counting.
#[derive(Debug)]
pub struct Counting;

/// Allocations and reallocations so far, of all threads.
///
/// # Panics
///
/// Nothing is counted: the program's allocator is another one, or has been told to [`stop`].
pub fn calls() -> u64 {
    assert_counting();
    CALLS.load(Relaxed)
}

/// Bytes allocated and not freed.
///
/// # Panics
///
/// As [`calls`].
pub fn live_bytes() -> usize {
    assert_counting();
    LIVE_BYTES.load(Relaxed)
}

/// Counts no more: from here on whoever allocates is as fast as without, and threads that do share no counters.
pub fn stop() {
    STOPPED.store(true, Relaxed);
}

fn assert_counting() {
    assert!(!STOPPED.load(Relaxed), "the allocator was told to count no more");
    if CALLS.load(Relaxed) == 0 {
        drop(black_box(Box::new(0_u8)));
        assert!(CALLS.load(Relaxed) > 0, "the program has no `alloc::Counting` for its global allocator");
    }
}

/// Bytes more in use; fewer are a number that wraps around.
fn used(more: usize) {
    if !STOPPED.load(Relaxed) {
        LIVE_BYTES.fetch_add(more, Relaxed);
    }
}

fn asked_for(more: usize) {
    if !STOPPED.load(Relaxed) {
        CALLS.fetch_add(1, Relaxed);
        LIVE_BYTES.fetch_add(more, Relaxed);
    }
}

// SAFETY: every request goes to `System` as it came, and its answer back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        asked_for(layout.size());
        // SAFETY: the caller's promises are those `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        used(layout.size().wrapping_neg());
        // SAFETY: as above; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        asked_for(new_size.wrapping_sub(layout.size()));
        // SAFETY: as above; `pointer` came from `System`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
