//! The [`LeapArray`]: what a total was when each bucket opened, so that a window's sum is one subtraction.
//!
//! The structure and its operations are those of Sentinel's `LeapArray`, with one turn: a bucket does not
//! hold a count that has to be cleared when it is used again, it holds the value that an ever-growing total
//! had when it opened. Nothing is reset, so nothing can be reset twice, too early, or while somebody adds.

use std::{fmt, time::Duration};

use super::{Answer, WindowError};
use crate::{
    clock::Timestamp,
    sync::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        interleave,
    },
};

/// A sliding-window counter: how much was added in the last interval, in equal buckets.
///
/// It is Sentinel's `LeapArray`, lock-free and safe to share: adding and summing cost the same whatever the
/// number of buckets, and no add is lost or counted twice while the window turns. Time is handed in, so it
/// may be any [`Clock`](crate::clock::Clock)'s; where it runs backwards, the latest reading seen so far
/// stands for it.
///
/// Buckets lie on the grid of their length: with buckets of 200 ms one starts at every multiple of 200 ms.
/// A window that spans one interval and its unfinished bucket holds at most 2³¹ − 1 units; an add beyond
/// that is cut off there.
///
/// | Sentinel | here |
/// | --- | --- |
/// | `currentWindow(t)` | [`current`](Self::current) |
/// | `getPreviousWindow(t)` | [`previous`](Self::previous) |
/// | `values(t)` | [`values`](Self::values) |
/// | `WindowWrap` | [`Bucket`] |
///
/// # Examples
///
/// ```
/// # use leap_runtime::{clock::Timestamp, window::LeapArray};
/// # use std::time::Duration;
/// let orders = LeapArray::new(2, Duration::from_secs(1))?;
/// orders.add(Timestamp::from_millis(100), 3);
/// orders.add(Timestamp::from_millis(600), 4);
/// assert_eq!(orders.sum(Timestamp::from_millis(999)), 7);
/// assert_eq!(orders.sum(Timestamp::from_millis(1_000)), 4); // the bucket from 0 to 500 ms has left
/// # Ok::<(), leap_runtime::window::WindowError>(())
/// ```
#[repr(align(64))] // Side by side in a list they would be written by different threads.
pub struct LeapArray {
    ring: Ring,
    total: AtomicU64,
}

/// One equal part of an interval, and what was added in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    start: Timestamp,
    count: u64,
}

impl Bucket {
    /// When the bucket opened: a multiple of its length.
    pub const fn start(&self) -> Timestamp {
        self.start
    }

    /// What was added in it.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

impl LeapArray {
    /// An empty window over the last `interval` in `n_buckets` equal parts.
    ///
    /// # Errors
    ///
    /// If the interval does not divide into that many buckets of at least 1 µs; the error names both numbers.
    pub fn new(n_buckets: u32, interval: Duration) -> Result<Self, WindowError> {
        Ok(Self { ring: Ring::new(n_buckets, interval, Timestamp::ZERO, 0)?, total: AtomicU64::new(0) })
    }

    /// Adds `n` to the bucket of `now`.
    ///
    /// A reading older than another thread's counts in that one's bucket, the newest.
    pub fn add(&self, now: Timestamp, n: u64) {
        // Relaxed, here and on failure: the value is used only if the compare-exchange finds it again.
        let mut passed = self.total.load(Relaxed);
        loop {
            let Some(room) = self.ring.room(&self.total, passed, now) else {
                passed = self.total.load(Relaxed);
                continue;
            };
            // Release: whoever sees this add in the total also sees the bucket open in which it counts.
            match self.total.compare_exchange(passed, passed + n.min(room), Release, Relaxed) {
                Ok(_) => return,
                Err(found) => passed = found,
            }
        }
    }

    /// Would `n` more fit under `limit`, at most [`Ring::MAX_COUNT`]? Adds nothing, and is never `Stale`.
    pub(crate) fn ask(&self, now: Timestamp, n: u64, limit: u64, strict: bool) -> Answer {
        loop {
            // Acquire: the bases that go with this value must be seen with it.
            match self.ring.ask(&self.total, self.total.load(Acquire), n, limit, strict, now) {
                Answer::Stale => {}
                answer => return answer,
            }
        }
    }

    /// What was added in the bucket of `now` and those before it, one interval in all.
    pub fn sum(&self, now: Timestamp) -> u64 {
        self.look(now, |at| self.ring.count(self.ring.first_of(at), at, &self.total))
    }

    /// The bucket of `now`, so far.
    pub fn current(&self, now: Timestamp) -> Bucket {
        self.look(now, |at| self.bucket_at(at))
    }

