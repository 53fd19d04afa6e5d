//! Hot-parameter rules with time and values in the hand.

use std::cell::Cell;
use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::key::ToKey;
use crate::rule::{Precision, RuleKind};

const SECOND: Duration = Duration::from_secs(1);

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn hot(rule: HotRule) -> Hot {
    reload(rule, None)
}

fn reload(rule: HotRule, previous: Option<&Hot>) -> Hot {
    Hot::new(RuleId::new(None, RuleKind::Flow, 0), rule, previous)
}

fn qps(limit: f64) -> HotRule {
    HotRule::qps("k", limit).unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Hot {
    fn call(&self, key: impl ToKey, n: u32, now: Timestamp) -> Result<Taken, Refused> {
        let key = key.to_key();
        let peeked = self.meet(&key, n, now, &|| now);
        let taken = self.take(&key, n, now, now, &|| now);
        if self.generation == 0 {
            assert_eq!(peeked.err(), taken.as_ref().err().copied(), "asking and taking agree");
        }
        taken
    }

    /// How many of `calls` calls of one permit pass at once. They hold what they got until the last of them.
    fn passing(&self, key: impl ToKey + Copy, calls: usize, now: Timestamp) -> usize {
        let taken: Vec<_> = (0..calls).filter_map(|_| self.call(key, 1, now).ok()).collect();
        taken.len()
    }

    fn in_flight(&self, key: impl ToKey) -> Option<u32> {
        let key = key.to_key();
        self.state.table.in_flight(&key, self.state.hasher.hash_one(&key))
    }
}

// Counting by value.

#[test]
fn each_value_has_the_limit_for_itself() {
    let hot = hot(qps(2.0));
    assert_eq!([hot.passing("a", 3, at(0)), hot.passing("b", 3, at(0)), hot.passing(7, 3, at(0))], [2, 2, 2]);
    assert_eq!(hot.call("a", 1, at(400)).unwrap_err(), Refused::Rate { limit: 2.0, until: Some(at(1_000)) });
    assert_eq!([hot.passing("a", 3, at(999)), hot.passing("a", 3, at(1_000))], [0, 2]);
    assert_eq!(hot.n_keys(), 3);
}

/// D03.
#[test]
fn a_call_without_the_key_is_not_asked_and_is_counted_as_such() {
    let keys = |n: usize| [("a", 1.to_key()), ("b", 2.to_key())][..n].to_vec();
    let at_place = |place: i32, n| {
        let hot = hot(HotRule::qps(place, 1.0).unwrap());
        hot.key_of(&keys(n)).cloned()
    };
    assert_eq!(at_place(-1, 0), None);
    assert_eq!(at_place(-1, 2), Some(2.to_key()));
    assert_eq!(at_place(5, 2), None);
    assert_eq!(at_place(1, 2), Some(2.to_key()));
    let hot = hot(qps(1.0));
    assert_eq!(hot.missing(), 0);
    hot.note_missing();
    assert_eq!(hot.missing(), 1);
}

/// D04.
#[test]
fn none_skips_the_rule_and_some_shares_the_count_of_its_value() {
    let hot = hot(qps(2.0));
    assert_eq!(hot.key_of(&[("k", None::<u8>.to_key())]), None);
    for _ in 0..9 {
        assert!(hot.call(None::<u8>, 1, at(0)).is_ok());
    }
    assert!(hot.call(Some(7_u64), 1, at(0)).is_ok());
    assert!(hot.call(7_i32, 1, at(0)).is_ok());
    assert!(hot.call(Some(7_u8), 1, at(0)).is_err());
}

/// D07.
#[test]
fn an_exception_holds_for_the_number_in_every_type_and_not_for_its_text() {
    let hot = hot(qps(5.0).except(42, 1.0).unwrap().except("vip", 9.0).unwrap().except("bad", 0.0).unwrap());
    assert!(hot.call(42_u64, 1, at(0)).is_ok());
    assert_eq!(hot.call(42_i32, 1, at(0)).unwrap_err(), Refused::Rate { limit: 1.0, until: Some(at(1_000)) });
    assert_eq!(hot.passing("42", 9, at(0)), 5);
    assert_eq!(hot.passing("vip", 20, at(0)), 9);
    assert_eq!(hot.call("bad", 1, at(0)).unwrap_err(), Refused::Rate { limit: 0.0, until: None });
}

/// D10.
#[test]
fn a_collection_is_asked_for_each_element_and_a_block_charges_none() {
    let hot = hot(qps(1.0));
    let twice = Refused::Together { asked: 2, is_shared: false, of: Limit::Rate { limit: 1.0 }, until: None };
    assert_eq!(hot.call([1, 2, 1], 1, at(0)).unwrap_err(), twice);
    assert!(hot.call(2, 1, at(0)).is_ok(), "2 was not charged");
    assert_eq!(
        hot.call([1, 2], 1, at(500)).unwrap_err(),
        Refused::Rate { limit: 1.0, until: Some(at(1_000)) }
    );
    assert!(hot.call([1, 3], 1, at(500)).is_ok());
    assert!(hot.call(1, 1, at(500)).is_err() && hot.call(3, 1, at(500)).is_err());
    assert!(hot.call([0; 0], 1, at(0)).is_ok(), "nothing to ask for");
}

/// D10.
#[test]
fn a_collection_that_is_blocked_leaves_no_permit_turn_or_token_behind() {
    let rules = [
        HotRule::concurrency("k", 1).unwrap(),
        HotRule::throttle("k", 1.0, Duration::ZERO).unwrap(),
        qps(1.0).with_burst(1).unwrap(),
    ];
    for rule in rules {
        let hot = hot(rule.except(0, 0.0).unwrap());
        for i in 1..100 {
            assert!(hot.call([i, 0], 1, at(0)).is_err());
        }
        let held: Vec<_> = (1..100).map(|i| hot.call(i, 1, at(0)).unwrap()).collect();
        assert_eq!(held.len(), 99, "{}", hot.rule());
    }
}

#[test]
fn both_limits_of_a_rule_hold_and_one_takes_nothing_when_the_other_refuses() {
    let hot = hot(qps(3.0).with_max_concurrency(2));
    let (first, second) = (hot.call("a", 1, at(0)).unwrap(), hot.call("a", 1, at(0)).unwrap());
    assert_eq!(hot.call("a", 1, at(0)).unwrap_err(), Refused::Concurrency { limit: 2, in_flight: 2 });
    drop(first.hold);
    let third = hot.call("a", 1, at(0)).unwrap();
    drop(second);
    assert_eq!(hot.call("a", 1, at(0)).unwrap_err(), Refused::Rate { limit: 3.0, until: Some(at(1_000)) });
    assert_eq!(hot.in_flight("a"), Some(1));
    drop(third);
    assert_eq!(hot.in_flight("a"), Some(0));
}

// How rates are kept.

#[test]
fn up_to_64_permits_are_kept_exactly_and_more_in_ten_buckets() {
    for (limit, leaves_at) in [(64_u32, 1_050), (65, 1_100)] {
        let hot = hot(qps(limit.into()));
        assert!(hot.call("a", limit, at(50)).is_ok());
        assert!(hot.call("a", 1, at(leaves_at - 1)).is_err(), "{limit}");
        assert!(hot.call("a", limit, at(leaves_at)).is_ok(), "{limit}");
        assert_eq!(
            hot.call("a", limit + 1, at(9_000)).unwrap_err(),
            Refused::Rate { limit: limit.into(), until: None }
        );
    }
}

#[test]
fn a_limit_beyond_counting_is_none_and_0_blocks_all() {
    assert_eq!(hot(qps(1e300)).passing("a", 1_000, at(0)), 1_000);
    for rule in
        [qps(0.0), HotRule::throttle("k", 0.0, SECOND).unwrap(), HotRule::concurrency("k", 0).unwrap()]
    {
        assert_eq!(hot(rule).passing("a", 9, at(0)), 0);
    }
}

#[test]
fn with_burst_a_quiet_value_has_limit_and_burst_at_once() {
    let hot = hot(qps(10.0).with_burst(5).unwrap());
    assert_eq!(hot.passing("a", 99, at(0)), 15);
    assert_eq!(hot.call("a", 3, at(100)).unwrap_err(), Refused::Rate { limit: 10.0, until: Some(at(300)) });
    assert_eq!([hot.passing("a", 9, at(99)), hot.passing("a", 9, at(300))], [0, 3]);
    assert_eq!(hot.passing("a", 99, at(99_000)), 15);
    assert_eq!(hot.call("a", 16, at(999_000)).unwrap_err(), Refused::Rate { limit: 10.0, until: None });
}

/// B01, the half of it that is about hot parameters.
#[test]
fn a_pace_of_1001_per_second_with_waits_of_500_ms_lets_501_pass_per_key() {
    let hot = hot(HotRule::throttle("k", 1_001.0, ms(500)).unwrap());
    for key in ["a", "b"] {
        let starts: Vec<_> =
            (0..5_000).filter_map(|_| hot.call(key, 1, at(0)).ok()).map(|taken| taken.start).collect();
        assert_eq!(starts.len(), 501);
        assert_eq!(starts[0], None);
        let exact = |turn: u64| Timestamp::from_nanos((turn * 1_000_000_000).div_ceil(1_001));
        let off = |turn: u64| exact(turn).since_ns(starts[usize::try_from(turn).unwrap()].unwrap());
        assert!((1..501).all(|turn| off(turn) <= 2), "waits are kept in parts of a nanosecond");
    }
    let refused = hot.call("a", 1, at(0)).unwrap_err();
    assert!(matches!(refused, Refused::Pace { wait_ns: 500_499_000..=500_500_000, .. }), "{refused:?}");
    assert!(hot.call("a", 1, refused.until().unwrap()).is_ok());
}

#[test]
fn a_collection_starts_when_its_last_turn_has_come_and_takes_all_turns_for_then() {
    let hot = hot(HotRule::throttle("k", 10.0, SECOND).unwrap());
    assert!((0..4).all(|_| hot.call("busy", 1, at(0)).is_ok()));
    let both = hot.call(["idle", "busy"], 1, at(0)).unwrap();
    assert_eq!(both.start, Some(at(400)));
    assert_eq!(hot.call("idle", 1, at(0)).unwrap().start, Some(at(500)));
    assert_eq!(hot.call("busy", 1, at(0)).unwrap().start, Some(at(500)));
}

#[test]
fn a_turn_comes_back_unless_somebody_queued_behind_it() {
    let hot = hot(HotRule::throttle("k", 10.0, SECOND).unwrap());
    let start = |taken: &Taken| taken.start;
    let first = hot.call("a", 1, at(0)).unwrap();
    let (second, third) = (hot.call("a", 1, at(0)).unwrap(), hot.call("a", 1, at(0)).unwrap());
    assert_eq!([start(&first), start(&second), start(&third)], [None, Some(at(100)), Some(at(200))]);
    second.hold.unwrap().give_back();
    assert_eq!(start(&hot.call("a", 1, at(0)).unwrap()), Some(at(300)), "the third one is behind the second");
    let last = hot.call("a", 1, at(0)).unwrap();
    last.hold.unwrap().give_back();
    assert_eq!(start(&hot.call("a", 1, at(0)).unwrap()), Some(at(400)), "nobody was behind the last");
    drop(hot.call("a", 1, at(0)).unwrap());
    assert_eq!(start(&hot.call("a", 1, at(0)).unwrap()), Some(at(600)), "a call that started keeps its turn");
}

// Bounds.

/// D01.
#[test]
fn permits_in_flight_of_a_value_never_exceed_its_limit_and_all_come_back() {
    let hot = hot(HotRule::concurrency("k", 5).unwrap());
    let inside = std::sync::atomic::AtomicU32::new(0);
    let calls = if cfg!(debug_assertions) { 5_000 } else { 100_000 };
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let key = "k".to_key();
                for _ in 0..calls {
                    if let Ok(taken) = hot.take(&key, 1, at(0), at(0), &|| at(0)) {
                        assert!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 5);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(taken);
                    }
                }
            });
        }
    });
    assert_eq!(hot.passing("k", 6, at(0)), 5);
    assert_eq!(hot.in_flight("k"), Some(0));
}

