//! Cancelled futures, panics and `?` leak nothing, under any kind of rule.
//!
//! Each test makes calls end in all the ways that leak elsewhere, at every stage that a call goes through under that kind
//! of rule. Then nobody is in flight, waits or queues, and exactly as many calls pass as if nothing had happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use leap_runtime::{
    Behavior, BreakerState, Check, Ended, FlowRule, HotRule, InRegistry, RuleSet, SystemRule, TokioClock,
    Verdict, guarded,
};

use crate::Told::{Blocked, Pending};
use crate::{Answer, Bench, Call, NOBODY, Told, Way, ms, told};

/// How often what leaks elsewhere is done here.
const ROUNDS: usize = 100;

/// Ends calls that pass in each of these ways; between any two of them the clock moves by `step_ms`.
fn mistreat(bench: &Bench, step_ms: u64, call: impl Fn(Way) -> Call) {
    for _ in 0..5 {
        for (way, expected) in
            [(Way::Fails, Told::Failed), (Way::Panics, Told::Panicked), (Way::Hangs, Pending)]
        {
            let (_, told) = call(way).tried();
            assert_eq!(told, expected);
            bench.clock.advance(ms(step_ms));
        }
    }
}

/// What so many calls at once are told, each of which goes on until it is dropped.
fn hold(n: usize, call: impl Fn(Way) -> Call) -> (Vec<Call>, Vec<Told>) {
    (0..n).map(|_| call(Way::Hangs).tried()).unzip()
}

/// Cancels the one that came last first, as turns lie behind each other.
fn cancel_from_the_back(mut calls: Vec<Call>) {
    while calls.pop().is_some() {}
}

#[guarded("promises.counted")]
async fn counted(way: Way) -> Answer {
    way.go().await
}

#[test]
fn a_call_ends_once_and_as_what_it_was() {
    let bench = Bench::new();
    mistreat(&bench, 0, |way| bench.call(counted(way)));
    let totals = *bench.registry.stats("promises.counted").unwrap().totals();
    assert_eq!((totals.passed(), totals.exception(), totals.cancelled(), totals.success()), (15, 10, 5, 0));
    assert_eq!(bench.under_way("promises.counted"), NOBODY);
}

#[guarded("promises.isolated", max_concurrency = 2, queue_ms = 50)]
async fn isolated(way: Way) -> Answer {
    way.go().await
}

#[test]
fn isolation_permits_come_back_and_so_do_places_in_the_queue() {
    let bench = Bench::new();
    let call = |way| bench.call(isolated(way));
    for _ in 0..ROUNDS {
        let (mut running, told) = hold(2, call);
        assert_eq!(told, [Pending; 2]);
        let (mut queued, told) = hold(4, call);
        assert_eq!((told.as_slice(), bench.under_way("promises.isolated")), (&[Pending; 4][..], [2, 0, 4]));

        // Cancelled in the queue.
        drop(queued.remove(1));
        assert_eq!(bench.under_way("promises.isolated"), [2, 0, 3]);
        // Cancelled between the moment at which it was granted its permit and the one at which it would have heard so:
        // the next in the queue gets it.
        drop(running.remove(0));
        drop(queued.remove(0));
        assert_eq!((queued[0].poll(), bench.under_way("promises.isolated")), (Pending, [2, 0, 1]));
        // Out of time.
        bench.clock.advance(ms(49));
        assert_eq!(queued[1].poll(), Pending);
        bench.clock.advance(ms(1));
        assert_eq!(queued[1].poll(), Blocked);
        drop((running, queued));
        assert_eq!(bench.under_way("promises.isolated"), NOBODY);
    }
    mistreat(&bench, 0, call);
    assert_eq!(bench.under_way("promises.isolated"), NOBODY);
    let (calls, _) = hold(3, call);
    assert_eq!(bench.under_way("promises.isolated"), [2, 0, 1], "exactly two pass");
    drop(calls);
    assert_eq!(bench.under_way("promises.isolated"), NOBODY);
}

