//! What the command line says.

use std::ffi::OsString;
use std::time::Duration;

use leap_examples::number;
use lexopt::prelude::*;

pub(crate) const HELP: &str = "\
A small web shop whose handlers and whose supplier's client are guarded, under load of its own making.

Usage: storefront [OPTIONS]

While it runs, customers send it more requests than it takes, one keeps going away, and for a while its supplier
is slow and fails. At the end the answers that the customers had are compared with what the registry counted.

      --seconds N  how long to run, 4 to 3600 [15]
      --port N     where on 127.0.0.1 to listen; 0 is any free port [0]
      --serve      run without customers and without trouble, until ctrl-c
  -h, --help       print this
";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Run(Options),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) port: u16,
    /// How long to run under load; none without it.
    pub(crate) load: Option<Duration>,
}

impl Command {
    /// Reads the arguments; the program's own name is not among them.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, lexopt::Error> {
        let mut parser = lexopt::Parser::from_args(args);
        let (mut port, mut seconds, mut is_serving) = (0, None, false);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("seconds") => seconds = Some(number(&mut parser, "--seconds")?),
                Long("port") => port = number(&mut parser, "--port")?,
                Long("serve") => is_serving = true,
                Short('h') | Long("help") => return Ok(Self::Help),
                _ => return Err(arg.unexpected()),
            }
        }
        let load = match seconds {
            Some(_) if is_serving => {
                return Err("`--serve` runs until it is stopped, so it takes no `--seconds`".into());
            }
            None if is_serving => None,
            Some(seconds @ (..4 | 3_601..)) => {
                return Err(format!(
                    "`--seconds {seconds}` will not do: breakers need 4 to open and close again, and 3600 are enough"
                )
                .into());
            }
            seconds => Some(Duration::from_secs(seconds.unwrap_or(15))),
        };
        Ok(Self::Run(Options { port, load }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn it_runs_for_15_seconds_on_any_port_unless_told_otherwise() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));

        assert_eq!(parse(""), Ok(Command::Run(Options { port: 0, load: seconds(15) })));
        assert_eq!(
            parse("--port 8080 --seconds 4"),
            Ok(Command::Run(Options { port: 8080, load: seconds(4) }))
        );
        assert_eq!(parse("--serve"), Ok(Command::Run(Options { port: 0, load: None })));
        assert_eq!(parse("--help --nonsense"), Ok(Command::Help));
    }

    #[test]
    fn what_makes_no_sense_is_said_in_one_line() {
        for (line, error) in [
            ("--prot 1", "invalid option '--prot'"),
            ("--port 65536", "`--port 65536` will not do: number too large to fit in target type"),
            (
                "--seconds 3",
                "`--seconds 3` will not do: breakers need 4 to open and close again, and 3600 are enough",
            ),
            ("--serve --seconds 9", "`--serve` runs until it is stopped, so it takes no `--seconds`"),
            ("8080", "unexpected argument \"8080\""),
        ] {
            assert_eq!(parse(line), Err(error.to_owned()), "{line}");
        }
    }
}
