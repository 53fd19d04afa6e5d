//! E08: a runtime that is known under another name, or through somebody else's crate.
#![deny(warnings)]

mod facade {
    pub use leap_runtime as flow;
}

use facade::flow::{Blocked, guarded};

#[guarded(crate = crate::facade::flow, qps = 10, error_count = 3)]
fn through_a_facade() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(crate = facade::flow, fallback = zero, permits = 1 + 1, resource = concat!("a", "b"))]
async fn through_a_facade_async() -> u8 {
    1
}

fn zero(_: Blocked) -> u8 {
    0
}

fn main() {
    assert_eq!(through_a_facade().unwrap(), 1);
    drop(through_a_facade_async());
}