#[guarded("promises.hot", hot(key = user, max_concurrency = 2, max_keys = 2))]
async fn of_user(user: &'static str, way: Way) -> Answer {
    way.go().await
}

#[test]
fn a_keys_permits_come_back_and_so_does_the_keys_own_place() {
    let bench = Bench::new();
    for users in [["ann", "bob"], ["eve", "dan"], ["ann", "dan"]] {
        for user in users {
            let call = |way| bench.call(of_user(user, way));
            mistreat(&bench, 0, call);
            for _ in 0..ROUNDS {
                let (_calls, told) = hold(3, call);
                assert_eq!(told, [Pending, Pending, Blocked], "{user}");
            }
            assert_eq!(bench.under_way("promises.hot"), NOBODY);
        }
    }
    // There is room for two keys. Had a call left anything behind in one, a later key would have found no place.
    let hot = bench.registry.stats("promises.hot").unwrap().hot(0).remove(0);
    assert_eq!((hot.n_values(), hot.overflowed()), (2, 0));
}

#[guarded("promises.hot.paced", hot(key = user, qps = 10, behavior = throttle, max_wait_ms = 200))]
async fn of_user_paced(user: &'static str, way: Way) -> Answer {
    way.go().await
}

#[test]
fn a_keys_turns_come_back() {
    let bench = Bench::new();
    let call = |way| bench.call(of_user_paced("ann", way));
    assert_eq!(call(Way::Hangs).poll(), Pending);
    for _ in 0..ROUNDS {
        let (calls, told) = hold(3, call);
        assert_eq!(
            (told.as_slice(), bench.under_way("promises.hot.paced")),
            (&[Pending, Pending, Blocked][..], [0, 2, 0])
        );
        cancel_from_the_back(calls);
        assert_eq!(bench.under_way("promises.hot.paced"), NOBODY);
    }
    assert_eq!(bench.call(of_user_paced("bob", Way::Ends)).poll(), Told::Ended);
    bench.clock.advance(ms(100));
    mistreat(&bench, 100, call);
    assert_eq!(bench.under_way("promises.hot.paced"), NOBODY);
}

#[guarded("promises.paced", qps = 10, behavior = throttle, max_wait_ms = 300)]
async fn paced(way: Way) -> Answer {
    way.go().await
}

#[test]
fn turns_come_back_to_those_who_come_later() {
    let bench = Bench::new();
    let call = |way| bench.call(paced(way));
    assert_eq!(call(Way::Fails).poll(), Told::Failed);
    for _ in 0..ROUNDS {
        // The first of a second has just started: so these would start 100, 200 and 300 ms from now, and one more later
        // than it may wait.
        let (calls, told) = hold(4, call);
        assert_eq!(
            (told.as_slice(), bench.under_way("promises.paced")),
            (&[Pending, Pending, Pending, Blocked][..], [0, 3, 0])
        );
        cancel_from_the_back(calls);
        assert_eq!(bench.under_way("promises.paced"), NOBODY);
    }
    // Bodies that run after a wait, and end in every way.
    for way in [Way::Fails, Way::Panics, Way::Hangs] {
        let mut waiting = call(way);
        assert_eq!((waiting.poll(), bench.under_way("promises.paced")), (Pending, [0, 1, 0]));
        bench.clock.advance(ms(99));
        assert_eq!((waiting.poll(), bench.under_way("promises.paced")), (Pending, [0, 1, 0]));
        bench.clock.advance(ms(1));
        let expected = match way {
            Way::Fails => (Told::Failed, NOBODY),
            Way::Panics => (Told::Panicked, NOBODY),
            _ => (Pending, [1, 0, 0]),
        };
        assert_eq!((waiting.poll(), bench.under_way("promises.paced")), expected);
        drop(waiting);
        assert_eq!(bench.under_way("promises.paced"), NOBODY);
    }
}

