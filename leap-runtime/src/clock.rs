//! Time as the guards see it: monotonic, counted from a start of its own, and injectable.

// std's atomics, not `crate::sync`'s: a clock is what a model is given, not what it examines.
use std::{
    collections::BTreeMap,
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Wake, Waker},
    thread::{self, Thread},
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

/// A fresh reading of a clock, for those who may need one.
///
/// Behind a pointer, because hardly any call comes to it: each kind of clock and of caller would have a copy of all that may
/// ask, a third of what leap adds to a program.
pub(crate) type Reading<'a> = dyn Fn() -> Timestamp + 'a;

/// Where a registry's time comes from.
///
/// Every decision goes by [`now`](Clock::now). The wall clock labels reports; it may jump as it likes and
/// no limit, window or breaker notices.
///
/// A clock that does not follow real time provides [`park_until`](Clock::park_until) and
/// [`wake_at`](Clock::wake_at) as well: only it knows when a moment has come. A clock that wraps another one passes
/// all four on.
///
/// # Examples
///
/// ```
/// use std::task::Waker;
/// use std::time::{Duration, SystemTime};
/// use leap_runtime::{Clock, ManualClock, Timestamp};
///
/// /// Another clock, an hour late.
/// #[derive(Debug)]
/// struct Late<C>(C);
/// const HOUR: Duration = Duration::from_secs(3_600);
///
/// impl<C: Clock> Clock for Late<C> {
///     fn now(&self) -> Timestamp {
///         self.0.now().saturating_sub(HOUR)
///     }
///     fn wall(&self) -> SystemTime {
///         self.0.wall()
///     }
///     fn park_until(&self, until: Timestamp) {
///         self.0.park_until(until.saturating_add(HOUR));
///     }
///     fn wake_at(&self, until: Timestamp, waker: &Waker) -> bool {
///         self.0.wake_at(until.saturating_add(HOUR), waker)
///     }
/// }
///
/// let clock = ManualClock::new();
/// let late = Late(clock.clone());
/// clock.advance(HOUR + Duration::from_secs(1));
/// assert_eq!(late.now(), Timestamp::from_millis(1_000));
/// ```
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

    /// Blocks this thread until that moment, or until it is [unparked](Thread::unpark).
    ///
    /// An unparking that came first counts too, as with [`thread::park`]. It may return early for no reason; callers
    /// look at the clock and park again.
    ///
    /// Unless provided it parks for the time that is left, in real time.
    fn park_until(&self, until: Timestamp) {
        let now = self.now();
        if now < until {
            thread::park_timeout(until.since(now));
        }
    }

    /// Has `waker` woken when that moment comes, and at once if it has come; false if the clock does not do that.
    ///
    /// It may be woken early, and after the task has lost its interest. A clock answers always the same, whatever the
    /// moment. Unless provided it answers false: the clock follows real time, so a timer of the executor will do (see
    /// [`Sleep`](crate::Sleep)).
    fn wake_at(&self, until: Timestamp, waker: &Waker) -> bool {
        let _ = (until, waker);
        false
    }
}

/// Unparks a thread when it is woken.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// A waker that unparks the present thread.
pub(crate) fn unparker() -> Waker {
    Arc::new(Unpark(thread::current())).into()
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
    /// Nanoseconds per 2⁴⁰ counts.
    #[cfg(feature = "quanta")]
    scale: u64,
    #[cfg(not(feature = "quanta"))]
    start: std::time::Instant,
}

/// How many counts a scale is of, as a shift: what it cuts off is a nanosecond in 18 minutes at most.
#[cfg(feature = "quanta")]
const SCALE: u32 = 40;

impl SystemClock {
    /// A clock that reads zero now.
    #[cfg(feature = "quanta")]
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let start = counter.raw();
        let scale = counter.delta_as_nanos(0, 1 << SCALE);
        Self { counter, start, scale }
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
        // Another processor's counter may be a little behind.
        let counted = self.counter.raw().saturating_sub(self.start);
        // By one multiplication and a fixed shift: a tenth of the instructions of a call were spent on telling the time.
        #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of 584 years")]
        Timestamp(((u128::from(counted) * u128::from(self.scale)) >> SCALE) as u64)
    }

    #[cfg(not(feature = "quanta"))]
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp(nanos(self.start.elapsed()))
    }
}

