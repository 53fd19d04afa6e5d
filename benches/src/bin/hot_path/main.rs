//! What a guarded call costs: time, allocations and memory.
//!
//! ```text
//! cargo run --release -p leap-benches --bin hot_path [-- --quick] [--only SUBSTRING] [--json FILE]
//! ```
//!
//! Every row is timed in short batches, one batch of every row per round, so that a bad moment of the machine hits
//! all rows alike. Ratios are ratios of medians, to the floor's with as many threads. The exit code is 1 if a
//! call allocates more than it may, which is nothing for most, or a resource is over its budget of memory; it never
//! depends on time.
//!
//! Instructions, which no other load disturbs, are counted by the program `instructions`, and compared with committed
//! counts. To look into those of one row:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*counted_calls*' --callgrind-out-file=target/callgrind.out \
//!     target/release/hot_path --instructions "qps+slow exact" 100000
//! callgrind_annotate target/callgrind.out
//! ```
//!
//! The instructions collected, divided by 100 000, are those of a call, the loop's own (some 15) included.

mod allocations;
mod options;
mod report;
mod rows;
mod rules;

use std::process::ExitCode;

use leap_benches::alloc::Counting;
use leap_benches::measure::{self, Plan};
use leap_benches::{memory, results};

use self::options::{Options, Task};
use self::report::Report;
use self::rows::Row;

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => return refuse(&wrong),
    };
    let rows = rows::all();
    match &options.task {
        Task::Help => {
            println!("{}", options::USAGE);
            ExitCode::SUCCESS
        }
        Task::Count { row, n } => match rows.iter().find(|known| known.name == row) {
            Some(row) => {
                let odd = measure::count(row, *n);
                println!("{n} calls of `{}`, {odd} of them ended otherwise than they should", row.name);
                ExitCode::SUCCESS
            }
            None => refuse(&format!("no row is called `{row}`; there are {}", names(&rows))),
        },
        Task::Time => time(&rows, &options),
    }
}

fn time(rows: &[Row], options: &Options) -> ExitCode {
    if !rows.iter().any(|row| options.names(row)) {
        return refuse(&format!("no row has `{}` in its name; there are {}", options.only(), names(rows)));
    }
    if let Err(wrong) = results::check_writable(&options.json) {
        return refuse(&wrong);
    }
    let chosen: Vec<&Row> = rows.iter().filter(|row| options.wants(row)).collect();
    let plan = if options.quick { Plan::QUICK } else { Plan::FULL };
    let report = Report {
        plan,
        allocations: allocations::all(&chosen),
        timings: measure::rounds(&chosen, plan),
        memory: memory::all(),
    };
    print!("{report}");
    if let Some(file) = &options.json
        && let Err(error) = std::fs::write(file, report.to_json())
    {
        return refuse(&results::unwritable(file, &error));
    }
    if report.is_within_hard_budgets() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn names(rows: &[Row]) -> String {
    let names: Vec<String> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
    names.join(", ")
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("hot_path: {why}");
    ExitCode::from(2)
}
