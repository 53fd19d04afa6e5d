//! The command line.

pub(crate) const USAGE: &str = "\
instructions
    counts the instructions of each row's calls, and compares them with the committed counts
instructions --refresh
    writes the counts into the committed file instead

`outside` are instructions in libc and the dynamic linker: they depend on the machine, and are not compared.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Compare,
    Refresh,
}

pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Task, String> {
    let mut task = Task::Compare;
    for word in words {
        task = match word.as_str() {
            "--help" | "-h" => Task::Help,
            "--refresh" => Task::Refresh,
            _ => return Err(format!("unknown argument `{word}`\n{USAGE}")),
        };
    }
    Ok(task)
}
