//! The plans of a resource: the present one, and how calls hold theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arc_swap::{ArcSwap, Guard};
use once_cell::sync::OnceCell;

use crate::check::Plan;

/// How many plans of a resource last as long as it does.
const LASTING: u8 = 8;

/// What a resource decides by, from one load of rules to the next.
///
/// A call holds its plan until it ends. Counting that costs two read-modify-writes, a tenth of what a call costs, and most
/// resources get their rules once or a few times. So the first plans of a resource that plain calls go by are never given
/// up, unless their log is large: calls hold them by their number. Others are counted, and go with the last call that holds
/// them.
#[derive(Debug)]
pub(crate) struct Plans {
    current: ArcSwap<Plan>,
    lasting: [OnceCell<Arc<Plan>>; LASTING as usize],
    /// A [`Guarding`].
    guarding: AtomicU8,
}

/// What a plain call of a resource has to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarding {
    /// The lasting plan of that number.
    Lasting(Number),
    /// Its plan.
    Counted,
    /// Nothing, and nobody else has to know what passes: the plan is [idle](Plan::is_idle).
    Idle,
    /// Nothing, and nothing is counted: guarding is switched off.
    Off,
}

/// Which of the lasting plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(u8);

impl Number {
    /// That of no plan.
    const NONE: Self = Self(u8::MAX);
}

/// How a call holds its plan, if it has to.
///
/// Two fields and not three variants: each is written where it is to stay, in one store.
#[derive(Debug)]
pub(crate) struct PlanHold {
    lasting: Number,
    counted: Option<Guard<Arc<Plan>>>,
}

impl Default for PlanHold {
    #[inline]
    fn default() -> Self {
        Self { lasting: Number::NONE, counted: None }
    }
}

impl From<Number> for PlanHold {
    #[inline]
    fn from(number: Number) -> Self {
        Self { lasting: number, counted: None }
    }
}

impl From<Guard<Arc<Plan>>> for PlanHold {
    #[inline]
    fn from(plan: Guard<Arc<Plan>>) -> Self {
        Self { lasting: Number::NONE, counted: Some(plan) }
    }
}

/// The words of a [`Guarding`]: below these, a number.
const COUNTED: u8 = LASTING;
const IDLE: u8 = COUNTED + 1;
const OFF: u8 = COUNTED + 2;

impl Plans {
    /// An idle plan, and guarding is on.
    pub(crate) fn new(idle: Arc<Plan>) -> Self {
        debug_assert!(idle.is_idle(), "{idle:?}");
        Self { current: ArcSwap::new(idle), lasting: Default::default(), guarding: AtomicU8::new(IDLE) }
    }

