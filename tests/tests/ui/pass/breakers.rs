//! Breakers further: windows of calls, growing open times, gradual recovery.
#![deny(warnings)]

use leap_runtime::{Blocked, guarded};

const MINUTE: u64 = 60_000;
const CALLS: u32 = 100;

#[guarded(error_count = 3, window_calls = 100, min_calls = 10)]
fn of_the_last_calls() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(slow_rt_ms = 100, slow_ratio = 0.5, window_calls = CALLS, min_calls = CALLS / 2)]
fn of_a_constant_number_of_calls() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_ratio = 0.5, open_ms = 1_000, open_max_ms = MINUTE, recovery = ramp)]
async fn recovers_gradually() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_ratio = 0.5, open_max_ms = 5_000, recovery = probes, probes = 3)]
fn recovers_by_probes() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {
    of_the_last_calls().unwrap();
    of_a_constant_number_of_calls().unwrap();
    drop(recovers_gradually());
    recovers_by_probes().unwrap();
}
