//! Limits for each value of a parameter, as a user meets them.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use common::{R, at, ms, passes, qps, registry_with};
use leap_runtime::{
    Blocked, Cause, Entry, HotRule, IsolationRule, Key, ManualClock, Mode, Outcome, Precision, Registry,
    RuleSet, SystemRule, ToKey,
};

fn hot(rule: HotRule) -> RuleSet {
    RuleSet::new().hot(R, rule)
}

/// A limit per second for each `user`.
fn of_users(limit: f64) -> HotRule {
    HotRule::qps("user", limit).unwrap()
}

fn paced(limit: f64, max_wait_ms: u64) -> HotRule {
    HotRule::throttle("user", limit, ms(max_wait_ms)).unwrap()
}

/// At most so many calls of each `user` in flight.
fn at_most(max: u32) -> HotRule {
    HotRule::concurrency("user", max).unwrap()
}

fn enter(registry: &Registry, user: impl ToKey) -> Result<Entry, Blocked> {
    registry.enter_with(R).key("user", user).enter()
}

/// Makes `n` calls of one user that end well at once, and tells how many were let through.
fn calls(registry: &Registry, user: impl ToKey, n: usize) -> usize {
    (0..n).filter(|_| enter(registry, &user).map(|entry| entry.end(Outcome::Success)).is_ok()).count()
}

/// A call on its way in, which may have to wait.
type Entering<'a> = Pin<Box<dyn Future<Output = Result<Entry, Blocked>> + 'a>>;

fn begin<'a>(registry: &'a Registry, user: impl ToKey + 'a) -> Entering<'a> {
    Box::pin(registry.enter_with(R).key("user", user).enter_async())
}

fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// The values and their permits, the most frequent first.
fn top(registry: &Registry) -> Vec<(String, u64)> {
    let stats = registry.stats(R).unwrap().hot(10).remove(0);
    stats.top().iter().map(|value| (value.value().to_owned(), value.permits())).collect()
}

#[test]
fn each_value_has_the_whole_limit_and_its_block_says_what_to_do() {
    let (registry, clock) = registry_with(hot(of_users(2.0)));
    assert_eq!([calls(&registry, "ann", 5), calls(&registry, "bob", 5)], [2, 2]);
    clock.set(at(999));
    let blocked = enter(&registry, "ann").unwrap_err();
    assert_eq!((blocked.cause(), blocked.limit(), blocked.observed()), (Cause::Hot, Some(2.0), Some(2.0)));
    assert_eq!((blocked.retry_after(), blocked.rule().to_string().as_str()), (Some(ms(1)), "loaded/hot/0"));
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: the parameter's limit of 2 per 1s is reached; retry after 1ms"
    );
    clock.set(at(1_000));
    assert_eq!(calls(&registry, "ann", 5), 2);
    assert_eq!(registry.stats(R).unwrap().totals().blocked_by(Cause::Hot), 3 + 3 + 1 + 3);
}

/// D01.
#[test]
fn no_more_calls_of_a_value_than_allowed_are_in_flight_however_many_threads_ask() {
    let (registry, _) = registry_with(hot(at_most(5)));
    let (in_flight, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let rounds = if cfg!(debug_assertions) { 1_000 } else { 100_000 };
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let Ok(entry) = enter(&registry, "k") else { continue };
                    most.fetch_max(in_flight.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    in_flight.fetch_sub(1, Ordering::Relaxed);
                    drop(entry);
                }
            });
        }
    });
    assert!((1..=5).contains(&most.into_inner()));
    let held: Vec<_> = (0..6).filter_map(|_| enter(&registry, "k").ok()).collect();
    assert_eq!(held.len(), 5);
}

/// D02.
#[test]
fn a_million_values_take_the_places_that_there_are_and_none_of_a_value_in_flight() {
    let (registry, _) = registry_with(hot(at_most(1)));
    let held = enter(&registry, "held").unwrap();
    let n = if cfg!(debug_assertions) { 100_000_u64 } else { 1_000_000 };
    for user in 0..n {
        assert_eq!(calls(&registry, user, 1), 1, "{user}");
    }
    let stats = registry.stats(R).unwrap().hot(0).remove(0);
    assert_eq!((stats.n_values(), stats.overflowed(), stats.missing()), (4_000, 0, 0));
    let blocked = enter(&registry, "held").unwrap_err();
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: 1 of at most 1 calls of the parameter's value are in flight"
    );
    assert_eq!((blocked.limit(), blocked.observed(), blocked.retry_after()), (Some(1.0), Some(1.0), None));
    drop(held);
    assert_eq!(calls(&registry, "held", 2), 2);
}

#[test]
fn a_scan_over_cold_values_lifts_no_hot_values_limit() {
    let (registry, clock) = registry_with(hot(of_users(5.0).with_max_keys(10).unwrap()));
    assert_eq!(calls(&registry, "hot", 9), 5);
    clock.set(at(1));
    // Nine more find a place, and all others have the limit together.
    let cold = (0..1_000).map(|user| calls(&registry, user, 1)).sum::<usize>();
    assert_eq!(cold, 9 + 5);
    clock.set(at(999));
    let cold = (0..1_000).map(|user| calls(&registry, user, 1)).sum::<usize>();
    assert_eq!((cold, calls(&registry, "hot", 9)), (9, 0));
    let stats = registry.stats(R).unwrap().hot(0).remove(0);
    assert_eq!(stats.n_values(), 10);
    assert!(stats.overflowed() >= 5, "{}", stats.overflowed());
    clock.set(at(1_000));
    assert_eq!(calls(&registry, "hot", 9), 5);
}

