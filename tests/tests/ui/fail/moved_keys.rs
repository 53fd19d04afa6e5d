//! A key that takes its parameter away is told where the body misses it.

use leap_runtime::{Blocked, guarded};

#[guarded(hot(key = name.into_boxed_str(), qps = 10))]
fn moved(name: String) -> Result<String, Blocked> {
    Ok(name)
}

#[guarded(origin = name.into_boxed_str())]
async fn moved_async(name: String) -> Result<String, Blocked> {
    Ok(name)
}

fn main() {}
