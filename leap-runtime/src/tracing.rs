//! An observer that speaks through `tracing`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::blocked::Blocked;
use crate::clock::Timestamp;
use crate::event::{ContainedPanic, LoadReport, Observer, Transition};

/// One `tracing` event per transition, load and contained panic; blocks at most once per second and resource, with
/// the number of blocks since the last such event.
///
/// Transitions to open, blocks and panics are warnings, everything else is information. The target is `leap`.
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
    /// What was said of each resource that was blocked: only those have an entry.
    blocks: Mutex<HashMap<String, Blocks>>,
}

#[derive(Debug)]
struct Blocks {
    told_at: Timestamp,
    since: u64,
}

impl TracingObserver {
    /// The number of blocks to tell of now, if it is time to.
    fn count(&self, blocked: &Blocked) -> Option<u64> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        match blocks.get_mut(blocked.resource()) {
            None => {
                blocks.insert(blocked.resource().to_owned(), Blocks { told_at: blocked.at(), since: 0 });
                Some(1)
            }
            Some(known) => {
                known.since += 1;
                let is_due = blocked.at().since(known.told_at) >= Duration::from_secs(1);
                is_due.then(|| {
                    known.told_at = blocked.at();
                    std::mem::take(&mut known.since)
                })
            }
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
        ::tracing::info!(target: "leap", added, changed, kept, removed, "{report}");
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
