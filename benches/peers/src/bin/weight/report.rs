//! The table.

use std::fmt::{self, Display, Formatter};

use leap_benches::processes::Took;

/// What was weighed of one of them.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) does: &'static str,
    pub(crate) n_crates: usize,
    /// Round by round.
    pub(crate) debug: Vec<Took>,
    pub(crate) release: Vec<Took>,
    /// Bytes by which its program is larger than the plain one.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Report(pub(crate) Vec<Row>);

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | around one function | crates | debug build, s | release build, s | program, KiB |")?;
        writeln!(f, "| --- | --- | ---: | ---: | ---: | ---: |")?;
        for Row { name, does, n_crates, debug, release, bytes } in &self.0 {
            let [debug, release] = [debug, release].map(|rounds| spread(&seconds(rounds)));
            writeln!(f, "| {name} | {does} | {n_crates} | {debug} | {release} | {} |", bytes / 1_024)?;
        }
        Ok(())
    }
}

/// Computed, where the system tells, and else passed.
fn seconds(rounds: &[Took]) -> Vec<f64> {
    rounds.iter().map(|took| took.cpu.unwrap_or(took.wall)).collect()
}

/// The median, and the least and most where there are several.
fn spread(figures: &[f64]) -> String {
    let mut all = figures.to_vec();
    all.sort_by(f64::total_cmp);
    match all.as_slice() {
        [] => "none".to_owned(),
        [only] => format!("{only:.1}"),
        [least, .., most] => format!("{:.1} ({least:.1} to {most:.1})", all[all.len() / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_by_their_median_and_ends() {
        assert_eq!(spread(&[3.0, 1.04, 2.0]), "2.0 (1.0 to 3.0)");
        assert_eq!(spread(&[2.5]), "2.5");
    }

    #[test]
    fn a_row_goes_by_what_was_computed() {
        let took = |wall, cpu| vec![Took { wall, cpu }];
        let (debug, release) = (took(9.0, Some(4.0)), took(7.0, None));
        let row = Row { name: "some", does: "limit", n_crates: 3, debug, release, bytes: 2_048 };
        let table = Report(vec![row]).to_string();
        assert_eq!(table.lines().last(), Some("| some | limit | 3 | 4.0 | 7.0 | 2 |"));
    }
}
