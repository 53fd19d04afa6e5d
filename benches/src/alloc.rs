//! An allocator that counts what it is asked for.
#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one only counts and passes on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

#[global_allocator]
static COUNTING: Counting = Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

/// Allocations and reallocations so far, of all threads.
pub fn calls() -> u64 {
    CALLS.load(Relaxed)
}

/// Bytes allocated and not freed.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Relaxed)
}

// SAFETY: every request goes to `System` as it came, and its answer back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        LIVE_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are those `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        LIVE_BYTES.fetch_add(new_size, Relaxed);
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above; `pointer` came from `System`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
