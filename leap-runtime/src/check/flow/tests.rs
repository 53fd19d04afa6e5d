//! Flow rules over one total, on virtual time.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::rule::{Behavior, Precision};
use crate::sync::Ordering;

const MS: u64 = 1_000_000;
const START: Timestamp = Timestamp::from_millis(60_000);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A resource with flow rules and nothing else.
struct World {
    flow: Flow,
    total: AtomicU64,
    now: Timestamp,
}

impl World {
    fn new(rules: &[FlowRule]) -> Self {
        let (flow, total) = (Flow::default(), AtomicU64::new(0));
        let mut world = Self { flow, total, now: START };
        world.load(rules);
        world
    }

    fn load(&mut self, rules: &[FlowRule]) {
        let rules = rules.iter().enumerate();
        let rules = rules.map(|(i, rule)| (RuleId::new(None, RuleKind::Flow, i), rule.clone()));
        let rules: Vec<_> = rules.collect();
        self.flow = Flow::new(&rules, &self.flow, &self.total, &|| self.now);
        self.flow.windows().catch_up(&self.total, &|| self.now);
    }

    fn advance(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    fn go_to(&mut self, ms: u64) {
        self.now = START.saturating_add(Duration::from_millis(ms));
    }

    /// The turns that a call of `n` takes and its wait in ns, or none if it is blocked.
    fn take(&self, n: u64) -> Option<(Turns, u64)> {
        let mut turns = Turns::default();
        let start =
            self.flow.take_turns(&self.total, self.now, self.now, n, &mut turns, &|| self.now).ok()?;
        Some((turns, start.map_or(0, |start| start.since_ns(self.now))))
    }

    /// The wait in ns of a call that goes all the way in, or none if it is blocked.
    fn call(&self, n: u64) -> Option<u64> {
        let (turns, wait) = self.take(n)?;
        if self.flow.windows().admit(&self.total, self.now, n, &|| self.now).is_err() {
            self.flow.give_back(&turns);
            return None;
        }
        Some(wait)
    }

    /// How many of `n` calls at this moment pass.
    fn burst(&self, n: u64) -> usize {
        (0..n).filter(|_| self.call(1).is_some()).count()
    }

    /// What passes in each of so many seconds when a call comes every 5 ms.
    fn seconds(&mut self, n: u64) -> Vec<u64> {
        let second = |world: &mut Self| {
            let before = world.total.load(Ordering::Relaxed);
            for _ in 0..200 {
                world.call(1);
                world.advance(ms(5));
            }
            world.total.load(Ordering::Relaxed) - before
        };
        (0..n).map(|_| second(self)).collect()
    }
}

fn throttle(limit: f64, max_wait_ms: u64) -> FlowRule {
    FlowRule::new(limit, Behavior::Throttle { max_wait: ms(max_wait_ms) }).unwrap()
}

fn warm_up(limit: f64, period_s: u64, cold_factor: f64) -> FlowRule {
    let period = Duration::from_secs(period_s);
    FlowRule::new(limit, Behavior::WarmUp { period, cold_factor }).unwrap()
}

fn as_sentinel(rule: FlowRule) -> FlowRule {
    rule.with_buckets(2).unwrap().with_precision(Precision::Sentinel).unwrap()
}

/// Puts a file of Sentinel's recorded answers to the flow, and returns how many were compared.
fn replay(file: &str) -> usize {
    let path = format!("{}/../tests/conformance/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut n_compared = 0;
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let rule = &case["rule"];
        let max_wait = ms(rule["max_queue_ms"].as_u64().unwrap_or(0));
        let period = Duration::from_secs(rule["warm_up_s"].as_u64().unwrap_or(0));
        let cold_factor = rule["cold_factor"].as_f64().unwrap_or(0.0);
        let behavior = match rule["behavior"].as_str().unwrap() {
            "warm_up" => Behavior::WarmUp { period, cold_factor },
            "throttle" => Behavior::Throttle { max_wait },
            "warm_up_throttle" => Behavior::WarmUpThrottle { period, cold_factor, max_wait },
            other => panic!("{other}"),
        };
        let limit = rule["qps"].as_f64().unwrap();
        let mut world = World::new(&[as_sentinel(FlowRule::new(limit, behavior).unwrap())]);
        let pass = case["pass"].as_str().unwrap().bytes();
        for (i, (delta, pass)) in case["arrival_deltas_ms"].as_array().unwrap().iter().zip(pass).enumerate() {
            world.advance(ms(delta.as_u64().unwrap()));
            let n = case["batch"][i].as_u64().unwrap_or(1);
            let waited = world.call(n);
            let place = || format!("{file}, {}, call {i}", case["case"]);
            assert_eq!(waited.is_some(), pass == b'1', "{}", place());
            if let Some(expected) = case["wait_ns"][i].as_i64() {
                assert_eq!(waited.map_or(-1, u64::cast_signed), expected, "{}", place());
            }
            n_compared += 1;
        }
    }
    n_compared
}

#[test]
fn sentinels_recorded_answers_are_ours() {
    for file in ["flow_throttle.jsonl", "flow_warm_up.jsonl", "flow_warm_up_throttle.jsonl"] {
        assert!(replay(file) > 100, "{file}");
    }
}

// B01
#[test]
fn a_throttle_spaces_calls_out_finer_than_a_millisecond() {
    for as_sentinel in [false, true] {
        let rule = |limit| {
            let rule = throttle(limit, 1_000);
            if as_sentinel { rule.with_precision(Precision::Sentinel).unwrap() } else { rule }
        };
        let world = World::new(&[rule(2_000.0)]);
        let waits: Vec<_> = (0..5_000).filter_map(|_| world.call(1)).collect();
        assert_eq!(waits, (0..=2_000).map(|i| i * MS / 2).collect::<Vec<_>>());
        let passed = World::new(&[rule(1_500.0)]).burst(5_000);
        assert!((1_500..=1_501).contains(&passed), "{passed}");
    }
}

// B02, B04, B07
#[test]
fn waits_follow_one_another_at_the_rate() {
    let waits = |rule, n| {
        let world = World::new(&[rule]);
        (0..n).map(|_| world.call(1)).collect::<Vec<_>>()
    };
    assert_eq!(waits(throttle(0.2, 10_000), 4), [Some(0), Some(5_000 * MS), Some(10_000 * MS), None]);
    assert_eq!(waits(throttle(10.0, 500), 2), [Some(0), Some(100 * MS)]);
    let thirds = waits(throttle(3.0, 20_000), 10);
    let in_ms: Vec<_> = thirds.iter().map(|wait| (wait.unwrap() + MS / 2) / MS).collect();
    assert_eq!(in_ms, [0, 333, 667, 1_000, 1_333, 1_667, 2_000, 2_333, 2_667, 3_000]);
    assert_eq!(
        waits(throttle(3.0, 3_000), 11)[9..],
        [Some(3_000 * MS), None],
        "a wait may equal the longest"
    );
    assert_eq!(waits(throttle(0.01, 200_000), 4), [Some(0), Some(100_000 * MS), Some(200_000 * MS), None]);
    assert_eq!(waits(throttle(0.0, 1_000), 2), [None, None]);
}

// B03, B05
#[test]
fn a_turn_that_is_past_when_it_is_taken_is_now() {
    let mut world = World::new(&[throttle(10.0, 500)]);
    assert_eq!(world.burst(9), 6);
    world.advance(Duration::from_secs(3_600));
    assert_eq!(world.call(1), Some(0));
    // A reading from before that call: it waits for the next turn, if that is near enough.
    world.now = world.now.saturating_sub(ms(300));
    assert_eq!(world.call(1), Some(400 * MS));
    assert_eq!(world.call(1), Some(500 * MS));
    assert_eq!(world.call(1), None);
}

// B06
#[test]
fn as_many_as_the_limit_start_at_once_and_no_more() {
    let mut world = World::new(&[throttle(10.0, 500)]);
    let never = world
        .flow
        .take_turns(&world.total, world.now, world.now, 11, &mut Turns::default(), &|| world.now)
        .unwrap_err();
    assert_eq!(never.until, None);
    assert_eq!((world.call(50), world.call(10)), (None, Some(0)));
    // It pays afterwards.
    let refused = world
        .flow
        .take_turns(&world.total, world.now, world.now, 1, &mut Turns::default(), &|| world.now)
        .unwrap_err();
    assert_eq!(refused.until, Some(START.saturating_add(ms(500))));
    world.go_to(499);
    assert_eq!(world.call(1), None);
    world.go_to(500);
    assert_eq!(world.call(1), Some(500 * MS));
}

// B08
#[test]
fn a_longest_wait_of_nothing_refuses_instead_of_waiting() {
    let mut world = World::new(&[throttle(10.0, 0)]);
    assert_eq!((world.burst(1), world.call(1)), (1, None));
    world.go_to(50);
    assert_eq!(world.call(1), None);
    world.go_to(100);
    assert_eq!(world.call(1), Some(0));
}

// B10
#[test]
fn a_burst_is_as_many_as_it_says_and_none_slips_through_when_the_clock_moves() {
    let mut world = World::new(&[throttle(10.0, 0).with_burst(10).unwrap()]);
    assert_eq!(world.burst(20), 10);
    for (at, passed) in [(1, 0), (99, 0), (100, 1), (101, 0), (300, 2)] {
        world.go_to(at);
        assert_eq!(world.burst(20), passed, "at {at} ms");
    }
    world.go_to(60_000);
    assert_eq!(world.burst(7), 7);
    assert_eq!((world.call(4), world.call(3)), (None, Some(0)), "a bucket: 3 are left in it");
}

// B12
#[test]
fn a_reload_of_a_throttle_is_no_fresh_start() {
    let rule = throttle(1.0, 0);
    let mut world = World::new(std::slice::from_ref(&rule));
    assert_eq!(world.call(1), Some(0));
    for _ in 0..100 {
        world.go_to(100);
        world.load(std::slice::from_ref(&rule));
        world.go_to(200);
        assert_eq!(world.call(1), None);
    }
    // Nor is a change of limit, of precision, or to a unit in which a queue of a year has room.
    world.load(&[throttle(2.0, 0)]);
    world.load(std::slice::from_ref(&rule));
    world.load(&[rule.clone().with_precision(Precision::Sentinel).unwrap()]);
    world.go_to(999);
    assert_eq!(world.call(1), None);
    world.load(&[throttle(1.0, 300 * 24 * 60 * 60 * 1_000)]);
    world.load(&[rule]);
    assert_eq!(world.call(1), None);
    world.go_to(1_000);
    assert_eq!(world.call(1), Some(0));
}

// B16
#[test]
fn two_billion_per_second_are_spaced_half_a_nanosecond_apart() {
    let world = World::new(&[throttle(2e9, 1)]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(world.burst(100_000), 100_000));
        }
    });
    assert_eq!(world.call(1), Some(100_000), "200 000 of them take 0.1 ms");
}

