//! How exactly limiters keep their limit: the same loads for each, beside a sliding log.
//!
//! ```text
//! RUST_BACKTRACE=0 cargo run --release --manifest-path benches/peers/Cargo.toml --bin accuracy [-- --quick] [--keep PAGE]
//! ```
//!
//! What is counted of each load: how many pass in a second of the limiter's clock, the most in any span of one second,
//! and how many pass beside those that a plain sliding log lets pass of the same calls.
//!
//! *Threads that ask without a pause* run on real clocks. When a call was decided only the limiter knows. For leap we do,
//! too: its clock is ours, and notes the reading that it went by. For the others it is between a reading before the call and
//! one after it; what is told of the fullest second is then what certainly passed in it, and, where that differs, what can
//! have. So nobody is said to be over the limit who need not have been.
//!
//! *Bursts* come on clocks that are set, to the nanosecond; a limiter that takes no such clock gets a few of them in real
//! time.
//!
//! The exit code is 1 if leap breaks a promise. None of them depends on how fast the machine is: see `promise.rs`.

mod bursts;
mod calls;
mod counts;
mod hammer;
mod limiters;
mod loads;
mod log;
mod options;
mod promise;
mod report;
mod versions;

use std::process::ExitCode;

use leap_benches::results;

use self::options::{Options, USAGE};

const COMMAND: &str =
    "RUST_BACKTRACE=0 cargo run --release --manifest-path benches/peers/Cargo.toml --bin accuracy";

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => return refuse(&wrong),
    };
    if options.help {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if let Err(wrong) = results::check_writable(&options.keep) {
        return refuse(&wrong);
    }
    let report = loads::all(options.plan());
    println!("{report}");
    if let Some(page) = &options.keep {
        let command = format!("{COMMAND}{}", if options.quick { " -- --quick" } else { "" });
        let (taken, versions) = (results::taken(&command), versions::all());
        let text = format!("## Accuracy\n\n{taken}; {versions}.\n\n{ABOUT}\n\n{report}");
        if let Err(error) = results::keep(page, "accuracy", &text) {
            return refuse(&results::unwritable(page, &error));
        }
    }
    if report.is_all_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

const ABOUT: &str = "\
The same calls for each limiter, and for a plain sliding log, which lets a call pass unless the limit passed within the \
last second. Aligned seconds are those of the limiter's clock in which calls came; `over` is more than the limit in some \
span of one second. Token buckets (governor, ratelimit, leaky-bucket) do not promise to hold that: they save up a burst \
and refill it meanwhile. With threads in real time, leap exact is judged at its own clock reading, the first of each \
call, because that is what it decides by; leap's other limiters between that reading and one after the call, and \
limiters of others between a reading before the call and one after it. Where two figures stand for the fullest \
second, the moment of a call is known only to lie between a reading of the clock before it and one after it: so many \
passed for certain, so many at most.";

fn refuse(why: &str) -> ExitCode {
    eprintln!("accuracy: {why}");
    ExitCode::from(2)
}
