//! Valgrind's callgrind, and the profiles that it writes.

use std::path::Path;
use std::process::Command;

/// Calls of a row. Some thousands: a statistics bucket turns by the clock, and what that takes is to vanish among them.
const CALLS: u32 = 10_000;

/// What a call takes, rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instructions {
    /// In the program itself: leap, the crates below it and std.
    pub(crate) own: u32,
    /// In the system's libraries.
    pub(crate) outside: u32,
}

pub(crate) fn is_installed() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Makes calls of one row under callgrind, and keeps the profile.
pub(crate) fn count(program: &Path, row: &str, profile: &Path) -> Result<Instructions, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--toggle-collect=*counted_calls*"]);
    // Names and lines in full, so that they need not be put together again.
    command.args(["--compress-strings=no", "--compress-pos=no"]);
    command.arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(program).args(["--instructions", row, &CALLS.to_string()]);
    let output = command.output().map_err(|error| format!("valgrind cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("`{row}`: {}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    if !said.contains(", 0 of them ended otherwise") {
        return Err(format!("`{row}` does not do what is counted: {}", said.trim()));
    }
    let text =
        std::fs::read_to_string(profile).map_err(|error| format!("`{}`: {error}", profile.display()))?;
    totals(&text, program)
        .and_then(|totals| per_call(totals, CALLS))
        .ok_or_else(|| format!("`{}` is no profile that adds up", profile.display()))
}

/// What all calls took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    own: u64,
    outside: u64,
}

/// Adds up a profile; none if the sum is not the one that it gives itself.
///
/// A line of costs follows the object that it belongs to, `ob=`. The one after `calls=` is what those calls took, which
/// stands where they went as well.
fn totals(profile: &str, program: &Path) -> Option<Totals> {
    let (mut totals, mut is_own, mut is_of_calls, mut summary) = (Totals::default(), false, false, None);
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_own = Path::new(object) == program;
        } else if let Some(sum) = line.strip_prefix("summary:") {
            summary = Some(sum.trim().parse::<u64>().ok()?);
        } else if line.starts_with("calls=") {
            is_of_calls = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            if std::mem::take(&mut is_of_calls) {
                continue;
            }
            let (_, cost) = line.split_once(' ')?;
            let total = if is_own { &mut totals.own } else { &mut totals.outside };
            *total += cost.trim().parse::<u64>().ok()?;
        }
    }
    (summary == Some(totals.own + totals.outside)).then_some(totals)
}

fn per_call(totals: Totals, calls: u32) -> Option<Instructions> {
    let calls = u64::from(calls);
    let of_one = |total: u64| u32::try_from((total + calls / 2) / calls).ok();
    Some(Instructions { own: of_one(totals.own)?, outside: of_one(totals.outside)? })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Instructions, Totals, per_call, totals};

    const PROFILE: &str = "\
# callgrind format
version: 1
cmd:  /release/hot_path --instructions statistics 10000
part: 1

desc: Timerange: Basic block 0 - 3175173

positions: line
events: Ir
summary: 1000

ob=/lib/libc.so.6
fl=memcmp.S
fn=memcmp
80 100
81 20

fn=main
cob=/release/hot_path
cfn=enter
calls=10 0
360 880

ob=/release/hot_path
fl=enter.rs
fn=enter
256 700
fi=cmp.rs
0 180
cob=/lib/libc.so.6
cfn=memcmp
calls=10 80
7 120

totals: 1000
";

    #[test]
    fn what_is_spent_in_the_program_and_outside_is_told_apart_and_calls_are_not_counted_twice() {
        let program = Path::new("/release/hot_path");
        assert_eq!(totals(PROFILE, program), Some(Totals { own: 880, outside: 120 }));
    }

    #[test]
    fn a_profile_that_does_not_add_up_is_none() {
        let program = Path::new("/release/hot_path");
        assert_eq!(totals(&PROFILE.replace("256 700", "256 701"), program), None);
        assert_eq!(totals(&PROFILE.replace("256 700", "256 many"), program), None);
        assert_eq!(totals("", program), None);
    }

    #[test]
    fn a_call_takes_its_share_rounded() {
        let totals = Totals { own: 3_125, outside: 44 };
        assert_eq!(per_call(totals, 10), Some(Instructions { own: 313, outside: 4 }));
    }
}
