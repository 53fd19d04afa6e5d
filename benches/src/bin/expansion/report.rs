//! The tables, and the same as JSON.

use std::fmt;
use std::thread;

use serde_json::{Value, json};

use crate::binary::{self, Parts};
use crate::build::{Build, Times};
use crate::futures::{SLACK, Size};
use crate::options::Plan;
use crate::source::{KINDS, Twin};
use crate::stack::{DEFAULT, Stack};

/// How much longer than the plain crate the guarded one may take to build, in debug. An aim: time decides nothing here.
const TIMES_PLAIN: f64 = 2.0;

/// Bytes of code, constants and data that a guarded function may add to a program.
const BYTES: f64 = 1_024.0;

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) rustc: String,
    pub(crate) times: Vec<Times>,
    pub(crate) binaries: Option<[Parts; 2]>,
    pub(crate) futures: Vec<Size>,
    pub(crate) stacks: Vec<Stack>,
}

/// Of some figures: the median, the least and the most.
#[derive(Clone, Copy, Debug)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = figures.collect();
        all.sort_by(f64::total_cmp);
        let at = |index: usize| all.get(index).copied().unwrap_or(f64::NAN);
        Self { median: at(all.len() / 2), least: at(0), most: at(all.len().saturating_sub(1)) }
    }

    fn json(self) -> Value {
        json!({ "median": self.median, "min": self.least, "max": self.most })
    }
}

impl Times {
    fn of(&self, twin: Twin) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round[twin as usize].wall))
    }

    /// Of the twins of one round.
    fn ratio(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|[plain, guarded]| guarded.wall / plain.wall))
    }

    /// The same of what they computed, which other load on the machine hardly changes.
    fn ratio_of_cpu(&self) -> Spread {
        Spread::of(self.rounds.iter().filter_map(|[plain, guarded]| Some(guarded.cpu? / plain.cpu?)))
    }

    fn title(&self) -> String {
        format!("{}, {}", self.build.title(), if self.is_clean { "clean" } else { "one body" })
    }
}

impl Report {
    /// Whether futures are, and stacks in debug. All else is an aim.
    pub(crate) fn is_within_budget(&self) -> bool {
        self.futures.iter().all(Size::is_within_budget)
            && self.stacks.iter().filter(|stack| stack.is_debug).all(Stack::is_within_budget)
    }

    /// What the attribute adds to a program for each function it stands on.
    fn added(&self, parts: &[&str]) -> Option<f64> {
        let of = |twin: &Parts| parts.iter().filter_map(|part| twin.get(part)).sum::<u64>();
        let [plain, guarded] = self.binaries.as_ref()?;
        Some((float(of(guarded)) - float(of(plain))) / float(self.plan.functions() as u64))
    }

    fn bytes_of_function(&self) -> Option<f64> {
        self.added(&[binary::CODE, binary::CONSTANTS, binary::DATA])
    }