    /// The present plan.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<Plan>> {
        self.current.load()
    }

    pub(crate) fn load_full(&self) -> Arc<Plan> {
        self.current.load_full()
    }

    /// What a plain call has to ask.
    ///
    /// One that is told so just before that changes goes by what was, as one that had loaded the plan.
    #[inline]
    pub(crate) fn guarding(&self) -> Guarding {
        // Acquire: the plan of that number is there. Whoever knows that rules were loaded knows of this too, which was
        // written before.
        match self.guarding.load(Ordering::Acquire) {
            COUNTED => Guarding::Counted,
            IDLE => Guarding::Idle,
            OFF => Guarding::Off,
            number => Guarding::Lasting(Number(number)),
        }
    }

    /// What a plain call has to ask, if that is a lasting plan. In fewer instructions than [`guarding`](Self::guarding) takes
    /// to tell it from everything else.
    #[inline]
    pub(crate) fn lasting(&self) -> Option<(Number, &Plan)> {
        // Acquire: as there.
        let number = Number(self.guarding.load(Ordering::Acquire));
        Some((number, self.of_number(number)?))
    }

    #[inline]
    fn of_number(&self, Number(number): Number) -> Option<&Plan> {
        self.lasting.get(usize::from(number))?.get().map(|plan| &**plan)
    }

    /// The present plan, to be held by a call.
    pub(crate) fn hold(&self) -> PlanHold {
        match self.lasting() {
            Some((number, _)) => number.into(),
            None => self.load().into(),
        }
    }

    /// The plan that is held so; none if there was none to hold.
    #[inline]
    pub(crate) fn held<'a>(&'a self, hold: &'a PlanHold) -> Option<&'a Plan> {
        match self.of_number(hold.lasting) {
            None => hold.counted.as_ref().map(|plan| &***plan),
            lasting => lasting,
        }
    }

    /// Has calls go by that plan from now on. To be called by one at a time.
    pub(crate) fn publish(&self, plan: &Arc<Plan>, is_on: bool) {
        if plan.may_last() {
            // Where there is no room any more, it is counted.
            _ = self.lasting.iter().find(|slot| slot.get().is_none()).map(|slot| slot.set(Arc::clone(plan)));
        }
        // Not idle before rules are to be asked, and idle after they were.
        if !plan.is_idle() {
            self.note(plan, is_on);
        }
        self.current.store(Arc::clone(plan));
        if plan.is_idle() {
            self.note(plan, is_on);
        }
    }

    /// Guarding was switched on or off. To be called by one at a time, which does not publish meanwhile.
    pub(crate) fn switch(&self, is_on: bool) {
        self.note(&self.current.load(), is_on);
    }

    fn note(&self, plan: &Arc<Plan>, is_on: bool) {
        let lasting = self.lasting.iter().map_while(OnceCell::get);
        let number = || lasting.zip(0..).find_map(|(it, number)| Arc::ptr_eq(it, plan).then_some(number));
        let guarding = match (is_on, plan.is_idle()) {
            (false, _) => OFF,
            (true, true) => IDLE,
            (true, false) => number().unwrap_or(COUNTED),
        };
        // Release: who is told a number finds the plan.
        self.guarding.store(guarding, Ordering::Release);
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;
    use crate::{FlowRule, Outcome, Registry, RuleSet, rule::Behavior};

    fn limit(limit: u32) -> RuleSet {
        RuleSet::new().flow("orders.create", FlowRule::new(limit.into(), Behavior::Reject).unwrap())
    }

    #[test]
    fn the_first_plans_last_and_later_ones_are_counted_and_each_decides_by_its_own_rules() {
        let registry = Registry::builder().clock(crate::ManualClock::new()).build();
        let mut inside = vec![];
        for n in 1..=20 {
            registry.load(limit(n)).unwrap();
            let number = u8::try_from(n).unwrap() - 1;
            let expected =
                if number < LASTING { Guarding::Lasting(Number(number)) } else { Guarding::Counted };
            assert_eq!(registry.node("orders.create").unwrap().guarding(), expected);
            inside.push(registry.enter("orders.create").unwrap());
            assert_eq!(registry.enter("orders.create").unwrap_err().limit(), Some(f64::from(n)));
        }
        for entry in inside {
            entry.end(Outcome::Success);
        }
        let stats = registry.stats("orders.create").unwrap();
        assert_eq!((stats.totals().success(), stats.in_flight()), (20, 0));
    }

    #[test]
    fn calls_that_no_rule_counts_are_counted_in_lanes_by_every_plan_and_with_any_permits() {
        // A plan that lasts, and one that does not.
        for loads in [1, 12] {
            let registry = Registry::builder().clock(crate::ManualClock::new()).build();
            for n in 1..=loads {
                let breaker = crate::BreakerRule::error_count(n);
                registry.load(RuleSet::new().breaker("orders.create", breaker)).unwrap();
            }
            let resource = registry.node("orders.create").unwrap();
            let in_one_word = || resource.node().passed().load(Ordering::Relaxed);
            let _beside = registry.enter("orders.create").unwrap();
            for n in [1, 2] {
                let call = || registry.enter_with("orders.create").permits(n).enter().unwrap();
                // Many that have company make lanes.
                (0..2_000).for_each(|_| drop(call()));
                let before = in_one_word();
                (0..100).for_each(|_| drop(call()));
                assert_eq!(in_one_word(), before, "{loads} loads, {n} permits");
            }
            assert_eq!(registry.stats("orders.create").unwrap().totals().passed(), 1 + 2_100 + 2 * 2_100);
        }
    }

    #[test]
    fn a_plan_that_lasts_is_found_again_when_guarding_is_switched_on() {
        let registry = Registry::builder().clock(crate::ManualClock::new()).build();
        registry.load(limit(1)).unwrap();
        registry.enter("orders.create").unwrap().end(Outcome::Success);
        registry.turn_off();
        let resource = registry.node("orders.create").unwrap();
        assert_eq!(resource.guarding(), Guarding::Off);
        registry.turn_on();
        assert_eq!(resource.guarding(), Guarding::Lasting(Number(0)));
        assert!(registry.enter("orders.create").is_err());
    }

    #[test]
    fn a_plan_with_a_large_log_is_kept_by_nobody_when_its_rules_are_gone() {
        let registry = Registry::builder().clock(crate::ManualClock::new()).build();
        let exact = |limit| {
            let rule = FlowRule::new(limit, Behavior::Reject).unwrap();
            RuleSet::new().flow("orders.create", rule.with_precision(crate::Precision::Exact).unwrap())
        };
        registry.load(exact(1_048_576.0)).unwrap();
        let resource = registry.node("orders.create").unwrap();
        assert_eq!(resource.guarding(), Guarding::Counted);
        let plan = Arc::downgrade(&Guard::into_inner(resource.plan()));
        registry.enter("orders.create").unwrap().end(Outcome::Success);
        registry.load(RuleSet::new()).unwrap();
        assert_eq!((plan.strong_count(), resource.guarding()), (0, Guarding::Idle));
        registry.load(exact(1_024.0)).unwrap();
        assert_eq!(resource.guarding(), Guarding::Lasting(Number(0)));
    }

    #[test]
    fn what_a_counted_plan_holds_goes_with_its_last_call() {
        let registry = Registry::builder().clock(crate::ManualClock::new()).build();
        for n in 1..=u32::from(LASTING) + 1 {
            let rule = crate::IsolationRule::new(n);
            registry.load(RuleSet::new().isolation("orders.create", rule)).unwrap();
            drop(registry.enter("orders.create").unwrap());
        }
        let resource = registry.node("orders.create").unwrap();
        let plan = Arc::downgrade(&Guard::into_inner(resource.plan()));
        let entry = registry.enter("orders.create").unwrap();
        registry.load(RuleSet::new()).unwrap();
        assert_eq!(plan.strong_count(), 1, "the call's");
        drop(entry);
        assert_eq!(plan.strong_count(), 0);
    }
}
