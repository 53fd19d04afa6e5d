//! Arguments that are on their way.

use leap_runtime::{Blocked, guarded};

#[guarded(
    inbound,
    origin = caller::<A, B>(),
    entrance = "web",
    priority,
    behavior = warm_up,
    warm_up_ms = 10,
    cold_factor = 3,
    max_wait_ms = 3,
    burst = 3,
    associated = "b",
    scope = cluster,
    on_empty = block,
    on_fail = pass,
    queue_ms = 3,
    window_calls = 3,
    open_max_ms = 3,
    recovery = ramp,
    hot(key = sku, qps = 3),
    allow("a"),
    deny("b"),
    fallback_on = error,
    span,
    skip,
    mode = shadow
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