#[test]
fn a_line_that_is_worn_out_is_followed_by_another_that_goes_on_there() {
    let rule = throttle(1.0, 2_000);
    let mut world = World::new(std::slice::from_ref(&rule));
    world.advance(Duration::from_secs(104 * 24 * 60 * 60));
    assert!(!world.flow.is_worn_out(world.now));
    world.advance(Duration::from_secs(12 * 60 * 60));
    assert!(world.flow.is_worn_out(world.now));
    assert_eq!((world.call(1), world.call(1)), (Some(0), Some(1_000 * MS)));
    world.load(&[rule]);
    assert!(!world.flow.is_worn_out(world.now));
    assert_eq!((world.call(1), world.call(1)), (Some(2_000 * MS), None));
    // A line that nobody made anew refuses when it cannot tell the time any more.
    world.advance(Duration::from_secs(209 * 24 * 60 * 60));
    assert_eq!(world.call(1), None);
    let total = AtomicU64::new(0);
    let alone = Flow::alone(throttle(1.0, 0), &total, &|| START);
    let much_later = START.saturating_add(Duration::from_secs(17 * 365 * 24 * 60 * 60));
    assert!(
        alone.take_turns(&total, much_later, much_later, 1, &mut Turns::default(), &|| much_later).is_ok()
    );
}