#[test]
fn at_the_cap_a_value_in_flight_stays_and_those_at_rest_make_room() {
    let (registry, _) = registry_with(hot(at_most(2).with_max_keys(2).unwrap()));
    let (a, b) = (enter(&registry, "a").unwrap(), enter(&registry, "b").unwrap());
    // The others have two calls together.
    let others: Vec<_> = ["c", "d", "e"].iter().map(|user| enter(&registry, user)).collect();
    assert_eq!(others.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!([calls(&registry, "a", 3), calls(&registry, "b", 3)], [3, 3], "each has one more call");
    drop(a);
    // `a` made room for `f`, and `c`, which is in flight, stays with the others.
    assert_eq!([calls(&registry, "f", 1), calls(&registry, "c", 1)], [1, 0]);
    drop(others);
    assert_eq!(calls(&registry, "c", 1), 1);
    drop(b);
    assert_eq!(registry.stats(R).unwrap().hot(0).remove(0).n_values(), 2);
}

#[test]
fn a_value_with_a_limit_of_its_own_has_it_also_where_no_place_is_left() {
    let rule = of_users(1.0).except("vip", 3.0).unwrap().except(["shut", "closed"], 0.0).unwrap();
    let (registry, _) = registry_with(hot(rule.with_max_keys(1).unwrap()));
    assert_eq!([calls(&registry, "a", 2), calls(&registry, "b", 2), calls(&registry, "c", 2)], [1, 1, 0]);
    assert_eq!(
        [calls(&registry, "vip", 5), calls(&registry, "shut", 5), calls(&registry, "closed", 5)],
        [3, 0, 0]
    );
    let blocked = enter(&registry, "shut").unwrap_err();
    assert_eq!((blocked.limit(), blocked.retry_after()), (Some(0.0), None));
    assert_eq!(blocked.to_string(), "`orders.create` is blocked: the parameter's limit is 0");
    assert_eq!(enter(&registry, "vip").unwrap_err().limit(), Some(3.0));
}

/// D03.
#[test]
fn a_key_that_is_not_there_is_missed_and_blocks_nobody() {
    let rule = |place| HotRule::qps(place, 1.0).unwrap();
    let rules = RuleSet::new().hot("last", rule(-1)).hot("sixth", rule(5)).hot("least", rule(i32::MIN));
    let (registry, _) = registry_with(rules);
    let mut with = BTreeMap::new();
    for name in ["last", "sixth", "least"] {
        for _ in 0..3 {
            assert!(registry.enter_with(name).enter().is_ok());
            let both = registry.enter_with(name).key("user", 1).key("sku", 2);
            *with.entry(name).or_insert(0) += u32::from(both.enter().is_ok());
        }
    }
    assert_eq!(with, BTreeMap::from([("last", 1), ("sixth", 3), ("least", 3)]));
    let missing = |name: &str| registry.stats(name).unwrap().hot(0).remove(0).missing();
    assert_eq!([missing("last"), missing("sixth"), missing("least")], [3, 6, 6]);
}

#[test]
fn a_key_is_found_by_name_or_by_place_and_each_rule_counts_by_its_own() {
    let rules = hot(of_users(2.0))
        .hot(R, HotRule::qps(0, 3.0).unwrap())
        .hot(R, HotRule::qps(-1, 4.0).unwrap())
        .hot(R, HotRule::concurrency("sku", 1).unwrap());
    let (registry, _) = registry_with(rules);
    let call = |user: &str, sku: u32| registry.enter_with(R).key("user", user).key("sku", sku).enter();
    let by = |user: &str, sku: u32| call(user, sku).unwrap_err().rule().to_string();
    assert!(call("ann", 1).is_ok() && call("ann", 1).is_ok());
    assert_eq!(by("ann", 1), "loaded/hot/0");
    assert!(call("bob", 1).is_ok() && call("cid", 1).is_ok());
    assert_eq!(by("dan", 1), "loaded/hot/2", "the last key is `sku`");
    let held = call("eve", 2).unwrap();
    assert_eq!(by("fay", 2), "loaded/hot/3");
    drop(held);
    assert!(call("fay", 2).is_ok());
    // The other way round `user` is no longer the first key.
    let turned = |user: &str, sku: u32| registry.enter_with(R).key("sku", sku).key("user", user).enter();
    assert!((0..3).all(|n| turned(["gil", "hal", "ian"][n], 7).is_ok()));
    assert_eq!(turned("jim", 7).unwrap_err().rule().position(), 1);
}

/// D04.
#[test]
fn no_value_is_not_asked_for_and_some_value_is_the_value() {
    let (registry, _) = registry_with(hot(of_users(2.0)));
    assert_eq!(calls(&registry, None::<u32>, 9), 9);
    assert_eq!([calls(&registry, Some(7), 1), calls(&registry, 7, 9)], [1, 1]);
    assert_eq!(calls(&registry, Some(&Some(7_u128)), 1), 0);
    assert_eq!(calls(&registry, Some(&None::<String>), 9), 9);
    let stats = registry.stats(R).unwrap().hot(10).remove(0);
    assert_eq!((stats.n_values(), stats.missing()), (1, 18));
}

/// D05.
#[test]
fn rules_may_change_and_go_before_the_first_call() {
    let (registry, _) = registry_with(hot(of_users(1.0)));
    registry.load(hot(paced(5.0, 100).with_max_concurrency(2))).unwrap();
    registry.load(hot(HotRule::qps(1, 100.0).unwrap())).unwrap();
    registry.load(RuleSet::new()).unwrap();
    assert_eq!(calls(&registry, "k", 100), 100);
}

/// D06.
#[test]
fn a_rule_that_comes_back_remembers_nothing_and_allows_no_more_than_its_limit() {
    let (registry, clock) = registry_with(hot(of_users(10.0)));
    assert_eq!(calls(&registry, "k", 100), 10);
    clock.set(at(1_000));
    registry.load(RuleSet::new()).unwrap();
    clock.set(at(3_600_000));
    registry.load(hot(of_users(10.0))).unwrap();
    assert_eq!(calls(&registry, "k", 100), 10);
    clock.advance(ms(999));
    assert_eq!(calls(&registry, "k", 100), 0);
}

/// B12, for each value.
#[test]
fn a_reload_gives_nothing_away_and_another_limit_counts_what_has_passed() {
    let (registry, clock) = registry_with(hot(of_users(10.0)));
    assert_eq!(calls(&registry, "k", 100), 10);
    clock.set(at(200));
    (0..100).for_each(|_| drop(registry.load(hot(of_users(10.0))).unwrap()));
    assert_eq!(calls(&registry, "k", 10), 0);
    registry.load(hot(of_users(12.0))).unwrap();
    assert_eq!([calls(&registry, "k", 10), calls(&registry, "new", 100)], [2, 12]);

    registry.load(hot(paced(1.0, 0))).unwrap();
    clock.set(at(10_000));
    assert_eq!(calls(&registry, "k", 2), 1);
    clock.set(at(10_100));
    registry.load(hot(paced(1.0, 0))).unwrap();
    clock.set(at(10_999));
    assert_eq!(calls(&registry, "k", 2), 0);
    clock.set(at(11_000));
    assert_eq!(calls(&registry, "k", 2), 1);
}

#[test]
fn calls_in_flight_of_a_value_count_on_over_a_reload() {
    let (registry, _) = registry_with(hot(at_most(2)));
    let held = [enter(&registry, "k").unwrap(), enter(&registry, "k").unwrap()];
    registry.load(hot(at_most(3))).unwrap();
    let third = enter(&registry, "k").unwrap();
    assert!(enter(&registry, "k").is_err());
    drop(held);
    registry.load(hot(at_most(1))).unwrap();
    assert!(enter(&registry, "k").is_err());
    drop(third);
    assert_eq!(calls(&registry, "k", 2), 2);
}

/// D07.
#[test]
fn an_exception_for_a_number_holds_for_it_in_every_type_and_for_no_text() {
    let (registry, _) = registry_with(hot(of_users(5.0).except(42, 1.0).unwrap()));
    assert_eq!(
        [calls(&registry, 42_u64, 1), calls(&registry, 42_i32, 9), calls(&registry, 42_u128, 9)],
        [1, 0, 0]
    );
    assert_eq!(calls(&registry, "42", 9), 5);
}

/// An order of the application's own, which is told apart by its number.
struct Order {
    id: u64,
}

impl ToKey for Order {
    fn to_key(&self) -> Key {
        self.id.to_key()
    }
}

/// D08. Floats are a compile error, which the docs of `ToKey` show.
#[test]
fn a_value_is_one_key_however_it_is_held() {
    let (registry, _) = registry_with(hot(of_users(1.0)));
    let is_new = |user: &dyn ToKey| calls(&registry, user.to_key(), 1) == 1;
    let (text, number) = ("ann".to_owned(), 42_u8);
    assert!(
        is_new(&"ann") && is_new(&number) && is_new(&'a') && is_new(&true) && is_new(&"a") && is_new(&"true")
    );
    for held in [
        &text as &dyn ToKey,
        &&text,
        &Some(&text),
        &Some(&Some(text.clone())),
        &Cow::Borrowed("ann"),
        &Cow::<str>::Owned("ann".into()),
        &Box::<str>::from("ann"),
        &Box::new(text.clone()),
        &Arc::<str>::from("ann"),
        &Rc::<str>::from("ann"),
        &[Some("ann"), None],
        &vec!["ann"],
        &Order { id: 42 },
        &42_i8,
        &42_u128,
        &42_isize,
        &[42_usize; 1],
        &Some('a'),
        &Some(true),
    ] {
        assert!(!is_new(held), "{:?}", held.to_key());
    }
}

#[test]
fn no_value_is_too_long_too_large_or_too_odd_to_be_told_apart() {
    let (registry, _) = registry_with(hot(of_users(1.0)));
    let long = "x".repeat(1_000_000);
    let keys = [
        "".to_key(),
        "\0".to_key(),
        " ".to_key(),
        "né".to_key(),
        "ne\u{301}".to_key(),
        "日本語".to_key(),
        "x".repeat(30).to_key(),
        "x".repeat(31).to_key(),
        "é".repeat(15).to_key(),
        format!("x{}", "é".repeat(15)).to_key(),
        long.to_key(),
        format!("{long}!").to_key(),
        i128::MIN.to_key(),
        i128::MAX.to_key(),
        u128::MAX.to_key(),
        (u128::MAX - 1).to_key(),
        u64::MAX.to_key(),
        i64::MIN.to_key(),
        0.to_key(),
        false.to_key(),
        '\0'.to_key(),
        char::MAX.to_key(),
    ];
    for round in [1, 0] {
        for key in &keys {
            assert_eq!(calls(&registry, key, 1), round, "{:.40?}", key.to_string());
        }
    }
    assert_eq!(usize::try_from(registry.stats(R).unwrap().hot(0)[0].n_values()), Ok(keys.len()));
}

/// D10.
#[test]
fn of_several_values_each_is_asked_and_a_block_takes_nothing_from_the_others() {
    let (registry, _) = registry_with(hot(of_users(1.0)));
    assert!(enter(&registry, [1, 2, 1]).is_err(), "1 is asked for twice");
    assert_eq!([calls(&registry, 2, 2), calls(&registry, 1, 2)], [1, 1]);
    assert_eq!([calls(&registry, [3, 4], 2), calls(&registry, [4, 5], 1), calls(&registry, 5, 1)], [1, 0, 1]);

    let (registry, _) = registry_with(hot(of_users(2.0).except(2, 1.0).unwrap()));
    assert_eq!(calls(&registry, [1, 2, 1], 2), 1);
    assert_eq!([calls(&registry, 1, 1), calls(&registry, 2, 1)], [0, 0]);

    let (registry, _) = registry_with(hot(at_most(1)));
    let held = enter(&registry, vec!["a", "b"]).unwrap();
    assert!(enter(&registry, ["c", "b"]).is_err() && enter(&registry, "c").is_ok());
    drop(held);
    assert_eq!(calls(&registry, ["a", "b", "c"], 2), 2);
}

#[test]
fn a_collection_of_no_value_asks_for_nothing_and_one_of_256_for_each() {
    let (registry, _) = registry_with(hot(of_users(0.0)));
    assert_eq!([calls(&registry, [0; 0], 9), calls(&registry, vec![None::<u32>; 3], 9)], [9, 9]);
    assert_eq!(calls(&registry, [0], 9), 0);

    let (registry, clock) = registry_with(hot(of_users(1.0)));
    let many: Vec<u32> = (0..256).collect();
    assert_eq!([calls(&registry, &many, 1), calls(&registry, &many, 1), calls(&registry, 255, 1)], [1, 0, 0]);
    assert_eq!(registry.stats(R).unwrap().hot(0)[0].n_values(), 256);
    clock.set(at(1_000));
    assert_eq!(calls(&registry, &many, 2), 1);
    assert_eq!(calls(&registry, vec!["same"; 256], 1), 0);
    // More than there are places: those that find none share what there is for them together.
    let (registry, _) = registry_with(hot(of_users(1.0).with_max_keys(100).unwrap()));
    assert_eq!(calls(&registry, &many, 1), 0);
}

#[test]
fn a_collection_that_is_too_large_is_blocked_and_takes_no_place() {
    assert_eq!(Key::MAX_ELEMENTS, 256);
    let (registry, _) = registry_with(hot(of_users(1.0).except("bad", 0.0).unwrap()));
    let many: Vec<u32> = (0..100_000).collect();
    let blocked = enter(&registry, &many).unwrap_err();
    assert_eq!((blocked.cause(), blocked.limit(), blocked.retry_after()), (Cause::Hot, None, None));
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: its 100000 values of the parameter are more than 256"
    );
    assert!(registry.enter_with(R).key("user", &many).would_pass().is_err());
    assert_eq!(registry.stats(R).unwrap().hot(9)[0].n_values(), 0);
    assert!(top(&registry).is_empty());
    // No value is hidden behind others, and what is absent is no element.
    assert_eq!(calls(&registry, &many[..257], 1), 0);
    let absent: Vec<_> = (0..1_000).map(|user| (user < 256).then_some(user)).collect();
    assert_eq!(calls(&registry, absent, 1), 1);
}

