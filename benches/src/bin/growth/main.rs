//! What a call costs as work grows: resources, rules, buckets, hot values, threads; what each takes of the heap; how long a
//! process takes to its first call; and whether memory stays flat.
//!
//! ```text
//! cargo run --release -p leap-benches --bin growth [-- --quick] [--only SUBSTRING] [--json FILE] [--keep PAGE]
//! ```
//!
//! Every point is timed in batches, one of every point of every series per round, so that a bad moment of the machine hits
//! all alike. Ratios are ratios of medians, to the first point of the series. The exit code is 1 if memory grows or is over
//! its budget; it never depends on time. The parts beside the series are called `contention`, `bytes`, `start-up` and `flat`.
//!
//! A call site has one resource, so the 100 000 of the first series are made as the attribute makes them for a function,
//! and not by it. What 64 cores would do is computed, not measured: see `contention`.

mod calls;
mod clock;
mod contention;
mod measure;
mod options;
mod report;
mod series;
mod start_up;

use std::process::ExitCode;

use leap_benches::alloc::Counting;
use leap_benches::{flat, memory, results};
use leap_runtime::Registry;

use self::clock::Halting;
use self::options::{Options, Task};
use self::report::{Report, Scale};

#[global_allocator]
static COUNTING: Counting = Counting;

/// What is measured beside the series.
const PARTS: [&str; 4] = ["contention", "bytes", "start-up", "flat"];

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => return refuse(&wrong),
    };
    match options.task {
        Task::Help => {
            println!("{}", options::USAGE);
            ExitCode::SUCCESS
        }
        Task::FirstCalls => start_up::child(),
        Task::Measure => match measure(&options) {
            Ok(report) => print(&report, &options),
            Err(wrong) => refuse(&wrong),
        },
    }
}

fn measure(options: &Options) -> Result<Report, String> {
    let names: Vec<&str> = series::names().chain(PARTS).collect();
    if !names.iter().any(|name| options.wants(name)) {
        let only = options.only.as_deref().unwrap_or_default();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        return Err(format!("no series or part has `{only}` in its name; there are {}", names.join(", ")));
    }
    results::check_writable(options.json.iter().chain(&options.keep))?;
    let scale = if options.quick { Scale::QUICK } else { Scale::FULL };
    let mut report = Report::of(scale, options.command());
    // Before there is much of a heap, of which each is a part.
    if options.wants("start-up") {
        report.start_up = Some(start_up::measure(scale.children).map_err(|error| error.to_string())?);
    }
    if options.wants("flat") {
        report.flat = vec![
            flat::events_that_nobody_consumes(scale.events),
            flat::names_at_the_cap(scale.names, false),
            flat::names_at_the_cap(scale.names, true),
        ];
    }
    if options.wants("bytes") {
        report.bytes = memory::all();
        report.bytes.extend(memory::per_rule());
    }
    let clock = Halting::new();
    let global = Registry::builder().clock(clock.clone()).max_resources(series::MANY).build();
    global.install().expect("nothing guarded was called yet");
    let series = series::all(options, &clock, &global);
    let mut transfer_ns = f64::INFINITY;
    report.measured = measure::rounds(&series, scale.rounds, || {
        if options.wants("contention") {
            transfer_ns = (0..8).map(|_| measure::transfer_ns()).fold(transfer_ns, f64::min);
        }
    });
    report.transfer_ns = Some(transfer_ns).filter(|ns| ns.is_finite());
    Ok(report)
}

fn print(report: &Report, options: &Options) -> ExitCode {
    print!("{report}");
    let json = options.json.as_ref().map(|file| (file, std::fs::write(file, report.to_json())));
    let kept = options.keep.as_ref().map(|page| (page, results::keep(page, "growth", &report.to_markdown())));
    for (file, written) in json.into_iter().chain(kept) {
        if let Err(error) = written {
            return refuse(&results::unwritable(file, &error));
        }
    }
    if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("growth: {why}");
    ExitCode::from(2)
}
