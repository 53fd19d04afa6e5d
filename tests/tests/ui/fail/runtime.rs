//! E08: a runtime that is not where it is said to be is told once.

use leap_runtime::guarded;

#[guarded(crate = flow, qps = 1, hot(key = x, qps = 1), fallback = zero)]
async fn nowhere(x: u8) -> u8 {
    x
}

#[guarded(crate = crate::flow)]
fn nowhere_either(x: u8) -> Result<u8, String> {
    Ok(x)
}

async fn zero(_: u8, _: leap_runtime::Blocked) -> u8 {
    0
}

fn main() {}