#[test]
fn a_block_of_several_values_says_what_they_ask_for_together() {
    let said = |rule: HotRule, users: &[u8]| {
        let (registry, _) = registry_with(hot(rule));
        let asked = registry.enter_with(R).key("user", users).would_pass().unwrap_err();
        let blocked = enter(&registry, users).unwrap_err();
        assert_eq!(asked.to_string(), blocked.to_string());
        blocked.to_string().split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(
        said(at_the_cap(of_users(3.0)), &[1, 2, 3, 4, 5]),
        "4 permits for its values can never fit the parameter's limit of 3 per 1s, shared by values beyond `max_keys`"
    );
    assert_eq!(
        said(at_the_cap(at_most(1)), &[0, 1, 2]),
        "2 permits for its values do not fit the parameter's limit of 1 in flight, shared by values beyond `max_keys`, \
         of which 0 are taken"
    );
    assert_eq!(
        said(of_users(1.0), &[1, 2, 1]),
        "2 permits for its values can never fit the parameter's limit of 1 per 1s"
    );
    assert_eq!(
        said(at_most(1), &[1, 1]),
        "2 permits for its values do not fit the parameter's limit of 1 in flight, of which 0 are taken"
    );
}

#[test]
fn a_call_of_several_permits_takes_them_of_its_value() {
    let (registry, _) = registry_with(hot(of_users(5.0).with_max_concurrency(4)));
    let of = |n| registry.enter_with(R).key("user", "k").permits(n).enter();
    assert_eq!(
        of(6).unwrap_err().to_string(),
        "`orders.create` is blocked: 0 of at most 4 calls of the parameter's value are in flight"
    );
    let four = of(4).unwrap();
    assert_eq!(of(1).unwrap_err().observed(), Some(4.0));
    drop(four);
    assert_eq!(of(2).unwrap_err().limit(), Some(5.0));
    assert!(of(1).is_ok());
    let never =
        registry_with(hot(of_users(5.0))).0.enter_with(R).key("user", "k").permits(6).enter().unwrap_err();
    assert_eq!(never.retry_after(), None);
    assert_eq!(
        never.to_string(),
        "`orders.create` is blocked: 6 permits at once can never fit the parameter's limit of 5 per 1s"
    );
}

#[test]
fn a_burst_lets_a_quiet_value_have_more_at_once() {
    let (registry, clock) = registry_with(hot(of_users(10.0).with_burst(5).unwrap()));
    assert_eq!(calls(&registry, "k", 100), 15);
    clock.set(at(99));
    assert_eq!(calls(&registry, "k", 100), 0);
    clock.set(at(1_000));
    assert_eq!(calls(&registry, "k", 100), 10);
}

#[test]
fn an_interval_of_its_own_holds_for_each_value() {
    let (registry, clock) = registry_with(hot(of_users(3.0).per(ms(60_000)).unwrap()));
    assert_eq!(calls(&registry, "k", 9), 3);
    clock.set(at(59_999));
    assert_eq!([calls(&registry, "k", 9), calls(&registry, "other", 9)], [0, 3]);
    clock.set(at(60_000));
    assert_eq!(calls(&registry, "k", 9), 3);
}

#[test]
fn a_rule_that_is_off_asks_nobody_and_is_still_shown() {
    let (registry, _) = registry_with(hot(of_users(0.0).with_mode(Mode::Off)));
    assert_eq!(calls(&registry, "k", 9), 9);
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.hot(10).len(), stats.rules().count()), (0, 1));
}

