//! E12: arguments that cannot be. All mistakes of one attribute are told together, and its function still exists.

use leap_runtime::{Blocked, guarded};

#[guarded(qsp = 1, colour = "red", fallbak = f, error_rate = 0.5)]
fn misspelt() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded("a", resource = "b", qps = 1, qps = 2, ignore(1), ignore(2))]
fn twice() -> Result<u8, u8> {
    Ok(1)
}

#[guarded(qps, permits(2), rate = 5, ignore = 5, resource, mode, fallback =, 7 = 8)]
fn without_values() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(qps = 1 error_ratio = 0.5, "late")]
fn without_commas() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(limit = 5, per_ms = 3, rate(qps = 3, limt = 5, scope = cluster))]
fn in_and_out_of_rate() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(count = 1, blockHandler = f, min_request_amount = 5, time_window = 10, exceptions_to_ignore(1), ref_resource = "a", value = "b", paramIdx = 0)]
fn words_of_sentinel() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(grade = 1, strategy = 2, cpu = 0.8, qps = 1, behavior = rate_limiter, page = 3)]
fn words_for_several() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(mail.send, qps = 1, rate(4, 100), rate(4, per_ms = 100))]
fn without_names_or_quotes() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {
    misspelt().unwrap();
    twice().unwrap();
    without_values().unwrap();
    without_commas().unwrap();
    in_and_out_of_rate().unwrap();
}
