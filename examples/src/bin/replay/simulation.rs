//! The guarded function, and the virtual time that it is called on.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use leap_runtime::{
    Blocked, BreakerState, Cause, Clock, InRegistry, LoadError, ManualClock, Observer, Registry, RuleSet,
    Timestamp, Transition, guarded,
};

use crate::trace::Call;

pub(crate) const RESOURCE: &str = "llm.code";

/// Answers a prompt: runs until `end`, if it is let through.
#[guarded(resource = RESOURCE)]
async fn answer(clock: ManualClock, end: Timestamp) -> Result<(), Blocked> {
    poll_fn(|_| if clock.now() < end { Poll::Pending } else { Poll::Ready(Ok(())) }).await
}

/// What became of the calls.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The calls that passed, in the order of their times.
    pub(crate) passed: Vec<Call>,
    /// How many calls were blocked by each kind of rule.
    pub(crate) blocked: BTreeMap<Cause, usize>,
    pub(crate) transitions: Vec<Change>,
}

/// A breaker changed its state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at_ms: u64,
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
}

/// Sends every transition to whoever holds the other end.
struct Transitions(mpsc::Sender<Change>);

impl Observer for Transitions {
    fn on_transition(&self, transition: &Transition<'_>) {
        let change =
            Change { at_ms: transition.at().as_millis(), from: transition.from(), to: transition.to() };
        // Nobody listens any more once the replay is over.
        let _ = self.0.send(change);
    }
}

/// Calls [`answer`] at the time of every call, and lets it go on when its time is over.
///
/// A call that ends at the moment in which another arrives has ended before.
pub(crate) fn replay(calls: &[Call], rules: RuleSet) -> Result<Outcome, LoadError> {
    let clock = ManualClock::new();
    let (sender, changes) = mpsc::channel();
    let registry = Registry::builder().clock(clock.clone()).observer(Transitions(sender)).build();
    registry.load(rules)?;

    let mut passed = Vec::new();
    let mut blocked = BTreeMap::new();
    let mut running = Running::default();
    for (number, call) in calls.iter().enumerate() {
        let start = Timestamp::from_millis(call.at_ms);
        let end = Timestamp::from_millis(call.at_ms.saturating_add(call.rt_ms));
        running.end_until(start, &clock);
        clock.set(start);

        let mut answer = Box::pin(answer(clock.clone(), end).in_registry(&registry));
        match poll(&mut answer) {
            Poll::Ready(Err(refusal)) => *blocked.entry(refusal.cause()).or_default() += 1,
            Poll::Ready(Ok(())) => passed.push(*call),
            Poll::Pending => {
                passed.push(*call);
                running.0.insert((end, number), answer);
            }
        }
    }
    running.end_until(Timestamp::from_nanos(u64::MAX), &clock);

    Ok(Outcome { passed, blocked, transitions: changes.try_iter().collect() })
}

/// The calls that have not ended, by the time when they will and then in the order in which they came.
#[derive(Default)]
struct Running(BTreeMap<(Timestamp, usize), Answer>);

type Answer = Pin<Box<dyn Future<Output = Result<(), Blocked>>>>;

impl Running {
    /// Ends what ends until `now`, each call at its own time.
    fn end_until(&mut self, now: Timestamp, clock: &ManualClock) {
        while let Some(next) = self.0.first_entry().filter(|next| next.key().0 <= now) {
            let ((end, _), mut answer) = next.remove_entry();
            clock.set(end);
            let ended = poll(&mut answer);
            debug_assert!(matches!(ended, Poll::Ready(Ok(()))), "a call that passed ends at its time");
        }
    }
}

/// Polls once. Nobody has to be woken: whoever sets the clock polls again.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leap_runtime::{BreakerRule, IsolationRule};

    use super::*;

    #[test]
    fn calls_overlap_until_they_end_and_an_end_comes_before_an_arrival_of_the_same_moment() {
        let call = |(at_ms, rt_ms)| Call { at_ms, rt_ms };
        let calls = [(0, 10), (9, 1), (10, 5), (10, 0), (15, 0), (15, 1)].map(call);
        let outcome = replay(&calls, RuleSet::new().isolation(RESOURCE, IsolationRule::new(1))).unwrap();

        assert_eq!(outcome.passed, [(0, 10), (10, 5), (15, 0), (15, 1)].map(call));
        assert_eq!(outcome.blocked, BTreeMap::from([(Cause::Isolation, 2)]));
    }

    #[test]
    fn a_breaker_goes_by_the_response_times_and_by_the_time_of_the_trace() {
        let rule = BreakerRule::slow_ratio(Duration::from_millis(100), 1.0).unwrap();
        let calls: Vec<_> = (0..10).map(|nth| Call { at_ms: nth * 1_000, rt_ms: 101 }).collect();
        let rule = rule.with_window(Duration::from_secs(10), 1).unwrap();
        let outcome = replay(&calls, RuleSet::new().breaker(RESOURCE, rule)).unwrap();

        // The fifth slow call ends at 4.101 s; five seconds later the call at 9 s is still turned away.
        assert_eq!(outcome.passed, calls[..5]);
        assert_eq!(outcome.blocked, BTreeMap::from([(Cause::Breaker, 5)]));
        assert_eq!(
            outcome.transitions,
            [Change { at_ms: 4_101, from: BreakerState::Closed, to: BreakerState::Open }]
        );
    }
}