#[test]
fn as_sentinel_has_it_a_bucket_is_filled_once_per_interval() {
    let rule = of_users(2.0).with_burst(1).unwrap().with_precision(Precision::Sentinel).unwrap();
    let (registry, clock) = registry_with(hot(rule));
    clock.set(at(5_000));
    assert_eq!(calls(&registry, "k", 9), 3);
    clock.set(at(5_999));
    assert_eq!(calls(&registry, "k", 9), 0);
}

/// B01, for each value: waits are kept in parts of a nanosecond.
#[test]
fn as_many_calls_of_each_value_wait_as_fit_the_longest_wait() {
    let (registry, clock) = registry_with(hot(paced(1_001.0, 500)));
    for user in ["ann", "bob"] {
        let mut calls: Vec<_> = (0..600).map(|_| begin(&registry, user)).collect();
        let begun: Vec<_> = calls.iter_mut().map(poll).collect();
        let is =
            |what: fn(&Poll<Result<Entry, Blocked>>) -> bool| begun.iter().filter(|poll| what(poll)).count();
        assert!(matches!(begun[0], Poll::Ready(Ok(_))));
        assert_eq!((is(Poll::is_pending), is(|poll| matches!(poll, Poll::Ready(Err(_))))), (500, 99));
        assert!(begun[1..=500].iter().all(Poll::is_pending));
    }
    assert_eq!(clock_of(&clock), 0, "nobody has waited yet");
}