#[test]
fn threads_with_overlapping_collections_and_too_few_places_exceed_nothing_and_never_lock_each_other_up() {
    let hot = hot(HotRule::concurrency("k", 2).unwrap().with_max_keys(3).unwrap());
    let inside: [std::sync::atomic::AtomicU32; 8] = Default::default();
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let (hot, inside) = (&hot, &inside);
            scope.spawn(move || {
                for i in 0..2_000 {
                    // One to three different values, in another order each time.
                    let values: Vec<_> = (0..=i % 3).map(|nth| (thread * i + nth * 3) % 8).collect();
                    if let Ok(taken) = hot.take(&values.to_key(), 1, at(0), at(0), &|| at(0)) {
                        for value in &values {
                            assert!(inside[*value].fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2);
                        }
                        std::thread::yield_now();
                        for value in &values {
                            inside[*value].fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        }
                        drop(taken);
                    }
                }
            });
        }
    });
    assert_eq!(hot.state.table.in_overflow(), (0, 0));
    assert!((0..8).all(|value| hot.in_flight(value).unwrap_or(0) == 0 && hot.passing(value, 3, at(0)) == 2));
}

/// D02.
#[test]
fn a_million_values_fit_4000_places_and_those_in_flight_stay() {
    let hot = hot(HotRule::concurrency("k", 1).unwrap());
    let held: Vec<_> = (0..100).map(|i| hot.call(format!("held {i}"), 1, at(0)).unwrap()).collect();
    let values = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    for i in 0..values {
        drop(hot.take(&i.to_key(), 1, at(0), at(0), &|| at(0)).unwrap());
    }
    assert_eq!((hot.n_keys(), hot.overflowed()), (4_000, 0));
    assert!((0..100).all(|i| hot.call(format!("held {i}"), 1, at(0)).is_err()));
    drop(held);
    assert!((0..100).all(|i| hot.call(format!("held {i}"), 1, at(0)).is_ok()));
}

