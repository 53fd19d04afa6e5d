//! What a new plan goes on from: the plan before it, and rules that had another role there.

use std::iter::once;

use super::Plan;
use super::breaker::Breaker;
use super::flow::Flow;
use super::flow::scoped::Scoped;
use super::hot::Hot;
use super::isolation::Isolation;
use crate::rule::{IsolationRule, RuleId};
use crate::sync::AtomicU64;

/// What rules that are off were about when they decided: their live state waits here for them to be on again.
///
/// That of windows, throttles and warm-ups over the resource's own calls waits in its [`Flow`], because it has to keep up
/// with what passes. An isolation waits only where none is on, because all of a resource share one count.
#[derive(Debug, Default)]
pub(super) struct Parked {
    pub(super) breakers: Box<[Breaker]>,
    pub(super) isolation: Option<Isolation>,
    pub(super) hot: Box<[Hot]>,
    pub(super) scoped: Scoped,
}

impl Parked {
    pub(super) fn is_empty(&self) -> bool {
        self.breakers.is_empty() && self.isolation.is_none() && self.hot.is_empty() && self.scoped.is_empty()
    }
}

/// Where the rules of a new plan find their live state.
///
/// A rule looks for its id in the plan before, at work or off, and then in `others`. Each piece of state is taken over by one
/// rule only: a rule in shadow is to touch no word that an enforced one decides on.
pub(super) struct Past<'a> {
    pub(super) plan: &'a Plan,
    /// Plans in which a rule had another role, with the total that they decide on.
    pub(super) others: Vec<(&'a Plan, &'a AtomicU64)>,
    /// Whether the count of an isolation may be taken over from those.
    pub(super) takes_permits: bool,
}

impl<'a> Past<'a> {
    fn plans(&self) -> impl Iterator<Item = &'a Plan> {
        once(self.plan).chain(self.others.iter().map(|(plan, _)| *plan))
    }

    pub(super) fn breaker(&self, id: &RuleId) -> Option<&'a Breaker> {
        let mut all = self.plans().flat_map(|plan| {
            let parked = plan.parked().map_or(&[][..], |parked| &parked.breakers);
            plan.breakers.iter().chain(parked)
        });
        all.find(|breaker| breaker.id() == id)
    }

    pub(super) fn hot(&self, id: &RuleId) -> Option<&'a Hot> {
        let mut all = self.plans().flat_map(|plan| {
            let parked = plan.parked().map_or(&[][..], |parked| &parked.hot);
            plan.hot().iter().chain(parked)
        });
        all.find(|hot| hot.id() == id)
    }

    /// Whose count the isolation of these rules goes on with: that of the one at work; else that of a rule among them that had
    /// another role, which knows the calls that run; else that of one that was off. All of a resource share one count, so of
    /// several that know calls the one with the most in flight is taken.
    pub(super) fn isolation(&self, rules: &[(RuleId, IsolationRule)]) -> Option<&'a Isolation> {
        let parked = |plan: &'a Plan| plan.parked().and_then(|parked| parked.isolation.as_ref());
        let others = || self.others.iter().filter(|_| self.takes_permits).map(|(plan, _)| *plan);
        let known = || {
            let known = others().filter_map(Plan::isolation);
            known
                .filter(|isolation| isolation.has_any_of(rules))
                .max_by_key(|isolation| isolation.in_flight())
        };
        let waiting = || parked(self.plan).or_else(|| others().find_map(Plan::isolation));
        self.plan.isolation().or_else(known).or_else(waiting).or_else(|| others().find_map(parked))
    }

    pub(super) fn scoped(&self) -> impl Iterator<Item = &'a Scoped> {
        self.plans()
            .filter_map(|plan| plan.extras.as_deref())
            .flat_map(|extras| [&extras.scoped, &extras.parked.scoped])
    }

    /// The flow of the plan before, and those of the others with their totals.
    pub(super) fn flows(&self) -> (&'a Flow, Vec<(&'a Flow, &'a AtomicU64)>) {
        (&self.plan.flow, self.others.iter().map(|(plan, total)| (&plan.flow, *total)).collect())
    }
}