fn clock_of(clock: &ManualClock) -> u64 {
    leap_runtime::Clock::now(clock).as_millis()
}

/// B04, B07.
#[test]
fn a_value_that_is_paced_starts_its_calls_one_by_one_and_others_do_not_wait_for_it() {
    let (registry, clock) = registry_with(hot(paced(10.0, 250)));
    let mut ann: Vec<_> = (0..4).map(|_| begin(&registry, "ann")).collect();
    let polled: Vec<_> = ann.iter_mut().map(poll).collect();
    let [Poll::Ready(Ok(_)), Poll::Pending, Poll::Pending, Poll::Ready(Err(blocked))] = &polled[..] else {
        panic!("{polled:?}")
    };
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: the parameter's turn would not come within 250ms, its longest wait; retry after 50ms"
    );
    assert!(matches!(poll(&mut begin(&registry, "bob")), Poll::Ready(Ok(_))));
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().passed(), stats.waiting(), stats.in_flight()), (4, 2, 1));
    for (ms, second, third) in [(99, false, false), (100, true, false), (199, true, false), (200, true, true)]
    {
        clock.set(at(ms));
        let mut started = |n: usize, is_expected: bool| {
            let is_over = registry.stats(R).unwrap().waiting() < 3 - n as u64;
            if is_expected && !is_over {
                assert!(matches!(poll(&mut ann[n]), Poll::Ready(Ok(_))), "{n} at {ms} ms");
            } else if !is_expected {
                assert!(poll(&mut ann[n]).is_pending(), "{n} at {ms} ms");
            }
        };
        started(1, second);
        started(2, third);
    }
    assert_eq!(registry.stats(R).unwrap().waiting(), 0);
}