#[test]
fn turns_that_others_stand_behind_are_lost_and_nothing_else_is() {
    let bench = Bench::new();
    let call = |way| bench.call(paced(way));
    assert_eq!(call(Way::Ends).poll(), Told::Ended);
    let (mut calls, _) = hold(3, call);
    // The one in front first: those behind keep their turns, so nobody can be given its own.
    drop(calls.remove(0));
    assert_eq!((call(Way::Hangs).poll(), bench.under_way("promises.paced")), (Blocked, [0, 2, 0]));
    drop(calls);
    assert_eq!(bench.under_way("promises.paced"), NOBODY);
    bench.clock.advance(ms(400));
    let (_calls, told) = hold(5, call);
    assert_eq!(
        (told.as_slice(), bench.under_way("promises.paced")),
        (&[Pending, Pending, Pending, Pending, Blocked][..], [1, 3, 0])
    );
}

#[guarded("promises.probed", error_count = 0, min_calls = 1, open_ms = 1_000, probes = 2)]
async fn probed(way: Way) -> Answer {
    way.go().await
}

#[test]
fn probe_slots_come_back() {
    let bench = Bench::new();
    let call = |way| bench.call(probed(way));
    let state = || bench.registry.stats("promises.probed").unwrap().breakers()[0].state();
    assert_eq!((call(Way::Fails).poll(), state()), (Told::Failed, BreakerState::Open));
    bench.at(1_000);
    for _ in 0..ROUNDS {
        let (_calls, told) = hold(3, call);
        assert_eq!((told.as_slice(), state()), (&[Pending, Pending, Blocked][..], BreakerState::HalfOpen));
    }
    // A probe that fails or panics is a verdict: the breaker opens, and then has both of its slots again.
    for (bad, expected, reopened_at) in
        [(Way::Fails, Told::Failed, 1_000), (Way::Panics, Told::Panicked, 2_000)]
    {
        let beside = call(Way::Hangs).tried();
        assert_eq!((beside.1, call(bad).poll(), state()), (Pending, expected, BreakerState::Open));
        drop(beside);
        bench.at(reopened_at + 1_000);
        assert_eq!(hold(3, call).1, [Pending, Pending, Blocked]);
    }
    assert_eq!((call(Way::Ends).poll(), state()), (Told::Ended, BreakerState::HalfOpen));
    assert_eq!((call(Way::Ends).poll(), state()), (Told::Ended, BreakerState::Closed));
    assert_eq!(bench.under_way("promises.probed"), NOBODY);
}

#[guarded(
    "promises.probed.paced",
    error_count = 0,
    min_calls = 1,
    open_ms = 1_000,
    probes = 2,
    qps = 10,
    behavior = throttle,
    max_wait_ms = 1_000
)]
async fn probed_and_paced(way: Way) -> Answer {
    way.go().await
}

#[test]
fn a_probe_that_is_cancelled_before_its_start_gives_its_slot_back_with_its_turn() {
    let bench = Bench::new();
    let call = |way| bench.call(probed_and_paced(way));
    assert_eq!(call(Way::Fails).poll(), Told::Failed);
    bench.at(1_000);
    let (running, _) = call(Way::Hangs).tried();
    for _ in 0..ROUNDS {
        let (calls, told) = hold(2, call);
        assert_eq!(
            (told.as_slice(), bench.under_way("promises.probed.paced")),
            (&[Pending, Blocked][..], [1, 1, 0])
        );
        drop(calls);
    }
    drop(running);
    assert_eq!(bench.under_way("promises.probed.paced"), NOBODY);
    let mut last = call(Way::Ends);
    assert_eq!(last.poll(), Pending, "its turn is the one of all those that were cancelled");
    bench.at(1_100);
    assert_eq!((last.poll(), call(Way::Ends).poll()), (Told::Ended, Pending));
}

#[guarded("promises.urgent", qps = 2, priority)]
async fn urgent(way: Way) -> Answer {
    way.go().await
}

