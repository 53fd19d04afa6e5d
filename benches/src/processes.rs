//! Programs that are run, cargo above all, and what they take.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;
use std::{env, fs};

/// What a program took, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// From its start to its end.
    pub wall: f64,
    /// Of all its processes together, where the system tells.
    pub cpu: Option<f64>,
}

/// The cargo that runs this program, or that of the path.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The version of the compiler.
///
/// # Errors
///
/// There is none, or it does not tell.
pub fn rustc() -> Result<String, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = run(Command::new(rustc).arg("--version"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a program to its end, and gives what it said.
///
/// # Errors
///
/// It cannot be run, or failed; then with what it said.
pub fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{command:?}: {}\n{said}{complained}", output.status))
}

/// As [`run`], and tells how long it took. No other program may have been started meanwhile.
///
/// # Errors
///
/// As [`run`].
pub fn timed(command: &mut Command) -> Result<Took, String> {
    let (began, cpu_before) = (Instant::now(), cpu_of_children());
    run(command)?;
    let wall = began.elapsed().as_secs_f64();
    let cpu = cpu_of_children().zip(cpu_before).map(|(after, before)| after - before);
    Ok(Took { wall, cpu })
}

/// The seconds that the processes have computed which this one has started, and those that they have, as Linux tells.
fn cpu_of_children() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces in it.
    let (_, after_name) = stat.rsplit_once(')')?;
    let ticks = after_name.split_whitespace().skip(13).take(2);
    // A hundredth of a second each, on every machine that Linux runs on.
    Some(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// That in which this program was built.
///
/// # Errors
///
/// The program was moved to somewhere else.
pub fn target_directory() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let target = program.ancestors().nth(2);
    Ok(target.ok_or("this program is not in a target directory")?.to_owned())
}