/// D02: shards and stripes are fixed in number, whatever the processors.
#[test]
fn memory_does_not_depend_on_the_number_of_processors() {
    assert!(size_of::<Hot>() <= 512);
    let debug = format!("{:?}", hot(qps(1.0)));
    assert_eq!(debug.matches("swept_at").count(), 16);
}

#[test]
fn a_scan_over_cold_values_does_not_lift_the_limit_of_a_hot_one() {
    for rule in [
        qps(10.0),
        qps(100.0),
        qps(6.0).with_burst(4).unwrap(),
        HotRule::throttle("k", 10.0, ms(900)).unwrap(),
    ] {
        let allowed = if rule.limit() == Some(100.0) { 100 } else { 10 };
        let hot = hot(rule.with_max_keys(50).unwrap());
        assert_eq!(hot.passing("hot", 200, at(0)), allowed);
        for i in 0..1_000 {
            drop(hot.call(i, 1, at(0)));
        }
        assert_eq!(hot.n_keys(), 50);
        assert_eq!(hot.passing("hot", 10, at(0)), 0, "{}", hot.rule());
        assert!(hot.overflowed() > 0);
    }
}

#[test]
fn at_the_cap_further_values_share_one_limit_until_one_is_at_rest() {
    let hot = hot(qps(3.0).with_max_keys(2).unwrap());
    assert!(hot.call("a", 1, at(0)).is_ok() && hot.call("b", 1, at(500)).is_ok());
    assert_eq!([hot.passing("c", 2, at(600)), hot.passing("d", 2, at(600))], [2, 1], "3 for both");
    assert_eq!((hot.n_keys(), hot.overflowed()), (2, 4));
    // `a` is at rest. What passed for all counts as its successor's own: it may have been.
    assert_eq!([hot.passing("c", 9, at(1_599)), hot.passing("c", 9, at(1_600))], [0, 3]);
    assert_eq!(hot.passing("b", 9, at(1_600)), 3);
}

