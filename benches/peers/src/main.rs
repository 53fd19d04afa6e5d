//! leap beside what people use today: what a call costs, in interleaved rounds on the same machine.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml [-- --quick] [--only SUBSTRING] [--json FILE] [--keep PAGE]
//! ```
//!
//! What is compared is not the same promise: each row says what it does, and what it leaves out. Everybody reads the
//! processor's counter through quanta or the system's clock through std, as its own crate has it. The exit code is 0
//! whatever the time; calls that are answered otherwise than the row says are told.

mod options;
mod page;
mod peers;
mod report;
mod row;
mod runtime;
mod text;
mod versions;

use std::process::{Command, ExitCode};
use std::time::Duration;
use std::{env, fs, io};

use leap_benches::alloc::{self, Counting};
use leap_benches::measure::{self, Plan};
use leap_benches::results;

use self::options::Options;
use self::peers::sentinel;
use self::report::{Phase, Report};
use self::row::Row;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Some calls take a thousand times as long as others, and short batches of two threads are seldom interrupted.
const LONGEST: Duration = Duration::from_micros(600);

/// How long all rounds of the rows may take, and those with the ticker.
const FULL: [Duration; 2] = [Duration::from_secs(120), Duration::from_secs(25)];
const QUICK: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(3)];

fn main() -> ExitCode {
    let options = match options::parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => return refuse(&wrong),
    };
    if options.help {
        println!("{}", options::USAGE);
        return ExitCode::SUCCESS;
    }
    let done = if takes_backtraces() {
        without_backtraces().map_err(|error| error.to_string())
    } else {
        run(&options).map(|()| ExitCode::SUCCESS)
    };
    done.unwrap_or_else(|why| refuse(&why))
}

fn run(options: &Options) -> Result<(), String> {
    let rows = peers::all();
    if !rows.iter().any(|row| options.names(row)) {
        let names: Vec<_> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
        return Err(format!("no row is called so; there are {}", names.join(", ")));
    }
    results::check_writable(options.json.iter().chain(&options.keep))?;
    let chosen: Vec<&Row> = rows.iter().filter(|row| options.wants(row)).collect();
    let again: Vec<&Row> = chosen.iter().copied().filter(|row| row.with_ticker).collect();
    let (plan, [at_most, at_most_again]) =
        if options.quick { (Plan::QUICK, QUICK) } else { (Plan::FULL, FULL) };
    let plan = plan.with_longest(LONGEST);
    let allocations = chosen.iter().map(|row| (row.name, measure::allocations(*row))).collect();
    alloc::stop();
    let by_its_clock = Phase(measure::rounds(&chosen, plan.within(at_most)));
    sentinel::start_ticker();
    let by_ticker = Phase(measure::rounds(&again, plan.within(at_most_again)));
    let report = Report { plan, allocations, by_its_clock, by_ticker };
    print!("{report}");
    if let Some(file) = &options.json {
        fs::write(file, report.to_json()).map_err(|error| results::unwritable(file, &error))?;
    }
    if let Some(page) = &options.keep {
        let section = page::section(&report, &options.command());
        results::keep(page, "cost", &section).map_err(|error| results::unwritable(page, &error))?;
    }
    Ok(())
}

/// Whether errors of sentinel-core's would be made with a backtrace, which is not what it is to be measured by.
fn takes_backtraces() -> bool {
    ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| value != "0"))
}

/// The same program again: a process cannot safely change its own environment.
fn without_backtraces() -> io::Result<ExitCode> {
    let mut again = Command::new(env::current_exe()?);
    let status = again
        .args(env::args_os().skip(1))
        .env("RUST_BACKTRACE", "0")
        .env("RUST_LIB_BACKTRACE", "0")
        .status()?;
    // Of one that a signal ended there is no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("leap-peers: {why}");
    ExitCode::from(2)
}
