//! What names cost that come from user input: a million of them, in a registry with room for 10 000.
//!
//! ```text
//! cargo run --release -p leap-benches --bin names
//! ```
//!
//! Each line: nanoseconds per call, the median and the worst of the mean of 1 000 calls in a row; allocations per call; and
//! what the registry takes of the heap after a tenth of the calls and after all. The exit code is 1 if that grows, or if an
//! idle resource takes more than 2 KiB.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use leap_benches::alloc::{self, Counting};
use leap_runtime::{Behavior, FlowRule, ManualClock, Outcome, Registry, RuleSet};

#[global_allocator]
static COUNTING: Counting = Counting;

const ROOM: u64 = 10_000;
const N: u64 = 1_000_000;
const BATCH: u64 = 1_000;

const USAGE: &str = "\
names
    calls by a million names, old and new; it takes no arguments but --help";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => measure(),
        Some("--help" | "-h") => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some(word) => {
            eprintln!("names: unknown argument `{word}`\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> ExitCode {
    println!(
        "{:<52} {:>8} {:>8} {:>7} {:>9} {:>9}",
        "", "median", "worst", "allocs", "MiB early", "MiB late"
    );
    let rested = |clock: &ManualClock, i| {
        if i % (ROOM / 2) == 0 {
            clock.advance(Duration::from_secs(61));
        }
    };
    let busy = |_: &ManualClock, _| {};
    let pattern = || FlowRule::new(1e6, Behavior::Reject).map(|rule| RuleSet::new().flow("name *", rule));
    let pattern = pattern().expect("a limit in range");
    let lines = [
        line("names that are there", &RuleSet::new(), busy, ROOM),
        line("new names, some always at rest", &RuleSet::new(), rested, N),
        line("new names, none at rest", &RuleSet::new(), busy, N),
        line("new names under a pattern, some always at rest", &pattern, rested, N),
        line("new names under a pattern, none at rest", &pattern, busy, N),
    ];
    let idle = idle(100_000);
    println!("an idle name of 100 000 takes {idle} bytes");
    for (what, attacked) in [("alone", false), ("beside a thread with new names, none at rest", true)] {
        let [half, most] = known_name(attacked);
        println!("a known name {what}: {half} ns at the median, {most} at 99.9 %");
    }
    if lines.iter().all(|is_flat| *is_flat) && idle <= 2_048 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn registry() -> (Registry, ManualClock) {
    let clock = ManualClock::new();
    let room = usize::try_from(ROOM).expect("a small number");
    (Registry::builder().clock(clock.clone()).max_resources(room).build(), clock)
}

/// Calls a million times by `n` names in turn, and tells whether the heap stayed as it was.
fn line(what: &str, rules: &RuleSet, mut before: impl FnMut(&ManualClock, u64), n: u64) -> bool {
    let (registry, clock) = registry();
    registry.load(rules.clone()).expect("the names are short");
    let empty = alloc::live_bytes();
    let call = |name: &str| registry.enter(name).map(|entry| entry.end(Outcome::Success)).is_ok();
    // Of a length like those to come.
    for i in 0..ROOM {
        before(&clock, i);
        call(&format!("name {:>9}", i % n));
    }
    let (mut batches, mut early, mut n_allocations) = (vec![], 0, 0);
    let mut names = vec![String::new(); usize::try_from(BATCH).expect("a small number")];
    for batch in 0..N / BATCH {
        if batch == N / BATCH / 10 {
            early = alloc::live_bytes() - empty;
        }
        let first = ROOM + batch * BATCH;
        for (name, i) in names.iter_mut().zip(first..) {
            *name = format!("name {:>9}", i % n);
        }
        let (allocations, began) = (alloc::calls(), Instant::now());
        for (name, i) in names.iter().zip(first..) {
            before(&clock, i);
            call(name);
        }
        batches.push(began.elapsed().as_nanos() / u128::from(BATCH));
        n_allocations += alloc::calls() - allocations;
    }
    let late = alloc::live_bytes() - empty;
    batches.sort_unstable();
    let (median, worst) = (batches[batches.len() / 2], batches[batches.len() - 1]);
    #[expect(clippy::cast_precision_loss, reason = "printed with one decimal")]
    let [early_mib, late_mib] = [early, late].map(|bytes| bytes as f64 / f64::from(1 << 20));
    let per_call = n_allocations / N;
    println!("{what:<52} {median:>8} {worst:>8} {per_call:>7} {early_mib:>9.1} {late_mib:>9.1}");
    println!("    {}", registry.roster());
    late <= early + early / 50
}

/// Bytes of each of `n` resources in which nothing was counted yet, their share of the registry's map included.
fn idle(n: u32) -> usize {
    let registry = Registry::builder().max_resources(n as usize).build();
    let before = alloc::live_bytes();
    // So that they are made, and nothing is counted.
    registry.turn_off();
    for i in 0..n {
        drop(registry.enter(&format!("name {i}")));
    }
    registry.turn_on();
    let bytes = (alloc::live_bytes() - before) / n as usize;
    drop(registry);
    bytes
}

/// What a call of a name takes that is always there, in ns.
fn known_name(attacked: bool) -> [u128; 2] {
    let (registry, _) = registry();
    let stop = AtomicBool::new(false);
    let mut times = std::thread::scope(|scope| {
        if attacked {
            let (registry, stop) = (&registry, &stop);
            scope.spawn(move || {
                for i in 0_u64.. {
                    if stop.load(Relaxed) {
                        break;
                    }
                    drop(registry.enter(&format!("name {i}")));
                }
            });
        }
        let times: Vec<u128> = (0..300_000)
            .map(|_| {
                let began = Instant::now();
                drop(registry.enter("orders.create"));
                began.elapsed().as_nanos()
            })
            .collect();
        stop.store(true, Relaxed);
        times
    });
    times.sort_unstable();
    [times[times.len() / 2], times[times.len() / 1_000 * 999]]
}
