//! The command line.

use std::path::PathBuf;

use leap_benches::floor;

use crate::rows::Row;

pub(crate) const USAGE: &str = "\
hot_path [--quick] [--only SUBSTRING] [--json FILE]
    times every row; --quick in fewer and shorter rounds, --only those with SUBSTRING in their names
hot_path --instructions ROW N
    makes N calls of one row in a function `counted_calls`, for callgrind";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Task {
    Help,
    Time,
    Count { row: String, n: u64 },
}

impl Options {
    /// Whether the row is asked for by its name.
    pub(crate) fn names(&self, row: &Row) -> bool {
        row.name.contains(self.only())
    }

    /// Whether it is measured: the floor is always there to compare with.
    pub(crate) fn wants(&self, row: &Row) -> bool {
        row.name == floor::NAME || self.names(row)
    }

    pub(crate) fn only(&self) -> &str {
        self.only.as_deref().unwrap_or_default()
    }
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { task: Task::Time, quick: false, only: None, json: None };
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("`{word}` needs {what}\n{USAGE}"));
        match word.as_str() {
            "--help" | "-h" => options.task = Task::Help,
            "--quick" => options.quick = true,
            "--only" => options.only = Some(value("a part of a row's name")?),
            "--json" => options.json = Some(value("a file")?.into()),
            "--instructions" => {
                let (row, n) = (value("a row and a number")?, value("a row and a number")?);
                let n = n.parse().map_err(|_| format!("`{n}` is not a number of calls"))?;
                options.task = Task::Count { row, n };
            }
            _ => return Err(format!("unknown argument `{word}`\n{USAGE}")),
        }
    }
    Ok(options)
}
