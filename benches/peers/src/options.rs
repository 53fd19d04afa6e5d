//! The command line.

use std::path::PathBuf;

use crate::peers::leap;
use crate::row::Row;

pub(crate) const USAGE: &str = "\
leap-peers [--quick] [--only SUBSTRING] [--json FILE] [--keep PAGE]
    times every row; --quick in fewer and shorter rounds, --only those with SUBSTRING in their names
    --keep writes the section `cost` into a page of Markdown";

#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) help: bool,
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) keep: Option<PathBuf>,
}

impl Options {
    /// Whether the row is asked for by its name.
    pub(crate) fn names(&self, row: &Row) -> bool {
        self.only.as_ref().is_none_or(|only| row.name.contains(only.as_str()))
    }

    /// Whether it is measured: what the others are compared with always is.
    pub(crate) fn wants(&self, row: &Row) -> bool {
        self.names(row) || [leap::FLOOR, leap::GUARDED, leap::BLOCKED].contains(&row.name)
    }

    /// What was called, for whoever wants to do it again.
    pub(crate) fn command(&self) -> String {
        let quick = if self.quick { " -- --quick" } else { "" };
        format!("cargo run --release --manifest-path benches/peers/Cargo.toml{quick}")
    }
}

pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("`{word}` needs {what}\n{USAGE}"));
        match word.as_str() {
            "--help" | "-h" => options.help = true,
            "--quick" => options.quick = true,
            "--only" => options.only = Some(value("a part of a row's name")?),
            "--json" => options.json = Some(value("a file")?.into()),
            "--keep" => options.keep = Some(value("a page")?.into()),
            _ => return Err(format!("unknown argument `{word}`\n{USAGE}")),
        }
    }
    if options.only.is_some() && options.keep.is_some() {
        return Err("a section is kept of all rows: `--keep` and `--only` exclude one another".to_owned());
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn words(line: &str) -> impl Iterator<Item = String> {
        line.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn a_page_is_kept_of_all_rows_or_none() {
        assert!(parse(words("--only leap --keep page.md")).is_err());
        let options = parse(words("--quick --keep page.md")).unwrap();
        assert_eq!(
            options.command(),
            "cargo run --release --manifest-path benches/peers/Cargo.toml -- --quick"
        );
    }

    #[test]
    fn what_is_not_known_is_named() {
        let error = parse(words("--slow")).unwrap_err();
        assert!(error.starts_with("unknown argument `--slow`"), "{error}");
    }
}
