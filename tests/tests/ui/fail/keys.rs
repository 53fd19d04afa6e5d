//! Keys and origins that the macro or the compiler will not take, and constants that depend on a call, told at the expression.

use leap_runtime::{Blocked, guarded};

struct User {
    id: u64,
    name: String,
}

#[guarded(hot(key = id, qps = 10), hot(key = User { id, name }, name = "user"), origin = name)]
fn bound_by_a_pattern(User { id, name }: User) -> Result<u64, Blocked> {
    Ok(id + name.len() as u64)
}

#[guarded(hot(key = price, qps = 10))]
fn a_fraction(price: f64) -> Result<f64, Blocked> {
    Ok(price)
}

#[guarded(hot(key = user, qps = 10))]
async fn a_struct(user: User) -> Result<u64, Blocked> {
    Ok(user.id)
}

#[guarded(hot(key = read(&user).await, qps = 10))]
async fn waits(user: User) -> Result<u64, Blocked> {
    Ok(user.id)
}

#[guarded(hot(key = user.name.parse::<u64>().ok()?, qps = 10), origin = user.name.split_once('-')?.0)]
fn leaves(user: User) -> Result<u64, Blocked> {
    Ok(user.id)
}

async fn read(user: &User) -> u64 {
    user.id
}

#[guarded(origin = user.id)]
fn a_number_as_origin(user: User) -> Result<u64, Blocked> {
    Ok(user.id)
}

#[guarded(entrance = user.name)]
fn an_entrance_that_varies(user: User) -> Result<u64, Blocked> {
    Ok(user.id)
}

#[guarded(permits = items.len())]
fn an_argument(items: &[u8]) -> Result<u8, Blocked> {
    Ok(items[0])
}

fn main() {}
