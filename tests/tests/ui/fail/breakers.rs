//! What does not go together in a breaker.

use leap_runtime::{Blocked, guarded};

#[guarded(window_calls = 100, open_max_ms = 60_000, recovery = ramp)]
fn no_breaker() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_count = 3, window_ms = 1_000, window_calls = 100)]
fn two_windows() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_count = 3, window_calls = 10, min_calls = 20, open_ms = 2_000, open_max_ms = 1_000)]
fn too_small() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_count = 3, window_calls = 4, open_max_ms = 1_000)]
fn smaller_than_the_defaults() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_count = 3, window_calls = 0, open_max_ms = 0, recovery = slow)]
fn out_of_range() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {}