    /// The bucket before that of `now`; its count is 0 where nothing was added, as before the clock's start.
    pub fn previous(&self, now: Timestamp) -> Bucket {
        self.look(now, |at| self.bucket_at(at - 1))
    }

    /// The buckets of the last interval, oldest first; the last one is that of `now`.
    ///
    /// There are [`n_buckets`](Self::n_buckets), fewer only while the clock is younger than the interval.
    pub fn values(&self, now: Timestamp) -> Vec<Bucket> {
        self.look(now, |at| {
            // A bucket's count is taken once it and its successor are known; each is exact by itself, and
            // what was added while we were looking is in the newest or not at all.
            (self.ring.first_of(at).max(self.ring.lap())..=at).map(|tick| self.bucket_at(tick)).collect()
        })
    }

    /// All that was ever added.
    pub fn total(&self) -> u64 {
        // Relaxed: one word, compared with nothing.
        self.total.load(Relaxed)
    }

    /// How many buckets an interval has.
    #[expect(clippy::missing_panics_doc, reason = "it does not")]
    pub fn n_buckets(&self) -> u32 {
        u32::try_from(self.ring.n_buckets).expect("built from a u32")
    }

    /// The length of a bucket.
    pub fn bucket(&self) -> Duration {
        Duration::from_nanos(self.ring.bucket_ns)
    }

    /// The length of the window.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.ring.bucket_ns * self.ring.n_buckets)
    }

    fn bucket_at(&self, tick: u64) -> Result<Bucket, Newer> {
        Ok(Bucket { start: self.ring.start(tick), count: self.ring.count(tick, tick, &self.total)? })
    }

    /// What `read` sees of the ring at the tick of `now`, or at the tick that time has got to meanwhile.
    fn look<R>(&self, now: Timestamp, read: impl Fn(u64) -> Result<R, Newer>) -> R {
        let mut at = self.ring.open(now, &self.total);
        loop {
            match read(at) {
                Ok(seen) => return seen,
                Err(Newer(tick)) => at = self.ring.open_up_to(tick, &self.total),
            }
        }
    }
}

impl fmt::Debug for LeapArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeapArray")
            .field("n_buckets", &self.n_buckets())
            .field("interval", &self.interval())
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}

/// The decision ring: the low half of a total when each bucket opened.
///
/// The total itself is a word outside, because it is the word on which a call is admitted.
///
/// ```text
///                     63       32 31        0
///  slot tick % len    | tick      | base      |    base = the total when the tick opened
///  head               | the newest open tick  |    moves by read-modify-write only
///
///  total (grows for ever)          1 042
///  ring                    tick    … 117    118    119    120 ← head
///                          base    … 1 003  1 010  1 031  1 040
///  counted in the last 3 buckets   1 042 − base[118] = 32
///  counted in bucket 119           base[120] − base[119] = 9
/// ```
///
/// Ticks and bases are kept modulo 2³² and compared by their distance, which is below 2³¹ for all that are
/// compared: a window holds fewer units than that, and gaps are crossed in hops of [`HOP`] ticks. Ticks
/// start one lap above zero, so none of them underflows. `len` is a power of two and at least two more than
/// there are buckets: one for the bucket that `strict` adds, one so that the tick being opened does not
/// overwrite the oldest that is wanted.
///
/// # Invariant
///
/// *Before anything is counted at tick `e`, the bases of all ticks in (`e` − len, `e`] are written.*
///
/// Whoever finds the time beyond the head opens the missing ticks, in order: it reads the total, writes
/// `(tick, total)` by compare-exchange into the slot while that is older, and only after the last moves the
/// head. Anybody may do the same at the same time; whoever loses a slot finds it open, and the first base
/// written for a tick stays for a lap. Nobody waits, and nobody goes on before the head is at its tick.
///
/// So whatever is counted at tick `k` or later was added after `base(k)` was read, and the difference
/// `total − base(k)` contains all of it: a window cannot miss a call. It may contain a few that were meant
/// for the tick before and committed after the turn; they count at the latest reading that anybody had when
/// they committed.
///
/// Since bases never decrease, a call that is admitted with `total + n − base ≤ limit` satisfies the limit
/// for its own window and for each later one that contains it.
pub(crate) struct Ring {
    head: AtomicU64,
    /// The last answer to "when is there room?": `tick 32 | needed 32`, see [`Ring::full`].
    room_at: AtomicU64,
    slots: Box<[AtomicU64]>,
    n_buckets: u64,
    bucket_ns: u64,
}

/// A slot held a newer tick than was wanted: the head that the question came from is stale. The tick found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newer(pub(crate) u64);

