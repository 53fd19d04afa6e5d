//! The [`HotLeapArray`]: which values came most often in the last interval, in bounded memory.
//!
//! Each bucket of the window holds a *Space-Saving* summary: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient
//! computation of frequent and top-k elements in data streams", ICDT 2005. It counts a fixed number of values. One that
//! is not among them takes the place of the least, and takes over its count as what it may be too high by.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::PoisonError;
use std::time::Duration;

use super::{Ring, WindowError};
use crate::clock::Timestamp;
use crate::sync::Mutex;

/// How many summaries a bucket has, so that threads seldom meet at one. Fixed, so that memory does not depend on how
/// many processors there are.
const N_STRIPES: usize = 8;

/// The most values that a summary counts: it is searched from end to end.
const MAX_CAPACITY: usize = 1_024;

/// A sliding window over values: the most frequent ones of the last interval, with their counts.
///
/// It is Sentinel's `HotParameterLeapArray`, in bounded memory: at most `8 × n_buckets × capacity` values are kept,
/// allocated as they come, 8 because threads write side by side.
///
/// # How exact
///
/// Let `N` be all that was recorded in the window and `m` the capacity.
///
/// - A count is never too low, and too high by at most its `error`, which is at most `N / m`.
/// - Every value that came more than `N / m` times is listed.
/// - While no bucket has seen more than `m` values from one thread, counts are exact and every value is listed.
///
/// These are the bounds of Space-Saving for each summary, added up: the least of `m` counts that add up to `n` is at
/// most `n / m`.
///
/// # Examples
///
/// ```
/// # use leap_runtime::{clock::Timestamp, window::HotLeapArray};
/// # use std::time::Duration;
/// let users = HotLeapArray::new(5, Duration::from_secs(1), 64)?;
/// users.record(Timestamp::from_millis(100), &"ada", 3);
/// users.record(Timestamp::from_millis(300), &"bob", 2);
/// users.record(Timestamp::from_millis(500), &"ada", 1);
///
/// assert_eq!(users.top(Timestamp::from_millis(999), 1), [("ada", 4, 0)]); // 4 times, too high by 0
/// assert_eq!(users.top(Timestamp::from_millis(1_100), 2), [("bob", 2, 0), ("ada", 1, 0)]);
/// # Ok::<(), leap_runtime::window::WindowError>(())
/// ```
pub struct HotLeapArray<K> {
    stripes: Box<[Stripe<K>]>,
    n_buckets: u64,
    bucket_ns: u64,
    capacity: usize,
    hasher: RandomState,
}

/// What some of the threads have recorded.
// By itself on its cache line: two threads take 55 ns a record, and 65 ns side by side.
#[repr(align(64))]
struct Stripe<K>(Mutex<Buckets<K>>);

struct Buckets<K> {
    /// The latest tick that was recorded in.
    newest: u64,
    /// Tick `t` is in place `t % n_buckets`; empty before the first record.
    summaries: Vec<Summary<K>>,
}

/// The most frequent values of one bucket, in three lists of one order: by falling count.
struct Summary<K> {
    tick: u64,
    hashes: Vec<u64>,
    counts: Vec<u64>,
    /// By how much the count may be too high, and the value.
    values: Vec<(u64, K)>,
}

impl<K: Hash + Eq + Clone> HotLeapArray<K> {
    /// An empty window over the last `interval` in `n_buckets` equal parts, each counting `capacity` values (1 to 1 024;
    /// what is beyond counts as the nearest).
    ///
    /// # Errors
    ///
    /// If the interval does not divide into that many buckets of at least 1 µs.
    pub fn new(n_buckets: u32, interval: Duration, capacity: usize) -> Result<Self, WindowError> {
        let bucket_ns = Ring::bucket_of(n_buckets, interval)?;
        Ok(Self {
            stripes: (0..N_STRIPES)
                .map(|_| Stripe(Mutex::new(Buckets { newest: 0, summaries: vec![] })))
                .collect(),
            n_buckets: n_buckets.into(),
            bucket_ns,
            capacity: capacity.clamp(1, MAX_CAPACITY),
            hasher: RandomState::new(),
        })
    }

    /// Counts `n` more of `value` in the bucket of `now`.
    ///
    /// A reading older than another one of this thread counts in that one's bucket.
    pub fn record(&self, now: Timestamp, value: &K, n: u64) {
        self.record_hashed(now, self.hasher.hash_one(value), value, n);
    }

    /// As [`record`](Self::record), for a caller that has hashed the value, always in the same way.
    #[inline]
    pub(crate) fn record_hashed(&self, now: Timestamp, hash: u64, value: &K, n: u64) {
        let tick = self.tick(now);
        let stripe = &self.stripes[thread_number() % N_STRIPES];
        let mut buckets = stripe.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.summaries.is_empty() {
            buckets.summaries = (0..self.n_buckets).map(|_| Summary::new()).collect();
        }
        buckets.newest = buckets.newest.max(tick);
        let tick = buckets.newest;
        let summary = &mut buckets.summaries[self.place(tick)];
        if summary.tick != tick {
            summary.start(tick);
        }
        summary.add(hash, value, n, self.capacity);
    }

