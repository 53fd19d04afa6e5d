//! Breakers moved by hand.

use std::sync::Arc;

use crate::check::breaker::{Breaker, Moved};
use crate::clock::Timestamp;
use crate::entry;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rule::{BreakerState, RuleId};

impl Registry {
    /// The breakers of `resource`, in the order in which calls ask them.
    ///
    /// Rules of an attribute are attached by the first call of its function: until then there are none of them here.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{BreakerRule, BreakerState, Registry, RuleSet};
    ///
    /// let registry = Registry::new();
    /// registry.load(RuleSet::new().breaker("orders.create", BreakerRule::error_ratio(0.5)?))?;
    /// let breaker = &registry.breakers("orders.create")[0];
    ///
    /// breaker.force_open();
    /// let blocked = registry.enter("orders.create").unwrap_err();
    /// assert_eq!(blocked.to_string(), "`orders.create` is blocked: its circuit breaker is forced open");
    ///
    /// breaker.reset();
    /// assert_eq!(breaker.state(), Some(BreakerState::Closed));
    /// assert!(registry.enter("orders.create").is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn breakers(&self, resource: &str) -> Vec<BreakerHandle> {
        let Some(resource) = self.find(resource) else { return vec![] };
        let handle =
            |breaker: &Breaker| BreakerHandle { resource: Arc::clone(&resource), rule: breaker.id().clone() };
        resource.plan().breakers().iter().map(handle).collect()
    }
}

/// A breaker, to be moved by hand.
///
/// What a hand has put stays until it is reset, also when rules are reloaded, whatever of the rule has changed, as long
/// as a rule of the kind stands in the same place. It goes with the rule when that is taken away; while the rule is off, or in shadow, it
/// waits there.
///
/// Every change is told to the observers as any other, and [says so](crate::Transition::is_forced). What calls come to
/// that were let through before it moves nothing.
#[derive(Clone, Debug)]
pub struct BreakerHandle {
    resource: Arc<Resource>,
    rule: RuleId,
}

impl BreakerHandle {
    /// The resource that the breaker guards.
    pub fn resource(&self) -> &str {
        self.resource.name()
    }

    /// The breaker's rule.
    pub fn rule(&self) -> &RuleId {
        &self.rule
    }

    /// Where the breaker stands; none if its rule stands no longer, or is off.
    pub fn state(&self) -> Option<BreakerState> {
        self.find(self.resource.plan().breakers()).map(Breaker::state)
    }

    /// Blocks every call until the breaker is [reset](Self::reset): no probe is let through, and no time to come back
    /// is named. False if the rule stands no longer.
    pub fn force_open(&self) -> bool {
        self.act(|breaker, _| breaker.force_open())
    }

    /// Lets every call through until the breaker is [reset](Self::reset), and goes on counting how they end. False if
    /// the rule stands no longer.
    pub fn force_closed(&self) -> bool {
        self.act(|breaker, _| breaker.force_closed())
    }

    /// Lets every call through until the breaker is [reset](Self::reset), and counts none of them, as if the rule were
    /// off. False if the rule stands no longer.
    pub fn disable(&self) -> bool {
        self.act(|breaker, _| breaker.disable())
    }

    /// Closes the breaker, wherever it stands, and has it forget what it counted. False if the rule stands no longer.
    pub fn reset(&self) -> bool {
        self.act(Breaker::reset)
    }

    fn act(&self, act: impl FnOnce(&Breaker, Timestamp) -> Option<Moved>) -> bool {
        let now = self.resource.environment().now();
        // No rules are loaded meanwhile: the next plan takes over what is done to this one.
        let done =
            self.resource.with_plan(|plan| self.find(plan.breakers()).map(|breaker| act(breaker, now)));
        if let Some(Some(moved)) = done {
            entry::tell_transition(&self.resource, &self.rule, moved, now);
        }
        done.is_some()
    }

    fn find<'a>(&self, breakers: &'a [Breaker]) -> Option<&'a Breaker> {
        breakers.iter().find(|breaker| *breaker.id() == self.rule)
    }
}
