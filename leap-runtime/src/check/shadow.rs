//! Rules in shadow: asked as if they decided, by words of their own.
//!
//! A shadow is a plan of that one rule, taken as enforced, over its own `passed`. So every check is the one that would
//! decide, and what it would have let through feeds its state. It is asked when the verdict on a call is known, and decides
//! nothing: no call waits for it, and nobody is told of its breakers (but of one that decides by the time its calls end). What it holds of a call that runs (permits in flight,
//! the generation of a breaker) is kept by the call's entry and ends with it; of a call that was blocked nothing is held.

use std::sync::Arc;

use super::breaker::Moved;
use super::call::Request;
use super::figures::{Figures, ShadowStats, Word};
use super::flow::associated::Watches;
use super::past::Past;
use super::{Admitted, Around, Arrival, Hand, Held, Plan, Stop, Tell};
use crate::blocked::{By, Refusal};
use crate::clock::{Reading, Timestamp};
use crate::event::Outcome;
use crate::rule::{Mode, Rule, RuleId, RuleKind};
use crate::sync::{AtomicU64, Ordering};

/// A rule in shadow.
#[derive(Debug)]
pub(super) struct Shadow {
    id: RuleId,
    rule: Rule,
    plan: Plan,
    words: Arc<Words>,
    figures: Arc<Figures>,
}

/// What its plan decides on, kept over loads.
#[derive(Debug, Default)]
struct Words {
    passed: AtomicU64,
    /// Asked for by checks, and nobody waits: always 0.
    waiting: AtomicU64,
}

/// What a shadow holds of a call that runs.
#[derive(Debug)]
pub(super) struct ShadowHeld {
    /// Its place in the plan of the entry.
    place: usize,
    permits: u32,
    held: Held,
}

/// What shadows are made of beside their rules.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) previous: &'a Plan,
    /// The total that the previous plan decides on.
    pub(super) passed: &'a AtomicU64,
    pub(super) watches: &'a [&'a Watches],
    /// The origins that have rules of their own, enforced or in shadow.
    pub(super) named: &'a [Box<str>],
}

impl Shadow {
    /// The shadow of `rule`. It goes on from `standing`, the rule's shadow before; else, if it `descends`, from the rule that
    /// was enforced or off under this id and is so no more.
    ///
    /// `takes_permits` says that nobody else goes on with the count of the isolation before.
    pub(super) fn new(
        id: &RuleId,
        rule: &Rule,
        standing: Option<&Self>,
        descends: bool,
        takes_permits: bool,
        around: Surroundings<'_>,
        reading: &Reading<'_>,
    ) -> Self {
        let Surroundings { previous, passed, watches, named } = around;
        let is_same = |standing: &&Self| standing.rule == *rule;
        let figures =
            standing.filter(is_same).map(|standing| Arc::clone(&standing.figures)).unwrap_or_default();
        let words = match standing {
            Some(standing) => Arc::clone(&standing.words),
            // At the same total the same permits have the same numbers.
            None if descends => {
                let passed = AtomicU64::new(passed.load(Ordering::Acquire));
                Arc::new(Words { passed, ..Words::default() })
            }
            None => Arc::default(),
        };
        let none = Plan::default();
        let past = match standing {
            Some(standing) => Past { plan: &standing.plan, others: vec![], takes_permits },
            None if descends => Past { plan: &none, others: vec![(previous, passed)], takes_permits },
            None => Past { plan: &none, others: vec![], takes_permits },
        };
        let rules = vec![(id.clone(), rule.clone().with_mode(Mode::Enforce))];
        let plan = Plan::after(rules, &past, watches, &words.passed, reading).with_named(named);
        Self { id: id.clone(), rule: rule.clone(), plan, words, figures }
    }

    pub(super) fn id(&self) -> &RuleId {
        &self.id
    }

    /// Whether it is of just that rule.
    pub(super) fn is_of(&self, id: &RuleId, rule: &Rule) -> bool {
        self.id == *id && self.rule == *rule
    }

