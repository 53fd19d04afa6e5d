//! E07: items of the user's own that are called as an expansion's locals might be.
#![deny(warnings)]
#![allow(dead_code, non_upper_case_globals, non_camel_case_types, reason = "items named as locals are")]

use leap_runtime::{Blocked, guarded};

static site: u8 = 1;
const entry: u8 = 1;
const permits: u8 = 1;
const returned: u8 = 1;
const value: u8 = 1;
const error: u8 = 1;
const answer: u8 = 1;
const way: u8 = 1;
struct blocked;

#[guarded(qps = 100, ok_if = |result| result.is_ok(), err_if = |result| result.is_err())]
fn plain(a: u8) -> Result<u8, Blocked> {
    Ok(a + site + entry)
}

#[guarded(qps = 100, fallback = other)]
fn served(a: u8) -> u8 {
    a
}

fn other(a: u8, _: Blocked) -> u8 {
    a
}

#[guarded(qps = 100, fallback = other_async)]
async fn served_async(a: u8) -> u8 {
    a
}

async fn other_async(a: u8, _: Blocked) -> u8 {
    a
}

fn main() {
    assert_eq!((plain(1).unwrap(), served(2)), (3, 2));
    drop(served_async(1));
}
