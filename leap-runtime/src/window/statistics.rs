//! The statistics rings: what many totals were when each bucket opened.

use std::{fmt, time::Duration};

use crate::{
    clock::Timestamp,
    sync::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        fence, yield_now,
    },
};

/// A ring of snapshots of totals, one slot per bucket, for numbers that inform and decide nothing.
///
/// It is the [`Ring`](super::Ring)'s idea for as many totals as a slot `S` has columns, and simpler because
/// it may be less strict: one thread turns it, under a try-lock that others pass by, and readers look again
/// when it turned under them. What is counted while it turns may fall into the neighbouring bucket; nothing
/// is lost, because the totals themselves are elsewhere and never reset.
///
/// ```text
///               63       15 14     1   0
///  turn        | head      | index   | turning |   head: the newest open tick; index: its slot
///  next_ns     | when the bucket after it opens |
///  slot index  | S: the totals when its tick opened, and whatever else is kept per bucket
/// ```
///
/// A tick is a moment divided by the length of a bucket. The slots hold the ticks in (`head` − `n_buckets`,
/// `head`], except while `turning` is set. What happened in the last interval is the difference between the
/// totals now and the slot of its first tick.
pub(crate) struct Snapshots<S> {
    /// Written under the lock together with `turn`, and apart from it so that a call needs one load and one
    /// comparison.
    next_ns: AtomicU64,
    turn: AtomicU64,
    slots: Box<[S]>,
    bucket_ns: u64,
}

const TURNING: u64 = 1;
const INDEX_BITS: u32 = 14;
const HEAD_SHIFT: u32 = INDEX_BITS + 1;

impl<S> Snapshots<S> {
    /// A ring that starts now. Every slot is made by `make` and then opened: nothing is in its past.
    ///
    /// A ring over totals that are zero by the time anybody may count needs no `open`, which may then do
    /// nothing.
    pub(crate) fn new(
        n_buckets: u32,
        bucket: Duration,
        now: Timestamp,
        mut make: impl FnMut() -> S,
        mut open: impl FnMut(&S),
    ) -> Self {
        debug_assert!((1..1 << INDEX_BITS).contains(&n_buckets), "a ring of {n_buckets} buckets");
        let bucket_ns = u64::try_from(bucket.as_nanos()).unwrap_or(u64::MAX).max(1);
        let slots: Box<[S]> = (0..n_buckets).map(|_| make()).collect();
        slots.iter().for_each(&mut open);
        let head = now.as_nanos() / bucket_ns;
        Self {
            next_ns: AtomicU64::new((head + 1).saturating_mul(bucket_ns)),
            turn: AtomicU64::new(pack(head, 0)),
            slots,
            bucket_ns,
        }
    }

