//! What is printed while the shop is open.

use std::io::{self, Write};
use std::sync::mpsc;

use leap_runtime::{BreakerState, Observer, Timestamp, Transition};

use crate::check::has_recovered;
use crate::shop::Shop;
use crate::tally::Answer;

/// The resources with a breaker.
const BREAKERS: [&str; 2] = ["prices.quote", "payments.charge"];

/// A breaker changed its state.
#[derive(Debug)]
pub(crate) struct Change {
    resource: String,
    at: Timestamp,
    from: BreakerState,
    to: BreakerState,
}

/// Sends every transition to the journal: an observer is called in the middle of a call, and should be quick.
pub(crate) struct Transitions(pub(crate) mpsc::Sender<Change>);

impl Observer for Transitions {
    fn on_transition(&self, transition: &Transition<'_>) {
        let change = Change {
            resource: transition.resource().to_owned(),
            at: transition.at(),
            from: transition.from(),
            to: transition.to(),
        };
        // The journal is the last to go; after it nobody wants to know.
        let _ = self.0.send(change);
    }
}

/// Prints what has happened since it last did.
pub(crate) struct Journal {
    shop: Shop,
    changes: mpsc::Receiver<Change>,
    told: Vec<Change>,
    calls: u64,
    gone: u64,
}

impl Journal {
    pub(crate) fn new(shop: Shop, changes: mpsc::Receiver<Change>) -> Self {
        Self { shop, changes, told: Vec::new(), calls: 0, gone: 0 }
    }

    pub(crate) fn say(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout(), "{text}")
    }
}
