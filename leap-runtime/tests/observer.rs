//! Who watches is told of everything and can change nothing.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use common::{R, Recorder, at, call, ms, passes, qps};
use leap_runtime::{
    Blocked, BreakerRule, BreakerState, Builder, ContainedPanic, LoadReport, ManualClock, Observer, Outcome,
    Registry, RuleSet, Transition,
};

fn builder(clock: &ManualClock) -> Builder {
    Registry::builder().clock(clock.clone())
}

/// One call per second; the breaker trips on the first exception and stays open for a second.
fn rules() -> RuleSet {
    let breaker = BreakerRule::error_count(0).with_min_calls(1).unwrap().open_for(ms(1_000)).unwrap();
    RuleSet::new().flow(R, qps(1.0)).breaker(R, breaker)
}

#[test]
fn each_event_is_told_once_and_in_its_order() {
    let (clock, recorder) = (ManualClock::new(), Recorder::default());
    let registry = builder(&clock).observer(recorder.clone()).build();
    registry.load(rules()).unwrap();
    let first = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    first.end(Outcome::Exception);
    assert!(registry.enter(R).is_err());
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(
        recorder.take(),
        [
            "load: rules: 2 added, 0 changed, 0 kept, 0 removed",
            "block orders.create by loaded/flow/0",
            "loaded/error_count/0 closed -> open",
            "block orders.create by loaded/error_count/0",
            "loaded/error_count/0 open -> half-open",
            "loaded/error_count/0 half-open -> closed",
        ]
    );
    assert!(registry.would_pass(R, 1).is_err());
    assert!(recorder.take().is_empty(), "a question is no event");
}

#[test]
fn a_block_is_in_the_statistics_when_it_is_told() {
    #[derive(Clone, Default)]
    struct Asks(Arc<OnceLock<Registry>>, Arc<Mutex<Vec<u64>>>);
    impl Observer for Asks {
        fn on_block(&self, blocked: &Blocked) {
            let stats = self.0.get().unwrap().stats(blocked.resource()).unwrap();
            self.1.lock().unwrap().push(stats.totals().blocked());
        }
    }
    let (clock, asks) = (ManualClock::new(), Asks::default());
    let registry = builder(&clock).observer(asks.clone()).build();
    asks.0.set(registry.clone()).unwrap();
    registry.load(rules()).unwrap();
    assert!(call(&registry, R, Outcome::Success));
    // By the short way, and by the whole one.
    assert!(registry.enter(R).is_err());
    assert!(registry.enter_with(R).permits(2).enter().is_err());
    assert!(registry.enter_with(R).origin("shop").enter().is_err());
    assert_eq!((asks.1.lock().unwrap().clone(), registry.contained_panics()), (vec![1, 3, 4], 0));
}

#[test]
fn a_transition_tells_which_breaker_moved_from_where_to_where_and_when() {
    #[derive(Clone, Default)]
    struct Last(Arc<Mutex<Option<String>>>);
    impl Observer for Last {
        fn on_transition(&self, transition: &Transition<'_>) {
            assert_eq!((transition.from(), transition.to()), (BreakerState::Closed, BreakerState::Open));
            assert_eq!((transition.resource(), transition.at()), (R, at(250)));
            *self.0.lock().unwrap() = Some(transition.to_string());
        }
    }
    let (clock, last) = (ManualClock::new(), Last::default());
    let registry = builder(&clock).observer(last.clone()).build();
    registry.load(rules()).unwrap();
    clock.set(at(250));
    assert!(call(&registry, R, Outcome::Exception));
    let told = last.0.lock().unwrap().take();
    assert_eq!(told.as_deref(), Some("breaker of `orders.create` (loaded/error_count/0): closed -> open"));
    assert_eq!(registry.contained_panics(), 0);
}

#[test]
fn an_observer_that_comes_later_hears_of_what_comes_later() {
    let clock = ManualClock::new();
    let registry = builder(&clock).build();
    registry.load(rules()).unwrap();
    assert!(call(&registry, R, Outcome::Exception));
    let (second, third) = (Recorder::default(), Recorder::default());
    registry.observe(second.clone());
    registry.observe(third.clone());
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Exception));
    let expected = ["loaded/error_count/0 open -> half-open", "loaded/error_count/0 half-open -> open"];
    assert_eq!(
        (second.take(), third.take()),
        (expected.map(String::from).into(), expected.map(String::from).into())
    );
}

/// An observer that panics whatever it is told.
struct Panicking;

impl Observer for Panicking {
    fn on_block(&self, _: &Blocked) {
        panic!("at a block");
    }

