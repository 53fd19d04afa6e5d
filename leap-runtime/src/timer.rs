//! How an async call waits for a moment without holding a thread.

use std::fmt;
use std::future::Future;
// std's, not `crate::sync`'s: nothing here is a word that a model examines.
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};

/// The timer of an executor, by which async calls wait their turn.
///
/// With the feature `tokio` (default) a registry uses `tokio::time::sleep`. For another executor it is given one of
/// these by [`Builder::sleep`](crate::Builder::sleep). A clock that wakes those who wait itself, as
/// [`ManualClock`](crate::ManualClock) does, needs none.
///
/// # Examples
///
/// For the executors that use `async-io` (smol, async-std):
///
/// ```
/// use std::pin::Pin;
/// use std::time::Duration;
/// use leap_runtime::{Registry, Sleep};
/// # mod async_io {
/// #     pub(crate) struct Timer;
/// #     impl Timer { pub(crate) async fn after(_: std::time::Duration) {} }
/// # }
///
/// struct OnAsyncIo;
///
/// impl Sleep for OnAsyncIo {
///     fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
///         Box::pin(async move {
///             async_io::Timer::after(time).await;
///         })
///     }
/// }
///
/// let registry = Registry::builder().sleep(OnAsyncIo).build();
/// ```
pub trait Sleep: Send + Sync + 'static {
    /// A future that is ready when `time` has passed.
    ///
    /// It is made and polled inside the future that waits, and dropped with it. If it is ready early, the rest is slept
    /// by another one.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Whether [`sleep`](Self::sleep) works here and now. If not, a call that would have to wait is blocked.
    ///
    /// True unless provided. The default timer answers false outside a tokio runtime, and on one whose time is not
    /// enabled.
    fn can_sleep(&self) -> bool {
        true
    }
}

/// The timer of a registry that is not given one.
#[cfg(feature = "tokio")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is none")]
pub(crate) fn usual() -> Option<Box<dyn Sleep>> {
    Some(Box::new(on_tokio::OnTokio::default()))
}

/// The timer of a registry that is not given one.
#[cfg(not(feature = "tokio"))]
pub(crate) fn usual() -> Option<Box<dyn Sleep>> {
    None
}

/// Waits for a moment by the clock, in a future that polls it.
///
/// Made before anything is known of an executor, and cheap until it is polled.
#[must_use = "an alarm does nothing unless it is polled"]
pub(crate) struct Alarm {
    until: Timestamp,
    sleep: Option<Box<Sleeping>>,
}

/// A sleep under way. Boxed twice, so that a future that might wait grows by one word only. The lock is never taken: in
/// it a future that is `Send` is `Sync` as well, and so stays whatever holds an alarm.
type Sleeping = Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>;

impl Alarm {
    pub(crate) fn new(until: Timestamp) -> Self {
        Self { until, sleep: None }
    }

    /// The moment that it waits for.
    pub(crate) fn until(&self) -> Timestamp {
        self.until
    }

    /// Ready when the moment has come by `clock`, who is asked first to wake the task; else `timer` does.
    pub(crate) fn poll_by(
        &mut self,
        clock: &dyn Clock,
        timer: Option<&dyn Sleep>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let now = clock.now();
        if now >= self.until {
            return Poll::Ready(());
        }
        if clock.wake_at(self.until, context.waker()) {
            return Poll::Pending;
        }
        if self.sleep.is_none() {
            self.sleep = timer.map(|timer| Box::new(Mutex::new(timer.sleep(self.until.since(now)))));
        }
        if let Some(sleep) = &mut self.sleep {
            let sleep = sleep.get_mut().unwrap_or_else(PoisonError::into_inner);
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
        if clock.now() >= self.until {
            return Poll::Ready(());
        }
        // Early, or no timer after all. The next poll sleeps on; until then it is the executor's turn, so that a timer
        // that never sleeps keeps nobody else from running.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("until", &self.until).finish_non_exhaustive()
    }
}

#[cfg(feature = "tokio")]
mod on_tokio {
    use std::future::{Future, ready};
    use std::panic::catch_unwind;
    use std::pin::Pin;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use tokio::runtime::{Handle, Id};

    use super::Sleep;

    /// tokio's timer, wherever there is one.
    #[derive(Debug, Default)]
    pub(super) struct OnTokio {
        /// The runtime that was last found to have no timer: tokio says so by a panic only, which is not to be heard
        /// once per call.
        pub(super) timeless: Mutex<Option<Id>>,
    }

    impl OnTokio {
        /// None outside a runtime, and on one without a timer.
        fn try_sleep(&self, time: Duration) -> Option<tokio::time::Sleep> {
            let here = Handle::try_current().ok()?.id();
            let timeless = || self.timeless.lock().unwrap_or_else(PoisonError::into_inner);
            if *timeless() == Some(here) {
                return None;
            }
            let sleep = catch_unwind(|| tokio::time::sleep(time)).ok();
            if sleep.is_none() {
                *timeless() = Some(here);
            }
            sleep
        }
    }

    impl Sleep for OnTokio {
        fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            match self.try_sleep(time) {
                Some(sleep) => Box::pin(sleep),
                // A wait that began on a runtime goes on outside it: the clock is looked at at every turn.
                None => Box::pin(ready(())),
            }
        }

        fn can_sleep(&self) -> bool {
            self.try_sleep(Duration::ZERO).is_some()
        }
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;
    use crate::clock::ManualClock;

    /// A clock that wakes nobody.
    #[derive(Clone, Debug)]
    struct Silent(ManualClock);

    impl Clock for Silent {
        fn now(&self) -> Timestamp {
            self.0.now()
        }
    }

