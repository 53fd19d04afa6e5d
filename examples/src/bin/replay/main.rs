//! Replays recorded calls through a guarded function, on virtual time.
//!
//! ```text
//! cargo run --release -p leap-examples --bin replay -- trace.csv --qps 10
//! ```
//!
//! The guarded function is an ordinary one with an ordinary attribute. Its registry has a clock that is set by hand,
//! and the rules of the command line. So an hour of traffic takes some milliseconds, and the same traffic always
//! ends the same.

#![allow(clippy::print_stderr, reason = "bad rows and errors are for whoever started the program")]

mod options;
mod report;
mod simulation;
mod trace;

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use leap_runtime::{Precision, Rule, RuleSet};
use options::{Command, Options};
use report::Report;
use trace::Call;

fn main() -> ExitCode {
    let wrong_options = |error: &dyn Error| {
        eprintln!("replay: {error} (`--help` lists the options)");
        ExitCode::from(2)
    };
    let options = match Command::parse(std::env::args_os().skip(1)) {
        Ok(Command::Replay(options)) => options,
        Ok(Command::Help) => return print(options::HELP),
        Err(error) => return wrong_options(&error),
    };
    let rules = match options.rules(simulation::RESOURCE) {
        Ok(rules) => rules,
        Err(error) => return wrong_options(&error),
    };
    if options.buckets.is_some() && rules.of(simulation::RESOURCE).iter().any(|named| is_exact(named.rule()))
    {
        eprintln!("replay: precision exact counts without buckets, so `--buckets` changes nothing");
    }
    match report(&options, &rules) {
        Ok(report) if options.json => print(&format!("{}\n", report.json())),
        Ok(report) => print(&report.to_string()),
        Err(error) => failed(&error),
    }
}

fn is_exact(rule: &Rule) -> bool {
    matches!(rule, Rule::Flow(rule) if rule.precision() == Precision::Exact)
}

fn report(options: &Options, rules: &RuleSet) -> Result<Report, String> {
    let (source, calls) = traffic(options)?;
    let outcome = simulation::replay(&calls, rules.clone()).map_err(|error| error.to_string())?;
    Ok(Report::new(source, rules, &calls, outcome))
}

/// The calls to replay, and where they are from.
fn traffic(options: &Options) -> Result<(String, Vec<Call>), String> {
    let Some(file) = &options.file else {
        let (rows, seed) = (options.rows.unwrap_or(10_000), options.seed.unwrap_or(1));
        return Ok((format!("made up from seed {seed}"), trace::synthetic(rows, seed)));
    };
    let file = file.display().to_string();
    let csv = fs::read(&file).map_err(|error| format!("cannot read {file}: {error}"))?;
    // What is not UTF-8 is no number either, so its row is reported like any other bad one.
    let (calls, bad_rows) =
        trace::read(&String::from_utf8_lossy(&csv)).map_err(|error| format!("{file} {error}"))?;
    for row in bad_rows {
        eprintln!("replay: {file}, {row}");
    }
    Ok((file, calls))
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("replay: {error}");
    ExitCode::FAILURE
}
