//! Const expressions of the wrong type, or that are no constants.

use leap_runtime::{Blocked, guarded};

const WORKERS: usize = 8;

#[guarded(max_concurrency = WORKERS)]
fn wrong_type() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = "ten".len(), resource = WORKERS)]
fn wrong_types() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = UNKNOWN)]
fn unknown() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = limit())]
fn not_const() -> Result<u8, Blocked> {
    Ok(1)
}

fn limit() -> f64 {
    1.0
}

fn main() {}