/// A clock that stands still until it is moved: for tests and simulations.
///
/// Clones share their time. Calls that wait for a moment, threads and futures alike, go on when the clock is moved
/// there. Somebody else has to move it: a task that awaits such a call and would advance the clock afterwards hangs. Spawn
/// the call, or join it with what advances: `join!(call, async { clock.advance(time) })`.
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
    /// Locked to look at `now` and register, and after `now` was moved: so nobody registers for a moment that was
    /// reached unseen.
    sleepers: Mutex<Sleepers>,
}

impl Default for Hands {
    fn default() -> Self {
        Self {
            now: AtomicU64::new(0),
            wall: Mutex::new((SystemTime::UNIX_EPOCH, Timestamp::ZERO)),
            sleepers: Mutex::default(),
        }
    }
}

impl Hands {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Relaxed))
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called when `now` was moved.
    fn wake_due(&self) {
        let due = {
            let mut sleepers = self.sleepers();
            sleepers.take_due(self.now())
        };
        wake_all(due);
    }
}

/// To be called with no lock held: what is woken is not ours. If it panics, the panic hook has told so, and the others are
/// woken all the same.
pub(crate) fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // Dropping a payload is the panicking code's own business, and may panic again.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        }
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

    /// Moves the time forward, and wakes those whose moment has come.
    pub fn advance(&self, by: Duration) {
        // Relaxed: the time is one word, and nothing else is published with it.
        let _ = self.0.now.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_add(nanos(by))));
        self.0.wake_due();
    }

    /// Sets the time and wakes those whose moment has come. Backwards too: that is how a test makes a late reading.
    pub fn set(&self, now: Timestamp) {
        self.0.now.store(now.as_nanos(), Relaxed);
        self.0.wake_due();
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
        self.0.now()
    }

    fn wall(&self) -> SystemTime {
        let (wall, at) = *self.0.wall.lock().unwrap_or_else(PoisonError::into_inner);
        wall.checked_add(self.now().since(at)).unwrap_or(wall)
    }

    fn park_until(&self, until: Timestamp) {
        if self.now() < until {
            let waker = unparker();
            // If the moment comes between here and the parking, the thread is unparked, and parking returns at once.
            self.wake_at(until, &waker);
            thread::park();
            self.0.sleepers().forget(until, &waker);
        }
    }

    fn wake_at(&self, until: Timestamp, waker: &Waker) -> bool {
        let to_wake = {
            let mut sleepers = self.0.sleepers();
            if self.now() < until { sleepers.register(until, waker) } else { vec![waker.clone()] }
        };
        wake_all(to_wake);
        true
    }
}

/// So few sleepers are never asked whether they still are.
const UNASKED: usize = 64;

/// Who is to be woken when.
///
/// A future that is dropped leaves its waker behind, and nobody can tell. So when there are many, all are woken: who
/// still waits registers again, and those who have not done so by the next time are forgotten. What is kept stays in
/// proportion to those who wait: at most three times as many, and twice [`UNASKED`].
///
/// All that happens to a waker under the lock is that its references are counted.
#[derive(Debug)]
struct Sleepers {
    by_moment: BTreeMap<(Timestamp, Identity), Sleeper>,
    /// So many are kept before all are asked.
    room: usize,
}

/// What [`Waker::will_wake`] compares. An address is not used again while the waker that has it is kept.
type Identity = [usize; 2];

#[derive(Debug)]
struct Sleeper {
    waker: Waker,
    heard: Heard,
}

/// What is known of a sleeper's interest.
#[derive(Debug, PartialEq)]
enum Heard {
    /// It has registered.
    Once,
    /// It was woken early, and has not registered again.
    Asked,
    /// It was woken early and has registered again.
    Again,
}

impl Default for Sleepers {
    fn default() -> Self {
        Self { by_moment: BTreeMap::new(), room: UNASKED }
    }
}

impl Sleepers {
    /// Returns whom to wake now.
    fn register(&mut self, until: Timestamp, waker: &Waker) -> Vec<Waker> {
        if let Some(known) = self.by_moment.get_mut(&(until, identity(waker))) {
            if known.heard == Heard::Asked {
                known.heard = Heard::Again;
            }
            return vec![];
        }
        let sleeper = Sleeper { waker: waker.clone(), heard: Heard::Once };
        self.by_moment.insert((until, identity(waker)), sleeper);
        if self.by_moment.len() > self.room { self.ask() } else { vec![] }
    }

