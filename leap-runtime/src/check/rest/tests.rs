//! A plan that has nothing to remember decides as a new one.

use super::super::breaker::Moved;
use super::super::call::Request;
use super::super::{Admitted, Around, Arrival, Hand, Parts, Stop};
use super::*;
use crate::event::Outcome;
use crate::key::ToKey;
use crate::rule::{Behavior, BreakerRule, IsolationRule, Mode, Recovery, RuleId, RuleKind};
use crate::sync::{AtomicU64, Ordering};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn flow(limit: f64, behavior: Behavior) -> FlowRule {
    FlowRule::new(limit, behavior).unwrap()
}

/// One plan, its word, and the time.
struct World {
    plan: Plan,
    passed: AtomicU64,
    waiting: AtomicU64,
    now: Timestamp,
}

impl Around for World {
    fn reading(&self) -> Timestamp {
        self.now
    }

    fn can_wait(&self) -> bool {
        true
    }

    fn tell(&self, _: &RuleId, _: Moved) {}
}

impl World {
    fn new(rule: &Rule, now: Timestamp) -> Self {
        let rules = vec![(RuleId::new(None, rule.kind(), 0), rule.clone())];
        let passed = AtomicU64::new(0);
        let plan = Plan::new(Parts { rules, ..Parts::default() }, &Plan::default(), &passed, &|| now);
        Self { plan, passed, waiting: AtomicU64::new(0), now }
    }

    /// How long a call that ends when it has begun would wait, in ns; none if it is blocked.
    fn call(&self, n: u32, outcome: Outcome) -> Option<u64> {
        let user = [("user", "ann".to_key())];
        let request = Request { origin: Some("vip"), keys: &user, ..Request::of(n) };
        let Self { passed, waiting, now, .. } = self;
        let arrival = Arrival { request: &request, system: None, passed, waiting, now: *now };
        match self.plan.admit_fully(&arrival, Hand::Empty, None, self) {
            Ok(Admitted { mut held, start, .. }) => {
                if start.is_some() {
                    waiting.fetch_sub(n.into(), Ordering::Relaxed);
                }
                held.ask_shadows(&self.plan, None, &request, *now, &|| *now);
                self.plan.end(&mut held, n, outcome, 0, *now, |_, _| {});
                held.end_more(&self.plan, outcome, 0, *now, &mut |_, _| {});
                Some(start.map_or(0, |start| start.since_ns(*now)))
            }
            Err(Stop::Refused(_)) => None,
            Err(stop) => panic!("{stop:?} in a test without a queue"),
        }
    }
}

/// Traffic of all sizes over some seconds, and a burst; what each call is told.
fn told(world: &mut World, outcome: Outcome) -> Vec<Option<u64>> {
    let mut told = vec![];
    for step in 0..60_u32 {
        for n in [1, 1, 3, step % 7 + 1, 20, 1] {
            told.push(world.call(n, outcome));
        }
        world.now = world.now.saturating_add(ms(u64::from(step % 5) * 130));
    }
    // As much as there can be to remember.
    told.extend((0..300).map(|_| world.call(1, outcome)));
    told
}

fn rules() -> Vec<Rule> {
    let throttle = |max_wait| Behavior::Throttle { max_wait };
    let warm_up = |cold_factor| Behavior::WarmUp { period: ms(10_000), cold_factor };
    let warm_throttle = Behavior::WarmUpThrottle { period: ms(3_000), cold_factor: 3.0, max_wait: ms(2_000) };
    let precise = |rule: FlowRule, precision| rule.with_precision(precision).unwrap();
    let hot = |limit| HotRule::qps("user", limit).unwrap();
    let mut rules: Vec<Rule> = vec![
        flow(20.0, Behavior::Reject).into(),
        precise(flow(20.0, Behavior::Reject), Precision::Strict).into(),
        precise(flow(20.0, Behavior::Reject), Precision::Sentinel).into(),
        flow(500.0, Behavior::Reject).per(ms(3_600_000)).unwrap().into(),
        precise(flow(500.0, Behavior::Reject).per(ms(600_000)).unwrap(), Precision::Strict).into(),
        flow(20.0, throttle(ms(700))).into(),
        flow(20.0, throttle(ms(70_000))).into(),
        flow(0.5, throttle(ms(0))).into(),
        flow(20.0, throttle(ms(0))).with_burst(90).unwrap().into(),
        precise(flow(20.0, throttle(ms(700))), Precision::Sentinel).into(),
        flow(20.0, warm_up(3.0)).into(),
        flow(20.0, warm_up(1.1)).into(),
        flow(20.0, warm_throttle).into(),
        flow(20.0, Behavior::Reject).for_each_origin().unwrap().into(),
        flow(20.0, throttle(ms(900))).for_origin("vip").unwrap().into(),
        hot(20.0).into(),
        hot(200.0).into(),
        hot(20.0).with_burst(150).unwrap().into(),
        hot(20.0).except("ann", 2.0).unwrap().with_burst(30).unwrap().into(),
        hot(20.0).per(ms(60_000)).unwrap().into(),
        HotRule::throttle("user", 20.0, ms(900)).unwrap().into(),
        HotRule::throttle("user", 20.0, ms(900)).unwrap().except("ann", 1.0).unwrap().into(),
        hot(20.0).with_precision(Precision::Sentinel).unwrap().into(),
        hot(20.0).with_burst(40).unwrap().with_precision(Precision::Sentinel).unwrap().into(),
        IsolationRule::new(5).into(),
    ];
    rules.push(BreakerRule::error_count(1_000).with_window(ms(90_000), 3).unwrap().into());
    rules
}

