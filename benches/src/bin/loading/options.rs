//! The command line.

use std::path::PathBuf;

pub(crate) const USAGE: &str = "\
loading [--quick] [--json FILE]
    times calls while rules are loaded, loading alone, and the memory of many loads; --quick in fewer and shorter rounds
loading --once LOAD N
    makes one load of the table of loads N times, for a profiler";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) task: Task,
    pub(crate) quick: bool,
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) enum Task {
    Help,
    Measure,
    Once { load: String, n: usize },
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { task: Task::Measure, quick: false, json: None };
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("`{word}` needs {what}\n{USAGE}"));
        match word.as_str() {
            "--help" | "-h" => options.task = Task::Help,
            "--quick" => options.quick = true,
            "--json" => options.json = Some(value("a file")?.into()),
            "--once" => {
                let (load, n) = (value("a load and a number")?, value("a load and a number")?);
                let n = n.parse().map_err(|_| format!("`{n}` is not a number of loads"))?;
                options.task = Task::Once { load, n };
            }
            _ => return Err(format!("unknown argument `{word}`\n{USAGE}")),
        }
    }
    Ok(options)
}
