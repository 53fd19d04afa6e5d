//! Hot parameters that make no sense.

use leap_runtime::{Blocked, guarded};

#[guarded(hot(), hot(qps = 10))]
fn no_key(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot, hot = sku, hot(sku, qps = 10))]
fn no_list(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, burst = 3, per_ms = 100, behavior = throttle, precision = sentinel))]
fn no_qps(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, max_keys = 100, except("a" => 1)), hot(key = sku, max_concurrency = 3, max_wait_ms = 3))]
fn no_limit(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, qps = 0.25), hot(key = sku, qps = 0.5, per_ms = 100, max_concurrency = 3))]
fn between_zero_and_one(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, qps = -1), hot(key = sku, qps = 1, max_keys = 0))]
fn out_of_range(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, qps = 1, behavior = warm_up), hot(key = sku, qps = 1, precision = strict))]
fn unknown_words(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, limit = 1, exept(1 => 1), rate = 3, key = sku), key = sku, max_keys = 3, except(1 => 1))]
fn unknown_arguments(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, name = "a", qps = 1), hot(key = amount, name = "a", qps = 1), hot(key = sku, name = "amount"), hot(key = amount))]
fn one_name_for_two(sku: &str, amount: u32) -> Result<usize, Blocked> {
    Ok(sku.len() + amount as usize)
}

#[guarded(hot(key = sku, name = NAME, qps = 1), hot(key = sku, name = "", qps = 1))]
fn no_names(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, qps = 1, except("a" => 1, VIP => 2, 1.5 => 3, b"b" => 4, "c" => -1, "d", "a" => 5, 0x10 => "x")))]
fn exceptions(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = sku, qps = 1, except("a" => 1, "b" => 1, 16 => 1, "a" => 2, 0x10 => 3, 'a' => 4)), hot(key = sku, qps = 1, except()))]
fn twice(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

#[guarded(hot(key = 0, qps = 1), hot(key = "sku", max_concurrency = 1), hot(0, qps = 1))]
fn one_key_for_all(sku: &str) -> Result<usize, Blocked> {
    Ok(sku.len())
}

fn main() {}
