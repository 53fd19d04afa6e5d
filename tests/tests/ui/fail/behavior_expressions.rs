//! Const expressions that the rules will not take: found while the function is compiled, and told at the expression.

use leap_runtime::{Blocked, guarded};

const FACTOR: f64 = 1.0;
const NEGATIVE: f64 = -1.0;
const HALF: f64 = 0.5;
const NONE: u64 = 0;
const FEW: u32 = 3;
const NAME: &str = "";

#[guarded(qps = 10, behavior = warm_up, cold_factor = FACTOR)]
fn no_cold_factor() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, behavior = warm_up, warm_up_ms = NONE)]
fn no_warm_up() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 10, associated = NAME)]
fn no_associated_name() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_count = 3, window_calls = FEW)]
fn no_window() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_count = 3, open_max_ms = NONE)]
fn no_open_time() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(hot(key = sku, qps = HALF))]
fn no_hot_limit(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, qps = 10, except("a" => NEGATIVE)))]
fn no_exception(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(entrance = NAME)]
fn no_entrance() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(allow("a", NAME))]
fn no_origin() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {}