#[test]
fn a_thread_is_parked_until_the_turn_of_its_value() {
    let (registry, clock) = registry_with(hot(paced(10.0, 1_000)));
    assert_eq!(calls(&registry, "ann", 1), 1);
    std::thread::scope(|scope| {
        let parked = scope.spawn(|| {
            let entry = enter(&registry, "ann").unwrap();
            let now = clock_of(&clock);
            entry.end(Outcome::Success);
            now
        });
        while registry.stats(R).unwrap().waiting() == 0 {
            std::thread::yield_now();
        }
        assert!(!parked.is_finished());
        clock.set(at(99));
        assert_eq!(registry.stats(R).unwrap().waiting(), 1);
        clock.set(at(100));
        assert_eq!(parked.join().unwrap(), 100);
    });
    let stats = registry.stats(R).unwrap();
    assert_eq!((stats.totals().success(), stats.totals().rt_avg(), stats.waiting()), (2, Some(ms(0)), 0));
}

#[test]
fn a_cancelled_wait_gives_its_turn_back_unless_somebody_is_behind_it() {
    let (registry, clock) = registry_with(hot(paced(10.0, 1_000)));
    let mut calls: Vec<_> = (0..4).map(|_| begin(&registry, "ann")).collect();
    assert_eq!(calls.iter_mut().filter_map(|call| poll(call).is_pending().then_some(())).count(), 3);
    // The last one, which was to start at 300 ms; another has its turn then.
    drop(calls.pop());
    let mut another = begin(&registry, "ann");
    assert!(poll(&mut another).is_pending());
    clock.set(at(299));
    assert!(poll(&mut another).is_pending());
    clock.set(at(300));
    assert!(matches!(poll(&mut another), Poll::Ready(Ok(_))));
    // Of two that wait, the first: the second keeps its own turn.
    let (mut first, mut second) = (begin(&registry, "ann"), begin(&registry, "ann"));
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    drop(first);
    clock.set(at(499));
    assert!(poll(&mut second).is_pending());
    clock.set(at(500));
    assert!(matches!(poll(&mut second), Poll::Ready(Ok(_))));
    drop(calls);
    let stats = registry.stats(R).unwrap();
    let totals = stats.totals();
    assert_eq!((totals.passed(), totals.cancelled(), stats.waiting(), stats.in_flight()), (7, 7, 0, 0));
}

#[test]
fn a_call_that_waits_for_its_turn_holds_a_place_of_its_value_and_gives_it_back_when_it_is_cancelled() {
    let (registry, clock) = registry_with(hot(paced(10.0, 1_000).with_max_concurrency(2)));
    let (first, mut second) = (enter(&registry, "ann").unwrap(), begin(&registry, "ann"));
    assert!(poll(&mut second).is_pending());
    assert_eq!(enter(&registry, "ann").unwrap_err().observed(), Some(2.0));
    drop(second);
    let mut third = begin(&registry, "ann");
    assert!(poll(&mut third).is_pending());
    clock.set(at(100));
    assert!(matches!(poll(&mut third), Poll::Ready(Ok(_))));
    drop((first, third));
    assert_eq!(registry.stats(R).unwrap().in_flight(), 0);
}

/// B06, B08.
#[test]
fn a_pace_without_a_wait_lets_a_call_start_now_or_not_at_all() {
    let (registry, clock) = registry_with(hot(paced(10.0, 0)));
    let passed = [0, 50, 99, 100].map(|ms| {
        clock.set(at(ms));
        calls(&registry, "k", 2)
    });
    assert_eq!(passed, [1, 0, 0, 1]);
    clock.set(at(1_000));
    let of = |n| registry.enter_with(R).key("user", "k").permits(n).enter();
    assert_eq!(of(11).unwrap_err().retry_after(), None);
    assert!(of(10).is_ok());
    assert_eq!(of(1).unwrap_err().retry_after(), Some(ms(1_000)));
}

#[test]
fn what_a_later_rule_blocks_has_taken_nothing_of_its_value() {
    // In a window of a minute it would be missed for long.
    let rules = || hot(of_users(1.0).per(ms(60_000)).unwrap()).hot(R, at_most(1)).hot(R, paced(0.1, 0));
    let (registry, clock) = registry_with(rules().flow(R, qps(1.0)));
    assert_eq!([calls(&registry, "a", 1), calls(&registry, "b", 3)], [1, 0]);
    clock.set(at(1_000));
    assert_eq!(calls(&registry, "b", 1), 1);

    let throttle =
        leap_runtime::FlowRule::new(1.0, leap_runtime::Behavior::Throttle { max_wait: ms(0) }).unwrap();
    let (registry, clock) = registry_with(rules().flow(R, throttle));
    assert_eq!([calls(&registry, "a", 1), calls(&registry, "b", 3)], [1, 0]);
    clock.set(at(1_000));
    assert_eq!(calls(&registry, "b", 1), 1);

    // The second hot rule refuses.
    let (registry, _) = registry_with(rules());
    let held = enter(&registry, ["a", "b"]).unwrap();
    assert_eq!(calls(&registry, ["b", "c"], 1), 0);
    assert_eq!(calls(&registry, "c", 1), 1);
    drop(held);

    // And those before it.
    let (registry, _) = registry_with(rules().isolation(R, IsolationRule::new(1)));
    let held = enter(&registry, "a").unwrap();
    assert_eq!(calls(&registry, "b", 1), 0);
    drop(held);
    assert_eq!(calls(&registry, "b", 1), 1);

    let (registry, clock) = registry_with(rules().system(SystemRule::qps(1.0).unwrap()));
    let inbound = |user| registry.enter_with(R).key("user", user).inbound().enter().is_ok();
    assert!(inbound("a") && !inbound("b"));
    clock.set(at(1_000));
    assert!(inbound("b"));
}

