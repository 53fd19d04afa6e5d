//! The command line.

use std::path::PathBuf;

use crate::source;

pub(crate) const USAGE: &str = "\
expansion [--quick] [--json FILE]
    builds a crate of guarded functions beside the same without the attribute; --quick fewer of them, in fewer rounds";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    quick: bool,
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Task {
    Help,
    Measure,
    /// Runs a chain of functions; for ourselves, and of no use to anybody else.
    Chain,
}

/// How much is built, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) modules: usize,
    pub(crate) debug_rounds: usize,
    pub(crate) check_rounds: usize,
    pub(crate) release_rounds: usize,
}

impl Plan {
    const FULL: Self = Self { modules: 100, debug_rounds: 5, check_rounds: 3, release_rounds: 2 };
    const QUICK: Self = Self { modules: 5, debug_rounds: 3, check_rounds: 1, release_rounds: 1 };

    pub(crate) fn functions(self) -> usize {
        self.modules * source::KINDS.len()
    }
}

impl Options {
    pub(crate) fn plan(&self) -> Plan {
        if self.quick { Plan::QUICK } else { Plan::FULL }
    }
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { task: Task::Measure, quick: false, json: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => options.task = Task::Help,
            "--quick" => options.quick = true,
            "--json" => options.json = Some(words.next().ok_or_else(missing_file)?.into()),
            "--chain" => {
                options.task = Task::Chain;
                break;
            }
            _ => return Err(format!("unknown argument `{word}`\n{USAGE}")),
        }
    }
    Ok(options)
}

fn missing_file() -> String {
    format!("`--json` needs a file\n{USAGE}")
}
