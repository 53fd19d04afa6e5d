//! What loading rules costs: the calls that run meanwhile, the load itself, and memory.
//!
//! ```text
//! cargo run --release -p leap-benches --bin loading [-- --quick] [--json FILE]
//! ```
//!
//! Calls are timed one by one, half through call sites and half by name, over 5 000 resources with two rules each. Rows are
//! measured in interleaved rounds, so that loading stands beside the quiet row of the same round. With more threads than
//! cores the scheduler takes threads away in the midst of a call: what that alone does is shown by the rows in which the
//! additional thread is busy with something else. The exit code is 1 if memory grows, or a call is blocked that should
//! not be; it never depends on time.
//!
//! To see where the time of one load goes:
//!
//! ```text
//! perf record -g target/release/loading --once "load 10 000, all changed" 30
//! ```

mod calls;
mod loads;
mod memory;
mod options;
mod report;
mod rules;

use std::process::ExitCode;

use leap_benches::alloc::Counting;

use self::options::{Options, Task};
use self::report::Report;

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => return refuse(&wrong),
    };
    match &options.task {
        Task::Help => {
            println!("{}", options::USAGE);
            ExitCode::SUCCESS
        }
        Task::Once { load, n } => match loads::ALL.iter().find(|known| known.name == load) {
            Some(load) => {
                let ms: f64 = (load.run)(*n).iter().sum();
                println!("`{}` {n} times took {ms:.2} ms", load.name);
                ExitCode::SUCCESS
            }
            None => {
                let names: Vec<_> = loads::ALL.iter().map(|load| format!("`{}`", load.name)).collect();
                refuse(&format!("no load is called `{load}`; there are {}", names.join(", ")))
            }
        },
        Task::Measure => measure(&options),
    }
}

fn measure(options: &Options) -> ExitCode {
    let quick = options.quick;
    let calls = if quick { calls::Plan::QUICK } else { calls::Plan::FULL };
    let of_memory = if quick { memory::Plan::QUICK } else { memory::Plan::FULL };
    let report = Report {
        calls,
        rows: calls::rounds(calls),
        loads: loads::all(if quick { 3 } else { 21 }),
        of_memory,
        memory: memory::all(of_memory),
    };
    print!("{report}");
    if let Some(file) = &options.json
        && let Err(error) = std::fs::write(file, report.to_json())
    {
        return refuse(&format!("`{}` cannot be written: {error}", file.display()));
    }
    if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("loading: {why}");
    ExitCode::from(2)
}
