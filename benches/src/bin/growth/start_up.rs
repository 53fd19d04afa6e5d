//! The first guarded call of a process, and the first of a thousand functions.

use std::process::{Command, ExitCode};
use std::time::Instant;
use std::{env, io};

use leap_runtime::{Blocked, guarded};

use crate::calls;
use crate::options::FIRST_CALLS;

/// Milliseconds, each sorted: of as many processes.
#[derive(Debug)]
pub(crate) struct StartUp {
    /// The first call, in which the global registry is made and its clock started.
    pub(crate) first: Vec<f64>,
    /// The first calls of [`FUNCTIONS`] further call sites.
    pub(crate) further: Vec<f64>,
}

/// How long the first call may take.
pub(crate) const BUDGET_MS: f64 = 2.0;

pub(crate) const FUNCTIONS: usize = 1_000;

#[guarded(resource = "growth.first", qps = 1_000, slow_rt_ms = 200, slow_ratio = 0.5)]
#[inline(never)]
fn first(x: u64) -> Result<u64, Blocked> {
    Ok(x)
}

/// What a child does: it prints how long its first calls took, in ns.
pub(crate) fn child() -> ExitCode {
    let began = Instant::now();
    let is_ok = first(1).is_ok();
    let first_took = began.elapsed();
    let sites: Vec<_> = (0..FUNCTIONS).map(|i| calls::site(format!("growth.first.{i}"))).collect();
    let began = Instant::now();
    let are_ok = sites.iter().all(|site| calls::call(site, 1));
    println!("{} {}", first_took.as_nanos(), began.elapsed().as_nanos());
    if is_ok && are_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs so many children, one after another.
pub(crate) fn measure(children: usize) -> io::Result<StartUp> {
    let program = env::current_exe()?;
    let mut start_up = StartUp { first: vec![], further: vec![] };
    for _ in 0..children {
        let output = Command::new(&program).arg(FIRST_CALLS).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ns: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let ([first, further], true) = (&ns[..], output.status.success()) else {
            return Err(io::Error::other(format!("a child said `{text}`: {}", output.status)));
        };
        start_up.first.push(first / 1e6);
        start_up.further.push(further / 1e6);
    }
    start_up.first.sort_by(f64::total_cmp);
    start_up.further.sort_by(f64::total_cmp);
    Ok(start_up)
}
