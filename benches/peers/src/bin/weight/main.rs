//! What leap and its peers add to a program: crates, time to build, size.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml --bin weight [-- --quick] [--keep PAGE]
//! ```
//!
//! For each a package is written into the target directory, whose program guards one function as its README shows. It is
//! built there, in a target directory of its own; the network is asked once, for what is not there yet.
//!
//! - *Crates* are those that a build for this system takes in, those of its macros among them.
//! - *Building* is what is computed to build them all from nothing, by all processes together, in rounds: each of them in
//!   turn. Only where the system does not tell is it the time that passed.
//! - *The program* is built for release and stripped; what counts is by how much it is larger than one that calls the
//!   function unguarded.

mod contenders;
mod package;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use leap_benches::results;

use self::contenders::{ALL, PLAIN};
use self::package::{Build, Package};
use self::report::{Report, Row};

const USAGE: &str = "\
weight [--quick] [--keep PAGE]
    builds small programs with leap and with others; --quick in one round instead of three; --keep writes the section of \
    a page";

const COMMAND: &str = "cargo run --release --manifest-path benches/peers/Cargo.toml --bin weight";

fn main() -> ExitCode {
    let (mut n_rounds, mut keep) = (3, None::<PathBuf>);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match (word.as_str(), &mut words) {
            ("--help" | "-h", _) => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            ("--quick", _) => n_rounds = 1,
            ("--keep", words) => match words.next() {
                Some(page) => keep = Some(page.into()),
                None => return refuse(&format!("`--keep` needs a page\n{USAGE}")),
            },
            _ => return refuse(&format!("unknown argument `{word}`\n{USAGE}")),
        }
    }
    let report = match weigh(n_rounds) {
        Ok(report) => report,
        Err(why) => return refuse(&why),
    };
    println!("{report}");
    if let Some(page) = keep {
        let command = if n_rounds == 1 { format!("{COMMAND} -- --quick") } else { COMMAND.to_owned() };
        let text = format!("## Weight\n\n{}.\n\n{}\n\n{report}", results::taken(&command), about(n_rounds));
        if let Err(error) = results::keep(&page, "weight", &text) {
            return refuse(&format!("`{}`: {error}", page.display()));
        }
    }
    ExitCode::SUCCESS
}

fn weigh(n_rounds: usize) -> Result<Report, String> {
    let (plain_size, plain_said) = Package::write(&PLAIN)?.program()?;
    let mut all = Vec::new();
    for contender in &ALL {
        let package = Package::write(contender)?;
        let n_crates = package.crates()?.len();
        let (debug, release) = (Vec::new(), Vec::new());
        let row = Row { name: contender.name, does: contender.does, n_crates, debug, release, bytes: 0 };
        all.push((package, row));
    }
    for round in 1..=n_rounds {
        for (package, row) in &mut all {
            eprintln!("round {round}: {}", row.name);
            row.debug.push(package.build_dependencies(Build::Debug)?);
            row.release.push(package.build_dependencies(Build::Release)?);
            let (size, said) = package.program()?;
            if said != plain_said {
                return Err(format!("the plain program says {plain_said}, that of {} {said}", row.name));
            }
            row.bytes = size.saturating_sub(plain_size);
        }
    }
    Ok(Report(all.into_iter().map(|(_, row)| row).collect()))
}

fn about(n_rounds: usize) -> String {
    let rounds =
        if n_rounds == 1 { "one round".to_owned() } else { format!("{n_rounds} interleaved rounds, median") };
    format!(
        "What each adds to a program that guards one function as its README shows. Crates: of a build for this system, macros \
         included. Builds: CPU seconds of all processes for the dependencies alone, from nothing; {rounds}. Program: KiB by \
         which a stripped release binary is larger than one that calls the function unguarded."
    )
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("weight: {why}");
    ExitCode::from(2)
}
