//! What the resources of one registry share: its clock, its settings, and who watches.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};

use arc_swap::ArcSwap;

use crate::check::Plan;
use crate::check::call::{Check, Request};
use crate::check::custom::Custom;
use crate::check::system::{System, SystemProbe};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::event::{ContainedPanic, Observer};
use crate::rule::{RuleId, SystemRule};
use crate::timer::{Alarm, Sleep};
use crate::tree::Tree;

/// The clock of a registry. The usual one is called directly, so that reading it can be inlined.
#[derive(Debug)]
pub(crate) enum AnyClock {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

/// What a registry is built with.
pub(crate) struct Settings {
    pub(crate) clock: AnyClock,
    pub(crate) timer: Option<Box<dyn Sleep>>,
    pub(crate) second_buckets: u32,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) probe: Arc<dyn SystemProbe>,
    pub(crate) hides_values: bool,
}

/// Shared by a registry and its resources.
pub(crate) struct Environment {
    clock: AnyClock,
    timer: Option<Box<dyn Sleep>>,
    second_buckets: u32,
    observers: ArcSwap<Vec<Arc<dyn Observer>>>,
    /// Spares the usual call a look at an empty list.
    is_observed: AtomicBool,
    contained_panics: AtomicU64,
    /// The application's own checks, in the order in which they were added.
    checks: ArcSwap<Vec<Custom>>,
    checks_added: AtomicU64,
    tree: Tree,
    system: ArcSwap<System>,
    /// Held while that is replaced.
    loading_system: Mutex<()>,
    /// Spares calls a look at a system that nobody guards.
    asks_system: AtomicBool,
    probe: Arc<dyn SystemProbe>,
    hides_values: bool,
    off: Off,
    idle_plan: Arc<Plan>,
}

/// What is switched off. Resources are told of a change after it was made here, and new ones look.
#[derive(Debug, Default)]
struct Off {
    all: AtomicBool,
    /// Those that a hand has switched off, whether or not anybody has entered them.
    resources: RwLock<BTreeSet<Box<str>>>,
}

impl Environment {
    pub(crate) fn new(settings: Settings) -> Self {
        let Settings { clock, timer, second_buckets, observers, probe, hides_values } = settings;
        Self {
            clock,
            timer,
            second_buckets,
            is_observed: AtomicBool::new(!observers.is_empty()),
            observers: ArcSwap::from_pointee(observers),
            contained_panics: AtomicU64::new(0),
            checks: ArcSwap::default(),
            checks_added: AtomicU64::new(0),
            tree: Tree::default(),
            system: ArcSwap::default(),
            loading_system: Mutex::default(),
            asks_system: AtomicBool::new(false),
            probe,
            hides_values,
            off: Off::default(),
            idle_plan: Arc::default(),
        }
    }

