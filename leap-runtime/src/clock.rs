//! Time as the guards see it: monotonic, counted from a start of its own, and injectable.

// std's atomics, not `crate::sync`'s: a clock is what a model is given, not what it examines.
use std::{
    fmt::Debug,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

/// A moment: nanoseconds since its clock's start.
///
/// Arithmetic saturates, so a reading that is a little older than another one, or older than the process, is
/// the same moment and never a panic.
///
/// # Examples
///
/// ```
/// # use leap_runtime::clock::Timestamp;
/// # use std::time::Duration;
/// let moment = Timestamp::from_millis(1_500);
/// assert_eq!(moment.since(Timestamp::from_millis(1_000)), Duration::from_millis(500));
/// assert_eq!(moment.since(Timestamp::from_millis(9_000)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The clock's start.
    pub const ZERO: Self = Self(0);

    /// The moment `nanos` nanoseconds after the start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The moment `micros` microseconds after the start.
    #[inline]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The moment `millis` milliseconds after the start.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the start.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds since the start.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The time from `earlier` to here; zero if `earlier` is in fact later.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.since_ns(earlier))
    }

    /// As [`since`](Self::since), in nanoseconds: a `Duration` costs a division.
    #[inline]
    pub(crate) const fn since_ns(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment `duration` later, or the last one there is.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// The moment `duration` earlier, or the start.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

/// The nanoseconds of `duration`; what exceeds 584 years counts as 584 years.
const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

/// Where a registry's time comes from.
///
/// Every decision goes by [`now`](Clock::now). The wall clock labels reports; it may jump as it likes and
/// no limit, window or breaker notices.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The present moment.
    ///
    /// It should not run backwards; where one reading is older than another thread's, guards take it as the
    /// same moment.
    fn now(&self) -> Timestamp;

    /// The wall clock, for labels only.
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// The machine's monotonic clock; it starts at zero when it is made.
///
/// With the feature `quanta` (default) it reads the processor's time stamp counter, at about half the cost
/// of asking the operating system. The first one made in a process then takes the time to calibrate, up to
/// 200 ms.
#[derive(Clone, Debug)]
pub struct SystemClock {
    #[cfg(feature = "quanta")]
    counter: quanta::Clock,
    #[cfg(feature = "quanta")]
    start: u64,
    #[cfg(not(feature = "quanta"))]
    start: std::time::Instant,
}

impl SystemClock {
    /// A clock that reads zero now.
    #[cfg(feature = "quanta")]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let start = counter.raw();
        Self { counter, start }
    }

    /// A clock that reads zero now.
    #[cfg(not(feature = "quanta"))]
    pub fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[cfg(feature = "quanta")]
    #[inline]
    fn now(&self) -> Timestamp {
        // The raw count scaled once: no `Duration`, whose seconds would cost a division.
        Timestamp(self.counter.delta_as_nanos(self.start, self.counter.raw()))
    }

    #[cfg(not(feature = "quanta"))]
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp(nanos(self.start.elapsed()))
    }
}

/// A clock that stands still until it is moved: for tests and simulations.
///
/// Clones share their time.
///
/// # Examples
///
/// ```
/// # use leap_runtime::clock::{Clock, ManualClock, Timestamp};
/// # use std::time::Duration;
/// let clock = ManualClock::new();
/// let seen_by_the_registry = clock.clone();
/// clock.advance(Duration::from_millis(250));
/// assert_eq!(seen_by_the_registry.now(), Timestamp::from_millis(250));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Hands>);

/// What the clones of a [`ManualClock`] share.
#[derive(Debug)]
struct Hands {
    now: AtomicU64,
    /// What the wall clock showed at which moment; from there it walks with `now`.
    wall: Mutex<(SystemTime, Timestamp)>,
}

impl Default for Hands {
    fn default() -> Self {
        Self { now: AtomicU64::new(0), wall: Mutex::new((SystemTime::UNIX_EPOCH, Timestamp::ZERO)) }
    }
}

impl ManualClock {
    /// A clock at zero, with its wall clock at the Unix epoch.
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        let clock = Self::new();
        clock.set(now);
        clock
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        // Relaxed: the time is one word, and nothing else is published with it.
        let _ = self.0.now.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_add(nanos(by))));
    }

    /// Sets the time, backwards too: that is how a test makes a late reading.
    pub fn set(&self, now: Timestamp) {
        self.0.now.store(now.as_nanos(), Relaxed);
    }

    /// Sets the wall clock; the time stays, and from here the wall clock walks with it.
    pub fn set_wall(&self, wall: SystemTime) {
        let now = self.now();
        *self.0.wall.lock().unwrap_or_else(PoisonError::into_inner) = (wall, now);
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp(self.0.now.load(Relaxed))
    }

    fn wall(&self) -> SystemTime {
        let (wall, at) = *self.0.wall.lock().unwrap_or_else(PoisonError::into_inner);
        wall.checked_add(self.now().since(at)).unwrap_or(wall)
    }
}