#[test]
fn priority_places_come_back() {
    let bench = Bench::new();
    let call = |way| bench.call(urgent(way));
    let ordinary = || (0..3).map(|_| bench.registry.enter("promises.urgent").is_ok()).collect::<Vec<_>>();
    assert_eq!([call(Way::Fails).poll(), call(Way::Panics).poll()], [Told::Failed, Told::Panicked]);
    for _ in 0..ROUNDS {
        let (calls, told) = hold(3, call);
        assert_eq!(told, [Pending, Pending, Blocked]);
        assert_eq!(bench.under_way("promises.urgent"), NOBODY, "who waits for a place has passed nothing");
        drop(calls);
    }
    // While somebody has a place, the room that comes is not for others; once nobody has, it is.
    let (mut calls, _) = hold(2, call);
    bench.at(1_000);
    assert_eq!(ordinary(), [false, false, false]);
    drop(calls.remove(0));
    assert_eq!(ordinary(), [true, false, false]);
    assert_eq!((calls[0].poll(), bench.under_way("promises.urgent")), (Pending, [1, 0, 0]));
    drop(calls);
    bench.at(2_000);
    assert_eq!(ordinary(), [true, true, false]);
    assert_eq!(bench.under_way("promises.urgent"), NOBODY);
}

#[guarded("promises.inbound", inbound)]
async fn inbound(way: Way) -> Answer {
    way.go().await
}

#[guarded("promises.inbound.paced", inbound, qps = 10, behavior = throttle, max_wait_ms = 500)]
async fn inbound_and_paced(way: Way) -> Answer {
    way.go().await
}

#[test]
fn the_systems_concurrency_comes_back() {
    let bench = Bench::with(RuleSet::new().system(SystemRule::concurrency(2)));
    let in_flight = || bench.registry.system().inbound_in_flight();
    let call = |way| bench.call(inbound(way));
    mistreat(&bench, 0, call);
    assert_eq!(in_flight(), 0);
    for _ in 0..ROUNDS {
        let (calls, told) = hold(3, call);
        assert_eq!((told.as_slice(), in_flight()), (&[Pending, Pending, Blocked][..], 2));
        drop(calls);
        assert_eq!(in_flight(), 0);
    }
    // Those that are cancelled while they wait for their turn.
    let paced = |way| bench.call(inbound_and_paced(way));
    assert_eq!(paced(Way::Ends).poll(), Told::Ended);
    for _ in 0..ROUNDS {
        let (calls, told) = hold(3, paced);
        assert_eq!((told.as_slice(), in_flight()), (&[Pending, Pending, Blocked][..], 2));
        cancel_from_the_back(calls);
        assert_eq!((in_flight(), bench.under_way("promises.inbound.paced")), (0, NOBODY));
    }
    assert_eq!(hold(3, call).1, [Pending, Pending, Blocked]);
}

#[guarded("promises.of_origin", origin = who, entrance = "front", max_concurrency = 1, queue_ms = 50)]
async fn of_origin(who: &'static str, way: Way) -> Answer {
    way.go().await
}

#[test]
fn an_origins_calls_come_back_and_those_that_never_passed_took_nothing_of_its_limit() {
    let limit = FlowRule::new(3.0, Behavior::Reject).unwrap().for_each_origin().unwrap();
    let bench = Bench::with(RuleSet::new().flow("promises.of_origin", limit));
    let in_flight = || {
        let stats = bench.registry.stats("promises.of_origin").unwrap();
        let share = |share: &leap_runtime::ShareStats| (share.name().to_owned(), share.in_flight());
        stats.origins().iter().chain(stats.entrances()).map(share).collect::<Vec<_>>()
    };
    let nobody = [("vip".to_owned(), 0), ("front".to_owned(), 0)];
    let call = |way| bench.call(of_origin("vip", way));
    for (way, expected) in [(Way::Fails, Told::Failed), (Way::Panics, Told::Panicked), (Way::Hangs, Pending)]
    {
        let (running, told) = call(way).tried();
        assert_eq!(told, expected);
        drop(running);
        assert_eq!(in_flight(), nobody);
    }
    assert_eq!(call(Way::Ends).poll(), Blocked, "the three have passed, however they ended");
    bench.at(1_000);
    for _ in 0..ROUNDS {
        let (running, told) = hold(1, |way| bench.call(of_origin("", way)));
        assert_eq!(told, [Pending]);
        let (queued, told) = hold(5, call);
        assert_eq!((told.as_slice(), bench.under_way("promises.of_origin")), (&[Pending; 5][..], [1, 0, 5]));
        drop((queued, running));
        assert_eq!((bench.under_way("promises.of_origin"), in_flight().as_slice()), (NOBODY, &nobody[..]));
    }
    let told: Vec<_> = (0..4).map(|_| call(Way::Ends).poll()).collect();
    assert_eq!(told, [Told::Ended, Told::Ended, Told::Ended, Blocked]);
}