#[test]
fn a_cancelled_wait_gives_its_turn_back_if_it_was_the_last() {
    let world = World::new(&[throttle(10.0, 1_000)]);
    assert_eq!(world.call(1), Some(0));
    let ((first, _), (second, _)) = (world.take(1).unwrap(), world.take(2).unwrap());
    world.flow.give_back(&first);
    let (third, wait) = world.take(1).unwrap();
    assert_eq!(wait, 400 * MS, "somebody had queued behind the first");
    world.flow.give_back(&third);
    world.flow.give_back(&second);
    assert_eq!(world.call(1), Some(200 * MS), "the turns of the third and the second came back");
}

#[test]
fn several_throttles_let_a_call_start_when_all_of_them_do() {
    let mut world = World::new(&[throttle(10.0, 1_000), throttle(5.0, 300), throttle(100.0, 1_000)]);
    assert_eq!((world.call(1), world.call(1), world.call(1)), (Some(0), Some(200 * MS), None));
    let refused = world
        .flow
        .take_turns(&world.total, world.now, world.now, 1, &mut Turns::default(), &|| world.now)
        .unwrap_err();
    assert_eq!((refused.rule.position(), refused.until), (1, Some(START.saturating_add(ms(100)))));
    world.go_to(100);
    let (turns, wait) = world.take(1).unwrap();
    assert_eq!(wait, 300 * MS);
    world.flow.give_back(&turns);
    // By the first alone it would be 200 ms after the one before, which starts at 200.
    world.load(&[throttle(10.0, 1_000)]);
    assert_eq!(world.call(1), Some(200 * MS));
}