#[test]
fn a_value_stays_with_the_others_while_a_call_of_it_from_there_is_in_flight() {
    let hot = hot(HotRule::concurrency("k", 2).unwrap().with_max_keys(1).unwrap());
    let a = hot.call("a", 1, at(0)).unwrap();
    let b = [hot.call("b", 1, at(0)).unwrap(), hot.call("b", 1, at(0)).unwrap()];
    drop(a);
    assert_eq!(hot.passing("b", 3, at(0)), 0, "2 of it are in flight already");
    assert_eq!(hot.passing("c", 3, at(0)), 2, "it has a place of its own");
    drop(b);
    assert_eq!(hot.passing("b", 3, at(0)), 2);
    assert_eq!(hot.state.table.in_overflow(), (0, 0));
}

#[test]
fn a_value_with_a_limit_of_its_own_always_has_a_place() {
    let hot = hot(qps(1.0).with_max_keys(1).unwrap().except("vip", 5.0).unwrap());
    assert!(
        hot.call("a", 1, at(0)).is_ok()
            && hot.call("b", 1, at(0)).is_ok()
            && hot.call("c", 1, at(0)).is_err()
    );
    assert_eq!(hot.passing("vip", 9, at(0)), 5);
    assert_eq!(hot.n_keys(), 2);
}

#[test]
fn who_read_the_clock_before_a_gate_was_taken_away_does_not_find_its_past_gone() {
    let hot = hot(qps(1.0).with_max_keys(1).unwrap());
    assert!(hot.call("a", 1, at(0)).is_ok());
    assert!(hot.call("b", 1, at(1_000)).is_ok(), "it takes the place");
    let read = Cell::new(false);
    let reading = || {
        read.set(true);
        at(2_000)
    };
    // 999 is less than an interval after what passed at 0, and of that nothing is left.
    assert!(hot.take(&"a".to_key(), 1, at(999), at(999), &reading).is_ok());
    assert!(read.get());
    assert!(hot.call("a", 1, at(2_999)).is_err(), "it passed at 2 000");
    assert!(hot.call("a", 1, at(3_000)).is_ok());
}

// Loads of rules.

/// D05.
#[test]
fn a_rule_may_be_changed_and_removed_before_the_first_call() {
    let first = hot(qps(5.0));
    let changed = reload(HotRule::throttle("k", 5.0, SECOND).unwrap().with_max_concurrency(1), Some(&first));
    let other_key = reload(HotRule::concurrency(-1, 2).unwrap(), Some(&changed));
    drop((first, changed));
    assert_eq!(other_key.passing("a", 9, at(0)), 2);
}

