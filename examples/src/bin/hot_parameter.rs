//! A search that every user may ask ten times a second: one of them floods it, and the others do not notice.
//!
//! ```text
//! cargo run --release -p leap-examples --bin hot_parameter
//! ```
//!
//! What to look at:
//!
//! - `mallory` begins to flood in the third second and gets her ten, whatever she asks for; `ann` and `bob` get all that
//!   they ask for, as before. A limit on the resource as a whole would have been used up by her alone.
//! - `vip` has a limit of its own, by `except`.
//! - The table of the top values says who it was. It counts what was asked for, blocked calls included.
//!
//! Time is virtual, so all of it takes a moment.

#![allow(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::error::Error;

use leap_examples::bar;
use leap_runtime::{Blocked, ManualClock, Registry, Timestamp, guarded};

const USERS: [&str; 4] = ["ann", "bob", "vip", "mallory"];
/// What each of them asks for, second by second.
const LOAD: [[u32; USERS.len()]; 7] = [
    [4, 8, 40, 5],
    [4, 8, 50, 5],
    [5, 10, 40, 200],
    [5, 10, 50, 500],
    [5, 10, 100, 500],
    [4, 8, 40, 500],
    [4, 8, 40, 5],
];
/// After which second the top values are told.
const TELL_AFTER: u32 = 4;
const SECOND_MS: u32 = 1_000;

struct Query {
    user: &'static str,
    words: &'static str,
}

#[guarded("search", hot(key = query.user, name = "user", qps = 10, except("vip" => 50)))]
fn search(query: &Query) -> Result<usize, Blocked> {
    Ok(query.words.len())
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();

    println!("second  {}  passed / offered, and a mark per two of the last one's that passed", header());
    for (second, load) in (0..).zip(LOAD) {
        let passed = registry.scope(|| call_for_a_second(&clock, second, load));
        let cells = passed.iter().zip(load).map(|(passed, offered)| format!("{passed:>4} /{offered:>4}  "));
        println!("{second:>6}  {}{}", cells.collect::<String>(), bar(passed[USERS.len() - 1], 2));
        if second == TELL_AFTER {
            tell_top(&registry)?;
        }
    }
    Ok(())
}

fn header() -> String {
    USERS.map(|user| format!("{user:>10}")).join("  ")
}

/// Has every user ask as often as that, at even distances, and counts what passed.
fn call_for_a_second(clock: &ManualClock, second: u32, load: [u32; USERS.len()]) -> [u32; USERS.len()] {
    let mut passed = [0; USERS.len()];
    for ms in 0..SECOND_MS {
        clock.set(Timestamp::from_millis(u64::from(second * SECOND_MS + ms)));
        for (user, offered) in load.into_iter().enumerate() {
            let is_due = ms % (SECOND_MS / offered) == 0;
            if is_due && search(&Query { user: USERS[user], words: "red shoes" }).is_ok() {
                passed[user] += 1;
            }
        }
    }
    passed
}

fn tell_top(registry: &Registry) -> Result<(), Box<dyn Error>> {
    let stats = registry.stats("search").ok_or("it was called")?;
    for parameter in stats.hot(3) {
        println!("        the top 3 of {} values of {}:", parameter.n_values(), parameter.rule());
        for value in parameter.top() {
            println!("        {:>10} {:>5} permits asked for", value.value(), value.permits());
        }
    }
    Ok(())
}
