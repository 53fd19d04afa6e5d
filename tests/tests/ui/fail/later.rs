//! Arguments that are on their way.

use leap_runtime::{Blocked, guarded};

#[guarded(
    scope = cluster::<A, B>(),
    on_empty = block,
    on_fail = pass,
    rate(limit = 1, per_ms = 1, scope = cluster, on_empty = block, on_fail = pass),
    fallback_on = error,
    span,
    skip
)]
fn all(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(fallback = |_sku, _blocked| 0)]
fn closure(sku: &str) -> usize {
    sku.len()
}

#[guarded(fallback = zero(sku))]
fn call(sku: &str) -> usize {
    sku.len()
}

fn main() {
    all("a").unwrap();
}