/// D06.
#[test]
fn a_rule_that_comes_back_much_later_lets_exactly_its_limit_pass() {
    for rule in [qps(10.0), qps(10.0).with_precision(Precision::Sentinel).unwrap()] {
        let before = hot(rule.clone());
        assert_eq!(before.passing("k", 99, at(0)), 10);
        drop(before);
        assert_eq!(hot(rule).passing("k", 100, at(3_600_000)), 10);
    }
}

#[test]
fn a_load_gives_no_fresh_burst() {
    let mut hot = hot(qps(10.0));
    assert_eq!(hot.passing("k", 99, at(0)), 10);
    for _ in 0..100 {
        hot = reload(qps(10.0), Some(&hot));
        assert_eq!(hot.passing("k", 9, at(200)), 0);
    }
    hot = reload(qps(12.0), Some(&hot));
    assert_eq!(hot.passing("k", 9, at(200)), 2);
    hot = reload(qps(5.0), Some(&hot));
    assert_eq!([hot.passing("k", 9, at(1_000)), hot.passing("k", 9, at(1_200))], [3, 2]);
    hot = reload(qps(8.0).per(Duration::from_secs(2)).unwrap(), Some(&hot));
    // Of the last two seconds it remembers 2 at 200 ms, 3 at 1 000 and 2 at 1 200.
    assert_eq!([hot.passing("k", 9, at(1_300)), hot.passing("k", 9, at(3_000))], [1, 5]);
}

#[test]
fn what_is_in_flight_counts_on_whatever_a_load_changes() {
    let before = hot(HotRule::concurrency("k", 5).unwrap());
    let held: Vec<_> = (0..4).map(|_| before.call("k", 1, at(0)).unwrap()).collect();
    let after = reload(qps(100.0).with_max_concurrency(5), Some(&before));
    assert_eq!(after.passing("k", 9, at(0)), 1);
    drop(held);
    assert_eq!(after.in_flight("k"), Some(0));
    assert_eq!(after.passing("k", 9, at(0)), 5);
}

#[test]
fn what_passed_counts_on_in_every_sort_of_memory_that_follows() {
    let sentinel = |rule: HotRule| rule.with_precision(Precision::Sentinel).unwrap();
    let rules = [
        qps(10.0),
        qps(100.0),
        qps(8.0).with_burst(2).unwrap(),
        HotRule::throttle("k", 10.0, Duration::ZERO).unwrap().with_burst(10).unwrap(),
        sentinel(qps(10.0)),
        sentinel(HotRule::throttle("k", 10.0, Duration::from_millis(1)).unwrap()),
    ];
    for before in &rules {
        for after in &rules {
            let old = hot(before.clone());
            let used = old.passing("k", 1_000, at(0));
            let new = reload(after.clone(), Some(&old));
            let passing = new.passing("k", 1_000, at(0));
            let fresh = hot(after.clone()).passing("k", 1_000, at(0));
            assert_eq!(passing, fresh.saturating_sub(used), "{before}, then {after}");
            assert_eq!(new.passing("k", 1_000, at(30_000)), fresh, "{before}, then {after}");
        }
    }
}

#[test]
fn calls_of_an_earlier_load_go_by_the_later_one() {
    let old = hot(qps(10.0));
    assert_eq!(old.passing("k", 4, at(0)), 4);
    let new = reload(qps(5.0), Some(&old));
    assert_eq!(new.passing("k", 9, at(0)), 1);
    assert_eq!(old.passing("k", 9, at(0)), 0);
    assert_eq!(old.passing("other", 99, at(0)), 10, "what the new one has not seen");
}

#[test]
fn an_exception_that_is_taken_away_is_none_any_more() {
    let plain = hot(qps(2.0));
    let with = reload(qps(2.0).except("vip", 9.0).unwrap(), Some(&plain));
    assert_eq!(with.passing("vip", 5, at(0)), 5);
    let without = reload(qps(2.0), Some(&with));
    assert_eq!([without.passing("vip", 9, at(0)), without.passing("vip", 9, at(1_000))], [0, 2]);
}

#[test]
fn a_table_whose_cap_is_lowered_shrinks_as_values_come() {
    let large = hot(HotRule::concurrency("k", 1).unwrap().with_max_keys(100).unwrap());
    (0..100).for_each(|i| drop(large.call(i, 1, at(0))));
    assert_eq!(large.n_keys(), 100);
    let small = reload(HotRule::concurrency("k", 1).unwrap().with_max_keys(10).unwrap(), Some(&large));
    (1_000..1_200).for_each(|i| drop(small.call(i, 1, at(0))));
    assert_eq!(small.n_keys(), 10);
}

