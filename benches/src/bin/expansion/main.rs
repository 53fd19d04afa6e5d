//! What the attribute costs beside the calls: time to build, size of the binary, of futures and of stacks.
//!
//! ```text
//! cargo run --release -p leap-benches --bin expansion [-- --quick] [--json FILE]
//! ```
//!
//! Two crates are written into the target directory, and built there, `plain` and `guarded`: the same functions, without the attribute and
//! with it. Both depend on leap-runtime, in the versions of the workspace's lock file, and are built in turns, so that
//! a bad moment of the machine hits both. Nothing is asked of the network.
//!
//! - *Building* is what `cargo` takes from its start to its end for the crate alone, its dependencies built before: all of
//!   it (`clean`), and with one body changed (`one body`).
//! - *The binary* calls each function through a table of pointers. Ours holds one guarded function of each kind also in
//!   the plain one, so that the runtime is in both. What is left over, divided, is what a function costs.
//! - *Futures* are compared with those of the same functions without the attribute.
//! - *Stacks*: the smallest on which a thread gets through a chain of 12 functions, each of which calls the next, found by
//!   trying, in processes of their own, less what a thread needs that calls nothing.
//!
//! What is over its aim is marked. The exit code is 1 if a future is, or a chain without optimizations; it never depends on
//! time.

mod binary;
mod build;
mod cargo;
mod chain;
mod futures;
mod options;
mod report;
mod source;
mod stack;

use std::process::ExitCode;

use leap_benches::processes;

use self::options::{Options, Plan, Task};
use self::report::Report;

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
        Task::Chain => {
            chain::main();
            ExitCode::SUCCESS
        }
        Task::Measure => match measure(options.plan()) {
            Ok(report) => print(&report, &options),
            Err(why) => refuse(&why),
        },
    }
}

fn measure(plan: Plan) -> Result<Report, String> {
    let workspace = cargo::Workspace::write(plan)?;
    let times = build::times(&workspace, plan)?;
    let binaries = binary::both(&workspace)?;
    let stacks = stack::all(&workspace)?;
    Ok(Report { plan, rustc: processes::rustc()?, times, binaries, futures: futures::all(), stacks })
}

fn print(report: &Report, options: &Options) -> ExitCode {
    print!("{report}");
    if let Some(file) = &options.json
        && let Err(error) = std::fs::write(file, report.to_json())
    {
        return refuse(&format!("`{}` cannot be written: {error}", file.display()));
    }
    if report.is_within_budget() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("expansion: {why}");
    ExitCode::from(2)
}