#[test]
fn looking_takes_no_turn() {
    let world = World::new(&[throttle(10.0, 0)]);
    for _ in 0..10 {
        assert!(world.flow.peek(&world.total, world.now, 1, &|| world.now).is_ok());
    }
    assert_eq!(world.call(1), Some(0));
    assert!(world.flow.peek(&world.total, world.now, 1, &|| world.now).is_err());
}

// B13
#[test]
fn a_warm_up_climbs_from_a_third_to_the_limit_and_is_cold_again_after_a_while() {
    for precision in [Precision::Exact, Precision::Strict] {
        let mut world = World::new(&[warm_up(30.0, 10, 3.0).with_precision(precision).unwrap()]);
        for _ in 0..2 {
            let seconds = world.seconds(20);
            assert!((9..=11).contains(&seconds[0]), "{seconds:?}");
            assert!(seconds.is_sorted() && seconds.iter().all(|passed| *passed <= 30), "{seconds:?}");
            let full = seconds.iter().position(|passed| *passed == 30).unwrap() + 1;
            assert!((8..=13).contains(&full), "{full}: {seconds:?}");
            world.advance(Duration::from_secs(20));
        }
    }
}

#[test]
fn a_small_limit_warms_up_too() {
    let mut world = World::new(&[warm_up(2.0, 5, 3.0)]);
    for _ in 0..2 {
        let seconds = world.seconds(12);
        assert!((1..=3).contains(&seconds[..3].iter().sum::<u64>()), "{seconds:?}");
        assert!(seconds[7..].iter().all(|passed| *passed == 2), "{seconds:?}");
        world.advance(Duration::from_secs(10));
    }
    // 5 of 10 tokens are used after 5 s, which is where the warning line lies.
    let seconds = world.seconds(6);
    assert_eq!(seconds, [1, 1, 1, 1, 1, 2]);
    world.advance(Duration::from_secs(10));
    assert_eq!(world.seconds(1), [1]);
    assert_eq!(World::new(&[warm_up(1.0, 5, 3.0)]).seconds(3), [1, 1, 1], "never under 1");
}