#[test]
fn asking_after_a_reload_sees_what_is_in_flight() {
    let rule = |max| HotRule::concurrency("k", max).unwrap();
    let three = hot(rule(3));
    let held = [three.call("k", 1, at(0)).unwrap(), three.call("k", 1, at(0)).unwrap()];
    let two = reload(rule(2), Some(&three));
    let full = Refused::Concurrency { limit: 2, in_flight: 2 };
    assert_eq!(two.peek(&"k".to_key(), 1, at(0), &|| at(0)), Err(full));
    drop(held);
    assert_eq!(two.peek(&"k".to_key(), 2, at(0), &|| at(0)), Ok(()));
}

#[test]
fn the_most_frequent_values_are_known_blocked_ones_included() {
    let hot = hot(qps(2.0));
    (0..30).for_each(|_| drop(hot.call("often", 1, at(0))));
    drop(hot.call(["seldom", "often", "often"], 2, at(500)));
    assert_eq!(hot.top(at(500), 10), [("often".to_key(), 34, 0), ("seldom".to_key(), 2, 0)]);
    assert_eq!(hot.top(at(1_000), 1), [("often".to_key(), 4, 0)]);
}

// Sentinel.

#[test]
fn sentinel_s_recorded_answers_come_out_without_a_difference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance/param.jsonl");
    let mut n_calls = 0;
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let hot = hot(recorded_rule(&case["rule"]));
        let list = |name: &str| case[name].as_array().unwrap().iter();
        let passes = case["pass"].as_str().unwrap().chars();
        let mut waits = case.get("wait_ms").map(|waits| waits.as_array().unwrap().iter());
        let mut now = 0;
        for ((delta, key), passed) in list("arrival_deltas_ms").zip(list("keys")).zip(passes) {
            now += delta.as_u64().unwrap();
            let taken = hot.call(format!("k{key}"), 1, at(now));
            let place = format!("{} at {now} ms", case["case"]);
            assert_eq!(taken.is_ok(), passed == '1', "{place}");
            if let Some(wait) = waits.as_mut().map(|waits| waits.next().unwrap().as_i64().unwrap()) {
                let waited = taken.map_or(-1, |taken| {
                    let start = taken.start.unwrap_or(at(now));
                    i64::try_from(start.as_millis() - now).unwrap()
                });
                assert_eq!(waited, wait, "{place}");
            }
            n_calls += 1;
        }
    }
    assert!(n_calls > 3_000, "{n_calls} calls");
}

fn recorded_rule(rule: &Value) -> HotRule {
    let limit = rule["qps"].as_f64().unwrap();
    let made = match rule["behavior"].as_str().unwrap() {
        "reject" => HotRule::qps("k", limit),
        _ => HotRule::throttle("k", limit, ms(rule["max_queue_ms"].as_u64().unwrap())),
    };
    let burst = u32::try_from(rule["burst"].as_u64().unwrap()).unwrap();
    let mut made = made
        .and_then(|rule| rule.with_precision(Precision::Sentinel))
        .and_then(|made| made.per(Duration::from_secs(rule["duration_s"].as_u64().unwrap())))
        .and_then(|made| made.with_burst(burst))
        .unwrap();
    for (key, limit) in rule.get("items").and_then(Value::as_object).into_iter().flatten() {
        made = made.except(key.as_str(), limit.as_f64().unwrap()).unwrap();
    }
    made
}

// Against a plain model.

/// What each value has taken, in plain lists and exact numbers.
#[derive(Default)]
struct Plain {
    /// When permits passed, one by one.
    passes: Vec<u64>,
    /// GCRA's word times the limit, so that the cost is a whole number: the interval.
    word: u128,
    in_flight: u32,
}

/// A rule for the model: `(limit, burst, wait in ms)`, and a limit in flight.
#[derive(Clone, Copy, Debug)]
enum Sort {
    Window,
    Bucket { burst: u32 },
    Turns { burst: u32, max_wait_ms: u64 },
    None,
}

#[derive(Clone, Copy, Debug)]
struct PlainRule {
    sort: Sort,
    limit: u32,
    concurrency: Option<u32>,
}

const INTERVAL: u64 = 1_000_000_000;

impl PlainRule {
    fn rule(&self) -> HotRule {
        let limit = f64::from(self.limit);
        let rule = match self.sort {
            Sort::Window => HotRule::qps("k", limit),
            Sort::Bucket { burst } => HotRule::qps("k", limit).and_then(|rule| rule.with_burst(burst)),
            Sort::Turns { burst, max_wait_ms } => {
                HotRule::throttle("k", limit, ms(max_wait_ms)).and_then(|rule| rule.with_burst(burst))
            }
            Sort::None => HotRule::concurrency("k", self.concurrency.unwrap_or(1)),
        };
        match self.concurrency {
            Some(concurrency) => rule.unwrap().with_max_concurrency(concurrency),
            None => rule.unwrap(),
        }
    }

