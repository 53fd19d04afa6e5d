//! E06: lints that speak of a function, or of what is in its body, still do.
#![deny(unused, unused_must_use, clippy::all)]

use leap_runtime::{Blocked, guarded};

#[guarded]
fn never_called() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded]
async fn never_called_async() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded]
fn careless(argument: u8, mut not_changed: u8, (_, part): (u8, u8)) -> Result<u8, Blocked> {
    let variable = 1;
    careful();
    return Ok(not_changed);
    careful()
}

#[guarded]
async fn careless_async(argument: u8, mut not_changed: u8, (_, part): (u8, u8)) -> Result<u8, Blocked> {
    let variable = 1;
    careful();
    return Ok(not_changed);
    careful()
}

#[guarded]
fn careful() -> Result<u8, Blocked> {
    Ok(1)
}

struct Shop;

impl Shop {
    #[guarded]
    fn never_called_either(&self) -> Result<u8, Blocked> {
        Ok(1)
    }
}

fn main() {
    let _ = (careless(1, 2, (3, 4)), Shop);
    drop(careless_async(1, 2, (3, 4)));
}