#[test]
fn a_warm_up_of_other_intervals_takes_its_period_too() {
    let rule = warm_up(300.0, 30, 3.0).per(Duration::from_secs(10)).unwrap();
    let mut world = World::new(&[rule]);
    let tens: Vec<u64> = world.seconds(100).chunks(10).map(|seconds| seconds.iter().sum()).collect();
    assert!((99..=101).contains(&tens[0]), "{tens:?}");
    assert!(tens.is_sorted() && tens[4..].iter().all(|passed| *passed == 300), "{tens:?}");
    let short = warm_up(3.0, 10, 3.0).per(ms(50)).unwrap();
    let mut world = World::new(&[short]);
    let seconds = world.seconds(20);
    assert!((18..=24).contains(&seconds[0]) && *seconds.last().unwrap() == 60, "{seconds:?}");
}

#[test]
fn a_reloaded_warm_up_stays_as_warm_as_it_is() {
    let mut world = World::new(&[warm_up(30.0, 10, 3.0)]);
    world.seconds(15);
    world.load(&[warm_up(30.0, 10, 3.0)]);
    assert_eq!(world.seconds(1), [30]);
    world.load(&[warm_up(60.0, 10, 3.0)]);
    assert_eq!(world.seconds(2)[1], 60);
    world.load(&[as_sentinel(warm_up(60.0, 10, 3.0))]);
    assert_eq!(world.seconds(2)[1], 60);
    assert_eq!(World::new(&[warm_up(0.0, 10, 3.0)]).burst(10), 0);
}

#[test]
fn a_pace_warms_up_as_a_limit_does() {
    let (period, cold_factor) = (Duration::from_secs(10), 3.0);
    let behavior = Behavior::WarmUpThrottle { period, cold_factor, max_wait: ms(0) };
    let mut world = World::new(&[FlowRule::new(30.0, behavior).unwrap()]);
    for _ in 0..2 {
        let seconds = world.seconds(20);
        assert!((9..=11).contains(&seconds[0]), "{seconds:?}");
        // Calls come every 5 ms, so that most turns of 33 ms take 35: 28 or 29 of them fit.
        assert!(seconds.windows(2).all(|pair| pair[0] <= pair[1] + 1), "{seconds:?}");
        assert!((28..=29).contains(seconds.last().unwrap()), "{seconds:?}");
        world.advance(Duration::from_secs(20));
    }
}

/// What a throttle promises, by a list of all that was ever started.
#[derive(Debug, Default)]
struct Started(Vec<(u64, u64)>);

impl Started {
    /// In any span S no more than `rate · S + most` start.
    fn assert_spaced(&self, rate: f64, most: u64) {
        for (i, (from, _)) in self.0.iter().enumerate() {
            let mut permits = 0;
            for (to, n) in &self.0[i..] {
                permits += n;
                // Moments are told to the nanosecond.
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let allowed = rate * (to - from + 1) as f64 / 1e9 + most as f64 + 1e-6;
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let started = permits as f64;
                assert!(started <= allowed, "{started} from {from} to {to}, {allowed} may be: {:?}", self.0);
            }
        }
    }
}