#[guarded("promises.of_origin.urgent", inbound, origin = who, hot(key = who), qps = 1, priority)]
async fn urgent_of_origin(who: &'static str, way: Way) -> Answer {
    way.go().await
}

#[test]
fn a_call_that_waits_for_a_place_takes_of_no_other_limit_before_it_passes() {
    let per_minute = |limit| FlowRule::new(limit, Behavior::Reject).unwrap().per(ms(60_000)).unwrap();
    let rules = || {
        let own = FlowRule::new(1.0, Behavior::Reject).unwrap();
        RuleSet::new().flow("promises.of_origin.urgent", own).system(SystemRule::qps(1_000.0).unwrap())
    };
    let of_each_origin = per_minute(3.0).for_each_origin().unwrap();
    let of_each_key = HotRule::qps("who", 3.0).unwrap().per(ms(60_000)).unwrap();
    for rules in [
        rules().flow("promises.of_origin.urgent", of_each_origin),
        rules().hot("promises.of_origin.urgent", of_each_key),
    ] {
        let bench = Bench::with(rules);
        let call = |way| bench.call(urgent_of_origin("vip", way));
        assert_eq!(call(Way::Ends).poll(), Told::Ended);
        for _ in 0..ROUNDS {
            let (_, told) = call(Way::Ends).tried();
            assert_eq!(told, Pending, "and is cancelled at once");
        }
        assert_eq!(bench.registry.system().inbound_qps(), 1);
        // One of three has passed: two more do, and no third.
        for at in [1_000, 2_000] {
            let mut placed = call(Way::Ends);
            assert_eq!(placed.poll(), Pending);
            bench.at(at);
            assert_eq!(placed.poll(), Told::Ended);
        }
        bench.at(3_000);
        assert_eq!(call(Way::Ends).poll(), Blocked);
    }
}

/// Counts the calls that it let pass and that have not ended yet.
#[derive(Clone, Default)]
struct Watching(Arc<AtomicI64>);

impl Check for Watching {
    fn check(&self, _: &leap_runtime::Call<'_>) -> Verdict {
        self.0.fetch_add(1, Ordering::Relaxed);
        Verdict::Pass
    }

    fn ended(&self, _: &Ended<'_>) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_check_of_ones_own_is_told_of_every_end() {
    let bench = Bench::new();
    let watching = Watching::default();
    bench.registry.add_check("promises.*", watching.clone());
    let running = || watching.0.load(Ordering::Relaxed);
    mistreat(&bench, 0, |way| bench.call(counted(way)));
    assert_eq!(running(), 0);
    let (queueing, _) = hold(3, |way| bench.call(isolated(way)));
    assert_eq!(running(), 2, "who queues is asked again when there is room");
    let (waiting, _) = hold(3, |way| bench.call(paced(way)));
    assert_eq!(running(), 5);
    drop((queueing, waiting));
    assert_eq!(running(), 0);
}

#[guarded(
    "promises.sync",
    inbound,
    origin = who,
    max_concurrency = 2,
    hot(key = who, max_concurrency = 2),
    error_ratio = 1.0,
    min_calls = 1_000,
    qps = 1_000
)]
fn nested(who: &str, way: Way, depth: u32) -> Answer {
    if depth == 0 { way.go_at_once() } else { nested(who, way, depth - 1) }
}

