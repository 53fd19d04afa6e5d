//! Arguments that are on their way.

use leap_runtime::{Blocked, guarded};

#[guarded(
    scope = cluster::<A, B>(),
    on_empty = block,
    on_fail = pass,
    rate(limit = 1, per_ms = 1, scope = cluster, on_empty = block, on_fail = pass),
    span
)]
fn all(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

fn main() {
    all("a").unwrap();
}