    /// The up to `k` most frequent values of the bucket of `now` and those before it, one interval in all; each with its
    /// count, and by how much that may be too high. The most frequent one comes first, equal ones in any order.
    ///
    /// Where `now` is older than what was recorded, the latest record stands for it.
    pub fn top(&self, now: Timestamp, k: usize) -> Vec<(K, u64, u64)> {
        let newest = self.stripes.iter().map(|stripe| stripe.lock(|buckets| buckets.newest)).max();
        let last = self.tick(now).max(newest.unwrap_or(0));
        // A value that a full summary does not list may have come as often there as the least that it lists.
        let (mut seen, mut unlisted) = (HashMap::<K, (u64, u64)>::new(), 0);
        for stripe in &self.stripes {
            stripe.lock(|buckets| {
                let live = buckets.summaries.iter().filter(|summary| summary.tick + self.n_buckets > last);
                for summary in live {
                    let floor = summary.least(self.capacity);
                    unlisted += floor;
                    for (count, (error, value)) in summary.counts.iter().zip(&summary.values) {
                        // What it has beyond the least, which is added for all below.
                        let (beyond, sure) = seen.entry(value.clone()).or_default();
                        *beyond = beyond.saturating_add(count - floor);
                        *sure += floor - error;
                    }
                }
            });
        }
        let mut top: Vec<_> = seen
            .into_iter()
            .map(|(value, (beyond, sure))| (value, beyond.saturating_add(unlisted), unlisted - sure))
            .collect();
        top.sort_by_key(|(_, count, error)| (Reverse(*count), *error));
        top.truncate(k);
        top
    }