#[test]
fn after_its_memory_a_plan_tells_calls_what_a_new_one_does() {
    for rule in rules() {
        for outcome in [Outcome::Success, Outcome::Exception] {
            let mut used = World::new(&rule, Timestamp::from_millis(60_000));
            told(&mut used, outcome);
            let memory = used.plan.memory();
            assert!(memory <= ms(3 * 3_600_000), "{rule} remembers for {memory:?}");
            used.now = used.now.saturating_add(memory);
            assert!(used.plan.is_at_rest(used.now), "{rule}");
            let mut new = World::new(&rule, used.now);
            assert_eq!(told(&mut used, outcome), told(&mut new, outcome), "{rule} after {memory:?}");
        }
    }
}

#[test]
fn without_the_rest_some_are_told_something_else() {
    // Or the test above would prove nothing.
    let differs = |rule: &Rule| {
        let mut used = World::new(rule, Timestamp::from_millis(60_000));
        told(&mut used, Outcome::Success);
        let mut new = World::new(rule, used.now);
        told(&mut used, Outcome::Success) != told(&mut new, Outcome::Success)
    };
    let n = rules().iter().filter(|rule| differs(rule)).count();
    assert_eq!(n, rules().len() - 2, "all but the isolation and the breaker, which are not full");
}

#[test]
fn a_breaker_that_is_not_closed_or_has_bad_calls_among_its_last_is_never_at_rest() {
    let late = |now: Timestamp| now.saturating_add(ms(1_000_000_000));
    let last = BreakerRule::error_count(1).with_min_calls(1).unwrap().with_window_calls(10).unwrap();
    let timed = BreakerRule::error_count(1).with_min_calls(1).unwrap();
    for rule in [last, last.with_recovery(Recovery::Ramp { over: ms(500) }).unwrap(), timed] {
        let after = |outcomes: &[Outcome]| {
            let world = World::new(&rule.into(), Timestamp::ZERO);
            for outcome in outcomes {
                world.call(1, *outcome);
            }
            world.plan.is_at_rest(late(world.now))
        };
        assert!(after(&[Outcome::Success; 3]), "{rule}");
        assert_eq!(after(&[Outcome::Success, Outcome::Exception]), rule == timed, "{rule}");
        assert!(!after(&[Outcome::Exception; 2]), "{rule} is open");
    }
    let world = World::new(&timed.into(), Timestamp::ZERO);
    world.plan.breakers()[0].disable();
    assert!(!world.plan.is_at_rest(late(world.now)), "a hand has put it there");
}

#[test]
fn a_breaker_in_shadow_is_at_rest_as_if_it_decided_and_one_that_is_off_unless_a_hand_has_put_it_there() {
    let rule = Rule::from(BreakerRule::error_count(0).with_min_calls(1).unwrap());
    let shadow = World::new(&rule.clone().with_mode(Mode::Shadow), Timestamp::ZERO);
    assert!(shadow.plan.is_at_rest(shadow.now));
    shadow.call(1, Outcome::Exception).unwrap();
    assert!(!shadow.plan.is_at_rest(shadow.now), "it would be open");

    for by_hand in [false, true] {
        let open = World::new(&rule, Timestamp::ZERO);
        open.call(1, Outcome::Exception).unwrap();
        if by_hand {
            open.plan.breakers()[0].force_open();
        }
        let rules = vec![(RuleId::new(None, rule.kind(), 0), rule.clone().with_mode(Mode::Off))];
        let off = Plan::new(Parts { rules, ..Parts::default() }, &open.plan, &open.passed, &|| open.now);
        assert_eq!(off.is_at_rest(open.now), !by_hand);
    }
}

#[test]
fn an_isolation_is_at_rest_when_nobody_is_in_it() {
    let rule = IsolationRule::new(5).into();
    let world = World::new(&rule, Timestamp::ZERO);
    let (_, mut held) = world.plan.admit(&world.passed, world.now, 2, &|| world.now, |_, _| {}).unwrap();
    assert!(!world.plan.is_at_rest(world.now));
    world.plan.end(&mut held, 2, Outcome::Success, 0, world.now, |_, _| {});
    assert!(world.plan.is_at_rest(world.now));
}

#[test]
fn the_rule_counts_that_remembers_longest() {
    let of = |rules: &[FlowRule]| {
        let id = |i| RuleId::new(None, RuleKind::Flow, i);
        let rules = rules.iter().enumerate().map(|(i, rule)| (id(i), rule.clone().into())).collect();
        let parts = Parts { rules, ..Parts::default() };
        Plan::new(parts, &Plan::default(), &AtomicU64::new(0), &|| Timestamp::ZERO).memory()
    };
    let hourly = flow(1.0, Behavior::Reject).per(ms(3_600_000)).unwrap();
    assert_eq!(of(&[]), ms(1_000));
    assert_eq!(of(&[flow(1.0, Behavior::Reject), hourly]), ms(3_637_000));
    // 10 s × (1 / 2 + 2 / 4) to cool down, a turn of it, and the window.
    let warm = flow(10.0, Behavior::WarmUp { period: ms(10_000), cold_factor: 3.0 });
    assert_eq!(of(&[warm]), ms(13_010));
}