    /// How many permits may go at once, in permits times the interval; and the longest wait.
    fn room(&self) -> (u128, u64) {
        match self.sort {
            Sort::Window | Sort::None => (0, 0),
            Sort::Bucket { burst } => (u128::from(self.limit + burst) * u128::from(INTERVAL), 0),
            Sort::Turns { burst, max_wait_ms } => {
                (u128::from(burst.max(1)) * u128::from(INTERVAL), max_wait_ms * 1_000_000)
            }
        }
    }

    /// When `n` more may start, times the limit; none if they are refused.
    fn start(&self, plain: &Plain, now: u64, n: u32) -> Option<u128> {
        let (now_scaled, cost) =
            (u128::from(now) * u128::from(self.limit), u128::from(n) * u128::from(INTERVAL));
        if self.concurrency.is_some_and(|limit| plain.in_flight + n > limit) {
            return None;
        }
        let (room, max_wait) = self.room();
        match self.sort {
            Sort::None => Some(now_scaled),
            Sort::Window => {
                let live = plain.passes.iter().filter(|pass| **pass + INTERVAL > now).count();
                (live + n as usize <= self.limit as usize).then_some(now_scaled)
            }
            Sort::Bucket { .. } if cost > room => None,
            Sort::Turns { burst, .. } if n > self.limit.max(burst).max(1) => None,
            Sort::Bucket { .. } | Sort::Turns { .. } => {
                let start = now_scaled.max(plain.word.saturating_sub(room.saturating_sub(cost)));
                let longest = u128::from(max_wait) * u128::from(self.limit);
                (start - now_scaled <= longest).then_some(start)
            }
        }
    }
}

impl Plain {
    /// Takes them; returns the word before and after.
    fn take(&mut self, now: u64, start: u128, n: u32) -> (u128, u128) {
        let before = self.word;
        self.word = self.word.max(start) + u128::from(n) * u128::from(INTERVAL);
        self.passes.extend((0..n).map(|_| now));
        self.in_flight += n;
        (before, self.word)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take { keys: Vec<u8>, n: u32 },
    End(usize),
    GiveBack(usize),
}

fn rules() -> impl Strategy<Value = PlainRule> {
    let sort = prop_oneof![
        Just(Sort::Window),
        (1..4_u32).prop_map(|burst| Sort::Bucket { burst }),
        (0..4_u32, 0..800_u64).prop_map(|(burst, max_wait_ms)| Sort::Turns { burst, max_wait_ms }),
        Just(Sort::None),
    ];
    (sort, 1..7_u32, prop::option::of(1..5_u32)).prop_map(|(sort, limit, concurrency)| {
        let concurrency =
            if matches!(sort, Sort::None) { Some(concurrency.unwrap_or(2)) } else { concurrency };
        PlainRule { sort, limit, concurrency }
    })
}

fn steps(n_keys: u8) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let take =
        (prop::collection::vec(0..n_keys, 1..4), 1..4_u32, 0..3_u8).prop_map(|(mut keys, n, several)| {
            keys.truncate(if several == 0 { 3 } else { 1 });
            Step::Take { keys, n: if n == 3 { 2 } else { 1 } }
        });
    let step = prop_oneof![
        5 => take,
        2 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::GiveBack),
    ];
    let pause = prop_oneof![3 => Just(0), 2 => 0..50_u64, 1 => 0..700_u64, 1 => 900..1_100_u64];
    prop::collection::vec((pause, step), 1..120)
}

/// A call that the rule let through: what it holds there, and in the model.
type Call = (Option<Hold>, Vec<(u8, u32, u128, u128)>);

