//! A call ends exactly once, however it ends.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{R, Recorder, at, call, ms, passes, qps, registry, registry_with};
use leap_runtime::{
    BreakerRule, Clock, Entry, IsolationRule, ManualClock, Outcome, Registry, RuleSet, Timestamp, current,
};

/// Success, exception, ignored, cancelled, in flight.
fn ends(registry: &Registry) -> [u64; 5] {
    let stats = registry.stats(R).unwrap();
    let totals = stats.totals();
    assert_eq!(stats.in_flight(), totals.passed() - totals.completed());
    [totals.success(), totals.exception(), totals.ignored(), totals.cancelled(), stats.in_flight()]
}

#[test]
fn each_way_to_end_a_call_counts_as_what_it_says() {
    type End = fn(Entry);
    let ways: [(&str, End, [u64; 5]); 9] = [
        ("run, Ok", |entry| entry.run(|| Ok::<_, ()>(())).unwrap(), [1, 0, 0, 0, 0]),
        ("run, Err", |entry| entry.run(|| Err::<(), _>(())).unwrap_err(), [0, 1, 0, 0, 0]),
        ("run_with", |entry| entry.run_with(|| (), |()| Outcome::Ignored), [0, 0, 1, 0, 0]),
        ("end, success", |entry| entry.end(Outcome::Success), [1, 0, 0, 0, 0]),
        ("end, exception", |entry| entry.end(Outcome::Exception), [0, 1, 0, 0, 0]),
        ("end, ignored", |entry| entry.end(Outcome::Ignored), [0, 0, 1, 0, 0]),
        ("end, cancelled", |entry| entry.end(Outcome::Cancelled), [0, 0, 0, 1, 0]),
        ("dropped", drop, [0, 0, 0, 1, 0]),
        ("forgotten", std::mem::forget, [0, 0, 0, 0, 1]),
    ];
    for (name, end, expected) in ways {
        let (registry, _) = registry();
        let entry = registry.enter(R).unwrap();
        assert_eq!(ends(&registry), [0, 0, 0, 0, 1]);
        end(entry);
        assert_eq!(ends(&registry), expected, "{name}");
    }
}

#[test]
fn a_body_may_leave_early_in_every_way() {
    let (registry, _) = registry();
    let parse = |text: &str| {
        registry.enter(R).unwrap().run(|| {
            let number: u32 = text.parse()?;
            if number == 0 {
                return Ok(0);
            }
            Ok::<_, std::num::ParseIntError>(number + 1)
        })
    };
    assert_eq!((parse("7"), parse("0"), parse("x").is_err()), (Ok(8), Ok(0), true));
    assert_eq!(ends(&registry), [2, 1, 0, 0, 0]);
}

#[test]
fn a_panic_in_the_body_goes_on_and_the_call_ends_as_an_exception() {
    let (registry, _) = registry();
    let entry = registry.enter(R).unwrap();
    let panic =
        catch_unwind(AssertUnwindSafe(|| entry.run_with(|| panic!("mine"), |(): &()| Outcome::Success)));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"mine"));
    assert_eq!(ends(&registry), [0, 1, 0, 0, 0]);
}

#[test]
fn an_entry_that_a_panic_drops_is_an_exception() {
    let (registry, _) = registry();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _entry = registry.enter(R).unwrap();
        panic!("beside the entry");
    }));
    assert!(panic.is_err());
    assert_eq!(ends(&registry), [0, 1, 0, 0, 0]);
}

#[test]
fn a_call_made_while_a_panic_is_on_its_way_is_judged_by_itself() {
    struct CleanUp<'a>(&'a Registry);
    impl Drop for CleanUp<'_> {
        fn drop(&mut self) {
            assert!(call(self.0, R, Outcome::Success));
            drop(self.0.enter(R));
        }
    }
    let (registry, _) = registry();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _clean_up = CleanUp(&registry);
        panic!("before the calls");
    }));
    assert!(panic.is_err());
    assert_eq!(ends(&registry), [1, 0, 0, 1, 0]);
}