    pub(super) fn kind(&self) -> RuleKind {
        self.rule.kind()
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What its plan decides on.
    pub(super) fn passed(&self) -> &AtomicU64 {
        &self.words.passed
    }

    pub(super) fn stats(&self) -> ShadowStats {
        self.figures.stats(&self.id, &self.rule)
    }

    /// Writes what calls that went by the shadow before left unwritten.
    pub(super) fn catch_up(&self, reading: &Reading<'_>) {
        self.plan.catch_up(&self.words.passed, reading);
    }

    /// Asks about a call that passed. Returns what is to be told of its end.
    pub(super) fn ask_passed(
        &self,
        place: usize,
        request: &Request<'_>,
        now: Timestamp,
        reading: &Reading<'_>,
    ) -> Option<ShadowHeld> {
        let (word, held) = self.ask(request, now, reading);
        self.figures.note(word, false);
        let held =
            held.filter(|held| held.has_more() || self.plan.wants_the_end() || !self.plan.flow.is_idle())?;
        Some(ShadowHeld { place, permits: request.permits, held })
    }

    /// Asks about a call that was blocked, and so does not run.
    pub(super) fn ask_blocked(&self, request: &Request<'_>, now: Timestamp, reading: &Reading<'_>) {
        let (word, held) = self.ask(request, now, reading);
        self.figures.note(word, true);
        if let Some(mut held) = held {
            self.end(&mut held, request.permits, Outcome::Cancelled, 0, now, &mut |_, _| {});
        }
    }

    /// What the rule says, and what it then holds of the call if that would pass.
    fn ask(&self, request: &Request<'_>, now: Timestamp, reading: &Reading<'_>) -> (Word, Option<Held>) {
        let Words { passed, waiting } = &*self.words;
        let request = &Request { priority: false, ..*request };
        let arrival = Arrival { request, system: None, passed, waiting, now };
        let alone = Alone { reading, can_wait: self.kind() != RuleKind::Isolation };
        let greeted = self.plan.greet(&arrival, reading).map_err(Stop::Refused);
        let asked = greeted.and_then(|()| self.plan.admit_fully(&arrival, Hand::Empty, None, &alone));
        match asked {
            Ok(Admitted { held, start: None, .. }) => (Word::Passes, Some(held)),
            Ok(Admitted { held, start: Some(_), .. }) => {
                waiting.fetch_sub(request.permits.into(), Ordering::Relaxed);
                (Word::Waits, Some(held))
            }
            // There is nobody to queue.
            Err(Stop::Refused(Refusal { by: By::NoTimer, .. }) | Stop::Permits(..) | Stop::Place(..)) => {
                (Word::Queues, None)
            }
            Err(Stop::Refused(_)) => (Word::Blocks, None),
        }
    }

    /// The end of a call of which it holds something. `tell` hears of its breaker only where that decides by now.
    fn end(
        &self,
        held: &mut Held,
        permits: u32,
        outcome: Outcome,
        rt_ns: u64,
        now: Timestamp,
        tell: &mut Tell<'_>,
    ) {
        self.plan.end(held, permits, outcome, rt_ns, now, &mut *tell);
        held.end_more(&self.plan, outcome, rt_ns, now, tell);
    }
}

impl ShadowHeld {
    /// The call ended. `plan` is that of its entry.
    pub(super) fn end(
        mut self,
        plan: &Plan,
        outcome: Outcome,
        rt_ns: u64,
        now: Timestamp,
        tell: &mut Tell<'_>,
    ) {
        plan.shadows()[self.place].end(&mut self.held, self.permits, outcome, rt_ns, now, tell);
    }

    /// The call, which the shadow would have let through, has charged `n` more permits.
    pub(super) fn charge(&self, plan: &Plan, n: u64, reading: &Reading<'_>) {
        let Shadow { plan, words, .. } = &plan.shadows()[self.place];
        plan.flow.charge(&words.passed, n, reading);
    }
}

/// Nobody is around a shadow but a clock.
struct Alone<'a> {
    reading: &'a Reading<'a>,
    /// Whether calls may be told to wait. Nobody is to queue for permits: that would be seen in the word.
    can_wait: bool,
}

impl Around for Alone<'_> {
    fn reading(&self) -> Timestamp {
        (self.reading)()
    }

    fn can_wait(&self) -> bool {
        self.can_wait
    }

    fn tell(&self, _: &RuleId, _: Moved) {}
}
