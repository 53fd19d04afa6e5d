//! Limits on calls in flight, at work.

use std::sync::Arc;

use crate::blocked::{By, Refusal};
use crate::rule::{IsolationRule, RuleId};
use crate::sync::{AtomicU32, Ordering};

/// The isolation rules of a resource: one count of the permits in flight, which the smallest limit decides on.
///
/// The count lives as long as any isolation rule stands, over reloads. Calls that were already running when the first
/// one was loaded are not in it.
#[derive(Debug)]
pub(crate) struct Isolation {
    rules: Box<[(RuleId, IsolationRule)]>,
    limit: u32,
    in_flight: Arc<AtomicU32>,
}

impl Isolation {
    /// None without rules.
    pub(crate) fn new(rules: Vec<(RuleId, IsolationRule)>, previous: Option<&Self>) -> Option<Self> {
        let limit = rules.iter().map(|(_, rule)| rule.max_concurrency()).min()?;
        let in_flight = previous.map_or_else(Arc::default, |previous| Arc::clone(&previous.in_flight));
        Some(Self { rules: rules.into(), limit, in_flight })
    }

    /// Takes `n` permits, to be given back by [`give_back`](Self::give_back).
    ///
    /// Looking and taking are one compare-exchange, so no two calls can take the last permit.
    #[inline]
    pub(crate) fn take(&self, n: u32) -> Result<(), Refusal<'_>> {
        // Acquire: what the calls that gave these permits back counted before is seen by the one that takes them, so
        // the peak in flight cannot come out above the limit.
        let taken = self.in_flight.fetch_update(Ordering::Acquire, Ordering::Relaxed, |held| {
            held.checked_add(n).filter(|taken| *taken <= self.limit)
        });
        taken.map(drop).map_err(|held| self.refusal(held, n))
    }

    /// As [`take`](Self::take), but takes nothing.
    pub(crate) fn peek(&self, n: u32) -> Result<(), Refusal<'_>> {
        let held = self.in_flight();
        match held.checked_add(n) {
            Some(taken) if taken <= self.limit => Ok(()),
            _ => Err(self.refusal(held, n)),
        }
    }

    #[inline]
    pub(crate) fn give_back(&self, n: u32) {
        // Release: see `take`.
        self.in_flight.fetch_sub(n, Ordering::Release);
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    #[inline]
    fn refusal(&self, held: u32, n: u32) -> Refusal<'_> {
        let is_full = |limit| held.checked_add(n).is_none_or(|taken| taken > limit);
        let (rule, limit) = self
            .rules
            .iter()
            .map(|(id, rule)| (id, rule.max_concurrency()))
            .find(|(_, limit)| is_full(*limit))
            .expect("the smallest limit is one of them and refused");
        Refusal { rule, by: By::Isolation { limit, in_flight: held }, until: None }
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;
    use crate::rule::RuleKind;

    fn isolation(limits: &[u32]) -> Isolation {
        let rules = limits.iter().enumerate().map(|(position, limit)| {
            (RuleId::new(None, RuleKind::Isolation, position), IsolationRule::new(*limit))
        });
        Isolation::new(rules.collect(), None).unwrap()
    }

    #[test]
    fn the_last_permit_passes_and_the_next_is_refused() {
        let isolation = isolation(&[10]);
        assert!(isolation.take(6).is_ok());
        assert!(isolation.take(5).is_err());
        assert!(isolation.take(4).is_ok());
        assert!(isolation.take(1).is_err());
        isolation.give_back(1);
        assert!(isolation.take(1).is_ok());
        assert!(isolation.take(u32::MAX).is_err());
    }

    #[test]
    fn the_first_rule_that_refuses_is_named() {
        let isolation = isolation(&[5, 3, 2]);
        assert!(isolation.take(2).is_ok());
        assert_eq!(isolation.peek(1).unwrap_err().rule.position(), 2);
        assert_eq!(isolation.peek(2).unwrap_err().rule.position(), 1);
        assert_eq!(isolation.peek(9).unwrap_err().rule.position(), 0);
    }
}

#[cfg(all(test, leap_loom))]
mod models {
    use super::*;
    use crate::rule::RuleKind;

    #[test]
    fn never_more_than_the_limit_in_flight_and_every_permit_comes_back() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let rule = (RuleId::new(None, RuleKind::Isolation, 0), IsolationRule::new(1));
            let isolation = loom::sync::Arc::new(Isolation::new(vec![rule], None).unwrap());
            let inside = loom::sync::Arc::new(AtomicU32::new(0));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (isolation, inside) = (isolation.clone(), inside.clone());
                    loom::thread::spawn(move || {
                        if isolation.take(1).is_ok() {
                            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two at once");
                            inside.fetch_sub(1, Ordering::Relaxed);
                            isolation.give_back(1);
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(isolation.in_flight(), 0);
            assert!(isolation.take(1).is_ok());
        });
    }
}