    /// Whether a bucket should have opened by `now`. Ask before counting, and [`turn`](Self::turn) if so.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        // Relaxed: to learn of a turn late or early moves a count to the neighbouring bucket at most.
        now.as_nanos() >= self.next_ns.load(Relaxed)
    }

    /// Opens every bucket up to `now`, at most one lap of them, by `open`: it stores the totals in a slot
    /// and resets what else the slot keeps. Returns false if somebody else is turning: nobody waits.
    ///
    /// `open` stores relaxed, and must not panic, or the ring stands.
    #[cold]
    pub(crate) fn turn(&self, now: Timestamp, mut open: impl FnMut(&S)) -> bool {
        // Relaxed: the compare-exchange below looks again.
        let seen = self.turn.load(Relaxed);
        if seen & TURNING != 0 {
            return false;
        }
        let (head, mut index) = (head_of(seen), index_of(seen));
        let to = now.as_nanos() / self.bucket_ns;
        if to <= head {
            return true;
        }
        // Acquire: the slots are ours, and what the last one to turn stored in them comes before what we
        // store.
        if self.turn.compare_exchange(seen, seen | TURNING, Acquire, Relaxed).is_err() {
            return false;
        }
        // Whoever reads any of our stores below also reads that we are turning, when it looks again.
        fence(Release);
        for _ in (head + 1).max((to + 1).saturating_sub(self.n_buckets()))..=to {
            index = self.after(index);
            open(&self.slots[index]);
        }
        // Under the lock: a late store of an old turn cannot undo that of a later one.
        self.next_ns.store((to + 1).saturating_mul(self.bucket_ns), Relaxed);
        // Release: who finds the new head finds its slots written.
        self.turn.store(pack(to, index), Release);
        true
    }

    /// As [`turn`](Self::turn), but a loser waits until the bucket of `now` is open.
    #[cold]
    pub(crate) fn turn_or_wait(&self, now: Timestamp, mut open: impl FnMut(&S)) {
        while !self.turn(now, &mut open) {
            yield_now();
        }
    }

    /// The slot of the newest bucket, for what is kept per bucket.
    #[inline]
    pub(crate) fn current(&self) -> &S {
        // Acquire: what the slot's opening reset is not seen as it was before.
        &self.slots[index_of(self.turn.load(Acquire))]
    }

    /// The newest open tick.
    pub(crate) fn head(&self) -> u64 {
        // Relaxed: a number, not a promise about slots.
        head_of(self.turn.load(Relaxed))
    }

    /// The tick that counts at `now`: its own, or the head if that is ahead.
    pub(crate) fn tick(&self, now: Timestamp) -> u64 {
        self.tick_from(self.head(), now)
    }

    fn tick_from(&self, head: u64, now: Timestamp) -> u64 {
        // A comparison, because the division is rarely needed.
        if now < self.start(head + 1) { head } else { now.as_nanos() / self.bucket_ns }
    }

    /// When `tick` opens.
    pub(crate) fn start(&self, tick: u64) -> Timestamp {
        Timestamp::from_nanos(tick.saturating_mul(self.bucket_ns))
    }

    /// How many buckets are remembered.
    pub(crate) fn n_buckets(&self) -> u64 {
        self.slots.len() as u64
    }

    /// What `read` makes of a consistent view at `now`; it runs again when a bucket opened under it.
    ///
    /// Slots are read relaxed. A total that is read after the slots is at least what they hold.
    pub(crate) fn read<R>(&self, now: Timestamp, mut read: impl FnMut(View<'_, S>) -> R) -> R {
        loop {
            // Acquire: the slots of this turn, and the totals they were taken from, are seen as they were
            // then or later.
            let seen = self.turn.load(Acquire);
            if seen & TURNING == 0 {
                let head = head_of(seen);
                let view = View { ring: self, head, index: index_of(seen), tick: self.tick_from(head, now) };
                let result = read(view);
                // With the fence of `turn`: if anything read above was stored by a later turn, that turn is
                // seen below.
                fence(Acquire);
                if self.turn.load(Relaxed) == seen {
                    return result;
                }
            }
            yield_now();
        }
    }

    #[inline]
    fn after(&self, index: usize) -> usize {
        if index + 1 == self.slots.len() { 0 } else { index + 1 }
    }
}

impl<S> fmt::Debug for Snapshots<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots")
            .field("n_buckets", &self.n_buckets())
            .field("bucket", &Duration::from_nanos(self.bucket_ns))
            .finish_non_exhaustive()
    }
}

/// The live slots of a ring at one moment: those of the last interval.
pub(crate) struct View<'a, S> {
    ring: &'a Snapshots<S>,
    head: u64,
    /// The head's slot.
    index: usize,
    tick: u64,
}

// By hand, because a derive would ask it of `S`.
impl<S> Clone for View<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for View<'_, S> {}

impl<'a, S> View<'a, S> {
    /// The tick of the moment that is looked at; it may be ahead of the newest bucket, when nothing has
    /// happened since.
    pub(crate) fn tick(self) -> u64 {
        self.tick
    }

    /// The slot of `tick`, if it is open and in the last interval.
    pub(crate) fn slot(self, tick: u64) -> Option<&'a S> {
        if tick < self.first() || tick > self.head {
            return None;
        }
        // Less than one lap back from the head's.
        let back = usize::try_from(self.head - tick).expect("less than the number of slots");
        let slots = &self.ring.slots;
        let index = if back <= self.index { self.index - back } else { self.index + slots.len() - back };
        Some(&slots[index])
    }

    /// The slot of the first bucket of the last interval: what the totals were when it began. Nothing if
    /// nothing has happened since.
    pub(crate) fn oldest(self) -> Option<&'a S> {
        self.slot(self.first())
    }

    /// The open slots of the last interval, oldest first.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a S> {
        (self.first()..=self.head).filter_map(move |tick| self.slot(tick))
    }

    /// The first tick of the last interval.
    pub(crate) fn first(self) -> u64 {
        (self.tick + 1).saturating_sub(self.ring.n_buckets())
    }
}

#[inline]
fn pack(head: u64, index: usize) -> u64 {
    head << HEAD_SHIFT | (index as u64) << 1
}

#[inline]
fn head_of(turn: u64) -> u64 {
    turn >> HEAD_SHIFT
}

#[inline]
fn index_of(turn: u64) -> usize {
    (turn >> 1) as usize & ((1 << INDEX_BITS) - 1)
}

#[cfg(test)]
#[cfg(leap_loom)]
mod models;
#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