    pub(crate) fn to_json(&self) -> String {
        let times: Vec<Value> = self.times.iter().map(json_of_times).collect();
        let binary = self.binaries.as_ref().map(|[plain, guarded]| {
            let parts = binary::ALL.map(|part| {
                json!({ "part": part, "plain": plain[part], "guarded": guarded[part], "per_function": self.added(&[part]) })
            });
            json!({ "parts": parts, "bytes_per_function": self.bytes_of_function() })
        });
        let futures: Vec<Value> = self.futures.iter().map(json_of_size).collect();
        let stacks: Vec<Value> = self.stacks.iter().map(json_of_stack).collect();
        let report = json!({
            "functions": self.plan.functions(),
            "rustc": self.rustc,
            "seconds": times,
            "binary": binary,
            "futures": futures,
            "stacks": stacks,
            "is_within_budget": self.is_within_budget(),
        });
        format!("{report:#}\n")
    }

    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = thread::available_parallelism().map_or(0, usize::from);
        writeln!(
            f,
            "seconds of cargo for the crate alone, in turns: the median (from the least to the most)"
        )?;
        writeln!(f, "ratio: of the twins of one round; on {cores} cores, {}", self.rustc)?;
        let [plain, guarded] = Twin::BOTH.map(Twin::name);
        writeln!(
            f,
            "  {:<30}{:>7}{plain:>22}{guarded:>22}{:>22}{:>22}",
            "", "rounds", "ratio", "ratio of CPU time"
        )?;
        for times in &self.times {
            write!(f, "  {:<30}{:>7}", times.title(), times.rounds.len())?;
            for spread in
                Twin::BOTH.map(|twin| times.of(twin)).into_iter().chain([times.ratio(), times.ratio_of_cpu()])
            {
                let Spread { median, least, most } = spread;
                write!(f, "{:>22}", format!("{median:.2} ({least:.2}-{most:.2})"))?;
            }
            let is_aim = times.build == Build::Debug;
            writeln!(
                f,
                "{}",
                if is_aim { verdict(times.ratio().median <= TIMES_PLAIN, "2.0") } else { String::new() }
            )?;
        }
        Ok(())
    }

    fn write_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some([plain, guarded]) = &self.binaries else {
            return writeln!(f, "\nthe size of programs is known only of ELF files");
        };
        writeln!(
            f,
            "\nbytes of a release program that calls all functions; in both there is also a guarded one of each kind"
        )?;
        writeln!(f, "  {:<30}{:>12}{:>12}{:>18}", "", "plain", "guarded", "per function")?;
        for part in binary::ALL {
            let per_function = self.added(&[part]).unwrap_or(f64::NAN);
            writeln!(f, "  {part:<30}{:>12}{:>12}{per_function:>18.0}", plain[part], guarded[part])?;
        }
        let bytes = self.bytes_of_function().unwrap_or(f64::NAN);
        let of = |twin: &Parts| {
            [binary::CODE, binary::CONSTANTS, binary::DATA].iter().map(|part| twin[part]).sum::<u64>()
        };
        let (plain, guarded) = (of(plain), of(guarded));
        let verdict = verdict(bytes <= BYTES, "1024");
        writeln!(f, "  {:<30}{plain:>12}{guarded:>12}{bytes:>18.0}{verdict}", "code, constants and data")
    }

    fn write_futures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nbytes of a future; more: than the plain one and its arguments; Send: the plain one, the guarded one"
        )?;
        writeln!(
            f,
            "  {:<40}{:>10}{:>8}{:>9}{:>7}{:>12}",
            "", "arguments", "plain", "guarded", "more", "Send"
        )?;
        for size in &self.futures {
            let Size { what, arguments, plain, guarded, is_send } = size;
            let is_send = is_send.map(|is_send| if is_send { "yes" } else { "no" }).join(", ");
            write!(f, "  {what:<40}{arguments:>10}{plain:>8}{guarded:>9}{:>7}{is_send:>12}", size.more())?;
            writeln!(f, "{}", verdict(size.is_within_budget(), &SLACK.to_string()))?;
        }
        Ok(())
    }

    fn write_stacks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nKiB of stack that a chain needs, the last function of it alone and all 12, to a page"
        )?;
        writeln!(
            f,
            "small: async, each takes a number and a reference; last large: the last holds 8 KiB besides,"
        )?;
        writeln!(
            f,
            "all large: each is given 8 KiB and holds them while it awaits the next, which gets a copy"
        )?;
        let columns = ["plain, 1", "guarded, 1", "plain, 12", "guarded, 12", "more a function"];
        write!(f, "  {:<30}", "")?;
        columns.iter().try_for_each(|column| write!(f, "{column:>16}"))?;
        writeln!(f)?;
        for stack in &self.stacks {
            let title = format!("{}, {}", if stack.is_debug { "debug" } else { "release" }, stack.kind);
            write!(f, "  {title:<30}")?;
            for bytes in stack.alone.into_iter().chain(stack.twelve) {
                write!(f, "{:>16}", bytes / 1024)?;
            }
            let more = more_of_function(stack) / 1024.0;
            let what = if stack.twelve[0] > DEFAULT {
                "   the plain ones are over 2048".to_owned()
            } else {
                verdict(stack.is_within_budget(), "2048")
            };
            writeln!(f, "{more:>16.1}{what}")?;
        }
        Ok(())
    }
}

/// What the attribute adds to the stack for each of the eleven functions that are above the last, in bytes.
fn more_of_function(stack: &Stack) -> f64 {
    let chain = |twin: usize| f64::from(stack.twelve[twin]) - f64::from(stack.alone[twin]);
    (chain(1) - chain(0)) / 11.0
}

fn json_of_times(times: &Times) -> Value {
    json!({
        "build": times.build.title(),
        "what": if times.is_clean { "clean" } else { "one body" },
        "plain": times.of(Twin::Plain).json(),
        "guarded": times.of(Twin::Guarded).json(),
        "ratio": times.ratio().json(),
        "ratio_of_cpu": times.ratio_of_cpu().json(),
        "rounds": times.rounds.iter().map(|round| round.map(|took| took.wall)).collect::<Vec<_>>(),
    })
}

fn json_of_size(size: &Size) -> Value {
    json!({
        "what": size.what,
        "arguments": size.arguments,
        "plain": size.plain,
        "guarded": size.guarded,
        "more": size.more(),
        "plain_is_send": size.is_send[0],
        "guarded_is_send": size.is_send[1],
    })
}

fn json_of_stack(stack: &Stack) -> Value {
    let [plain_alone, guarded_alone] = stack.alone;
    let [plain, guarded] = stack.twelve;
    json!({
        "kind": stack.kind,
        "debug": stack.is_debug,
        "plain_alone": plain_alone,
        "guarded_alone": guarded_alone,
        "plain": plain,
        "guarded": guarded,
        "more_per_function": more_of_function(stack),
    })
}

fn verdict(is_within: bool, most: &str) -> String {
    format!("   {} {most}", if is_within { "within" } else { "OVER" })
}

#[expect(clippy::cast_precision_loss, reason = "printed without decimals")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} functions of these kinds, one of each in a module:", self.plan.functions())?;
        for kind in KINDS {
            writeln!(f, "  {}", kind.what)?;
        }
        writeln!(f)?;
        self.write_times(f)?;
        self.write_binary(f)?;
        self.write_futures(f)?;
        self.write_stacks(f)
    }
}