    /// The plan of a resource without rules: one for all, because most have none.
    pub(crate) fn idle_plan(&self) -> Arc<Plan> {
        Arc::clone(&self.idle_plan)
    }

    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        match &self.clock {
            AnyClock::System(clock) => clock.now(),
            AnyClock::Other(clock) => clock.now(),
        }
    }

    pub(crate) fn wall(&self) -> std::time::SystemTime {
        match &self.clock {
            AnyClock::System(clock) => clock.wall(),
            AnyClock::Other(clock) => clock.wall(),
        }
    }

    /// The clock, for those who wait.
    pub(crate) fn clock(&self) -> &dyn Clock {
        match &self.clock {
            AnyClock::System(clock) => clock,
            AnyClock::Other(clock) => &**clock,
        }
    }

    /// Whether an async call can wait here: the clock wakes it, or a timer does.
    pub(crate) fn can_wait(&self) -> bool {
        self.clock().wake_at(Timestamp::ZERO, Waker::noop())
            || self.timer.as_ref().is_some_and(|timer| timer.can_sleep())
    }

    /// Whether there is anything by which async calls could wait, here or elsewhere.
    pub(crate) fn has_timer(&self) -> bool {
        self.timer.is_some() || self.clock().wake_at(Timestamp::ZERO, Waker::noop())
    }

    /// The buckets that statistics cut the last second into.
    pub(crate) fn second_buckets(&self) -> u32 {
        self.second_buckets
    }

    /// Whether values of parameters are shown by their hashes only.
    pub(crate) fn hides_values(&self) -> bool {
        self.hides_values
    }

    pub(crate) fn observe(&self, observer: &Arc<dyn Observer>) {
        self.observers.rcu(|observers| {
            let mut observers = Vec::clone(observers);
            observers.push(Arc::clone(observer));
            observers
        });
        self.is_observed.store(true, Ordering::Release);
    }

    /// Adds a check for all resources whose names `pattern` matches; returns its number.
    pub(crate) fn add_check(&self, pattern: &str, check: Arc<dyn Check>) -> u64 {
        let number = self.checks_added.fetch_add(1, Ordering::Relaxed);
        let custom = Custom::new(number, pattern, check);
        self.checks.rcu(|checks| checks.iter().chain([&custom]).cloned().collect::<Vec<_>>());
        number
    }

    /// Removes the check of that number, if it is there.
    pub(crate) fn remove_check(&self, number: u64) -> bool {
        let others = |checks: &Arc<Vec<Custom>>| -> Vec<Custom> {
            checks.iter().filter(|custom| custom.number != number).cloned().collect()
        };
        let before = self.checks.rcu(others);
        before.iter().any(|custom| custom.number == number)
    }

    /// The checks of the resource called `name`.
    pub(crate) fn checks_of(&self, name: &str) -> Vec<Custom> {
        self.checks.load().iter().filter(|custom| custom.is_for(name)).cloned().collect()
    }

    /// Whether any check was added to some resource.
    pub(crate) fn has_checks(&self) -> bool {
        !self.checks.load().is_empty()
    }

    /// Switches all guarding on or off; tells whether that was a change.
    pub(crate) fn switch(&self, on: bool) -> bool {
        // Relaxed, here and below: whoever makes a resource anew, or looks at one again, does so under a lock that whoever
        // switches goes through afterwards.
        self.off.all.swap(!on, Ordering::Relaxed) == on
    }

    /// Whether guarding as a whole is on.
    pub(crate) fn is_on(&self) -> bool {
        !self.off.all.load(Ordering::Relaxed)
    }

    /// The same of one resource.
    pub(crate) fn switch_resource(&self, name: &str, on: bool) -> bool {
        let mut resources = self.off.resources.write().unwrap_or_else(PoisonError::into_inner);
        if on { resources.remove(name) } else { resources.insert(name.into()) }
    }

    /// The resources that a hand has switched off, in the order of their names.
    pub(crate) fn resources_off(&self) -> Vec<String> {
        let resources = self.off.resources.read().unwrap_or_else(PoisonError::into_inner);
        resources.iter().map(|name| name.as_ref().to_owned()).collect()
    }

    /// Whether a hand has left the resource on.
    pub(crate) fn is_resource_on(&self, name: &str) -> bool {
        !self.off.resources.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Whether calls of the resource are guarded.
    pub(crate) fn guards(&self, name: &str) -> bool {
        self.is_on() && self.is_resource_on(name)
    }

    /// Who entered what, in contexts.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The system's protection, if there is any and the call concerns it.
    #[inline]
    pub(crate) fn system_for(&self, request: &Request<'_>) -> Option<Arc<System>> {
        // Relaxed: a rule that was just loaded holds from about now on.
        (request.inbound && self.asks_system.load(Ordering::Relaxed)).then(|| self.fresh_system())
    }

    #[inline(never)]
    fn fresh_system(&self) -> Arc<System> {
        let mut system = self.system.load_full();
        let now = self.now();
        if system.is_worn_out(now) {
            self.replace_system(|system| system.rules().to_vec());
            system = self.system.load_full();
        }
        self.sample_if_due(&system, now);
        system
    }

    /// Samples the machine if a rule waits for that. A probe that panics leaves the figures as they were.
    pub(crate) fn sample_if_due(&self, system: &System, now: Timestamp) {
        if system.is_due(now) {
            let _ = self.contain("system probe", None, || system.sample_if_due(now));
        }
    }

    /// The system's protection as it stands.
    pub(crate) fn system(&self) -> Arc<System> {
        self.system.load_full()
    }

    /// Samples the machine now. A probe that panics leaves the figures as they were.
    pub(crate) fn sample_system(&self) {
        let (system, now) = (self.system.load_full(), self.now());
        let _ = self.contain("system probe", None, || system.sample(now));
    }

    /// Replaces the rules for the system.
    pub(crate) fn load_system(&self, rules: Vec<(RuleId, SystemRule)>) {
        self.replace_system(|_| rules);
    }

    fn replace_system(&self, rules: impl FnOnce(&System) -> Vec<(RuleId, SystemRule)>) {
        let _loading = self.loading_system.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = self.system.load_full();
        let system = Arc::new(System::new(rules(&previous), &previous, &self.probe, &|| self.now()));
        self.system.store(Arc::clone(&system));
        system.catch_up(&|| self.now());
        self.asks_system.store(system.counts(), Ordering::Relaxed);
    }

    /// Whether there is anybody to tell.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.is_observed.load(Ordering::Acquire)
    }

    /// Tells every observer. A panic in one is contained and told to the others.
    pub(crate) fn tell(&self, event: impl Fn(&dyn Observer)) {
        let observers = self.observers.load_full();
        for (i, observer) in observers.iter().enumerate() {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| event(&**observer))) {
                let others = observers.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, other)| other);
                self.contained("observer", None, &*payload, others);
                // Dropping a payload is the panicking code's own business, and may panic again.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            }
        }
    }

    /// Runs code that is not ours, for a resource or for all; a panic in it is contained, counted and told.
    #[inline]
    pub(crate) fn contain<'r, T>(
        &self,
        place: &'static str,
        resource: impl Into<Option<&'r str>>,
        code: impl FnOnce() -> T,
    ) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.take_panic(place, resource.into(), payload);
                None
            }
        }
    }

    /// Tells the observers of a panic that went no further, and drops what it carried.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_panic(
        &self,
        place: &'static str,
        resource: Option<&str>,
        payload: Box<dyn Any + Send>,
    ) {
        self.contained(place, resource, &*payload, self.observers.load_full().iter());
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    }

    #[cold]
    fn contained<'a>(
        &self,
        place: &'static str,
        resource: Option<&str>,
        payload: &(dyn Any + Send),
        observers: impl Iterator<Item = &'a Arc<dyn Observer>>,
    ) {
        self.contained_panics.fetch_add(1, Ordering::Relaxed);
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a payload that is not text");
        let panic = ContainedPanic { place, resource, message };
        for observer in observers {
            // An observer that panics about a panic is counted, and told to nobody.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| observer.on_panic(&panic))) {
                self.contained_panics.fetch_add(1, Ordering::Relaxed);
                let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            }
        }
    }

    pub(crate) fn contained_panics(&self) -> u64 {
        self.contained_panics.load(Ordering::Relaxed)
    }
}