    /// Forgets who did not answer the last time, and returns the others to be woken.
    #[cold]
    fn ask(&mut self) -> Vec<Waker> {
        let n_waiting = self.by_moment.values().filter(|sleeper| sleeper.heard == Heard::Again).count();
        let mut to_wake = Vec::with_capacity(self.by_moment.len());
        self.by_moment.retain(|_, sleeper| {
            // Those to be forgotten are woken again, which is how their wakers leave the lock before they are dropped.
            to_wake.push(sleeper.waker.clone());
            std::mem::replace(&mut sleeper.heard, Heard::Asked) != Heard::Asked
        });
        self.room = self.by_moment.len() + n_waiting.max(UNASKED);
        to_wake
    }

    fn forget(&mut self, until: Timestamp, waker: &Waker) {
        // The caller's waker is the same one, so nothing of the sleeper's is dropped under the lock.
        self.by_moment.remove(&(until, identity(waker)));
    }

    fn take_due(&mut self, now: Timestamp) -> Vec<Waker> {
        let mut due = vec![];
        while let Some(first) = self.by_moment.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove().waker);
        }
        due
    }
}

fn identity(waker: &Waker) -> Identity {
    [waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr()]
}

/// tokio's clock, so that a paused runtime (`start_paused`, `tokio::time::advance`) moves the guards too.
///
/// It starts at zero when it is made; make it inside the runtime whose time it shall follow. Pausing needs tokio's feature
/// `test-util`. A registry with another clock does not see the paused time: the two part ways.
///
/// Async calls wait by tokio's timer, so a paused runtime that has nothing else to do jumps to their moment. A sync call
/// that waits on the thread of a paused runtime waits for ever: nobody is left to move the clock.
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

    /// In real time, as the thread may be any; but it looks every 10 ms whether a paused clock was moved. At least
    /// 1 ms, the grain of tokio's own timers, so that nobody turns in circles before a clock that stands.
    fn park_until(&self, until: Timestamp) {
        let now = self.now();
        if now < until {
            thread::park_timeout(until.since(now).clamp(Duration::from_millis(1), Duration::from_millis(10)));
        }
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

    /// Who is woken and how often.
    #[derive(Default)]
    struct Bell(AtomicU64);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    impl Bell {
        fn rang(&self) -> u64 {
            self.0.load(Relaxed)
        }

        fn waker(self: &Arc<Self>) -> Waker {
            Arc::clone(self).into()
        }
    }

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn kept(clock: &ManualClock) -> usize {
        clock.0.sleepers().by_moment.len()
    }

    #[test]
    fn a_manual_clock_wakes_at_the_moment_and_not_before() {
        let (clock, bells): (_, [Arc<Bell>; 3]) = (ManualClock::new(), Default::default());
        for (bell, moment) in bells.iter().zip([5, 5, 6]) {
            assert!(clock.wake_at(at(moment), &bell.waker()));
        }
        let rang = || bells.each_ref().map(|bell| bell.rang());
        clock.set(Timestamp::from_nanos(4_999_999));
        assert_eq!(rang(), [0, 0, 0]);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(rang(), [1, 1, 0]);
        clock.set(Timestamp::from_nanos(u64::MAX));
        assert_eq!((rang(), kept(&clock)), ([1, 1, 1], 0));
    }

    #[test]
    fn a_moment_that_has_come_wakes_at_once() {
        let (clock, bell) = (ManualClock::at(at(5)), Arc::new(Bell::default()));
        assert!(clock.wake_at(at(5), &bell.waker()));
        assert_eq!((bell.rang(), kept(&clock)), (1, 0));
        clock.park_until(at(5));
    }

    #[test]
    fn a_waker_that_registers_again_is_kept_once_for_each_moment() {
        let (clock, bell) = (ManualClock::new(), Arc::new(Bell::default()));
        let waker = bell.waker();
        for moment in [5, 5, 7, 5, 7] {
            clock.wake_at(at(moment), &waker);
        }
        assert_eq!(kept(&clock), 2);
        clock.set(at(5));
        assert_eq!(bell.rang(), 1);
        clock.set(at(7));
        assert_eq!((bell.rang(), Arc::strong_count(&bell)), (2, 2));
    }

    #[test]
    fn a_clock_that_is_set_back_wakes_when_it_comes_round_again() {
        let (clock, bell) = (ManualClock::at(at(10)), Arc::new(Bell::default()));
        clock.wake_at(at(15), &bell.waker());
        clock.set(at(0));
        clock.set(at(14));
        assert_eq!(bell.rang(), 0);
        clock.set(at(15));
        assert_eq!(bell.rang(), 1);
    }

    #[test]
    fn whoever_is_woken_may_move_the_clock_and_register_again() {
        struct Moves(ManualClock);
        impl Wake for Moves {
            fn wake(self: Arc<Self>) {
                self.0.wake_at(at(60_000), Waker::noop());
                self.0.advance(Duration::from_millis(1));
            }
        }
        let clock = ManualClock::new();
        clock.wake_at(at(5), &Arc::new(Moves(clock.clone())).into());
        clock.set(at(5));
        assert_eq!((clock.now(), kept(&clock)), (at(6), 1));
    }

    #[test]
    fn wakers_of_futures_that_were_dropped_are_forgotten_and_those_of_others_are_not() {
        let clock = ManualClock::new();
        let alive: Vec<Arc<Bell>> = (0..100).map(|_| Arc::default()).collect();
        let wakers: Vec<_> = alive.iter().map(Bell::waker).collect();
        let mut heard = vec![0; alive.len()];
        let mut most = 0;
        // Each is polled when it is woken, as an executor would.
        let mut poll = |heard: &mut Vec<u64>| {
            for ((bell, waker), heard) in alive.iter().zip(&wakers).zip(heard) {
                while *heard < bell.rang() {
                    *heard = bell.rang();
                    clock.wake_at(at(5), waker);
                }
            }
            most = most.max(kept(&clock));
        };
        for waker in &wakers {
            assert!(clock.wake_at(at(5), waker));
        }
        for dropped in 0..20_000 {
            clock.wake_at(at(5 + dropped % 7), &Arc::new(Bell::default()).waker());
            poll(&mut heard);
        }
        assert!(most < 500, "{most} wakers were kept");
        let n_early: u64 = heard.iter().sum();
        assert!(n_early < 30_000, "{n_early} times somebody was woken early");
        clock.set(at(5));
        assert!(alive.iter().zip(&heard).all(|(bell, heard)| bell.rang() == heard + 1));
    }

    #[test]
    fn a_parked_thread_misses_no_move_of_a_manual_clock() {
        let clock = ManualClock::new();
        let (arrived, arrivals) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let waiting = clock.clone();
            scope.spawn(move || {
                for moment in (1..=2_000).map(at) {
                    while waiting.now() < moment {
                        waiting.park_until(moment);
                    }
                    arrived.send(moment).unwrap();
                }
            });
            for moment in (1..=2_000).map(at) {
                clock.advance(Duration::from_millis(1));
                assert_eq!(arrivals.recv(), Ok(moment));
            }
        });
        assert_eq!(kept(&clock), 0);
    }

    #[test]
    fn a_parked_thread_goes_on_when_it_is_unparked_also_if_that_came_first() {
        let clocks: [&dyn Clock; 2] = [&ManualClock::new(), &SystemClock::new()];
        for clock in clocks {
            thread::current().unpark();
            clock.park_until(at(3_600_000));
            thread::scope(|scope| {
                let parked = scope.spawn(|| clock.park_until(at(3_600_000)));
                parked.thread().unpark();
            });
        }
    }

    #[test]
    fn a_thread_parks_by_the_system_clock_until_the_moment() {
        let clock = SystemClock::new();
        let until = clock.now().saturating_add(Duration::from_millis(3));
        while clock.now() < until {
            clock.park_until(until);
        }
        clock.park_until(Timestamp::ZERO);
        assert!(!clock.wake_at(Timestamp::ZERO, Waker::noop()));
    }

    #[cfg(feature = "tokio")]
    #[tokio::test(start_paused = true)]
    async fn a_thread_that_parks_by_tokios_paused_clock_looks_again_soon() {
        let clock = TokioClock::new();
        clock.park_until(at(3_600_000));
        assert_eq!(clock.now(), at(0));
        assert!(!clock.wake_at(at(0), Waker::noop()));
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