#[test]
fn panics_and_question_marks_in_nested_sync_calls_leak_nothing() {
    let bench = Bench::with(RuleSet::new().system(SystemRule::concurrency(2)));
    let call = |way, depth| {
        let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bench.registry.scope(|| nested("vip", way, depth))
        }));
        called.map_or(Told::Panicked, |answer| told(&answer))
    };
    for _ in 0..10 {
        assert_eq!([call(Way::Fails, 1), call(Way::Panics, 1)], [Told::Failed, Told::Panicked]);
        // Exactly two at once, one inside the other.
        assert_eq!([call(Way::Ends, 1), call(Way::Ends, 2)], [Told::Ended, Blocked]);
        assert_eq!(
            (bench.under_way("promises.sync"), bench.registry.system().inbound_in_flight()),
            (NOBODY, 0)
        );
    }
}

#[guarded(
    "promises.everything",
    inbound,
    origin = who,
    max_concurrency = 8,
    queue_ms = 20,
    hot(key = who, max_concurrency = 6, qps = 500, behavior = throttle, max_wait_ms = 20),
    qps = 200,
    behavior = throttle,
    max_wait_ms = 20,
    error_count = 1_000_000
)]
async fn everything(who: &'static str, way: Way) -> Answer {
    tokio::time::sleep(ms(15)).await;
    way.go().await
}

/// Tasks under timeouts of all lengths, so that they are cancelled at every stage of a call, on tokio's own clock.
#[tokio::test(start_paused = true)]
async fn tasks_that_time_out_anywhere_leak_nothing_under_all_rules_at_once() {
    let registry = leap_runtime::Registry::builder().clock(TokioClock::new()).build();
    registry.load(RuleSet::new().system(SystemRule::concurrency(10))).unwrap();
    let mut tasks = vec![];
    for n in 0..400_u64 {
        let who = ["ann", "bob", "eve"][usize::try_from(n % 3).unwrap()];
        let way = match n % 40 {
            0 => Way::Panics,
            1..10 => Way::Fails,
            10..20 => Way::Hangs,
            _ => Way::Ends,
        };
        let call = everything(who, way).in_registry(&registry);
        tasks.push(tokio::spawn(tokio::time::timeout(ms(n % 61), call)));
        tokio::time::sleep(ms(3)).await;
    }
    for task in tasks {
        // A panic in it, a timeout or an answer.
        let _ = task.await;
    }
    let stats = registry.stats("promises.everything").unwrap();
    let totals = stats.totals();
    assert!(totals.cancelled() > 0 && totals.success() > 0 && totals.exception() > 0, "{stats}");
    assert_eq!(
        ([stats.in_flight(), stats.waiting(), stats.queued()], totals.passed()),
        (NOBODY, totals.completed())
    );
    assert_eq!(registry.system().inbound_in_flight(), 0);
    assert!(stats.origins().iter().all(|share| share.in_flight() == 0), "{stats}");

    // As if nothing had happened: six of one key run, and two of another, as eight may run at once.
    tokio::time::sleep(ms(1_000)).await;
    let mut calls = vec![];
    for who in ["ann"; 7].into_iter().chain(["bob"; 3]) {
        calls.push(tokio::spawn(everything(who, Way::Hangs).in_registry(&registry)));
        tokio::time::sleep(ms(10)).await;
    }
    tokio::time::sleep(ms(50)).await;
    let stats = registry.stats("promises.everything").unwrap();
    assert_eq!([stats.in_flight(), stats.waiting(), stats.queued()], [8, 0, 0]);
    let mut blocked = 0;
    for call in calls {
        call.abort();
        blocked += u32::from(call.await.is_ok_and(|answer| told(&answer) == Blocked));
    }
    assert_eq!(blocked, 2);
    let stats = registry.stats("promises.everything").unwrap();
    assert_eq!([stats.in_flight(), stats.waiting(), stats.queued()], NOBODY);
}
