//! Limits that change while calls run: no call is lost, no change gives a second burst, and each can be taken back.
//!
//! ```text
//! cargo run --release -p leap-examples --bin reload
//! ```
//!
//! What to look at:
//!
//! - *passed* follows the limit in force from the middle of the second on in which it is changed. A limit that is raised gives
//!   what it adds; one that is lowered lets nothing through until the window has room by it.
//! - *in any second* is the most that passed in a span of 1 000 ms, wherever it starts, by a list of all that did: never more
//!   than the highest limit that stood in it.
//! - *loads*: after each call the set that stands is loaded once more. A set that changes nothing is no event, and nobody
//!   notices.
//! - A set with a mistake in it is not loaded at all, and the audit at the end tells of it.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use leap_examples::bar;
use leap_runtime::{
    Behavior, Blocked, Clock, FlowRule, LoadError, LoadReport, ManualClock, Registry, RuleSet, Source,
    Timestamp, guarded,
};

/// Calls in each second, evenly.
const OFFERED: u32 = 400;
const SECOND: Duration = Duration::from_secs(1);
const SECONDS: u32 = 16;

/// The attribute's limit holds where nothing else is loaded.
#[guarded(resource = "orders.create", qps = 100)]
fn create(order: u32) -> Result<u32, Blocked> {
    Ok(order)
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();
    let (file, api) = (registry.source("limits"), registry.source("operator"));
    let mut window = Window::default();

    println!("second  passed  blocked  in any second  loads  what is done in its middle");
    for second in 0..SECONDS {
        let (mut passed, mut most, mut loads) = (0, 0, 0);
        let mut done = String::new();
        for call in 0..OFFERED {
            if call == OFFERED / 2 {
                done = change(second, &file, &api, &registry)?;
            }
            if registry.scope(|| create(call)).is_ok() {
                passed += 1;
                most = most.max(window.pass(clock.now()));
            }
            clock.advance(SECOND / OFFERED);
            loads += u32::from(file.load(file.rules())?.changes().is_empty());
        }
        let row = format!(
            "{second:>6}  {passed:>6}  {:>7}  {most:>13}  {loads:>5}  {done:<32}{}",
            OFFERED - passed,
            bar(passed, 10)
        );
        println!("{}", row.trim_end());
    }

    println!("\nwhat was done:");
    for event in registry.audit() {
        println!("  {event}");
    }
    Ok(())
}

/// What an operator does in the middle of a second.
fn change(second: u32, file: &Source, api: &Source, registry: &Registry) -> Result<String, Box<dyn Error>> {
    let limit = |qps| FlowRule::new(qps, Behavior::Reject);
    let set = |qps| Ok::<_, Box<dyn Error>>(RuleSet::new().named("create", "orders.create", limit(qps)?));
    let done = |text: &str, report: LoadReport| Ok(format!("{text}: version {}", report.version()));
    match second {
        2 => done("file: 200", file.load(set(200.0)?)?),
        4 => done("patched to 50", file.patch("create", |_| Ok(limit(50.0)?.into()))?),
        6 => done("patched to 300", file.patch("create", |_| Ok(limit(300.0)?.into()))?),
        8 => done("operator: 10", api.note("incident").load(set(10.0)?)?),
        10 => done("operator's is gone", api.load(RuleSet::new())?),
        12 => match file.load(set(150.0)?.flow("", limit(1.0)?)) {
            Err(LoadError::Rejected(rejections)) => Ok(format!("refused: {} mistake", rejections.len())),
            other => Err(format!("a name that is empty was taken: {other:?}").into()),
        },
        13 => done("back to version 1", registry.rollback(1)?),
        15 => done("file: nothing", file.load(RuleSet::new())?),
        _ => Ok(String::new()),
    }
}

/// When calls passed within the last second.
#[derive(Default)]
struct Window(VecDeque<Timestamp>);

impl Window {
    /// How many passed in the second that ends with this one.
    fn pass(&mut self, now: Timestamp) -> usize {
        self.0.push_back(now);
        while self.0.front().is_some_and(|first| now.since(*first) >= SECOND) {
            self.0.pop_front();
        }
        self.0.len()
    }
}
