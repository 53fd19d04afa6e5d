//! F08: futures behind names that the attribute cannot see into.
#![deny(warnings)]

use std::future::{Ready, ready};
use std::pin::Pin;

use leap_runtime::{Blocked, guarded};

type Later<T> = Pin<Box<dyn Future<Output = Result<T, Blocked>> + Send>>;

#[guarded(fallback = |_| Box::pin(ready(Ok(0))))]
fn alias() -> Later<u8> {
    Box::pin(async { Ok(1) })
}

#[guarded(fallback = ready(Ok(0)))]
fn named() -> Ready<Result<u8, Blocked>> {
    ready(Ok(1))
}

#[allow(deprecated)]
#[guarded(fallback = ready(Ok(0)))]
fn meant() -> Ready<Result<u8, Blocked>> {
    ready(Ok(1))
}

fn main() {
    drop((alias(), named(), meant()));
}
