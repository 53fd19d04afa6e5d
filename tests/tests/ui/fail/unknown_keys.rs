//! Keys made of what is not there.

use leap_runtime::{Blocked, guarded};

struct User {
    id: u64,
    name: String,
}

#[guarded(hot(key = user.name(), qps = 10))]
fn unknown_method(user: User) -> Result<u64, Blocked> {
    Ok(user.id)
}

#[guarded(hot(key = nobody, qps = 10))]
async fn unknown_name(user: User) -> Result<u64, Blocked> {
    Ok(user.id)
}

fn main() {}
