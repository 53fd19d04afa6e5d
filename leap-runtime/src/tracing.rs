//! An observer that speaks through `tracing`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::blocked::Blocked;
use crate::clock::Timestamp;
use crate::event::{ContainedPanic, LoadReport, Observer, Overflow, Switched, Transition};
use crate::history::RuleEvent;

/// One `tracing` event per transition, load, switch, contained panic, and name without room; blocks at most once per second and resource, with
/// the number of blocks since the last such event.
///
/// Transitions to open, blocks, switches, names without room and panics are warnings, everything else is information. The target is `leap`.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Registry, TracingObserver};
///
/// let registry = Registry::builder().observer(TracingObserver::default()).build();
/// # drop(registry);
/// ```
#[derive(Default)]
pub struct TracingObserver {
    known: Mutex<Known>,
}

/// What was said of each resource that was blocked: only those have an entry.
#[derive(Debug, Default)]
struct Known {
    blocks: HashMap<String, Blocks>,
    /// With so many, those are forgotten of which nothing was said for a minute: twice as many as were left the last time.
    most: usize,
}

/// So many may always be known.
const ALWAYS: usize = 10_000;
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Blocks {
    told_at: Timestamp,
    since: u64,
}

impl TracingObserver {
    /// The number of blocks to tell of now, if it is time to.
    fn count(&self, blocked: &Blocked) -> Option<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.blocks.get_mut(blocked.resource()) {
            None => {
                known.forget(blocked.at());
                let blocks = Blocks { told_at: blocked.at(), since: 0 };
                known.blocks.insert(blocked.resource().to_owned(), blocks);
                Some(1)
            }
            Some(blocks) => {
                blocks.since += 1;
                let is_due = blocked.at().since(blocks.told_at) >= Duration::from_secs(1);
                is_due.then(|| {
                    blocks.told_at = blocked.at();
                    std::mem::take(&mut blocks.since)
                })
            }
        }
    }
}

impl Known {
    fn forget(&mut self, now: Timestamp) {
        if self.blocks.len() >= self.most.max(ALWAYS) {
            self.blocks.retain(|_, blocks| now.since(blocks.told_at) < FORGOTTEN_AFTER);
            self.most = self.blocks.len() * 2;
        }
    }
}

impl Observer for TracingObserver {
    fn on_block(&self, blocked: &Blocked) {
        if let Some(count) = self.count(blocked) {
            ::tracing::warn!(
                target: "leap",
                resource = blocked.resource(),
                cause = blocked.cause().name(),
                rule = %blocked.rule(),
                count,
                "{blocked}"
            );
        }
    }

    fn on_transition(&self, transition: &Transition<'_>) {
        use crate::rule::BreakerState::{ForcedOpen, Open};
        let (resource, rule) = (transition.resource(), transition.rule());
        let (from, to) = (transition.from(), transition.to());
        if matches!(to, Open | ForcedOpen) {
            ::tracing::warn!(target: "leap", resource, %rule, %from, %to, "breaker opened");
        } else {
            ::tracing::info!(target: "leap", resource, %rule, %from, %to, "breaker is {to}");
        }
    }

    fn on_load(&self, report: &LoadReport) {
        let (added, changed, kept, removed) =
            (report.added(), report.changed(), report.kept(), report.removed());
        let version = report.version();
        ::tracing::info!(
            target: "leap",
            version,
            added,
            changed,
            kept,
            removed,
            "rules: {added} added, {changed} changed, {kept} kept, {removed} removed"
        );
        for change in report.changes() {
            ::tracing::debug!(target: "leap", version, source = change.source(), "rule {change}");
        }
        for note in report.notes() {
            ::tracing::warn!(target: "leap", version, "{note}");
        }
    }

    fn on_reject(&self, rejected: &RuleEvent) {
        ::tracing::warn!(target: "leap", version = rejected.version(), "rules: {rejected}");
    }

    fn on_overflow(&self, overflow: &Overflow<'_>) {
        let (shared, max_resources) = (overflow.shared(), overflow.max_resources());
        ::tracing::warn!(target: "leap", shared, max_resources, "{overflow}");
    }

    fn on_switch(&self, switched: &Switched<'_>) {
        let (resource, is_on) = (switched.resource(), switched.is_on());
        ::tracing::warn!(target: "leap", resource, is_on, "{switched}");
    }

    fn on_panic(&self, panic: &ContainedPanic<'_>) {
        let (place, resource) = (panic.place(), panic.resource());
        ::tracing::warn!(target: "leap", place, resource, "a panic was contained: {}", panic.message());
    }
}

impl fmt::Debug for TracingObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracingObserver").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn of_many_resources_those_are_forgotten_of_which_nothing_was_said_for_a_minute() {
        let mut known = Known::default();
        let mut most = 0;
        for i in 0..200_000_u64 {
            // 1 000 a second.
            let told_at = Timestamp::from_millis(i);
            known.forget(told_at);
            known.blocks.insert(i.to_string(), Blocks { told_at, since: 0 });
            most = most.max(known.blocks.len());
            let kept = i.saturating_sub(59_999);
            assert!(known.blocks.contains_key(&kept.to_string()), "{i}");
        }
        assert!(most <= 120_001, "{most}: two minutes' worth");
    }
}
