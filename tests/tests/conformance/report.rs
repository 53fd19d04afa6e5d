//! Files of cases, and what came of them.

use std::fmt::{self, Display};
use std::fs;
use std::path::Path;

use leap_tests::json::{Result, field, text};
use serde_json::Value;

use crate::replay_of;

/// Puts one case to leap.
pub(crate) type Replay = fn(&Value, &mut Answers) -> Result<()>;

/// The answers of one case as they are compared.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    compared: usize,
    differences: Vec<String>,
}

impl Answers {
    /// `index` is the place of the call or event in its case.
    pub(crate) fn compare<T: PartialEq + Display + ?Sized>(&mut self, index: usize, expected: &T, got: &T) {
        self.compared += 1;
        if expected != got {
            self.differences.push(format!("answer {index}: expected {expected}, got {got}"));
        }
    }
}

/// What came of a directory.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) files: Vec<FileReport>,
}

impl Report {
    pub(crate) fn differences(&self) -> Vec<&str> {
        self.files.iter().flat_map(|file| file.differences.iter().map(String::as_str)).collect()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.iter().try_for_each(|file| writeln!(f, "{file}"))
    }
}

/// What came of a file.
#[derive(Debug)]
pub(crate) struct FileReport {
    pub(crate) name: String,
    pub(crate) cases: usize,
    pub(crate) answers: usize,
    pub(crate) differences: Vec<String>,
    replay: Option<Replay>,
}

impl FileReport {
    pub(crate) fn is_built(&self) -> bool {
        self.replay.is_some()
    }
}

impl Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<30} {:>3} cases  ", self.name, self.cases)?;
        if self.is_built() {
            write!(f, "{:>6} answers  {:>4} differences", self.answers, self.differences.len())
        } else {
            f.write_str("not built yet")
        }
    }
}

/// Replays every file but the one that explains the others.
pub(crate) fn replay_directory(directory: &Path) -> Result<Report> {
    let unreadable = |error: std::io::Error| format!("{} cannot be read: {error}", directory.display());
    let mut paths = vec![];
    for file in fs::read_dir(directory).map_err(unreadable)? {
        let path = file.map_err(unreadable)?.path();
        if path.file_name().is_some_and(|name| name != "README.md") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = vec![];
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        files.push(replay_file(&name, &text)?);
    }
    Ok(Report { files })
}

pub(crate) fn replay_file(name: &str, text: &str) -> Result<FileReport> {
    let replay = replay_of(name);
    let mut report = FileReport { name: name.to_owned(), cases: 0, answers: 0, differences: vec![], replay };
    for (line, json) in text.lines().enumerate().filter(|(_, json)| !json.trim().is_empty()) {
        report.cases += 1;
        let Some(replay) = replay else { continue };
        let mut answers = Answers::default();
        let case = replay_case(json, replay, &mut answers)
            .map_err(|error| format!("{name}, line {}: {error}", line + 1))?;
        report.answers += answers.compared;
        let place = |difference| format!("{name}, case {case}, {difference}");
        report.differences.extend(answers.differences.into_iter().map(place));
    }
    Ok(report)
}

fn replay_case(json: &str, replay: Replay, answers: &mut Answers) -> Result<String> {
    let case: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    replay(&case, answers)?;
    if answers.compared == 0 {
        return Err("nothing is answered".to_owned());
    }
    text(field(&case, "case")?).map(str::to_owned)
}