proptest! {
    #[test]
    fn starts_keep_their_distance_and_waits_are_short_whoever_cancels(
        rate in prop_oneof![Just(3.0), Just(0.7), Just(10.0), Just(1_500.0), 0.01..5_000.0_f64],
        burst in 0_u32..6,
        max_wait_ms in 0_u64..3_000,
        calls in prop::collection::vec((0_u64..400, 1_u64..4, prop::option::weighted(0.3, 0_u64..2_000)), 1..150),
    ) {
        let mut world = World::new(&[throttle(rate, max_wait_ms).with_burst(burst).unwrap()]);
        // Those that wait: their start, permits, turns, and when they will be cancelled.
        let mut waiting: Vec<(u64, u64, Turns, Option<u64>)> = vec![];
        let mut started = Started::default();
        let ns = |moment: Timestamp| moment.since_ns(START);
        for (delta, n, cancel) in calls {
            world.advance(ms(delta));
            let now = ns(world.now);
            for (start, n, turns, cancel) in std::mem::take(&mut waiting) {
                match cancel {
                    Some(at) if at <= start && at <= now => world.flow.give_back(&turns),
                    _ if start <= now => started.0.push((start, n)),
                    _ => waiting.push((start, n, turns, cancel)),
                }
            }
            if let Some((turns, wait)) = world.take(n) {
                prop_assert!(wait <= max_wait_ms * MS);
                waiting.push((now + wait, n, turns, cancel.map(|after| now + after * MS)));
            }
        }
        started.0.extend(waiting.into_iter().filter(|(_, _, _, cancel)| cancel.is_none()).map(|(start, n, ..)| (start, n)));
        started.0.sort_unstable();
        started.assert_spaced(rate, u64::from(burst).max(3));
    }

    #[test]
    fn a_throttle_of_whole_costs_waits_as_a_plain_one_does(
        cost_ms in 1_u64..500,
        max_wait_ms in 0_u64..3_000,
        calls in prop::collection::vec((0_u64..700, 1_u64..3, any::<bool>()), 1..150),
    ) {
        let rule = throttle(1.0, max_wait_ms).per(ms(cost_ms)).unwrap().with_burst(2).unwrap();
        let mut world = World::new(&[rule]);
        let (mut next, mut now) = (0, 0);
        for (delta, n, is_cancelled) in calls {
            world.advance(ms(delta));
            now += delta;
            let start = now.max(next.max(cost_ms * (2 - n)) - cost_ms * (2 - n));
            let fits = start - now <= max_wait_ms;
            let taken = world.take(n);
            prop_assert_eq!(taken.as_ref().map(|(_, wait)| *wait), fits.then_some((start - now) * MS));
            match taken {
                // At once, so nobody is behind.
                Some((turns, _)) if is_cancelled => world.flow.give_back(&turns),
                Some(_) => next = next.max(now) + n * cost_ms,
                None => {}
            }
        }
    }

    #[test]
    fn a_warm_up_is_never_above_its_limit_nor_below_the_cold_one(
        limit in 1_u32..60,
        period_s in 1_u64..20,
        factor in 1.1..10.0_f64,
        precision in prop_oneof![Just(Precision::Exact), Just(Precision::Strict)],
        calls in prop::collection::vec((prop_oneof![4 => 0_u64..60, 1 => 0_u64..8_000], 1_u64..3), 1..400),
    ) {
        let rule = warm_up(limit.into(), period_s, factor).with_precision(precision).unwrap();
        let mut world = World::new(&[rule]);
        let mut passes: Vec<(u64, u64)> = vec![];
        for (delta, n) in calls {
            world.advance(ms(delta));
            let now = world.now.as_nanos();
            let reach = if precision == Precision::Exact { 1_000 * MS } else { 1_010 * MS };
            let within = |reach| passes.iter().filter(|(at, _)| at + reach > now).map(|(_, n)| n).sum::<u64>();
            if world.call(n).is_some() {
                prop_assert!(within(1_000 * MS) + n <= u64::from(limit));
                passes.push((now, n));
            } else {
                let cold = ((f64::from(limit) / factor).floor()).max(1.0);
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let asked = (within(reach) + n) as f64;
                prop_assert!(asked > cold, "{} of {} refused", asked, cold);
            }
        }
    }
}
