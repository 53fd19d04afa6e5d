//! E10: mistakes in a body are told there, and the lints of a body are not silenced.
#![deny(unused)]

use leap_runtime::{Blocked, guarded};

#[guarded]
fn wrong_type(sku: &str) -> Result<usize, Blocked> {
    let length: usize = sku;
    Ok(length)
}

#[guarded]
async fn wrong_type_async(sku: &str) -> Result<usize, Blocked> {
    let length: usize = sku;
    Ok(length)
}

#[guarded]
fn wrong_return(sku: &str) -> Result<usize, Blocked> {
    if sku.is_empty() {
        return 0;
    }
    Ok(sku)
}

#[guarded]
async fn wrong_return_async(sku: &str) -> Result<usize, Blocked> {
    if sku.is_empty() {
        return 0;
    }
    Ok(sku)
}

#[guarded]
fn no_value(sku: &str) -> Result<usize, Blocked> {
    sku.len();
}

fn main() {
    let _ = (wrong_type("a"), wrong_return("a"), no_value("a"));
    drop((wrong_type_async("a"), wrong_return_async("a")));
}