/// How far the head moves at once, so that "older" can be told from "newer" modulo 2³².
const HOP: u64 = 1 << 30;

/// Distances from here on are negative.
const HALF: u32 = 1 << 31;

impl Ring {
    /// More buckets than anybody needs; 16 MiB.
    pub(crate) const MAX_BUCKETS: u32 = 1 << 20;

    /// The most units that a window may hold, and so the largest limit.
    pub(crate) const MAX_COUNT: u64 = HALF as u64 - 1;

    /// A ring that starts now: nothing is in its past. `total` is what the total is now.
    pub(crate) fn new(
        n_buckets: u32,
        interval: Duration,
        now: Timestamp,
        total: u64,
    ) -> Result<Self, WindowError> {
        let bucket_ns = Self::bucket_of(n_buckets, interval)?;
        let n_buckets = u64::from(n_buckets);
        let lap = (n_buckets + 2).next_power_of_two();
        let head = now.as_nanos() / bucket_ns + lap;
        let slots =
            (0..lap).map(|slot| AtomicU64::new(pack(head - (head.wrapping_sub(slot) & (lap - 1)), total)));
        Ok(Self {
            head: AtomicU64::new(head),
            // No tick of this ring, so no answer.
            room_at: AtomicU64::new(pack(head.wrapping_sub(lap), 0)),
            slots: slots.collect(),
            n_buckets,
            bucket_ns,
        })
    }

    /// A ring of this one's shape over another total, which is at `to`: what was counted here in each bucket, up to now, was
    /// counted there.
    pub(crate) fn moved(&self, total: &AtomicU64, to: u64, now: Timestamp) -> Self {
        'again: loop {
            let head = self.open(now, total);
            // Acquire: at least every base that the head vouches for.
            let from = low(total.load(Acquire));
            let mut slots: Vec<_> = (0..self.lap()).map(|_| AtomicU64::new(0)).collect();
            for tick in head + 1 - self.lap()..=head {
                let Ok(base) = self.base(tick) else { continue 'again };
                let counted = from.wrapping_sub(base);
                #[expect(clippy::cast_possible_truncation, reason = "modulo the number of slots")]
                let slot = (tick % self.lap()) as usize;
                slots[slot] = AtomicU64::new(pack(tick, u64::from(low(to).wrapping_sub(counted))));
            }
            return Self {
                head: AtomicU64::new(head),
                // No tick of this ring, as in a new one.
                room_at: AtomicU64::new(pack(head.wrapping_sub(self.lap()), 0)),
                slots: slots.into(),
                n_buckets: self.n_buckets,
                bucket_ns: self.bucket_ns,
            };
        }
    }

    /// The length of a bucket in ns, if the interval divides into so many.
    pub(crate) fn bucket_of(n_buckets: u32, interval: Duration) -> Result<u64, WindowError> {
        if n_buckets == 0 || n_buckets > Self::MAX_BUCKETS {
            return Err(WindowError::Buckets { n_buckets });
        }
        let Ok(interval_ns) = u64::try_from(interval.as_nanos()) else {
            return Err(WindowError::Long { interval });
        };
        let bucket_ns = interval_ns / u64::from(n_buckets);
        if bucket_ns < 1_000 {
            return Err(WindowError::Short { interval, n_buckets });
        }
        if interval_ns % u64::from(n_buckets) != 0 {
            return Err(WindowError::Uneven { interval, n_buckets });
        }
        Ok(bucket_ns)
    }

    /// Opens every bucket up to `now` and returns the tick that counts: that of `now`, or the head if that
    /// is ahead.
    #[inline]
    pub(crate) fn open(&self, now: Timestamp, total: &AtomicU64) -> u64 {
        // Acquire: who sees the head at a tick sees every base up to it.
        let head = self.head.load(Acquire);
        // A comparison, because the division is needed once per bucket only.
        if now < self.start(head + 1) { head } else { self.open_up_to(self.tick(now), total) }
    }

    /// Do `n` units behind `passed` fit under `limit` per interval?
    ///
    /// `passed` is a value loaded from `total`, the limit at most [`MAX_COUNT`](Self::MAX_COUNT). The
    /// window ends with the bucket of `now` and is one interval long; `strict` adds the bucket before, so
    /// that it contains every span of one interval that ends now.
    #[inline]
    pub(crate) fn ask(
        &self,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        limit: u64,
        strict: bool,
        now: Timestamp,
    ) -> Answer {
        if n > limit { Answer::Never } else { self.ask_at(total, passed, n, limit, strict, now).0 }
    }

