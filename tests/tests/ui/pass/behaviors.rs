//! What becomes of calls above a limit, in and outside of `rate(…)`; limits by literal and by const expression.
#![deny(warnings)]

use leap_runtime::{Blocked, guarded};

const SECOND: u64 = 1_000;
const FACTOR: f32 = 2.5;
const BURST: u32 = 5;
const WRITES: &str = "behaviors.writes";

#[guarded(qps = 10, behavior = reject)]
fn rejects() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 100, behavior = warm_up, warm_up_ms = 10_000, cold_factor = 3, precision = strict, buckets = 10)]
fn warms_up() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 0.5, behavior = throttle, max_wait_ms = 500, burst = 1)]
fn throttles() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 50, behavior = throttle, precision = sentinel)]
async fn throttles_as_sentinel() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 20, behavior = warm_up_throttle, warm_up_ms = 5 * SECOND, cold_factor = FACTOR, max_wait_ms = SECOND)]
async fn warms_up_and_throttles() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(
    rate(limit = 1_000, per_ms = 60_000, behavior = throttle, max_wait_ms = SECOND / 2, burst = BURST * 2),
    rate(limit = 10, per_ms = SECOND, associated = "behaviors.writes"),
    rate(limit = 10, per_ms = SECOND, behavior = reject, associated = WRITES),
    max_concurrency = 8,
    queue_ms = SECOND
)]
fn several() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(
    qps = 5,
    behavior = throttle,
    max_concurrency = 2,
    error_ratio = 0.5,
    hot(key = sku, qps = 1),
    deny("batch"),
    mode = shadow
)]
fn in_shadow(sku: u32) -> Result<u32, Blocked> {
    Ok(sku)
}

#[guarded(qps = 5, behavior = throttle, max_wait_ms = 0, fallback = zero)]
async fn never_waits() -> u8 {
    1
}

async fn zero(_: Blocked) -> u8 {
    0
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

fn main() {
    rejects().unwrap();
    warms_up().unwrap();
    throttles().unwrap();
    drop(assert_send(throttles_as_sentinel()));
    drop(assert_send(warms_up_and_throttles()));
    several().unwrap();
    drop(assert_send(never_waits()));
    in_shadow(1).unwrap();
}