/// tokio's clock, so that a paused runtime (`start_paused`, `tokio::time::advance`) moves the guards too.
///
/// It starts at zero when it is made; make it inside the runtime whose time it shall follow.
#[cfg(feature = "tokio")]
#[derive(Clone, Debug)]
pub struct TokioClock {
    start: tokio::time::Instant,
}

#[cfg(feature = "tokio")]
impl TokioClock {
    /// A clock that reads zero now.
    pub fn new() -> Self {
        Self { start: tokio::time::Instant::now() }
    }
}

#[cfg(feature = "tokio")]
impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "tokio")]
impl Clock for TokioClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp(nanos(tokio::time::Instant::now().saturating_duration_since(self.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_converts_between_its_units_and_rounds_down() {
        let moment = Timestamp::from_nanos(1_999_999);
        assert_eq!((moment.as_nanos(), moment.as_micros(), moment.as_millis()), (1_999_999, 1_999, 1));
        assert_eq!(Timestamp::from_micros(7), Timestamp::from_nanos(7_000));
        assert_eq!(Timestamp::from_millis(7), Timestamp::from_nanos(7_000_000));
    }

    #[test]
    fn timestamps_saturate_at_both_ends() {
        let last = Timestamp::from_nanos(u64::MAX);
        let young = Timestamp::from_millis(5);
        assert_eq!(young.saturating_sub(Duration::from_secs(60)), Timestamp::ZERO); // A05
        assert_eq!(young.since(Timestamp::from_millis(8)), Duration::ZERO);
        assert_eq!(last.saturating_add(Duration::from_nanos(1)), last);
        assert_eq!(young.saturating_add(Duration::MAX), last);
        assert_eq!(last.saturating_sub(Duration::MAX), Timestamp::ZERO);
        assert_eq!(Timestamp::from_millis(u64::MAX), last);
        assert_eq!(Timestamp::from_micros(u64::MAX), last);
    }

    #[test]
    fn the_system_clock_starts_at_zero_and_does_not_run_backwards() {
        let clock = SystemClock::new();
        let readings: Vec<_> = (0..1_000).map(|_| clock.now()).collect();
        assert!(readings.is_sorted(), "{readings:?}");
        assert!(readings[0] < Timestamp::from_millis(60_000), "{:?}", readings[0]);
    }

    #[test]
    fn the_system_clock_keeps_the_pace_of_the_operating_system() {
        let (clock, real) = (SystemClock::new(), std::time::Instant::now());
        let start = clock.now();
        while real.elapsed() < Duration::from_millis(20) {}
        let passed = clock.now().since(start);
        assert!(passed > Duration::from_millis(18), "{passed:?}");
    }

    #[test]
    fn clones_of_a_manual_clock_share_its_time() {
        let clock = ManualClock::at(Timestamp::from_millis(10));
        let other = clock.clone();
        other.advance(Duration::from_millis(5));
        assert_eq!(clock.now(), Timestamp::from_millis(15));
        clock.set(Timestamp::from_millis(12));
        assert_eq!(other.now(), Timestamp::from_millis(12));
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::from_nanos(u64::MAX));
    }

    #[test]
    fn a_manual_wall_clock_walks_with_the_time_and_moves_nothing_when_it_is_set() {
        let clock = ManualClock::at(Timestamp::from_millis(10_000));
        let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(43_200);
        clock.set_wall(noon);
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.wall(), noon + Duration::from_secs(1));
        clock.set_wall(noon - Duration::from_secs(3_600));
        assert_eq!(clock.now(), Timestamp::from_millis(11_000));
        clock.set(Timestamp::ZERO); // before the wall clock was set: it stands
        assert_eq!(clock.wall(), noon - Duration::from_secs(3_600));
    }

    #[cfg(feature = "tokio")]
    #[tokio::test(start_paused = true)]
    async fn tokios_clock_stands_still_while_the_runtime_is_paused() {
        let clock = TokioClock::new();
        tokio::time::advance(Duration::from_millis(250)).await;
        assert_eq!(clock.now(), Timestamp::from_millis(250));
        assert_eq!(clock.now(), Timestamp::from_millis(250));
    }

    #[cfg(feature = "tokio")]
    #[test]
    fn tokios_clock_runs_outside_a_runtime_too() {
        let clock = TokioClock::new();
        assert!(clock.now() <= clock.now());
    }
}
