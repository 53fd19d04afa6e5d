//! Const expressions that the rules will not take: found while the function is compiled, and told at the expression.

use leap_runtime::{Blocked, guarded};

const LIMIT: f64 = -1.0;
const HALF: f64 = 0.5;
const NOT_A_NUMBER: f64 = f64::NAN;
const SHARE: f64 = 1.5;
const NONE: u32 = 0;
const NAME: &str = "";

#[guarded(qps = LIMIT)]
fn negative() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(rate(limit = HALF, per_ms = 1_000))]
fn less_than_one() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_ratio = SHARE, slow_rt_ms = 10, slow_ratio = NOT_A_NUMBER)]
fn no_share() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(error_count = 3, probes = NONE)]
fn no_probe() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(permits = NONE)]
fn no_permit() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(resource = NAME)]
fn no_name() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {
    let _ = (negative(), less_than_one(), no_share(), no_probe(), no_permit(), no_name());
}