    /// [`ask`](Self::ask) for at most `limit`, with the tick by which it was answered.
    #[inline]
    fn ask_at(
        &self,
        total: &AtomicU64,
        passed: u64,
        n: u64,
        limit: u64,
        strict: bool,
        now: Timestamp,
    ) -> (Answer, u64) {
        debug_assert!(limit <= Self::MAX_COUNT, "a limit of {limit} is beyond what a ring can tell");
        let mut at = self.open(now, total);
        loop {
            // The base may be read after `passed` was: the compare-exchange that admits proves that `passed`
            // was still the total then.
            match self.base(self.first_of(at) - u64::from(strict)) {
                Ok(base) => {
                    let counted = low(passed).wrapping_sub(base);
                    let answer = if counted >= HALF {
                        self.beyond_count(at, passed, total, strict)
                    } else if u64::from(counted) + n <= limit {
                        Answer::Fits
                    } else {
                        self.full(at, passed, n, limit, strict)
                    };
                    return (answer, at);
                }
                Err(Newer(tick)) => at = self.open_up_to(tick, total),
            }
        }
    }

    /// How many units may follow `passed` before a window (with the bucket that `strict` adds) holds more
    /// than [`MAX_COUNT`](Self::MAX_COUNT); nothing if `passed` is out of date.
    #[inline]
    pub(crate) fn room(&self, total: &AtomicU64, passed: u64, now: Timestamp) -> Option<u64> {
        let mut at = self.open(now, total);
        loop {
            match self.base(self.first_of(at) - 1) {
                Ok(base) => return Self::MAX_COUNT.checked_sub(u64::from(low(passed).wrapping_sub(base))),
                Err(Newer(tick)) => at = self.open_up_to(tick, total),
            }
        }
    }

    /// What was counted in the buckets from `first` to `last`, which is open and less than a lap after
    /// `first`.
    ///
    /// While `last` is the newest bucket, what it has counted so far.
    pub(crate) fn count(&self, first: u64, last: u64, total: &AtomicU64) -> Result<u64, Newer> {
        let base = self.base(first)?;
        // Acquire: should this include anything of the next bucket, then the slot below is seen to be open,
        // because it was before that was added.
        let so_far = low(total.load(Acquire));
        let end = self.base_if_open(last + 1)?.unwrap_or(so_far);
        Ok(u64::from(end.wrapping_sub(base)))
    }

    /// What was counted from the opening of tick `first` to that of `end`, as long as both are remembered. Both are open.
    pub(crate) fn between(&self, first: u64, end: u64) -> Option<u64> {
        let (first, end) = (self.base(first).ok()?, self.base(end).ok()?);
        Some(u64::from(end.wrapping_sub(first)))
    }

    /// The first of the `n_buckets` ticks that end with `at`.
    #[inline]
    pub(crate) fn first_of(&self, at: u64) -> u64 {
        at + 1 - self.n_buckets
    }

    /// When tick `tick` opens, if at all; what lies before the clock's start opens with it.
    #[inline]
    pub(crate) fn start(&self, tick: u64) -> Timestamp {
        Timestamp::from_nanos(tick.saturating_sub(self.lap()).saturating_mul(self.bucket_ns))
    }

