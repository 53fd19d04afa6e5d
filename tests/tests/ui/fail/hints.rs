//! F08: futures behind names that the attribute cannot see into; and breakers on errors where there are none.
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

type Watch = Pin<Box<dyn futures_core::Stream<Item = Result<u8, Blocked>>>>;

#[guarded(fallback = nothing())]
fn stream() -> Watch {
    nothing()
}

fn nothing() -> Watch {
    unimplemented!()
}

#[allow(deprecated)]
#[guarded(fallback = ready(Ok(0)))]
fn meant() -> Ready<Result<u8, Blocked>> {
    ready(Ok(1))
}

/// A breaker that never opens is no better.
#[guarded(error_ratio = 0.5, slow_rt_ms = 10, fallback = 0)]
fn no_error() -> usize {
    1
}

#[guarded(error_count = 5, err_if = |n| *n == 0, fallback = 0)]
fn some_error() -> usize {
    1
}

fn main() {
    drop((alias(), named(), meant(), stream()));
    let _ = (no_error(), some_error());
}
