//! What is printed while the shop is open.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, mpsc};

use leap_runtime::{BreakerState, Observer, Registry, Timestamp, Transition};
use tokio::time::Instant;

use crate::check::has_recovered;
use crate::tally::{Answer, Tally};

/// The resources with a breaker.
const BREAKERS: [&str; 2] = ["prices.quote", "payments.charge"];

/// A breaker changed its state.
#[derive(Debug)]
struct Change {
    resource: String,
    at: Timestamp,
    from: BreakerState,
    to: BreakerState,
}

/// Sends every transition to the journal: an observer is called in the middle of a call, and should be quick.
struct Transitions(mpsc::Sender<Change>);

impl Observer for Transitions {
    fn on_transition(&self, transition: &Transition<'_>) {
        let change = Change {
            resource: transition.resource().to_owned(),
            at: transition.at(),
            from: transition.from(),
            to: transition.to(),
        };
        // Without a journal nobody wants to know.
        let _ = self.0.send(change);
    }
}

/// Prints what has happened since it last did.
#[derive(Debug)]
pub(crate) struct Journal {
    registry: Registry,
    tally: Arc<Tally>,
    changes: mpsc::Receiver<Change>,
    opened: Instant,
    told: Vec<Change>,
    told_calls: u64,
    told_gone: u64,
}

impl Journal {
    pub(crate) fn open(registry: Registry, tally: Arc<Tally>) -> Self {
        let (sender, changes) = mpsc::channel();
        registry.observe(Transitions(sender));
        Self {
            registry,
            tally,
            changes,
            opened: Instant::now(),
            told: Vec::new(),
            told_calls: 0,
            told_gone: 0,
        }
    }

    /// Tells what changed and who went away, and prints the last second of every resource; nothing if nobody called.
    pub(crate) fn tell(&mut self) -> io::Result<()> {
        let traffic = |traffic: &leap_runtime::Traffic| traffic.passed() + traffic.blocked();
        let calls = self.registry.resources().map(|stats| traffic(stats.totals())).sum();
        if calls == self.told_calls {
            return Ok(());
        }
        self.told_calls = calls;

        say(format_args!("\nafter {:.0} s", self.opened.elapsed().as_secs_f64()))?;
        for change in self.changes.try_iter() {
            let Change { resource, at, from, to } = &change;
            let seconds = at.since(Timestamp::ZERO).as_secs_f64();
            say(format_args!("  breaker of {resource}: {from} -> {to} at {seconds:.2} s"))?;
            self.told.push(change);
        }
        let gone = self.tally.of(Answer::Gone);
        if gone > self.told_gone {
            say(format_args!("  clients that went away before their answer: {}", gone - self.told_gone))?;
            self.told_gone = gone;
        }
        say(self.registry.table())
    }

    /// The breakers that have not opened, been probed and closed again, in a line each.
    pub(crate) fn unrecovered(&self) -> impl Iterator<Item = String> {
        let has_recovered = |resource| {
            let changes = self.told.iter().filter(|change| change.resource == resource);
            has_recovered(changes.map(|change| (change.from, change.to)))
        };
        BREAKERS.into_iter().filter(move |resource| !has_recovered(*resource)).map(|resource| {
            format!(
                "{resource}: its breaker should have gone closed -> open -> half-open -> closed, and has not"
            )
        })
    }
}

/// Prints a line, or several.
pub(crate) fn say(text: impl fmt::Display) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}