impl Alarm {
    /// Ready when its moment has come in this environment.
    pub(crate) fn poll(&mut self, environment: &Environment, context: &mut Context<'_>) -> Poll<()> {
        self.poll_by(environment.clock(), environment.timer.as_deref(), context)
    }
}

/// A panic leaves nothing half-done in here: what a clock or an observer leaves in itself is its own business, as with
/// any global that a body might call.
impl UnwindSafe for Environment {}
impl RefUnwindSafe for Environment {}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("clock", &self.clock)
            .field("second_buckets", &self.second_buckets)
            .field("observers", &self.observers.load().len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use std::future::{Future, ready};
    use std::pin::Pin;
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    /// A timer that is there, or is not.
    struct Is(bool);

    impl Sleep for Is {
        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(ready(()))
        }

        fn can_sleep(&self) -> bool {
            self.0
        }
    }

    fn environment(clock: AnyClock, timer: Option<Is>) -> Environment {
        Environment::new(Settings {
            clock,
            timer: timer.map(|timer| Box::new(timer) as _),
            second_buckets: 10,
            observers: vec![],
            probe: Arc::new(crate::check::system::HostProbe::new()),
            hides_values: false,
        })
    }

    #[test]
    fn a_call_can_wait_where_the_clock_wakes_it_or_a_timer_does() {
        let system = || AnyClock::System(SystemClock::new());
        assert!(environment(AnyClock::Other(Arc::new(ManualClock::new())), None).can_wait());
        assert!(environment(system(), Some(Is(true))).can_wait());
        assert!(!environment(system(), Some(Is(false))).can_wait());
        assert!(!environment(system(), None).can_wait());
    }

    #[test]
    fn an_alarm_goes_off_by_the_clock_of_its_environment() {
        let clock = ManualClock::new();
        let environment = environment(AnyClock::Other(Arc::new(clock.clone())), None);
        let mut alarm = Alarm::new(Timestamp::from_millis(5));
        let mut poll = || alarm.poll(&environment, &mut Context::from_waker(Waker::noop()));
        assert_eq!(poll(), Poll::Pending);
        clock.advance(Duration::from_millis(5));
        assert_eq!(poll(), Poll::Ready(()));
    }
}