proptest! {
    /// While every value has a place, each decision and each start is that of the model.
    #[test]
    fn decisions_are_those_of_plain_lists(rule in rules(), steps in steps(5)) {
        let hot = hot(rule.rule());
        let (mut plain, mut now) = (HashMap::<u8, Plain>::new(), 0);
        let mut calls: Vec<Call> = vec![];
        for (pause, step) in steps {
            now += pause * 1_000_000;
            match step {
                Step::Take { keys, n } => {
                    let mut asked = HashMap::<u8, u32>::new();
                    for key in &keys {
                        *asked.entry(*key).or_default() += n;
                    }
                    let starts: Option<Vec<_>> = asked
                        .iter()
                        .map(|(key, n)| Some((*key, *n, rule.start(plain.entry(*key).or_default(), now, *n)?)))
                        .collect();
                    let moment = Timestamp::from_nanos(now);
                    let is_one = keys.len() == 1;
                    let taken = if is_one { hot.call(keys[0], n, moment) } else { hot.call(keys, n, moment) };
                    prop_assert_eq!(taken.is_ok(), starts.is_some(), "at {} ms: {:?}", now / 1_000_000, taken);
                    let (Ok(taken), Some(starts)) = (taken, starts) else { continue };
                    let latest = starts.iter().map(|(.., start)| *start).max().unwrap();
                    let start = latest.div_ceil(u128::from(rule.limit));
                    prop_assert_eq!(u128::from(taken.start.unwrap_or(moment).as_nanos()), start);
                    // All turns of several values are for the moment of their common start, in whole ns.
                    let turn = if asked.len() == 1 { latest } else { start * u128::from(rule.limit) };
                    let held = starts.into_iter().map(|(key, n, _)| {
                        let (before, after) = plain.get_mut(&key).unwrap().take(now, turn, n);
                        (key, n, before, after)
                    });
                    calls.push((taken.hold, held.collect()));
                }
                Step::End(i) | Step::GiveBack(i) if !calls.is_empty() => {
                    let (hold, held) = calls.swap_remove(i % calls.len());
                    let is_cancelled = matches!(step, Step::GiveBack(_));
                    if let Some(hold) = hold {
                        if is_cancelled { hold.give_back() } else { drop(hold) }
                    }
                    for (key, n, before, after) in held {
                        let plain = plain.get_mut(&key).unwrap();
                        plain.in_flight -= n;
                        if is_cancelled && matches!(rule.sort, Sort::Turns { .. }) && plain.word == after {
                            plain.word = before;
                        }
                    }
                }
                Step::End(_) | Step::GiveBack(_) => {}
            }
        }
        drop(calls);
        for key in 0..5_u8 {
            prop_assert_eq!(hot.in_flight(key).unwrap_or(0), 0);
        }
    }

    /// With fewer places than values, no value ever exceeds its limit, and all that was held comes back.
    #[test]
    fn no_limit_is_exceeded_at_the_cap(rule in rules(), steps in steps(6), max_keys in 1..4_u32) {
        let hot = hot(rule.rule().with_max_keys(max_keys).unwrap());
        let mut now = 0;
        let mut calls: Vec<(Option<Hold>, Vec<u8>, u32)> = vec![];
        let mut started: HashMap<u8, Vec<(u64, u32)>> = HashMap::new();
        for (pause, step) in steps {
            now += pause * 1_000_000;
            let moment = Timestamp::from_nanos(now);
            match step {
                Step::Take { keys, n } => {
                    let key = if keys.len() == 1 { keys[0].to_key() } else { keys.to_key() };
                    let start = hot.start(&key, n, moment, moment, &|| moment);
                    let taken = hot.take(&key, n, moment, moment, &|| moment);
                    let told = taken.as_ref().map(|taken| taken.start).map_err(|refused| *refused);
                    prop_assert_eq!(start, told, "asking and taking agree");
                    if let Ok(taken) = taken {
                        let start = taken.start.map_or(now, Timestamp::as_nanos);
                        for key in &keys {
                            started.entry(*key).or_default().push((start, n));
                        }
                        calls.push((taken.hold, keys, n));
                    }
                }
                Step::End(i) if !calls.is_empty() => drop(calls.swap_remove(i % calls.len())),
                // The turn is not given back: calls that never started would have to be left out below.
                _ => {}
            }
            prop_assert!(hot.n_keys() <= max_keys);
            for key in 0..6_u8 {
                let of_key = calls.iter().flat_map(|(_, keys, n)| keys.iter().map(move |held| (*held, *n)));
                let held: u32 = of_key.filter(|(held, _)| *held == key).map(|(_, n)| n).sum();
                prop_assert!(rule.concurrency.is_none_or(|limit| held <= limit), "{} in flight", held);
            }
        }
        for starts in started.values_mut() {
            starts.sort_unstable();
            for (i, (from, _)) in starts.iter().enumerate() {
                let mut sum = 0;
                for (to, n) in &starts[i..] {
                    sum += u128::from(*n);
                    let span = to - from;
                    // A start is told in whole ns, rounded up.
                    let refilled = u128::from(span + 1) * u128::from(rule.limit);
                    let at_once = match rule.sort {
                        Sort::Window if span < INTERVAL => u128::from(rule.limit) * u128::from(INTERVAL),
                        Sort::Window | Sort::None => break,
                        // A call of several permits goes at once.
                        Sort::Turns { burst, .. } => refilled + u128::from(burst.max(rule.limit)) * u128::from(INTERVAL),
                        Sort::Bucket { .. } => refilled + rule.room().0,
                    };
                    prop_assert!(sum * u128::from(INTERVAL) <= at_once, "{} permits in {} ns", sum, span);
                }
            }
        }
        drop(calls);
        prop_assert_eq!(hot.state.table.in_overflow(), (0, 0));
        for key in 0..6_u8 {
            prop_assert_eq!(hot.in_flight(key).unwrap_or(0), 0);
        }
    }
}