#[test]
fn a_call_cannot_end_twice() {
    // A16: `end` takes the entry, so that the compiler refuses a second one; the rest is tried here.
    let (registry, _) = registry_with(RuleSet::new().isolation(R, IsolationRule::new(1)));
    registry.enter(R).unwrap().end(Outcome::Success);
    let held = registry.enter(R).unwrap();
    std::mem::forget(registry.enter(R).unwrap_err());
    std::mem::forget(held);
    assert_eq!(ends(&registry), [1, 0, 0, 0, 1], "a block that is forgotten held nothing; the entry did");

    let (registry, _) = registry_with(RuleSet::new().isolation(R, IsolationRule::new(1)));
    let mut slot = Some(registry.enter(R).unwrap());
    drop(std::mem::take(&mut slot));
    drop(std::mem::take(&mut slot));
    assert_eq!(ends(&registry), [0, 0, 0, 1, 0]);
    assert_eq!(passes(&registry, R, 2), 2);
    drop(std::mem::replace(&mut slot, registry.enter(R).ok()));
    drop(slot);
    assert_eq!(ends(&registry), [2, 0, 0, 2, 0]);
}

#[test]
fn a_call_may_end_on_another_thread_and_in_any_order() {
    // A17
    let (registry, clock) = registry();
    let a = registry.enter(R).unwrap();
    clock.set(at(10));
    let b = registry.enter(R).unwrap();
    clock.set(at(30));
    std::thread::spawn(move || a.end(Outcome::Success)).join().unwrap();
    let first = registry.stats(R).unwrap();
    assert_eq!((first.second().rt_max(), first.in_flight()), (Some(ms(30)), 1));
    clock.set(at(60));
    std::thread::spawn(move || b.end(Outcome::Success)).join().unwrap();
    let both = registry.stats(R).unwrap();
    assert_eq!((both.second().rt_min(), both.second().rt_max()), (Some(ms(30)), Some(ms(50))));
    assert_eq!(ends(&registry), [2, 0, 0, 0, 0]);
}

#[test]
fn what_a_caller_holds_can_be_sent_shared_and_kept_over_a_caught_panic() {
    fn check<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static>() {}
    check::<Entry>();
    check::<Registry>();
    check::<leap_runtime::Blocked>();
}

#[test]
fn a_blocked_body_does_not_run() {
    // F02
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(1.0)));
    let ran = Cell::new(0);
    for _ in 0..10 {
        let _: Result<(), _> = registry.enter(R).and_then(|entry| {
            entry.run(|| {
                ran.set(ran.get() + 1);
                Ok(())
            })
        });
    }
    assert_eq!(ran.get(), 1);
}

#[test]
fn a_panic_in_a_judge_is_contained_told_and_counts_as_an_exception() {
    // F09
    let recorder = Recorder::default();
    let registry = Registry::builder().clock(ManualClock::new()).observer(recorder.clone()).build();
    let value = registry.enter(R).unwrap().run_with(|| 42, |_| panic!("no opinion"));
    assert_eq!(value, 42, "what the body returned is returned");
    assert_eq!(ends(&registry), [0, 1, 0, 0, 0]);
    assert_eq!(registry.contained_panics(), 1);
    assert_eq!(recorder.take(), [r#"panic in outcome predicate (Some("orders.create")): no opinion"#]);
    assert_eq!(passes(&registry, R, 3), 3);
}

#[test]
fn entries_may_be_dropped_in_any_order_while_unwinding() {
    // F09
    let rules = |name| {
        RuleSet::new()
            .isolation(name, IsolationRule::new(2))
            .breaker(name, BreakerRule::error_count(100).with_min_calls(1).unwrap())
    };
    let (registry, _) = registry();
    registry.load(rules("first")).unwrap();
    for _ in 0..10 {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let first = registry.enter("first").unwrap();
            let second = registry.enter("second").unwrap();
            // Locals are dropped last to first; a tuple first to last.
            let _out_of_order = (first, second, registry.enter("first").unwrap());
            let _inner = registry.enter("second").unwrap();
            panic!("while four calls are in flight");
        }));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"while four calls are in flight"));
    }
    for name in ["first", "second"] {
        let stats = registry.stats(name).unwrap();
        assert_eq!((stats.totals().exception(), stats.in_flight()), (20, 0), "{name}");
        assert_eq!(passes(&registry, name, 3), 3);
    }
}

