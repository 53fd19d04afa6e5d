//! What the calls of each row allocate.

use leap_benches::measure;

use crate::rows::Row;

/// What the calls of a row have allocated.
#[derive(Debug)]
pub(crate) struct Allocations {
    pub(crate) name: &'static str,
    pub(crate) n: u64,
    pub(crate) at_most: u64,
}

impl Allocations {
    pub(crate) fn is_over(&self) -> bool {
        self.n > self.at_most
    }
}

/// Of [`ALLOCATION_CALLS`](measure::ALLOCATION_CALLS) calls of each row.
pub(crate) fn all(rows: &[&Row]) -> Vec<Allocations> {
    let of =
        |row: &&Row| Allocations { name: row.name, n: measure::allocations(*row), at_most: row.allocations };
    rows.iter().map(of).collect()
}
