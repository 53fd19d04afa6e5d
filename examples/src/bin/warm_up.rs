//! A catalogue whose caches are empty after a start and after a pause: what it may be asked for climbs while it warms up.
//!
//! ```text
//! cargo run --release -p leap-examples --bin warm_up
//! ```
//!
//! What to look at:
//!
//! - The load is always 125 calls per second, well above the limit of 100. Cold, a third of the limit passes; then more and
//!   more, until after some ten seconds the whole limit does.
//! - A pause of three seconds cools it down a little, one of twelve seconds all the way.
//!
//! Time is virtual, so all of it takes a moment.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

use std::error::Error;
use std::time::Duration;

use leap_examples::bar;
use leap_runtime::{Blocked, ManualClock, Registry, guarded};

/// Calls per second, and for how many seconds.
const LOAD: [(u32, u32); 5] = [(125, 14), (0, 3), (125, 4), (0, 12), (125, 4)];
const SECOND: Duration = Duration::from_secs(1);

#[guarded("catalogue.read", qps = 100, behavior = warm_up, warm_up_ms = 10_000, cold_factor = 3)]
fn read(sku: u32) -> Result<u32, Blocked> {
    Ok(sku * 10)
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();

    println!("second  offered  passed  blocked  limit of the moment, and a mark per two that passed");
    let mut second = 0;
    for (per_second, seconds) in LOAD {
        for _ in 0..seconds {
            let row = registry.scope(|| call(&clock, per_second));
            println!("{second:>6}  {}", row.trim_end());
            second += 1;
        }
    }

    let stats = registry.stats("catalogue.read").ok_or("it was called")?;
    println!("\n{} passed, {} blocked", stats.totals().passed(), stats.totals().blocked());
    Ok(())
}

/// Calls so many times within a second, at even distances, and tells what became of the calls.
fn call(clock: &ManualClock, offered: u32) -> String {
    let (mut passed, mut limit) = (0, None);
    for sku in 0..offered {
        match read(sku) {
            Ok(_) => passed += 1,
            // A block says what the rule allows at that moment.
            Err(blocked) => limit = blocked.limit(),
        }
        clock.advance(SECOND / offered);
    }
    if offered == 0 {
        clock.advance(SECOND);
    }
    let limit = limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    format!("{offered:>7}  {passed:>6}  {:>7}  {limit:>5}  {}", offered - passed, bar(passed, 2))
}
