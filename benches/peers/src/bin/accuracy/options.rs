//! The command line.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) const USAGE: &str = "\
accuracy [--quick] [--keep PAGE]
    asks leap's limiters and others the same; --quick fewer of them, for less long; --keep writes the section of a page";

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) help: bool,
    pub(crate) quick: bool,
    pub(crate) keep: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => options.help = true,
                "--quick" => options.quick = true,
                "--keep" => {
                    let page = words.next().ok_or_else(|| format!("`--keep` needs a page\n{USAGE}"))?;
                    options.keep = Some(page.into());
                }
                _ => return Err(format!("unknown argument `{word}`\n{USAGE}")),
            }
        }
        Ok(options)
    }

    pub(crate) fn plan(&self) -> Plan {
        if self.quick { Plan::QUICK } else { Plan::FULL }
    }
}

/// How much is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Of those that are hammered, or else a few.
    pub(crate) all: bool,
    pub(crate) hammered: Duration,
    /// On clocks that are set.
    pub(crate) idle_times: u64,
    pub(crate) boundaries: u64,
    pub(crate) saturated: Duration,
    /// In real time.
    pub(crate) real_idle_times: u64,
    pub(crate) real_boundaries: u64,
}

impl Plan {
    const FULL: Self = Self {
        all: true,
        hammered: Duration::from_secs(5),
        idle_times: 10,
        boundaries: 20,
        saturated: Duration::from_secs(1_000),
        real_idle_times: 2,
        real_boundaries: 6,
    };
    const QUICK: Self = Self {
        all: false,
        hammered: Duration::from_millis(1_300),
        idle_times: 3,
        boundaries: 5,
        saturated: Duration::from_secs(20),
        real_idle_times: 0,
        real_boundaries: 2,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        Options::parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn words_are_options_or_refused() {
        let kept = Options { help: false, quick: true, keep: Some("page.md".into()) };
        assert_eq!(parse(&["--quick", "--keep", "page.md"]), Ok(kept));
        assert!(parse(&["--keep"]).unwrap_err().contains("needs a page"));
        assert!(parse(&["--fast"]).unwrap_err().contains("`--fast`"));
    }
}