#[test]
fn a_body_can_mark_its_own_call() {
    let (registry, _) = registry();
    let run = |body: fn()| registry.enter(R).unwrap().run_with(body, |()| Outcome::Success);
    run(|| current().fail());
    assert_eq!(ends(&registry), [0, 1, 0, 0, 0]);
    run(|| current().ignore());
    assert_eq!(ends(&registry), [0, 1, 1, 0, 0]);
    run(|| {
        current().fail();
        current().ignore();
    });
    assert_eq!(ends(&registry), [0, 1, 2, 0, 0], "the last word holds");
    run(|| ());
    assert_eq!(ends(&registry), [1, 1, 2, 0, 0], "a mark is for one call");
}

#[test]
fn a_mark_says_more_than_an_err_and_is_not_asked_of_the_judge() {
    let (registry, _) = registry();
    let result: Result<(), &str> = registry.enter(R).unwrap().run(|| {
        current().ignore();
        Err("not found")
    });
    assert_eq!((result, ends(&registry)), (Err("not found"), [0, 0, 1, 0, 0]));
    registry.enter(R).unwrap().run_with(|| current().fail(), |()| panic!("is not asked"));
    assert_eq!((ends(&registry), registry.contained_panics()), ([0, 1, 1, 0, 0], 0));
}

#[test]
fn a_mark_inside_belongs_to_the_innermost_call() {
    let (registry, _) = registry();
    registry.enter("outer").unwrap().run_with(
        || {
            registry.enter(R).unwrap().run_with(|| current().fail(), |()| Outcome::Success);
            registry.enter(R).unwrap().run_with(|| (), |()| Outcome::Success);
        },
        |()| Outcome::Success,
    );
    assert_eq!(ends(&registry), [1, 1, 0, 0, 0]);
    assert_eq!(registry.stats("outer").unwrap().totals().success(), 1);

    registry.enter("outer").unwrap().run_with(
        || {
            current().fail();
            let inner = registry.enter(R).unwrap();
            let panic =
                catch_unwind(AssertUnwindSafe(|| inner.run(|| -> Result<(), ()> { panic!("inside") })));
            assert!(panic.is_err());
        },
        |()| Outcome::Success,
    );
    assert_eq!(
        registry.stats("outer").unwrap().totals().exception(),
        1,
        "the outer mark outlives an inner panic"
    );
}

#[test]
fn marks_outside_a_guarded_body_do_nothing() {
    current().fail();
    current().ignore();
    current().charge(5);
    let (registry, _) = registry();
    let entry = registry.enter(R).unwrap();
    current().fail();
    current().charge(5);
    entry.end(Outcome::Success);
    assert_eq!((ends(&registry), registry.stats(R).unwrap().totals().passed()), ([1, 0, 0, 0, 0], 1));
}

#[test]
fn a_charge_joins_the_permits_of_its_call_until_the_end() {
    let (registry, clock) = registry();
    let mut entry = registry.enter_with(R).permits(2).enter().unwrap();
    assert_eq!((entry.permits(), entry.resource()), (2, R));
    assert_eq!((entry.charge(40), entry.charge(0), entry.permits()), (40, 0, 42));
    clock.advance(ms(7));
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.in_flight(), stats.totals().passed(), stats.totals().calls()), (42, 42, 1));
    entry.end(Outcome::Success);
    assert_eq!(ends(&registry), [42, 0, 0, 0, 0]);
    assert_eq!(registry.stats(R).unwrap().totals().rt_avg(), Some(ms(7)));
}

#[test]
fn a_body_can_charge_its_own_call_also_when_it_panics() {
    let (registry, _) = registry_with(RuleSet::new().flow(R, qps(10.0)));
    registry.enter(R).unwrap().run_with(
        || {
            current().charge(2);
            current().charge(3);
        },
        |()| Outcome::Success,
    );
    assert_eq!(ends(&registry), [6, 0, 0, 0, 0]);
    let entry = registry.enter(R).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        entry.run(|| -> Result<(), ()> {
            current().charge(3);
            panic!("after it was used");
        })
    }));
    assert!(panic.is_err());
    assert_eq!(ends(&registry), [6, 4, 0, 0, 0]);
    assert!(registry.enter(R).is_err(), "10 have passed");
}