#[test]
fn a_priority_call_that_waits_for_a_place_takes_of_its_value_once() {
    let (registry, clock) = registry_with(hot(of_users(1.0).per(ms(60_000)).unwrap()).flow(R, qps(1.0)));
    assert_eq!(calls(&registry, "a", 1), 1);
    let mut call = Box::pin(registry.enter_with(R).key("user", "b").priority().enter_async());
    clock.set(at(500));
    assert!(poll(&mut call).is_pending());
    clock.set(at(1_000));
    assert!(matches!(poll(&mut call), Poll::Ready(Ok(_))));
}

#[test]
fn a_call_that_queues_takes_of_its_value_when_it_gets_its_permit() {
    let isolation = IsolationRule::new(1).with_queue(ms(500)).unwrap();
    let (registry, clock) = registry_with(hot(of_users(1.0)).isolation(R, isolation));
    let held = enter(&registry, "a").unwrap();
    let mut queued = begin(&registry, "b");
    assert!(poll(&mut queued).is_pending());
    clock.set(at(400));
    drop(held);
    assert!(matches!(poll(&mut queued), Poll::Ready(Ok(_))));
    clock.set(at(1_399));
    assert_eq!(calls(&registry, "b", 1), 0);
    clock.set(at(1_400));
    assert_eq!(calls(&registry, "b", 1), 1);
}

/// B17.
#[test]
fn asking_takes_nothing_and_counts_nothing() {
    let (registry, _) = registry_with(hot(of_users(1.0).with_max_concurrency(1)).hot(R, paced(10.0, 0)));
    let would = |user| registry.enter_with(R).key("user", user).would_pass();
    for _ in 0..100 {
        assert!(would("k").is_ok());
    }
    assert_eq!(top(&registry), []);
    assert_eq!(calls(&registry, "k", 1), 1);
    assert!(would("k").is_err() && would("other").is_ok());
    assert_eq!(top(&registry), [("k".to_owned(), 1)]);
}

#[test]
fn the_values_asked_for_most_in_the_last_window_are_told_blocked_calls_included() {
    let (registry, clock) = registry_with(hot(of_users(2.0)));
    assert_eq!([calls(&registry, "ann", 3), calls(&registry, "bob", 5), calls(&registry, 7, 1)], [2, 2, 1]);
    assert_eq!(top(&registry), [("bob".to_owned(), 5), ("ann".to_owned(), 3), ("7".to_owned(), 1)]);
    let first = registry.stats(R).unwrap().hot(1).remove(0);
    assert_eq!(
        (first.top().len(), first.top()[0].excess(), first.rule().to_string()),
        (1, 0, "loaded/hot/0".into())
    );
    clock.set(at(799));
    assert_eq!(calls(&registry, "ann", 9), 0);
    clock.set(at(1_199));
    assert_eq!(top(&registry), [("ann".to_owned(), 9)]);
    clock.set(at(2_000));
    assert_eq!(top(&registry), []);
    let shown = registry.stats(R).unwrap().to_string();
    assert!(shown.contains("hot values          loaded/hot/0: "), "{shown}");
}

#[test]
fn every_call_of_a_collection_counts_for_each_of_its_values() {
    let (registry, _) = registry_with(hot(of_users(100.0)));
    assert_eq!([calls(&registry, [1, 2, 1], 2), calls(&registry, [3, 2], 1)], [2, 1]);
    assert_eq!(top(&registry), [("1".to_owned(), 4), ("2".to_owned(), 3), ("3".to_owned(), 1)]);
}

#[test]
fn values_can_be_shown_as_hashes_only() {
    let registry = Registry::builder().clock(ManualClock::new()).hide_values().build();
    registry.load(hot(of_users(2.0))).unwrap();
    assert_eq!([calls(&registry, "ann@example.org", 2), calls(&registry, "bob@example.org", 1)], [2, 1]);
    let hash = "ann@example.org".to_key().hashed().to_string();
    assert_eq!(top(&registry)[0], (hash.clone(), 2));
    let stats = registry.stats(R).unwrap();
    for shown in [
        stats.to_string(),
        format!("{stats:?}"),
        enter(&registry, "ann@example.org").unwrap_err().to_string(),
    ] {
        assert!(!shown.contains("example"), "{shown}");
    }
    assert!(stats.to_string().contains(&hash));
}

