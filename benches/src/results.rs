//! The page of results, `benches/RESULTS.md`: each program keeps a section of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io, thread};

/// Whether all these files can be written: to be asked before there is something to write, which takes long to measure.
/// A file that is not there is made, and one that is stays as it is.
///
/// # Errors
///
/// The first that cannot be opened, by its name.
pub fn check_writable<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), String> {
    files.into_iter().try_for_each(|file| {
        let opened = fs::OpenOptions::new().append(true).create(true).open(file);
        opened.map(drop).map_err(|error| unwritable(file, &error))
    })
}

/// What is said of a file that cannot be written.
pub fn unwritable(file: &Path, error: &io::Error) -> String {
    format!("`{}` cannot be written: {error}", file.display())
}

/// Puts the section where it stood, or at the end of the page.
///
/// A section stands between two comments that name it, so what is written between sections stays.
///
/// # Errors
///
/// The page cannot be read or written, or has the beginning of the section and not its end.
pub fn keep(page: &Path, section: &str, text: &str) -> io::Result<()> {
    let old = match fs::read_to_string(page) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    fs::write(page, with_section(&old, section, text)?)
}

fn with_section(page: &str, section: &str, text: &str) -> io::Result<String> {
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- end of {section} -->\n"));
    let text = format!("{begin}{}\n{end}", text.trim_end());
    let Some((before, rest)) = page.split_once(&begin) else {
        let gap = if page.is_empty() { "" } else { "\n" };
        return Ok(format!("{page}{gap}{text}"));
    };
    let (_, after) = rest.split_once(&end).ok_or_else(|| io::Error::other(format!("`{end}` is missing")))?;
    Ok(format!("{before}{text}{after}"))
}

/// Where and when figures were taken, in a line: processor, cores, compiler, system's date, command.
pub fn taken(command: &str) -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let [rustc, date] = [said("rustc", &["--version"]), said("date", &["-u", "+%F"])];
    format!("{}, {cores} cores, {rustc}, {date}: `{command}`", processor())
}

fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |line: &str| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned());
    about.lines().find_map(of).unwrap_or_else(|| "an unknown processor".to_owned())
}

/// The first line that a program says.
fn said(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).output().map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    text.lines().next().map_or_else(|| format!("no {program}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{check_writable, with_section};

    #[test]
    fn a_file_in_a_folder_that_is_not_there_is_named_before_it_is_written() {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/no such folder/page.md"));
        let error = check_writable([&file]).unwrap_err();
        assert!(error.starts_with(&format!("`{}` cannot be written: ", file.display())), "{error}");
    }

    #[test]
    fn a_file_that_can_be_written_stays_as_it_is() {
        let file = std::env::temp_dir().join(format!("leap-benches-{}.md", std::process::id()));
        std::fs::write(&file, "kept").unwrap();
        let checked = check_writable([&file]);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!((checked, text.as_str()), (Ok(()), "kept"));
    }

    #[test]
    fn a_section_is_put_where_it_stood_and_the_rest_stays() {
        let first = with_section("", "cost", "old").unwrap();
        let both = with_section(&first, "weight", "heavy\n").unwrap();
        assert_eq!(
            with_section(&both, "cost", "new").unwrap(),
            "<!-- cost -->\nnew\n<!-- end of cost -->\n\n<!-- weight -->\nheavy\n<!-- end of weight -->\n"
        );
    }

    #[test]
    fn a_section_without_an_end_is_an_error() {
        assert!(with_section("<!-- cost -->\nold\n", "cost", "new").is_err());
    }
}
