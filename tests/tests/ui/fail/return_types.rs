//! E14, E15: return types that cannot say that a call was blocked.

use leap_runtime::{Blocked, guarded};

struct AppError;

#[guarded]
fn number() -> u32 {
    1
}

#[guarded]
async fn number_async() -> u32 {
    1
}

#[guarded]
fn unit(count: &mut u32) {
    *count += 1;
}

#[guarded]
async fn unit_async() {}

#[guarded]
fn option() -> Option<u32> {
    None
}

#[guarded]
fn no_from() -> Result<u32, AppError> {
    Err(AppError)
}

#[guarded]
async fn no_from_async() -> Result<u32, AppError> {
    Err(AppError)
}

#[guarded]
fn never() -> ! {
    loop {}
}

#[guarded]
fn opaque() -> impl Iterator<Item = u8> {
    0..1
}

#[guarded(ignore(Some(_)), fallback = zero)]
fn no_result() -> u32 {
    1
}

fn zero(_: Blocked) -> u32 {
    0
}

fn main() {}
