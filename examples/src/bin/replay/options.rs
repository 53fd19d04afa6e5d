//! What the command line says.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use leap_examples::number;
use leap_runtime::{Behavior, BreakerRule, FlowRule, IsolationRule, Precision, RuleError, RuleSet};
use lexopt::prelude::*;

pub(crate) const HELP: &str = "\
Replays recorded calls through a guarded function, on virtual time, and tells what became of them.

Usage: replay [OPTIONS] [FILE]

FILE is a CSV trace with the columns TIMESTAMP and GeneratedTokens; a call that passes runs for one
millisecond per token. Without a file the calls are made up. No rule is armed without its option.

      --qps N                let N calls through in any second
      --precision PRECISION  how `--qps` is counted: exact, strict or sentinel
                             [exact up to 1024, above that strict]
      --buckets N            parts of the second that strict and sentinel count in [100]
      --max-concurrency N    let N calls run at the same time
      --slow-rt-ms N         open a circuit breaker when calls take longer than N ms
      --rows N               how many calls to make up without a file [10000]
      --seed N               what to make them up from [1]
      --json                 print one JSON object
  -h, --help                 print this
";

/// What to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Help,
    Replay(Options),
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) file: Option<PathBuf>,
    pub(crate) rows: Option<usize>,
    pub(crate) seed: Option<u64>,
    pub(crate) qps: Option<f64>,
    pub(crate) precision: Option<Precision>,
    pub(crate) buckets: Option<u32>,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) slow_rt_ms: Option<u64>,
    pub(crate) json: bool,
}

impl Command {
    /// Reads the arguments; the program's own name is not among them.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, lexopt::Error> {
        let mut parser = lexopt::Parser::from_args(args);
        let mut options = Options::default();
        while let Some(arg) = parser.next()? {
            match arg {
                Long("qps") => options.qps = Some(number(&mut parser, "--qps")?),
                Long("precision") => options.precision = Some(precision(&parser.value()?.string()?)?),
                Long("buckets") => options.buckets = Some(number(&mut parser, "--buckets")?),
                Long("max-concurrency") => {
                    options.max_concurrency = Some(number(&mut parser, "--max-concurrency")?);
                }
                Long("slow-rt-ms") => options.slow_rt_ms = Some(number(&mut parser, "--slow-rt-ms")?),
                Long("rows") => options.rows = Some(rows(&mut parser)?),
                Long("seed") => options.seed = Some(number(&mut parser, "--seed")?),
                Long("json") => options.json = true,
                Short('h') | Long("help") => return Ok(Self::Help),
                Value(file) if options.file.is_none() => options.file = Some(file.into()),
                _ => return Err(arg.unexpected()),
            }
        }
        if options.qps.is_none() && (options.precision.is_some() || options.buckets.is_some()) {
            return Err("`--precision` and `--buckets` say how `--qps` is counted, which is missing".into());
        }
        if options.file.is_some() && (options.rows.is_some() || options.seed.is_some()) {
            return Err("`--rows` and `--seed` make up calls, which a file already has".into());
        }
        Ok(Self::Replay(options))
    }
}

impl Options {
    /// The rules that the options arm on `resource`.
    pub(crate) fn rules(&self, resource: &str) -> Result<RuleSet, RuleError> {
        let mut rules = RuleSet::new();
        if let Some(qps) = self.qps {
            let mut rule = FlowRule::new(qps, Behavior::Reject)?;
            if let Some(precision) = self.precision {
                rule = rule.with_precision(precision)?;
            }
            if let Some(n_buckets) = self.buckets {
                rule = rule.with_buckets(n_buckets)?;
            }
            rules = rules.flow(resource, rule);
        }
        if let Some(max) = self.max_concurrency {
            rules = rules.isolation(resource, IsolationRule::new(max));
        }
        if let Some(slow_rt_ms) = self.slow_rt_ms {
            rules = rules.breaker(resource, BreakerRule::slow_ratio(Duration::from_millis(slow_rt_ms), 1.0)?);
        }
        Ok(rules)
    }
}

/// How many calls to make up: more would not fit into the memory of a small machine.
fn rows(parser: &mut lexopt::Parser) -> Result<usize, lexopt::Error> {
    match number(parser, "--rows")? {
        rows if rows <= 10_000_000 => Ok(rows),
        rows => Err(format!("`--rows {rows}` is too many: at most 10000000").into()),
    }
}

fn precision(text: &str) -> Result<Precision, lexopt::Error> {
    match text {
        "exact" => Ok(Precision::Exact),
        "strict" => Ok(Precision::Strict),
        "sentinel" => Ok(Precision::Sentinel),
        _ => Err(format!("`--precision {text}` will not do: say exact, strict or sentinel").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_is_read() {
        let line =
            "--qps 2.5 --precision sentinel --buckets=2 trace.csv --max-concurrency 7 --slow-rt-ms 90 --json";

        assert_eq!(
            parse(line),
            Ok(Command::Replay(Options {
                file: Some("trace.csv".into()),
                qps: Some(2.5),
                precision: Some(Precision::Sentinel),
                buckets: Some(2),
                max_concurrency: Some(7),
                slow_rt_ms: Some(90),
                json: true,
                ..Options::default()
            }))
        );
        assert_eq!(
            parse("--rows 12 --seed 3"),
            Ok(Command::Replay(Options { rows: Some(12), seed: Some(3), ..Options::default() }))
        );
        assert_eq!(parse(""), Ok(Command::Replay(Options::default())));
        assert_eq!(parse("--qps 1 -h --whatever"), Ok(Command::Help));
    }

    #[test]
    fn what_makes_no_sense_is_said_in_one_line() {
        for (line, error) in [
            ("--qsp 10", "invalid option '--qsp'"),
            ("--qps", "missing argument for option '--qps'"),
            ("--qps ten", "`--qps ten` will not do: invalid float literal"),
            ("--qps 1 --buckets -2", "`--buckets -2` will not do: invalid digit found in string"),
            ("--qps 1 --precision fine", "`--precision fine` will not do: say exact, strict or sentinel"),
            ("--buckets 2", "`--precision` and `--buckets` say how `--qps` is counted, which is missing"),
            ("--rows 10000001", "`--rows 10000001` is too many: at most 10000000"),
            ("a.csv --rows 2", "`--rows` and `--seed` make up calls, which a file already has"),
            ("a.csv b.csv", "unexpected argument \"b.csv\""),
            ("--json=yes", "unexpected argument for option '--json': \"yes\""),
        ] {
            assert_eq!(parse(line), Err(error.to_owned()), "{line}");
        }
    }

    #[test]
    fn no_rule_is_armed_without_its_option() {
        let Ok(Command::Replay(options)) = parse("") else { panic!("no option is needed") };

        assert_eq!(options.rules("llm.code"), Ok(RuleSet::new()));
    }

    #[test]
    fn a_rule_that_cannot_be_held_is_an_error() {
        for line in ["--qps -1", "--qps nan", "--qps 10 --precision strict --buckets 7"] {
            let Ok(Command::Replay(options)) = parse(line) else { panic!("{line} can be parsed") };

            assert!(options.rules("llm.code").is_err(), "{line}");
        }
    }
}