    fn on_transition(&self, _: &Transition<'_>) {
        panic!("{} transition", 1);
    }

    fn on_load(&self, _: &LoadReport) {
        std::panic::panic_any(7);
    }

    fn on_panic(&self, _: &ContainedPanic<'_>) {
        panic!("at a panic");
    }
}

#[test]
fn a_panic_in_an_observer_changes_no_verdict_and_is_told_to_the_others() {
    // F09
    let (clock, recorder) = (ManualClock::new(), Recorder::default());
    let registry = builder(&clock).observer(Panicking).observer(recorder.clone()).build();
    assert!(registry.load(rules()).is_ok());
    let first = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    first.end(Outcome::Exception);
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(
        recorder.take(),
        [
            "panic in observer (None): a payload that is not text",
            "load: rules: 2 added, 0 changed, 0 kept, 0 removed",
            "panic in observer (None): at a block",
            "block orders.create by loaded/flow/0",
            "panic in observer (None): 1 transition",
            "loaded/error_count/0 closed -> open",
            "panic in observer (None): 1 transition",
            "loaded/error_count/0 open -> half-open",
            "panic in observer (None): 1 transition",
            "loaded/error_count/0 half-open -> closed",
        ]
    );
    assert_eq!(registry.contained_panics(), 5);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().passed(), stats.totals().blocked(), stats.in_flight()), (2, 1, 0));
    assert_eq!(passes(&registry, "another", 3), 3);
}

#[test]
fn an_observer_that_panics_while_a_panic_unwinds_does_not_end_the_process() {
    // F09: the body's panic ends the call, that trips the breaker, and the observer panics about it.
    let clock = ManualClock::new();
    let registry = builder(&clock).observer(Panicking).observer(Panicking).build();
    registry.load(rules()).unwrap();
    let entry = registry.enter(R).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| entry.run(|| -> Result<(), ()> { panic!("in the body") })));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"in the body"));
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Success), "the breaker opened and is probed");
    assert_eq!(registry.stats(R).unwrap().breakers()[0].state(), BreakerState::Closed);
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped_is_contained_too() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("once more");
        }
    }
    struct Bomber;
    impl Observer for Bomber {
        fn on_block(&self, _: &Blocked) {
            std::panic::panic_any(Bomb);
        }
    }
    let registry = builder(&ManualClock::new()).observer(Bomber).build();
    registry.load(RuleSet::new().flow(R, qps(0.0))).unwrap();
    assert_eq!(passes(&registry, R, 3), 0);
    assert_eq!(registry.contained_panics(), 3);
}

/// Asks the registry whatever it is told, and loads rules when a breaker opens.
#[derive(Clone, Default)]
struct Asking {
    registry: Arc<OnceLock<Registry>>,
    n_told: Arc<AtomicUsize>,
}

impl Asking {
    fn ask(&self) {
        self.n_told.fetch_add(1, Ordering::Relaxed);
        let Some(registry) = self.registry.get() else { return };
        assert!(registry.stats(R).is_some());
        assert!(registry.resources().count() > 0);
        assert!(!registry.table().to_string().is_empty());
        assert!(!registry.loaded().is_empty());
        let _ = registry.would_pass(R, 1);
        assert_eq!(passes(registry, "entered.by.an.observer", 1), 1);
        registry.observe(Recorder::default());
    }
}

impl Observer for Asking {
    fn on_block(&self, _: &Blocked) {
        self.ask();
    }

    fn on_transition(&self, transition: &Transition<'_>) {
        self.ask();
        if let (Some(registry), BreakerState::Open) = (self.registry.get(), transition.to()) {
            registry.load(registry.loaded().flow("loaded.by.an.observer", qps(1.0))).unwrap();
        }
    }

    fn on_load(&self, _: &LoadReport) {
        self.ask();
    }
}

#[test]
fn an_observer_may_ask_the_registry_because_no_lock_is_held() {
    let (clock, asking) = (ManualClock::new(), Asking::default());
    let registry = builder(&clock).observer(asking.clone()).build();
    registry.load(rules()).unwrap();
    assert!(asking.registry.set(registry.clone()).is_ok());
    let first = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    first.end(Outcome::Exception);
    clock.set(at(1_000));
    assert!(call(&registry, R, Outcome::Success));
    assert_eq!(asking.n_told.load(Ordering::Relaxed), 6, "two loads, a block, three transitions");
    assert_eq!(registry.contained_panics(), 0);
    assert_eq!(passes(&registry, "loaded.by.an.observer", 5), 1);
}
