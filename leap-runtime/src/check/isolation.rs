//! Limits on calls in flight, at work.
//!
//! Permits are taken and given back by one read-modify-write of a word, as long as nobody waits for them. Those who wait
//! stand in a queue ([`queue`]); a call that is refused may join it with a [`Ticket`].

mod queue;

use std::sync::Arc;
use std::time::Duration;

use self::queue::Permits;
use crate::blocked::{By, Refusal};
use crate::clock::Timestamp;
use crate::rule::{IsolationRule, RuleId};

pub(crate) use self::queue::{Ticket, ToWake};

/// The isolation rules of a resource: one count of the permits in flight, which the smallest limit decides on.
///
/// The count and the queue live as long as any isolation rule stands, over reloads. Calls that were already running
/// when the first one was loaded are not in it.
#[derive(Debug)]
pub(crate) struct Isolation {
    rules: Box<[(RuleId, IsolationRule)]>,
    limit: u32,
    permits: Arc<Permits>,
}

impl Isolation {
    /// None without rules. To be [settled](Self::settle) once it is published.
    pub(crate) fn new(rules: Vec<(RuleId, IsolationRule)>, previous: Option<&Self>) -> Option<Self> {
        let limit = rules.iter().map(|(_, rule)| rule.max_concurrency()).min()?;
        let permits = match previous {
            Some(previous) => Arc::clone(&previous.permits),
            None => Arc::new(Permits::new(limit)),
        };
        Some(Self { rules: rules.into(), limit, permits })
    }

    /// Has the queue go by `current`, which is published now in place of `previous`: waiting calls get the permits that
    /// a raised limit makes room for, and where no rule is left they all pass.
    ///
    /// To be called in the order in which plans are published.
    pub(crate) fn settle(current: Option<&Self>, previous: Option<&Self>) -> ToWake {
        match (current, previous) {
            (Some(current), _) => current.permits.set_limit(current.limit),
            (None, Some(previous)) => previous.permits.set_limit(u32::MAX),
            (None, None) => ToWake::default(),
        }
    }

    /// Takes `n` permits, to be given back by [`give_back`](Self::give_back). Nobody who waits is overtaken.
    ///
    /// Looking and taking are one compare-exchange, so no two calls can take the last permit.
    #[inline]
    pub(crate) fn take(&self, n: u32) -> Result<(), Refusal<'_>> {
        self.permits.take(n, self.limit).map_err(|seen| self.refusal(seen, n))
    }

    /// As [`take`](Self::take), but takes nothing.
    pub(crate) fn peek(&self, n: u32) -> Result<(), Refusal<'_>> {
        match self.permits.now() {
            seen if seen.fits(n, self.limit) => Ok(()),
            seen => Err(self.refusal(seen, n)),
        }
    }

    /// Whether one of these rules was here already.
    pub(super) fn has_any_of(&self, rules: &[(RuleId, IsolationRule)]) -> bool {
        rules.iter().any(|(id, _)| self.has(id))
    }

    /// Whether that rule is one of these.
    pub(super) fn has(&self, id: &RuleId) -> bool {
        self.rules.iter().any(|(other, _)| other == id)
    }

    /// Whether calls may be let wait instead of being refused.
    pub(crate) fn may_queue(&self) -> bool {
        self.rules.iter().any(|(_, rule)| !rule.queue_time().is_zero())
    }

    /// A place in the queue for a call that was refused `n` permits; none if it is [not to wait](Self::queue_time). If permits
    /// have come back meanwhile, and nobody waits before it, it has them at once.
    pub(crate) fn queue(&self, n: u32, now: Timestamp) -> Option<Ticket> {
        let time = self.queue_time(n)?;
        Some(self.permits.queue(n, now.saturating_add(time)))
    }

    /// How long a call that was refused `n` permits may wait for them: for the shortest time of the rules that refuse it. None
    /// if it is not to wait.
    pub(crate) fn queue_time(&self, n: u32) -> Option<Duration> {
        let seen = self.permits.now();
        let refuses =
            |rule: &IsolationRule| self.refuses(rule, seen, n) || rule.max_concurrency() == self.limit;
        let rules = self.rules.iter().map(|(_, rule)| rule).filter(|rule| refuses(rule));
        let time = rules.map(IsolationRule::queue_time).min()?;
        (!time.is_zero() && n <= self.limit).then_some(time)
    }

    /// Has the caller hold the permits that its ticket was granted, as if it had taken them here.
    ///
    /// It takes anew if the ticket is for the permits of another time: if all isolation rules went away, and others came,
    /// while it waited.
    pub(crate) fn redeem(&self, ticket: Ticket) -> Result<(), Refusal<'_>> {
        let n = ticket.permits();
        if ticket.is_for(&self.permits) && ticket.claim() { Ok(()) } else { self.take(n) }
    }

    #[inline]
    pub(crate) fn give_back(&self, n: u32) {
        self.permits.give_back(n);
    }

    /// The permits that calls hold, those included that were granted to a waiting call which has not gone on yet.
    pub(crate) fn in_flight(&self) -> u32 {
        self.permits.now().in_flight()
    }

    /// The calls that wait for permits.
    pub(crate) fn queued(&self) -> u32 {
        self.permits.now().queued()
    }

    fn refuses(&self, rule: &IsolationRule, seen: queue::Word, n: u32) -> bool {
        let is_full = seen.in_flight().checked_add(n).is_none_or(|taken| taken > rule.max_concurrency());
        // Those who wait do so for the smallest limit.
        is_full || (seen.queued() > 0 && rule.max_concurrency() == self.limit)
    }

    #[inline]
    fn refusal(&self, seen: queue::Word, n: u32) -> Refusal<'_> {
        let (rule, limit) = self
            .rules
            .iter()
            .find(|(_, rule)| self.refuses(rule, seen, n))
            .map(|(id, rule)| (id, rule.max_concurrency()))
            .expect("the smallest limit is one of them and refused");
        Refusal { rule, by: By::Isolation { limit, in_flight: seen.in_flight() }, until: None }
    }
}

#[cfg(all(test, leap_loom))]
mod models;
#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
