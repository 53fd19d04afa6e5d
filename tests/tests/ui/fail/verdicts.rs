//! Verdicts that do not fit what the function returns.

use leap_runtime::{Blocked, guarded};

#[guarded(ignore(5))]
fn wrong_pattern() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(ignore(Unknown))]
fn catches_all() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(ok_if = is_zero)]
fn wrong_predicate() -> Result<u8, Blocked> {
    Ok(1)
}

fn is_zero(n: &u8) -> bool {
    *n == 0
}

#[guarded(err_if = true)]
fn no_predicate() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(err_if = |answer| answer.is_zero())]
async fn wrong_closure() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(err_if = |_| 1)]
async fn no_answer() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {}