#[test]
fn a_call_ends_by_the_rules_it_entered_under() {
    let rules = RuleSet::new().isolation(R, IsolationRule::new(1));
    let (registry, _) = registry_with(rules.clone());
    let under_the_limit = registry.enter(R).unwrap();
    registry.load(RuleSet::new()).unwrap();
    let without = registry.enter(R).unwrap();
    registry.load(rules).unwrap();
    let under_the_new_one = registry.enter(R).unwrap();
    assert!(registry.enter(R).is_err());
    drop((under_the_limit, without));
    assert!(registry.enter(R).is_err(), "what they gave back was not of the new limit");
    drop(under_the_new_one);
    assert_eq!(passes(&registry, R, 2), 2);
}

#[test]
fn many_entries_may_be_held_by_one_thread() {
    let (registry, _) = registry_with(RuleSet::new().isolation(R, IsolationRule::new(1_000)));
    let held: Vec<_> = (0..1_000).map(|_| registry.enter(R).unwrap()).collect();
    assert!(registry.enter(R).is_err());
    registry.load(RuleSet::new().isolation(R, IsolationRule::new(1_001))).unwrap();
    let one_more = registry.enter(R).unwrap();
    drop(held);
    drop(one_more);
    assert_eq!(ends(&registry), [0, 0, 0, 1_001, 0]);
}

#[test]
fn a_call_site_that_recurses_is_counted_at_each_depth() {
    fn depth(registry: &Registry, n: u32) -> Result<u32, leap_runtime::Blocked> {
        registry.enter(R)?.run(|| if n == 0 { Ok(0) } else { depth(registry, n - 1).map(|d| d + 1) })
    }
    let (registry, _) = registry_with(RuleSet::new().isolation(R, IsolationRule::new(3)));
    assert_eq!(depth(&registry, 2).unwrap(), 2);
    assert!(depth(&registry, 3).is_err());
    assert_eq!(ends(&registry), [3, 3, 0, 0, 0]);
}

/// Panics at the reading that comes after so many others, once; never where that is negative.
#[derive(Clone, Debug, Default)]
struct Shaky {
    clock: ManualClock,
    left: Arc<AtomicI64>,
}

impl Clock for Shaky {
    fn now(&self) -> Timestamp {
        assert_ne!(self.left.fetch_sub(1, Ordering::Relaxed), 0, "a clock that is broken");
        self.clock.now()
    }
}

#[test]
fn a_call_ends_by_its_entry_where_the_clock_panics_at_its_end() {
    let clock = Shaky::default();
    let left = Arc::clone(&clock.left);
    left.store(-1, Ordering::Relaxed);
    let registry = Registry::builder().clock(clock).build();
    let rules = |n| {
        let isolation = RuleSet::new().isolation(R, IsolationRule::new(4));
        isolation.breaker(R, BreakerRule::error_count(n)).flow(R, qps(1_000.0))
    };
    // By a plan that lasts, by one that is counted, and by the long way.
    for (loads, origin) in [(1, None), (12, None), (1, Some("a"))] {
        (0..loads).for_each(|n| drop(registry.load(rules(100 + n)).unwrap()));
        for _ in 0..6 {
            let call = origin.iter().fold(registry.enter_with(R), |call, origin| call.origin(origin));
            let entry = call.enter().unwrap();
            left.store(0, Ordering::Relaxed);
            catch_unwind(AssertUnwindSafe(|| entry.end(Outcome::Success))).unwrap_err();
            left.store(-1, Ordering::Relaxed);
        }
        assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
    }
    assert_eq!(ends(&registry), [18, 0, 0, 0, 0]);
    // Nor does the one reading of a call that fails on its way in leave anything.
    left.store(0, Ordering::Relaxed);
    catch_unwind(AssertUnwindSafe(|| registry.enter(R))).unwrap_err();
    left.store(-1, Ordering::Relaxed);
    assert_eq!(ends(&registry), [18, 0, 0, 0, 0]);
}

#[test]
fn a_call_that_is_not_guarded_reads_the_clock_once() {
    let clock = Shaky::default();
    let left = Arc::clone(&clock.left);
    left.store(-1, Ordering::Relaxed);
    let registry = Registry::builder().clock(clock).build();
    registry.enter(R).unwrap().end(Outcome::Success);
    registry.turn_off();
    left.store(1, Ordering::Relaxed);
    registry.enter(R).unwrap().end(Outcome::Success);
    assert_eq!(left.load(Ordering::Relaxed), 0);
}
