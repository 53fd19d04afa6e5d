//! Arguments that say more about a rule that is not there.

use leap_runtime::{Blocked, guarded};

#[guarded(min_calls = 5, window_ms = 1_000, open_ms = 1_000, probes = 2)]
fn no_breaker() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(slow_ratio = 0.5, min_calls = 3)]
fn no_slow_rt() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(max_concurrency = 3, precision = strict, buckets = 10)]
fn no_limit() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(precision = strict, rate(limit = 5, per_ms = 5))]
fn outside_of_its_rate() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(rate(), rate(limit = 5), rate(per_ms = 5))]
fn half_a_rate() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(fallback = nothing)]
fn perhaps_a_parameter(_a: u8, #[cfg(any())] _b: u8) {}

fn nothing(_: u8, _: Blocked) {}

fn main() {
    perhaps_a_parameter(1);
    no_breaker().unwrap();
}
