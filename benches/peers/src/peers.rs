//! What is measured, a module for each peer.
//!
//! Every peer guards the same function as leap does, in a function of its own that is not inlined, as people write it:
//! what it needs is handed to it by reference. Limits stand at a billion calls per second where calls are to pass.

pub(crate) mod failsafe;
pub(crate) mod glue;
pub(crate) mod governor;
pub(crate) mod leaky_bucket;
pub(crate) mod leap;
pub(crate) mod metrics;
pub(crate) mod ratelimit;
pub(crate) mod recloser;
pub(crate) mod sentinel;
pub(crate) mod tower;
pub(crate) mod tracing;

use crate::row::{Part, Row};

/// The rows in the order of the table, ready to be called.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = [
        leap::rows(),
        sentinel::rows(),
        glue::rows(),
        governor::rows(),
        ratelimit::rows(),
        leaky_bucket::rows(),
        failsafe::rows(),
        recloser::rows(),
        tower::rows(),
        metrics::rows(),
        tracing::rows(),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    rows.sort_by_key(|row| Part::ALL.iter().position(|part| *part == row.part));
    rows
}

/// What a bare limiter leaves out.
pub(crate) const LIMITER_LACKS: &str =
    "no numbers, no breaker, no response times, no name to change its rule by";
/// What one leaves out whose window does not slide.
pub(crate) const OTHER_LIMITER_LACKS: &str = "no numbers, no breaker, no response times, and no sliding window: up to twice the limit may pass within a period";
/// What a bare breaker leaves out.
pub(crate) const BREAKER_LACKS: &str =
    "no limit, no numbers to read, no slow calls, no name to change its rule by";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use leap_benches::measure::Row as _;

    use super::all;

    #[test]
    fn once_warm_every_call_is_answered_as_its_row_says() {
        let rows = all();
        // Limits that are to be reached are reached by as many.
        for row in &rows {
            let _ = [0, 1].map(|lane| row.calls(lane, 1_500));
        }
        let odd = |row: &super::Row| [0, 1].map(|lane| row.calls(lane, 100));
        let odd: Vec<_> =
            rows.iter().map(|row| (row.name, odd(row))).filter(|(_, odd)| *odd != [0, 0]).collect();
        assert_eq!(odd, []);
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let rows = all();
        let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len());
    }
}
