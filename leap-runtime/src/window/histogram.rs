//! The histogram of response times, and their percentiles in the last minute.

use std::{array, time::Duration};

use super::Snapshots;
use crate::{
    clock::Timestamp,
    sync::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// How often each response time occurred: log-linear, eight buckets per octave, as in `HdrHistogram`.
///
/// ```text
///  response time    0 … 1 024 ns   in steps of 128 ns         buckets   0 …   7
///                1.024 … 2.048 µs  in steps of 128 ns                   8 …  15
///                2.048 … 4.096 µs  in steps of 256 ns                  16 …  23
///                        …         eight steps per octave                 …
///                4.6 … 9.2 min     in steps of 34 s                   232 … 239   and whatever is longer
/// ```
///
/// A bucket from `lo` to `hi` is shown as `2·lo·hi / (lo + hi)`, which is off by at most (hi − lo) / (hi +
/// lo) ≤ 1/17, that is 5.9 %, whichever of its times was meant. Below 1 µs the error is at most 64 ns.
///
/// The counts only grow. Every 15 s a snapshot of them is taken (four snapshots are what the 16 KiB of a
/// resource have room for), so the last minute is a difference of two.
pub(crate) struct Histogram {
    counts: ResponseTimes,
    minute: Snapshots<[AtomicU32; BUCKETS]>,
}

/// The counts of a histogram, or a part of them that others are added to.
#[derive(Debug)]
pub(crate) struct ResponseTimes([AtomicU64; BUCKETS]);

impl Default for ResponseTimes {
    fn default() -> Self {
        Self(array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl ResponseTimes {
    /// Counts one response time.
    #[inline]
    pub(crate) fn record(&self, rt_ns: u64) {
        // Relaxed: a count, read for statistics only.
        self.0[bucket_of(rt_ns)].fetch_add(1, Relaxed);
    }
}

const BUCKETS: usize = 240;

/// Nanoseconds per unit, as a shift: times are told in 128 ns.
const UNIT_SHIFT: u32 = 7;

/// Buckets per octave, as a shift.
const OCTAVE_SHIFT: u32 = 3;

/// The longest time told apart, in units: just under 2³⁹ ns.
const LONGEST: u64 = (1 << (39 - UNIT_SHIFT)) - 1;

impl Histogram {
    /// An empty histogram.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            counts: ResponseTimes::default(),
            minute: Snapshots::new(
                4,
                Duration::from_secs(15),
                now,
                || array::from_fn(|_| AtomicU32::new(0)),
                |_| {}, // The counts are zero.
            ),
        }
    }

    /// Its own counts.
    #[inline]
    pub(crate) fn counts(&self) -> &ResponseTimes {
        &self.counts
    }

    /// Takes the snapshots that are due, unless somebody is at it. `others` are counted elsewhere.
    #[cold]
    pub(crate) fn turn<'a, I: Iterator<Item = &'a ResponseTimes>>(
        &self,
        now: Timestamp,
        others: impl Fn() -> I,
    ) {
        self.minute.turn(now, |slot| {
            for (i, base) in slot.iter().enumerate() {
                // Relaxed: the ring orders it.
                base.store(self.count(i, others()), Relaxed);
            }
        });
    }

    /// The response times below which the shares `q` of the last minute's (45 to 60 s) calls stayed;
    /// nothing if none completed. `others` are counted elsewhere.
    pub(crate) fn quantiles<'a, const N: usize, I: Iterator<Item = &'a ResponseTimes>>(
        &self,
        now: Timestamp,
        q: [f64; N],
        others: impl Fn() -> I,
    ) -> Option<[Duration; N]> {
        let counts = self.minute.read(now, |view| {
            let base = view.oldest()?;
            // The base first, so that no count is below it; and after it those that it is of, which may be new.
            let base: [u32; BUCKETS] = array::from_fn(|i| base[i].load(Relaxed));
            Some(array::from_fn(|i| self.count(i, others()).wrapping_sub(base[i])))
        })?;
        quantiles_of(&counts, q)
    }

    /// What a bucket holds, modulo 2³².
    fn count<'a>(&self, bucket: usize, others: impl Iterator<Item = &'a ResponseTimes>) -> u32 {
        let load = |counts: &ResponseTimes| low(counts.0[bucket].load(Relaxed));
        others.fold(load(&self.counts), |sum, other| sum.wrapping_add(load(other)))
    }
}

/// The quantiles `q` of times counted by bucket.
fn quantiles_of<const N: usize>(counts: &[u32; BUCKETS], q: [f64; N]) -> Option<[Duration; N]> {
    let total: u64 = counts.iter().copied().map(u64::from).sum();
    if total == 0 {
        return None;
    }
    Some(q.map(|q| {
        let rank = rank(q, total);
        let mut below = 0;
        let bucket = counts.iter().position(|&count| {
            below += u64::from(count);
            below >= rank
        });
        shown(bucket.expect("a rank is at most the sum of all counts"))
    }))
}

/// Which of `total` times in order, from 1, is the quantile `q`: the first that has a share of `q` at or
/// below it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 240 × 2³², exact in an f64; between 0 and the total"
)]
fn rank(q: f64, total: u64) -> u64 {
    ((q * total as f64).ceil() as u64).clamp(1, total)
}

/// The bucket of a response time.
#[inline]
fn bucket_of(rt_ns: u64) -> usize {
    let units = (rt_ns >> UNIT_SHIFT).min(LONGEST);
    // In the first two octaves a step is one unit; from there it doubles with each. So the three bits below
    // the leading one, together with it (8 to 15), say where in its octave a time is.
    let step = (units | 1 << OCTAVE_SHIFT).ilog2() - OCTAVE_SHIFT;
    let bucket = (u64::from(step) << OCTAVE_SHIFT) + (units >> step);
    usize::try_from(bucket).expect("less than 240")
}

/// The first response time of a bucket, in nanoseconds.
fn start_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let step = (bucket >> OCTAVE_SHIFT).saturating_sub(1);
    (bucket - (step << OCTAVE_SHIFT)) << step << UNIT_SHIFT
}

/// What is shown for the times of a bucket.
fn shown(bucket: usize) -> Duration {
    let (lo, hi) = (start_of(bucket), start_of(bucket + 1));
    let middle = if bucket < 1 << OCTAVE_SHIFT {
        lo.midpoint(hi)
    } else {
        // u128: both ends may have 39 bits.
        let (lo, hi) = (u128::from(lo), u128::from(hi));
        u64::try_from(2 * lo * hi / (lo + hi)).expect("between two u64")
    };
    Duration::from_nanos(middle)
}

/// The snapshots keep counts modulo 2³²: no minute has that many calls.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2³²")]
fn low(count: u64) -> u32 {
    count as u32
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