    fn tick(&self, now: Timestamp) -> u64 {
        // One lap above 0, so that an unused summary is of no window.
        now.as_nanos() / self.bucket_ns + self.n_buckets
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the number of buckets")]
    fn place(&self, tick: u64) -> usize {
        (tick % self.n_buckets) as usize
    }
}

impl<K> Stripe<K> {
    fn lock<R>(&self, read: impl FnOnce(&Buckets<K>) -> R) -> R {
        read(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<K: Eq + Clone> Summary<K> {
    fn new() -> Self {
        Self { tick: 0, hashes: vec![], counts: vec![], values: vec![] }
    }

    fn start(&mut self, tick: u64) {
        self.tick = tick;
        self.hashes.clear();
        self.counts.clear();
        self.values.clear();
    }

    /// How often a value that is not listed may have come.
    fn least(&self, capacity: usize) -> u64 {
        if self.counts.len() < capacity { 0 } else { self.counts[capacity - 1] }
    }

    fn add(&mut self, hash: u64, value: &K, n: u64, capacity: usize) {
        let known = self.hashes.iter().position(|known| *known == hash);
        let place = match known {
            // Two values of one hash are one in 2⁶⁴ apart: looked at all the same.
            Some(place) if self.values[place].1 == *value => place,
            Some(_) => match self.values.iter().position(|(_, known)| known == value) {
                Some(place) => place,
                None => self.enter(hash, value, capacity),
            },
            None => self.enter(hash, value, capacity),
        };
        let count = self.counts[place].saturating_add(n);
        self.counts[place] = count;
        // In front of all that are less now.
        let to = self.counts[..place].partition_point(|before| *before >= count);
        if n == 1 {
            // They are all equal, so it changes places with the first of them.
            self.counts.swap(to, place);
            self.hashes.swap(to, place);
            self.values.swap(to, place);
        } else {
            self.counts[to..=place].rotate_right(1);
            self.hashes[to..=place].rotate_right(1);
            self.values[to..=place].rotate_right(1);
        }
    }

    /// Lists a value, in place of the last one if need be, and returns its place.
    fn enter(&mut self, hash: u64, value: &K, capacity: usize) -> usize {
        // First, because it is not our code: should it panic, the lists still agree.
        let value = value.clone();
        let last = self.counts.len();
        if last < capacity {
            self.hashes.push(hash);
            self.counts.push(0);
            self.values.push((0, value));
            return last;
        }
        let last = last - 1;
        self.hashes[last] = hash;
        self.values[last] = (self.counts[last], value);
        last
    }
}

/// A number that this thread has for itself, as far as there are enough.
fn thread_number() -> usize {
    // std's, because it is no word under test.
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    std::thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Relaxed);
    }
    // An ending thread has none any more; any will do.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

impl<K> fmt::Debug for HotLeapArray<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HotLeapArray")
            .field("n_buckets", &self.n_buckets)
            .field("bucket", &Duration::from_nanos(self.bucket_ns))
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn values_are_listed_by_how_often_they_came_in_the_last_interval() {
        let hot = HotLeapArray::new(5, SECOND, 8).unwrap();
        for (ms, value, n) in [(0, 'a', 5), (200, 'b', 3), (400, 'a', 1), (999, 'c', 2)] {
            hot.record(at(ms), &value, n);
        }
        assert_eq!(hot.top(at(999), 9), [('a', 6, 0), ('b', 3, 0), ('c', 2, 0)]);
        assert_eq!(hot.top(at(999), 2), [('a', 6, 0), ('b', 3, 0)]);
        assert_eq!(hot.top(at(1_199), 9), [('b', 3, 0), ('c', 2, 0), ('a', 1, 0)]);
        assert_eq!(hot.top(at(1_799), 9), [('c', 2, 0)]);
        assert_eq!(hot.top(at(1_800), 9), []);
        assert_eq!(hot.top(Timestamp::from_nanos(u64::MAX), 9), []);
    }

    #[test]
    fn a_late_reading_counts_in_the_newest_bucket() {
        let hot = HotLeapArray::new(5, SECOND, 8).unwrap();
        hot.record(at(5_000), &'a', 1);
        hot.record(at(100), &'a', 1);
        assert_eq!(hot.top(at(100), 9), [('a', 2, 0)]);
        assert_eq!(hot.top(at(5_999), 9), [('a', 2, 0)]);
    }

    #[test]
    fn what_has_no_place_takes_that_of_the_least_and_its_count_as_error() {
        let hot = HotLeapArray::new(1, SECOND, 2).unwrap();
        for value in ['a', 'a', 'a', 'b', 'c'] {
            hot.record(at(0), &value, 1);
        }
        assert_eq!(hot.top(at(0), 9), [('a', 3, 0), ('c', 2, 1)]);
    }

    #[test]
    fn a_scan_over_a_million_values_hides_no_hot_one() {
        let hot = HotLeapArray::new(5, SECOND, 64).unwrap();
        for i in 0..1_000_000_u32 {
            hot.record(at(u64::from(i) / 1_000), &i, 1);
            if i % 20 == 0 {
                hot.record(at(u64::from(i) / 1_000), &u32::MAX, 1);
            }
        }
        let total = 1_050_000;
        let (value, count, error) = hot.top(at(999), 1)[0];
        assert_eq!(value, u32::MAX);
        assert!(count >= 50_000 && count - error <= 50_000 && error <= total / 64, "{count} {error}");
        let kept: usize = hot
            .stripes
            .iter()
            .map(|stripe| {
                stripe.lock(|buckets| buckets.summaries.iter().map(|s| s.values.len()).sum::<usize>())
            })
            .sum();
        assert!(kept <= 5 * 64, "{kept}");
    }

    #[test]
    fn threads_are_added_up() {
        let hot = HotLeapArray::new(5, SECOND, 8).unwrap();
        std::thread::scope(|scope| {
            for value in 0..4 {
                let hot = &hot;
                scope.spawn(move || (0..1_000).for_each(|_| hot.record(at(10), &(value / 2), 1)));
            }
        });
        let mut top = hot.top(at(10), 9);
        top.sort_unstable();
        assert_eq!(top, [(0, 2_000, 0), (1, 2_000, 0)]);
    }

    #[test]
    fn a_window_has_to_divide() {
        assert!(HotLeapArray::<u8>::new(3, SECOND, 8).is_err());
        assert!(HotLeapArray::<u8>::new(0, SECOND, 8).is_err());
        assert!(HotLeapArray::<u8>::new(5, SECOND, 0).is_ok());
    }

    proptest! {
        /// Against a plain list of all records: the three bounds in the docs.
        #[test]
        fn counts_are_within_their_error_and_whoever_came_often_is_listed(
            records in prop::collection::vec((0..300_u64, 0..30_u32, 1..4_u64), 1..400),
            capacity in 1..12_usize,
        ) {
            let hot = HotLeapArray::new(5, SECOND, capacity).unwrap();
            let (mut now, mut all) = (0, vec![]);
            for (pause, value, n) in records {
                now += u64::saturating_sub(pause, 250);
                // Squared, so that some are frequent.
                let value = value * value / 30;
                hot.record(at(now), &value, n);
                all.push((now / 200, value, n));
            }
            let mut truth = HashMap::new();
            for (_, value, n) in all.iter().filter(|(tick, ..)| tick + 5 > now / 200) {
                *truth.entry(*value).or_insert(0) += n;
            }
            let total: u64 = truth.values().sum();
            let top = hot.top(at(now), usize::MAX);
            prop_assert!(top.is_sorted_by(|one, next| one.1 >= next.1));
            for (value, count, error) in &top {
                let came = truth.get(value).copied().unwrap_or(0);
                prop_assert!(came <= *count && count - error <= came, "{value}: {came} in {count} - {error}");
                prop_assert!(*error <= total / capacity as u64, "{error} of {total}");
            }
            for (value, came) in truth {
                let is_listed = top.iter().any(|(listed, ..)| *listed == value);
                prop_assert!(is_listed || came <= total / capacity as u64, "{value} came {came} of {total}");
            }
        }
    }
}
