//! The command line.

use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
growth [--quick] [--only SUBSTRING] [--json FILE] [--keep PAGE]
    --quick: smaller, in fewer rounds; --only: the series and parts with SUBSTRING in their names;
    --keep: puts the section `growth` into this page of results";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Measure,
    /// What a child does for [`start_up`](crate::start_up).
    FirstCalls,
}

impl Options {
    /// Whether the series or part of this name is asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }

    /// The command that measures the same.
    pub(crate) fn command(&self) -> String {
        let quick = self.quick.then(|| " --quick".to_owned());
        let only = self.only.as_ref().map(|only| format!(" --only \"{only}\""));
        let options: String = quick.into_iter().chain(only).collect();
        let dashes = if options.is_empty() { "" } else { " --" };
        format!("cargo run --release -p leap-benches --bin growth{dashes}{options}")
    }
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { task: Task::Measure, quick: false, only: None, json: None, keep: None };
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("`{word}` needs {what}\n{USAGE}"));
        match word.as_str() {
            "--help" | "-h" => options.task = Task::Help,
            "--quick" => options.quick = true,
            "--only" => options.only = Some(value("a part of a name")?),
            "--json" => options.json = Some(value("a file")?.into()),
            "--keep" => options.keep = Some(value("a page")?.into()),
            FIRST_CALLS => options.task = Task::FirstCalls,
            _ => return Err(format!("unknown argument `{word}`\n{USAGE}")),
        }
    }
    Ok(options)
}

/// Tells a process that it is such a child.
pub(crate) const FIRST_CALLS: &str = "--first-calls";
