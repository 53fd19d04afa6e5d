//! Where calls are counted once several cores count at the same words.
//!
//! A cache line that two cores write travels between them with each write, and the whole of a call takes less time than
//! that. So once many calls of a resource are seen to meet, each thread counts in a lane of its own, after Java's
//! `LongAdder`: a total is the sum over the lanes and what was counted before there were any. What a rule decides on is not
//! here: that has to be one word.
//!
//! The peak of calls in flight needs such a sum with every call that enters, which would read the lines that the lanes keep
//! apart. So with lanes somebody looks once in [`LOOK_EVERY_NS`], as a call enters or before its end is counted: a peak that
//! is shorter may be missed, one that lasts longer is seen at the latest when it goes.

use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
use std::thread;

use once_cell::sync::OnceCell;

use super::{ExitTotals, Line, N_CAUSES};
use crate::clock::Timestamp;
use crate::sync::{AtomicU64, Ordering};
use crate::window::ResponseTimes;

/// How often the calls in flight are counted for the peak, at most.
pub(super) const LOOK_EVERY_NS: u64 = 10_000;

/// The most lanes of a resource, 2 KiB each. More cores than that share some.
const MOST: usize = 16;

/// A resource is contended when more calls than that, since a bucket of its statistics opened, found another one in flight
/// (or met it while they were counted as blocked): 10 000 a second. Below, there is nothing to gain.
pub(super) const MANY: u64 = 1_000;

/// What the threads of one lane have counted.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Lane {
    pub(super) exit: ExitTotals,
    /// Permits that passed where nobody decides on their number.
    pub(super) passed: AtomicU64,
    pub(super) blocked: Line<[AtomicU64; N_CAUSES]>,
    pub(super) response_times: ResponseTimes,
}

/// The lanes of a resource.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    /// When to look at the calls in flight again, in ns. Read by all, and so apart from what they write.
    look_at: Line<AtomicU64>,
}

thread_local! {
    /// Which lane of each resource is this thread's, modulo their number; none at first.
    pub(super) static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self { lanes: (0..n_lanes()).map(|_| Lane::default()).collect(), look_at: Line::default() }
    }

    /// The lane of this thread.
    #[inline]
    pub(super) fn own(&self) -> &Lane {
        let number = match NUMBER.get() {
            usize::MAX => first_number(),
            number => number,
        };
        // A power of two of them.
        &self.lanes[number & (self.lanes.len() - 1)]
    }

    pub(super) fn all(&self) -> &[Lane] {
        &self.lanes
    }

    /// Whether it is time, and this caller's turn, to look at the calls in flight.
    #[inline]
    pub(super) fn is_time_to_look(&self, now: Timestamp) -> bool {
        // Relaxed: it goes with nothing else.
        let due = self.look_at.0.load(Ordering::Relaxed);
        let next = now.as_nanos().saturating_add(LOOK_EVERY_NS);
        now.as_nanos() >= due
            && self.look_at.0.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// As many as the process has cores. Asked once, because the system answers from files.
fn n_lanes() -> usize {
    static N_LANES: OnceCell<usize> = OnceCell::new();
    let of_cores = |n: usize| n.next_power_of_two().clamp(2, MOST);
    *N_LANES.get_or_init(|| thread::available_parallelism().map_or(2, |n| of_cores(n.get())))
}

#[cold]
fn first_number() -> usize {
    // std's: no word of a model.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % MOST;
    NUMBER.set(number);
    number
}

/// Has this thread count in the next lane.
#[cold]
pub(super) fn move_over() {
    NUMBER.set(NUMBER.get().wrapping_add(1) % MOST);
}

/// How often calls have met since a bucket of the statistics opened.
#[derive(Debug, Default)]
pub(super) struct Company(AtomicU64);

impl Company {
    /// Notes one; whether there are more than [`MANY`].
    #[inline]
    pub(super) fn add(&self) -> bool {
        // Relaxed, and not one step: some may be lost, and it decides nothing.
        let met = self.0.load(Ordering::Relaxed);
        self.0.store(met + 1, Ordering::Relaxed);
        met >= MANY
    }

    pub(super) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Adds to a counter; whether nobody else did at the same moment.
#[inline]
pub(super) fn add(counter: &AtomicU64, n: u64, order: Ordering) -> bool {
    // Relaxed: the exchange is what counts.
    let seen = counter.load(Ordering::Relaxed);
    if counter.compare_exchange(seen, seen.wrapping_add(n), order, Ordering::Relaxed).is_ok() {
        return true;
    }
    counter.fetch_add(n, order);
    false
}

/// Adds to a counter of the lane of this thread, which takes the next one if somebody else counts here.
#[inline]
pub(super) fn count(counter: &AtomicU64, n: u64, order: Ordering) {
    if !add(counter, n, order) {
        move_over();
    }
}