    /// How often it was woken.
    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Bell {
        fn rang(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Sleeps whose first poll answers `is_ready`; it notes what was asked of it.
    struct Scripted {
        is_ready: bool,
        asked: Mutex<Vec<Duration>>,
    }

    impl Scripted {
        fn new(is_ready: bool) -> Self {
            Self { is_ready, asked: Mutex::default() }
        }

        fn take_asked(&self) -> Vec<Duration> {
            std::mem::take(&mut *self.asked.lock().unwrap())
        }
    }

    impl Sleep for Scripted {
        fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            self.asked.lock().unwrap().push(time);
            if self.is_ready { Box::pin(std::future::ready(())) } else { Box::pin(std::future::pending()) }
        }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn an_alarm_is_two_words_and_as_free_to_move_as_any_value() {
        fn is_free<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
        is_free::<Alarm>();
        assert_eq!(size_of::<Alarm>(), 16);
    }

    #[test]
    fn a_clock_that_wakes_is_asked_before_any_timer() {
        let (clock, timer, bell) = (ManualClock::new(), Scripted::new(false), Arc::new(Bell::default()));
        let waker = Waker::from(Arc::clone(&bell));
        let mut alarm = Alarm::new(at(5));
        let mut poll = || alarm.poll_by(&clock, Some(&timer), &mut Context::from_waker(&waker));
        assert_eq!(poll(), Poll::Pending);
        clock.advance(ms(4));
        assert_eq!((poll(), bell.rang()), (Poll::Pending, 0));
        clock.advance(ms(1));
        assert_eq!((poll(), bell.rang()), (Poll::Ready(()), 1));
        assert_eq!(timer.take_asked(), []);
    }

    #[test]
    fn a_timer_is_asked_for_the_time_that_is_left_and_once() {
        let (clock, timer) = (Silent(ManualClock::at(at(2))), Scripted::new(false));
        let mut alarm = Alarm::new(at(5));
        let mut poll = || alarm.poll_by(&clock, Some(&timer), &mut Context::from_waker(Waker::noop()));
        assert_eq!((poll(), poll()), (Poll::Pending, Poll::Pending));
        assert_eq!(timer.take_asked(), [ms(3)]);
        clock.0.advance(ms(3));
        assert_eq!(poll(), Poll::Ready(()), "the clock decides, whatever the timer says");
    }

    #[test]
    fn a_timer_that_is_early_sleeps_on_and_lets_others_run_meanwhile() {
        let (clock, timer) = (Silent(ManualClock::new()), Scripted::new(true));
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut alarm = Alarm::new(at(5));
        for (n_polls, left) in [(1, 5), (2, 3), (3, 1)] {
            let polled = alarm.poll_by(&clock, Some(&timer), &mut Context::from_waker(&waker));
            assert_eq!((polled, bell.rang(), timer.take_asked()), (Poll::Pending, n_polls, vec![ms(left)]));
            clock.0.advance(ms(2));
        }
        let polled = alarm.poll_by(&clock, None, &mut Context::from_waker(&waker));
        assert_eq!((polled, bell.rang()), (Poll::Ready(()), 3));
    }

    #[test]
    fn a_moment_that_has_come_needs_neither_clock_nor_timer() {
        let clock = Silent(ManualClock::at(at(5)));
        let mut alarm = Alarm::new(at(5));
        assert_eq!(alarm.until(), at(5));
        assert_eq!(alarm.poll_by(&clock, None, &mut Context::from_waker(Waker::noop())), Poll::Ready(()));
    }

    #[cfg(feature = "tokio")]
    mod tokios {
        use std::future::poll_fn;
        use std::pin::pin;

        use super::*;
        use crate::clock::TokioClock;
        use crate::timer::on_tokio::OnTokio;

        #[tokio::test(start_paused = true)]
        async fn an_alarm_on_tokios_paused_clock_goes_off_at_its_moment() {
            let (clock, timer) = (TokioClock::new(), OnTokio::default());
            assert!(timer.can_sleep());
            let mut alarm = Alarm::new(at(250));
            poll_fn(|context| alarm.poll_by(&clock, Some(&timer), context)).await;
            assert_eq!(clock.now(), at(250));
        }

        #[test]
        fn outside_a_runtime_nobody_can_sleep() {
            let timer = OnTokio::default();
            assert!(!timer.can_sleep());
            let mut sleep = timer.sleep(ms(1_000));
            let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(polled, Poll::Ready(()), "early, and no panic");
        }

        #[test]
        fn on_a_runtime_without_time_nobody_can_sleep_and_tokios_panic_is_heard_once() {
            let timer = OnTokio::default();
            let timeless = tokio::runtime::Builder::new_current_thread().build().unwrap();
            timeless.block_on(async {
                assert!(!timer.can_sleep());
                assert!(timer.timeless.lock().unwrap().is_some());
                assert!(!timer.can_sleep());
                assert_eq!(poll_fn(|context| timer.sleep(ms(1_000)).as_mut().poll(context)).await, ());
            });
            let other = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            assert!(other.block_on(async { timer.can_sleep() }));
            assert!(!timeless.block_on(async { timer.can_sleep() }));
        }

        #[test]
        fn a_wait_may_go_on_outside_the_runtime_that_it_began_on() {
            let (clock, timer) = (Silent(ManualClock::new()), OnTokio::default());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let mut alarm = Alarm::new(at(60_000));
            let mut wait = pin!(poll_fn(|context| alarm.poll_by(&clock, Some(&timer), context)));
            runtime.block_on(async {
                assert!(poll_fn(|context| Poll::Ready(wait.as_mut().poll(context))).await.is_pending());
            });
            let mut outside = Context::from_waker(Waker::noop());
            assert!(wait.as_mut().poll(&mut outside).is_pending());
            clock.0.advance(ms(60_000));
            assert!(wait.as_mut().poll(&mut outside).is_ready());
        }
    }
}
