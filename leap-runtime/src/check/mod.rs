//! Checks: a resource's rules at work, compiled into one immutable plan.
//!
//! A call goes through a plan in a fixed order: breakers (each may take a probe slot), isolation, windows last. What
//! an earlier check took belongs to the [`Reservation`] until the windows commit; when a later check says no,
//! dropping it gives everything back. Nothing is ever given back to a window. A check never sleeps.

#[allow(dead_code, reason = "used once relations are wired")]
pub(crate) mod authority;
pub(crate) mod breaker;
pub(crate) mod flow;
pub(crate) mod isolation;
#[allow(dead_code, reason = "asked by the plan once calls say their direction")]
pub(crate) mod system;

use self::breaker::{Breaker, Moved};
use self::flow::windows::Windows;
use self::isolation::Isolation;
use crate::blocked::Refusal;
use crate::clock::Timestamp;
use crate::rule::{Mode, Rule, RuleId};
use crate::sync::AtomicU64;

/// What the calls of a resource are decided by, from one load of rules to the next.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    rules: Box<[(RuleId, Rule)]>,
    breakers: Box<[Breaker]>,
    isolation: Option<Isolation>,
    windows: Windows,
}

/// How a completed call is judged by the checks; a call that is not completed gets no verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub(crate) rt_ns: u64,
    pub(crate) exception: bool,
}

impl Plan {
    /// The plan of `rules`, keeping the live state that `previous` has of the same ones.
    pub(crate) fn new(
        rules: Vec<(RuleId, Rule)>,
        previous: &Self,
        passed: &AtomicU64,
        reading: impl Fn() -> Timestamp,
    ) -> Self {
        let now = reading();
        let (mut breakers, mut isolation, mut flow) = (vec![], vec![], vec![]);
        for (id, rule) in rules.iter().filter(|(_, rule)| rule.mode() == Mode::Enforce) {
            match rule {
                Rule::Flow(rule) => flow.push((*id, *rule)),
                Rule::Isolation(rule) => isolation.push((*id, *rule)),
                Rule::Breaker(rule) => {
                    let standing = previous.breakers.iter().find(|breaker| breaker.id() == *id);
                    breakers.push(Breaker::new(*id, *rule, standing, now));
                }
            }
        }
        Self {
            breakers: breakers.into(),
            isolation: Isolation::new(isolation, previous.isolation.as_ref()),
            windows: Windows::new(&flow, &previous.windows, passed, &reading),
            rules: rules.into(),
        }
    }

    /// The rules at work, with those that are switched off.
    pub(crate) fn rules(&self) -> &[(RuleId, Rule)] {
        &self.rules
    }

    pub(crate) fn breakers(&self) -> &[Breaker] {
        &self.breakers
    }

    pub(crate) fn isolation(&self) -> Option<&Isolation> {
        self.isolation.as_ref()
    }

    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Whether an entry has to tell this plan how it ended.
    #[inline]
    pub(crate) fn wants_the_end(&self) -> bool {
        !self.breakers.is_empty() || self.isolation.is_some()
    }

    /// Lets a call of `n` permits through all checks, or none. Returns `passed` as this call left it; `held` is what the
    /// entry holds until its end, `tell` hears of transitions.
    #[inline]
    pub(crate) fn admit(
        &self,
        held: &mut Held,
        passed: &AtomicU64,
        mut now: Timestamp,
        n: u32,
        reading: impl Fn() -> Timestamp,
        mut tell: impl FnMut(RuleId, Moved),
    ) -> Result<u64, Refusal<'_>> {
        let mut reservation = Reservation { plan: self, held, n_breakers: 0, permits: 0 };
        for breaker in &self.breakers {
            let (generation, moved) = breaker.enter(now)?;
            reservation.held.set(reservation.n_breakers, generation, self.breakers.len());
            reservation.n_breakers += 1;
            if let Some(moved) = moved {
                tell(breaker.id(), moved);
                // Whoever was told may have taken its time, and windows go by the present.
                now = reading();
            }
        }
        if let Some(isolation) = &self.isolation {
            isolation.take(n)?;
            reservation.permits = n;
        }
        let admitted = self.windows.admit(passed, now, n.into(), reading);
        if admitted.is_ok() {
            // All checks agreed: what was taken belongs to the entry.
            std::mem::forget(reservation);
        }
        admitted
    }

    /// What a call of `n` permits would be told; takes nothing.
    pub(crate) fn peek(
        &self,
        passed: &AtomicU64,
        now: Timestamp,
        n: u32,
        reading: impl Fn() -> Timestamp,
    ) -> Result<(), Refusal<'_>> {
        self.breakers.iter().try_for_each(|breaker| breaker.peek(now))?;
        self.isolation.iter().try_for_each(|isolation| isolation.peek(n))?;
        self.windows.peek(passed, now, n.into(), reading)
    }

    /// A call of `n` permits that was let through with `held` ended; `completed` is how, if it has a verdict.
    #[inline]
    pub(crate) fn end(
        &self,
        held: &Held,
        n: u32,
        completed: Option<Completed>,
        now: Timestamp,
        mut tell: impl FnMut(RuleId, Moved),
    ) {
        if let Some(isolation) = &self.isolation {
            isolation.give_back(n);
        }
        for (i, breaker) in self.breakers.iter().enumerate() {
            match completed {
                Some(Completed { rt_ns, exception }) => {
                    if let Some(moved) = breaker.end(held.generation(i), rt_ns, exception, now) {
                        tell(breaker.id(), moved);
                    }
                }
                None => breaker.give_back(held.generation(i)),
            }
        }
    }
}

/// Breakers whose generations an entry keeps in itself; more go to the heap.
const INLINE: usize = 3;

/// What an entry holds of its plan: the generation of each breaker that let it through, in the order of the plan.
///
/// The first ones are fields and not an array, so that the compiler can keep them in registers on the way in.
#[derive(Debug, Default)]
pub(crate) struct Held {
    first: u64,
    second: u64,
    third: u64,
    more: Option<Box<[u64]>>,
}

impl Held {
    #[inline]
    fn set(&mut self, i: usize, generation: u64, n_breakers: usize) {
        match i {
            0 => self.first = generation,
            1 => self.second = generation,
            2 => self.third = generation,
            // Only this field's address: see above.
            _ => set_more(&mut self.more, i - INLINE, generation, n_breakers - INLINE),
        }
    }

    #[inline]
    fn generation(&self, i: usize) -> u64 {
        match i {
            0 => self.first,
            1 => self.second,
            2 => self.third,
            _ => self.more.as_ref().expect("set when the fourth breaker was entered")[i - INLINE],
        }
    }
}

#[cold]
fn set_more(more: &mut Option<Box<[u64]>>, i: usize, generation: u64, n: usize) {
    more.get_or_insert_with(|| vec![0; n].into())[i] = generation;
}

/// What a call under decision has taken so far. Dropping it gives that back.
struct Reservation<'a> {
    plan: &'a Plan,
    held: &'a mut Held,
    n_breakers: usize,
    permits: u32,
}

impl Drop for Reservation<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(isolation) = &self.plan.isolation
            && self.permits > 0
        {
            isolation.give_back(self.permits);
        }
        for (i, breaker) in self.plan.breakers.iter().take(self.n_breakers).enumerate() {
            breaker.give_back(self.held.generation(i));
        }
    }
}

#[cfg(all(test, not(any(leap_loom, leap_shuttle))))]
mod tests;
