//! Memory that does not grow. The allocator counts for the whole process, so one test runs at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use leap_benches::alloc::Counting;
use leap_benches::flat::{Flat, SLACK, Told, events_that_nobody_consumes, names_at_the_cap};

#[global_allocator]
static COUNTING: Counting = Counting;

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn memory_stays_flat_while_nobody_consumes_events() {
    let _alone = alone();
    let flat = events_that_nobody_consumes(100_000);
    assert!(flat.is_flat(), "{flat:?}");
    let Told { blocks, transitions, .. } = flat.told;
    assert!(blocks > 10_000 && transitions > 5_000, "there was something to consume: {flat:?}");
}

#[test]
fn memory_stays_flat_under_new_names_at_the_cap() {
    let _alone = alone();
    for rested in [false, true] {
        let flat = names_at_the_cap(40_000, rested);
        assert!(flat.is_flat(), "{flat:?}");
        assert_eq!(flat.told.overflows, 1, "{flat:?}");
    }
}

#[test]
fn what_grows_is_found_to_grow() {
    let flat = Flat { what: "", calls: 0, early: 0, late: SLACK, told: Told::default() };
    assert!(flat.is_flat());
    assert!(!Flat { late: SLACK + 1, ..flat }.is_flat());
}
