//! What is told, in Markdown.

use std::fmt::{self, Display, Formatter};

use crate::counts::{Counts, Most};

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) tables: Vec<Table>,
    pub(crate) promises: Vec<Checked>,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) limit: u32,
    pub(crate) rows: Vec<(String, Counts)>,
}

/// Something promised, and whether it held.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) what: String,
    pub(crate) held: bool,
}

impl Report {
    pub(crate) fn is_all_kept(&self) -> bool {
        self.promises.iter().all(|checked| checked.held)
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            writeln!(f, "{table}")?;
        }
        writeln!(f, "### Promises\n\nThe program fails when one of these does not hold.\n")?;
        for Checked { what, held } in &self.promises {
            writeln!(f, "- {} {what}", if *held { "held:" } else { "**BROKEN**:" })?;
        }
        Ok(())
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { title, about, limit, rows } = self;
        writeln!(f, "### {title}\n\n{about}\n")?;
        writeln!(f, "| limiter | calls | per aligned second | most in any second | of the log's |")?;
        writeln!(f, "| --- | ---: | ---: | ---: | ---: |")?;
        for (name, counts) in rows {
            let over = if counts.sliding.certain > u64::from(*limit) { " over" } else { "" };
            let (asked, share) = (grouped(counts.asked), 100.0 * counts.share());
            write!(f, "| {name} | {asked} | {} ", per_second(counts.per_second))?;
            writeln!(f, "| {}{over} | {share:.1} % |", counts.sliding)?;
        }
        Ok(())
    }
}

impl Display for Most {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&range(self.certain, self.possible))
    }
}

fn per_second(counts: Option<[u64; 2]>) -> String {
    counts.map_or_else(|| "none whole".to_owned(), |[fewest, most]| range(fewest, most))
}

fn range(least: u64, most: u64) -> String {
    if least == most { grouped(least) } else { format!("{} to {}", grouped(least), grouped(most)) }
}

/// With a space before each three digits, as in tables elsewhere.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let told = [0, 999, 1_000, 12_345_678].map(grouped);
        assert_eq!(told, ["0", "999", "1 000", "12 345 678"]);
    }

    #[test]
    fn a_row_tells_what_is_over_the_limit() {
        let sliding = Most { certain: 11, possible: 12 };
        let counts = Counts { asked: 1_000, passed: 15, per_second: Some([7, 8]), sliding, log: 10 };
        let rows = vec![("some".to_owned(), counts)];
        let table = Table { title: "Load".to_owned(), about: "About.".to_owned(), limit: 10, rows };
        let last = table.to_string().lines().last().unwrap().to_owned();
        assert_eq!(last, "| some | 1 000 | 7 to 8 | 11 to 12 over | 150.0 % |");
    }

    #[test]
    fn a_broken_promise_is_told() {
        let mut report = Report::default();
        report.promises.push(Checked { what: "this".to_owned(), held: true });
        assert!(report.is_all_kept());
        report.promises.push(Checked { what: "that".to_owned(), held: false });
        assert!(!report.is_all_kept() && report.to_string().ends_with("- held: this\n- **BROKEN**: that\n"));
    }
}
