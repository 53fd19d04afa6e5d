//! Counts beside those that are committed.

use std::fmt;

use crate::callgrind::Instructions;

/// How far a count may be from the committed one, either way: a gain that nobody writes down could be lost unseen.
const PERCENT: u32 = 3;

/// All rows, to be printed.
#[derive(Debug)]
pub(crate) struct Comparison(pub(crate) Vec<Compared>);

#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) row: String,
    pub(crate) committed: u32,
    pub(crate) now: Instructions,
}

impl Comparison {
    /// The rows that are further off than they may be.
    pub(crate) fn beyond(&self) -> Vec<&Compared> {
        self.0.iter().filter(|row| row.is_beyond()).collect()
    }

    /// All of it in a line.
    pub(crate) fn verdict(&self) -> String {
        let (n, n_beyond) = (self.0.len(), self.beyond().len());
        match n_beyond {
            0 => format!("{n} rows within {PERCENT} %"),
            _ => format!("{n_beyond} of {n} rows beyond {PERCENT} %"),
        }
    }
}

impl Compared {
    fn is_beyond(&self) -> bool {
        let off = u64::from(self.now.own.abs_diff(self.committed));
        off * 100 > u64::from(self.committed) * u64::from(PERCENT)
    }

    /// In percent; none for a row that is new.
    fn change(&self) -> Option<f64> {
        let committed = f64::from(self.committed);
        (self.committed > 0).then(|| (f64::from(self.now.own) - committed) / committed * 100.0)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24} {:>9} {:>9} {:>8} {:>9}", "", "committed", "now", "change", "outside")?;
        self.0.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instructions { own, outside } = self.now;
        let change = self.change().map_or_else(|| "new".to_owned(), |change| format!("{change:+.1} %"));
        write!(f, "{:<24} {:>9} {own:>9} {change:>8} {outside:>9}", self.row, self.committed)?;
        if self.is_beyond() { write!(f, "  beyond {PERCENT} %") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Compared, Comparison};
    use crate::callgrind::Instructions;

    fn compared(committed: u32, own: u32) -> Compared {
        Compared { row: "qps exact".to_owned(), committed, now: Instructions { own, outside: 18 } }
    }

    #[test]
    fn a_count_may_be_three_percent_off_either_way() {
        let verdicts = [969, 970, 1_000, 1_030, 1_031].map(|own| compared(1_000, own).is_beyond());
        assert_eq!(verdicts, [true, false, false, false, true]);
    }

    #[test]
    fn a_new_row_is_beyond() {
        assert_eq!(
            compared(0, 312).to_string(),
            "qps exact                        0       312      new        18  beyond 3 %"
        );
    }

    #[test]
    fn a_row_shows_both_counts_and_the_change() {
        assert_eq!(
            compared(1_000, 985).to_string(),
            "qps exact                     1000       985   -1.5 %        18"
        );
    }

    #[test]
    fn only_rows_that_are_too_far_off_are_beyond() {
        let comparison =
            Comparison(vec![compared(1_000, 1_000), compared(1_000, 1_100), compared(1_000, 900)]);
        let beyond: Vec<u32> = comparison.beyond().iter().map(|row| row.now.own).collect();
        assert_eq!(beyond, [1_100, 900]);
    }

    #[test]
    fn the_verdict_tells_how_many_rows_are_too_far_off() {
        let verdict =
            |owns: &[u32]| Comparison(owns.iter().map(|own| compared(1_000, *own)).collect()).verdict();
        assert_eq!(verdict(&[1_000, 1_030]), "2 rows within 3 %");
        assert_eq!(verdict(&[1_000, 1_031]), "1 of 2 rows beyond 3 %");
    }
}
