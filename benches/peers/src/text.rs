//! The report for a terminal.

use std::fmt;

use leap_benches::measure::Setting;

use crate::report::{Phase, Report};
use crate::row::Part;

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rounds, calls) = (self.by_its_clock.n_rounds(), self.plan.calls);
        writeln!(
            f,
            "ns per call in {rounds} interleaved rounds of {calls} calls per thread, fewer where they take long"
        )?;
        writeln!(f, "with two threads, of the rounds in which both ran at the same time")?;
        writeln!(
            f,
            "×leap: median to that of leap's guarded call, exact, as many threads; of what says no, to its blocked call"
        )?;
        writeln!(f, "×floor: median to the floor's with as many threads, each on counters of its own")?;
        self.write_phase(f, &self.by_its_clock)?;
        let rounds = self.by_ticker.n_rounds();
        writeln!(
            f,
            "\nin {rounds} rounds of their own, while sentinel-core reads the time of its 1 ms ticker"
        )?;
        self.write_phase(f, &self.by_ticker)?;
        self.write_checks(f)
    }
}

impl Report<'_> {
    fn write_phase(&self, f: &mut fmt::Formatter<'_>, phase: &Phase<'_>) -> fmt::Result {
        for setting in Setting::ALL {
            write!(f, "\n{:<42}{:>7}{:>8}", setting.title(), "×leap", "×floor")?;
            writeln!(f, "{:>10}{:>10}{:>10}{:>8}", "min", "median", "max", "allocs")?;
            for part in Part::ALL {
                let mut is_first = true;
                for timing in phase.of(setting).filter(|timing| timing.row.part == part) {
                    if std::mem::take(&mut is_first) {
                        writeln!(f, "  {}", part.title())?;
                    }
                    write!(f, "    {:<38}", timing.row.name)?;
                    write!(f, "{:>7}", figure(phase.to_leap(timing), 2))?;
                    write!(f, "{:>8}", figure(phase.to_floor(timing), 2))?;
                    write!(f, "{:>10.1}{:>10.1}{:>10.1}", timing.min(), timing.median(), timing.max())?;
                    write!(f, "{:>8}", figure(self.allocations(timing.row.name), 1))?;
                    if setting == Setting::OneThread {
                        write!(f, "   {}", timing.row.does)?;
                    } else if timing.apart {
                        write!(f, "   rounds: none, both threads never ran at once")?;
                    } else {
                        write!(f, "   rounds: {}", timing.n_rounds())?;
                    }
                    writeln!(f)?;
                }
            }
        }
        for timing in phase.odd() {
            let (name, setting, odd) = (timing.row.name, timing.setting.title(), timing.odd);
            writeln!(f, "\n`{name}`, {setting}: {odd} calls ended otherwise than they should")?;
        }
        Ok(())
    }

    fn write_checks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<60}{:>7}{:>10}",
            "promises (medians of one thread; does not fail the program)", "ratio", "at least"
        )?;
        for check in self.checks() {
            writeln!(
                f,
                "  {:<58}{:>7.1}{:>10.0}   {}",
                check.what,
                check.ratio,
                check.at_least,
                check.verdict()
            )?;
        }
        Ok(())
    }
}

fn figure(figure: Option<f64>, places: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.places$}"))
}
