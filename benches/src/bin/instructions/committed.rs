//! The committed file, `benches/instructions.txt`.

/// The file, line by line: what is between the rows stays when they are counted anew.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    lines: Vec<Line>,
    /// The one that made what was counted.
    pub(crate) compiler: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// A comment, or nothing.
    Remark(String),
    /// By a compiler.
    TakenWith(String),
    Row(Row),
}

/// A row of `hot_path`, and the instructions of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) count: u32,
}

const TAKEN_WITH: &str = "taken with ";

impl Committed {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().zip(1..).map(|(text, number)| {
            Line::parse(text).ok_or_else(|| {
                format!(
                    "line {number} is `{text}`: neither a comment, nor `{TAKEN_WITH}…`, nor a number and a row"
                )
            })
        });
        let lines: Vec<Line> = lines.collect::<Result<_, _>>()?;
        let compiler = lines.iter().find_map(Line::compiler);
        let compiler = compiler.ok_or_else(|| format!("no line `{TAKEN_WITH}…`"))?.to_owned();
        Ok(Self { lines, compiler })
    }

    pub(crate) fn rows(&self) -> Vec<&Row> {
        self.lines.iter().filter_map(Line::row).collect()
    }

    /// The file with other counts, one for each row in their order, of what another compiler made.
    pub(crate) fn with(&self, compiler: &str, counts: &[u32]) -> String {
        let mut counts = counts.iter();
        let mut line = |line: &Line| match line {
            Line::Remark(remark) => format!("{remark}\n"),
            Line::TakenWith(_) => format!("{TAKEN_WITH}{compiler}\n"),
            Line::Row(row) => {
                format!("{:>5} {}\n", counts.next().copied().unwrap_or(row.count), row.name)
            }
        };
        self.lines.iter().map(&mut line).collect()
    }
}

impl Line {
    fn parse(text: &str) -> Option<Self> {
        let words = text.trim();
        if words.is_empty() || words.starts_with('#') {
            return Some(Self::Remark(text.to_owned()));
        }
        if let Some(compiler) = words.strip_prefix(TAKEN_WITH) {
            return Some(Self::TakenWith(compiler.to_owned()));
        }
        let (count, name) = words.split_once(' ')?;
        Some(Self::Row(Row { name: name.trim().to_owned(), count: count.parse().ok()? }))
    }

    fn compiler(&self) -> Option<&str> {
        if let Self::TakenWith(compiler) = self { Some(compiler) } else { None }
    }

    fn row(&self) -> Option<&Row> {
        if let Self::Row(row) = self { Some(row) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::{Committed, Row};

    const FILE: &str = "# About.\n\ntaken with rustc 1.95.0\n\n# Guarded.\n  312 statistics\n 1033 by name\n";

    #[test]
    fn a_file_names_its_compiler_and_its_rows() {
        let committed = Committed::parse(FILE).unwrap();
        assert_eq!(committed.compiler, "rustc 1.95.0");
        let row = |name: &str, count| Row { name: name.to_owned(), count };
        assert_eq!(committed.rows(), [&row("statistics", 312), &row("by name", 1_033)]);
    }

    #[test]
    fn what_is_written_back_keeps_all_but_the_counts_and_the_compiler() {
        let committed = Committed::parse(FILE).unwrap();
        assert_eq!(committed.with("rustc 1.95.0", &[312, 1_033]), FILE);
        assert_eq!(
            committed.with("rustc 1.96.0", &[9, 10_000]),
            "# About.\n\ntaken with rustc 1.96.0\n\n# Guarded.\n    9 statistics\n10000 by name\n"
        );
    }

    #[test]
    fn a_line_that_says_nothing_is_an_error_that_shows_it() {
        let error = Committed::parse("# About.\nstatistics 312\n").unwrap_err();
        assert_eq!(
            error,
            "line 2 is `statistics 312`: neither a comment, nor `taken with …`, nor a number and a row"
        );
        assert!(Committed::parse("312\n").is_err());
        assert!(Committed::parse("-1 statistics\n").is_err());
    }

    #[test]
    fn a_file_says_what_it_was_taken_with() {
        let error = Committed::parse("  312 statistics\n").unwrap_err();
        assert_eq!(error, "no line `taken with …`");
    }

    #[test]
    fn the_file_that_is_committed_can_be_read_and_is_as_it_would_be_written() {
        let text = include_str!("../../../instructions.txt");
        let committed = Committed::parse(text).unwrap();
        let counts: Vec<u32> = committed.rows().iter().map(|row| row.count).collect();
        assert!(!counts.is_empty());
        assert_eq!(committed.with(&committed.compiler, &counts), text);
    }
}
