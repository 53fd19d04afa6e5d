//! E12: literals that the rules would not take.

use leap_runtime::{Blocked, guarded};

#[guarded(qps = "ten", max_concurrency = 2.5, slow_rt_ms = true, error_ratio = 'a', resource = 5)]
fn of_the_wrong_kind() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = -1, max_concurrency = -2, error_ratio = -0.5, slow_rt_ms = -1.5)]
fn negative() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(permits = 0, max_concurrency = 5_000_000_000, probes = 1_024, error_count = 340282366920938463463374607431768211456)]
fn out_of_range() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_ratio = 50, slow_ratio = 1.5, slow_rt_ms = 3, min_calls = 0, window_ms = 0, open_ms = 0, probes = 0)]
fn no_shares() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 0.5, rate(limit = 0.25, per_ms = 60_000))]
fn between_zero_and_one() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, buckets = 3, rate(limit = 5, per_ms = 7, buckets = 9_000))]
fn uneven_buckets() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 2_000_000, precision = exact)]
fn too_much_to_be_exact() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, precision = exactly, mode = "off")]
fn unknown_words() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(resource = "", qps = 1)]
fn nameless() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(fallback = "path", crate = "leap", ignore(A, B), err_if = true)]
fn no_paths() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 5k, open_ms = 5s, error_count = 3, max_concurrency = 3permits, rate(limit = 1.5per, per_ms = 1m))]
fn units() -> Result<(), Blocked> {
    Ok(())
}

#[guarded(ignore(not_found))]
fn every_error() -> Result<(), Blocked> {
    Ok(())
}

fn main() {}
