//! The last sample of the machine's figures, and whose turn it is to take the next.

use std::time::Duration;

use super::probe::SystemSample;
use crate::clock::Timestamp;
use crate::sync::{AtomicU64, Ordering};

/// How often a sample is taken while calls come in.
const PERIOD: Duration = Duration::from_secs(1);
/// A figure that is older says nothing about the present.
const FRESH: Duration = Duration::from_secs(10);
/// Beyond these a figure is absurd: more tasks than a kernel runs, and more time than a quota and its bursts give.
const LOAD_MAX: f64 = 1e6;
const SHARE_MAX: f64 = 2.0;

/// The figures of the machine, as last sampled.
#[derive(Debug)]
pub(super) struct Samples {
    /// When the next sample is due. Whoever moves it takes the sample.
    due_ns: AtomicU64,
    load: Figure,
    cpu: Figure,
    quota: Figure,
    ignored: AtomicU64,
}

impl Samples {
    /// No figures yet; a sample is due at once.
    pub(super) fn new() -> Self {
        Self {
            due_ns: AtomicU64::new(0),
            load: Figure::none(),
            cpu: Figure::none(),
            quota: Figure::none(),
            ignored: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        // Relaxed: a time to compare with.
        now.as_nanos() >= self.due_ns.load(Ordering::Relaxed)
    }

    /// Whether it is for the caller to take the sample that is due. Nobody else is told so for a period from now.
    pub(super) fn claim(&self, now: Timestamp) -> bool {
        let due = self.due_ns.load(Ordering::Relaxed);
        let next = now.saturating_add(PERIOD).as_nanos();
        // Relaxed: the winner writes the figures, which are published by themselves; losers go by those there are.
        now.as_nanos() >= due
            && self.due_ns.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Puts off the next sample to a period from now: the caller takes one.
    pub(super) fn put_off(&self, now: Timestamp) {
        self.due_ns.store(now.saturating_add(PERIOD).as_nanos(), Ordering::Relaxed);
    }

    /// Takes over what makes sense of a sample. What does not is counted, and the figure before it stands.
    pub(super) fn note(&self, sample: &SystemSample, now: Timestamp) {
        let figures = [
            (&self.load, sample.load(), LOAD_MAX),
            (&self.cpu, sample.cpu_of_quota(), SHARE_MAX),
            (&self.quota, sample.quota(), LOAD_MAX),
        ];
        for (figure, value, most) in figures {
            // A NaN is in no range.
            if value.is_none_or(|value| (0.0..=most).contains(&value)) {
                figure.set(value, now);
            } else {
                self.ignored.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn load(&self, now: Timestamp) -> Option<f64> {
        self.load.get(now)
    }

    pub(super) fn cpu_of_quota(&self, now: Timestamp) -> Option<f64> {
        self.cpu.get(now)
    }

    pub(super) fn quota(&self, now: Timestamp) -> Option<f64> {
        self.quota.get(now)
    }

    pub(super) fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }
}

/// A figure and when it was taken. NaN stands for none.
#[derive(Debug)]
struct Figure {
    bits: AtomicU64,
    at_ns: AtomicU64,
}

impl Figure {
    fn none() -> Self {
        Self { bits: AtomicU64::new(f64::NAN.to_bits()), at_ns: AtomicU64::new(0) }
    }

    fn set(&self, value: Option<f64>, now: Timestamp) {
        self.bits.store(value.unwrap_or(f64::NAN).to_bits(), Ordering::Relaxed);
        // Release: who sees that it is fresh sees this figure or a later one.
        self.at_ns.store(now.as_nanos(), Ordering::Release);
    }

    /// None where nothing was found, or long ago.
    fn get(&self, now: Timestamp) -> Option<f64> {
        // Acquire: see `set`.
        let at = Timestamp::from_nanos(self.at_ns.load(Ordering::Acquire));
        let value = f64::from_bits(self.bits.load(Ordering::Relaxed));
        (!value.is_nan() && now.since(at) <= FRESH).then_some(value)
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_sample_is_for_one_to_take_once_a_second() {
        let samples = Samples::new();
        assert!(samples.is_due(at(5)) && samples.claim(at(5)) && !samples.claim(at(5)));
        assert!(!samples.is_due(at(1_004)) && !samples.claim(at(1_004)));
        assert!(samples.is_due(at(1_005)));
        samples.put_off(at(1_005));
        assert!(!samples.claim(at(2_004)) && samples.claim(at(2_005)));
    }

    #[test]
    fn what_makes_no_sense_is_ignored_and_counted_and_the_figure_before_stands() {
        let samples = Samples::new();
        samples.note(&SystemSample::default().with_load(2.5).with_cpu_of_quota(0.9), at(0));
        let nonsense = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1e300];
        for (n, value) in (1..).zip(nonsense) {
            samples.note(&SystemSample::default().with_load(value).with_cpu_of_quota(value), at(1_000));
            assert_eq!(samples.ignored(), 2 * n, "{value}");
            assert_eq!((samples.load(at(1_000)), samples.cpu_of_quota(at(1_000))), (Some(2.5), Some(0.9)));
        }
        samples.note(&SystemSample::default().with_cpu_of_quota(80.0).with_load(80.0), at(1_000));
        assert_eq!(samples.cpu_of_quota(at(1_000)), Some(0.9), "that was a percentage");
        assert_eq!(samples.load(at(1_000)), Some(80.0));
    }

    #[test]
    fn a_figure_that_is_gone_is_none_at_once_and_one_that_is_not_renewed_after_ten_seconds() {
        let samples = Samples::new();
        samples.note(&SystemSample::default().with_load(1.0).with_cpu_of_quota(0.5), at(0));
        assert_eq!(samples.cpu_of_quota(at(10_000)), Some(0.5));
        assert_eq!(samples.cpu_of_quota(at(10_001)), None);
        samples.note(&SystemSample::default(), at(500));
        assert_eq!(samples.load(at(500)), None);
    }
}
