//! What does not go with what becomes of calls above a limit.

use leap_runtime::{Blocked, guarded};

#[guarded(qps = 10, warm_up_ms = 10_000, cold_factor = 3, max_wait_ms = 500, burst = 5)]
fn no_behavior() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, behavior = warm_up, max_wait_ms = 500, burst = 5, associated = "b")]
fn warm_up_does_not_wait() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, behavior = throttle, warm_up_ms = 10_000, precision = strict, buckets = 10, associated = "b")]
fn throttle_keeps_no_window() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(rate(limit = 10, per_ms = 5_000, behavior = warm_up_throttle, burst = 5, associated = "b"))]
fn in_a_rate() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(behavior = throttle, max_wait_ms = 500, rate(limit = 10, per_ms = 5_000))]
fn outside_of_its_rate() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(max_concurrency = 3, behavior = throttle, associated = "b")]
fn no_limit() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, behavior = warmup, rate(limit = 1, per_ms = 1, behavior = "throttle"), rate(limit = 1, per_ms = 1, behavior))]
fn unknown_behaviors() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, behavior = warm_up, warm_up_ms = 0, cold_factor = 1, rate(limit = 1, per_ms = 1, behavior = warm_up, cold_factor = 0.5))]
fn not_cold() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, behavior = throttle, max_wait_ms = -1, burst = 1.5, associated = 5)]
fn of_the_wrong_kind() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 0.5, behavior = warm_up, rate(limit = 0.5, per_ms = 100, behavior = throttle))]
fn between_zero_and_one() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(associated = "", qps = 1)]
fn nameless() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(queue_ms = 500)]
fn no_queue() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 4, queue_ms = 500)]
fn a_queue_for_a_throttle() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(max_concurrency = 4, max_wait_ms = 500)]
fn a_throttle_for_a_queue() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {}