#[test]
fn four_threads_with_a_hundred_thousand_values_each_get_what_each_value_has() {
    let (registry, _) = registry_with(hot(of_users(3.0).with_max_keys(100_000).unwrap()));
    let n = if cfg!(debug_assertions) { 10_000 } else { 100_000 };
    let passed: usize = std::thread::scope(|scope| {
        let ask = || (0..n).map(|user| calls(&registry, user, 1)).sum::<usize>();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 3 * n);
    let stats = registry.stats(R).unwrap().hot(0).remove(0);
    assert_eq!((usize::try_from(stats.n_values()), stats.overflowed()), (Ok(n), 0));
}

#[test]
fn no_limit_is_too_odd_to_be_decided_by() {
    let year = 366 * 24 * 3_600 * 1_000;
    let times = [0, 999, 3_600_000, 10 * year, u64::MAX / 1_000_000];
    let mut rules = vec![];
    for limit in [0.0, f64::MIN_POSITIVE, 1e-9, 1.0, 2.5, 64.0, 65.0, 1e3, 4e9, 1e18, 1e308] {
        for interval in [1, 1_000, year] {
            let per = |rule: Result<HotRule, _>| rule.and_then(|rule: HotRule| rule.per(ms(interval)));
            rules.push(per(HotRule::qps("user", limit)));
            for max_wait in [0, 500, year] {
                rules.push(per(HotRule::throttle("user", limit, ms(max_wait))));
            }
        }
    }
    let base: Vec<HotRule> = rules.into_iter().flatten().collect();
    assert!(base.len() > 100);
    for rule in base {
        for burst in [0, 1, u32::MAX] {
            for precision in [None, Some(Precision::Sentinel)] {
                let rule = rule.clone().with_burst(burst).unwrap().with_max_concurrency(u32::MAX);
                let rule =
                    precision.map_or(rule.clone(), |precision| rule.with_precision(precision).unwrap());
                let shown = rule.to_string();
                let (registry, clock) = registry_with(hot(rule));
                for time in times {
                    clock.set(at(time));
                    for n in [1, 1_000, u32::MAX] {
                        // Whoever has to wait is dropped meanwhile.
                        let mut call =
                            Box::pin(registry.enter_with(R).key("user", 1).permits(n).enter_async());
                        if let Poll::Ready(Err(blocked)) = poll(&mut call) {
                            assert_eq!(blocked.cause(), Cause::Hot, "{shown}");
                        }
                        drop(registry.enter_with(R).key("user", 1).permits(n).would_pass());
                    }
                }
                assert_eq!(registry.stats(R).unwrap().in_flight(), 0, "{shown}");
            }
        }
    }
}

#[test]
fn calls_without_keys_go_by_the_other_rules() {
    let (registry, _) = registry_with(hot(of_users(0.0)).flow(R, qps(3.0)));
    assert_eq!(passes(&registry, R, 5), 3);
    let (registry, _) = common::registry();
    assert_eq!(calls(&registry, "k", 3), 3);
    assert_eq!(registry.stats(R).unwrap().hot(10).len(), 0);
}

/// A rule of one key, of which `a` has the only place.
fn at_the_cap(rule: HotRule) -> HotRule {
    rule.with_max_keys(1).unwrap()
}

#[test]
fn a_call_that_the_shared_limit_blocks_has_used_up_nothing() {
    let rules = RuleSet::new()
        .system(SystemRule::qps(10.0).unwrap())
        .hot(R, HotRule::qps("tenant", 10.0).unwrap())
        .hot(R, at_the_cap(at_most(1)));
    let (registry, _) = registry_with(rules);
    let call = |user| registry.enter_with(R).inbound().key("user", user).key("tenant", 7);
    let held = [call("a").enter().unwrap(), call("b").enter().unwrap()];
    for _ in 0..20 {
        assert_eq!(call("c").would_pass().unwrap_err().cause(), Cause::Hot);
        assert_eq!(call("c").enter().unwrap_err().cause(), Cause::Hot);
    }
    drop(held);
    let passing = (0..20).filter(|_| call("c").enter().is_ok()).count();
    assert_eq!(passing, 8, "of 10");
}

#[test]
fn values_of_a_collection_without_places_are_asked_for_together_before_anything_is_taken() {
    let rules = RuleSet::new().system(SystemRule::qps(3.0).unwrap()).hot(R, at_the_cap(of_users(2.0)));
    let (registry, _) = registry_with(rules);
    let call = |users: &[u8]| registry.enter_with(R).inbound().key("user", users);
    for _ in 0..10 {
        assert_eq!(call(&[1, 2, 3, 4]).would_pass().unwrap_err().cause(), Cause::Hot);
        assert_eq!(call(&[1, 2, 3, 4]).enter().unwrap_err().cause(), Cause::Hot);
    }
    assert!(call(&[1, 2, 3]).would_pass().is_ok() && call(&[1, 2, 3]).enter().is_ok());
}

#[test]
fn a_value_that_is_blocked_in_a_full_table_finds_a_place_at_rest_when_it_comes_again() {
    let (registry, _) = registry_with(hot(at_most(1).with_max_keys(4_000).unwrap()));
    let held: Vec<_> = (0..4_000).map(|user| enter(&registry, user).unwrap()).collect();
    let shared = enter(&registry, "shared").unwrap();
    // One place of twenty is at rest.
    let held: Vec<_> =
        held.into_iter().enumerate().filter_map(|(i, entry)| (i % 20 > 0).then_some(entry)).collect();
    for user in 10_000..10_100 {
        assert!((0..20).any(|_| enter(&registry, user).is_ok()), "{user} is blocked for ever");
    }
    drop((held, shared));
}