    /// The number of slots, and the tick of the clock's start.
    #[inline]
    pub(crate) fn lap(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The tick of `now`, whatever is open.
    pub(crate) fn tick(&self, now: Timestamp) -> u64 {
        now.as_nanos() / self.bucket_ns + self.lap()
    }

    /// Opens every bucket up to `tick` and returns the newest open one.
    #[cold]
    pub(crate) fn open_up_to(&self, tick: u64, total: &AtomicU64) -> u64 {
        loop {
            // Acquire: as in `open`; it also passes on what others had opened when we move the head
            // ourselves.
            let head = self.head.load(Acquire);
            if tick <= head {
                return head;
            }
            let to = tick.min(head + HOP);
            // What lies more than a lap back is in nobody's window any more.
            for opening in (head + 1).max(to + 1 - self.lap())..=to {
                self.open_one(opening, total);
            }
            // Max, because others may be further. Release: the bases come before the head. A
            // read-modify-write, so that who acquires the head from somebody later still acquires this.
            self.head.fetch_max(to, AcqRel);
        }
    }

    /// Writes the base of `opening`, unless somebody has.
    fn open_one(&self, opening: u64, total: &AtomicU64) {
        let slot = self.slot(opening);
        // Acquire: whoever wrote what we find had opened the ticks before, which our moving the head
        // vouches for.
        let mut held = slot.load(Acquire);
        // The head is looked at after the slot. If it has not reached our tick, the slot's is less than a
        // hop and a lap away from it, so that "older" means what it says even if we slept for 2³² ticks
        // before we loaded it. If it has, the tick is open. Relaxed: the acquire above orders it.
        while self.head.load(Relaxed) < opening && is_older(held, opening) {
            // Relaxed: what is counted at this tick is added by somebody who acquired our slot or a later
            // head, hence after this was read, hence not in it.
            let base = total.load(Relaxed);
            interleave();
            // Release: publishes that the base was read. Acquire on failure: as for the first load.
            match slot.compare_exchange(held, pack(opening, base), AcqRel, Acquire) {
                Ok(_) => return,
                Err(found) => held = found,
            }
        }
    }

    /// The base of a tick that is open.
    #[inline]
    fn base(&self, tick: u64) -> Result<u32, Newer> {
        // Acquire: the total read after it is at least as high. Where the total was read before, its
        // compare-exchange comes after.
        let word = self.slot(tick).load(Acquire);
        match tick_of(word).wrapping_sub(low(tick)) {
            0 => Ok(low(word)),
            // Never older, by the invariant; and nobody sleeps while somebody laps him 2³² times within a
            // window.
            ahead => Err(Newer(tick + u64::from(ahead))),
        }
    }

    /// The base of a tick that may not be open yet.
    fn base_if_open(&self, tick: u64) -> Result<Option<u32>, Newer> {
        if is_older(self.slot(tick).load(Acquire), tick) { Ok(None) } else { self.base(tick).map(Some) }
    }

    /// The base seems to be above `passed`: the bucket opened after that was loaded, or the window really holds more than
    /// can be told, as `sentinel` and charges made before the ring stood can bring about. Then there is room when all
    /// that has passed so far is out of it.
    #[cold]
    fn beyond_count(&self, at: u64, passed: u64, total: &AtomicU64, strict: bool) -> Answer {
        // Acquire: a total that is still `passed` is at least every base.
        if total.load(Acquire) == passed {
            Answer::Full { until: self.start(at + 1 + self.n_buckets - u64::from(!strict)) }
        } else {
            Answer::Stale
        }
    }

    /// At which moment `n` more fit, if nothing passes meanwhile.
    ///
    /// They fit at the tick whose window starts with a base of at least `needed = passed + n − limit`. The
    /// first tick with such a base is found by binary search, bases being in order. Since a base never
    /// changes, and the next tick's can only be at least `passed`, the answer is true for as long as that
    /// tick is in a window. So it is kept under `needed`, whoever asked, and repeated blocks only read it.
    #[inline(never)]
    fn full(&self, at: u64, passed: u64, n: u64, limit: u64, strict: bool) -> Answer {
        let needed = low(passed.wrapping_add(n).wrapping_sub(limit));
        let next = at + 1;
        // Relaxed: the word is a fact by itself.
        let known = self.room_at.load(Relaxed);
        let back = u64::from(low(next).wrapping_sub(tick_of(known)));
        let first = if low(known) == needed && back <= self.n_buckets {
            next - back
        } else {
            // Not the first of the window, or there would be room now; the next tick's base is enough in
            // any case.
            let (mut too_old, mut enough) = (self.first_of(at) - u64::from(strict), next);
            while enough - too_old > 1 {
                let middle = too_old + (enough - too_old) / 2;
                let Ok(base) = self.base(middle) else { return Answer::Stale };
                if base.wrapping_sub(needed) < HALF { enough = middle } else { too_old = middle }
            }
            self.room_at.store(pack(enough, u64::from(needed)), Relaxed);
            enough
        };
        Answer::Full { until: self.start(first + self.n_buckets - u64::from(!strict)) }
    }

    #[inline]
    fn slot(&self, tick: u64) -> &AtomicU64 {
        let mask = self.slots.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "masked")]
        let slot = tick as usize & mask;
        &self.slots[slot]
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("n_buckets", &self.n_buckets)
            .field("bucket", &Duration::from_nanos(self.bucket_ns))
            .finish_non_exhaustive()
    }
}

#[inline]
fn pack(tick: u64, base: u64) -> u64 {
    tick << 32 | u64::from(low(base))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "ticks and bases are kept modulo 2³²")]
fn low(word: u64) -> u32 {
    word as u32
}

#[inline]
fn tick_of(word: u64) -> u32 {
    low(word >> 32)
}

/// Whether the tick in `word` comes before `tick`.
#[inline]
fn is_older(word: u64, tick: u64) -> bool {
    let ahead = low(tick).wrapping_sub(tick_of(word));
    ahead != 0 && ahead < HALF
}

#[cfg(test)]
#[cfg(any(leap_loom, leap_shuttle))]
mod models;
#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
