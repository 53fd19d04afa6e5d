//! Whether a call takes as many instructions as it did: a guard on speed that no other load disturbs.
//!
//! ```text
//! cargo run --release -p leap-benches --bin instructions [-- --refresh]
//! ```
//!
//! Rows of `hot_path` are run under valgrind's callgrind, each in a process of its own, and the instructions of a call
//! are compared with those in `benches/instructions.txt`. The exit code is 1 if a row is more than 3 % off, either way;
//! `--refresh` writes down what is meant to be so. Time has next to no part in it: it decides when a bucket of the
//! statistics turns, and that is lost among 10 000 calls.
//!
//! What is compared is what the program itself executes. What it calls in the system's C library (to copy, to compare,
//! to allocate) depends on that library's version and on what it finds the processor able to do, and stands beside, as
//! `outside`. One compiler makes the same code on every machine, and another makes other code: the file names the one
//! it was taken with, and nothing is compared under another. Then, and where there is no valgrind, a line says that the
//! comparison was `skipped`; with `LEAP_REQUIRE_SERVICES=1` that is an error.
//!
//! `hot_path` is built first, without what the environment would change about its code. The profiles of the last run
//! stay beside it, e.g. for `callgrind_annotate target/release/callgrind/qps-exact.out`.

mod callgrind;
mod committed;
mod comparison;
mod options;
mod program;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use self::callgrind::Instructions;
use self::committed::{Committed, Row};
use self::comparison::{Compared, Comparison};
use self::options::Task;
use self::program::Program;

const REFRESH: &str = "cargo run --release -p leap-benches --bin instructions -- --refresh";

fn main() -> ExitCode {
    let done = options::parse(std::env::args().skip(1)).and_then(|task| match task {
        Task::Help => {
            println!("{}", options::USAGE);
            Ok(ExitCode::SUCCESS)
        }
        Task::Compare => compare(),
        Task::Refresh => refresh(),
    });
    done.unwrap_or_else(|why| {
        eprintln!("instructions: {why}");
        ExitCode::from(2)
    })
}

fn compare() -> Result<ExitCode, String> {
    let committed = read()?;
    if !callgrind::is_installed() {
        return skip("valgrind is not installed");
    }
    let program = Program::build()?;
    if program.compiler != committed.compiler {
        let (taken, this) = (&committed.compiler, &program.compiler);
        return skip(&format!("the counts were taken with {taken}, and this is {this}; anew: `{REFRESH}`"));
    }
    let comparison = count(&program, &committed)?;
    print!("{comparison}");
    let beyond: Vec<String> = comparison.beyond().iter().map(|row| format!("`{}`", row.row)).collect();
    if beyond.is_empty() {
        println!("\n{}", comparison.verdict());
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "\nToo far from what is committed: {}. Where the instructions are is told by\n    callgrind_annotate {}\n\
         If that is how it should be, write the counts down, and tell in the commit what changed them:\n    {REFRESH}\n\n{}",
        beyond.join(", "),
        program.profile("ROW")?.display(),
        comparison.verdict(),
    );
    Ok(ExitCode::FAILURE)
}

fn refresh() -> Result<ExitCode, String> {
    let committed = read()?;
    if !callgrind::is_installed() {
        return Err("valgrind is not installed".to_owned());
    }
    let program = Program::build()?;
    let comparison = count(&program, &committed)?;
    print!("{comparison}");
    let counts: Vec<u32> = comparison.0.iter().map(|row| row.now.own).collect();
    let file = file();
    std::fs::write(&file, committed.with(&program.compiler, &counts))
        .map_err(|error| format!("`{}` cannot be written: {error}", file.display()))?;
    println!("\nwritten to `{}`", file.display());
    Ok(ExitCode::SUCCESS)
}

/// Where nothing may be missing, as in CI, what cannot be compared is an error.
fn skip(why: &str) -> Result<ExitCode, String> {
    if std::env::var_os("LEAP_REQUIRE_SERVICES").is_some_and(|value| value == "1") {
        return Err(format!("{why} (LEAP_REQUIRE_SERVICES=1: nothing is skipped)"));
    }
    println!("skipped: {why}");
    Ok(ExitCode::SUCCESS)
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt")
}

fn read() -> Result<Committed, String> {
    let file = file();
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
    text.and_then(|text| Committed::parse(&text)).map_err(|why| format!("`{}`: {why}", file.display()))
}

/// Counts each row, as many at a time as there are cores.
fn count(program: &Program, committed: &Committed) -> Result<Comparison, String> {
    let rows = committed.rows();
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Vec<(usize, Instructions)>, String> {
        let mut counted = Vec::new();
        while let (index, Some(row)) = take(&next, &rows) {
            counted.push((index, callgrind::count(&program.path, &row.name, &program.profile(&row.name)?)?));
        }
        Ok(counted)
    };
    let n_workers = thread::available_parallelism().map_or(1, usize::from);
    let counted: Result<Vec<_>, String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..n_workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    });
    let mut counted: Vec<(usize, Instructions)> = counted?.into_iter().flatten().collect();
    counted.sort_by_key(|(index, _)| *index);
    let compared = counted.into_iter().map(|(index, now)| {
        let Row { name, count } = rows[index];
        Compared { row: name.clone(), committed: *count, now }
    });
    Ok(Comparison(compared.collect()))
}

/// The next row that nobody has taken.
fn take<'a>(next: &AtomicUsize, rows: &[&'a Row]) -> (usize, Option<&'a Row>) {
    let index = next.fetch_add(1, Relaxed);
    (index, rows.get(index).copied())
}
